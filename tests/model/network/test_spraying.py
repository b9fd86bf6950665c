"""Spraying and reorder buffers beside the golden model, from the log of every flit (docs/definitions/spraying.md)."""

import functools
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numba import int64
from tests.model.topology.spread_by_bits import port_of

from hopforge.model.config import ConfigError, parse_config
from hopforge.model.config.uses import unused_sections
from hopforge.model.errors import UserError
from hopforge.model.kernel.compile import kernel
from hopforge.model.kernel.histogram import HISTOGRAM_BINS
from hopforge.model.network.core.event_log import put_log
from hopforge.model.network.core.hooks import ARRIVED, LOST, call_hook
from hopforge.model.network.core.kinds import GRANTED, HEAD, RECEIVED, SENT, TAIL
from hopforge.model.network.core.net_record import NET_RECORD
from hopforge.model.network.core.spray_records import DELAYS, EXTENTS, FLOW_BUFFERS, HISTOGRAMS, HOST_BUFFERS
from hopforge.model.network.golden_reorder import GoldenReceiver, GoldenSource, n_reordered, reordered_extent
from hopforge.model.routing import RoutingError
from hopforge.sim.run.packet_script import draw_packets
from hopforge.sim.run.program_run import run_program
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.start.preparation import prepare

TREE = "{kind: fat_tree, k: 2, n: 2}"  # 8 hosts, two leaves up to 4 ways
PACKETS = 3
CYCLES = 1500
def simulation(
    traffic: str, routing: str = "algorithm: minimal, spread: entropy", load: float = 0.4, vcs: int = 2, more: str = ""
) -> Simulation:
    return Simulation(parse_config(
        f"name: x\ntopology: {TREE}\nrouting: {{{routing}}}\nrouter: {{vcs: {vcs}, buffer_flits: 4}}\n"
        f"traffic: {{packet_range: [1, 4], message_packets: {PACKETS}, include_self: false, {traffic}}}\n"
        f"simulation: {{load: {load}, min_cycles: 1000, max_cycles: 1000{more}}}\n"
    ), load, 7)  # fmt: skip


@dataclass
class Seen:
    """What the log of a run says."""

    run: Simulation
    #: (source, number of its packet) → destination, what has arrived
    target: dict[tuple[int, int], int] = field(default_factory=dict)
    #: cycle, host, packet, kind of flit of what hosts sent and received
    sent: list[tuple[int, int, tuple[int, int], int]] = field(default_factory=list)
    received: list[tuple[int, int, tuple[int, int], int]] = field(default_factory=list)
    #: (packet, router) → output port
    ways: dict[tuple[tuple[int, int], int], int] = field(default_factory=dict)

    def numbers(self) -> dict[tuple[int, int], int]:
        """Return the sequence number of every packet that has arrived: in its flow all before it were taken up."""
        count: dict[tuple[int, int], int] = defaultdict(int)
        found = {}
        for source, number in sorted(self.target):
            flow = source, self.target[source, number]
            found[source, number] = count[flow]
            count[flow] += 1
        return found

    def receivers(self) -> dict[tuple[int, int], GoldenReceiver]:
        """Return golden receivers of all flows, which have taken what arrived."""
        numbers, found = self.numbers(), defaultdict(GoldenReceiver)
        for cycle, host, packet, kind in self.received:
            if kind & TAIL:
                found[packet[0], host].arrive(numbers[packet], cycle)
        return found


@functools.cache
def seen(*arguments: str) -> Seen:
    """Run until everything has arrived, and return what happened."""
    run = simulation(*arguments)
    put_log(run.state, 200_000)
    run.advance(CYCLES)
    run.state.record["log_failure"] = np.log1p(-1e-12)  # no host begins another message than that which is due next
    run.advance(CYCLES)
    assert run.state.flits_in_flight == 0 and (run.state["host"]["packet"] < 0).all()
    found = Seen(run)
    ports, vcs = int(run.state["ports"]), int(run.state["vcs"])
    for cycle, kind, source, target, code, flit in run.state["log"].reshape(-1, 6)[: run.state["log_length"]].tolist():
        packet = code >> 40, code & (1 << 40) - 1
        if kind == SENT:
            found.sent.append((cycle, source, packet, flit))
        elif kind == RECEIVED:
            found.received.append((cycle, source, packet, flit))
            found.target[packet] = source
        elif kind == GRANTED and flit & HEAD:
            found.ways[packet, source // vcs // ports] = target // vcs % ports
    return found


def histogram(run: Simulation, row: int) -> list[int]:
    """Return all values of a row of the histograms, in order."""
    counts = run.state["reorder_histogram"].reshape(HISTOGRAMS, HISTOGRAM_BINS)[row]
    return np.repeat(np.arange(HISTOGRAM_BINS), counts).tolist()


IN_ORDER = "entropy: {per: packet}, reorder: {}"
RUNS = [
    (IN_ORDER,),
    ("entropy: {per: message, values: 3}, reorder: {deliver: at_once}",),
    ("reorder: {}", "algorithm: minimal"),
    ("entropy: {per: packet}, reorder: {buffer_packets: 1}",),
]


@pytest.mark.parametrize("arguments", RUNS)
def test_order_and_buffers_are_those_of_the_golden_model(arguments: tuple[str, ...]) -> None:
    found = seen(*arguments)
    receivers = found.receivers()
    count = found.run.state["spray"][0]
    extents = [extent for each in receivers.values() for extent in each.extents()]
    assert len(extents) > 30, "packets come out of order"
    assert count["packets"] == len(found.target) == sum(len(each.came) for each in receivers.values())
    assert count["reordered"] == len(extents)
    assert histogram(found.run, EXTENTS) == sorted(extents)
    for n, name in enumerate(("after_one", "after_two", "after_three"), start=1):
        assert count[name] == sum(each.n_reordered(n) for each in receivers.values())
    assert histogram(found.run, FLOW_BUFFERS) == sorted(k for each in receivers.values() for k in each.occupancy)
    delays, numbers = [], found.numbers()
    arrived = {packet: cycle for cycle, _, packet, kind in found.received if kind & TAIL}
    for (source, host), each in receivers.items():
        assert [number for number, _ in each.delivered] == list(range(len(each.came)))
        came = {numbers[p]: cycle for p, cycle in arrived.items() if (p[0], found.target[p]) == (source, host)}
        delays += [cycle - came[number] for number, cycle in each.delivered]
    assert histogram(found.run, DELAYS) == sorted(delays)
    assert count["delay_sum"] == sum(delays)
    assert not found.run.state["reorder_buffer"]["packets"].any() and not found.run.state["flow"]["held"].any()


def test_a_hosts_buffer_is_that_of_all_its_flows() -> None:
    found = seen(IN_ORDER)
    numbers, flows = found.numbers(), defaultdict(GoldenReceiver)
    values, most_flits = [], 0
    length: dict[tuple[int, int], int] = defaultdict(int)
    packet_of = {(*p[:1], found.target[p], numbers[p]): p for p in numbers}
    for cycle, host, packet, kind in found.received:
        length[packet] += 1
        if kind & TAIL:
            flows[packet[0], host].arrive(numbers[packet], cycle)
            waiting = [(s, h, k) for (s, h), each in flows.items() if h == host for k in each.waiting]
            values.append(len(waiting))
            most_flits = max(most_flits, sum(length[packet_of[one]] for one in waiting))
    assert histogram(found.run, HOST_BUFFERS) == sorted(values)
    assert found.run.state["reorder_buffer"]["most_flits"].max() == most_flits > 0


def test_messages_end_when_they_are_delivered() -> None:
    """Whether packets wait changes nothing in the network: messages are later by what the golden receivers say."""
    at_once, in_order = seen("entropy: {per: packet}, reorder: {deliver: at_once}"), seen(IN_ORDER)
    assert at_once.received == in_order.received
    later = 0
    numbers = in_order.numbers()
    arrived = {packet: cycle for cycle, _, packet, kind in in_order.received if kind & TAIL}
    delivered = {
        (flow, number): cycle for flow, each in in_order.receivers().items() for number, cycle in each.delivered
    }
    messages: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for packet in numbers:
        messages[packet[0], packet[1] // PACKETS].append(packet)
    for packets in messages.values():
        assert len(packets) == PACKETS
        end = max(delivered[(p[0], in_order.target[p]), numbers[p]] for p in packets)
        later += end - max(arrived[p] for p in packets)
    sums = [int(each.run.state["message_latency_sum"]) for each in (at_once, in_order)]
    assert sums[1] - sums[0] == later > 0
    assert int(in_order.run.state["messages_measured"]) == len(messages)


def test_a_buffer_of_few_places_is_never_too_small() -> None:
    """No packet leaves before the limit lets it, and one that may waits for nothing else than a VC."""
    places = 1
    found = seen("entropy: {per: packet}, reorder: {buffer_packets: 1}")
    numbers, receivers = found.numbers(), defaultdict(GoldenReceiver)
    events = sorted(
        [(cycle, 0, host, p) for cycle, host, p, kind in found.received if kind & TAIL]
        + [(cycle, 1, host, p) for cycle, host, p, kind in found.sent if kind & HEAD],
        key=lambda event: event[:2],
    )
    at_limit = 0
    for cycle, is_sent, host, packet in events:
        if is_sent:
            ahead = numbers[packet] - receivers[packet[0], found.target[packet]].front
            assert 0 <= ahead <= places
            at_limit += ahead == places
        else:
            receivers[packet[0], host].arrive(numbers[packet], cycle)
    assert at_limit > 50
    assert max(max(each.occupancy) for each in receivers.values()) == places
    assert int(found.run.state["spray"]["held_back"][0]) > 0
    alone = simulation("entropy: {per: packet}, reorder: {buffer_packets: 0}")
    alone.advance(1000)
    assert int(alone.state["spray"]["reordered"][0]) == 0 < int(alone.state["spray"]["packets"][0])


def place(source: int, target: int, entropy: int, router: int, ways: int) -> int:
    """Return which of several routers between is taken, from the definition."""
    word = (((source + 1) * 2654435761) ^ (entropy * 668265263)) % 2**32
    word = ((word ^ (word >> 15) ^ target) * 2246822507) % 2**32
    word = ((word ^ (word >> 13) ^ router) * 3266489909) % 2**32
    return (word ^ (word >> 16)) % ways


@pytest.mark.parametrize(("entropy", "per", "values", "gap"), [
    ("per: packet", "packet", 65536, 0), ("per: message, values: 3", "message", 3, 0), ("per: flow", "flow", 65536, 0),
    ("per: flowlet, gap_cycles: 40, values: 5", "flowlet", 5, 40),
])  # fmt: skip
def test_routers_take_the_way_that_the_entropy_names(entropy: str, per: str, values: int, gap: int) -> None:
    reorder = ", reorder: {deliver: at_once}" if per == "message" else ", reorder: {}" if per == "packet" else ""
    found = seen(f"entropy: {{{entropy}}}{reorder}")
    topology = found.run.topology
    heads = sorted((cycle, p) for cycle, _, p, kind in found.sent if kind & HEAD)
    tails = {p: cycle for cycle, _, p, kind in found.sent if kind & TAIL}
    taken_up = taken_up_cycles(found)
    sources: dict[tuple[int, int], GoldenSource] = {}
    up, seen_ports = 0, set()
    ways = defaultdict(list)
    for (packet, router), port in found.ways.items():
        ways[packet].append((router, port))
    for _, packet in heads:
        source, target = packet[0], found.target[packet]
        mine = sources.setdefault((source, target), GoldenSource(per, values, gap))
        value = mine.take_up(taken_up[packet], packet[1] // PACKETS)
        mine.tail_left = tails[packet]
        for router, port in ways[packet]:
            ports = up_ports(topology, router, target)
            if ports:
                assert port == ports[port_of(source, target, value, router, len(ports))]
                seen_ports.add((source, target, router, port))
                up += 1
    assert up > 200
    several = len(seen_ports) > len({key[:3] for key in seen_ports})
    assert several == (per != "flow")


def test_valiant_goes_over_the_router_that_the_entropy_names() -> None:
    found = seen("entropy: {per: packet}", "algorithm: valiant, spread: entropy")
    topology, numbers = found.run.topology, found.numbers()
    visited = defaultdict(set)
    for packet, router in found.ways:
        visited[packet].add(router)
    homes, named = sorted(set(topology.host_router.tolist())), set()
    for packet, number in numbers.items():
        ends = [int(topology.host_router[host]) for host in (packet[0], found.target[packet])]
        if ends[0] == ends[1]:
            assert visited[packet] == set(ends)
            continue
        others = [router for router in homes if router not in ends]
        via = others[place(packet[0], found.target[packet], number, topology.routers, len(others))]
        assert via in visited[packet]
        named.add((*ends, via))
    assert len(named) == len(homes) * (len(homes) - 1) * (len(homes) - 2)


def taken_up_cycles(found: Seen) -> dict[tuple[int, int], int]:
    """Cycle in which each packet was taken up: when it was created, or behind the tail of the host's one before it."""
    created = creation_cycles()
    tails = {p: cycle for cycle, _, p, kind in found.sent if kind & TAIL}
    return {
        (host, number): max(created[host, number], tails.get((host, number - 1), -1) + 1)
        for host, number in found.target
    }


def creation_cycles() -> dict[tuple[int, int], int]:
    """Creation of all packets: the same seed draws the same."""
    host, time, *_ = draw_packets(simulation("entropy: {per: flow}"), 2 * CYCLES)
    count: dict[int, int] = defaultdict(int)
    cycles = {}
    for h, t in zip(host.tolist(), time.tolist(), strict=True):
        cycles[h, count[h]] = t
        count[h] += 1
    return cycles


@functools.cache
def up_ports(topology: Any, router: int, target: int) -> list[int]:
    """Ports of a router of the small tree that lead up, if the target is not below it."""
    level = levels(topology)
    below, stack = set(), [router]
    while stack:
        at = stack.pop()
        below.add(at)
        stack += [r for r in topology.peer_router[at].tolist() if r >= 0 and level[r] < level[at]]
    if topology.host_router[target] in below:
        return []
    return [p for p, r in enumerate(topology.peer_router[router].tolist()) if r >= 0 and level[r] > level[router]]


def levels(topology: Any) -> dict[int, int]:
    """Links from each router to the next one with hosts."""
    found = dict.fromkeys(topology.host_router.tolist(), 0)
    while len(found) < topology.routers:
        found |= {
            r: 1 + max(found.values()) for at in list(found) for r in topology.peer_router[at].tolist()
            if r >= 0 and r not in found
        }  # fmt: skip
    return found


def test_what_is_not_asked_for_changes_nothing() -> None:
    """One entropy for all is the hash of flows; watching changes no flit."""
    assert seen("entropy: {per: flow}").received == seen("", "algorithm: minimal, spread: flow").received
    watched = seen("entropy: {per: packet}, reorder: {deliver: at_once}")
    assert watched.received == seen("entropy: {per: packet}").received
    assert "spray" not in seen("", "algorithm: minimal, spread: flow").run.state.arrays


@kernel(int64(NET_RECORD, int64, int64, int64))
def tell(net: Any, event: int, a: int, b: int) -> int:
    """Tell the hook of messages of an event."""
    return call_hook(net.messages, net, event, a, b)


@pytest.mark.parametrize("seed", range(8))
def test_losses_leave_gaps_that_nobody_waits_for(seed: int) -> None:
    """Arrivals and losses of one flow in any order, most of them near their turn."""
    generator = np.random.default_rng(seed)
    count = int(generator.integers(5, 60))
    run = simulation("entropy: {per: packet}, reorder: {}")
    state, golden = run.state, GoldenReceiver()
    state["message"]["left"][0], state["message"]["lost"][0] = 1 << 30, 1
    lost_packets = 0
    for cycle, number in enumerate(np.argsort(np.arange(count) + generator.normal(0, 1 + seed, count)).tolist()):
        state.record["free_packets"] -= 1
        p = int(state["free_packet"][state["free_packets"]])
        state["packet"][p]["src"], state["packet"][p]["dst"], state["packet"][p]["length"] = 2, 5, 1 + number % 3
        state["sprayed"][p]["sequence"], state["packet_message"][p] = number, 0
        event = LOST if generator.random() < 0.3 else ARRIVED
        if tell(state.record[0], event, p, cycle) == 0:
            state["free_packet"][state["free_packets"]] = p
            state.record["free_packets"] += 1
        (golden.lose if event == LOST else golden.arrive)(number, cycle)
        lost_packets += event == LOST
        flow = state["flow"][2 * int(state["hosts"]) + 5]
        assert (flow["front"], flow["held"]) == (golden.front, len(golden.waiting))
        assert state["reorder_buffer"]["packets"][5] == len(golden.waiting)
        assert state["reorder_buffer"]["flits"][5] == sum(1 + k % 3 for k in golden.waiting)
    assert 0 < lost_packets < count
    assert histogram(run, EXTENTS) == sorted(golden.extents())
    assert histogram(run, FLOW_BUFFERS) == sorted(golden.occupancy)
    assert int(state["spray"]["after_three"][0]) == golden.n_reordered(3)
    assert int(state["free_packets"]) == len(state["packet"])
    gap, free = int(state["spray"]["free_gap"][0]), 0
    while gap >= 0:
        gap, free = int(state["gap"]["next"][gap]), free + 1
    assert free == len(state["gap"])


def test_the_golden_model_says_what_the_rfcs_say() -> None:
    """The example of RFC 4737, 7.1 (packet 4 comes behind 6) and one of RFC 5236: 1, 2, 4, 5, 3."""
    assert [reordered_extent([1, 2, 3, 5, 6, 4, 7], i) for i in range(7)] == [None] * 5 + [2, None]
    assert [n_reordered([1, 2, 3, 5, 6, 4, 7], 5, n) for n in (1, 2, 3)] == [True, True, False]
    receiver = GoldenReceiver()
    for cycle, number in enumerate([0, 1, 3, 4, 2]):
        receiver.arrive(number, cycle)
    assert receiver.occupancy == [0, 0, 1, 2, 0]
    assert receiver.delivered == [(0, 0), (1, 1), (2, 4), (3, 4), (4, 4)]


def test_links_that_fail_lose_packets_and_no_order() -> None:
    failure = "{cycle: 400, links: [[0, 4]], detection_cycles: 50, reprogram_cycles: 100, repair_cycles: 600}"
    run = simulation("entropy: {per: packet}, reorder: {}", more=f", failures: [{failure}]")
    run.advance(2000)
    run.state.record["log_failure"] = np.log1p(-1e-12)
    run.advance(2000)
    state = run.state
    dropped = int(state["packets_dropped"])
    assert dropped > 0
    flow = state["flow"]
    assert (flow["front"] == flow["made"]).all() and not flow["held"].any() and (flow["first_gap"] < 0).all()
    assert flow["arrivals"].sum() == flow["made"].sum() - dropped == state["packets_ejected"]
    assert int(state["free_packets"]) == len(state["packet"])
    assert int(state["free_messages"]) == len(state["message"])


def program(traffic: str, vcs: int = 2) -> Simulation:
    run = Simulation(parse_config(
        f"name: x\ntopology: {TREE}\nrouting: {{algorithm: minimal, spread: entropy}}\n"
        f"router: {{vcs: {vcs}, buffer_flits: 8}}\ntraffic: {{source: program, flit_bytes: 16, {traffic}}}\n"
        "workload: {kind: collective, operation: alltoall, ranks: 8, bytes: 1024, mtu_bytes: 64}\n"
    ), 0.1, 7)  # fmt: skip
    return run


def test_programs_get_messages_in_order() -> None:
    makespan, latency = {}, {}
    for name, traffic, vcs in (
        ("alone", "entropy: {per: packet}", 2), ("watched", "entropy: {per: packet}, reorder: {deliver: at_once}", 2),
        ("in order", "entropy: {per: packet}, reorder: {}", 2), ("one way", "entropy: {per: flow}, reorder: {}", 1),
        ("one way, alone", "entropy: {per: flow}", 1),
        ("few", "entropy: {per: packet}, reorder: {buffer_packets: 2}", 2),
    ):  # fmt: skip
        run = program(traffic, vcs)
        found = run_program(run)
        makespan[name], latency[name] = found.makespan, found.message_latency
        if name == "in order":
            assert found.reordering is not None and found.reordering.reordered_share > 0
            assert found.reordering.reorder_buffer_max > 1
            flow = run.state["flow"]
            assert (flow["front"] == flow["made"]).all() and flow["made"].sum() == found.packets
        if name == "few":
            assert found.reordering is not None and 0 < found.reordering.reorder_buffer_max <= 2
    assert (makespan["alone"], latency["alone"]) == (makespan["watched"], latency["watched"])
    # one message for each pair: it needs all its packets, in whatever order they come
    assert latency["in order"] == latency["watched"]
    assert makespan["one way"] == makespan["one way, alone"]
    assert makespan["few"] > makespan["watched"]


@pytest.mark.parametrize(("traffic", "routing", "said"), [
    ("entropy: {per: flowlet}", "spread: entropy", "gap_cycles: missing; per=flowlet needs it"),
    ("entropy: {per: flowlet, gap_cycles: 0}", "spread: entropy", "gap_cycles"),
    ("entropy: {per: packet, gap_cycles: 4}", "spread: entropy", "is for per=flowlet only, not per=packet"),
    ("entropy: {per: packet, values: 0}", "spread: entropy", "values"),
    ("entropy: {per: bit}", "spread: entropy", "per"),
    ("entropy: {pre: packet}", "spread: entropy", "did you mean 'per'"),
    ("entropy: {}", "spread: packet", "needs routing.spread=entropy, which reads it, not packet"),
    ("entropy: {}", "ways: one", "needs routing.spread=entropy, which reads it, not null"),
    ("entropy: {}", "spread: entropy, ways: one", "is for ways=all only, not ways=one"),
    ("", "spread: entropy", "traffic.entropy: missing; routing.spread=entropy needs it"),
    ("reorder: {buffer_packets: -1}", "ways: all", "buffer_packets"),
    ("reorder: {deliver: at_once, buffer_packets: 4}", "ways: all", "is for deliver=in_order only"),
    ("reorder: {}, reply: {}", "ways: all", "traffic.reorder: cannot stand together with traffic.reply"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(traffic: str, routing: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_config(
            f"name: x\ntopology: {TREE}\nrouting: {{algorithm: minimal, {routing}}}\nrouter: {{vcs: 2}}\n"
            f"traffic: {{{traffic}}}\n"
        )


@pytest.mark.parametrize(("reorder", "command", "unused"), [
    ("{}", "net", []), ("{}", "series", ["traffic.reorder"]), ("{}", "trace", ["traffic.reorder"]),
    ("{buffer_packets: 3}", "series", []), ("{buffer_packets: 3}", "net", []),
])  # fmt: skip
def test_commands_say_that_they_do_not_look_at_the_order(reorder: str, command: str, unused: list[str]) -> None:
    text = f"name: x\ntopology: {TREE}\nrouting: {{algorithm: up_down}}\ntraffic: {{reorder: {reorder}}}\n"
    assert unused_sections(parse_config(text), [command]) == unused


def test_hardware_has_no_reorder_buffer() -> None:
    text = "routing: {algorithm: up_down}\ntraffic: {reorder: {buffer_packets: 3}}"
    with pytest.raises(UserError, match=r"traffic.reorder.buffer_packets must be null for --part network.* not 3"):
        prepare("cosim --part network", parse_config(f"name: x\ntopology: {TREE}\n{text}\n"))


def test_failures_take_minimal_over_all_ways_only() -> None:
    failure = "{cycle: 400, links: [[0, 4]]}"
    with pytest.raises(RoutingError, match=r"routing.ways: must be all for a network with failures, not one"):
        simulation("", "algorithm: minimal, ways: one", more=f", failures: [{failure}]")


def test_other_routers_and_algorithms_are_refused() -> None:
    for text, said in (
        ("router: {model: input_output_queued}\ntraffic: {reorder: {}}\nrouting: {algorithm: minimal}",
         "traffic.reorder: needs router.model=input_queued, not input_output_queued"),
        ("routing: {algorithm: up_down, spread: entropy}\ntraffic: {entropy: {}}",
         "entropy is for minimal, valiant, tables only, not algorithm=up_down"),
        ("routing: {algorithm: valiant, spread: entropy, over: neighbours}\ntraffic: {entropy: {}}",
         "entropy is for over=routers only, not over=neighbours"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=said):
            parse_config(f"name: x\ntopology: {TREE}\n{text}\n")
