"""Runs of a sweep: which there are, and how mistakes are found before the first of them."""

from collections.abc import Callable, Iterable, Mapping
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
        for load in variant.simulation.first_loads
        for k in range(variant.simulation.seeds)
    ]


def jobs_at(jobs: Iterable[Job], loads: Mapping[str, float]) -> list[Job]:
    """List the runs of each variant at one more load, with the seeds that it has at its first load."""
    found: dict[tuple[str, int], Job] = {}
    for job in jobs:
        if job.variant in loads:
            found.setdefault((job.variant, job.seed), job._replace(load=loads[job.variant]))
    return list(found.values())


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
