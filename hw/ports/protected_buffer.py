"""Flit buffer with check bits."""

from collections.abc import Callable, Sequence

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.parts.code_word import CodeWordCheck, coded
from hopforge.hw.parts.shared import shared
from hopforge.hw.ports.flit_buffer import FlitBuffer
from hopforge.model.numbers.code_word import Protection, word_parts

__all__ = ["FLIT_EVENTS", "ProtectedBuffer"]

FLIT_EVENTS = ("flit_wrong", "flit_repaired")
"""What an input unit says of the flits that it has read in the cycle before."""


class ProtectedBuffer(wiring.Component):
    """`FlitBuffer` whose words have check bits (``docs/definitions/protection.md``).

    Data and notes are cut into code words of at most 64 data bits. ``data`` and ``notes`` are corrected if that can be
    done. ``data_wrong``, ``data_repaired`` and, for each queue, ``note_wrong`` and ``note_repaired`` say what has been
    found in what is read now. Latency, throughput and the other ports are those of `FlitBuffer`.

    Parameters
    ----------
    queues, depth, data_bits, note_bits, kind
        As for `FlitBuffer`.
    protection : {"parity", "secded"}
        Code.
    flit_buffer : callable
        Makes the buffer that stores the code words.
    """

    arrives: Signal
    write_at: Sequence[Signal]
    w_data: Signal
    w_note: Signal
    read_at: Signal
    note_at: Sequence[Signal]
    data: Signal
    notes: Sequence[Signal]
    data_wrong: Signal
    data_repaired: Signal
    note_wrong: Signal
    note_repaired: Signal

    def __init__(
        self, *, queues: int, depth: int, data_bits: int, note_bits: int, kind: str, protection: Protection,
        flit_buffer: Callable[..., FlitBuffer] = FlitBuffer,
    ):  # fmt: skip
        self.queues = queues
        self.depth = depth
        self.data_bits = data_bits
        self.note_bits = note_bits
        self.kind = kind
        self.protection = protection
        place_bits = ceil_log2(depth)
        self.stored = flit_buffer(
            queues=queues, depth=depth, data_bits=len(_coded(Signal(data_bits), protection)),
            note_bits=len(_coded(Signal(note_bits), protection)), kind=kind,
        )  # fmt: skip
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
                "data_wrong": Out(1),
                "data_repaired": Out(1),
                "note_wrong": Out(queues),
                "note_repaired": Out(queues),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Code what is written, check what is read."""
        m = Module()
        m.submodules.stored = stored = self.stored
        m.d.comb += [
            stored.arrives.eq(self.arrives),
            stored.w_data.eq(_coded(self.w_data, self.protection)),
            stored.w_note.eq(_coded(self.w_note, self.protection)),
            stored.read_at.eq(self.read_at),
        ]
        data, wrong, repaired = self._checked(m, platform, "data", stored.data, self.data_bits)
        m.d.comb += [self.data.eq(data), self.data_wrong.eq(wrong), self.data_repaired.eq(repaired)]
        for q in range(self.queues):
            m.d.comb += [stored.write_at[q].eq(self.write_at[q]), stored.note_at[q].eq(self.note_at[q])]
            note, wrong, repaired = self._checked(m, platform, f"note{q}_", stored.notes[q], self.note_bits)
            m.d.comb += [
                self.notes[q].eq(note),
                self.note_wrong[q].eq(wrong),
                self.note_repaired[q].eq(repaired),
            ]
        return m

    def _checked(
        self, m: Module, platform: object, name: str, word: Value, data_bits: int
    ) -> tuple[Value, Value, Value]:  # fmt: skip
        """Return (data, wrong, repaired) of what is stored for `data_bits` bits."""
        checks = []
        for number, width in enumerate(word_parts(data_bits)):
            check = CodeWordCheck(data_bits=width, protection=self.protection)
            m.submodules[f"check_{name}{number}"] = shared(check, platform, width, self.protection)
            m.d.comb += check.word.eq(word[: check.word_bits])
            word = word[check.word_bits :]
            checks.append(check)
        wrong, repaired = Cat(check.wrong for check in checks), Cat(check.repaired for check in checks)
        return Cat(check.data for check in checks), wrong.any(), repaired.any()


def _coded(data: Value, protection: Protection) -> Value:
    """Return the code words of `data`, one after another."""
    words = []
    for width in word_parts(len(data)):
        words.append(coded(data[:width], protection))
        data = data[width:]
    return Cat(words)

