"""The MSHRs of a deep engine: the next miss, the next request, the next FILL, and all of them at the end of a cycle."""

from hopforge.model.kernel.compile import inner
from hopforge.model.lookup.fast import layout as at
from hopforge.model.lookup.fast.mshrs import first_in, invalidate_answers, take_answer
from hopforge.model.lookup.fast.second_level import has_second
from hopforge.model.lookup.fast.tcam import tcam_accept


@inner
def pick_fill(state):  # type: ignore[no-untyped-def]
    """Return the MSHR that goes to P, -1 if none does."""
    s = state.regs
    if s[at.S_TO_FILL] or state.operations[at.DEEP_F, at.F_KIND]:
        return -1
    return first_in(state.mshrs, at.DONE, s[at.S_FILL_POINTER])


@inner
def choose_free(state, allocated):  # type: ignore[no-untyped-def]
    """Choose T, the MSHR of the next miss."""
    s, mshrs = state.regs, state.mshrs
    if s[at.S_T] and not allocated:
        return
    before = s[at.S_T] - 1
    s[at.S_T] = 0
    for index in range(mshrs.shape[0]):
        if mshrs[index, at.M_STATE] == at.FREE and index != before:
            s[at.S_T] = index + 1
            return


@inner
def move_issue(state, issued):  # type: ignore[no-untyped-def]
    """Move the next request towards the TCAM port; hand it on if it was `issued`."""
    s = state.regs
    if issued and state.params[at.P_TCAM] != at.EXTERNAL and not has_second(state):
        tcam_accept(state, s[at.S_PORT] - 1, state.mshrs[s[at.S_PORT] - 1, at.M_DST])
    if s[at.S_TO_ISSUE]:
        s[at.S_PORT] = s[at.S_TO_ISSUE]
        s[at.S_TO_ISSUE] = 0
    elif s[at.S_PORT] == 0:
        chosen = first_in(state.mshrs, at.WAIT_ISSUE, s[at.S_ISSUE_POINTER])
        if chosen >= 0:
            s[at.S_TO_ISSUE] = chosen + 1
            s[at.S_ISSUE_POINTER] = (chosen + 1) % state.mshrs.shape[0]
    elif issued:
        s[at.S_PORT] = 0


@inner
def next_mshrs(state, issued, picked, void_key, counts):  # type: ignore[no-untyped-def]
    """Work out the MSHRs at the end of the cycle, without the effect of a flush; C2 frees its own."""
    s, after = state.regs, state.next_mshrs
    if issued:
        after[s[at.S_PORT] - 1, at.M_STATE] = at.ISSUED
        after[s[at.S_PORT] - 1, at.M_STALE] = 0
    if picked >= 0:
        after[picked, at.M_STATE] = at.INJECTED
    _follow_primaries(state, void_key)
    _answer(state, void_key, counts)
    if state.operations[at.DEEP_M, at.F_KIND] == at.LOOKUP:
        _allocate(state, counts)
    elif void_key >= 0:
        counts[at.N_INVALIDATIONS] += 1


@inner
def _follow_primaries(state, void_key):  # type: ignore[no-untyped-def]
    """Give those the result that merged in the cycle before with an MSHR that had it already."""
    mshrs, after = state.mshrs, state.next_mshrs
    for index in range(mshrs.shape[0]):
        mshr = mshrs[index]
        if mshr[at.M_STATE] != at.WAIT_PRIMARY or (mshr[at.M_FRESH] and mshr[at.M_KEY] == void_key):
            continue
        primary = mshrs[mshr[at.M_PRIMARY]]
        if primary[at.M_STATE] not in (at.WAIT_ISSUE, at.ISSUED):
            after[index, at.M_STATE] = at.DONE
            after[index, at.M_MATCH] = primary[at.M_MATCH]
            after[index, at.M_OUTPUT] = primary[at.M_OUTPUT]


@inner
def _allocate(state, counts):  # type: ignore[no-untyped-def]
    """Give the LOOKUP in M its MSHR."""
    operation, mshrs = state.operations[at.DEEP_M], state.mshrs
    entry = state.next_mshrs[state.regs[at.S_T] - 1]
    entry[at.M_STATE] = at.WAIT_ISSUE
    entry[at.M_STALE] = 0
    entry[at.M_FRESH] = operation[at.F_FRESH]
    entry[at.M_KEY] = operation[at.F_KEY]
    entry[at.M_DST] = operation[at.F_DST]
    entry[at.M_TAG] = operation[at.F_TAG]
    if operation[at.F_USABLE] and operation[at.F_FRESH]:
        for index in range(mshrs.shape[0]):
            other = mshrs[index]
            asks = other[at.M_STATE] not in (at.FREE, at.WAIT_PRIMARY)
            if asks and other[at.M_FRESH] and other[at.M_KEY] == operation[at.F_KEY]:
                entry[at.M_STATE] = at.WAIT_PRIMARY
                entry[at.M_PRIMARY] = index
                counts[at.N_MERGES] += 1
                return
    counts[at.N_MISSES] += 1


@inner
def _answer(state, void_key, counts):  # type: ignore[no-untyped-def]
    """Let the INVALIDATE in M and the TCAM's answer of the cycle before act."""
    s = state.regs
    answered = s[at.S_LATE_ANSWER] - 1
    void = False
    if answered >= 0 and state.mshrs[answered, at.M_STALE] == 1:
        counts[at.N_RETRIES] += 1
        void = True
    if void_key >= 0:
        void = invalidate_answers(state, void_key, answered) or void
    if answered >= 0:
        take_answer(state, answered, s[at.S_LATE_MATCH], s[at.S_LATE_OUTPUT], void)
