"""Storage of the flits of a port."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Instance, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.parts.clock_gate import ClockGate
from hopforge.hw.parts.round_robin import select
from hopforge.hw.parts.shared import shared
from hopforge.hw.parts.sram import Sram

__all__ = ["FLIT_BUFFERS", "FlitBuffer"]

FLIT_BUFFERS = ("memory", "latches", "flip_flops")
"""Names that a configuration can give."""


class FlitBuffer(wiring.Component):
    """Words of several queues: data, read one word at a time, and notes, read in all queues at the same time.

    A word is written at the end of a cycle with ``arrives[q]``, to place ``write_at[q]`` of queue q. ``data`` follows
    ``read_at`` (place + depth·queue) in the same cycle, ``notes[q]`` follows ``note_at[q]``. One write, one read of
    data and one of every queue's notes per cycle. Contents survive a reset.

    ``memory`` is an array that a flow can make a macro of, or flip-flops. ``flip_flops``: a register for each word,
    whatever the flow; its clock can be gated. ``latches``: the word on its way is kept in
    flip-flops for a cycle in which the latches of its place are open while the clock is high; what can be read is the
    same in every cycle.

    Parameters
    ----------
    queues, depth : int
        Queues, places in each.
    data_bits, note_bits : int
        Bits of a word.
    kind : str
        ``memory``, ``latches`` or ``flip_flops``.
    """

    arrives: Signal
    write_at: Sequence[Signal]
    w_data: Signal
    w_note: Signal
    read_at: Signal
    note_at: Sequence[Signal]
    data: Signal
    notes: Sequence[Signal]

    def __init__(self, *, queues: int, depth: int, data_bits: int, note_bits: int, kind: str = "memory"):
        if kind not in FLIT_BUFFERS:
            raise ValueError(f"flit_buffers must be one of {', '.join(FLIT_BUFFERS)}, not {kind!r}")
        self.queues = queues
        self.depth = depth
        self.data_bits = data_bits
        self.note_bits = note_bits
        self.kind = kind
        place_bits = ceil_log2(depth)
        super().__init__(
            {
                "arrives": In(queues),
                "write_at": In(place_bits).array(queues),
                "w_data": In(data_bits),
                "w_note": In(note_bits),
                "read_at": In(ceil_log2(queues * depth)),
                "note_at": In(place_bits).array(queues),
                "data": Out(data_bits),
                "notes": Out(note_bits).array(queues),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the kind of storage."""
        m = Module()
        if self.kind == "memory":
            self._memories(m)
        elif self.kind == "latches":
            self._read(m, self._latches(m, platform))
        else:
            self._read(m, self._flip_flops(m))
        return m

    def _memories(self, m: Module) -> None:
        words = self.queues * self.depth
        m.submodules.data = data = Sram(depth=words, width_bits=self.data_bits, asynchronous=True)
        m.d.comb += [data.w_en.eq(self.arrives.any()), data.w_data.eq(self.w_data), self.data.eq(data.r_data)]
        if words > 1:
            places = [self.write_at[q] + q * self.depth for q in range(self.queues)]
            for q, place in enumerate(places):
                with m.If(self.arrives[q]):
                    m.d.comb += data.w_addr.eq(place)
            m.d.comb += data.r_addr.eq(self.read_at)
        for q in range(self.queues):
            m.submodules[f"notes{q}"] = notes = Sram(depth=self.depth, width_bits=self.note_bits, asynchronous=True)
            m.d.comb += [
                notes.w_en.eq(self.arrives[q]),
                notes.w_data.eq(self.w_note),
                self.notes[q].eq(notes.r_data),
            ]
            if self.depth > 1:
                m.d.comb += [notes.w_addr.eq(self.write_at[q]), notes.r_addr.eq(self.note_at[q])]

    def _flip_flops(self, m: Module) -> list[list[Value]]:
        """Return the words of each queue."""
        words: list[list[Value]] = []
        for q in range(self.queues):
            words.append([])
            for place in range(self.depth):
                word = Signal(self.data_bits + self.note_bits, name=f"word{q}_{place}", reset_less=True)
                with m.If(self.arrives[q] & _is(self.write_at[q], place)):
                    m.d.sync += word.eq(Cat(self.w_data, self.w_note))
                words[q].append(word)
        return words

    def _latches(self, m: Module, platform: object) -> list[list[Value]]:
        """Return the words of each queue."""
        width = self.data_bits + self.note_bits
        arriving = Signal(width, reset_less=True)
        m.d.sync += arriving.eq(Cat(self.w_data, self.w_note))
        words: list[list[Value]] = []
        for q in range(self.queues):
            words.append([])
            for place in range(self.depth):
                name = f"{q}_{place}"
                gate = ClockGate()
                m.submodules[f"gate{name}"] = shared(gate, platform)
                word = Signal(width, name=f"word{name}")
                m.submodules[f"word{name}"] = Instance(
                    "$dlatch", p_WIDTH=width, p_EN_POLARITY=1, i_EN=gate.gated, i_D=arriving, o_Q=word
                )
                m.d.comb += gate.enable.eq(self.arrives[q] & _is(self.write_at[q], place))
                words[q].append(word)
        return words

    def _read(self, m: Module, words: list[list[Value]]) -> None:
        """Connect what is read of the words."""
        every = [word for of_queue in words for word in of_queue]
        lines = Cat(_is(self.read_at, n) for n in range(len(every)))
        m.d.comb += self.data.eq(select(lines, [word[: self.data_bits] for word in every]))
        for q, of_queue in enumerate(words):
            lines = Cat(_is(self.note_at[q], place) for place in range(self.depth))
            m.d.comb += self.notes[q].eq(select(lines, [word[self.data_bits :] for word in of_queue]))


def _is(address: Value, number: int) -> Value:
    """Return whether an address is a number; one of no bits is 0."""
    return address == number if len(address) else Const(1, 1)
