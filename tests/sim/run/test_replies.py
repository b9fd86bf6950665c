"""Requests and replies in the simulator: nothing lost or doubled, latencies, deadlocks that are refused and happen."""

import numpy as np
import pytest

from hopforge.model.config import ConfigError, parse_config
from hopforge.model.network.core.layouts import REPLIES, REQUESTS, ROUND_TRIPS
from hopforge.model.network.core.state import NetworkError
from hopforge.model.routing import RoutingError
from hopforge.model.routing.proof.deadlock import DeadlockError
from hopforge.sim.run.class_latencies import queue_delays
from hopforge.sim.run.simulation import Simulation

MESH = "name: test\ntopology: {kind: mesh, radices: [4, 4]}\n"


def simulated(reply: str, *, router: str = "vcs: 4", load: float = 0.05, rest: str = "") -> Simulation:
    return Simulation(parse_config(f"{MESH}router: {{{router}}}\ntraffic: {{reply: {reply}}}\n{rest}"), load, 1)


def test_every_request_has_one_reply() -> None:
    run = simulated("{flits: 3, delay_cycles: 7, queue: 2}", load=0.1)
    run.advance(4000)
    run.state["host"]["next_time"][:] = 1 << 62  # no more requests
    created = int(run.state["packets_created"])
    run.advance(4000)
    run.check_conservation()
    count = run.state["class_count"]
    requests = int(count[REQUESTS]["packets"])
    assert requests > 4000
    assert int(count[REPLIES]["packets"]) == int(count[ROUND_TRIPS]["packets"]) == requests
    assert int(run.state["packets_ejected"]) == 2 * requests >= created
    assert int(run.state["flits_ejected"]) == 4 * requests
    assert run.state.flits_in_flight == 0
    assert (run.state["replier"]["places"] == 0).all()
    # a round trip is a request, the delay, and a reply
    assert count[ROUND_TRIPS]["sum"] == count[REQUESTS]["sum"] + count[REPLIES]["sum"] + 7 * requests


def test_zero_load_round_trip() -> None:
    run = simulated("{flits: 5, delay_cycles: 20}", load=0.0005)
    found = run.run()
    request, reply, trip = found.classes
    # docs/definitions/router.md: 4·H + 2 + (F − 1) with H routers visited
    assert request.latency == pytest.approx(4 * found.hops + 2, abs=0.3)
    assert reply.latency == pytest.approx(request.latency + 4, abs=0.3)
    assert trip.latency == pytest.approx(request.latency + 20 + reply.latency, abs=0.3)
    assert trip.latency_std > 0
    assert trip.latency_median <= trip.latency_p95 <= trip.latency_p99 <= trip.latency_max
    assert found.row()["round_trip_latency"] == trip.latency


@pytest.mark.parametrize("queue", ["", ", queue: 2"])
def test_a_reply_created_with_the_tail_leaves_a_cycle_later(queue: str) -> None:
    soon, at_once = (simulated(f"{{flits: 3, delay_cycles: {delay}{queue}}}", load=0.1) for delay in (1, 0))
    for run in (soon, at_once):
        run.advance(5000)
    counts = [run.state["class_count"] for run in (soon, at_once)]
    assert int(soon.state["flits_ejected"]) == int(at_once.state["flits_ejected"])
    for number, more in ((REQUESTS, 0), (REPLIES, 1), (ROUND_TRIPS, 0)):
        before, now = (each[number] for each in counts)
        assert int(now["packets"]) == int(before["packets"]) > 3000
        assert int(now["sum"]) == int(before["sum"]) + more * int(before["packets"])


READS_AND_WRITES = "packet_lengths: [1, 5], packet_weights: [3, 1], reply: {lengths: [4, 2], queue: 3}"


def test_replies_are_as_long_as_their_requests_say() -> None:
    run = Simulation(parse_config(f"{MESH}router: {{vcs: 4}}\ntraffic: {{{READS_AND_WRITES}}}"), 0.05, 1)
    run.advance(20_000)
    run.state["host"]["next_time"][:] = 1 << 62
    run.advance(4000)
    run.check_conservation()
    requests = int(run.state["class_count"][REQUESTS]["packets"])
    flits, packets = (int(run.state[f"{name}_ejected"]) for name in ("flits", "packets"))
    # r reads and w writes: r + w requests, 5·r + 7·w flits
    writes = (flits - 5 * requests) // 2
    assert packets == 2 * requests and flits == 5 * (requests - writes) + 7 * writes
    assert writes / requests == pytest.approx(0.25, abs=0.02)


def test_the_longest_reply_must_fit() -> None:
    traffic = "packet_lengths: [1, 2], packet_weights: [1, 1], reply: {lengths: [5, 1]}"
    config = parse_config(f"{MESH}router: {{vcs: 4, buffer_flits: 4, switching: vct}}\ntraffic: {{{traffic}}}")
    with pytest.raises(NetworkError, match=r"buffer_flits must hold the longest packet \(5 flits\) under vct, not 4"):
        Simulation(config, 0.1, 1)


def test_accepted_counts_both_classes() -> None:
    run = simulated("{flits: 5}", load=0.04)
    found = run.run()
    assert not found.saturated
    assert found.accepted == pytest.approx(0.24, rel=0.05)
    assert found.packets == found.classes[0].packets + found.classes[1].packets


def test_growing_reply_queues_are_saturation() -> None:
    run = simulated("{flits: 16, vcs: shared}", load=0.1, rest="simulation: {min_cycles: 20000, max_cycles: 20000}")
    assert run.run().saturated


def test_replies_that_grow_are_not_hidden_by_older_requests() -> None:
    run = simulated("{flits: 16, vcs: shared}", load=0.1)
    first = queue_delays(run.state)
    run.state["host"]["next_time"] -= 1_000_000
    run.advance(2000)
    requests, replies, acknowledges = queue_delays(run.state)
    assert requests > 900_000
    assert replies - first[1] > 100
    as_old = np.array([requests, first[1], acknowledges])  # requests that had waited as long when the measurement began
    assert run._growth(as_old, 2000) == pytest.approx((replies - first[1]) / 2000)


def test_no_replies_no_columns() -> None:
    run = Simulation(parse_config(MESH), 0.05, 1)
    run.advance(100)
    found = run.run()
    assert found.classes == ()
    assert not any(name.startswith(("reply", "round")) for name in found.row())


def test_shared_virtual_channels_with_places_are_refused() -> None:
    with pytest.raises(DeadlockError, match=r"cycle: 0\.1→1 VC0 → .* → replies of host 15 → .* → replies of host 0 →"):
        simulated("{flits: 5, vcs: shared, queue: 2}", router="vcs: 2")
    simulated("{flits: 5, vcs: shared}", router="vcs: 2")
    simulated("{flits: 5, queue: 2}", router="vcs: 2")


def test_what_is_refused_does_deadlock() -> None:
    rest = "routing: {check: false}\nsimulation: {deadlock_cycles: 1000}"
    run = simulated("{flits: 5, vcs: shared, queue: 2}", router="vcs: 2, buffer_flits: 4", load=0.15, rest=rest)
    with pytest.raises(DeadlockError, match=r"waiting channels: .*replies of host \d+ → .*→host VC"):
        run.advance(20_000)


@pytest.mark.parametrize("check", [True, False])
def test_own_virtual_channels_do_not_deadlock(*, check: bool) -> None:
    rest = f"routing: {{check: {str(check).lower()}}}\nsimulation: {{deadlock_cycles: 1000}}"
    run = simulated("{flits: 5, queue: 1}", router="vcs: 2, buffer_flits: 2", load=0.5, rest=rest)
    run.advance(20_000)
    assert int(run.state["class_count"][ROUND_TRIPS]["packets"]) > 2000


def test_a_long_delay_is_no_deadlock() -> None:
    run = simulated("{flits: 1, delay_cycles: 5000, queue: 1}", load=0.5, rest="simulation: {deadlock_cycles: 1000}")
    run.advance(30_000)
    assert int(run.state["class_count"][ROUND_TRIPS]["packets"]) == 16 * 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("router: {vcs: 3}\ntraffic: {reply: {}}", "router.vcs: must be even for traffic.reply.vcs=own"),
        ("router: {model: packet}\ntraffic: {reply: {}}", "traffic.reply: needs router.model=input_queued, not packet"),
        ("router: {model: input_output_queued}\ntraffic: {reply: {}}", "needs router.model=input_queued"),
        ("traffic: {message_packets: 2, reply: {}}", "reply: is for message_packets=1 only, not 2"),
        ("traffic: {reply: {flits: 0}}", "traffic.reply.flits: "),
        ("traffic: {reply: {delay_cycles: -1}}", "traffic.reply.delay_cycles: "),
        ("traffic: {reply: {lengths: [1, 2]}}", "packet_lengths: missing; reply.lengths needs it"),
        ("traffic: {reply: {sender: shared, queue: 4}}", "reply.queue: cannot stand together with sender=shared"),
        ("traffic: {packet_lengths: [2], packet_weights: [1], reply: {lengths: [1], flits: 1}}",
         "traffic.reply.flits: cannot stand together with lengths"),
        ("traffic: {packet_lengths: [2, 2], packet_weights: [1, 1], reply: {lengths: [1, 3]}}",
         "traffic.packet_lengths: must differ with reply.lengths; 2 stands there twice"),
        ("traffic: {reply: {queue: 0}}", "traffic.reply.queue: "),
    ],
)
def test_bad_replies(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as problem:
        parse_config(MESH + text)
    assert message in str(problem.value)


def test_too_few_virtual_channels_for_two_classes() -> None:
    torus = "name: test\ntopology: {kind: torus, radices: [4, 4]}\nrouter: {vcs: 2}\ntraffic: {reply: {}}"
    with pytest.raises(RoutingError, match=r"at least 4 for .* not 2: .* \(traffic.reply.vcs: own gives each class"):
        Simulation(parse_config(torus), 0.1, 1)


def test_algorithms_that_compare_queues_share() -> None:
    text = "name: test\ntopology: {kind: dragonfly, p: 1, a: 2, h: 1}\nrouting: {algorithm: ugal_node}\n"
    with pytest.raises(RoutingError, match=r"traffic.reply.vcs must be shared with routing.algorithm ugal_node"):
        Simulation(parse_config(f"{text}router: {{vcs: 8}}\ntraffic: {{reply: {{}}}}"), 0.1, 1)


PATHS = (
    "name: test\ntopology: {kind: torus, radices: [4], hosts_per_router: 2}\n"
    "routing: {algorithm: tables, spread: SPREAD}\n"
    "tables: {scheme: k_shortest, lmc: 1, layers: fewest}\nrouter: {vcs: 4, route_computation: lookup}\n"
    "lookup: {cache: {entries: 2, ways: 2}}\n"
)


@pytest.mark.parametrize("spread", ["flow", "packet"])
def test_replies_over_several_paths_with_lookup_engines(spread: str) -> None:
    text = PATHS.replace("SPREAD", spread)
    for classes, words in (
        ("reply: {}", r"traffic.reply.vcs: must be shared, not own, for lookup engines with tables.scheme=k_shortest"),
        (
            "classes: [{name: a, vcs: 2, share: 0.5}, {name: b, vcs: 2, share: 0.5}]",
            "traffic.classes: must have no vcs",
        ),
    ):
        with pytest.raises(RoutingError, match=words):
            Simulation(parse_config(f"{text}traffic: {{{classes}}}"), 0.1, 1)
    run = Simulation(parse_config(f"{text}traffic: {{reply: {{vcs: shared}}}}"), 0.1, 1)
    run.advance(2000)
    run.state["host"]["next_time"][:] = 1 << 62  # no more requests
    run.advance(1000)
    run.check_conservation()
    count = run.state["class_count"]
    assert int(count[REPLIES]["packets"]) == int(count[REQUESTS]["packets"]) > 500
    assert run.state.flits_in_flight == 0
