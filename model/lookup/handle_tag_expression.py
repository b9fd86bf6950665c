"""Expressions of Handle and getTag: Python's grammar, of which a whitelist is read; nothing is ever executed.

Definition: docs/definitions/handle-tag.md. The tree of Python's parser becomes functions of ours, one for each part.
"""

import ast
import operator
import warnings
from collections.abc import Callable, Mapping

from hopforge.model.expression.syntax import ExpressionError

__all__ = ["VECTORS", "HandleTagExpression", "Names", "Value"]

Value = int | tuple["Value", ...]
"""A result: a whole number, or a tuple of results."""

Names = Mapping[str, int | tuple[int, ...]]
"""Values of the names; c, d and k are vectors."""

LONGEST_TEXT, MAX_DEPTH, MAX_BITS, MAX_ITEMS = 1000, 40, 62, 16
VECTORS = ("c", "d", "k")
NUMBERS = ("n", "l", "i", "j")

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
_DIVIDING: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_SHIFTING: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[int], int]] = {
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Invert: operator.invert, ast.Not: lambda value: int(not value),
}  # fmt: skip
_COMPARING: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_FUNCTIONS: dict[str, tuple[Callable[..., int], int, int]] = {
    "abs": (abs, 1, 1), "sign": (lambda value: (value > 0) - (value < 0), 1, 1), "min": (min, 2, 99),
    "max": (max, 2, 99),
}  # fmt: skip
_ACCEPTED = (
    "whole numbers, tuples, n, i, j, l, digits of c, d and k, + - * // % & | ^ << >> ~, comparisons, and, or, not, "
    "x if p else y, abs, min, max, sign"
)

_Whole = Callable[[Names], int]
_Any = Callable[[Names], Value]


class HandleTagExpression:
    """An expression over the digits of a switch and of a destination.

    Parameters
    ----------
    text : str
        What is read: at most 1000 ASCII characters, 40 operations inside each other, 16 items of tuples.
    names : tuple of str
        Numbers that it may name, of n, i, j, l.

    Attributes
    ----------
    parts : int
        Operations, names and numbers in it: a measure of the time that it takes.

    Raises
    ------
    ExpressionError
        Something that is not accepted, with its place.

    Examples
    --------
    >>> HandleTagExpression("(1, d[1] // 2)")({"d": (0, 7)})
    (1, 3)
    """

    def __init__(self, text: str, names: tuple[str, ...] = NUMBERS) -> None:
        self.text = text.strip()
        self.parts = self._items = 0
        self._names = names
        self._lines = [0]
        for line in self.text.split("\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)
        self._function = self._any(self._tree(), 0)

    def __call__(self, names: Names) -> Value:
        """Return the value.

        Raises
        ------
        ExpressionError
            Division by 0 or less, negative shift, subscript outside a vector, a result of more than 62 bits.
        """
        return self._function(names)

    def whole(self, names: Names) -> int:
        """Return the value, which must be a whole number."""
        return self._checked(self._function(names), 0)

    # --- reading

    def _tree(self) -> ast.expr:
        text = self.text
        if len(text) > LONGEST_TEXT:
            raise ExpressionError(LONGEST_TEXT, f"at most {LONGEST_TEXT} characters, not {len(text)}")
        strange = next((at for at, one in enumerate(text) if not (" " <= one <= "~" or one == "\n")), None)
        if strange is not None:  # Python takes letters of other alphabets for those of ASCII
            raise ExpressionError(strange, f"character {text[strange]!r} has no meaning here")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # "1if 2else 3"
                return ast.parse(text, mode="eval").body
        except SyntaxError as error:
            at = self._lines[min(max((error.lineno or 1) - 1, 0), len(self._lines) - 1)] + max(
                (error.offset or 1) - 1, 0
            )
            raise ExpressionError(min(at, len(text)), f"no expression: {error.msg}") from None
        except (ValueError, MemoryError, RecursionError, Warning) as error:
            raise ExpressionError(0, f"no expression: {str(error) or 'too many parts inside each other'}") from None

    def _at(self, node: ast.expr) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def _any(self, node: ast.expr, depth: int) -> _Any:
        """Return the function of a part that may be a tuple."""
        if isinstance(node, ast.Tuple):
            self._count(node, depth)
            self._items += len(node.elts)
            if self._items > MAX_ITEMS:
                raise ExpressionError(self._at(node), f"items of tuples: more than {MAX_ITEMS}")
            items = [self._any(item, depth + 1) for item in node.elts]
            return lambda names: tuple(item(names) for item in items)
        if isinstance(node, ast.IfExp):
            self._count(node, depth)
            condition = self._whole(node.test, depth + 1)
            chosen, other = self._any(node.body, depth + 1), self._any(node.orelse, depth + 1)
            return lambda names: chosen(names) if condition(names) else other(names)
        return self._whole(node, depth)

    def _count(self, node: ast.expr, depth: int) -> None:
        self.parts += 1
        if depth > MAX_DEPTH:
            raise ExpressionError(self._at(node), f"operations inside each other: more than {MAX_DEPTH}")

    def _whole(self, node: ast.expr, depth: int) -> _Whole:
        """Return the function of a part that must be a whole number."""
        self._count(node, depth)
        at = self._at(node)
        if isinstance(node, ast.Constant) and type(node.value) is int:
            value = self._checked(node.value, at)
            return lambda _: value
        if isinstance(node, ast.Name):
            return self._number(node.id, at)
        if isinstance(node, ast.Subscript):
            return self._digit(node, at, depth)
        if isinstance(node, ast.UnaryOp):
            operand, act = self._whole(node.operand, depth + 1), _UNARY[type(node.op)]
            return lambda names: self._checked(act(operand(names)), at)
        if isinstance(node, ast.BinOp):
            return self._binary(node, at, depth)
        if isinstance(node, ast.Compare):
            return self._comparison(node, depth)
        if isinstance(node, ast.BoolOp):
            parts = [self._whole(part, depth + 1) for part in node.values]
            if isinstance(node.op, ast.And):
                return lambda names: int(all(part(names) for part in parts))
            return lambda names: int(any(part(names) for part in parts))
        if isinstance(node, ast.Call):
            return self._call(node, at, depth)
        if isinstance(node, ast.IfExp):  # inside arithmetic
            found = self._any(node, depth)
            return lambda names: self._checked(found(names), at)
        if isinstance(node, ast.Tuple):
            raise ExpressionError(at, "a tuple has no place in arithmetic")
        words = ast.get_source_segment(self.text, node) or type(node).__name__
        raise ExpressionError(at, f"{words[:40]!r} is not accepted: only {_ACCEPTED}")

    def _number(self, name: str, at: int) -> _Whole:
        if name in VECTORS:
            raise ExpressionError(at, f"{name} is a vector: name one of its digits, as {name}[0]")
        if name not in self._names:
            why = "has a value in handle and tag only" if name in NUMBERS else "is no name"
            raise ExpressionError(at, f"{name[:40]!r} {why}: only {', '.join(self._names)}, c[…], d[…], k[…]")

        def number(names: Names) -> int:
            if name not in names:
                raise ExpressionError(at, f"{name} has no value here")
            return self._checked(names[name], at)

        return number

    def _digit(self, node: ast.Subscript, at: int, depth: int) -> _Whole:
        if not (isinstance(node.value, ast.Name) and node.value.id in VECTORS):
            raise ExpressionError(at, "only c, d and k have subscripts")
        if isinstance(node.slice, ast.Slice | ast.Tuple):
            raise ExpressionError(at, "a subscript is one whole number")
        name, index = node.value.id, self._whole(node.slice, depth + 1)

        def digit(names: Names) -> int:
            vector, place = names.get(name, ()), index(names)
            if not isinstance(vector, tuple) or not 0 <= place < len(vector):
                most = len(vector) - 1 if isinstance(vector, tuple) else -1
                raise ExpressionError(at, f"subscript of {name} must be 0 to {most}, not {place}")
            return vector[place]

        return digit

    def _binary(self, node: ast.BinOp, at: int, depth: int) -> _Whole:
        kind = type(node.op)
        left, right = self._whole(node.left, depth + 1), self._whole(node.right, depth + 1)
        if kind in _BINARY:
            act = _BINARY[kind]
            return lambda names: self._checked(act(left(names), right(names)), at)
        if kind in _DIVIDING:
            return self._bounded(_DIVIDING[kind], left, right, (1, "a divisor must be at least 1", at))
        if kind in _SHIFTING:
            return self._bounded(_SHIFTING[kind], left, right, (0, "a shift must be 0 to 62", at))
        words = {ast.Pow: "**", ast.Div: "/ (// rounds down)", ast.MatMult: "@"}
        raise ExpressionError(at, f"operator {words.get(kind, kind.__name__)} is not accepted: only {_ACCEPTED}")

    def _bounded(
        self, act: Callable[[int, int], int], left: _Whole, right: _Whole, limit: tuple[int, str, int]
    ) -> _Whole:
        """Return the function of a division or a shift, whose right side has limits."""
        least, reason, at = limit
        most = MAX_BITS if least == 0 else 1 << MAX_BITS

        def found(names: Names) -> int:
            first, second = left(names), right(names)
            if not least <= second <= most:
                raise ExpressionError(at, f"{reason}, not {second}")
            return self._checked(act(first, second), at)

        return found

    def _comparison(self, node: ast.Compare, depth: int) -> _Whole:
        for kind in map(type, node.ops):
            if kind not in _COMPARING:
                raise ExpressionError(self._at(node), f"comparison {kind.__name__} is not accepted: only {_ACCEPTED}")
        first = self._whole(node.left, depth + 1)
        rest = [
            (_COMPARING[type(each)], self._whole(operand, depth + 1))
            for each, operand in zip(node.ops, node.comparators, strict=True)
        ]

        def compared(names: Names) -> int:
            left = first(names)
            for holds, operand in rest:
                right = operand(names)
                if not holds(left, right):
                    return 0
                left = right
            return 1

        return compared

    def _call(self, node: ast.Call, at: int, depth: int) -> _Whole:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in _FUNCTIONS or node.keywords:
            raise ExpressionError(at, f"only the functions {', '.join(_FUNCTIONS)} are called, with values")
        act, least, most = _FUNCTIONS[name]
        if not least <= len(node.args) <= most:
            wanted = "1 value" if most == 1 else f"{least} to {most} values"
            raise ExpressionError(at, f"{name} takes {wanted}, not {len(node.args)}")
        arguments = [self._whole(argument, depth + 1) for argument in node.args]
        return lambda names: self._checked(act(*[argument(names) for argument in arguments]), at)

    @staticmethod
    def _checked(value: object, at: int) -> int:
        if not isinstance(value, int):
            raise ExpressionError(at, "must be a whole number, not a tuple")
        if value.bit_length() > MAX_BITS:
            raise ExpressionError(at, f"numbers have at most {MAX_BITS} bits")
        return value
