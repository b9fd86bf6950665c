"""Sweeps: every load and seed once, resumed after a stop, the same on one process and on two; the commands."""

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from hopforge import cli
from hopforge.model.config import Config, ConfigError, parse_config
from hopforge.model.network.kernel import PLAIN_KERNEL
from hopforge.sim.packet.sweep import PACKET_SWEEP
from hopforge.sim.run import flit_sweep, kept_results
from hopforge.sim.run.flit_sweep import FLIT_SWEEP, FlitSweep, plot_curve, plot_variants, summarise
from hopforge.sim.run.kept_results import SweepError
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.run.sweep import Job
from hopforge.sim.traffic import TrafficError

TEXT = """
name: small
topology: {kind: mesh, radices: [3, 3]}
simulation: {loads: [0.1, 0.3], seeds: 2, min_cycles: 1000, max_cycles: 2000, warmup_cycles: 500}
"""


VARIANTS = """
name: several
topology: {kind: mesh, radices: [3, 3]}
simulation:
  loads: [0.1, 0.3]
  min_cycles: 1000
  max_cycles: 2000
  warmup_cycles: 500
  variants:
    dor: {}
    adaptive:
      routing.algorithm: star_channel
      router.vcs: 3
      router.vc_release: credits
    ring:
      topology: {kind: torus, radices: [9]}
      simulation.loads: [0.2]
"""


def small() -> Config:
    return parse_config(TEXT)


def silent(done: int, total: int) -> None:
    pass


def run_key(config: Config, load: float, seed: int) -> str:
    return FLIT_SWEEP.wanted([Job(config, load, seed)])[0].key


def test_runs_without_packets_are_in_no_mean() -> None:
    checked = parse_config(TEXT.replace("warmup_cycles: 500", "warmup_cycles: 0"))
    found = [Simulation(checked, load, seed).run().row() for load, seed in ((0.0, 1), (0.1, 2), (0.0, 3))]
    runs = pd.DataFrame(found).assign(variant="", load=[0.1, 0.1, 0.0])
    curve = summarise(runs).set_index("load")
    assert curve.loc[0.1, "latency"] == found[1]["latency"]
    assert curve.loc[0.1, "hops"] == found[1]["hops"]
    assert curve.loc[0.0, ["latency", "latency_p99", "hops"]].isna().all()
    assert FLIT_SWEEP.table(checked, runs)[1][1:3] == ["–", "–"]


def without_times(runs: pd.DataFrame) -> pd.DataFrame:
    return runs.drop(columns="cpu_seconds")


def test_a_load_that_stands_twice_is_refused() -> None:
    """Its runs would be the same bits twice, and count as those of as many seeds more."""
    for loads, key in (("[0.1, 0.3, 0.1]", "simulation.loads[2]"), ("[0.2, 0.20]", "simulation.loads[1]")):
        with pytest.raises(ConfigError, match=rf"{re.escape(key)}: must differ from those before, not 0\.[12] again"):
            parse_config(TEXT.replace("[0.1, 0.3]", loads))
    again = VARIANTS.replace("loads: [0.1, 0.3]", "loads: [0.1]")
    with pytest.raises(ConfigError, match=r"simulation.loads\[1\]: must differ"):
        parse_config(again.replace("  variants:\n", "  variants:\n    twice: {simulation.loads: [0.4, 0.4]}\n"))


def test_a_load_that_cannot_be_offered_is_told_before_any_run(tmp_path: Path) -> None:
    bursts = f"{TEXT}traffic: {{source: on_off, burst_load: 0.3}}\n"
    with pytest.raises(TrafficError, match=r"traffic.burst_load must be above the load 0.3, not 0.3"):
        FLIT_SWEEP.run(parse_config(bursts), tmp_path, lambda done, total: None, workers=1)
    assert not list(tmp_path.rglob("*.json"))


def test_a_stopped_sweep_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FLIT_SWEEP.run(small(), tmp_path / "whole", silent, workers=1)
    assert list(zip(whole["load"], whole["seed"], strict=True)) == [(0.1, 1), (0.1, 2), (0.3, 1), (0.3, 2)]
    calls = []
    real = FlitSweep.run_one

    def stop_after_two(sweep: FlitSweep, job: Job) -> dict[str, object]:
        calls.append(job[1:3])
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(sweep, job)

    monkeypatch.setattr(FlitSweep, "run_one", stop_after_two)
    seen = []
    with pytest.raises(KeyboardInterrupt):
        FLIT_SWEEP.run(small(), tmp_path / "stopped", lambda *counts: seen.append(counts), workers=1)
    assert seen == [(0, 4), (1, 4), (2, 4)]
    resumed = FLIT_SWEEP.run(small(), tmp_path / "stopped", silent, workers=1)
    assert calls == [(0.1, 1), (0.1, 2), (0.3, 1), (0.3, 1), (0.3, 2)]
    pd.testing.assert_frame_equal(without_times(resumed), without_times(whole))


def test_processes_do_not_change_results(tmp_path: Path) -> None:
    one, two = (FLIT_SWEEP.run(small(), tmp_path / str(n), silent, workers=n) for n in (1, 2))
    pd.testing.assert_frame_equal(without_times(one), without_times(two))


@pytest.mark.study
def test_agents_learn_the_same_in_any_number_of_processes(tmp_path: Path) -> None:
    config = parse_config(
        "name: test\ntopology: {kind: torus, radices: [4, 4]}\nrouter: {vcs: 3, buffer_flits: 20, switching: vct}\n"
        "routing: {algorithm: dqn, dqn: {first: 6, second: 5, head: 4, batch: 4, learning_starts: 20}}\n"
        "traffic: {include_self: false, packet_flits: 4, acknowledge: {}}\n"
        "simulation: {loads: [0.2, 0.4], warmup_cycles: 500, min_cycles: 1000, max_cycles: 1000}\n"
    )
    one, two = (FLIT_SWEEP.run(config, tmp_path / str(n), silent, workers=n) for n in (1, 2))
    pd.testing.assert_frame_equal(without_times(one), without_times(two))
    assert one["packets"].min() > 50


def test_the_kernel_is_compiled_once_before_the_processes_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(vars(PLAIN_KERNEL), "compiled", raising=False)
    FLIT_SWEEP.prepare(FLIT_SWEEP.jobs(small()))
    assert "compiled" in vars(PLAIN_KERNEL)


def test_the_key_names_all_that_decides_the_result(tmp_path: Path) -> None:
    key = run_key(small(), 0.1, 1)
    assert run_key(small(), 0.1, 1) == key
    other = [run_key(small(), 0.2, 1), run_key(small(), 0.1, 2)]
    for lines in ("router: {vcs: 2}", "traffic: {packet_flits: 2}", "routing: {algorithm: up_down}"):
        other.append(run_key(parse_config(TEXT + lines), 0.1, 1))
    # a user's file counts by its contents
    for text in ("a = 1", "a = 2"):
        (tmp_path / "mine.py").write_text(text)
        lines = "routing: {algorithm: file, file: mine.py}"
        other.append(run_key(parse_config(TEXT + lines, folder=tmp_path), 0.1, 1))
    # and so does a network's
    for text in ("0 1\n", "0 1\n1 2\n"):
        (tmp_path / "net.txt").write_text(text)
        lines = "name: x\ntopology: {kind: edge_list, file: net.txt}\n"
        other.append(run_key(parse_config(lines, folder=tmp_path), 0.1, 1))
    assert len({key, *other}) == len(other) + 1
    # more loads, seeds or variants leave finished runs valid
    tables = TEXT + "routing: {algorithm: tables}\n"
    other += [
        run_key(parse_config(tables + lines), 0.1, 1)
        for lines in ("", "tables: {ties: balanced}", "tables: {layers: lash}", "seed: 5", "failed: {switches: [2]}")
    ]
    assert len({key, *other}) == 1 + len(other)
    assert run_key(parse_config(TEXT.replace("seeds: 2", "seeds: 5, variants: {a: {router.vcs: 2}}")), 0.1, 1) == key


TIERS = "{kind: tiers, tiers: [{shape: all_to_all, sizes: [2]}, {shape: ring, sizes: [4], gbps: 50, latency_ns: 400}]}"
#: networks that read sections of their own: topology, other sections
READS = {
    "plain": ("{kind: mesh, radices: [3, 3]}", ""),
    "tiers": (TIERS, "routing: {algorithm: shortest}\nrouter: {vcs: 8}"),
    "tables": ("{kind: torus, radices: [3, 3]}", "routing: {algorithm: tables}\nrouter: {vcs: 8}"),
    "lookups": ("{kind: mesh, radices: [3, 3]}", "router: {route_computation: lookup}"),
    "members": ("{kind: mesh, radices: [3, 3]}", "router: {route_computation: lookup}\n"
                "lookup: {lag: {members: 2, max_members: 2}}"),
    "slow links": ("{kind: mesh, radices: [3, 3]}", "degraded: {random_links: 2}\nfailed: {}"),
    "failures": ("{kind: mesh, radices: [3, 3]}", "routing: {algorithm: shortest}\nrouter: {vcs: 8}\n"
                 "simulation: {max_cycles: 2000, min_cycles: 1000, failures: [{cycle: 9, links: [[0, 1]]}]}"),
    "queues": ("{kind: dragonfly, p: 1, a: 2, h: 1}", "routing: {algorithm: q_adaptive}\n"
               "router: {model: input_output_queued, vcs: 5}\ntraffic: {source: interval}"),
    "packets": ("{kind: torus, radices: [4, 4]}", "routing: {algorithm: por}\nrouter: {model: packet}\n"
                "packet: {messages: 2}\ntraffic: {message_packets: 2}"),
}


@pytest.mark.parametrize(("topology", "rest"), READS.values(), ids=READS)
def test_sections_that_a_run_reads_decide_its_key(
    monkeypatch: pytest.MonkeyPatch, topology: str, rest: str
) -> None:
    """A kept run is used again only if nothing that it reads has changed: also not the times of section `timing`."""
    runs = "" if "simulation" in rest else "\nsimulation: {min_cycles: 1000, max_cycles: 1000, warmup_cycles: 200}"
    config = parse_config(f"name: x\ntopology: {topology}\n{rest}{runs}\n")
    sweep = PACKET_SWEEP if config.router.model == "packet" else FLIT_SWEEP
    unused, read = sweep.unused(config), set()
    plain = Config.__getattribute__

    def noted(self: Config, name: str) -> object:
        read.add(name)
        return plain(self, name)

    monkeypatch.setattr(Config, "__getattribute__", noted)
    sweep.run_one(sweep.jobs(config)[0])
    assert {"topology", "traffic"} <= read
    assert unused and not unused & read


@pytest.mark.parametrize("line", ["timing: {link_gbps: 400}", "timing: {cable_ns: 99}"])
def test_tiers_with_other_times_are_run_again(tmp_path: Path, line: str) -> None:
    tiers = TEXT.replace("{kind: mesh, radices: [3, 3]}", TIERS).replace("0.1, 0.3", "0.1")
    tiers += "routing: {algorithm: shortest}\nrouter: {vcs: 8}\n"
    kept = [FLIT_SWEEP.run(parse_config(tiers + more), tmp_path / "kept", silent, workers=1) for more in ("", line)]
    alone = FLIT_SWEEP.run(parse_config(tiers + line), tmp_path / "alone", silent, workers=1)
    pd.testing.assert_frame_equal(without_times(kept[1]), without_times(alone))
    assert kept[0]["latency"].tolist() != alone["latency"].tolist()


def test_summary_and_files(tmp_path: Path) -> None:
    runs = FLIT_SWEEP.run(small(), tmp_path, silent, workers=1)
    curve = summarise(runs)
    assert curve["load"].tolist() == [0.1, 0.3]
    assert curve["seeds"].tolist() == [2, 2]
    assert curve["latency"][0] == pytest.approx(runs["latency"][:2].mean())
    # two means: s / √2 is half of what is between them, and Student's t of one degree of freedom 12.7062
    apart = abs(runs["latency"][0] - runs["latency"][1])
    assert curve["latency_interval"][0] == pytest.approx(12.7062 * apart / 2, rel=1e-5)
    assert summarise(runs[runs["seed"] == 1])["latency_interval"][0] == runs["latency_interval"][0]
    FLIT_SWEEP.write(small(), runs, tmp_path)
    assert (tmp_path / "latency_load.png").stat().st_size > 5000
    assert len(pd.read_csv(tmp_path / "runs.csv")) == 4
    assert list(pd.read_csv(tmp_path / "times.csv")) == ["variant", "load", "seed", "cpu_seconds"]
    assert len(pd.read_parquet(tmp_path / "curve.parquet")) == 2


def test_variants_are_whole_configurations() -> None:
    found = parse_config(VARIANTS).variants
    assert list(found) == ["dor", "adaptive", "ring"]
    assert [variant.routing.algorithm for variant in found.values()] == ["dor", "star_channel", "dor"]
    assert [variant.router.vcs for variant in found.values()] == [4, 3, 4]
    assert found["ring"].topology.kind == "torus"
    assert found["adaptive"].simulation.loads == (0.1, 0.3)
    assert all(variant.variants == {} for variant in found.values())
    assert small().variants == {}


def test_every_variant_is_run_as_if_it_stood_alone(tmp_path: Path) -> None:
    runs = FLIT_SWEEP.run(parse_config(VARIANTS), tmp_path, silent, workers=1)
    cases = list(zip(runs["variant"], runs["load"], strict=True))
    assert cases == [("dor", 0.1), ("dor", 0.3), ("adaptive", 0.1), ("adaptive", 0.3), ("ring", 0.2)]
    alone = Simulation(
        parse_config(
            VARIANTS[: VARIANTS.index("  variants")]
            + "routing: {algorithm: star_channel}\nrouter: {vcs: 3, vc_release: credits}\n"
        ),
        0.3, 1,
    ).run().row()  # fmt: skip
    row = runs.iloc[3].to_dict()
    both = pd.DataFrame([{key: each[key] for key in alone if key != "cpu_seconds"} for each in (row, alone)])
    assert both.iloc[0].equals(both.iloc[1])  # what is empty in both is equal, too
    curve = summarise(runs)
    assert list(zip(curve["variant"], curve["load"], strict=True)) == cases
    FLIT_SWEEP.write(parse_config(VARIANTS), runs, tmp_path)
    assert (tmp_path / "latency_load.png").stat().st_size > 5000


def test_equal_runs_of_two_variants_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = FlitSweep.run_one
    monkeypatch.setattr(FlitSweep, "run_one", lambda sweep, job: calls.append(job[1:3]) or real(sweep, job))
    text = TEXT.replace("seeds: 2", "variants: {a: {}, b: {router.vcs: 4}}")
    counts: list[tuple[int, int]] = []
    runs = FLIT_SWEEP.run(parse_config(text), tmp_path, lambda *pair: counts.append(pair), workers=1)
    assert calls == [(0.1, 1), (0.3, 1)]
    assert counts == [(0, 4), (2, 4), (4, 4)]
    assert runs["latency"].tolist()[:2] == runs["latency"].tolist()[2:]


@pytest.mark.parametrize(("lines", "message"), [
    ("    b: {router.vcs: 17}", "f.yml:18: simulation.variants.b: router.vcs: must be at most 16, not 17"),
    ("    b:\n      router.vcs: 3\n      routing:\n        algorthm: dor",
     "f.yml:21: simulation.variants.b: routing.algorthm: unknown key; did you mean 'algorithm'?"),
    ("    b: {topology: {kind: mesh}}", "f.yml:18: simulation.variants.b: topology.radices: missing"),
    ("    b: {name.x: 3}", "f.yml:18: simulation.variants.b: name.x: there is no 'x' in it"),
    ("    b: {simulation.variants.c: {}}",
     "f.yml:18: simulation.variants.b: 'simulation.variants.c' cannot be changed by a variant"),
    ("    b: 3", "f.yml:18: simulation.variants.b: expected a section (key: value), not 3"),
    ("    b: {address: {width_bits: 12, chunk_bits: 4}, lookup: {chunk_bits: [2]}}",
     "f.yml:18: simulation.variants.b: lookup.chunk_bits: must contain address.chunk_bits=4"),
    ("    'a b': {}", "f.yml:9: simulation.variants: a name must be up to 40 letters, digits and _, not 'a b'"),
])  # fmt: skip
def test_a_mistake_in_a_variant_names_its_line(lines: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(VARIANTS + lines, source="f.yml")
    assert str(caught.value) == message


def status_of(monkeypatch: pytest.MonkeyPatch, *words: str) -> int | str | None:
    """Run the command in this process."""
    monkeypatch.setattr(sys, "argv", ["hopforge", *words])
    monkeypatch.delenv("HOPFORGE_TRACEBACK", raising=False)
    with pytest.raises(SystemExit) as left:
        cli.main()
    return left.value.code


def test_a_variant_that_does_not_fit_its_network_is_told_before_any_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.yml").write_text(VARIANTS + "    wrong: {routing.algorithm: nca}\n")
    assert status_of(monkeypatch, "sweep", str(tmp_path / "c.yml"), "-o", str(tmp_path / "out")) == 2
    assert capsys.readouterr().err == (
        f"hopforge: {tmp_path}/c.yml:18: simulation.variants.wrong: "
        "routing.algorithm nca needs a topology of kind fat_tree, not mesh; "
        "minimal, up_down and tables go on any but a butterfly\n"
    )
    assert list((tmp_path / "out" / "runs").glob("*.json")) == []


def test_a_line_without_a_latency_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[list[str]] = []
    monkeypatch.setattr(
        flit_sweep, "save_figure",
        lambda figure, _path: shown.append([text.get_text() for axes in figure.axes for text in axes.texts]),
    )  # fmt: skip
    curve = pd.DataFrame({
        "variant": ["a", "a", "b", "b"], "load": [0.1, 0.2] * 2, "saturated": [False, False, True, True],
        "latency": 9.0, "latency_p99": 12.0, "latency_interval": 0.1, "accepted": 0.1, "accepted_worst": 0.1,
    })  # fmt: skip
    plot_variants("x", curve, tmp_path / "x.png")
    plot_curve("x", curve[2:], tmp_path / "x.png")
    plot_curve("x", curve[:2], tmp_path / "x.png")
    rates = ["mean", "worst host", "offered"]
    assert shown == [["a", "b: saturated", "a", "b"], ["saturated", *rates], ["mean", "99 %", *rates]]


def test_dask_computes_the_same(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    config = parse_config(VARIANTS)
    here = FLIT_SWEEP.run(config, tmp_path / "here", silent, workers=1)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, protocol="tcp", dashboard_address=None
    ) as cluster:
        there = FLIT_SWEEP.run(config, tmp_path / "there", silent, dask=cluster.scheduler_address)
    pd.testing.assert_frame_equal(without_times(there), without_times(here))


def test_no_dask_scheduler_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(kept_results, "CONNECT_SECONDS", 0.5)
    for address in ("tcp://127.0.0.1:1", "nonsense://x:1"):
        with pytest.raises(SweepError, match=f"^--dask: no scheduler answers at '{address}'$"):
            FLIT_SWEEP.run(small(), tmp_path, silent, dask=address)
    with pytest.raises(SweepError, match=r"^--dask must be .* such as tcp://127\.0\.0\.1:8786, not 'nonsense'$"):
        FLIT_SWEEP.run(small(), tmp_path, silent, dask="nonsense")


@pytest.mark.parametrize("command", ["net", "sweep"])
@pytest.mark.parametrize("lines, message", [
    ("routing: {algorithm: nca}", "routing.algorithm nca needs a topology of kind fat_tree, not mesh"),
    ("traffic: {pattern: transpose3d}", "traffic.pattern transpose3d needs a cubic number of hosts, not 9"),
    ("router: {vcs: 17}", "router.vcs"),
])  # fmt: skip
def test_mistakes_are_one_line_and_status_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, lines: str,
    message: str,
) -> None:  # fmt: skip
    (tmp_path / "c.yml").write_text(TEXT + lines)
    assert status_of(monkeypatch, command, str(tmp_path / "c.yml"), "-o", str(tmp_path / "out")) == 2
    told = capsys.readouterr()
    assert told.err.count("\n") == 1
    assert message in told.err
    assert told.out == ""


def test_net_prints_and_writes(tmp_path: Path) -> None:
    (tmp_path / "c.yml").write_text(TEXT)
    arguments = ["net", str(tmp_path / "c.yml"), "-o", str(tmp_path / "out"), "--load", "0.2", "--seed", "7"]
    run = subprocess.run(
        [sys.executable, "-m", "hopforge", *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "offered load" in run.stdout
    table = pd.read_csv(tmp_path / "out" / "measurement.csv")
    assert (table["load"][0], table["seed"][0]) == (0.2, 7)


def test_seeds_with_the_same_mean_do_not_claim_to_know_it_exactly(tmp_path: Path) -> None:
    """Two seeds that agree by chance say nothing of the spread: the interval is that of the runs."""
    runs = FLIT_SWEEP.run(small(), tmp_path, silent, workers=1)
    runs.loc[runs["load"] == 0.1, "latency"] = 20.0
    runs.loc[runs["load"] == 0.1, "latency_interval"] = [0.5, 0.7]
    curve = summarise(runs)
    assert curve["latency_interval"][0] == pytest.approx(0.6)
    assert FLIT_SWEEP.table(small(), runs)[1][1] == "20.00 ± 0.60"
    runs.loc[runs["load"] == 0.1, "latency_interval"] = 0.0  # traffic that draws nothing: the mean is exact
    assert FLIT_SWEEP.table(small(), runs)[1][1] == "20.00 ± 0.00"
