"""Lines of the caches of a network's lookup engines, of either level: which way holds a key, which one is replaced.

Definition: docs/definitions/lookup-engine.md, "Replacement". A second level has a `Lookups` of its own.
"""

from numba import int64, uint16, uint32

from hopforge.model.kernel.compile import inner
from hopforge.model.kernel.memory import int32s
from hopforge.model.lookup.replacement import RANDOM, choose_victim, next_random, note_fill, note_use
from hopforge.model.network.core.lookup_state import Lookups, engine_at, line_at


@inner
def line_number(lookups: Lookups, e: int, key: int, way: int) -> int:
    """Line of `way` in which `key` may lie."""
    which = key * lookups.ways + way if lookups.skewed != 0 else key
    return (e * lookups.sets + int32s(lookups.key_row)[which]) * lookups.ways + way


@inner
def find_way(lookups: Lookups, e: int, key: int) -> int:
    """Way that holds `key`, -1: none."""
    wanted = uint32(key + 1)
    if lookups.skewed == 0:
        first = line_number(lookups, e, key, 0)
        for way in range(lookups.ways):
            if line_at(lookups, first + way).key == wanted:
                return way
    else:
        for way in range(lookups.ways):
            if line_at(lookups, line_number(lookups, e, key, way)).key == wanted:
                return way
    return -1


@inner
def order_of(lookups: Lookups, e: int, key: int) -> int:
    """Place of the replacement state of the set of `key` among the words of all lines (not skewed)."""
    return 2 * line_number(lookups, e, key, 0) + 1


@inner
def touch(lookups: Lookups, e: int, key: int, way: int) -> None:
    """Note the use of a line."""
    engine = engine_at(lookups, e)
    engine.clock = uint32(engine.clock + 1)
    order, first = int32s(lookups.line), order_of(lookups, e, key)
    note_use(lookups.policy, lookups.ways, order, first, 2, way, int64(engine.clock))


@inner
def victim_way(lookups: Lookups, e: int, key: int) -> int:
    """Way that is given up; all ways that `key` may take are valid."""
    engine, order, first = engine_at(lookups, e), int32s(lookups.line), order_of(lookups, e, key)
    now, register = int64(engine.clock), int64(engine.lfsr)
    return choose_victim(lookups.policy, lookups.ways, order, first, 2, now, 0xFFFFFFFF, register)


@inner
def write_line(lookups: Lookups, e: int, key: int) -> None:
    """Bring `key` into the cache after a miss."""
    engine = engine_at(lookups, e)
    way = find_way(lookups, e, key)
    if way >= 0:
        touch(lookups, e, key, way)
        return
    for w in range(lookups.ways):
        if line_at(lookups, line_number(lookups, e, key, w)).key == uint32(0):
            way = w
            break
    evicts = way < 0
    if evicts:
        way = victim_way(lookups, e, key)
        engine.evictions += 1
    engine.fills += 1
    line_at(lookups, line_number(lookups, e, key, way)).key = uint32(key + 1)
    if lookups.policy == RANDOM and evicts:
        engine.lfsr = uint16(next_random(int64(engine.lfsr)))
    engine.clock = uint32(engine.clock + 1)
    order, first = int32s(lookups.line), order_of(lookups, e, key)
    note_fill(lookups.policy, lookups.ways, order, first, 2, way, int64(engine.clock))
