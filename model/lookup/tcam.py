"""The ternary CAM behind the routing cache: rows, lookups, and tables of routes as few rows.

Source: the specification of the lookup path, "TCAM". Rows are (value, mask, output); the lowest matching row wins, so
that rows in the order of descending prefix length give the longest prefix match.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.errors import UserError
from hopforge.model.kernel.compile import kernel
from hopforge.model.lookup.key_ports import KeyPorts
from hopforge.model.numbers.address import AddressFormat

__all__ = ["NO_MATCH", "Prefix", "Tcam", "TcamError", "TcamRow", "prefix_rows", "range_prefixes", "route_rows"]

NO_MATCH = -1
"""Answer that no row matches; never a port."""


class TcamError(UserError, ValueError):
    """A table that does not fit the TCAM."""


class TcamRow(NamedTuple):
    """One row.

    Attributes
    ----------
    value, mask : int
        The row matches an address if they agree in every bit that is set in `mask`.
    output : int
        Output port, or a bit for each allowed port.
    lag : bool
        Add the link-aggregation member of the address to the output.
    valid : bool
        The row takes part.
    """

    value: int
    mask: int
    output: int
    lag: bool = False
    valid: bool = True

    def matches(self, address: int) -> bool:
        """Return whether the row matches `address`."""
        return self.valid and (address ^ self.value) & self.mask == 0


class Prefix(NamedTuple):
    """The `length` highest bits of `value` (of some width), and the output of addresses that begin so."""

    value: int
    length: int
    output: int


class Tcam:
    """Rows and their lookup, without time (`model.lookup.golden` has the latency).

    Parameters
    ----------
    rows : int
        Number of rows.
    width_bits : int
        Width of an address.
    output_bits : int
        Width of an output; a link-aggregation member is added modulo 2^output_bits.

    Raises
    ------
    ValueError
        Naming the parameter, its limit and its value.

    Examples
    --------
    >>> tcam = Tcam(rows=4, width_bits=8)
    >>> tcam.load(prefix_rows([Prefix(0x10, 4, 1), Prefix(0x12, 8, 2)], 8))
    >>> tcam.lookup(0x12), tcam.lookup(0x13), tcam.lookup(0x20)
    (2, 1, None)
    """

    def __init__(self, *, rows: int = 64, width_bits: int = 24, output_bits: int = 16) -> None:
        if rows < 1:
            raise ValueError(f"rows must be at least 1, not {rows}")
        if not 1 <= width_bits <= 62:
            raise ValueError(f"width_bits must be 1 to 62, not {width_bits}")
        if not 1 <= output_bits <= 62:
            raise ValueError(f"output_bits must be 1 to 62, not {output_bits}")
        self.rows = rows
        self.width_bits = width_bits
        self.output_bits = output_bits
        self._contents = [TcamRow(0, 0, 0, valid=False)] * rows
        self._tables: _Arrays | None = None

    @classmethod
    def of_rows(cls, contents: Sequence[TcamRow], *, width_bits: int = 24, output_bits: int = 16) -> Self:
        """Return a TCAM that is just large enough for `contents`."""
        tcam = cls(rows=max(1, len(contents)), width_bits=width_bits, output_bits=output_bits)
        tcam.load(contents)
        return tcam

    def __getitem__(self, row: int) -> TcamRow:
        """Return row number `row`."""
        return self._contents[row]

    def __setitem__(self, row: int, content: TcamRow) -> None:
        """Write row number `row`.

        Raises
        ------
        ValueError
            If there is no such row or a field does not fit.
        """
        if not 0 <= row < self.rows:
            raise ValueError(f"row must be less than rows={self.rows}, not {row}")
        for name, bits in (("value", self.width_bits), ("mask", self.width_bits), ("output", self.output_bits)):
            if not 0 <= getattr(content, name) < 1 << bits:
                raise ValueError(f"{name} must be less than 2^{bits}, not {getattr(content, name):#x}")
        self._contents[row] = content
        self._tables = None

    def load(self, contents: Sequence[TcamRow]) -> None:
        """Write `contents` from row 0 on; the rows above become invalid.

        Raises
        ------
        TcamError
            If they are more than there are rows.
        """
        if len(contents) > self.rows:
            raise TcamError(f"lookup.tcam.rows: must be at least {len(contents)} for this table, not {self.rows}")
        for row in range(self.rows):
            self[row] = contents[row] if row < len(contents) else TcamRow(0, 0, 0, valid=False)

    def lookup(self, address: int, member: int = 0) -> int | None:
        """Return the output of the lowest row that matches `address`, None if no row does.

        Parameters
        ----------
        address : int
            Destination.
        member : int
            Link-aggregation member, added where the row says so.
        """
        for row in self._contents:
            if row.matches(address):
                return (row.output + (member if row.lag else 0)) & (1 << self.output_bits) - 1
        return None

    def lookup_many(self, addresses: ArrayLike, members: ArrayLike = 0) -> NDArray[np.int64]:
        """Return the outputs of many addresses by array operations, as `lookup` does for one.

        Returns
        -------
        ndarray, int64
            Of the shape of `addresses`; `NO_MATCH` where no row matches.
        """
        words, member = np.broadcast_arrays(np.asarray(addresses, np.int64), np.asarray(members, np.int64))
        result = np.full(words.shape, NO_MATCH, dtype=np.int64)
        for row in reversed(self._contents):  # the lowest has the last word
            if row.valid:
                output = (row.output + member * row.lag) & (1 << self.output_bits) - 1
                result = np.where((words ^ row.value) & row.mask == 0, output, result)
        return result

    def run(self, addresses: ArrayLike, members: ArrayLike = 0) -> NDArray[np.int64]:
        """Return the same as `lookup_many`, by a kernel that stops at the first match."""
        words, member = np.broadcast_arrays(np.asarray(addresses, np.int64), np.asarray(members, np.int64))
        result = np.empty(words.shape, dtype=np.int64)
        _match(
            *self.tables, (1 << self.output_bits) - 1, np.ascontiguousarray(words).reshape(-1),
            np.ascontiguousarray(member).reshape(-1), result.reshape(-1),
        )  # fmt: skip
        return result

    @property
    def tables(self) -> "_Arrays":
        """Valid rows as arrays, for `match_row` in kernels."""
        if self._tables is None:
            valid = [row for row in self._contents if row.valid]
            values, masks, outputs = (
                np.array([getattr(row, name) for row in valid], dtype=np.int64) for name in ("value", "mask", "output")
            )
            self._tables = _Arrays(values, masks, outputs, np.array([row.lag for row in valid], dtype=np.int64))
        return self._tables


class _Arrays(NamedTuple):
    values: NDArray[np.int64]
    masks: NDArray[np.int64]
    outputs: NDArray[np.int64]
    lags: NDArray[np.int64]


@kernel(inline="always")
def match_row(values, masks, address):  # type: ignore[no-untyped-def]
    """Return the lowest row that matches, -1 if none does; for use in kernels."""
    for row in range(len(values)):
        if (address ^ values[row]) & masks[row] == 0:
            return row
    return -1


@kernel
def _match(values, masks, outputs, lags, output_mask, addresses, members, result):  # type: ignore[no-untyped-def]
    for index in range(len(addresses)):
        row = match_row(values, masks, addresses[index])
        result[index] = (outputs[row] + lags[row] * members[index]) & output_mask if row >= 0 else NO_MATCH


# --- prefixes


def prefix_rows(prefixes: Iterable[Prefix], width_bits: int) -> list[TcamRow]:
    """Return rows for the longest prefix match: the longest prefix first.

    Raises
    ------
    ValueError
        If a length is outside of 0 to `width_bits`, or a prefix is given twice.

    Examples
    --------
    >>> [row.output for row in prefix_rows([Prefix(0, 0, 9), Prefix(0x80, 1, 1), Prefix(0x80, 4, 2)], 8)]
    [2, 1, 9]
    """
    rows: dict[tuple[int, int], TcamRow] = {}
    for prefix in sorted(prefixes, key=lambda prefix: (-prefix.length, prefix.value)):
        if not 0 <= prefix.length <= width_bits:
            raise ValueError(f"length must be 0 to width_bits={width_bits}, not {prefix.length}")
        mask = (1 << width_bits) - (1 << width_bits - prefix.length)
        value = prefix.value & mask
        if (value, mask) in rows:
            raise ValueError(f"prefix {value:#x}/{prefix.length} is given twice")
        rows[value, mask] = TcamRow(value, mask, prefix.output)
    return list(rows.values())


def range_prefixes(low: int, high: int, bits: int) -> list[tuple[int, int]]:
    """Return the fewest (value, mask) of a field of `bits` bits that together match exactly low … high − 1.

    Examples
    --------
    >>> [(f"{value:03b}", f"{mask:03b}") for value, mask in range_prefixes(1, 5, 3)]
    [('001', '111'), ('010', '110'), ('100', '111')]
    """
    result = []
    while low < high:
        size = min(low & -low if low else 1 << bits, 1 << (high - low).bit_length() - 1)
        result.append((low, (1 << bits) - size))
        low += size
    return result


def table_prefixes(table: Mapping[int, int], width_bits: int) -> list[Prefix]:
    """Return the fewest prefixes that give each address of `table` its output and match no other address.

    Optimal Routing Table Constructor (Draves, King, Venkatachary, Zill, 1999) in every aligned block all of whose
    addresses are in the table.
    """
    addresses = sorted(table)
    for address in addresses[:1] + addresses[-1:]:
        if not 0 <= address < 1 << width_bits:
            raise ValueError(f"address must be less than 2^{width_bits}, not {address:#x}")
    prefixes: list[Prefix] = []
    start = 0
    while start < len(addresses):
        end = start
        while end < len(addresses) and addresses[end] - addresses[start] == end - start:
            end += 1
        for value, mask in range_prefixes(addresses[start], addresses[end - 1] + 1, width_bits):
            free = ((1 << width_bits) - 1 ^ mask).bit_length()
            prefixes += _block_prefixes([table[value + offset] for offset in range(1 << free)], value, width_bits)
        start = end
    return prefixes


def _block_prefixes(outputs: list[int], first: int, width_bits: int) -> Iterator[Prefix]:
    """Yield the fewest prefixes for the outputs of an aligned block of addresses."""
    # bottom up: outputs with which a block needs the fewest prefixes
    levels = [[frozenset({output}) for output in outputs]]
    while len(levels[-1]) > 1:
        halves = levels[-1]
        levels.append([low & high or low | high for low, high in zip(halves[::2], halves[1::2], strict=True)])
    # top down: a block that can't inherit begins a prefix
    inherited: list[int | None] = [None]
    for depth, blocks in enumerate(reversed(levels)):
        free = len(levels) - 1 - depth
        for block, best in enumerate(blocks):
            if inherited[block] not in best:
                inherited[block] = min(best)
                yield Prefix(first + (block << free), width_bits - free, min(best))
        inherited = [output for output in inherited for _ in range(2)]


# --- the routes of one switch


def route_rows(ports: KeyPorts, router: int, *, drop_unknown: bool = True) -> list[TcamRow]:
    """Return the TCAM contents of one switch: every address of the network → its output port.

    Rows are made from the key rules, a few for each port, not from a table of all addresses; those of an edge list by
    aggregation of prefixes.

    Parameters
    ----------
    ports : KeyPorts
        The network and its ports.
    router : int
        Number of the switch.
    drop_unknown : bool
        Addresses beyond the network (a digit at or above its radix) match no row. Without, digits that decide nothing
        match any value: far fewer rows when radices are no powers of two.

    Raises
    ------
    ValueError
        If there is no such switch.

    Examples
    --------
    See docs/definitions/keys.md.
    """
    routing = ports.routing
    if not 0 <= router < ports.topology.routers:
        raise ValueError(f"router must be 0 to {ports.topology.routers - 1}, not {router}")
    if routing.mode == "arbitrary":
        outputs = ports.destination_ports(router, np.arange(ports.topology.hosts))
        table = dict(enumerate(outputs.tolist()))
        return prefix_rows(table_prefixes(table, routing.address.width_bits), routing.address.width_bits)
    build = {"fat_tree": _tree_cubes, "dragonfly": _dragonfly_cubes}.get(routing.mode, _grid_cubes)
    rows: list[TcamRow] = []
    for fields, output in build(ports, router):
        rows += _cube_rows(fields, output, _Layout.of(ports), drop_unknown)
    return rows


_Field = tuple[int, int] | None
"""Values low … high − 1 of a digit; None: any."""


class _Layout(NamedTuple):
    """Digits of an address: (lowest bit, bits, values in the network)."""

    digits: list[tuple[int, int, int]]
    width_bits: int

    @classmethod
    def of(cls, ports: KeyPorts) -> Self:
        routing, address = ports.routing, ports.routing.address
        radices = list(routing.radices)
        if routing.mode in {"mesh", "torus"} and routing.hosts_per_router > 1:
            radices.append(routing.hosts_per_router)
        k = address.chunk_bits
        digits = [(index * k, k, radix) for index, radix in enumerate(radices)]
        if routing.mode == "dragonfly":  # the group is all that remains
            digits[2] = (2 * k, address.width_bits - 2 * k, radices[2])
        return cls(digits, address.width_bits)


def _cube_rows(fields: list[_Field], output: int, layout: _Layout, drop_unknown: bool) -> Iterator[TcamRow]:
    """Yield the rows of one product of digit ranges."""
    used = sum(((1 << bits) - 1) << shift for shift, bits, _ in layout.digits)
    above = (1 << layout.width_bits) - 1 ^ used  # bits beyond the digits are 0 in the network
    choices = []
    for (shift, bits, radix), field in zip(layout.digits, fields, strict=True):
        low, high = field or (0, radix if drop_unknown else 1 << bits)
        choices.append([(value << shift, mask << shift) for value, mask in range_prefixes(low, high, bits)])
    for parts in product(*choices):
        yield TcamRow(sum(value for value, _ in parts), above | sum(mask for _, mask in parts), output)


_Cubes = Iterator[tuple[list[_Field], int]]


def _grid_cubes(ports: KeyPorts, router: int) -> _Cubes:
    routing = ports.routing
    n, terminals = routing.dimensions, routing.hosts_per_router
    own = routing.address.split(routing.switch(router).own, n)
    here: list[_Field] = [(digit, digit + 1) for digit in own]
    if terminals > 1:
        for terminal in range(terminals):
            yield [*here, (terminal, terminal + 1)], terminal
    else:
        yield here, 0
    rest = len(_Layout.of(ports).digits)
    for i, radix in enumerate(routing.radices):
        for sign, (low, high) in _directions(routing.mode, own[i], radix):
            fields = [*here[:i], (low, high), *[None] * (rest - i - 1)]
            yield fields, terminals + 2 * i + sign


def _directions(mode: str, c: int, radix: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield (0 for +, 1 for −) and the ranges of digits that go there."""
    if mode == "mesh":
        ranges = [(0, (c + 1, radix)), (1, (0, c))]
    else:
        half = radix // 2
        ranges = [
            (0, (c + 1, min(c + half + 1, radix))), (1, (c + half + 1, radix)),
            (1, (max(c - half, 0), c)), (0, (0, max(c - half, 0))),
        ]  # fmt: skip
    yield from ((sign, span) for sign, span in ranges if span[0] < span[1])


def _tree_cubes(ports: KeyPorts, router: int) -> _Cubes:
    routing = ports.routing
    n, k = routing.dimensions, routing.radices[0]
    place = routing.switch(router)
    own = routing.address.split(place.own, n)
    # digit i + 1 of the host stands against digit i of the switch
    below: list[_Field] = [None] * (place.level + 1) + [(own[i], own[i] + 1) for i in range(place.level, n)]

    def at(fields: list[_Field], index: int, value: int) -> list[_Field]:
        return [*fields[:index], (value, value + 1), *fields[index + 1:]]

    for value in range(k):
        yield at(below, place.level, value), value
    if routing.up_choice == "d_mod_k":
        if place.level < n:
            for value in range(k):
                yield at([None] * (n + 1), place.level, value), k + value
        return
    for i in range(place.level, n):  # earlier rows have taken what agrees above digit i
        anything: list[_Field] = [None] * (i + 2)
        agree = anything + below[i + 2:]
        for value in range(k):
            yield at(agree, i, value), k + value


def _dragonfly_cubes(ports: KeyPorts, router: int) -> _Cubes:
    p, a, g = ports.routing.radices
    group, local = divmod(router, a)
    for terminal in range(p):
        yield [(terminal, terminal + 1), (local, local + 1), (group, group + 1)], terminal
    for other in range(a):
        if other != local:
            yield [None, (other, other + 1), (group, group + 1)], p + other - (other > local)
    address: AddressFormat = ports.routing.address
    others = np.array([one for one in range(g) if one != group], dtype=np.int64)
    if not len(others):
        return
    outputs = ports.destination_ports(router, others << 2 * address.chunk_bits)
    start = 0
    for end in range(1, len(others) + 1):
        if end == len(others) or outputs[end] != outputs[start] or others[end] != others[end - 1] + 1:
            yield [None, None, (int(others[start]), int(others[end - 1]) + 1)], int(outputs[start])
            start = end
