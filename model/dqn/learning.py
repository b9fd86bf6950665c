"""What agents do, compiled: decide, store a sample, train, copy to the target network."""

from typing import Any

import numpy as np

from hopforge.model.dqn.adam import adam_step, clip, step_size
from hopforge.model.dqn.agents import (
    BATCH,
    BEGUN,
    BETA1,
    BETA2,
    CLIP_NORM,
    COPIES,
    DECISIONS,
    DIVERGED,
    EPSILON,
    EVERY,
    FORGOTTEN,
    GAMMA,
    GREATEST,
    LOSS,
    RANDOM,
    RATE,
    RESTART_BELOW,
    RESTARTS,
    REWARD,
    SCHEDULE,
    STARTS,
    STORED,
    TARGET_EVERY,
    TRAININGS,
    WINDOW,
    WINDOW_COUNT,
    WINDOW_Q,
    Agents,
    Q,
)
from hopforge.model.dqn.dense import compiled, part
from hopforge.model.dqn.exploration import chosen, exploration_rate, last_change, later_schedule
from hopforge.model.dqn.forward import forward, greedy
from hopforge.model.dqn.gradient import loss_and_gradient
from hopforge.model.kernel.rng import next_below, next_float

__all__ = ["decide", "end_decision", "put_targets", "restart", "store", "take_action", "train"]


@part
def _drawn_action(streams: Any, number: int, actions: int, allowed: int) -> int:
    """Return one of the allowed actions, each as likely as the others."""
    count = 0
    for j in range(actions):
        count += (allowed >> j) & 1
    left = next_below(streams, number, count)
    for j in range(actions):
        if (allowed >> j) & 1:
            if left == 0:
                return j
            left -= 1
    return 0


@compiled
def take_action(agents: Agents, agent: int, q: Any, best: int, allowed: int) -> int:
    """Return the best action of an agent, or a random one; `q`: the Q values of all actions."""
    counts = agents.counts
    schedule = later_schedule(agents.limits[SCHEDULE], counts[agent, RESTARTS])
    done = counts[agent, DECISIONS] - counts[agent, BEGUN]
    rate = exploration_rate(schedule, done)
    draw = next_float(agents.streams, 2 * agent)
    action = best
    if draw < rate:
        drawn = _drawn_action(agents.streams, 2 * agent, q.shape[0], allowed)
        action = chosen(rate, draw, drawn, best)
        counts[agent, RANDOM] += 1
    counts[agent, DECISIONS] += 1
    agents.sums[agent, Q] += q[best]
    if agents.rates[RESTART_BELOW] > 0 and done >= last_change(schedule):
        _watch(agents, agent, np.float64(q[best]))
    return action


@part
def _watch(agents: Agents, agent: int, q: float) -> None:
    """Note the largest Q of a decision; at the end of a window begin anew if its mean has fallen."""
    counts, sums = agents.counts[agent], agents.sums[agent]
    counts[WINDOW_COUNT] += 1
    sums[WINDOW_Q] += q
    if counts[WINDOW_COUNT] < agents.limits[WINDOW]:
        return
    mean, greatest = sums[WINDOW_Q] / counts[WINDOW_COUNT], sums[GREATEST]
    counts[WINDOW_COUNT], sums[WINDOW_Q] = 0, 0.0
    if mean < greatest - (1 - agents.rates[RESTART_BELOW]) * abs(greatest):
        restart(agents, agent)
    else:
        sums[GREATEST] = max(greatest, mean)


@compiled
def restart(agents: Agents, agent: int) -> None:
    """Let an agent explore from the beginning and forget its samples; what it has learned stays."""
    counts, sums = agents.counts[agent], agents.sums[agent]
    counts[RESTARTS] += 1
    counts[BEGUN], counts[FORGOTTEN], counts[WINDOW_COUNT] = counts[DECISIONS], counts[STORED], 0
    sums[WINDOW_Q], sums[GREATEST] = 0.0, -np.inf


@compiled
def decide(agents: Agents, agent: int, observation: Any, allowed: int) -> int:
    """Return the action of an agent; call `end_decision` when the samples that fall due with it are stored.

    `take_action` is the same for a best action that is known.

    Parameters
    ----------
    agents : Agents
    agent : int
        Which one.
    observation : float[1, input]
    allowed : int
        Mask of the actions that lead somewhere; one bit or more.
    """
    q = forward(agents.weights[agent], agents.widths, observation, agents.work)[0]
    return int(take_action(agents, agent, q, greedy(q, allowed), allowed))


@compiled
def end_decision(agents: Agents, agent: int) -> None:
    """Copy the network to the target network after every so many decisions."""
    if agents.counts[agent, DECISIONS] % agents.limits[TARGET_EVERY] == 0:
        for k in range(agents.weights.shape[1]):  # an assignment of rows takes seconds to compile
            agents.target[agent, k] = agents.weights[agent, k]
        agents.counts[agent, COPIES] += 1


@compiled
def store(
    agents: Agents, agent: int, observation: Any, action: int, reward: float, later: Any, next_agent: int, allowed: int
) -> None:
    """Put a sample into an agent's replay ring, over the oldest one, and train if it is time.

    `later`, `next_agent` and `allowed` (observation, agent and mask at the next router; −1: no further decision) count
    only with bootstrap.
    """
    counts = agents.counts
    place = (counts[agent, STORED] - counts[agent, FORGOTTEN]) % agents.samples.shape[1]
    for j in range(agents.samples.shape[2]):
        agents.samples[agent, place, j] = observation[j]
    agents.actions[agent, place] = action
    agents.rewards[agent, place] = reward
    if agents.next_agents.shape[1] > 0:
        for j in range(agents.samples.shape[2]):
            agents.next_samples[agent, place, j] = later[j]
        agents.next_agents[agent, place] = next_agent
        agents.next_allowed[agent, place] = allowed
    counts[agent, STORED] += 1
    agents.sums[agent, REWARD] += reward
    stored, starts = counts[agent, STORED] - counts[agent, FORGOTTEN], agents.limits[STARTS]
    if starts > 0 and stored >= starts and stored % agents.limits[EVERY] == 0:
        _draw_batch(agents, agent)
        train(agents, agent)


@part
def _draw_batch(agents: Agents, agent: int) -> None:
    """Fill the batch with samples drawn uniformly, with replacement."""
    fill = min(agents.counts[agent, STORED] - agents.counts[agent, FORGOTTEN], agents.samples.shape[1])
    for i in range(agents.limits[BATCH]):
        place = next_below(agents.streams, 2 * agent + 1, fill)
        for j in range(agents.samples.shape[2]):
            agents.batch[i, j] = agents.samples[agent, place, j]
        agents.batch_actions[i] = agents.actions[agent, place]
        reward = agents.rewards[agent, place]
        if agents.next_agents.shape[1] > 0:
            put_targets(agents, i, reward, agents.next_samples[agent, place], agents.next_agents[agent, place],
                        agents.next_allowed[agent, place])  # fmt: skip
        else:
            agents.batch_targets[i] = reward


@compiled
def put_targets(agents: Agents, row: int, reward: float, later: Any, next_agent: int, allowed: int) -> None:
    """Set the target of a row of the batch: r + γ Q_target(s′, argmax Q(s′)), both of the next router's agent."""
    value = np.float64(reward)
    if next_agent >= 0:
        observation = later.reshape((1, later.shape[0]))
        action = greedy(forward(agents.weights[next_agent], agents.widths, observation, agents.work)[0], allowed)
        estimate = forward(agents.target[next_agent], agents.widths, observation, agents.work)[0, action]
        value += agents.rates[GAMMA] * estimate
    agents.batch_targets[row] = value


@compiled
def train(agents: Agents, agent: int) -> None:
    """Take a training step with the batch; an agent that got no numbers takes none any more."""
    counts, rates = agents.counts, agents.rates
    if counts[agent, DIVERGED] > 0:
        return
    w, g = agents.weights[agent], agents.gradient
    real = w.dtype.type
    counts[agent, TRAININGS] += 1
    loss = loss_and_gradient(
        w, agents.widths, agents.batch, agents.batch_actions, agents.batch_targets, agents.work, g
    )
    agents.sums[agent, LOSS] += loss
    sound = clip(g, agents.starts, rates[CLIP_NORM], agents.norms, agents.lanes) and np.isfinite(loss)
    if sound:
        rate = step_size(rates[RATE], rates[BETA1], rates[BETA2], counts[agent, TRAININGS])
        sound = adam_step(w, agents.moment1[agent], agents.moment2[agent], g, real(rate), real(rates[BETA1]),
                          real(rates[BETA2]), real(rates[EPSILON]))  # fmt: skip
    if not sound:
        counts[agent, DIVERGED] = counts[agent, TRAININGS]
