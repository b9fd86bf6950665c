"""Acknowledges in runs: nothing lost or doubled, traffic measured as without them, proof, what is refused."""

import re
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import ConfigError, parse_config
from hopforge.model.network.core.layouts import ACKNOWLEDGES
from hopforge.model.network.parts.trail_tables import trail_counts
from hopforge.model.network.service_ports import with_service_ports
from hopforge.model.routing import RoutingError
from hopforge.model.routing.proof.acknowledge_channels import acknowledge_edges
from hopforge.model.routing.proof.deadlock import check_routing, find_cycle
from hopforge.model.topology.configured import network_topology
from hopforge.sim.run.simulation import Simulation

TORUS = "name: test\ntopology: {kind: torus, radices: [4, 4]}\n"
ADAPTIVE = "routing: {algorithm: star_channel}\n"
NEVER = 1 << 62


def simulated(
    acknowledge: str | None, *, router: str = "vcs: 4, vc_release: credits", load: float = 0.1, rest: str = ADAPTIVE,
    check: bool = True, traffic: str = "",
) -> Simulation:  # fmt: skip
    section = f"traffic: {{{traffic}{'' if acknowledge is None else f'acknowledge: {acknowledge}'}}}\n"
    return Simulation(parse_config(f"{TORUS}router: {{{router}}}\n{section}{rest}"), load, 1, check=check)


def drained(run: Simulation, cycles: int) -> dict[str, int]:
    """Run, then let everything come to its end; the counters."""
    run.advance(cycles)
    run.check_conservation()
    run.state.senders["next_time"][:] = NEVER
    run.advance(6000)
    run.check_conservation()
    assert run.state.flits_in_flight == 0
    assert int(run.state["acks_alive"]) == 0
    assert (run.state["trail_waiting"] == 0).all()
    assert (run.state["trail_own"] == 0).all()
    counts = trail_counts(run.state)
    assert counts["acks_made"] == counts["acks_home"] + counts["acks_no_entry"] + counts["acks_queue_full"]
    assert counts["delivered"] == int(run.state["packets_ejected"]) == int(run.state["packets_created"])
    assert counts["entries"] == (
        counts["acks_sent"] - counts["acks_made"] + counts["acks_home"] + counts["expired_entries"]
        + int(run.state["trail_fill"].sum())
    )  # fmt: skip
    assert int(run.state["free_packets"]) == len(run.state["packet"])
    return counts


@pytest.mark.parametrize("vcs", ["shared", "own"])
def test_every_packet_is_acknowledged_to_its_source(vcs: str) -> None:
    run = simulated(f"{{vcs: {vcs}}}")
    counts = drained(run, 8000)
    count = run.state["class_count"][ACKNOWLEDGES]
    assert counts["acks_home"] == counts["acks_made"] == int(count["packets"]) > 10_000
    assert counts["acks_sent"] == counts["entries"]  # a hop for every router but the last one
    assert (run.state["trail_fill"] == 0).all()
    assert int(run.state["flits_ejected"]) == counts["delivered"] + 3 * counts["acks_sent"]


@pytest.mark.parametrize(
    ("acknowledge", "rare"),
    [
        ("{queue: 1, delay_cycles: 30}", "acks_queue_full"),
        ("{table: 2}", "table_full"),
        ("{own_queue: 1, delay_cycles: 30}", "acks_own_full"),
        ("{age_limit_cycles: 40}", "expired_entries"),
        ("{ratio: 3, age_limit_cycles: 40}", "acks_no_entry"),
    ],
)
def test_what_is_dropped_is_counted(acknowledge: str, rare: str) -> None:
    run = simulated(acknowledge)
    counts = drained(run, 5000)
    assert counts[rare] > 50
    if "table" in acknowledge:
        assert int(run.state["trail_fill"].max()) <= 2


def test_packets_that_pass_their_destination_are_acknowledged_all_the_way() -> None:
    run = simulated("{}", router="vcs: 4", rest="routing: {algorithm: valiant}\n")
    counts = drained(run, 4000)
    assert counts["acks_home"] == counts["acks_made"] > 5000
    assert counts["acks_no_entry"] == 0


def test_zero_load_latency() -> None:
    run = simulated("{flits: 3, delay_cycles: 11}", load=0.002)
    found = run.run()
    (acknowledges,) = found.classes
    # a hop is created `delay` after the tail before it came; two routers: docs/definitions/router.md, 4·2 + 2 + (F − 1)
    hop = 11 + 4 * 2 + 2 + 2
    links = found.hops - 1
    assert acknowledges.latency == pytest.approx(hop * links * 16 / 15, rel=0.02)  # none from a host to itself
    assert found.row()["acknowledge_latency"] == acknowledges.latency


def test_measures_of_traffic_do_not_count_acknowledges() -> None:
    without = simulated(None, load=0.02).run()
    found = simulated("{}", load=0.02).run()
    assert found.accepted == pytest.approx(without.accepted, rel=0.02)
    assert found.packets == pytest.approx(without.packets, rel=0.02)
    assert found.hops == pytest.approx(without.hops, rel=0.02)
    assert found.latency < without.latency + 1
    assert found.channel_load_mean > 3 * without.channel_load_mean
    assert without.classes == ()


@pytest.mark.parametrize("source", ["bernoulli", "on_off"])
def test_idle_service_ports_change_nothing(source: str) -> None:
    rows = []
    for acknowledge in (None, "{ratio: 0}"):
        run = simulated(acknowledge, load=0.3, traffic=f"source: {source}, packet_range: [1, 4], ")
        run.advance(3000)
        record = run.state.record[0]
        rows.append([int(record[name]) for name in ("packets_ejected", "latency_sum", "network_latency_sum")])
    assert rows[0] == rows[1]
    assert rows[0][0] > 1000


def test_growing_queues_of_acknowledges_are_saturation() -> None:
    rest = f"{ADAPTIVE}simulation: {{min_cycles: 10000, max_cycles: 10000}}"
    assert simulated("{flits: 16}", load=0.1, rest=rest).run().saturated


def test_proof_has_the_channels_of_acknowledges() -> None:
    run, plain = simulated("{}"), simulated(None)
    state = run.state
    source, target = acknowledge_edges(state)
    assert len(source) == 2 * 64 * 4  # escape channels 0 and 1 of 64 links, each before 4 of a service port
    assert set(state["output_vc"]["vc"][source].tolist()) == {0, 1}
    hosts = state["output_vc"]["target"][target] - int(state["input_vcs"])
    assert (hosts >> 4 >= run.topology.hosts).all()  # service hosts, which take all that comes
    assert set((state["output_vc"]["target"][source] // 4 // run.topology.max_ports).tolist()) == set(range(16))
    found = [check_routing(one.topology, one.plan, one.state, "star_channel") for one in (run, plain)]
    assert found[0] == found[1] + len(source)


def test_acknowledges_that_went_on_as_one_packet_would_close_cycles() -> None:
    """Channels that wait for the next hop of a way back that need not be minimal: why there is one hop at a time."""
    state = simulated("{}").state
    source, _ = acknowledge_edges(state)
    vcs, ports = int(state["vcs"]), int(state["ports"])
    target = state["output_vc"]["target"]
    of_router = {r: [m for m in np.unique(source).tolist() if m // (ports * vcs) == r] for r in range(16)}
    pairs = [(m, n) for m in np.unique(source).tolist() for n in of_router[int(target[m]) // (ports * vcs)]]
    a, b = np.array(pairs).T
    assert find_cycle(a, b, len(target))
    assert not find_cycle(*acknowledge_edges(state), len(target))


def test_programs_end_when_their_acknowledges_are_home() -> None:
    text = (
        f"{TORUS}router: {{vcs: 3, vc_release: credits}}\n{ADAPTIVE}"
        "workload: {kind: collective, operation: alltoall, ranks: 16, bytes: 64}\n"
        "traffic: {source: program, acknowledge: {delay_cycles: 40}}\n"
    )
    run = Simulation(parse_config(text), 0.1, 1)
    run.advance(50_000)
    counts = trail_counts(run.state)
    assert counts["acks_home"] == counts["acks_made"] > 200
    assert int(run.state["ranks_running"]) == 0


def test_more_packets_than_the_first_pool_holds() -> None:
    run = simulated("{delay_cycles: 400}", load=0.3)
    counts = drained(run, 1500)
    assert len(run.state["packet"]) > 1000
    assert counts["acks_home"] == counts["acks_made"]


def test_service_ports_are_free() -> None:
    topology = network_topology(parse_config(TORUS))
    wider = with_service_ports(topology)
    assert wider.max_ports == topology.max_ports + 1
    assert (wider.peer_router[:, -1] == -1).all()
    assert (wider.host_at[:, -1] == -1).all()
    assert wider.hosts == topology.hosts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("router: {model: packet}", "traffic.acknowledge: needs router.model=input_queued, not packet"),
        ("router: {route_computation: lookup}", "acknowledge: needs router.route_computation=table, not lookup"),
        ("router: {vcs: 1}", "router.vcs: must be at least 2 for traffic.acknowledge.vcs=own, not 1"),
        ("router: {switching: vct, buffer_flits: 2}", "flits: must be at most router.buffer_flits=2 with"),
    ],
)
def test_what_does_not_go_together(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as problem:
        parse_config(f"{TORUS}{text}\ntraffic: {{acknowledge: {{vcs: own}}}}\n")
    assert message in str(problem.value)


@pytest.mark.parametrize(
    ("traffic", "message"),
    [
        ("acknowledge: {}, reply: {}", "traffic.acknowledge: cannot stand together with reply"),
        ("acknowledge: {flits: 0}", "traffic.acknowledge.flits: "),
        ("acknowledge: {ratio: -1}", "traffic.acknowledge.ratio: "),
        ("acknowledge: {queue: 0}", "traffic.acknowledge.queue: "),
        ("acknowledge: {own_queue: 0}", "traffic.acknowledge.own_queue: "),
        ("acknowledge: {table: 0}", "traffic.acknowledge.table: "),
        ("acknowledge: {age_limit_cycles: 0}", "traffic.acknowledge.age_limit_cycles: "),
        ("acknowledge: {vcs: some}", "traffic.acknowledge.vcs: "),
    ],
)
def test_bad_acknowledges(traffic: str, message: str) -> None:
    with pytest.raises(ConfigError) as problem:
        parse_config(f"{TORUS}traffic: {{{traffic}}}\n")
    assert message in str(problem.value)


def test_algorithms_that_do_not_go_together() -> None:
    def refusal(text: str) -> Any:
        with pytest.raises(RoutingError) as problem:
            Simulation(parse_config(text), 0.1, 1)
        return str(problem.value)

    dragonfly = "name: test\ntopology: {kind: dragonfly, p: 1, a: 2, h: 1}\nrouter: {vcs: 6}\n"
    assert "routing.algorithm q_adaptive learns from every packet" in refusal(
        f"{dragonfly}routing: {{algorithm: q_adaptive}}\ntraffic: {{acknowledge: {{}}}}\n"
    )
    assert "traffic.acknowledge.vcs must be shared with routing.algorithm ugal_node" in refusal(
        f"{dragonfly}routing: {{algorithm: ugal_node}}\ntraffic: {{acknowledge: {{vcs: own}}}}\n"
    )
    few = refusal(f"{TORUS}{ADAPTIVE}router: {{vcs: 3}}\ntraffic: {{acknowledge: {{vcs: own}}}}\n")
    assert few.startswith("router.vcs must be at least 4 for ")
    assert re.search(r"not 3: .* \(traffic\.acknowledge\.vcs: own takes one\)$", few)
