"""Figure 5.22 of the routing-cache thesis (seed 004): a ring with a faulty link under node reduction."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.simulation import FailedConfig
from hopforge.model.config.topology import TorusConfig
from hopforge.model.lookup.routes import Routes
from hopforge.model.output.plots import draw_grouped_bars, new_figure, style_axes
from hopforge.model.topology import Topology, build
from hopforge.model.topology.failed import without_failed
from hopforge.model.topology.routing_table import shortest_path_ports
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer, pick

#: the ring of the figure, and larger ones
_RADICES = (5, 8, 16)
#: its faulty link: X0,+ of node "11", whose coordinate in the ring is 1
_FAULTY = (1, 2)
_WAYS = {
    "both ends": "one entry of each end turned round, as the figure shows it",
    "best keys": "the best of all contents of the reduced entries",
    "addresses": "whole addresses as keys, tables computed anew",
}

Entries = dict[tuple[int, int], int]
"""Port by (router, key): what the caches of the switches hold."""


class Ring:
    """A ring with its faulty link, and the entries of its switches while it was whole."""

    def __init__(self, radix: int) -> None:
        whole = build(TorusConfig(kind="torus", radices=(radix,)), AddressConfig(chunk_bits=4))
        self.topology: Topology = without_failed(whole, FailedConfig(links=(_FAULTY,)))
        self.routers = np.arange(radix)
        routes = Routes(whole, AddressConfig(chunk_bits=4))
        self.keys = routes.reduction.keys(self.routers[:, np.newaxis], whole.host_address).tolist()
        ports = routes.output_ports(self.routers[:, np.newaxis], self.routers).tolist()
        self.entries: Entries = {}
        for router in range(radix):
            for host in range(radix):
                port = self.entries.setdefault((router, self.keys[router][host]), ports[router][host])
                assert port == ports[router][host], "a key with two ports"
        self.links = {
            router: [port for port in range(whole.max_ports) if whole.peer_router[router, port] >= 0]
            for router in range(radix)
        }

    def delivered(self, entries: Entries) -> int:
        """Count the ordered pairs that arrive; the others go in a circle or stand before the faulty link."""
        radix, arrived = len(self.routers), 0
        for source in range(radix):
            for host in range(radix):
                at = source
                for _ in range(radix):
                    if at == host or at < 0:
                        break
                    at = int(self.topology.peer_router[at, entries[at, self.keys[at][host]]])
                arrived += source != host and at == host
        return arrived

    def turned(self) -> tuple[Entries, int]:
        """Turn round the entries that lead over the faulty link: these, and how many they are."""
        entries, changed = dict(self.entries), 0
        for (router, key), port in self.entries.items():
            if port in self.links[router] and self.topology.peer_router[router, port] < 0:
                entries[router, key] = next(other for other in self.links[router] if other != port)
                changed += 1
        return entries, changed

    def best(self) -> tuple[int, int]:
        """Find the most pairs that any contents of the entries deliver, and the fewest changes with which they do."""
        free = [place for place, port in self.entries.items() if port in self.links[place[0]]]
        found = (-1, 0)
        for ports in product(*(self.links[router] for router, _ in free)):
            entries = self.entries | dict(zip(free, ports, strict=True))
            changed = sum(entries[place] != self.entries[place] for place in free)
            if (arrived := self.delivered(entries)) > found[0] or (arrived == found[0] and changed < found[1]):
                found = (arrived, changed)
        return found

    def by_address(self) -> tuple[int, int]:
        """Entries with whole addresses: all of the largest table, and how many change in all switches."""
        damaged = shortest_path_ports(self.topology)
        changed = sum(
            int(damaged[router, host]) != self.entries[router, self.keys[router][host]]
            for router in self.routers.tolist()
            for host in self.routers.tolist()
            if router != host
        )
        return len(self.routers), int(changed)


def _measure(point: Point, options: Options) -> list[Row]:
    radix = integer(point, "radix")
    ring = Ring(radix)
    pairs = radix * (radix - 1)
    reduced = len(ring.entries) // radix
    entries, changed = ring.turned()
    rows: list[Row] = [
        {**point, "way": "both ends", "entries": reduced, "changed": changed, "delivered": ring.delivered(entries)}
    ]
    if radix == _RADICES[0]:
        arrived, changed = ring.best()
        rows.append({**point, "way": "best keys", "entries": reduced, "changed": changed, "delivered": arrived})
    most, changed = ring.by_address()
    rows.append({**point, "way": "addresses", "entries": most, "changed": changed, "delivered": pairs})
    return [{**row, "pairs": pairs, "delivered_percent": 100 * float(row["delivered"] or 0) / pairs} for row in rows]


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for row in data.to_dict("records"):
        note = f"{_WAYS[row['way']]}: {row['delivered']} of {row['pairs']} pairs, {row['changed']} entries changed"
        note += f", {row['entries']} entries for each switch"
        name = f"pairs delivered, ring of {row['radix']}, {row['way']}"
        paper = 100.0 if row["way"] == "both ends" and row["radix"] == _RADICES[0] else None
        found.append(Comparison(name, "%", paper, float(row["delivered_percent"]), note))
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure()
    style_axes(axes, title="A link of a ring is faulty", x_label="", y_label="pairs delivered (%)")
    series = {
        way: [pick(data, "delivered_percent", radix=radix, way=way) for radix in _RADICES]
        for way in ("both ends", "addresses")
    }
    draw_grouped_bars(axes, groups=[f"ring of {radix}" for radix in _RADICES], series=series)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "lookup.fig5.22",
        "A faulty link of a ring, by reduced and by whole keys",
        "seed 004, figure 5.22, section 5.3",
        (
            "node 11 of the figure has coordinate 1, its link X0,+ leads to coordinate 2; the figure has no numbers",
            "the text: updating the cache entry avoids the faulty link, here taken as: all pairs still arrive",
            "key X0,+ is for destinations up to half a ring ahead; neighbours of the fault would need two ports for it",
        ),
        lambda options: [{"radix": radix} for radix in _RADICES],
        _measure,
        _compare,
        _draw,
    ),
)
