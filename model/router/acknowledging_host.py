"""Golden service host with the limits of hardware: docs/definitions/service-host.md."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hopforge.model.router.flit import Flit
from hopforge.model.router.network import HostModel, Packet
from hopforge.model.router.params import RouterParams
from hopforge.model.router.service_host import AcknowledgeRules

__all__ = ["AcknowledgingHost", "CameHead", "HardwareRules"]


_MOST_ENTRIES = 256


@dataclass(frozen=True)
class HardwareRules(AcknowledgeRules):
    """What acknowledges.md leaves to settings, and what hardware adds.

    Attributes
    ----------
    queue, own_queue : int
        Must be set.
    arrivals : int
        Packets at their last router that the host has not taken yet (`hw.network.acknowledge_port`).
    note_bits, time_bits : int
        Of an entry.
    """

    arrivals: int = 16
    note_bits: int = 0
    time_bits: int = 32

    @property
    def places(self) -> int:
        """Acknowledges on their way that wait."""
        return self.queue or 0

    @property
    def own(self) -> int:
        """Acknowledges of the router's own that wait."""
        return self.own_queue or 0

    def check(self, params: RouterParams) -> None:
        """Raise `ValueError` for what hardware cannot follow."""
        room = params.width_bits
        need = 2 * params.address_bits + params.tag_bits + (params.length_bits if params.switching == "vct" else 0)
        for name, limit, value, fine in (
            ("queue", "set in hardware", self.queue, self.queue is not None),
            ("flits", "2 or more in hardware: all but the head hold the stamp", self.flits, self.flits >= 2),
            ("ratio", f"a power of two up to 2^tag_bits = {1 << params.tag_bits} in hardware", self.ratio,
             self.ratio > 0 and self.ratio & (self.ratio - 1) == 0 and self.ratio <= 1 << params.tag_bits),
            ("own_queue", "1 or more in hardware", self.own_queue, self.own >= 1),
            ("table", f"1 to {_MOST_ENTRIES} in hardware", self.table, 1 <= self.table <= _MOST_ENTRIES),
            ("packets in the buffers of a router", f"at most {_MOST_ENTRIES} in hardware (buffer_flits, vcs, "
             "packet_flits)", self.arrivals, self.arrivals <= _MOST_ENTRIES),
            ("time_bits", f"at most the {room} bits of a flit", self.time_bits, self.time_bits <= room),
            ("age_limit_cycles", f"below 2^time_bits - 1 = {(1 << self.time_bits) - 1} in hardware",
             self.age_limit_cycles, (self.age_limit_cycles or 0) + 1 < 1 << self.time_bits),
            ("flit_bits", f"{need} or more for destination, source and tag", room, room >= need),
        ):  # fmt: skip
            if not fine:
                raise ValueError(f"{name} must be {limit}, not {'null' if value is None else value}")


class CameHead(NamedTuple):
    """A head that comes: input port, label (source, tag), bits of the agent's."""

    port: int
    label: tuple[int, int]
    note: int


class _Entry(NamedTuple):
    label: tuple[int, int]
    cycle: int
    port: int
    note: int


class AcknowledgingHost(HostModel):
    """The service host of a router with one host, and what it shows in each cycle.

    In each cycle first `heads_come`, then `host_takes`, then `step`.

    Parameters
    ----------
    params : RouterParams
        The router at which it is.
    rules : HardwareRules
        What it does.
    behind : sequence of int
        Address of the service host behind each port.
    host_ports : sequence of int
        Ports with hosts.
    vcs : sequence of int
        VCs of acknowledges.

    Attributes
    ----------
    table : list
        Entries, oldest first.
    counts : Counter
        By the names of the definition.
    told : tuple of int or None
        Note of the entry that was found in this cycle, and cycles from it to the stamp.
    """

    def __init__(
        self, params: RouterParams, rules: HardwareRules, behind: Sequence[int], host_ports: Sequence[int],
        vcs: Sequence[int],
    ) -> None:  # fmt: skip
        rules.check(params)
        self._vcs = vcs
        super().__init__(params, ())
        self.rules, self._behind, self._host_ports = rules, behind, frozenset(host_ports)
        self.table: list[_Entry] = []
        self.counts: Counter[str] = Counter()
        self.told: tuple[int, int] | None = None
        self._labels: dict[int, tuple[int, int]] = {}  # of acknowledges whose tail has not come, by VC
        self._waiting: list[bool] = []  # acknowledges in the sender's queue: whether each came from another router

    def _sender_vcs(self) -> Sequence[int]:
        return self._vcs

    def _asks(self, label: tuple[int, int]) -> bool:
        return (label[1] + 1) % self.rules.ratio == 0

    def heads_come(self, cycle: int, heads: Sequence[CameHead]) -> None:
        """Let entries go by age, and enter the heads of this cycle, by port."""
        self.told = None
        limit = self.rules.age_limit_cycles
        if limit is not None:
            young = [entry for entry in self.table if cycle - entry.cycle <= limit]
            self.counts["expired"] += len(self.table) - len(young)
            self.table = young
        for port, label, note in sorted(heads):
            if not self._asks(label):
                continue
            if len(self.table) == self.rules.table:
                self.counts["table_full"] += 1
            else:
                self.table.append(_Entry(label, cycle, port, note))
                self.counts["entered"] += 1

    def host_takes(self, cycle: int, port: int, label: tuple[int, int], stamp: int) -> None:
        """Acknowledge a packet whose tail the host takes, and whose head came by `port` at `stamp`."""
        if port in self._host_ports or not self._asks(label):
            return
        if self._waiting.count(False) == self.rules.own:
            self.counts["own_full"] += 1
            return
        self.counts["made"] += 1
        self._create(cycle, port, label, stamp, going_on=False)

    def _create(self, cycle: int, port: int, label: tuple[int, int], stamp: int, *, going_on: bool) -> None:
        p, flits = self.params, self.rules.flits
        head = self._behind[port] | label[0] << p.address_bits | label[1] << 2 * p.address_bits
        if p.switching == "vct":
            head |= flits << 2 * p.address_bits + p.tag_bits
        self._sender.queue.append(Packet(cycle + self.rules.delay_cycles, head, flits, stamp))
        self._waiting.append(going_on)

    def _take(self, cycle: int, came: Flit | None) -> Flit | None:
        if came is None:
            return None
        p = self.params
        if came.is_head:
            address, tag = (1 << p.address_bits) - 1, (1 << p.tag_bits) - 1
            self._labels[came.vc] = (came.data >> p.address_bits & address, came.data >> 2 * p.address_bits & tag)
        if came.is_tail:
            self._look(cycle, self._labels.pop(came.vc), came.data & (1 << self.rules.time_bits) - 1)
        return came

    def _look(self, cycle: int, label: tuple[int, int], stamp: int) -> None:
        """Do what an acknowledge asks for, all of which has come."""
        if self._waiting.count(True) == self.rules.queue:
            self.counts["queue_full"] += 1
            return
        place = next((k for k in reversed(range(len(self.table))) if self.table[k].label == label), None)
        if place is None:
            self.counts["no_entry"] += 1
            return
        entry = self.table.pop(place)
        self.told = entry.note, (stamp - entry.cycle) % (1 << self.rules.time_bits)
        if entry.port in self._host_ports:
            self.counts["home"] += 1
        else:
            self.counts["sent"] += 1
            self._create(cycle, entry.port, label, stamp, going_on=True)

    def _send(self, cycle: int) -> Flit | None:
        flit = super()._send(cycle)
        if flit is not None and flit.is_tail:
            del self._waiting[0]
        return flit
