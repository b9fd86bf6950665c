"""Stage A of the lookup engine: from a destination to its cache key and set index."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value, unsigned
from amaranth.lib.data import StructLayout, View

from hopforge.hw.keys.maker import KeyMaker
from hopforge.hw.keys.node_reduction import NodeReduction
from hopforge.hw.keys.reduction_compare import ReductionCompare
from hopforge.hw.keys.reduction_parameters import ReductionParameters
from hopforge.hw.keys.reduction_select import ReductionSelect


class KeyStage(KeyMaker):
    """Key and index of lookups and invalidations, in 0, 1 or 2 register stages.

    An invalidation enters before a request (``req_ready`` is low meanwhile). At the exit, ``lookup`` or ``invalidate``
    says what is there; it leaves with ``accept_lookup`` or ``accept_invalidate``, and is held otherwise. ``fresh`` goes
    low with a ``flush`` after the cycle in which the key began to be computed. ``active`` must be a register
    (absent where the whole address is the only kind of key).

    Latency: ``stages`` cycles; throughput: one per cycle; ``req_ready`` does not depend on ``req_valid``. Reset: empty.

    Parameters
    ----------
    reduction : ReductionParameters
        Key functions.
    stages : {0, 1, 2}
        Registers; the first of two lies between compare and select.
    tag_bits : int
        Width of a request's tag.
    index_masks : tuple of int
        Masks of the payload whose parities are the index, bit 0 first (skewed: way after way); none: the index is 0.
    index_constant : int
        Index of payload 0.

    Raises
    ------
    ValueError
        ``stages`` out of range or ``tag_bits`` below 1.
    """

    accept_lookup: Signal
    accept_invalidate: Signal

    def __init__(
        self,
        *,
        reduction: ReductionParameters,
        stages: int,
        tag_bits: int,
        index_masks: tuple[int, ...],
        index_constant: int = 0,
    ):
        if stages not in {0, 1, 2}:
            raise ValueError(f"stages must be 0, 1 or 2, not {stages}")
        super().__init__(
            reduction=reduction, tag_bits=tag_bits, index_masks=index_masks, index_constant=index_constant,
            takes=("accept_lookup", "accept_invalidate"),
        )  # fmt: skip
        self.stages = stages
        layout = StructLayout(
            {
                "lookup": unsigned(1),
                "invalidate": unsigned(1),
                "fresh": unsigned(1),
                "tag": unsigned(tag_bits),
                "partial": reduction.partial_layout if reduction.reduces else unsigned(reduction.address_bits),
            }
        )
        self.first = View(layout, Signal(layout.size, name="first"))

    def elaborate(self, platform: object) -> Module:
        """Build the reduction with as many registers as wanted."""
        m = Module()
        entering_dst = Signal(self.reduction.address_bits)
        entering_lookup = Signal()
        entering_invalidate = Signal()
        m.d.comb += [
            entering_invalidate.eq(self.invalidate_pending),
            entering_lookup.eq(self.req_valid & ~self.invalidate_pending),
        ]
        with m.If(self.invalidate_pending):
            m.d.comb += entering_dst.eq(self.invalidate_dst)
        with m.Else():
            m.d.comb += entering_dst.eq(self.req_dst)

        if self.stages == 0:
            key, index = self._whole(m, entering_dst)
            m.d.comb += [
                self.lookup.eq(entering_lookup),
                self.invalidate.eq(entering_invalidate),
                self.fresh.eq(1),
                self.key.eq(key),
                self.index.eq(index),
                self.dst.eq(entering_dst),
                self.tag.eq(self.req_tag),
                self.req_ready.eq(self.accept_lookup & ~self.invalidate_pending),
                self.invalidate_taken.eq(self.invalidate_pending & self.accept_invalidate),
            ]
            return m

        leaving = Signal()
        last_ready = Signal()
        first_ready = Signal()
        m.d.comb += [
            leaving.eq((self.lookup & self.accept_lookup) | (self.invalidate & self.accept_invalidate)),
            last_ready.eq(leaving | ~(self.lookup | self.invalidate)),
            self.req_ready.eq(first_ready & ~self.invalidate_pending),
            self.invalidate_taken.eq(first_ready & self.invalidate_pending),
        ]
        if self.stages == 1:
            key, index = self._whole(m, entering_dst)
            m.d.comb += first_ready.eq(last_ready)
            self._last_register(
                m,
                last_ready,
                entering_lookup,
                entering_invalidate,
                Const(1, 1),
                [key, index, entering_dst, self.req_tag],
            )
            return m

        first = self.first
        partial, dst, key, payload = self._halves(m, entering_dst, first.partial)
        m.d.comb += first_ready.eq(last_ready | ~(first.lookup | first.invalidate))
        with m.If(first_ready):
            m.d.sync += [
                first.lookup.eq(entering_lookup),
                first.invalidate.eq(entering_invalidate),
                first.fresh.eq(~self.flush),
                first.tag.eq(self.req_tag),
                first.partial.eq(partial),
            ]
        with m.Elif(self.flush):
            m.d.sync += first.fresh.eq(0)
        index = self._index(m, payload)
        self._last_register(
            m,
            last_ready,
            first.lookup,
            first.invalidate,
            first.fresh,
            [key, index, dst, first.tag],
        )
        return m

    def _halves(self, m: Module, dst: Value, first: Any) -> tuple[Any, Value, Value, Value]:
        """Next value of the register between the stages; from that register `first`: destination, key, payload."""
        if not self.reduction.reduces:
            return dst, first, self._address_key(first), first
        m.submodules.compare = compare = ReductionCompare(self.reduction)
        m.submodules.select = select = ReductionSelect(self.reduction)
        m.d.comb += [compare.dst.eq(dst), compare.active.eq(self.active), select.partial.eq(first)]
        return compare.partial, first.dst, select.key, select.payload

    def _whole(self, m: Module, dst: Value) -> tuple[Value, Value]:
        """Key and index without a register between."""
        if not self.reduction.reduces:
            return self._address_key(dst), self._index(m, dst)
        m.submodules.reduction = reduction = NodeReduction(self.reduction)
        m.d.comb += [reduction.dst.eq(dst), reduction.active.eq(self.active)]
        return reduction.key, self._index(m, reduction.payload)

    def _last_register(
        self, m: Module, ready: Value, lookup: Value, invalidate: Value, fresh: Value, fields: list[Value]
    ) -> None:
        """Register before the exit; `fields` are key, index, dst, tag."""
        with m.If(ready):
            m.d.sync += [
                self.lookup.eq(lookup),
                self.invalidate.eq(invalidate),
                self.fresh.eq(fresh & ~self.flush),
                Cat(self.key, self.index, self.dst, self.tag).eq(Cat(fields)),
            ]
        with m.Elif(self.flush):
            m.d.sync += self.fresh.eq(0)
