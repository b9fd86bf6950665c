"""Any routing algorithm on a network with aggregated links: it chooses a group, this a member of it."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numba import int64
from numpy.typing import NDArray

from hopforge.model.kernel.compile import around
from hopforge.model.kernel.memory import int32s
from hopforge.model.network.core.candidates import candidate_port, with_port
from hopforge.model.network.core.net_record import ROUTE_SIGNATURE
from hopforge.model.routing.contract.plan import RoutingPlan
from hopforge.model.topology import Topology

# table: 0 ports, 1 logical ports, 2 members, 3 adaptive, then where these begin: 4 logical ports of ports
# [router, port], 5 members of addresses, 6 ports of members [router, logical port, member], 7 ports that work [...,
# number in turn] (-1: no more), 8 the table of the algorithm itself; then 9 addresses of a host (paths), 10 layers: a
# packet's path is its phase div layers
(_P, _G, _M, _ADAPTIVE, _GROUP, _MEMBER, _BY_MEMBER, _WORKING, _OWN, _PATHS, _LAYERS, _FIRST) = range(12)


def aggregated_plan(
    plan: RoutingPlan, topology: Topology, member: NDArray[np.int64], *, by_destination: bool = False
) -> RoutingPlan:
    """Turn the routing of the logical network into that of a network with aggregated links.

    An algorithm with one answer goes over the member of the destination; an adaptive one is given all members of the
    groups that it names, and VA chooses by credits. While members are down the others of their group stand in.

    Parameters
    ----------
    plan : RoutingPlan
        For ``topology.aggregation.logical``. Its relation sees logical ports; it must not look at the state of ports.
    topology : Topology
        With aggregated links.
    member : ndarray, int64[address]
        The member of each address: of host · paths + path.
    by_destination : bool
        Of every group, one of several as well, its member of the destination.
    """
    found = topology.aggregation
    assert found is not None
    paths = len(member) // topology.hosts
    router = np.arange(topology.routers)[:, None, None]
    works = (found.ports >= 0) & (topology.peer_router[router, np.maximum(found.ports, 0)] >= 0)
    works[:, :, 0] |= ~works.any(axis=2)  # hosts; a group of which nothing works, or that is not there, keeps its name
    count = works.sum(axis=2, keepdims=True)
    order = np.argsort(~works, axis=2, kind="stable")
    turn = np.arange(found.members)
    first_works = np.take_along_axis(found.ports, order, axis=2)
    working = np.where(turn < count, first_works, -1)
    by_member = np.take_along_axis(first_works, np.broadcast_to(turn, works.shape) % count, axis=2)
    adaptive = plan.max_candidates > 1 and not by_destination
    parts: list[NDArray[Any]] = [found.group, member, by_member, working, plan.table]
    starts = np.cumsum([_FIRST, *(part.size for part in parts[:-1])])
    header = [
        topology.max_ports, found.ports.shape[1], found.members, int(adaptive), *starts, paths, plan.phases // paths,
    ]  # fmt: skip
    return replace(
        plan,
        route=_over_members(plan.route),
        every=None if plan.every is None else _over_members(plan.every),
        table=np.concatenate([np.array(header), *(part.reshape(-1) for part in parts)]).astype(np.int32),
        rows=(),
        max_candidates=plan.max_candidates * (found.members if adaptive else 1),
        unguarded=None if plan.unguarded is None else aggregated_plan(plan.unguarded, topology, member),
        of_paths=tuple(aggregated_plan(one, topology, member) for one in plan.of_paths),
        among=None if plan.among is None else aggregated_plan(plan.among, topology, member, by_destination=True),
    )


@cache
def _over_members(route: Any) -> Any:
    """Compile the relation around another one."""

    def over_members(
        router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
    ) -> int:
        arrived = table[table[_GROUP] + router * table[_P] + in_port]
        own = int32s(net.table + 4 * int64(table[_OWN]))  # `table` is at net.table
        count = route(router, arrived, in_vc, packet, net, own, memory, out)
        if table[_ADAPTIVE] == 0:
            address = packet.dst
            if table[_PATHS] > 1:
                address = packet.dst * table[_PATHS] + packet.phase // table[_LAYERS]
            member = table[table[_MEMBER] + address]
            for k in range(count):
                place = (router * table[_G] + candidate_port(out[k])) * table[_M] + member
                out[k] = with_port(out[k], table[table[_BY_MEMBER] + place])
            return count
        total = 0
        for k in range(count):
            place = table[_WORKING] + (router * table[_G] + candidate_port(out[k])) * table[_M]
            for j in range(table[_M]):
                total += 1 if table[place + j] >= 0 else 0
        end = total
        for back in range(count):  # from the last one on, since a group may need more room than it has
            packed = out[count - 1 - back]
            place = table[_WORKING] + (router * table[_G] + candidate_port(packed)) * table[_M]
            for j in range(table[_M]):
                port = table[place + table[_M] - 1 - j]
                if port >= 0:
                    end -= 1
                    out[end] = with_port(packed, port)
        return total

    return around(ROUTE_SIGNATURE, over_members)
