"""Synthetic workloads: who sends packets to whom, step by step."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.workload import SyntheticWorkload
from hopforge.model.topology import Topology
from hopforge.sim.traffic.packet_stream import CHUNK_PACKETS, Chunk, PacketStream, WorkloadError

__all__ = ["SYNTHETIC", "neighbours", "permutation"]

MAX_PAIRS = 1 << 29


def _rounds_of(partner: Callable[[int, int], NDArray[np.integer]], steps: int, hosts: int) -> Iterator[Chunk]:
    """Yield packets step by step, in each step one from each host in increasing number; a negative partner: none.

    `partner(start, count)` gives int[count, hosts], the destinations of steps start … start + count − 1.
    """
    source = np.arange(hosts, dtype=np.int32)
    count = max(1, CHUNK_PACKETS // hosts)
    for start in range(0, steps, count):
        block = partner(start, min(count, steps - start)).astype(np.int32)
        keep = (block >= 0) & (block != source)
        yield np.broadcast_to(source, block.shape)[keep], block[keep]


def _uniform(config: SyntheticWorkload, topology: Topology, seed: int) -> PacketStream:
    hosts, steps = topology.hosts, config.packets_per_host

    def chunks() -> Iterator[Chunk]:
        rng = np.random.default_rng([seed, 2])
        others = np.arange(hosts)

        def partner(start: int, count: int) -> NDArray[np.integer]:
            drawn = rng.integers(0, hosts - 1, size=(count, hosts))
            return drawn + (drawn >= others)

        yield from _rounds_of(partner, steps, hosts)

    return PacketStream("uniform", hosts * steps, chunks, {"packets_per_host": steps})


def _all_to_all(config: SyntheticWorkload, topology: Topology, seed: int) -> PacketStream:
    hosts = topology.hosts
    others = np.arange(hosts)
    if config.order == "random" and hosts * (hosts - 1) > MAX_PAIRS:
        raise WorkloadError(
            f"workload.order: random order of {hosts} hosts has more than {MAX_PAIRS} pairs; use kind: uniform"
        )

    def cyclic() -> Iterator[Chunk]:
        def partner(start: int, count: int) -> NDArray[np.integer]:
            offset = 1 + (start + np.arange(count)) % (hosts - 1)
            return (others + offset[:, None]) % hosts

        yield from _rounds_of(partner, config.rounds * (hosts - 1), hosts)

    def shuffled() -> Iterator[Chunk]:
        rng = np.random.default_rng([seed, 2])
        for _ in range(config.rounds):
            offset = rng.permuted(np.tile(np.arange(1, hosts, dtype=np.int32), (hosts, 1)), axis=1)

            def partner(start: int, count: int, offset: NDArray[np.int32] = offset) -> NDArray[np.integer]:
                return (others + offset[:, start:start + count].T) % hosts

            yield from _rounds_of(partner, hosts - 1, hosts)

    total = config.rounds * hosts * (hosts - 1)
    chunks = cyclic if config.order == "cyclic" else shuffled
    return PacketStream(f"all-to-all ({config.order})", total, chunks, {"rounds": config.rounds})


def _bits(name: str, hosts: int, even: bool = False) -> int:
    bits = hosts.bit_length() - 1
    if hosts != 1 << bits or (even and bits % 2):
        kind = "power of four" if even else "power of two"
        raise WorkloadError(f"workload.permutation: {name} needs a {kind} of hosts, not {hosts}")
    return bits


def permutation(name: str, topology: Topology, seed: int) -> NDArray[np.int64]:
    """Destination of each host in a permutation pattern.

    With host number x of b bits: transpose swaps the halves, bit_reverse the order of the bits, bit_complement inverts
    all, shuffle rotates left by one, butterfly swaps the first and the last bit (Dally and Towles, "Principles and
    Practices of Interconnection Networks", 2004, table 3.1). tornado moves ⌈k/2⌉ − 1 on in every dimension of a mesh or
    torus; elsewhere it moves ⌈hosts/2⌉ − 1 host numbers on.

    Returns
    -------
    ndarray, int64[host]

    Raises
    ------
    WorkloadError
        A bit permutation on a number of hosts that is not a power of two (transpose: of four).
    """
    hosts = topology.hosts
    x = np.arange(hosts, dtype=np.int64)
    if name == "random":
        return np.random.default_rng([seed, 2]).permutation(hosts).astype(np.int64)
    if name == "tornado":
        if topology.kind not in ("mesh", "torus"):
            return (x + (hosts + 1) // 2 - 1) % hosts
        router, stride, target = topology.host_router.astype(np.int64), 1, np.zeros(hosts, np.int64)
        for radix in topology.params["radices"]:
            target += (router // stride + (radix + 1) // 2 - 1) % radix * stride
            stride *= radix
        terminals = topology.params["hosts_per_router"]
        return target * terminals + topology.host_port
    bits = _bits(name, hosts, even=name == "transpose")
    if bits == 0:
        return x
    if name == "transpose":
        return (x >> bits // 2) | (x << bits // 2) & (hosts - 1)
    if name == "bit_complement":
        return hosts - 1 - x
    if name == "shuffle":
        return (x << 1) & (hosts - 1) | x >> (bits - 1)
    if name == "butterfly":
        low, high = x & 1, x >> (bits - 1) & 1
        return x if bits == 1 else x & ~np.int64(1 | 1 << (bits - 1)) | low << (bits - 1) | high
    assert name == "bit_reverse", name
    return sum(((x >> i & 1) << (bits - 1 - i) for i in range(bits)), np.zeros(hosts, np.int64))


def _permutation(config: SyntheticWorkload, topology: Topology, seed: int) -> PacketStream:
    target = permutation(config.permutation, topology, seed)
    steps = config.packets_per_host
    moving = int(np.count_nonzero(target != np.arange(topology.hosts)))

    def chunks() -> Iterator[Chunk]:
        yield from _rounds_of(lambda start, count: np.tile(target, (count, 1)), steps, topology.hosts)

    params = {"packets_per_host": steps, "silent_hosts": topology.hosts - moving}
    return PacketStream(f"permutation ({config.permutation})", moving * steps, chunks, params)


def neighbours(topology: Topology) -> list[list[int]]:
    """Neighbours of each host: the hosts of the same terminal number at directly linked routers, in port order.

    Where no two routers with hosts are linked (fat trees), host i has the neighbours i + 1 and i − 1 (modulo hosts).
    """
    found: list[list[int]] = []
    for host in range(topology.hosts):
        router, port = int(topology.host_router[host]), int(topology.host_port[host])
        peers = topology.peer_router[router]
        near = dict.fromkeys(int(topology.host_at[peer, port]) for peer in peers[peers >= 0])
        found.append([other for other in near if other >= 0 and other != host])
    if not any(found):
        return [list(dict.fromkeys([(host + 1) % topology.hosts, (host - 1) % topology.hosts]))
                for host in range(topology.hosts)]
    return found


def _neighbour(config: SyntheticWorkload, topology: Topology, seed: int) -> PacketStream:
    near = neighbours(topology)
    steps = config.packets_per_host
    most = max(map(len, near))
    degree = np.array([max(1, len(hosts)) for hosts in near])
    table = np.full((most, topology.hosts), -1, np.int64)
    for host, others in enumerate(near):
        table[:len(others), host] = others

    def partner(start: int, count: int) -> NDArray[np.integer]:
        turn = (start + np.arange(count))[:, None] % degree
        return table[turn, np.arange(topology.hosts)]

    moving = sum(bool(hosts) for hosts in near)
    return PacketStream(
        "neighbour", moving * steps, lambda: _rounds_of(partner, steps, topology.hosts), {"packets_per_host": steps}
    )


#: kind of a synthetic workload → its packets
SYNTHETIC: dict[str, Callable[[SyntheticWorkload, Topology, int], PacketStream]] = {
    "uniform": _uniform,
    "all_to_all": _all_to_all,
    "permutation": _permutation,
    "neighbour": _neighbour,
}
