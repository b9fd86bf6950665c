"""What Python-Markdown does not read: lists and tables without an empty line before them, nested lists, doctests."""

import re
from collections.abc import Iterator

_ITEM = re.compile(r" *(?:[-*]|\d+\.) ")
_DOCTEST = re.compile(r"(?<=\n\n)(>>> .*\n(?:.+\n)*)")
_FENCE = re.compile(r" *(```|~~~)")


def for_python_markdown(text: str) -> str:
    """Return the same page for Python-Markdown."""
    text = _DOCTEST.sub(r"```pycon\n\1```\n", text)
    return "\n".join(_lines(text.splitlines())) + "\n"


def _lines(lines: list[str]) -> Iterator[str]:
    before, code, in_list = "", False, False
    for line in lines:
        fence = bool(_FENCE.match(line))
        if not code and not fence:
            item, table = bool(_ITEM.match(line)), line.startswith("|")
            begins = (item and not in_list) or (table and not before.startswith("|"))
            if begins and before.strip():
                yield ""
            if item:
                in_list = True
            elif line and not line.startswith(" ") and not before.strip():
                in_list = False
        yield _indented(line) if in_list else line
        code, before = code ^ fence, line


def _indented(line: str) -> str:
    """Two or three spaces are a level to GitHub, four to Python-Markdown."""
    spaces = len(line) - len(line.lstrip(" "))
    level = 0 if spaces < 2 else 1 if spaces < 4 else 2 if spaces < 7 else 3
    return " " * (4 * level) + line[spaces:] if line.strip() and level else line
