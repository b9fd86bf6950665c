"""The router against its golden model, every output in every cycle, and every packet against what was sent."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np
import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.hw.router.router import Router
from hopforge.model.lookup.csr import csr_map
from hopforge.model.lookup.golden.ports import LookupInputs, LookupOutputs
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.flit import BODY, HEAD, SINGLE, TAIL, Flit, PortInputs, PortOutputs
from hopforge.model.router.golden import RouterModel
from hopforge.model.router.params import LookAhead, Route, RouterParams


@dataclass
class Neighbours:
    """What is connected to the router: senders that keep to their credits, receivers that return them at will."""

    params: RouterParams
    rng: np.random.Generator
    destinations: int
    sent: dict[int, list[Flit]] = field(default_factory=dict)  # by packet
    origin: dict[int, tuple[int, int]] = field(default_factory=dict)
    sending: bool = True

    def __post_init__(self) -> None:
        p = self.params
        self.credits = np.full((p.ports, p.vcs), p.buffer_flits)
        self.queues = [[deque() for _ in range(p.vcs)] for _ in range(p.ports)]
        self.arriving: dict[tuple[int, int], list[Flit]] = {}
        self.received: list[tuple[int, int, list[Flit]]] = []
        self.held = [deque() for _ in range(p.ports)]  # VCs of the credits that a receiver owes
        self.load, self.patience, self.kindness = self.rng.choice([0.2, 0.6, 1.0], 3)

    def packet(self, i: int, v: int) -> None:
        p, rng = self.params, self.rng
        number = len(self.sent)
        longest = min(6, *(p.credits(o) for o in range(p.ports))) if p.switching == "vct" else 6
        length = int(rng.integers(1, longest + 1))
        dst = int(rng.integers(self.destinations))
        header = dst | number << p.address_bits | length << 2 * p.address_bits + p.tag_bits
        if p.lookahead is not None:
            brought = int(rng.integers(p.ports + 1)) | int(rng.integers(p.classes + 1)) << p.port_field_bits
            header = header & (1 << p.route_at) - 1 | brought << p.route_at
        kinds = [SINGLE] if length == 1 else [HEAD] + [BODY] * (length - 2) + [TAIL]
        filling = [int(rng.integers(1 << 16)) | number << p.address_bits for _ in kinds]
        flits = [
            Flit(kind, v, header if kind in (HEAD, SINGLE) else word) for kind, word in zip(kinds, filling, strict=True)
        ]
        self.sent[number] = flits
        self.origin[number] = i, v
        self.queues[i][v].extend(flits)

    def inputs(self) -> list[PortInputs]:
        p, rng = self.params, self.rng
        row = []
        for i in range(p.ports):
            v = int(rng.integers(p.vcs))
            queue = self.queues[i][v]
            if not queue and self.sending and rng.random() < self.load:
                self.packet(i, v)
            flit = None
            if queue and self.credits[i, v] and rng.random() < 0.9:
                flit = queue.popleft()
                self.credits[i, v] -= 1
            credit = None
            if self.held[i] and rng.random() < self.kindness:
                self.held[i].rotate(int(rng.integers(3)))
                credit = self.held[i].popleft()
            row.append(PortInputs(flit, credit))
        return row

    def observe(self, outputs: list[PortOutputs]) -> None:
        for o, port in enumerate(outputs):
            if port.credit is not None:
                self.credits[o, port.credit] += 1
            if port.flit is not None:
                self.held[o].append(port.flit.vc)
                packet = self.arriving.setdefault((o, port.flit.vc), [])
                packet.append(port.flit)
                if port.flit.is_tail:
                    self.received.append((o, port.flit.vc, self.arriving.pop((o, port.flit.vc))))


@dataclass
class Engines:
    """Surroundings of the lookup engines: a script for their registers and a TCAM outside."""

    params: LookupParams
    routes: dict[int, int]
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.script = [(csr_map(self.params)["CTRL"].address, 1)]
        self.waiting: list[tuple[int, int]] = []

    def inputs(self) -> LookupInputs:
        values = {"tcam_req_ready": int(self.rng.random() < 0.8)}
        if self.script:
            address, word = self.script.pop()
            values |= {"csr_we": 1, "csr_addr": address, "csr_wdata": word}
        if self.waiting and self.rng.random() < 0.3:
            number, dst = self.waiting.pop(int(self.rng.integers(len(self.waiting))))
            values |= {"tcam_resp_valid": 1, "tcam_resp_id": number, "tcam_resp_match": int(dst in self.routes)}
            values["tcam_resp_output"] = self.routes.get(dst, 0)
        return LookupInputs(**values)

    def observe(self, inputs: LookupInputs, outputs: LookupOutputs) -> None:
        if outputs.tcam_req_valid and inputs.tcam_req_ready:
            self.waiting.append((outputs.tcam_req_id, outputs.tcam_req_dst))


def run(params: RouterParams, cycles: int, seed: int, looked_up: dict[int, int] | None = None) -> Neighbours:
    """Compare `cycles` cycles under load and as many as it takes to empty the router."""
    p = params
    dut = Router(params=p)
    golden = RouterModel(p)
    rng = np.random.default_rng(seed)
    destinations = (max(looked_up) if looked_up else len(p.routes)) + 2
    outside = Neighbours(p, rng, destinations)
    engines = [Engines(p.lookup, looked_up, rng) for _ in range(p.ports)] if looked_up else []
    switched = np.random.default_rng((seed, 1))  # the long runs of kernels know no enable for heads with a route

    async def bench(ctx):
        quiet = 0
        for cycle in range(20 * cycles):
            outside.sending = cycle < cycles
            row = outside.inputs()
            engine_row = [engine.inputs() for engine in engines]
            for i, port in enumerate(row):
                pins = dut.port[i]
                ctx.set(pins.in_valid, port.flit is not None)
                if port.flit is not None:
                    ctx.set(pins.in_flit, port.flit._asdict())
                ctx.set(pins.out_credit_valid, port.credit is not None)
                ctx.set(pins.out_credit_vc, port.credit or 0)
                for name, value in engine_row[i]._asdict().items() if engines else ():
                    if hasattr(dut.control[i], name):
                        ctx.set(getattr(dut.control[i], name), value)
            enable = not p.asks_ahead or not outside.sending or switched.random() < 0.8
            ctx.set(dut.enable, enable)
            want, answers = golden.step(row, engine_row, enable=enable)
            for i, port in enumerate(want):
                pins = dut.port[i]
                flit = Flit(*(ctx.get(getattr(pins.out_flit, name)) for name in Flit._fields))
                got = PortOutputs(
                    flit if ctx.get(pins.out_valid) else None,
                    ctx.get(pins.in_credit_vc) if ctx.get(pins.in_credit_valid) else None,
                    ctx.get(pins.drops),
                )
                assert got == port, f"cycle {cycle}, port {i}"
                if engines:
                    assert ctx.get(dut.control[i].tcam_req_valid) == answers[i].tcam_req_valid
                    engines[i].observe(engine_row[i], answers[i])
            outside.observe(want)
            await ctx.tick()
            busy = any(port.flit or port.credit is not None for port in [*row, *want]) or any(
                queue for of_port in outside.queues for queue in of_port
            )
            quiet = 0 if busy else quiet + 1
            if not outside.sending and quiet > 60:
                break
        else:
            pytest.fail("the router doesn't empty itself")

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert (outside.credits == p.buffer_flits).all(), "all credits are back"
    check_packets(
        outside,
        sum(port.drops for port in golden.step([PortInputs()] * p.ports, [LookupInputs()] * len(engines))[0]),
        looked_up,
    )
    return outside


def check_packets(outside: Neighbours, drops: int, looked_up: dict[int, int] | None) -> None:
    """Every packet is whole, where it was to go, and there once; all others were dropped."""
    p = outside.params
    arrived = set()
    for o, w, flits in outside.received:
        number = flits[0].data >> p.address_bits & (1 << p.address_bits) - 1
        assert number not in arrived
        arrived.add(number)
        sent = list(outside.sent[number])
        dst = flits[0].data & (1 << p.address_bits) - 1
        i, v = outside.origin[number]
        brought = sent[0].data >> p.route_at
        if p.lookahead is not None:
            ahead = dict(enumerate(p.lookahead.next_routes)).get(dst, 0)
            if looked_up is not None:
                ahead = answer_ahead(p, looked_up.get(dst)) if p.carries(o) else 0
            sent[0] = sent[0]._replace(data=sent[0].data & (1 << p.route_at) - 1 | ahead << p.route_at)
        assert [flit._replace(vc=0) for flit in flits] == [flit._replace(vc=0) for flit in sent]
        if p.carries(i) and looked_up is not None:
            port_bits = p.ports.bit_length()
            assert brought & (1 << port_bits) - 1 == o
            assert p.vc_mask(brought >> port_bits & 15, i, v, o) >> w & 1
        elif looked_up is None:
            route = Route(1 << brought % 4, brought // 4) if p.carries(i) else p.routes[dst]
            usual = route.ports >> o & 1 and p.vc_mask(route.route_class, i, v, o) >> w & 1
            escape = route.escape == o and p.escape_mask(route.route_class, i, v, o) >> w & 1
            assert usual or escape
        elif p.output_kind == "port_set":
            assert looked_up[dst] >> o & 1
        else:
            assert looked_up[dst] & 63 == o
    assert len(arrived) + drops == len(outside.sent)
    assert not outside.arriving


def answer_ahead(p: RouterParams, output: int | None) -> int:
    """Field `route` for an answer; port P stands for none."""
    if output is None:
        return p.ports
    return min(output & 63, p.ports) | (output >> 6) << p.ports.bit_length()


def random_rule(rng: np.random.Generator, classes: int, ports: int, vcs: int) -> tuple:
    """Masks, a few of them empty."""
    full = (1 << vcs) - 1
    return tuple(
        tuple(tuple(tuple(int(x) for x in row) for row in of_port) for of_port in of_class)
        for of_class in rng.integers(0, full + 1, (classes, ports, vcs, ports))
        | full * (rng.random((classes, ports, vcs, ports)) < 0.4)
    )


def random_routes(
    rng: np.random.Generator, ports: int, classes: int, adaptive: bool, escape: bool
) -> tuple[Route, ...]:
    routes = []
    for _ in range(9):
        mask = int(rng.integers(1, 1 << ports)) if adaptive else 1 << int(rng.integers(ports))
        routes.append(
            Route(
                mask * int(rng.random() < 0.9),
                int(rng.integers(classes)),
                int(rng.integers(ports)) if escape and rng.random() < 0.7 else None,
            )
        )
    return tuple(routes)


def some_params(
    rng: np.random.Generator,
    *,
    adaptive: bool = False,
    escape: bool = False,
    rules: bool = False,
    carried: int | None = None,
    **given,
) -> RouterParams:
    ports, vcs = given["ports"], given["vcs"]
    classes = 3 if rules else 1
    given |= {"address_bits": 12, "tag_bits": 0, "length_bits": 4, "width_bits": 30}
    if rules:
        given |= {
            "vc_rule": random_rule(rng, classes, ports, vcs),
            "escape_rule": random_rule(rng, classes, ports, vcs),
        }
    routes = random_routes(rng, ports, classes, adaptive, escape)
    if carried is not None:  # 4 ports take 2 bits and "none" a third: 3 ports are enough here
        assert ports == 3
        fields = tuple(int(port) | int(k) << 2 for port, k in zip(*rng.integers(0, [[4], [16]], (2, 8)), strict=True))
        given |= {"lookahead": LookAhead(carried, fields), "width_bits": 36}
    return RouterParams(routes=routes, **given)


ROUTERS = {
    "small": {"ports": 2, "vcs": 1, "buffer_flits": 1, "rc_cycles": 0},
    "islip": {"ports": 3, "vcs": 2, "buffer_flits": 3, "rules": True},
    "input first": {"ports": 3, "vcs": 2, "buffer_flits": 4, "va": "input_first", "sa": "input_first", "rc_cycles": 0},
    "wavefront": {"ports": 3, "vcs": 2, "buffer_flits": 2, "va": "wavefront", "sa": "wavefront", "rc_cycles": 2},
    "matrix": {"ports": 3, "vcs": 3, "buffer_flits": 2, "arbiter": "matrix", "va": "input_first", "rules": True},
    "matrix in the VC allocator": {"ports": 3, "vcs": 2, "buffer_flits": 2, "va_arbiter": "matrix", "rules": True},
    "matrix in the switch": {
        "ports": 3, "vcs": 2, "buffer_flits": 2, "arbiter": "matrix", "va_arbiter": "round_robin", "va": "input_first",
    },
    "iterations": {"ports": 4, "vcs": 2, "buffer_flits": 2, "va_iterations": 3, "sa_iterations": 2, "rules": True},
    "iterations of the switch, speculation": {
        "ports": 4, "vcs": 2, "buffer_flits": 3, "va": "wavefront", "sa_iterations": 3, "speculation": True,
    },
    "iterations of the VC allocator": {
        "ports": 3, "vcs": 3, "buffer_flits": 2, "va_iterations": 2, "sa": "input_first",
    },
    "cut-through": {
        "ports": 3, "vcs": 2, "buffer_flits": 5, "switching": "vct", "neighbour_flits": (4, 6, 9),
        "vc_release": "credits",
    },
    "speculation": {"ports": 3, "vcs": 2, "buffer_flits": 3, "speculation": True, "rc_cycles": 0},
    "speculation, credits": {
        "ports": 3, "vcs": 2, "buffer_flits": 3, "speculation": True, "vc_release": "credits", "sa": "wavefront",
        "credit_delay_cycles": 1,
    },
    "speculation, input first": {
        "ports": 4, "vcs": 2, "buffer_flits": 2, "speculation": True, "sa": "input_first", "va": "wavefront",
        "arbiter": "matrix", "rules": True,
    },
    "adaptive": {"ports": 4, "vcs": 2, "buffer_flits": 3, "adaptive": True, "rules": True, "rc_cycles": 3},
    "escape": {
        "ports": 3, "vcs": 2, "buffer_flits": 2, "adaptive": True, "escape": True, "rules": True, "rc_cycles": 0,
        "credit_delay_cycles": 2,
    },
    "free queue": {"ports": 3, "vcs": 2, "buffer_flits": 3, "rc_cycles": 0, "va": "free_queue", "sa": "input_first"},
    "free queue, one flit": {"ports": 2, "vcs": 1, "buffer_flits": 1, "rc_cycles": 0, "va": "free_queue"},
    "free queue, sets of VCs": {
        "ports": 3, "vcs": 3, "buffer_flits": 2, "rc_cycles": 0, "va": "free_queue", "rules": True, "sa": "wavefront",
        "vc_release": "credits", "credit_delay_cycles": 1,
    },
    "free queue, adaptive": {
        "ports": 4, "vcs": 2, "buffer_flits": 3, "va": "free_queue", "adaptive": True, "escape": True, "rules": True,
        "rc_cycles": 1, "arbiter": "matrix",
    },
    "free queue, cut-through": {
        "ports": 3, "vcs": 2, "buffer_flits": 4, "va": "free_queue", "switching": "vct", "rc_cycles": 0,
    },
    "inputs that choose ahead": {
        "ports": 3, "vcs": 3, "buffer_flits": 2, "rc_cycles": 0, "va": "free_queue", "sa": "input_ahead", "rules": True,
    },
    "inputs that choose ahead, credits": {
        "ports": 4, "vcs": 2, "buffer_flits": 3, "rc_cycles": 0, "va": "free_queue", "sa": "input_ahead",
        "vc_release": "credits", "credit_delay_cycles": 1, "arbiter": "matrix", "neighbour_flits": (1, 2, 3, 4),
    },
    "look-ahead": {"ports": 3, "vcs": 2, "buffer_flits": 3, "carried": 0b110, "rc_cycles": 2, "rules": True},
    "look-ahead, free queue": {
        "ports": 3, "vcs": 2, "buffer_flits": 2, "carried": 0b101, "rc_cycles": 1, "va": "free_queue", "rules": True,
    },
    "look-ahead, cut-through": {
        "ports": 3, "vcs": 2, "buffer_flits": 4, "carried": 0b111, "rc_cycles": 1, "switching": "vct",
        "speculation": True, "sa": "input_first", "va": "input_first",
    },
    "slow outputs": {"ports": 3, "vcs": 2, "buffer_flits": 3, "cycles_per_flit": (1, 2, 5)},
    "slow outputs, speculation": {
        "ports": 3, "vcs": 2, "buffer_flits": 3, "cycles_per_flit": (3, 1, 2), "speculation": True, "sa": "wavefront",
    },
    "slow outputs, free queue": {
        "ports": 4, "vcs": 2, "buffer_flits": 3, "cycles_per_flit": (2, 1, 3, 4), "va": "free_queue", "adaptive": True,
        "sa": "input_first", "arbiter": "matrix", "rc_cycles": 1,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", list(ROUTERS))
@pytest.mark.thinned(2)
def test_every_output_equals_golden(name: str) -> None:
    rng = np.random.default_rng(len(name))
    outside = run(some_params(rng, **ROUTERS[name]), 120, len(name))
    assert len(outside.received) > 5


@given(st.data())
@settings(max_examples=4, deadline=None, derandomize=True)
def test_any_parameters(data: st.DataObject) -> None:
    vct = data.draw(st.booleans())
    kinds = st.sampled_from(["input_first", "output_first", "wavefront"])
    chosen = {
        "ports": data.draw(st.integers(2, 4)),
        "vcs": data.draw(st.integers(1, 3)),
        "buffer_flits": data.draw(st.integers(2, 5)),
        "switching": "vct" if vct else "wormhole",
        "va": data.draw(kinds),
        "sa": data.draw(kinds),
        "arbiter": data.draw(st.sampled_from(["round_robin", "matrix"])),
        "rc_cycles": data.draw(st.integers(0, 2)),
        "credit_delay_cycles": data.draw(st.integers(0, 2)),
        "vc_release": data.draw(st.sampled_from(["tail", "credits"])),
        "speculation": data.draw(st.booleans()),
        "adaptive": data.draw(st.booleans()),
        "escape": data.draw(st.booleans()),
        "rules": data.draw(st.booleans()),
    }
    seed = data.draw(st.integers(0, 1 << 30))
    run(some_params(np.random.default_rng(seed), **chosen), 60, seed)


@pytest.mark.parametrize(("kind", "depth"), [("port", 3), ("port_set", 1)])
def test_lookup_engine_in_every_port(kind: str, depth: int) -> None:
    lookup = LookupParams(
        address_bits=12, functions=("arbitrary",), chunk_bits=(4,), comparators=1, entries=8, ways=2, tag_bits=16,
        output_bits=10, epoch_bits=2, mshrs=3, request_tag_bits=3, pipeline_depth=depth, tcam_kind="external",
    )  # fmt: skip
    rng = np.random.default_rng(depth)
    params = RouterParams(
        ports=3, vcs=2, buffer_flits=3, rc="lookup", lookup=lookup, output_kind=kind, address_bits=12, tag_bits=0,
        width_bits=30, vc_rule=random_rule(rng, 2, 3, 2) if kind == "port" else (),
    )  # fmt: skip
    if kind == "port":  # a port that does not exist, classes with and without a rule
        routes = {0: 0, 1: 1, 2: 2, 3: 7, 4: 1 | 1 << 6, 5: 2 | 9 << 6, 6: 0 | 1 << 6}
    else:
        routes = {0: 0b111, 1: 0b010, 2: 0b101, 3: 0, 4: 0b110, 7: 0b001}
    outside = run(params, 150, 5, routes)
    assert len(outside.received) > 10
    assert len(outside.received) < len(outside.sent), "some are unroutable"


AHEAD = {
    "three cycles": {"pipeline_depth": 3},
    "one cycle, free queue": {"pipeline_depth": 1, "carried": 0b101, "va": "free_queue", "mshrs": 1},
    "cut-through, speculation": {
        "pipeline_depth": 2, "carried": 0b011, "speculation": True, "switching": "vct", "buffer_flits": 6,
    },
    "deep": {"pipeline_depth": 6, "carried": 0b111, "va": "wavefront", "sa": "input_first", "mshrs": 5},
    "free queue, credits": {
        "pipeline_depth": 4, "va": "free_queue", "sa": "wavefront", "vc_release": "credits", "arbiter": "matrix",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", list(AHEAD))
@pytest.mark.thinned(2)
def test_lookup_engines_that_answer_for_the_next_router(name: str) -> None:
    given = {"carried": 0b110, "mshrs": 3, "buffer_flits": 3} | AHEAD[name]
    depth, carried, mshrs = (given.pop(key) for key in ("pipeline_depth", "carried", "mshrs"))
    lookup = LookupParams(
        address_bits=12, functions=("arbitrary",), chunk_bits=(4,), comparators=1, entries=4, ways=2, tag_bits=16,
        output_bits=10, epoch_bits=2, mshrs=mshrs, request_tag_bits=3, pipeline_depth=depth, tcam_kind="external",
    )  # fmt: skip
    rng = np.random.default_rng(len(name))
    params = RouterParams(
        ports=3, vcs=2, rc="lookup", lookup=lookup, address_bits=12, tag_bits=0, length_bits=4, width_bits=36,
        vc_rule=random_rule(rng, 2, 3, 2), lookahead=LookAhead(carried), **given,
    )  # fmt: skip
    routes = {0: 0, 1: 1, 2: 2, 3: 7, 4: 1 | 1 << 6, 5: 2 | 9 << 6, 6: 0 | 1 << 6}
    outside = run(params, 150, 5, routes)
    assert len(outside.received) > 10
    assert len(outside.received) < len(outside.sent), "some are unroutable"


@pytest.mark.parametrize(
    ("given", "latency"),
    [
        ({"rc_cycles": 2, "lookahead": LookAhead(1)}, 4),
        ({"rc_cycles": 1, "lookahead": LookAhead(1), "va": "free_queue"}, 3),
        ({"rc_cycles": 0}, 4),
        ({"rc_cycles": 1}, 5),
        ({"rc_cycles": 2}, 6),
        ({"rc_cycles": 0, "speculation": True}, 3),
        ({"rc_cycles": 0, "va": "free_queue"}, 3),
        ({"rc_cycles": 2, "va": "free_queue"}, 5),
    ],
)
def test_latency_of_an_empty_router(given: dict, latency: int) -> None:
    """A head on the input in cycle y is on the output in y + 4 + r (docs/definitions/router.md, stages of a flit).

    With look-ahead r does not count.
    """
    params = RouterParams(ports=2, vcs=1, buffer_flits=2, routes=(Route(2),), **given)
    dut = Router(params=params)
    seen = []

    async def bench(ctx):
        for cycle in range(10):
            ctx.set(dut.port[0].in_valid, cycle == 1)
            ctx.set(dut.port[0].in_flit, {"kind": SINGLE, "vc": 0, "data": 1 << 56})  # look-ahead: port 1
            if ctx.get(dut.port[1].out_valid):
                seen.append(cycle - 1)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert seen == [latency]
