"""Ranks that compute more slowly than others: stragglers, and noise of every computation."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config.workload import ComputingConfig
from hopforge.model.workload.operations import COMPUTE
from hopforge.model.workload.program import Program
from hopforge.model.workload.schedule import CALC, GoalError, Schedule

#: largest time of a computation in a schedule
_LARGEST = float(1 << 63)


def factors(config: ComputingConfig, rank: NDArray[np.integer], ranks: int, seed: int) -> NDArray[np.float64]:
    """Return by what each computation takes longer.

    Parameters
    ----------
    config : ComputingConfig
        Section `workload.computing`.
    rank : ndarray, int[computation]
        Who computes.
    ranks : int
        Of the program.
    seed : int
        Which ranks are slow, and the noise, are drawn with it; more noise draws the same numbers.

    Returns
    -------
    ndarray, float64[computation]
        `slowdown` of stragglers, 1 of others, times a log-normal number of mean 1 and coefficient of variation `noise`.

    Raises
    ------
    ValueError
        More stragglers than ranks.
    """
    if config.stragglers > ranks:
        raise ValueError(f"workload.computing.stragglers: must be at most the {ranks} ranks, not {config.stragglers}")
    slow = np.ones(ranks)
    slow[np.random.default_rng((seed, 11)).permutation(ranks)[: config.stragglers]] = config.slowdown
    variance = np.log1p(config.noise**2)
    drawn = np.random.default_rng((seed, 12)).standard_normal(len(rank))
    found: NDArray[np.float64] = slow[rank] * np.exp(np.sqrt(variance) * drawn - variance / 2)
    return found


def slowed_program(program: Program, config: ComputingConfig, seed: int) -> Program:
    """Return a program whose computations take longer by `factors`; what sleeps sleeps as long as before.

    Raises
    ------
    ValueError
        More stragglers than ranks.
    """
    if config.is_even:
        return program
    at = np.flatnonzero(program.kind == COMPUTE)
    rank = np.repeat(np.arange(program.ranks), np.diff(program.first))[at]
    operand, more = program.operand.copy(), program.amount[program.operand[at]]
    operand[at] = len(program.amount) + np.arange(len(at))
    longer = more * factors(config, rank, program.ranks, seed)
    return replace(program, operand=operand, amount=np.concatenate([program.amount, longer]))


def slowed_schedule(schedule: Schedule, config: ComputingConfig, seed: int) -> Schedule:
    """Return a schedule whose computations take longer by `factors`, to the nearest unit.

    Raises
    ------
    GoalError
        More stragglers than ranks, or a computation that becomes too long.
    """
    if config.is_even:
        return schedule
    at = np.flatnonzero(schedule.kind == CALC)
    try:
        longer = np.rint(schedule.size[at] * factors(config, schedule.rank[at], schedule.ranks, seed))
    except ValueError as error:
        raise GoalError(str(error)) from error
    if longer.max(initial=0.0) >= _LARGEST:
        worst = schedule.where(int(at[longer.argmax()]))
        raise GoalError(f"{worst}: a computation of {longer.max():.3g} units (workload.computing) is 2^63 or more")
    size = schedule.size.copy()
    size[at] = longer.astype(np.uint64)
    return replace(schedule, size=size)
