"""The value of an expression, one at a time, as the definition says it (docs/definitions/key-expressions.md).

Follows the tree of the text; nothing is written out or made smaller beforehand. Mistakes in the text are found by
`compile.py`; here they are our own bugs.
"""

from typing import Any

from hopforge.model.expression.names import LEVELS, Names
from hopforge.model.expression.syntax import (
    Binary,
    Call,
    Concat,
    Expression,
    If,
    Index,
    Name,
    Node,
    Number,
    Search,
    Slice,
    Unary,
)

__all__ = ["evaluate"]


def evaluate(expression: Expression, names: Names, *, dst: int, own: int, level: int = 0) -> int:
    """Return the value of an expression.

    Parameters
    ----------
    expression : Expression
        The tree.
    names : Names
        Of the network.
    dst, own : int
        Destination and own address, of A bits.
    level : int
        Register LEVEL.

    Examples
    --------
    >>> from hopforge.model.expression.parse import parse
    >>> evaluate(parse("let x = dst % 5; if x > own then {1:1, x:3} else own"), Names(16), dst=24, own=3)
    12
    """
    known = {**names.constants, "dst": dst, "own": own, "level": level, "terminal": 0}
    known["d"] = tuple(digit.of(dst) for digit in names.d)
    known["c"] = tuple(digit.of(own) for digit in names.c)
    if names.terminal is not None:
        known["terminal"] = names.terminal.of(dst)
    for _, name, node in expression.lets:
        known[name] = _value(node, known, names)
    return int(_value(expression.result, known, names))


def _value(node: Node, known: dict[str, Any], names: Names) -> Any:
    def value(part: Node) -> Any:
        return _value(part, known, names)

    match node:
        case Number(value=number):
            return number
        case Name(name=name):
            return known[name]
        case Index(base=base, index=index):
            return value(base)[value(index)]
        case Slice(base=base, high=high, low=low):
            return value(base) >> value(low) & (1 << value(high) - value(low) + 1) - 1
        case Unary(operator="-", operand=operand):
            return -value(operand)
        case Unary(operand=operand):
            return 1 - value(operand)
        case Binary(operator=operator, left=left, right=right):
            return _operation(operator, value(left), value(right))
        case If(condition=condition, chosen=chosen, other=other):
            return value(chosen) if value(condition) else value(other)
        case Search():
            return _search(node, known, names)
        case Concat(fields=fields):
            word = 0
            for part, width in fields:
                word = word << value(width) | value(part)
            return word
        case Call(function="bits", arguments=(argument,)):
            return _width(argument, known, names)
        case Call(function="min", arguments=(left, right)):
            return min(value(left), value(right))
        case Call(function="max", arguments=(left, right)):
            return max(value(left), value(right))
    raise AssertionError(node)


def _operation(operator: str, left: int, right: int) -> int:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left // right
        case "%":
            return left % right
        case "==":
            return int(left == right)
        case "!=":
            return int(left != right)
        case "<":
            return int(left < right)
        case "<=":
            return int(left <= right)
        case ">":
            return int(left > right)
        case ">=":
            return int(left >= right)
        case "and":
            return int(left == 1 and right == 1)
    assert operator == "or"
    return int(left == 1 or right == 1)


def _search(node: Search, known: dict[str, Any], names: Names) -> int:
    indexes = range(_value(node.count, known, names))
    for index in reversed(indexes) if node.kind == "last" else indexes:
        inside = {**known, node.index: index}
        found = _value(node.condition, inside, names)
        if node.kind == "all" and not found:
            return 0
        if node.kind != "all" and found:
            return 1 if node.chosen is None else int(_value(node.chosen, inside, names))
    if node.other is None:
        return int(node.kind == "all")
    return int(_value(node.other, known, names))


def _width(node: Node, known: dict[str, Any], names: Names) -> int:
    """Bits of the greatest value of an input, or of a constant."""
    greatest = {"dst": (1 << names.address_bits) - 1, "own": (1 << names.address_bits) - 1, "level": LEVELS - 1}
    greatest["terminal"] = 0 if names.terminal is None else names.terminal.modulus - 1
    match node:
        case Index(base=Name(name="d" | "c" as which), index=index) if _is_input(which, known, names):
            digits = names.d if which == "d" else names.c
            most = digits[_value(index, known, names)].modulus - 1
        case Name(name=name) if name in greatest:
            most = greatest[name]
        case _:
            most = _value(node, known, names)
    return max(1, int(most).bit_length())


def _is_input(which: str, known: dict[str, Any], names: Names) -> bool:
    return isinstance(known[which], tuple)
