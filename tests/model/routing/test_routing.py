"""Every shipped routing algorithm: proved safe, delivers, minimal where it says so; a user's own file."""

import itertools
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from hopforge.model.config import Config, load_config, parse_config
from hopforge.model.network.core.user_code import UserCodeError
from hopforge.model.routing import RoutingError
from hopforge.model.routing.graphs.graph import distances
from hopforge.model.routing.grids import grid
from hopforge.model.topology import build
from hopforge.sim.run.simulation import Simulation

MESH = "topology: {kind: mesh, radices: [4, 3]}"
TORUS = "topology: {kind: torus, radices: [5, 4]}"
CONFIGS = Path(__file__).parents[3] / "configs"


def config(*lines: str) -> Config:
    return parse_config("\n".join(("name: test", *lines)))


@pytest.mark.parametrize("lines", [
    [MESH, "routing: {algorithm: dor}", "router: {vcs: 1}"],
    [TORUS, "routing: {algorithm: dor, vc_rule: fixed, ties: random}", "router: {vcs: 2}"],
    [TORUS, "routing: {algorithm: dor}", "router: {vcs: 2}"],
    [TORUS, "routing: {algorithm: dor, vc_rule: balanced, ties: random}", "router: {vcs: 2}"],
    [MESH, "routing: {algorithm: star_channel}", "router: {vcs: 2, vc_release: credits}"],
    [TORUS, "routing: {algorithm: star_channel}", "router: {vcs: 3, vc_release: credits}"],
    [MESH, "routing: {algorithm: valiant}", "router: {vcs: 2}"],
    [TORUS, "routing: {algorithm: valiant}", "router: {vcs: 4}"],
    ["topology: {kind: fat_tree, k: 3, n: 2}", "routing: {algorithm: d_mod_k}", "router: {vcs: 1}"],
    ["topology: {kind: fat_tree, k: 2, n: 3}", "routing: {algorithm: nca}", "router: {vcs: 1}"],
    ["topology: {kind: fat_tree, k: 3, n: 2}", "routing: {algorithm: nca, ties: random}", "router: {vcs: 1}"],
    ["topology: {kind: fat_tree, k: 3, n: 2}", "routing: {algorithm: anca}", "router: {vcs: 1}"],
    ["topology: {kind: dragonfly, p: 2, a: 4, h: 2}", "routing: {algorithm: dragonfly_min}", "router: {vcs: 2}"],
    ["topology: {kind: dragonfly, p: 2, a: 4, h: 2}", "routing: {algorithm: shortest}", "router: {vcs: 3}"],
    [TORUS, "routing: {algorithm: up_down}", "router: {vcs: 1}"],
    [TORUS, "routing: {algorithm: shortest_escape}", "router: {vcs: 2, vc_release: credits}"],
], ids=" ".join)  # fmt: skip
def test_shipped_routing_is_proved_safe_and_delivers_under_overload(lines: list[str]) -> None:
    run = Simulation(config(*lines, "traffic: {packet_flits: 5}"), 1.0, 3)
    run.advance(4000)
    run.check_conservation()
    assert (run.state["host"]["flits_received"] > 0).all()
    assert int(run.state["packets_dropped"]) == 0


@pytest.mark.parametrize("radices", [(2,), (3,), (8,), (9,), (4, 7)])
def test_balanced_classes_follow_the_edges_that_a_packet_crosses(
    monkeypatch: pytest.MonkeyPatch, radices: tuple[int, ...]
) -> None:
    """Two edges of a ring of k are marked: from k - 1 to 0 (class 1) and from (k - 1) // 2 to the next (class 0)."""
    coin = 7
    monkeypatch.setattr(grid, "draw_below", lambda net, router, below: coin)
    found = config(f"topology: {{kind: torus, radices: {list(radices)}}}")
    routers = build(found.topology, found.address)
    table = grid.prepare_dor(routers, 2, {"vc_rule": "balanced"}).table
    stride = 1
    for dimension, k in enumerate(radices):
        for here, goal, down in itertools.product(range(k), range(k), (0, 1)):
            steps = (here - goal if down else goal - here) % k
            if not 0 < 2 * steps <= k:
                continue
            crossed = {(here + step * (1 - 2 * down) - down) % k for step in range(steps)}  # an edge: its lower end
            expected = 1 if k - 1 in crossed else 0 if (k - 1) // 2 in crossed else coin
            packet = SimpleNamespace(dst=goal * stride)
            port = int(table[grid.HOSTS]) + 2 * dimension + down
            assert grid._balanced_class.py_func(here * stride, port, packet, None, table) == expected
        stride *= k


def test_minimal_routing_takes_shortest_paths() -> None:
    star_channel = [TORUS, "routing: {algorithm: star_channel}", "router: {vc_release: credits}"]
    for lines in ([TORUS], star_channel, [TORUS, "routing: {algorithm: shortest}"]):
        run = Simulation(config(*lines), 0.05, 1)
        run.advance(20000)
        distance = distances(run.topology)
        # uniform traffic: mean routers visited = mean distance + 1
        assert int(run.state["hops_sum"]) / int(run.state["measured"]) == pytest.approx(distance.mean() + 1, rel=0.02)


@pytest.mark.parametrize("routing, spread", [("nca, ties: random", 0.03), ("anca", 0.03)])
def test_ways_up_that_are_drawn_carry_equal_shares(routing: str, spread: float) -> None:
    run = Simulation(config("topology: {kind: fat_tree, k: 3, n: 2}", f"routing: {{algorithm: {routing}}}"), 0.4, 1)
    run.advance(20000)
    flits = run.state["output_port"]["flits"].reshape(-1, run.topology.max_ports)
    up = flits[:18, 3:6]  # levels 0 and 1; level l: 27 hosts, of which 3^(l+1) stand below
    assert up.mean(axis=1)[:9] == pytest.approx(0.4 * 20000 * 24 / 27, rel=0.05)
    assert up.mean(axis=1)[9:] == pytest.approx(0.4 * 20000 * 18 / 27, rel=0.05)
    assert up.std(axis=1).max() / up.mean() < spread


def test_networks_and_vcs_that_do_not_fit_are_one_clear_line() -> None:
    with pytest.raises(RoutingError, match=r"^router.vcs must be at least 2 for .* dor .*, not 1: two of dim"):
        Simulation(config(TORUS, "router: {vcs: 1}"), 0.1, 1)
    with pytest.raises(RoutingError, match=r"^routing.algorithm d_mod_k needs a topology of kind fat_tree, not mesh; "):
        Simulation(config(MESH, "routing: {algorithm: d_mod_k}"), 0.1, 1)
    with pytest.raises(RoutingError, match=r"^routing.algorithm must be one of anca, booksim_adapt.* not nonsense$"):
        Simulation(config(MESH, "routing: {algorithm: nonsense}"), 0.1, 1)
    with pytest.raises(RoutingError, match=r"^routing.root must be a router from 0 to 11, not 12$"):
        Simulation(config(MESH, "routing: {algorithm: up_down, root: 12}"), 0.1, 1)


@pytest.mark.parametrize("text, message", [
    ("1 / 0", r"cannot be run: ZeroDivisionError: division by zero$"),
    ("x = 1", r"defines no prepare$"),
    ("def prepare(*_): return 3", r"prepare must return a RoutingPlan, not int$"),
])  # fmt: skip
def test_a_file_that_is_no_routing_algorithm_is_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "broken_rule.py").write_text(text)
    checked = parse_config(f"name: x\n{MESH}\nrouting: {{algorithm: file, file: broken_rule.py}}", folder=tmp_path)
    with pytest.raises(UserCodeError, match=message):
        Simulation(checked, 0.1, 1)


def test_the_worked_example_routes_west_first_and_keeps_its_pattern() -> None:
    run = Simulation(load_config(CONFIGS / "own_rules.yml"), 0.04, 1, log_events=300000)
    run.advance(4000)
    run.check_conservation()
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    packets, heads = log[:, 4], (log[:, 5] & 1) == 1
    # every fourth packet of a host goes to host 0, the others to the host opposite
    arrived = log[(log[:, 1] == 3) & heads]
    host, number = arrived[:, 4] >> 40, arrived[:, 4] & ((1 << 40) - 1)
    assert len(arrived) > 3000
    assert np.array_equal(arrived[:, 2], np.where(number % 4 == 0, 0, 63 - host))
    # grants of a head, in order: once a packet has gone another way, it never goes west (output port 2)
    grants = log[(log[:, 1] == 0) & heads]
    port = grants[:, 3] // 2 % run.topology.max_ports
    turned: set[int] = set()
    both = set()
    for packet, way in zip(grants[:, 4].tolist(), port.tolist(), strict=True):
        assert not (way == 2 and packet in turned)
        if way in (1, 3, 4):
            turned.add(packet)
        both.add(way)
    assert both == {0, 1, 2, 3, 4}
    assert len(packets) < 300000  # the log was long enough
