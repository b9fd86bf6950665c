"""A lookup engine in whose lines bits can be inverted from outside (docs/definitions/protection.md)."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from amaranth.utils import ceil_log2

from hopforge.hw.lookup.engine import lookup_engine
from hopforge.hw.parts.sram import Sram
from hopforge.model.lookup.params import LookupParams

__all__ = ["FaultyEngine", "FaultyMemory"]


class FaultyMemory(Sram):
    """`Sram` of which bits change by themselves: word ``fault_row`` by ``fault_mask``, at the end of the cycle.

    A word that is written in the same cycle is changed after it. ``fault_mask`` is 0 in a cycle without a fault.

    Parameters
    ----------
    depth, width_bits, asynchronous
        As for `Sram`.
    """

    def __init__(self, *, depth: int, width_bits: int, asynchronous: bool = False):
        super().__init__(depth=depth, width_bits=width_bits, asynchronous=asynchronous)
        self.fault_row = Signal(ceil_log2(depth))
        self.fault_mask = Signal(width_bits)

    def elaborate(self, platform: object) -> Module:
        """Keep what was written and what faults have made of it apart, each twice: to be read, and for the next fault.

        A bit for each row says which of the two is newer.
        """
        m = Module()
        row = self.fault_row if self.depth > 1 else Const(0, 1)
        write_row: Value = self.w_addr if self.depth > 1 else Const(0, 1)
        read_row: Value = self.r_addr if self.depth > 1 else Const(0, 1)
        faulty = Signal(self.depth)
        strikes = Signal()
        same = Signal()
        changed = Signal(self.width_bits)
        before: list[Value] = []
        now: list[Value] = []
        for name in ("written", "struck"):
            enable, address, data = (
                (self.w_en, write_row, self.w_data) if name == "written" else (strikes, row, changed)
            )  # fmt: skip
            for end, asynchronous in (("before", True), ("now", self.asynchronous)):
                part = Sram(depth=self.depth, width_bits=self.width_bits, asynchronous=asynchronous)
                m.submodules[f"{name}_{end}"] = part
                m.d.comb += [part.w_en.eq(enable), part.w_data.eq(data)]
                if self.depth > 1:
                    m.d.comb += [part.w_addr.eq(address), part.r_addr.eq(row if end == "before" else read_row)]
                if not asynchronous:
                    m.d.comb += part.r_en.eq(self.r_en)
                (before if end == "before" else now).append(part.r_data)
        m.d.comb += [
            strikes.eq(self.fault_mask.any()),
            same.eq(self.w_en & (write_row == row)),
            changed.eq(Mux(same, self.w_data, Mux(faulty.bit_select(row, 1), before[1], before[0])) ^ self.fault_mask),
        ]
        for number in range(self.depth):
            with m.If(strikes & (row == number)):
                m.d.sync += faulty[number].eq(1)
            with m.Elif(self.w_en & (write_row == number)):
                m.d.sync += faulty[number].eq(0)
        chosen: Value = faulty.bit_select(read_row, 1)
        if not self.asynchronous:
            newer = Signal()
            with m.If(self.r_en):
                m.d.sync += newer.eq(chosen)
            chosen = newer
        m.d.comb += self.r_data.eq(Mux(chosen, now[1], now[0]))
        return m


class FaultyEngine(wiring.Component):
    """A lookup engine with a port for faults: with ``fault`` one bit of a line is inverted at the end of the cycle.

    All other ports are those of the engine.

    Parameters
    ----------
    params : LookupParams
        The engine.
    """

    fault: Signal
    fault_row: Signal
    fault_way: Signal
    fault_bit: Signal

    def __init__(self, params: LookupParams):
        self.params = params
        self.lines: list[FaultyMemory] = []
        self.engine: Any = lookup_engine(params=params, memory=self._memory)
        super().__init__(
            dict(self.engine.signature.members)
            | {
                "fault": In(1),
                "fault_row": In(max(1, params.index_bits)),
                "fault_way": In(max(1, ceil_log2(params.ways))),
                "fault_bit": In(ceil_log2(self.lines[0].width_bits)),
            }
        )

    def _memory(self, **parameters: Any) -> Sram:
        if len(self.lines) == self.params.ways:
            return Sram(**parameters)  # of the replacement state
        self.lines.append(FaultyMemory(**parameters))
        return self.lines[-1]

    def elaborate(self, platform: object) -> Module:
        """Connect the engine and the faults."""
        m = Module()
        m.submodules.engine = engine = self.engine
        for name, member in engine.signature.members.items():
            outside, inside = getattr(self, name), getattr(engine, name)
            m.d.comb += inside.eq(outside) if member.flow is In else outside.eq(inside)
        mask = Signal(self.lines[0].width_bits)
        m.d.comb += mask.eq(Const(1, 1) << self.fault_bit)
        for way, memory in enumerate(self.lines):
            here = self.fault & (self.fault_way == way)
            m.d.comb += [memory.fault_mask.eq(mask & here.replicate(len(mask))), memory.fault_row.eq(self.fault_row)]
        return m
