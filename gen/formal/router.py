"""Proofs about the flow of flits: order of the queues, credits, no flit lost and none doubled.

*Queue*: an input unit and the counters of the sender that fills it. For every VC, in every cycle,

    credits of the sender + flits in the queue + the credit on its way back = depth,

so that no flit comes without room; and a flit that arrives at any moment, watched through the queue, leaves once,
unchanged, after those before it and before those behind it. The sender, the switch grants and the allocation of VCs
are free apart from what is proved of the allocators: a grant goes to a VC that asked, at most one per cycle.

*Output*: the counter of an output VC and a receiver that returns credits at any time: credits + flits sent and not yet
returned + credits that wait out their delay = depth; the flag that says whether there are credits is right; an output
VC is always exactly one of free, owned by a packet, and waiting for its last credits.

*Crossbar*: a word goes to the output that is selected for it, whole, and to no other. With the queues, and with at most
one grant per input and output (`hopforge.gen.formal.allocators`): a flit that enters a router leaves it once.

With ``va`` free_queue the same, and in every cycle who asks for the switch, and what an output offers, is as
docs/definitions/router.md says, though both are prepared a cycle before.

By induction over one cycle (a cycle more per cycle of credit delay), with the invariants below. The mutants are
faults with which the proofs must fail.
"""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Assume, Cat, Const, Module, Mux, Signal, Value

from hopforge.gen.formal.induction import Proof, at_most_one, prove
from hopforge.hw.allocation.crossbar import Crossbar
from hopforge.hw.allocation.free_queue import first_from
from hopforge.hw.allocation.vc_turn import VcTurn
from hopforge.hw.ports.flit_buffer import FlitBuffer
from hopforge.hw.ports.input_unit import InputUnit
from hopforge.hw.ports.output_unit import OutputUnit
from hopforge.model.router.params import Route, RouterParams

__all__ = [
    "OFFER_MUTANTS",
    "OUTPUT_MUTANTS",
    "QUEUE_MUTANTS",
    "REQUEST_MUTANTS",
    "TURN_MUTANTS",
    "prove_crossbar",
    "prove_output",
    "prove_queue",
]

QUEUE_MUTANTS = {
    "the credit is not returned": ("dut.leaving", "2'b00"),
    "always the same place is read": ("dut.read_at", "3'b000"),
    "every flit leaves as a body": ("dut.kind", "2'b00"),
    "the first flit is never the one behind": ("dut.several0", "1'b0"),
    "a full queue counts as empty": ("dut.nonempty", "2'b00"),
}
"""Faults of an input unit of 2 VCs and 3 flits: (wire of the flattened proof, what it is tied to)."""

OUTPUT_MUTANTS = {
    "credits are not counted": ("dut.credits0", "2'b11"),
    "there is always a credit": ("dut.nonzero0", "1'b1"),
    "an output VC is never released": ("dut.free", "2'b00"),
}
"""Faults of an output unit of 2 VCs."""

REQUEST_MUTANTS = {
    "a head asks though no VC is free": ("dut.switch_request0.offered_any", "2'b11"),
    "the next body asks without a credit": ("dut.switch_request0.credit_left", "1'b1"),
    "every first flit is a head": ("dut.front0", "5'b11101"),
}
"""Faults of the same input unit with ``va`` free_queue."""

TURN_MUTANTS = {
    "a head that cannot leave keeps its turn": ("dut.turns.asks", "1'b1"),
    "what drains is in turn as if it stayed": ("dut.turns.drains", "2'b00"),
    "the choice behind a grant is that without it": ("dut.turns.granted", "1'b0"),
}
"""Faults of the same input unit with ``sa`` input_ahead."""

OFFER_MUTANTS = {
    "a VC is offered though none is left": ("dut.queue.taken", "2'b01"),
    "an output always claims to have a VC": ("dut.queue.offered", "1'b1"),
    "a VC is free at once": ("dut.tail_sent0", "1'b0"),
}
"""Faults of the same output unit with ``va`` free_queue."""


class _OnePlace(FlitBuffer):
    """Storage of which only one place of queue 0 is kept; other places read as anything."""

    def __init__(self, proof: "_QueueProof", **parameters: Any):
        super().__init__(**parameters)
        self.proof = proof

    def elaborate(self, platform: object) -> Module:
        """Keep one word."""
        m = Module()
        proof, bits = self.proof, self.note_bits
        with m.If(self.arrives[0] & (self.write_at[0] == proof.place)):
            m.d.sync += [proof.kept_data.eq(self.w_data), proof.kept_note.eq(self.w_note)]
        m.d.comb += self.data.eq(Mux(self.read_at == proof.place, proof.kept_data, proof.other_data))
        for q in range(self.queues):
            anything = proof.other_notes[q * bits : (q + 1) * bits]
            note = Mux(self.note_at[q] == proof.place, proof.kept_note, anything) if q == 0 else anything
            m.d.comb += self.notes[q].eq(note)
        return m


def _router(**changes: Any) -> RouterParams:
    parameters: dict[str, Any] = {
        "ports": 2, "vcs": 2, "buffer_flits": 3, "width_bits": 5, "address_bits": 1, "tag_bits": 3,
        "routes": (Route(1), Route(2)),
    }  # fmt: skip
    return RouterParams(**parameters | changes)


class _QueueProof(Proof):
    """One input unit; VC 0 is watched."""

    def __init__(self, params: RouterParams) -> None:
        super().__init__()
        self.params = params
        self.place = Signal(range(params.buffer_flits))
        self.watch = Signal()
        self.dut = InputUnit(params=params, port=0, flit_buffer=self._buffer)
        note_bits = len(self.dut.front[0].as_value())
        self.kept_data = Signal(params.width_bits)
        self.kept_note = Signal(note_bits)
        self.other_data = Signal(params.width_bits)
        self.other_notes = Signal(params.vcs * note_bits)
        self.inputs += [self.other_data, self.other_notes]
        free = ["in_valid", "route", "free", "credits", "nonzero", "sa_grant"]
        if params.va == "free_queue":
            free += ["at_or_after", "offers", "offered", "stays", "follows"]
        else:
            free += ["va_granted", "va_granted_vc", "out_port", "out_vc"]
        self.inputs += [self.place, self.watch, self.dut.enable, self.dut.clear_drops, self.dut.in_flit.as_value()]
        self.inputs += [getattr(self.dut, name) for name in free]
        if params.speculation:
            self.inputs.append(self.dut.guess_confirmed)

    def _buffer(self, **parameters: Any) -> _OnePlace:
        return _OnePlace(self, **parameters)

    def elaborate(self, platform: object) -> Module:
        """Build the unit, its sender and the claims."""
        m = self.module()
        m.submodules.dut = dut = self.dut
        p = self.params
        started, place_before = Signal(), Signal.like(self.place)
        m.d.sync += [started.eq(1), place_before.eq(self.place)]
        m.d.comb += [
            Assume(~started | (place_before == self.place)),
            Assume(self.place < p.buffer_flits),
            Assume(dut.in_flit.vc < p.vcs),
            # a grant goes to a VC that asked (or whose guess was confirmed), at most one
            Assume(at_most_one(dut.sa_grant)),
        ]
        for v in range(p.vcs):
            asked = dut.sa_request[v * p.ports : (v + 1) * p.ports].any()
            if p.speculation:
                asked |= dut.guess_request[v * p.ports : (v + 1) * p.ports].any() & dut.guess_confirmed[v]
            m.d.comb += Assume(~dut.sa_grant[v] | asked)
            if p.va == "free_queue":
                continue
            m.d.comb += Assume(~dut.va_granted[v] | dut.va_port[v * p.ports : (v + 1) * p.ports].any())
        sender = [Signal(range(p.buffer_flits + 1), init=p.buffer_flits, name=f"sender{v}") for v in range(p.vcs)]
        arrives = [dut.in_valid & (dut.in_flit.vc == v) for v in range(p.vcs)]
        if dut.turns is not None:
            m.d.comb += Assume((dut.sa_grant & ~dut.turn) == 0)
        for v, credits in enumerate(sender):
            returned = dut.credit_valid & (dut.credit_vc == v)
            m.d.comb += Assume(~arrives[v] | (credits > 0))
            m.d.sync += credits.eq(credits - arrives[v] + returned)
        self.claim(m, self._claims(m, sender, arrives))
        return m

    def _claims(self, m: Module, sender: list[Signal], arrives: list[Value]) -> Iterator[Value]:
        dut, p = self.dut, self.params
        depth = p.buffer_flits
        for v, credits in enumerate(sender):
            returning = dut.credit_valid & (dut.credit_vc == v)
            yield credits + dut.count[v] + returning == depth
            yield dut.count[v] <= depth
            yield dut.nonempty[v] == (dut.count[v] != 0)
            yield dut.several[v] == (dut.count[v] > 1)
            yield (dut.read[v] < depth) & (dut.write[v] < depth)
            end = dut.read[v] + dut.count[v]
            yield dut.write[v] == Mux(end >= depth, end - depth, end)
        if p.va == "free_queue":
            yield from self._heads(m)
        # the watched flit of VC 0: `ahead` flits leave before it
        watching, gone = Signal(), Signal()
        ahead = Signal(range(depth + 1))
        data, kind = Signal(p.width_bits), Signal(2)
        leaves = watching & dut.pop[0] & (ahead == 0)
        begins = self.watch & ~watching & arrives[0] & (dut.write[0] == self.place)
        sent = Signal()  # it went to the switch, and did not drain
        m.d.sync += [gone.eq(leaves), sent.eq(leaves & dut.sa_grant[0])]
        with m.If(begins):
            m.d.sync += [
                watching.eq(1),
                ahead.eq((dut.count[0] - dut.pop[0])[: len(ahead)]),
                data.eq(dut.in_flit.data),
                kind.eq(dut.in_flit.kind),
            ]
        with m.Elif(leaves):
            m.d.sync += watching.eq(0)
        with m.Elif(watching & dut.pop[0]):
            m.d.sync += ahead.eq(ahead - 1)
        at = dut.read[0] + ahead
        yield ~watching | (ahead < dut.count[0])
        yield ~watching | (self.place == Mux(at >= depth, at - depth, at))
        # invariants of the storage and of the first flit's register
        yield ~watching | ((self.kept_data == data) & (self.kept_note[:2] == kind))
        yield ~(watching & (ahead == 0)) | (dut.front[0].kind == kind)
        if dut.masks:  # the route is kept with the head
            route = Signal.like(dut.route)
            with m.If(begins):
                m.d.sync += route.eq(dut.route)
            yield ~watching | (self.kept_note[2:] == route)
            yield ~(watching & (ahead == 0) & kind[0]) | (dut.front[0].route == route)
        # what stands on the way to the crossbar in the cycle after the grant
        yield ~sent | ((dut.word.data == data) & (dut.word.kind == kind))
        yield ~gone | (dut.credit_valid & (dut.credit_vc == 0))

    def _heads(self, m: Module) -> Iterator[Value]:
        """Who asks for the switch, with ``va`` free_queue."""
        dut, p = self.dut, self.params
        for v in range(p.vcs):
            yield ~(dut.active[v] & dut.draining[v])
            yield ~dut.asks_head[v] | (dut.nonempty[v] & ~dut.active[v] & ~dut.draining[v])
        if not dut.masks:
            return
        turn: list[Value] = []
        for v in range(p.vcs):
            ports = dut.front[v].route[: p.ports]
            viable = ports.any()
            stopped, kept, credit = (Signal(name=f"{n}{v}") for n in ("stopped", "kept", "credit"))
            before = Signal.like(dut.front[v].route, name=f"route{v}")
            waits = dut.nonempty[v] & ~dut.active[v] & ~stopped
            ended = dut.pop[v] & dut.front[v].kind[1]
            m.d.sync += [
                kept.eq(~ended & (kept | (waits & ~viable))),
                stopped.eq((~ended & (kept | (waits & ~viable))) | ~dut.enable),
            ]
            yield dut.asks_head[v] == waits
            yield (dut.draining[v] == kept) & (~kept | stopped)
            m.d.sync += before.eq(dut.front[v].route)
            yield dut.front[v].kind[0] | (dut.front[v].route == before)  # only a head changes it
            # the credits of the output VC that the packet has, as far as this VC alone decides
            label = dut.label[v * (p.vcs + 2) : v * (p.vcs + 2) + p.vcs]
            word = Mux(dut.sa_grant[v], dut.follows, dut.stays)
            m.d.sync += credit.eq(_at(word, ports, label))
            own = _at(dut.nonzero, ports, dut.out_vc[v * p.vcs : (v + 1) * p.vcs])
            m.d.comb += Assume(~dut.active[v] | (own == credit))
            asked = dut.sa_request[v * p.ports : (v + 1) * p.ports]
            offered = Cat(dut.offered[o] & ports[o] for o in range(p.ports))  # one set of VCs behind each output
            body = dut.active[v] & dut.nonempty[v] & own
            yield asked == Mux(dut.active[v], ports & body.replicate(p.ports), offered & waits.replicate(p.ports))
            turn.append(Mux(dut.active[v], body, waits))
        if dut.turns is not None:
            yield from self._turns(m, dut.turns, Cat(turn))

    def _turns(self, m: Module, turns: VcTurn, waiting: Value) -> Iterator[Value]:
        """Whose turn it is, with ``sa`` input_ahead: the first of those that could ask, from the pointer on."""
        dut, p = self.dut, self.params
        pointer = Signal(p.vcs)
        asks = Cat(dut.turn[v] & dut.sa_request[v * p.ports : (v + 1) * p.ports].any() for v in range(p.vcs)).any()
        with m.If(dut.turn.any() & (dut.sa_grant.any() | ~asks)):
            m.d.sync += pointer.eq(Cat(dut.turn[:v].any() if v else 0 for v in range(p.vcs)))
        yield turns.pointer == pointer
        yield dut.turn == first_from(waiting, pointer)


def _at(word: Value, ports: Value, vcs: Value) -> Value:
    """Return whether the bit of a port and a VC (both one-hot) is set."""
    width = len(vcs)
    return Cat(ports[o] & vcs[w] & word[o * width + w] for o in range(len(ports)) for w in range(width)).any()


class _OutputProof(Proof):
    def __init__(self, params: RouterParams) -> None:
        super().__init__()
        self.params = params
        self.dut = OutputUnit(params=params, port=0)
        names = ["credit_valid", "credit_vc", "sent", "sent_tail"]
        names.append("sent_head" if params.va == "free_queue" else "allocated")
        self.inputs += [getattr(self.dut, name) for name in names]

    def elaborate(self, platform: object) -> Module:
        """Build the unit, its receiver and the claims."""
        m = self.module()
        m.submodules.dut = dut = self.dut
        p = self.params
        depth = p.credits(0)
        width = len(dut.credits) // p.vcs
        m.d.comb += [Assume(dut.credit_vc < p.vcs), Assume(at_most_one(dut.sent))]
        queued = p.va == "free_queue"
        given = dut.sent & dut.sent_head.replicate(p.vcs) if queued else dut.allocated
        if queued:  # a head takes what it was offered
            offers = [dut.offers[k * p.vcs : (k + 1) * p.vcs] for k in range(len(dut.masks))]
            m.d.comb += Assume(~dut.sent_head | (Cat(dut.sent == offer for offer in offers).any() & dut.sent.any()))
        claims: list[Value] = []
        for w in range(p.vcs):
            there = Signal(range(depth + 1), name=f"there{w}")  # flits that the receiver has
            owned = Signal(name=f"owned{w}")
            count = dut.credits[w * width : (w + 1) * width]
            comes = dut.credit_valid & (dut.credit_vc == w)
            late = [Signal(name=f"late{w}_{k}") for k in range(p.credit_delay_cycles)]
            chain: Value = comes
            for register in late:
                m.d.sync += register.eq(chain)
                chain = register
            m.d.comb += [
                Assume(~comes | (there > 0)),
                Assume(~dut.sent[w] | dut.nonzero[w]),  # the switch allocator grants with credits only
                Assume(~given[w] | dut.free[w]),
                Assume(~dut.sent[w] | owned | given[w]),
            ]
            tail = dut.sent[w] & dut.sent_tail
            m.d.sync += [
                there.eq(there + dut.sent[w] - comes),
                owned.eq((owned | given[w]) & ~tail),
            ]
            claims += [
                count + there + sum((register for register in late), Const(0, 1)) == depth,
                dut.nonzero[w] == (count != 0),
            ]
            waits = dut.tail_sent[w] if queued or p.vc_release == "credits" else Const(0, 1)
            claims.append((dut.unowned[w] if queued else dut.free[w]) + owned + waits == 1)
            if queued:
                credit = Signal(name=f"credit{w}", init=1)
                m.d.sync += credit.eq(Mux(dut.sent[w], dut.follows[w], dut.stays[w]))
                claims += [dut.nonzero[w] == credit, dut.free[w] == dut.unowned[w] & dut.nonzero[w]]
            if p.vc_release == "credits":  # free as soon as all credits are back, and not before
                free = dut.unowned[w] if queued else dut.free[w]
                claims += [~free | (count == depth), ~waits | (count != depth)]
        for k, mask in enumerate(dut.masks):
            offer, can = dut.offers[k * p.vcs : (k + 1) * p.vcs], dut.free & mask
            claims += [offer == first_from(can, dut.at_or_after), dut.offered[k] == can.any()]
        self.claim(m, iter(claims))
        return m


class _CrossbarProof(Proof):
    def __init__(self, ports: int, width_bits: int) -> None:
        super().__init__()
        self.dut = Crossbar(inputs=ports, outputs=ports, width_bits=width_bits)
        self.inputs += [self.dut.select, *self.dut.words]

    def elaborate(self, platform: object) -> Module:
        """Say where the words go."""
        m = self.module()
        m.submodules.dut = dut = self.dut
        m.d.sync += Signal().eq(1)  # the solver wants a clock
        ports = range(dut.inputs)
        claims: list[Value] = []
        for o in ports:
            chosen = Cat(dut.select[i * dut.outputs + o] for i in ports)
            m.d.comb += Assume(at_most_one(chosen))
            claims += [~chosen[i] | (dut.out[o] == dut.words[i]) for i in ports]
            claims.append(chosen.any() | (dut.out[o] == 0))
        self.claim(m, iter(claims))
        return m


def prove_queue(*, mutant: str | None = None, timeout_s: float = 300, **changes: Any) -> bool:
    """Prove the queue properties of an input unit; `changes` are parameters of its router.

    Parameters
    ----------
    mutant : str, optional
        Key of `QUEUE_MUTANTS`, `REQUEST_MUTANTS` or `TURN_MUTANTS`: a fault with which the proof must fail.
    timeout_s : float
        Limit in seconds.

    Returns
    -------
    bool
        Whether the proof succeeded.
    """
    proof = _QueueProof(_router(**changes))
    fault = (QUEUE_MUTANTS | REQUEST_MUTANTS | TURN_MUTANTS)[mutant] if mutant else None
    return prove(proof, proof.inputs, mutant=fault, timeout_s=timeout_s)


def prove_output(*, mutant: str | None = None, timeout_s: float = 300, **changes: Any) -> bool:
    """Prove the credits of an output unit; parameters as in `prove_queue`.

    Mutants are those of `OUTPUT_MUTANTS` and `OFFER_MUTANTS`.
    """
    params = _router(**changes)
    proof, steps = _OutputProof(params), 1 + params.credit_delay_cycles
    fault = (OUTPUT_MUTANTS | OFFER_MUTANTS)[mutant] if mutant else None
    return prove(proof, proof.inputs, steps=steps, mutant=fault, timeout_s=timeout_s)


def prove_crossbar(*, ports: int = 4, width_bits: int = 4, broken: bool = False, timeout_s: float = 300) -> bool:
    """Prove that a crossbar carries words whole to where they shall go; `broken`: with an output tied to 0."""
    proof = _CrossbarProof(ports, width_bits)
    fault = ("dut.out__0", f"{width_bits}'b{'0' * width_bits}") if broken else None
    return prove(proof, proof.inputs, mutant=fault, timeout_s=timeout_s)
