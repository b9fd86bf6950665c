"""Node reduction, stage A2: the key from the decisions of stage A1."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.data import View
from amaranth.lib.wiring import Component, In, Out

from hopforge.hw.keys.reduction_parameters import ReductionParameters
from hopforge.hw.parts.and_or import and_or

__all__ = ["ReductionSelect"]


class ReductionSelect(Component):
    """Stage A2: the key from the decisions of A1.

    Combinational. ``payload`` is the key without its mode; the set index is a CRC of it.

    Parameters
    ----------
    parameters : ReductionParameters
        What is built.
    """

    partial: View
    key: Signal
    payload: Signal

    def __init__(self, parameters: ReductionParameters) -> None:
        self.parameters = parameters
        super().__init__(
            {
                "partial": In(parameters.partial_layout),
                "key": Out(parameters.key_bits),
                "payload": Out(parameters.address_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the AND-OR selection and the sum of the residues."""
        m = Module()
        p, partial = self.parameters, self.partial
        if not p.reduces:
            m.d.comb += [self.payload.eq(partial.dst), self.key.eq(partial.dst)]
            return m
        candidates: list[tuple[Value, Value]] = [(partial.pick_digit, partial.digit)]
        if p.grid:
            candidates.append((partial.pick_dimension, partial.dimension))
        if p.dragonfly:
            candidates += [(partial.pick_router, partial.router), (partial.pick_group, partial.group)]
        value = Signal(p.value_bits)
        member = Signal(4)
        m.d.comb += value.eq(and_or(candidates, p.value_bits))
        if p.members:
            m.d.comb += member.eq(self._sum_of_residues(m))
        reduced: Value = Cat(value, partial.kind, member)
        if p.arbitrary:
            reduced = Cat(value, partial.kind, member & ~partial.pick_address.replicate(4))
            reduced = reduced | (partial.dst & partial.pick_address.replicate(p.address_bits))
        if p.expression is not None:
            reduced = reduced | (partial.value & partial.pick_value.replicate(len(partial.value)))
        m.d.comb += self.payload.eq(reduced)
        m.d.comb += self.key.eq(Cat(self.payload, partial.mode))
        return m

    def _sum_of_residues(self, m: Module) -> Value:
        """Sum of the residues modulo the number of members, by a tree of adders that each subtract at most once."""
        p, partial = self.parameters, self.partial
        count = Signal(5)
        m.d.comb += count.eq(
            and_or([(partial.members[number - 1], Const(number, 5)) for number in range(1, p.max_members + 1)], 5)
        )
        level: list[Value] = [partial.residues[number] for number in range(len(partial.residues))]
        depth = 0
        while len(level) > 1:
            following: list[Value] = []
            for pair in range(len(level) // 2):
                total = Signal(5, name=f"sum_{depth}_{pair}")
                rest = Signal(6, name=f"rest_{depth}_{pair}")
                residue = Signal(4, name=f"residue_{depth}_{pair}")
                m.d.comb += [
                    total.eq(level[2 * pair] + level[2 * pair + 1]),
                    rest.eq(total - count),
                    residue.eq(Mux(rest[5], total, rest)),
                ]
                following.append(residue)
            if len(level) % 2:
                following.append(level[-1])
            level = following
            depth += 1
        return level[0]
