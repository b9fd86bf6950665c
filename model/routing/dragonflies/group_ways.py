"""Ways through groups of any shape: which port leads to a group, or to a router of the own one, as a table.

docs/definitions/learning-on-groups.md. The header of the table holds sizes, and where its parts begin; then follow

- of each host its router, its number in its group and its port; of each router its group, its place in it and whether
  it has hosts; of each port its class (`NO_LINK`, `LOCAL`, `GLOBAL`);
- of each router the ports that a decision may take: two numbers (local, global), then these ports;
- the global links of each pair of groups (`model.topology.groups.links_of_groups`);
- the shape of a group: links between two places, and the places of the next routers on the way from one to the other;
- of each router and place in its group the parallel links to it; of each class its channels, of each channel its class.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.compile import both
from hopforge.model.network.core.candidates import candidate, candidate_port
from hopforge.model.routing.contract.plan import RoutingError, need_vcs, vc_range
from hopforge.model.topology import Topology
from hopforge.model.topology.group_shape import GroupShape, group_shape
from hopforge.model.topology.groups import links_of_groups, ports_between_groups, router_groups
from hopforge.model.topology.parallel_links import PORT_BITS, PORT_MASK, link_number

#: header: ports of a router, routers of a group, groups, links of a pair of groups, rows of estimates for a group,
#: hosts of a router that has any, first port of a column of estimates, whether the source is in the number of a packet,
#: entries of a list of next places and of parallel links, the last class, all channels; where the parts begin
(
    PORTS, SIZE, GROUPS, LINKS, ROWS, HOSTS, FIRST, HASHED, NEXT_ROOM, PARALLEL_ROOM, LAST, ALL,
    HOMES, NUMBERS, HOST_PORTS, GROUP, PLACE, HOSTLESS, KIND, CHOICES, GATES, APART, NEXT, PARALLEL, MASKS, CLASSES,
    HEADER,
) = range(27)  # fmt: skip
#: what a port leads to: a host or nothing, a router of the group, another group
NO_LINK, LOCAL, GLOBAL = range(3)


@both()
def look(table: Any, part: int, place: int) -> int:
    """Entry of a part of the table."""
    return table[table[part] + place]


@both()
def kind_of(table: Any, router: int, port: int) -> int:
    """Tell what a port leads to: `NO_LINK` (or a host), `LOCAL`, `GLOBAL`."""
    return table[table[KIND] + router * table[PORTS] + port]


@both()
def mask_of(table: Any, number: int) -> int:
    """Channels of a class."""
    return table[table[MASKS] + number]


@both()
def choices_of(table: Any, router: int) -> int:
    """Where the list of a router's choices begins: local ports, global ports, and these ports."""
    return table[CHOICES] + router * (table[PORTS] + 2)


@both()
def number_of_packet(table: Any, packet: Any) -> int:
    """Return the number by which a packet chooses among equals."""
    return link_number(packet.src, packet.dst, table[HASHED] == 1)


@both()
def inside_port(table: Any, router: int, place: int, number: int) -> int:
    """Port towards the router at another place of the same group."""
    mine = look(table, PLACE, router)
    room = table[NEXT_ROOM] + 1
    at = table[NEXT] + (mine * table[SIZE] + place) * room
    count = table[at]
    following = table[at + 1 + number % count]
    number //= count
    at = table[PARALLEL] + (router * table[SIZE] + following) * (table[PARALLEL_ROOM] + 1)
    return table[at + 1 + number % table[at]]


@both()
def port_to_group(table: Any, router: int, goal: int, number: int) -> int:
    """Minimal port towards another group: a global link of this router, or the way to a nearest gate."""
    mine, links = look(table, PLACE, router), table[LINKS]
    first = table[GATES] + (look(table, GROUP, router) * table[GROUPS] + goal) * links
    apart = table[APART] + mine * table[SIZE]
    nearest, count = 1 << 30, 0
    for k in range(links):
        entry = table[first + k]
        if entry >= 0:
            far = table[apart + (entry >> PORT_BITS)]
            if far < nearest:
                nearest, count = far, 1
            elif far == nearest:
                count += 1
    wanted = number % count
    entry = -1
    for k in range(links):
        other = table[first + k]
        if other >= 0 and table[apart + (other >> PORT_BITS)] == nearest:
            if wanted == 0:
                entry = other
            wanted -= 1
    if nearest == 0:
        return entry & PORT_MASK
    return inside_port(table, router, entry >> PORT_BITS, number // count)


@both()
def is_gate(table: Any, router: int, goal: int) -> bool:
    """Whether a router has a global link to another group."""
    mine, links = look(table, PLACE, router), table[LINKS]
    first = table[GATES] + (look(table, GROUP, router) * table[GROUPS] + goal) * links
    found = False
    for k in range(links):
        found = found or (table[first + k] >= 0 and table[first + k] >> PORT_BITS == mine)
    return found


@both()
def _add(out: Any, count: int, port: int, mask: int) -> int:
    """Add a candidate unless its port is one already."""
    for k in range(count):
        if candidate_port(out[k]) == port:
            return count
    out[count] = candidate(port, mask)
    return count + 1


@both()
def add_inside(table: Any, out: Any, count: int, router: int, place: int, mask: int) -> int:
    """Add a candidate for every port that `inside_port` may give, whatever the number."""
    mine = look(table, PLACE, router)
    at = table[NEXT] + (mine * table[SIZE] + place) * (table[NEXT_ROOM] + 1)
    for k in range(table[at]):
        room = table[PARALLEL_ROOM] + 1
        parallel = table[PARALLEL] + (router * table[SIZE] + table[at + 1 + k]) * room
        for j in range(table[parallel]):
            count = _add(out, count, table[parallel + 1 + j], mask)
    return count


@both()
def add_to_group(table: Any, out: Any, router: int, goal: int, mask: int) -> int:
    """Make a candidate of every port that `port_to_group` may give, whatever the number."""
    mine, links, count = look(table, PLACE, router), table[LINKS], 0
    first = table[GATES] + (look(table, GROUP, router) * table[GROUPS] + goal) * links
    apart = table[APART] + mine * table[SIZE]
    nearest = 1 << 30
    for k in range(links):
        if table[first + k] >= 0:
            nearest = min(nearest, table[apart + (table[first + k] >> PORT_BITS)])
    for k in range(links):
        entry = table[first + k]
        if entry >= 0 and table[apart + (entry >> PORT_BITS)] == nearest:
            if nearest == 0:
                count = _add(out, count, entry & PORT_MASK, mask)
            else:
                count = add_inside(table, out, count, router, entry >> PORT_BITS, mask)
    return count


def group_table(topology: Topology, vcs: int, classes: int, *, hashed: bool) -> NDArray[np.int32]:
    """Table of the module for a network of groups whose links `need_group_links` has found whole."""
    group, between, shape = router_groups(topology), ports_between_groups(topology), group_shape(topology)
    assert group is not None, "checked by the algorithm"
    size, ports = shape.size, topology.max_ports
    place = np.arange(topology.routers) % size
    hosts = np.bincount(topology.host_router, minlength=topology.routers)
    kind = np.where(topology.peer_router < 0, NO_LINK, np.where(between, GLOBAL, LOCAL))
    gates = links_of_groups(topology)
    masks = [vc_range(k * vcs // classes, (k + 1) * vcs // classes - 1) for k in range(classes)]
    of_vc = [next(k for k, mask in enumerate(masks) if mask >> vc & 1) for vc in range(vcs)]
    parallel = parallel_lists(topology, size)
    numbers = np.arange(topology.hosts) % np.bincount(group[topology.host_router])[0]
    parts = [
        topology.host_router, numbers, topology.host_port, group, place, hosts == 0, kind,
        _choices(topology, kind, hosts == 0), gates, shape.apart, shape.following, parallel, np.array(masks),
        np.array(of_vc),
    ]  # fmt: skip
    header = np.zeros(HEADER, np.int64)
    rows = hosts.max() if hosts.min() > 0 else numbers.max() + 1
    header[[PORTS, SIZE, GROUPS, LINKS, ROWS, HOSTS]] = [ports, size, len(gates), gates.shape[2], rows, hosts.max()]
    header[[FIRST, HASHED, NEXT_ROOM]] = [hosts.min(), hashed, shape.following.shape[2] - 1]
    header[[PARALLEL_ROOM, LAST, ALL]] = [parallel.shape[2] - 1, classes - 1, (1 << vcs) - 1]
    header[HOMES:HEADER] = HEADER + np.cumsum([0, *(np.size(part) for part in parts[:-1])])
    return np.concatenate([header, *(np.ravel(part) for part in parts)]).astype(np.int32)


def parallel_lists(topology: Topology, size: int) -> NDArray[np.int64]:
    """Return how many links lead from a router to each place of its group, and their ports: int64[router, place, …]."""
    local = (topology.peer_router >= 0) & ~ports_between_groups(topology)
    router, port = np.nonzero(local)
    key = router * size + topology.peer_router[router, port] % size
    order = np.argsort(key, kind="stable")
    key, port = key[order], port[order]
    count = np.bincount(key, minlength=topology.routers * size)
    lists = np.zeros((topology.routers * size, int(count.max(initial=1)) + 1), np.int64)
    lists[:, 0] = count
    lists[key, 1 + np.arange(len(key)) - np.searchsorted(key, key)] = port
    return lists.reshape(topology.routers, size, -1)


def _choices(topology: Topology, kind: NDArray[np.int64], hostless: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the ports that decisions may take: local ones (to no spine without global links), then global ones."""
    lost = hostless & ~(kind == GLOBAL).any(axis=1)
    useful = (kind == LOCAL) & ~lost[np.maximum(topology.peer_router, 0)]
    lists = np.zeros((topology.routers, topology.max_ports + 2), np.int64)
    for router in range(topology.routers):
        local, far = np.flatnonzero(useful[router]), np.flatnonzero(kind[router] == GLOBAL)
        lists[router, :2] = len(local), len(far)
        lists[router, 2 : 2 + len(local) + len(far)] = [*local, *far]
    return lists


def need_group_links(topology: Topology, name: str, vcs: int, classes: int, why: str) -> None:
    """Refuse too few channels, and a network that has lost links which the algorithm `name` cannot do without.

    Raises
    ------
    RoutingError
        Fewer channels than classes; a link inside a group has failed, or a pair of groups has no link: names both ends.
    """
    need_vcs(name, vcs, classes, why)
    shape: GroupShape = group_shape(topology)
    missing = shape.apart[None] == 1
    missing = missing & (parallel_lists(topology, shape.size)[:, :, 0].reshape(-1, shape.size, shape.size) == 0)
    if missing.any():
        group, first, second = np.argwhere(missing)[0].tolist()
        raise RoutingError(
            f"routing.algorithm {name}: only links between groups may fail, not that of routers "
            f"{group * shape.size + first} and {group * shape.size + second}, which are in one group"
        )
    gates = links_of_groups(topology)
    lost = (gates[:, :, 0] < 0) & ~np.eye(len(gates), dtype=bool)
    if lost.any():
        first, second = np.argwhere(lost)[0].tolist()
        raise RoutingError(f"routing.algorithm {name}: groups {first} and {second} have no link")
