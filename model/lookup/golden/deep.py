"""The engine of depths 5 to 8: nothing waits behind B (docs/definitions/lookup-engine.md, "Deep engines")."""

from collections import deque

from hopforge.model.lookup.golden.control import EngineControl
from hopforge.model.lookup.golden.mshrs import Mshr, State
from hopforge.model.lookup.golden.operations import CycleEvents, Kind, Operation, Response
from hopforge.model.lookup.golden.ports import LookupInputs, LookupOutputs
from hopforge.model.lookup.golden.tcam import TcamResult

_RESPONSES = 4  # a place more with a memory stage
_Q_PLACES = 2
_SETUP_PERIODS = 3


class DeepLookupEngine(EngineControl):
    """The lookup engine of docs/definitions/lookup-engine.md with a depth of 5 to 8, one cycle per `step`.

    Parameters
    ----------
    params : LookupParams
        What the engine is built with.

    Examples
    --------
    >>> from hopforge.model.lookup.params import LookupParams
    >>> engine = DeepLookupEngine(LookupParams(pipeline_depth=5, tcam_latency_cycles=1))
    >>> engine.step(LookupInputs(req_valid=1, req_dst=5, req_tag=7, resp_ready=1)).req_ready
    1
    >>> answers = [engine.step(LookupInputs(resp_ready=1)) for _ in range(20)]
    >>> [(cycle, answer.resp_tag, answer.resp_match) for cycle, answer in enumerate(answers, 1) if answer.resp_valid]
    [(16, 7, 0)]
    """

    def reset(self) -> None:
        """Bring every register and memory into the state after reset."""
        super().reset()
        self._a: list[Operation | None] = [None] * (self.params.pipeline_depth - 4)  # the oldest last
        self._q: list[Operation] = []
        self._c: list[Operation | None] = [None] * (2 + self.params.memory_stage)  # R, C1, C2
        self._m: Operation | None = None
        self._out: deque[Response] = deque()
        self._scrub_was_last = False
        self._t: int | None = None  # MSHR of the next miss
        self._to_fill: int | None = None  # P
        self._f: Operation | None = None
        self._to_issue: int | None = None  # P′
        self._port: int | None = None  # MSHR whose request stands on the TCAM port
        # what acts one cycle later
        self._before = LookupInputs()
        self._late_answer: tuple[int, TcamResult] | None = None
        self._late_request = False
        self._late_counts: dict[str, int] = {}
        self._late_read: int | None = None
        self._configured_before = [False] * (_SETUP_PERIODS - 1)  # two cycles ago …; `_configured`: in the cycle before
        self._late_clear = False
        self._enables = 0, 0  # CTRL.enable one and two cycles ago

    @property
    def idle(self) -> bool:
        """Whether no lookup is anywhere in the engine and nothing is going on in the background."""
        stages = (*self._a, *self._c, self._m)
        late = self._late_answer is not None or self._late_request
        bus = self._before.csr_we or self._before.link_change or any(self._configured_before) or self._late_clear
        empty = not (any(stages) or self._q or self._out)
        return empty and not (late or bus or any(self._late_counts.values())) and self._quiet

    @property
    def response(self) -> Response | None:
        """What stands at the response port in this cycle."""
        return self._out[0] if self._out else None

    def step(self, inputs: LookupInputs) -> LookupOutputs:
        """Return the outputs of this cycle and go on to the next.

        Parameters
        ----------
        inputs : LookupInputs
            Inputs of this cycle.

        Returns
        -------
        LookupOutputs
            Outputs of this cycle; they depend on registers alone.
        """
        events = CycleEvents()
        read_data = self._read(self._before.csr_addr)
        go, deferred = self._flush_decision(self._late_request)
        flush = self._late_request or go
        outputs = self._outputs()
        issued = self._port is not None and not self._hold and self._tcam_takes(inputs)
        answer = self._answer(inputs)

        taken = self._choose()
        if taken is not None:
            self._read_lines(taken)
        goes_to_m = self._complete(events)
        invalidated = self._invalidated()
        picked = self._mshrs.to_fill() if self._to_fill is None and self._f is None else None
        mshrs = self._next_mshrs(events, issued, picked, invalidated)
        self._issue(issued)
        self._next_for_miss()
        self._move_fills(taken, picked)
        self._move_requests(inputs, taken)
        self._c, self._m = [taken, *self._c[:-1]], goes_to_m
        if inputs.resp_ready and self._out:
            self._out.popleft()
        if events.response is not None:
            self._out.append(events.response)

        self._mshrs.entries = mshrs
        self._kill(flush, invalidated)
        self._scrubber(events, go=go, deferred=deferred)
        if flush:
            self._flush_event()
        self._registers(inputs, events, read_data)
        self._late_answer = answer
        return outputs

    # ---- outputs and decisions, from the registers at the start of the cycle

    def _outputs(self) -> LookupOutputs:
        ready = self._a_moves and not self._invalidate_pending
        outputs = LookupOutputs(req_ready=int(ready), csr_rdata=self._rdata, line_error=int(self._line_error))
        if self._out:
            out = self._out[0]
            outputs = outputs._replace(
                resp_valid=1, resp_tag=out.tag, resp_output=out.output, resp_match=out.match, resp_hit=out.hit
            )
        if self._port is not None and not self._hold and not self._internal:
            dst = self._mshrs.entries[self._port].dst
            outputs = outputs._replace(tcam_req_valid=1, tcam_req_id=self._port, tcam_req_dst=dst)
        return outputs

    @property
    def _a_moves(self) -> bool:
        return len(self._q) < _Q_PLACES

    @property
    def _usable(self) -> bool:
        return all(self._enables) and not self._flush_wait

    def _tcam_takes(self, inputs: LookupInputs) -> bool:
        return not self._tcam.busy if self._internal else bool(inputs.tcam_req_ready)

    def _choose(self) -> Operation | None:
        """Return the operation that B takes."""
        scrub = Operation(Kind.SCRUB, row=self._scrub_row)
        if self._flush_wait and self._scrub_active and not self._scrub_was_last:
            choice = scrub
        elif self._f is not None:
            choice = self._f
        elif self._q:
            choice = self._q[0]
        elif self._scrub_active:
            choice = scrub
        else:
            return None
        return choice if self._has_room(choice) else None

    def _has_room(self, choice: Operation) -> bool:
        """Return whether there is a place for everything that can become of an operation."""
        behind_b = [operation for operation in self._c if operation is not None]
        if any(operation.kind is not Kind.LOOKUP for operation in behind_b):
            return False  # behind a writer
        places = _RESPONSES + self.params.memory_stage
        if choice.kind in {Kind.FILL, Kind.LOOKUP} and len(self._out) + len(behind_b) >= places:
            return False
        lookups = len(behind_b) + (self._m is not None and self._m.kind is Kind.LOOKUP)
        return choice.kind is not Kind.LOOKUP or self._mshrs.free > lookups

    def _invalidated(self) -> list[int]:
        """Return the MSHRs whose answer the INVALIDATE in M makes worthless."""
        if self._m is None or self._m.kind is not Kind.INVALIDATE:
            return []
        return self._mshrs.invalidated(self._m.key)

    # ---- C2

    def _complete(self, events: CycleEvents) -> Operation | None:
        """Carry out what C2 does; return the operation if it goes to M.

        The tag compare of C1 is done here, too: only an INVALIDATE that is not fresh could see another epoch, and no
        line of either is left that could hit.
        """
        operation = self._c[-1]
        if operation is None:
            return None
        if operation.kind is Kind.LOOKUP:
            return self._complete_lookup(operation, events)
        if operation.kind is Kind.FILL:
            self._complete_fill(operation, events)
        elif operation.kind is Kind.INVALIDATE:
            events.found(operation.found)
            self._cache.invalidate(operation.found, operation.key)
            return operation
        elif operation.fresh:
            events.found(operation.found)
            self._cache.scrub(operation.found)
            events.scrub_done = True
        return None

    def _complete_lookup(self, operation: Operation, events: CycleEvents) -> Operation | None:
        events.count("lookups")
        operation.usable = self._usable
        output = None
        if operation.usable and operation.fresh:
            events.found(operation.found)
            output = self._cache.lookup(operation.found, operation.key)
        if output is None:
            return operation
        events.count("hits")
        events.response = Response(operation.tag, output, 1, 1)
        return None

    def _complete_fill(self, operation: Operation, events: CycleEvents) -> None:
        assert self._mshrs.entries[operation.mshr].state is State.INJECTED
        result = operation.result
        events.response = Response(operation.tag, result.output, result.match, 0)
        events.freed = operation.mshr
        if not result.match:
            events.count("drops")
        elif self._usable and operation.fresh:
            events.found(operation.found)
            if self._cache.touch(operation.found, operation.key) is None:
                evicted = self._cache.fill(operation.found, operation.key, result.output)
                events.count("fills")
                if evicted:
                    events.count("evictions")

    # ---- MSHRs

    def _next_mshrs(
        self, events: CycleEvents, issued: bool, picked: int | None, invalidated: list[int]
    ) -> list[Mshr]:  # fmt: skip
        """Return the MSHRs at the end of the cycle, without the effect of a flush; count what happens in M."""
        old, new = self._mshrs.entries, self._mshrs.copies()
        if self._m is not None and self._m.kind is Kind.LOOKUP:
            assert self._t is not None, "B takes a LOOKUP only if it finds an MSHR"
            new[self._t] = self._allocated(self._m, events)
        if events.freed is not None:
            new[events.freed].state = State.FREE
        if issued:
            assert self._port is not None
            new[self._port].state, new[self._port].stale = State.ISSUED, False
        if picked is not None:
            new[picked].state = State.INJECTED

        self._follow_primaries(new)
        for index in invalidated:
            if old[index].state is State.ISSUED:
                new[index].stale = True
            else:
                new[index].state = State.WAIT_ISSUE
        if self._m is not None and self._m.kind is Kind.INVALIDATE:
            events.count("invalidations")
            events.completed = self._m
        if self._late_answer is not None:
            self._take_answer(*self._late_answer, new, invalidated, events)
        return new

    def _allocated(self, lookup: Operation, events: CycleEvents) -> Mshr:
        """Return the MSHR that the LOOKUP in M becomes."""
        entry = Mshr(State.WAIT_ISSUE, fresh=lookup.fresh, key=lookup.key, dst=lookup.dst, tag=lookup.tag)
        primary = self._mshrs.mergeable(lookup.key) if lookup.usable and lookup.fresh else None
        if primary is None:
            events.count("misses")
        else:
            events.count("merges")
            entry.state, entry.primary = State.WAIT_PRIMARY, primary
        return entry

    def _follow_primaries(self, new: list[Mshr]) -> None:
        """Give those the result that merged in the cycle before with an MSHR that had it already."""
        old = self._mshrs.entries
        for index, mshr in enumerate(old):
            if mshr.state is not State.WAIT_PRIMARY:
                continue
            waits = old[mshr.primary].state in {State.WAIT_ISSUE, State.ISSUED}
            if not waits and not self._invalidates(mshr):
                new[index].state, new[index].result = State.DONE, old[mshr.primary].result

    def _invalidates(self, mshr: Mshr) -> bool:
        """Return whether the INVALIDATE in M is for the key of `mshr`."""
        m = self._m
        return m is not None and m.kind is Kind.INVALIDATE and mshr.fresh and mshr.key == m.key

    def _take_answer(
        self, index: int, result: TcamResult, new: list[Mshr], invalidated: list[int], events: CycleEvents
    ) -> None:
        old = self._mshrs.entries
        assert old[index].state is State.ISSUED, f"answer for MSHR {index}, which is {old[index].state.name}"
        if old[index].stale:
            events.count("retries")
        if old[index].stale or index in invalidated:
            new[index].state, new[index].stale = State.WAIT_ISSUE, False
            return
        for other, mshr in enumerate(old):
            if other == index or (mshr.state is State.WAIT_PRIMARY and mshr.primary == index):
                new[other].state, new[other].result = State.DONE, result

    def _issue(self, issued: bool) -> None:
        """Move the next request towards the TCAM port; hand it to the TCAM inside if it was `issued`."""
        if issued and self._internal:
            assert self._port is not None
            dst = self._mshrs.entries[self._port].dst
            self._tcam.accept(self._port, dst, self.keys.member(self._active, dst))
        if self._to_issue is not None:
            self._port, self._to_issue = self._to_issue, None
        elif self._port is None:
            self._to_issue = self._mshrs.to_issue()
            if self._to_issue is not None:
                self._mshrs.issue_pointer = (self._to_issue + 1) % self.params.mshrs
        elif issued:
            self._port = None

    def _next_for_miss(self) -> None:
        """Choose T, the MSHR of the next miss."""
        allocated = self._m is not None and self._m.kind is Kind.LOOKUP
        if self._t is None or allocated:
            free = (index for index, mshr in enumerate(self._mshrs.entries) if mshr.state is State.FREE)
            self._t = next((index for index in free if index != self._t), None)

    # ---- movement

    def _move_fills(self, taken: Operation | None, picked: int | None) -> None:
        """Move the next FILL from the MSHRs to P and F."""
        if taken is not None and taken is self._f:
            self._f = None
        if self._to_fill is not None:
            mshr = self._mshrs.entries[self._to_fill]
            self._f = Operation(
                Kind.FILL, mshr.fresh, mshr.key, mshr.dst, mshr.tag, self._to_fill, result=mshr.result
            )  # fmt: skip
            self._mshrs.fill_pointer = (self._to_fill + 1) % self.params.mshrs
        self._to_fill = picked

    def _move_requests(self, inputs: LookupInputs, taken: Operation | None) -> None:
        """Move stages A and Q."""
        moves = self._a_moves
        if self._q and taken is self._q[0]:
            self._q.pop(0)
        if taken is not None:
            self._scrub_was_last = taken.kind is Kind.SCRUB
        if not moves:
            return
        enters: Operation | None = None
        if self._invalidate_pending:
            enters = Operation(Kind.INVALIDATE, key=self.keys.key(self._active, self._invalidate_dst))
            self._invalidate_pending = False
        elif inputs.req_valid:
            key = self.keys.key(self._active, inputs.req_dst)
            enters = Operation(Kind.LOOKUP, key=key, dst=inputs.req_dst, tag=inputs.req_tag)
        last = self._a[-1]
        self._a = [enters, *self._a[:-1]]
        if last is not None:
            self._q.append(last)

    def _kill(self, flush: bool, invalidated: list[int]) -> None:
        """Empty the registers of FILLs that are worthless at the end of the cycle."""

        def lives(operation: Operation | None) -> bool:
            fill = operation is not None and operation.kind is Kind.FILL
            return not (fill and (flush or operation.mshr in invalidated))  # type: ignore[union-attr]

        if flush or self._to_fill in invalidated:
            self._to_fill = None
        self._f = self._f if lives(self._f) else None
        self._c = [operation if lives(operation) else None for operation in self._c]

    def _flush_event(self) -> None:
        self._mshrs.flush()
        for operation in (*self._a, *self._q, *self._c, self._m):
            if operation is not None:
                operation.fresh = False

    # ---- registers at the end of the cycle

    def _clear_counters(self) -> None:
        self._late_clear = True

    def _registers(self, inputs: LookupInputs, events: CycleEvents, read_data: int) -> None:
        """Take the bus signals of the cycle before, which act in this one."""
        if self._late_read is not None:
            self._rdata = self._late_read
        self._late_read = read_data if self._before.csr_re else None
        if self._before.csr_re:
            self._note_read(self._before.csr_addr)
        self._count(self._late_counts)
        self._end_of_lines(events)
        self._late_counts = events.counts
        if self._late_clear:
            super()._clear_counters()
            self._late_clear = False
        self._enables = self._shadow["CTRL"], self._enables[0]
        *later, longest_ago = (self._configured, *self._configured_before)
        load = longest_ago and not any(later)
        if load:
            self._active = self._from_shadow()
        self._late_request = self._flush_request or self._row_flushes() or load
        self._configured_before = later
        self._bus(self._before)
        if events.completed is not None:
            self._invalidate_busy = False  # after the write, which this cycle still ignores
        self._before = inputs
        self._tcam.edge()
