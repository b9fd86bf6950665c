"""Route computation by lookup engines, cycle by cycle.

Definitions: docs/definitions/lookup-engine.md, and RC in docs/definitions/router.md. Cycle-exact twin of
`model.lookup.golden` for engines whose responses are always taken, which are enabled (or disabled: every lookup asks
the TCAM) and are not reprogrammed: nothing is held up in stage C, there is no INVALIDATE and no SCRUB. An engine
without anything under way looks a request up when it accepts it, since no FILL can come between, and on a hit the end
of RC is known at once; only engines with misses go through every cycle.
"""

from typing import Any

from numba import int64, uint8, uint64

from hopforge.model.kernel.bits import first_at_or_after, trailing_zeros
from hopforge.model.kernel.compile import c_kernel, inlined, inner
from hopforge.model.kernel.memory import int8s, int32s, int64s, words
from hopforge.model.lookup.reference_stack import CAPACITY, COMPULSORY, reference_lookup
from hopforge.model.network.core.kinds import AHEAD_ENGINES, RC
from hopforge.model.network.core.lookup_state import (
    FILL,
    LOOKUP,
    NO_VC,
    NOTHING,
    Lookups,
    accept_vc,
    address_number,
    asking_vc,
    engine_at,
    lookups_of,
    mshr_at,
)
from hopforge.model.network.core.net_record import NET_RECORD, Net
from hopforge.model.network.core.records import fifo_of, input_vc, packet_at
from hopforge.model.network.parts.engine_sleep import sleep_until_answer, wake_engines
from hopforge.model.network.parts.lookup_lines import find_way, touch, write_line
from hopforge.model.network.parts.lookup_tcam import ask_tcam, tcam_says
from hopforge.model.network.parts.second_level import hear_answer, sleeps, step_second, takes_request


@inlined
def first_vc(lookups: Lookups, e: int) -> int:
    """Input VC of the network that is VC 0 of engine `e`."""
    return int64(engine_at(lookups, e).first_vc)


@inner
def destination(net: Net, lookups: Lookups, n: int) -> int:
    """Return the number of the address to which the packet at the head of input VC `n` goes."""
    flit = fifo_of(net, n)[input_vc(net, n).head]
    return address_number(lookups, packet_at(net, flit >> 2))


@inner
def key_number(lookups: Lookups, e: int, address: int) -> int:
    """Return the number of the key of an address at the router of engine `e`."""
    if lookups.reduced == 0:
        return address
    router = int64(engine_at(lookups, e).router)
    return int64(int32s(lookups.key)[router * lookups.addresses + address])


@inner
def has_row(net: Net, lookups: Lookups, e: int, n: int) -> bool:
    """Whether the TCAM of engine `e` has a row for the packet at the head of input VC `n`."""
    vc = input_vc(net, n)
    if vc.candidates == 0:
        return False
    if lookups.limited == 0:
        return True
    router = int64(engine_at(lookups, e).router)
    return int8s(lookups.row)[router * lookups.addresses + destination(net, lookups, n)] != 0


@inner
def reference(lookups: Lookups, e: int, key: int) -> int:
    """Look `key` up in the fully associative LRU cache of the same size: HIT, COMPULSORY or CAPACITY."""
    slot = e * lookups.keys + key
    if lookups.stacked == 0:
        before = int8s(lookups.stack_status)[slot]
        int8s(lookups.stack_status)[slot] = 1
        if before == 0:
            return COMPULSORY
        return CAPACITY if lookups.entries == 0 else 0
    return reference_lookup(
        int64s(lookups.stack_head),
        int64s(lookups.stack_tail),
        int64s(lookups.stack_held),
        int32s(lookups.stack_newer),
        int32s(lookups.stack_older),
        int8s(lookups.stack_status),
        lookups.entries,
        e,
        slot,
    )


@inner
def count_hit(lookups: Lookups, e: int, key: int, way: int) -> None:
    """Count a hit, touch the line."""
    engine_at(lookups, e).hits += 1
    touch(lookups, e, key, way)
    if lookups.stacked != 0:
        reference(lookups, e, key)


@inner
def count_miss(lookups: Lookups, e: int, key: int, row: bool) -> None:
    """Count a lookup that asks the TCAM by its cause (docs/guides/hit-rates.md)."""
    engine = engine_at(lookups, e)
    if not row:
        engine.unmatched += 1
        return
    cause = reference(lookups, e, key)
    if cause == COMPULSORY:
        engine.compulsory += 1
    elif cause == CAPACITY:
        engine.capacity += 1
    else:
        engine.conflict += 1


@inner
def respond(net: Net, n: int, match: bool, when: int) -> None:
    """End RC of input VC `n`: from `when` on VA with the candidates that it has, or DRAIN.

    Look-ahead: a head that is beyond RC has what it takes along, a cycle earlier.
    """
    if net.lookahead == AHEAD_ENGINES and input_vc(net, n).state != RC:
        when -= 1
    elif not match:
        input_vc(net, n).candidates = 0
    slot = when & net.wheel_mask
    int32s(net.ready_event)[slot * net.event_capacity + int32s(net.ready_events)[slot]] = n
    int32s(net.ready_events)[slot] += 1


@inner
def look_ahead(net: Net, lookups: Lookups, e: int, v: int, now: int) -> bool:
    """Look up VC `v` of an engine with nothing under way; returns whether it hits, and then RC's end is arranged."""
    if lookups.enabled == 0:
        return False
    engine = engine_at(lookups, e)
    if lookups.mshrs == 1 and engine.in_c == now + max(lookups.depth - 2, 0) and lookups.depth > 1:
        return False  # in B it would meet a lookup in C, which may need the only MSHR
    n = first_vc(lookups, e) + v
    key = key_number(lookups, e, destination(net, lookups, n))
    way = find_way(lookups, e, key)
    if way < 0:
        return False
    count_hit(lookups, e, key, way)
    engine.in_c = now + lookups.depth - 1
    respond(net, n, True, now + lookups.depth + 1)
    return True


@inner
def complete_lookup(net: Net, lookups: Lookups, e: int, v: int, answered: int, match: int, now: int) -> None:
    """Stage C of a LOOKUP; `answered`, `match`: MSHR that is answered in this cycle (-1: none), and the answer."""
    engine = engine_at(lookups, e)
    n = first_vc(lookups, e) + v
    key = int64(int32s(lookups.vc_key)[n])
    if lookups.enabled != 0:
        way = find_way(lookups, e, key)
        if way >= 0:
            count_hit(lookups, e, key, way)
            respond(net, n, True, now + 2)
            return
    slot = trailing_zeros(~engine.used)
    bit = uint64(1) << uint64(slot)
    row = has_row(net, lookups, e, n)
    entry = mshr_at(lookups, e, slot)
    entry.key = key
    entry.vc = uint8(v)
    entry.row = uint8(1) if row else uint8(0)
    others = engine.used & ~engine.secondary if lookups.enabled != 0 else uint64(0)
    engine.used |= bit
    while others != uint64(0):
        i = trailing_zeros(others)
        others &= others - uint64(1)
        other = mshr_at(lookups, e, i)
        if other.key != key:
            continue
        engine.merges += 1
        if row:
            reference(lookups, e, key)
        if (engine.resolved >> uint64(i)) & uint64(1):
            entry.match = other.match
        elif i == answered:
            entry.match = uint8(match)
        else:
            entry.primary = uint8(i)
            engine.secondary |= bit
            return
        engine.resolved |= bit
        engine.done |= bit
        return
    engine.issue |= bit
    count_miss(lookups, e, key, row)


@inner
def complete_fill(net: Net, lookups: Lookups, e: int, i: int, now: int) -> None:
    """Stage C of a FILL."""
    engine = engine_at(lookups, e)
    entry = mshr_at(lookups, e, i)
    bit = uint64(1) << uint64(i)
    engine.used &= ~bit
    engine.resolved &= ~bit
    respond(net, first_vc(lookups, e) + int64(entry.vc), entry.match != 0, now + 2)
    if entry.match == 0:
        engine.drops += 1
    elif lookups.enabled != 0:
        write_line(lookups, e, int64(entry.key))


@inner
def take_answer(lookups: Lookups, e: int, i: int, answer: int) -> None:
    """Take the answer for MSHR `i`, whether there is a match: it and those that wait for it are done."""
    engine = engine_at(lookups, e)
    match = uint8(answer)
    finished = uint64(1) << uint64(i)
    rest = engine.secondary
    while rest != uint64(0):
        k = trailing_zeros(rest)
        rest &= rest - uint64(1)
        if int64(mshr_at(lookups, e, k).primary) == i:
            finished |= uint64(1) << uint64(k)
            mshr_at(lookups, e, k).match = match
    mshr_at(lookups, e, i).match = match
    engine.secondary &= ~finished
    engine.resolved |= finished
    engine.done |= finished


@inner
def free_mshrs(lookups: Lookups, engine: Any) -> int:
    """Count the free MSHRs, up to two."""
    every = (uint64(1) << uint64(lookups.mshrs)) - uint64(1) if lookups.mshrs < 64 else ~uint64(0)
    free = ~engine.used & every
    if free == uint64(0):
        return 0
    return 1 if free & (free - uint64(1)) == uint64(0) else 2


@inner
def step_engine(net: Net, lookups: Lookups, e: int, now: int) -> None:
    """One cycle of an engine with something under way, the request that it accepts included."""
    engine = engine_at(lookups, e)
    depth, mshrs = lookups.depth, lookups.mshrs
    # decisions, from the state at the start of the cycle
    said = tcam_says(lookups, e, now)
    answered, match = hear_answer(lookups, e, said)
    offer = first_at_or_after(engine.issue, engine.issue_pointer) if engine.issue != uint64(0) else -1
    fill = first_at_or_after(engine.done, engine.fill_pointer) if engine.done != uint64(0) else -1
    in_c = 1 if (engine.c_kind == LOOKUP or (engine.in_c == now and depth > 1)) else 0
    room = free_mshrs(lookups, engine) > in_c
    v = asking_vc(net, lookups, e) if engine.asking != uint64(0) else -1
    last = NO_VC
    if depth == 3:
        last = int64(engine.a0)
    elif depth == 4:
        last = int64(engine.a1)
    chosen, chosen_of, from_a, ready = NOTHING, 0, False, False
    if fill >= 0:
        chosen, chosen_of = FILL, fill
    elif depth >= 3:
        if last != NO_VC and room:
            chosen, chosen_of, from_a = LOOKUP, last, True
    else:
        ready = room
        if v >= 0 and room:
            chosen, chosen_of = LOOKUP, v
    if depth >= 3:
        ready = last == NO_VC or from_a or (depth == 4 and engine.a0 == NO_VC)
    accepts = ready and v >= 0
    if accepts:
        n = first_vc(lookups, e) + v
        int32s(lookups.vc_key)[n] = key_number(lookups, e, destination(net, lookups, n))
        accept_vc(net, lookups, e, v)

    # stage C
    kind, of = int64(engine.c_kind), int64(engine.c_of)
    if depth == 1:
        kind, of = chosen, chosen_of
    if kind == LOOKUP:
        complete_lookup(net, lookups, e, of, answered, match, now)
    elif kind == FILL:
        complete_fill(net, lookups, e, of, now)

    # MSHRs and TCAM
    if answered >= 0:
        take_answer(lookups, e, answered, match)
    sent = -1
    if offer >= 0:
        engine.issue_pointer = uint8(offer)
        if takes_request(lookups, e):
            sent = offer
            engine.issue_pointer = uint8(offer + 1 if offer + 1 < mshrs else 0)
            engine.issue &= ~(uint64(1) << uint64(offer))
    if lookups.second != 0:
        step_second(lookups, e, sent, said, now)
    elif sent >= 0:
        ask_tcam(lookups, e, sent, now + lookups.tcam_latency)
    if chosen == FILL:
        engine.done &= ~(uint64(1) << uint64(fill))
        engine.fill_pointer = uint8(fill + 1 if fill + 1 < mshrs else 0)

    # movement
    if depth > 1:
        engine.c_kind = uint8(chosen)
        engine.c_of = uint8(chosen_of)
    if depth == 3:
        if from_a:
            engine.a0 = NO_VC
        if accepts:
            engine.a0 = uint8(v)
    elif depth == 4:
        if from_a:
            engine.a1 = NO_VC
        if engine.a1 == NO_VC:
            engine.a1 = engine.a0
            engine.a0 = NO_VC
        if accepts:
            engine.a0 = uint8(v)


@inner
def may_sleep(lookups: Lookups, e: int) -> bool:
    """Whether nothing can happen in the engine before a VC asks or the TCAM answers."""
    engine = engine_at(lookups, e)
    if engine.c_kind != NOTHING or engine.issue != uint64(0) or engine.done != uint64(0) or not sleeps(lookups, e):
        return False
    asks, first, second = engine.asking != uint64(0), engine.a0 != NO_VC, engine.a1 != NO_VC
    if not (asks or first or second):
        return True
    if free_mshrs(lookups, engine) > 0:
        return False
    # B is closed; stage A takes nothing and moves nothing
    if lookups.depth == 4:
        return second and (first or not asks)
    return lookups.depth < 3 or first


@inner
def serve(net: Net, lookups: Lookups, e: int, now: int) -> bool:
    """One cycle of engine `e`; returns whether the next cycle needs it, too."""
    engine = engine_at(lookups, e)
    quiet = engine.used == uint64(0) and engine.c_kind == NOTHING and engine.a0 == NO_VC and engine.a1 == NO_VC
    if quiet:
        if engine.asking == uint64(0):
            return False
        v = asking_vc(net, lookups, e)
        if look_ahead(net, lookups, e, v, now):
            accept_vc(net, lookups, e, v)
            return engine.asking != uint64(0)
    step_engine(net, lookups, e, now)
    if not may_sleep(lookups, e):
        return True
    sleep_until_answer(lookups, e)
    return False


@c_kernel(int64(NET_RECORD, int64))
def step(net: Net, now: int) -> int:
    """All engines of a network go through cycle `now`; returns 0. `lookup_state.step_lookups` calls it."""
    lookups = lookups_of(net)
    wake_engines(lookups, now)
    for word in range((lookups.engines + 63) >> 6):
        rest = words(lookups.active)[word]
        while rest != uint64(0):
            low = trailing_zeros(rest)
            rest &= rest - uint64(1)
            if not serve(net, lookups, word * 64 + low, now):
                words(lookups.active)[word] &= ~(uint64(1) << uint64(low))
    return 0
