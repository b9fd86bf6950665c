"""Placement by group and subtree: by hand, against plain searches, on the command line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.model.workload.jobs import usable_jobs
from hopforge.model.workload.lublin import draw_log
from hopforge.sim.jobs.placement import PLACEMENTS, group_problem, lines_of
from hopforge.sim.jobs.prepared import JobsError, Machine, groups_of
from hopforge.sim.jobs.space_sharing import schedule

GROUPS = [(2,), (4,), (2, 4), (2, 8), (4, 8), (2, 4, 8)]


def placing(name, groups):
    return PLACEMENTS[name]((16,), np.random.default_rng(1), groups)


def free_but(*busy):
    free = np.ones(16, bool)
    free[list(busy)] = False
    return free


def test_group_by_hand():
    group = placing("group", (4,))
    # groups 0 … 3 have 4, 2, 3, 4 free nodes: two fit best into group 1, three into group 2
    free = free_but(4, 5, 8)
    assert group.place(free, 2).used.tolist() == [6, 7]
    assert group.place(free, 3).used.tolist() == [9, 10, 11]
    assert group.place(free, 4).used.tolist() == [0, 1, 2, 3]
    # six: the group with the most free nodes, and the two that are left where they fit best
    assert group.place(free, 6).used.tolist() == [0, 1, 2, 3, 6, 7]
    assert group.place(free, 13).used.tolist() == [0, 1, 2, 3, 12, 13, 14, 15, 9, 10, 11, 6, 7]
    assert group.place(free, 14) is None


def test_nested_groups_by_hand():
    group = placing("group", (2, 8))
    # six fit into no pair; of the eights the second has fewer free nodes
    free = free_but(8, 11)
    assert group.place(free, 6).used.tolist() == [12, 13, 14, 15, 9, 10]
    assert group.place(free, 1).used.tolist() == [9]
    assert group.place(free, 7).used.tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_subtree_by_hand():
    subtree = placing("subtree", (2, 8))
    free = free_but(0, 5)
    place = subtree.place(free, 1)
    assert (place.used.tolist(), place.taken.tolist()) == ([2], [2, 3])
    place = subtree.place(free, 3)
    assert (place.used.tolist(), place.taken.tolist()) == ([8, 9, 10], list(range(8, 16)))
    assert subtree.place(free, 9) is None  # only the whole machine holds it
    assert not subtree.fits(free, 9)
    assert subtree.place(free_but(), 9).taken.tolist() == list(range(16))


@given(st.data())
def test_any_state(data):
    """Enough free nodes, none twice; and no group could have held what spreads over two."""
    groups = data.draw(st.sampled_from(GROUPS))
    free = np.array(data.draw(st.lists(st.booleans(), min_size=16, max_size=16)))
    count = data.draw(st.integers(1, 16))
    place = placing("group", groups).place(free, count)
    assert (place is not None) == (free.sum() >= count)
    if place is not None:
        assert len(set(place.used.tolist())) == count
        assert free[place.used].all()
        for size in groups:
            fits = any(free[start : start + size].sum() >= count for start in range(0, 16, size))
            assert (len(set((place.used // size).tolist())) == 1) == fits
    place = placing("subtree", groups).place(free, count)
    size = min(each for each in (*groups, 16) if each >= count)
    starts = [start for start in range(0, 16, size) if free[start : start + size].all()]
    found = None if place is None else place.taken.tolist()
    assert found == (list(range(starts[0], starts[0] + size)) if starts else None)


def test_schedules():
    """`group` never waits longer than `linear`; jobs of `subtree` that run together share no group of their size."""
    jobs = usable_jobs(draw_log("all", 300, 64, np.random.default_rng(5)), machine_nodes=64)
    for scheduler in ("fcfs", "easy"):
        linear = schedule(jobs, (8, 8), scheduler=scheduler)
        assert (schedule(jobs, (8, 8), scheduler=scheduler, placement="group", groups=(8,)).start == linear.start).all()
        found = schedule(jobs, (8, 8), scheduler=scheduler, placement="subtree", groups=(8,))
        assert found.makespan >= linear.makespan
        together = 0
        for job in range(len(jobs)):
            for other in range(job):
                if found.start[other] < found.end[job] and found.start[job] < found.end[other]:
                    together += 1
                    assert set((found.used[job] // 8).tolist()).isdisjoint((found.used[other] // 8).tolist())
        assert together > 50
    with pytest.raises(ValueError, match="groups must divide each other and the machine of 64 nodes, not 6"):
        schedule(jobs, (8, 8), placement="group", groups=(6,))


def test_groups_of_a_machine():
    assert lines_of((8, 4, 4)) == (8, 32)
    assert lines_of((1, 8, 1, 2)) == (8,)
    assert lines_of((16,)) == ()
    assert group_problem((4, 8), 16) is None
    for groups in ((4, 4), (16,), (4, 16)):  # these divide each other
        problem = f"groups must differ, and be smaller than the machine of 16 nodes, not {', '.join(map(str, groups))}"
        assert group_problem(groups, 16) == problem
    machine = Machine((8, 4), 1)
    assert groups_of(machine, None, ["linear"]) == ()
    assert groups_of(machine, None, ["linear", "group"]) == (8,)
    assert groups_of(machine, [4, 16], ["subtree"]) == (4, 16)
    with pytest.raises(JobsError, match="--group is for --placement group and subtree"):
        groups_of(machine, [4], ["linear"])
    with pytest.raises(JobsError, match="--placement subtree needs --group, or a machine of several dimensions"):
        groups_of(Machine((32,), 1), None, ["subtree"])
    with pytest.raises(JobsError, match="--group: groups must divide each other and the machine of 32 nodes, not 5"):
        groups_of(machine, [5], ["group"])


def test_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = "jobs --generate all --count 40 --nodes 64 --placement group --placement subtree --group 32 --group 8"
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == 0, done.output
    assert "subtree" in done.output
    assert '"groups": [\n    8,\n    32\n  ]' in (tmp_path / "build/jobs/metadata.json").read_text()
