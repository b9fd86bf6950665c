"""Proofs that the AXI-Stream adapter keeps the rules on both of its sides, whatever host and router do.

*Sender*: a flit is sent only with a credit of its VC; credits of the adapter + flits at the router + credits on their
way = depth. Flits come as head, bodies, tail, all of one VC, one tail for every head, and as many beats as were
taken of a packet that was kept; never more beats stored than there is room for, nor more packets.

*Receiver*: a beat stays until it is taken, with the same contents; flits in a queue + credits = depth, so that there
is always room; a flit that leaves a queue begins a packet, is the next beat or is counted, and only one of them; a
packet ends with its last beat.

Mutants are faults with which a proof must fail: (side, wire of the flattened proof, what it is tied to).
"""

from collections.abc import Iterator

from amaranth.hdl import Assume, Cat, Module, Mux, Signal, Value

from hopforge.gen.formal.induction import Proof, at_most_one, prove
from hopforge.hw.streams.receiver import StreamReceiver
from hopforge.hw.streams.sender import StreamSender
from hopforge.model.router.params import Route, RouterParams
from hopforge.model.router.stream_params import WAITING, StreamParams

__all__ = ["STREAM_MUTANTS", "prove_stream"]

STREAM_MUTANTS = {
    "a beat is sent without a credit": ("sender", "dut.has_credit", "1'b1"),
    "the sender takes beats without room": ("sender", "dut.stream__tready", "1'b1"),
    "a packet has no tail": ("sender", "dut.sent_tail", "1'b0"),
    "a packet that is too long is kept": ("sender", "dut.too_long", "1'b0"),
    "a beat does not wait for ready": ("receiver", "dut.free", "1'b1"),
    "a flit gives no credit": ("receiver", "dut.credit_valid", "1'b0"),
    "a lost flit is not counted": ("receiver", "dut.malformed", "1'b0"),
}
"""Side, wire and constant of each fault."""

_PARAMS = StreamParams(
    router=RouterParams(
        ports=2, vcs=2, buffer_flits=2, width_bits=8, address_bits=1, tag_bits=1, routes=(Route(1), Route(2))
    ),
    port=0, beats=2, vcs_at_injection=3,
)  # fmt: skip


class _SenderProof(Proof):
    """The sender before a router that returns credits at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.dut = dut = StreamSender(params=_PARAMS)
        s = dut.stream
        self.inputs += [s.tvalid, s.tdata, s.tkeep, s.tlast, s.tdest, s.tuser, dut.credit_valid, dut.credit_vc, dut.own]

    def elaborate(self, platform: object) -> Module:
        m = self.module()
        m.submodules.dut = self.dut
        self.claim(m, self._claims(m))
        return m

    def _claims(self, m: Module) -> Iterator[Value]:
        dut, p = self.dut, _PARAMS.router
        vc, kind = dut.flit.vc, dut.flit.kind
        for v, credits in enumerate(dut.credits):
            away = Signal(range(p.buffer_flits + 1), name=f"away{v}")  # flits of the VC at the router
            arrives = dut.flit_valid & (vc == v)
            returned = dut.credit_valid & (dut.credit_vc == v)
            m.d.comb += Assume(~returned | (away != 0))
            m.d.sync += away.eq(away + arrives - returned)
            yield credits + away + arrives == p.buffer_flits
        inside, of_vc, beats = Signal(), Signal.like(vc), Signal(range(_PARAMS.beats + 1))
        with m.If(dut.flit_valid):
            m.d.sync += [inside.eq(~kind[1]), of_vc.eq(vc), beats.eq(Mux(kind[0], 0, beats + 1))]
        yield ~dut.flit_valid | (kind != 3)
        yield ~dut.flit_valid | (kind[0] == ~inside)  # a head exactly where none is open
        yield ~(dut.flit_valid & inside) | (vc == of_vc)
        yield ~(dut.flit_valid & inside) | (beats < _PARAMS.beats)
        yield from self._store(m, inside, kind, beats, of_vc)

    def _store(self, m: Module, inside: Value, kind: Value, sent: Value, of_vc: Value) -> Iterator[Value]:
        """Claim what is stored, taken and sent."""
        dut = self.dut
        yield dut.waiting <= WAITING
        yield dut.stored <= 2 * _PARAMS.beats
        yield dut.coming <= _PARAMS.beats
        yield dut.coming <= dut.stored
        yield ~dut.discarding | (dut.coming == 0)
        yield ~dut.sending | (dut.waiting != 0)
        kept = [Signal(range(_PARAMS.beats + 1), name=f"kept{n}") for n in range(WAITING)]  # beats of those that wait
        at = dut.waiting - dut.sent_tail
        for n, beats in enumerate(kept):
            behind = kept[n + 1] if n + 1 < WAITING else 0
            m.d.sync += beats.eq(Mux(dut.committed & (at == n), dut.coming + 1, Mux(dut.sent_tail, behind, beats)))
            yield ((beats >= 1) & (beats <= _PARAMS.beats)) == (dut.waiting > n)
            yield (beats == 0) == (dut.waiting <= n)
        m.d.comb += Assume((dut.waiting == 0) | (dut.front_beats == kept[0]))  # the memory keeps what is written
        yield dut.stored + Mux(dut.sending, kept[0] - dut.left, 0) == sum(kept) + dut.coming
        yield ~dut.sending | ((dut.left != 0) & (dut.left <= kept[0]))
        done = Mux(dut.flit_valid, Mux(kind[0], 0, sent + 1), sent)
        yield ~dut.sending | (dut.left == kept[0] - done)
        open_after = Mux(dut.flit_valid, ~kind[1], inside)
        yield dut.sending == open_after
        yield ~dut.sending | (dut.of_vc == 1 << Mux(dut.flit_valid, dut.flit.vc, of_vc))


class _ReceiverProof(Proof):
    """The receiver behind a router that keeps the credits."""

    def __init__(self) -> None:
        super().__init__()
        self.dut = dut = StreamReceiver(params=_PARAMS)
        self.inputs += [dut.flit_valid, dut.flit.as_value(), dut.stream.tready]

    def elaborate(self, platform: object) -> Module:
        m = self.module()
        m.submodules.dut = self.dut
        self.claim(m, self._claims(m))
        return m

    def _claims(self, m: Module) -> Iterator[Value]:
        dut, s, depth = self.dut, self.dut.stream, _PARAMS.receive_flits
        for v, count in enumerate(dut.count):
            credits = Signal(range(depth + 1), init=depth, name=f"credits{v}")
            arrives = dut.flit_valid & (dut.flit.vc == v)
            returned = dut.credit_valid & (dut.credit_vc == v)
            m.d.comb += Assume(~arrives | (credits != 0))
            m.d.sync += credits.eq(credits - arrives + returned)
            yield credits + count + returned == depth
        yield ~dut.open | (at_most_one(dut.of_vc) & dut.of_vc.any())
        waited = Signal()
        m.d.sync += waited.eq(s.tvalid & ~s.tready)
        yield ~waited | s.tvalid
        now = Cat(s.tdata, s.tkeep, s.tlast, s.tdest, s.tid, s.tuser)
        before = Signal.like(now)
        m.d.sync += before.eq(now)
        yield ~waited | (before == now)
        yield from self._order(m, waited)

    def _order(self, m: Module, waited: Value) -> Iterator[Value]:
        """Claim that a flit that leaves its queue begins a packet, is the next beat or is counted."""
        dut, s = self.dut, self.dut.stream
        open_before, counted = Signal(), Signal()
        m.d.sync += [open_before.eq(dut.open), counted.eq(dut.malformed)]
        begun, beat = dut.open & ~open_before, s.tvalid & ~waited
        yield dut.credit_valid == (begun | beat | counted)
        yield ~(begun & beat) & ~(begun & counted) & ~(beat & counted)
        yield ~beat | open_before
        yield (beat & s.tlast) == (open_before & ~dut.open)


def prove_stream(side: str, *, mutant: str | None = None) -> bool:
    """Prove the rules of a side of the adapter.

    Parameters
    ----------
    side : str
        ``sender`` or ``receiver``.
    mutant : str, optional
        Key of `STREAM_MUTANTS`, whose side it must be.

    Returns
    -------
    bool
        Whether the proof succeeded.

    Raises
    ------
    YosysError
        If yosys fails otherwise, or takes too long.
    """
    proof = _SenderProof() if side == "sender" else _ReceiverProof()
    return prove(proof, proof.inputs, steps=2, mutant=STREAM_MUTANTS[mutant][1:] if mutant else None)
