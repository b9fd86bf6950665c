"""What prefetch by hosts and refill by switches bring a cache, by its size, with and without node reduction.

Seed 004 proposes both (6.1.1, 6.1.2) and doubts that they pay; it has no figures. Definition:
docs/definitions/prefetch.md.
"""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config import parse_config
from hopforge.model.output.plots import PALETTE, Line, draw_lines, new_figure, style_axes
from hopforge.sim.hits.assisted import Help
from hopforge.sim.hits.hit_rates import run_hits
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, Value, integer, pick

_ENTRIES = (4, 8, 16, 32, 64)
_WORKLOADS = {
    f"all-to-all {algorithm}": "kind: collective, operation: alltoall, bytes: 64, repeat: 3,"
    f" collectives: {{alltoall: {algorithm}}}"
    for algorithm in ("pairwise", "ring", "bruck")
} | {"uniform": "kind: uniform, packets_per_host: 500"}
_HELP = {
    "prefetch": Help(prefetch=1), "refill": Help(refill=1), "refill, soft ejection": Help(refill=1, eject="soft"),
    "refill, hard ejection": Help(refill=1, eject="hard"),
}  # fmt: skip
_PAYS = 0.01
"""Share of the look-ups that have to turn from misses into hits."""


def _points(options: Options) -> list[Point]:
    return [{"workload": name, "keys": keys} for name in _WORKLOADS for keys in ("addresses", "node reduction")]


def _measure(point: Point, options: Options) -> list[Row]:
    rows: list[Row] = []
    reduction = "true" if point["keys"] == "node reduction" else "false"
    for entries in _ENTRIES:
        config = parse_config(
            f"name: help\nseed: {options.seed}\ntopology: {{kind: torus, radices: [8, 8]}}\n"
            f"lookup: {{reduction: {reduction}, cache: {{entries: {entries}, ways: {entries}}}}}\n"
            f"workload: {{{_WORKLOADS[str(point['workload'])]}}}\n"
        )
        alone = run_hits(config, bounds=True).totals
        kept = {"entries": entries, "lookups": alone["lookups"]}
        for name, misses in (("none (LRU)", alone["misses"]), ("best choice of lines", alone["min_bypass"])):
            rows.append({**point, **kept, "help": name, "misses": misses, "reads": misses, "issued": 0})
        for name, wanted in _HELP.items():
            found = run_hits(config, wanted=wanted).totals
            counts = {each: found[each] for each in ("misses", "reads", "issued")}
            rows.append({**point, **kept, "help": name, **counts})
    for row in rows:
        row["miss_percent"] = 100 * integer(row, "misses") / integer(row, "lookups")
        row["read_percent"] = 100 * integer(row, "reads") / integer(row, "lookups")
    return rows


def _pays_below(data: pd.DataFrame, **which: Value) -> int:
    """Return the smallest size from which on help saves less than `_PAYS` of the look-ups a miss; 0: it never does."""
    size = 0
    for entries in _ENTRIES:
        lru = pick(data, "misses", entries=entries, **{**which, "help": "none (LRU)"})
        saved = lru - pick(data, "misses", entries=entries, **which)
        if saved >= _PAYS * pick(data, "lookups", entries=entries, **which):
            size = 2 * entries
    return size


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for workload in _WORKLOADS:
        for keys in ("addresses", "node reduction"):
            for name in ("best choice of lines", *_HELP):
                which = {"workload": workload, "keys": keys, "help": name}
                size = _pays_below(data, **which)
                quantity = f"{workload}, {keys}, {name}"
                small = pick(data, "miss_percent", entries=8, **which)
                reads = pick(data, "read_percent", entries=8, **which)
                lru = pick(data, "miss_percent", entries=8, **{**which, "help": "none (LRU)"})
                words = f"with 8 lines {small:.1f} % misses, {reads:.1f} % TCAM reads; LRU {lru:.1f} %"
                found.append(Comparison(f"{quantity}: stops paying at", "lines", None, float(size), words))
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    figure, panels = new_figure(panels=len(_WORKLOADS))
    own = data[data["keys"] == "addresses"]
    for axes, workload in zip(panels, _WORKLOADS, strict=True):
        style_axes(
            axes, title=workload, x_label="lines, fully associative", y_label="misses, %", log_x=True,
            x_ticks=list(_ENTRIES),
        )  # fmt: skip
        lines = []
        for color, name in enumerate(own["help"].unique()):
            part = own[(own["workload"] == workload) & (own["help"] == name)].sort_values("entries")
            lines.append(Line(str(name), part["entries"], part["miss_percent"], color=color % len(PALETTE)))
        draw_lines(axes, lines)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        name="lookup.help",
        title="Prefetch and refill by the size of the cache",
        source="seed 004, 6.1.1 and 6.1.2, which have no figures",
        assumptions=(
            "8x8 torus, a rank at every switch; three all-to-alls one after the other; uniform traffic of 500 packets"
            " a host",
            "fully associative LRU caches; lines are there at once; prefetch and refill go one message ahead",
            "help stops paying at the size from which on it turns less than 1 % of the look-ups from misses into hits;"
            " 0: it never pays; 128: it pays at all sizes measured",
        ),
        points=_points,
        measure=_measure,
        compare=_compare,
        draw=_draw,
    ),
)
