"""Runs of a sweep: which there are, and how mistakes are found before the first of them."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from hopforge.model.config import Config
from hopforge.sim.run.kept_results import naming_variant


class Job(NamedTuple):
    """One run; `variant` is empty where there are no variants."""

    config: Config
    load: float
    seed: int
    variant: str = ""


def network_jobs(config: Config) -> list[Job]:
    """List all runs: variants, then loads, then seeds; without ``simulation.variants`` the file is the only one."""
    return [
        Job(variant, load, variant.seed + k, name)
        for name, variant in (config.variants or {"": config}).items()
        for load in variant.simulation.loads
        for k in range(variant.simulation.seeds)
    ]


def program_jobs(config: Config) -> list[Job]:
    """List all runs of a program: variants, then seeds."""
    return [
        Job(variant.model_copy(update={"seed": seed}), variant.simulation.load, seed, name)
        for name, variant in (config.variants or {"": config}).items()
        for seed in range(variant.seed, variant.seed + variant.simulation.seeds)
    ]


def try_variants(jobs: Iterable[Job], attempt: Callable[[Job], object]) -> None:
    """Call `attempt` with the first job of every variant; mistakes name the variant."""
    seen: set[str] = set()
    for job in jobs:
        if job.variant not in seen:
            seen.add(job.variant)
            with naming_variant(job.variant):
                attempt(job)
