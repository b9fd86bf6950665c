"""Schedules against the golden cases of shared/beyond and a plain scheduler."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.model.workload.job_log import parse_log, read_log
from hopforge.model.workload.jobs import usable_jobs
from hopforge.sim.jobs.placement import PLACEMENTS
from hopforge.sim.jobs.space_sharing import SCHEDULERS, schedule

_PLACES = [folder / "shared" / "beyond" / "swf.json" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.exists()), None)


@pytest.mark.skipif(GOLDEN is None, reason="shared/beyond is not here")
def test_schedules_of_the_reference():
    cases = json.loads(GOLDEN.read_text())["cases"]
    # groups and subtrees have no cases there: tests of their own hold them
    assert {run["placement"] for case in cases for run in case["runs"]} == set(PLACEMENTS) - {"group", "subtree"}
    for case in cases:
        jobs = usable_jobs(read_log(GOLDEN.parent / case["log"]), machine_nodes=math.prod(case["dims"]))
        for run in case["runs"]:
            done = schedule(jobs, case["dims"], scheduler=run["policy"], placement=run["placement"], seed=run["seed"])
            at = [*zip(jobs.number.tolist(), done.start.tolist(), strict=True)]
            assert sorted(at) == sorted(map(tuple, run["starts"])), (case["log"], run["policy"], run["placement"])
            if "first_nodes" in run:
                ends = [(int(one[0]), int(one[-1])) for one in done.used]
                nodes = [(job, *two) for job, two in zip(jobs.number.tolist(), ends, strict=True)]
                assert sorted(nodes) == sorted(map(tuple, run["first_nodes"]))
            means = (done.makespan, done.wait.mean(), done.bounded_slowdown.mean(), done.utilisation)
            names = ("makespan", "mean_wait", "mean_bounded_slowdown", "utilisation")
            np.testing.assert_allclose(means, [run[name] for name in names], atol=1e-8)


class Textbook:
    """FCFS, or EASY with extra nodes, second by second: counts of nodes only."""

    def __init__(self, jobs, nodes):
        self.jobs, self.free = jobs, nodes
        self.queue, self.running, self.start = [], [], {}

    def end(self, now):
        over = [job for job in self.running if self.start[job] + self.jobs.run[job] == now]
        self.free += sum(self.jobs.nodes[job] for job in over)
        self.running = [job for job in self.running if job not in over]
        return over

    def begin(self, job, now):
        self.start[job] = now
        self.queue.remove(job)
        self.running.append(job)
        self.free -= self.jobs.nodes[job]

    def one_pass(self, now, backfill):
        nodes, estimate = self.jobs.nodes, self.jobs.estimate
        while self.queue and nodes[self.queue[0]] <= self.free:
            self.begin(self.queue[0], now)
        if not (backfill and self.queue):
            return
        ends = {job: self.start[job] + estimate[job] for job in self.running}
        shadow, extra = next(
            (at, count - nodes[self.queue[0]])
            for at in sorted(ends.values())
            if (count := self.free + sum(nodes[job] for job in ends if ends[job] <= at)) >= nodes[self.queue[0]]
        )
        for job in self.queue[1:]:
            if nodes[job] <= self.free and now + estimate[job] <= shadow:
                self.begin(job, now)
            elif nodes[job] <= min(self.free, extra):
                extra -= nodes[job]
                self.begin(job, now)

    def starts(self, backfill):
        for now in range(10**6):
            self.end(now)
            self.queue += [job for job in range(len(self.jobs)) if self.jobs.submit[job] == now]
            self.one_pass(now, backfill)
            while self.end(now):
                self.one_pass(now, backfill)
            if len(self.start) == len(self.jobs):
                return [self.start[job] for job in range(len(self.jobs))]
        raise AssertionError("it does not end")


rows = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9), st.integers(1, 8), st.integers(0, 15)),
                min_size=1, max_size=14)  # fmt: skip


def jobs_of(drawn):
    lines = [f"{i} {submit} 0 {run} {nodes} -1 -1 -1 {asked}" for i, (submit, run, nodes, asked) in enumerate(drawn, 1)]
    return usable_jobs(parse_log("\n".join(lines)))


@given(rows, st.sampled_from(sorted(SCHEDULERS)), st.sampled_from(["linear", "random"]))
def test_counting_placements_give_the_textbook(drawn, scheduler, placement):
    jobs = jobs_of(drawn)
    done = schedule(jobs, (8,), scheduler=scheduler, placement=placement)
    assert done.start.tolist() == Textbook(jobs, 8).starts(backfill=scheduler == "easy")


@settings(max_examples=40)
@given(rows, st.sampled_from(sorted(SCHEDULERS)), st.sampled_from(sorted(PLACEMENTS)))
def test_no_node_runs_two_jobs(drawn, scheduler, placement):
    jobs = jobs_of(drawn)
    done = schedule(jobs, (2, 2, 2), scheduler=scheduler, placement=placement)
    assert (done.wait >= 0).all() and (done.bounded_slowdown >= 1).all()
    for a in range(len(jobs)):
        assert len(set(done.used[a].tolist())) == jobs.nodes[a]
        for b in range(a):
            if max(done.start[a], done.start[b]) < min(done.end[a], done.end[b]):
                assert not set(done.used[a].tolist()) & set(done.used[b].tolist())
    if scheduler == "fcfs":
        assert (np.diff(done.start) >= 0).all()


def test_nothing_to_run_and_what_is_refused():
    jobs = usable_jobs(parse_log(""))
    done = schedule(jobs, (4,))
    assert done.makespan == 0 and np.isnan(done.utilisation)
    with pytest.raises(ValueError, match="scheduler must be one of fcfs, easy, not sjf"):
        schedule(jobs, (4,), scheduler="sjf")
    with pytest.raises(ValueError, match=r"placement must be one of linear, contiguous, .*, group, subtree, not x"):
        schedule(jobs, (4,), placement="x")
    with pytest.raises(ValueError, match="jobs must have at most 4 nodes, not 5"):
        schedule(usable_jobs(parse_log("1 0 0 1 5")), (4,))
