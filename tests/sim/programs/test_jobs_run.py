"""Several programs at once: one alone as without jobs, apart as alone, a shared link by hand, mistakes."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hopforge.model.config import Config, ConfigError, parse_config
from hopforge.model.errors import UserError
from hopforge.sim.hits.hit_rates import run_hits
from hopforge.sim.programs.app_result import AppRun
from hopforge.sim.programs.app_setup import prepare_app
from hopforge.sim.programs.application import app_rows, run_app
from hopforge.sim.programs.jobs_run import job_lines

TORUS = "name: x\nseed: 5\ntopology: {kind: torus, radices: [4, 4]}\n"
GOAL = (
    "num_ranks 2\nrank 0 {\na: calc 700\nb: send 3000b to 1\nb requires a\n}\n"
    "rank 1 {\nrecv 3000b from 0\ncalc 90\n}\n"
)
ALLTOALL = "{kind: collective, operation: alltoall, bytes: 2000, ranks: 8}"


def together(*jobs: str, network: str = TORUS, app: str = "{engine: flow, backend: embedded}") -> Config:
    lines = "".join(f"    - {job}\n" for job in jobs)
    return parse_config(f"{network}app: {app}\nworkload:\n  kind: jobs\n  jobs:\n{lines}")


def single(program: str, app: str) -> AppRun:
    return run_app(parse_config(f"{TORUS}app: {app}\nworkload: {program}\n"))


def tables(run: AppRun) -> dict[str, pd.DataFrame]:
    found = {"ranks": run.ranks.drop(columns="job", errors="ignore"), "energy": run.energy}
    return found if run.activity is None else found | run.activity.tables()


FLOW = "{engine: flow, backend: embedded, host_gflops: 3}"
PACKET = "{engine: packet, host_gflops: 3}"


@pytest.mark.parametrize(("program", "app"), [
    (ALLTOALL, "{engine: flow, backend: embedded, sharing: equal}"),
    ("{kind: npb, benchmark: cg, class: S, iterations: 2, ranks: 8, mapping: {kind: random}}", FLOW),
    ("{kind: npb, benchmark: cg, class: S, iterations: 2, ranks: 8, computing: {noise: 0.3}}", PACKET),
    ("{kind: trace, file: GOAL, mapping: {first: 6}}", "{engine: flow, loggops: {o: 3}}"),
    ("{kind: trace, file: GOAL, mapping: {kind: spread}}", "{engine: packet, loggops: {o: 3}}"),
    ("{kind: training, model: gpt2_xl, ranks: 4, shrink: 1000}", FLOW),
    (ALLTOALL, "{engine: flow, backend: embedded, lookup: cache}"),
])  # fmt: skip
def test_one_program_alone_is_as_without_jobs(tmp_path: Path, program: str, app: str) -> None:
    (tmp_path / "a.goal").write_text(GOAL)
    program = program.replace("GOAL", str(tmp_path / "a.goal"))
    expected, found = single(program, app), run_app(together(f"{{program: {program}}}", app=app))
    known = asdict(expected.found) | {"cpu_seconds": found.found.cpu_seconds}
    assert {key: value for key, value in asdict(found.found).items() if key in known} == known
    for name, table in tables(expected).items():
        pd.testing.assert_frame_equal(tables(found)[name], table, check_exact=True)
    assert found.jobs is not None
    assert found.jobs["makespan_s"][0] == found.jobs["alone_s"][0] == expected.found.makespan_s
    assert found.jobs["slowdown"][0] == 1


@pytest.mark.parametrize("engine", ["flow", "packet"])
@pytest.mark.parametrize("graph", [False, True])
def test_jobs_that_share_no_link_are_as_alone(tmp_path: Path, engine: str, graph: bool) -> None:
    """Rows of a mesh: nothing leaves its row, whatever runs in the others."""
    (tmp_path / "a.goal").write_text(GOAL)
    mesh = "name: x\ntopology: {kind: mesh, radices: [4, 3]}\n"
    third = f"{{kind: trace, file: {tmp_path / 'a.goal'}}}" if graph else "{kind: collective, operation: bcast}"
    ranks = 2 if graph else 4
    jobs = (
        "{program: {kind: collective, operation: alltoall, bytes: 3000, ranks: 4}}",
        "{name: b, ranks: 4, start_us: 1.3, program: {kind: collective, operation: allreduce, bytes: 7001, repeat: 3}}",
        f"{{ranks: {ranks}, start_us: 0.7, program: {third}}}",
    )
    run = run_app(together(*jobs, network=mesh, app=f"{{engine: {engine}}}"))
    assert run.jobs is not None
    assert run.jobs["slowdown"].tolist() == [1, 1, 1]
    assert run.jobs["job"].tolist() == ["0", "b", "2"]
    assert run.ranks["job"].tolist() == ["0"] * 4 + ["b"] * 4 + ["2"] * ranks
    assert run.ranks["host"].tolist() == list(range(8 + ranks))
    # the same as the program alone on these hosts from 0 on, but for the roundings of later times
    for number, (start, program) in enumerate([
        (0.0, "{kind: collective, operation: alltoall, bytes: 3000, ranks: 4}"),
        (1.3e-6, "{kind: collective, operation: allreduce, bytes: 7001, repeat: 3, ranks: 4, mapping: {first: 4}}"),
    ]):  # fmt: skip
        if not graph:
            alone = run_app(parse_config(f"{mesh}app: {{engine: {engine}}}\nworkload: {program}\n"))
            assert run.jobs["makespan_s"][number] == pytest.approx(alone.found.makespan_s, rel=1e-9)
        cycle = 5.12e-9  # of packets
        assert run.jobs["start_s"][number] == pytest.approx(start, abs=0 if engine == "flow" or graph else cycle / 2)
    last = (run.jobs["start_s"] + run.jobs["makespan_s"]).max()
    assert run.found.makespan_s == pytest.approx(last, rel=1e-12)
    hosts = [4, 4, ranks]
    expected = float((run.jobs["makespan_s"] * hosts).sum()) / (12 * run.found.makespan_s)
    assert run.found.utilisation == pytest.approx(expected, rel=1e-12)
    waited = run.ranks["waiting_s"].to_numpy()
    assert (waited <= run.jobs["makespan_s"].to_numpy().repeat(hosts) + 1e-15).all()  # not before its start


def test_caches_that_see_one_job_each_delay_as_alone() -> None:
    caches = "lookup: {reduction: false, cache: {entries: 2, ways: 1}}\n"
    mesh = "name: x\ntopology: {kind: mesh, radices: [4, 2]}\n" + caches
    program = "{kind: collective, operation: alltoall, bytes: 3000, ranks: 4}"
    jobs = (f"{{program: {program}}}", f"{{start_us: 2, program: {program}}}")
    run = run_app(together(*jobs, network=mesh, app="{engine: flow, lookup: cache}"))
    assert run.jobs is not None
    assert run.jobs["slowdown"].tolist() == [1, 1]
    assert run.found.miss_share > 0.1


#: two routers with two hosts each: hosts 0 and 1, 2 and 3
PAIR = "name: x\ntopology: {kind: mesh, radices: [2], hosts_per_router: 2}\n"
BYTES = 1_000_000
#: two switches of 51 ns and three cables of 50 ns; the message with its envelope of 16 bytes at 100 Gbit/s
LATENCY, SENDING = 252e-9, (BYTES + 16) * 8 / 100e9


def crossing(tmp_path: Path, starts: tuple[float, float], network: str = PAIR, **keys: str) -> AppRun:
    """Send a message from either host of router 0 to one of router 1."""
    jobs = []
    for number, start in enumerate(starts):
        (tmp_path / f"{number}.txt").write_text(f"{number}\n{number + 2}\n")
        program = (
            f"{{kind: collective, operation: bcast, bytes: {BYTES}, ranks: 2, "
            f"mapping: {{kind: file, file: {tmp_path / f'{number}.txt'}}}}}"
        )
        jobs.append(f"{{start_us: {start * 1e6!r}, program: {program}}}")
    return run_app(together(*jobs, network=network, **keys))


def test_two_messages_on_one_link_by_hand(tmp_path: Path) -> None:
    run = crossing(tmp_path, (0.0, 0.0))
    assert run.jobs is not None
    assert run.jobs["alone_s"].tolist() == pytest.approx([LATENCY + SENDING] * 2, rel=1e-9)
    assert run.jobs["makespan_s"].tolist() == pytest.approx([LATENCY + 2 * SENDING] * 2, rel=1e-9)
    assert run.jobs["slowdown"].tolist() == pytest.approx([(LATENCY + 2 * SENDING) / (LATENCY + SENDING)] * 2, rel=1e-9)
    assert run.jobs["links"].tolist() == [2, 2]  # to the other router, to the host
    assert run.jobs["shared_links"].tolist() == [1, 1]
    whole = LATENCY + 2 * SENDING
    assert run.found.makespan_s == pytest.approx(whole, rel=1e-9)
    # of the two links between the routers one carries both payloads
    assert run.found.link_share == pytest.approx(2 * BYTES * 8 / 100e9 / whole / 2, rel=1e-9)
    assert run.found.utilisation == pytest.approx(1, rel=1e-9)
    assert dict(app_rows(run))["jobs"] == "2; slowdown mean 1.997, largest 1.997 (0)"
    assert [line[0] for line in job_lines(run)] == ["job", "0", "1"]
    packets = crossing(tmp_path, (0.0, 0.0), app="{engine: packet, eager_bytes: 1000000, buffered_bytes: 1000000}")
    assert packets.jobs is not None
    assert packets.jobs["slowdown"].tolist() == pytest.approx([2, 2], rel=0.03)
    assert "links" not in packets.jobs
    assert packets.found.link_share == pytest.approx(1 / 2, rel=0.03)


@pytest.mark.parametrize("engine", ["flow, backend: embedded", "packet"])
@pytest.mark.parametrize("times", ["", ", from_us: 10, until_us: 70"])
def test_a_slow_link_is_busy_for_longer(tmp_path: Path, engine: str, times: str) -> None:
    """One of the two links between the routers sends all the time, however slow it is."""
    network = f"{PAIR}degraded: {{links: [[0, 1]], factor: 0.25{times}}}\n"
    app = f"{{engine: {engine}, eager_bytes: 1000000, buffered_bytes: 1000000}}"
    run, fast = crossing(tmp_path, (0.0, 0.0), network, app=app), crossing(tmp_path, (0.0, 0.0), app=app)
    assert run.found.makespan_s > 1.25 * fast.found.makespan_s
    assert run.found.link_share == pytest.approx(1 / 2, rel=0.03)


def test_a_job_that_begins_in_the_middle_of_another(tmp_path: Path) -> None:
    """The first has the link for 20 µs, then half of it; the second all of it when the first is there."""
    late = 20e-6
    run = crossing(tmp_path, (0.0, late))
    assert run.jobs is not None
    ends = [LATENCY + late + 2 * (SENDING - late), LATENCY + 2 * SENDING]
    assert run.jobs["makespan_s"].tolist() == pytest.approx([ends[0], ends[1] - late], rel=1e-9)
    assert run.jobs["alone_s"].tolist() == pytest.approx([LATENCY + SENDING] * 2, rel=1e-9)
    assert run.ranks["finish_s"][3] == pytest.approx(ends[1], rel=1e-9)
    assert (run.ranks["compute_s"] == 0).all()  # waiting for the start is no computing


def test_a_graph_that_begins_with_a_cycle_takes_as_long_as_from_the_first(tmp_path: Path) -> None:
    """A cycle is a nanosecond; 0.007 µs are 6.999999999999999 of it in floats."""
    (tmp_path / "a.goal").write_text("num_ranks 2\nrank 0 {\nsend 3000b to 1\n}\nrank 1 {\nrecv 3000b from 0\n}\n")
    job = f"program: {{kind: trace, file: {tmp_path / 'a.goal'}, mapping: {{kind: spread}}}}"
    spans = []
    for start in (0.0, 0.007, 0.014, 0.55, 2.0):
        app = "{engine: packet, loggops: {o: 0}}"
        run = run_app(together(f"{{start_us: {start}, {job}}}", app=f"{app}\ntiming: {{link_gbps: 512}}"))
        assert run.jobs is not None
        spans.append(run.jobs["makespan_s"][0] * 1e9)
    assert spans == pytest.approx([spans[0]] * 5, abs=1e-3)


@pytest.mark.parametrize("engine", ["flow", "packet"])
def test_what_does_nothing_ends_when_it_begins(tmp_path: Path, engine: str) -> None:
    """A rank without operations, and a job of these; a job that takes no time waits for no part of it."""
    (tmp_path / "one.goal").write_text("num_ranks 2\nrank 0 {\ncalc 500\n}\n")
    (tmp_path / "none.goal").write_text("num_ranks 1\nrank 0 {\na: calc 0\nb: calc 0\nb requires a\n}\n")
    jobs = [f"{{start_us: 2.75, program: {{kind: trace, file: {tmp_path / name}.goal}}}}" for name in ("one", "none")]
    run = run_app(together(*jobs, app=f"{{engine: {engine}}}"))
    assert run.jobs is not None
    assert run.ranks["finish_s"].tolist() == pytest.approx([3.25e-6, 2.75e-6, 2.75e-6], rel=1e-12)
    assert run.jobs["makespan_s"].tolist() == [pytest.approx(500e-9), 0]
    assert run.jobs["waiting_share"].tolist() == [0, 0]


def test_programs_beside_a_graph_become_graphs(tmp_path: Path) -> None:
    (tmp_path / "a.goal").write_text(GOAL)
    jobs = (f"{{program: {{kind: trace, file: {tmp_path / 'a.goal'}}}}}", f"{{program: {ALLTOALL}}}")
    run = run_app(together(*jobs, app="{loggops: {o: 10}}"))
    assert run.activity is not None
    assert run.jobs is not None
    assert len(run.activity.ranks) == run.found.ranks == 10
    assert run.jobs["messages"].tolist() == [1, 56]
    with pytest.raises(UserError, match=r"^app.loggops.unit_ns: must be 1, not 2: workload.jobs\[1\] is no graph"):
        prepare_app(together(*jobs, app="{loggops: {unit_ns: 2}}"))
    with pytest.raises(UserError, match=r"^app.eager_bytes: is not for jobs of which one is a graph"):
        prepare_app(together(*jobs, app="{eager_bytes: 2}"))


def test_several_links_of_a_host() -> None:
    network = (
        "name: x\ntopology: {kind: clos, hosts_per_router: 8, leaves: 2, middles: 1, host_links: 2}\n"
        "routing: {algorithm: up_down}\n"
    )
    program = "{kind: collective, operation: alltoall, bytes: 4096, ranks: 3}"
    expected = run_app(parse_config(f"{network}app: {{backend: embedded}}\nworkload: {program}\n"))
    run = run_app(together(f"{{program: {program}}}", f"{{program: {program}}}", network=network))
    assert run.jobs is not None
    assert run.jobs["alone_s"][0] == expected.found.makespan_s
    assert run.ranks["host"].tolist() == [0, 2, 4, 6, 8, 10]
    assert run.links is not None
    used = run.links.table["link"]
    assert (used.str.startswith("host 1 to") | used.str.startswith("host 0 to")).sum() == 2  # both links of machine 0


def test_hits_of_all_jobs_together() -> None:
    """Rows of a mesh again: caches see the packets of one job each."""
    mesh = "name: x\ntopology: {kind: mesh, radices: [4, 2]}\n"
    program = "{kind: collective, operation: alltoall, bytes: 3000, ranks: 4}"
    both = run_hits(together(f"{{program: {program}}}", f"{{program: {program}}}", network=mesh)).totals
    alone = run_hits(parse_config(f"{mesh}workload: {program}\n")).totals
    for key in ("lookups", "hits", "compulsory"):
        assert both[key] == 2 * alone[key]
    same = run_hits(together(f"{{program: {program}}}", network=mesh)).totals
    assert {key: same[key] for key in ("lookups", "hits")} == {key: alone[key] for key in ("lookups", "hits")}


PLACES = [
    (("{ranks: 10, program: {kind: dpsnn}}", "{ranks: 7, program: {kind: dpsnn}}"),
     "jobs[1]: 7 ranks do not fit: placement=linear finds no hosts for them among the 6 free of the 16 of the"),
    (("{ranks: 17, program: {kind: dpsnn}}",),
     "jobs[0]: 17 ranks do not fit: placement=linear finds no hosts for them among the 16 free of the 16"),
    (("{ranks: 4, program: {kind: bfs}}", "{ranks: 13, placement: contiguous, program: {kind: bfs}}"),
     "jobs[1]: 13 ranks do not fit: placement=contiguous finds no hosts for them among the 12 free"),
    (("{name: a, ranks: 4, program: {kind: dpsnn}}", "{ranks: 4, program: {kind: dpsnn, mapping: {first: 2}}}"),
     "jobs[1].program.mapping: host 2 belongs to job a already (2 hosts in all)"),
    (("{ranks: 4, program: {kind: dpsnn}}", "{ranks: 4, placement: mapping, program: {kind: dpsnn}}"),
     "jobs[1].program.mapping: host 0 belongs to job 0 already (4 hosts in all)"),
    (("{program: {kind: dpsnn, ranks: 4, mapping: {first: 14}}}",),
     "jobs[0].program.mapping.first: 4 ranks from host 14 on end beyond the last host 15"),
    (("{program: {kind: collective, operation: bcast, root: 9, ranks: 4}}",),
     "jobs[0].program.root: rank 9 is not one of the 4 ranks"),
    (("{ranks: 3, program: {kind: npb, benchmark: cg}}",), "jobs[0].ranks: CG class A runs on powers of two"),
    (("{ranks: 3, program: {kind: trace, file: 'shipped:is.A.64'}}",),
     "jobs[0].ranks: the program has 64 ranks, not 3"),
    (("{ranks: 4, program: {kind: dpsnn, flops_per_spike: 1, computing: {noise: 1}}}",),
     "jobs[0].program.computing: has no effect, for computing takes no time without app.host_gflops"),
]  # fmt: skip


@pytest.mark.parametrize(("jobs", "words"), PLACES)
def test_jobs_that_have_no_place(jobs: tuple[str, ...], words: str) -> None:
    with pytest.raises(UserError) as caught:
        prepare_app(together(*jobs))
    assert str(caught.value).startswith(f"workload.{words}")


KEYS = [
    ("{ranks: 4, start_us: -1, program: {kind: dpsnn}}", "jobs[0].start_us: must be at least 0.0, not -1"),
    ("{ranks: 4, start_us: 1.1e+10, program: {kind: dpsnn}}", "jobs[0].start_us: must be at most 10000000000.0, not 1"),
    ("{ranks: 4, start_us: .nan, program: {kind: dpsnn}}", "jobs[0].start_us: expected a number, not '.nan'"),
    ("{ranks: 4, start: 1, program: {kind: dpsnn}}", "jobs[0].start: unknown key; did you mean 'start_us'?"),
    ("{ranks: 4, program: {kind: dpsnn, rate: 3}}", "jobs[0].program.rate: unknown key; did you mean 'rate_hz'?"),
    ("{ranks: 4, program: {kind: uniform}}", "jobs[0].program.kind: unknown 'uniform'; known: trace, chakra"),
    ("{ranks: 4}", "jobs[0].program: missing"),
    ("{ranks: 0, program: {kind: dpsnn}}", "jobs[0].ranks: must be at least 1, not 0"),
    ("{ranks: 4, program: {kind: dpsnn, ranks: 5}}", "jobs[0].ranks: must be program.ranks=5, or stand in one place"),
    ("{placement: block, program: {kind: dpsnn, ranks: 5, mapping: {first: 3}}}",
     "jobs[0].placement: must be mapping where program.mapping names hosts, not block"),
    ("{name: a b, program: {kind: dpsnn, ranks: 5}}", "jobs[0].name: must match"),
]  # fmt: skip


@pytest.mark.parametrize(("job", "words"), KEYS)
def test_keys_that_are_wrong(job: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        together(job)
    assert f"<string>:8: workload.{words}" in str(caught.value)


def test_keys_of_jobs_that_do_not_fit_each_other() -> None:
    named = "{name: a, ranks: 2, program: {kind: dpsnn}}"
    with pytest.raises(ConfigError, match=r":9: workload.jobs\[1\].name: 'a' stands 2 times; names must differ"):
        together(named, named)
    with pytest.raises(ConfigError, match=r"jobs\[1\].program.mtu_bytes: must be that of all jobs, 2048 as in"):
        together(named, "{ranks: 2, program: {kind: dpsnn, mtu_bytes: 1024}}")
    with pytest.raises(ConfigError, match=r"workload.groups: is for placement=group and subtree only, which no"):
        parse_config(f"{TORUS}workload: {{kind: jobs, groups: [4], jobs: [{named}]}}\n")
    with pytest.raises(ConfigError, match=r"workload.jobs: must not be empty"):
        parse_config(f"{TORUS}workload: {{kind: jobs, jobs: []}}\n")
    with pytest.raises(ConfigError, match=r"traffic.source: program runs one program; `hopforge app` with app.engine="):
        parse_config(f"{TORUS}workload: {{kind: jobs, jobs: [{named}]}}\ntraffic: {{source: program}}\n")


@pytest.mark.parametrize(("app", "words"), [
    ("{engine: loggops}", "app.engine: loggops has no network that jobs could share; flow and packet have one"),
    ("{backend: simgrid}", "app.backend: must be embedded or auto with several jobs, not simgrid"),
])  # fmt: skip
def test_engines_that_run_no_jobs(app: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        prepare_app(together("{ranks: 2, program: {kind: dpsnn}}", app=app))


def test_a_job_that_cannot_end_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.goal").write_text("num_ranks 2\nrank 0 {\nrecv 5b from 1\n}\nrank 1 {\ncalc 4\n}\n")
    jobs = (
        "{ranks: 2, program: {kind: collective, operation: bcast}}",
        f"{{program: {{kind: trace, file: {tmp_path / 'a.goal'}}}}}",
    )
    words = r"^workload.jobs\[1\]: .*a.goal: the schedule cannot end: 1 receive waits for a message that never comes"
    with pytest.raises(UserError, match=words):
        run_app(together(*jobs))


@pytest.mark.parametrize("placement", ["linear", "contiguous", "block", "random", "group", "subtree"])
def test_every_placement_gives_hosts_of_their_own(placement: str) -> None:
    jobs = [f"{{ranks: {ranks}, placement: {placement}, program: {{kind: dpsnn}}}}" for ranks in (3, 4, 2)]
    hosts = prepare_app(together(*jobs)).placed.host
    assert len(np.unique(hosts)) == 9
    if placement in ("group", "subtree"):  # lines of four hosts
        assert set(hosts[:3] // 4) != set(hosts[3:7] // 4)
        assert len(set(hosts[3:7] // 4)) == 1
