"""A workload through caches that get help: prefetch packets of the hosts, refill by the switches.

Definition: docs/definitions/prefetch.md. Caches do not depend on each other: what reaches each is gathered first, with
what its detector says, then the caches are run one after the other.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.lookup import REPLAYED_POLICIES
from hopforge.model.errors import UserError
from hopforge.model.free_memory import refuse_beyond_memory
from hopforge.model.kernel.compile import kernel
from hopforge.model.lookup.assisted_cache import (
    ASSISTED,
    HARD,
    SOFT,
    Operations,
    detect,
    packets_ahead,
    run_operations,
)
from hopforge.model.lookup.belady import KeyStreams, optimal_misses
from hopforge.sim.hits.expected_memory import refuse_beyond_expected
from hopforge.sim.hits.replay import PIECE_PACKETS, Hosts, Replay, Ways
from hopforge.sim.hits.replay_result import ReplayResult
from hopforge.sim.traffic.packet_stream import PacketStream

__all__ = ["HELP_COUNTS", "Assisted", "Help", "HelpError", "messages_ahead", "run_assisted_packets", "run_help"]

HELP_COUNTS = (
    "reads", "issued", "redundant", "fills", "useful", "unused", "harmful", "late", "merged", "ejected",
    "waited_cycles",
)  # fmt: skip
"""What is counted beside the counts of every replay."""

_BYTES = 40  # of an operation, while they are gathered and run
#: of a packet, and of each of its lookups, at the peak: measured on meshes of 2, 16 and 64 hosts (2026)
_PACKET_BYTES, _LOOKUP_BYTES = 50, {"prefetch": 120, "prefetch_cycles": 150, "refill": 85}


class HelpError(UserError, ValueError):
    """Help that does not go with a configuration."""


@dataclass(frozen=True)
class Help:
    """What helps the caches; None or 0: nothing does.

    Attributes
    ----------
    prefetch : int, optional
        Messages that an empty packet of a host goes ahead.
    prefetch_cycles : int, optional
        Instead: cycles that it comes to each cache ahead of the message.
    refill : int, optional
        How far ahead a detector at each input refills, 0: it only ejects.
    eject : {"hard", "soft"}, optional
        How it ejects the key that a sender has left.
    tcam_cycles : int
        Cycles of a TCAM read; a cache gets one packet a cycle.
    """

    prefetch: int | None = None
    prefetch_cycles: int | None = None
    refill: int | None = None
    eject: str | None = None
    tcam_cycles: int = 0

    def __post_init__(self) -> None:
        if self.prefetch is not None and self.prefetch_cycles is not None:
            raise HelpError("--prefetch: goes a number of messages ahead; not with --prefetch-cycles")
        for name, least in (("prefetch", 1), ("prefetch_cycles", 1), ("refill", 0), ("tcam_cycles", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise HelpError(f"--{name.replace('_', '-')}: must be at least {least}, not {value}")
        if self.eject not in (None, "hard", "soft"):
            raise HelpError(f"--eject: must be hard or soft, not {self.eject}")
        if self.eject is not None and self.refill is None:
            raise HelpError("--eject: needs the detector of --refill (0: it only ejects)")
        if self.refill == 0 and self.eject is None:
            raise HelpError("--refill: 0 does nothing without --eject")

    @property
    def any(self) -> bool:
        """Whether there is any."""
        return self != Help()

    @property
    def lookup_bytes(self) -> int:
        """Bytes that each lookup takes at the peak."""
        return max((size for name, size in _LOOKUP_BYTES.items() if getattr(self, name) is not None), default=_BYTES)

    def check(self, config: Config, unmatched: bool) -> None:
        """Refuse a configuration whose caches cannot be helped.

        Raises
        ------
        HelpError
            Naming the key.
        """
        cache, behind = config.lookup.cache, "with --prefetch, --refill or --tcam-cycles"
        if not cache.enabled:
            raise HelpError(f"lookup.cache.enabled: must be true {behind}, not false")
        if cache.skewed:
            raise HelpError(f"lookup.cache.skewed: must be false {behind}, not true")
        if cache.second_level is not None:
            raise HelpError(f"lookup.cache.second_level: must be null {behind}")
        if self.eject == "soft" and cache.policy != "lru":
            raise HelpError(f"lookup.cache.policy: must be lru with --eject soft, not {cache.policy}")
        if unmatched:
            raise HelpError(f"lookup.tcam.rows: must hold all routes {behind}, not {config.lookup.tcam.rows} rows")


@dataclass(frozen=True, eq=False)
class Assisted:
    """What a replay with help counted.

    Attributes
    ----------
    result : ReplayResult
        Counts of the messages' own packets.
    help : dict of str to int64[cache]
        `HELP_COUNTS`.
    bounds : ndarray, int64[cache, 3], optional
        Misses of LRU and of the best choices without help.
    empty_packets : int
        That the hosts sent.
    """

    result: ReplayResult
    help: dict[str, NDArray[np.int64]]
    bounds: NDArray[np.int64] | None
    empty_packets: int


def messages_ahead(sources: Hosts, destinations: Hosts, ahead: int) -> tuple[Hosts, NDArray[np.bool_]]:
    """Return where the empty packet behind each packet goes (-1: there is none), and which packets begin a message.

    A message is what a host sends to another one before it sends to a third. The empty packet follows the last packet
    of a message and goes where the message `ahead` later goes.
    """
    order = np.argsort(sources, kind="stable")
    source, target = sources[order], destinations[order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(order))[: len(first)] - 1
    to = np.full(len(order), -1, np.int64)
    if ahead and ahead < len(first):
        here, there = first[:-ahead], first[ahead:]
        to[last[:-ahead]] = np.where(source[here] == source[there], target[there], -1)
    result, message = np.empty_like(to), np.empty_like(begins)
    result[order], message[order] = to, begins
    return result, message


def run_help(replay: Replay, config: Config, workload: PacketStream, wanted: Help, *, bounds: bool) -> Assisted:
    """Run a workload through the caches of `replay` with help."""
    wanted.check(config, replay.lacks_rows)
    if replay.changes_address and wanted.any:
        raise UserError(
            f"routing.spread: must be flow for help with routing caches, not {config.routing.spread}: nobody knows to "
            "which address of its destination a packet goes next"
        )
    refuse_beyond_expected(
        replay, workload, "prefetch and refill for {}", per_packet=_PACKET_BYTES, per_lookup=wanted.lookup_bytes
    )
    sources, destinations = replay.that_work(*workload.all_packets())
    to, begins = messages_ahead(sources, destinations, wanted.prefetch or 0)
    return run_assisted_packets(replay, config, (sources, destinations, to, begins), wanted, bounds=bounds)


def run_assisted_packets(
    replay: Replay, config: Config, packets: tuple[Hosts, Hosts, Hosts, NDArray[np.bool_]], wanted: Help, *,
    bounds: bool = False,
) -> Assisted:
    """Run packets: source, destination, where the empty packet behind each goes (-1: none), if it begins a message."""
    sources, destinations, to, begins = packets
    each = 1 + (to >= 0)
    index = np.repeat(np.arange(len(each)), each)
    empty = np.concatenate([np.zeros(1, np.bool_), index[1:] == index[:-1]])[: len(index)]
    source, target = sources[index], np.where(empty, to[index], destinations[index])
    gathered = _gather(replay, source, target, empty, begins[index])
    operations = _operations(replay, gathered, wanted)
    section = config.lookup.cache
    sets, count = replay.set_numbers(replay.slot_keys()), section.entries // section.ways
    counts = run_operations(
        operations, sets, set_count=count, ways=section.ways, policy=REPLAYED_POLICIES.index(section.policy),
        fill=wanted.tcam_cycles, eject={None: 0, "hard": HARD, "soft": SOFT}[wanted.eject], seed=section.random_seed,
    )  # fmt: skip
    least = None
    if bounds:
        demands = ~operations.ahead
        starts = np.concatenate([[0], np.cumsum(demands)])[operations.starts]
        streams = KeyStreams(starts, operations.numbers[demands], replay.slot_keys())
        least = optimal_misses(streams, sets, ways=section.ways, set_count=count)
    found = dict(zip(ASSISTED, counts.T.copy(), strict=True))
    return _counted(replay, len(sources), found, least, int(empty.sum()))


def _counted(
    replay: Replay, packets: int, found: dict[str, NDArray[np.int64]], least: NDArray[np.int64] | None, empty: int
) -> Assisted:
    none = np.zeros(replay.inputs.caches, np.int64)
    result = ReplayResult(
        replay.inputs, packets, packets, found["demands"], found["hits"], none, found["compulsory"],
        found["capacity"], found["conflict"], found["evictions"], none,
    )  # fmt: skip
    found["waited_cycles"] = found["wait"]
    return Assisted(result, {name: found[name] for name in HELP_COUNTS}, least, empty)


@dataclass(frozen=True, eq=False)
class _Gathered:
    """Lookups cache by cache: slot, hosts, whether of an empty packet, whether of the first packet of a message."""

    starts: NDArray[np.int64]
    slots: NDArray[np.int32]
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    empty: NDArray[np.bool_]
    begins: NDArray[np.bool_]


def _gather(
    replay: Replay, source: Hosts, target: Hosts, empty: NDArray[np.bool_], begins: NDArray[np.bool_]
) -> _Gathered:
    pieces: list[tuple[slice, Ways]] = []
    counts = np.zeros(replay.inputs.caches, np.int64)
    for start in range(0, len(source), PIECE_PACKETS):
        part = slice(start, start + PIECE_PACKETS)
        ways = replay.ways(source[part], target[part])
        _count(ways.of_packet, ways.first, ways.caches, counts)
        pieces.append((part, ways))
    starts = np.concatenate([[0], np.cumsum(counts)])
    total = int(starts[-1])
    refuse_beyond_memory(total * _BYTES, f"{total:,} lookups with help")
    found = _Gathered(
        starts, np.empty(total, np.int32), np.empty(total, np.int32), np.empty(total, np.int32),
        np.empty(total, np.bool_), np.empty(total, np.bool_),
    )  # fmt: skip
    place = starts[:-1].copy()
    for part, w in pieces:
        _scatter(
            w.of_packet, w.first, w.caches, w.slots, w.source, w.target, empty[part], begins[part], place,
            (found.slots, found.source, found.target, found.empty, found.begins),
        )  # fmt: skip
    return found


def _operations(replay: Replay, g: _Gathered, wanted: Help) -> Operations:
    """Return what reaches the caches, with what their detectors say."""
    passed = np.concatenate([[0], np.cumsum(~g.empty)])
    demands = np.flatnonzero(~g.empty)
    starts = passed[g.starts]  # of the demands
    times = passed[:-1] - np.repeat(starts[:-1], np.diff(g.starts))  # an empty packet comes before the next demand
    slots, source, target = g.slots[demands], g.source[demands].astype(np.int64), g.target[demands].astype(np.int64)
    eject, refill = np.full(len(demands), -1, np.int32), np.full(len(demands), -1, np.int32)
    if wanted.refill is not None:
        known, coming = np.zeros(len(demands), np.bool_), np.full(len(demands), -1)
        detect(starts, source, target, replay.topology.hosts, wanted.refill, known, coming)
        _previous(starts, source, slots, known, replay.topology.hosts, eject)
        guessed = np.flatnonzero(coming >= 0)
        cache = np.searchsorted(starts, guessed, side="right") - 1
        refill[guessed] = replay.slots_towards(cache, source[guessed], coming[guessed])
    if wanted.prefetch_cycles is None:
        none = np.full(len(times), -1, np.int32)
        o = Operations(g.starts, times, g.slots, g.empty, none, none.copy())
    else:
        o = packets_ahead(starts, times[demands], slots, g.begins[demands], wanted.prefetch_cycles)
    own = ~o.ahead
    o.eject[own], o.refill[own] = eject, refill
    return o


@kernel
def _count(of_packet, first, caches, counts):  # type: ignore[no-untyped-def]
    for packet in range(len(of_packet)):
        for hop in range(first[of_packet[packet]], first[of_packet[packet] + 1]):
            counts[caches[hop]] += 1


@kernel
def _scatter(of_packet, first, caches, slots, source, target, empty, begins, place, out):  # type: ignore[no-untyped-def]
    for packet in range(len(of_packet)):
        way = of_packet[packet]
        for hop in range(first[way], first[way + 1]):
            at = place[caches[hop]]
            place[caches[hop]] += 1
            out[0][at], out[1][at], out[2][at] = slots[hop], source[way], target[way]
            out[3][at], out[4][at] = empty[packet], begins[packet]


@kernel
def _previous(starts, source, slots, known, hosts, eject):  # type: ignore[no-untyped-def]
    """Write the slot that a source asked for before, where its detector is confident."""
    last = np.full(hosts, -1, np.int32)
    for cache in range(len(starts) - 1):
        for at in range(starts[cache], starts[cache + 1]):
            if known[at] and last[source[at]] != slots[at]:  # another destination may have the same key
                eject[at] = last[source[at]]
            last[source[at]] = slots[at]
        for at in range(starts[cache], starts[cache + 1]):
            last[source[at]] = -1
