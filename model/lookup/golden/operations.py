"""Operations, responses, and what they do in one cycle."""

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from hopforge.model.lookup.csr import COUNTERS
from hopforge.model.lookup.golden.cache import ReadLines
from hopforge.model.lookup.golden.mshrs import Mshr
from hopforge.model.lookup.golden.tcam import TcamResult

_NOTHING_READ = ReadLines((), ())


class Kind(Enum):
    """What an operation does in C."""

    LOOKUP = auto()
    FILL = auto()
    INVALIDATE = auto()
    SCRUB = auto()


@dataclass
class Operation:
    """What moves through the stages; `fresh`: no flush since it began; `found`: the lines that it has read in B.

    Deep engines only: `result` of a FILL, `usable`: whether the cache could be used when a LOOKUP was in C2.
    """

    kind: Kind
    fresh: bool = True
    key: int = 0
    dst: int = 0
    tag: int = 0
    mshr: int = 0
    row: int = 0
    result: TcamResult = field(default_factory=TcamResult)
    usable: bool = False
    found: ReadLines = _NOTHING_READ


class Response(NamedTuple):
    """What waits at the response port."""

    tag: int
    output: int
    match: int
    hit: int


@dataclass
class CycleEvents:
    """What happened in one cycle, for the registers that change at its end."""

    counts: dict[str, int] = field(default_factory=lambda: {name: 0 for name, _ in COUNTERS})
    scrub_done: bool = False
    response: Response | None = None
    completed: Operation | None = None
    allocated: tuple[int, Mshr] | None = None
    freed: int | None = None

    def count(self, name: str) -> None:
        """Count one event for a counter."""
        self.counts[name] = self.counts.get(name, 0) + 1

    def found(self, lines: ReadLines) -> None:
        """Count what is wrong with the lines that an operation looks at."""
        if lines.wrong:
            self.count("line_errors")
        if lines.repaired:
            self.count("line_repairs")
