"""The TCAM inside of the engine: comparison, writing of rows, lookups on their way."""

from hopforge.model.lookup.fast.inner import inner
from hopforge.model.lookup.fast.layout import (
    FLOPS,
    P_LATENCY,
    P_OUTPUT_MASK,
    P_TCAM,
    R_LAG,
    R_MASK,
    R_OUTPUT,
    R_VALID,
    R_VALUE,
    S_CYCLE,
    S_ROW_EFFECTIVE,
    S_TCAM_BUSY,
    S_WRITE_PENDING,
    S_WRITE_ROW,
    SRAM,
    SRAM_WRITE_CYCLES,
    T_DST,
    T_ID,
    T_MATCH,
    T_MEMBER,
    T_OUTPUT,
    T_VALID,
)


@inner
def compare_rows(state, lookup):  # type: ignore[no-untyped-def]
    """Let the first row that matches answer a lookup."""
    lookup[T_MATCH] = 0
    lookup[T_OUTPUT] = 0
    for index in range(state.rows.shape[0]):
        row = state.rows[index]
        if row[R_VALID] and (lookup[T_DST] ^ row[R_VALUE]) & row[R_MASK] == 0:
            output = row[R_OUTPUT]
            if row[R_LAG]:
                output += lookup[T_MEMBER]
            lookup[T_MATCH] = 1
            lookup[T_OUTPUT] = output & state.params[P_OUTPUT_MASK]
            return


@inner
def tcam_edge(state):  # type: ignore[no-untyped-def]
    """Let a written row take effect: at once with flip-flops, after many cycles with SRAM."""
    s = state.regs
    s[S_ROW_EFFECTIVE] = 0
    if not s[S_WRITE_PENDING]:
        return
    if state.params[P_TCAM] == SRAM:
        if not s[S_TCAM_BUSY]:
            s[S_TCAM_BUSY] = SRAM_WRITE_CYCLES
            return
        s[S_TCAM_BUSY] -= 1
        if s[S_TCAM_BUSY]:
            return
    state.rows[s[S_WRITE_ROW]] = state.written
    s[S_WRITE_PENDING] = 0
    s[S_ROW_EFFECTIVE] = 1


@inner
def tcam_answer(state):  # type: ignore[no-untyped-def]
    """Compare the lookup of the cycle before; return the number of the MSHR that is answered, or -1."""
    p, pipeline = state.params, state.pipeline
    now, size = state.regs[S_CYCLE], state.pipeline.shape[0]
    if p[P_TCAM] == FLOPS and p[P_LATENCY] > 1:
        before = pipeline[(now - 1 + p[P_LATENCY]) % size]
        if before[T_VALID]:
            compare_rows(state, before)
    lookup = pipeline[now % size]
    if not lookup[T_VALID]:
        return -1
    lookup[T_VALID] = 0
    return lookup[T_ID]
