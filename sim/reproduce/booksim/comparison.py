"""Our network simulator beside BookSim 2 (Jiang et al. 2013) on the same networks: latency, throughput, hops.

The shipped reference is a measurement with BookSim 2 (last commit of 2017-06-27),
``sim/reproduce/booksim/data/reference.csv``; our networks are those of ``configs/booksim/``. Other references and
folders can be given.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.output.plots import Line, draw_lines, draw_paper_points, new_figure, style_axes
from hopforge.sim.reproduce.booksim.reference import Reference, load_reference
from hopforge.sim.reproduce.registry import (
    Comparison,
    Options,
    Point,
    Reproduction,
    Row,
    index_by_name,
    integer,
    number,
)
from hopforge.sim.run.simulation import Simulation

CASES = {
    "mesh8x8_uniform_p1": "8×8 mesh, uniform, 1 flit",
    "mesh8x8_uniform_p4": "8×8 mesh, uniform, 4 flits",
    "mesh8x8_transpose_p1": "8×8 mesh, transpose, 1 flit",
    "torus8x8_uniform_p1": "8×8 torus, uniform, 1 flit",
    "dragonfly72_min_uniform_p1": "72-host dragonfly, minimal, uniform, 1 flit",
}
#: cycles before and of a measurement beyond saturation: those of the reference, because sources drift there
OVERLOAD_CYCLES = 15000
#: share of the highest load with a settled latency up to which latencies are promised to agree
PROMISED_SHARE = 0.8


def _reference(options: Options) -> Reference:
    return load_reference(options.reference, options.configs)


def _points(case: str, options: Options) -> list[Point]:
    seeds = 10 if options.full else 3
    reference = _reference(options)
    config = hashlib.sha256(reference.path(case).read_bytes()).hexdigest()[:16]
    return [
        {
            "case": case,
            "kind": str(row.sim_type),
            "load": float(row.offered_flits),  # type: ignore[arg-type]
            "seed": options.seed + k,
            "config": config,
        }
        for row in reference.curve(case).itertuples()
        for k in range(seeds if row.sim_type == "latency" else 1)
    ]


def measure_point(point: Point, options: Options) -> list[Row]:
    """Run one load and seed of a case as the reference was run."""
    reference, case = _reference(options), str(point["case"])
    config = reference.config(case)
    if point["kind"] == "throughput":
        limits = _overload(reference, case)
        config = config.model_copy(update={"simulation": config.simulation.model_copy(update=limits)})
    found = Simulation(config, number(point, "load"), integer(point, "seed")).run()
    return [
        {
            **point,
            "latency": found.latency,
            "latency_interval": found.latency_interval,
            "accepted": found.accepted,
            "hops": found.hops,
            "packets": found.packets,
            "cycles": found.cycles,
            "saturated": found.saturated,
        }
    ]


def _overload(reference: Reference, case: str) -> dict[str, int]:
    """Cycles of a run beyond saturation: those of BookSim's own configuration, else `OVERLOAD_CYCLES`."""
    run = reference.config(case).simulation
    warmup, measured = (
        (run.warmup_cycles, run.min_cycles) if reference.of_booksim(case) else (OVERLOAD_CYCLES, OVERLOAD_CYCLES)
    )
    return {"warmup_cycles": warmup, "min_cycles": measured, "max_cycles": measured}


def _value(row: "pd.Series[Any]", name: str, quantity: str, unit: str, ours: float, note: str) -> Comparison:
    """Compare with the mean of the reference, or with a range where its seeds differ."""
    if not row["ranged"]:
        return Comparison(quantity, unit, float(row[name]), ours, note)
    claim = f"{row[f'{name}_least']:.6g} to {row[f'{name}_most']:.6g}"
    return Comparison(quantity, unit, None, ours, f"{note}; the seeds of the reference differ", claim)


def _ours(data: pd.DataFrame, kind: str) -> pd.DataFrame:
    chosen = data[data["kind"] == kind]
    return chosen.groupby("load")[["latency", "accepted", "hops"]].mean()


def _compare(case: str, data: pd.DataFrame, options: Options) -> list[Comparison]:
    reference = _reference(options)
    curve, limit = reference.curve(case), reference.knee(case)
    below, beyond = (curve[curve["sim_type"] == kind].set_index("offered_flits") for kind in ("latency", "throughput"))
    ours, ours_beyond = _ours(data, "latency"), _ours(data, "throughput")
    result = []
    for load, row in below.iterrows():
        share = float(load) / limit  # type: ignore[arg-type]
        note = f"{100 * share:.0f} % of saturation" + (
            "" if share < PROMISED_SHARE else ": depends on seed and length of the run"
        )
        latency = float(ours.loc[load, "latency"])  # type: ignore[index, arg-type]
        result.append(_value(row, "pkt_lat", f"latency at {load}", "cycles", latency, note))
    if not below.empty:
        hops = float(below["hops"].mean()), float(ours["hops"].mean())
        result.append(Comparison("routers visited", "", *hops, "mean of all loads above"))
    for load, row in beyond.iterrows():
        accepted = float(ours_beyond.loc[load, "accepted"])  # type: ignore[index, arg-type]
        cycles = _overload(reference, case)
        note = f"offered {load}; {cycles['min_cycles']} cycles after {cycles['warmup_cycles']} of warm-up"
        result.append(_value(row, "acc_flit_rate", f"accepted at {load}", "", accepted, note))
    highest = float(curve["acc_flit_rate"].max())
    best = float(pd.concat([ours["accepted"], ours_beyond["accepted"]]).max())
    result.append(Comparison("saturation throughput", "", highest, best, "largest accepted rate of all loads"))
    return result


def _draw(case: str, data: pd.DataFrame, options: Options) -> Figure:
    curve, ours = _reference(options).curve(case), _ours(data, "latency")
    below = curve[curve["sim_type"] == "latency"]
    figure, (axes,) = new_figure()
    title = CASES.get(case, case)
    style_axes(axes, title=title, x_label="offered load (flits per host and cycle)", y_label="latency (cycles)")
    if not below.empty:
        draw_lines(axes, [Line("hopforge", ours.index.to_numpy(), ours["latency"])])
        draw_paper_points(axes, below["offered_flits"], below["pkt_lat"], label="BookSim 2", offset=(-10, 6))
    return figure


def _reproduction(case: str, title: str, uses: tuple[str, ...]) -> Reproduction:
    folder = "" if uses else "configs/booksim/"
    return Reproduction(
        f"booksim.{case}",
        title,
        "BookSim 2, last commit of 2017-06-27" if not uses else "BookSim 2, runs of your own",
        (
            f"same network, buffers, allocators, delays and VC rule: {folder}{case}.yml",
            "loads are flits per host and cycle; the reference is the mean of its seeds",
        ),
        lambda options: _points(case, options),
        measure_point,
        lambda data, options: _compare(case, data, options),
        lambda data, options: _draw(case, data, options),
        uses=uses,
        aliases=("booksim",),
    )


def own_reproductions(options: Options) -> Mapping[str, Reproduction]:
    """Return the reproductions, by name, of the cases of ``options.reference`` with the files of ``options.configs``.

    Raises
    ------
    ReferenceError
        One of the two does not fit (`load_reference`).
    """
    uses = tuple(name for name in ("reference", "configs") if getattr(options, name) is not None)
    return index_by_name([_reproduction(case, CASES.get(case, case), uses) for case in _reference(options).cases])


def refused_cases(options: Options) -> list[str]:
    """Return a line for each case of ``options.reference`` that is left out, since hopforge cannot follow its file."""
    return [f"{case} is left out: {why}" for case, why in _reference(options).refused.items()]


REPRODUCTIONS: Sequence[Reproduction] = tuple(_reproduction(case, title, ()) for case, title in CASES.items())
