"""What `hopforge route` shows and writes: figures of merit, tables in three formats, pictures."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.irregular.channels import check_next_hops, hop_counts
from hopforge.model.irregular.failure import FailureReport
from hopforge.model.irregular.landmarks import LandmarkTables, fitting
from hopforge.model.irregular.loren import LorenTables, loren_next_hops, loren_tables
from hopforge.model.irregular.tables import RoutingTables
from hopforge.model.output.plots import PALETTE, Line, draw_lines, new_figure, save_figure, style_axes
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.model.topology.floor_map import MAX_DRAWN_LINKS, draw_channel_values, new_map
from hopforge.model.topology.floor_plan import positions
from hopforge.sim.pages.forwarding_tables import lft_lines, subnet_lids
from hopforge.sim.pages.route_load import all_to_all_load, hotspot_quality, local_quality

__all__ = ["layer_lines", "quality_table", "route_rows", "write_route"]

MAX_CURVE_ROUTERS = 1024
"""Most routers for which the curve of path length against entries is computed, and the layer of every hop written."""


def quality_table(config: Config, tables: RoutingTables, progress: Callable[[int, int], None]) -> pd.DataFrame:
    """Effective bandwidth and average efficiency of every pattern of section `tables`.

    Returns
    -------
    DataFrame
        Columns pattern, parameter, bandwidth, efficiency.
    """
    section = config.tables
    kinds = [("hotspot", beta) for beta in section.hotspot] + [("local", gamma) for gamma in section.local]
    rows = []
    for number, (kind, value) in enumerate(kinds):
        progress(number, len(kinds))
        generator = np.random.default_rng((config.seed, 5, number))
        if kind == "hotspot":
            found = hotspot_quality(value, section.patterns, tables.next_channel, tables.channels, generator)
        else:
            place = positions(tables.topology)
            found = local_quality(value, place, section.patterns, tables.next_channel, tables.channels, generator)
        rows.append({"pattern": kind, "parameter": value, **found._asdict()})
    progress(len(kinds), len(kinds))
    return pd.DataFrame(rows, columns=["pattern", "parameter", "bandwidth", "efficiency"])


def route_rows(tables: RoutingTables, quality: pd.DataFrame) -> list[tuple[str, str]]:
    """Subject and words for the terminal."""
    off = ~np.eye(len(tables.hops), dtype=bool)
    near = tables.shortest[off]
    hops = np.stack([one.hops[off] for one in tables.all_paths])
    load = _loads(tables)
    stretch = hops / near
    several = [("paths", different_words(tables))] if tables.others else []
    rows = [
        ("network", tables.topology.name),
        ("entries", f"{tables.entries.max()} at most, {tables.entries.mean():.1f} on average"),
        ("bits", f"{tables.entry_bits} an entry, {tables.table_bits} the largest table"),
        ("path length", f"{hops.mean():.4g} hops on average, {hops.max()} at most"),
        ("shortest paths", f"{near.mean():.4g} hops on average, {near.max()} at most"),
        ("stretch", f"{stretch.mean():.4g} on average, {stretch.max():.4g} at most"),
        *several,
        ("virtual layers", tables.checked_words),
        ("paths per channel", f"{load.mean():.4g} on average, deviation {load.std():.4g}, {load.max()} at most"),
    ]
    for row in quality.itertuples():
        rows.append(
            (
                f"{row.pattern}({row.parameter:g})",
                f"effective bandwidth {row.bandwidth:.4g}, average efficiency {row.efficiency:.4g}",
            )
        )
    return rows


def different_words(tables: RoutingTables) -> str:
    """Say how many first hops the paths of a pair of routers have, for people."""
    first = np.sort(np.stack([one.next_hop for one in tables.all_paths]), axis=0)
    different = 1 + (first[1:] != first[:-1]).sum(axis=0)
    pairs = different[tables.hops > 0]
    return f"{len(first)} for each pair, by {pairs.mean():.4g} neighbours on average, {pairs.min()} at least"


def _loads(tables: RoutingTables) -> NDArray[np.int64]:
    """Paths on every channel, of all pairs and path numbers."""
    return np.sum([all_to_all_load(one.next_channel, tables.channels) for one in tables.all_paths], axis=0)


def _entries(tables: RoutingTables) -> Iterator[list[list[int]]]:
    """Yield the entries (destination, next router) of every router, in the order in which they are searched."""
    details = tables.details
    for u, next_hop in enumerate(tables.next_hop):
        if isinstance(details, LorenTables):
            count = details.entries[u]
            pairs = np.stack([details.destination[u, :count], details.successor[u, :count]], axis=1)
        else:
            known = np.flatnonzero(details.known[u] if isinstance(details, LandmarkTables) else next_hop >= 0)
            pairs = np.stack([known, next_hop[known]], axis=1)
        yield pairs.tolist()


def _table_lines(tables: RoutingTables, config: Config) -> Iterator[str]:
    """Yield the parts of a JSON document of the tables, a router at a time."""
    document: dict[str, object] = {
        "scheme": config.tables.scheme,
        "network": tables.topology.name,
        "routers": tables.topology.routers,
        "layers": {"method": tables.layers.method, "count": tables.layers.count},
    }
    if isinstance(tables.details, LandmarkTables):
        document["landmarks"] = tables.details.landmarks.tolist()
        document["landmark_of"] = tables.details.landmark_of.tolist()
    if tables.layers.orders is not None:
        ends = zip(tables.channels.source.tolist(), tables.channels.target.tolist(), strict=True)
        document["channels"] = list(ends)
        document["orders"] = tables.layers.orders.order.tolist()
    yield json.dumps(document)[:-1]
    for number, one in enumerate(tables.all_paths):
        yield from _rows(f"entries_{number}" if number else "entries", _entries(one))
    if tables.layers.escape is not None:
        targets = np.append(tables.channels.target, -1)
        yield from _rows("escape_next_hops", (targets[row].tolist() for row in tables.layers.escape))
    yield "}\n"


def _rows(key: str, rows: Iterable[list[Any]]) -> Iterator[str]:
    yield f', "{key}": ['
    for number, row in enumerate(rows):
        yield (",\n" if number else "\n") + json.dumps(row)
    yield "]"


def _hop_lines(tables: RoutingTables) -> Iterator[str]:
    """Yield lines as ``scheme: file`` reads them."""
    return (",".join(map(str, row.tolist())) + "\n" for row in tables.next_hop)


def layer_lines(tables: RoutingTables) -> Iterator[str]:
    """Yield lines as ``layers: file`` reads them: source, destination, and one layer, or one for each hop.

    Those of a source come together.
    """
    layers, nodes = tables.layers, tables.topology.routers
    for source in range(nodes):
        lines = []
        for destination in range(nodes):
            start, end = layers.starts[source * nodes + destination : source * nodes + destination + 2]
            of_hops = layers.layer[start:end].tolist()
            if of_hops:
                kept = of_hops if len(set(of_hops)) > 1 else of_hops[:1]
                lines.append(f"{source},{destination},{','.join(map(str, kept))}\n")
        yield "".join(lines)


def _curve(config: Config, tables: RoutingTables, progress: Callable[[int, int], None]) -> pd.DataFrame:
    """Path lengths for table sizes from the least to one entry per destination."""
    scheme, nodes = config.tables.scheme, tables.topology.routers
    generator = np.random.default_rng((config.seed, 4))
    off = ~np.eye(nodes, dtype=bool)
    details = tables.details
    least = details.least_entries if isinstance(details, LorenTables) else None
    if least is None:
        least = int(fitting(tables.neighbours, scheme, None, generator).entries.max())
    sizes = np.unique(np.geomspace(least, max(nodes - 1, least), 8).round().astype(int))
    rows = []
    for number, size in enumerate(sizes):
        progress(number, len(sizes))
        try:
            if scheme == "loren":
                assert isinstance(details, LorenTables)
                loren = loren_tables(tables.neighbours, int(size), details.plan)
                next_hop, used = loren_next_hops(loren), int(loren.entries.max())
            else:
                landmark = fitting(tables.neighbours, scheme, int(size), np.random.default_rng((config.seed, 4)))
                next_hop, used = landmark.next_hop, int(landmark.entries.max())
        except UserError:  # landmarks are drawn: the smallest size may not come again
            continue
        hops = hop_counts(check_next_hops(next_hop, tables.channels), tables.channels)[off]
        rows.append({"t_max": int(size), "entries": used, "mean_hops": float(hops.mean()), "max_hops": int(hops.max())})
    progress(len(sizes), len(sizes))
    return pd.DataFrame(rows)


def _draw_curve(curve: pd.DataFrame, tables: RoutingTables, title: str, path: Path) -> None:
    off = ~np.eye(len(tables.hops), dtype=bool)
    figure, (axes,) = new_figure()
    style_axes(axes, title=title, x_label="entries of the largest table", y_label="hops")
    entries = curve["entries"].to_numpy()
    ends = [entries.min(), entries.max()]
    lines = [
        Line("longest", entries, curve["max_hops"], color=1),
        Line("mean", entries, curve["mean_hops"], color=0),
        Line("mean of shortest", ends, [tables.shortest[off].mean()] * 2, color=2, dashed=True, marked=False),
    ]
    axes.set_ylim(0, 1.08 * curve["max_hops"].max())
    draw_lines(axes, lines)
    save_figure(figure, path)


def _draw_landmarks(tables: RoutingTables, details: LandmarkTables, path: Path) -> None:
    figure, axes = new_map(
        tables.topology, f"{tables.topology.name}: landmarks (L), a line from every router to its own"
    )
    place = positions(tables.topology)
    size = float(np.clip(20000 / tables.topology.routers, 3, 160))
    rank = np.searchsorted(details.landmarks, details.landmark_of)
    colours = [PALETTE[k % len(PALETTE)] for k in rank]
    lines = np.stack([place, place[details.landmark_of]], axis=1)
    axes.add_collection(LineCollection(list(lines), colors=colours, linewidths=1.2, zorder=2))
    axes.scatter(place[:, 0], place[:, 1], s=size, c=colours, marker="s", zorder=3)
    for landmark in details.landmarks:
        axes.annotate("L", place[landmark], ha="center", va="center", fontsize=7, fontweight="bold", zorder=5)
    save_figure(figure, path)


def write_route(
    config: Config,
    tables: RoutingTables,
    quality: pd.DataFrame,
    folder: Path,
    progress: Callable[[int, int], None],
    failure: FailureReport | None = None,
) -> None:
    """Write figures of merit, channels, tables (CSV, JSON, LFT), pictures and metadata; all or nothing.

    With `failure` `tables` are those of the switches that work, and what it says of the change is written, too.
    """
    channels = tables.channels
    load = _loads(tables)
    rows = route_rows(tables, quality) + ([] if failure is None else failure.rows)
    named = tables if failure is None else failure.named
    routers = pd.DataFrame({"router": np.arange(named.topology.routers), "entries": named.entries})
    frames = {
        "summary": pd.DataFrame(rows, columns=["subject", "value"]),
        "routers": routers if failure is None else failure.routers,
        "channels": pd.DataFrame({"router": named.channels.source, "to_router": named.channels.target, "paths": load}),
        "quality": quality,
    }
    lids = subnet_lids(named.topology, config.tables.lmc)
    with staged(folder) as scratch:
        if isinstance(tables.details, LorenTables | LandmarkTables) and tables.topology.routers <= MAX_CURVE_ROUTERS:
            frames["path_length"] = _curve(config, tables, progress)
            _draw_curve(
                frames["path_length"], tables, f"{config.tables.scheme}: path length", scratch / "path_length.png"
            )
        write_tables(scratch, frames)
        texts = {"tables.json": _table_lines(named, config)}
        for path, one in enumerate(named.all_paths):
            suffix = f"_{path}" if path else ""
            texts[f"next_hops{suffix}.csv"] = _hop_lines(one)
            if tables.layers.escape is None and tables.topology.routers <= MAX_CURVE_ROUTERS:
                texts[f"layers{suffix}.csv"] = layer_lines(one)
        if lids is not None:
            texts["lft.txt"] = lft_lines(named, lids)
        done, parts = 0, len(texts) * named.topology.routers
        for name, lines in texts.items():
            with (scratch / name).open("w", encoding="utf-8") as file:
                for text in lines:
                    file.write(text)
                    done += 1
                    progress(min(done, parts), parts)
        progress(parts, parts)
        if len(load) <= 2 * MAX_DRAWN_LINKS:
            physical = tables.topology.channels()
            number = {pair: k for k, pair in enumerate(zip(channels.source, channels.target, strict=True))}
            drawn = [load[number[pair]] for pair in zip(physical.src_router, physical.dst_router, strict=True)]
            draw_channel_values(
                tables.topology, drawn, title=f"{tables.topology.name}: paths per channel, all to all",
                label="paths", path=scratch / "load.png",
            )  # fmt: skip
        if isinstance(tables.details, LandmarkTables):
            _draw_landmarks(tables, tables.details, scratch / "landmarks.png")
        write_metadata(scratch, run_metadata(config))
