"""Stragglers and noise in every engine that runs programs, and where they have no effect."""

import sys
from pathlib import Path

import pytest

from hopforge import cli
from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.sim.programs.application import run_app

BASE = """\
name: slow
topology: {kind: torus, radices: [4]}
timing: {link_gbps: 100}
workload: {kind: npb, benchmark: ep, class: S, ranks: 4%s}
app: {engine: %s, host_gflops: %s%s}
"""


def config_of(engine: str, computing: str = "", gflops: str = "1000", more: str = "") -> Config:
    return parse_config(BASE % (computing, engine, gflops, more), "slow.yml")


@pytest.mark.parametrize(
    ("engine", "more", "within"),
    [("flow", ", backend: embedded", 1e-9), ("packet", "", 1e-4), ("loggops", "", 1e-3)],
)
def test_all_stragglers_compute_twice_as_long_in_every_engine(engine: str, more: str, within: float) -> None:
    """EP does little but compute; `ranks` says for how long."""
    even = run_app(config_of(engine, more=more))
    slow = run_app(config_of(engine, ", computing: {stragglers: 4, slowdown: 2}", more=more))
    spent = slow.ranks["compute_s"] / even.ranks["compute_s"]
    assert (even.ranks["compute_s"] > 0).all()
    assert spent.tolist() == pytest.approx([2] * 4, rel=within)


def test_one_straggler_makes_the_others_wait() -> None:
    text = ", computing: {stragglers: 1, slowdown: 3}"
    even = run_app(config_of("flow", more=", backend: embedded"))
    slow = run_app(config_of("flow", text, more=", backend: embedded"))
    longer = slow.ranks["compute_s"] / even.ranks["compute_s"]
    assert sorted(longer.round(6)) == [1, 1, 1, 3]
    fast = longer < 2
    assert (slow.ranks["waiting_s"][fast] > even.ranks["waiting_s"][fast]).all()


def test_auto_does_not_mean_simgrid_which_is_refused() -> None:
    computing = ", computing: {noise: 0.1}"
    assert run_app(config_of("flow", computing)).found.backend == "embedded"
    with pytest.raises(UserError, match=r"^workload.computing: SimGrid replays what was recorded"):
        run_app(config_of("flow", computing, more=", backend: simgrid"))


@pytest.mark.parametrize("engine", ["flow", "packet", "loggops"])
def test_no_effect_is_refused(engine: str) -> None:
    text = (BASE % (", computing: {noise: 0.1}", engine, "1", "")).replace("host_gflops: 1", "")
    with pytest.raises(UserError, match=r"^workload.computing: has no effect, for computing takes no time without app"):
        run_app(parse_config(text, "slow.yml"))


def command(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, more: str = "") -> int | str | None:
    """Run a command on a file with noise in `folder`, and return its exit status."""
    file = folder / "slow.yml"
    file.write_text(BASE % (", computing: {noise: 0.1}", "flow", "1", "") + more)
    monkeypatch.setattr(sys, "argv", ["hopforge", name, str(file), "-o", str(folder / "out")])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return end.value.code


def test_net_of_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, tmp_path, "net", "traffic: {source: program}\n") == 2
    assert "workload.computing: has no effect, for computing takes no time without traffic" in capsys.readouterr().err


def test_hits_say_that_they_do_not_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, tmp_path, "hits") in (0, None)
    assert "workload.computing" in capsys.readouterr().err
