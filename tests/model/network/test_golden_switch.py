"""Routers with speedups grant what golden switches do, step by step, on drawn networks (router.md)."""

import random
from collections import Counter, defaultdict, deque
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import int64

from hopforge.model.config import parse_config
from hopforge.model.config.router import RouterConfig
from hopforge.model.kernel.compile import c_kernel
from hopforge.model.kernel.memory import int64s
from hopforge.model.kernel.rng import seed_streams
from hopforge.model.network.core.event_log import put_log
from hopforge.model.network.core.hooks import HOOK_SIGNATURE
from hopforge.model.network.core.kinds import ACTIVE, GRANTED, RECEIVED, TAIL, VA
from hopforge.model.network.core.net_record import Net
from hopforge.model.router.allocators import Allocation, allocation, match_in_turns
from hopforge.model.router.golden_switch import Crossbar, SwitchModel
from hopforge.sim.run.simulation import Simulation

CYCLES, STEPS = 250, 8
#: part of the state that a step begins with: array → whether its bytes are copied in words
SEEN = ("input_vc", "output_vc", "fifo", "candidate")


@c_kernel(HOOK_SIGNATURE)
def look(net: Net, now: int, a: int, b: int) -> int:
    """Copy the state at the start of a step behind the last copy: the hook `step_routes`.

    ``net.trail_head``: words of a copy, copies so far, words of each array, then the copies.
    """
    book = int64s(net.trail_head)
    place = 6 + book[0] * book[1]
    book[1] += 1
    book[place] = now
    place += 1
    for k in range(book[2]):
        book[place + k] = int64s(net.input_vc)[k]
    place += book[2]
    for k in range(book[3]):
        book[place + k] = int64s(net.output_vc)[k]
    place += book[3]
    for k in range(book[4]):
        book[place + k] = int64s(net.fifo)[k]
    place += book[4]
    for k in range(book[5]):
        book[place + k] = int64s(net.candidate)[k]
    return int64(0)


def observed(text: str, load: float, seed: int) -> tuple[Simulation, list[tuple[int, dict[str, Any]]]]:
    """Run a network; return it, and (cycle, arrays) at the start of every step."""
    run = Simulation(parse_config(text), load, seed, check=False)
    state = run.state
    put_log(state, 1 << 18)
    inside = "fifo" in (state.arrays["input_vc"].dtype.names or ())
    words = [0 if name == "fifo" and inside else state.arrays[name].nbytes // 8 for name in SEEN]
    book = np.zeros(6 + (1 + sum(words)) * CYCLES * STEPS, np.int64)
    book[:6] = [1 + sum(words), 0, *words]
    state.put("trail_head", book)
    state.put_function("step_routes", look)
    run.advance(CYCLES)
    steps = []
    for k in range(int(book[1])):
        place = 6 + k * int(book[0])
        cycle, arrays = int(book[place]), {}
        place += 1
        for name, size in zip(SEEN, words, strict=True):
            arrays[name] = book[place : place + size].view(state.arrays[name].dtype) if size else None
            place += size
        if arrays["fifo"] is None:
            arrays["fifo"] = arrays["input_vc"]["fifo"]
        steps.append((cycle, arrays))
    return run, steps


class Behind:
    """Crossbar and queues of a router as BookSim 2 has them, in lists: a loop over a stage ends at the first in it."""

    def __init__(self, cycles: int, batches: bool) -> None:
        self.cycles, self.batches = cycles, batches
        self.inside: deque[tuple[list[int], int]] = deque()
        self.waiting: Counter[int] = Counter()

    def step(self, now: int, granted: list[int]) -> None:
        """Go on by a step of cycle `now`; `granted`: outputs of the flits that it has granted."""
        for end, _ in self.inside:
            if end[0] >= 0 and self.batches:
                break
            end[0] = now + self.cycles - 1 if end[0] < 0 else end[0]
        while self.inside and 0 <= self.inside[0][0][0] <= now:
            self.waiting[self.inside.popleft()[1]] += 1
        self.inside.extend(([-1], output) for output in granted)

    def send(self) -> list[int]:
        """Outputs whose channels take a flit at the end of a cycle."""
        sent = [output for output, count in self.waiting.items() if count > 0]
        self.waiting.subtract(sent)
        return sent


def own_ports(run: Simulation, r: int) -> int:
    """Ports of a router of this network, linked or not; of a butterfly those of a stage."""
    topology = run.topology
    return int(topology.params["k"]) if topology.kind == "butterfly" else int(topology.ports[r])


class Golden:
    """VA and SA of the routers of a network, from what they see at the start of a step."""

    def __init__(self, run: Simulation, router: RouterConfig, seed: int) -> None:
        self.ports, self.vcs = int(run.state["ports"]), router.vcs
        self.buffer, self.router = router.buffer_flits, router
        self.lists = bool(run.state["vc_lists"])
        streams = [int(word) for word in seed_streams(seed, 1, int(run.state["routers"]))]

        def below(r: int, bound: int) -> int:
            """SplitMix64, and the upper half of its word times the bound."""
            streams[r] = (streams[r] + 0x9E3779B97F4A7C15) % 2**64
            word = (streams[r] ^ streams[r] >> 30) * 0xBF58476D1CE4E5B9 % 2**64
            word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
            return (((word ^ word >> 31) >> 32) * bound) >> 32

        crossbar = Crossbar(self.ports, self.vcs, router.input_speedup, router.output_speedup)
        count, size = int(run.state["routers"]), self.ports * self.vcs
        self.behind = [Behind(router.crossbar_cycles, router.stage_batches) for _ in range(count)]
        own = [own_ports(run, r) if router.allocator_ports == "own" else self.ports for r in range(count)]
        arbiter = router.va_arbiter or router.arbiter
        self.va: list[Allocation] = [
            allocation(router.va, size, arbiter, partial(below, r), blocks=(own[r] * self.vcs,) * 2)
            for r in range(count)
        ]
        self.sa = [
            SwitchModel(
                crossbar, router.sa, router.arbiter, router.allocator_iterations if self.islip(router.sa) else 1,
                hold=router.hold_switch, speculation=router.speculation, below=partial(below, r),
                first_output=router.sa_first_output, own=own[r],
            )
            for r in range(count)
        ]  # fmt: skip

    @staticmethod
    def islip(kind: str) -> bool:
        return kind in ("islip", "output_first", "pim")

    def step(self, cycle: int, arrays: dict[str, Any]) -> list[tuple[int, int]]:
        """(input VC, output VC) of the grants of a step."""
        vcs, outputs = arrays["input_vc"], arrays["output_vc"]
        names = ("state", "flits", "out_vc", "out_port", "vc_mask", "head")
        seen = {name: vcs[name].tolist() for name in names if name in vcs.dtype.names}
        seen |= {name: outputs[name].tolist() for name in ("credits", "owner")}
        seen |= {"fifo": arrays["fifo"].reshape(-1, self.buffer).tolist(), "candidate": arrays["candidate"].tolist()}
        granted = [self._router(r, seen) for r in range(len(self.sa))]
        for behind, some in zip(self.behind, granted, strict=True):
            behind.step(cycle, [m // self.vcs for _, m in some])
        return [one for some in granted for one in some]

    def _router(self, r: int, seen: dict[str, list[Any]]) -> list[tuple[int, int]]:
        limit, base = self.router.output_queue_flits or 1 << 30, r * self.ports
        full = {o for o in range(self.ports) if self.behind[r].waiting[base + o] >= limit}
        credits, owner, out_vc, flits = (seen[name] for name in ("credits", "owner", "out_vc", "flits"))
        first, count = r * self.ports * self.vcs, self.ports * self.vcs
        requests: dict[int, set[int]] = {}
        asks, heads = set(), set()
        for n in range(count):
            at = first + n
            i, v = divmod(n, self.vcs)
            if seen["state"][at] == ACTIVE and flits[at] > 0 and credits[out_vc[at]] > 0:
                asks.add((i, v, (out_vc[at] - first) // self.vcs))
                asks -= {one for one in asks if one[2] in full}
            if seen["state"][at] == VA:
                packed = seen["candidate"][at] if self.lists else 0
                port = packed & 1023 if self.lists else seen["out_port"][at]
                mask = packed >> 18 & 0xFFFF if self.lists else seen["vc_mask"][at]
                free = {port * self.vcs + w for w in range(self.vcs) if mask >> w & 1}
                free = {m for m in free if owner[first + m] < 0}
                if free:
                    requests[n] = free
                    credit = any(credits[first + m] > 0 for m in free)
                    if port not in full and (self.router.speculation is True or credit):
                        heads.add((i, v, port))
        turns = (self.router.va_iterations or self.router.allocator_iterations) if self.islip(self.router.va) else 1
        given, moving = match_in_turns(self.va[r], requests, turns)
        self.va[r].take(moving)

        def gives(one: tuple[int, int, int]) -> bool:
            m = given.get(one[0] * self.vcs + one[1])
            return m is not None and credits[first + m] > 0

        def more(i: int, v: int) -> bool:
            at = first + i * self.vcs + v
            front = seen["fifo"][at][seen["head"][at]]
            return not front & TAIL and flits[at] > 1

        grants = self.sa[r].step(asks, heads if self.router.speculation else (), gives, more)
        found = []
        for i, v, o in grants:
            n = i * self.vcs + v
            m = out_vc[first + n] if (i, v, o) in asks else first + given[n]
            found.append((first + n, m))
        return found


def check(keys: str, topology: str, seed: int) -> int:
    """Compare all grants of a run; return how many there are."""
    text = f"name: x\naddress: {{chunk_bits: 8, width_bits: 24}}\ntopology: {{{topology}}}\n"
    text += f"router: {{{keys}}}\ntraffic: {{packet_range: [1, 5]}}\n"
    run, steps = observed(text, 0.8, seed)
    golden = Golden(run, parse_config(text).router, seed)
    expected: dict[int, list[tuple[int, int]]] = defaultdict(list)
    port_of_host = {int(m) // golden.vcs: h for h, m in enumerate(run.state["host"]["output_vc"])}
    comes: set[tuple[int, int]] = set()
    for k, (cycle, arrays) in enumerate(steps):
        expected[cycle] += golden.step(cycle, arrays)
        if k + 1 == len(steps) or steps[k + 1][0] > cycle:
            sent = [p for behind in golden.behind for p in behind.send()]
            comes |= {(cycle + 2, port_of_host[p]) for p in sent if p in port_of_host}
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"]), :4].tolist()
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for cycle, kind, n, m in log:
        if kind == GRANTED:
            found[cycle].append((n, m))
    for cycle in range(CYCLES):
        assert Counter(expected[cycle]) == Counter(found[cycle]), (cycle, keys, topology)
    assert {one for one in comes if one[0] < CYCLES} == {(row[0], row[2]) for row in log if row[1] == RECEIVED}
    return sum(map(len, found.values()))


#: an open mesh, a torus, and routers of one line with many hosts; dor with any VC where there are no rings
NETWORKS = (
    "kind: mesh, radices: [3, 2], hosts_per_router: 2", "kind: mesh, radices: [4]", "kind: mesh, radices: [2, 2, 2]",
    "kind: mesh, radices: [2], hosts_per_router: 6",
)  # fmt: skip


KINDS = ("islip", "input_first", "wavefront", "rr_wavefront", "max_size", "max_size", "loa", "pim")


def drawn(seed: int) -> tuple[str, str]:
    """Keys of a router and a network."""
    r = random.Random(seed)
    vcs = r.choice([2, 3, 4, 6])
    keys: dict[str, Any] = {"vcs": vcs, "buffer_flits": r.choice([1, 2, 4, 8])}
    keys["va"], keys["sa"] = r.choice(KINDS), r.choice((*KINDS, "input_first_ports", "input_first_ports"))
    if r.random() < 0.4:
        keys["arbiter"] = "matrix"
    keys["input_speedup"], keys["output_speedup"] = r.randint(1, vcs), r.choice([1, 2, 3, 5])
    if r.random() < 0.4:
        keys["internal_speedup"] = r.choice([1.25, 1.5, 2, 2.75])
    if r.random() < 0.4:
        keys["hold_switch"] = True
    if r.random() < 0.5:
        shares = keys["sa"] in ("islip", "max_size", "loa", "pim")
        yields = keys["sa"] in ("islip", "input_first_ports")
        keys["speculation"] = r.choice([True, *["shared"] * shares, *["yielding"] * (2 * yields)])
    if {"islip", "pim"} & {keys["va"], keys["sa"]} and "arbiter" not in keys:
        keys["allocator_iterations"] = r.choice([1, 2, 3])
    own = random.Random(seed + 1000)
    if own.random() < 0.5 and (keys["va"] != "islip" or keys.get("allocator_iterations", 1) == 1):
        keys["va_arbiter"] = own.choice(["matrix", "round_robin"])
    of_va = keys.get("va_arbiter", keys.get("arbiter"))
    if keys["va"] == "pim" or (keys["va"] == "islip" and of_va != "matrix"):
        iterated = keys["sa"] in ("islip", "pim") or keys.get("allocator_iterations", 1) == 1
        keys |= {"va_iterations": own.choice([1, 2, 4])} if iterated else {}
    if r.random() < 0.4:
        keys["crossbar_cycles"] = r.choice([2, 3, 4])
        if "internal_speedup" in keys or r.random() < 0.5:
            keys["stage_batches"] = True
    waits = keys.keys() & {"crossbar_cycles", "internal_speedup"} or keys["output_speedup"] > 1
    if waits and r.random() < 0.5:
        keys["output_queue_flits"] = r.choice([1, 1, 2, 5])
    if keys["sa"] == "max_size":
        keys["sa_first_output"] = r.randint(0, 3)
    plain = keys.get("allocator_iterations", 1) == keys["input_speedup"] == keys["output_speedup"] == 1
    if plain and "internal_speedup" not in keys:
        keys.setdefault("crossbar_cycles", 2)  # else it is another kernel's
    return ", ".join(f"{k}: {str(v).lower() if v is True else v}" for k, v in keys.items()), r.choice(NETWORKS)


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(k, marks=pytest.mark.study) for k in range(3, 30))])
def test_grants_are_those_of_golden_switches(seed: int) -> None:
    keys, topology = drawn(seed)
    assert check(keys, topology, seed) > 300


@pytest.mark.parametrize("keys", [
    "sa: islip, hold_switch: true, speculation: shared", "sa: wavefront, hold_switch: true, speculation: true",
    "sa: islip, hold_switch: true, speculation: true", "sa: input_first, hold_switch: true, speculation: true",
    "sa: islip, arbiter: matrix, hold_switch: true, speculation: true",
    "sa: max_size, hold_switch: true, speculation: shared", "sa: max_size, hold_switch: true, speculation: true",
    "sa: max_size, sa_first_output: 1, crossbar_cycles: 2",
    "sa: loa, va: loa", "sa: pim, va: pim", "sa: rr_wavefront, va: rr_wavefront",
    "sa: input_first_ports", "sa: input_first_ports, arbiter: matrix",
    "sa: input_first_ports, speculation: yielding", "sa: islip, speculation: yielding",
    "sa: islip, arbiter: matrix, speculation: yielding", "sa: input_first_ports, speculation: true",
    "sa: input_first_ports, va: pim, allocator_iterations: 2",
    "sa: islip, va: islip, va_iterations: 3, allocator_iterations: 1, crossbar_cycles: 2",
    "sa: input_first_ports, arbiter: matrix, va: islip, va_arbiter: round_robin, va_iterations: 2",
    "sa: pim, allocator_iterations: 3, va: input_first, va_arbiter: matrix",
    "sa: islip, arbiter: matrix, va_arbiter: round_robin, crossbar_cycles: 2",
    "sa: input_first_ports, arbiter: matrix, hold_switch: true, speculation: true",
    "sa: pim, va: pim, allocator_iterations: 3, speculation: true", "sa: loa, hold_switch: true, speculation: true",
    "sa: rr_wavefront, internal_speedup: 1.5, speculation: true",
    "internal_speedup: 1.25, crossbar_cycles: 3, stage_batches: true, output_queue_flits: 1",
    "internal_speedup: 2, crossbar_cycles: 2, stage_batches: true, output_queue_flits: 2, sa: max_size",
])  # fmt: skip
@pytest.mark.thinned(2)
def test_a_crossbar_port_for_each_input_and_output(keys: str) -> None:
    assert check(f"vcs: 3, buffer_flits: 4, {keys}", NETWORKS[0], 1) > 1000


@pytest.mark.parametrize("keys", [
    "va: max_size, sa: max_size, input_speedup: 2", "va: wavefront, sa: wavefront, input_speedup: 2",
    "va: wavefront, sa: wavefront, output_speedup: 2", "va: max_size, sa: wavefront, crossbar_cycles: 2",
    "va: wavefront, sa: max_size, crossbar_cycles: 2",
    "va: max_size, sa: max_size, hold_switch: true, speculation: true",
    "va: wavefront, sa: wavefront, speculation: true, input_speedup: 2, output_speedup: 2",
    "va: wavefront, sa: islip, input_speedup: 2", "va: pim, sa: pim", "va: loa, sa: loa",
    "va: loa, sa: wavefront, input_speedup: 2",
    "va: pim, sa: pim, allocator_iterations: 2, input_speedup: 2, output_speedup: 3", "va: max_size, sa: loa",
    "va: loa, sa: loa, speculation: shared, input_speedup: 2", "va: pim, sa: pim, speculation: true, output_speedup: 2",
])  # fmt: skip
@pytest.mark.parametrize(("k", "n"), [(3, 2), pytest.param(2, 3, marks=pytest.mark.study)])
def test_stages_of_a_butterfly_have_pointers_over_ports_of_their_own(k: int, n: int, keys: str) -> None:
    routed = f"kind: butterfly, k: {k}, n: {n}}}\nrouting: {{algorithm: dest_tag"
    assert check(f"vcs: 4, buffer_flits: 4, allocator_ports: own, {keys}", routed, 1) > 500


#: links of a graph whose routers have 3 to 6 ports, and of a star
UNLIKE = ("0 1\n0 2\n0 3\n0 4\n3 4\n2 5\n", "0 1\n0 2\n0 3\n0 4\n0 5\n")


@pytest.mark.parametrize("keys", [
    "va: wavefront", "sa: wavefront", "va: rr_wavefront, sa: rr_wavefront", "va: max_size, sa: max_size",
    "va: loa, sa: loa", "va: pim, sa: pim, allocator_iterations: 2", "sa: wavefront, speculation: true",
    "va: max_size, sa: max_size, hold_switch: true, speculation: shared",
    "va: wavefront, sa: wavefront, speculation: true, input_speedup: 2, output_speedup: 2",
    "va: rr_wavefront, sa: rr_wavefront, speculation: true, input_speedup: 2",
    "va: loa, sa: loa, speculation: true, output_speedup: 3", "sa: max_size, crossbar_cycles: 2, input_speedup: 3",
])  # fmt: skip
@pytest.mark.parametrize("links", [UNLIKE[0], pytest.param(UNLIKE[1], marks=pytest.mark.study)])
def test_pointers_go_over_ports_of_the_router_itself(
    links: str, keys: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "net.txt").write_text(links)
    monkeypatch.chdir(tmp_path)
    network = "kind: edge_list, hosts_per_router: 2, file: net.txt}\nrouting: {algorithm: up_down"
    vcs = "vcs: 3, buffer_flits: 4, crossbar_cycles: 2, stage_batches: true"
    plain = "crossbar" not in keys and "speedup" not in keys and "hold" not in keys and "iterations" not in keys
    assert check(f"{vcs if plain else 'vcs: 3, buffer_flits: 4'}, allocator_ports: own, {keys}", network, 1) > 300


@pytest.mark.parametrize("keys", [
    "sa: max_size", "sa: max_size, sa_first_output: 22", "arbiter: matrix, speculation: true",
    "sa: input_first, arbiter: matrix", "sa: input_first_ports", "sa: input_first_ports, arbiter: matrix",
    "sa: input_first_ports, speculation: yielding", "sa: islip, speculation: yielding",
    "sa: loa, va: loa", "sa: pim, va: pim, allocator_iterations: 2",
    "sa: rr_wavefront, va: rr_wavefront",
    "sa: max_size, hold_switch: true, speculation: shared", "sa: islip, hold_switch: true, speculation: true",
])  # fmt: skip
def test_crossbars_of_more_than_64_ports(keys: str) -> None:
    wide = "kind: mesh, radices: [2], hosts_per_router: 22"
    assert check(f"vcs: 3, buffer_flits: 2, input_speedup: 3, output_speedup: 2, {keys}", wide, 1) > 1000
