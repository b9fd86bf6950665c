"""Proofs about arbiters and allocators.

Arbiter: a grant is a request; at most one; one if there is a request; while a requester waits nobody else is granted
twice, so that it waits for at most all the others. By induction over one cycle: whoever has been granted while *i*
waited does not go before *i* now.

Allocator: a grant is a request; at most one per input and per output; a wavefront leaves no request whose input and
output are both idle; and a request that stays is granted within S·(S + 1) cycles (wavefront: S), whatever the
priorities are when it begins, if the other requests stay until they are granted as well and all grants are used. (S²
is too few for S = 3 and round-robin arbiters in some states of the pointers: a request that comes later can go before
one that waits.)

Switch allocator: at most one flit per input and per output, of a VC that asked for that output, a speculative one
only if it is confirmed; and regular requests never go empty-handed.

The mutants are faults with which the proofs must fail: (wire of the flattened proof, what it is tied to).
"""

from collections.abc import Iterator
from itertools import permutations

from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal, Value

from hopforge.gen.formal.induction import Proof, at_most_one, prove
from hopforge.hw.allocation.allocator import SeparableAllocator, WavefrontAllocator, allocator
from hopforge.hw.allocation.switch_allocator import SwitchAllocator
from hopforge.hw.parts.arbiter import ARBITERS, Arbiter, RoundRobinArbiter, TwoLevelRoundRobinArbiter

__all__ = [
    "ALLOCATOR_MUTANTS",
    "ARBITER_MUTANTS",
    "SWITCH_MUTANTS",
    "prove_allocator",
    "prove_arbiter",
    "prove_switch_allocator",
]

ARBITER_MUTANTS = {
    "it never moves on": ("round_robin", "dut.following", "4'b0000"),
    "it always grants requester 0": ("round_robin", "dut.grant", "4'b0001"),
    "nobody is preferred": ("round_robin", "dut.preferred", "4'b0000"),
    "the group of the last grant is lost": ("two_level", "dut.last_group", "2'b00"),
    "a group does not see the ones before it": ("two_level", "dut.asking_above", "2'b00"),
    "a pair never changes places": ("matrix", "dut.before_0_1", "1'b1"),
    "nobody but requester 2 is refused": ("matrix", "dut.grant", "4'b1011"),
}
"""Faults of an arbiter of 4."""

ALLOCATOR_MUTANTS = {
    "an output never moves on": ("output_first", "dut.output0.advance", "1'b0"),
    "an input never moves on": ("output_first", "dut.input0.advance", "1'b0"),
    "inputs do not hear what outputs picked": ("output_first", "dut.of_outputs", "9'b111111111"),
    "outputs do not hear what inputs picked": ("input_first", "dut.of_inputs", "9'b111111111"),
    "an output favours nobody": ("input_first", "dut.output1.advance", "1'b0"),
    "the diagonal stands still": ("wavefront", "dut.used", "1'b0"),
    "a row stays free": ("wavefront", "dut.diagonal0.row_left", "3'b111"),
    "a column stays free": ("wavefront", "dut.diagonal0.column_left", "3'b111"),
    "a diagonal is dead": ("wavefront", "dut.diagonal1.grants", "3'b000"),
}
"""Faults of an allocator of 3."""

SWITCH_MUTANTS = {
    "a guess does not see a busy output": ("dut.regular_matched", "4'b0000"),
    "a guess is sent on an idle input": ("dut.used", "2'b11"),
}
"""Faults of a switch allocator of 2 ports with 2 VCs."""


def _total_order(arbiter: Arbiter) -> Iterator[Value]:
    """Yield what makes the priorities of an arbiter an order."""
    if isinstance(arbiter, RoundRobinArbiter):
        for i in range(1, arbiter.width):
            yield ~arbiter.at_or_after[i - 1] | arbiter.at_or_after[i]
        return
    if isinstance(arbiter, TwoLevelRoundRobinArbiter):
        for code in (arbiter.groups_after, arbiter.members_after):
            yield ~code[0]
            for i in range(1, len(code)):
                yield ~code[i - 1] | code[i]
        return
    for i, j, k in permutations(range(arbiter.width), 3):
        yield ~(arbiter.before(i, j) & arbiter.before(j, k)) | arbiter.before(i, k)


class _ArbiterProof(Proof):
    def __init__(self, kind: str, width: int) -> None:
        super().__init__()
        self.dut = (
            TwoLevelRoundRobinArbiter(groups=width // 2, group_width=2)
            if kind == "two_level"
            else ARBITERS[kind](width=width)
        )
        self.inputs += [self.dut.requests, self.dut.advance]

    def elaborate(self, platform: object) -> Module:
        m = self.module()
        m.submodules.dut = dut = self.dut
        numbers = range(dut.width)
        m.d.comb += [
            Assert((dut.grant & ~dut.requests) == 0),
            Assert(at_most_one(dut.grant)),
            Assert(dut.grant.any() == dut.requests.any()),
        ]
        for i in numbers:
            overtaken = Signal(dut.width, name=f"overtaken{i}")  # by whom since i has been waiting
            waits = dut.requests[i] & ~dut.grant[i]
            used = dut.grant & dut.advance.replicate(dut.width)
            m.d.comb += Assert((overtaken & used & waits.replicate(dut.width)) == 0)
            m.d.sync += overtaken.eq((overtaken | used) & waits.replicate(dut.width))
            for j in numbers:
                if j != i:
                    m.d.comb += Assert(~overtaken[j] | dut.before(i, j))
            m.d.comb += Assert(~overtaken[i])
        m.d.comb += [Assert(holds) for holds in _total_order(dut)]
        return m


class _AllocatorProof(Proof):
    def __init__(self, kind: str, arbiter: str, size: int) -> None:
        super().__init__()
        self.kind = kind
        self.size = size
        self.limit = size if kind == "wavefront" else size * (size + 1)
        self.dut = allocator(kind, size=size, arbiter=arbiter)
        self.pair = Signal(size * size)  # any one of the requests
        self.inputs += [self.dut.requests, self.pair]

    def elaborate(self, platform: object) -> Module:
        m = self.module()
        m.submodules.dut = dut = self.dut
        size = self.size
        m.d.comb += [dut.taken.eq(~0), Assert((dut.grants & ~dut.requests) == 0)]
        rows = [dut.grants[n * size : (n + 1) * size] for n in range(size)]
        columns = [Cat(dut.grants[n * size + o] for n in range(size)) for o in range(size)]
        m.d.comb += [Assert(at_most_one(word)) for word in (*rows, *columns)]
        if self.kind == "wavefront":
            for n in range(size):
                for o in range(size):
                    m.d.comb += Assert(~dut.requests[n * size + o] | rows[n].any() | columns[o].any())

        if isinstance(dut, WavefrontAllocator):
            m.d.comb += Assert(dut.diagonal < size)
        if isinstance(dut, SeparableAllocator):
            for arbiter in (*dut.input_arbiters, *dut.output_arbiters):
                m.d.comb += [Assert(holds) for holds in _total_order(arbiter)]
        started = Signal()
        before = Signal.like(self.pair)
        owed = Signal.like(self.pair)
        waited = Signal(range(self.limit + 1))
        waits = (self.pair & dut.requests & ~dut.grants).any()
        m.d.sync += [
            started.eq(1),
            before.eq(self.pair),
            owed.eq(dut.requests & ~dut.grants),
            waited.eq(Mux(waits, Mux(waited == self.limit, waited, waited + 1), 0)),
        ]
        m.d.comb += [
            Assume(~started | (before == self.pair)),
            Assume(self.pair.any() & at_most_one(self.pair)),
            Assume((owed & ~dut.requests) == 0),
            Assert(waited != self.limit),
        ]
        return m


class _SwitchProof(Proof):
    def __init__(self, kind: str, ports: int, vcs: int) -> None:
        super().__init__()
        self.dut = SwitchAllocator(ports=ports, vcs=vcs, kind=kind, speculation=True)
        self.inputs += [self.dut.requests, self.dut.speculative, self.dut.confirmed]

    def elaborate(self, platform: object) -> Module:
        m = self.module()
        m.submodules.dut = dut = self.dut
        ports, vcs = dut.ports, dut.vcs
        regular_sends = []
        for n in range(ports * vcs):
            asked = dut.requests[n * ports : (n + 1) * ports]
            guessed = dut.speculative[n * ports : (n + 1) * ports]
            to = dut.grants[n // vcs * ports : (n // vcs + 1) * ports]
            m.d.comb += [
                Assume(at_most_one(asked | guessed)),
                Assume(~(asked.any() & guessed.any())),  # a VC is active, or it waits for an output VC
                Assert(~dut.granted_vc[n] | ((to & asked).any() | ((to & guessed).any() & dut.confirmed[n]))),
            ]
            regular_sends.append(dut.granted_vc[n] & asked.any())
        m.d.comb += Assert(~dut.requests.any() | Cat(regular_sends).any())
        for i in range(ports):
            row = dut.grants[i * ports : (i + 1) * ports]
            senders = dut.granted_vc[i * vcs : (i + 1) * vcs]
            column = Cat(dut.grants[n * ports + i] for n in range(ports))
            m.d.comb += [Assert(at_most_one(word)) for word in (row, column, senders)]
            m.d.comb += Assert(row.any() == senders.any())
        return m


def prove_arbiter(kind: str, width: int = 4, *, mutant: str | None = None) -> bool:
    """Prove an arbiter.

    Parameters
    ----------
    kind : str
        ``round_robin``, ``two_level`` (round-robin, groups of 2) or ``matrix``.
    width : int
        Requesters, at least 2; for ``two_level`` an even number.
    mutant : str, optional
        Key of `ARBITER_MUTANTS`, whose kind it must be.

    Returns
    -------
    bool
        Whether the proof succeeded.

    Raises
    ------
    YosysError
        If yosys fails otherwise, or takes too long.
    """
    proof = _ArbiterProof(kind, width)
    return prove(proof, proof.inputs, mutant=ARBITER_MUTANTS[mutant][1:] if mutant else None)


def prove_allocator(kind: str, arbiter: str = "round_robin", size: int = 3, *, mutant: str | None = None) -> bool:
    """Prove an allocator.

    Parameters
    ----------
    kind : str
        ``input_first``, ``output_first`` or ``wavefront``.
    arbiter : str
        ``round_robin`` or ``matrix``.
    size : int
        S, at least 2.
    mutant : str, optional
        Key of `ALLOCATOR_MUTANTS`, whose kind it must be.

    Returns
    -------
    bool
        Whether the proof succeeded.

    Raises
    ------
    YosysError
        If yosys fails otherwise, or takes too long.
    """
    proof = _AllocatorProof(kind, arbiter, size)
    fault = ALLOCATOR_MUTANTS[mutant][1:] if mutant else None
    return prove(proof, proof.inputs, steps=proof.limit + 1, mutant=fault)


def prove_switch_allocator(kind: str, ports: int = 2, vcs: int = 2, *, mutant: str | None = None) -> bool:
    """Prove a switch allocator with speculation.

    Parameters
    ----------
    kind : str
        ``input_first``, ``output_first`` or ``wavefront``.
    ports, vcs : int
        Its size.
    mutant : str, optional
        Key of `SWITCH_MUTANTS`.

    Returns
    -------
    bool
        Whether the proof succeeded.

    Raises
    ------
    YosysError
        If yosys fails otherwise, or takes too long.
    """
    proof = _SwitchProof(kind, ports, vcs)
    return prove(proof, proof.inputs, mutant=SWITCH_MUTANTS[mutant] if mutant else None)
