"""Q-adaptive on groups of other shapes than fully connected ones (docs/definitions/learning-on-groups.md).

``memory`` holds parameters as in `model.routing.dragonflies.learning`, then the estimated times to each group:
float64[router, group · hosts + number of the source host, port − first]. Infinite: no port of a decision.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.free_memory import refuse_beyond_memory
from hopforge.model.kernel.compile import both
from hopforge.model.kernel.memory import words
from hopforge.model.kernel.rng import next_float
from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.draws import draw_below
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.parts.feedback import Feedback, learner, reporter
from hopforge.model.numbers.q_rule import keeps_minimal
from hopforge.model.routing.contract.plan import RoutingError, RoutingPlan, relation
from hopforge.model.routing.dragonflies.group_ways import (
    ALL,
    CLASSES,
    FIRST,
    GLOBAL,
    GROUP,
    GROUPS,
    HOMES,
    HOST_PORTS,
    HOSTLESS,
    HOSTS,
    LAST,
    LOCAL,
    NO_LINK,
    NUMBERS,
    PLACE,
    PORTS,
    ROWS,
    add_inside,
    add_to_group,
    choices_of,
    group_table,
    inside_port,
    is_gate,
    kind_of,
    look,
    mask_of,
    need_group_links,
    number_of_packet,
    port_to_group,
)
from hopforge.model.routing.dragonflies.learned_times import (
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
from hopforge.model.topology import Topology
from hopforge.model.topology.group_shape import group_shape
from hopforge.model.topology.groups import links_of_groups, ports_between_groups, router_groups
from hopforge.model.topology.parallel_links import PORT_BITS

#: kind → classes of virtual channels, most links of a packet
GROUP_CLASSES = {"dragonfly_plus": (2, 6), "cascade": (3, 7)}
_WHY = {
    "dragonfly_plus": "one for links by choice, one for all others",
    "cascade": "one for links by choice, one for others, one inside the last group",
}
#: decisions: in the source router, in a spine of the source group, in the first router of an intermediate group, none
_SOURCE, _LEAVING, _ARRIVING, _MINIMAL = range(4)


@both()
def _row(table: Any, packet: Any, router: int, goal: int) -> int:
    """Place in ``memory`` of a packet's estimates at a router, if it had a column for each port."""
    return _row_of(table, router, goal, look(table, NUMBERS, packet.src))


@both()
def _row_of(table: Any, router: int, goal: int, number: int) -> int:
    """As `_row`, by the number of the source host in its group; routers with hosts tell less of them apart."""
    if look(table, HOSTLESS, router) == 0:
        number %= table[HOSTS]
    row = (router * table[GROUPS] + goal) * table[ROWS] + number
    return ESTIMATES + row * (table[PORTS] - table[FIRST]) - table[FIRST]


@both()
def _best(table: Any, memory: Any, row: int, first: int, count: int) -> int:
    """Port of the smallest estimate among `count` choices, which stand in the table from `first` on."""
    best, least = table[first], memory[row + table[first]]
    for k in range(1, count):
        port = table[first + k]
        if memory[row + port] < least:
            best, least = port, memory[row + port]
    return best


@both()
def _first_and_count(table: Any, router: int, decision: int) -> tuple[int, int]:
    """Where the choices of a decision stand in the table, and how many there are."""
    at = choices_of(table, router)
    local, far = table[at], table[at + 1]
    if decision == _SOURCE:
        return at + 2, local + far
    if decision == _LEAVING:
        return at + 2 + local, far
    return at + 2, local


@both()
def _decision(table: Any, router: int, in_port: int, in_vc: int, goal: int) -> int:
    """Which decision is due about a packet that is not yet in its goal."""
    kind = kind_of(table, router, in_port)
    if kind == NO_LINK:
        return _SOURCE
    if kind == LOCAL:
        leaving = look(table, HOSTLESS, router) == 1 and look(table, CLASSES, in_vc) == 0
        return _LEAVING if leaving else _MINIMAL
    return _MINIMAL if is_gate(table, router, goal) else _ARRIVING


@both()
def _explored(net: Net, table: Any, memory: Any, router: int, first: int, count: int, port: int) -> int:
    """With probability ε a random one of `count` choices, else `port`."""
    if memory[EPSILON] > 0.0 and next_float(words(net.router_rng), router) < memory[EPSILON]:
        return table[first + draw_below(net, router, count)]
    return port


@both()
def _chosen(net: Net, table: Any, memory: Any, router: int, decision: int, row: int, minimal: int) -> int:
    """Port of a decision."""
    first, count = _first_and_count(table, router, decision)
    if decision == _ARRIVING:
        other, threshold = table[first + draw_below(net, router, count)], memory[THRESHOLD_2]
    else:
        other, threshold = _best(table, memory, row, first, count), memory[THRESHOLD_1]
    port = other
    # a spine that is no gate has no minimal port: the way down is none of its choices
    has_minimal = decision != _LEAVING or kind_of(table, router, minimal) == GLOBAL
    if has_minimal and keeps_minimal(memory[row + minimal], memory[row + other], threshold):
        port = minimal
    return _explored(net, table, memory, router, first, count, port)


def _q_adaptive(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    dst, number = packet.dst, number_of_packet(table, packet)
    home = look(table, HOMES, dst)
    here, goal = look(table, GROUP, router), look(table, GROUP, home)
    if here == goal:
        if home == router:
            out[0] = candidate(look(table, HOST_PORTS, dst), table[ALL])
        else:
            port = inside_port(table, router, look(table, PLACE, home), number)
            out[0] = candidate(port, mask_of(table, table[LAST]))
        return 1
    decision = _decision(table, router, in_port, in_vc, goal)
    port = minimal = port_to_group(table, router, goal, number)
    if decision != _MINIMAL:
        port = _chosen(net, table, memory, router, decision, _row(table, packet, router, goal), minimal)
        if port != minimal:
            packet.user1 = 1
    out[0] = candidate(port, mask_of(table, 1 if decision == _MINIMAL else 0))
    return 1


def _every_q_adaptive(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    dst = packet.dst
    home = look(table, HOMES, dst)
    here, goal = look(table, GROUP, router), look(table, GROUP, home)
    if here == goal:
        if home == router:
            out[0] = candidate(look(table, HOST_PORTS, dst), table[ALL])
            return 1
        return add_inside(table, out, 0, router, look(table, PLACE, home), mask_of(table, table[LAST]))
    decision = _decision(table, router, in_port, in_vc, goal)
    if decision == _MINIMAL:
        return add_to_group(table, out, router, goal, mask_of(table, 1))
    first, count = _first_and_count(table, router, decision)
    for k in range(count):
        out[k] = candidate(table[first + k], mask_of(table, 0))
    return count


def _report_q_adaptive(
    router: int, in_port: int, packet: Any, elapsed: int, net: Any, table: Any, memory: Any, note: Any
) -> int:
    here, goal = look(table, GROUP, router), look(table, GROUP, look(table, HOMES, packet.dst))
    far = kind_of(table, router, in_port) == GLOBAL
    rest = 0.0
    if here == goal:
        if not far:
            return 0
    else:
        row = _row(table, packet, router, goal)
        leaving = look(table, HOSTLESS, router) == 1 and here == look(table, GROUP, look(table, HOMES, packet.src))
        if leaving or (far and not is_gate(table, router, goal)):
            first, count = _first_and_count(table, router, _LEAVING if leaving else _ARRIVING)
            rest = memory[row + _best(table, memory, row, first, count)]
        else:
            rest = memory[row + port_to_group(table, router, goal, number_of_packet(table, packet))]
    note.key = look(table, NUMBERS, packet.src) * table[GROUPS] + goal
    note.value = elapsed * memory[CYCLE] + rest
    return 1


def _learn_q_adaptive(router: int, out_port: int, out_vc: int, note: Any, net: Any, table: Any, memory: Any) -> int:
    row = _row_of(table, router, note.key % table[GROUPS], note.key // table[GROUPS])
    learn(net, memory, router, row + out_port, note.value, memory[BETA])
    return 0


def first_estimates(topology: Topology, local: float, far: float) -> NDArray[np.float64]:
    """Return the times of the empty network, float64[router, group, port]: of a port and the ways left behind it.

    Infinite: no port that a decision or a minimal way takes.
    """
    group, between, shape = router_groups(topology), ports_between_groups(topology), group_shape(topology)
    assert group is not None, "checked by `group_learning_plan`"
    place = np.arange(topology.routers) % shape.size
    gates = links_of_groups(topology)
    links = np.where((gates >= 0)[None], shape.apart[:, np.maximum(gates, 0) >> PORT_BITS], 1 << 20)
    nearest = links.min(axis=3)  # [place, group, goal]
    minimal = np.where(group[:, None] == np.arange(len(gates)), 0.0, local * nearest[place, group] + far)
    peer = np.maximum(topology.peer_router, 0)
    found = np.where(between[:, :, None], far + minimal[peer], np.inf)  # [router, port, goal]
    leaving = found.min(axis=1)
    hosts = np.bincount(topology.host_router, minlength=topology.routers)
    onward = np.where((hosts == 0)[:, None], leaving, minimal)
    inside = (topology.peer_router >= 0) & ~between
    found = np.where(inside[:, :, None], local + onward[peer], found)
    return np.ascontiguousarray(found.transpose(0, 2, 1))


def group_learning_plan(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Q-adaptive on a network of `GROUP_CLASSES`.

    Raises
    ------
    RoutingError
        Too few channels, links that are missed, or a rule of parallel links that does not fit.
    """
    classes, most_links = GROUP_CLASSES[topology.kind]
    need_group_links(topology, "q_adaptive", vcs, classes, _WHY[topology.kind])
    rule = options.get("links", "own_first")
    if rule not in ("own_first", "hash"):
        raise RoutingError(
            f"routing.links must be own_first or hash for routing.algorithm q_adaptive on {topology.kind}, not {rule}"
        )
    head, local, far = time_parameters(topology, options)
    table = group_table(topology, vcs, classes, hashed=rule == "hash")
    refuse_beyond_memory(
        3 * 8 * topology.routers * int(table[GROUPS]) * int(table[ROWS]) * (topology.max_ports - int(table[FIRST])),
        "learned times of routing.algorithm q_adaptive",
    )
    first = np.repeat(first_estimates(topology, local, far), table[ROWS], axis=1)[:, :, table[FIRST] :]
    on_steps(first, head)
    group, with_hosts = router_groups(topology), np.isin(np.arange(topology.routers), topology.host_router)
    assert group is not None, "checked by `need_group_links`"
    goal, number = np.divmod(np.arange(first.shape[1]), int(table[ROWS]))
    return RoutingPlan(
        relation(_q_adaptive), table, max_candidates=topology.max_ports, random=True, inject_mask=1,
        every=relation(_every_q_adaptive), one_per_router=True, by_source=rule == "hash",
        feedback=Feedback(reporter(_report_q_adaptive), learner(_learn_q_adaptive)),
        memory=np.concatenate([head, first.reshape(-1)]), estimates=(ESTIMATES, first.shape),
        asked=(goal != group[:, None]) & ((number < table[HOSTS]) | ~with_hosts[:, None]),
        words=f"{classes} classes of virtual channels in an order; a packet takes at most {most_links} links",
    )  # fmt: skip
