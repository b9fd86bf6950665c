"""The interrupt cycle by cycle: an event wins over a clear, sources that are not there stay 0."""

from typing import Any

import pytest
from amaranth.sim import Simulator

from hopforge.hw.buses.interrupts import Interrupts
from hopforge.hw.buses.on_bus import OnBus
from hopforge.hw.buses.register_access import RegisterAccess
from hopforge.model.router.bus_space import AddressSpace


def test_events_clears_and_levels() -> None:
    dut = Interrupts(sources=("drop", "link_change"))

    async def write(ctx: Any, addr: int, data: int, events: int = 0) -> None:
        ctx.set(dut.addr, addr)
        ctx.set(dut.wdata, data)
        ctx.set(dut.we, 1)
        ctx.set(dut.events, events)
        await ctx.tick()
        ctx.set(dut.we, 0)
        ctx.set(dut.events, 0)

    async def read(ctx: Any, addr: int) -> int:
        ctx.set(dut.addr, addr)
        ctx.set(dut.re, 1)
        await ctx.tick()
        ctx.set(dut.re, 0)
        return int(ctx.get(dut.rdata))

    async def bench(ctx: Any) -> None:
        await write(ctx, 1, 0xFFFF_FFFF, events=0b111)  # INT_ENABLE, and everything happens
        assert ctx.get(dut.irq) == 0  # status and enable are there one cycle later
        await ctx.tick()
        assert ctx.get(dut.irq) == 1
        assert await read(ctx, 0) == 0b101
        assert await read(ctx, 1) == 0b101
        assert await read(ctx, 2) == await read(ctx, 3) == 0
        await write(ctx, 0, 0)  # a write to the status does nothing
        await write(ctx, 2, 0b101, events=0b100)  # cleared, but link_change happens again
        assert await read(ctx, 0) == 0b100
        await write(ctx, 1, 0b001)
        await ctx.tick()
        assert ctx.get(dut.irq) == 0
        await write(ctx, 2, 0b100)
        assert await read(ctx, 0) == 0

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_bad_parameters() -> None:
    space = AddressSpace(3, (), ("drop",))
    with pytest.raises(ValueError, match="read_cycles must be at least 1, not 0"):
        RegisterAccess(space=space, read_cycles=0)
    inner = Interrupts(sources=())
    with pytest.raises(ValueError, match="bus must be one of axi4_lite, apb, wishbone, not 'ahb'"):
        OnBus(inner=inner, native={}, hidden=(), space=space, bus="ahb")
