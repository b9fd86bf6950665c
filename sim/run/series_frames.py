"""Loads of links and flits in routers over the bins of a run, within bounds: what `hopforge view` moves through."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.output.column_notes import column_notes
from hopforge.model.output.columns import Columns, write_parquet
from hopforge.model.topology import Topology

__all__ = ["MOST_FRAMES", "MOST_VALUES", "SeriesFrames"]

#: frames that are kept of a run, and values in all of them: beyond, neighbouring bins become one frame
MOST_FRAMES, MOST_VALUES = 200, 6_000_000


class SeriesFrames:
    """Means over `bins_per_frame` bins each.

    Parameters
    ----------
    topology : Topology
        The network.
    bins : int
        Of the run.
    """

    def __init__(self, topology: Topology, bins: int) -> None:
        self._channels = topology.channels()
        width = len(self._channels.src_router) + topology.routers
        most = max(1, min(MOST_FRAMES, MOST_VALUES // max(width, 1)))
        self.bins_per_frame = -(-bins // most)
        frames = -(-bins // self.bins_per_frame)
        self._bins = bins
        self.loads = np.zeros((frames, len(self._channels.src_router)), np.float32)
        self.flits = np.zeros((frames, topology.routers), np.float32)
        self.until = [0.0] * frames

    def note(self, number: int, until: float, loads: NDArray[np.float64], flits: NDArray[np.int64]) -> None:
        """Add a bin: its end, the load of every channel in it, and the flits in every router at its end."""
        frame = number // self.bins_per_frame
        share = 1.0 / min(self.bins_per_frame, self._bins - frame * self.bins_per_frame)
        self.loads[frame] += (loads[: self.loads.shape[1]] * share).astype(np.float32)
        self.flits[frame] += (flits * share).astype(np.float32)
        self.until[frame] = until

    def cut(self, bins: int) -> None:
        """Keep the frames of the first `bins` bins only: the run ended there."""
        frames = -(-bins // self.bins_per_frame)
        self.loads, self.flits, self.until = self.loads[:frames], self.flits[:frames], self.until[:frames]
        last = (frames - 1) * self.bins_per_frame
        more = min(self.bins_per_frame, self._bins - last) / (bins - last)
        self.loads[-1] *= more
        self.flits[-1] *= more

    def tables(self) -> dict[str, Columns]:
        """Return `link_loads` and `router_flits`: a column for each frame."""
        ends = self._channels
        links = {"router": ends.src_router, "port": ends.src_port, "to_router": ends.dst_router}
        routers = {"router": np.arange(self.flits.shape[1], dtype=np.int32)}
        return {
            "link_loads": links | {f"frame_{k}": row for k, row in enumerate(self.loads)},
            "router_flits": routers | {f"frame_{k}": row for k, row in enumerate(self.flits)},
        }

    def write(self, folder: Path, units: Mapping[str, str]) -> None:
        """Write both tables as Parquet, in a folder of `model.output.results.staged`; `units` as for `column_notes`."""
        for name, table in self.tables().items():
            write_parquet(table, folder / f"{name}.parquet", column_notes(name, table, units))

    def metadata(self, time_unit: str, cycle_time: float) -> dict[str, Any]:
        """Return what the tables do not say: bins of a frame, ends of the frames, time of a cycle of the file."""
        return {
            "bins_per_frame": self.bins_per_frame, "until": self.until, "time_unit": time_unit,
            "cycle_time": cycle_time,
        }  # fmt: skip
