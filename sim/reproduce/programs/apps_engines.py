"""Programs timed by the router simulator beside engine flow and SimGrid, and exchanges whose time one can calculate."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config import Config, parse_config
from hopforge.model.output.plots import PALETTE, new_figure, style_axes
from hopforge.sim.programs.application import run_app
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer

_NETWORKS = {
    "4×4×4 torus": "topology: {kind: torus, radices: [4, 4, 4]}\n",
    "dragonfly": "topology: {kind: dragonfly, p: 2, a: 4, h: 2}\nrouting: {algorithm: dragonfly_min}\n",
}
_PROGRAMS = ("is", "cg", "mg", "ft")
#: when messages start: with their receive, sharing the link of their host; or when they are sent, one after the other
_STARTS = {"received": "", "sent": ", buffered_bytes: 65536, injection: queued"}
_ONE_SWITCH = "one switch"
#: bytes of a message there, its hosts, switch and cable in ns, link in Gbit/s, SimGrid's envelope in bytes
_BYTES, _HOSTS, _SWITCH_NS, _CABLE_NS, _GBPS, _ENVELOPE = 50_000, 8, 51, 50, 8, 16
#: exchange: messages that follow each other
_STEPS = {"ping-pong": 4, "ring": 2 * (_HOSTS - 1), "all-to-all": _HOSTS - 1}
_ENGINES = {"flow": "engine: flow, backend: embedded", "packet": "engine: packet",
            "simgrid": "engine: flow, backend: simgrid"}  # fmt: skip


def _points(options: Options) -> list[Point]:
    installed = shutil.which("smpirun") is not None
    exchanges: list[Point] = [
        {"network": _ONE_SWITCH, "program": name, "ranks": 2 if name == "ping-pong" else _HOSTS, "simgrid": installed}
        for name in _STEPS
    ]
    return exchanges + [
        {"network": network, "program": program, "class": "A", "ranks": 64, "start": start,
         "simgrid": installed and start == "received"}
        for start in (_STARTS if options.full else ("received",)) for network in _NETWORKS for program in _PROGRAMS
    ]  # fmt: skip


def _config(point: Point, engine: str, seed: int, folder: Path) -> Config:
    name = str(point["program"])
    if point["network"] == _ONE_SWITCH:
        return _exchange(name, engine, seed, folder)
    workload = f"{{kind: npb, benchmark: {name}, class: {point['class']}, ranks: {integer(point, 'ranks')}}}"
    return parse_config(
        f"name: apps\nseed: {seed}\n{_NETWORKS[str(point['network'])]}workload: {workload}\n"
        f"app: {{{_ENGINES[engine]}{_STARTS[str(point['start'])]}}}\n"
    )


def _exchange(name: str, engine: str, seed: int, folder: Path) -> Config:
    ping, pong = (f"{{0}} {call} {{1}} 0 {_BYTES} 6\n" for call in ("send", "recv"))
    for rank, calls in enumerate((ping + pong, pong + ping)):
        (folder / f"rank-{rank + 1}.txt").write_text(2 * calls.format(rank, 1 - rank), encoding="utf-8")
    workload = {
        "ping-pong": f"{{kind: trace, file: {str(folder)!r}}}",
        "ring": "{kind: collective, operation: allreduce, collectives: {allreduce: ring},"
        f" bytes: {_HOSTS * _BYTES}}}",
        "all-to-all": f"{{kind: collective, operation: alltoall, collectives: {{alltoall: ring}}, bytes: {_BYTES}}}",
    }[name]
    return parse_config(
        f"name: apps\nseed: {seed}\ntopology: {{kind: mesh, radices: [1], hosts_per_router: {_HOSTS}}}\n"
        f"workload: {workload}\napp: {{{_ENGINES[engine]}, buffered_bytes: 65536}}\n"
        f"timing: {{link_gbps: {_GBPS}, switch_base_ns: {_SWITCH_NS}, cable_ns: {_CABLE_NS}}}\n"
        "traffic: {flit_bytes: 8}\nrouter: {vcs: 4, buffer_flits: 64}\n"
    )


def calculated_s(exchange: str) -> float:
    """Return what an exchange on one switch takes: a switch, two cables and the bytes of each message in turn."""
    return _STEPS[exchange] * (_SWITCH_NS + 2 * _CABLE_NS + 8 * (_BYTES + _ENVELOPE) / _GBPS) * 1e-9


def _measure(point: Point, options: Options) -> list[Row]:
    makespans: dict[str, float | None] = dict.fromkeys(_ENGINES)
    with TemporaryDirectory() as folder:
        for engine in _ENGINES:
            if engine != "simgrid" or point["simgrid"]:
                found = run_app(_config(point, engine, options.seed, Path(folder))).found
                makespans[engine] = found.makespan_s
    flow, packet = makespans["flow"], makespans["packet"]
    assert flow is not None and packet is not None
    calculated = calculated_s(str(point["program"])) if point["network"] == _ONE_SWITCH else None
    return [{
        **{key: point.get(key) for key in ("network", "program", "class", "ranks", "start")},
        **{f"{engine}_s": makespan for engine, makespan in makespans.items()}, "calculated_s": calculated,
        "packet_over_flow": packet / flow, "deviation_percent": 100 * (packet / flow - 1),
    }]  # fmt: skip


def _title(row: pd.Series) -> str:
    name = str(row["program"])
    said = f"{name.upper() if name in _PROGRAMS else name}, {row['network']}"
    return f"{said}, messages one after the other" if row["start"] == "sent" else said


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for _, row in data.iterrows():
        if row["network"] == _ONE_SWITCH:
            found += [
                Comparison(f"{_title(row)}: {engine}", "ms", 1e3 * row["calculated_s"], 1e3 * row[f"{engine}_s"],
                           f"{_STEPS[str(row['program'])]} messages after each other; must be within 1 %")
                for engine in _ENGINES if pd.notna(row[f"{engine}_s"])
            ]  # fmt: skip
            continue
        said = f"packet over flow {row['packet_over_flow']:.3f}; must be within 10 %"
        if pd.notna(row["simgrid_s"]):
            said += f"; SimGrid {1e3 * row['simgrid_s']:.4f} ms"
        found.append(Comparison(f"{_title(row)}: packet", "ms", 1e3 * row["flow_s"], 1e3 * row["packet_s"], said))
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    programs = data[data["network"] != _ONE_SWITCH]
    figure, (axes,) = new_figure(width_in=8)
    style_axes(axes, title="Makespan of engine packet over engine flow", x_label="", y_label="packet / flow")
    axes.grid(visible=False, axis="x")
    axes.axhspan(0.9, 1.1, color="0.5", alpha=0.15, lw=0)
    axes.axhline(1.0, color="0.4", lw=1)
    names = list(programs["program"].unique())
    groups = list(programs.groupby(["start", "network"], sort=False))
    for number, ((start, network), part) in enumerate(groups):
        ratio = part.set_index("program")["packet_over_flow"]
        shift = 0.16 * (number - (len(groups) - 1) / 2)
        label = f"{network}, messages one after the other" if start == "sent" else str(network)
        axes.plot([k + shift for k in range(len(names))], ratio.reindex(names), "o", ms=8, label=label,
                  color=PALETTE[number % len(PALETTE)])  # fmt: skip
    axes.set_xticks(range(len(names)), labels=[str(name).upper() for name in names])
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(0, -0.08), ncols=2)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        name="apps.engines",
        title="The three engines for programs beside each other",
        source="not in a paper; issue 6",
        assumptions=(
            "deviation: of the exchanges on one switch from the time that one calculates, of the programs from engine"
            " flow, embedded",
            "NPB class A on 64 ranks, without computing; the file says only network, routing (dor, dragonfly_min with"
            " p = 2, a = 4, h = 2), program and engine",
            f"exchanges: {_BYTES} bytes a message, {_SWITCH_NS} ns a switch, {_CABLE_NS} ns a cable, {_GBPS} Gbit/s;"
            f" ping-pong of 2 ranks, ring (allreduce) and all-to-all of {_HOSTS}",
            "SimGrid where it is installed; --full: also with messages that leave their host one after the other as"
            " soon as they are sent (SimGrid has no such rule)",
        ),
        points=_points,
        measure=_measure,
        compare=_compare,
        draw=_draw,
        parallel=True,
        reference="calculated or flow",
    ),
)
