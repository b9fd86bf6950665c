"""The sets of the routing cache: which ways hold an entry, which one is replaced."""

from hopforge.model.kernel.compile import inner
from hopforge.model.lookup.fast import layout as at
from hopforge.model.lookup.fast.keys import row_of
from hopforge.model.lookup.replacement import RANDOM, choose_victim, next_random, note_fill, note_use


@inner
def touch(lines, row, way):  # type: ignore[no-untyped-def]
    """Note that a line was used."""
    p = lines.params
    note_use(p[at.P_POLICY], p[at.P_WAYS], lines.order, row * p[at.P_WAYS], 1, way, lines.regs[at.S_CYCLE])


@inner
def victim(lines, row):  # type: ignore[no-untyped-def]
    """Return the way that a full set replaces."""
    p, s = lines.params, lines.regs
    first = row * p[at.P_WAYS]
    return choose_victim(p[at.P_POLICY], p[at.P_WAYS], lines.order, first, 1, s[at.S_CYCLE], -1, s[at.S_LFSR])


@inner
def filled(lines, row, way, evicted):  # type: ignore[no-untyped-def]
    """Note that a line was written."""
    p, s = lines.params, lines.regs
    if p[at.P_POLICY] == RANDOM and evicted:
        s[at.S_LFSR] = next_random(s[at.S_LFSR])
    note_fill(p[at.P_POLICY], p[at.P_WAYS], lines.order, row * p[at.P_WAYS], 1, way, s[at.S_CYCLE])


@inner
def is_live(lines, row, way):  # type: ignore[no-untyped-def]
    """Return whether a way holds an entry of the present epoch."""
    return lines.valid[row, way] == 1 and lines.epochs[row, way] == lines.regs[at.S_EPOCH]


@inner
def find_way(lines, key):  # type: ignore[no-untyped-def]
    """Return the way that holds a key, -1 if none does."""
    payload = key & (1 << lines.params[at.P_A]) - 1
    for way in range(lines.params[at.P_WAYS]):
        row = row_of(lines, payload, way)
        if is_live(lines, row, way) and lines.tags[row, way] == key:
            return way
    return -1


@inner
def remove_key(lines, key):  # type: ignore[no-untyped-def]
    """Remove the line of a key, if there is one."""
    way = find_way(lines, key)
    if way >= 0:
        lines.valid[row_of(lines, key & (1 << lines.params[at.P_A]) - 1, way), way] = 0


@inner
def remove_dead(lines, row):  # type: ignore[no-untyped-def]
    """Remove the lines of a row that are of old epochs."""
    for way in range(lines.params[at.P_WAYS]):
        if not is_live(lines, row, way):
            lines.valid[row, way] = 0
