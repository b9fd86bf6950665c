"""Epoch of the cache lines in a deep engine: flush events come from registers."""

from amaranth.hdl import Const, Module, Signal

from hopforge.hw.cache.epoch import EpochControl
from hopforge.hw.parts.plus_one import count_in_halves


class RegisteredEpochControl(EpochControl):
    """`EpochControl` whose ``event`` is a register: a ``request`` of a cycle is carried out in the next one.

    Parameters
    ----------
    epoch_bits, rows : int
        As for `EpochControl`.
    """

    def __init__(self, *, epoch_bits: int, rows: int):
        super().__init__(epoch_bits=epoch_bits, rows=rows)
        self.requested = Signal()
        self.ended = Signal()  # the scrub that a flush has waited for
        self.last_row = Signal(init=rows == 1)
        self.in_debt = Signal()  # no flush more
        # The lower half of the bits is full.
        self.row_low_full = Signal()
        self.epoch_low_full = Signal()
        self.debt_low_full = Signal()

    def elaborate(self, platform: object) -> Module:
        """Build the counters of epochs, open flushes and rows."""
        m = Module()
        debt, requested, ended = self.debt, self.requested, self.ended
        last_row, in_debt = self.last_row, self.in_debt
        ends = Signal()
        defer = Signal()
        restart = Signal()  # begin or defer
        m.d.comb += [
            ends.eq(self.flush_wait & self.scrubbed & last_row),
            self.begin.eq(ended | (requested & ~self.flush_wait & ~in_debt)),
            defer.eq(requested & ~self.flush_wait & in_debt),
            restart.eq(ended | (requested & ~self.flush_wait)),
        ]
        m.d.sync += [
            requested.eq(self.request),
            ended.eq(ends),
            self.event.eq(self.request | ends),
        ]
        # Behind the last row comes 0; behind the last epoch, too.
        finished = Signal()
        m.d.comb += finished.eq(self.scrubbed & last_row)
        if self.rows > 1:
            count_in_halves(m, self.row, self.row_low_full, self.scrubbed, restart)
        count_in_halves(m, self.epoch, self.epoch_low_full, self.begin, Const(0))
        count_in_halves(m, debt, self.debt_low_full, self.begin, finished & ~self.begin & ~defer)
        with m.If(restart):
            m.d.sync += last_row.eq(self.rows == 1)
        with m.Elif(self.scrubbed):
            m.d.sync += last_row.eq(self.row == (self.rows - 2) % self.rows)
        with m.If(self.begin):
            m.d.sync += [in_debt.eq(debt == (1 << len(debt)) - 2), self.active.eq(1), self.flush_wait.eq(0)]
        with m.Elif(defer):
            m.d.sync += self.flush_wait.eq(1)
        with m.Elif(finished):
            m.d.sync += [self.active.eq(0), in_debt.eq(0)]
        return m
