"""All states that packets can reach from their sources, as far as the routing relation can tell them apart.

A *class* is such a state: a router, where the packet came in (if the relation looks at it), and the fields of the
packet that it reads. Every class is evaluated with every number that it may draw. Classes of packets with the same
destination (and source and length, where those are read) are explored together; that is a *group*. What is kept of all
groups is small: which channel may wait for which (`Exploration.depends`). A channel is one output VC.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import int64, types, uint64
from numpy.typing import NDArray

from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import entry, inner
from hopforge.model.kernel.memory import floats, int32s, int64s
from hopforge.model.network.core.candidates import blank_candidates, candidate_mask, candidate_need, candidate_port
from hopforge.model.network.core.draws import next_choices
from hopforge.model.network.core.records import (
    NET_RECORD,
    PACKET,
    PACKET_RECORD,
    PROGRAM,
    ROUTE_SIGNATURE,
    SCRIPT,
    TABLE_LENGTH,
    host_at,
    input_port,
    input_vc,
    output_vc,
)
from hopforge.model.network.core.state import NetState
from hopforge.model.network.core.user_code import refuse_mistake
from hopforge.model.routing.every_answer import EveryAnswer
from hopforge.model.routing.fields_read import FieldsRead
from hopforge.model.routing.plan import RoutingPlan

#: most evaluations of the relation that an exploration makes, and draws of one evaluation
MAX_EVALUATIONS, MAX_DRAWS = 400_000_000, 16
#: most classes of one group, with and without fields of the packet that can take any value; and of all destinations
#: together that are kept (else they are explored again)
MAX_CLASSES, MAX_BOUNDED, MAX_KEPT = 1 << 20, 1 << 23, 1 << 22
#: what `_walk` comes back with
WALKED, NO_OUTPUT, NO_ROOM, FULL, BAD_PORT, BAD_PHASE, BAD_COUNT, MANY_DRAWS, MANY_STATES = range(9)
# columns of a class
_ROUTER, _IN_PORT, _IN_VC, _HOPS, _PHASE, _VIA, _USER0, _USER1, _COLUMNS = range(9)
# settings and results of a walk, int64[...]
(
    _READS_PORT, _READS_VC, _READS_HOPS, _READS_PHASE, _READS_VIA, _READS_USER0, _READS_USER1, _READS_SRC, _HOPS_CAP,
    _PHASES, _KEEP, _RESENDS, _MOST, _CLASS, _VALUE, _SRC, _LENGTH, _EVALUATIONS, _GENERATION, _DENSE, _PORT_ROOM,
    _VC_ROOM, _HOPS_ROOM, _PHASE_ROOM, _CLASSES, _OUTCOMES, _STEPS, _STRETCHED, _NEXT, _LIMIT,
    _INFO,
) = range(31)  # fmt: skip


@inner
def _same(classes: Any, k: int, router: int, port: int, vc: int, hops: int, packet: Any) -> bool:
    """Whether class `k` is the one of these values and of those in `packet`."""
    return (
        classes[k, _ROUTER] == router
        and classes[k, _VIA] == packet.via
        and classes[k, _IN_PORT] == port
        and classes[k, _IN_VC] == vc
        and classes[k, _PHASE] == packet.phase
        and classes[k, _HOPS] == hops
        and classes[k, _USER0] == packet.user0
        and classes[k, _USER1] == packet.user1
    )


@inner
def _hash(router: int, port: int, vc: int, hops: int, packet: Any) -> Any:
    """64 mixed bits of the values of a class."""
    mixed = uint64((router << 16) + (port << 8) + (vc << 4)) ^ (uint64(packet.phase) << uint64(40))
    mixed ^= uint64(packet.via) * uint64(0x9E3779B97F4A7C15) + uint64(hops) * uint64(0xBF58476D1CE4E5B9)
    mixed ^= uint64(packet.user0) * uint64(0x94D049BB133111EB) + uint64(packet.user1) * uint64(0xD6E8FEB86659FD93)
    mixed = (mixed ^ (mixed >> uint64(32))) * uint64(0xD6E8FEB86659FD93)
    return mixed ^ (mixed >> uint64(29))


@inner
def _enter(
    info: Any, classes: Any, slots: Any, stamps: Any, wanted: Any, count: int, router: int, port: int, vc: int,
    hops: int, packet: Any,
) -> int:  # fmt: skip
    """Find the class of a packet that comes in by (port, vc); `count` if it is new (then it has been entered)."""
    now = info[_GENERATION]
    port *= info[_READS_PORT]
    vc *= info[_READS_VC]
    hops = min(hops, info[_HOPS_CAP])
    if info[_DENSE] != 0:
        # few values: a place of its own for each
        place = ((router * info[_PORT_ROOM] + port) * info[_VC_ROOM] + vc) * info[_HOPS_ROOM] + hops
        place = place * info[_PHASE_ROOM] + int64(packet.phase)
        if stamps[place] == now:
            return int64(slots[place])
    else:
        last = uint64(len(slots) - 1)
        place = int64(_hash(router, port, vc, hops, packet) & last)
        while stamps[place] == now:
            k = int64(slots[place])
            if _same(classes, k, router, port, vc, hops, packet):
                return k
            place = int64(uint64(place + 1) & last)
    stamps[place] = now
    slots[place] = count
    classes[count, _ROUTER], classes[count, _IN_PORT], classes[count, _IN_VC] = router, port, vc
    classes[count, _HOPS], classes[count, _PHASE], classes[count, _VIA] = hops, packet.phase, packet.via
    classes[count, _USER0], classes[count, _USER1] = packet.user0, packet.user1
    for word in range(wanted.shape[1]):
        wanted[count, word] = 0
    return count


@inner
def _forget(info: Any, packet: Any) -> None:
    """Set the fields that the relation does not read to what they are at the source."""
    if info[_READS_PHASE] == 0:
        packet.phase = 0
    if info[_READS_VIA] == 0:
        packet.via = -1
    if info[_READS_USER0] == 0:
        packet.user0 = 0
    if info[_READS_USER1] == 0:
        packet.user1 = 0


@inner
def _start(
    net: Any, packet: Any, info: Any, first_host: int, last_host: int, classes: Any, slots: Any, stamps: Any,
    wanted: Any,
) -> bool:  # fmt: skip
    """Enter the classes of packets that come from these hosts; False: no room."""
    info[_GENERATION] += 1
    packet.phase, packet.via, packet.user0, packet.user1 = 0, -1, 0, 0
    for h in range(first_host, last_host):
        for v in range(int64(net.vcs)):
            if (int64(host_at(net, h).inject_mask) >> v) & 1:
                port = input_port(net, input_vc(net, int64(host_at(net, h).input_vc) + v).port)
                count = info[_CLASSES]
                if count >= len(classes):
                    return False
                k = _enter(
                    info, classes, slots, stamps, wanted, count, int64(port.router), int64(port.port), v, 0, packet
                )
                info[_CLASSES] += 1 if k == count else 0
    return True


@inner
def _group(
    route: Callable[..., int], net: Any, packet: Any, info: Any, choices: Any, first_host: int, last_host: int,
    classes: Any, slots: Any, stamps: Any, wanted: Any, outcomes: Any, steps: Any,
) -> int:  # fmt: skip
    """Explore the classes that packets of some hosts reach, and enter them behind those that are there."""
    ports, vcs, inputs = int64(net.ports), int64(net.vcs), int64(net.input_vcs)
    at, answers, moves = info[_CLASSES], info[_OUTCOMES], info[_STEPS]
    most, first_class = len(classes), at
    if info[_DENSE] == 0:
        most = min(most, at + (len(slots) >> 1))
    if not _start(net, packet, info, first_host, last_host, classes, slots, stamps, wanted):
        return NO_ROOM
    count = info[_CLASSES]
    candidates = int64s(net.candidate)
    while at < count:
        router, hops = int64(classes[at, _ROUTER]), int64(classes[at, _HOPS])
        info[_CLASS] = at
        again = True
        while again:
            packet.hops, packet.phase, packet.via = hops, classes[at, _PHASE], classes[at, _VIA]
            packet.user0, packet.user1 = classes[at, _USER0], classes[at, _USER1]
            blank_candidates(net, 0)
            found = route(
                router,
                int64(classes[at, _IN_PORT]),
                int64(classes[at, _IN_VC]),
                packet,
                net,
                int32s(net.table),
                floats(net.memory),
                candidates,
            )
            info[_EVALUATIONS] += 1
            info[_VALUE] = found
            if choices[1] > choices[0]:
                return MANY_DRAWS
            if found > info[_MOST] or found < 0:
                return BAD_COUNT
            _forget(info, packet)
            first_move, leaves, ways = moves, 0, 0
            for k in range(found):
                packed = candidates[k]
                o, mask = candidate_port(packed), uint64(candidate_mask(packed))
                if o >= ports:
                    info[_VALUE] = o
                    return BAD_PORT
                while mask != uint64(0):
                    w = trailing_zeros(mask)
                    mask &= mask - uint64(1)
                    if w >= vcs:
                        break
                    bit = o * vcs + w
                    m = router * ports * vcs + bit
                    output = output_vc(net, m)
                    target = int64(output.target)
                    if target < 0:
                        return NO_OUTPUT
                    if candidate_need(packed) > int64(output.depth):
                        continue
                    ways += 1
                    if target >= inputs:
                        leaves = 1
                        continue
                    if packet.phase < 0 or packet.phase >= info[_PHASES]:
                        info[_VALUE] = packet.phase
                        return BAD_PHASE
                    if count >= most or moves >= len(steps):
                        return NO_ROOM
                    wanted[at, bit >> 6] |= uint64(1) << uint64(bit & 63)
                    to = input_vc(net, target)
                    port = input_port(net, to.port)
                    following = _enter(
                        info, classes, slots, stamps, wanted, count, int64(port.router), int64(port.port),
                        int64(to.vc), hops + 1, packet,
                    )  # fmt: skip
                    count += 1 if following == count else 0
                    steps[moves, 0], steps[moves, 1] = m, following
                    moves += 1
            if ways == 0:
                return NO_OUTPUT
            if info[_KEEP] != 0:
                if answers >= len(outcomes):
                    return NO_ROOM
                outcomes[answers, 0], outcomes[answers, 1] = at, first_move
                outcomes[answers, 2], outcomes[answers, 3] = moves, leaves
                answers += 1
            again = choices[1] != 0 and next_choices(choices)
        at += 1
        if info[_EVALUATIONS] > MAX_EVALUATIONS or count - first_class > info[_LIMIT]:
            return MANY_STATES
    info[_CLASSES], info[_OUTCOMES], info[_STEPS] = count, answers, moves
    return WALKED


@inner
def _towards(
    route: Callable[..., int], net: Any, packet: Any, info: Any, choices: Any, dst: int, lengths: Any, classes: Any,
    slots: Any, stamps: Any, wanted: Any, outcomes: Any, steps: Any, depends: Any,
) -> int:  # fmt: skip
    """Explore all groups of packets to host `dst`."""
    packet.dst = dst
    for src in range(int64(net.hosts) if info[_READS_SRC] else 1):
        first, last = 0, int64(net.hosts)
        if info[_READS_SRC]:
            if host_at(net, src).inject_mask == 0:
                continue
            if not info[_RESENDS]:
                first, last = src, src + 1
        for length in lengths:
            packet.src, packet.length = src, length
            info[_SRC], info[_LENGTH] = src, length
            if info[_KEEP] == 0:
                info[_CLASSES : _STEPS + 1] = 0
            before = info[_STEPS]
            code = _group(
                route, net, packet, info, choices, first, last, classes, slots, stamps, wanted, outcomes, steps
            )
            if code != WALKED:
                return code
            # a packet that came to a class by a channel may wait there for all that the class wants
            for s in range(before, info[_STEPS]):
                for word in range(wanted.shape[1]):
                    depends[steps[s, 0], word] |= wanted[steps[s, 1], word]
    return WALKED


_I1, _I2 = types.Array(types.int64, 1, "C"), types.Array(types.int32, 2, "C")
_H1, _B1, _U2 = types.Array(types.int32, 1, "C"), types.Array(types.uint8, 1, "C"), types.Array(types.uint64, 2, "C")
_ROUTE = types.FunctionType(ROUTE_SIGNATURE)


@entry(int64(_ROUTE, NET_RECORD, PACKET_RECORD, _I1, _I1, _I1, _I1, _I2, _H1, _I1, _U2, _I2, _I2, _U2))
def _walk(
    route: Callable[..., int],
    net: Any,
    packet: Any,
    info: Any,
    choices: Any,
    destinations: Any,
    lengths: Any,
    classes: Any,
    slots: Any,
    stamps: Any,
    wanted: Any,
    outcomes: Any,
    steps: Any,
    depends: Any,
) -> int:
    """Explore the destinations from number ``info[_NEXT]`` on; one of the codes above."""
    while info[_NEXT] < len(destinations):
        if info[_CLASSES] > MAX_KEPT:
            return FULL
        kept = info[_CLASSES], info[_OUTCOMES], info[_STEPS]
        code = _towards(
            route, net, packet, info, choices, destinations[info[_NEXT]], lengths, classes, slots, stamps, wanted,
            outcomes, steps, depends,
        )  # fmt: skip
        if code == NO_ROOM:  # this destination again, with more
            info[_CLASSES], info[_OUTCOMES], info[_STEPS] = kept
        if code != WALKED:
            return code
        info[_NEXT] += 1
    return WALKED


@entry(types.void(_I1, _I2, _I2, _B1, _B1, _B1, _B1))
def _settle(
    info: Any,
    outcomes: Any,
    steps: Any,
    closed: Any,
    still: Any,
    possible: Any,
    stuck: Any,
) -> None:
    """``still[channel]`` = 1 where a packet can stand with all that it asks for in the set ``closed``.

    `possible` holds the classes that were stuck in a larger set.
    """
    count, answers = info[_CLASSES], info[_OUTCOMES]
    for k in range(count):
        stuck[k] = 0
    for a in range(answers):
        k = outcomes[a, 0]
        if possible[k] == 0 or stuck[k] != 0:
            continue
        inside = outcomes[a, 3] == 0
        for s in range(outcomes[a, 1], outcomes[a, 2]):
            if closed[steps[s, 0]] == 0:
                inside = False
                break
        if inside:
            stuck[k] = 1
    # flits behind a head that is stuck further on are stuck, too
    changed = info[_STRETCHED] != 0
    while changed:
        changed = False
        for back in range(answers):
            a = answers - 1 - back
            k = outcomes[a, 0]
            if possible[k] == 0 or stuck[k] != 0:
                continue
            for s in range(outcomes[a, 1], outcomes[a, 2]):
                if stuck[steps[s, 1]] != 0 and closed[steps[s, 0]] != 0:
                    stuck[k] = 1
                    changed = True
                    break
    for k in range(count):
        possible[k] = stuck[k]
    for s in range(info[_STEPS]):
        still[steps[s, 0]] |= closed[steps[s, 0]] & stuck[steps[s, 1]]


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
        The port, phase or count; for `MANY_STATES` the most classes.
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
        self._relation, self._state = relation, state
        self._destinations = np.array(destinations, np.int64)
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
        info[_HOPS_CAP] = 0
        if "hops" in has:
            info[_HOPS_CAP] = np.iinfo(np.int32).max if reads.hops_cap is None else reads.hops_cap
        info[_PHASES], info[_MOST], info[_RESENDS] = plan.phases, plan.max_candidates, resends
        bounded = not {"user0", "user1"} & has and ("hops" not in has or reads.hops_cap is not None)
        info[_LIMIT] = MAX_BOUNDED if bounded else MAX_CLASSES
        info[_PORT_ROOM] = int(record["ports"]) if reads.in_port else 1
        info[_VC_ROOM] = int(record["vcs"]) if reads.in_vc else 1
        info[_HOPS_ROOM], info[_PHASE_ROOM] = info[_HOPS_CAP] + 1, plan.phases if "phase" in has else 1
        places = int(record["routers"])
        for room in info[_PORT_ROOM : _PHASE_ROOM + 1].tolist():
            places *= room
        info[_DENSE] = places <= MAX_KEPT and not {"via", "user0", "user1"} & has
        self._places = places if info[_DENSE] else 0
        self._info = info
        self._lengths = lengths if "length" in has else np.ones(1, np.int64)
        self._names = has
        self.depends = np.zeros((self.channels, self._words), np.uint64)
        self._classes = np.zeros((0, _COLUMNS), np.int32)
        self._wanted = np.zeros((0, self._words), np.uint64)
        self._outcomes, self._steps = np.zeros((0, 4), np.int32), np.zeros((0, 2), np.int32)
        self._slots, self._stamps = np.zeros(0, np.int32), np.zeros(0, np.int64)
        self._whole = False
        self._grow(1 << 14, 1 << 16)

    def _grow(self, classes: int, steps: int) -> None:
        """Make room; what was entered stays."""
        for name, rows in (
            ("_classes", classes), ("_wanted", classes), ("_outcomes", steps), ("_steps", steps)
        ):  # fmt: skip
            old = getattr(self, name)
            new = np.zeros((rows, old.shape[1]), old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
        slots = self._places or 2 << (classes - 1).bit_length()
        if slots > len(self._slots):
            self._slots, self._stamps = np.zeros(slots, np.int32), np.zeros(slots, np.int64)

    def walk(self, *, keep: bool = False) -> Stop | None:
        """Explore all destinations; what is found is kept, if wanted and if there is room. None: done."""
        for _ in self._batches(keep=keep):
            pass
        return self._stopped

    def _batches(self, *, keep: bool) -> Iterator[None]:
        """Explore the destinations in turn; stops where the room is full of what is kept, and at the end."""
        state, info = self._state, self._info
        self._stopped: Stop | None = None
        info[_KEEP] = keep
        choices = np.zeros(3 + 2 * MAX_DRAWS, np.int64)
        choices[0] = MAX_DRAWS
        packet = np.zeros(1, PACKET)[0]
        info[_CLASSES : _STEPS + 1] = 0
        info[_NEXT] = 0
        saved = {key: state[key].copy() for key in ("router_rng", "memory", "candidate", "table")}
        state.record["choices"] = choices.ctypes.data
        full = False
        try:
            code = NO_ROOM
            while code != WALKED:
                code = self._explore(packet, choices)
                if code == FULL:
                    full = True
                    yield
                    info[_CLASSES : _STEPS + 1] = 0
                elif code == NO_ROOM and len(self._classes) <= 2 * (MAX_BOUNDED + MAX_KEPT):
                    choices[1:] = 0
                    self._grow(2 * len(self._classes), 2 * len(self._steps))
                elif code != WALKED:
                    self._stopped = self._stop(MANY_STATES if code == NO_ROOM else code)
                    return
            self._whole = keep and not full
            yield
        finally:
            state.record["choices"] = 0
            for key, array in saved.items():
                state[key][:] = array

    def _explore(self, packet: Any, choices: NDArray[np.int64]) -> int:
        """Explore the destinations that are left; one of the codes above."""
        code = _walk(
            self._relation, self._state.record[0], packet, self._info, choices, self._destinations, self._lengths,
            self._classes, self._slots, self._stamps, self._wanted, self._outcomes, self._steps, self.depends,
        )  # fmt: skip
        refuse_mistake(self._state.record[0])
        return int(code)

    def stuck_channels(self, *, stretched: bool) -> NDArray[np.uint8]:
        """Largest set of channels in which packets can stand that ask for channels of the set alone: uint8[channel].

        Only where a packet that asks for channels can be given any of them, and has one for itself: cut-through, or
        wormhole with release by credits (`stretched`: its flits may stand in several channels). An empty set proves
        that no deadlock exists. Duato's condition implies it: the last channel of his order would have an escape
        outside.
        """
        closed = np.ones(self.channels, np.uint8)
        self._info[_STRETCHED] = stretched
        possible = np.zeros(0, np.uint8)
        while closed.any():
            still = np.zeros_like(closed)
            whole = self._whole
            for _ in (None,) if whole else self._batches(keep=True):
                if not whole or len(possible) != len(self._classes):
                    possible = np.ones(len(self._classes), np.uint8)
                _settle(self._info, self._outcomes, self._steps, closed, still, possible, np.zeros_like(possible))
            if (still == closed).all():
                break
            closed = still
        return closed

    def _stop(self, code: int) -> Stop:
        info = self._info
        if code == MANY_STATES:
            info[_VALUE] = info[_LIMIT]
        at = self._classes[info[_CLASS]]
        came = self._steps[self._steps[:, 1] == info[_CLASS], 0]
        target = int(self._state["output_vc"]["target"][came[0]]) if len(came) else 0
        vcs = int(self._state["vcs"])
        return Stop(
            code,
            int(self._destinations[info[_NEXT]]),
            int(info[_SRC]) if "src" in self._names else -1,
            int(info[_LENGTH]) if "length" in self._names else -1,
            int(at[_ROUTER]),
            int(at[_IN_PORT]) if info[_READS_PORT] else target // vcs % int(self._state["ports"]),
            int(at[_IN_VC]) if info[_READS_VC] else target % vcs,
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


class InterpretedExploration(Exploration):
    """The same for a relation whose answer depends on queues or on what it has learned: see `every_answer`.

    Raises
    ------
    NotCoveredError
        From `walk`: all answers cannot be found.
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
        super().__init__(plan, relation, state, reads, destinations, lengths, resends=resends)
        self._answers = EveryAnswer(relation, state, plan.table, plan.max_candidates)

    def _explore(self, packet: Any, choices: NDArray[np.int64]) -> int:
        info, host = self._info, self._state["host"]
        sources = np.flatnonzero(host["inject_mask"])
        while info[_NEXT] < len(self._destinations):
            if info[_CLASSES] > MAX_KEPT:
                return FULL
            for src in sources.tolist() if info[_READS_SRC] else [0]:
                starts = sources.tolist() if info[_RESENDS] or not info[_READS_SRC] else [src]
                for length in self._lengths.tolist():
                    info[_SRC], info[_LENGTH] = src, length
                    if not info[_KEEP]:
                        info[_CLASSES : _STEPS + 1] = 0
                    code = self._explore_group(int(self._destinations[info[_NEXT]]), src, length, starts)
                    if code != WALKED:
                        return code
            info[_NEXT] += 1
        return WALKED

    def _key(self, n: int, hops: int, after: tuple[int, ...]) -> tuple[int, ...]:
        """Values of the class of a packet in input VC `n`."""
        info, record = self._info, self._state.record[0]
        port, vc = divmod(n, int(record["vcs"]))
        router, port = divmod(port, int(record["ports"]))
        reads = info[_READS_PHASE], info[_READS_VIA], info[_READS_USER0], info[_READS_USER1]
        values = (value if read else start for value, read, start in zip(after, reads, (0, -1, 0, 0), strict=True))
        port, vc = port * int(info[_READS_PORT]), vc * int(info[_READS_VC])
        return (router, port, vc, min(hops, int(info[_HOPS_CAP])), *values)

    def _explore_group(self, dst: int, src: int, length: int, starts: list[int]) -> int:
        """As `_group`."""
        info, record, host = self._info, self._state.record[0], self._state["host"]
        ports, vcs, inputs = int(record["ports"]), int(record["vcs"]), int(record["input_vcs"])
        targets, depths = self._state["output_vc"]["target"], self._state["output_vc"]["depth"]
        base, begin = int(info[_CLASSES]), int(info[_STEPS])
        classes: dict[tuple[int, ...], int] = {}
        for h in starts:
            for v in range(vcs):
                if int(host["inject_mask"][h]) >> v & 1:
                    classes.setdefault(self._key(int(host["input_vc"][h]) + v, 0, (0, -1, 0, 0)), base + len(classes))
        queue, at = list(classes), 0
        while at < len(queue):
            key = queue[at]
            if base + len(queue) >= len(self._classes):
                self._grow(2 * len(self._classes), 2 * len(self._steps))
            self._classes[base + at], self._wanted[base + at] = key, 0
            info[_CLASS] = base + at
            router, port, vc, hops, phase, via, user0, user1 = key
            fields = {
                "dst": dst, "src": src, "length": length, "hops": hops, "phase": phase, "via": via, "user0": user0,
                "user1": user1,
            }  # fmt: skip
            for found, after in sorted(self._answers(router, port, vc, fields)):
                info[_EVALUATIONS] += 1
                first_move, leaves, ways = int(info[_STEPS]), 0, 0
                for o, mask, need in found:
                    info[_VALUE] = o
                    if o >= ports:
                        return BAD_PORT
                    for w in range(vcs):
                        if not mask >> w & 1:
                            continue
                        m = (router * ports + o) * vcs + w
                        target = int(targets[m])
                        if target < 0:
                            return NO_OUTPUT
                        if need > int(depths[m]):
                            continue
                        ways += 1
                        if target >= inputs:
                            leaves = 1
                            continue
                        if info[_READS_PHASE] and not 0 <= after[0] < info[_PHASES]:
                            info[_VALUE] = after[0]
                            return BAD_PHASE
                        following = self._key(target, hops + 1, after)
                        if following not in classes:
                            classes[following] = base + len(classes)
                            queue.append(following)
                        bit = o * vcs + w
                        self._wanted[base + at, bit >> 6] |= np.uint64(1 << (bit & 63))
                        if info[_STEPS] >= len(self._steps) - 1:
                            self._grow(2 * len(self._classes), 2 * len(self._steps))
                        self._steps[info[_STEPS]] = m, classes[following]
                        info[_STEPS] += 1
                if ways == 0:
                    return NO_OUTPUT
                if info[_KEEP]:
                    if info[_OUTCOMES] >= len(self._outcomes):
                        self._grow(2 * len(self._classes), 2 * len(self._steps))
                    self._outcomes[info[_OUTCOMES]] = base + at, first_move, info[_STEPS], leaves
                    info[_OUTCOMES] += 1
            if info[_EVALUATIONS] > MAX_EVALUATIONS // 100 or len(queue) > MAX_CLASSES // 100:
                return MANY_STATES
            at += 1
        steps = self._steps[begin : info[_STEPS]]
        np.bitwise_or.at(self.depends, steps[:, 0], self._wanted[steps[:, 1]])
        info[_CLASSES] = base + len(classes)
        return WALKED


def packet_lengths(state: NetState) -> NDArray[np.int64]:
    """Lengths of packets that the sources of a network can create, int64[...], in flits."""
    record = state.record[0]
    if int(record["source_kind"]) == SCRIPT:
        return np.unique(state["script_length"]).astype(np.int64)
    if int(record["source_kind"]) == PROGRAM:
        return np.arange(1, int(record["full_flits"]) + 1)
    if int(record["length_kind"]) == TABLE_LENGTH:
        share = np.diff(state["length_table"], prepend=0.0)
        return np.flatnonzero(share > 0).astype(np.int64) + 1
    return np.arange(max(1, int(record["length_low"])), max(1, int(record["length_high"])) + 1)
