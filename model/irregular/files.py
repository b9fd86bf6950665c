"""Tables and layers that users bring as CSV files, read with the line of every entry, so that errors can name it."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.input_file import read_input_text
from hopforge.model.irregular.channels import WorkingSwitches
from hopforge.model.irregular.dependencies import MAX_LAYERS
from hopforge.model.irregular.layers import Layers

__all__ = ["LayerFile", "NextHopFile", "read_layers", "read_next_hops"]


class NextHopFile(NamedTuple):
    """A table of next hops.

    Attributes
    ----------
    next_hop : ndarray, int32[router, destination]
        As written; -1: none.
    lines : list of int
        Line of each router, from 1.
    """

    next_hop: NDArray[np.int32]
    lines: list[int]


class LayerFile(NamedTuple):
    """Virtual layers of all paths.

    Attributes
    ----------
    layers : Layers
        Method ``file``; not checked for cycles yet.
    lines : ndarray, int32[source·nodes + destination]
        Line of each path, from 1; 0 on the diagonal.
    """

    layers: Layers
    lines: NDArray[np.int32]


def _number_lines(path: Path, key: str, what: str) -> Iterator[tuple[int, list[int]]]:
    """Yield line number and numbers of every line that is not empty."""
    try:
        text = read_input_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UserError(f"{key}: cannot read {path}: {reason}") from error
    rows = csv.reader(io.StringIO(text, newline=""))
    try:
        for number, row in enumerate(rows, start=1):
            if not row:
                continue
            try:
                yield number, [int(word) for word in row]
            except ValueError:
                words = ",".join(row)[:60]
                raise UserError(f"{key}: {path}:{number}: expected {what}, not {words!r}") from None
    except csv.Error as error:
        raise UserError(f"{key}: {path}:{rows.line_num}: {error}") from error


def read_next_hops(path: Path, routers: int, key: str = "tables.file") -> NextHopFile:
    """Read a table of next hops: CSV, a line per router, a number per destination.

    Parameters
    ----------
    path : Path
        The file.
    routers : int
        Routers of the network.
    key : str
        Key of the configuration that names the file, for errors.

    Raises
    ------
    UserError
        With key, file and line.
    """
    rows: list[list[int]] = []
    lines: list[int] = []
    for number, entries in _number_lines(path, key, "router numbers"):
        if len(entries) != routers:
            raise UserError(f"{key}: {path}:{number}: must have {routers} numbers, not {len(entries)}")
        for entry in entries:
            if not -1 <= entry < routers:
                raise UserError(f"{key}: {path}:{number}: must be router numbers from 0 to {routers - 1}, not {entry}")
        rows.append(entries)
        lines.append(number)
    if len(rows) != routers:
        raise UserError(f"{key}: {path}: must have {routers} lines, one per router, not {len(rows)}")
    return NextHopFile(np.array(rows, np.int32), lines)


def read_layers(
    path: Path, starts: NDArray[np.int64], working: WorkingSwitches | None = None, key: str = "tables.layers_file"
) -> LayerFile:
    """Read virtual layers: CSV, a line ``source,destination,layer`` for every pair, or with one layer for each hop.

    Parameters
    ----------
    path : Path
        The file.
    starts : ndarray, int64[nodes² + 1]
        Where the hops of each path begin (`lash.path_starts`).
    working : WorkingSwitches, optional
        The file has the numbers of the whole network; lines from or to a switch that has failed do not count.
    key : str
        Key of the configuration that names the file, for errors.

    Raises
    ------
    UserError
        With key, file and line.
    """
    nodes = round((len(starts) - 1) ** 0.5)
    if working is None:
        working = WorkingSwitches(nodes, np.arange(nodes, dtype=np.int32))
    routers, place_of = working.routers, working.places()
    layer = np.full(starts[-1], -1, np.int16)
    lines = np.zeros(nodes * nodes, np.int32)
    for number, words in _number_lines(path, key, "source, destination and layers"):
        place = f"{key}: {path}:{number}"
        if len(words) < 3:
            raise UserError(f"{place}: must have source, destination and at least one layer, not {len(words)} numbers")
        s, d, *of_hops = words
        if not (0 <= s < routers and 0 <= d < routers and s != d):
            raise UserError(f"{place}: must begin with two different routers from 0 to {routers - 1}, not {s},{d}")
        if place_of[s] < 0 or place_of[d] < 0:
            continue
        pair = int(place_of[s]) * nodes + int(place_of[d])
        if lines[pair]:
            raise UserError(f"{place}: routers {s},{d} are already in line {lines[pair]}")
        begin, end = starts[pair : pair + 2]
        if len(of_hops) not in (1, end - begin):
            raise UserError(f"{place}: must have 1 or {end - begin} layers (hops of the path), not {len(of_hops)}")
        for value in of_hops:
            if not 0 <= value < MAX_LAYERS:
                raise UserError(f"{place}: layers must be from 0 to {MAX_LAYERS - 1}, not {value}")
        layer[begin:end] = of_hops
        lines[pair] = number
    absent = np.flatnonzero((lines == 0) & (np.diff(starts) > 0))
    if len(absent):
        s, d = working.numbers[list(divmod(int(absent[0]), nodes))]
        raise UserError(f"{key}: {path}: no line for source {s} and destination {d}")
    return LayerFile(Layers("file", int(layer.max()) + 1, layer, starts), lines)
