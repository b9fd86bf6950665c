"""A cycle of the engine, and many of them."""

from functools import cache
from typing import Any

import numpy as np
from numba import int64, typeof, types

from hopforge.model.kernel.compile import c_kernel, inner, kernel
from hopforge.model.lookup.fast import layout as at
from hopforge.model.lookup.fast.copying import copy_rows
from hopforge.model.lookup.fast.csr import read_word, registers
from hopforge.model.lookup.fast.deep import compute_deep_cycle
from hopforge.model.lookup.fast.flush import flush_decision, flush_event, flush_request, scrubber
from hopforge.model.lookup.fast.movement import move
from hopforge.model.lookup.fast.mshrs import invalidate_answers, issue, offer, take_answer
from hopforge.model.lookup.fast.operations import choose, complete, in_c
from hopforge.model.lookup.fast.second_level import has_second, hear_answer, request_taken, second_step, show_ask
from hopforge.model.lookup.fast.state import EngineState, engine_state
from hopforge.model.lookup.fast.tcam import tcam_accept, tcam_result
from hopforge.model.lookup.params import LookupParams


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
        int64[cycle, len(at.OUTPUTS)], columns as in `LookupOutputs`.
    """
    outputs = np.zeros((len(inputs), len(at.OUTPUTS)), np.int64)
    _run(state, np.ascontiguousarray(inputs, np.int64), outputs, cycle_of(state))
    return outputs


@kernel
def _run(state, inputs, outputs, cycle):  # type: ignore[no-untyped-def]
    for index in range(inputs.shape[0]):
        cycle(state, inputs[index], outputs[index])


def cycle_of(state: EngineState) -> Any:
    """Return the cycle of an engine of this depth: a C function that kernels take as an argument.

    Called with (state, inputs, outputs) it computes outputs (int64[10]) from inputs (int64[14]), and the registers at
    the end of the cycle. It takes most of the time that such kernels need to compile, and so compiles once for all.
    """
    return _compiled(bool(state.params[at.P_DEPTH] > at.SHALLOW_DEPTHS))


@cache
def _compiled(deep: bool) -> Any:
    signature = types.void(typeof(engine_state(LookupParams())), int64[::1], int64[::1])
    return c_kernel(signature)(compute_deep_cycle if deep else _compute_cycle).compiled


def _compute_cycle(state, i, o):  # type: ignore[no-untyped-def]
    s, chosen, counts = state.regs, state.operations[at.OP_CHOSEN], state.events
    counts[:] = 0

    # decisions from the registers at the start of the cycle
    read_data = read_word(state, i[at.I_CSR_ADDR])
    said, said_match, said_output = tcam_result(state, i)
    answered, match, output = hear_answer(state, said, said_match, said_output)
    request = flush_request(state)
    go, deferred = flush_decision(state.lines, request)
    offered = offer(state)
    out_free = s[at.S_OUT_VALID] == 0 or i[at.I_RESP_READY] == 1
    ready, from_a = choose(state, i, out_free, chosen)
    in_c_now = state.operations[in_c(state)]
    void_key = in_c_now[at.F_KEY] if in_c_now[at.F_KIND] == at.INVALIDATE else np.int64(-1)
    tcam_ready = request_taken(state, i, void_key >= 0)
    _show(state, o, ready, offered)

    # C, the MSHRs, movement
    copy_rows(state.next_mshrs, state.mshrs)
    done_kind, scrub_done = complete(state, out_free, answered, match, output, counts)
    _next_mshrs(state, done_kind, answered, match, output, offered, tcam_ready, counts)
    move(state, i, done_kind, ready, from_a)
    if has_second(state):
        sent = offered if tcam_ready else np.int64(-1)
        enabled = state.config[at.C_ENABLE] == 1
        second_step(
            state, i, sent, said, said_match, said_output, void_key, enabled, request or go, counts
        )  # fmt: skip
    copy_rows(state.mshrs, state.next_mshrs)

    # registers
    scrubber(state.lines, scrub_done, go, deferred)
    if request or go:
        flush_event(state, at.OP_C + 1)
    counts[at.N_FLUSHES] += go
    registers(state, i, read_data, counts, done_kind == at.INVALIDATE)
    s[at.S_CYCLE] += 1


@inner
def _show(state, o, ready, offered):  # type: ignore[no-untyped-def]
    """Compute the outputs; `ready`: with D ≥ 3, whether stage A has room."""
    p, s = state.params, state.regs
    o[:] = 0
    o[at.O_REQ_READY] = ready and not (p[at.P_DEPTH] >= 3 and s[at.S_INV_PENDING])
    o[at.O_CSR_RDATA] = s[at.S_RDATA]
    if s[at.S_OUT_VALID]:
        o[at.O_RESP_VALID] = 1
        o[at.O_RESP_TAG] = s[at.S_OUT_TAG]
        o[at.O_RESP_OUTPUT] = s[at.S_OUT_OUTPUT]
        o[at.O_RESP_MATCH] = s[at.S_OUT_MATCH]
        o[at.O_RESP_HIT] = s[at.S_OUT_HIT]
    if has_second(state):
        show_ask(state, o)
    elif p[at.P_TCAM] == at.EXTERNAL and offered >= 0:
        o[at.O_TCAM_VALID] = 1
        o[at.O_TCAM_ID] = offered
        o[at.O_TCAM_DST] = state.mshrs[offered, at.M_DST]


@inner
def _next_mshrs(state, done_kind, answered, match, output, offered, tcam_ready, counts):  # type: ignore[no-untyped-def]
    """Work out the MSHRs at the end of the cycle, without the effect of a flush; C has had its say."""
    p, mshrs, chosen = state.params, state.mshrs, state.operations[at.OP_CHOSEN]
    if offered >= 0:
        issue(state, offered, tcam_ready)
        if tcam_ready and p[at.P_TCAM] != at.EXTERNAL and not has_second(state):
            tcam_accept(state, offered, mshrs[offered, at.M_DST])
    if p[at.P_DEPTH] > 1 and chosen[at.F_KIND] == at.FILL:
        state.next_mshrs[chosen[at.F_MSHR], at.M_STATE] = at.INJECTED
    void = False
    if answered >= 0 and mshrs[answered, at.M_STALE] == 1:
        counts[at.N_RETRIES] += 1
        void = True
    if done_kind == at.INVALIDATE:
        void = invalidate_answers(state, state.operations[in_c(state), at.F_KEY], answered) or void
    if answered >= 0:
        take_answer(state, answered, match, output, void)
