"""ControlStatus: every register of the map, the sequences of control."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.hw.lookup.csr import ControlStatus
from hopforge.model.lookup.csr import COUNTERS
from hopforge.model.lookup.params import LookupParams

ENGINES = {
    "inside": LookupParams(),
    "wide, outside": LookupParams(address_bits=48, output_bits=40, tcam_kind="external"),
    "wide, inside": LookupParams(address_bits=40, output_bits=33, tcam_rows=4),
}


def simulate(dut: ControlStatus, bench) -> None:
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


async def write(ctx, dut: ControlStatus, name: str, value: int) -> None:
    ctx.set(dut.csr_we, 1)
    ctx.set(dut.csr_addr, dut.map[name].address)
    ctx.set(dut.csr_wdata, value)
    await ctx.tick()
    ctx.set(dut.csr_we, 0)


async def read(ctx, dut: ControlStatus, address: int) -> int:
    ctx.set(dut.csr_re, 1)
    ctx.set(dut.csr_addr, address)
    await ctx.tick()
    ctx.set(dut.csr_re, 0)
    return ctx.get(dut.csr_rdata)


@pytest.mark.parametrize("params", ENGINES.values(), ids=list(ENGINES))
def test_map_reads_back(params: LookupParams) -> None:
    dut = ControlStatus(params=params)
    rng = np.random.default_rng(1)
    assert len(list(dut.map)) > 20

    async def bench(ctx):
        written = {}
        for register in dut.map:
            assert await read(ctx, dut, register.address) == register.reset, register.name
            if register.name not in {"CTRL", "INVALIDATE_LO", "TCAM_WRITE"}:
                written[register.name] = int(rng.integers(1 << 32))
                await write(ctx, dut, register.name, written[register.name])
        for name, value in written.items():
            register = dut.map[name]
            assert await read(ctx, dut, register.address) == (
                value & register.write_mask | register.reset & ~register.write_mask
            ), name
        assert await read(ctx, dut, 127) == 0
        own = written["OWN_LO"] | written.get("OWN_HI", 0) << 32
        assert ctx.get(dut.own) == own & (1 << params.address_bits) - 1

    simulate(dut, bench)


def test_counters_count_and_clear() -> None:
    dut = ControlStatus(params=ENGINES["inside"])

    async def bench(ctx):
        for number in range(len(COUNTERS)):
            ctx.set(dut.events, (1 << number + 1) - 1)
            await ctx.tick()
        ctx.set(dut.events, 0)
        names = [name for name, _ in COUNTERS]
        for number, name in enumerate(names):
            assert await read(ctx, dut, dut.map[f"COUNT_{name.upper()}"].address) == len(names) - number
        ctx.set(dut.events, (1 << len(names)) - 1)
        await write(ctx, dut, "CTRL", 8)
        ctx.set(dut.events, 0)
        for name in names:
            assert await read(ctx, dut, dut.map[f"COUNT_{name.upper()}"].address) == 0

    simulate(dut, bench)


@pytest.mark.parametrize("by_link", [False, True])
def test_topology_change(by_link: bool) -> None:
    dut = ControlStatus(params=ENGINES["inside"])

    async def bench(ctx):
        await write(ctx, dut, "MODE", dut.map["MODE"].encode(mode=2, members=3))
        assert ctx.get(dut.flush_request) == 1
        await write(ctx, dut, "CTRL", 1)
        assert (ctx.get(dut.enable), ctx.get(dut.active_enable), ctx.get(dut.flush_request)) == (1, 0, 1)
        await ctx.tick()
        assert (ctx.get(dut.enable), ctx.get(dut.active_enable), ctx.get(dut.flush_request)) == (1, 1, 0)
        ctx.set(dut.link_change, by_link)
        await write(ctx, dut, "CTRL", 1 if by_link else 5)  # the change wins over enable in the same cycle
        ctx.set(dut.link_change, 0)
        assert (ctx.get(dut.enable), ctx.get(dut.hold), ctx.get(dut.flush_request)) == (0, 1, 1)
        assert (ctx.get(dut.mode), ctx.get(dut.members)) == (0, 3)
        await write(ctx, dut, "CTRL", 0)
        assert (ctx.get(dut.hold), ctx.get(dut.flush_request)) == (1, 0)
        await write(ctx, dut, "CTRL", 1)
        assert (ctx.get(dut.hold), ctx.get(dut.enable), ctx.get(dut.flush_request)) == (0, 1, 1)

    simulate(dut, bench)


def test_invalidate_is_taken_once() -> None:
    dut = ControlStatus(params=ENGINES["wide, outside"])

    async def bench(ctx):
        await write(ctx, dut, "INVALIDATE_HI", 0x1234)
        await write(ctx, dut, "INVALIDATE_LO", 0xDEADBEEF)
        await write(ctx, dut, "INVALIDATE_HI", 0x5555)  # too late for the one that is pending
        await write(ctx, dut, "INVALIDATE_LO", 1)  # ignored: busy
        assert ctx.get(dut.invalidate_pending) == 1
        assert ctx.get(dut.invalidate_dst) == 0x1234_DEADBEEF
        ctx.set(dut.invalidate_taken, 1)
        await ctx.tick()
        ctx.set(dut.invalidate_taken, 0)
        assert ctx.get(dut.invalidate_pending) == 0
        busy = dut.map["STATUS"].field("invalidate_busy")
        assert busy.extract(await read(ctx, dut, dut.map["STATUS"].address)) == 1
        ctx.set(dut.invalidate_done, 1)
        await write(ctx, dut, "INVALIDATE_LO", 1)  # still busy in this cycle
        ctx.set(dut.invalidate_done, 0)
        assert busy.extract(await read(ctx, dut, dut.map["STATUS"].address)) == 0
        assert ctx.get(dut.invalidate_pending) == 0

    simulate(dut, bench)


def test_overrun_is_cleared_by_reading() -> None:
    dut = ControlStatus(params=ENGINES["inside"])

    async def bench(ctx):
        status = dut.map["STATUS"]
        ctx.set(dut.tcam_overrun, 1)
        assert status.decode(await read(ctx, dut, status.address))["tcam_overrun"] == 0
        ctx.set(dut.tcam_overrun, 0)  # it came in the cycle of the read, and is not lost
        assert status.decode(await read(ctx, dut, status.address))["tcam_overrun"] == 1
        assert status.decode(await read(ctx, dut, status.address))["tcam_overrun"] == 0

    simulate(dut, bench)
