"""The engine of depths 1 to 4: stages and what they do in one cycle."""

from dataclasses import replace

from hopforge.model.lookup.golden.control import EngineControl
from hopforge.model.lookup.golden.mshrs import Mshr, State
from hopforge.model.lookup.golden.operations import CycleEvents, Kind, Operation, Response
from hopforge.model.lookup.golden.ports import LookupInputs, LookupOutputs
from hopforge.model.lookup.golden.tcam import TcamResult


class LookupEngine(EngineControl):
    """The lookup engine of docs/definitions/lookup-engine.md with a depth of 1 to 4, one cycle per `step`.

    Parameters
    ----------
    params : LookupParams
        What the engine is built with.

    Examples
    --------
    >>> from hopforge.model.lookup.params import LookupParams
    >>> engine = LookupEngine(LookupParams(tcam_latency_cycles=1))
    >>> engine.step(LookupInputs(req_valid=1, req_dst=5, req_tag=7, resp_ready=1)).req_ready
    1
    >>> answers = [engine.step(LookupInputs(resp_ready=1)) for _ in range(12)]
    >>> [(cycle, answer.resp_tag, answer.resp_match) for cycle, answer in enumerate(answers, 1) if answer.resp_valid]
    [(7, 7, 0)]
    """

    def reset(self) -> None:
        """Bring every register and memory into the state after reset."""
        super().reset()
        self._depth = self.params.pipeline_depth
        self._a: list[Operation | None] = [None] * max(0, self._depth - 2)  # the oldest last
        self._c: Operation | None = None
        self._out: Response | None = None

    @property
    def idle(self) -> bool:
        """Whether no lookup is anywhere in the engine and nothing is going on in the background."""
        return self._c is None and self._out is None and not any(self._a) and self._quiet

    @property
    def response(self) -> Response | None:
        """What stands at the response port in this cycle."""
        return self._out

    def step(self, inputs: LookupInputs) -> LookupOutputs:
        """Return the outputs of this cycle and go on to the next.

        Parameters
        ----------
        inputs : LookupInputs
            Inputs of this cycle.

        Returns
        -------
        LookupOutputs
            Outputs of this cycle (``req_ready`` depends on ``resp_ready`` of the same cycle).
        """
        events = CycleEvents()
        read_data = self._read(inputs.csr_addr)
        internal = self._internal
        answer = self._answer(inputs)
        request = self._flush_request or self._row_flushes()
        go, deferred = self._flush_decision(request)
        offer = None if self._hold else self._mshrs.to_issue()  # to the TCAM
        tcam_ready = (not self._tcam.busy) if internal else bool(inputs.tcam_req_ready)

        out_free = self._out is None or bool(inputs.resp_ready)
        chosen, req_ready = self._choose(inputs, out_free)
        outputs = self._outputs(req_ready, offer if not internal else None)

        # C, seen from the registers at the start of the cycle
        operation = chosen if self._depth == 1 else self._c
        if operation is not None and (out_free or operation.kind in {Kind.INVALIDATE, Kind.SCRUB}):
            self._complete(operation, answer, events)

        mshrs = self._next_mshrs(events, answer, offer, tcam_ready, chosen)
        self._move(inputs, chosen, req_ready=req_ready, out_free=out_free, events=events)
        self._mshrs.entries = mshrs
        self._scrubber(events, go=go, deferred=deferred)
        if request or go:
            self._flush_event()
        if offer is not None:
            self._mshrs.issue_pointer = (offer + 1) % self.params.mshrs if tcam_ready else offer
            if tcam_ready and internal:
                dst = mshrs[offer].dst
                self._tcam.accept(offer, dst, self.keys.member(self._active, dst))
        self._registers(inputs, events, read_data)
        return outputs

    # ---- decisions from the registers at the start of the cycle

    def _choose(self, inputs: LookupInputs, out_free: bool) -> tuple[Operation | None, bool]:
        """Return (operation that B takes, req_ready)."""
        c_goes = self._c is not None and (out_free or self._c.kind in {Kind.INVALIDATE, Kind.SCRUB})
        c_free = self._c is None or c_goes
        room = self._mshrs.free > (self._c is not None and self._c.kind is Kind.LOOKUP)
        may_scrub = self._scrub_active and not (self._c is not None and self._c.kind is Kind.SCRUB)
        fill = self._mshrs.to_fill()

        chosen: Operation | None = None
        ready = False  # D ≤ 2 only
        if not c_free:
            pass
        elif self._flush_wait and may_scrub:
            chosen = self._scrub()
        elif fill is not None:
            mshr = self._mshrs.entries[fill]
            chosen = Operation(Kind.FILL, mshr.fresh, mshr.key, mshr.dst, mshr.tag, fill)
        elif self._depth >= 3:
            last = self._a[-1]
            if last is not None and (last.kind is Kind.INVALIDATE or room):
                chosen = last
        elif self._invalidate_pending:
            chosen = self._invalidate()
        else:
            ready = room and (out_free or self._depth == 2)
            if inputs.req_valid and room:
                chosen = self._lookup(inputs)
        if c_free and chosen is None and may_scrub:
            chosen = self._scrub()

        if self._depth >= 3:
            ready = not self._invalidate_pending and self._a_free(chosen)
        return chosen, ready

    def _a_free(self, chosen: Operation | None) -> bool:
        """Return whether the first register of stage A is empty or moves (D ≥ 3)."""
        free = self._a[-1] is None or chosen is self._a[-1]
        for operation in reversed(self._a[:-1]):
            free = operation is None or free
        return free

    def _lookup(self, inputs: LookupInputs) -> Operation:
        key = self.keys.key(self._active, inputs.req_dst)
        return Operation(Kind.LOOKUP, key=key, dst=inputs.req_dst, tag=inputs.req_tag)

    def _invalidate(self) -> Operation:
        return Operation(Kind.INVALIDATE, key=self.keys.key(self._active, self._invalidate_dst))

    def _scrub(self) -> Operation:
        return Operation(Kind.SCRUB, row=self._scrub_row)

    def _outputs(self, req_ready: bool, offer: int | None) -> LookupOutputs:
        outputs = LookupOutputs(req_ready=int(req_ready), csr_rdata=self._rdata, line_error=int(self._line_error))
        if self._out is not None:
            out = self._out
            outputs = outputs._replace(
                resp_valid=1, resp_tag=out.tag, resp_output=out.output, resp_match=out.match, resp_hit=out.hit
            )
        if offer is not None:
            outputs = outputs._replace(tcam_req_valid=1, tcam_req_id=offer, tcam_req_dst=self._mshrs.entries[offer].dst)
        return outputs

    # ---- stage C

    def _complete(self, operation: Operation, answer: tuple[int, TcamResult] | None, events: CycleEvents) -> None:
        """Carry out what C does; MSHRs are only looked at, their changes go to `events`."""
        events.completed = operation
        if self._depth == 1:
            self._read_lines(operation)
        if operation.kind is Kind.LOOKUP:
            self._complete_lookup(operation, answer, events)
        elif operation.kind is Kind.FILL:
            self._complete_fill(operation, events)
        elif operation.kind is Kind.INVALIDATE:
            events.count("invalidations")
            events.found(operation.found)
            self._cache.invalidate(operation.found, operation.key)
        elif operation.fresh:
            events.found(operation.found)
            self._cache.scrub(operation.found)
            events.scrub_done = True

    def _usable(self, operation: Operation) -> bool:
        return bool(self._active.enable) and not self._flush_wait and operation.fresh

    def _complete_lookup(
        self, operation: Operation, answer: tuple[int, TcamResult] | None, events: CycleEvents
    ) -> None:  # fmt: skip
        events.count("lookups")
        output = None
        if self._usable(operation):
            events.found(operation.found)
            output = self._cache.lookup(operation.found, operation.key)
        if output is not None:
            events.response = Response(operation.tag, output, 1, 1)
            events.count("hits")
            return
        entry = Mshr(
            State.WAIT_ISSUE, fresh=operation.fresh, key=operation.key, dst=operation.dst, tag=operation.tag
        )
        primary = self._mshrs.mergeable(operation.key) if self._usable(operation) else None
        if primary is None:
            events.count("misses")
        else:
            events.count("merges")
            other = self._mshrs.entries[primary]
            answered = other.state is State.ISSUED and not other.stale and answer is not None and answer[0] == primary
            if other.state in {State.DONE, State.INJECTED}:
                entry = replace(entry, state=State.DONE, result=other.result)
            elif answered:
                assert answer is not None
                entry = replace(entry, state=State.DONE, result=answer[1])
            else:
                entry = replace(entry, state=State.WAIT_PRIMARY, primary=primary)
        events.allocated = self._mshrs.first_free, entry

    def _complete_fill(self, operation: Operation, events: CycleEvents) -> None:
        mshr = self._mshrs.entries[operation.mshr]
        if self._depth > 1 and mshr.state is not State.INJECTED:
            return  # killed
        events.response = Response(operation.tag, mshr.result.output, mshr.result.match, 0)
        events.freed = operation.mshr
        if not mshr.result.match:
            events.count("drops")
            return
        if not self._usable(operation):
            return
        events.found(operation.found)
        if self._cache.touch(operation.found, operation.key) is not None:
            return
        evicted = self._cache.fill(operation.found, operation.key, mshr.result.output)
        events.count("fills")
        if evicted:
            events.count("evictions")

    # ---- registers at the end of the cycle

    def _next_mshrs(
        self,
        events: CycleEvents,
        answer: tuple[int, TcamResult] | None,
        offer: int | None,
        tcam_ready: bool,
        chosen: Operation | None,
    ) -> list[Mshr]:
        """Return the MSHRs at the end of the cycle, without the effect of a flush."""
        old, new = self._mshrs.entries, self._mshrs.copies()
        if events.allocated is not None:
            slot, entry = events.allocated
            new[slot] = entry
        if events.freed is not None:
            new[events.freed].state = State.FREE
        if offer is not None and tcam_ready:
            new[offer].state, new[offer].stale = State.ISSUED, False
        if self._depth > 1 and chosen is not None and chosen.kind is Kind.FILL:
            new[chosen.mshr].state = State.INJECTED

        done = events.completed
        invalidated = self._mshrs.invalidated(done.key) if done is not None and done.kind is Kind.INVALIDATE else []
        for index in invalidated:
            if old[index].state is State.ISSUED:
                new[index].stale = True
            else:
                new[index].state = State.WAIT_ISSUE
        if answer is not None:
            index, result = answer
            assert old[index].state is State.ISSUED, f"answer for MSHR {index}, which is {old[index].state.name}"
            if old[index].stale:
                events.count("retries")
            if old[index].stale or index in invalidated:
                new[index].state, new[index].stale = State.WAIT_ISSUE, False
            else:
                for mshr in (new[index], *(m for m in new if m.state is State.WAIT_PRIMARY and m.primary == index)):
                    mshr.state, mshr.result = State.DONE, result
        return new

    def _move(
        self, inputs: LookupInputs, chosen: Operation | None, *, req_ready: bool, out_free: bool, events: CycleEvents
    ) -> None:
        """Move operations and the response on by one stage."""
        if out_free:
            self._out = events.response
        taken = events.completed if self._depth == 1 else chosen
        if taken is not None and taken.kind is Kind.FILL:
            self._mshrs.fill_pointer = (taken.mshr + 1) % self.params.mshrs
        if self._depth > 1:
            if self._c is events.completed:
                self._c = None
            if chosen is not None:
                self._read_lines(chosen)  # with what C has just written
                self._c = chosen
        if self._depth < 3:
            if taken is not None and taken.kind is Kind.INVALIDATE:
                self._invalidate_pending = False
        else:
            self._move_a(inputs, chosen, req_ready)

    def _move_a(self, inputs: LookupInputs, chosen: Operation | None, req_ready: bool) -> None:
        enters: Operation | None = None
        if self._invalidate_pending:
            if self._a_free(chosen):
                enters = self._invalidate()
                self._invalidate_pending = False
        elif req_ready and inputs.req_valid:
            enters = self._lookup(inputs)
        if chosen is self._a[-1]:
            self._a[-1] = None
        for stage in reversed(range(1, len(self._a))):
            if self._a[stage] is None:
                self._a[stage], self._a[stage - 1] = self._a[stage - 1], None
        if enters is not None:
            assert self._a[0] is None
            self._a[0] = enters

    def _flush_event(self) -> None:
        self._mshrs.flush()
        for operation in (*self._a, self._c):
            if operation is not None:
                operation.fresh = False

    def _registers(self, inputs: LookupInputs, events: CycleEvents, read_data: int) -> None:
        """Take the CSR bus and `link_change` of this cycle."""
        if inputs.csr_re:
            self._rdata = read_data
            self._note_read(inputs.csr_addr)
        self._count(events.counts)
        self._end_of_lines(events)
        self._active = self._from_shadow()
        self._bus(inputs)
        self._flush_request |= self._configured
        if events.completed is not None and events.completed.kind is Kind.INVALIDATE:
            self._invalidate_busy = False  # after the write, which this cycle still ignores
        self._tcam.edge()
