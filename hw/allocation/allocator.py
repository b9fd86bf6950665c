"""Allocators: a matching between inputs that request and outputs that can be given."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.parts.arbiter import ARBITERS, Arbiter
from hopforge.hw.parts.shared import place, shared

__all__ = ["ALLOCATORS", "Allocator", "SeparableAllocator", "WavefrontAllocator", "allocator", "check_iterations"]

ALLOCATORS = ("input_first", "output_first", "wavefront")
"""Names that a configuration can give."""


def check_iterations(name: str, kind: str, arbiter: str, iterations: int) -> None:
    """Refuse iterations of anything but iSLIP with round-robin arbiters.

    Parameters
    ----------
    name : str
        Of the allocator, for the message.
    kind, arbiter : str
        What it is.
    iterations : int
        Of a cycle.

    Raises
    ------
    ValueError
        A number below 1, or above 1 for another allocator.
    """
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, not {iterations}")
    if iterations > 1 and (kind, arbiter) != ("output_first", "round_robin"):
        wanted = f"output_first with round_robin arbiters for iterations={iterations}"
        raise ValueError(f"{name} must be {wanted}, not {kind} with {arbiter}")


class Allocator(wiring.Component):
    """Grant requests such that no input and no output has more than one grant.

    Combinational from ``requests`` to ``grants``. Bit n·outputs + m stands for input n and output m. ``row_granted``
    and ``column_granted`` say which inputs and outputs have a grant; some kinds know it before they know which.
    ``taken`` says, for each input, that its grant is used; priorities change at the end of a cycle for those grants
    only.

    Parameters
    ----------
    inputs, outputs : int
        Size of the matrix.
    refusable : bool
        A grant may be left unused: ``taken`` exists; otherwise every grant counts as used.

    Raises
    ------
    ValueError
        A size below 1.
    """

    requests: Signal
    grants: Signal
    row_granted: Signal
    column_granted: Signal
    taken: Signal

    def __init__(self, *, inputs: int, outputs: int, refusable: bool = True):
        for name, value in (("inputs", inputs), ("outputs", outputs)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        self.inputs = inputs
        self.outputs = outputs
        self.refusable = refusable
        size = inputs * outputs
        members = {
            "requests": In(size),
            "grants": Out(size),
            "row_granted": Out(inputs),
            "column_granted": Out(outputs),
        }
        if refusable:
            members["taken"] = In(inputs)
        super().__init__(members)

    def _used_rows(self) -> Value:
        """Return the inputs whose grant is used."""
        return self.row_granted & self.taken if self.refusable else self.row_granted

    def _used_columns(self) -> list[Value]:
        """Return whether the grant of each output is used."""
        if not self.refusable:
            return [self.column_granted[o] for o in range(self.outputs)]
        return [(self._column(self.grants, o) & self.taken).any() for o in range(self.outputs)]

    def _any_by_row(self, word: Value) -> Value:
        return Cat(self._row(word, n).any() for n in range(self.inputs))

    def _any_by_column(self, word: Value) -> Value:
        return Cat(self._column(word, o).any() for o in range(self.outputs))

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
    single_requests : bool
        An input never requests more than one output, so that it needs no arbiter.
    refusable : bool
        See `Allocator`.

    Attributes
    ----------
    input_arbiters, output_arbiters : list of Arbiter
        One per input (none with `single_requests`) and per output.

    Raises
    ------
    ValueError
        A size below 1, an unknown side or arbiter.
    """

    def __init__(
        self,
        *,
        inputs: int,
        outputs: int,
        first: str,
        arbiter: str = "round_robin",
        single_requests: bool = False,
        refusable: bool = True,
    ):
        if first not in ("input", "output"):
            raise ValueError(f"first must be one of input, output, not {first!r}")
        if arbiter not in ARBITERS:
            raise ValueError(f"arbiter must be one of {', '.join(ARBITERS)}, not {arbiter!r}")
        self.first = first
        self.arbiter = arbiter
        self.single_requests = single_requests
        super().__init__(inputs=inputs, outputs=outputs, refusable=refusable)
        kind = ARBITERS[arbiter]
        self.input_arbiters: list[Arbiter] = []
        if not single_requests:
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
            # An output that is picked gives a grant to one of those that picked it.
            m.d.comb += [
                self.grants.eq(of_outputs),
                self.row_granted.eq(self._any_by_row(of_outputs)),
                self.column_granted.eq(self._any_by_column(of_inputs)),
            ]
        else:
            self._output_arbiters(m, platform, self.requests, of_outputs)
            self._input_arbiters(m, platform, of_outputs, of_inputs)
            m.d.comb += [
                self.grants.eq(of_inputs),
                self.row_granted.eq(self._any_by_row(of_outputs)),
                self.column_granted.eq(self._any_by_column(of_inputs)),
            ]
        return m

    def _input_arbiters(self, m: Module, platform: object, offered: Value, picked: Value) -> None:
        if self.single_requests:
            m.d.comb += picked.eq(offered)
            return
        used = self._used_rows()
        # One assignment of all bits: Amaranth goes through all assignments of a signal for each of its bits.
        m.d.comb += picked.eq(Cat(arbiter.grant for arbiter in self.input_arbiters))
        for n, arbiter in enumerate(self.input_arbiters):
            m.submodules[f"input{n}"] = shared(arbiter, platform, self.outputs)
            m.d.comb += [
                arbiter.requests.eq(self._row(offered, n)),
                arbiter.advance.eq(used[n]),
            ]

    def _output_arbiters(self, m: Module, platform: object, offered: Value, picked: Value) -> None:
        for o, (arbiter, used) in enumerate(zip(self.output_arbiters, self._used_columns(), strict=True)):
            m.submodules[f"output{o}"] = shared(arbiter, platform, self.inputs)
            m.d.comb += [
                arbiter.requests.eq(self._column(offered, o)),
                arbiter.advance.eq(used),
            ]
        m.d.comb += picked.eq(Cat(arbiter.grant[n] for n in range(self.inputs) for arbiter in self.output_arbiters))


class WavefrontAllocator(Allocator):
    """Grant along the diagonals (n + m) mod S, beginning with the diagonal d, whatever is still unmatched.

    The matching is maximal. If a grant is used, d (0 after reset) moves to the next diagonal, modulo S. Each row is
    rotated by d, so that the order of the cells is fixed and no combinational loop exists.

    Parameters
    ----------
    size : int
        S, the number of inputs and of outputs.
    refusable : bool
        See `Allocator`.

    Attributes
    ----------
    diagonal : Signal
        d.
    """

    def __init__(self, *, size: int, refusable: bool = True):
        self.size = size
        super().__init__(inputs=size, outputs=size, refusable=refusable)
        self.diagonal = Signal(max(1, ceil_log2(size)))

    def elaborate(self, platform: object) -> Module:
        """Rotate, match, rotate back."""
        m = Module()
        size, diagonal = self.size, self.diagonal
        rows = self._rotated(m, platform, [self._row(self.requests, n) for n in range(size)], step=1)
        matched: list[Value] = []
        row_free: Value = Const(-1, size)
        column_free: Value = Const(-1, size)  # column o has bit -o (mod size), so that diagonals are rotations of it
        for k in range(size):
            requests = Cat(rows[n][(k - n) % size] for n in range(size))
            free = Cat(column_free[size - k :], column_free[: size - k])
            cells = Diagonal(size=size)
            place(m, f"diagonal{k}", cells, platform, size, requests=requests, row_free=row_free, column_free=free)
            matched.append(cells.grants)
            row_free, column_free = cells.row_left, Cat(cells.column_left[k:], cells.column_left[:k])
        unrotated = [Cat(matched[(n + o) % size][n] for o in range(size)) for n in range(size)]
        used = Signal()
        m.d.comb += [
            self.grants.eq(Cat(*self._rotated(m, platform, unrotated, step=-1))),
            self.row_granted.eq(self._any_by_row(self.grants)),
            self.column_granted.eq(self._any_by_column(self.grants)),
            used.eq(self._used_rows().any() if self.refusable else self.requests.any()),  # it is maximal
        ]
        if size > 1:
            with m.If(used):
                m.d.sync += diagonal.eq(Mux(diagonal == size - 1, 0, diagonal + 1))
        return m

    def _rotated(self, m: Module, platform: object, rows: Sequence[Value], *, step: int) -> list[Value]:
        """Return rows of which the column o is the column o + step·diagonal."""
        rotations = [Rotation(width=self.size, step=step) for _ in rows]
        for n, (rotation, row) in enumerate(zip(rotations, rows, strict=True)):
            name = f"{'up' if step > 0 else 'down'}{n}"
            place(m, name, rotation, platform, self.size, step, word=row, distance=self.diagonal)
        return [rotation.out for rotation in rotations]


class Diagonal(wiring.Component):
    """Cells of a wavefront that have neither a row nor a column in common. Combinational.

    Bit n of each word belongs to row n and to the column of its cell: ``requests``, what is still free, ``grants``, and
    what is left free.

    Parameters
    ----------
    size : int
        Number of cells.
    """

    requests: Signal
    row_free: Signal
    column_free: Signal
    grants: Signal
    row_left: Signal
    column_left: Signal

    def __init__(self, *, size: int):
        inputs, outputs = ("requests", "row_free", "column_free"), ("grants", "row_left", "column_left")
        super().__init__({name: In(size) for name in inputs} | {name: Out(size) for name in outputs})

    def elaborate(self, platform: object) -> Module:
        """Grant what is requested and free."""
        m = Module()
        requests, row, column = self.requests, self.row_free, self.column_free
        m.d.comb += [
            self.grants.eq(requests & row & column),
            self.row_left.eq(row & ~requests | row & ~column),
            self.column_left.eq(column & ~requests | column & ~row),
        ]
        return m


class Rotation(wiring.Component):
    """Bit n of ``out`` is the bit n + step·``distance`` (mod width) of ``word``. Combinational.

    Parameters
    ----------
    width : int
        Bits of the word; ``distance`` is below it.
    step : int
        1 or -1.
    """

    word: Signal
    distance: Signal
    out: Signal

    def __init__(self, *, width: int, step: int):
        self.width = width
        self.step = step
        super().__init__({"word": In(width), "distance": In(max(1, ceil_log2(width))), "out": Out(width)})

    def elaborate(self, platform: object) -> Module:
        """One rank of multiplexers for each bit of the distance."""
        m = Module()
        word: Value = self.word
        for bit in range(ceil_log2(self.width)):
            shift = (self.step << bit) % self.width
            rotated = Signal(self.width, name=f"rotated{bit}")
            m.d.comb += rotated.eq(Mux(self.distance[bit], Cat(word[shift:], word[:shift]), word))
            word = rotated
        m.d.comb += self.out.eq(word)
        return m


def allocator(kind: str, *, size: int, arbiter: str = "round_robin", refusable: bool = True) -> Allocator:
    """Return a square allocator.

    Parameters
    ----------
    kind : str
        ``input_first``, ``output_first`` or ``wavefront``.
    size : int
        Inputs, and outputs.
    arbiter : str
        ``round_robin`` or ``matrix``; a wavefront has no arbiters.
    refusable : bool
        See `Allocator`.

    Raises
    ------
    ValueError
        An unknown name, a size below 1.
    """
    if kind not in ALLOCATORS:
        raise ValueError(f"kind must be one of {', '.join(ALLOCATORS)}, not {kind!r}")
    if kind == "wavefront":
        return WavefrontAllocator(size=size, refusable=refusable)
    first = kind.removesuffix("_first")
    return SeparableAllocator(inputs=size, outputs=size, first=first, arbiter=arbiter, refusable=refusable)
