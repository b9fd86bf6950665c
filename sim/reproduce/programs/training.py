"""Steps of training on four kinds of networks: makespan, exposed communication, busiest link; flow beside packet.

Issue 20. Definitions: docs/definitions/training.md, docs/definitions/measures.md#graphs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config import Config, parse_config
from hopforge.model.output.plots import PALETTE, new_figure, style_axes
from hopforge.sim.programs.app_result import AppRun
from hopforge.sim.programs.app_setup import AppSetup, prepare_app
from hopforge.sim.programs.application import run_app
from hopforge.sim.programs.loggops_engine import LoggopsSettings, run_loggops
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, pick

_RINGS = "{allreduce: ring, allgather: ring, reduce_scatter: ring, alltoall: pairwise}"
_IDEAL = LoggopsSettings(0.0, 0.0, 0.0, 0.0, 0.0, 1 << 60)
"""A network on which nothing takes time."""
_NOT_KNOWN = "–"


@dataclass(frozen=True)
class _Step:
    """A step of training.

    Attributes
    ----------
    title : str
        What it is.
    workload : str
        Keys of section `workload`.
    microbatches : int
        Of the whole step.
    part : tuple of int
        Layers and microbatches of the part of it that engine packet runs without ``--full``.
    networks : dict
        Name of a network, perhaps with the rings of its dimensions → keys of `topology`, `routing` and `workload`.
    shrink : int
        By what messages and operations are divided for engine packet.
    """

    title: str
    workload: str
    microbatches: int
    part: tuple[int, int]
    networks: dict[str, tuple[str, str, str]]
    shrink: int


def _networks(dragonfly: str, tree: str, torus: str, hyperx: str) -> dict[str, tuple[str, str, str]]:
    return {
        "dragonfly": (f"kind: dragonfly, {dragonfly}", "algorithm: dragonfly_min", ""),
        "fat tree": (f"kind: fat_tree, {tree}", "algorithm: d_mod_k", ""),
        "torus": (f"kind: torus, radices: {torus}", "algorithm: dor", ""),
        "torus, its own rings": (f"kind: torus, radices: {torus}", "algorithm: dor", ", levels: {kind: torus}"),
        "HyperX": (f"kind: hyperx, {hyperx}", "algorithm: minimal", ""),
    }


_STEPS = {
    "llama7b": _Step(
        "Llama-2-7B on 128 ranks", "model: llama2_7b, parallel: {data: 8, tensor: 4, pipeline: 4},"
        " gradients: {bucket_layers: 2}", 8, (4, 4),
        _networks("p: 4, a: 4, h: 2", "k: 12, n: 2", "[4, 4, 8]", "sizes: [8, 4], hosts_per_router: 4"), 1024,
    ),
    "moe": _Step(
        "Mixtral 8×7B on 256 ranks", "model: mixtral_8x7b, parallel: {data: 32, pipeline: 8, expert: 8},"
        " gradients: {zero: 1}, skew: 0.3", 16, (8, 4),
        _networks("p: 4, a: 8, h: 4, g: 9", "k: 16, n: 2", "[8, 8, 4]", "sizes: [8, 8], hosts_per_router: 4"), 4096,
    ),
}  # fmt: skip


def _points(name: str, options: Options) -> list[Point]:
    step = _STEPS[name]
    whole: list[Point] = [{"network": network, "engine": "flow", "shrink": 1} for network in step.networks]
    part: Point = {} if options.full else dict(zip(("layers", "microbatches"), step.part, strict=True))
    return whole + [
        {"network": network, "engine": engine, "shrink": step.shrink, **part}
        for network in step.networks for engine in ("flow", "packet")
    ]


def configuration(name: str, point: Point, seed: int) -> Config:
    """Return what a point runs."""
    step = _STEPS[name]
    topology, routing, more = step.networks[str(point["network"])]
    vcs = ", router: {vcs: 4}" if point["engine"] == "packet" else ""
    sizes = f", sizes: {{layers: {point['layers']}}}" if "layers" in point else ""
    microbatches = point.get("microbatches", step.microbatches)
    return parse_config(
        f"{{name: training, seed: {seed}, topology: {{{topology}}}, routing: {{{routing}}}{vcs},"
        f" workload: {{kind: training, {step.workload}, microbatches: {microbatches}{more}{sizes},"
        f" shrink: {point['shrink']}, collectives: {_RINGS}}}, timing: {{link_gbps: 400}},"
        f" app: {{engine: {point['engine']}, host_gflops: 400000, loggops: {{machine: ai}}}}}}\n"
    )


def _measure(name: str, point: Point, options: Options) -> list[Row]:
    config = configuration(name, point, options.seed)
    setup = prepare_app(config)
    assert isinstance(setup, AppSetup)
    assert setup.schedule is not None
    ideal = float(run_loggops(setup.schedule, _IDEAL).finish.max(initial=0.0)) * 1e-9
    run = run_app(config, setup=setup)
    assert isinstance(run, AppRun)
    assert run.activity is not None
    found, activity = run.found, run.activity
    hottest = None if run.links is None else run.links.hottest()
    return [{
        **point, "messages": found.messages, "payload_bytes": found.payload_bytes, "makespan_s": found.makespan_s,
        "ideal_s": ideal, "computing_share": activity.computing_share, "exposed_share": activity.exposed_share,
        "idle_share": activity.idle_share, "busiest_link": _NOT_KNOWN if hottest is None else hottest[0],
        "busiest_share": None if hottest is None else hottest[1],
        "busiest_host_share": None if run.links is None else run.links.hottest_of_hosts(),
        "cpu_seconds": found.cpu_seconds,
    }]  # fmt: skip


def _compare(name: str, data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for row in data.to_dict("records"):
        words = (
            f"computing {100 * row['computing_share']:.1f} %, exposed {100 * row['exposed_share']:.1f} %, neither"
            f" {100 * row['idle_share']:.1f} %"
        )
        if row["engine"] == "packet":
            flow = pick(data, "makespan_s", network=row["network"], shrink=row["shrink"], engine="flow")
            step = "a part" if pd.notna(row.get("layers")) else "all"
            quantity = f"{row['network']}, {step} with 1/{row['shrink']} of the bytes: packet beside flow"
            found.append(Comparison(quantity, "ms", 1e3 * flow, 1e3 * row["makespan_s"], words))
        elif row["shrink"] == 1:
            words += f"; {row['busiest_link']} {100 * row['busiest_share']:.1f} % busy"
            words += f", a host's {100 * row['busiest_host_share']:.1f} %"
            quantity = f"{row['network']}: flow beside no time for messages"
            found.append(Comparison(quantity, "ms", 1e3 * row["ideal_s"], 1e3 * row["makespan_s"], words))
    return found


def _draw(name: str, data: pd.DataFrame, options: Options) -> Figure:
    whole = data[data["shrink"] == 1]
    figure, (axes,) = new_figure(width_in=9)
    style_axes(axes, title=_STEPS[name].title, x_label="ms, mean of ranks", y_label="")
    left = pd.Series(0.0, index=whole.index)
    for number, (key, label) in enumerate(
        (("computing_share", "computing"), ("exposed_share", "exposed communication"), ("idle_share", "neither"))
    ):
        width = 1e3 * whole[key] * whole["makespan_s"]
        color = "0.85" if key == "idle_share" else PALETTE[number]
        axes.barh(whole["network"], width, left=left, label=label, color=color)
        left = left + width
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(0, -0.12), ncols=3)
    return figure


def _reproduction(name: str) -> Reproduction:
    step = _STEPS[name]
    bound: dict[str, Callable[..., object]] = {
        key: partial(function, name)
        for key, function in (("points", _points), ("measure", _measure), ("compare", _compare), ("draw", _draw))
    }
    return Reproduction(
        name=f"training.{name}",
        title=f"A step of training: {step.title}",
        source="not in a paper; issue 20",
        assumptions=(
            f"{step.workload}, microbatches: {step.microbatches}; rings; ranks on hosts 0, 1, …",
            "400 Gbit/s a link, 400 Tflop/s a rank, app.loggops.machine: ai",
            "exposed: a message from or to the rank is under way and it does not compute; neither: it waits",
            "no time for messages: the bubble of the pipeline and waiting for busier experts are in it",
            f"engine packet: {step.part[0]} layers and {step.part[1]} microbatch{'es' * (step.part[1] > 1)}"
            f" (--full: all), bytes and operations divided by {step.shrink}, latencies and o as they are, 4 VCs",
        ),
        reference="no time for messages, or flow",
        parallel=True,
        **bound,  # type: ignore[arg-type]
    )


REPRODUCTIONS: Sequence[Reproduction] = tuple(_reproduction(name) for name in _STEPS)
