"""A cache before a TCAM of prefix rules, under lookups and changes of rules."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib.data import StructLayout, View
from amaranth.lib.wiring import Component, In, Out

from hopforge.hw.parts.crc_hash import CrcHash
from hopforge.hw.parts.sram import Sram
from hopforge.hw.rules.cube_lines import CubeLines, overlaps
from hopforge.hw.rules.cube_sets import CubeSets
from hopforge.hw.rules.cube_sweep import CubeSweep
from hopforge.hw.rules.prefix_rules import PrefixRules, prefix_bits
from hopforge.model.lookup.rules.cube_sets import SET_HASH
from hopforge.model.lookup.rules.rule_cache_params import RuleCacheParams
from hopforge.model.numbers.crc import crc_matrix

__all__ = ["RuleCache"]


class RuleCache(Component):
    """Lines, the TCAM, and the pipeline through both (docs/definitions/rule-caches.md, *In hardware*).

    One operation is accepted a cycle, and in the next one it is in stage C: a lookup, an update of a row, or a flush.
    They take effect in the order in which they are accepted. A hit is answered in the second cycle after its request.
    A miss goes through the TCAM and comes to C again as a FILL, `tcam_cycles` after it was there; it is answered in the
    cycle after that, and writes a line unless an update behind it has changed a rule that shares an address with the
    line (``dropped``). Answers can't be held up, and those of hits overtake those of misses: ``resp_id`` tells them
    apart. ``ready`` is low in a cycle before a FILL, for a request also while an update is accepted, and for an update
    for two cycles after one. After reset there are no rules and no lines.

    An update writes a rule (``update_rule`` 1) or removes one (0). A rule goes to an empty row, or changes the answer
    of the same prefix. What does neither, a removal from an empty row, a row or a length that does not exist is
    refused: ``refused`` is high in the second cycle after, and nothing changes. ``update_flush`` 1: a flush, it
    empties the cache, lines in flight too.

    With sets, an update that is wider than the hashed bits starts a walk through all of them (`CubeSweep`), as reset
    does. While it is on, updates wait, and lookups may take every second turn.

    Parameters
    ----------
    params : RuleCacheParams
        Sizes and policies.
    memory : callable
        Makes the memories of lines in sets.

    Attributes
    ----------
    op, stages : View
        For proofs: what is in C, and in the stages behind it.
    """

    req_valid: Signal
    req_ready: Signal
    req_id: Signal
    req_address: Signal
    update_valid: Signal
    update_ready: Signal
    update_flush: Signal
    update_rule: Signal
    update_row: Signal
    update_value: Signal
    update_length: Signal
    update_output: Signal
    resp_valid: Signal
    resp_id: Signal
    resp_hit: Signal
    resp_match: Signal
    resp_output: Signal
    refused: Signal
    filled: Signal
    evicted: Signal
    dropped: Signal

    def __init__(self, params: RuleCacheParams, *, memory: Callable[..., Sram] = Sram) -> None:
        self.params = p = params
        super().__init__(
            {
                "req_valid": In(1),
                "req_ready": Out(1),
                "req_id": In(p.id_bits),
                "req_address": In(p.address_bits),
                "update_valid": In(1),
                "update_ready": Out(1),
                "update_flush": In(1),
                "update_rule": In(1),
                "update_row": In(p.row_bits),
                "update_value": In(p.address_bits),
                "update_length": In(p.length_bits),
                "update_output": In(p.output_bits),
                "resp_valid": Out(1),
                "resp_id": Out(p.id_bits),
                "resp_hit": Out(1),
                "resp_match": Out(1),
                "resp_output": Out(p.output_bits),
                "refused": Out(1),
                "filled": Out(1),
                "evicted": Out(1),
                "dropped": Out(1),
            }
        )
        self.lines: CubeLines | CubeSets = CubeLines(p) if p.ways is None else CubeSets(p, memory=memory)
        self.sweep = None if p.ways is None else CubeSweep(p)
        self.rules = PrefixRules(p)
        step = {} if self.sweep is None else {"step": unsigned(1)}  # a set of a walk
        layout = StructLayout(
            {
                "lookup": unsigned(1),
                "fill": unsigned(1),
                "update": unsigned(1),
                "all": unsigned(1),  # an update that removes all lines
                **step,
                "write": unsigned(1),  # one that writes a row
                "rule": unsigned(1),
                "row": unsigned(p.row_bits),
                "id": unsigned(p.id_bits),
                "value": unsigned(p.address_bits),  # address, or that of the rule
                "mask": unsigned(p.address_bits),
                "match": unsigned(1),
                "output": unsigned(p.output_bits),
            }
        )
        self.op: Any = View(layout, Signal(layout.size, name="op"))
        self.stages: list[Any] = [
            View(layout, Signal(layout.size, name=f"stage{number}")) for number in range(1, p.tcam_cycles)
        ]
        self.entering: Any = View(layout, Signal(layout.size, name="entering"))
        self.found: Any = View(layout, Signal(layout.size, name="found"))  # what leaves the third stage
        self.stale = Signal()  # of the FILL in C: an update behind it shares an address with its line
        self.allowed = Signal()  # the update at the port changes something
        #: of what is in C a walk has yet to remove the lines
        self.pending: Value = Const(0, 1) if self.sweep is None else self.sweep.pending

    def elaborate(self, platform: object) -> Module:
        """Connect the port, C and the stages of the TCAM."""
        m = Module()
        m.submodules.lines = self.lines
        m.submodules.rules = self.rules
        self._enter(m)
        self._act(m)
        self._search(m)
        if self.sweep is not None:
            self._walk(m, self.sweep)
        return m

    def _enter(self, m: Module) -> None:
        """Choose what is in C next: a FILL, an update, a lookup."""
        entering, back = self.entering, self.stages[-1] if len(self.stages) > 3 else self.found
        fill, update, lookup = back.lookup, Signal(), Signal()
        refused = Signal()
        update_free, lookup_free = ~fill & ~self.op.update & ~self.stages[0].update, ~fill & ~update
        if self.sweep is not None:
            update_free, lookup_free = update_free & ~self.sweep.busy, lookup_free & ~self.sweep.turn
        m.d.comb += [
            self.update_ready.eq(update_free),
            update.eq(self.update_valid & self.update_ready),
            self.req_ready.eq(lookup_free),
            lookup.eq(self.req_valid & self.req_ready),
            entering.eq(back),
        ]
        rule = self._rule(m)
        with m.If(~fill):
            m.d.comb += [
                entering.value.eq(Mux(update, rule[0], self.req_address)),
                entering.mask.eq(Mux(update, rule[1], Const(-1, self.params.address_bits))),
                entering.id.eq(self.req_id),
                entering.output.eq(self.update_output),
            ]
        m.d.comb += [
            entering.lookup.eq(lookup),
            entering.fill.eq(fill),
            entering.update.eq(update & (self.allowed | self.update_flush)),
            entering.all.eq(self.update_flush),
            entering.write.eq(update & self.allowed & ~self.update_flush),
            entering.rule.eq(self.update_rule),
            entering.row.eq(self.update_row),
        ]
        m.d.sync += [
            self.op.eq(entering),
            refused.eq(update & ~self.allowed & ~self.update_flush),
            self.refused.eq(refused),
        ]

    def _walk(self, m: Module, sweep: CubeSweep) -> None:
        """Choose the set that is read, and start walks."""
        p, op, entering, lines = self.params, self.op, self.entering, self.lines
        assert isinstance(lines, CubeSets)
        m.submodules.sweep = sweep
        matrix = crc_matrix(SET_HASH, p.hashed_bits)
        row_bits = sweep.row_bits
        m.submodules.hash = hashed = CrcHash(
            width_bits=p.hashed_bits, masks=matrix.masks[:row_bits], constant=matrix.constant & (p.sets - 1)
        )
        everything = self._removes_all(op)
        m.d.comb += [
            entering.step.eq(sweep.ready & ~entering.fill & ~entering.lookup),
            hashed.data.eq(entering.value[p.address_bits - p.hashed_bits :]),
            lines.read.eq(entering.lookup | entering.fill | entering.update | entering.step),
            lines.read_index.eq(Mux(entering.step, sweep.next_index, hashed.hash)),
            sweep.start.eq(op.update & (everything | ~op.mask[p.address_bits - p.hashed_bits])),
            sweep.start_value.eq(op.value),
            sweep.start_mask.eq(op.mask & ~everything.replicate(p.address_bits)),
            sweep.step.eq(op.step),
            sweep.op_value.eq(op.value),
            sweep.op_index.eq(lines.index),
            lines.remove.eq(op.step | (op.update & ~sweep.start)),
        ]
        with m.If(op.step):
            m.d.comb += [lines.value.eq(sweep.value), lines.mask.eq(sweep.mask)]

    def _rule(self, m: Module) -> tuple[Value, Value]:
        """Say whether the update at the port is one, and return the prefix that changes: the row's, or the new one."""
        p, rules = self.params, self.rules
        mask = Signal(p.address_bits, name="update_mask")
        same, exists = Signal(), Signal()
        occupied = rules.old_valid
        # a length of all ones that exists leaves nothing to compare, and linters complain of such a comparison
        short = self.update_length <= p.address_bits if p.address_bits + 1 < 1 << p.length_bits else Const(1)
        m.d.comb += [
            rules.read_row.eq(self.update_row),
            mask.eq(prefix_bits(self.update_length, p.address_bits)),
            same.eq((mask == rules.old_mask) & ~((self.update_value ^ rules.old_value) & mask).any()),
            exists.eq((self.update_row < p.rows) & short),
            self.allowed.eq(Mux(self.update_rule, exists & (~occupied | same), occupied)),
        ]
        return Mux(occupied, rules.old_value, self.update_value), Mux(occupied, rules.old_mask, mask)

    def _act(self, m: Module) -> None:
        """Stage C: what the lines are asked, and the answer in the next cycle."""
        op, lines = self.op, self.lines
        m.d.comb += [
            self.stale.eq(
                Cat(
                    stage.update & (self._removes_all(stage) | overlaps(op.value, op.mask, stage.value, stage.mask))
                    for stage in self.stages
                ).any()
            ),
            lines.find.eq(op.lookup & ~self.pending),
            lines.fill.eq(op.fill & ~self.stale & ~self.pending),
            lines.value.eq(op.value),
            lines.mask.eq(op.mask),
            lines.fill_match.eq(op.match),
            lines.fill_output.eq(op.output),
        ]
        if isinstance(lines, CubeLines):
            m.d.comb += [lines.remove.eq(op.update), lines.all.eq(self._removes_all(op))]
        m.d.sync += [
            self.resp_valid.eq(lines.hit | op.fill),
            self.resp_id.eq(op.id),
            self.resp_hit.eq(lines.hit),
            Cat(self.resp_match, self.resp_output).eq(
                Mux(op.fill, Cat(op.match, op.output), Cat(lines.match, lines.output))
            ),
            self.filled.eq(lines.writes),
            self.evicted.eq(lines.evicts),
            self.dropped.eq(op.fill & (self.stale | self.pending)),
        ]

    def _search(self, m: Module) -> None:
        """Stages of the TCAM: a miss is searched for in the first three; a row is written in the first two."""
        rules, first, second = self.rules, self.stages[0], self.stages[1]
        m.d.comb += [
            rules.address.eq(first.value),
            rules.write.eq(first.write),
            rules.write_row.eq(first.row),
            rules.write_valid.eq(first.rule),
            rules.write_value.eq(first.value),
            rules.write_mask.eq(first.mask),
            rules.late_write.eq(second.write),
            rules.late_row.eq(second.row),
            rules.late_output.eq(second.output),
        ]
        third, found = self.stages[2], self.found
        m.d.comb += found.eq(third)
        with m.If(third.lookup):
            m.d.comb += [found.mask.eq(rules.cube), found.match.eq(rules.match), found.output.eq(rules.output)]
        m.d.sync += [first.eq(self.op), first.lookup.eq(self.op.lookup & ~self.lines.hit)]
        behind = [first, second, found, *self.stages[3:]]
        m.d.sync += [stage.eq(before) for stage, before in zip(self.stages[1:], behind, strict=False)]

    def _removes_all(self, update: Any) -> Value:
        return Const(1, 1) if self.params.invalidation == "flush" else update.all
