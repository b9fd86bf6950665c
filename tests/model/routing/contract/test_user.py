"""How a user's Python file is run: what it may import, and how it may end."""

import os
import sys
from pathlib import Path

import pytest

from hopforge.model.config.load import parse_config
from hopforge.model.network.core.user_code import UserCodeError
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.routing.contract.user import load_user_file
from hopforge.model.topology.configured import network_topology


def test_modules_beside_the_file_are_found_and_those_of_another_folder_are_not_taken(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder / "deeper").mkdir(parents=True)
        (tmp_path / folder / "deeper" / "__init__.py").write_text("")
        (tmp_path / folder / "deeper" / "name.py").write_text(f"NAME = {folder!r}\n")
        (tmp_path / folder / "neighbour_of_mine.py").write_text("from deeper.name import NAME\n")
        (tmp_path / folder / "own.py").write_text("from neighbour_of_mine import NAME\n")
    for folder in ("one", "two", "one", "one"):
        assert load_user_file(tmp_path / folder / "own.py", "NAME", "routing.file") == folder


@pytest.mark.parametrize("line", ["import sys; sys.exit()", "raise SystemExit(3)", "exit(0)"])
def test_a_file_cannot_end_the_program(tmp_path: Path, line: str) -> None:
    path = tmp_path / "own.py"
    path.write_text(line)
    with pytest.raises(UserCodeError, match=r"^routing.file: .*own.py:1: cannot be run: it ends Python \(sys.exit\)$"):
        load_user_file(path, "prepare", "routing.file")


@pytest.mark.parametrize("rows", ["'x'", "3", "((10**30, 1),)", "((-5, 2),)"])
def test_rows_that_a_file_says_its_table_has_are_not_taken(tmp_path: Path, rows: str) -> None:
    """They are places in memory, which kernels would load ahead."""
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "from hopforge.model.routing import RoutingPlan, relation\n"
        "@relation\n"
        "def go(router, in_port, in_vc, packet, net, table, memory, out):\n"
        "    return 0\n"
        f"def prepare(topology, vcs, options):\n    return RoutingPlan(go, np.zeros(4, np.int32), rows={rows})\n"
    )
    config = parse_config(
        "name: x\ntopology: {kind: dragonfly, p: 2, a: 4, h: 2}\nrouter: {model: input_output_queued, vcs: 8}\n"
        f"routing: {{algorithm: file, file: {tmp_path / 'mine.py'}}}\ntraffic: {{source: interval}}\n"
    )
    assert routing_plan(config, network_topology(config)).rows == ()


def test_a_file_is_run_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change within the second in which Python would keep bytecode counts, and none is left in the user's folder."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    mine = tmp_path / "mine.py"
    (tmp_path / "beside.py").write_text("OFFSET = 10\n")
    for value in (1, 2):
        mine.write_text(f"from beside import OFFSET\nVALUE = {value} + OFFSET\n")
        os.utime(mine, (1e9, 1e9))
        assert load_user_file(mine, "VALUE", "routing.file") == value + 10
    assert sorted(one.name for one in tmp_path.iterdir()) == ["beside.py", "mine.py"]
    assert not sys.dont_write_bytecode
