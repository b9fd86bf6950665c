"""Faults in the lines of an engine: the campaign finds them, and fails where lines are not protected."""

import json
import shutil
from pathlib import Path

import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.sim.cosim.fault_campaign import FaultReport, cosim_faults
from hopforge.sim.cosim.lookup_variants import cosim_engines

TEXT = """
name: faults
topology: {{kind: torus, radices: [4, 4]}}
address: {{width_bits: 12, chunk_bits: 4}}
lookup:
  {{chunk_bits: [2, 4], comparators: 2, mshrs: 4, request_tag_bits: 5, pipeline_depth: {depth},
   cache: {{entries: 4, ways: 2, tag_bits: 16, output_bits: 8, epoch_bits: 2, protection: {protection}}}}}
cosim: {{simulator: icarus}}
"""
needs_icarus = pytest.mark.skipif(shutil.which("iverilog") is None, reason="no Icarus")


def configured(protection: str, depth: int = 2) -> Config:
    return parse_config(TEXT.format(protection=protection, depth=depth))


def test_without_protection_answers_go_wrong(tmp_path: Path) -> None:
    report = cosim_faults(configured("none"), 108, simulator="icarus", output=tmp_path)
    assert not report.passed
    assert report.fates["wrong"] >= 5 <= report.wrong_answers
    assert report.fates["detected"] == report.fates["corrected"] == 0
    assert json.loads((tmp_path / "faults.json").read_text())["fates"] == report.fates


@needs_icarus
@pytest.mark.parametrize(
    ("protection", "depth", "fate"),
    [
        pytest.param("parity", 2, "detected", marks=pytest.mark.study),
        pytest.param("secded", 3, "corrected", marks=pytest.mark.study),
        ("secded", 6, "corrected"),
    ],
)
def test_every_bit_that_is_read_is_found(protection: str, depth: int, fate: str, tmp_path: Path) -> None:
    """Every stored bit in turn; the Verilog does the same in every cycle."""
    report = cosim_faults(configured(protection, depth), 150, output=tmp_path)
    assert isinstance(report, FaultReport)
    assert report.passed and report.result is not None and report.result.cycles == report.cycles
    assert report.fates["wrong"] == report.fates["harmless"] == report.wrong_answers == 0
    assert report.fates[fate] > 120
    assert sum(report.fates.values()) == 150


def test_options_that_are_not_for_faults(tmp_path: Path) -> None:
    for name, given in (("waves", True), ("lookups", 5), ("variants", 2)):
        with pytest.raises(UserError, match=f"--{name} is not for --faults"):
            cosim_engines(configured("parity"), faults=3, output=tmp_path, **{name: given})
