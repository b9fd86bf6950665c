"""Several crossbar ports, iterations and steps in a cycle (router.md); beside BookSim in tests/sim/booksim."""

from collections import Counter

import numpy as np
import pytest

from hopforge.gen.design.configured import network_design
from hopforge.model.config import parse_config
from hopforge.model.config.load import ConfigError
from hopforge.model.config.uses import unused_sections
from hopforge.model.errors import UserError
from hopforge.model.network.core.event_log import put_log
from hopforge.model.network.core.kinds import GRANTED, RECEIVED
from hopforge.sim.run.prepared import prepare_trace
from hopforge.sim.run.simulation import Simulation

MESH = "topology: {kind: mesh, radices: [4, 4]}"
#: eight hosts at two routers, seven of which send to one
CROWDED = "topology: {kind: mesh, radices: [2], hosts_per_router: 4}"
OVER = "pattern: destinations, destinations: [4, 4, 4, 4, 0, 4, 4, 4]"
Events = list[tuple[int, int, int, int, int]]


def events(
    router: str, load: float, topology: str = MESH, traffic: str = "packet_flits: 3"
) -> tuple[Simulation, Events]:
    """(cycle, kind, place, VC or output VC, packet) of 1500 cycles."""
    text = f"name: x\n{topology}\nrouter: {{vcs: 4, {router}}}\ntraffic: {{{traffic}}}\n"
    run = Simulation(parse_config(text), load, 1)
    put_log(run.state, 1 << 20)
    run.advance(1500)
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    return run, [(cycle, kind, a, b, packet) for cycle, kind, a, b, packet, _ in log.tolist()]


@pytest.mark.parametrize(("speedup", "saved"), [(1, 0), (2, 1), (3, 2), (8, 2)])
def test_a_step_more_saves_a_cycle_in_each_router(speedup: int, saved: int) -> None:
    """VA, SA and the crossbar take three steps: one cycle less with two in a cycle, two less with three and more."""

    def latency(router: str) -> tuple[float, float]:
        text = f"name: x\n{MESH}\nrouter: {{{router}}}\nsimulation: {{min_cycles: 40000, max_cycles: 40000}}\n"
        found = Simulation(parse_config(text), 0.0005, 1).run()
        return found.latency, found.hops

    (plain, hops), (sped, _) = latency("vcs: 4"), latency(f"vcs: 4, internal_speedup: {speedup}")
    assert plain - sped == pytest.approx(saved * hops, abs=0.02)


@pytest.mark.parametrize("router", [
    "input_speedup: 2", "output_speedup: 3", "input_speedup: 4, output_speedup: 2, allocator_iterations: 3",
    "internal_speedup: 2.5, input_speedup: 2", "internal_speedup: 3, sa: input_first, va: wavefront",
    "internal_speedup: 2, output_speedup: 2, vc_release: credits, switching: vct",
    "input_speedup: 3, output_speedup: 2, sa: input_first, hold_switch: true",
    "internal_speedup: 1.5, input_speedup: 2, sa: wavefront, speculation: true",
    "output_speedup: 2, internal_speedup: 2, speculation: shared, output_queue_flits: 2",
    "internal_speedup: 1.5, sa: max_size, speculation: true", "internal_speedup: 2, arbiter: matrix, hold_switch: true",
])  # fmt: skip
def test_nothing_is_lost_and_links_carry_a_flit_a_cycle(router: str) -> None:
    run, log = events(router, 0.9)
    state = run.state
    assert state.flits_in_flight == state.flits_present
    received = [(cycle, host) for cycle, kind, host, _, _ in log if kind == RECEIVED]
    assert len(received) > 5000
    assert max(Counter(received).values()) == 1
    credits = state["output_vc"]["credits"]
    assert credits.min() >= 0
    assert (credits <= state["output_vc"]["depth"]).all()


def test_inputs_and_outputs_have_several_crossbar_ports() -> None:
    def most(router: str) -> tuple[int, int]:
        """Most flits that left an input, and came to an output, in a cycle."""
        _, log = events(router, 0.9)
        grants = [(cycle, n // 4, m // 4) for cycle, kind, n, m, _ in log if kind == GRANTED]
        inputs = Counter((cycle, i) for cycle, i, _ in grants)
        outputs = Counter((cycle, o) for cycle, _, o in grants)
        return max(inputs.values()), max(outputs.values())

    assert most("input_speedup: 1") == (1, 1)
    assert most("input_speedup: 2") == (2, 1)
    assert most("output_speedup: 2") == (1, 2)
    inputs, outputs = most("input_speedup: 4, output_speedup: 3")
    assert 3 <= inputs <= 4
    assert outputs == 3


@pytest.mark.parametrize("more", [
    "sa: islip", "sa: input_first", "sa: wavefront", "hold_switch: true", "speculation: shared", "speculation: true",
    "sa: input_first, speculation: true", "sa: wavefront, hold_switch: true",
])  # fmt: skip
def test_vcs_of_one_class_share_a_crossbar_port(more: str) -> None:
    _, log = events(f"input_speedup: 2, output_speedup: 2, {more}", 0.9)
    grants = [(cycle, n, m) for cycle, kind, n, m, _ in log if kind == GRANTED]
    assert max(Counter((cycle, n // 4, n % 2) for cycle, n, _ in grants).values()) == 1
    ports = 5
    assert max(Counter((cycle, m // 4, n // 4 % ports % 2) for cycle, n, m in grants).values()) == 1


def test_flits_of_a_queue_leave_in_turn() -> None:
    """Seven hosts send to one: what waits behind the crossbar comes in the order of the grants, a flit a cycle."""
    run, log = events("output_speedup: 4", 0.5, CROWDED, f"packet_flits: 3, {OVER}")
    port = int(run.state["host"]["output_vc"][4])
    granted = [(cycle, packet) for cycle, kind, _, m, packet in log if kind == GRANTED and port <= m < port + 4]
    received = [(cycle, packet) for cycle, kind, host, _, packet in log if kind == RECEIVED and host == 4]
    assert max(Counter(cycle for cycle, _ in granted).values()) >= 3
    assert [packet for _, packet in received] == [packet for _, packet in granted][: len(received)]
    assert len(received) > 1400
    waits = [then - cycle for (cycle, _), (then, _) in zip(granted, received, strict=False)]
    assert min(waits) == 3  # crossbar, link, register
    assert max(waits) > 6


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_full_queue_is_granted_nothing(most: int) -> None:
    """No grant while `most` flits wait: granted two cycles before or earlier, not sent; sent ones come two later."""
    run, log = events(f"output_speedup: 4, output_queue_flits: {most}", 0.5, CROWDED, f"packet_flits: 3, {OVER}")
    port = int(run.state["host"]["output_vc"][4])
    granted = np.array([cycle for cycle, kind, _, m, _ in log if kind == GRANTED and port <= m < port + 4])
    received = np.array([cycle for cycle, kind, host, _, _ in log if kind == RECEIVED and host == 4])
    assert len(received) > 1000
    times = granted[granted < 1490].tolist()  # what is sent later comes after the last cycle
    waiting = [int((granted <= t - 2).sum() - (received - 2 <= t - 1).sum()) for t in times]
    assert max(waiting) == most - 1
    waits = received - granted[: len(received)]
    assert waits.min() == 3
    assert waits.max() <= 3 + most + 4 + 4  # what waits, and the grants of two steps


def test_a_queue_that_never_fills_changes_nothing() -> None:
    for router in ("output_speedup: 3", "internal_speedup: 2.5, sa: wavefront"):
        assert events(router, 0.4)[1] == events(f"{router}, output_queue_flits: 999", 0.4)[1]


@pytest.mark.parametrize("keys", [
    "sa: islip", "sa: input_first, va: input_first", "sa: wavefront, va: wavefront", "sa: max_size, va: max_size",
    "arbiter: matrix", "arbiter: matrix, sa: input_first", "hold_switch: true", "hold_switch: true, sa: wavefront",
    "hold_switch: true, arbiter: matrix", "speculation: true", "speculation: shared",
    "speculation: true, sa: wavefront", "speculation: true, sa: input_first", "speculation: true, sa: max_size",
    "speculation: true, arbiter: matrix",
])  # fmt: skip
def test_a_cycle_in_the_crossbar_is_one_on_the_link(keys: str) -> None:
    """The routers of speedups grant what others do if the crossbar takes a cycle in place of the link and of credits.

    Buffers never fill, so that hosts differ by nothing but the cycle that a flit is under way.
    """
    common = f"buffer_flits: 64, {keys}"
    _, slow = events(f"{common}, crossbar_cycles: 2, credit_delay_cycles: 1", 0.45)
    _, far = events(f"{common}, link_latency_cycles: 2, host_latency_cycles: 2", 0.45)
    granted = [sorted((cycle, n, m) for cycle, kind, n, m, _ in log if kind == GRANTED) for log in (slow, far)]
    later = [(cycle + 1, n, m) for cycle, n, m in granted[0] if cycle + 1 < 1500]
    assert later == granted[1]
    assert len(later) > 20000


@pytest.mark.parametrize(("speculation", "sa"), [("shared", "islip"), ("true", "islip"), ("true", "wavefront")])
@pytest.mark.parametrize("more", ["internal_speedup: 2", "crossbar_cycles: 2", "input_speedup: 2"])
def test_speculation_saves_a_step(speculation: str, sa: str, more: str) -> None:
    """VA and SA take one step in place of two: with two steps in a cycle, too, a flit leaves a cycle earlier."""

    def latency(router: str) -> tuple[float, float]:
        text = f"name: x\n{MESH}\nrouter: {{vcs: 4, {router}}}\nsimulation: {{min_cycles: 40000, max_cycles: 40000}}\n"
        found = Simulation(parse_config(text), 0.0005, 1).run()
        return found.latency, found.hops

    (plain, hops), (ahead, _) = latency(more), latency(f"{more}, sa: {sa}, speculation: {speculation}")
    assert plain - ahead == pytest.approx(hops, abs=0.02)


def test_iterations_match_what_is_left() -> None:
    """One iteration leaves inputs without a grant whose outputs are free; with as many as outputs none is left so."""
    text = f"name: x\n{MESH}\nrouter: {{vcs: 2, ITER}}\n"
    text += "traffic: {packet_flits: 4}\nsimulation: {warmup_cycles: 1000, min_cycles: 6000, max_cycles: 6000}\n"
    found = [
        Simulation(parse_config(text.replace("ITER", f"allocator_iterations: {k}")), 1.0, 1).run()
        for k in (1, 2, 10, 11)
    ]
    assert found[0].accepted < found[1].accepted <= found[2].accepted + 0.005
    assert (found[2].accepted, found[2].latency) == (found[3].accepted, found[3].latency)


@pytest.mark.parametrize(("router", "message"), [
    ("input_speedup: 5", "router.input_speedup: must be at most vcs=4, not 5"),
    ("allocator_iterations: 2, sa: wavefront, va: max_size",
     "router.sa: or va must be islip, output_first or pim with allocator_iterations=2, not wavefront and max_size"),
    ("allocator_iterations: 2, arbiter: matrix",
     "router.arbiter: must be round_robin with allocator_iterations=2, not matrix"),
    ("va_iterations: 2, va: wavefront", "router.va: must be islip, output_first or pim with va_iterations=2, not wave"),
    ("va_iterations: 2, va_arbiter: matrix", "router.va_arbiter: must be round_robin with va_iterations=2, not matrix"),
    ("va_iterations: 2, arbiter: matrix", "router.arbiter: must be round_robin with va_iterations=2, not matrix"),
    ("allocator_iterations: 2, va_arbiter: matrix",
     "router.va_arbiter: must be round_robin with allocator_iterations=2, not matrix"),
    ("allocator_iterations: 2, va_iterations: 1, sa: wavefront",
     "router.sa: must be islip, output_first or pim with allocator_iterations=2, not wavefront"),
    ("va_iterations: 17", "router.va_iterations: "),
    ("va_arbiter: lru", "router.va_arbiter: "),
    ("va_iterations: 2, va: free_queue", "router.va: must be islip, output_first or pim with va_iter"),
    ("internal_speedup: 2, crossbar_cycles: 2", "router.stage_batches: must be true with internal_speedup=2"),
    ("internal_speedup: 1.5, lookahead: true, rc_cycles: 1",
     "router.lookahead: must be false with internal_speedup=1.5, not true"),
    ("allocator_iterations: 2, va: free_queue", "router.va: must be an allocator with allocator_iterations=2"),
    ("output_queue_flits: 4", "router.output_queue_flits: needs output_speedup, internal_speedup or crossbar_cycles "),
    ("internal_speedup: 2, output_queue_flits: 0", "router.output_queue_flits: "),
    ("internal_speedup: 0.5", "router.internal_speedup: "),
    ("allocator_ports: own", "router.allocator_ports: own is for wavefront, rr_wavefront, max_size, loa, pim only, "),
    ("allocator_ports: stage, va: max_size", "router.allocator_ports: "),
    ("speculation: yielding, sa: wavefront", "router.sa: must be one of output_first, islip, input_first_ports with "),
    ("va: free_queue, sa: input_first_ports", "router.va: must be an allocator with sa=input_first_ports, not free"),
    ("sa_first_output: 1", "router.sa_first_output: is for sa=max_size only, not sa=output_first"),
    ("model: input_output_queued, input_speedup: 2", "router.input_speedup: is for model=input_queued only"),
])  # fmt: skip
def test_what_cannot_stand_together_is_one_line(router: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(f"name: x\n{MESH}\nrouter: {{vcs: 4, {router}}}\n")


def test_a_first_output_that_no_router_has_is_refused() -> None:
    keys = "vcs: 4, sa: max_size, sa_first_output"
    ports = int(Simulation(parse_config(f"name: x\n{MESH}\nrouter: {{{keys}: 0}}\n"), 0.1, 1).state["ports"])
    config = parse_config(f"name: x\n{MESH}\nrouter: {{{keys}: {ports}}}\n")
    with pytest.raises(UserError, match=f"router.sa_first_output must be at most {ports - 1}, .* not {ports}"):
        Simulation(config, 0.1, 1)


@pytest.mark.parametrize("slow", [
    "degraded: {links: [[0, 1]], factor: 0.5}", "degraded: {random_links: 1, factor: 0.5, from_cycle: 700}",
    "topology: {kind: tiers, tiers: [{shape: ring, sizes: [4], gbps: 50}, {shape: ring, sizes: [3]}]}",
])  # fmt: skip
def test_slow_links_with_a_limit_of_what_waits_behind_the_crossbar_name_the_key(slow: str) -> None:
    network = "" if slow.startswith("topology") else f"{MESH}\n"
    text = f"name: x\n{network}{slow}\nrouter: {{vcs: 8, crossbar_cycles: 2, output_queue_flits: 4}}\n"
    config = parse_config(f"{text}routing: {{algorithm: shortest}}\n")
    with pytest.raises(UserError, match=r"^router.output_queue_flits: must be null where a link takes 2 .* not 4"):
        Simulation(config, 0.1, 1)


def test_two_stages_of_a_butterfly_cannot_share_a_fair_pointer_over_own_ports() -> None:
    fly = "topology: {kind: butterfly, k: 2, n: 2}\nrouting: {algorithm: dest_tag}"
    keys = "vcs: 4, sa: rr_wavefront, allocator_ports: own"
    with pytest.raises(UserError, match=r"router.allocator_ports must be network with rr_wavefront on a butterfly"):
        Simulation(parse_config(f"name: x\n{fly}\nrouter: {{{keys}}}\n"), 0.1, 1)


def test_routers_that_are_all_alike_have_own_ports_as_many_as_the_network() -> None:
    def grants(ports: str) -> tuple[float, float]:
        keys = f"vcs: 4, buffer_flits: 4, va: wavefront, sa: wavefront, allocator_ports: {ports}"
        found = Simulation(parse_config(f"name: x\n{MESH}\nrouter: {{{keys}}}\n"), 0.4, 1).run()
        return found.latency, found.accepted

    assert grants("own") == grants("network")


def test_hardware_and_a_trace_are_refused() -> None:
    config = parse_config(f"name: x\n{MESH}\nrouter: {{vcs: 4, sa: wavefront, allocator_ports: own}}\n")
    with pytest.raises(UserError, match=r"router.allocator_ports must be network in hardware, not own"):
        network_design(config)
    config = parse_config(f"name: x\n{MESH}\nrouter: {{vcs: 4, internal_speedup: 2}}\n")
    with pytest.raises(UserError, match=r"router.internal_speedup must be 1 in hardware, not 2"):
        network_design(config)
    with pytest.raises(UserError, match=r"router.internal_speedup must be 1 with hopforge trace .* not 2"):
        prepare_trace(config)


@pytest.mark.parametrize("key", ["allocator_iterations", "input_speedup", "output_speedup", "internal_speedup"])
def test_engines_without_cycles_say_that_they_do_not_read_it(key: str) -> None:
    program = "workload: {kind: collective, operation: alltoall, ranks: 4}\n"
    energy = key == "allocator_iterations"  # engine flow counts that of larger allocators
    for engine, told in (("flow", not energy), ("packet", False)):
        text = f"name: x\n{MESH}\nrouter: {{vcs: 4, {key}: 2}}\n{program}app: {{engine: {engine}}}\n"
        assert (f"router.{key}" in unused_sections(parse_config(text), ["app"])) == told
    assert unused_sections(parse_config(f"name: x\n{MESH}\nrouter: {{vcs: 4, {key}: 2}}\n"), ["net"]) == []


def test_a_step_that_is_not_whole_waits() -> None:
    run, _ = events("internal_speedup: 1.25", 0.2)
    assert int(run.state["steps"]) == np.floor(1500 * 1.25)
