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


#: path of a section in a file, and its schema
_Place = tuple[str, dict[str, Any]]


def key_help(path: str) -> list[KeyHelp]:
    """Return what there is at `path`: several where sections of different `kind` differ.

    Parameters
    ----------
    path : str
        Keys with dots, as messages name them: ``router.vcs``, ``lookup.cache``; numbers in brackets do not count.
        The name of a kind stands for the section of that kind: ``topology.director``, or ``director`` alone.

    Raises
    ------
    UserError
        No such key.
    """
    schema = _schema()
    definitions = schema["$defs"]
    sections: list[_Place] = [("", schema)]
    words = path.replace("]", "").replace("[", ".").split(".")
    words = [word for word in words if not word.isdecimal()]
    if not words:
        raise UserError(f"KEY: {path} is the number of an item, not a key; such as topology.radices[0]")
    for number, word in enumerate(words):
        found = [(at, section) for at, section in sections if word in section.get("properties", {})]
        candidates = sections if found or number else _every_section(schema)
        of_kind = [(at, section) for at, section in candidates if word in _kinds(section)]
        if not found and not of_kind:
            raise UserError(_unknown(word, words[:number], candidates))
        if number == len(words) - 1:
            keys = _merged([_key(_join(at, word), word, section, definitions) for at, section in found])
            return [*keys, *(_of_kind(at, word, section, definitions) for at, section in of_kind)]
        sections = [
            (_join(at, word), each)
            for at, section in found
            for each in _below(section["properties"][word], definitions)
        ]
        sections += of_kind
    raise AssertionError("a path has a last word")


def _unknown(word: str, before: list[str], sections: list[_Place]) -> str:
    """Say that there is no such key in the sections; a kind of theirs may be meant."""
    here = ".".join(before)
    keys = dict.fromkeys(
        key for at, section in sections if here or not at for key in section.get("properties", {})
    )  # fmt: skip
    if not keys:
        return f"KEY: {here} is no section; it has no key {word!r}"
    kinds = [kind for _, section in sections for kind in _kinds(section)]
    close = suggestion(word, [*keys, *kinds])
    known = suggestion(word, keys) if close.startswith("known") else close
    return f"KEY: no key {word!r}{f' in {here}' if here else ''}; {known}"


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


def _every_section(schema: dict[str, Any]) -> list[_Place]:
    """Return the file and all sections of it, each where it is nearest to the root."""
    found: dict[int, _Place] = {id(schema): ("", schema)}
    level: list[_Place] = [("", schema)]
    while level:
        below = [
            (_join(at, word), inner)
            for at, section in level
            for word, node in section["properties"].items()
            for inner in _below(node, schema["$defs"])
        ]
        level = list({id(inner): (at, inner) for at, inner in reversed(below) if id(inner) not in found}.values())[::-1]
        found |= {id(inner): (at, inner) for at, inner in level}
    return list(found.values())


def _join(path: str, word: str) -> str:
    return f"{path}.{word}" if path else word


def _of_kind(path: str, kind: str, section: dict[str, Any], definitions: dict[str, Any]) -> KeyHelp:
    """Return help for the section at `path` when it has that kind."""
    meaning = " ".join(section["description"].split())
    return KeyHelp(path, "section", "see below", meaning, (kind,), tuple(_keys(path, section, definitions)))


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
        found = _key(_join(path, word), word, section, definitions)
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
