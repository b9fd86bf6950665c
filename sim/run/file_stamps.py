"""Whether files that decide a result were changed while it was computed: its digest is that of before."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from hopforge.model.output.program_digest import program_files

__all__ = ["changed_files", "file_stamps"]

#: inode, size, time of the last change in ns; None: no such file
Stamp = tuple[int, int, int] | None


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def file_stamps(paths: Iterable[Path]) -> dict[Path, Stamp]:
    """Return the stamps of files, of those that lie in folders among `paths`, and of all files of hopforge."""
    found = {path: _stamp(path) for path in program_files()}
    for path in paths:
        inside = [item for item in path.iterdir() if item.is_file()] if path.is_dir() else [path]
        found |= {item: _stamp(item) for item in inside}
    return found


def changed_files(before: Mapping[Path, Stamp]) -> list[Path]:
    """List the files that are not as `file_stamps` found them."""
    return [path for path, stamp in before.items() if _stamp(path) != stamp]
