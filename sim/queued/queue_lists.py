"""Input and output queues as lists through the packets, and what asks to be served."""

from numba import int64, uint32

from hopforge.model.kernel.bits import bit_of
from hopforge.model.kernel.compile import inlined
from hopforge.model.kernel.memory import int32s, words
from hopforge.model.network.core.kinds import PORT_SHARE_BITS
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import output_port
from hopforge.sim.queued.delay_lines import put
from hopforge.sim.queued.records import Part, Queue, Queues, line_at


@inlined
def append(queues: Queues, queue: Queue, p: int) -> None:
    """Put packet `p` behind all others of an input or output queue."""
    if queue.length == 0:
        queue.first = p
    else:
        int32s(queues.following)[queue.last] = p
    queue.last = p
    queue.length = queue.length + 1


@inlined
def take_first(queues: Queues, queue: Queue) -> int:
    """Take the first packet out of an input or output queue, which must have one; returns it."""
    p = int64(queue.first)
    queue.length = queue.length - 1
    if queue.length != 0:
        queue.first = int32s(queues.following)[p]
    return p


@inlined
def port_of(net: Net, queue: Queue) -> int:
    """Input port of an input queue, in its router."""
    return (int64(queue.number) * net.port_share) >> PORT_SHARE_BITS


@inlined
def ask(net: Net, queues: Queues, part: Part, queue: Queue) -> None:
    """Let the first packet of an input VC ask for the crossbar."""
    number, router = int64(queue.number), int64(queue.router)
    words(queues.requests)[router * queues.words + (number >> 6)] |= bit_of(number)
    router -= part.first_router
    words(part.asking)[router >> 6] |= bit_of(router)


@inlined
def wake(net: Net, queues: Queues, part: Part, q: int, now: int) -> None:
    """Let output port `q`, to which a packet or credit has come, look a packet time later if it is idle."""
    port = output_port(net, q)
    if port.busy_until < now:
        port.busy_until = now + queues.packet_cycles
        put(line_at(queues.free_line, part.free_line), now, q)


@inlined
def let_send(net: Net, queues: Queues, part: Part, output: Queue, now: int) -> None:
    """Note that an output queue has a packet and a credit."""
    port = output_port(net, int64(output.port))
    port.free_mask = port.free_mask | (uint32(1) << uint32(output.vc))
    if port.busy_until <= now and queues.wake_late == 0:
        q = int64(output.port) - part.first_port
        words(part.pending)[q >> 6] |= bit_of(q)
