"""Packets of links: of a file, or those that reach the input ports of a network.

Format of files: docs/definitions/wavelengths.md.
"""

import csv
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.free_memory import refuse_beyond_memory
from hopforge.model.input_file import read_input_text
from hopforge.model.kernel.compile import kernel
from hopforge.sim.hits.expected_memory import refuse_beyond_expected
from hopforge.sim.hits.replay import PIECE_PACKETS, Replay
from hopforge.sim.traffic.packet_stream import PacketStream

__all__ = ["LinkStream", "PacketFileError", "network_links", "read_link"]

MOST_BYTES = 1 << 20
"""Of a packet."""

_LOOKUP_BYTES = 72  # of a packet at a link, at the peak
_COLUMNS = ("destination", "bytes", "source")


class PacketFileError(UserError, ValueError):
    """A file that does not hold the packets of a link."""


class LinkStream(NamedTuple):
    """Packets of links, link by link, in order.

    Attributes
    ----------
    starts : ndarray, int64[link + 1]
        Where the packets of a link begin.
    keys, bytes, sources : ndarray, int64[packet]
        What is looked up, sizes, addresses of sources.
    """

    starts: NDArray[np.int64]
    keys: NDArray[np.int64]
    bytes: NDArray[np.int64]
    sources: NDArray[np.int64]


def read_link(path: Path, width_bits: int, slot_bytes: int) -> LinkStream:
    """Read the packets of one link from CSV.

    Parameters
    ----------
    path : Path
        Column destination; bytes and source may be there.
    width_bits : int
        Bits of an address.
    slot_bytes : int
        Bytes of a packet without column bytes.

    Raises
    ------
    PacketFileError
        Naming file, line and column.
    OSError
        The file cannot be read.
    """
    try:
        lines = csv.reader(io.StringIO(read_input_text(path), newline=""), strict=True)
        heading = [word.strip() for word in next(lines, [])]
        _check_heading(path, heading)
        limits = {"destination": (0, (1 << width_bits) - 1), "source": (0, (1 << width_bits) - 1),
                  "bytes": (1, MOST_BYTES)}  # fmt: skip
        rows = [_row(f"{path}:{lines.line_num}", heading, words, limits) for words in lines if words]
    except csv.Error as error:
        raise PacketFileError(f"{path}:{lines.line_num}: {error}") from error
    except UnicodeDecodeError as error:
        raise PacketFileError(f"{path}: is no text in UTF-8 ({error.reason})") from error
    if not rows:
        raise PacketFileError(f"{path}: holds no packet")
    found = dict(zip(heading, np.array(rows, np.int64).T.copy(), strict=True))
    count = len(rows)
    return LinkStream(
        np.array([0, count]), found["destination"], found.get("bytes", np.full(count, slot_bytes)),
        found.get("source", np.zeros(count, np.int64)),
    )  # fmt: skip


def _check_heading(path: Path, heading: list[str]) -> None:
    if "destination" not in heading:
        shown = ", ".join(heading)[:80]
        raise PacketFileError(f"{path}:1: must name the columns, destination among them, not {shown!r}")
    for name in heading:
        if name not in _COLUMNS:
            raise PacketFileError(f"{path}:1: columns are {', '.join(_COLUMNS)}, not {name[:40]!r}")
        if heading.count(name) > 1:
            raise PacketFileError(f"{path}:1: names column {name} twice")


def _row(where: str, heading: list[str], words: list[str], limits: dict[str, tuple[int, int]]) -> list[int]:
    if len(words) != len(heading):
        raise PacketFileError(f"{where}: must have {len(heading)} cells, not {len(words)}")
    found = []
    for name, cell in zip(heading, words, strict=True):
        word, (low, high) = cell.strip(), limits[name]
        if not (word.isascii() and word.isdigit() and len(word) < 20):
            raise PacketFileError(f"{where}: {name}: must be a whole number, not {word[:40]!r}")
        if not low <= int(word) <= high:
            raise PacketFileError(f"{where}: {name}: must be {low} to {high}, not {word}")
        found.append(int(word))
    return found


def network_links(caches: Replay, workload: PacketStream, slot_bytes: int) -> LinkStream:
    """Return what the input ports of a network see of a workload; a link for each cache of `caches`, empty ones too.

    Raises
    ------
    UserError
        They do not fit in memory.
    """
    refuse_beyond_expected(caches, workload, "links of {}", per_packet=4, per_lookup=_LOOKUP_BYTES)
    address, pieces = caches.topology.host_address, []
    counts = np.zeros(caches.inputs.caches, np.int64)
    for sources, destinations in workload.chunks():
        for start in range(0, len(sources), PIECE_PACKETS):
            part = slice(start, start + PIECE_PACKETS)
            ways = caches.ways(*caches.that_work(sources[part], destinations[part]))
            pieces.append((ways.of_packet.astype(np.int32), ways.first, ways.caches, ways.keys, address[ways.source]))
            _count(*pieces[-1][:3], counts)
    starts = np.concatenate([[0], np.cumsum(counts)])
    total = int(starts[-1])
    refuse_beyond_memory(_LOOKUP_BYTES * total, f"links of {total:,} packets")
    keys, came_from, place = np.empty(total, np.int64), np.empty(total, np.int64), starts[:-1].copy()
    for of_packet, first, numbers, asked, senders in pieces:
        _scatter(of_packet, first, numbers, asked, np.asarray(senders, np.int64), place, keys, came_from)
    return LinkStream(starts, keys, np.full(total, slot_bytes, np.int64), came_from)


@kernel
def _count(of_packet, first, caches, counts):  # type: ignore[no-untyped-def]
    for packet in range(len(of_packet)):
        for hop in range(first[of_packet[packet]], first[of_packet[packet] + 1]):
            counts[caches[hop]] += 1


@kernel
def _scatter(of_packet, first, caches, asked, senders, place, keys, sources):  # type: ignore[no-untyped-def]
    for packet in range(len(of_packet)):
        way = of_packet[packet]
        for hop in range(first[way], first[way + 1]):
            at = place[caches[hop]]
            keys[at] = asked[hop]
            sources[at] = senders[way]
            place[caches[hop]] = at + 1
