"""Latency of packets without the queue of their host (docs/definitions/measures.md#latency-and-throughput)."""

import math
from typing import Any, Protocol

from hopforge.model.network.core.state import NetState
from hopforge.sim.run.run_statistics import figure, largest_of, mean_of, percentile


class NetworkLatency(Protocol):
    """What a measurement holds of it, in cycles."""

    @property
    def network_latency(self) -> float:
        """Mean."""

    @property
    def network_latency_std(self) -> float:
        """Standard deviation over all packets."""

    @property
    def network_latency_median(self) -> float:
        """Half of the packets take no longer."""

    @property
    def network_latency_p95(self) -> float:
        """95 % of the packets take no longer."""

    @property
    def network_latency_p99(self) -> float:
        """99 % of the packets take no longer."""

    @property
    def network_latency_max(self) -> float:
        """Of the slowest packet."""


def network_latencies(state: NetState, bin_cycles: int) -> dict[str, Any]:
    """Return mean, standard deviation (of all packets, not of a sample), percentiles and maximum, by field.

    nan without packets.

    Parameters
    ----------
    state : NetState
        Since the last `reset_network_latency`.
    bin_cycles : int
        Width of the bins of its histograms.
    """
    packets, largest = int(state["measured"]), int(state["network_latency_max"])
    mean = mean_of(int(state["network_latency_sum"]), packets)
    squares = mean_of(float(state["network_latency_squares"]), packets)
    spread = math.sqrt(max(squares - mean * mean, 0.0)) if packets else math.nan
    found = {"network_latency": mean, "network_latency_std": spread}
    found["network_latency_max"] = largest_of(largest, packets)
    for name, share in (("median", 0.5), ("p95", 0.95), ("p99", 0.99)):
        found[f"network_latency_{name}"] = percentile(state["network_histogram"], share, largest, bin_cycles)
    return found


def reset_network_latency(state: NetState) -> None:
    """Count from zero."""
    for name in ("network_latency_sum", "network_latency_squares", "network_latency_max"):
        state.record[name] = 0
    state["network_histogram"][:] = 0


def network_words(found: NetworkLatency) -> str:
    """As people read it."""
    return (
        f"{figure(found.network_latency, '.2f')} cycles, standard deviation {figure(found.network_latency_std, '.2f')} "
        f"(median {figure(found.network_latency_median)}, 95 % {figure(found.network_latency_p95)}, "
        f"99 % {figure(found.network_latency_p99)}, max {figure(found.network_latency_max)})"
    )
