"""Networks of about as many hosts, and the routing methods that are compared on each: `routing.*`.

All methods of a network have the same routers, links and buffers.
"""

from typing import Any

from pydantic import TypeAdapter

from hopforge.model.config import Config
from hopforge.model.config.topology import TopologyConfig
from hopforge.model.errors import UserError
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.topology import Topology
from hopforge.model.topology.configured import network_topology

__all__ = ["METHODS", "NETWORKS", "SIZES", "TITLES", "chosen_vcs", "method_config", "methods_of", "network_of"]

#: about how many hosts
SIZES = (100, 1000, 10_000)
#: virtual channels of a port, unless a method needs more, and most; packets at an input port, and at an output port
_VCS, _MOST_VCS, _BUFFER = 8, 16, 128

#: network → title
TITLES = {
    "hyperx": "HyperX",
    "slim_fly": "Slim Fly",
    "polarfly": "PolarFly",
    "dragonfly": "Dragonfly",
    "dragonfly_plus": "Dragonfly+ and Megafly",
    "fat_tree": "Fat tree",
    "torus": "Torus",
    "random": "Random regular graph",
}

#: network → section `topology` by size
NETWORKS: dict[str, tuple[dict[str, Any], ...]] = {
    "hyperx": (
        {"kind": "hyperx", "sizes": (5, 5), "hosts_per_router": 4},
        {"kind": "hyperx", "sizes": (10, 10), "hosts_per_router": 10},
        {"kind": "hyperx", "sizes": (10, 10, 10), "hosts_per_router": 10},
    ),
    "slim_fly": (
        {"kind": "slim_fly", "q": 4, "hosts_per_router": 3},
        {"kind": "slim_fly", "q": 9, "hosts_per_router": 6},
        {"kind": "slim_fly", "q": 19, "hosts_per_router": 14},
    ),
    "polarfly": (
        {"kind": "polarfly", "q": 5, "hosts_per_router": 3},
        {"kind": "polarfly", "q": 11, "hosts_per_router": 7},
        {"kind": "polarfly", "q": 27, "hosts_per_router": 13},
    ),
    "dragonfly": (
        {"kind": "dragonfly", "p": 2, "a": 4, "h": 2},
        {"kind": "dragonfly", "p": 4, "a": 8, "h": 4},
        {"kind": "dragonfly", "p": 7, "a": 14, "h": 7},
    ),
    "dragonfly_plus": (
        {"kind": "dragonfly_plus", "leaves": 4, "spines": 4, "h": 2, "hosts_per_router": 2},
        {"kind": "dragonfly_plus", "leaves": 8, "spines": 8, "h": 4, "hosts_per_router": 4},
        {"kind": "dragonfly_plus", "leaves": 14, "spines": 14, "h": 7, "hosts_per_router": 7},
    ),
    "fat_tree": (
        {"kind": "fat_tree", "k": 10, "n": 1},
        {"kind": "fat_tree", "k": 10, "n": 2},
        {"kind": "fat_tree", "k": 10, "n": 3},
    ),
    "torus": (
        {"kind": "torus", "radices": (10, 10)},
        {"kind": "torus", "radices": (10, 10, 10)},
        {"kind": "torus", "radices": (10, 10, 10, 10)},
    ),
    "random": (
        {"kind": "random_regular", "routers": 32, "degree": 6, "hosts_per_router": 3},
        {"kind": "random_regular", "routers": 162, "degree": 13, "hosts_per_router": 6},
        {"kind": "random_regular", "routers": 722, "degree": 29, "hosts_per_router": 14},
    ),
}

_ANY: dict[str, dict[str, Any]] = {
    "minimal adaptive": {"algorithm": "minimal"},
    "Valiant": {"algorithm": "valiant"},
    "UGAL": {"algorithm": "ugal"},
}
#: network → name of a method → section `routing`
METHODS: dict[str, dict[str, dict[str, Any]]] = {
    "hyperx": {
        "dimension order": {"algorithm": "dor"},
        **_ANY,
        "DimWAR": {"algorithm": "dimwar"},
        "OmniWAR": {"algorithm": "omniwar"},
        "DAL": {"algorithm": "dal"},
    },
    "slim_fly": {**_ANY, "UGAL, 5 candidates": {"algorithm": "ugal", "candidates": 5}},
    "polarfly": {
        **_ANY,
        "UGAL, 5 candidates": {"algorithm": "ugal", "candidates": 5},
        "compact Valiant": {"algorithm": "valiant_compact"},
        "compact UGAL": {"algorithm": "ugal_compact"},
    },
    "dragonfly": {
        "minimal": {"algorithm": "dragonfly_min"},
        "Valiant": {"algorithm": "valiant_node"},
        "UGAL": {"algorithm": "ugal_node"},
        "UGAL, groups": {"algorithm": "ugal_group"},
        "PAR": {"algorithm": "par"},
        "Q-adaptive": {"algorithm": "q_adaptive"},
    },
    "dragonfly_plus": {
        **_ANY,
        "UGAL, groups": {"algorithm": "ugal", "over": "groups"},
        "Q-adaptive": {"algorithm": "q_adaptive"},
    },
    "fat_tree": {
        "d mod k": {"algorithm": "d_mod_k"},
        "most credits up": {"algorithm": "nca"},
        "drawn link up": {"algorithm": "nca", "ties": "random"},
        "two drawn links up": {"algorithm": "anca"},
    },
    "torus": {
        "dimension order": {"algorithm": "dor"},
        "minimal adaptive": {"algorithm": "minimal"},
        "Valiant": {"algorithm": "valiant"},
        "UGAL": {"algorithm": "ugal"},
    },
    "random": _ANY,
}

#: networks and sizes → methods that are left out: ways of all pairs of 10 000 routers take 5 GiB and 14 VCs on a torus
_TOO_LARGE = {("torus", 10_000): ("minimal adaptive", "UGAL")}


def methods_of(network: str, hosts: int) -> list[str]:
    """Return the names of the methods that a network of so many hosts can have."""
    return [name for name in METHODS[network] if name not in _TOO_LARGE.get((network, hosts), ())]


_TOPOLOGY: TypeAdapter[Any] = TypeAdapter(TopologyConfig)


def network_of(network: str, hosts: int) -> Any:
    """Return section `topology` of a network with about so many hosts (one of `SIZES`)."""
    return _TOPOLOGY.validate_python(NETWORKS[network][SIZES.index(hosts)])


def method_config(network: str, hosts: int, method: str, vcs: int, **sections: Any) -> Config:
    """Return the configuration of a method on a network, with further sections."""
    buffer = _BUFFER // vcs
    return Config.model_validate({
        "name": "routing",
        "topology": NETWORKS[network][SIZES.index(hosts)],
        "router": {
            "model": "input_output_queued", "vcs": vcs, "buffer_flits": buffer, "output_buffer_flits": buffer,
            "global_ns": 30,  # as long as all others: one length of link for all networks
        },
        "routing": METHODS[network][method] | {"proof_limit_s": 3600},  # those of 10 000 hosts take long
        **sections,
    })  # fmt: skip


def chosen_vcs(network: str, hosts: int, method: str) -> tuple[int, int, Topology]:
    """Find the virtual channels of a method: as many as all others have, more if it needs them.

    Returns
    -------
    tuple
        Fewest that the method takes, those it gets, and the network.

    Raises
    ------
    UserError
        More than a router has.
    """
    topology = network_topology(method_config(network, hosts, method, _VCS))
    for vcs in range(1, _MOST_VCS + 1):
        try:
            routing_plan(method_config(network, hosts, method, vcs), topology)
        except UserError:
            if vcs == _MOST_VCS:
                raise
            continue
        return vcs, max(vcs, _VCS), topology
    raise AssertionError("a loop with an end")
