"""From an AXI-Stream to the flits of a host port."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.data import StructLayout, View
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, ceil_log2

from hopforge.hw.parts.round_robin import RoundRobin, select
from hopforge.hw.parts.sram import Sram
from hopforge.hw.ports.input_ports import flit_layout
from hopforge.model.router.stream_params import WAITING, StreamParams

__all__ = ["StreamSender", "stream_signature"]

_HEAD, _BODY, _TAIL = 1, 0, 2


def stream_signature(params: StreamParams, *, arrives: bool) -> wiring.Signature:
    """AXI-Stream, seen from who sends; `arrives`: with the source of the packet."""
    members = {
        "tvalid": Out(1), "tready": In(1), "tdata": Out(params.router.width_bits), "tkeep": Out(params.bytes),
        "tlast": Out(1), "tdest": Out(params.router.address_bits), "tuser": Out(params.user_bits),
    }  # fmt: skip
    return wiring.Signature(members | ({"tid": Out(params.router.address_bits)} if arrives else {}))


class StreamSender(wiring.Component):
    """Stores packets of a stream, and sends each whole one as flits of one VC.

    Definition: docs/definitions/stream-adapter.md. One beat per cycle; the head of a packet stands on ``flit`` two
    cycles after its last beat was taken, a beat in each of the following cycles. ``long`` and ``malformed`` tell of a
    dropped packet in the cycle in which its last beat is taken. Reset: nothing stored, all credits.

    - ``stream``: the packets; ``tready`` follows from registers alone.
    - ``flit_valid``, ``flit``, ``credit_valid``, ``credit_vc``: towards the router's port; ``flit`` is a register.
    - ``own``: source in the heads.

    Parameters
    ----------
    params : StreamParams
        The adapter.

    Attributes
    ----------
    credits : list of Signal
        For proofs: of each VC.
    sending, left, waiting, stored, coming, discarding : Signal
        For proofs: a packet is being sent, its beats that are left, packets that wait, beats stored, those of the
        packet that comes, whether the rest of a packet is being discarded.
    committed, sent_tail, front_beats, of_vc : Signal
        For proofs: a packet has come whole, the first one leaves, beats of the first one, VC that is being sent on.
    """

    stream: Any
    flit_valid: Signal
    flit: View
    credit_valid: Signal
    credit_vc: Signal
    long: Signal
    malformed: Signal
    own: Signal

    def __init__(self, *, params: StreamParams):
        self.params = params
        p = params.router
        super().__init__(
            {
                "stream": In(stream_signature(params, arrives=False)),
                "flit_valid": Out(1),
                "flit": Out(flit_layout(p)),
                "credit_valid": In(1),
                "credit_vc": In(max(1, ceil_log2(p.vcs))),
                "long": Out(1),
                "malformed": Out(1),
                "own": In(p.address_bits),
            }
        )
        depth = params.send_credits
        self.credits = [Signal(range(depth + 1), init=depth, name=f"credits{v}") for v in range(p.vcs)]
        self.sending = Signal()
        self.left = Signal(range(params.beats + 1))
        self.waiting = Signal(range(WAITING + 1))
        self.stored = Signal(range(2 * params.beats + 1))
        self.coming = Signal(range(params.beats + 1))
        self.discarding = Signal()
        self.committed = Signal()
        self.sent_tail = Signal()
        self.of_vc = Signal(p.vcs)
        self.front_beats = Signal(range(params.beats + 1))

    def elaborate(self, platform: object) -> Module:
        """Build store, queue of packets, choice of the VC."""
        m = Module()
        params, p = self.params, self.params.router
        places = 2 * params.beats
        m.submodules.store = store = Sram(depth=places, width_bits=p.width_bits, asynchronous=True)
        note = StructLayout(
            {
                "dest": p.address_bits,
                "user": params.user_bits,
                "last": params.last_bits,
                "beats": bits_for(params.beats),
            }
        )
        m.submodules.packets = packets = Sram(depth=WAITING, width_bits=note.size, asynchronous=True)
        sent = Signal()
        committed, sent_tail = self.committed, self.sent_tail
        kept, dropped = self._take(m, store, packets, note)
        front = View(note, packets.r_data)
        m.d.comb += self.front_beats.eq(front.beats)
        self._send(m, store, front, sent)
        m.d.sync += [
            self.stored.eq(self.stored + kept - sent - Mux(dropped, self.coming, 0)),
            self.waiting.eq(self.waiting + committed - sent_tail),
            packets.w_addr.eq(packets.w_addr + committed),
            packets.r_addr.eq(packets.r_addr + sent_tail),
        ]
        return m

    def _take(self, m: Module, store: Sram, packets: Sram, note: StructLayout) -> tuple[Value, Value]:
        """Take beats; return whether one is kept, and whether those of its packet go."""
        s, params = self.stream, self.params
        places = 2 * params.beats
        dest, user = Signal.like(s.tdest, name="dest"), Signal.like(s.tuser, name="user")
        inside = Signal()  # a packet has begun
        was_long = Signal()  # why the rest is discarded
        taken, keep_is_good, too_long, bad, kept = (
            Signal(name=name) for name in ("taken", "keep_is_good", "too_long", "bad", "kept")
        )
        now_dest, now_user = Mux(inside, dest, s.tdest), Mux(inside, user, s.tuser)
        holes = (s.tkeep & (s.tkeep + 1)[: params.bytes]).any() | ~s.tkeep[0]  # not ones from bit 0 up
        m.d.comb += [
            s.tready.eq(self.discarding | ((self.stored < places) & (self.waiting < WAITING))),
            taken.eq(s.tvalid & s.tready),
            keep_is_good.eq(Mux(s.tlast, ~holes, s.tkeep.all())),
            too_long.eq(self.coming == params.beats),
            bad.eq(~self.discarding & (too_long | ~keep_is_good | (s.tdest != now_dest))),
            kept.eq(taken & ~self.discarding & ~bad),
            self.committed.eq(kept & s.tlast),
            store.w_en.eq(kept),
            store.w_data.eq(s.tdata),
            self.long.eq(taken & s.tlast & Mux(self.discarding, was_long, bad & too_long)),
            self.malformed.eq(taken & s.tlast & Mux(self.discarding, ~was_long, bad & ~too_long)),
        ]
        count = Signal(range(params.bytes + 1))
        m.d.comb += count.eq(sum(s.tkeep))
        entry = View(note, packets.w_data)
        m.d.comb += [
            packets.w_en.eq(self.committed),
            entry.dest.eq(now_dest),
            entry.user.eq(now_user),
            entry.last.eq(count - 1),
            entry.beats.eq(self.coming + 1),
        ]
        began = Signal.like(store.w_addr, name="began")
        following = _after(store.w_addr, places)
        with m.If(taken):
            m.d.sync += [inside.eq(~s.tlast), self.discarding.eq((self.discarding | bad) & ~s.tlast)]
            with m.If(~inside):
                m.d.sync += [dest.eq(s.tdest), user.eq(s.tuser)]
            with m.If(bad):
                m.d.sync += [was_long.eq(too_long), store.w_addr.eq(began), self.coming.eq(0)]
            with m.Elif(kept):
                m.d.sync += [store.w_addr.eq(following), self.coming.eq(Mux(s.tlast, 0, self.coming + 1))]
                with m.If(s.tlast):
                    m.d.sync += began.eq(following)
        return kept, taken & bad

    def _send(self, m: Module, store: Sram, front: Any, sent: Signal) -> None:
        """Send the packet at the front."""
        p = self.params.router
        vcs, sent_tail = p.vcs, self.sent_tail
        vc = self.of_vc
        has_credit = Signal()
        new = Signal()
        m.submodules.choice = choice = RoundRobin(width=vcs)
        room = Cat(self._room(credits, front) for credits in self.credits) & self.params.vcs_at_injection
        ready = ~self.sending & (self.waiting != 0)
        m.d.comb += [
            choice.requests.eq(room & ready.replicate(vcs)),
            new.eq(choice.grant.any()),
            choice.advance.eq(new),
            has_credit.eq(select(vc, [credits != 0 for credits in self.credits])),
            sent.eq(self.sending & has_credit),
            sent_tail.eq(sent & (self.left == 1)),
        ]
        chosen = Mux(new, choice.grant, vc)
        header = [front.dest, self.own, front.last, front.user]
        if p.switching == "vct":
            header.append((front.beats + 1)[: p.length_bits])
        m.d.sync += [
            self.flit_valid.eq(new | sent),
            self.flit.kind.eq(Mux(new, _HEAD, Mux(sent_tail, _TAIL, _BODY))),
            self.flit.vc.eq(select(chosen, [Const(v, len(self.flit.vc)) for v in range(vcs)])),
            self.flit.data.eq(Mux(new, Cat(header), store.r_data)),
        ]
        with m.If(new):
            m.d.sync += [self.sending.eq(1), vc.eq(choice.grant), self.left.eq(front.beats)]
        with m.Elif(sent):
            m.d.sync += [
                self.sending.eq(~sent_tail),
                self.left.eq(self.left - 1),
                store.r_addr.eq(_after(store.r_addr, 2 * self.params.beats)),
            ]
        leaves = chosen & (new | sent).replicate(vcs)
        for v, credits in enumerate(self.credits):
            m.d.sync += credits.eq(credits - leaves[v] + (self.credit_valid & (self.credit_vc == v)))

    def _room(self, credits: Signal, front: Any) -> Value:
        """Return whether a VC takes the packet at the front."""
        p = self.params.router
        if p.vc_release == "credits":
            return credits == self.params.send_credits
        return credits > front.beats if p.switching == "vct" else credits != 0


def _after(place: Signal, places: int) -> Value:
    """Return the place behind one of a ring."""
    return Mux(place == places - 1, 0, place + 1)
