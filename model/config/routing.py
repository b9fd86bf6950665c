"""Section `routing`: the algorithm by which packets find their way; `routing.dqn`: agents that learn it."""

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


#: algorithms that decide once, at the source, by queues
DECIDE_AT_SOURCE = (
    "ugal", "ugal_global", "ugal_compact", "ugal_group", "ugal_node", "booksim_adaptive_xy_yx", "booksim_ugal",
    "booksim_ugal_xy_yx", "booksim_ugal_pni", "booksim_ugal_four", "booksim_ugal_four_by_hop",
    "booksim_ugal_pf", "booksim_ugal_pf_by_hop",
)  # fmt: skip
#: algorithms that can decide a router ahead, by its queues
DECIDE_AHEAD = ("anca",)
#: value of `spread` → the algorithms that it is for
_SPREAD = {
    "packet": ("minimal", "valiant", "tables"), "flow": ("minimal", "tables"),
    "entropy": ("minimal", "valiant", "tables"),
}  # fmt: skip
#: algorithms that can give all parallel links as candidates
_OVER_ALL_LINKS = ("dragonfly_min", "shortest", "up_down", "shortest_escape", "tables")


class RoutingConfig(Section):
    """The routing algorithm."""

    algorithm: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] = "dor"
    """dor, star_channel, por (torus), ofr, dqn (mesh, torus), with `router.model: packet` abr, too; d_mod_k, nca, anca
    (fat_tree); dest_tag (butterfly); dragonfly_min, valiant_group, valiant_node, ugal_group, ugal_node, par,
    q_routing, q_adaptive (dragonfly; q_adaptive also dragonfly_plus and cascade); dimwar, omniwar, dal (hyperx);
    valiant_compact, ugal_compact (polarfly); minimal, valiant, ugal, ugal_global, shortest, up_down,
    shortest_escape, tables (any network); booksim_dor, booksim_xy_yx, booksim_adaptive_xy_yx, booksim_romm,
    booksim_valiant, booksim_ugal, booksim_ugal_xy_yx, booksim_ugal_pni, booksim_nca, booksim_min, booksim_val,
    booksim_ugal_four, booksim_ugal_pf, the last three also with _by_hop (docs/definitions/booksim-routing.md);
    or `file`."""
    file: ConfigPath | None = None
    """For `algorithm: file`: Python file with a function `prepare`; relative to this configuration file."""
    prepare_limit_s: Annotated[float, Field(gt=0)] = 600.0
    """For `algorithm: file`: longest processor time of the file and its `prepare`."""
    vc_rule: Literal["fixed", "balanced", "dateline"] = "dateline"
    """Dimension order on a torus: class of virtual channels fixed per dimension as in BookSim, or changed at the
    dateline. `balanced` (dor): fixed as BookSim's `dim_order_bal` does, half of the packets that need neither class
    in each."""
    ties: Literal["plus", "random", "key"] = "plus"
    """Dimension order on a torus: direction when both are equally long; `key`: by the sign of the difference, as in
    the keys of node reduction. nca: `random` draws the port up, as in BookSim; otherwise credits decide."""
    ejection: Literal["any", "class"] = "any"
    """dragonfly_min: virtual channels on the link to the host: any, or those of the packet's class as in BookSim."""
    class_vcs: Literal["half", "one"] = "half"
    """dragonfly_min: virtual channels before the global link, and on it and behind it: half of all each, or only 0 and
    1 as in BookSim."""
    bias: float = 0.0
    """ugal_group, ugal_node, par: packets by which twice the queue of the non-minimal way must be shorter. ugal,
    ugal_global: what is added to the detour's side of the comparison. dimwar, omniwar, dal: to a deroute's queue."""
    deroutes: Annotated[int, Field(ge=0, le=15)] | None = None
    """omniwar: most deroutes of a packet (default: one for each dimension)."""
    ways: Literal["all", "one", "tables"] | None = None
    """minimal, valiant, ugal, ugal_global: all shortest paths (default), one for each pair (dimension order on grids
    and HyperX), or those of section `tables`."""
    spread: Literal["packet", "flow", "entropy"] | None = None
    """minimal, valiant: of several ports of shortest paths (`ways: all`) every router draws one for each packet; or
    takes one by a hash of source and destination (`flow`: minimal), or of these and `traffic.entropy`, which with
    valiant names the router of the detour, too (default: VC allocation chooses). tables (`scheme: k_shortest`): the
    source chooses one of 2^`lmc` paths by the same; with `traffic.entropy` they take turns."""
    classes: Literal["phases", "turns", "hops"] | None = None
    """minimal, valiant, ugal, ugal_global: what raises the class of a packet's virtual channel (default: the scheme
    with the fewest classes)."""
    candidates: Annotated[int, Field(ge=1, le=16)] = 4
    """ugal, ugal_global: intermediate routers that are drawn for each packet."""
    over: Literal["routers", "neighbours", "groups"] = "routers"
    """valiant, ugal, ugal_global: detours go over any router, over a neighbour of the source, or (dragonfly,
    dragonfly_plus, cascade, slim_fly) into a group."""
    rule: Literal["product", "double", "three_halves"] = "product"
    """ugal: compares links times queue of both ways; or the queue of the minimal one with 2 or 1.5 times the other."""
    decision: Literal["router", "host", "ahead"] = "router"
    """ugal and its kin: decided in the router of the source, when the packet is routed there; or by the queues of that
    router when its head leaves the host, as BookSim does with `routing_delay` 0 (`input_queued`). anca: `ahead`: each
    router's port by its queues when the head leaves the host or is sent through the switch before it."""
    alpha: Annotated[float, Field(ge=0, le=1)] = 0.2
    """q_adaptive, q_routing: learning rate; q_adaptive: towards shorter times."""
    beta: Annotated[float, Field(ge=0, le=1)] = 0.04
    """q_adaptive: learning rate towards longer times."""
    epsilon: Annotated[float, Field(ge=0, le=1)] = 0.001
    """q_adaptive, q_routing: share of decisions that are made at random."""
    q_thld1: float = 0.2
    """q_adaptive: share of its time that the minimal way may be slower than the best, in the source router."""
    q_thld2: float = 0.35
    """q_adaptive: the same against a random local port, in the first router of another group."""
    max_q: Annotated[int, Field(ge=1, le=13)] = 3
    """q_routing: hops by learned times; then minimal."""
    estimate_bits: Annotated[int, Field(ge=4, le=24)] | None = None
    """q_adaptive, q_routing: learned times are numbers of so many bits, as in hardware (default: 64-bit floats; the
    table in hardware: 16)."""
    estimate_fraction_bits: Annotated[int, Field(ge=-12, le=16)] | None = None
    """Of them, those below 1 ns (or cycle); negative: a step is more (default: 12 less than all, so that the largest
    time is 4096)."""
    estimate_rounding: Literal["nearest", "random"] = "nearest"
    """Rounding of a learned time to its bits; random: to the lower or upper step, right on average."""
    links: Literal["own_first", "destination", "hash", "adaptive"] = "own_first"
    """Which of several links between two routers, or global links between two groups of a dragonfly, a packet takes: by
    the number of its destination, in a dragonfly one of its router first; by that number alone; by a hash of source
    and destination; or any, as VC allocation chooses (dragonfly_min, shortest, up_down, shortest_escape, tables)."""
    root: Annotated[int, Field(ge=0)] = 0
    """Root of up*/down* trees."""
    eta: Annotated[float, Field(ge=0, le=1000)] | None = None
    """por, ofr (not with `router.model: packet`): weight η of the path's length in the profit; default 1 for `por`, 2
    for `ofr`."""
    outflank_distance: Annotated[int, Field(ge=1, le=64)] = 2
    """ofr (not with `router.model: packet`): Δ of the outflank destinations."""
    dqn: DqnConfig = DqnConfig()
    """`algorithm: dqn`: agents that learn to route."""
    check: bool = True
    """Prove freedom from deadlock before the run."""
    proof_limit_s: Annotated[int, Field(ge=1, le=604_800)] = 50
    """Most work of the proof, in about seconds of processor time: what takes more is refused. The work is counted, so
    that every machine gives the same verdict. Raise it for large networks that have no short proof."""

    def problems(self) -> Iterator[Problem]:
        """Check that a file is there exactly if the algorithm wants one."""
        if self.algorithm == "file" and self.file is None:
            yield Problem("file", "missing; algorithm=file needs it")
        if self.algorithm != "file" and self.file is not None:
            yield Problem("file", f"is for algorithm=file only, not algorithm={self.algorithm}")
        if self.algorithm == "file" and self.links != "own_first":
            yield Problem("links", f"is for algorithms other than file, which names the ports itself, not {self.links}")
        if self.decision == "host" and self.algorithm not in DECIDE_AT_SOURCE:
            yield Problem("decision", f"host is for {', '.join(DECIDE_AT_SOURCE)} only, not algorithm={self.algorithm}")
        if self.decision == "ahead" and self.algorithm not in DECIDE_AHEAD:
            yield Problem("decision", f"ahead is for {', '.join(DECIDE_AHEAD)} only, not algorithm={self.algorithm}")
        if self.spread is not None and self.algorithm not in (spread := _SPREAD[self.spread]):
            yield Problem("spread", f"{self.spread} is for {', '.join(spread)} only, not algorithm={self.algorithm}")
        if self.spread is not None and self.ways not in (None, "all"):
            yield Problem("spread", f"is for ways=all only, not ways={self.ways}")
        if self.spread == "entropy" and self.over != "routers":
            yield Problem("spread", f"entropy is for over=routers only, not over={self.over}")
        if self.links == "adaptive" and self.algorithm not in _OVER_ALL_LINKS:
            yield Problem("links", f"adaptive is for {', '.join(_OVER_ALL_LINKS)} only, not algorithm={self.algorithm}")
