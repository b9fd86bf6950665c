"""Proof that the escape network of the packet network cannot deadlock, for exactly this grid and these rules.

Every ring (escape VC, dimension, direction, line of nodes) keeps a free slot, because who enters leaves one: so the
packets inside a ring always move (Puente et al. 1999, seed 003 theorem 1). Rings wait for each other only in one order:
dimensions upwards, then from the first escape network to the second.
"""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.routing.grids.intermediate import Grid
from hopforge.model.routing.proof.deadlock import DeadlockError, find_cycle
from hopforge.sim.packet.settings import Settings

_NAMES = ("to the intermediate destination", "to the destination")


def check_escape(grid: Grid, settings: Settings) -> int:
    """Prove it; returns the number of dependencies between classes of rings that were looked at.

    A class of rings is (escape network, dimension, direction): all lines of a class are alike.

    Raises
    ------
    DeadlockError
        A ring that can be filled to its last slot, a packet without an escape, or rings that wait for each other in a
        cycle (printed).
    """
    for i, k in enumerate(grid.radices):
        if grid.torus and k > 1 and settings.enter_slots < 2:
            raise DeadlockError(
                f"packet.enter_slots must be at least 2 on a torus, not {settings.enter_slots}: packets that enter "
                f"could take the last free slot of a ring of dimension {i}, and nothing in it would move again"
            )
    if settings.queue_packets < settings.enter_slots:
        raise DeadlockError(
            f"packet.queue_packets must be at least packet.enter_slots={settings.enter_slots}, "
            f"not {settings.queue_packets}"
        )
    first = _hop_classes(grid)
    n = len(grid.radices)
    edges: set[tuple[int, int]] = set()
    detour = settings.algorithm != "abr"
    networks = (0, 1) if detour else (1,)
    for network in networks:
        for a, b in first:
            edges.add((network * 2 * n + a, network * 2 * n + b))
    if detour:
        # at the intermediate destination a packet may have to enter any ring of the second network
        edges |= {(a, 2 * n + b) for a in range(2 * n) for b in range(2 * n)}
    pairs = np.array(sorted(edges), np.int64).reshape(-1, 2)
    if len(pairs):
        cycle = find_cycle(pairs[:, 0], pairs[:, 1], 4 * n)
        if cycle:
            names = [
                f"dimension {c % (2 * n) // 2} {'−' if c % 2 else '+'} {_NAMES[c // (2 * n)]}"
                for c in [*cycle, cycle[0]]
            ]
            raise DeadlockError(f"routing.algorithm {settings.algorithm} can deadlock; rings: {' → '.join(names)}")
    return len(edges)


def _hop_classes(grid: Grid) -> set[tuple[int, int]]:
    """Pairs of different (dimension, direction) that follow one another on escape routes, found hop by hop.

    The escape route depends on each dimension alone, so it is enough to walk all pairs of coordinates of every
    dimension and all combinations of dimensions that differ.
    """
    n = len(grid.radices)
    directions: list[NDArray[np.int64]] = []
    for i, k in enumerate(grid.radices):
        used = set()
        for a in range(k):
            for b in range(k):
                distance, ways = grid.ways(i, a, b)
                x, hops = a, 0
                while x != b:
                    way = grid.ways(i, x, b)[1]
                    if not way or way[0] != ways[0] or hops > distance:
                        raise DeadlockError(f"dimension {i}: the escape route from {a} to {b} turns round at {x}")
                    used.add(2 * i + (way[0] < 0))
                    x, hops = (x + way[0]) % k, hops + 1
        directions.append(np.array(sorted(used), np.int64))
    return {(int(a), int(b)) for i in range(n) for j in range(i + 1, n) for a in directions[i] for b in directions[j]}
