"""Memory that a replay will need where it holds all lookups at once: refused before the first packet is sent."""

from hopforge.model.free_memory import refuse_beyond_memory
from hopforge.sim.hits.replay import Replay
from hopforge.sim.traffic.packet_stream import PacketStream

__all__ = ["refuse_beyond_expected"]

#: fewer packets than this fit everywhere: nothing is looked at
_FEW_PACKETS = 1 << 22
#: packets whose ways stand for those of all
_SAMPLE = 1 << 16


def refuse_beyond_expected(
    caches: Replay, workload: PacketStream, what: str, *, per_packet: float, per_lookup: float
) -> None:
    """Refuse a workload whose lookups do not fit in memory, by the ways of its first packets.

    Parameters
    ----------
    caches : Replay
        What they are sent through; nothing in it changes.
    workload : PacketStream
        All packets.
    what : str
        Is done with the lookups; ``{}`` stands for their number.
    per_packet, per_lookup : float
        Bytes.

    Raises
    ------
    UserError
        Naming the memory that is needed and that there is.
    """
    if workload.packets < _FEW_PACKETS:
        return
    first = next(iter(workload.chunks()))
    lengths = caches.routes.paths(*caches.that_work(first[0][:_SAMPLE], first[1][:_SAMPLE])).lengths
    each = float(lengths.mean()) if len(lengths) else 0.0
    need = int(workload.packets * (per_packet + per_lookup * each))
    refuse_beyond_memory(need, what.format(f"about {float(f'{workload.packets * each:.3g}'):,.0f} lookups"))
