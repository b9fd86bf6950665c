"""From the flits of a host port to an AXI-Stream."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.data import StructLayout, View
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.parts.round_robin import RoundRobin, select
from hopforge.hw.ports.flit_buffer import FlitBuffer
from hopforge.hw.ports.input_ports import flit_layout
from hopforge.hw.streams.sender import stream_signature
from hopforge.model.router.stream_params import StreamParams

__all__ = ["StreamReceiver"]


class StreamReceiver(wiring.Component):
    """Queues the flits of every VC, and hands out one packet after the other as beats.

    Definition: docs/definitions/stream-adapter.md. One flit per cycle leaves the queues; the first beat of a packet
    stands on ``stream`` three cycles after its head was on ``flit``, if nothing is before it. ``malformed``: a flit
    without a packet is being dropped. Reset: empty.

    - ``flit_valid``, ``flit``, ``credit_valid``, ``credit_vc``: towards the router's port; credits are registers.
    - ``stream``: the packets; all its outputs are registers.

    Parameters
    ----------
    params : StreamParams
        The adapter.

    Attributes
    ----------
    count : list of Signal
        For proofs: of each VC, flits in its queue.
    open, of_vc : Signal
        For proofs: a packet has begun, on which VC.
    """

    flit_valid: Signal
    flit: View
    credit_valid: Signal
    credit_vc: Signal
    stream: Any
    malformed: Signal

    def __init__(self, *, params: StreamParams):
        self.params = params
        p = params.router
        super().__init__(
            {
                "flit_valid": In(1),
                "flit": In(flit_layout(p)),
                "credit_valid": Out(1),
                "credit_vc": Out(max(1, ceil_log2(p.vcs))),
                "stream": Out(stream_signature(params, arrives=True)),
                "malformed": Out(1),
            }
        )
        self.count = [Signal(range(params.receive_flits + 1), name=f"count{v}") for v in range(p.vcs)]
        self.open = Signal()
        self.of_vc = Signal(p.vcs)

    def elaborate(self, platform: object) -> Module:
        """Build queues, choice and the beat."""
        m = Module()
        p, s, vcs = self.params.router, self.stream, self.params.router.vcs
        vc = self.of_vc
        popped = Signal(vcs)
        free = Signal()
        m.submodules.choice = choice = RoundRobin(width=vcs)
        nonempty = Cat(count != 0 for count in self.count)
        buffer = self._queues(m, popped)
        kind = Signal(2)
        m.d.comb += [
            free.eq(~s.tvalid | s.tready),
            choice.requests.eq(nonempty & (~self.open).replicate(vcs)),
            choice.advance.eq(choice.grant.any()),
            popped.eq(Mux(self.open, vc & nonempty & free.replicate(vcs), choice.grant)),
            kind.eq(select(popped, list(buffer.notes))),
        ]
        m.d.sync += [
            self.credit_valid.eq(popped.any()),
            self.credit_vc.eq(select(popped, [Const(v, len(self.credit_vc)) for v in range(vcs)])),
        ]
        begins = Signal()
        beat = Signal()
        is_head = kind == 1
        last = kind[1] & ~kind[0]
        m.d.comb += [
            begins.eq(~self.open & popped.any() & is_head),
            beat.eq(self.open & popped.any() & ~kind[0]),
            self.malformed.eq(popped.any() & ~begins & ~beat),
        ]
        with m.If(begins):
            m.d.sync += [self.open.eq(1), vc.eq(choice.grant)]
        with m.Elif(beat & last):
            m.d.sync += self.open.eq(0)
        self._beat(m, buffer.data, begins, beat, last, free)
        assert p.width_bits == len(s.tdata)
        return m

    def _queues(self, m: Module, popped: Value) -> FlitBuffer:
        """Build the queues; ``data`` is the first flit of the VC that is popped."""
        p, depth = self.params.router, self.params.receive_flits
        m.submodules.buffer = buffer = FlitBuffer(
            queues=p.vcs, depth=depth, data_bits=p.width_bits, note_bits=2, kind=p.flit_buffers
        )
        m.d.comb += [buffer.w_data.eq(self.flit.data), buffer.w_note.eq(self.flit.kind)]
        places = []
        for v, count in enumerate(self.count):
            arrives = self.flit_valid & (self.flit.vc == v)
            read = Signal(range(depth), name=f"read{v}")
            write = Signal(range(depth), name=f"write{v}")
            m.d.comb += [buffer.arrives[v].eq(arrives), buffer.write_at[v].eq(write), buffer.note_at[v].eq(read)]
            m.d.sync += count.eq(count + arrives - popped[v])
            for place, moves in ((read, popped[v]), (write, arrives)):
                with m.If(moves):
                    m.d.sync += place.eq(Mux(place == depth - 1, 0, place + 1))
            places.append((read + v * depth)[: len(buffer.read_at)])
        m.d.comb += buffer.read_at.eq(select(popped, places))
        return buffer

    def _beat(self, m: Module, data: Value, begins: Value, beat: Value, last: Value, free: Value) -> None:
        """Keep what the head says, and the beat that stands on the stream."""
        params, p, s = self.params, self.params.router, self.stream
        layout = StructLayout(
            {"dest": p.address_bits, "source": p.address_bits, "last": params.last_bits, "user": params.user_bits}
        )
        head: Any = Signal(layout)
        with m.If(begins):
            m.d.sync += head.eq(data[: layout.size])
        ends = Cat(head.last >= byte for byte in range(params.bytes))
        with m.If(free):
            m.d.sync += s.tvalid.eq(beat)
            with m.If(beat):
                m.d.sync += [
                    s.tdata.eq(data),
                    s.tkeep.eq(ends | (~last).replicate(params.bytes)),
                    s.tlast.eq(last),
                    s.tdest.eq(head.dest),
                    s.tuser.eq(head.user),
                    s.tid.eq(head.source),
                ]
