"""Small regular networks with safe and unsafe routing, on which the short proof is compared with the full one."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import DragonflyConfig, FatTreeConfig, HyperXConfig, MeshConfig, TorusConfig
from hopforge.model.network.build import build_net
from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.net_record import ROUTE_SIGNATURE
from hopforge.model.network.core.state import NetState
from hopforge.model.network.settings import RouterParameters, SourceParameters, Tables
from hopforge.model.routing import ROUTING, RoutingPlan
from hopforge.model.routing.contract.plan import regular
from hopforge.model.routing.dragonflies.ways import (
    P,
    add_global,
    add_local,
    add_minimal,
    group_of,
    port_to_host,
    router_of,
)
from hopforge.model.routing.grids import grid
from hopforge.model.topology import Topology, build

WIDE = AddressConfig(width_bits=48, chunk_bits=4)
ARRANGEMENTS = ("absolute", "relative", "palmtree")
DRAGONFLY_VCS = {"dragonfly_min": 2, "valiant_group": 3, "ugal_group": 3, "valiant_node": 4, "ugal_node": 4, "par": 5}
Prepare = Callable[[Topology], RoutingPlan]


class Case(NamedTuple):
    """A network, how its routing is prepared, and its routers."""

    name: str
    topology: Topology
    prepare: Prepare
    router: RouterParameters

    def state(self, topology: Topology, plan: RoutingPlan) -> NetState:
        tables = Tables(plan.table, plan.memory, max_candidates=plan.max_candidates, inject_mask=plan.inject_mask)
        return build_net(topology, self.router, SourceParameters(), tables, 1)


def grid_of(kind: str, radices: tuple[int, ...], hosts: int = 1) -> Topology:
    section = {"mesh": MeshConfig, "torus": TorusConfig}[kind]
    return build(section(kind=kind, radices=radices, hosts_per_router=hosts), WIDE)  # type: ignore[arg-type]


def dragonfly(p: int, a: int, h: int, arrangement: str = "absolute", **more: Any) -> Topology:
    return build(DragonflyConfig(kind="dragonfly", p=p, a=a, h=h, arrangement=arrangement, **more), WIDE)  # type: ignore[arg-type]


def tree(k: int, n: int) -> Topology:
    return build(FatTreeConfig(kind="fat_tree", k=k, n=n), WIDE)


def with_entries(prepare: Prepare, entries: dict[int, Any]) -> Prepare:
    """Prepare an algorithm whose table has other entries; a callable is given the old table."""

    def changed(topology: Topology) -> RoutingPlan:
        plan = prepare(topology)
        table = plan.table.copy()
        for place, value in entries.items():
            table[place] = value(plan.table) if callable(value) else value
        return regular(replace(plan, table=table), changed)

    return changed


def with_relation(prepare: Prepare, route: Any) -> Prepare:
    """Prepare an algorithm that has another relation."""

    def changed(topology: Topology) -> RoutingPlan:
        plan = prepare(topology)
        return regular(replace(plan, route=route, every=None, max_candidates=64), changed)

    return changed


def prepared(name: str, vcs: int, **options: Any) -> Prepare:
    return lambda topology: ROUTING[name](topology, vcs, options)


# --- grids


def _grids() -> Iterator[Topology]:
    for kind in ("torus", "mesh"):
        for radices in ((2, 3, 4), (4, 3, 2), (4, 4, 4), (5, 2, 3), (3, 5, 4), (6, 1, 3), (3, 2, 3, 2), (1, 4, 2, 5)):
            yield grid_of(kind, radices, 2 if radices == (2, 3, 4) else 1)


def _dor_plans(kind: str) -> Iterator[tuple[str, Prepare, int]]:
    rules = product(("dateline", "fixed"), ("plus", "random", "key")) if kind == "torus" else [("dateline", "plus")]
    for rule, ties in rules:
        sound = prepared("dor", 2, vc_rule=rule, ties=ties)
        yield f"dor {rule} {ties}", sound, 2
        if kind == "torus":
            yield f"dor {rule} {ties}, one class", with_entries(sound, {grid.CLASS1: 1}), 2
            yield f"dor {rule} {ties}, shared", with_entries(sound, {grid.CLASS0: 3, grid.CLASS1: 3}), 2


def _valiant_plans(kind: str) -> Iterator[tuple[str, Prepare, int]]:
    vcs = 4 if kind == "torus" else 2
    sound = prepared("valiant", vcs)
    first = grid.FREE0
    yield "valiant", sound, vcs
    yield (
        "valiant, both parts on the same",
        with_entries(sound, {first + 2: lambda t: t[first], first + 3: lambda t: t[first + 1]}),
        vcs,
    )
    yield "valiant, no dateline", with_entries(sound, {first + 1: lambda t: t[first]}), vcs


def _star_plans(kind: str) -> Iterator[tuple[str, Prepare, int]]:
    sound = prepared("star_channel", 3)
    yield "star", sound, 3
    yield "star, one class", with_entries(sound, {grid.CLASS0: 1, grid.CLASS1: 1}), 3
    yield "star, classes exchanged", with_entries(sound, {grid.CLASS0: 2, grid.CLASS1: 1}), 3
    yield "star, escape for all", with_entries(sound, {grid.ADAPTIVE: 7}), 3


def grid_cases() -> Iterator[Case]:
    for topology in _grids():
        for plans in (_dor_plans, _valiant_plans, _star_plans):
            for name, prepare, vcs in plans(topology.kind):
                ways: list[dict[str, Any]] = [{}]
                if plans is _star_plans:
                    ways = [{}, {"vc_release": "credits"}, {"switching": "vct"}]
                if plans is _valiant_plans and topology.routers > 60:
                    continue
                for way in ways:
                    label = f"{topology.name}: {name} {way}"
                    yield Case(label, topology, prepare, RouterParameters(vcs=vcs, **way))


PLANES = ((8, 7), (7, 9), (9, 2), (3, 10), (8, 8), (12, 1))


def plane_cases(planes: Sequence[tuple[int, int]] = PLANES) -> Iterator[Case]:
    """Grids of two dimensions, of which narrow ones are explored; escapes have no short proof there."""
    for kind, radices in product(("torus", "mesh"), planes):
        topology = grid_of(kind, radices, 2 if radices == (9, 2) else 1)
        for plans in (_dor_plans, _valiant_plans):
            for name, prepare, vcs in plans(kind):
                if plans is _dor_plans or topology.routers <= 30:
                    yield Case(f"{topology.name}: {name}", topology, prepare, RouterParameters(vcs=vcs))


# --- dragonflies


@njit(ROUTE_SIGNATURE)
def _minimal_on_vc0(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    out[0] = candidate(port_to_host(table, router, packet.dst, packet.dst), 1)
    return 1


@njit(ROUTE_SIGNATURE)
def _around_on_vc0(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    """Go anywhere from the source router, then minimal."""
    goal = group_of(table, router_of(table, packet.dst))
    count = add_minimal(table, out, router, packet.dst, 1, False)
    if in_port < table[P] and group_of(table, router) != goal:
        count = add_local(table, out, count, router, goal, 0)
        count = add_global(table, out, count, router, goal, 0)
    return count


def dragonfly_shapes() -> list[tuple[int, int, int]]:
    """(p, a, h): the number of groups is a·h + 1."""
    return [(1, 1, 1), (1, 1, 3), (1, 2, 1), (2, 2, 2), (1, 3, 1), (1, 2, 3), (1, 4, 1), (1, 3, 2)]


def dragonfly_cases() -> Iterator[Case]:
    for (p, a, h), arrangement in product(dragonfly_shapes(), ARRANGEMENTS):
        topology = dragonfly(p, a, h, arrangement)
        for name, vcs in DRAGONFLY_VCS.items():
            sound = prepared(name, vcs)
            router = RouterParameters(vcs=vcs)
            yield Case(f"{topology.name}: {name}", topology, sound, router)
        for name, unsafe in (("minimal on VC 0", _minimal_on_vc0), ("around on VC 0", _around_on_vc0)):
            prepare = with_relation(prepared("dragonfly_min", 2), unsafe)
            yield Case(f"{topology.name}: {name}", topology, prepare, RouterParameters(vcs=2))


# --- HyperX


def hyperx_of(*sizes: int) -> Topology:
    return build(HyperXConfig(kind="hyperx", sizes=sizes), WIDE)


@njit(ROUTE_SIGNATURE)
def _any_order(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    """Any open dimension of a HyperX, on VC 0; the table is that of `dor`."""
    hosts = table[1]
    goal = packet.dst // hosts
    if goal == router:
        out[0] = candidate(packet.dst - goal * hosts, 1)
        return 1
    here, first, count = router, hosts, 0
    for i in range(table[0]):
        size = table[3 + i]
        x, y = here % size, goal % size
        if x != y:
            out[count] = candidate(first + y - (1 if y > x else 0), 1)
            count += 1
        first += size - 1
        here //= size
        goal //= size
    return count


def _on_the_same(prepare: Prepare) -> Prepare:
    """Prepare an adaptive algorithm of HyperX whose first two classes have the same VCs."""

    def changed(topology: Topology) -> RoutingPlan:
        plan = prepare(topology)
        table = plan.table.copy()
        table[table[7] + 1] = table[table[7]]
        return regular(replace(plan, table=table), changed)

    return changed


def hyperx_cases() -> Iterator[Case]:
    for sizes in ((2, 3), (5, 3), (6,)):
        topology, n = hyperx_of(*sizes), len(sizes)
        plans: list[tuple[str, Prepare, int]] = [("dor", prepared("dor", 1), 1)]
        plans.append(("dor, in any order", with_relation(prepared("dor", 1), _any_order), 1))
        for name, vcs in (("dimwar", 2), ("omniwar", 2 * n), ("dal", 2 * n)):
            sound = prepared(name, vcs)
            plans.append((name, sound, vcs))
            plans.append((f"{name}, classes on the same", _on_the_same(sound), vcs))
        for label, prepare, vcs in plans:
            yield Case(f"{topology.name}: {label}", topology, prepare, RouterParameters(vcs=vcs))


# --- trees


@njit(ROUTE_SIGNATURE)
def _up_again(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    """Offer all ports to other switches, and the host where it is."""
    k, levels, width = table[0], table[1], table[3]
    level = router // width
    if level == 0 and packet.dst // k == router:
        out[0] = candidate(packet.dst % k, 1)
        return 1
    count = 0
    for port in range(k if level == 0 else 0, 2 * k if level < levels else k):
        out[count] = candidate(port, 1)
        count += 1
    return count


def tree_cases() -> Iterator[Case]:
    for k, n in ((2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1), (5, 1), (4, 2)):
        topology = tree(k, n)
        for name, options in (("d_mod_k", {}), ("nca", {}), ("nca", {"ties": "random"}), ("anca", {})):
            yield Case(f"{topology.name}: {name} {options}", topology, prepared(name, 2, **options), RouterParameters())
        astray = with_relation(prepared("nca", 2), _up_again)
        yield Case(f"{topology.name}: up again", topology, astray, RouterParameters())


def exact_kinds(values: Any, count: int) -> set[tuple[int, int]]:
    """Pairs of kinds from their numbers, for messages."""
    return set(zip(*(part.tolist() for part in np.divmod(values, count)), strict=True))
