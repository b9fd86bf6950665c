"""Co-simulation of a collective plane with its golden model: `hopforge cosim --part collectives`."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hopforge.gen.packages.collectives import collectives_name, plane_component
from hopforge.gen.verilog.writer import to_verilog
from hopforge.model.config import Config
from hopforge.model.router.collective_params import OPERATIONS
from hopforge.model.router.collective_plane import PlaneDesign, configured_plane
from hopforge.sim.benches.collectives import PlaneTraffic, collectives_run
from hopforge.sim.cosim.run import chosen_simulator, play, report_in
from hopforge.sim.drive.replay import Progress, ReplayResult
from hopforge.sim.drive.runner import SimulatorName

__all__ = ["CollectivesReport", "cosim_collectives"]

_CYCLES_PER_OPERATION = 40
"""About; so many operations does a number of cycles mean."""


@dataclass(frozen=True)
class CollectivesReport:
    """What a co-simulation found.

    Attributes
    ----------
    name, simulator : str
        Top module and the simulator that ran it.
    design : PlaneDesign
        The plane.
    seed : int
        Of the traffic.
    counts : Counter
        Operations by name, words, errors.
    result : ReplayResult
        Cycles compared, cycles that differ, the first difference.
    """

    name: str
    simulator: SimulatorName
    design: PlaneDesign
    seed: int
    counts: Counter[str]
    result: ReplayResult

    @property
    def passed(self) -> bool:
        """Whether every output was as expected in every cycle."""
        return self.result.mismatches == 0

    def rows(self) -> Iterator[tuple[str, str]]:
        """Return the report as (subject, words) for a table."""
        design, counts, result = self.design, self.counts, self.result
        p = design.params
        yield "plane", f"{self.name} on {self.simulator}, seed {self.seed}: {design.network}"
        yield "units", f"{len(design.ports)}, {p.groups} groups of {p.buffer_flits} flits of {p.width_bits} bits"
        for g, tree in enumerate(design.trees):
            yield f"group {g}", f"{len(tree.hosts)} hosts, root router {tree.root}, depth {tree.depth}"
        yield "cycles", f"{result.cycles}, every output compared in each"
        yield "operations", ", ".join(f"{counts[name]} {name}" for name in OPERATIONS)
        yield (
            "words",
            f"{counts['words sent']:,} sent, {counts['words taken']:,} taken, each compared with its operation",
        )
        yield (
            "on purpose",
            f"{counts['wrong']} operations of which a member names another, {counts['errors']} words tell",
        )
        yield "mismatches", result.words


def cosim_collectives(
    config: Config,
    *,
    simulator: SimulatorName | None = None,
    cycles: int | None = None,
    seed: int | None = None,
    waves: bool = False,
    output: Path,
    progress: Progress | None = None,
) -> CollectivesReport:
    """Compare the Verilog of the configured plane with the golden one, every output in every cycle.

    All groups have operations at the same time, from hosts that wait at random.

    Parameters
    ----------
    config : Config
        With section `collective_plane`.
    cycles : int, optional
        About; by default those of the configuration (``cosim.cycles``), at least 2000.
    simulator, seed, waves, output, progress
        As in `hopforge.sim.cosim.lookup.cosim`.

    Raises
    ------
    UserError
        Groups that do not fit the network, or a tool that is missing or fails.
    """
    design, top = configured_plane(config), collectives_name(config)
    chosen = chosen_simulator(config, simulator)
    traffic = PlaneTraffic(
        operations=max(1, (cycles or max(config.cosim.cycles, 2000)) // _CYCLES_PER_OPERATION),
        seed=config.seed if seed is None else seed,
    )
    recorded = collectives_run(design, traffic)
    verilog = to_verilog(plane_component(design), top)
    with report_in(output, config) as facts:
        run = play(chosen, verilog, top, recorded.replay, output / chosen, waves=waves, progress=progress)
        report = CollectivesReport(top, chosen, design, traffic.seed, recorded.counts, run.result)
        facts.update(dict(report.rows()))
        facts["cycles"], facts["mismatches"] = run.result.cycles, run.result.mismatches
    return report
