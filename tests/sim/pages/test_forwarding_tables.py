"""Dumped forwarding tables, read by a parser of their own that follows the words of OpenSM's reader."""

import itertools
import re
from typing import NamedTuple

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.irregular.tables import RoutingTables, build_tables
from hopforge.model.topology import Topology, build
from hopforge.sim.pages.forwarding_tables import MOST_UNICAST_LID, SubnetLids, lft_lines, subnet_lids


class Dumped(NamedTuple):
    """What a dump says of one switch: ports by LID, and the port GUID of every LID."""

    lid: int
    guid: int
    ports: dict[int, int]
    owners: dict[int, int]


def read_dump(text: str) -> list[Dumped]:
    """Read a dump as strictly as OpenSM writes it; what its reader looks for is in every line."""
    switches: list[Dumped] = []
    closed = True
    for line in text.splitlines():
        if line.startswith("Unicast lids"):
            head = re.fullmatch(
                r"Unicast lids \[0-(\d+)\] of switch Lid (\d+) guid 0x([0-9a-f]{16}) \('[^']*'\):", line
            )
            assert head is not None and closed, line
            last, closed = int(head[1]), False
            switches.append(Dumped(int(head[2]), int(head[3], 16), {}, {}))
        elif line.startswith("0x"):
            row = re.fullmatch(
                r"0x([0-9a-f]{4}) (\d{3}) # (?:Switch|Channel Adapter) portguid 0x([0-9a-f]{16}): '[^']*'", line
            )
            assert row is not None and not closed, line
            lid = int(row[1], 16)
            assert max(switches[-1].ports, default=0) < lid <= last
            switches[-1].ports[lid], switches[-1].owners[lid] = int(row[2]), int(row[3], 16)
        else:
            assert line == f"{last} lids dumped"
            closed = True
    assert closed
    return switches


def dumped(text: str, lmc: int) -> tuple[RoutingTables, SubnetLids, list[Dumped]]:
    config = parse_config(f"name: t\n{text}, lmc: {lmc}}}\n")
    topology = build(config.topology, config.address)
    tables = build_tables(config.tables, topology, 1)
    lids = subnet_lids(topology, config.tables.lmc)
    assert lids is not None
    return tables, lids, read_dump("".join(lft_lines(tables, lids)))


def arrives(topology: Topology, switches: list[Dumped], start: int, lid: int) -> tuple[int, int]:
    """Follow the dump from a switch; returns the switch and its port (0: itself) at which the LID is."""
    at = start
    for _ in range(topology.routers):
        port = switches[at].ports[lid]
        if port == 0 or topology.host_at[at, port - 1] >= 0:
            return at, port
        at = int(topology.peer_router[at, port - 1])
        assert at >= 0, "the port has no link"
    raise AssertionError("packets go in a circle")


@pytest.mark.parametrize("lmc", [0, 2])
@pytest.mark.parametrize(
    "text",
    [
        "topology: {kind: layout_random, n: 4, degree: 4, length: 3, hosts_per_router: 3}\ntables: {scheme: loren",
        "topology: {kind: dragonfly, p: 2, a: 2, h: 2, g: 3}\nrouter: {vcs: 4}\ntables: {scheme: shortest",
    ],
)
def test_every_pair_is_delivered_through_the_dump(text: str, lmc: int) -> None:
    tables, lids, switches = dumped(text, lmc)
    topology = tables.topology
    assert [switch.lid for switch in switches] == list(range(1, topology.routers + 1))
    assert len({switch.guid for switch in switches}) == topology.routers
    assert lids.first_host % (1 << lmc) == 0 and lids.first_host > topology.routers
    hosts = {lids.first_host + k: k >> lmc for k in range(topology.hosts << lmc)}
    for start in range(topology.routers):
        assert set(switches[start].ports) == set(hosts) | {switch.lid for switch in switches}
        assert switches[start].owners == switches[0].owners
        for lid, host in hosts.items():
            where = arrives(topology, switches, start, lid)
            assert where == (topology.host_router[host], topology.host_port[host] + 1)
        for number, switch in enumerate(switches):
            assert arrives(topology, switches, start, switch.lid) == (number, 0)
            assert switches[0].owners[switch.lid] == switch.guid
    # the next switch is that of the tables, and LIDs of one host have its GUID
    for start, switch in enumerate(switches):
        for lid, host in hosts.items():
            there = topology.host_router[host]
            if there != start:
                assert topology.peer_router[start, switch.ports[lid] - 1] == tables.next_hop[start, there]
            assert switch.owners[lid] == switch.owners[lids.first_host + (host << lmc)]
    assert len({switches[0].owners[lid] for lid in hosts}) == topology.hosts


def test_every_lid_has_the_path_of_its_number() -> None:
    text = "topology: {kind: random_regular, routers: 10, degree: 4, seed: 3, hosts_per_router: 2}\ntables: {"
    tables, lids, switches = dumped(text + "scheme: k_shortest, layers: fewest", 2)
    topology, different = tables.topology, 0
    for start, host, path in itertools.product(range(10), range(topology.hosts), range(4)):
        lid, there = lids.first_host + (host << 2) + path, int(topology.host_router[host])
        assert arrives(topology, switches, start, lid) == (there, topology.host_port[host] + 1)
        if there != start:
            following = topology.peer_router[start, switches[start].ports[lid] - 1]
            assert following == tables.all_paths[path].next_hop[start, there]
            different += following != tables.next_hop[start, there]
    assert different > 100


def test_parallel_links_take_turns() -> None:
    text = "topology: {kind: dragonfly, p: 2, a: 2, h: 2, g: 2}\nrouter: {vcs: 4}\ntables: {scheme: shortest"
    tables, _, switches = dumped(text, 2)
    parallel = 0
    for start, peers in enumerate(tables.topology.peer_router):
        used = set(switches[start].ports.values())
        for peer in set(peers[peers >= 0].tolist()):
            ports = set((np.flatnonzero(peers == peer) + 1).tolist())
            parallel += len(ports) > 1
            assert not ports & used or ports <= used
    assert parallel


def test_lids_do_not_suffice() -> None:
    config = parse_config("name: t\ntopology: {kind: random_regular, routers: 8100, degree: 3, seed: 1}\n")
    topology = build(config.topology, config.address)
    assert subnet_lids(topology, 2) == SubnetLids(8100, 8100, 2)
    message = "tables.lmc: 8100 hosts with 8 LIDs each and 8100 switches need 72903 LIDs; there are 49151"
    with pytest.raises(UserError, match=message):
        subnet_lids(topology, 3)
    assert SubnetLids(8100, 8100, 3).last > MOST_UNICAST_LID
    assert SubnetLids(3, 0, 1).last == 3
