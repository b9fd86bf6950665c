"""Settings of the decisions and of the acknowledges: what is not the agent's and not the table's."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

__all__ = ["RoutingRules", "Rules"]

NO_LIMIT = 1 << 62


class RoutingRules(NamedTuple):
    """Numbers only, for the kernels: see `Rules`."""

    max_hops: int
    busy_too: bool
    reward_rejected: bool
    queue_depth: int
    own_depth: int
    unit: float
    offset: float
    by_time: bool


@dataclass(frozen=True)
class Rules:
    """What the definition leaves to settings (docs/definitions/dqn.md#headers and #acknowledges).

    Attributes
    ----------
    max_hops : int
        More links than these set Pdor.
    available : {"room", "busy_and_no_room"}
        A proposal is rejected without room for the packet; or only if the channel is busy, too.
    reward_rejected : bool
        Whether a rejected proposal gets its reward.
    queue_depth : int, optional
        Acknowledges that wait in a router; by default any number.
    own_depth : int, optional
        Those of packets that have arrived there; by default any number.
    reward_unit_cycles, reward_offset : float
        Reward = distance · unit / cycles + offset.
    reward : {"speed", "time"}
        As above; or offset − cycles / unit.
    """

    max_hops: int = 8
    available: Literal["room", "busy_and_no_room"] = "room"
    reward_rejected: bool = True
    queue_depth: int | None = None
    own_depth: int | None = None
    reward_unit_cycles: float = 77.0
    reward_offset: float = 0.0
    reward: Literal["speed", "time"] = "speed"

    def __post_init__(self) -> None:
        if self.max_hops < 0:
            raise ValueError(f"max_hops must be 0 or more, not {self.max_hops}")
        for name in ("queue_depth", "own_depth"):
            depth = getattr(self, name)
            if depth is not None and depth < 1:
                raise ValueError(f"{name} must be 1 or more, not {depth}")
        if not (math.isfinite(self.reward_unit_cycles) and self.reward_unit_cycles > 0):
            raise ValueError(f"reward_unit_cycles must be a number > 0, not {self.reward_unit_cycles}")
        if not math.isfinite(self.reward_offset):
            raise ValueError(f"reward_offset must be a number, not {self.reward_offset}")
        if self.available not in ("room", "busy_and_no_room"):
            raise ValueError(f"available must be one of room, busy_and_no_room, not {self.available!r}")
        if self.reward not in ("speed", "time"):
            raise ValueError(f"reward must be one of speed, time, not {self.reward!r}")

    @property
    def compiled(self) -> RoutingRules:
        """What kernels take."""
        return RoutingRules(
            max_hops=self.max_hops,
            busy_too=self.available == "busy_and_no_room",
            reward_rejected=self.reward_rejected,
            queue_depth=NO_LIMIT if self.queue_depth is None else self.queue_depth,
            own_depth=NO_LIMIT if self.own_depth is None else self.own_depth,
            unit=float(self.reward_unit_cycles),
            offset=float(self.reward_offset),
            by_time=self.reward == "time",
        )
