"""Events of the packet network, jitted: all delays are constants of their kind, so a kind needs a ring and no heap."""

from numba import int64

from hopforge.model.kernel.compile import inlined
from hopforge.sim.packet.records import Net, event_at, ring_at

#: later than all that happens
NEVER = 1 << 62
#: a queue below a packet in one number
QUEUE_BITS = 31
QUEUE_MASK = (1 << QUEUE_BITS) - 1


@inlined
def append(net: Net, kind: int, time: int, what: int) -> None:
    """Add an event to the end of the ring of its kind."""
    ring = ring_at(net, kind)
    event = event_at(ring, ring.first + ring.count)
    event.time, event.what = time, what
    ring.count += 1


@inlined
def time_of(net: Net, kind: int) -> int:
    """Cycle of the first event of a kind."""
    ring = ring_at(net, kind)
    return int64(event_at(ring, ring.first).time) if ring.count > 0 else NEVER


@inlined
def take(net: Net, kind: int) -> int:
    """Take the first event out of the ring of its kind."""
    ring = ring_at(net, kind)
    what = int64(event_at(ring, ring.first).what)
    ring.first = (ring.first + 1) & ring.mask
    ring.count -= 1
    return what


@inlined
def packet_and_queue(packet: int, queue: int) -> int:
    """Return what an event says about a packet in a queue."""
    return (packet << QUEUE_BITS) | queue
