"""A netlist of cells plays a replay: outputs are compared, changes counted."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "gen" / "synth"))
from gate_library import LIBRARY

from hopforge.gen.synth.cells import Library
from hopforge.gen.synth.gate_energy import Bit, read_netlist
from hopforge.model.config import load_config
from hopforge.model.errors import UserError
from hopforge.sim.cosim.gate_report import measure_gates
from hopforge.sim.cosim.gate_run import run_gates
from hopforge.sim.drive.replay import Output, Replay

SMALL = Library("small", "", LIBRARY)

NETLIST = """
module top(clk, rst, a, old, both);
  input clk; input rst; input a; output old; output both;
  wire clk; wire rst; wire a; wire old; wire both; wire \\n.x ; wire [2:1] y;
  INV _1_ (.A(a), .Z(\\n.x ));
  INV _2_ (.A(\\n.x ), .Z(y[2]));
  DFF _3_ (.CK(clk), .D(y[2]), .Q(old));
  NOR2 _4_ (.A(\\n.x ), .B(y[1]), .Z(both));
  INV _5_ (.A(old), .Z(y[1]));
endmodule
"""
CYCLES = 40


def replay(rng: np.random.Generator) -> Replay:
    a = rng.integers(0, 2, CYCLES).astype(np.uint64)
    old = np.concatenate([np.zeros(1, np.uint64), a[:-1]])
    return Replay(
        inputs=("a",), outputs=(Output("old"), Output("both", "old")),
        driven=a[:, None], expected=np.stack([old, a & old], axis=1),
    )  # fmt: skip


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="no Icarus")
def test_outputs_are_compared_and_changes_counted(tmp_path: Path) -> None:
    played, begin = replay(np.random.default_rng(1)), 8
    (tmp_path / "netlist.v").write_text(NETLIST)
    (tmp_path / "memories.v").write_text("")
    cells = read_netlist(NETLIST, SMALL, "top")
    files = (tmp_path / "netlist.v", tmp_path / "memories.v", cells, "top")
    run = run_gates(*files, played, tmp_path, begin=begin)
    assert (run.mismatches, run.cycles) == (0, CYCLES - begin)
    a = played.driven[begin:, 0].astype(int)
    changed = int(np.abs(np.diff(a)).sum())
    activities = run.activities
    assert activities[Bit("clk", 0)].changes == pytest.approx(2.0, abs=0.1)
    assert activities[Bit("a", 0)].changes * run.cycles == changed
    assert activities[Bit("n.x", 0)].changes == activities[Bit("y", 2)].changes == activities[Bit("a", 0)].changes
    assert activities[Bit("a", 0)].high == pytest.approx(a.mean(), abs=0.03)
    assert activities[Bit("n.x", 0)].high == pytest.approx(1 - activities[Bit("a", 0)].high)
    wrong = played.expected.copy()
    wrong[20, 0] ^= np.uint64(1)
    gated = int(np.flatnonzero(played.expected[:, 0] == 0)[5])
    wrong[gated, 1] ^= np.uint64(1)  # means nothing there
    bad = Replay(played.inputs, played.outputs, played.driven, wrong)
    assert run_gates(*files, bad, tmp_path, begin=begin).mismatches == 1


@pytest.mark.parametrize(
    ("part", "period", "message"),
    [
        ("engine", 1.0, "--part must be one of lookup, router, not 'engine'"),
        ("router", 0.0, "--period-ns must be above 0 and finite, not 0"),
        ("router", 1.0, "router.route_computation must be table for energies of a router, not lookup"),
    ],
)
def test_what_cannot_be_measured_is_refused(part: str, period: float, message: str, tmp_path: Path) -> None:
    library = tmp_path / "small.lib"
    library.write_text(LIBRARY)
    config = load_config(Path(__file__).parents[3] / "configs" / "router_lookup.yml")
    with pytest.raises(UserError, match=message):
        measure_gates(config, part, library, folder=tmp_path / "out", period_ns=period)
