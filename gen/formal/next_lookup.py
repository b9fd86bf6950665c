"""Proof about look-ahead with lookup engines: every head leaves with the answer about its own destination.

The engine of an output (`NextLookup`) and, for every VC that may ask it, what a head does until it has its answer
(`NextAnswer`), against docs/definitions/router.md. Of the lookup engine is assumed what `hopforge.gen.formal.lookup`
proves: every request is answered once, at any later time, and the answer is that of its destination. Packets are free:
they come at any moment, need an answer or not, leave by the switch when they may, or are dropped.

By induction over one cycle; `NEXT_MUTANTS` are faults with which it must fail.
"""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Assume, Cat, Const, Module, Mux, Signal, Value

from hopforge.gen.formal.induction import Proof, prove, refute
from hopforge.gen.formal.shared_lookup import AnyEngine
from hopforge.hw.ports.next_lookup import NextAnswer, NextLookup
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.params import CLASS_BITS, PORT_BITS, LookAhead, RouterParams

__all__ = ["NEXT_MUTANTS", "prove_next_lookup", "refute_next_lookup"]

NEXT_MUTANTS = {
    "the pointer stays": ("dut.turn.advance", "1'b0"),
    "two VCs are accepted": ("dut.accepted", "4'b0011"),
    "a request names the wrong VC": ("dut.req_tag", "4'b0000"),
    "an answer names no port": ("dut.route", "6'b000010"),
    "a head asks again": ("head0.asked", "1'b0"),
    "a head leaves without its answer": ("head0.opened", "1'b1"),
    "the answer is not kept": ("head0.route", "6'b000000"),
}
"""Faults of a router of 2 ports and 2 VCs: (wire of the flattened proof, what it is tied to)."""

_PORTS = _VCS = 2


class _Head:
    """One VC in the proof: its `NextAnswer`, the packet in front of it, and what the engine knows of its request."""

    def __init__(self, number: int, params: RouterParams, answer_bits: int) -> None:
        def signal(name: str, bits: int = 1) -> Signal:
            return Signal(bits, name=f"{name}{number}")

        self.number = number
        self.unit: Any = NextAnswer(route_bits=params.route_bits)
        self.comes, self.tail, self.granted, self.drained = (
            signal(name) for name in ("comes", "tail", "granted", "drained")
        )
        self.new_needs, self.new_dst = signal("new_needs"), signal("new_dst", params.address_bits)
        self.truth = signal("truth", answer_bits)  # what the engine will answer, free until it has accepted
        self.free = [self.comes, self.tail, self.granted, self.drained, self.new_needs, self.new_dst, self.truth]
        # state of the packet
        self.routed, self.needs, self.dst = signal("is_routed"), signal("needs"), signal("dst", params.address_bits)
        self.head_left = signal("head_left")
        # state of its request
        self.requested, self.waits, self.told = signal("requested"), signal("waits"), signal("told")
        self.answer = signal("answer", answer_bits)


class _NextProof(Proof):
    def __init__(self, *, invariants: bool = True) -> None:
        super().__init__()
        self.invariants = invariants  # claim also what the induction needs
        lookup = LookupParams(
            address_bits=12, functions=("arbitrary",), chunk_bits=(3,), comparators=2, entries=4, ways=2, tag_bits=16,
            output_bits=10, request_tag_bits=4, tcam_kind="external",
        )  # fmt: skip
        self.params = p = RouterParams(
            ports=_PORTS, vcs=_VCS, buffer_flits=2, rc="lookup", rc_cycles=1, address_bits=12, width_bits=40,
            tag_bits=2, lookup=lookup, lookahead=LookAhead(0b10),
        )  # fmt: skip
        self.engine: Any = AnyEngine(params=lookup)
        self.dut = NextLookup(params=p, engine=lambda params: self.engine)
        self.heads = [_Head(n, p, 1 + lookup.output_bits) for n in range(_PORTS * _VCS)]
        self.inputs += [*self.engine.shown.values(), *(signal for head in self.heads for signal in head.free)]

    def elaborate(self, platform: object) -> Module:
        """Build engine, heads and claims."""
        m = self.module()
        m.submodules.dut = self.dut
        for head in self.heads:
            self._packet(m, head)
            self._request(m, head)
        heads = self.heads
        m.d.comb += [
            self.dut.asks.eq(Cat(head.unit.asks for head in heads)),
            self.dut.dst.eq(Cat(head.dst for head in heads)),
        ]
        self.claim(m, self._claims(m))
        if self.invariants:
            self.claim(m, self._invariants())
        return m

    def _packet(self, m: Module, head: _Head) -> None:
        """Let a packet come, leave by the switch when it may, and end; or be dropped before it has a route."""
        unit = head.unit
        m.submodules[f"head{head.number}"] = unit
        ended = (head.granted & head.tail) | head.drained
        m.d.comb += [
            unit.routed.eq(head.routed),
            unit.needs.eq(head.needs & head.routed),
            unit.granted.eq(head.granted),
            unit.ended.eq(ended),
            Assume(~head.granted | (head.routed & (head.head_left | unit.may_leave))),
            Assume(~head.drained | ~head.routed),  # what drains never has a candidate
        ]
        with m.If(ended):
            m.d.sync += [head.routed.eq(0), head.head_left.eq(0)]
        with m.Elif(head.routed):
            m.d.sync += head.head_left.eq(head.head_left | head.granted)
        with m.Elif(head.comes):
            m.d.sync += [head.routed.eq(1), head.needs.eq(head.new_needs), head.dst.eq(head.new_dst)]

    def _request(self, m: Module, head: _Head) -> None:
        """Assume of the engine that it answers once, and what it shall."""
        engine, n = self.engine, head.number
        takes = engine.req_valid & engine.req_ready & (engine.req_tag == n)
        tells = engine.resp_valid & (engine.resp_tag == n)
        told = Cat(engine.resp_match, engine.resp_output)
        ended = head.unit.ended
        m.d.comb += Assume(~tells | (head.waits & (told == head.answer)))
        m.d.sync += [
            head.waits.eq((head.waits & ~tells) | takes),
            head.requested.eq(~ended & (head.requested | takes)),
            head.told.eq(~ended & (head.told | tells)),
        ]
        with m.If(takes):
            m.d.sync += head.answer.eq(head.truth)

    def _field(self, answer: Value) -> Value:
        """Return field `route` for an answer (match, above it the output), as the definition says it."""
        p = self.params
        match, port, route_class = answer[0], answer[1 : 1 + PORT_BITS], answer[1 + PORT_BITS :][:CLASS_BITS]
        none = Const(p.ports, p.port_field_bits)
        here = match & (port < p.ports)
        return Cat(Mux(here, port[: p.port_field_bits], none), Mux(match, route_class, 0)[:CLASS_BITS])

    def _claims(self, m: Module) -> Iterator[Value]:
        engine, dut = self.engine, self.dut
        yield engine.resp_ready == 1
        yield engine.req_valid == dut.asks.any()
        pointer = Signal(range(len(self.heads)))  # of the definition
        self.helps: list[Value] = []
        for head in self.heads:
            n, unit = head.number, head.unit
            accepted = dut.accepted[n]
            m.d.comb += [
                unit.accepted.eq(accepted),
                unit.answered.eq(dut.answered[n]),
                unit.answer.eq(dut.route),
            ]
            takes = engine.req_valid & engine.req_ready & (engine.req_tag == n)
            yield accepted == takes  # one at a time, by its own name, with its own destination
            yield ~accepted | (unit.asks & (engine.req_dst == head.dst))
            yield dut.answered[n] == (engine.resp_valid & (engine.resp_tag == n))
            # it asks from the first cycle on until it is accepted, once for every packet, if it needs an answer
            yield unit.asks == (head.routed & head.needs & ~head.requested)
            # its answer comes once, to the packet that asked
            yield ~head.waits | (head.routed & head.needs & head.requested & ~head.told & ~head.head_left)
            yield ~head.told | (head.requested & ~head.waits)
            yield ~head.requested | (head.routed & (head.waits | head.told))
            # a head leaves from the cycle of its answer on, and with it
            now = engine.resp_valid & (engine.resp_tag == n)
            ready = ~head.needs | head.told | now
            yield ~(head.routed & ~head.head_left) | (unit.may_leave == ready)
            yield ~head.head_left | ~head.needs | head.told
            yield ~head.told | (unit.route == self._field(head.answer))
            yield ~now | (dut.route == self._field(head.answer))
            yield ~(head.head_left & ~head.routed)
            yield from self._fair(m, head, pointer)
        self.pointer = pointer

    def _invariants(self) -> Iterator[Value]:
        """Claim what registers hold, so that the induction succeeds."""
        yield from self.helps
        for head in self.heads:
            unit = head.unit
            yield (unit.asked == head.requested) & (unit.opened == head.told | head.head_left)
        code, pointer = self.dut.turn.at_or_after, self.pointer  # no bit is the same as all
        yield (code == ~((1 << pointer) - 1)[: len(self.heads)]) | ((pointer == 0) & (code == 0))

    def _fair(self, m: Module, head: _Head, pointer: Signal) -> Iterator[Value]:
        """Claim that no VC is passed by more often than there are others."""
        n, count = head.number, len(self.heads)
        asks, accepted = self.dut.asks[n], self.dut.accepted[n]
        passed = Signal(range(count + 1), name=f"passed{n}")
        m.d.sync += passed.eq(Mux(asks & ~accepted, passed + self.dut.accepted.any(), 0))
        distance = (n - pointer)[: len(pointer)]  # modulo a power of two
        yield passed < count
        self.helps.append(passed + distance < count)
        with m.If(accepted):
            m.d.sync += pointer.eq(n + 1)


def prove_next_lookup(*, mutant: str | None = None, timeout_s: float = 300) -> bool:
    """Prove that heads leave with the answers about their destinations, and that VCs are served in turns.

    Parameters
    ----------
    mutant : str, optional
        Key of `NEXT_MUTANTS`: a fault with which the proof must fail.
    timeout_s : float
        Limit in seconds.

    Returns
    -------
    bool
        Whether the proof succeeded.
    """
    proof = _NextProof()
    fault = NEXT_MUTANTS[mutant] if mutant else None
    return prove(proof, proof.inputs, mutant=fault, timeout_s=timeout_s)


def refute_next_lookup(steps: int, mutant: str | None = None, *, timeout_s: float = 300) -> bool:
    """Look for a run of at most `steps` cycles from reset in which engine or heads do not what they shall.

    The other parameters are those of `prove_next_lookup`.
    """
    proof = _NextProof(invariants=False)
    return refute(
        proof, proof.inputs, steps, mutant=NEXT_MUTANTS[mutant] if mutant else None,
        timeout_s=timeout_s,
    )  # fmt: skip
