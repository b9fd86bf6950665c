"""The core file of a package, as FuseSoC takes it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hopforge.gen.packages.parts import generate_part
from hopforge.gen.packages.smoke_bench import smoke_bench
from hopforge.model.config import parse_config

CORE = "hopforge:lookup:small_lookup:1.0.0"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    lookup = {"cache": {"entries": 8, "ways": 2}, "mshrs": 1, "tcam": {"rows": 2}}
    content = {"name": "small", "topology": {"kind": "torus", "radices": [4, 4]}, "lookup": lookup}
    generate_part(parse_config(json.dumps(content)), "lookup", folder / "core")
    return folder


def fusesoc(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from fusesoc.main import main; main()", "--cores-root", "core", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("target", "file"), [("lint", "small_lookup.vlt"), ("synth", "small_lookup.sdc")])
def test_targets_are_set_up(package: Path, target: str, file: str) -> None:
    done = fusesoc(package, "run", "--setup", f"--target={target}", f"--build-root={target}", CORE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    (description,) = (package / target).rglob("*.eda.yml")
    assert file in description.read_text() and "small_lookup.sv" in description.read_text()


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="no Icarus")
def test_sim_runs(package: Path) -> None:
    done = fusesoc(package, "run", "--target=sim", "--build-root=sim", CORE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS" in done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="no Icarus")
@pytest.mark.parametrize("change", [
    ("32'h484f5001", "32'h484f5002"), ("rst = 0;", "rst = 0; force dut.req_ready = 1'bx;"),
])  # fmt: skip
def test_the_bench_can_fail(package: Path, tmp_path: Path, change: tuple[str, str]) -> None:
    text = (package / "core" / "small_lookup_tb.sv").read_text()
    assert change[0] in text
    (tmp_path / "tb.sv").write_text(text.replace(*change))
    design = str(package / "core" / "small_lookup.sv")
    subprocess.run(["iverilog", "-g2012", "-o", "tb", "tb.sv", design], cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run(["vvp", "tb"], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode != 0 and "FAIL" in done.stdout + done.stderr


def test_without_a_bus_outputs_are_looked_at() -> None:
    ports = [
        {"name": "clk", "direction": "input", "width_bits": 1},
        {"name": "y", "direction": "output", "width_bits": 3},
    ]
    assert "if (^{y} === 1'bx)" in smoke_bench("small", ports, None)
