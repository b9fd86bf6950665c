"""The whole path from one YAML file: Verilog, lint, co-simulation, hit rates, the network, one report page.

The lookup engine is done twice, with node reduction and with whole addresses as keys, so that the page shows what the
reduction is worth. The network part is `sim.start.demo_network`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from shlex import quote
from typing import Protocol

from hopforge.gen.design.configured import engine_parameters
from hopforge.gen.packages.lookup import lookup_name
from hopforge.gen.packages.parts import part_files
from hopforge.gen.synth.area_and_delay import synthesize_config
from hopforge.gen.synth.result import SynthResult
from hopforge.gen.verilog.lint import LintReport, lint_text
from hopforge.gen.verilog.writer import tool_versions
from hopforge.model.config import Config, load_config
from hopforge.model.output.results import run_metadata, staged, write_metadata
from hopforge.sim.cosim.lookup import CosimReport
from hopforge.sim.cosim.lookup import cosim as run_cosim
from hopforge.sim.drive.runner import check_simulator
from hopforge.sim.hits.hit_rates import HitReport, run_hits
from hopforge.sim.hits.hit_rates import write_report as write_hits
from hopforge.sim.hits.prepared import HitsSetup
from hopforge.sim.pages.hit_page import consequence_section, hit_run, hit_section
from hopforge.sim.pages.report import Column, Fact, Report, Section, Table, thousands, write_report
from hopforge.sim.pages.report_data import PAGE_FILE, write_page_data
from hopforge.sim.start.demo_network import NetworkRuns, RtlNetwork, network_section, rtl_section, run_network, run_rtl
from hopforge.sim.start.demo_variants import prepare_demo

SHIPPED_CONFIG = Path("configs", "demo.yml")
REPORT = "report.html"
_NETWORK, _RTL = "network", "rtl_network"  # folders
_SYNTH_RECIPE = "lut-fast"  # one that is quick and good; hopforge synth tries all of them
_SYNTH_BLOCKS = ("crc_index", "tag_select", "engine")


class Progress(Protocol):
    """Is told what the demo does."""

    def begin(self, step: str) -> None:
        """Start the next step; `step` is for people."""

    def advance(self, done: int, total: int) -> None:
        """Say how much of the step is done."""


class Silent:
    """A `Progress` that nobody watches."""

    def begin(self, step: str) -> None:
        """Do nothing."""

    def advance(self, done: int, total: int) -> None:
        """Do nothing."""


@dataclass
class Variant:
    """One of the two ways to make keys, and what was found about it.

    Attributes
    ----------
    label, stem : str
        For people, and as name of the folder.
    config : Config
        Complete configuration.
    start : HitsSetup
        The replay of the workload, at its start.
    files : dict of str to str
        Text of the generated files by name, Verilog first.
    lint : LintReport or None
        What Verilator said about the Verilog.
    cosim : CosimReport or None
        Comparison with the golden engine.
    synth : tuple of SynthResult
        Area and delay of blocks; empty without a cell library.
    hits : HitReport or None
        Replay of the workload.
    """

    label: str
    stem: str
    config: Config
    start: HitsSetup
    files: dict[str, str] = field(default_factory=dict)
    lint: LintReport | None = None
    cosim: CosimReport | None = None
    synth: tuple[SynthResult, ...] = ()
    hits: HitReport | None = None


@dataclass(frozen=True)
class Demo:
    """Outcome of a run.

    Attributes
    ----------
    variants : tuple of Variant
        Node reduction first.
    network : NetworkRuns
        The network in the cycle simulator.
    rtl : RtlNetwork or None
        The small network of generated routers; None without a simulator.
    page : Path
        The report.
    seconds : dict of str to float
        Wall-clock time of every step.
    problems : tuple of str
        Lint findings and differences between hardware and its golden model; empty if all is well.
    """

    variants: tuple[Variant, ...]
    network: NetworkRuns
    rtl: RtlNetwork | None
    page: Path
    seconds: dict[str, float]
    problems: tuple[str, ...]


def demo_config(path: Path | None = None) -> Config:
    """Read `path`, or the configuration that comes with hopforge.

    Raises
    ------
    ConfigError
        A user's mistake.
    """
    if path is not None:
        return load_config(path, hardware=True)
    with resources.as_file(resources.files("hopforge").joinpath(*SHIPPED_CONFIG.parts)) as shipped:
        return load_config(shipped, hardware=True)


def run_demo(
    config: Config,
    folder: Path,
    *,
    command: str,
    cosim: bool = True,
    liberty: Path | None = None,
    progress: Progress | None = None,
) -> Demo:
    """Do everything and write it to `folder`, all or nothing but the logs of the simulator.

    Parameters
    ----------
    config : Config
        Section `workload` is needed; ``lookup.reduction`` is set by the demo.
    folder : Path
        Receives a folder for each variant (configuration, Verilog, hit rates), ``network`` and ``rtl_network``
        (configuration, results), and ``report.html``.
    command : str
        Command line that repeats the run, for the report.
    cosim : bool
        Compare the Verilog with the golden engine, and the RTL network with the cycle simulator, on the simulator of
        section `cosim`.
    liberty : Path, optional
        Cell library for areas and delays; without it the demo does not synthesize.
    progress : Progress, optional
        Is told about every step.

    Raises
    ------
    UserError
        A missing tool (before anything is done), a mistake in the configuration, a folder that cannot be written.
    """
    if cosim:
        check_simulator(config.cosim.simulator, cocotb=config.cosim.simulator == "icarus")
    watch = _Watch(progress or Silent())
    reduced, whole = prepare_demo(config)
    variants = (
        Variant("node reduction", "node_reduction", reduced.config, reduced.hits),
        Variant("whole address", "whole_address", whole.config, whole.hits),
    )
    with staged(folder) as scratch:
        for variant in variants:
            place = scratch / variant.stem
            place.mkdir()
            (place / "config.json").write_text(_as_json(variant.config), encoding="utf-8")
            watch.begin(f"hit rates, {variant.label}")
            variant.hits = run_hits(variant.config, watch.progress.advance, variant.start)
            write_hits(variant.hits, place / "hits")
            _hardware(variant, place, folder / variant.stem / "cosim" if cosim else None, watch)
            if liberty is not None:
                _synthesize(variant, liberty, place / "synth", watch)
        watch.begin("network, cycle by cycle")
        network = run_network(variants[0].config, scratch / _NETWORK, watch.progress.advance)
        rtl = None
        if cosim:
            watch.begin("co-simulation, network")
            rtl = run_rtl(config, scratch / _RTL, folder / _RTL / "cosim", watch.progress.advance)
        watch.begin("report")
        problems = (*(problem for variant in variants for problem in _problems(variant)), *_network_problems(rtl))
        sections = [network_section(network, config, folder / _NETWORK)]
        sections += [rtl_section(rtl, folder / _RTL)] if rtl is not None else []
        covered = [*(variant.stem for variant in variants), _NETWORK, _RTL]
        page = _page(config, variants, sections, folder, command, watch)
        write_page_data(page, scratch / PAGE_FILE, covered)  # hopforge report shows it again
        write_report(page, scratch / REPORT)
        write_metadata(scratch, run_metadata(config) | {"seconds": watch.seconds, "problems": list(problems)})
    watch.end()
    return Demo(variants, network, rtl, folder / REPORT, watch.seconds, problems)


class _Watch:
    """Measures the steps and tells `progress` about them."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.seconds: dict[str, float] = {}
        self._step = ""
        self._start = 0.0

    def begin(self, step: str) -> None:
        self.end()
        self._step, self._start = step, time.perf_counter()
        self.progress.begin(step)

    def end(self) -> None:
        if self._step:
            self.seconds[self._step] = round(time.perf_counter() - self._start, 2)
        self._step = ""


def _as_json(config: Config) -> str:
    """Return the configuration with all defaults; JSON is YAML, so that every command reads it."""
    return config.model_dump_json(indent=2) + "\n"


def _hardware(variant: Variant, place: Path, build: Path | None, watch: _Watch) -> None:
    """Generate into `place`; simulate in `build`, which keeps the logs whatever happens (None: do not simulate)."""
    config, top = variant.config, lookup_name(variant.config)
    watch.begin(f"Verilog, {variant.label}")
    variant.files = part_files(config, "lookup")
    (place / "verilog").mkdir()
    for name, text in variant.files.items():
        (place / "verilog" / name).write_text(text, encoding="utf-8")
    verilog = variant.files[f"{top}.sv"]
    watch.begin(f"lint, {variant.label}")
    variant.lint = lint_text(verilog, top)
    if build is None:
        return
    watch.begin(f"co-simulation, {variant.label}")
    variant.cosim = run_cosim(config, output=build, progress=watch.progress.advance)


def _synthesize(variant: Variant, liberty: Path, folder: Path, watch: _Watch) -> None:
    watch.begin(f"synthesis, {variant.label}")
    names = ("reduction", *_SYNTH_BLOCKS) if variant.config.lookup.reduction else _SYNTH_BLOCKS
    found = synthesize_config(variant.config, liberty, names=names, recipes=[_SYNTH_RECIPE], folder=folder)
    variant.synth = tuple(results[0] for results in found)


def _problems(variant: Variant) -> list[str]:
    found = [f"lint of {variant.label}: {finding}" for finding in (variant.lint.findings if variant.lint else ())]
    if variant.cosim is not None and variant.cosim.result.mismatches:
        found.append(f"co-simulation of {variant.label}: {variant.cosim.result.first}")
    return found


def _network_problems(rtl: RtlNetwork | None) -> list[str]:
    if rtl is None or rtl.report.passed:
        return []
    return [f"co-simulation of the network {rtl.config.name}: {rtl.report.result.first}"]


def _page(
    config: Config,
    variants: Sequence[Variant],
    network: Sequence[Section],
    folder: Path,
    command: str,
    watch: _Watch,
) -> Report:
    runs = {variant.label: hit_run(variant.hits) for variant in variants if variant.hits is not None}
    commands = {variant.label: f"hopforge hits {_config_of(variant, folder)}" for variant in variants}
    totals = next(iter(runs.values())).totals
    rates = " and ".join(f"{100 * run.totals['hit_rate']:.3f} % ({label})" for label, run in runs.items())
    compared = sum(variant.cosim.result.cycles for variant in variants if variant.cosim)
    wrong = sum(variant.cosim.result.mismatches for variant in variants if variant.cosim)
    topology = next(iter(runs.values())).network
    summary = f"{totals['workload']} on a {topology}: the routing caches answer {rates} of all lookups."
    if compared:
        same = "in every one of" if not wrong else f"in all but {thousands(wrong)} of"
        summary += f" The generated Verilog equals the golden model {same} {thousands(compared)} cycles."
    return Report(
        f"hopforge: {config.name}",
        summary,
        [
            hit_section(runs, commands),
            consequence_section(runs, commands),
            _hardware_section(config, variants, folder),
            *network,
        ],
        {
            "repeat": command,
            "configuration": config.name,
            "seed": str(config.seed),
            "versions": ", ".join(f"{name} {version}" for name, version in tool_versions().items()),
            "time": ", ".join(f"{step} {seconds:g} s" for step, seconds in watch.seconds.items()),
        },
    )


def _config_of(variant: Variant, folder: Path) -> str:
    return quote(str(folder / variant.stem / "config.json"))


def _hardware_section(config: Config, variants: Sequence[Variant], folder: Path) -> Section:
    first = variants[0]
    facts = [_lint_fact(variants)]
    if first.cosim is not None:
        cycles = sum(variant.cosim.result.cycles for variant in variants if variant.cosim)
        wrong = sum(variant.cosim.result.mismatches for variant in variants if variant.cosim)
        facts += [
            Fact("cycles compared", thousands(cycles), f"with the golden engine, on {config.cosim.simulator}"),
            Fact("cycles that differ", thousands(wrong), "every output, random idle and back-pressure, flushes"),
        ]
    facts.append(Fact("latency on a hit", f"{config.lookup.hit_cycles} cycles", "one lookup per cycle"))
    rows = [[name, *values] for name, values in _hardware_rows(variants).items()]
    heads = [Column("quantity"), *(Column(variant.label) for variant in variants)]
    command = f"hopforge gen lookup {_config_of(first, folder)}"
    engine = Table("Generated engine", heads, rows, f"Files in {folder}/*/verilog.", command)
    items = [engine]
    if first.cosim is not None:
        runs = [variant.cosim for variant in variants if variant.cosim]
        counters = [[name, *(run.totals.get(name) for run in runs)] for name in first.cosim.totals]
        items.append(
            Table(
                "Counters of the co-simulated engine",
                heads,
                counters,
                "Random destinations and changes of the configuration, made to reach every state; not the workload.",
                f"hopforge cosim {_config_of(first, folder)}",
            )
        )
    if first.synth:
        items.append(_synth_table(variants, folder))
    return Section(
        "Hardware",
        "The lookup engine of one input port, generated from the same file: key functions, routing cache, miss"
        " registers, port to the TCAM, control registers and counters.",
        facts,
        items,
    )


def _synth_table(variants: Sequence[Variant], folder: Path) -> Table:
    rows = [
        [variant.label, result.block, result.cells, result.flops, result.area_um2, result.delay_ns, result.sta_ns]
        for variant in variants
        for result in variant.synth
    ]
    heads = [Column("keys"), Column("block"), Column("cells"), Column("flip-flops"), Column("area, µm²", 0, bar=True)]
    return Table(
        "Area and delay",
        [*heads, Column("logic (abc), ns", 3), Column("with flip-flops (OpenSTA), ns", 3)],
        rows,
        f"Ideal wires, memories as black boxes, recipe {_SYNTH_RECIPE}; hopforge synth takes the best of several.",
        f"hopforge synth {_config_of(variants[0], folder)} --liberty FILE",
    )


def _lint_fact(variants: Sequence[Variant]) -> Fact:
    findings = sum(len(variant.lint.findings) for variant in variants if variant.lint)
    rules = {rule for variant in variants if variant.lint for rule in variant.lint.waived}
    alone = any(variant.lint.missing for variant in variants if variant.lint)
    tools = "verilator -Wall (slang is missing)" if alone else "verilator -Wall, slang"
    return Fact("lint findings", str(findings), f"{tools}; {len(rules)} rules waived, with reasons")


def _hardware_rows(variants: Sequence[Variant]) -> Mapping[str, list[object]]:
    rows: dict[str, list[object]] = {}
    measures: dict[str, Callable[[Variant], object]] = {
        "top module": lambda variant: lookup_name(variant.config),
        "key functions": lambda variant: ", ".join(engine_parameters(variant.config).functions),
        "lines of Verilog": lambda variant: next(iter(variant.files.values())).count("\n"),
        "modules": lambda variant: sum(line.startswith("module ") for line in _verilog(variant).splitlines()),
        "cycles compared": lambda variant: variant.cosim.result.cycles if variant.cosim else None,
        "build, s": lambda variant: round(variant.cosim.build_s, 1) if variant.cosim else None,
        "simulation, s": lambda variant: round(variant.cosim.run_s, 1) if variant.cosim else None,
    }
    for name, measure in measures.items():
        values = [measure(variant) for variant in variants]
        if any(value is not None for value in values):
            rows[name] = values
    return rows


def _verilog(variant: Variant) -> str:
    return next(iter(variant.files.values()))
