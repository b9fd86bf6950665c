"""Algorithms that cut a vector in pieces, as MPICH and Open MPI have them.

`PIECES` says how each of them cuts (`collective_sizes`). A *core* is the largest power of two of ranks; the others,
the *extra* ones, hand their part to a neighbour first.
"""

from hopforge.model.workload.collective_rounds import Schedule, Transfer, binomial_tree, power_below, rounds_of

Rounds = list[list[Transfer]]
Window = tuple[int, int]


def _scatter(p: int, root: int) -> Rounds:
    """Return the pieces on their way down the binomial tree; piece i belongs to the rank i behind the root."""
    return [
        [
            Transfer(a, b, tuple(range((b - root) % p, (b - root) % p + size)), optional=True)
            for a, b, size in part
        ]
        for part in binomial_tree(p, root)
    ]


def bcast_scatter_ring_allgather(p: int, root: int) -> Schedule:
    """Scatter p pieces down a binomial tree, then allgather them around the ring (van de Geijn)."""
    ring = [
        [Transfer((root + i) % p, (root + i + 1) % p, ((i - step) % p,)) for i in range(p)] for step in range(p - 1)
    ]
    return rounds_of(_scatter(p, root) + ring)


def bcast_scatter_doubling_allgather(p: int, root: int) -> Schedule:
    """Scatter p pieces down a binomial tree, then allgather them by recursive doubling.

    Where a group of ranks has no whole partner group, those who got its pieces pass them on by recursive halving.
    """
    rounds = _scatter(p, root)
    mask = 1
    while mask < p:
        rounds.append([
            Transfer((i + root) % p, ((i ^ mask) + root) % p, tuple(range(i & -mask, min((i & -mask) + mask, p))))
            for i in range(p) if i ^ mask < p
        ])
        half = mask >> 1
        while half:
            rounds.append([
                Transfer((i + root) % p, (i + half + root) % p, tuple(range((i & -mask) + mask, p)))
                for i in range(p) if _passes_on(p, i, mask, half)
            ])
            half >>= 1
        mask *= 2
    return rounds_of(rounds)


def _passes_on(p: int, i: int, mask: int, half: int) -> bool:
    """Whether i, counted from the root, has the pieces of a partner group that i + half did not meet."""
    low = i & -mask
    there = p - low - mask  # ranks of the partner group above
    if low & mask or not 0 < there < mask or i & half or i + half >= p:
        return False
    start = i & -(2 * half)
    return i < start + there <= i + half


def _windows(core: int) -> list[list[Window]]:
    """Return the window of pieces of each rank of the core before each step.

    Partners are at distance 1, 2, 4, … Each keeps half of the window.
    """
    windows: list[list[Window]] = [[(0, core)] * core]
    mask = 1
    while mask < core:
        size = windows[-1][0][1] // 2
        windows.append([(low + size if i & mask else low, size) for i, (low, _) in enumerate(windows[-1])])
        mask *= 2
    return windows


def _pieces(window: Window) -> tuple[int, ...]:
    return tuple(range(window[0], window[0] + window[1]))


def _halving(members: list[int], windows: list[list[Window]]) -> Rounds:
    """Return the rounds of reduce-scatter: each rank sends the half of its window that its partner keeps."""
    return [
        [Transfer(members[i], members[i ^ 1 << step], _pieces(after[i ^ 1 << step]), True) for i in range(len(members))]
        for step, after in enumerate(windows[1:])
    ]


def _doubling(members: list[int], windows: list[list[Window]]) -> Rounds:
    """Return the rounds of allgather, `_halving` backwards."""
    return [
        [Transfer(members[i], members[i ^ 1 << step], _pieces(windows[step + 1][i])) for i in range(len(members))]
        for step in reversed(range(len(windows) - 1))
    ]


def _gather(members: list[int], windows: list[list[Window]], root: int) -> Rounds:
    """Return the rounds of gather to member `root`, `_halving` backwards: who is not on its side sends and is done."""
    return [
        [
            Transfer(members[i], members[i ^ 1 << step], _pieces(windows[step + 1][i]))
            for i in range(len(members)) if (i ^ 1 << step) >> step == root >> step
        ]
        for step in reversed(range(len(windows) - 1))
    ]


def _fold_by_halves(core: int, extra: int) -> Rounds:
    """Return how the first 2·extra ranks sum up on the even ones: each reduces one half, the odd one hands its over."""
    lower, upper = tuple(range(core // 2)), tuple(range(core // 2, core))
    exchange = [
        each for i in range(extra)
        for each in (Transfer(2 * i, 2 * i + 1, upper, True), Transfer(2 * i + 1, 2 * i, lower, True))
    ]
    return [exchange, [Transfer(2 * i + 1, 2 * i, upper) for i in range(extra)]]


def _members(core: int, extra: int, odd: int) -> list[int]:
    """Return the rank of each member of the core; of a folded pair the one with this parity."""
    return [2 * i + odd if i < extra else i + extra for i in range(core)]


def allreduce_rabenseifner(p: int, root: int = 0) -> Schedule:
    """Reduce-scatter by vector halving and distance doubling, then allgather (Rabenseifner 2004), as MPICH does.

    Core pieces; extra even ranks send the whole vector to their odd neighbour and get the result at the end.
    """
    core = power_below(p)
    extra = p - core
    every, members, windows = tuple(range(core)), _members(core, extra, 1), _windows(core)
    return rounds_of([
        [Transfer(2 * i, 2 * i + 1, every, True) for i in range(extra)],
        *_halving(members, windows), *_doubling(members, windows),
        [Transfer(2 * i + 1, 2 * i, every) for i in range(extra)],
    ])


def allreduce_rabenseifner_halves(p: int, root: int = 0) -> Schedule:
    """As `allreduce_rabenseifner`; pairs of extra ranks reduce a half each, and the even ones go on (Open MPI)."""
    core = power_below(p)
    extra = p - core
    every, members, windows = tuple(range(core)), _members(core, extra, 0), _windows(core)
    return rounds_of([
        *_fold_by_halves(core, extra), *_halving(members, windows), *_doubling(members, windows),
        [Transfer(2 * i, 2 * i + 1, every) for i in range(extra)],
    ])


def _reduce(fold: Rounds, p: int, root: int) -> Schedule:
    """Return reduce-scatter and gather to the root after a fold on even ranks."""
    core = power_below(p)
    extra = p - core
    members, windows = _members(core, extra, 0), _windows(core)
    rounds = fold + _halving(members, windows)
    if root < 2 * extra and root % 2:  # it has handed in its part: it takes the place of rank 0
        rounds.append([Transfer(0, root, _pieces(windows[-1][0]))])
        members, place = [root, *members[1:]], 0
    else:
        place = members.index(root)
    return rounds_of(rounds + _gather(members, windows, place))


def reduce_rabenseifner(p: int, root: int) -> Schedule:
    """Reduce-scatter as in `allreduce_rabenseifner`, then gather to the root (MPICH); extra odd ranks fold."""
    core = power_below(p)
    every = tuple(range(core))
    return _reduce([[Transfer(2 * i + 1, 2 * i, every, True) for i in range(p - core)]], p, root)


def reduce_rabenseifner_halves(p: int, root: int) -> Schedule:
    """As `reduce_rabenseifner`, with the fold of `allreduce_rabenseifner_halves` (Open MPI)."""
    core = power_below(p)
    return _reduce(_fold_by_halves(core, p - core), p, root)


def reduce_scatter_ring(p: int, root: int = 0) -> Schedule:
    """Make p − 1 rounds; each block travels around the ring to its rank and collects what it passes."""
    return rounds_of([[Transfer(r, (r + 1) % p, ((r - k) % p,), True) for r in range(p)] for k in range(1, p)])


def reduce_scatter_butterfly(p: int, root: int = 0) -> Schedule:
    """Vector halving and distance doubling, then every block goes to its rank (Träff 2005); extra even ranks fold."""
    core = power_below(p)
    extra = p - core
    members, windows = _members(core, extra, 1), _windows(core)
    owned = [(2 * i, 2 * i + 1) if i < extra else (i + extra,) for i in range(core)]
    halving = [
        [each._replace(blocks=tuple(b for piece in each.blocks for b in owned[piece])) for each in part]
        for part in _halving(members, windows)
    ]
    place = [window[0] for window in windows[-1]]  # the piece that a member has at the end
    return rounds_of([
        [Transfer(2 * i, 2 * i + 1, tuple(range(p)), True) for i in range(extra)], *halving,
        [
            Transfer(members[i], members[piece] - 1, owned[piece][:1])
            for i, piece in enumerate(place) if piece < extra
        ],
        [Transfer(members[i], members[piece], owned[piece][-1:]) for i, piece in enumerate(place) if i != piece],
    ])
