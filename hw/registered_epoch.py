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

    def elaborate(self, platform: object) -> Module:
        """Build the counters of epochs, open flushes and rows."""
        m = Module()
        debt = self.debt
        requested = Signal()
        ended = Signal()
        ends = Signal()
        defer = Signal()
        last_row = Signal()
        m.d.comb += [
            ends.eq(self.flush_wait & self.scrubbed & last_row),
            self.begin.eq(ended | (requested & ~self.flush_wait & ~debt.all())),
            defer.eq(requested & ~self.flush_wait & debt.all()),
            last_row.eq(self.row == self.rows - 1),
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
                self.active.eq(1),
                self.row.eq(0),
                self.flush_wait.eq(0),
            ]
        with m.Elif(defer):
            m.d.sync += [self.flush_wait.eq(1), self.row.eq(0)]
        with m.Elif(self.scrubbed):
            with m.If(last_row):
                m.d.sync += [self.row.eq(0), self.active.eq(0), debt.eq(0)]
            with m.Else():
                m.d.sync += self.row.eq(self.row + 1)
        return m
