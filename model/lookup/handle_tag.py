"""Node reduction as the thesis prints it (algorithm 1): Handle and getTag in a loop over digits, checked on a network.

Source: seed 004, algorithm 1, which overwrites its result; here the first Handle that holds decides. Definition:
docs/definitions/handle-tag.md.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.expression.syntax import ExpressionError
from hopforge.model.lookup.handle_tag_expression import VECTORS, HandleTagExpression, Names, Value

__all__ = ["KINDS", "LOOPS", "Conflict", "HandleTag", "HandleTagError", "Kind", "Loop", "ReductionFound", "check_on"]

Kind = Literal["mesh", "torus", "hyperx", "fattree"]
Loop = Literal["i", "ij"]
KINDS: tuple[str, ...] = get_args(Kind)
LOOPS: tuple[str, ...] = get_args(Loop)
MAX_DIGITS, MAX_PAIRS, MAX_STEPS, MAX_TAGS = 16, 1 << 20, 500_000_000, 1 << 16

Port = tuple[int | str, ...]


class HandleTagError(UserError, ValueError):
    """A function or a network that is no good.

    Attributes
    ----------
    key : str
        ``kind``, ``k``, ``function.tag`` and so on.
    reason : str
        What is wrong.
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


@dataclass(frozen=True)
class HandleTag:
    """A function of the thesis: the tag of a destination at a switch.

    For i in 0 … n − 1 (loop ``ij``: for each i all j in 0 … n − 1; loop ``i``: j = i), the first `handle` that is not 0
    returns `tag`; if there is none, `default` is returned.

    Parameters
    ----------
    handle, tag, default : str
        Expressions; i and j have no value in `default`.
    loop : str
        ``i`` or ``ij``.

    Raises
    ------
    HandleTagError
        An expression that is not accepted, or a loop that is not known.

    Examples
    --------
    >>> function = HandleTag("d[i] != c[i]", "(i, sign(d[i] - c[i]))", "(n, 0)")
    >>> function((1, 1), (1, 0), (3, 3)), function((1, 1), (1, 1), (3, 3))
    ((1, -1), (2, 0))
    """

    handle: str
    tag: str
    default: str
    loop: str = "i"
    _parsed: dict[str, HandleTagExpression] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.loop not in LOOPS:
            raise HandleTagError("function.loop", f"must be one of {', '.join(LOOPS)}, not {self.loop!r}")
        for name in ("handle", "tag", "default"):
            text = getattr(self, name)
            try:
                self._parsed[name] = HandleTagExpression(text, *([("n", "l")] if name == "default" else []))
            except ExpressionError as error:
                raise HandleTagError(f"function.{name}", error.placed(text.strip())) from None

    def steps(self, n: int) -> int:
        """Return the most operations for one pair of switch and destination with `n` digits."""
        rounds = n if self.loop == "i" else n * n
        return rounds * self._parsed["handle"].parts + max(self._parsed[name].parts for name in ("tag", "default"))

    def __call__(self, c: Sequence[int], d: Sequence[int], k: Sequence[int], level: int = 0) -> Value:
        """Return the tag.

        Parameters
        ----------
        c, d, k : sequences of int
            Digits of the switch and of the destination, and their radices; digit 0 first.
        level : int
            The name l.

        Raises
        ------
        HandleTagError
            What an expression cannot compute, with its place and the pair.
        """
        names: dict[str, int | tuple[int, ...]] = dict(zip(VECTORS, map(tuple, (c, d, k)), strict=True))
        names["n"], names["l"] = len(k), level
        name = "handle"
        try:
            for i in range(len(k)):
                for j in range(len(k)) if self.loop == "ij" else (i,):
                    names["i"], names["j"] = i, j
                    name = "handle"
                    if self._parsed[name].whole(names):
                        name = "tag"
                        return self._parsed[name](names)
            name = "default"
            return self._parsed[name](names)
        except ExpressionError as error:
            raise HandleTagError(f"function.{name}", self._with_pair(name, error, names)) from None

    def _with_pair(self, name: str, error: ExpressionError, names: Names) -> str:
        shown = ("c", "d", "l") if name == "default" else ("c", "d", "l", "i", "j")
        pair = ", ".join(f"{each} = {names[each]}" for each in shown)
        return f"{error.placed(self._parsed[name].text)} (with {pair})"


class Conflict(NamedTuple):
    """Two destinations of a switch with the same tag and different ports.

    Attributes
    ----------
    level, switch : int
        Place of the switch: its number in its level.
    first, second : int
        First destination that has the tag, and the first one after it whose port is another.
    tag : int or tuple
        The tag.
    ports : tuple of two ports
        Of both.
    """

    level: int
    switch: int
    first: int
    second: int
    tag: Value
    ports: tuple[Port, Port]


class ReductionFound(NamedTuple):
    """What a function does on a network.

    Attributes
    ----------
    tags : list
        In order of first use: switch after switch, destination after destination.
    table : int32[switch, destination]
        Number of the tag.
    levels : list of (int, int)
        Level, and number in it, of each switch.
    per_switch : int
        Most tags on one switch: entries of a cache that always hits once it is full.
    bad : Conflict or None
        The first one in order of switch, then of its second destination.
    """

    tags: list[Value]
    table: NDArray[np.int32]
    levels: list[tuple[int, int]]
    per_switch: int
    bad: Conflict | None

    @property
    def ok(self) -> bool:
        """Whether equal tags have equal ports at every switch."""
        return self.bad is None


def check_on(
    function: HandleTag, kind: str, k: Sequence[int], progress: Callable[[int, int], None] = lambda done, total: None
) -> ReductionFound:
    """Compute the tags of all destinations at all switches, and compare their ports.

    Parameters
    ----------
    function : HandleTag
        What is checked.
    kind : str
        mesh, torus (dimension order; half way around the sign of the difference decides), hyperx (one hop for each
        dimension, in order) or fattree (`k` = q, q, … with a digit more than the tree has above its leaves).
    k : sequence of int
        Radices of the digits, digit 0 first.
    progress : callable
        Called with (switches done, in all).

    Raises
    ------
    HandleTagError
        A network that is none or too large, or what the function cannot compute.
    """
    radices = _radices(function, kind, k)
    switches = list(_switches(kind, radices))
    destinations = list(_numbers(radices))
    tags: dict[Value, int] = {}
    table = np.zeros((len(switches), len(destinations)), np.int32)
    bad, most = None, 0
    for row, (level, number, c) in enumerate(switches):
        first: dict[int, int] = {}
        for column, d in enumerate(destinations):
            tag = function(c, d, radices, level)
            of = tags.setdefault(tag, len(tags))
            table[row, column] = of
            before = first.setdefault(of, column)
            if bad is None and before != column:
                ports = _port(kind, radices, level, c, destinations[before]), _port(kind, radices, level, c, d)
                if ports[0] != ports[1]:
                    bad = Conflict(level, number, before, column, tag, ports)
            if len(tags) > MAX_TAGS:
                raise HandleTagError("function.tag", f"more than {MAX_TAGS:,} tags: this reduces nothing")
        most = max(most, len(first))
        progress(row + 1, len(switches))
    return ReductionFound(list(tags), table, [(level, number) for level, number, _ in switches], most, bad)


def _radices(function: HandleTag, kind: str, k: Sequence[int]) -> tuple[int, ...]:
    if kind not in KINDS:
        raise HandleTagError("kind", f"must be one of {', '.join(KINDS)}, not {kind!r}")
    least = 2 if kind == "fattree" else 1
    if not least <= len(k) <= MAX_DIGITS:
        raise HandleTagError("k", f"must have {least} to {MAX_DIGITS} radices, not {len(k)}")
    if any(type(each) is not int or not 1 <= each <= MAX_PAIRS for each in k):
        raise HandleTagError("k", f"radices must be whole numbers from 1 to {MAX_PAIRS}, not {list(k)}")
    if kind == "fattree" and len(set(k)) > 1:
        raise HandleTagError("k", f"radices must be the same for every digit of a fattree, not {list(k)}")
    hosts = math.prod(k)
    pairs = hosts * (len(k) * hosts // k[0] if kind == "fattree" else hosts)
    if pairs > MAX_PAIRS:
        raise HandleTagError("k", f"at most {MAX_PAIRS:,} pairs of switch and destination, not {pairs:,}")
    steps = pairs * function.steps(len(k))
    if steps > MAX_STEPS:
        reason = f"at most {MAX_STEPS:,} operations, not {steps:,}: fewer switches, digits, or a shorter handle"
        raise HandleTagError("k", reason)
    return tuple(k)


def _numbers(radices: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the digits of 0, 1, …; digit 0 counts fastest."""
    for digits in itertools.product(*(range(radix) for radix in reversed(radices))):
        yield digits[::-1]


def _switches(kind: str, radices: tuple[int, ...]) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield level, number in the level, and digits of every switch."""
    if kind != "fattree":
        yield from ((0, number, c) for number, c in enumerate(_numbers(radices)))
        return
    for level in range(len(radices)):
        yield from ((level, number, (*c, 0)) for number, c in enumerate(_numbers(radices[:-1])))


def _port(kind: str, radices: tuple[int, ...], level: int, c: tuple[int, ...], d: tuple[int, ...]) -> Port:
    """Return the port by which a packet for `d` leaves switch `c`."""
    if kind == "fattree":
        above = any(c[i] != d[i + 1] for i in range(level, len(radices) - 1))
        return ("up" if above else "down", d[level])
    dimension = next((i for i in range(len(radices)) if c[i] != d[i]), None)
    if dimension is None:
        return ("local",)
    own, other, radix = c[dimension], d[dimension], radices[dimension]
    if kind == "hyperx":
        return (dimension, other)
    forward = other > own
    if kind == "torus" and 2 * abs(other - own) > radix:
        forward = not forward
    return (dimension, "+" if forward else "-")
