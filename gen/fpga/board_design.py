"""The design that a configuration puts on a board."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass

from hopforge.gen.design.configured import NetworkDesign, engine_parameters, whole_network_design
from hopforge.gen.packages.lookup import lookup_parameters_as_data
from hopforge.hw.boards.board import Board
from hopforge.hw.boards.engine import EngineOnBoard
from hopforge.hw.boards.network import NetworkOnBoard
from hopforge.model.board.registers import DESIGNS, BoardIdentity, DesignKind
from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.lookup.params import FLOPS_ROWS_MAX, LookupParams
from hopforge.model.router.configured import network_links
from hopforge.model.router.links import topology_hosts
from hopforge.model.topology.failed import refuse_failed

__all__ = ["BoardDesign", "board_design", "design_kind", "engine_on_board_parameters", "network_on_board_design"]

_MOST_HOSTS = 256
_MOST_FLITS = 8
"""Longest packet of a host on a board."""


@dataclass(frozen=True, eq=False)
class BoardDesign:
    """What is built or simulated.

    Attributes
    ----------
    name : str
        Name of the top module.
    component : Board
        Fresh hardware.
    identity : BoardIdentity
        What it says that it is.
    notes : tuple of str
        What is not as the configuration says.
    """

    name: str
    component: Board
    identity: BoardIdentity
    notes: tuple[str, ...] = ()


def design_kind(name: str) -> DesignKind:
    """Return `name` if it is a design.

    Raises
    ------
    UserError
        Listing the known ones.
    """
    for known in DESIGNS:
        if name == known:
            return known
    raise UserError(f"--design must be one of {', '.join(DESIGNS)}, not {name!r}")


def board_design(config: Config, kind: DesignKind, *, clock_hz: int, baud: int) -> BoardDesign:
    """Return the design of a configuration.

    Raises
    ------
    UserError
        If the hardware cannot be built so.
    """
    name = f"{config.name}_{kind}"
    if kind == "network":
        network = network_on_board_design(config)
        links, hosts = network_links(config, network.topology), topology_hosts(network.topology)
        identity = _identity(kind, _fingerprint([network.params, links, hosts]), clock_hz, baud)
        routers = NetworkOnBoard(routers=network.params, links=links, hosts=hosts, identity=identity)
        return BoardDesign(name, Board(design=routers), identity)
    params, notes = engine_on_board_parameters(config)
    identity = _identity(kind, _fingerprint(lookup_parameters_as_data(params)), clock_hz, baud)
    return BoardDesign(name, Board(design=EngineOnBoard(params=params, identity=identity)), identity, notes)


def _identity(kind: DesignKind, fingerprint: int, clock_hz: int, baud: int) -> BoardIdentity:
    try:
        return BoardIdentity(design=kind, fingerprint=fingerprint, clock_hz=clock_hz, baud=baud)
    except ValueError as error:
        raise UserError(f"--{error}") from None


def engine_on_board_parameters(config: Config) -> tuple[LookupParams, tuple[str, ...]]:
    """Return the engine of a configuration as it is on a board, and what differs from the configuration.

    Raises
    ------
    UserError
        If there can be no such engine, or a second run of it would differ from the first.
    """
    params = engine_parameters(config)
    if params.policy == "fifo":
        raise UserError(
            "lookup.cache.policy must be lru, plru or random on a board, not fifo: its pointers outlive a reset"
        )
    if params.tcam_kind != "external":
        return params, ()
    if params.tcam_rows > FLOPS_ROWS_MAX:
        raise UserError(
            f"lookup.tcam.rows must be at most {FLOPS_ROWS_MAX} for a TCAM outside, which is flip-flops on a board, "
            f"not {params.tcam_rows}"
        )
    note = f"lookup.tcam.kind external is a TCAM of {params.tcam_rows} rows of flip-flops on the board"
    return dataclasses.replace(params, tcam_kind="flops"), (note,)


def network_on_board_design(config: Config) -> NetworkDesign:
    """Return the routers of a configuration as they are on a board.

    Raises
    ------
    UserError
        If there can be no such network, or its hosts cannot be those of a board.
    """
    if config.router.route_computation != "table":
        raise UserError(f"router.route_computation must be table on a board, not {config.router.route_computation}")
    if config.traffic.classes:
        raise UserError("traffic.classes must be empty for a network on a board, whose hosts have one source")
    if config.traffic.reply is not None:
        raise UserError("traffic.reply must be null for a network on a board, whose hosts do not answer")
    if config.router.host_ports != "flits":
        raise UserError(f"router.host_ports must be flits for a network on a board, not {config.router.host_ports}")
    refuse_failed(config.failed, "a network on a board")
    if not config.degraded.none:
        raise UserError("degraded: a network on a board has links of one rate")
    design = whole_network_design(config)
    if design.paths is not None:
        raise UserError("tables.scheme must have one path for each pair for a network on a board, not k_shortest")
    hosts, params = len(design.topology.host_router), design.params[0]
    if params.entropy_bits:
        raise UserError("traffic.entropy must be null for a network on a board, whose hosts write none")
    if not 2 <= hosts <= _MOST_HOSTS:
        raise UserError(f"a network on a board must have 2 to {_MOST_HOSTS} hosts, not {hosts}")
    if params.switching == "vct" and params.buffer_flits < _MOST_FLITS:
        raise UserError(
            f"router.buffer_flits must be at least {_MOST_FLITS} with cut-through on a board, not {params.buffer_flits}"
        )
    return design


def _fingerprint(parameters: object) -> int:
    """Return 32 bits that say which design it is."""
    text = json.dumps(parameters, sort_keys=True, default=_plain)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return repr(value)
