"""Runs with agents: results, weights kept and read again, equal bits, agents that get no numbers."""

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import hopforge as hf
from hopforge import cli
from hopforge.model.config import ConfigError, parse_config
from hopforge.model.dqn.agents import RESTARTS, STORED, TRAININGS
from hopforge.model.dqn.archive import STATE, ArchiveError
from hopforge.model.dqn.forward import forward
from hopforge.model.dqn.int8_network import given_observations, quantised
from hopforge.model.errors import DivergedError, UserError
from hopforge.model.network.parts.trail_tables import trail_counts
from hopforge.sim.run.simulation import Simulation

TEXT = """name: test
topology: {{kind: torus, radices: [4, 4]}}
router: {{vcs: 3, buffer_flits: 20, switching: vct}}
routing: {{algorithm: dqn, ties: random, dqn: {{first: 6, second: 5, head: 4, batch: 4, learning_starts: 20{dqn}}}}}
traffic: {{include_self: false, packet_range: [2, 9], acknowledge: {{{acknowledge}}}}}
simulation: {{load: 0.4, warmup_cycles: 700, min_cycles: 1500, max_cycles: 1500}}
"""


def simulated(dqn: str = "", acknowledge: str = "", load: float = 0.4, seed: int = 1) -> Simulation:
    text = TEXT.format(dqn=f", {dqn}" if dqn else "", acknowledge=acknowledge)
    return Simulation(parse_config(text), load, seed, check=False)


def run_net(folder: Path, dqn: str = "", *, name: str = "out") -> tuple[Any, Path]:
    (folder / "run.yml").write_text(TEXT.format(dqn=f", {dqn}" if dqn else "", acknowledge=""))
    words = ["net", str(folder / "run.yml"), "-o", str(folder / name), "--plots"]
    return CliRunner().invoke(cli.app, words), folder / name


def state_of(run: Simulation) -> list[Any]:
    agents = run.state.agents.agents
    return [agents.weights.copy(), agents.counts.copy(), agents.streams.copy(), run.state["trail_counts"].copy()]


def test_equal_seeds_give_equal_bits_and_others_do_not() -> None:
    states = []
    for seed, steps in ((1, [1500]), (1, [1, 7, 492, 1000]), (2, [1500])):
        run = simulated(seed=seed)
        for cycles in steps:
            run.advance(cycles)
        states.append(state_of(run))
    assert states[0][1][:, TRAININGS].min() > 20
    assert all((one == other).all() for one, other in zip(states[0], states[1], strict=True))
    assert not any((one == other).all() for one, other in zip(states[0], states[2], strict=True))


@pytest.mark.parametrize(
    ("dqn", "acknowledge"),
    [
        ("", ""), ("", "ratio: 3, queue: 1, table: 12"),
        ("reward_rejected: false, max_episodes: 5", "age_limit_cycles: 90"),
        ("available: busy_and_no_room", "vcs: own"), ("bootstrap: next_router", ""), ("learning_starts: 0", ""),
        ("decision_cycles: 25, decision_interval: 3, decision_queue: 1", ""),
        ("bootstrap: next_router, decision_cycles: 25", ""),
    ],
)  # fmt: skip
def test_nothing_is_lost_or_doubled(dqn: str, acknowledge: str) -> None:
    """Every packet arrives; entries, episodes and acknowledges add up when the network is empty."""
    if dqn == "learning_starts: 0":
        text = TEXT.format(dqn="", acknowledge="").replace("learning_starts: 20", dqn)
        run = Simulation(parse_config(text), 0.4, 1, check=False)
    elif acknowledge == "vcs: own":
        text = TEXT.format(dqn=f", {dqn}", acknowledge=acknowledge).replace("vcs: 3", "vcs: 4")
        run = Simulation(parse_config(text), 0.4, 1, check=False)
    else:
        run = simulated(dqn, acknowledge, load=0.6)
    state, first = run.state, run.state.agents.agents.weights.copy()
    for _ in range(5):
        run.advance(400)
        run.check_conservation()
    state["host"]["next_time"][: run.topology.hosts] = 1 << 62
    run.advance(4000)
    run.check_conservation()
    assert state.flits_in_flight == 0
    counts = trail_counts(state)
    tables = {name: state[f"trail_{name}"] for name in ("fill", "active")}
    assert counts["delivered"] > 1000
    assert counts["acks_made"] == counts["acks_home"] + counts["acks_no_entry"] + counts["acks_queue_full"]
    popped = counts["acks_sent"] - counts["acks_made"] + counts["acks_home"]
    assert counts["entries"] == popped + counts["expired_entries"] + tables["fill"].sum()
    agents = run.state.agents.agents
    ended = counts["rewards"] + counts["expired_episodes"]
    if "decision_cycles" in dqn:
        assert counts["agent_queue_full"] > 20
        assert state["undecided"] == 0
    if "bootstrap" in dqn:
        ended += int(agents.counts[:, STORED].sum())
        assert counts["rewards"] == 0
    if "reward_rejected" not in dqn:
        assert counts["episodes"] == ended + tables["active"].sum()
    assert agents.counts[:, STORED].sum() > 50
    assert (agents.counts[:, TRAININGS].sum() == 0) == (agents.weights == first).all() == (dqn == "learning_starts: 0")
    if "ratio" in acknowledge:
        assert counts["no_reqack"] > counts["episodes"]
        assert counts["table_full"] > 0
    elif "age_limit" in acknowledge:
        assert counts["expired_episodes"] > 0
        assert counts["overrun"] > 0
    else:
        assert not tables["fill"].any()
        assert not tables["active"].any()


@pytest.mark.study
@pytest.mark.parametrize("acknowledge", ["flits: 1, ratio: 2, queue: 1, table: 24", "flits: 1, age_limit_cycles: 60"])
def test_ten_million_packets(acknowledge: str) -> None:
    """As above, by the state of every packet: nothing lost or doubled, escapes and dropped acknowledges included."""
    text = TEXT.format(dqn=", train_every: 50", acknowledge=acknowledge).replace("[2, 9]", "[1, 3]")
    run = Simulation(parse_config(text), 0.35, 1, check=False)
    state = run.state
    while int(state["packets_created"]) < 10_000_000:
        run.advance(50_000)
        run.check_conservation()
    state["host"]["next_time"][: run.topology.hosts] = 1 << 62
    run.advance(20_000)
    run.check_conservation()
    counts, fill = trail_counts(state), int(state["trail_fill"].sum())
    assert state.flits_in_flight == 0
    assert counts["delivered"] == int(state["packets_created"]) >= 10_000_000
    assert counts["acks_made"] == counts["acks_home"] + counts["acks_no_entry"] + counts["acks_queue_full"]
    popped = counts["acks_sent"] - counts["acks_made"] + counts["acks_home"]
    assert counts["entries"] == popped + counts["expired_entries"] + fill
    active = int(state["trail_active"].sum())
    assert counts["episodes"] == counts["rewards"] + counts["expired_episodes"] + active
    assert run.state.agents.agents.counts[:, STORED].sum() == counts["rewards"]
    assert min(counts["rejected"], counts["escaped_waiting"], counts["hop_limit"]) > 1000
    assert counts["acks_no_entry" if "age" in acknowledge else "acks_queue_full"] > 10


def test_files_of_a_run_and_weights_that_another_begins_with(tmp_path: Path) -> None:
    done, out = run_net(tmp_path)
    assert done.exit_code == 0, done.output
    with (out / "agents.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["cycle"]) for row in rows[::4]] == [500, 700, 1200, 1700, 2200]
    assert {row["agent"] for row in rows} == {"0", "1", "2", "3"}
    with (out / "agent_counters.csv").open() as file:
        counters = {row["counter"]: int(row["count"]) for row in csv.DictReader(file)}
    assert counters["decisions"] == sum(int(row["decisions"]) for row in rows) > 500
    last = [row for row in rows if row["agent"] == "2"]
    assert float(last[-1]["epsilon"]) == pytest.approx(1 - 0.98 * sum(int(row["decisions"]) for row in last) / 10_000)
    assert (out / "agents.png").stat().st_size > 10_000
    saved = np.load(out / "agents.npz")["W1"]
    weights = f"weights: {out / 'agents.npz'}"
    loaded = simulated(f"{weights}, exploration: late")
    assert (loaded.state.agents.agents.weights[:, : saved[0].size].reshape(saved.shape) == saved).all()
    with pytest.raises(
        ArchiveError,
        match=r"^routing.dqn.weights: .*agents.npz: its agents were trained on torus 4×4, agents: 4, not .*: 16",
    ):
        simulated(f"{weights}, agents: router")
    (tmp_path / "bad.npz").write_bytes(b"PK no archive")
    with pytest.raises(ArchiveError, match=r"^routing.dqn.weights: .*bad.npz: no archive of agents, or a damaged one"):
        simulated(f"weights: {tmp_path / 'bad.npz'}")
    with pytest.raises(ArchiveError, match=r"^routing.dqn.weights: .*none.npz: No such file"):
        simulated(f"weights: {tmp_path / 'none.npz'}")


def test_agents_that_get_no_numbers_stop_the_run_and_its_results_are_kept(tmp_path: Path) -> None:
    done, out = run_net(tmp_path, "learning_rate: 1.0e+38")
    assert isinstance(done.exception, DivergedError)  # a mistake of the user's: status 2 and one line
    assert f"wrote {out}" in done.output
    assert "STOPPED" in done.output
    with (out / "measurement.csv").open() as file:
        assert next(csv.DictReader(file))["stop"] == "diverged"
    assert (out / "agents.csv").exists()
    assert not (out / "agents.npz").exists()
    assert len(rows_of(out / "agents.csv")) == 8, "a sample of the warm-up, and one that is measured"
    run = simulated("learning_rate: 1.0e+38")
    run.advance(1500)
    with pytest.raises(DivergedError, match=r"agent \d: training step \d+ gave weights or a loss that are no numbers"):
        run.agents.raise_if_diverged()


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("command", ["simulate", "series"])
def test_what_was_found_before_comes_with_the_error(command: str) -> None:
    text = TEXT.format(dqn=", learning_rate: 1.0e+38", acknowledge="").replace("max_cycles: 1500", "max_cycles: 4000")
    with pytest.raises(hf.DivergedError, match=r"agent \d: training step \d+ gave") as caught:
        getattr(hf, command)(hf.loads(text.replace("load: 0.4", "load: 0.4, series_bins: 20")), progress=False)
    result = caught.value.result
    table = result.tables["measurement" if command == "simulate" else "series"]
    assert 1 <= len(table) < 20
    assert len(result.tables["agents"]) % 4 == 0


def test_agents_go_on_with_the_same_bits(tmp_path: Path) -> None:
    """A run that resumes from an archive equals one whose agents stayed in memory."""
    for bootstrap in ("none", "next_router"):
        dqn = f"save: state, bootstrap: {bootstrap}, replay: 200, target_every: 7"
        first = simulated(dqn)
        first.advance(1500)
        path = tmp_path / f"{bootstrap}.npz"
        first.agents.keep_weights(path)
        resumed = simulated(f"{dqn}, weights: {path}, resume: true", seed=2)
        stayed, begun = simulated(dqn, seed=2), simulated(f"{dqn}, weights: {path}", seed=2)
        for name in ("weights", *STATE):
            getattr(stayed.state.agents.agents, name)[...] = getattr(first.state.agents.agents, name)
        for run in (resumed, stayed, begun):
            run.advance(1500)
        assert resumed.state.agents.agents.counts[:, TRAININGS].min() > 40
        for one, other in zip(state_of(resumed), state_of(stayed), strict=True):
            assert (one == other).all()
        assert not (state_of(begun)[0] == state_of(resumed)[0]).all()
        for run in (resumed, stayed):
            run.agents.keep_weights(tmp_path / f"{run is resumed}.npz")
        assert (tmp_path / "True.npz").read_bytes() == (tmp_path / "False.npz").read_bytes()


def test_what_cannot_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = simulated("save: state, replay: 30")
    first.agents.keep_weights(tmp_path / "state.npz")
    simulated("replay: 30").agents.keep_weights(tmp_path / "weights.npz")
    resume = f"resume: true, weights: {tmp_path}"
    with pytest.raises(ArchiveError, match=r"weights.npz: has no target: it was saved without the state of a run"):
        simulated(f"{resume}/weights.npz, replay: 30")
    with pytest.raises(ArchiveError, match=r"samples must have the shape 4×31×13, not 4×30×13"):
        simulated(f"{resume}/state.npz, replay: 31")
    with pytest.raises(UserError, match=r"routing.dqn.resume: needs weights"):
        simulated("resume: true")
    monkeypatch.setenv("HOPFORGE_INPUT_MIB", "1")
    with pytest.raises(ArchiveError, match=r"routing.dqn.save: the state of these agents holds more than 1 MiB"):
        simulated("save: state, replay: 9000")


def test_hints_of_the_application() -> None:
    run = simulated("hints: [300, 900]")
    seen = []
    for _ in range(5):
        run.advance(300)
        run.agents.note()
        seen.append(int(run.state.agents.agents.counts[:, RESTARTS].max()))
    assert seen == [0, 1, 1, 2, 2]
    series = run.agents.series()
    rates = np.asarray(series["epsilon"]).reshape(5, 4)
    assert (rates[3] > rates[2]).all(), "exploration begins anew"
    assert ("learning begun anew", "8 times") in run.agents.rows()


def test_agents_that_need_more_memory_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hopforge.model.free_memory.free_memory", lambda: 1 << 30)
    with pytest.raises(UserError, match=r"routing.dqn: 4 agents with .* and a replay of 10,000,000 need .* GiB"):
        simulated("replay: 10000000")


def test_progress_says_how_agents_are_doing() -> None:
    run = simulated()
    assert run.agents.words() == ""
    seen = []
    run.run(lambda cycles: seen.append((cycles, run.agents.words())))
    assert [cycles for cycles, _ in seen] == [500, 700, 1200, 1700, 2200]
    assert re.fullmatch(r"mean Q( -?[\d.e-]+){4}, reward( [\d.e-]+){4}, loss( [\d.e-]+){4}, ε( [\d.]+){4}", seen[-1][1])
    many = simulated("agents: router")
    many.advance(500)
    many.agents.note()
    assert re.search(r"mean Q -?[\d.e-]+ \(-?[\d.e-]+ to -?[\d.e-]+\), reward", many.agents.words())


def test_clocks_that_are_wrong() -> None:
    """Ways do not depend on the clocks until agents learn from wrong rewards; entries carry the router's time."""
    texts = [TEXT.format(dqn="", acknowledge=one) for one in ("", "skew_cycles: 40")]
    runs = [Simulation(parse_config(text.replace("starts: 20", "starts: 0")), 0.4, 1, check=False) for text in texts]
    for run in runs:
        run.advance(800)
    skew = runs[1].state["trail_skew"]
    assert -40 <= skew.min() < -10 < 10 < skew.max() <= 40
    for router, offset in enumerate(skew):
        fill = runs[0].state["trail_fill"][router]
        times = [run.state["trail_entries"].reshape(16, -1, 5)[router, :fill, 1] for run in runs]
        assert (times[1] - times[0] == offset).all()
    rewards = [run.state.agents.agents.rewards for run in runs]
    assert (rewards[0] != rewards[1]).any()


def test_decisions_in_whole_numbers(tmp_path: Path) -> None:
    """The run follows int8 to the bit: its actions are those of the golden network for what was seen."""
    done, out = run_net(tmp_path)
    assert done.exit_code == 0, done.output
    text = TEXT.format(dqn=f", weights: {out / 'agents.npz'}, exploration: none, inference: int8", acknowledge="")
    run = Simulation(parse_config(text.replace("learning_starts: 20", "learning_starts: 0")), 0.4, 3, check=False)
    run.advance(2000)
    run.check_conservation()
    state, agents = run.state, run.state.agents.agents
    shape = run.state.agents.parameters.shape
    given = given_observations(shape)
    checked, differ = 0, 0
    for agent, weights in enumerate(agents.weights):
        stored = int(agents.counts[agent, STORED])
        seen, actions = agents.samples[agent, :stored], agents.actions[agent, :stored]
        network = quantised(shape, weights, given)
        assert network.actions(network.whole(seen)).tolist() == actions.tolist()
        checked += stored
        q = [forward(weights, agents.widths, row[None], agents.work)[0].copy() for row in seen]
        differ += int((np.argmax(q, axis=1) != actions).sum())
    counts = trail_counts(state)
    assert checked > 300
    assert counts["int8_agreed"] + differ <= counts["decisions"] <= counts["int8_agreed"] + differ + 100
    rows = dict(run.agents.rows())
    assert rows["int8 decisions"].startswith(f"{100 * counts['int8_agreed'] / counts['decisions']:.2f} % as the float")
    assert state.agents.int8_loss >= 0


@pytest.mark.parametrize(
    ("dqn", "message"),
    [
        ("inference: int8", "routing.dqn.weights: missing; inference=int8 needs those of trained agents"),
        ("inference: int8, weights: a.npz", r"routing.dqn.learning_starts: must be 0 \(no learning\) .*, not 20"),
        ("inference: int8, weights: a.npz, observation: raw", "routing.dqn.observation: must be scaled"),
        ("decision_interval: 3", "routing.dqn.decision_interval: is for decision_cycles above 0 only"),
        ("decision_queue: 3", "routing.dqn.decision_queue: is for decision_cycles above 0 only"),
        ("decision_cycles: 100001", "routing.dqn.decision_cycles: .*100000"),
    ],
)
def test_settings_that_do_not_fit(dqn: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        simulated(dqn)


def test_weights_that_are_too_large_for_int8(tmp_path: Path) -> None:
    run = simulated()
    run.state.agents.agents.weights[2] *= 1e6
    assert run.agents is not None
    run.agents.keep_weights(tmp_path / "a.npz")
    text = TEXT.format(dqn=f", weights: {tmp_path / 'a.npz'}, inference: int8", acknowledge="")
    with pytest.raises(ArchiveError, match=r"^routing.dqn.weights: .*a.npz: W. has weights up to .*; int8 takes 63"):
        Simulation(parse_config(text.replace("learning_starts: 20", "learning_starts: 0")), 0.4, 3, check=False)
