"""The second level of a network's lookup engines, cycle by cycle.

Definition: docs/definitions/second-level.md, for engines as `route_lookup` has them: never reprogrammed, so that there
is no INVALIDATE, no SCRUB and no flush. The TCAM takes a request in every cycle, and *ask* never holds more than one.
Its lines are those of a `Lookups` of its own, ``lookups.second``, whose ``engine`` counts its hits.
"""

from numba import int64, uint8

from hopforge.model.kernel.compile import inner
from hopforge.model.kernel.memory import int8s
from hopforge.model.network.core.lookup_state import (
    FILL,
    LOOKUP,
    NO_VC,
    NOTHING,
    Lookups,
    engine_at,
    mshr_at,
    second_of,
    stages_at,
)
from hopforge.model.network.parts.lookup_lines import find_way, touch, write_line
from hopforge.model.network.parts.lookup_tcam import ask_tcam


@inner
def chosen_kind(second: Lookups, e: int) -> int:
    """Kind of the operation that B takes."""
    stages = stages_at(second, e)
    if FILL in (stages.c1_kind, stages.c2_kind):
        return NOTHING
    if stages.f != NO_VC:
        return FILL
    last = int8s(second.requests)[(e + 1) * second.registers - 1]
    return LOOKUP if last != NO_VC else NOTHING


@inner
def takes_request(lookups: Lookups, e: int) -> bool:
    """Whether the request of an MSHR is taken; always without a second level."""
    if lookups.second == 0:
        return True
    second = second_of(lookups)
    last = int8s(second.requests)[(e + 1) * second.registers - 1]
    return last == NO_VC or chosen_kind(second, e) == LOOKUP


@inner
def hear_answer(lookups: Lookups, e: int, said: int) -> tuple[int, int]:
    """Return (MSHR or -1, match) that the MSHRs are told; `said`: the MSHR of which the TCAM speaks."""
    if lookups.second != 0:
        stages = stages_at(second_of(lookups), e)
        if stages.answer == NO_VC:
            return -1, 0
        return int64(stages.answer), int64(stages.match)
    return said, int64(mshr_at(lookups, e, said).row) if said >= 0 else 0


@inner
def sleeps(lookups: Lookups, e: int) -> bool:
    """Whether nothing is in the second level, if there is one; what the TCAM has is not."""
    return lookups.second == 0 or stages_at(second_of(lookups), e).inside == 0


@inner
def step_second(lookups: Lookups, e: int, sent: int, said: int, now: int) -> None:
    """One cycle. `sent`: MSHR whose request is taken, `said`: the one of which the TCAM speaks; -1: none."""
    second = second_of(lookups)
    stages = stages_at(second, e)
    kind = chosen_kind(second, e)
    inside = int64(stages.inside) + (sent >= 0) + (said >= 0)
    inside -= stages.answer != NO_VC
    if stages.ask != NO_VC:
        ask_tcam(lookups, e, int64(stages.ask), now + lookups.tcam_latency)
        inside -= 1
    stages.inside = uint8(inside)
    complete(lookups, second, e)

    # movement
    stages.c2_kind, stages.c2_of = stages.c1_kind, stages.c1_of
    stages.c1_kind, stages.c1_of = uint8(kind), stages.f
    if stages.f == NO_VC:
        if stages.results > 0:
            queue = int8s(second.results)
            first = e * lookups.mshrs
            stages.f = uint8(queue[first])
            stages.results -= uint8(1)
            for place in range(first, first + int64(stages.results)):
                queue[place] = queue[place + 1]
    elif kind == FILL:
        stages.f = uint8(NO_VC)
    move_requests(second, e, kind, sent)
    if said >= 0:
        int8s(second.results)[e * lookups.mshrs + int64(stages.results)] = uint8(said)
        stages.results += uint8(1)


@inner
def move_requests(second: Lookups, e: int, kind: int, sent: int) -> None:
    """Move R, and let `sent` enter."""
    requests = int8s(second.requests)
    first, last = e * second.registers, (e + 1) * second.registers - 1
    if kind == LOOKUP:
        stages_at(second, e).c1_of = uint8(requests[last])
    elif requests[last] != NO_VC:
        return
    for place in range(last, first, -1):
        requests[place] = requests[place - 1]
    requests[first] = uint8(sent)  # -1: NO_VC


@inner
def complete(lookups: Lookups, second: Lookups, e: int) -> None:
    """Stage C2."""
    stages = stages_at(second, e)
    kind, of = int64(stages.c2_kind), int64(stages.c2_of)
    stages.answer = stages.ask = uint8(NO_VC)
    if kind == NOTHING:
        return
    entry = mshr_at(lookups, e, of)
    key = int64(entry.key)
    if kind == LOOKUP:
        way = find_way(second, e, key) if lookups.enabled != 0 else -1
        if way < 0:
            stages.ask = uint8(of)
            return
        touch(second, e, key, way)
        engine_at(second, e).hits += 1
        stages.match = uint8(1)
    else:
        stages.match = entry.row
        if entry.row != 0 and lookups.enabled != 0:
            write_line(second, e, key)
    stages.answer = uint8(of)
