"""Co-simulation of one generated router with the golden router: `hopforge cosim --part router`."""

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from hopforge.gen.design.configured import network_design
from hopforge.gen.packages.router import router_name
from hopforge.gen.verilog.writer import to_verilog
from hopforge.hw.router.router import Router
from hopforge.model.config import Config
from hopforge.model.output.destination import check_destination
from hopforge.model.output.results import check_writable
from hopforge.model.router.params import RouterParams
from hopforge.sim.cosim.run import chosen_simulator, play, report_in
from hopforge.sim.drive.held_stimulus import held_stimulus
from hopforge.sim.drive.replay import Progress, ReplayResult
from hopforge.sim.drive.router import router_replay
from hopforge.sim.drive.router_packets import check_packets
from hopforge.sim.drive.router_stimulus import router_stimulus
from hopforge.sim.drive.router_traffic import RouterStimulus, RouterTraffic
from hopforge.sim.drive.router_variants import router_variant
from hopforge.sim.drive.runner import SimulatorName, SimulatorRun

__all__ = ["RouterReport", "RouterRun", "cosim_router", "recorded", "router_of", "router_runs", "run_router"]

RUN_CYCLES = 200_000
"""Most cycles of one run: a recording of a router of 5 ports takes some 300 bytes a cycle."""

HELD_CYCLES = (300, 3000)
"""Fewest and most cycles of the run in which ``enable`` goes off and on: its golden router is plain Python."""

_LEDGER = "runs.jsonl"


@dataclass(frozen=True)
class RouterRun:
    """One recording played to one router.

    Attributes
    ----------
    router : str
        The configured router, or the number of a variant.
    seed : int
        Of the traffic.
    held : bool
        Whether its packets waited while ``enable`` was off (with lookup engines every run has such cycles).
    design : str
        Digest of the Verilog.
    ports, vcs : int
        Size of the router.
    cycles, mismatches : int
        Cycles compared, and those that differ.
    first : str
        The first difference; empty if there is none.
    sent, received, dropped : int
        Packets: all that went in came out once or were dropped.
    lookups : int
        Lookups of all engines.
    build_s, run_s : float
        Wall-clock seconds.
    """

    router: str
    seed: int
    held: bool
    design: str
    ports: int
    vcs: int
    cycles: int
    mismatches: int
    first: str
    sent: int
    received: int
    dropped: int
    lookups: int
    build_s: float
    run_s: float


@dataclass(frozen=True)
class RouterReport:
    """What the co-simulation of routers found.

    Attributes
    ----------
    runs : tuple of RouterRun
        All, also those of an earlier call that are still valid.
    simulator : str
        Which ran them.
    seconds : float
        Wall-clock time of this call.
    waves : Path or None
        Waveforms, if wanted.
    """

    runs: tuple[RouterRun, ...]
    simulator: SimulatorName
    seconds: float
    waves: Path | None

    @property
    def passed(self) -> bool:
        """Whether every output was as expected in every cycle."""
        return all(run.mismatches == 0 for run in self.runs)

    def rows(self) -> Iterator[tuple[str, str]]:
        """Return the report as (subject, words) for a table."""
        names = dict.fromkeys(run.router for run in self.runs)
        what = next(iter(names)) if len(names) == 1 else f"{len(names)} routers"
        yield "router", f"{what} on {self.simulator}, {len(self.runs)} runs"
        yield "cycles", f"{sum(run.cycles for run in self.runs)}, every output compared in each"
        sent, received, dropped = (
            sum(getattr(run, key) for run in self.runs) for key in ("sent", "received", "dropped")
        )
        yield "packets", f"{sent} sent: {received} received whole and once, {dropped} dropped as unroutable, 0 left"
        lookups = sum(run.lookups for run in self.runs)
        if lookups:
            yield "lookups", str(lookups)
        build, run_s = sum(run.build_s for run in self.runs), sum(run.run_s for run in self.runs)
        yield "time", f"{self.seconds:.1f} s; of all runs: build {build:.1f} s, run {run_s:.1f} s"
        if self.waves is not None:
            yield "waves", str(self.waves)
        wrong = [run for run in self.runs if run.mismatches]
        yield "mismatches", "0" if not wrong else f"router {wrong[0].router}, seed {wrong[0].seed}: {wrong[0].first}"


def cosim_router(
    config: Config,
    *,
    simulator: SimulatorName | None = None,
    cycles: int | None = None,
    variants: int | None = None,
    seed: int | None = None,
    waves: bool = False,
    output: Path,
    progress: Progress | None = None,
) -> RouterReport:
    """Compare the Verilog of a router with the golden router, every output in every cycle.

    Random packets, unroutable ones among them, idle cycles, credits that are late or held back, clearing of counters;
    with lookup engines flushes, writes to the TCAM, link changes, answers out of order. ``enable`` goes off and on:
    with tables in a run of its own, a tenth as long as the others (`HELD_CYCLES`). A run ends with nothing left.

    Parameters
    ----------
    config : Config
        Its router in the middle of the network; with `variants` only simulator and seed.
    simulator : str, optional
        ``icarus`` (with cocotb) or ``verilator`` (a loop in C++, for long runs); default from the configuration.
    cycles : int, optional
        Cycles with new packets, of all routers together; default ``cosim.cycles``.
    variants : int, optional
        As many routers drawn at random (`sim.drive.router_variants`) instead of the configured one. Runs that an
        earlier call has finished on the same Verilog are not repeated.
    seed : int, optional
        Of the traffic; default from the configuration.
    waves : bool
        Record all signals.
    output : Path
        Folder of everything; ``cosim.json`` is the report.
    progress : callable, optional
        Called with (cycles done, cycles in all).

    Raises
    ------
    UserError
        If the hardware cannot do what the configuration wants, or a tool is missing or fails.
    """
    simulator = chosen_simulator(config, simulator)
    folder = output
    check_writable(folder)
    seed = config.seed if seed is None else seed
    total = config.cosim.cycles if cycles is None else cycles
    start = time.perf_counter()
    routers = _routers(config, variants)
    share = max(1, total // len(routers))
    done: list[RouterRun] = []
    dump: Path | None = None
    ledger = folder / _LEDGER
    for name, params in routers.items():
        top = f"router_{name}" if variants else name
        verilog = to_verilog(Router(params=params), top)
        design = hashlib.sha256(verilog.encode()).hexdigest()[:16]
        known = {(run.router, run.seed, run.held, run.design): run for run in _finished(ledger)} if variants else {}
        for traffic, held in router_runs(params, share, seed):
            run = known.get((name, traffic.seed, held, design))
            if run is None or run.cycles < traffic.cycles:
                # one build for all; but the waves of one run must not replace those of another
                place = folder / (f"work_{name}_held" if held and waves else f"work_{name}")
                run, played = run_router(
                    params, traffic, name, verilog, top, place, simulator, held=held, waves=waves
                )
                if all(earlier.mismatches == 0 for earlier in done):
                    dump = played.waves
                check_destination(ledger, None)
                with ledger.open("a") as file:
                    file.write(json.dumps(asdict(run)) + "\n")
            done.append(run)
            if progress is not None:
                cycles_done = sum(run.cycles for run in done)
                progress(cycles_done, max(total, cycles_done))
    report = RouterReport(tuple(done), simulator, time.perf_counter() - start, dump)
    with report_in(folder, config) as facts:
        facts.update(_facts(report))
    return report


def router_runs(params: RouterParams, cycles: int, seed: int) -> Iterator[tuple[RouterTraffic, bool]]:
    """Yield the traffic of every run of a router, and whether packets are held back by ``enable``."""
    if params.rc == "table":
        least, most = HELD_CYCLES
        yield RouterTraffic(cycles=min(max(cycles // 10, least), most), seed=1000 * seed), True
    for number, begin in enumerate(range(0, cycles, RUN_CYCLES)):
        yield RouterTraffic(cycles=min(RUN_CYCLES, cycles - begin), seed=1000 * seed + number), False


def run_router(
    params: RouterParams,
    traffic: RouterTraffic,
    name: str,
    verilog: str,
    top: str,
    folder: Path,
    simulator: SimulatorName,
    *,
    held: bool = False,
    waves: bool = False,
) -> tuple[RouterRun, SimulatorRun]:
    """Record `traffic`, check its packets (`sim.drive.router_packets`), and play it to the Verilog of a router.

    If it is `held`, ``enable`` goes off and on (`sim.drive.held_stimulus`).

    Raises
    ------
    ValueError
        The golden router loses, doubles or mixes something.
    """
    stimulus = recorded(params, traffic, held=held)
    delivery = check_packets(stimulus)
    replay = router_replay(stimulus)
    folder.mkdir(parents=True, exist_ok=True)
    played = play(simulator, verilog, top, replay, folder, waves=waves)
    result: ReplayResult = played.result
    run = RouterRun(
        router=name, seed=traffic.seed, held=held, design=hashlib.sha256(verilog.encode()).hexdigest()[:16],
        ports=params.ports, vcs=params.vcs, cycles=result.cycles, mismatches=result.mismatches,
        first="" if result.first is None else str(result.first), sent=delivery.sent, received=delivery.received,
        dropped=delivery.dropped, lookups=stimulus.lookups["lookups"], build_s=played.build_s, run_s=played.run_s,
    )  # fmt: skip
    return run, played


def recorded(params: RouterParams, traffic: RouterTraffic, *, held: bool) -> RouterStimulus:
    """Return the golden trace of a run of `router_runs`."""
    return held_stimulus(params, traffic) if held else router_stimulus(params, traffic)


def router_of(config: Config) -> tuple[str, RouterParams]:
    """Return name and parameters of the router in the middle of the configured network."""
    design = network_design(config)
    number = len(design.params) // 2
    return router_name(config, number), design.params[number]


def _routers(config: Config, variants: int | None) -> dict[str, RouterParams]:
    if variants is not None:
        return {str(number): router_variant(number) for number in range(1, variants + 1)}
    name, params = router_of(config)
    return {name: params}


def _finished(ledger: Path) -> Iterator[RouterRun]:
    """Yield the runs of earlier calls that were equal in every cycle."""
    if not ledger.exists():
        return
    for line in ledger.read_text().splitlines():
        try:
            run = RouterRun(**json.loads(line))
        except (ValueError, TypeError):
            continue  # cut off in the middle, or of another version
        if run.mismatches == 0:
            yield run


def _facts(report: RouterReport) -> dict[str, object]:
    return {
        "simulator": report.simulator,
        "cycles": sum(run.cycles for run in report.runs),
        "mismatches": sum(run.mismatches for run in report.runs),
        "runs": [asdict(run) for run in report.runs],
        "seconds": report.seconds,
    }
