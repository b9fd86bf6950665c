"""Golden arbiters and allocators: plain Python, one call per cycle (docs/definitions/router.md, VA and SA)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping

__all__ = [
    "Allocation",
    "Arbitration",
    "Drawn",
    "FairWavefront",
    "InputFirst",
    "Lonely",
    "MatrixArbitration",
    "MaximumSize",
    "OutputFirst",
    "RoundRobinArbitration",
    "Wavefront",
    "allocation",
    "first_at_or_after",
    "match_in_turns",
]

Requests = Mapping[int, Collection[int]]
"""Outputs that each input requests."""


def first_at_or_after(pointer: int, members: Collection[int], modulus: int) -> int:
    """Return the member that comes first when counting from `pointer`, modulo `modulus`.

    Examples
    --------
    >>> first_at_or_after(3, {1, 2}, 4)
    1
    """
    return min(members, key=lambda member: (member - pointer) % modulus)


class Arbitration(ABC):
    """State of an arbiter of `width` requesters."""

    def __init__(self, width: int) -> None:
        self.width = width

    @abstractmethod
    def pick(self, requests: Collection[int]) -> int:
        """Return the requester that is next."""

    @abstractmethod
    def granted(self, requester: int) -> None:
        """Take note that `requester` has been granted."""


class RoundRobinArbitration(Arbitration):
    """The first requester at or after a pointer, which moves to the number after a grant."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.pointer = 0

    def pick(self, requests: Collection[int]) -> int:
        """Return the requester that is next."""
        return first_at_or_after(self.pointer, requests, self.width)

    def granted(self, requester: int) -> None:
        """Move the pointer."""
        self.pointer = (requester + 1) % self.width


class MatrixArbitration(Arbitration):
    """The requester granted longest ago; never granted is longest, and the lower number first."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.order = list(range(width))

    def pick(self, requests: Collection[int]) -> int:
        """Return the requester that is next."""
        return min(requests, key=self.order.index)

    def granted(self, requester: int) -> None:
        """Make it the most recent."""
        self.order.remove(requester)
        self.order.append(requester)


_ARBITRATIONS: dict[str, type[Arbitration]] = {"round_robin": RoundRobinArbitration, "matrix": MatrixArbitration}


class Allocation(ABC):
    """State of an allocator of a square matrix of `size`."""

    def __init__(self, size: int) -> None:
        self.size = size

    @abstractmethod
    def match(self, requests: Requests) -> dict[int, int]:
        """Return the output granted to each input that is granted one; no state changes."""

    @abstractmethod
    def take(self, grants: Mapping[int, int]) -> None:
        """Move the priorities for these grants, a part of what `match` has returned."""


class _Separable(Allocation):
    def __init__(self, size: int, arbiter: str) -> None:
        super().__init__(size)
        kind = _ARBITRATIONS[arbiter]
        self.inputs = [kind(size) for _ in range(size)]
        self.outputs = [kind(size) for _ in range(size)]

    def take(self, grants: Mapping[int, int]) -> None:
        """Move the arbiters on both sides of each grant."""
        for n, m in grants.items():
            self.inputs[n].granted(m)
            self.outputs[m].granted(n)


def _offers(picks: Mapping[int, int]) -> dict[int, list[int]]:
    """Turn "who picks whom" round: who has been picked by whom."""
    offers: dict[int, list[int]] = {}
    for picker, picked in picks.items():
        offers.setdefault(picked, []).append(picker)
    return offers


class InputFirst(_Separable):
    """Each input picks an output, each output picks among the inputs that picked it."""

    def match(self, requests: Requests) -> dict[int, int]:
        """Return the output granted to each input that is granted one."""
        picks = {n: self.inputs[n].pick(outputs) for n, outputs in requests.items() if outputs}
        return {self.outputs[m].pick(inputs): m for m, inputs in _offers(picks).items()}


class OutputFirst(_Separable):
    """Each output picks an input, each input picks among the outputs that picked it: iSLIP with one iteration."""

    def match(self, requests: Requests) -> dict[int, int]:
        """Return the output granted to each input that is granted one."""
        asked = {m: [n for n, outputs in requests.items() if m in outputs] for m in range(self.size)}
        picks = {m: self.outputs[m].pick(inputs) for m, inputs in asked.items() if inputs}
        return {n: self.inputs[n].pick(outputs) for n, outputs in _offers(picks).items()}


class Wavefront(Allocation):
    """Diagonals in order, from a pointer that moves by one after a cycle with a grant.

    `blocks`: inputs and outputs that make a matrix of their own; others count as those so many before them.
    """

    def __init__(self, size: int, blocks: tuple[int, int] | None = None) -> None:
        super().__init__(size)
        self.blocks = blocks or (size, size)
        self.diagonal = 0

    def match(self, requests: Requests) -> dict[int, int]:
        """Return the output granted to each input that is granted one."""
        grants: dict[int, int] = {}
        given: set[int] = set()
        rows, columns = self.blocks
        size = max(self.blocks)
        pairs = [(n, m) for n, outputs in requests.items() for m in outputs]
        for n, m in sorted(pairs, key=lambda pair: (pair[0] % rows + pair[1] % columns - self.diagonal) % size):
            if n not in grants and m not in given:
                grants[n] = m
                given.add(m)
        return grants

    def take(self, grants: Mapping[int, int]) -> None:
        """Move to the next diagonal if there was a grant."""
        if grants:
            self.diagonal = (self.diagonal + 1) % max(self.blocks)


class MaximumSize(Allocation):
    """As many grants as can be, by shortest augmenting paths that begin at inputs from a pointer on.

    They go through outputs by number, but for those below `first_output`, which come last. The pointer goes round in
    each `block` of inputs (default: all).
    """

    def __init__(self, size: int, first_output: int = 0, block: int | None = None) -> None:
        super().__init__(size)
        self.first, self.first_output, self.block = 0, first_output, block or size

    def match(self, requests: Requests) -> dict[int, int]:
        """Return the output granted to each input that is granted one."""
        grants: dict[int, int] = {}
        while (path := self._path(requests, grants)) is not None:
            grants.update(path)
        return grants

    def _path(self, requests: Requests, grants: Mapping[int, int]) -> dict[int, int] | None:
        """Return the new output of each input on a shortest path to an output that nobody has."""
        holder = {m: n for n, m in grants.items()}
        inputs = sorted(range(self.size), key=lambda n: (n // self.block, (n - self.first) % self.block))
        layer: list[tuple[int, dict[int, int]]] = [
            (n, {}) for n in inputs if n in requests and n not in grants
        ]
        seen: set[int] = set()
        while layer:
            further = []
            for n, moved in layer:
                for m in sorted(requests[n], key=lambda m: (m < self.first_output, m)):
                    if m in seen or grants.get(n) == m:
                        continue
                    seen.add(m)
                    if m not in holder:
                        return moved | {n: m}
                    further.append((holder[m], moved | {n: m}))
            layer = further
        return None

    def take(self, grants: Mapping[int, int]) -> None:
        """Begin at the next input if there was a grant."""
        if grants:
            self.first = (self.first + 1) % self.block


class FairWavefront(Wavefront):
    """A wavefront whose pointer moves behind the diagonal of the first grant."""

    def take(self, grants: Mapping[int, int]) -> None:
        """Move behind the diagonal of the first of these grants, if there are any."""
        if grants:
            size = max(self.blocks)
            self.diagonal += 1 + min((n + m - self.diagonal) % size for n, m in grants.items())
            self.diagonal %= size


class Lonely(Allocation):
    """Each input picks the output with the fewest requests, each output picks among the inputs that picked it.

    `blocks`: so many inputs, and outputs, belong together; pointers count in them.
    """

    def __init__(self, size: int, outputs: int | None = None, blocks: tuple[int, int] | None = None) -> None:
        super().__init__(size)
        self.many = size if outputs is None else outputs
        self.rows, self.columns = blocks or (size, self.many)
        self.inputs, self.outputs = [0] * size, [0] * self.many

    def match(self, requests: Requests) -> dict[int, int]:
        """Return the output granted to each input that is granted one."""
        asked = [m for outputs in requests.values() for m in outputs]
        picks = {}
        for n, outputs in requests.items():
            fewest = min((asked.count(m) for m in outputs), default=0)
            lonely = [m for m in outputs if asked.count(m) == fewest]
            if lonely:
                picks[n] = first_at_or_after(self.inputs[n], lonely, self.columns)
        return {first_at_or_after(self.outputs[m], inputs, self.rows): m for m, inputs in _offers(picks).items()}

    def take(self, grants: Mapping[int, int]) -> None:
        """Move the pointers on both sides of each grant by one."""
        for n, m in grants.items():
            self.inputs[n] = (self.inputs[n] + 1) % self.columns
            self.outputs[m] = (self.outputs[m] + 1) % self.rows


class Drawn(Allocation):
    """Each output picks the first input from a drawn one on, each input the first output that picked it likewise.

    ``below(bound)`` draws: for the outputs that are asked for, then for the inputs that are picked, by number.
    `blocks`: so many inputs, and outputs, belong together; what is drawn counts in them.
    """

    def __init__(
        self, size: int, below: Callable[[int], int], outputs: int | None = None, blocks: tuple[int, int] | None = None
    ) -> None:
        super().__init__(size)
        self.below, self.many = below, size if outputs is None else outputs
        self.rows, self.columns = blocks or (size, self.many)

    def match(self, requests: Requests) -> dict[int, int]:
        """Return the output granted to each input that is granted one."""
        picks = {}
        for m in range(self.many):
            inputs = [n for n, outputs in requests.items() if m in outputs]
            if inputs:
                picks[m] = first_at_or_after(self.below(self.rows), inputs, self.rows)
        offers = _offers(picks)
        return {n: first_at_or_after(self.below(self.columns), offers[n], self.columns) for n in sorted(offers)}

    def take(self, grants: Mapping[int, int]) -> None:
        """Nothing is kept."""


def allocation(
    kind: str, size: int, arbiter: str = "round_robin", below: Callable[[int], int] | None = None, *,
    outputs: int | None = None, blocks: tuple[int, int] | None = None, first_output: int = 0,
) -> Allocation:  # fmt: skip
    """Return the allocator of a name, of `size` inputs and as many `outputs` (default: `size`).

    `blocks` are the inputs and outputs that pointers and draws go over (default: all), `first_output` is of
    ``max_size``.

    Names: ``input_first``, ``output_first``, ``islip`` (the same), ``wavefront``, ``rr_wavefront``, ``max_size``,
    ``loa``, and ``pim``, which needs `below`.

    ``input_ahead`` and ``input_first_ports`` differ from ``input_first`` in what their inputs choose from, not in the
    matching.

    Raises
    ------
    ValueError
        An unknown name.
    """
    if arbiter not in _ARBITRATIONS:
        raise ValueError(f"arbiter must be one of {', '.join(_ARBITRATIONS)}, not {arbiter!r}")
    if kind == "wavefront":
        return Wavefront(size, blocks)
    if kind == "rr_wavefront":
        return FairWavefront(size, blocks)
    if kind == "max_size":
        return MaximumSize(size, first_output, blocks[0] if blocks else None)
    if kind == "loa":
        return Lonely(size, outputs, blocks)
    if kind == "pim" and below is not None:
        return Drawn(size, below, outputs, blocks)
    if kind in ("input_first", "input_ahead", "input_first_ports"):
        return InputFirst(size, arbiter)
    if kind in ("output_first", "islip"):
        return OutputFirst(size, arbiter)
    raise ValueError(f"kind must be one of input_first, output_first, islip, wavefront, max_size, not {kind!r}")


def match_in_turns(
    allocator: Allocation, requests: Requests, iterations: int
) -> tuple[dict[int, int], dict[int, int]]:
    """Match what is left again and again; return all pairs, and those of the first time, which move pointers."""
    first = allocator.match(requests)
    pairs = dict(first)
    for _ in range(iterations - 1):
        given = set(pairs.values())
        left = {n: [m for m in outputs if m not in given] for n, outputs in requests.items() if n not in pairs}
        pairs |= allocator.match({n: outputs for n, outputs in left.items() if outputs})
    return pairs, first
