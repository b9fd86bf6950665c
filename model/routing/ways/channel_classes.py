"""Classes of virtual channels that keep packets on given ways free of deadlock: three schemes, the fewest first."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.routing.contract.plan import RoutingError, TooFewVcsError, vc_range
from hopforge.model.routing.proof.deadlock import is_acyclic
from hopforge.model.routing.ways.all_pairs import Ways
from hopforge.model.routing.ways.survey import Survey, ports_of_masks, rising_channels, survey
from hopforge.model.topology import Topology

#: schemes: a class for each part of the way, for each turn from down to up, for each link
PHASES, TURNS, HOPS = range(3)
SCHEMES = ("phases", "turns", "hops")
_WHY = {
    "phases": "one for each part of the way, since no channel waits for itself on the ways between routers",
    "turns": "one more with each turn from a channel that goes down to one that goes up",
    "hops": "one for each link of the longest way",
}


@dataclass(frozen=True, eq=False)
class Classes:
    """A scheme, made ready.

    Attributes
    ----------
    scheme : int
        `PHASES`, `TURNS` or `HOPS`.
    count : int
        Classes.
    masks : list of int
        Virtual channels of each class.
    of_vc : list of int
        Class of each virtual channel.
    up : ndarray, bool[router, port]
        Channels that go up.
    left : ndarray, int16[goal, router, down]
        By how much the class still rises on the way from a router to a goal, at most.
    after : ndarray, uint64[router, port, word]
        As in `Survey`; of a port to a host where ways begin.
    words : str
        For people.
    advice : str
        Another scheme that fits, too, with a class for each link; nothing if there is none, or one was asked for.
    """

    scheme: int
    count: int
    masks: list[int]
    of_vc: list[int]
    up: NDArray[np.bool_]
    left: NDArray[np.int16]
    after: NDArray[np.uint64]
    words: str
    advice: str


def find_classes(
    topology: Topology,
    ways: Ways,
    vcs: int,
    *,
    detours: bool,
    wanted: str | None,
    root: int,
    name: str,
    groups: bool = False,
    lowest: bool = True,
) -> Classes:
    """Choose the scheme with the fewest classes, or the wanted one.

    Parameters
    ----------
    topology, ways
        The network and its ways.
    vcs : int
        Virtual channels that there are.
    detours : bool
        Whether a packet may go on to its destination from any router on the way to another one.
    wanted : str, optional
        One of `SCHEMES`.
    root : int
        Of the tree that says which channels go up.
    name : str
        Of the algorithm, for messages.
    groups : bool
        Whether a detour may end at routers without hosts.
    lowest : bool
        Whether `turns` gives what is left of the virtual channels to the lowest classes, not to the last ones.

    Raises
    ------
    RoutingError
        Too few virtual channels, saying how many would do and why; or a scheme that cannot be.
    """
    surveys = [(up, survey(topology, ways, up)) for up in _orders(topology, root)]
    needs = [_turn_classes(topology, found, detours=detours) for _, found in surveys]
    best = int(np.argmin(needs))
    up, found = surveys[best]
    need = {"turns": needs[best], "hops": _hop_classes(topology, ways, found, detours=detours)}
    everywhere = len(np.unique(topology.host_router)) == topology.routers
    if (everywhere or not groups) and _waits_for_nothing(topology, found):
        need["phases"] = 2 if detours else 1
    if wanted is not None and wanted not in need:
        raise RoutingError(
            f"routing.classes: phases is not for routing.algorithm {name} on the {topology.name}: channels wait for "
            f"themselves on its ways; turns would need {need['turns']} classes, hops {need['hops']}"
        )
    chosen = wanted or min(need, key=lambda scheme: (need[scheme], SCHEMES.index(scheme)))
    count = need[chosen]
    if vcs < count:
        others = ", ".join(f"{scheme} {need[scheme]}" for scheme in SCHEMES if scheme in need and scheme != chosen)
        why = f"it needs {count} classes ({chosen}: {_WHY[chosen]}; {others})"
        raise TooFewVcsError(count, f"for routing.algorithm {name} on the {topology.name}", vcs, why)
    share = _begins(vcs, count, lowest=lowest and chosen == "turns")
    masks = [vc_range(share[k], share[k + 1] - 1) for k in range(count)]
    of_vc = [next(k for k in range(count) if masks[k] >> v & 1) for v in range(vcs)]
    left = found.turns if chosen == "turns" else np.repeat(ways.length.T[:, :, None], 2, axis=2).astype(np.int16)
    words = f"{count} of {vcs} virtual channels needed, {chosen}: {_WHY[chosen]}"
    after = found.after.copy()
    after[topology.host_router, topology.host_port] = found.starts[topology.host_router]
    return Classes(
        SCHEMES.index(chosen), count, masks, of_vc, up, left, after, words,
        _advice(vcs, need) if wanted is None and chosen == "turns" else "",
    )  # fmt: skip


def _begins(vcs: int, count: int, *, lowest: bool) -> list[int]:
    """First virtual channel of each class, and behind the last one; what is left goes to the lowest or last ones."""
    if lowest:
        return [k * (vcs // count) + min(k, vcs % count) for k in range(count + 1)]
    return [k * vcs // count for k in range(count + 1)]


def _advice(vcs: int, need: dict[str, int]) -> str:
    """Name the scheme with a class for each link, if it fits and has as many classes as `turns` or more."""
    if not need["turns"] <= need["hops"] <= vcs:
        return ""
    return (
        f"routing.classes: hops would need {need['hops']} of {vcs} virtual channels, and mostly carries more near "
        "saturation than turns"
    )


def _orders(topology: Topology, root: int) -> list[NDArray[np.bool_]]:
    if not 0 <= root < topology.routers:
        raise RoutingError(f"routing.root must be a router from 0 to {topology.routers - 1}, not {root}")
    return [rising_channels(topology, None), rising_channels(topology, root)]


def _turn_classes(topology: Topology, found: Survey, *, detours: bool) -> int:
    homes = np.unique(topology.host_router)
    left = found.turns[homes].max(axis=0)
    if not detours:
        return int(left[homes, 0].max()) + 1
    return int((found.turned + left)[found.turned >= 0].max()) + 1


def _hop_classes(topology: Topology, ways: Ways, found: Survey, *, detours: bool) -> int:
    homes = np.unique(topology.host_router)
    left = ways.length[:, homes].max(axis=1)
    if not detours:
        return max(int(left[homes].max()), 1)
    passed = found.passed.max(axis=1)
    return max(int((passed + left)[passed >= 0].max()), 1)


def _waits_for_nothing(topology: Topology, found: Survey) -> bool:
    """Whether the channels of all ways can be put in an order."""
    ports = topology.max_ports
    into, port = ports_of_masks(found.after.reshape(topology.routers * ports, -1))
    router, in_port = into // ports, into % ports
    source = topology.peer_router[router, in_port].astype(np.int64) * ports + topology.peer_port[router, in_port]
    return is_acyclic(source, router * ports + port, topology.routers * ports)
