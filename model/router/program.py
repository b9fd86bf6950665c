"""What software writes into a router with lookup engines before it carries packets: key registers, TCAM, enable."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.lookup.csr import MEMBER_HASHES, MODES, UP_CHOICES, WORD_BITS, CsrMap, csr_map
from hopforge.model.lookup.expression_reduction import configured_reduction
from hopforge.model.lookup.key_ports import KeyPorts, NowhereError
from hopforge.model.lookup.key_validity import wrong_key
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.lookup.params import LookupParams
from hopforge.model.lookup.tcam import TcamRow, prefix_rows, route_rows, table_prefixes
from hopforge.model.router.csr import all_engines_address, engine_address, router_csr_map
from hopforge.model.router.params import RouterParams
from hopforge.model.router.tables import RouterTables
from hopforge.model.topology import Topology
from hopforge.model.topology.base import Aggregation
from hopforge.model.topology.configured import lid_addresses

__all__ = [
    "BusOperation", "RouterProgram", "engine_registers", "router_program", "row_operations", "tcam_contents",
]  # fmt: skip

_WORD = (1 << WORD_BITS) - 1


class BusOperation(NamedTuple):
    """One step of a program on the register bus of a router.

    Attributes
    ----------
    kind : str
        ``write`` `data`; or ``poll``: read until the word and `mask` give `data`.
    address : int
        Word address in the router.
    data, mask : int
        See `kind`; a write has no mask (0).
    name : str
        Register, as in `model.router.csr.address_space`.
    """

    kind: Literal["write", "poll"]
    address: int
    data: int
    mask: int
    name: str


@dataclass(frozen=True)
class RouterProgram:
    """What one router is given.

    Attributes
    ----------
    router : int
        Its number.
    rows : tuple of TcamRow
        Contents of the TCAMs that answer for it; for a TCAM outside they are the user's to write.
    rows_of_ports : tuple of tuple of TcamRow
        Look-ahead: contents of the TCAM of each port, most of which answer for the router behind. Empty without.
    operations : tuple of BusOperation
        In order; the last one enables the router.
    """

    router: int
    rows: tuple[TcamRow, ...]
    operations: tuple[BusOperation, ...]
    rows_of_ports: tuple[tuple[TcamRow, ...], ...] = ()


def engine_registers(config: Config, params: LookupParams, reduction: NodeReduction, router: int) -> dict[str, int]:
    """Return the configuration registers of the engines of a switch: word by name.

    Without node reduction, and in a network without key functions, keys are whole addresses.
    """
    registers, lookup = csr_map(params), config.lookup
    mode = {"members": reduction.members, "member_hash": MEMBER_HASHES.index(reduction.member_hash)}
    if reduction.mode == "arbitrary":
        return {"MODE": registers["MODE"].encode(**mode)}
    place = reduction.switch(router)
    words = {
        "MODE": registers["MODE"].encode(
            mode=MODES.index(reduction.mode),
            chunk_select=params.chunk_bits.index(config.address.chunk_bits),
            up_choice=UP_CHOICES.index(lookup.up_choice),
            **mode,
        )
    }
    words |= _halves("OWN", place.own, registers)
    words["LEVEL"] = registers["LEVEL"].encode(level=place.level, digits=reduction.dimensions)
    if reduction.mode in ("mesh", "torus"):
        words |= {f"RADIX{index}": radix for index, radix in enumerate(reduction.radices)}
    return words


def _halves(name: str, value: int, registers: CsrMap) -> dict[str, int]:
    words = {f"{name}_LO": value & _WORD}
    if f"{name}_HI" in registers:
        words[f"{name}_HI"] = value >> WORD_BITS
    return words


def tcam_contents(config: Config, topology: Topology, tables: RouterTables, router: int) -> list[TcamRow]:
    """Return the rows with which the lookups of a router follow its routing table.

    A destination that no packet brings to the router is left out, or shares the row of those with the same key. Where
    links are aggregated a row names the first member of a group, and the engine adds the member of the destination.

    Raises
    ------
    UserError
        Destinations of one cache key that leave in different ways.
    """
    reduction = configured_reduction(config, topology)
    outputs = tables.lookup_outputs(router)
    known = lid_addresses(config, topology)
    addresses = [int(address) for address in known]
    keys = reduction.keys(router, known).tolist()
    of_key: dict[int, tuple[int, int]] = {}  # output, and the first host that has it
    for host, (key, output) in enumerate(zip(keys, outputs, strict=True)):
        if output is None:
            continue
        first = of_key.setdefault(key, (output, host))
        if first[0] != output and config.lookup.expression is not None:
            ways = _way(tables, first[0]), _way(tables, output)
            raise wrong_key(config, router, (first[1], host), key, ways)
        if first[0] != output:
            raise UserError(
                f"lookup.reduction: hosts {first[1]} and {host} have the same key in router {router}, and routing "
                f"{tables.algorithm} sends their packets different ways; use lookup.reduction: false"
                f"{' or routing.ties: key' if topology.kind == 'torus' and tables.algorithm == 'dor' else ''}"
            )
    table = {address: of_key[key][0] for address, key in zip(addresses, keys, strict=True) if key in of_key}
    groups = topology.aggregation
    if groups is not None and not tables.port_sets:
        table = _by_group(groups, reduction, router, table, tables.port_bits)
    width = config.address.width_bits
    if reduction.mode != "arbitrary":
        ports = KeyPorts(reduction, topology if groups is None else groups.logical)
        try:
            rows = route_rows(ports, router)
            want = ports.destination_ports(router, np.array(list(table), np.int64)).tolist()
        except NowhereError:  # a link of theirs has failed, and routing goes around it
            return _with_lag(prefix_rows(table_prefixes(table, width), width))
        if groups is not None:
            starts = [_group_output(groups, router, port) for port in range(groups.ports.shape[1])]
            want = [starts[port] for port in want]
            rows = [row._replace(output=starts[row.output]) for row in rows]
        if want == list(table.values()):
            return _with_lag(rows)
    return _with_lag(prefix_rows(table_prefixes(table, width), width))


def _way(tables: RouterTables, output: int) -> str:
    """Say what an output means: a port, and a class that is not 0; or ports."""
    if tables.port_sets:
        return "/".join(str(port) for port in range(output.bit_length()) if output >> port & 1)
    port, of_class = output & (1 << tables.port_bits) - 1, output >> tables.port_bits
    return f"{port} (class {of_class})" if of_class else str(port)


_LAG = 1 << 62
"""Bit of an output in a table of this file: the engine adds the member of the destination."""


def _group_output(groups: Aggregation, router: int, logical_port: int) -> int:
    first, *others = groups.ports[router, logical_port].tolist()
    return int(first) | (_LAG if others and others[0] >= 0 else 0)


def _by_group(
    groups: Aggregation, reduction: NodeReduction, router: int, table: Mapping[int, int], port_bits: int
) -> dict[int, int]:
    """Return outputs by address that name the first member of a group where the destination's own member is meant."""
    member = reduction.member_array(np.array(list(table), np.int64)).tolist()
    result = {}
    for (address, output), own in zip(table.items(), member, strict=True):
        port, of_class = output & (1 << port_bits) - 1, output >> port_bits
        group = int(groups.group[router, port])
        meant = groups.ports[router, group, own] == port
        base = _group_output(groups, router, group) if meant else port
        result[address] = base | of_class << port_bits
    return result


def _with_lag(rows: Iterable[TcamRow]) -> list[TcamRow]:
    """Move `_LAG` from the outputs to the rows."""
    return [row._replace(output=row.output & ~_LAG, lag=bool(row.output & _LAG)) for row in rows]


def router_program(
    config: Config, topology: Topology, tables: RouterTables, params: RouterParams, router: int
) -> RouterProgram:
    """Return what makes a router of a network work after reset.

    Parameters
    ----------
    config, topology : Config, Topology
        The network.
    tables : RouterTables
        Its routing.
    params : RouterParams
        The router, in mode lookup.
    router : int
        Its number.

    Raises
    ------
    UserError
        More rows than the TCAM has, an output that does not fit into them, or see `tcam_contents`.
    """
    lookup = params.lookup
    if lookup is None:
        raise ValueError("params.rc must be 'lookup' for a program")
    rows = _checked_rows(config, topology, tables, lookup, router)
    inside = lookup.tcam_kind != "external"
    reduction = configured_reduction(config, topology)
    operations = [*_clean(lookup), *_keys(config, params, lookup, reduction, router)]
    rows_of_ports: tuple[tuple[TcamRow, ...], ...] = ()
    if params.asks_ahead:
        answers_for = _answers_for(params, topology, router)
        of_router = {
            each: rows if each == router else _checked_rows(config, topology, tables, lookup, each)
            for each in dict.fromkeys(answers_for)
        }
        rows_of_ports = tuple(of_router[each] for each in answers_for)
        for port, each in enumerate(answers_for):
            operations += _keys_of_engine(config, lookup, reduction, (router, each), port)
    written: dict[int | None, tuple[TcamRow, ...]] = dict(enumerate(rows_of_ports)) if rows_of_ports else {None: rows}
    for at, contents in written.items():
        for number, row in enumerate(contents if inside else ()):
            operations += row_operations(lookup, number, row, at)
    engines = csr_map(lookup)
    operations.append(_engines(engines, "CTRL", engines["CTRL"].encode(enable=1)))
    own = router_csr_map(params)["CTRL"]
    operations.append(BusOperation("write", own.address, own.encode(enable=1), 0, "CTRL"))
    return RouterProgram(router, rows, tuple(operations), rows_of_ports)


def _checked_rows(
    config: Config, topology: Topology, tables: RouterTables, lookup: LookupParams, router: int
) -> tuple[TcamRow, ...]:
    """Return the rows of a router, if its TCAM and their outputs hold them."""
    rows = tcam_contents(config, topology, tables, router)
    if lookup.tcam_kind != "external" and len(rows) > lookup.tcam_rows:
        raise UserError(f"lookup.tcam.rows must be at least {len(rows)} for router {router}, not {lookup.tcam_rows}")
    for row in rows:
        if row.output >> lookup.output_bits:
            raise UserError(
                f"lookup.cache.output_bits must hold the output {row.output:#x} (port and class) of router {router}, "
                f"not {lookup.output_bits} bits"
            )
    return tuple(rows)


def _answers_for(params: RouterParams, topology: Topology, router: int) -> list[int]:
    """Return the router for which the engine of each port answers (look-ahead)."""
    behind = topology.peer_router[router].tolist()
    return [
        behind[port] if params.carries(port) and port < len(behind) and behind[port] >= 0 else router
        for port in range(params.ports)
    ]


def _keys_of_engine(
    config: Config, lookup: LookupParams, reduction: NodeReduction, routers: tuple[int, int], port: int
) -> Iterator[BusOperation]:
    """Write what the engine of a port has otherwise than all engines of the first of `routers`: that of the second."""
    registers = csr_map(lookup)
    given, wanted = (engine_registers(config, lookup, reduction, router) for router in routers)
    for name, word in wanted.items():
        if given[name] != word:
            yield _engines(registers, name, word, port)


def _engines(registers: CsrMap, name: str, word: int, port: int | None = None) -> BusOperation:
    """Write a register of all engines of the router, or of that of a port."""
    if port is not None:
        return BusOperation("write", engine_address(port, registers[name].address), word, 0, f"ENGINE{port}.{name}")
    return BusOperation("write", all_engines_address(registers[name].address), word, 0, f"ENGINES.{name}")


def _poll(registers: CsrMap, *idle: str, port: int | None = None) -> BusOperation:
    """Wait until these bits of the engine of a port are 0; of port 0 if all do the same at the same time."""
    status = registers["STATUS"]
    mask = sum(status.field(name).mask for name in idle)
    return BusOperation("poll", engine_address(port or 0, status.address), 0, mask, f"ENGINE{port or 0}.STATUS")


def _clean(lookup: LookupParams) -> Iterator[BusOperation]:
    """Two flushes, each with a finished scrub: no line of an unknown memory remains (definitions/lookup-engine.md)."""
    registers = csr_map(lookup)
    for _ in range(2):
        yield _engines(registers, "CTRL", registers["CTRL"].encode(flush=1))
        yield _poll(registers, "scrub_active", "flush_wait")


def _keys(
    config: Config, params: RouterParams, lookup: LookupParams, reduction: NodeReduction, router: int
) -> Iterator[BusOperation]:
    registers, own = csr_map(lookup), router_csr_map(params)
    for name, word in engine_registers(config, lookup, reduction, router).items():
        if name in own:  # a write to the router's own address goes to the engines as well
            yield BusOperation("write", own[name].address, word, 0, name)
        else:
            yield _engines(registers, name, word)


def row_operations(
    lookup: LookupParams, number: int, row: TcamRow, port: int | None = None
) -> Iterator[BusOperation]:
    """Write row `number` of the TCAMs of all engines of a router, or of that of a port."""
    registers = csr_map(lookup)
    words = {
        **_halves("TCAM_VALUE", row.value, registers),
        **_halves("TCAM_MASK", row.mask, registers),
        **_halves("TCAM_OUTPUT", row.output, registers),
        "TCAM_WRITE": registers["TCAM_WRITE"].encode(row=number, lag=int(row.lag), valid=int(row.valid)),
    }
    for name, word in words.items():
        yield _engines(registers, name, word, port)
    if lookup.tcam_kind == "sram":
        yield _poll(registers, "tcam_busy", port=port)
