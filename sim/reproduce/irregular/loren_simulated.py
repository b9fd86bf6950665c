"""LOREN, Cowen's and Thorup and Zwick's tables under ACRO in the network simulator (figures 6.1 to 6.4).

The throughput of a network is the highest offered load at which its source queues do not grow, found by bisection below
the load at which a channel, or the virtual channels of a layer on it, would be full.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import stdtrit

from hopforge.model.config import Config
from hopforge.model.irregular.landmarks import LandmarkTables, cowen, landmark_tables
from hopforge.model.irregular.shortest import shortest_next_hops
from hopforge.model.irregular.tables import RoutingTables
from hopforge.model.output.plots import Line, draw_lines, new_figure, style_axes
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.sim.reproduce.irregular.loren_networks import (
    COLOURS,
    COMPARED,
    LABELS,
    LIMITS,
    SOURCE,
    VCS,
    Case,
    case_config,
    case_tables,
    fitting_graph,
    graphs_text,
)
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer
from hopforge.sim.run.measurement import Measurement
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.traffic import prepare_traffic

#: figures and their traffic
_TRAFFIC = {"6.1": "uniform", "6.2": "transpose", "6.3": "shuffle", "6.4": "bit_reverse"}
_WARMUP_CYCLES, _CYCLES = 5000, 15000
#: cycles of RC, VA and SA, which a packet of one flit spends alone in a virtual channel (docs/definitions/router.md)
_PACKET_CYCLES = 3
#: shares of the bound at which a curve begins, and the width to which the bisection goes
_FIRST_LOADS, _WIDTH = (0.1, 0.5), 0.03
#: offered load beyond saturation, as a share of the bound
_OVERLOAD = 1.5
#: sizes of Cowen's balls by the side of the floor plan: the larger the fewer landmarks
_BALLS = {8: (8, 12, 24), 32: (16, 24, 48)}
#: what the thesis says of LOREN's throughput: figure, switches, entries → (against, %)
_GAINS = {
    ("6.1", 8, 32): (("cowen",), -6.6),
    ("6.1", 32, 116): (("cowen",), 67.9),
    ("6.4", 8, 18): (("cowen", "thorup_zwick"), 25.0),
    ("6.4", 8, 32): (("cowen", "thorup_zwick"), 14.8),
}
_CLAIMS = {
    ("6.1", 8, 18, "thorup_zwick"): '"can reduce … by 13.2 %"',
    ("6.1", 8, 18, "cowen"): "almost the same",
    ("6.2", 8, 18, "cowen"): "less",
    ("6.2", 8, 32, "cowen"): "less",
    ("6.3", 8, 18, "cowen"): "less",
    ("6.3", 8, 32, "cowen"): "less",
    ("6.2", 32, 116, "cowen"): '"in most" patterns more',
    ("6.3", 32, 116, "cowen"): '"in most" patterns more',
    ("6.4", 32, 116, "cowen"): '"in most" patterns more',
}
_UNCLEAR = {
    ("6.1", 8, 18): '; the thesis writes "reduce", the "however" after it suggests an increase',
    ("6.4", 8, 18): "; against which scheme, the thesis does not say",
    ("6.4", 8, 32): "; against which scheme, the thesis does not say",
}


def _points(figure: str, options: Options) -> list[Point]:
    uniform = _TRAFFIC[figure] == "uniform"
    graphs = {8: 8, 32: 3 if uniform else 1} if options.full else {8: 2}  # a curve of 1024 switches takes a minute
    return [
        {"side": side, "t_max": t_max, "scheme": scheme, "graph": graph, "pattern": _TRAFFIC[figure]}
        for side, number in graphs.items()
        for t_max in LIMITS[side]
        for graph in range(number)
        for scheme in (LABELS if uniform or side == 8 else COMPARED)
    ]


def layer_flows(tables: RoutingTables, pattern: str) -> NDArray[np.float64]:
    """Flits per cycle in every layer of every channel at a load of one flit per host and cycle; one host a switch.

    Returns
    -------
    ndarray, float64[layer, channel]
    """
    nodes, channels = len(tables.next_hop), len(tables.channels.source)
    everyone = np.arange(nodes, dtype=np.int32)
    if pattern == "uniform":  # the sender is a destination, too
        at, goal, weight = np.repeat(everyone, nodes), np.tile(everyone, nodes), 1 / nodes
    else:
        goal = prepare_traffic(tables.topology, pattern, {}, np.random.default_rng(0)).table[:nodes]
        at, weight = everyone, 1.0
    hop = tables.layers.starts[at.astype(np.int64) * nodes + goal]
    flows = np.zeros(tables.layers.count * channels)
    while len(at):
        way = at != goal
        at, goal, hop = at[way], goal[way], hop[way]
        channel = tables.next_channel[at, goal]
        place = tables.layers.layer[hop].astype(np.int64) * channels + channel
        flows += weight * np.bincount(place, minlength=len(flows))
        at, hop = tables.channels.target[channel], hop + 1
    return flows.reshape(tables.layers.count, channels)


def load_bounds(flows: NDArray[np.float64], vcs: int) -> tuple[float, float]:
    """Offered loads that no network of these routers can carry more than, whatever its buffers.

    Returns
    -------
    tuple of float
        Load at which the busiest channel is full, and load at which the virtual channels of one layer are: each takes
        one packet in `_PACKET_CYCLES`.
    """
    count = len(flows)
    share = np.diff(np.arange(count + 1) * vcs // count)  # VCs of each layer, as model.routing.graphs.tables deals them
    return 1 / float(flows.sum(axis=0).max()), 1 / float(_PACKET_CYCLES * (flows.max(axis=1) / share).max())


def _curve(config: Config, tables: RoutingTables, bound: float, seed: int) -> Iterator[Measurement]:
    """Yield runs at low loads, of the bisection, and at last beyond saturation."""
    limits = {"warmup_cycles": _WARMUP_CYCLES, "min_cycles": _CYCLES, "max_cycles": _CYCLES}
    config = config.model_copy(update={"simulation": config.simulation.model_copy(update=limits)})
    plan = routing_plan(config, tables.topology)

    def run(load: float) -> Measurement:
        # the layers of these tables are proved free of cycles when they are built
        return Simulation(config, load, seed, tables.topology, check=False, plan=plan).run()

    stable, full = 0.0, bound
    for share in _FIRST_LOADS:
        found = run(share * bound)
        yield found
        if found.saturated:
            full = found.load
            break
        stable = found.load
    while full - stable > _WIDTH * bound:
        found = run((stable + full) / 2)
        yield found
        stable, full = (stable, found.load) if found.saturated else (found.load, full)
    yield run(_OVERLOAD * bound)


def _measure_case(case: Case, vcs: int, pattern: str, seed: int) -> list[Row]:
    tables = case_tables(case)
    vcs = max(vcs, tables.layers.count)
    channel_bound, vc_bound = load_bounds(layer_flows(tables, pattern), vcs)
    config = case_config(case, vcs, pattern)
    runs = list(_curve(config, tables, min(channel_bound, vc_bound), seed))
    throughput = max((run.load for run in runs if not run.saturated), default=0.0)
    return [
        {"layers": tables.layers.count, "vcs": vcs, "entries": int(tables.entries.max()),
         "channel_bound": channel_bound, "vc_bound": vc_bound,
         "throughput": throughput, "load": run.load, "saturated": run.saturated, "latency": run.latency,
         "latency_interval": run.latency_interval, "accepted": run.accepted}
        for run in runs
    ]  # fmt: skip


def _measure(point: Point, options: Options) -> list[Row]:
    side, t_max, number = (integer(point, key) for key in ("side", "t_max", "graph"))
    graph, drawn = fitting_graph(side, t_max, options.seed, number)
    case = Case(side, t_max, str(point["scheme"]), graph)
    rows = _measure_case(case, VCS[side], str(point["pattern"]), options.seed)
    return [{**point, "network": graph, "drawn": drawn, **row} for row in rows]


def interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and half width of its 95 % interval (Student's t); the width is nan for one value."""
    count = len(values)
    if count < 2:
        return float(values.mean()), float("nan")
    return float(values.mean()), float(stdtrit(count - 1, 0.975) * values.std(ddof=1) / np.sqrt(count))


def _per_graph(data: pd.DataFrame, side: int, t_max: int, column: str) -> pd.DataFrame:
    """First value of `column` by graph (rows) and scheme (columns)."""
    part = data[(data["side"] == side) & (data["t_max"] == t_max)]
    return part.pivot_table(index="graph", columns="scheme", values=column, aggfunc="first")


def _gain(values: pd.DataFrame, against: str) -> tuple[float, str]:
    """Return mean gain of LOREN in %, and its interval in words."""
    gains = 100 * (values["loren"] / values[against] - 1).dropna().to_numpy(float)
    mean, half = interval(gains)
    spread = f"±{half:.2g} (95 %) over {graphs_text(len(gains))}" if len(gains) > 1 else graphs_text(1)
    return mean, spread


def _compare(figure: str, data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for side, limits in LIMITS.items():
        for t_max in limits:
            where = f"{side * side} switches, {t_max} entries"
            part = data[(data["side"] == side) & (data["t_max"] == t_max)]
            if part.empty:
                for against in COMPARED[1:]:
                    stated, claim = _stated(figure, side, t_max, against)
                    quantity = f"{where}: throughput of LOREN over {LABELS[against]}"
                    found.append(Comparison(quantity, "%", stated, None, "measured with --full", claim))
                continue
            loads = _per_graph(data, side, t_max, "throughput")
            latency = _per_graph(data, side, t_max, "latency")  # the first run of each is that of the least load
            drawn = int(part["drawn"].max())
            for against in COMPARED[1:]:
                stated, claim = _stated(figure, side, t_max, against)
                mean, spread = _gain(loads, against)
                note = spread + _UNCLEAR.get((figure, side, t_max), "")
                quantity = f"{where}: throughput of LOREN over {LABELS[against]}"
                found.append(Comparison(quantity, "%", stated, mean, note, claim))
            for against in COMPARED[1:]:
                mean, spread = _gain(latency, against)
                claim = "up to 5.0 % less in most cases" if side == 8 else "more" if t_max == 116 else '"fill the gap"'
                quantity = f"{where}: latency of LOREN over {LABELS[against]}"
                found.append(Comparison(quantity, "%", None, mean, f"at a tenth of the bound; {spread}", claim))
            over = part.drop_duplicates(["graph", "scheme"], keep="last")  # the last run of each is the one beyond
            accepted = over.pivot_table(index="graph", columns="scheme", values="accepted")
            for against in COMPARED[1:]:
                mean, spread = _gain(accepted, against)
                note = f"at {_OVERLOAD:g} × its own bound; {spread}"
                quantity = f"{where}: accepted beyond saturation, LOREN over {LABELS[against]}"
                found.append(Comparison(quantity, "%", None, mean, note))
            for scheme, label in LABELS.items():
                of = part[part["scheme"] == scheme]
                if of.empty:
                    continue
                values = loads[scheme].to_numpy(float)
                mean, half = interval(values)
                means = of.groupby("graph")[["channel_bound", "vc_bound"]].first().mean()
                layers, vcs = sorted(of["layers"].unique()), sorted(of["vcs"].unique())
                note = (
                    (f"±{half:.2g}, " if len(values) > 1 else "")
                    + f"ACRO needs {'/'.join(map(str, layers))} layers, {'/'.join(map(str, vcs))} VCs; bounds: channel "
                    f"{means['channel_bound']:.3f}, VCs {means['vc_bound']:.3f}; {len(values)} of {drawn} networks"
                )
                found.append(Comparison(f"{where}: throughput, {label}", "flits/(host·cycle)", None, mean, note))
    return found


def _stated(figure: str, side: int, t_max: int, against: str) -> tuple[float | None, str]:
    """Return the gain that the thesis' text states, or its words."""
    schemes, percent = _GAINS.get((figure, side, t_max), ((), 0.0))
    if against in schemes:
        return percent, ""
    return None, _CLAIMS.get((figure, side, t_max, against), "")


def _cases(data: pd.DataFrame) -> list[tuple[int, int]]:
    """Side and entries of the networks that were measured."""
    return [(side, t_max) for side, limits in LIMITS.items() for t_max in limits if side in set(data["side"])]


def _draw(figure: str, data: pd.DataFrame, options: Options) -> Figure:
    cases = _cases(data)
    plot, panels = new_figure(panels=len(cases), width_in=5.2)
    for axes, (side, t_max) in zip(panels, cases, strict=True):
        part = data[(data["side"] == side) & (data["t_max"] == t_max) & (data["graph"] == 0)]
        settled = part[~part["saturated"]]
        least = float(settled["latency"].min())
        settled = settled[settled["latency"] < 4 * least]
        style_axes(
            axes, title=f"{side * side} switches, {t_max} entries, {_TRAFFIC[figure].replace('_', ' ')}",
            x_label="offered load (flits per host and cycle)", y_label="latency (cycles)",
        )  # fmt: skip
        lines = []
        for scheme, label in LABELS.items():
            curve = settled[settled["scheme"] == scheme].sort_values("load")
            if len(curve):
                lines.append(Line(label, curve["load"], curve["latency"], color=COLOURS[scheme]))
        axes.set_xlim(0, 1.03 * float(settled["load"].max()))
        axes.set_ylim(0, 4 * least)
        draw_lines(axes, lines)
    return plot


def _cause_points(options: Options) -> list[Point]:
    side, t_max, graphs = (32, 116, 2) if options.full else (8, 18, 1)
    cases: list[Point] = [{"scheme": "loren", "ball": 0, "one_vc": one} for one in (False, True)]
    cases += [{"scheme": "cowen", "ball": 0, "one_vc": one} for one in (False, True)]
    cases += [{"scheme": "cowen", "ball": ball, "one_vc": True} for ball in _BALLS[side]]
    return [{"side": side, "t_max": t_max, **case, "graph": graph} for graph in range(graphs) for case in cases]


def _measure_cause(point: Point, options: Options) -> list[Row]:
    side, t_max, ball = (integer(point, key) for key in ("side", "t_max", "ball"))
    graph, _ = fitting_graph(side, t_max, options.seed, integer(point, "graph"))
    case = Case(side, t_max, str(point["scheme"]), graph)
    vcs = 1 if point["one_vc"] else VCS[side]  # at least one per layer
    with tempfile.TemporaryDirectory() as folder:
        landmarks = entries = 0
        if ball:
            tables = case_tables(Case(side, t_max, "shortest", graph))
            chosen = cowen(tables.shortest)(ball)
            found = landmark_tables(chosen, tables.shortest, shortest_next_hops(tables.neighbours))
            landmarks, entries = len(chosen), int(found.entries.max())
            path = Path(folder) / "next_hops.csv"
            np.savetxt(path, found.next_hop, fmt="%d", delimiter=",")
            case = Case(side, t_max, "file", graph, path)
        elif case.scheme == "cowen":
            details = case_tables(case).details
            assert isinstance(details, LandmarkTables)
            landmarks = len(details.landmarks)
        load = len(case_tables(case).next_hop) * layer_flows(case_tables(case), "uniform").sum(axis=0)
        rows = _measure_case(case, vcs, "uniform", options.seed)
    return [
        {**point, "landmarks": landmarks, "deviation": float(load.std()), **row, "entries": entries or row["entries"]}
        for row in rows
    ]


def _compare_cause(data: pd.DataFrame, options: Options) -> list[Comparison]:
    first = data.drop_duplicates(["scheme", "ball", "one_vc", "graph"])
    stated = 67.9 if options.full else None

    def by_graph(**where: object) -> pd.DataFrame:
        part = first
        for key, value in where.items():
            part = part[part[key] == value]
        return part.set_index("graph").sort_index()

    found = []
    loren = {one: by_graph(scheme="loren", one_vc=one)["throughput"] for one in (False, True)}
    for ball in sorted(first["ball"].unique()):
        for one in (False, True) if ball == 0 else (True,):
            cowen_runs = by_graph(scheme="cowen", ball=ball, one_vc=one)
            mean, half = interval((100 * (loren[one] / cowen_runs["throughput"] - 1)).to_numpy(float))
            which = "the most landmarks that fit" if ball == 0 else f"balls of {ball} switches"
            note = (
                f"{cowen_runs['landmarks'].mean():.0f} landmarks, {cowen_runs['entries'].mean():.0f} entries, "
                f"{cowen_runs['deviation'].mean():.0f} paths deviation, {cowen_runs['vcs'].mean():.3g} VCs; "
                f"{graphs_text(len(cowen_runs))}" + (f", ±{half:.2g}" if len(cowen_runs) > 1 else "")
            )
            vcs = "one VC a layer" if one else "the thesis' VCs"
            found.append(Comparison(f"LOREN over Cowen, {vcs}, {which}", "%", stated, mean, note))
    return found


def _draw_cause(data: pd.DataFrame, options: Options) -> Figure:
    first = data.drop_duplicates(["scheme", "ball", "one_vc", "graph"])
    shown = ["landmarks", "throughput", "vc_bound", "channel_bound"]
    means = first.groupby(["scheme", "one_vc", "ball"])[shown].mean().reset_index()
    one = means[means["one_vc"]]
    curve = one[one["scheme"] == "cowen"].sort_values("landmarks")
    level = one[one["scheme"] == "loren"].iloc[0]
    side, t_max = int(first["side"].iloc[0]), int(first["t_max"].iloc[0])
    plot, (axes,) = new_figure()
    style_axes(
        axes, title=f"{side * side} switches, at most {t_max} entries, uniform, one VC a layer",
        x_label="landmarks of Cowen's tables", y_label="throughput (flits per host and cycle)",
    )  # fmt: skip
    ends = [float(curve["landmarks"].min()), float(curve["landmarks"].max())]
    axes.set_ylim(0, 1.1 * max(float(curve["vc_bound"].max()), float(level["vc_bound"])))
    lines = [
        Line(LABELS["loren"], ends, [level["throughput"]] * 2, color=COLOURS["loren"], marked=False),
        Line("LOREN, bound of the VCs", ends, [level["vc_bound"]] * 2, COLOURS["loren"], dashed=True, marked=False),
        Line(LABELS["cowen"], curve["landmarks"], curve["throughput"], color=COLOURS["cowen"]),
        Line("Cowen, bound of the VCs", curve["landmarks"], curve["vc_bound"], COLOURS["cowen"], dashed=True),
    ]
    draw_lines(axes, lines)
    return plot


def _bound_points(options: Options) -> list[Point]:
    graphs = {8: 100, 32: 10} if options.full else {8: 20}
    return [
        {"side": side, "t_max": t_max, "scheme": scheme, "graph": graph}
        for side, number in graphs.items()
        for t_max in LIMITS[side]
        for graph in range(number)
        for scheme in COMPARED
    ]


def _measure_bounds(point: Point, options: Options) -> list[Row]:
    side, t_max, number = (integer(point, key) for key in ("side", "t_max", "graph"))
    graph, drawn = fitting_graph(side, t_max, options.seed, number)
    tables = case_tables(Case(side, t_max, str(point["scheme"]), graph))
    count, rows = tables.layers.count, []
    for pattern in _TRAFFIC.values():
        flows = layer_flows(tables, pattern)
        shared, single = (min(load_bounds(flows, vcs)) for vcs in (VCS[side], count))
        rows.append({**point, "network": graph, "drawn": drawn, "pattern": pattern, "layers": count,
                     "bound": shared, "bound_one_vc": single})  # fmt: skip
    return rows


def _compare_bounds(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for side, t_max in _cases(data):
        part = data[(data["side"] == side) & (data["t_max"] == t_max)]
        for figure, pattern in _TRAFFIC.items():
            of = part[part["pattern"] == pattern]
            one = of.pivot_table(index="graph", columns="scheme", values="bound_one_vc")
            bounds = of.pivot_table(index="graph", columns="scheme", values="bound")
            for against in COMPARED[1:]:
                stated, claim = _stated(figure, side, t_max, against)
                mean, spread = _gain(bounds, against)
                least, most = (100 * (bounds["loren"] / bounds[against] - 1)).agg(["min", "max"])
                note = f"{spread}, {least:.0f} to {most:.0f} %; one VC a layer: {_gain(one, against)[0]:.1f} %"
                quantity = f"figure {figure}, {side**2} switches, {t_max} entries: LOREN over {LABELS[against]}"
                found.append(Comparison(quantity, "%", stated, mean, note.replace("-", "−"), claim))
    return found


def _draw_bounds(data: pd.DataFrame, options: Options) -> Figure:
    cases = _cases(data)
    plot, panels = new_figure(panels=len(cases), width_in=5.2)
    for axes, (side, t_max) in zip(panels, cases, strict=True):
        part = data[(data["side"] == side) & (data["t_max"] == t_max)]
        style_axes(
            axes, title=f"{side**2} switches, {t_max} entries", x_label="traffic",
            y_label="bound of the load (flits per host and cycle)", x_ticks=range(len(_TRAFFIC)),
            x_tick_labels=[pattern.replace("_", " ") for pattern in _TRAFFIC.values()],
        )  # fmt: skip
        lines = []
        for scheme in COMPARED:
            values = [
                interval(part[(part["pattern"] == pattern) & (part["scheme"] == scheme)]["bound"].to_numpy(float))
                for pattern in _TRAFFIC.values()
            ]
            mean, half = zip(*values, strict=True)
            lines.append(Line(LABELS[scheme], range(len(mean)), mean, COLOURS[scheme], error=half))
        axes.set_ylim(0, 1.15 * float(part.groupby(["scheme", "pattern"])["bound"].mean().max()))
        draw_lines(axes, lines)
    return plot


def _figure(figure: str, traffic: str) -> Reproduction:
    return Reproduction(
        f"loren.fig{figure}",
        f"Latency and throughput under {traffic.replace('_', ' ')} traffic",
        f"{SOURCE}, figure {figure}, table 6.1",
        (
            "degree 4, length 2 (64 switches) and 8 (1024), one host a switch; ACRO's layers share the VCs evenly",
            "networks are drawn until ACRO needs no more layers for LOREN, Cowen and Thorup–Zwick than the thesis has "
            "VCs (2 and 6); shortest paths get as many VCs as they need",
            "throughput: the highest offered load at which the source queues do not grow, found to "
            f"{_WIDTH:.0%} of the bound; {_CYCLES} cycles after {_WARMUP_CYCLES} (thesis: 100 000; what it calls "
            "throughput is not stated)",
            "landmarks: the parameter with most landmarks whose tables fit",
        ),
        lambda options: _points(figure, options),
        _measure,
        lambda data, options: _compare(figure, data, options),
        lambda data, options: _draw(figure, data, options),
        aliases=(f"acro.fig{figure}",),
    )


REPRODUCTIONS: Sequence[Reproduction] = (
    *(_figure(figure, traffic) for figure, traffic in _TRAFFIC.items()),
    Reproduction(
        "loren.fig6.1-landmarks",
        "LOREN over Cowen against landmarks and the use of VCs",
        f"{SOURCE}, section 6, an experiment on its figure 6.1",
        (
            "networks and measurement of loren.fig6.1, uniform traffic",
            "the thesis gives the entries of Cowen's tables, not the number of landmarks",
        ),
        _cause_points,
        _measure_cause,
        _compare_cause,
        _draw_cause,
    ),
    Reproduction(
        "loren.fig6-bounds",
        "Loads that the busiest channel and VCs allow, many graphs",
        f"{SOURCE}, section 6, an experiment on its figures 6.1 to 6.4",
        (
            "networks of loren.fig6.1; throughputs measured there are about 95 % of this bound",
            "a virtual channel takes a packet of one flit in 3 cycles (RC, VA, SA); a layer has its share of the VCs",
        ),
        _bound_points,
        _measure_bounds,
        _compare_bounds,
        _draw_bounds,
    ),
)
