"""The life of a packet in the network simulator: its way through the input VCs, with the cycles of every flit."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from hopforge.model.errors import UserError
from hopforge.sim.queued.build import QueuedState
from hopforge.sim.run.simulation import Simulation

#: bits of a packet's number in the log of the kernel; the host stands above them
_NUMBER_BITS = 40


class TraceError(UserError):
    """A packet that cannot be followed: names it and says what there is."""


class PacketKey(NamedTuple):
    """A packet by its source host and its number there, from 0; people write ``HOST.NUMBER``."""

    host: int
    number: int

    def __str__(self) -> str:
        return f"{self.host}.{self.number}"

    @property
    def code(self) -> int:
        """The packet in the log of the kernel."""
        return (self.host << _NUMBER_BITS) | self.number


def packet_key(text: str) -> PacketKey:
    """Read ``HOST.NUMBER``.

    Raises
    ------
    TraceError
        It is something else.

    Examples
    --------
    >>> packet_key("5.12")
    PacketKey(host=5, number=12)
    """
    found = re.fullmatch(r"(\d{1,9})\.(\d{1,13})", text)
    if found is None or int(found[2]) >> _NUMBER_BITS:
        raise TraceError(f"--packet: expected HOST.NUMBER, not {text!r}")
    return PacketKey(int(found[1]), int(found[2]))


@dataclass
class Visit:
    """A packet in one input VC: cycles of the head, of every flit's switch grant, and of when it stands on the output.

    `links` is empty in input-queued routers, where that is always two cycles after the grant. `again`: the host of this
    router that has set the packet aside before a failed link, and when it sent each flit again.
    """

    input_vc: int
    output_vc: int
    grants: list[int]
    routed: int | None = None
    requested: int | None = None
    granted: int | None = None
    links: list[int] = field(default_factory=list)
    again: tuple[int, list[int]] | None = None

    def on_link(self, flit: int) -> int | None:
        """Cycle in which a granted flit stands on the output; None: it waits in an output queue, or was set aside."""
        if self.requested is not None or self.granted is not None:
            return self.grants[flit] + 2
        return self.links[flit] if flit < len(self.links) else None


@dataclass
class PacketLife:
    """What happened to one packet; cycles.

    Attributes
    ----------
    key, dst, flits, created
        The packet, its destination host, its length, its creation.
    sent, received : list of int
        Cycle in which each flit left the source and reached the destination (what has happened by the end of the run).
    visits : list
        Input VCs in the order of the path.
    dropped : list of int
        Cycles in which flits of an unroutable packet were drained.
    """

    key: PacketKey
    dst: int
    flits: int
    created: int
    sent: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)

    @property
    def latency(self) -> int | None:
        """Cycles from the creation to the arrival of the tail; None: not arrived."""
        return self.received[-1] - self.created if len(self.received) == self.flits else None


def vc_place(run: Simulation, n: int) -> tuple[int, int, int]:
    """Router, port and VC of an input or output VC; −1 for none."""
    if n < 0:
        return -1, -1, -1
    vcs, ports = int(run.state["vcs"]), int(run.state["ports"])
    return n // vcs // ports, n // vcs % ports, n % vcs


def arrival_cycles(run: Simulation, life: PacketLife) -> list[list[int]]:
    """Cycles in which the flits stand on the input of each router of the path (docs/definitions/router.md)."""
    state = run.state
    if isinstance(state, QueuedState):
        delay = state.queues["packet_line"]["delay"]
        lines, from_host = state.queues["output_queue"]["packet_line"], state.queues["nic"]["packet_line"]
        arrived = [[cycle + int(delay[from_host[life.key.host]]) for cycle in life.sent]]
        for visit in life.visits:
            line, cycles = lines[visit.output_vc], visit.links
            if visit.again is not None:
                line, cycles = from_host[visit.again[0]], visit.again[1]
            arrived.append([cycle + int(delay[line]) for cycle in cycles])
        return arrived
    found = [[cycle + int(state["host"]["flit_time"][life.key.host]) - 1 for cycle in life.sent]]
    for visit in life.visits[:-1]:
        time, cycles = int(state["output_port"]["flit_time"][visit.output_vc // int(state["vcs"])]), visit.grants
        if visit.again is not None:
            time, cycles = int(state["host"]["flit_time"][visit.again[0]]), visit.again[1]
        found.append([cycle + time - 1 for cycle in cycles])
    return found
