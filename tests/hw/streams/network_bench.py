"""Bench of a generated network with AXI-Stream at its hosts, run by cocotb inside of the simulator."""

import json
import os
import random
from collections import defaultdict
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from cocotbext.axi import AxiStreamBus, AxiStreamSink, AxiStreamSource
from stream_traffic import pauses, random_frame

SETTING = json.loads(os.environ["STREAM_SETTING"])
MANIFEST = SETTING["manifest"]
ADAPTERS = MANIFEST["streams"]["adapters"]
STRIDE = MANIFEST["router_stride_words"]
NOWHERE = SETTING["nowhere"]
"""A destination that is nobody's."""


async def register(dut: Any, router: int, word: int, value: int | None = None) -> int:
    """Read a register of a router, or write it."""
    await FallingEdge(dut.clk)
    dut.csr__addr.value = router * STRIDE + word
    dut.csr__re.value, dut.csr__we.value, dut.csr__wdata.value = int(value is None), int(value is not None), value or 0
    await FallingEdge(dut.clk)
    dut.csr__re.value = dut.csr__we.value = 0
    return int(dut.csr__rdata.value) if value is None else 0


async def set_up(dut: Any) -> None:
    """Write and wait for what the routers' programs say; nothing without lookup engines."""
    for program in SETTING["programs"]:
        for kind, *words, _ in program["operations"]:
            address, data, mask = (int(word, 16) for word in words)
            if kind == "write":
                await register(dut, program["router"], address, data)
            else:
                while await register(dut, program["router"], address) & mask != data & mask:
                    pass


async def started(dut: Any, busy: float, rng: random.Random) -> tuple[list[AxiStreamSource], list[AxiStreamSink]]:
    """Reset the network; return the bus models of the hosts."""
    for port in MANIFEST["ports"]:
        if port["direction"] == "input" and port["name"] not in ("clk", "rst"):
            getattr(dut, port["name"]).value = 0
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value = 1
    await RisingEdge(dut.clk)
    sources = [AxiStreamSource(AxiStreamBus.from_prefix(dut, a["slave"]), dut.clk, dut.rst) for a in ADAPTERS]
    sinks = [AxiStreamSink(AxiStreamBus.from_prefix(dut, a["master"]), dut.clk, dut.rst) for a in ADAPTERS]
    for end in (*sources, *sinks):
        end.log.setLevel("WARNING")
        end.set_pause_generator(pauses(random.Random(rng.random()), 1 - busy))
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    await set_up(dut)
    return sources, sinks


@cocotb.test(timeout_time=2000, timeout_unit="us")
@cocotb.parametrize(busy=[1.0, 0.5])
async def packets(dut: Any, busy: float) -> None:
    """Packets from all hosts to all: each whole one arrives once, unchanged; the others are counted at their router."""
    rng = random.Random(SETTING["seed"] + int(10 * busy))
    sources, sinks = await started(dut, busy, rng)
    size = ADAPTERS[0]["bytes_of_a_beat"]
    longest = ADAPTERS[0]["longest_packet_beats"] * size
    at = {adapter["own"]: adapter["host"] for adapter in ADAPTERS}
    wanted, counted = defaultdict(list), [dict.fromkeys(("DROPS", "LONG", "MALFORMED"), 0) for _ in ADAPTERS]
    for _ in range(SETTING["packets"]):
        for adapter, source in zip(ADAPTERS, sources, strict=True):
            dest = rng.choice([*at, NOWHERE])
            frame, fate = random_frame(rng, size, longest, dest, dest ^ 1, adapter["user_bits"])
            source.send_nowait(frame)
            if fate == "good" and dest in at:
                wanted[adapter["own"], dest].append((bytes(frame.tdata), frame.tuser))
            else:
                counted[adapter["host"]]["DROPS" if fate == "good" else fate.upper()] += 1
    found = defaultdict(list)
    for adapter, sink in zip(ADAPTERS, sinks, strict=True):
        for _ in range(sum(len(frames) for (_, dest), frames in wanted.items() if dest == adapter["own"])):
            frame = await sink.recv()
            assert frame.tdest == adapter["own"]
            found[frame.tid, frame.tdest].append((bytes(frame.tdata), frame.tuser))
    for source in sources:
        await source.wait()
    for _ in range(300):
        await RisingEdge(dut.clk)
    assert all(sink.empty() for sink in sinks)
    assert len(wanted) == len(ADAPTERS) ** 2, "the packets must be between all hosts"
    # Packets of a pair overtake each other on different VCs.
    assert {pair: sorted(frames) for pair, frames in found.items()} == {
        pair: sorted(frames) for pair, frames in wanted.items()
    }
    words = {r["name"]: r["word_address"] for r in (*MANIFEST["registers"], *MANIFEST["streams"]["registers"])}
    for fault in counted[0]:
        assert sum(expected[fault] for expected in counted) > 0, "the packets must have every fault"
    for adapter, expected in zip(ADAPTERS, counted, strict=True):
        for name in ("LONG", "MALFORMED"):
            word = words[f"STREAM_{name}{adapter['port']}"]
            assert await register(dut, adapter["router"], word) == expected[name], (name, adapter["host"])
    # A lookup may send a packet to nobody some hops before a router finds that it has no way.
    ports = [word for name, word in words.items() if name.startswith("DROPS")]
    drops = [await register(dut, each["router"], word) for each in ADAPTERS for word in ports]
    assert sum(drops) == sum(expected["DROPS"] for expected in counted)
    await register(dut, 2, words["CTRL"], 0b11)
    other = ADAPTERS[3]
    assert await register(dut, 2, words[f"STREAM_LONG{ADAPTERS[2]['port']}"]) == 0
    assert await register(dut, other["router"], words[f"STREAM_LONG{other['port']}"]) == counted[3]["LONG"]
