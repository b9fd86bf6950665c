"""The routing of a run after each failure: prepared and proved before the run begins, put in force when it is time."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.network.build import build_net
from hopforge.model.network.core.state import NetState
from hopforge.model.network.parts.trail_tables import flush_tables
from hopforge.model.network.settings import SourceParameters, Tables
from hopforge.model.routing import RoutingError, RoutingPlan
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.routing.proof.deadlock import check_routing
from hopforge.model.routing.proof.reachable import packet_lengths
from hopforge.model.topology import Topology
from hopforge.sim.failures.epochs import Epoch
from hopforge.sim.failures.flush import reprogram_engines
from hopforge.sim.run.flit_networks import flit_router_parameters
from hopforge.sim.run.lookup_routing import check_keys, route_lookup
from hopforge.sim.run.sources import acknowledges

__all__ = ["EpochRouting"]


class EpochRouting:
    """Routing of the states that failures bring a network to.

    Parameters
    ----------
    config : Config
        The whole configuration.
    plan : RoutingPlan
        The routing at the beginning.
    state : NetState
        Of the run.
    seed : int
        Of the run.
    check : bool
        Prove every routing.

    Raises
    ------
    RoutingError
        It learns and does not say where its estimates are.
    """

    def __init__(self, config: Config, plan: RoutingPlan, state: NetState, seed: int, *, check: bool) -> None:
        if plan.estimates is None and (plan.feedback is not None or plan.memory.size > 1):
            raise RoutingError("simulation.failures: a routing algorithm that learns must say where its estimates are")
        self._config, self._plan, self._state, self._seed = config, plan, state, seed
        self._check = config.routing.check and check

    def prepare(self, topology: Topology, silent: NDArray[np.bool_]) -> RoutingPlan:
        """Prepare the routing of a network of which `silent` hosts are down.

        Raises
        ------
        UserError
            It does not fit what the run was built with, or it can deadlock.
        """
        config = self._config
        plan = routing_plan(config, topology)
        if plan.max_candidates > self._plan.max_candidates:
            raise RoutingError(
                f"routing.algorithm {config.routing.algorithm}: a packet must choose among at most "
                f"{self._plan.max_candidates} outputs (max_candidates) after a failure too, not {plan.max_candidates}"
            )
        if plan.memory.size != self._plan.memory.size:
            raise RoutingError(
                f"routing.algorithm {config.routing.algorithm}: memory must have {self._plan.memory.size} entries "
                f"after a failure too, not {plan.memory.size}"
            )
        if self._check:
            self._prove(topology, plan, silent)
        return plan

    def _prove(self, topology: Topology, plan: RoutingPlan, silent: NDArray[np.bool_]) -> None:
        config = self._config
        source = SourceParameters(acknowledges=acknowledges(config))
        net = build_net(topology, flit_router_parameters(config, topology, plan), source, Tables(
            routing=plan.table, max_candidates=plan.max_candidates, inject_mask=plan.inject_mask,
            memory=plan.memory, ack_mask=plan.ack_mask,
        ), self._seed)  # fmt: skip
        net.senders["inject_mask"][silent] = 0
        check_routing(
            topology, plan, net, config.routing.algorithm, ~silent, lengths=packet_lengths(self._state), resends=True,
            seconds=config.routing.proof_limit_s,
        )  # fmt: skip
        if net.lookup is not None:
            check_keys(config, topology, plan, net)

    def install(self, epoch: Epoch) -> None:
        """Put the routing of `epoch` in force in all routers at once, and flush their lookup engines."""
        plan, state = epoch.plan, self._state
        state.put("table", np.ascontiguousarray(plan.table, np.int32))
        if plan.estimates is not None:  # ports that lead on now and did before keep what they have learned
            both = np.isfinite(plan.memory) & np.isfinite(state["memory"])
            state["memory"][:] = np.where(both, state["memory"], plan.memory)
        if state.agents is not None:
            assert plan.agents is not None
            state.agents.install(plan.agents)
        if self._config.traffic.acknowledge is not None:
            flush_tables(state)
        if state.lookup is not None:
            reprogram_engines(state.lookup, route_lookup(self._config, epoch.topology, plan))
