"""Q-adaptive as hardware: bits of its table against Q-routing's, traffic of its feedback, area and energy."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from hopforge.gen.design.q_table_blocks import q_table_block
from hopforge.gen.synth.area_and_delay import synthesize
from hopforge.gen.synth.cells import read_library
from hopforge.gen.synth.power import cycle_energy_pj
from hopforge.model.numbers.q_rule import step_and_largest
from hopforge.model.output.plots import draw_grouped_bars, new_figure, style_axes
from hopforge.model.router.q_table import QTableParams
from hopforge.sim.reproduce.costs.cacti import WAY_45NM
from hopforge.sim.reproduce.dragonflies.runs import SHAPES, study_config
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer, number
from hopforge.sim.run.simulation import Simulation

PACKET_BITS = 128 * 8
WIDTHS = (16, 12, 8)
_CASES = (("UR", 0.8), ("ADV+1", 0.3))
_LINE_BITS = 96
_RECIPE = "lut-fast"


def table_sizes(hosts: int, value_bits: int) -> Row:
    """Bits of a router's table and of a note, with a row for each router (Q-routing) and with two levels."""
    p, a, h = SHAPES[hosts]
    groups, columns = a * h + 1, a - 1 + h
    one, two = a * groups, (groups - 1) * p
    return {
        "hosts": hosts, "value_bits": value_bits, "columns": columns, "rows_one": one, "rows_two": two,
        "bits_one": one * columns * value_bits, "bits_two": two * columns * value_bits,
        "note_one": (one - 1).bit_length() + value_bits, "note_two": (groups * p - 1).bit_length() + value_bits,
    }  # fmt: skip


def notes_per_packet(hosts: int, pattern: str, hops: float) -> float:
    """Return how many notes a packet causes: one for each link but those inside the destination group.

    With a destination that is any router of another group, a packet takes a last link inside it unless it comes in at
    that very router; inside its own group it takes one link at most, without a note.
    """
    p, a, _ = SHAPES[hosts]
    inside = (a - 1) / a
    if pattern != "UR":
        return hops - inside
    near = (a - 1) * p / (hosts - 1)
    return hops - near - inside * (hosts - a * p) / (hosts - 1)


def _points(options: Options) -> list[Point]:
    points: list[Point] = [{"what": "size", "hosts": hosts, "value_bits": bits} for hosts in SHAPES for bits in WIDTHS]
    times = {"warmup_us": 250.0, "measure_us": 60.0} if options.full else {"warmup_us": 60.0, "measure_us": 30.0}
    points += [
        {"what": "notes", "hosts": 1056 if options.full else 72, "pattern": pattern, "load": load, **times}
        for pattern, load in _CASES
    ]
    if options.liberty is not None:
        sizes = [hosts for hosts in SHAPES if hosts == 1056 or (options.full and hosts > 72)]
        points += [{"what": "gates", "hosts": hosts, "value_bits": bits} for hosts in sizes for bits in WIDTHS]
    return points


def _notes(point: Point, options: Options) -> list[Row]:
    hosts, pattern, load = integer(point, "hosts"), str(point["pattern"]), number(point, "load")
    config = study_config(hosts, "Q-adaptive", pattern, load, number(point, "warmup_us"), number(point, "measure_us"))
    found = Simulation(config, load, options.seed).run()
    hops = found.hops - 1
    notes, size = notes_per_packet(hosts, pattern, hops), table_sizes(hosts, WIDTHS[0])
    share = notes * float(size["note_two"] or 0) / (hops * PACKET_BITS)
    return [{**point, "hops": hops, "notes": notes, "band_share": share}]


def table_params(hosts: int, bits: int) -> QTableParams:
    """Return the table of a router, estimates of so many bits up to about 4096 ns."""
    p, a, h = SHAPES[hosts]
    step, _ = step_and_largest(bits)
    return QTableParams(
        groups=a * h + 1, hosts=p, local_ports=a - 1, global_ports=h, value_bits=bits, near=round(300 / step),
        far=round(330 / step),
    )  # fmt: skip


def _gates(point: Point, options: Options) -> list[Row]:
    assert options.liberty is not None
    params = table_params(integer(point, "hosts"), integer(point, "value_bits"))
    library, block = read_library(options.liberty), q_table_block(params)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        best = synthesize(block, library, recipes=[_RECIPE], folder=folder, timeout_s=1800)[0]
        period = best.figure_ns or 1.0
        energy = cycle_energy_pj(folder / f"{block.name}.v", f"block_{block.name}", library, period, folder)
    sizes = [entries // 4 * _LINE_BITS for entries in WAY_45NM]
    figures = list(WAY_45NM.values())
    memory = float(np.interp(params.table_bits, sizes, [way.area_mm2 for way in figures])) * 1e6
    read = float(np.interp(params.table_bits, sizes, [way.read_energy_pj for way in figures]))
    return [
        {
            **point, "area_um2": best.area_um2, "period_ns": period, "flops": best.flops, "energy_pj": energy,
            "memory_um2": 2 * memory, "memory_pj": 4 * read,
        }
    ]  # fmt: skip


def _measure(point: Point, options: Options) -> list[Row]:
    if point["what"] == "size":
        return [{**point, **table_sizes(integer(point, "hosts"), integer(point, "value_bits"))}]
    return _notes(point, options) if point["what"] == "notes" else _gates(point, options)


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for row in data[data["what"] == "size"].to_dict("records"):
        hosts, bits = int(row["hosts"]), int(row["value_bits"])
        text = f"{row['rows_two']:.0f} instead of {row['rows_one']:.0f} rows of {row['columns']:.0f}"
        if bits == WIDTHS[0]:
            saved = 100 * (1 - row["bits_two"] / row["bits_one"])
            paper = 50.0 if hosts > 72 else None
            found.append(Comparison(f"saved by two levels, {hosts} hosts", "%", paper, saved, text))
        where = f"{hosts} hosts, {bits} bits"
        found.append(Comparison(f"table of a router, {where}", "bit", None, row["bits_two"], text))
        found.append(Comparison(f"note, {where}", "bit", None, row["note_two"], f"Q-routing {row['note_one']:.0f}"))
    for row in data[data["what"] == "notes"].to_dict("records"):
        where = f"{row['pattern']} {row['load']}, {int(row['hosts'])} hosts"
        text = f"{row['hops']:.3f} links a packet; no note inside the destination group"
        found.append(Comparison(f"notes per packet, {where}", "", None, row["notes"], text))
        text = f"if notes of {WIDTHS[0]}-bit estimates were sent as data on links with packets of 128 B"
        found.append(Comparison(f"bandwidth of notes, {where}", "%", None, 100 * row["band_share"], text))
    cells = "cells at their shortest period, no wires"
    for row in data[data["what"] == "gates"].to_dict("records"):
        where = f"{int(row['hosts'])} hosts, {int(row['value_bits'])} bits"
        found.append(Comparison(f"logic, {where}", "µm²", None, row["area_um2"], cells))
        found.append(Comparison(f"period, {where}", "ns", None, row["period_ns"], cells))
        text = "two memories of the table, interpolated between CACTI's arrays of 96-bit lines, 45 nm"
        found.append(Comparison(f"memories, {where}", "µm²", None, row["memory_um2"], text))
        energy = None if pd.isna(row["energy_pj"]) else row["energy_pj"]
        text = "OpenSTA, inputs change in every other cycle, activities propagated: rather too high"
        found.append(Comparison(f"logic in a cycle, {where}", "pJ", None, energy, text))
        text = "two reads and a write of both, each taken for a read"
        found.append(Comparison(f"memories in a cycle, {where}", "pJ", None, row["memory_pj"], text))
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    sizes = data[(data["what"] == "size") & (data["value_bits"] == WIDTHS[0])]
    figure, (axes,) = new_figure()
    style_axes(axes, title=f"Table of a router, estimates of {WIDTHS[0]} bits", x_label="", y_label="kbit")
    series = {
        text: (sizes[key].astype(float) / 1024).tolist()
        for text, key in (("Q-routing", "bits_one"), ("Q-adaptive", "bits_two"))
    }
    draw_grouped_bars(axes, groups=[f"{int(hosts)} hosts" for hosts in sizes["hosts"]], series=series)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "qadaptive.cost",
        "Q-adaptive as hardware: table, feedback, gates",
        "seed 001, section on the two-level table; spec dragonfly.md",
        (
            "balanced dragonflies; the own group has no row in the table of two levels; Q-routing has one per router",
            "a note: number of the row and an estimate; it comes with the credit, which tells port and channel",
            "hw.agents.q_table: a decision and an update per cycle; 72 hosts in place of 1056 for notes (--full: 1056)",
        ),
        _points,
        _measure,
        _compare,
        _draw,
        uses=("liberty",),
        parallel=True,
    ),
)
