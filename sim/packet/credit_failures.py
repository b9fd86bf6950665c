"""Failures in a packet network whose queues stand at the end of the links (docs/definitions/torus-router.md).

A packet waits for a link before it has chosen one, so a failed link has nothing to give back. The kernel knows of a
link that is never free, of ways that stand in tables, and of a cycle in which all routers look.
"""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from hopforge.sim.packet import records as r
from hopforge.sim.packet.events import NEVER, QUEUE_BITS, QUEUE_MASK
from hopforge.sim.packet.failures import PacketFailureRecord, PacketFailures

#: packets on their way into a queue
_LANDINGS = (r.ARRIVALS, r.LATE_ARRIVALS, r.OFFERS)


class CreditFailures(PacketFailures):
    """The failures of one run with ``packet.queues: receiving``; parameters as of `PacketFailures`."""

    def step(self) -> None:
        """Do what is due in the present cycle, before anything else happens in it; then all routers look."""
        super().step()
        self.state.record["look"] = 1

    def _fail_links(self, links: Iterable[int], record: PacketFailureRecord) -> None:
        """Lose what is on links."""
        failing = set(map(int, links))
        self.state["link"]["free"][list(failing)] = NEVER
        record.packets_on_links += self._lose_coming(lambda queue: queue // r.VC_STRIDE in failing)

    def _lose_coming(self, failing: Callable[[int], bool]) -> int:
        """Lose the packets on their way into queues; returns how many."""
        state = self.state
        lost = {}
        for kind in _LANDINGS:
            kept = []
            for time, what in state.events_of(kind):
                if failing(what & QUEUE_MASK):
                    lost[what >> QUEUE_BITS] = kind
                    state["held"][what & QUEUE_MASK] -= 1
                else:
                    kept.append((time, what))
            state.put_events(kind, kept)
        self._leave({p for p, kind in lost.items() if kind != r.OFFERS})
        self._lose(list(lost), coming=True)
        return len(lost)

    def _leave(self, lost: set[int]) -> None:
        """Let packets leave the queues in this cycle from which they were being sent: the last they have left."""
        frees = self.state.events_of(r.FREES)
        last = {what >> QUEUE_BITS: k for k, (_, what) in enumerate(frees)}
        chosen = {last[p] for p in lost if p in last}
        now = int(self.state.counters["now"])
        first = [(now, frees[k][1]) for k in sorted(chosen)]
        self.state.put_events(r.FREES, [*first, *(one for k, one in enumerate(frees) if k not in chosen)])

    def _lose_waiting(self, queues: Iterable[int]) -> int:
        """Lose what waits in queues; what is being sent from there goes on. Returns how many."""
        state = self.state
        lost = []
        for queue in queues:
            waiting = self._waiting(queue)
            if not waiting:
                continue
            held = state["queue_packet"][queue][: state["queue_count"][queue]].tolist()
            sent = [p for k, p in enumerate(held) if int(state["queue_sent"][queue]) >> k & 1]
            self._put_queue(queue, sent)
            state["queue_sent"][queue] = (1 << len(sent)) - 1
            state["held"][queue] -= len(waiting)
            lost += waiting
        self._lose(lost)
        return len(lost)

    def _clear_switches(self, switches: NDArray[np.int64], record: PacketFailureRecord) -> None:
        """Lose what waits in switches, and what their sources have on their links."""
        state, bits = self.state, int(self.state.record["port_bits"])
        sources = {((node << bits) + int(state.record["host_port"])) * r.VC_STRIDE for node in switches.tolist()}
        record.packets_in_switches += self._lose_coming(lambda queue: queue in sources)
        ports = 2 * len(self.topology.params["radices"])
        into = state["into"].reshape(-1, 1 << bits)[switches, :ports]
        links = into[into >= 0].tolist()
        queues = [link * r.VC_STRIDE + vc for link in links for vc in range(self.state.vcs)]
        record.packets_in_switches += self._lose_waiting([*queues, *sorted(sources)])

    def _free(self, link: int, now: int) -> None:
        self.state["link"]["free"][link] = now

    def _drop_channels(self, vcs: list[int]) -> None:
        dropped = self._lose_coming(lambda queue: queue % r.VC_STRIDE in vcs)
        queues = [queue for vc in vcs for queue in range(vc, len(self.state["queue_count"]), r.VC_STRIDE)]
        self.records[-1].packets_undrained += dropped + self._lose_waiting(queues)

    def _empty(self, vc: int) -> bool:
        """Nothing stands in the queues of a virtual channel or is on its way there."""
        coming = [what & QUEUE_MASK for kind in _LANDINGS for _, what in self.state.events_of(kind)]
        return super()._empty(vc) and all(queue % r.VC_STRIDE != vc for queue in coming)

    def _give_back(self, now: int) -> None:
        """Nothing: what would go over a failed link has not left its queue."""

    def _list_ways(self) -> None:
        self.state["source"]["listed"] = -1  # sources list the ways of their next packet anew
