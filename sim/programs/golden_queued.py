"""Hosts that run a program on input-output-queued routers, in plain Python, through failures.

Written from docs/guides/programs.md and docs/guides/failures.md, to be compared with the kernel message by message
(`tests/sim/failures/test_queued_programs.py`).
"""

from hopforge.sim.packet.golden_programs import Hosts, Message, Task
from hopforge.sim.queued.golden import Golden, Packet


class GoldenPrograms(Golden):
    """A program on routers whose ways another class knows: `class X(GoldenPrograms, GoldenUgalNode)`."""

    def begin(self, hosts: Hosts) -> None:
        """Let hosts run a program; in `Hosts` the place of host h is (h,)."""
        self.program = hosts
        self.tasks: dict[int, Task] = {}
        self.kept: list[Packet] = []  # so that each has a number of its own
        self.coming: list[Task] = []
        self.lost_messages: list[Message] = []

    def lose(self, packet: Packet) -> None:
        """Note that a packet is lost: its message never arrives."""
        super().lose(packet)
        message = self.tasks[id(packet)].message
        if all(message is not one for one in self.lost_messages):
            self.lost_messages.append(message)

    def take(self, packet: Packet) -> None:
        """Let a host take a packet that has arrived."""
        self.coming.append(self.tasks[id(packet)])

    def react(self) -> None:
        """Let ranks react to what has arrived."""
        for task in self.coming:
            self.program.come(task, self.now)
        self.coming = []
        self.program.step(self.now)

    def host(self, h: int) -> None:
        """Let a host send."""
        if self.stopped or self.aside.get(h) or self.nic_free[h] > self.now or self.nic_credits[h] == 0:
            return
        task = self.program.offer((h,))
        if task is None:
            return
        packet = Packet(h, self.made[h], task.target[0], task.queued)
        self.made[h] += 1
        self.tasks[id(packet)] = task
        self.kept.append(packet)
        self.enter(h, packet)
        self.program.gone(task)
