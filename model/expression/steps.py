"""Steps of a compiled expression, and the range of the value of each."""

from typing import NamedTuple

from hopforge.model.expression.names import LEVELS, Digit, Names, Table
from hopforge.model.expression.program import Op, Program, Step
from hopforge.model.expression.syntax import ExpressionError

MAX_STEPS = 20_000
MAX_BITS = 62


class Value(NamedTuple):
    """A step, and the range of its value; `constant` if the text says it, not only its range."""

    step: int
    low: int
    high: int
    constant: bool = False

    @property
    def range(self) -> str:
        """Return the range as text."""
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"


class Steps:
    """Writes steps; the same operation on the same operands is one step, one on constants a constant.

    Attributes
    ----------
    names : Names
        The names of the network.
    at : int
        Position in the text of what is written now, for errors.
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self.at = 0
        self._steps: list[Step] = []
        self._known: dict[tuple[int, ...], int] = {}
        self._roms: dict[tuple[int, ...], int] = {}

    def add(self, op: Op, low: int, high: int, a: int = -1, b: int = -1, c: int = -1, v: int = 0) -> Value:
        """Return the step of an operation, whose value is from `low` to `high`.

        Raises
        ------
        ExpressionError
            Too many bits, or too many steps.
        """
        most = 1 << MAX_BITS
        if low < -most or high >= most:
            raise ExpressionError(self.at, f"a value of {low} to {high} needs more than {MAX_BITS} bits")
        key = (op, a, b, c, v)
        if key not in self._known:
            if len(self._steps) >= MAX_STEPS:
                raise ExpressionError(self.at, f"more than {MAX_STEPS} operations, searches written out")
            late = op == Op.DST or any(self._steps[each].late for each in (a, b, c) if each >= 0)
            self._known[key] = len(self._steps)
            self._steps.append(Step(op, a, b, c, v, low, high, late))
        return Value(self._known[key], low, high)

    def constant(self, number: int) -> Value:
        """Return a number of the text, or of the network."""
        return self.add(Op.CONST, number, number, v=number)._replace(constant=True)

    def input(self, op: Op) -> Value:
        """Return `dst`, `own` or `level`."""
        return self.add(op, 0, (LEVELS if op == Op.LEVEL else 1 << self.names.address_bits) - 1)

    def digit(self, word: Value, digit: Digit) -> Value:
        """Return a digit of an address."""
        return self.modulo(self.divide(word, digit.divisor), digit.modulus)

    def divide(self, a: Value, divisor: int) -> Value:
        """Return a / `divisor`, rounded down."""
        if divisor == 1:
            return a
        return self.add(Op.DIV, a.low // divisor, a.high // divisor, a.step, v=divisor)

    def modulo(self, a: Value, modulus: int) -> Value:
        """Return a mod `modulus`."""
        if a.low >= 0 and a.high < modulus:
            return a
        return self.add(Op.MOD, 0, modulus - 1, a.step, v=modulus)

    def program(self, result: Value) -> Program:
        """Return what `result` needs, the steps first that do not depend on the destination."""
        needed, waiting = set(), [result.step]
        while waiting:
            number = waiting.pop()
            if number not in needed:
                needed.add(number)
                waiting += [each for each in self._steps[number][1:4] if each >= 0]
        order = sorted(needed, key=lambda number: (self._steps[number].late, number))
        place = {number: index for index, number in enumerate(order)} | {-1: -1}
        steps = []
        roms: dict[int, int] = {}
        for number in order:
            step = self._steps[number]
            v = roms.setdefault(step.v, len(roms)) if step.op == Op.ROM else step.v
            steps.append(step._replace(a=place[step.a], b=place[step.b], c=place[step.c], v=v))
        tables = list(self._roms)
        return Program(self.names.address_bits, tuple(steps), place[result.step], tuple(tables[rom] for rom in roms))

    def rom(self, numbers: Table, at: Value) -> Value:
        """Return the number of a table at an index."""
        words: tuple[int, ...] = numbers  # type: ignore[assignment]
        rom = self._roms.setdefault(words, len(self._roms))
        return self.add(Op.ROM, min(words), max(words), at.step, v=rom)

    def folded(self, found: Value, *operands: Value) -> Value:
        """Return an operation on constants as a constant."""
        if not all(operand.constant for operand in operands):
            return found._replace(constant=False)
        step = self._steps[found.step]
        if step.op == Op.CONST:
            return found._replace(constant=True)
        return self.constant(self._computed(step))

    def _computed(self, step: Step) -> int:
        a, b = (self._steps[each].low if each >= 0 else 0 for each in (step.a, step.b))
        results = {
            Op.ADD: a + b, Op.SUB: a - b, Op.MUL: a * b, Op.EQ: int(a == b), Op.LT: int(a < b), Op.AND: a & b,
            Op.OR: a | b, Op.NOT: 1 - a, Op.SHIFT: a << step.v,
        }  # fmt: skip
        if step.op == Op.DIV:
            return a // step.v
        return a % step.v if step.op == Op.MOD else results[step.op]

    def sum(self, a: Value, b: Value) -> Value:
        """Return a + b."""
        return self.folded(self.add(Op.ADD, a.low + b.low, a.high + b.high, a.step, b.step), a, b)

    def difference(self, a: Value, b: Value) -> Value:
        """Return a − b."""
        return self.folded(self.add(Op.SUB, a.low - b.high, a.high - b.low, a.step, b.step), a, b)

    def multiply(self, a: Value, b: Value) -> Value:
        """Return a · b."""
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return self.folded(self.add(Op.MUL, min(corners), max(corners), a.step, b.step), a, b)

    def negation(self, a: Value) -> Value:
        """Return not a."""
        return self.folded(self.add(Op.NOT, 1 - a.high, 1 - a.low, a.step), a)

    def equal(self, a: Value, b: Value) -> Value:
        """Return a == b."""
        apart = a.high < b.low or b.high < a.low
        return self.folded(self.add(Op.EQ, 0, int(not apart), a.step, b.step), a, b)

    def less(self, a: Value, b: Value) -> Value:
        """Return a < b."""
        found = self.add(Op.LT, int(a.high < b.low), int(a.low < b.high), a.step, b.step)
        return self.folded(found, a, b)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """Return a where the condition is 1, else b."""
        if a.step == b.step:
            return a._replace(constant=False)
        low, high = min(a.low, b.low), max(a.high, b.high)
        return self.add(Op.SELECT, low, high, condition.step, a.step, b.step)

    def both(self, a: Value, b: Value) -> Value:
        """Return a and b."""
        return self.folded(self.add(Op.AND, a.low & b.low, a.high & b.high, a.step, b.step), a, b)

    def either(self, a: Value, b: Value) -> Value:
        """Return a or b."""
        return self.folded(self.add(Op.OR, a.low | b.low, a.high | b.high, a.step, b.step), a, b)

    def extreme(self, function: str, a: Value, b: Value) -> Value:
        """Return the `min` or the `max` of two."""
        least = function == "min"
        if a.constant and b.constant:
            return self.constant(min(a.low, b.low) if least else max(a.low, b.low))
        found = self.select(self.less(a, b), *((a, b) if least else (b, a)))
        choose = min if least else max
        low, high = choose(a.low, b.low), choose(a.high, b.high)
        if (low, high) == (found.low, found.high):
            return found
        # the range of a choice is wider than that of the less or the greater
        return self._narrowed(found, low, high)

    def _narrowed(self, found: Value, low: int, high: int) -> Value:
        step = self._steps[found.step]
        if step.op == Op.SELECT:
            self._steps[found.step] = step._replace(low=low, high=high)
        return found._replace(low=low, high=high)
