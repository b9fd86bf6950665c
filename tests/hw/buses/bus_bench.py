"""Benches of a lookup engine or a router behind a bus, run by cocotb inside of the simulator."""

import json
import os
import random
from typing import Any

import cocotb
from bus_designs import design_space
from bus_models import MASTERS
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from hopforge.model.router.bus_golden import BusGolden
from hopforge.model.router.bus_space import AddressSpace

SETTING = json.loads(os.environ["BUS_SETTING"])

def space() -> AddressSpace:
    """Return what the bus reaches."""
    return design_space(SETTING["design"])


async def started(dut: Any, *, idle: float) -> tuple[Any, dict[str, int]]:
    """Reset the design; return the master and the addresses of the registers by name."""
    rng = random.Random(SETTING["seed"])
    for handle in dut:
        if handle._name in SETTING["inputs"]:
            handle.value = 0
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value = 1
    await RisingEdge(dut.clk)
    master = MASTERS[SETTING["bus"]](dut, rng, idle)
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    await RisingEdge(dut.clk)
    return master, {place.name: place.address for place in space().places()}


def accesses(rng: random.Random, count: int) -> list[tuple[int, int | None, int]]:
    """Draw accesses: registers most of the time, words beside them, and any address."""
    places = list(space().places())
    drawn = []
    for _ in range(count):
        place = rng.choice(places)
        word = place.address if rng.random() < 0.85 else rng.randrange(1 << space().word_bits)
        strobes = rng.choice([15, 15, 1, 2, 4, 8, 3, 12, 5, rng.randrange(16)])
        drawn.append((word, rng.getrandbits(32) if rng.random() < 0.6 else None, strobes))
    return drawn


@cocotb.test(timeout_time=300, timeout_unit="us")
@cocotb.parametrize(idle=[0.0, 0.4])
async def random_accesses(dut: Any, idle: float) -> None:
    """Every answer and every word that is kept, without pauses and with them."""
    rng = random.Random(SETTING["seed"] + 1)
    golden = BusGolden(space())
    seen = {"ok": 0, "missing": 0, "refused": 0}
    master, _ = await started(dut, idle=idle)
    for word, data, strobes in accesses(rng, SETTING["accesses"]):
        if data is None:
            expected = golden.read(word)
            found, reply = await master.read(word, expected.reply)
            assert (found ^ expected.data) & expected.known == 0, (hex(word), hex(found), expected)
        else:
            expected = golden.write(word, data, strobes)
            reply = await master.write(word, data, strobes, expected.reply)
        assert reply == expected.reply, (hex(word), data, strobes, reply, expected)
        seen[expected.reply] += 1
    for place in golden.places.values():  # what is left
        expected = golden.read(place.address)
        found, reply = await master.read(place.address, "ok")
        assert reply == "ok" and (found ^ expected.data) & expected.known == 0, (place, hex(found), expected)
    assert min(seen["ok"], seen["missing"]) > SETTING["accesses"] / 20, seen
    assert seen["refused"] or SETTING["design"] == "router_table", seen  # which has no word that is only written


@cocotb.test(skip=SETTING["bus"] != "wishbone", timeout_time=300, timeout_unit="us")
async def accesses_without_a_gap(dut: Any) -> None:
    """Several accesses in one cycle of Wishbone, and reads that a master gives up."""
    master, at = await started(dut, idle=0.0)
    rng, golden = random.Random(SETTING["seed"]), BusGolden(space())
    for _ in range(20):
        drawn = accesses(rng, 5)
        expected = [golden.read(w) if data is None else golden.write(w, data, strobes) for w, data, strobes in drawn]
        for (found, ack), wanted in zip(await master.several(drawn), expected, strict=True):
            assert ack == (wanted.reply == "ok") and (found ^ wanted.data) & wanted.known == 0
        dut.s_wb_cyc.value, dut.s_wb_stb.value, dut.s_wb_adr.value = 1, 1, at["ID" if "ID" in at else "ENGINE0.ID"]
        for _ in range(rng.randrange(1, 5)):
            await RisingEdge(dut.clk)
        dut.s_wb_cyc.value, dut.s_wb_stb.value = 0, 0
        for _ in range(rng.randrange(1, 5)):
            await RisingEdge(dut.clk)
            assert dut.s_wb_ack.value == 0 and dut.s_wb_err.value == 0


@cocotb.test(skip="link_change" not in space().sources, timeout_time=300, timeout_unit="us")
async def partial_writes_and_topology_changes(dut: Any) -> None:
    """A topology change at any time of a partial write: bytes that are not written keep what it made of them."""
    master, at = await started(dut, idle=0.0)
    mode = at["MODE" if "MODE" in at else "ENGINE1.MODE"]
    for delay in range(14):
        await master.write(mode, 0x0001_0001, 15, "ok")
        assert await master.read(mode, "ok") == (0x0001_0001, "ok")
        pulse = cocotb.start_soon(change_link(dut, delay))
        await master.write(mode, 0x0000_0100, 0b0010, "ok")
        await pulse
        assert await master.read(mode, "ok") == (0x0001_0100, "ok"), delay
    dut.link_change.value = 1  # it never rests: the write is refused in the end
    await master.write(mode, 0x0000_0000, 0b0010, "refused")
    dut.link_change.value = 0
    assert await master.read(mode, "ok") == (0x0001_0100, "ok")


async def change_link(dut: Any, delay: int) -> None:
    """Give a pulse on link_change."""
    for _ in range(delay):
        await RisingEdge(dut.clk)
    dut.link_change.value = 1
    await RisingEdge(dut.clk)
    dut.link_change.value = 0


async def interrupt(dut: Any, master: Any, at: dict[str, int], bit: int) -> None:
    """Check that bit alone has happened, raises the interrupt if enabled, and goes when it is cleared."""
    for _ in range(4):
        await RisingEdge(dut.clk)
    assert await master.read(at["INT_STATUS"], "ok") == (1 << bit, "ok")
    assert dut.irq.value == 0
    await master.write(at["INT_ENABLE"], 1 << bit, 15, "ok")
    await RisingEdge(dut.clk)
    await RisingEdge(dut.clk)
    assert dut.irq.value == 1
    await master.write(at["INT_CLEAR"], 0xF ^ 1 << bit, 1, "ok")
    await RisingEdge(dut.clk)
    await RisingEdge(dut.clk)
    assert dut.irq.value == 1  # another one was cleared
    await master.write(at["INT_CLEAR"], 1 << bit, 1, "ok")
    await RisingEdge(dut.clk)
    await RisingEdge(dut.clk)
    assert dut.irq.value == 0
    assert await master.read(at["INT_STATUS"], "ok") == (0, "ok")
    await master.write(at["INT_ENABLE"], 0, 15, "ok")


@cocotb.test(skip=SETTING["design"] != "lookup", timeout_time=300, timeout_unit="us")
async def interrupts_of_an_engine(dut: Any) -> None:
    """Drop, overrun and link change, and the words that tell of them."""
    master, at = await started(dut, idle=0.0)
    dut.req_valid.value, dut.req_dst.value, dut.resp_ready.value = 1, 5, 1
    await RisingEdge(dut.clk)
    while dut.req_ready.value == 0:
        await RisingEdge(dut.clk)
    dut.req_valid.value = 0
    for _ in range(30):
        await RisingEdge(dut.clk)
    assert await master.read(at["COUNT_DROPS"], "ok") == (1, "ok")
    await interrupt(dut, master, at, 0)
    await overruns(dut, master, at, "")
    await change_link(dut, 0)
    await interrupt(dut, master, at, 2)


async def overruns(dut: Any, master: Any, at: dict[str, int], engine: str) -> None:
    """Commit TCAM rows at distances around the limit: the interrupt comes if and only if STATUS says so."""
    status, commit = at[f"{engine}STATUS"], at[f"{engine}TCAM_WRITE"]
    found = set()
    for rows, pause in (((0, 1), 0), ((0, 1), 235), ((0, 1), 300), ((0, 9), 0), ((9, 0), 0)):
        for row in rows:
            await master.write(commit, 1 << 31 | row, 15, "ok")
            for _ in range(pause if row == rows[0] else 0):
                await RisingEdge(dut.clk)
        word, _ = await master.read(status, "ok")
        happened, _ = await master.read(at["INT_STATUS"], "ok")
        assert happened == 2 * (word >> 5 & 1), (rows, pause)
        found.add(happened)
        if happened and pause == 0:
            await interrupt(dut, master, at, 1)
        await master.write(at["INT_CLEAR"], 7, 15, "ok")
        for _ in range(300):
            await RisingEdge(dut.clk)
    assert found == {0, 2}


@cocotb.test(skip=SETTING["design"] == "lookup", timeout_time=300, timeout_unit="us")
async def interrupts_of_a_router(dut: Any) -> None:
    """A packet without a route; with lookup engines an overrun in one of them and a link change."""
    master, at = await started(dut, idle=0.0)
    if "ENGINE1.STATUS" in at:
        await overruns(dut, master, at, "ENGINE1.")
        await change_link(dut, 0)
        await interrupt(dut, master, at, 2)
        return
    flit = 2 << 3  # destination 2 has no route
    dut.port__0__in_valid.value, dut.port__0__in_flit.value = 1, flit | 0b11
    await RisingEdge(dut.clk)
    dut.port__0__in_valid.value = 0
    for _ in range(20):
        await RisingEdge(dut.clk)
    assert await master.read(at["DROPS0"], "ok") == (1, "ok")
    await interrupt(dut, master, at, 0)
    assert await master.read(at["STATUS"], "ok") == (1, "ok")
    await master.write(at["UNROUTABLE_LO"], 0, 1, "ok")  # a byte with nothing in it clears nothing
    assert await master.read(at["STATUS"], "ok") == (1, "ok")
    await master.write(at["UNROUTABLE_LO"], 1, 1, "ok")
    assert await master.read(at["STATUS"], "ok") == (0, "ok")
