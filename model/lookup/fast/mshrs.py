"""The MSHRs: which one is offered to the TCAM, and all of them at the end of a cycle."""

from hopforge.model.kernel.compile import inner
from hopforge.model.lookup.fast import layout as at


@inner
def first_in(mshrs, state_number, pointer):  # type: ignore[no-untyped-def]
    """Return the first MSHR in a state, from `pointer` on, -1 if there is none."""
    count = mshrs.shape[0]
    for offset in range(count):
        index = (pointer + offset) % count
        if mshrs[index, at.M_STATE] == state_number:
            return index
    return -1


@inner
def offer(state):  # type: ignore[no-untyped-def]
    """Return the MSHR that is offered to the TCAM, -1 if none is."""
    s = state.regs
    return -1 if s[at.S_HOLD] else first_in(state.mshrs, at.WAIT_ISSUE, s[at.S_ISSUE_POINTER])


@inner
def issue(state, offered, taken):  # type: ignore[no-untyped-def]
    """Note whether the TCAM took the MSHR that was offered."""
    s = state.regs
    if not taken:
        s[at.S_ISSUE_POINTER] = offered
        return
    s[at.S_ISSUE_POINTER] = (offered + 1) % state.mshrs.shape[0]
    state.next_mshrs[offered, at.M_STATE] = at.ISSUED
    state.next_mshrs[offered, at.M_STALE] = 0


@inner
def invalidate_answers(state, key, answered):  # type: ignore[no-untyped-def]
    """Make answers of a key worthless; return whether that of this cycle is among them."""
    mshrs, after = state.mshrs, state.next_mshrs
    void = False
    for index in range(mshrs.shape[0]):
        mshr = mshrs[index]
        if mshr[at.M_FRESH] and mshr[at.M_KEY] == key:
            if mshr[at.M_STATE] == at.ISSUED:
                after[index, at.M_STALE] = 1
                void = void or index == answered
            elif mshr[at.M_STATE] in (at.DONE, at.INJECTED):
                after[index, at.M_STATE] = at.WAIT_ISSUE
    return void


@inner
def take_answer(state, answered, match, output, void):  # type: ignore[no-untyped-def]
    """Give the TCAM's answer to its MSHR and to those that wait for it; ask again if it is `void`."""
    after = state.next_mshrs
    if void:
        after[answered, at.M_STATE] = at.WAIT_ISSUE
        after[answered, at.M_STALE] = 0
        return
    for index in range(after.shape[0]):
        waits = after[index, at.M_STATE] == at.WAIT_PRIMARY and after[index, at.M_PRIMARY] == answered
        if index == answered or waits:
            after[index, at.M_STATE] = at.DONE
            after[index, at.M_MATCH] = match
            after[index, at.M_OUTPUT] = output
