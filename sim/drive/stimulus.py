"""Random traffic for a lookup engine: inputs of every cycle, with the outputs that the golden engine gives.

The golden kernel runs in a closed loop with its surroundings (a source of requests, a sink of responses, a TCAM that
answers out of order, a CSR master, a link that fails). What comes out is an open-loop stimulus: any simulator that is
fed the same inputs must show the same outputs in every cycle.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from hopforge.model.kernel.compile import kernel
from hopforge.model.lookup.csr import COUNTERS, CSR_ADDR_BITS, MODES, SECOND_LEVEL_COUNTERS, CsrMap, csr_map
from hopforge.model.lookup.fast import layout as lk
from hopforge.model.lookup.fast.deep import deep_quiet
from hopforge.model.lookup.fast.kernel import cycle
from hopforge.model.lookup.fast.second_level import second_busy
from hopforge.model.lookup.fast.state import engine_state
from hopforge.model.lookup.params import LookupParams
from hopforge.model.numbers.crc import crc_matrix

_BLOCK_CYCLES = 1 << 14
_OPERATIONS = 512
_PERIOD_OPERATIONS = 32
_RUSH_LOOKUPS = 48
_CROWDED = slice(1, None, 4)  # of a pool
_STUCK_CYCLES = 1 << 17

# integers of the surroundings
(E_NEXT, E_ACCEPTED, E_ANSWERED, E_OPERATION, E_GAP, E_PHASE, E_CLOSING, E_READ, E_DONE, E_LAST_MOVE, E_VERSION,
 E_LINK, E_REPEAT, E_TAG_MASK, E_TARGET, E_RECENT) = range(16)  # fmt: skip
RECENT = 64
"""Destinations that the surroundings remember, from `E_RECENT` on: what software invalidates is mostly among them."""
E_COUNT = E_RECENT + RECENT
_NEWEST = 8  # of them may still be in the pipeline or in an MSHR
# what a write on the CSR bus carries: its own word, or low or high word of an address in use (the first one chooses it)
_OWN_WORD, _TARGET_LO, _TARGET_HI = range(3)
# rates of the present phase
(R_REQUEST, R_RESPONSE, R_TCAM_READY, R_TCAM_ANSWER, R_COUNT) = range(5)
_RATES = np.array([0.05, 0.3, 0.7, 0.95, 1.0, 1.0])


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What the surroundings of the engine do.

    Parameters
    ----------
    lookups : int
        Requests to be made.
    seed : int
        Seed of everything random.
    quiet_cycles : int
        Mean number of cycles between two operations on the CSR bus.
    link_failures : float
        Probability per cycle that the link changes.
    pool : int
        Number of different destinations that are asked for at a time.
    pool_lookups : int
        Lookups after which others are asked for.
    locality : float
        Exponent of the popularity of destinations: 1 uniform, larger: fewer of them more often.
    change_configuration : bool
        Whether mode, own address, level and radices change on the way.
    addresses : tuple of int
        Addresses of the network: three quarters of the destinations are among them. Empty: none is known.
    centres : int
        Number of own addresses to choose from, most destinations being one or two digits away from one of them, so that
        a wrong key makes the wrong ones share a line; 0: own addresses and destinations have nothing to do with each
        other.
    count_from : int
        What the counters of the engine begin with.
    thorough : bool
        More of what a fault needs to show: the switch becomes one of another network, software writes at addresses
        beside registers, and reads all counters, also before anything happens.
    """

    lookups: int
    seed: int = 1
    quiet_cycles: int = 40
    link_failures: float = 0.0005
    pool: int = 64
    pool_lookups: int = 2000
    locality: float = 2.0
    change_configuration: bool = True
    addresses: tuple[int, ...] = ()
    centres: int = 0
    count_from: int = 0
    thorough: bool = False


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
    """

    params: LookupParams
    traffic: Traffic
    inputs: np.ndarray
    outputs: np.ndarray
    totals: dict[str, int] = field(default_factory=dict)

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
    state = engine_state(params)
    state.counters[:] = traffic.count_from
    centres = rng.integers(0, 1 << params.address_bits, traffic.centres)
    program, repeat_from = bus_program(params, traffic, setup, rng, centres)
    destinations = _destinations(params, traffic, rng, centres)
    around = np.zeros(E_COUNT, np.int64)
    around[E_REPEAT], around[E_TARGET] = repeat_from, -1
    around[E_TAG_MASK] = (1 << params.request_tag_bits) - 1
    rates = np.ones(R_COUNT)
    waiting = np.full((params.mshrs, 3), -1, np.int64)  # external TCAM: due cycle, destination, version
    inputs, outputs = [], []
    counters = csr_map(params)[f"COUNT_{COUNTERS[0][0].upper()}"].address
    while not around[E_DONE]:
        block = np.zeros((_BLOCK_CYCLES, len(lk.INPUTS)), np.int64)
        result = np.zeros((_BLOCK_CYCLES, len(lk.OUTPUTS)), np.int64)
        used = _surround(
            state, around, rates, waiting, program, destinations, traffic.link_failures, counters, rng, block, result
        )
        if used < 0:
            raise RuntimeError(f"the golden engine has been stuck for {_STUCK_CYCLES} cycles")
        inputs.append(block[:used])
        outputs.append(result[:used])
    return Stimulus(params, traffic, np.concatenate(inputs), np.concatenate(outputs), state.total_values())


def _destinations(params: LookupParams, traffic: Traffic, rng: np.random.Generator, centres: np.ndarray) -> np.ndarray:
    """Return int64[lookup]: destinations out of a pool that changes now and then, near ones more often.

    Where keys are whole addresses a quarter of the pool shares few sets, twice as many addresses in each as it has
    ways, and now and then only those of one set are asked for: a large cache would otherwise never use its last way,
    let alone evict, or fill what has been filled while other lines of the set were used.
    """
    limit = 1 << params.address_bits
    pools = rng.integers(0, limit, (max(1, traffic.lookups // traffic.pool_lookups), traffic.pool))
    # half of the addresses differ from their neighbours in a few low bits only, as in a real network
    pools[:, ::2] &= 0xFFF
    if traffic.addresses:
        known = rng.random(pools.shape) < 0.75
        pools[known] = rng.choice(np.array(traffic.addresses, np.int64), int(known.sum()))
    if len(centres):
        near = rng.random(pools.shape) < 0.85
        pools[near] = _near(params, centres, int(near.sum()), rng)
    elif not params.skewed:
        for pool in pools:
            pool[_CROWDED] = _crowded(params, len(pool[_CROWDED]), rng)
    pick = (rng.random(traffic.lookups) ** traffic.locality * traffic.pool).astype(np.int64)
    if not (len(centres) or params.skewed):
        _rush(params, traffic, rng, pick)
    return pools[np.arange(traffic.lookups) * len(pools) // max(1, traffic.lookups), pick]


def _near(params: LookupParams, centres: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return int64[count]: addresses that differ from one of `centres` in up to two digits."""
    addresses = rng.choice(centres, count)
    for _ in range(2):
        bits = rng.choice(np.array(params.chunk_bits), count)
        at = rng.integers(0, params.address_bits // bits) * bits
        addresses ^= (rng.integers(0, 1 << bits) * (rng.random(count) < 0.7)) << at
    return addresses


def _crowded(params: LookupParams, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return int64[count]: addresses that, as keys, lie in few sets, 2 · ways in each."""
    masks, _ = crc_matrix(params.crc, params.address_bits)
    same_set = _kernel([int(mask) for mask in masks[: params.index_bits]], params.address_bits)
    addresses = np.repeat(rng.integers(0, 1 << params.address_bits, -(-count // (2 * params.ways))), 2 * params.ways)
    for vector in same_set:
        addresses ^= vector * rng.integers(0, 2, len(addresses))
    return addresses[:count]


def _rush(params: LookupParams, traffic: Traffic, rng: np.random.Generator, pick: np.ndarray) -> None:
    """Let some stretches of `pick`, places in the pool, ask for the addresses of one set of `_crowded` only."""
    crowded = np.arange(traffic.pool)[_CROWDED]
    in_a_set = 2 * params.ways
    for begin in range(0, len(pick), _RUSH_LOOKUPS):
        if len(crowded) and rng.random() < 0.3:
            first = int(rng.integers(0, -(-len(crowded) // in_a_set))) * in_a_set
            stretch = pick[begin : begin + _RUSH_LOOKUPS]
            stretch[:] = rng.choice(crowded[first : first + in_a_set], len(stretch))


def _kernel(masks: list[int], width: int) -> list[int]:
    """Return a basis of the words whose parity under each of `masks` is 0.

    Examples
    --------
    >>> _kernel([0b011, 0b110], 3)
    [7]
    """
    rows = [(sum((mask >> bit & 1) << place for place, mask in enumerate(masks)), 1 << bit) for bit in range(width)]
    found: list[int] = []
    while rows:
        parities, word = rows.pop()
        if not parities:
            found.append(word)
            continue
        lowest = parities & -parities
        rows = [(p ^ parities, w ^ word) if p & lowest else (p, w) for p, w in rows]
    return found


def bus_program(
    params: LookupParams,
    traffic: Traffic,
    setup: tuple[tuple[str, int], ...],
    rng: np.random.Generator,
    centres: np.ndarray,
) -> tuple[np.ndarray, int]:
    """Return int64[operation, (cycles before, write, read, address, data, whose word)] and where to repeat from."""
    registers = csr_map(params)
    begin = list(_begin(params, registers, setup, rng, centres))
    rows = [(0, *row) for row in _all_counters(registers)] if traffic.thorough else []
    rows += [(0, 1, 0, registers[name].address, data, _OWN_WORD) for name, data in begin]
    repeat_from = len(rows)
    for number in range(_OPERATIONS):
        if number % _PERIOD_OPERATIONS == 0:
            calm = bool(rng.random() < 0.5)
        operation = list(_operation(params, registers, traffic, setup, rng, centres, calm=calm))
        gap = int(rng.geometric(1 / max(1, traffic.quiet_cycles)))
        for index, (write, read, address, data, word) in enumerate(operation):
            rows.append((gap if index == 0 else int(rng.integers(0, 3)), write, read, address, data, word))
    return np.array(rows, np.int64), repeat_from


def _begin(
    params: LookupParams,
    registers: CsrMap,
    setup: tuple[tuple[str, int], ...],
    rng: np.random.Generator,
    centres: np.ndarray,
) -> Iterator[tuple[str, int]]:
    if params.tcam_kind != "external":
        for row in range(min(params.tcam_rows, 8 if params.tcam_kind == "flops" else 1)):
            yield from _tcam_row(params, registers, rng, row)
    if setup:
        yield from setup
    else:
        for name in ("MODE", "OWN_LO", "LEVEL", *(f"RADIX{index}" for index in range(params.radices))):
            yield name, _configuration(params, registers, rng, name, centres)
    yield "CTRL", registers["CTRL"].encode(enable=1)


def _tcam_row(params: LookupParams, registers: CsrMap, rng: np.random.Generator, row: int) -> Iterator[tuple[str, int]]:
    """Write a row that matches a good part of all addresses."""
    care = int(rng.integers(0, 1 << params.address_bits)) & int(rng.integers(0, 1 << params.address_bits))
    care &= int(rng.integers(0, 1 << params.address_bits)) & 0xFFFFFFFFFF0F0F
    words = {
        "TCAM_VALUE": int(rng.integers(0, 1 << params.address_bits)),
        "TCAM_MASK": care,
        "TCAM_OUTPUT": int(rng.integers(0, 1 << 62)) & (1 << params.output_bits) - 1,
    }
    for name, word in words.items():
        yield f"{name}_LO", word & 0xFFFFFFFF
        if f"{name}_HI" in registers:
            yield f"{name}_HI", word >> 32
    valid, lag = int(rng.random() < 0.85), int(rng.integers(0, 2))
    yield "TCAM_WRITE", registers["TCAM_WRITE"].encode(row=row, lag=lag, valid=valid)


def _configuration(
    params: LookupParams, registers: CsrMap, rng: np.random.Generator, name: str, centres: np.ndarray
) -> int:
    """Return a random word for a configuration register: mostly sensible, sometimes any bits."""
    if rng.random() < 0.05:
        return int(rng.integers(0, 1 << 32))
    if name == "MODE":
        return registers["MODE"].encode(
            mode=MODES.index(rng.choice(params.functions)),
            chunk_select=int(rng.integers(0, len(params.chunk_bits))),
            up_choice=int(rng.integers(0, 2)),
            member_hash=int(rng.integers(0, 2)),
            members=int(rng.integers(1, params.max_members + 1)),
        )
    if name == "LEVEL":
        return registers["LEVEL"].encode(level=int(rng.integers(0, 4)), digits=int(rng.integers(0, params.radices + 2)))
    if name.startswith("RADIX"):
        return int(rng.integers(1, 1 << int(rng.integers(2, 10))))
    if len(centres):
        return int(rng.choice(centres)) & 0xFFFFFFFF
    return int(rng.integers(0, 1 << 32)) & (0xFFF if rng.random() < 0.5 else 0xFFFFFFFF)


def _operation(
    params: LookupParams,
    registers: CsrMap,
    traffic: Traffic,
    setup: tuple[tuple[str, int], ...],
    rng: np.random.Generator,
    centres: np.ndarray,
    *,
    calm: bool,
) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield the bus cycles (write, read, address, data, whose word) of one random operation.

    Nothing that empties the cache while it is `calm`.
    """
    ctrl = registers["CTRL"]

    def write(name: str, data: int, word: int = _OWN_WORD) -> tuple[int, int, int, int, int]:
        return 1, int(rng.random() < 0.1), registers[name].address, data, word

    kinds = ["invalidate", "read", "clear", "flush", "row", "configuration", "enable", "change", "any"]
    weights = np.array([4.0, 4, 0.2, 2, 2, 2 * traffic.change_configuration, 0.7, 0.4, 0.3])
    if calm:
        weights[3:] = 0
    if traffic.thorough:
        kinds += ["counters", "beside", "switch"]
        weights = np.append(weights, [0.5, 1.0, 0.0 if calm else 2.0 * traffic.change_configuration])
    kind = rng.choice(kinds, p=weights / weights.sum())
    if kind == "flush":
        yield write("CTRL", ctrl.encode(enable=1, flush=1))
    elif kind == "invalidate":
        for _ in range(int(rng.integers(1, 4))):
            any_address = int(rng.integers(0, 1 << params.address_bits))
            in_use = rng.random() < 0.85
            if "INVALIDATE_HI" in registers:
                yield write("INVALIDATE_HI", any_address >> 32, _TARGET_HI if in_use else _OWN_WORD)
            yield write("INVALIDATE_LO", any_address & 0xFFFFFFFF, _TARGET_LO if in_use else _OWN_WORD)
    elif kind == "read":
        for _ in range(int(rng.integers(1, 5))):
            name = rng.choice([register.name for register in registers])
            yield 0, 1, registers["STATUS" if rng.random() < 0.3 else name].address, 0, _OWN_WORD
    elif kind == "row" and params.tcam_kind != "external":
        for name, data in _tcam_row(params, registers, rng, int(rng.integers(0, min(params.tcam_rows + 1, 12)))):
            yield write(name, data)
    elif kind == "configuration" and setup and rng.random() < 0.5:
        # a switch of the network again: random registers alone seldom make dimensions after the first one decide
        for name, word in setup:
            own = rng.choice(np.array(traffic.addresses)) if name == "OWN_LO" and traffic.addresses else word
            yield write(name, int(own) & 0xFFFFFFFF)
    elif kind == "configuration":
        radices = [f"RADIX{index}" for index in range(params.radices)]
        name = rng.choice(["MODE", "MODE", "LEVEL", "OWN_LO", rng.choice(radices)])
        yield write(name, _configuration(params, registers, rng, name, centres))
        if name == "OWN_LO" and "OWN_HI" in registers:
            yield write("OWN_HI", int(rng.choice(centres)) >> 32 if len(centres) else int(rng.integers(0, 1 << 16)))
    elif kind == "enable":
        yield write("CTRL", 0)
        yield write("CTRL", ctrl.encode(enable=1))
    elif kind == "change":
        yield write("CTRL", ctrl.encode(enable=1, topology_change=1))
        yield 0, 1, registers["STATUS"].address, 0, _OWN_WORD
        yield write("CTRL", ctrl.encode(enable=1))
    elif kind == "clear":
        yield write("CTRL", ctrl.encode(enable=1, clear_counters=1))
    elif kind == "counters":
        yield from _all_counters(registers)
    elif kind == "beside":
        yield from _beside(registers, rng)
    elif kind == "switch":
        for name, word in _switch(params, registers, rng, centres):
            yield write(name, word)
    elif kind == "any":
        word = int(rng.integers(0, 1 << 32)) & ~ctrl.field("enable").mask
        yield 1, 1, int(rng.integers(0, 1 << CSR_ADDR_BITS)), word, _OWN_WORD
        yield write("CTRL", ctrl.encode(enable=1))


def _all_counters(registers: CsrMap) -> Iterator[tuple[int, int, int, int, int]]:
    for name, _ in (*COUNTERS, *SECOND_LEVEL_COUNTERS):
        if f"COUNT_{name.upper()}" in registers:
            yield 0, 1, registers[f"COUNT_{name.upper()}"].address, 0, _OWN_WORD


def _beside(registers: CsrMap, rng: np.random.Generator) -> Iterator[tuple[int, int, int, int, int]]:
    """Write and read where nothing is, one bit of the address away from a register that a write would change."""
    taken = {register.address for register in registers}
    for _ in range(4):
        register = registers["CTRL"] if rng.random() < 0.2 else list(registers)[int(rng.integers(len(taken)))]
        address = register.address ^ 1 << int(rng.integers(CSR_ADDR_BITS))
        if address not in taken:
            yield 1, 1, address, int(rng.integers(0, 1 << 32)), _OWN_WORD
            yield 0, 1, register.address, 0, _OWN_WORD


def _switch(
    params: LookupParams, registers: CsrMap, rng: np.random.Generator, centres: np.ndarray
) -> Iterator[tuple[str, int]]:
    """Yield the registers of a switch of another network: radices as digits have values, so that bounds decide."""
    chunk = int(rng.integers(len(params.chunk_bits)))
    digits = params.digits(params.chunk_bits[chunk])
    fields = registers["MODE"].decode(_configuration(params, registers, rng, "MODE", centres))
    yield "MODE", registers["MODE"].encode(**{**fields, "chunk_select": chunk})
    yield "LEVEL", registers["LEVEL"].encode(level=int(rng.integers(digits)), digits=int(rng.integers(1, digits + 1)))
    yield "OWN_LO", _configuration(params, registers, rng, "OWN_LO", centres)
    for index in range(min(digits, params.radices)):
        yield f"RADIX{index}", int(rng.integers(1, (1 << params.chunk_bits[chunk]) + 2))


@kernel
def _answer_of(dst, version, mask):  # type: ignore[no-untyped-def]
    """Return (match, output) of the external TCAM: any fixed function of the destination and of the version."""
    mixed = (dst + version * 7919) * np.int64(0x9E3779B97F4A7C1) >> 3
    return np.int64(mixed >> 40 & 7 != 0), mixed & mask


@kernel
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
    state, e, rates, waiting, program, destinations, link_failures, counters, rng, inputs, outputs
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
            e[E_PHASE] = 20 + rng.integers(0, 200)
            for rate in range(R_COUNT):
                rates[rate] = _RATES[rng.integers(0, len(_RATES))]
        e[E_PHASE] -= 1
        setting_up = e[E_OPERATION] < e[E_REPEAT]
        i[lk.I_RESP_READY] = closing or rng.random() < rates[R_RESPONSE]
        i[lk.I_TCAM_READY] = closing or rng.random() < rates[R_TCAM_READY]
        if e[E_ACCEPTED] < wanted and not setting_up and rng.random() < rates[R_REQUEST]:
            i[lk.I_REQ_VALID] = 1
            i[lk.I_REQ_DST] = destinations[e[E_ACCEPTED]]
            i[lk.I_REQ_TAG] = e[E_ACCEPTED] & e[E_TAG_MASK]
        i[lk.I_LINK_CHANGE] = not closing and not setting_up and rng.random() < link_failures
        if i[lk.I_LINK_CHANGE]:
            e[E_LINK] = now + 1 + rng.integers(0, 60)

        drive_bus(state, e, program, counters, rng, i, now)
        answer_tcam(state, e, rates, waiting, rng, i, now, closing)

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
            waiting[number, 0] = now + 1 + (0 if rng.random() < 0.3 else rng.integers(0, 40))
            waiting[number, 1] = o[lk.O_TCAM_DST]
            waiting[number, 2] = e[E_VERSION]
        if e[E_CLOSING] > 1 and e[E_READ] > 12:
            e[E_DONE] = 1
            return index + 1
        if now - e[E_LAST_MOVE] > 1 << 17:
            return -1
    return inputs.shape[0]


@kernel
def accepted(e, dst):  # type: ignore[no-untyped-def]
    """Count a request that has been accepted, and remember its destination."""
    e[E_RECENT + e[E_ACCEPTED] % RECENT] = dst
    e[E_ACCEPTED] += 1


@kernel
def _address_in_use(e, rng):  # type: ignore[no-untyped-def]
    """Return one of the last destinations, half of the time one of the very last; 0 if there was none."""
    back = min(e[E_ACCEPTED], _NEWEST if rng.random() < 0.5 else RECENT)
    return e[E_RECENT + (e[E_ACCEPTED] - 1 - rng.integers(0, back)) % RECENT] if back else 0


@kernel
def drive_bus(state, e, program, counters, rng, i, now):  # type: ignore[no-untyped-def]
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
    if step[5] == _TARGET_HI:
        e[E_TARGET] = _address_in_use(e, rng)
        i[lk.I_CSR_WDATA] = e[E_TARGET] >> 32
    elif step[5] == _TARGET_LO:
        if e[E_TARGET] < 0:  # there is no high word
            e[E_TARGET] = _address_in_use(e, rng)
        i[lk.I_CSR_WDATA] = e[E_TARGET] & 0xFFFFFFFF
        e[E_TARGET] = -1
    if step[1] and step[3] == state.addresses.ctrl and step[4] & 2:
        e[E_VERSION] += 1
    e[E_OPERATION] += 1
    if e[E_OPERATION] == program.shape[0]:
        e[E_OPERATION] = e[E_REPEAT]
    e[E_GAP] = program[e[E_OPERATION], 0]


@kernel
def answer_tcam(state, e, rates, waiting, rng, i, now, closing):  # type: ignore[no-untyped-def]
    """Answer any of the requests that are due."""
    if not closing and rng.random() >= rates[R_TCAM_ANSWER]:
        return
    due = 0
    for number in range(waiting.shape[0]):
        if 0 <= waiting[number, 0] <= now:
            due += 1
            if rng.random() * due < 1:  # each one equally likely
                i[lk.I_TCAM_ID] = number
    if due:
        number = i[lk.I_TCAM_ID]
        i[lk.I_TCAM_VALID] = 1
        match, output = _answer_of(waiting[number, 1], waiting[number, 2], state.params[lk.P_OUTPUT_MASK])
        i[lk.I_TCAM_MATCH], i[lk.I_TCAM_OUTPUT] = match, output if match else 0
        waiting[number, 0] = -1
