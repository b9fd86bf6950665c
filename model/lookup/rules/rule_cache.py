"""The golden rule cache: what the hardware does in every cycle (docs/definitions/rule-caches.md, *In hardware*)."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

from hopforge.model.lookup.rules.cube_policies import CUBE_POLICIES, Cube
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
        self.lines: OrderedDict[Cube, int | None] = OrderedDict()  # least recently used first
        self.now = 0
        self._operation: Request | RowUpdate | None = None  # in C, unless a FILL is
        self._misses: list[_Miss] = []
        self._updated = -2  # cycle in which the last update that changed something was in C
        self._outputs: dict[str, int] = {}

    def step(self, request: Request | None, update: RowUpdate | None) -> RuleCacheOutputs:
        """Return the outputs of this cycle, and go on to the next one.

        Parameters
        ----------
        request, update : Request, RowUpdate or None
            What is offered at the ports.
        """
        shown = self._outputs
        self._outputs = self._act()
        fill_next = any(miss.due == self.now + 1 for miss in self._misses)
        update_ready = not fill_next and self.now - self._updated > 1
        request_ready = not fill_next and not (update_ready and update is not None)
        self._operation = update if update_ready and update is not None else request if request_ready else None
        self.now += 1
        return RuleCacheOutputs(int(request_ready), int(update_ready), **shown)

    def _act(self) -> dict[str, int]:
        """Do what is in C, and return the outputs of the next cycle."""
        if self._misses and self._misses[0].due == self.now:
            return self._fill(self._misses.pop(0))
        if isinstance(self._operation, Request):
            return self._look_up(self._operation)
        if isinstance(self._operation, RowUpdate):
            return self._update(self._operation)
        return {}

    def _answer(self, number: int, out: int | None, hit: bool) -> dict[str, int]:
        return {
            "resp_valid": 1, "resp_id": number, "resp_hit": int(hit), "resp_match": int(out is not None),
            "resp_output": out or 0,
        }  # fmt: skip

    def _look_up(self, request: Request) -> dict[str, int]:
        found = [cube for cube in self.lines if request.address & cube[1] == cube[0]]
        assert len(found) <= 1, "two lines hold an address"
        if found:
            self.lines.move_to_end(found[0])
            return self._answer(request.id, self.lines[found[0]], hit=True)
        rule = self.table.match(request.address)
        cube = CUBE_POLICIES[self.params.policy](self.table, request.address, rule)
        out = None if rule is None else rule.out
        self._misses.append(_Miss(self.now + self.params.tcam_cycles, request.id, out, cube))
        return {}

    def _fill(self, miss: _Miss) -> dict[str, int]:
        answer = self._answer(miss.id, miss.out, hit=False)
        if miss.stale:
            return {**answer, "dropped": 1}
        value, mask = miss.cube
        if any(overlap(value, mask, *line) and line[1] & ~mask == 0 for line in self.lines):
            return answer  # a line holds the whole cube
        for line in [line for line in self.lines if overlap(value, mask, *line)]:
            del self.lines[line]
        full = len(self.lines) == self.params.entries
        if full:
            self.lines.popitem(last=False)
        self.lines[miss.cube] = miss.out
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
        for line in [line for line in self.lines if overlap(*changed, *line)]:
            del self.lines[line]
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
