"""Section `packet`: routers that store and forward whole packets, their links and sources."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from hopforge.model.config.base import Problem, Section

Nanoseconds = Annotated[float, Field(ge=0, le=1e6)]
Gbps = Annotated[float, Field(gt=0, le=1e5)]


class PacketConfig(Section):
    """Routers of whole packets, their links and sources; `traffic` has pattern and packets of a message."""

    packet_bytes: Annotated[int, Field(ge=1, le=65536)] = 512
    """Size of a packet."""
    switching: Literal["saf", "vct"] = "saf"
    """A router sends a packet on when it has arrived whole (store-and-forward), or when its head has (virtual
    cut-through)."""
    head_bytes: Annotated[int, Field(ge=1, le=65536)] = 16
    """`switching: vct`: bytes that a router must have to know where a packet goes."""
    queues: Literal["sending", "receiving"] = "sending"
    """Where the queues of a link stand: before it, with answers to every packet; or at its end, with credits."""
    queue_packets: Annotated[int, Field(ge=2, le=63)] = 8
    """Packets of the queue of a virtual channel (three for each link), and of the queue to a sink."""
    link_gbps: Gbps = 20.0
    """Rate of the links between routers."""
    link_ns: Nanoseconds = 200.0
    """Latency of the links between routers."""
    host_gbps: Gbps = 64.0
    """Rate of the links from source to router and from router to sink."""
    host_ns: Nanoseconds = 80.0
    """Latency of the links of sources and sinks."""
    feed: Annotated[float, Field(gt=0, le=1000)] = 2.4
    """Rate at which a source offers the packets of a message, in units of the load 1."""
    feed_waits: bool = False
    """A source offers its next packet only when it knows whether the last one was taken."""
    process: Literal["periodic", "exponential"] = "periodic"
    """All nodes create messages at the same times, at equal distances; or each at random times."""
    phase: Literal["same", "random"] = "same"
    """All nodes begin with the same message of a pattern by message (`butterfly_stages`); or each with a random one."""
    messages: Annotated[int, Field(ge=1, le=100000)] = 32
    """Messages of every node; the run ends when all have arrived."""
    ties: Literal["plus", "both"] = "plus"
    """Minimal directions at half the ring: + only, or both."""
    enter_slots: Annotated[int, Field(ge=1, le=63)] = 2
    """Free slots that a packet needs to enter a ring of the escape network; one is enough to go on in it."""
    inject_slots: Annotated[int, Field(ge=1, le=63)] = 1
    """Free slots that a packet of the source needs in any queue."""
    congestion: Literal["all", "adaptive"] = "all"
    """Queues of a link that count in u: of all its virtual channels, or the adaptive one."""
    idle_ratio: Literal["zero", "one"] = "zero"
    """The first term of the profit where u* = 0 and u > 0."""
    full_profit: Literal["formula", "zero"] = "formula"
    """Profit of a destination whose counted queues are all full: by the formula, or nothing."""
    wraparound: Literal["middle", "directions"] = "middle"
    """Wraparound detours: through the middle of their orthant, or to the destination in its directions only."""
    outflank_distance: Annotated[int, Field(ge=1, le=64)] = 2
    """Δ of the outflank destinations."""
    outflank_share: Annotated[float, Field(ge=0.001, le=1)] | None = None
    """Δ as a share of the distance from source to destination, rounded, at least 1 (default: `outflank_distance`)."""
    eta: Annotated[float, Field(ge=0, le=1000)] | None = None
    """Weight η of the path's length in the profit; default 1 for `por`, 2 for `ofr`."""

    def problems(self) -> Iterator[Problem]:
        """Check that Δ is given in one way, and that a head is no longer than its packet."""
        if self.switching == "vct" and self.head_bytes > self.packet_bytes:
            yield Problem("head_bytes", f"must be at most packet_bytes={self.packet_bytes}, not {self.head_bytes}")
        if self.outflank_share is not None and "outflank_distance" in self.model_fields_set:
            yield Problem("outflank_share", "cannot stand together with outflank_distance")
