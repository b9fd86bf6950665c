"""Section `routing.dqn`: agents that learn to route (docs/definitions/dqn.md)."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from hopforge.model.config.base import ConfigPath, Problem, Section

Width = Annotated[int, Field(ge=1, le=4096)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**9)]


class DqnConfig(Section):
    """Agents of `routing.algorithm: dqn`, how they learn, and when a packet leaves them for dimension order."""

    agents: Literal["router", "row", "network"] | Annotated[int, Field(ge=1)] = "row"
    """An agent for each router, for each row of routers that differ in x only, one for all, or so many, each for
    equally many routers in the order of their numbers."""
    weights: ConfigPath | None = None
    """Archive of weights to begin with, of the same topology and agents (`agents.npz` of a run); relative to this
    configuration file."""
    first: Width = 256
    """Units of the first layer."""
    second: Width = 256
    """Units of the second layer."""
    head: Width = 256
    """Units of the hidden layer of each head: advantages and value."""
    learning_rate: Positive = 5e-4
    """Of Adam."""
    beta1: Share = 0.9
    """Of Adam: decay of the mean of the gradients."""
    beta2: Share = 0.999
    """Of Adam: decay of the mean of their squares."""
    epsilon: Positive = 1e-8
    """Of Adam: what is added to the root."""
    clip_norm: Positive = 40.0
    """Largest norm of the gradient of a variable."""
    replay: Annotated[int, Field(ge=1, le=10**7)] = 50_000
    """Samples that an agent keeps."""
    batch: Annotated[int, Field(ge=1, le=1 << 16)] = 32
    """Samples of a training step."""
    learning_starts: Annotated[int, Field(ge=0, le=10**9)] = 1000
    """Stored sample of the first training step; 0: agents do not learn."""
    train_every: Count = 4
    """Stored samples from one training step to the next."""
    target_every: Count = 500
    """Decisions between two copies to the target network."""
    exploration: Literal["configuration", "text", "none", "late"] = "configuration"
    """Share of random actions: from 1 to .02 in 10 000 decisions; to .1 in 10 000, and .02 from 100 000 on; none; or
    .02 from the first one on, for weights that were trained before."""
    bootstrap: Literal["none", "next_router"] = "none"
    """What a sample aims at: its reward; or minus the time to the next router and the estimate of that router's
    agent."""
    gamma: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.99
    """`bootstrap: next_router`: discount of that estimate."""
    max_hops: Annotated[int, Field(ge=0, le=10**9)] | None = None
    """More links than these, and a packet takes dimension order (default: twice the diameter)."""
    max_episodes: Annotated[int, Field(ge=1, le=10**6)] = 100
    """Decisions of an agent that wait for their reward; further ones are made without."""
    available: Literal["room", "busy_and_no_room"] = "room"
    """A proposal is rejected if the buffer behind it has no room for the packet; or only if the channel is busy,
    too."""
    reward_rejected: bool = True
    """A rejected proposal gets its reward."""
    reward_unit_cycles: Positive = 77.0
    """Reward = hops to go · unit / cycles + offset."""
    reward_offset: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    """The same."""
    observation: Literal["scaled", "raw"] = "scaled"
    """Numbers of an observation are about 0 to 1, or as they are."""
    occupancies: Literal["both", "local", "remote", "none"] = "both"
    """Flits that an agent sees: those that wait here, those in the buffers behind; the others read 0."""
    reward: Literal["speed", "time"] = "speed"
    """As above; or `time`: offset − cycles / unit."""
    ways: Literal["all", "minimal"] = "all"
    """An agent may propose every port with a link, or only those that bring the packet nearer."""
    escape: Literal["final", "hop"] = "final"
    """A packet that takes dimension order does so to its end, or for one hop."""
    restart_below: Share = 0.0
    """An agent explores and gathers samples anew when its mean Q falls below this share of its greatest; 0: never."""
    restart_window: Count = 1000
    """`restart_below`: decisions of a mean."""
    hints: tuple[Annotated[int, Field(ge=0, le=1 << 60)], ...] = ()
    """Cycles at which the application says that its traffic changes: all agents begin anew."""
    save: Literal["weights", "state"] = "weights"
    """What `agents.npz` holds: weights; or all that agents need to go on with the same bits."""
    resume: bool = False
    """Go on with the whole state of `weights`, which a run with `save: state` has written."""

    # how long a decision takes, and in which numbers it is made
    decision_cycles: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Cycles that a decision takes: the packet is not routed before."""
    decision_interval: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Cycles from the begin of a decision of an agent to that of its next one (default: `decision_cycles`)."""
    decision_queue: Annotated[int, Field(ge=0, le=65_536)] = 16
    """Packets that wait for an agent; one more, and it takes dimension order."""
    inference: Literal["float", "int8"] = "float"
    """Numbers in which an agent decides; `int8`: those of the hardware, for agents that learn no more."""
    activation_bits: Annotated[int, Field(ge=8, le=12)] = 8
    """`inference: int8`: bits of what layers hand on; weights have 8."""

    def problems(self) -> Iterator[Problem]:
        """Check what concerns several keys."""
        if self.bootstrap == "none" and self.gamma != 0.99:
            yield Problem("gamma", "is for bootstrap=next_router only, not bootstrap=none")
        if self.resume and self.weights is None:
            yield Problem("resume", "needs weights, an archive of a run with save=state")
        if list(self.hints) != sorted(set(self.hints)):
            yield Problem("hints", "must rise from one to the next")
        if self.bootstrap != "none" and self.reward != "speed":
            yield Problem("reward", "is for bootstrap=none only: with next_router a reward is minus the time of a hop")
        if self.observation == "raw" and self.occupancies != "both":
            yield Problem("occupancies", "is for observation=scaled only, not observation=raw")
        if self.inference == "int8":
            yield from self._int8_problems()
        elif self.activation_bits != type(self).model_fields["activation_bits"].default:
            yield Problem("activation_bits", f"is for inference=int8 only, not inference={self.inference}")
        if self.decision_cycles == 0:
            if self.decision_interval is not None:
                yield Problem("decision_interval", "is for decision_cycles above 0 only")
            if self.decision_queue != type(self).model_fields["decision_queue"].default:
                yield Problem("decision_queue", "is for decision_cycles above 0 only")

    def _int8_problems(self) -> Iterator[Problem]:
        """Whole numbers are made of trained weights once, for scaled observations."""
        if self.weights is None:
            yield Problem("weights", "missing; inference=int8 needs those of trained agents")
        if self.learning_starts != 0:
            yield Problem("learning_starts", f"must be 0 (no learning) with inference=int8, not {self.learning_starts}")
        if self.observation != "scaled":
            yield Problem("observation", f"must be scaled with inference=int8, not {self.observation}")
