"""Epoch of the cache lines: flush in one cycle, and scrubbing of old epochs before the number wraps."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2


class EpochControl(wiring.Component):
    """Carry out flush requests (``docs/definitions/lookup-engine.md``, *Flush, epoch, scrub*).

    ``event`` is high in every cycle in which MSHRs and operations have to forget what they know; ``begin`` in the
    cycle at whose end the epoch moves. ``scrubbed`` says that the line of ``row`` has been scrubbed in this cycle.
    After reset: epoch 0, nothing to scrub. Everything but ``event`` and ``begin`` comes from registers.

    Parameters
    ----------
    epoch_bits : int
        Width of an epoch; 2^epoch_bits − 1 flushes can be open before one has to wait for the scrubber.
    rows : int
        Rows to scrub; a power of two.

    Raises
    ------
    ValueError
        ``epoch_bits`` below 1, ``rows`` no power of two.
    """

    request: Signal
    event: Signal
    begin: Signal
    epoch: Signal
    flush_wait: Signal
    active: Signal
    row: Signal
    scrubbed: Signal

    def __init__(self, *, epoch_bits: int, rows: int):
        if epoch_bits < 1:
            raise ValueError(f"epoch_bits must be at least 1, not {epoch_bits}")
        if rows < 1 or rows & (rows - 1):
            raise ValueError(f"rows must be a power of two, not {rows}")
        self.epoch_bits = epoch_bits
        self.rows = rows
        self.row_bits = max(1, ceil_log2(rows))
        super().__init__(
            {
                "request": In(1),
                "event": Out(1),
                "begin": Out(1),
                "epoch": Out(epoch_bits),
                "flush_wait": Out(1),
                "active": Out(1),
                "row": Out(self.row_bits),
                "scrubbed": In(1),
            }
        )
        self.debt = Signal(epoch_bits)  # flushes begun since the last finished scrub

    def elaborate(self, platform: object) -> Module:
        """Build the counters of epochs, open flushes and rows."""
        m = Module()
        debt = self.debt
        defer = Signal()
        last_row = Signal()
        m.d.comb += [
            self.event.eq(self.request | (self.flush_wait & (debt == 0))),
            self.begin.eq((self.flush_wait & (debt == 0)) | (self.request & ~self.flush_wait & ~debt.all())),
            defer.eq(self.request & ~self.flush_wait & debt.all()),
            last_row.eq(self.row == self.rows - 1),
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
