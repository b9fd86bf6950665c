"""What `hopforge series` and `sweep` make of a file with ``router.model: packet`` before they run."""

import math
from collections.abc import Sequence

import numpy as np

from hopforge.model.config import Config
from hopforge.sim.packet.network import PacketNetwork
from hopforge.sim.packet.settings import PacketError
from hopforge.sim.run.jobs import Job, try_variants

__all__ = ["prepare_jobs", "series_network"]


def series_network(config: Config, load: float, seed: int) -> PacketNetwork:
    """Make the network of `series.run_packet_series`, with messages enough for all loads of ``simulation.load_steps``.

    Raises
    ------
    PacketError
        ``simulation.series_routers``: nothing is learned here; a program, which has no load.
    """
    if config.traffic.source == "program":
        raise PacketError(
            "traffic.source: with router.model packet a program runs once, from begin to end (hopforge net or app)"
        )
    if config.simulation.series_routers:
        raise PacketError("simulation.series_routers is for other router models than packet")
    messages, limits = config.packet.messages, config.simulation
    if not limits.load_steps or load <= 0:
        return PacketNetwork(config, load, seed)
    steps = sorted((step.bin, step.load) for step in limits.load_steps)
    begins, loads = [0, *(k for k, _ in steps)], [load, *(one for _, one in steps)]
    lengths = np.diff([*begins, limits.series_bins])
    needed = float((lengths * np.array(loads)).sum()) / limits.series_bins / load * messages
    if config.packet.process == "exponential":
        needed += 6 * math.sqrt(needed)
    return PacketNetwork(config, load, seed, messages=math.ceil(needed) + 1)


def prepare_jobs(jobs: Sequence[Job]) -> None:
    """Make the first run of every variant of a sweep ready: mistakes, and the proof of deadlock freedom."""
    try_variants(jobs, _first)


def _first(job: Job) -> PacketNetwork:
    if job.config.traffic.source == "program":
        raise PacketError("traffic.source: a program has no load; hopforge net runs it once, from begin to end")
    return PacketNetwork(job.config, job.load, job.seed)
