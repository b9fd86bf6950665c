"""Regular collectives on routes of their own: by hand, and beside the event loop."""

from dataclasses import replace

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.topology import build
from hopforge.model.workload import expanded_collectives
from hopforge.model.workload.compiled_program import compile_program
from hopforge.model.workload.program import RegularProgram
from hopforge.sim.programs import flow_rounds
from hopforge.sim.programs.application import run_app
from hopforge.sim.programs.cache_delays import cache_use
from hopforge.sim.programs.flow_engine import FlowRun
from hopforge.sim.programs.flow_rounds import round_times
from hopforge.sim.programs.flow_ways import flow_ways
from hopforge.sim.traffic.placed import place_program

TORUS = "{kind: torus, radices: [4, 3]}"


@pytest.fixture(autouse=True)
def _all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expanded_collectives, "KEPT_TRANSFERS", 0)


def config_of(operation="allreduce", algorithm="ring", size=100_000, app="{}", topology=TORUS, more="", end=""):
    return parse_config(
        f"name: x\ntopology: {topology}\nworkload: {{kind: collective, operation: {operation}, bytes: {size},"
        f" collectives: {{{operation}: {algorithm}}}{more}}}\ntiming: {{link_gbps: 8, switch_base_ns: 50, cable_ns: 0}}"
        f"\napp: {app.replace('{', '{backend: embedded, ')}\n{end}"
    )


def both(config, sizes=None):
    """Return what `round_times` finds, and the ranks and mean latency after the event loop."""
    topology = build(config.topology, config.address)
    placed = place_program(config.workload, topology, config.seed)
    program = placed.program
    assert isinstance(program, RegularProgram)
    if sizes is not None:
        vars(program)["size_bytes"] = np.asarray(sizes, np.int64)
    ways = flow_ways(config, topology, placed, cache_use(config, topology, placed), None)
    found = round_times(config, program, ways)
    run = FlowRun(config, topology, placed)
    assert run.run()
    latency = (run.messages["arrived"] - run.messages["began"])[run.remote]
    return found, run.state.rank, float(latency.mean())


@pytest.mark.parametrize("app", [
    "{}", "{eager_bytes: 0}", "{buffered_bytes: 0}", "{eager_bytes: 0, buffered_bytes: 0}",
    "{tcp_window_bytes: 100}", "{envelope_bytes: 1}", "{bandwidth_factor: 0.5, latency_factor: 13}",
])  # fmt: skip
@pytest.mark.parametrize(("operation", "size"), [("allreduce", 100_000), ("allgather", 40_000), ("allreduce", 7)])
def test_ranks_as_in_the_event_loop(operation, size, app):
    found, ranks, latency = both(config_of(operation, size=size, app=app))
    assert found is not None
    assert found.finish == pytest.approx(ranks["finished"], rel=1e-12)
    assert found.waited == pytest.approx(ranks["waited"], rel=1e-12)
    assert found.latency_s == pytest.approx(latency, rel=1e-12)
    assert len(set(found.finish)) > 1 or size == 7


def test_sizes_at_random_either_agree_or_meet():
    rng, agreed = np.random.default_rng(5), 0
    for _ in range(40):
        app = "{eager_bytes: 6000, buffered_bytes: 3000}" if rng.random() < 0.7 else "{}"
        sizes = rng.integers(0, 10 ** int(rng.integers(2, 5)), 2 * 11 * 12)
        found, ranks, latency = both(config_of(app=app), sizes)
        if found is not None:
            agreed += 1
            assert found.finish == pytest.approx(ranks["finished"], rel=1e-9)
            assert found.waited == pytest.approx(ranks["waited"], rel=1e-9, abs=1e-15)
            assert found.latency_s == pytest.approx(latency, rel=1e-9)
    assert 0 < agreed < 40


def test_a_ring_by_hand():
    """Three ranks on a row of three switches; from the last to the first it is three switches, else two."""
    app = "{envelope_bytes: 0, buffered_bytes: 65536}"
    config = config_of(size=3 * 8, app=app, topology="{kind: mesh, radices: [3]}")
    near, far = 100e-9 + 8e-9, 150e-9 + 8e-9
    ends = np.zeros(3)
    for _ in range(4):
        ends = np.maximum(ends, np.roll(ends, 1) + np.array([far, near, near]))
    found, _, latency = both(config)
    assert found is not None
    assert found.finish == pytest.approx(ends, rel=1e-12)
    assert found.finish.max() == pytest.approx(2 * far + 2 * near, rel=1e-12)
    assert latency == pytest.approx((2 * near + far) / 3, rel=1e-12)


def test_messages_that_share_links_or_hosts_are_for_the_event_loop():
    assert both(config_of("alltoall", "pairwise"))[0] is None
    assert both(config_of(more=", mapping: {kind: random}"))[0] is None
    assert both(config_of(app="{injection: queued}"))[0] is None


def test_ranks_of_one_host(tmp_path):
    """Two ranks on each of two hosts: half of the messages stay there."""
    (tmp_path / "map").write_text("0\n0\n1\n1\n")
    config = config_of(
        topology="{kind: mesh, radices: [2]}", more=f", ranks: 4, mapping: {{kind: file, file: {tmp_path / 'map'}}}"
    )
    found, ranks, latency = both(config)
    assert found is not None
    assert found.finish == pytest.approx(ranks["finished"], rel=1e-12)
    assert found.latency_s == pytest.approx(latency, rel=1e-12)
    run = run_app(config).found
    assert (run.messages, run.local_messages) == (24, 12)


def test_the_whole_result_is_that_of_the_event_loop(monkeypatch):
    config = config_of()
    quick = run_app(config)
    monkeypatch.setattr(flow_rounds, "round_times", lambda *_: None)
    slow = run_app(config)
    for column in ("finish_s", "waiting_s", "compute_s"):
        assert quick.ranks[column].to_numpy() == pytest.approx(slow.ranks[column].to_numpy(), rel=1e-12)
    assert (quick.ranks[["sent_messages", "sent_bytes"]] == slow.ranks[["sent_messages", "sent_bytes"]]).all(axis=None)
    assert quick.found.makespan_s == pytest.approx(slow.found.makespan_s, rel=1e-12)
    assert quick.found.message_latency_s == pytest.approx(slow.found.message_latency_s, rel=1e-12)
    assert quick.found.energy_j == pytest.approx(slow.found.energy_j, rel=1e-12)
    assert quick.found.waiting_share > 0.9


def test_links_that_become_slow_are_for_the_event_loop():
    slow = "degraded: {links: [[0, 1]], factor: 0.1"
    app = "{envelope_bytes: 0}"
    always, late = (run_app(config_of(app=app, end=end)).found.makespan_s for end in (
        f"{slow}}}\n", f"{slow}, from_us: 100}}\n",
    ))  # fmt: skip
    assert run_app(config_of(app=app)).found.makespan_s < late < always


def test_operations_are_made_when_asked_for_and_a_changed_program_is_no_longer_regular():
    config = config_of()
    topology = build(config.topology, config.address)
    program = place_program(config.workload, topology, 1).program
    assert program.in_rounds
    assert "kind" not in vars(program)
    other = replace(program, size_bytes=program.size_bytes + 1)
    assert isinstance(other, RegularProgram)
    assert not other.in_rounds
    assert (other.kind == program.kind).all()
    with pytest.raises(AttributeError, match="sort"):
        program.sort  # noqa: B018


def test_operations_are_those_of_the_small_form(monkeypatch):
    config = config_of()
    topology = build(config.topology, config.address)
    placed = place_program(config.workload, topology, 1)
    monkeypatch.setattr(expanded_collectives, "KEPT_TRANSFERS", 1 << 20)
    small = compile_program(placed.trace, config.workload.collectives)
    assert not isinstance(small, RegularProgram)
    for name in ("first", "kind", "operand", "action", "source", "destination", "size_bytes"):
        assert (getattr(small, name) == getattr(placed.program, name)).all(), name
