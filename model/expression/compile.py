"""From the text of an expression to its program: names, ranges and widths are checked, searches are written out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from hopforge.model.expression.names import INPUTS, Digit, Names, Table
from hopforge.model.expression.parse import RESERVED, parse
from hopforge.model.expression.program import Op, Program
from hopforge.model.expression.steps import MAX_BITS, Steps, Value
from hopforge.model.expression.syntax import (
    Binary,
    Call,
    Concat,
    Expression,
    ExpressionError,
    If,
    Index,
    Name,
    Node,
    Number,
    Search,
    Slice,
    Unary,
)

__all__ = ["MEMBER_BITS", "Compiled", "compile_expression"]

MEMBER_BITS = 4
"""Bits of a key above its value, for the member of an aggregated link."""

MAX_COUNT = 4096
"""Most indexes of a search."""


@dataclass(frozen=True)
class Compiled:
    """An expression of a network.

    Attributes
    ----------
    expression : Expression
        Its tree.
    names : Names
        The names of the network.
    program : Program
        Its operations.
    """

    expression: Expression
    names: Names
    program: Program

    def __hash__(self) -> int:
        """Hash the program, which everything follows from."""
        return hash(self.program)


def compile_expression(text: str, names: Names) -> Compiled:
    """Check an expression and write it out.

    Parameters
    ----------
    text : str
        The expression.
    names : Names
        What it can name.

    Raises
    ------
    ExpressionError
        Where it is wrong, and what was expected.

    Examples
    --------
    >>> compile_expression("if dst % 4 == 0 then {1:1, own[3:0]:4} else 7", Names(16)).program.width
    5
    """
    expression = parse(text)
    for name in names.constants:
        if name in INPUTS or name in RESERVED:
            raise ExpressionError(0, f"constant {name!r} has the name of something else; take another")
    writer = _Writer(names)
    scope: dict[str, _Part] = {
        name: writer.constant(value) if isinstance(value, int) else value for name, value in names.constants.items()
    }
    scope |= {"dst": writer.input(Op.DST), "own": writer.input(Op.OWN), "level": writer.input(Op.LEVEL)}
    scope["terminal"] = writer.constant(0)
    if names.terminal is not None:
        scope["terminal"] = writer.digit(scope["dst"], names.terminal)  # type: ignore[arg-type]
    if names.d:
        scope["d"] = _Digits("d", names.d, scope["dst"])  # type: ignore[arg-type]
    if names.c:
        scope["c"] = _Digits("c", names.c, scope["own"])  # type: ignore[arg-type]
    for position, name, node in expression.lets:
        if name in scope or name in INPUTS:
            raise ExpressionError(position, f"{name!r} has a value already")
        scope[name] = writer.value(node, scope)
    result = writer.value(expression.result, scope)
    limit = names.address_bits - MEMBER_BITS
    at = expression.result.position
    if result.low < 0:
        raise ExpressionError(at, f"the key must be at least 0; this one is {result.low} to {result.high}")
    if result.high.bit_length() > limit:
        raise ExpressionError(
            at, f"the key must have at most address_bits - {MEMBER_BITS} = {limit} bits, not {result.high.bit_length()}"
        )
    return Compiled(expression, names, writer.program(result))


class _Digits(NamedTuple):
    name: str
    digits: tuple[Digit, ...]
    word: Value


class _Rows(NamedTuple):
    """A table of tables of `columns` numbers, of which a value chooses one."""

    numbers: tuple[int, ...]
    columns: int
    at: Value


_Part = Value | _Digits | _Rows | Table
_Scope = Mapping[str, _Part]


class _Writer(Steps):
    """Writes out the tree of an expression."""

    def value(self, node: Node, scope: _Scope) -> Value:
        """Write out a part that has a value."""
        found = self._part(node, scope)
        if isinstance(found, Value):
            return found
        what = f"digits {found.name!r}" if isinstance(found, _Digits) else "a table"
        raise ExpressionError(node.position, f"expected a value, not {what}; choose one by [ ]")

    def _part(self, node: Node, scope: _Scope) -> _Part:
        self.at = node.position
        match node:
            case Number(value=number):
                return self.constant(number)
            case Name(name=name):
                return self._name(node, name, scope)
            case Index():
                return self._index(node, scope)
            case Slice():
                return self._slice(node, scope)
            case Unary():
                return self._unary(node, scope)
            case Binary():
                return self._binary(node, scope)
            case If():
                return self._if(node, scope)
            case Search():
                return self._search(node, scope)
            case Concat():
                return self._concat(node, scope)
            case Call(function="bits"):
                return self._bits(node.arguments[0], scope)
            case Call(function=function, arguments=(left, right)):
                return self.extreme(function, self.value(left, scope), self.value(right, scope))
        raise AssertionError(node)

    def _name(self, node: Node, name: str, scope: _Scope) -> _Part:
        if name not in scope:
            if name in ("d", "c"):
                raise ExpressionError(node.position, f"this network has no digits {name!r}; take bits of dst and own")
            known = ", ".join(sorted(scope))
            raise ExpressionError(node.position, f"unknown name {name!r}; known: {known}")
        return scope[name]

    def _constant(self, node: Node, scope: _Scope, what: str) -> int:
        found = self.value(node, scope)
        if not found.constant:
            raise ExpressionError(node.position, f"{what} must be a constant, not a value of {found.range}")
        return found.low

    def _truth(self, node: Node, scope: _Scope) -> Value:
        found = self.value(node, scope)
        if found.low < 0 or found.high > 1:
            raise ExpressionError(node.position, f"expected a truth (0 or 1), not a value of {found.range}; compare it")
        return found

    def _index(self, node: Index, scope: _Scope) -> _Part:
        base = self._part(node.base, scope)
        if isinstance(base, Value):
            raise ExpressionError(node.position, "expected digits or a table before [ ]; bits are [high:low]")
        if isinstance(base, _Digits):
            index = self._constant(node.index, scope, "the number of a digit")
            if not 0 <= index < len(base.digits):
                raise ExpressionError(
                    node.index.position, f"{base.name!r} has digits 0 to {len(base.digits) - 1}, not {index}"
                )
            return self.digit(base.word, base.digits[index])
        at = self.value(node.index, scope)
        most = base.columns if isinstance(base, _Rows) else len(base)
        if at.low < 0 or at.high >= most:
            raise ExpressionError(
                node.index.position, f"the table has numbers 0 to {most - 1}; the index is {at.range}"
            )
        self.at = node.position
        if isinstance(base, _Rows):
            return self._row(node, base, at)
        if at.constant:
            element = base[at.low]
            return self.constant(element) if isinstance(element, int) else element
        return self._table(base, at)

    def _table(self, base: Table, at: Value) -> Value | _Rows:
        """Choose from a table by a value; the rows of a table of tables lie one after the other."""
        if isinstance(base[0], int):
            return self.rom(base, at)
        flat: tuple[Any, ...] = tuple(number for row in base for number in row)  # type: ignore[union-attr]
        return _Rows(flat, len(base[0]), at)

    def _row(self, node: Index, rows: _Rows, at: Value) -> Value:
        self.at = node.position
        first = self.multiply(rows.at, self.constant(rows.columns))
        return self.rom(rows.numbers, self.sum(first, at))

    def _slice(self, node: Slice, scope: _Scope) -> Value:
        base = self.value(node.base, scope)
        high, low = (self._constant(part, scope, "the number of a bit") for part in (node.high, node.low))
        if base.low < 0:
            raise ExpressionError(node.position, f"bits of a value that can be negative ({base.range})")
        width = max(1, base.high.bit_length())
        if not 0 <= high < width:
            raise ExpressionError(node.high.position, f"the value has bits 0 to {width - 1}, not {high}")
        if not 0 <= low <= high:
            raise ExpressionError(node.low.position, f"expected a bit from 0 to {high}, not {low}")
        self.at = node.position
        found = self.modulo(self.divide(base, 1 << low), 1 << high - low + 1)
        return self.folded(found, base)

    def _unary(self, node: Unary, scope: _Scope) -> Value:
        if node.operator == "not":
            operand = self._truth(node.operand, scope)
            self.at = node.position
            return self.negation(operand)
        operand = self.value(node.operand, scope)
        self.at = node.position
        return self.difference(self.constant(0), operand)

    def _binary(self, node: Binary, scope: _Scope) -> Value:
        operator = node.operator
        take = self._truth if operator in ("and", "or") else self.value
        left, right = take(node.left, scope), take(node.right, scope)
        self.at = node.position
        match operator:
            case "+":
                return self.sum(left, right)
            case "-":
                return self.difference(left, right)
            case "*":
                return self.multiply(left, right)
            case "/" | "%":
                return self._division(operator, node, left, right)
            case "==":
                return self.equal(left, right)
            case "!=":
                return self.negation(self.equal(left, right))
            case "<":
                return self.less(left, right)
            case ">":
                return self.less(right, left)
            case "<=":
                return self.negation(self.less(right, left))
            case ">=":
                return self.negation(self.less(left, right))
            case "and":
                return self.both(left, right)
        return self.either(left, right)

    def _division(self, operator: str, node: Binary, left: Value, right: Value) -> Value:
        if not right.constant:
            raise ExpressionError(
                node.right.position, f"expected a constant after {operator!r}, not a value of {right.range}"
            )
        if right.low == 0:
            raise ExpressionError(node.position, "division by 0")
        if right.low < 0:
            raise ExpressionError(node.right.position, f"expected a number of at least 1, not {right.low}")
        found = self.divide(left, right.low) if operator == "/" else self.modulo(left, right.low)
        return self.folded(found, left)

    def _if(self, node: If, scope: _Scope) -> Value:
        condition = self._truth(node.condition, scope)
        if condition.constant:
            return self.value(node.chosen if condition.low else node.other, scope)
        chosen, other = self.value(node.chosen, scope), self.value(node.other, scope)
        self.at = node.position
        return self.select(condition, chosen, other)

    def _search(self, node: Search, scope: _Scope) -> Value:
        count = self._constant(node.count, scope, f"the limit of {node.kind!r}")
        if not 0 <= count <= MAX_COUNT:
            raise ExpressionError(
                node.count.position, f"the limit of {node.kind!r} must be 0 to {MAX_COUNT}, not {count}"
            )
        if node.index in INPUTS:
            raise ExpressionError(node.position, f"{node.index!r} is no name for an index; it has a value already")
        wanted = 0 if node.kind == "all" else 1
        decided: list[tuple[Value, Value]] = []  # conditions, in order, and what follows from them
        rest: Value | None = None
        for index in reversed(range(count)) if node.kind == "last" else range(count):
            inside = {**scope, node.index: self.constant(index)}
            condition = self._truth(node.condition, inside)
            if condition.constant and condition.low != wanted:
                continue
            follows = self.constant(wanted) if node.chosen is None else self.value(node.chosen, inside)
            if condition.constant:
                rest = follows
                break
            decided.append((condition if wanted else self.negation(condition), follows))
        if rest is None:
            rest = self.constant(1 - wanted) if node.other is None else self.value(node.other, scope)
        self.at = node.position
        for condition, follows in reversed(decided):
            rest = self.select(condition, follows, rest)
        return rest

    def _concat(self, node: Concat, scope: _Scope) -> Value:
        word = self.constant(0)
        for part, size in node.fields:
            field = self.value(part, scope)
            width = self._constant(size, scope, "a width")
            if not 1 <= width <= MAX_BITS:
                raise ExpressionError(size.position, f"a width must be 1 to {MAX_BITS}, not {width}")
            if field.low < 0:
                raise ExpressionError(part.position, f"a field must be at least 0; this one is {field.range}")
            if field.high >> width:
                need = field.high.bit_length()
                raise ExpressionError(
                    part.position, f"a value of {field.range} needs {need} bits, more than its width {width}"
                )
            self.at = node.position
            shifted = self.folded(
                self.add(Op.SHIFT, word.low << width, word.high << width, word.step, v=width), word
            )
            word = self.sum(shifted, field)
        return word

    def _bits(self, node: Node, scope: _Scope) -> Value:
        match node:
            case Index(base=Name(name=name)) if isinstance(base := scope.get(name), _Digits):
                index = self._constant(node.index, scope, "the number of a digit")
                self._index(node, scope)  # is there such a digit
                most = base.digits[index].modulus - 1
            case Name(name="dst" | "own" | "level" | "terminal"):
                most = self.value(node, scope).high
            case _:
                most = self._constant(node, scope, "what 'bits' is asked of (if no address or digit)")
                if most < 0:
                    raise ExpressionError(node.position, f"{most} is negative and has no width")
        return self.constant(max(1, most.bit_length()))
