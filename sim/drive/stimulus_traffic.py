"""What the surroundings of a lookup engine are asked to do."""

from dataclasses import dataclass

__all__ = ["Traffic"]


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What the surroundings of the engine do.

    Parameters
    ----------
    lookups : int
        Requests to be made.
    seed : int
        Seed of everything random.
    quiet_cycles : int
        Mean number of cycles between two operations on the CSR bus.
    link_failures : float
        Probability per cycle that the link changes.
    pool : int
        Number of different destinations that are asked for at a time.
    pool_lookups : int
        Lookups after which others are asked for.
    locality : float
        Exponent of the popularity of destinations: 1 uniform, larger: fewer of them more often.
    change_configuration : bool
        Whether mode, own address, level and radices change on the way.
    addresses : tuple of int
        Addresses of the network: three quarters of the destinations are among them. Empty: none is known.
    centres : int
        Number of own addresses to choose from, most destinations being one or two digits away from one of them, so that
        a wrong key makes the wrong ones share a line; 0: own addresses and destinations have nothing to do with each
        other.
    count_from : int
        What the counters of the engine begin with.
    thorough : bool
        More of what a fault needs to show: the switch becomes one of another network, software writes at addresses
        beside registers, and reads all counters, also before anything happens.
    switching : bool
        Software does little else than to make the switch one of another network (with `thorough`): every bit of the
        set-up becomes 0 and 1, with destinations for which it decides.
    counting : bool
        Software does little else than to cause events and to read all counters, and never clears them (with
        `thorough`): no carry of theirs remains unseen.
    """

    lookups: int
    seed: int = 1
    quiet_cycles: int = 40
    link_failures: float = 0.0005
    pool: int = 64
    pool_lookups: int = 2000
    locality: float = 2.0
    change_configuration: bool = True
    addresses: tuple[int, ...] = ()
    centres: int = 0
    count_from: int = 0
    thorough: bool = False
    switching: bool = False
    counting: bool = False
