"""The short proof of regular networks: it says what the full proof says, and is not made where it does not hold."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

from hopforge.model.config.simulation import FailedConfig
from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.net_record import ROUTE_SIGNATURE
from hopforge.model.network.settings import RouterParameters
from hopforge.model.routing import ROUTING, RoutingPlan
from hopforge.model.routing.contract.fields_read import fields_read
from hopforge.model.routing.contract.plan import IrregularError, regular
from hopforge.model.routing.proof.deadlock import DeadlockError, check_routing, relation_to_prove
from hopforge.model.routing.proof.reachable import Exploration
from hopforge.model.routing.proof.regular_networks import represent
from hopforge.model.routing.proof.short_proof import _kind_pairs, prove_routing, short_proof
from hopforge.model.topology import Topology
from hopforge.model.topology.aggregation import aggregate
from hopforge.model.topology.failed import without_failed

sys.path.insert(0, str(Path(__file__).parent))
from short_proofs import (
    ARRANGEMENTS,
    DRAGONFLY_VCS,
    Case,
    dragonfly,
    dragonfly_cases,
    dragonfly_shapes,
    exact_kinds,
    grid_cases,
    grid_of,
    hyperx_cases,
    plane_cases,
    prepared,
    tree,
    tree_cases,
    with_entries,
)


def verdicts(case: Case) -> tuple[bool, bool | None]:
    """Full proof; short proof, None: it is not made, which says nothing."""
    plan = case.prepare(case.topology)
    state = case.state(case.topology, plan)
    try:
        short: bool | None = bool(short_proof(case.topology, plan, state, "x", build=case.state))
    except DeadlockError as error:
        assert "can deadlock" in str(error)
        short = False
    except IrregularError:
        short = None
    try:
        check_routing(case.topology, plan, state, "x")
    except DeadlockError as error:
        assert "can deadlock" in str(error)
        return False, short
    return True, short


def some_grid_cases() -> Iterator[Case]:
    return islice(grid_cases(), 1, None, 4)


def some_dragonfly_cases() -> Iterator[Case]:
    return islice(dragonfly_cases(), None, None, 3)


def some_plane_cases() -> Iterator[Case]:
    return plane_cases(((8, 7), (9, 2)))


@pytest.mark.parametrize(
    ("cases", "least_safe", "least_unsafe"),
    [
        pytest.param(grid_cases, 120, 100, marks=pytest.mark.study),
        pytest.param(plane_cases, 50, 80, marks=pytest.mark.study),
        (some_grid_cases, 30, 25), (some_plane_cases, 14, 20), (hyperx_cases, 12, 4),
        pytest.param(dragonfly_cases, 150, 30, marks=pytest.mark.study), (some_dragonfly_cases, 50, 12),
        (tree_cases, 32, 6),
    ],
)  # fmt: skip
def test_says_what_the_full_proof_says(
    cases: Callable[[], Iterator[Case]], least_safe: int, least_unsafe: int
) -> None:
    safe = unsafe = silent = 0
    for case in cases():
        full, short = verdicts(case)
        assert short is None or short == full, f"{case.name}: short {short}, full {full}"
        # what is safe is proved; a routing of ours never needs the whole network
        assert short is not None or "," in case.name or "on VC 0" in case.name, f"{case.name}: no short proof"
        silent += short is None
        safe, unsafe = safe + full, unsafe + (not full)
    assert safe >= least_safe
    assert unsafe >= least_unsafe
    if cases in (plane_cases, some_plane_cases):
        assert silent == unsafe  # narrow grids do not stand in the whole: their deadlocks are left to the full proof
    elif cases is not hyperx_cases:  # to one host alone nothing deadlocks there
        assert silent <= 0.1 * (safe + unsafe)


def pairs(topology: Topology, plan: RoutingPlan, state: Any, destinations: list[int], kinds: Any, count: int) -> Any:
    """Kinds that follow on one another on all ways to some hosts."""
    relation = relation_to_prove(plan)
    exploration = Exploration(plan, relation, state, fields_read(relation), destinations, np.ones(1, np.int64))
    assert exploration.walk() is None
    return _kind_pairs(exploration, [kinds], count)


def sound_cases() -> Iterator[Case]:
    seen = (case for cases in (grid_cases, tree_cases) for case in cases())
    return (case for case in seen if "," not in case.name and "again" not in case.name)


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.study)])
def test_parts_show_all_that_happens_in_the_whole(every: int) -> None:
    """Not the verdict alone: the dependencies of the parts are those of the whole network, kind by kind."""
    compared = 0
    for case in islice(sound_cases(), None, None, every):
        plan = case.prepare(case.topology)
        state = case.state(case.topology, plan)
        found = represent(case.topology, plan, state, case.state)
        whole = pairs(case.topology, plan, state, list(range(case.topology.hosts)), found.kinds, found.count)
        parts = [
            _kind_pairs(exploration, part.kinds, found.count)
            for part in found.parts
            for relation in [relation_to_prove(part.plan)]
            for exploration in [
                Exploration(
                    part.plan, relation, part.state, fields_read(relation), part.destinations, np.ones(1, np.int64)
                )
            ]
            if exploration.walk() is None
        ]
        assert len(parts) == len(found.parts)
        assert exact_kinds(np.concatenate(parts), found.count) == exact_kinds(whole, found.count), case.name
        compared += 1
    assert compared >= 100 / every


def test_narrow_grids_show_at_least_what_happens_in_a_plane() -> None:
    """Also where it can deadlock: all dependencies of the whole are among those that narrow grids are widened to."""
    compared = 0
    for case in some_plane_cases():
        plan = case.prepare(case.topology)
        state = case.state(case.topology, plan)
        found = represent(case.topology, plan, state, case.state)
        whole = pairs(case.topology, plan, state, list(range(case.topology.hosts)), found.kinds, found.count)
        parts = [pairs(p.topology, p.plan, p.state, p.destinations, p.kinds[0], found.count) for p in found.parts]
        assert found.widen is not None
        assert not exact_kinds(whole, found.count) - exact_kinds(found.widen(np.concatenate(parts)), found.count)
        compared += len(whole) > 0
    assert compared >= 40


@pytest.mark.parametrize("name", DRAGONFLY_VCS)
def test_any_host_of_a_full_dragonfly_shows_all_kinds_of_dependencies(name: str) -> None:
    """What the choice of destinations relies on: one is as good as another."""
    compared = 0
    for p, a, h in dragonfly_shapes():
        for arrangement in ARRANGEMENTS:
            topology = dragonfly(p, a, h, arrangement)
            plan = ROUTING[name](topology, DRAGONFLY_VCS[name], {})
            state = Case("", topology, lambda _, plan=plan: plan, RouterParameters(vcs=DRAGONFLY_VCS[name])).state(
                topology, plan
            )
            found = represent(topology, plan, state, None)
            every = [pairs(topology, plan, state, [h], found.kinds, found.count) for h in range(topology.hosts)]
            assert all(np.array_equal(one, every[0]) for one in every), topology.name
            assert len(every[0]) > 0 or a == 1
            compared += len(every)
    assert compared > 250


def test_short_lines_show_all_that_happens_in_a_hyperx() -> None:
    """To one host of a HyperX with lines of four routers the same follows on one another as to all of the whole."""
    compared = 0
    for case in hyperx_cases():
        plan = case.prepare(case.topology)
        state = case.state(case.topology, plan)
        found = represent(case.topology, plan, state, case.state)
        whole = pairs(case.topology, plan, state, list(range(case.topology.hosts)), found.kinds, found.count)
        (part,) = found.parts
        shown = pairs(part.topology, part.plan, part.state, part.destinations, part.kinds[0], found.count)
        assert exact_kinds(shown, found.count) == exact_kinds(whole, found.count), case.name
        compared += len(whole) > 0
    assert compared >= 20


def case_of(topology: Topology, name: str, vcs: int, **router: Any) -> Case:
    return Case("", topology, prepared(name, vcs), RouterParameters(vcs=vcs, **router))


def why(case: Case, plan: RoutingPlan | None = None, **more: Any) -> str:
    """Why there is no short proof."""
    plan = case.prepare(case.topology) if plan is None else plan
    with pytest.raises(IrregularError) as error:
        short_proof(case.topology, plan, case.state(case.topology, plan), "x", build=case.state, **more)
    return str(error.value)


TORUS = (4, 3, 4)


def test_needs_a_whole_network() -> None:
    torus = grid_of("torus", TORUS)
    lost = without_failed(torus, FailedConfig(links=((0, 1),)))
    assert why(case_of(lost, "dor", 2)) == "links have failed"
    # even if nobody says that they have
    assert why(case_of(replace(lost, damaged=False), "dor", 2)) == "ports or links are not those of a torus"
    assert why(case_of(aggregate(torus, 2), "dor", 2)) == "links are aggregated"
    peer = np.array(torus.peer_router)
    peer[[0, 1]] = peer[[1, 0]]
    assert "not those of a torus" in why(case_of(replace(torus, peer_router=peer), "dor", 2))


def test_needs_a_network_that_is_regular() -> None:
    assert why(case_of(grid_of("torus", (5, 4)), "star_channel", 3)).startswith("it needs three dimensions where")
    assert why(case_of(grid_of("torus", (5,)), "dor", 2)) == "it needs two dimensions"
    uneven = dragonfly(1, 4, 2, g=5)
    assert why(case_of(uneven, "dragonfly_min", 2)) == "it needs a*h + 1 = 9 groups, not 5"


def test_needs_short_dimensions_for_ways_over_routers(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of(grid_of("mesh", (7, 2)), "valiant", 2)
    plan = case.prepare(case.topology)
    assert short_proof(case.topology, plan, case.state(case.topology, plan), "x", build=case.state)
    monkeypatch.setattr("hopforge.model.routing.proof.regular_networks._MOST_WAYS_OVER", 14**3 - 1)
    assert why(case) == "a dimension is too long for all ways over a router between"
    monkeypatch.setattr("hopforge.model.routing.proof.plane_kinds.MAX_TURNS", 27)
    assert why(case_of(grid_of("mesh", (7, 2)), "dor", 1)).endswith("there are too many dependencies")


def test_needs_hosts_that_are_alike() -> None:
    case = case_of(grid_of("torus", TORUS), "dor", 2)
    some = np.ones(case.topology.hosts, bool)
    some[3] = False
    assert why(case, hosts=some) == "something fails"
    assert why(case, resends=True) == "something fails"
    masks = np.full(case.topology.hosts, 3)
    masks[5] = 1
    assert "same virtual channels" in why(case, replace(case.prepare(case.topology), inject_mask=masks))


def test_needs_the_relation_and_the_table_that_were_promised() -> None:
    case = case_of(grid_of("torus", TORUS), "dor", 2)
    plan, other = case.prepare(case.topology), ROUTING["valiant"](case.topology, 4, {})
    assert "does not promise" in why(case, replace(plan, regular=None))
    assert "decides around" in why(case, replace(plan, route=other.route))
    assert "decides around" in why(case, replace(plan, every=other.route))
    assert "decides around" in why(case, replace(plan, unguarded=plan))
    assert "table" in why(case, replace(plan, table=plan.table.copy()))


@njit(ROUTE_SIGNATURE)
def _yx_at_one_router(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    """Dimension order on a 4x4x4 mesh; at router 21 (1, 1, 1) dimension 1 comes before dimension 0."""
    here, goal = router, packet.dst
    if here == goal:
        out[0] = candidate(0, 1)
        return 1
    port = -1
    for i in range(3):
        x, y = (here >> (2 * i)) & 3, (goal >> (2 * i)) & 3
        if x != y and (port < 0 or (i == 1 and router == 21)):
            port = 1 + 2 * i + (1 if y < x else 0)
    out[0] = candidate(port, 1)
    return 1


def test_a_promise_that_is_broken_at_one_router_is_found() -> None:
    """The relation is not the same everywhere: no plane of two dimensions shows it, random ways do."""
    topology = grid_of("mesh", (4, 4, 4))
    sound = ROUTING["dor"](topology, 1, {})
    plan = replace(sound, route=_yx_at_one_router)
    case = Case("", topology, lambda _: plan, RouterParameters(vcs=1))
    lie = regular(plan, lambda grid: ROUTING["dor"](grid, 1, {}))
    assert why(case, lie) == "a random way through the whole network is none of those explored"


def test_small_networks_are_explored_whole() -> None:
    case = case_of(grid_of("torus", TORUS), "dor", 2)
    plan = case.prepare(case.topology)
    state = case.state(case.topology, plan)
    found = check_routing(case.topology, plan, state, "dor")
    assert found > 100
    said = prove_routing(case.topology, plan, state, "dor")
    assert said == f"on the whole network: {found:,} dependencies of channels"
    said = prove_routing(case.topology, plan, state, "dor", build=case.state, whole=0)
    assert said.startswith("by symmetry: every two of its 3 dimensions are explored as a torus of their own (4x3, 4x4")


def test_what_has_no_short_proof_gets_the_full_one() -> None:
    case = case_of(dragonfly(1, 4, 2, g=5), "dragonfly_min", 2)
    plan = case.prepare(case.topology)
    state = case.state(case.topology, plan)
    assert prove_routing(case.topology, plan, state, "x", whole=0).startswith("on the whole network")


def test_what_is_too_large_is_refused_at_once_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    torus = grid_of("torus", TORUS)
    case = case_of(without_failed(torus, FailedConfig(links=((0, 1),))), "dor", 2)
    plan = case.prepare(case.topology)
    state = case.state(case.topology, plan)
    # 48 destinations, and packets begin at 48 routers
    monkeypatch.setattr("hopforge.model.routing.proof.reachable.MAX_EVALUATIONS", 48 * 48 - 1)
    monkeypatch.setattr("hopforge.model.routing.proof.reachable.walk", None)
    with pytest.raises(DeadlockError, match=r"not proved free of deadlock.*no short proof: links have f"):
        prove_routing(case.topology, plan, state, "dor", whole=0)
    monkeypatch.setattr("hopforge.model.routing.proof.reachable.MAX_EVALUATIONS", 48 * 48)
    with pytest.raises(TypeError, match="NoneType"):
        prove_routing(case.topology, plan, state, "dor", whole=0)


def test_an_unsafe_part_is_named() -> None:
    unsafe = with_entries(prepared("dor", 2), {5: 1})  # both classes on VC 0
    case = Case("", grid_of("torus", (5, 5, 5)), unsafe, RouterParameters(vcs=2))
    plan = case.prepare(case.topology)
    with pytest.raises(DeadlockError, match=r"can deadlock on the 5x5 torus .*same happens in the 5x5x5 torus"):
        prove_routing(case.topology, plan, case.state(case.topology, plan), "x", build=case.state, whole=0)


def test_state_is_put_back() -> None:
    for case in (case_of(dragonfly(1, 2, 2), "valiant_node", 4), case_of(tree(3, 2), "anca", 2)):
        plan = case.prepare(case.topology)
        state = case.state(case.topology, plan)
        before = {name: array.copy() for name, array in state.arrays.items()}
        short_proof(case.topology, plan, state, "x")
        assert all(np.array_equal(array, state.arrays[name]) for name, array in before.items())
        assert int(state["choices"]) == 0
