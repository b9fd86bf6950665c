"""Linear forwarding tables of a subnet with hosts, as OpenSM dumps them (``opensm-lfts.dump``) and reads them.

OpenSM takes such a file with ``routing_engine file`` and ``lfts_file``. It finds switches by their GUIDs and moves LIDs
of other subnets by port GUID and LMC.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hopforge.model.errors import UserError
from hopforge.model.irregular.tables import RoutingTables
from hopforge.model.topology import Topology

__all__ = ["MOST_UNICAST_LID", "SubnetLids", "lft_lines", "subnet_lids"]

MOST_UNICAST_LID = 0xBFFF
"""Largest LID that is no multicast LID (InfiniBand)."""

_SWITCH_GUID, _HOST_GUID = 0x0200_0000_0000_0001, 0x0200_0000_0001_0001  # bit of a locally administered EUI-64


@dataclass(frozen=True)
class SubnetLids:
    """LIDs of a subnet: switch s has s + 1; host h 2^lmc from ``first_host`` + h · 2^lmc on, a multiple of 2^lmc.

    Attributes
    ----------
    switches, hosts : int
        How many there are.
    lmc : int
        Low bits of a LID in which the LIDs of a host differ.
    """

    switches: int
    hosts: int
    lmc: int

    @property
    def first_host(self) -> int:
        """First LID of host 0."""
        return -(-(self.switches + 1) // (1 << self.lmc)) << self.lmc

    @property
    def last(self) -> int:
        """Largest LID."""
        return self.first_host + (self.hosts << self.lmc) - 1 if self.hosts else self.switches


def subnet_lids(topology: Topology, lmc: int) -> SubnetLids | None:
    """Return the LIDs of a network, None if there are not enough of them for a network without LMC.

    Raises
    ------
    UserError
        There would be enough with a smaller LMC.
    """
    lids = SubnetLids(topology.routers, topology.hosts, lmc)
    if lids.last <= MOST_UNICAST_LID:
        return lids
    if lmc == 0:
        return None
    raise UserError(
        f"tables.lmc: {lids.hosts} hosts with {1 << lmc} LIDs each and {lids.switches} switches need {lids.last} LIDs; "
        f"there are {MOST_UNICAST_LID}"
    )


def lft_lines(tables: RoutingTables, lids: SubnetLids) -> Iterator[str]:
    """Yield ``lft.txt``, a switch at a time: out port from 1 on, 0 the switch itself; nothing of one that has failed.

    Of parallel links the LIDs of a host, and neighbouring hosts, take one after the other. Where tables have several
    paths, LID k of a host has path k, and the number of the host chooses among parallel links.
    """
    topology, paths = tables.topology, tables.all_paths
    works = (topology.peer_router >= 0).any(axis=1) | (topology.routers == 1)
    host_of = np.arange(lids.hosts << lids.lmc) >> lids.lmc
    ends = [(s + 1, s, f"Switch portguid 0x{_SWITCH_GUID + s:016x}: 'router {s}'") for s in range(lids.switches)]
    for k, h in enumerate(host_of.tolist()):
        words = f"Channel Adapter portguid 0x{_HOST_GUID + h:016x}: 'host {h}'"
        ends.append((lids.first_host + k, int(topology.host_router[h]), words))
    for switch in np.flatnonzero(works).tolist():
        peers = topology.peer_router[switch]
        ports = {hop: (np.flatnonzero(peers == hop) + 1).tolist() for hop in set(peers[peers >= 0].tolist())}
        lines = [
            f"Unicast lids [0-{lids.last}] of switch Lid {switch + 1} guid 0x{_SWITCH_GUID + switch:016x} "
            f"('router {switch}'):\n"
        ]
        for lid, target, words in ends:
            if target == switch:
                port = 0
                if lid >= lids.first_host:
                    port = int(topology.host_port[host_of[lid - lids.first_host]]) + 1
            else:
                number = max(lid - lids.first_host, 0)
                hop = int(paths[number % len(paths)].next_hop[switch, target])
                if hop < 0:
                    continue  # it has failed
                chosen = lid if len(paths) == 1 else number >> lids.lmc
                port = ports[hop][chosen % len(ports[hop])]
            lines.append(f"0x{lid:04x} {port:03d} # {words}\n")
        yield "".join([*lines, f"{lids.last} lids dumped\n"])
