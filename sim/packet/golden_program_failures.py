"""Hosts that run a program on a packet network in which links and switches fail, in plain Python.

Written from docs/guides/failures.md, to be compared with the kernel message by message
(`tests/sim/packet/test_packet_program_failures.py`).
"""

from hopforge.model.routing.grids.intermediate import Detour, Grid, Place
from hopforge.sim.packet.golden import Packet
from hopforge.sim.packet.golden_failures import Change, GoldenFailures, Link
from hopforge.sim.packet.golden_programs import GoldenPrograms, Hosts, Message
from hopforge.sim.packet.settings import Settings


class GoldenProgramFailures(GoldenPrograms, GoldenFailures):
    """A program on routers with their queues before the links, and what fails.

    No rank runs at a switch that fails: all packets can be sent on.
    """

    def __init__(self, grid: Grid, settings: Settings, nodes: list[Place], hosts: Hosts, changes: list[Change]) -> None:
        GoldenFailures.__init__(self, grid, settings, {(node, 0): node for node in nodes}, {}, changes)
        self._begin(hosts)

    def _room_of(self, node: Place, goal: Place, via: Detour | None, t: Place) -> bool | tuple[int, int] | None:
        if len(self.escape) > 1:  # the rings of a whole network
            return super()._room_of(node, goal, via, t)
        return self._room(node, goal, t, None)

    def _enter_first(self, node: Place, packet: Packet, room: bool | tuple[int, int], links: list[Link]) -> None:
        if len(self.escape) > 1:
            super()._enter_first(node, packet, room, links)
        else:
            self._enter(node, packet, room, links)

    @property
    def lost_messages(self) -> list[Message]:
        """Messages that have lost a packet of their data, their request or their answer, in the order of their loss."""
        return list(dict.fromkeys(self.tasks[packet].message for packet in self.lost))
