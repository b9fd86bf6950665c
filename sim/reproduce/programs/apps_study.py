"""What the routing cache does for programs when switch delays follow from its hit rates: jobs, places, sizes, links."""

from collections.abc import Sequence
from itertools import product

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config import Config, parse_config
from hopforge.model.config.workload import ProgramWorkload
from hopforge.model.output.plots import Line, draw_lines, new_figure, style_axes
from hopforge.model.topology import build
from hopforge.sim.programs.cache_delays import CacheUse, cache_use
from hopforge.sim.programs.flow_engine import FlowRun
from hopforge.sim.reproduce.programs.apps_figures import with_values
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer
from hopforge.sim.traffic.placed import place_program

_PLACES = ("linear", "random", "spread")
_WORDS = {"linear": "contiguous", "random": "scattered", "spread": "over the whole machine"}
_PROGRAMS = {
    "mg": "{{kind: npb, benchmark: mg, class: A, ranks: {ranks}, iterations: 2, mapping: {{kind: {place}}}}}",
    "alltoall": "{{kind: collective, operation: alltoall, bytes: 1024, ranks: {ranks}, mapping: {{kind: {place}}}}}",
}
_TITLES = {"mg": "MG", "alltoall": "All-to-all"}
#: lines of a cache
_LARGE, _SMALL = 2048, 256
#: label: node reduction, lines of a cache
_CACHES = {"cache, node reduction": (True, _LARGE), "cache, whole addresses": (False, _LARGE),
           "small cache, whole addresses": (False, _SMALL)}  # fmt: skip
#: label: penalty of a miss, ns
_PENALTIES = {"61 ns on a miss": 10.0, "76 ns on a miss": 25.0}


def _points(options: Options) -> list[Point]:
    sizes = (32, 64, 256, 1024) if options.full else (32, 64, 256)
    return [
        {"program": program, "ranks": ranks, "place": place, "full": options.full}
        for program in _PROGRAMS
        for ranks in sizes
        for place in _PLACES
    ]


def _config(point: Point, options: Options, reduction: bool, entries: int) -> Config:
    workload = _PROGRAMS[str(point["program"])].format(ranks=integer(point, "ranks"), place=point["place"])
    return parse_config(
        f"name: apps\nseed: {options.seed}\ntopology: {{kind: torus, radices: [16, 8, 8]}}\nworkload: {workload}\n"
        f"lookup: {{reduction: {str(reduction).lower()}, cache: {{entries: {entries}}}}}\n"
        "timing: {switch_base_ns: 51, conventional_switch_ns: 60, cable_ns: 10}\n"
        "app: {tcp_window_bytes: null, buffered_bytes: 65536}\n"
    )


def _measure(point: Point, options: Options) -> list[Row]:
    config = _config(point, options, True, _LARGE)
    topology = build(config.topology, config.address)
    assert isinstance(config.workload, ProgramWorkload)
    placed = place_program(config.workload, topology, options.seed)
    rates = (100, 200, 400, 800, 1600) if options.full else (100, 1600)
    rows: list[Row] = []

    def run(label: str, penalty: str, changed: Config, use: CacheUse | None = None) -> None:
        for rate in rates:
            timed = with_values(changed, lookup=changed.app.lookup, link_gbps=rate,
                                miss_penalty_ns=_PENALTIES.get(penalty, 10.0))  # fmt: skip
            flow = FlowRun(timed, topology, placed, use)
            ended = flow.run()
            assert ended, "programs from their definitions end"
            rows.append({**point, "link_gbps": rate, "lookup": label, "penalty": penalty,
                         "miss_share": flow.cache_use.miss_share,
                         "makespan_s": float(flow.state.rank["finished"].max())})  # fmt: skip

    for label in ("conventional", "hit"):
        run(label, "", with_values(config, lookup=label, link_gbps=100))
    for label, (reduction, entries) in _CACHES.items():
        changed = with_values(_config(point, options, reduction, entries), lookup="cache", link_gbps=100)
        use = cache_use(changed, topology, placed)
        for penalty in _PENALTIES:
            run(label, penalty, changed, use)
    base = {row["link_gbps"]: row["makespan_s"] for row in rows if row["lookup"] == "conventional"}
    for row in rows:
        speed = base[row["link_gbps"]], row["makespan_s"]
        assert isinstance(speed[0], float) and isinstance(speed[1], float)
        row["gain"] = speed[0] / speed[1]
    return rows


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    fastest, largest = int(data["link_gbps"].max()), int(data["ranks"].max())
    largest_job = data[(data["ranks"] == largest) & (data["link_gbps"] == fastest)]
    for program, place in product(_PROGRAMS, _PLACES):
        part = largest_job[(largest_job["program"] == program) & (largest_job["place"] == place)]
        job = f"{_TITLES[program]}, {_WORDS[place]}"
        hit = float(part[part["lookup"] == "hit"]["gain"].iloc[0])
        said = f"{largest} ranks, {fastest} Gbps"
        found.append(Comparison(f"{job}: gain if nothing misses", "times", None, hit, said, "at most 1.18"))
        for label in _CACHES:
            near, far = (
                part[(part["lookup"] == label) & (part["penalty"] == penalty)].iloc[0] for penalty in _PENALTIES
            )
            found.append(Comparison(
                f"{job}: gain, {label}, 61 ns on a miss", "times", None, float(near["gain"]),
                f"{100 * near['miss_share']:.2f} % of the lookups miss; {far['gain']:.3f} with 76 ns",
            ))  # fmt: skip
    for program in _PROGRAMS:
        slow, fast = (
            data[(data["program"] == program) & (data["place"] == "linear") & (data["ranks"] == largest)
                 & (data["lookup"] == "conventional") & (data["link_gbps"] == rate)]["makespan_s"].iloc[0]
            for rate in (100, fastest)
        )  # fmt: skip
        found.append(Comparison(f"{_TITLES[program]}, contiguous: gain of {fastest} Gbps over 100 Gbps", "times", None,
                                float(slow / fast), f"{largest} ranks, conventional switches"))  # fmt: skip
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    rates = (100, int(data["link_gbps"].max()))
    figure, panels = new_figure(panels=len(rates) * len(_PROGRAMS), columns=len(rates), width_in=6.6, height_in=3.6)
    shown = data[(data["place"] == "random") & data["penalty"].isin(["", "61 ns on a miss"])]
    for axes, (program, rate) in zip(panels, product(_PROGRAMS, rates), strict=True):
        part = shown[(shown["program"] == program) & (shown["link_gbps"] == rate)].sort_values("ranks")
        style_axes(axes, title=f"{_TITLES[program]}, {rate} Gbps, scattered ranks", x_label="ranks",
                   y_label="speed over conventional", log_x=True, x_ticks=sorted(data["ranks"].unique()))  # fmt: skip
        axes.set_ylim(1.0, max(60 / 51, float(shown["gain"].max())))
        lines = []
        for color, label in enumerate(("hit", *_CACHES)):
            chosen = part[part["lookup"] == label]
            words = "all lookups hit" if label == "hit" else label
            lines.append(Line(words, chosen["ranks"], chosen["gain"], color=color, dashed=label.startswith("small")))
        draw_lines(axes, lines)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        name="apps.study",
        title="Gain of routing caches by job size, place and link rate",
        source="not in a paper; issue 6",
        assumptions=(
            "16×8×8 torus, a host each, the job alone on the machine; computing takes no time: the most that it can be",
            "miss shares of every input port from a replay of the program's packets (2048 bytes at most), 4-way LRU",
            "60 ns a conventional switch, 51 ns a hit, 61 or 76 ns a miss, 10 ns a cable; flow engine (CM02)",
            f"caches of {_LARGE} lines, small ones of {_SMALL}, empty at the start; the table is of the largest jobs",
            "MG class A with 2 iterations; one all-to-all of 1 KiB for each pair",
        ),
        points=_points,
        measure=_measure,
        compare=_compare,
        draw=_draw,
        parallel=True,
    ),
)
