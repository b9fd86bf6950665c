"""Programs whose collectives are done by collective units, beside the same programs by hosts."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config import Config, parse_config
from hopforge.model.config.load import suited
from hopforge.model.output.plots import draw_grouped_bars, new_figure, style_axes
from hopforge.sim.programs.app_result import AppRun
from hopforge.sim.programs.application import run_app
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row

_UNITS = "barrier: in_network, bcast: in_network, allreduce: in_network"
_BY_HOSTS = "{allreduce: recursive_doubling}"
#: name → section workload without collectives, bits of a word, algorithms for what units cannot do
_PROGRAMS: dict[str, tuple[str, int, str]] = {
    "BFS, scale 12": ("kind: bfs, scale: 12", 64, "{}"),
    "IS, class S": ("kind: npb, benchmark: is, class: S", 32, "{}"),
    "MG, class S": ("kind: npb, benchmark: mg, class: S", 32, _BY_HOSTS),
    "DPSNN, 10 steps": ("kind: dpsnn, steps: 10, neurons: 100", 32, "{}"),
    "20 all-reduces of 4 KiB": ("kind: collective, operation: allreduce, bytes: 4096, repeat: 20", 64, "{}"),
}
_CHIP = (
    "router: {vcs: 2, buffer_flits: 8}\ntraffic: {flit_bytes: 8}\n"
    "timing: {link_gbps: 64, switch_base_ns: 3, cable_ns: 1}\n"
)
_SYSTEM = "router: {{vcs: {vcs}}}\nrouting: {{algorithm: {routing}}}\ntiming: {{link_gbps: 100}}\n"
_NETWORKS = {
    "8x8 mesh": ("{kind: mesh, radices: [8, 8]}", _CHIP),
    "4x4x4 torus": ("{kind: torus, radices: [4, 4, 4]}", _SYSTEM.format(vcs=2, routing="dor")),
    "fat tree, 64 hosts": ("{kind: fat_tree, k: 4, n: 2}", _SYSTEM.format(vcs=1, routing="d_mod_k")),
}
_ENGINES = ("flow", "packet")


def program_config(network: str, program: str, engine: str, *, units: bool) -> Config:
    """Return a program on 64 hosts, its collectives by units or by hopforge's default algorithms."""
    topology, rest = _NETWORKS[network]
    workload, bits, by_hosts = _PROGRAMS[program]
    collectives = f"{{{_UNITS}, by_hosts: {by_hosts}}}" if units else "{}"
    return suited(
        parse_config(
            f"name: programs\ntopology: {topology}\n{rest}"
            f"collective_plane: {{width_bits: {bits}, buffer_flits: 64}}\n"
            f"app: {{engine: {engine}, backend: embedded, host_gflops: 10}}\n"
            f"workload: {{{workload}, ranks: 64, collectives: {collectives}}}\n"
        ),
        hardware=False, keys=False,
    )  # fmt: skip


def _points(options: Options) -> list[Point]:
    return [{"network": network, "program": program} for network in _NETWORKS for program in _PROGRAMS]


def _measure(point: Point, options: Options) -> list[Row]:
    rows: list[Row] = []
    for engine in _ENGINES:
        for by in ("units", "hosts"):
            config = program_config(str(point["network"]), str(point["program"]), engine, units=by == "units")
            found = run_app(config)
            assert isinstance(found, AppRun), "on a network"
            rows.append({
                **point, "engine": engine, "by": by, "makespan_us": found.found.makespan_s * 1e6,
                "messages": found.found.messages, "unit_collectives": found.row().get("unit_collectives", 0),
            })  # fmt: skip
    return rows


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for (network, program, engine), part in data.groupby(["network", "program", "engine"], sort=False):
        units, hosts = (part[part["by"] == by].iloc[0] for by in ("units", "hosts"))
        text = (
            f"{units['unit_collectives']:,} collectives by units; {hosts['messages']:,} messages become "
            f"{units['messages']:,}"
        )
        found.append(
            Comparison(
                f"{program}, {network}, {engine}", "µs", float(hosts["makespan_us"]), float(units["makespan_us"]), text
            )
        )
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    figure, (axes,) = new_figure(width_in=8.0)
    style_axes(axes, title="Programs with collectives by units", x_label="", y_label="makespan / by hosts")
    part = data[data["engine"] == "packet"]
    spans = part.pivot_table(index="program", columns=["network", "by"], values="makespan_us", sort=False)
    series = {
        str(network): (spans[network]["units"] / spans[network]["hosts"]).tolist()
        for network in dict.fromkeys(part["network"])
    }
    names = [str(name).replace(", ", ",\n").replace(" of ", "\nof ") for name in spans.index]
    draw_grouped_bars(axes, groups=names, series=series)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "collectives.programs",
        "Programs: collectives by units and by hosts",
        "the definition, docs/definitions/network-collectives.md#in-programs",
        (
            "64 ranks, one on each host of one group; networks as in collectives.cycles, 64 flits a group in the plane",
            "by hosts: hopforge's default algorithms; all else is the same; deviation is (units − hosts)/hosts",
            "computing at 10 Gflop/s; hosts need no time to begin a message or to combine words",
            "MG: all-reduces of floating-point numbers stay with the hosts (by_hosts)",
        ),
        _points,
        _measure,
        _compare,
        _draw,
        reference="by hosts",
        parallel=True,
    ),
)
