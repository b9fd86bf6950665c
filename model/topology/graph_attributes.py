"""What a graph of networkx says of its routers and links: places on the floor plan, latencies; and what it cannot."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.topology.base import TopologyError

#: attribute of a link that is used: its latency in cycles, both ways
LATENCY = "latency_cycles"
MAX_LATENCY = 65535
#: attributes that ask for links of their own, of which hopforge has only the latency in cycles
_NOT_TAKEN = ("latency", "delay", "capacity", "bandwidth")
#: attributes that ask for nothing where they are the same everywhere
_WEIGHTS = ("weight", "cost", "length", "distance")

_INSTEAD = f"of links hopforge knows the {LATENCY}; leave other attributes out"

_Real = int | float | np.integer | np.floating
_Link = tuple[Any, Any, Mapping[str, Any]]


def floor_plan(graph: Any, routers: Mapping[Any, int], name: str) -> NDArray[np.float64] | None:
    """Return the places of routers, float64[router, 2], from their attributes ``x`` and ``y``; None: they have none.

    Parameters
    ----------
    graph : networkx.MultiGraph
        The graph.
    routers : dict
        Node → number of the router.
    name : str
        What errors name.

    Raises
    ------
    TopologyError
        Some routers have a place and others do not, or a place is no finite number.
    """
    there = {node: {"x", "y"} & graph.nodes[node].keys() for node in routers}
    if not any(there.values()):
        return None
    lacking = next((node for node, axes in there.items() if len(axes) < 2), None)
    if lacking is not None:
        what = " and ".join(axis for axis in "xy" if axis not in there[lacking])
        raise TopologyError(name, f"router {lacking} has no {what}; give all routers x and y, or none")
    try:
        position = np.array([[float(graph.nodes[node][axis]) for axis in "xy"] for node in routers])
    except (TypeError, ValueError) as error:
        raise TopologyError(name, "x and y of the routers must be numbers") from error
    if not np.isfinite(position).all():
        raise TopologyError(name, "x and y of the routers must be finite numbers")
    return position[np.argsort(list(routers.values()))]


def link_latencies(graph: Any, routers: Mapping[Any, int], name: str) -> NDArray[np.int64] | None:
    """Return the latencies of links, int64[link, 2] in cycles there and back, in the order of the graph; None: none.

    They are the attribute `LATENCY` of links between routers; 0: as section `router` says.

    Raises
    ------
    TopologyError
        A latency that is no whole number from 1 to 65535, one of a host's link, or an attribute that asks for links of
        different kinds and would not be used.
    """
    links: list[_Link] = []
    of_hosts: list[_Link] = []
    for a, b, keys in graph.edges(data=True):
        (links if a in routers and b in routers else of_hosts).append((a, b, keys))
    _refuse_others(name, links, of_hosts)
    for a, b, keys in of_hosts:
        if LATENCY in keys:
            raise TopologyError(name, f"link {a} {b}: the latency of links to hosts is router.host_latency_cycles")
    if not any(LATENCY in keys for _, _, keys in links):
        return None
    return np.array([[_latency(name, a, b, keys)] * 2 for a, b, keys in links], np.int64)


def _latency(name: str, a: Any, b: Any, keys: Mapping[str, Any]) -> int:
    value = keys.get(LATENCY, 0)
    whole = isinstance(value, _Real) and not isinstance(value, bool) and value == np.floor(value)
    if LATENCY in keys and not (whole and 1 <= value <= MAX_LATENCY):
        raise TopologyError(name, f"link {a} {b}: {LATENCY} must be a whole number, 1 to {MAX_LATENCY}, not {value!r}")
    return int(value)


def _refuse_others(name: str, links: Sequence[_Link], of_hosts: Sequence[_Link]) -> None:
    """Refuse attributes that ask for links of different kinds: hopforge would not use them."""
    for a, b, keys in [*links, *of_hosts]:
        for key in _NOT_TAKEN:
            if key in keys:
                raise TopologyError(name, f"link {a} {b}: {key}={keys[key]!r} is not used; {_INSTEAD}")
    for key in _WEIGHTS:
        given = [_value(keys.get(key)) for _, _, keys in links]
        other = next((value for value in given if value != given[0]), given[0] if given else None)
        if given and other != given[0]:
            raise TopologyError(name, f"links differ in {key} ({given[0]}, {other}), which is not used; {_INSTEAD}")


def _value(value: Any) -> str:
    """Text of a value, the same for equal numbers; an attribute may be anything, an array too."""
    try:
        return repr(float(value)) if isinstance(value, _Real) else repr(value)
    except OverflowError:  # a whole number beyond float64
        return repr(value)
