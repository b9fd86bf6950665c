"""Golden service host: keeps a router's entries of packets, and acknowledges them.

docs/definitions/acknowledges.md.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hopforge.model.config import Config
from hopforge.model.router.flit import Flit
from hopforge.model.router.network import HostModel, Packet
from hopforge.model.router.params import RouterParams
from hopforge.model.router.tables import RouterTables
from hopforge.model.topology import Topology

__all__ = ["AcknowledgeRules", "Mail", "ServiceHost", "acknowledge_rules", "tables_with_service"]


@dataclass(frozen=True)
class AcknowledgeRules:
    """Section `traffic.acknowledge`; `queue`, `own_queue` and `age_limit_cycles`: None for no limit."""

    flits: int = 3
    ratio: int = 1
    delay_cycles: int = 1
    queue: int | None = None
    own_queue: int | None = None
    table: int = 1024
    age_limit_cycles: int | None = None


def acknowledge_rules(config: Config) -> AcknowledgeRules | None:
    """Section `traffic.acknowledge`; None: no acknowledges."""
    found = config.traffic.acknowledge
    return None if found is None else AcknowledgeRules(**found.model_dump(exclude={"vcs", "skew_cycles"}))


class _Entry(NamedTuple):
    """Packet (source and number), when its head came, and its input port; None: from a host."""

    packet: tuple[int, int]
    cycle: int
    port: int | None


class _Waiting(NamedTuple):
    """An acknowledge that waits: its packet, and whether it takes a place."""

    packet: tuple[int, int]
    kept: bool


#: what acknowledges carry: (sending service host, its number) → packet
Mail = dict[tuple[int, int], tuple[int, int]]


class ServiceHost(HostModel):
    """The service host of a router.

    In each cycle first `heads_came`, then `packet_taken`, then `step`.

    Parameters
    ----------
    params, latency_cycles
        As for `HostModel`.
    rules : AcknowledgeRules
        What it does.
    number : int
        Its own.
    behind : sequence of int
        Service host of the router behind each port, -1: none.
    vcs : sequence of int
        VCs of acknowledges.
    mail : Mail
        Shared by all service hosts.

    Attributes
    ----------
    table : list
        Entries, oldest first.
    counts : Counter
        By the names of the definition.
    """

    def __init__(
        self,
        params: RouterParams,
        rules: AcknowledgeRules,
        number: int,
        behind: Sequence[int],
        vcs: Sequence[int],
        mail: Mail,
        latency_cycles: int = 1,
    ) -> None:
        self._vcs = vcs
        super().__init__(params, (), latency_cycles)
        self.rules, self.number, self._behind, self._mail = rules, number, behind, mail
        self.table: list[_Entry] = []
        self.counts: Counter[str] = Counter()
        self._heads: dict[int, tuple[int, int]] = {}  # acknowledges whose tail has not come, by VC
        self._waiting: list[_Waiting] = []  # those in the sender's queue
        self._made = 0

    def _sender_vcs(self) -> Sequence[int]:
        return self._vcs

    def heads_came(self, cycle: int, heads: Sequence[tuple[int | None, tuple[int, int]]]) -> None:
        """Enter the packets whose heads came in this cycle and go on from here: (port, packet), by port."""
        limit = self.rules.age_limit_cycles
        if limit is not None:
            kept = [entry for entry in self.table if cycle - entry.cycle <= limit]
            self.counts["expired_entries"] += len(self.table) - len(kept)
            self.table = kept
        for port, packet in heads:
            if not self._asks(packet):
                continue
            if len(self.table) == self.rules.table:
                self.counts["table_full"] += 1
                continue
            self.table.append(_Entry(packet, cycle, port))
            self.counts["entries"] += 1

    def packet_taken(self, cycle: int, port: int | None, packet: tuple[int, int]) -> None:
        """Acknowledge a packet whose tail a host of this router takes, and whose head came by `port`."""
        self.counts["delivered"] += 1
        if port is None or not self._asks(packet):
            return
        limit = self.rules.own_queue
        if limit is not None and sum(not one.kept for one in self._waiting) >= limit:
            self.counts["acks_own_full"] += 1
            return
        self.counts["acks_made"] += 1
        self._create(cycle, port, packet, kept=False)

    def _asks(self, packet: tuple[int, int]) -> bool:
        return self.rules.ratio > 0 and (packet[1] + 1) % self.rules.ratio == 0

    def _create(self, cycle: int, port: int, packet: tuple[int, int], *, kept: bool) -> None:
        p, rules = self.params, self.rules
        data = self._behind[port] | self.number << p.address_bits | self._made % (1 << p.tag_bits) << 2 * p.address_bits
        if p.switching == "vct":
            data |= rules.flits << 2 * p.address_bits + p.tag_bits
        self._mail[self.number, self._made] = packet
        self._made += 1
        self._sender.queue.append(Packet(cycle + rules.delay_cycles, data, rules.flits, data))
        self._waiting.append(_Waiting(packet, kept))
        self.counts["acks_sent"] += 1

    def _take(self, cycle: int, came: Flit | None) -> Flit | None:
        if came is None:
            return None
        if came.is_head:
            p = self.params
            address, tag = (1 << p.address_bits) - 1, (1 << p.tag_bits) - 1
            self._heads[came.vc] = (came.data >> p.address_bits & address, came.data >> 2 * p.address_bits & tag)
        if came.is_tail:
            self._look(cycle, self._mail.pop(self._heads.pop(came.vc)))
        return came

    def _look(self, cycle: int, packet: tuple[int, int]) -> None:
        """Do what the acknowledge of `packet` asks for, all of which has come."""
        if self.rules.queue is not None and sum(one.kept for one in self._waiting) >= self.rules.queue:
            self.counts["acks_queue_full"] += 1
            return
        places = [place for place, entry in enumerate(self.table) if entry.packet == packet]
        if not places:
            self.counts["acks_no_entry"] += 1
            return
        port = self.table.pop(places[-1]).port
        if port is None:
            self.counts["acks_home"] += 1
        else:
            self._create(cycle, port, packet, kept=True)

    def _send(self, cycle: int) -> Flit | None:
        flit = super()._send(cycle)
        if flit is not None and flit.is_tail:
            del self._waiting[0]
        return flit


def tables_with_service(topology: Topology, tables: RouterTables, vcs: int, ack_mask: int) -> RouterTables:
    """Add the ways of acknowledges to the tables of routers, whose last port is the service port.

    A service host behind a neighbour is reached by all links to it, so this is for networks without parallel links.

    Parameters
    ----------
    topology : Topology
        Whose last port is free.
    tables : RouterTables
        For all hosts.
    vcs : int
        Virtual channels of a port.
    ack_mask : int
        Those of acknowledges.
    """
    R, P = topology.routers, topology.max_ports
    ports = np.zeros((R, R), np.uint64)
    for router, port in zip(*np.nonzero(topology.peer_router >= 0), strict=True):
        ports[router, topology.peer_router[router, port]] |= np.uint64(1 << int(port))
    ports[np.arange(R), np.arange(R)] = np.uint64(1 << (P - 1))
    rule = np.zeros((1, P, vcs, P), np.uint16)
    rule[:, : P - 1, :, P - 1], rule[:, P - 1, :, : P - 1] = (1 << vcs) - 1, ack_mask
    number = np.array([len(rules) for rules in tables.vc_rule], np.uint8)
    return replace(
        tables,
        ports=np.concatenate([tables.ports, ports], axis=1),
        route_class=np.concatenate([tables.route_class, np.tile(number[:, None], (1, R))], axis=1),
        escape=np.concatenate([tables.escape, np.full((R, R), -1, np.int16)], axis=1),
        vc_rule=tuple(np.concatenate([each, rule]) for each in tables.vc_rule),
        escape_rule=tuple(np.concatenate([each, np.zeros_like(rule)]) for each in tables.escape_rule),
    )
