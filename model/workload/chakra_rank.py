"""The nodes of Chakra of one rank, and what they wait for."""

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hopforge.model.workload.chakra_nodes import STARTED, Node
from hopforge.model.workload.protobuf import WireError
from hopforge.model.workload.schedule import Edges

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


class RankNodes:
    """The nodes of a rank in the order of their numbers, and what they wait for.

    Parameters
    ----------
    rank : int
        Whose they are.
    nodes : list of Node
        In any order.
    honour_ctrl_deps : bool
        `ctrl_deps` count as `data_deps`.

    Attributes
    ----------
    nodes : list of Node
        Ascending.
    ids : ndarray, uint64[node]
        Their numbers.
    waits, starts : (ndarray, ndarray), int64[...]
        Before and after, by place in `nodes`: for its end, for its start.

    Raises
    ------
    WireError
        A number stands twice, or is waited for and does not appear.
    """

    def __init__(self, rank: int, nodes: Sequence[Node], honour_ctrl_deps: bool) -> None:
        self.rank = rank
        self.nodes = sorted(nodes, key=lambda node: node.id)
        self.ids = np.array([node.id for node in self.nodes], np.uint64)
        twice = np.flatnonzero(self.ids[1:] == self.ids[:-1])
        if len(twice):
            raise WireError(f"node {self.ids[twice[0]]} stands there twice")
        self.waits: Pairs = self._pairs([node.data for node in self.nodes], "data_deps")
        if honour_ctrl_deps:
            ctrl = self._pairs([node.ctrl for node in self.nodes], "ctrl_deps")
            self.waits = np.concatenate([self.waits[0], ctrl[0]]), np.concatenate([self.waits[1], ctrl[1]])
        self.starts: Pairs = self._pairs([_started(node) for node in self.nodes], STARTED)

    def _pairs(self, awaited: list[NDArray[np.uint64]], name: str) -> Pairs:
        lengths = [len(ids) for ids in awaited]
        wanted = np.concatenate(awaited) if awaited else np.empty(0, np.uint64)
        after = np.repeat(np.arange(len(awaited)), lengths)
        if not len(wanted):
            return np.empty(0, np.int64), after
        before = np.minimum(np.searchsorted(self.ids, wanted), len(self.ids) - 1)
        missing = np.flatnonzero(self.ids[before] != wanted)
        if len(missing):
            at = missing[0]
            more = f" (and {len(missing) - 1} more such)" if len(missing) > 1 else ""
            raise WireError(
                f"node {self.ids[after[at]]} waits for node {wanted[at]} ({name}), which never appears{more}"
            )
        return before, after

    def order(self) -> list[int]:
        """Return the nodes as they become free, of several the lowest number first."""
        before, after = self.waits
        if np.all(before < after):
            return list(range(len(self.nodes)))
        edges = Edges.of(len(self.nodes), before, after)
        left = np.bincount(after, minlength=len(self.nodes)).tolist()
        free, done = [place for place, count in enumerate(left) if not count], []
        first, following = edges.first.tolist(), edges.next.tolist()
        while free:
            now = heapq.heappop(free)
            done.append(now)
            for place in following[first[now] : first[now + 1]]:
                left[place] -= 1
                if not left[place]:
                    heapq.heappush(free, place)
        return done + [place for place, count in enumerate(left) if count]  # of a circle, which is refused later


def _started(node: Node) -> NDArray[np.uint64]:
    value = node.attributes.get(STARTED, [])
    if not isinstance(value, list) or any(number < 0 for number in value):
        raise WireError(f"node {node.id}: {STARTED} must be a list of nodes")
    return np.array(value, np.uint64)
