"""All tables of `hopforge jobs` beside a plain model, written from docs/definitions/jobs.md in exact fractions."""

from fractions import Fraction
from itertools import product
from math import ceil, prod
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.model.workload.job_log import parse_log
from hopforge.model.workload.jobs import usable_jobs
from hopforge.sim.jobs.placement import PLACEMENTS
from hopforge.sim.jobs.prepared import Machine, prepare_jobs
from hopforge.sim.jobs.runs import run_jobs
from hopforge.sim.jobs.space_sharing import SCHEDULERS, schedule


def number_of(digits, dims):
    return sum(digit * prod(dims[:at]) for at, digit in enumerate(digits))


class Model:
    """A machine: where a job goes, when it starts, what it meets."""

    def __init__(self, dims, groups):
        self.dims, self.nodes, self.groups = dims, prod(dims), [*groups, prod(dims)]

    def linear(self, free, n):
        return (sorted(free)[:n], set(sorted(free)[:n])) if len(free) >= n else None

    random = linear  # starts at the same instants

    def contiguous(self, free, n):
        runs = (range(first, first + n) for first in range(self.nodes - n + 1))
        return next(((list(run), set(run)) for run in runs if free.issuperset(run)), None)

    def block(self, free, n):
        shapes = (sides for sides in product(*(range(1, k + 1) for k in self.dims)) if n <= prod(sides) < 2 * n)
        for sides in sorted(shapes, key=lambda sides: (prod(sides), sum(sides), sides)):
            origins = product(*(range(k - side + 1) for k, side in zip(self.dims, sides, strict=True)))
            for first in sorted(number_of(origin, self.dims) for origin in origins):
                box = sorted(first + number_of(step, self.dims) for step in product(*map(range, sides)))
                if free.issuperset(box):
                    return box[:n], set(box)
        return None

    def subtree(self, free, n):
        size = min(size for size in self.groups if size >= n)
        trees = (range(first, first + size) for first in range(0, self.nodes, size))
        return next(((list(tree)[:n], set(tree)) for tree in trees if free.issuperset(tree)), None)

    def group(self, free, n):
        if len(free) < n:
            return None
        for level, size in enumerate(self.groups):
            inside = [free & set(range(first, first + size)) for first in range(0, self.nodes, size)]
            if any(len(part) >= n for part in inside):
                best = min((part for part in inside if len(part) >= n), key=lambda part: (len(part), min(part)))
                taken = self._taken(best, level, n)
                return taken, set(taken)
        raise AssertionError("the machine is the last group")

    def _taken(self, free, level, n):
        """Nodes of a group: of the part in which the job fits best, or of the largest parts and what is left."""
        if level == 0:
            return sorted(free)[:n]
        size, taken = self.groups[level - 1], []
        parts = [{node for node in free if node // size == part} for part in {node // size for node in free}]
        while not any(len(part) >= n - len(taken) for part in parts):
            most = max(parts, key=lambda part: (len(part), -min(part)))
            parts.remove(most)
            taken += self._taken(most, level - 1, len(most))
        rest = n - len(taken)
        best = min((part for part in parts if len(part) >= rest), key=lambda part: (len(part), min(part)))
        return taken + self._taken(best, level - 1, rest)

    def starts(self, jobs, scheduler, place):
        """Start and nodes of each job, and (instant, nodes that run, jobs) after each instant."""
        free, running, queue, coming, found, instants = set(range(self.nodes)), [], [], list(range(len(jobs))), {}, []

        def begin(job, now, spot):
            free.difference_update(spot[1])
            running.append((now + jobs[job]["run"], now + jobs[job]["estimate"], job, spot[1]))
            queue.remove(job)
            found[job] = now, spot[0]

        while coming or running:
            now = min([jobs[job]["submit"] for job in coming[:1]] + [one[0] for one in running])
            while True:
                for one in [one for one in running if one[0] == now]:
                    running.remove(one)
                    free |= one[3]
                while coming and jobs[coming[0]]["submit"] == now:
                    queue.append(coming.pop(0))
                while queue and (spot := place(free, jobs[queue[0]]["nodes"])):
                    begin(queue[0], now, spot)
                if queue and scheduler == "easy":
                    head = jobs[queue[0]]["nodes"]

                    def fits(at, without=frozenset(), free=free, head=head):
                        return place(free.union(*(one[3] for one in running if one[1] <= at)) - without, head)

                    shadow = min(one[1] for one in running if fits(one[1]))
                    for job in queue[1:]:
                        spot = place(free, jobs[job]["nodes"])
                        if spot and (now + jobs[job]["estimate"] <= shadow or fits(shadow, spot[1])):
                            begin(job, now, spot)
                if not any(one[0] == now for one in running):
                    break
            instants.append((now, sum(jobs[one[2]]["nodes"] for one in running), sorted(one[2] for one in running)))
        return found, instants

    def loads(self, nodes):
        """Packets on each link, and links of all pairs: dimension order, half the ring away the sign decides."""
        found = {}
        for source, goal in product(nodes, nodes):
            at = source
            for dim, k in enumerate(self.dims):
                stride = prod(self.dims[:dim])
                offset = goal // stride % k - source // stride % k
                up = 2 * (offset % k) < k or (2 * (offset % k) == k and offset > 0)
                while at // stride % k != goal // stride % k:
                    digit = at // stride % k
                    at += stride * ((digit + (1 if up else -1)) % k - digit)
                    found[at, dim, up] = found.get((at, dim, up), 0) + 1
        return found

    def met(self, jobs, used):
        every = {job: self.loads(nodes) for job, nodes in used.items()}
        total = {}
        for loads in every.values():
            for link, load in loads.items():
                total[link] = total.get(link, 0) + load
        for job, own in every.items():
            n = len(used[job])
            yield {
                "job": jobs[job]["job"], "nodes": n, "links": len(own), "own_max": max(own.values(), default=0),
                "mean_hops": Fraction(sum(own.values()), max(n * (n - 1), 1)),
                "shared": sum(total[link] > own[link] for link in own),
                "total_max": max((total[link] for link in own), default=0),
                "slowdown": Fraction(max(total[link] for link in own), max(own.values())) if own else 1,
                "foreign": len({link[0] for link in own} - set(used[job])),
            }  # fmt: skip


def expected(model, jobs, scheduler, placement, drawn):
    """Rows of jobs, schedules and interference; `drawn`: nodes of each job where they are drawn."""
    found, instants = model.starts(jobs, scheduler, getattr(model, placement))
    if placement == "random":
        found = {job: (start, drawn[job].tolist()) for job, (start, _) in found.items()}
        assert [len(found[at][1]) for at in found] == [jobs[at]["nodes"] for at in found]
        for _, nodes, running in instants:  # none is taken twice
            assert len({node for job in running for node in found[job][1]}) == nodes
    rows = [dict(job, start=found[at][0], wait=found[at][0] - job["submit"]) for at, job in enumerate(jobs)]
    for at, row in enumerate(rows):
        row["first_node"], row["last_node"] = found[at][1][0], found[at][1][-1]
        row["bounded_slowdown"] = max(Fraction(1), (row["wait"] + row["run"]) / max(row["run"], Fraction(10)))
    waits = [row["wait"] for row in rows]
    makespan = max(row["start"] + row["run"] for row in rows) - min(row["submit"] for row in rows)
    work = sum(row["run"] * row["nodes"] for row in rows)
    figures = {
        "jobs": len(rows), "makespan": makespan, "utilisation": work / (model.nodes * makespan) if makespan else np.nan,
        "mean_wait": sum(waits) / len(rows), "median_wait": median(waits), "longest_wait": max(waits),
        "mean_bounded_slowdown": sum(row["bounded_slowdown"] for row in rows) / len(rows),
    }  # fmt: skip
    at, _, together = max(instants, key=lambda one: one[1])  # the first one
    return rows, [figures], [dict(one, instant=at) for one in model.met(jobs, {job: found[job][1] for job in together})]


def texts_of(drawn, digits):
    """Log lines of (submit, run, processors, estimate), times in units of the last digit."""
    times = [[f"{time / 10**digits:.{digits}f}" for time in (row[0], row[1], row[3])] for row in drawn]
    return "\n".join(
        f"{at} {submit} -1 {run} {row[2]} -1 -1 -1 {asked}"
        for at, (row, (submit, run, asked)) in enumerate(zip(drawn, times, strict=True))
    )


rows = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9), st.integers(1, 14), st.integers(0, 15)),
                min_size=1, max_size=12)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(
    rows, st.integers(0, 2), st.integers(1, 2),
    st.sampled_from([((12,), (6,)), ((4, 3), (4,)), ((3, 2, 2), (3, 6)), ((2, 5), (2,))]),
)  # fmt: skip
def test_all_tables_are_those_of_the_definition(drawn, digits, ppn, machine):
    dims, groups = machine
    model, unit = Model(dims, groups), Fraction(1, 10**digits)
    jobs = sorted((
        {"job": at, "submit": submit * unit, "run": run * unit, "estimate": max(asked, run) * unit,
         "processors": processors, "nodes": ceil(processors / ppn)}
        for at, (submit, run, processors, asked) in enumerate(drawn) if processors <= ppn * model.nodes
    ), key=lambda job: job["submit"])  # fmt: skip
    if not jobs:
        return
    setup = prepare_jobs(
        parse_log(texts_of(drawn, digits)), Machine(dims, ppn), drawn=False, schedulers=tuple(SCHEDULERS),
        placements=tuple(PLACEMENTS), seed=1, interference=True, groups=groups,
    )  # fmt: skip
    tables = run_jobs(setup).tables
    for scheduler, placement in product(SCHEDULERS, PLACEMENTS):
        nodes = schedule(setup.jobs, dims, scheduler=scheduler, placement=placement, seed=1, groups=groups).used
        for name, wanted in zip(
            ("jobs", "schedules", "interference"), expected(model, jobs, scheduler, placement, nodes), strict=True
        ):
            table = tables[name]
            mine = (np.asarray(table["scheduler"]) == scheduler) & (np.asarray(table["placement"]) == placement)
            assert mine.sum() == len(wanted), (name, scheduler, placement)
            for column in wanted[0] if wanted else ():
                np.testing.assert_allclose(
                    np.asarray(table[column])[mine], [float(row[column]) for row in wanted], rtol=1e-12,
                    err_msg=f"{name}.{column}, {scheduler}, {placement}",
                )  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(rows, st.sampled_from([1, 2, 3, 6]), st.sampled_from(sorted(SCHEDULERS)), st.sampled_from(sorted(PLACEMENTS)))
def test_a_log_in_fractions_of_a_second_runs_as_in_seconds(drawn, digits, scheduler, placement):
    """What ends when another job arrives has ended: 0.1 + 0.2 is 0.3."""
    options = {"scheduler": scheduler, "placement": placement, "groups": (2, 4)}
    whole, parts = (
        schedule(usable_jobs(parse_log(texts_of(drawn, each)), machine_nodes=8), (2, 2, 2), **options)
        for each in (0, digits)
    )
    assert [one.tolist() for one in parts.used] == [one.tolist() for one in whole.used]
    for name in ("start", "wait", "end"):
        assert (getattr(parts, name) == getattr(whole, name) / 10**digits).all(), name
    assert parts.makespan == whole.makespan / 10**digits


@pytest.mark.parametrize("huge", ["9007199254740992", "1234567890123.25"])
def test_times_without_a_common_unit_are_summed_as_they_are(huge):
    jobs = usable_jobs(parse_log(f"1 0.1 -1 0.2 4\n2 0.3 -1 {huge} 4\n3 0 -1 1e-9 1\n"))
    done = schedule(jobs, (4,))
    assert done.per_second == 0
    assert done.start[2] == pytest.approx(0.3) and done.end[2] == pytest.approx(float(huge))
