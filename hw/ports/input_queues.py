"""Queues of an input unit, and what leaves them."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.data import View
from amaranth.utils import bits_for, ceil_log2

from hopforge.hw.parts.round_robin import select
from hopforge.hw.parts.shared import shared
from hopforge.hw.ports.flit_buffer import FlitBuffer
from hopforge.hw.ports.input_ports import HEAD, InputPorts
from hopforge.hw.ports.protected_buffer import ProtectedBuffer

__all__ = ["InputQueues", "number_of"]


class InputQueues(InputPorts):
    """Flits of every VC in their order, the first of each in registers."""

    def _buffers(self, m: Module, platform: object, pop: Value) -> None:
        """Queues: the data of all of them in one array; what decisions need of the first flit in registers."""
        p = self.params
        depth = p.buffer_flits
        note_bits = self._front_layout.size
        buffer = self._buffer(note_bits)
        m.submodules.buffer = shared(
            buffer, platform, p.vcs, depth, p.width_bits, note_bits, p.flit_buffers, *p.protected
        )  # fmt: skip
        written = View(self._front_layout, Signal(self._front_layout.size, name="written"))
        head = self.in_flit.data
        dst = head[: p.address_bits]
        m.d.comb += written.kind.eq(self.in_flit.kind)
        if p.switching == "vct":
            m.d.comb += written.length.eq(head[2 * p.address_bits + p.tag_bits :][: p.length_bits])
        if p.rc == "lookup":
            m.d.comb += written.dst.eq(dst)
        if self.spreads:
            m.d.comb += written.src.eq(head[p.address_bits : 2 * p.address_bits])
            if p.entropy_bits:
                m.d.comb += written.entropy.eq(head[p.entropy_at : p.entropy_at + p.entropy_bits])
        if not self.looks_up:
            m.d.comb += written.route.eq(self.route)
        m.d.comb += [buffer.w_data.eq(head), buffer.w_note.eq(written), self.word.data.eq(buffer.data)]
        self.read_data = buffer.data

        # Of the flit on its way to the crossbar: without a reset, what is read there is not sent.
        read_at = Signal(range(max(2, p.vcs * depth)), reset_less=True)
        kind = self.word_kind
        m.d.comb += buffer.read_at.eq(read_at)
        first_at: list[Value] = []
        note_read: list[Value] = []
        for v in range(p.vcs):
            arrives = buffer.arrives[v]
            m.d.comb += arrives.eq(self.in_valid & (self.in_flit.vc == v if p.vcs > 1 else 1))
            several = self._occupancy(m, v, arrives, pop[v])
            write, read = self.write[v], self.read[v]
            m.d.comb += [buffer.write_at[v].eq(write), buffer.note_at[v].eq(_after(read, depth))]
            with m.If(arrives):
                m.d.sync += write.eq(_after(write, depth))
            with m.If(pop[v]):
                m.d.sync += read.eq(_after(read, depth))
            note_read.append(pop[v] & several)
            follows = View(self._front_layout, Mux(several, buffer.notes[v], written))
            with m.If(pop[v] | ~self.nonempty[v]):
                if self.masks:
                    m.d.sync += self.front[v].kind.eq(follows.kind)
                else:
                    m.d.sync += self.front[v].eq(follows)
            if self.masks:  # the route stays until the next head
                comes = arrives & written.kind[HEAD]
                stored = View(self._front_layout, buffer.notes[v])
                with m.If(Mux(pop[v], Mux(several, stored.kind[HEAD], comes), ~self.nonempty[v] & comes)):
                    m.d.sync += self.front[v].route.eq(follows.route)
            first_at.append((read + Const(v * depth, len(read_at)))[: len(read_at)])
        m.d.sync += [
            read_at.eq(select(self.sa_grant, first_at)),
            kind.eq(select(self.sa_grant, [front.kind for front in self.front])),
        ]
        m.d.comb += self.word.kind.eq(kind)
        if isinstance(buffer, ProtectedBuffer):
            sent = Signal()
            read = Cat(note_read)
            m.d.sync += [
                sent.eq(self.sa_grant.any()),
                self.flit_wrong.eq((sent & buffer.data_wrong) | (read & buffer.note_wrong).any()),
                self.flit_repaired.eq((sent & buffer.data_repaired) | (read & buffer.note_repaired).any()),
            ]

    def _buffer(self, note_bits: int) -> FlitBuffer | ProtectedBuffer:
        """Return the storage of the flits."""
        p = self.params
        shape: dict[str, Any] = {
            "queues": p.vcs, "depth": p.buffer_flits, "data_bits": p.width_bits, "note_bits": note_bits,
            "kind": p.flit_buffers,
        }  # fmt: skip
        if p.protection is None:
            return self._flit_buffer(**shape)
        return ProtectedBuffer(**shape, protection=p.protection, flit_buffer=self._flit_buffer)

    def _occupancy(self, m: Module, v: int, arrives: Value, pop: Value) -> Value:
        """Count the flits of a queue; return whether there is more than one.

        What a cycle with and one without `pop`, which comes late, lead to is made beforehand.
        """
        depth = self.params.buffer_flits
        count, several = self.count[v], self.several[v]
        m.d.sync += [
            count.eq(Mux(pop, count - 1 + arrives, count + arrives)),
            self.nonempty[v].eq(Mux(pop, several | arrives, self.nonempty[v] | arrives)),
        ]
        if depth > 1:
            m.d.sync += several.eq(Mux(pop, (count > 2) | (several & arrives), several | (self.nonempty[v] & arrives)))
        return several

    def _leaving(self, m: Module, pop: Value) -> None:
        """In the cycle after the grant: credit back, output VC into the flit."""
        p = self.params
        leaving = Signal(p.vcs)
        m.d.sync += leaving.eq(pop)
        m.d.comb += [
            self.credit_valid.eq(leaving.any()),
            self.credit_vc.eq(number_of(leaving)),
            self.word.vc.eq(number_of(select(leaving, [self._of(self.out_vc, v, p.vcs) for v in range(p.vcs)]))),
        ]


def number_of(one_hot: Value) -> Value:
    """Return the number of the bit that is set."""
    width = max(1, ceil_log2(len(one_hot)))
    return Cat(
        Cat(one_hot[n] for n in range(len(one_hot)) if n >> bit & 1).any() if len(one_hot) > 1 else Const(0, 1)
        for bit in range(width)
    )


def _after(pointer: Value, modulus: int) -> Value:
    """Return the next value of a counter modulo `modulus`."""
    if modulus == 1:
        return Const(0, 1)
    if modulus == 1 << bits_for(modulus - 1):
        return pointer + 1
    return Mux(pointer == modulus - 1, 0, pointer + 1)
