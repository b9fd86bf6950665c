"""Co-simulation of a network of generated routers with the network simulator: `hopforge cosim --part network`."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hopforge.gen.verilog.shared_modules import modules_of
from hopforge.gen.verilog.writer import to_verilog
from hopforge.hw.router.core import RouterCore
from hopforge.hw.router.csr import RouterCsr
from hopforge.model.config import Config
from hopforge.sim.benches.network import NetworkTraffic, record_network
from hopforge.sim.cosim.prepared import prepare_network
from hopforge.sim.cosim.run import chosen_simulator, play, report_in
from hopforge.sim.drive.replay import Progress, ReplayResult
from hopforge.sim.drive.runner import SimulatorName

__all__ = ["NetworkReport", "cosim_network"]

_ROUTERS_OF_A_KIND = 4
"""With as many routers for each kind of core, a kind is worth a compilation of its own."""


@dataclass(frozen=True)
class NetworkReport:
    """What a co-simulation of a network found.

    Attributes
    ----------
    name, simulator : str
        Top module and the simulator that ran it.
    traffic : NetworkTraffic
        What the hosts did.
    result : ReplayResult
        Cycles compared, cycles that differ, the first difference.
    routers, hosts, packets, flits : int
        Size of the network, and what was delivered in it.
    simulated_cycles : int
        Cycle after the one in which the last flit was taken.
    lookups, hits : int
        Of the engines of all routers together; 0 without engines.
    golden_s, verilog_s, build_s, run_s : float
        Wall-clock seconds for the simulator, the Verilog, compiling it and playing.
    waves : Path or None
        Waveforms, if wanted.
    """

    name: str
    simulator: SimulatorName
    traffic: NetworkTraffic
    result: ReplayResult
    routers: int
    hosts: int
    packets: int
    flits: int
    simulated_cycles: int
    lookups: int
    hits: int
    golden_s: float
    verilog_s: float
    build_s: float
    run_s: float
    waves: Path | None

    @property
    def passed(self) -> bool:
        """Whether every flit came in its cycle, and every other output was as expected in every cycle."""
        return self.result.mismatches == 0

    @property
    def cycles_per_second(self) -> float:
        """Speed of the simulator, the comparison included."""
        return self.result.cycles / self.run_s

    def rows(self) -> Iterator[tuple[str, str]]:
        """Return the report as (subject, words) for a table."""
        result, traffic = self.result, self.traffic
        yield "network", f"{self.name} on {self.simulator}: {self.routers} routers, {self.hosts} hosts"
        yield "traffic", f"load {traffic.load:g} for {traffic.cycles} cycles, seed {traffic.seed}"
        last = self.simulated_cycles - 1
        yield "flits", f"{self.flits} in {self.packets} packets, each compared; the last one in cycle {last}"
        if self.lookups:
            yield "lookups", f"{self.lookups}, {self.hits} of them hits; the counters of every engine compared"
        yield "cycles", f"{result.cycles}, every output compared in each"
        yield (
            "time",
            (
                f"simulator {self.golden_s:.1f} s, Verilog {self.verilog_s:.1f} s, build {self.build_s:.1f} s, "
                f"run {self.run_s:.1f} s: {self.cycles_per_second:.0f} cycles/s"
            ),
        )
        if self.waves is not None:
            yield "waves", str(self.waves)
        yield "mismatches", result.words


def cosim_network(
    config: Config,
    *,
    simulator: SimulatorName | None = None,
    load: float | None = None,
    cycles: int | None = None,
    seed: int | None = None,
    waves: bool = False,
    output: Path,
    progress: Progress | None = None,
) -> NetworkReport:
    """Compare the Verilog of the configured network with the network simulator, every flit in every cycle.

    The hosts send the packets of section `traffic`; the run ends when everything has been delivered, and reads the
    counters of all ports and lookup engines of all routers.

    Parameters
    ----------
    config : Config
        Sections topology, router, routing and traffic.
    simulator : str, optional
        ``icarus`` (with cocotb) or ``verilator`` (a loop in C++, for long runs); default from the configuration.
    load : float, optional
        Offered flits per host and cycle; default ``simulation.load``.
    cycles : int, optional
        Cycles in which packets are created; default ``cosim.cycles``.
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
    start = time.perf_counter()
    setup = prepare_network(config, simulator=simulator, load=load, cycles=cycles, seed=seed)
    top = f"{config.name}_network"
    folder = output
    traffic = NetworkTraffic(
        load=config.simulation.load if load is None else load,
        cycles=config.cosim.cycles if cycles is None else cycles,
        seed=config.seed if seed is None else seed,
    )
    recorded = record_network(config, traffic, setup)
    golden = time.perf_counter()
    verilog = to_verilog(recorded.component, top)
    written = time.perf_counter()
    blocks = _blocks(verilog, top, recorded.routers)
    with report_in(folder, config) as facts:
        run = play(
            simulator, verilog, top, recorded.replay, folder / simulator, blocks=blocks, waves=waves, progress=progress
        )  # fmt: skip
        report = NetworkReport(
            top, simulator, traffic, run.result, recorded.routers, recorded.hosts, recorded.packets, recorded.flits,
            recorded.simulated_cycles, recorded.lookups, recorded.hits, golden - start, written - golden, run.build_s,
            run.run_s, run.waves,
        )  # fmt: skip
        facts.update(_facts(report))
    return report


def _blocks(verilog: str, top: str, routers: int) -> list[str]:
    """Return the modules that are compiled by themselves: where many routers are instances of a few cores."""
    cores = modules_of(verilog, top, RouterCore)
    if routers < _ROUTERS_OF_A_KIND * len(cores):
        return []
    return [*cores, *modules_of(verilog, top, RouterCsr)]


def _facts(report: NetworkReport) -> dict[str, object]:
    first = report.result.first
    return {
        "top": report.name,
        "simulator": report.simulator,
        "load": report.traffic.load,
        "traffic_cycles": report.traffic.cycles,
        "seed": report.traffic.seed,
        "routers": report.routers,
        "hosts": report.hosts,
        "packets": report.packets,
        "flits": report.flits,
        "lookups": report.lookups,
        "hits": report.hits,
        "cycles": report.result.cycles,
        "mismatches": report.result.mismatches,
        "first_mismatch": None if first is None else first._asdict(),
        "seconds": {
            "golden": report.golden_s, "verilog": report.verilog_s, "build": report.build_s, "run": report.run_s,
        },
    }  # fmt: skip
