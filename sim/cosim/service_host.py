"""Co-simulation of the service host of acknowledges with its golden model: `hopforge cosim --part service_host`."""

from pathlib import Path

import numpy as np

from hopforge.gen.design.service_host import service_host_design, service_host_name
from hopforge.model.config import Config
from hopforge.sim.benches.service_host import ServiceTraffic, service_host_replay
from hopforge.sim.cosim.block import BlockReport, compare_block
from hopforge.sim.cosim.run import chosen_simulator
from hopforge.sim.drive.replay import Progress
from hopforge.sim.drive.runner import SimulatorName

__all__ = ["cosim_service_host"]

_LEAST_CYCLES = 2000
_EVENTS = {
    "entries": "entered", "no room for an entry": "table_full", "entries too old": "expired",
    "acknowledges of its own": "made", "sent on": "sent", "at home": "home", "without an entry": "no_entry",
    "dropped, queue full": "queue_full", "own ones dropped": "own_full",
}  # fmt: skip


def cosim_service_host(
    config: Config,
    *,
    simulator: SimulatorName | None = None,
    cycles: int | None = None,
    seed: int | None = None,
    waves: bool = False,
    output: Path,
    progress: Progress | None = None,
) -> BlockReport:
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
    columns = {signal.name: replay.expected[:, column] for column, signal in enumerate(replay.outputs)}
    rules = hardware.rules
    words = (
        ("size", f"table of {rules.table} entries, {rules.queue} places, {rules.own} for acknowledges of its own"),
        ("events", ", ".join(f"{int(np.sum(columns[name])):,} {event}" for event, name in _EVENTS.items())),
    )
    return compare_block(
        config, "service host", hardware, top, replay, words,
        simulator=chosen, seed=traffic.seed, waves=waves, output=output, progress=progress,
    )  # fmt: skip
