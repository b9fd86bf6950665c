"""Bench of `hw.rules.rule_cache`: lookups among changes of rules, and what the golden rule cache does in every cycle.

Beside the cycles, every answer is compared with the longest prefix that matched when its lookup was accepted.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from hopforge.hw.rules.rule_cache import RuleCache
from hopforge.model.lookup.rules.rule_cache import Request, RowUpdate, RuleCacheOutputs
from hopforge.model.lookup.rules.rule_cache import RuleCache as GoldenRuleCache
from hopforge.model.lookup.rules.rule_cache_params import RuleCacheParams
from hopforge.sim.drive.replay import WORD_BITS, Bench, Output, Replay, as_words

__all__ = ["RuleCacheRun", "RuleCacheTraffic", "rule_cache_bench", "rule_cache_run"]

_INPUTS = (
    "req_valid", "req_id", "req_address", "update_valid", "update_flush", "update_rule", "update_row", "update_value",
    "update_length", "update_output",
)  # fmt: skip
_GATED = ("resp_id", "resp_hit", "resp_match", "resp_output")
_OUTPUTS = tuple(Output(name, "resp_valid" if name in _GATED else None) for name in RuleCacheOutputs._fields)
_PHASE_CYCLES = 60
_Prefix = tuple[int, int]  # value and length


@dataclass(frozen=True, kw_only=True)
class RuleCacheTraffic:
    """What is asked and changed.

    Parameters
    ----------
    lookups : int
        That are accepted.
    seed : int
        Of every draw.
    updates : float
        Chance in a cycle that an update is offered while there are some: it is nothing, this or often, for
        60 cycles each.
    """

    lookups: int
    seed: int
    updates: float = 0.02


@dataclass
class RuleCacheRun:
    """A recorded run.

    Attributes
    ----------
    replay : Replay
        Inputs and outputs.
    counts : Counter
        lookups, hits, fills, evictions, drops, flushes, refused, and updates that insert, remove or change a rule.
    """

    replay: Replay
    counts: Counter[str] = field(default_factory=Counter)


class _Oracle:
    """The longest prefix that matches, in plain Python, and what an update does to the rows."""

    def __init__(self, params: RuleCacheParams) -> None:
        self.params = params
        self.rows: dict[int, tuple[_Prefix, int]] = {}

    def answer(self, address: int) -> int | None:
        """Return the output for an address; None: no prefix matches."""
        best: tuple[int, int, int] | None = None
        for row, ((value, length), output) in self.rows.items():
            if (address ^ value) >> (self.params.address_bits - length) == 0:
                best = max(best or (-1, 0, 0), (length, -row, output))
        return None if best is None else best[2]

    def update(self, update: RowUpdate) -> str:
        """Do it, and return what it was."""
        there = self.rows.get(update.row)
        if update.flush:
            return "flushes"
        if not update.rule:
            return "removals" if self.rows.pop(update.row, None) else "refused"
        p = self.params
        if update.row >= p.rows or update.length > p.address_bits:
            return "refused"
        free = p.address_bits - update.length
        prefix = (update.value >> free << free, update.length)
        if there and there[0] != prefix:
            return "refused"
        self.rows[update.row] = (prefix, update.output)
        return "changes" if there else "insertions"


class _Draws:
    """Rates that change, prefixes inside each other, and addresses near them."""

    def __init__(self, params: RuleCacheParams, traffic: RuleCacheTraffic, oracle: _Oracle) -> None:
        self.params, self.traffic, self.oracle = params, traffic, oracle
        self.rng = np.random.default_rng(traffic.seed)
        self.pool = self._prefixes(2 * min(params.rows, 64) + 4)
        self.addresses = [0]
        self.request_rate = self.update_rate = 1.0

    def below(self, limit: int) -> int:
        if limit > 1 << WORD_BITS - 2:  # a power of two
            return int.from_bytes(self.rng.bytes(16)) & (limit - 1)
        return int(self.rng.integers(limit))

    def _prefixes(self, count: int) -> list[_Prefix]:
        """Return prefixes; half of them lie near an earlier one."""
        width = self.params.address_bits
        found: list[_Prefix] = [(0, 0)]
        for _ in range(count):
            length = self.below(width + 1)
            value = self.below(1 << width)
            if self.rng.random() < 0.7:
                base, shorter = found[self.below(len(found))]
                length = min(width, shorter + self.below(4))
                value = base ^ self.below(1 << (width - shorter)) if shorter < width else base
            free = width - length
            found.append((value >> free << free, length))
        return found

    def next_phase(self) -> None:
        """Draw rates, and the addresses that are asked for meanwhile."""
        self.request_rate = float(self.rng.choice([0.3, 0.9, 1.0]))
        self.update_rate = float(self.rng.choice([0.0, self.traffic.updates, 0.3]))
        near = [self.pool[self.below(len(self.pool))] for _ in range(8)]
        wanted = int(self.rng.choice([1, 2, 4])) * self.params.entries + 1
        self.addresses = [self._address(near[self.below(len(near))]) for _ in range(wanted)]

    def _address(self, prefix: _Prefix) -> int:
        """Return an address in a prefix, or one that differs from it in one bit."""
        width = self.params.address_bits
        inside = prefix[0] | self.below(1 << (width - prefix[1]))
        return inside ^ (1 << self.below(width)) if self.rng.random() < 0.2 else inside

    def request(self, number: int) -> Request | None:
        """Return what is asked in a cycle, if anything."""
        if self.rng.random() >= self.request_rate:
            return None
        return Request(number & ((1 << self.params.id_bits) - 1), self.addresses[self.below(len(self.addresses))])

    def update(self) -> RowUpdate | None:
        """Return what is changed in a cycle, if anything; most updates are allowed."""
        if self.rng.random() >= self.update_rate:
            return None
        p, rows = self.params, self.oracle.rows
        output, kind = self.below(1 << p.output_bits), self.rng.random()
        value, length = self.pool[self.below(len(self.pool))]
        if kind < 0.04:
            return RowUpdate(flush=1, row=self.below(p.rows), rule=1, value=value, length=length)
        if kind < 0.12:  # most are refused
            return RowUpdate(
                self.below(1 << p.row_bits), self.below(2), self.below(1 << p.address_bits),
                self.below(1 << p.length_bits), output,
            )  # fmt: skip
        free = [row for row in range(p.rows) if row not in rows]
        if free and (kind < 0.5 or not rows):
            noise = self.below(1 << (p.address_bits - length))  # of no meaning
            return RowUpdate(free[self.below(len(free))], 1, value | noise, length, output)
        row = sorted(rows)[self.below(len(rows))]
        (value, length), _ = rows[row]
        return RowUpdate(row, int(kind >= 0.7), value, length, output)


def _words(params: RuleCacheParams, address: int) -> list[int]:
    """Return the words of an address, the lowest first."""
    words = -(-params.address_bits // WORD_BITS)
    return [address >> WORD_BITS * place & (1 << WORD_BITS) - 1 for place in range(words)]


def _inputs(params: RuleCacheParams) -> tuple[str, ...]:
    """Return the columns of the inputs: an address of several words has as many."""
    wide = ("req_address", "update_value")
    return tuple(name for name in _INPUTS for _ in range(len(_words(params, 0)) if name in wide else 1))


def rule_cache_run(params: RuleCacheParams, traffic: RuleCacheTraffic) -> RuleCacheRun:
    """Record a run of the golden rule cache, until all lookups are answered.

    Raises
    ------
    AssertionError
        The golden rule cache gives an answer that is not that of the table at the moment of its lookup, or none.
    """
    golden, oracle = GoldenRuleCache(params), _Oracle(params)
    draws = _Draws(params, traffic, oracle)
    counts: Counter[str] = Counter()
    waiting: dict[int, tuple[int, int | None]] = {}  # cycle in which a lookup was accepted -> its number and answer
    driven, expected = [], []
    cycle, left = 0, traffic.lookups
    while left or waiting or cycle % _PHASE_CYCLES:
        if cycle % _PHASE_CYCLES == 0:
            draws.next_phase()
        request, update = draws.request(counts["lookups"]) if left else None, draws.update()
        out = golden.step(request, update)
        if update is not None and out.update_ready:
            counts[oracle.update(update)] += 1
        if request is not None and out.req_ready:
            waiting[cycle] = (request.id, oracle.answer(request.address))
            counts["lookups"] += 1
            left -= 1
        if out.resp_valid:
            at = cycle - 2 - (0 if out.resp_hit else params.tcam_cycles)
            told = out.resp_id, out.resp_output if out.resp_match else None
            right = waiting.pop(at)
            assert told == right, f"cycle {cycle}: {told} instead of {right}"
        for name, event in (("hits", "resp_hit"), ("fills", "filled"), ("evictions", "evicted"), ("drops", "dropped")):
            counts[name] += getattr(out, event)
        row = update or RowUpdate()
        number, address = request or Request(0, 0)
        driven.append([
            int(request is not None), number, *_words(params, address), int(update is not None), row.flush, row.rule,
            row.row, *_words(params, row.value), row.length, row.output,
        ])  # fmt: skip
        expected.append(list(out))
        cycle += 1
    replay = Replay(_inputs(params), _OUTPUTS, as_words(driven), as_words(expected))
    return RuleCacheRun(replay, counts)


def rule_cache_bench(params: RuleCacheParams, traffic: RuleCacheTraffic) -> Bench:
    """Return the bench of a rule cache."""
    return Bench("rule_cache", RuleCache(params), rule_cache_run(params, traffic).replay)
