"""γ*: the largest load in steps of 0.05 that a packet network sustains."""

from collections.abc import Callable
from dataclasses import dataclass

from hopforge.model.config import Config
from hopforge.model.packet.network import PacketNetwork
from hopforge.model.packet.simulation import PacketMeasurement, run_packets

#: loads that are tried
STEP = 0.05
LOADS = tuple(round(STEP * k, 2) for k in range(2, 31))
#: a load is sustained while the mean lifetime is at most so many times that of the lowest load
LIFETIME_LIMIT = 1.2


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
        Mean lifetime at the lowest load.
    runs : tuple
        All runs of the search; those beyond γ* were given up when that was clear.
    """

    load: float
    at_load: PacketMeasurement
    lowest_ns: float
    runs: tuple[PacketMeasurement, ...]


def find_saturation(
    config: Config,
    seed: int,
    *,
    limit: float = LIFETIME_LIMIT,
    loads: tuple[float, ...] = LOADS,
    progress: Callable[[float], None] | None = None,
) -> Saturation:
    """Find the largest of `loads` that is sustained, by bisection.

    Sustained: all messages arrive, and the mean lifetime of the packets is at most `limit` times that at the lowest
    load. Source queues that grow show in it: the lifetime begins with the creation of the message.

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

    def run(load: float, give_up: float, *, check: bool = False) -> PacketMeasurement:
        if progress is not None:
            progress(load)
        return run_packets(PacketNetwork(config, load, seed, check=check), give_up_lifetime_ns=give_up)

    first = run(loads[0], float("inf"), check=True)
    allowed = limit * first.lifetime_ns
    runs, best = [first], first
    low, high = 0, len(loads)
    while high - low > 1:
        middle = (low + high) // 2
        found = run(loads[middle], allowed)
        runs.append(found)
        if found.complete and found.lifetime_ns <= allowed:
            low, best = middle, found
        else:
            high = middle
    return Saturation(best.load if first.complete else 0.0, best, first.lifetime_ns, tuple(runs))
