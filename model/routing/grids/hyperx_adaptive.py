"""Adaptive routing on HyperX with deroutes: DimWAR, OmniWAR, DAL (docs/definitions/any-routing.md).

A deroute goes to a third router of a line in which a packet has still to move. What has been decided follows from where
a packet came in, and for DAL from a bit for each dimension in ``phase``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from hopforge.model.kernel.compile import both
from hopforge.model.network.core.candidates import candidate, candidate_port
from hopforge.model.network.core.draws import draw_below
from hopforge.model.routing.contract.detour_rules import weight_of
from hopforge.model.routing.contract.occupancy import used_credits
from hopforge.model.routing.contract.plan import (
    RoutingError,
    RoutingPlan,
    TooFewVcsError,
    all_vcs,
    need_kind,
    register,
    regular,
    relation,
    vc_range,
)
from hopforge.model.topology import Topology

# table: 0 dimensions, 1 host ports, 2 all VCs, 3 classes, 4 the algorithm, 5 start of the sizes, 6 of the dimensions of
# ports, 7 of the VCs of a class, 8 of the class of a VC
_N, _HOSTS, _ALL, _C, _WHICH, _SIZES, _DIMENSION, _MASK, _CLASS, _FIRST = range(10)
_DIM_WAR, _OMNI_WAR, _DAL = range(3)
#: in place of the dimension of a port: a host's
_NO_DIMENSION = -1


@both()
def _class_now(table: Any, in_port: int, in_vc: int, dimension: int) -> int:
    """Class of the next link: DimWAR: 1 after a deroute in this dimension; else number of the hop."""
    came = table[table[_DIMENSION] + in_port]
    if table[_WHICH] == _DIM_WAR:
        return 1 if came == dimension else 0
    return 0 if came == _NO_DIMENSION else table[table[_CLASS] + in_vc] + 1


@both()
def _may_deroute(table: Any, in_port: int, phase: int, dimension: int, klass: int, hops_left: int) -> bool:
    """Whether a packet may go to a third router of a line."""
    if table[_WHICH] == _DIM_WAR:
        return klass == 0
    if table[_WHICH] == _DAL and phase >> dimension & 1:
        return False
    if table[_WHICH] == _OMNI_WAR and table[table[_DIMENSION] + in_port] == dimension:
        return False
    return hops_left < table[_C] - klass


@both()
def _hops_left(table: Any, router: int, goal: int) -> int:
    """Dimensions in which two routers differ."""
    count = 0
    for i in range(table[_N]):
        size = table[table[_SIZES] + i]
        count += 1 if router % size != goal % size else 0
        router //= size
        goal //= size
    return count


@both()
def _arrival(table: Any, out: Any, host: int) -> int:
    out[0] = candidate(host % table[_HOSTS], table[_ALL])
    return 1


@both()
def _add_line(
    table: Any, out: Any, count: int, router: int, in_port: int, in_vc: int, phase: int, goal: int, deroutes: bool
) -> int:
    """Add the minimal ports of all dimensions that are open, or the deroutes in them."""
    left, here, there, first = _hops_left(table, router, goal), router, goal, table[_HOSTS]
    for i in range(table[_N]):
        size = table[table[_SIZES] + i]
        x, y = here % size, there % size
        if x != y:
            klass = _class_now(table, in_port, in_vc, i)
            mask = table[table[_MASK] + klass]
            direct = y - (1 if y > x else 0)
            if not deroutes:
                out[count] = candidate(first + direct, mask)
                count += 1
            elif _may_deroute(table, in_port, phase, i, klass, left):
                for port in range(size - 1):
                    if port != direct:
                        out[count] = candidate(first + port, mask)
                        count += 1
            if table[_WHICH] == _DIM_WAR:
                return count
        first += size - 1
        here //= size
        there //= size
    return count


def _weighted(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    goal = packet.dst // table[_HOSTS]
    if goal == router:
        return _arrival(table, out, packet.dst)
    minimal = _add_line(table, out, 0, router, in_port, in_vc, packet.phase, goal, False)
    count = _add_line(table, out, minimal, router, in_port, in_vc, packet.phase, goal, True)
    left, best, least, equal = _hops_left(table, router, goal), 0, 0.0, 0
    for k in range(count):
        weight = weight_of(left, used_credits(net, router, candidate_port(out[k])), k >= minimal, memory[0])
        if k == 0 or weight < least:  # a weight may be negative, as `bias` may
            best, least, equal = k, weight, 1
        elif weight == least and (best >= minimal or k < minimal):  # a deroute only if it is strictly better
            equal += 1
            if draw_below(net, router, equal) == 0:
                best = k
    if table[_WHICH] == _DAL and best >= minimal:
        packet.phase |= 1 << table[table[_DIMENSION] + candidate_port(out[best])]
    out[0] = out[best]
    return 1


def _every(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    goal = packet.dst // table[_HOSTS]
    if goal == router:
        return _arrival(table, out, packet.dst)
    count = _add_line(table, out, 0, router, in_port, in_vc, 0, goal, False)
    return _add_line(table, out, count, router, in_port, in_vc, 0, goal, True)


_WORDS = (
    "0 for the first link in a dimension, 1 after a deroute",
    "one for each link, {} dimensions and {} deroutes",
    "one for each link, {} dimensions and {} deroutes",
)


def _plan(topology: Topology, vcs: int, options: dict[str, Any], name: str, which: int) -> RoutingPlan:
    need_kind(topology, name, "hyperx", "fully_connected")
    if options.get("links", "own_first") != "own_first":
        raise RoutingError(f"routing.links: {options['links']} is not for routing.algorithm {name}")
    sizes = [int(size) for size in topology.params.get("sizes", (topology.routers,))]
    n, hosts = len(sizes), int(topology.params["hosts_per_router"])
    deroutes = options.get("deroutes") if which == _OMNI_WAR else None
    count = 2 if which == _DIM_WAR else n + (n if deroutes is None else int(deroutes))
    if vcs < count:
        why = f"it needs {count} classes ({_WORDS[which].format(n, count - n)})"
        raise TooFewVcsError(count, f"for routing.algorithm {name} on the {topology.name}", vcs, why)
    share = [k * vcs // count for k in range(count + 1)]
    masks = [vc_range(share[k], share[k + 1] - 1) for k in range(count)]
    of_vc = [next(k for k in range(count) if masks[k] >> v & 1) for v in range(vcs)]
    dimension = [_NO_DIMENSION] * hosts + [i for i, size in enumerate(sizes) for _ in range(size - 1)]
    starts = np.cumsum([_FIRST, n, len(dimension), count])
    table = [n, hosts, all_vcs(vcs), count, which, *starts.tolist(), *sizes, *dimension, *masks, *of_vc]
    plan = RoutingPlan(
        relation(_weighted), np.array(table, np.int32), max_candidates=sum(sizes) - n,
        phases=1 << n if which == _DAL else 1, random=True, every=relation(_every), one_per_router=True,
        memory=np.array([float(options.get("bias", 0.0))]),
        words=f"{count} of {vcs} virtual channels needed: {_WORDS[which].format(n, count - n)}",
    )  # fmt: skip
    return regular(plan, lambda smaller: _plan(smaller, vcs, options, name, which))


def _preparer(name: str, which: int) -> Callable[..., RoutingPlan]:
    def prepare(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
        return _plan(topology, vcs, options, name, which)

    return prepare


for _name, _number in (("dimwar", _DIM_WAR), ("omniwar", _OMNI_WAR), ("dal", _DAL)):
    register(_name)(_preparer(_name, _number))
