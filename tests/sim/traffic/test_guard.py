"""Mistakes in a user's traffic file: each is one line with file and line, wherever it happens."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.model.config.load import parse_config
from hopforge.model.network.core.user_code import UserCodeError
from hopforge.model.topology import build
from hopforge.sim.packet.network import draw_destinations
from hopforge.sim.run.packet_script import draw_packets
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.traffic.guard import user_traffic

MESH = "topology: {kind: mesh, radices: [2, 2]}"
HEAD = "import numpy as np\nfrom hopforge.sim.traffic import *\n"
PLAN = "TrafficPlan(destination_rule(rule), np.zeros(4, np.int32){})"
PATTERN = f"""
def rule(host, number, net, table):
    BODY
    return 3 - host
def prepare(topology, options, generator):
    return {PLAN.format("")}
"""

def simulate(folder: Path, text: str, more: str = "") -> Simulation:
    (folder / "mine.py").write_text(HEAD + text)
    lines = f"name: x\n{MESH}\ntraffic: {{pattern: file, file: mine.py{more}}}"
    return Simulation(parse_config(lines, folder=folder), 0.3, 1)


def pattern_with(body: str) -> str:
    return PATTERN.replace("BODY", body)


def test_the_pattern_that_the_cases_spoil_runs(tmp_path: Path) -> None:
    run = simulate(tmp_path, pattern_with("pass"))
    run.advance(200)
    assert run.state["flits_ejected"] > 10


def test_it_is_told_wherever_destinations_are_drawn(tmp_path: Path) -> None:
    run = simulate(tmp_path, pattern_with("return 4"))
    with pytest.raises(UserCodeError, match=r"mine.py:4: rule: returned 4; "):
        draw_packets(run, 100)
    with pytest.raises(UserCodeError, match=r"mine.py:4: rule: returned 4; "):
        draw_destinations(run.traffic, np.zeros(4, np.int64), 10, seed=1)
    model = "router: {model: input_output_queued}"
    lines = f"name: x\n{MESH}\n{model}\ntraffic: {{pattern: file, file: mine.py}}"
    with pytest.raises(UserCodeError, match=r"mine.py:4: rule: returned 4; "):
        Simulation(parse_config(lines, folder=tmp_path), 0.3, 1).advance(1000)


LISTED = """
def rule(host, number, net, table):
    return table[table[number % 8]]
def prepare(topology, options, generator):
    return TrafficPlan(destination_rule(rule), np.array(options["list"], np.int32))
"""


@settings(max_examples=40, deadline=None)
@given(listed=st.lists(st.one_of(st.integers(0, 3), st.integers(0, 3), st.integers(-1, 9)), min_size=8, max_size=8))
def test_whatever_a_pattern_answers_it_is_a_host_or_told(
    tmp_path_factory: pytest.TempPathFactory, listed: list[int]
) -> None:
    path = tmp_path_factory.getbasetemp() / "listed.py"
    path.write_text(HEAD + LISTED)
    checked = parse_config(f"name: x\n{MESH}")
    plan = user_traffic(build(checked.topology, checked.address), path, {"list": listed}, np.random.default_rng(1))
    good = all(0 <= k < 8 and 0 <= listed[k] < 4 for k in listed)
    if good:
        found = draw_destinations(plan, np.zeros(4, np.int64), 16, seed=1)
        assert found.tolist() == [[listed[listed[number % 8]] for number in range(16)]] * 4
        return
    with pytest.raises(UserCodeError, match=r"listed.py:[45]: rule: (index -?[0-9]+ of table|returned -?[0-9]+; )"):
        draw_destinations(plan, np.zeros(4, np.int64), 16, seed=1)
