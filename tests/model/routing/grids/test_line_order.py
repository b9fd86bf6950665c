"""BookSim's routing on lines and trees: each rule by its definition, proved, and the proof's relation gives no less."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.routing import RoutingError
from hopforge.model.routing.contract.fields_read import fields_read
from hopforge.model.routing.grids.lines import EXPRESS, lines_of
from hopforge.model.routing.proof.deadlock import DeadlockError, check_routing
from hopforge.model.routing.proof.interpreted_reachable import InterpretedExploration
from hopforge.model.routing.proof.reachable import Exploration
from hopforge.model.topology.configured import configured_network
from hopforge.sim.run.simulation import Simulation

SQUARE = "hyperx, sizes: [3, 3]"
#: a 4 × 4 mesh with links between border routers two further, by hand: edges of the sides x = 0, x = 3, y = 0, y = 3
BORDER = [(0, 8), (4, 12), (3, 11), (7, 15), (0, 2), (1, 3), (12, 14), (13, 15)]
GRID = [(r, r + 1) for r in range(16) if r % 4 < 3] + [(r, r + 4) for r in range(12)]


def config(algorithm: str, topology: str = SQUARE, vcs: int = 4, more: str = "") -> Config:
    return parse_config(
        f"name: x\ntopology: {{kind: {topology}}}\nrouter: {{vcs: {vcs}}}\nrouting: {{algorithm: {algorithm}}}\n{more}"
    )


def graph(folder: Path, edges: list[tuple[int, int]]) -> str:
    (folder / "g.txt").write_text("".join(f"{a} {b}\n" for a, b in edges))
    return f"edge_list, file: {folder / 'g.txt'}"


@pytest.mark.parametrize(("algorithm", "vcs", "topology"), [
    ("booksim_dor", 1, "hyperx, sizes: [3, 2, 2]"),
    ("booksim_xy_yx", 2, "hyperx, sizes: [3, 2], hosts_per_router: 2"),
    ("booksim_adaptive_xy_yx", 2, "mesh, radices: [3, 3]"),
    ("booksim_romm", 2, "mesh, radices: [3, 3]"),
    ("booksim_valiant", 2, "hyperx, sizes: [3, 2]"),
    ("booksim_ugal", 2, "hyperx, sizes: [2, 3]"),
    ("booksim_ugal_xy_yx", 4, "hyperx, sizes: [2, 3]"),
    ("booksim_ugal_pni", 4, "hyperx, sizes: [2, 2], hosts_per_router: 2"),
    ("booksim_nca", 1, "fat_tree, k: 2, n: 2"),
    ("booksim_val_by_hop", 4, "hyperx, sizes: [2, 2]"),
])  # fmt: skip
def test_proved_and_the_relation_of_the_proof_gives_all_that_route_gives(
    algorithm: str, vcs: int, topology: str
) -> None:
    run = Simulation(config(algorithm, topology, vcs), 0.1, 1, check=False)
    assert check_routing(run.topology, run.plan, run.state, algorithm) > 10
    hosts, one = list(range(run.topology.hosts)), np.ones(1, np.int64)
    if run.plan.every is None:
        assert algorithm == "booksim_dor"  # one candidate: it is its own
        return
    plan = replace(run.plan, phases=9)
    answers = InterpretedExploration(plan, plan.route, run.state, fields_read(plan.route), hosts, one)
    declared = Exploration(plan, plan.every, run.state, fields_read(plan.every), hosts, one)
    assert answers.walk() is None
    assert declared.walk() is None
    found, allowed = (set(zip(*(a.tolist() for a in each.edges()), strict=True)) for each in (answers, declared))
    assert found
    assert found <= allowed


@pytest.mark.parametrize(("algorithm", "links"), [
    # mean links of a packet on 3 × 3 routers, uniform: 2/3 for each dimension
    ("booksim_dor", 4 / 3), ("booksim_xy_yx", 4 / 3), ("booksim_adaptive_xy_yx", 4 / 3),
    # two parts of 4/3, less what is saved: all of it where the packet stays in its router (1 of 9), and the two links
    # to the drawn router and back where the destination is passed on the way: in the source's row (2/9), the drawn
    # router in its column (1/3) but not itself (2/3)
    ("booksim_valiant", 8 / 3 - 1 / 9 * 8 / 3 - 2 * (2 / 9) * (1 / 3) * (2 / 3)),
])  # fmt: skip
def test_links_of_a_packet(algorithm: str, links: float) -> None:
    run = Simulation(config(algorithm), 0.2, 1)
    run.advance(20000)
    assert int(run.state["hops_sum"]) / int(run.state["measured"]) == pytest.approx(links + 1, rel=0.02)


def test_val_takes_a_detour_even_inside_a_router() -> None:
    # complete graph: the drawn router is neither end, so every packet takes two links; none stays in its router
    run = Simulation(config("booksim_val_by_hop", "fully_connected, routers: 4, hosts_per_router: 2"), 0.1, 1)
    run.advance(5000)
    assert int(run.state["hops_sum"]) == 3 * int(run.state["measured"]) > 1000


def test_the_cheapest_of_four_is_minimal_in_an_idle_network() -> None:
    run = Simulation(config("booksim_ugal_four_by_hop", "hyperx, sizes: [3, 3]"), 0.01, 1)  # proved before it runs
    run.advance(20000)
    # 4/3 links; nothing is queued, so both ways cost nothing
    assert int(run.state["hops_sum"]) / int(run.state["measured"]) == pytest.approx(7 / 3, rel=0.03)


def test_any_virtual_channel_on_a_ring_is_not_proved() -> None:
    with pytest.raises(DeadlockError, match="booksim_val can deadlock"):
        Simulation(config("booksim_val", "fully_connected, routers: 4"), 0.1, 1)


def test_ugal_is_minimal_in_an_idle_network_and_spreads_a_permutation() -> None:
    more = "traffic: {pattern: destinations, destinations: [4, 5, 3, 7, 8, 6, 1, 2, 0]}\n"
    idle, busy = (Simulation(config("booksim_ugal", vcs=4, more=more), load, 1) for load in (0.01, 1.0))
    for run in (idle, busy):
        run.advance(5000)
    routers = [int(run.state["hops_sum"]) / int(run.state["measured"]) for run in (idle, busy)]
    assert routers[0] == pytest.approx(3, rel=0.01)  # all are two links away
    assert routers[1] > 3.02


def test_express_links_are_recognised_and_taken_from_border_routers_only(tmp_path: Path) -> None:
    topology = configured_network(config("booksim_dor", graph(tmp_path, GRID + BORDER)))
    lines = lines_of(topology, "booksim_dor")
    assert (lines.kind, lines.sizes) == (EXPRESS, (4, 4))
    peer = topology.peer_router
    step = {(router, d, goal): int(peer[router, lines.port[router, d, goal]]) for router in range(16)
            for d in range(2) for goal in range(4) if lines.port[router, d, goal] >= 0}  # fmt: skip
    assert step[0, 0, 3] == 2  # bottom row: three steps remain
    assert step[0, 0, 1] == 1
    assert step[4, 0, 3] == 5  # not a border row
    assert step[3, 1, 2] == 11  # right column
    assert step[1, 1, 3] == 5


@pytest.mark.parametrize(("algorithm", "topology", "vcs", "message"), [
    ("booksim_xy_yx", "torus, radices: [4, 4]", 4, "needs a mesh, a hyperx, or a graph of one .*, not 4x4 torus"),
    ("booksim_ugal", "mesh, radices: [4, 4]", 4, "needs lines whose routers are all linked, not 4x4 mesh"),
    ("booksim_romm", SQUARE, 4, "needs a topology of kind mesh, not hyperx"),
    ("booksim_ugal_pni", "hyperx, sizes: [2, 3], hosts_per_router: 2", 8, "as many hosts at every router as"),
    ("booksim_ugal_pni", "hyperx, sizes: [3, 3], hosts_per_router: 2", 8, "not 2 to 2 hosts and lines of 3, 3"),
    ("booksim_ugal_pni", "hyperx, sizes: [3, 3], hosts_per_router: 3", 4, "router.vcs must be at least 6 for .* not 4"),
    ("booksim_ugal_xy_yx", SQUARE, 6, "router.vcs must be a multiple of 4 for .* booksim_ugal_xy_yx, not 6"),
])  # fmt: skip
def test_what_does_not_fit_is_one_line(algorithm: str, topology: str, vcs: int, message: str) -> None:
    with pytest.raises(RoutingError, match=message):
        Simulation(config(algorithm, topology, vcs), 0.1, 1)


def test_a_mesh_with_a_missing_link_is_no_mesh(tmp_path: Path) -> None:
    with pytest.raises(RoutingError, match="needs a mesh"):
        Simulation(config("booksim_dor", graph(tmp_path, GRID[1:])), 0.1, 1)
