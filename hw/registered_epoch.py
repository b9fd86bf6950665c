"""Epoch of the cache lines in a deep engine: flush events come from registers."""

from amaranth.hdl import Module, Signal

from hopforge.hw.epoch import EpochControl


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

    def elaborate(self, platform: object) -> Module:
        """Build the counters of epochs, open flushes and rows."""
        m = Module()
        debt, requested, ended = self.debt, self.requested, self.ended
        last_row, in_debt = self.last_row, self.in_debt
        ends = Signal()
        defer = Signal()
        m.d.comb += [
            ends.eq(self.flush_wait & self.scrubbed & last_row),
            self.begin.eq(ended | (requested & ~self.flush_wait & ~in_debt)),
            defer.eq(requested & ~self.flush_wait & in_debt),
        ]
        m.d.sync += [
            requested.eq(self.request),
            ended.eq(ends),
            self.event.eq(self.request | ends),
        ]
        with m.If(self.begin):
            m.d.sync += [
                self.epoch.eq(self.epoch + 1),
                debt.eq(debt + 1),
                in_debt.eq((debt + 1)[: len(debt)].all()),
                self.active.eq(1),
                self.row.eq(0),
                last_row.eq(self.rows == 1),
                self.flush_wait.eq(0),
            ]
        with m.Elif(defer):
            m.d.sync += [self.flush_wait.eq(1), self.row.eq(0), last_row.eq(self.rows == 1)]
        with m.Elif(self.scrubbed):
            with m.If(last_row):
                m.d.sync += [self.row.eq(0), last_row.eq(self.rows == 1), self.active.eq(0), debt.eq(0), in_debt.eq(0)]
            with m.Else():
                m.d.sync += [self.row.eq(self.row + 1), last_row.eq(self.row == self.rows - 2)]
        return m
