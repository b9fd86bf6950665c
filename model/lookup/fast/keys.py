"""Keys of destinations: CRC hash, rows of the sets, lag members, node reduction."""

import numpy as np

from hopforge.model.expression.program import run_steps
from hopforge.model.kernel.compile import inner
from hopforge.model.lookup.fast import layout as at


@inner
def crc_hash(lines, word):  # type: ignore[no-untyped-def]
    """Return the CRC of a word, uint64."""
    table = lines.hash_table
    result = np.uint64(0)
    for byte in range(table.shape[0]):
        result ^= table[byte, word >> 8 * byte & 255]
    return result


@inner
def row_of(lines, payload, way):  # type: ignore[no-untyped-def]
    """Return the set in which a way keeps a key (its part without function and member)."""
    p = lines.params
    if p[at.P_SKEWED]:
        row = 0
        for byte in range(lines.skew_table.shape[1]):
            row ^= lines.skew_table[way, byte, payload >> 8 * byte & 255]
        return row
    return np.int64(crc_hash(lines, payload) & np.uint64(p[at.P_SETS] - 1))


@inner
def member_of(state, dst):  # type: ignore[no-untyped-def]
    """Return which member of a link group a destination takes."""
    members = state.config[at.C_MEMBERS]
    if state.config[at.C_HASH]:
        return dst % members
    return np.int64(crc_hash(state.lines, dst) % np.uint64(members))


@inner
def _digit(address, bits, index):  # type: ignore[no-untyped-def]
    shift = bits * index
    return address >> shift & (1 << bits) - 1 if shift < 63 else np.int64(0)


@inner
def key_of(state, dst):  # type: ignore[no-untyped-def]
    """Return the key of a destination: itself, or what the node-reduction function makes of it."""
    p, c = state.params, state.config
    mode, bits, a = c[at.C_MODE], c[at.C_CHUNK], p[at.P_A]
    if mode == 0:
        return dst
    if mode == 5:
        steps = len(state.program_steps)
        run_steps(
            state.program_steps, state.program_roms, 0, steps, state.program_values, c[at.C_OWN], c[at.C_LEVEL], dst
        )
        return mode << a | member_of(state, dst) << a - 4 | state.program_values[steps - 1]
    used = min(p[at.P_COMPARATORS], a // bits)
    kind, value = np.int64(0), np.int64(0)
    if mode <= 2:
        if 1 <= c[at.C_DIGITS] <= used:
            value = _digit(dst, bits, c[at.C_DIGITS])
        for i in range(min(c[at.C_DIGITS], used)):
            d, own, half = _digit(dst, bits, i), _digit(c[at.C_OWN], bits, i), c[at.C_RADIX0 + i] // 2
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
        kind, value = 2, (_digit(dst, bits, c[at.C_LEVEL]) if c[at.C_LEVEL] < used else np.int64(0))
        for i in range(c[at.C_LEVEL], min(c[at.C_DIGITS], used - 1)):
            if _digit(dst, bits, i + 1) != _digit(c[at.C_OWN], bits, i):
                kind = 1
                if c[at.C_UP]:
                    value = _digit(dst, bits, i)
    elif dst >> 2 * bits != c[at.C_OWN] >> 2 * bits:
        kind, value = 2, dst >> 2 * bits
    elif _digit(dst, bits, 1) != _digit(c[at.C_OWN], bits, 1):
        kind, value = 1, _digit(dst, bits, 1)
    else:
        value = _digit(dst, bits, 0)
    value &= (1 << a - 6) - 1
    return mode << a | member_of(state, dst) << a - 4 | kind << a - 6 | value
