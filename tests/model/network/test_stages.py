"""Route computation and crossbars of several cycles, and what may wait behind them (router.md)."""

from collections import defaultdict, deque

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
#: four hosts at each of two routers
PAIR = "topology: {kind: mesh, radices: [2], hosts_per_router: 4}"
BOTH_IN_BATCHES = "vcs: 4, rc_cycles: 2, crossbar_cycles: 2, stage_batches: true"
VCS, CYCLES = 4, 1500


def log_of(run: Simulation, cycles: int) -> list[list[int]]:
    """[cycle, kind, place, VC or output VC, packet] of some cycles."""
    put_log(run.state, 1 << 20)
    run.advance(cycles)
    return run.state["log"].reshape(-1, 6)[: int(run.state["log_length"]), :5].tolist()


class Crossbar:
    """The crossbar of a router as BookSim 2 has it, in lists: a loop over a stage ends at the first flit in it."""

    def __init__(self, cycles: int, batches: bool) -> None:
        self.cycles, self.batches = cycles, batches
        self.inside: deque[tuple[list[int], int, int]] = deque()
        self.behind: dict[int, deque[int]] = defaultdict(deque)

    def step(self, now: int) -> list[tuple[int, int]]:
        """(output, flit) that the channels take in cycle `now`."""
        for end, _, _ in self.inside:
            if end[0] >= 0 and self.batches:
                break
            end[0] = now + self.cycles - 1 if end[0] < 0 else end[0]
        while self.inside and 0 <= self.inside[0][0][0] <= now:
            _, output, flit = self.inside.popleft()
            self.behind[output].append(flit)
        return [(output, queue.popleft()) for output, queue in self.behind.items() if queue]


@pytest.mark.parametrize(("keys", "cycles", "batches", "limit"), [
    ("crossbar_cycles: 2", 2, False, None),
    ("crossbar_cycles: 2, stage_batches: true", 2, True, None),
    ("crossbar_cycles: 3, stage_batches: true, output_speedup: 2, output_queue_flits: 1", 3, True, 1),
    ("crossbar_cycles: 3, output_speedup: 3, output_queue_flits: 2", 3, False, 2),
    ("output_speedup: 4, output_queue_flits: 1", 1, False, 1),
    ("crossbar_cycles: 2, stage_batches: true, sa: wavefront, output_queue_flits: 1", 2, True, 1),
])  # fmt: skip
def test_every_flit_leaves_the_crossbar_as_from_lists(keys: str, cycles: int, batches: bool, limit: int | None) -> None:
    """Grants of the kernel go through lists: each flit comes to its host in the cycle that they say."""
    text = f"name: x\n{PAIR}\nrouter: {{vcs: {VCS}, {keys}}}\n"
    text += "traffic: {packet_flits: 3, pattern: destinations, destinations: [4, 4, 4, 1, 0, 4, 4, 1]}\n"
    run = Simulation(parse_config(text), 0.7, 1)
    log, ports = log_of(run, CYCLES), 6
    granted: dict[int, list[list[int]]] = defaultdict(list)
    for cycle, kind, n, m, packet in log:
        if kind == GRANTED:
            granted[cycle].append([n // VCS // ports, m // VCS, packet])
    received = [(cycle, host, packet) for cycle, kind, host, _, packet in log if kind == RECEIVED]
    host_at = {int(run.state["host"]["output_vc"][h]) // VCS: h for h in range(8)}
    crossbars = [Crossbar(cycles, batches) for _ in range(2)]
    expected, fullest, late = [], 0, 0
    for now in range(CYCLES):
        waiting = {(r, o): len(q) for r, each in enumerate(crossbars) for o, q in each.behind.items()}
        sent = [one for crossbar in crossbars for one in crossbar.step(now)]
        expected += [(now + 2, host_at[output], packet) for output, packet in sent if output in host_at]
        for router, output, packet in granted[now]:
            fullest = max(fullest, waiting.get((router, output), 0))
            crossbars[router].inside.append(([-1], output, packet))
        late += sum(size >= (limit or 99) for size in waiting.values())
    assert sorted(received) == sorted(one for one in expected if one[0] < CYCLES)
    assert len(received) > 1200
    if limit is not None:
        assert fullest == limit - 1  # whoever is granted found a place ...
        assert late > 50  # ... and often there was none


@pytest.mark.parametrize(("keys", "grants"), [
    ("rc_cycles: 1", (0, 1, 2, 3)),
    ("rc_cycles: 2", (0, 1, 2, 3)),
    ("rc_cycles: 2, stage_batches: true", (0, 2, 2, 4)),
    ("rc_cycles: 3, stage_batches: true", (0, 3, 3, 3)),
    ("rc_cycles: 4, stage_batches: true", (0, 4, 4, 4)),
])  # fmt: skip
def test_heads_wait_for_the_batch_before_them(keys: str, grants: tuple[int, ...]) -> None:
    """Four heads come to a router in four cycles, for four outputs."""
    script = (np.arange(4), 10 + np.arange(4), np.array([1, 2, 3, 0]), np.ones(4, int))
    run = Simulation(parse_config(f"name: x\n{PAIR}\nrouter: {{vcs: {VCS}, {keys}}}\n"), 0.1, 1, script=script)
    found = [cycle for cycle, kind, *_ in log_of(run, 60) if kind == GRANTED]
    rc_cycles = int(keys[11])
    assert found[0] == 10 + 1 + 1 + rc_cycles + 1  # link and register, RC, VA
    assert [cycle - found[0] for cycle in found] == list(grants)


class RouteStage:
    """Route computation as BookSim 2 has it, in a list: `_RouteEvaluate`, then `_RouteUpdate`, in each step."""

    def __init__(self, cycles: int, batches: bool) -> None:
        self.cycles, self.batches = cycles, batches
        self.inside: list[tuple[list[int], int]] = []

    def step(self, now: int) -> list[int]:
        """Heads whose RC ends in this step of cycle `now`."""
        for end, _ in self.inside:
            if end[0] >= 0 and self.batches:
                break
            end[0] = now + self.cycles - 1 if end[0] < 0 else end[0]
        over = [head for end, head in self.inside if 0 <= end[0] <= now]
        self.inside = [one for one in self.inside if not 0 <= one[0][0] <= now]
        return over


@pytest.mark.parametrize("steps", [1.25, 1.5, 2, 2.75])
@pytest.mark.parametrize(("rc_cycles", "batches"), [(1, False), (2, False), (2, True), (3, True), (5, False)])
def test_rc_begins_and_ends_with_steps(steps: float, rc_cycles: int, batches: bool) -> None:
    """Four hosts of a router send to one another, packets of a flit far apart: RC, VA and SA take a step each."""
    draw = np.random.default_rng(rc_cycles).integers
    times = np.concatenate([np.arange(40) * 24 + draw(0, 12, 40) for _ in range(4)])
    hosts = np.repeat(np.arange(4), 40)
    keys = f"vcs: {VCS}, internal_speedup: {steps}, rc_cycles: {rc_cycles}, stage_batches: {str(batches).lower()}"
    text = f"name: x\n{PAIR}\nrouter: {{{keys}}}\n"
    run = Simulation(parse_config(text), 0.1, 1, script=(hosts, times, (hosts + 1) % 4, np.ones(160, int)))
    grants = sorted((cycle, n // VCS) for cycle, kind, n, *_ in log_of(run, 1100) if kind == GRANTED)
    port_of = [n // VCS for n in run.state["host"]["input_vc"].tolist()]
    stage, partial, expected = RouteStage(rc_cycles, batches), 0.0, []
    in_va: list[int] = []
    in_sa: list[int] = []
    for now in range(1100):
        stage.inside += [([-1], port_of[h]) for h, t in zip(hosts, times, strict=True) if t + 2 == now]
        partial += steps
        while partial >= 1:
            partial -= 1
            expected += [(now, port) for port in in_sa]
            in_va, in_sa = stage.step(now), in_va
    assert grants == sorted(expected)
    assert len(grants) == 160


def test_a_cycle_more_in_the_crossbar_is_one_more_in_each_router() -> None:
    """At low load a router costs what its stages cost, in batches or not."""
    found = []
    for keys in ("vcs: 4", "vcs: 4, crossbar_cycles: 3, rc_cycles: 2", BOTH_IN_BATCHES):
        text = f"name: x\n{MESH}\nrouter: {{{keys}}}\nsimulation: {{min_cycles: 40000, max_cycles: 40000}}\n"
        result = Simulation(parse_config(text), 0.0005, 1).run()
        found.append((result.latency, result.hops))
    (plain, hops), (longer, _), (batches, _) = found
    assert longer - plain == pytest.approx(4 * hops, abs=0.02)
    assert 3 * hops - 0.02 < batches - plain < 3 * hops + 0.05  # a packet now and then waits for a batch


@pytest.mark.parametrize(("router", "message"), [
    ("stage_batches: true", "router.stage_batches: needs rc_cycles or crossbar_cycles of at least 2"),
    ("stage_batches: true, rc_cycles: 2, lookahead: true", "router.lookahead: must be false with stage_batches"),
    ("output_queue_flits: 3", "router.output_queue_flits: needs output_speedup, internal_speedup or crossbar_cycles"),
    ("crossbar_cycles: 2, internal_speedup: 2", "router.stage_batches: must be true with internal_speedup=2"),
    ("crossbar_cycles: 2, va: free_queue", "router.va: must be an allocator with crossbar_cycles=2"),
    ("crossbar_cycles: 0", "router.crossbar_cycles: "),
    ("output_speedup: 2, output_queue_flits: 0", "router.output_queue_flits: "),
    ("output_speedup: 2, output_queue_flits: 2, cycles_per_flit: 2", "router.cycles_per_flit: must be 1 with output_q"),
    ("model: input_output_queued, crossbar_cycles: 2", "router.crossbar_cycles: is for model=input_queued only"),
])  # fmt: skip
def test_what_cannot_stand_together_is_one_line(router: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(f"name: x\n{MESH}\nrouter: {{vcs: 4, {router}}}\n")


def test_hardware_and_engines_without_cycles_say_so() -> None:
    config = parse_config(f"name: x\n{MESH}\nrouter: {{crossbar_cycles: 2}}\n")
    with pytest.raises(UserError, match=r"router.crossbar_cycles must be 1 in hardware, not 2"):
        network_design(config)
    with pytest.raises(UserError, match=r"router.crossbar_cycles must be 1 with hopforge trace .* not 2"):
        prepare_trace(config)
    config = parse_config(f"name: x\n{MESH}\nrouter: {{rc_cycles: 2, stage_batches: true}}\n")
    with pytest.raises(UserError, match=r"router.stage_batches must be false in hardware, not true"):
        network_design(config)
    program = "workload: {kind: collective, operation: alltoall, ranks: 4}\napp: {engine: flow}\n"
    keys = "crossbar_cycles: 2, stage_batches: true, output_queue_flits: 3"
    unused = unused_sections(parse_config(f"name: x\n{MESH}\nrouter: {{{keys}}}\n{program}"), ["app"])
    assert {"router.crossbar_cycles", "router.stage_batches", "router.output_queue_flits"} <= set(unused)
