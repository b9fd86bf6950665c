"""When the words of an operation pass collective units: the cycles of the golden plane, without its words.

While one group alone uses its units, each word waits for fixed events only: words before it, words of its other
children, and credits. So its times follow from theirs (docs/definitions/network-collectives.md, What a unit does), and
need a few additions for each word and unit. Words of other groups are not seen.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import kernel
from hopforge.model.router.collective_plane import PlaneDesign
from hopforge.model.router.links import End

__all__ = ["GroupTimes", "steps_of"]

_NEVER = -(1 << 60)
#: places of a unit for words that are combined or wait for their way out
_PLACES = 3


def steps_of(design: PlaneDesign, group: int) -> int:
    """Return the additions that a word of a group costs: its units and hosts."""
    tree = design.trees[group]
    return len(tree.writes) + len(tree.hosts)


@dataclass(frozen=True, eq=False)
class _Shape:
    """A tree, its units from the leaves to the root.

    `child` from `child_first`: units, and ~member.
    """

    parent: NDArray[np.int32]
    up: NDArray[np.int64]
    down: NDArray[np.int64]
    unit: NDArray[np.int32]
    child_first: NDArray[np.int64]
    child: NDArray[np.int32]


class GroupTimes:
    """A group whose operations follow each other, with the times at which its words passed.

    Parameters
    ----------
    design : PlaneDesign
        The plane.
    group : int
        Number of the group.
    host_cycles : int
        Latency of the links to hosts.

    Attributes
    ----------
    hosts : tuple of int
        Members, in the order of all arrays here.
    """

    def __init__(self, design: PlaneDesign, group: int, host_cycles: int = 1) -> None:
        self.hosts = design.trees[group].hosts
        self._shape, self._host_cycles, flits = _shape(design, group), host_cycles, design.params.buffer_flits
        units, members = len(self._shape.parent), len(self.hosts)
        #: of a unit: words taken, and sent up, lately; when a word was copied to all, lately; of a member: to it
        self._taken, self._sent, self._copied, self._given = (
            np.full((count, size), _NEVER, np.int64)
            for count, size in ((units, flits), (units, _PLACES), (units, flits), (members, flits))
        )
        self._left = np.full(_PLACES, _NEVER, np.int64)
        self._last = np.full((units, 3), _NEVER, np.int64)
        self._words = 0

    def finish(self, words: int, entered: NDArray[np.int64], source: int = -1) -> NDArray[np.int64]:
        """Return the cycle after the last result of each member.

        Parameters
        ----------
        words : int
            Of the operation, 1 or more.
        entered : ndarray, int64[member]
            Cycle in which each member's first word can stand at its host; later than its results before.
        source : int
            Place of the member that alone sends (multicast); -1: all send.
        """
        shape = self._shape
        sends = np.ones(len(self.hosts), np.bool_)
        if source >= 0:
            sends[:] = False
            sends[source] = True
        found = np.zeros(len(self.hosts), np.int64)
        _pass(
            words, self._words, entered.astype(np.int64), sends, self._host_cycles, shape.parent, shape.up, shape.down,
            shape.unit, shape.child_first, shape.child, self._taken, self._sent, self._copied, self._given, self._left,
            self._last, found,
        )
        self._words += words
        return found


def _shape(design: PlaneDesign, group: int) -> _Shape:
    """Return the tree of a group as arrays."""
    tree = design.trees[group]
    to = {link.source: (link.target, link.latency_cycles) for link in design.links}
    above = {w.router: to[End(w.router, w.parent.bit_length() - 1)] for w in tree.writes if w.parent}

    def depth(router: int) -> int:
        return 0 if router not in above else 1 + depth(above[router][0].router)

    order = sorted((w.router for w in tree.writes), key=lambda router: (-depth(router), router))
    number = {router: at for at, router in enumerate(order)}
    children: list[list[int]] = [[] for _ in order]
    parent, up, down = np.full(len(order), -1, np.int32), np.zeros(len(order), np.int64), np.zeros(len(order), np.int64)
    for router, (end, latency) in above.items():
        at = number[router]
        parent[at], up[at], down[at] = number[end.router], latency, to[end][1]
        children[parent[at]].append(at)
    unit = np.array([number[design.hosts[host].router] for host in tree.hosts], np.int32)
    for member, at in enumerate(unit.tolist()):
        children[at].append(~member)
    first = np.concatenate([[0], np.cumsum([len(each) for each in children])]).astype(np.int64)
    return _Shape(parent, up, down, unit, first, np.array([one for each in children for one in each], np.int32))


@kernel
def _pass(  # type: ignore[no-untyped-def]
    words, before, entered, sends, host_cycles, parent, up, down, unit, child_first, child, taken, sent, copied, given,
    left, last, found,
):
    """Let words pass; times are the cycles in which a unit takes (take), sends up, or copies them."""
    units, members, flits = len(parent), len(unit), taken.shape[1]
    ready = np.empty(units, np.int64)
    available = np.empty(units, np.int64)
    host_sent = entered - 1
    for k in range(words):
        slot, place, down_slot = k % flits, k % _PLACES, (before + k) % flits
        ready[:] = _NEVER
        for m in range(members):
            if sends[m]:
                u = unit[m]
                host_sent[m] = max(host_sent[m] + 1, taken[u, slot] + host_cycles)
                ready[u] = max(ready[u], host_sent[m] + host_cycles)
        for u in range(units):
            if ready[u] == _NEVER:  # nobody below sends
                continue
            p = parent[u]
            take = max(ready[u], last[u, 0] + 1)
            if p < 0:
                take = max(take, left[(before + k) % _PLACES] + 1)
                available[u] = take + 2
            else:
                take = max(take, sent[u, place] + 1)
                leaves = max(take + 2, last[u, 1] + 1, taken[p, slot] + up[u] + 1)
                sent[u, place] = last[u, 1] = leaves
                ready[p] = max(ready[p], leaves + up[u] + 1)
            taken[u, slot] = last[u, 0] = take
        for u in range(units - 1, -1, -1):
            start = max(available[u], last[u, 2] + 1)
            done = start
            for i in range(child_first[u], child_first[u + 1]):
                c = child[i]
                if c < 0:
                    copy = max(start, given[~c, down_slot] + 2 * host_cycles)
                    given[~c, down_slot] = copy
                    found[~c] = copy + host_cycles + 1
                else:
                    copy = max(start, copied[c, down_slot] + down[c] + 1)
                    available[c] = copy + down[c] + 1
                done = max(done, copy)
            copied[u, down_slot] = last[u, 2] = done
        left[(before + k) % _PLACES] = last[units - 1, 2]
