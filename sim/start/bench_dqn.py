"""Speed of the agent of DQN routing on this machine, of the seed's network: 202 245 weights, batch 32."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hopforge.model.dqn.agents import Agents, new_agents
from hopforge.model.dqn.forward import forward
from hopforge.model.dqn.learning import decide, end_decision, store, train
from hopforge.model.dqn.settings import AgentSettings
from hopforge.model.dqn.shape import NetworkShape
from hopforge.sim.start.bench import Case

__all__ = ["AIMS", "dqn_cases"]

INFERENCES = 2000
TRAININGS = 100
DECISIONS = 1000
#: units per second and core, by name of the case: 100 000 decisions of a 4×4 torus in 120 s
AIMS = {"inference": 20_000.0, "training step": 250.0, "decision and its share of training": 100_000 / 120}


def _agents() -> tuple[Agents, np.ndarray]:
    """One agent that trains from its first sample on, and observations."""
    agents = new_agents(NetworkShape.of_grid(2), AgentSettings(learning_starts=1), 1, 1)
    return agents, np.random.default_rng(1).random((DECISIONS, 1, 13)).astype(np.float32)


def _inference() -> Callable[[], Any]:
    agents, seen = _agents()

    def run() -> None:
        for n in range(INFERENCES):
            forward(agents.weights[0], agents.widths, seen[n % DECISIONS], agents.work)

    return run


def _training() -> Callable[[], Any]:
    agents, seen = _agents()
    agents.batch[:] = seen[: len(agents.batch), 0]

    def run() -> None:
        for _ in range(TRAININGS):
            train(agents, 0)

    return run


def _decision() -> Callable[[], Any]:
    agents, seen = _agents()

    def run() -> None:
        for n in range(DECISIONS):
            action = decide(agents, 0, seen[n], 15)
            store(agents, 0, seen[n, 0], action, 0.5, seen[n, 0], -1, 0)
            end_decision(agents, 0)

    return run


def dqn_cases() -> Iterator[Case]:
    """Yield what `hopforge bench dqn` times."""
    yield Case("inference", "inference", INFERENCES, _inference)
    yield Case("training step", "step", TRAININGS, _training)
    yield Case("decision and its share of training", "decision", DECISIONS, _decision)
