"""Sees from the register bus that a TCAM row is committed too early."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.lookup.tcam import ROW_NUMBER_BITS

__all__ = ["ROW_WRITE_CYCLES", "RowWriteWatch"]

ROW_WRITE_CYCLES = 256
"""Cycles that a TCAM of memories takes to write a row (docs/definitions/lookup-engine.md, *TCAM inside*)."""


class RowWriteWatch(wiring.Component):
    """Counts the cycles since the last row that each TCAM of memories has accepted.

    ``overrun`` is high in the cycle of a commit that a TCAM ignores because it is busy: one in the
    `ROW_WRITE_CYCLES` cycles behind a commit that it has taken. Rows that do not exist do not count. It watches the
    bus, so that no TCAM needs a wire to the interrupt. Reset: no TCAM is busy.

    Parameters
    ----------
    engines : int
        TCAMs, a bit of ``commit`` each.
    rows : int
        Rows of each.
    """

    commit: Signal
    row: Signal
    overrun: Signal

    def __init__(self, *, engines: int, rows: int):
        self.engines = engines
        self.rows = rows
        super().__init__({"commit": In(engines), "row": In(ROW_NUMBER_BITS), "overrun": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Build a counter for each TCAM."""
        m = Module()
        lost = []
        for engine in range(self.engines):
            left = Signal(range(ROW_WRITE_CYCLES + 1), name=f"left{engine}")
            taken = self.commit[engine] & (self.row < self.rows)
            lost.append(taken & (left != 0))
            with m.If(left != 0):
                m.d.sync += left.eq(left - 1)
            with m.Elif(taken):
                m.d.sync += left.eq(ROW_WRITE_CYCLES)
        m.d.comb += self.overrun.eq(Cat(lost).any())
        return m
