"""`hopforge import booksim`: networks and their routing; latencies and hops beside BookSim's own."""

import sys
from pathlib import Path

import pytest

from hopforge.model.config import load_config
from hopforge.model.routing.graphs.booksim_min import first_ports
from hopforge.model.topology.configured import configured_network
from hopforge.sim.booksim.grammar import BooksimError
from hopforge.sim.booksim.translate import translate

sys.path.insert(0, str(Path(__file__).parent))
from booksim_cases import BUTTERFLY, FOUR, MESH, ROUTER, run, sections


def test_balanced_halves_of_a_torus(tmp_path: Path) -> None:
    found = sections(tmp_path, "routing_function = dim_order_bal;")
    assert found["routing"] == {"algorithm": "dor", "vc_rule": "balanced", "ties": "random"}


@pytest.mark.parametrize(("vcs", "rate", "latency", "accepted"), [
    (2, 0.2, 35.35, 0.2), (2, 0.24, 38.96, 0.24), (4, 0.5, 41.82, 0.5), (2, 0.5, None, 0.2546),
])
def test_balanced_halves_take_as_long_as_in_booksim(
    tmp_path: Path, vcs: int, rate: float, latency: float | None, accepted: float
) -> None:
    """Means of two runs of BookSim 2, 8×8 torus, `vc_buf_size = 8`, `sample_period = 2000`, seeds 1 and 2."""
    text = f"routing_function = dim_order_bal; traffic = uniform; vc_buf_size = 8; num_vcs = {vcs};"
    result = run(tmp_path, text, rate)
    assert result.accepted == pytest.approx(accepted, rel=0.02)
    if latency is not None:
        assert result.latency == pytest.approx(latency, rel=0.02)


def test_adaptive_orders_are_decided_where_booksim_does(tmp_path: Path) -> None:
    """Routes that are looked up one hop ahead are decided at the host."""
    found = sections(tmp_path, MESH, "routing_function=adaptive_xy_yx")
    assert found["routing"] == {"algorithm": "booksim_adaptive_xy_yx", "decision": "host"}
    found = sections(tmp_path, MESH, "routing_function=adaptive_xy_yx", "routing_delay=1")
    assert found["routing"] == {"algorithm": "booksim_adaptive_xy_yx"}


def test_anca_is_decided_where_booksim_does(tmp_path: Path) -> None:
    tree = f"topology = fattree; k = 4; n = 3; routing_function = anca; {ROUTER}"
    assert sections(tmp_path, tree)["routing"] == {"algorithm": "anca", "decision": "ahead"}
    assert sections(tmp_path, tree, "routing_delay=1")["routing"] == {"algorithm": "anca"}


def test_shares_of_destinations_need_as_many_terminals_as_routers_of_a_line(tmp_path: Path) -> None:
    pni = f"{BUTTERFLY} routing_function = ugal_pni;"
    assert sections(tmp_path, pni, "num_vcs=8")["routing"] == {"algorithm": "booksim_ugal_pni", "decision": "host"}
    with pytest.raises(BooksimError, match="num_vcs = 6: must be 8 to 16"):
        sections(tmp_path, pni, "num_vcs=6")
    with pytest.raises(BooksimError, match="num_vcs = 9: the classes of BookSim's routing overlap unless"):
        sections(tmp_path, pni, "num_vcs=9")
    with pytest.raises(BooksimError, match="c = 1: BookSim's ugal_pni needs c = k = 4"):
        sections(tmp_path, pni, "num_vcs=8", "c=1", "xr=1", "yr=1")


def test_links_of_sixteen_terminals_of_a_router_have_unlike_lengths(tmp_path: Path) -> None:
    four = f"{BUTTERFLY} routing_function = ran_min; use_noc_latency = 1;"
    with pytest.raises(BooksimError, match="xr = 4 gives links of terminals of other than 1 cycle"):
        sections(tmp_path, four, "k=2", "x=2", "y=2", "c=16", "xr=4", "yr=4")


def test_a_network_file_holds_latencies_in_one_direction(tmp_path: Path) -> None:
    net = "router 0 node 0 router 1 5 router 2\nrouter 1 node 1 router 2\nnode 2 router 2\n"
    (tmp_path / "net.txt").write_text(net)
    text = f"topology = anynet; network_file = net.txt; routing_function = min; {ROUTER}"
    (tmp_path / "case.cfg").write_text(text)
    found = translate([str(tmp_path / "case.cfg")])
    lines = found.files[".anynet"].splitlines()[1:]
    assert lines == [
        "router 0 node 0 router 1 5 router 2 1", "router 1 node 1 router 0 1 router 2 1",
        "router 2 node 2 router 0 1 router 1 1",
    ]  # fmt: skip
    assert found.sections["routing"] == {"algorithm": "booksim_min", "check": False}
    found.write(tmp_path / "case.yml")
    topology = configured_network(load_config(tmp_path / "case.yml", keys=False))
    ways = [[-1 if p < 0 else int(topology.peer_router[r, p]) for p in first_ports(topology, r)] for r in range(3)]
    # from 0 to 1 over 2, since the direct link takes 5 cycles; back directly
    assert ways == [[-1, 2, 2], [0, -1, 2], [0, 1, -1]]


@pytest.mark.parametrize(("text", "message"), [
    ("router 0 node 0 router 0\n", ":1: router 0 is linked to itself"),
    ("router 0 node 0 router 1\nrouter 1 node 0\n", ":2: node 0 is at router 1 and at router 0"),
    ("router 0 nodes 0\n", ":1: expected router or node, not 'nodes'"),
    ("router 0 node 0 3 router 1\n", ":1: latency 3 of the link to node 0"),
    # BookSim: the link from router 0 to router 1 has 1 cycle
    ("router 0 router 1 5 node 1 1 node 0\n", ":1: latency 1 of the link to node 1; leave it out"),
    ("router 0 router 1\nnode 0 router 0 1\n", ":2: latency 1 of the link to node 0; leave it out"),
    ("router 0 node 0 router 2\n", ": router 1 is missing"),
    ("router 0 node 99999999999 router 2\n", ":1: expected the number of a node"),
])  # fmt: skip
def test_a_wrong_network_file_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "net.txt").write_text(text)
    with pytest.raises(BooksimError, match=message):
        sections(tmp_path, f"topology = anynet; network_file = net.txt; routing_function = min; {ROUTER}")


@pytest.mark.parametrize(("text", "load", "latency", "routers", "within"), [
    # BookSim's own runs (two seeds, 7500 cycles): mean latency and routers visited; UGAL within 3 %
    (f"{BUTTERFLY} routing_function = ran_min; traffic = bitcomp;", 0.15, 14.572, 3.0, 0.02),
    (f"{BUTTERFLY} routing_function = ugal; traffic = tornado;", 0.22, 15.993, 3.2648, 0.03),
    (f"{BUTTERFLY} routing_function = ugal_xyyx; traffic = bitcomp;", 0.15, 17.72, None, 0.03),
    (f"topology = tree4; k = 4; n = 3; routing_function = nca; {ROUTER}", 0.1, 19.878, None, 0.02),
    ("topology = cmesh; k = 4; n = 2; c = 4; x = 4; y = 4; xr = 2; yr = 2; routing_function = dor_no_express; "
     f"use_noc_latency = 0; hold_switch_for_packet = 1; packet_size = 4; {ROUTER}", 0.1, 21.654, 3.5, 0.02),
    # crossbar ports, iterations and steps: 7500 cycles of packets of four flits; without them 41.1 cycles
    pytest.param(f"{FOUR} input_speedup = 2;", 0.3, 37.787, None, 0.02, marks=pytest.mark.study),
    pytest.param(f"{FOUR} output_speedup = 2;", 0.3, 38.756, None, 0.02, marks=pytest.mark.study),
    (f"{FOUR} sw_allocator = islip(2); vc_allocator = islip(2);",
     0.3, 39.627, None, 0.02),
    (f"{FOUR} input_speedup = 2; output_speedup = 2; sw_allocator = islip(3); "
     "vc_allocator = islip(3);", 0.3, 36.972, None, 0.02),
    pytest.param(f"{FOUR} internal_speedup = 2.0;", 0.3, 30.215, None, 0.02, marks=pytest.mark.study),
    (f"{FOUR} internal_speedup = 1.5; sw_allocator = separable_input_first; "
     "vc_allocator = separable_input_first;", 0.3, 30.903, None, 0.02),
    (f"topology = fly; k = 8; n = 2; routing_function = dest_tag; packet_size = 4; {ROUTER}", 0.5, 27.533, 2.0, 0.02),
    pytest.param(f"topology = fly; k = 4; n = 3; routing_function = dest_tag; input_speedup = 2; {ROUTER}",
                 0.5, 15.902, 3.0, 0.02, marks=pytest.mark.study),
    # speedups beside other keys
    (f"{FOUR} routing_delay = 1; internal_speedup = 2.0;", 0.3, 30.317, None, 0.02),
    (f"{FOUR} speculative = 1; internal_speedup = 2.0;", 0.3, 25.443, None, 0.02),
    pytest.param(f"{FOUR} speculative = 1; input_speedup = 2;", 0.3, 33.34, None, 0.02, marks=pytest.mark.study),
    (f"{FOUR} hold_switch_for_packet = 1; internal_speedup = 1.5; output_speedup = 2; output_buffer_size = 4;",
     0.3, 31.316, None, 0.02),
    pytest.param(f"{FOUR} vc_allocator = separable_input_first; sw_allocator = separable_input_first; "
                 "input_speedup = 2; output_speedup = 2;", 0.3, 37.017, None, 0.02, marks=pytest.mark.study),
    (f"{FOUR} vc_allocator = wavefront; sw_allocator = wavefront; speculative = 1; input_speedup = 2; "
     "st_final_delay = 2;", 0.3, 44.255, None, 0.02),
    # batches of the first and of the last stage of a fly
    (f"topology = fly; k = 8; n = 2; routing_function = dest_tag; {ROUTER} routing_delay = 3;", 0.1, 19.428, 2.0, 0.01),
    # links of 2, 4 and 6 cycles by distance
    (f"{BUTTERFLY} routing_function = ran_min; use_noc_latency = 1;", 0.1, 15.619, 2.5, 0.02),
    # three terminals along either side of a router: their links have 1 cycle
    ("topology = flatfly; k = 2; n = 2; c = 9; x = 2; y = 2; xr = 3; yr = 3; routing_function = ran_min; "
     f"use_noc_latency = 1; {ROUTER}", 0.1, 12.571, 2.0, 0.02),
])  # fmt: skip
def test_latency_and_hops_are_those_of_booksim(
    tmp_path: Path, text: str, load: float, latency: float, routers: float | None, within: float
) -> None:
    found = run(tmp_path, text, load)
    assert found.latency == pytest.approx(latency, rel=within)
    if routers is not None:
        assert found.hops == pytest.approx(routers, rel=0.01)


def test_the_rule_of_polarflys_authors_is_that_of_their_booksim(tmp_path: Path) -> None:
    """Their own run (seed 1, 13 routers of two hosts): at 0.4 a packet in ten takes a detour."""
    points = [(1, y, z) for y in range(3) for z in range(3)] + [(0, 1, z) for z in range(3)] + [(0, 0, 1)]
    lines = []
    for i, a in enumerate(points):
        linked = [j for j, b in enumerate(points) if j != i and sum(x * y for x, y in zip(a, b, strict=True)) % 3 == 0]
        lines.append(f"router {i} node {2 * i} node {2 * i + 1} " + " ".join(f"router {j}" for j in linked) + "\n")
    (tmp_path / "pf3.anynet").write_text("".join(lines))
    text = f"topology = anynet; network_file = {tmp_path / 'pf3.anynet'}; routing_function = ugall4_pf; {ROUTER}"
    found = run(tmp_path, text.replace("routing_delay = 0", "routing_delay = 1"), 0.4)
    assert found.latency == pytest.approx(17.9945, rel=0.02)
    assert found.hops == pytest.approx(2.68898, rel=0.005)  # 2.56 without detours


def test_one_channel_bounds_bit_complement(tmp_path: Path) -> None:
    # each router sends all to one router: four flits over one channel
    text = f"{BUTTERFLY} routing_function = ran_min; traffic = bitcomp;"
    assert run(tmp_path, text, 0.5).accepted == pytest.approx(0.25, rel=0.01)


DRAGONFLY = f"topology = dragonflynew; k = 1; n = 1; routing_function = min; packet_size = 4; {ROUTER}"


def test_links_of_a_dragonfly_take_two_virtual_channels(tmp_path: Path) -> None:
    """BookSim's own runs (two seeds): latency with 3 VCs, accepted rate beyond saturation with 4."""
    plain = sections(tmp_path, DRAGONFLY, "num_vcs=2")["routing"]
    assert plain == {"algorithm": "dragonfly_min", "ejection": "class"}
    assert sections(tmp_path, DRAGONFLY, "num_vcs=3")["routing"] == plain | {"class_vcs": "one"}
    found = run(tmp_path, DRAGONFLY, 0.2, "num_vcs=3", "vc_buf_size=128", cycles=15000)
    assert found.latency == pytest.approx(89.36, rel=0.02)
    # two VCs on either side of the global link would accept twice as much
    (tmp_path / "beyond").mkdir()
    found = run(tmp_path / "beyond", DRAGONFLY, 0.9, "num_vcs=4")
    assert found.accepted == pytest.approx(0.0561, rel=0.05)
    with pytest.raises(BooksimError, match="num_vcs = 1: must be 2 to 16"):
        sections(tmp_path, DRAGONFLY, "num_vcs=1")
