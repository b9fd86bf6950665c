"""The second level between the MSHRs and the TCAM (docs/definitions/second-level.md)."""

from collections import deque
from typing import NamedTuple

from hopforge.model.lookup.golden.cache import Cache
from hopforge.model.lookup.golden.keys import KeyFunctions
from hopforge.model.lookup.golden.mshrs import Mshr
from hopforge.model.lookup.golden.operations import CycleEvents, Kind, Operation
from hopforge.model.lookup.golden.tcam import TcamResult
from hopforge.model.lookup.params import LookupParams

_ASKS = 4


class SecondInputs(NamedTuple):
    """What the second level sees of one cycle.

    Attributes
    ----------
    request : Operation or None
        LOOKUP of the MSHR that is accepted.
    asked : bool
        The TCAM takes the request that is offered.
    result : (int, TcamResult) or None
        The TCAM's answer.
    mshrs : list of Mshr
        At the start of the cycle.
    invalidated : int or None
        Key of the INVALIDATE that completes at the first level.
    enabled, flush : bool
        Whether the cache is enabled; whether there is a flush event.
    """

    request: Operation | None
    asked: bool
    result: tuple[int, TcamResult] | None
    mshrs: list[Mshr]
    invalidated: int | None
    enabled: bool
    flush: bool


class SecondLevel:
    """The second level of one engine, one cycle per `step`.

    Parameters
    ----------
    params : LookupParams
        The engine; it has a second level.

    Attributes
    ----------
    answer : (int, TcamResult) or None
        MSHR and answer in the answer register.
    scrub_active, flush_wait : bool
        As in STATUS, of this level.
    invalidation_done : bool
        The last cycle ended an INVALIDATE.
    """

    def __init__(self, params: LookupParams) -> None:
        assert params.second_level is not None
        lines = params.second_lines
        self._sets, self._ways = lines.sets, lines.ways
        self._epochs = 1 << params.epoch_bits
        self._keys = KeyFunctions(lines)
        self._cache = Cache(lines)
        self._requests: list[Operation | None] = [None] * params.second_level.request_registers  # the oldest last
        self._results: deque[tuple[int, TcamResult]] = deque()
        self._fill: Operation | None = None
        self._invalidation: Operation | None = None
        self._c1: Operation | None = None
        self._c2: Operation | None = None
        self._asks: deque[tuple[int, int]] = deque()
        self._scrub_was_last = False
        self._scrub_row = 0
        self._debt = 0
        self.scrub_active = False
        self.flush_wait = False
        self.invalidation_done = False
        self.answer: tuple[int, TcamResult] | None = None

    @property
    def offer(self) -> tuple[int, int] | None:
        """MSHR and destination that wait for the TCAM."""
        return self._asks[0] if self._asks else None

    def ready(self, *, invalidates: bool) -> bool:
        """Return whether a request is accepted; `invalidates`: an INVALIDATE completes at the first level."""
        moves = self._requests[-1] is None or self._choose() is self._requests[-1]
        return moves and self._invalidation is None and not invalidates

    def step(self, inputs: SecondInputs, events: CycleEvents) -> None:
        """Go through one cycle and count what happened in it."""
        taken = self._choose()
        go = self._debt == 0 if self.flush_wait else inputs.flush and self._debt < self._epochs - 1
        deferred = not self.flush_wait and inputs.flush and self._debt == self._epochs - 1
        answer, ask, scrubbed = self._complete(inputs.enabled and not self.flush_wait, events)

        # movement
        self._c1, self._c2 = taken, self._c1
        if inputs.asked:
            self._asks.popleft()
        if ask is not None:
            self._asks.append(ask)
        self._move_requests(taken, inputs.request)
        self._move_fills(taken, inputs.mshrs)
        if inputs.result is not None:
            self._results.append(inputs.result)
        if taken is not None:
            self._scrub_was_last = taken.kind is Kind.SCRUB
            if taken is self._invalidation:
                self._invalidation = None
        if inputs.invalidated is not None:
            assert self._invalidation is None, "the register is busy until the one before is done"
            self._invalidation = Operation(Kind.INVALIDATE, key=inputs.invalidated)

        self._scrubber(scrubbed, go=go, deferred=deferred)
        if inputs.flush or go:
            for operation in (*self._requests, self._fill, self._c1, self._c2):
                if operation is not None:
                    operation.fresh = False
        self.answer = answer

    def _choose(self) -> Operation | None:
        """Return the operation that B takes."""
        if any(operation is not None and operation.kind is not Kind.LOOKUP for operation in (self._c1, self._c2)):
            return None  # behind a writer
        if self._fill is not None:
            return self._fill
        if self._invalidation is not None:
            return self._invalidation
        scrub = Operation(Kind.SCRUB, row=self._scrub_row) if self.scrub_active else None
        if self.flush_wait and scrub is not None and not self._scrub_was_last:
            return scrub
        lookups = (self._c1 is not None) + (self._c2 is not None)
        if self._requests[-1] is not None and len(self._asks) + lookups < _ASKS:
            return self._requests[-1]
        return scrub

    def _complete(
        self, usable: bool, events: CycleEvents
    ) -> tuple[tuple[int, TcamResult] | None, tuple[int, int] | None, bool]:
        """Carry out what C2 does; return (answer, request to the TCAM, whether a row was scrubbed)."""
        operation = self._c2
        self.invalidation_done = False
        if operation is None:
            return None, None, False
        scrubs = operation.kind is Kind.SCRUB
        lines = self._cache.read((operation.row,) * self._ways if scrubs else self._keys.rows(operation.key))
        usable = usable and operation.fresh
        if operation.kind is Kind.LOOKUP:
            output = self._cache.lookup(lines, operation.key) if usable else None
            if output is None:
                events.count("second_misses")
                return None, (operation.mshr, operation.dst), False
            events.count("second_hits")
            return (operation.mshr, TcamResult(1, output)), None, False
        if operation.kind is Kind.FILL:
            result = operation.result
            if usable and result.match and self._cache.touch(lines, operation.key) is None:
                self._cache.fill(lines, operation.key, result.output)
            return (operation.mshr, result), None, False
        if operation.kind is Kind.INVALIDATE:
            self._cache.invalidate(lines, operation.key)
            self.invalidation_done = True
            return None, None, False
        if operation.fresh:
            self._cache.scrub(lines)
        return None, None, operation.fresh

    def _move_requests(self, taken: Operation | None, request: Operation | None) -> None:
        last = self._requests[-1]
        if last is None or taken is last:
            self._requests = [request, *self._requests[:-1]]

    def _move_fills(self, taken: Operation | None, mshrs: list[Mshr]) -> None:
        if self._fill is not None:
            self._fill = None if taken is self._fill else self._fill
        elif self._results:
            number, result = self._results.popleft()
            mshr = mshrs[number]
            fresh = mshr.fresh and not mshr.stale
            self._fill = Operation(Kind.FILL, fresh, mshr.key, mshr=number, result=result)

    def _scrubber(self, scrubbed: bool, *, go: bool, deferred: bool) -> None:
        if go:
            self._cache.epoch = (self._cache.epoch + 1) % self._epochs
            self._debt += 1
            self.scrub_active = True
            self._scrub_row = 0
            self.flush_wait = False
        elif deferred:
            self.flush_wait = True
            self._scrub_row = 0
        elif scrubbed:
            self._scrub_row = (self._scrub_row + 1) % self._sets
            if self._scrub_row == 0:
                self.scrub_active = False
                self._debt = 0
