"""Routing on meshes and tori: dimension order, star-channel (Duato), Valiant."""

from typing import Any

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import both, inlined
from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.draws import draw_below
from hopforge.model.routing.contract.plan import (
    RoutingError,
    RoutingPlan,
    all_vcs,
    need_kind,
    need_vcs,
    register,
    regular,
    relation,
    vc_range,
)
from hopforge.model.routing.grids import hyperx
from hopforge.model.routing.ways import detours
from hopforge.model.topology import Topology

# table: 0 dimensions, 1 host ports, 2 is torus, 3 all VCs, 4 VCs of class 0, 5 VCs of class 1, 6 adaptive VCs,
# 7 start of coordinates [router, dimension], 8 start of the hosts' routers, 9 class rule, 10 ties,
# 11 VCs of phase 0 for Valiant (class 0), 12 (class 1), 13, 14 of phase 1, 15 routers, 16 start of the routers' packed
# coordinates (dimension 0 in the lowest bits), 17 start of what is known of each of their bits, 18 … radices
# of a host: its router, and the packed coordinates of this; of a bit: its dimension, and all bits of this
(
    _N,
    HOSTS,
    _TORUS,
    _ALL,
    CLASS0,
    CLASS1,
    ADAPTIVE,
    COORDS,
    _HOME,
    _RULE,
    _TIES,
    _V00,
    _V01,
    _V10,
    _V11,
    _ROUTERS,
    _PACKED,
    _DIMENSION,
    _K,
) = range(19)
#: start of what an algorithm has besides
FREE0 = _V00
_FIXED, _DATELINE, _BALANCED = range(3)
_PLUS, _RANDOM, _BY_SIGN = range(3)
#: what virtual channels dimension order needs
ORDER = {"mesh": "one of dimension order", "torus": "two of dimension order, so that no ring waits for itself"}


def grid_table(topology: Topology, vcs: int) -> list[int]:
    """Return the table of a mesh or torus, as a list that an algorithm completes."""
    radices = [int(k) for k in topology.params["radices"]]
    n = len(radices)
    hosts = int((topology.host_at[0] >= 0).sum())
    coords = np.zeros((topology.routers, n), np.int64)
    rest = np.arange(topology.routers)
    for i, k in enumerate(radices):
        coords[:, i] = rest % k
        rest = rest // k
    start = _K + n
    bits = np.array([max(k - 1, 1).bit_length() for k in radices], np.int64)
    packed = (coords << (np.cumsum(bits) - bits)).sum(axis=1)
    home = start + coords.size
    table = [
        n,
        hosts,
        int(topology.kind == "torus"),
        all_vcs(vcs),
        0,
        0,
        0,
        start,
        home,
        0,
        0,
        0,
        0,
        0,
        0,
        topology.routers,
        home + 2 * topology.hosts,
        home + 2 * topology.hosts + topology.routers,
    ]
    field = ((1 << bits) - 1) << (np.cumsum(bits) - bits)
    homes = np.stack([topology.host_router, packed[topology.host_router]], axis=1)
    of_bits = np.repeat(np.stack([np.arange(n), field], axis=1), bits, axis=0)
    values = (coords.reshape(-1), homes.reshape(-1), packed, of_bits.reshape(-1))
    return [*table, *radices, *np.concatenate(values).tolist()]


def plan_table(table: list[int]) -> NDArray[np.int32]:
    """Return a table as kernels take it."""
    return np.array(table, np.int32)


@both()
def _first_open(table: Any, here: int, there: int) -> int:
    """Lowest dimension in which the coordinates differ; n if none."""
    differ = table[table[_PACKED] + here] ^ table[table[_PACKED] + there]
    return table[table[_DIMENSION] + 2 * trailing_zeros(uint64(differ))] if differ != 0 else int64(table[_N])


@both()
def home_router(table: Any, host: int) -> int:
    """Router of a host."""
    return table[table[_HOME] + 2 * host]


@both()
def eject(table: Any, host: int, out: Any) -> int:
    """Let a packet go to its host, which is at this router."""
    out[0] = candidate(host % table[HOSTS] if table[HOSTS] > 1 else 0, table[_ALL])
    return 1


@inlined
def _torus_step(router: int, in_port: int, packet: Any, net: Any, table: Any, other: int) -> int:
    """Port of the next hop in dimension order on a torus, class of its VCs in ``packet.phase`` bit 0.

    `other`: packed coordinates of the goal, which is another router.
    """
    first, own = table[HOSTS], table[table[_PACKED] + router]
    bit = table[_DIMENSION] + 2 * trailing_zeros(uint64(own ^ other))
    i, field = table[bit], table[bit + 1]
    shift = trailing_zeros(uint64(field))
    k, here, goal = table[_K + i], (own & field) >> shift, (other & field) >> shift
    # without branches, which would be mispredicted: what a packet that comes from this dimension does and what another
    # one does, then one of the two
    straight = -int64((in_port - first) >> 1 == i)
    backwards = int64(goal < here)
    twice = 2 * (goal - here + (k & -backwards))  # upwards
    down = int64(twice > k)
    if twice == k and straight == 0:
        if table[_TIES] == _RANDOM:
            down = int64(draw_below(net, router, 2) == 0)
        elif table[_TIES] == _BY_SIGN:
            down = backwards
    # the packet came in at the port that faces the way it came from
    down = (~(in_port - first) & 1 & straight) | (down & ~straight)
    crosses = int64(table[_RULE] == _DATELINE) & int64(here == ((k - 1) & -down))
    klass = ((packet.phase & 1) | crosses) & straight | (int64(table[_RULE] == _FIXED) & backwards & ~straight)
    packet.phase = packet.phase & ~1 | klass
    return first + 2 * i + down


@both()
def escape_candidate(router: int, net: Any, table: Any, there: int) -> int:
    """Next hop in dimension order from wherever a packet is, as a candidate of level 1.

    On a torus the class says whether the packet still has to cross the dateline of the dimension.
    """
    n, first = table[_N], table[HOSTS]
    i = _first_open(table, router, there)
    here, goal = table[table[COORDS] + router * n + i], table[table[COORDS] + there * n + i]
    up, mask = goal > here, table[CLASS0]
    if table[_TORUS] == 1:
        k = table[_K + i]
        ahead = goal - here if goal > here else goal - here + k
        if 2 * ahead != k:
            up = 2 * ahead < k
        elif table[_TIES] != _BY_SIGN:
            up = table[_TIES] == _PLUS or draw_below(net, router, 2) != 0
        if up == (goal > here):
            mask = table[CLASS1]
    return candidate(first + 2 * i + (0 if up else 1), mask, 1)


def _dor_mesh(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    # few loads that wait for each other: most of the time of a hop would be spent here
    here, there = table[table[_PACKED] + router], table[table[_HOME] + 2 * packet.dst + 1]
    if table[HOSTS] > 1 and here == there:
        return eject(table, packet.dst, out)
    bit = table[_DIMENSION] + 2 * (trailing_zeros(uint64(here ^ there)) & 31)  # at the goal: of any dimension
    field = table[bit + 1]
    down = 1 if there & field < here & field else 0
    # an only host is at port 0; without a branch, which would be mispredicted
    out[0] = candidate((table[HOSTS] + 2 * table[bit] + down) & -int64(here != there), table[_ALL])
    return 1


def _dor_torus(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    there = table[table[_HOME] + 2 * packet.dst + 1]
    if there == table[table[_PACKED] + router]:
        return eject(table, packet.dst, out)
    port = _torus_step(router, in_port, packet, net, table, there)
    out[0] = candidate(port, table[CLASS1] if packet.phase & 1 else table[CLASS0])
    return 1


@both()
def _balanced_class(router: int, port: int, packet: Any, net: Any, table: Any) -> int:
    """Class of the VCs of a packet that turns into a dimension at this router: by the two edges that it may cross.

    Over the wrap 1, over the middle 0, over neither a coin. A shortest way crosses one of them at most.
    """
    way = port - table[HOSTS]
    i, down, n = way >> 1, way & 1, table[_N]
    here = table[table[COORDS] + router * n + i]
    goal = table[table[COORDS] + home_router(table, packet.dst) * n + i]
    middle = (table[_K + i] - 1) // 2
    if (down == 0 and here > goal) or (down == 1 and here < goal):
        return 1
    low, high = (goal, here) if down else (here, goal)
    return 0 if low <= middle < high else draw_below(net, router, 2)


def _dor_torus_balanced(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    there = table[table[_HOME] + 2 * packet.dst + 1]
    if there == table[table[_PACKED] + router]:
        return eject(table, packet.dst, out)
    port = _torus_step(router, in_port, packet, net, table, there)
    if in_port < table[HOSTS] or (in_port - table[HOSTS]) >> 1 != (port - table[HOSTS]) >> 1:
        packet.phase = packet.phase & ~1 | _balanced_class(router, port, packet, net, table)
    out[0] = candidate(port, table[CLASS1] if packet.phase & 1 else table[CLASS0])
    return 1


@register("dor")
def prepare_dor(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Dimension order. Torus: VCs in two halves by ``vc_rule``; ``ties``.

    ``fixed``: one half per dimension, chosen at the source (BookSim); ``balanced``: so, too, by two edges of the ring;
    ``dateline``: the other half from the wrap on.
    """
    if topology.kind in ("hyperx", "fully_connected"):
        return hyperx.dimension_order(topology, vcs)
    need_kind(topology, "dor", "mesh", "torus", "hyperx", "fully_connected")
    table = grid_table(topology, vcs)

    def smaller(grid: Topology) -> RoutingPlan:
        return prepare_dor(grid, vcs, options)

    if topology.kind == "mesh":
        return regular(RoutingPlan(relation(_dor_mesh), plan_table(table)), smaller)
    need_vcs("dor on a torus", vcs, 2, ORDER["torus"])
    half = vcs // 2
    table[CLASS0], table[CLASS1] = vc_range(0, vcs - half - 1), vc_range(vcs - half, vcs - 1)
    _torus_options(table, options)
    if table[_RULE] == _BALANCED:
        return RoutingPlan(relation(_dor_torus_balanced), plan_table(table), phases=2, random=True)
    drawn = table[_TIES] == _RANDOM
    return regular(RoutingPlan(relation(_dor_torus), plan_table(table), phases=2, random=drawn), smaller)


def _torus_options(table: list[int], options: dict[str, Any]) -> None:
    table[_RULE] = {"fixed": _FIXED, "dateline": _DATELINE, "balanced": _BALANCED}[options.get("vc_rule", "dateline")]
    tie_rule(table, options)


def tie_rule(table: list[int], options: dict[str, Any]) -> None:
    """Note which direction a packet takes that has two of the same length."""
    table[_TIES] = {"plus": _PLUS, "random": _RANDOM, "key": _BY_SIGN}[options.get("ties", "plus")]


def _star_channel(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    there = home_router(table, packet.dst)
    if there == router:
        return eject(table, packet.dst, out)
    n, first = table[_N], table[HOSTS]
    count = 0
    escape = -1
    for i in range(n):
        here = table[table[COORDS] + router * n + i]
        goal = table[table[COORDS] + there * n + i]
        if here == goal:
            continue
        up, down = goal > here, goal < here
        if table[_TORUS] == 1:
            k = table[_K + i]
            ahead = goal - here if goal > here else goal - here + k
            up, down = 2 * ahead <= k, 2 * ahead >= k
        if escape < 0:
            # class 0 while the packet still has to cross the dateline of this dimension, class 1 from then on
            wraps = (goal < here) if up else (goal > here)
            mask = table[CLASS0] if table[_TORUS] == 0 or wraps else table[CLASS1]
            escape = candidate(first + 2 * i + (0 if up else 1), mask, 1)
        if up:
            out[count] = candidate(first + 2 * i, table[ADAPTIVE])
            count += 1
        if down:
            out[count] = candidate(first + 2 * i + 1, table[ADAPTIVE])
            count += 1
    out[count] = escape
    return count + 1


@register("star_channel")
def prepare_star_channel(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Fully adaptive minimal routing with escape VCs in dimension order: 1 on a mesh, 2 on a torus."""
    need_kind(topology, "star_channel", "mesh", "torus")
    escapes = 1 if topology.kind == "mesh" else 2
    need_vcs(f"star_channel on a {topology.kind}", vcs, escapes + 1, f"one adaptive, and {ORDER[topology.kind]}")
    table = grid_table(topology, vcs)
    table[CLASS0], table[CLASS1] = 1, 2
    table[ADAPTIVE] = vc_range(escapes, vcs - 1)
    candidates = 2 * table[_N] + 1
    plan = RoutingPlan(
        relation(_star_channel), plan_table(table), max_candidates=candidates, obligation="escape",
        escape_mask=all_vcs(escapes),
    )  # fmt: skip
    return regular(plan, lambda grid: prepare_star_channel(grid, vcs, options))


def _valiant(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    there = home_router(table, packet.dst)
    if packet.via < 0:
        packet.via = draw_below(net, router, table[_ROUTERS])
    entered = in_port
    if packet.phase < 2 and packet.via == router:
        packet.phase = 2
        entered = 0  # the second part starts as from a host
    goal = there if packet.phase >= 2 else packet.via
    if packet.phase >= 2 and there == router:
        return eject(table, packet.dst, out)
    part = 1 if packet.phase >= 2 else 0
    if table[_TORUS] == 1:
        port = _torus_step(router, entered, packet, net, table, table[table[_PACKED] + goal])
        klass = packet.phase & 1
    else:
        n = table[_N]
        i = _first_open(table, router, goal)
        port = table[HOSTS] + 2 * i
        if table[table[COORDS] + goal * n + i] < table[table[COORDS] + router * n + i]:
            port += 1
        klass = 0
    out[0] = candidate(port, table[_V00 + 2 * part + klass])
    return 1


@register("valiant")
def prepare_valiant(topology: Topology, vcs: int, options: dict[str, Any]) -> RoutingPlan:
    """Dimension order to a random router, then to the destination; each part has VCs of its own (2 mesh, 4 torus).

    On other networks, and with `ways`, `classes`, `spread` or another `over`: `detours`.
    """
    given = [options.get(key) for key in ("ways", "classes", "spread")]
    asked = any(given) or options.get("over", "routers") != "routers"
    if topology.kind not in ("mesh", "torus") or asked:
        return detours.prepare_valiant(topology, vcs, options)
    classes = 1 if topology.kind == "mesh" else 2
    need_vcs(f"valiant on a {topology.kind}", vcs, 2 * classes, f"for each part of a way {ORDER[topology.kind]}")
    table = grid_table(topology, vcs)
    share = [vcs * k // (2 * classes) for k in range(2 * classes + 1)]
    masks = [vc_range(share[k], share[k + 1] - 1) for k in range(2 * classes)]
    table[_V00], table[_V10] = masks[0], masks[classes]
    table[_V01], table[_V11] = masks[classes - 1], masks[-1]
    _torus_options(table, options)
    if table[_RULE] == _BALANCED:
        raise RoutingError("routing.vc_rule must not be balanced for routing.algorithm valiant")
    if table[_TIES] == _RANDOM:
        raise RoutingError("routing.ties must not be random for routing.algorithm valiant")
    plan = RoutingPlan(relation(_valiant), plan_table(table), phases=4, uses_via=True)
    return regular(plan, lambda grid: prepare_valiant(grid, vcs, options))
