"""A cycle of the engine, and many of them."""

import numpy as np
from numba import njit

from hopforge.model.kernel.stale import forget_stale
from hopforge.model.lookup import fast as lookup_kernel
from hopforge.model.lookup import replacement
from hopforge.model.lookup.fast.csr import read_word, take_shadow, topology_change, write_word
from hopforge.model.lookup.fast.inner import inner
from hopforge.model.lookup.fast.keys import member_of, row_of
from hopforge.model.lookup.fast.layout import (
    DONE,
    EXTERNAL,
    F_FRESH,
    F_KEY,
    F_KIND,
    F_MSHR,
    F_ROW,
    FILL,
    FREE,
    I_CSR_ADDR,
    I_CSR_RE,
    I_CSR_WDATA,
    I_CSR_WE,
    I_LINK_CHANGE,
    I_REQ_DST,
    I_REQ_TAG,
    I_REQ_VALID,
    I_RESP_READY,
    I_TCAM_ID,
    I_TCAM_MATCH,
    I_TCAM_OUTPUT,
    I_TCAM_READY,
    I_TCAM_VALID,
    INJECTED,
    INVALIDATE,
    ISSUED,
    K_STATUS,
    LOOKUP,
    M_DST,
    M_FRESH,
    M_KEY,
    M_MATCH,
    M_OUTPUT,
    M_PRIMARY,
    M_STALE,
    M_STATE,
    N_FLUSHES,
    N_INVALIDATIONS,
    N_RETRIES,
    NONE,
    O_CSR_RDATA,
    O_REQ_READY,
    O_RESP_HIT,
    O_RESP_MATCH,
    O_RESP_OUTPUT,
    O_RESP_TAG,
    O_RESP_VALID,
    O_TCAM_DST,
    O_TCAM_ID,
    O_TCAM_VALID,
    OP_A0,
    OP_A1,
    OP_C,
    OP_CHOSEN,
    OP_ENTER,
    OUTPUTS,
    P_A,
    P_DEPTH,
    P_EPOCHS,
    P_LATENCY,
    P_SETS,
    P_TCAM,
    P_WAYS,
    S_CYCLE,
    S_DEBT,
    S_EPOCH,
    S_FILL_POINTER,
    S_FLUSH_REQUEST,
    S_FLUSH_WAIT,
    S_HOLD,
    S_INV_BUSY,
    S_INV_DST,
    S_INV_PENDING,
    S_ISSUE_POINTER,
    S_OUT_HIT,
    S_OUT_MATCH,
    S_OUT_OUTPUT,
    S_OUT_TAG,
    S_OUT_VALID,
    S_OVERRUN,
    S_RDATA,
    S_ROW_EFFECTIVE,
    S_SCRUB_ACTIVE,
    S_SCRUB_ROW,
    S_TCAM_BUSY,
    SCRUB,
    SRAM,
    T_DST,
    T_ID,
    T_MATCH,
    T_MEMBER,
    T_OUTPUT,
    T_VALID,
    WAIT_ISSUE,
    WAIT_PRIMARY,
)
from hopforge.model.lookup.fast.operations import begin, choose, complete_fill, complete_lookup, first_in
from hopforge.model.lookup.fast.state import EngineState
from hopforge.model.lookup.fast.tcam import compare_rows, tcam_answer, tcam_edge
from hopforge.model.lookup.fast.ways import find_way, is_live


def run(state: EngineState, inputs: np.ndarray) -> np.ndarray:
    """Run one cycle per row of `inputs`.

    Parameters
    ----------
    state : EngineState
        Changed in place.
    inputs : ndarray
        int64[cycle, len(INPUTS)], columns as in `LookupInputs`.

    Returns
    -------
    ndarray
        int64[cycle, len(OUTPUTS)], columns as in `LookupOutputs`.
    """
    outputs = np.zeros((len(inputs), len(OUTPUTS)), np.int64)
    _run(state, np.ascontiguousarray(inputs, np.int64), outputs)
    return outputs


@njit(cache=True)
def _run(state, inputs, outputs):  # type: ignore[no-untyped-def]
    for index in range(inputs.shape[0]):
        cycle(state, inputs[index], outputs[index])


@inner
def cycle(state, i, o):  # type: ignore[no-untyped-def]
    """Compute one cycle: outputs `o` (int64[10]) from inputs `i` (int64[14]), and the registers at its end."""
    p, s, ops = state.params, state.regs, state.operations
    mshrs, after = state.mshrs, state.next_mshrs
    depth, count = p[P_DEPTH], mshrs.shape[0]
    external = p[P_TCAM] == EXTERNAL
    counts = np.zeros(10, np.int64)
    read_data = read_word(state, i[I_CSR_ADDR])

    answered, match, output = -1, np.int64(0), np.int64(0)
    if external:
        if i[I_TCAM_VALID]:
            answered, match = i[I_TCAM_ID], i[I_TCAM_MATCH]
            output = i[I_TCAM_OUTPUT] if match else np.int64(0)
    else:
        answered = tcam_answer(state)
        if answered >= 0:
            arrived = state.pipeline[s[S_CYCLE] % state.pipeline.shape[0]]
            match, output = arrived[T_MATCH], arrived[T_OUTPUT]
    tcam_ready = i[I_TCAM_READY] == 1 if external else s[S_TCAM_BUSY] == 0

    request = s[S_FLUSH_REQUEST] == 1 or (s[S_ROW_EFFECTIVE] == 1 and state.shadow[state.addresses.ctrl] == 1)
    most = p[P_EPOCHS] - 1
    if s[S_FLUSH_WAIT]:
        go, deferred = s[S_DEBT] == 0, False
    else:
        go, deferred = request and s[S_DEBT] < most, request and s[S_DEBT] == most
    offer = -1 if s[S_HOLD] else first_in(mshrs, WAIT_ISSUE, s[S_ISSUE_POINTER])
    out_free = s[S_OUT_VALID] == 0 or i[I_RESP_READY] == 1
    chosen = ops[OP_CHOSEN]
    ready, from_a = choose(state, i, out_free, chosen)
    chosen_kind = chosen[F_KIND]
    a_free = ready
    if depth >= 3 and s[S_INV_PENDING]:
        ready = False

    o[:] = 0
    o[O_REQ_READY] = ready
    o[O_CSR_RDATA] = s[S_RDATA]
    if s[S_OUT_VALID]:
        o[O_RESP_VALID] = 1
        o[O_RESP_TAG] = s[S_OUT_TAG]
        o[O_RESP_OUTPUT] = s[S_OUT_OUTPUT]
        o[O_RESP_MATCH] = s[S_OUT_MATCH]
        o[O_RESP_HIT] = s[S_OUT_HIT]
    if external and offer >= 0:
        o[O_TCAM_VALID] = 1
        o[O_TCAM_ID] = offer
        o[O_TCAM_DST] = mshrs[offer, M_DST]

    # C
    after[:] = mshrs
    if out_free:
        s[S_OUT_VALID] = 0
    operation = chosen if depth == 1 else ops[OP_C]
    done_kind = operation[F_KIND]
    if done_kind in (LOOKUP, FILL) and not out_free:
        done_kind = NONE
    scrub_done = False
    if done_kind == LOOKUP:
        complete_lookup(state, operation, answered, match, output, counts)
    elif done_kind == FILL:
        complete_fill(state, operation, counts)
    elif done_kind == INVALIDATE:
        counts[N_INVALIDATIONS] += 1
        way = find_way(state, operation[F_KEY])
        if way >= 0:
            state.valid[row_of(state, operation[F_KEY] & (1 << p[P_A]) - 1, way), way] = 0
    elif done_kind == SCRUB and operation[F_FRESH]:
        scrub_done = True
        for way in range(p[P_WAYS]):
            if not is_live(state, operation[F_ROW], way):
                state.valid[operation[F_ROW], way] = 0

    # MSHRs
    if offer >= 0:
        s[S_ISSUE_POINTER] = offer
        if tcam_ready:
            s[S_ISSUE_POINTER] = (offer + 1) % count
            after[offer, M_STATE] = ISSUED
            after[offer, M_STALE] = 0
            if not external:
                lookup = state.pipeline[(s[S_CYCLE] + p[P_LATENCY]) % state.pipeline.shape[0]]
                lookup[T_VALID] = 1
                lookup[T_ID] = offer
                lookup[T_DST] = mshrs[offer, M_DST]
                lookup[T_MEMBER] = member_of(state, mshrs[offer, M_DST])
                if p[P_TCAM] == SRAM or p[P_LATENCY] == 1:
                    compare_rows(state, lookup)
    if depth > 1 and chosen_kind == FILL:
        after[chosen[F_MSHR], M_STATE] = INJECTED
    answer_void = answered >= 0 and mshrs[answered, M_STALE] == 1
    if answer_void:
        counts[N_RETRIES] += 1
    if done_kind == INVALIDATE:
        for index in range(count):
            mshr = mshrs[index]
            if mshr[M_FRESH] and mshr[M_KEY] == operation[F_KEY]:
                if mshr[M_STATE] == ISSUED:
                    after[index, M_STALE] = 1
                    answer_void = answer_void or index == answered
                elif mshr[M_STATE] in (DONE, INJECTED):
                    after[index, M_STATE] = WAIT_ISSUE
    if answered >= 0:
        if answer_void:
            after[answered, M_STATE] = WAIT_ISSUE
            after[answered, M_STALE] = 0
        else:
            for index in range(count):
                waits = after[index, M_STATE] == WAIT_PRIMARY and after[index, M_PRIMARY] == answered
                if index == answered or waits:
                    after[index, M_STATE] = DONE
                    after[index, M_MATCH] = match
                    after[index, M_OUTPUT] = output

    # movement
    if (done_kind if depth == 1 else chosen_kind) == FILL:
        s[S_FILL_POINTER] = (chosen[F_MSHR] + 1) % count
    if depth < 3:
        if chosen_kind == INVALIDATE:
            s[S_INV_PENDING] = 0
    else:
        enter = ops[OP_ENTER]
        enter[:] = 0
        if s[S_INV_PENDING]:
            if a_free:
                begin(state, enter, INVALIDATE, s[S_INV_DST], 0)
                s[S_INV_PENDING] = 0
        elif ready and i[I_REQ_VALID]:
            begin(state, enter, LOOKUP, i[I_REQ_DST], i[I_REQ_TAG])
        last = OP_A0 if depth == 3 else OP_A1
        if from_a:
            ops[last, F_KIND] = NONE
        if depth == 4 and ops[OP_A1, F_KIND] == NONE:
            ops[OP_A1] = ops[OP_A0]
            ops[OP_A0, F_KIND] = NONE
        if enter[F_KIND]:
            ops[OP_A0] = enter
    if depth > 1:
        if done_kind:
            ops[OP_C, F_KIND] = NONE
        if chosen_kind:
            ops[OP_C] = chosen
    mshrs[:] = after

    # flush and scrubber
    if scrub_done:
        s[S_SCRUB_ROW] += 1
        if s[S_SCRUB_ROW] == p[P_SETS]:
            s[S_SCRUB_ROW] = 0
            if not (go or deferred):
                s[S_SCRUB_ACTIVE] = 0
                s[S_DEBT] = 0
    if go:
        counts[N_FLUSHES] += 1
        s[S_EPOCH] = (s[S_EPOCH] + 1) % p[P_EPOCHS]
        s[S_DEBT] += 1
        s[S_SCRUB_ACTIVE] = 1
        s[S_SCRUB_ROW] = 0
        s[S_FLUSH_WAIT] = 0
    elif deferred:
        s[S_FLUSH_WAIT] = 1
        s[S_SCRUB_ROW] = 0
    if request or go:
        for stage in range(OP_C + 1):
            ops[stage, F_FRESH] = 0
        for index in range(count):
            mshrs[index, M_FRESH] = 0
            if mshrs[index, M_STATE] == ISSUED:
                mshrs[index, M_STALE] = 1
            elif mshrs[index, M_STATE] != FREE:
                mshrs[index, M_STATE] = WAIT_ISSUE

    # CSR bus
    if i[I_CSR_RE]:
        s[S_RDATA] = read_data
        if state.csr_kind[i[I_CSR_ADDR]] == K_STATUS:
            s[S_OVERRUN] = 0
    for index in range(10):
        state.counters[index] = (state.counters[index] + counts[index]) & 0xFFFFFFFF
        state.totals[index] += counts[index]
    take_shadow(state)
    s[S_FLUSH_REQUEST] = 0
    if i[I_CSR_WE]:
        write_word(state, i[I_CSR_ADDR], i[I_CSR_WDATA])
    if i[I_LINK_CHANGE]:
        topology_change(state)
    if done_kind == INVALIDATE:
        s[S_INV_BUSY] = 0  # after the write, which this cycle still ignores
    tcam_edge(state)
    s[S_CYCLE] += 1


forget_stale(_run, lookup_kernel, replacement)
