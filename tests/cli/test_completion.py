"""Tab in bash, zsh and fish: commands, options, kinds and keys, in the shells that are here."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: typed words, and some of what Tab offers for the last one
TYPED = {
    "hopforge swe": {"sweep"},
    "hopforge init to": {"torus"},
    "hopforge explain router.vc": {"router.vcs", "router.vc_release"},
    "hopforge net --lo": {"--load"},
}


@pytest.fixture
def program(tmp_path: Path) -> dict[str, str]:
    """An environment in which `hopforge` is this one, with a home of its own."""
    path = tmp_path / "bin" / "hopforge"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -m hopforge "$@"\n')
    path.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    return os.environ | {
        "PATH": f"{path.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "PYTHONPATH": str(ROOT / "src"),
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }  # fmt: skip


def output(words: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def script(shell: str, environment: dict[str, str]) -> str:
    return output(["hopforge", "--show-completion", shell], environment)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("typed", TYPED)
def test_bash(program: dict[str, str], typed: str) -> None:
    words = typed.split()
    lines = [
        script("bash", program), f"COMP_WORDS=({typed}) COMP_CWORD={len(words) - 1}",
        '_hopforge_completion hopforge; printf "%s\\n" "${COMPREPLY[@]}"',
    ]  # fmt: skip
    offered = output(["bash", "-c", "\n".join(lines)], program).split()
    assert TYPED[typed] <= set(offered), offered
    assert all(each.startswith(words[-1]) for each in offered)


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
@pytest.mark.parametrize("typed", TYPED)
def test_fish(program: dict[str, str], typed: str) -> None:
    code = f"{script('fish', program)}\ncomplete -C '{typed}'"
    offered = {line.partition("\t")[0] for line in output(["fish", "--no-config", "-c", code], program).splitlines()}
    assert TYPED[typed] <= offered


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
@pytest.mark.parametrize("typed", TYPED)
def test_zsh(program: dict[str, str], typed: str) -> None:
    # what the function of the script evaluates; _arguments itself works in the line editor only
    code = "\n".join([
        "compdef() { : }", "_arguments() { print -r -- \"$@\" }", "_files() { : }", script("zsh", program),
        f"words=({typed}); CURRENT={len(typed.split())}; _hopforge_completion",
    ])  # fmt: skip
    offered = output(["zsh", "-f", "-c", code], program)
    assert all(each.replace(":", "\\:") in offered for each in TYPED[typed]), offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_it_is_installed_for_a_shell(program: dict[str, str], shell: str) -> None:
    told = output(["hopforge", "--install-completion", shell], program)
    assert f"{shell} completion installed" in told
    written = [path for path in Path(program["HOME"]).rglob("*") if path.is_file()]
    assert any("_HOPFORGE_COMPLETE" in path.read_text() for path in written)
