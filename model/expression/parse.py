"""The text of an expression as a tree."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

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

__all__ = ["FUNCTIONS", "LONGEST_TEXT", "MAX_DEPTH", "RESERVED", "parse"]

LONGEST_TEXT = 10_000
MAX_DEPTH, MAX_TREE = 30, 200
FUNCTIONS = {"bits": 1, "min": 2, "max": 2}
"""Functions and their number of arguments."""

_SEARCHES = ("first", "last", "any", "all")
RESERVED = frozenset({"let", "if", "then", "else", "where", "or", "and", "not", *_SEARCHES, *FUNCTIONS})
_TOKEN = re.compile(
    r"(?P<space>(?:\s|#[^\n]*)+)|(?P<number>0x[0-9a-fA-F]+|0b[01]+|[0-9]+)|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<sign>==|!=|<=|>=|[-+*/%<>()\[\]{}:;,=])",
    re.ASCII,
)
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


class _Token(NamedTuple):
    position: int
    kind: str
    text: str


def parse(text: str) -> Expression:
    """Read the text of an expression.

    Raises
    ------
    ExpressionError
        Where it is wrong, and what was expected there.

    Examples
    --------
    >>> parse("d[0] + 1").result.operator
    '+'
    """
    if len(text) > LONGEST_TEXT:
        raise ExpressionError(LONGEST_TEXT, f"an expression has at most {LONGEST_TEXT} characters, not {len(text)}")
    return _Parser(text).whole()


def _tokens(text: str) -> list[_Token]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionError(at, f"character {text[at]!r} has no meaning here")
        kind = match.lastgroup or ""
        if kind != "space":
            found.append(_Token(at, kind, match[0]))
        at = match.end()
        if kind == "number" and at < len(text) and (text[at].isalnum() or text[at] == "_"):
            raise ExpressionError(at, f"expected the end of the number {match[0]}, not {text[at]!r}")
    return [*found, _Token(len(text), "end", "the end")]


def _parts(value: object) -> Iterator[Node]:
    """Yield the nodes right below a node, or in nested tuples."""
    values = value if isinstance(value, tuple) else vars(value).values()
    for each in values:
        if isinstance(each, Node):
            yield each
        elif isinstance(each, tuple):
            yield from _parts(each)


def _check_depth(node: Node) -> None:
    """Refuse a tree that is deeper than what reads it can follow, as that of a long sum is."""
    layer = [node]
    for _ in range(MAX_TREE):
        layer = [part for each in layer for part in _parts(each)]
        if not layer:
            return
    raise ExpressionError(layer[0].position, f"operations on operations: more than {MAX_TREE}")


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0
        self._depth = 0

    # --- tokens

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _is(self, *texts: str) -> bool:
        return self._next.kind != "end" and self._next.text in texts

    def _take(self) -> _Token:
        token = self._next
        self._at += 1
        return token

    def _expect(self, text: str, where: str) -> _Token:
        if not self._is(text):
            raise self._wrong(f"{text!r} {where}")
        return self._take()

    def _wrong(self, expected: str) -> ExpressionError:
        token = self._next
        found = token.text if token.kind == "end" else repr(token.text)
        return ExpressionError(token.position, f"expected {expected}, not {found}")

    def _new_name(self, what: str) -> _Token:
        if self._next.kind != "word" or self._next.text in RESERVED:
            raise self._wrong(what)
        return self._take()

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError(self._next.position, f"expressions inside each other: more than {MAX_DEPTH}")

    # --- grammar, what binds least first

    def whole(self) -> Expression:
        lets = []
        while self._is("let"):
            self._take()
            name = self._new_name("a name after 'let'")
            self._expect("=", f"after 'let {name.text}'")
            lets.append((name.position, name.text, self._expression()))
            self._expect(";", f"at the end of 'let {name.text} ='")
        result = self._expression()
        if self._next.kind != "end":
            raise self._wrong("an operator or the end")
        for node in (*(node for _, _, node in lets), result):
            _check_depth(node)
        return Expression(self._text, tuple(lets), result)

    def _expression(self) -> Node:
        self._enter()
        if self._is("if"):
            found = self._if()
        elif self._is(*_SEARCHES):
            found = self._search()
        else:
            found = self._or()
        self._depth -= 1
        return found

    def _if(self) -> Node:
        start = self._take().position
        condition = self._expression()
        self._expect("then", "after the condition of 'if'")
        chosen = self._expression()
        self._expect("else", "after the value of 'then'")
        return If(start, condition, chosen, self._expression())

    def _search(self) -> Node:
        start, _, kind = self._take()
        index = self._new_name(f"an index after {kind!r}").text
        self._expect("<", f"after '{kind} {index}'")
        count = self._sum()
        self._expect("where", f"after the limit of {kind!r}")
        condition = self._expression()
        if kind in ("any", "all"):
            return Search(start, kind, index, count, condition)  # type: ignore[arg-type]
        self._expect("then", f"after the condition of {kind!r}")
        chosen = self._expression()
        self._expect("else", "after the value of 'then'")
        return Search(start, kind, index, count, condition, chosen, self._expression())  # type: ignore[arg-type]

    def _chain(self, operand: Callable[[], Node], *operators: str) -> Node:
        found = operand()
        while self._is(*operators):
            token = self._take()
            found = Binary(token.position, token.text, found, operand())
        return found

    def _or(self) -> Node:
        return self._chain(self._and, "or")

    def _and(self) -> Node:
        return self._chain(self._not, "and")

    def _not(self) -> Node:
        if not self._is("not"):
            return self._comparison()
        self._enter()
        found = Unary(self._take().position, "not", self._not())
        self._depth -= 1
        return found

    def _comparison(self) -> Node:
        left = self._sum()
        if not self._is(*_COMPARISONS):
            return left
        token = self._take()
        found = Binary(token.position, token.text, left, self._sum())
        if self._is(*_COMPARISONS):
            raise ExpressionError(self._next.position, "comparisons do not chain; join two by 'and'")
        return found

    def _sum(self) -> Node:
        return self._chain(self._product, "+", "-")

    def _product(self) -> Node:
        return self._chain(self._sign, "*", "/", "%")

    def _sign(self) -> Node:
        if not self._is("-"):
            return self._postfix()
        self._enter()
        found = Unary(self._take().position, "-", self._sign())
        self._depth -= 1
        return found

    def _postfix(self) -> Node:
        found = self._primary()
        while self._is("["):
            self._take()
            first = self._expression()
            if self._is(":"):
                self._take()
                found = Slice(found.position, found, first, self._expression())
            else:
                found = Index(found.position, found, first)
            self._expect("]", "after an index")
        return found

    def _primary(self) -> Node:
        token = self._next
        if token.kind == "number":
            return Number(self._take().position, int(token.text, 0 if token.text[:2] in ("0x", "0b") else 10))
        if token.text in FUNCTIONS and token.kind == "word":
            return self._call()
        if token.kind == "word" and token.text not in RESERVED:
            return Name(self._take().position, token.text)
        if self._is("("):
            self._take()
            found = self._expression()
            self._expect(")", "after an expression in brackets")
            return found
        if self._is("{"):
            return self._concat()
        raise self._wrong("a value")

    def _call(self) -> Node:
        token = self._take()
        self._expect("(", f"after {token.text!r}")
        arguments = [self._expression()]
        while self._is(","):
            self._take()
            arguments.append(self._expression())
        self._expect(")", f"after the arguments of {token.text!r}")
        if len(arguments) != FUNCTIONS[token.text]:
            words = f"{FUNCTIONS[token.text]} value{'s' if FUNCTIONS[token.text] > 1 else ''}"
            raise ExpressionError(token.position, f"{token.text!r} takes {words}, not {len(arguments)}")
        return Call(token.position, token.text, tuple(arguments))

    def _concat(self) -> Node:
        start = self._take().position
        fields = [self._field()]
        while self._is(","):
            self._take()
            fields.append(self._field())
        self._expect("}", "or ',' after a width")
        return Concat(start, tuple(fields))

    def _field(self) -> tuple[Node, Node]:
        value = self._expression()
        self._expect(":", "and a width after a value in '{ }'")
        return value, self._sum()
