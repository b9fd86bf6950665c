"""γ*: the largest load in steps of 0.05 that a packet network sustains."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.sim.packet.network import PacketNetwork
from hopforge.sim.packet.simulation import PacketMeasurement, message_table, run_packets

#: loads that are tried
STEP = 0.05
LOADS = tuple(round(STEP * k, 2) for k in range(2, 31))
#: a load is sustained while the mean lifetime is at most so many times that of the lowest load
LIFETIME_LIMIT = 1.2
#: what packets to come will live at least, in lifetimes at the lowest load: decides only when a run is given up
_LEAST_SHARE = 0.9


@dataclass(frozen=True)
class Saturation:
    """What the search found.

    Attributes
    ----------
    load : float
        γ*; 0 if not even the lowest load is sustained.
    at_load : PacketMeasurement
        The run at γ* (or at the lowest load).
    lowest_ns : float
        Mean lifetime at the lowest load, of the same messages.
    runs : tuple
        All runs of the search; those beyond γ* were given up when that was clear.
    """

    load: float
    at_load: PacketMeasurement
    lowest_ns: float
    runs: tuple[PacketMeasurement, ...]

    def sustained(self, run: PacketMeasurement, limit: float = LIFETIME_LIMIT) -> bool:
        """Whether one of the runs kept within the limit."""
        return run.complete and run.lifetime_ns <= limit * self.lowest_ns


def find_saturation(
    config: Config,
    seed: int,
    *,
    limit: float = LIFETIME_LIMIT,
    loads: tuple[float, ...] = LOADS,
    progress: Callable[[float], None] | None = None,
) -> Saturation:
    """Find the largest of `loads` that is sustained.

    Sustained: all messages arrive, and the mean lifetime of the packets is at most `limit` times that at the lowest
    load. Source queues that grow show in it: the lifetime begins with the creation of the message.

    The search runs little where the answer is clear. At the lowest load every message is alone in the network, so
    messages with the same destinations are run once. The longest life there tells the loads at which every message is
    still alone; from the highest of them the search goes up in steps of 1, 1, 2, 4, … loads until one is not sustained,
    and bisects. A run is given up when it cannot keep the limit any more.

    Parameters
    ----------
    config : Config
        With ``router.model: packet``.
    seed : int
        Of destinations and times.
    limit : float
        See above.
    loads : tuple of float
        Increasing.
    progress : callable, optional
        Called with each load before it is tried.
    """
    if progress is not None:
        progress(loads[0])
    first, lowest_ns, alone, kinds = _run_lowest(config, seed, loads[0])
    allowed = limit * lowest_ns
    runs = {0: first}

    def sustained(k: int) -> bool:
        if k not in runs:
            if progress is not None:
                progress(loads[k])
            network = PacketNetwork(config, loads[k], seed, check=False, messages=kinds if loads[k] <= alone else None)
            runs[k] = run_packets(network, give_up_lifetime_ns=allowed, least_lifetime_ns=_LEAST_SHARE * lowest_ns)
        return runs[k].complete and runs[k].lifetime_ns <= allowed

    low = max((k for k, load in enumerate(loads) if load <= alone), default=0)
    high, steps = low + 1, 1
    while high < len(loads) and sustained(high):
        low, high, steps = high, high + steps, 2 * steps
    high = min(high, len(loads))
    while high - low > 1:
        middle = (low + high) // 2
        if sustained(middle):
            low = middle
        else:
            high = middle
    # the load below which nothing has to be run has not been run yet
    while low > 0 and not sustained(low):
        low -= 1
    found = tuple(runs[k] for k in sorted(runs))
    return Saturation(loads[low] if first.complete else 0.0, runs[low], lowest_ns, found)


def _run_lowest(config: Config, seed: int, load: float) -> tuple[PacketMeasurement, float, float, int]:
    """Run at the lowest load: the run, mean lifetime of all messages, up to which load they are alone, and of how many.

    With messages at equal distances whose destinations repeat, one of each kind is run.
    """
    network = PacketNetwork(config, load, seed)
    messages, kinds = network.settings.messages, _period(network.destinations)
    if config.packet.process != "periodic":
        run = run_packets(network)
        return run, run.lifetime_ns, load, messages
    network = PacketNetwork(config, load, seed, check=False, messages=kinds)
    run = run_packets(network)
    alone = load * network.period_cycles * network.settings.cycle_ns / run.lifetime_max_ns
    if alone < load or not run.complete:
        # they are not: what one of each kind tells is not enough
        run = run_packets(PacketNetwork(config, load, seed, check=False))
        return run, run.lifetime_ns, load, messages
    lifetimes = message_table(network)["lifetime_ns"].to_numpy()
    return run, float(np.resize(lifetimes, messages).mean()), alone, kinds


def _period(destinations: NDArray[np.int64]) -> int:
    """Find after how many messages the destinations of all nodes (int64[node, message]) repeat."""
    messages = destinations.shape[1]
    for period in range(1, messages):
        if np.array_equal(destinations[:, period:], destinations[:, :-period]):
            return period
    return messages
