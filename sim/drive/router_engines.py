"""The golden lookup engines of one router, with the software and the TCAMs around them."""

from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit, uint64
from numpy.typing import NDArray

from hopforge.model.kernel.memory import int32s
from hopforge.model.lookup.csr import COUNTERS, csr_map
from hopforge.model.lookup.fast import layout as lk
from hopforge.model.lookup.fast.kernel import cycle
from hopforge.model.lookup.fast.state import EngineState, engine_state
from hopforge.model.network.core.records import input_vc
from hopforge.model.router.params import CLASS_BITS, PORT_BITS, RouterParams
from hopforge.sim.drive.router_surroundings import ADDRESS, CLOSING, LAST_MOVE, RATES, mask_below
from hopforge.sim.drive.router_traffic import RouterTraffic
from hopforge.sim.drive.single_router import routed
from hopforge.sim.drive.stimulus import (
    E_ANSWERED,
    E_CLOSING,
    E_COUNT,
    E_LINK,
    E_OPERATION,
    E_REPEAT,
    E_TARGET,
    E_VERSION,
    R_COUNT,
    R_TCAM_ANSWER,
    R_TCAM_READY,
    Traffic,
    accepted,
    answer_tcam,
    bus_program,
    drive_bus,
)


class Engines(NamedTuple):
    """Lookup engines, a row per port.

    ``stack`` of states; ``program`` of all buses; ``around`` and ``rates`` of software and TCAM (`sim.drive.stimulus`);
    ``waiting`` requests of the TCAM; ``answers`` that lookups give; ``settings``: address of the counters, whether
    answers are port sets; VCs that are ``asking``; whose ``turn`` it is.
    """

    stack: EngineState
    program: NDArray[np.int64]
    around: NDArray[np.int64]
    rates: NDArray[np.float64]
    waiting: NDArray[np.int64]
    answers: NDArray[np.int64]
    settings: NDArray[np.int64]
    link_failures: float
    asking: NDArray[np.int64]
    turn: NDArray[np.int64]
    rng: np.random.Generator


def lookup_engines(params: RouterParams, traffic: RouterTraffic) -> Engines:
    """Return the lookup engines at their start, with a program for their software."""
    p, lookup = params, params.lookup
    assert lookup is not None
    registers = csr_map(lookup)
    rng = np.random.default_rng((traffic.seed, 13))
    states = [engine_state(lookup) for _ in range(p.ports)]
    for state in states:
        state.counters[:] = traffic.count_from
    stack: dict[str, Any] = {
        name: states[0].addresses if name == "addresses" else np.stack([getattr(one, name) for one in states])
        for name in EngineState._fields
    }
    operations = Traffic(lookups=1, quiet_cycles=traffic.quiet_cycles)
    program, repeat_from = bus_program(lookup, operations, (), rng, np.zeros(0, np.int64))
    answers = _looked_up(p, rng)
    if lookup.tcam_kind != "external":
        rows = program[:, 3] == registers["TCAM_OUTPUT_LO"].address
        program[rows, 4] = rng.choice(answers, int(rows.sum())) & 0xFFFFFFFF
    around = np.zeros((p.ports, E_COUNT), np.int64)
    around[:, E_REPEAT], around[:, E_TARGET] = repeat_from, -1
    return Engines(
        stack=EngineState(**stack),
        program=program,
        around=around,
        rates=np.ones((p.ports, R_COUNT)),
        waiting=np.full((p.ports, lookup.mshrs, 3), -1, np.int64),
        answers=answers,
        settings=np.array([
            registers[f"COUNT_{COUNTERS[0][0].upper()}"].address, int(p.output_kind == "port_set"),
        ]),
        link_failures=traffic.link_failures,
        asking=np.zeros(p.ports * p.vcs, np.int64),
        turn=np.zeros(p.ports, np.int64),
        rng=np.random.default_rng((traffic.seed, 14)),
    )  # fmt: skip


def _looked_up(params: RouterParams, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return what lookups answer: mostly ports that are there, and some others."""
    p = params
    assert p.lookup is not None
    if p.output_kind == "port_set":
        answers = rng.integers(0, 1 << p.ports, 61)
        answers[:3] = 0
    else:
        answers = rng.integers(0, p.ports, 61)
        answers[:3] = rng.integers(0, 1 << PORT_BITS, 3)
        answers |= rng.integers(0, min(p.classes + 1, 1 << CLASS_BITS), 61) << PORT_BITS
    return answers & (1 << min(p.lookup.output_bits, 62)) - 1


@njit
def engine_at(stack, i):  # type: ignore[no-untyped-def]
    """Return the engine of input `i`."""
    return EngineState(
        stack.params[i], stack.addresses, stack.regs[i], stack.config[i], stack.shadow[i], stack.csr_kind[i],
        stack.csr_mask[i], stack.csr_reset[i], stack.mshrs[i], stack.next_mshrs[i], stack.operations[i],
        stack.responses[i], stack.late_inputs[i], stack.late_events[i], stack.valid[i], stack.tags[i],
        stack.outputs[i], stack.epochs[i], stack.order[i], stack.rows[i], stack.written[i], stack.pipeline[i],
        stack.counters[i], stack.totals[i], stack.events[i], stack.hash_table[i], stack.skew_table[i],
        stack.program_steps[i], stack.program_roms[i], stack.program_values[i],
    )  # fmt: skip


@njit
def _ask(net, a, g, i, enabled, row):  # type: ignore[no-untyped-def]
    """Let the first VC in RC at or after the turn ask, if ``enable`` was 1 in the cycle before; returns it or -1."""
    row[lk.I_RESP_READY] = 1
    if not enabled:
        return -1
    for k in range(net.vcs):
        v = (g.turn[i] + k) % net.vcs
        n = i * net.vcs + v
        if g.asking[n]:
            flit = int32s(net.fifo)[n * net.buffer + input_vc(net, n).head]
            row[lk.I_REQ_VALID], row[lk.I_REQ_TAG] = 1, v
            row[lk.I_REQ_DST] = int64(a.heads[flit >> 2, 0] & mask_below(a.integers[ADDRESS]))
            return v
    return -1


@njit
def engine_cycle(net, a, g, i, enabled, row, seen):  # type: ignore[no-untyped-def]
    """Go through one cycle of the engine of input `i`, its software and its TCAM."""
    state = engine_at(g.stack, i)
    s, e, rates, waiting, rng = a.integers, g.around[i], g.rates[i], g.waiting[i], g.rng
    now = state.regs[lk.S_CYCLE]
    v = _ask(net, a, g, i, enabled, row)
    closing = s[CLOSING] != 0
    if closing and e[E_CLOSING] == 0 and e[E_OPERATION] >= e[E_REPEAT]:
        e[E_CLOSING] = 1
    if now % 128 == 0:
        rates[R_TCAM_READY] = RATES[rng.integers(1, len(RATES))]
        rates[R_TCAM_ANSWER] = RATES[rng.integers(1, len(RATES))]
    row[lk.I_TCAM_READY] = closing or rng.random() < rates[R_TCAM_READY]
    if e[E_CLOSING] == 0 and e[E_OPERATION] >= e[E_REPEAT] and rng.random() < g.link_failures:
        row[lk.I_LINK_CHANGE] = 1
        e[E_LINK] = now + 1 + rng.integers(0, 60)
    drive_bus(state, e, g.program, g.settings[0], rng, row, now)
    answer_tcam(state, e, rates, waiting, rng, row, now, closing)
    if row[lk.I_TCAM_MATCH]:
        row[lk.I_TCAM_OUTPUT] = g.answers[row[lk.I_TCAM_OUTPUT] % len(g.answers)]
    cycle(state, row, seen)
    if v >= 0 and seen[lk.O_REQ_READY]:
        g.asking[i * net.vcs + v] = 0
        g.turn[i] = (v + 1) % net.vcs
        accepted(e, row[lk.I_REQ_DST])
        s[LAST_MOVE] = net.cycle
    if seen[lk.O_TCAM_VALID] and row[lk.I_TCAM_READY]:
        number = seen[lk.O_TCAM_ID]
        waiting[number, 0] = now + 1 + (0 if rng.random() < 0.3 else rng.integers(0, 40))
        waiting[number, 1] = seen[lk.O_TCAM_DST]
        waiting[number, 2] = e[E_VERSION]
    if seen[lk.O_RESP_VALID]:
        e[E_ANSWERED] += 1
        output = seen[lk.O_RESP_OUTPUT] if seen[lk.O_RESP_MATCH] else 0
        ports, route_class = uint64(output), int64(0)
        if g.settings[1] == 0:
            ports = uint64(1) << uint64(output & 63)
            route_class = output >> PORT_BITS & 15
        ports &= mask_below(net.ports) if seen[lk.O_RESP_MATCH] else uint64(0)
        routed(net, i * net.vcs + seen[lk.O_RESP_TAG], ports, route_class)
