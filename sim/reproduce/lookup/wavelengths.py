"""One lookup engine for a link of several wavelengths, or one for each (seed 004, section 4.2.1, without a figure)."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config import parse_config
from hopforge.model.output.plots import Line, draw_lines, new_figure, style_axes
from hopforge.sim.hits.wavelengths import Wavelengths, prepare_wavelengths
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, Value, number, pick

_TRAFFIC = {
    "uniform, 8x8 torus": ("{kind: torus, radices: [8, 8]}", "{kind: uniform, packets_per_host: PACKETS}"),
    "NPB IS, 4x4x4 torus": (
        "{kind: torus, radices: [4, 4, 4]}", "{kind: npb, benchmark: is, class: A, ranks: 64}"),
}  # fmt: skip
_CACHE_NS = (1.0, 0.41)
_RATES = (400, 800, 1600)
_LANES = (1, 2, 4, 8)
_ENTRIES = 2048


def _points(options: Options) -> list[Point]:
    return [{"traffic": name, "cache_ns": cache_ns} for name in _TRAFFIC for cache_ns in _CACHE_NS]


def _measure(point: Point, options: Options) -> list[Row]:
    topology, workload = _TRAFFIC[str(point["traffic"])]
    workload = workload.replace("PACKETS", "60000" if options.full else "20000")
    config = parse_config(
        f"name: wavelengths\nseed: {options.seed}\ntopology: {topology}\nworkload: {workload}\n"
        f"lookup: {{reduction: false, cache: {{entries: {_ENTRIES}, ways: 4}}}}\n"
        f"timing: {{cache_ns: {number(point, 'cache_ns')}}}\n"
        f"wavelengths: {{lanes: {list(_LANES)}, rates_gbps: {list(_RATES)}, "
        "spread: [rr, flow, hash, hash_low, bank]}\n"
    )
    found = Wavelengths(config, prepare_wavelengths(config))
    found.run()
    rows: list[Row] = []
    for kind, table in (("arrangement", found.arrangements), ("cheapest", found.cheapest)):
        chosen = table if kind == "arrangement" else table[table["least"] == "area"]
        for row in chosen.astype(object).where(chosen.notna(), None).to_dict("records"):
            rows.append({**point, "kind": kind, **{str(key): value for key, value in row.items()}})
    return rows


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    note = "2048 lines, 4 ways, LRU; a TCAM of 25 ns for the link"
    for traffic in _TRAFFIC:
        for cache_ns in _CACHE_NS:
            which: dict[str, Value] = {"traffic": traffic, "cache_ns": cache_ns}
            one = pick(data, "rate_gbps", kind="arrangement", lanes=1, tcams="link", **which)
            paper = 1640.0 if cache_ns == 0.41 else None
            found.append(Comparison(f"{traffic}, {cache_ns} ns: one engine", "Gbps", paper, one, note))
            for rate in _RATES:
                row: dict[str, Value] = {**which, "kind": "cheapest", "link_gbps": rate}
                here = data
                for key, value in row.items():
                    here = here[here[key] == value]
                words = f"{rate} Gbps; 64 such ports: {64 * rate / 1000:g} Tbps"
                if not here["keep_up"].iloc[0]:
                    found.append(Comparison(f"{traffic}, {cache_ns} ns: engines for {rate} Gbps", "engines", None, None,
                                            f"none of {_LANES[-1]} lanes and less keeps up; {words}"))  # fmt: skip
                    continue
                best = here.iloc[0]
                how = f"{best['spread']}, {best['share']}, a TCAM a {best['tcams']}, balance {best['balance']:.2f}"
                found += [
                    Comparison(f"{traffic}, {cache_ns} ns: engines for {rate} Gbps", "engines", None,
                               float(best["lanes"]), f"least area; {how}; {words}"),
                    Comparison(f"{traffic}, {cache_ns} ns: area of 64 ports of {rate} Gbps", "mm²", None,
                               float(best["switch_area_mm2"]), f"engines, caches, TCAMs; {how}"),
                    Comparison(f"{traffic}, {cache_ns} ns: power of 64 ports of {rate} Gbps", "W", None,
                               float(best["switch_power_w"]), f"lookups alone; {how}"),
                ]  # fmt: skip
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    figure, panels = new_figure(panels=len(_TRAFFIC), columns=len(_TRAFFIC), width_in=13.0)
    here = data[(data["kind"] == "arrangement") & (data["tcams"] == "link") & (data["cache_ns"] == 1.0)]
    for axes, traffic in zip(panels, _TRAFFIC, strict=True):
        style_axes(
            axes, title=f"{traffic}, one TCAM a link", x_label="lanes", y_label="slowest link, Gbps", log_x=True,
            x_ticks=list(_LANES),
        )  # fmt: skip
        part = here[here["traffic"] == traffic]
        lines = []
        several = part[part["lanes"] > 1]
        for place, ((spread, share), rows) in enumerate(several.groupby(["spread", "share"], sort=False)):
            whole = pd.concat([part[part["lanes"] == 1], rows])
            name = f"{spread}, {share}"
            lines.append(Line(name, whole["lanes"], whole["rate_gbps"], place // 2, dashed=share == "split"))
        draw_lines(axes, lines)
        for rate in _RATES:
            axes.axhline(rate, linestyle=":", color="0.4")
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        name="lookup.wavelengths",
        title="One lookup engine for a link, or one for each wavelength",
        source="seed 004, section 4.2.1, which has no figure",
        assumptions=(
            "every input port of the torus is a link; its packets have 84 bytes and come back to back",
            "lanes by turns, flow, hash of the destination (high or low bits), or banks",
            "terms and balance: docs/definitions/wavelengths.md",
            "rates are those of the slowest link; areas at 45 nm: own synthesis and CACTI 7; 64 rows of TCAM",
            "the paper names 0.41 ns and 1640 Gbps for one cache, and 1 ns in its figure 5.2",
        ),
        points=_points,
        measure=_measure,
        compare=_compare,
        draw=_draw,
    ),
)
