"""Proofs that the check bits of lines and flits find every changed bit, and correct it with SECDED.

A word with check bits is stored, some of its bits change, and it is read (docs/definitions/protection.md). What is read
is compared with what was stored, for all words and all changes; which code it is does not matter.

Solvers know nothing of linear codes. So what is XOR alone is proved apart: the syndrome of a changed word is that of
the changes, whatever was stored (`AffineProof`). Proofs of words, lines and flits with SECDED take this for granted.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from hopforge.gen.formal.reduction import AffineProof, Claim, Proof
from hopforge.hw.cache.arrays import RESERVED_BITS
from hopforge.hw.cache.protected_line import LineCode
from hopforge.hw.parts.code_word import CodeWordCheck, coded
from hopforge.hw.ports.flit_buffer import FlitBuffer
from hopforge.hw.ports.protected_buffer import ProtectedBuffer
from hopforge.model.lookup.params import LookupParams
from hopforge.model.numbers.code_word import PROTECTIONS, Protection, check_bits, word_parts

__all__ = ["protection_proofs"]

_USED = (5, 22, 53, 64)  # a note, the rest of a flit of 150 bits, a line of the default engine, most of a flit's word
_NOTE_BITS = 5
_FLIT_BITS = 150


class _SyndromeClaim(Claim):
    """The syndrome of a stored word with changes, and that of the changes alone; with a fault a bit is not stored."""

    def __init__(self, data_bits: int, protection: Protection, fault: bool) -> None:
        super().__init__()
        self.protection = protection
        self.fault = fault
        self.read = CodeWordCheck(data_bits=data_bits, protection=protection)
        self.twin = CodeWordCheck(data_bits=data_bits, protection=protection)
        self.data = Signal(data_bits + self.read.word_bits)
        self.difference = Signal.like(self.read.syndrome)
        self.inputs = [self.data]
        self.outputs = [self.difference]

    def elaborate(self, platform: object) -> Module:
        """Connect both."""
        m = Module()
        m.submodules.read, m.submodules.twin = self.read, self.twin
        data, changes = self.data[: self.read.data_bits], self.data[self.read.data_bits :]
        lost = Mux(self.fault, data[0], Const(0, 1))
        m.d.comb += [
            self.read.word.eq(coded(data, self.protection) ^ changes ^ lost),
            self.twin.word.eq(changes),
            self.difference.eq(self.read.syndrome ^ self.twin.syndrome),
        ]
        return m


class _ChangedClaim(Claim):
    """What was stored, with one or two changed bits: ``first``, and with ``both`` also ``second``.

    ``any_change`` 0: nothing has changed.
    """

    def __init__(self, stored_bits: int, *, twice: bool) -> None:
        super().__init__()
        self.stored_bits = stored_bits
        self.changes = Signal(stored_bits)
        self.any_change = Signal()
        self.first = Signal(range(stored_bits))
        self.second = Signal(range(stored_bits))
        self.both = Signal() if twice else Const(0, 1)
        self.inputs = [self.any_change, self.first, *([self.second, self.both] if twice else [])]

    def change(self, m: Module) -> Value:
        """Make the changes, and return what is assumed of them."""
        one, other = (Signal(self.stored_bits, name=name) for name in ("one", "other"))
        m.d.comb += [
            one.eq(self.any_change << self.first),
            other.eq(self.both << self.second),
            self.changes.eq(one ^ other),
        ]
        fits = (self.first < self.stored_bits) & (self.second < self.stored_bits)
        return fits & (self.first != self.second) & (self.any_change | ~self.both)


def _linear(m: Module, name: str, check: CodeWordCheck, changes: Value) -> Value:
    """Return the claim of `_SyndromeClaim` for a word that is read with `changes`; parity does without it."""
    if check.protection == "parity":
        return Const(1, 1)
    m.submodules[f"twin_{name}"] = twin = CodeWordCheck(data_bits=check.data_bits, protection=check.protection)
    m.d.comb += twin.word.eq(changes)
    return check.syndrome == twin.syndrome


class _WordClaim(_ChangedClaim):
    """A code word: parity finds one changed bit, SECDED corrects it, and finds two."""

    def __init__(self, data_bits: int, protection: Protection) -> None:
        self.dut = CodeWordCheck(data_bits=data_bits, protection=protection)
        super().__init__(self.dut.word_bits, twice=True)
        self.data = Signal(data_bits)
        self.inputs.append(self.data)

    def elaborate(self, platform: object) -> Module:
        """Store, change, read, compare."""
        m = Module()
        m.submodules.dut = dut = self.dut
        word = Signal(dut.word_bits)
        m.d.comb += [word.eq(coded(self.data, dut.protection)), dut.word.eq(word ^ self.changes)]
        linear = _linear(m, "word", dut, self.changes)
        m.d.comb += self.assumed.eq(self.change(m) & linear)
        once = self.any_change & ~self.both
        same = (dut.data == self.data) & (dut.word_repaired == word)
        if dut.protection == "parity":
            m.d.comb += self.equal.eq((dut.wrong == once) & ~dut.repaired & (self.any_change | same))
        else:
            m.d.comb += self.equal.eq((dut.wrong == self.both) & (dut.repaired == once) & (self.both | same))
        return m


class _LineClaim(_ChangedClaim):
    """A line of a cache: what is never read may change, one bit of the rest is found or corrected."""

    def __init__(self, code: LineCode) -> None:
        super().__init__(code.line_bits + code.check_bits, twice=False)
        self.code = code
        self.line = Signal(code.line_bits)
        self.inputs.append(self.line)

    def elaborate(self, platform: object) -> Module:
        """Store, change, read, compare."""
        m = Module()
        code = self.code
        covered = sum((1 << stop) - (1 << start) for start, stop in code.parts)
        stored, line = Signal(self.stored_bits), Signal(code.line_bits)
        m.d.comb += [stored.eq(code.stored(self.line)), line.eq(self.line & covered)]
        read = code.read(m, None, 0, stored ^ self.changes)
        checks = self.changes[code.line_bits :]
        changed = Cat(*(self.changes[start:stop] for start, stop in code.parts), checks)
        linear = _linear(m, "line", m.submodules.check0, changed)  # type: ignore[arg-type]
        m.d.comb += self.assumed.eq(self.change(m) & linear)
        struck = changed.any()
        if code.protection == "parity":
            right = Mux(struck, ~read.line[-1], read.line == line)
            m.d.comb += self.equal.eq((read.wrong == struck) & ~read.repaired & right)
        else:
            whole = Cat(line, stored[code.line_bits :])
            right = (read.line == line) & (read.word_repaired == whole)
            m.d.comb += self.equal.eq(~read.wrong & (read.repaired == struck) & right)
        return m


class _ChangedFlit(FlitBuffer):
    """Storage that holds what is written now, with changes: data, then the note."""

    def __init__(self, **parameters: Any):
        super().__init__(**parameters)
        self.changes = Signal(self.data_bits + self.note_bits)

    def elaborate(self, platform: object) -> Module:
        """Show what is written."""
        m = Module()
        m.d.comb += [
            self.data.eq(self.w_data ^ self.changes[: self.data_bits]),
            self.notes[0].eq(self.w_note ^ self.changes[self.data_bits :]),
        ]
        return m


class _OpenBuffer(ProtectedBuffer):
    """`ProtectedBuffer` of one flit that says of its words what `_SyndromeClaim` does."""

    def __init__(self, protection: Protection):
        super().__init__(
            queues=1, depth=1, data_bits=_FLIT_BITS, note_bits=_NOTE_BITS, kind="memory", protection=protection,
            flit_buffer=_ChangedFlit,
        )  # fmt: skip
        self.changes: Signal = self.stored.changes  # type: ignore[attr-defined]
        self.linear = Signal()

    def elaborate(self, platform: object) -> Module:
        """Build the buffer, and beside it what changes do to its words."""
        m = super().elaborate(None)
        rest: Value = self.changes
        linear = []
        for name in (*(f"data{number}" for number in range(len(word_parts(_FLIT_BITS)))), "note0_0"):
            check: Any = getattr(m.submodules, f"check_{name}")
            linear.append(_linear(m, name, check, rest[: check.word_bits]))
            rest = rest[check.word_bits :]
        m.d.comb += self.linear.eq(Cat(linear).all())
        return m


class _FlitClaim(_ChangedClaim):
    """A flit in a buffer: one changed bit anywhere is found or corrected, and told of where it is."""

    def __init__(self, protection: Protection) -> None:
        self.dut = _OpenBuffer(protection)
        super().__init__(len(self.dut.changes), twice=False)
        self.data, self.note = Signal(_FLIT_BITS), Signal(_NOTE_BITS)
        self.inputs += [self.data, self.note]

    def elaborate(self, platform: object) -> Module:
        """Write, change, read, compare."""
        m = Module()
        m.submodules.dut = dut = self.dut
        m.d.comb += [
            dut.w_data.eq(self.data),
            dut.w_note.eq(self.note),
            dut.changes.eq(self.changes),
            self.assumed.eq(self.change(m) & dut.linear),
        ]
        in_data = self.changes[: self.dut.stored.data_bits].any()
        in_note = self.changes[self.dut.stored.data_bits :].any()
        parity = dut.protection == "parity"
        m.d.comb += self.equal.eq(
            (Cat(dut.data_wrong, dut.note_wrong) == (Cat(in_data, in_note) if parity else 0))
            & (Cat(dut.data_repaired, dut.note_repaired) == (0 if parity else Cat(in_data, in_note)))
            & ((dut.data == self.data) | (in_data if parity else 0))
            & ((dut.notes[0] == self.note) | (in_note if parity else 0))
        )
        return m


def _line_claim(protection: Protection) -> Claim:
    """Return the claim about lines of the default engine."""
    p = LookupParams(protection=protection)
    code = LineCode(
        key_bits=p.key_bits, tag_bits=p.tag_bits, output_bits=p.output_bits, epoch_bits=p.epoch_bits,
        line_bits=p.tag_bits + p.output_bits + RESERVED_BITS, protection=protection,
    )  # fmt: skip
    return _LineClaim(code)


def _proof(name: str, build: Callable[[], Claim], check: str, data_bits: int, protection: Protection) -> Proof:
    """Return the proof whose mutant finds or corrects nothing in the word `check`."""
    wire = ("wrong", 1) if protection == "parity" else ("changed", data_bits + check_bits(data_bits, protection))
    return Proof(name=name, build=build, mutant=(f"{check}.{wire[0]}", f"{wire[1]}'d0"))


def protection_proofs(*, wide: bool = False) -> Iterator[Proof | AffineProof]:
    """Proofs for code words of the widths that are in use, lines of the default engine, and flits of 150 bits.

    Parameters
    ----------
    wide : bool
        Code words of 1 to 80 bits.
    """
    widths = range(1, 81) if wide else _USED
    for protection in PROTECTIONS:
        found = "is found" if protection == "parity" else "is corrected"
        for width in widths if protection == "secded" else ():
            name = f"{protection}, {width} bits: the syndrome is that of what has changed"
            yield AffineProof(name=name, build=partial(_SyndromeClaim, width, protection))
        for width in widths:
            name = f"{protection}, {width} bits: a changed bit {found}" + (
                "" if protection == "parity" else ", two are found"
            )
            yield _proof(name, partial(_WordClaim, width, protection), "dut", width, protection)
        bits = LookupParams(protection=protection).line_data_bits
        name = f"{protection}: a changed bit of a line {found}"
        yield _proof(name, partial(_line_claim, protection), "check0", bits, protection)
        name = f"{protection}: a changed bit of a flit {found}"
        first = word_parts(_FLIT_BITS)[0]
        yield _proof(name, partial(_FlitClaim, protection), "dut.check_data0", first, protection)
