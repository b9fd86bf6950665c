"""Shipped expressions: equal to the built-in functions, delivery of every pair; wrong ones are refused."""

from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.config.load import ConfigError
from hopforge.model.errors import UserError
from hopforge.model.expression.shipped import SHIPPED_EXPRESSIONS
from hopforge.model.irregular.table_routes import known_routes
from hopforge.model.lookup.cache_replay import replay
from hopforge.model.lookup.expression_reduction import ExpressionReduction, configured_reduction
from hopforge.model.lookup.key_ports import KeyPorts
from hopforge.model.lookup.key_validity import check_expression
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.lookup.routing_cache import RoutingCache
from hopforge.model.topology import Topology, build


def configured(topology: str, reduction: str, more: str = "", folder: Path | None = None) -> Config:
    text = f"name: a\ntopology: {topology}\nlookup:\n  reduction: {reduction}\n{more}"
    return parse_config(text, source="x.yml", folder=folder)


def tree(leaves: int, hosts: int, roots: int) -> str:
    """Anynet file of an oversubscribed tree of two levels."""
    lines = []
    for leaf in range(leaves):
        nodes = " ".join(f"node {leaf * hosts + host}" for host in range(hosts))
        lines.append(f"router {leaf} {nodes} " + " ".join(f"router {leaves + root}" for root in range(roots)))
    return "\n".join(lines) + "\n"


def dragonfly_plus(groups: int, leaves: int, spines: int, hosts: int) -> str:
    """Anynet file: a group is a full bipartite graph; spine s has links to groups (difference mod spines = s)."""
    lines, of_group = [], leaves + spines
    for group in range(groups):
        first = group * of_group
        for leaf in range(leaves):
            number = (group * leaves + leaf) * hosts
            nodes = " ".join(f"node {number + host}" for host in range(hosts))
            ups = " ".join(f"router {first + leaves + spine}" for spine in range(spines))
            lines.append(f"router {first + leaf} {nodes} {ups}")
        for other in range(group + 1, groups):
            spine, there = (other - group) % spines, (groups + group - other) % spines
            lines.append(f"router {first + leaves + spine} router {other * of_group + leaves + there}")
    return "\n".join(lines) + "\n"


def deliver(config: Config, topology: Topology) -> int:
    """Follow keys hop by hop, all pairs; a key means the port of the first destination with it. Return most keys."""
    reduction, routes = configured_reduction(config, topology), known_routes(config, topology)
    hosts = np.arange(topology.hosts)
    port = np.empty((topology.routers, topology.hosts), np.int32)
    most = 0
    for router in range(topology.routers):
        keys = reduction.keys(router, topology.host_address)
        _, first, number = np.unique(keys, return_index=True, return_inverse=True)
        port[router] = routes.output_ports(np.full(len(first), router), hosts[first])[number]
        most = max(most, len(first))
    start = np.unique(topology.host_router)
    source, target = (each.reshape(-1) for each in np.meshgrid(start, hosts, indexing="ij"))
    at = source.copy()
    for _ in range(12):
        out = port[at, target]
        following = topology.peer_router[at, out]
        arrived = topology.host_at[at, out] == target
        assert ((following >= 0) | arrived).all()
        going = ~arrived
        if not going.any():
            return most
        at, target = following[going], target[going]
    raise AssertionError(f"{len(at)} packets go round")


NUMBERED = [
    ("{kind: hyperx, sizes: [8, 8, 8], hosts_per_router: 8}", "hyperx", 29),
    pytest.param("{kind: hyperx, sizes: [16, 16, 16]}", "hyperx", 46, marks=pytest.mark.study),
    ("{kind: hyperx, sizes: [3, 7, 2, 5], hosts_per_router: 3}", "hyperx", 16),
    ("{kind: fully_connected, routers: 60, hosts_per_router: 5}", "hyperx", 64),
    ("{kind: slim_fly, q: 11, hosts_per_router: 16}", "slim_fly", 2 * 11 - 1 + 16),
    ("{kind: slim_fly, q: 8}", "slim_fly", 2 * 8 - 1 + 6),
    ("{kind: slim_fly, q: 9}", "slim_fly", 2 * 9 - 1 + 7),
    ("{kind: slim_fly, q: 4, hosts_per_router: 1}", "slim_fly", 8),
    ("{kind: dragonfly_plus, hosts_per_router: 4, leaves: 4, spines: 4, h: 2}", "dragonfly_plus", 15),
    ("{kind: dragonfly_plus, hosts_per_router: 7, leaves: 3, spines: 2, h: 4, g: 5}", "dragonfly_plus", 13),
]


@pytest.mark.parametrize(("network", "name", "keys"), NUMBERED)
def test_delivery(network: str, name: str, keys: int) -> None:
    config = configured(network, f"{{name: {name}}}")
    topology = build(config.topology, config.address)
    check_expression(config, configured_reduction(config, topology), known_routes(config, topology))
    assert deliver(config, topology) == keys


@pytest.mark.parametrize(
    ("text", "name", "constants", "keys"),
    [
        (tree(32, 24, 8), "oversubscribed_tree", {"leaves": 32, "hosts": 24, "ups": 8}, 32),
        (tree(5, 3, 2), "oversubscribed_tree", {"leaves": 5, "hosts": 3, "ups": 2}, 5),
        (dragonfly_plus(9, 4, 4, 4), "dragonfly_plus", {"groups": 9, "leaves": 4, "spines": 4, "hosts": 4}, 15),
        (dragonfly_plus(5, 3, 2, 7), "dragonfly_plus", {"groups": 5, "leaves": 3, "spines": 2, "hosts": 7}, 13),
    ],
)
def test_delivery_in_edge_lists(
    tmp_path: Path, text: str, name: str, constants: dict[str, int], keys: int
) -> None:
    (tmp_path / "graph.anynet").write_text(text)
    config = configured("{kind: edge_list, file: graph.anynet}", f"{{name: {name}, constants: {constants}}}",
                        folder=tmp_path)  # fmt: skip
    topology = build(config.topology, config.address)
    check_expression(config, configured_reduction(config, topology), known_routes(config, topology))
    assert deliver(config, topology) == keys


@pytest.mark.parametrize(
    ("network", "chunk"),
    [
        ("{kind: torus, radices: [5, 4, 2]}", 3), ("{kind: torus, radices: [7, 6], hosts_per_router: 3}", 4),
        ("{kind: mesh, radices: [3, 8, 2], hosts_per_router: 2}", 3), ("{kind: mesh, radices: [9, 1]}", 4),
        ("{kind: fat_tree, k: 3, n: 2}", 2), ("{kind: fat_tree, k: 5, n: 1}", 3), ("{kind: fat_tree, k: 4, n: 0}", 3),
        ("{kind: dragonfly, p: 2, a: 4, h: 2}", 4), ("{kind: dragonfly, p: 3, a: 2, h: 3, g: 5}", 2),
    ],
)  # fmt: skip
@pytest.mark.parametrize("members", [1, 3])
def test_built_in_functions_as_expressions(network: str, chunk: int, members: int) -> None:
    name = network.split()[1].strip(",")
    more = f"  lag: {{max_members: 4, members: {members}}}\naddress: {{chunk_bits: {chunk}}}\n"
    config = configured(network, f"{{name: {name}}}", more)
    topology = build(config.topology, config.address)
    built_in, own = NodeReduction.from_config(config, topology), configured_reduction(config, topology)
    assert isinstance(own, ExpressionReduction)
    payload = (1 << config.address.width_bits) - 1
    for router in range(topology.routers):
        want = built_in.keys(router, topology.host_address) & payload
        assert (own.keys(router, topology.host_address) == (5 << 24 | want)).all()
    last, address = topology.routers - 1, topology.host_address[2]
    assert own.key(last, int(address)) == int(own.keys(last, address))
    many = own.keys(np.arange(topology.routers), topology.host_address[1])
    assert many.tolist() == [own.key(router, int(topology.host_address[1])) for router in range(topology.routers)]


def test_one_at_a_time_is_the_same() -> None:
    config = configured("{kind: slim_fly, q: 5}", "{name: slim_fly}")
    topology = build(config.topology, config.address)
    own = configured_reduction(config, topology)
    for router in range(0, 50, 7):
        keys = own.keys(router, topology.host_address)
        assert keys.tolist() == [own.key(router, int(address)) for address in topology.host_address]


def test_a_cache_asked_with_an_expression() -> None:
    config = configured("{kind: hyperx, sizes: [4, 4], hosts_per_router: 2}", "{name: hyperx}")
    topology = build(config.topology, config.address)
    own = configured_reduction(config, topology)
    cache = RoutingCache(entries=16, ways=16)
    found = replay(own, 3, np.tile(topology.host_address, 4), cache)
    assert (found.lookups, found.hits, found.evictions) == (128, 128 - 8, 0)
    ports = KeyPorts(own, topology)
    for host in range(32):
        key = own.key(3, host)
        assert ports.port(3, key) == ports.destination_ports(3, host)
    with pytest.raises(ValueError, match=r"key 0x5000fff leads nowhere at router 3 of the 4x4 HyperX"):
        ports.port(3, 5 << 24 | 0xFFF)


# --- mistakes


@pytest.mark.parametrize(
    ("network", "text", "words"),
    [
        (
            "{kind: hyperx, sizes: [4, 3]}", "d[0]",
            r"lookup.reduction.expression: in router 0 hosts 0 and 4 have the same key 0x5000000, and leave by ports 0 "
            r"and 4",
        ),
        (
            "{kind: torus, radices: [5, 5]}", "if d[0] != c[0] then 1 else {1:1, d[1]:4}",
            r"in router 0 hosts 1 and 3 have the same key 0x5000001, and leave by ports 1 and 2",
        ),
        ("{kind: slim_fly, q: 5, hosts_per_router: 2}", "d[1]", r"in router 0 hosts 0 and 1 have the same key"),
    ],
)  # fmt: skip
def test_wrong_expressions(network: str, text: str, words: str) -> None:
    config = configured(network, f"{{expression: '{text}'}}")
    topology = build(config.topology, config.address)
    with pytest.raises(UserError, match=words):
        check_expression(config, configured_reduction(config, topology), known_routes(config, topology))


def test_wide_keys_are_checked_too() -> None:
    network, address = "{kind: hyperx, sizes: [4, 3]}", "address: {width_bits: 40}\n"
    for text in ("{1:3, d[0]:17}", "{1:16, d[0]:17}"):
        each = configured(network, f"{{expression: '{text}'}}", address)
        topology = build(each.topology, each.address)
        with pytest.raises(UserError, match=r"in router 0 hosts 0 and 4 have the same key"):
            check_expression(each, configured_reduction(each, topology), known_routes(each, topology))


@pytest.mark.parametrize(
    ("network", "reduction", "words"),
    [
        ("{kind: hyperx, sizes: [4, 3]}", "{name: hyprx}", "name: unknown 'hyprx'; did you mean 'hyperx'?"),
        ("{kind: hyperx, sizes: [4, 3]}", "{name: zz}", f"name: unknown 'zz'; known: {', '.join(SHIPPED_EXPRESSIONS)}"),
        (
            "{kind: hyperx, sizes: [4, 3]}", "{name: torus}",
            "name: torus is for topology.kind torus, not hyperx; for this kind: hyperx",
        ),
        ("{kind: hyperx, sizes: [4, 3]}", "{}", "expression: give either `expression` or `name`"),
        ("{kind: hyperx, sizes: [4, 3]}", "{name: hyperx, expression: '1'}", "expression: give either `expression`"),
        ("{kind: hyperx, sizes: [4, 3]}", "yes", ": expected true or false, not 'yes'"),
        ("{kind: hyperx, sizes: [4, 3]}", "{text: '1'}", "text: unknown key; known: expression, name, constants"),
        (
            "{kind: hyperx, sizes: [4, 3]}", "{expression: 'd[2] + 1'}",
            "expression: column 3: 'd' has digits 0 to 1, not 2",
        ),
        (
            "{kind: random_regular, routers: 8, degree: 3}", "{expression: 'd[0]'}",
            "expression: column 1: this network has no digits 'd'; take bits of dst and own",
        ),
        (
            "{kind: hyperx, sizes: [4, 3]}", "{expression: '1', constants: {n: 3}}",
            "expression: column 1: constants: 'n' is a constant of the network already; take another name",
        ),
        ("{kind: hyperx, sizes: [4, 3]}", "{expression: '1', constants: {d: 3}}",
         "expression: column 1: constant 'd' has the name of something else; take another"),
        ("{kind: hyperx, sizes: [4, 3]}", "{expression: '1', constants: {a b: 3}}", "constants: 'a b' is no name"),
        (
            "{kind: edge_list, file: x.anynet}", "{name: oversubscribed_tree, constants: {leaves: 3}}",
            "constants: oversubscribed_tree needs leaves, hosts, ups, each at least 1; hosts is missing",
        ),
        (
            "{kind: edge_list, file: x.anynet}", "{name: dragonfly_plus, constants: {groups: 3, leaves: 2, hosts: 1}}",
            "constants: dragonfly_plus needs groups, leaves, spines, hosts, each at least 1; spines is missing",
        ),
        (
            "{kind: dragonfly_plus, hosts_per_router: 1, leaves: 2, spines: 2, h: 1}",
            "{name: dragonfly_plus, constants: {groups: 3}}",
            "constants: 'groups' is a constant of the network already",
        ),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(network: str, reduction: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configured(network, reduction)
    assert str(caught.value).startswith("x.yml:4: lookup.reduction")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_links_by_the_source_are_refused() -> None:
    config = configured("{kind: dragonfly, p: 2, a: 4, h: 2, g: 3}", "{name: dragonfly}", "routing: {links: hash}\n")
    topology = build(config.topology, config.address)
    with pytest.raises(UserError, match=r"keys know nothing of the source, which routing\.links: hash takes links by"):
        check_expression(config, configured_reduction(config, topology), known_routes(config, topology))
