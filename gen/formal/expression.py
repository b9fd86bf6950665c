"""Proofs for all inputs that the logic of a key's expression is what its text says.

The text is written here a second time, in words of 48 or 64 bits without any ranges, from its tree: what is narrow in
`hw.keys.expression`, shared, or divided by subtractions, is wide here, and a quotient is any number that fulfils its
definition.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed

from hopforge.gen.formal.reduction import Claim, Proof
from hopforge.hw.keys.expression import LEVEL_BITS, KeyExpression, QuietSteps, step_name, step_shape
from hopforge.model.config import Config, parse_config
from hopforge.model.expression.compile import Compiled
from hopforge.model.expression.names import Digit
from hopforge.model.expression.program import Op
from hopforge.model.expression.syntax import (
    Binary,
    Call,
    Concat,
    If,
    Index,
    Name,
    Node,
    Number,
    Search,
    Slice,
    Unary,
)

_GATES = (Op.EQ, Op.LT, Op.SELECT, Op.ADD, Op.SUB, Op.MUL)
"""Operations whose output a fault can hold, what is best first."""

__all__ = ["configured_proof", "expression_proof", "shipped_proofs"]


class _ExpressionClaim(Claim):
    """Quiet and late steps against the tree.

    Attributes
    ----------
    zero : Signal
        An input that is assumed to be 0.
    offset : Signal
        What is added to the logic's result: 0, unless a fault is planted here. No constant, which yosys would fold.
    """

    def __init__(self, compiled: Compiled) -> None:
        super().__init__()
        self.compiled = compiled
        self.zero = Signal()
        self.offset = Signal()
        a = compiled.names.address_bits
        self.dst = Signal(a)
        self.own = Signal(a)
        self.level = Signal(LEVEL_BITS)
        self.tree = _Tree(compiled, self.dst, self.own, self.level)
        self.inputs = [self.dst, self.own, self.level, self.zero, *self.tree.quotients]

    def elaborate(self, platform: object) -> Module:
        """Connect hardware and definition."""
        m = Module()
        program = self.compiled.program
        m.submodules.early = early = QuietSteps(program)
        m.submodules.late = late = KeyExpression(program)
        m.d.comb += [
            early.own.eq(self.own),
            early.level.eq(self.level),
            late.dst.eq(self.dst),
            late.quiet.eq(early.quiet),
            *self.tree.statements,
            self.assumed.eq(Cat(~self.zero, *self.tree.assumptions).all()),
            self.offset.eq(self.zero & self.dst[0]),
            self.equal.eq(late.value + self.offset == self.tree.result),
        ]
        return m


class _Tree:
    """The value of a tree in words; a constant is a number."""

    def __init__(self, compiled: Compiled, dst: Value, own: Value, level: Value) -> None:
        self.names = compiled.names
        self.width = 64 if compiled.names.address_bits > 20 else 48
        self.quotients: list[Value] = []
        self.statements: list[Any] = []
        self.assumptions: list[Value] = []
        known: dict[str, Any] = dict(self.names.constants)
        known |= {"dst": self.word(dst), "own": self.word(own), "level": self.word(level), "terminal": 0}
        known["d"] = tuple(self.digit(known["dst"], digit) for digit in self.names.d)
        known["c"] = tuple(self.digit(known["own"], digit) for digit in self.names.c)
        if self.names.terminal is not None:
            known["terminal"] = self.digit(known["dst"], self.names.terminal)
        for _, name, node in compiled.expression.lets:
            known[name] = self.of(node, known)
        self.result = self.word(self.of(compiled.expression.result, known))

    def word(self, value: Any) -> Value:
        """Return a value as a word of its own."""
        found = Signal(signed(self.width))
        self.statements.append(found.eq(value))
        return found

    def digit(self, address: Value, digit: Digit) -> Any:
        """Return a digit of an address."""
        return self.modulo(self.divided(address, digit.divisor), digit.modulus)

    def divided(self, value: Any, divisor: int) -> Any:
        """Return q with 0 ≤ value − q · divisor < divisor."""
        if isinstance(value, int):
            return value // divisor
        quotient = Signal(signed(self.width - divisor.bit_length()))
        self.quotients.append(quotient)
        rest = self.word(value - self.word(quotient * divisor))
        self.assumptions += [rest >= 0, rest < divisor]
        return self.word(quotient)

    def modulo(self, value: Any, divisor: int) -> Any:
        """Return what remains of a value."""
        if isinstance(value, int):
            return value % divisor
        return self.word(value - self.word(self.divided(value, divisor) * divisor))

    def select(self, condition: Any, chosen: Any, other: Any) -> Any:
        """Return one of two values; a condition that is a number has chosen already."""
        return self.word(Mux(condition != 0, chosen, other))

    def of(self, node: Node, known: dict[str, Any]) -> Any:
        """Return the value of a part."""
        match node:
            case Number(value=number):
                return number
            case Name(name=name):
                return known[name]
            case Index(base=base, index=index):
                return self.element(self.of(base, known), self.of(index, known))
            case Slice(base=base, high=high, low=low):
                h, w = self.of(high, known), self.of(low, known)
                value = self.of(base, known)
                if isinstance(value, int):
                    return value >> w & (1 << h - w + 1) - 1
                return self.word(value[w : h + 1])
            case Unary(operator=operator, operand=operand):
                value = self.of(operand, known)
                found = -value if operator == "-" else 1 - value
                return found if isinstance(value, int) else self.word(found)
            case Binary():
                return self.operation(node.operator, self.of(node.left, known), self.of(node.right, known))
            case If(condition=condition, chosen=chosen, other=other):
                truth = self.of(condition, known)
                if isinstance(truth, int):
                    return self.of(chosen if truth else other, known)
                return self.select(truth, self.of(chosen, known), self.of(other, known))
            case Search():
                return self.search(node, known)
            case Concat(fields=fields):
                word: Any = 0
                for part, width in fields:
                    word = self.operation("+", self.operation("*", word, 1 << self.of(width, known)),
                                          self.of(part, known))  # fmt: skip
                return word
            case Call(function="bits", arguments=(argument,)):
                return self.bits(argument, known)
            case Call(function=function, arguments=(left, right)):
                a, b = self.of(left, known), self.of(right, known)
                if isinstance(a, int) and isinstance(b, int):
                    return min(a, b) if function == "min" else max(a, b)
                less = self.word(a < b if function == "min" else a > b)
                return self.select(less, a, b)
        raise AssertionError(node)

    def element(self, table: Any, index: Any) -> Any:
        """Return an element of a table; with an index that is no number, of each column."""
        if isinstance(index, int):
            return table[index]
        if isinstance(table[0], tuple):
            columns = range(len(table[0]))
            return tuple(self.element(tuple(row[column] for row in table), index) for column in columns)
        wide = [element if isinstance(element, Value) else Const(element, signed(self.width)) for element in table]
        return self.word(Array(wide)[index[: max(1, (len(table) - 1).bit_length())]])

    def operation(self, operator: str, a: Any, b: Any) -> Any:
        """Return the value of an operation on two values."""
        if operator in ("/", "%"):
            return self.divided(a, b) if operator == "/" else self.modulo(a, b)
        numbers = isinstance(a, int) and isinstance(b, int)
        found = {
            "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "==": lambda: a == b, "!=": lambda: a != b,
            "<": lambda: a < b, "<=": lambda: a <= b, ">": lambda: a > b, ">=": lambda: a >= b,
            "and": lambda: a & b, "or": lambda: a | b,
        }[operator]()  # fmt: skip
        return int(found) if numbers else self.word(found)

    def search(self, node: Search, known: dict[str, Any]) -> Any:
        """Return the first or last index that fulfils the condition, from the end backwards."""
        indexes = list(range(self.of(node.count, known)))
        if node.kind == "last":
            indexes.reverse()
        truths = []
        for index in indexes:
            inside = {**known, node.index: index}
            truths.append((inside, self.of(node.condition, inside)))
        if node.kind in ("any", "all"):
            found: Any = int(node.kind == "all")
            for _, truth in truths:
                found = self.operation("or" if node.kind == "any" else "and", found, truth)
            return found
        end = next((place for place, (_, truth) in enumerate(truths) if truth is not None and _is_one(truth)), None)
        if end is None:
            assert node.other is not None
            found = self.of(node.other, known)
        else:
            found = self.chosen(node, truths[end][0])
        for inside, truth in reversed(truths[:end]):
            if not isinstance(truth, int):
                found = self.select(truth, self.chosen(node, inside), found)
        return found

    def chosen(self, node: Search, inside: dict[str, Any]) -> Any:
        """Return the value that goes with an index."""
        assert node.chosen is not None
        return self.of(node.chosen, inside)

    def bits(self, node: Node, known: dict[str, Any]) -> int:
        """Return the width of an input, or of a constant."""
        names = self.names
        inputs = {"dst": names.address_bits, "own": names.address_bits, "level": LEVEL_BITS}
        match node:
            case Name(name=name) if name in inputs:
                return inputs[name]
            case Name(name="terminal"):
                most = 0 if names.terminal is None else names.terminal.modulus - 1
            case Index(base=Name(name="d" | "c" as which), index=index):
                most = getattr(names, which)[self.of(index, known)].modulus - 1
            case _:
                most = self.of(node, known)
        return max(1, int(most).bit_length())


def _is_one(truth: Any) -> bool:
    return isinstance(truth, int) and truth == 1


def expression_proof(name: str, compiled: Compiled) -> Proof:
    """Return the proof that an expression's logic is its text; it fails if a comparison (or choice, sum) is stuck at 0.

    Not the result: yosys finds the driver of a wire only where no other wire is the same. Logic of one step has a fault
    behind it.
    """
    program = compiled.program
    gates = {
        step.op: number
        for number, step in reversed(list(enumerate(program.steps)))
        if step.late and number != program.result
    }
    gate = next((gates[op] for op in _GATES if op in gates), None)
    fault = ("offset", "1'b1")
    if gate is not None:
        width = step_shape(program.steps[gate]).width
        fault = (f"late.{step_name(program, gate)}", f"{width}'b" + "0" * width)
    return Proof(name=name, build=partial(_ExpressionClaim, compiled), mutant=fault)


def configured_proof(config: Config) -> Proof | None:
    """Return the proof for the expression of a configuration, if it has one."""
    section = config.lookup.expression
    if section is None:
        return None
    compiled = section.compiled(config.topology, config.address.width_bits, config.address.chunk_bits)
    return expression_proof(f"{section.words}, {config.name}", compiled)


# sizes that divide by powers of two: a solver takes minutes for other divisions
_SHIPPED = (
    ("hyperx", "{kind: hyperx, sizes: [4, 8, 2], hosts_per_router: 4}", ""),
    ("slim_fly", "{kind: slim_fly, q: 4, hosts_per_router: 2}", ""),
    ("mesh", "{kind: mesh, radices: [4, 3, 2], hosts_per_router: 2}", ""),
    ("torus", "{kind: torus, radices: [5, 4, 4]}", ""),
    ("fat_tree", "{kind: fat_tree, k: 4, n: 2}", ""),
    ("dragonfly", "{kind: dragonfly, p: 2, a: 4, h: 2}", ""),
    ("oversubscribed_tree", "{kind: edge_list, file: -}", "leaves: 8, hosts: 4, ups: 2"),
    ("dragonfly_plus", "{kind: edge_list, file: -}", "groups: 5, leaves: 2, spines: 2, hosts: 4"),
)


def shipped_proofs(width_bits: int = 12) -> Iterator[Proof]:
    """Proofs of the shipped expressions, each in a small network."""
    for name, topology, constants in _SHIPPED:
        config = parse_config(
            f"name: proof\ntopology: {topology}\naddress: {{width_bits: {width_bits}, chunk_bits: 3}}\n"
            f"lookup: {{chunk_bits: [3], reduction: {{name: {name}, constants: {{{constants}}}}}}}\n"
        )
        proof = configured_proof(config)
        assert proof is not None
        network = topology.replace("kind: ", "").strip("{}")
        yield Proof(name=f"{name}, {network if 'edge' not in network else constants}", build=proof.build,
                    mutant=proof.mutant)  # fmt: skip
