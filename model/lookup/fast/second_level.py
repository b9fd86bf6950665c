"""The second level between the MSHRs and the TCAM (docs/definitions/second-level.md)."""

from hopforge.model.kernel.compile import inner
from hopforge.model.lookup.fast import layout as at
from hopforge.model.lookup.fast.copying import copy_row
from hopforge.model.lookup.fast.flush import flush_decision, scrubber
from hopforge.model.lookup.fast.keys import row_of
from hopforge.model.lookup.fast.operations import write_line
from hopforge.model.lookup.fast.tcam import tcam_accept, tcam_takes
from hopforge.model.lookup.fast.ways import find_way, remove_dead, remove_key, touch


@inner
def has_second(state):  # type: ignore[no-untyped-def]
    """Return whether the engine has a second level."""
    return state.second_params[at.P_SETS] > 0


@inner
def request_taken(state, i, voids):  # type: ignore[no-untyped-def]
    """Return whether the request of an MSHR is taken; `voids`: an INVALIDATE completes at the first level."""
    if not has_second(state):
        return tcam_takes(state, i)
    ops = state.second_operations
    _choose(state)
    last = ops[ops.shape[0] - 1, at.F_KIND]
    moves = last == at.NONE or ops[at.SECOND_TAKEN, at.F_KIND] == at.LOOKUP
    return moves and ops[at.SECOND_I, at.F_KIND] == at.NONE and not voids


@inner
def hear_answer(state, said, match, output):  # type: ignore[no-untyped-def]
    """Return (MSHR or -1, match, output) that the MSHRs are told; `said` …: what the TCAM says."""
    if not has_second(state):
        return said, match, output
    s = state.second_regs
    return s[at.S_LATE_ANSWER] - 1, s[at.S_LATE_MATCH], s[at.S_LATE_OUTPUT]


@inner
def show_ask(state, o):  # type: ignore[no-untyped-def]
    """Show the first request of the second level on the TCAM port."""
    asks = state.second_regs[at.S_ASKS] and not state.regs[at.S_HOLD] and state.params[at.P_TCAM] == at.EXTERNAL
    o[at.O_TCAM_VALID] = asks
    o[at.O_TCAM_ID] = state.second_asks[0, at.A_ID] if asks else 0
    o[at.O_TCAM_DST] = state.second_asks[0, at.A_DST] if asks else 0


@inner
def second_step(state, i, sent, said, match, output, void_key, enabled, flush, counts):  # type: ignore[no-untyped-def]
    """Go through a cycle, after `request_taken`.

    ``sent``: MSHR whose request was taken, -1: none; ``said``, ``match``, ``output``: what the TCAM says; ``void_key``:
    key of the INVALIDATE that completes at the first level, -1: none. MSHRs are those at the start of the cycle.
    """
    s, ops, lines = state.second_regs, state.second_operations, state.second_lines
    go, deferred = flush_decision(lines, flush)
    if s[at.S_ASKS] and not state.regs[at.S_HOLD] and tcam_takes(state, i):
        if state.params[at.P_TCAM] != at.EXTERNAL:
            tcam_accept(state, state.second_asks[0, at.A_ID], state.second_asks[0, at.A_DST])
        s[at.S_ASKS] -= 1
        for place in range(1, at.SECOND_ASKS):
            copy_row(state.second_asks[place - 1], state.second_asks[place])
    scrubbed = _complete(state, enabled and s[at.S_FLUSH_WAIT] == 0, counts)

    # movement
    taken = ops[at.SECOND_TAKEN]
    copy_row(ops[at.SECOND_C2], ops[at.SECOND_C1])
    copy_row(ops[at.SECOND_C1], taken)
    _move_requests(state, sent)
    _move_fills(state, said, match, output)
    if taken[at.F_KIND]:
        s[at.S_SCRUB_WAS_LAST] = taken[at.F_KIND] == at.SCRUB
    if taken[at.F_KIND] == at.INVALIDATE:
        ops[at.SECOND_I, at.F_KIND] = at.NONE
    if void_key >= 0:
        ops[at.SECOND_I, at.F_KIND] = at.INVALIDATE
        ops[at.SECOND_I, at.F_KEY] = void_key

    scrubber(lines, scrubbed, go, deferred)
    if flush or go:
        for stage in range(ops.shape[0]):
            ops[stage, at.F_FRESH] = 0
    s[at.S_CYCLE] += 1


@inner
def _choose(state):  # type: ignore[no-untyped-def]
    """Fill the row of what B takes."""
    s, ops = state.second_regs, state.second_operations
    c1, c2 = ops[at.SECOND_C1, at.F_KIND], ops[at.SECOND_C2, at.F_KIND]
    taken, last = ops[at.SECOND_TAKEN], ops[ops.shape[0] - 1]
    taken[at.F_KIND] = at.NONE
    if c1 > at.LOOKUP or c2 > at.LOOKUP:  # behind a writer
        return
    if ops[at.SECOND_F, at.F_KIND]:
        copy_row(taken, ops[at.SECOND_F])
    elif ops[at.SECOND_I, at.F_KIND]:
        copy_row(taken, ops[at.SECOND_I])
    elif s[at.S_FLUSH_WAIT] and s[at.S_SCRUB_ACTIVE] and not s[at.S_SCRUB_WAS_LAST]:
        _take_scrub(state)
    elif last[at.F_KIND] and s[at.S_ASKS] + (c1 == at.LOOKUP) + (c2 == at.LOOKUP) < at.SECOND_ASKS:
        copy_row(taken, last)
    elif s[at.S_SCRUB_ACTIVE]:
        _take_scrub(state)


@inner
def _take_scrub(state):  # type: ignore[no-untyped-def]
    taken = state.second_operations[at.SECOND_TAKEN]
    taken[at.F_KIND] = at.SCRUB
    taken[at.F_FRESH] = 1
    taken[at.F_ROW] = state.second_regs[at.S_SCRUB_ROW]


@inner
def _complete(state, enabled, counts):  # type: ignore[no-untyped-def]
    """Carry out what C2 does; return whether a row was scrubbed."""
    s, lines = state.second_regs, state.second_lines
    operation = state.second_operations[at.SECOND_C2]
    kind, key = operation[at.F_KIND], operation[at.F_KEY]
    usable = enabled and operation[at.F_FRESH] == 1
    s[at.S_LATE_ANSWER] = 0
    s[at.S_INV_DONE] = kind == at.INVALIDATE
    if kind == at.LOOKUP:
        way = find_way(lines, key) if usable else -1
        if way < 0:
            ask = state.second_asks[s[at.S_ASKS]]
            ask[at.A_ID], ask[at.A_DST] = operation[at.F_MSHR], operation[at.F_DST]
            s[at.S_ASKS] += 1
            counts[at.N_SECOND_MISSES] += 1
            return False
        row = row_of(lines, key & (1 << state.params[at.P_A]) - 1, way)
        touch(lines, row, way)
        _answer(state, operation[at.F_MSHR], 1, lines.outputs[row, way])
        counts[at.N_SECOND_HITS] += 1
    elif kind == at.FILL:
        _answer(state, operation[at.F_MSHR], operation[at.F_MATCH], operation[at.F_OUTPUT])
        if usable and operation[at.F_MATCH]:
            write_line(lines, key, operation[at.F_OUTPUT])
    elif kind == at.INVALIDATE:
        remove_key(lines, key)
    elif kind == at.SCRUB and operation[at.F_FRESH]:
        remove_dead(lines, operation[at.F_ROW])
        return True
    return False


@inner
def _answer(state, number, match, output):  # type: ignore[no-untyped-def]
    s = state.second_regs
    s[at.S_LATE_ANSWER], s[at.S_LATE_MATCH], s[at.S_LATE_OUTPUT] = number + 1, match, output


@inner
def _move_requests(state, sent):  # type: ignore[no-untyped-def]
    """Move R, and let the request of MSHR `sent` enter."""
    ops = state.second_operations
    last = ops.shape[0] - 1
    if ops[last, at.F_KIND] and ops[at.SECOND_TAKEN, at.F_KIND] != at.LOOKUP:
        return
    for stage in range(last, at.SECOND_R, -1):
        copy_row(ops[stage], ops[stage - 1])
    enters = ops[at.SECOND_R]
    enters[at.F_KIND] = at.NONE
    if sent >= 0:
        mshr = state.mshrs[sent]
        enters[at.F_KIND] = at.LOOKUP
        enters[at.F_FRESH] = mshr[at.M_FRESH]
        enters[at.F_KEY] = mshr[at.M_KEY]
        enters[at.F_DST] = mshr[at.M_DST]
        enters[at.F_MSHR] = sent


@inner
def _move_fills(state, said, match, output):  # type: ignore[no-untyped-def]
    """Move the first of G to F, and what the TCAM says into G."""
    s, results = state.second_regs, state.second_results
    fill = state.second_operations[at.SECOND_F]
    if fill[at.F_KIND]:
        if state.second_operations[at.SECOND_TAKEN, at.F_KIND] == at.FILL:
            fill[at.F_KIND] = at.NONE
    elif s[at.S_RESULTS]:
        number = results[0, at.G_ID]
        mshr = state.mshrs[number]
        fill[at.F_KIND] = at.FILL
        fill[at.F_FRESH] = mshr[at.M_FRESH] and not mshr[at.M_STALE]
        fill[at.F_KEY] = mshr[at.M_KEY]
        fill[at.F_MSHR] = number
        fill[at.F_MATCH], fill[at.F_OUTPUT] = results[0, at.G_MATCH], results[0, at.G_OUTPUT]
        s[at.S_RESULTS] -= 1
        for place in range(1, results.shape[0]):
            copy_row(results[place - 1], results[place])
    if said >= 0:
        last = results[s[at.S_RESULTS]]
        last[at.G_ID], last[at.G_MATCH], last[at.G_OUTPUT] = said, match, output
        s[at.S_RESULTS] += 1


@inner
def second_busy(state):  # type: ignore[no-untyped-def]
    """Return whether the second level does something that no MSHR waits for."""
    s = state.second_regs
    return s[at.S_SCRUB_ACTIVE] | s[at.S_FLUSH_WAIT]
