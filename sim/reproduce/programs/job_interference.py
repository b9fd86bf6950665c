"""Programs at once on a dragonfly: what each costs the others, by routing method and placement (seed 001, 7)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config import Config, parse_config
from hopforge.model.output.plots import draw_grouped_bars, new_figure, style_axes
from hopforge.sim.programs.app_result import AppRun
from hopforge.sim.programs.application import run_app
from hopforge.sim.reproduce.dragonflies.runs import ALGORITHMS, SHAPES
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer

_METHODS = ("MIN", "VALn", "UGALn", "Q-adaptive")
_PLACEMENTS = ("linear", "group", "random")
#: hosts → ranks and program of each job: all-to-all, neighbours in a grid, many small sums, sorting
_JOBS = {
    72: {
        "exchange": (20, "kind: collective, operation: alltoall, bytes: 8192, repeat: 8"),
        "halo": (12, "kind: himeno, size: XS, iterations: 60"),
        "sums": (18, "kind: collective, operation: allreduce, bytes: 1024, repeat: 200"),
        "sort": (16, "kind: npb, benchmark: is, class: S"),
    },
    1056: {
        "exchange": (300, "kind: collective, operation: alltoall, bytes: 1024, repeat: 2"),
        "halo": (180, "kind: himeno, size: S, iterations: 30"),
        "sums": (270, "kind: collective, operation: allreduce, bytes: 1024, repeat: 100"),
        "sort": (256, "kind: npb, benchmark: is, class: A, iterations: 2"),
    },
}
#: bytes of a packet, which is one flit (router of the paper)
_PACKET_BYTES = 128


def _points(options: Options) -> list[Point]:
    return [
        {"hosts": hosts, "placement": placement, "method": method, "seed": options.seed + seed}
        for hosts in (_JOBS if options.full else (72,))
        for placement in _PLACEMENTS for method in _METHODS for seed in range(3 if options.full and hosts == 72 else 1)
    ]  # fmt: skip


def study_config(hosts: int, method: str, placement: str, seed: int) -> Config:
    """Return all jobs of a machine of so many hosts at once."""
    p, a, h = SHAPES[hosts]
    algorithm, vcs = ALGORITHMS[method]
    ejection = ", ejection: class" if algorithm == "dragonfly_min" else ""
    jobs = "".join(
        f"    - {{name: {name}, ranks: {ranks}, placement: {placement}, "
        f"program: {{{program}, mtu_bytes: {_PACKET_BYTES}}}}}\n"
        for name, (ranks, program) in _JOBS[hosts].items()
    )
    return parse_config(
        f"name: study\nseed: {seed}\ntopology: {{kind: dragonfly, p: {p}, a: {a}, h: {h}}}\n"
        f"router: {{model: input_output_queued, vcs: {vcs}, buffer_flits: 20, output_buffer_flits: 20}}\n"
        f"routing: {{algorithm: {algorithm}{ejection}}}\ntraffic: {{flit_bytes: {_PACKET_BYTES}}}\n"
        f"app: {{engine: packet}}\nworkload:\n  kind: jobs\n  jobs:\n{jobs}"
    )


def _measure(point: Point, options: Options) -> list[Row]:
    run = run_app(
        study_config(integer(point, "hosts"), str(point["method"]), str(point["placement"]), integer(point, "seed"))
    )
    assert isinstance(run, AppRun), "of a network"
    assert run.jobs is not None, "of jobs"
    return [
        {**point, "job": row["job"], "ranks": row["ranks"], "makespan_us": 1e6 * row["makespan_s"],
         "alone_us": 1e6 * row["alone_s"], "slowdown": row["slowdown"]}
        for row in run.jobs.to_dict("records")
    ]  # fmt: skip


def _means(data: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each machine, placement and method: slowdowns and times, means over seeds.

    `time`: geometric mean over jobs of the makespan beside the shortest makespan alone that any placement and method
    gives the job.
    """
    means = data.groupby(["hosts", "placement", "method", "job"], sort=False)[["makespan_us", "alone_us"]].mean()
    means = means.reset_index()
    means["slowdown"] = data.groupby(["hosts", "placement", "method", "job"], sort=False)["slowdown"].mean().to_numpy()
    best = means.groupby(["hosts", "job"])["alone_us"].transform("min")
    means["time"], means["time_alone"] = means["makespan_us"] / best, means["alone_us"] / best
    rows = []
    for key, part in means.groupby(["hosts", "placement", "method"], sort=False):
        slowdowns = part["slowdown"].to_numpy()
        worst = int(slowdowns.argmax())
        rows.append({
            **dict(zip(("hosts", "placement", "method"), key, strict=True)),
            "slowdown": float(slowdowns.mean()), "largest": float(slowdowns[worst]),
            "of": str(part["job"].iloc[worst]),
            "time": float(np.exp(np.log(part["time"]).mean())),
            "time_alone": float(np.exp(np.log(part["time_alone"]).mean())),
        })  # fmt: skip
    return pd.DataFrame(rows)


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for row in _means(data).to_dict("records"):
        name = f"{row['hosts']} hosts, {row['placement']}, {row['method']}"
        note = f"largest {row['largest']:.3f} ({row['of']})"
        found.append(Comparison(f"mean slowdown, {name}", "", None, float(row["slowdown"]), note))
        note = f"alone {row['time_alone']:.3f}; 1: the shortest time alone of any placement and method"
        found.append(Comparison(f"time of a job, {name}", "", None, float(row["time"]), note))
    return found


def _table(data: pd.DataFrame, options: Options) -> pd.DataFrame:
    return _means(data).round({"slowdown": 3, "largest": 3, "time": 3, "time_alone": 3})


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    means = _means(data)
    machines = list(dict.fromkeys(means["hosts"]))
    figure, panels = new_figure(panels=2 * len(machines))
    for number, hosts in enumerate(machines):
        part = means[means["hosts"] == hosts]
        pair = panels[2 * number : 2 * number + 2]
        labels = {"slowdown": "mean slowdown", "time": "time / best alone"}
        for axes, (column, label) in zip(pair, labels.items(), strict=True):
            style_axes(axes, title=f"{label}, {hosts} hosts", x_label="", y_label=label)
            table = part.pivot(index="placement", columns="method", values=column).loc[list(_PLACEMENTS)]
            series = {method: table[method].tolist() for method in _METHODS}
            draw_grouped_bars(axes, groups=list(_PLACEMENTS), series=series)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "jobs.interference", "Interference of jobs by routing method and placement", "seed 001, 7: future work",
        (
            "four jobs at once: an all-to-all again and again, Himeno's halos, small sums, NPB IS; they fill 66 of 72"
            " hosts (1006 of 1056 with --full); communication alone takes time",
            "slowdown: makespan over makespan alone with the same method and hosts, mean of the jobs; one seed (with"
            " --full three on 72 hosts)",
            "router of definitions/router-models.md: packets of 128 B, one flit of 32 ns each, 20 packets per queue;"
            " Q-adaptive begins every run untaught",
        ),
        _points, _measure, _compare, _draw, table=_table, parallel=True,
    ),
)  # fmt: skip
