"""Stage A and the queue behind it in a deep engine: from a destination to its cache key and set index."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib.data import StructLayout, View

from hopforge.hw.keys.maker import KeyMaker
from hopforge.hw.keys.reduction_compare import ReductionCompare
from hopforge.hw.keys.reduction_parameters import ReductionParameters
from hopforge.hw.keys.reduction_select import ReductionSelect

STEPS = (2, 3, 4, 5)
"""Possible numbers of steps."""

_COPIES = 6
"""Registers that say that the second place is taken: each stops a part of the pipeline."""

_ENTRANCE, _COMPARED, _COMPARED_OWN, _DECIDED, _SELECTED, _QUEUED = range(_COPIES)


class KeyPipeline(KeyMaker):
    """Key and index of lookups and invalidations in 2 to 5 steps; the last one ends in a queue of two places.

    The registers between the steps move together, in cycles in which the second place of the queue is empty. An
    invalidation enters before a request. At the head of the queue, ``lookup`` or ``invalidate`` says what is there;
    it leaves with ``taken``. After a ``flush`` nothing is ``fresh`` but what enters later. ``active`` must be a
    register (absent where the whole address is the only kind of key).

    Latency: ``steps`` cycles; throughput: one per cycle; ``req_ready`` depends on registers alone. Reset: empty.

    Parameters
    ----------
    reduction : ReductionParameters
        Key functions.
    steps : int
        One of `STEPS`. 5: entrance, compare, decide, select, hash. 4: without entrance. 3: select and hash joined.
        2: compare and decide joined as well.
    tag_bits : int
        Width of a request's tag.
    index_masks : tuple of int
        Masks of the payload whose parities are the index, bit 0 first (skewed: way after way); none: the index is 0.
    index_constant : int
        Index of payload 0.

    Raises
    ------
    ValueError
        ``steps`` out of range or ``tag_bits`` below 1.
    """

    taken: Signal

    def __init__(
        self,
        *,
        reduction: ReductionParameters,
        steps: int,
        tag_bits: int,
        index_masks: tuple[int, ...],
        index_constant: int = 0,
    ):
        if steps not in STEPS:
            raise ValueError(f"steps must be 2 to 5, not {steps}")
        super().__init__(
            reduction=reduction, tag_bits=tag_bits, index_masks=index_masks, index_constant=index_constant,
            takes=("taken",),
        )  # fmt: skip
        self.steps = steps
        self.full = [Signal(name=f"full_copy{number}") for number in range(_COPIES)]  # second place of the queue
        self.go = Signal(_COPIES)
        names = {2: ("decided",), 3: ("compared", "decided")}.get(steps, ("compared", "decided", "selected"))
        if steps == 5:
            names = ("entered", *names)
        # Registers of A by name, first one first: what an operation is, and its destination.
        self.kinds = {name: View(self._kind_layout, Signal(self._kind_layout.size, name=name)) for name in names}
        A = reduction.address_bits
        self.destinations = {name: Signal(A, name=f"{name}_dst", reset_less=True) for name in names}
        self.selected_key = Signal(reduction.key_bits, reset_less=True)
        layout = StructLayout(
            {
                "key": unsigned(reduction.key_bits),
                "index": unsigned(self.index_bits),
                "dst": unsigned(reduction.address_bits),
                "tag": unsigned(tag_bits),
            }
        )
        self.second_kind = View(self._kind_layout, Signal(self._kind_layout.size, name="second_kind"))
        self.places = [View(layout, Signal(layout.size, name=f"place{i}", reset_less=True)) for i in range(2)]
        self.reading = Signal()  # the place of the head
        self.writing = Signal()  # the place for what comes next

    @property
    def _kind_layout(self) -> StructLayout:
        return StructLayout(
            {
                "lookup": unsigned(1),
                "invalidate": unsigned(1),
                "fresh": unsigned(1),
                "tag": unsigned(self.tag_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the steps, the registers between them and the queue."""
        m = Module()
        m.d.comb += [
            self.go.eq(~Cat(self.full)),
            self.req_ready.eq(self.go[_ENTRANCE] & ~self.invalidate_pending),
            self.invalidate_taken.eq(self.go[_ENTRANCE] & self.invalidate_pending),
        ]
        entering = View(self._kind_layout, Signal(self._kind_layout.size, name="entering"))
        m.d.comb += [
            entering.invalidate.eq(self.invalidate_pending),
            entering.lookup.eq(self.req_valid & ~self.invalidate_pending),
            entering.fresh.eq(1),
            entering.tag.eq(self.req_tag),
        ]
        dst: Value = Mux(self.invalidate_pending, self.invalidate_dst, self.req_dst)
        kind = entering
        if self.steps >= 5:
            kind, dst = self._move(m, kind, "entered", _ENTRANCE), self._move_dst(m, dst, "entered", _ENTRANCE)
        kind, key, payload, dst = self._key(m, kind, dst)
        if self.steps >= 4:
            kind, dst = self._move(m, kind, "selected", _SELECTED), self._move_dst(m, dst, "selected", _SELECTED)
            key = self._hold(m, key, self.selected_key, _SELECTED)
            payload = key[: self.reduction.address_bits]
        self._queue(m, kind, key, self._index(m, payload), dst)
        return m

    def _hold(self, m: Module, value: Value, held: Signal, part: int) -> Signal:
        """Let a register move with the others."""
        with m.If(self.go[part]):
            m.d.sync += held.eq(value)
        return held

    def _move(self, m: Module, kind: View, name: str, part: int) -> View:
        """Register of what an operation is."""
        held = self.kinds[name]
        with m.If(self.go[part]):
            m.d.sync += [held.eq(kind), held.fresh.eq(kind.fresh & ~self.flush)]
        with m.Elif(self.flush):
            m.d.sync += held.fresh.eq(0)
        return held

    def _move_dst(self, m: Module, dst: Value, name: str, part: int) -> Signal:
        """Register of its destination."""
        return self._hold(m, dst, self.destinations[name], part)

    def _key(self, m: Module, kind: View, dst: Value) -> tuple[View, Value, Value, Value]:
        """Compare, decide, select: the operation, its key, payload and destination behind them."""
        p = self.reduction
        compared = self.steps >= 3
        if compared:
            kind = self._move(m, kind, "compared", _COMPARED)
        decided = self._move(m, kind, "decided", _DECIDED)
        if not p.reduces:
            if compared:
                dst = self._move_dst(m, dst, "compared", _COMPARED)
            dst = self._move_dst(m, dst, "decided", _DECIDED)
            return decided, self._address_key(dst), dst, dst
        m.submodules.compare = compare = ReductionCompare(p, registered=compared)
        m.submodules.select = select = ReductionSelect(p)
        partial = View(p.partial_layout, Signal(p.partial_layout.size, name="partial", reset_less=True))
        m.d.comb += [compare.dst.eq(dst), compare.active.eq(self.active), select.partial.eq(partial)]
        if compared:
            m.d.comb += compare.go.eq(self.go[_COMPARED : _COMPARED_OWN + 1])
        with m.If(self.go[_DECIDED]):
            m.d.sync += partial.eq(compare.partial)
        return decided, select.key, select.payload, partial.dst

    def _queue(self, m: Module, kind: View, key: Value, index: Value, dst: Value) -> None:
        """Two places: the head, and one for what arrives while the head stays."""
        second_kind = self.second_kind
        go = self.go[_QUEUED]
        head_kind = Cat(self.lookup, self.invalidate)
        head_moves = Signal()
        fills = Signal()
        arrives = Signal()
        m.d.comb += [
            arrives.eq(kind.lookup | kind.invalidate),
            head_moves.eq(self.taken | ~head_kind.any()),
            fills.eq(~head_moves & (~go | arrives)),
        ]
        m.d.sync += [full.eq(fills) for full in self.full]
        with m.If(go):
            m.d.sync += [second_kind.lookup.eq(kind.lookup), second_kind.invalidate.eq(kind.invalidate)]
        next_kind = Mux(go, Cat(kind.lookup, kind.invalidate), Cat(second_kind.lookup, second_kind.invalidate))
        with m.If(head_moves):
            m.d.sync += head_kind.eq(next_kind)
        next_fresh = Mux(go, kind.fresh, second_kind.fresh)
        m.d.sync += [
            second_kind.fresh.eq(next_fresh & ~self.flush),
            self.fresh.eq(Mux(head_moves, next_fresh, self.fresh) & ~self.flush),
        ]

        # What an operation carries stays in its place; B reads where `reading` points.
        m.d.sync += [self.writing.eq(self.writing ^ (go & arrives)), self.reading.eq(self.reading ^ self.taken)]
        arriving = Cat(key, index, dst, kind.tag)
        for number, place in enumerate(self.places):
            with m.If(go & (self.writing == number)):
                m.d.sync += place.eq(arriving)
        m.d.comb += Cat(self.key, self.index, self.dst, self.tag).eq(Mux(self.reading, *reversed(self.places)))
