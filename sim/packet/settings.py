"""Settings of a packet network in cycles: what the golden network and the kernel both start from."""

import math
from dataclasses import dataclass
from fractions import Fraction

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.topology.link_times import common_cycle_ns

#: routing algorithms of the packet network, with the weight η that each has by default (seed 003)
DEFAULT_ETA = {"abr": 0.0, "por": 1.0, "ofr": 2.0}

#: dimensions of the largest network: 2 · 6 links and that of the source
MOST_DIMENSIONS = 6


class PacketError(UserError, ValueError):
    """A packet network that cannot be: names the key, the limit and the value."""


#: packet times that an escape channel has to become empty for new ways, before it is emptied
DRAIN_PACKETS = 1000


@dataclass(frozen=True)
class Settings:
    """Times in cycles, sizes and rules (docs/definitions/torus-router.md).

    Attributes
    ----------
    algorithm : str
        abr, por or ofr.
    cycle_ns : float
        Length of a cycle.
    send_cycles, link_cycles : int
        A packet on a link between routers; its latency.
    host_send_cycles, host_cycles : int
        The same of the links of sources and sinks.
    hop_cycles, offer_cycles : int
        From when a link between routers, or that of a source, begins a packet until the router behind it takes it.
    answer_cycles, host_answer_cycles : int
        From then until the router or source that sent it has the answer, and the end of the packet has left it.
    sink_wait_cycles : int
        What a sink begins a packet later than its head is there, so that its end is not missing.
    feed_cycles : int
        Between two packets that a source offers.
    outflank_share : tuple of int
        Numerator and denominator of Δ / distance; 0: Δ is `outflank_distance`.
    eta : tuple of int
        Numerator and denominator of η.
    """

    algorithm: str
    cycle_ns: float
    send_cycles: int
    link_cycles: int
    host_send_cycles: int
    host_cycles: int
    hop_cycles: int
    offer_cycles: int
    answer_cycles: int
    host_answer_cycles: int
    sink_wait_cycles: int
    feed_cycles: int
    feed_waits: bool
    queues: str
    queue_packets: int
    enter_slots: int
    inject_slots: int
    congestion: str
    idle_ratio: str
    full_profit: str
    wraparound: str
    outflank_distance: int
    outflank_share: tuple[int, int]
    eta: tuple[int, int]
    message_packets: int
    messages: int

    @property
    def longest_way_cycles(self) -> int:
        """Cycles of a packet and its answer over a link between routers, and over those of source and sink."""
        router = self.send_cycles + self.link_cycles + self.answer_cycles
        return router + 2 * (self.host_send_cycles + self.host_cycles) + self.host_answer_cycles


def packet_cycle_ns(config: Config) -> float:
    """Longest cycle of which the times of both kinds of links, rounded to 0.1 ns, are multiples, in ns."""
    packet = config.packet
    bits = 8 * packet.packet_bytes
    times = (bits / packet.link_gbps, bits / packet.host_gbps, packet.link_ns, packet.host_ns)
    return common_cycle_ns([max(round(time, 1), 0.1) for time in times])


def unit_period_ns(config: Config) -> float:
    """Time between two packets of a node at load 1: the load with which uniform traffic saturates a torus's bisection.

    k/8 times a packet's time on a link, k the longest dimension (spec: λ = 8B/k).
    """
    packet = config.packet
    return 8 * packet.packet_bytes / packet.link_gbps * max(config.topology.radices) / 8  # type: ignore[union-attr]


def packet_settings(config: Config) -> Settings:
    """Check the configuration and give its settings.

    Raises
    ------
    PacketError
        Another network than a mesh or torus of up to six dimensions with one host per router, another algorithm, or
        sizes that do not fit each other.
    """
    topology, packet, algorithm = config.topology, config.packet, config.routing.algorithm
    if topology.kind not in ("torus", "mesh"):
        raise PacketError(f"router.model packet needs a topology of kind mesh or torus, not {topology.kind}")
    if topology.hosts_per_router != 1:
        raise PacketError(
            f"topology.hosts_per_router must be 1 for router.model packet, not {topology.hosts_per_router}"
        )
    if algorithm not in DEFAULT_ETA:
        raise PacketError(f"routing.algorithm must be one of abr, por, ofr for router.model packet, not {algorithm}")
    low = 1 if algorithm == "abr" else 2
    if not low <= len(topology.radices) <= MOST_DIMENSIONS:
        raise PacketError(
            f"topology.radices must have {low} to {MOST_DIMENSIONS} dimensions for routing.algorithm {algorithm}, "
            f"not {len(topology.radices)}"
        )
    if algorithm == "por" and topology.kind == "mesh":
        raise PacketError("routing.algorithm por goes round a ring: it needs a topology of kind torus, not mesh")
    for key in ("enter_slots", "inject_slots"):
        if getattr(packet, key) > packet.queue_packets:
            raise PacketError(
                f"packet.{key} must be at most packet.queue_packets={packet.queue_packets}, not {getattr(packet, key)}"
            )
    cycle = packet_cycle_ns(config)
    eta = Fraction(str(DEFAULT_ETA[algorithm] if packet.eta is None else packet.eta)).limit_denominator(1000)
    share = Fraction(str(packet.outflank_share or 0)).limit_denominator(1000)
    return Settings(
        algorithm=algorithm,
        cycle_ns=cycle,
        **_times(config, cycle),
        feed_cycles=max(round(unit_period_ns(config) / packet.feed / cycle), 1),
        feed_waits=packet.feed_waits,
        queues=packet.queues,
        queue_packets=packet.queue_packets,
        enter_slots=packet.enter_slots,
        inject_slots=packet.inject_slots,
        congestion=packet.congestion,
        idle_ratio=packet.idle_ratio,
        full_profit=packet.full_profit,
        wraparound=packet.wraparound,
        outflank_distance=packet.outflank_distance,
        outflank_share=(share.numerator, share.denominator),
        eta=(eta.numerator, eta.denominator),
        message_packets=config.traffic.message_packets,
        messages=packet.messages,
    )


def _times(config: Config, cycle_ns: float) -> dict[str, int]:
    """Return the times of packets and of their heads in cycles: the fields of `Settings` up to `sink_wait_cycles`."""
    packet = config.packet
    bits = 8 * packet.packet_bytes
    send = max(round(bits / packet.link_gbps / cycle_ns), 1)
    host_send = max(round(bits / packet.host_gbps / cycle_ns), 1)
    link, host = max(round(packet.link_ns / cycle_ns), 1), max(round(packet.host_ns / cycle_ns), 1)
    head, host_head = send, host_send
    if packet.switching == "vct":
        # a head is there when all its bytes are: rounded up, and never later than its packet
        head, host_head = (
            min(max(math.ceil(8 * packet.head_bytes / gbps / cycle_ns - 1e-6), 1), whole)
            for gbps, whole in ((packet.link_gbps, send), (packet.host_gbps, host_send))
        )
        # a faster link behind that of the source must not outrun it
        host_head = max(host_head, host_send - send)
    return {
        "send_cycles": send,
        "link_cycles": link,
        "host_send_cycles": host_send,
        "host_cycles": host,
        "hop_cycles": head + link,
        "offer_cycles": host_head + host,
        "answer_cycles": max(link, send - head - link),
        "host_answer_cycles": max(host, host_send - host_head - host),
        "sink_wait_cycles": max(send - head - host_send, 0),
    }
