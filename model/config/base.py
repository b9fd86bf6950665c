"""Base of every configuration section."""

import difflib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, NamedTuple, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo, model_validator

SHIPPED = "shipped:"
"""Before the name of a trace that comes with hopforge."""


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
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


class Section(BaseModel):
    """A frozen section of the YAML file; unknown keys and wrong types are errors.

    The string under a key is its documentation (`hopforge schema`, ``docs/definitions/configuration.md``).
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    def problems(self) -> Iterator[Problem]:
        """Return what is wrong between values of this section; keys are relative to the section."""
        return iter(())

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = tuple(self.problems())
        if problems:
            raise SectionError(problems)
        return self


def _beside(path: Path, info: ValidationInfo) -> Path:
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
        elif isinstance(value, Path):
            found[key] = value
        elif any(getattr(each, "func", None) is _trace for each in info.metadata) and not value.startswith(SHIPPED):
            found[key] = Path(value)
    return found
