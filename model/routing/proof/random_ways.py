"""Random ways of packets through a whole network: which kinds of channels wait for which there."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import int64, types, uint64
from numpy.typing import NDArray

from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import entry, inner
from hopforge.model.kernel.memory import floats, int32s, int64s
from hopforge.model.kernel.rng import next_below, seed_streams
from hopforge.model.network.core.candidates import blank_candidates, candidate_mask, candidate_need, candidate_port
from hopforge.model.network.core.layouts import PACKET, PACKET_RECORD
from hopforge.model.network.core.net_record import NET_RECORD, ROUTE_SIGNATURE
from hopforge.model.network.core.records import host_at, input_port, input_vc, output_vc, vc_in_port
from hopforge.model.network.core.state import NetState
from hopforge.model.network.core.user_code import refuse_mistake

#: most links of a way
_MOST_LINKS = 4096
#: most candidates of an answer that are put back
_ANSWERS = 4096
_I1, _U1 = types.Array(types.int64, 1, "C"), types.Array(types.uint64, 1, "C")


@inner
def _chosen_bit(streams: Any, mask: Any) -> int:
    """Random one of the bits of a mask that is not 0."""
    bits, rest = 0, mask
    while rest != uint64(0):
        rest &= rest - uint64(1)
        bits += 1
    for _ in range(next_below(streams, 0, bits)):
        mask &= mask - uint64(1)
    return trailing_zeros(mask)


@entry(int64(types.FunctionType(ROUTE_SIGNATURE), NET_RECORD, PACKET_RECORD, _I1, _U1, int64, _I1, int64, _I1))
def _walk_ways(
    route: Callable[..., int],
    net: Any,
    packet: Any,
    kinds: Any,
    streams: Any,
    ways: int,
    lengths: Any,
    count: int,
    seen: Any,
) -> int:
    """Follow `ways` packets; ``seen`` gets kind · count + kind of each channel and the next one, returns how many.

    -1: a packet finds no way on.
    """
    total, vcs, last = 0, int64(net.vcs), uint64((int64(1) << int64(net.vcs)) - 1)
    for _ in range(ways):
        src, dst = next_below(streams, 0, int64(net.hosts)), next_below(streams, 0, int64(net.hosts))
        packet.src, packet.dst = src, dst
        packet.length = lengths[next_below(streams, 0, len(lengths))]
        packet.phase, packet.via, packet.user0, packet.user1 = 0, -1, 0, 0
        v = _chosen_bit(streams, uint64(host_at(net, src).inject_mask | host_at(net, src).reply_mask))
        n, before = int64(host_at(net, src).input_vc) + v, int64(-1)
        for hops in range(_MOST_LINKS):
            packet.hops = hops
            port = input_port(net, input_vc(net, n).port)
            router = int64(port.router)
            blank_candidates(net, 0)
            found = route(
                router, int64(port.port), vc_in_port(net, input_vc(net, n)), packet, net, int32s(net.table),
                floats(net.memory), int64s(net.candidate),
            )  # fmt: skip
            if found <= 0:
                return -1
            packed = int64s(net.candidate)[next_below(streams, 0, found)]
            mask = uint64(candidate_mask(packed)) & last
            if mask == uint64(0):
                return -1
            m = (router * int64(net.ports) + candidate_port(packed)) * vcs + _chosen_bit(streams, mask)
            n = int64(output_vc(net, m).target)
            if n < 0 or candidate_need(packed) > int64(output_vc(net, m).depth):
                return -1
            if n >= int64(net.input_vcs):
                break
            if before >= 0:
                if total == len(seen):
                    return total
                seen[total] = kinds[before] * count + kinds[m]
                total += 1
            before = m
        else:
            return -1
    return total


def random_dependencies(
    relation: Any, state: NetState, kinds: NDArray[np.int64], count: int, lengths: NDArray[np.int64], ways: int
) -> NDArray[np.int64] | None:
    """Return which kinds follow on which in random ways through a network at cycle 0, which stays as it is.

    Parameters
    ----------
    relation : jitted function
        The routing.
    state : NetState
        The network.
    kinds : ndarray, int64[channel]
        Kind of each channel, below `count`.
    lengths : ndarray, int64
        Of packets.
    ways : int
        Packets from random hosts to random hosts; each takes random ones of what it is offered.

    Returns
    -------
    ndarray, int64
        kind · count + next kind, each once; None: a packet found no way.
    """
    packet = np.zeros(1, PACKET)[0]
    seen = np.zeros(64 * ways, np.int64)
    # answers stand at the beginning of `candidate`; all of it can be gigabytes
    kept = {"router_rng": None, "memory": None, "table": None, "candidate": max(int(state["max_candidates"]), _ANSWERS)}
    saved = {key: state[key][:size].copy() for key, size in kept.items()}
    try:
        streams = seed_streams(1, 18, 1)
        found = _walk_ways(relation, state.record[0], packet, kinds, streams, ways, lengths, count, seen)
        refuse_mistake(state.record[0])
    finally:
        for key, array in saved.items():
            state[key][: len(array)] = array
    return None if found < 0 else np.unique(seen[:found])
