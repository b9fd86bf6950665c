"""Messages of several packets: when the last packet of each has arrived.

A message is a record of its own while packets of it are under way (Bernoulli and on/off sources), or for the whole run
(programs). Its latency goes from its creation to the arrival of the tail that comes last.
"""


import numpy as np

from hopforge.model.kernel.compile import c_kernel, inner
from hopforge.model.kernel.histogram import HISTOGRAM_BINS, histogram_bin
from hopforge.model.kernel.memory import int32s, int64s
from hopforge.model.network.core.hooks import ARRIVED, CREATED, HOOK_SIGNATURE, LOST
from hopforge.model.network.core.kinds import PROGRAM
from hopforge.model.network.core.layouts import MESSAGE
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import host_at, message_at, packet_at
from hopforge.model.network.core.state import NetState


def put_message_slots(state: NetState) -> None:
    """Give a network whose messages have several packets the records of messages under way.

    A slot is taken while a packet of its message is in the pool, or its host still creates some: the pool and the hosts
    are enough.
    """
    pool = len(state["packet"])
    slots = pool + int(state["hosts"])
    state.put_function("messages", track_messages)
    state.put("message", np.zeros(slots, MESSAGE))
    state.put("free_message", np.arange(slots - 1, -1, -1, dtype=np.int32))
    state.record["free_messages"] = slots
    state.put("packet_message", np.zeros(pool, np.int32))
    state.put("message_histogram", np.zeros(HISTOGRAM_BINS, np.int64))
    state.follow_pool(grow_messages)


def grow_messages(state: NetState, pool: int) -> None:
    """Follow the pool of packets, which has grown to `pool` records."""
    old = len(state["packet_message"])
    packet_message = np.zeros(pool, np.int32)
    packet_message[:old] = state["packet_message"]
    state.put("packet_message", packet_message)
    if state["source_kind"] == PROGRAM:
        return
    slots, free = len(state["message"]), int(state["free_messages"])
    message, free_message = np.zeros(slots + pool - old, MESSAGE), np.zeros(slots + pool - old, np.int32)
    message[:slots] = state["message"]
    free_message[:free] = state["free_message"][:free]
    free_message[free : free + pool - old] = np.arange(slots, slots + pool - old)
    state.put("message", message)
    state.put("free_message", free_message)
    state.record["free_messages"] = free + pool - old


@inner
def begin_packet(net: Net, p: int, h: int) -> None:
    """Make packet `p` of host `h` one of its message: of a new one if the last one has all its packets."""
    host = host_at(net, h)
    if host.message_left == 0:
        net.free_messages -= 1
        m = int32s(net.free_message)[net.free_messages]
        message = message_at(net, m)
        message.started = host.next_time
        message.left = net.message_packets
        message.lost = 0
        host.message = m
        host.message_left = net.message_packets
        host.message_target = packet_at(net, p).dst
    int32s(net.packet_message)[p] = host.message
    host.message_left -= 1


@inner
def end_packet(net: Net, p: int, now: int) -> None:
    """Note that packet `p` is out of the network; with the last one its message is measured, unless one was dropped."""
    m = int32s(net.packet_message)[p]
    message = message_at(net, m)
    message.left -= 1
    if message.left > 0:
        return
    if message.lost == 0:
        latency = now - message.started
        net.messages_measured += 1
        net.message_latency_sum += latency
        net.message_latency_max = max(net.message_latency_max, latency)
        int64s(net.message_histogram)[histogram_bin(latency)] += 1
    int32s(net.free_message)[net.free_messages] = m
    net.free_messages += 1


@c_kernel(HOOK_SIGNATURE)
def track_messages(net: Net, event: int, a: int, b: int) -> int:
    """Follow messages of several packets: a hook `messages`."""
    if event == CREATED:
        begin_packet(net, a, b)
    elif event == ARRIVED:
        end_packet(net, a, b)
    elif event == LOST:
        message_at(net, int32s(net.packet_message)[a]).lost = 1
        end_packet(net, a, b)
    return 0
