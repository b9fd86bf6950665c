"""The twin of a network on a board: golden routers, links and hosts with the same packets."""

from dataclasses import dataclass
from typing import NamedTuple

from hopforge.gen.design.configured import NetworkDesign
from hopforge.model.board.random_words import host_seed, next_word
from hopforge.model.lookup.csr import WORD_BITS
from hopforge.model.router.configured import network_links
from hopforge.model.router.flit import Flit
from hopforge.model.router.links import topology_hosts
from hopforge.model.router.network import HostModel, NetworkModel, Packet
from hopforge.model.router.params import RouterParams

__all__ = ["HostRun", "NetworkRun", "PacketRequests", "twin_of_network"]

_WORD = (1 << WORD_BITS) - 1
_STUCK = 100_000


@dataclass(frozen=True)
class PacketRequests:
    """What a run sends: registers SEED, COUNT, PERIOD, LENGTHS."""

    seed: int
    count: int
    period: int
    lengths: int


class HostRun(NamedTuple):
    """Words of a host behind a run, in the order of their addresses."""

    sent: int
    received: int
    packets: int
    wrong: int
    checksum: int


class NetworkRun(NamedTuple):
    """What a run gave.

    Attributes
    ----------
    cycles : int
        CYCLES.
    hosts : tuple of HostRun
        Every host.
    flits_in, flits_out, drops : tuple of tuple of int
        Counters of the routers, by router and port.
    """

    cycles: int
    hosts: tuple[HostRun, ...]
    flits_in: tuple[tuple[int, ...], ...]
    flits_out: tuple[tuple[int, ...], ...]
    drops: tuple[tuple[int, ...], ...]


def twin_of_network(design: NetworkDesign, requests: PacketRequests) -> NetworkRun:
    """Return what a run of the network on a board gives.

    Raises
    ------
    RuntimeError
        Packets that do not arrive.
    """
    ends = topology_hosts(design.topology)
    network = NetworkModel(design.params, network_links(design.config, design.topology))
    hosts = [
        HostModel(design.params[end.router], _packets(design.params[end.router], number, len(ends), requests))
        for number, end in enumerate(ends)
    ]
    cycle = last = 0
    while True:
        sent = sum(len(host.sent) for host in hosts)
        received = sum(len(host.received) for host in hosts)
        if sent == received and all(host.idle for host in hosts):
            break
        visible = network.visible()
        given = {end: host.step(cycle, visible[end.router][end.port]) for end, host in zip(ends, hosts, strict=True)}
        network.step(given)
        cycle += 1
        if sum(len(host.received) for host in hosts) > received:
            last = cycle
        if cycle - last > _STUCK + requests.count * requests.period:
            raise RuntimeError(f"{sent - received} flits have not arrived after {cycle} cycles")
    runs = tuple(_host_run(host, number) for number, host in enumerate(hosts))
    routers = network.routers
    counts = [tuple(tuple(getattr(router, name)) for router in routers) for name in ("flits_in", "flits_out", "drops")]
    return NetworkRun(last, runs, counts[0], counts[1], counts[2])


def _packets(params: RouterParams, number: int, hosts: int, requests: PacketRequests) -> list[Packet]:
    """Return the packets of a host."""
    word = host_seed(requests.seed, number)
    packets = []
    for k in range(requests.count):
        place = (word & 0xFF) * (hosts - 1) >> 8
        destination = place + (place >= number)
        flits = 1 + (word >> 8 & 7 & requests.lengths)
        tag = k % (1 << params.tag_bits)
        fields = [(destination, params.address_bits), (number, params.address_bits), (tag, params.tag_bits)]
        if params.switching == "vct":
            fields.append((flits, params.length_bits))
        body = [(number, params.address_bits), (tag, params.tag_bits), (word, WORD_BITS)]
        width = params.width_bits
        packets.append(Packet(k * max(1, requests.period), _joined(fields, width), flits, _joined(body, width)))
        word = next_word(word)
    return packets


def _joined(fields: list[tuple[int, int]], width_bits: int) -> int:
    """Return fields of (value, bits) side by side, the first in the lowest bits, cut off at the width."""
    data = at = 0
    for value, bits in fields:
        data |= (value & (1 << bits) - 1) << at
        at += bits
    return data & (1 << width_bits) - 1


def _host_run(host: HostModel, number: int) -> HostRun:
    """Count what a host took, and check it as the checker does."""
    check = wrong = packets = 0
    inside: dict[int, int] = {}  # VC -> source and tag of the packet on it
    for _, flit in host.received:
        wrong += _refused(host.params, inside, flit, number)
        packets += flit.is_tail
        fold, data = flit.kind, flit.data
        while data:
            fold ^= data & _WORD
            data >>= WORD_BITS
        check = ((check << 1 | check >> WORD_BITS - 1) & _WORD) ^ fold
    return HostRun(len(host.sent), len(host.received), packets, wrong, check)


def _refused(params: RouterParams, inside: dict[int, int], flit: Flit, number: int) -> bool:
    bits = params.address_bits + params.tag_bits
    label = flit.data & (1 << bits) - 1
    if flit.is_head:
        refused = flit.data & (1 << params.address_bits) - 1 != number or flit.vc in inside
        inside[flit.vc] = flit.data >> params.address_bits & (1 << bits) - 1
    else:
        refused = inside.get(flit.vc) != label
    if flit.is_tail:
        inside.pop(flit.vc, None)
    return refused
