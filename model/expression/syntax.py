"""What an expression is made of, as a tree; every part knows where it stands in the text."""

from dataclasses import dataclass
from typing import Literal

from hopforge.model.errors import UserError

__all__ = [
    "Binary", "Call", "Concat", "Expression", "ExpressionError", "If", "Index", "Name", "Node", "Number", "Search",
    "Slice", "Unary",
]  # fmt: skip


class ExpressionError(UserError, ValueError):
    """A mistake in an expression.

    Attributes
    ----------
    position : int
        Place of the character in the text, from 0.
    reason : str
        What is wrong.
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason

    def placed(self, text: str) -> str:
        """Return the reason with line and column (from 1); a text of one line needs its column only."""
        before = text[: self.position]
        column = self.position - (before.rfind("\n") + 1) + 1
        line = f"line {before.count(chr(10)) + 1}, " if "\n" in text.strip("\n") else ""
        return f"{line}column {column}: {self.reason}"


@dataclass(frozen=True)
class Node:
    """Part of an expression; `position` is where it begins in the text."""

    position: int


@dataclass(frozen=True)
class Number(Node):
    """A number in the text."""

    value: int


@dataclass(frozen=True)
class Name(Node):
    """A name."""

    name: str


@dataclass(frozen=True)
class Index(Node):
    """``base[index]``: a digit, or an element of a table."""

    base: Node
    index: Node


@dataclass(frozen=True)
class Slice(Node):
    """``base[high:low]``: some bits."""

    base: Node
    high: Node
    low: Node


@dataclass(frozen=True)
class Unary(Node):
    """``-x`` or ``not x``."""

    operator: str
    operand: Node


@dataclass(frozen=True)
class Binary(Node):
    """Two operands with an operator between."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True)
class If(Node):
    """``if condition then chosen else other``."""

    condition: Node
    chosen: Node
    other: Node


@dataclass(frozen=True)
class Search(Node):
    """``first i < count where condition then chosen else other``; `any` and `all` have truths there."""

    kind: Literal["first", "last", "any", "all"]
    index: str
    count: Node
    condition: Node
    chosen: Node | None = None
    other: Node | None = None


@dataclass(frozen=True)
class Concat(Node):
    """``{a:3, b:4}``: values and their widths, most significant first."""

    fields: tuple[tuple[Node, Node], ...]


@dataclass(frozen=True)
class Call(Node):
    """``min(a, b)``."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Expression:
    """A whole text: names that are given, in order, and the result."""

    text: str
    lets: tuple[tuple[int, str, Node], ...]
    result: Node
