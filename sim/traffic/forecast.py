"""How long a run will take for what hosts send, before it begins: messages of a program, packets of a replay."""

import numpy as np

from hopforge.model.network.parts.program_arrays import ProgramError, ProgramSource
from hopforge.sim.traffic.packet_stream import WorkloadError
from hopforge.sim.traffic.program_traffic import cut

#: flits of messages in a second of processor time, measured on loaded networks of 64 and 72 hosts (2026)
FLITS_PER_SECOND = 4_000_000
#: packets of messages that packet routers carry in a second, measured on loaded tori of 16 and 64 nodes (2026)
CARRIED_PACKETS_PER_SECOND = 500_000
#: packets that are offered in vain in a second, measured with one host before a failed link (2026)
OFFERS_PER_SECOND = 10_000_000
#: packets that `hopforge hits` replays in a second of processor time, a rough figure of one small mesh (2026)
PACKETS_PER_SECOND = 3_000_000
#: the same with prefetch or refill, of meshes of 2, 16 and 64 hosts (2026)
HELPED_PACKETS_PER_SECOND = 150_000
#: packets that are replayed at most; that many take days
MOST_PACKETS = 10**12
#: seconds from which on a user is told
_TELL_S = 60.0


def message_flits(source: ProgramSource) -> int:
    """Return the flits of all messages that go through the network."""
    _, flits = cut(source.program.size_bytes[~source.local()], source.mtu_bytes, source.flit_bytes)
    return int(flits.sum(dtype=np.float64))  # 2³¹ messages of 2⁴⁸ bytes are beyond 64 bits


def refuse_many_flits(flits: int, most: int) -> None:
    """Refuse a program whose messages have more flits than `workload.max_flits`.

    Raises
    ------
    ProgramError
        They have; says how long that would take.
    """
    _refuse_many(flits, most, "flits", FLITS_PER_SECOND, "traffic.flit_bytes")


def refuse_many_carried(packets: int, most: int) -> None:
    """Refuse a program whose messages have more packets for packet routers than `workload.max_flits`.

    Raises
    ------
    ProgramError
        They have; says how long that would take.
    """
    _refuse_many(packets, most, "packets", CARRIED_PACKETS_PER_SECOND, "packet.packet_bytes")


def _refuse_many(count: int, most: int, unit: str, per_second: int, larger: str) -> None:
    if count > most:
        raise ProgramError(
            f"workload.max_flits: the messages have {count:,} {unit}, more than {most:,}; the simulator would take "
            f"{about(count, per_second)} (app.engine: flow, fewer bytes, larger {larger}, or a higher limit)"
        )


def refuse_many_offers(offers: int, most: int) -> None:
    """Refuse failures that hosts do not know of for so long that their offers in vain are more than the limit.

    Raises
    ------
    ProgramError
        They are; says how long that would take.
    """
    if offers > most:
        raise ProgramError(
            f"simulation.failures: hosts may offer packets {offers:,} times in vain until failures and repairs are "
            f"known, more than workload.max_flits={most:,}; that would take {about(offers, OFFERS_PER_SECOND)} "
            "(smaller detection_cycles and reprogram_cycles, packet.queues: receiving, or a higher limit)"
        )


def refuse_many_packets(packets: int, key: str) -> None:
    """Refuse a replay of more packets than `MOST_PACKETS`; `key` says how many there are.

    Raises
    ------
    WorkloadError
        They are; says how long that would take.
    """
    if packets > MOST_PACKETS:
        raise WorkloadError(
            f"{key}: the hosts send {packets:,} packets, more than {MOST_PACKETS:,}; their replay would take "
            f"{about(packets, PACKETS_PER_SECOND)}"
        )


def about(count: int, per_second: int = FLITS_PER_SECOND) -> str:
    """Return the processor time for so many flits, or other things, in words.

    >>> about(7_200_000_000), about(2_000_000_000_000), about(9_000_000_000, PACKETS_PER_SECOND)
    ('about 30 minutes', 'about 5.8 days', 'about 50 minutes')
    """
    seconds = count / per_second
    for limit, unit, name in ((120.0, 1.0, "seconds"), (7200.0, 60.0, "minutes"), (172800.0, 3600.0, "hours")):
        if seconds < limit:
            return f"about {seconds / unit:.2g} {name}"
    days = seconds / 86400
    return f"about {days:.2g} days" if days < 100 else f"about {days:,.0f} days"


def forecast(count: int, unit: str = "flits", per_second: int = FLITS_PER_SECOND) -> str:
    """Say how long a run will take; empty for less than a minute."""
    if count < _TELL_S * per_second:
        return ""
    return f"{count:,} {unit}: {about(count, per_second)} of processor time"
