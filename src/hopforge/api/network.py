"""A network that was made in Python: a graph of networkx or an adjacency matrix as a configuration."""

import json
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hopforge.api.configuration import Configuration, made_here
from hopforge.api.kept_graphs import keep_graph
from hopforge.model.topology.base import TopologyError
from hopforge.model.topology.graph import check_connected
from hopforge.model.topology.graph_attributes import LATENCY
from hopforge.model.topology.graph_file import GraphData, from_networkx

__all__ = ["network"]

_NAME = "graph"
#: of an adjacency matrix: routers, and links between two of them
_MOST_ROUTERS, _MOST_LINKS = 20_000, 1024


def network(
    graph: Any, *, name: str = "graph", hosts_per_router: int | None = None, **sections: Any
) -> Configuration:
    """Return the configuration of any connected graph.

    Parameters
    ----------
    graph : networkx.Graph, networkx.MultiGraph or array of int
        A graph: nodes whose attribute ``kind`` is ``"host"`` are hosts with one link, all others routers, numbered by
        the number at the end of their names or else in their order; parallel edges are parallel links; attributes
        ``x`` and ``y`` of all routers are the floor plan, ``latency_cycles`` of links their latency. Or a symmetric
        matrix [router, router] that holds the number of links between two routers.
    name : str
        Key `name`: small letters, digits and underscores.
    hosts_per_router : int, optional
        Hosts at every router, 1 by default; not for a graph with hosts.
    **sections
        Other sections of the file, by their names: ``routing={"algorithm": "tables"}``.

    Returns
    -------
    Configuration
        Of ``topology.kind: edge_list``; the graph is a file in the cache folder.

    Raises
    ------
    ConfigError
        A section is wrong.
    UserError
        The graph is directed, disconnected, empty, has a link of a router to itself, or hosts beside
        `hosts_per_router`.

    Examples
    --------
    >>> ring = network([[0, 1, 1], [1, 0, 1], [1, 1, 0]], name="ring", hosts_per_router=2)
    >>> ring["topology.hosts_per_router"]
    2
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a text, not {name!r}")
    for key in ("topology", "name"):
        if key in sections:
            raise TypeError(f"{key} is made of the graph; replace(\"{key}.KEY\", VALUE) changes it")
    if isinstance(graph, type):
        raise TypeError(f"expected a graph of networkx or an adjacency matrix, not the class {graph.__name__}")
    data = from_networkx(graph, _NAME) if hasattr(graph, "is_directed") else _matrix(graph)
    check_connected(data.edges, data.routers, _NAME)
    if hosts_per_router is not None and data.host_router is not None:
        known = len(data.host_router)
        raise TopologyError(_NAME, f"says itself where its {known} hosts are; leave hosts_per_router out")
    path = keep_graph(name, _node_link(data))
    topology: dict[str, Any] = {"kind": "edge_list", "file": str(path), "format": "node_link"}
    if hosts_per_router is not None:
        topology["hosts_per_router"] = hosts_per_router
    given = "".join(f", {key}={value!r}" for key, value in sections.items())
    hosts = "" if hosts_per_router is None else f", hosts_per_router={hosts_per_router}"
    recipe = f"hopforge.network(<{data.routers} routers, {len(data.edges)} links>, name={name!r}{hosts}{given})"
    return made_here({"name": name, "topology": topology, **sections}, recipe)


def _matrix(graph: ArrayLike) -> GraphData:
    """Take an adjacency matrix: the number of links between two routers."""
    if isinstance(graph, np.ma.MaskedArray):
        raise TopologyError(_NAME, "a masked array does not say whether a masked entry is a link; fill it first")
    dense: Any = graph
    routers = max(getattr(dense, "shape", None) or (0,))
    if routers > _MOST_ROUTERS:
        raise TopologyError(
            _NAME, f"an adjacency matrix may have at most {_MOST_ROUTERS} routers, not {routers}; give a graph of "
            "networkx"
        )  # fmt: skip
    try:
        links = np.asarray(dense.toarray() if hasattr(dense, "toarray") else dense)
    except ValueError as error:
        raise TopologyError(_NAME, "the adjacency matrix must have rows of one length") from error
    if links.dtype.kind in "OUS" and links.ndim == 0:  # a name, None, a dictionary
        raise TypeError(f"expected a graph of networkx or an adjacency matrix, not {type(graph).__name__}")
    if links.ndim != 2 or links.shape[0] != links.shape[1] or not len(links):
        raise TopologyError(_NAME, f"the adjacency matrix must be square, not of shape {links.shape}")
    if links.dtype.kind not in "biuf":
        raise TopologyError(_NAME, f"the adjacency matrix must hold numbers of links, not {links.dtype}")
    parts = np.argwhere(links != np.floor(links))
    if len(parts):
        a, b = parts[0].tolist()
        raise TopologyError(_NAME, f"numbers of links must be whole, not {links[a, b]:g} (row {a}, column {b})")
    outside = links[(links < 0) | (links > _MOST_LINKS)]
    if len(outside):
        raise TopologyError(_NAME, f"numbers of links must be 0 to {_MOST_LINKS}, not {outside[0]}")
    apart = np.argwhere(links != links.T)
    if len(apart):
        a, b = apart[0].tolist()
        raise TopologyError(_NAME, f"links work in both directions, but {a} to {b} has {links[a, b]} and {b} to {a} "
                            f"{links[b, a]}")  # fmt: skip
    loops = np.flatnonzero(np.diagonal(links))
    if len(loops):
        raise TopologyError(_NAME, f"router {loops[0]} is linked to itself")
    upper = np.triu(links).astype(np.int64)
    ends = np.argwhere(upper > 0)
    if not len(ends):
        raise TopologyError(_NAME, "holds no link between routers")
    return GraphData(np.repeat(ends, upper[ends[:, 0], ends[:, 1]], axis=0), len(links))


def _node_link(data: GraphData) -> str:
    """Return node-link JSON that `model.topology.graph_file` reads as the same network."""
    nodes: list[dict[str, Any]] = [{"id": f"r{router}"} for router in range(data.routers)]
    if data.position is not None:
        for node, (x, y) in zip(nodes, data.position.tolist(), strict=True):
            node |= {"x": x, "y": y}
    edges: list[dict[str, Any]] = [
        {"source": f"r{a}", "target": f"r{b}", "key": key} for key, (a, b) in enumerate(data.edges.tolist())
    ]
    if data.edge_cycles is not None:  # the same both ways in a graph of networkx
        for edge, (cycles, _) in zip(edges, data.edge_cycles.tolist(), strict=True):
            edge.update({LATENCY: cycles} if cycles else {})
    homes = [] if data.host_router is None else data.host_router.tolist()
    for host, router in enumerate(homes):
        nodes.append({"id": f"h{host}", "kind": "host"})
        edges.append({"source": f"h{host}", "target": f"r{router}", "key": 0})
    return json.dumps({"directed": False, "multigraph": True, "graph": {}, "nodes": nodes, "edges": edges})
