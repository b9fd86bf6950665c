"""A run of a packet network in bins of time (`hopforge series` with ``router.model: packet``)."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from hopforge.sim.packet import records as r
from hopforge.sim.packet.network import PacketNetwork
from hopforge.sim.packet.simulation import percentile
from hopforge.sim.run.run_statistics import bin_middles
from hopforge.sim.run.time_series import TimeSeries, converged_parts

__all__ = ["run_packet_series"]


def run_packet_series(network: PacketNetwork, progress: Callable[[int, int], None]) -> TimeSeries:
    """Run for as long as ``packet.messages`` messages are created at the first load, bin by bin.

    The load changes as ``simulation.load_steps`` says. What is inside at the end is left there.

    Parameters
    ----------
    network : PacketNetwork
        Of `prepared.series_network`, at its start.
    progress : callable
        Called with (bins done, in all).

    Raises
    ------
    DeadlockError
        A standstill.
    """
    limits, settings, counters = network.config.simulation, network.settings, network.counters
    count, unit = limits.series_bins, settings.cycle_ns / 1000
    total = max(int(network.period_cycles * network.config.packet.messages), count)
    steps = {step.bin: step.load for step in limits.load_steps}
    scale = network.period_cycles * network.load / settings.message_packets / network.topology.routers
    rows, begins = [], [0]
    loads = np.zeros((count, len(network.channel_packets())))
    for k in range(count):
        begin, end = total * k // count, total * (k + 1) // count
        if k in steps:
            network.set_load(steps[k])
            begins.append(k)
        before, histogram, sent = counters.copy(), network.histogram.copy(), network.channel_packets()
        network.advance(end)
        network.check_conservation()
        new = {name: int(counters[name] - before[name]) for name in counters.dtype.names}
        packets = max(new["delivered"], 1)
        loads[k] = (network.channel_packets() - sent) * settings.send_cycles / (end - begin)
        found = [
            percentile(network.histogram - histogram, share, int(counters["lifetime_max"])) * settings.cycle_ns
            for share in (0.5, 0.95, 0.99)
        ]
        some = float(new["delivered"] > 0) or np.nan
        detours = new["detours_outflank"] + new["detours_wraparound"]
        rows.append(
            {
                "time": end * unit, "load": network.load, "packets": new["delivered"],
                "accepted": new["delivered"] / (end - begin) * scale,
                "latency": new["lifetime_sum"] / packets * settings.cycle_ns * some, "latency_p50": found[0],
                "latency_p95": found[1], "latency_p99": found[2], "hops": (new["hops_sum"] / packets + 1) * some,
                "derouted_share": detours / new["chosen"] if new["chosen"] else np.nan,
                "channel_load_mean": float(loads[k].mean()), "channel_load_max": float(loads[k].max()),
            }
        )  # fmt: skip
        progress(k + 1, count)
    bins = pd.DataFrame(rows)
    failures = network.failures
    if failures is not None:
        failures.note()
        failures.end(total)
        begins += [record.cycle * count // total for record in failures.records]
    used = np.flatnonzero(network.histogram)
    middle = bin_middles(used, r.BIN_CYCLES) * settings.cycle_ns
    return TimeSeries(
        bins,
        pd.DataFrame(columns=["time", "router", "port", "mean", "least"]),
        pd.DataFrame({"latency": middle, "packets": network.histogram[used]}),
        converged_parts(bins, sorted(set(begins))),
        "µs",
        "ns",
        loads,
        "load (1: uniform traffic saturates the bisection of a torus)",
        failures=failures,
    )
