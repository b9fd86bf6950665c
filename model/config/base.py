"""Base of every configuration section."""

import ast
import difflib
import inspect
import itertools
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple, Self, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationInfo, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

SHIPPED = "shipped:"
"""Before the name of a trace that comes with hopforge."""

LARGEST_WHOLE_NUMBER = 10**18
"""Of keys without a limit of their own: arrays hold whole numbers of 64 bits."""

_LONGEST_WORD = 100
"""Of a mistyped word that is compared with the known ones."""


class Problem(NamedTuple):
    """What is wrong with one key: ``ways`` and ``must divide entries=2048, not 3``."""

    key: str
    reason: str

    def __str__(self) -> str:
        """Return key and reason as in an error message."""
        return f"{self.key}: {self.reason}"


class SectionError(ValueError):
    """Values of one section that are fine alone and wrong together."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean 'ways'?`` if `word` is close to a known one, else the known ones."""
    known = list(known)
    close = difflib.get_close_matches(word[:_LONGEST_WORD], known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


class Section(BaseModel):
    """A frozen section of the YAML file; unknown keys and wrong types are errors.

    The string under a key is its documentation (`hopforge schema`, ``docs/definitions/configuration.md``).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    bit_patterns: ClassVar[frozenset[str]] = frozenset()
    """Keys with bits of a width that another key says: no numbers of an array."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Add what the strings under the keys say; read here, not at every start, for it takes a while."""
        found = handler(core)
        keys = handler.resolve_ref_schema(found)["properties"]
        texts = _strings_under_keys(cls)
        for name, field in cls.model_fields.items():
            if name in texts:
                keys[field.alias or name]["description"] = texts[name]
        return found

    def problems(self) -> Iterator[Problem]:
        """Return what is wrong between values of this section; keys are relative to the section."""
        return iter(())

    def _large(self) -> Iterator[Problem]:
        """Return whole numbers that do not fit into arrays."""
        for name in type(self).model_fields:
            for each in _whole_numbers(getattr(self, name)) if name not in self.bit_patterns else ():
                if abs(each) > LARGEST_WHOLE_NUMBER:
                    yield Problem(name, f"must be at most {LARGEST_WHOLE_NUMBER} in amount, not {each}")

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = tuple(self._large()) or tuple(self.problems())
        if problems:
            raise SectionError(problems)
        return self


def _whole_numbers(value: object) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _whole_numbers(each)


def _strings_under_keys(section: type[Section]) -> dict[str, str]:
    """Return the string under each key of a section, its own and those that it inherits."""
    found: dict[str, str] = {}
    for base in reversed(section.__mro__):
        if base is not Section and issubclass(base, Section):
            body = cast(ast.ClassDef, ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]).body
            for key, text in itertools.pairwise(body):
                match key, text:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                        found[name] = inspect.cleandoc(words)
    return found


def _beside(path: Path, info: ValidationInfo) -> Path:
    if "\0" in str(path):
        raise PydanticCustomError("nul", "a file name cannot hold the character NUL")
    folder = (info.context or {}).get("folder")
    return path if folder is None else Path(folder) / path


def _trace(file: str, info: ValidationInfo) -> str:
    return file if file.startswith(SHIPPED) else str(_beside(Path(file), info))


ConfigPath = Annotated[Path, AfterValidator(_beside)]
TracePath = Annotated[str, AfterValidator(_trace)]


def named_files(section: BaseModel, prefix: str = "") -> dict[str, Path]:
    """Return the files and folders that a configuration names, by the dotted keys under which it does.

    Traces that come with hopforge are not among them.
    """
    found: dict[str, Path] = {}
    for name, info in type(section).model_fields.items():
        value, key = getattr(section, name), f"{prefix}{name}"
        if isinstance(value, BaseModel):
            found |= named_files(value, f"{key}.")
        elif isinstance(value, tuple):
            for number, each in enumerate(value):
                found |= named_files(each, f"{key}[{number}].") if isinstance(each, BaseModel) else {}
        elif isinstance(value, Path):
            found[key] = value
        elif any(getattr(each, "func", None) is _trace for each in info.metadata) and not value.startswith(SHIPPED):
            found[key] = Path(value)
    return found


BusKind = Literal["native", "axi4_lite", "apb", "wishbone"]


class CsrConfig(Section):
    """Registers of a generated lookup engine or router."""

    bus: BusKind = "native"
    """Bus to the registers (definitions/register-buses.md); native: address, write, read and data, no more."""
