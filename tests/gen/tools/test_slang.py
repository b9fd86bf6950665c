"""What slang says, and what is said without it."""

import pytest
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.gen.tools import slang
from hopforge.gen.tools.slang import slang_findings
from hopforge.gen.verilog import lint
from hopforge.model.errors import UserError

TWO_WRITERS = """module m(input clk, input [1:0] a, output reg y);
  reg words [0:3];
  initial words[0] = 0;
  {always} @(posedge clk) begin words[a] <= 1; y <= words[a]; end
endmodule
"""


def test_an_array_of_always_ff_has_one_writer() -> None:
    found = slang_findings(TWO_WRITERS.format(always="always_ff"), "m")
    assert [line.split(": ")[:2] for line in found] == [["slang error", "line 4"]]
    assert "cannot be written to by any other process" in found[0]
    assert slang_findings(TWO_WRITERS.format(always="always"), "m") == ()


def test_what_cannot_be_read() -> None:
    assert any("expected" in line for line in slang_findings("module m(input a); foo", "m"))
    assert "not a valid top-level module" in "".join(slang_findings("module m(input a); endmodule", "n"))


def test_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slang.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"^slang is missing: pip install 'pyslang"):
        slang_findings("", "m")


def test_lint_without_slang_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(lint, "missing_slang", lambda: "pip install 'pyslang'")
    path = tmp_path / "x.yml"
    path.write_text("name: x\ntopology: {kind: mesh, radices: [2, 2]}\nrouter: {vcs: 1, buffer_flits: 2}\n")
    run = CliRunner().invoke(app, ["lint", str(path), "--what", "router"])
    assert run.exit_code == 0, run.output
    assert "x_router0: not checked with slang, which is missing: pip install 'pyslang'" in run.stderr
