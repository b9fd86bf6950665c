"""OutFlank routing on meshes, with outflank destinations only: what its author expected to help and did not try."""

import json
from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config import Config, parse_config
from hopforge.model.output.plots import PALETTE, new_figure, style_axes
from hopforge.sim.packet.saturation import find_saturation
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer, pick
from hopforge.sim.reproduce.tori.outflank import ANSWERS, PATTERNS, search_rows

RADICES = {"8×8": (8, 8), "16×16": (16, 16), "8×8×8": (8, 8, 8)}
ALGORITHMS = ("abr", "ofr")
#: finer than on tori: half the links cross the middle, so loads are half as high
STEP = 0.025
LOADS = tuple(round(STEP * k, 3) for k in range(2, 41))


def mesh_config(mesh: str, pattern: str, algorithm: str, answers: str) -> Config:
    """Network and traffic of one search."""
    return parse_config(
        f"name: mesh\ntopology: {{kind: mesh, radices: {list(RADICES[mesh])}}}\nrouter: {{model: packet}}\n"
        f"routing: {{algorithm: {algorithm}}}\ntraffic: {{pattern: {pattern}, message_packets: 96}}\n"
        f"packet: {json.dumps({'messages': 16, **ANSWERS[answers]})}\n"
    )


def _points(options: Options) -> list[Point]:
    return [
        {"answers": answers, "mesh": mesh, "pattern": pattern, "algorithm": algorithm, "seed": options.seed}
        for answers in ANSWERS
        for mesh, radices in RADICES.items()
        for pattern in PATTERNS
        if len(radices) == 3 or pattern != "transpose3d"
        if len(radices) == 2 or pattern != "transpose"  # 512 is no square
        for algorithm in ALGORITHMS
    ]


def measure_mesh(point: Point, _options: Options) -> list[Row]:
    """Find γ* on one mesh: a row for each load that was tried."""
    config = mesh_config(*(str(point[key]) for key in ("mesh", "pattern", "algorithm", "answers")))
    return search_rows(point, find_saturation(config, integer(point, "seed"), loads=LOADS))


def _highest(data: pd.DataFrame) -> pd.DataFrame:
    """Keep of every search the row of its highest sustained load."""
    return data[data["load"] == data["saturation"]]


def _compare(data: pd.DataFrame, _options: Options) -> list[Comparison]:
    found = _highest(data)
    result = []
    keys = ["answers", "mesh", "pattern"]
    for answers, mesh, pattern in found[keys].drop_duplicates().itertuples(index=False):
        for algorithm in ALGORITHMS:
            where = {"answers": answers, "mesh": mesh, "pattern": pattern, "algorithm": algorithm}
            share = pick(found, "outflanked", **where)
            note = "minimal only" if algorithm == "abr" else f"{100 * share:.1f} % outflank detours at γ*"
            result.append(
                Comparison(
                    f"γ*, mesh {mesh}, {PATTERNS[pattern]}, {algorithm.upper()}", "", None,
                    pick(found, "saturation", **where), f"answers: {answers}; {note}; no paper has measured this",
                )
            )  # fmt: skip
    return result


def _draw(data: pd.DataFrame, _options: Options) -> Figure:
    figure, panels = new_figure(panels=len(RADICES), width_in=4.6, height_in=3.2)
    found = _highest(data[data["answers"] == "simulator"])
    for axes, mesh in zip(panels, RADICES, strict=True):
        style_axes(axes, title=f"mesh {mesh}", x_label="γ*", y_label="")
        part = found[found["mesh"] == mesh]
        names = [name for pattern, name in PATTERNS.items() if pattern in set(part["pattern"])]
        for j, algorithm in enumerate(ALGORITHMS):
            values = [
                pick(part, "saturation", pattern=pattern, algorithm=algorithm) for pattern in part["pattern"].unique()
            ]
            places = [k + 0.4 * j for k in range(len(names))]
            axes.barh(places, values, height=0.38, color=PALETTE[j], label=algorithm.upper())
        axes.set_yticks([k + 0.2 for k in range(len(names))], names)
        axes.invert_yaxis()
        axes.legend()
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "outflank.mesh",
        "Sustained load on meshes, outflank destinations only",
        "not in a paper (seed 003 expects it, section 1); issue 5",
        (
            "load 1 as on the torus of the same size: uniform traffic saturates a mesh's bisection at 0.5",
            "16 messages of 96 packets; answers as in outflank.table2 (figure: simulator); steps of 0.025",
        ),
        _points,
        measure_mesh,
        _compare,
        _draw,
        parallel=True,
    ),
)
