"""The Lublin-Feitelson model: distributions of the golden cases, closed forms, and repeatability."""

import json
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.workload.job_log import log_text, parse_log
from hopforge.model.workload.jobs import usable_jobs
from hopforge.model.workload.lublin import (
    KINDS,
    LUBLIN,
    LublinParameters,
    bucket_weights,
    draw_log,
    draw_runs,
    draw_sizes,
    draw_submits,
)

_PLACES = [folder / "shared" / "beyond" / "lublin.json" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.exists()), None)
needs_golden = pytest.mark.skipif(GOLDEN is None, reason="shared/beyond is not here")
COUNT = 100_000
#: Kolmogorov-Smirnov at 1 %
FAR = 1.63 / COUNT**0.5


def cases():
    found = json.loads(GOLDEN.read_text())["cases"]
    assert {case["name"] for case in found} == set(LUBLIN)
    return [(LublinParameters(**case["parameters"]), case) for case in found]


def shares_at(sample, points):
    return np.searchsorted(np.sort(sample), points, side="right") / len(sample)


@needs_golden
def test_constants_and_day_of_the_reference():
    for parameters, case in cases():
        assert parameters == LUBLIN[case["name"]]
        np.testing.assert_allclose(bucket_weights(parameters), case["weights"], atol=1e-9)


@needs_golden
def test_distributions_of_the_reference():
    generator = np.random.default_rng(20)
    for parameters, case in cases():
        size, expected = np.array(case["size_cdf"]).T
        assert np.abs(shares_at(draw_sizes(parameters, COUNT, generator), size) - expected).max() < FAR
        for nodes, quantiles in case["ln_run_quantiles"].items():
            share, value = np.array(quantiles).T
            runs = draw_runs(parameters, np.full(COUNT, int(nodes)), generator)
            assert np.abs(shares_at(runs, value) - share).max() < FAR
        days = BucketTime(parameters)
        gaps = np.diff(days.points(draw_submits(parameters, COUNT, generator)), prepend=0.0)
        assert abs(gaps.mean() - case["mean_gap"]) < 4 * gaps.std() / COUNT**0.5


class BucketTime:
    """Points that have gone by at a time, from the definition."""

    def __init__(self, parameters):
        self.weights = bucket_weights(parameters)

    def points(self, seconds):
        half_hours, rest = np.divmod(seconds, 1800)
        days, bucket = np.divmod(half_hours.astype(int), 48)
        before = np.concatenate([[0.0], np.cumsum(self.weights)])
        return 1800 * (days * before[-1] + before[bucket]) + self.weights[bucket] * rest


@pytest.mark.parametrize("kind", LUBLIN)
def test_sizes_and_the_day_by_closed_forms(kind):
    parameters = LUBLIN[kind]
    size = draw_sizes(parameters, COUNT, np.random.default_rng(3))
    assert abs((size == 1).mean() - parameters.serial) < FAR  # log2 is above ½: no other job has one processor
    assert size.min() >= 1 and size.max() <= 2**parameters.uhi
    runs = draw_runs(parameters, size, np.random.default_rng(4))
    assert runs.max() <= 12
    weights = bucket_weights(parameters)
    assert abs(weights.mean() - 1) < 1e-12 and (weights > 0).all()
    assert weights[18:36].mean() > 1 > weights[:14].mean()  # by day, before seven
    gaps = np.diff(BucketTime(parameters).points(draw_submits(parameters, 1000, np.random.default_rng(5))))
    assert gaps.min() > 0 and gaps.max() <= np.exp(13)


@pytest.mark.parametrize("kind", KINDS)
def test_a_drawn_log_is_a_log(kind):
    log = draw_log(kind, 300, 256, np.random.default_rng(7))
    again = draw_log(kind, 300, 256, np.random.default_rng(7))
    assert (log.records == again.records).all()
    assert (parse_log(log_text(log)).records == log.records).all()
    jobs = usable_jobs(log, machine_nodes=256)
    assert len(jobs) == 300 and jobs.skipped == {} and jobs.number.tolist() == list(range(1, 301))
    assert set(log.field("queue").tolist()) == {"typed": {0, 1}, "batch": {1}, "interactive": {0}, "all": {-1}}[kind]


@pytest.mark.parametrize(
    ("kind", "count", "processors", "words"),
    [
        ("jann", 1, 64, "kind of jobs must be one of all, batch, interactive, typed, not jann"),
        ("all", 0, 64, "count of jobs must be at least 1, not 0"),
        ("all", 1, 8, "the model takes machines of at least 10 processors, not 8"),
    ],
)
def test_what_is_refused(kind, count, processors, words):
    with pytest.raises(ValueError, match=words):
        draw_log(kind, count, processors, np.random.default_rng(1))
