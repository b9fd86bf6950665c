"""`hopforge bench net --against`: two versions in turn, what they counted, and what is no version."""

from pathlib import Path

import pytest

from hopforge.model.errors import UserError
from hopforge.model.kernel.program_cache import program_root
from hopforge.sim.start.bench_net import grid_case
from hopforge.sim.start.bench_versions import Version, measure_versions, source_of

SMALL = grid_case("mesh", 4, 2, 1, 1000, 0)
HERE = program_root().parent

#: a "version" whose simulator takes no time and counts what it was told
FAKE = """
class Simulation:
    def __init__(self, config, load, seed, check):
        self.state = dict.fromkeys(["hops_sum", "flits_ejected", "latency_sum", "measured"], 0)
    def advance(self, cycles):
        total = sum(range(100 * cycles))
        for name in self.state:
            self.state[name] += {gain}
"""


def version(folder: Path, gain: int) -> Path:
    for name in ("hopforge", "hopforge/model", "hopforge/sim", "hopforge/sim/run"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").touch()
    (folder / "hopforge/model/config.py").write_text("parse_config = str\n")
    (folder / "hopforge/sim/run/simulation.py").write_text(FAKE.format(gain=gain))
    return folder


def test_this_version_against_itself() -> None:
    (row,) = measure_versions(HERE, HERE, 2, [SMALL])
    assert row["same_results"]
    assert row["ratio_lowest"] <= row["ratio"] <= row["ratio_highest"]
    assert row["ns_per_flit_hop"] > 0


def test_other_results_are_told(tmp_path: Path) -> None:
    one, other = version(tmp_path / "one", 7), version(tmp_path / "other", 8)
    (row,) = measure_versions(one, other, 3, [SMALL])
    assert not row["same_results"]
    (row,) = measure_versions(one, one, 3, [SMALL])
    assert row["same_results"]


def test_what_fails_is_one_clear_line(tmp_path: Path) -> None:
    folder = version(tmp_path, 1)
    (folder / "hopforge/sim/run/simulation.py").write_text("raise ImportError('no such simulator')\n")
    with pytest.raises(UserError, match=r"^--against: the version in .* failed: ImportError: no such simulator$"):
        Version(folder, SMALL)


def test_where_a_version_lies(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no version of hopforge \(neither src/hopforge nor hopforge\)$"):
        source_of(tmp_path)
    assert source_of(version(tmp_path / "src", 1).parent) == tmp_path / "src"
    assert source_of(tmp_path / "src") == tmp_path / "src"
