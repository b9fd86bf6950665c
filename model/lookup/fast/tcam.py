"""The TCAM inside of the engine: comparison, writing of rows, lookups on their way."""

import numpy as np

from hopforge.model.kernel.compile import inner
from hopforge.model.lookup.fast import layout as at
from hopforge.model.lookup.fast.copying import copy_row
from hopforge.model.lookup.fast.keys import member_of


@inner
def compare_rows(state, lookup):  # type: ignore[no-untyped-def]
    """Let the first row that matches answer a lookup."""
    lookup[at.T_MATCH] = 0
    lookup[at.T_OUTPUT] = 0
    for index in range(state.rows.shape[0]):
        row = state.rows[index]
        if row[at.R_VALID] and (lookup[at.T_DST] ^ row[at.R_VALUE]) & row[at.R_MASK] == 0:
            output = row[at.R_OUTPUT]
            if row[at.R_LAG]:
                output += lookup[at.T_MEMBER]
            lookup[at.T_MATCH] = 1
            lookup[at.T_OUTPUT] = output & state.params[at.P_OUTPUT_MASK]
            return


@inner
def tcam_edge(state):  # type: ignore[no-untyped-def]
    """Let a written row take effect: at once with flip-flops, after many cycles with SRAM."""
    s = state.regs
    s[at.S_ROW_EFFECTIVE] = 0
    if not s[at.S_WRITE_PENDING]:
        return
    if state.params[at.P_TCAM] == at.SRAM:
        if not s[at.S_TCAM_BUSY]:
            s[at.S_TCAM_BUSY] = at.SRAM_WRITE_CYCLES
            return
        s[at.S_TCAM_BUSY] -= 1
        if s[at.S_TCAM_BUSY]:
            return
    copy_row(state.rows[s[at.S_WRITE_ROW]], state.written)
    s[at.S_WRITE_PENDING] = 0
    s[at.S_ROW_EFFECTIVE] = 1


@inner
def tcam_answer(state):  # type: ignore[no-untyped-def]
    """Compare the lookup of the cycle before; return the number of the MSHR that is answered, or -1."""
    p, pipeline = state.params, state.pipeline
    now, size = state.regs[at.S_CYCLE], state.pipeline.shape[0]
    if p[at.P_TCAM] == at.FLOPS and p[at.P_LATENCY] > 1:
        before = pipeline[(now - 1 + p[at.P_LATENCY]) % size]
        if before[at.T_VALID]:
            compare_rows(state, before)
    lookup = pipeline[now % size]
    if not lookup[at.T_VALID]:
        return -1
    lookup[at.T_VALID] = 0
    return lookup[at.T_ID]


@inner
def tcam_result(state, i):  # type: ignore[no-untyped-def]
    """Return (number of the MSHR that is answered or -1, match, output) of this cycle."""
    if state.params[at.P_TCAM] == at.EXTERNAL:
        if not i[at.I_TCAM_VALID]:
            return -1, np.int64(0), np.int64(0)
        match = i[at.I_TCAM_MATCH]
        return i[at.I_TCAM_ID], match, (i[at.I_TCAM_OUTPUT] if match else np.int64(0))
    answered = tcam_answer(state)
    if answered < 0:
        return -1, np.int64(0), np.int64(0)
    arrived = state.pipeline[state.regs[at.S_CYCLE] % state.pipeline.shape[0]]
    return answered, arrived[at.T_MATCH], arrived[at.T_OUTPUT]


@inner
def tcam_takes(state, i):  # type: ignore[no-untyped-def]
    """Return whether the TCAM takes a lookup in this cycle."""
    if state.params[at.P_TCAM] == at.EXTERNAL:
        return i[at.I_TCAM_READY] == 1
    return state.regs[at.S_TCAM_BUSY] == 0


@inner
def tcam_accept(state, mshr, dst):  # type: ignore[no-untyped-def]
    """Send the lookup of an MSHR on its way through the TCAM inside."""
    p = state.params
    lookup = state.pipeline[(state.regs[at.S_CYCLE] + p[at.P_LATENCY]) % state.pipeline.shape[0]]
    lookup[at.T_VALID] = 1
    lookup[at.T_ID] = mshr
    lookup[at.T_DST] = dst
    lookup[at.T_MEMBER] = member_of(state, dst)
    if p[at.P_TCAM] == at.SRAM or p[at.P_LATENCY] == 1:
        compare_rows(state, lookup)
