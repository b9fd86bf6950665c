"""Latencies of requests, replies and round trips (docs/definitions/replies.md)."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.histogram import HISTOGRAM_BINS
from hopforge.model.network.core.layouts import ACKNOWLEDGES, REPLIES, REQUESTS, ROUND_TRIPS
from hopforge.model.network.core.state import NetState
from hopforge.model.network.parts.trail_tables import trail_counts
from hopforge.model.output.columns import Columns, one_row
from hopforge.model.output.results import Table
from hopforge.sim.run.run_statistics import largest_of, mean_of, percentile

NAMES = {REQUESTS: "request", REPLIES: "reply", ROUND_TRIPS: "round_trip", ACKNOWLEDGES: "acknowledge"}
#: columns of the table `acknowledges`
ACKNOWLEDGE_COUNTERS = (
    "delivered", "acks_made", "acks_sent", "acks_home", "acks_no_entry", "acks_queue_full", "acks_own_full",
    "entries", "table_full", "expired_entries", "acks_lost", "flushed_entries",
)  # fmt: skip


@dataclass(frozen=True)
class ClassLatency:
    """Latency of one class of packets, or of round trips, in cycles.

    Attributes
    ----------
    message : str
        ``request``, ``reply``, ``round_trip`` or ``acknowledge``; or the name of a class of traffic.
    packets : int
        That arrived; of round trips: their replies.
    network_latency : float
        Mean from the departure of the head; of round trips the sum of both classes.
    """

    message: str
    packets: int
    latency: float
    latency_std: float
    latency_median: float
    latency_p95: float
    latency_p99: float
    latency_max: float
    network_latency: float

    def columns(self) -> dict[str, Any]:
        """As columns of a table of runs."""
        spread = {key: value for key, value in asdict(self).items() if key.startswith("latency")}
        return {f"{self.message}_{key}": value for key, value in spread.items()}

    @property
    def plural(self) -> str:
        """What was counted."""
        return "replies" if self.message == "reply" else f"{self.message.replace('_', ' ')}s"

    def words(self) -> str:
        """As people read it."""
        if not self.packets:
            return "none arrived in the cycles measured"
        return (
            f"{self.latency:.2f} cycles, standard deviation {self.latency_std:.2f} (median {self.latency_median:.0f}, "
            f"95 % {self.latency_p95:.0f}, 99 % {self.latency_p99:.0f}, max {self.latency_max})"
        )


def class_columns(classes: tuple[ClassLatency, ...]) -> Columns:
    """Return the table `classes`."""
    rows = [asdict(each) for each in classes]
    return {name: [row[name] for row in rows] for name in rows[0]}


def class_latencies(state: NetState) -> tuple[ClassLatency, ...]:
    """Return what a measurement found of every class, and of round trips; nothing without replies and acknowledges."""
    if "class_count" not in state.arrays or int(state["traffic_classes"]):
        return ()
    if int(state["acks"]):
        in_network = _mean(state["class_count"][ACKNOWLEDGES], "network_sum")
        return (_class_latency(state, ACKNOWLEDGES, in_network, NAMES[ACKNOWLEDGES]),)
    means = [_mean(state["class_count"][k], "network_sum") for k in (REQUESTS, REPLIES)]
    networks = {REQUESTS: means[REQUESTS], REPLIES: means[REPLIES], ROUND_TRIPS: sum(means)}
    return tuple(_class_latency(state, k, networks[k], NAMES[k]) for k in networks)


def _mean(count: Any, name: str) -> float:
    return mean_of(float(count[name]), int(count["packets"]))


def _class_latency(state: NetState, k: int, network_latency: float, name: str) -> ClassLatency:
    count = state["class_count"][k]
    histogram = state["class_histogram"][k * HISTOGRAM_BINS : (k + 1) * HISTOGRAM_BINS]
    mean, largest = _mean(count, "sum"), int(count["largest"])
    spread = float(np.sqrt(np.maximum(_mean(count, "squares") - mean * mean, 0.0)))
    median, p95, p99 = (percentile(histogram, share, largest, 1) for share in (0.5, 0.95, 0.99))
    worst = largest_of(largest, int(count["packets"]))
    return ClassLatency(name, int(count["packets"]), mean, spread, median, p95, p99, worst, network_latency)


def latency_of(state: NetState, c: int, name: str) -> ClassLatency:
    """Return what a measurement found of class `c` of the traffic."""
    return _class_latency(state, c, _mean(state["class_count"][c], "network_sum"), name)


def reset_classes(state: NetState) -> None:
    """Count from zero."""
    if "class_count" in state.arrays:
        state["class_count"][:] = np.zeros(1, state["class_count"].dtype)[0]
        state["class_histogram"][:] = 0


def queue_delays(state: NetState) -> NDArray[np.float64]:
    """Mean ages in cycles of what leaves next (0 for an empty queue): of source queues, replies and acknowledges.

    Each by itself, for one that grows is not hidden by an older one; classes of traffic have their own.
    """
    host, hosts = state.senders, int(state["hosts"])
    packet = host["packet"]
    created = state["packet"]["created"][np.maximum(packet, 0)]
    sources = int(state["cycle"]) - np.where(packet >= 0, created, host["next_time"])
    replies = _ages(state, state["replier"][:hosts]) if "replier" in state.arrays else sources[:0]
    acknowledges = _ages(state, state["replier"][hosts:]) if int(state["acks"]) else sources[:0]
    return np.array(
        [float(np.maximum(each, 0).mean()) if len(each) else 0.0 for each in (sources, replies, acknowledges)]
    )


def acknowledge_tables(state: NetState) -> dict[str, Table]:
    """Return the table `acknowledges`: what happened to entries and acknowledges since the start; if there are any."""
    if not int(state["acks"]):
        return {}
    counts = trail_counts(state)
    return {"acknowledges": one_row({name: counts[name] for name in ACKNOWLEDGE_COUNTERS})}


def _ages(state: NetState, replier: NDArray[Any]) -> NDArray[np.int64]:
    oldest = np.where(replier["packet"] >= 0, replier["packet"], replier["first"])
    return np.where(oldest >= 0, int(state["cycle"]) - state["packet"]["created"][np.maximum(oldest, 0)], 0)
