"""Several iterations of iSLIP in a cycle."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Signal, Value

from hopforge.hw.allocation.allocator import Allocator
from hopforge.hw.parts.arbiter import RoundsArbiter
from hopforge.hw.parts.shared import shared

__all__ = ["IslipAllocator"]


class IslipAllocator(Allocator):
    """`SeparableAllocator` whose outputs pick first, again and again: what is left unmatched goes on in the same cycle.

    All iterations begin at the same pointers. Grants of the first one move them; with `refusable` the grants of every
    iteration do that are used (docs/definitions/router.md, Speedups and iterations).

    Parameters
    ----------
    inputs, outputs : int
        Size of the matrix.
    iterations : int
        How often what is left is matched.
    refusable : bool
        See `Allocator`.

    Raises
    ------
    ValueError
        A number below 1.
    """

    def __init__(self, *, inputs: int, outputs: int, iterations: int, refusable: bool = True):
        super().__init__(inputs=inputs, outputs=outputs, refusable=refusable)
        self.iterations = iterations
        self.input_arbiters = [RoundsArbiter(width=outputs, rounds=iterations) for _ in range(inputs)]
        self.output_arbiters = [RoundsArbiter(width=inputs, rounds=iterations) for _ in range(outputs)]

    def elaborate(self, platform: object) -> Module:
        """Put the iterations one behind the other."""
        m = Module()
        of_inputs, of_outputs = self.input_arbiters, self.output_arbiters
        for name, arbiters in (("input", of_inputs), ("output", of_outputs)):
            for n, arbiter in enumerate(arbiters):
                m.submodules[f"{name}{n}"] = shared(arbiter, platform, arbiter.width, self.iterations)
        left: Value = self.requests
        matched: list[Signal] = []
        of_row: list[Signal] = []
        for j in range(self.iterations):
            picked, grants = (Signal.like(self.requests, name=f"{name}{j}") for name in ("picked", "matched"))
            row, column = Signal(self.inputs, name=f"row{j}"), Signal(self.outputs, name=f"column{j}")
            m.d.comb += [arbiter.requests[j].eq(self._column(left, o)) for o, arbiter in enumerate(of_outputs)]
            m.d.comb += [arbiter.requests[j].eq(self._row(picked, n)) for n, arbiter in enumerate(of_inputs)]
            m.d.comb += [
                picked.eq(Cat(arbiter.grant[j][n] for n in range(self.inputs) for arbiter in of_outputs)),
                grants.eq(Cat(arbiter.grant[j] for arbiter in of_inputs)),
                row.eq(self._any_by_row(picked)),  # an input that is offered something takes one
                column.eq(self._any_by_column(grants)),
            ]
            matched.append(grants)
            of_row.append(row)
            if j + 1 < self.iterations:
                unmatched = Signal.like(self.requests, name=f"left{j + 1}")
                m.d.comb += unmatched.eq(
                    Cat(self._row(left, n) & ~column & ~row[n].replicate(self.outputs) for n in range(self.inputs))
                )
                left = unmatched
        m.d.comb += [
            self.grants.eq(reduce(or_, matched)),
            self.row_granted.eq(reduce(or_, of_row)),
            self.column_granted.eq(self._any_by_column(self.grants)),
        ]
        moving = self.iterations if self.refusable else 1
        for n, arbiter in enumerate(of_inputs):
            used = self.taken[n] if self.refusable else 1
            m.d.comb += arbiter.advance.eq(Cat(row[n] & used for row in of_row[:moving]))
        for o, arbiter in enumerate(of_outputs):
            rows = self.taken if self.refusable else ~Const(0, self.inputs)
            m.d.comb += arbiter.advance.eq(Cat((self._column(word, o) & rows).any() for word in matched[:moving]))
        return m
