"""What surrounds one router: senders that keep to their credits, receivers that return credits when they like."""

from typing import Any

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from hopforge.model.kernel.array_record import ArrayRecord
from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import inner
from hopforge.model.kernel.memory import int32s
from hopforge.model.kernel.rng import next_below, next_float, next_word
from hopforge.model.network.core.kinds import AHEAD_ENGINES
from hopforge.model.network.core.records import input_port, packet_at
from hopforge.model.network.kernel import KERNEL
from hopforge.model.router.params import RouterParams
from hopforge.sim.drive.reachable_routes import reachable_routes
from hopforge.sim.drive.router_traffic import (
    C_CLEAR,
    C_ENABLE,
    I_CREDIT_VALID,
    I_CREDIT_VC,
    I_DATA,
    I_KIND,
    I_VALID,
    I_VC,
    O_CREDIT_VALID,
    O_CREDIT_VC,
    O_DATA,
    O_DROPPED,
    O_DROPS,
    O_KIND,
    O_VALID,
    O_VC,
    WORD_BITS,
    RouterTraffic,
    data_words,
)
from hopforge.sim.drive.single_router import give_credit, give_flit, one_of, take_credits, take_flits

#: cycles without a move after which the golden router is taken to be stuck
STUCK_CYCLES = 1 << 15

# integers of the surroundings
(CYCLES, DONE, CLOSING, QUIET, SERIAL, LONGEST, WIDTH, ADDRESS, TAG, LENGTH, LAST_MOVE, ROUTES, CLEAR,
 ENABLE, ROUTE, PORT, CLASSES, ENTROPY, TABLE, COUNT) = range(20)  # fmt: skip
# of a sender's port
(_PHASE, _WHERE, _TARGET, _LENGTHS, _IN_COUNT) = range(5)
# of an input VC: packet being sent, its length, flits of it that are sent, credits
(_PACKET, _FLITS, _SENT, _CREDITS, _VC_COUNT) = range(5)
# of a record of a packet: serial number, flits that have come out, route in the next router that an engine answered
(_NUMBER, _OUT, NEXT_ROUTE, _PACKET_COUNT) = range(4)
#: what rates and kindness are drawn from
RATES = np.array([0.02, 0.2, 0.5, 0.8, 1.0, 1.0])
_KINDNESS = np.array([0.0, 0.1, 0.4, 0.8, 1.0, 1.0])
#: with a rule of VCs: share of the packets that ask for any route, most of which the rule forbids, and of those that
#: are begun although nothing leads on from their input VC
_ANY_ROUTE, _NO_WAY = 0.05, 0.01


class Around(ArrayRecord):
    """Senders and receivers.

    Per port ``senders``, ``rates`` (of packets and of flits), ``receivers`` (cycles left of the phase, VCs that get no
    credit), ``kindness``; per input VC ``vcs``; per output VC credits ``owed``; by record of the pool ``packets``,
    ``heads`` (data words); ``visible`` flits, their VCs and credits on the outputs; ``addresses`` of destinations;
    the share of ``unroutable`` packets; ``ahead``: field `route` of heads that leave, by destination. Where packets
    take one of several ports, ``behind``: the router behind each output (-1: none), and ``entries``: ports and class
    of its routes, by output and destination. With a rule of VCs, ``reachable``: the routes that each input VC can take,
    from ``first_reachable`` on.
    """

    integers: NDArray[np.int64]
    streams: NDArray[np.uint64]
    senders: NDArray[np.int64]
    rates: NDArray[np.float64]
    receivers: NDArray[np.int64]
    kindness: NDArray[np.float64]
    vcs: NDArray[np.int64]
    owed: NDArray[np.int64]
    packets: NDArray[np.int64]
    heads: NDArray[np.uint64]
    visible: NDArray[np.int64]
    addresses: NDArray[np.int64]
    unroutable: float
    ahead: NDArray[np.uint64]
    behind: NDArray[np.int64]
    entries: NDArray[np.uint64]
    first_reachable: NDArray[np.int64]
    reachable: NDArray[np.int64]


def surroundings(params: RouterParams, traffic: RouterTraffic, pool: int) -> Around:
    """Return senders and receivers at their start; `pool`: records of packets in the router's network."""
    p = params
    room = min(p.credits(o) for o in range(p.ports))
    longest = min(room, (1 << p.length_bits) - 1, 12) if p.switching == "vct" else min(2 * p.buffer_flits + 3, 16)
    longest = longest if traffic.longest_flits is None else min(longest, traffic.longest_flits)
    integers = np.zeros(COUNT, np.int64)
    for name, value in (
        (CYCLES, traffic.cycles), (LONGEST, longest), (WIDTH, p.width_bits), (ADDRESS, p.address_bits),
        (TAG, p.tag_bits), (LENGTH, p.length_bits if p.switching == "vct" else 0), (ROUTES, len(p.routes)),
        (CLEAR, traffic.clear_cycles), (ENABLE, 1), (ROUTE, p.route_bits), (PORT, p.port_field_bits),
        (CLASSES, p.classes), (ENTROPY, p.entropy_bits), (TABLE, int(p.rc == "table")),
    ):  # fmt: skip
        integers[name] = value
    vcs = np.zeros((p.ports * p.vcs, _VC_COUNT), np.int64)
    vcs[:, _PACKET], vcs[:, _CREDITS] = -1, p.buffer_flits
    ahead = () if p.lookahead is None else p.lookahead.next_routes
    known = np.random.default_rng((traffic.seed, 12)).integers(0, 1 << p.address_bits, traffic.pool)
    known[::2] &= 0xFF
    first_reachable, reachable = reachable_routes(p)
    return Around(
        integers=integers,
        streams=np.random.SeedSequence((traffic.seed, 11)).generate_state(2, np.uint64).astype(np.uint64),
        senders=np.zeros((p.ports, _IN_COUNT), np.int64),
        rates=np.ones((p.ports, 2)),
        receivers=np.zeros((p.ports, 2), np.int64),
        kindness=np.ones(p.ports),
        vcs=vcs,
        owed=np.zeros(p.ports * p.vcs, np.int64),
        packets=np.zeros((pool, _PACKET_COUNT), np.int64),
        heads=np.zeros((pool, data_words(p)), np.uint64),
        visible=np.zeros((3, p.ports), np.int64),
        addresses=known if p.rc == "lookup" else np.arange(max(1, len(p.routes))),
        unroutable=traffic.unroutable,
        ahead=np.array([*ahead, *[0] * (len(p.routes) - len(ahead) + 1)], np.uint64),
        **_behind(p),
        first_reachable=first_reachable,
        reachable=reachable,
    )


def _behind(params: RouterParams) -> dict[str, NDArray[Any]]:
    """Return what is known of the routers behind the outputs; empty without a spread."""
    behind = () if params.lookahead is None else params.lookahead.behind
    entries = np.zeros((len(behind), max(1, len(params.routes)), 2), np.uint64)
    for o, each in enumerate(behind):
        for dst, route in enumerate(each.routes[: entries.shape[1]] if each is not None else ()):
            entries[o, dst] = route.ports, route.route_class
    return {"behind": np.array([-1 if each is None else each.router for each in behind], np.int64), "entries": entries}


@inner
def mask_below(width):  # type: ignore[no-untyped-def]
    """Return a word of ones below `width`."""
    return ~uint64(0) if width >= WORD_BITS else (uint64(1) << uint64(width)) - uint64(1)


@inner
def _put(words, position, width, value):  # type: ignore[no-untyped-def]
    """Set bits of a vector of words that are 0 so far."""
    while width > 0:
        at, shift = position // WORD_BITS, position % WORD_BITS
        part = min(width, WORD_BITS - shift)
        words[at] |= (value & mask_below(part)) << uint64(shift)
        value = value >> uint64(part) if part < WORD_BITS else uint64(0)
        position += part
        width -= part


@inner
def _replace(row, position, width, value):  # type: ignore[no-untyped-def]
    """Set bits of the data of a flit."""
    while width > 0:
        at, shift = position // WORD_BITS, position % WORD_BITS
        part = min(width, WORD_BITS - shift)
        bits = mask_below(part) << uint64(shift)
        row[at] = int64((uint64(row[at]) & ~bits) | ((value & mask_below(part)) << uint64(shift)))
        value = value >> uint64(part) if part < WORD_BITS else uint64(0)
        position += part
        width -= part


@inner
def _reachable(net, a, n):  # type: ignore[no-untyped-def]
    """Return a route that heads on input VC `n` can bring along, -1: any."""
    first, last = a.first_reachable[n], a.first_reachable[n + 1]
    if len(a.reachable) == 0 or first == last or next_float(a.streams, 0) < _ANY_ROUTE:
        return int64(-1)
    return a.reachable[first + next_below(a.streams, 0, last - first)]


@inner
def _bring(net, a, packet, head, position, n):  # type: ignore[no-untyped-def]
    """Let a head bring a route along: one in as many as there are ports has none, a few have an unknown class."""
    s = a.integers
    packet.user0 = next_below(a.streams, 0, net.ports + 1)
    packet.user1 = next_below(a.streams, 0, s[CLASSES])
    if packet.user0 < net.ports and input_port(net, n // net.vcs).carried != 0:
        route = _reachable(net, a, n)
        if route >= 0:
            packet.user0, packet.user1 = route & 0xFFFF, route >> 16
    if next_float(a.streams, 0) < a.unroutable:
        packet.user1 = next_below(a.streams, 0, 1 << (s[ROUTE] - s[PORT]))
    _put(head, position, s[ROUTE], uint64(packet.user0 | packet.user1 << s[PORT]))


@inner
def _mixed(serial, index, word):  # type: ignore[no-untyped-def]
    """Return a word that looks random (the output function of SplitMix64)."""
    x = uint64(serial) * uint64(0x9E3779B97F4A7C15) + uint64(index) * uint64(0xD1B54A32D192ED03)
    x += uint64(word) * uint64(0x8CB92BA72F3D8DD7) + uint64(1)
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@inner
def _data(a, slot, index, row):  # type: ignore[no-untyped-def]
    """Write the data of a flit to the words of `row`."""
    for word in range(a.heads.shape[1]):
        if index == 0:
            row[word] = int64(a.heads[slot, word])
        else:
            row[word] = int64(
                _mixed(a.packets[slot, _NUMBER], index, word) & mask_below(a.integers[WIDTH] - WORD_BITS * word)
            )


@inner
def _draw_length(a, kind):  # type: ignore[no-untyped-def]
    longest = a.integers[LONGEST]
    if kind == 0:
        return 1
    return longest if kind == 2 else 1 + next_below(a.streams, 0, longest)


@inner
def _new_packet(net, a, sender, n):  # type: ignore[no-untyped-def]
    """Create a packet for input VC `n`; returns its record and its length."""
    s, streams, addresses = a.integers, a.streams, a.addresses
    net.free_packets -= 1
    slot = int64(int32s(net.free_packet)[net.free_packets])
    s[SERIAL] += 1
    length = _draw_length(a, sender[_LENGTHS])
    choice = (sender[_TARGET] if sender[_WHERE] == 0 else next_below(streams, 0, len(addresses))) % len(addresses)
    if s[TABLE] and len(a.reachable) > 0 and input_port(net, n // net.vcs).carried == 0:
        first, last = a.first_reachable[n], a.first_reachable[n + 1]
        if first < last and next_float(streams, 0) >= _ANY_ROUTE:
            choice = a.reachable[first + choice % (last - first)]
    address = uint64(addresses[choice])
    packet = packet_at(net, slot)
    packet.dst = choice
    if next_float(streams, 0) < a.unroutable:
        address = next_word(streams, 0) & mask_below(s[ADDRESS])
        packet.dst = address if address < uint64(s[ROUTES]) else -1
    packet.src = int64(uint64(s[SERIAL]) & mask_below(s[ADDRESS]))
    packet.length = length
    packet.number = s[SERIAL]
    a.packets[slot, _NUMBER] = s[SERIAL]
    a.packets[slot, _OUT] = 0
    head = a.heads[slot]
    for word in range(len(head)):
        head[word] = uint64(0)
    _put(head, 0, s[ADDRESS], address)
    _put(head, s[ADDRESS], s[ADDRESS], uint64(s[SERIAL]))
    _put(head, 2 * s[ADDRESS], s[TAG], next_word(streams, 0))
    used = 2 * s[ADDRESS] + s[TAG]
    _put(head, used, s[LENGTH], uint64(length))
    used += s[LENGTH]
    if s[ROUTE] > 0:
        _bring(net, a, packet, head, used, n)
        used += s[ROUTE]
    if s[ENTROPY] > 0:
        packet.part = int64(next_word(streams, 0) & mask_below(s[ENTROPY]))
        _put(head, used, s[ENTROPY], uint64(packet.part))
        used += s[ENTROPY]
    while used < s[WIDTH]:
        part = min(32, s[WIDTH] - used)
        _put(head, used, part, next_word(streams, 0))
        used += part
    return slot, length


@inner
def _send(net, a, i, row, now):  # type: ignore[no-untyped-def]
    """Perhaps put a flit on input `i`."""
    s, streams, rates, sender = a.integers, a.streams, a.rates, a.senders[i]
    if sender[_PHASE] == 0:
        sender[_PHASE] = 20 + next_below(streams, 0, 300)
        sender[_WHERE] = next_below(streams, 0, 3)
        sender[_TARGET] = next_below(streams, 0, 1 << 20)
        sender[_LENGTHS] = next_below(streams, 0, 3)
        rates[i, 0] = RATES[next_below(streams, 0, len(RATES))]
        rates[i, 1] = RATES[next_below(streams, 0, len(RATES))]
    sender[_PHASE] -= 1
    if s[CLOSING] == 0 and next_float(streams, 0) >= rates[i, 1]:
        return
    count = net.vcs
    first = next_below(streams, 0, count)
    for k in range(count):
        v = (first + k) % count
        n = i * count + v
        vc = a.vcs[n]
        if vc[_CREDITS] == 0:
            continue
        if vc[_PACKET] < 0:
            if s[CLOSING] or next_float(streams, 0) >= rates[i, 0]:
                continue
            closed = len(a.reachable) > 0 and a.first_reachable[n] == a.first_reachable[n + 1]
            if closed and a.unroutable < 0.25 and next_float(streams, 0) >= _NO_WAY:
                continue  # nothing leads on from here, and few packets shall be dropped
            vc[_PACKET], vc[_FLITS] = _new_packet(net, a, sender, n)
            vc[_SENT] = 0
        slot = vc[_PACKET]
        kind = int64(vc[_SENT] == 0) + 2 * int64(vc[_SENT] == vc[_FLITS] - 1)
        row[I_VALID], row[I_KIND], row[I_VC] = 1, kind, v
        _data(a, slot, vc[_SENT], row[I_DATA:])
        give_flit(net, n, slot, kind, now)
        vc[_SENT] += 1
        vc[_CREDITS] -= 1
        if vc[_SENT] == vc[_FLITS]:
            vc[_PACKET] = -1
        s[LAST_MOVE] = now
        return


@inner
def _return(net, a, o, row, now):  # type: ignore[no-untyped-def]
    """Perhaps return a credit to output `o`."""
    s, streams, receiver, count = a.integers, a.streams, a.receivers[o], net.vcs
    if receiver[0] == 0:
        receiver[0] = 20 + next_below(streams, 1, 300)
        a.kindness[o] = _KINDNESS[next_below(streams, 1, len(_KINDNESS))]
        receiver[1] = next_below(streams, 1, 1 << count) if next_below(streams, 1, 3) == 0 else 0
    receiver[0] -= 1
    if s[CLOSING] == 0 and next_float(streams, 1) >= a.kindness[o]:
        return
    first = next_below(streams, 1, count)
    for k in range(count):
        w = (first + k) % count
        m = o * count + w
        if a.owed[m] == 0 or (s[CLOSING] == 0 and receiver[1] >> w & 1):
            continue
        a.owed[m] -= 1
        row[I_CREDIT_VALID], row[I_CREDIT_VC] = 1, w
        give_credit(net, m, now)
        s[LAST_MOVE] = now
        return


@inner
def _chosen_behind(net, a, packet, o):  # type: ignore[no-untyped-def]
    """Return field `route` of a head that leaves by output `o`: what the router behind chooses."""
    if packet.dst < 0 or packet.dst >= a.entries.shape[1] or a.behind[o] < 0:
        return uint64(0)
    port = one_of(a.entries[o, packet.dst, 0], packet, int64(packet.dst), a.behind[o])
    number = net.ports if port == 0 else trailing_zeros(uint64(port))
    return uint64(number) | a.entries[o, packet.dst, 1] << uint64(a.integers[PORT])


@inner
def _observe(net, a, seen, now):  # type: ignore[no-untyped-def]
    """Write what stands on the outputs to `seen`, and let senders and receivers see it."""
    flits, flit_vcs, credits = a.visible[0], a.visible[1], a.visible[2]
    take_flits(net, now, flits, flit_vcs)
    take_credits(net, now, credits)
    for o in range(net.ports):
        row = seen[o]
        row[O_DROPS] = input_port(net, o).drops & 0xFFFFFFFF
        if flits[o] >= 0:
            slot, kind = flits[o] >> 2, flits[o] & 3
            row[O_VALID], row[O_KIND], row[O_VC] = 1, kind, flit_vcs[o]
            _data(a, slot, a.packets[slot, _OUT], row[O_DATA:])
            if kind & 1 and a.integers[ROUTE] > 0:
                s, dst = a.integers, packet_at(net, slot).dst
                if net.lookahead == AHEAD_ENGINES:
                    next_route = uint64(a.packets[slot, NEXT_ROUTE]) if input_port(net, o).carried else uint64(0)
                elif len(a.behind) > 0:
                    next_route = _chosen_behind(net, a, packet_at(net, slot), o)
                else:
                    next_route = a.ahead[dst] if dst >= 0 else uint64(0)
                _replace(row[O_DATA:], 2 * s[ADDRESS] + s[TAG] + s[LENGTH], s[ROUTE], next_route)
            a.packets[slot, _OUT] += 1
            a.owed[o * net.vcs + flit_vcs[o]] += 1
            if kind & 2:
                int32s(net.free_packet)[net.free_packets] = slot
                net.free_packets += 1
        if credits[o] >= 0:
            row[O_CREDIT_VALID], row[O_CREDIT_VC] = 1, credits[o]
            a.vcs[o * net.vcs + credits[o], _CREDITS] += 1


@inner
def _at_rest(net, a):  # type: ignore[no-untyped-def]
    """Return whether all packets are sent and all credits are back."""
    for n in range(net.input_vcs):
        if a.vcs[n, _PACKET] >= 0 or a.vcs[n, _CREDITS] != net.buffer or a.owed[n] > 0:
            return False
    return True


@inner
def around_cycle(route, pattern, net, a, row, control, seen):  # type: ignore[no-untyped-def]
    """Go through one cycle; returns whether router, senders and receivers have been at rest for a while."""
    now, s = int64(net.cycle), a.integers
    if now >= s[CYCLES]:
        s[CLOSING] = 1
    _observe(net, a, seen, now)
    for i in range(net.ports):
        _send(net, a, i, row[i], now)
        _return(net, a, i, row[i], now)
    for i in range(net.ports):
        seen[i, O_DROPPED] = -input_port(net, i).drops
    KERNEL(route, pattern, net, 1)
    control[C_ENABLE] = 1
    control[C_CLEAR] = next_below(a.streams, 1, s[CLEAR]) == 0
    for i in range(net.ports):
        seen[i, O_DROPPED] += input_port(net, i).drops
        if control[C_CLEAR]:
            input_port(net, i).drops = 0
    s[QUIET] = s[QUIET] + 1 if s[CLOSING] and _at_rest(net, a) else 0
    return s[QUIET] > 8 + net.router_credit_delay


@inner
def is_stuck(net, a):  # type: ignore[no-untyped-def]
    """Return whether nothing has moved for a long time at the end."""
    s = a.integers
    return s[CLOSING] and net.cycle - max(s[LAST_MOVE], s[CYCLES]) > STUCK_CYCLES
