"""Generated routers with AXI-Stream adapters: what the package says of them, and what is refused."""

import json

import pytest

from hopforge.gen.fpga.board_design import network_on_board_design
from hopforge.gen.packages.parts import part_files
from hopforge.gen.verilog.lint import lint_text
from hopforge.model.config import parse_config
from hopforge.model.config.uses import unused_sections
from hopforge.model.errors import UserError

MESH = "{name: small, topology: {kind: mesh, radices: [2, 1], hosts_per_router: 2}, router: {vcs: 2, ROUTER}}"
FAT_TREE = (
    "{name: small, topology: {kind: fat_tree, k: 2, n: 2}, routing: {algorithm: d_mod_k}, router: {vcs: 2, ROUTER}}"
)


def test_package_names_ports_and_registers() -> None:
    config = parse_config(MESH.replace("ROUTER", "host_ports: axi_stream, stream_beats: 3"))
    files = part_files(config, "router", router=1)
    manifest = json.loads(files["small_router1.json"])
    hosts = [port for port, end in enumerate(manifest["place"]["ports"]) if end is not None and end.startswith("host")]
    others = [port for port in range(manifest["parameters"]["ports"]) if port not in hosts]
    adapters = manifest["streams"]["adapters"]
    assert [adapter["port"] for adapter in adapters] == hosts and len(hosts) == 2
    assert [adapter["own"] for adapter in adapters] == [2, 3]
    ports = {port["name"]: port["width_bits"] for port in manifest["ports"]}
    for adapter in adapters:
        assert ports[f"{adapter['slave']}_tkeep"] == ports[f"{adapter['master']}_tkeep"] == 8
    assert not any(name.startswith("port__") for name in ports) and f"port_{others[0]}__in_flit" in ports
    for suffix in ("md", "rdl", "svd", "h"):
        assert files[f"small_router1.{suffix}"].count(f"STREAM_LONG{hosts[0]}") > 0


@pytest.mark.parametrize(("command", "unused"), [
    ("gen router", []), ("gen network", []), ("lint", []),
    ("cosim --part router", ["router.host_ports"]), ("cosim --part network", ["router.host_ports"]),
    ("energy --part router", ["router.host_ports"]),
])  # fmt: skip
def test_what_leaves_the_adapters_out_says_so(command: str, unused: list[str]) -> None:
    config = parse_config(MESH.replace("ROUTER", "host_ports: axi_stream, stream_beats: 3"))
    assert unused_sections(config, [command]) == unused


@pytest.mark.parametrize(
    ("text", "router", "message"),
    [
        (MESH, "stream_beats: 3", "router.stream_beats: is for host_ports=axi_stream only, not host_ports=flits"),
        (MESH, "host_ports: axi_stream, flit_bits: 60", "router: flit_bits must be a multiple of 8 .* not 60"),
        (MESH, "host_ports: axi_stream, switching: vct", "stream_beats must be at most buffer_flits=8 - 1 .* not 16"),
        (MESH, "host_ports: axi_stream, tag_bits: 2", "router: tag_bits must be at least 3 .* not 2"),
        (FAT_TREE, "host_ports: axi_stream", "router.host_ports must be flits for --router 9, which has no host"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, router: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        part_files(parse_config(text.replace("ROUTER", router)), "router", router=9 if text == FAT_TREE else 0)


def test_a_network_has_streams_at_every_host() -> None:
    text = MESH.replace("ROUTER", "flit_bits: 96, buffer_flits: 2, host_ports: axi_stream, stream_beats: 3")
    files = part_files(parse_config(text), "network")
    manifest = json.loads(files["small_network.json"])
    adapters = manifest["streams"]["adapters"]
    assert [(each["host"], each["router"], each["port"]) for each in adapters] == [
        (host["host"], host["router"], host["port"]) for host in manifest["hosts"]
    ]
    assert [each["own"] for each in adapters] == [0, 1, 2, 3]
    ports = {port["name"]: (port["direction"], port["width_bits"]) for port in manifest["ports"]}
    for host in range(4):
        assert ports[f"s_axis_{host}_tdata"] == ("input", 96) and ports[f"m_axis_{host}_tdata"] == ("output", 96)
        assert ports[f"s_axis_{host}_tready"][0] == "output" and ports[f"m_axis_{host}_tid"] == ("output", 24)
    assert not any(name.startswith("host__") for name in ports) and "csr__addr" in ports
    assert files["small_network.md"].count("`s_axis_3_…`, `m_axis_3_…` | 1 | 1 | 3 |") == 1
    assert lint_text(files["small_network.sv"], "small_network").findings == ()


def test_a_network_may_have_routers_without_hosts() -> None:
    files = part_files(parse_config(FAT_TREE.replace("ROUTER", "host_ports: axi_stream")), "network")
    manifest = json.loads(files["small_network.json"])
    at = [adapter["router"] for adapter in manifest["streams"]["adapters"]]
    assert len(at) == len(manifest["hosts"]) and len(set(at)) < len(json.loads(files["small_network_routers.json"]))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("traffic: {reply: {queue: 1}}",
         r"traffic\.reply must be null for hopforge gen network with router\.host_ports=axi_stream"),
        ("traffic: {acknowledge: {queue: 4, own_queue: 16, table: 16}}",
         r"traffic\.acknowledge must be null for hopforge gen network with router\.host_ports=axi_stream"),
        ("csr: {bus: apb}", r"csr\.bus must be native for hopforge gen network, not apb"),
    ],
)  # fmt: skip
def test_what_a_network_cannot_have_is_refused(more: str, message: str) -> None:
    one_host = MESH.replace("hosts_per_router: 2", "hosts_per_router: 1").replace("ROUTER", "host_ports: axi_stream")
    with pytest.raises(UserError, match=message):
        part_files(parse_config(f"{one_host[:-1]}, {more}}}"), "network")


def test_boards_have_hosts_of_their_own() -> None:
    config = parse_config(MESH.replace("ROUTER", "host_ports: axi_stream"))
    with pytest.raises(UserError, match=r"router\.host_ports must be flits for a network on a board, not axi_stream"):
        network_on_board_design(config)
