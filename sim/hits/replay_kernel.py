"""Packets through the caches of their paths, lookup after lookup.

The common case, a hit in the first level, finds the lines of each hop worked out.
"""

from hopforge.model.kernel.compile import kernel
from hopforge.model.lookup.cache_lines import EMPTY, hash_row, touch_line
from hopforge.model.lookup.reference_stack import CAPACITY, COMPULSORY, reference_lookup
from hopforge.model.lookup.two_levels import get_second, put_first, put_lines
from hopforge.sim.hits.replay_result import COUNTS

__all__ = ["lines_of_hops", "send_packets"]

_LOOKUPS, _HITS, _SECOND, _COMPULSORY, _CAPACITY, _CONFLICT, _EVICTIONS, _UNMATCHED = range(len(COUNTS))


@kernel
def lines_of_hops(c, sets, caches, keys, lines):  # type: ignore[no-untyped-def]
    """First line of the set of each hop in the long arrays, or with skewing the line of each way."""
    for hop in range(len(keys)):
        for way in range(lines.shape[1]):
            row = hash_row(c.rows, way, keys[hop] & c.payload_mask)
            lines[hop, way] = (caches[hop] * sets + row) * c.ways + way


@kernel
def send_packets(  # type: ignore[no-untyped-def]
    levels, enabled, two, stacks, entries, of_packet, matched, first, caches, keys, slots, lines, now, counts, back,
):
    """Send packets; return how many were delivered and how many lookups they made."""
    head, tail, held, newer, older, status = (
        stacks.head, stacks.tail, stacks.held, stacks.newer, stacks.older, stacks.status
    )  # fmt: skip
    tags, order = levels.state1.tags, levels.state1.order
    ways, policy = levels.tables1.ways, levels.tables1.policy
    skewed = lines.shape[1] > 1
    begin = now
    delivered = 0
    all_match = len(matched) == 1
    for packet in range(len(of_packet)):
        path = of_packet[packet]
        dropped = False
        for hop in range(first[path], first[path + 1]):
            cache, key = caches[hop], keys[hop]
            counts[_LOOKUPS, cache] += 1
            now += 1
            line = -1
            if enabled:
                start = lines[hop, 0]
                for way in range(ways):
                    at = lines[hop, way] if skewed else start + way
                    line = at if tags[at] == key else line
            if line >= 0:
                touch_line(policy, ways, order, line, now)
                counts[_HITS, cache] += 1
                reference_lookup(head, tail, held, newer, older, status, entries, cache, slots[hop])
                continue
            found = two and get_second(levels, cache, key, now)
            counts[_SECOND, cache] += found
            if not (found or all_match or matched[hop]):
                counts[_UNMATCHED, cache] += 1
                dropped = True
                break
            if two:
                gone, taken = put_lines(levels, cache, key, found, now)
                counts[_EVICTIONS, cache] += gone != EMPTY
                back[levels.behind[cache]] += taken
            elif enabled:
                counts[_EVICTIONS, cache] += put_first(levels, cache, key, now) != EMPTY
            cause = reference_lookup(head, tail, held, newer, older, status, entries, cache, slots[hop])
            if cause == COMPULSORY:
                counts[_COMPULSORY, cache] += 1
            elif cause == CAPACITY:
                counts[_CAPACITY, cache] += 1
            else:
                counts[_CONFLICT, cache] += 1
        delivered += not dropped
    return delivered, now - begin
