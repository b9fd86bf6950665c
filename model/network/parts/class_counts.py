"""Latencies of packets by class: requests, replies, round trips, acknowledges."""

from hopforge.model.kernel.compile import inner
from hopforge.model.kernel.histogram import HISTOGRAM_BINS, histogram_bin
from hopforge.model.kernel.memory import int64s
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import class_count_at


@inner
def count_class(net: Net, k: int, latency: int, network_latency: int) -> None:
    """Count a packet of class `k`, or a round trip."""
    count = class_count_at(net, k)
    count.packets += 1
    count.sum += latency
    count.squares += float(latency) * float(latency)
    count.largest = max(count.largest, latency)
    count.network_sum += network_latency
    int64s(net.class_histogram)[k * HISTOGRAM_BINS + histogram_bin(latency)] += 1
