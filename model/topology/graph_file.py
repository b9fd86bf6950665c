"""Graphs from files: edge lists (also those of Graph Golf), BookSim 2's anynet, GraphML, node-link JSON of networkx."""

import itertools
import json
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from hopforge.model.input_file import read_input_text
from hopforge.model.topology.base import MAX_ROUTERS, TopologyError
from hopforge.model.topology.graph import Numbers
from hopforge.model.topology.graph_attributes import floor_plan, link_latencies

#: largest coordinate of a floor plan
MAX_PLACE = 65535
_GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"


@dataclass(frozen=True)
class GraphData:
    """What a file says.

    Attributes
    ----------
    edges : ndarray, int64[link, 2]
        The routers at both ends.
    routers : int
        They are numbered from 0.
    host_router : ndarray, int64[host], optional
        Router of each host; None: the file knows no hosts.
    position : ndarray, float64[router, 2], optional
        Floor plan.
    edge_cycles : ndarray, int64[link, 2], optional
        Latency in cycles, there and back.
    """

    edges: Numbers
    routers: int
    host_router: Numbers | None = None
    position: NDArray[np.float64] | None = None
    edge_cycles: Numbers | None = None


def read_text(path: Path) -> str:
    """Return the text of `path`.

    Raises
    ------
    TopologyError
        It cannot be read.
    """
    try:
        return read_input_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise TopologyError("topology.file", f"cannot read {path}: {reason}") from error


def _lines(path: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Yield place, text and words of every line that is not empty; what follows ``#`` or ``//`` is ignored."""
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        words = re.split(r"#|//", line, maxsplit=1)[0].split()
        if words:
            yield f"{path}:{number}", line.strip(), words


def _number(where: str, word: str, what: str, most: int) -> int:
    if not (word.isascii() and word.isdigit()):
        raise TopologyError(where, f"expected a {what}, not {word!r}")
    value = int(word[:20])
    if value > most:
        raise TopologyError(where, f"{what} {value} is beyond the largest, {most}")
    return value


def read_edges(path: Path) -> tuple[tuple[int, int], ...]:
    """Read the edges of `path`: two router numbers a line.

    Returns
    -------
    tuple of (int, int)
        In the order of the file, each with the smaller number first; a repeated line is a parallel link.

    Raises
    ------
    TopologyError
        Unreadable file, malformed line, self-loop, a link in both directions (each with file and line), or no edge.
    """
    return tuple((low, high) for low, high in read_edge_file(path).edges.tolist())


def read_edge_file(path: Path) -> GraphData:
    """Read two router numbers a line, or two places ``x,y`` a line (Graph Golf's grid graphs).

    With places the router at x, y has the number y · (largest x + 1) + x.

    Raises
    ------
    TopologyError
        As `read_edges`.
    """
    links: list[tuple[Any, Any]] = []
    seen: dict[tuple[Any, Any], str] = {}
    grid: bool | None = None
    for where, line, words in _lines(path):
        if grid is None:
            grid = "," in line
        what = "places x,y" if grid else "router numbers"
        if len(words) != 2 or any((word.count(",") == 1) != grid for word in words):
            raise TopologyError(where, f"expected two {what}, not {line!r}")
        if not all(part.isascii() and part.isdigit() for word in words for part in word.split(",")):
            raise TopologyError(where, f"expected two {what}, not {line!r}")
        ends: list[Any] = [
            tuple(_number(where, part, "coordinate", MAX_PLACE) for part in word.split(","))
            if grid
            else _number(where, word, "router number", MAX_ROUTERS - 1)
            for word in words
        ]
        low, high = sorted(ends)
        if low == high:
            raise TopologyError(where, f"router {words[0]} is linked to itself")
        other = seen.get((ends[1], ends[0]))
        if other is not None:
            first = other.rpartition(":")[2]
            raise TopologyError(
                where, f"link {words[1]} {words[0]} is already on line {first}; write parallel links the same way round"
            )
        seen.setdefault((ends[0], ends[1]), where)
        links.append((low, high))
    if not links:
        raise TopologyError(str(path), "holds no link")
    if not grid:
        edges = np.array(links, dtype=np.int64)
        return GraphData(edges, int(edges.max()) + 1)
    places = np.array(links, dtype=np.int64)
    width, height = places.reshape(-1, 2).max(axis=0) + 1
    if width * height > MAX_ROUTERS:
        raise TopologyError(
            str(path),
            f"{width * height} places of the grid are more than the {MAX_ROUTERS} routers that hopforge handles",
        )
    number = np.arange(width * height)
    position = np.stack([number % width, number // width], axis=1).astype(np.float64)
    return GraphData(np.sort(places[:, :, 1] * width + places[:, :, 0], axis=1), int(width * height), position=position)


def read_anynet(path: Path) -> GraphData:
    """Read a network file of BookSim 2: ``router A node B router C 5 …`` or ``node B router A``.

    A number after a router's is the latency of the link in cycles; it holds for the way back, too, unless the other
    router's line says otherwise. Without one the link has the latency of section `router`.

    Raises
    ------
    TopologyError
        Malformed line, self-loop, a node at two routers, a node without a router (each with its place).
    """
    cycles: dict[tuple[int, int], int] = {}
    hosts: dict[int, int] = {}
    routers: set[int] = set()
    for where, _, words in _lines(path):
        stops = _stops(where, words)
        (head, first, latency), rest = stops[0], stops[1:]
        if latency is not None:
            raise TopologyError(where, f"a latency ({latency}) after the first {head} of the line")
        for kind, number, latency in rest:
            if {head, kind} == {"node"}:
                raise TopologyError(where, f"node {first} is linked to node {number}")
            if head == kind:
                if first == number:
                    raise TopologyError(where, f"router {first} is linked to itself")
                cycles[first, number] = latency or 0
                cycles.setdefault((number, first), latency or 0)
                continue
            if latency is not None:
                raise TopologyError(
                    where, "the latency of links to nodes is router.host_latency_cycles, not in this file"
                )
            node, router = (number, first) if kind == "node" else (first, number)
            if hosts.setdefault(node, router) != router:
                raise TopologyError(where, f"node {node} is at router {router} and at router {hosts[node]}")
        routers.update(number for kind, number, _ in stops if kind == "router")
    if not cycles:
        raise TopologyError(str(path), "holds no link between routers")
    for what, numbers in (("node", set(hosts)), ("router", routers)):
        missing = next(n for n in itertools.count() if n not in numbers)
        if missing < len(numbers):
            raise TopologyError(str(path), f"{what} {missing} is missing; {what}s are numbered from 0")
    edges = np.array(sorted((a, b) for a, b in cycles if a < b), dtype=np.int64)
    known = np.array([[cycles[a, b], cycles[b, a]] for a, b in edges.tolist()], dtype=np.int64)
    return GraphData(
        edges,
        len(routers),
        np.array([hosts[node] for node in range(len(hosts))], dtype=np.int64),
        edge_cycles=known if known.any() else None,
    )


def _stops(where: str, words: list[str]) -> list[tuple[str, int, int | None]]:
    """Return (router or node, its number, latency) of one line of an anynet file."""
    found: list[tuple[str, int, int | None]] = []
    place = 0
    while place < len(words):
        kind = words[place]
        if kind not in ("router", "node"):
            raise TopologyError(where, f"expected router or node, not {kind!r}")
        if place + 1 == len(words):
            raise TopologyError(where, f"expected a number after {kind!r}")
        number = _number(where, words[place + 1], f"{kind} number", MAX_ROUTERS - 1)
        place += 2
        latency = None
        if place < len(words) and words[place][0] in "-0123456789":
            latency = _number(where, words[place], "latency", 65535)
            if latency == 0:
                raise TopologyError(where, "a latency must be at least 1, not 0")
            place += 1
        found.append((kind, number, latency))
    return found


def read_graphml(path: Path) -> GraphData:
    """Read GraphML through networkx (`from_networkx`).

    Raises
    ------
    TopologyError
        Not GraphML, or no network (naming the file).
    """
    import networkx as nx  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

    text = read_text(path)
    try:
        graph = nx.parse_graphml(text, force_multigraph=True)
        nodes, edges = (list(ElementTree.fromstring(text).iter(f"{_GRAPHML}{kind}")) for kind in ("node", "edge"))
        links = [(edge.get("source"), edge.get("target"), edge.get("id")) for edge in edges]
        _check_parts([node.get("id") for node in nodes], links, graph, str(path))
    except (ElementTree.ParseError, nx.NetworkXError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise TopologyError(str(path), f"not GraphML: {_reason(error)}") from error
    return from_networkx(graph, str(path))


def read_node_link(path: Path) -> GraphData:
    """Read node-link JSON, what `networkx.node_link_data` gives (`from_networkx`).

    Raises
    ------
    TopologyError
        Not JSON, not node-link data, or no network (naming the file).
    """
    import networkx as nx  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

    text = read_text(path)
    try:
        data = json.loads(text)
        edges = "links" if "links" in data else "edges"
        nodes = [node.get("id", number) for number, node in enumerate(data["nodes"])]
        links = [(link["source"], link["target"], link.get("key")) for link in data[edges]]
        graph = nx.node_link_graph({**data, "multigraph": True}, edges=edges)
        _check_parts(nodes, links, graph, str(path))
    except (ValueError, nx.NetworkXError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TopologyError(str(path), f"not node-link JSON: {_reason(error)}") from error
    return from_networkx(graph, str(path))


def _check_parts(nodes: Sequence[Any], links: Sequence[tuple[Any, Any, Any]], graph: Any, name: str) -> None:
    """Refuse what networkx merges or adds in silence.

    Two nodes of one name are one there, two links (source, target, key) of one key as well, and the end of a link that
    is no node becomes one.
    """
    known: set[Hashable] = set()
    for node in map(_hashable, nodes):
        if node in known:
            raise TopologyError(name, f"node {node!r} stands there twice")
        known.add(node)
    keys: set[Hashable] = set()
    for number, (source, target, key) in enumerate(links):
        ends = (_hashable(source), _hashable(target))
        for end in ends:
            if end not in known:
                raise TopologyError(name, f"link {number} (from 0 on) ends at {end!r}, which is no node")
        one = (ends if graph.is_directed() else frozenset(ends), key)
        if key is not None and one in keys:
            between = f"link {number} (from 0 on) between {ends[0]!r} and {ends[1]!r}"
            raise TopologyError(name, f"{between} has the key {key!r} of another one")
        keys.add(one)
    for what, there, read in (
        ("nodes", len(nodes), graph.number_of_nodes()), ("links", len(links), graph.number_of_edges()),
    ):  # fmt: skip
        if there != read:  # nested graphs, keys of some links only
            raise TopologyError(name, f"networkx reads {read} of {there} {what}; give parallel links keys of their own")


def _hashable(node: Any) -> Hashable:
    """Return a node's name as networkx does: a list of JSON is a tuple."""
    return tuple(map(_hashable, node)) if isinstance(node, list) else node


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def from_networkx(graph: Any, name: str) -> GraphData:
    """Take a graph of networkx: nodes with the attribute ``kind`` = ``host`` are hosts, all others routers.

    Routers (and hosts) are numbered in the order of the numbers at the end of their names if all have one, else in the
    order of the graph. Attributes ``x`` and ``y`` of all routers are the floor plan, ``latency_cycles`` of links their
    latency. Parallel edges are parallel links.

    Parameters
    ----------
    graph : networkx.Graph or MultiGraph
        The links work in both directions.
    name : str
        What errors name.

    Raises
    ------
    TopologyError
        Directed, without links, a link of a router to itself, a host with more or less than one link, a kind that is
        almost ``host``, or attributes that would not be used (`graph_attributes`).
    """
    if graph.is_directed():
        raise TopologyError(name, "the graph is directed; links work in both directions")
    kinds = {node: graph.nodes[node].get("kind") for node in graph}
    for node, kind in kinds.items():
        if kind != "host" and str(kind).strip().lower() in ("host", "hosts"):
            raise TopologyError(name, f"node {node}: kind must be host for a host, not {kind!r}")
    routers = _ranks([node for node in graph if kinds[node] != "host"])
    hosts = _ranks([node for node in graph if kinds[node] == "host"])
    edges: list[tuple[int, int]] = []
    home: dict[int, int] = {}
    for a, b in graph.edges():
        if a in routers and b in routers:
            if a == b:
                raise TopologyError(name, f"router {a} is linked to itself")
            edges.append((routers[a], routers[b]))
            continue
        host, router = (a, b) if a in hosts else (b, a)
        if router not in routers or hosts[host] in home:
            raise TopologyError(name, f"host {host} must have one link, to a router")
        home[hosts[host]] = routers[router]
    lost = [host for host, number in hosts.items() if number not in home]
    if lost:
        raise TopologyError(name, f"host {lost[0]} must have one link, to a router")
    if not edges:
        raise TopologyError(name, "holds no link between routers")
    return GraphData(
        np.array(edges, dtype=np.int64),
        len(routers),
        np.array([home[k] for k in range(len(hosts))], dtype=np.int64) if hosts else None,
        floor_plan(graph, routers, name),
        link_latencies(graph, routers, name),
    )


def _ranks(nodes: list[Any]) -> dict[Any, int]:
    """Rank nodes by the number at the end of their names, in their own order if one has none or two have the same."""
    found = [re.search(r"(?<!\d)(\d{1,18})$", str(node)) for node in nodes]
    numbers = [int(match[1]) for match in found if match]
    if len(numbers) == len(nodes) and len(set(numbers)) == len(nodes):
        nodes = [node for _, node in sorted(zip(numbers, nodes, strict=True), key=lambda pair: pair[0])]
    return {node: rank for rank, node in enumerate(nodes)}


#: format of a file → reader
READERS: dict[str, Callable[[Path], GraphData]] = {
    "edges": read_edge_file,
    "anynet": read_anynet,
    "graphml": read_graphml,
    "node_link": read_node_link,
}
#: suffix of a file → its format, where the configuration does not say it
SUFFIXES = {".anynet": "anynet", ".graphml": "graphml", ".json": "node_link"}
