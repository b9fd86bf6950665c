"""Loads of a routing whose ways source router and destination host fix: every packet is followed (`routing`)."""

from typing import Any, NamedTuple

import numpy as np
from numba import int64, types, uint64
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.router import RouterConfig
from hopforge.model.errors import UserError
from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import entry, inner
from hopforge.model.kernel.memory import floats, int32s, int64s
from hopforge.model.network.build import build_net
from hopforge.model.network.core.candidates import blank_candidates, candidate_mask, candidate_port
from hopforge.model.network.core.layouts import PACKET, PACKET_RECORD
from hopforge.model.network.core.net_record import NET_RECORD, ROUTE_SIGNATURE
from hopforge.model.network.core.records import host_at, input_port, input_vc, output_vc, vc_in_port
from hopforge.model.network.settings import RouterParameters, SourceParameters, Tables
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.routing.contract.around_failures import check_algorithm
from hopforge.model.routing.contract.fields_read import fields_read
from hopforge.model.routing.contract.plan import RoutingPlan
from hopforge.model.topology import Topology

__all__ = ["MOST_WALKS", "FixedRouting", "configured_routing"]

#: most pairs of a router with hosts and a destination host whose packets are followed
MOST_WALKS = 20_000_000
#: virtual channels of a port while packets are followed: ways are the same with fewer
_VCS = 16
_F2 = types.Array(types.float64, 2, "C")


class FixedRouting(NamedTuple):
    """A routing with one way for a pair of router and host.

    Attributes
    ----------
    name : str
        `routing.algorithm`.
    plan : RoutingPlan
        The routing.
    """

    name: str
    plan: RoutingPlan

    def loads(self, topology: Topology, rate: NDArray[np.float64]) -> NDArray[np.float64]:
        """Load of every channel, float64[router, port], of rates float64[router, host].

        Raises
        ------
        UserError
            A packet without a way, or whose way is another one on another virtual channel.
        """
        plan = self.plan
        tables = Tables(routing=plan.table, memory=plan.memory, max_candidates=plan.max_candidates,
                        inject_mask=plan.inject_mask)  # fmt: skip
        state = build_net(topology, RouterParameters(vcs=_VCS), SourceParameters(), tables, seed=1)
        sender = np.full(topology.routers, -1, np.int64)
        sender[topology.host_router[::-1]] = np.arange(topology.hosts)[::-1]
        packet, most = np.zeros(1, PACKET)[0], 4 * topology.routers + 4
        found: list[NDArray[np.float64]] = []
        for last in (0, 1):
            load = np.zeros(topology.peer_router.shape)
            lost = int(follow_packets(plan.route, state.record[0], packet, sender, rate, most, last, load))
            if lost >= 0:
                source, goal = divmod(lost, topology.hosts)
                words = f"no way from router {source} to host {goal}"
                raise UserError(f"no loads of routing.algorithm {self.name}: {words}")
            found.append(load)
        if not np.array_equal(found[0], found[1]):
            raise UserError(f"no loads of routing.algorithm {self.name}: its ways depend on virtual channels")
        return found[0]


@inner
def _end(mask: int, last: int) -> int:
    """Lowest, or highest, virtual channel of a mask."""
    if last == 0:
        return trailing_zeros(uint64(mask))
    found = 0
    while mask > 1:
        mask >>= 1
        found += 1
    return found


@entry(int64(types.FunctionType(ROUTE_SIGNATURE), NET_RECORD, PACKET_RECORD, types.Array(types.int64, 1, "C"), _F2,
             int64, int64, _F2))  # fmt: skip
def follow_packets(route: Any, net: Any, packet: Any, sender: Any, rate: Any, most: int, last: int, load: Any) -> Any:
    """Add the rates of all pairs to the channels of their ways; -1, or router · hosts + host of one without a way.

    `last`: the highest virtual channel is taken everywhere, else the lowest.
    """
    for source in range(rate.shape[0]):
        for goal in range(rate.shape[1]):
            part = rate[source, goal]
            if part == 0.0:
                continue
            host = sender[source]
            packet.src = host
            packet.dst = goal
            packet.length = 1
            packet.number = 0
            packet.created = 0
            packet.phase = 0
            packet.via = -1
            packet.user0 = 0
            packet.user1 = 0
            n = int64(host_at(net, host).input_vc) + _end(int64(host_at(net, host).inject_mask), last)
            hops = 0
            while n < net.input_vcs:
                port = input_port(net, input_vc(net, n).port)
                router = int64(port.router)
                packet.hops = hops
                blank_candidates(net, 0)
                found = route(
                    router, int64(port.port), vc_in_port(net, input_vc(net, n)), packet, net, int32s(net.table),
                    floats(net.memory), int64s(net.candidate),
                )  # fmt: skip
                packed = int64s(net.candidate)[0]
                out = candidate_port(packed)
                mask = candidate_mask(packed)
                if found != 1 or mask == 0 or out < 0 or out >= net.ports or hops > most:
                    return int64(source * rate.shape[1] + goal)
                n = int64(output_vc(net, (router * net.ports + out) * net.vcs + _end(mask, last)).target)
                if n < 0:
                    return int64(source * rate.shape[1] + goal)
                if n < net.input_vcs:
                    load[router, out] += part
                hops += 1
    return int64(-1)


def configured_routing(config: Config, topology: Topology) -> tuple[FixedRouting | None, str]:
    """Return the routing of a file if its ways are fixed, else None and one line that says why not.

    Without section `routing` it is the algorithm that `hopforge net` takes, and nothing is said of one that does not
    fit the network. Section `router` plays no part but for its model.
    """
    name = "file" if config.routing.file is not None else config.routing.algorithm
    try:
        reason = _other_ways(config, topology)
        if not config.failed.none:
            check_algorithm(config.routing)
        if not reason:
            plan = routing_plan(config.model_copy(update={"router": RouterConfig(vcs=_VCS)}), topology)
            reason = _not_fixed(plan)
    except UserError as problem:
        return None, f"no row of routing.algorithm {name}: {problem}" if "routing" in config.written else ""
    if reason:
        return None, f"no row of routing.algorithm {name}: {reason}"
    return FixedRouting(name, plan), ""


def _other_ways(config: Config, topology: Topology) -> str:
    if config.router.model == "packet":
        return "with router.model: packet its queues decide"
    if config.routing.file is not None:
        return "nobody knows on what a file's ways depend"
    if topology.aggregation is not None:
        return "lookup.lag chooses among aggregated links (topology.aggregation)"
    walks = len(np.unique(topology.host_router)) * topology.hosts
    return f"{walks} pairs of router and host, more than {MOST_WALKS}" if walks > MOST_WALKS else ""


def _not_fixed(plan: RoutingPlan) -> str:
    """Say why ways are not fixed by the router of the source and the destination; nothing if they are."""
    changing = fields_read(plan.route).changing
    for applies, words in (
        (plan.agents is not None or plan.feedback is not None or plan.memory.size > 1, "it learns"),
        (plan.random or plan.uses_via, "it draws random numbers"),
        (plan.max_candidates > 1, "it gives several ports for a destination, and queues decide"),
        (plan.by_source, "the host that sends chooses among ways"),
        (bool(changing), f"it reads {changing[0] if changing else ''}"),
    ):
        if applies:
            return words
    return ""
