"""Arbiters: which of the requesters is next."""

from abc import abstractmethod

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.round_robin import lowest_one

__all__ = [
    "ARBITERS",
    "GROUP_ARBITERS",
    "PREFIX_WIDTH_MIN",
    "Arbiter",
    "GroupMatrixArbiter",
    "GroupRoundRobinArbiter",
    "MatrixArbiter",
    "RoundRobinArbiter",
    "at_or_above",
    "one_hot_lowest",
    "prefix_or",
]

PREFIX_WIDTH_MIN = 16
"""Requesters from which on the lowest request is found by a parallel prefix."""


def prefix_or(m: Module, word: Value, *, name: str) -> Value:
    """Bit i of the result is the OR of the bits 0 to i of `word`, in log₂ levels (Kogge and Stone).

    Parameters
    ----------
    m : Module
        Receives one signal per level, so that the levels are shared.
    word : Value
        Any width.
    name : str
        Stem of the names of the levels.

    Returns
    -------
    Value
        As wide as `word`.
    """
    width = len(word)
    distance = 1
    while distance < width:
        level = Signal(width, name=f"{name}_{distance}")
        m.d.comb += level.eq(word | (word << distance)[:width])
        word = level
        distance *= 2
    return word


def at_or_above(m: Module, word: Value, *, name: str) -> Value:
    """Bit i of the result says that the lowest 1 of `word` is at or below i.

    From `PREFIX_WIDTH_MIN` bits on it is a parallel prefix, below one OR per bit.

    Parameters
    ----------
    m : Module
        Receives the signals of the prefix.
    word : Value
        Any width.
    name : str
        Stem of their names.
    """
    if len(word) < PREFIX_WIDTH_MIN:
        return Cat(word[: i + 1].any() for i in range(len(word)))
    return prefix_or(m, word, name=name)


def one_hot_lowest(m: Module, word: Value, *, name: str) -> Value:
    """Return the lowest 1 of `word` as a one-hot word (0 without one), by `at_or_above`."""
    if len(word) < PREFIX_WIDTH_MIN:
        return lowest_one(word)
    return word & ~(at_or_above(m, word, name=name) << 1)[: len(word)]


class Arbiter(wiring.Component):
    """Choose one of the requesters.

    Combinational from ``requests`` to ``grant`` (one-hot; 0 without a request). The priorities change at the end of a
    cycle with ``advance``, and only then: `advance` says that the grant was used. Throughput: one grant per cycle.

    Parameters
    ----------
    width : int
        Number of requesters.

    Raises
    ------
    ValueError
        A width below 1.
    """

    requests: Signal
    grant: Signal
    advance: Signal

    def __init__(self, *, width: int):
        if width < 1:
            raise ValueError(f"width must be at least 1, not {width}")
        self.width = width
        super().__init__({"requests": In(width), "grant": Out(width), "advance": In(1)})

    @abstractmethod
    def before(self, i: int, j: int) -> Value:
        """Return whether requester `i` now goes before requester `j`."""


class RoundRobinArbiter(Arbiter):
    """The first request at or after a pointer, wrapping around; the pointer moves to the number after the grant.

    Reset: pointer 0.

    Attributes
    ----------
    at_or_after : Signal
        The pointer as a thermometer code: bit i says that i is at or after it (no bit at all: pointer 0).
    """

    def __init__(self, *, width: int):
        super().__init__(width=width)
        self.at_or_after = Signal(width)

    def before(self, i: int, j: int) -> Value:
        """Return whether requester `i` now goes before requester `j`."""
        first, second = self.at_or_after[i], self.at_or_after[j]
        return first | ~second if i < j else first & ~second

    def elaborate(self, platform: object) -> Module:
        """Two priority chains, one of them behind the pointer."""
        m = Module()
        if self.width == 1:
            m.d.comb += self.grant.eq(self.requests)
            return m
        preferred = Signal(self.width)
        after = Signal(self.width)
        after_preferred = Signal(self.width)
        following = Signal(self.width)
        m.d.comb += [
            preferred.eq(self.requests & self.at_or_after),
            after_preferred.eq(at_or_above(m, preferred, name="preferred") << 1),
            after.eq(at_or_above(m, self.requests, name="request") << 1),
            self.grant.eq(Mux(preferred.any(), preferred & ~after_preferred, self.requests & ~after)),
            # What comes after the grant, chosen beside it and not made from it.
            following.eq(Mux(preferred.any(), after_preferred, after)),
        ]
        with m.If(self.advance & self.requests.any()):
            m.d.sync += self.at_or_after.eq(following)
        return m


class MatrixArbiter(Arbiter):
    """The request granted longest ago; of those never granted, which come first, the lowest.

    Reset: nobody has been granted. One bit for every pair of requesters says which of them goes first.
    """

    def __init__(self, *, width: int):
        super().__init__(width=width)
        self._goes_first = {
            (i, j): Signal(init=1, name=f"before_{i}_{j}") for i in range(width) for j in range(i + 1, width)
        }

    def before(self, i: int, j: int) -> Value:
        """Return whether requester `i` now goes before requester `j`."""
        return self._goes_first[i, j] if i < j else ~self._goes_first[j, i]

    def elaborate(self, platform: object) -> Module:
        """Grant a request if no request goes before it."""
        m = Module()
        for (i, j), goes_first in self._goes_first.items():
            with m.If(self.advance & (self.grant[i] | self.grant[j])):
                m.d.sync += goes_first.eq(self.grant[j])
        for i in range(self.width):
            beaten = Cat(self.requests[j] & self.before(j, i) for j in range(self.width) if j != i)
            m.d.comb += self.grant[i].eq(self.requests[i] & ~beaten.any())
        return m


class GroupRoundRobinArbiter(wiring.Component):
    """A `RoundRobinArbiter` of which all the requests of a cycle lie in one group of neighbours.

    The pointer then counts only in the group of the last grant; elsewhere the lowest request is the first one, be
    the pointer before or after it. So a group and a pointer in it are kept.

    Parameters
    ----------
    groups, group_width : int
        Groups, and requesters in each: requester i is in group i // group_width.
    """

    requests: Signal
    grant: Signal
    advance: Signal

    def __init__(self, *, groups: int, group_width: int):
        self.groups = groups
        self.group_width = group_width
        width = groups * group_width
        super().__init__({"requests": In(width), "grant": Out(width), "advance": In(1)})

    def elaborate(self, platform: object) -> Module:
        """Choose in the group that asks."""
        m = Module()
        words = [self.requests[g * self.group_width : (g + 1) * self.group_width] for g in range(self.groups)]
        asking = Signal(self.groups)
        requests = Signal(self.group_width)
        group = Signal(self.groups)
        at_or_after = Signal(self.group_width)
        preferred = Signal(self.group_width)
        after = Signal(self.group_width)
        after_preferred = Signal(self.group_width)
        chosen = Signal(self.group_width)
        m.d.comb += [
            asking.eq(Cat(word.any() for word in words)),
            requests.eq(Cat(Cat(word[i] for word in words).any() for i in range(self.group_width))),
            preferred.eq(requests & at_or_after & (asking & group).any().replicate(self.group_width)),
            after_preferred.eq(at_or_above(m, preferred, name="preferred") << 1),
            after.eq(at_or_above(m, requests, name="request") << 1),
            chosen.eq(Mux(preferred.any(), preferred & ~after_preferred, requests & ~after)),
            self.grant.eq(Cat(chosen & asking[g].replicate(self.group_width) for g in range(self.groups))),
        ]
        with m.If(self.advance & asking.any()):
            m.d.sync += [group.eq(asking), at_or_after.eq(Mux(preferred.any(), after_preferred, after))]
        return m


class GroupMatrixArbiter(wiring.Component):
    """A `MatrixArbiter` of which all the requests of a cycle lie in one group of neighbours: one for each group.

    Parameters
    ----------
    groups, group_width : int
        Groups, and requesters in each: requester i is in group i // group_width.
    """

    requests: Signal
    grant: Signal
    advance: Signal

    def __init__(self, *, groups: int, group_width: int):
        self.groups = groups
        self.group_width = group_width
        width = groups * group_width
        super().__init__({"requests": In(width), "grant": Out(width), "advance": In(1)})

    def elaborate(self, platform: object) -> Module:
        """Put the arbiters side by side; a grant of one says nothing about the order in another."""
        m = Module()
        for g in range(self.groups):
            m.submodules[f"group{g}"] = arbiter = MatrixArbiter(width=self.group_width)
            span = slice(g * self.group_width, (g + 1) * self.group_width)
            m.d.comb += [
                arbiter.requests.eq(self.requests[span]),
                self.grant[span].eq(arbiter.grant),
                arbiter.advance.eq(self.advance),
            ]
        return m


ARBITERS: dict[str, type[Arbiter]] = {"round_robin": RoundRobinArbiter, "matrix": MatrixArbiter}
"""Arbiter of each name that a configuration can give."""

GROUP_ARBITERS: dict[str, type[GroupRoundRobinArbiter] | type[GroupMatrixArbiter]] = {
    "round_robin": GroupRoundRobinArbiter,
    "matrix": GroupMatrixArbiter,
}
"""The same arbiters for requests that lie in one group."""
