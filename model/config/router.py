"""Sections `router`, `packet`, `routing` and `tables`: the routers of a network, and how packets find their way."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, PrivateAttr

from hopforge.model.config.base import ConfigPath, Problem, Section
from hopforge.model.config.dqn import DqnConfig

Allocator = Literal[
    "input_first", "output_first", "islip", "wavefront", "rr_wavefront", "max_size", "loa", "pim"
]  # fmt: skip
#: switch allocators in which heads can ask beside all others (`speculation: shared`)
_SHARING = ("output_first", "islip", "max_size", "loa", "pim")
#: switch allocators that BookSim has, and that no part but that of speedups has
_OF_CROSSBARS = ("rr_wavefront", "loa", "pim")

#: what only the router of docs/definitions/router.md has
INPUT_QUEUED_KEYS = {
    "switching", "route_computation", "rc_cycles", "lookahead", "va", "sa", "arbiter", "qos", "speculation",
    "hold_switch", "allocator_iterations", "input_speedup", "output_speedup", "internal_speedup", "crossbar_cycles",
    "stage_batches", "output_queue_flits", "vc_release",
    "credit_delay_cycles", "link_latency_cycles", "global_latency_cycles", "host_latency_cycles", "cycles_per_flit",
    "flit_bits", "tag_bits", "length_bits", "flit_buffers", "protection", "host_ports", "stream_beats",
}  # fmt: skip
#: times in ns that can stand in place of times in cycles
CYCLES_OF = {
    "flit_ns": "cycles_per_flit",
    "link_ns": "link_latency_cycles",
    "global_ns": "global_latency_cycles",
    "host_ns": "host_latency_cycles",
    "end_ns": "link_latency_cycles",
}


def hidden_cycles_problem(rc_cycles: int, va: str, speculation: bool) -> str | None:
    """Return why look-ahead cannot hide so many cycles of route computation, None if it can.

    There are two beside VA and SA, one where a head asks for the switch at once.
    """
    at_once = va == "free_queue" or speculation
    most = 1 if at_once else 2
    if 1 <= rc_cycles <= most:
        return None
    where = "where heads ask for the switch at once" if at_once else "beside VA and SA"
    return f"must be 1{'' if most == 1 else f' to {most}'} with lookahead ({where}), not {rc_cycles}"


def choice_ahead_problem(va: str, route_computation: str, rc_cycles: int, switching: str) -> str | None:
    """Return why inputs cannot choose a cycle ahead (`sa: input_ahead`), None if they can."""
    for key, needed, given in (
        ("va", "free_queue", va),
        ("route_computation", "table", route_computation),
        ("rc_cycles", 0, rc_cycles),
        ("switching", "wormhole", switching),
    ):
        if given != needed:
            return f"input_ahead needs {key}={needed}, not {given}"
    return None


class RouterConfig(Section):
    """Every router of the network (docs/definitions/router.md, docs/definitions/router-models.md)."""

    _times_of_file: bool = PrivateAttr(default=True)
    """Links have the latencies that a file of the network gives them; `hopforge app` has those of `timing`."""

    model: Literal["input_queued", "input_output_queued", "packet"] = "input_queued"
    """The router of `router.md`; one with queues at inputs and outputs and a fast crossbar (`router-models.md`); or
    store-and-forward of whole packets, all else in section `packet` (`torus-router.md`)."""
    vcs: Annotated[int, Field(ge=1, le=16)] = 4
    """Virtual channels per port."""
    buffer_flits: Annotated[int, Field(ge=1, le=65535)] = 8
    """Flits of buffer per virtual channel and input port."""
    output_buffer_flits: Annotated[int, Field(ge=1, le=65535)] = 20
    """`input_output_queued`: flits in the queue of a virtual channel of an output port."""
    switching: Literal["wormhole", "vct", "saf"] = "wormhole"
    """Wormhole, virtual cut-through, or store-and-forward."""
    route_computation: Literal["table", "lookup"] = "table"
    """Routes come from a table after `rc_cycles`, or from a lookup engine at every input port (section `lookup`)."""
    rc_cycles: Annotated[int, Field(ge=0, le=1024)] = 0
    """Table: cycles of route computation; 0 = the table is read while a flit is written into its buffer. (A lookup that
    hits takes its pipeline depth + 1.)"""
    lookahead: bool = False
    """Heads bring their route along, and each router computes that of the next one beside the allocation. Table: a hop
    is `rc_cycles` shorter. Lookup: the engines answer for the router behind each link; a hop is two cycles shorter (one
    with `va: free_queue` or speculation)."""
    va: Allocator | Literal["free_queue"] = "output_first"
    """Allocator of virtual channels; `islip` is another name of `output_first`; `rr_wavefront`, `max_size`, `loa` and
    `pim` are not in hardware. `free_queue`: none; the head that the
    switch grants takes the next free virtual channel of its output, and a hop is a cycle shorter."""
    sa: Allocator | Literal["input_ahead"] = "output_first"
    """Switch allocator; `islip` is another name of `output_first`. `input_ahead`, with `va: free_queue` only: as
    `input_first`, but inputs choose a cycle ahead, before it is known which output virtual channels are free."""
    arbiter: Literal["round_robin", "matrix"] = "round_robin"
    """Arbiters of the separable allocators; `matrix` = least recently granted."""
    qos: Literal["none", "strict", "weighted"] = "none"
    """What `traffic.classes` are due at the switch and at hosts: nothing; the higher `priority` goes first; or where
    several wait each sends by its `weight`."""
    speculation: bool | Literal["shared"] = False
    """Head flits ask for the switch while they ask for a virtual channel, in an allocator of their own after all
    others; or, `shared`, in the same one (`sa: islip`, not in hardware), as in BookSim by default."""
    hold_switch: bool = False
    """An input that the switch has granted an output stays connected with it for the flits of the packet that follow at
    once (not in hardware)."""
    allocator_iterations: Annotated[int, Field(ge=1, le=16)] = 1
    """Iterations of iSLIP (`va`, `sa`: `islip`) in a cycle (more than one: not in hardware)."""
    input_speedup: Annotated[int, Field(ge=1, le=16)] = 1
    """Crossbar ports of an input, at most `vcs`: virtual channel v uses port v mod this (2 and more: not in
    hardware)."""
    output_speedup: Annotated[int, Field(ge=1, le=16)] = 1
    """Crossbar ports of an output: input i uses port i mod this; flits wait behind them for the link (2 and more: not
    in hardware)."""
    internal_speedup: Annotated[float, Field(ge=1, le=8)] = 1.0
    """Steps of a router in a cycle, on average; flits wait behind the crossbar for the link (above 1: not in
    hardware)."""
    crossbar_cycles: Annotated[int, Field(ge=1, le=16)] = 1
    """Cycles that a flit takes through the crossbar (2 and more: not in hardware)."""
    stage_batches: bool = False
    """Stages of several cycles (`rc_cycles`, `crossbar_cycles`) take all that waits in their router at once, and what
    comes later waits until these have left, as in BookSim; else each cycle begins with what has come (not in
    hardware)."""
    output_queue_flits: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Flits behind the crossbar of an output from which on it is not asked for (default: no limit; not in
    hardware)."""
    vc_release: Literal["tail", "credits"] = "tail"
    """A virtual channel is free when the tail has left, or when all its credits are back."""
    credit_delay_cycles: Annotated[int, Field(ge=0, le=1024)] = 0
    """Cycles from a credit's arrival until it counts, beyond the register it is written into."""
    link_latency_cycles: Annotated[int, Field(ge=1, le=65535)] = 1
    """Latency of the links between routers (dragonfly: inside a group)."""
    global_latency_cycles: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Dragonfly, Dragonfly+, Cascade: latency of the links between groups (default: as inside)."""
    host_latency_cycles: Annotated[int, Field(ge=1, le=65535)] = 1
    """Latency of the links between hosts and routers."""
    cycles_per_flit: Annotated[int, Field(ge=1, le=1024)] = 1
    """Cycles that a flit occupies a link between routers."""
    cycle_ns: Annotated[float, Field(gt=0)] | None = None
    """Length of a cycle. `input_queued`: with it links can be given in ns. `input_output_queued`: times are rounded to
    whole cycles (default: the longest cycle of which all times are multiples)."""
    flit_ns: Annotated[float, Field(gt=0)] | None = None
    """Time that a flit occupies a link between routers (`input_output_queued`: any link; default 32)."""
    crossbar_ns: Annotated[float, Field(gt=0)] | None = None
    """`input_output_queued`: time between two matches of the crossbar (default 3.2)."""
    idle_ports: Literal["at_once", "flit_later"] = "at_once"
    """`input_output_queued`: an idle output port sends a packet when it comes, or `flit_ns` later, as in SST/Merlin."""
    link_ns: Annotated[float, Field(ge=0)] | None = None
    """Flight time on the links between routers (dragonfly: inside a group; `input_output_queued`: default 30)."""
    global_ns: Annotated[float, Field(ge=0)] | None = None
    """Dragonfly: flight time on the links between groups (`input_output_queued`: default 300)."""
    host_ns: Annotated[float, Field(ge=0)] | None = None
    """Flight time on the links between hosts and routers (`input_output_queued`: default 10)."""
    end_ns: Annotated[float, Field(ge=0)] | None = None
    """What each end of a link adds to its flight time (`input_output_queued`: default 10)."""
    flit_bits: Annotated[int, Field(ge=1, le=4096)] = 64
    """Hardware: data of a flit; in a head destination, source and tag (virtual cut-through: and length) lie in it."""
    tag_bits: Annotated[int, Field(ge=0, le=64)] = 8
    """Hardware: bits of a head that the hosts may use as they like."""
    length_bits: Annotated[int, Field(ge=1, le=16)] = 8
    """Hardware, virtual cut-through: bits of the number of flits in a head."""
    flit_buffers: Literal["memory", "latches", "flip_flops"] = "memory"
    """Hardware: memories that a flow can replace by macros, or latches of standard cells (half the area of
    flip-flops), or flip-flops."""
    protection: Literal["none", "parity", "secded"] = "none"
    """Hardware: check bits of the flits in the buffers; parity finds changed bits, SECDED corrects one in a word."""

    host_ports: Literal["flits", "axi_stream"] = "flits"
    """`hopforge gen router` and `gen network`: what stands at the ports of hosts: flits and credits, or an adapter for
    packets on AXI-Stream (`stream-adapter.md`)."""
    stream_beats: Annotated[int, Field(ge=1, le=1024)] = 16
    """`host_ports: axi_stream`: longest packet of a host, in beats of `flit_bits`; longer ones are dropped."""

    def problems(self) -> Iterator[Problem]:
        """Check that the keys are those of the router model."""
        # what a run writes down of its configuration names every key: what is as it is by itself is no choice
        given = {key for key in self.model_fields_set if getattr(self, key) != type(self).model_fields[key].default}
        if self.model == "packet":
            for key in sorted(given - {"model"}):
                yield Problem(key, f"is for other models than model={self.model}; see section packet")
            return
        if self.speculation == "shared" and self.sa not in _SHARING:
            yield Problem("sa", f"must be one of {', '.join(_SHARING)} with speculation=shared, not {self.sa}")
        if self.sa in _OF_CROSSBARS:
            for key, wanted in (("va", "an allocator"), ("qos", "none")):
                if getattr(self, key) in ("free_queue", "strict", "weighted"):
                    yield Problem(key, f"must be {wanted} with sa={self.sa}, not {getattr(self, key)}")
        if self.va == "free_queue" and self.speculation is not False:
            limit = "must be false with va=free_queue (heads ask for the switch anyway)"
            yield Problem("speculation", f"{limit}, not {self.speculation}")
        if self.hold_switch and self.va == "free_queue":
            yield Problem("hold_switch", "must be false with va=free_queue, not true")
        if self.sped_up:
            yield from self._speedup_problems()
        yield from self._stage_problems()
        if self.sa == "input_ahead" and self.model == "input_queued":
            problem = choice_ahead_problem(self.va, self.route_computation, self.rc_cycles, self.switching)
            if problem:
                yield Problem("sa", problem)
        if self.lookahead and self.model == "input_queued":
            yield from self._lookahead_problems()
        if self.model == "input_output_queued":
            for key in sorted(given & INPUT_QUEUED_KEYS):
                yield Problem(key, f"is for model=input_queued only, not model={self.model}")
            return
        if self.host_ports == "flits" and "stream_beats" in given:
            yield Problem("stream_beats", f"is for host_ports=axi_stream only, not host_ports={self.host_ports}")
        for key in sorted(given & {"output_buffer_flits", "crossbar_ns", "idle_ports"}):
            yield Problem(key, f"is for model=input_output_queued only, not model={self.model}")
        if self.cycle_ns is None:
            for key in sorted(given & set(CYCLES_OF)):
                yield Problem(key, f"needs cycle_ns with model={self.model}")
        for key, other in CYCLES_OF.items():
            if key in given and other in given:
                yield Problem(key, f"cannot stand together with {other}")

    @property
    def sped_up(self) -> str:
        """Say which key asks for several crossbar ports, iterations, steps or crossbar cycles; empty: none."""
        keys = ("allocator_iterations", "input_speedup", "output_speedup", "internal_speedup", "crossbar_cycles")
        return next((key for key in keys if getattr(self, key) != 1), "")

    def _speedup_problems(self) -> Iterator[Problem]:
        """Check what does not go together with speedups and iterations."""
        key = self.sped_up
        with_it = f"with {key}={getattr(self, key):g}"
        if self.allocator_iterations > 1 and not {self.sa, self.va} & {"output_first", "islip", "pim"}:
            yield Problem("sa", f"or va must be islip, output_first or pim {with_it}, not {self.sa} and {self.va}")
        if self.allocator_iterations > 1 and self.arbiter != "round_robin":
            yield Problem("arbiter", f"must be round_robin {with_it}, not {self.arbiter}")
        if self.qos != "none":
            yield Problem("qos", f"must be none {with_it}, not {self.qos}")
        if self.va == "free_queue":
            yield Problem("va", f"must be an allocator {with_it}, not free_queue")
        if self.input_speedup > self.vcs:
            yield Problem("input_speedup", f"must be at most vcs={self.vcs}, not {self.input_speedup}")
        if self.internal_speedup != 1:
            once = [("route_computation", "table"), ("lookahead", False)]
            once += [("stage_batches", True)] if self.crossbar_cycles > 1 else []
            for other, at_once in once:
                value = getattr(self, other)
                if value != at_once:
                    limit = f"must be {str(at_once).lower()} with internal_speedup={self.internal_speedup:g}"
                    yield Problem(other, f"{limit}, not {str(value).lower()}")

    def _stage_problems(self) -> Iterator[Problem]:
        """Check stages of several cycles, and what waits behind the crossbar."""
        if self.stage_batches:
            if max(self.rc_cycles, self.crossbar_cycles) < 2:
                yield Problem("stage_batches", "needs rc_cycles or crossbar_cycles of at least 2")
            if self.lookahead:
                yield Problem("lookahead", "must be false with stage_batches, not true")
        if self.output_queue_flits is not None:
            if self.output_speedup == self.internal_speedup == self.crossbar_cycles == 1:
                needs = "needs output_speedup, internal_speedup or crossbar_cycles above 1 (else no flit waits there)"
                yield Problem("output_queue_flits", needs)
            if self.cycles_per_flit != 1:
                limit = f"must be 1 with output_queue_flits={self.output_queue_flits}"
                yield Problem("cycles_per_flit", f"{limit}, not {self.cycles_per_flit}")

    def _lookahead_problems(self) -> Iterator[Problem]:
        """Check that the allocation can hide the next router's route computation."""
        if self.route_computation == "lookup":
            return  # how long a lookup takes does not matter: see `limits.ahead_problems`
        problem = hidden_cycles_problem(self.rc_cycles, self.va, bool(self.speculation))
        if problem:
            yield Problem("rc_cycles", problem)


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
    vc_rule: Literal["fixed", "dateline"] = "dateline"
    """Dimension order on a torus: class of virtual channels fixed per dimension as in BookSim, or changed at the
    dateline."""
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
_WITH_LIMIT = ("loren", "cowen", "thorup_zwick")
#: values of `tables.layers` for several tables at once
_SHARED_LAYERS = ("fewest", "lash", "hop_indexed", "single")


class TablesConfig(Section):
    """Which table every switch gets, and which virtual layers keep its packets from deadlock."""

    scheme: Literal[
        "shortest", "k_shortest", "up_down", "nue", "loren", "cowen", "thorup_zwick", "file"
    ] = "shortest"  # fmt: skip
    """Shortest paths; 2^`lmc` short paths for each destination, of which the source chooses (`several-paths.md`);
    up*/down*; Nue (finds layers, too); LOREN (needs a square floor plan); landmarks of Cowen or of Thorup and Zwick;
    or a `file`."""
    slack: Annotated[int, Field(ge=0, le=15)] = 1
    """`k_shortest`: hops by which a path may be longer than the shortest."""
    t_max: Annotated[int, Field(ge=1)] | None = None
    """`loren`, `cowen`, `thorup_zwick`: most entries of a table (default: the fewest that are possible)."""
    ties: Literal["lowest", "random", "balanced"] = "lowest"
    """`shortest`: of equally near neighbours the lowest number, a random one, or the least used (as DFSSSP)."""
    file: ConfigPath | None = None
    """`scheme: file`: next hops, one line per switch, one number per destination, -1 on the diagonal (CSV); relative
    to this configuration file."""
    root: Literal["centre", "highest_degree"] | Annotated[int, Field(ge=0)] = "centre"
    """`scheme: up_down`, `layers: escape`: root of the tree: a router, or the one whose farthest router is nearest, or
    the one with most neighbours."""
    layers: Literal[
        "acro", "lash", "lash_tor", "dfsssp", "nue", "fewest", "hop_indexed", "single", "escape", "file"
    ] = "acro"  # fmt: skip
    """How paths are put into virtual layers: `nue` as `scheme: nue` found them, `fewest` by the method that needs the
    fewest (`k_shortest`), `single` is one for all, `escape` leaves paths alone and adds up*/down* in the lowest layer
    as a way out, `file` reads `layers_file`."""
    layers_file: ConfigPath | None = None
    """`layers: file`: a line `source,destination,layer` for every pair, or with a layer for each hop (CSV); relative to
    this configuration file."""
    max_layers: Annotated[int, Field(ge=1, le=64)] | None = None
    """Layers that there are. `dfsssp`: more are refused, and paths are spread over those that would be empty (default:
    as many as are needed). `nue`: any number will do (default: 1)."""
    lmc: Annotated[int, Field(ge=0, le=7)] = 0
    """2^lmc LIDs for each host in `lft.txt` of `hopforge route`; with `k_shortest` each has a path of its own."""
    cache_key: Literal["destination", "entry"] = "destination"
    """With `routing.algorithm: tables`, what `hopforge hits` asks the caches with: the destination, or (`loren`,
    `cowen`, `thorup_zwick`) the entry of the table that a packet takes."""
    patterns: Annotated[int, Field(ge=1)] = 1000
    """Random traffic patterns for effective bandwidth and average efficiency."""
    hotspot: tuple[Annotated[float, Field(ge=0, le=1)], ...] = (0.1, 0.3, 0.7)
    """β of hotspot(β): probability that a switch sends to the hot one."""
    local: tuple[Annotated[float, Field(gt=0)], ...] = (1.0, 2.0, 3.0)
    """γ of local(γ): destinations with a probability that falls with distance^-γ on the floor plan."""

    def problems(self) -> Iterator[Problem]:
        """Check what concerns several keys."""
        if self.scheme == "file" and self.file is None:
            yield Problem("file", "missing; scheme=file needs it")
        if self.scheme != "file" and self.file is not None:
            yield Problem("file", f"is for scheme=file only, not scheme={self.scheme}")
        if self.layers == "file" and self.layers_file is None:
            yield Problem("layers_file", "missing; layers=file needs it")
        if self.layers != "file" and self.layers_file is not None:
            yield Problem("layers_file", f"is for layers=file only, not layers={self.layers}")
        if self.scheme == "nue" and self.layers != "nue":
            yield Problem("layers", f"must be nue with scheme=nue, whose paths need its layers, not {self.layers}")
        if self.layers == "nue" and self.scheme != "nue":
            yield Problem("layers", f"nue is for scheme=nue only, which finds both together, not scheme={self.scheme}")
        yield from self._path_problems()
        if self.max_layers is not None and self.scheme != "nue" and self.layers not in ("dfsssp", "nue"):
            yield Problem("max_layers", f"is for layers=dfsssp and nue only, not layers={self.layers}")
        if self.root != "centre" and self.scheme != "up_down" and self.layers != "escape":
            yield Problem("root", "is for scheme=up_down and layers=escape only")
        if self.t_max is not None and self.scheme not in _WITH_LIMIT:
            yield Problem("t_max", f"is for {', '.join(_WITH_LIMIT)} only, not scheme={self.scheme}")
        if self.cache_key == "entry" and self.scheme not in _WITH_LIMIT:
            yield Problem("cache_key", f"entry is for {', '.join(_WITH_LIMIT)} only, not scheme={self.scheme}")
        if self.ties != "lowest" and self.scheme != "shortest":
            yield Problem("ties", f"is for scheme=shortest only, not scheme={self.scheme}")

    @property
    def lids(self) -> int:
        """Addresses of a host."""
        return 1 << self.lmc

    def _path_problems(self) -> Iterator[Problem]:
        """Check what `scheme: k_shortest` needs, and what is for it alone."""
        several = self.scheme == "k_shortest"
        if several and self.lmc == 0:
            yield Problem("lmc", "must be at least 1 with scheme=k_shortest, which has 2^lmc paths, not 0")
        if several and self.layers not in _SHARED_LAYERS:
            yield Problem("layers", f"must be {', '.join(_SHARED_LAYERS)} with scheme=k_shortest, not {self.layers}")
        if not several and self.layers == "fewest":
            yield Problem("layers", f"fewest is for scheme=k_shortest only, not scheme={self.scheme}")
        if not several and self.slack != type(self).model_fields["slack"].default:
            yield Problem("slack", f"is for scheme=k_shortest only, not scheme={self.scheme}")


Nanoseconds = Annotated[float, Field(ge=0, le=1e6)]
Gbps = Annotated[float, Field(gt=0, le=1e5)]


class PacketConfig(Section):
    """Routers of whole packets, their links and sources; `traffic` has pattern and packets of a message."""

    packet_bytes: Annotated[int, Field(ge=1, le=65536)] = 512
    """Size of a packet."""
    switching: Literal["saf", "vct"] = "saf"
    """A router sends a packet on when it has arrived whole (store-and-forward), or when its head has (virtual
    cut-through)."""
    head_bytes: Annotated[int, Field(ge=1, le=65536)] = 16
    """`switching: vct`: bytes that a router must have to know where a packet goes."""
    queues: Literal["sending", "receiving"] = "sending"
    """Where the queues of a link stand: before it, with answers to every packet; or at its end, with credits."""
    queue_packets: Annotated[int, Field(ge=2, le=63)] = 8
    """Packets of the queue of a virtual channel (three for each link), and of the queue to a sink."""
    link_gbps: Gbps = 20.0
    """Rate of the links between routers."""
    link_ns: Nanoseconds = 200.0
    """Latency of the links between routers."""
    host_gbps: Gbps = 64.0
    """Rate of the links from source to router and from router to sink."""
    host_ns: Nanoseconds = 80.0
    """Latency of the links of sources and sinks."""
    feed: Annotated[float, Field(gt=0, le=1000)] = 2.4
    """Rate at which a source offers the packets of a message, in units of the load 1."""
    feed_waits: bool = False
    """A source offers its next packet only when it knows whether the last one was taken."""
    process: Literal["periodic", "exponential"] = "periodic"
    """All nodes create messages at the same times, at equal distances; or each at random times."""
    phase: Literal["same", "random"] = "same"
    """All nodes begin with the same message of a pattern by message (`butterfly_stages`); or each with a random one."""
    messages: Annotated[int, Field(ge=1, le=100000)] = 32
    """Messages of every node; the run ends when all have arrived."""
    ties: Literal["plus", "both"] = "plus"
    """Minimal directions at half the ring: + only, or both."""
    enter_slots: Annotated[int, Field(ge=1, le=63)] = 2
    """Free slots that a packet needs to enter a ring of the escape network; one is enough to go on in it."""
    inject_slots: Annotated[int, Field(ge=1, le=63)] = 1
    """Free slots that a packet of the source needs in any queue."""
    congestion: Literal["all", "adaptive"] = "all"
    """Queues of a link that count in u: of all its virtual channels, or the adaptive one."""
    idle_ratio: Literal["zero", "one"] = "zero"
    """The first term of the profit where u* = 0 and u > 0."""
    full_profit: Literal["formula", "zero"] = "formula"
    """Profit of a destination whose counted queues are all full: by the formula, or nothing."""
    wraparound: Literal["middle", "directions"] = "middle"
    """Wraparound detours: through the middle of their orthant, or to the destination in its directions only."""
    outflank_distance: Annotated[int, Field(ge=1, le=64)] = 2
    """Δ of the outflank destinations."""
    outflank_share: Annotated[float, Field(ge=0.001, le=1)] | None = None
    """Δ as a share of the distance from source to destination, rounded, at least 1 (default: `outflank_distance`)."""
    eta: Annotated[float, Field(ge=0, le=1000)] | None = None
    """Weight η of the path's length in the profit; default 1 for `por`, 2 for `ofr`."""

    def problems(self) -> Iterator[Problem]:
        """Check that Δ is given in one way, and that a head is no longer than its packet."""
        if self.switching == "vct" and self.head_bytes > self.packet_bytes:
            yield Problem("head_bytes", f"must be at most packet_bytes={self.packet_bytes}, not {self.head_bytes}")
        if self.outflank_share is not None and "outflank_distance" in self.model_fields_set:
            yield Problem("outflank_share", "cannot stand together with outflank_distance")
