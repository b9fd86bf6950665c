"""A lookup engine in whose lines bits can be inverted from outside (docs/definitions/protection.md)."""

from typing import Any

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In
from amaranth.utils import ceil_log2

from hopforge.hw.lookup_engine import lookup_engine
from hopforge.hw.sram import Sram
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
        """Build the memory; the fault has a write port of its own."""
        m = Module()
        row = self.fault_row if self.depth > 1 else Const(0, 1)
        write_row: Value = self.w_addr if self.depth > 1 else Const(0, 1)
        read_row: Value = self.r_addr if self.depth > 1 else Const(0, 1)
        m.submodules.array = array = Memory(shape=self.width_bits, depth=self.depth, init=[])
        write, fault = array.write_port(), array.write_port()
        before = array.read_port(domain="comb")
        read = array.read_port(domain="comb" if self.asynchronous else "sync")
        strikes = Signal()
        same = Signal()
        m.d.comb += [
            strikes.eq(self.fault_mask.any()),
            same.eq(self.w_en & (write_row == row)),
            before.addr.eq(row),
            fault.en.eq(strikes),
            fault.addr.eq(row),
            write.en.eq(self.w_en & ~(strikes & same)),
            write.addr.eq(write_row),
            write.data.eq(self.w_data),
            read.addr.eq(read_row),
            self.r_data.eq(read.data),
        ]
        with m.If(same):
            m.d.comb += fault.data.eq(self.w_data ^ self.fault_mask)
        with m.Else():
            m.d.comb += fault.data.eq(before.data ^ self.fault_mask)
        if not self.asynchronous:
            m.d.comb += read.en.eq(self.r_en)
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
        self.memories: list[FaultyMemory] = []
        self.engine: Any = lookup_engine(params=params, memory=self._memory)
        self.lines = self.memories[: params.ways]  # behind them: the replacement state
        super().__init__(
            dict(self.engine.signature.members)
            | {
                "fault": In(1),
                "fault_row": In(max(1, params.index_bits)),
                "fault_way": In(max(1, ceil_log2(params.ways))),
                "fault_bit": In(ceil_log2(self.lines[0].width_bits)),
            }
        )

    def _memory(self, **parameters: Any) -> FaultyMemory:
        self.memories.append(FaultyMemory(**parameters))
        return self.memories[-1]

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
