"""Kernels of the exploration of states that packets can reach: see `reachable`."""

from collections.abc import Callable
from typing import Any

from numba import int64, types, uint64

from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import entry, inlined, inner
from hopforge.model.kernel.memory import floats, int32s, int64s
from hopforge.model.network.core.candidates import blank_candidates, candidate_mask, candidate_need, candidate_port
from hopforge.model.network.core.draws import next_choices
from hopforge.model.network.core.layouts import PACKET_RECORD
from hopforge.model.network.core.net_record import NET_RECORD, ROUTE_SIGNATURE
from hopforge.model.network.core.records import host_at, input_port, input_vc, output_vc, vc_in_port

#: most evaluations of the relation that an exploration of `PROOF_LIMIT_S` makes, and draws of one evaluation
MAX_EVALUATIONS, MAX_DRAWS = 400_000_000, 16
#: most work of an exploration in seconds, unless told; work is counted in about nanoseconds: an evaluation costs
#: `EVALUATION_WORK` and six for each port of the router, a step `STEP_WORK` and two for each word of its masks
PROOF_LIMIT_S, EVALUATION_WORK, STEP_WORK = 50, 60, 25
#: answers that are kept for each router, to find those that are the same again, and numbers of one besides its mask
ANSWERS, ANSWER = 16, 9
#: most classes of one group, with and without fields of the packet that can take any value; and of all destinations
#: together that are kept (else they are explored again)
MAX_CLASSES, MAX_BOUNDED, MAX_KEPT = 1 << 20, 1 << 23, 1 << 22
#: what `walk` comes back with
WALKED, NO_OUTPUT, NO_ROOM, FULL, BAD_PORT, BAD_PHASE, BAD_COUNT, MANY_DRAWS, MANY_STATES, PAUSED, LONG = range(11)
# columns of a class
ROUTER, IN_PORT, IN_VC, HOPS, PHASE, VIA, USER0, USER1, COLUMNS = range(9)
# settings and results of a walk, int64[...]
(
    READS_PORT, READS_VC, READS_HOPS, READS_PHASE, READS_VIA, READS_USER0, READS_USER1, READS_SRC, HOPS_CAP,
    PHASES, KEEP, RESENDS, MOST, CLASS, VALUE, SRC, LENGTH, EVALUATIONS, GENERATION, DENSE, PORT_ROOM,
    VC_ROOM, HOPS_ROOM, PHASE_ROOM, CLASSES, OUTCOMES, STEPS, STRETCHED, NEXT, LIMIT,
    WORK, PAUSE, MOST_WORK, MOST_EVALUATIONS, INFO,
) = range(35)  # fmt: skip


@inner
def _same(classes: Any, k: int, router: int, port: int, vc: int, hops: int, packet: Any) -> bool:
    """Whether class `k` is the one of these values and of those in `packet`."""
    return (
        classes[k, ROUTER] == router
        and classes[k, VIA] == packet.via
        and classes[k, IN_PORT] == port
        and classes[k, IN_VC] == vc
        and classes[k, PHASE] == packet.phase
        and classes[k, HOPS] == hops
        and classes[k, USER0] == packet.user0
        and classes[k, USER1] == packet.user1
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
    now = info[GENERATION]
    port *= info[READS_PORT]
    vc *= info[READS_VC]
    hops = min(hops, info[HOPS_CAP])
    if info[DENSE] != 0:
        # few values: a place of its own for each
        place = ((router * info[PORT_ROOM] + port) * info[VC_ROOM] + vc) * info[HOPS_ROOM] + hops
        place = place * info[PHASE_ROOM] + int64(packet.phase)
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
    classes[count, ROUTER], classes[count, IN_PORT], classes[count, IN_VC] = router, port, vc
    classes[count, HOPS], classes[count, PHASE], classes[count, VIA] = hops, packet.phase, packet.via
    classes[count, USER0], classes[count, USER1] = packet.user0, packet.user1
    for word in range(wanted.shape[1]):
        wanted[count, word] = 0
    return count


@inner
def _forget(info: Any, packet: Any) -> None:
    """Set the fields that the relation does not read to what they are at the source."""
    if info[READS_PHASE] == 0:
        packet.phase = 0
    if info[READS_VIA] == 0:
        packet.via = -1
    if info[READS_USER0] == 0:
        packet.user0 = 0
    if info[READS_USER1] == 0:
        packet.user1 = 0


@inner
def _start(
    net: Any, packet: Any, info: Any, first_host: int, last_host: int, classes: Any, slots: Any, stamps: Any,
    wanted: Any,
) -> bool:  # fmt: skip
    """Enter the classes of packets that come from these hosts; False: no room."""
    info[GENERATION] += 1
    packet.phase, packet.via, packet.user0, packet.user1 = 0, -1, 0, 0
    for h in range(first_host, last_host):
        for v in range(int64(net.vcs)):
            if (int64(host_at(net, h).inject_mask | host_at(net, h).reply_mask) >> v) & 1:
                port = input_port(net, input_vc(net, int64(host_at(net, h).input_vc) + v).port)
                count = info[CLASSES]
                if count >= len(classes):
                    return False
                k = _enter(
                    info, classes, slots, stamps, wanted, count, int64(port.router), int64(port.port), v, 0, packet
                )
                info[CLASSES] += 1 if k == count else 0
    return True


@inner
def _ports_of_answer(net: Any, candidates: Any, found: int, mask: Any) -> bool:
    """Write the output VCs of an answer to a mask (that of `wanted`, and hosts); False: it asks for more than them."""
    ports, vcs = int64(net.ports), int64(net.vcs)
    for word in range(len(mask)):
        mask[word] = 0
    every = (uint64(1) << uint64(vcs)) - uint64(1)
    for k in range(found):
        packed = candidates[k]
        o, vc_mask = candidate_port(packed), uint64(candidate_mask(packed)) & every
        if o >= ports or candidate_need(packed) > 0:
            return False
        word, shift = o * vcs >> 6, uint64(o * vcs & 63)
        mask[word] |= vc_mask << shift
        if shift > uint64(64 - vcs):
            mask[word + 1] |= vc_mask >> (uint64(64) - shift)
    return found > 0


@inner
def _place_of_answer(router: int, mask: Any) -> Any:
    """Where an answer is kept, if it is."""
    mixed = uint64(0)
    for word in range(len(mask)):
        mixed = (mixed ^ mask[word]) * uint64(0xD6E8FEB86659FD93)
        mixed ^= mixed >> uint64(32)
    return router * ANSWERS + int64(mixed & uint64(ANSWERS - 1))


@inner
def _is_kept(info: Any, answers: Any, masks: Any, place: int, hops: int, packet: Any, mask: Any) -> bool:
    """Whether the answer that is kept there is this one, in this group, of a packet with the same fields."""
    kept = answers[place]
    if (
        kept[0] != info[GENERATION]
        or kept[2] != hops
        or kept[3] != packet.phase
        or kept[4] != packet.via
        or kept[5] != (int64(packet.user0) << 32) ^ int64(uint64(packet.user1) & uint64(0xFFFFFFFF))
    ):
        return False
    same = True
    for word in range(len(mask)):
        same = same and masks[place, word] == mask[word]
    return same


@inner
def _keep_answer(info: Any, answers: Any, masks: Any, place: int, k: int, hops: int, packet: Any, mask: Any) -> None:
    """Keep the answer of class `k`."""
    kept = answers[place]
    kept[0], kept[1], kept[2], kept[3], kept[4] = info[GENERATION], k, hops, packet.phase, packet.via
    kept[5] = (int64(packet.user0) << 32) ^ int64(uint64(packet.user1) & uint64(0xFFFFFFFF))
    for word in range(len(mask)):
        masks[place, word] = mask[word]


@inlined
def _ask(route: Callable[..., int], net: Any, packet: Any, info: Any, choices: Any, at: Any) -> int:
    """Ask the relation about a packet of class `at`; one of the codes, and how many candidates in ``info[VALUE]``."""
    packet.hops, packet.phase, packet.via = int64(at[HOPS]), at[PHASE], at[VIA]
    packet.user0, packet.user1 = at[USER0], at[USER1]
    blank_candidates(net, 0)
    found = route(
        int64(at[ROUTER]),
        int64(at[IN_PORT]),
        int64(at[IN_VC]),
        packet,
        net,
        int32s(net.table),
        floats(net.memory),
        int64s(net.candidate),
    )
    info[EVALUATIONS] += 1
    info[VALUE] = found
    if choices[1] > choices[0]:
        return MANY_DRAWS
    if found > info[MOST] or found < 0:
        return BAD_COUNT
    _forget(info, packet)
    info[WORK] += EVALUATION_WORK + 6 * int64(net.ports)
    return WALKED


@inlined
def _follow(
    net: Any, packet: Any, info: Any, at: int, router: int, hops: int, most: int, classes: Any, slots: Any,
    stamps: Any, wanted: Any, steps: Any,
) -> int:  # fmt: skip
    """Enter what the candidates of class `at` lead to; 1: packets may leave, 0: they may not; below 0: minus a code."""
    ports, vcs, inputs = int64(net.ports), int64(net.vcs), int64(net.input_vcs)
    candidates = int64s(net.candidate)
    count, moves = info[CLASSES], info[STEPS]
    first_move, leaves, ways = moves, 0, 0
    for k in range(info[VALUE]):
        packed = candidates[k]
        o, mask = candidate_port(packed), uint64(candidate_mask(packed))
        if o >= ports:
            info[VALUE] = o
            return -BAD_PORT
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
                return -NO_OUTPUT
            if candidate_need(packed) > int64(output.depth):
                continue
            ways += 1
            if target >= inputs:
                leaves = 1
                continue
            if packet.phase < 0 or packet.phase >= info[PHASES]:
                info[VALUE] = packet.phase
                return -BAD_PHASE
            if count >= most or moves >= len(steps):
                return -NO_ROOM
            wanted[at, bit >> 6] |= uint64(1) << uint64(bit & 63)
            to = input_vc(net, target)
            port = input_port(net, to.port)
            following = _enter(
                info, classes, slots, stamps, wanted, count, int64(port.router), int64(port.port),
                vc_in_port(net, to), hops + 1, packet,
            )  # fmt: skip
            count += 1 if following == count else 0
            steps[moves, 0], steps[moves, 1] = m, following
            moves += 1
    info[CLASSES], info[STEPS] = count, moves
    info[WORK] += (moves - first_move) * (STEP_WORK + 2 * int64(wanted.shape[1]))
    return leaves if ways > 0 else -NO_OUTPUT


@inlined
def _note_outcome(info: Any, outcomes: Any, at: int, first: int, last: int, leaves: int) -> bool:
    """Note that an answer for class `at` has the steps from `first` to `last`; False: no room."""
    if info[KEEP] == 0:
        return True
    answers = info[OUTCOMES]
    if answers >= len(outcomes):
        return False
    outcomes[answers, 0], outcomes[answers, 1] = at, first
    outcomes[answers, 2], outcomes[answers, 3] = last, leaves
    info[OUTCOMES] += 1
    return True


@inner
def _group(
    route: Callable[..., int], net: Any, packet: Any, info: Any, choices: Any, first_host: int, last_host: int,
    classes: Any, slots: Any, stamps: Any, wanted: Any, outcomes: Any, steps: Any, kept: Any, masks: Any,
) -> int:  # fmt: skip
    """Explore the classes that packets of some hosts reach, and enter them behind those that are there.

    A class whose only answer is that of an earlier one at its router leads to the same classes: both have the same
    steps.
    """
    mine = masks[len(masks) - 1]
    at = info[CLASSES]
    most, first_class = len(classes), at
    if info[DENSE] == 0:
        most = min(most, at + (len(slots) >> 1))
    if not _start(net, packet, info, first_host, last_host, classes, slots, stamps, wanted):
        return NO_ROOM
    candidates = int64s(net.candidate)
    while at < info[CLASSES]:
        router, hops = int64(classes[at, ROUTER]), int64(classes[at, HOPS])
        info[CLASS] = at
        again = True
        while again:
            code = _ask(route, net, packet, info, choices, classes[at])
            if code != WALKED:
                return code
            alike = (
                choices[1] == 0
                and packet.phase >= 0
                and packet.phase < info[PHASES]
                and _ports_of_answer(net, candidates, info[VALUE], mine)
            )
            place = int64(-1)
            if alike:
                place = _place_of_answer(router, mine)
                after = min(hops + 1, info[HOPS_CAP])
                if _is_kept(info, kept, masks, place, after, packet, mine):
                    for word in range(wanted.shape[1]):
                        wanted[at, word] = wanted[kept[place, 1], word]
                    if not _note_outcome(info, outcomes, at, kept[place, 6], kept[place, 7], kept[place, 8]):
                        return NO_ROOM
                    break
                _keep_answer(info, kept, masks, place, at, after, packet, mine)
            first_move = info[STEPS]
            leaves = _follow(
                net, packet, info, at, router, hops, most, classes, slots, stamps, wanted, steps
            )  # fmt: skip
            if leaves < 0:
                return -leaves
            if place >= 0:
                kept[place, 6], kept[place, 7], kept[place, 8] = first_move, info[STEPS], leaves
            if not _note_outcome(info, outcomes, at, first_move, info[STEPS], leaves):
                return NO_ROOM
            again = choices[1] != 0 and next_choices(choices)
        at += 1
        if info[EVALUATIONS] > info[MOST_EVALUATIONS] or info[CLASSES] - first_class > info[LIMIT]:
            return MANY_STATES
        if info[WORK] > info[MOST_WORK]:
            return LONG
    return WALKED


@inner
def _towards(
    route: Callable[..., int], net: Any, packet: Any, info: Any, choices: Any, dst: int, lengths: Any, classes: Any,
    slots: Any, stamps: Any, wanted: Any, outcomes: Any, steps: Any, kept: Any, masks: Any, depends: Any,
) -> int:  # fmt: skip
    """Explore all groups of packets to host `dst`."""
    packet.dst = dst
    for src in range(int64(net.hosts) if info[READS_SRC] else 1):
        first, last = 0, int64(net.hosts)
        if info[READS_SRC]:
            if (host_at(net, src).inject_mask | host_at(net, src).reply_mask) == 0:
                continue
            if not info[RESENDS]:
                first, last = src, src + 1
        for length in lengths:
            packet.src, packet.length = src, length
            info[SRC], info[LENGTH] = src, length
            if info[KEEP] == 0:
                info[CLASSES : STEPS + 1] = 0
            before = info[STEPS]
            code = _group(
                route, net, packet, info, choices, first, last, classes, slots, stamps, wanted, outcomes, steps,
                kept, masks,
            )  # fmt: skip
            if code != WALKED:
                return code
            # a packet that came to a class by a channel may wait there for all that the class wants
            for s in range(before, info[STEPS]):
                for word in range(wanted.shape[1]):
                    depends[steps[s, 0], word] |= wanted[steps[s, 1], word]
    return WALKED


_I1, _I2 = types.Array(types.int64, 1, "C"), types.Array(types.int32, 2, "C")
_L2 = types.Array(types.int64, 2, "C")
_H1, _B1, _U2 = types.Array(types.int32, 1, "C"), types.Array(types.uint8, 1, "C"), types.Array(types.uint64, 2, "C")
_ROUTE = types.FunctionType(ROUTE_SIGNATURE)


@entry(int64(_ROUTE, NET_RECORD, PACKET_RECORD, _I1, _I1, _I1, _I1, _I2, _H1, _I1, _U2, _I2, _I2, _L2, _U2, _U2))
def walk(
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
    kept: Any,
    masks: Any,
    depends: Any,
) -> int:
    """Explore the destinations from number ``info[NEXT]`` on, until ``info[PAUSE]`` of work; one of the codes above."""
    while info[NEXT] < len(destinations):
        if info[WORK] > info[PAUSE]:
            return PAUSED
        if info[CLASSES] > MAX_KEPT:
            return FULL
        before = info[CLASSES], info[OUTCOMES], info[STEPS]
        code = _towards(
            route, net, packet, info, choices, destinations[info[NEXT]], lengths, classes, slots, stamps, wanted,
            outcomes, steps, kept, masks, depends,
        )  # fmt: skip
        if code == NO_ROOM:  # this destination again, with more
            info[CLASSES], info[OUTCOMES], info[STEPS] = before
        if code != WALKED:
            return code
        info[NEXT] += 1
    return WALKED


@entry(types.void(_I1, _I2, _I2, _B1, _B1, _B1, _B1))
def settle(
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
    count, answers = info[CLASSES], info[OUTCOMES]
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
    changed = info[STRETCHED] != 0
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
    for s in range(info[STEPS]):
        still[steps[s, 0]] |= closed[steps[s, 0]] & stuck[steps[s, 1]]
