"""POR and OutFlank on routers of flits: the choice as the definition has it, proved with the VCs that they need."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numba import int64, types

from hopforge.model.config import Config, parse_config
from hopforge.model.config.uses import unused_sections
from hopforge.model.kernel.compile import entry
from hopforge.model.network.core.net_record import NET_RECORD
from hopforge.model.routing.contract.plan import RoutingError
from hopforge.model.routing.grids.intermediate import Grid, Place, detours, profit
from hopforge.model.routing.grids.torus_detours import _ESCAPES, _choose
from hopforge.model.routing.proof.deadlock import DeadlockError, check_routing
from hopforge.sim.run.simulation import Simulation

CREDITS = "buffer_flits: 4, vc_release: credits"


def config(kind: str, radices: tuple[int, ...], routing: str, router: str, more: str = "") -> Config:
    return parse_config(
        f"name: test\ntopology: {{kind: {kind}, radices: {list(radices)}}}\nrouting: {{{routing}}}\n"
        f"router: {{{router}}}\n{more}"
    )


@entry(types.void(NET_RECORD, types.int32[::1], int64[:, ::1]))
def choose_all(net: Any, table: Any, found: Any) -> None:
    for s in range(found.shape[0]):
        for t in range(found.shape[1]):
            found[s, t] = -1 if s == t else _choose(table, net, s, t)


def place_of(router: int, radices: tuple[int, ...]) -> Place:
    place = []
    for k in radices:
        place.append(router % k)
        router //= k
    return tuple(place)


@pytest.mark.parametrize("kind, radices, routing, eta, delta", [
    ("torus", (5, 4), "algorithm: ofr", 2, 2),
    pytest.param("torus", (4, 3, 2), "algorithm: ofr, eta: 0.5", 0.5, 2, marks=pytest.mark.study),
    ("torus", (4, 3), "algorithm: por", 1, 0),
    ("mesh", (5, 4), "algorithm: ofr, eta: 0.25, outflank_distance: 1", 0.25, 1),
])  # fmt: skip
def test_the_choice_is_that_of_the_definition(
    kind: str, radices: tuple[int, ...], routing: str, eta: float, delta: int
) -> None:
    run = Simulation(config(kind, radices, routing, f"vcs: 6, {CREDITS}"), 0.1, 1)
    state, grid = run.state, Grid(radices, kind == "torus", both_ways=True)
    nodes = [place_of(router, radices) for router in range(run.topology.routers)]
    number = {place: router for router, place in enumerate(nodes)}
    ports, vcs, kinds = run.topology.max_ports, 6, [0, 0, 0]
    for seed in range(3):
        generator = np.random.default_rng(seed)
        depth = state["output_vc"]["depth"]
        # of some ports all credits are there: u* = 0, and 0/0
        share = np.repeat(generator.integers(0, 4, len(depth) // vcs), vcs) / 4
        state["output_vc"]["credits"] = depth - (generator.random(len(depth)) * share * (depth + 1)).astype(np.int64)
        found = np.zeros((len(nodes), len(nodes)), np.int64)
        choose_all(state.record[0], run.plan.table, found)
        used = (depth - state["output_vc"]["credits"]).reshape(len(nodes), ports, vcs).sum(axis=2)[:, 1:]
        for s, source in enumerate(nodes):
            least = min(int(used[s, p]) for p in grid.ports(source))
            for t, goal in enumerate(nodes):
                if s == t:
                    continue
                hops = grid.distance(source, goal)

                def worth(q: Place, through: int) -> Fraction:
                    ways = [int(used[s, p]) for p in grid.minimal_ports(source, q)]  # noqa: B023
                    return profit(least, ways, Fraction(str(eta)), hops, through)  # noqa: B023

                best, highest, kind_of = -1, worth(goal, hops), 0
                for one in detours(grid, source, goal, outflank=delta > 0, delta=delta):
                    if worth(one.place, one.hops) > highest:
                        best, highest = number[one.place], worth(one.place, one.hops)
                        kind_of = 1 if one.outflanks else 2
                assert found[s, t] == best
                kinds[kind_of] += 1
    assert kinds[0] > 0
    assert kinds[1] > 0 or delta == 0
    assert kinds[2] > 0 or kind == "mesh"


@pytest.mark.parametrize("kind, radices, router", [
    ("torus", (4, 3), f"vcs: 5, {CREDITS}"),
    ("torus", (4, 4), "vcs: 5, buffer_flits: 5, switching: vct"),
    ("mesh", (4, 3), f"vcs: 3, {CREDITS}"),
])  # fmt: skip
def test_proved_safe_and_all_arrives_under_overload(kind: str, radices: tuple[int, ...], router: str) -> None:
    run = Simulation(config(kind, radices, "algorithm: ofr, eta: 0.5", router, "traffic: {packet_flits: 5}"), 1.0, 3)
    run.advance(3000)
    run.check_conservation()
    assert (run.state["host"]["flits_received"] > 0).all()
    assert int(run.state["packets_dropped"]) == 0


def test_one_escape_for_both_parts_is_found_out() -> None:
    run = Simulation(config("torus", (4, 4), "algorithm: ofr", f"vcs: 5, {CREDITS}"), 0.1, 1)
    table, sound = run.state["table"], [1, 2, 4, 8]  # what the proof goes through
    assert table[_ESCAPES : _ESCAPES + 4].tolist() == sound
    # one escape for both parts; one class for a ring in the first part, and in the second
    for escapes in ([1, 2, 1, 2], [1, 1, 4, 8], [1, 2, 4, 4]):
        table[_ESCAPES : _ESCAPES + 4] = escapes
        with pytest.raises(DeadlockError, match=r"^routing.algorithm ofr can deadlock on the 4x4 torus with 5 VCs; "):
            check_routing(run.topology, run.plan, run.state, "ofr")
    table[_ESCAPES : _ESCAPES + 4] = sound
    check_routing(run.topology, run.plan, run.state, "ofr")


@pytest.mark.parametrize("kind, radices, routing, router, message", [
    ("torus", (4, 4), "algorithm: ofr", "vcs: 4", r"^router.vcs must be at least 5 for .* ofr on a torus, not 4: one"),
    ("mesh", (4, 4), "algorithm: ofr", "vcs: 2", r"^router.vcs must be at least 3 for .* ofr on a mesh, not 2: one"),
    ("mesh", (4, 4), "algorithm: por", "vcs: 5", r"^routing.algorithm por needs a topology of kind torus, not mesh;"),
    ("torus", (8,), "algorithm: ofr", "vcs: 5", r"^topology.radices must have 2 to 4 dimensions for .* ofr, not 1$"),
])  # fmt: skip
def test_what_does_not_fit_is_one_clear_line(
    kind: str, radices: tuple[int, ...], routing: str, router: str, message: str
) -> None:
    with pytest.raises(RoutingError, match=message):
        Simulation(config(kind, radices, routing, router), 0.1, 1)


def test_a_virtual_channel_that_is_free_after_the_tail_is_refused() -> None:
    with pytest.raises(DeadlockError, match=r"set router.vc_release: credits, or router.switching: vct"):
        Simulation(config("torus", (4, 4), "algorithm: ofr", "vcs: 5, vc_release: tail"), 0.1, 1)


def test_keys_of_detours_that_are_not_read_are_told() -> None:
    keys = "eta: 1, outflank_distance: 2"
    for algorithm, model, told in (
        ("ofr", "input_queued", []),
        ("por", "input_queued", ["routing.outflank_distance"]),
        ("star_channel", "input_queued", ["routing.eta", "routing.outflank_distance"]),
        ("ofr", "packet", ["routing.eta", "routing.outflank_distance"]),
    ):
        checked = config("torus", (4, 4), f"algorithm: {algorithm}, {keys}", f"model: {model}")
        assert [key for key in unused_sections(checked, ["net"]) if key.startswith("routing.")] == told
