"""Platform files for SimGrid: elements and attributes of its DTD, and the same paths as in the network."""

import re
from pathlib import Path
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest

from hopforge.model.config import AddressConfig, Config, parse_config
from hopforge.model.irregular.table_routes import configured_routes
from hopforge.model.irregular.tables import build_tables
from hopforge.model.topology import Topology, TopologyError, build
from hopforge.model.topology.routing_table import distances
from hopforge.sim.pages.export import export_file
from hopforge.sim.programs.simgrid import simgrid_text

NETWORKS = [
    "{kind: torus, radices: [4, 2], hosts_per_router: 2}",
    "{kind: fat_tree, k: 2, n: 2}",
    "{kind: dragonfly, p: 1, a: 2, h: 1}",
    "{kind: slim_fly, q: 3, hosts_per_router: 1}",
    "{kind: random_regular, routers: 8, degree: 3}",
]
TIMING = "timing: {cable_ns: 10, switch_base_ns: 51, link_gbps: 40}"

# simgrid.dtd, version 4.1: children and attributes of what we write; True: must be there
RULES: dict[str, tuple[set[str], dict[str, bool]]] = {
    "platform": ({"zone"}, {"version": True}),
    "zone": ({"host", "router", "link", "route"}, {"id": True, "routing": True}),
    "host": (set(), {"id": True, "speed": True}),
    "router": (set(), {"id": True}),
    "link": (set(), {"id": True, "bandwidth": True, "latency": False, "sharing_policy": False}),
    "route": ({"link_ctn"}, {"src": True, "dst": True, "symmetrical": False}),
    "link_ctn": (set(), {"id": True, "direction": False}),
}


def config(text: str) -> Config:
    return parse_config(f"name: x\ntopology: {text}\n{TIMING}\n")


def network(text: str) -> Topology:
    return build(config(text).topology, AddressConfig())


def checked_zone(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text)
    assert root.tag == "platform"
    for element in root.iter():
        children, attributes = RULES[element.tag]
        assert {child.tag for child in element} <= children
        assert set(element.attrib) <= set(attributes)
        assert {name for name, needed in attributes.items() if needed} <= set(element.attrib)
    (zone,) = root
    tags = [child.tag for child in zone]
    assert tags == sorted(tags, key=["host", "router", "link", "route"].index)  # resources before routes
    for kind in ("host", "link", "router"):
        names = [element.get("id") for element in zone.iter(kind)]
        assert len(set(names)) == len(names)
    return zone


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("text", NETWORKS)
def test_paths_are_shortest_and_cost_what_the_timing_says(text: str, full: bool) -> None:
    topology = network(text)
    zone = checked_zone(simgrid_text(topology, config(text), full=full))
    assert zone.get("routing") == ("Full" if full else "Dijkstra")
    links = {link.get("id"): float(link.get("latency").removesuffix("ns")) for link in zone.iter("link")}
    assert {link.get("bandwidth") for link in zone.iter("link")} == {"40Gbps"}
    hops = distances(topology)
    ends = {f"h{host}" for host in range(topology.hosts)} | {f"r{router}" for router in range(topology.routers)}
    routes = [(route.get("src"), route.get("dst"), [part.get("id") for part in route]) for route in zone.iter("route")]
    assert len({route[:2] for route in routes}) == len(routes)
    assert all(route.get("symmetrical") == "NO" for route in zone.iter("route"))
    used = nx.DiGraph()
    for source, target, names in routes:
        assert {source, target} <= ends
        assert {f"{source}-{target}"} == set(names) or full
        # the names of the links join into one path
        stops = [source]
        for name in names:
            first, last = name.split("-")
            assert name in links
            assert first.partition(".")[0] == stops[-1]  # r4.5-r6: another link from r4 to r6, at port 5
            stops.append(last)
        assert stops[-1] == target
        used.add_edge(source, target, latency=sum(links[name] for name in names), names=names)
    for a in range(topology.hosts):
        for b in range(topology.hosts):
            if a == b:
                continue
            routers = int(hops[topology.host_router[b], topology.host_router[a]]) + 1
            if full:
                latency = used.edges[f"h{a}", f"h{b}"]["latency"]
            else:
                path = nx.shortest_path(used, f"h{a}", f"h{b}")  # by links, as SimGrid's Dijkstra zone counts
                latency = sum(used.edges[edge]["latency"] for edge in nx.utils.pairwise(path))
            assert latency == pytest.approx(routers * 51 + (routers + 1) * 10)


def test_parallel_links_are_written_once_and_names_are_escaped() -> None:
    text = "{kind: torus, radices: [2]}"
    zone = checked_zone(simgrid_text(network(text), config(text)))
    assert [link.get("id") for link in zone.iter("link") if link.get("id").count("r") == 2] == ["r0-r1", "r1-r0"]


def test_full_routes_take_parallel_links() -> None:
    text = "{kind: dragonfly, p: 2, a: 2, h: 2, g: 2}"  # each router has two links to the other group
    topology, made = network(text), config(text)
    twins = {name for name in re.findall(r'<link id="([^"]*)"', simgrid_text(topology, made, full=True)) if "." in name}
    assert twins
    zone = checked_zone(simgrid_text(topology, made, full=True))
    taken = {part.get("id") for route in zone.iter("route") for part in route}
    paths = configured_routes(made, topology).paths(*np.indices((8, 8)).reshape(2, -1))
    inside = topology.peer_router[paths.router, paths.output] >= 0
    used = set(zip(paths.router[inside].tolist(), paths.output[inside].tolist(), strict=True))
    assert len({name for name in taken if name.count("r") == 2}) == len(used)


def test_routes_of_some_hosts_only() -> None:
    text = "{kind: torus, radices: [4]}"
    zone = checked_zone(simgrid_text(network(text), config(text), full=True, hosts=np.array([3, 0, 3])))
    assert [(route.get("src"), route.get("dst")) for route in zone.iter("route")] == [("h0", "h3"), ("h3", "h0")]


def test_routes_of_tables() -> None:
    text = "{kind: torus, radices: [8]}"
    plain = config(text)
    tables = parse_config(
        f"name: x\ntopology: {text}\n{TIMING}\nrouting: {{algorithm: tables}}\ntables: {{scheme: up_down}}\n"
    )
    topology = network(text)
    zone = checked_zone(simgrid_text(topology, tables, full=True))
    found = {(route.get("src"), route.get("dst")): len(route) for route in zone.iter("route")}
    next_hop = build_tables(tables.tables, topology, tables.seed).next_hop
    for a in range(8):
        for b in range(8):
            at, links = a, 2
            while at != b:
                at, links = next_hop[at, b], links + 1
            assert a == b or found[f"h{a}", f"h{b}"] == links
    shortest = checked_zone(simgrid_text(topology, plain, full=True))
    assert sum(found.values()) > sum(len(route) for route in shortest.iter("route"))


def test_too_many_hosts_for_all_pairs() -> None:
    text = "{kind: torus, radices: [16, 16], hosts_per_router: 5}"
    with pytest.raises(TopologyError, match=r"^--export: simgrid-full writes .* at most 1024 hosts, not 1280$"):
        simgrid_text(network(text), config(text), full=True)


def test_files_get_the_suffix_of_their_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = config("{kind: slim_fly, q: 3}")
    assert export_file(made, "simgrid-full", None, Path("build/x")) == Path("build/x.xml")
    checked_zone(Path("build/x.xml").read_text())
    assert export_file(made, None, Path("other.xml"), Path("build/x")).read_text().count('routing="Dijkstra"') == 1
    assert export_file(made, "edges", None, Path("build/x")) == Path("build/x.edges")
    assert export_file(made, "png", None, Path("build/x")).read_bytes().startswith(b"\x89PNG")
    with pytest.raises(TopologyError, match=r"^--output: x has no ending that names a format; add --export, one of"):
        export_file(made, None, Path("x"), Path("build/x"))
    with pytest.raises(TopologyError, match=r"one of graphml, .*, simgrid-full, sst, ns3, png, not 'svg'"):
        export_file(made, None, Path("x.svg"), Path("build/x"))
