"""Records of thousands of routers do not fit into the first caches: what events will touch is loaded ahead of them."""

from typing import Any

from numba import int64

from hopforge.model.kernel.compile import inlined
from hopforge.model.kernel.memory import prefetch
from hopforge.model.network.core.kinds import HOST_VC_BITS
from hopforge.model.network.core.layouts import HOST, INPUT_PORT, OUTPUT_PORT, OUTPUT_VC, PACKET
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import fifo_of, input_vc

#: arrivals in a cycle up to which what they touch stays near the processor until the allocators need it
SPARSE = 1000
#: events ahead of time whose records are prefetched
AHEAD = 12
#: flits that are accepted before the heads among them are routed: what they touch is still in the first cache
CHUNK = 128
OUTPUT_VC_BYTES, PACKET_BYTES = OUTPUT_VC.itemsize, PACKET.itemsize
HOST_BYTES, INPUT_PORT_BYTES, OUTPUT_PORT_BYTES = HOST.itemsize, INPUT_PORT.itemsize, OUTPUT_PORT.itemsize


@inlined
def load_event(net: Net, event: int) -> None:
    """Begin to load what the arrival of a flit touches."""
    prefetch(net.packet + ((event & 0xFFFFFFFF) >> 2) * PACKET_BYTES)
    n = event >> 32
    vc = net.input_vc + (n << net.vc_shift)
    host = net.host + ((n - net.input_vcs) >> HOST_VC_BITS) * HOST_BYTES
    inside = -int64(n < net.input_vcs)  # without a branch, which would be mispredicted
    prefetch(host ^ ((host ^ vc) & inside))
    if net.vc_lists != 0:
        prefetch(net.candidate + (n & inside) * net.candidate_bytes)


@inlined
def load_flit(net: Net, event: int) -> None:
    """As `load_event`, of one that comes to a router."""
    prefetch(net.packet + ((event & 0xFFFFFFFF) >> 2) * PACKET_BYTES)
    n = event >> 32
    prefetch(net.input_vc + (n << net.vc_shift))
    if net.vc_lists != 0:
        prefetch(net.candidate + n * net.candidate_bytes)


@inlined
def load_arrival(net: Net, event: int) -> None:
    """As `load_event`, of one that comes to a host."""
    prefetch(net.packet + ((event & 0xFFFFFFFF) >> 2) * PACKET_BYTES)
    prefetch(net.host + (((event >> 32) - net.input_vcs) >> HOST_VC_BITS) * HOST_BYTES)


@inlined
def load_place(net: Net, event: int) -> None:
    """Begin to load the place that a flit will take in a large FIFO; `load_event` was called for it before."""
    n = (event >> 32) & -int64(event >> 32 < net.input_vcs)
    vc = input_vc(net, n)
    place = int64(vc.head) + vc.flits
    place -= net.buffer & -int64(place >= net.buffer)
    prefetch(net.fifo + n * net.fifo_bytes + 4 * place)


@inlined
def load_heads(net: Net, heads: Any, k: int, count: int) -> None:
    """Begin to load what RC of the heads behind number `k` of `count` needs: first their flits, then their packets."""
    if k + AHEAD < count:
        n = int64(heads[k + AHEAD])
        prefetch(net.fifo + n * net.fifo_bytes + 4 * int64(input_vc(net, n).head))
    if k + AHEAD // 2 < count:
        n = int64(heads[k + AHEAD // 2])
        prefetch(net.packet + (int64(fifo_of(net, n)[input_vc(net, n).head]) >> 2) * PACKET_BYTES)
