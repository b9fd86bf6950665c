"""The sets of the routing cache: which ways hold an entry, which one is replaced."""

from hopforge.model.lookup.fast.inner import inner
from hopforge.model.lookup.fast.keys import row_of
from hopforge.model.lookup.fast.layout import P_A, P_POLICY, P_WAYS, S_CYCLE, S_EPOCH, S_LFSR
from hopforge.model.lookup.replacement import RANDOM, choose_victim, next_random, note_fill, note_use


@inner
def touch(state, row, way):  # type: ignore[no-untyped-def]
    """Note that a line was used."""
    p = state.params
    note_use(p[P_POLICY], p[P_WAYS], state.order, row * p[P_WAYS], 1, way, state.regs[S_CYCLE])


@inner
def victim(state, row):  # type: ignore[no-untyped-def]
    """Return the way that a full set replaces."""
    p, s = state.params, state.regs
    first = row * p[P_WAYS]
    return choose_victim(p[P_POLICY], p[P_WAYS], state.order, first, 1, s[S_CYCLE], -1, s[S_LFSR])


@inner
def filled(state, row, way, evicted):  # type: ignore[no-untyped-def]
    """Note that a line was written."""
    p, s = state.params, state.regs
    if p[P_POLICY] == RANDOM and evicted:
        s[S_LFSR] = next_random(s[S_LFSR])
    note_fill(p[P_POLICY], p[P_WAYS], state.order, row * p[P_WAYS], 1, way, s[S_CYCLE])


@inner
def is_live(state, row, way):  # type: ignore[no-untyped-def]
    """Return whether a way holds an entry of the present epoch."""
    return state.valid[row, way] == 1 and state.epochs[row, way] == state.regs[S_EPOCH]


@inner
def find_way(state, key):  # type: ignore[no-untyped-def]
    """Return the way that holds a key, -1 if none does."""
    payload = key & (1 << state.params[P_A]) - 1
    for way in range(state.params[P_WAYS]):
        row = row_of(state, payload, way)
        if is_live(state, row, way) and state.tags[row, way] == key:
            return way
    return -1
