"""Proof about a rule cache with lines in sets: what `rule_cache.py` proves, with memories and walks.

The memories keep the row of the symbolic address *a* alone and return anything for other rows (`OneRow`): what holds of
this set holds of each. The invariant of a line is claimed of this row, unless a walk has yet to come to it with a cube
that holds *a*. `SET_MUTANTS` are faults that give a wrong answer at the port.
"""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Cat, Const, Module, Value

from hopforge.gen.formal.induction import RUN_CYCLES, at_most_one, prove_in_parts, refute
from hopforge.gen.formal.lookup import OneRow
from hopforge.gen.formal.rule_cache import RuleCacheProof
from hopforge.hw.parts.crc_hash import CrcHash
from hopforge.hw.rules.prefix_rules import prefix_bits
from hopforge.hw.rules.rule_cache import RuleCache
from hopforge.model.lookup.rules.cube_sets import SET_HASH
from hopforge.model.lookup.rules.rule_cache_params import RuleCacheParams
from hopforge.model.numbers.crc import crc_matrix

__all__ = ["SET_EVENTS", "SET_MUTANTS", "prove_rule_sets", "reaches_set_event", "refute_rule_sets"]

SET_MUTANTS = {
    "lines answer before a walk has come to them": ("dut.sweep.pending", "1'b0"),
    "an update leaves the lines of its set": ("dut.lines.remove", "1'b0"),
    "an update of many sets removes lines of one": ("dut.sweep.start", "1'b0"),
    "a line written while it was read is overlooked": ("dut.lines.bypassed", "2'b00"),
    "a line that was read before an update is written": ("dut.stale", "1'b0"),
}
"""Faults: (wire of the flattened proof, what it is tied to)."""

SET_EVENTS = ("hit", "hit of a wide line", "line that a walk keeps from answering", "removal by a walk", "bypass")
"""What a run must reach, or the proof would speak of nothing."""


class RuleSetsProof(RuleCacheProof):
    """The same claims, with invariants of one row of the memories."""

    def _make(self) -> Any:
        self.kept = self._row_signal()
        self.memories: list[OneRow] = []
        dut = RuleCache(self.params, memory=self._memory)
        self.inputs += [memory.other for memory in self.memories]
        return dut

    def _row_signal(self) -> Any:
        p = self.params
        matrix = crc_matrix(SET_HASH, p.hashed_bits)
        bits = (p.sets - 1).bit_length()
        self.hash = CrcHash(
            width_bits=p.hashed_bits, masks=matrix.masks[:bits], constant=matrix.constant & (p.sets - 1)
        )
        self.op_hash = CrcHash(width_bits=p.hashed_bits, masks=self.hash.masks, constant=self.hash.constant)
        return self.hash.hash

    def _memory(self, **parameters: int) -> OneRow:
        memory = OneRow(self.kept, **parameters)  # type: ignore[arg-type]
        self.memories.append(memory)
        return memory

    def _connect(self, m: Module) -> None:
        m.submodules.hash, m.submodules.op_hash = self.hash, self.op_hash
        m.d.comb += [
            self.hash.data.eq(self.address[-self.params.hashed_bits :]),
            self.op_hash.data.eq(self.dut.op.value[-self.params.hashed_bits :]),
        ]

    def _event(self, name: str) -> Value:
        lines, sweep, op = self.dut.lines, self.dut.sweep, self.dut.op
        if name == "hit of a wide line":
            return lines.hit & Cat(lines.meets[i] & ~mask.all() for i, mask in enumerate(lines.row_masks)).any()
        events = {
            "hit": self.told_hit,
            "line that a walk keeps from answering": op.lookup & sweep.pending & lines.meets.any(),
            "removal by a walk": op.step & sweep.mask.any() & lines.meets.any(),
            "bypass": lines.hit & (lines.bypassed & lines.meets).any(),
        }
        return events[name]

    def _of_lines(self) -> Iterator[Value]:
        p, dut = self.params, self.dut
        lines, sweep, op = dut.lines, dut.sweep, dut.op
        floor = p.address_bits - p.hashed_bits
        in_c = op.lookup | op.fill | op.update | op.step
        pending = sweep.busy & self._agree(self.address, sweep.value, sweep.mask) & (self.kept >= sweep.place)
        held = []
        for way in range(lines.ways):
            word = lines.memories[way].word
            value, valid = word[: p.address_bits], word[-1]
            length = word[p.address_bits : p.address_bits + lines.length_bits]
            full = Const((1 << p.address_bits) - 1, p.address_bits)  # -1 would be signed, and equal to no mask
            mask = prefix_bits(length, p.address_bits) if lines.length_bits else full
            answer = word[p.address_bits + lines.length_bits : -1]
            held.append(valid & self._agree(value, self.address, mask))
            yield ~held[-1] | pending | (answer == self.answer)
            here = in_c & (lines.index == self.kept)
            yield ~here | (Cat(lines.row_values[way], lines.row_answers[way], lines.row_valid[way])
                           == Cat(value, answer, valid))  # fmt: skip
            yield ~here | (lines.row_masks[way] == mask)
        yield pending | at_most_one(Cat(held))
        yield ~op.step | (sweep.busy & (lines.index == sweep.place))
        yield sweep.busy | (sweep.place == 0)
        yield ~(op.update & sweep.busy)
        yield at_most_one(Cat(op.lookup, op.fill, op.update, op.step))
        yield ~sweep.mask[floor] & self._is_prefix(sweep.mask)
        yield ~(op.lookup | op.fill | op.update) | (lines.index == self.op_hash.hash)
        yield ~(op.fill & (~op.mask[floor:]).any())
        yield ~(dut.stages[2].lookup & (~dut.rules.cube[floor:]).any())
        for stage in dut.stages[3:]:
            yield ~(stage.lookup & (~stage.mask[floor:]).any())


def _params(policy: str, invalidation: str, tcam_cycles: int, *, wide: bool) -> RuleCacheParams:
    rows, entries, ways, width, hashed = (4, 12, 3, 6, 4) if wide else (3, 4, 2, 4, 2)
    return RuleCacheParams(
        policy=policy, invalidation=invalidation, tcam_cycles=tcam_cycles, rows=rows, entries=entries, ways=ways,
        index_bits=hashed, address_bits=width, output_bits=1, id_bits=1,
    )  # fmt: skip


def prove_rule_sets(
    policy: str = "mep",
    *,
    invalidation: str = "overlap",
    tcam_cycles: int = 4,
    wide: bool = False,
    mutant: str | None = None,
    timeout_s: float = 300,
) -> bool:
    """Prove a small rule cache with sets by induction over one cycle; with a mutant, try to.

    Parameters
    ----------
    mutant : str, optional
        Key of `SET_MUTANTS`.
    policy, invalidation, tcam_cycles, wide, timeout_s
        As for `prove_rule_cache`; 2 sets of 2 lines, wide 4 of 3.

    Returns
    -------
    bool
        Whether the proof succeeded.

    Raises
    ------
    YosysError
        If yosys fails otherwise, or takes too long.
    """
    proof = RuleSetsProof(_params(policy, invalidation, tcam_cycles, wide=wide))
    fault = SET_MUTANTS[mutant] if mutant else None
    return prove_in_parts(proof, proof.inputs, mutant=fault, timeout_s=timeout_s)


def refute_rule_sets(
    policy: str = "mep", steps: int = RUN_CYCLES, mutant: str | None = None, *, timeout_s: float = 300
) -> bool:
    """Look for a run of at most `steps` cycles from reset with a wrong answer at the port.

    The other parameters and the errors are those of `prove_rule_sets`.
    """
    proof = RuleSetsProof(_params(policy, "overlap", 4, wide=False), invariants=False)
    fault = SET_MUTANTS[mutant] if mutant else None
    return refute(proof, proof.inputs, steps, mutant=fault, timeout_s=timeout_s)


def reaches_set_event(event: str, policy: str = "mep", *, timeout_s: float = 300) -> bool:
    """Tell whether a run from reset reaches one of `SET_EVENTS`."""
    proof = RuleSetsProof(_params(policy, "overlap", 4, wide=False), never=event)
    return refute(proof, proof.inputs, RUN_CYCLES, timeout_s=timeout_s)
