"""Classes of traffic in the network simulator: rates, latencies, isolation, shares, proofs, what is refused."""

import re

import numpy as np
import pandas as pd
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.config.load import ConfigError
from hopforge.model.config.uses import unused_sections
from hopforge.model.routing import RoutingError
from hopforge.sim.run.flit_sweep import FLIT_SWEEP, summarise
from hopforge.sim.run.measurement import Measurement, measurement_rows
from hopforge.sim.run.packet_script import draw_class_packets
from hopforge.sim.run.packet_trace import list_packets
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.run.traffic_classes import ClassResult, RunClasses
from hopforge.sim.traffic import TrafficError

MESH = "topology: {kind: mesh, radices: [4, 4]}"
#: eight hosts at two routers; those of the first send to those of the second over one link
LINK = "topology: {kind: mesh, radices: [2], hosts_per_router: 4}"
OVER = "pattern: destinations, destinations: [4, 5, 6, 7, 0, 1, 2, 3]"
RUN = "simulation: {warmup_cycles: 1000, min_cycles: 4000, max_cycles: 4000}"


def config(topology: str, router: str, traffic: str, *classes: str) -> Config:
    listed = ", ".join(f"{{{one}}}" for one in classes)
    return parse_config(
        f"name: x\n{topology}\nrouter: {{{router}}}\ntraffic: {{{traffic}, classes: [{listed}]}}\n{RUN}\n"
    )


def two(qos: str, urgent: float, bulk: float, **more: str) -> Config:
    return config(
        more.get("topology", MESH), f"vcs: 4, qos: {qos}", more.get("traffic", "pattern: uniform"),
        f"name: urgent, load: {urgent}, vcs: 1, priority: 1, weight: 1",
        f"name: bulk, load: {bulk}, vcs: 3, weight: 3, packet_flits: 4",
    )  # fmt: skip


def measured(checked: Config, seed: int = 1) -> Measurement:
    return Simulation(checked, 0.5, seed).run()


def of_class(found: Measurement, name: str) -> ClassResult:
    (result,) = (each for each in found.classes if each.message == name)
    assert isinstance(result, ClassResult)
    return result


@pytest.mark.parametrize("qos", ["none", "strict", "weighted"])
def test_rates_and_latencies_of_classes_are_parts_of_the_whole(qos: str) -> None:
    found = measured(two(qos, 0.05, 0.2))
    urgent, bulk = of_class(found, "urgent"), of_class(found, "bulk")
    # a class counts packets that came whole: on each of 3 VCs up to 3 flits of one that began or ends outside
    assert urgent.accepted + bulk.accepted == pytest.approx(found.accepted, abs=9 / 4000)
    assert urgent.packets + bulk.packets == found.packets
    total = urgent.latency * urgent.packets + bulk.latency * bulk.packets
    assert total / found.packets == pytest.approx(found.latency, rel=1e-9)
    assert urgent.accepted == pytest.approx(0.05, rel=0.05)
    assert bulk.accepted == pytest.approx(0.2, rel=0.05)
    assert (urgent.offered, bulk.offered) == (0.05, 0.2)


def test_zero_load_latency_of_a_class_is_the_formula() -> None:
    """4·H + 2 + (F − 1), each host to its neighbour in x, H = 2 (docs/definitions/router.md, Hosts)."""
    over = "pattern: destinations, destinations: [1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14]"
    found = measured(two("strict", 0.002, 0.004, traffic=over))
    assert of_class(found, "urgent").latency_median == 4 * 2 + 2
    assert of_class(found, "bulk").latency_median == 4 * 2 + 2 + 3


def test_shares_are_parts_of_the_load() -> None:
    checked = config(MESH, "vcs: 2", "packet_flits: 2", "name: a, share: 0.25", "name: b, share: 0.75")
    run = Simulation(checked, 0.4, 1)
    assert run.classes is not None
    assert run.classes.offered == (0.1, pytest.approx(0.3))
    found = run.run()
    assert of_class(found, "a").accepted == pytest.approx(0.1, rel=0.05)
    assert of_class(found, "b").accepted == pytest.approx(0.3, rel=0.05)


def test_what_a_class_sends_depends_on_nothing_else() -> None:
    def packets(checked: Config) -> list[tuple[int, ...]]:
        script, number = draw_class_packets(Simulation(checked, 0.5, 3), 400)
        return [row for row, c in zip(zip(*(x.tolist() for x in script), strict=True), number, strict=True) if c == 0]

    first = packets(two("none", 0.2, 0.1))
    assert len(first) > 500
    assert packets(two("strict", 0.2, 0.9)) == first
    # and a run with the list is the run with the traffic
    script, number = draw_class_packets(Simulation(two("weighted", 0.2, 0.3), 0.5, 3), 400)
    listed = Simulation(two("weighted", 0.2, 0.3), 0.5, 3, script=script, script_class=number)
    drawn = Simulation(two("weighted", 0.2, 0.3), 0.5, 3)
    for run in (listed, drawn):
        run.advance(400)
        run.check_conservation()
    assert int(listed.state["packets_ejected"]) == int(drawn.state["packets_ejected"]) > 300
    assert int(listed.state["latency_sum"]) == int(drawn.state["latency_sum"])


def test_strict_priority_hides_a_flood() -> None:
    alone = of_class(measured(two("strict", 0.05, 0.0)), "urgent")
    hidden = of_class(measured(two("strict", 0.05, 1.0)), "urgent")
    seen = of_class(measured(two("none", 0.05, 1.0)), "urgent")
    assert hidden.latency == pytest.approx(alone.latency, rel=0.01)
    assert hidden.latency_p99 == pytest.approx(alone.latency_p99, abs=1)
    assert seen.latency > 1.15 * alone.latency


@pytest.mark.parametrize("weights", [(1, 1), (1, 3), (7, 2)])
def test_weighted_classes_share_a_link_as_their_weights(weights: tuple[int, int]) -> None:
    classes = [
        f"name: c{c}, load: 1, vcs: 2, weight: {weight}, packet_flits: {2 + c}" for c, weight in enumerate(weights)
    ]
    found = measured(config(LINK, "vcs: 4, qos: weighted", OVER, *classes))
    rates = [of_class(found, f"c{c}").accepted for c in range(2)]
    assert sum(rates) == pytest.approx(0.25, rel=0.01)  # a flit per cycle for four hosts
    assert rates[0] / sum(rates) == pytest.approx(weights[0] / sum(weights), abs=0.005)


def test_a_class_that_starves_is_told() -> None:
    found = measured(
        config(
            LINK, "vcs: 3, qos: strict", OVER, "name: urgent, load: 1, vcs: 2, priority: 1, packet_flits: 4",
            "name: bulk, load: 0.1, vcs: 1",
        )
    )  # fmt: skip
    bulk = of_class(found, "bulk")
    assert of_class(found, "urgent").accepted == pytest.approx(0.25, rel=0.01)
    assert bulk.packets == 0
    assert dict(measurement_rows(found))["class bulk"] == (
        "offered 0.1, accepted 0: STARVED, no packet arrived in the cycles measured"
    )
    assert found.saturated


def test_saturated_classes_are_told_one_by_one() -> None:
    found = measured(two("strict", 0.02, 1.0))
    assert of_class(found, "bulk").saturated
    assert not of_class(found, "urgent").saturated
    words = dict(measurement_rows(found))
    assert re.match(r"offered 1, accepted 0\.\d+, SATURATED; \d", words["class bulk"])
    assert "SATURATED" not in words["class urgent"]


def test_a_class_that_grows_is_not_hidden_by_one_that_waits_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is saturated if one class is (docs/definitions/traffic-classes.md, Measures)."""
    run = Simulation(two("strict", 0.05, 0.2), 0.5, 1)
    run.advance(500)
    assert run.classes is not None
    source = run.state["class_source"].reshape(-1, 2)
    source["packet"] = -1
    source["next_time"] = 500 - 1000, 500
    run.reset_measures()
    run.state.record["cycle"] = 600
    source["next_time"] = 600 - 1000, 600 - 50
    growth = run.classes.growth(run.state, 100)
    assert growth.tolist() == [0, 0.5]
    for found in (growth, 0.009 * growth):
        monkeypatch.setattr(RunClasses, "growth", lambda *_, found=found: found)
        assert measured(two("strict", 0.05, 0.2)).saturated == (found is growth)


def test_runs_and_curve_have_columns_for_each_class() -> None:
    row = measured(two("weighted", 0.05, 0.2)).row()
    names = {f"{name}_{what}" for name in ("urgent", "bulk") for what in ("offered", "accepted", "latency_p99")}
    assert names <= set(row)
    runs = pd.DataFrame([{"variant": "", **row}, {"variant": "", **row, "urgent_latency": row["urgent_latency"] + 2}])
    curve = summarise(runs)
    assert curve["urgent_latency"][0] == pytest.approx(row["urgent_latency"] + 1)
    heads, line = FLIT_SWEEP.table(two("weighted", 0.05, 0.2), runs)
    assert heads[-6:] == [f"{c} {what}" for c in ("urgent", "bulk") for what in ("latency", "99 %", "accepted")]
    assert line[-1] == f"{row['bulk_accepted']:.4f}"


@pytest.mark.parametrize(("topology", "algorithm", "vcs"), [
    ("{kind: torus, radices: [4, 4]}", "dor", (2, 2)),
    ("{kind: torus, radices: [5, 3]}", "dor", (2, 4)),
    ("{kind: dragonfly, p: 1, a: 2, h: 1}", "dragonfly_min", (3, 4)),
    ("{kind: mesh, radices: [3, 3]}", "star_channel", (2, 3)),
    ("{kind: slim_fly, q: 5}", "minimal", (2, 2)),
])  # fmt: skip
def test_every_class_is_proved_and_keeps_to_its_channels(topology: str, algorithm: str, vcs: tuple[int, int]) -> None:
    checked = parse_config(
        f"name: x\ntopology: {topology}\nrouting: {{algorithm: {algorithm}}}\n"
        f"router: {{vcs: {sum(vcs)}, qos: strict, vc_release: credits}}\n"
        f"traffic: {{packet_flits: 2, classes: [{{name: a, load: 0.2, vcs: {vcs[0]}, priority: 1}}, "
        f"{{name: b, load: 0.3, vcs: {vcs[1]}}}]}}\n"
    )
    run = Simulation(checked, 0.5, 1, log_events=1 << 17)
    run.advance(300)
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    grants = log[log[:, 1] == 0]
    number = grants[:, 4] >> 34 & 7
    assert len(grants) > 200
    assert set(number.tolist()) == {0, 1}
    for column in (2, 3):
        vc = grants[:, column] % sum(vcs)
        assert np.array_equal(vc >= vcs[0], number == 1)


def test_too_few_channels_for_a_class_name_it() -> None:
    checked = config("topology: {kind: torus, radices: [4, 4]}", "vcs: 3", "packet_flits: 1",
                     "name: a, share: 0.5, vcs: 2", "name: b, share: 0.5, vcs: 1")  # fmt: skip
    with pytest.raises(RoutingError, match=r"^traffic.classes: vcs of b must be at least 2 for .* not 1: two of"):
        Simulation(checked, 0.1, 1)


def test_an_algorithm_that_learns_is_refused() -> None:
    checked = parse_config(
        "name: x\ntopology: {kind: dragonfly, p: 1, a: 2, h: 1}\nrouting: {algorithm: q_adaptive}\nrouter: {vcs: 10}\n"
        "traffic: {classes: [{name: a, share: 0.5, vcs: 5}, {name: b, share: 0.5, vcs: 5}]}\n"
    )
    with pytest.raises(RoutingError, match=r"^traffic.classes.vcs must not be given with routing.algorithm q_adaptive"):
        Simulation(checked, 0.1, 1)


A, B = "{name: a, share: 0.5, vcs: 1, priority: 1}", "{name: b, share: 0.5, vcs: 1}"


@pytest.mark.parametrize(("router", "traffic", "message"), [
    ("vcs: 2, qos: strict", "{}", r"router.qos: strict needs traffic.classes"),
    ("vcs: 3", f"{{classes: [{A}, {B}]}}", r"router.vcs: must be those of traffic.classes, 1 \+ 1 = 2, not 3"),
    ("vcs: 1", "{classes: [{name: a, share: 1}]}", r"traffic.classes: must be 2 to 8, not 1"),
    ("vcs: 2", f"{{classes: [{A}, {A}]}}", r"traffic.classes\[1\].name: a is the name of class 0, too"),
    ("vcs: 1", "{classes: [{name: a, share: 0.5}, {name: b, share: 0.4}]}",
     r"traffic.classes: shares must be 1 together, not 0.9"),
    ("vcs: 2", f"{{classes: [{A}, {{name: b, share: 0.5}}]}}",
     r"vcs must be given for all classes or none, not for a and not for b"),
    ("vcs: 1", "{classes: [{name: a}, {name: b, share: 1}]}", r"share: or load must be given, not none of them"),
    ("vcs: 1, qos: strict", "{classes: [{name: a, load: 1, priority: 2}, {name: b, load: 1}]}",
     r"router.qos: strict needs classes with vcs of their own"),
    ("vcs: 2, qos: strict", "{classes: [{name: a, load: 1, vcs: 1}, {name: b, load: 1, vcs: 1}]}",
     r"router.qos: strict needs classes of different priority, not all of 0"),
    ("vcs: 2, qos: strict, speculation: true", f"{{classes: [{A}, {B}]}}",
     r"router.speculation: cannot be true with router.qos=strict"),
    ("vcs: 2, qos: weighted, hold_switch: true", f"{{classes: [{A}, {B}]}}",
     r"router.hold_switch: cannot be true with router.qos=weighted"),
    ("vcs: 2", f"{{source: on_off, classes: [{A}, {B}]}}",
     r"traffic.source: must be bernoulli with traffic.classes, not on_off"),
    ("vcs: 2", f"{{reply: {{}}, classes: [{A}, {B}]}}", r"traffic.reply: cannot stand together with traffic.classes"),
    ("vcs: 2", f"{{packet_range: [1, 2], classes: [{A}, {B}]}}",
     r"traffic.packet_range: cannot stand together with traffic.classes"),
    ("vcs: 2, switching: vct, buffer_flits: 4",
     "{packet_flits: 5, classes: [{name: a, share: 0.5}, {name: b, share: 0.5}]}",
     r"packet_flits must be at most router.buffer_flits=4 with router.switching=vct, not 5"),
    ("vcs: 2", f"{{classes: [{A}, {{name: message, share: 0.5, vcs: 1}}]}}",
     r"traffic.classes\[1\].name: message is the beginning of other columns of results"),
    ("vcs: 2}\nrouting: {algorithm: ugal, decision: host", f"{{classes: [{A}, {B}]}}",
     r"routing.decision: host is for traffic without classes"),
    ("model: input_output_queued, vcs: 2", f"{{classes: [{A}, {B}]}}",
     r"traffic.classes: needs router.model=input_queued, not input_output_queued"),
])  # fmt: skip
def test_bad_classes_are_one_line(router: str, traffic: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        parse_config(f"name: x\n{MESH}\nrouter: {{{router}}}\ntraffic: {traffic}\n")
    assert "\n" not in str(raised.value)


def test_keys_of_a_pattern_hold_for_that_of_a_class() -> None:
    plain, rest = "name: a, share: 0.5", "name: b, share: 0.5, pattern"
    goals = [3, 3, 1, 0]
    small = "topology: {kind: mesh, radices: [4]}"
    checked = config(small, "vcs: 2", f"pattern: uniform, destinations: {goals}", plain, f"{rest}: destinations")
    packets = list_packets(checked, 0.3, 1, 400)
    of_b = packets[packets["number"].to_numpy() >> 34 == 1]
    assert len(of_b) > 100
    assert (of_b["dst"] == np.array(goals)[of_b["host"]]).all()
    for traffic, pattern, reason in (
        ("pattern: uniform", "destinations", "destinations: missing; pattern=destinations needs it"),
        ("partners: each_round, low: 1, high: 2", "random_neighbours",
         "partners: must be each_round with source=rounds, else once, not each_round"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=f"traffic.{reason}"):
            config(small, "vcs: 2", traffic, plain, f"{rest}: {pattern}")


def test_a_pattern_that_does_not_fit_names_its_class() -> None:
    six = "topology: {kind: mesh, radices: [3, 2]}"
    own = ("name: a, share: 0.5, pattern: uniform", "name: b, share: 0.5, pattern: neighbour")
    # nothing reads the pattern of the section
    unread = measured(config(six, "vcs: 2", "pattern: transpose", *own))
    assert unread.classes == measured(config(six, "vcs: 2", "pattern: uniform", *own)).classes
    with pytest.raises(TrafficError, match=r"^traffic.classes\[1\].pattern transpose needs a square number of hosts"):
        Simulation(config(six, "vcs: 2", "pattern: uniform", own[0], "name: b, share: 0.5, pattern: transpose"), 0.1, 1)
    with pytest.raises(TrafficError, match=r"^traffic.pattern transpose needs a square number of hosts, not 6"):
        Simulation(config(six, "vcs: 2", "pattern: transpose", own[0], "name: b, share: 0.5"), 0.1, 1)


def test_more_than_a_link_is_refused() -> None:
    checked = config(MESH, "vcs: 2", "packet_flits: 1", "name: a, share: 1", "name: b, load: 0.1")
    with pytest.raises(TrafficError, match=r"^traffic.classes\[0\]: a must offer at most a packet of 1 flits per host"):
        Simulation(checked, 1.5, 1)
    with pytest.raises(TrafficError, match=r"^simulation.load_steps are for traffic without classes$"):
        Simulation(checked, 0.5, 1).plan_loads({1000: 0.6})


def test_keys_that_nothing_reads_are_told() -> None:
    first, second = "name: a, load: 0.1, vcs: 1, priority: 1, pattern: tornado", "name: b, load: 0.2, vcs: 1, weight: 2"
    classes = f"classes: [{{{first}}}, {{{second}}}]"

    def unused(qos: str, more: str) -> list[str]:
        text = f"name: x\n{MESH}\nrouter: {{vcs: 2, qos: {qos}}}\ntraffic: {{{more}{classes}}}\n"
        return unused_sections(parse_config(f"{text}simulation: {{load: 0.3}}\n"), ["net"])

    assert unused("strict", "pattern: uniform, ") == ["traffic.classes.weight", "simulation.load"]
    assert unused("weighted", "") == ["traffic.classes.priority", "simulation.load"]
    assert unused("none", "") == ["traffic.classes.priority", "traffic.classes.weight", "simulation.load"]
    whole = classes.replace("vcs: 1, weight", "vcs: 1, pattern: shuffle, weight")
    text = f"name: x\n{MESH}\nrouter: {{vcs: 2}}\ntraffic: {{pattern: uniform, {whole}}}\n"
    assert "traffic.pattern" in unused_sections(parse_config(text), ["net"])
    assert unused_sections(parse_config(f"name: x\n{MESH}\nsimulation: {{load: 0.3}}\n"), ["net"]) == []
