"""The knee: bisection closes in on where a curve saturates, and a sweep runs the loads that it asks for."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.sim.run.jobs import Job
from hopforge.sim.run.kept_results import Row
from hopforge.sim.run.knee import Knee, knee_of, knee_words, next_load
from hopforge.sim.run.sweep import Sweep, curve_knees

SWEEP = """
name: small
topology: {kind: mesh, radices: [3, 3]}
simulation: {seeds: 2}
"""


def searched(first: list[float], limit: float, within: float) -> tuple[Knee, list[float]]:
    """Ask for loads until the knee of a network that carries `limit` is known."""
    loads = list(first)
    while True:
        knee = knee_of(loads, [load > limit for load in loads])
        load = next_load(knee, within)
        if load is None:
            return knee, loads
        assert load not in loads
        loads.append(load)


@pytest.mark.parametrize("within", [0.1, 0.02, 0.001])
def test_any_knee_is_found(within: float) -> None:
    draw = np.random.default_rng(7)
    for _ in range(300):
        limit = float(draw.uniform(0.002, 0.999))
        knee, loads = searched(sorted(draw.uniform(0.01, 1.0, draw.integers(1, 6))), limit, within)
        assert knee.carried is not None and knee.saturated is not None
        assert knee.carried <= limit < knee.saturated
        assert knee.gap <= within
        assert len(loads) <= 6 + 10 + np.ceil(np.log2(1 / within))


def test_knees_that_are_nowhere() -> None:
    assert searched([0.1], 2.0, 0.02)[0] == Knee(1.0, None)
    assert searched([0.1], 0.0, 0.02)[0] == Knee(None, 1e-3)


@pytest.mark.parametrize("highest", [1.0, 0.5, 0.39604, 0.39606, 0.990099, 0.0123456])
def test_no_load_is_beyond_what_the_source_offers(highest: float) -> None:
    """A network that carries all of it: the search ends at the most that the source offers, with four digits."""
    loads = [0.01]
    while (load := next_load(knee_of(loads, [False] * len(loads)), 0.02, highest)) is not None:
        assert loads[-1] < load <= highest
        loads.append(load)
    assert loads[-1] == pytest.approx(highest, rel=1e-3)
    word, why = knee_words(knee_of(loads, [False] * len(loads)), highest)
    assert word == "never" and why.startswith(f"it carries load {loads[-1]:.4g}")
    assert ("the most that the source offers" in why) == (highest < 1)


def test_a_sweep_of_bursts_ends_at_what_they_offer(tmp_path: Path) -> None:
    rest = "traffic: {source: on_off, burst_load: 0.4, burst_cycles: 9}\nrouter: {vcs: 8}\n"
    runs, _ = run(SWEEP.replace("seeds: 2", "loads: [0.1], knee_percent: 5") + rest, tmp_path)
    assert runs["load"].tolist()[-1] == 0.36 == max(runs["load"])


def test_the_highest_load_below_saturation_counts() -> None:
    """A long run can settle by chance beyond one that did not."""
    knee = knee_of([0.4, 0.1, 0.3, 0.2], [False, False, True, False])
    assert knee == Knee(0.2, 0.3)
    assert knee_words(knee) == ("0.2 to 0.3", "known within 33.3 % (simulation.knee_percent)")


class Limited(Sweep):
    """Runs of a network that carries a known load; counts them."""

    def __init__(self) -> None:
        self.prepared: list[str] = []

    def prepare(self, missing: list[Job]) -> None:  # type: ignore[override]
        self.prepared += [job.variant for job in missing]

    def run_one(self, job: Job) -> Row:
        limit = {1: 0.137, 8: 2.0}.get(job.config.router.vcs, 0.3)  # by VCs: equal runs of two variants are done once
        return {"load": job.load, "seed": job.seed, "saturated": job.load > limit + 0.001 * job.seed}

    def summarise(self, runs: pd.DataFrame) -> pd.DataFrame:
        return runs.groupby(["variant", "load"], sort=False)["saturated"].any().reset_index()

    def knees(self, runs: pd.DataFrame) -> dict[str, Knee]:
        curve = self.summarise(runs)
        return curve_knees(curve, curve["saturated"])

    def write(self, config: Config, runs: pd.DataFrame, folder: Path) -> None:
        raise NotImplementedError

    def table(self, config: Config, runs: pd.DataFrame) -> list[list[str]]:
        raise NotImplementedError


def run(text: str, folder: Path) -> tuple[pd.DataFrame, Limited]:
    sweep = Limited()
    return sweep.run(parse_config(text), folder, lambda done, total: None, workers=1), sweep


def test_a_sweep_without_loads_finds_the_knee(tmp_path: Path) -> None:
    runs, sweep = run(SWEEP, tmp_path)
    (knee,) = sweep.knees(runs).values()
    assert knee.carried is not None and knee.carried <= 0.301 < knee.saturated and knee.gap <= 0.02  # type: ignore[operator]
    assert set(runs["load"]) > {0.05, 0.1, 0.5}
    assert runs["load"].tolist() == sorted(runs["load"])
    assert runs.groupby("load")["seed"].apply(list).tolist() == [[1, 2]] * runs["load"].nunique()
    assert len(runs) == len(sweep.prepared) + 2 * (runs["load"].nunique() - 10)  # later rounds are prepared
    again, other = run(SWEEP, tmp_path)
    pd.testing.assert_frame_equal(again, runs)
    assert other.prepared == []


def test_each_variant_has_its_own_knee(tmp_path: Path) -> None:
    listed = "{router.vcs: 2, simulation.knee_percent: null}"
    variants = f"variants: {{narrow: {{router.vcs: 1}}, wide: {{router.vcs: 8}}, as_listed: {listed}}}"
    runs, sweep = run(SWEEP.replace("seeds: 2", f"loads: [0.1, 0.5], knee_percent: 5, {variants}"), tmp_path)
    knees = sweep.knees(runs)
    assert knees["narrow"].gap <= 0.05 and knees["narrow"].carried <= 0.138 < knees["narrow"].saturated  # type: ignore[operator]
    assert knees["wide"] == Knee(1.0, None)
    assert runs.loc[runs["variant"] == "as_listed", "load"].tolist() == [0.1, 0.5]
    assert list(dict.fromkeys(runs["variant"])) == ["narrow", "wide", "as_listed"]


def test_listed_loads_stay_as_they_are(tmp_path: Path) -> None:
    runs, _ = run(SWEEP.replace("seeds: 2", "loads: [0.5, 0.1]"), tmp_path)
    assert runs["load"].tolist() == [0.5, 0.1]
