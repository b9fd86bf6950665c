"""Deadlock: proved absent from the channel dependency graph, found as a cycle of waiting channels during a run.

Dally and Seitz (1987): no cycle of channel dependencies, no deadlock. Duato (1993): adaptive routing is safe if an
escape part that every packet can always ask for has no cycle of direct and indirect dependencies. A channel here is one
output VC.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import int64, njit, types, uint64
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from hopforge.model.errors import UserError
from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import CachedKernel
from hopforge.model.kernel.memory import floats, int32s, int64s
from hopforge.model.network.core.candidates import candidate_level, candidate_mask, candidate_port
from hopforge.model.network.core.records import (
    ACTIVE,
    NET_RECORD,
    PACKET,
    PACKET_RECORD,
    ROUTE_SIGNATURE,
    VA,
    WORMHOLE,
    Net,
    host_at,
    input_port,
    input_vc,
    output_vc,
)
from hopforge.model.network.core.state import NetState
from hopforge.model.routing.plan import RoutingPlan
from hopforge.model.topology import Topology

#: evaluations of a state by which a relation that draws random numbers is taken to have shown all its answers
RANDOM_REPEATS = 24
#: most (routers × hosts × intermediate routers) that a check explores
MAX_WORK = 200_000_000


class DeadlockError(UserError):
    """A combination of network, routing and VCs that can deadlock, or a run that did: prints the cycle of channels."""


@njit
def _evaluate(route: Callable[..., int], net: Net, packet: Any, n: int, phase: int, via: int) -> int:
    """Call the relation for a packet in input VC `n`; candidates are in ``net.candidate``."""
    vc = input_vc(net, n)
    port = input_port(net, vc.port)
    packet.phase = phase
    packet.via = via
    packet.hops = 0 if vc.credit_to >= net.output_vcs else 1
    return route(
        int64(port.router),
        int64(port.port),
        int64(vc.vc),
        packet,
        net,
        int32s(net.table),
        floats(net.memory),
        int64s(net.candidate),
    )


def _make_explore(digest: str) -> Callable[..., int]:
    def explore(
        route: Callable[..., int],
        net: Net,
        packet: Any,
        dst: int,
        via: int,
        phases: int,
        repeats: int,
        escape: int,
        depends: Any,
        seen: Any,
        stack: Any,
    ) -> int:
        """Walk all states of packets to host `dst` and note the dependencies.

        Returns −1, or the input VC without candidates (or escape).

        `escape` 0: ``depends[channel, port·V + vc]`` between all channels. 1: between channels of level > 0 only.
        """
        if len(digest) == 0:
            return -1
        ports, vcs = net.ports, net.vcs
        count = 0
        for h in range(net.hosts):
            for v in range(vcs):
                if (host_at(net, h).inject_mask >> v) & 1:
                    stack[count] = (int64(host_at(net, h).input_vc) + v) * phases
                    if not seen[stack[count]]:
                        seen[stack[count]] = 1
                        count += 1
        packet.dst = dst
        packet.length = 1
        while count > 0:
            count -= 1
            state = stack[count]
            n, phase = state // phases, state % phases
            arrived = int64(input_vc(net, n).credit_to)
            router = int64(input_port(net, input_vc(net, n).port).router)
            for _ in range(repeats):
                candidates = _evaluate(route, net, packet, n, phase, via)
                after = int64(packet.phase)
                if candidates == 0:
                    return n
                safe = False
                for k in range(candidates):
                    packed = int64s(net.candidate)[k]
                    level = candidate_level(packed)
                    o = candidate_port(packed)
                    mask = candidate_mask(packed)
                    if mask == 0:
                        return n
                    while mask != 0:
                        w = trailing_zeros(uint64(mask))
                        mask &= mask - 1
                        target = int64(output_vc(net, (router * ports + o) * vcs + w).target)
                        if target < 0:
                            return n
                        if target >= net.input_vcs:
                            safe = True
                            continue
                        if level > 0:
                            safe = True
                        if escape == 0 and arrived < net.output_vcs:
                            depends[arrived, o * vcs + w] = 1
                        following = target * phases + after
                        if not seen[following]:
                            seen[following] = 1
                            stack[count] = following
                            count += 1
                if escape != 0 and not safe:
                    return n
        return -1

    return explore


def _make_indirect(digest: str) -> Callable[..., int]:
    def indirect(
        route: Callable[..., int],
        net: Net,
        packet: Any,
        dst: int,
        via: int,
        phases: int,
        edges: Any,
        reached: Any,
        mark: Any,
        stack: Any,
        sources: Any,
    ) -> int:
        """Dependencies between escape channels for host `dst`; call after `explore` with its `seen` as `reached`.

        From each escape channel: walk on over channels of level 0 only and note every escape channel asked for on
        the way.
        `edges[channel, channel]`, `mark` int32[states].
        """
        if len(digest) == 0:
            return 0
        ports, vcs = net.ports, net.vcs
        packet.dst = dst
        # escape channels that packets to dst use: states that an escape candidate leads to
        found = 0
        for state in range(net.input_vcs * phases):
            mark[state] = -1
        for state in range(net.input_vcs * phases):
            if not reached[state]:
                continue
            n = state // phases
            router = int64(input_port(net, input_vc(net, n).port).router)
            candidates = _evaluate(route, net, packet, n, state % phases, via)
            after = int64(packet.phase)
            for k in range(candidates):
                packed = int64s(net.candidate)[k]
                if candidate_level(packed) == 0:
                    continue
                mask = candidate_mask(packed)
                while mask != 0:
                    m = (router * ports + candidate_port(packed)) * vcs + trailing_zeros(uint64(mask))
                    mask &= mask - 1
                    target = int64(output_vc(net, m).target)
                    if target < net.input_vcs and mark[target * phases + after] != -2:
                        mark[target * phases + after] = -2
                        sources[found] = target * phases + after
                        found += 1
        for s in range(found):
            mark[sources[s]] = -1
        for s in range(found):
            start = int64(input_vc(net, sources[s] // phases).credit_to)
            count = 1
            stack[0] = sources[s]
            mark[sources[s]] = s
            while count > 0:
                count -= 1
                n = stack[count] // phases
                router = int64(input_port(net, input_vc(net, n).port).router)
                candidates = _evaluate(route, net, packet, n, stack[count] % phases, via)
                after = int64(packet.phase)
                for k in range(candidates):
                    packed = int64s(net.candidate)[k]
                    mask = candidate_mask(packed)
                    while mask != 0:
                        m = (router * ports + candidate_port(packed)) * vcs + trailing_zeros(uint64(mask))
                        mask &= mask - 1
                        target = int64(output_vc(net, m).target)
                        if target >= net.input_vcs:
                            continue
                        if candidate_level(packed) > 0:
                            edges[start, m] = 1
                        elif mark[target * phases + after] != s:
                            mark[target * phases + after] = s
                            stack[count] = target * phases + after
                            count += 1
        return found

    return indirect


_U2 = types.Array(types.uint8, 2, "C")
_U1 = types.Array(types.uint8, 1, "C")
_I1 = types.Array(types.int64, 1, "C")
_ROUTE = types.FunctionType(ROUTE_SIGNATURE)
_explore = CachedKernel(
    _make_explore, int64(_ROUTE, NET_RECORD, PACKET_RECORD, int64, int64, int64, int64, int64, _U2, _U1, _I1)
)
_indirect = CachedKernel(
    _make_indirect, int64(_ROUTE, NET_RECORD, PACKET_RECORD, int64, int64, int64, _U2, _U1, _I1, _I1, _I1)
)


def check_routing(
    topology: Topology, plan: RoutingPlan, state: NetState, name: str, hosts: NDArray[np.bool_] | None = None
) -> int:
    """Prove the plan's obligation for this network; the state of the simulation is not touched.

    Parameters
    ----------
    topology, plan, state
        The network, the routing, and the built state.
    name : str
        Of the algorithm, for messages.
    hosts : ndarray, bool[host], optional
        Destinations; by default all.

    Returns
    -------
    int
        Number of channel dependencies that were checked.

    Raises
    ------
    DeadlockError
        A cycle (printed), a destination without a route, or a state without an escape.
    """
    record = state.record[0]
    if plan.obligation == "checked":
        return 0
    route, whole = (plan.route, False) if plan.every is None else (plan.every, True)
    vias = range(topology.routers) if plan.uses_via and not whole else range(-1, 0)
    V, NI = int(record["vcs"]), int(record["input_vcs"])
    # a packet that holds a virtual channel in which another one still stands cannot go to its escape any more
    committed = int(record["switching_mode"]) == WORMHOLE and not record["release_credits"]
    escape = plan.obligation == "escape" and not committed
    work = NI * topology.hosts * len(vias) * (V * topology.max_ports if escape else 1)
    if work > MAX_WORK * 50:
        raise DeadlockError(
            f"routing.check: {name} on the {topology.name} has too many states to be checked; set routing.check: false"
        )
    saved = {key: state[key].copy() for key in ("router_rng", "memory", "candidate")}
    packet = np.zeros(1, PACKET)[0]
    depends = np.zeros((NI, topology.max_ports * V), np.uint8)
    edges = np.zeros((NI, NI) if escape else (1, 1), np.uint8)
    states = NI * plan.phases
    stack, sources, mark = np.zeros(states, np.int64), np.zeros(states, np.int64), np.zeros(states, np.int64)
    for dst in range(topology.hosts) if hosts is None else np.flatnonzero(hosts).tolist():
        for via in vias:
            seen = np.zeros(states, np.uint8)
            repeats = RANDOM_REPEATS if plan.random and not whole else 1
            stuck = _explore(
                route, record, packet, dst, via, plan.phases, repeats, int(escape), depends, seen, stack
            )
            if stuck >= 0:
                what = "no escape" if escape else "no output"
                raise DeadlockError(
                    f"routing.algorithm {name}: a packet to host {dst} finds {what} in {_input_name(state, int(stuck))}"
                )
            if escape:
                _indirect(route, record, packet, dst, via, plan.phases, edges, seen, mark, stack, sources)
    for key, array in saved.items():
        state[key][:] = array
    if escape:
        source, target = np.nonzero(edges)
    else:
        source, local = np.nonzero(depends)
        peer = state["output_vc"]["target"][source].astype(np.int64)
        router = peer // (V * topology.max_ports)
        target = router * topology.max_ports * V + local
    cycle = find_cycle(source, target, NI)
    if cycle:
        text = " → ".join(channel_name(topology, V, m) for m in [*cycle, cycle[0]])
        kind = "escape channels" if escape else "channels"
        hint = ""
        if plan.obligation == "escape" and committed:
            hint = (
                "; its escape is out of reach for a packet that was given a virtual channel in which another packet "
                "still stands: set router.vc_release: credits, or router.switching: vct"
            )
        raise DeadlockError(
            f"routing.algorithm {name} can deadlock on the {topology.name} with {V} VCs; cycle of {kind}: {text}{hint}"
        )
    return len(source)


def find_cycle(source: NDArray[Any], target: NDArray[Any], nodes: int) -> list[int]:
    """One cycle of a directed graph given by its edges, as a list of nodes; empty if there is none."""
    if len(source) == 0:
        return []
    graph = csr_array((np.ones(len(source), np.int8), (source, target)), shape=(nodes, nodes))
    _, component = connected_components(graph, directed=True, connection="strong")
    sizes = np.bincount(component)
    inside = (component[source] == component[target]) & ((sizes[component[source]] > 1) | (source == target))
    if not inside.any():
        return []
    following: dict[int, int] = {}
    for a, b in zip(source[inside].tolist(), target[inside].tolist(), strict=True):
        following.setdefault(a, b)
    place: dict[int, int] = {}
    path: list[int] = []
    node = int(source[inside][0])
    while node not in place:
        place[node] = len(path)
        path.append(node)
        node = following[node]
    return path[place[node] :]


def channel_name(topology: Topology, vcs: int, m: int) -> str:
    """Output VC `m` for people: ``3.1→4 VC0`` (router 3, port 1, to router 4)."""
    router, rest = divmod(m, topology.max_ports * vcs)
    port, vc = divmod(rest, vcs)
    peer = int(topology.peer_router[router, port])
    return f"{router}.{port}→{peer if peer >= 0 else 'host'} VC{vc}"


def _input_name(state: NetState, n: int) -> str:
    V, P = int(state["vcs"]), int(state["ports"])
    router, rest = divmod(n, P * V)
    return f"router {router}, input port {rest // V}, VC {rest % V}"


def waiting_cycle(topology: Topology, state: NetState) -> list[int]:
    """Find the cycle of output VCs that wait for each other in a deadlocked state (empty: none is found).

    A packet that has an output VC without credits waits for the packet at the front of the buffer behind it; a packet
    in VA waits for the owners of the output VCs it may use.
    """
    vcs, outs = state["input_vc"], state["output_vc"]
    V, P, most = int(state["vcs"]), int(state["ports"]), int(state["max_candidates"])
    candidate = state["candidate"].reshape(-1, most)
    source, target = [], []
    for n in np.flatnonzero(vcs["flits"] > 0):
        held = int(vcs["credit_to"][n])
        if vcs["state"][n] == ACTIVE:
            wanted = [int(vcs["out_vc"][n])]
        elif vcs["state"][n] == VA:
            router = int(n) // (P * V)
            wanted = [
                (router * P + (int(c) & 255)) * V + w
                for c in candidate[n, : vcs["candidates"][n]]
                for w in range(V)
                if (int(c) >> 16) >> w & 1
            ]
        else:
            continue
        for m in wanted:
            if held < len(outs):
                source.append(held)
                target.append(m)
            owner = int(outs["owner"][m])
            if vcs["state"][n] == VA and owner >= 0 and int(vcs["credit_to"][owner]) < len(outs) and held < len(outs):
                source.append(held)
                target.append(int(vcs["credit_to"][owner]))
    return find_cycle(np.array(source, np.int64), np.array(target, np.int64), len(outs))
