"""Networks of routers with flits: how that of each ``router.model`` is built and stepped."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hopforge.model.config import Config
from hopforge.model.network.build import build_net
from hopforge.model.network.core.state import NetState
from hopforge.model.network.settings import RouterParameters, SourceParameters, Tables, router_parameters
from hopforge.model.routing import RoutingPlan
from hopforge.model.topology import Topology
from hopforge.model.topology.link_times import queued_times
from hopforge.sim.queued.build import QueuedState, QueueParameters, build_queues
from hopforge.sim.run.lookup_routing import route_lookup
from hopforge.sim.run.router_models import ROUTER_MODELS, refuse


@dataclass(frozen=True)
class Built:
    """A network of one router model at cycle 0.

    Attributes
    ----------
    state : NetState
        With the counters that every model fills.
    run : function
        ``run(route, pattern, cycles) -> code`` of `model.network.core.kinds`.
    flit_cycles : int
        Cycles that a flit takes on the link of a host: a load of 1 is a flit in this time.
    bin_cycles : int
        Width of the bins of the latency histogram.
    cycle_ns : float
        Length of a cycle, 0 if it is not known.
    marks_detours : bool
        Routing marks packets on a way that is not minimal (``packet.user1``), and the routers count them.
    """

    state: NetState
    run: Callable[[Any, Any, int], int]
    flit_cycles: int = 1
    bin_cycles: int = 1
    cycle_ns: float = 0.0
    marks_detours: bool = False

    def derouted(self) -> float:
        """Packets that arrived on a way that was not minimal, since the last `reset` (nan: not counted)."""
        if not self.marks_detours or not isinstance(self.state, QueuedState):
            return math.nan
        return float(self.state.queue_record["derouted"][0])

    def reset(self) -> None:
        """Begin to count anew."""
        if isinstance(self.state, QueuedState):
            self.state.queue_record["derouted"] = 0


@dataclass(frozen=True)
class Plans:
    """What a network is built from, beside the configuration.

    Attributes
    ----------
    plan : RoutingPlan
        Section `routing`, prepared for the network.
    source : SourceParameters
        What the hosts send.
    tables : Tables
        Of routing and traffic.
    log_events : int
        Capacity of the event log.
    """

    plan: RoutingPlan
    source: SourceParameters
    tables: Tables
    seed: int
    log_events: int = 0


def flit_router_parameters(config: Config, topology: Topology, plan: RoutingPlan) -> RouterParameters:
    """Return section `router` for input-queued routers, with lookup engines where they compute the routes."""
    parameters = router_parameters(config, topology)
    if config.router.route_computation == "table":
        return parameters
    return replace(parameters, lookup=route_lookup(config, topology, plan))


def _input_queued(config: Config, topology: Topology, plans: Plans) -> Built:
    from hopforge.model.network.kernel import run_cycles  # noqa: PLC0415 - compiled where it is used

    parameters = flit_router_parameters(config, topology, plans.plan)
    state = build_net(topology, parameters, plans.source, plans.tables, plans.seed, plans.log_events)

    def run(route: Any, pattern: Any, cycles: int) -> int:
        return int(run_cycles(route, pattern, state.record[0], cycles))

    return Built(state, run, cycle_ns=config.router.cycle_ns or 0.0)


def _input_output_queued(config: Config, topology: Topology, plans: Plans) -> Built:
    from hopforge.sim.queued.kernel import run_cycles  # noqa: PLC0415 - compiled where it is used

    source, router, times = plans.source, config.router, queued_times(config.router, topology)
    per_flit = times.flit_cycles
    parameters = QueueParameters(
        vcs=router.vcs,
        input_packets=router.buffer_flits,
        output_packets=router.output_buffer_flits,
        packet_cycles=per_flit,
        match_cycles=times.crossbar_cycles,
        flight_cycles=times.flight_cycles,
        nic_packets=config.traffic.nic_packets,
        wake_late=router.idle_ports == "flit_later",
        deadlock_cycles=config.simulation.deadlock_cycles * per_flit,
    )
    scaled = replace(
        source,
        packet_rate=source.packet_rate / per_flit,
        on_to_off=source.on_to_off / per_flit,
        off_to_on=source.off_to_on / per_flit,
    )
    state: QueuedState = build_queues(topology, parameters, scaled, plans.tables, plans.seed)

    def run(route: Any, pattern: Any, cycles: int) -> int:
        return int(run_cycles(route, pattern, state.record[0], state.queue_record[0], cycles))

    bins, ours = int(state.queue_record["bin_cycles"][0]), config.routing.file is None
    return Built(state, run, per_flit, bins, times.cycle_ns, marks_detours=ours)



_BUILDERS: dict[str, Callable[[Config, Topology, Plans], Built]] = {
    "input_queued": _input_queued,
    "input_output_queued": _input_output_queued,
}


def check_has_flits(config: Config) -> None:
    """Refuse a router model without flits.

    Raises
    ------
    UserError
        It has none.
    """
    if config.router.model not in _BUILDERS:
        raise refuse(ROUTER_MODELS[config.router.model], "this")


def build_flit_network(config: Config, topology: Topology, plans: Plans) -> Built:
    """Build the network with the routers of ``router.model``."""
    return _BUILDERS[config.router.model](config, topology, plans)
