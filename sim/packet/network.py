"""A packet network made ready for the kernel, stepped, and looked into."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numba import int64, types
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.kernel.compile import Entry, entry
from hopforge.model.kernel.memory import int32s
from hopforge.model.kernel.rng import seed_streams
from hopforge.model.network.core.net_record import NET, NET_RECORD, PATTERN_SIGNATURE
from hopforge.model.network.core.user_code import refuse_mistake
from hopforge.model.routing.grids.intermediate import Grid
from hopforge.model.routing.proof.deadlock import DeadlockError
from hopforge.model.topology import Topology, build
from hopforge.model.topology.failed import refuse_failed
from hopforge.sim.packet import records as r
from hopforge.sim.packet.credit_failures import CreditFailures
from hopforge.sim.packet.credit_kernel import run as run_with_credits
from hopforge.sim.packet.escape import check_escape
from hopforge.sim.packet.events import QUEUE_BITS, QUEUE_MASK
from hopforge.sim.packet.failures import PacketFailures
from hopforge.sim.packet.kernel import run as run_kernel
from hopforge.sim.packet.settings import PacketError, Settings, packet_settings, unit_period_ns
from hopforge.sim.packet.state import HostProgram, PacketState, Sources
from hopforge.sim.traffic import TrafficPlan, prepare_traffic

#: messages by which a node can be ahead of the others in a pattern by message, with ``packet.phase: random``
_MOST_AHEAD = 1024


class RouterNetwork:
    """Routers and links of a packet network; what its sources send is a matter of its kinds.

    Parameters
    ----------
    config : Config
        With ``router.model: packet``.
    seed : int
        Of all that is drawn.
    settings : Settings
        Of the configuration.
    check : bool
        Prove the escape network free of deadlock first.

    Raises
    ------
    PacketError, DeadlockError
        Settings that do not fit, or that can deadlock.
    """

    #: for queues before the links, and for queues behind them
    KERNELS: ClassVar[tuple[Entry, Entry]]

    def __init__(self, config: Config, seed: int, settings: Settings, *, check: bool) -> None:
        self.config, self.seed, self.settings = config, seed, settings
        refuse_failed(config.failed, "router.model: packet")
        self.topology: Topology = build(config.topology, config.address)
        self.grid = Grid(
            tuple(int(k) for k in self.topology.params["radices"]),
            self.topology.kind == "torus",
            config.packet.ties == "both",
        )
        if check and config.routing.check:
            check_escape(self.grid, self.settings)

        self.failures: PacketFailures | None = None
        if config.simulation.failures:
            kind = CreditFailures if self.settings.queues == "receiving" else PacketFailures
            self.failures = kind(config, self.topology, self.settings)

    def _begin(self, sources: Sources | HostProgram, *, log: bool = False) -> None:
        """Make the state."""
        failing = self.failures is not None
        self.state = PacketState(self.settings, self.grid, self.topology, sources, log=log, failures=failing)
        if self.failures is not None:
            self.failures.begin(self.state)
        self.counters, self.histogram = self.state.counters, self.state["histogram"]

    def channel_packets(self) -> NDArray[np.int64]:
        """Packets that each channel between routers has sent, refused ones too, in the order of `Topology.channels`."""
        channels = self.topology.channels()
        sent = self.state["link"]["sent"].reshape(self.topology.routers, -1)
        return np.asarray(sent[channels.src_router, channels.src_port - 1])  # port 0 is the host's

    @property
    def cycle(self) -> int:
        """Present cycle."""
        return int(self.counters["now"])

    def compile(self) -> None:
        """Compile the kernel now: that is no part of the processor time of a run."""
        self._run(self.cycle)

    def _run(self, until: int) -> int:
        """Run the kernel until cycle `until`; returns why it ended.

        Raises
        ------
        DeadlockError
            A standstill.
        """
        code = int(self.KERNELS[self.settings.queues == "receiving"](until, self.state.record))
        if code == r.STUCK:
            inside = self._inside()
            last = int(self.counters["last_move"])
            raise DeadlockError(
                f"deadlock at cycle {self.cycle}: {inside} packets are inside and no router has taken one since cycle "
                f"{last}"
            )
        return code

    def _inside(self) -> int:
        return int(self.counters["injected"] - self.counters["delivered"] - self.counters["vanished"])

    def check_conservation(self) -> None:
        """Find every packet that was taken and neither delivered nor lost in its queue (our own mistake otherwise)."""
        inside = self._inside()
        counted = len(self.live_packets())
        if counted != inside:
            raise AssertionError(f"{inside} packets should be inside, {counted} are there")
        if self.settings.queues == "receiving":
            self._check_credits()

    def _check_credits(self) -> None:
        """Find every slot that a sender counts: a packet in it or on its way, or a credit (our own mistake else)."""
        state, found = self.state, self.state["queue_count"].astype(np.int64)
        for kind in (r.ARRIVALS, r.LATE_ARRIVALS, r.OFFERS, r.ANSWERS, r.HOST_CREDITS):
            np.add.at(found, state.pending(kind) & QUEUE_MASK, 1)
        wrong = np.flatnonzero(found != state["held"])
        if len(wrong):
            q = int(wrong[0])
            raise AssertionError(f"queue {q}: its sender counts {state['held'][q]} slots, {found[q]} are taken")

    def live_packets(self) -> set[int]:
        """Numbers of the packet records that stand in their present queue, or, with credits, are on a link."""
        counts, places, stands_in = self.state["queue_count"], self.state["queue_packet"], self.state["packet"]["queue"]
        standing = [(q, packet) for q in np.flatnonzero(counts) for packet in places[q, : counts[q]].tolist()]
        if self.settings.queues == "sending":
            return {packet for q, packet in standing if stands_in[packet] == q}
        kinds = (r.ARRIVALS, r.LATE_ARRIVALS, r.OFFERS)
        coming = np.concatenate([self.state.pending(kind) for kind in kinds]) >> QUEUE_BITS
        found = {packet for _, packet in standing} | set(coming.tolist())
        return {packet for packet in found if stands_in[packet] >= 0}


class PacketNetwork(RouterNetwork):
    """A packet network at one load and seed.

    Parameters
    ----------
    config : Config
        With ``router.model: packet``.
    load : float
        In units of the load that saturates the bisection of a torus under uniform traffic.
    seed : int
        Of destinations and, with ``packet.process: exponential``, times.
    log : bool
        Note the life of every packet.
    check : bool
        Prove the escape network free of deadlock first.
    messages : int, optional
        Of every node, instead of ``packet.messages``.

    Raises
    ------
    PacketError, TrafficError, DeadlockError
        Settings that do not fit, or that can deadlock.
    """

    KERNELS = (run_kernel, run_with_credits)

    def __init__(
        self,
        config: Config,
        load: float,
        seed: int,
        *,
        log: bool = False,
        check: bool = True,
        messages: int | None = None,
    ) -> None:
        if load <= 0:
            raise PacketError(f"the load must be above 0, not {load}")
        settings = packet_settings(config)
        if messages is not None:
            settings = dataclasses.replace(settings, messages=messages)
        super().__init__(config, seed, settings, check=check)
        self.load = load
        self.period_cycles = self.settings.message_packets * unit_period_ns(config) / self.settings.cycle_ns / load
        traffic = config.traffic
        pattern = str(traffic.file) if traffic.file is not None else traffic.pattern
        plan = prepare_traffic(self.topology, pattern, traffic.model_dump(), np.random.default_rng((seed, 3)))
        ahead = np.zeros(self.topology.hosts, np.int64)
        if config.packet.phase == "random":
            ahead = np.random.default_rng((seed, 5)).integers(0, _MOST_AHEAD, self.topology.hosts)
        self.destinations = draw_destinations(plan, ahead, self.settings.messages, seed)
        self._begin(Sources(self.destinations, self._births(config.packet.process, plan)), log=log)
        self.births, self.log = self.state["birth"], self.state["log"]
        self.message_sums = self.state["message_sum"]

    def _births(self, process: str, plan: TrafficPlan) -> NDArray[np.int64]:
        """Cycles of creation: int64[node, message]."""
        nodes, messages = self.topology.hosts, self.settings.messages
        if plan.silent is not None and plan.silent.any():
            raise PacketError("traffic.pattern with silent hosts is for other router models than packet")
        if process == "periodic":
            times = np.arange(messages) * self.period_cycles
            return np.repeat(np.ceil(times).astype(np.int64)[None], nodes, axis=0)
        gaps = np.random.default_rng((self.seed, 4)).exponential(self.period_cycles, (nodes, messages))
        return np.ceil(np.cumsum(gaps, axis=1)).astype(np.int64)

    def advance(self, until: int) -> bool:
        """Go on until cycle `until`; returns whether everything has been delivered that was not lost.

        Raises
        ------
        DeadlockError
            A standstill.
        """
        while self.failures is not None and self.failures.next_cycle < until:
            if self._run(self.failures.next_cycle) == r.EMPTY:
                return True
            self.failures.step()
        return self._run(until) == r.EMPTY

    def set_load(self, load: float) -> None:
        """Offer another load from the present cycle on: the messages that have not been created yet move in time."""
        stretch = self.load / load
        later = self.births > self.cycle
        self.births[later] = self.cycle + np.ceil((self.births[later] - self.cycle) * stretch).astype(np.int64)
        self.load, self.period_cycles = load, self.period_cycles * stretch
        if self.failures is not None:
            self.failures.births_moved()


@entry(
    types.void(
        types.FunctionType(PATTERN_SIGNATURE), NET_RECORD, int64, types.int64[::1], types.Array(types.int64, 2, "C")
    )
)
def _fill(pattern: Callable[..., int], net: Any, table: int, ahead: Any, out: Any) -> None:
    for host in range(out.shape[0]):
        for number in range(out.shape[1]):
            out[host, number] = pattern(int64(host), ahead[host] + number, net, int32s(table))


def draw_destinations(plan: TrafficPlan, ahead: NDArray[np.int64], messages: int, seed: int) -> NDArray[np.int64]:
    """Destinations of the first messages of all hosts: int64[host, message], by the pattern of `sim.traffic`.

    A host begins with the message of the pattern whose number is ahead[host].
    """
    hosts = len(ahead)
    record = np.zeros(1, NET)
    streams = seed_streams(seed, 1, hosts)
    record["host_rng"] = streams.ctypes.data
    record["hosts"] = hosts
    table = np.ascontiguousarray(plan.table, np.int32)
    found = np.zeros((hosts, messages), np.int64)
    _fill(plan.pattern, record[0], table.ctypes.data, ahead, found)
    refuse_mistake(record[0])
    return found
