"""Generated routers and networks: the same bytes on every run, consistent files, clean, equal parts made once."""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.gen.packages.parts import generate_part, part_files
from hopforge.gen.tools.yosys import run_yosys
from hopforge.gen.verilog.lint import lint_text
from hopforge.gen.verilog.writer import to_rtlil, to_verilog
from hopforge.hw.allocation.vc_allocator import VcOutput
from hopforge.hw.router.router import Router
from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.lookup.csr import csr_map
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.csr import router_csr_map
from hopforge.model.router.params import Route, RouterParams

TABLE = "{name: small, topology: {kind: mesh, radices: [2, 2]}, router: {vcs: 2, buffer_flits: 3}}"
LOOKUP = (
    "{name: small, topology: {kind: mesh, radices: [2, 2]}, router: {vcs: 2, buffer_flits: 3, route_computation: "
    "lookup}, lookup: {functions: [arbitrary, mesh], chunk_bits: [4], comparators: 2, cache: {entries: 8, ways: 2}, "
    "mshrs: 2, tcam: {kind: KIND, rows: 8, latency_cycles: 2}}}"
)


def lookup_config(kind: str) -> Config:
    return parse_config(LOOKUP.replace("KIND", kind))


@pytest.fixture(scope="module")
def router() -> dict[str, str]:
    return part_files(lookup_config("flops"), "router", router=3)


@pytest.fixture(scope="module")
def network() -> dict[str, str]:
    return part_files(lookup_config("external"), "network")


class TestFiles:
    @pytest.mark.study
    def test_same_bytes_with_another_hash_seed(self) -> None:
        script = (
            "import hashlib, sys; from hopforge.gen.packages.parts import part_files;"
            "from hopforge.model.config import parse_config; files = part_files(parse_config(sys.argv[1]), 'network');"
            "print(hashlib.sha256(repr(files).encode()).hexdigest())"
        )
        found = hashlib.sha256(repr(part_files(parse_config(TABLE), "network")).encode()).hexdigest()
        done = subprocess.run(
            [sys.executable, "-c", script, TABLE], env={**os.environ, "PYTHONHASHSEED": "5"}, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == found

    @pytest.mark.parametrize("which", ["router", "network"])
    def test_the_manifest_says_what_was_made(self, which: str, request: pytest.FixtureRequest) -> None:
        files = request.getfixturevalue(which)
        name = "small_router3" if which == "router" else "small_network"
        manifest = json.loads(files[f"{name}.json"])
        assert list(files) == [*manifest["files"], f"{name}.json"]
        for file, digest in manifest["files"].items():
            assert hashlib.sha256(files[file].encode()).hexdigest() == digest
        heading = re.search(rf"^module {name}\(\n(.*?)\n\);", files[f"{name}.sv"], re.MULTILINE | re.DOTALL)
        assert heading is not None
        found = re.findall(r"^  (input|output) (?:wire|reg) (\[\d+:0\] )?(\w+)(?: = \S+)?,?$", heading[1], re.MULTILINE)
        ports = {port["name"]: port for port in manifest["ports"]}
        assert {port for _, _, port in found} == set(ports)
        for direction, span, port in found:
            width = ports[port]["width_bits"]
            assert (direction, span) == (ports[port]["direction"], f"[{width - 1}:0] " if width > 1 else "")
        for file, text in files.items():
            assert not re.search(r"(^|[\s\"'])/(?!/|\*)\w+/|site-packages|\.venv", text), file

    def test_every_register_is_documented(self, router: dict[str, str]) -> None:
        text, manifest = router["small_router3.md"], json.loads(router["small_router3.json"])
        params = RouterParams(ports=5, vcs=2, buffer_flits=3, rc="lookup", lookup=LookupParams())
        registers = list(router_csr_map(params))
        assert [register["name"] for register in manifest["registers"]] == [register.name for register in registers]
        for register in registers:
            section = text.split(f"## {register.name}\n")[1].split("\n## ")[0]
            assert all(f"| {field.name} |" in section for field in register.fields)
        for register in csr_map(LookupParams(comparators=2, chunk_bits=(4,))):
            assert f"| 0x{register.address:02X} | {register.name} |" in text

    def test_programs_of_a_network_are_those_of_its_routers(
        self, router: dict[str, str], network: dict[str, str]
    ) -> None:
        one = json.loads(router["small_router3_program.json"])["routers"]
        every = json.loads(network["small_network_program.json"])["routers"]
        assert [program["router"] for program in every] == [0, 1, 2, 3]
        assert one[0]["tcam"] == every[3]["tcam"] != every[0]["tcam"]
        assert sum(step[4] == "ENGINES.TCAM_WRITE" for step in one[0]["operations"]) == len(one[0]["tcam"])
        assert not any("TCAM" in step[4] for step in every[3]["operations"])  # outside
        assert one[0]["operations"][-1] == ["write", "0x0004", "0x00000001", "0x00000000", "CTRL"]

    def test_a_network_with_tcams_outside_has_their_ports(self, network: dict[str, str]) -> None:
        manifest = json.loads(network["small_network.json"])
        names = {port["name"] for port in manifest["ports"]}
        assert {f"router{r}_tcam__{p}__req_dst" for r in range(4) for p in range(5)} <= names
        widths = {port["name"]: port["width_bits"] for port in manifest["ports"]}
        assert widths["link_change"] == 4 and widths["csr__addr"] == 16

    def test_equal_routers_and_ports_are_one_module(self, network: dict[str, str]) -> None:
        text = network["small_network.sv"]
        for part in ("controlled_router", "input_unit", "vc_allocator", "router_csr"):
            assert len(re.findall(rf"^module small_network_{part}(_\d+)?\(", text, re.MULTILINE)) == 1, part


class TestLint:
    @pytest.mark.study
    def test_a_network_is_clean(self, network: dict[str, str]) -> None:
        assert lint_text(network["small_network.sv"], "small_network").findings == ()

    @pytest.mark.parametrize(
        "router", ["", "va: free_queue, sa: input_ahead, vc_release: credits", "speculation: true"]
    )
    def test_the_smallest_buffers_are_clean(self, tmp_path: Path, router: str) -> None:
        """A counter of one bit is compared with nothing that it cannot be."""
        path = tmp_path / "least.yml"
        more = f", {router}" if router else ""
        path.write_text(
            f"name: least\ntopology: {{kind: mesh, radices: [2]}}\nrouter: {{vcs: 1, buffer_flits: 1{more}}}\n"
        )
        result = CliRunner().invoke(app, ["lint", str(path), "--what", "router"])
        assert result.exit_code == 0, result.output
        assert "least_router0: 0 findings" in result.output

    def test_command(self, tmp_path: Path) -> None:
        path = tmp_path / "small.yml"
        path.write_text(TABLE)
        result = CliRunner().invoke(app, ["lint", str(path), "--what", "router", "--router", "1"])
        assert result.exit_code == 0, result.output
        assert "small_router1: 0 findings" in result.output


def test_shared_parts_are_the_same_gates(tmp_path: Path) -> None:
    """Sharing must not lose a connection: flattened, both ways have the same cells."""
    params = RouterParams(
        ports=3, vcs=2, buffer_flits=2, routes=(Route(1), Route(2), Route(4)), address_bits=2,
        width_bits=12, tag_bits=4,
    )  # fmt: skip
    counts = []
    for shared in (False, True):
        text = to_rtlil(Router(params=params), "r", shared=shared)
        assert (text.count("module ") < 40) == shared
        (tmp_path / "r.il").write_text(text)
        log = run_yosys(
            "read_rtlil r.il\nhierarchy -check -top r\nproc\nflatten\nmemory_map\nopt -full\nsimplemap\n"
            "opt -full\nstat\n",
            tmp_path,
        )
        counts.append(sorted(re.findall(r"^\s+(\d+)\s.*(\$_\w+)", log.split("=== r ===")[-1], re.MULTILINE)))
    assert counts[0] == counts[1]
    assert len(counts[0]) > 3


@pytest.mark.parametrize(
    ("text", "router", "message"),
    [
        (TABLE, 4, "--router must be below 4, the routers of the network, not 4"),
        (
            TABLE.replace("vcs: 2", "vcs: 2, flit_bits: 40"),
            0,
            "router: flit_bits must be at least 56 (the header), not 40",
        ),
        (
            TABLE.replace("buffer_flits: 3", "buffer_flits: 2000"),
            0,
            "router: buffer_flits must be in 1 to 1024, not 2000",
        ),
        (
            TABLE.replace("vcs: 2", "vcs: 2, switching: saf"),
            0,
            "router.switching must be wormhole or vct in hardware, not",
        ),
        (
            TABLE.replace("vcs: 2", "vcs: 16, va: wavefront").replace(
                "mesh, radices: [2, 2]", "fully_connected, routers: 33"
            ),
            0,
            "router.va: wavefront takes at most 512 input VCs (ports · vcs), not 33 · 16 = 528; another va takes all",
        ),
    ],
)
def test_what_cannot_be_built_is_named(text: str, router: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(message)}"):
        generate_part(parse_config(text), "router", tmp_path / "out", router=router)
    assert not (tmp_path / "out").exists()


def test_commands_write_the_files(tmp_path: Path) -> None:
    path = tmp_path / "small.yml"
    path.write_text(TABLE)
    result = CliRunner().invoke(app, ["gen", "router", str(path), "--router", "2", "-o", str(tmp_path / "r")])
    assert result.exit_code == 0, result.output
    names = [Path(line).name for line in result.output.split()]
    ends = (".sv", ".vlt", ".sdc", "_tb.sv", ".core", ".md", ".rdl", ".svd", ".h", ".json")
    assert names == [f"small_router2{end}" for end in ends]
    assert all((tmp_path / "r" / name).stat().st_size for name in names)


def test_long_lines_are_broken(tmp_path: Path) -> None:
    """Verilator takes 40 000 words on a line; an output port of 16 × 6 VCs has lines of ten thousand characters."""
    text = to_verilog(VcOutput(16, 6, True, "round_robin"), "output_port")
    assert max(map(len, text.splitlines())) <= 4000
    assert re.search(r"[,|&]\n {6}\S", text), "a line has been broken"
    (tmp_path / "output_port.sv").write_text(text)
    run_yosys("read_verilog -sv output_port.sv\nhierarchy -check -top output_port\n", tmp_path)


QUALITY = (
    "{name: small, topology: {kind: mesh, radices: [2]}, router: {vcs: 2, buffer_flits: 3, qos: weighted}, "
    "traffic: {classes: [{name: a, share: 0.5, vcs: 1}, {name: b, share: 0.5, vcs: 1}]}}"
)


@pytest.mark.parametrize("text", [TABLE, LOOKUP.replace("KIND", "flops"), QUALITY])
def test_no_instance_has_the_name_of_a_port_of_its_module(text: str) -> None:
    """A name inside that is also one of the scope around it is a warning of Verilator (VARHIDDEN)."""
    verilog = next(iter(part_files(parse_config(text), "network").values()))
    ports = {
        name: set(re.findall(r"^ +(?:in|out)put .*?(\w+),?$", head, re.MULTILINE))
        for name, head in re.findall(r"^module (\w+)\((.*?)\);", verilog, re.MULTILINE | re.DOTALL)
    }
    instances = [(kind, name) for kind, name in re.findall(r"^  (\w+) (\w+) \($", verilog, re.MULTILINE)]
    assert len(instances) > 20
    assert [f"{kind} {name}" for kind, name in instances if name in ports[kind]] == []
