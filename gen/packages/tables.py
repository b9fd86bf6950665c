"""Routing tables of every switch of a network as memory images: TCAM rows, entries, virtual layers, a manifest."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hopforge import __version__
from hopforge.gen.packages.package import write_package
from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.irregular.failure import linked_tables
from hopforge.model.irregular.switch_tables import LAYER_RULES, SwitchTables, channel_orders, switch_tables
from hopforge.model.irregular.tables import RoutingTables
from hopforge.model.lookup.tcam import TcamRow
from hopforge.model.topology import build
from hopforge.model.topology.failed import without_failed

__all__ = ["generate_tables", "table_files"]

Fields = Sequence[tuple[str, int]]
"""Names and widths of the fields of a memory word, the lowest first."""


def generate_tables(
    config: Config, folder: Path, progress: Callable[[int, int], None] = lambda done, total: None
) -> list[Path]:
    """Write the tables of all switches of a configuration; the files appear together, complete.

    Parameters
    ----------
    config : Config
        Checked configuration; sections `topology`, `address` and `tables` are used.
    folder : Path
        For all files.
    progress : callable, optional
        Called with (switches done, switches in all).

    Returns
    -------
    list of Path
        Memory images of every switch, all switches as text, manifest.

    Raises
    ------
    UserError
        Tables or layers that are wrong (`build_tables`), rows or ports that do not fit the lookup engine, or a folder
        that cannot be written.
    """
    return write_package(table_files(config, progress), folder)


@dataclass(frozen=True, eq=False)
class TablesSetup:
    """Tables that fit the lookup engine.

    Attributes
    ----------
    tables : RoutingTables
        Of all switches.
    words : dict
        Fields of the words of each kind of image.
    switches : iterable of SwitchTables
        Contents, switch by switch; can be gone through once, and takes long.
    """

    tables: RoutingTables
    words: dict[str, Fields]
    switches: Iterable[SwitchTables]


def prepare_tables(config: Config) -> TablesSetup:
    """Build tables and layers, and check that they fit the lookup engine.

    Raises
    ------
    UserError
        Tables or layers that are wrong (`build_tables`), rows or ports that do not fit.
    """
    topology = without_failed(build(config.topology, config.address), config.failed)
    if config.tables.scheme == "k_shortest":
        raise UserError(
            "tables.scheme must have one path for each pair for hopforge gen tables, not k_shortest (hopforge route "
            "writes lft.txt)"
        )
    tables = linked_tables(config.tables, topology, config.seed)
    words = _words(config, tables)
    switches: Iterable[SwitchTables] = switch_tables(tables, config.address.width_bits)
    if config.lookup.tcam.kind in ("flops", "sram"):  # the others have room for any table
        switches = [_with_room(config, switch) for switch in switches]
    return TablesSetup(tables, words, switches)


def table_files(config: Config, progress: Callable[[int, int], None] = lambda done, total: None) -> dict[str, str]:
    """Text of every file by its name, manifest last."""
    ready = prepare_tables(config)
    tables, words, topology = ready.tables, ready.words, ready.tables.topology
    files: dict[str, str] = {}
    rows, switches = [], []
    for switch in ready.switches:
        progress(switch.router, topology.routers)
        images = _images(switch, words)
        names = {kind: f"{config.name}_{kind}_{switch.router:04d}.mem" for kind in images}
        files |= {names[kind]: text for kind, text in images.items()}
        switches.append({"router": switch.router, "tcam_rows": len(switch.rows), "files": names})
        rows.append(_as_line(switch))
    progress(topology.routers, topology.routers)
    files[f"{config.name}_switches.json"] = "[\n" + ",\n".join(rows) + "\n]\n"
    manifest = {
        "name": config.name,
        "definition": "docs/definitions/routing-tables.md",
        "versions": {"hopforge": __version__},
        "network": {
            "name": topology.name, "routers": topology.routers, "hosts": topology.hosts, "ports": topology.max_ports,
            "host_address": topology.host_address.tolist(), "host_router": topology.host_router.tolist(),
            "host_port": topology.host_port.tolist(), "peer_router": topology.peer_router.tolist(),
            "peer_port": topology.peer_port.tolist(),
        },
        "tables": config.tables.model_dump(mode="json"),
        "address_bits": config.address.width_bits,
        "layers": _layers(tables),
        "words": {kind: _layout(fields) for kind, fields in words.items()},
        "switches": switches,
        "files": {file: hashlib.sha256(text.encode()).hexdigest() for file, text in files.items()},
    }  # fmt: skip
    files[f"{config.name}_tables.json"] = json.dumps(manifest, ensure_ascii=False) + "\n"
    return files


def _words(config: Config, tables: RoutingTables) -> dict[str, Fields]:
    """Fields of the words of each kind of image."""
    address, layers = config.address.width_bits, tables.layers
    output = config.lookup.cache.output_bits
    port_bits = max(1, (tables.topology.max_ports - 1).bit_length())
    if port_bits > output:
        raise UserError(
            f"lookup.cache.output_bits: must be at least {port_bits} for {tables.topology.max_ports} ports, "
            f"not {output}"
        )
    row = [("value", address), ("mask", address), ("output", output), ("lag", 1), ("valid", 1)]
    words: dict[str, Fields] = {"tcam": row}
    if tables.details is not None:
        words["entries"] = [("destination", max(1, (tables.topology.routers - 1).bit_length())), ("port", port_bits)]
    layer_bits = max(1, (layers.count - 1).bit_length())
    match LAYER_RULES[layers.method]:
        case "order":
            words["layers"] = [("lower", tables.topology.max_ports)]
        case "start":
            words["layers"] = [("layer", layer_bits)]
        case "path":
            words["layers"] = [(f"hop{hop}", layer_bits) for hop in range(int(tables.hops.max()))]
        case "escape":
            words["escape"] = row
    return words


def _layout(fields: Fields) -> dict[str, Any]:
    """Where the fields are, for the manifest."""
    place, where = 0, {}
    for name, bits in fields:
        where[name] = {"lsb": place, "bits": bits}
        place += bits
    return {"bits": place, "fields": where}


def _layers(tables: RoutingTables) -> dict[str, Any]:
    layers = tables.layers
    found: dict[str, Any] = {"method": layers.method, "count": layers.count, "rule": LAYER_RULES[layers.method]}
    if layers.orders is not None:
        found["start"] = layers.count - 1
        orders = channel_orders(tables)
        found["orders_in"], found["orders_out"] = (orders[:, :, side].tolist() for side in (0, 1))
    return found


def _with_room(config: Config, switch: SwitchTables) -> SwitchTables:
    tcam, need = config.lookup.tcam, max(len(switch.rows), len(switch.escape_rows))
    if need > tcam.rows:
        raise UserError(f"lookup.tcam.rows: must be at least {need} for router {switch.router}, not {tcam.rows}")
    return switch


def _memory(words: Iterable[Sequence[int]], fields: Fields) -> str:
    """Text that $readmemh reads: a word on a line, from address 0 on."""
    digits = -(-sum(bits for _, bits in fields) // 4)
    lines = []
    for values in words:
        word = place = 0
        for value, (_, bits) in zip(values, fields, strict=True):
            assert 0 <= value < 1 << bits, (value, bits)
            word |= value << place
            place += bits
        lines.append(f"{word:0{digits}x}\n")
    return "".join(lines)


def _images(switch: SwitchTables, words: dict[str, Fields]) -> dict[str, str]:
    """Memory images of a switch by kind."""

    def rows(contents: tuple[TcamRow, ...]) -> list[tuple[int, ...]]:
        return [(row.value, row.mask, row.output, int(row.lag), int(row.valid)) for row in contents]

    images = {"tcam": _memory(rows(switch.rows), words["tcam"])}
    if switch.escape_rows:
        images["escape"] = _memory(rows(switch.escape_rows), words["escape"])
    if switch.entries is not None:
        images["entries"] = _memory(switch.entries.tolist(), words["entries"])
    if switch.lower is not None:
        images["layers"] = _memory(([mask] for mask in switch.lower.reshape(-1).tolist()), words["layers"])
    if switch.layers is not None:
        width = len(words["layers"])
        images["layers"] = _memory((row + [0] * (width - len(row)) for row in switch.layers), words["layers"])
    return images


def _as_line(switch: SwitchTables) -> str:
    """One switch as JSON for people."""
    content: dict[str, Any] = {
        "router": switch.router,
        "tcam": [[f"{row.value:#x}", f"{row.mask:#x}", row.output] for row in switch.rows],
    }
    if switch.escape_rows:
        content["escape"] = [[f"{row.value:#x}", f"{row.mask:#x}", row.output] for row in switch.escape_rows]
    if switch.entries is not None:
        content["entries"] = switch.entries.tolist()
    if switch.lower is not None:
        ports = range(switch.lower.shape[1])
        content["lower"] = [
            [[port for port in ports if mask >> port & 1] for mask in of_layer] for of_layer in switch.lower.tolist()
        ]
    if switch.layers is not None:
        content["layers"] = switch.layers
    return json.dumps(content)
