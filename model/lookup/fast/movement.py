"""How operations move on by one stage."""

from hopforge.model.kernel.compile import inner
from hopforge.model.lookup.fast import layout as at
from hopforge.model.lookup.fast.copying import copy_row
from hopforge.model.lookup.fast.operations import begin


@inner
def move(state, i, done_kind, a_free, from_a):  # type: ignore[no-untyped-def]
    """Move operations on; `done_kind`: what C completed, `from_a`: whether B took the last one of stage A."""
    s, ops, depth = state.regs, state.operations, state.params[at.P_DEPTH]
    chosen = ops[at.OP_CHOSEN]
    chosen_kind = chosen[at.F_KIND]
    if (done_kind if depth == 1 else chosen_kind) == at.FILL:
        s[at.S_FILL_POINTER] = (chosen[at.F_MSHR] + 1) % state.mshrs.shape[0]
    if depth >= 3:
        move_a(state, i, a_free, from_a)
    elif chosen_kind == at.INVALIDATE:
        s[at.S_INV_PENDING] = 0
    if depth > 1:
        if done_kind:
            ops[at.OP_C, at.F_KIND] = at.NONE
        if chosen_kind:
            copy_row(ops[at.OP_C], chosen)


@inner
def move_a(state, i, a_free, from_a):  # type: ignore[no-untyped-def]
    """Move stage A (D ≥ 3): an INVALIDATE that is pending enters first, else a request that is there."""
    s, ops, depth = state.regs, state.operations, state.params[at.P_DEPTH]
    enter = ops[at.OP_ENTER]
    enter[:] = 0
    if s[at.S_INV_PENDING]:
        if a_free:
            begin(state, enter, at.INVALIDATE, s[at.S_INV_DST], 0)
            s[at.S_INV_PENDING] = 0
    elif a_free and i[at.I_REQ_VALID]:
        begin(state, enter, at.LOOKUP, i[at.I_REQ_DST], i[at.I_REQ_TAG])
    last = at.OP_A0 if depth == 3 else at.OP_A1
    if from_a:
        ops[last, at.F_KIND] = at.NONE
    if depth == 4 and ops[at.OP_A1, at.F_KIND] == at.NONE:
        copy_row(ops[at.OP_A1], ops[at.OP_A0])
        ops[at.OP_A0, at.F_KIND] = at.NONE
    if enter[at.F_KIND]:
        copy_row(ops[at.OP_A0], enter)
