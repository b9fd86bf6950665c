"""The golden table of Q-adaptive against the rule in whole numbers and fractions, and the simulator with its widths."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopforge.model.config import ConfigError, parse_config
from hopforge.model.errors import UserError
from hopforge.model.numbers.q_rule import in_steps, keeps_minimal, learned, rate_words
from hopforge.model.router.q_table import ANSWER_CYCLES, UPDATE_CYCLES, QTable, QTableParams, Query, SwitchLinks, Update
from hopforge.model.topology import build
from hopforge.sim.run.simulation import Simulation

TEXT = """
name: x
topology: {kind: dragonfly, p: 2, a: 4, h: 2}
address: {chunk_bits: 4}
router: {model: input_output_queued, vcs: 5}
traffic: {source: interval, pattern: adversarial, shift: 1}
routing: {algorithm: q_adaptive, %s}
"""
SMALL = QTableParams(groups=5, hosts=2, local_ports=3, global_ports=2, value_bits=10, near=300, far=330)
LINKS = SwitchLinks(2, (4, None))


@given(
    minimal=st.integers(1, 1 << 24), other=st.integers(0, 1 << 24), threshold=st.integers(0, 1024), draw=st.data()
)  # fmt: skip
def test_floats_decide_like_fractions(minimal: int, other: int, threshold: int, draw: Any) -> None:
    if draw.draw(st.booleans()):  # near the threshold
        other = max(0, minimal - minimal * threshold // 1024 + draw.draw(st.integers(-2, 2)))
    wanted = Fraction(minimal - other, minimal) < Fraction(threshold, 1024)
    assert keeps_minimal.py_func(minimal, other, threshold / 1024) == wanted


@given(st.integers(0, 1 << 24), st.integers(0, 1 << 24), st.integers(0, 1024), st.integers(0, 1023))
def test_floats_learn_like_whole_numbers(old: int, target: int, rate: int, dither: int) -> None:
    new = in_steps.py_func(learned.py_func(old, target, rate / 1024, rate / 1024), 1.0, np.inf, dither / 1024)
    assert new == old + (rate * (target - old) + dither) // 1024
    assert min(old, target) <= new <= max(old, target)


def test_rates_of_the_paper_in_1024ths() -> None:
    assert [rate_words(rate) for rate in (0.2, 0.04, 0.2, 0.35, 0.0, 1.0)] == [205, 41, 205, 358, 0, 1024]


def test_rows_begin_without_load() -> None:
    table = QTable(SMALL, LINKS)
    assert table.newest[table.row(4, 1)] == [330, 330, 330, 300, 1023]
    assert table.newest[table.row(0, 0)] == [330, 330, 330, 330, 1023]
    assert [table.row(group, host) for group in (0, 1, 3, 4) for host in (0, 1)] == list(range(8))
    with pytest.raises(ValueError, match="group must be another than the own one, 2"):
        table.row(2, 0)


def test_decisions_by_hand() -> None:
    table = QTable(SMALL, LINKS)
    table.learn(Update(4, 0, 1, 0))  # 330 -> 330 - 66.06 = 264
    for _ in range(UPDATE_CYCLES + 1):
        table.cycle(None, None)
    assert table.newest[table.row(4, 0)] == [330, 264, 330, 300, 1023]
    ask = {"group": 4, "host": 0}
    # source router: 36/300 saved is not enough; 66/330 < 205/1024 neither; thresholds are shares of the minimal time
    assert table.answer(Query(**ask, minimal=3, first=True))[:3] == (3, False, 264)
    assert table.answer(Query(**ask, minimal=0, first=True)).column == 0
    table.learn(Update(4, 0, 1, 262))
    for _ in range(UPDATE_CYCLES + 1):
        table.cycle(None, None)
    assert table.answer(Query(**ask, minimal=0, first=True)).column == 0  # 264 - 0.4 is 264
    table.learn(Update(4, 0, 1, 259))  # 263: 67/330 saved
    for _ in range(UPDATE_CYCLES + 1):
        table.cycle(None, None)
    assert table.answer(Query(**ask, minimal=0, first=True))[:2] == (1, True)
    assert table.answer(Query(**ask, minimal=0, drawn=1, second=True)).column == 0  # the second threshold is higher
    assert table.answer(Query(**ask, minimal=0, drawn=2, first=True, explore=True)).column == 2
    assert table.answer(Query(**ask, minimal=0, drawn=2, explore=True)).column == 0  # no decision to be made
    assert table.answer(Query(**ask, minimal=0, elapsed=40)).report == 263 + 40
    assert table.answer(Query(**ask, minimal=0, elapsed=1000)).report == SMALL.largest


def test_updates_count_for_queries_three_cycles_later() -> None:
    table = QTable(SMALL, LINKS)
    while not table.ready:
        assert table.cycle(Query(4, 0, 0), None) == (False, False, None)
    told, asked, found = 0, [], []
    for _ in range(12):
        query = Query(4, 0, 0)
        _, accepted, answer = table.cycle(query, Update(4, 0, 3, 100))
        told += accepted
        asked.append(table.newest[table.row(4, 0)][3])
        if answer:
            found.append(answer.least)
    assert told == 12
    assert found == [300] * 3 + asked[: 12 - ANSWER_CYCLES - UPDATE_CYCLES]


def test_one_memory_lets_updates_wait() -> None:
    table = QTable(QTableParams(groups=5, hosts=2, local_ports=3, global_ports=2, shared_read=True), LINKS)
    while not table.ready:
        table.cycle(None, None)
    assert table.cycle(Query(4, 0, 0), Update(4, 0, 0, 1))[:2] == (True, False)
    assert table.cycle(None, Update(4, 0, 0, 1))[:2] == (True, True)
    assert table.params.memory_bits == table.params.table_bits == 8 * 5 * 16


def test_a_port_without_link_learns_nothing() -> None:
    table = QTable(SMALL, LINKS)
    table.learn(Update(4, 0, 4, 5))
    assert table.newest[table.row(4, 0)][4] == SMALL.no_link


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"groups": 2}, "groups must be between 3 and 4096, not 2"),
        ({"value_bits": 3}, "value_bits must be between 4 and 24, not 3"),
        ({"far": 1 << 16}, "far must be between 0 and 65534, not 65536"),
        ({"alpha": 1025}, "alpha must be between 0 and 1024, not 1025"),
    ],
)
def test_bad_parameters(changes: dict[str, int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        QTableParams(**({"groups": 5, "hosts": 2, "local_ports": 3, "global_ports": 2} | changes))
    with pytest.raises(ValueError, match="links must be of 2 global ports, not 1"):
        QTable(SMALL, SwitchLinks(0, (1,)))


def test_of_a_configuration() -> None:
    params = QTableParams.from_config(parse_config(TEXT % "beta: 0.1, estimate_bits: 12"))
    assert (params.rows, params.columns, params.value_bits) == (16, 5, 12)
    assert (params.near, params.far, params.beta, params.memory_bits) == (300, 330, 102, 2 * 16 * 5 * 12)
    fine = QTableParams.from_config(parse_config(TEXT % "estimate_fraction_bits: 3"))
    assert (fine.value_bits, fine.near) == (16, 2400)
    with pytest.raises(UserError, match=r"routing.estimate_bits must hold 330, .*: 8 bits end at 254 \(fewer"):
        QTableParams.from_config(parse_config(TEXT % "estimate_bits: 8, estimate_fraction_bits: 0"))
    with pytest.raises(UserError, match=r"routing.q_thld1 must be 0 to 1 .*, not 3$"):
        QTableParams.from_config(parse_config(TEXT % "q_thld1: 3.0"))
    with pytest.raises(UserError, match=r"routing.q_thld2 must be 0 to 1 .*, not -0.5$"):
        QTableParams.from_config(parse_config(TEXT % "q_thld2: -0.5"))
    with pytest.raises(UserError, match=r"topology.g must be at least 3 .*, not 2$"):
        QTableParams.from_config(parse_config((TEXT % "").replace("h: 2", "h: 2, g: 2")))
    with pytest.raises(UserError, match=r"topology.kind must be dragonfly .*, not mesh"):
        QTableParams.from_config(parse_config("name: x\ntopology: {kind: mesh, radices: [4]}\n"))
    with pytest.raises(ConfigError, match=r"routing.estimate_bits"):
        parse_config(TEXT % "estimate_bits: 3")


def test_sizes_of_the_paper() -> None:
    """(g − 1)·p rows of k − p estimates: 128 × 11 for 1056 hosts."""
    config = parse_config((TEXT % "").replace("p: 2, a: 4, h: 2", "p: 4, a: 8, h: 4").replace(", }", "}"))
    params = QTableParams.from_config(config)
    assert (params.rows, params.columns) == (128, 11)
    links = SwitchLinks.of_router(build(config.topology, config.address), params, 9)
    assert links == (1, (5, 6, 7, 8))


@pytest.mark.parametrize("rounding", ["nearest", "random"])
def test_the_simulator_learns_in_the_same_steps(rounding: str) -> None:
    text = TEXT % f"estimate_bits: 9, estimate_rounding: {rounding}, estimate_fraction_bits: -3"
    run = Simulation(parse_config(text), 0.3, 1)
    assert run.plan.estimates is not None
    run.advance(100_000)
    first, shape = run.plan.estimates
    table = run.state["memory"][first:].reshape(shape)
    assert (table % 8 == 0).all()
    assert len(np.unique(table)) > 20
    assert table.max() <= 510 * 8
    memory = run.state["memory"]
    assert memory[:2].tolist() == [205 / 1024, 41 / 1024]
