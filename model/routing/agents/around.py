"""Routing by agents on a grid or dragonfly that has lost links: up*/down* as escape (docs/definitions/dqn.md#failures).

The relation is that of `grid` and `dragonfly`, but the escape is a table of next ports by router and
destination.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.irregular.neighbours import neighbours_of
from hopforge.model.irregular.up_down import root_node, up_down_next_hops
from hopforge.model.kernel.compile import both
from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.draws import draw_below
from hopforge.model.network.parts.agent_sight import ACTION_BITS, PDOR
from hopforge.model.network.parts.agent_state import AgentParameters, ListedWays
from hopforge.model.routing.contract.plan import RoutingPlan, all_vcs, relation, vc_range
from hopforge.model.topology import Topology
from hopforge.model.topology.failed import survivors
from hopforge.model.topology.routing_table import distances

__all__ = ["escape_ports", "plan_around", "ways_around"]

# table: routers, all VCs, those of the escape, the adaptive ones, first port without a host, whether the two ports of
# a dimension change places, whether a packet leaves the escape at the next router; then where begin: the hosts'
# routers, their ports, the next ports of the escape [router, router] (-1: none), the masks of allowed actions [router]
(
    _ROUTERS, _ALL, _ESCAPE, _ADAPTIVE, _LINKS, _SWAPPED, _ONE_HOP, _HOME, _PORT, _WAYS, _ALLOWED, _FIRST,
) = range(12)  # fmt: skip


@both()
def _leaves(router: int, dst: int, table: Any, out: Any) -> bool:
    """Whether a packet is at its router: then its host is the only candidate."""
    if table[table[_HOME] + dst] != router:
        return False
    out[0] = candidate(table[table[_PORT] + dst], table[_ALL])
    return True


@both()
def _way_out(router: int, dst: int, table: Any) -> int:
    """Port of the escape; -1: the destination's switch has failed."""
    return table[table[_WAYS] + router * table[_ROUTERS] + table[table[_HOME] + dst]]


@both()
def _escape_only(table: Any, in_port: int, in_vc: int) -> bool:
    """Whether a packet comes from another router on an escape channel and stays on them for good."""
    return table[_ONE_HOP] == 0 and in_port >= table[_LINKS] and (table[_ESCAPE] >> in_vc) & 1 != 0


@both()
def _both(action: int, way: int, table: Any, out: Any) -> int:
    """Add the candidates of a packet whose action was accepted: the escape is the second one."""
    out[0] = candidate(table[_LINKS] + (action ^ table[_SWAPPED]), table[_ADAPTIVE])
    out[1] = candidate(way, table[_ESCAPE], 1)
    return 2


def _around(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    if _leaves(router, packet.dst, table, out):
        return 1
    way = _way_out(router, packet.dst, table)
    if way < 0:
        return 0
    if packet.user0 & PDOR != 0 or _escape_only(table, in_port, in_vc):
        out[0] = candidate(way, table[_ESCAPE], 1)
        return 1
    return _both((packet.user0 >> ACTION_BITS) - 1, way, table, out)


def _every_around(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    if _leaves(router, packet.dst, table, out):
        return 1
    way = _way_out(router, packet.dst, table)
    if way < 0:
        return 0
    allowed = table[table[_ALLOWED] + router]
    count = 0
    while (allowed >> count) != 0:
        count += 1
    action = draw_below(net, router, count + 1)  # the last one: rejected, or too many hops
    if (allowed >> action) & 1 == 0 or _escape_only(table, in_port, in_vc):
        out[0] = candidate(way, table[_ESCAPE], 1)
        return 1
    return _both(action, way, table, out)


def ways_around(topology: Topology, first_port: int, actions: int, *, swapped: bool) -> ListedWays:
    """Return the hops of the shortest ways over the links that are there, and the actions that begin one.

    Parameters
    ----------
    topology : Topology
    first_port : int
        Of those without hosts.
    actions : int
        Of an agent.
    swapped : bool
        The ports of actions 2i and 2i + 1 change places.

    Returns
    -------
    ListedWays
        Hops are -1 to and from a switch that has failed.
    """
    order = np.arange(actions) ^ int(swapped)
    peer = topology.peer_router[:, first_port : first_port + actions][:, order]
    hops = np.ascontiguousarray(distances(topology).T, np.int64)
    nearer = np.zeros_like(hops)
    for action in range(actions):
        here = np.flatnonzero(peer[:, action] >= 0)
        nearer[here] |= (hops[peer[here, action]] == hops[here] - 1).astype(np.int64) << action
    nearer[hops <= 0] = 0
    return ListedWays(hops, nearer)


def escape_ports(topology: Topology) -> NDArray[np.int64]:
    """Return the next port of up*/down*: int64[router, destination router]; -1: none, or there.

    Parameters
    ----------
    topology : Topology
        Connected, but for switches that have failed.
    """
    R = topology.routers
    gone = np.all(topology.peer_router < 0, axis=1)  # their switches have failed
    left, numbers = survivors(topology, gone)
    neighbours = neighbours_of(left)
    following = up_down_next_hops(neighbours, root_node(neighbours, "centre"))
    ports = np.full((R, R), -1, np.int64)
    for place, router in enumerate(numbers.tolist()):
        towards = np.full(R + 1, -1, np.int64)
        linked = np.flatnonzero(topology.peer_router[router] >= 0)[::-1]
        towards[topology.peer_router[router, linked]] = linked  # the lowest one stays
        goal = following[place]
        ports[router, numbers] = towards[np.where(goal >= 0, numbers[goal], R)]
    return ports


def plan_around(topology: Topology, agents: AgentParameters, vcs: int) -> RoutingPlan:
    """Return the plan of agents on a network that has lost links.

    Parameters
    ----------
    topology : Topology
    agents : AgentParameters
        Made for it (`ways_around`); its lowest VCs are the escape.
    vcs : int
    """
    parts = (topology.host_router, topology.host_port, escape_ports(topology), agents.allowed)
    starts = _FIRST + np.cumsum([0, *(part.size for part in parts[:-1])])
    escape = vc_range(0, agents.escapes - 1)
    header = [
        topology.routers, all_vcs(vcs), escape, vc_range(agents.escapes, vcs - 1), agents.first_port, agents.swapped,
        agents.one_hop, *starts,
    ]  # fmt: skip
    table = np.concatenate([np.array(header, np.int64), *(np.asarray(part, np.int64).reshape(-1) for part in parts)])
    return RoutingPlan(
        relation(_around), table.astype(np.int32), max_candidates=2, obligation="escape", random=True,
        every=relation(_every_around), agents=agents, escape_mask=escape,
    )  # fmt: skip
