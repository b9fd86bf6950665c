"""The twin of an engine on a board: the same program and the same requests, on the golden engine's kernel."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from hopforge.model.board.random_words import first_word, next_word
from hopforge.model.kernel.compile import kernel
from hopforge.model.lookup.fast import layout as at
from hopforge.model.lookup.fast.kernel import cycle
from hopforge.model.lookup.fast.kernel import run as run_cycles
from hopforge.model.lookup.fast.state import EngineState, engine_state
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.program import BusOperation

__all__ = ["EngineRequests", "twin_of_engine"]

_COUNTERS = ("CYCLES", "SENT", "ANSWERED", "MATCHED", "HITS", "CHECKSUM")
_STUCK = 1 << 20


class EngineRequests(NamedTuple):
    """What a run asks for: registers SEED, COUNT, MASK."""

    seed: int
    count: int
    mask: int


def twin_of_engine(
    params: LookupParams, program: Iterable[BusOperation], requests: EngineRequests
) -> tuple[dict[str, int], dict[str, int]]:
    """Return what the board's registers and the engine's counters are after a run.

    Returns
    -------
    dict of int
        CYCLES, SENT, … by name.
    dict of int
        Counters of the engine by name.
    """
    state = engine_state(params)
    # After a write nothing goes on any more: as long as a scrub of all sets or a row's write takes at most.
    rest = 4 * params.sets + 2 * params.tcam_latency_cycles + 300
    for step in program:
        if step.kind == "write":
            inputs = np.zeros((rest, len(at.INPUTS)), np.int64)
            inputs[0, [at.I_CSR_WE, at.I_CSR_ADDR, at.I_CSR_WDATA]] = 1, step.address, step.data
            run_cycles(state, inputs)
    seen = np.zeros(len(_COUNTERS), np.int64)
    mask = requests.mask & (1 << params.address_bits) - 1
    _run(
        state, first_word(requests.seed), mask, requests.count, (1 << params.request_tag_bits) - 1,
        np.zeros(len(at.INPUTS), np.int64), np.zeros(len(at.OUTPUTS), np.int64), seen,
    )  # fmt: skip
    run_cycles(state, np.zeros((rest, len(at.INPUTS)), np.int64))
    counters = dict(zip(at.COUNTER_NAMES, state.counters.tolist(), strict=True))
    return dict(zip(_COUNTERS, seen.tolist(), strict=True)), counters


@kernel
def _run(state: EngineState, word, mask, count, tags, i, o, seen):  # type: ignore[no-untyped-def]
    """Ask for `count` destinations, one after the other as fast as the engine takes them; count the answers."""
    cycles = sent = answered = matched = hits = check = 0
    while answered < count and cycles < _STUCK + 64 * count:
        i[at.I_RESP_READY] = 1
        i[at.I_REQ_VALID] = sent < count
        i[at.I_REQ_DST] = (word | word << 32) & mask
        i[at.I_REQ_TAG] = sent & tags
        cycle(state, i, o)
        cycles += 1
        if i[at.I_REQ_VALID] and o[at.O_REQ_READY]:
            sent += 1
            word = next_word(word)
        if o[at.O_RESP_VALID]:
            answered += 1
            matched += o[at.O_RESP_MATCH]
            hits += o[at.O_RESP_HIT]
            answer = o[at.O_RESP_OUTPUT] & 0xFFFF | (o[at.O_RESP_TAG] & 0xFF) << 16
            answer |= o[at.O_RESP_MATCH] << 30 | o[at.O_RESP_HIT] << 31
            check = (check << 1 & 0xFFFFFFFF | check >> 31) ^ answer
    seen[0], seen[1], seen[2], seen[3], seen[4], seen[5] = cycles, sent, answered, matched, hits, check
