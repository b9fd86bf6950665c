"""Flush, epoch and scrubber."""

from hopforge.model.kernel.compile import inner
from hopforge.model.lookup.fast import layout as at


@inner
def flush_request(state):  # type: ignore[no-untyped-def]
    """Return whether the registers, or a row of the TCAM that becomes effective, request a flush."""
    s = state.regs
    enabled = state.shadow[state.addresses.ctrl] == 1
    return s[at.S_FLUSH_REQUEST] == 1 or (s[at.S_ROW_EFFECTIVE] == 1 and enabled)


@inner
def flush_decision(lines, request):  # type: ignore[no-untyped-def]
    """Return (new epoch now, flush deferred)."""
    s = lines.regs
    if s[at.S_FLUSH_WAIT]:
        return s[at.S_DEBT] == 0, False
    most = lines.params[at.P_EPOCHS] - 1
    return request and s[at.S_DEBT] < most, request and s[at.S_DEBT] == most


@inner
def scrubber(lines, scrub_done, go, deferred):  # type: ignore[no-untyped-def]
    """Move the scrubber on, and begin a new epoch or wait with it."""
    p, s = lines.params, lines.regs
    if scrub_done:
        s[at.S_SCRUB_ROW] += 1
        if s[at.S_SCRUB_ROW] == p[at.P_SETS]:
            s[at.S_SCRUB_ROW] = 0
            if not (go or deferred):
                s[at.S_SCRUB_ACTIVE] = 0
                s[at.S_DEBT] = 0
    if go:
        s[at.S_EPOCH] = (s[at.S_EPOCH] + 1) % p[at.P_EPOCHS]
        s[at.S_DEBT] += 1
        s[at.S_SCRUB_ACTIVE] = 1
        s[at.S_SCRUB_ROW] = 0
        s[at.S_FLUSH_WAIT] = 0
    elif deferred:
        s[at.S_FLUSH_WAIT] = 1
        s[at.S_SCRUB_ROW] = 0


@inner
def flush_event(state, stages):  # type: ignore[no-untyped-def]
    """Make all that is under way old: operations of the first `stages` bypass the cache, MSHRs ask the TCAM again."""
    mshrs = state.mshrs
    for stage in range(stages):
        state.operations[stage, at.F_FRESH] = 0
    for index in range(mshrs.shape[0]):
        mshrs[index, at.M_FRESH] = 0
        if mshrs[index, at.M_STATE] == at.ISSUED:
            mshrs[index, at.M_STALE] = 1
        elif mshrs[index, at.M_STATE] != at.FREE:
            mshrs[index, at.M_STATE] = at.WAIT_ISSUE
