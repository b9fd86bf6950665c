"""Keys of section `routing` that an algorithm does not read are told; the table says what each reads."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from hopforge.model.config import parse_config
from hopforge.model.config.unread_keys import ROUTING_KEYS, unread_routing_keys
from hopforge.model.config.uses import unused_sections
from hopforge.model.routing import ROUTING
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.sim.run.simulation import network_topology

#: networks, and keys that let an algorithm read further ones there
_NETWORKS = (
    ("{kind: torus, radices: [4, 4]}", ""),
    ("{kind: torus, radices: [4, 4]}", ", ways: one"),
    ("{kind: mesh, radices: [3, 3]}", ""),
    ("{kind: fat_tree, k: 2, n: 2}", ""),
    ("{kind: dragonfly, p: 1, a: 2, h: 1}", ""),
    ("{kind: dragonfly, p: 1, a: 2, h: 1}", ", estimate_bits: 12"),
    ("{kind: hyperx, sizes: [3, 3]}", ""),
    ("{kind: polarfly, q: 3}", ""),
    ("{kind: butterfly, k: 2, n: 2}", ""),
    ("{kind: hyperx, sizes: [2, 2], hosts_per_router: 2}", ", decision: host"),
)
#: keys that no `prepare` reads: whoever calls it does
_ELSEWHERE = {"decision", "prepare_limit_s", "links", "check", "file", "algorithm"}
_NO_UGAL = ("minimal", "valiant", "valiant_compact")
#: what a function common to several algorithms reads for all, and uses for some
_WITHOUT_EFFECT = {
    **{("bias", name): "in the table; only UGAL looks" for name in _NO_UGAL},
    **{(key, "ugal_compact"): "decides by congestion" for key in ("bias", "rule", "candidates", "over")},
    **{(key, name): "draws once" for key in ("rule", "candidates") for name in _NO_UGAL},
    ("over", "valiant_compact"): "goes over routers",
    ("rule", "ugal_global"): "compares sums",
    **{("bias", name): "takes every detour" for name in ("valiant_group", "valiant_node")},
    **{(key, "q_routing"): "head of its memory" for key in ("beta", "q_thld1", "q_thld2")},
}


class _Recorder(dict[str, Any]):
    """Options that note which of them are asked for."""

    read: set[str]

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)


def _keys_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, set[str], int]]:
    """Prepare each algorithm on each network that it can be made ready for."""
    for name, prepare in list(ROUTING.items()):
        seen: set[str] = set()

        def recorded(topology: Any, vcs: int, options: dict[str, Any], prepare=prepare, seen=seen) -> Any:
            wrapped = _Recorder(options)
            wrapped.read = seen
            return prepare(topology, vcs, wrapped)

        monkeypatch.setitem(ROUTING, name, recorded)
        made, learns = 0, name == "dqn"
        room = ", switching: vct, buffer_flits: 64" if learns else ""
        machine = f"router: {{vcs: 8{room}}}\n{'traffic: {acknowledge: {}}' if learns else ''}\n"
        for network, extra in _NETWORKS:
            text = f"name: x\ntopology: {network}\nrouting: {{algorithm: {name}{extra}}}\n{machine}"
            try:
                config = parse_config(text)
                routing_plan(config, network_topology(config))
            except ValueError:
                continue
            made += 1
        yield name, seen, made


def test_the_table_says_what_algorithms_read(monkeypatch) -> None:
    table = defaultdict(set)
    for key, names in ROUTING_KEYS.items():
        for name in names:
            table[name].add(key)
    keys = {key for key in ROUTING_KEYS} | _ELSEWHERE
    for name, seen, made in _keys_read(monkeypatch):
        assert made, f"{name} suits none of the networks"
        spurious = {key for key, of in _WITHOUT_EFFECT if of == name}
        assert (seen & keys) - _ELSEWHERE - spurious == table[name] - _ELSEWHERE, name


@pytest.mark.parametrize(
    ("routing", "topology", "unread"),
    [
        ("algorithm: dor, bias: 3", "kind: torus, radices: [4, 4]", ["routing.bias"]),
        ("algorithm: dor, ties: random", "kind: torus, radices: [4, 4]", []),
        ("algorithm: dor, ties: random", "kind: mesh, radices: [4, 4]", ["routing.ties"]),
        ("algorithm: nca, ties: random", "kind: fat_tree, k: 2, n: 3", []),
        ("algorithm: ugal, rule: double, alpha: 0.5", "kind: slim_fly, q: 5", ["routing.alpha"]),
        ("algorithm: valiant, root: 1, ties: key", "kind: torus, radices: [4, 4]", ["routing.root"]),
        ("algorithm: valiant, root: 1, ties: key, spread: packet", "kind: torus, radices: [4, 4]", ["routing.ties"]),
        ("algorithm: valiant, root: 1, vc_rule: fixed, ways: one", "kind: torus, radices: [4]", ["routing.vc_rule"]),
        ("algorithm: valiant, root: 1", "kind: mesh, radices: [4, 4]", ["routing.root"]),
        ("algorithm: valiant, root: 1", "kind: slim_fly, q: 5", []),
        ("algorithm: file, file: mine.py, bias: 3", "kind: mesh, radices: [4, 4]", []),
        ("algorithm: dor, proof_limit_s: 90", "kind: mesh, radices: [4, 4]", []),
        ("algorithm: dor, proof_limit_s: 90, check: false", "kind: mesh, radices: [4, 4]", ["routing.proof_limit_s"]),
    ],
)
def test_unread_keys_are_told(routing: str, topology: str, unread: list[str]) -> None:
    config = parse_config(f"name: x\ntopology: {{{topology}}}\nrouting: {{{routing}}}\n", keys=False)
    assert unread_routing_keys([config]) == unread
    assert unused_sections(config, ["net"]) == unread


_GRID = "topology: {kind: hyperx, sizes: [3, 3]}\nrouter: {vcs: 8}\n"


@pytest.mark.parametrize("ways", ["all", "one", "tables"])
@pytest.mark.parametrize("name", sorted(ROUTING_KEYS["ways"]))
def test_section_tables_is_used_where_the_algorithm_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, name: str, ways: str
) -> None:
    seen: set[str] = set()
    prepare = ROUTING[name]

    def recorded(topology: Any, vcs: int, options: dict[str, Any]) -> Any:
        wrapped = _Recorder(options)
        wrapped.read = seen
        return prepare(topology, vcs, wrapped)

    monkeypatch.setitem(ROUTING, name, recorded)
    network = "topology: {kind: polarfly, q: 3}\nrouter: {vcs: 8}\n" if name.endswith("_compact") else _GRID
    text = f"name: x\n{network}routing: {{algorithm: {name}, ways: {ways}}}\ntables: {{scheme: up_down}}\n"
    config = parse_config(text)
    routing_plan(config, network_topology(config))
    assert "ways" in seen
    for command in ("net", "series", "sweep", "trace", "bounds", "gen network", "cosim --part network"):
        assert ("tables" in unused_sections(config, [command])) == ("tables" not in seen), command


def test_what_follows_one_known_way_says_that_it_is_not_that_of_tables() -> None:
    """`hopforge hits` and the flow engine go by tables with `routing.algorithm: tables` alone."""
    routing = "routing: {algorithm: minimal, ways: tables}\ntables: {scheme: up_down, layers: dfsssp, max_layers: 2}\n"
    workload = "workload: {kind: collective, operation: barrier}\n"
    flow, packet = (
        parse_config(f"name: x\n{_GRID}{routing}{workload}app: {{engine: {engine}}}\n", keys=False)
        for engine in ("flow", "packet")
    )
    for command, config in (("hits", flow), ("hits", packet), ("app", flow), ("topology", packet)):
        assert {"tables", "routing.ways"} <= set(unused_sections(config, [command])), command
    for command, config in (("net", flow), ("app", packet), ("gen network", flow)):
        unused = unused_sections(config, [command])
        assert "tables" not in unused and "routing.ways" not in unused, command
        assert {"tables.layers", "tables.max_layers"} <= set(unused), command
    assert not {"tables", "tables.layers", "tables.max_layers"} & set(unused_sections(packet, ["route"]))


@pytest.mark.parametrize(("algorithm", "told"), [("valiant", True), ("ugal", True), ("dor", False), ("minimal", False)])
def test_what_follows_one_known_way_says_that_it_takes_no_detours(algorithm: str, told: bool) -> None:
    workload = "workload: {kind: collective, operation: barrier}\n"
    text = f"name: x\n{_GRID}routing: {{algorithm: {algorithm}}}\n{workload}"
    flow, packet = (parse_config(f"{text}app: {{engine: {engine}}}\n", keys=False) for engine in ("flow", "packet"))
    for command, config in (("hits", flow), ("hits", packet), ("app", flow)):
        assert ("routing.algorithm" in unused_sections(config, [command])) == told, command
    for command, config in (("net", flow), ("app", packet), ("bounds", flow)):
        assert "routing.algorithm" not in unused_sections(config, [command]), command
    assert "routing.algorithm" not in unused_sections(flow, ["hits", "net"])


def test_every_algorithm_is_told_there_or_takes_ways_as_short() -> None:
    """A new algorithm has to be put on one of the two sides."""
    as_short = {
        "dor", "minimal", "shortest", "tables", "star_channel", "dragonfly_min", "nca", "anca", "d_mod_k", "dest_tag",
        "booksim_dor", "booksim_min", "booksim_nca", "booksim_xy_yx", "booksim_adaptive_xy_yx",
    }  # fmt: skip
    texts = {name: f"name: x\n{_GRID}routing: {{algorithm: {name}}}\nworkload: {{kind: uniform}}\n" for name in ROUTING}
    told = {name for name, text in texts.items()
            if "routing.algorithm" in unused_sections(parse_config(text, keys=False), ["hits"])}  # fmt: skip
    assert told == set(ROUTING) - as_short


def test_a_key_that_one_variant_reads_is_read() -> None:
    variants = "simulation: {variants: {a: {routing.algorithm: ugal}, b: {}}}\n"
    routing = "router: {vcs: 8}\nrouting: {bias: 3, alpha: 0.1}\n"
    text = f"name: x\ntopology: {{kind: torus, radices: [4, 4]}}\n{routing}{variants}"
    assert unused_sections(parse_config(text, keys=False), ["sweep"]) == ["routing.alpha"]


def test_routers_of_packets_have_no_long_proof() -> None:
    text = "name: x\ntopology: {kind: torus, radices: [4, 4]}\nrouter: {model: packet}\nrouting: {proof_limit_s: 9}\n"
    assert unread_routing_keys([parse_config(text, keys=False)]) == ["routing.proof_limit_s"]
