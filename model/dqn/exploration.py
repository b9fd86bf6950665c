"""Exploration: how often an agent draws its action instead of taking the best one."""

from typing import get_args

from hopforge.model.dqn.dense import compiled
from hopforge.model.dqn.settings import Exploration

__all__ = ["SCHEDULES", "chosen", "exploration_rate", "last_change", "later_schedule"]

#: number of each schedule, what kernels take
SCHEDULES: dict[str, int] = {name: number for number, name in enumerate(get_args(Exploration))}
_CONFIGURATION, _TEXT, _LATE = SCHEDULES["configuration"], SCHEDULES["text"], SCHEDULES["late"]


@compiled
def exploration_rate(schedule: int, decisions: int) -> float:
    """Return ε for an agent that has taken so many decisions before (docs/definitions/dqn.md#exploration)."""
    if schedule == _CONFIGURATION:
        return 1.0 - 0.98 * min(decisions / 10000, 1.0)
    if schedule == _TEXT:
        if decisions < 10000:
            return 1.0 - 0.9 * decisions / 10000
        return 0.1 if decisions < 100000 else 0.02
    return 0.02 if schedule == _LATE else 0.0


@compiled
def last_change(schedule: int) -> int:
    """Return the decisions after which ε stays as it is."""
    if schedule == _TEXT:
        return 100000
    return 10000 if schedule == _CONFIGURATION else 0


@compiled
def later_schedule(schedule: int, restarts: int) -> int:
    """Return the schedule of an agent that has begun anew so often."""
    return schedule if restarts == 0 or schedule == _TEXT else _CONFIGURATION


@compiled
def chosen(rate: float, draw: float, drawn: int, best: int) -> int:
    """Return the drawn action if `draw` (0 … below 1) is below the rate, else the best one."""
    return drawn if draw < rate else best
