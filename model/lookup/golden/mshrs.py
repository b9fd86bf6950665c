"""The MSHRs: lookups that missed and wait for the TCAM."""

from dataclasses import dataclass, field, replace
from enum import Enum, auto

from hopforge.model.lookup.golden.tcam import TcamResult


class State(Enum):
    """States of an MSHR."""

    FREE = auto()
    WAIT_ISSUE = auto()
    ISSUED = auto()
    WAIT_PRIMARY = auto()
    DONE = auto()
    INJECTED = auto()


@dataclass
class Mshr:
    """A lookup that missed."""

    state: State = State.FREE
    stale: bool = False
    primary: int = 0
    fresh: bool = False
    key: int = 0
    dst: int = 0
    tag: int = 0
    result: TcamResult = field(default_factory=TcamResult)


class MshrFile:
    """All MSHRs; a change at the end of a cycle is worked out on a copy (`copies`).

    Parameters
    ----------
    count : int
        How many there are.

    Attributes
    ----------
    entries : list of Mshr
        As they are at the start of the cycle.
    issue_pointer, fill_pointer : int
        Where the search for the next one to be issued or filled begins.
    """

    def __init__(self, count: int) -> None:
        self.entries = [Mshr() for _ in range(count)]
        self.issue_pointer = 0
        self.fill_pointer = 0

    @property
    def free(self) -> int:
        """How many are free."""
        return sum(mshr.state is State.FREE for mshr in self.entries)

    @property
    def first_free(self) -> int:
        """The lowest free one."""
        return next(index for index, mshr in enumerate(self.entries) if mshr.state is State.FREE)

    def to_issue(self) -> int | None:
        """Return the one whose turn it is to ask the TCAM."""
        return self._round_robin(State.WAIT_ISSUE, self.issue_pointer)

    def to_fill(self) -> int | None:
        """Return the one whose turn it is to begin its FILL."""
        return self._round_robin(State.DONE, self.fill_pointer)

    def mergeable(self, key: int) -> int | None:
        """Return the one that asks the TCAM itself for `key`, and has since the last flush."""
        for index, mshr in enumerate(self.entries):
            waits_itself = mshr.state not in {State.FREE, State.WAIT_PRIMARY}
            if waits_itself and mshr.fresh and mshr.key == key:
                return index
        return None

    def invalidated(self, key: int) -> list[int]:
        """Return those whose answer an INVALIDATE of `key` at C makes worthless."""
        answered = {State.ISSUED, State.DONE, State.INJECTED}
        return [
            index
            for index, mshr in enumerate(self.entries)
            if mshr.state in answered and mshr.fresh and mshr.key == key
        ]

    def copies(self) -> list[Mshr]:
        """Return all of them, to be changed."""
        return [replace(mshr) for mshr in self.entries]

    def flush(self) -> None:
        """Make every answer worthless that is there or on its way."""
        for mshr in self.entries:
            mshr.fresh = False
            if mshr.state is State.ISSUED:
                mshr.stale = True
            elif mshr.state is not State.FREE:
                mshr.state = State.WAIT_ISSUE

    def _round_robin(self, state: State, pointer: int) -> int | None:
        """Return the first one in `state` at or after `pointer`."""
        count = len(self.entries)
        for index in (*range(pointer, count), *range(pointer)):
            if self.entries[index].state is state:
                return index
        return None
