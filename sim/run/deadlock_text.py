"""What a run that stands still says: which channels wait for each other, and what would help."""

from hopforge.model.config.router import RouterConfig
from hopforge.model.network.core.state import NetState
from hopforge.model.routing import RoutingPlan
from hopforge.model.routing.proof.deadlock import channel_name, find_cycle, waiting_cycle
from hopforge.model.topology import Topology
from hopforge.sim.queued.build import QueuedState

__all__ = ["deadlock_text"]


def deadlock_text(topology: Topology, plan: RoutingPlan, state: NetState, router: RouterConfig) -> str:
    """Return the message of a run in which nothing has moved for too long."""
    if isinstance(state, QueuedState):
        cycle = find_cycle(*state.waiting_channels(), len(state["output_vc"]))
    else:
        cycle = waiting_cycle(topology, state)
    names = " → ".join(channel_name(topology, int(state["vcs"]), m) for m in [*cycle, *cycle[:1]])
    if plan.obligation == "escape" and (router.switching, router.vc_release) == ("wormhole", "tail"):
        names += (
            "; with router.vc_release: tail and wormhole switching a packet may wait behind others on an adaptive "
            "virtual channel, where it has no escape: take vc_release: credits or switching: vct"
        )
    return (
        f"deadlock at cycle {int(state['cycle'])}: {state.flits_in_flight} flits in flight and none has "
        f"moved since cycle {int(state['last_move'])}; waiting channels: {names or 'no cycle found'}"
    )
