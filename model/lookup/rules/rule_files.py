"""Rule tables from files: routing tables as text, and CSV in the manner of OpenFlow.

Format: docs/definitions/rule-caches.md. Every error is one line with file, line and field.
"""

import csv
import ipaddress
import re
from pathlib import Path
from typing import NamedTuple

from hopforge.model.errors import UserError
from hopforge.model.input_file import read_input_text
from hopforge.model.lookup.rules.cubes import prefix_mask
from hopforge.model.lookup.rules.next_hops import NextHops
from hopforge.model.lookup.rules.rule_table import MOST_WIDTH, Rule

__all__ = ["MOST_RULES", "RuleFile", "RuleFileError", "read_rules"]

MOST_RULES = 1 << 20
"""Rules of a file."""

_PRIORITY_LIMIT = 1 << 32
_SETTING = re.compile(r"(width|hops)\s*:\s*(.*)")
_YAML_KEY = re.compile(r"[A-Za-z_][\w-]*:")
_TABLE_WANTED = "a table is wanted: a line has a prefix and a next hop (10.0.0.0/8 west); or rules as .csv"
_DOTTED = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})")
_IPV6_WIDTH = 128
_FIELD = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*):([0-9]+)")


class RuleFileError(UserError, ValueError):
    """A file that is no rule table."""


class RuleFile(NamedTuple):
    """What a file says.

    Attributes
    ----------
    rules : list of Rule
        In the order of the file.
    width : int
        Bits of an address.
    hops : tuple of str
        Names of the next hops; `Rule.out` is a place among them.
    """

    rules: list[Rule]
    width: int
    hops: tuple[str, ...]


class _Line(NamedTuple):
    """Words of a line, and where it stands."""

    where: str
    text: str

    def error(self, field: str, reason: str) -> RuleFileError:
        return RuleFileError(f"{self.where}: {field}: {reason}")

    def number(self, field: str, word: str, low: int, high: int) -> int:
        """Read a decimal or hexadecimal whole number."""
        sign, digits = (-1, word[1:]) if word.startswith("-") else (1, word)
        if not re.fullmatch(r"0[xX][0-9a-fA-F]{1,32}|[0-9]{1,39}", digits):
            raise self.error(field, f"must be a whole number, not {word!r}")
        value = sign * int(digits, 16 if digits[:2].lower() == "0x" else 10)
        if not low <= value <= high:
            raise self.error(field, f"must be {low} to {high}, not {value}")
        return value

    def address(self, field: str, word: str, width: int) -> int:
        """Read a number of `width` bits, with 32 bits four numbers with dots between, with 128 bits one of IPv6."""
        if ":" in word:
            return self._ipv6(field, word, width)
        dotted = _DOTTED.fullmatch(word)
        if dotted is None:
            return self.number(field, word, 0, (1 << width) - 1)
        if width != 32:
            raise self.error(field, f"{word} has 32 bits, not {width}")
        parts = [int(part) for part in dotted.groups()]
        if max(parts) > 255:
            raise self.error(field, f"{word} has a part above 255")
        return int.from_bytes(bytes(parts), "big")

    def _ipv6(self, field: str, word: str, width: int) -> int:
        try:
            found = ipaddress.IPv6Address(word)
        except ValueError:
            raise self.error(field, f"{word!r} is no address of IPv6") from None
        if found.scope_id is not None:
            raise self.error(field, f"{word} has a zone; an address alone is wanted")
        if width != _IPV6_WIDTH:
            raise self.error(field, f"{word} has {_IPV6_WIDTH} bits, not {width}")
        return int(found)

    def cube(self, field: str, word: str, width: int) -> tuple[int, int]:
        """Read ``VALUE``, ``VALUE/LENGTH``, ``VALUE/MASK`` (0x… or an address), or ``*``; no bit outside the mask."""
        if word in ("", "*"):
            return 0, 0
        head, slash, tail = word.partition("/")
        value, mask = self.address(field, head, width), (1 << width) - 1
        if slash and (tail[:2].lower() == "0x" or "." in tail or ":" in tail):
            mask = self.address(field, tail, width)
        elif slash:
            mask = prefix_mask(self.number(f"length of {field}", tail, 0, width), width)
        if value & ~mask:
            raise self.error(field, f"{word} has host bits set: {value & ~mask:#x} lies outside the mask")
        return value, mask


def read_rules(path: Path, hops: int | None = None) -> RuleFile:
    """Read a rule table: CSV if the name ends in ``.csv``, else a routing table.

    Parameters
    ----------
    path : Path
        The file.
    hops : int, optional
        Next hops are 0 to `hops` - 1; without, what a line ``hops:`` of the file says, else any word is one.

    Raises
    ------
    RuleFileError
        It cannot be read, a line is malformed, or a next hop does not exist: file, line, field.
    """
    try:
        text = read_input_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise RuleFileError(f"{path}: cannot read the rule table: {reason}") from error
    lines = [_Line(f"{path}:{number}", line.strip()) for number, line in enumerate(text.splitlines(), start=1)]
    kept = [line for line in lines if line.text and not line.text.startswith("#")]
    width, known, kept = _settings(kept, hops)
    names = NextHops(known)
    found = (_csv_rules if path.suffix.lower() == ".csv" else _routes)(kept, width, names)
    if not found.rules:
        raise RuleFileError(f"{path}: no rule in it")
    return RuleFile(found.rules, found.width, names.names())


class _Rules(NamedTuple):
    rules: list[Rule]
    width: int


def _settings(lines: list[_Line], hops: int | None) -> tuple[int | None, list[str] | None, list[_Line]]:
    """Read the lines ``width:`` and ``hops:`` before the first rule; return both, None if not there, and the rest."""
    width, known = None, None if hops is None else [str(number) for number in range(hops)]
    for place, line in enumerate(lines):
        match = _SETTING.fullmatch(line.text)
        if match is None:
            return width, known, lines[place:]
        name, words = match[1], match[2].replace(",", " ").split()
        if name == "width":
            width = line.number("width", " ".join(words), 1, MOST_WIDTH)
        elif not words:
            raise line.error("hops", "names no next hop")
        elif hops is None:
            many = len(words) == 1 and words[0].isdigit()
            known = [str(n) for n in range(line.number("hops", words[0], 1, 1 << 20))] if many else words
    return width, known, []


def _next_hop(line: _Line, field: str, word: str, hops: NextHops) -> int:
    if not word:
        raise line.error(field, "names no next hop")
    number = hops.number(word)
    if number is None:
        raise line.error(field, f"{word!r} does not exist; known: {hops.words()}")
    return number


def _routes(lines: list[_Line], width: int | None, hops: NextHops) -> _Rules:
    if width is None:
        first = lines[0].text.split("/")[0] if lines else ""
        width = _IPV6_WIDTH if ":" in first and "/" in lines[0].text else 32
    seen: dict[tuple[int, int], str] = {}
    rules: list[Rule] = []
    for line in lines:
        words = line.text.split("#")[0].replace(",", " ").split()
        if words and _YAML_KEY.fullmatch(words[0]):
            raise line.error("line", f"{words[0]} looks like a configuration; {_TABLE_WANTED}")
        if len(words) != 2:
            raise line.error("line", f"must have a prefix and a next hop, not {len(words)} words")
        if "/" not in words[0]:
            raise line.error("prefix", f"must be ADDRESS/LENGTH, not {words[0]!r}")
        head, _, tail = words[0].partition("/")
        length = line.number("length of prefix", tail, 0, width)
        cube = line.cube("prefix", f"{head}/{length}", width)
        if cube in seen:
            raise line.error("prefix", f"{words[0]} stands in {seen[cube]}, too")
        seen[cube] = line.where
        _check_count(line, rules)
        rules.append(Rule(len(rules), *cube, length, _next_hop(line, "next hop", words[1], hops)))
    return _Rules(rules, width)


def _check_count(line: _Line, rules: list[Rule]) -> None:
    if len(rules) == MOST_RULES:
        raise line.error("line", f"a table holds at most {MOST_RULES} rules")


def _csv_rules(lines: list[_Line], width: int | None, hops: NextHops) -> _Rules:
    if not lines:
        return _Rules([], 1)
    header = lines[0]
    columns = _cells(header)
    fields = _check_columns(header, columns)
    if fields:
        total = sum(bits for _, bits in fields)
        if not 1 <= total <= MOST_WIDTH:
            raise header.error("header", f"the fields have {total} bits together, must be 1 to {MOST_WIDTH}")
        if width not in (None, total):
            raise header.error("header", f"the fields have {total} bits together, not width {width}")
        width = total
    width = 32 if width is None else width
    rules: list[Rule] = []
    seen: dict[int, str] = {}
    for line in lines[1:]:
        row = dict(zip(columns, _row(line, columns), strict=True))
        number = line.number("id", row["id"], 0, 1 << 31) if "id" in row else len(rules)
        if number in seen:
            raise line.error("id", f"{number} stands in {seen[number]}, too")
        seen[number] = line.where
        _check_count(line, rules)
        priority = line.number("priority", row["priority"], -_PRIORITY_LIMIT, _PRIORITY_LIMIT)
        cube = _of_fields(line, row, fields) if fields else _of_value(line, row, width)
        rules.append(Rule(number, *cube, priority, _next_hop(line, "out", row["out"], hops)))
    return _Rules(rules, width)


def _cells(line: _Line) -> list[str]:
    try:
        rows = list(csv.reader([line.text], strict=True))
    except csv.Error as error:
        raise line.error("line", f"no CSV: {error}") from error
    return [cell.strip() for cell in rows[0]]


def _row(line: _Line, columns: list[str]) -> list[str]:
    cells = _cells(line)
    if len(cells) != len(columns):
        raise line.error("line", f"must have {len(columns)} cells as the header, not {len(cells)}")
    return cells


def _check_columns(header: _Line, columns: list[str]) -> list[tuple[str, int]]:
    """Return the fields of the header and their bits; empty: it has `value` and `mask`."""
    for name in ("priority", "out"):
        if name not in columns:
            raise header.error("header", f"lacks the column {name}")
    if len(set(columns)) < len(columns):
        raise header.error("header", "names a column twice")
    others = [name for name in columns if name not in ("id", "priority", "out")]
    if others and set(others) == {"value", "mask"}:
        return []
    return [_field(header, name) for name in others] or _no_fields(header)


def _field(header: _Line, name: str) -> tuple[str, int]:
    match = _FIELD.fullmatch(name)
    if match is None:
        raise header.error("header", f"column {name!r} is not id, priority, out, value and mask, or FIELD:BITS")
    return name, header.number(name, match[2], 1, MOST_WIDTH)


def _no_fields(header: _Line) -> list[tuple[str, int]]:
    raise header.error("header", "lacks what is matched: the columns value and mask, or columns FIELD:BITS")


def _of_fields(line: _Line, row: dict[str, str], fields: list[tuple[str, int]]) -> tuple[int, int]:
    """Join the fields of a row, the first one in the highest bits."""
    value = mask = 0
    for name, bits in fields:
        part_value, part_mask = line.cube(name, row[name], bits)
        value, mask = value << bits | part_value, mask << bits | part_mask
    return value, mask


def _of_value(line: _Line, row: dict[str, str], width: int) -> tuple[int, int]:
    value, mask = line.address("value", row["value"], width), line.address("mask", row["mask"], width)
    if value & ~mask:
        raise line.error("value", f"{row['value']} has host bits set: {value & ~mask:#x} lies outside the mask")
    return value, mask
