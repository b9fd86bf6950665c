"""What is proved of the routing of a run before it begins."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.network.core.state import NetState
from hopforge.model.network.settings import SourceParameters, Tables
from hopforge.model.routing import RoutingPlan
from hopforge.model.routing.contract.guard import spare_guard
from hopforge.model.routing.proof.message_dependence import refuse_message_cycle
from hopforge.model.routing.proof.short_proof import prove_routing
from hopforge.model.topology import Topology
from hopforge.sim.run.flit_networks import Plans, build_flit_network
from hopforge.sim.run.lookup_routing import check_keys

__all__ = ["RoutingProof"]


class RoutingProof:
    """Proofs for one network and the routing that it begins with.

    Parameters
    ----------
    config : Config
        The whole configuration.
    topology : Topology
        The network.
    plan : RoutingPlan
        Its routing at the beginning.
    state : NetState
        Ready to run.
    seed : int
        Of the run.
    """

    def __init__(self, config: Config, topology: Topology, plan: RoutingPlan, state: NetState, seed: int) -> None:
        self._config, self._topology, self._plan, self._state, self._seed = config, topology, plan, state, seed

    def prove(self, silent: NDArray[np.bool_], *, resends: bool) -> str:
        """Prove that the network cannot deadlock, and that keys tell apart what has different routes; says how.

        Raises
        ------
        UserError
            It can, or they do not.
        """
        config, topology, plan, state = self._config, self._topology, self._plan, self._state
        proof = prove_routing(
            topology, plan, state, config.routing.algorithm, ~silent, build=self._smaller_state, resends=resends,
            seconds=config.routing.proof_limit_s,
        )  # fmt: skip
        if config.traffic.reply is not None:
            refuse_message_cycle(topology, plan, state, config.routing.algorithm)
        if not resends and not silent.any():
            spare_guard(plan, state["table"])
        if state.lookup is not None:
            check_keys(config, topology, plan, state)
        return proof

    def _smaller_state(self, topology: Topology, plan: RoutingPlan) -> NetState:
        """Build a smaller network of the same routers, for a proof; what computes its routes does not matter there."""
        router = self._config.router.model_copy(update={"route_computation": "table"})
        config = self._config.model_copy(update={"router": router})
        tables = Tables(plan.table, plan.memory, max_candidates=plan.max_candidates)
        return build_flit_network(config, topology, Plans(plan, SourceParameters(), tables, self._seed)).state
