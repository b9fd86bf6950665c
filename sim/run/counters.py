"""Counters of a network: set to zero when a measurement begins, and what they say when it ends."""

import math
from typing import Any

import numpy as np

from hopforge.model.network.core.sources import NEVER
from hopforge.model.network.core.state import NetState
from hopforge.model.topology import Topology
from hopforge.sim.run.class_latencies import class_latencies, reset_classes
from hopforge.sim.run.flit_networks import Built
from hopforge.sim.run.lookup_measures import lookup_totals
from hopforge.sim.run.network_latency import network_latencies, reset_network_latency
from hopforge.sim.run.reordering import reordering, reset_reordering
from hopforge.sim.run.run_statistics import largest_of, mean_of, percentile
from hopforge.sim.run.traffic_classes import RunClasses

__all__ = ["read_counters", "reset_counters"]


def reset_counters(built: Built, classes: RunClasses | None) -> None:
    """Set the counters of latency, hops, rates and channel loads to zero; `classes`: of traffic."""
    state = built.state
    for name in (
        "measured", "latency_sum", "hops_sum", "latency_max", "packets_dropped",
        "messages_measured", "message_latency_sum", "message_latency_max",
    ):  # fmt: skip
        state.record[name] = 0
    state.record["latency_min"] = NEVER
    if "message_histogram" in state.arrays:
        state["message_histogram"][:] = 0
    reset_classes(state)
    reset_reordering(state)
    if classes is not None:
        classes.reset(state)
    state["histogram"][:] = 0
    reset_network_latency(state)
    built.reset()
    if state.lookup is not None:
        state.lookup.reset_counts()
    state["output_port"]["flits"] = 0
    state["host"]["flits_received"] = 0


def read_counters(
    built: Built, topology: Topology, classes: RunClasses | None, cycles: int, mean: float
) -> dict[str, Any]:
    """Return what the counters say of a measurement: fields of `Measurement`.

    Parameters
    ----------
    built, topology : Built, Topology
        The network.
    classes : RunClasses, optional
        Of traffic.
    cycles : int
        Length of the measurement.
    mean : float
        Latency of its packets.
    """
    state = built.state
    packets = int(state["measured"])
    received = state.senders["flits_received"] * (built.flit_cycles / cycles)
    between = topology.peer_router.reshape(-1) >= 0
    channel = state["output_port"]["flits"][between] * (built.flit_cycles / cycles) if between.any() else np.zeros(1)
    median, p95, p99 = (
        percentile(state["histogram"], share, int(state["latency_max"]), built.bin_cycles)
        for share in (0.5, 0.95, 0.99)
    )
    return {
        "packets": packets,
        "latency_median": median,
        "latency_p95": p95,
        "latency_p99": p99,
        "latency_max": largest_of(int(state["latency_max"]), packets),
        **network_latencies(state, built.bin_cycles),
        "hops": mean_of(int(state["hops_sum"]), packets),
        **_message_latencies(state, mean, median, p95, p99),
        # one nan for all, with which equal measurements are equal
        "derouted_share": derouted / packets if packets and not math.isnan(derouted := built.derouted()) else math.nan,
        "accepted": float(received.mean()),
        "accepted_worst": float(received.min()),
        "channel_load_max": float(channel.max()),
        "channel_load_mean": float(channel.mean()),
        "dropped_packets": int(state["packets_dropped"]),
        **lookup_totals(state.lookup),
        "classes": class_latencies(state) if classes is None else classes.results(state, cycles),
        "reordering": reordering(state),
    }


def _message_latencies(state: NetState, mean: float, median: float, p95: float, p99: float) -> dict[str, Any]:
    """Return the latencies of messages; messages of one packet have those of their packets."""
    largest, count = int(state["latency_max"]), int(state["measured"])
    if "message_histogram" in state.arrays:
        largest, count = int(state["message_latency_max"]), int(state["messages_measured"])
        mean = mean_of(int(state["message_latency_sum"]), count)
        median, p95, p99 = (percentile(state["message_histogram"], share, largest, 1) for share in (0.5, 0.95, 0.99))
    return {
        "message_latency": mean,
        "message_latency_median": median,
        "message_latency_p95": p95,
        "message_latency_p99": p99,
        "message_latency_max": largest_of(largest, count),
    }
