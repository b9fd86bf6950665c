"""Figures 4.5 and 4.6 of the routing-cache paper: conflicts against associativity."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config import Config, parse_config
from hopforge.model.lookup.routing_cache import RoutingCache
from hopforge.model.output.plots import GREY, Line, draw_lines, draw_paper_points, new_figure, style_axes
from hopforge.model.topology import build
from hopforge.sim.hits.analytic import expected_evictions
from hopforge.sim.hits.replay import replay
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer, pick
from hopforge.sim.traffic.workload_packets import build_workload

_ENTRIES = 2048
_WAYS = (1, 2, 4, 8, 16)
_TARGETS = (256, 512, 1024, 2048)
_ADDRESSES = 1 << 24


# --- figure 4.5


def _points_4_5(options: Options) -> list[Point]:
    trials = 2000 if options.full else 200
    random: list[Point] = [
        {"targets": targets, "ways": ways, "addresses": "random", "trials": trials}
        for targets in _TARGETS
        for ways in _WAYS
    ]
    contiguous: list[Point] = [
        {"targets": targets, "ways": ways, "addresses": "contiguous", "trials": 1}
        for targets in (512, 2048)
        for ways in (1, 4)
    ]
    return [*random, *contiguous]


def _measure_4_5(point: Point, options: Options) -> list[Row]:
    targets, ways, trials = integer(point, "targets"), integer(point, "ways"), integer(point, "trials")
    rng = np.random.default_rng([options.seed, targets, ways])
    cache = RoutingCache(entries=_ENTRIES, ways=ways, policy="lru")
    percent = np.empty(trials)
    for trial in range(trials):
        cache.reset()
        if point["addresses"] == "random":
            keys = rng.choice(_ADDRESSES, size=targets, replace=False)
        else:
            keys = np.arange(targets)
        percent[trial] = 100.0 * cache.run(keys).evictions / targets
    error = float(percent.std(ddof=1) / np.sqrt(trials)) if trials > 1 else 0.0
    return [
        {
            **point,
            "evictions_percent": float(percent.mean()),
            "standard_error_percent": error,
            "expected_percent": 100.0 * expected_evictions(targets=targets, entries=_ENTRIES, ways=ways),
        }
    ]


def _compare_4_5(data: pd.DataFrame, _options: Options) -> list[Comparison]:
    random = data[data["addresses"] == "random"]
    result = []
    for targets, ways in ((512, 4), (1024, 16)):
        ours = pick(random, "evictions_percent", targets=targets, ways=ways)
        exact = pick(random, "expected_percent", targets=targets, ways=ways)
        result.append(
            Comparison(
                f"conflicts, {targets} random targets, {ways}-way",
                "%",
                None,
                ours,
                f"evictions per inserted target; exact binomial {exact:.3g} %",
                claim="less than 0.1 %",
            )
        )
    result.append(
        Comparison(
            "conflicts, 512 contiguous addresses, 4-way",
            "%",
            None,
            pick(data, "evictions_percent", targets=512, ways=4, addresses="contiguous"),
            "addresses 0 … 511; CRC-32C spreads them perfectly, which may be what the paper measured",
            claim="less than 0.1 %",
        )
    )
    for targets in _TARGETS:
        for ways in _WAYS:
            ours = pick(random, "evictions_percent", targets=targets, ways=ways)
            exact = pick(random, "expected_percent", targets=targets, ways=ways)
            error = pick(random, "standard_error_percent", targets=targets, ways=ways)
            note = f"exact binomial {exact:.3g} %, standard error of ours {error:.2g} %"
            result.append(Comparison(f"evictions, {targets} random targets, {ways}-way", "%", None, ours, note))
    return result


def _draw_4_5(data: pd.DataFrame, _options: Options) -> Figure:
    figure, (axes,) = new_figure(width_in=8.0)
    style_axes(
        axes,
        title="Evictions per inserted target, 2048 entries, random 24-bit targets",
        x_label="ways",
        y_label="evictions (% of targets)",
        log_x=True,
        x_ticks=list(_WAYS),
    )
    axes.set_yscale("symlog", linthresh=0.1, linscale=0.6)
    axes.set_yticks([0, 0.1, 1, 10, 50], labels=["0", "0.1", "1", "10", "50"])
    random = data[data["addresses"] == "random"]
    axes.axhline(0.1, color=GREY, linewidth=0.8, linestyle=":")
    draw_paper_points(axes, 4, 0.1, label="paper: 512 targets below 0.1 %", offset=(9, 9))
    draw_paper_points(axes, 16, 0.1, label="paper: 1024 targets below 0.1 %", offset=(-9, -12))
    for targets in _TARGETS:
        part = random[random["targets"] == targets]
        axes.plot(part["ways"], part["expected_percent"], color=GREY, linewidth=3.5, alpha=0.35, zorder=1)
    draw_lines(
        axes,
        [
            Line(
                f"{targets} targets",
                (part := random[random["targets"] == targets])["ways"],
                part["evictions_percent"],
                color=color,
                error=2 * part["standard_error_percent"],
            )
            for color, targets in enumerate(_TARGETS)
        ],
    )
    axes.annotate(
        "grey band: exact binomial; bars: 2 standard errors", xy=(0.02, 0.03), xycoords="axes fraction", fontsize=8,
        color=GREY,
    )  # fmt: skip
    axes.set_ylim(-0.02, 60)
    return figure


# --- figure 4.6

_SHIPPED = ("is.A.64", "ft.A.64")
_SUFFIX = ".tar.xz"
_WAYS_4_6 = (1, 2, 4, 8)
_ENTRIES_4_6 = (2048, 64)


def trace_file(program: str, options: Options) -> str | None:
    """Give the file of a recorded program, as a configuration names it; None: not shipped, and not in ``traces``."""
    if program in _SHIPPED:
        return f"shipped:{program}"
    path = None if options.traces is None else options.traces / f"{program}{_SUFFIX}"
    return str(path.resolve()) if path is not None and path.exists() else None


def _programs(options: Options) -> list[str]:
    given = () if options.traces is None else sorted(p.name for p in options.traces.glob(f"*{_SUFFIX}"))
    return list(dict.fromkeys([*_SHIPPED, *(name.removesuffix(_SUFFIX) for name in given)]))


def _points_4_6(options: Options) -> list[Point]:
    return [
        {"program": program, "entries": entries, "ways": ways}
        for program in _programs(options)
        for entries in _ENTRIES_4_6
        for ways in _WAYS_4_6
    ]


def _config_4_6(point: Point, options: Options) -> Config:
    file = trace_file(str(point["program"]), options)
    return parse_config(
        f"""
name: reproduce
seed: {options.seed}
topology: {{kind: torus, radices: [4, 4, 4]}}
lookup:
  reduction: false
  cache: {{entries: {point["entries"]}, ways: {point["ways"]}, policy: lru}}
workload: {{kind: trace, file: {file!r}}}
""",
        source="lookup.fig4.6",
    )


def _measure_4_6(point: Point, options: Options) -> list[Row]:
    config = _config_4_6(point, options)
    assert config.workload is not None
    topology = build(config.topology, config.address)
    found = replay(config, topology, build_workload(config.workload, topology, config.seed))
    lookups = int(found.lookups.sum())
    counts = {name: int(getattr(found, name).sum()) for name in ("hits", "compulsory", "capacity", "conflict")}
    return [
        {
            **point,
            "packets": int(found.packets),
            "lookups": lookups,
            **counts,
            "hit_percent": 100.0 * counts["hits"] / lookups,
            "conflict_percent": 100.0 * counts["conflict"] / lookups,
            "capacity_percent": 100.0 * counts["capacity"] / lookups,
            "hit_percent_without_compulsory": 100.0 * counts["hits"] / max(1, lookups - counts["compulsory"]),
        }
    ]


def _label(program: str) -> str:
    return program.partition(".")[0].upper()


def _compare_4_6(data: pd.DataFrame, _options: Options) -> list[Comparison]:
    result = []
    setting = "64 ranks on 64 hosts, 4×4×4 torus; the paper: 256 ranks on 4×4×4 (how, it does not say)"
    for program in data["program"].unique():
        result += [
            Comparison(
                f"conflict misses, {_label(program)}, {ways}-way",
                "%",
                0.0,
                pick(data, "conflict_percent", program=program, entries=_ENTRIES, ways=ways),
                setting,
            )
            for ways in (2, 4)
        ]
        result.append(
            Comparison(
                f"hit rate with compulsory misses, {_label(program)}, 4-way",
                "%",
                None,
                pick(data, "hit_percent", program=program, entries=_ENTRIES, ways=4),
                "every cache starts empty",
                claim="99.7 % to 100 %",
            )
        )
    return result


def _draw_4_6(data: pd.DataFrame, _options: Options) -> Figure:
    figure, panels = new_figure(panels=2, width_in=6.4)
    for axes, entries in zip(panels, _ENTRIES_4_6, strict=True):
        part = data[data["entries"] == entries]
        style_axes(
            axes,
            title=f"{entries} entries, 4 × 4 × 4 torus, 64 ranks of NPB class A",
            x_label="ways",
            y_label="conflict misses (% of lookups)",
            log_x=True,
            x_ticks=list(_WAYS_4_6),
        )
        lines = []
        for color, program in enumerate(part["program"].unique()):
            one = part[part["program"] == program]
            lines.append(Line(_label(program), one["ways"], one["conflict_percent"], color=color))
        axes.set_ylim(-0.02 * max(1.0, part["conflict_percent"].max()), max(1.0, 1.1 * part["conflict_percent"].max()))
        if entries == _ENTRIES:
            draw_paper_points(axes, [2, 4], [0, 0], label="paper: none", offset=(8, 12))
        draw_lines(axes, lines)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "lookup.fig4.5",
        "Conflicts against associativity, random targets",
        "seed 004, figure 4.5, section 4.3.2.2",
        (
            "2048 entries, LRU, set index = low bits of CRC-32C of the address, targets drawn without repetition from "
            "2²⁴ addresses",
            "a conflict is counted when a distinct target that is inserted once evicts another",
            "200 trials a point, with --full 2000",
        ),
        _points_4_5,
        _measure_4_5,
        _compare_4_5,
        _draw_4_5,
    ),
    Reproduction(
        "lookup.fig4.6",
        "Conflicts against associativity, NAS Parallel Benchmarks",
        "seed 004, figure 4.6, section 4.3.2.3",
        (
            "our own recordings (SimGrid, NPB 3.3.1 class A, 64 ranks); IS and FT are shipped, --traces DIR adds more",
            "4×4×4 torus, one rank a host, linear mapping, dimension order, key = whole address, LRU",
            "64 entries beside the paper's 2048, because 64 destinations can't conflict much in 2048",
        ),
        _points_4_6,
        _measure_4_6,
        _compare_4_6,
        _draw_4_6,
        uses=("traces",),
    ),
)
