"""All states that packets can reach from their sources, as far as the routing relation can tell them apart.

A *class* is such a state: a router, where the packet came in (if the relation looks at it), and the fields of the
packet that it reads. Every class is evaluated with every number that it may draw. Classes of packets with the same
destination (and source and length, where those are read) are explored together; that is a *group*. What is kept of all
groups is small: which channel may wait for which (`Exploration.depends`), or which channels packets can stand in
forever (`stuck_channels`). A channel is one output VC.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import int64, types, uint64
from numpy.typing import NDArray

from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import CachedKernel, inner
from hopforge.model.kernel.memory import floats, int32s, int64s
from hopforge.model.network.core.candidates import candidate_mask, candidate_need, candidate_port
from hopforge.model.network.core.records import (
    NET_RECORD,
    PACKET,
    PACKET_RECORD,
    ROUTE_SIGNATURE,
    SCRIPT,
    TABLE_LENGTH,
    host_at,
    input_port,
    input_vc,
    output_vc,
)
from hopforge.model.network.core.state import NetState
from hopforge.model.routing.fields_read import FieldsRead
from hopforge.model.routing.plan import RoutingPlan, next_choices

#: most evaluations of the relation that an exploration makes, and draws of one evaluation
MAX_EVALUATIONS, MAX_DRAWS = 400_000_000, 16
#: most classes of one group
MAX_CLASSES = 1 << 22
#: what `_walk` comes back with
WALKED, NO_OUTPUT, NO_ROOM, BAD_PORT, BAD_PHASE, BAD_COUNT, MANY_DRAWS, MANY_STATES = range(8)
#: what an exploration looks for: dependencies of channels; closed sets of channels where a packet stands in one
#: channel only (cut-through), or where its flits may also stand in those that it came by (wormhole)
DEPENDENCIES, STANDING, STRETCHED = range(3)
# columns of a class
_ROUTER, _IN_PORT, _IN_VC, _HOPS, _PHASE, _VIA, _USER0, _USER1, _COLUMNS = range(9)
# settings and results of a walk, int64[...]
(
    _READS_PORT, _READS_VC, _READS_HOPS, _READS_PHASE, _READS_VIA, _READS_USER0, _READS_USER1, _READS_SRC, _HOPS_CAP,
    _PHASES, _MODE, _RESENDS, _MOST, _CLASS, _VALUE, _SRC, _LENGTH, _EVALUATIONS, _GENERATION, _INFO,
) = range(20)  # fmt: skip


@inner
def _find(
    info: Any, classes: Any, slots: Any, stamps: Any, count: int, router: int, port: int, vc: int, hops: int,
    phase: int, via: int, user0: int, user1: int,
) -> int:  # fmt: skip
    """Number of a class; `count` if it is new (then it has been entered)."""
    port = port if info[_READS_PORT] else 0
    vc = vc if info[_READS_VC] else 0
    hops = hops if info[_READS_HOPS] else 0
    hops = min(hops, info[_HOPS_CAP]) if info[_HOPS_CAP] >= 0 else hops
    phase = phase if info[_READS_PHASE] else 0
    via = via if info[_READS_VIA] else -1
    user0 = user0 if info[_READS_USER0] else 0
    user1 = user1 if info[_READS_USER1] else 0
    mixed = uint64((router << 16) + (port << 8) + (vc << 4)) ^ (uint64(phase) << uint64(40))
    mixed ^= uint64(via) * uint64(0x9E3779B97F4A7C15) + uint64(hops) * uint64(0xBF58476D1CE4E5B9)
    mixed ^= uint64(user0) * uint64(0x94D049BB133111EB) + uint64(user1) * uint64(0xD6E8FEB86659FD93)
    mixed = (mixed ^ (mixed >> uint64(32))) * uint64(0xD6E8FEB86659FD93)
    last = uint64(len(slots) - 1)
    place = int64((mixed ^ (mixed >> uint64(29))) & last)
    while stamps[place] == info[_GENERATION]:
        k = int64(slots[place])
        if (
            classes[k, _ROUTER] == router
            and classes[k, _IN_PORT] == port
            and classes[k, _IN_VC] == vc
            and classes[k, _PHASE] == phase
            and classes[k, _VIA] == via
            and classes[k, _HOPS] == hops
            and classes[k, _USER0] == user0
            and classes[k, _USER1] == user1
        ):
            return k
        place = int64(uint64(place + 1) & last)
    stamps[place] = info[_GENERATION]
    slots[place] = count
    classes[count, _ROUTER], classes[count, _IN_PORT], classes[count, _IN_VC] = router, port, vc
    classes[count, _HOPS], classes[count, _PHASE], classes[count, _VIA] = hops, phase, via
    classes[count, _USER0], classes[count, _USER1] = user0, user1
    return count


@inner
def _arrive(
    info: Any, classes: Any, slots: Any, stamps: Any, arrived: Any, wanted: Any, count: int, vcs: int, router: int,
    port: int, vc: int, hops: int, phase: int, via: int, user0: int, user1: int,
) -> int:  # fmt: skip
    """Class of a packet that comes in by (port, vc); notes that it does."""
    k = _find(info, classes, slots, stamps, count, router, port, vc, hops, phase, via, user0, user1)
    if k == count:
        for word in range(arrived.shape[1]):
            arrived[k, word] = 0
            wanted[k, word] = 0
    bit = port * vcs + vc
    arrived[k, bit >> 6] |= uint64(1) << uint64(bit & 63)
    return k


@inner
def _group(
    route: Callable[..., int], net: Any, packet: Any, info: Any, choices: Any, first_host: int, last_host: int,
    src: int, length: int, classes: Any, slots: Any, stamps: Any, arrived: Any, wanted: Any, outcomes: Any,
    steps: Any, size: Any,
) -> int:  # fmt: skip
    """Explore the classes that packets of some hosts reach; ``size``: classes, outcomes, steps of this group."""
    ports, vcs = int64(net.ports), int64(net.vcs)
    count, answers, moves = 0, 0, 0
    keep = info[_MODE] != 0
    info[_GENERATION] += 1
    for h in range(first_host, last_host):
        for v in range(vcs):
            if (int64(host_at(net, h).inject_mask) >> v) & 1:
                n = int64(host_at(net, h).input_vc) + v
                port = input_port(net, input_vc(net, n).port)
                if count + 1 >= len(classes):
                    return NO_ROOM
                k = _find(
                    info, classes, slots, stamps, count, int64(port.router), int64(port.port), v, 0, 0, -1, 0, 0
                )
                if k == count:
                    for word in range(arrived.shape[1]):
                        arrived[k, word] = 0
                        wanted[k, word] = 0
                    count += 1
    at = 0
    while at < count:
        router = int64(classes[at, _ROUTER])
        again = True
        while again:
            packet.src, packet.length = src, length
            packet.hops, packet.phase, packet.via = classes[at, _HOPS], classes[at, _PHASE], classes[at, _VIA]
            packet.user0, packet.user1 = classes[at, _USER0], classes[at, _USER1]
            found = route(
                router,
                int64(classes[at, _IN_PORT]),
                int64(classes[at, _IN_VC]),
                packet,
                net,
                int32s(net.table),
                floats(net.memory),
                int64s(net.candidate),
            )
            info[_EVALUATIONS] += 1
            info[_CLASS], info[_VALUE] = at, found
            if choices[1] > choices[0]:
                return MANY_DRAWS
            if found > info[_MOST] or found < 0:
                return BAD_COUNT
            phase = int64(packet.phase)
            hops, via = int64(packet.hops) + 1, int64(packet.via)
            user0, user1 = int64(packet.user0), int64(packet.user1)
            if answers + 1 >= len(outcomes):
                return NO_ROOM
            first_move, leaves, ways = moves, 0, 0
            for k in range(found):
                packed = int64s(net.candidate)[k]
                o, mask = candidate_port(packed), uint64(candidate_mask(packed))
                info[_VALUE] = o
                if o >= ports:
                    return BAD_PORT
                while mask != uint64(0):
                    w = trailing_zeros(mask)
                    mask &= mask - uint64(1)
                    if w >= vcs:
                        continue
                    m = (router * ports + o) * vcs + w
                    output = output_vc(net, m)
                    target = int64(output.target)
                    if target < 0:
                        return NO_OUTPUT
                    if candidate_need(packed) > int64(output.depth):
                        continue
                    ways += 1
                    if target >= net.input_vcs:
                        leaves = 1
                        continue
                    info[_VALUE] = phase
                    if info[_READS_PHASE] and (phase < 0 or phase >= info[_PHASES]):
                        return BAD_PHASE
                    if count + 1 >= len(classes) or moves + 1 >= len(steps):
                        return NO_ROOM
                    bit = o * vcs + w
                    wanted[at, bit >> 6] |= uint64(1) << uint64(bit & 63)
                    to = input_vc(net, target)
                    port = input_port(net, to.port)
                    k_next = _arrive(
                        info, classes, slots, stamps, arrived, wanted, count, vcs, int64(port.router),
                        int64(port.port), int64(to.vc), hops, phase, via, user0, user1,
                    )  # fmt: skip
                    if k_next == count:
                        count += 1
                    if keep:
                        steps[moves, 0], steps[moves, 1] = m, k_next
                        moves += 1
            if ways == 0:
                return NO_OUTPUT
            if keep:
                outcomes[answers, 0], outcomes[answers, 1] = at, first_move
                outcomes[answers, 2], outcomes[answers, 3] = moves, leaves
                answers += 1
            again = next_choices(choices)
        if info[_EVALUATIONS] > MAX_EVALUATIONS:
            return MANY_STATES
        at += 1
    size[0], size[1], size[2] = count, answers, moves
    return WALKED


@inner
def _note_dependencies(net: Any, classes: Any, arrived: Any, wanted: Any, depends: Any, count: int) -> None:
    """``depends[channel, word]``: every channel by which a packet comes to a class may wait for all that it wants."""
    per_router = int64(net.ports * net.vcs)
    for k in range(count):
        first = int64(classes[k, _ROUTER]) * per_router
        for word in range(arrived.shape[1]):
            mask = arrived[k, word]
            while mask != uint64(0):
                n = first + 64 * word + trailing_zeros(mask)
                mask &= mask - uint64(1)
                m = int64(input_vc(net, n).credit_to)
                for other in range(wanted.shape[1]):
                    depends[m, other] |= wanted[k, other]


@inner
def _note_stuck(
    net: Any, info: Any, classes: Any, arrived: Any, outcomes: Any, steps: Any, closed: Any, still: Any, stuck: Any,
    size: Any,
) -> None:  # fmt: skip
    """``still[channel]`` = 1 where a packet of this group can stand with all it asks for in the set ``closed``."""
    per_router = int64(net.ports * net.vcs)
    for k in range(size[0]):
        stuck[k] = 0
    for a in range(size[1]):
        inside = outcomes[a, 3] == 0
        for s in range(outcomes[a, 1], outcomes[a, 2]):
            inside = inside and closed[steps[s, 0]] != 0
        if inside:
            stuck[outcomes[a, 0]] = 1
    # flits behind a head that is stuck further on are stuck, too
    changed = info[_MODE] == STRETCHED
    while changed:
        changed = False
        for back in range(size[1]):
            a = size[1] - 1 - back
            if stuck[outcomes[a, 0]] != 0:
                continue
            for s in range(outcomes[a, 1], outcomes[a, 2]):
                if closed[steps[s, 0]] != 0 and stuck[steps[s, 1]] != 0:
                    stuck[outcomes[a, 0]] = 1
                    changed = True
                    break
    for k in range(size[0]):
        if stuck[k] == 0:
            continue
        first = int64(classes[k, _ROUTER]) * per_router
        for word in range(arrived.shape[1]):
            mask = arrived[k, word]
            while mask != uint64(0):
                m = int64(input_vc(net, first + 64 * word + trailing_zeros(mask)).credit_to)
                mask &= mask - uint64(1)
                if closed[m] != 0:
                    still[m] = 1


def _make_walk(digest: str) -> Callable[..., int]:
    def walk(
        route: Callable[..., int],
        net: Any,
        packet: Any,
        info: Any,
        choices: Any,
        dst: int,
        lengths: Any,
        classes: Any,
        slots: Any,
        stamps: Any,
        arrived: Any,
        wanted: Any,
        outcomes: Any,
        steps: Any,
        depends: Any,
        closed: Any,
        still: Any,
        stuck: Any,
    ) -> int:
        """Explore all groups of packets to host `dst`; one of the codes above."""
        if len(digest) == 0:
            return WALKED
        size = stuck[len(stuck) - 3 :]
        hosts = int64(net.hosts)
        packet.dst = dst
        for src in range(hosts if info[_READS_SRC] else 1):
            first, last = 0, hosts
            if info[_READS_SRC]:
                if host_at(net, src).inject_mask == 0:
                    continue
                if not info[_RESENDS]:
                    first, last = src, src + 1
            for length in lengths:
                info[_SRC], info[_LENGTH] = src, length
                code = _group(
                    route, net, packet, info, choices, first, last, src, length, classes, slots, stamps, arrived,
                    wanted, outcomes, steps, size,
                )  # fmt: skip
                if code != WALKED:
                    return code
                if info[_MODE] == DEPENDENCIES:
                    _note_dependencies(net, classes, arrived, wanted, depends, size[0])
                else:
                    _note_stuck(net, info, classes, arrived, outcomes, steps, closed, still, stuck, size)
        return WALKED

    return walk


_I1, _I2 = types.Array(types.int64, 1, "C"), types.Array(types.int32, 2, "C")
_H1, _B1, _U2 = types.Array(types.int32, 1, "C"), types.Array(types.uint8, 1, "C"), types.Array(types.uint64, 2, "C")
_ROUTE = types.FunctionType(ROUTE_SIGNATURE)
_walk = CachedKernel(
    _make_walk,
    int64(
        _ROUTE, NET_RECORD, PACKET_RECORD, _I1, _I1, int64, _I1, _I2, _H1, _I1, _U2, _U2, _I2, _I2, _U2, _B1, _B1, _I1
    ),
)


@dataclass
class Stop:
    """Why an exploration did not come to its end.

    Attributes
    ----------
    code : int
        `NO_OUTPUT`, `BAD_PORT`, `BAD_PHASE`, `BAD_COUNT`, `MANY_DRAWS` or `MANY_STATES`.
    dst, src, length : int
        Of the packet; source and length where the relation reads them, else −1.
    router, port, vc : int
        Where it stands.
    value : int
        The port, phase or count.
    """

    code: int
    dst: int
    src: int
    length: int
    router: int
    port: int
    vc: int
    value: int


class Exploration:
    """The states of packets in one network, explored for one or all destinations.

    Parameters
    ----------
    plan : RoutingPlan
        The routing.
    relation : jitted function
        Which of its relations to explore.
    state : NetState
        The network; what an evaluation changes in it is put back.
    reads : FieldsRead
        What `relation` looks at.
    destinations : list of int
        Hosts.
    lengths : ndarray, int64
        Lengths of packets in flits.
    resends : bool
        Whether another host than the source may send a packet again (failures during the run).
    """

    def __init__(
        self,
        plan: RoutingPlan,
        relation: Any,
        state: NetState,
        reads: FieldsRead,
        destinations: list[int],
        lengths: NDArray[np.int64],
        *,
        resends: bool = False,
    ) -> None:
        self._relation, self._state, self.destinations = relation, state, destinations
        record = state.record[0]
        self.channels = int(record["output_vcs"])
        self._words = (int(record["ports"] * record["vcs"]) + 63) // 64
        has = reads.state
        info = np.zeros(_INFO, np.int64)
        info[_READS_PORT], info[_READS_VC] = reads.in_port, reads.in_vc
        for place, name in (
            (_READS_HOPS, "hops"), (_READS_PHASE, "phase"), (_READS_VIA, "via"), (_READS_USER0, "user0"),
            (_READS_USER1, "user1"), (_READS_SRC, "src"),
        ):  # fmt: skip
            info[place] = name in has
        info[_HOPS_CAP] = -1 if reads.hops_cap is None else reads.hops_cap
        info[_PHASES], info[_MOST], info[_RESENDS] = plan.phases, plan.max_candidates, resends
        self._info = info
        self._lengths = lengths if "length" in has else np.ones(1, np.int64)
        self._names = has
        self.depends = np.zeros((self.channels, self._words), np.uint64)
        self._room(1024, 4096)

    def _room(self, classes: int, steps: int) -> None:
        words = self._words
        self._classes = np.zeros((classes, _COLUMNS), np.int32)
        self._arrived, self._wanted = np.zeros((classes, words), np.uint64), np.zeros((classes, words), np.uint64)
        slots = 2 << (classes - 1).bit_length()
        self._slots, self._stamps = np.zeros(slots, np.int32), np.zeros(slots, np.int64)
        self._outcomes, self._steps = np.zeros((steps, 4), np.int32), np.zeros((steps, 2), np.int32)
        self._stuck = np.zeros(classes + 3, np.int64)

    @property
    def evaluations(self) -> int:
        """How often the relation was evaluated."""
        return int(self._info[_EVALUATIONS])

    def walk(self, mode: int, closed: NDArray[np.uint8], still: NDArray[np.uint8]) -> Stop | None:
        """Explore all destinations in a mode (`DEPENDENCIES`, `STANDING`, `STRETCHED`); None: done."""
        state, info = self._state, self._info
        info[_MODE] = mode
        choices = np.zeros(3 + 2 * MAX_DRAWS, np.int64)
        choices[0] = MAX_DRAWS
        saved = {key: state[key].copy() for key in ("router_rng", "memory", "candidate", "table")}
        state.record["choices"] = choices.ctypes.data
        packet = np.zeros(1, PACKET)[0]
        try:
            for dst in self.destinations:
                while True:
                    code = _walk(
                        self._relation, state.record[0], packet, info, choices, dst, self._lengths, self._classes,
                        self._slots, self._stamps, self._arrived, self._wanted, self._outcomes, self._steps,
                        self.depends, closed, still, self._stuck,
                    )  # fmt: skip
                    if code != NO_ROOM:
                        break
                    self._room(2 * len(self._classes), 2 * len(self._steps))
                    choices[1:] = 0
                    if len(self._classes) > MAX_CLASSES:
                        code = MANY_STATES
                        break
                if code != WALKED:
                    return self._stop(code, dst)
        finally:
            state.record["choices"] = 0
            for key, array in saved.items():
                state[key][:] = array
        return None

    def _stop(self, code: int, dst: int) -> Stop:
        info = self._info
        at = self._classes[info[_CLASS]]
        word = np.flatnonzero(self._arrived[info[_CLASS]])
        bit = 0
        if len(word):
            mask = int(self._arrived[info[_CLASS], word[0]])
            bit = 64 * int(word[0]) + (mask & -mask).bit_length() - 1
        vcs = int(self._state["vcs"])
        return Stop(
            code,
            dst,
            int(info[_SRC]) if "src" in self._names else -1,
            int(info[_LENGTH]) if "length" in self._names else -1,
            int(at[_ROUTER]),
            int(at[_IN_PORT]) if info[_READS_PORT] else bit // vcs,
            int(at[_IN_VC]) if info[_READS_VC] else bit % vcs,
            int(info[_VALUE]),
        )

    def edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Dependencies: channel, and the channel that a packet in it may ask for."""
        source, word = np.nonzero(self.depends)
        bits = (self.depends[source, word][:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        edge, bit = np.nonzero(bits)
        record = self._state.record[0]
        per_router = int(record["ports"] * record["vcs"])
        target = self._state["output_vc"]["target"][source[edge]].astype(np.int64)
        return source[edge], target // per_router * per_router + 64 * word[edge] + bit


def stuck_channels(exploration: Exploration, *, stretched: bool) -> NDArray[np.uint8]:
    """Largest set of channels in which packets can stand that ask for channels of the set alone: uint8[channel].

    Only where a packet that asks for channels can be given any of them, and has one for itself: cut-through, or
    wormhole with release by credits (`stretched`: its flits may stand in several channels). An empty set proves that
    no deadlock exists. Duato's condition implies it: the last channel of his order would have an escape outside.
    """
    closed = np.ones(exploration.channels, np.uint8)
    while closed.any():
        still = np.zeros_like(closed)
        exploration.walk(STRETCHED if stretched else STANDING, closed, still)
        if (still == closed).all():
            break
        closed = still
    return closed


def packet_lengths(state: NetState) -> NDArray[np.int64]:
    """Lengths of packets that the sources of a network can create, int64[...], in flits."""
    record = state.record[0]
    if int(record["source_kind"]) == SCRIPT:
        return np.unique(state["script_length"]).astype(np.int64)
    if int(record["full_flits"]) > 0 and "program_kind" in state.arrays and int(record["messages"]):
        return np.arange(1, int(record["full_flits"]) + 1)
    if int(record["length_kind"]) == TABLE_LENGTH:
        share = np.diff(state["length_table"], prepend=0.0)
        return np.flatnonzero(share > 0).astype(np.int64) + 1
    return np.arange(int(record["length_low"]), int(record["length_high"]) + 1)
