"""The twin of an engine on a board: the same program and the same requests, on the golden engine's kernel."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hopforge.model.board.random_words import first_word, next_word
from hopforge.model.lookup.csr import WORD_BITS
from hopforge.model.lookup.fast import layout as at
from hopforge.model.lookup.fast.kernel import run as run_cycles
from hopforge.model.lookup.fast.state import EngineState, engine_state
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.program import BusOperation

__all__ = ["EngineRequests", "twin_of_engine"]

_COUNTERS = ("CYCLES", "SENT", "ANSWERED", "MATCHED", "HITS", "CHECKSUM")
_WORD = (1 << WORD_BITS) - 1
_STUCK = 1 << 20


@dataclass(frozen=True)
class EngineRequests:
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
    seen = _requests(state, params, requests)
    run_cycles(state, np.zeros((rest, len(at.INPUTS)), np.int64))
    return seen, state.counter_values()


def _requests(state: EngineState, params: LookupParams, requests: EngineRequests) -> dict[str, int]:
    """Ask for destinations one after the other, as fast as the engine takes them, and count the answers."""
    count, mask = requests.count, requests.mask & (1 << params.address_bits) - 1
    tags, word = (1 << params.request_tag_bits) - 1, first_word(requests.seed)
    i = np.zeros((1, len(at.INPUTS)), np.int64)
    i[0, at.I_RESP_READY] = 1
    cycles = sent = answered = matched = hits = check = 0
    while answered < count:
        if cycles > _STUCK + 64 * count:
            raise RuntimeError(f"{count - answered} of {count} lookups have no answer after {cycles} cycles")
        asks = sent < count
        i[0, at.I_REQ_VALID], i[0, at.I_REQ_TAG] = asks, sent & tags
        i[0, at.I_REQ_DST] = (word | word << WORD_BITS) & mask
        o = run_cycles(state, i)[0].tolist()
        cycles += 1
        if asks and o[at.O_REQ_READY]:
            sent += 1
            word = next_word(word)
        if o[at.O_RESP_VALID]:
            match, hit = o[at.O_RESP_MATCH], o[at.O_RESP_HIT]
            answered, matched, hits = answered + 1, matched + match, hits + hit
            answer = o[at.O_RESP_OUTPUT] & 0xFFFF | (o[at.O_RESP_TAG] & 0xFF) << 16 | match << 30 | hit << 31
            check = (check << 1 & _WORD | check >> WORD_BITS - 1) ^ answer
    return dict(zip(_COUNTERS, (cycles, sent, answered, matched, hits, check), strict=True))
