"""What the agents of DQN routing do in a network: they decide about headers, and get their rewards.

The hook `agent`: a head has come to a router, an acknowledge has brought a reward, time passes.
"""

from typing import Any

from numba import carray, int32, int64

from hopforge.model.dqn.dense import part
from hopforge.model.dqn.headers import enter, passes_by, take_escape
from hopforge.model.dqn.learning import store
from hopforge.model.dqn.tables import NONE
from hopforge.model.kernel.compile import c_kernel
from hopforge.model.kernel.memory import int64s, singles
from hopforge.model.network.core.hooks import HEAD_HERE, HOOK_SIGNATURE, REWARDED
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import input_vc, packet_at, vc_in_port
from hopforge.model.network.parts.agent_decisions import (
    NOWHERE,
    ask,
    begin_decision,
    finish_decision,
    pass_time,
    tell_last_router,
)
from hopforge.model.network.parts.agent_sight import PDOR, hops_to
from hopforge.model.network.parts.agent_state import agents_of, record_of
from hopforge.model.network.parts.trail_tables import entry_port, packet_name, rules_of, tables_of, wants_acknowledge

__all__ = ["decide_headers"]


@part
def no_decision(net: Net, r: Any, tables: Any, n: int, p: int, now: int) -> None:
    """Nothing is decided about packet `p`: the agent that sent it here learns that."""
    observation = carray(singles(r.observation), (r.inputs,))
    name = packet_name(packet_at(net, p))
    tell_last_router(net, r, agents_of(r), tables, n, name, now, observation, int64(NOWHERE), int64(0))


@part
def head_here(net: Net, n: int, p: int) -> None:
    """Decide about packet `p`, whose head stands in input VC `n` from this cycle on, or ask for a decision."""
    r, tables, packet = record_of(net), tables_of(net), packet_at(net, p)
    vc = input_vc(net, n)
    router, came, now = int64(vc.router), int64(entry_port(net, n)), int64(net.cycle)
    escaped = came != NONE and vc_in_port(net, vc) < r.escapes
    if escaped and packet.user0 & PDOR == 0:
        take_escape(tables)
    packet.user0 = int32(PDOR)
    name = packet_name(packet)
    there = int64s(r.home)[packet.dst]
    if there == router:
        no_decision(net, r, tables, n, p, now)
        return
    way = hops_to(r, router, there)
    if way < 0:  # its switch has failed: the packet is dropped here
        no_decision(net, r, tables, n, p, now)
        return
    asks = wants_acknowledge(net, packet)
    final = escaped and r.one_hop == 0
    if passes_by(tables, rules_of(net), router, name, now, way, int64(packet.hops), final, asks, came):
        no_decision(net, r, tables, n, p, now)
        return
    enter(tables, router, name, now, way, asks, came)
    if r.decision_cycles != 0:
        ask(net, r, n, p)
        return
    action, episode = begin_decision(net, r, agents_of(r), tables, n, p, now)
    finish_decision(net, r, tables, n, p, action, episode)


@part
def rewarded(net: Net, router: int, place: int) -> None:
    """Give the agent of a router the reward of its episode."""
    r, tables = record_of(net), tables_of(net)
    agent = tables.agents[router]
    seen = tables.episode_observations[agent, place]
    store(agents_of(r), agent, seen, tables.episode_actions[agent, place], net.reward, seen, int64(NOWHERE), int64(0))


@c_kernel(HOOK_SIGNATURE)
def decide_headers(net: Net, event: int, a: int, b: int) -> int:
    """Decide and learn: the hook `agent`."""
    if event == HEAD_HERE:
        head_here(net, a, b)
    elif event == REWARDED:
        rewarded(net, a, b)
    else:
        pass_time(net, a)
    return 0
