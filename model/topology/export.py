"""Networks as files for other programs: GraphML, BookSim's anynet, plain edge lists."""

from collections.abc import Callable, Iterator
from pathlib import Path

import networkx as nx

from hopforge.model.config import Config
from hopforge.model.results import staged
from hopforge.model.routing_table import hop_statistics
from hopforge.model.topology import Topology, TopologyError, build


def links(topology: Topology) -> Iterator[tuple[int, int, int, int]]:
    """Yield each link between routers once, as (router, port, router, port), the smaller end first."""
    for source, port, target, far_port in zip(*(array.tolist() for array in topology.channels()), strict=True):
        if (source, port) < (target, far_port):
            yield source, port, target, far_port


def parallel_links(topology: Topology) -> int:
    """Count the links beyond the first between the same two routers."""
    ends = [(min(a, b), max(a, b)) for a, _, b, _ in links(topology)]
    return len(ends) - len(set(ends))


def edge_list_text(topology: Topology) -> str:
    """Return two router numbers a line, the format of ``topology.kind: edge_list``; parallel links appear once."""
    ends = sorted({(min(a, b), max(a, b)) for a, _, b, _ in links(topology)})
    return f"# {topology.name}\n" + "".join(f"{a} {b}\n" for a, b in ends)


def anynet_text(topology: Topology) -> str:
    """Return the network file of BookSim 2's ``topology = anynet``; parallel links appear once."""
    lines = []
    for router in range(topology.routers):
        hosts = topology.host_at[router]
        peers = topology.peer_router[router]
        words = [f"router {router}"]
        words += [f"node {host}" for host in hosts[hosts >= 0].tolist()]
        words += [f"router {peer}" for peer in dict.fromkeys(peers[peers >= 0].tolist())]
        lines.append(" ".join(words) + "\n")
    return "".join(lines)


def graphml_text(topology: Topology) -> str:
    """Return GraphML: nodes r0, r1, … (routers) and h0, h1, … (hosts, with their address), ports on the edges."""
    graph: nx.MultiGraph = nx.MultiGraph(name=topology.name)
    graph.add_nodes_from((f"r{router}", {"kind": "router"}) for router in range(topology.routers))
    for host, (router, port, address) in enumerate(
        zip(topology.host_router.tolist(), topology.host_port.tolist(), topology.host_address.tolist(), strict=True)
    ):
        graph.add_node(f"h{host}", kind="host", address=address)
        graph.add_edge(f"h{host}", f"r{router}", target_port=port)
    for source, port, target, far_port in links(topology):
        graph.add_edge(f"r{source}", f"r{target}", source_port=port, target_port=far_port)
    return "\n".join(nx.generate_graphml(graph, named_key_ids=True)) + "\n"


#: name of a format → text of the file
EXPORTS: dict[str, Callable[[Topology], str]] = {
    "graphml": graphml_text, "anynet": anynet_text, "edges": edge_list_text,
}


def describe(config: Config) -> list[tuple[str, str]]:
    """Return (subject, words) of the network of a configuration."""
    topology = build(config.topology, config.address)
    hops = hop_statistics(topology)
    found = sum(1 for _ in links(topology))
    twins = parallel_links(topology)
    lines = [
        ("network", topology.name),
        ("parameters", ", ".join(f"{key} = {value}" for key, value in topology.params.items())),
        ("routers", f"{topology.routers}, of {_span(topology.ports.tolist())} ports"),
        ("hosts", str(topology.hosts)),
        ("links", f"{found}" + (f", of which {twins} parallel to others" if twins else "")),
        ("addresses", f"{config.address.width_bits} bits, digits of {config.address.chunk_bits} bits"),
        ("diameter", f"{hops.diameter} links between routers with hosts"),
        ("mean distance", f"{hops.mean_hops:.4g} links between two different hosts"),
    ]
    return lines


def export_file(config: Config, form: str | None = None, path: Path | None = None) -> Path:
    """Write the network of a configuration; the file appears only when it is complete.

    Parameters
    ----------
    config : Config
        Checked configuration.
    form : str, optional
        Key of `EXPORTS`; by default the suffix of `path`, else graphml.
    path : Path, optional
        By default ``build/NAME.FORMAT``.

    Raises
    ------
    TopologyError
        Unknown format.
    ResultError
        The file cannot be written.
    """
    if form is None:
        form = path.suffix.removeprefix(".") if path is not None else "graphml"
    if form not in EXPORTS:
        raise TopologyError("--export", f"the format must be one of {', '.join(EXPORTS)}, not {form!r}")
    target = Path("build") / f"{config.name}.{form}" if path is None else path
    text = EXPORTS[form](build(config.topology, config.address))
    with staged(target.parent) as scratch:
        (scratch / target.name).write_text(text, encoding="utf-8")
    return target


def _span(values: list[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"
