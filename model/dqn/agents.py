"""Agents: networks that decide, store samples and learn from them; all state in arrays, all steps compiled.

One record of arrays holds all agents of a network; kernels take it with the number of an agent.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hopforge.model.dqn.exploration import SCHEDULES
from hopforge.model.dqn.gradient import work_size
from hopforge.model.dqn.settings import AgentSettings
from hopforge.model.dqn.shape import NetworkShape
from hopforge.model.errors import DivergedError
from hopforge.model.kernel.rng import seed_streams

__all__ = [
    "BEGUN",
    "COPIES",
    "COUNTS",
    "DECISIONS",
    "DIVERGED",
    "FORGOTTEN",
    "GREATEST",
    "LIMITS",
    "LOSS",
    "RANDOM",
    "RATES",
    "RESTARTS",
    "REWARD",
    "STORED",
    "SUMS",
    "TRAININGS",
    "WINDOW_COUNT",
    "WINDOW_Q",
    "Agents",
    "DivergedError",
    "Q",
    "agent_bytes",
    "new_agents",
    "raise_if_diverged",
]  # fmt: skip

#: columns of `Agents.counts`; `DIVERGED` is the training step that gave no number, 0: none; `BEGUN` and `FORGOTTEN`
#: the decisions and samples at the last restart
DECISIONS, RANDOM, STORED, TRAININGS, COPIES, DIVERGED, RESTARTS, BEGUN, FORGOTTEN, WINDOW_COUNT = range(10)
COUNTS = 10
#: columns of `Agents.sums`: largest Q of each decision, reward of each sample, loss of each training step; Q of the
#: window that shows whether it falls, and the greatest mean of a window
Q, REWARD, LOSS, WINDOW_Q, GREATEST = range(5)
SUMS = 5
#: columns of `Agents.rates` and `Agents.limits`
RATE, BETA1, BETA2, EPSILON, CLIP_NORM, GAMMA, RESTART_BELOW = range(7)
RATES = 7
BATCH, STARTS, EVERY, TARGET_EVERY, SCHEDULE, WINDOW = range(6)
LIMITS = 6
#: uses of the seed
_WEIGHTS, _EXPLORATION, _SAMPLES = 0x44514E00, 0x44514E01, 0x44514E02
LANES = 16


class Agents(NamedTuple):
    """State of all agents: arrays only, for the kernels. Floats are of one type, float32 or float64.

    Attributes
    ----------
    widths, starts : int64[5], int64[13]
        Of the network (`NetworkShape`).
    rates, limits : float64[7], int64[6]
        Settings.
    weights, target, moment1, moment2 : float[agent, weight]
        Networks, target networks, Adam's moments.
    samples, next_samples : float[agent, place, input]
        Observations of the replay ring, and those at the next router (no places without `bootstrap`).
    actions, rewards : int32[agent, place], float[agent, place]
        Of the samples.
    next_agents, next_allowed : int32[agent, place]
        Agent of the next router (−1: the packet has no further decision), and its mask of actions.
    streams : uint64[2 · agents]
        Random streams: exploration, then samples of a batch, of each agent.
    counts, sums : int64[agent, 10], float64[agent, 5]
        See the columns above.
    batch, batch_actions, batch_targets
        Float[row, input], int32[row], float[row]: the batch of a training step.
    gradient, work, lanes, norms
        Scratch.
    """

    widths: NDArray[np.int64]
    starts: NDArray[np.int64]
    rates: NDArray[np.float64]
    limits: NDArray[np.int64]
    weights: NDArray[Any]
    target: NDArray[Any]
    moment1: NDArray[Any]
    moment2: NDArray[Any]
    samples: NDArray[Any]
    actions: NDArray[np.int32]
    rewards: NDArray[Any]
    next_samples: NDArray[Any]
    next_agents: NDArray[np.int32]
    next_allowed: NDArray[np.int32]
    streams: NDArray[np.uint64]
    counts: NDArray[np.int64]
    sums: NDArray[np.float64]
    batch: NDArray[Any]
    batch_actions: NDArray[np.int32]
    batch_targets: NDArray[Any]
    gradient: NDArray[Any]
    work: NDArray[Any]
    lanes: NDArray[Any]
    norms: NDArray[np.float64]


def agent_bytes(shape: NetworkShape, settings: AgentSettings, count: int) -> int:
    """Return the bytes that so many agents take in float32, and the numbers that are drawn for one of them."""
    sample = (shape.inputs + 2) * 4
    later = (shape.inputs + 2) * 4 if settings.bootstrap else 0
    scratch = 4 * (shape.weights + work_size(shape.widths, settings.batch) + settings.batch * (shape.inputs + 2))
    return count * (16 * shape.weights + settings.replay * (sample + later)) + scratch + 24 * shape.weights


def new_agents(
    shape: NetworkShape, settings: AgentSettings, count: int, seed: int, dtype: DTypeLike = np.float32
) -> Agents:
    """Return agents that have learned nothing; each draws its weights and its random numbers from the seed."""
    if count < 1:
        raise ValueError(f"there must be 1 agent or more, not {count}")
    weights = np.empty((count, shape.weights), dtype)
    for k in range(count):  # one by one: drawn numbers take twice the room
        weights[k] = shape.drawn(np.random.Generator(np.random.PCG64((seed, _WEIGHTS, k))))
    places, later = settings.replay, settings.replay if settings.bootstrap else 0
    one, streams = np.ones((), dtype).dtype, np.zeros(2 * count, np.uint64)
    streams[::2] = seed_streams(seed, _EXPLORATION, count)
    streams[1::2] = seed_streams(seed, _SAMPLES, count)
    return Agents(
        widths=shape.widths,
        starts=shape.starts,
        rates=np.array([
            settings.learning_rate, settings.beta1, settings.beta2, settings.epsilon, settings.clip_norm,
            settings.gamma, settings.restart_below,
        ]),
        limits=np.array([
            settings.batch, settings.learning_starts, settings.train_every, settings.target_every,
            SCHEDULES[settings.exploration], settings.restart_window,
        ]),
        weights=weights,
        target=weights.copy(),
        moment1=np.zeros_like(weights),
        moment2=np.zeros_like(weights),
        samples=np.zeros((count, places, shape.inputs), one),
        actions=np.zeros((count, places), np.int32),
        rewards=np.zeros((count, places), one),
        next_samples=np.zeros((count, later, shape.inputs), one),
        next_agents=np.full((count, later), -1, np.int32),
        next_allowed=np.zeros((count, later), np.int32),
        streams=streams,
        counts=np.zeros((count, COUNTS), np.int64),
        sums=np.tile([0.0, 0.0, 0.0, 0.0, -np.inf], (count, 1)),
        batch=np.zeros((settings.batch, shape.inputs), one),
        batch_actions=np.zeros(settings.batch, np.int32),
        batch_targets=np.zeros(settings.batch, one),
        gradient=np.zeros(shape.weights, one),
        work=np.zeros(work_size(shape.widths, settings.batch), one),
        lanes=np.zeros(LANES, one),
        norms=np.zeros(len(shape.starts) - 1),
    )  # fmt: skip


def raise_if_diverged(agents: Agents) -> None:
    """Raise `DivergedError` for the first agent whose training gave no numbers."""
    for agent in np.flatnonzero(agents.counts[:, DIVERGED]):
        step, rate = agents.counts[agent, DIVERGED], agents.rates[RATE]
        raise DivergedError(
            f"agent {agent}: training step {step} gave weights or a loss that are no numbers; "
            f"learning_rate {rate:g} is too large, or rewards are"
        )
