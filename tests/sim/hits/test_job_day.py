"""Packets of a log of jobs: by hand, against a plain list, schedules, what is refused."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.topology import build
from hopforge.model.workload.job_log import read_log
from hopforge.model.workload.jobs import usable_jobs
from hopforge.sim.hits.hit_rates import run_hits
from hopforge.sim.hits.job_day import job_packets, nested_groups, step_times
from hopforge.sim.jobs.space_sharing import schedule
from hopforge.sim.traffic.packet_stream import WorkloadError
from hopforge.sim.traffic.workload_packets import build_workload

# four jobs: 3 and 4 ranks together; 8 when they have ended; one of one rank; then one that is too large, one cancelled
LOG = "1 0 0 100 3\n2 0 0 50 4\n3 10 0 20 8\n4 10 0 5 1\n5 11 0 9 99\n6 12 0 -1 2\n"


def prepared(tmp_path: Path, keys: str = "", topology: str = "{kind: torus, radices: [4, 2]}"):
    (tmp_path / "t.swf").write_text(LOG)
    config = parse_config(
        f"name: x\ntopology: {topology}\nworkload: {{kind: job_log, file: {tmp_path / 't.swf'}{keys}}}\n"
    )
    network = build(config.topology, config.address)
    return job_packets(config.workload, config.topology, network, config.seed), network, config


def test_packets_by_hand(tmp_path: Path) -> None:
    """Job 1 on hosts 0 to 2, job 2 on 3 to 6: steps at times 12.5, 37.5, 62.5, 87.5 and 6.25, 18.75, 31.25, 43.75."""
    (tmp_path / "u.swf").write_text("1 0 0 100 3\n2 0 0 50 4\n")
    text = f"name: x\ntopology: {{kind: torus, radices: [4, 2]}}\nworkload: {{kind: job_log, file: {tmp_path}/u.swf, "
    config = parse_config(text + "exchanges: 1}\n")
    sources, destinations = job_packets(
        config.workload, config.topology, build(config.topology, config.address), 1
    ).all_packets()
    two = {1: [(3, 4), (4, 3), (5, 6), (6, 5)], 2: [(3, 5), (4, 6), (5, 3), (6, 4)]}
    two[3] = [(3, 6), (4, 5), (5, 4), (6, 3)]
    one = {1: [(0, 1), (1, 0)], 2: [(0, 2), (2, 0)], 3: [(1, 2), (2, 1)]}
    expected = [
        *two[1], *one[1], *two[2], *two[3], *one[2], (3, 4), (4, 5), (5, 6), (6, 3), *one[3], (0, 1), (1, 2), (2, 0),
    ]  # fmt: skip
    assert list(zip(sources.tolist(), destinations.tolist(), strict=True)) == expected


@pytest.mark.parametrize("placement", ["linear", "contiguous", "block", "random", "group", "subtree"])
def test_as_a_plain_list(tmp_path: Path, placement: str) -> None:
    stream, _, config = prepared(tmp_path, f", placement: {placement}, alltoalls: 2, exchanges: 3")
    jobs = usable_jobs(read_log(tmp_path / "t.swf"), machine_nodes=8)
    done = schedule(jobs, (4, 2), placement=placement, seed=config.seed, groups=(4,))
    events = []
    for job, ranks in enumerate(jobs.nodes.tolist()):
        width = 1
        while width < ranks:
            width *= 2
        steps = [("xor", t) for t in range(1, width)] * 2 + [("next", 0)] * 3 if ranks > 1 else []
        for number, (kind, t) in enumerate(steps):
            time = done.start[job] + jobs.run[job] * (number + 0.5) / len(steps)
            for rank in range(ranks):
                other = rank ^ t if kind == "xor" else (rank + 1) % ranks
                if other < ranks:
                    events.append((time, job, number, rank, int(done.used[job][rank]), int(done.used[job][other])))
    events.sort()
    sources, destinations = stream.all_packets()
    assert list(zip(sources.tolist(), destinations.tolist(), strict=True)) == [event[4:] for event in events]
    assert stream.packets == len(events) == 2 * (6 + 12 + 56) + 3 * (3 + 4 + 8)
    assert stream.params["jobs"] == 4
    assert stream.params["skipped"] == {"large": 1, "run": 1}


def test_many_chunks_are_one_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream, *_ = prepared(tmp_path)
    whole = stream.all_packets()
    monkeypatch.setattr("hopforge.sim.hits.job_day._CHUNK_STEPS", 3)
    assert len(list(stream.chunks())) > 5
    assert all(np.array_equal(a, b) for a, b in zip(whole, stream.all_packets(), strict=True))


def test_steps_of_jobs_without_time_and_without_steps() -> None:
    jobs, numbers = step_times(np.array([5.0, 5.0, 0.0]), np.array([0.0, 0.0, 9.0]), np.array([2, 1, 0]))
    assert (jobs.tolist(), numbers.tolist()) == ([0, 0, 1], [0, 1, 0])


def test_a_log_in_tenths_has_the_packets_of_one_in_seconds(tmp_path: Path) -> None:
    """At one instant earlier jobs come first, whatever the sums of floats say."""
    rows = np.random.default_rng(3).integers((0, 0, 1), (60, 9, 5), (80, 3)).tolist()
    shown = []
    for unit in (1, 10):
        lines = (f"{at} {submit / unit} 0 {run / unit} {nodes}" for at, (submit, run, nodes) in enumerate(rows))
        (tmp_path / "t.swf").write_text("\n".join(lines))
        config = parse_config(
            "name: x\ntopology: {kind: torus, radices: [4, 4, 4]}\n"
            f"workload: {{kind: job_log, file: {tmp_path / 't.swf'}, exchanges: 5}}\n"
        )
        stream = job_packets(config.workload, config.topology, build(config.topology, config.address), 1)
        shown.append([part.tolist() for part in stream.all_packets()])
    assert shown[0] == shown[1] and len(shown[0][0]) > 500


def test_hits_of_a_log(tmp_path: Path) -> None:
    _, _, config = prepared(tmp_path)
    found = run_hits(config)
    assert found.result.packets == found.workload.packets
    assert found.totals["hits"] > 0
    assert found.workload.name == "jobs of t.swf"


def test_groups_of_networks() -> None:
    for text, dims, expected in (
        ("{kind: dragonfly, p: 2, a: 4, h: 2}", (72,), (2, 8)), ("{kind: dragonfly, p: 1, a: 4, h: 2}", (36,), (4,)),
        ("{kind: fat_tree, k: 2, n: 3}", (16,), (2, 4, 8)), ("{kind: torus, radices: [4, 3]}", (4, 3), (4,)),
    ):  # fmt: skip
        config = parse_config(f"name: x\ntopology: {text}\n")
        found = nested_groups(config.topology, dims)
        assert found == expected
        hosts = build(config.topology, config.address).hosts
        assert all(hosts % size == 0 for size in found)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("", "workload.file: name either a file or generate"),
        ("file: t.swf, generate: all", "workload.file: name either a file or generate"),
        ("file: t.swf, count: 3", "workload.count: is for generate; a file has its own jobs"),
        ("file: t.swf, processors: 30", "workload.processors: is for generate; a file has its own jobs"),
        ("generate: all, groups: [4]", "workload.groups: is for placement=group and subtree only, not pla"),
        ("generate: all, alltoalls: 0, exchanges: 0", "workload.exchanges: must be at least 1 without alltoalls"),
        ("generate: all, placement: group, groups: [3]", "workload.groups must divide each other and the machine of"),
        ("generate: typed, processors: 12", "workload.generate: "),
    ],
)
def test_refused(keys: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        text = f"name: x\ntopology: {{kind: torus, radices: [4, 4]}}\nworkload: {{kind: job_log, {keys}}}\n"
        config = parse_config(text)
        job_packets(config.workload, config.topology, build(config.topology, config.address), 1)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_networks_without_groups_and_other_commands(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"workload\.groups: missing; placement=subtree needs it on this network"):
        prepared(tmp_path, ", placement: subtree", "{kind: fully_connected, routers: 8}")
    _, network, config = prepared(tmp_path)
    with pytest.raises(WorkloadError, match="job_log is for `hopforge hits` and `wavelengths` only"):
        build_workload(config.workload, network, 1)


@pytest.mark.parametrize("most", [10, 10**8, 10**14])
def test_equal_instants_of_steps_are_equal(most: int) -> None:
    """The order is that of exact fractions, however many units of time a log has."""
    draw = np.random.default_rng(most)
    for _ in range(50):
        start, run = draw.integers(0, most, 3), draw.integers(1, most, 3)
        steps = draw.integers(1, 9, 3) * draw.choice([1, 7, 50])
        start[1], run[1], steps[1] = start[0], run[0], 3 * steps[0]  # a third of its steps are at once with those of 0
        job, number = step_times(start.astype(float), run.astype(float), steps)
        exact = sorted(
            (int(start[j]) + Fraction(int(run[j]) * (2 * n + 1), 2 * int(steps[j])), j, n)
            for j in range(3) for n in range(int(steps[j]))
        )  # fmt: skip
        assert [(j, n) for _, j, n in exact] == list(zip(job.tolist(), number.tolist(), strict=True))
