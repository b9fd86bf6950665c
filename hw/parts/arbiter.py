"""Arbiters: which of the requesters is next."""

from abc import abstractmethod
from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.parts.round_robin import lowest_one, select

__all__ = [
    "ARBITERS",
    "GROUP_ARBITERS",
    "PREFIX_WIDTH_MIN",
    "Arbiter",
    "GroupMatrixArbiter",
    "GroupRoundRobinArbiter",
    "MatrixArbiter",
    "RoundRobinArbiter",
    "RoundsArbiter",
    "TwoLevelRoundRobinArbiter",
    "at_or_above",
    "grouped_arbiter",
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
        grant, following = _from_pointer(m, self.requests, self.at_or_after)
        m.d.comb += self.grant.eq(grant)
        with m.If(self.advance & self.requests.any()):
            m.d.sync += self.at_or_after.eq(following)
        return m


class RoundsArbiter(wiring.Component):
    """A `RoundRobinArbiter` that picks several times in a cycle, each time from the same pointer.

    Combinational from ``requests[j]`` to ``grant[j]`` (one-hot, 0 without a request). ``advance`` has a bit for each
    round, at most one of them set: the grant of that round is used, and the pointer moves behind it. Reset: pointer 0.

    Parameters
    ----------
    width, rounds : int
        Requesters, picks in a cycle.

    Attributes
    ----------
    at_or_after : Signal
        The pointer, as in `RoundRobinArbiter`.

    Raises
    ------
    ValueError
        A number below 1.
    """

    requests: Sequence[Signal]
    grant: Sequence[Signal]
    advance: Signal

    def __init__(self, *, width: int, rounds: int):
        for name, value in (("width", width), ("rounds", rounds)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        self.width = width
        self.rounds = rounds
        super().__init__(
            {"requests": In(width).array(rounds), "grant": Out(width).array(rounds), "advance": In(rounds)}
        )
        self.at_or_after = Signal(width)

    def elaborate(self, platform: object) -> Module:
        """Two priority chains for each round."""
        m = Module()
        for j in range(self.rounds):
            if self.width == 1:
                m.d.comb += self.grant[j].eq(self.requests[j])
                continue
            grant, following = _from_pointer(m, self.requests[j], self.at_or_after, f"{j}")
            m.d.comb += self.grant[j].eq(grant)
            with m.If(self.advance[j]):
                m.d.sync += self.at_or_after.eq(following)
        return m


def _from_pointer(m: Module, requests: Value, at_or_after: Value, name: str = "") -> tuple[Value, Value]:
    """Return the first request at or after a pointer, one-hot, and what the pointer then becomes."""
    preferred, after, after_preferred, following = (
        Signal(len(requests), name=f"{each}{name}") for each in ("preferred", "after", "after_preferred", "following")
    )
    m.d.comb += [
        preferred.eq(requests & at_or_after),
        after_preferred.eq(at_or_above(m, preferred, name=f"preferred{name}") << 1),
        after.eq(at_or_above(m, requests, name=f"request{name}") << 1),
        # What comes after the grant, chosen beside it and not made from it.
        following.eq(Mux(preferred.any(), after_preferred, after)),
    ]
    return Mux(preferred.any(), preferred & ~after_preferred, requests & ~after), following


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


class TwoLevelRoundRobinArbiter(Arbiter):
    """A `RoundRobinArbiter` in two levels: which group, and which requester of every group meanwhile.

    The pointer is kept as what comes after the last grant, in its group and of the groups, so that it needs a bit per
    group and a bit per member instead of one per requester. Reset: pointer 0 (the last requester granted last).

    Parameters
    ----------
    groups, group_width : int
        Groups, and requesters in each: requester i is in group i // group_width.

    Attributes
    ----------
    groups_after, members_after : Signal
        Thermometer codes: groups after that of the last grant, members of a group after the one granted.
    """

    def __init__(self, *, groups: int, group_width: int):
        for name, value in (("groups", groups), ("group_width", group_width)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        super().__init__(width=groups * group_width)
        self.groups = groups
        self.group_width = group_width
        self.groups_after = Signal(groups)
        self.members_after = Signal(group_width)

    @property
    def last_group(self) -> Value:
        """Group of the last grant, one-hot."""
        return ~self.groups_after & (Cat(self.groups_after[1:], 1))

    def before(self, i: int, j: int) -> Value:
        """Return whether requester `i` now goes before requester `j`."""
        first, second = self._preferred(i), self._preferred(j)
        return first | ~second if i < j else first & ~second

    def _preferred(self, i: int) -> Value:
        """Whether a requester comes after the last grant, before the numbers start again."""
        group, member = divmod(i, self.group_width)
        return self.groups_after[group] | (self.last_group[group] & self.members_after[member])

    def elaborate(self, platform: object) -> Module:
        """Put the rest of the last group before the first group after it, and that before the first of all."""
        m = Module()
        if self.width == 1:
            m.d.comb += self.grant.eq(self.requests)
            return m
        size = self.group_width
        words = [self.requests[g * size : (g + 1) * size] for g in range(self.groups)]
        last_group = Signal(self.groups)
        asking = Signal(self.groups)
        rest = Signal(size)
        later = Signal(self.groups)
        stays = Signal()  # the grant is in the group of the last one, behind it
        rest_above = Signal(size)
        later_above = Signal(self.groups)
        asking_above = Signal(self.groups)
        chosen = Signal(self.groups)
        m.d.comb += [
            last_group.eq(self.last_group),
            asking.eq(Cat(word.any() for word in words)),
            rest.eq(select(last_group, words) & self.members_after),
            stays.eq(rest.any()),
            later.eq(asking & self.groups_after),
            rest_above.eq(at_or_above(m, rest, name="rest") << 1),
            later_above.eq(at_or_above(m, later, name="later") << 1),
            asking_above.eq(at_or_above(m, asking, name="asking") << 1),
            chosen.eq(Mux(later.any(), later & ~later_above, asking & ~asking_above)),
        ]
        above: list[Signal] = []
        for g, word in enumerate(words):
            word_above = Signal(size, name=f"above{g}")
            m.d.comb += [
                word_above.eq(at_or_above(m, word, name=f"word{g}") << 1),
                self.grant[g * size : (g + 1) * size].eq(
                    Mux(
                        stays,
                        rest & ~rest_above & last_group[g].replicate(size),
                        word & ~word_above & chosen[g].replicate(size),
                    )
                ),
            ]
            above.append(word_above)
        with m.If(self.advance & asking.any()):
            m.d.sync += self.members_after.eq(Mux(stays, rest_above, select(chosen, above)))
            with m.If(~stays):
                m.d.sync += self.groups_after.eq(Mux(later.any(), later_above, asking_above))
        return m


class GroupRoundRobinArbiter(wiring.Component):
    """A `RoundRobinArbiter` of which all the requests of a cycle lie in one group of neighbours.

    The pointer then counts only in the group of the last grant; elsewhere the lowest request is the first one, be
    the pointer before or after it. Combinational: the last grant is kept outside, and so is nothing here.

    Parameters
    ----------
    groups, group_width : int
        Groups, and requesters in each: requester i is in group i // group_width.

    Attributes
    ----------
    requests, group : Signal
        Requests by their place in the group, and the group in which they lie (one-hot, or 0), which may be known
        earlier.
    last_group, last_member : Signal
        The last grant: its group and its place in it, one-hot (0 after reset).
    advance : Signal
        The grant is used.
    member : Signal
        Place of the grant in the group, one-hot (0 without a request).
    """

    requests: Signal
    group: Signal
    last_group: Signal
    last_member: Signal
    advance: Signal
    member: Signal

    def __init__(self, *, groups: int, group_width: int):
        self.groups = groups
        self.group_width = group_width
        super().__init__(_group_signature(groups, group_width))

    def elaborate(self, platform: object) -> Module:
        """Choose in the group that asks."""
        m = Module()
        size = self.group_width
        after = Signal(size)
        preferred = Signal(size)
        m.d.comb += [
            after.eq(Cat(self.last_member[:i].any() if i else 0 for i in range(size))),
            preferred.eq(self.requests & after & (self.group & self.last_group).any().replicate(size)),
            self.member.eq(
                Mux(
                    preferred.any(),
                    one_hot_lowest(m, preferred, name="preferred"),
                    one_hot_lowest(m, self.requests, name="request"),
                )
            ),
        ]
        return m


class GroupMatrixArbiter(wiring.Component):
    """A `MatrixArbiter` of which all the requests of a cycle lie in one group of neighbours: one for each group.

    Ports and parameters as `GroupRoundRobinArbiter`; the order is kept here.
    """

    requests: Signal
    group: Signal
    last_group: Signal
    last_member: Signal
    advance: Signal
    member: Signal

    def __init__(self, *, groups: int, group_width: int):
        self.groups = groups
        self.group_width = group_width
        super().__init__(_group_signature(groups, group_width))

    def elaborate(self, platform: object) -> Module:
        """Put the arbiters side by side; a grant of one says nothing about the order in another."""
        m = Module()
        grants: list[Value] = []
        for g in range(self.groups):
            m.submodules[f"group{g}"] = arbiter = MatrixArbiter(width=self.group_width)
            m.d.comb += [
                arbiter.requests.eq(self.requests & self.group[g].replicate(self.group_width)),
                arbiter.advance.eq(self.advance),
            ]
            grants.append(arbiter.grant)
        m.d.comb += self.member.eq(Cat(Cat(grant[i] for grant in grants).any() for i in range(self.group_width)))
        return m


def _group_signature(groups: int, group_width: int) -> dict[str, wiring.Member]:
    return {
        "requests": In(group_width),
        "group": In(groups),
        "last_group": In(groups),
        "last_member": In(group_width),
        "advance": In(1),
        "member": Out(group_width),
    }


ARBITERS: dict[str, type[Arbiter]] = {"round_robin": RoundRobinArbiter, "matrix": MatrixArbiter}
"""Arbiter of each name that a configuration can give."""

GROUP_ARBITERS: dict[str, type[GroupRoundRobinArbiter] | type[GroupMatrixArbiter]] = {
    "round_robin": GroupRoundRobinArbiter,
    "matrix": GroupMatrixArbiter,
}
"""The same arbiters for requests that lie in one group."""


def grouped_arbiter(arbiter: str, *, groups: int, group_width: int) -> Arbiter:
    """Return an arbiter of groups · group_width requesters that come from groups of neighbours.

    Parameters
    ----------
    arbiter : str
        ``round_robin`` (in two levels) or ``matrix``.
    groups, group_width : int
        Groups, and requesters in each.

    Raises
    ------
    ValueError
        A number below 1.
    """
    if arbiter == "round_robin" and groups > 1 and group_width > 1:
        return TwoLevelRoundRobinArbiter(groups=groups, group_width=group_width)
    return ARBITERS[arbiter](width=groups * group_width)
