"""How far packets come out of order, and what putting them in order takes (docs/definitions/spraying.md)."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hopforge.model.kernel.histogram import HISTOGRAM_BINS, bin_ends
from hopforge.model.network.core.spray_records import (
    COUNTERS,
    DELAYS,
    EXTENTS,
    FLOW_BUFFERS,
    HISTOGRAMS,
    HOST_BUFFERS,
    NOT_WATCHED,
)
from hopforge.model.network.core.state import NetState
from hopforge.model.output.results import Table
from hopforge.sim.run.run_statistics import figure, largest_of, mean_of, percentile

__all__ = ["Reordering", "reordering", "reordering_tables", "reset_reordering"]


@dataclass(frozen=True)
class Reordering:
    """Order of the packets that arrived in a measurement; buffers in packets, delays in cycles.

    Attributes
    ----------
    reordered_share : float
        Of the packets that arrived, as the shares of n-reordered packets.
    reorder_extent : float
        Mean over reordered packets.
    reorder_buffer, host_buffer : float
        Mean at the arrivals, of the packet's flow and of its host.
    held_back_cycles : int
        Cycles in which hosts waited for a place, sum over hosts.
    """

    reordered_share: float
    reorder_extent: float
    reorder_extent_p99: float
    reorder_extent_max: float
    one_reordered_share: float
    two_reordered_share: float
    three_reordered_share: float
    reorder_buffer: float
    reorder_buffer_p99: float
    reorder_buffer_max: int
    host_buffer: float
    host_buffer_p99: float
    host_buffer_max: int
    host_buffer_flits_max: int
    reorder_delay: float
    reorder_delay_p99: float
    reorder_delay_max: float
    held_back_cycles: int

    def rows(self) -> list[tuple[str, str]]:
        """Subject and words for people."""
        shares = f"{self.reordered_share:.2%} of the packets (three-reordered {self.three_reordered_share:.2%})"
        extent = f"extent {figure(self.reorder_extent, '.2f')}, max {figure(self.reorder_extent_max)}"
        rows = [
            ("reordered", f"{shares}, {extent}" if self.reordered_share > 0 else "no packet"),
            (
                "reorder buffer",
                f"of a flow {figure(self.reorder_buffer, '.2f')} packets (99 % {figure(self.reorder_buffer_p99)}, max "
                f"{self.reorder_buffer_max}), of a host {figure(self.host_buffer, '.2f')} (max {self.host_buffer_max}, "
                f"{self.host_buffer_flits_max} flits)",
            ),
            (
                "reorder delay",
                f"{figure(self.reorder_delay, '.2f')} cycles (99 % {figure(self.reorder_delay_p99)}, max "
                f"{figure(self.reorder_delay_max)})",
            ),
        ]
        if self.held_back_cycles:
            rows.append(("held back", f"hosts waited {self.held_back_cycles:,} cycles for a place in a buffer"))
        return rows

    def columns(self) -> dict[str, Any]:
        """As columns of a table of runs."""
        return asdict(self)


def _watched(state: NetState) -> bool:
    return "spray" in state.arrays and int(state["spray"]["deliver"][0]) != NOT_WATCHED


def _histogram(state: NetState, row: int) -> Any:
    return state["reorder_histogram"].reshape(HISTOGRAMS, HISTOGRAM_BINS)[row]


def reordering(state: NetState) -> Reordering | None:
    """Return what was measured since the last reset; None: nothing is watched."""
    if not _watched(state):
        return None
    count = {name: int(state["spray"][name][0]) for name in COUNTERS}
    packets = count["packets"]

    def p99(row: int, largest: str) -> float:
        return percentile(_histogram(state, row), 0.99, count[largest], 1)

    return Reordering(
        reordered_share=mean_of(count["reordered"], packets),
        reorder_extent=mean_of(count["extent_sum"], count["reordered"]),
        reorder_extent_p99=p99(EXTENTS, "extent_max"),
        reorder_extent_max=largest_of(count["extent_max"], count["reordered"]),
        one_reordered_share=mean_of(count["after_one"], packets),
        two_reordered_share=mean_of(count["after_two"], packets),
        three_reordered_share=mean_of(count["after_three"], packets),
        reorder_buffer=mean_of(count["flow_buffer_sum"], packets),
        reorder_buffer_p99=p99(FLOW_BUFFERS, "flow_buffer_max"),
        reorder_buffer_max=count["flow_buffer_max"],
        host_buffer=mean_of(count["host_buffer_sum"], packets),
        host_buffer_p99=p99(HOST_BUFFERS, "host_buffer_max"),
        host_buffer_max=count["host_buffer_max"],
        host_buffer_flits_max=int(state["reorder_buffer"]["most_flits"].max(initial=0)),
        reorder_delay=mean_of(count["delay_sum"], count["delivered"]),
        reorder_delay_p99=p99(DELAYS, "delay_max"),
        reorder_delay_max=largest_of(count["delay_max"], count["delivered"]),
        held_back_cycles=count["held_back"],
    )


def reset_reordering(state: NetState) -> None:
    """Count from zero; what waits goes on waiting."""
    if not _watched(state):
        return
    for name in COUNTERS:
        state["spray"][name] = 0
    state["reorder_histogram"][:] = 0
    state["reorder_buffer"]["most_flits"] = state["reorder_buffer"]["flits"]


def reordering_tables(state: NetState) -> dict[str, Table]:
    """Return the table `reordering`: value, and how often it was an extent, a flow's buffer, a host's; if watched."""
    if not _watched(state):
        return {}
    rows = {"extent": EXTENTS, "flow_buffer": FLOW_BUFFERS, "host_buffer": HOST_BUFFERS}
    found = {name: _histogram(state, row) for name, row in rows.items()}
    last = max((int(np.flatnonzero(each).max(initial=0)) for each in found.values()), default=0)
    values = bin_ends(np.arange(last + 1))[0].astype(np.int64)
    return {"reordering": {"value": values, **{name: each[: last + 1] for name, each in found.items()}}}
