"""The registers on the CSR bus."""

import numpy as np

from hopforge.model.kernel.compile import inner
from hopforge.model.lookup.fast import layout as at
from hopforge.model.lookup.fast.tcam import tcam_edge


@inner
def take_shadow(state):  # type: ignore[no-untyped-def]
    """Take the active configuration from the shadow registers; Python calls it, too (``py_func``)."""
    p, c, place, shadow = state.params, state.config, state.addresses, state.shadow
    mode, level = shadow[place.mode], shadow[place.level]
    c[at.C_ENABLE] = shadow[place.ctrl]
    c[at.C_MODE] = mode & 7
    if not p[at.P_FUNCTIONS] >> c[at.C_MODE] & 1:
        c[at.C_MODE] = 0
    select = mode >> 4 & 7
    c[at.C_CHUNK] = p[at.P_CHUNK0 + (select if select < p[at.P_CHUNKS] else 0)]
    c[at.C_UP] = mode >> 8 & 1
    c[at.C_HASH] = mode >> 12 & 1
    members = mode >> 16 & 31
    c[at.C_MEMBERS] = members if 1 <= members <= p[at.P_MAX_MEMBERS] else 1
    c[at.C_OWN] = shadow[place.own]
    if place.own_hi >= 0:
        c[at.C_OWN] |= shadow[place.own_hi] << 32
    c[at.C_LEVEL] = level & 31
    c[at.C_DIGITS] = level >> 8 & 31
    for index in range(p[at.P_RADICES]):
        c[at.C_RADIX0 + index] = shadow[place.radix + index]


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
    if kind == at.K_COUNTER:
        if address >= state.addresses.second_counters >= 0:
            return state.counters[at.N_SECOND_HITS + address - state.addresses.second_counters]
        return state.counters[address - state.addresses.counters]
    if kind == at.K_STATUS:
        b = state.second_regs
        scrubs, waits = s[at.S_SCRUB_ACTIVE] | b[at.S_SCRUB_ACTIVE], s[at.S_FLUSH_WAIT] | b[at.S_FLUSH_WAIT]
        word = s[at.S_PENDING] | scrubs << 1 | waits << 2 | (s[at.S_TCAM_BUSY] > 0) << 3
        return word | s[at.S_INV_BUSY] << 4 | s[at.S_OVERRUN] << 5 | s[at.S_HOLD] << 6 | s[at.S_EPOCH] << 8
    mask = state.csr_mask[address]
    return (state.csr_reset[address] & ~mask) | (state.shadow[address] & mask)


@inner
def topology_change(state):  # type: ignore[no-untyped-def]
    """Stop node reduction and flush; misses wait until software enables the engine again."""
    s = state.regs
    s[at.S_CONFIGURED] = 1
    s[at.S_HOLD] = 1
    s[at.S_PENDING] = 1
    state.shadow[state.addresses.ctrl] = 0
    state.shadow[state.addresses.mode] &= ~np.int64(7)


@inner
def write_word(state, address, data):  # type: ignore[no-untyped-def]
    """Write a word from the bus."""
    s, place, kind = state.regs, state.addresses, state.csr_kind[address]
    if kind == at.K_NOTHING:
        return
    if kind == at.K_CTRL:
        if data & 8:
            if state.params[at.P_DEPTH] > at.SHALLOW_DEPTHS:
                s[at.S_LATE_CLEAR] = 1
            else:
                state.counters[:] = 0
        if data & 1:
            s[at.S_HOLD] = 0
            s[at.S_PENDING] = 0
            if not state.shadow[place.ctrl]:
                s[at.S_FLUSH_REQUEST] = 1
        state.shadow[place.ctrl] = data & 1
        if data & 2:
            s[at.S_FLUSH_REQUEST] = 1
        if data & 4:
            topology_change(state)
        return
    state.shadow[address] = data & state.csr_mask[address]
    if kind == at.K_CONFIG:
        s[at.S_CONFIGURED] = 1
    elif kind == at.K_INVALIDATE and not s[at.S_INV_BUSY]:
        s[at.S_INV_BUSY] = 1
        s[at.S_INV_PENDING] = 1
        s[at.S_INV_DST] = data & (1 << min(state.params[at.P_A], at.WORD_BITS)) - 1
        if place.invalidate_hi >= 0:
            s[at.S_INV_DST] |= state.shadow[place.invalidate_hi] << 32
    elif kind == at.K_TCAM_WRITE:
        row = data & 0xFFF
        if row >= state.params[at.P_ROWS]:
            return
        if s[at.S_TCAM_BUSY]:
            s[at.S_OVERRUN] = 1
            return
        s[at.S_WRITE_PENDING] = 1
        s[at.S_WRITE_ROW] = row
        w = state.written
        w[at.R_VALID] = data >> 31 & 1
        w[at.R_VALUE] = _wide(state, place.value, place.value_hi)
        w[at.R_MASK] = _wide(state, place.mask, place.mask_hi)
        w[at.R_OUTPUT] = _wide(state, place.output, place.output_hi)
        w[at.R_LAG] = data >> 16 & 1


@inner
def take_bus(state, i):  # type: ignore[no-untyped-def]
    """Take the write on the CSR bus, and `link_change`; what they ask for is in S_CONFIGURED and S_FLUSH_REQUEST."""
    s = state.regs
    s[at.S_CONFIGURED] = 0
    s[at.S_FLUSH_REQUEST] = 0
    if i[at.I_CSR_WE]:
        write_word(state, i[at.I_CSR_ADDR], i[at.I_CSR_WDATA])
    if i[at.I_LINK_CHANGE]:
        topology_change(state)


@inner
def note_read(state, address):  # type: ignore[no-untyped-def]
    """End a read: STATUS forgets that a row was lost."""
    if state.csr_kind[address] == at.K_STATUS:
        state.regs[at.S_OVERRUN] = 0


@inner
def count_events(state, counts):  # type: ignore[no-untyped-def]
    """Count what happened in a cycle."""
    for index in range(counts.shape[0]):
        state.counters[index] = (state.counters[index] + counts[index]) & 0xFFFFFFFF
        state.totals[index] += counts[index]


@inner
def registers(state, i, read_data, counts, invalidated):  # type: ignore[no-untyped-def]
    """Take the CSR bus and `link_change` of this cycle, and count what happened in it."""
    s = state.regs
    if i[at.I_CSR_RE]:
        s[at.S_RDATA] = read_data
        note_read(state, i[at.I_CSR_ADDR])
    count_events(state, counts)
    take_shadow(state)
    take_bus(state, i)
    s[at.S_FLUSH_REQUEST] |= s[at.S_CONFIGURED]
    if state.second_regs[at.S_INV_DONE] if state.second_params[at.P_SETS] else invalidated:
        s[at.S_INV_BUSY] = 0  # after the write, which this cycle still ignores
    tcam_edge(state)
