"""The routing of the network that a configuration describes, over its aggregated links."""

from typing import Any

from hopforge.model.config import Config
from hopforge.model.lookup.expression_reduction import configured_reduction
from hopforge.model.routing.combined.aggregation import aggregated_plan
from hopforge.model.routing.combined.message_classes import plan_for_acknowledges, plan_for_replies
from hopforge.model.routing.combined.traffic_classes import class_masks, plan_for_classes
from hopforge.model.routing.contract.lookahead import refuse_unknown_next
from hopforge.model.routing.contract.plan import RoutingError, RoutingPlan, TooFewVcsError, all_vcs
from hopforge.model.routing.contract.user import prepare_routing
from hopforge.model.shared import once
from hopforge.model.topology import Topology
from hopforge.model.topology.configured import lid_addresses
from hopforge.model.topology.routing_table import refuse_one_way
from hopforge.model.topology.spread import refuse_other_addresses


def routing_plan(config: Config, topology: Topology) -> RoutingPlan:
    """Section `routing`, made ready for the network."""
    sections = (
        config.routing, config.tables, config.router, config.address, config.lookup, config.seed, config.traffic.reply,
        config.traffic.acknowledge, config.traffic.classes,
    )  # fmt: skip
    return once(("routing", topology, *sections), lambda: _routing_plan(config, topology))


def class_inject_masks(config: Config, topology: Topology) -> list[Any]:
    """VCs on which hosts send packets of each class of `traffic.classes`."""
    counts = class_vcs(config)
    if not counts:
        plan = routing_plan(config, topology)
        mask = all_vcs(config.router.vcs) if plan.inject_mask is None else plan.inject_mask
        return [mask] * len(config.traffic.classes)
    plans = {count: _plan_of_vcs(config, topology, count) for count in counts}
    return class_masks([plans[count] for count in counts], counts)


def class_vcs(config: Config) -> list[int]:
    """Virtual channels of each class of `traffic.classes`; empty: all classes share them."""
    return [each.vcs for each in config.traffic.classes if each.vcs is not None]


def _plan_of_vcs(config: Config, topology: Topology, vcs: int) -> RoutingPlan:
    """Routing of the network with so many VCs, of one class."""
    classes = ("classes",) if config.traffic.classes else ()
    others = config.model_copy(update={"traffic": config.traffic.model_copy(update=dict.fromkeys(classes, ()))})
    routers = others.model_copy(update={"router": config.router.model_copy(update={"vcs": vcs})})
    return routing_plan(routers, topology)


def _class_plan(config: Config, topology: Topology, counts: list[int]) -> RoutingPlan:
    algorithm = config.routing.algorithm
    if algorithm in _BY_DESTINATION:
        _refuse_other_sources(config)
    plans: dict[int, RoutingPlan] = {}
    for each in config.traffic.classes:
        assert each.vcs is not None, "checked by model.config"
        try:
            plans[each.vcs] = plans.get(each.vcs) or _plan_of_vcs(config, topology, each.vcs)
        except TooFewVcsError as few:
            least = f"traffic.classes: vcs of {each.name} must be at least {few.least}"
            raise RoutingError(f"{least} {few.words}, not {each.vcs}: {few.why}") from None
        except RoutingError as problem:
            own = f"traffic.classes: {each.name} has {each.vcs} of router.vcs={config.router.vcs}"
            raise RoutingError(f"{problem} ({own})") from None
    return plan_for_classes([plans[count] for count in counts], counts, topology, algorithm=algorithm)


def _routing_plan(config: Config, topology: Topology) -> RoutingPlan:
    counts = class_vcs(config)
    if counts:
        return _class_plan(config, topology, counts)
    routing = config.routing
    algorithm = str(routing.file) if routing.file is not None else routing.algorithm
    options = routing.model_dump(exclude={"algorithm", "file", "check", "proof_limit_s"})
    options |= {"tables": config.tables, "seed": config.seed, "router": config.router, "dqn": routing.dqn}
    reply, acknowledge, vcs = config.traffic.reply, config.traffic.acknowledge, config.router.vcs
    own = reply is not None and reply.vcs == "own"
    apart = acknowledge is not None and acknowledge.vcs == "own"
    share = "reply.vcs: own gives each class half" if own else "acknowledge.vcs: own takes one" if apart else ""
    if routing.file is not None:
        refuse_one_way(topology)  # nobody could see whether a file's rules go back over a link
    try:
        plan = prepare_routing(routing_network(topology), vcs // 2 if own else vcs - apart, algorithm, options)
    except TooFewVcsError as few:
        if share:
            raise _too_few_of_all(config, topology, 2 * few.least if own else few.least + 1, few, share) from None
        raise
    except RoutingError as problem:
        if share and "vcs" in str(problem).lower():
            raise RoutingError(f"{problem} (traffic.{share} of router.vcs={vcs})") from None
        raise
    if routing.decision != "router" and (config.router.model != "input_queued" or reply is not None):
        other = "traffic.reply" if reply is not None else f"router.model: {config.router.model}"
        raise RoutingError(
            f"routing.decision: {routing.decision} is for router.model: input_queued without replies, not {other}"
        )
    if plan.inject_by_destination is not None:
        _refuse_other_sources(config)
    if config.router.lookahead:
        refuse_unknown_next(plan, routing.algorithm)
    if config.router.route_computation == "lookup" and plan.among is not None:
        refuse_other_addresses(topology, "routing.spread with router.route_computation=lookup")
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


def _too_few_of_all(config: Config, topology: Topology, least: int, few: TooFewVcsError, share: str) -> TooFewVcsError:
    """Say how many virtual channels all classes of messages need.

    Raises
    ------
    RoutingError
        So many would not do either, for another reason.
    """
    _routing_plan(config.model_copy(update={"router": config.router.model_copy(update={"vcs": least})}), topology)
    return TooFewVcsError(least, few.words, config.router.vcs, f"{few.why} (traffic.{share})")


#: algorithms whose hosts choose a VC by the destination of a packet
_BY_DESTINATION = ("booksim_ugal_pni",)


def _refuse_other_sources(config: Config) -> None:
    """Refuse hosts that do not choose their virtual channel by the destination of a packet."""
    traffic = config.traffic
    others = {
        f"router.model: {config.router.model}": config.router.model != "input_queued",
        "traffic.reply": traffic.reply is not None,
        "traffic.acknowledge": traffic.acknowledge is not None,
        "traffic.classes": bool(traffic.classes),
    }
    for other, given in others.items():
        if given:
            name = config.routing.algorithm
            raise RoutingError(f"routing.algorithm {name} chooses hosts' VCs by the destination: not with {other}")


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
    return aggregated_plan(plan, topology, reduction.member_array(lid_addresses(config, topology)))
