"""The digest of the program sees every shipped file that decides a result."""

from pathlib import Path

import hopforge
from hopforge.model.output.program_digest import program_files

ROOT = Path(hopforge.__file__).parent
#: what pages look like
LOOKS = ("sim/pages/templates",)


def test_every_file_that_decides_results_is_in_the_digest() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in program_files()}
    shipped = {
        path.relative_to(ROOT).as_posix()
        for layer in ("model", "hw", "gen", "sim")
        for path in (ROOT / layer).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert len(shipped) > 900
    assert sorted(name for name in shipped - found if not name.startswith(LOOKS)) == []
    assert {"sim/cosim/mutation_race.cpp", "model/apps/language_models.csv"} <= found
