"""Generated files: the same bytes on every run, clean, without machine paths, complete or not at all."""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import Component, In, Out

from hopforge.gen.packages.lookup import lookup_name
from hopforge.gen.packages.parts import generate_part, part_files
from hopforge.gen.verilog.lint import WAIVERS, lint_text, waiver_file
from hopforge.gen.verilog.writer import to_verilog
from hopforge.model.config import load_config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.lookup.csr import csr_map
from hopforge.model.lookup.params import LookupParams

CONFIGS = Path(__file__).parents[3] / "configs"


def config(**lookup):
    content = {"name": "small", "topology": {"kind": "torus", "radices": [4, 4]}, "lookup": lookup}
    return parse_config(json.dumps(content))


@pytest.fixture(scope="module")
def files():
    return part_files(config(), "lookup")


class TestLookupFiles:
    @pytest.mark.study  # `tests/cli/test_repeatable.py` compares files of another process and hash seed in any case
    def test_same_bytes_with_other_hash_seeds(self, files):
        yaml_text = '{"name": "small", "topology": {"kind": "torus", "radices": [4, 4]}, "lookup": {}}'
        script = (
            "import hashlib, sys; from hopforge.gen.packages.parts import part_files;"
            "from hopforge.model.config import parse_config; files = part_files(parse_config(sys.argv[1]), 'lookup');"
            "print(hashlib.sha256(repr(files).encode()).hexdigest())"
        )
        expected = hashlib.sha256(repr(files).encode()).hexdigest()
        for seed in ("1",):  # the other one is this process
            done = subprocess.run(
                [sys.executable, "-c", script, yaml_text],
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                text=True, check=True,
            )  # fmt: skip
            assert done.stdout.strip() == expected

    def test_no_machine_paths(self, files):
        for name, text in files.items():
            assert not re.search(r"(^|[\s\"'])/(?!/|\*)\w+/|site-packages|\.venv", text), name
            assert "src =" not in text, name

    def test_manifest_says_what_was_made(self, files):
        manifest = json.loads(files["small_lookup.json"])
        assert manifest["parameters"]["ways"] == 4
        assert manifest["derived"] == {"key_bits": 28, "sets": 512, "index_bits": 9, "hit_latency_cycles": 3}
        for name, digest in manifest["files"].items():
            assert hashlib.sha256(files[name].encode()).hexdigest() == digest
        ports = {port["name"]: port for port in manifest["ports"]}
        heading = re.search(r"^module small_lookup\(\n(.*?)\n\);", files["small_lookup.sv"], re.MULTILINE | re.DOTALL)
        assert heading is not None
        found = re.findall(r"^  (input|output) (?:wire|reg) (\[\d+:0\] )?(\w+)(?: = \S+)?,?$", heading[1], re.MULTILINE)
        assert {name for _, _, name in found} == set(ports)
        for direction, span, name in found:
            width = ports[name]["width_bits"]
            assert direction == ports[name]["direction"]
            assert span == (f"[{width - 1}:0] " if width > 1 else "")
        registers = csr_map(LookupParams())
        assert [r["name"] for r in manifest["registers"]] == [r.name for r in registers]

    def test_every_register_and_field_is_documented(self, files):
        text = files["small_lookup.md"]
        registers = list(csr_map(LookupParams()))
        assert registers
        for register in registers:
            section = text.split(f"## {register.name}\n")[1].split("\n## ")[0]
            for field in register.fields:
                assert f"| {field.name} |" in section

    def test_core_file_names_the_other_files(self, files):
        head, _, body = files["small_lookup.core"].partition("\n")
        assert head == "CAPI=2:"
        core = yaml.safe_load(body)
        named = {name for fileset in core["filesets"].values() for name in fileset["files"]}
        assert named == {f"small_lookup{end}" for end in (".sv", ".vlt", ".sdc", "_tb.sv")} <= set(files)

    def test_constraints_cover_every_port(self, files):
        ports = json.loads(files["small_lookup.json"])["ports"]
        delays = [line for line in files["small_lookup.sdc"].splitlines() if line.startswith("set_")]
        named = [name for line in delays for name in re.findall(r"\{(.*)\}", line)[:1] for name in name.split()]
        assert sorted(named) == sorted(p["name"] + "[*]" * (p["width_bits"] > 1) for p in ports if p["name"] != "clk")

    def test_period(self):
        for period in (0.0, -1.0, float("inf"), float("nan")):
            with pytest.raises(UserError, match=f"the clock period must be above 0 ns and finite, not {period:g}"):
                part_files(config(), "lookup", period_ns=period)
        assert "-period 0.43 " in part_files(config(), "lookup", period_ns=0.43)["small_lookup.sdc"]


class TestGenerateLookup:
    def test_writes_all_files(self, tmp_path, files):
        paths = generate_part(config(), "lookup", tmp_path / "out")
        assert {path.name: path.read_text() for path in paths} == files
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(files)

    def test_nothing_is_written_if_something_fails(self, tmp_path, monkeypatch):
        def broken(*arguments, **options):
            raise UserError("no")

        monkeypatch.setattr("hopforge.gen.packages.package._core", broken)
        with pytest.raises(UserError):
            generate_part(config(), "lookup", tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_a_place_that_is_a_file(self, tmp_path):
        (tmp_path / "out").write_text("")
        with pytest.raises(UserError, match="cannot write results"):
            generate_part(config(), "lookup", tmp_path / "out")

    def test_an_engine_without_cache(self):
        with pytest.raises(UserError, match=r"cache\.enabled: must be true for a lookup engine in hardware"):
            generate_part(config(cache={"enabled": False}), "lookup", Path("unused"))


class TestLint:
    @pytest.mark.parametrize("name", [
        "demo.yml",
        pytest.param("hits_dragonfly.yml", marks=pytest.mark.study),
        pytest.param("hits_edge_list.yml", marks=pytest.mark.study),
        pytest.param("hits_fat_tree.yml", marks=pytest.mark.study),
    ])  # fmt: skip
    def test_shipped_engines_are_clean(self, name):
        checked = load_config(CONFIGS / name)
        report = lint_text(part_files(checked, "lookup")[f"{lookup_name(checked)}.sv"], lookup_name(checked))
        assert report.findings == ()
        assert report.missing is None, "slang looked too"
        assert report.waived

    @pytest.mark.parametrize(
        "lookup",
        [
            pytest.param({"pipeline_depth": 1, "lag": {"max_members": 16, "members": 2}}, marks=pytest.mark.study),
            pytest.param({"pipeline_depth": 4, "cache": {"policy": "random", "skewed": True}}, marks=pytest.mark.study),
            {"reduction": False, "cache": {"entries": 4, "ways": 4}, "mshrs": 1, "tcam": {"rows": 1}},
            pytest.param(
                {"reduction": {"name": "torus"}, "cache": {"entries": 2, "ways": 1}, "mshrs": 1, "pipeline_depth": 2},
                marks=pytest.mark.study,
            ),
            pytest.param({"reduction": {"name": "torus"}, "pipeline_depth": 6}, marks=pytest.mark.study),
        ],
    )
    def test_other_engines_are_clean(self, lookup):
        checked = config(**lookup)
        report = lint_text(part_files(checked, "lookup")[f"{lookup_name(checked)}.sv"], lookup_name(checked))
        assert report.findings == ()

    @pytest.mark.parametrize(
        ("body", "rule"),
        [("always_comb begin if (a) y = 1'b1; end", "LATCH"), ("assign y = missing;", "missing"), ("", "UNDRIVEN")],
    )
    def test_finds_what_is_wrong(self, body, rule):
        report = lint_text(f"module m(input a, output reg y);\n{body}\nendmodule\n", "m")
        assert any(rule in finding for finding in report.findings), report

    def test_every_waiver_has_a_reason(self):
        lines = waiver_file().splitlines()
        assert lines[0] == "`verilator_config"
        for rule, reason in WAIVERS.items():
            place = lines.index(f"lint_off -rule {rule}")
            assert lines[place - 1] == f"// {reason}"


def test_verilog_of_a_component():
    class Inverter(Component):
        a: In(1)
        y: Out(1)

        def elaborate(self, platform):
            m = Module()
            m.submodules.inner = inner = Module()
            through = Signal()
            inner.d.comb += through.eq(~self.a)
            m.d.comb += self.y.eq(through)
            return m

    text = to_verilog(Inverter(), "inverter")
    assert text.startswith("// Generated by hopforge ")
    assert "module inverter(" in text and "module inverter_inner(" in text
    assert lint_text(text, "inverter").findings == ()
