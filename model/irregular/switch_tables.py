"""What one switch of an irregular network is given: rows of its TCAM, entries, and how it finds virtual layers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.irregular.landmarks import LandmarkTables
from hopforge.model.irregular.layers import Layers
from hopforge.model.irregular.loren import LorenTables
from hopforge.model.irregular.tables import RoutingTables, next_ports
from hopforge.model.lookup.tcam import TcamRow, prefix_rows, table_prefixes
from hopforge.model.topology.parallel_links import parallel_ports

__all__ = ["LAYER_RULES", "SwitchTables", "channel_orders", "layers_by_destination", "lower_ports", "switch_tables"]

LAYER_RULES = {
    "acro": "order", "lash": "start", "dfsssp": "start", "nue": "start", "single": "start", "hop_indexed": "hop",
    "lash_tor": "path", "file": "path", "escape": "escape",
}  # fmt: skip
"""How a switch finds the layer of a packet, by method of section `tables`.

order: from the layer, the input and the output port; start: the switch of the source gives the packet its layer; hop:
the number of hops; path: the switch of the source gives the packet the layers of all hops; escape: any layer but 0, or
layer 0 by the rows of the escape.
"""


@dataclass(frozen=True, eq=False)
class SwitchTables:
    """Tables of one switch.

    Attributes
    ----------
    router : int
        Its number.
    rows : tuple of TcamRow
        Host address → output port; the first row that matches counts. Hosts of failed switches have none.
    escape_rows : tuple of TcamRow
        The same for the escape, if the layers have one.
    entries : ndarray, int32[entry, 2], optional
        Destination switch and output port of the entries of compact schemes, in the order of the search.
    lower : ndarray of int, object[layer, input port], optional
        Rule *order*: bit p is set where a packet that leaves by port p goes one layer lower.
    layers : list of list of int, optional
        Rules *start* and *path*: layer (of each hop) for every destination host; empty for the switch's own hosts.
    """

    router: int
    rows: tuple[TcamRow, ...]
    escape_rows: tuple[TcamRow, ...] = ()
    entries: NDArray[np.int32] | None = None
    lower: NDArray[np.object_] | None = None
    layers: list[list[int]] | None = None


def channel_orders(tables: RoutingTables) -> NDArray[np.int32]:
    """ACRO's orders as a switch sees them: int32[layer, router, 0 in | 1 out, port]; -1 at hosts and idle ports."""
    layers = tables.layers
    assert layers.orders is not None
    topology, channels = tables.topology, tables.channels
    number = {pair: k for k, pair in enumerate(zip(channels.source, channels.target, strict=True))}
    table = np.full((layers.count, topology.routers, 2, topology.max_ports), -1, np.int32)
    for router, port in np.argwhere(topology.peer_router >= 0):
        peer = topology.peer_router[router, port]
        table[:, router, 0, port] = layers.orders.order[:, number[peer, router]]
        table[:, router, 1, port] = layers.orders.order[:, number[router, peer]]
    return table


def lower_ports(orders: NDArray[np.int32]) -> NDArray[np.object_]:
    """Rule of ACRO as masks, int[layer, router, input port]: from channel a to b one layer lower unless a > b.

    Parameters
    ----------
    orders : ndarray, int32[layer, router, 0 in | 1 out, port]
        As `channel_orders` gives them.
    """
    into, out = orders[:, :, 0, :, None], orders[:, :, 1, None, :]
    lower = (into <= out) & (into >= 0) & (out >= 0)
    rows = np.packbits(lower, axis=3, bitorder="little")
    masks = [int.from_bytes(row.tobytes(), "little") for row in rows.reshape(-1, rows.shape[3])]
    return np.array(masks, object).reshape(lower.shape[:3])


def layers_by_destination(layers: Layers, routers: int, router: int) -> list[list[int]]:
    """Layers of the hops of the paths of one switch, by destination switch; one layer if it never changes."""
    found = []
    for destination in range(routers):
        of_hops = layers.of_path(router, destination)
        found.append(of_hops if LAYER_RULES[layers.method] == "path" else of_hops[:1])
    return found


def _interleaved(tables: RoutingTables) -> list[int] | None:
    """Bits of a host number, lowest first, so that squares of the floor plan are blocks; None: no such plan."""
    topology, details = tables.topology, tables.details
    if not isinstance(details, LorenTables):
        return None
    side, per_router = details.plan.side, topology.hosts // topology.routers
    whole = (topology.host_router == np.arange(topology.hosts) // max(per_router, 1)).all()
    if side & (side - 1) or per_router & (per_router - 1) or per_router * topology.routers != topology.hosts:
        return None
    if not whole or (topology.host_address != np.arange(topology.hosts)).any():
        return None
    low, bits = per_router.bit_length() - 1, side.bit_length() - 1
    return [*range(low), *(low + axis * bits + bit for bit in range(bits) for axis in (0, 1))]


def _moved(value: int, order: list[int], *, back: bool) -> int:
    """Bits of `value` in another order; those above stay."""
    result = value >> len(order) << len(order)
    for place, bit in enumerate(order):
        source, target = (place, bit) if back else (bit, place)
        result |= (value >> source & 1) << target
    return result


def address_rows(outputs: dict[int, int], width_bits: int, orders: list[list[int]]) -> tuple[TcamRow, ...]:
    """Return few rows that give each address its output and match no other address.

    Rows are prefixes of the address with its bits in the best of some orders.

    Parameters
    ----------
    outputs : dict
        Output by address.
    width_bits : int
        Width of an address.
    orders : list of list of int
        Orders of the low bits, lowest first.
    """
    best: list[TcamRow] | None = None
    for order in orders:
        moved = {_moved(address, order, back=False): output for address, output in outputs.items()}
        rows = [
            TcamRow(_moved(row.value, order, back=True), _moved(row.mask, order, back=True), row.output)
            for row in prefix_rows(table_prefixes(moved, width_bits), width_bits)
        ]
        if best is None or len(rows) < len(best):
            best = rows
    return tuple(best or ())


def _entries(tables: RoutingTables, ports: NDArray[np.int32], router: int) -> NDArray[np.int32] | None:
    details = tables.details
    if isinstance(details, LorenTables):
        known = details.destination[router, : details.entries[router]]
        port_to = {int(tables.next_hop[router, d]): int(ports[router, d]) for d in range(len(ports)) if d != router}
        out = [port_to[int(w)] for w in details.successor[router, : details.entries[router]]]
        return np.stack([known, np.array(out, np.int32)], axis=1)
    if isinstance(details, LandmarkTables):
        known = np.flatnonzero(details.known[router]).astype(np.int32)
        return np.stack([known, ports[router, known]], axis=1)
    return None


def switch_tables(tables: RoutingTables, width_bits: int) -> Iterator[SwitchTables]:
    """Yield what every switch is given, in their order; of parallel links that of the destination's number.

    Parameters
    ----------
    tables : RoutingTables
        Checked tables and layers.
    width_bits : int
        Width of an address.
    """
    topology, layers = tables.topology, tables.layers
    rule = LAYER_RULES[layers.method]
    ports = next_ports(topology, tables.channels, tables.next_channel)
    escape = None if layers.escape is None else next_ports(topology, tables.channels, layers.escape)
    lower = lower_ports(channel_orders(tables)) if rule == "order" else None
    interleaved = _interleaved(tables)
    orders = [[], *([interleaved] if interleaved else [])]
    addresses = topology.host_address.tolist()

    parallel = parallel_ports(topology)

    def rows(table: NDArray[np.int32], router: int) -> tuple[TcamRow, ...]:
        out = parallel.of_number(router, table[router, topology.host_router], np.arange(topology.hosts))
        out = np.where(topology.host_router == router, topology.host_port, out)
        outputs = {address: port for address, port in zip(addresses, out.tolist(), strict=True) if port >= 0}
        return address_rows(outputs, width_bits, orders)

    for router in range(topology.routers):
        by_host = None
        if rule in ("start", "path"):
            by_router = layers_by_destination(layers, topology.routers, router)
            by_host = [by_router[there] for there in topology.host_router.tolist()]
        yield SwitchTables(
            router,
            rows(ports, router),
            () if escape is None else rows(escape, router),
            _entries(tables, ports, router),
            None if lower is None else lower[:, router],
            by_host,
        )
