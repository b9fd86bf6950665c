"""A fully associative LRU cache with prefetch packets and refill, in time: golden model.

Written from docs/definitions/prefetch.md.
"""

from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import Literal

__all__ = ["SequenceDetector", "run_assisted"]

TABLE_SOURCES = 16
CONFIDENT = 2
Eject = Literal["hard", "soft"]


class SequenceDetector:
    """Finds senders whose destinations follow each other.

    Parameters
    ----------
    ranks : int
        How many there are.
    """

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._seen: OrderedDict[int, tuple[int, int, int]] = OrderedDict()  # last destination, shift and xor counters

    def see(self, source: int, target: int) -> tuple[int, "Prediction | None"]:
        """Note a look-up; return the destination before, -1 without, and what follows if that is known."""
        before = self._seen.pop(source, None)
        if before is None:
            if len(self._seen) == TABLE_SOURCES:
                self._seen.popitem(last=False)
            self._seen[source] = target, 0, 0
            return -1, None
        last, shift, xor = before
        if target == last:
            self._seen[source] = before
            return last, None
        n = self._ranks
        stepped = target == (last + 1) % n or ((last + 1) % n == source and target == (last + 2) % n)
        shift = shift + 1 if stepped else 0
        xor = xor + 1 if source ^ target == (source ^ last) + 1 else 0
        self._seen[source] = target, shift, xor
        if max(shift, xor) < CONFIDENT:
            return last, None
        return last, Prediction(source, target, n, "shift" if shift >= xor else "xor")


class Prediction:
    """What a source will ask for next."""

    def __init__(self, source: int, target: int, ranks: int, kind: str) -> None:
        self._source, self._target, self._ranks, self._kind = source, target, ranks, kind

    def after(self, steps: int) -> int:
        """Return the destination `steps` further, -1 behind the end of the sequence."""
        s, d, n = self._source, self._target, self._ranks
        if self._kind == "shift":
            return (d + steps) % n if steps <= (s - d) % n - 1 else -1
        step = (s ^ d) + steps
        width = 1 << (n - 1).bit_length()
        return s ^ step if step < width and s ^ step < n else -1


class _Cache:
    def __init__(self, size: int, fill: int) -> None:
        self.size, self.fill = size, fill
        self.lines: OrderedDict[int, bool] = OrderedDict()  # key → prefetched and not used yet; the oldest first
        self.flying: OrderedDict[int, tuple[int, bool]] = OrderedDict()  # key → when it comes, whether a prefetch
        self.rivals: list[tuple[int, int]] = []  # prefetched key, evicted key
        self.n: Counter[str] = Counter()

    def land(self, now: float) -> None:
        while self.flying and next(iter(self.flying.values()))[0] <= now:
            key, (_, ahead) = self.flying.popitem(last=False)
            self.write(key, ahead)

    def write(self, key: int, ahead: bool) -> None:
        if len(self.lines) == self.size:
            victim, unused = self.lines.popitem(last=False)
            self.n["unused"] += unused
            if ahead:
                self.rivals.append((key, victim))
        self.lines[key] = ahead
        self.n["fills"] += ahead

    def read(self, key: int, now: int, ahead: bool) -> None:
        self.n["reads"] += 1
        if self.fill:
            self.flying[key] = now + self.fill, ahead
        else:
            self.write(key, ahead)

    def prefetch(self, key: int, now: int) -> None:
        self.n["issued"] += 1
        if key in self.lines or key in self.flying:
            self.n["redundant"] += 1
            if key in self.lines:
                self.lines.move_to_end(key)
        else:
            self.read(key, now, ahead=True)

    def demand(self, key: int, now: int) -> None:
        self.n["harmful"] += sum(victim == key for _, victim in self.rivals)
        self.rivals = [pair for pair in self.rivals if key not in pair]
        self.n["demands"] += 1
        if key in self.lines:
            self.n["hits"] += 1
            self.n["useful"] += self.lines[key]
            self.lines[key] = False
            self.lines.move_to_end(key)
            return
        self.n["misses"] += 1
        if key in self.flying:
            due, ahead = self.flying[key]
            self.n["late" if ahead else "merged"] += 1
            self.n["wait"] += due - now
            self.flying[key] = due, False
        else:
            self.n["wait"] += self.fill
            self.read(key, now, ahead=False)

    def eject(self, key: int, how: Eject) -> None:
        if key not in self.lines:
            return
        self.n["ejected"] += 1
        if how == "hard":
            self.n["unused"] += self.lines.pop(key)
        else:
            self.lines.move_to_end(key, last=False)


def run_assisted(
    demands: Sequence[tuple[int, int]], times: Sequence[int] | None = None, *, size: int, fill: int = 0,
    distance: int | None = None, ranks: int = 0, lead: int = 0, eject: Eject | None = None,
) -> Counter[str]:
    """Run a stream through the cache.

    Parameters
    ----------
    demands : sequence of (source, key)
        The look-ups.
    times : sequence of int, optional
        Cycle of each, ascending; default: one a cycle.
    size : int
        Lines.
    fill : int
        Cycles of a TCAM read.
    distance : int, optional
        Cycles that a prefetch packet comes ahead of each demand.
    ranks : int
        Ranks of the detector; 0: there is none.
    lead : int
        How far ahead the detector refills; 0: not at all.
    eject : {"hard", "soft"}, optional
        How it ejects.

    Returns
    -------
    Counter
        demands, hits, misses, late, merged, wait, issued, redundant, fills, useful, unused, harmful, ejected, reads.
    """
    cycles = list(range(len(demands))) if times is None else list(times)
    cache, detector = _Cache(size, fill), SequenceDetector(ranks) if ranks else None
    events = [(now, 1, which) for which, now in enumerate(cycles)]
    if distance is not None:
        events += [(max(0, now - distance), 0, which) for which, now in enumerate(cycles)]
    for now, kind, which in sorted(events):
        source, key = demands[which]
        cache.land(now)
        if kind == 0:
            cache.prefetch(key, now)
            continue
        cache.demand(key, now)
        last, known = (-1, None) if detector is None else detector.see(source, key)
        if known is None:
            continue
        if eject is not None:
            cache.eject(last, eject)
        coming = known.after(lead) if lead else -1
        if coming >= 0:
            cache.prefetch(coming, now)
    cache.land(float("inf"))
    cache.n["unused"] += sum(cache.lines.values())
    return cache.n
