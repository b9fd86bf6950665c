"""Random traffic for a lookup engine: inputs of every cycle, with the outputs that the golden engine gives.

The golden kernel runs in a closed loop with its surroundings (a source of requests, a sink of responses, a TCAM that
answers out of order, a CSR master, a link that fails). What comes out is an open-loop stimulus: any simulator that is
fed the same inputs must show the same outputs in every cycle.
"""

from dataclasses import dataclass, field

import numpy as np

from hopforge.model.kernel.compile import inner, kernel
from hopforge.model.kernel.numpy_draws import Draws, draw_below, draw_float
from hopforge.model.lookup.csr import COUNTERS, csr_map
from hopforge.model.lookup.fast import layout as lk
from hopforge.model.lookup.fast.deep import deep_quiet
from hopforge.model.lookup.fast.kernel import cycle_of
from hopforge.model.lookup.fast.second_level import second_busy
from hopforge.model.lookup.fast.state import engine_state
from hopforge.model.lookup.params import LookupParams
from hopforge.sim.drive.stimulus_destinations import destinations
from hopforge.sim.drive.stimulus_operations import OPERATION_COLUMNS, see_operation
from hopforge.sim.drive.stimulus_software import TARGET_HI, TARGET_LO, bus_program
from hopforge.sim.drive.stimulus_traffic import Traffic

_BLOCK_CYCLES = 1 << 14
_STUCK_CYCLES = 1 << 17

# integers of the surroundings
(E_NEXT, E_ACCEPTED, E_ANSWERED, E_OPERATION, E_GAP, E_PHASE, E_CLOSING, E_READ, E_DONE, E_LAST_MOVE, E_VERSION,
 E_LINK, E_REPEAT, E_TAG_MASK, E_TARGET, E_RECENT) = range(16)  # fmt: skip
RECENT = 64
"""Destinations that the surroundings remember, from `E_RECENT` on: what software invalidates is mostly among them."""
E_COUNT = E_RECENT + RECENT
_NEWEST = 8  # of them may still be in the pipeline or in an MSHR
# rates of the present phase
(R_REQUEST, R_RESPONSE, R_TCAM_READY, R_TCAM_ANSWER, R_COUNT) = range(5)
_RATES = np.array([0.05, 0.3, 0.7, 0.95, 1.0, 1.0])


@dataclass
class Stimulus:
    """Inputs and golden outputs, cycle by cycle.

    Attributes
    ----------
    inputs, outputs : ndarray
        int64[cycle, column]; columns `INPUTS` and `OUTPUTS` of `model.lookup.fast.layout`. Words of 64 bits are bit
        patterns.
    totals : dict
        Counters of the golden engine, as if nobody had cleared them on the way.
    operations : ndarray
        int64[cycle, column]: what it works on, columns `OPERATION_COLUMNS`; all 0 at a depth of 1, where no register
        holds an operation.
    """

    params: LookupParams
    traffic: Traffic
    inputs: np.ndarray
    outputs: np.ndarray
    totals: dict[str, int] = field(default_factory=dict)
    operations: np.ndarray = field(default_factory=lambda: np.zeros((0, len(OPERATION_COLUMNS)), np.int64))

    @property
    def cycles(self) -> int:
        """Number of cycles."""
        return len(self.inputs)


def stimulus(params: LookupParams, traffic: Traffic, setup: tuple[tuple[str, int], ...] = ()) -> Stimulus:
    """Run the golden engine in random surroundings.

    Parameters
    ----------
    params : LookupParams
        The engine.
    traffic : Traffic
        What happens around it.
    setup : tuple of (register name, word)
        Configuration to begin with, written before ``CTRL.enable``; without it a random one.

    Returns
    -------
    Stimulus
        Ends with nothing left in the engine and all counters read.
    """
    rng = np.random.default_rng(traffic.seed)
    draws, state = Draws(rng), engine_state(params)
    state.counters[:] = traffic.count_from
    centres = rng.integers(0, 1 << params.address_bits, traffic.centres)
    program, repeat_from = bus_program(params, traffic, setup, rng, centres)
    wanted = destinations(params, traffic, rng, centres)
    around = np.zeros(E_COUNT, np.int64)
    around[E_REPEAT], around[E_TARGET] = repeat_from, -1
    around[E_TAG_MASK] = (1 << params.request_tag_bits) - 1
    rates = np.ones(R_COUNT)
    waiting = np.full((params.mshrs, 3), -1, np.int64)  # external TCAM: due cycle, destination, version
    inputs, outputs, operations = [], [], []
    counters = csr_map(params)[f"COUNT_{COUNTERS[0][0].upper()}"].address
    while not around[E_DONE]:
        block = np.zeros((_BLOCK_CYCLES, len(lk.INPUTS)), np.int64)
        result = np.zeros((_BLOCK_CYCLES, len(lk.OUTPUTS)), np.int64)
        seen = np.zeros((_BLOCK_CYCLES, len(OPERATION_COLUMNS)), np.int64)
        used = _surround(
            state, around, rates, waiting, program, wanted, traffic.link_failures, counters, draws, block, result, seen,
            cycle_of(state),
        )  # fmt: skip
        if used < 0:
            raise RuntimeError(f"the golden engine has been stuck for {_STUCK_CYCLES} cycles")
        inputs.append(block[:used])
        outputs.append(result[:used])
        operations.append(seen[:used])
    return Stimulus(
        params, traffic, np.concatenate(inputs), np.concatenate(outputs), state.total_values(),
        np.concatenate(operations),
    )  # fmt: skip


@inner
def _answer_of(dst, version, mask):  # type: ignore[no-untyped-def]
    """Return (match, output) of the external TCAM: any fixed function of the destination and of the version."""
    mixed = (dst + version * 7919) * np.int64(0x9E3779B97F4A7C1) >> 3
    return np.int64(mixed >> 40 & 7 != 0), mixed & mask


@inner
def engine_quiet(state):  # type: ignore[no-untyped-def]
    """Return whether nothing is left in the engine."""
    s = state.regs
    busy = s[lk.S_OUT_VALID] | s[lk.S_SCRUB_ACTIVE] | s[lk.S_FLUSH_WAIT] | s[lk.S_FLUSH_REQUEST] | s[lk.S_INV_BUSY]
    busy |= second_busy(state)
    busy |= s[lk.S_TCAM_BUSY] | s[lk.S_ROW_EFFECTIVE] | s[lk.S_WRITE_PENDING] | s[lk.S_HOLD]
    for stage in range(lk.OP_C + 1):
        busy |= state.operations[stage, lk.F_KIND]
    for index in range(state.mshrs.shape[0]):
        busy |= state.mshrs[index, lk.M_STATE]
    if state.params[lk.P_DEPTH] > lk.SHALLOW_DEPTHS:
        return busy == 0 and deep_quiet(state)
    return busy == 0


@kernel
def _surround(  # type: ignore[no-untyped-def]
    state, e, rates, waiting, program, destinations, link_failures, counters, draws, inputs, outputs, seen, cycle
):
    """Fill up to one block of cycles; return how many, -1 if nothing moves any more."""
    wanted, s = destinations.shape[0], state.regs
    for index in range(inputs.shape[0]):
        i, now = inputs[index], s[lk.S_CYCLE]
        closing = e[E_CLOSING] > 0
        if not closing and e[E_ACCEPTED] == wanted and e[E_OPERATION] >= e[E_REPEAT]:
            e[E_CLOSING] = 1
            closing = True
        if e[E_PHASE] == 0:
            e[E_PHASE] = 20 + draw_below(draws, 200)
            for rate in range(R_COUNT):
                rates[rate] = _RATES[draw_below(draws, len(_RATES))]
        e[E_PHASE] -= 1
        setting_up = e[E_OPERATION] < e[E_REPEAT]
        i[lk.I_RESP_READY] = closing or draw_float(draws) < rates[R_RESPONSE]
        i[lk.I_TCAM_READY] = closing or draw_float(draws) < rates[R_TCAM_READY]
        if e[E_ACCEPTED] < wanted and not setting_up and draw_float(draws) < rates[R_REQUEST]:
            i[lk.I_REQ_VALID] = 1
            i[lk.I_REQ_DST] = destinations[e[E_ACCEPTED]]
            i[lk.I_REQ_TAG] = e[E_ACCEPTED] & e[E_TAG_MASK]
        i[lk.I_LINK_CHANGE] = not closing and not setting_up and draw_float(draws) < link_failures
        if i[lk.I_LINK_CHANGE]:
            e[E_LINK] = now + 1 + draw_below(draws, 60)

        drive_bus(state, e, program, counters, draws, i, now)
        answer_tcam(state, e, rates, waiting, draws, i, now, closing)

        if state.params[lk.P_DEPTH] > 1:
            see_operation(state, seen[index])
        o = outputs[index]
        cycle(state, i, o)
        if i[lk.I_REQ_VALID] and o[lk.O_REQ_READY]:
            accepted(e, i[lk.I_REQ_DST])
            e[E_LAST_MOVE] = now
        if o[lk.O_RESP_VALID] and i[lk.I_RESP_READY]:
            e[E_ANSWERED] += 1
            e[E_LAST_MOVE] = now
        if o[lk.O_TCAM_VALID] and i[lk.I_TCAM_READY]:
            number = o[lk.O_TCAM_ID]
            waiting[number, 0] = now + 1 + (0 if draw_float(draws) < 0.3 else draw_below(draws, 40))
            waiting[number, 1] = o[lk.O_TCAM_DST]
            waiting[number, 2] = e[E_VERSION]
        if e[E_CLOSING] > 1 and e[E_READ] > 12:
            e[E_DONE] = 1
            return index + 1
        if now - e[E_LAST_MOVE] > 1 << 17:
            return -1
    return inputs.shape[0]


@inner
def accepted(e, dst):  # type: ignore[no-untyped-def]
    """Count a request that has been accepted, and remember its destination."""
    e[E_RECENT + e[E_ACCEPTED] % RECENT] = dst
    e[E_ACCEPTED] += 1


@inner
def _address_in_use(e, draws):  # type: ignore[no-untyped-def]
    """Return one of the last destinations, half of the time one of the very last; 0 if there was none."""
    back = min(e[E_ACCEPTED], _NEWEST if draw_float(draws) < 0.5 else RECENT)
    return e[E_RECENT + (e[E_ACCEPTED] - 1 - draw_below(draws, back)) % RECENT] if back else 0


@inner
def drive_bus(state, e, program, counters, draws, i, now):  # type: ignore[no-untyped-def]
    """Drive the CSR bus: the program; after a link change enable; at the end enable and read the counters."""
    s = state.regs
    if e[E_CLOSING] == 1:
        if e[E_LINK] >= 0:
            e[E_LINK] = -1  # once: enable, which also ends a topology change
            i[lk.I_CSR_WE], i[lk.I_CSR_ADDR], i[lk.I_CSR_WDATA] = 1, state.addresses.ctrl, 1
        elif engine_quiet(state) and e[E_ANSWERED] == e[E_ACCEPTED]:
            e[E_CLOSING] = 2
        return
    if e[E_CLOSING] == 2:
        i[lk.I_CSR_RE], i[lk.I_CSR_ADDR] = 1, counters + min(e[E_READ], 9)
        second = state.addresses.second_counters
        if second >= 0 and e[E_READ] >= 9:
            i[lk.I_CSR_ADDR] = second + (e[E_READ] & 1)
        e[E_READ] += 1
        return
    if e[E_LINK] > 0 and now >= e[E_LINK]:
        e[E_LINK] = 0
        i[lk.I_CSR_WE], i[lk.I_CSR_ADDR], i[lk.I_CSR_WDATA] = 1, state.addresses.ctrl, 1
        return
    if e[E_GAP] > 0:
        e[E_GAP] -= 1
        return
    if e[E_OPERATION] < e[E_REPEAT] and s[lk.S_TCAM_BUSY]:
        return  # do not lose the first rows
    step = program[e[E_OPERATION]]
    i[lk.I_CSR_WE], i[lk.I_CSR_RE], i[lk.I_CSR_ADDR], i[lk.I_CSR_WDATA] = step[1], step[2], step[3], step[4]
    if step[5] == TARGET_HI:
        e[E_TARGET] = _address_in_use(e, draws)
        i[lk.I_CSR_WDATA] = e[E_TARGET] >> 32
    elif step[5] == TARGET_LO:
        if e[E_TARGET] < 0:  # there is no high word
            e[E_TARGET] = _address_in_use(e, draws)
        i[lk.I_CSR_WDATA] = e[E_TARGET] & 0xFFFFFFFF
        e[E_TARGET] = -1
    if step[1] and step[3] == state.addresses.ctrl and step[4] & 2:
        e[E_VERSION] += 1
    e[E_OPERATION] += 1
    if e[E_OPERATION] == program.shape[0]:
        e[E_OPERATION] = e[E_REPEAT]
    e[E_GAP] = program[e[E_OPERATION], 0]


@inner
def answer_tcam(state, e, rates, waiting, draws, i, now, closing):  # type: ignore[no-untyped-def]
    """Answer any of the requests that are due."""
    if not closing and draw_float(draws) >= rates[R_TCAM_ANSWER]:
        return
    due = 0
    for number in range(waiting.shape[0]):
        if 0 <= waiting[number, 0] <= now:
            due += 1
            if draw_float(draws) * due < 1:  # each one equally likely
                i[lk.I_TCAM_ID] = number
    if due:
        number = i[lk.I_TCAM_ID]
        i[lk.I_TCAM_VALID] = 1
        match, output = _answer_of(waiting[number, 1], waiting[number, 2], state.params[lk.P_OUTPUT_MASK])
        i[lk.I_TCAM_MATCH], i[lk.I_TCAM_OUTPUT] = match, output if match else 0
        waiting[number, 0] = -1
