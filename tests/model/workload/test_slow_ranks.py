"""Stragglers and noise: which computations take longer, by how much, and what stays."""

import numpy as np
import pytest

from hopforge.model.config.workload import ComputingConfig
from hopforge.model.workload.goal_text import parse_goal
from hopforge.model.workload.operations import COMPUTE, SLEEP
from hopforge.model.workload.program import Program
from hopforge.model.workload.schedule import CALC, GoalError
from hopforge.model.workload.slow_ranks import factors, slowed_program, slowed_schedule

RANKS = 40


def program() -> Program:
    """Every rank computes 100 and then 300 flops, which are one amount for all, and sleeps."""
    kind = np.array([COMPUTE, SLEEP, COMPUTE] * RANKS, np.int8)
    nothing = np.empty(0, np.int32)
    return Program(
        ranks=RANKS, first=np.arange(RANKS + 1) * 3, kind=kind, operand=np.array([0, 1, 2] * RANKS),
        action=np.zeros(len(kind), np.int32), amount=np.array([100.0, 0.5, 300.0]), source=nothing,
        destination=nothing, size_bytes=nothing.astype(np.int64),
    )  # fmt: skip


def flops(of: Program) -> np.ndarray:
    return of.amount[of.operand].reshape(RANKS, 3)


def test_nothing_changes_without_stragglers_and_noise() -> None:
    given = program()
    for even in (ComputingConfig(), ComputingConfig(slowdown=5.0), ComputingConfig(stragglers=3, slowdown=1.0)):
        assert slowed_program(given, even, 1) is given


def test_stragglers_take_longer_for_every_computation_and_nobody_sleeps_longer() -> None:
    found = flops(slowed_program(program(), ComputingConfig(stragglers=7, slowdown=3.0), 5))
    slow = found[:, 0] == 300
    assert slow.sum() == 7
    assert (found[slow] == [300, 0.5, 900]).all()
    assert (found[~slow] == [100, 0.5, 300]).all()
    assert (flops(program()) == [100, 0.5, 300]).all()
    other = flops(slowed_program(program(), ComputingConfig(stragglers=7, slowdown=3.0), 6))
    assert (other != found).any()
    more = flops(slowed_program(program(), ComputingConfig(stragglers=8, slowdown=3.0), 5))
    assert (more[slow] == found[slow]).all()  # one more is slow, the others stay


def test_noise_has_mean_1_and_its_deviation() -> None:
    rank = np.repeat(np.arange(RANKS), 10_000)
    found = factors(ComputingConfig(noise=0.25), rank, RANKS, 3)
    assert found.min() > 0
    assert found.mean() == pytest.approx(1, abs=4 * 0.25 / np.sqrt(len(rank)))
    # fourth moment of this log-normal number: a standard error of the deviation below 0.0005
    assert found.std() == pytest.approx(0.25, abs=0.002)
    each = found.reshape(RANKS, -1).mean(axis=1)
    assert np.abs(each - 1).max() < 5 * 0.25 / 100  # of no rank more than of another
    assert (factors(ComputingConfig(noise=0.25), rank, RANKS, 3) == found).all()


def test_both_multiply() -> None:
    rank = np.arange(RANKS)
    noisy = factors(ComputingConfig(noise=0.5), rank, RANKS, 9)
    both = factors(ComputingConfig(noise=0.5, stragglers=RANKS, slowdown=4.0), rank, RANKS, 9)
    assert both == pytest.approx(4 * noisy)


def test_more_stragglers_than_ranks() -> None:
    with pytest.raises(ValueError, match=r"workload.computing.stragglers: must be at most the 40 ranks, not 41"):
        slowed_program(program(), ComputingConfig(stragglers=41), 1)


def test_computations_of_a_schedule() -> None:
    text = "num_ranks 2\nrank 0 {\ncalc 10\nsend 10b to 1\n}\nrank 1 {\nrecv 10b from 0\ncalc 7\n}\n"
    given = parse_goal("x", "x.goal", text)
    found = slowed_schedule(given, ComputingConfig(stragglers=2, slowdown=1.5), 1)
    assert found.size.tolist() == [15, 10, 10, 10]  # 10.5 is nearest to the even 10
    assert (found.kind == CALC).sum() == 2
    assert given.size.tolist() == [10, 10, 10, 7]
    assert slowed_schedule(given, ComputingConfig(), 1) is given
    huge = parse_goal("x", "x.goal", text.replace("calc 7", f"calc {1 << 62}"))
    with pytest.raises(GoalError, match=r"^x.goal:8: a computation of .* units \(workload.computing\) is 2\^63"):
        slowed_schedule(huge, ComputingConfig(stragglers=2), 1)
    with pytest.raises(GoalError, match="must be at most the 2 ranks, not 3"):
        slowed_schedule(given, ComputingConfig(stragglers=3), 1)
