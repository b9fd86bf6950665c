"""The end of a packet: it has arrived and counts, or is lost; its record becomes free."""

from numba import int64

from hopforge.model.kernel.compile import inlined
from hopforge.model.kernel.histogram import histogram_bin
from hopforge.model.kernel.memory import int32s, int64s
from hopforge.model.network.core.hooks import ARRIVED, DELIVERED, LOST, call_hook
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import packet_at


@inlined
def count_arrival(net: Net, p: int, now: int, bin_cycles: int) -> None:
    """Count packet `p`, all of which has arrived; bins of the histogram are `bin_cycles` wide."""
    packet = packet_at(net, p)
    latency, in_network = now - packet.created, now - packet.sent
    net.packets_ejected += 1
    net.measured += 1
    net.latency_sum += latency
    net.network_latency_sum += in_network
    net.network_latency_squares += float(in_network) * float(in_network)
    net.network_latency_max = max(net.network_latency_max, in_network)
    net.hops_sum += packet.hops
    net.latency_max = max(net.latency_max, latency)
    net.latency_min = min(net.latency_min, latency)
    int64s(net.histogram)[histogram_bin(latency // bin_cycles)] += 1
    int64s(net.network_histogram)[histogram_bin(in_network // bin_cycles)] += 1
    if net.messages != 0 and call_hook(net.messages, net, ARRIVED, int64(p), now) != 0:
        return  # the record lives on as that of the reply
    if net.acks != 0 and call_hook(net.acks, net, DELIVERED, int64(p), now) != 0:
        return  # ... of the acknowledge
    free_record(net, p)


@inlined
def lose_packet(net: Net, p: int, now: int) -> None:
    """Count packet `p` as dropped, after its last flit."""
    net.packets_dropped += 1
    net.lost_hops += packet_at(net, p).hops
    if net.messages != 0:
        call_hook(net.messages, net, LOST, int64(p), now)
    free_record(net, p)


@inlined
def free_record(net: Net, p: int) -> None:
    """Let record `p` be that of another packet."""
    int32s(net.free_packet)[net.free_packets] = p
    net.free_packets += 1
