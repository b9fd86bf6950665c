"""`hopforge gen tables`: every pair is delivered, in its layers, by the images alone, looked up in the golden TCAM."""

import hashlib
import itertools
import json

import networkx as nx
import numpy as np
import pytest

from hopforge.gen.packages import tables
from hopforge.gen.packages.tables import generate_tables, table_files
from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.irregular.switch_tables import address_rows, lower_ports
from hopforge.model.irregular.tables import build_tables
from hopforge.model.lookup.tcam import Tcam, TcamRow
from hopforge.model.topology import build

TEXT = """
name: mine
topology: {kind: layout_random, n: 4, degree: 3, length: 3, hosts_per_router: 2, seed: 2}
tables: {SECTION}
"""


def _config(section, topology=""):
    text = TEXT.replace("SECTION", section)
    if topology:
        text = text.replace("kind: layout_random, n: 4, degree: 3, length: 3, hosts_per_router: 2, seed: 2", topology)
    return parse_config(text, "test.yml")


def _words(text, layout):
    """Fields of every word of an image, by the layout that the manifest gives."""
    digits = -(-layout["bits"] // 4)
    found = []
    for line in text.splitlines():
        assert len(line) == digits
        word = int(line, 16)
        assert word >> layout["bits"] == 0
        fields = layout["fields"].items()
        found.append({name: word >> place["lsb"] & (1 << place["bits"]) - 1 for name, place in fields})
    return found


class _Switches:
    """A network that knows nothing but the written files."""

    def __init__(self, files):
        self.manifest = json.loads(files["mine_tables.json"])
        self.net = self.manifest["network"]
        self.images = [
            {kind: _words(files[name], self.manifest["words"][kind]) for kind, name in switch["files"].items()}
            for switch in self.manifest["switches"]
        ]
        self.tcams = [self._tcam(image["tcam"]) for image in self.images]
        self.escapes = [self._tcam(image["escape"]) for image in self.images if "escape" in image]

    def _tcam(self, words):
        rows = [TcamRow(w["value"], w["mask"], w["output"], bool(w["lag"]), bool(w["valid"])) for w in words]
        return Tcam.of_rows(rows, width_bits=self.manifest["address_bits"])

    def _next_layer(self, source, host, hop, layer, here, entry, leave):
        rule = self.manifest["layers"]["rule"]
        if rule == "order":
            if hop == 0:
                return self.manifest["layers"]["start"]
            word = self.images[here]["layers"][layer * self.net["ports"] + entry]
            return layer - (word["lower"] >> leave & 1)
        if rule == "hop":
            return hop
        word = self.images[source]["layers"][host]
        return word["layer"] if rule == "start" else word[f"hop{hop}"]

    def walk(self, source_host, host, tcams=None):
        """Routers and, for each hop, its layer."""
        here, entry = (self.net[name][source_host] for name in ("host_router", "host_port"))
        source, layer, routers, layers = here, -1, [here], []
        while True:
            leave = (tcams or self.tcams)[here].lookup(self.net["host_address"][host])
            peer = self.net["peer_router"][here][leave]
            if peer < 0:
                assert (here, leave) == tuple(self.net[name][host] for name in ("host_router", "host_port"))
                return routers, layers
            if self.manifest["layers"]["rule"] != "escape":
                layer = self._next_layer(source, host, len(layers), layer, here, entry, leave)
                layers.append(layer)
            entry, here = self.net["peer_port"][here][leave], peer
            routers.append(here)
            assert len(routers) <= self.net["routers"]


@pytest.mark.parametrize(
    "section",
    [
        "scheme: loren, layers: acro",
        "scheme: loren, t_max: 12, layers: lash",
        "scheme: shortest, layers: lash_tor",
        "scheme: cowen, layers: hop_indexed",
        "scheme: thorup_zwick, layers: dfsssp",
        "scheme: up_down, layers: single",
        "scheme: shortest, layers: escape",
        pytest.param("scheme: nue, layers: nue, max_layers: 3", marks=pytest.mark.study),
    ],
)
def test_images_deliver_every_pair_in_its_layers(section):
    config = _config(section)
    switches = _Switches(table_files(config))
    tables = build_tables(config.tables, build(config.topology, config.address), config.seed)
    graph = nx.DiGraph()
    hosts = range(tables.topology.hosts)
    assert len(hosts) == 32
    for s, d in itertools.product(hosts, hosts):
        routers, layers = switches.walk(s, d)
        for u, w in itertools.pairwise(routers):
            assert tables.next_hop[u, routers[-1]] == w
        if layers:
            assert layers == tables.layers.of_path(routers[0], routers[-1])
            graph.add_edges_from(itertools.pairwise(zip(itertools.pairwise(routers), layers, strict=True)))
        if switches.escapes:
            routers, _ = switches.walk(s, d, switches.escapes)
            graph.add_edges_from(itertools.pairwise(itertools.pairwise(routers)))
    assert graph.number_of_nodes() > 0
    assert nx.is_directed_acyclic_graph(graph)


@pytest.mark.parametrize(
    "topology", ["", "kind: torus, radices: [3, 4]", "kind: layout_random, n: 5, degree: 4, length: 3, seed: 2"]
)
def test_other_networks_and_unknown_addresses(topology):
    config = _config("layers: lash", topology)
    switches = _Switches(table_files(config))
    net = switches.net
    for s, d in itertools.product(range(net["hosts"]), repeat=2):
        routers, _ = switches.walk(s, d)
        assert routers[-1] == net["host_router"][d]
    known = set(net["host_address"])
    for address in {*range(4 * net["hosts"]), (1 << 24) - 1} - known:
        assert all(tcam.lookup(address) is None for tcam in switches.tcams)


def test_entries_answer_a_search_for_the_nearest_destination():
    config = _config("scheme: loren")
    switches = _Switches(table_files(config))
    tables = build_tables(config.tables, build(config.topology, config.address), config.seed)
    for here, image in enumerate(switches.images):
        assert len(image["entries"]) == tables.entries[here]
        for d in range(16):
            if d == here:
                continue
            far = [abs(e["destination"] % 4 - d % 4) + abs(e["destination"] // 4 - d // 4) for e in image["entries"]]
            port = image["entries"][far.index(min(far))]["port"]
            assert switches.net["peer_router"][here][port] == tables.next_hop[here, d]


def test_squares_of_the_floor_plan_are_one_row_each():
    quarters = {place: (place % 8 >= 4) + 2 * (place // 8 >= 4) for place in range(64)}
    interleaved = [0, 3, 1, 4, 2, 5]
    assert len(address_rows(quarters, 24, [[]])) > 4
    rows = address_rows(quarters, 24, [[], interleaved])
    assert len(rows) == 4
    tcam = Tcam.of_rows(rows)
    assert [tcam.lookup(place) for place in range(64)] == list(quarters.values())
    assert tcam.lookup(64) is None


def test_files_and_digests(tmp_path):
    config = _config("scheme: loren")
    paths = generate_tables(config, tmp_path / "out")
    files = table_files(config)
    assert [path.name for path in paths] == list(files)
    assert {path.name: path.read_text() for path in paths} == files
    digests = json.loads(paths[-1].read_text())["files"]
    assert digests == {name: hashlib.sha256(files[name].encode()).hexdigest() for name in list(files)[:-1]}
    rows = json.loads(files["mine_switches.json"])
    assert [row["router"] for row in rows] == list(range(16))
    lines = files["mine_tcam_0003.mem"].splitlines()
    assert len(rows[3]["tcam"]) == len(lines)
    for (value, mask, output), line in zip(rows[3]["tcam"], lines, strict=True):
        assert line == f"{1 << 65 | output << 48 | int(mask, 16) << 24 | int(value, 16):017x}"


def test_what_does_not_fit_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"^lookup.tcam.rows: must be at least \d+ for router 0, not 4"):
        table_files(_config("layers: lash}\nlookup: {tcam: {kind: flops, rows: 4}"))
    (tmp_path / "star.txt").write_text("0 1\n0 2\n0 3\n")
    text = "name: mine\ntopology: {kind: edge_list, file: star.txt}\nlookup: {cache: {output_bits: 1}}\n"
    with pytest.raises(UserError, match=r"^lookup.cache.output_bits: must be at least 2 for 4 ports, not 1"):
        table_files(parse_config(text, "test.yml", folder=tmp_path))


def test_a_check_makes_no_more_switches_than_it_takes(monkeypatch):
    """It held the rows of all of them: of 10 000 switches gigabytes."""
    made, real = [], tables.switch_tables
    monkeypatch.setattr(tables, "switch_tables", lambda *given: (made.append(one) or one for one in real(*given)))
    ready = tables.prepare_tables(_config("layers: lash"))
    assert made == [] and len(list(ready.switches)) == len(made) == 16
    with pytest.raises(UserError, match=r"^lookup.tcam.rows: must be at least \d+ for router 0, not 4"):
        tables.prepare_tables(_config("layers: lash}\nlookup: {tcam: {kind: flops, rows: 4}"))
    assert len(made) == 17


@pytest.mark.parametrize("ports", [3, 63, 64, 70])
def test_rule_of_acro_on_switches_of_any_number_of_ports(ports):
    """From 64 ports on the shifts left their 64 bits."""
    orders = np.random.default_rng(ports).integers(-1, 40, size=(2, 3, 2, ports)).astype(np.int32)
    found = lower_ports(orders)
    for layer, router, port in np.ndindex(found.shape):
        into, out = int(orders[layer, router, 0, port]), orders[layer, router, 1].tolist()
        lower = [p for p in range(ports) if 0 <= into <= out[p]]
        assert found[layer, router, port] == sum(1 << p for p in lower)
