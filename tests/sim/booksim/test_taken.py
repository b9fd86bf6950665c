"""`hopforge import booksim`: what it takes is a network that can run, and what cannot run is refused with its line."""

from pathlib import Path

import pytest

from hopforge.model.config import load_config
from hopforge.sim.booksim.grammar import BooksimError
from hopforge.sim.booksim.translate import translate
from hopforge.sim.run.simulation import Simulation

NETWORKS = (
    "topology = mesh; k = 3; n = 2; routing_function = dor;", "topology = mesh; k = 4; n = 2; routing_function = dor;",
    "topology = torus; k = 5; n = 1; routing_function = dim_order;", "topology = mesh; k = 8; n = 2; "
    "routing_function = dor;", "topology = fattree; k = 3; n = 2; routing_function = nca;",
)  # fmt: skip
PATTERNS = (
    "uniform", "bitcomp", "transpose", "bitrev", "shuffle", "diagonal", "asymmetric", "taper64", "tornado", "neighbor",
    "bad_dragon", "badperm_yarc", "randperm", "hotspot({{1,2}})", "background({{1}})",
)


@pytest.mark.parametrize("network", NETWORKS)
def test_every_pattern_is_refused_or_runs(tmp_path: Path, network: str) -> None:
    taken = 0
    for pattern in PATTERNS:
        (tmp_path / "case.cfg").write_text(f"{network}\nnum_vcs = 2;\ntraffic = {pattern};\n")
        try:
            found = translate([str(tmp_path / "case.cfg")])
        except BooksimError as error:
            assert str(error).startswith(f"{tmp_path / 'case.cfg'}:3: traffic = {pattern}: "), error
            continue
        found.write(tmp_path / f"{taken}.yml")
        Simulation(load_config(tmp_path / f"{taken}.yml", keys=False), 0.1, 1)
        taken += 1
    assert taken >= 7
