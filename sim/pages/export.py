"""Networks as files for other programs and as a picture, and what `hopforge topology` tells."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import networkx as nx
import numpy as np

from hopforge.model.config import Config
from hopforge.model.config.simulation import describe_failed
from hopforge.model.output.destination import one_file
from hopforge.model.output.results import run_metadata, staged, write_metadata
from hopforge.model.topology import Topology, TopologyError, build
from hopforge.model.topology.floor_map import draw_network
from hopforge.model.topology.floor_plan import cabling, link_ends, positions
from hopforge.model.topology.routing_table import hop_statistics
from hopforge.sim.programs.simgrid import simgrid_text


def links(topology: Topology) -> Iterator[tuple[int, int, int, int]]:
    """Yield each link between routers once, as (router, port, router, port), the smaller end first."""
    yield from map(tuple, link_ends(topology).tolist())


def parallel_links(topology: Topology) -> int:
    """Count the links beyond the first between the same two routers."""
    ends = np.sort(link_ends(topology)[:, [0, 2]], axis=1)
    return len(ends) - len(np.unique(ends, axis=0))


def edge_list_text(topology: Topology) -> str:
    """Return two router numbers a line, the format of ``topology.kind: edge_list``; a line for each parallel link."""
    ends = sorted((min(a, b), max(a, b)) for a, _, b, _ in links(topology))
    return f"# {topology.name}\n" + "".join(f"{a} {b}\n" for a, b in ends)


def anynet_text(topology: Topology) -> str:
    """Return the network file of BookSim 2's ``topology = anynet``; parallel links appear once.

    Latencies stand in it if the network's own file has them.
    """
    lines = []
    for router in range(topology.routers):
        hosts = topology.host_at[router]
        peers = topology.peer_router[router]
        words = [f"router {router}"]
        words += [f"node {host}" for host in hosts[hosts >= 0].tolist()]
        cycles = peers * 0 if topology.link_cycles is None else topology.link_cycles[router]
        found = dict(zip(peers[peers >= 0].tolist(), cycles[peers >= 0].tolist(), strict=True))
        words += [f"router {peer} {latency}" if latency else f"router {peer}" for peer, latency in found.items()]
        lines.append(" ".join(words) + "\n")
    return "".join(lines)


def graphml_text(topology: Topology) -> str:
    """Return GraphML: nodes r0, r1, … (routers, x and y) and h0, h1, … (hosts, address), ports at edges.

    `kind: edge_list` reads it.
    """
    graph: nx.MultiGraph = nx.MultiGraph(name=topology.name)
    places = enumerate(positions(topology).tolist())
    graph.add_nodes_from((f"r{router}", {"kind": "router", "x": x, "y": y}) for router, (x, y) in places)
    for host, (router, port, address) in enumerate(
        zip(topology.host_router.tolist(), topology.host_port.tolist(), topology.host_address.tolist(), strict=True)
    ):
        graph.add_node(f"h{host}", kind="host", address=address)
        graph.add_edge(f"h{host}", f"r{router}", target_port=port)
    for source, port, target, far_port in links(topology):
        graph.add_edge(f"r{source}", f"r{target}", source_port=port, target_port=far_port)
    return "\n".join(nx.generate_graphml(graph, named_key_ids=True)) + "\n"


def sst_text(topology: Topology) -> str:
    """Return GraphML for ``import_graph`` of SST/Merlin's any-topology module (pymerlin-topo-any.py).

    Nodes are the routers in their order, which SST keeps, with the number of their hosts (``endpoints``). SST numbers
    endpoints router by router; ``hosts`` says which hosts of ours they are.

    Raises
    ------
    TopologyError
        Parallel links: for each of n links between two routers SST's module lays all n.
    """
    twins = parallel_links(topology)
    if twins:
        raise TopologyError(
            "--export", f"sst cannot have the network's {twins} parallel links: SST lays such links several times"
        )
    graph: nx.Graph = nx.Graph(name=topology.name)
    for router, row in enumerate(topology.host_at):
        hosts = sorted(row[row >= 0].tolist())
        graph.add_node(router, endpoints=len(hosts), hosts=" ".join(map(str, hosts)))
    graph.add_edges_from((source, target) for source, _, target, _ in links(topology))
    return "\n".join(nx.generate_graphml(graph, named_key_ids=True)) + "\n"


def inet_text(topology: Topology) -> str:
    """Return the file of the Inet generator, as ns-3's ``InetTopologyReader`` reads it.

    Nodes 0 to R − 1 are the R routers, with their places on the floor plan; host h is node R + h, at its router's
    place. The weight of a link is its latency in cycles where the network's own file has them, else 1.
    """
    routers, places = topology.routers, positions(topology).tolist()
    ends = [(a, b, 1 if topology.link_cycles is None else int(topology.link_cycles[a, p]) or 1)
            for a, p, b, _ in links(topology)]  # fmt: skip
    ends += [(router, routers + host, 1) for host, router in enumerate(topology.host_router.tolist())]
    places += [places[router] for router in topology.host_router.tolist()]
    lines = [f"{len(places)} {len(ends)}"]
    lines += [f"{node} {x:g} {y:g}" for node, (x, y) in enumerate(places)]
    lines += [f"{source} {target} {weight}" for source, target, weight in ends]
    return "\n".join(lines) + "\n"


#: name of a format → text of the file
EXPORTS: dict[str, Callable[[Topology, Config], str]] = {
    "graphml": lambda topology, _: graphml_text(topology),
    "anynet": lambda topology, _: anynet_text(topology),
    "edges": lambda topology, _: edge_list_text(topology),
    "simgrid": simgrid_text,
    "simgrid-full": partial(simgrid_text, full=True),
    "sst": lambda topology, _: sst_text(topology),
    "ns3": lambda topology, _: inet_text(topology),
}
#: the format that is a picture
PICTURE = "png"
#: formats with no more than one link of two routers
LINKS_ONCE = ("anynet", "simgrid")
#: format → what such a file holds (`model.output.destination`)
KINDS = {name: "a network" if name in ("anynet", "edges", "ns3") else "XML" for name in EXPORTS}
KINDS[PICTURE] = "a PNG picture"
#: suffix of a file → format, where they differ
SUFFIXES = {"xml": "simgrid"}
#: format → ending of a file that nobody named
_ENDINGS = {"sst": "sst.graphml", "ns3": "inet"}


def describe(config: Config) -> list[tuple[str, str]]:
    """Return (subject, words) of the network of a configuration."""
    topology = build(config.topology, config.address)
    hops = hop_statistics(topology)
    plan = cabling(topology)
    twins = parallel_links(topology)
    partly = hops.sources < len(np.unique(topology.host_router))
    sample = f", estimated from {hops.sources} of them" if partly else ""
    bound = "at least " if partly else ""
    lines = [
        ("network", topology.name),
        ("parameters", ", ".join(f"{key} = {value}" for key, value in topology.params.items())),
        ("routers", f"{topology.routers}, of {_span(topology.ports.tolist())} ports"),
        ("hosts", str(topology.hosts)),
        ("links", f"{plan.cables}" + (f", of which {twins} parallel to others" if twins else "")),
        ("addresses", f"{config.address.width_bits} bits, digits of {config.address.chunk_bits} bits"),
        ("diameter", f"{bound}{hops.diameter} links between routers with hosts"),
        ("mean path", f"{hops.mean_path_length:.4f} links between two routers with hosts{sample}"),
        ("mean distance", f"{hops.mean_hops:.4g} links between two different hosts"),
        *(
            []
            if config.failed.none
            else [("failed", f"{describe_failed(config.failed)}; figures and files are of the whole network")]
        ),
        ("floor plan", f"{plan.width:g} x {plan.height:g} places"),
        ("cables", f"{plan.total:.12g} places in all, mean {plan.mean:.3f}, longest {plan.longest:g}"),
    ]
    return lines


def export_format(form: str | None, path: Path | None) -> str:
    """Return the format of a file: `form`, by default what the suffix of `path` says, else graphml.

    Raises
    ------
    TopologyError
        Unknown format.
    """
    if form is None:
        suffix = path.suffix.removeprefix(".") if path is not None else "graphml"
        form = SUFFIXES.get(suffix, suffix)
        if not form:
            known = ", ".join((*EXPORTS, PICTURE))
            raise TopologyError("--output", f"{path} has no ending that names a format; add --export, one of {known}")
    if form not in (*EXPORTS, PICTURE):
        raise TopologyError("--export", f"the format must be one of {', '.join((*EXPORTS, PICTURE))}, not {form!r}")
    return form


def describe_left_out(config: Config, form: str) -> list[tuple[str, str]]:
    """Return (subject, words) of what a file of a format cannot hold of the network."""
    twins = parallel_links(build(config.topology, config.address)) if form in LINKS_ONCE else 0
    if not twins:
        return []
    return [("left out", f"{twins} links parallel to others: {form} has one link of two routers")]


def export_file(config: Config, form: str | None, path: Path | None, base: Path) -> Path:
    """Write the network of a configuration; the file appears only when it is complete.

    A picture in the folder of results has metadata.json beside it, as pictures of runs do; one that `path` names stands
    alone.

    Parameters
    ----------
    config : Config
        Checked configuration.
    form : str or None
        Key of `EXPORTS`, or png; by default what the suffix of `path` says, else graphml.
    path : Path or None
        Of the file; by default `base` with the ending of the format.
    base : Path
        Place and name without an ending.

    Raises
    ------
    TopologyError
        Unknown format, or one that cannot say that links lead one way (`butterfly`).
    ResultError
        The file cannot be written.
    """
    form = export_format(form, path)
    if config.topology.kind == "butterfly" and form != PICTURE:
        raise TopologyError(
            "--export",
            f"{form} cannot have a butterfly, whose links lead from its first stage to its last; {PICTURE} can",
        )
    endings = {name: suffix for suffix, name in SUFFIXES.items()} | _ENDINGS
    suffix = endings.get(form.removesuffix("-full"), form)
    target = base.with_name(f"{base.name}.{suffix}") if path is None else path
    if form == PICTURE and path is None:
        with staged(target.parent) as scratch:
            draw_network(build(config.topology, config.address), scratch / target.name)
            write_metadata(scratch, run_metadata(config))
        return target
    with one_file(target, KINDS[form]) as part:
        topology = build(config.topology, config.address)
        if form == PICTURE:
            draw_network(topology, part)
        else:
            part.write_text(EXPORTS[form](topology, config), encoding="utf-8")
    return target


def _span(values: list[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"
