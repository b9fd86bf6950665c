"""Bench of a router with AXI-Stream adapters at all ports, run by cocotb inside of the simulator."""

import json
import os
import random
from collections import defaultdict
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from stream_designs import ROUTES, STREAMS
from stream_traffic import pauses, random_frame

from hopforge.model.router.bus_space import router_space

SETTING = json.loads(os.environ["STREAM_SETTING"])
PARAMS = STREAMS[SETTING["design"]]
ROUTER = PARAMS[0].router
EVERY_KIND = SETTING["packets"] >= 30
"""Whether there are enough packets for each to be of every kind, and from every host to every other."""


def packet(rng: random.Random) -> tuple[AxiStreamFrame, str]:
    """Return a packet, and what becomes of it: arrives, unroutable, long, malformed."""
    stream, dest = PARAMS[0], rng.randrange(len(ROUTES))
    frame, fate = random_frame(rng, stream.bytes, stream.beats * stream.bytes, dest, dest ^ 1, stream.user_bits)
    return frame, fate if fate != "good" else "arrives" if ROUTES[dest].ports else "unroutable"


async def started(dut: Any, busy: float) -> tuple[list[AxiStreamSource], list[AxiStreamSink], AxiLiteMaster]:
    """Reset the design; return the bus models."""
    rng = random.Random(SETTING["seed"])
    for handle in dut:
        if handle._name in SETTING["inputs"]:
            handle.value = 0
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value = 1
    await RisingEdge(dut.clk)
    sources, sinks = [], []
    for stream in PARAMS:
        sources.append(AxiStreamSource(AxiStreamBus.from_prefix(dut, f"s_axis_{stream.port}"), dut.clk, dut.rst))
        sinks.append(AxiStreamSink(AxiStreamBus.from_prefix(dut, f"m_axis_{stream.port}"), dut.clk, dut.rst))
    for end in (*sources, *sinks):
        end.log.setLevel("WARNING")
        end.set_pause_generator(pauses(random.Random(rng.random()), 1 - busy))
    master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), dut.clk, dut.rst)
    for part in (master.write_if, master.read_if):
        part.log.setLevel("WARNING")
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    await RisingEdge(dut.clk)
    return sources, sinks, master


@cocotb.test(timeout_time=600, timeout_unit="us")
@cocotb.parametrize(busy=[1.0, 0.6])
async def packets(dut: Any, busy: float) -> None:
    """Packets from all hosts to all: each whole one arrives once, in order, unchanged; the others are counted."""
    rng = random.Random(SETTING["seed"] + int(10 * busy))
    sources, sinks, master = await started(dut, busy)
    wanted = defaultdict(list)
    counted = {stream.port: {"unroutable": 0, "long": 0, "malformed": 0} for stream in PARAMS}
    for _ in range(SETTING["packets"]):
        for stream, source in zip(PARAMS, sources, strict=True):
            frame, fate = packet(rng)
            source.send_nowait(frame)
            if fate == "arrives":
                wanted[stream.own, frame.tdest].append((bytes(frame.tdata), frame.tuser))
            else:
                counted[stream.port][fate] += 1
    found = defaultdict(list)
    for stream, sink in zip(PARAMS, sinks, strict=True):
        for _ in range(sum(len(frames) for (_, dest), frames in wanted.items() if dest == stream.own)):
            frame = await sink.recv()
            assert frame.tdest == stream.own
            found[frame.tid, frame.tdest].append((bytes(frame.tdata), frame.tuser))
    for source in sources:
        await source.wait()
    for _ in range(200):
        await RisingEdge(dut.clk)
    assert all(sink.empty() for sink in sinks)
    assert len(wanted) == len(PARAMS) ** 2 or not EVERY_KIND
    if ROUTER.vcs > 1:  # packets of a pair overtake each other on different VCs
        wanted, found = ({pair: sorted(frames) for pair, frames in each.items()} for each in (wanted, found))
    assert found == wanted
    at = {place.name: 4 * place.address for place in router_space(ROUTER, tuple(s.port for s in PARAMS)).places()}
    for stream in PARAMS:
        expected = counted[stream.port]
        assert min(expected.values()) > 0 or not EVERY_KIND, "the packets must have every fault"
        for name, fate in (
            ("DROPS", "unroutable"),
            ("STREAMS.STREAM_LONG", "long"),
            ("STREAMS.STREAM_MALFORMED", "malformed"),
        ):
            assert await master.read_dword(at[f"{name}{stream.port}"]) == expected[fate], (name, stream.port)
    anything = any(number for expected in counted.values() for number in expected.values())
    assert await master.read_dword(at["INT_STATUS"]) == int(anything)
    await master.write_dword(at["CTRL"], 0b11)
    assert (
        await master.read_dword(at["STREAMS.STREAM_LONG0"])
        == await master.read_dword(at["STREAMS.STREAM_MALFORMED1"])
        == 0
    )
