"""Where results may go: over no input, over no file of another kind; pipes and devices are written to."""

import contextlib
import errno
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

from hopforge.model.errors import UserError
from hopforge.model.input_file import input_at, inputs_below

__all__ = [
    "ResultError",
    "check_destination",
    "clear_folder",
    "is_special",
    "kind_at",
    "kind_of",
    "made",
    "may_replace",
    "one_file",
    "put",
    "replace_anything",
]

_HEAD_BYTES = 4096
_PIPE_WAIT_S = 10.0

_STARTS = {
    b"\x89PNG": "a PNG picture",
    b"GIF8": "a GIF picture",
    b"PAR1": "a Parquet table",
    b"PK\x03\x04": "a ZIP archive",
    b"\x1f\x8b": "a gzip archive",
    b"\xfd7zXZ": "an xz archive",
    b"\x7fELF": "a program",
    b"#!": "a script",
}
_WORDS = {
    "a page of hopforge": re.compile(r"\s*<!doctype html\b.*content=\"hopforge\"", re.IGNORECASE | re.DOTALL),
    "an HTML page": re.compile(r"\s*(<!doctype html|<html)\b", re.IGNORECASE),
    "XML": re.compile(r"\s*<\??[a-zA-Z!]"),
    "JSON": re.compile(r"\s*[\[{]"),
    "Python": re.compile(r"\s*(\"\"\"|(import|from|def|class) [A-Za-z_])"),
    "YAML": re.compile(r"\s*(---\s|[A-Za-z_][\w-]*:(\s|$))"),
    "a network": re.compile(r"\s*((router|node) \d|\d+(,\d+)?[ \t]+\d+(,\d+)?\s)"),
}
#: first words of a file of ours that people may have files of their own like
_TRANSLATED = "# From a configuration of "
_COMMENTS = re.compile(r"(\s*#[^\n]*\n)+")
_TEXT = "text"
_forced: ContextVar[bool] = ContextVar("forced", default=False)  # every thread has its own


class ResultError(UserError):
    """Results that could not be written: names the place and the reason."""


def replace_anything(wanted: bool) -> None:
    """Say whether results may replace whatever is there (``--force``)."""
    _forced.set(wanted)


def may_replace(target: Path) -> bool:
    """Tell whether something new may be put at `target`: nothing is there, or ``--force`` was given."""
    return _forced.get() or not target.exists()


def kind_of(head: bytes) -> str:
    """Return what a file that begins with `head` holds."""
    for start, kind in _STARTS.items():
        if head.startswith(start):
            return kind
    if b"\0" in head:
        return "binary data"
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:  # not just the last character cut in two
            return "binary data"
        text = head[: error.start].decode("utf-8-sig")
    if text.startswith(_TRANSLATED):
        return "a translated configuration"
    text = _COMMENTS.sub("", text, count=1)
    return next((kind for kind, start in _WORDS.items() if start.match(text)), _TEXT)


def kind_at(path: Path) -> str:
    """Return what a file holds (`kind_of`)."""
    with path.open("rb") as file:
        return kind_of(file.read(_HEAD_BYTES))


def is_special(path: Path) -> bool:
    """Tell whether `path` is a pipe, a device or a stream of this process, which is written to and not replaced."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)) or _stream(status) is not None


def _stream(status: os.stat_result) -> int | None:
    """Return the open stream (1: stdout, 2: stderr) that leads to a file."""
    for number in (1, 2):
        with contextlib.suppress(OSError):
            if os.path.samestat(status, os.fstat(number)):
                return number
    return None


def check_destination(target: Path, kind: str | None, *, named: bool = False) -> None:
    """Find out whether a file of a kind (`kind_of`) may be put at `target`.

    Parameters
    ----------
    target : Path
        The place; links are followed.
    kind : str or None
        What is to be written; None: a file of our own, whatever has become of it.
    named : bool
        The user named this very file: a text replaces only a text of its kind.

    Raises
    ------
    ResultError
        It would replace an input or a file of another kind.
    """
    try:
        status = target.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except ValueError as error:
        raise ResultError(f"{target}: {error}; no file has such a name") from error
    if stat.S_ISDIR(status.st_mode):
        raise ResultError(f"{target}: is a folder; name a file")
    if stat.S_ISBLK(status.st_mode) or stat.S_ISSOCK(status.st_mode):
        raise ResultError(f"{target}: is a {'disk' if stat.S_ISBLK(status.st_mode) else 'socket'}; not written")
    if _forced.get() or is_special(target):
        return
    read = input_at(target)
    if read is not None:
        also = "" if read == target.absolute() else f" (as {read})"
        raise ResultError(f"{target}: is an input{also} and is not overwritten; name another place, or add --force")
    try:
        there = kind_at(target) if status.st_size and kind is not None else kind
    except OSError as error:
        raise ResultError(f"{target}: is there and cannot be read: {error.strerror}") from error
    alike = not named and {there, kind} <= {*_WORDS, _TEXT}
    if there != kind and not alike:
        raise ResultError(
            f"{target}: holds {there}, not {kind}, and is not overwritten; name another place, or add --force"
        )


def put(source: Path, target: Path) -> None:
    """Move a complete file to its place, checked by `check_destination`; a link stays, its file is replaced.

    Raises
    ------
    OSError
        The place cannot be written.
    """
    if is_special(target):
        _write_into(target, source)
        return
    place = target.resolve() if target.is_symlink() else target
    try:
        source.replace(place)
    except OSError:
        if source.stat().st_dev == place.parent.stat().st_dev:
            raise
        part = _part_of(place)  # on another disk
        try:
            shutil.copyfile(source, part)
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)


def _part_of(target: Path) -> Path:
    name = target.name.encode("utf-8", "surrogateescape")[:200].decode("utf-8", "ignore")
    return target.with_name(f".{name}.{os.getpid()}.part")


def _write_into(target: Path, source: Path) -> None:
    stream = _stream(target.stat())
    if stream is not None:
        sys.stdout.flush()
        number = os.dup(stream)
    else:
        number = _open_for_writing(target)
    with os.fdopen(number, "wb") as file, source.open("rb") as content:
        shutil.copyfileobj(content, file)


def _open_for_writing(target: Path) -> int:
    """Open a pipe or a device; a pipe must have a reader soon."""
    end = time.monotonic() + _PIPE_WAIT_S
    while True:
        try:
            number = os.open(target, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if not stat.S_ISFIFO(target.stat().st_mode) or time.monotonic() > end:
                raise OSError(error.errno, f"{error.strerror} (is there a reader?)", str(target)) from error
            time.sleep(0.05)
        else:
            os.set_blocking(number, True)
            return number


@contextlib.contextmanager
def one_file(target: Path, kind: str | None = None) -> Iterator[Path]:
    """Yield a place for a file that appears at `target` when the block ends well; its folder is made if need be.

    Parameters
    ----------
    target : Path
        As the user named it; a pipe or a device is written to.
    kind : str, optional
        As of `check_destination`, which refuses before the block begins.

    Raises
    ------
    ResultError
        As `check_destination`.
    OSError
        It cannot be written.
    """
    check_destination(target, kind, named=True)
    try:
        if is_special(target):
            with tempfile.TemporaryDirectory(prefix="hopforge-") as folder:
                yield Path(folder) / "file"
                put(Path(folder) / "file", target)
            return
        part = _part_of(target)
        with made(target.parent):
            try:
                yield part
                check_destination(target, kind, named=True)  # by now more inputs may be known
                put(part, target)
            finally:
                with contextlib.suppress(OSError):
                    part.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(target)) from error  # not that of the part


@contextlib.contextmanager
def made(folder: Path) -> Iterator[None]:
    """Make a folder and those above it; those that were not there go again if the block fails."""
    new: list[Path] = []
    try:
        for part in [*reversed(folder.parents), folder]:
            if not part.exists():
                try:
                    part.mkdir()
                except ValueError as error:
                    raise OSError(errno.EINVAL, f"{error}; no folder has such a name") from error
                new.append(part)
        yield
        new.clear()
    finally:
        for part in reversed(new):
            with contextlib.suppress(OSError):
                part.rmdir()


def clear_folder(folder: Path) -> None:
    """Delete a working folder of an earlier run and all below it.

    Raises
    ------
    ResultError
        An input lies in it.
    """
    for path in inputs_below(folder):
        raise ResultError(f"{folder}: is a working folder that is deleted, and the input {path} lies in it")
    shutil.rmtree(folder, ignore_errors=True)
