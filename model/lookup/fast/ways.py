"""The sets of the routing cache: which ways hold an entry, which one is replaced."""

from hopforge.model.lookup.fast.inner import inner
from hopforge.model.lookup.fast.keys import row_of
from hopforge.model.lookup.fast.layout import FIFO, LRU, P_A, P_POLICY, P_WAYS, PLRU, S_EPOCH, S_LFSR


@inner
def touch(state, row, way):  # type: ignore[no-untyped-def]
    """Note that a way was used: the order of LRU, the tree of pseudo-LRU."""
    p = state.params
    if p[P_POLICY] == LRU:
        order = state.order[row]
        position = 0
        while order[position] != way:
            position += 1
        for index in range(position, p[P_WAYS] - 1):
            order[index] = order[index + 1]
        order[p[P_WAYS] - 1] = way
    elif p[P_POLICY] == PLRU:
        node, span = 1, p[P_WAYS] >> 1
        while span:
            side = 1 if way & span else 0
            state.nodes[row, node] = 1 - side
            node = 2 * node + side
            span >>= 1


@inner
def victim(state, row):  # type: ignore[no-untyped-def]
    """Return the way that a full set replaces."""
    p = state.params
    if p[P_POLICY] == LRU:
        return state.order[row, 0]
    if p[P_POLICY] == PLRU:
        node = 1
        while node < p[P_WAYS]:
            node = 2 * node + state.nodes[row, node]
        return node - p[P_WAYS]
    if p[P_POLICY] == FIFO:
        return state.pointer[row]
    return state.regs[S_LFSR] * p[P_WAYS] >> 16


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
