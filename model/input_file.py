"""The one way to read a file that a user names: a regular file no larger than a limit. Remembers which files these are.

What is remembered is not overwritten by results (`hopforge.model.output.destination`).
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

__all__ = [
    "LIMIT_VARIABLE",
    "input_at",
    "inputs_below",
    "largest_bytes",
    "open_input",
    "read_input",
    "read_input_text",
    "remember_input",
    "too_large",
]

LARGEST_MIB = 256
"""Of a file, or of what an archive holds; a configuration and a Python file have limits of their own."""

LIMIT_VARIABLE = "HOPFORGE_INPUT_MIB"
"""Environment variable that sets another limit."""

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
_known: dict[tuple[int, int], Path] = {}  # device and number of a file -> its absolute name


def largest_bytes(largest_mib: int = LARGEST_MIB) -> int:
    """Return the most bytes that are read: `largest_mib`, or what the environment says."""
    text = os.environ.get(LIMIT_VARIABLE, "")
    if not text:
        return largest_mib << 20
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text)):
        raise OSError(errno.EINVAL, f"{LIMIT_VARIABLE} must be a whole number of MiB from 1, not {text!r}")
    return int(text) << 20


def too_large(most: int) -> str:
    """Return the words about a file or an archive of more than `most` bytes."""
    return f"more than {most >> 20} MiB ({LIMIT_VARIABLE} sets another limit)"


def open_input(path: Path, largest_mib: int = LARGEST_MIB) -> BinaryIO:
    """Open a regular file of at most `largest_mib` MiB; never waits for the other end of a pipe.

    Raises
    ------
    OSError
        It is none, too large, or cannot be read; ``strerror`` says it without the name of the file.
    """
    most = largest_bytes(largest_mib)
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    except ValueError as error:
        raise OSError(errno.EINVAL, "a file name cannot hold this character (NUL)", str(path)) from error
    try:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode):
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
            raise OSError(errno.EINVAL, f"is {kind}; only regular files are read", str(path))
        if status.st_size > most:
            raise OSError(errno.EFBIG, f"holds {too_large(most)}", str(path))
    except OSError:
        os.close(number)
        raise
    _known[status.st_dev, status.st_ino] = Path(path).absolute()  # whatever the working folder becomes
    return os.fdopen(number, "rb")


def read_input(path: Path, largest_mib: int = LARGEST_MIB) -> bytes:
    """Return the bytes of a file; errors as `open_input`."""
    most = largest_bytes(largest_mib)
    with open_input(path, largest_mib) as file:
        content = file.read(most + 1)
    if len(content) > most:  # files of the system say 0
        raise OSError(errno.EFBIG, f"holds {too_large(most)}", str(path))
    return content


def read_input_text(path: Path, largest_mib: int = LARGEST_MIB) -> str:
    """Return the text of a file, which is UTF-8, without the mark that may stand before it.

    Raises
    ------
    UnicodeDecodeError
        It is no such text, or has a NUL character.
    OSError
        As `open_input`.
    """
    content = read_input(path, largest_mib)
    place = content.find(0)
    if place >= 0:
        raise UnicodeDecodeError("utf-8", content[: place + 1], place, place + 1, "NUL")
    return content.decode("utf-8-sig")


def remember_input(path: Path) -> None:
    """Remember a file that something else reads, if it is there."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return
    _known[status.st_dev, status.st_ino] = Path(path).absolute()  # whatever the working folder becomes


def input_at(path: Path) -> Path | None:
    """Return the absolute name of the input that `path` leads to, through whatever links; None if it is no input."""
    try:
        status = Path(path).stat()
        name = _known.get((status.st_dev, status.st_ino))
        # the number of a file that is gone may be given to another one
        return name if name is not None and os.path.samestat(status, name.stat()) else None
    except (OSError, ValueError):
        return None


def inputs_below(folder: Path) -> list[Path]:
    """Return the inputs that lie in `folder` or its folders."""
    here = folder.resolve()
    return [name for name in _known.values() if name.exists() and name.resolve().is_relative_to(here)]
