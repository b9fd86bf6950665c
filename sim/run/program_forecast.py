"""How long the router simulator will take for the messages of a program, before it begins."""

import numpy as np

from hopforge.model.network.parts.program_arrays import ProgramError, ProgramSource
from hopforge.sim.traffic.program_traffic import cut

#: flits of messages in a second of processor time, measured on loaded networks of 64 and 72 hosts (2026)
FLITS_PER_SECOND = 4_000_000
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
    if flits > most:
        raise ProgramError(
            f"workload.max_flits: the messages have {flits:,} flits, more than {most:,}; the simulator would take "
            f"{about(flits)} (app.engine: flow, fewer bytes, larger traffic.flit_bytes, or a higher limit)"
        )


def about(flits: int) -> str:
    """Return the processor time for so many flits, in words.

    >>> about(7_200_000_000), about(2_000_000_000_000)
    ('about 30 minutes', 'about 5.8 days')
    """
    seconds = flits / FLITS_PER_SECOND
    for limit, unit, name in ((120.0, 1.0, "seconds"), (7200.0, 60.0, "minutes"), (172800.0, 3600.0, "hours")):
        if seconds < limit:
            return f"about {seconds / unit:.2g} {name}"
    return f"about {seconds / 86400:.2g} days"


def forecast(flits: int) -> str:
    """Say how long a run will take; empty for less than a minute."""
    if flits < _TELL_S * FLITS_PER_SECOND:
        return ""
    return f"{flits:,} flits: {about(flits)} of processor time"
