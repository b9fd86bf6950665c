"""The demo from end to end, small, and what it does when something is wrong."""

import dataclasses
import html
import json
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from hopforge import cli
from hopforge.gen.synth.result import SynthResult
from hopforge.model.config import Config, ConfigError, load_config, parse_config
from hopforge.sim.drive.replay import Mismatch, ReplayResult
from hopforge.sim.pages import find_results, result_page
from hopforge.sim.pages.report import render
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.start import demo as demo_module
from hopforge.sim.start import demo_network
from hopforge.sim.start.checks import check_for
from hopforge.sim.start.demo import Demo, demo_config, run_demo
from hopforge.sim.start.demo_network import network_config, network_section, run_network
from hopforge.sim.start.preparation import for_command

ROOT = Path(__file__).parents[3]
SMALL = """\
name: small
topology: {kind: torus, radices: [3, 3]}
lookup:
  cache: {entries: 8, ways: 2}
  mshrs: 2
  comparators: 2
  functions: [arbitrary, torus]
  chunk_bits: [4]
  tcam: {kind: external}
workload: {kind: all_to_all, order: cyclic, rounds: 3}
traffic: {packet_flits: 4}
simulation: {loads: [0.05, 0.5]}
cosim: {lookups: 100}
"""


class Steps:
    def __init__(self) -> None:
        self.begun: list[str] = []

    def begin(self, step: str) -> None:
        self.begun.append(step)

    def advance(self, done: int, total: int) -> None:
        assert 0 <= done <= total


@pytest.fixture(scope="module")
def small() -> Config:
    return parse_config(SMALL)


@pytest.fixture(scope="module")
def done(small: Config, tmp_path_factory: pytest.TempPathFactory) -> tuple[Demo, Steps, Path]:
    steps, folder = Steps(), tmp_path_factory.mktemp("demo") / "two words"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_network, "RTL_CYCLES", 40)
        return run_demo(small, folder, command="hopforge demo small.yml", progress=steps), steps, folder


def test_shipped_configuration_is_the_one_of_the_issue() -> None:
    config = demo_config()
    assert config == load_config(ROOT / "configs" / "demo.yml")
    assert config.topology.kind == "torus"
    assert config.topology.radices == (4, 4, 4)
    assert (config.lookup.cache.entries, config.lookup.cache.ways) == (2048, 4)
    assert config.workload is not None
    assert config.workload.kind == "trace"
    assert config.workload.file == "shipped:is.A.64"


def test_everything_is_done_for_both_kinds_of_keys(done: tuple[Demo, Steps, Path]) -> None:
    found, steps, folder = done
    assert found.problems == ()
    assert [variant.label for variant in found.variants] == ["node reduction", "whole address"]
    for variant in found.variants:
        assert variant.lint is not None
        assert variant.lint.findings == ()
        assert variant.cosim is not None
        assert variant.cosim.result.cycles > 100
        assert variant.cosim.totals["lookups"] == 100
        for step in ("hit rates", "Verilog", "lint", "co-simulation"):
            assert f"{step}, {variant.label}" in steps.begun
    assert steps.begun[-3:] == ["network, cycle by cycle", "co-simulation, network", "report"]
    assert set(steps.begun) == set(found.seconds)
    assert sorted(path.name for path in folder.iterdir()) == [
        "metadata.json", "network", "node_reduction", "page.json", "report.html", "rtl_network", "whole_address",
    ]  # fmt: skip


def test_variants_are_configurations_that_can_be_used_again(done: tuple[Demo, Steps, Path], small: Config) -> None:
    _, _, folder = done
    assert load_config(folder / "node_reduction" / "config.json", hardware=True) == small
    other = load_config(folder / "whole_address" / "config.json", hardware=True)
    assert other.name == "small_whole_address"
    assert not other.lookup.reduction
    assert other.model_dump(exclude={"name", "lookup"}) == small.model_dump(exclude={"name", "lookup"})


def test_page_says_what_the_tables_say(done: tuple[Demo, Steps, Path]) -> None:
    _, _, folder = done
    page = (folder / "report.html").read_text(encoding="utf-8")
    rates = []
    for stem in ("node_reduction", "whole_address"):
        ports = pd.read_csv(folder / stem / "hits" / "ports.csv")
        rates.append(f"{100 * ports['hits'].sum() / ports['lookups'].sum():.3f} %")
    assert f"the routing caches answer {rates[0]} (node reduction) and {rates[1]} (whole address)" in page
    assert "hopforge demo small.yml" in page
    assert str(ROOT) not in page


def test_hopforge_report_makes_the_same_page(done: tuple[Demo, Steps, Path]) -> None:
    _, _, folder = done
    page = render(result_page(find_results(folder), "hopforge report"))
    assert page == (folder / "report.html").read_text(encoding="utf-8")


def test_cache_carries_what_tables_carry_and_no_cache_less(done: tuple[Demo, Steps, Path]) -> None:
    found, _, folder = done
    curve = found.network.curve.set_index(["variant", "load"])
    assert list(curve.index) == [(way, load) for way in ("cache", "no_cache", "table") for load in (0.05, 0.5)]
    assert curve.loc[("cache", 0.05), "accepted"] == pytest.approx(0.05, rel=0.1)  # nothing is lost below saturation
    # each of the routers on the way waits for the TCAM at least `latency_cycles` longer
    waiting = curve.loc[("no_cache", 0.05), "hops"] * small_tcam_cycles(folder)
    assert curve.loc[("no_cache", 0.05), "latency"] > curve.loc[("table", 0.05), "latency"] + 0.9 * waiting
    assert curve.loc[("no_cache", 0.5), "latency"] > curve.loc[("cache", 0.5), "latency"]
    assert curve.loc[("cache", 0.5), "accepted"] == pytest.approx(curve.loc[("table", 0.5), "accepted"], rel=0.05)
    assert (curve.loc["no_cache"]["hit_rate"] == 0).all()
    assert (curve.loc["cache"]["hit_rate"] > 0.9).all()
    rows = dict(found.network.rows())
    assert list(rows) == [f"cycle simulator, {way}" for way in ("routing cache", "no cache", "tables")]
    page = html.unescape(found.page.read_text(encoding="utf-8"))
    assert f"hopforge sweep '{folder / 'network' / 'config.json'}'" in page
    for command in ("hits", "gen lookup", "cosim"):
        assert f"hopforge {command} '{folder / 'node_reduction' / 'config.json'}'" in page


def small_tcam_cycles(folder: Path) -> int:
    return load_config(folder / "network" / "config.json").lookup.tcam.latency_cycles


def test_sweep_of_the_page_is_the_one_that_ran(done: tuple[Demo, Steps, Path]) -> None:
    found, _, folder = done
    config = load_config(folder / "network" / "config.json")
    assert list(config.variants) == ["cache", "no_cache", "table"]
    job = config.variants["table"]
    again = Simulation(job, 0.05, job.seed).run()
    curve = found.network.curve.set_index(["variant", "load"])
    assert again.latency == curve.loc[("table", 0.05), "latency"]


def test_network_in_rtl_is_compared_with_the_simulator(done: tuple[Demo, Steps, Path]) -> None:
    found, _, folder = done
    assert found.rtl is not None
    report = found.rtl.report
    assert report.passed
    assert (report.routers, report.hosts) == (4, 4)
    assert report.flits > 30
    assert found.rtl.rows() == [(
        "RTL network of 4 routers",
        f"{report.flits} flits of {report.packets} packets compared with the simulator in {report.result.cycles}"
        " cycles, 0 mismatches",
    )]  # fmt: skip
    assert load_config(folder / "rtl_network" / "config.json").topology.radices == (2, 2)  # type: ignore[union-attr]
    command = f"hopforge cosim '{folder / 'rtl_network' / 'config.json'}' --part network"
    assert command in html.unescape(found.page.read_text("utf-8"))


def test_network_that_the_simulator_refuses_is_left_out(tmp_path: Path) -> None:
    config = parse_config(SMALL.replace("radices: [3, 3]}", "radices: [3, 3]}\nrouting: {algorithm: nca}"))
    found = run_network(config, tmp_path / "network", lambda *_: None)
    assert found.refused
    assert found.rows() == [("cycle simulator", f"left out: {found.refused}")]
    assert network_section(found, config, tmp_path).text == f"Left out: {found.refused}."


def test_routes_of_the_network_fit_its_keys() -> None:
    for topology, algorithm in (
        ("{kind: torus, radices: [4, 4]}", "dor"),
        ("{kind: fat_tree, k: 2, n: 2}", "d_mod_k"),
    ):
        config = parse_config(
            SMALL.replace("{kind: torus, radices: [3, 3]}", topology)
            .replace("torus]", "torus, fat_tree]")
            .replace("comparators: 2", "comparators: 3")
        )
        built = network_config(config)
        assert built.routing.algorithm == algorithm
        Simulation(built, 0.1, 1)  # proves that keys and routes fit, and freedom from deadlock


#: good for the kind of keys that the file asks for, not for the other one
ONE_KIND = {
    "reduction: true": ("comparators: 1", "lookup.comparators: must be at least the 2 digits that decide, not 1"),
    "reduction: false": ("functions: [arbitrary]", "lookup.functions: must contain topology.kind='torus'"),
}


@pytest.mark.parametrize("name", ONE_KIND)
def test_both_kinds_of_keys_are_looked_at_before_the_first_is_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_module, "run_hits", lambda *_: pytest.fail("it ran"))
    change, reason = ONE_KIND[name]
    key = change.partition(":")[0]
    text = re.sub(rf"  {key}: .*", f"  {change}", SMALL).replace("lookup:\n", f"lookup:\n  {name}\n")
    config = for_command("demo", parse_config(text, keys=False)) if name.endswith("false") else None
    for use in (lambda: check_for("demo", parse_config(text, keys=False)), lambda: run(text, tmp_path)):
        with pytest.raises(ConfigError) as caught:
            use()
        said = str(caught.value)
        assert reason in said
        assert ("(the demo makes keys with lookup.reduction: true, too)" in said) == (config is not None)
    assert list(tmp_path.iterdir()) == []


def run(text: str, folder: Path) -> Demo:
    return run_demo(parse_config(text, hardware=True), folder / "out", command="x", cosim=False)


def test_without_a_simulator(small: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_module, "check_simulator", lambda *_, **__: pytest.fail("looked for a simulator"))
    found = run_demo(small, tmp_path, command="x", cosim=False)
    assert found.problems == ()
    assert not list(tmp_path.rglob("cosim"))
    assert (
        "cycles compared" not in found.page.read_text(encoding="utf-8").split("<footer>")[0].split("Hardware</h2>")[1]
    )


def test_a_difference_is_told(
    done: tuple[Demo, Steps, Path], small: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = done[0].variants[0].cosim
    assert good is not None
    wrong = ReplayResult(good.result.cycles, 3, Mismatch(17, "resp_output", 4, 5))
    monkeypatch.setattr(demo_module, "run_cosim", lambda *_, **__: dataclasses.replace(good, result=wrong))
    rtl = done[0].rtl
    assert rtl is not None
    bad = dataclasses.replace(rtl, report=dataclasses.replace(rtl.report, result=wrong))
    monkeypatch.setattr(demo_module, "run_rtl", lambda *_, **__: bad)
    found = run_demo(small, tmp_path, command="x")
    assert found.problems == (
        "co-simulation of node reduction: cycle 17: resp_output is 0x5, expected 0x4",
        "co-simulation of whole address: cycle 17: resp_output is 0x5, expected 0x4",
        "co-simulation of the network mesh2x2: cycle 17: resp_output is 0x5, expected 0x4",
    )
    assert "in all but 6 of" in found.page.read_text(encoding="utf-8")
    assert json.loads((tmp_path / "metadata.json").read_text())["problems"] == list(found.problems)


def command(
    *arguments: str, path: str | None = None, largest_file: int | None = None
) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        if largest_file is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

    return subprocess.run(
        [sys.executable, "-m", "hopforge", "demo", *arguments],
        capture_output=True, text=True, timeout=300, check=False, preexec_fn=limit,
        env=None if path is None else {"PATH": path},
    )  # fmt: skip


def test_missing_simulator_is_told_before_anything_is_done(tmp_path: Path) -> None:
    run = command("-o", str(tmp_path / "out"), path=str(tmp_path))
    assert run.returncode == 2
    assert run.stderr == "hopforge: icarus needs iverilog, which is missing: apt-get install iverilog\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.study
def test_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    config = tmp_path / "small.yml"
    config.write_text(SMALL)
    run = command(str(config), "--skip-cosim", "-o", str(tmp_path / "out"), largest_file=1 << 20)  # the page is larger
    assert run.returncode == 2
    assert run.stderr.splitlines()[-1] == f"hopforge: {tmp_path / 'out'}: cannot write results: File too large"
    assert "Traceback" not in run.stderr
    assert not (tmp_path / "out").exists()


def test_mistakes_are_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HOPFORGE_TRACEBACK", raising=False)
    config = tmp_path / "x.yml"
    for text, expected in (
        (SMALL.replace("ways: 2", "ways: 3"), f"hopforge: {config}:4: lookup.cache.ways: must divide entries=8, not 3"),
        (SMALL.replace("workload:", "#"), f"hopforge: {config}:1: workload: missing; `hopforge hits`"),
        (SMALL.replace("all_to_all, order: cyclic, rounds: 3", "trace, file: none"), "none"),
    ):
        config.write_text(text)
        monkeypatch.setattr(sys, "argv", ["hopforge", "demo", str(config), "-o", str(tmp_path / "out")])
        with pytest.raises(SystemExit) as left:
            cli.main()
        assert left.value.code == 2
        told = capsys.readouterr().err
        assert expected in told.splitlines()[-1]
        assert "Traceback" not in told
        assert not (tmp_path / "out").exists()


def test_areas_with_a_cell_library(small: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, list[str]]] = []

    def synthesize(config: Config, liberty: Path, *, names: list[str], **_: object) -> list[list[SynthResult]]:
        assert liberty == Path("cells.lib")
        asked.append((config.name, list(names)))
        return [[SynthResult(block=name, recipe="r", area_um2=1234.5, delay_ns=0.25, cells=77)] for name in names]

    monkeypatch.setattr(demo_module, "synthesize_config", synthesize)
    found = run_demo(small, tmp_path, command="x", cosim=False, liberty=Path("cells.lib"))
    assert asked == [
        ("small", ["reduction", "crc_index", "tag_select", "engine"]),
        ("small_whole_address", ["crc_index", "tag_select", "engine"]),
    ]
    rows = re.findall(r"<td>(node reduction|whole address)</td><td>(\w+)</td>.*>77</td>", found.page.read_text("utf-8"))
    labels = ("node reduction", "whole address")
    assert rows == [(label, name) for label, (_, names) in zip(labels, asked, strict=True) for name in names]
