"""The golden cases of the agent, as networks and arrays."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from hopforge.model.dqn.agents import LOSS, Agents, new_agents
from hopforge.model.dqn.learning import put_targets, train
from hopforge.model.dqn.settings import AgentSettings
from hopforge.model.dqn.shape import NetworkShape

FOLDER = Path(__file__).parents[2] / "data" / "dqn"


def cases(name: str) -> Any:
    found = json.loads((FOLDER / f"{name}.json").read_text())
    assert found
    return found


NETS = cases("agent_nets")


def shape_of(arch: dict[str, int]) -> NetworkShape:
    return NetworkShape(arch["inputs"], arch["h1"], arch["h2"], arch["head"], arch["actions"])


def weights_of(net: str, *, target: bool = False, head_times: float = 1.0) -> tuple[NetworkShape, np.ndarray]:
    """Shape and vector of a golden network."""
    shape = shape_of(NETS[net]["arch"])
    found = {name: np.array(value) for name, value in NETS[net]["target_weights" if target else "weights"].items()}
    for name in ("WA1", "WA2", "WV1", "WV2"):
        found[name] = found[name] * head_times
    return shape, shape.joined(found)


def seed_weights(case: dict[str, Any], *, target: bool = False) -> tuple[NetworkShape, np.ndarray]:
    """Shape and vector of the seed's network, drawn as the README says."""
    shape = shape_of(case["arch"])
    seed = case["target_generator_seed" if target else "generator_seed"]
    return shape, shape.drawn(np.random.Generator(np.random.PCG64(seed)), case["bias"])


def agent_with(
    shape: NetworkShape, weights: np.ndarray, batch: int, clip: float = 40.0, target: np.ndarray | None = None,
    dtype: Any = np.float64,
) -> Agents:  # fmt: skip
    agents = new_agents(shape, AgentSettings(clip_norm=clip, batch=batch, replay=1), 1, 1, dtype)
    agents.weights[0] = weights
    agents.target[0] = weights if target is None else target
    return agents


def fill_batch(agents: Agents, pool: dict[str, Any], places: np.ndarray) -> None:
    """Put transitions of a pool into the batch of a training step."""
    agents.batch[:] = np.array(pool["obs"])[places]
    agents.batch_actions[:] = np.array(pool["action"])[places]
    rewards = np.array(pool["reward"])
    if "next_obs" not in pool:
        agents.batch_targets[:] = rewards[places]
        return
    later, every = np.array(pool["next_obs"], agents.batch.dtype), (1 << int(agents.widths[-1])) - 1
    for row, place in enumerate(places):
        put_targets(agents, row, rewards[place], later[place], -1 if pool["done"][place] else 0, every)


def step_on_pool(agents: Agents, case: dict[str, Any], step: int) -> float:
    """Take training step 0, 1, … with transitions (batch · step + j) modulo the size of the pool; return the loss."""
    places = (case["batch"] * step + np.arange(case["batch"])) % len(case["pool"]["reward"])
    fill_batch(agents, case["pool"], places)
    before = agents.sums[0, LOSS]
    train(agents, 0)
    if case.get("target_every") and (step + 1) % case["target_every"] == 0:
        agents.target[0] = agents.weights[0]
    return float(agents.sums[0, LOSS] - before)
