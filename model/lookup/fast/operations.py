"""Operations on the cache: which one is next, and what it does in its last stage."""

from hopforge.model.lookup.fast.inner import inner
from hopforge.model.lookup.fast.keys import key_of, row_of
from hopforge.model.lookup.fast.layout import (
    C_ENABLE,
    DONE,
    F_DST,
    F_FRESH,
    F_KEY,
    F_KIND,
    F_MSHR,
    F_ROW,
    F_TAG,
    FILL,
    FREE,
    I_REQ_DST,
    I_REQ_TAG,
    I_REQ_VALID,
    INJECTED,
    INVALIDATE,
    LOOKUP,
    M_DST,
    M_FRESH,
    M_KEY,
    M_MATCH,
    M_OUTPUT,
    M_PRIMARY,
    M_STALE,
    M_STATE,
    M_TAG,
    N_DROPS,
    N_EVICTIONS,
    N_FILLS,
    N_HITS,
    N_LOOKUPS,
    N_MERGES,
    N_MISSES,
    NONE,
    OP_A0,
    OP_A1,
    OP_C,
    P_A,
    P_DEPTH,
    P_WAYS,
    S_EPOCH,
    S_FILL_POINTER,
    S_FLUSH_WAIT,
    S_INV_DST,
    S_INV_PENDING,
    S_OUT_HIT,
    S_OUT_MATCH,
    S_OUT_OUTPUT,
    S_OUT_TAG,
    S_OUT_VALID,
    S_SCRUB_ACTIVE,
    S_SCRUB_ROW,
    SCRUB,
    WAIT_ISSUE,
    WAIT_PRIMARY,
)
from hopforge.model.lookup.fast.ways import filled, find_way, is_live, touch, victim


@inner
def begin(state, operation, kind, dst, tag):  # type: ignore[no-untyped-def]
    """Make a new operation of a destination."""
    operation[:] = 0
    operation[F_KIND] = kind
    operation[F_FRESH] = 1
    operation[F_KEY] = key_of(state, dst)
    operation[F_DST] = dst
    operation[F_TAG] = tag


@inner
def may_use_cache(state, operation):  # type: ignore[no-untyped-def]
    """Return whether an operation may look into the cache: enabled, no flush since it entered."""
    return state.config[C_ENABLE] == 1 and state.regs[S_FLUSH_WAIT] == 0 and operation[F_FRESH] == 1


@inner
def respond(s, tag, output, match, hit):  # type: ignore[no-untyped-def]
    """Put a response into the output register."""
    s[S_OUT_VALID] = 1
    s[S_OUT_TAG] = tag
    s[S_OUT_OUTPUT] = output
    s[S_OUT_MATCH] = match
    s[S_OUT_HIT] = hit


@inner
def first_in(mshrs, state_number, pointer):  # type: ignore[no-untyped-def]
    """Return the first MSHR in a state, from `pointer` on, -1 if there is none."""
    count = mshrs.shape[0]
    for offset in range(count):
        index = (pointer + offset) % count
        if mshrs[index, M_STATE] == state_number:
            return index
    return -1


@inner
def choose(state, i, out_free, chosen):  # type: ignore[no-untyped-def]
    """Fill `chosen` with the operation that B takes; return (req_ready, taken from stage A)."""
    p, s, ops = state.params, state.regs, state.operations
    depth = p[P_DEPTH]
    c_kind = ops[OP_C, F_KIND]
    c_free = c_kind in (NONE, INVALIDATE, SCRUB) or out_free
    free = 0
    for index in range(state.mshrs.shape[0]):
        free += state.mshrs[index, M_STATE] == FREE
    room = free > (c_kind == LOOKUP)
    may_scrub = s[S_SCRUB_ACTIVE] and c_kind != SCRUB
    fill = first_in(state.mshrs, DONE, s[S_FILL_POINTER])
    last = OP_A0 if depth == 3 else OP_A1
    chosen[:] = 0
    ready, from_a = False, False
    if c_free:
        if s[S_FLUSH_WAIT] and may_scrub:
            pass  # below
        elif fill >= 0:
            mshr = state.mshrs[fill]
            chosen[F_KIND] = FILL
            chosen[F_FRESH] = mshr[M_FRESH]
            chosen[F_KEY] = mshr[M_KEY]
            chosen[F_TAG] = mshr[M_TAG]
            chosen[F_MSHR] = fill
        elif depth >= 3:
            if ops[last, F_KIND] == INVALIDATE or (ops[last, F_KIND] == LOOKUP and room):
                chosen[:] = ops[last]
                from_a = True
        elif s[S_INV_PENDING]:
            begin(state, chosen, INVALIDATE, s[S_INV_DST], 0)
        else:
            ready = room and (out_free or depth == 2)
            if i[I_REQ_VALID] and room:
                begin(state, chosen, LOOKUP, i[I_REQ_DST], i[I_REQ_TAG])
        if chosen[F_KIND] == NONE and may_scrub:
            chosen[F_KIND] = SCRUB
            chosen[F_FRESH] = 1
            chosen[F_ROW] = s[S_SCRUB_ROW]
    if depth >= 3:
        ready = ops[last, F_KIND] == NONE or from_a
        if depth == 4:
            ready = ready or ops[OP_A0, F_KIND] == NONE
    return ready, from_a


@inner
def complete_lookup(state, operation, answered, match, output, counts):  # type: ignore[no-untyped-def]
    """Answer a lookup that hits; give one that misses an MSHR, or that of the same key."""
    s, mshrs, key = state.regs, state.mshrs, operation[F_KEY]
    counts[N_LOOKUPS] += 1
    usable = may_use_cache(state, operation)
    if usable:
        way = find_way(state, key)
        if way >= 0:
            row = row_of(state, key & (1 << state.params[P_A]) - 1, way)
            respond(s, operation[F_TAG], state.outputs[row, way], 1, 1)
            counts[N_HITS] += 1
            touch(state, row, way)
            return
    entry = state.next_mshrs[first_in(mshrs, FREE, 0)]
    entry[M_STATE] = WAIT_ISSUE
    entry[M_STALE] = 0
    entry[M_FRESH] = operation[F_FRESH]
    entry[M_KEY] = key
    entry[M_DST] = operation[F_DST]
    entry[M_TAG] = operation[F_TAG]
    if usable:
        for index in range(mshrs.shape[0]):
            other = mshrs[index]
            if other[M_STATE] in (FREE, WAIT_PRIMARY) or not other[M_FRESH] or other[M_KEY] != key:
                continue
            counts[N_MERGES] += 1
            if other[M_STATE] in (DONE, INJECTED):
                entry[M_STATE] = DONE
                entry[M_MATCH] = other[M_MATCH]
                entry[M_OUTPUT] = other[M_OUTPUT]
            elif answered == index and not other[M_STALE]:
                entry[M_STATE] = DONE
                entry[M_MATCH] = match
                entry[M_OUTPUT] = output
            else:
                entry[M_STATE] = WAIT_PRIMARY
                entry[M_PRIMARY] = index
            return
    counts[N_MISSES] += 1


@inner
def complete_fill(state, operation, counts):  # type: ignore[no-untyped-def]
    """Answer a lookup that missed, and put its entry into the cache."""
    p, s, key = state.params, state.regs, operation[F_KEY]
    mshr = state.mshrs[operation[F_MSHR]]
    if p[P_DEPTH] > 1 and mshr[M_STATE] != INJECTED:
        return
    respond(s, operation[F_TAG], mshr[M_OUTPUT], mshr[M_MATCH], 0)
    state.next_mshrs[operation[F_MSHR], M_STATE] = FREE
    if not mshr[M_MATCH]:
        counts[N_DROPS] += 1
        return
    if not may_use_cache(state, operation):
        return
    payload = key & (1 << p[P_A]) - 1
    way = find_way(state, key)
    if way >= 0:
        touch(state, row_of(state, payload, way), way)
        return
    for index in range(p[P_WAYS]):
        if not is_live(state, row_of(state, payload, index), index):
            way = index
            break
    evicts = way < 0
    if evicts:
        way = victim(state, row_of(state, payload, 0))
    row = row_of(state, payload, way)
    state.valid[row, way] = 1
    state.tags[row, way] = key
    state.outputs[row, way] = mshr[M_OUTPUT]
    state.epochs[row, way] = s[S_EPOCH]
    filled(state, row, way, evicts)
    counts[N_FILLS] += 1
    if evicts:
        counts[N_EVICTIONS] += 1
