"""What the agents of DQN routing do in a network: they decide about headers, and get their rewards.

The hook `agent`: a head has come to a router, an acknowledge has brought a reward. A packet carries what was decided at
the last router in ``user0``: `PDOR`, or the number of the proposed port + 1, shifted by one.
"""

from typing import Any

from numba import carray, int32, int64, njit

from hopforge.model.dqn.dense import part
from hopforge.model.dqn.headers import passes_by, propose, take_escape
from hopforge.model.dqn.learning import decide, end_decision, restart, store
from hopforge.model.dqn.observation import distance, minimal_actions, observe
from hopforge.model.dqn.tables import EPISODE, NONE, TIME, close_episode, find_entry
from hopforge.model.kernel.compile import c_kernel, inlined
from hopforge.model.kernel.memory import floats, int32s, int64s, singles
from hopforge.model.network.core.hooks import HEAD_HERE, HOOK_SIGNATURE, REWARDED
from hopforge.model.network.core.records import ACTIVE, Net, input_vc, output_port, output_vc, packet_at
from hopforge.model.network.parts.agent_state import agents_of, record_of
from hopforge.model.network.parts.trail_tables import entry_port, packet_name, rules_of, tables_of, wants_acknowledge

__all__ = ["ACTION_BITS", "PDOR", "decide_headers", "port_of"]

#: ``packet.user0``: the packet takes dimension order for good; number of the proposed port + 1
PDOR, ACTION_BITS = 1, 1
#: no further decision about a packet
NOWHERE = -1


@njit
def port_of(code: int) -> int:
    """Port, counted from the first one without a host, of action ``code - 1``; those of a dimension change places."""
    return (code - 1) ^ 1


@inlined
def flits_of_first(net: Net, n: int, head: int, flits: int) -> int:
    """Flits in the FIFO of input VC `n` of the packet in front: they stand together, so halving finds their end."""
    fifo, first = n * net.buffer, int64(int32s(net.fifo)[n * net.buffer + head]) >> 2
    low, high = 1, flits
    while low < high:
        middle = (low + high + 1) >> 1
        place = head + middle - 1
        place -= net.buffer if place >= net.buffer else 0
        if int64(int32s(net.fifo)[fifo + place]) >> 2 == first:
            low = middle
        else:
            high = middle - 1
    return low


@inlined
def taken_action(net: Net, r: Any, n: int) -> int:
    """Return the action by whose channel the packet in front of input VC `n` leaves; −1: by the escape."""
    vc = input_vc(net, n)
    if int64(vc.out_vc) % net.vcs < r.escapes or int64(vc.out_vc) % net.vcs >= r.adaptive_end:
        return -1
    port = int64(vc.out_port) - r.first_port
    return port ^ 1 if 0 <= port < r.outputs else -1


@part
def count_local(net: Net, r: Any, router: int, newest: int, local: Any) -> None:
    """Count the flits in a router's adaptive input VCs that are to leave by each adaptive channel.

    `newest`: the input VC whose last flit is the head that has just come, about which nothing is decided. A packet that
    comes back to an input VC where its own tail still stands counts with that.
    """
    for action in range(r.outputs):
        local[action] = 0
    for port in range(router * net.ports, (router + 1) * net.ports):
        for v in range(r.escapes, r.adaptive_end):
            n = port * net.vcs + v
            vc = input_vc(net, n)
            head, left, first = int64(vc.head), int64(vc.flits) - (n == newest), True
            while left > 0:
                p = int64(int32s(net.fifo)[n * net.buffer + head]) >> 2
                packet = packet_at(net, p)
                here = flits_of_first(net, n, head, left) if first else min(left, int64(packet.length))
                if first and vc.state == ACTIVE:  # its head may be further on, and decided about there
                    action = taken_action(net, r, n)
                else:
                    action = (int64(packet.user0) >> ACTION_BITS) - 1
                if action >= 0 and packet.dst < net.hosts:
                    local[action] += here
                first = False
                left -= here
                head += here
                head -= net.buffer if head >= net.buffer else 0


@part
def count_remote(net: Net, r: Any, router: int, remote: Any) -> None:
    """Count the flits in the adaptive buffers behind each port of a router, as the credits say."""
    for action in range(r.outputs):
        first = (router * net.ports + r.first_port + port_of(action + 1)) * net.vcs
        remote[action] = 0
        for v in range(r.escapes, r.adaptive_end):
            remote[action] += int64(output_vc(net, first + v).depth) - int64(output_vc(net, first + v).credits)


@inlined
def most_room(net: Net, r: Any, port: int) -> int:
    """Free flits of the emptiest adaptive buffer behind a port."""
    free = 0
    for v in range(r.escapes, r.adaptive_end):
        free = max(free, int(output_vc(net, port * net.vcs + v).credits))
    return free


@inlined
def is_busy(net: Net, r: Any, port: int) -> bool:
    """Whether all adaptive channels of a port are taken by packets."""
    adaptive = (1 << r.adaptive_end) - (1 << r.escapes)
    return int64(output_port(net, port).free_mask) & adaptive == 0


@inlined
def router_before(net: Net, n: int) -> int:
    """Router from which packets come to input VC `n`; `NONE`: from a host."""
    output = int64(input_vc(net, n).credit_to)
    return output // net.vcs // net.ports if output < net.output_vcs else NONE


@part
def tell_last_router(
    net: Net, r: Any, agents: Any, tables: Any, n: int, packet: int, observation: Any, agent: int, allowed: int
) -> None:
    """With bootstrap: the agent that sent a packet here gets its sample; `agent`: of this router, or `NOWHERE`."""
    router = router_before(net, n)
    if r.later == 0 or router == NONE:
        return
    place = find_entry(tables, router, packet)
    if place == NONE or tables.entries[router, place, EPISODE] == NONE:
        return
    entry = tables.entries[router, place]
    episode, sender = entry[EPISODE], tables.agents[router]
    reward = -(net.cycle + tables.skew[router] - entry[TIME]) / r.unit
    action = tables.episode_actions[sender, episode]
    close_episode(tables, sender, episode)
    entry[EPISODE] = NONE
    store(agents, sender, tables.episode_observations[sender, episode], action, reward, observation, agent, allowed)


@part
def follow_hints(net: Net, r: Any, agents: Any) -> None:
    """Let all agents begin anew if the application has said so until now."""
    hint, hints = int64s(r.hint), int64s(r.hints)
    while net.cycle >= hints[hint[0]]:
        hint[0] += 1
        for agent in range(r.count):
            restart(agents, agent)


@part
def head_here(net: Net, n: int, p: int) -> None:
    """Decide about packet `p`, whose head stands in input VC `n` from this cycle on."""
    r, tables, packet = record_of(net), tables_of(net), packet_at(net, p)
    agents = agents_of(r)
    vc = input_vc(net, n)
    router, came = int64(vc.router), int64(entry_port(net, n))
    escaped = came != NONE and int64(vc.vc) < r.escapes
    if escaped and packet.user0 & PDOR == 0:
        take_escape(tables)
    packet.user0 = PDOR
    name = packet_name(packet)
    observation = carray(singles(r.observation), (r.inputs,))
    there = int64s(r.home)[packet.dst]
    if there == router:
        tell_last_router(net, r, agents, tables, n, name, observation, int64(NOWHERE), int64(0))
        return
    places = carray(int64s(r.coordinates), (r.routers, r.dimensions))
    radices = carray(int64s(r.radices), (r.dimensions,))
    way = distance(radices, r.wraps != 0, places[router], places[there])
    asks = wants_acknowledge(net, packet)
    rules, now = rules_of(net), int64(net.cycle)
    final = escaped and r.one_hop == 0
    if passes_by(tables, rules, router, name, now, way, int64(packet.hops), final, asks, came):
        tell_last_router(net, r, agents, tables, n, name, observation, int64(NOWHERE), int64(0))
        return
    local, remote = carray(int64s(r.local), (r.outputs,)), carray(int64s(r.remote), (r.outputs,))
    count_local(net, r, router, n, local)
    count_remote(net, r, router, remote)
    scales, flits = carray(floats(r.scales), (3,)), int64(packet.length)
    observe(radices, places[router], places[there], max(flits - 2, 0), local, remote, scales, observation)
    allowed, agent = int64s(r.allowed)[router], tables.agents[router]
    if r.minimal != 0:
        allowed &= minimal_actions(radices, r.wraps != 0, places[router], places[there])
    follow_hints(net, r, agents)
    action = decide(agents, agent, observation.reshape((1, r.inputs)), allowed)
    tell_last_router(net, r, agents, tables, n, name, observation, agent, allowed)
    end_decision(agents, agent)
    out = router * net.ports + r.first_port + port_of(action + 1)
    if propose(tables, rules, router, name, now, way, asks, came, observation, action, most_room(net, r, out), flits,
               is_busy(net, r, out)):  # fmt: skip
        packet.user0 = int32((action + 1) << ACTION_BITS)


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
    return 0
