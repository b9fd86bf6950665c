"""What is in the repository: nothing that a run has left."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOP = {
    ".ci", ".containerignore", ".gitignore", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "Containerfile",
    "LICENSE", "Makefile", "README.md", "configs", "docs", "gen", "hw", "mkdocs.yml", "model", "pyproject.toml",
    "requirements.lock", "sim", "src", "tests",
}  # fmt: skip
#: machine code, waves, logs and results
LEFT = {".nbi", ".nbc", ".pyc", ".fst", ".vcd", ".vvp", ".log", ".out", ".parquet", ".whl", ".so", ".o"}


def test_nothing_that_a_run_left_is_kept() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [Path(name) for name in listed.split("\0") if name]
    assert {file.parts[0] for file in files} == TOP
    assert [file for file in files if file.suffix in LEFT] == []
