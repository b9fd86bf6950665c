"""Words of the command line that no command can mean: one line, status 2, and nothing is written."""

import subprocess
import sys
from pathlib import Path

import pytest

NET = "name: x\ntopology: {kind: mesh, radices: [2, 2]}\nsimulation: {load: 0.1, warmup_cycles: 10, max_cycles: 100}\n"


@pytest.mark.parametrize(
    "words, told",
    [
        (["net", "x.yml", "-o", ""], "an empty word after -o;"),
        (["net", "x.yml", "--output="], "an empty word after --output=;"),
        (["net", "x.yml", "--output", ""], "an empty word after --output;"),
        (["net", ""], "an empty word after net;"),
        (["init", "torus", "-o", ""], "an empty word after -o;"),
        ([""], "an empty word after hopforge;"),
        (["app", "", "--", ""], "an empty word after app;"),
        (["app", "missing.yml", "--", "--size=", ""], "missing.yml: cannot read the configuration"),  # of a program
        (["net", "x.yml", "--load", "2"], "'--load': Input should be less than or equal to 1, not 2"),
        (["net", "x.yml", "--load", "much"], "not much"),
        (["net", "x.yml", "--seed", "1.5"], "not 1.5"),
    ],
)
def test_words_that_cannot_be(tmp_path: Path, words: list[str], told: str) -> None:
    (tmp_path / "x.yml").write_text(NET)
    done = subprocess.run(
        [sys.executable, "-m", "hopforge", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x.yml"]
