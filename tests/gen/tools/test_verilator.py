"""Verilator is a program in Perl: one without its modules, as in Debian's perl-base, is told as what it is."""

from pathlib import Path

import pytest

from hopforge.gen.tools.verilator import MissingVerilatorError, perl_version, run_verilator
from hopforge.sim.drive.runner import SimulatorError, check_simulator
from hopforge.sim.start.doctor import survey

WORDS = "verilator needs perl with its modules (Pod::Usage): apt-get install perl"


@pytest.mark.parametrize("program", ["#!/bin/sh\necho \"Can't locate Pod/Usage.pm\" >&2; exit 2\n", None])
def test_perl_without_its_modules(program: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if program is not None:
        (tmp_path / "perl").write_text(program)
        (tmp_path / "perl").chmod(0o755)
    for command in ("g++", "make"):
        (tmp_path / command).write_text("#!/bin/sh\n")
        (tmp_path / command).chmod(0o755)
    perl_version.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    try:
        with pytest.raises(MissingVerilatorError) as lint:
            run_verilator(["--version"], tmp_path)
        with pytest.raises(SimulatorError) as cosim:
            check_simulator("verilator", cocotb=False)
        assert [str(lint.value), str(cosim.value)] == [WORDS, WORDS]
        found = {one.name: one for one in survey()}["perl"]
        assert (found.found, found.remedy) == (None, "apt-get install perl")
    finally:
        perl_version.cache_clear()
