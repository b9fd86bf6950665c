"""A cycle of an engine of depth 5 to 8, in which nothing waits behind B."""

import numpy as np

from hopforge.model.kernel.compile import inner
from hopforge.model.lookup.fast import layout as at
from hopforge.model.lookup.fast.copying import copy_row, copy_rows
from hopforge.model.lookup.fast.csr import count_events, note_read, read_word, take_bus, take_shadow
from hopforge.model.lookup.fast.deep_mshrs import choose_free, move_issue, next_mshrs, pick_fill
from hopforge.model.lookup.fast.flush import flush_decision, flush_event, flush_request, scrubber
from hopforge.model.lookup.fast.keys import row_of
from hopforge.model.lookup.fast.operations import begin, keep_answer
from hopforge.model.lookup.fast.second_level import has_second, hear_answer, request_taken, second_step, show_ask
from hopforge.model.lookup.fast.tcam import tcam_edge, tcam_result
from hopforge.model.lookup.fast.ways import find_way, remove_dead, remove_key, touch


def compute_deep_cycle(state, i, o):  # type: ignore[no-untyped-def]
    """Compute one cycle: outputs `o` (int64[10]) from inputs `i` (int64[14]), and the registers at its end."""
    s, ops, counts = state.regs, state.operations, state.events
    counts[:] = 0

    # decisions from the registers at the start of the cycle
    read_data = read_word(state, state.late_inputs[at.I_CSR_ADDR])
    request = s[at.S_LATE_REQUEST] == 1
    go, deferred = flush_decision(state.lines, request)
    _show(state, o)
    m_kind = ops[at.DEEP_M, at.F_KIND]
    void_key = ops[at.DEEP_M, at.F_KEY] if m_kind == at.INVALIDATE else np.int64(-1)
    takes = request_taken(state, i, void_key >= 0)
    issued = s[at.S_PORT] > 0 and s[at.S_HOLD] == 0 and takes
    said, said_match, said_output = tcam_result(state, i)
    answered, match, output = hear_answer(state, said, said_match, said_output)
    _choose(state)
    picked = pick_fill(state)

    # C2, M, MSHRs, movement
    copy_rows(state.next_mshrs, state.mshrs)
    next_mshrs(state, issued, picked, void_key, counts)
    if has_second(state):
        sent = s[at.S_PORT] - 1 if issued else np.int64(-1)
        enabled = s[at.S_ENABLE_1] == 1 and s[at.S_ENABLE_2] == 1
        second_step(
            state, i, sent, said, said_match, said_output, void_key, enabled, request or go, counts
        )  # fmt: skip
    move_issue(state, issued)
    choose_free(state, m_kind == at.LOOKUP)
    if i[at.I_RESP_READY] and s[at.S_RESPONSES]:
        _drop_response(state)
    goes_to_m, scrub_done = _complete(state, counts)
    _move_fills(state, picked)
    _move_requests(state, i)
    if goes_to_m:
        copy_row(ops[at.DEEP_M], ops[at.DEEP_C2])
    else:
        ops[at.DEEP_M, at.F_KIND] = at.NONE
    copy_row(ops[at.DEEP_C2], ops[at.DEEP_C1])
    if state.params[at.P_MEMORY_STAGE]:
        copy_row(ops[at.DEEP_C1], ops[at.DEEP_R])
        copy_row(ops[at.DEEP_R], ops[at.DEEP_TAKEN])
    else:
        copy_row(ops[at.DEEP_C1], ops[at.DEEP_TAKEN])
    _kill(state, request or go, void_key)
    copy_rows(state.mshrs, state.next_mshrs)

    # registers
    scrubber(state.lines, scrub_done, go, deferred)
    if request or go:
        flush_event(state, at.DEEP_F)
    counts[at.N_FLUSHES] += go
    _registers(state, i, read_data, m_kind == at.INVALIDATE)
    s[at.S_LATE_ANSWER], s[at.S_LATE_MATCH], s[at.S_LATE_OUTPUT] = answered + 1, match, output
    s[at.S_CYCLE] += 1


@inner
def deep_quiet(state):  # type: ignore[no-untyped-def]
    """Return whether no operation is under way, and nothing that acts a cycle later."""
    s, late = state.regs, state.late_inputs
    busy = s[at.S_RESPONSES] | s[at.S_LATE_REQUEST] | s[at.S_LATE_ANSWER]
    busy |= s[at.S_CONFIGURED] | s[at.S_CONFIGURED_BEFORE] | s[at.S_LATE_CLEAR]
    busy |= late[at.I_CSR_WE] | late[at.I_LINK_CHANGE]
    for stage in range(at.DEEP_TAKEN):
        busy |= state.operations[stage, at.F_KIND]
    for index in range(state.late_events.shape[0]):
        busy |= state.late_events[index]
    return busy == 0


@inner
def _a_moves(state):  # type: ignore[no-untyped-def]
    return state.operations[at.DEEP_Q1, at.F_KIND] == at.NONE


@inner
def _show(state, o):  # type: ignore[no-untyped-def]
    """Compute the outputs."""
    s = state.regs
    o[:] = 0
    o[at.O_REQ_READY] = _a_moves(state) and s[at.S_INV_PENDING] == 0
    o[at.O_CSR_RDATA] = s[at.S_RDATA]
    if s[at.S_RESPONSES]:
        first = state.responses[0]
        o[at.O_RESP_VALID] = 1
        o[at.O_RESP_TAG] = first[at.X_TAG]
        o[at.O_RESP_OUTPUT] = first[at.X_OUTPUT]
        o[at.O_RESP_MATCH] = first[at.X_MATCH]
        o[at.O_RESP_HIT] = first[at.X_HIT]
    if has_second(state):
        show_ask(state, o)
    elif s[at.S_PORT] and s[at.S_HOLD] == 0 and state.params[at.P_TCAM] == at.EXTERNAL:
        o[at.O_TCAM_VALID] = 1
        o[at.O_TCAM_ID] = s[at.S_PORT] - 1
        o[at.O_TCAM_DST] = state.mshrs[s[at.S_PORT] - 1, at.M_DST]


@inner
def _choose(state):  # type: ignore[no-untyped-def]
    """Fill the row of what B takes; what it takes of F or Q0 is still there."""
    s, ops = state.regs, state.operations
    taken, fill, first = ops[at.DEEP_TAKEN], ops[at.DEEP_F], ops[at.DEEP_Q0]
    if s[at.S_FLUSH_WAIT] and s[at.S_SCRUB_ACTIVE] and not s[at.S_SCRUB_WAS_LAST]:
        _take_scrub(state)
    elif fill[at.F_KIND]:
        copy_row(taken, fill)
    elif first[at.F_KIND]:
        copy_row(taken, first)
    elif s[at.S_SCRUB_ACTIVE]:
        _take_scrub(state)
    else:
        taken[at.F_KIND] = at.NONE
    if not _has_room(state, taken[at.F_KIND]):
        taken[at.F_KIND] = at.NONE


@inner
def _take_scrub(state):  # type: ignore[no-untyped-def]
    taken = state.operations[at.DEEP_TAKEN]
    taken[:] = 0
    taken[at.F_KIND] = at.SCRUB
    taken[at.F_FRESH] = 1
    taken[at.F_ROW] = state.regs[at.S_SCRUB_ROW]


@inner
def _has_room(state, kind):  # type: ignore[no-untyped-def]
    """Return whether there is a place for everything that can become of an operation of this kind."""
    ops = state.operations
    lookups = 0
    for stage in range(at.DEEP_R, at.DEEP_C2 + 1):
        if ops[stage, at.F_KIND] > at.LOOKUP:  # behind a writer
            return False
        lookups += ops[stage, at.F_KIND] == at.LOOKUP
    if kind in (at.LOOKUP, at.FILL) and state.regs[at.S_RESPONSES] + lookups >= state.responses.shape[0]:
        return False
    if kind != at.LOOKUP:
        return True
    room = -lookups - (ops[at.DEEP_M, at.F_KIND] == at.LOOKUP)
    for index in range(state.mshrs.shape[0]):
        room += state.mshrs[index, at.M_STATE] == at.FREE
    return room > 0


@inner
def _usable(state):  # type: ignore[no-untyped-def]
    s = state.regs
    return s[at.S_ENABLE_1] == 1 and s[at.S_ENABLE_2] == 1 and s[at.S_FLUSH_WAIT] == 0


@inner
def _respond(state, tag, output, match, hit):  # type: ignore[no-untyped-def]
    s = state.regs
    last = state.responses[s[at.S_RESPONSES]]
    last[at.X_TAG] = tag
    last[at.X_OUTPUT] = output
    last[at.X_MATCH] = match
    last[at.X_HIT] = hit
    s[at.S_RESPONSES] += 1


@inner
def _drop_response(state):  # type: ignore[no-untyped-def]
    """Let the first response leave."""
    for index in range(1, state.responses.shape[0]):
        copy_row(state.responses[index - 1], state.responses[index])
    state.regs[at.S_RESPONSES] -= 1


@inner
def _complete(state, counts):  # type: ignore[no-untyped-def]
    """Carry out what C2 does; return (whether its operation goes to M, whether a row was scrubbed)."""
    operation = state.operations[at.DEEP_C2]
    kind, key, fresh = operation[at.F_KIND], operation[at.F_KEY], operation[at.F_FRESH] == 1
    if kind == at.LOOKUP:
        counts[at.N_LOOKUPS] += 1
        operation[at.F_USABLE] = _usable(state)
        way = find_way(state.lines, key) if operation[at.F_USABLE] and fresh else -1
        if way < 0:
            return True, False
        row = row_of(state.lines, key & (1 << state.params[at.P_A]) - 1, way)
        counts[at.N_HITS] += 1
        touch(state.lines, row, way)
        _respond(state, operation[at.F_TAG], state.lines.outputs[row, way], 1, 1)
    elif kind == at.FILL:
        state.next_mshrs[operation[at.F_MSHR], at.M_STATE] = at.FREE
        match, output = operation[at.F_MATCH], operation[at.F_OUTPUT]
        _respond(state, operation[at.F_TAG], output, match, 0)
        if not match:
            counts[at.N_DROPS] += 1
        elif _usable(state) and fresh:
            keep_answer(state, key, output, counts)
    elif kind == at.INVALIDATE:
        remove_key(state.lines, key)
        return True, False
    elif kind == at.SCRUB and fresh:
        remove_dead(state.lines, operation[at.F_ROW])
        return False, True
    return False, False


@inner
def _move_fills(state, picked):  # type: ignore[no-untyped-def]
    """Move the next FILL from the MSHRs to P and F."""
    s, ops = state.regs, state.operations
    fill = ops[at.DEEP_F]
    if ops[at.DEEP_TAKEN, at.F_KIND] == at.FILL:
        fill[at.F_KIND] = at.NONE
    if s[at.S_TO_FILL]:
        mshr = state.mshrs[s[at.S_TO_FILL] - 1]
        fill[at.F_KIND] = at.FILL
        fill[at.F_FRESH] = mshr[at.M_FRESH]
        fill[at.F_KEY] = mshr[at.M_KEY]
        fill[at.F_TAG] = mshr[at.M_TAG]
        fill[at.F_MSHR] = s[at.S_TO_FILL] - 1
        fill[at.F_MATCH] = mshr[at.M_MATCH]
        fill[at.F_OUTPUT] = mshr[at.M_OUTPUT]
        s[at.S_FILL_POINTER] = s[at.S_TO_FILL] % state.mshrs.shape[0]
    s[at.S_TO_FILL] = picked + 1


@inner
def _move_requests(state, i):  # type: ignore[no-untyped-def]
    """Move stages A and Q: an INVALIDATE that is pending enters first, else a request that is there."""
    s, ops = state.regs, state.operations
    taken = ops[at.DEEP_TAKEN, at.F_KIND]
    moves = _a_moves(state)
    if taken in (at.LOOKUP, at.INVALIDATE):
        copy_row(ops[at.DEEP_Q0], ops[at.DEEP_Q1])
        ops[at.DEEP_Q1, at.F_KIND] = at.NONE
    if taken:
        s[at.S_SCRUB_WAS_LAST] = taken == at.SCRUB
    if not moves:
        return
    last = at.DEEP_A0 + state.params[at.P_DEPTH] - at.SHALLOW_DEPTHS - 1
    if ops[last, at.F_KIND]:
        copy_row(ops[at.DEEP_Q1 if ops[at.DEEP_Q0, at.F_KIND] else at.DEEP_Q0], ops[last])
    for stage in range(last, at.DEEP_A0, -1):
        copy_row(ops[stage], ops[stage - 1])
    enters = ops[at.DEEP_A0]
    if s[at.S_INV_PENDING]:
        begin(state, enters, at.INVALIDATE, s[at.S_INV_DST], 0)
        s[at.S_INV_PENDING] = 0
    elif i[at.I_REQ_VALID]:
        begin(state, enters, at.LOOKUP, i[at.I_REQ_DST], i[at.I_REQ_TAG])
    else:
        enters[at.F_KIND] = at.NONE


@inner
def _kill(state, flush, void_key):  # type: ignore[no-untyped-def]
    """Empty the registers of FILLs that are worthless at the end of the cycle."""
    s, ops, mshrs = state.regs, state.operations, state.mshrs
    if s[at.S_TO_FILL]:
        mshr = mshrs[s[at.S_TO_FILL] - 1]
        if flush or (mshr[at.M_FRESH] and mshr[at.M_KEY] == void_key):
            s[at.S_TO_FILL] = 0
    for stage in (at.DEEP_F, at.DEEP_R, at.DEEP_C1, at.DEEP_C2):
        operation = ops[stage]
        if operation[at.F_KIND] == at.FILL and (flush or (operation[at.F_FRESH] and operation[at.F_KEY] == void_key)):
            operation[at.F_KIND] = at.NONE


@inner
def _registers(state, i, read_data, invalidated):  # type: ignore[no-untyped-def]
    """Take the bus signals of the cycle before, which act in this one, and count what happened before."""
    s, late = state.regs, state.late_inputs
    if s[at.S_LATE_READ]:
        s[at.S_RDATA] = s[at.S_LATE_RDATA]
    s[at.S_LATE_READ] = late[at.I_CSR_RE]
    s[at.S_LATE_RDATA] = read_data
    if late[at.I_CSR_RE]:
        note_read(state, late[at.I_CSR_ADDR])
    count_events(state, state.late_events)
    copy_row(state.late_events, state.events)
    if s[at.S_LATE_CLEAR]:
        state.counters[:] = 0
        s[at.S_LATE_CLEAR] = 0
    s[at.S_ENABLE_2] = s[at.S_ENABLE_1]
    s[at.S_ENABLE_1] = state.shadow[state.addresses.ctrl]
    changes = s[at.S_CONFIGURED_BEFORE] << 1 | s[at.S_CONFIGURED]  # one bit a cycle, the cycle before lowest
    load = changes == 1 << at.SETUP_PERIODS - 1
    if load:
        take_shadow(state)
    s[at.S_LATE_REQUEST] = flush_request(state) or load
    s[at.S_CONFIGURED_BEFORE] = changes & (1 << at.SETUP_PERIODS - 1) - 1
    take_bus(state, late)
    if state.second_regs[at.S_INV_DONE] if has_second(state) else invalidated:
        s[at.S_INV_BUSY] = 0  # after the write, which this cycle still ignores
    copy_row(late, i)
    tcam_edge(state)
