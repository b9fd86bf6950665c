"""Topology and routing of BookSim 2: which sections of ours they are, by ``topology`` and ``routing_function``."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hopforge.model.config.routing import DECIDE_AT_SOURCE
from hopforge.sim.booksim import graphs
from hopforge.sim.booksim.anynet import read_network
from hopforge.sim.booksim.graphs import Graph
from hopforge.sim.booksim.keys import Settings
from hopforge.sim.booksim.reads_writes import routed_vcs
from hopforge.sim.booksim.supplement import Supplement

#: routers of a network whose tables are computed here
_MOST_ROUTERS = 4096
_MOST_HOSTS = 1 << 20
_TILE_KEYS = ("c", "x", "y", "xr", "yr")


@dataclass(frozen=True)
class Network:
    """What stands in the new configuration about the network.

    Attributes
    ----------
    topology, routing, links : dict
        Keys of sections `topology` and `routing`, and of `router` about links.
    hosts : int
        Terminals.
    files : dict
        End of the name → text of files beside the configuration; ``FILE`` in a section stands for the name before it.
    """

    topology: dict[str, Any]
    routing: dict[str, Any]
    hosts: int
    links: dict[str, int] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


def translate_network(settings: Settings, beside: Supplement) -> Network:
    """Translate topology, routing function and what belongs to them.

    Raises
    ------
    BooksimError
        What hopforge lacks, by its name.
    """
    settings.must_be("link_failures", 0, "hopforge does not draw BookSim's failed links")
    settings.no_effect("for link failures only", "fail_seed")
    kind = settings.text("topology")
    if kind not in _TOPOLOGIES:
        lacks = {"gflatfly": "BookSim itself has not kept it"}
        known = ", ".join(sorted(_TOPOLOGIES))
        settings.refuse("topology", lacks.get(kind, f"hopforge knows {known}"))
    if kind not in ("flatfly", "cmesh"):
        settings.no_effect(f"topology {kind} has no such key", *(key for key in _TILE_KEYS if key != "xr"))
    if kind != "anynet":
        if beside.vc_by_hop:
            settings.refuse("topology", "virtual channels by hop (--vc-by-hop) are for anynet")
        settings.no_effect(f"topology {kind} reads no network file", "network_file")
    network = _TOPOLOGIES[kind](settings, beside)
    if network.routing["algorithm"] in DECIDE_AT_SOURCE and settings.whole("routing_delay") == 0:
        network.routing["decision"] = "host"  # routes are looked up one hop ahead
    return network


def _routing(settings: Settings, kind: str, known: dict[str, dict[str, Any]], lacks: dict[str, str]) -> dict[str, Any]:
    """Return section `routing` of the routing function."""
    name = settings.text("routing_function")
    if name not in known:
        settings.refuse(
            "routing_function", lacks.get(name, f"topology {kind} has {', '.join(sorted(known))} in hopforge")
        )
    return dict(known[name])


def _even_vcs(settings: Settings, shares: int) -> None:
    """Refuse numbers of virtual channels that BookSim's classes would overlap in, or that they do not fit."""
    vcs = routed_vcs(settings)
    if vcs % shares:
        what = "half of it" if vcs < settings.whole("num_vcs") else "it"  # the other half: replies
        settings.refuse("num_vcs", f"the classes of BookSim's routing overlap unless {what} is a multiple of {shares}")


#: how many classes of virtual channels an algorithm divides them into
_CLASSES = {
    "booksim_xy_yx": 2, "booksim_adaptive_xy_yx": 2, "booksim_valiant": 2, "booksim_ugal": 2, "booksim_romm": 2,
    "booksim_ugal_pni": 2,
    "booksim_ugal_xy_yx": 4, "valiant": 2,
}  # fmt: skip
#: its set of outputs compares them by their priority alone (outputset.hpp), so that equal ones are one
_ONE_OUTPUT = "BookSim's own keeps one output of each priority"
_NO_NI = "hopforge has no virtual channels by destination (non-interfering routing)"


def _grid_shape(settings: Settings) -> tuple[int, int]:
    return settings.at_least("k", 1, 256), settings.at_least("n", 1, 12)


def _size(settings: Settings, k: int, n: int, terminals: int = 1) -> int:
    hosts = int(k**n * terminals)
    if hosts > _MOST_HOSTS:
        settings.refuse("n", f"k^n = {k**n} routers are more than hopforge handles")
    return hosts


def _mesh(settings: Settings, beside: Supplement) -> Network:
    k, n = _grid_shape(settings)
    routing = _routing(
        settings, "mesh",
        {
            "dor": {"algorithm": "dor"}, "dim_order": {"algorithm": "dor"},
            "xy_yx": {"algorithm": "booksim_xy_yx"}, "adaptive_xy_yx": {"algorithm": "booksim_adaptive_xy_yx"},
            "romm": {"algorithm": "booksim_romm"}, "valiant": {"algorithm": "valiant", "ties": "plus"},
        },
        {
            "dim_order_ni": _NO_NI, "dim_order_pni": _NO_NI, "romm_ni": _NO_NI,
            "min_adapt": f"{_ONE_OUTPUT}, so that it goes in dimension order; hopforge's adaptive one is star_channel",
            "planar_adapt": "hopforge has no planar-adaptive routing",
            "chaos": "hopforge has no chaos router",
        },
    )  # fmt: skip
    _even_vcs(settings, _CLASSES.get(routing["algorithm"], 1))
    if routing["algorithm"] != "dor" and k < 2:
        settings.refuse("k", "must be at least 2 for this routing")
    settings.no_effect("links of a mesh take 1 cycle either way", "use_noc_latency")
    return Network({"kind": "mesh", "radices": [k] * n}, routing, _size(settings, k, n), {"link_latency_cycles": 1})


def _torus(settings: Settings, beside: Supplement) -> Network:
    k, n = _grid_shape(settings)
    defect = "BookSim's own reads a variable that it never sets on a torus"
    routing = _routing(
        settings, "torus",
        {
            "dim_order": {"algorithm": "dor", "vc_rule": "fixed", "ties": "random"},
            "dim_order_bal": {"algorithm": "dor", "vc_rule": "balanced", "ties": "random"},
        },
        {
            "dor": "BookSim calls it dim_order on a torus",
            "valiant": defect, "valiant_ni": defect, "dim_order_ni": _NO_NI,
            "min_adapt": f"{_ONE_OUTPUT}, and offers VC 3 only; hopforge's adaptive one is star_channel",
            "chaos": "hopforge has no chaos router",
        },
    )  # fmt: skip
    _even_vcs(settings, 2)
    latency = 2 if settings.whole("use_noc_latency") == 1 else 1
    return Network(
        {"kind": "torus", "radices": [k] * n}, routing, _size(settings, k, n), {"link_latency_cycles": latency}
    )


def _fattree(settings: Settings, beside: Supplement) -> Network:
    k, n = settings.at_least("k", 2, 256), settings.at_least("n", 1, 12)
    routing = _routing(
        settings, "fattree", {"nca": {"algorithm": "nca", "ties": "random"}, "anca": {"algorithm": "anca"}}, {}
    )
    if routing["algorithm"] == "anca" and settings.whole("routing_delay") == 0:
        routing["decision"] = "ahead"  # routes are looked up one hop ahead
    settings.no_effect("links of a fat tree take 1 cycle either way", "use_noc_latency")
    return Network({"kind": "fat_tree", "k": k, "n": n - 1}, routing, _size(settings, k, n), {"link_latency_cycles": 1})


def _fly(settings: Settings, beside: Supplement) -> Network:
    k, n = settings.at_least("k", 2, 170), settings.at_least("n", 1, 12)
    routing = _routing(settings, "fly", {"dest_tag": {"algorithm": "dest_tag"}}, {})
    settings.no_effect("links of a fly take 1 cycle either way", "use_noc_latency")
    return Network({"kind": "butterfly", "k": k, "n": n}, routing, _size(settings, k, n), {"link_latency_cycles": 1})


def _dragonfly(settings: Settings, beside: Supplement) -> Network:
    k = settings.at_least("k", 1, 64)
    settings.must_be("n", 1, "BookSim's dragonfly has one dimension in a group: n = 1")
    routing = _routing(
        settings, "dragonflynew", {"min": {"algorithm": "dragonfly_min", "ejection": "class"}},
        {"ugal": "BookSim's own deadlocks (both parts of a detour on one virtual channel); see ugal_group, ugal_node"},
    )  # fmt: skip
    if settings.at_least("num_vcs", 2, 16) != 2:
        routing["class_vcs"] = "one"  # links take VC 0 or 1, hosts all
    settings.no_effect("links of a dragonfly take 10 and 100 cycles either way", "use_noc_latency")
    hosts = k * 2 * k * (2 * k * k + 1)
    links = {"link_latency_cycles": 10, "global_latency_cycles": 100}
    return Network({"kind": "dragonfly", "p": k, "a": 2 * k, "h": k}, routing, hosts, links)


def _graph_network(graph: Graph, routing: dict[str, Any], title: str) -> Network:
    return Network(
        {"kind": "edge_list", "file": "FILE.anynet"}, routing, len(graph.home), {"link_latency_cycles": 1},
        files={".anynet": graph.text(title)},
    )  # fmt: skip


def _tiles(settings: Settings, routers: int) -> tuple[int, int, list[int]]:
    """Return routers of a row, terminals of a router along either side, and the router of every terminal."""
    columns, across = settings.at_least("x", 1), settings.at_least("xr", 1)
    settings.must_be("y", columns, f"BookSim needs y = x = {columns}")
    settings.must_be("yr", across, f"BookSim needs yr = xr = {across}")
    settings.must_be("c", across**2, f"BookSim needs c = xr * yr = {across**2}")
    if across > 64 or routers * across**2 > _MOST_HOSTS:
        settings.refuse("xr", f"{routers} routers of {across**2} terminals are more than hopforge handles")
    home = graphs.tiled_homes(routers, columns, across, across)
    if home is None:
        settings.refuse("x", f"a grid of rows of {columns} does not number the terminals of {routers} routers")
    return columns, across, home


def _flatfly(settings: Settings, beside: Supplement) -> Network:
    k, n = settings.at_least("k", 2, 64), settings.at_least("n", 1, 4)
    if k**n > _MOST_ROUTERS:
        settings.refuse("k", f"k^n = {k**n} routers are more than the {_MOST_ROUTERS} that are translated")
    routing = _routing(
        settings, "flatfly",
        {
            "ran_min": {"algorithm": "booksim_dor"}, "xyyx": {"algorithm": "booksim_xy_yx"},
            "adaptive_xyyx": {"algorithm": "booksim_adaptive_xy_yx"}, "valiant": {"algorithm": "booksim_valiant"},
            "ugal": {"algorithm": "booksim_ugal"}, "ugal_xyyx": {"algorithm": "booksim_ugal_xy_yx"},
            "ugal_pni": {"algorithm": "booksim_ugal_pni"},
        },
        {},
    )  # fmt: skip
    if settings.text("routing_function") == "ugal_pni":
        settings.must_be("c", k, f"BookSim's ugal_pni needs c = k = {k}")
        settings.at_least("num_vcs", 2 * k, 16)
    _even_vcs(settings, _CLASSES.get(routing["algorithm"], 1))
    columns, across, home = _tiles(settings, k**n)
    far = settings.whole("use_noc_latency") == 1
    if far and across > 3:
        settings.refuse("use_noc_latency", f"xr = {across} gives links of terminals of other than 1 cycle")
    graph = graphs.flattened_butterfly(k, n, home, columns, across, across, far=far)
    return _graph_network(graph, routing, f"flattened butterfly of BookSim 2: k {k}, n {n}, c {across**2}")


def _cmesh(settings: Settings, beside: Supplement) -> Network:
    k = settings.at_least("k", 2, 64)
    settings.must_be("n", 2, "hopforge translates cmesh with n = 2 only")
    routing = _routing(
        settings, "cmesh",
        {
            "dor": {"algorithm": "booksim_dor"}, "dor_no_express": {"algorithm": "booksim_dor"},
            "xy_yx": {"algorithm": "booksim_xy_yx"}, "xy_yx_no_express": {"algorithm": "booksim_xy_yx"},
        },
        {},
    )  # fmt: skip
    name = settings.text("routing_function")
    express = not name.endswith("no_express")
    if express and (k < 4 or k % 2):
        settings.refuse("k", "express links join routers k/2 apart: k must be even and at least 4")
    if name == "xy_yx" and k > 4:
        settings.refuse("k", "BookSim's xy_yx goes to and fro on express links for k above 4")
    _even_vcs(settings, _CLASSES.get(routing["algorithm"], 1))
    settings.must_be("c", 4, "BookSim's cmesh has 4 terminals a router")
    columns, _, home = _tiles(settings, k * k)
    if columns != k:
        settings.refuse("x", f"must be k = {k} for cmesh")
    cycles = (2, k) if settings.whole("use_noc_latency") == 1 else (1, 1)
    graph = graphs.concentrated_mesh(k, home, express=express, cycles=cycles)
    return _graph_network(graph, routing, f"concentrated mesh of BookSim 2: k {k}")


def _tree(kind: str, build: Callable[[], Graph]) -> Callable[[Settings, Supplement], Network]:
    def translate(settings: Settings, beside: Supplement) -> Network:
        settings.must_be("k", 4, f"BookSim's {kind} has k = 4")
        settings.must_be("n", 3, f"BookSim's {kind} has n = 3")
        why = f"{_ONE_OUTPUT}, so that all packets go up by the first link (0.07 flits accepted of 0.3); see nca"
        lacks = {"anca": why} if kind == "tree4" else {}
        routing = _routing(settings, kind, {"nca": {"algorithm": "booksim_nca"}}, lacks)
        settings.no_effect(f"links of {kind} take 1 cycle either way", "use_noc_latency")
        return _graph_network(build(), routing, f"{kind} of BookSim 2")

    return translate


def _anynet_routing(settings: Settings, beside: Supplement) -> dict[str, Any]:
    minimal = "shortest" if beside.vc_by_hop else "booksim_min"
    known = {"min": minimal, "val": "booksim_val", "ugallnew": "booksim_ugal_four", "ugall4_pf": "booksim_ugal_pf"}
    routing = _routing(settings, "anynet", {name: {"algorithm": one} for name, one in known.items()}, {})
    if not beside.vc_by_hop:
        return routing | {"check": False}
    detour = routing["algorithm"] != "shortest"
    return routing | ({"algorithm": f"{routing['algorithm']}_by_hop"} if detour else {})


def _anynet(settings: Settings, beside: Supplement) -> Network:
    routing = _anynet_routing(settings, beside)
    settings.no_effect("the network file says all of the network", "k", "n", "use_noc_latency")
    for key in ("use_size_power_of_two", "rr_permute", "load_routing_file"):
        if settings.text(key) != "no":
            settings.refuse(key, "only no is translated")
        settings.no_effect("no is what BookSim 2 does", key)
    name = settings.text("network_file")
    if not name:
        settings.refuse("network_file", "missing")
    assert beside.folder is not None
    path = next((one for one in (beside.folder / name, Path(name)) if one.exists()), beside.folder / name)
    graph = read_network(path)
    if graph.routers > _MOST_ROUTERS:
        settings.refuse("network_file", f"{graph.routers} routers are more than {_MOST_ROUTERS}")
    if routing["algorithm"] != "booksim_min" and set(graph.links.values()) != {1}:
        settings.refuse("network_file", f"{routing['algorithm']} counts links; {path} has other latencies than 1")
    return _graph_network(graph, routing, f"{Path(name).name} of BookSim 2")


_TOPOLOGIES: dict[str, Callable[[Settings, Supplement], Network]] = {
    "mesh": _mesh,
    "torus": _torus,
    "cmesh": _cmesh,
    "flatfly": _flatfly,
    "fattree": _fattree,
    "fly": _fly,
    "dragonflynew": _dragonfly,
    "tree4": _tree("tree4", graphs.tapered_tree),
    "qtree": _tree("qtree", graphs.quad_tree),
    "anynet": _anynet,
}
