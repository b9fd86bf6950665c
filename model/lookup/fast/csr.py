"""The registers on the CSR bus."""

import numpy as np

from hopforge.model.kernel.compile import kernel
from hopforge.model.lookup.fast.inner import inner
from hopforge.model.lookup.fast.layout import (
    C_CHUNK,
    C_DIGITS,
    C_ENABLE,
    C_HASH,
    C_LEVEL,
    C_MEMBERS,
    C_MODE,
    C_OWN,
    C_RADIX0,
    C_UP,
    K_CONFIG,
    K_COUNTER,
    K_CTRL,
    K_INVALIDATE,
    K_NOTHING,
    K_STATUS,
    K_TCAM_WRITE,
    P_A,
    P_CHUNK0,
    P_CHUNKS,
    P_FUNCTIONS,
    P_MAX_MEMBERS,
    P_RADICES,
    P_ROWS,
    R_LAG,
    R_MASK,
    R_OUTPUT,
    R_VALID,
    R_VALUE,
    S_EPOCH,
    S_FLUSH_REQUEST,
    S_FLUSH_WAIT,
    S_HOLD,
    S_INV_BUSY,
    S_INV_DST,
    S_INV_PENDING,
    S_OVERRUN,
    S_PENDING,
    S_SCRUB_ACTIVE,
    S_TCAM_BUSY,
    S_WRITE_PENDING,
    S_WRITE_ROW,
    WORD_BITS,
)


@kernel
def take_shadow(state):  # type: ignore[no-untyped-def]
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


@inner
def _wide(state, low, high):  # type: ignore[no-untyped-def]
    value = state.shadow[low]
    if high >= 0:
        value |= state.shadow[high] << 32
    return value


@inner
def read_word(state, address):  # type: ignore[no-untyped-def]
    """Return what the bus reads at an address."""
    s, kind = state.regs, state.csr_kind[address]
    if kind == K_COUNTER:
        return state.counters[address - state.addresses.counters]
    if kind == K_STATUS:
        word = s[S_PENDING] | s[S_SCRUB_ACTIVE] << 1 | s[S_FLUSH_WAIT] << 2 | (s[S_TCAM_BUSY] > 0) << 3
        return word | s[S_INV_BUSY] << 4 | s[S_OVERRUN] << 5 | s[S_HOLD] << 6 | s[S_EPOCH] << 8
    mask = state.csr_mask[address]
    return (state.csr_reset[address] & ~mask) | (state.shadow[address] & mask)


@inner
def topology_change(state):  # type: ignore[no-untyped-def]
    """Stop node reduction and flush; misses wait until software enables the engine again."""
    s = state.regs
    s[S_FLUSH_REQUEST] = 1
    s[S_HOLD] = 1
    s[S_PENDING] = 1
    state.shadow[state.addresses.ctrl] = 0
    state.shadow[state.addresses.mode] &= ~np.int64(7)


@inner
def write_word(state, address, data):  # type: ignore[no-untyped-def]
    """Write a word from the bus."""
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
            topology_change(state)
        return
    state.shadow[address] = data & state.csr_mask[address]
    if kind == K_CONFIG:
        s[S_FLUSH_REQUEST] = 1
    elif kind == K_INVALIDATE and not s[S_INV_BUSY]:
        s[S_INV_BUSY] = 1
        s[S_INV_PENDING] = 1
        s[S_INV_DST] = data & (1 << min(state.params[P_A], WORD_BITS)) - 1
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
