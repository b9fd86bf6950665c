"""Files of a trace: a folder, a text, or a tar archive, which is unpacked while it is read."""

import bz2
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO

from hopforge.model.config.base import SHIPPED
from hopforge.model.input_file import largest_bytes, read_input, too_large
from hopforge.model.workload.trace import TraceError

# tarfile lets through what the decompressors of .xz and .gz raise in the middle of an archive
_DAMAGED = (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error)
_PACKED: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": gzip.open, b"\xfd7zXZ\0": lzma.open, b"BZh": bz2.open,
}
_BLOCK_BYTES = 1 << 18


def shipped_traces() -> tuple[str, ...]:
    """Return the names of the traces that come with hopforge."""
    folder = resources.files("hopforge.model") / "data" / "traces"
    names = (item.name for item in folder.iterdir())
    return tuple(sorted(name.removesuffix(".tar.xz") for name in names if name.endswith(".tar.xz")))


def open_trace(source: str) -> tuple[str, Iterable[tuple[str, str]]]:
    """Return name and (file label, text) pairs of a trace.

    Raises
    ------
    TraceError, OSError
        Unknown name, unreadable or damaged file, more bytes than the limit.
    """
    if source.startswith(SHIPPED):
        name = source.removeprefix(SHIPPED)
        if name not in shipped_traces():
            known = ", ".join(SHIPPED + item for item in shipped_traces())
            raise TraceError(f"{source}: hopforge comes with {known}")
        data = (resources.files("hopforge.model") / "data" / "traces" / f"{name}.tar.xz").read_bytes()
        return name, _members(source, lzma.open(io.BytesIO(data)))
    path = Path(source)
    if path.is_dir():
        return path.name, _files(path)
    content = read_input(path)
    packed = _archive(content)
    if packed is not None:
        return path.name.partition(".tar")[0], _members(source, packed)
    return path.stem, [(source, _text(source, content, "is neither a text nor a tar archive"))]


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    left = largest_bytes()
    for item in sorted(item for item in folder.iterdir() if item.suffix == ".txt" and item.is_file()):
        content = read_input(item)
        left -= len(content)
        if left < 0:
            raise TraceError(f"{folder}: its files are {too_large(largest_bytes())}")
        yield str(item), _text(str(item), content)


def _text(label: str, content: bytes, otherwise: str = "") -> str:
    try:
        if b"\0" not in content:
            return content.decode("utf-8-sig")
        place = content.find(b"\0")
    except UnicodeDecodeError as error:
        place = error.start
    raise TraceError(f"{label}: {otherwise or f'not UTF-8 text (byte 0x{content[place]:02x})'}")


def _archive(content: bytes) -> BinaryIO | None:
    """Return what unpacks a tar archive while it is read; None: it is none."""
    for start, unpack in _PACKED.items():
        if content.startswith(start):
            return unpack(io.BytesIO(content))
    try:
        tarfile.TarInfo.frombuf(content[: tarfile.BLOCKSIZE], tarfile.ENCODING, "surrogateescape")
    except tarfile.HeaderError:
        return None
    return io.BytesIO(content)


class _Bounded:
    """The bytes of an archive, up to a limit: some kilobytes can unpack to terabytes."""

    def __init__(self, label: str, packed: Any) -> None:
        self._label, self._packed, self._left = label, packed, largest_bytes()

    def read(self, count: int) -> bytes:
        found: bytes = self._packed.read(count)
        self.take(len(found))
        return found

    def take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise TraceError(f"{self._label}: unpacked it is {too_large(largest_bytes())}")


def _members(label: str, packed: Any) -> Iterator[tuple[str, str]]:
    bounded: Any = _Bounded(label, packed)
    try:
        with tarfile.open(fileobj=bounded, mode="r|", bufsize=_BLOCK_BYTES) as archive:
            for member in archive:
                if member.isfile() and member.name.endswith(".txt"):
                    if member.issparse():  # holes are not read, but filled
                        bounded.take(member.size)
                    content = archive.extractfile(member)
                    assert content is not None
                    yield f"{label}/{member.name}", _text(f"{label}/{member.name}", content.read())
    except (*_DAMAGED, OSError) as error:
        raise TraceError(f"{label}: damaged archive: {error}") from error
