"""The routing of the network that a configuration describes, over its aggregated links."""

from hopforge.model.config import Config
from hopforge.model.lookup.expression_reduction import configured_reduction
from hopforge.model.routing import prepare_routing
from hopforge.model.routing.aggregation import aggregated_plan
from hopforge.model.routing.lookahead import refuse_unknown_next
from hopforge.model.routing.message_classes import plan_for_acknowledges, plan_for_replies
from hopforge.model.routing.plan import RoutingError, RoutingPlan
from hopforge.model.shared import once
from hopforge.model.topology import Topology


def routing_plan(config: Config, topology: Topology) -> RoutingPlan:
    """Section `routing`, made ready for the network."""
    sections = (
        config.routing, config.tables, config.router, config.address, config.lookup, config.seed, config.traffic.reply,
        config.traffic.acknowledge,
    )  # fmt: skip
    return once(("routing", topology, *sections), lambda: _routing_plan(config, topology))


def _routing_plan(config: Config, topology: Topology) -> RoutingPlan:
    routing = config.routing
    algorithm = str(routing.file) if routing.file is not None else routing.algorithm
    options = routing.model_dump(exclude={"algorithm", "file", "check"})
    options |= {"tables": config.tables, "seed": config.seed, "router": config.router, "dqn": routing.dqn}
    reply, acknowledge, vcs = config.traffic.reply, config.traffic.acknowledge, config.router.vcs
    own = reply is not None and reply.vcs == "own"
    apart = acknowledge is not None and acknowledge.vcs == "own"
    try:
        plan = prepare_routing(routing_network(topology), vcs // 2 if own else vcs - apart, algorithm, options)
    except RoutingError as problem:
        if own:
            half = f"traffic.reply.vcs: own gives each class half of router.vcs={vcs}"
            raise RoutingError(f"{problem} ({half})") from None
        if apart:
            raise RoutingError(f"{problem} (traffic.acknowledge.vcs: own takes one of router.vcs={vcs})") from None
        raise
    if routing.decision == "host" and (config.router.model != "input_queued" or reply is not None):
        other = "traffic.reply" if reply is not None else f"router.model: {config.router.model}"
        raise RoutingError(f"routing.decision: host is for router.model: input_queued without replies, not {other}")
    if config.router.lookahead:
        refuse_unknown_next(plan, routing.algorithm)
    if config.router.sa == "input_ahead" and plan.max_candidates > 1:
        raise RoutingError(
            f"router.sa: input_ahead needs one port for a destination; {routing.algorithm} gives several"
        )
    plan = over_members(config, topology, plan)
    if plan.agents is not None and acknowledge is None:
        raise RoutingError(f"routing.algorithm {routing.algorithm} learns from acknowledges: set traffic.acknowledge")
    if acknowledge is not None:
        return plan_for_acknowledges(plan, topology, vcs, own=apart, algorithm=routing.algorithm)
    if reply is None:
        return plan
    return plan_for_replies(plan, topology, vcs, own=own, algorithm=routing.algorithm)


def routing_network(topology: Topology) -> Topology:
    """Return the network that a routing algorithm sees: one link in place of a group."""
    return topology if topology.aggregation is None else topology.aggregation.logical


def over_members(config: Config, topology: Topology, plan: RoutingPlan) -> RoutingPlan:
    """Return the routing of a network from that of `routing_network`, with the members that `lookup.lag` says."""
    if topology.aggregation is None:
        return plan
    if plan.agents is not None:
        raise RoutingError("routing.algorithm dqn cannot use aggregated links (topology.aggregation)")
    reduction = configured_reduction(config, topology)
    return aggregated_plan(plan, topology, reduction.member_array(topology.host_address))
