"""Route computation by lookup engines of depth 5 to 8, cycle by cycle.

Definition: docs/definitions/lookup-engine.md, "Deep engines", for engines as `route_lookup` has them: responses always
taken, never reprogrammed. There is no INVALIDATE, no SCRUB and no flush then, and the queue of responses never fills
up. States of an MSHR are bits of `ENGINE`: free: not used; ISSUED: neither issue nor secondary nor resolved; INJECTED:
resolved, not done.
"""

from typing import Any

from numba import int64, uint8, uint32, uint64

from hopforge.model.kernel.bits import bit_of, first_at_or_after, trailing_zeros
from hopforge.model.kernel.compile import c_kernel, inner
from hopforge.model.kernel.memory import int32s, words
from hopforge.model.network.core.lookup_state import (
    FILL,
    LOOKUP,
    NO_VC,
    NOTHING,
    Lookups,
    accept_vc,
    asking_vc,
    deep_at,
    engine_at,
    lookups_of,
    mshr_at,
    second_of,
    stages_at,
)
from hopforge.model.network.core.net_record import NET_RECORD, Net
from hopforge.model.network.parts.engine_sleep import sleep_until_answer, wake_engines
from hopforge.model.network.parts.lookup_lines import find_way, write_line
from hopforge.model.network.parts.lookup_tcam import ask_tcam, tcam_says
from hopforge.model.network.parts.route_lookup import (
    count_hit,
    count_miss,
    destination,
    first_vc,
    has_row,
    key_number,
    reference,
    respond,
    take_answer,
)
from hopforge.model.network.parts.second_level import hear_answer, sleeps, step_second, takes_request


@inner
def has_free(lookups: Lookups, used: Any, count: int) -> bool:
    """Whether more than `count` MSHRs are free."""
    free = ~used if lookups.mshrs == 64 else ~used & (bit_of(lookups.mshrs) - uint64(1))
    for _ in range(count):
        free &= free - uint64(1)
    return free != uint64(0)


@inner
def follow_primary(lookups: Lookups, e: int) -> None:
    """Give the MSHR that merged in the cycle before the result that the other one had already."""
    engine, deep = engine_at(lookups, e), deep_at(lookups, e)
    slot = int64(deep.follower)
    deep.follower = NO_VC
    if slot == NO_VC:
        return
    entry = mshr_at(lookups, e, slot)
    primary = int64(entry.primary)
    if engine.used & bit_of(primary) != uint64(0) and engine.resolved & bit_of(primary) == uint64(0):
        return
    entry.match = mshr_at(lookups, e, primary).match
    engine.secondary &= ~bit_of(slot)
    engine.resolved |= bit_of(slot)
    engine.done |= bit_of(slot)


@inner
def hear(lookups: Lookups, e: int, said: int) -> tuple[int, int]:
    """Return (MSHR or -1, match) of the answer that acts now; that of a second level passes a register."""
    if lookups.second == 0:
        return hear_answer(lookups, e, said)
    stages = stages_at(second_of(lookups), e)
    answered, match = stages.late, int64(stages.late_match)
    stages.late, stages.late_match = stages.answer, stages.match
    if answered == NO_VC:
        return -1, 0
    return int64(answered), match


@inner
def issue(lookups: Lookups, e: int, waiting: Any, said: int, now: int) -> None:
    """Move the next request to the port and on; `waiting`: MSHRs in WAIT_ISSUE at the start of the cycle.

    `said`: the MSHR of which the TCAM speaks.
    """
    engine, deep, mshrs = engine_at(lookups, e), deep_at(lookups, e), lookups.mshrs
    sent = -1
    if deep.port != NO_VC and takes_request(lookups, e):
        sent = int64(deep.port)
    if lookups.second != 0:
        step_second(lookups, e, sent, said, now)
    elif sent >= 0:
        ask_tcam(lookups, e, sent, now + lookups.tcam_latency + 1)  # its answer passes a register
    if deep.port != NO_VC:
        if sent >= 0:
            deep.port = NO_VC
            engine.issue &= ~bit_of(sent)
    elif deep.to_issue != NO_VC:
        deep.port = deep.to_issue
        deep.to_issue = NO_VC
    elif waiting != uint64(0):
        chosen = first_at_or_after(waiting, engine.issue_pointer)
        deep.to_issue = uint8(chosen)
        engine.issue_pointer = uint8(chosen + 1 if chosen + 1 < mshrs else 0)


@inner
def allocate(net: Net, lookups: Lookups, e: int, used: Any, secondary: Any) -> None:
    """Give the LOOKUP in M its MSHR; `used`, `secondary`: MSHRs at the start of the cycle."""
    engine, deep = engine_at(lookups, e), deep_at(lookups, e)
    slot, n = int64(deep.t), first_vc(lookups, e) + int64(deep.m)
    key, row = int64(int32s(lookups.vc_key)[n]), has_row(net, lookups, e, n)
    entry = mshr_at(lookups, e, slot)
    entry.key = key
    entry.vc = deep.m
    entry.row = uint8(1) if row else uint8(0)
    engine.used |= bit_of(slot)
    others = used & ~secondary if lookups.enabled != 0 else uint64(0)
    while others != uint64(0):
        i = trailing_zeros(others)
        others &= others - uint64(1)
        if mshr_at(lookups, e, i).key == key:
            engine.merges += 1
            if row:
                reference(lookups, e, key)
            entry.primary = uint8(i)
            engine.secondary |= bit_of(slot)
            deep.follower = uint8(slot)
            return
    engine.issue |= bit_of(slot)
    count_miss(lookups, e, key, row)


@inner
def choose_free(lookups: Lookups, e: int, used: Any, allocated: bool) -> None:
    """Choose T, the MSHR of the next miss; `used`: MSHRs at the start of the cycle."""
    deep = deep_at(lookups, e)
    if deep.t != NO_VC and not allocated:
        return
    if deep.t != NO_VC:
        used |= bit_of(int64(deep.t))
    deep.t = uint8(trailing_zeros(~used)) if has_free(lookups, used, 0) else uint8(NO_VC)


@inner
def complete(net: Net, lookups: Lookups, e: int, kind: int, of: int, now: int) -> bool:
    """Stage C2; returns whether a LOOKUP goes to M."""
    engine = engine_at(lookups, e)
    if kind == LOOKUP:
        n = first_vc(lookups, e) + of
        key = int64(int32s(lookups.vc_key)[n])
        way = find_way(lookups, e, key) if lookups.enabled != 0 else -1
        if way < 0:
            return True
        count_hit(lookups, e, key, way)
        respond(net, n, True, now + 2)
    elif kind == FILL:
        entry = mshr_at(lookups, e, of)
        engine.used &= ~bit_of(of)
        engine.resolved &= ~bit_of(of)
        respond(net, first_vc(lookups, e) + int64(entry.vc), entry.match != 0, now + 2)
        if entry.match == 0:
            engine.drops += 1
        elif lookups.enabled != 0:
            write_line(lookups, e, int64(entry.key))
    return False


@inner
def move_requests(net: Net, lookups: Lookups, e: int, from_q: bool) -> None:
    """Move stages A and Q, and let the VC enter whose turn it is."""
    engine, deep = engine_at(lookups, e), deep_at(lookups, e)
    moves = deep.q1 == NO_VC
    if from_q:
        deep.q0 = deep.q1
        deep.q1 = NO_VC
    if not moves:
        return
    shift = uint32(8 * (lookups.depth - 5))
    last = (deep.a >> shift) & uint32(NO_VC)
    if last != uint32(NO_VC):
        if deep.q0 == NO_VC:
            deep.q0 = uint8(last)
        else:
            deep.q1 = uint8(last)
    v = NO_VC
    if engine.asking != uint64(0):
        v = asking_vc(net, lookups, e)
        n = first_vc(lookups, e) + v
        int32s(lookups.vc_key)[n] = key_number(lookups, e, destination(net, lookups, n))
        accept_vc(net, lookups, e, v)
    deep.a = uint32(deep.a << uint32(8)) | uint32(v)


@inner
def step_engine(net: Net, lookups: Lookups, e: int, now: int) -> None:
    """One cycle of an engine."""
    engine, deep = engine_at(lookups, e), deep_at(lookups, e)
    # decisions, from the state at the start of the cycle
    used, secondary, waiting = engine.used, engine.secondary, engine.issue
    picked = NO_VC
    if deep.p == NO_VC and deep.f == NO_VC and engine.done != uint64(0):
        picked = first_at_or_after(engine.done, engine.fill_pointer)
    chosen, chosen_of = NOTHING, 0
    if FILL not in (deep.r_kind, deep.c1_kind, deep.c2_kind):
        behind = int64(deep.r_kind == LOOKUP) + int64(deep.c1_kind == LOOKUP) + int64(deep.c2_kind == LOOKUP)
        behind += int64(deep.m != NO_VC)
        if deep.f != NO_VC:
            chosen, chosen_of = FILL, int64(deep.f)
        elif deep.q0 != NO_VC and has_free(lookups, used, behind):
            chosen, chosen_of = LOOKUP, int64(deep.q0)

    # MSHRs and TCAM
    follow_primary(lookups, e)
    said = tcam_says(lookups, e, now)
    answered, match = hear(lookups, e, said)
    if answered >= 0:
        take_answer(lookups, e, answered, match)
    issue(lookups, e, waiting, said, now)
    in_m = deep.m != NO_VC
    if in_m:
        allocate(net, lookups, e, used, secondary)
    choose_free(lookups, e, used, in_m)

    # C2, movement
    of = int64(deep.c2_of)
    deep.m = uint8(of) if complete(net, lookups, e, int64(deep.c2_kind), of, now) else uint8(NO_VC)
    deep.c2_kind, deep.c2_of = deep.c1_kind, deep.c1_of
    if lookups.memory_stage != 0:
        deep.c1_kind, deep.c1_of = deep.r_kind, deep.r_of
        deep.r_kind, deep.r_of = uint8(chosen), uint8(chosen_of)
    else:
        deep.c1_kind, deep.c1_of = uint8(chosen), uint8(chosen_of)
    if chosen == FILL:
        deep.f = NO_VC
    if deep.p != NO_VC:
        deep.f = deep.p
    deep.p = uint8(picked)
    if picked != NO_VC:
        engine.done &= ~bit_of(picked)
        engine.fill_pointer = uint8(picked + 1 if picked + 1 < lookups.mshrs else 0)
    move_requests(net, lookups, e, chosen == LOOKUP)


@inner
def may_sleep(lookups: Lookups, e: int) -> bool:
    """Whether nothing can happen in the engine before a VC asks or the TCAM answers."""
    engine, deep = engine_at(lookups, e), deep_at(lookups, e)
    if engine.asking != uint64(0) or engine.issue != uint64(0) or engine.done != uint64(0) or not sleeps(lookups, e):
        return False
    if lookups.second != 0 and stages_at(second_of(lookups), e).late != NO_VC:
        return False
    if deep.a != ~uint32(0) or deep.q0 != NO_VC or deep.m != NO_VC or deep.follower != NO_VC:
        return False
    if deep.r_kind != NOTHING or deep.c1_kind != NOTHING or deep.c2_kind != NOTHING:
        return False
    if deep.f != NO_VC or deep.p != NO_VC:
        return False
    return deep.t != NO_VC or not has_free(lookups, engine.used, 0)


@inner
def serve(net: Net, lookups: Lookups, e: int, now: int) -> bool:
    """One cycle of engine `e`; returns whether the next cycle needs it, too."""
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
