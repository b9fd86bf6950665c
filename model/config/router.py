"""Sections `router` and `packet`: routers of flits, and what routers of packets have beside it."""

from collections.abc import Iterator
from typing import Annotated, Literal, Protocol

from pydantic import Field, PrivateAttr

from hopforge.model.config.base import Problem, Section

Allocator = Literal[
    "input_first", "output_first", "islip", "wavefront", "rr_wavefront", "max_size", "loa", "pim"
]  # fmt: skip
#: switch allocators in which heads can ask beside all others (`speculation: shared`)
_SHARING = ("output_first", "islip", "max_size", "loa", "pim")
#: those whose arbiters know that heads come behind all others (`speculation: yielding`)
_YIELDING = ("output_first", "islip", "input_first_ports")
#: switch allocators that BookSim has, and that no part but that of speedups has
_OF_CROSSBARS = ("rr_wavefront", "loa", "pim", "input_first_ports")
#: those with arbiters
SEPARABLE = ("input_first", "output_first", "islip", "input_ahead", "input_first_ports")
#: those that can make several iterations in a cycle
ITERATED = ("output_first", "islip", "pim")

#: allocators whose choice depends on how many ports there are, not only on those that ask
COUNTING = ("wavefront", "rr_wavefront", "max_size", "loa", "pim")

#: what only the router of docs/definitions/router.md has
INPUT_QUEUED_KEYS = {
    "switching", "route_computation", "rc_cycles", "lookahead", "va", "sa", "arbiter", "va_arbiter", "qos",
    "speculation", "hold_switch", "allocator_iterations", "va_iterations", "sa_first_output", "allocator_ports",
    "input_speedup", "output_speedup", "internal_speedup", "crossbar_cycles", "stage_batches",
    "output_queue_flits", "vc_release", "credit_delay_cycles", "link_latency_cycles", "global_latency_cycles",
    "host_latency_cycles", "cycles_per_flit", "flit_bits", "tag_bits", "length_bits", "flit_buffers", "protection",
    "host_ports", "stream_beats",
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


class _HasArbiters(Protocol):
    @property
    def arbiter(self) -> str: ...
    @property
    def va_arbiter(self) -> str | None: ...


class VcArbiter:
    """What `arbiter` and `va_arbiter` of a router say of its VC allocator."""

    @property
    def vc_arbiter(self: _HasArbiters) -> str:
        """Arbiters of the VC allocator: its own, or those of both allocators."""
        return self.arbiter if self.va_arbiter is None else self.va_arbiter

    @property
    def vc_arbiter_key(self: _HasArbiters) -> str:
        """Key that says them."""
        return "arbiter" if self.va_arbiter is None else "va_arbiter"


class RouterConfig(VcArbiter, Section):
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
    sa: Allocator | Literal["input_ahead", "input_first_ports"] = "output_first"
    """Switch allocator; `islip` is another name of `output_first`. `input_ahead`, with `va: free_queue` only: as
    `input_first`, but inputs choose a cycle ahead, before it is known which output virtual channels are free.
    `input_first_ports`: as `input_first`, but inputs choose an output in turn, and a virtual channel for each output,
    as in BookSim (not in hardware)."""
    arbiter: Literal["round_robin", "matrix"] = "round_robin"
    """Arbiters of the separable allocators; `matrix` = least recently granted."""
    va_arbiter: Literal["round_robin", "matrix"] | None = None
    """Arbiters of `va`, where `sa` has others (default: those of `arbiter`)."""
    qos: Literal["none", "strict", "weighted"] = "none"
    """What `traffic.classes` are due at the switch and at hosts: nothing; the higher `priority` goes first; or where
    several wait each sends by its `weight`."""
    speculation: bool | Literal["shared", "yielding"] = False
    """Head flits ask for the switch while they ask for a virtual channel, in an allocator of their own after all
    others; or, `shared`, in the same one (`sa: islip`, not in hardware), as in BookSim by default; or, `yielding`, only
    where nobody else asks for their output (`sa: input_first_ports`: at their input), as in BookSim with separable
    allocators (not in hardware)."""
    hold_switch: bool = False
    """An input that the switch has granted an output stays connected with it for the flits of the packet that follow at
    once (not in hardware)."""
    allocator_iterations: Annotated[int, Field(ge=1, le=16)] = 1
    """Iterations of iSLIP (`va`, `sa`: `islip`, `output_first`) and `pim` in a cycle."""
    va_iterations: Annotated[int, Field(ge=1, le=16)] | None = None
    """Iterations of `va`, where `sa` makes another number (default: `allocator_iterations`)."""
    sa_first_output: Annotated[int, Field(ge=0, le=511)] = 0
    """`sa: max_size`: output port from which on the outputs of an input are gone through; those before it come last.
    In BookSim's mesh and torus the host's is last: 1."""
    allocator_ports: Literal["network", "own"] = "network"
    """Ports that pointers and draws of `wavefront`, `rr_wavefront`, `max_size`, `loa` and `pim` go over: as many as the
    router with the most ports has; or, `own`, those of the router itself, on a butterfly those of a stage, as in
    BookSim (not in hardware)."""
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
        yield from self._allocator_problems()
        if self.sped_up:
            yield from self._speedup_problems()
        yield from self._stage_problems()
        if self.model == "input_queued":
            yield from self._ahead_problems()
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

    def _allocator_problems(self) -> Iterator[Problem]:
        """Check which allocators, speculation and rules of the switch go together."""
        if self.speculation == "shared" and self.sa not in _SHARING:
            yield Problem("sa", f"must be one of {', '.join(_SHARING)} with speculation=shared, not {self.sa}")
        if self.speculation == "yielding" and self.sa not in _YIELDING:
            yield Problem("sa", f"must be one of {', '.join(_YIELDING)} with speculation=yielding, not {self.sa}")
        if self.sa in _OF_CROSSBARS:
            for key, wanted in (("va", "an allocator"), ("qos", "none")):
                if getattr(self, key) in ("free_queue", "strict", "weighted"):
                    yield Problem(key, f"must be {wanted} with sa={self.sa}, not {getattr(self, key)}")
        if self.va == "free_queue" and self.speculation is not False:
            limit = "must be false with va=free_queue (heads ask for the switch anyway)"
            yield Problem("speculation", f"{limit}, not {self.speculation}")
        if self.sa_first_output and self.sa != "max_size":
            yield Problem("sa_first_output", f"is for sa=max_size only, not sa={self.sa}")
        if self.allocator_ports == "own" and not {self.va, self.sa} & set(COUNTING):
            limit = f"own is for {', '.join(COUNTING)} only"
            yield Problem("allocator_ports", f"{limit}, not va={self.va}, sa={self.sa}")
        if self.hold_switch and self.va == "free_queue":
            yield Problem("hold_switch", "must be false with va=free_queue, not true")

    def _ahead_problems(self) -> Iterator[Problem]:
        """Check what is decided before a head is at its router or at the front."""
        if self.sa == "input_ahead":
            problem = choice_ahead_problem(self.va, self.route_computation, self.rc_cycles, self.switching)
            if problem:
                yield Problem("sa", problem)
        if self.lookahead:
            yield from self._lookahead_problems()

    @property
    def sped_up(self) -> str:
        """Say which key asks for several crossbar ports, iterations, steps or crossbar cycles; empty: none."""
        keys = (
            "allocator_iterations", "va_iterations", "input_speedup", "output_speedup", "internal_speedup",
            "crossbar_cycles",
        )  # fmt: skip
        return next((key for key in keys if getattr(self, key) not in (1, None)), "")

    def _speedup_problems(self) -> Iterator[Problem]:
        """Check what does not go together with speedups and iterations."""
        key = self.sped_up
        with_it = f"with {key}={getattr(self, key):g}"
        yield from self._iteration_problems()
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

    def _iteration_problems(self) -> Iterator[Problem]:
        """Check that what makes several iterations can, with arbiters that can."""
        both, own = self.allocator_iterations, self.va_iterations
        with_both, with_own = f"with allocator_iterations={both}", f"with va_iterations={own}"
        able = "must be islip, output_first or pim"
        if both > 1 and self.sa not in ITERATED and (own is not None or self.va not in ITERATED):
            either, given = ("", self.sa) if own is not None else ("or va ", f"{self.sa} and {self.va}")
            yield Problem("sa", f"{either}{able} {with_both}, not {given}")
        if own is not None and own > 1 and self.va not in ITERATED:
            yield Problem("va", f"{able} {with_own}, not {self.va}")
        of_sa = both > 1 and self.sa in ("output_first", "islip") and self.arbiter != "round_robin"
        if of_sa:
            yield Problem("arbiter", f"must be round_robin {with_both}, not {self.arbiter}")
        said = of_sa and own is None and self.va_arbiter is None
        if (own or both) > 1 and self.va in ("output_first", "islip") and self.vc_arbiter != "round_robin" and not said:
            limit = f"must be round_robin {with_own if own else with_both}"
            yield Problem(self.vc_arbiter_key, f"{limit}, not {self.vc_arbiter}")

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
