"""Numbers of a relation that runs in Python, as far as they are those of its machine code (`every_answer`).

Integers of Python have no end; those of machine code have 64 bits, and become floats where a variable is both. A
`Whole` is an integer up to 2^53 on either side, which all of these hold alike. An operation that leaves this range, or
that Python and machine code do otherwise, ends the exploration: nothing is proved with a number that is not true.
"""

import dis
from collections.abc import Callable, Iterator
from types import CodeType, ModuleType
from typing import Any

import numpy as np
from numba import types

#: largest number up to which integers of 64 bits, floats and those of Python are the same
MOST = 1 << 53
#: instructions that leave a truth value of Python's, which adds as an integer without end
_TRUTHS = ("UNARY_NOT", "IS_OP", "CONTAINS_OP")
_SHIFTS = 64
#: most bits of an unsigned integer that with a signed one makes a signed one
_NARROW = 32


class NotCoveredError(Exception):
    """All answers cannot be found: an unknown value becomes a port, a mask or an index, or there are too many ways."""


def _in_range(value: int) -> int:
    if not -MOST <= value <= MOST:
        bits = value.bit_length()
        raise NotCoveredError(f"it computes a number of {bits} bits, which machine code may hold otherwise")
    return value


def number(value: Any) -> Any:
    """Return what stands for the result of an operation: integers of Python and numpy become `Whole`."""
    if isinstance(value, Whole) or value is NotImplemented:
        return value
    if isinstance(value, bool | np.bool_):
        return TRUTHS[int(value)]
    if isinstance(value, int | np.signedinteger):
        return Whole(value)
    if isinstance(value, np.unsignedinteger) and value.itemsize <= _NARROW // 8:
        return Unsigned(value)
    if isinstance(value, float):
        return Real(value)
    if not isinstance(value, np.generic):
        return value
    raise NotCoveredError(f"it computes with numbers of the type {type(value).__name__}")


_make = int.__new__


def _checked(operation: Callable[..., Any]) -> Callable[..., Any]:
    def apply(self: "Whole", *others: Any) -> Any:
        if type(self) is Whole and (not others or type(others[0]) is Whole):  # nearly always: no step too many
            plain = operation(self, *others)
            if isinstance(plain, int):
                if -MOST <= plain <= MOST:
                    return _make(Whole, plain)
                return Whole(plain)
        for one in others:
            if isinstance(one, int):
                _in_range(int(one))
        found = number(operation(self, *others))
        if isinstance(found, Whole) and all(isinstance(one, Unsigned) for one in (self, *others)):
            return Unsigned(found)
        return found

    return apply


def _compared(operation: Callable[..., Any]) -> Callable[..., Any]:
    def apply(self: "Whole", other: Any) -> Any:
        if isinstance(other, int):
            _in_range(int(other))
        found = operation(self, other)
        return found if found is NotImplemented else TRUTHS[found]

    return apply


def _bitwise(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Of two truth values: one, too."""
    checked = _checked(operation)

    def apply(self: "Whole", other: Any) -> Any:
        if type(self) is Truth and type(other) is Truth:
            return TRUTHS[operation(self, other)]
        return checked(self, other)

    return apply


def _shift(operation: Callable[..., Any]) -> Callable[..., Any]:
    def apply(self: "Whole", other: Any) -> Any:
        left, right = (self, other) if operation in (int.__lshift__, int.__rshift__) else (other, self)
        if isinstance(left, int) and isinstance(right, int) and not 0 <= int(right) < _SHIFTS:
            raise NotCoveredError(f"it shifts by {int(right)}, and integers have 64 bits")
        return number(operation(self, other))

    return apply


class Whole(int):
    """An integer that both Python and machine code hold alike."""

    __slots__ = ()

    def __new__(cls, value: Any = 0) -> "Whole":
        """Return it; NotCoveredError where it is too large."""
        return _make(cls, _in_range(int(value)))

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        """Integers to a negative power are floats in Python, integers in machine code."""
        if modulo is not None or (isinstance(other, int) and int(other) < 0):
            raise NotCoveredError("it takes a negative power, or a power modulo something")
        if isinstance(other, int) and abs(int(self)) > 1 and int(other) > _SHIFTS:
            raise NotCoveredError("it takes a power beyond 64 bits")
        return number(int.__pow__(self, other))

    def __rpow__(self, other: Any, modulo: Any = None) -> Any:
        """As `__pow__`."""
        return Whole(other).__pow__(self, modulo) if isinstance(other, int) else NotImplemented

    def __round__(self, digits: Any = None) -> Any:
        """Round to whole numbers only."""
        if digits is not None:
            raise NotCoveredError("it rounds to digits")
        return self


class Unsigned(Whole):
    """One without a sign: what two of them make has none either."""

    __slots__ = ()

    def __new__(cls, value: Any = 0) -> "Unsigned":
        """Return it; NotCoveredError below 0, where machine code goes on from 2^64."""
        if int(value) < 0:
            raise NotCoveredError("it computes below 0 with unsigned integers")
        return super().__new__(cls, value)  # type: ignore[return-value]


class Truth(Whole):
    """0 or 1 as a comparison gives it, which machine code keeps as a truth value."""

    __slots__ = ()

    def __invert__(self) -> Any:
        """Machine code negates the truth value, Python gives −1 or −2."""
        raise NotCoveredError("it takes ~ of a truth value (write x == 0, or int(x) for its bits)")


#: 0 and 1 as truth values
TRUTHS = (Truth(0), Truth(1))


class Real(float):
    """A float of 64 bits, whose comparisons are truth values, and whose whole parts are `Whole`."""

    __slots__ = ()


def _real(operation: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: number(operation(*operands))


_ARITHMETIC = (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "neg",
    "pos", "abs",
)  # fmt: skip
for _name in (*_ARITHMETIC, "invert"):
    setattr(Whole, f"__{_name}__", _checked(getattr(int, f"__{_name}__")))
for _name in (*_ARITHMETIC, "pow", "rpow", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Real, f"__{_name}__", _real(getattr(float, f"__{_name}__")))
for _name in ("and", "rand", "or", "ror", "xor", "rxor"):
    setattr(Whole, f"__{_name}__", _bitwise(getattr(int, f"__{_name}__")))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Whole, f"__{_name}__", _compared(getattr(int, f"__{_name}__")))
for _name in ("lshift", "rlshift", "rshift", "rrshift"):
    setattr(Whole, f"__{_name}__", _shift(getattr(int, f"__{_name}__")))


def cast(kind: Any, unknown: type) -> Callable[[Any], Any]:
    """Return what stands for a type of numba's or numpy's that is called: ``int8(x)`` keeps eight bits."""
    if not isinstance(kind, types.Type):
        kind = types.float64 if kind is float else types.int64 if kind is int else _of_numpy(kind)

    integer: Any = kind if isinstance(kind, types.Integer) else None

    def convert(value: Any) -> Any:
        if isinstance(value, unknown):
            return value
        if kind == types.float64:
            return Real(value)
        if integer is None or not (integer.signed or integer.bitwidth <= _NARROW):
            raise NotCoveredError(f"it makes a number of type {kind}, which computes in its own way")
        whole = _in_range(int(value))
        if not isinstance(value, int) and not integer.minval <= whole <= integer.maxval:
            raise NotCoveredError(f"it makes {kind} of {value}")
        kept = (whole - integer.minval) % (1 << integer.bitwidth) + integer.minval
        return Whole(kept) if integer.signed else Unsigned(kept)

    return convert


def _of_numpy(kind: Any) -> Any:
    from numba import from_dtype  # noqa: PLC0415

    return from_dtype(np.dtype(kind))


def constants(value: Any) -> Any:
    """Return a constant of a function, or one that it names, with `Whole` for its integers."""
    if isinstance(value, tuple):
        return tuple(constants(one) for one in value)
    if isinstance(value, list):
        return [constants(one) for one in value]
    if isinstance(value, np.ndarray):
        return Numbers(value)
    return number(value) if isinstance(value, int | float | np.generic) else value


class Numbers:
    """An array of numpy's, element by element."""

    def __init__(self, values: Any) -> None:
        self.values, self.shape, self.size = values, constants(values.shape), Whole(values.size)

    def __len__(self) -> int:
        """Return the length of the first axis."""
        return len(self.values)

    def __getitem__(self, place: Any) -> Any:
        """Return an element, or a part."""
        return constants(self.values[place])

    def __setitem__(self, place: Any, value: Any) -> None:
        """Set an element."""
        self.values[place] = value


def code_of(code: CodeType, *, ours: bool = False) -> CodeType:
    """Return a function's code with `Whole` for the integers that stand in it."""
    for one in dis.get_instructions(code):
        if one.opname in _TRUTHS and not ours:
            raise NotCoveredError("it keeps what `not`, `is` or `in` gives (write x == 0 for not x)")
        if one.opname == "LOAD_SMALL_INT":
            raise NotCoveredError("this Python keeps small integers in its instructions")
    return code.replace(co_consts=tuple(constants(one) for one in code.co_consts))


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: number(function(*arguments))


def _pairs(values: Any, start: int = 0) -> Iterator[tuple[Whole, Any]]:
    return ((Whole(k), value) for k, value in enumerate(values, start))


#: functions of Python's that give integers
BUILTINS: dict[str, Callable[..., Any]] = {
    "range": lambda *bounds: map(Whole, range(*bounds)),
    "enumerate": _pairs,
    "bool": _plain(bool),
    "divmod": lambda a, b: (a // b, a % b),
    "pow": lambda a, b: a**b,
    "round": _plain(round),
    **{one.__name__: _plain(one) for one in (abs, len, max, min, sum)},
}


class Module:
    """A module of which a relation uses something: each is replaced as if it were named alone."""

    def __init__(self, module: ModuleType, replace: Callable[[Any], Any]) -> None:
        self._module, self._replace = module, replace

    def __getattr__(self, name: str) -> Any:
        """Return what stands for one of its values."""
        return self._replace(getattr(self._module, name))


def _as_library(value: Any) -> Any:
    if isinstance(value, Truth):
        return bool(value)
    return value.values if isinstance(value, Numbers) else value


def of_library(value: Any, unknown: type) -> Any:
    """Return what stands for a function or a type of ``math`` or ``numpy``."""
    if isinstance(value, type) and issubclass(value, np.generic):
        return cast(value, unknown)

    def call(*arguments: Any, **more: Any) -> Any:
        plain = [_as_library(one) for one in arguments]
        return constants(value(*plain, **more))

    return call
