"""The LogGOPS engine: by hand, against a slow model of the definition, against shared references; what cannot end."""

import csv
import json
import math
import re
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge import cli
from hopforge.model.config import ConfigError, parse_config
from hopforge.model.workload.goal_files import read_goal
from hopforge.model.workload.goal_text import parse_goal
from hopforge.model.workload.schedule import ANY, CALC, RECV, SEND, GoalError, Schedule
from hopforge.sim.programs.app_sweep import APP_SWEEP
from hopforge.sim.programs.application import run_app
from hopforge.sim.programs.loggops_engine import LoggopsSettings, run_loggops

_SHARED = [folder / "shared" / "goal" for folder in Path(__file__).parents]
SHARED = next((place for place in _SHARED if (place / "reference.csv").is_file()), None)
needs_shared = pytest.mark.skipif(SHARED is None, reason="no shared/goal beside this checkout")

DEFAULT = LoggopsSettings(2500, 1500, 1000, 6, 0, 65535)
RENDEZVOUS = LoggopsSettings(1000, 200, 300, 2, 0, 1024)
PER_BYTE = LoggopsSettings(700, 100, 50, 1, 3, 100000)


def schedule(*ranks: str) -> Schedule:
    blocks = "".join(f"rank {n} {{\n{lines}\n}}\n" for n, lines in enumerate(ranks))
    return parse_goal("x", "x.goal", f"num_ranks {len(ranks)}\n{blocks}")


def finish(machine: LoggopsSettings, *ranks: str) -> list[float]:
    return run_loggops(schedule(*ranks), machine).finish.tolist()


# ---- by hand -------------------------------------------------------------------------------------------------------


def test_one_message() -> None:
    # first byte at 1500 + 2500, last one 99 · 6 later, and o
    assert finish(DEFAULT, "send 100b to 1", "recv 100b from 0") == [1500, 4594 + 1500]
    # O: (s − 1) · 3 at both ends; a message of 0 bytes counts as one of 1
    assert finish(PER_BYTE, "send 11b to 1", "recv 11b from 0") == [130, 130 + 700 + 10 + 130]
    assert finish(DEFAULT, "send 0b to 1", "recv 0b from 0") == [1500, 5500]


def test_the_sender_of_a_long_message_is_done_when_that_is_received() -> None:
    ranks = ("a: send 2000b to 1\nb: calc 700\nb requires a", "a: calc 90000\nb: recv 2000b from 0\nb requires a")
    assert finish(RENDEZVOUS, *ranks) == [90900, 90200]
    assert finish(RENDEZVOUS._replace(S=2000), *ranks) == [900, 90200]
    # its cpu is not blocked meanwhile
    assert finish(RENDEZVOUS, ranks[0] + "\nc: calc 5000", ranks[1]) == [90900, 90200]


def test_a_nic_takes_one_message_after_the_other() -> None:
    # nic of the sender: the second message leaves at max(o, g + w) = 1000 + 594 > 1500
    sends = "send 100b to 1\nsend 100b to 1 tag 1"
    assert finish(DEFAULT, sends, "recv 100b from 0\nrecv 100b from 0 tag 1") == [1594 + 1500, 1594 + 6094]
    # two senders: the second is taken in g + w after the first
    assert finish(DEFAULT, "recv 100b from 1\nrecv 100b from 2", *["send 100b to 0"] * 2) == [
        4000 + 1594 + 594 + 1500, 1500, 1500,
    ]  # fmt: skip
    # another nic, but the same cpu: o after o
    other = "recv 100b from 1\nrecv 100b from 2"
    assert finish(DEFAULT, other, "send 100b to 0", "send 100b to 0 nic 1")[0] == 4594 + 1500 + 1500


def test_dependencies_on_ends_and_starts_across_cpus() -> None:
    assert finish(DEFAULT, "a: calc 1000\nb: calc 10 cpu 1\nb requires a") == [1010]
    assert finish(DEFAULT, "a: calc 1000\nb: calc 10 cpu 1\nb irequires a") == [1000]
    assert finish(DEFAULT, "a: send 5000b to 1\nb: calc 400\nb irequires a", "recv 5000b from 0")[0] == 1900
    # a receive has started when it is posted
    assert finish(DEFAULT, "calc 9\nsend 1b to 1", "a: recv 1b from 0\nb: calc 7 cpu 1\nb irequires a")[1] == 9 + 5500


def test_the_first_that_is_ready_goes_first() -> None:
    lines = "a: calc 100\nb: calc 50 cpu 1\nc: calc 10\nc requires b\nd: calc 1 cpu 2\ne: calc 1000\ne requires d"
    found = run_loggops(schedule(lines), DEFAULT)
    assert found.start.tolist() == [0, 0, 1100, 0, 100]


def test_any_source_takes_what_comes_first() -> None:
    found = run_loggops(
        schedule("a: recv 1b from -1 tag -1\nb: recv 1b from -1 tag 4\nb requires a", "calc 5000\nsend 1b to 0 tag 4",
                 "send 1b to 0 tag 9"), DEFAULT,
    )
    assert found.end[:2].tolist() == [5500, 10500]


# ---- a slow model: whatever can happen is looked at in every instant -------------------------------------------------


def slow(given_: Schedule, m: LoggopsSettings) -> list[float] | None:
    rank, kind = given_.rank.tolist(), given_.kind.tolist()
    peer, tag, cpu, nic = (getattr(given_, key).tolist() for key in ("peer", "tag", "cpu", "nic"))
    size = [s if k == CALC else max(1, s) for s, k in zip(given_.size.tolist(), kind, strict=True)]
    waits, ready = defaultdict(set), [0.0] * len(kind)
    for name, edges in (("end", given_.at_end), ("start", given_.at_start)):
        for before, after in zip(edges.before.tolist(), edges.next.tolist(), strict=True):
            waits[after].add((name, before))
    free: dict[tuple, float] = defaultdict(float)
    items = {("op", n): 0.0 for n in range(len(kind)) if not waits[n]}
    posted, come, end, now = [], [], {}, 0.0

    def tell(name: str, n: int, time: float) -> None:
        if name == "end":
            end[n] = time
        for other, needed in waits.items():
            if (name, n) in needed:
                needed.discard((name, n))
                ready[other] = max(ready[other], time)
                if not needed:
                    items["op", other] = ready[other]

    def needs(what: str, n: int) -> list[tuple]:
        if what == "intake":
            return [("in", peer[n], nic[n])]
        if what == "arrive" or (what == "op" and kind[n] == RECV):
            return []
        own = [("cpu", rank[n], cpu[n])]
        return [*own, ("out", rank[n], nic[n])] if what == "op" and kind[n] == SEND else own

    def meet(receive: int, message: int) -> None:
        partner[receive] = message
        items["carry", receive] = now

    def fits(receive: int, message: int) -> bool:
        return (rank[receive] == peer[message] and peer[receive] in (rank[message], ANY)
                and tag[receive] in (tag[message], ANY))

    def do(what: str, n: int) -> None:
        wire, work = math.floor((size[n] - 1) * m.G), m.o + (size[n] - 1) * m.O
        if what == "intake":
            free["in", peer[n], nic[n]] = now + m.g + wire
            items["arrive", n] = now + wire
        elif what == "arrive":
            found = [r for r in posted if fits(r, n)]
            if found:
                posted.remove(found[0])
                meet(found[0], n)
            else:
                come.append(n)
        elif what == "carry":
            free["cpu", rank[n], cpu[n]] = now + work
            tell("end", n, now + work)
            if size[partner[n]] > m.S:
                tell("end", partner[n], now + work)
        elif kind[n] == CALC:
            free["cpu", rank[n], cpu[n]] = now + size[n]
            tell("start", n, now)
            tell("end", n, now + size[n])
        elif kind[n] == SEND:
            free["cpu", rank[n], cpu[n]] = now + work
            free["out", rank[n], nic[n]] = now + m.g + wire
            tell("start", n, now)
            items["intake", n] = now + work + m.L
            if size[n] <= m.S:
                tell("end", n, now + work)
        else:
            tell("start", n, now)
            found = [c for c in come if fits(n, c)]
            if found:
                come.remove(found[0])
                meet(n, found[0])
            else:
                posted.append(n)

    partner: dict[int, int] = {}
    while items:
        able = [
            (since, what not in ("intake", "arrive"), n, what) for (what, n), since in items.items()
            if since <= now and all(free[place] <= now for place in needs(what, n))
        ]  # fmt: skip
        if able:
            _, _, n, what = min(able)
            del items[what, n]
            do(what, n)
        else:
            now = min(time for time in [*items.values(), *free.values()] if time > now)
    if len(end) < len(kind) or come:  # the sender of a long message is waited for by the receive of it
        return None
    return [max([end[n] for n in range(len(kind)) if rank[n] == r], default=0) for r in range(given_.ranks)]


@st.composite
def programs(draw: st.DrawFn) -> list[str]:
    """Messages that meet in order, beside computations, in random graphs that lead downwards."""
    ranks, lines, edges = draw(st.integers(1, 4)), defaultdict(list), defaultdict(list)
    cpus, nics, tags = draw(st.integers(0, 2)), draw(st.integers(0, 1)), draw(st.integers(1, 3))

    def add(rank: int, text: str) -> None:
        own = len(lines[rank])
        lines[rank].append(f"l{own}: {text} cpu {draw(st.integers(0, cpus))}")
        for before in draw(st.sets(st.integers(0, own - 1), max_size=2)) if own else ():
            edges[rank].append(f"l{own} {draw(st.sampled_from(['requires', 'requires', 'irequires']))} l{before}")

    for step in range(draw(st.integers(1, 12))):
        source, to = draw(st.integers(0, ranks - 1)), draw(st.integers(0, ranks - 1))
        if draw(st.booleans()):
            add(source, f"calc {draw(st.sampled_from([0, 0, 1, 100, 3000]))}")
        else:
            tag, size = 10 * step + draw(st.integers(0, tags - 1)), draw(st.sampled_from([0, 1, 50, 2000]))
            add(source, f"send {size}b to {to} tag {tag} nic {draw(st.integers(0, nics))}")
            add(to, f"recv {size}b from {source} tag {tag}")
    return ["\n".join(lines[rank] + edges[rank]) for rank in range(ranks)]


MACHINES = [DEFAULT, RENDEZVOUS, PER_BYTE, LoggopsSettings(1000, 0, 0, 1, 0, 10), LoggopsSettings(0, 0, 0, 0.04, 0, 0),
            LoggopsSettings(100, 7, 900, 0, 0.5, 49)]  # fmt: skip


@given(programs(), st.sampled_from(MACHINES))
@settings(max_examples=250, deadline=None)
def test_it_runs_as_the_slow_model(ranks: list[str], machine: LoggopsSettings) -> None:
    expected = slow(schedule(*ranks), machine)
    if expected is None:
        with pytest.raises(GoalError, match="the schedule cannot end"):
            finish(machine, *ranks)
    else:
        assert finish(machine, *ranks) == expected


def test_many_that_wait_for_one_cpu_run_as_the_slow_model() -> None:
    rng = np.random.default_rng(3)
    free = "\n".join(f"a{n}: calc {rng.integers(0, 9)} cpu 1" for n in range(40))
    sends = "\n".join(
        f"b{n}: send {rng.integers(1, 60)}b to 1 tag {n} nic {n % 2}\nb{n} requires a{n}" for n in range(40)
    )
    sizes = re.findall(r"send (\d+b)", sends)
    receives = "\n".join(f"recv {size} from 0 tag {n}" for n, size in reversed(list(enumerate(sizes))))
    machine = LoggopsSettings(10, 3, 8, 0.25, 0, 30)
    assert finish(machine, f"{free}\n{sends}", receives) == slow(schedule(f"{free}\n{sends}", receives), machine)


@needs_shared
def test_every_shared_reference_is_met_by_every_rank() -> None:
    assert SHARED is not None

    def rows(name: str) -> list[dict[str, str]]:
        with (SHARED / name).open(newline="") as file:
            return list(csv.DictReader(file))

    machines = {
        row["params"]: LoggopsSettings(*(float(row[k]) for k in "LogGO"), int(row["S"])) for row in rows("params.csv")
    }
    wanted: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows("reference.csv"):
        wanted[row["case"], row["params"]].append(row["clean"])
    status = {(row["case"], row["params"]): row["status_clean"] for row in rows("runs.csv")}
    assert len(status) == 336
    schedules = {case: read_goal(SHARED / "schedules" / f"{case}.goal") for case, _ in status}
    for key, ends in status.items():
        if ends == "hang":
            with pytest.raises(GoalError, match="never ran: rank"):
                run_loggops(schedules[key[0]], machines[key[1]])
        else:
            found = run_loggops(schedules[key[0]], machines[key[1]]).finish
            assert found.tolist() == [float(time) for time in wanted[key]], key


# ---- what cannot end, and mistakes ---------------------------------------------------------------------------------

CANNOT = {
    ("send 5b to 1 tag 3", "calc 1"): (
        "x.goal: the schedule cannot end: 1 message is never received: rank 0 send 5b to 1 tag 3 (x.goal:3)"
    ),
    ("calc 1", "a: recv 5b from 0\nb: calc 4\nb requires a"): (
        "x.goal: the schedule cannot end: 1 receive waits for a message that never comes: rank 1 recv 5b from 0 tag 0"
        " (x.goal:6); 1 operation never ran: rank 1 calc 4 (x.goal:7)"
    ),
    ("send 5b to 1 tag 1", "recv 5b from 0 tag 2"): (
        "1 message is never received: rank 0 send 5b to 1 tag 1 (x.goal:3); 1 receive waits for a message that never"
        " comes: rank 1 recv 5b from 0 tag 2 (x.goal:6)"
    ),
    ("send 5b to 1", "recv 6b from 0"): (
        "x.goal:6: rank 1 receives 6 bytes (recv 6b from 0), but the message from rank 0 has 5 (send 5b to 1, x.goal:3)"
    ),
    ("a: calc 18446744073709551615", ""): "ends at 1.84467e+19; times beyond 2^53 are not exact",
}


@pytest.mark.parametrize("ranks", CANNOT)
def test_what_cannot_end_is_named(ranks: tuple[str, ...]) -> None:
    with pytest.raises(GoalError, match=re.escape(CANNOT[ranks]) + "$"):
        finish(DEFAULT, *ranks)


FILE = "num_ranks 2\nrank 0 {\na: calc 100\nb: send 100b to 1\nb requires a\n}\nrank 1 {\nrecv 100b from 0\n}\n"


def text_of(folder: Path, app: str, hosts: str = "[2, 2]", more: str = "") -> str:
    (folder / "a.goal").write_text(FILE)
    workload = f"{{kind: trace, file: {folder / 'a.goal'}}}"
    return f"name: x\ntopology: {{kind: mesh, radices: {hosts}}}\nworkload: {workload}\napp: {app}\n{more}"


def test_results_are_in_the_unit_of_the_schedule_and_in_seconds(tmp_path: Path) -> None:
    run = run_app(parse_config(text_of(tmp_path, "{engine: loggops, loggops: {L: 1000, unit_ns: 2}}")))
    # 100 + 1500, + L + 594 + 1500
    assert run.ranks["finish"].tolist() == [1600, 1600 + 1000 + 594 + 1500]
    assert run.ranks["finish_s"].tolist() == pytest.approx([3200e-9, 9388e-9])
    assert (run.found.makespan, run.found.messages, run.found.payload_bytes) == (4694, 1, 100)
    machine = parse_config(text_of(tmp_path, "{engine: loggops, loggops: {machine: ai}}"))
    assert run_app(machine).found.makespan == 100 + 200 + 3700 + math.floor(99 * 0.04) + 200


def test_other_programs_run_too_and_are_swept(tmp_path: Path) -> None:
    variants = "simulation: {variants: {near: {app.loggops.L: 100}, far: {app.loggops.L: 900}}}"
    text = (
        "name: x\ntopology: {kind: mesh, radices: [4]}\napp: {engine: loggops, loggops: {o: 0, g: 0, G: 0}}\n"
        f"workload: {{kind: collective, operation: bcast, bytes: 8, ranks: 4}}\n{variants}\n"
    )
    runs = APP_SWEEP.run(parse_config(text), tmp_path, lambda done, total: None, workers=1)
    assert runs["makespan"].tolist() == [200, 1800]  # two rounds of a binomial tree
    assert APP_SWEEP.table(parse_config(text), runs)[0] == ["variant", "makespan", "gain", "waiting", "computing"]
    APP_SWEEP.write(parse_config(text), runs, tmp_path / "out")
    assert pd.read_csv(tmp_path / "out" / "variants.csv")["gain"].tolist() == [1, pytest.approx(1 / 9)]


def run_cli(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int | str | None:
    monkeypatch.setattr(sys, "argv", ["hopforge", *map(str, arguments)])
    monkeypatch.delenv("HOPFORGE_TRACEBACK", raising=False)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return caught.value.code


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    config, out = tmp_path / "x.yml", tmp_path / "out"
    config.write_text(text_of(tmp_path, "{backend: embedded, eager_bytes: 9}", more="timing: {cable_ns: 5}\n"))
    assert run_cli(monkeypatch, "app", config, "--engine", "loggops", "-o", out) in (0, None)
    said = capsys.readouterr()
    assert "6194 units, 6.194 µs" in said.out
    assert "does not use timing, app.backend, app.eager_bytes" in said.err
    assert pd.read_csv(out / "ranks.csv")["finish"].tolist() == [1600, 6194]
    columns = json.loads((out / "metadata.json").read_text())["columns"]
    assert columns["ranks"]["finish"]["unit"] == "unit of the schedule"
    assert run_cli(monkeypatch, "hits", config, "-o", tmp_path / "hits") == 2
    assert "is a schedule of GOAL, no time-independent trace; hopforge app" in capsys.readouterr().err
    config.write_text(text_of(tmp_path, "{engine: loggops}", hosts="[1]"))
    assert run_cli(monkeypatch, "app", config) == 2
    assert "2 ranks are more than the 1 hosts" in capsys.readouterr().err


@pytest.mark.parametrize(("keys", "words"), [
    ("L: -1", "app.loggops.L"), ("G: .nan", "app.loggops.G"), ("S: 1.5", "app.loggops.S"),
    ("machine: cray", "app.loggops.machine"), ("l: 3", "app.loggops.l"),
])  # fmt: skip
def test_bad_settings(tmp_path: Path, keys: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_config(text_of(tmp_path, f"{{engine: loggops, loggops: {{{keys}}}}}"))
