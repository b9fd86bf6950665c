"""Layout of the lookup engines of a network, all of the same kind (definitions/lookup-engine.md).

There is one per input port, or one for several of a router (definitions/router.md, Shared engines). VCs of an engine
have numbers: VC v of member m is m · VCs + v. With look-ahead an output port has the engine that answers for the router
behind it; there all VCs of the router are counted.

Only what differs between two moments of an engine that is never held up at its response port is kept: an operation is
the number of its VC or MSHR, a line is the number of its key. Keys have numbers that are the same in all routers
(`lookup_build`), so a line is eight bytes.
"""

from typing import Any

import numba
import numpy as np
from numba import int64, uint8, uint32, uint64
from numpy.typing import NDArray

from hopforge.model.kernel.bits import bit_of, first_at_or_after
from hopforge.model.kernel.compile import inlined, inner
from hopforge.model.kernel.constant_record import constant_record
from hopforge.model.kernel.memory import function_at, int8s, int32s, record_reader, words
from hopforge.model.network.core.net_record import NET_RECORD

#: operation in stage C
NOTHING, LOOKUP, FILL = range(3)
NO_VC = 255

LINE = np.dtype(
    [
        ("key", "u4"),  # number of the key + 1; 0: not valid
        ("order", "u4"),  # of the set, a word per way (`model.lookup.replacement`)
    ],
    align=True,
)

MSHR = np.dtype(
    [
        ("due", "i8"),  # cycle of the TCAM's answer
        ("key", "i4"),
        ("vc", "u1"),  # of the engine: whose lookup it is
        ("primary", "u1"),  # while waiting for another one's answer
        ("row", "u1"),  # the TCAM has a row for the destination
        ("match", "u1"),  # answer
        ("queue", "u1"),  # not of this MSHR: place in the TCAM's pipeline, a ring of MSHR numbers
    ],
    align=True,
)

#: what is counted for each engine; lookups = hits + merges + misses, misses = the four after `merges`
COUNTS = ("hits", "merges", "compulsory", "capacity", "conflict", "unmatched", "fills", "evictions", "drops")

ENGINE = np.dtype(
    [
        # all that a hit touches
        ("used", "u8"),  # MSHRs that are not free
        ("in_c", "i8"),  # cycle in which the last lookup that was looked up ahead is in stage C
        ("asking", "u8"),  # VCs in RC that have not asked
        ("first_vc", "u4"),  # input VC of the network that is VC 0 of the engine
        ("router", "u4"),  # for which it answers
        ("ask_pointers", "u4"),  # VC at which the choice begins, a byte per member
        ("clock", "u4"),  # uses of the cache, modulo 2³²
        ("a0", "u1"),  # VC in the first register of stage A, NO_VC: empty
        ("a1", "u1"),  # ... in the second (depth 4)
        ("c_kind", "u1"),  # NOTHING, LOOKUP (of a VC) or FILL (of an MSHR)
        ("c_of", "u1"),
        ("member_pointer", "u1"),
        ("issue_pointer", "u1"),
        ("fill_pointer", "u1"),
        ("queue_head", "u1"),  # of the TCAM's pipeline
        ("queued", "u1"),
        ("lfsr", "u2"),  # random policy
        *((name, "i8") for name in COUNTS),
        # MSHRs
        ("issue", "u8"),  # that wait for the TCAM to take them
        ("secondary", "u8"),  # that wait for another one's answer
        ("resolved", "u8"),  # whose answer is there
        ("done", "u8"),  # ... and that have not begun their FILL
        ("wake", "i8"),  # cycle for which the engine is in the list of those to be woken
    ],
    align=True,
)

#: what deep engines have besides; NO_VC: nothing
DEEP = np.dtype(
    [
        ("a", "u4"),  # stage A: VCs, the youngest in the lowest byte
        ("q0", "u1"),  # VCs
        ("q1", "u1"),
        ("r_kind", "u1"),  # NOTHING, LOOKUP (of a VC) or FILL (of an MSHR)
        ("r_of", "u1"),
        ("c1_kind", "u1"),
        ("c1_of", "u1"),
        ("c2_kind", "u1"),
        ("c2_of", "u1"),
        ("m", "u1"),  # VC
        ("f", "u1"),  # MSHRs: in F, P, T, P′, at the port
        ("p", "u1"),
        ("t", "u1"),
        ("to_issue", "u1"),
        ("port", "u1"),
        ("follower", "u1"),  # MSHR that merged in the cycle before
    ],
    align=True,
)


def empty_deep(engines: NDArray[Any]) -> None:
    """Let nothing be under way in some records of `DEEP`."""
    for name in DEEP.names or ():
        engines[name] = NOTHING if name.endswith("_kind") else 0 if name.endswith("_of") else NO_VC
    engines["a"] = ~np.uint32(0)


#: stages of a second level (definitions/second-level.md): numbers of MSHRs, NO_VC: nothing
SECOND = np.dtype(
    [
        ("c1_kind", "u1"),  # NOTHING, LOOKUP or FILL
        ("c1_of", "u1"),
        ("c2_kind", "u1"),
        ("c2_of", "u1"),
        ("f", "u1"),
        ("ask", "u1"),  # waits for the TCAM
        ("answer", "u1"),  # in the answer register
        ("match", "u1"),  # ... and what it says
        ("late", "u1"),  # the same of the cycle before, in a deep engine
        ("late_match", "u1"),
        ("results", "u1"),  # answers of the TCAM in G
        ("inside", "u1"),  # MSHRs that ask, less those of which the TCAM speaks later
    ],
    align=True,
)

#: what all engines have in common
_SETTINGS = (
    "engines",
    "members",  # input ports that share an engine: 1, 2 or 4
    "depth",
    "memory_stage",
    "mshrs",
    "sets",
    "ways",
    "policy",
    "skewed",
    "enabled",  # 0: every lookup asks the TCAM
    "tcam_latency",
    "wake_mask",
    "keys",
    "addresses",  # of all hosts
    "paths",  # addresses of a host; of the packet: host · paths + phase div layers (definitions/several-paths.md)
    "layers",
    "limited",  # the TCAM has no row for some destinations: `row`
    "entries",  # lines of an engine
    "stacked",  # more keys than lines: causes of misses need the reference stacks
    "reduced",  # keys are in `key`; else the number of a key is that of its address
    "second",  # address of the `LOOKUPS` of a second level, 0: none
    "registers",  # of a second level: registers of R
)

#: arrays: name, element type, meaning
LOOKUP_ARRAYS: dict[str, np.dtype[Any]] = {
    "engine": ENGINE,  # ENGINE[engine]
    "engine_of": np.dtype("int32"),  # int32[input port]
    "active": np.dtype("uint64"),  # bit per engine that has something to do
    "deep": DEEP,  # DEEP[engine], if the depth is 5 or more
    "mshr": MSHR,  # MSHR[engine, mshr]
    "line": LINE,  # LINE[engine, set, way]
    "vc_key": np.dtype("int32"),  # int32[input VC]: key of its lookup under way
    "key_row": np.dtype("int32"),  # int32[key, way or 1]: row of the cache
    "row": np.dtype("uint8"),  # uint8[router, address]: the TCAM has a row (only if `limited`)
    "wake_event": np.dtype("int32"),  # int32[wheel, engine]: engines whose TCAM answers
    "wake_events": np.dtype("int32"),
    "key": np.dtype("int32"),  # int32[router, address]: number of the key (only if `reduced`)
    "stages": SECOND,  # SECOND[engine], of a second level
    "requests": np.dtype("uint8"),  # uint8[engine, register]: R of a second level, MSHRs, NO_VC: none
    "results": np.dtype("uint8"),  # uint8[engine, mshr]: G of a second level
    "stack_head": np.dtype("int64"),  # reference_stack.StackArrays; a slot is (engine, key)
    "stack_tail": np.dtype("int64"),
    "stack_held": np.dtype("int64"),
    "stack_newer": np.dtype("int32"),
    "stack_older": np.dtype("int32"),
    "stack_status": np.dtype("uint8"),
}

LOOKUPS = np.dtype([(name, "i8") for name in (*_SETTINGS, *LOOKUP_ARRAYS)])
#: what kernels call a record of `LOOKUPS`
Lookups = Any

_read_lookups = record_reader(constant_record(LOOKUPS, LOOKUPS.names or ()))
_read_engine = record_reader(numba.from_dtype(ENGINE))
_read_deep = record_reader(numba.from_dtype(DEEP))
_read_second = record_reader(numba.from_dtype(SECOND))
_read_mshr = record_reader(numba.from_dtype(MSHR))
_read_line = record_reader(numba.from_dtype(LINE))


@inlined
def lookups_of(net: Any) -> Any:
    """Engines of the network (only if ``net.lookup`` is not 0)."""
    return _read_lookups(net.lookup, 0)


@inlined
def engine_at(lookups: Lookups, e: int) -> Any:
    """Engine by its number in the network."""
    return _read_engine(lookups.engine, e)


@inlined
def deep_at(lookups: Lookups, e: int) -> Any:
    """Return what deep engine `e` has besides."""
    return _read_deep(lookups.deep, e)


@inlined
def second_of(lookups: Lookups) -> Any:
    """Return the lines and stages of the second level (only if ``lookups.second`` is not 0)."""
    return _read_lookups(lookups.second, 0)


@inlined
def stages_at(second: Lookups, e: int) -> Any:
    """Stages of the second level of engine `e`."""
    return _read_second(second.stages, e)


@inlined
def mshr_at(lookups: Lookups, e: int, i: int) -> Any:
    """MSHR `i` of engine `e`."""
    return _read_mshr(lookups.mshr, e * lookups.mshrs + i)


@inlined
def line_at(lookups: Lookups, line: int) -> Any:
    """Line by its number (engine · sets + row) · ways + way."""
    return _read_line(lookups.line, line)


@inner
def ask_route(net: Any, port: int, v: int) -> None:
    """VC `v` of input port `port` is in RC from this cycle on and wants to ask its engine."""
    lookups = lookups_of(net)
    e = int64(int32s(lookups.engine_of)[port])
    engine = engine_at(lookups, e)
    engine.asking |= bit_of(port * net.vcs + v - int64(engine.first_vc))
    words(lookups.active)[e >> 6] |= bit_of(e)


@inner
def ask_next_route(net: Any, port: int, number: int) -> None:
    """VC `number` of a router is in VA from this cycle on and wants to ask the engine of output port `port`."""
    lookups = lookups_of(net)
    engine_at(lookups, port).asking |= bit_of(number)
    words(lookups.active)[port >> 6] |= bit_of(port)


@inner
def address_number(lookups: Lookups, packet: Any) -> int:
    """Return the number of the address that the head of a packet names."""
    if lookups.paths == 1:
        return int64(packet.dst)
    return int64(packet.dst) * lookups.paths + int64(packet.phase) // lookups.layers


@inner
def row_there(net: Any, router: int, packet: Any) -> bool:
    """Whether the TCAMs for `router` have a row for the address of a packet."""
    lookups = lookups_of(net)
    if lookups.limited == 0:
        return True
    return int8s(lookups.row)[router * lookups.addresses + address_number(lookups, packet)] != 0


@inner
def asking_vc(net: Any, lookups: Lookups, e: int) -> int:
    """VC of engine `e` whose turn it is; some VC asks."""
    engine = engine_at(lookups, e)
    if lookups.members == 1:
        return first_at_or_after(engine.asking, int64(engine.ask_pointers))
    member = int64(engine.member_pointer)
    while True:
        first = member * net.vcs
        mine = (engine.asking >> uint64(first)) & (bit_of(net.vcs) - uint64(1))
        if mine != uint64(0):
            return first + first_at_or_after(mine, int64((engine.ask_pointers >> uint32(8 * member)) & uint32(255)))
        member = (member + 1) & (lookups.members - 1)


@inner
def accept_vc(net: Any, lookups: Lookups, e: int, v: int) -> None:
    """Engine `e` accepts the request of VC `v`."""
    engine = engine_at(lookups, e)
    engine.asking &= ~bit_of(v)
    member = v // net.vcs if lookups.members > 1 else 0
    after = v - member * net.vcs + 1
    askers = net.vcs if net.lookahead == 0 else 64  # beyond the last VC the choice begins anew as well
    shift = uint32(8 * member)
    rest = engine.ask_pointers & ~(uint32(255) << shift)
    engine.ask_pointers = rest | uint32(after if after < askers else 0) << shift
    engine.member_pointer = uint8((member + 1) & (lookups.members - 1))


#: ``(address, net, cycle) -> 0``: all engines go through a cycle
step_lookups = function_at(int64(NET_RECORD, int64))


class LookupState:
    """The engines of a network: one for every `members` input ports of a router, connected or not.

    Attributes
    ----------
    arrays : dict of ndarray
        By the names of `lookup_state.LOOKUP_ARRAYS`.
    record : ndarray
        ``LOOKUPS[1]``: settings and the addresses of the arrays.
    second : LookupState, optional
        Lines and stages of the second level, if there is one; its ``engine`` counts hits, fills and evictions.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.record = np.zeros(1, LOOKUPS)
        self.second: LookupState | None = None

    def put(self, name: str, array: NDArray[Any]) -> None:
        """Set the array `name`."""
        if array.dtype != LOOKUP_ARRAYS[name] or not array.flags.c_contiguous:
            raise TypeError(f"array {name} must be contiguous {LOOKUP_ARRAYS[name]}, not {array.dtype}")
        self.arrays[name] = array
        self.record[name] = array.ctypes.data

    def give_up(self, number: int) -> None:
        """Drop all that is under way in an engine, in both levels; its pointers stay as they are."""
        engine = self.arrays["engine"]
        for name in ("used", "issue", "secondary", "resolved", "done", "queued", "queue_head"):
            engine[name][number] = 0
        engine["c_kind"][number], engine["a0"][number], engine["a1"][number] = NOTHING, NO_VC, NO_VC
        engine["in_c"][number] = engine["wake"][number] = -1
        empty_deep(self.arrays["deep"][number : number + 1])  # none of shallow engines
        if self.second is not None:
            self.second.empty_stages(number)

    def empty_stages(self, number: int | None = None) -> None:
        """Drop what is under way in the second level of an engine, by default of all; `self` is a second level."""
        chosen = slice(None) if number is None else number
        stages = self.arrays["stages"]
        for name in SECOND.names or ():
            stages[name][chosen] = NO_VC if name in {"f", "ask", "answer", "late"} else 0
        self.arrays["requests"].reshape(len(stages), -1)[chosen] = NO_VC

    @property
    def counts(self) -> dict[str, NDArray[np.int64]]:
        """Counts since the last `reset_counts`: int64[engine] by name."""
        return {name: self.arrays["engine"][name].copy() for name in COUNTS}

    def reset_counts(self) -> None:
        """Count from zero; what the caches hold and have held stays."""
        for name in COUNTS:
            self.arrays["engine"][name] = 0
        if self.second is not None:
            self.second.reset_counts()

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays; pages that were never used take no memory."""
        return sum(array.nbytes for array in self.arrays.values()) + (self.second.nbytes if self.second else 0)
