"""Random traffic for one router: inputs of every cycle, with the outputs that the golden router gives.

The kernels of the network simulator (`sim.drive.single_router`), and with ``rc: lookup`` the golden lookup engines, run
in a closed loop with what surrounds a router: senders that keep to their credits, receivers that return credits when
they like, software and TCAMs at the lookup engines. What comes out is open-loop: a router that is fed the same inputs
must show the same outputs in every cycle.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numba import from_dtype, int64, njit, typeof, types, uint64
from numpy.typing import NDArray

from hopforge.model import network
from hopforge.model.kernel.memory import int32s
from hopforge.model.kernel.rng import next_below, next_float, next_word
from hopforge.model.kernel.stale import forget_stale
from hopforge.model.lookup import fast as lookup_kernel
from hopforge.model.lookup.csr import COUNTERS, csr_map
from hopforge.model.lookup.fast import layout as lk
from hopforge.model.lookup.fast.kernel import cycle
from hopforge.model.lookup.fast.state import EngineState, engine_state
from hopforge.model.network.core.records import (
    NET,
    NET_RECORD,
    PATTERN_SIGNATURE,
    ROUTE_SIGNATURE,
    input_port,
    input_vc,
    packet_at,
)
from hopforge.model.network.kernel import run_cycles
from hopforge.model.router.golden import Flit, PortInputs, PortOutputs, RouterModel
from hopforge.model.router.params import CLASS_BITS, PORT_BITS, RouterParams
from hopforge.sim.drive import single_router as twin
from hopforge.sim.drive import stimulus as engine_stimulus
from hopforge.sim.drive.single_router import (
    give_credit,
    give_flit,
    no_pattern,
    routed,
    single_router,
    table_route,
    take_credits,
    take_flits,
    take_routing,
)
from hopforge.sim.drive.stimulus import (
    E_ANSWERED,
    E_CLOSING,
    E_COUNT,
    E_LINK,
    E_OPERATION,
    E_READ,
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

# columns of a port in a cycle; the data words of the flit follow
(I_VALID, I_KIND, I_VC, I_CREDIT_VALID, I_CREDIT_VC, I_DATA) = range(6)
(O_VALID, O_KIND, O_VC, O_CREDIT_VALID, O_CREDIT_VC, O_DROPS, O_DROPPED,
 O_DATA) = range(8)  # fmt: skip
C_ENABLE, C_CLEAR = range(2)

_BLOCK_CYCLES = 1 << 13
_STUCK_CYCLES = 1 << 15
_WORD_BITS = 64

# integers of the surroundings
(_CYCLES, _DONE, _CLOSING, _QUIET, _SERIAL, _LONGEST, _WIDTH, _ADDRESS, _TAG, _LENGTH, _LAST_MOVE, _ROUTES, _CLEAR,
 _ENABLE, _COUNT) = range(15)  # fmt: skip
# of a sender's port
(_PHASE, _WHERE, _TARGET, _LENGTHS, _IN_COUNT) = range(5)
# of an input VC: packet being sent, its length, flits of it that are sent, credits
(_PACKET, _FLITS, _SENT, _CREDITS, _VC_COUNT) = range(5)
# of a record of a packet: serial number, flits that have come out
(_NUMBER, _OUT, _PACKET_COUNT) = range(3)
_RATES = np.array([0.02, 0.2, 0.5, 0.8, 1.0, 1.0])
_KINDNESS = np.array([0.0, 0.1, 0.4, 0.8, 1.0, 1.0])
_CLEAR_CYCLES = 200
_OFF, _ON = 0.03, 0.15  # share of the cycles in which ``enable`` goes off and on


@dataclass(frozen=True, kw_only=True)
class RouterTraffic:
    """What the surroundings of a router do.

    Parameters
    ----------
    cycles : int
        Cycles with new packets; then everything is let out.
    seed : int
        Of everything random.
    quiet_cycles : int
        Mean number of cycles between two operations on the bus of a lookup engine.
    link_failures : float
        Probability per cycle that the link of a lookup engine changes.
    pool : int
        Destinations that are looked up.
    unroutable : float
        Share of the packets whose destination is any address, mostly one without a route.
    clear_cycles : int
        Mean number of cycles between two clearings of the drop counters.
    longest_flits : int, optional
        Longest packet; by default some more flits than a buffer has (virtual cut-through: as many as it has).
    """

    cycles: int
    seed: int = 1
    quiet_cycles: int = 60
    link_failures: float = 0.0003
    pool: int = 24
    unroutable: float = 0.04
    clear_cycles: int = _CLEAR_CYCLES
    longest_flits: int | None = None


@dataclass
class RouterStimulus:
    """Inputs and golden outputs, cycle by cycle.

    Attributes
    ----------
    inputs, outputs : ndarray
        int64[cycle, port, column]: columns ``I_…`` and ``O_…``, then the data of the flit in words of 64 bits as bit
        patterns, the lowest first.
    engine_inputs, engine_outputs : ndarray
        int64[cycle, port, column] of the lookup engines (`INPUTS` and `OUTPUTS` of
        `model.lookup.fast.layout`); no port without.
    control : ndarray
        int64[cycle, 2]: ``enable`` and ``clear_drops``.
    packets, drops : int
        Packets sent, and dropped as unroutable.
    lookups : dict
        Counters of all lookup engines together, as if nobody had cleared them.
    """

    params: RouterParams
    traffic: RouterTraffic
    inputs: NDArray[np.int64]
    outputs: NDArray[np.int64]
    engine_inputs: NDArray[np.int64]
    engine_outputs: NDArray[np.int64]
    control: NDArray[np.int64]
    packets: int
    drops: int
    lookups: dict[str, int] = field(default_factory=dict)

    @property
    def cycles(self) -> int:
        """Number of cycles."""
        return len(self.inputs)

    @property
    def flits(self) -> int:
        """Flits that came out."""
        return int(self.outputs[:, :, O_VALID].sum())


def router_stimulus(params: RouterParams, traffic: RouterTraffic) -> RouterStimulus:
    """Run the golden router in random surroundings.

    Parameters
    ----------
    params : RouterParams
        The router.
    traffic : RouterTraffic
        What happens around it.

    Returns
    -------
    RouterStimulus
        Ends with nothing left in the router and all credits returned; counters of lookup engines have been read.
    """
    p = params
    net = single_router(p)
    around = _surroundings(p, traffic, len(net["packet"]))
    engines = _engines(p, traffic) if p.rc == "lookup" else None
    blocks: list[tuple[NDArray[np.int64], ...]] = []
    while not around.integers[_DONE]:
        rows, seen = (np.zeros((_BLOCK_CYCLES, p.ports, at + data_words(p)), np.int64) for at in (I_DATA, O_DATA))
        count = p.ports if engines is not None else 0
        engine_rows, engine_seen = (
            np.zeros((_BLOCK_CYCLES, count, len(ports)), np.int64) for ports in (lk.INPUTS, lk.OUTPUTS)
        )
        control = np.zeros((_BLOCK_CYCLES, 2), np.int64)
        if engines is None:
            used = _call(_play, net.record[0], around, rows, control, seen)
        else:
            used = _call(_play_lookup, net.record[0], around, engines, rows, control, seen, engine_rows, engine_seen)
        if used < 0:
            raise RuntimeError(f"the golden router has been stuck for {_STUCK_CYCLES} cycles")
        blocks.append(tuple(array[:used] for array in (rows, seen, engine_rows, engine_seen, control)))
    inputs, outputs, engine_inputs, engine_outputs, controls = map(np.concatenate, zip(*blocks, strict=True))
    totals = [0] * len(COUNTERS) if engines is None else engines.stack.totals.sum(axis=0)
    return RouterStimulus(
        p, traffic, inputs, outputs, engine_inputs, engine_outputs, controls, int(around.integers[_SERIAL]),
        int(net["packets_dropped"]), {name: int(value) for (name, _), value in zip(COUNTERS, totals, strict=True)},
    )  # fmt: skip


def held_stimulus(params: RouterParams, traffic: RouterTraffic) -> RouterStimulus:
    """Let the golden router in plain Python take the packets of `router_stimulus`, with ``enable`` off now and then.

    The kernels know no ``enable``. Packets wait in their order for credits; some thousand cycles a second.

    Parameters
    ----------
    params, traffic
        As for `router_stimulus`; no lookup engines.
    """
    p, given = params, router_stimulus(params, traffic)
    rng = np.random.default_rng((traffic.seed, 15))
    golden = RouterModel(p)
    queues = [[deque[NDArray[np.int64]]() for _ in range(p.vcs)] for _ in range(p.ports)]
    for now, i in np.argwhere(given.inputs[:, :, I_VALID] == 1).tolist():
        row = given.inputs[now, i]
        queues[i][row[I_VC]].append(row)
    credits = np.full((p.ports, p.vcs), p.buffer_flits)
    owed: list[list[int]] = [[] for _ in range(p.ports)]
    inputs, outputs, control = [], [], []
    quiet, enable = 0, True
    while quiet < 8 + p.credit_delay_cycles + p.rc_cycles or len(inputs) < traffic.cycles:
        rows, seen = np.zeros((p.ports, I_DATA + data_words(p)), np.int64), []
        for i, port in enumerate(golden.visible()):
            if port.credit is not None:
                credits[i, port.credit] += 1
            if port.flit is not None:
                owed[i].append(port.flit.vc)
            seen.append(_seen(p, port))
            v = int(rng.integers(p.vcs))
            if queues[i][v] and credits[i, v] and rng.random() < 0.8:
                rows[i, :] = queues[i][v].popleft()
                credits[i, v] -= 1
            rows[i, I_CREDIT_VALID : I_CREDIT_VC + 1] = 0
            if owed[i] and rng.random() < 0.7:
                rows[i, I_CREDIT_VALID : I_CREDIT_VC + 1] = 1, owed[i].pop(int(rng.integers(len(owed[i]))))
        if rng.random() < (_OFF if enable else _ON):
            enable = not enable
        clear = rng.random() < 1 / traffic.clear_cycles
        golden.step([_port_inputs(row) for row in rows.tolist()], enable=enable, clear_counters=clear)
        for i in golden.dropped:
            seen[i][O_DROPPED] = 1
        inputs.append(rows)
        outputs.append(seen)
        control.append([int(enable), int(clear)])
        left = any(owed) or any(queue for of_port in queues for queue in of_port)
        quiet = 0 if left or (credits < p.buffer_flits).any() else quiet + 1
        if len(inputs) > 20 * given.cycles:
            raise RuntimeError(f"the golden router has not been empty for {len(inputs)} cycles")
    seen_array = np.array(outputs, np.uint64).view(np.int64)
    return RouterStimulus(
        p, traffic, np.array(inputs), seen_array, np.zeros((len(inputs), 0, len(lk.INPUTS)), np.int64),
        np.zeros((len(inputs), 0, len(lk.OUTPUTS)), np.int64), np.array(control), given.packets,
        int(seen_array[:, :, O_DROPPED].sum()), given.lookups,
    )  # fmt: skip


def _port_inputs(row: list[int]) -> PortInputs:
    data = sum((word & 2**_WORD_BITS - 1) << _WORD_BITS * place for place, word in enumerate(row[I_DATA:]))
    flit = Flit(row[I_KIND], row[I_VC], data) if row[I_VALID] else None
    return PortInputs(flit, row[I_CREDIT_VC] if row[I_CREDIT_VALID] else None)


def _seen(params: RouterParams, port: PortOutputs) -> list[int]:
    row = [0] * (O_DATA + data_words(params))
    if port.flit is not None:
        row[O_VALID : O_VC + 1] = 1, port.flit.kind, port.flit.vc
        for place in range(data_words(params)):
            row[O_DATA + place] = port.flit.data >> _WORD_BITS * place & 2**_WORD_BITS - 1
    if port.credit is not None:
        row[O_CREDIT_VALID : O_CREDIT_VC + 1] = 1, port.credit
    row[O_DROPS] = port.drops
    return row


def data_words(params: RouterParams) -> int:
    """Return the columns of the data of a flit."""
    return -(-params.width_bits // _WORD_BITS)


class _Around(NamedTuple):
    """Senders and receivers.

    Per port ``senders``, ``rates`` (of packets and of flits), ``receivers`` (cycles left of the phase, VCs that get no
    credit), ``kindness``; per input VC ``vcs``; per output VC credits ``owed``; by record of the pool ``packets``,
    ``heads`` (data words); ``visible`` flits, their VCs and credits on the outputs; ``addresses`` of destinations;
    the share of ``unroutable`` packets.
    """

    integers: NDArray[np.int64]
    streams: NDArray[np.uint64]
    senders: NDArray[np.int64]
    rates: NDArray[np.float64]
    receivers: NDArray[np.int64]
    kindness: NDArray[np.float64]
    vcs: NDArray[np.int64]
    owed: NDArray[np.int64]
    packets: NDArray[np.int64]
    heads: NDArray[np.uint64]
    visible: NDArray[np.int64]
    addresses: NDArray[np.int64]
    unroutable: float


class _Engines(NamedTuple):
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


def _surroundings(params: RouterParams, traffic: RouterTraffic, pool: int) -> _Around:
    p = params
    room = min(p.credits(o) for o in range(p.ports))
    longest = min(room, (1 << p.length_bits) - 1, 12) if p.switching == "vct" else min(2 * p.buffer_flits + 3, 16)
    longest = longest if traffic.longest_flits is None else min(longest, traffic.longest_flits)
    integers = np.zeros(_COUNT, np.int64)
    for name, value in (
        (_CYCLES, traffic.cycles), (_LONGEST, longest), (_WIDTH, p.width_bits), (_ADDRESS, p.address_bits),
        (_TAG, p.tag_bits), (_LENGTH, p.length_bits if p.switching == "vct" else 0), (_ROUTES, len(p.routes)),
        (_CLEAR, traffic.clear_cycles), (_ENABLE, 1),
    ):  # fmt: skip
        integers[name] = value
    vcs = np.zeros((p.ports * p.vcs, _VC_COUNT), np.int64)
    vcs[:, _PACKET], vcs[:, _CREDITS] = -1, p.buffer_flits
    known = np.random.default_rng((traffic.seed, 12)).integers(0, 1 << p.address_bits, traffic.pool)
    known[::2] &= 0xFF
    return _Around(
        integers=integers,
        streams=np.random.SeedSequence((traffic.seed, 11)).generate_state(2, np.uint64).astype(np.uint64),
        senders=np.zeros((p.ports, _IN_COUNT), np.int64),
        rates=np.ones((p.ports, 2)),
        receivers=np.zeros((p.ports, 2), np.int64),
        kindness=np.ones(p.ports),
        vcs=vcs,
        owed=np.zeros(p.ports * p.vcs, np.int64),
        packets=np.zeros((pool, _PACKET_COUNT), np.int64),
        heads=np.zeros((pool, data_words(p)), np.uint64),
        visible=np.zeros((3, p.ports), np.int64),
        addresses=known if p.rc == "lookup" else np.arange(max(1, len(p.routes))),
        unroutable=traffic.unroutable,
    )


def _engines(params: RouterParams, traffic: RouterTraffic) -> _Engines:
    p, lookup = params, params.lookup
    assert lookup is not None
    registers = csr_map(lookup)
    rng = np.random.default_rng((traffic.seed, 13))
    states = [engine_state(lookup) for _ in range(p.ports)]
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
    return _Engines(
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
def _mask(width):  # type: ignore[no-untyped-def]
    """Return a word of ones below `width`."""
    return ~uint64(0) if width >= _WORD_BITS else (uint64(1) << uint64(width)) - uint64(1)


@njit
def _put(words, position, width, value):  # type: ignore[no-untyped-def]
    """Set bits of a vector of words that are 0 so far."""
    while width > 0:
        at, shift = position // _WORD_BITS, position % _WORD_BITS
        part = min(width, _WORD_BITS - shift)
        words[at] |= (value & _mask(part)) << uint64(shift)
        value = value >> uint64(part) if part < _WORD_BITS else uint64(0)
        position += part
        width -= part


@njit
def _mixed(serial, index, word):  # type: ignore[no-untyped-def]
    """Return a word that looks random (the output function of SplitMix64)."""
    x = uint64(serial) * uint64(0x9E3779B97F4A7C15) + uint64(index) * uint64(0xD1B54A32D192ED03)
    x += uint64(word) * uint64(0x8CB92BA72F3D8DD7) + uint64(1)
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@njit
def _data(a, slot, index, row):  # type: ignore[no-untyped-def]
    """Write the data of a flit to the words of `row`."""
    for word in range(a.heads.shape[1]):
        if index == 0:
            row[word] = int64(a.heads[slot, word])
        else:
            row[word] = int64(
                _mixed(a.packets[slot, _NUMBER], index, word) & _mask(a.integers[_WIDTH] - _WORD_BITS * word)
            )


@njit
def _draw_length(a, kind):  # type: ignore[no-untyped-def]
    longest = a.integers[_LONGEST]
    if kind == 0:
        return 1
    return longest if kind == 2 else 1 + next_below(a.streams, 0, longest)


@njit
def _new_packet(net, a, sender):  # type: ignore[no-untyped-def]
    """Create a packet; returns its record and its length."""
    s, streams, addresses = a.integers, a.streams, a.addresses
    net.free_packets -= 1
    slot = int64(int32s(net.free_packet)[net.free_packets])
    s[_SERIAL] += 1
    length = _draw_length(a, sender[_LENGTHS])
    choice = sender[_TARGET] if sender[_WHERE] == 0 else next_below(streams, 0, len(addresses))
    address = uint64(addresses[choice % len(addresses)])
    packet = packet_at(net, slot)
    packet.dst = choice % len(addresses)
    if next_float(streams, 0) < a.unroutable:
        address = next_word(streams, 0) & _mask(s[_ADDRESS])
        packet.dst = address if address < uint64(s[_ROUTES]) else -1
    packet.length = length
    packet.number = s[_SERIAL]
    a.packets[slot, _NUMBER] = s[_SERIAL]
    a.packets[slot, _OUT] = 0
    head = a.heads[slot]
    for word in range(len(head)):
        head[word] = uint64(0)
    _put(head, 0, s[_ADDRESS], address)
    _put(head, s[_ADDRESS], s[_ADDRESS], uint64(s[_SERIAL]))
    _put(head, 2 * s[_ADDRESS], s[_TAG], next_word(streams, 0))
    used = 2 * s[_ADDRESS] + s[_TAG]
    _put(head, used, s[_LENGTH], uint64(length))
    used += s[_LENGTH]
    while used < s[_WIDTH]:
        part = min(32, s[_WIDTH] - used)
        _put(head, used, part, next_word(streams, 0))
        used += part
    return slot, length


@njit
def _send(net, a, i, row, now):  # type: ignore[no-untyped-def]
    """Perhaps put a flit on input `i`."""
    s, streams, rates, sender = a.integers, a.streams, a.rates, a.senders[i]
    if sender[_PHASE] == 0:
        sender[_PHASE] = 20 + next_below(streams, 0, 300)
        sender[_WHERE] = next_below(streams, 0, 3)
        sender[_TARGET] = next_below(streams, 0, 1 << 20)
        sender[_LENGTHS] = next_below(streams, 0, 3)
        rates[i, 0] = _RATES[next_below(streams, 0, len(_RATES))]
        rates[i, 1] = _RATES[next_below(streams, 0, len(_RATES))]
    sender[_PHASE] -= 1
    if s[_CLOSING] == 0 and next_float(streams, 0) >= rates[i, 1]:
        return
    count = net.vcs
    first = next_below(streams, 0, count)
    for k in range(count):
        v = (first + k) % count
        n = i * count + v
        vc = a.vcs[n]
        if vc[_CREDITS] == 0:
            continue
        if vc[_PACKET] < 0:
            if s[_CLOSING] or next_float(streams, 0) >= rates[i, 0]:
                continue
            vc[_PACKET], vc[_FLITS] = _new_packet(net, a, sender)
            vc[_SENT] = 0
        slot = vc[_PACKET]
        kind = int64(vc[_SENT] == 0) + 2 * int64(vc[_SENT] == vc[_FLITS] - 1)
        row[I_VALID], row[I_KIND], row[I_VC] = 1, kind, v
        _data(a, slot, vc[_SENT], row[I_DATA:])
        give_flit(net, n, slot, kind, now)
        vc[_SENT] += 1
        vc[_CREDITS] -= 1
        if vc[_SENT] == vc[_FLITS]:
            vc[_PACKET] = -1
        s[_LAST_MOVE] = now
        return


@njit
def _return(net, a, o, row, now):  # type: ignore[no-untyped-def]
    """Perhaps return a credit to output `o`."""
    s, streams, receiver, count = a.integers, a.streams, a.receivers[o], net.vcs
    if receiver[0] == 0:
        receiver[0] = 20 + next_below(streams, 1, 300)
        a.kindness[o] = _KINDNESS[next_below(streams, 1, len(_KINDNESS))]
        receiver[1] = next_below(streams, 1, 1 << count) if next_below(streams, 1, 3) == 0 else 0
    receiver[0] -= 1
    if s[_CLOSING] == 0 and next_float(streams, 1) >= a.kindness[o]:
        return
    first = next_below(streams, 1, count)
    for k in range(count):
        w = (first + k) % count
        m = o * count + w
        if a.owed[m] == 0 or (s[_CLOSING] == 0 and receiver[1] >> w & 1):
            continue
        a.owed[m] -= 1
        row[I_CREDIT_VALID], row[I_CREDIT_VC] = 1, w
        give_credit(net, m, now)
        s[_LAST_MOVE] = now
        return


@njit
def _observe(net, a, seen, now):  # type: ignore[no-untyped-def]
    """Write what stands on the outputs to `seen`, and let senders and receivers see it."""
    flits, flit_vcs, credits = a.visible[0], a.visible[1], a.visible[2]
    take_flits(net, now, flits, flit_vcs)
    take_credits(net, now, credits)
    for o in range(net.ports):
        row = seen[o]
        row[O_DROPS] = input_port(net, o).drops & 0xFFFFFFFF
        if flits[o] >= 0:
            slot, kind = flits[o] >> 2, flits[o] & 3
            row[O_VALID], row[O_KIND], row[O_VC] = 1, kind, flit_vcs[o]
            _data(a, slot, a.packets[slot, _OUT], row[O_DATA:])
            a.packets[slot, _OUT] += 1
            a.owed[o * net.vcs + flit_vcs[o]] += 1
            if kind & 2:
                int32s(net.free_packet)[net.free_packets] = slot
                net.free_packets += 1
        if credits[o] >= 0:
            row[O_CREDIT_VALID], row[O_CREDIT_VC] = 1, credits[o]
            a.vcs[o * net.vcs + credits[o], _CREDITS] += 1


@njit
def _at_rest(net, a):  # type: ignore[no-untyped-def]
    """Return whether all packets are sent and all credits are back."""
    for n in range(net.input_vcs):
        if a.vcs[n, _PACKET] >= 0 or a.vcs[n, _CREDITS] != net.buffer or a.owed[n] > 0:
            return False
    return True


@njit
def _cycle(route, pattern, net, a, row, control, seen):  # type: ignore[no-untyped-def]
    """Go through one cycle; returns whether router, senders and receivers have been at rest for a while."""
    now, s = int64(net.cycle), a.integers
    if now >= s[_CYCLES]:
        s[_CLOSING] = 1
    _observe(net, a, seen, now)
    for i in range(net.ports):
        _send(net, a, i, row[i], now)
        _return(net, a, i, row[i], now)
    for i in range(net.ports):
        seen[i, O_DROPPED] = -input_port(net, i).drops
    run_cycles(route, pattern, net, 1)
    control[C_ENABLE] = 1
    control[C_CLEAR] = next_below(a.streams, 1, s[_CLEAR]) == 0
    for i in range(net.ports):
        seen[i, O_DROPPED] += input_port(net, i).drops
        if control[C_CLEAR]:
            input_port(net, i).drops = 0
    s[_QUIET] = s[_QUIET] + 1 if s[_CLOSING] and _at_rest(net, a) else 0
    return s[_QUIET] > 8 + net.router_credit_delay


@njit
def _stuck(net, a):  # type: ignore[no-untyped-def]
    """Return whether nothing has moved for a long time at the end."""
    s = a.integers
    return s[_CLOSING] and net.cycle - max(s[_LAST_MOVE], s[_CYCLES]) > _STUCK_CYCLES


def _play(route, pattern, net, a, inputs, control, outputs):  # type: ignore[no-untyped-def]
    """Fill up to one block of cycles; return how many, -1 if nothing moves any more."""
    for index in range(inputs.shape[0]):
        if _cycle(route, pattern, net, a, inputs[index], control[index], outputs[index]):
            a.integers[_DONE] = 1
            return index + 1
        if _stuck(net, a):
            return -1
    return inputs.shape[0]


@njit
def _engine_at(stack, i):  # type: ignore[no-untyped-def]
    """Return the engine of input `i`."""
    return EngineState(
        stack.params[i], stack.addresses, stack.regs[i], stack.config[i], stack.shadow[i], stack.csr_kind[i],
        stack.csr_mask[i], stack.csr_reset[i], stack.mshrs[i], stack.next_mshrs[i], stack.operations[i],
        stack.valid[i], stack.tags[i], stack.outputs[i], stack.epochs[i], stack.order[i], stack.nodes[i],
        stack.pointer[i], stack.rows[i], stack.written[i], stack.pipeline[i], stack.counters[i], stack.totals[i],
        stack.hash_table[i], stack.skew_table[i],
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
            row[lk.I_REQ_DST] = int64(a.heads[flit >> 2, 0] & _mask(a.integers[_ADDRESS]))
            return v
    return -1


@njit
def _engine_cycle(net, a, g, i, enabled, row, seen):  # type: ignore[no-untyped-def]
    """Go through one cycle of the engine of input `i`, its software and its TCAM."""
    state = _engine_at(g.stack, i)
    s, e, rates, waiting, rng = a.integers, g.around[i], g.rates[i], g.waiting[i], g.rng
    now = state.regs[lk.S_CYCLE]
    v = _ask(net, a, g, i, enabled, row)
    closing = s[_CLOSING] != 0
    if closing and e[E_CLOSING] == 0 and e[E_OPERATION] >= e[E_REPEAT]:
        e[E_CLOSING] = 1
    if now % 128 == 0:
        rates[R_TCAM_READY] = _RATES[rng.integers(1, len(_RATES))]
        rates[R_TCAM_ANSWER] = _RATES[rng.integers(1, len(_RATES))]
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
        s[_LAST_MOVE] = net.cycle
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
        ports &= _mask(net.ports) if seen[lk.O_RESP_MATCH] else uint64(0)
        routed(net, i * net.vcs + seen[lk.O_RESP_TAG], ports, route_class)


@njit
def _toggled(enable, rng):  # type: ignore[no-untyped-def]
    """Return whether routing is enabled in the next cycle: off now and then, for some cycles."""
    return not enable if rng.random() < (_OFF if enable else _ON) else enable


def _play_lookup(  # type: ignore[no-untyped-def]
    route, pattern, net, a, g, inputs, control, outputs, engine_inputs, engine_outputs
):
    """Fill up to one block of cycles; return how many, -1 if nothing moves any more."""
    for index in range(inputs.shape[0]):
        now = int64(net.cycle)
        rest = _cycle(route, pattern, net, a, inputs[index], control[index], outputs[index])
        take_routing(net, now, g.asking)
        enabled = a.integers[_ENABLE]
        a.integers[_ENABLE] = control[index, C_ENABLE] = a.integers[_CLOSING] or _toggled(enabled, g.rng)
        for i in range(net.ports):
            _engine_cycle(net, a, g, i, enabled, engine_inputs[index, i], engine_outputs[index, i])
            rest = rest and g.around[i, E_READ] > 12
        if rest:
            a.integers[_DONE] = 1
            return index + 1
        if _stuck(net, a):
            return -1
    return inputs.shape[0]


def _call(play: Callable[..., int], *arguments: object) -> int:
    """Compile a kernel for these arguments, with routing and pattern as the first-class functions of `run_cycles`."""
    of_arguments = (NET_RECORD if kind == _PLAIN_NET else kind for kind in map(typeof, arguments))
    return int(_compiled(play, tuple(of_arguments))(table_route, no_pattern, *arguments))


@cache
def _compiled(play: Callable[..., int], arguments: tuple[types.Type, ...]) -> Callable[..., int]:
    functions = types.FunctionType(ROUTE_SIGNATURE), types.FunctionType(PATTERN_SIGNATURE)
    forget_stale(njit(cache=True)(play), lookup_kernel, engine_stimulus, *_KERNELS)
    kernel: Callable[..., int] = njit(int64(*functions, *arguments), cache=True)(play)
    return kernel


_PLAIN_NET = from_dtype(NET)
_KERNELS: tuple[ModuleType, ...] = (network, twin)
