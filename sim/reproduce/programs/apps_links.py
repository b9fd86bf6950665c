"""Dragonflies with several links between two groups: how evenly they are used, and the packet engine beside flow."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config import Config, parse_config
from hopforge.model.output.plots import PALETTE, new_figure, style_axes
from hopforge.model.topology import Topology
from hopforge.sim.programs.application import run_app
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer
from hopforge.sim.run.simulation import Simulation

_P, _A = 4, 4
#: (links of a router to other groups, groups)
_SHAPES = ((4, 3), (2, 5), (4, 5), (2, 9), (4, 9))
_RULES = ("own_first", "destination", "hash", "adaptive")
_UNIFORM, _SHIFT, _ALL = "uniform", "shift", "all-to-all"
#: bytes of a message, times that it is sent, virtual channels, load and cycles of uniform traffic
_SHIFT_BYTES, _REPEATS, _PAIR_BYTES, _VCS, _LOAD, _CYCLES = 65536, 4, 4096, 16, 0.3, 12000
#: flits of the smaller buffers, beside those that `app` takes by itself
_BUFFER = 24
#: column, engine, what the router has besides its VCs
_ENGINES = (
    ("flow_s", "flow, backend: embedded", ""),
    ("packet_s", "packet", ""),
    ("small_buffers_s", "packet", f", buffer_flits: {_BUFFER}"),
)


def _points(options: Options) -> list[Point]:
    rules = _RULES if options.full else _RULES[:2]
    return [
        {"h": h, "g": g, "links": rule, "traffic": traffic}
        for h, g in _SHAPES
        for rule in rules
        for traffic in ((_UNIFORM,) if rule == "adaptive" else (_UNIFORM, _SHIFT, _ALL))
    ]


def _config(point: Point, seed: int, more: str = "", router: str = "vcs: 2") -> Config:
    return parse_config(
        f"name: links\nseed: {seed}\n"
        f"topology: {{kind: dragonfly, p: {_P}, a: {_A}, h: {integer(point, 'h')}, g: {integer(point, 'g')}}}\n"
        f"routing: {{algorithm: dragonfly_min, links: {point['links']}}}\nrouter: {{{router}}}\n{more}"
    )


def unevenness(topology: Topology, flits: Sequence[int]) -> float:
    """Largest over mean load among the links of a pair of groups, of the pair where it is largest."""
    a = int(topology.params["a"])
    load = np.asarray(flits, float).reshape(topology.routers, -1)
    router, port = np.nonzero(topology.peer_router >= 0)
    outside = topology.peer_router[router, port] // a != router // a
    router, port = router[outside], port[outside]
    pairs = pd.DataFrame({"load": load[router, port]}).groupby([router // a, topology.peer_router[router, port] // a])
    return float((pairs["load"].max() / pairs["load"].mean()).max())


def _write_shift(folder: Path, hosts: int) -> None:
    """Write a trace in which every host sends to that of the same number in the next group."""
    for rank in range(hosts):
        to, source = (rank + _P * _A) % hosts, (rank - _P * _A) % hosts
        calls = f"{rank} irecv {source} 0 {_SHIFT_BYTES} 6\n{rank} send {to} 0 {_SHIFT_BYTES} 6\n"
        text = _REPEATS * f"{calls}{rank} wait {source} {rank} 0\n"
        (folder / f"rank-{rank + 1}.txt").write_text(text, encoding="utf-8")


def _measure(point: Point, options: Options) -> list[Row]:
    row: Row = dict(point)
    if point["traffic"] == _UNIFORM:
        run = Simulation(_config(point, options.seed), _LOAD, options.seed)
        run.advance(_CYCLES)
        return [row | {"largest_over_mean": unevenness(run.topology, run.state["output_port"]["flits"])}]
    with TemporaryDirectory() as folder:
        _write_shift(Path(folder), _P * _A * integer(point, "g"))
        workload = f"{{kind: trace, file: {folder!r}}}"
        if point["traffic"] == _ALL:
            workload = (
                f"{{kind: collective, operation: alltoall, bytes: {_PAIR_BYTES}, collectives: {{alltoall: ring}}}}"
            )
        for column, words, router in _ENGINES:
            more = f"workload: {workload}\napp: {{engine: {words}}}\n"
            row[column] = run_app(_config(point, options.seed, more, f"vcs: {_VCS}{router}")).found.makespan_s
    return [row]


def _title(row: pd.Series) -> str:
    return f"{row['traffic']}, h = {row['h']}, g = {row['g']}, {row['links']}"


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for _, row in data.iterrows():
        if row["traffic"] == _UNIFORM:
            said = "largest over mean load of the links of a pair of groups; must be at most 1.15"
            found.append(Comparison(_title(row), "", None, row["largest_over_mean"], said, claim="at most 1.15"))
            continue
        said = (
            f"packet over flow {row['packet_s'] / row['flow_s']:.3f};"
            f" with {_BUFFER} flits a buffer {row['small_buffers_s'] / row['flow_s']:.3f}"
        )
        found.append(Comparison(_title(row), "µs", 1e6 * row["flow_s"], 1e6 * row["packet_s"], said))
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    programs = data[data["traffic"] != _UNIFORM]
    figure, (axes,) = new_figure(width_in=8)
    style_axes(axes, title="Engine packet over engine flow, several links for each pair of groups", x_label="",
               y_label="packet / flow")  # fmt: skip
    axes.axhspan(0.9, 1.1, color="0.5", alpha=0.15, lw=0)
    axes.axhline(1.0, color="0.4", lw=1)
    places = [f"h = {h}, g = {g}" for h, g in _SHAPES]
    for number, ((rule, traffic), part) in enumerate(programs.groupby(["links", "traffic"], sort=False)):
        place = [places.index(f"h = {h}, g = {g}") for h, g in zip(part["h"], part["g"], strict=True)]
        axes.plot(place, part["packet_s"] / part["flow_s"], "o", label=f"{rule}, {traffic}",
                  color=PALETTE[number % len(PALETTE)])  # fmt: skip
    axes.set_xticks(range(len(places)), labels=places)
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(0, -0.08), ncols=2)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        name="apps.links",
        title="Several links between two groups of a dragonfly",
        source="not in a paper; issue 14",
        assumptions=(
            "deviation: of the programs from engine flow, embedded",
            f"p = {_P}, a = {_A}, dragonfly_min; uniform traffic of load {_LOAD} for {_CYCLES} cycles with 2 VCs",
            f"shift: {_REPEATS} messages of {_SHIFT_BYTES} bytes from each host to that of the same number in the next"
            f" group; all-to-all: a ring of {_PAIR_BYTES} bytes for each pair; {_VCS} VCs",
            f"buffers as `app` sizes them (a power of two of flits), and of {_BUFFER} flits",
            "--full: the rules hash and adaptive, too; engine flow knows no adaptive routing",
        ),
        points=_points,
        measure=_measure,
        compare=_compare,
        draw=_draw,
        parallel=True,
        reference="flow or bound",
    ),
)
