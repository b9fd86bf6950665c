"""Links and switches of a packet network that fail and work again in a run (docs/definitions/torus-router.md).

All of it happens between two cycles of the kernel, which knows of three things: a link that is never free, a link that
gives back what is sent over it, and ways that stand in tables.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numba import void
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.free_memory import refuse_beyond_memory
from hopforge.model.kernel.compile import entry
from hopforge.model.kernel.memory import int64s
from hopforge.model.routing import RoutingPlan
from hopforge.model.topology import Topology
from hopforge.sim.failures.epochs import Epoch, make_epochs
from hopforge.sim.failures.record import counted
from hopforge.sim.packet import records as r
from hopforge.sim.packet.around import SEARCH_BYTES, WAY_BYTES, Around, ways_around
from hopforge.sim.packet.events import NEVER, QUEUE_BITS, QUEUE_MASK
from hopforge.sim.packet.records import NET_RECORD, source_at
from hopforge.sim.packet.settings import DRAIN_PACKETS, Settings
from hopforge.sim.packet.state import PacketState
from hopforge.sim.packet.way_kernel import list_routes

if TYPE_CHECKING:
    import pandas as pd

Bools = NDArray[np.bool_]


@dataclass
class PacketFailureRecord:
    """What one failure or repair did.

    Attributes
    ----------
    packets_on_links, packets_in_switches : int
        Lost on a link that failed, or in a switch that failed.
    packets_unsent : int
        Of the source of a switch that failed: never sent.
    packets_unroutable : int
        Dropped from then to the next failure or repair, as their destination had failed.
    packets_undrained : int
        Dropped from an escape channel that the new ways need, and that did not become empty.
    messages_lost : int
        Messages of a program that lost their first packet here: they never arrive.
    reprogrammed_cycle : int
        When the new ways were in force; −1: not yet.
    """

    cycle: int
    what: str
    packets_on_links: int = 0
    packets_in_switches: int = 0
    packets_unsent: int = 0
    packets_unroutable: int = 0
    packets_undrained: int = 0
    messages_lost: int = 0
    reprogrammed_cycle: int = -1

    @property
    def packets_lost(self) -> int:
        """Lost and dropped."""
        return self.packets_on_links + self.packets_in_switches + self.packets_unroutable + self.packets_undrained

    def losses(self) -> list[str]:
        """Say what was lost, for the terminal."""
        words = []
        if self.packets_lost:
            words.append(
                f"{counted(self.packets_lost, 'packet')} lost ({self.packets_on_links} on links, "
                f"{self.packets_in_switches} in switches, {self.packets_unroutable} on their way to a failed switch, "
                f"{self.packets_undrained} in an escape channel of earlier ways)"
            )
        words += [f"{counted(self.packets_unsent, 'packet')} abandoned at the hosts"] * (self.packets_unsent > 0)
        return words + [f"{counted(self.messages_lost, 'message')} lost"] * (self.messages_lost > 0)

    @property
    def stages(self) -> list[tuple[str, int]]:
        """What came after it, and in which cycle."""
        return [("new ways", self.reprogrammed_cycle)]


class PacketFailures:
    """The failures of one run.

    Parameters
    ----------
    config : Config
        With ``simulation.failures``.
    topology : Topology
        Whole.
    settings : Settings
        Of the configuration.

    Raises
    ------
    FailureError
        Parts that do not exist, or without which the network falls apart.
    """

    def __init__(self, config: Config, topology: Topology, settings: Settings) -> None:
        def no_plan(_left: Topology, _hosts: Bools) -> RoutingPlan:
            return cast(RoutingPlan, None)  # packet routers have rules instead

        failures = config.simulation.failures
        self.topology, self.settings = topology, settings
        self.flit_cycles, self.cycle_ns = settings.send_cycles, settings.cycle_ns
        self.epochs = make_epochs(topology, failures, config.failed, no_plan, settings.send_cycles)
        pairs = topology.routers**2
        refuse_beyond_memory(pairs * (WAY_BYTES * len(self.epochs) + SEARCH_BYTES), "tables of ways around failures")
        self._ways = {epoch.cycle: ways_around(epoch.topology) for epoch in self.epochs}
        self.to_come = list(self.epochs)
        self.records: list[PacketFailureRecord] = []
        self._down = np.zeros((topology.routers, topology.max_ports), bool)
        self._gone = np.zeros(topology.routers, bool)
        self._stopped = np.zeros(topology.routers, bool)
        self._wanted: Epoch | None = None
        self._ready_at = self._drained_by = 0
        self._unroutable = 0
        #: the failure with which a switch began to abandon what its source creates
        self._abandoned_by: dict[int, PacketFailureRecord] = {}
        #: messages of a program that have lost a packet, which never arrive
        self.lost_messages: set[int] = set()
        #: switches that lost packets have visited
        self.lost_visits = 0

    def begin(self, state: PacketState) -> None:
        """Take the state of a network at cycle 0."""
        self.state = state
        self._patience = int(state.record["standstill_cycles"])

    @property
    def next_cycle(self) -> int:
        """Cycle in which something is due; `NEVER`: nothing is."""
        due = [epoch.cycle for epoch in self.to_come[:1]]
        if self._wanted is not None:
            due.append(self._ready_at)
        return min(due, default=NEVER)

    def step(self) -> None:
        """Do what is due in the present cycle, before anything else happens in it."""
        now = int(self.state.counters["now"])
        if self.to_come and self.to_come[0].cycle == now:
            self._begin(self.to_come.pop(0), now)
        if self._wanted is not None and self._ready_at == now:
            self._install(self._wanted, now)

    def note(self) -> None:
        """Add the packets that were dropped to the last failure or repair."""
        dropped = int(self.state.counters["unroutable"])
        if self.records:
            self.records[-1].packets_unroutable += dropped - self._unroutable
        self._unroutable = dropped

    def table(self) -> "pd.DataFrame":
        """One row per failure or repair that took place, with the length of a cycle."""
        import pandas as pd  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

        self.note()
        more = {"cycle_ns": self.cycle_ns}
        rows = [asdict(one) | {"packets_lost": one.packets_lost} | more for one in self.records]
        return pd.DataFrame(rows, columns=[*(one.name for one in fields(PacketFailureRecord)), "packets_lost", *more])

    # ---- failures and repairs ---------------------------------------------------------------------------------------

    def _begin(self, epoch: Epoch, now: int) -> None:
        """Let parts fail, or work again."""
        self.note()
        record = PacketFailureRecord(epoch.cycle, epoch.what)
        self.records.append(record)
        links = epoch.ports & (self.topology.peer_router >= 0)
        self._fail_links(self._links(links & ~self._down), record)
        gone = np.flatnonzero(epoch.switches & ~self._gone)
        self._clear_switches(gone, record)
        self._stop_sources(gone, now, record)
        for link in self._links(self._down & ~links).tolist():
            self._free(link, now)
        self._down, self._gone = links, epoch.switches
        self._wanted = epoch
        self._ready_at = max(self._ready_at, now + epoch.detection_cycles + epoch.reprogram_cycles)
        self._drained_by = self._ready_at + DRAIN_PACKETS * self.settings.send_cycles
        # what waits before a failed link is no standstill
        self.state.record["standstill_cycles"] = NEVER

    def _links(self, ports: Bools) -> NDArray[np.int64]:
        """Numbers of the links of the kernel behind ports of the topology."""
        node, port = np.nonzero(ports)
        return (node << int(self.state.record["port_bits"])) + port - 1

    def _gives_back(self, link: int) -> bool:
        return bool(self.state["peer"].reshape(-1)[link] == link >> int(self.state.record["port_bits"]))

    def _fail_links(self, links: Iterable[int], record: PacketFailureRecord) -> None:
        """Lose what has been sent over links and not answered, unless the other end has taken it."""
        state = self.state
        failing = {link for link in map(int, links) if not self._gives_back(link)}
        if not failing:
            return
        lost = self._cut(lambda queue: queue // r.VC_STRIDE in failing)
        for link in failing:
            state["link"]["free"][link] = NEVER
            for queue in range(link * r.VC_STRIDE, (link + 1) * r.VC_STRIDE):
                self._put_queue(queue, self._waiting(queue))
        self._lose(lost)
        record.packets_on_links += len(lost)

    def _cut(self, failing: Callable[[int], bool]) -> list[int]:
        """Forget what is under way from queues; returns the packets that are nowhere else."""
        lost = []
        for kind, shift in ((r.ARRIVALS, 0), (r.ANSWERS, 1)):
            kept = []
            for time, what in self.state.events_of(kind):
                if not failing((what >> shift) & QUEUE_MASK):
                    kept.append((time, what))
                elif kind == r.ARRIVALS or what & 1 == 0:  # under way, or sent back
                    lost.append(what >> (QUEUE_BITS + shift))
            self.state.put_events(kind, kept)
        return lost

    def _waiting(self, queue: int) -> list[int]:
        """Packets of a queue that have not been sent."""
        count, sent = int(self.state["queue_count"][queue]), int(self.state["queue_sent"][queue])
        return [int(p) for k, p in enumerate(self.state["queue_packet"][queue][:count]) if not sent >> k & 1]

    def _put_queue(self, queue: int, packets: list[int]) -> None:
        """Let packets be all that waits in a queue."""
        self.state["queue_packet"][queue][: len(packets)] = packets
        self.state["queue_count"][queue], self.state["queue_sent"][queue] = len(packets), 0

    def _lose(self, packets: list[int], *, coming: bool = False) -> None:
        """Give up packets; in a program their messages are lost with them.

        `coming`: they have set off for the last switch that they count, and have not come there.
        """
        state, counters = self.state, self.state.record
        if counters["programs"]:
            known = len(self.lost_messages)
            self.lost_messages.update(state["packet"]["number"][packets].tolist())
            self.records[-1].messages_lost += len(self.lost_messages) - known
        self.lost_visits += int((state["packet"]["hops"][packets] + (not coming)).sum())
        for p in packets:
            state["packet"]["queue"][p] = -1
            state["free_packet"][int(counters["free_packets"])] = p
            counters["free_packets"] += 1
        counters["vanished"] += len(packets)

    def _clear_switches(self, switches: NDArray[np.int64], record: PacketFailureRecord) -> None:
        """Lose what waits in switches; what they have sent is on links that have failed with them."""
        state, bits = self.state, int(self.state.record["port_bits"])
        lost = []
        for node in switches.tolist():
            for queue in range((node << bits) * r.VC_STRIDE, ((node + 1) << bits) * r.VC_STRIDE):
                count, sent = int(state["queue_count"][queue]), int(state["queue_sent"][queue])
                lost += [int(p) for k, p in enumerate(state["queue_packet"][queue][:count]) if not sent >> k & 1]
                # a link that gives back may have some under way, which are in the switch, too
                lost += [int(p) for k, p in enumerate(state["queue_packet"][queue][:count])
                         if sent >> k & 1 and state["packet"]["queue"][p] == queue]  # fmt: skip
                self._put_queue(queue, [])
        gone = set(switches.tolist())
        for kind, shift in ((r.ARRIVALS, 0), (r.ANSWERS, 1)):
            kept = [
                (time, what) for time, what in state.events_of(kind)
                if ((what >> shift) & QUEUE_MASK) // r.VC_STRIDE >> bits not in gone
            ]  # fmt: skip
            state.put_events(kind, kept)
        self._lose(lost)
        record.packets_in_switches += len(lost)

    def _stop_sources(self, switches: NDArray[np.int64], now: int, record: PacketFailureRecord) -> None:
        """Abandon the messages that the sources of failed switches create until these are repaired."""
        state, s = self.state, self.settings
        gone = set(switches.tolist())
        self._stopped[switches] = True
        if state.record["programs"]:
            return  # no rank runs there
        kept = [(time, what) for time, what in state.events_of(r.OFFERS) if what & QUEUE_MASK not in gone]
        state.put_events(r.OFFERS, kept)
        births = state["birth"].reshape(-1, s.messages)
        for node in gone:
            back = next((epoch.cycle for epoch in self.to_come if not epoch.switches[node]), NEVER)
            source = state["source"][node]
            first = int(source["message"])
            later = first + int((births[node, first:] < back).sum())
            unsent = (later - first) * s.message_packets - (int(source["accepted"]) if later > first else 0)
            source["message"], source["may_offer"] = later, NEVER
            source["offered"] = source["accepted"] = 0
            state.record["abandoned"] += unsent
            record.packets_unsent += unsent
            self._abandoned_by[node] = record

    def births_moved(self) -> None:
        """Abandon what the sources of failed switches create until the repair by the new times, and nothing else."""
        births = self.state["birth"].reshape(-1, self.settings.messages)
        for node in np.flatnonzero(self._gone):
            back = next((epoch.cycle for epoch in self.to_come if not epoch.switches[node]), NEVER)
            self._abandon_to(int(node), int((births[node] < back).sum()))

    def end(self, now: int) -> None:
        """Cut the run in this cycle: nobody abandons what would have been created from now on."""
        births = self.state["birth"].reshape(-1, self.settings.messages)
        for node in np.flatnonzero(self._gone):
            created = int((births[node] < now).sum())
            self._abandon_to(int(node), min(created, int(self.state["source"]["message"][node])))

    def _abandon_to(self, node: int, message: int) -> None:
        """Let `message` be the first that the source of a failed switch does not abandon."""
        source = self.state["source"][node]
        more = (message - int(source["message"])) * self.settings.message_packets
        source["message"] = message
        self.state.record["abandoned"] += more
        self._abandoned_by[node].packets_unsent += more

    def _free(self, link: int, now: int) -> None:
        """Let a link send from now on."""
        if self.state["link"]["free"][link] == NEVER:
            self.state["link"]["free"][link] = now
            self.state.put_events(r.FREES, [(now, link), *self.state.events_of(r.FREES)])

    # ---- new ways ---------------------------------------------------------------------------------------------------

    def _install(self, epoch: Epoch, now: int) -> None:
        """Put the ways of an epoch in force, as soon as no packet is left in the escape channels that they need."""
        record, present = self.state.record, int(self.state.record["escape_vc"])
        whole = not self._down.any() and not self._gone.any()
        to_rings = whole and present != r.ESCAPE_VIA
        spare = r.ESCAPE_VIA if present == r.SPARE else r.SPARE
        needed = ([] if present < 0 else [r.ESCAPE_VIA, r.ESCAPE]) if to_rings else [spare]
        self._ready_at = now + self.settings.send_cycles
        if not all(self._empty(vc) for vc in needed):
            if now < self._drained_by:
                return
            self._drop_channels(needed)
        if to_rings:
            record["around"], record["escape_vc"] = 0, -1
        else:
            record["around"], record["escape_vc"] = 1, spare
            self._put_tables(self._ways[epoch.cycle])
        # a whole network goes back to its rings from the spare channel
        self._wanted = epoch if whole and not to_rings else None
        self._drained_by = self._ready_at + DRAIN_PACKETS * self.settings.send_cycles
        self._put_ways(now)

    def _drop_channels(self, vcs: list[int]) -> None:
        """Lose what stands in virtual channels that do not become empty."""
        lost = self._cut(lambda queue: queue % r.VC_STRIDE in vcs)
        for vc in vcs:
            for queue in range(vc, len(self.state["queue_count"]), r.VC_STRIDE):
                lost += self._waiting(queue)
                self._put_queue(queue, [])
        self._lose(lost)
        self.records[-1].packets_undrained += len(lost)

    def _empty(self, vc: int) -> bool:
        """Nothing stands in the queues of a virtual channel."""
        return not self.state["queue_count"][vc :: r.VC_STRIDE].any()

    def _put_tables(self, ways: Around) -> None:
        self.state["around_way"][:] = ways.way
        self.state["around_next"][:] = ways.following

    def _put_ways(self, now: int) -> None:
        """Let links that have failed give back what waits before them, and all sources know the ways."""
        state, ports = self.state, 2 * len(self.topology.params["radices"])
        self._give_back(now)
        there = (self.topology.peer_router >= 0) & ~self._down
        state["routes"]["links"] = there[:, 1 : ports + 1] @ (1 << np.arange(ports))
        self._list_ways()
        state["source"]["may_offer"][self._stopped & ~self._gone] = now
        self._stopped &= self._gone
        state.record["standstill_cycles"], state.record["last_move"] = self._patience, now
        for record in self.records if self._wanted is None else []:
            record.reprogrammed_cycle = now if record.reprogrammed_cycle < 0 else record.reprogrammed_cycle

    def _give_back(self, now: int) -> None:
        """Let failed links lead back to where they begin."""
        bits, ports = int(self.state.record["port_bits"]), 2 * len(self.topology.params["radices"])
        peers = self.topology.peer_router[:, 1 : ports + 1]
        nodes = np.arange(len(peers))[:, None]
        down = self._down[:, 1 : ports + 1] & ~self._gone[:, None]
        self.state["peer"].reshape(-1, 1 << bits)[:, :ports] = np.where(down, nodes, peers)
        for link in self._links(self._down & ~self._gone[:, None]).tolist():
            self._free(link, now)

    def _list_ways(self) -> None:
        """Let sources list the ways of their messages anew."""
        if self.state.record["programs"]:
            self.state["source"]["listed"] = -1  # with the next packet
        else:
            _list_all(self.state.record)


@entry(void(NET_RECORD))
def _list_all(net: Any) -> None:
    for node in range(net.nodes):
        message = source_at(net, node).message
        if message < net.messages:
            list_routes(net, node, int64s(net.destination)[node * net.messages + message])
