"""Hit rates on the report page: runs of the same workload beside each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from hopforge.sim.hits.hit_rates import HitReport
from hopforge.sim.pages.report import Column, Fact, Figure, Section, Table, bars, heatmap, shown_series, thousands

REGULAR = frozenset({"mesh", "torus"})
"""Kinds of topology with the same ports at every switch."""

_CAUSES = ("compulsory", "capacity", "conflict")


@dataclass(frozen=True)
class HitRun:
    """What the page needs of a run of `hopforge hits`, from the run itself or from its files.

    Attributes
    ----------
    network : str
        Name of the topology.
    regular : bool
        A port number means the same direction at every switch.
    slot_bytes : int
        Bytes of a packet for the rates.
    totals : mapping
        The whole network, as in `HitReport`.
    classes, ports : DataFrame
        Tables of that name, as in `HitReport`.
    """

    network: str
    regular: bool
    slot_bytes: int
    totals: Mapping[str, Any]
    classes: pd.DataFrame
    ports: pd.DataFrame


def hit_run(found: HitReport) -> HitRun:
    """Return what the page needs of `found`."""
    kind = found.topology.kind
    slot_bytes = found.config.timing.slot_bytes
    return HitRun(found.topology.name, kind in REGULAR, slot_bytes, found.totals, found.classes, found.ports)


def hit_section(runs: Mapping[str, HitRun], commands: Mapping[str, str]) -> Section:
    """Return cards, plots and tables of labelled runs; the first run is the one on the cards.

    Parameters
    ----------
    runs : mapping of str to HitRun
        Runs by their label.
    commands : mapping of str to str
        Command that repeats each run.
    """
    if not runs:
        raise ValueError("runs must have at least 1 entry, not 0")
    first, *others = runs
    run = runs[first]
    totals = run.totals
    text = (
        f"{totals['workload']} on a {run.network}: {thousands(totals['packets'])} packets, a routing cache at"
        " every input port of every switch. A packet asks the cache of each switch on its way; a miss asks the"
        " TCAM.\n\n"
        "A miss is compulsory (the key was never asked for before), a capacity miss (a fully associative cache would"
        " miss too) or a conflict miss."
    )
    rates = {label: f"{100 * other.totals['hit_rate']:.3f} %" for label, other in runs.items()}
    misses = {label: thousands(other.totals["misses"]) for label, other in runs.items()}
    facts = [
        Fact("hit rate", rates[first], ", ".join(f"{rates[label]} {label}" for label in others)),
        Fact("misses", misses[first], ", ".join(f"{misses[label]} {label}" for label in others)),
        Fact("lookups", thousands(totals["lookups"]), f"{totals['mean_switches_per_packet']:.3g} switches a packet"),
        Fact("no TCAM row", thousands(totals["unmatched"]), "lookups without an answer"),
    ]
    return Section(
        "Hit rates",
        text,
        facts,
        [
            _misses_by_class(runs, commands[first]),
            *_maps(runs, commands),
            _classes(runs, commands[first]),
            _ports(runs, commands[first]),
        ],
    )


def consequence_section(runs: Mapping[str, HitRun], commands: Mapping[str, str]) -> Section:
    """Return what the hit rates of labelled runs mean for time, rate and energy, beside a switch without cache."""
    first = next(iter(runs))
    totals = runs[first].totals
    rows: list[list[Any]] = [
        ["mean lookup time, ns", *_each(runs, "lookup_ns"), totals["conventional_lookup_ns"]],
        ["forwarding rate of a port, Gbps", *_each(runs, "forwarding_gbps"), totals["conventional_forwarding_gbps"]],
        ["power of the lookups of a switch, W", *_each(runs, "switch_power_w"), totals["conventional_switch_power_w"]],
        ["mean latency of a packet, ns", *_each(runs, "mean_latency_ns"), totals["conventional_mean_latency_ns"]],
    ]
    labels = [*runs, "no cache"]
    charts = [
        bars(title, labels, {title: values[1:]}, y=unit, command=commands[first])
        for title, unit, values in (
            ("Forwarding rate of a port", "Gbps", rows[1]),
            (f"Power of the lookups of a switch at {thousands(totals['switch_load_gbps'])} Gbps", "W", rows[2]),
        )
    ]
    table = Table(
        "With and without the cache",
        [Column("quantity"), *(Column(label, digits=3) for label in labels)],
        rows,
        f"Packets of {runs[first].slot_bytes} bytes; latency at zero load over all packets of the run.",
        commands[first],
    )
    return Section(
        "What follows",
        "The hit rates decide how often the slow and hungry TCAM is asked. The times and energies of cache and TCAM are"
        " those of section timing of the configuration.",
        (),
        [table, *charts],
    )


def _each(runs: Mapping[str, HitRun], name: str) -> list[float]:
    return [run.totals[name] for run in runs.values()]


def _misses_by_class(runs: Mapping[str, HitRun], command: str) -> Figure:
    tables = {label: run.classes[run.classes["lookups"] > 0] for label, run in runs.items()}
    x = [
        [name for table in tables.values() for name in table["port_class"]],
        [label for label, table in tables.items() for _ in range(len(table))],
    ]
    order = sorted(range(len(x[0])), key=lambda place: x[0].index(x[0][place]))  # by class, then by run
    sides = [[side[place] for place in order] for side in x]
    shares, without = shown_series({
        f"{cause} misses": np.concatenate([1000 * table[cause] / table["lookups"] for table in tables.values()])[order]
        for cause in _CAUSES
    })  # fmt: skip
    traces = [
        {
            "type": "bar",
            "name": name,
            "x": sides if len(runs) > 1 else sides[0],
            "y": share,
            "hovertemplate": "%{x}: %{y:.4~g} of 1000<extra></extra>",
        }
        for name, share in shares.items()
    ]
    layout = {
        "barmode": "stack",
        "xaxis": {"type": "multicategory" if len(runs) > 1 else "category"},
        "yaxis": {"title": {"text": "misses per 1000 lookups"}, "rangemode": "tozero"},
    }
    caption = "By class of input port: host, or the direction that the port sends in. Click a cause to hide or show it."
    caption = f"{caption} {without}".strip()
    return Figure("Misses by cause", traces, layout, caption, command, height_px=420)


def _maps(runs: Mapping[str, HitRun], commands: Mapping[str, str]) -> list[Figure]:
    """Return a map of the ports of each run, all with the same colours."""
    rates = {}
    for label, run in runs.items():
        counts = run.ports.groupby(["port", "router"])[["lookups", "hits"]].sum()
        rates[label] = (100 * counts["hits"] / counts["lookups"].where(counts["lookups"] > 0)).unstack("router")
    lowest = min(table.min().min() for table in rates.values())
    classes = next(iter(runs.values())).ports.drop_duplicates("port").set_index("port")["port_class"]
    regular = all(run.regular for run in runs.values())  # a port means the same everywhere
    return [
        heatmap(
            f"Hit rate of every input port, {label}",
            [f"{port} {classes[port]}" if regular else str(port) for port in table.index],
            [str(router) for router in table.columns],
            table.to_numpy(),
            x="switch",
            y="port",
            unit="%",
            caption="A gap is a port that no packet entered.",
            command=commands[label],
            limits=(lowest, 100.0),
        )
        for label, table in rates.items()
    ]


def _classes(runs: Mapping[str, HitRun], command: str) -> Table:
    columns = ["port_class", "lookups", "hits", *_CAUSES, "evictions"]
    rows = [
        [label, *row, 1000 * (1 - rate), 100 * rate, lookup_ns]
        for label, run in runs.items()
        for row, rate, lookup_ns in zip(
            run.classes[columns].itertuples(index=False),
            run.classes["hit_rate"],
            run.classes["lookup_ns"],
            strict=True,
        )
    ]
    heads = [Column("keys"), Column("port"), *(Column(name) for name in columns[1:])]
    heads += [Column("misses of 1000", 2, bar=True), Column("hit rate, %", 3), Column("lookup, ns", 3)]
    return Table("By class of port", heads, rows, command=command)


def _ports(runs: Mapping[str, HitRun], command: str) -> Table:
    columns = ["router", "port", "port_class", "lookups", *_CAUSES]
    rows: list[list[object]] = []
    for label, run in runs.items():
        used: pd.DataFrame = run.ports[run.ports["lookups"] > 0]
        for row, rate in zip(used[columns].itertuples(index=False), used["hit_rate"], strict=True):
            rows.append([label, *row, 1000 * (1 - rate), 100 * rate])
    heads = [Column("keys"), Column("switch"), Column("port"), Column("class"), *(Column(n) for n in columns[3:])]
    heads += [Column("misses of 1000", 2, bar=True), Column("hit rate, %", 3)]
    return Table("Every port", heads, rows, command=command)
