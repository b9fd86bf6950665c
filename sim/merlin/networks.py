"""The network of a file of SST: one of our kinds, if its links are the same, else a graph."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hopforge.model.config import ConfigError
from hopforge.model.config.load import parse_config
from hopforge.model.topology import TopologyError, build
from hopforge.sim.merlin.component_graph import ROUTER, Component, ComponentGraph, Link
from hopforge.sim.merlin.units import nanoseconds

_Edges = Counter[tuple[int, int]]


@dataclass(frozen=True)
class Network:
    """Routers and hosts by their numbers in Merlin.

    Attributes
    ----------
    routers : list of Component
        By their parameter `id`.
    homes : list of (int, Component)
        Router and component of host 0, 1, …: router by router, by the number of the port.
    edges : Counter
        (router, router), the lower first → links.
    topology : dict
        Section of our configuration.
    files : dict
        Files beside it.
    link_ns, global_ns, host_ns : Fraction
        Latency of the links.
    """

    routers: list[Component]
    homes: list[tuple[int, Component]]
    edges: _Edges
    topology: dict[str, Any]
    files: dict[str, str]
    link_ns: Fraction
    global_ns: Fraction | None
    host_ns: Fraction

    @property
    def method(self) -> Component:
        """Subcomponent that routes, of router 0."""
        return self.routers[0].slots["topology"]


def translate_network(graph: ComponentGraph) -> Network:
    """Return the network.

    Raises
    ------
    MerlinError
        There is no router, or links that do not go together.
    """
    routers = _numbered(graph)
    number = {router.name: place for place, router in enumerate(routers)}
    edges: _Edges = Counter()
    latencies: dict[tuple[int, int], set[Fraction]] = {}
    ends: dict[tuple[int, int], Component] = {}
    to_hosts: set[Fraction] = set()
    used: set[tuple[int, int]] = set()
    for link in graph.links:
        places = [
            (number[name], _port(graph, link, side))
            for side, name in enumerate(link.components)
            if name in number
        ]  # fmt: skip
        if not places:
            continue
        for place in places:
            if place in used:
                raise graph.refuse(f"link {link.name}", f"port{place[1]} of {routers[place[0]].name} has two links")
            used.add(place)
        latency = _latency(graph, link)
        if len(places) == 2:
            pair = (min(places)[0], max(places)[0])
            if pair[0] == pair[1]:
                raise graph.refuse(f"link {link.name}", "links a router with itself")
            edges[pair] += 1
            latencies.setdefault(pair, set()).add(latency)
        else:
            other = next(name for name in link.components if name not in number)
            ends[places[0]] = graph.components[other.partition(":")[0]]
            to_hosts.add(latency)
    if len(routers) < 2 or len(ends) < 2 or not edges:
        raise graph.refuse("the network", f"needs two routers, two endpoints and a link: {len(routers)}, {len(ends)}")
    if len(to_hosts) > 1:
        raise graph.refuse("links of endpoints", f"have latencies of {_listed(to_hosts)}; hopforge knows one")
    homes = [(router, ends[router, port]) for router, port in sorted(ends)]
    topology = _known_kind(routers[0].slots["topology"], edges, [router for router, _ in homes], len(routers))
    link_ns, global_ns = _two_latencies(graph, latencies, topology)
    files = {}
    if topology is None:
        topology = {"kind": "edge_list", "file": "FILE.json"}
        files[".json"] = _as_graph(edges, [router for router, _ in homes], len(routers))
    return Network(routers, homes, edges, topology, files, link_ns, global_ns, to_hosts.pop())


def _numbered(graph: ComponentGraph) -> list[Component]:
    found: dict[int, Component] = {}
    for component in graph.components.values():
        if component.type != ROUTER:
            continue
        where = f"component {component.name}"
        text = component.value("id") or ""
        if not text.isdecimal() or int(text) in found:
            raise graph.refuse(where, f"params.id must be a number of its own, not {text or 'missing'}")
        if "topology" not in component.slots:
            raise graph.refuse(where, "has no subcomponent in slot topology (SST before version 10?)")
        found[int(text)] = component
    if sorted(found) != list(range(len(found))) or not found:
        raise graph.refuse("components", f"needs components of type {ROUTER} with ids from 0 without a gap")
    return [found[number] for number in range(len(found))]


def _port(graph: ComponentGraph, link: Link, side: int) -> int:
    text = link.ports[side].removeprefix("port")
    if not text.isdecimal() or not link.ports[side].startswith("port"):
        raise graph.refuse(f"link {link.name}", f"{link.components[side]} has no port {link.ports[side]}")
    return int(text)


def _latency(graph: ComponentGraph, link: Link) -> Fraction:
    try:
        left, right = (nanoseconds(text) for text in link.latencies)
    except ValueError as error:
        raise graph.refuse(f"link {link.name}", f"latency {error}") from error
    if left != right:
        words = " and ".join(link.latencies)
        raise graph.refuse(f"link {link.name}", f"takes {words} in its two directions; hopforge knows one latency")
    return left


def _listed(values: set[Fraction]) -> str:
    return ", ".join(f"{float(value):g}" for value in sorted(values)[:5]) + " ns"


def _two_latencies(
    graph: ComponentGraph, latencies: dict[tuple[int, int], set[Fraction]], topology: dict[str, Any] | None
) -> tuple[Fraction, Fraction | None]:
    """Return the latency of links, and that of links between groups of a dragonfly, if it is another one."""
    of_all = set[Fraction]().union(*latencies.values())
    if len(of_all) == 1:
        return of_all.pop(), None
    if topology is not None and topology["kind"] == "dragonfly":
        group = topology["a"]
        inside = set[Fraction]().union(*(each for (a, b), each in latencies.items() if a // group == b // group))
        between = set[Fraction]().union(*(each for (a, b), each in latencies.items() if a // group != b // group))
        if len(inside) <= 1 and len(between) == 1:
            return (inside or between).copy().pop(), between.pop()
    raise graph.refuse("links between routers", f"have latencies of {_listed(of_all)}; hopforge knows one")


def _known_kind(method: Component, edges: _Edges, homes: list[int], routers: int) -> dict[str, Any] | None:
    """Return the topology of ours that has the same links and hosts under the same numbers, if there is one."""
    for section in _candidates(method):
        try:
            config = parse_config(json.dumps({"name": "x", "topology": section}), keys=False)
            topology = build(config.topology, config.address)
        except (ConfigError, TopologyError):
            continue
        here, port = np.nonzero(topology.peer_router >= 0)
        there = topology.peer_router[here, port]
        pairs = Counter(zip(here[here < there].tolist(), there[here < there].tolist(), strict=True))
        if topology.routers == routers and pairs == edges and topology.host_router.tolist() == homes:
            return section
    return None


def _candidates(method: Component) -> Iterator[dict[str, Any]]:
    kind = method.type.rpartition(".")[2]
    try:
        if kind in ("mesh", "torus", "hyperx"):
            sizes = [int(word) for word in (method.value("shape") or "").split("x")]
            key = "sizes" if kind == "hyperx" else "radices"
            yield {"kind": kind, key: sizes, "hosts_per_router": int(method.value("local_ports") or 1)}
        elif kind == "dragonfly":
            names = ("hosts_per_router", "routers_per_group", "intergroup_per_router", "num_groups")
            p, a, h, g = (int(method.value(name) or 0) for name in names)
            for arrangement in ("absolute", "relative", "palmtree"):
                yield {"kind": "dragonfly", "p": p, "a": a, "h": h, "g": g, "arrangement": arrangement}
        elif kind == "fattree":
            ways = [int(word) for level in (method.value("shape") or "").split(":") for word in level.split(",")]
            if len(set(ways)) == 1:
                yield {"kind": "fat_tree", "k": ways[0], "n": len(ways) // 2}
        elif kind == "polarfly":
            hosts = int(method.value("hosts_per_router") or 1)
            yield {"kind": "polarfly", "q": int(method.value("q") or 0), "hosts_per_router": hosts}
    except ValueError:
        return  # a shape that nobody can read: its links say what the network is


def _as_graph(edges: _Edges, homes: list[int], routers: int) -> str:
    """Return the network as networkx writes graphs (``node_link_data``), with hosts as nodes; a line for each entry."""
    nodes = [{"id": f"router {router}"} for router in range(routers)]
    nodes += [{"id": f"host {host}", "kind": "host"} for host in range(len(homes))]
    links = [{"source": f"router {a}", "target": f"router {b}"} for a, b in sorted(edges.elements())]
    links += [{"source": f"host {host}", "target": f"router {router}"} for host, router in enumerate(homes)]
    lists = {"nodes": nodes, "edges": links}
    body = ",\n".join(
        f'"{name}": [\n' + ",\n".join(json.dumps(entry) for entry in entries) + "\n]" for name, entries in lists.items()
    )
    return f'{{"directed": false, "multigraph": true, "graph": {{}},\n{body}}}\n'
