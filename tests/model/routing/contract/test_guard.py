"""Mistakes in a user's routing file: each is one line with file and line, wherever it happens."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hopforge.model.config.load import parse_config
from hopforge.model.network.core.user_code import UserCodeError
from hopforge.model.routing import RoutingPlan, candidate, relation
from hopforge.model.routing.contract import guard
from hopforge.model.routing.contract.guard import guarded_plan
from hopforge.sim.run.simulation import Simulation

MESH = "topology: {kind: mesh, radices: [2, 2]}\nrouter: {vcs: 2}"
HEAD = "import numpy as np\nfrom hopforge.model.routing import *\n"
RELATION = """
def route(router, in_port, in_vc, packet, net, table, memory, out):
    dx = packet.dst % 2 - router % 2
    dy = packet.dst // 2 - router // 2
    BODY
    out[0] = candidate(0 if dx == 0 and dy == 0 else (1 if dx > 0 else 2) if dx != 0 else (3 if dy > 0 else 4), 3)
    return 1
def prepare(topology, vcs, options):
    return RoutingPlan(relation(route), np.zeros(4, np.int32))
"""
PLAN = "RoutingPlan(relation(route), np.zeros(4, np.int32){})"


def simulate(folder: Path, text: str, more: str = "", network: str = MESH) -> Simulation:
    (folder / "mine.py").write_text(HEAD + text)
    lines = f"name: x\n{network}\nrouting: {{algorithm: file, file: mine.py{more}}}"
    run = Simulation(parse_config(lines, folder=folder), 0.3, 1)
    run.advance(100)
    return run


def relation_with(body: str) -> str:
    return RELATION.replace("BODY", body)


def test_the_relation_that_the_cases_spoil_runs(tmp_path: Path) -> None:
    assert simulate(tmp_path, relation_with("pass")).state["flits_ejected"] > 10


def test_a_plan_of_ours_runs_but_not_over_parallel_links(tmp_path: Path) -> None:
    ours = "def prepare(*of):\n    return ROUTING['shortest_escape'](*of)\n"
    assert simulate(tmp_path, ours).state["flits_ejected"] > 10
    with pytest.raises(UserCodeError, match=r"over parallel links cannot be returned by a file"):
        simulate(tmp_path, ours, network=MESH.replace("mesh", "torus"))  # two links each


LEARNING = """
def report(router, in_port, packet, elapsed, net, table, memory, note):
    REPORT
    note.key = 0
    return 1
def learn(router, out_port, out_vc, note, net, table, memory):
    LEARN
    return 0
"""


@pytest.mark.parametrize("report, learn, message", [
    ("pass", "memory[0] += 1.0", None),
    ("x = table[4]", "pass", r":14: report: index 4 of table"),
    ("pass", "memory[note.key - 1] += 1.0", r":18: learn: index -1 of memory"),
    *((f"packet.{name} = 1", "pass", f":14: report cannot be compiled: .*'{name}'")
      for name in ("phase", "via", "user0", "user1")),  # what a relation would read and the proof not see
    ("note.target = 5", "pass", r":14: report cannot be compiled: .*'target'"),
    ("pass", "raise ValueError('x')", r":17: learn must return an integer"),
])  # fmt: skip
def test_a_learning_algorithm_is_watched(tmp_path: Path, report: str, learn: str, message: str | None) -> None:
    functions = LEARNING.replace("REPORT", report).replace("LEARN", learn)
    plan = PLAN.format(", feedback=Feedback(reporter(report), learner(learn))")
    text = relation_with("pass").replace(PLAN.format(""), plan) + functions
    if message is None:
        simulate(tmp_path, text)
        return
    with pytest.raises(UserCodeError, match=message):
        simulate(tmp_path, text)


def test_the_guard_of_a_learning_algorithm_is_not_spared(tmp_path: Path) -> None:
    plan = PLAN.format(", feedback=Feedback(reporter(report), learner(learn))")
    text = relation_with("pass").replace(PLAN.format(""), plan) + LEARNING.replace("REPORT", "0").replace("LEARN", "0")
    assert simulate(tmp_path, text).state["table"][guard._PROVED] == 0
    assert simulate(tmp_path, relation_with("pass")).state["table"][guard._PROVED] == 1


@pytest.mark.parametrize("text, status", [
    (relation_with("out[0] = candidate(200, 3); return 1"), 2),
    (relation_with("pass"), 0),
])  # fmt: skip
def test_the_command_line_says_it_in_one_line_and_leaves_with_2(tmp_path: Path, text: str, status: int) -> None:
    """In a process of its own: these have brought it down."""
    (tmp_path / "mine.py").write_text(HEAD + text)
    (tmp_path / "net.yml").write_text(f"name: x\n{MESH}\nrouting: {{algorithm: file, file: mine.py, check: false}}\n")
    command = [sys.executable, "-m", "hopforge", "net", "net.yml", "--output", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == status, done.stderr
    lines = done.stderr.strip().splitlines()
    if status:
        assert len(lines) == 1
        assert "mine.py:" in lines[0]


@pytest.mark.parametrize("more, message", [
    ("reply_mask=-1", "reply_mask must not be set by a file"),
    ("reply_mask='x'", "reply_mask must not be set by a file"),
    ("ack_mask=1", "ack_mask must not be set by a file"),
    ("unguarded=5", "unguarded must not be set by a file"),
    ("escape_mask='x'", "escape_mask must be an integer from 1 to 3, not 'x'"),
    ("escape_mask=4", "escape_mask must be an integer from 1 to 3, not 4"),
    ("by_source='x'", "by_source must be True or False, not 'x'"),
    ("agents=5", "agents must be those of an algorithm of hopforge's, not 5"),
    ("estimates=(0.0, (1,))", "estimates must be a place in memory and a shape"),
])  # fmt: skip
def test_fields_of_a_plan_are_checked(tmp_path: Path, more: str, message: str) -> None:
    with pytest.raises(UserCodeError, match=f"mine.py:[0-9]+: {message}"):
        simulate(tmp_path, relation_with("pass").replace(PLAN.format(""), PLAN.format(f", {more}")))


DEAF = """
def prepare(*_):
    print('begun', flush=True)
    while True:
        try:
            for k in range(10**9):
                x = k
        except BaseException:
            pass
"""


@pytest.mark.parametrize("limit_s, presses, status", [(0.5, 0, 2), (600, 2, 130)])
def test_a_file_that_catches_every_interrupt_is_ended(
    tmp_path: Path, limit_s: float, presses: int, status: int
) -> None:
    (tmp_path / "mine.py").write_text(DEAF)
    routing = f"{{algorithm: file, file: mine.py, prepare_limit_s: {limit_s}}}"
    (tmp_path / "net.yml").write_text(f"name: x\n{MESH}\nrouting: {routing}\n")
    command = [sys.executable, "-c", "from hopforge.model.routing.contract import user; user._AGAIN_S = 0.1; "
               "import sys; sys.argv[1:] = ['net', 'net.yml']; from hopforge.cli import main; main()"]  # fmt: skip
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, text=True, **pipes) as running:  # type: ignore[call-overload]
        assert running.stdout.readline() == "begun\n"
        for _ in range(presses):
            time.sleep(0.5)
            running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=60)[1].strip().splitlines()
        assert running.returncode == status
        assert len(said) == 1
        assert said[0].endswith("interrupted" if presses else "and goes on when it is interrupted")
        assert presses or "takes longer than 0.5 s" in said[0]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["mine.py", "net.yml"]


def test_ctrl_c_ends_an_endless_prepare_and_its_progress_is_told(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def prepare(*_):\n    print('begun', flush=True)\n    while True: pass\n")
    (tmp_path / "net.yml").write_text(f"name: x\n{MESH}\nrouting: {{algorithm: file, file: mine.py}}\n")
    command = [sys.executable, "-c", "from hopforge.model.routing.contract import user; user._TELL_S = 0.1; "
               "import sys; sys.argv[1:] = ['net', 'net.yml']; from hopforge.cli import main; main()"]  # fmt: skip
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, text=True, **pipes) as running:  # type: ignore[call-overload]
        assert running.stdout.readline() == "begun\n"
        assert "mine.py has run for" in running.stderr.readline()
        running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=60)[1]
        assert running.returncode == 130
        assert said.strip().splitlines()[-1].endswith("interrupted")


def _machine(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    memory[table[1]] += table[table[0]]
    for k in range(table[3]):
        out[table[4 + k]] = candidate(table[6 + k], table[8 + k], table[10 + k])
    packet.phase = table[2]
    return table[12]


MACHINE = relation(_machine)
MOST, PHASES, VCS, PORTS, ENTRIES, MEMORY = 2, 2, 2, 5, 13, 3


def expected(t: list[int]) -> str:
    """Say what is wrong first with a program of `_machine`; empty: nothing."""
    if not 0 <= t[1] < MEMORY:
        return "of memory"
    if not 0 <= t[0] < ENTRIES:
        return "of table"
    out: dict[int, tuple[int, int, int]] = {}
    for k in range(t[3]):
        if not 0 <= t[4 + k] < MOST:
            return "of out"
        out[t[4 + k]] = t[6 + k], t[8 + k], t[10 + k]
    if not 0 <= t[12] <= MOST:
        return "returned"
    if not 0 <= t[2] < PHASES:
        return "phase"
    other = ""  # one that leaves here, which is no mistake of the packets to this host
    for k in range(t[12]):
        if k not in out:
            return f"{other}did not write"
        port, mask, level = out[k]
        if not 0 <= level < 256:
            return f"{other}no candidate"
        if not 0 <= port < PORTS:
            return f"{other}names port|names a port below"
        if not 0 < mask < 1 << VCS:
            return f"{other}names the VCs|names no VC"
        if port == 0:
            other = "another host|"
    return other.rstrip("|")


def near(least: int, most: int) -> st.SearchStrategy[int]:
    """Mostly what is allowed, now and then what is next to it or far away."""
    good = st.integers(least, most)
    return st.one_of(good, good, good, good, good, good, st.sampled_from([least - 1, most + 1, 2**31 - 1, -(2**31)]))


PROGRAMS = st.tuples(
    near(0, ENTRIES - 1), near(0, MEMORY - 1), near(0, PHASES - 1), st.integers(0, 2), near(0, MOST - 1),
    near(0, MOST - 1), near(0, PORTS - 1), near(0, PORTS - 1), near(1, 3), near(1, 3), near(0, 255), near(0, 255),
    near(0, MOST),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(program=PROGRAMS)
@example(program=(0, 0, 0, 2, 0, 1, 1, 3, 3, 3, 0, 1, 2))
@example(program=(0, 0, 0, 1, 1, 0, 1, 3, 3, 3, 0, 1, 2))
def test_whatever_a_relation_does_it_runs_or_is_told(program: tuple[int, ...]) -> None:
    lines = "name: x\ntopology: {kind: torus, radices: [3, 3]}\nrouter: {vcs: 2}\nrouting: {check: false}"
    checked = parse_config(lines)
    plain = RoutingPlan(
        MACHINE, np.array(program, np.int64).astype(np.int32), max_candidates=MOST, phases=PHASES,
        memory=np.zeros(MEMORY),
    )  # fmt: skip
    made = Simulation(checked, 0.5, 1)
    run = Simulation(checked, 0.5, 1, made.topology, plan=guarded_plan(plain, made.topology, VCS, "routing.algorithm"))
    wrong = expected(list(program))
    if wrong:
        with pytest.raises(UserCodeError, match=wrong):
            run.advance(40)
        return
    run.advance(40)
    run.check_conservation()


#: relations, and whether the guard is spared the look at their candidates after the proof
SPARED = {
    "packet": ("pass", "", True),
    "draws": ("packet.via = draw_below(net, router, 3)", "", True),
    "queues": ("port = output_vc(net, 2 * router).credits", "", False),
    "memory": ("wait = memory[0]", "", False),
    "without a proof": ("pass", ", check: false", False),
}


@pytest.mark.parametrize("name", SPARED)
def test_the_guard_leaves_out_only_what_the_proof_has_seen(tmp_path: Path, name: str) -> None:
    body, more, spared = SPARED[name]
    text = relation_with(body)
    if "draw_below" in body:
        text = text.replace("np.int32))", "np.int32), random=True)")
    run = simulate(tmp_path, text, more)
    assert run.state["table"][guard._MARKED] == guard._MARK
    assert bool(run.state["table"][guard._PROVED]) == spared
    assert run.state["flits_ejected"] > 10
    whole = simulate(tmp_path, text, more)
    whole.state["table"][guard._PROVED] = 0
    run.advance(500)
    whole.advance(500)
    assert run.state["hops_sum"] == whole.state["hops_sum"] > 100
    assert (run.state["router_rng"] == whole.state["router_rng"]).all()


#: a relation for two routers of two hosts that gives packets to another host than their own where `WHERE` holds
ASTRAY = """
def route(router, in_port, in_vc, packet, net, table, memory, out):
    PREPARED
    away = 1 if WHERE else 0
    if packet.dst // 2 == router:
        out[0] = candidate((packet.dst + away) % 2, 1)
    else:
        out[0] = candidate(0 if away else 2 + router, 1)
    return 1
def prepare(topology, vcs, options):
    return RoutingPlan(relation(route), np.zeros(4, np.int32))
"""
PAIRS = (
    "topology: {kind: mesh, radices: [2], hosts_per_router: 2}\nrouter: {vcs: 1, buffer_flits: 8}\n"
    "traffic: {packet_lengths: [1, 5], packet_weights: [1, 1]}"
)
DRAWS, WRITES, LEARNS = "k = draw_below(net, router, 9)", "packet.user0 = packet.dst", "memory[0] += 1.0"


@pytest.mark.parametrize("prepared", ["pass", DRAWS, WRITES, LEARNS])
@pytest.mark.parametrize("more", ["", ", check: false"])
def test_packets_that_do_not_go_astray_arrive(tmp_path: Path, prepared: str, more: str) -> None:
    text = ASTRAY.replace("PREPARED", prepared).replace("WHERE", "router == 2")
    assert simulate(tmp_path, text, more, PAIRS).state["flits_ejected"] > 10


@pytest.mark.parametrize("prepared, where", [
    ("pass", "packet.dst == 3"),
    ("pass", "router == 1"),
    ("pass", "packet.hops == 1"),
    ("pass", "packet.src == 0 and packet.dst == 3"),
    ("pass", "packet.length == 5"),
    ("pass", "in_port >= 2"),
    (DRAWS, "k == 8"),
    (WRITES, "packet.user0 == 2"),
    ("pass", "output_vc(net, 2).credits < 4"),
    (LEARNS, "memory[0] > 20.0"),
])  # fmt: skip
@pytest.mark.parametrize("more", ["", ", check: false"])
@pytest.mark.thinned(2)
def test_a_packet_for_one_host_is_never_given_to_another(tmp_path: Path, prepared: str, where: str, more: str) -> None:
    text = ASTRAY.replace("PREPARED", prepared).replace("WHERE", where)
    with pytest.raises(UserCodeError, match=r"mine.py:(8|10): route: out\[0\] names port [01], where another host is"):
        simulate(tmp_path, text, more, PAIRS).advance(1000)


def test_indices_are_checked_and_exceptions_caught_after_the_proof_too(tmp_path: Path) -> None:
    """Nothing should ever come here: a proof that was wrong must still not bend a run without a word."""
    text = relation_with("if packet.hops > 0 and table[0] == 7: out[9] = 1").replace("np.zeros(4", "np.zeros(1")
    run = simulate(tmp_path, text)
    assert run.state["table"][guard._PROVED] == 1
    run.state["table"][run.state["table"][guard._START]] = 7
    with pytest.raises(UserCodeError, match=r"mine.py:\d+: route: index 9 of out, which has room for"):
        run.advance(500)
