"""Node reduction without a cache: the output port comes from a table per mapping pattern (seed 004, section 5.5)."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.data import View
from amaranth.lib.wiring import Component, In, Out

from hopforge.hw.keys.node_reduction import NodeReduction
from hopforge.hw.keys.reduction_parameters import ReductionParameters

__all__ = ["DirectMapping"]

_LOCAL, _PLUS, _MINUS = 0, 1, 2  # kinds of a mesh or torus key (docs/architecture.md)


class DirectMapping(Component):
    """Output port of a mesh or torus straight from the reduction, for a choice of mapping patterns.

    A mapping pattern says which physical port every logical output (i, +), (i, −), Local is cabled to; it is a row of
    registers, written once. Row of a pattern: 0 is Local, 1 + 2i is (i, +), 2 + 2i is (i, −). This is what the routing
    cache makes unnecessary: the cache learns the mapping from the TCAM.

    Combinational from ``dst`` to ``output``; a row written with ``w_en`` holds from the next cycle on. Reset: rows 0.

    Parameters
    ----------
    parameters : ReductionParameters
        Functions mesh and torus only.
    patterns : int
        Mapping patterns to choose from, at least 1.
    output_bits : int
        Width of a port number.

    Raises
    ------
    ValueError
        Another function than mesh and torus, or a parameter below 1.
    """

    dst: Signal
    active: View
    pattern: Signal
    w_en: Signal
    w_pattern: Signal
    w_row: Signal
    w_output: Signal
    output: Signal

    def __init__(self, parameters: ReductionParameters, *, patterns: int, output_bits: int = 6) -> None:
        if not parameters.functions or not set(parameters.functions) <= {"mesh", "torus"}:
            raise ValueError(f"functions must be mesh, torus or both, not {', '.join(parameters.functions) or 'none'}")
        for name, value in (("patterns", patterns), ("output_bits", output_bits)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        self.parameters = parameters
        self.patterns = patterns
        self.output_bits = output_bits
        self.rows = 1 + 2 * parameters.most_digits
        pattern_bits = max(1, (patterns - 1).bit_length())
        super().__init__(
            {
                "dst": In(parameters.address_bits),
                "active": In(parameters.active_layout),
                "pattern": In(pattern_bits),
                "w_en": In(1),
                "w_pattern": In(pattern_bits),
                "w_row": In((self.rows - 1).bit_length()),
                "w_output": In(output_bits),
                "output": Out(output_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the reduction, the rows of registers and the two selections."""
        m = Module()
        m.submodules.reduction = reduction = NodeReduction(self.parameters)
        m.d.comb += [reduction.dst.eq(self.dst), reduction.active.eq(self.active)]
        a = self.parameters.address_bits
        kind = reduction.payload[a - 6 : a - 4]
        dimension = reduction.payload[: a - 6]
        tables = [
            [Signal(self.output_bits, name=f"output_{pattern}_{row}") for row in range(self.rows)]
            for pattern in range(self.patterns)
        ]
        for pattern, table in enumerate(tables):
            for row, register in enumerate(table):
                with m.If(self.w_en & (self.w_pattern == pattern) & (self.w_row == row)):
                    m.d.sync += register.eq(self.w_output)
        # the pattern hardly ever changes: it is selected first, off the path of the destination
        chosen = [
            Array(table[row] for table in tables)[self.pattern] if self.patterns > 1 else tables[0][row]
            for row in range(self.rows)
        ]
        result: Value = Mux(kind == _LOCAL, chosen[0], Const(0, self.output_bits))
        for number in range(self.parameters.most_digits):
            here = dimension == number
            for code, row in ((_PLUS, 1 + 2 * number), (_MINUS, 2 + 2 * number)):
                result = result | (chosen[row] & Cat((here & (kind == code)) for _ in range(self.output_bits)))
        m.d.comb += self.output.eq(result)
        return m
