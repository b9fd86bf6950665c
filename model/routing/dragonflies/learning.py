"""Routing that learns on dragonflies: Q-routing and Q-adaptive (definitions/dragonfly-routing.md, spec/dragonfly.md).

``memory`` holds parameters, then the estimated times of every router: float64[router, row, port − p]. A row of
Q-routing is a destination router, one of Q-adaptive a destination group and the number of the source host at its
router. The virtual channel is the number of hops so far. With ``routing.estimate_bits`` the estimates are those of a
table in hardware (`model.router.q_table`): multiples of a step, with rates and thresholds rounded to 1/1024.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import both
from hopforge.model.kernel.memory import words
from hopforge.model.kernel.rng import next_float
from hopforge.model.network.core.candidates import candidate, candidate_port
from hopforge.model.network.core.draws import draw_below
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.parts.feedback import Feedback, learner, reporter
from hopforge.model.numbers.q_rule import keeps_minimal
from hopforge.model.routing.contract.plan import RoutingPlan, need_kind, register, relation
from hopforge.model.routing.dragonflies.group_learning import GROUP_CLASSES, group_learning_plan
from hopforge.model.routing.dragonflies.learned_times import (
    ALPHA,
    BETA,
    CYCLE,
    EPSILON,
    ESTIMATES,
    THRESHOLD_1,
    THRESHOLD_2,
    learn,
    on_steps,
    time_parameters,
)
from hopforge.model.routing.dragonflies.ways import (
    FREE0,
    FREE1,
    PORTS,
    VCS,
    A,
    P,
    add_global,
    add_local,
    add_minimal,
    group_of,
    joined,
    need_dragonfly,
    number_of_packet,
    port_to_host,
    router_of,
    ways_table,
)
from hopforge.model.topology import Topology
from hopforge.model.topology.link_times import linked_ports


@both()
def row_start(table: Any, router: int, row: int) -> int:
    """Place in ``memory`` of a row of a router's estimates; FREE0 of the table: rows of a router."""
    return ESTIMATES + (router * table[FREE0] + row) * (table[PORTS] - table[P])


@both()
def best_place(table: Any, memory: Any, start: int, first: int = 0) -> int:
    """Column with the smallest estimate of a row from column `first` on, the first of equal ones."""
    best, least = first, memory[start + first]
    for k in range(first + 1, table[PORTS] - table[P]):
        better = memory[start + k] < least  # selections, not branches: half of them would be mispredicted
        best = k if better else best
        least = memory[start + k] if better else least
    return best


@both()
def least_time(table: Any, memory: Any, start: int) -> float:
    """Return the smallest estimate of a row."""
    least = memory[start]
    for k in range(1, table[PORTS] - table[P]):
        least = min(least, memory[start + k])
    return least


@both()
def adaptive_row(table: Any, packet: Any) -> int:
    """Row of Q-adaptive: destination group, and number of the source host at its router."""
    p = table[P]
    return group_of(table, router_of(table, packet.dst)) * p + packet.src - router_of(table, packet.src) * p


@both()
def explore(net: Net, table: Any, memory: Any, router: int, start: int, port: int) -> int:
    """With probability ε a random port without a host, unless none leads on there (no estimate); else `port`."""
    if memory[EPSILON] > 0.0 and next_float(words(net.router_rng), router) < memory[EPSILON]:
        chosen = draw_below(net, router, table[FREE1])
        if memory[start + chosen] < np.inf:
            return table[P] + chosen
    return port


def _q_adaptive(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    p, a, dst = table[P], table[A], packet.dst
    hops = 0 if in_port < p else in_vc + 1
    vc = min(hops, table[VCS] - 1)
    port = port_to_host(table, router, dst, number_of_packet(table, packet))
    here, goal = group_of(table, router), group_of(table, router_of(table, dst))
    if here != goal:
        row = row_start(table, router, adaptive_row(table, packet))
        start = row - p
        minimal = port
        lost = not joined(table, here, goal)  # then `minimal` is no port
        if hops == 0:
            best = best_place(table, memory, row) + p
            if lost or not keeps_minimal(memory[start + minimal], memory[start + best], memory[THRESHOLD_1]):
                port = best
            port = explore(net, table, memory, router, row, port)
        elif lost:
            port = best_place(table, memory, row, a - 1) + p
        elif hops == 1 and in_port >= p + a - 1 and minimal < p + a - 1:
            other = p + draw_below(net, router, a - 1)
            if not keeps_minimal(memory[start + minimal], memory[start + other], memory[THRESHOLD_2]):
                port = other
            port = explore(net, table, memory, router, row, port)
        if port != minimal:
            packet.user1 = 1
    out[0] = candidate(port, 1 << vc)
    return 1


def _every_q_adaptive(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    p, a, dst = table[P], table[A], packet.dst
    hops = 0 if in_port < p else in_vc + 1
    vc = min(hops, table[VCS] - 1)
    here, goal = router // a, dst // (p * a)
    lost = here != goal and not joined(table, here, goal)
    second = hops == 1 and in_port >= p + a - 1
    if here == goal or not (hops == 0 or lost or second):
        local = p <= in_port < p + a - 1
        return add_minimal(table, out, router, dst, 1 << vc, local and in_vc >= 2)
    if second and not lost:
        count = add_minimal(table, out, router, dst, 1 << vc, False)
        if candidate_port(out[0]) >= p + a - 1:
            return count
    count = add_local(table, out, 0, router, goal, vc) if hops == 0 or not lost else 0
    return add_global(table, out, count, router, goal, vc)


def _report_q_adaptive(
    router: int, in_port: int, packet: Any, elapsed: int, net: Any, table: Any, memory: Any, note: Any
) -> int:
    a, p = table[A], table[P]
    row = adaptive_row(table, packet)
    rest = 0.0
    if group_of(table, router) == group_of(table, router_of(table, packet.dst)):
        if in_port < p + a - 1:
            return 0
    else:
        start = row_start(table, router, row)
        rest = least_time(table, memory, start)
    note.key = row
    note.value = elapsed * memory[CYCLE] + rest
    return 1


def _learn_q_adaptive(router: int, out_port: int, out_vc: int, note: Any, net: Any, table: Any, memory: Any) -> int:
    place = row_start(table, router, note.key) + out_port - table[P]
    learn(net, memory, router, place, note.value, memory[BETA])
    return 0


def _q_routing(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    p, dst = table[P], packet.dst
    hops = 0 if in_port < p else in_vc + 1
    vc = min(hops, table[VCS] - 1)
    goal = router_of(table, dst)
    port = minimal = port_to_host(table, router, dst, number_of_packet(table, packet))
    if goal != router and hops < table[VCS] - 3:
        start = row_start(table, router, goal)
        port = explore(net, table, memory, router, start, best_place(table, memory, start) + p)
        if port != minimal:
            packet.user1 = 1
    out[0] = candidate(port, 1 << vc)
    return 1


def _every_q_routing(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    hops = 0 if in_port < table[P] else in_vc + 1
    vc = min(hops, table[VCS] - 1)
    goal = router_of(table, packet.dst)
    if goal == router or hops >= table[VCS] - 3:
        local = table[P] <= in_port < table[P] + table[A] - 1
        return add_minimal(table, out, router, packet.dst, 1 << vc, local and in_vc >= table[VCS] - 3)
    group = group_of(table, goal)
    return add_global(table, out, add_local(table, out, 0, router, group, vc), router, group, vc)


def _report_q_routing(
    router: int, in_port: int, packet: Any, elapsed: int, net: Any, table: Any, memory: Any, note: Any
) -> int:
    goal = router_of(table, packet.dst)
    rest = 0.0
    if goal != router:
        start = row_start(table, router, goal)
        rest = least_time(table, memory, start)
    note.key = goal
    note.value = elapsed * memory[CYCLE] + rest
    return 1


def _learn_q_routing(router: int, out_port: int, out_vc: int, note: Any, net: Any, table: Any, memory: Any) -> int:
    place = row_start(table, router, note.key) + out_port - table[P]
    learn(net, memory, router, place, note.value, memory[ALPHA])
    return 0


def first_estimates(topology: Topology, local: float, far: float) -> NDArray[np.float64]:
    """Estimates of Q-adaptive without load, float64[router, group · p + host, port − p].

    A port that has the link to the group: `far`; every other one: `local` + `far`; one without a link, or to where no
    link leads on: infinity. From groups that have lost their link: one group more.
    """
    p, a, g = (int(topology.params[name]) for name in ("p", "a", "g"))
    found = np.full((topology.routers, g, p, topology.max_ports - p), local + far)
    peer = topology.peer_router[:, p:]
    router, port = np.nonzero(peer >= 0)
    goal = peer[router, port] // a
    outside = goal != router // a
    found[router[outside], goal[outside], :, port[outside]] = far
    links = np.eye(g, dtype=bool)
    links[router // a, goal] = True
    leads = np.zeros((topology.routers, g), bool)
    for x, o, y in zip(router[outside], port[outside], goal[outside], strict=True):
        found[x, ~links[x // a] & links[y], :, o] = local + 2 * far
        found[x, ~links[y], :, o] = np.inf
        leads[x] |= links[y]
    for x, o in zip(router[~outside], port[~outside], strict=True):
        for lost in np.flatnonzero(~links[x // a]):
            found[x, lost, :, o] = 2 * (local + far) if leads[peer[x, o], lost] else np.inf
    router, port = np.nonzero(peer < 0)
    found[router, :, :, port] = np.inf
    return found.reshape(topology.routers, g * p, -1)


def first_times(topology: Topology, local: float, far: float) -> NDArray[np.float64]:
    """Estimates of Q-routing without load, float64[router, destination router, port − p]: the shortest way's flight."""
    p, a = int(topology.params["p"]), int(topology.params["a"])
    R = topology.routers
    peer = topology.peer_router[:, p:].astype(np.int64)
    cost = np.where(np.arange(peer.shape[1]) < a - 1, local, far)
    least = np.where(np.eye(R, dtype=bool), 0.0, np.inf)
    for _ in range(3):  # at most local, global, local
        through = np.where((peer >= 0)[:, :, None], cost[None, :, None] + least[peer], np.inf)
        least = np.minimum(least, through.min(axis=1))
    through = np.where((peer >= 0)[:, :, None], cost[None, :, None] + least[peer], np.inf)
    return np.ascontiguousarray(through.transpose(0, 2, 1))


def _plan(
    topology: Topology,
    vcs_needed: int,
    options: dict[str, Any],
    estimates: Callable[[Topology, float, float], NDArray[np.float64]],
    functions: tuple[Callable[..., int], ...],
) -> RoutingPlan:
    head, local, far = time_parameters(topology, options)
    first = estimates(topology, local, far)
    on_steps(first, head)
    table = ways_table(topology, vcs_needed, options.get("links", "own_first"))
    table[FREE0], table[FREE1] = first.shape[1], linked_ports(topology)
    route, every, report, learn = functions
    units = topology.params["g"] if estimates is first_estimates else topology.routers  # that have rows
    own = np.arange(topology.routers) // (topology.routers // units)
    return RoutingPlan(
        relation(route), table, max_candidates=topology.max_ports, random=True, inject_mask=1, every=relation(every),
        feedback=Feedback(reporter(report), learner(learn)), memory=np.concatenate([head, first.reshape(-1)]),
        estimates=(ESTIMATES, first.shape),
        asked=np.arange(first.shape[1]) // (first.shape[1] // units) != own[:, None],
    )  # fmt: skip


@register("q_adaptive")
def prepare_q_adaptive(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Q-adaptive: a table of two levels; on a dragonfly at most five hops, five virtual channels."""
    if topology.kind in GROUP_CLASSES:
        return group_learning_plan(topology, vcs, options)
    need_kind(topology, "q_adaptive", "dragonfly", *GROUP_CLASSES)
    need_dragonfly(topology, "q_adaptive", vcs, 5, "one for each link of the longest way")
    return _plan(
        topology, 5, options, first_estimates, (_q_adaptive, _every_q_adaptive, _report_q_adaptive, _learn_q_adaptive)
    )


@register("q_routing")
def prepare_q_routing(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Q-routing: ``max_q`` hops by estimates for each destination router, then minimal; ``max_q`` + 3 channels."""
    needed = int(options.get("max_q", 3)) + 3
    why = f"one for each link of the longest way, {needed - 3} by learned times and 3 minimal ones"
    need_dragonfly(topology, "q_routing", vcs, needed, why, around=False)
    return _plan(
        topology, needed, options, first_times, (_q_routing, _every_q_routing, _report_q_routing, _learn_q_routing)
    )
