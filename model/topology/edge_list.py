"""Any connected graph, read from a file."""

from pathlib import Path

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.topology import EdgeListConfig
from hopforge.model.topology.base import Topology, TopologyError
from hopforge.model.topology.graph import assemble_graph, equal_hosts
from hopforge.model.topology.graph_file import READERS, SUFFIXES
from hopforge.model.topology.limits import check_host_numbers


def build_edge_list(config: EdgeListConfig, address: AddressConfig, folder: Path = Path()) -> Topology:
    """Build the graph of a file; a relative file name is taken from `folder`.

    Ports: the hosts of the router, then its neighbours in increasing number. The address of a host is its number: as in
    the file, or router·c + terminal with c hosts at every router.

    Raises
    ------
    TopologyError
        With the key, and for a bad file (see `model.topology.graph_file`) its name and line: a disconnected graph
        (naming a pair without a path), hosts in the file and in the section, or too many hosts.
    """
    path = folder / config.file
    try:
        return _build(config, address, path)
    except TopologyError as error:
        if error.key.startswith("topology."):
            raise
        raise TopologyError("topology.file", str(error)) from error


def _build(config: EdgeListConfig, address: AddressConfig, path: Path) -> Topology:
    form = SUFFIXES.get(path.suffix, "edges") if config.format is None else config.format
    data = READERS[form](path)
    terminals = config.hosts_per_router
    host_router = data.host_router
    params: dict[str, object] = {"file": config.file.name, "format": form, "links": len(data.edges)}
    if host_router is None:
        host_router = equal_hosts(data.routers, terminals or 1)
        params["hosts_per_router"] = terminals or 1
    elif terminals is not None:
        raise TopologyError("topology.hosts_per_router", f"{path} says itself where its {len(host_router)} hosts are")
    elif not len(host_router):
        raise TopologyError(str(path), "holds no node (host)")
    check_host_numbers("topology.file", len(host_router), address)
    return assemble_graph(
        data.edges,
        name=f"graph {config.file.name}",
        kind="edge_list",
        host_router=host_router,
        params=params,
        key=str(path),
        routers=data.routers,
        position=data.position,
        edge_cycles=data.edge_cycles,
    )
