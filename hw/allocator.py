"""Allocators: a matching between inputs that request and outputs that can be given."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.arbiter import ARBITERS, GROUP_ARBITERS
from hopforge.hw.shared import shared

__all__ = ["ALLOCATORS", "Allocator", "SeparableAllocator", "WavefrontAllocator", "allocator"]

ALLOCATORS = ("input_first", "output_first", "wavefront")
"""Names that a configuration can give."""


class Allocator(wiring.Component):
    """Grant requests such that no input and no output has more than one grant.

    Combinational from ``requests`` to ``grants``. Bit n·outputs + m stands for input n and output m. ``taken`` says,
    for each input, that its grant is used; priorities change at the end of a cycle for those grants only.

    Parameters
    ----------
    inputs, outputs : int
        Size of the matrix.

    Raises
    ------
    ValueError
        A size below 1.
    """

    requests: Signal
    grants: Signal
    taken: Signal

    def __init__(self, *, inputs: int, outputs: int):
        for name, value in (("inputs", inputs), ("outputs", outputs)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        self.inputs = inputs
        self.outputs = outputs
        size = inputs * outputs
        super().__init__({"requests": In(size), "grants": Out(size), "taken": In(inputs)})

    def _row(self, word: Value, n: int) -> Value:
        return word[n * self.outputs : (n + 1) * self.outputs]

    def _column(self, word: Value, m: int) -> Value:
        return Cat(word[n * self.outputs + m] for n in range(self.inputs))


class SeparableAllocator(Allocator):
    """Two ranks of arbiters: one side picks, the other side picks among what it has been offered.

    An arbiter moves on only when its pick is a grant that is used (the rule of iSLIP).

    Parameters
    ----------
    inputs, outputs : int
        Size of the matrix.
    first : str
        Side that picks first: ``input`` or ``output``.
    arbiter : str
        ``round_robin`` or ``matrix``.
    group : int
        If not 0: the requests of an input lie in one group of this many neighbouring outputs.
    single_requests : bool
        An input never requests more than one output, so that it needs no arbiter.

    Attributes
    ----------
    input_arbiters, output_arbiters : list of Arbiter
        One per input (none with `single_requests`) and per output.

    Raises
    ------
    ValueError
        A size below 1, an unknown side or arbiter, a group that does not divide the outputs.
    """

    def __init__(
        self,
        *,
        inputs: int,
        outputs: int,
        first: str,
        arbiter: str = "round_robin",
        group: int = 0,
        single_requests: bool = False,
    ):
        if first not in ("input", "output"):
            raise ValueError(f"first must be one of input, output, not {first!r}")
        if arbiter not in ARBITERS:
            raise ValueError(f"arbiter must be one of {', '.join(ARBITERS)}, not {arbiter!r}")
        self.first = first
        self.arbiter = arbiter
        if group and outputs % group:
            raise ValueError(f"group must divide outputs={outputs}, not {group}")
        self.group = group
        self.single_requests = single_requests
        super().__init__(inputs=inputs, outputs=outputs)
        kind = ARBITERS[arbiter]
        self.input_arbiters: list[Any] = []
        if group:
            grouped = GROUP_ARBITERS[arbiter]
            self.input_arbiters += [grouped(groups=outputs // group, group_width=group) for _ in range(inputs)]
        elif not single_requests:
            self.input_arbiters += [kind(width=outputs) for _ in range(inputs)]
        self.output_arbiters = [kind(width=inputs) for _ in range(outputs)]

    def elaborate(self, platform: object) -> Module:
        """Connect the two ranks."""
        m = Module()
        of_inputs = Signal.like(self.requests)  # what the inputs pick
        of_outputs = Signal.like(self.requests)
        if self.first == "input":
            self._input_arbiters(m, platform, self.requests, of_inputs)
            self._output_arbiters(m, platform, of_inputs, of_outputs)
            m.d.comb += self.grants.eq(of_outputs)
        else:
            self._output_arbiters(m, platform, self.requests, of_outputs)
            self._input_arbiters(m, platform, of_outputs, of_inputs)
            m.d.comb += self.grants.eq(of_inputs)
        return m

    def _input_arbiters(self, m: Module, platform: object, offered: Value, picked: Value) -> None:
        if self.single_requests:
            m.d.comb += picked.eq(offered)
            return
        for n, arbiter in enumerate(self.input_arbiters):
            m.submodules[f"input{n}"] = shared(arbiter, platform, self.outputs, self.group)
            m.d.comb += [
                arbiter.requests.eq(self._row(offered, n)),
                self._row(picked, n).eq(arbiter.grant),
                arbiter.advance.eq(self._row(self.grants, n).any() & self.taken[n]),
            ]

    def _output_arbiters(self, m: Module, platform: object, offered: Value, picked: Value) -> None:
        for o, arbiter in enumerate(self.output_arbiters):
            m.submodules[f"output{o}"] = shared(arbiter, platform, self.inputs)
            m.d.comb += [
                arbiter.requests.eq(self._column(offered, o)),
                self._column(picked, o).eq(arbiter.grant),
                arbiter.advance.eq((self._column(self.grants, o) & self.taken).any()),
            ]


class WavefrontAllocator(Allocator):
    """Grant along the diagonals (n + m) mod S, beginning with the diagonal d, whatever is still unmatched.

    The matching is maximal. If a grant is used, d (0 after reset) moves to the next diagonal, modulo S. The rows are
    rotated by d, so that the order of the cells is fixed and no combinational loop exists.

    Parameters
    ----------
    size : int
        S, the number of inputs and of outputs.

    Attributes
    ----------
    diagonal : Signal
        d.
    """

    def __init__(self, *, size: int):
        self.size = size
        super().__init__(inputs=size, outputs=size)
        self.diagonal = Signal(max(1, ceil_log2(size)))

    def elaborate(self, platform: object) -> Module:
        """Rotate, match, rotate back."""
        m = Module()
        size, diagonal = self.size, self.diagonal
        rows = self._rotated(m, [self._row(self.requests, n) for n in range(size)], diagonal, step=1)
        matched: list[list[Value]] = [[Const(0, 1)] * size for _ in range(size)]
        row_free: list[Value] = [Const(1, 1)] * size
        column_free: list[Value] = [Const(1, 1)] * size
        for k in range(size):
            for n in range(size):
                o = (k - n) % size
                grant = Signal(name=f"cell_{n}_{o}")
                row_left = Signal(name=f"row_left_{n}_{o}")
                column_left = Signal(name=f"column_left_{n}_{o}")
                m.d.comb += [
                    grant.eq(rows[n][o] & row_free[n] & column_free[o]),
                    row_left.eq(row_free[n] & ~rows[n][o] | row_free[n] & ~column_free[o]),
                    column_left.eq(column_free[o] & ~rows[n][o] | column_free[o] & ~row_free[n]),
                ]
                matched[n][o], row_free[n], column_free[o] = grant, row_left, column_left
        granted = self._rotated(m, [Cat(*row) for row in matched], diagonal, step=-1)
        m.d.comb += self.grants.eq(Cat(*granted))
        used = Signal()
        m.d.comb += used.eq(Cat(self._row(self.grants, n).any() & self.taken[n] for n in range(size)).any())
        if size > 1:
            with m.If(used):
                m.d.sync += diagonal.eq(Mux(diagonal == size - 1, 0, diagonal + 1))
        return m

    def _rotated(self, m: Module, rows: Sequence[Value], diagonal: Value, *, step: int) -> Sequence[Value]:
        """Return rows of which number n is the row n + step·diagonal."""
        size = self.size
        for bit in range(ceil_log2(size)):
            distance = step << bit
            stage = [Signal(size, name=f"rotated_{'up' if step > 0 else 'down'}{bit}_{n}") for n in range(size)]
            for n, row in enumerate(stage):
                m.d.comb += row.eq(Mux(diagonal[bit], rows[(n + distance) % size], rows[n]))
            rows = stage
        return rows


def allocator(kind: str, *, size: int, arbiter: str = "round_robin", group: int = 0) -> Allocator:
    """Return a square allocator.

    Parameters
    ----------
    kind : str
        ``input_first``, ``output_first`` or ``wavefront``.
    size : int
        Inputs, and outputs.
    arbiter : str
        ``round_robin`` or ``matrix``; a wavefront has no arbiters.
    group : int
        See `SeparableAllocator`.

    Raises
    ------
    ValueError
        An unknown name, a size below 1.
    """
    if kind not in ALLOCATORS:
        raise ValueError(f"kind must be one of {', '.join(ALLOCATORS)}, not {kind!r}")
    if kind == "wavefront":
        return WavefrontAllocator(size=size)
    first = kind.removesuffix("_first")
    return SeparableAllocator(inputs=size, outputs=size, first=first, arbiter=arbiter, group=group)
