"""Keys by an expression: the operations of a `hopforge.model.expression.program.Program` as logic.

Two combinational components, with the active registers of the engine between them:

``QuietSteps``
    own address and level → the values that late operations need of them (*quiet*);
``KeyExpression`` (stage A1)
    destination and quiet values → the value of the key.

Every signal is as wide as the range of its operation, so that nothing overflows.
"""

from collections.abc import Iterable

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value, signed, unsigned
from amaranth.lib.data import StructLayout, View
from amaranth.lib.wiring import Component, In, Out

from hopforge.model.expression.program import Op, Program, Step

__all__ = ["LEVEL_BITS", "KeyExpression", "QuietSteps", "quiet_layout", "step_name", "step_shape"]

LEVEL_BITS = 5


def quiet_layout(program: Program) -> StructLayout:
    """Values that do not depend on the destination, and that the others or the result need."""
    used = {operand for step in program.steps if step.late for operand in step[1:4] if operand >= 0} | {program.result}
    found = [number for number in sorted(used) if not _is_late(program.steps[number])]
    return StructLayout({step_name(program, number): step_shape(program.steps[number]) for number in found})


def _is_late(step: Step) -> bool:
    """Whether a step is computed from the destination; constants cost nothing there."""
    return step.late or step.op == Op.CONST


def step_name(program: Program, number: int) -> str:
    """Return the name of a step's signal."""
    return f"{program.steps[number].op.name.lower()}_{number}"


def step_shape(step: Step) -> Shape:
    """Return the shape that holds every value of a step."""
    width = max(step.high.bit_length(), (-step.low - 1).bit_length() if step.low < 0 else 0)
    return signed(width + 1) if step.low < 0 else unsigned(max(1, width))


class QuietSteps(Component):
    """What late operations need of the registers OWN and LEVEL.

    Combinational; the engine registers ``quiet`` at every edge.

    Parameters
    ----------
    program : Program
        The operations.
    """

    own: Signal
    level: Signal
    quiet: View

    def __init__(self, program: Program) -> None:
        self.program = program
        super().__init__(
            {"own": In(program.address_bits), "level": In(LEVEL_BITS), "quiet": Out(quiet_layout(program))}
        )

    def elaborate(self, platform: object) -> Module:
        """Build the operations that do not depend on the destination."""
        m = Module()
        steps = self.program.steps
        early = [number for number, step in enumerate(steps) if not step.late]
        values = _build(m, self.program, early, {Op.OWN: self.own, Op.LEVEL: self.level}, {})
        for number in early:
            name = step_name(self.program, number)
            if name in self.quiet.shape().members:
                m.d.comb += getattr(self.quiet, name).eq(values[number])
        return m


class KeyExpression(Component):
    """The value of an expression.

    Combinational, one destination per cycle; only ``dst`` is timing-critical.

    Parameters
    ----------
    program : Program
        The operations.
    """

    dst: Signal
    quiet: View
    value: Signal

    def __init__(self, program: Program) -> None:
        self.program = program
        super().__init__(
            {"dst": In(program.address_bits), "quiet": In(quiet_layout(program)), "value": Out(program.width)}
        )

    def elaborate(self, platform: object) -> Module:
        """Build the operations that depend on the destination."""
        m = Module()
        program = self.program
        known = {
            number: getattr(self.quiet, step_name(program, number))
            for number in range(len(program.steps))
            if step_name(program, number) in self.quiet.shape().members
        }
        late = [number for number, step in enumerate(program.steps) if _is_late(step)]
        values = _build(m, program, late, {Op.DST: self.dst}, known)
        m.d.comb += self.value.eq(values[program.result])
        return m


def _build(
    m: Module, program: Program, numbers: Iterable[int], inputs: dict[Op, Value], known: dict[int, Value]
) -> dict[int, Value]:
    """Add the steps `numbers`; `known` are values of others."""
    values = dict(known)
    for number in numbers:
        step = program.steps[number]
        if step.op == Op.CONST:
            values[number] = Const(step.v, step_shape(step))
            continue
        result = Signal(step_shape(step), name=step_name(program, number))
        operands = [values[each] for each in step[1:4] if each >= 0]
        if step.op == Op.ROM:
            _table(m, result, operands[0], program.roms[step.v])
        elif step.op in inputs:
            m.d.comb += result.eq(inputs[step.op])
        elif step.op in (Op.DIV, Op.MOD):
            quotient, rest = _divided(m, operands[0], program.steps[step.a], step.v, result.name)
            m.d.comb += result.eq(quotient if step.op == Op.DIV else rest)
        else:
            m.d.comb += result.eq(_operation(step, operands))
        values[number] = result
    return values


def _operation(step: Step, operands: list[Value]) -> Value:
    a, *others = operands
    match step.op:
        case Op.ADD:
            return a + others[0]
        case Op.SUB:
            return a - others[0]
        case Op.MUL:
            return a * others[0]
        case Op.EQ:
            return a == others[0]
        case Op.LT:
            return a < others[0]
        case Op.AND:
            return a & others[0]
        case Op.OR:
            return a | others[0]
        case Op.NOT:
            return ~a
        case Op.SELECT:
            return Mux(a, *others)
    assert step.op == Op.SHIFT
    return Cat(Const(0, step.v), a)


def _table(m: Module, result: Signal, index: Value, numbers: tuple[int, ...]) -> None:
    with m.Switch(index):
        for place, number in enumerate(numbers[: 1 << len(index)]):
            with m.Case(place):
                m.d.comb += result.eq(number)


def _divided(m: Module, value: Value, step: Step, divisor: int, name: str) -> tuple[Value, Value]:
    """Quotient, rounded down, and rest of a division by a constant: bits, or conditional subtractions."""
    if divisor & divisor - 1 == 0:
        places = divisor.bit_length() - 1
        wide = Signal(signed(max(len(value), places) + 1), name=f"{name}_wide")
        m.d.comb += wide.eq(value)
        return wide >> places, wide[:places]
    # a multiple of the divisor makes it at least 0
    shift = -(step.low // divisor) if step.low < 0 else 0
    most = step.high + shift * divisor
    rest: Value = Signal(unsigned(max(1, most.bit_length())), name=f"{name}_from")
    m.d.comb += rest.eq(value + shift * divisor)
    bits: list[Value] = []
    for place in reversed(range((most // divisor).bit_length())):
        large = Signal(name=f"{name}_q{place}")
        left = Signal(unsigned(max(1, min(most, (divisor << place) - 1).bit_length())), name=f"{name}_r{place}")
        m.d.comb += [large.eq(rest >= divisor << place), left.eq(Mux(large, rest - (divisor << place), rest))]
        bits.append(large)
        rest = left
    quotient = Cat(*reversed(bits)) if bits else Const(0, 1)
    return quotient - shift, rest
