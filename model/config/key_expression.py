"""Key `lookup.reduction` as an expression, and what it can name in each kind of network."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from hopforge.model.config.base import Problem, Section, suggestion
from hopforge.model.config.topology import (
    DragonflyConfig,
    DragonflyPlusConfig,
    FatTreeConfig,
    FullyConnectedConfig,
    HyperXConfig,
    MeshConfig,
    SlimFlyConfig,
    TopologyConfig,
    TorusConfig,
)
from hopforge.model.expression.names import Digit, Names
from hopforge.model.expression.shipped import SHIPPED_EXPRESSIONS
from hopforge.model.expression.syntax import ExpressionError

if TYPE_CHECKING:  # compiled (numba) where there is an expression, not at every start
    from hopforge.model.expression.compile import Compiled

_Number = Annotated[int, Field(ge=-(1 << 48), le=1 << 48)]
MAX_TABLE_Q = 128
"""Largest Slim Fly whose field stands in tables: they have q² numbers."""


class KeyExpressionConfig(Section):
    """Node reduction of your own (docs/definitions/key-expressions.md)."""

    expression: str | None = None
    """The key of a destination at a router, as a text."""
    name: str | None = None
    """A shipped expression instead: `hyperx`, `slim_fly`, `mesh`, `torus`, `fat_tree`, `dragonfly`,
    `oversubscribed_tree`, `dragonfly_plus`."""
    constants: dict[str, _Number | Annotated[tuple[_Number, ...], Field(min_length=1, max_length=4096)]] = {}
    """Constants of your own: a number, or a list of numbers."""

    def problems(self) -> Iterator[Problem]:
        """Check that there is one expression, and the names."""
        if (self.expression is None) == (self.name is None):
            yield Problem("expression", "give either `expression` or `name`, the name of a shipped one")
        elif self.name is not None and self.name not in SHIPPED_EXPRESSIONS:
            yield Problem("name", f"unknown {self.name!r}; {suggestion(self.name, SHIPPED_EXPRESSIONS)}")
        for name in self.constants:
            if not (name.isascii() and name.isidentifier()):
                yield Problem("constants", f"{name!r} is no name: letters, digits and _, no digit first")

    def __hash__(self) -> int:
        """Hash the constants, too."""
        return hash((self.expression, self.name, tuple(sorted(self.constants.items(), key=str))))

    @property
    def key(self) -> str:
        """The key that holds the text or its name."""
        return "expression" if self.name is None else "name"

    @property
    def words(self) -> str:
        """What the keys are, for people."""
        return "expression of the file" if self.name is None else f"expression {self.name}"

    def compiled(self, topology: TopologyConfig, address_bits: int, chunk_bits: int) -> "Compiled":
        """Return the expression for a network.

        Raises
        ------
        ExpressionError
            A mistake in the text; `reason` has no position yet (`expression_problems`).
        """
        from hopforge.model.expression.compile import compile_expression  # noqa: PLC0415
        from hopforge.model.shared import once  # noqa: PLC0415

        def compiled() -> "Compiled":
            return compile_expression(self.text, expression_names(self, topology, address_bits, chunk_bits))

        return once(("expression", self.text, tuple(self.constants.items()), topology, address_bits, chunk_bits),
                    compiled)  # fmt: skip

    @property
    def text(self) -> str:
        """The expression."""
        return self.expression if self.name is None else SHIPPED_EXPRESSIONS[self.name].text  # type: ignore[return-value]


def expression_problems(
    section: KeyExpressionConfig, topology: TopologyConfig, address_bits: int, chunk_bits: int
) -> Iterator[Problem]:
    """Return what is wrong with an expression in a network; keys are from the root of the file."""
    key = f"lookup.reduction.{section.key}"
    if section.name is not None:
        shipped = SHIPPED_EXPRESSIONS[section.name]
        if topology.kind not in shipped.kinds:
            known = [name for name, each in SHIPPED_EXPRESSIONS.items() if topology.kind in each.kinds]
            words = f"; for this kind: {', '.join(known)}" if known else ""
            yield Problem(key, f"{section.name} is for topology.kind {' or '.join(shipped.kinds)}, not "
                               f"{topology.kind}{words}")  # fmt: skip
            return
        known_constants = _names(topology, address_bits, chunk_bits).constants
        for name in (each for each in shipped.constants if each not in known_constants):
            value = section.constants.get(name)
            if not isinstance(value, int) or value < 1:
                yield Problem(
                    "lookup.reduction.constants",
                    f"{section.name} needs {', '.join(shipped.constants)}, each at least 1; {name} is "
                    f"{'missing' if value is None else value}",
                )
                return
    try:
        section.compiled(topology, address_bits, chunk_bits)
    except ExpressionError as error:
        of = "" if section.name is None else f"{section.name}: "
        yield Problem(key, of + error.placed(section.text))


def expression_names(
    section: KeyExpressionConfig, topology: TopologyConfig, address_bits: int, chunk_bits: int
) -> "Names":
    """Return what expressions of a network can name."""
    found = _names(topology, address_bits, chunk_bits)
    for name in section.constants:
        if name in found.constants:
            raise ExpressionError(0, f"constants: {name!r} is a constant of the network already; take another name")
    return Names(address_bits, found.d, found.c, found.terminal, {**found.constants, **section.constants})


def _names(topology: TopologyConfig, address_bits: int, chunk_bits: int) -> "Names":
    def chunk(index: int) -> "Digit":
        return Digit(1 << index * chunk_bits, 1 << chunk_bits)

    if isinstance(topology, MeshConfig | TorusConfig):
        n, hosts = len(topology.radices), topology.hosts_per_router
        digits = tuple(map(chunk, range(n)))
        constants: dict[str, Any] = {"n": n, "radix": topology.radices, "hosts_per_router": hosts}
        return Names(address_bits, digits, digits, chunk(n) if hosts > 1 else None, constants)
    if isinstance(topology, FatTreeConfig):
        n = topology.n
        digits = tuple(map(chunk, range(n + 1)))
        return Names(address_bits, digits, digits[:n], None, {"n": n, "k": topology.k})
    if isinstance(topology, DragonflyConfig):
        group = Digit(1 << 2 * chunk_bits, 1 << max(address_bits - 2 * chunk_bits, 0))
        digits = (chunk(0), chunk(1), group)
        constants = {"p": topology.p, "a": topology.a, "g": topology.groups}
        return Names(address_bits, digits, digits, chunk(0), constants)
    if isinstance(topology, DragonflyPlusConfig):
        constants = {
            "groups": topology.groups, "leaves": topology.leaves, "spines": topology.spines,
            "hosts": topology.hosts_per_router,
        }  # fmt: skip
        return Names(address_bits, constants=constants)
    if isinstance(topology, HyperXConfig | FullyConnectedConfig):
        sizes = topology.sizes if isinstance(topology, HyperXConfig) else (topology.routers,)
        constants = {"n": len(sizes), "radix": sizes, "hosts_per_router": topology.hosts_per_router}
        return _numbered(address_bits, sizes, topology.hosts_per_router, constants)
    if isinstance(topology, SlimFlyConfig):
        q, hosts = topology.q, topology.terminals
        constants = {"q": q, "hosts_per_router": hosts, **(_field_tables(q) if q <= MAX_TABLE_Q else {})}
        return _numbered(address_bits, (q, q, 2), hosts, constants)
    return Names(address_bits)


def _numbered(address_bits: int, radices: tuple[int, ...], hosts: int, constants: dict[str, Any]) -> "Names":
    """Digits of host numbers: the terminal below, then the digits of the router."""
    digits, divisor = [], hosts
    for radix in radices:
        digits.append(Digit(divisor, radix))
        divisor *= radix
    return Names(address_bits, tuple(digits), tuple(digits), Digit(1, hosts) if hosts > 1 else None, constants)


def _field_tables(q: int) -> dict[str, Any]:
    """Arithmetic of GF(q), and the generators of the Slim Fly."""
    import numpy as np  # noqa: PLC0415

    from hopforge.model.numbers.galois_field import GaloisField, generator_sets  # noqa: PLC0415

    field, element = GaloisField(q), np.arange(q)
    pairs = element[:, np.newaxis], element[np.newaxis, :]
    times = field.times(*pairs)
    inverse = np.where(element > 0, np.argmax(times == 1, axis=1), 0)
    tables = {"plus": field.plus(*pairs), "minus": field.minus(*pairs), "times": times, "inverse": inverse}
    for name, members in zip(("in_x", "in_other"), generator_sets(field), strict=True):
        tables[name] = np.isin(element, members).astype(np.int64)
    return {name: _as_tuple(table.tolist()) for name, table in tables.items()}


def _as_tuple(values: Any) -> Any:
    return tuple(map(_as_tuple, values)) if isinstance(values, list) else values
