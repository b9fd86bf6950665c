"""Co-simulation of the service host of acknowledges with its golden model: `hopforge cosim --part service_host`."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hopforge.gen.design.service_host import service_host_design, service_host_name
from hopforge.gen.verilog.writer import to_verilog
from hopforge.model.config import Config
from hopforge.model.router.acknowledging_host import HardwareRules
from hopforge.sim.benches.service_host import ServiceTraffic, service_host_replay
from hopforge.sim.cosim.run import chosen_simulator, play, report_in
from hopforge.sim.drive.replay import Progress, ReplayResult
from hopforge.sim.drive.runner import SimulatorName

__all__ = ["ServiceHostReport", "cosim_service_host"]

_LEAST_CYCLES = 2000
_EVENTS = {
    "entries": "entered", "no room for an entry": "table_full", "entries too old": "expired",
    "acknowledges of its own": "made", "sent on": "sent", "at home": "home", "without an entry": "no_entry",
    "dropped, queue full": "queue_full", "own ones dropped": "own_full",
}  # fmt: skip


@dataclass(frozen=True)
class ServiceHostReport:
    """What a co-simulation found.

    Attributes
    ----------
    name, simulator : str
        Top module and the simulator that ran it.
    rules : HardwareRules
        What it does.
    seed : int
        Of the traffic.
    events : dict
        What happened, how often.
    result : ReplayResult
        Cycles compared, cycles that differ, the first difference.
    """

    name: str
    simulator: SimulatorName
    rules: HardwareRules
    seed: int
    events: dict[str, int]
    result: ReplayResult

    @property
    def passed(self) -> bool:
        """Whether every output was as expected in every cycle."""
        return self.result.mismatches == 0

    def rows(self) -> Iterator[tuple[str, str]]:
        """Return the report as (subject, words) for a table."""
        rules, result = self.rules, self.result
        yield "service host", f"{self.name} on {self.simulator}, seed {self.seed}"
        yield "size", f"table of {rules.table} entries, {rules.queue} places, {rules.own} for acknowledges of its own"
        yield "cycles", f"{result.cycles}, every output compared in each"
        yield "events", ", ".join(f"{count:,} {words}" for words, count in self.events.items())
        yield "mismatches", result.words


def cosim_service_host(
    config: Config,
    *,
    simulator: SimulatorName | None = None,
    cycles: int | None = None,
    seed: int | None = None,
    waves: bool = False,
    output: Path,
    progress: Progress | None = None,
) -> ServiceHostReport:
    """Compare the Verilog of the configured service host with the golden one, every output in every cycle.

    Parameters
    ----------
    config : Config
        With `traffic.acknowledge`.
    cycles : int, optional
        By default those of the configuration (``cosim.cycles``), at least 2000.
    simulator, seed, waves, output, progress
        As in `hopforge.sim.cosim.lookup.cosim`.

    Raises
    ------
    UserError
        A configuration without acknowledges or with some that hardware cannot follow, or a tool that is missing or
        fails.
    """
    design, top = service_host_design(config), service_host_name(config)
    chosen = chosen_simulator(config, simulator)
    hardware = design.build()
    traffic = ServiceTraffic(
        cycles=cycles or max(config.cosim.cycles, _LEAST_CYCLES), seed=config.seed if seed is None else seed
    )
    replay = service_host_replay(hardware, traffic)
    columns = {output.name: replay.expected[:, column] for column, output in enumerate(replay.outputs)}
    events = {words: int(np.sum(columns[name])) for words, name in _EVENTS.items()}
    verilog = to_verilog(hardware, top)
    with report_in(output, config) as facts:
        run = play(chosen, verilog, top, replay, output / chosen, waves=waves, progress=progress)
        report = ServiceHostReport(top, chosen, hardware.rules, traffic.seed, events, run.result)
        facts.update(dict(report.rows()))
        facts["cycles"], facts["mismatches"] = run.result.cycles, run.result.mismatches
    return report
