"""Table 7.1 and figure 2.5 of Kawano's thesis (seed 002), which grade networks in words: what we measure of each."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from pydantic import TypeAdapter

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import TopologyConfig
from hopforge.model.irregular.channels import channel_list, check_next_hops, hop_counts
from hopforge.model.irregular.layers import assign_layers
from hopforge.model.irregular.loren import loren_next_hops, loren_tables
from hopforge.model.irregular.neighbours import neighbours_of
from hopforge.model.irregular.shortest import shortest_next_hops
from hopforge.model.lookup.key_ports import KeyPorts
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.lookup.routes import Routes
from hopforge.model.lookup.tcam import route_rows
from hopforge.model.numbers.address import AddressFormat
from hopforge.model.output.plots import PALETTE, new_figure, style_axes
from hopforge.model.topology import Topology, build
from hopforge.model.topology.floor_plan import cabling
from hopforge.sim.reproduce.irregular.loren_networks import SOURCE
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row

#: network and routing → section `topology`, virtual channels (None: layers are counted), grades of table 7.1
_NETWORKS: dict[str, tuple[dict[str, Any], int | None, str]] = {
    "torus, DOR": ({"kind": "torus", "radices": (16, 16)}, 2, "-+++"),
    "fat tree, up*/down*": ({"kind": "fat_tree", "k": 4, "n": 3}, 1, "-+++"),
    "dragonfly, MIN": ({"kind": "dragonfly", "p": 4, "a": 8, "h": 4}, 2, "ooo-"),
    "Slim Fly, MIN": ({"kind": "slim_fly", "q": 11, "hosts_per_router": 1}, 2, "+oo-"),
    "random, MIN": ({"kind": "random_regular", "routers": 256, "degree": 4}, None, "+---"),
    "LCR, MIN": ({"kind": "layout_random", "n": 16, "degree": 4, "length": 4}, None, "o--+"),
    "LCR, LOREN and ACRO": ({"kind": "layout_random", "n": 16, "degree": 4, "length": 4}, None, "ooo+"),
}
#: rows of table 7.1 → column of the data, unit
_CRITERIA = {
    "latency": ("hops", ""), "table": ("entries", ""), "virtual channels": ("vcs", ""),
    "total cable length": ("cable", "places"),
}  # fmt: skip
_ORDER = "+o-"


def _network(name: str, seed: int) -> Topology:
    section = _NETWORKS[name][0]
    drawn = {"seed": seed} if section["kind"] in ("random_regular", "layout_random") else {}
    config = TypeAdapter(TopologyConfig).validate_python({**section, **drawn})
    return build(config, AddressConfig(chunk_bits=4))


def _rows(topology: Topology) -> int:
    """Return the ternary rows of the largest table."""
    ports = KeyPorts(NodeReduction.of_topology(topology, AddressFormat(24, 4)), topology)
    return max(len(route_rows(ports, router)) for router in range(topology.routers))


def _measure(point: Point, options: Options) -> list[Row]:
    name = str(point["network"])
    topology = _network(name, options.seed)
    found: Row = {**point, "routers": topology.routers, "cable": cabling(topology).total}
    vcs = _NETWORKS[name][1]
    if vcs is not None:
        # Routes walks every pair: its ways are as long as those that the network takes
        hosts = np.arange(topology.hosts)
        pairs = np.stack(np.meshgrid(hosts, hosts), axis=-1).reshape(-1, 2)
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        lengths = Routes(topology, AddressConfig(chunk_bits=4)).paths(pairs[:, 0], pairs[:, 1]).lengths - 1
        return [{**found, "hops": float(lengths.mean()), "entries": _rows(topology), "vcs": vcs}]
    neighbours = neighbours_of(topology)
    channels = channel_list(neighbours)
    loren = loren_tables(neighbours) if "LOREN" in name else None
    table = shortest_next_hops(neighbours) if loren is None else loren_next_hops(loren)
    next_channel = check_next_hops(table, channels)
    layers = assign_layers("lash" if loren is None else "acro", next_channel, neighbours, channels).count
    hops = hop_counts(next_channel, channels)
    entries = _rows(topology) if loren is None else loren.least_entries
    mean = float(hops.sum() / (topology.routers * (topology.routers - 1)))
    return [{**found, "hops": mean, "entries": entries, "vcs": layers}]


def agreement(grades: Sequence[str], values: Sequence[float]) -> tuple[int, int]:
    """Count the pairs of different grades, and those of them whose values stand in the order of the grades.

    Examples
    --------
    >>> agreement("+o-", [1.0, 3.0, 2.0])
    (2, 3)
    """
    kept = total = 0
    for (a, x), (b, y) in combinations(zip(grades, values, strict=True), 2):
        if a != b:
            total += 1
            kept += (x < y) == (_ORDER.index(a) < _ORDER.index(b)) and x != y
    return kept, total


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for k, (criterion, (column, unit)) in enumerate(_CRITERIA.items()):
        values = [float(data[data["network"] == name][column].iloc[0]) for name in _NETWORKS]
        kept, total = agreement([grades[k] for _, _, grades in _NETWORKS.values()], values)
        note = f"{kept} of {total} pairs of networks with different grades"
        found.append(Comparison(f"{criterion}: pairs in the order of the grades", "%", 100.0, 100 * kept / total, note))
        for name, value in zip(_NETWORKS, values, strict=True):
            routers = int(data[data["network"] == name]["routers"].iloc[0])
            grade = {"+": "good", "o": "fair", "-": "poor"}[_NETWORKS[name][2][k]]
            found.append(Comparison(f"{criterion}: {name}", unit, None, value, f"{routers} switches", grade))
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure()
    style_axes(
        axes, title="About 256 switches: latency against cable", x_label="total cable length (places)",
        y_label="mean hops", log_x=True,
    )  # fmt: skip
    for k, row in enumerate(data.to_dict("records")):
        axes.plot([row["cable"]], [row["hops"]], marker="o", color=PALETTE[k % len(PALETTE)], linestyle="none")
        axes.annotate(
            row["network"], (row["cable"], row["hops"]), xytext=(6, 5), textcoords="offset points", fontsize=8,
            color=PALETTE[k % len(PALETTE)],
        )  # fmt: skip
    axes.margins(x=0.25, y=0.15)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "loren.table7.1",
        "Networks and routing, graded; latency against cable",
        f"{SOURCE}, table 7.1 and figure 2.5",
        (
            "the thesis grades in words: ours are measured on 242 to 264 switches; a pair of networks agrees if the "
            "better grade has the smaller value",
            "latency: mean links between hosts; cable: Manhattan length on the floor plan of each network, in places",
            "table: ternary rows of the largest table, from the key rules where a network has some, else prefixes; "
            "LOREN: entries that forwarding needs",
            "virtual channels of MIN on random networks: layers of LASH; degree 4 (LCR: links to 4 places)",
            "networks of high degree have more and longer cables for as many switches",
        ),
        lambda options: [{"network": name} for name in _NETWORKS],
        _measure,
        _compare,
        _draw,
        aliases=("loren.fig2.5",),
    ),
)
