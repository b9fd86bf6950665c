"""Tables of routed packets of a simulated network, as `model.dqn` takes them; which packets ask for an acknowledge."""

from typing import Any

from numba import carray, int64

from hopforge.model.dqn.dense import part
from hopforge.model.dqn.rules import RoutingRules
from hopforge.model.dqn.tables import COUNTERS, FIELDS, NONE, Tables
from hopforge.model.kernel.memory import floats, int64s, singles
from hopforge.model.network.core.records import Net, input_vc

#: bits of a packet's number in its code
NUMBER_BITS = 40
_COUNTERS = len(COUNTERS)


@part
def tables_of(net: Net) -> Any:
    """Tables of all routers, as `model.dqn.tables.Tables`: the arrays of the network itself."""
    routers, agents, episodes = net.routers, net.trail_agents, net.trail_episodes
    return Tables(
        carray(int64s(net.trail_entries), (routers, net.trail_depth, FIELDS)),
        carray(int64s(net.trail_fill), (routers,)),
        carray(int64s(net.trail_waiting), (routers,)),
        carray(int64s(net.trail_age_limit), (1,)),
        carray(int64s(net.trail_oldest), (1,)),
        carray(int64s(net.trail_skew), (routers,)),
        carray(int64s(net.trail_owner), (routers,)),
        carray(int64s(net.trail_episode_numbers), (agents, episodes)),
        carray(int64s(net.trail_episode_actions), (agents, episodes)),
        carray(singles(net.trail_episode_observations), (agents, episodes, net.trail_inputs)),
        carray(int64s(net.trail_started), (agents,)),
        carray(int64s(net.trail_active), (agents,)),
        carray(int64s(net.trail_counts), (_COUNTERS,)),
    )


@part
def rules_of(net: Net) -> Any:
    """Settings of the acknowledges and of an agent's decisions."""
    rule = floats(net.trail_rules)
    return RoutingRules(int64(rule[0]), rule[1] != 0, rule[2] != 0, int64(rule[3]), rule[4], rule[5])


@part
def wants_acknowledge(net: Net, packet: Any) -> bool:
    """Whether a packet asks for an acknowledge: of those of a host every so many."""
    return net.ack_ratio != 0 and (int64(packet.number) + 1) % net.ack_ratio == 0


@part
def packet_code(packet: Any) -> int:
    """Number of a packet among all of a run."""
    return (int64(packet.src) << NUMBER_BITS) | int64(packet.number)


@part
def entry_port(net: Net, n: int) -> int:
    """Port of input VC `n` as an entry says it: `NONE` if a host is there."""
    vc = input_vc(net, n)
    if vc.credit_to >= net.output_vcs:
        return NONE
    return int64(vc.port) - int64(vc.router) * net.ports
