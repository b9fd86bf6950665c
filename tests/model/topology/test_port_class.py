"""Every port has a class, and the classes of both ends of a link fit."""

import pytest

from hopforge.model.config import parse_config
from hopforge.model.topology import build
from hopforge.model.topology.port_class import port_classes


@pytest.mark.parametrize(
    "section",
    [
        "{kind: mesh, radices: [3, 2], hosts_per_router: 2}",
        "{kind: fat_tree, k: 2, n: 2}",
        "{kind: dragonfly, p: 2, a: 4, h: 2}",
        "{kind: cascade, hosts_per_router: 2, sizes: [2, 2], links: [1, 2], h: 1}",
    ],
)
def test_port_classes_cover_every_port(section):
    config = parse_config(f"name: t\ntopology: {section}\n")
    topology = build(config.topology, config.address)
    classes = port_classes(topology)
    for router in range(topology.routers):
        for port in range(topology.max_ports):
            if topology.host_at[router, port] >= 0:
                assert classes[router][port] == "host"
            elif topology.peer_router[router, port] >= 0:
                assert classes[router][port] != "host"
    if topology.kind == "fat_tree":
        # up meets down of the next level
        for src, port, dst, far in zip(*(a.tolist() for a in topology.channels()), strict=True):
            a, b = classes[src][port].split(), classes[dst][far].split()
            assert {a[1], b[1]} == {"up", "down"}
            assert abs(int(a[0][5:]) - int(b[0][5:])) == 1
