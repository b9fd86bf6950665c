"""Failures in the middle of a run: conservation of flits, packets and credits, losses by cause, new tables."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import Config, ConfigError, parse_config
from hopforge.model.network.core.kinds import ACTIVE, HEAD, IDLE, SENT
from hopforge.model.routing import RoutingError
from hopforge.model.topology.failed import FailureError
from hopforge.sim.failures.purge import buffered_flits, current_packets, flying_flits
from hopforge.sim.run.packet_trace import list_packets
from hopforge.sim.run.simulation import Simulation

sys.path.insert(0, str(Path(__file__).parent))
from accounts import check_state

BASE = """
name: test
topology: {kind: random_regular, routers: 16, degree: 4, hosts_per_router: 2, seed: 1}
tables: {scheme: shortest, layers: acro}
"""
FAILURE = (
    "{cycle: 900, links: [[0, 2], [3, 13], [1, 8], [2, 9]], detection_cycles: 150, reprogram_cycles: 200, "
    "repair_cycles: 1100}"
)
SWITCH = "{cycle: 800, switches: [5], detection_cycles: 100, reprogram_cycles: 200, repair_cycles: 1200}"


def configure(
    router: str = "vcs: 4", algorithm: str = "tables", failures: str = FAILURE, more: str = "", flits: int = 4
) -> Config:
    return parse_config(
        f"{BASE}{more}\nrouter: {{{router}}}\nrouting: {{algorithm: {algorithm}}}\n"
        f"traffic: {{packet_flits: {flits}}}\n"
        f"simulation: {{warmup_cycles: 500, max_cycles: 3000, failures: [{failures}]}}\n"
    )


@pytest.mark.parametrize("failures", [FAILURE, SWITCH], ids=["links", "switch"])
@pytest.mark.parametrize(
    ("router", "algorithm"),
    [
        ("vcs: 4", "tables"),
        ("vcs: 4, vc_release: credits, credit_delay_cycles: 2, link_latency_cycles: 3", "tables"),
        ("vcs: 4, speculation: true, va: wavefront, sa: wavefront", "tables"),
        ("vcs: 5, switching: vct, rc_cycles: 2", "shortest"),
        ("vcs: 2, switching: saf, arbiter: matrix", "up_down"),
        ("vcs: 3, buffer_flits: 2, vc_release: credits", "shortest_escape"),
        ("vcs: 6", "tables lash_tor"),
        ("vcs: 4, va: free_queue", "tables"),
        ("vcs: 4, va: free_queue, vc_release: credits, rc_cycles: 1", "tables"),
    ],
)
def test_everything_is_accounted_for(router: str, algorithm: str, failures: str) -> None:
    algorithm, _, layers = algorithm.partition(" ")
    config = configure(router, algorithm, failures)
    if layers:
        config = config.model_copy(update={"tables": config.tables.model_copy(update={"layers": layers})})
    run = Simulation(config, 0.3, 3)
    assert run.reconfiguration is not None
    for _ in range(120):
        run.advance(25)
        check_state(run)
    failed, repaired = run.reconfiguration.records
    assert failed.flits_on_links > 0 and failed.packets_lost > 0
    assert (failed.flits_in_switches > 0) == (failures == SWITCH)
    # what stood before a failed link is sent again, not lost
    assert failed.packets_set_aside > 0 and failed.packets_without_host == 0
    assert failed.stopped_cycle == failed.cycle + (150 if failures == FAILURE else 100)
    assert failed.stopped_cycle < failed.empty_cycle <= failed.reprogrammed_cycle
    assert failed.reprogrammed_cycle >= failed.stopped_cycle + 200
    assert repaired.flits_lost == 0 and repaired.packets_set_aside == 0 and repaired.reprogrammed_cycle > 0


def drain(run: Simulation, cycles: int) -> None:
    """Let the sources fall silent and everything arrive."""
    run.advance(cycles)
    run.state["host"]["next_time"][run.state["host"]["packet"] < 0] = 1 << 62
    for _ in range(60):
        run.advance(100)
        run.state["host"]["next_time"][:] = 1 << 62


def test_only_packets_of_the_failed_link_are_lost() -> None:
    """Every packet that was created has arrived in the end, but those that had a flit on the link in that cycle."""
    run = Simulation(configure(failures="{cycle: 1200, links: [[0, 2]]}"), 0.2, 1)
    failures = run.reconfiguration
    assert failures is not None
    run.advance(1200)
    state, topology = run.state, run.topology
    # from the definition, before the failure: packets on the link, or with their output VC there and the head gone
    V, P = int(state["vcs"]), int(state["ports"])
    link = {(r, p) for r, other in ((0, 2), (2, 0)) for p in np.flatnonzero(topology.peer_router[r] == other).tolist()}
    cut = set()
    target, flying, _ = flying_flits(state)
    for n, flit in zip(target.tolist(), flying.tolist(), strict=True):
        if n < len(state["input_vc"]):
            sender = int(state["input_vc"]["credit_to"][n])
            if sender < len(state["output_vc"]) and divmod(sender // V, P) in link:
                cut.add(flit >> 2)
    serving, (number, flits) = current_packets(state), buffered_flits(state)
    for n in np.flatnonzero(state["input_vc"]["state"] == ACTIVE).tolist():
        here = flits[number == n]
        begun = len(here) == 0 or not here[0] & HEAD
        if begun and divmod(int(state["input_vc"]["out_vc"][n]) // V, P) in link:
            cut.add(int(serving[n]))
    drain(run, 1500)
    record = failures.records[0]
    assert record.packets_lost == len(cut) > 0
    assert state.flits_in_flight == 0 and failures.network.set_aside == 0 and record.packets_set_aside > 0
    assert int(state["packets_created"]) == int(state["packets_ejected"]) + len(cut)
    assert int(state["flits_dropped"]) == record.flits_lost >= record.flits_on_links > 0
    assert int(state["flits_injected"]) == int(state["flits_ejected"]) + int(state["flits_dropped"])


@pytest.mark.parametrize(
    ("flits", "latency"),
    [(1, 1), (3, 2), *(pytest.param(*more, marks=pytest.mark.study) for more in ((1, 4), (3, 1), (5, 7)))],
)
def test_a_flit_is_on_a_link_from_the_cycle_after_its_grant_until_it_is_in_the_buffer(flits: int, latency: int) -> None:
    """One packet over the link 0-1 of a ring; docs/guides/failures.md and router.md, Stages of a flit, by hand."""
    # sent by the host in 10, first VA in 12, granted from 13 on; the last cycle on the link is s + 2 + L
    grants = range(13, 13 + flits)
    for failed in range(11, grants[-1] + latency + 6):
        config = parse_config(
            "name: t\ntopology: {kind: torus, radices: [4]}\nrouting: {algorithm: up_down}\n"
            f"router: {{link_latency_cycles: {latency}, buffer_flits: 8}}\ntraffic: {{packet_flits: {flits}}}\n"
            f"simulation: {{failures: [{{cycle: {failed}, links: [[0, 1]], detection_cycles: 5}}]}}\n"
        )
        script = tuple(np.array([x]) for x in (0, 10, 1, flits))
        run = Simulation(config, 0.1, 1, script=script, check=False)
        run.advance(3000)
        assert run.reconfiguration is not None
        record = run.reconfiguration.records[0]
        on_link = sum(s + 1 <= failed <= s + 2 + latency for s in grants)
        # a packet is lost, too, while the link has carried a part of it
        lost = on_link > 0 or grants[0] < failed <= grants[-1]
        assert record.flits_on_links == on_link, failed
        assert record.packets_lost == lost, failed
        assert int(run.state["packets_ejected"]) == 1 - lost, failed
        assert record.packets_set_aside == (failed <= grants[0]), failed


@pytest.mark.parametrize(("router", "load"), [("vcs: 4", 0.8), ("vcs: 4, vc_release: credits", 0.3)])
def test_hosts_send_what_they_have_set_aside_before_their_own(router: str, load: float) -> None:
    """Also where it waits for a virtual channel from the host, and where the host has begun none of its own packets."""
    run = Simulation(configure(router, failures=FAILURE), load, 1, log_events=400_000)
    run.advance(1900)
    assert run.reconfiguration is not None
    events = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    heads = events[(events[:, 1] == SENT) & (events[:, 5] & HEAD != 0)]
    sent: set[int] = set()
    again, own = Counter[int](), dict[int, int]()  # last of them, and first of its own, of each host
    for cycle, _, host, _, code, _ in heads.tolist():
        if code in sent:
            again[host] = cycle
        elif cycle >= run.reconfiguration.records[0].reprogrammed_cycle:
            own.setdefault(host, cycle)
        sent.add(code)
    assert any(host in own for host in again)
    assert all(again[host] < own.get(host, 1900) for host in again)


def test_the_new_tables_avoid_what_is_down() -> None:
    run = Simulation(configure(failures="{cycle: 700, links: [[0, 2]], switches: [9]}"), 0.1, 1)
    run.advance(2500)
    assert run.reconfiguration is not None and run.reconfiguration.records[0].reprogrammed_cycle > 0
    run.state["output_port"]["flits"] = 0
    before = int(run.state["packets_dropped"])
    run.advance(2000)
    peer, flits = run.topology.peer_router, run.state["output_port"]["flits"].reshape(run.topology.peer_router.shape)
    assert flits[0][peer[0] == 2].sum() == flits[2][peer[2] == 0].sum() == 0
    assert flits[9].sum() == flits[peer == 9].sum() == 0 and flits.sum() > 0
    # packets to the hosts of the failed switch are unroutable at once: 2 of 32 destinations
    assert int(run.state["packets_dropped"]) > before
    assert (run.state["host"]["packet"][run.topology.host_router == 9] == -1).all()


@pytest.mark.parametrize("second", ["", ", second_level: {entries: 32}"])
def test_lookup_engines_are_flushed(second: str) -> None:
    cache = f"cache: {{entries: 16, ways: 4{second}}}"
    engine = f"lookup: {{reduction: false, {cache}, tcam: {{kind: external, latency_cycles: 12}}}}"
    run = Simulation(configure("vcs: 4, route_computation: lookup", failures=FAILURE, more=engine), 0.1, 2)
    assert run.state.lookup is not None and run.reconfiguration is not None
    arrays = run.state.lookup.arrays
    two = run.state.lookup.second
    for _ in range(100):
        before = [record.reprogrammed_cycle for record in run.reconfiguration.records]
        run.advance(20)
        check_state(run)
        if before and before[-1] < 0 <= run.reconfiguration.records[-1].reprogrammed_cycle:
            break
    else:
        pytest.fail("the tables were never replaced")
    assert (arrays["line"]["key"] > 0).sum() < 60  # 20 cycles later: little else than what was just looked up
    if two is not None:
        assert (two.arrays["line"]["key"] > 0).sum() < 60
    drained = run.reconfiguration.records[0].packets_set_aside
    run.advance(1000)
    check_state(run)
    assert drained > 0 and (arrays["line"]["key"] > 0).sum() > 200


def test_switches_without_hosts_drop_what_they_cannot_send_on() -> None:
    config = parse_config(
        "name: t\ntopology: {kind: fat_tree, k: 2, n: 2}\nrouting: {algorithm: up_down}\nrouter: {vcs: 2}\n"
        "traffic: {packet_flits: 3}\nsimulation: {failures: [{cycle: 500, ports: [[8, 0]], detection_cycles: 300}]}\n"
    )
    run = Simulation(config, 0.3, 1)
    assert run.topology.peer_router[8, 0] in range(4, 8) and (run.topology.host_at[4:] < 0).all()
    for _ in range(80):
        run.advance(25)
        check_state(run)
    assert run.reconfiguration is not None
    record = run.reconfiguration.records[0]
    assert record.packets_without_host > 0 and record.reprogrammed_cycle > 0
    dropped = int(run.state["flits_dropped"])
    assert dropped == record.flits_lost + 3 * record.packets_without_host
    assert int(run.state["packets_dropped"]) == record.packets_lost + record.packets_without_host


def test_messages_that_lost_a_packet_are_closed() -> None:
    config = configure(failures=SWITCH)
    traffic = config.traffic.model_copy(update={"message_packets": 3})
    run = Simulation(config.model_copy(update={"traffic": traffic}), 0.2, 1)
    for _ in range(30):
        run.advance(100)
        check_state(run)
    state = run.state
    live = len(state["message"]) - int(state["free_messages"])
    packets = len(state["packet"]) - int(state["free_packets"])
    assert live <= packets + int(state["hosts"])


def test_the_result_does_not_depend_on_how_the_run_is_cut() -> None:
    def end(step: int) -> tuple[Any, ...]:
        run = Simulation(configure(), 0.2, 5)
        for _ in range(3000 // step):
            run.advance(step)
        assert run.reconfiguration is not None
        state = run.state
        return (
            run.reconfiguration.table().to_dict(), run.reconfiguration.series.to_dict(), int(state["latency_sum"]),
            state["input_vc"][["state", "flits"]].tolist(), int(state["packets_ejected"]),
        )  # fmt: skip

    assert end(3000) == end(300) == end(25)


def test_a_run_without_failures_is_untouched_until_the_first() -> None:
    plain = Simulation(configure(failures=""), 0.2, 1)
    failing = Simulation(configure(), 0.2, 1)
    assert plain.reconfiguration is None
    plain.advance(900)
    failing.advance(900)
    for name in ("input_vc", "output_vc", "host", "histogram", "fifo"):
        assert np.array_equal(plain.state[name], failing.state[name]), name
    assert (plain.state["input_vc"]["state"] != IDLE).any()


@pytest.mark.parametrize(
    ("failures", "message"),
    [
        ("{cycle: 10, links: [[0, 1]]}", "there is no link between routers 0 and 1"),
        ("{cycle: 10, switches: [16]}", "router 16 does not exist; .* has routers 0 to 15"),
        ("{cycle: 10, ports: [[0, 0]]}", "port 0 of router 0 .* leads to a host"),
        (
            "{cycle: 10, links: [[0, 2], [0, 3], [0, 5], [0, 13]]}",
            r"the network falls apart: no path from router 0 to router 1 \(2 parts of 15, 1",
        ),
    ],
)
def test_impossible_failures_are_refused(failures: str, message: str) -> None:
    failures = f"{{cycle: 5, links: [[0, 2]]}}, {failures}"
    with pytest.raises(FailureError, match=rf"^simulation\.failures\[1\]: {message}"):
        Simulation(configure(failures=failures), 0.1, 1)


def test_late_detection_is_refused() -> None:
    section = "simulation: {failures: [{cycle: 5, links: [[0, 2]], detection_cycles: 20000, repair_cycles: 30000}]}"
    with pytest.raises(ConfigError) as error:
        parse_config(f"{BASE}{section}")
    words = "simulation.failures[0].detection_cycles: must be below simulation.deadlock_cycles=10000, not 20000"
    assert words in str(error.value)


def test_coordinates_cannot_go_around_a_failure() -> None:
    config = parse_config(
        "name: t\ntopology: {kind: mesh, radices: [3, 3]}\nsimulation: {failures: [{cycle: 5, links: [[0, 1]]}]}"
    )
    with pytest.raises(RoutingError, match=r"routing.algorithm: must be one of tables, shortest, .* not dor"):
        Simulation(config, 0.1, 1)


@pytest.mark.parametrize(
    ("failures", "message"),
    [
        ("{cycle: 5}", "links: missing; a failure needs links, ports or switches"),
        (
            "{cycle: 5, links: [[0, 2]], detection_cycles: 10, reprogram_cycles: 20, repair_cycles: 30}",
            r"repair_cycles: must be more than detection_cycles \+ reprogram_cycles = 30, not 30",
        ),
    ],
)
def test_mistakes_in_the_section(failures: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        configure(failures=failures)


DRAGONFLY = (
    "name: t\ntopology: {kind: dragonfly, p: 2, a: 3, h: 1}\naddress: {chunk_bits: 4}\n"
    "router: {vcs: %d, link_latency_cycles: 3, global_latency_cycles: 9}\nrouting: {algorithm: %s}\n"
    "simulation: {warmup_cycles: 500, max_cycles: 3000, failures: [{cycle: 900, links: [%s], detection_cycles: 100, "
    "reprogram_cycles: 200, repair_cycles: 1100}]}\n"
)


@pytest.mark.parametrize(("algorithm", "vcs"), [("valiant_group", 3), ("ugal_node", 4), ("par", 5), ("q_adaptive", 5)])
def test_dragonflies_lose_and_regain_a_link_between_groups(algorithm: str, vcs: int) -> None:
    """Learned times of other ports are kept, the failed one has none until it works again."""
    run = Simulation(parse_config(DRAGONFLY % (vcs, algorithm, "[0, 3]")), 0.4, 3)
    topology, failures = run.topology, run.reconfiguration
    assert failures is not None
    dead = [(0, topology.peer_router[0].tolist().index(3)), (3, topology.peer_router[3].tolist().index(0))]

    def times(router: int, port: int) -> np.ndarray:
        first, shape = run.plan.estimates or (0, ())
        return run.state["memory"][first:].reshape(shape)[router, :, port - 2]

    kept = 0
    for step in range(120):
        old, waiting = run.state["memory"].copy(), failures.records and failures.records[0].reprogrammed_cycle < 0
        run.advance(25)
        check_state(run)
        assert not np.isnan(run.state["memory"]).any()
        if waiting and failures.records[0].reprogrammed_cycle >= 0:
            kept = int(((run.state["memory"] == old) & (old != run.plan.memory)).sum())
        if step == 60:
            assert failures.records[0].reprogrammed_cycle > 0
            before = [int(run.state["output_port"]["flits"][r * topology.max_ports + o]) for r, o in dead]
        if step == 75:
            assert before == [int(run.state["output_port"]["flits"][r * topology.max_ports + o]) for r, o in dead]
            if algorithm == "q_adaptive":
                assert np.isinf(times(*dead[0])).all() and np.isinf(times(*dead[1])).all()
    failed, repaired = failures.records
    assert failed.flits_on_links > 0 and repaired.flits_lost == 0 and repaired.reprogrammed_cycle > 0
    assert int(run.state["output_port"]["flits"][dead[0][0] * topology.max_ports + dead[0][1]]) > before[0]
    assert int(run.state["flits_ejected"]) > 10_000
    if algorithm == "q_adaptive":
        assert kept > 50 and np.isfinite(times(*dead[0])).all()


def test_dragonflies_need_their_links_inside_a_group() -> None:
    with pytest.raises(RoutingError, match=r"only links between groups may fail, not that of routers 0 and 1"):
        Simulation(parse_config(DRAGONFLY % (5, "q_adaptive", "[0, 1]")), 0.4, 3)


def test_a_link_that_a_second_failure_holds_down_does_not_work_again() -> None:
    twice = (
        "{cycle: 900, links: [[0, 2]], detection_cycles: 50, reprogram_cycles: 50, repair_cycles: 300}, "
        "{cycle: 1000, links: [[0, 2], [3, 13]], detection_cycles: 50, reprogram_cycles: 50, repair_cycles: 600}"
    )
    run = Simulation(configure(failures=twice), 0.1, 1)
    assert run.reconfiguration is not None
    words = [epoch.what for epoch in run.reconfiguration.epochs]
    assert words == [
        "link 0–2 fails", "link 0–2, link 3–13 fails",
        "link 0–2 is repaired, but not what another failure holds down", "link 0–2, link 3–13 works again",
    ]


@pytest.mark.parametrize("source", ["source: bernoulli", "source: on_off, burst_cycles: 20", "message_packets: 8"])
@pytest.mark.parametrize(
    "router", ["vcs: 2", "model: input_output_queued, vcs: 2, flit_ns: 4, crossbar_ns: 4, link_ns: 4, host_ns: 4"]
)
def test_all_that_a_failed_host_has_created_is_abandoned(router: str, source: str) -> None:
    """What its source queue holds is counted, and the rest of a message does not follow after the repair."""
    host, failed, repaired, cycles = 4, 500, 700, 1500
    failure = f"{{cycle: {failed}, switches: [{host}], detection_cycles: 5, reprogram_cycles: 5, repair_cycles: 200}}"
    text = f"""
name: test
topology: {{kind: mesh, radices: [3, 3]}}
router: {{{router}}}
routing: {{algorithm: up_down}}
traffic: {{pattern: hotspot, share: 0.4, {source}}}
simulation: {{load: 0.7, max_cycles: {cycles}, failures: [%s]}}
"""
    healthy, config = parse_config(text % ""), parse_config(text % failure)
    unit = Simulation(config, 0.7, 1).built.flit_cycles
    whole = list_packets(healthy, 0.7, 1, 3 * cycles * unit)
    created = whole[(whole["host"] == host) & (whole["created"] < failed * unit)]
    found = list_packets(config, 0.7, 1, cycles * unit)
    mine = found[found["host"] == host]
    before, after = mine[mine["sent"] < failed * unit], mine[mine["sent"] >= failed * unit]
    assert len(after)
    assert len(created) > len(before)
    assert after["number"].min() == len(created)
    assert after["created"].min() > repaired * unit
    run = Simulation(config, 0.7, 1)
    run.advance(cycles * unit)
    assert run.reconfiguration is not None
    assert [record.packets_unsent for record in run.reconfiguration.records] == [len(created) - len(before), 0]
