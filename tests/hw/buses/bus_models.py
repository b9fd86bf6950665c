"""Masters of the three buses, none of them ours, behind one face: read and write of a word with strobes."""

import random
from collections.abc import Iterator
from typing import Any

from cocotb.triggers import RisingEdge

OK, MISSING, REFUSED = "ok", "missing", "refused"


def pauses(rng: random.Random, share: float) -> Iterator[bool]:
    """Yield whether a channel pauses, cycle by cycle."""
    while True:
        yield rng.random() < share


class Axi4LiteMaster:
    """Channels of cocotbext-axi, each with pauses of its own; address and data of a write in any order."""

    def __init__(self, dut: Any, rng: random.Random, idle: float) -> None:
        from cocotbext.axi import axil_channels as channels

        self.rng, self.clk, self.channels = rng, dut.clk, channels
        self.parts = {}
        for name, kind in (("AW", "Source"), ("W", "Source"), ("B", "Sink"), ("AR", "Source"), ("R", "Sink")):
            bus = getattr(channels, f"AxiLite{name}Bus").from_prefix(dut, "s_axi")
            part = getattr(channels, f"AxiLite{name}{kind}")(bus, dut.clk, dut.rst)
            part.log.setLevel("WARNING")
            if idle:
                part.set_pause_generator(pauses(rng, idle))
            self.parts[name] = part

    @staticmethod
    def _reply(response: int) -> str:
        return {0: OK, 2: REFUSED, 3: MISSING}[int(response)]

    def send_write(self, word: int, data: int, strobes: int) -> None:
        """Begin a write."""
        c, parts = self.channels, self.parts
        low = self.rng.randrange(4)  # the lowest address bits do not count
        parts["AW"].send_nowait(c.AxiLiteAWTransaction(awaddr=4 * word + low))
        parts["W"].send_nowait(c.AxiLiteWTransaction(wdata=data, wstrb=strobes))

    async def write(self, word: int, data: int, strobes: int, expected: str) -> str:
        """Write bytes of a word; return the reply."""
        self.send_write(word, data, strobes)
        return self._reply((await self.parts["B"].recv()).bresp)

    async def read(self, word: int, expected: str) -> tuple[int, str]:
        """Read a word; return it and the reply."""
        self.parts["AR"].send_nowait(self.channels.AxiLiteARTransaction(araddr=4 * word))
        answer = await self.parts["R"].recv()
        return int(answer.rdata), self._reply(answer.rresp)


class ApbMaster:
    """Host of cocotbext-apb; it raises where an error was not expected, and where one was and did not come."""

    def __init__(self, dut: Any, rng: random.Random, idle: float) -> None:
        from cocotbext.apb import Apb4Bus, ApbHost

        self.rng, self.clk, self.idle = rng, dut.clk, idle
        self.host = ApbHost(Apb4Bus.from_prefix(dut, "s_apb"), dut.clk)
        self.host.log.setLevel("WARNING")

    async def _pause(self) -> None:
        while self.rng.random() < self.idle:
            await RisingEdge(self.clk)

    async def write(self, word: int, data: int, strobes: int, expected: str) -> str:
        """Write bytes of a word; return the reply."""
        await self._pause()
        await self.host.write(4 * word, data, strobes, error_expected=expected != OK)
        return expected

    async def read(self, word: int, expected: str) -> tuple[int, str]:
        """Read a word; return it and the reply."""
        await self._pause()
        data = await self.host.read(4 * word, error_expected=expected != OK)
        return int.from_bytes(data, "little"), expected


class WishboneBus:
    """Master of cocotbext-wishbone: cycles of one access, now and then of several back to back."""

    def __init__(self, dut: Any, rng: random.Random, idle: float) -> None:
        from cocotbext.wishbone.driver import WBOp, WishboneMaster

        self.rng, self.clk, self.idle, self.operation = rng, dut.clk, idle, WBOp
        names = {"datwr": "dat_w", "datrd": "dat_r"} | {name: name for name in ("cyc", "stb", "we", "adr", "ack")}
        self.master = WishboneMaster(dut, "s_wb", dut.clk, timeout=200, width=32, signals_dict=names)
        self.master.log.setLevel("WARNING")

    async def several(self, operations: list[tuple[int, int | None, int]]) -> list[tuple[int, bool]]:
        """Do accesses (word, data or None, strobes) in one cycle; return what was read and whether it was an ack."""
        pause = int(self.rng.expovariate(1.0)) if self.rng.random() < self.idle else 0
        wanted = [self.operation(adr=w, dat=d, sel=s, idle=pause) for w, d, s in operations]
        return [(int(answer.datrd), answer.ack == 1) for answer in await self.master.send_cycle(wanted)]

    async def write(self, word: int, data: int, strobes: int, expected: str) -> str:
        """Write bytes of a word; return the reply, as expected if it is an error, for there is only one."""
        ((_, ack),) = await self.several([(word, data, strobes)])
        return OK if ack else expected if expected != OK else "error"

    async def read(self, word: int, expected: str) -> tuple[int, str]:
        """Read a word; return it and the reply."""
        ((data, ack),) = await self.several([(word, None, self.rng.randrange(1, 16))])
        return data, OK if ack else expected if expected != OK else "error"


MASTERS = {"axi4_lite": Axi4LiteMaster, "apb": ApbMaster, "wishbone": WishboneBus}
