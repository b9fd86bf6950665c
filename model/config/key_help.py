"""What one key of a configuration file means: for `hopforge explain`."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from hopforge.model.config.base import suggestion
from hopforge.model.config.reference import default_words, inner_sections, kind_words
from hopforge.model.config.root import Config
from hopforge.model.errors import UserError


@dataclass(frozen=True)
class KeyHelp:
    """A key, or a section.

    Attributes
    ----------
    path : str
        From the root of the file, with dots.
    value : str
        Type and limits; of a section "section".
    default : str
        In words; "required" without one.
    meaning : str
        What it does, on one line.
    kinds : tuple of str
        Values of `kind` that sections with this key have; empty: any.
    keys : tuple of KeyHelp
        Of a section; not theirs.
    """

    path: str
    value: str
    default: str
    meaning: str
    kinds: tuple[str, ...] = ()
    keys: tuple["KeyHelp", ...] = ()


def key_help(path: str) -> list[KeyHelp]:
    """Return what there is at `path`: several where sections of different `kind` differ.

    Parameters
    ----------
    path : str
        Keys with dots, as messages name them: ``router.vcs``, ``lookup.cache``; numbers in brackets do not count.

    Raises
    ------
    UserError
        No such key.
    """
    schema = _schema()
    definitions = schema["$defs"]
    sections: list[dict[str, Any]] = [schema]
    words = path.replace("]", "").replace("[", ".").split(".")
    words = [word for word in words if not word.isdecimal()]
    if not words:
        raise UserError(f"KEY: {path} is the number of an item, not a key; such as topology.radices[0]")
    for place, word in enumerate(words):
        found = [section for section in sections if word in section.get("properties", {})]
        if not found:
            known = dict.fromkeys(key for section in sections for key in section.get("properties", {}))
            here = ".".join(words[:place])
            if not known:
                raise UserError(f"KEY: {here} is no section; it has no key {word!r}")
            raise UserError(f"KEY: no key {word!r}{f' in {here}' if here else ''}; {suggestion(word, known)}")
        if place == len(words) - 1:
            return _merged([_key(".".join(words), word, section, definitions) for section in found])
        sections = [each for section in found for each in _below(section["properties"][word], definitions)]
    raise AssertionError("a path has a last word")


def all_keys() -> KeyHelp:
    """Return the sections of a file."""
    schema = _schema()
    return KeyHelp("", "section", "", schema["description"], keys=tuple(_keys("", schema, schema["$defs"])))


@cache
def _schema() -> dict[str, Any]:
    """Return the schema of a file: it takes pydantic half a second."""
    return Config.model_json_schema()


def _below(node: dict[str, Any], definitions: dict[str, Any]) -> list[dict[str, Any]]:
    return inner_sections(node.get("items", node), definitions)


def _kinds(section: dict[str, Any]) -> tuple[str, ...]:
    kind = section["properties"].get("kind", {})
    return tuple([kind["const"]] if "const" in kind else kind.get("enum", []) if "default" not in kind else [])


def _key(path: str, word: str, section: dict[str, Any], definitions: dict[str, Any]) -> KeyHelp:
    node = section["properties"][word]
    inner = _below(node, definitions)
    meaning = " ".join(node.get("description", "").split())
    if len(inner) == 1:
        keys, meaning = tuple(_keys(path, inner[0], definitions)), meaning or inner[0]["description"]
    else:
        keys = tuple(
            KeyHelp(f"kind: {kind}", "section", "", " ".join(each["description"].split()))
            for each in inner for kind in _kinds(each)
        )  # fmt: skip
    default = "required" if word in section.get("required", []) else default_words(node.get("default"))
    return KeyHelp(path, kind_words(node, definitions), default, meaning, _kinds(section), keys)


def _keys(path: str, section: dict[str, Any], definitions: dict[str, Any]) -> Iterator[KeyHelp]:
    for word in section["properties"]:
        found = _key(f"{path}.{word}" if path else word, word, section, definitions)
        yield KeyHelp(found.path, found.value, found.default, found.meaning)


def _merged(found: list[KeyHelp]) -> list[KeyHelp]:
    """Tell alike keys of several kinds of sections once."""
    alike: dict[KeyHelp, list[str]] = {}
    for one in found:
        same = KeyHelp(one.path, one.value, one.default, one.meaning, (), one.keys)
        alike.setdefault(same, []).extend(one.kinds)
    return [
        KeyHelp(one.path, one.value, one.default, one.meaning, tuple(kinds) if len(alike) > 1 else (), one.keys)
        for one, kinds in alike.items()
    ]
