"""The configuration's own documentation: JSON schema for editors, a page of every key, help on one key."""

import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from hopforge.model.config.base import suggestion
from hopforge.model.config.root import Config
from hopforge.model.errors import UserError

_INTRO = """# Configuration

Every key of a configuration file. This page is written from the code by `make docs` (`hopforge schema --markdown`); a
test fails if it is out of date.

- A file is YAML 1.2: only `true` and `false` are booleans. An unknown or repeated key is an error. Anchors and tags are
  refused.
- Paths are relative to the file itself.
- `hopforge check FILE` names the commands that a file is good for, and says why not for the others; errors, one line
  for each, name file, line and key.
- Each command names the sections of the file that it does not use, and keys of hardware alone that it cannot follow
  (`router.protection`, `router.host_ports`, `lookup.cache.protection`).
- `hopforge schema` prints the JSON schema for editors that complete and check YAML.
- `configs/` holds commented examples.
"""
_WIDTH = 120  # characters of a line and of a cell; what is longer stands below its table


def json_schema() -> str:
    """Return the JSON schema of a configuration file as text."""
    schema = Config.model_json_schema()
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def markdown() -> str:
    """Return the page of every key as Markdown."""
    schema = Config.model_json_schema()
    return _INTRO + "".join(_section("", schema, schema["$defs"]))


def _section(
    path: str, section: dict[str, Any], definitions: dict[str, Any], around: Sequence[dict[str, Any]] = ()
) -> Iterator[str]:
    """Return heading and table of one section, then those of the sections in it, in the order of the file.

    `around`: kinds of the sections around it; one of these within it is described there.
    """
    kind = section["properties"].get("kind", {})
    kinds = [kind["const"]] if "const" in kind else kind.get("enum", []) if "default" not in kind else []
    title = f"`{path}`" if path else "Top level"
    if kinds:
        title += f" with `kind: {'`, `'.join(kinds)}`"
    yield f"\n## {title}\n\n{section['description']}\n\n"
    yield "| key | value | default | meaning |\n|---|---|---|---|\n"
    required, notes = section.get("required", []), []
    for key, node in section["properties"].items():
        default = "required" if key in required else default_words(node.get("default"))
        meaning = " ".join(node.get("description", "").split())  # a row of a table is one line
        values = kind_words(node, definitions)
        if len(values) > _WIDTH:
            notes.append(_note(f"- `{key}` is one of {values}."))
            values = _beginning(values)
        if len(meaning) > _WIDTH:
            notes.append(_note(f"- `{key}`: {meaning}"))
            meaning = _beginning(meaning)
        yield f"| `{key}` | {values} | {default} | {meaning} |\n"
    if notes:
        yield "\n" + "\n".join(notes) + "\n"
    for key, node in section["properties"].items():
        listed = "[]" if "items" in node else ""
        kinds_here = inner_sections(node.get("items", node), definitions)
        for inner in kinds_here:
            if not any(inner is each for each in around):
                where = f"{path}.{key}{listed}" if path else f"{key}{listed}"
                yield from _section(where, inner, definitions, [*around, *kinds_here])


def _note(text: str) -> str:
    """Return a point of the list below a table."""
    return textwrap.fill(text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _beginning(meaning: str) -> str:
    """Return the clauses of a long meaning that fit into a cell, and that the rest stands below the table."""
    rest = "(more below the table)"
    head = meaning[: _WIDTH - len(rest)]
    ends = [found.end() for found in re.finditer(r"[.,;](?= )", head)]
    # not within code or brackets
    whole = [end for end in ends if head[:end].count("`") % 2 == 0 and head[:end].count("(") == head[:end].count(")")]
    return f"{head[: whole[-1]]} {rest}" if whole else rest


def inner_sections(node: dict[str, Any], definitions: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas of the sections that a key can have; several by `kind`."""
    if "$ref" in node:
        return [definitions[node["$ref"].rsplit("/", 1)[-1]]]
    choices = node.get("anyOf", node.get("oneOf", []))
    return [found for choice in choices for found in inner_sections(choice, definitions)]


def kind_words(node: dict[str, Any], definitions: dict[str, Any]) -> str:
    """Return type and bounds of a value in words."""
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    if "$ref" in node:
        return "section"
    choices = node.get("anyOf", node.get("oneOf"))
    if choices is not None:
        kinds = dict.fromkeys(kind_words(choice, definitions) for choice in choices if choice.get("type") != "null")
        return "section by `kind`" if "oneOf" in node and list(kinds) == ["section"] else " or ".join(kinds)
    if "prefixItems" in node:
        return f"pair of {kind_words(node['prefixItems'][0], definitions).replace('number', 'numbers')}"
    if node["type"] == "array":
        if "$ref" in node["items"]:
            return "list of sections"
        if "prefixItems" in node["items"]:
            return f"list of {kind_words(node['items'], definitions).replace('pair', 'pairs', 1)}"
        return f"list of {kind_words(node['items'], definitions).replace('number', 'numbers')}"
    if node["type"] == "object":
        return "sections by name"
    words = {"integer": "whole number", "number": "number", "boolean": "`true`, `false`", "string": "text"}[
        node["type"]
    ]
    if "pattern" in node:
        words = f"text like `{node['pattern']}`"
    bounds = [
        f"{sign} {node[bound]}"
        for bound, sign in {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}.items()
        if bound in node
    ]
    return " ".join([words, ", ".join(bounds)]).strip()


def default_words(value: Any) -> str:
    """Return a default in words."""
    if value is None or value == {}:
        return "none"
    return "see below" if isinstance(value, dict) else f"`{json.dumps(value)}`"


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
