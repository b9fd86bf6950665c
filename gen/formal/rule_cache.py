"""Proof about the rule cache: a hit is what the TCAM answers at that moment, and no lookup is lost or doubled.

One symbolic address *a* stands for all of them. Lookups, changes of rules and flushes are free, in any order. Beside
the hardware stands a table of its own, which takes an update when the hardware has it in C, and answers for *a* by
comparing one rule with the next.

The invariant: of every valid line whose cube holds *a*, the answer is that of the table. As *a* is any address, every
line agrees with the table on its whole cube. The same holds for what is on its way to a line, as long as no update
behind it shares an address with its cube. The proof is by induction over one cycle; `RULE_MUTANTS` are faults that
give a wrong answer at the port.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from amaranth.hdl import Array, Assume, Cat, Const, Module, Mux, Signal, Value

from hopforge.gen.formal.induction import RUN_CYCLES, Proof, at_most_one, prove_in_parts, refute
from hopforge.hw.rules.rule_cache import RuleCache
from hopforge.model.lookup.rules.cubes import prefix_mask
from hopforge.model.lookup.rules.rule_cache_params import RuleCacheParams

__all__ = [
    "RULE_EVENTS", "RULE_MUTANTS", "RuleCacheProof", "prove_rule_cache", "reaches_rule_event", "refute_rule_cache",
]  # fmt: skip

RULE_MUTANTS = {
    "an update leaves the lines": ("dut.lines.remove", "1'b0"),
    "a line that was read before an update is written": ("dut.stale", "1'b0"),
    "a line is as wide as its rule, whatever lies inside": ("dut.rules.reach", "4'b0000"),
    "the lowest row that matches answers": ("dut.rules.is_longest", "3'b111"),
    "a rule may be written over another": ("dut.allowed", "1'b1"),
}
"""Faults: (wire of the flattened proof, what it is tied to)."""

RULE_EVENTS = ("hit", "hit of a wide line", "drop", "removal of a line", "refusal")
"""What a run must reach, or the proof would speak of nothing."""


class RuleCacheProof(Proof):
    """The block, a table beside it, the claims at the port and the invariants.

    Parameters
    ----------
    params : RuleCacheParams
        Small.
    invariants : bool
        False: what is claimed at the port alone, for a search of counterexamples.
    never : str, optional
        Claim only that this one of `RULE_EVENTS` never happens, to see that it does.
    """

    def __init__(self, params: RuleCacheParams, *, invariants: bool = True, never: str | None = None) -> None:
        super().__init__()
        self.params, self.invariants, self.never = params, invariants, never
        self.address = Signal(params.address_bits)
        self.dut: Any = self._make()
        free = (
            "req_valid", "req_id", "req_address", "update_valid", "update_flush", "update_rule", "update_row",
            "update_value", "update_length", "update_output",
        )  # fmt: skip
        self.inputs += [self.address, *(getattr(self.dut, name) for name in free)]

    def _make(self) -> Any:
        """Return the hardware."""
        return RuleCache(self.params)

    def _connect(self, m: Module) -> None:
        """Connect what a proof has of its own."""

    def elaborate(self, platform: object) -> Module:
        """Build the hardware and everything that is said about it."""
        self._m = m = self.module()
        m.submodules.dut = self.dut
        self._connect(m)
        self._same_address()
        self._table()
        self._lookups()
        if self.never is not None:
            self.claim(m, [~self._event(self.never)])
            return m
        self.claim(m, self._claims())
        if self.invariants:
            self.claim(m, self._of_table())
            self.claim(m, self._of_pipeline())
            self.claim(m, self._of_search())
            self.claim(m, self._of_lines())
        return m

    def _same_address(self) -> None:
        started, before = Signal(), Signal.like(self.address)
        self._m.d.sync += [started.eq(1), before.eq(self.address)]
        self._m.d.comb += Assume(~started | (before == self.address))

    # the table beside the hardware

    def _table(self) -> None:
        """Take every update in the cycle in which it is in C."""
        m, p, dut = self._m, self.params, self.dut
        self.wished, self.flush, self.rule = Signal(), Signal(), Signal()
        self.row, self.length = Signal(p.row_bits), Signal(p.length_bits)
        self.value, self.output = Signal(p.address_bits), Signal(p.output_bits)
        m.d.sync += [
            self.wished.eq(dut.update_valid & dut.update_ready),
            self.flush.eq(dut.update_flush),
            self.rule.eq(dut.update_rule),
            self.row.eq(dut.update_row),
            self.length.eq(dut.update_length),
            self.value.eq(dut.update_value),
            self.output.eq(dut.update_output),
        ]
        self.valid = Signal(p.rows)
        self.lengths = [Signal(p.length_bits, name=f"length_of_{i}") for i in range(p.rows)]
        self.values = [Signal(p.address_bits, name=f"value_of_{i}") for i in range(p.rows)]
        self.outputs = [Signal(p.output_bits, name=f"output_of_{i}") for i in range(p.rows)]
        self.allowed = Signal()  # what is in C changes a row
        allowed = []
        for i in range(p.rows):
            same = (self.lengths[i] == self.length) & self._agree(self.values[i], self.value, self._mask(self.length))
            good = Mux(self.rule, (self.length <= p.address_bits) & (~self.valid[i] | same), self.valid[i])
            mine = Signal(name=f"changes_{i}")
            m.d.comb += mine.eq(self.wished & ~self.flush & (self.row == i) & good)
            allowed.append(mine)
            with m.If(mine):
                m.d.sync += [self.valid[i].eq(self.rule), self.outputs[i].eq(self.output)]
            with m.If(mine & self.rule & ~self.valid[i]):
                m.d.sync += [self.lengths[i].eq(self.length), self.values[i].eq(self.value)]
        m.d.comb += self.allowed.eq(Cat(allowed).any())
        self.masks = [self._mask(length) for length in self.lengths]
        self.answer = self._answer_by(self.valid, self.values, self.masks, self.outputs)

    def _mask(self, length: Value) -> Value:
        """Return the mask of a prefix; of a length that does not exist, of any."""
        width = self.params.address_bits
        return Array(Const(prefix_mask(bits, width), width) for bits in range(width + 1))[length]

    @staticmethod
    def _agree(value: Value, other: Value, mask: Value) -> Value:
        return ((value ^ other) & mask) == 0

    def _answer_by(
        self, valid: Value, values: Sequence[Value], masks: Sequence[Value], outputs: Sequence[Value]
    ) -> Value:
        """Return match, and above it the output, for a: row by row, a longer prefix goes before those so far."""
        p = self.params
        found: Value = Const(0, 1)
        longest: Value = Const(0, p.address_bits)
        output: Value = Const(0, p.output_bits)
        for i in range(p.rows):
            better = valid[i] & self._agree(values[i], self.address, masks[i]) & (~found | (masks[i] > longest))
            found, longest, output = found | better, Mux(better, masks[i], longest), Mux(better, outputs[i], output)
        answer = Signal(1 + p.output_bits)
        self._m.d.comb += answer.eq(Cat(found, output))
        return answer

    # lookups, as they are seen at the port

    def _lookups(self) -> None:
        """Follow every lookup: in C in the cycle after it is accepted, then up to `tcam_cycles` + 1 more."""
        m, p, dut = self._m, self.params, self.dut
        self.asked, self.asked_id, self.asked_address = Signal(), Signal(p.id_bits), Signal(p.address_bits)
        m.d.sync += [
            self.asked.eq(dut.req_valid & dut.req_ready),
            self.asked_id.eq(dut.req_id),
            self.asked_address.eq(dut.req_address),
        ]
        count = p.tcam_cycles + 1
        self.open = Signal(count)  # bit k: a lookup that was in C k + 1 cycles ago waits for its answer
        self.ids = [Signal(p.id_bits, name=f"open_id{k}") for k in range(count)]
        self.about_a = Signal(count)
        self.right = [Signal(1 + p.output_bits, name=f"right{k}") for k in range(count)]  # of the moment in C
        self.told_hit = dut.resp_valid & dut.resp_hit
        m.d.sync += [
            self.open.eq(Cat(self.asked, self.open[0] & ~self.told_hit, self.open[1:])),
            self.about_a.eq(Cat(self.asked_address == self.address, self.about_a)),
            self.ids[0].eq(self.asked_id),
            self.right[0].eq(self.answer),
            *(after.eq(before) for before, after in zip(self.ids, self.ids[1:], strict=False)),
            *(after.eq(before) for before, after in zip(self.right, self.right[1:], strict=False)),
        ]

    def _claims(self) -> Iterator[Value]:
        """Claim what is promised at the port."""
        dut, last = self.dut, self.params.tcam_cycles
        told = Cat(dut.resp_match, dut.resp_output)
        yield ~self.told_hit | (self.open[0] & (dut.resp_id == self.ids[0]))
        yield ~(self.told_hit & self.about_a[0]) | (told == self.right[0])
        told_miss = dut.resp_valid & ~dut.resp_hit
        yield told_miss == self.open[last]
        yield ~told_miss | (dut.resp_id == self.ids[last])
        yield ~(told_miss & self.about_a[last]) | (told == self.right[last])

    def _event(self, name: str) -> Value:
        dut = self.dut
        wide = Signal()
        if self.params.policy != "exact":
            short = [dut.lines.meets[i] & ~mask.all() for i, mask in enumerate(dut.lines.masks)]
            self._m.d.comb += wide.eq(dut.lines.hit & Cat(short).any())
        return {
            "hit": self.told_hit,
            "hit of a wide line": wide,
            "drop": dut.dropped,
            "removal of a line": dut.op.write & dut.lines.meets.any(),
            "refusal": dut.refused,
        }[name]

    # invariants

    def _of_table(self) -> Iterator[Value]:
        """Say that the rows are those of the table, less what is on its way to them."""
        p, rules = self.params, self.dut.rules
        first, second = self.dut.stages[:2]
        for i in range(p.rows):
            coming, late = first.write & (first.row == i), second.write & (second.row == i)
            yield self.valid[i] == Mux(coming, first.rule, rules.row_valid[i])
            mask = Mux(coming, first.mask, rules.masks[i])
            yield ~self.valid[i] | (mask == self.masks[i])
            yield ~self.valid[i] | (self.lengths[i] <= p.address_bits)
            yield ~self.valid[i] | self._agree(Mux(coming, first.value, rules.values[i]), self.values[i], mask)
            replaced = coming & rules.row_valid[i]
            yield ~replaced | (first.mask == rules.masks[i])
            yield ~replaced | self._agree(first.value, rules.values[i], first.mask)
            yield ~rules.row_valid[i] | self._is_prefix(rules.masks[i])
            output = Mux(coming, first.output, Mux(late, second.output, rules.outputs[i]))
            yield ~self.valid[i] | (output == self.outputs[i])

    def _of_pipeline(self) -> Iterator[Value]:
        """Say what is in C and in the stages."""
        p, dut = self.params, self.dut
        op, stages = dut.op, dut.stages
        yield at_most_one(Cat(op.lookup, op.fill, op.update))
        yield at_most_one(Cat(op.update, stages[0].update, stages[1].update))
        yield op.update == (self.wished & (self.flush | self.allowed))
        yield op.write == self.allowed
        yield ~op.update | (op.all == self.flush)
        yield ~op.write | ((op.row == self.row) & (op.rule == self.rule) & (op.output == self.output))
        for i in range(p.rows):
            mine = op.write & (op.row == i)
            yield ~(mine & self.valid[i]) | (op.mask == self.masks[i])
            yield ~(mine & self.valid[i]) | self._agree(op.value, self.values[i], op.mask)
        yield ~(op.write & op.rule) | (op.mask == self._mask(self.length))
        yield ~(op.write & op.rule) | self._agree(op.value, self.value, op.mask)
        yield op.lookup == self.asked
        yield ~op.lookup | ((op.id == self.asked_id) & (op.value == self.asked_address) & op.mask.all())
        for stage in stages:
            yield ~(stage.lookup & stage.update)
            yield ~stage.write | (stage.update & (stage.row < p.rows))
            yield ~stage.update | stage.write | stage.all
        yield at_most_one(Cat(stages[0].lookup, self.told_hit))
        yield self.open[0] == (stages[0].lookup | self.told_hit)
        for k, stage in enumerate(stages):
            if k:
                yield self.open[k] == stage.lookup
            yield from self._names(stage.lookup, stage, k)
        yield self.open[len(stages)] == op.fill
        yield from self._names(op.fill, op, len(stages))

    def _names(self, here: Value, stage: Any, k: int) -> Iterator[Value]:
        yield ~here | ((stage.id == self.ids[k]) & ((stage.value == self.address) == self.about_a[k]))

    def _of_search(self) -> Iterator[Value]:
        """Say what is known of a miss in each stage."""
        p, dut = self.params, self.dut
        rules, stages, width = dut.rules, dut.stages, self.params.address_bits
        yield ~(stages[0].lookup & self.about_a[0]) | (self.right[0] == self.answer)
        second = stages[1]
        by_rows = self._answer_by(rules.row_valid, rules.values, rules.masks, rules.outputs)
        yield ~(second.lookup & self.about_a[1]) | (self.right[1] == by_rows)
        longest: Value = Const(0, width)
        reach: Value = Const(0, width)
        for i in range(p.rows):
            differs = (rules.values[i] ^ second.value) & rules.masks[i]
            matches = rules.row_valid[i] & (differs == 0)
            yield ~second.lookup | (rules.matches[i] == matches)
            longest |= rules.masks[i] & matches.replicate(width)
            for bit in range(width):  # the highest one that differs, and those above
                to_here = rules.row_valid[i] & (differs >> (bit + 1) == 0)
                reach |= rules.masks[i] & (to_here << bit)
        yield ~second.lookup | (rules.longest == longest)
        if p.policy != "exact":
            yield ~second.lookup | (rules.reach == reach)
        third = stages[2]
        yield ~third.lookup | at_most_one(rules.winner)
        yield from self._of_result(third.lookup, third.value, rules.cube, Cat(rules.match, rules.output), 2)
        for k, stage in enumerate(stages[3:], 3):
            yield from self._of_result(stage.lookup, stage.value, stage.mask, Cat(stage.match, stage.output), k)
        op = dut.op
        yield from self._of_result(op.fill, op.value, op.mask, Cat(op.match, op.output), len(stages))

    def _of_result(self, here: Value, value: Value, cube: Value, answer: Value, k: int) -> Iterator[Value]:
        """Claim that an answer is right for its address, and for its cube if no update behind shares it."""
        changed = Cat(
            stage.update & (stage.all | self._agree(value, stage.value, cube & stage.mask))
            for stage in self.dut.stages[:k]
        ).any()
        yield ~here | self._is_prefix(cube)
        yield ~(here & self.about_a[k]) | (answer == self.right[k])
        yield ~(here & self._agree(value, self.address, cube)) | changed | (answer == self.answer)

    @staticmethod
    def _is_prefix(mask: Value) -> Value:
        return Cat(~mask[bit] | mask[bit + 1] for bit in range(len(mask) - 1)).all()

    def _of_lines(self) -> Iterator[Value]:
        """Say that every line agrees with the table on its whole cube, and shares no address with another one."""
        lines = self.dut.lines
        for i, (value, mask, answer) in enumerate(zip(lines.values, lines.masks, lines.answers, strict=True)):
            valid = lines.valid[i]
            yield ~(valid & self._agree(value, self.address, mask)) | (answer == self.answer)
            if self.params.policy != "exact":
                yield ~valid | self._is_prefix(mask)
            for j in range(i):
                shared = self._agree(value, lines.values[j], mask & lines.masks[j])
                yield ~(valid & lines.valid[j] & shared)


def _params(policy: str, invalidation: str = "overlap", tcam_cycles: int = 4, *, wide: bool = False) -> RuleCacheParams:
    rows, entries, width = (4, 3, 6) if wide else (3, 2, 4)
    return RuleCacheParams(
        policy=policy, invalidation=invalidation, tcam_cycles=tcam_cycles, rows=rows, entries=entries,
        address_bits=width, output_bits=1, id_bits=1,
    )  # fmt: skip


def prove_rule_cache(
    policy: str = "mep",
    *,
    invalidation: str = "overlap",
    tcam_cycles: int = 4,
    wide: bool = False,
    mutant: str | None = None,
    timeout_s: float = 300,
) -> bool:
    """Prove a small rule cache by induction over one cycle; with a mutant, try to.

    Parameters
    ----------
    policy, invalidation, tcam_cycles
        As for `RuleCacheParams`.
    wide : bool
        6 bits of address, 4 rules and 3 lines instead of 4, 3 and 2.
    mutant : str, optional
        Key of `RULE_MUTANTS`.
    timeout_s : float
        Limit in seconds.

    Returns
    -------
    bool
        Whether the proof succeeded.

    Raises
    ------
    YosysError
        If yosys fails otherwise, or takes too long.
    """
    proof = RuleCacheProof(_params(policy, invalidation, tcam_cycles, wide=wide))
    fault = RULE_MUTANTS[mutant] if mutant else None
    return prove_in_parts(proof, proof.inputs, mutant=fault, timeout_s=timeout_s)


def refute_rule_cache(
    policy: str = "mep", steps: int = RUN_CYCLES, mutant: str | None = None, *, timeout_s: float = 300
) -> bool:
    """Look for a run of at most `steps` cycles from reset with a wrong answer at the port.

    The other parameters and the errors are those of `prove_rule_cache`.
    """
    proof = RuleCacheProof(_params(policy), invariants=False)
    return refute(
        proof, proof.inputs, steps, mutant=RULE_MUTANTS[mutant] if mutant else None, timeout_s=timeout_s
    )  # fmt: skip


def reaches_rule_event(event: str, policy: str = "mep", *, timeout_s: float = 300) -> bool:
    """Tell whether a run from reset reaches one of `RULE_EVENTS`."""
    proof = RuleCacheProof(_params(policy), never=event)
    return refute(proof, proof.inputs, RUN_CYCLES, timeout_s=timeout_s)
