"""The golden lookup engines of one router, with the software and the TCAMs around them."""


import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from hopforge.model.kernel.array_record import ArrayRecord
from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import inner
from hopforge.model.kernel.memory import int8s, int64s
from hopforge.model.kernel.numpy_draws import Draws, draw_below, draw_float
from hopforge.model.lookup.csr import COUNTERS, csr_map
from hopforge.model.lookup.fast import layout as lk
from hopforge.model.lookup.fast.response import visible_response
from hopforge.model.lookup.fast.state import EngineState, engine_state
from hopforge.model.network.core.candidates import candidate_port
from hopforge.model.network.core.events import answer_ahead
from hopforge.model.network.core.kinds import AHEAD_ENGINES
from hopforge.model.network.core.records import fifo_of, input_port, input_vc, packet_at
from hopforge.model.router.params import CLASS_BITS, PORT_BITS, RouterParams
from hopforge.sim.drive.router_surroundings import ADDRESS, CLOSING, LAST_MOVE, NEXT_ROUTE, RATES, mask_below
from hopforge.sim.drive.router_traffic import RouterTraffic
from hopforge.sim.drive.single_router import one_of, routed
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
    accepted,
    answer_tcam,
    drive_bus,
)
from hopforge.sim.drive.stimulus_software import bus_program
from hopforge.sim.drive.stimulus_traffic import Traffic

S_COUNTERS, S_PORT_SETS, S_MEMBERS, S_VC_BITS, S_PORT_FIELD = range(5)
#: of a VC: nothing to ask the engine of its output, it asks, it has asked
AHEAD_NOTHING, AHEAD_ASKS, AHEAD_ASKED = range(3)
#: most bits of an answer that are drawn: numbers of 64 bits with a sign hold it
_ANSWER_BITS = 62


class Engines(ArrayRecord):
    """Lookup engines, a row per engine.

    ``states``; ``program`` of all buses; ``around`` and ``rates`` of software and TCAM (`sim.drive.stimulus`);
    ``waiting`` requests of the TCAM; ``answers`` that lookups give; ``settings``: address of the counters, whether
    answers are port sets, input ports of an engine, bits of a tag that are the VC, bits of a port in field `route`;
    VCs that are ``asking``; whose ``turn`` it is, of each port a VC and of each engine (``member_turn``) a port.
    Look-ahead: what VCs do with the engine of their output (``ahead``), and whose turn it is there (``ahead_turn``).
    """

    states: tuple[EngineState, ...]
    program: NDArray[np.int64]
    around: NDArray[np.int64]
    rates: NDArray[np.float64]
    waiting: NDArray[np.int64]
    answers: NDArray[np.int64]
    settings: NDArray[np.int64]
    link_failures: float
    asking: NDArray[np.int64]
    turn: NDArray[np.int64]
    member_turn: NDArray[np.int64]
    ahead: NDArray[np.int64]
    ahead_turn: NDArray[np.int64]
    draws: Draws


def lookup_engines(params: RouterParams, traffic: RouterTraffic) -> Engines:
    """Return the lookup engines at their start, with a program for their software."""
    p, lookup = params, params.lookup
    assert lookup is not None
    registers = csr_map(lookup)
    rng = np.random.default_rng((traffic.seed, 13))
    states = tuple(engine_state(lookup) for _ in range(p.engines))
    for state in states:
        state.counters[:] = traffic.count_from
    operations = Traffic(lookups=1, quiet_cycles=traffic.quiet_cycles)
    program, repeat_from = bus_program(lookup, operations, (), rng, np.zeros(0, np.int64))
    answers = _looked_up(p, rng)
    if lookup.tcam_kind != "external":
        rows = program[:, 3] == registers["TCAM_OUTPUT_LO"].address
        program[rows, 4] = rng.choice(answers, int(rows.sum())) & 0xFFFFFFFF
    around = np.zeros((p.engines, E_COUNT), np.int64)
    around[:, E_REPEAT], around[:, E_TARGET] = repeat_from, -1
    return Engines(
        states=states,
        program=program,
        around=around,
        rates=np.ones((p.engines, R_COUNT)),
        waiting=np.full((p.engines, lookup.mshrs, 3), -1, np.int64),
        answers=answers,
        settings=np.array([
            registers[f"COUNT_{COUNTERS[0][0].upper()}"].address, int(p.output_kind == "port_set"),
            p.ports_per_engine, (p.vcs - 1).bit_length(), p.port_field_bits,
        ]),
        link_failures=traffic.link_failures,
        asking=np.zeros(p.ports * p.vcs, np.int64),
        turn=np.zeros(p.ports, np.int64),
        member_turn=np.zeros(p.engines, np.int64),
        ahead=np.zeros(p.ports * p.vcs, np.int64),
        ahead_turn=np.zeros(p.ports, np.int64),
        draws=Draws(np.random.default_rng((traffic.seed, 14))),
    )  # fmt: skip


def _known_ports(params: RouterParams) -> list[int]:
    """Return the ports that packets may take from each input VC, a mask; of those that may take any."""
    p = params
    named = range(min(p.ports, _ANSWER_BITS))
    masks = [sum(1 << o for o in named if p.vc_mask(0, i, v, o)) for i in range(p.ports) for v in range(p.vcs)]
    return [mask for mask in masks if mask]


def _looked_up(params: RouterParams, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return what lookups answer: mostly ports and classes that are there, and some others."""
    p = params
    assert p.lookup is not None
    if p.output_kind == "port_set":
        answers = rng.integers(0, 1 << min(p.ports, _ANSWER_BITS), 61)
        known = _known_ports(p)
        if p.vc_rule and known:  # a set of an input VC in turn: others would all be unroutable there
            here = np.resize(np.array(known, np.int64), len(answers))
            answers = np.where(answers & here, answers & here, here)
        answers[:3] = 0
    else:
        answers = rng.integers(0, p.ports, 61)
        answers[:3] = rng.integers(0, 1 << PORT_BITS, 3)
        classes = rng.integers(0, p.classes, 61)
        classes[:6] = rng.integers(0, 1 << CLASS_BITS, 6)
        answers |= classes << PORT_BITS
    return answers & (1 << min(p.lookup.output_bits, _ANSWER_BITS)) - 1


@inner
def _chosen_vc(net, g, i):  # type: ignore[no-untyped-def]
    """Return the first VC of input `i` in RC at or after its turn, -1: none asks."""
    for k in range(net.vcs):
        v = (g.turn[i] + k) % net.vcs
        if g.asking[i * net.vcs + v]:
            return v
    return -1


@inner
def _ask(net, a, g, e, enabled, row):  # type: ignore[no-untyped-def]
    """Let a VC of the first member at or after the turn ask engine `e`, if ``enable`` was 1 in the cycle before.

    Returns the number of the input VC, -1: none asks.
    """
    row[lk.I_RESP_READY] = 1
    if _at_output(net, e):
        return _ask_ahead(net, a, g, e, row)
    if not enabled:
        return -1
    members, vc_bits = g.settings[S_MEMBERS], g.settings[S_VC_BITS]
    for k in range(members):
        member = (g.member_turn[e] + k) % members
        i = e * members + member
        v = _chosen_vc(net, g, i) if i < net.ports else -1
        if v >= 0:
            n = i * net.vcs + v
            _request(net, a, n, member << vc_bits | v, row)
            return n
    return -1


@inner
def _request(net, a, n, tag, row):  # type: ignore[no-untyped-def]
    """Let input VC `n` ask for the destination at its head."""
    flit = fifo_of(net, n)[input_vc(net, n).head]
    row[lk.I_REQ_VALID], row[lk.I_REQ_TAG] = 1, tag
    row[lk.I_REQ_DST] = int64(a.heads[flit >> 2, 0] & mask_below(a.integers[ADDRESS]))


@inner
def _at_output(net, e):  # type: ignore[no-untyped-def]
    """Whether engine `e` answers for the router behind its output."""
    return net.lookahead == AHEAD_ENGINES and input_port(net, e).carried != 0


@inner
def _ask_ahead(net, a, g, e, row):  # type: ignore[no-untyped-def]
    """Let the first VC at or after the turn ask engine `e` of an output; returns its number, -1: none asks."""
    count = len(g.ahead)
    for k in range(count):
        n = (g.ahead_turn[e] + k) % count
        if g.ahead[n] == AHEAD_ASKS and candidate_port(int64s(net.candidate)[n * net.max_candidates]) == e:
            _request(net, a, n, n, row)
            return n
    return -1


@inner
def note_asking_ahead(net, g):  # type: ignore[no-untyped-def]
    """After the router's cycle: note which VCs asked in it for what their heads take along."""
    if net.lookahead == AHEAD_ENGINES:
        for n in range(len(g.ahead)):
            if g.ahead[n] == AHEAD_NOTHING and int8s(net.unanswered)[n] != 0:
                g.ahead[n] = AHEAD_ASKS


@inner
def give_answers_ahead(net, a, g):  # type: ignore[no-untyped-def]
    """Before the router's cycle: give heads the answers that are visible in it."""
    if net.lookahead != AHEAD_ENGINES:
        return
    for e in range(net.ports):
        if not _at_output(net, e):
            continue
        there, n, output, match = visible_response(g.states[e])
        if not there:
            continue
        field = net.ports
        flit = fifo_of(net, n)[input_vc(net, n).head]
        if match and g.settings[S_PORT_SETS]:
            packet, address = packet_at(net, flit >> 2), int64(a.heads[flit >> 2, 0] & mask_below(a.integers[ADDRESS]))
            port = one_of(uint64(output) & mask_below(net.ports), packet, address, a.behind[e])
            field = net.ports if port == 0 else trailing_zeros(uint64(port))
        elif match:
            field = min(output & ((1 << PORT_BITS) - 1), net.ports)
            field |= (output >> PORT_BITS & (1 << CLASS_BITS) - 1) << g.settings[S_PORT_FIELD]
        a.packets[flit >> 2, NEXT_ROUTE] = field
        g.ahead[n] = AHEAD_NOTHING
        answer_ahead(net, n)


@inner
def _note_tcam_request(g, i, row, seen, now):  # type: ignore[no-untyped-def]
    """Note what the TCAM of engine `i` takes, and when it will answer."""
    if seen[lk.O_TCAM_VALID] and row[lk.I_TCAM_READY]:
        number, waiting = seen[lk.O_TCAM_ID], g.waiting[i]
        waiting[number, 0] = now + 1 + (0 if draw_float(g.draws) < 0.3 else draw_below(g.draws, 40))
        waiting[number, 1] = seen[lk.O_TCAM_DST]
        waiting[number, 2] = g.around[i, E_VERSION]


@inner
def engine_cycle(net, a, g, cycle, i, enabled, row, seen):  # type: ignore[no-untyped-def]
    """Go through one cycle of engine `i`, by the C function `cycle`, of its software and its TCAM."""
    state = g.states[i]
    s, e, rates, waiting, draws = a.integers, g.around[i], g.rates[i], g.waiting[i], g.draws
    now = state.regs[lk.S_CYCLE]
    asked = _ask(net, a, g, i, enabled, row)
    closing = s[CLOSING] != 0
    if closing and e[E_CLOSING] == 0 and e[E_OPERATION] >= e[E_REPEAT]:
        e[E_CLOSING] = 1
    if now % 128 == 0:
        rates[R_TCAM_READY] = RATES[1 + draw_below(draws, len(RATES) - 1)]
        rates[R_TCAM_ANSWER] = RATES[1 + draw_below(draws, len(RATES) - 1)]
    row[lk.I_TCAM_READY] = closing or draw_float(draws) < rates[R_TCAM_READY]
    if e[E_CLOSING] == 0 and e[E_OPERATION] >= e[E_REPEAT] and draw_float(draws) < g.link_failures:
        row[lk.I_LINK_CHANGE] = 1
        e[E_LINK] = now + 1 + draw_below(draws, 60)
    drive_bus(state, e, g.program, g.settings[S_COUNTERS], draws, row, now)
    answer_tcam(state, e, rates, waiting, draws, row, now, closing)
    if row[lk.I_TCAM_MATCH]:
        row[lk.I_TCAM_OUTPUT] = g.answers[row[lk.I_TCAM_OUTPUT] % len(g.answers)]
    cycle(state, row, seen)
    if _at_output(net, i):
        if asked >= 0 and seen[lk.O_REQ_READY]:
            g.ahead[asked] = AHEAD_ASKED
            g.ahead_turn[i] = (asked + 1) % len(g.ahead)
            accepted(e, row[lk.I_REQ_DST])
            s[LAST_MOVE] = net.cycle
        _note_tcam_request(g, i, row, seen, now)
        e[E_ANSWERED] += seen[lk.O_RESP_VALID]
        return
    members, vc_bits = g.settings[S_MEMBERS], g.settings[S_VC_BITS]
    if asked >= 0 and seen[lk.O_REQ_READY]:
        port, v = asked // net.vcs, asked % net.vcs
        g.asking[asked] = 0
        g.turn[port] = (v + 1) % net.vcs
        g.member_turn[i] = (port + 1) % members
        accepted(e, row[lk.I_REQ_DST])
        s[LAST_MOVE] = net.cycle
    _note_tcam_request(g, i, row, seen, now)
    if seen[lk.O_RESP_VALID]:
        e[E_ANSWERED] += 1
        output = seen[lk.O_RESP_OUTPUT] if seen[lk.O_RESP_MATCH] else 0
        ports, route_class = uint64(output), int64(0)
        if g.settings[S_PORT_SETS] == 0:
            ports = uint64(1) << uint64(output & 63)
            route_class = output >> PORT_BITS & 15
        ports &= mask_below(net.ports) if seen[lk.O_RESP_MATCH] else uint64(0)
        tag = seen[lk.O_RESP_TAG]
        n = (i * members + (tag >> vc_bits)) * net.vcs + (tag & (1 << vc_bits) - 1)
        head = a.heads[fifo_of(net, n)[input_vc(net, n).head] >> 2, 0]
        routed(net, n, ports, route_class, int64(head & mask_below(s[ADDRESS])))
