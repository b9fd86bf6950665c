"""Choice of a packet's way in the packet network, jitted: links left, intermediate destinations, profit."""

from typing import Any

from numba import int64, njit

from hopforge.model.kernel.compile import WITHOUT_COUNTS
from hopforge.sim.packet.records import (
    ADAPTIVE,
    ADAPTIVE_ONLY,
    ALGORITHM,
    DIMENSIONS,
    DISTANCE,
    ETA,
    ETA_PARTS,
    FULL_IS_WORTHLESS,
    IDLE_COUNTS_ONE,
    KEEPS_DIRECTIONS,
    OFR,
    OUTFLANK,
    PORT_STRIDE,
    QUEUE,
    TORUS,
    VC_STRIDE,
    VCS,
    WRAPAROUND,
)

#: later than all that happens
NEVER = 1 << 62
#: arrays come from outside and stay there: no counting of references, which would take most of the time
OPTIONS: Any = {"error_model": "numpy", **WITHOUT_COUNTS}
without_counts = njit(**OPTIONS)


@without_counts
def way(par: Any, steps: Any, coords: Any, a: int, b: int) -> Any:
    """Distance of two nodes and the mask of the minimal links at `a`."""
    distance, mask = 0, 0
    for i in range(par[DIMENSIONS]):
        step = steps[i, coords[a, i], coords[b, i]]
        distance += step >> 2
        mask |= (step & 3) << (2 * i)
    return distance, mask


@without_counts
def ways_left(par: Any, steps: Any, coords: Any, node: int, goal: int, directions: int) -> int:
    """Mask of the links of `node` that a packet for `goal` may use: the minimal ones, or those of its orthant."""
    _, mask = way(par, steps, coords, node, goal)
    if directions == 0:
        return int64(mask)
    left = 0
    for i in range(par[DIMENSIONS]):
        if (mask >> (2 * i)) & 3:
            left |= directions & (3 << (2 * i))
    return left


@without_counts
def escape_port(mask: int) -> int:
    """Link of the lowest dimension in which the nodes differ, + where both ways are minimal: the lowest bit."""
    port = 0
    while (mask >> port) & 1 == 0:
        port += 1
    return port


@without_counts
def _add_via(
    par: Any, radices: Any, steps: Any, coords: Any, s: int, t: int, place: Any, kind: int, count: int, via: Any
) -> int:
    """Note the intermediate destination at `place`: via[s, k] = node, distance through it, its links, kind."""
    q, weight = 0, 1
    for i in range(par[DIMENSIONS]):
        x = place[i]
        if par[TORUS]:
            x = x % radices[i]
        elif x < 0 or x >= radices[i]:
            return count
        q += x * weight
        weight *= radices[i]
    if q in (s, t):
        return count
    first, mask = way(par, steps, coords, s, q)
    second, _ = way(par, steps, coords, q, t)
    via[s, count, 0], via[s, count, 1], via[s, count, 2], via[s, count, 3] = q, first + second, mask, kind
    return count + 1


@without_counts
def _outflank_place(par: Any, steps: Any, coords: Any, s: int, t: int, i: int, turn: int) -> int:
    """Coordinate i of the outflank destination with λ = `turn`."""
    a, b = int64(coords[s, i]), int64(coords[t, i])
    if a == b:
        return a + turn * par[DISTANCE]
    d = int64(steps[i, a, b]) >> 2
    sign = 1 if steps[i, a, b] & 1 else -1
    if turn == 0:
        # the lower of the two midpoints, as the floor has it
        return a + d // 2 if sign > 0 else a - (d + 1) // 2
    return (a - sign * par[DISTANCE]) if turn < 0 else (b + sign * par[DISTANCE])


@without_counts
def _list_orthants(par: Any, radices: Any, steps: Any, coords: Any, s: int, t: int, count: int, via: Any) -> int:
    """List the orthants that go the long way in some dimensions: via[s, k] = t, distance, links at s, kind."""
    n = par[DIMENSIONS]
    for turned in range(1, 1 << n):
        distance, mask, useful = 0, 0, True
        for i in range(n):
            step = steps[i, coords[s, i], coords[t, i]]
            bit = (turned >> i) & 1
            if step == 0:
                useful = useful and bit == 0
                continue
            distance += radices[i] - (step >> 2) if bit else step >> 2
            mask |= (2 if (step & 1) == bit else 1) << (2 * i)
        if useful:
            via[s, count, 0], via[s, count, 1], via[s, count, 2], via[s, count, 3] = t, distance, mask, WRAPAROUND
            count += 1
    return count


@without_counts
def list_via(par: Any, radices: Any, steps: Any, coords: Any, s: int, t: int, turns: Any, place: Any, via: Any) -> int:
    """List all intermediate destinations of (s, t), outflank first; returns their number."""
    n = par[DIMENSIONS]
    count = 0
    if s == t:
        return 0
    equal = 0
    for i in range(n):
        if coords[s, i] == coords[t, i]:
            equal += 1
    if par[ALGORITHM] == OFR:
        for row in range(turns.shape[2]):
            if turns[n - 2, equal, row, 0] == 2:
                break
            # the table has the equal coordinates first
            at_equal, at_other = 0, equal
            for i in range(n):
                if coords[s, i] == coords[t, i]:
                    turn = turns[n - 2, equal, row, at_equal]
                    at_equal += 1
                else:
                    turn = turns[n - 2, equal, row, at_other]
                    at_other += 1
                place[i] = _outflank_place(par, steps, coords, s, t, i, turn)
            count = _add_via(par, radices, steps, coords, s, t, place, OUTFLANK, count, via)
    if par[TORUS] and par[KEEPS_DIRECTIONS]:
        return int64(_list_orthants(par, radices, steps, coords, s, t, count, via))
    if par[TORUS]:
        for beta in range(1 << n):
            useful, minimal = True, True
            for i in range(n):
                a, b = int64(coords[s, i]), int64(coords[t, i])
                bit = (beta >> i) & 1
                if a == b:
                    useful = useful and bit == 0
                minimal = minimal and bit == (1 if 2 * abs(a - b) > radices[i] else 0)
                place[i] = (a + b + bit * radices[i]) // 2
            if useful and not minimal:
                count = _add_via(par, radices, steps, coords, s, t, place, WRAPAROUND, count, via)
    return count


@without_counts
def _used(par: Any, link: int, queue_count: Any) -> int:
    if par[ADAPTIVE_ONLY]:
        return int64(queue_count[link * VC_STRIDE + ADAPTIVE])
    return int64(queue_count[link * VC_STRIDE]) + queue_count[link * VC_STRIDE + 1] + queue_count[link * VC_STRIDE + 2]


@without_counts
def _profit(par: Any, least: int, used: Any, mask: int, distance: int, through: int) -> Any:
    """π = u*/u + η·d/d̃ as a fraction (numerator, denominator)."""
    total, links = 0, 0
    for port in range(2 * par[DIMENSIONS]):
        if (mask >> port) & 1:
            total += used[port]
            links += 1
    slots = par[QUEUE] if par[ADAPTIVE_ONLY] else VCS * par[QUEUE]
    if par[FULL_IS_WORTHLESS] and total == links * slots:
        return 0, 1
    if total == 0 or (par[IDLE_COUNTS_ONE] and least == 0):
        return par[ETA_PARTS] * through + par[ETA] * distance, through
    return least * links * par[ETA_PARTS] * through + par[ETA] * distance * total, total * through


@without_counts
def choose(par: Any, node: int, queue_count: Any, used: Any, via: Any, count: int, direct: Any) -> int:
    """Return the number of the most profitable intermediate destination in `via`, −1 for the minimal route."""
    least = NEVER
    ports = 2 * par[DIMENSIONS]
    for port in range(ports):
        used[port] = _used(par, node * PORT_STRIDE + port, queue_count)
        if (direct[node, 2] >> port) & 1:
            least = min(least, used[port])
    best = -1
    up, down = _profit(par, least, used, direct[node, 1], direct[node, 0], direct[node, 0])
    for k in range(count):
        over, under = _profit(par, least, used, via[node, k, 2], direct[node, 0], via[node, k, 1])
        if over * down > up * under:
            best, up, down = k, over, under
    return best
