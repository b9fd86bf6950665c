"""Routing algorithms that go around what is down."""

from hopforge.model.config.routing import RoutingConfig
from hopforge.model.routing.contract.plan import RoutingError

__all__ = ["check_algorithm"]

#: algorithms that find their way by the links that are there; the others reckon with coordinates
GRAPH_ALGORITHMS = ("tables", "shortest", "up_down", "shortest_escape", "file", "minimal")
#: algorithms of dragonflies that go around links between groups that are down
GROUP_ALGORITHMS = ("dragonfly_min", "valiant_group", "valiant_node", "ugal_group", "ugal_node", "par", "q_adaptive")
#: those whose agents get another escape
AGENT_ALGORITHMS = ("dqn",)
#: those that go around what is down from the begin, but get no new table in a run
FROM_THE_BEGIN = ("q_routing",)


def check_algorithm(routing: RoutingConfig, *, in_a_run: bool = False) -> None:
    """Refuse a routing algorithm that cannot go around what is down.

    Parameters
    ----------
    routing : RoutingConfig
        The algorithm.
    in_a_run : bool
        Something fails in the middle of the run.

    Raises
    ------
    RoutingError
        Naming those that can.
    """
    algorithm = routing.algorithm
    if algorithm == "minimal" and routing.ways not in (None, "all"):
        raise RoutingError(f"routing.ways: must be all for a network with failures, not {routing.ways}")
    known = (*GRAPH_ALGORITHMS, *GROUP_ALGORITHMS, *AGENT_ALGORITHMS, *(() if in_a_run else FROM_THE_BEGIN))
    if algorithm not in known:
        where = "a network with failures in the run" if in_a_run else "a network with failures"
        raise RoutingError(f"routing.algorithm: must be one of {', '.join(known)} for {where}, not {algorithm}")
