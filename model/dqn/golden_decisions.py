"""When decisions that take time begin and end, cycle by cycle (docs/definitions/dqn.md, Decision delay)."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Decisions", "EndOfCycle"]


class EndOfCycle(NamedTuple):
    """What happened at the end of a cycle, packets in order."""

    ended: list[int]
    begun: list[int]
    refused: list[int]


@dataclass
class _Agent:
    queue: deque[int] = field(default_factory=deque)
    begins: list[int] = field(default_factory=list)


class Decisions:
    """The agents of a network.

    Parameters
    ----------
    agents : int
        How many.
    cycles, interval : int
        What a decision takes; cycles from one of an agent to its next one.
    depth : int
        Packets that wait for an agent.
    """

    def __init__(self, agents: int, cycles: int, interval: int, depth: int) -> None:
        self._agents = [_Agent() for _ in range(agents)]
        self._cycles, self._interval, self._depth = cycles, interval, depth
        self._under_way: list[tuple[int, int]] = []  # last cycle, packet

    def waiting(self) -> set[int]:
        """Return the packets about which nothing is decided."""
        queued = {packet for agent in self._agents for packet in agent.queue}
        return queued | {packet for _, packet in self._under_way}

    def end_of_cycle(self, cycle: int, asked: Sequence[tuple[int, int, int]]) -> EndOfCycle:
        """Let a cycle end in which packets asked: (input channel, packet, agent)."""
        begun = [agent.queue.popleft() for agent in self._agents if agent.queue and self._begins(agent, cycle)]
        refused = []
        for _, packet, number in sorted(asked):
            agent = self._agents[number]
            if not agent.queue and self._begins(agent, cycle):
                begun.append(packet)
            elif len(agent.queue) < self._depth:
                agent.queue.append(packet)
            else:
                refused.append(packet)
        self._under_way += [(cycle + self._cycles - 1, packet) for packet in begun]
        ended = [packet for last, packet in self._under_way if last == cycle]
        self._under_way = [one for one in self._under_way if one[0] != cycle]
        return EndOfCycle(ended, begun, refused)

    def _begins(self, agent: _Agent, cycle: int) -> bool:
        """Whether an agent begins a decision in this cycle, as it can."""
        if any(cycle - self._interval < one for one in agent.begins):
            return False
        agent.begins = [cycle]
        return True
