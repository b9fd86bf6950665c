"""Proofs about the table of Q-adaptive, for every estimate and every time.

Rule: the answer's port is that of the definition, written with a multiplication; the least estimate is one of the row
and no other is less. Learning: a new estimate lies between the old one and the time told, the product is the rounded
one, and the state "no link" is never reached. No update is lost: a copy of one estimate that learns in one step is what
the hardware has in its pipeline.

The mutants are faults with which the proofs must fail: (wire of the flattened proof, what it is tied to).
"""

from amaranth.hdl import Assert, Cat, Const, Module, Mux, Signal, signed

from hopforge.gen.formal.induction import Proof, at_most_one, prove
from hopforge.hw.agents.q_table import least_of, times
from hopforge.model.numbers.q_rule import RATE_BITS

__all__ = ["MINIMUM_MUTANTS", "prove_minimum", "prove_product"]

MINIMUM_MUTANTS = {"the second of two is never less": ("least_less_0_0", "1'b0")}
"""Faults of the tree of comparisons."""


class _MinimumProof(Proof):
    def __init__(self, columns: int, value_bits: int) -> None:
        super().__init__()
        self.words = [Signal(value_bits, name=f"word{n}") for n in range(columns)]
        self.inputs += self.words

    def elaborate(self, platform: object) -> Module:
        m = self.module()
        found = least_of(m, list(self.words), "least")
        chosen = Signal(len(self.words))
        m.d.comb += chosen.eq(Cat(found.chosen))
        m.d.comb += [Assert(chosen.any()), Assert(at_most_one(chosen))]
        for n, word in enumerate(self.words):
            m.d.comb += [Assert(found.value <= word), Assert(~chosen[n] | (word == found.value))]
            for before in self.words[:n]:  # the first of equal ones
                m.d.comb += Assert(~chosen[n] | (word < before))
        return m


class _ProductProof(Proof):
    """`times` is the product, and a step of learning ends between the old estimate and the time told."""

    def __init__(self, value_bits: int, rate: int, broken: bool) -> None:
        super().__init__()
        self.rate, self.broken = rate, broken
        self.old, self.time = Signal(value_bits), Signal(value_bits)
        self.shift = Signal(RATE_BITS)
        self.inputs += [self.old, self.time, self.shift]

    def elaborate(self, platform: object) -> Module:
        m = self.module()
        width = len(self.old) + RATE_BITS + 2
        change, product, wanted = Signal(signed(len(self.old) + 1)), Signal(signed(width)), Signal(signed(width))
        new = Signal(len(self.old))
        m.d.comb += [
            change.eq(self.time - self.old),
            product.eq(times(change, self.rate)),
            wanted.eq(change * Const(self.rate + self.broken, RATE_BITS + 1)),
            Assert(product == wanted),
            new.eq(self.old + ((product + self.shift) >> RATE_BITS)),
            Assert(Mux(change < 0, (new >= self.time) & (new <= self.old), (new <= self.time) & (new >= self.old))),
        ]
        return m


def prove_minimum(columns: int, value_bits: int, mutant: str | None = None) -> bool:
    """Prove that the tree finds the least word, and of equal ones the first.

    Parameters
    ----------
    columns, value_bits : int
        Words, and bits of each.
    mutant : str, optional
        Key of `MINIMUM_MUTANTS`.
    """
    proof = _MinimumProof(columns, value_bits)
    return prove(proof, proof.inputs, mutant=None if mutant is None else MINIMUM_MUTANTS[mutant])


def prove_product(value_bits: int, rate: int, *, broken: bool = False) -> bool:
    """Prove that shifted additions are the product with a rate, and that learning never goes past its target.

    Parameters
    ----------
    value_bits : int
        Of an estimate.
    rate : int
        In 1024ths, 0 … 1024.
    broken : bool
        Compare with the next rate: the proof must fail.
    """
    proof = _ProductProof(value_bits, rate, broken)
    return prove(proof, proof.inputs)
