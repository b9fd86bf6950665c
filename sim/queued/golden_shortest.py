"""Shortest ways on any network of input-output-queued routers, plainly: docs/guides/simulate-a-network.md, `shortest`.

Hop h of a way takes virtual channel h. Of several ports that come nearer the number of the other router chooses. To the
host that virtual channel is taken which has most room, of equals the lowest.
"""

from collections import deque
from typing import Any

from hopforge.sim.queued.golden import Golden, Packet


class GoldenShortest(Golden):
    """Routes by the links of which the routing knows nothing bad; one link at most between two routers."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.find_ways()

    def reprogram(self) -> None:
        """Let the routing know what is down, and the hosts send."""
        super().reprogram()
        self.find_ways()

    def find_ways(self) -> None:
        """Find the links of each router, and how far each router is from each goal."""
        routers, peers = range(self.topology.routers), self.topology.peer_router.tolist()
        self.links = [
            [(o, peer) for o, peer in enumerate(peers[r]) if peer >= 0 and (r, o) not in self.known] for r in routers
        ]
        self.far = [self.hops_to(goal) for goal in routers]

    def hops_to(self, goal: int) -> dict[int, int]:
        """Hops of the routers from which there is a way."""
        found, queue = {goal: 0}, deque([goal])
        while queue:
            r = queue.popleft()
            for _, peer in self.links[r]:
                if peer not in found:
                    found[peer] = found[r] + 1
                    queue.append(peer)
        return found

    def route(self, r: int, i: int, v: int, packet: Packet) -> tuple[int, int]:
        """Output port and virtual channel of a packet."""
        goal = int(self.topology.host_router[packet.dst])
        if goal == r:
            port = int(self.topology.host_port[packet.dst])
            return port, min(range(self.given.vcs), key=lambda w: self.queue_length(r, port, w))
        nearer = [o for o, peer in self.links[r] if self.far[goal][peer] < self.far[goal][r]]
        return nearer[goal % len(nearer)], packet.hops
