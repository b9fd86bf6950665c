"""The walk through the sets of a rule cache that removes lines after a change of a rule wider than a set's lines."""

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import Component, In, Out

from hopforge.hw.rules.cube_lines import overlaps
from hopforge.model.lookup.rules.rule_cache_params import RuleCacheParams

__all__ = ["CubeSweep"]


class CubeSweep(Component):
    """Which cube leaves the sets, and how far the walk is.

    ``start`` (with ``start_value``, ``start_mask``) begins a walk at the end of the cycle; none is on then. While
    ``busy``, a step may be chosen in a cycle if ``ready``: set ``next_index`` is read, and ``step`` is high in the next
    cycle, in which the lines of the set that overlap ``value``, ``mask`` must be removed. ``turn``: a step goes before
    lookups; every second free cycle does.

    ``pending``: of what is in C (``op_value``, a single address or a cube that is not wider than a line may be, of set
    ``op_index``) the walk has yet to remove the lines: they must not hit, and none may be written.

    After reset a walk begins that removes all: memories may wake up with anything.

    Parameters
    ----------
    params : RuleCacheParams
        Of the cache, with sets.
    """

    start: Signal
    start_value: Signal
    start_mask: Signal
    busy: Signal
    ready: Signal
    turn: Signal
    next_index: Signal
    step: Signal
    value: Signal
    mask: Signal
    op_value: Signal
    op_index: Signal
    pending: Signal

    def __init__(self, params: RuleCacheParams) -> None:
        self.params = params
        width, self.row_bits = params.address_bits, (params.sets - 1).bit_length()
        super().__init__(
            {
                "start": In(1),
                "start_value": In(width),
                "start_mask": In(width),
                "busy": Out(1, init=1),
                "ready": Out(1),
                "turn": Out(1),
                "next_index": Out(self.row_bits),
                "step": In(1),
                "value": Out(width),
                "mask": Out(width),
                "op_value": In(width),
                "op_index": In(self.row_bits),
                "pending": Out(1),
            }
        )
        self.place = Signal(self.row_bits)

    def elaborate(self, platform: object) -> Module:
        """Build the counter and the comparator."""
        m = Module()
        last = Signal()
        m.d.comb += [
            last.eq(self.step & self.place.all()),
            self.ready.eq(self.busy & ~last),
            self.turn.eq(self.busy & ~self.step),
            self.next_index.eq(self.place + self.step),
            self.pending.eq(
                self.busy & overlaps(self.op_value, self.mask, self.value, self.mask) & (self.op_index >= self.place)
            ),
        ]
        with m.If(self.step):
            m.d.sync += self.place.eq(self.place + 1)
        with m.If(last):
            m.d.sync += self.busy.eq(0)
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), self.value.eq(self.start_value), self.mask.eq(self.start_mask)]
        return m
