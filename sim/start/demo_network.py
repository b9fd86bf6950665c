"""The network part of the demo: the cycle simulator with cache, without it and with tables, and a small network in RTL.

The configured network carries synthetic traffic at the loads of section `simulation`, in short runs. A 2×2 mesh of
generated routers, `configs/cosim/mesh2x2.yml`, shows that the simulator and the Verilog agree on every flit.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from shlex import quote
from typing import Any

import pandas as pd

from hopforge.model.config import Config, load_config, parse_config
from hopforge.model.errors import UserError
from hopforge.sim.cosim.network import NetworkReport, cosim_network
from hopforge.sim.pages.report import Column, Fact, Figure, Section, Table, thousands
from hopforge.sim.run.flit_sweep import FLIT_SWEEP

__all__ = ["NetworkRuns", "RtlNetwork", "network_config", "network_section", "rtl_section", "run_network", "run_rtl"]

#: length of a run: the caches are warm even at low loads, and the demo stays short
WARMUP_CYCLES, MEASURED_CYCLES = 10_000, 10_000
#: cycles in which packets are created in the RTL network; Icarus plays some 20 to 40 cycles per second
RTL_CYCLES = 150
RTL_CONFIG = Path("configs", "cosim", "mesh2x2.yml")
#: how the routers get their routes: label by name of the variant
WAYS = {"cache": "routing cache", "no_cache": "no cache", "table": "tables"}
#: algorithms with the keys of node reduction, where it is not `dor`
_ALGORITHM = {"fat_tree": "d_mod_k", "dragonfly": "dragonfly_min"}


@dataclass(frozen=True)
class NetworkRuns:
    """The configured network in the cycle simulator.

    Attributes
    ----------
    curve : DataFrame
        A row for each way in `WAYS` and load, as `sim.run.flit_sweep.summarise` makes them; empty if refused.
    refused : str
        Why the simulator does not take this network; empty if it does.
    """

    curve: pd.DataFrame
    refused: str = ""

    def rows(self) -> list[tuple[str, str]]:
        """Return (subject, words) for the terminal."""
        if self.refused:
            return [("cycle simulator", f"left out: {self.refused}")]
        return [(f"cycle simulator, {WAYS[name]}", self._words(name)) for name in WAYS]

    def _words(self, name: str) -> str:
        points = self.curve[self.curve["variant"] == name]
        stable = points[~points["saturated"]]
        words = f"{points['accepted'].max():.3f} flits per host and cycle at most"
        if len(stable):
            first = stable.iloc[0]
            words = f"{first['latency']:.1f} cycles at load {first['load']:g}, {words}"
        if name == "cache":
            words += f", {100 * points['hit_rate'].min():.2f} % hits or more"
        return words


@dataclass(frozen=True)
class RtlNetwork:
    """The small network of generated routers.

    Attributes
    ----------
    config : Config
        What was compared.
    report : NetworkReport
        How it went.
    """

    config: Config
    report: NetworkReport

    def rows(self) -> list[tuple[str, str]]:
        """Return (subject, words) for the terminal."""
        found = self.report
        words = f"{found.flits} flits of {found.packets} packets compared with the simulator in {found.result.cycles}"
        return [(f"RTL network of {found.routers} routers", f"{words} cycles, {found.result.mismatches} mismatches")]


def network_config(config: Config) -> Config:
    """Return the sweep of the configured network: the three ways as variants, short runs, routes that fit the keys.

    Raises
    ------
    ConfigError
        The network cannot be simulated so.
    """
    data: dict[str, Any] = json.loads(config.model_dump_json())
    data["name"] += "_network"
    data["lookup"]["cache"]["enabled"] = True
    data["router"] |= {"route_computation": "lookup", "rc_cycles": 0}
    if config.routing.algorithm == "dor":
        data["routing"] |= {"algorithm": _ALGORITHM.get(config.topology.kind, "dor"), "ties": "key"}
    data["traffic"]["source"] = "bernoulli"
    variants: dict[str, dict[str, Any]] = {
        "cache": {},
        "no_cache": {"lookup.cache.enabled": False},
        "table": {"router.route_computation": "table", "router.rc_cycles": config.lookup.hit_cycles + 1},
    }
    limits = {"warmup_cycles": WARMUP_CYCLES, "min_cycles": MEASURED_CYCLES, "max_cycles": MEASURED_CYCLES}
    data["simulation"] |= limits | {"variants": variants, "seeds": 1}
    return parse_config(json.dumps(data, indent=2), config.name)


def run_network(config: Config, folder: Path, progress: Callable[[int, int], None]) -> NetworkRuns:
    """Simulate the network in all ways at all loads; writes configuration, tables and plot to `folder`.

    A network that the simulator refuses is no mistake here: the rest of the demo does not need it.

    Parameters
    ----------
    config : Config
        Configuration with node reduction.
    folder : Path
        Made if it can be simulated.
    progress : callable
        Called with (runs done, in all).
    """
    try:
        sweep = network_config(config)
        runs = FLIT_SWEEP.run(sweep, folder, progress, workers=1)
    except UserError as error:
        return NetworkRuns(pd.DataFrame(), str(error))
    FLIT_SWEEP.write(sweep, runs, folder)
    (folder / "config.json").write_text(sweep.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return NetworkRuns(FLIT_SWEEP.summarise(runs))


def run_rtl(config: Config, scratch: Path, build: Path, progress: Callable[[int, int], None]) -> RtlNetwork:
    """Compare the small network on the simulator of section `cosim`.

    Parameters
    ----------
    config : Config
        Simulator and seed.
    scratch, build : Path
        Folder for the configuration, and for the logs of the simulator.
    progress : callable
        Called with (cycles done, cycles in all).

    Raises
    ------
    UserError
        A tool is missing or fails.
    """
    with resources.as_file(resources.files("hopforge").joinpath(*RTL_CONFIG.parts)) as shipped:
        read = load_config(shipped)
    cosim = read.cosim.model_copy(update={"simulator": config.cosim.simulator, "cycles": RTL_CYCLES})
    small = read.model_copy(update={"seed": config.seed, "cosim": cosim})
    scratch.mkdir()
    (scratch / "config.json").write_text(small.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return RtlNetwork(small, cosim_network(small, output=build, progress=progress))


def network_section(found: NetworkRuns, config: Config, folder: Path) -> Section:
    """Return the part of the page about the cycle simulator; `folder` is where `run_network` wrote."""
    title = "The network, cycle by cycle"
    if found.refused:
        return Section(title, f"Left out: {found.refused}.")
    command = f"hopforge sweep {quote(str(folder / 'config.json'))}"
    traffic, curve = config.traffic, found.curve
    router = config.router
    text = (
        f"The same network in the cycle simulator: {router.switching} routers with {router.vcs} virtual channels,"
        f" traffic pattern {traffic.pattern}. Every head flit has to be looked up in every router on its way."
        f" Without the cache each of them asks the TCAM ({config.lookup.tcam.latency_cycles} cycles) and holds its"
        " virtual channel meanwhile. Tables that answer in the time of a hit are what a perfect cache would be.\n\n"
        f"Short runs: {thousands(WARMUP_CYCLES)} cycles of warm-up, {thousands(MEASURED_CYCLES)} cycles measured."
    )
    best = {name: curve[curve["variant"] == name]["accepted"].max() for name in WAYS}
    cached = curve[curve["variant"] == "cache"]
    facts = [
        Fact(
            "accepted at most, with cache",
            f"{best['cache']:.3f}",
            f"flits per host and cycle; {best['no_cache']:.3f} without, {best['table']:.3f} with tables",
        ),
        Fact("hit rate", f"{100 * cached['hit_rate'].min():.2f} %", "of all routers, at the load where it is lowest"),
    ]
    rows = [
        [
            WAYS[row["variant"]],
            row["load"],
            None if row["saturated"] else row["latency"],
            None if row["saturated"] else row["latency_p99"],
            row["accepted"],
            100 * row["hit_rate"] if row["variant"] == "cache" else None,
        ]
        for row in curve.to_dict("records")
    ]
    table = Table(
        "With cache, without, with tables",
        [
            Column("routes"),
            Column("offered load"),
            Column("latency, cycles", 1),
            Column("99 % of packets, cycles", 0),
            Column("accepted", 3, bar=True),
            Column("hit rate, %", 2),
        ],
        rows,
        "Load and accepted in flits per host and cycle. No latency: saturated, the queues of the hosts grow.",
        command,
    )
    load = "offered load, flits per host and cycle"
    stable = curve[~curve["saturated"]]
    charts = [
        _lines("Mean latency", stable, "latency", load, "cycles", "Stable points only.", command),
        _lines("Throughput", curve, "accepted", load, "accepted, flits per host and cycle", "", command),
    ]
    return Section(title, text, facts, [*charts, table])


def _lines(title: str, points: pd.DataFrame, quantity: str, x: str, y: str, caption: str, command: str) -> Figure:
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": label,
            "line": {"dash": "dot" if name == "table" else "solid"},  # it lies on that of the cache
            "x": points[points["variant"] == name]["load"].to_numpy(),
            "y": points[points["variant"] == name][quantity].to_numpy(),
        }
        for name, label in WAYS.items()
    ]
    axes = {"title": {"text": x}, "rangemode": "tozero"}, {"title": {"text": y}, "rangemode": "tozero"}
    return Figure(title, traces, {"xaxis": axes[0], "yaxis": axes[1]}, caption, command)


def rtl_section(found: RtlNetwork, folder: Path) -> Section:
    """Return the part of the page about the small network; `folder` is where `run_rtl` put its configuration."""
    report = found.report
    facts = [
        Fact("flits compared", thousands(report.flits), f"of {thousands(report.packets)} packets, in their cycle"),
        Fact("cycles that differ", thousands(report.result.mismatches), f"of {thousands(report.result.cycles)}"),
    ]
    rows = [[subject, words] for subject, words in report.rows() if subject != "waves"]
    command = f"hopforge cosim {quote(str(folder / 'config.json'))} --part network"
    return Section(
        "A network in RTL",
        f"The simulator against hardware: a mesh of {report.routers} generated routers gets the packets of the"
        " simulator; every flit at every host must come in its cycle, and at the end the counters of all ports must be"
        " the same.",
        facts,
        [Table("Simulator and Verilog", [Column("subject"), Column("result")], rows, "", command)],
    )
