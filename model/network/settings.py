"""Parameters of a simulated network: routers, sources, data of routing and pattern."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.router import VcArbiter
from hopforge.model.network.core.kinds import (
    DRAWN,
    FAIR_WAVEFRONT,
    FREE_QUEUE,
    INPUT_FIRST,
    INPUT_FIRST_PORTS,
    LONELY,
    MAXIMUM,
    OUTPUT_FIRST,
    WAVEFRONT,
)
from hopforge.model.network.core.state import NetworkError
from hopforge.model.network.parts.agent_state import AgentParameters
from hopforge.model.network.parts.class_arrays import TrafficClasses
from hopforge.model.network.parts.feedback import Feedback
from hopforge.model.network.parts.lookup_build import RouteLookup
from hopforge.model.network.parts.program_arrays import ProgramSource
from hopforge.model.network.parts.reply_arrays import Replies
from hopforge.model.network.parts.spray_arrays import Spraying
from hopforge.model.network.parts.trail_tables import Acknowledges
from hopforge.model.topology import Topology
from hopforge.model.topology.groups import GROUPED_KINDS
from hopforge.model.topology.link_times import input_queued_cycles, port_values
from hopforge.model.topology.tiers import cycles_per_flit, has_speeds, link_ns

ALLOCATORS = {
    "input_first": INPUT_FIRST, "output_first": OUTPUT_FIRST, "islip": OUTPUT_FIRST, "wavefront": WAVEFRONT,
    "max_size": MAXIMUM, "rr_wavefront": FAIR_WAVEFRONT, "loa": LONELY, "pim": DRAWN,
}  # fmt: skip
VC_ALLOCATORS = ALLOCATORS | {"free_queue": FREE_QUEUE}
SWITCH_ALLOCATORS = ALLOCATORS | {"input_ahead": INPUT_FIRST, "input_first_ports": INPUT_FIRST_PORTS}
#: switch allocators that only `parts.crossbar_match` has
_OF_CROSSBARS = {FAIR_WAVEFRONT, LONELY, DRAWN, INPUT_FIRST_PORTS}
SPECULATIONS = (False, True, "shared", "yielding")
SWITCHING = {"wormhole": 0, "vct": 1, "saf": 2}
MAX_VCS = 16
_ARBITERS = ("round_robin", "matrix")
#: more cycles than a hop takes without links and the stages that have a length of their own
_STEPS_OF_A_HOP = 16


#: listed packets: host, time, destination, length, one entry a packet
Script = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class RouterParameters(VcArbiter):
    """Parameters of every router (docs/definitions/router.md, Parameters); times in cycles.

    Attributes
    ----------
    link_latency_cycles : NDArray or int
        Latency L of the links between routers: one number, or int[router, port] by output port.
    lookup : RouteLookup, optional
        Lookup engines that compute routes, in place of tables that answer after `rc_cycles`.
    deadlock_cycles : int
        Without a move, with flits in flight, after which a run ends; never less than `longest_still_cycles`.
    """

    vcs: int = 4
    buffer_flits: int = 8
    switching: str = "wormhole"
    rc_cycles: int = 0
    lookahead: bool = False
    va: str = "output_first"
    sa: str = "output_first"
    arbiter: str = "round_robin"
    va_arbiter: str | None = None
    speculation: bool | str = False
    hold_switch: bool = False
    allocator_iterations: int = 1
    va_iterations: int | None = None
    sa_first_output: int = 0
    allocator_ports: str = "network"
    input_speedup: int = 1
    output_speedup: int = 1
    internal_speedup: float = 1.0
    crossbar_cycles: int = 1
    stage_batches: bool = False
    output_queue_flits: int | None = None
    vc_release: str = "tail"
    credit_delay_cycles: int = 0
    link_latency_cycles: Any = 1
    host_latency_cycles: int = 1
    cycles_per_flit: Any = 1
    deadlock_cycles: int = 5000
    lookup: RouteLookup | None = None

    def __post_init__(self) -> None:
        checks = [
            ("vcs", 1 <= self.vcs <= MAX_VCS, f"1..{MAX_VCS}", self.vcs),
            ("buffer_flits", 1 <= self.buffer_flits <= 65535, "1..65535", self.buffer_flits),
            ("switching", self.switching in SWITCHING, "wormhole, vct or saf", self.switching),
            ("va", self.va in VC_ALLOCATORS, ", ".join(VC_ALLOCATORS), self.va),
            ("sa", self.sa in SWITCH_ALLOCATORS, ", ".join(SWITCH_ALLOCATORS), self.sa),
            ("arbiter", self.arbiter in _ARBITERS, "round_robin or matrix", self.arbiter),
            ("va_arbiter", self.vc_arbiter in _ARBITERS, "round_robin or matrix", self.va_arbiter),
            ("speculation", self.speculation in SPECULATIONS, "false, true, shared or yielding", self.speculation),
            (
                "speculation",
                self.va != "free_queue" or self.speculation is False,
                "false with va=free_queue (heads ask for the switch anyway)",
                self.speculation,
            ),
            (
                "hold_switch",
                not self.hold_switch or self.va != "free_queue",
                "false with va=free_queue",
                self.hold_switch,
            ),
            *self._speedup_checks(),
            ("vc_release", self.vc_release in ("tail", "credits"), "tail or credits", self.vc_release),
            ("rc_cycles", self.rc_cycles >= 0, "at least 0", self.rc_cycles),
            ("credit_delay_cycles", self.credit_delay_cycles >= 0, "at least 0", self.credit_delay_cycles),
            ("host_latency_cycles", self.host_latency_cycles >= 1, "at least 1", self.host_latency_cycles),
            ("cycles_per_flit", np.min(self.cycles_per_flit) >= 1, "at least 1", self.cycles_per_flit),
        ]
        for name, fine, limit, value in checks:
            if not fine:
                raise NetworkError(f"{name} must be {limit}, not {value}")
        if int(np.min(self.link_latency_cycles)) < 1:
            raise NetworkError(f"link_latency_cycles must be at least 1, not {int(np.min(self.link_latency_cycles))}")

    @property
    def vc_iterations(self) -> int:
        """Iterations of VA: its own, or those of both allocators."""
        return self.allocator_iterations if self.va_iterations is None else self.va_iterations

    @property
    def longest_still_cycles(self) -> int:
        """Most cycles in which nothing moves although all is well: a flit or a credit is under way, a stage works."""
        link = max(int(np.max(self.link_latency_cycles)), self.host_latency_cycles)
        stages = self.rc_cycles + self.crossbar_cycles + int(np.max(self.cycles_per_flit)) + _STEPS_OF_A_HOP
        if self.lookup is not None:
            second = self.lookup.params.second_level
            stages += self.lookup.tcam_latency_cycles + self.lookup.params.pipeline_depth
            stages += 0 if second is None else second.latency_cycles
        return link + self.credit_delay_cycles + stages

    @property
    def sped_up(self) -> bool:
        """Whether SA has several crossbar ports, iterations or steps in a cycle, or the crossbar takes longer.

        Connections beside speculation are there, too.
        """
        several = self.internal_speedup != 1 or self.crossbar_cycles != 1 or self.has_crossbar_ports
        held = self.hold_switch and self.speculation is not False
        return several or held or self.speculation == "yielding" or SWITCH_ALLOCATORS[self.sa] in _OF_CROSSBARS

    @property
    def has_crossbar_ports(self) -> bool:
        """Whether iSLIP has several crossbar ports at an input or output, or several iterations."""
        return (self.allocator_iterations, self.input_speedup, self.output_speedup) != (1, 1, 1)

    @property
    def routes_in_steps(self) -> bool:
        """Whether RC begins and ends with steps of a cycle."""
        return self.internal_speedup != 1 and self.rc_cycles > 0

    @property
    def has_output_queues(self) -> bool:
        """Whether flits wait behind the crossbar until the channel takes them."""
        return self.output_speedup > 1 or self.internal_speedup > 1 or self.crossbar_cycles > 1

    @property
    def between_ports(self) -> bool:
        """Whether SA matches crossbar ports; otherwise every input and output has one, and takes other allocators."""
        several = (self.input_speedup, self.output_speedup) != (1, 1)
        islip = SWITCH_ALLOCATORS[self.sa] == OUTPUT_FIRST and self.arbiter == "round_robin"
        alone = self.speculation == "yielding" or SWITCH_ALLOCATORS[self.sa] in _OF_CROSSBARS
        return self.sped_up and (several or islip or alone)

    def _speedup_checks(self) -> Iterator[tuple[str, bool, str, Any]]:
        beside = "with speedups and iterations"
        yield "allocator_iterations", 1 <= self.allocator_iterations <= 16, "1..16", self.allocator_iterations
        yield "sa_first_output", self.sa_first_output >= 0, "at least 0", self.sa_first_output
        yield "input_speedup", 1 <= self.input_speedup <= self.vcs, f"1..{self.vcs} (vcs)", self.input_speedup
        yield "output_speedup", 1 <= self.output_speedup <= 16, "1..16", self.output_speedup
        yield "internal_speedup", 1 <= self.internal_speedup <= 8, "1..8", self.internal_speedup
        yield from self._iteration_checks()
        plain = not self.sped_up
        yield "sa", plain or self.sa != "input_ahead", f"another one than input_ahead {beside}", self.sa
        yield "va", plain or self.va != "free_queue", f"another one than free_queue {beside}", self.va
        tables = self.internal_speedup == 1 or (self.lookup is None and not self.lookahead)
        yield "internal_speedup", tables, "1 with lookup engines or lookahead", self.internal_speedup
        yield from self._stage_checks()

    def _iteration_checks(self) -> Iterator[tuple[str, bool, str, Any]]:
        """Check that what makes several iterations can, with arbiters that can."""
        yield "va_iterations", 1 <= self.vc_iterations <= 16, "1..16", self.va_iterations
        kinds = {"va": VC_ALLOCATORS.get(self.va, OUTPUT_FIRST), "sa": SWITCH_ALLOCATORS.get(self.sa, OUTPUT_FIRST)}
        able = {key: kind in (OUTPUT_FIRST, DRAWN) for key, kind in kinds.items()}
        both = "output_first, islip or pim with iterations"
        if self.va_iterations is None:
            yield "sa", self.allocator_iterations == 1 or any(able.values()), f"{both}, or va", self.sa
        else:
            yield "va", self.va_iterations == 1 or able["va"], both, self.va
            yield "sa", self.allocator_iterations == 1 or able["sa"], both, self.sa
        for key, own, iterations, arbiter in (
            ("va", "va_arbiter", self.vc_iterations, self.vc_arbiter),
            ("sa", "arbiter", self.allocator_iterations, self.arbiter),
        ):
            fine = iterations == 1 or kinds[key] != OUTPUT_FIRST or arbiter == "round_robin"
            yield own, fine, "round_robin with iterations", arbiter

    def _stage_checks(self) -> Iterator[tuple[str, bool, str, Any]]:
        yield "crossbar_cycles", 1 <= self.crossbar_cycles <= 16, "1..16", self.crossbar_cycles
        whole = self.internal_speedup == 1 or self.crossbar_cycles == 1 or self.stage_batches
        yield "stage_batches", whole, "true with internal_speedup and crossbar_cycles", self.stage_batches
        yield "stage_batches", not (self.stage_batches and self.lookahead), "false with lookahead", self.stage_batches
        limit = self.output_queue_flits
        yield "output_queue_flits", limit is None or limit >= 1, "at least 1", limit
        waits = limit is None or (self.has_output_queues and int(np.max(self.cycles_per_flit)) == 1)
        yield "output_queue_flits", waits, "none unless flits wait behind the crossbar, one a cycle", limit


@dataclass(frozen=True)
class SourceParameters:
    """What every host creates.

    Attributes
    ----------
    kind : int
        BERNOULLI, ON_OFF, SCRIPT or PROGRAM.
    packet_rate : float
        Packets per host and cycle (Bernoulli), or while on (on/off).
    on_to_off, off_to_on : float
        Probabilities per cycle of an on/off source.
    lengths : ndarray or tuple
        ``(low, high)`` uniform (equal: fixed), or probabilities of lengths 1, 2, ... (float array).
    script : tuple of arrays, optional
        ``(host, time, destination, length)`` of listed packets (SCRIPT).
    message_packets : int
        Packets of a message, created together for one destination (BERNOULLI, ON_OFF).
    program : ProgramSource, optional
        Ranks that send (PROGRAM).
    replies : Replies, optional
        What hosts send back.
    acknowledges : Acknowledges, optional
        What routers send back; their last port must be free (`service_ports`).
    classes : TrafficClasses, optional
        Classes of traffic, each with a source of its own in place of all but `script` (BERNOULLI, SCRIPT).
    spraying : Spraying, optional
        Entropy of packets, reorder buffers; without `replies`, `acknowledges` and `classes`.
    """

    kind: int = 0
    packet_rate: float = 0.0
    on_to_off: float = 0.0
    off_to_on: float = 0.0
    lengths: Any = (1, 1)
    script: Script | None = None
    message_packets: int = 1
    program: ProgramSource | None = None
    replies: Replies | None = None
    acknowledges: Acknowledges | None = None
    classes: TrafficClasses | None = None
    spraying: Spraying | None = None

    @property
    def longest(self) -> int:
        """Longest packet in flits."""
        replies = 0 if self.replies is None else self.replies.longest
        acknowledges = 0 if self.acknowledges is None else self.acknowledges.flits
        return max(self._longest_created, replies, acknowledges)

    @property
    def _longest_created(self) -> int:
        if self.program is not None:
            return self.program.full_flits
        if self.script is not None:
            return int(self.script[3].max(initial=1))
        if self.classes is not None:
            return max(each.flits for each in self.classes.classes)
        return len(self.lengths) if isinstance(self.lengths, np.ndarray) else int(self.lengths[1])


@dataclass
class Tables:
    """Data of a routing algorithm and of a traffic pattern for the kernel; `decides`: it is asked at hosts, too.

    `decides_ahead`: and for the next router, when the switch sends a head there. `rows`: as in `RoutingPlan`.
    """

    routing: NDArray[np.int32] = field(default_factory=lambda: np.zeros(1, np.int32))
    memory: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    pattern: NDArray[np.int32] = field(default_factory=lambda: np.zeros(1, np.int32))
    max_candidates: int = 1
    inject_mask: Any = None
    inject_by_destination: Any = None
    reply_mask: Any = None
    ack_mask: Any = None
    feedback: Feedback | None = None
    agents: AgentParameters | None = None
    decides: bool = False
    decides_ahead: bool = False
    rows: tuple[tuple[int, int], ...] = ()


def router_parameters(config: Config, topology: Topology) -> RouterParameters:
    """Section `router` with the latency of every link."""
    router = config.router
    cycles = input_queued_cycles(router)
    between = cycles.get("link_latency_cycles", router.link_latency_cycles)
    far = cycles.get("global_latency_cycles", router.global_latency_cycles)
    latency: Any = between
    if topology.kind in GROUPED_KINDS and far is not None:
        latency = port_values(topology, between, far, between)
    if topology.link_cycles is not None and router._times_of_file:
        latency = np.where(topology.link_cycles > 0, topology.link_cycles, between)
    speeds: dict[str, Any] = {}
    if has_speeds(topology):
        fastest_gbps = 1.0  # of links that are degraded only what is left counts
        if topology.kind == "tiers":
            timing = config.timing
            fastest_gbps = timing.link_gbps
            cycle = router.cycle_ns or config.traffic.flit_bytes * 8 / fastest_gbps
            more = np.rint((link_ns(topology, timing.cable_ns) - timing.cable_ns) / cycle).astype(np.int64)
            latency = np.maximum(latency + more, 1)
        flit = cycles.get("cycles_per_flit", router.cycles_per_flit)
        speeds["cycles_per_flit"] = flit * cycles_per_flit(topology, fastest_gbps)
    simulated = {field.name for field in dataclasses.fields(RouterParameters)} - {"link_latency_cycles"}
    if router.output_queue_flits is not None and int(np.max(speeds.get("cycles_per_flit", 1))) > 1:
        slowest = int(np.max(speeds["cycles_per_flit"]))
        raise NetworkError(
            f"router.output_queue_flits: must be null where a link takes {slowest} cycles for a flit "
            f"({topology.name}), not {router.output_queue_flits}"
        )
    values = router.model_dump(include=simulated) | {k: v for k, v in cycles.items() if k in simulated} | speeds
    return RouterParameters(link_latency_cycles=latency, deadlock_cycles=config.simulation.deadlock_cycles, **values)
