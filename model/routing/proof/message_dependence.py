"""Requests that wait for the injection of replies: the cycle of channels and hosts that it closes, if it can.

docs/definitions/replies.md, "Freedom from deadlock".
"""

from typing import Any

import numpy as np
from numba import int64, types
from numpy.typing import NDArray

from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import entry
from hopforge.model.kernel.memory import floats, int32s, int64s
from hopforge.model.network.core.candidates import blank_candidates, candidate_mask, candidate_port
from hopforge.model.network.core.layouts import PACKET, PACKET_RECORD
from hopforge.model.network.core.net_record import NET_RECORD, ROUTE_SIGNATURE
from hopforge.model.network.core.records import host_at, input_port, input_vc, output_vc, vc_in_port
from hopforge.model.network.core.state import NetState
from hopforge.model.routing.contract.plan import RoutingPlan
from hopforge.model.routing.proof.deadlock import DeadlockError, channel_name
from hopforge.model.topology import Topology

_MAX_DRAWS = 16
_I1 = types.Array(types.int64, 1, "C")


@entry(int64(types.FunctionType(ROUTE_SIGNATURE), NET_RECORD, PACKET_RECORD, int64, int64, _I1))
def follow_packet(route: Any, net: Any, packet: Any, vc: int, start: int, way: Any) -> int:
    """Write the output VCs of one way of a packet that host `start` sends on `vc`; returns their number.

    It takes the first candidate and its lowest VC everywhere; at most as many channels as `way` holds.
    """
    n = int64(host_at(net, start).input_vc) + vc
    for hops in range(len(way)):
        packet.hops = hops
        port = input_port(net, input_vc(net, n).port)
        blank_candidates(net, 0)
        found = route(
            int64(port.router), int64(port.port), vc_in_port(net, input_vc(net, n)), packet, net, int32s(net.table),
            floats(net.memory), int64s(net.candidate),
        )  # fmt: skip
        if found <= 0:
            return 0
        packed = int64s(net.candidate)[0]
        first = (int64(port.router) * net.ports + candidate_port(packed)) * net.vcs
        m = first + trailing_zeros(candidate_mask(packed))
        way[hops] = m
        n = int64(output_vc(net, m).target)
        if n < 0:
            return 0
        if n >= net.input_vcs:
            return hops + 1
    return 0


def refuse_message_cycle(topology: Topology, plan: RoutingPlan, state: NetState, algorithm: str) -> None:
    """Refuse replies that use the virtual channels of requests while hosts keep a limited number of them.

    Raises
    ------
    DeadlockError
        The cycle of channels and hosts of two hosts that ask each other.
    """
    host = state["host"][: topology.hosts]
    both = host["inject_mask"] & host["reply_mask"]
    sending = np.flatnonzero(both)
    if not int(state["reply_places"]) or not len(sending):
        return
    # the host's answers to each other take the ways of its requests: each channel waits for the next
    first, last = int(sending[0]), int(sending[-1])
    names = []
    for source, target in ((first, last), (last, first)):
        way = _way(plan, state, source, target, int(both[source]))
        names += [*(channel_name(topology, int(state["vcs"]), m) for m in way.tolist()), f"replies of host {target}"]
    raise DeadlockError(
        f"traffic.reply can deadlock on the {topology.name} with {algorithm}: requests wait for one of "
        f"queue={int(state['reply_places'])} places at a host, and replies use the same virtual channels; cycle: "
        f"{' → '.join([*names, names[0]])}; set traffic.reply.vcs: own, or traffic.reply.queue: null"
    )


def _way(plan: RoutingPlan, state: NetState, source: int, target: int, mask: int) -> NDArray[np.int64]:
    """Output VCs that a packet from host `source` to host `target` can take; the state is put back."""
    packet = np.zeros(1, PACKET)[0]
    packet["src"], packet["dst"], packet["length"], packet["via"] = source, target, 1, -1
    choices = np.zeros(3 + 2 * _MAX_DRAWS, np.int64)
    choices[0] = _MAX_DRAWS
    way = np.zeros(4 * int(state["routers"]) + 4, np.int64)
    saved = {key: state[key].copy() for key in ("router_rng", "memory", "candidate", "table")}
    state.record["choices"] = choices.ctypes.data
    try:
        vc = (mask & -mask).bit_length() - 1
        return way[: follow_packet(plan.route, state.record[0], packet, vc, source, way)]
    finally:
        state.record["choices"] = 0
        for key, array in saved.items():
            state[key][:] = array
