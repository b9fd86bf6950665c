"""The golden lookup engine as a numba kernel: the same machine as `model.lookup`, for long runs.

State lives in arrays (`EngineState`); `cycle` computes the outputs of one cycle and moves on. Tested equal to
`model.lookup.LookupEngine` in every cycle. 64-bit words are kept as int64 bit patterns.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hopforge.model.crc import CrcMatrix, affine_tables, crc_tables
from hopforge.model.csr import COUNTERS, CSR_ADDR_BITS, MODES, csr_map
from hopforge.model.lookup import LookupInputs, LookupOutputs
from hopforge.model.lookup_params import LookupParams
from hopforge.model.routing_cache import skew_matrices

#: functions that only kernels call: they compile faster without an entry for Python
_INNER: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_inner = njit(**_INNER)

INPUTS = LookupInputs._fields
OUTPUTS = LookupOutputs._fields

# columns of inputs and outputs
(I_REQ_VALID, I_REQ_DST, I_REQ_TAG, I_RESP_READY, I_CSR_ADDR, I_CSR_WE, I_CSR_RE, I_CSR_WDATA, I_LINK_CHANGE,
 I_TCAM_READY, I_TCAM_VALID, I_TCAM_ID, I_TCAM_MATCH, I_TCAM_OUTPUT) = range(14)  # fmt: skip
(O_REQ_READY, O_RESP_VALID, O_RESP_TAG, O_RESP_OUTPUT, O_RESP_MATCH, O_RESP_HIT, O_CSR_RDATA, O_TCAM_VALID, O_TCAM_ID,
 O_TCAM_DST) = range(10)  # fmt: skip

# parameters
(P_A, P_DEPTH, P_SETS, P_WAYS, P_POLICY, P_SKEWED, P_EPOCHS, P_MSHRS, P_TCAM, P_LATENCY, P_OUTPUT_MASK, P_COMPARATORS,
 P_CHUNKS, P_MAX_MEMBERS, P_FUNCTIONS, P_ROWS, P_RADICES, P_CHUNK0) = range(18)  # fmt: skip
_LRU, _PLRU, _FIFO, _RANDOM = range(4)
_FLOPS, _SRAM, _EXTERNAL = range(3)

# scalar registers
(S_FLUSH_REQUEST, S_HOLD, S_PENDING, S_EPOCH, S_DEBT, S_SCRUB_ACTIVE, S_SCRUB_ROW, S_FLUSH_WAIT, S_INV_PENDING,
 S_INV_BUSY, S_INV_DST, S_ISSUE_POINTER, S_FILL_POINTER, S_OVERRUN, S_RDATA, S_LFSR, S_CYCLE, S_TCAM_BUSY,
 S_ROW_EFFECTIVE, S_WRITE_PENDING, S_WRITE_ROW, S_OUT_VALID, S_OUT_TAG, S_OUT_OUTPUT, S_OUT_MATCH, S_OUT_HIT,
 S_COUNT) = range(27)  # fmt: skip

# active configuration
(C_ENABLE, C_MODE, C_CHUNK, C_UP, C_HASH, C_MEMBERS, C_OWN, C_LEVEL, C_DIGITS, C_RADIX0) = range(10)

# operations: stages and fields
(OP_A0, OP_A1, OP_C, OP_CHOSEN, OP_ENTER) = range(5)
(F_KIND, F_FRESH, F_KEY, F_DST, F_TAG, F_MSHR, F_ROW, F_COUNT) = range(8)
_NONE, _LOOKUP, _FILL, _INVALIDATE, _SCRUB = range(5)

# MSHRs
(M_STATE, M_STALE, M_PRIMARY, M_FRESH, M_KEY, M_DST, M_TAG, M_MATCH, M_OUTPUT, M_COUNT) = range(10)
_FREE, _WAIT_ISSUE, _ISSUED, _WAIT_PRIMARY, _DONE, _INJECTED = range(6)

# TCAM rows, and lookups on their way
(R_VALID, R_VALUE, R_MASK, R_OUTPUT, R_LAG, R_COUNT) = range(6)
(T_VALID, T_ID, T_DST, T_MEMBER, T_MATCH, T_OUTPUT, T_COUNT) = range(7)

# what an address of the CSR bus is
(K_NOTHING, K_WORD, K_CTRL, K_STATUS, K_CONFIG, K_INVALIDATE, K_TCAM_WRITE, K_COUNTER) = range(8)
_SRAM_WRITE_CYCLES = 256
_WORD_BITS = 32
_NAMES = tuple(name for name, _ in COUNTERS)
(N_LOOKUPS, N_HITS, N_MISSES, N_MERGES, N_FILLS, N_EVICTIONS, N_DROPS, N_RETRIES, N_FLUSHES,
 N_INVALIDATIONS) = range(10)  # fmt: skip
_SPACE = 1 << CSR_ADDR_BITS


class CsrAddresses(NamedTuple):
    """Word addresses that the kernel itself needs; -1 where the engine has no such register."""

    mode: int
    own: int
    own_hi: int
    level: int
    invalidate_hi: int
    radix: int
    value: int
    value_hi: int
    mask: int
    mask_hi: int
    output: int
    output_hi: int
    counters: int
    ctrl: int


class EngineState(NamedTuple):
    """Everything that an engine holds.

    ``params`` int64[P]; ``regs`` int64[S]; ``config`` int64[C]; ``shadow``, ``csr_kind``, ``csr_mask``, ``csr_reset``
    int64[128]; ``mshrs``, ``next_mshrs`` int64[mshr, M]; ``operations`` int64[stage, F]; ``valid``, ``tags``,
    ``outputs``, ``epochs``, ``order``, ``nodes`` int64[set, way]; ``pointer`` int64[set]; ``rows`` int64[row, R];
    ``written`` int64[R]; ``pipeline`` int64[latency + 1, T]; ``counters`` int64[10]; ``totals`` int64[10], the counters
    if nobody ever cleared them; ``hash_table`` uint64[byte, 256]; ``skew_table`` int64[way, byte, 256].
    """

    params: np.ndarray
    addresses: CsrAddresses
    regs: np.ndarray
    config: np.ndarray
    shadow: np.ndarray
    csr_kind: np.ndarray
    csr_mask: np.ndarray
    csr_reset: np.ndarray
    mshrs: np.ndarray
    next_mshrs: np.ndarray
    operations: np.ndarray
    valid: np.ndarray
    tags: np.ndarray
    outputs: np.ndarray
    epochs: np.ndarray
    order: np.ndarray
    nodes: np.ndarray
    pointer: np.ndarray
    rows: np.ndarray
    written: np.ndarray
    pipeline: np.ndarray
    counters: np.ndarray
    totals: np.ndarray
    hash_table: np.ndarray
    skew_table: np.ndarray

    def counter_values(self) -> dict[str, int]:
        """Return every counter by name."""
        return {name: int(value) for name, value in zip(_NAMES, self.counters, strict=True)}

    def total_values(self) -> dict[str, int]:
        """Return what every counter would be if nobody had cleared it, by name."""
        return {name: int(value) for name, value in zip(_NAMES, self.totals, strict=True)}


def engine_state(params: LookupParams) -> EngineState:
    """Return an engine after reset.

    Parameters
    ----------
    params : LookupParams
        What the engine is built with.
    """
    registers = csr_map(params)
    kind, mask, reset = (np.zeros(_SPACE, np.int64) for _ in range(3))
    for register in registers:
        kind[register.address] = _csr_kind(register.name)
        mask[register.address] = register.write_mask
        reset[register.address] = register.reset
    table = crc_tables(params.crc, params.address_bits)
    byte_count = table.shape[0]
    skew = np.zeros((params.ways, byte_count, 256), np.int64)
    if params.skewed:
        for way, masks in enumerate(skew_matrices(params.address_bits, params.index_bits, params.ways)):
            skew[way] = affine_tables(CrcMatrix(masks, 0), params.address_bits).astype(np.int64)
    shape = params.sets, params.ways
    state = EngineState(
        params=_parameters(params),
        addresses=_addresses(params),
        regs=np.zeros(S_COUNT, np.int64),
        config=np.zeros(C_RADIX0 + params.radices, np.int64),
        shadow=reset & mask,
        csr_kind=kind,
        csr_mask=mask,
        csr_reset=reset,
        mshrs=np.zeros((params.mshrs, M_COUNT), np.int64),
        next_mshrs=np.zeros((params.mshrs, M_COUNT), np.int64),
        operations=np.zeros((5, F_COUNT), np.int64),
        valid=np.zeros(shape, np.int64),
        tags=np.zeros(shape, np.int64),
        outputs=np.zeros(shape, np.int64),
        epochs=np.zeros(shape, np.int64),
        order=np.tile(np.arange(params.ways, dtype=np.int64), (params.sets, 1)),
        nodes=np.zeros(shape, np.int64),
        pointer=np.zeros(params.sets, np.int64),
        rows=np.zeros((params.tcam_rows, R_COUNT), np.int64),
        written=np.zeros(R_COUNT, np.int64),
        pipeline=np.zeros((params.tcam_latency_cycles + 1, T_COUNT), np.int64),
        counters=np.zeros(len(COUNTERS), np.int64),
        totals=np.zeros(len(COUNTERS), np.int64),
        hash_table=table,
        skew_table=skew,
    )
    state.regs[S_LFSR] = params.random_seed
    _take_shadow(state)
    return state


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
        int64[cycle, len(OUTPUTS)], columns as in `LookupOutputs`.
    """
    outputs = np.zeros((len(inputs), len(OUTPUTS)), np.int64)
    _run(state, np.ascontiguousarray(inputs, np.int64), outputs)
    return outputs


def _csr_kind(name: str) -> int:
    if name in {"CTRL", "STATUS", "TCAM_WRITE"}:
        return {"CTRL": K_CTRL, "STATUS": K_STATUS, "TCAM_WRITE": K_TCAM_WRITE}[name]
    if name in {"MODE", "LEVEL", "OWN_LO", "OWN_HI"} or name.startswith("RADIX"):
        return K_CONFIG
    if name == "INVALIDATE_LO":
        return K_INVALIDATE
    return K_COUNTER if name.startswith("COUNT_") else K_WORD


def _parameters(params: LookupParams) -> np.ndarray:
    values = {
        P_A: params.address_bits,
        P_DEPTH: params.pipeline_depth,
        P_SETS: params.sets,
        P_WAYS: params.ways,
        P_POLICY: ("lru", "plru", "fifo", "random").index(params.policy),
        P_SKEWED: int(params.skewed),
        P_EPOCHS: 1 << params.epoch_bits,
        P_MSHRS: params.mshrs,
        P_TCAM: ("flops", "sram", "external").index(params.tcam_kind),
        P_LATENCY: params.tcam_latency_cycles,
        P_OUTPUT_MASK: _signed((1 << params.output_bits) - 1),
        P_COMPARATORS: params.comparators,
        P_CHUNKS: len(params.chunk_bits),
        P_MAX_MEMBERS: params.max_members,
        P_FUNCTIONS: sum(1 << MODES.index(name) for name in params.functions),
        P_ROWS: params.tcam_rows,
        P_RADICES: params.radices,
    }
    return np.array([values[index] for index in range(P_CHUNK0)] + list(params.chunk_bits), np.int64)


def _addresses(params: LookupParams) -> CsrAddresses:
    registers = csr_map(params)

    def address(name: str) -> int:
        return registers[name].address if name in registers else -1

    return CsrAddresses(
        mode=address("MODE"), own=address("OWN_LO"), own_hi=address("OWN_HI"), level=address("LEVEL"),
        invalidate_hi=address("INVALIDATE_HI"), radix=address("RADIX0"), value=address("TCAM_VALUE_LO"),
        value_hi=address("TCAM_VALUE_HI"), mask=address("TCAM_MASK_LO"), mask_hi=address("TCAM_MASK_HI"),
        output=address("TCAM_OUTPUT_LO"), output_hi=address("TCAM_OUTPUT_HI"),
        counters=address(f"COUNT_{COUNTERS[0][0].upper()}"), ctrl=address("CTRL"),
    )  # fmt: skip


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


@njit(cache=True)
def _run(state, inputs, outputs):  # type: ignore[no-untyped-def]
    for index in range(inputs.shape[0]):
        cycle(state, inputs[index], outputs[index])


@_inner
def _hash(state, word):  # type: ignore[no-untyped-def]
    table = state.hash_table
    result = np.uint64(0)
    for byte in range(table.shape[0]):
        result ^= table[byte, word >> 8 * byte & 255]
    return result


@_inner
def _row(state, payload, way):  # type: ignore[no-untyped-def]
    p = state.params
    if p[P_SKEWED]:
        row = 0
        for byte in range(state.skew_table.shape[1]):
            row ^= state.skew_table[way, byte, payload >> 8 * byte & 255]
        return row
    return np.int64(_hash(state, payload) & np.uint64(p[P_SETS] - 1))


@_inner
def _member(state, dst):  # type: ignore[no-untyped-def]
    members = state.config[C_MEMBERS]
    if state.config[C_HASH]:
        return dst % members
    return np.int64(_hash(state, dst) % np.uint64(members))


@_inner
def _digit(address, bits, index):  # type: ignore[no-untyped-def]
    shift = bits * index
    return address >> shift & (1 << bits) - 1 if shift < 63 else np.int64(0)


@_inner
def _key(state, dst):  # type: ignore[no-untyped-def]
    p, c = state.params, state.config
    mode, bits, a = c[C_MODE], c[C_CHUNK], p[P_A]
    if mode == 0:
        return dst
    used = min(p[P_COMPARATORS], a // bits)
    kind, value = np.int64(0), np.int64(0)
    if mode <= 2:
        if 1 <= c[C_DIGITS] <= used:
            value = _digit(dst, bits, c[C_DIGITS])
        for i in range(min(c[C_DIGITS], used)):
            d, own, half = _digit(dst, bits, i), _digit(c[C_OWN], bits, i), c[C_RADIX0 + i] // 2
            if d == own:
                continue
            if mode == 1:
                plus = d > own
            elif own > half:
                plus = d > own or d < own - half
            else:
                plus = own < d <= own + half
            kind, value = (1 if plus else 2), i
            break
    elif mode == 3:
        kind, value = 2, (_digit(dst, bits, c[C_LEVEL]) if c[C_LEVEL] < used else np.int64(0))
        for i in range(c[C_LEVEL], min(c[C_DIGITS], used - 1)):
            if _digit(dst, bits, i + 1) != _digit(c[C_OWN], bits, i):
                kind = 1
                if c[C_UP]:
                    value = _digit(dst, bits, i)
    elif dst >> 2 * bits != c[C_OWN] >> 2 * bits:
        kind, value = 2, dst >> 2 * bits
    elif _digit(dst, bits, 1) != _digit(c[C_OWN], bits, 1):
        kind, value = 1, _digit(dst, bits, 1)
    else:
        value = _digit(dst, bits, 0)
    value &= (1 << a - 6) - 1
    return mode << a | _member(state, dst) << a - 4 | kind << a - 6 | value


@_inner
def _match(state, lookup):  # type: ignore[no-untyped-def]
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


@_inner
def _touch(state, row, way):  # type: ignore[no-untyped-def]
    p = state.params
    if p[P_POLICY] == _LRU:
        order = state.order[row]
        position = 0
        while order[position] != way:
            position += 1
        for index in range(position, p[P_WAYS] - 1):
            order[index] = order[index + 1]
        order[p[P_WAYS] - 1] = way
    elif p[P_POLICY] == _PLRU:
        node, span = 1, p[P_WAYS] >> 1
        while span:
            side = 1 if way & span else 0
            state.nodes[row, node] = 1 - side
            node = 2 * node + side
            span >>= 1


@_inner
def _victim(state, row):  # type: ignore[no-untyped-def]
    p = state.params
    if p[P_POLICY] == _LRU:
        return state.order[row, 0]
    if p[P_POLICY] == _PLRU:
        node = 1
        while node < p[P_WAYS]:
            node = 2 * node + state.nodes[row, node]
        return node - p[P_WAYS]
    if p[P_POLICY] == _FIFO:
        return state.pointer[row]
    return state.regs[S_LFSR] * p[P_WAYS] >> 16


@_inner
def _live(state, row, way):  # type: ignore[no-untyped-def]
    return state.valid[row, way] == 1 and state.epochs[row, way] == state.regs[S_EPOCH]


@_inner
def _find(state, key):  # type: ignore[no-untyped-def]
    payload = key & (1 << state.params[P_A]) - 1
    for way in range(state.params[P_WAYS]):
        row = _row(state, payload, way)
        if _live(state, row, way) and state.tags[row, way] == key:
            return way
    return -1


@_inner
def _usable(state, operation):  # type: ignore[no-untyped-def]
    return state.config[C_ENABLE] == 1 and state.regs[S_FLUSH_WAIT] == 0 and operation[F_FRESH] == 1


@_inner
def _respond(s, tag, output, match, hit):  # type: ignore[no-untyped-def]
    s[S_OUT_VALID] = 1
    s[S_OUT_TAG] = tag
    s[S_OUT_OUTPUT] = output
    s[S_OUT_MATCH] = match
    s[S_OUT_HIT] = hit


@_inner
def _first_in(mshrs, state_number, pointer):  # type: ignore[no-untyped-def]
    count = mshrs.shape[0]
    for offset in range(count):
        index = (pointer + offset) % count
        if mshrs[index, M_STATE] == state_number:
            return index
    return -1


@_inner
def _complete_lookup(state, operation, answered, match, output, counts):  # type: ignore[no-untyped-def]
    s, mshrs, key = state.regs, state.mshrs, operation[F_KEY]
    counts[N_LOOKUPS] += 1
    usable = _usable(state, operation)
    if usable:
        way = _find(state, key)
        if way >= 0:
            row = _row(state, key & (1 << state.params[P_A]) - 1, way)
            _respond(s, operation[F_TAG], state.outputs[row, way], 1, 1)
            counts[N_HITS] += 1
            _touch(state, row, way)
            return
    entry = state.next_mshrs[_first_in(mshrs, _FREE, 0)]
    entry[M_STATE] = _WAIT_ISSUE
    entry[M_STALE] = 0
    entry[M_FRESH] = operation[F_FRESH]
    entry[M_KEY] = key
    entry[M_DST] = operation[F_DST]
    entry[M_TAG] = operation[F_TAG]
    if usable:
        for index in range(mshrs.shape[0]):
            other = mshrs[index]
            if other[M_STATE] in (_FREE, _WAIT_PRIMARY) or not other[M_FRESH] or other[M_KEY] != key:
                continue
            counts[N_MERGES] += 1
            if other[M_STATE] in (_DONE, _INJECTED):
                entry[M_STATE] = _DONE
                entry[M_MATCH] = other[M_MATCH]
                entry[M_OUTPUT] = other[M_OUTPUT]
            elif answered == index and not other[M_STALE]:
                entry[M_STATE] = _DONE
                entry[M_MATCH] = match
                entry[M_OUTPUT] = output
            else:
                entry[M_STATE] = _WAIT_PRIMARY
                entry[M_PRIMARY] = index
            return
    counts[N_MISSES] += 1


@_inner
def _complete_fill(state, operation, counts):  # type: ignore[no-untyped-def]
    p, s, key = state.params, state.regs, operation[F_KEY]
    mshr = state.mshrs[operation[F_MSHR]]
    if p[P_DEPTH] > 1 and mshr[M_STATE] != _INJECTED:
        return
    _respond(s, operation[F_TAG], mshr[M_OUTPUT], mshr[M_MATCH], 0)
    state.next_mshrs[operation[F_MSHR], M_STATE] = _FREE
    if not mshr[M_MATCH]:
        counts[N_DROPS] += 1
        return
    if not _usable(state, operation):
        return
    payload = key & (1 << p[P_A]) - 1
    way = _find(state, key)
    if way >= 0:
        _touch(state, _row(state, payload, way), way)
        return
    for index in range(p[P_WAYS]):
        if not _live(state, _row(state, payload, index), index):
            way = index
            break
    evicts = way < 0
    if evicts:
        way = _victim(state, _row(state, payload, 0))
    row = _row(state, payload, way)
    state.valid[row, way] = 1
    state.tags[row, way] = key
    state.outputs[row, way] = mshr[M_OUTPUT]
    state.epochs[row, way] = s[S_EPOCH]
    if p[P_POLICY] == _FIFO and state.pointer[row] == way:
        state.pointer[row] = (way + 1) % p[P_WAYS]
    elif p[P_POLICY] == _RANDOM and evicts:
        lfsr = s[S_LFSR]
        s[S_LFSR] = (lfsr << 1 & 0xFFFF) | ((lfsr >> 15 ^ lfsr >> 14 ^ lfsr >> 12 ^ lfsr >> 3) & 1)
    _touch(state, row, way)
    counts[N_FILLS] += 1
    if evicts:
        counts[N_EVICTIONS] += 1


@_inner
def _choose(state, i, out_free, chosen):  # type: ignore[no-untyped-def]
    """Fill `chosen` with the operation that B takes; return (req_ready, taken from stage A)."""
    p, s, ops = state.params, state.regs, state.operations
    depth = p[P_DEPTH]
    c_kind = ops[OP_C, F_KIND]
    c_free = c_kind in (_NONE, _INVALIDATE, _SCRUB) or out_free
    free = 0
    for index in range(state.mshrs.shape[0]):
        free += state.mshrs[index, M_STATE] == _FREE
    room = free > (c_kind == _LOOKUP)
    may_scrub = s[S_SCRUB_ACTIVE] and c_kind != _SCRUB
    fill = _first_in(state.mshrs, _DONE, s[S_FILL_POINTER])
    last = OP_A0 if depth == 3 else OP_A1
    chosen[:] = 0
    ready, from_a = False, False
    if c_free:
        if s[S_FLUSH_WAIT] and may_scrub:
            pass  # below
        elif fill >= 0:
            mshr = state.mshrs[fill]
            chosen[F_KIND] = _FILL
            chosen[F_FRESH] = mshr[M_FRESH]
            chosen[F_KEY] = mshr[M_KEY]
            chosen[F_TAG] = mshr[M_TAG]
            chosen[F_MSHR] = fill
        elif depth >= 3:
            if ops[last, F_KIND] == _INVALIDATE or (ops[last, F_KIND] == _LOOKUP and room):
                chosen[:] = ops[last]
                from_a = True
        elif s[S_INV_PENDING]:
            _begin(state, chosen, _INVALIDATE, s[S_INV_DST], 0)
        else:
            ready = room and (out_free or depth == 2)
            if i[I_REQ_VALID] and room:
                _begin(state, chosen, _LOOKUP, i[I_REQ_DST], i[I_REQ_TAG])
        if chosen[F_KIND] == _NONE and may_scrub:
            chosen[F_KIND] = _SCRUB
            chosen[F_FRESH] = 1
            chosen[F_ROW] = s[S_SCRUB_ROW]
    if depth >= 3:
        ready = ops[last, F_KIND] == _NONE or from_a
        if depth == 4:
            ready = ready or ops[OP_A0, F_KIND] == _NONE
    return ready, from_a


@_inner
def _begin(state, operation, kind, dst, tag):  # type: ignore[no-untyped-def]
    operation[:] = 0
    operation[F_KIND] = kind
    operation[F_FRESH] = 1
    operation[F_KEY] = _key(state, dst)
    operation[F_DST] = dst
    operation[F_TAG] = tag


@njit(cache=True)
def _take_shadow(state):  # type: ignore[no-untyped-def]
    """Take the active configuration from the shadow registers."""
    p, c, at, shadow = state.params, state.config, state.addresses, state.shadow
    mode, level = shadow[at.mode], shadow[at.level]
    c[C_ENABLE] = shadow[at.ctrl]
    c[C_MODE] = mode & 7
    if not p[P_FUNCTIONS] >> c[C_MODE] & 1:
        c[C_MODE] = 0
    select = mode >> 4 & 7
    c[C_CHUNK] = p[P_CHUNK0 + (select if select < p[P_CHUNKS] else 0)]
    c[C_UP] = mode >> 8 & 1
    c[C_HASH] = mode >> 12 & 1
    members = mode >> 16 & 31
    c[C_MEMBERS] = members if 1 <= members <= p[P_MAX_MEMBERS] else 1
    c[C_OWN] = _wide(state, at.own, at.own_hi)
    c[C_LEVEL] = level & 31
    c[C_DIGITS] = level >> 8 & 31
    for index in range(p[P_RADICES]):
        c[C_RADIX0 + index] = shadow[at.radix + index]


@_inner
def _wide(state, low, high):  # type: ignore[no-untyped-def]
    value = state.shadow[low]
    if high >= 0:
        value |= state.shadow[high] << 32
    return value


@_inner
def _read(state, address):  # type: ignore[no-untyped-def]
    s, kind = state.regs, state.csr_kind[address]
    if kind == K_COUNTER:
        return state.counters[address - state.addresses.counters]
    if kind == K_STATUS:
        word = s[S_PENDING] | s[S_SCRUB_ACTIVE] << 1 | s[S_FLUSH_WAIT] << 2 | (s[S_TCAM_BUSY] > 0) << 3
        return word | s[S_INV_BUSY] << 4 | s[S_OVERRUN] << 5 | s[S_HOLD] << 6 | s[S_EPOCH] << 8
    mask = state.csr_mask[address]
    return (state.csr_reset[address] & ~mask) | (state.shadow[address] & mask)


@_inner
def _topology_change(state):  # type: ignore[no-untyped-def]
    s = state.regs
    s[S_FLUSH_REQUEST] = 1
    s[S_HOLD] = 1
    s[S_PENDING] = 1
    state.shadow[state.addresses.ctrl] = 0
    state.shadow[state.addresses.mode] &= ~np.int64(7)


@_inner
def _write(state, address, data):  # type: ignore[no-untyped-def]
    s, at, kind = state.regs, state.addresses, state.csr_kind[address]
    if kind == K_NOTHING:
        return
    if kind == K_CTRL:
        if data & 8:
            state.counters[:] = 0
        if data & 1:
            s[S_HOLD] = 0
            s[S_PENDING] = 0
            if not state.shadow[at.ctrl]:
                s[S_FLUSH_REQUEST] = 1
        state.shadow[at.ctrl] = data & 1
        if data & 2:
            s[S_FLUSH_REQUEST] = 1
        if data & 4:
            _topology_change(state)
        return
    state.shadow[address] = data & state.csr_mask[address]
    if kind == K_CONFIG:
        s[S_FLUSH_REQUEST] = 1
    elif kind == K_INVALIDATE and not s[S_INV_BUSY]:
        s[S_INV_BUSY] = 1
        s[S_INV_PENDING] = 1
        s[S_INV_DST] = data & (1 << min(state.params[P_A], _WORD_BITS)) - 1
        if at.invalidate_hi >= 0:
            s[S_INV_DST] |= state.shadow[at.invalidate_hi] << 32
    elif kind == K_TCAM_WRITE:
        row = data & 0xFFF
        if row >= state.params[P_ROWS]:
            return
        if s[S_TCAM_BUSY]:
            s[S_OVERRUN] = 1
            return
        s[S_WRITE_PENDING] = 1
        s[S_WRITE_ROW] = row
        w = state.written
        w[R_VALID] = data >> 31 & 1
        w[R_VALUE] = _wide(state, at.value, at.value_hi)
        w[R_MASK] = _wide(state, at.mask, at.mask_hi)
        w[R_OUTPUT] = _wide(state, at.output, at.output_hi)
        w[R_LAG] = data >> 16 & 1


@_inner
def _tcam_edge(state):  # type: ignore[no-untyped-def]
    s = state.regs
    s[S_ROW_EFFECTIVE] = 0
    if not s[S_WRITE_PENDING]:
        return
    if state.params[P_TCAM] == _SRAM:
        if not s[S_TCAM_BUSY]:
            s[S_TCAM_BUSY] = _SRAM_WRITE_CYCLES
            return
        s[S_TCAM_BUSY] -= 1
        if s[S_TCAM_BUSY]:
            return
    state.rows[s[S_WRITE_ROW]] = state.written
    s[S_WRITE_PENDING] = 0
    s[S_ROW_EFFECTIVE] = 1


@_inner
def _tcam_answer(state):  # type: ignore[no-untyped-def]
    """Compare the lookup of the cycle before; return the number of the MSHR that is answered, or -1."""
    p, pipeline = state.params, state.pipeline
    now, size = state.regs[S_CYCLE], state.pipeline.shape[0]
    if p[P_TCAM] == _FLOPS and p[P_LATENCY] > 1:
        before = pipeline[(now - 1 + p[P_LATENCY]) % size]
        if before[T_VALID]:
            _match(state, before)
    lookup = pipeline[now % size]
    if not lookup[T_VALID]:
        return -1
    lookup[T_VALID] = 0
    return lookup[T_ID]


@_inner
def cycle(state, i, o):  # type: ignore[no-untyped-def]
    """Compute one cycle: outputs `o` (int64[10]) from inputs `i` (int64[14]), and the registers at its end."""
    p, s, ops = state.params, state.regs, state.operations
    mshrs, after = state.mshrs, state.next_mshrs
    depth, count = p[P_DEPTH], mshrs.shape[0]
    external = p[P_TCAM] == _EXTERNAL
    counts = np.zeros(10, np.int64)
    read_data = _read(state, i[I_CSR_ADDR])

    answered, match, output = -1, np.int64(0), np.int64(0)
    if external:
        if i[I_TCAM_VALID]:
            answered, match = i[I_TCAM_ID], i[I_TCAM_MATCH]
            output = i[I_TCAM_OUTPUT] if match else np.int64(0)
    else:
        answered = _tcam_answer(state)
        if answered >= 0:
            arrived = state.pipeline[s[S_CYCLE] % state.pipeline.shape[0]]
            match, output = arrived[T_MATCH], arrived[T_OUTPUT]
    tcam_ready = i[I_TCAM_READY] == 1 if external else s[S_TCAM_BUSY] == 0

    request = s[S_FLUSH_REQUEST] == 1 or (s[S_ROW_EFFECTIVE] == 1 and state.shadow[state.addresses.ctrl] == 1)
    most = p[P_EPOCHS] - 1
    if s[S_FLUSH_WAIT]:
        go, deferred = s[S_DEBT] == 0, False
    else:
        go, deferred = request and s[S_DEBT] < most, request and s[S_DEBT] == most
    offer = -1 if s[S_HOLD] else _first_in(mshrs, _WAIT_ISSUE, s[S_ISSUE_POINTER])
    out_free = s[S_OUT_VALID] == 0 or i[I_RESP_READY] == 1
    chosen = ops[OP_CHOSEN]
    ready, from_a = _choose(state, i, out_free, chosen)
    chosen_kind = chosen[F_KIND]
    a_free = ready
    if depth >= 3 and s[S_INV_PENDING]:
        ready = False

    o[:] = 0
    o[O_REQ_READY] = ready
    o[O_CSR_RDATA] = s[S_RDATA]
    if s[S_OUT_VALID]:
        o[O_RESP_VALID] = 1
        o[O_RESP_TAG] = s[S_OUT_TAG]
        o[O_RESP_OUTPUT] = s[S_OUT_OUTPUT]
        o[O_RESP_MATCH] = s[S_OUT_MATCH]
        o[O_RESP_HIT] = s[S_OUT_HIT]
    if external and offer >= 0:
        o[O_TCAM_VALID] = 1
        o[O_TCAM_ID] = offer
        o[O_TCAM_DST] = mshrs[offer, M_DST]

    # C
    after[:] = mshrs
    if out_free:
        s[S_OUT_VALID] = 0
    operation = chosen if depth == 1 else ops[OP_C]
    done_kind = operation[F_KIND]
    if done_kind in (_LOOKUP, _FILL) and not out_free:
        done_kind = _NONE
    scrub_done = False
    if done_kind == _LOOKUP:
        _complete_lookup(state, operation, answered, match, output, counts)
    elif done_kind == _FILL:
        _complete_fill(state, operation, counts)
    elif done_kind == _INVALIDATE:
        counts[N_INVALIDATIONS] += 1
        way = _find(state, operation[F_KEY])
        if way >= 0:
            state.valid[_row(state, operation[F_KEY] & (1 << p[P_A]) - 1, way), way] = 0
    elif done_kind == _SCRUB and operation[F_FRESH]:
        scrub_done = True
        for way in range(p[P_WAYS]):
            if not _live(state, operation[F_ROW], way):
                state.valid[operation[F_ROW], way] = 0

    # MSHRs
    if offer >= 0:
        s[S_ISSUE_POINTER] = offer
        if tcam_ready:
            s[S_ISSUE_POINTER] = (offer + 1) % count
            after[offer, M_STATE] = _ISSUED
            after[offer, M_STALE] = 0
            if not external:
                lookup = state.pipeline[(s[S_CYCLE] + p[P_LATENCY]) % state.pipeline.shape[0]]
                lookup[T_VALID] = 1
                lookup[T_ID] = offer
                lookup[T_DST] = mshrs[offer, M_DST]
                lookup[T_MEMBER] = _member(state, mshrs[offer, M_DST])
                if p[P_TCAM] == _SRAM or p[P_LATENCY] == 1:
                    _match(state, lookup)
    if depth > 1 and chosen_kind == _FILL:
        after[chosen[F_MSHR], M_STATE] = _INJECTED
    answer_void = answered >= 0 and mshrs[answered, M_STALE] == 1
    if answer_void:
        counts[N_RETRIES] += 1
    if done_kind == _INVALIDATE:
        for index in range(count):
            mshr = mshrs[index]
            if mshr[M_FRESH] and mshr[M_KEY] == operation[F_KEY]:
                if mshr[M_STATE] == _ISSUED:
                    after[index, M_STALE] = 1
                    answer_void = answer_void or index == answered
                elif mshr[M_STATE] in (_DONE, _INJECTED):
                    after[index, M_STATE] = _WAIT_ISSUE
    if answered >= 0:
        if answer_void:
            after[answered, M_STATE] = _WAIT_ISSUE
            after[answered, M_STALE] = 0
        else:
            for index in range(count):
                waits = after[index, M_STATE] == _WAIT_PRIMARY and after[index, M_PRIMARY] == answered
                if index == answered or waits:
                    after[index, M_STATE] = _DONE
                    after[index, M_MATCH] = match
                    after[index, M_OUTPUT] = output

    # movement
    if (done_kind if depth == 1 else chosen_kind) == _FILL:
        s[S_FILL_POINTER] = (chosen[F_MSHR] + 1) % count
    if depth < 3:
        if chosen_kind == _INVALIDATE:
            s[S_INV_PENDING] = 0
    else:
        enter = ops[OP_ENTER]
        enter[:] = 0
        if s[S_INV_PENDING]:
            if a_free:
                _begin(state, enter, _INVALIDATE, s[S_INV_DST], 0)
                s[S_INV_PENDING] = 0
        elif ready and i[I_REQ_VALID]:
            _begin(state, enter, _LOOKUP, i[I_REQ_DST], i[I_REQ_TAG])
        last = OP_A0 if depth == 3 else OP_A1
        if from_a:
            ops[last, F_KIND] = _NONE
        if depth == 4 and ops[OP_A1, F_KIND] == _NONE:
            ops[OP_A1] = ops[OP_A0]
            ops[OP_A0, F_KIND] = _NONE
        if enter[F_KIND]:
            ops[OP_A0] = enter
    if depth > 1:
        if done_kind:
            ops[OP_C, F_KIND] = _NONE
        if chosen_kind:
            ops[OP_C] = chosen
    mshrs[:] = after

    # flush and scrubber
    if scrub_done:
        s[S_SCRUB_ROW] += 1
        if s[S_SCRUB_ROW] == p[P_SETS]:
            s[S_SCRUB_ROW] = 0
            if not (go or deferred):
                s[S_SCRUB_ACTIVE] = 0
                s[S_DEBT] = 0
    if go:
        counts[N_FLUSHES] += 1
        s[S_EPOCH] = (s[S_EPOCH] + 1) % p[P_EPOCHS]
        s[S_DEBT] += 1
        s[S_SCRUB_ACTIVE] = 1
        s[S_SCRUB_ROW] = 0
        s[S_FLUSH_WAIT] = 0
    elif deferred:
        s[S_FLUSH_WAIT] = 1
        s[S_SCRUB_ROW] = 0
    if request or go:
        for stage in range(OP_C + 1):
            ops[stage, F_FRESH] = 0
        for index in range(count):
            mshrs[index, M_FRESH] = 0
            if mshrs[index, M_STATE] == _ISSUED:
                mshrs[index, M_STALE] = 1
            elif mshrs[index, M_STATE] != _FREE:
                mshrs[index, M_STATE] = _WAIT_ISSUE

    # CSR bus
    if i[I_CSR_RE]:
        s[S_RDATA] = read_data
        if state.csr_kind[i[I_CSR_ADDR]] == K_STATUS:
            s[S_OVERRUN] = 0
    for index in range(10):
        state.counters[index] = (state.counters[index] + counts[index]) & 0xFFFFFFFF
        state.totals[index] += counts[index]
    _take_shadow(state)
    s[S_FLUSH_REQUEST] = 0
    if i[I_CSR_WE]:
        _write(state, i[I_CSR_ADDR], i[I_CSR_WDATA])
    if i[I_LINK_CHANGE]:
        _topology_change(state)
    if done_kind == _INVALIDATE:
        s[S_INV_BUSY] = 0  # after the write, which this cycle still ignores
    _tcam_edge(state)
    s[S_CYCLE] += 1
