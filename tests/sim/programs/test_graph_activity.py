"""What ranks of a graph did: schedules whose times one knows; links; every engine; pages."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopforge.model.config import parse_config
from hopforge.model.output.column_notes import column_notes
from hopforge.model.workload.goal_text import parse_goal
from hopforge.sim.pages.find import find_results
from hopforge.sim.pages.page import result_page
from hopforge.sim.pages.report import Figure
from hopforge.sim.programs.app_setup import prepare_app
from hopforge.sim.programs.application import AppRun, app_rows, run_app, write_app
from hopforge.sim.programs.graph_activity import BINS, graph_activity, united
from hopforge.sim.programs.loggops_engine import LoggopsSettings, run_loggops

SETTINGS = LoggopsSettings(100.0, 0.0, 0.0, 1.0, 0.0, 1 << 40)
"""Latency 100, a unit for each byte after the first."""
#: rank 0 computes 1000 and sends 101 bytes at 400; rank 1 computes 300 and waits for them, then computes 200
HIDDEN = """num_ranks 2
rank 0 {
a: calc 400
b: send 101b to 1 cpu 1
c: calc 600
b requires a
c requires a
}
rank 1 {
a: calc 300
b: recv 101b from 0 cpu 1
c: calc 200
c requires b
}
"""


def activity(text):
    schedule = parse_goal("x", "x.goal", text)
    return graph_activity(schedule, run_loggops(schedule, SETTINGS))


def test_by_hand():
    """The message is under way from 400 to 600: rank 0 computes then, rank 1 does not; the end is at 1000."""
    found = activity(HIDDEN)
    assert found.makespan_s == 1000
    assert found.ranks.to_numpy().tolist() == [[0, 1000, 0, 0], [1, 500, 200, 300]]
    assert (found.computing_share, found.exposed_share, found.idle_share) == (0.75, 0.1, 0.15)


def test_the_timeline_has_the_same_times_in_parts():
    found = activity(HIDDEN)
    table = found.timeline
    assert len(table) == 2 * BINS
    assert list(table.columns) == ["rank", "begin_s", "computing", "exposed", "idle", "stream_cpu1"]
    width = found.makespan_s / BINS
    for rank, own in table.groupby("rank"):
        for share, whole in (("computing", "computing_s"), ("exposed", "exposed_s"), ("idle", "idle_s")):
            assert own[share].sum() * width == pytest.approx(found.ranks[whole][rank])
        under_way = own[own["stream_cpu1"] > 0]["begin_s"]
        assert (under_way.min(), under_way.max()) == (400, 600 - width)
    assert (table[["computing", "exposed", "idle"]].sum(axis=1) == 1).all()


def test_receives_from_anywhere_and_equal_tags():
    """Two messages of one tag: the second send has the second receive; a receive from anywhere ends nothing."""
    found = activity(
        "num_ranks 2\nrank 0 {\na: send 1b to 1\nb: calc 500 cpu 1\nc: send 1b to 1\nc requires b\n}\n"
        "rank 1 {\na: recv 1b from 0\nb: recv 1b from 0\n}\n"
    )
    assert found.ranks["exposed_s"].tolist() == [100, 200]
    # the first message takes the receive that is posted first, which is not the first of the schedule
    posted = activity(
        "num_ranks 2\nrank 0 {\na: send 1b to 1\nb: calc 500 cpu 1\nc: send 1b to 1\nc requires b\n}\n"
        "rank 1 {\nx: calc 300 cpu 1\na: recv 1b from 0\nb: recv 1b from 0 tag -1\na requires x\n}\n"
    )
    assert posted.ranks["exposed_s"].tolist() == [100, 100]
    anybody = activity("num_ranks 2\nrank 0 {\nsend 1b to 1\n}\nrank 1 {\nrecv 1b from -1\n}\n")
    assert anybody.makespan_s == 100
    nothing = activity("num_ranks 2\nrank 0 {\n}\nrank 1 {\n}\n")
    assert (nothing.makespan_s, nothing.exposed_share, len(nothing.timeline)) == (0, 0, 0)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10))))
def test_united_is_a_union(pairs):
    begin = np.array([one for one, _ in pairs], float)
    found = united(begin, begin + [length for _, length in pairs])
    covered = {n for one, length in pairs for n in range(one, one + length)}
    assert found.length == len(covered)
    assert (found.begin[1:] > found.end[:-1]).all()
    edges = np.arange(52.0)
    assert np.diff(found.until(edges)).tolist() == [float(n in covered) for n in range(51)]


TRAINING = (
    "workload: {kind: training, microbatches: 2, shrink: 4, parallel: {data: 2, tensor: 2, pipeline: 2},"
    " sizes: {layers: 2, width: 256, heads: 4, feed_forward: 512, vocabulary: 256, sequence: 128},"
    " collectives: {allreduce: ring}}\n"
)
BASE = "name: x\ntopology: {kind: torus, radices: [4, 2]}\ntiming: {link_gbps: 400}\n" + TRAINING


def run(engine, more=""):
    text = f"{BASE}app: {{engine: {engine}, host_gflops: 10000, loggops: {{machine: ai}}{more}}}\n"
    return run_app(parse_config(text))


@pytest.mark.parametrize("engine", ["flow", "packet", "loggops"])
def test_every_engine_tells_what_ranks_did(engine, tmp_path):
    found = run(engine)
    made_up = found.activity.ranks[["computing_s", "exposed_s", "idle_s"]].sum(axis=1)
    assert made_up.tolist() == pytest.approx([found.found.makespan_s] * 8)
    assert found.activity.ranks["computing_s"].tolist() == pytest.approx(found.ranks["compute_s"].tolist())
    assert any(subject == "of the makespan" for subject, _ in (
        app_rows(found) if isinstance(found, AppRun) else found.rows()
    ))
    write_app(found, tmp_path / "app")
    for name, table in (("activity", found.activity.ranks), ("timeline", found.activity.timeline)):
        assert set(column_notes(name, table)) == set(table)
    page = result_page(find_results(tmp_path, None), "again")
    titles = [item.title for section in page.sections for item in section.items if isinstance(item, Figure)]
    assert titles == ["Ranks over time", "Streams of some ranks"]


def test_flow_and_packet_agree_on_a_step():
    """As for other programs: within 10 %."""
    flow, packet = (run(engine).found.makespan_s for engine in ("flow", "packet"))
    assert packet == pytest.approx(flow, rel=0.1)


def test_bytes_of_links_by_hand(tmp_path):
    """Two hosts of a router each, a line of two routers: 3000 bytes cross it, the rest stays at the routers."""
    text = (
        "num_ranks 4\nrank 0 {\nsend 1000b to 2\nsend 500b to 1\n}\nrank 1 {\nsend 2000b to 3\nrecv 500b from 0\n}\n"
        "rank 2 {\nrecv 1000b from 0\n}\nrank 3 {\nrecv 2000b from 1\n}\n"
    )
    (tmp_path / "x.goal").write_text(text)
    config = (
        "name: x\ntopology: {kind: mesh, radices: [2], hosts_per_router: 2}\ntiming: {link_gbps: 8}\n"
        f"workload: {{kind: trace, file: {tmp_path}/x.goal}}\napp: {{backend: embedded}}\n"
    )
    found = run_app(parse_config(config))
    links = found.links.table.set_index("link")["bytes"].to_dict()
    between = {name: size for name, size in links.items() if name.startswith("router 0 to router 1")}
    assert list(between.values()) == [3000]
    assert {name: links[name] for name in links if name.startswith("host")} == {
        "host 0 to router 0": 1500, "host 1 to router 0": 2000,
    }  # fmt: skip
    assert {links[f"router {router} to host {host}"] for router, host in ((0, 1), (1, 2), (1, 3))} == {500, 1000, 2000}
    name, share = found.links.hottest()
    assert name in between
    assert share == pytest.approx(3000e-9 / found.found.makespan_s)
    assert found.links.hottest_of_hosts() == pytest.approx(2000e-9 / found.found.makespan_s)
    assert set(column_notes("links", found.links.table)) == set(found.links.table)


def of_pairs(folder, topology, pairs, more=""):
    """Run a schedule in which the first of each pair of ranks sends bytes to the second, by the flow engine."""
    ranks = 1 + max(max(pair[:2]) for pair in pairs)
    lines = [[] for _ in range(ranks)]
    for tag, (a, b, size) in enumerate(pairs):
        lines[a].append(f"send {size}b to {b} tag {tag}")
        lines[b].append(f"recv {size}b from {a} tag {tag}")
    blocks = "".join(f"rank {n} {{\n" + "\n".join(own) + "\n}\n" for n, own in enumerate(lines))
    (folder / "x.goal").write_text(f"num_ranks {ranks}\n{blocks}")
    return run_app(parse_config(
        f"name: x\ntopology: {topology}\ntiming: {{link_gbps: 80}}\nrouting: {{algorithm: shortest}}\n"
        f"workload: {{kind: trace, file: {folder}/x.goal{more}}}\napp: {{backend: embedded}}\n"
    ))


def test_links_of_tiers_are_busy_by_their_own_rates(tmp_path):
    """Two routers a unit at 8 Gbit/s, two units at 40: fewer bytes on a slower link are busy for longer."""
    tiers = "{kind: tiers, tiers: [{shape: ring, sizes: [2], gbps: 8}, {shape: ring, sizes: [2], gbps: 40}]}"
    found = of_pairs(tmp_path, tiers, [(0, 1, 1000), (0, 2, 3000)])
    table, second = found.links.table.set_index("link"), found.found.makespan_s
    between = table[table["between_routers"]]
    assert between["bytes"].tolist() == [1000, 3000]
    assert between["busy_share"].tolist() == pytest.approx([1000e-9 / second, 3000 / 5 * 1e-9 / second])
    assert table["busy_share"]["host 0 to router 0"] == pytest.approx(400e-9 / second)
    assert found.links.hottest()[0].startswith("router 0 to router 1,")
    assert table["busy_share"].is_monotonic_decreasing


@pytest.mark.parametrize(("links", "carried"), [("turns", [3000, 1000]), ("pair", [0, 4000])])
def test_links_of_machines_with_several(links, carried, tmp_path):
    """Three messages of machine 0 to machine 1: in turns on its two links, or all of the pair on the second."""
    director = (
        "{kind: director, racks: 2, hosts_per_router: 4, host_links: 2, uplinks: 2, directors: 1, lines: 2, fabrics: 1}"
    )
    found = of_pairs(
        tmp_path, director, [(0, 1, 1000), (0, 1, 1000), (0, 1, 2000)], f", mapping: {{links: {links}}}"
    )
    bytes_of = found.links.table.set_index("link")["bytes"].to_dict()
    for link in (0, 1):
        assert bytes_of.get(f"host {link} to router {link}", 0) == carried[link]
        assert bytes_of.get(f"router {link} to host {2 + link}", 0) == carried[link]


@pytest.mark.parametrize("form", ["goal", "chakra"])
def test_a_step_that_is_written_and_read_ends_at_the_same_times(form, tmp_path):
    config = tmp_path / "x.yml"
    config.write_text(f"{BASE}app: {{host_gflops: 10000}}\n")
    target = tmp_path / ("x.goal" if form == "goal" else "traces")
    command = [sys.executable, "-m", "hopforge", "workload", str(config), "--to", form, "-o", str(target)]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    workload = f"{{kind: trace, file: {target}}}" if form == "goal" else f"{{kind: chakra, file: {target}/trace}}"
    text = f"name: x\ntopology: {{kind: torus, radices: [4, 2]}}\ntiming: {{link_gbps: 400}}\nworkload: {workload}\n"
    again = run_app(parse_config(f"{text}app: {{engine: flow, loggops: {{machine: ai}}}}\n"))
    assert again.ranks["finish_s"].tolist() == run("flow").ranks["finish_s"].tolist()


def test_training_without_speed_takes_no_time_to_compute():
    setup = prepare_app(parse_config(f"{BASE}app: {{engine: flow}}\n"))
    assert run_app(setup.config, setup=setup).ranks["compute_s"].tolist() == [0.0] * 8
