"""Deciding, storing and training: schedules and counters of the golden data, and what they leave open."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopforge.model.dqn.agents import (
    BEGUN,
    COPIES,
    DECISIONS,
    DIVERGED,
    RANDOM,
    RESTARTS,
    STORED,
    TRAININGS,
    Agents,
    DivergedError,
    new_agents,
    raise_if_diverged,
)
from hopforge.model.dqn.exploration import SCHEDULES, chosen, exploration_rate
from hopforge.model.dqn.forward import greedy
from hopforge.model.dqn.learning import decide, end_decision, restart, store
from hopforge.model.dqn.settings import AgentSettings
from hopforge.model.dqn.shape import NetworkShape

sys.path.insert(0, str(Path(__file__).parent))
from dqn_cases import cases

SHAPE = NetworkShape(7, 5, 5, 5, 2)
NOTHING = np.zeros(7, np.float32)


def played(settings: AgentSettings, given: dict[str, Any], seed: int = 1) -> tuple[Agents, list[list[int]], list[int]]:
    """Let agent 0 decide; its n-th decision has the observation n. Return decision, samples, ring of each training."""
    agents = new_agents(SHAPE, settings, 2, seed)
    every, lost = given.get("episode_every", 1), given.get("lost_every", 0)
    seen, trainings = np.zeros((1, 7), np.float32), []
    actions: list[int] = []
    for n in range(1, given["decisions"] + 1):
        seen[:] = n
        actions.append(decide(agents, 0, seen, 3))
        due = n - given["reward_after"]
        if due > 0 and due % every == 0 and not (lost and due // every % lost == 0):
            before = agents.counts[0, TRAININGS]
            store(agents, 0, np.full(7, due, np.float32), actions[due - 1], 0.5, NOTHING, -1, 0)
            if agents.counts[0, TRAININGS] > before:
                stored = int(agents.counts[0, STORED])
                trainings.append([n, stored, min(stored, settings.replay)])
        end_decision(agents, 0)
    return agents, trainings, actions


def test_exploration_rates() -> None:
    found = cases("schedules")
    for case in found["epsilon"]:
        rate = exploration_rate(SCHEDULES[case["schedule"]], case["decisions_before"])
        assert rate == pytest.approx(case["epsilon"], rel=1e-14)
    for case in found["choice"]:
        rate = exploration_rate(SCHEDULES[case["schedule"]], case["decisions_before"])
        best = greedy(np.array(case["q"]), (1 << len(case["q"])) - 1)
        assert chosen(rate, case["u"], case["random_action"], best) == case["action"]


COUNTERS = [
    pytest.param(case, marks=[pytest.mark.study] if case["in"]["decisions"] > 5000 else [], id=str(case["in"]))
    for case in cases("schedules")["counters"]
]


@pytest.mark.parametrize("case", COUNTERS)
def test_trainings_and_copies(case: dict[str, Any]) -> None:
    settings = AgentSettings(replay=case["in"].get("capacity", 50_000), batch=1)
    agents, trainings, _ = played(settings, case["in"])
    assert len(trainings) == case["n_trainings"] == agents.counts[0, TRAININGS]
    assert trainings[:8] == case["trainings_first"]
    assert trainings[-4:] == case["trainings_last"]
    text = json.dumps([training[0] for training in trainings], separators=(",", ":"))
    assert hashlib.sha256(text.encode()).hexdigest() == case["trainings_sha256"]
    assert agents.counts[0, STORED] == case["stored"]
    assert min(agents.counts[0, STORED], settings.replay) == case["ring_fill"]
    assert agents.counts[0, STORED] % settings.replay == case["ring_next"] % settings.replay
    assert [[place, int(agents.samples[0, place, 0])] for place, _ in case["ring_probe"]] == case["ring_probe"]
    assert agents.counts[0, COPIES] == case["n_target_updates"]
    assert agents.counts[0, DECISIONS] == case["in"]["decisions"]


def test_a_seed_gives_the_same_bits() -> None:
    settings = AgentSettings(learning_starts=100, batch=8)
    runs = [played(settings, {"decisions": 2000, "reward_after": 3}, seed) for seed in (1, 1, 2)]
    for first, second in zip(runs[0][0], runs[1][0], strict=True):
        assert first.tobytes() == second.tobytes()
    assert runs[0][2] == runs[1][2]
    assert (runs[0][0].weights != runs[2][0].weights).any()


def test_random_actions_follow_the_schedule() -> None:
    agents, _, seen = played(AgentSettings(learning_starts=0), {"decisions": 4000, "reward_after": 0})
    expected = sum(1 - 0.98 * n / 10000 for n in range(4000))
    assert abs(agents.counts[0, RANDOM] - expected) < 4 * np.sqrt(expected)
    assert 0.3 < np.mean(seen) < 0.7
    assert agents.counts[0, TRAININGS] == 0
    assert (agents.counts[1] == 0).all()


def test_only_allowed_actions() -> None:
    agents = new_agents(NetworkShape.of_grid(2, 4, 4, 4), AgentSettings(), 1, 1)
    observation = np.zeros((1, 13), np.float32)
    found = [decide(agents, 0, observation, 0b1010) for _ in range(200)]
    assert set(found) == {1, 3}


def test_bootstrap_takes_the_next_routers_agent() -> None:
    settings = AgentSettings(bootstrap=True, learning_starts=1, train_every=1, batch=4, replay=4)
    one, other = (new_agents(SHAPE, settings, 2, 1) for _ in range(2))
    later = np.full(7, 0.5, np.float32)
    store(one, 0, NOTHING, 1, -1.0, later, 1, 3)
    store(other, 0, NOTHING, 1, -1.0, later, -1, 0)
    assert (other.batch_targets == -1).all()
    assert (one.batch_targets != -1).all()
    best = greedy(_q(one.weights[1], later), 3)
    assert one.batch_targets == pytest.approx(-1 + 0.99 * _q(one.target[1], later)[best], rel=1e-6)


def _q(w: np.ndarray, observation: np.ndarray) -> np.ndarray:
    """Formula of the definition in numpy."""
    part = SHAPE.split(w.astype(np.float64))
    h = np.tanh(np.tanh(observation @ part["W1"] + part["b1"]) @ part["W2"] + part["b2"])
    advantage = np.maximum(h @ part["WA1"] + part["bA1"], 0) @ part["WA2"] + part["bA2"]
    value = np.maximum(h @ part["WV1"] + part["bV1"], 0) @ part["WV2"] + part["bV2"]
    return np.asarray(value + advantage - advantage.mean())


@pytest.mark.parametrize("rate", [1e39, 1e30])
def test_divergence_is_told_and_stops_the_agent(rate: float) -> None:
    settings = AgentSettings(learning_rate=rate, learning_starts=8, batch=8)
    agents, _, _ = played(settings, {"decisions": 400, "reward_after": 0})
    step = agents.counts[0, DIVERGED]
    assert 1 <= step == agents.counts[0, TRAININGS] < 50
    with pytest.raises(DivergedError, match=rf"^agent 0: training step {step} gave .*learning_rate 1e\+3[09] is too"):
        raise_if_diverged(agents)
    raise_if_diverged(new_agents(SHAPE, settings, 1, 1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate must be a number > 0, not 0.0"),
        ({"learning_rate": float("nan")}, "learning_rate must be a number > 0, not nan"),
        ({"beta2": 1.0}, "beta2 must be 0 … below 1, not 1.0"),
        ({"gamma": 1.1}, "gamma must be 0 … 1, not 1.1"),
        ({"batch": 0}, "batch must be 1 … 65536, not 0"),
        ({"exploration": "never"}, "exploration must be one of configuration, text, none, late, not 'never'"),
    ],
)
def test_settings_beyond_their_limits(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AgentSettings(**change)


def test_shapes_beyond_their_limits() -> None:
    with pytest.raises(ValueError, match="DQN routing takes 1 … 4 dimensions, not 5"):
        NetworkShape.of_grid(5)
    with pytest.raises(ValueError, match="head must be 1 … 4096, not 0"):
        NetworkShape(13, 8, 8, 0, 4)
    assert NetworkShape.of_grid(4).inputs == 25
    assert NetworkShape.of_grid(4).actions == 8


def decided(agents: Agents, q: float, decisions: int) -> None:
    """Let agent 0 decide with a network whose Q is the same everywhere."""
    agents.weights[:] = 0
    SHAPE.split(agents.weights[0])["bV2"][:] = q
    for _ in range(decisions):
        decide(agents, 0, np.zeros((1, 7), np.float32), 3)


@pytest.mark.parametrize(("greatest", "kept", "fallen"), [(1.0, 0.55, 0.46), (-1.0, -1.45, -1.54)])
def test_an_agent_whose_q_falls_begins_anew(greatest: float, kept: float, fallen: float) -> None:
    settings = AgentSettings(restart_below=0.5, restart_window=10, exploration="none", learning_starts=0, replay=8)
    agents = new_agents(SHAPE, settings, 2, 1)
    for k in range(5):
        store(agents, 0, np.full(7, k, np.float32), 1, 0.5, NOTHING, -1, 0)
    decided(agents, greatest, 10)
    decided(agents, kept, 15)
    decided(agents, fallen, 4)
    assert (agents.counts[:, RESTARTS] == 0).all()
    assert agents.counts[0, RANDOM] == 0
    decided(agents, fallen, 1 + 10)  # the window of 5 + 5 is above; the next is below
    assert agents.counts[0, RESTARTS] == 1
    assert agents.counts[0, BEGUN] == 40
    decided(agents, fallen, 500)
    assert agents.counts[0, RANDOM] > 450, "it explores as at the beginning"
    store(agents, 0, np.full(7, 9, np.float32), 1, 0.5, NOTHING, -1, 0)
    assert agents.samples[0, :6, 0].tolist() == [9, 1, 2, 3, 4, 0], "the ring begins anew"
    assert agents.counts[0, STORED] == 6
    assert (agents.counts[1] == 0).all()


def test_after_a_restart_batches_hold_new_samples_only() -> None:
    settings = AgentSettings(learning_starts=3, train_every=1, batch=8, replay=50)
    agents = new_agents(SHAPE, settings, 1, 1)
    for k in range(20):
        store(agents, 0, np.full(7, k, np.float32), 1, 0.5, NOTHING, -1, 0)
    before = agents.counts[0, TRAININGS]
    assert before == 18
    restart(agents, 0)
    for k in range(20, 25):
        store(agents, 0, np.full(7, k, np.float32), 1, 0.5, NOTHING, -1, 0)
        assert agents.counts[0, TRAININGS] - before == max(k - 21, 0)
    assert set(agents.batch[:, 0].tolist()) <= {20.0, 21.0, 22.0, 23.0, 24.0}


def test_rewards_beyond_floats_are_told() -> None:
    agents = new_agents(SHAPE, AgentSettings(learning_starts=1, train_every=1, batch=2), 1, 1)
    store(agents, 0, NOTHING, 0, 1e300, NOTHING, -1, 0)
    with pytest.raises(DivergedError, match=r"agent 0: training step 1 gave .* is too large, or rewards are"):
        raise_if_diverged(agents)
