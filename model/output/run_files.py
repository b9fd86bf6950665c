"""Which files a run has written: metadata.json lists them, the next run of the same command removes those left."""

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from hopforge.model.input_file import input_at, largest_bytes

__all__ = [
    "METADATA",
    "json_text",
    "kind_of_run",
    "list_files",
    "listed_files",
    "printable",
    "remove_files",
    "stale_files",
]

METADATA = "metadata.json"
_FILES = "files"
#: commands whose second word tells more
_OF_TWO_WORDS = ("bench", "gen")
_SURROGATES = re.compile("[\ud800-\udfff]")


def printable(text: str) -> str:
    """Return `text` such that it can be printed and written, whatever bytes a file name has."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def json_text(content: Any, default: Callable[[Any], Any] | None = None, indent: int | None = 2) -> str:
    """Return JSON, not escaped, that UTF-8 can hold: what is no character stands there as its number (`printable`)."""
    text = json.dumps(content, indent=indent, ensure_ascii=False, default=default)
    return _SURROGATES.sub(lambda found: f"\\\\u{ord(found[0]):04x}", text)


def kind_of_run(metadata: Mapping[str, Any]) -> str | None:
    """Return the command that made results, such as ``sweep`` or ``bench net``; None if metadata do not tell.

    Examples
    --------
    >>> kind_of_run({"command": ["hopforge", "bench", "net", "--quick"]})
    'bench net'
    """
    kind, words = metadata.get("kind"), metadata.get("command")
    if isinstance(kind, str) and kind:
        return kind
    words = words.split() if isinstance(words, str) else words
    if not isinstance(words, list) or len(words) < 2 or words[0] != "hopforge":
        return None
    names = words[1:3] if words[1] in _OF_TWO_WORDS else words[1:2]
    return " ".join(str(name) for name in names)


def listed_files(metadata: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the files that the run has written, by their names below its folder; None without a list."""
    names = metadata.get(_FILES)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return frozenset(names)


def list_files(scratch: Path) -> None:
    """Write into metadata.json, where there is one, which files stand beside it."""
    metadata = _read(scratch / METADATA)
    if not metadata:
        return
    names = sorted(item.relative_to(scratch).as_posix() for item in scratch.rglob("*") if item.is_file())
    long = {key: metadata.pop(key) for key in ("config", "columns") if key in metadata}  # stay the last
    metadata |= {_FILES: [printable(name) for name in names]} | long
    (scratch / METADATA).write_text(json_text(metadata) + "\n", encoding="utf-8")


def stale_files(scratch: Path, target: Path) -> list[Path]:
    """Return what an earlier run of the same command has left in `target` and the one in `scratch` has not written.

    Only what the earlier metadata list: whatever else lies there is not ours.
    """
    new, old = _read(scratch / METADATA), _read(target / METADATA)
    kind, names = kind_of_run(old), listed_files(old)
    if names is None or kind is None or kind != kind_of_run(new):
        return []
    left = names - (listed_files(new) or frozenset())
    return [target / name for name in sorted(left) if _is_below(target, name)]


def remove_files(paths: list[Path]) -> None:
    """Remove files, and folders that are empty then."""
    for path in paths:
        path.unlink(missing_ok=True)
    for folder in sorted({path.parent for path in paths}, reverse=True):
        with contextlib.suppress(OSError):  # not empty
            folder.rmdir()


def _read(path: Path) -> dict[str, Any]:
    """Return metadata; nothing for what is no such file."""
    try:
        if not path.is_file() or path.stat().st_size > largest_bytes():
            return {}
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_below(target: Path, name: str) -> bool:
    """Tell whether a listed name is a plain file in `target` that no run reads."""
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or name == METADATA:
        return False
    path = target / name
    inside = path.parent.resolve().is_relative_to(target.resolve())
    return inside and path.is_file() and not path.is_symlink() and input_at(path) is None
