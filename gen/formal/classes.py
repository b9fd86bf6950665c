"""Proofs about classes of traffic at the switch (docs/definitions/traffic-classes.md).

Strict: what is passed on was asked for; a request is dropped only if one of a higher priority asks for the same output
or comes from the same input; none that is passed on stands beside a better one, at its output or its input; so the
highest priority that asks is never dropped. Weighted: a request of a class that has flits left is passed on, another
only if there is none such at its output, so that no output is left idle; no class ever has more than the flits of the
rounds that are kept, whatever is sent; and a class that has flits left loses one by each flit that it sends.

The mutants are faults with which the proofs must fail: (wire of the flattened proof, what it is tied to).
"""

from typing import Literal

from amaranth.hdl import Assert, Assume, Cat, Const, Module, Signal, Value

from hopforge.gen.formal.induction import Proof, at_most_one, prove
from hopforge.hw.allocation.class_filter import ClassFilter
from hopforge.model.router.quality import ROUNDS_KEPT, Quality

__all__ = ["CLASS_MUTANTS", "prove_classes"]

_PORTS, _OF_VC = 2, (0, 1, 2, 1)
_PRIORITIES, _WEIGHTS = (2, 0, 1), (1, 2, 3)

CLASS_MUTANTS = {
    "an output does not see a higher priority": ("strict", "dut.beaten0_0", "1'b0"),
    "an output drops what is as good": ("strict", "dut.beaten1_1", "1'b1"),
    "classes without flits left go first": ("weighted", "dut.some", "2'b00"),
    "an output without flits left is idle": ("weighted", "dut.some", "2'b11"),
    "a round never begins": ("weighted", "dut.begins0", "1'b0"),
}
"""Faults of the filter of 2 ports with 4 VCs of 3 classes."""


class _ClassProof(Proof):
    def __init__(self, kind: str) -> None:
        super().__init__()
        kinds: dict[str, Literal["strict", "weighted"]] = {"strict": "strict", "weighted": "weighted"}
        quality = Quality(kind=kinds[kind], of_vc=_OF_VC, priorities=_PRIORITIES, weights=_WEIGHTS)
        self.dut = ClassFilter(ports=_PORTS, vcs=len(_OF_VC), quality=quality)
        self.inputs += [self.dut.requests, self.dut.grants, self.dut.granted_vc]

    def _at(self, word: Value, i: int, v: int, o: int) -> Value:
        return word[(i * len(_OF_VC) + v) * _PORTS + o]

    def elaborate(self, platform: object) -> Module:
        m = self.module()
        m.submodules.dut = dut = self.dut
        vcs = len(_OF_VC)
        for n in range(_PORTS * vcs):
            m.d.comb += Assume(at_most_one(dut.requests[n * _PORTS : (n + 1) * _PORTS]))
        m.d.comb += Assert((dut.due & ~dut.requests) == 0)
        if dut.quality.kind == "strict":
            self._strict(m)
        else:
            self._weighted(m)
        return m

    def _strict(self, m: Module) -> None:
        dut, level = self.dut, [_PRIORITIES[c] for c in _OF_VC]
        vcs, ports = range(len(_OF_VC)), range(_PORTS)
        for i in ports:
            for v in vcs:
                at_input = [(i, w, o) for w in vcs for o in ports if level[w] > level[v]]
                better_beside = Cat(self._at(dut.requests, *each) for each in at_input).any()
                better_due = Cat(self._at(dut.due, *each) for each in at_input).any()
                for o in ports:
                    at_output = [(j, w, o) for j in ports for w in vcs if level[w] > level[v]]
                    better = Cat(self._at(dut.requests, *each) for each in at_output).any()
                    asks, due = (self._at(word, i, v, o) for word in (dut.requests, dut.due))
                    m.d.comb += [Assert(~due | ~(better | better_due)), Assert(~asks | due | better | better_beside)]

    def _weighted(self, m: Module) -> None:
        dut = self.dut
        vcs, ports = range(len(_OF_VC)), range(_PORTS)
        started = Signal()
        m.d.sync += started.eq(1)
        for i in ports:
            senders = dut.granted_vc[i * len(_OF_VC) : (i + 1) * len(_OF_VC)]
            row = dut.grants[i * _PORTS : (i + 1) * _PORTS]
            m.d.comb += [Assume(at_most_one(senders)), Assume(at_most_one(row)), Assume(row.any() == senders.any())]
        for o in ports:
            m.d.comb += Assume(at_most_one(Cat(dut.grants[i * _PORTS + o] for i in ports)))
            has_left = [left != 0 for left in dut.left[o]]
            asks = Cat(self._at(dut.requests, i, v, o) for i in ports for v in vcs)
            some = Cat(self._at(dut.requests, i, v, o) & has_left[_OF_VC[v]] for i in ports for v in vcs).any()
            passed = Cat(self._at(dut.due, i, v, o) for i in ports for v in vcs)
            m.d.comb += Assert(asks.any() == passed.any())
            for i in ports:
                for v in vcs:
                    asked, due = (self._at(word, i, v, o) for word in (dut.requests, dut.due))
                    m.d.comb += Assert(due == (asked & (has_left[_OF_VC[v]] | ~some)))
            for c, left in enumerate(dut.left[o]):
                sends = Cat(
                    dut.grants[i * _PORTS + o] & dut.granted_vc[i * len(_OF_VC) + v]
                    for i in ports for v in vcs if _OF_VC[v] == c
                ).any()  # fmt: skip
                # its own flits while it has some, and with the first one beyond them a new round
                before, sent, others = Signal.like(left), Signal(), Signal()
                begun = Cat(
                    dut.grants[i * _PORTS + o] & dut.granted_vc[i * len(_OF_VC) + v] & ~has_left[_OF_VC[v]]
                    for i in ports for v in vcs
                ).any()  # fmt: skip
                m.d.sync += [before.eq(left), sent.eq(sends), others.eq(begun)]
                most = Const(ROUNDS_KEPT * _WEIGHTS[c])
                m.d.comb += [
                    Assert(left <= most),
                    Assert(~started | others | (left + sent == before)),
                    Assert(~started | ~others | (left + sent == most) | (left + sent == before + _WEIGHTS[c])),
                ]


def prove_classes(kind: str, *, mutant: str | None = None) -> bool:
    """Prove the filter of requests of classes of traffic.

    Parameters
    ----------
    kind : str
        ``strict`` or ``weighted``.
    mutant : str, optional
        Key of `CLASS_MUTANTS`, whose kind it must be.

    Returns
    -------
    bool
        Whether the proof succeeded.

    Raises
    ------
    YosysError
        If yosys fails otherwise, or takes too long.
    """
    proof = _ClassProof(kind)
    return prove(proof, proof.inputs, steps=2, mutant=CLASS_MUTANTS[mutant][1:] if mutant else None)
