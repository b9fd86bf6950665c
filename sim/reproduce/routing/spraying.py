"""Packets of a message over many ways: what spraying gains and what order costs, on a fat tree and a dragonfly.

Issue 20, point 6. Definitions: docs/definitions/spraying.md.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config import Config, parse_config
from hopforge.model.output.plots import Line, draw_lines, new_figure, style_axes
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, pick
from hopforge.sim.run.program_run import run_program
from hopforge.sim.run.simulation import Simulation

_FLOW = "one way a flow"
_ENTROPY = "algorithm: minimal, spread: entropy"
#: way → keys of section `routing`, and of `traffic` beside `reorder`
_WAYS = {
    _FLOW: (_ENTROPY, "entropy: {per: flow}"),
    "message": (_ENTROPY, "entropy: {per: message}"),
    "flowlet": (_ENTROPY, "entropy: {per: flowlet, gap_cycles: 50}"),
    "packet": (_ENTROPY, "entropy: {per: packet}"),
    "packet, 4 values": (_ENTROPY, "entropy: {per: packet, values: 4}"),
    "adaptive": ("algorithm: minimal", ""),
}
_OVER_ALL = {
    "Valiant, packet": ("algorithm: valiant, spread: entropy", "entropy: {per: packet}"),
    "UGAL": ("algorithm: ugal", ""),
}
#: name → topology, router, ways, routers at both ends of the link that fails
_NETWORKS = {
    "fat_tree": ("kind: fat_tree, k: 4, n: 2", "vcs: 1, buffer_flits: 32", _WAYS, "[0, 16]"),
    "dragonfly": ("kind: dragonfly, p: 4, a: 4, h: 4, g: 5", "vcs: 8, buffer_flits: 4", _WAYS | _OVER_ALL, "[0, 1]"),
}
_LOADS = (0.1, 0.2)
_MESSAGE, _PACKET_FLITS = 16, 4
#: places of a flow's buffer that are tried with packets sprayed
_PLACES = (0, 4, 16)
_PROGRAM_BYTES, _REPEAT = 1024, 2
_BUFFERS, _AT_ONCE = "buffer_packets", "at_once"


def _points(name: str, options: Options) -> list[Point]:
    ways = _NETWORKS[name][2]
    runs: list[Point] = [{"way": way, "load": load, "fails": False} for way in ways for load in _LOADS]
    runs += [{"way": way, "load": _LOADS[-1], "fails": True} for way in _WAYS]
    runs += [{"way": "packet", "load": _LOADS[-1], "fails": False, _BUFFERS: places} for places in _PLACES]
    programs: list[Point] = [{"way": way, "load": None, "fails": False} for way in ways]
    at_once = ("packet", "adaptive")
    programs += [
        {"way": way, "load": load, "fails": False, _AT_ONCE: True} for way in at_once for load in (_LOADS[-1], None)
    ]
    return runs + programs


def configuration(name: str, point: Point, *, full: bool, seed: int) -> Config:
    """Return what a point runs."""
    topology, router, ways, link = _NETWORKS[name]
    routing, entropy = ways[str(point["way"])]
    places = "" if point.get(_BUFFERS) is None else f"buffer_packets: {point[_BUFFERS]}"
    places = "deliver: at_once" if point.get(_AT_ONCE) else places
    traffic = ", ".join(part for part in (entropy, f"reorder: {{{places}}}") if part)
    first = f"name: spraying\nseed: {seed}\ntopology: {{{topology}}}\nrouter: {{{router}}}\nrouting: {{{routing}}}\n"
    if point["load"] is None:
        return parse_config(
            f"{first}traffic: {{source: program, flit_bytes: 16, {traffic}}}\n"
            f"workload: {{kind: collective, operation: alltoall, bytes: {_PROGRAM_BYTES},"
            f" repeat: {_REPEAT}, mtu_bytes: 64}}\n"
        )
    measured = 60_000 if full else 20_000
    failure = (
        f", failures: [{{cycle: 9000, links: [{link}], detection_cycles: 200, reprogram_cycles: 300,"
        " repair_cycles: 8000}]"
    )
    return parse_config(
        f"{first}traffic: {{packet_flits: {_PACKET_FLITS}, message_packets: {_MESSAGE}, include_self: false,"
        f" {traffic}}}\n"
        f"simulation: {{load: {point['load']}, warmup_cycles: 5000, min_cycles: {measured}, max_cycles: {measured}"
        f"{failure if point['fails'] else ''}}}\n"
    )


def _measure(name: str, point: Point, options: Options) -> list[Row]:
    config = configuration(name, point, full=options.full, seed=options.seed)
    run = Simulation(config, config.simulation.load, options.seed)
    row: Row = {_BUFFERS: None, _AT_ONCE: False, **point, "makespan": None, "saturated": None, "dropped": None}
    if point["load"] is None:
        program = run_program(run)
        row |= {"makespan": program.makespan}
        found, order = program.row(), program.reordering
    else:
        measured = run.run()
        row |= {"saturated": bool(measured.saturated), "dropped": measured.dropped_packets}
        found, order = measured.row(), measured.reordering
    assert order is not None, "traffic.reorder is given"
    row |= {key: found[key] for key in ("accepted", "message_latency", "message_latency_p99")}
    return [row | order.columns()]


def _runs(data: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with a load, in order, with buffers without a limit."""
    return data[data["load"].notna() & data[_BUFFERS].isna() & ~data[_AT_ONCE].astype(bool)]


def _compare(name: str, data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    runs = _runs(data)
    for row in runs.to_dict("records"):
        if row["way"] == _FLOW:
            continue
        base = pick(runs, "message_latency", way=_FLOW, load=row["load"], fails=row["fails"])
        failure = ", a link fails" if row["fails"] else ""
        quantity = f"{row['way']}, load {row['load']:g}{failure}: latency of messages"
        found.append(Comparison(quantity, "cycles", base, row["message_latency"], _order_words(row)))
    programs = data[data["load"].isna() & ~data[_AT_ONCE].astype(bool)]
    base = pick(programs, "makespan", way=_FLOW)
    found += [
        Comparison(f"{row['way']}, all-to-all: makespan", "cycles", base, row["makespan"], _order_words(row))
        for row in programs.to_dict("records") if row["way"] != _FLOW
    ]  # fmt: skip
    return found


def _order_words(row: Mapping[Any, Any]) -> str:
    """Say how far packets come out of order."""
    saturated = "saturated; " if row["saturated"] is True else ""
    return (
        f"{saturated}reordered {100 * row['reordered_share']:.1f} %, at most {row['reorder_buffer_max']}"
        f" packets of a flow wait, {row['host_buffer_max']} at a host"
    )


def _table(name: str, data: pd.DataFrame, options: Options) -> pd.DataFrame:
    """Return all runs as people read them."""
    return pd.DataFrame([_cells(row) for row in data.to_dict("records")])


def _cells(row: Mapping[Any, Any]) -> dict[str, str]:
    number = {key: float(value) for key, value in row.items() if isinstance(value, float) or type(value) is int}
    load, places = (number.get(key, math.nan) for key in ("load", _BUFFERS))
    run = "all-to-all" if math.isnan(load) else f"load {load:g}"
    run += ", a link fails" if row["fails"] else ""
    run += "" if math.isnan(places) else f", {places:.0f} places"
    run += ", at once" if row[_AT_ONCE] else ""
    extent = f"{number['reorder_extent']:.1f}, {number['reorder_extent_max']:.0f}"
    return {
        "way": str(row["way"]),
        "run": run,
        "accepted": f"{number['accepted']:.3f}" + (" (saturated)" if row["saturated"] is True else ""),
        "makespan": f"{number['makespan']:.0f}" if math.isnan(load) else "–",
        "messages: mean, 99 %": f"{number['message_latency']:.0f}, {number['message_latency_p99']:.0f}",
        "reordered": f"{100 * number['reordered_share']:.1f} %",
        "three-reordered": f"{100 * number['three_reordered_share']:.1f} %",
        "extent: mean, max": extent if number["reordered_share"] > 0 else "–",
        "flow's buffer: 99 %, max": f"{number['reorder_buffer_p99']:.0f}, {number['reorder_buffer_max']:.0f}",
        "host's: max, flits": f"{number['host_buffer_max']:.0f}, {number['host_buffer_flits_max']:.0f}",
        "delay": f"{number['reorder_delay']:.1f}",
    }


def _draw(name: str, data: pd.DataFrame, options: Options) -> Figure:
    runs = _runs(data)
    runs = runs[~runs["fails"].astype(bool)]
    figure, (left, right) = new_figure(panels=2)
    style_axes(left, title="Latency of messages", x_label="offered load", y_label="99 % (cycles)")
    style_axes(right, title="Reorder buffer of a host", x_label="offered load", y_label="most packets")
    for axes, column in ((left, "message_latency_p99"), (right, "host_buffer_max")):
        lines = []
        for number, way in enumerate(runs["way"].unique()):
            points = runs[runs["way"] == way]
            lines.append(Line(way, points["load"], points[column], number))
        draw_lines(axes, lines)
    return figure


def _reproduction(name: str) -> Reproduction:
    topology, router, _, _ = _NETWORKS[name]
    return Reproduction(
        name=f"spraying.{name}",
        title=f"Spraying and reordering: {name.replace('_', ' ')}",
        source="not in a paper; issue 20",
        assumptions=(
            f"topology: {topology}; router: {router}",
            f"uniform traffic, messages of {_MESSAGE} packets of {_PACKET_FLITS} flits, in-order delivery",
            "flowlets: gap of 50 cycles; places: of the reorder buffer for each flow, else no limit",
            "a link fails in cycle 9000 and works again 8000 cycles later; 200 cycles to detect, 300 for new tables",
            f"all-to-all, {_REPEAT} times: {_PROGRAM_BYTES} bytes from each rank to each other, packets of 64 bytes",
            "at once: every packet counts when it comes, the buffer is what order would need",
        ),
        points=partial(_points, name),
        measure=partial(_measure, name),
        compare=partial(_compare, name),
        draw=partial(_draw, name),
        reference=_FLOW,
        table=partial(_table, name),
        parallel=True,
    )


REPRODUCTIONS: Sequence[Reproduction] = tuple(_reproduction(name) for name in _NETWORKS)
