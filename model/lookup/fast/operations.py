"""Operations on the cache: which one is next, and what it does in its last stage."""

import numpy as np

from hopforge.model.kernel.compile import inner
from hopforge.model.lookup.fast import layout as at
from hopforge.model.lookup.fast.copying import copy_row
from hopforge.model.lookup.fast.keys import key_of, row_of
from hopforge.model.lookup.fast.mshrs import first_in
from hopforge.model.lookup.fast.ways import filled, find_way, is_live, remove_dead, remove_key, touch, victim


@inner
def begin(state, operation, kind, dst, tag):  # type: ignore[no-untyped-def]
    """Make a new operation of a destination."""
    operation[:] = 0
    operation[at.F_KIND] = kind
    operation[at.F_FRESH] = 1
    operation[at.F_KEY] = key_of(state, dst)
    operation[at.F_DST] = dst
    operation[at.F_TAG] = tag


@inner
def may_use_cache(state, operation):  # type: ignore[no-untyped-def]
    """Return whether an operation may look into the cache: enabled, no flush since it entered."""
    return state.config[at.C_ENABLE] == 1 and state.regs[at.S_FLUSH_WAIT] == 0 and operation[at.F_FRESH] == 1


@inner
def respond(s, tag, output, match, hit):  # type: ignore[no-untyped-def]
    """Put a response into the output register."""
    s[at.S_OUT_VALID] = 1
    s[at.S_OUT_TAG] = tag
    s[at.S_OUT_OUTPUT] = output
    s[at.S_OUT_MATCH] = match
    s[at.S_OUT_HIT] = hit


@inner
def choose(state, i, out_free, chosen):  # type: ignore[no-untyped-def]
    """Fill `chosen` with the operation that B takes; return (req_ready, taken from stage A)."""
    p, s, ops = state.params, state.regs, state.operations
    depth = p[at.P_DEPTH]
    c_kind = ops[at.OP_C, at.F_KIND]
    c_free = c_kind in (at.NONE, at.INVALIDATE, at.SCRUB) or out_free
    free = 0
    for index in range(state.mshrs.shape[0]):
        free += state.mshrs[index, at.M_STATE] == at.FREE
    room = free > (c_kind == at.LOOKUP)
    may_scrub = s[at.S_SCRUB_ACTIVE] and c_kind != at.SCRUB
    fill = first_in(state.mshrs, at.DONE, s[at.S_FILL_POINTER])
    last = at.OP_A0 if depth == 3 else at.OP_A1
    chosen[:] = 0
    ready, from_a = False, False
    if c_free:
        if s[at.S_FLUSH_WAIT] and may_scrub:
            pass  # below
        elif fill >= 0:
            mshr = state.mshrs[fill]
            chosen[at.F_KIND] = at.FILL
            chosen[at.F_FRESH] = mshr[at.M_FRESH]
            chosen[at.F_KEY] = mshr[at.M_KEY]
            chosen[at.F_TAG] = mshr[at.M_TAG]
            chosen[at.F_MSHR] = fill
        elif depth >= 3:
            if ops[last, at.F_KIND] == at.INVALIDATE or (ops[last, at.F_KIND] == at.LOOKUP and room):
                copy_row(chosen, ops[last])
                from_a = True
        elif s[at.S_INV_PENDING]:
            begin(state, chosen, at.INVALIDATE, s[at.S_INV_DST], 0)
        else:
            ready = room and (out_free or depth == 2)
            if i[at.I_REQ_VALID] and room:
                begin(state, chosen, at.LOOKUP, i[at.I_REQ_DST], i[at.I_REQ_TAG])
        if chosen[at.F_KIND] == at.NONE and may_scrub:
            chosen[at.F_KIND] = at.SCRUB
            chosen[at.F_FRESH] = 1
            chosen[at.F_ROW] = s[at.S_SCRUB_ROW]
    if depth >= 3:
        ready = ops[last, at.F_KIND] == at.NONE or from_a
        if depth == 4:
            ready = ready or ops[at.OP_A0, at.F_KIND] == at.NONE
    return ready, from_a


@inner
def complete_lookup(state, operation, answered, match, output, counts):  # type: ignore[no-untyped-def]
    """Answer a lookup that hits; give one that misses an MSHR, or that of the same key."""
    s, mshrs, key = state.regs, state.mshrs, operation[at.F_KEY]
    counts[at.N_LOOKUPS] += 1
    usable = may_use_cache(state, operation)
    if usable:
        way = find_way(state.lines, key)
        if way >= 0:
            row = row_of(state.lines, key & (1 << state.params[at.P_A]) - 1, way)
            respond(s, operation[at.F_TAG], state.lines.outputs[row, way], 1, 1)
            counts[at.N_HITS] += 1
            touch(state.lines, row, way)
            return
    entry = state.next_mshrs[first_in(mshrs, at.FREE, 0)]
    entry[at.M_STATE] = at.WAIT_ISSUE
    entry[at.M_STALE] = 0
    entry[at.M_FRESH] = operation[at.F_FRESH]
    entry[at.M_KEY] = key
    entry[at.M_DST] = operation[at.F_DST]
    entry[at.M_TAG] = operation[at.F_TAG]
    if usable:
        for index in range(mshrs.shape[0]):
            other = mshrs[index]
            if other[at.M_STATE] in (at.FREE, at.WAIT_PRIMARY) or not other[at.M_FRESH] or other[at.M_KEY] != key:
                continue
            counts[at.N_MERGES] += 1
            if other[at.M_STATE] in (at.DONE, at.INJECTED):
                entry[at.M_STATE] = at.DONE
                entry[at.M_MATCH] = other[at.M_MATCH]
                entry[at.M_OUTPUT] = other[at.M_OUTPUT]
            elif answered == index and not other[at.M_STALE]:
                entry[at.M_STATE] = at.DONE
                entry[at.M_MATCH] = match
                entry[at.M_OUTPUT] = output
            else:
                entry[at.M_STATE] = at.WAIT_PRIMARY
                entry[at.M_PRIMARY] = index
            return
    counts[at.N_MISSES] += 1


@inner
def complete_fill(state, operation, counts):  # type: ignore[no-untyped-def]
    """Answer a lookup that missed, and put its entry into the cache."""
    p, s, key = state.params, state.regs, operation[at.F_KEY]
    mshr = state.mshrs[operation[at.F_MSHR]]
    if p[at.P_DEPTH] > 1 and mshr[at.M_STATE] != at.INJECTED:
        return
    respond(s, operation[at.F_TAG], mshr[at.M_OUTPUT], mshr[at.M_MATCH], 0)
    state.next_mshrs[operation[at.F_MSHR], at.M_STATE] = at.FREE
    if not mshr[at.M_MATCH]:
        counts[at.N_DROPS] += 1
    elif may_use_cache(state, operation):
        keep_answer(state, key, mshr[at.M_OUTPUT], counts)


@inner
def keep_answer(state, key, output, counts):  # type: ignore[no-untyped-def]
    """Write the line of a key, or touch it if it is there."""
    written, evicts = write_line(state.lines, key, output)
    counts[at.N_FILLS] += written
    counts[at.N_EVICTIONS] += evicts


@inner
def write_line(lines, key, output):  # type: ignore[no-untyped-def]
    """Do so; return (whether the line was written, whether in place of a live one)."""
    p, s = lines.params, lines.regs
    payload = key & (1 << p[at.P_A]) - 1
    way = find_way(lines, key)
    if way >= 0:
        touch(lines, row_of(lines, payload, way), way)
        return False, False
    for index in range(p[at.P_WAYS]):
        if not is_live(lines, row_of(lines, payload, index), index):
            way = index
            break
    evicts = way < 0
    if evicts:
        way = victim(lines, row_of(lines, payload, 0))
    row = row_of(lines, payload, way)
    lines.valid[row, way] = 1
    lines.tags[row, way] = key
    lines.outputs[row, way] = output
    lines.epochs[row, way] = s[at.S_EPOCH]
    filled(lines, row, way, evicts)
    return True, evicts


@inner
def in_c(state):  # type: ignore[no-untyped-def]
    """Return which of the operations is in stage C: with one stage the one that B takes."""
    return at.OP_CHOSEN if state.params[at.P_DEPTH] == 1 else at.OP_C


@inner
def complete(state, out_free, answered, match, output, counts):  # type: ignore[no-untyped-def]
    """Carry out what C does; return (kind of the operation or NONE if it must wait, whether a row was scrubbed)."""
    s = state.regs
    if out_free:
        s[at.S_OUT_VALID] = 0
    operation = state.operations[in_c(state)]
    kind = operation[at.F_KIND]
    if kind in (at.LOOKUP, at.FILL) and not out_free:
        return np.int64(at.NONE), False
    if kind == at.LOOKUP:
        complete_lookup(state, operation, answered, match, output, counts)
    elif kind == at.FILL:
        complete_fill(state, operation, counts)
    elif kind == at.INVALIDATE:
        counts[at.N_INVALIDATIONS] += 1
        remove_key(state.lines, operation[at.F_KEY])
    elif kind == at.SCRUB and operation[at.F_FRESH]:
        remove_dead(state.lines, operation[at.F_ROW])
        return kind, True
    return kind, False
