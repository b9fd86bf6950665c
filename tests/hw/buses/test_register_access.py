"""Accesses on a native bus of any latency."""

from typing import Any

import pytest
from amaranth.sim import Simulator

from hopforge.hw.buses.register_access import RegisterAccess
from hopforge.model.lookup.csr import CsrMap, Field, Register
from hopforge.model.router.bus_space import AddressSpace, Window

KEPT = Register(name="KEPT", address=1, fields=(Field(name="value", lsb=0, width=32, access="rw"),))
SPACE = AddressSpace(3, (Window(name="", page=0, page_bits=3, registers=CsrMap((KEPT,))),), ("drop",))


@pytest.mark.parametrize("latency", [1, 2, 3])
def test_a_partial_write_and_a_read(latency: int) -> None:
    dut = RegisterAccess(space=SPACE, read_cycles=latency)
    word = 0x1122_3344
    written: list[int] = []

    async def registers(ctx: Any) -> None:
        nonlocal word
        asked: list[int | None] = [None] * latency
        while True:
            asked = [word if ctx.get(dut.re) else None, *asked[:-1]]
            if ctx.get(dut.we):
                word = ctx.get(dut.wdata)
                written.append(word)
            await ctx.tick()
            ctx.set(dut.rdata, 0xDEAD_BEEF if asked[-1] is None else asked[-1])

    async def access(ctx: Any, write: int, data: int, strobes: int) -> tuple[int, int]:
        port = dut.access
        for name, value in (("valid", 1), ("write", write), ("addr", 1), ("data", data), ("strobes", strobes)):
            ctx.set(getattr(port, f"req_{name}"), value)
        await ctx.tick()
        ctx.set(port.req_valid, 0)
        cycles = 1
        while not ctx.get(port.resp_valid):
            await ctx.tick()
            cycles += 1
        found = ctx.get(port.resp_data)
        ctx.set(port.resp_ready, 1)
        await ctx.tick()
        ctx.set(port.resp_ready, 0)
        return found, cycles

    async def bench(ctx: Any) -> None:
        assert await access(ctx, 0, 0, 0) == (0x1122_3344, 3 + latency)
        assert await access(ctx, 1, 0xAABB_CCDD, 0b0110) == (0, 4 + latency)
        assert written == [0x11BB_CC44]
        assert await access(ctx, 1, 0x0000_0005, 0b1111) == (0, 3)
        assert await access(ctx, 0, 0, 0) == (5, 3 + latency)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.add_testbench(registers, background=True)
    simulator.run()
