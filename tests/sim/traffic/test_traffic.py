"""Traffic: every pattern by its definition, sources that offer the load, a user's own file."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import Config, ConfigError, parse_config
from hopforge.model.network.core.user_code import UserCodeError
from hopforge.model.topology.configured import network_topology
from hopforge.sim.run.packet_trace import list_packets
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.traffic import PATTERNS, TrafficError
from hopforge.sim.traffic.patterns import one_of_list_plan

MESH = "topology: {kind: mesh, radices: [4, 3]}"
TORUS = "topology: {kind: torus, radices: [5, 4]}"
SQUARE = "topology: {kind: mesh, radices: [4, 4]}"


def config(*lines: str) -> Config:
    return parse_config("\n".join(("name: test", *lines)))


def destinations(*lines: str, cycles: int = 600) -> dict[int, list[int]]:
    """Destinations that the hosts' packets carry, by source, in order of creation."""
    run = Simulation(config(*lines), 0.2, 1, log_events=100000)
    run.advance(cycles)
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    arrived = log[log[:, 1] == 3]
    arrived = arrived[np.argsort(arrived[:, 4], kind="stable")]
    found: dict[int, list[int]] = {h: [] for h in range(run.topology.hosts)}
    for target, name in zip(arrived[:, 2].tolist(), arrived[:, 4].tolist(), strict=True):
        found[name >> 40].append(target)
    return found


def _bits(x: int) -> str:
    return f"{x:04b}"


@pytest.mark.parametrize("pattern, rule", [
    ("bit_complement", lambda s: 15 - s),
    ("bit_reverse", lambda s: int(_bits(s)[::-1], 2)),
    ("shuffle", lambda s: int(_bits(s)[1:] + _bits(s)[0], 2)),
    ("bit_rotation", lambda s: int(_bits(s)[-1] + _bits(s)[:-1], 2)),
    ("butterfly", lambda s: int(_bits(s)[-1] + _bits(s)[1:3] + _bits(s)[0], 2)),
    ("transpose", lambda s: s % 4 * 4 + s // 4),
    ("tornado", lambda s: (s % 4 + 1) % 4 + 4 * ((s // 4 + 1) % 4)),
    ("neighbour", lambda s: (s % 4 + 1) % 4 + 4 * ((s // 4 + 1) % 4)),
])  # fmt: skip
def test_permutations_by_their_definition(pattern: str, rule) -> None:
    for host, found in destinations(SQUARE, f"traffic: {{pattern: {pattern}}}").items():
        assert len(found) > 50
        assert set(found) == {rule(host)}


def test_random_permutation_is_one_and_stays() -> None:
    found = destinations(SQUARE, "traffic: {pattern: permutation}")
    assert all(len(set(one)) == 1 for one in found.values())
    assert sorted(one[0] for one in found.values()) == list(range(16))


def test_patterns_in_turn() -> None:
    for host, found in destinations(SQUARE, "traffic: {pattern: all_to_all}").items():
        assert found[:30] == [(host + 1 + k % 15) % 16 for k in range(30)]
    for host, found in destinations(SQUARE, "traffic: {pattern: many_to_many, line: 4}").items():
        assert set(found) == {host % 4 + 4 * k for k in range(4)} - {host}
    for host, found in destinations(SQUARE, "traffic: {pattern: stencil, grid: [8, 2]}").items():
        x, y = host % 8, host // 8
        assert set(found) == {(x + 1) % 8 + 8 * y, (x - 1) % 8 + 8 * y, x + 8 * (1 - y)}


def test_shares_of_random_patterns() -> None:
    found = destinations(SQUARE, "traffic: {pattern: hotspot, share: 0.25, targets: [3]}", cycles=3000)
    everything = [target for one in found.values() for target in one]
    # 0.25 + 0.75/16; about 9000 draws: standard error 0.005
    assert np.mean(np.array(everything) == 3) == pytest.approx(0.25 + 0.75 / 16, abs=0.025)
    found = destinations(SQUARE, "traffic: {pattern: uniform, include_self: false}", cycles=2000)
    assert all(host not in one for host, one in found.items())
    counts = np.bincount([target for one in found.values() for target in one], minlength=16)
    # chi-squared with 15 degrees of freedom stays below 45 with probability 0.9999
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 45
    near = destinations(SQUARE, "traffic: {pattern: local, share: 1.0}")
    assert set(near[5]) <= {5, 4, 6, 1, 9}
    partners = destinations(SQUARE, "traffic: {pattern: random_neighbours, low: 3, high: 5}", cycles=2000)
    assert all(3 <= len(set(one)) <= 5 and host not in one for host, one in partners.items())


def test_patterns_of_booksim_by_their_definition() -> None:
    """Where each host may send, and shares of all packets: of the several thousands a standard error is below 0.01."""
    found = destinations(SQUARE, "traffic: {pattern: diagonal}", cycles=1500)
    assert all(set(goals) == {host, (host + 1) % 16} for host, goals in found.items())
    stays = [goal == host for host, goals in found.items() for goal in goals]
    assert len(stays) > 4000
    assert np.mean(stays) == pytest.approx(2 / 3, abs=0.03)
    found = destinations(SQUARE, "traffic: {pattern: asymmetric}", cycles=1500)
    assert all(set(goals) == {host % 8, host % 8 + 8} for host, goals in found.items())
    assert np.mean([goal < 8 for goals in found.values() for goal in goals]) == pytest.approx(0.5, abs=0.04)
    found = destinations(SQUARE, "traffic: {pattern: badperm_yarc}", cycles=1500)
    assert all(set(goals) == {host // 4 + 4 * row for row in range(4)} for host, goals in found.items())
    rows = np.bincount([goal // 4 for goals in found.values() for goal in goals])
    assert rows / rows.sum() == pytest.approx(0.25, abs=0.04)
    found = destinations("topology: {kind: mesh, radices: [8, 8]}", "traffic: {pattern: taper64}", cycles=400)
    steps = np.bincount([(goal - host) % 64 for host, goals in found.items() for goal in goals], minlength=64)
    assert steps.sum() > 3000
    near = np.isin(np.arange(64), [(8 * y + x) % 64 for y in (-1, 0, 1) for x in (-1, 0, 1)])
    # each of the nine near steps 1/18 + 1/128, each other one 1/128
    assert (np.abs(steps / steps.sum() - near / 18 - 1 / 128) < np.where(near, 0.02, 0.008)).all()


def test_transpose_in_three_dimensions() -> None:
    cube = "topology: {kind: torus, radices: [3, 3, 3]}"
    for host, found in destinations(cube, "traffic: {pattern: transpose3d}").items():
        x, y, z = host % 3, host // 3 % 3, host // 9
        assert len(found) > 50
        assert set(found) == {y + 3 * z + 9 * x}


def test_all_to_all_in_random_order_goes_once_round_before_it_repeats() -> None:
    found = destinations(SQUARE, "traffic: {pattern: all_to_all, order: random}")
    for host, targets in found.items():
        assert sorted(targets[:15]) == sorted(set(range(16)) - {host})
        assert targets[15:30] == targets[:15]
    assert len({tuple((target - host) % 16 for target in one[:15]) for host, one in found.items()}) == 16


def test_local_traffic_of_a_dragonfly_stays_in_the_group() -> None:
    lines = ["topology: {kind: dragonfly, p: 2, a: 4, h: 2}", "routing: {algorithm: dragonfly_min}"]
    found = destinations(*lines, "traffic: {pattern: local, share: 1.0}")
    for host, targets in found.items():
        assert {target // 8 for target in targets} == {host // 8}
    assert set().union(*found.values()) == set(range(72))


def test_adversarial_traffic_goes_to_the_next_group() -> None:
    lines = ["topology: {kind: dragonfly, p: 2, a: 4, h: 2}", "routing: {algorithm: dragonfly_min}"]
    for host, found in destinations(*lines, "traffic: {pattern: adversarial, shift: 2}").items():
        assert {target // 8 for target in found} == {(host // 8 + 2) % 9}


@pytest.mark.parametrize("pattern, sizes", [
    ("random_neighbours, partners: each_round, low: 3, high: 5", {3, 4, 5}),
    ("stencil, grid: [2, 4, 9]", {6}),
    ("many_to_many, line: 9", {8}),
    ("uniform", {1}),
])  # fmt: skip
def test_rounds_have_a_packet_for_every_partner(pattern: str, sizes: set[int]) -> None:
    lines = [
        "topology: {kind: dragonfly, p: 2, a: 4, h: 2}", "routing: {algorithm: dragonfly_min, ejection: class}",
        "router: {model: input_output_queued, vcs: 2, buffer_flits: 20, output_buffer_flits: 20}",
        f"traffic: {{source: rounds, include_self: false, pattern: {pattern}}}",
    ]  # fmt: skip
    packets = list_packets(config(*lines), 0.5, 1, 4000)
    counts = packets.groupby(["host", "created"]).size().unstack(fill_value=0)
    times = np.array(sorted(packets["created"].unique()))[:-1]  # the last round may still wait in the hosts
    mean = (min(sizes) + max(sizes)) / 2
    assert len(times) >= 3
    assert times.tolist() == [round(k * mean * 80 / 0.5) for k in range(len(times))]  # 80 cycles for a packet
    assert set(counts[times].to_numpy().flat) == sizes
    whole = packets[packets["created"].isin(times)]
    assert (whole["dst"] != whole["host"]).all()
    if "random" in pattern:
        assert whole.groupby("host")["dst"].nunique().max() > 5  # others in each round
    elif len(sizes) == 1 and sizes != {1}:
        near = whole.groupby(["host", "created"])["dst"].apply(frozenset)
        assert near.groupby("host").nunique().eq(1).all()


def test_rounds_need_their_router_and_partners() -> None:
    with pytest.raises(ConfigError, match=r"traffic.source: rounds needs router.model=input_output_queued, not"):
        config(MESH, "traffic: {source: rounds}")
    for keys, wrong in (("source: rounds", "once"), ("partners: each_round", "each_round")):
        reason = rf"traffic.partners: must be each_round with source=rounds, else once, not {wrong}"
        with pytest.raises(ConfigError, match=reason):
            config(MESH, f"traffic: {{pattern: random_neighbours, {keys}}}")


@pytest.mark.parametrize("source", ["bernoulli", "on_off"])
@pytest.mark.parametrize("lengths, mean", [
    ("packet_flits: 3", 3.0), ("packet_range: [1, 5]", 3.0), ("packet_lengths: [1, 5], packet_weights: [3, 1]", 2.0),
])  # fmt: skip
def test_sources_offer_the_load(source: str, lengths: str, mean: float) -> None:
    checked = config(MESH, f"traffic: {{source: {source}, {lengths}, burst_cycles: 20, burst_load: 0.5}}")
    assert checked.traffic.mean_flits() == mean
    run = Simulation(checked, 0.1, 2)
    run.advance(100000)
    offered = int(run.state["flits_created"]) / 100000 / run.topology.hosts
    # 12 hosts · 100 000 cycles: the standard error of the load is below 1 % (Bernoulli) and 2 % (bursts)
    assert offered == pytest.approx(0.1, rel=0.02 if source == "bernoulli" else 0.05)


@pytest.mark.parametrize("source", ["interval", "rounds"])
def test_intervals_make_no_messages_of_several_packets(source: str) -> None:
    pattern = "pattern: all_to_all, " if source == "rounds" else ""
    lines = ("router: {model: input_output_queued}", f"traffic: {{{pattern}source: {source}, message_packets: 3}}")
    reason = f"traffic.message_packets: is for source=bernoulli or on_off only, not source={source}"
    with pytest.raises(ConfigError, match=reason):
        config(MESH, *lines)
    assert config(MESH, lines[0], lines[1].replace("message_packets: 3", "message_packets: 1"))


def test_weights_that_no_sum_holds_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"traffic.packet_weights\[1\]: must be at most 1000000000000.0, not 1e\+308"):
        config(MESH, "traffic: {packet_lengths: [1, 2], packet_weights: [1, 1.0e+308]}")
    largest = config(MESH, "traffic: {packet_lengths: [1, 65535], packet_weights: [1.0e-300, 1.0e+12]}")
    assert largest.traffic.mean_flits() == 65535


def test_bursts_offer_the_load_or_are_refused() -> None:
    """Whatever burst and load: a pause between bursts lasts a cycle at least, so not every load can be offered."""
    offers, refusals = 0, 0
    for cycles, burst, load in itertools.product((1, 2, 5), (0.2, 0.5, 1.0), (0.05, 0.15, 0.33, 0.45, 0.8)):
        checked = config(MESH, f"traffic: {{source: on_off, burst_cycles: {cycles}, burst_load: {burst}}}")
        if load > burst * cycles / (cycles + 1) * (1 + 1e-9):
            limit = "burst_load must be above" if burst <= load else "burst_cycles must be at least"
            with pytest.raises(TrafficError, match=rf"^traffic.{limit} .*{load}"):
                Simulation(checked, load, 2)
            refusals += 1
            continue
        run = Simulation(checked, load, 2)
        run.advance(40000)
        offered = int(run.state["flits_created"]) / 40000 / run.topology.hosts
        # 12 hosts · 40 000 cycles · 0.05 = 24 000 packets in bursts of about one: standard errors below 1 %
        assert offered == pytest.approx(load, rel=0.05), (cycles, burst, load)
        offers += 1
    assert offers > 10 and refusals > 10


def test_bad_traffic_is_one_clear_line(tmp_path: Path) -> None:
    for lines, message in [
        ("pattern: transpose", r"^traffic.pattern transpose needs a square number of hosts, not 12$"),
        ("pattern: shuffle", r"^traffic.pattern shuffle needs a power of two of hosts, not 12$"),
        ("pattern: transpose3d", r"^traffic.pattern transpose3d needs a cubic number of hosts, not 12$"),
        ("pattern: hotspot, targets: [12]", r"^traffic.targets must be hosts from 0 to 11, not \[12\]$"),
        ("pattern: taper64", r"^traffic.pattern taper64 needs 64 hosts, not 12$"),
        ("pattern: badperm_yarc", r"^traffic.pattern badperm_yarc needs a square number of hosts, not 12$"),
        ("pattern: stencil, grid: [5, 2]", r"^traffic.grid must have as many points as hosts \(12\), not \[5, 2\]$"),
        ("pattern: many_to_many, line: 5", r"^traffic.line must divide the 12 hosts and be at least 2, not 5$"),
        ("pattern: random_neighbours", r"^traffic.low and high must satisfy 1 ≤ low ≤ high < 12 hosts, not 6 and 20$"),
        ("pattern: adversarial",
         r"^traffic.pattern adversarial needs a topology of kind dragonfly, dragonfly_plus or cascade, not mesh$"),
        ("pattern: nothing", r"^traffic.pattern must be one of adv.* or file \(traffic.file: FILE.py\), not nothing$"),
        ("source: on_off, burst_load: 0.1", r"^traffic.burst_load must be above the load 0.2, not 0.1$"),
        ("source: on_off, burst_load: 0.25, burst_cycles: 2",
         r"^traffic.burst_cycles must be at least 4 at the load 0.2 with burst_load=0.25 \(a pause .*\), not 2$"),
    ]:
        with pytest.raises(TrafficError, match=message):
            Simulation(config(MESH, f"traffic: {{{lines}}}"), 0.2, 1)
    (tmp_path / "no_pattern.py").write_text("def prepare(*_): return 3")
    checked = parse_config(f"name: x\n{MESH}\ntraffic: {{pattern: file, file: no_pattern.py}}", folder=tmp_path)
    with pytest.raises(UserCodeError, match=r"prepare must return a TrafficPlan, not int$"):
        Simulation(checked, 0.1, 1)


@pytest.mark.parametrize(("lines", "message"), [
    ("pattern: butterfly_stages", r"^traffic.pattern butterfly_stages needs at least 2 hosts, not 1$"),
    ("pattern: all_to_all", r"^traffic.pattern all_to_all needs at least 2 hosts, not 1$"),
    ("include_self: false", r"^traffic.include_self: false needs at least 2 hosts, not 1$"),
])  # fmt: skip
def test_a_host_alone_has_no_other(lines: str, message: str) -> None:
    with pytest.raises(TrafficError, match=message):
        Simulation(config("topology: {kind: mesh, radices: [1]}", f"traffic: {{{lines}}}"), 0.2, 1)


@pytest.mark.parametrize("source", ["bernoulli", "on_off, burst_cycles: 1, burst_load: 0.2, packet_flits: 4"])
def test_a_load_of_0_is_no_packet(source: str) -> None:
    """Two pauses that never end are not a time before all others."""
    run = Simulation(config(MESH, f"traffic: {{source: {source}}}"), 0.0, 1)
    run.advance(500)
    assert int(run.state["packets_created"]) == 0
    assert (run.state["host"]["next_time"] >= 1 << 62).all()


def test_every_pattern_of_the_registry_is_documented() -> None:
    from hopforge.model.config.traffic import TrafficConfig

    text = (Path(__file__).parents[3] / "docs" / "definitions" / "configuration.md").read_text()
    assert TrafficConfig().pattern in PATTERNS
    assert all(name in text for name in PATTERNS)


def test_a_list_that_hosts_share_is_kept_once() -> None:
    topology = network_topology(parse_config("name: t\ntopology: {kind: mesh, radices: [16, 16]}\n"))
    plan = PATTERNS["hotspot"](topology, {"targets": list(range(1, 256))}, np.random.default_rng(1))
    assert len(plan.table) == 2 + 2 * 256 + 255


def test_lists_that_no_index_can_reach_are_refused() -> None:
    lists = [np.broadcast_to(np.int64(0), 1 << 30) for _ in range(2)]
    with pytest.raises(TrafficError, match=r"must have at most 2147483647 entries, not 2147483652"):
        one_of_list_plan(lists)
