"""Co-simulation of a collective plane with its golden model: `hopforge cosim --part collectives`."""

from pathlib import Path

from hopforge.gen.packages.collectives import collectives_name, plane_component
from hopforge.model.config import Config
from hopforge.model.router.collective_params import OPERATIONS
from hopforge.model.router.collective_plane import configured_plane
from hopforge.sim.benches.collectives import PlaneTraffic, collectives_run
from hopforge.sim.cosim.block import BlockReport, compare_block
from hopforge.sim.cosim.run import chosen_simulator
from hopforge.sim.drive.replay import Progress
from hopforge.sim.drive.runner import SimulatorName

__all__ = ["cosim_collectives"]

_CYCLES_PER_OPERATION = 40
"""About; so many operations does a number of cycles mean."""


def cosim_collectives(
    config: Config,
    *,
    simulator: SimulatorName | None = None,
    cycles: int | None = None,
    seed: int | None = None,
    waves: bool = False,
    output: Path,
    progress: Progress | None = None,
) -> BlockReport:
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
    counts, unit = recorded.counts, design.params
    words = (
        ("network", str(design.network)),
        ("units", f"{len(design.ports)}, {unit.groups} groups of {unit.buffer_flits} flits of {unit.width_bits} bits"),
        *(
            (f"group {g}", f"{len(tree.hosts)} hosts, root router {tree.root}, depth {tree.depth}")
            for g, tree in enumerate(design.trees)
        ),
        ("operations", ", ".join(f"{counts[name]} {name}" for name in OPERATIONS)),
        (
            "words",
            f"{counts['words sent']:,} sent, {counts['words taken']:,} taken, each compared with its operation",
        ),
        (
            "on purpose",
            f"{counts['wrong']} operations of which a member names another, {counts['errors']} words tell",
        ),
    )
    return compare_block(
        config, "plane", plane_component(design), top, recorded.replay, words,
        simulator=chosen, seed=traffic.seed, waves=waves, output=output, progress=progress,
    )  # fmt: skip
