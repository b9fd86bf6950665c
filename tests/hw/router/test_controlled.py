"""A router with its registers: every output and every word of the bus against the golden one; errors; LAG."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.hw.network.network import Network
from hopforge.hw.ports.input_ports import DROP_BITS
from hopforge.hw.router.controlled import ControlledRouter
from hopforge.hw.router.csr import RouterCsr
from hopforge.model.lookup.csr import csr_map
from hopforge.model.lookup.params import LookupParams
from hopforge.model.numbers.crc import crc_address
from hopforge.model.router.controlled import BusInputs, ControlledRouterModel
from hopforge.model.router.csr import ROUTER_ID, address_space, all_engines_address, engine_address, router_csr_map
from hopforge.model.router.flit import BODY, HEAD, SINGLE, TAIL, Flit, PortInputs, PortOutputs
from hopforge.model.router.links import End, Link
from hopforge.model.router.params import Route, RouterParams

SMALL = LookupParams(
    address_bits=12, functions=("arbitrary",), chunk_bits=(4,), comparators=1, entries=4, ways=2, tag_bits=16,
    output_bits=4, epoch_bits=2, mshrs=2, request_tag_bits=1, pipeline_depth=2, max_members=2, tcam_rows=4,
    tcam_latency_cycles=1,
)  # fmt: skip
LOOKUP = RouterParams(
    ports=3, vcs=1, buffer_flits=2, rc="lookup", lookup=SMALL, address_bits=12, width_bits=32, tag_bits=8
)
TABLE = RouterParams(
    ports=3, vcs=2, buffer_flits=3, routes=(Route(1), Route(2), Route(6), Route(0)), address_bits=4, width_bits=16,
    tag_bits=4, rc_cycles=1,
)  # fmt: skip


class Traffic:
    """Packets to random destinations on all inputs, with credits; outputs take everything."""

    def __init__(self, params: RouterParams, rng: np.random.Generator, destinations: int) -> None:
        self.params, self.rng, self.destinations = params, rng, destinations
        self.credits = np.full((params.ports, params.vcs), params.buffer_flits)
        self.queues = [[deque[Flit]() for _ in range(params.vcs)] for _ in range(params.ports)]

    def send(self, port: int, vc: int, dst: int, flits: int) -> None:
        kinds = [SINGLE] if flits == 1 else [HEAD, *[BODY] * (flits - 2), TAIL]
        self.queues[port][vc] += [Flit(kind, vc, dst) for kind in kinds]

    def inputs(self, load: float, shown: Sequence[PortOutputs]) -> list[PortInputs]:
        """Next inputs; `shown` are the outputs of this cycle, whose flits give their credits back at once."""
        rows = []
        for i, out in enumerate(shown):
            v = int(self.rng.integers(self.params.vcs))
            if not self.queues[i][v] and self.rng.random() < load:
                self.send(i, v, int(self.rng.integers(self.destinations)), int(self.rng.integers(1, 4)))
            flit = None
            if self.queues[i][v] and self.credits[i, v]:
                flit = self.queues[i][v].popleft()
                self.credits[i, v] -= 1
            rows.append(PortInputs(flit, None if out.flit is None else out.flit.vc))
            if out.credit is not None:
                self.credits[i, out.credit] += 1
        return rows


def drive(ctx: Any, ports: Any, rows: Sequence[PortInputs]) -> None:
    for pins, row in zip(ports, rows, strict=True):
        ctx.set(pins.in_valid, row.flit is not None)
        if row.flit is not None:
            ctx.set(pins.in_flit, row.flit._asdict())
        ctx.set(pins.out_credit_valid, row.credit is not None)
        ctx.set(pins.out_credit_vc, row.credit or 0)


def shown(ctx: Any, pins: Any) -> PortOutputs:
    flit = Flit(*(ctx.get(getattr(pins.out_flit, name)) for name in Flit._fields))
    return PortOutputs(
        flit if ctx.get(pins.out_valid) else None, ctx.get(pins.in_credit_vc) if ctx.get(pins.in_credit_valid) else None
    )


def simulate(dut: Any, bench: Callable[[Any], Any]) -> None:
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def engine_writes(rows: Sequence[tuple[int, int, int, int]], **mode: int) -> list[tuple[int, int]]:
    """Address and data that program all engines of a router: TCAM rows (value, mask, output, lag); enable."""
    engine = csr_map(SMALL)
    words = [("MODE", engine["MODE"].encode(**mode))]
    for number, (value, mask, output, lag) in enumerate(rows):
        words += [("TCAM_VALUE_LO", value), ("TCAM_MASK_LO", mask), ("TCAM_OUTPUT_LO", output)]
        words += [("TCAM_WRITE", engine["TCAM_WRITE"].encode(row=number, lag=lag, valid=1))]
    words += [("CTRL", 1)]
    return [(all_engines_address(engine[name].address), word) for name, word in words]


def random_bus(params: RouterParams, rng: np.random.Generator) -> BusInputs:
    space = [address for address, _, _ in address_space(params)]
    address = space[int(rng.integers(len(space)))]
    if rng.random() < 0.1:
        address = int(rng.integers(1 << 14))
    data = int(rng.integers(1 << 32))
    if rng.random() < 0.1:  # an engine has many registers, and the first words of the router shall be read, too
        address = int(rng.integers(8))
    if rng.random() < 0.3:
        address = router_csr_map(params)["CTRL"].address
    if address == router_csr_map(params)["CTRL"].address:
        data = int(rng.random() < 0.8) | int(rng.random() < 0.05) << 1
    return BusInputs(address, int(rng.random() < 0.3), int(rng.random() < 0.6), data)


@pytest.mark.parametrize(
    ("params", "destinations"),
    [
        (TABLE, 6),
        (replace(LOOKUP, ports_per_engine=2), 16),
        pytest.param(RouterParams(**{**vars(TABLE), "rc_cycles": 0, "speculation": True}), 6, marks=pytest.mark.study),
        pytest.param(LOOKUP, 16, marks=pytest.mark.study),
    ],
)
def test_every_output_and_every_word_equals_the_golden_router(params: RouterParams, destinations: int) -> None:
    rng = np.random.default_rng(7)
    dut, golden = ControlledRouter(params=params), ControlledRouterModel(params, number=5)
    traffic = Traffic(params, rng, destinations)
    words = set()
    begin = deque(engine_writes([(0, 8, 1, 0), (8, 12, 2, 0)], members=1) if params.rc == "lookup" else [])

    async def bench(ctx: Any) -> None:
        ctx.set(dut.number, 5)
        for cycle in range(800):
            bus = random_bus(params, rng) if cycle % 3 == 0 else BusInputs()
            if begin:
                address, data = begin.popleft()
                bus = BusInputs(address, 1, 0, data)
            for name, value in bus._asdict().items():
                ctx.set(getattr(dut.csr, name), value)
            change = int(params.rc == "lookup" and rng.random() < 0.002)
            if params.rc == "lookup":
                ctx.set(dut.link_change, change)
            visible = golden.visible()
            rows = traffic.inputs(0.3, visible)
            drive(ctx, dut.port, rows)
            for i, pins in enumerate(dut.port):
                assert shown(ctx, pins) == visible[i]._replace(drops=0), f"cycle {cycle}, port {i}"
            _, word, _ = golden.step(rows, bus, link_change=change)
            assert ctx.get(dut.csr.rdata) == word, f"cycle {cycle}"
            words.add(word)
            await ctx.tick()

    simulate(dut, bench)
    assert ROUTER_ID in words and 5 in words
    assert sum(golden.router.flits_in) and sum(golden.router.flits_out) and golden.unroutable


async def bus_write(ctx: Any, bus: Any, address: int, data: int) -> None:
    ctx.set(bus.addr, address)
    ctx.set(bus.wdata, data)
    ctx.set(bus.we, 1)
    await ctx.tick()
    ctx.set(bus.we, 0)


async def bus_read(ctx: Any, bus: Any, address: int) -> int:
    ctx.set(bus.addr, address)
    ctx.set(bus.re, 1)
    await ctx.tick()
    ctx.set(bus.re, 0)
    return int(ctx.get(bus.rdata))


def test_an_unroutable_packet_is_dropped_counted_flagged_and_blocks_nobody() -> None:
    params = RouterParams(**{**vars(TABLE), "routes": (Route(0), Route(2), Route(4))})
    dut, rng = ControlledRouter(params=params), np.random.default_rng(1)
    traffic = Traffic(params, rng, 3)
    for _ in range(5):  # in the same VC, beside it, and at another port
        traffic.send(0, 0, 0, 9)
        traffic.send(0, 0, 1, 2)
        traffic.send(0, 1, 1, 3)
        traffic.send(1, 0, 2, 2)
    arrived = [0] * 3
    registers = router_csr_map(params)
    found = {}

    async def bench(ctx: Any) -> None:
        for _ in range(300):
            out = [shown(ctx, pins) for pins in dut.port]
            for o, port in enumerate(out):
                arrived[o] += port.flit is not None
            drive(ctx, dut.port, traffic.inputs(0.0, out))
            await ctx.tick()
        for name in ("DROPS0", "DROPS1", "UNROUTABLE_LO", "STATUS", "FLITS_IN0", "FLITS_OUT1", "FLITS_OUT2"):
            found[name] = await bus_read(ctx, dut.csr, registers[name].address)
        await bus_write(ctx, dut.csr, registers["UNROUTABLE_LO"].address, 0b110)
        found["kept"] = await bus_read(ctx, dut.csr, registers["UNROUTABLE_LO"].address)
        await bus_write(ctx, dut.csr, registers["UNROUTABLE_LO"].address, 0b001)
        found["cleared"] = await bus_read(ctx, dut.csr, registers["STATUS"].address)

    simulate(dut, bench)
    assert arrived == [0, 5 * (2 + 3), 5 * 2]
    assert found == {
        "DROPS0": 5, "DROPS1": 0, "UNROUTABLE_LO": 1, "STATUS": 1, "FLITS_IN0": 5 * (9 + 2 + 3), "FLITS_OUT1": 25,
        "FLITS_OUT2": 10, "kept": 1, "cleared": 0,
    }  # fmt: skip


def test_registers_of_a_router_with_more_ports_than_a_word_has_bits() -> None:
    """Flags in two words, and counters of all ports; what the ports do comes from the golden router."""
    params = replace(TABLE, ports=41, vcs=1, routes=(Route(0), Route(1 << 40), Route(2)))
    rng = np.random.default_rng(3)
    dut, golden = RouterCsr(params=params), ControlledRouterModel(params, number=5)
    traffic = Traffic(params, rng, 4)
    registers = router_csr_map(params)
    flags = [registers[name].address for name in ("UNROUTABLE_LO", "UNROUTABLE_HI")]
    words: dict[int, set[int]] = {}

    async def bench(ctx: Any) -> None:
        ctx.set(dut.number, 5)
        for cycle in range(400):
            bus = random_bus(params, rng) if cycle % 3 else BusInputs(flags[int(rng.integers(2))], 0, 1)
            for name, value in bus._asdict().items():
                ctx.set(getattr(dut.csr, name), value)
            visible = golden.visible()
            rows = traffic.inputs(0.3, visible)
            assert ctx.get(dut.enable) == golden.enable, f"cycle {cycle}"
            before = golden.unroutable
            _, word, _ = golden.step(rows, bus)
            ctx.set(dut.arrived, sum((row.flit is not None) << i for i, row in enumerate(rows)))
            ctx.set(dut.left, sum((out.flit is not None) << i for i, out in enumerate(visible)))
            ctx.set(dut.drops, sum(out.drops << DROP_BITS * i for i, out in enumerate(visible)))
            ctx.set(dut.dropped, sum(1 << i for i in golden.router.dropped))
            assert ctx.get(dut.csr.rdata) == word, f"cycle {cycle}"
            if bus.re and bus.addr in flags:
                words.setdefault(bus.addr, set()).add(before >> 32 * flags.index(bus.addr) & 0xFFFFFFFF)
            await ctx.tick()

    simulate(dut, bench)
    assert all(len(words[address]) > 5 for address in flags)


@pytest.mark.parametrize("by_modulo", [False, True])
def test_packets_spread_over_the_members_of_a_link(by_modulo: bool) -> None:
    """Two routers with a host each (port 0) and two parallel links (ports 1 and 2); programmed over the bus."""
    links = [Link(End(a, port), End(1 - a, port)) for a in range(2) for port in (1, 2)]
    dut = Network(routers=[LOOKUP, LOOKUP], links=links, hosts=[End(0, 0), End(1, 0)])
    own = router_csr_map(LOOKUP)
    remote = [0x800 | d for d in (0, 1, 2, 3, 5, 8, 11, 14, 17, 20)]
    writes: list[tuple[int, int]] = []
    for router in range(2):
        base = router << 14
        rows = [(0x800 * (1 - router), 0x800, 1, 1), (0x800 * router, 0x800, 0, 0)]  # there: port 1 + member; here: 0
        writes += [(base + address, word) for address, word in engine_writes(rows, members=2, member_hash=by_modulo)]
        writes += [(base + own["CTRL"].address, 1)]
    members = [d % 2 if by_modulo else crc_address("CRC-32C", d, 12) % 2 for d in remote]
    got: list[int] = []
    counts = {}

    async def bench(ctx: Any) -> None:
        for address, data in writes:
            await bus_write(ctx, dut.csr, address, data)
        queue, credits = deque(remote), LOOKUP.buffer_flits
        for _ in range(200):
            here, there = shown(ctx, dut.host[0]), shown(ctx, dut.host[1])
            credits += here.credit is not None
            flit = None
            if queue and credits:
                credits, flit = credits - 1, Flit(SINGLE, 0, queue.popleft())
            if there.flit is not None:
                got.append(there.flit.data)
            drive(ctx, dut.host, [PortInputs(flit), PortInputs(None, None if there.flit is None else 0)])
            await ctx.tick()
        for port in (1, 2):
            counts[port] = await bus_read(ctx, dut.csr, own[f"FLITS_OUT{port}"].address)
            counts[-port] = await bus_read(ctx, dut.csr, (1 << 14) + own[f"FLITS_IN{port}"].address)

    simulate(dut, bench)
    assert sorted(got) == sorted(remote)
    assert 0 < sum(members) < len(members)
    assert counts == {1: members.count(0), -1: members.count(0), 2: members.count(1), -2: members.count(1)}


def test_engines_of_all_ports_are_written_together_and_read_one_by_one() -> None:
    golden = ControlledRouterModel(LOOKUP)
    engine, own = csr_map(SMALL), router_csr_map(LOOKUP)
    idle = [PortInputs()] * 3

    def bus(*operation: int) -> int:
        golden.step(idle, BusInputs(*operation))
        return golden.step(idle)[1]

    mode = engine["MODE"].encode(members=2)
    bus(all_engines_address(engine["MODE"].address), 1, 0, mode)
    bus(engine_address(1, engine["MODE"].address), 1, 0, engine["MODE"].encode(members=1))
    bus(own["OWN_LO"].address, 1, 0, 0xABC)
    assert [bus(engine_address(i, engine["MODE"].address), 0, 1) & 0x1F0000 for i in range(3)] == [
        2 << 16, 1 << 16, 2 << 16,
    ]  # fmt: skip
    assert [bus(engine_address(i, engine["OWN_LO"].address), 0, 1) for i in range(3)] == [0xABC] * 3
    assert bus(own["OWN_LO"].address, 0, 1) == 0xABC
    assert bus(all_engines_address(engine["MODE"].address), 0, 1) == 0
    assert bus(engine_address(3, engine["MODE"].address), 0, 1) == 0
