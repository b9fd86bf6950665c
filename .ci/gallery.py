"""Draw the pictures of docs/start/gallery.md again: each by the command above it, with fewer colours and bytes."""

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
from small_picture import write_small

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "start" / "gallery.md"
_ENTRY = re.compile(r"^```\n(hopforge [^\n]+)\n# -> (\S+)\n```\n\n!\[[^\]]+\]\(([^)]+)\)$", re.MULTILINE)


class Entry(NamedTuple):
    """A picture of the page: its command, the file that this writes, and where it is kept."""

    command: str
    made: str
    kept: Path


def entries() -> list[Entry]:
    """Return the pictures of the page."""
    found = _ENTRY.findall(PAGE.read_text(encoding="utf-8"))
    return [Entry(command, made, (PAGE.parent / kept).resolve()) for command, made, kept in found]


def draw(entry: Entry, folder: Path) -> None:
    """Run the command in a folder and keep its picture."""
    words = [sys.executable, "-m", *shlex.split(entry.command)]
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    entry.kept.parent.mkdir(exist_ok=True)
    write_small(folder / entry.made, entry.kept)


def main() -> None:
    """Draw all, or those whose file names are given."""
    for entry in entries():
        if sys.argv[1:] and entry.kept.name not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as name:
            (Path(name) / "configs").symlink_to(ROOT / "configs")
            draw(entry, Path(name))
        sys.stdout.write(f"{entry.kept.stat().st_size:8d} {entry.kept.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
