"""The golden rule cache: what the hardware does in every cycle (docs/definitions/rule-caches.md, *In hardware*)."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

from hopforge.model.lookup.rules.cube_policies import CUBE_POLICIES, Cube
from hopforge.model.lookup.rules.cube_sets import CubeSets
from hopforge.model.lookup.rules.cubes import overlap, prefix_mask
from hopforge.model.lookup.rules.rule_cache_params import RuleCacheParams
from hopforge.model.lookup.rules.rule_table import Rule, RuleTable, Update

__all__ = ["Request", "RowUpdate", "RuleCache", "RuleCacheOutputs"]


class Request(NamedTuple):
    """A lookup: its number and its address."""

    id: int
    address: int


class RowUpdate(NamedTuple):
    """An update of a row, or a flush.

    Attributes
    ----------
    row : int
        Number of the row, and of its rule.
    rule : int
        1: a rule is written, 0: the row's is removed.
    value, length, output : int
        The prefix, of whose value only the highest `length` bits matter, and its answer.
    flush : int
        1: a flush; the rest does not matter.
    """

    row: int = 0
    rule: int = 0
    value: int = 0
    length: int = 0
    output: int = 0
    flush: int = 0


class RuleCacheOutputs(NamedTuple):
    """All outputs of a cycle, in the order of the ports."""

    req_ready: int
    update_ready: int
    resp_valid: int = 0
    resp_id: int = 0
    resp_hit: int = 0
    resp_match: int = 0
    resp_output: int = 0
    refused: int = 0
    filled: int = 0
    evicted: int = 0
    dropped: int = 0


@dataclass(slots=True)
class _Miss:
    """A miss on its way: when it is in C again, its number, the answer, and the line, if it is still right."""

    due: int
    id: int
    out: int | None
    cube: Cube
    stale: bool = False


@dataclass(slots=True)
class _Sweep:
    """A walk through the sets: lines that overlap the cube leave one set after the other; `place` is the next one."""

    cube: Cube
    place: int = 0


class _SweepStep:
    """A set of a walk, in C."""


class RuleCache:
    """A cache before a table of prefix rules; rule i is that of row i.

    Parameters
    ----------
    params : RuleCacheParams
        Sizes and policies.
    """

    def __init__(self, params: RuleCacheParams) -> None:
        self.params = params
        self.table = RuleTable([], params.address_bits)
        self.sets = CubeSets(params.address_bits, params.hashed_bits, params.sets)
        self._lines: list[OrderedDict[Cube, int | None]] = [  # of each set, least recently used first
            OrderedDict() for _ in range(params.sets)
        ]
        self.now = 0
        self._sweep = _Sweep((0, 0)) if params.sets > 1 else None  # memories wake up with anything
        self._operation: Request | RowUpdate | _SweepStep | None = None  # in C, unless a FILL is
        self._misses: list[_Miss] = []
        self._updated = -2  # cycle in which the last update that changed something was in C
        self._outputs: dict[str, int] = {}

    @property
    def lines(self) -> dict[Cube, int | None]:
        """All lines, with their answers; those that a walk has yet to remove among them."""
        return {cube: out for held in self._lines for cube, out in held.items()}

    def step(self, request: Request | None, update: RowUpdate | None) -> RuleCacheOutputs:
        """Return the outputs of this cycle, and go on to the next one.

        Parameters
        ----------
        request, update : Request, RowUpdate or None
            What is offered at the ports.
        """
        shown, sweeping, in_c = self._outputs, self._sweep is not None, self._operation
        self._outputs = self._act()
        fill_next = self._is_fill(self.now + 1)
        turn = sweeping and not fill_next and not isinstance(in_c, _SweepStep)
        update_ready = not fill_next and not sweeping and self.now - self._updated > 1
        request_ready = not fill_next and not turn and not (update_ready and update is not None)
        self._operation = update if update_ready and update is not None else request if request_ready else None
        if sweeping and self._sweep is not None and not fill_next and self._operation is None:
            self._operation = _SweepStep()
        self.now += 1
        return RuleCacheOutputs(int(request_ready), int(update_ready), **shown)

    def _is_fill(self, cycle: int) -> bool:
        return any(miss.due == cycle for miss in self._misses)

    def _act(self) -> dict[str, int]:
        """Do what is in C, and return the outputs of the next cycle."""
        if self._misses and self._misses[0].due == self.now:
            return self._fill(self._misses.pop(0))
        if isinstance(self._operation, Request):
            return self._look_up(self._operation)
        if isinstance(self._operation, RowUpdate):
            return self._update(self._operation)
        if isinstance(self._operation, _SweepStep):
            self._step_sweep()
        return {}

    def _is_pending(self, address: int) -> bool:
        """Tell whether a walk has yet to remove what is cached of an address."""
        sweep = self._sweep
        if sweep is None or not overlap(address, self.table.full_mask, *sweep.cube):
            return False
        return self.sets.number(address) >= sweep.place

    def _step_sweep(self) -> None:
        assert self._sweep is not None
        self._remove(self._lines[self._sweep.place], self._sweep.cube)
        self._sweep.place += 1
        if self._sweep.place == self.params.sets:
            self._sweep = None

    @staticmethod
    def _remove(held: OrderedDict[Cube, int | None], changed: Cube) -> None:
        for line in [line for line in held if overlap(*changed, *line)]:
            del held[line]

    def _answer(self, number: int, out: int | None, hit: bool) -> dict[str, int]:
        return {
            "resp_valid": 1, "resp_id": number, "resp_hit": int(hit), "resp_match": int(out is not None),
            "resp_output": out or 0,
        }  # fmt: skip

    def _look_up(self, request: Request) -> dict[str, int]:
        held = self._lines[self.sets.number(request.address)]
        found = [cube for cube in held if request.address & cube[1] == cube[0]]
        assert len(found) <= 1, "two lines hold an address"
        if found and not self._is_pending(request.address):
            held.move_to_end(found[0])
            return self._answer(request.id, held[found[0]], hit=True)
        rule = self.table.match(request.address)
        cube = CUBE_POLICIES[self.params.policy](self.table, request.address, rule)
        cube = self.sets.cut(cube, request.address)
        out = None if rule is None else rule.out
        self._misses.append(_Miss(self.now + self.params.tcam_cycles, request.id, out, cube))
        return {}

    def _fill(self, miss: _Miss) -> dict[str, int]:
        answer = self._answer(miss.id, miss.out, hit=False)
        value, mask = miss.cube
        if miss.stale or self._is_pending(value):
            return {**answer, "dropped": 1}
        held = self._lines[self.sets.number(value)]
        if any(overlap(value, mask, *line) and line[1] & ~mask == 0 for line in held):
            return answer  # a line holds the whole cube
        self._remove(held, miss.cube)
        full = len(held) == self.params.entries // self.params.sets
        if full:
            held.popitem(last=False)
        held[miss.cube] = miss.out
        return {**answer, "filled": 1, "evicted": int(full)}

    def _update(self, update: RowUpdate) -> dict[str, int]:
        changed: Cube | None = (0, 0)
        if not update.flush:
            changed = self._change(update)
            if changed is None:
                return {"refused": 1}
            if self.params.invalidation == "flush":
                changed = (0, 0)
        assert changed is not None
        self._updated = self.now
        if self.params.sets > 1 and self.sets.floor & ~changed[1]:
            self._sweep = _Sweep(changed)
        else:
            self._remove(self._lines[self.sets.number(changed[0])], changed)
        for miss in self._misses:
            miss.stale |= overlap(*changed, *miss.cube)
        return {}

    def _change(self, update: RowUpdate) -> Cube | None:
        """Change the table, and return the prefix of the rule; None: refused."""
        there: Rule | None = None
        if update.row in self.table:
            there = self.table[update.row]
        if not update.rule:
            if there is None:
                return None
            self.table.apply(Update("del", there))
            return there.value, there.mask
        if update.row >= self.params.rows or update.length > self.params.address_bits:
            return None
        mask = prefix_mask(update.length, self.params.address_bits)
        rule = Rule(update.row, update.value & mask, mask, update.length, update.output)
        if there is None:
            self.table.apply(Update("add", rule))
        elif (there.value, there.mask) == (rule.value, rule.mask):
            self.table.apply(Update("mod", rule))
        else:
            return None
        return rule.value, rule.mask
