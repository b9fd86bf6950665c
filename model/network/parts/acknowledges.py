"""Acknowledges that go back router by router, one hop at a time (docs/definitions/acknowledges.md)."""

from typing import Any

from numba import int64

from hopforge.model.dqn.acknowledges import FORWARD, HOME, NO_ENTRY, acknowledge, leave_own, leave_queue, take_own
from hopforge.model.dqn.dense import part
from hopforge.model.dqn.headers import deliver
from hopforge.model.dqn.tables import COUNTERS, FIELDS, NONE, TIME, Tables, add_entry, expire
from hopforge.model.kernel.compile import c_kernel
from hopforge.model.kernel.memory import int32s, int64s
from hopforge.model.network.core.hooks import DECIDE, DELIVERED, HEAD_HERE, HOOK_SIGNATURE, REWARDED, TAKEN, call_hook
from hopforge.model.network.core.layouts import ACKNOWLEDGES
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.packet_ends import free_record
from hopforge.model.network.core.records import input_vc, output_vc, packet_at, replier_at, trail_at
from hopforge.model.network.parts.class_counts import count_class
from hopforge.model.network.parts.number_order import LOW, sort
from hopforge.model.network.parts.second_sender import queue_packet, send_queued
from hopforge.model.network.parts.trail_tables import entry_port, packet_name, rules_of, tables_of, wants_acknowledge

_TABLE_FULL = COUNTERS.index("table_full")
#: an input VC from which on it is a router: that of a packet's destination, which it has only passed
_LATE = 1 << 30


@part
def head_came(net: Net, n: int, p: int) -> None:
    """Note that the head of packet `p` stands in input VC `n` from this cycle on."""
    packet, now = packet_at(net, p), int64(net.cycle)
    if packet.dst >= net.hosts:
        return
    router, port, trail = int64(input_vc(net, n).router), entry_port(net, n), trail_at(net, p)
    home = int64(int32s(net.trail_home)[packet.dst])
    at_end = home == router
    if trail.passed != 0 and port != NONE and wants_acknowledge(net, packet):
        # it has only passed the router of its destination: the entry there comes behind those of this cycle
        int64s(net.trail_head)[net.heads_here] = ((_LATE + home) << 32) | p
        net.heads_here += 1
    trail.passed = at_end
    if at_end:
        trail.stamp, trail.port = now + int64s(net.trail_skew)[router], port
    if net.agent != 0:
        expire(tables_of(net), now)
        call_hook(net.agent, net, HEAD_HERE, n, p)
    elif not at_end and wants_acknowledge(net, packet):
        int64s(net.trail_head)[net.heads_here] = (n << 32) | p
        net.heads_here += 1


@part
def bring_to_its_time(tables: Tables, router: int) -> None:
    """Move the last entry of a router before those that are younger."""
    entries, place = tables.entries[router], tables.fill[router] - 1
    while place > 0 and entries[place - 1, TIME] > entries[place, TIME]:
        for field in range(FIELDS):
            entries[place - 1, field], entries[place, field] = entries[place, field], entries[place - 1, field]
        place -= 1


@part
def enter_heads(net: Net, tables: Any, now: int) -> None:
    """Make the entries of the heads that came in this cycle, by router and port, then those that are late."""
    heads = int64s(net.trail_head)
    sort(heads, int64(net.heads_here))
    for k in range(net.heads_here):
        n, p = heads[k] >> 32, heads[k] & LOW
        late = n >= _LATE
        router = n - _LATE if late else int64(input_vc(net, n).router)
        if tables.fill[router] >= net.trail_depth:
            tables.counts[_TABLE_FULL] += 1
            continue
        name = packet_name(packet_at(net, p))
        if not late:
            add_entry(tables, router, name, now, 0, NONE, entry_port(net, n))
            continue
        trail = trail_at(net, p)
        add_entry(tables, router, name, int64(trail.stamp) - tables.skew[router], 0, NONE, int64(trail.port))
        bring_to_its_time(tables, router)
    net.heads_here = 0


@part
def send_hop(net: Net, p: int, router: int, port: int, kept: int, now: int) -> None:
    """Let record `p` be that of an acknowledge that waits in `router` to leave through `port`, for one hop."""
    packet, h = packet_at(net, p), net.hosts + router
    behind = int64(output_vc(net, (router * net.ports + port) * net.vcs).target)
    packet.src = h
    packet.dst = net.hosts + input_vc(net, behind).router
    packet.length = net.ack_flits
    packet.part = port
    packet.created = now + net.ack_delay
    packet.number = replier_at(net, h).made
    replier_at(net, h).made += 1
    trail_at(net, p).kept = kept
    net.flits_added += net.ack_flits
    queue_packet(net, h, p)


@part
def note_taken(net: Net, p: int) -> None:
    """Keep packet `p`, whose tail was taken in this cycle, for `keep_tables`."""
    int64s(net.trail_taken)[net.acks_here] = (int64(packet_at(net, p).dst) << 32) | p
    net.acks_here += 1


@part
def make_acknowledge(net: Net, p: int, now: int) -> int:
    """Let packet `p`, which has arrived, be acknowledged; 1 if its record is now that of the acknowledge."""
    packet, trail = packet_at(net, p), trail_at(net, p)
    port = int64(trail.port)
    if not deliver(tables_of(net), wants_acknowledge(net, packet), port):
        return 0
    trail.of, trail.made, trail.in_network = packet_name(packet), now, 0
    net.acks_alive += 1
    note_taken(net, p)
    return 1


@part
def send_own(net: Net, tables: Any, router: int, p: int, now: int) -> None:
    """Send acknowledge `p` of a packet that has arrived at `router` on its first hop, if there is a place for it."""
    if take_own(tables, rules_of(net), router):
        send_hop(net, p, router, int64(trail_at(net, p).port), 0, now)
        return
    net.acks_alive -= 1
    free_record(net, p)


@part
def take_acknowledge(net: Net, tables: Any, router: int, p: int, now: int) -> None:
    """Look for the entry of acknowledge `p`, which has come whole to `router`, and send it on."""
    trail = trail_at(net, p)
    trail.in_network += now - packet_at(net, p).sent
    result, port, episode, reward = acknowledge(tables, rules_of(net), router, int64(trail.of), int64(trail.stamp))
    if episode != NONE and net.agent != 0:
        net.reward = reward
        call_hook(net.agent, net, REWARDED, router, int64(episode))
    if result == FORWARD:
        send_hop(net, p, router, port, 1, now)
        return
    if result == NO_ENTRY:
        net.acks_late = max(int64(net.acks_late), now - trail.made)
    if result == HOME:
        count_class(net, ACKNOWLEDGES, now - trail.made, int64(trail.in_network))
    net.acks_alive -= 1
    free_record(net, p)


@part
def keep_tables(net: Net, now: int) -> None:
    """Do in all routers what the packets of this cycle ask for, and send acknowledges."""
    tables = tables_of(net)
    expire(tables, now)
    if net.heads_here != 0:
        enter_heads(net, tables, now)
    taken = int64s(net.trail_taken)
    sort(taken, int64(net.acks_here))
    for k in range(net.acks_here):  # by host, service hosts last
        h, p = taken[k] >> 32, taken[k] & LOW
        if h < net.hosts:
            send_own(net, tables, int64(int32s(net.trail_home)[h]), p, now)
        else:
            take_acknowledge(net, tables, h - net.hosts, p, now)
    net.acks_here = 0
    for router in range(net.routers):
        replier = replier_at(net, net.hosts + router)
        if replier.packet >= 0 or replier.first >= 0:
            p = send_queued(net, net.hosts + router, now)
            if p < 0:
                continue
            if trail_at(net, p).kept != 0:
                leave_queue(tables, router)
            else:
                leave_own(tables, router)
    if net.undecided != 0:
        call_hook(net.agent, net, DECIDE, now, now)


@c_kernel(HOOK_SIGNATURE)
def follow_trails(net: Net, event: int, a: int, b: int) -> int:
    """Keep the tables and send acknowledges: the hook `acks`."""
    if event == HEAD_HERE:
        head_came(net, a, b)
    elif event == DELIVERED:
        return make_acknowledge(net, a, b)
    elif event == TAKEN:
        note_taken(net, a)
    else:
        keep_tables(net, b)
    return 0
