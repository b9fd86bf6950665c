"""Programs on networks with slow links: every engine takes the rate that is left."""

from pathlib import Path

import pytest

from hopforge.model.config import parse_config
from hopforge.model.config.uses import unused_sections
from hopforge.model.errors import UserError
from hopforge.sim.programs.app_setup import prepare_app
from hopforge.sim.programs.application import AppRun, run_app
from hopforge.sim.run.prepared import prepare_net

SIZE, ENVELOPE = 100_000, 16


def run(folder: Path, degraded: str, engine: str, more: str = "") -> AppRun:
    (folder / "x.goal").write_text(f"num_ranks 3\nrank 0 {{\nsend {SIZE}b to 2\n}}\nrank 1 {{\n}}\nrank 2 {{\n"
                                   f"recv {SIZE}b from 0\n}}\n")
    found = run_app(parse_config(
        f"name: x\ntopology: {{kind: mesh, radices: [3]}}\ntiming: {{link_gbps: 80, switch_base_ns: 51, cable_ns: 100}}"
        f"\nworkload: {{kind: trace, file: {folder}/x.goal}}\n{degraded}"
        f"app: {{engine: {engine}, backend: embedded, loggops: {{o: 0, g: 0, O: 0}}{more}}}\n"
    ))
    assert isinstance(found, AppRun)
    return found


@pytest.mark.parametrize("engine", ["flow", "packet"])
@pytest.mark.parametrize(("degraded", "times"), [
    ("", 1), ("degraded: {links: [[1, 2]], factor: 0.25}\n", 4), ("degraded: {random_links: 2}\n", 2),
])
def test_a_message_takes_as_long_as_on_its_slowest_link(tmp_path: Path, engine: str, degraded: str, times: int) -> None:
    """80 Gbit/s are 0.1 ns a byte; three switches, four cables."""
    exact = (SIZE + ENVELOPE) * 0.1 * times + 3 * 51 + 4 * 100
    found = run(tmp_path, degraded, engine)
    assert found.found.makespan_s * 1e9 == pytest.approx(exact, rel=1e-9 if engine == "flow" else 0.01)
    if engine == "flow":
        assert found.links is not None
        name, share = found.links.hottest() or ("", 0.0)
        assert name.startswith("router 1 to router 2" if "1, 2" in degraded else "router 0 to router 1")
        assert share == pytest.approx(SIZE * 0.1 * times / exact)


@pytest.mark.parametrize("engine", ["flow", "packet"])
@pytest.mark.parametrize(
    ("times", "slow_from", "slow_until"),
    [
        ("from_us: 3.553", 3553, 1e9), ("from_us: 3.553, until_us: 13.553", 3553, 13553),
        ("until_us: 10.553", 0, 10553), ("from_us: 0.1", 100, 1e9), ("from_us: 40", 40000, 1e9),
        ("until_us: 0.2", 0, 200),
    ],
)  # fmt: skip
def test_a_rate_that_changes_while_a_message_moves(
    tmp_path: Path, engine: str, times: str, slow_from: float, slow_until: float
) -> None:
    """Bytes pass the link at 10 or 2.5 a ns.

    Engine flow lets the whole latency of 553 ns pass first. With packets the first byte is at the link behind two
    cables and two switches, after 302 ns, and the last one has 251 ns still to go.
    """
    found = run(tmp_path, f"degraded: {{links: [[1, 2]], factor: 0.25, {times}}}\n", engine)
    first = 553 if engine == "flow" else 302
    now, left = float(first), SIZE + ENVELOPE
    for until, rate in ((slow_from, 10.0), (slow_until, 2.5), (1e12, 10.0)):
        passed = min(left, max(0.0, until - now) * rate)
        now, left = now + passed / rate, left - passed
    exact = now + 553 - first
    assert found.found.makespan_s * 1e9 == pytest.approx(exact, rel=1e-9 if engine == "flow" else 0.005)


def program(folder: Path, degraded: str, calls: list[str], engine: str = "flow", more: str = "") -> AppRun:
    for rank, text in enumerate(calls):
        lines = ["init", *text.split("; "), "finalize"]
        (folder / f"rank-{rank + 1}.txt").write_text("".join(f"{rank} {line}\n" for line in lines))
    found = run_app(parse_config(
        f"name: x\ntopology: {{kind: mesh, radices: [3]}}\ntiming: {{link_gbps: 80, switch_base_ns: 51, cable_ns: 100}}"
        f"\nworkload: {{kind: trace, file: {folder}}}\n{degraded}"
        f"app: {{engine: {engine}, backend: embedded{more}}}\n"
    ))
    assert isinstance(found, AppRun)
    return found


@pytest.mark.parametrize("alone", [True, False])
def test_messages_that_share_a_link_when_it_becomes_slow(tmp_path: Path, alone: bool) -> None:
    """Each has what it had left, and its share of what the link has left until one is at its end."""
    degraded = "degraded: {links: [[1, 2]], factor: 0.25, from_us: 1.553}\n"
    if alone:  # nobody shares its links: the engine does not look at it before it ends
        found = program(tmp_path, degraded, ["send 2 0 100000", "compute 0", "recv 0 0 100000"])
        assert found.found.makespan_s * 1e9 == pytest.approx(1553 + (100016 - 10000) * 0.4, rel=1e-9)
        return
    receives = "irecv 0 0 100000; recv 1 0 100000; waitall"
    found = program(tmp_path, degraded, ["send 2 0 100000", "send 2 0 100000", receives])
    # beside each other they have shares by their latencies, 402 ns of rank 1 and 553 ns of rank 0
    share, size = 553 / (402 + 553), SIZE + ENVELOPE
    first = 1553 + (size - 151 * 10 - 1000 * 10 * share) / (2.5 * share)
    assert found.ranks["finish_s"].tolist()[1] * 1e9 == pytest.approx(first, rel=1e-9)
    left = size - (1 - share) * (1000 * 10 + (first - 1553) * 2.5)
    assert found.found.makespan_s * 1e9 == pytest.approx(first + left / 2.5, rel=1e-9)


def test_links_are_told_by_their_mean_rate(tmp_path: Path) -> None:
    found = run(tmp_path, "degraded: {links: [[1, 2]], factor: 0.25, from_us: 3.553}\n", "flow")
    span = 3553 + 70016 * 0.4
    mean = 10 * (3553 + 0.25 * (span - 3553)) / span  # bytes a ns
    assert found.links is not None
    assert found.links.hottest() == ("router 1 to router 2, port 1", pytest.approx(SIZE / mean / span))


def test_net_has_cycles(tmp_path: Path) -> None:
    """One packet of 100 flits over a link: each flit that leaves behind the change comes 3 cycles later than before."""
    (tmp_path / "trace").write_text("0 init\n0 send 1 0 800\n0 finalize\n1 init\n1 recv 0 0 800\n1 finalize\n")

    def makespan(times: str) -> int:
        run = prepare_net(parse_config(
            "name: x\ntopology: {kind: mesh, radices: [2]}\nrouter: {vcs: 1, buffer_flits: 32}\n"
            f"degraded: {{links: [[0, 1]], {times}}}\ntraffic: {{source: program, flit_bytes: 8}}\n"
            f"workload: {{kind: trace, file: {tmp_path}/trace}}\n"
        ))  # fmt: skip
        run.run(lambda done, of: None)
        return int(run.values()["makespan"])

    fast, slow = makespan("factor: 1"), makespan("factor: 0.25")
    assert slow == fast + 2 + 3 * 98  # behind the head there is a gap of a cycle, which the slow link hides
    assert makespan("factor: 0.25, from_cycle: 1000") == makespan("factor: 0.25, until_cycle: 1") == fast
    later = [makespan(f"factor: 0.25, from_cycle: {cycle}") for cycle in (40, 50)]
    assert later[0] - later[1] == 3 * 10 and fast < later[1]
    # slow for 40 cycles more while flits leave: 10 of them in place of 40
    short, long = (makespan(f"factor: 0.25, from_cycle: 30, until_cycle: {cycle}") for cycle in (50, 90))
    assert long - short == 30 and fast < short


def test_bad_times() -> None:
    for times, says in (
        ("from_cycle: 5, until_cycle: 5", "degraded.until_cycle: must be more than from_cycle=5, not 5"),
        ("from_us: 5, until_us: 4.5", "degraded.until_us: must be more than from_us=5, not 4.5"),
        ("from_us: 5, until_cycle: 4", "degraded.from_cycle: from_us and until_us are for hopforge app"),
    ):
        with pytest.raises(UserError, match=says):
            parse_config(f"name: x\ntopology: {{kind: mesh, radices: [2]}}\ndegraded: {{{times}}}\n")
    failures = "simulation: {failures: [{cycle: 5, links: [[0, 1]]}]}\nrouting: {algorithm: up_down}\n"
    text = f"name: x\ntopology: {{kind: torus, radices: [4]}}\n{failures}degraded: {{random_links: 1, from_cycle: 5}}\n"
    with pytest.raises(UserError, match=r"degraded.from_cycle: cannot be combined with simulation.failures"):
        prepare_net(parse_config(text))


@pytest.mark.parametrize(
    ("degraded", "app", "says"),
    [
        ("from_cycle: 5", "engine: flow", r"degraded.from_cycle: is not read here; from_us and until_us are for"),
        ("until_cycle: 5", "engine: packet", r"degraded.until_cycle: hopforge app has from_us"),
        ("from_us: 5", "engine: flow, backend: simgrid", r"degraded.from_us: SimGrid has slow links from begin to end"),
    ],
)  # fmt: skip
def test_times_that_are_not_read_are_refused(degraded: str, app: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        prepare_app(parse_config(
            "name: x\ntopology: {kind: mesh, radices: [3]}\nworkload: {kind: collective, operation: scan}\n"
            f"degraded: {{random_links: 1, {degraded}}}\napp: {{{app}}}\n"
        ))


def test_engine_flow_takes_any_factor_and_what_takes_none_says_so(tmp_path: Path) -> None:
    third = "degraded: {random_links: 2, factor: 0.3}\n"
    assert run(tmp_path, third, "flow").found.makespan_s == pytest.approx(((SIZE + 16) / 3 + 553) * 1e-9, rel=1e-6)
    with pytest.raises(UserError, match=r"degraded.factor: must be 1 divided by a whole number"):
        run(tmp_path, third, "packet")
    with pytest.raises(UserError, match=r"degraded: app.injection: queued in engine flow takes all links as alike"):
        run(tmp_path, third, "flow", ", injection: queued")
    queued = parse_config(
        "name: x\ntopology: {kind: dragonfly, p: 1, a: 2, h: 1}\nworkload: {kind: collective, operation: scan}\n"
        + third + "router: {model: input_output_queued, vcs: 2}\nrouting: {algorithm: dragonfly_min}\n"
        "app: {engine: packet}\n"
    )
    with pytest.raises(UserError, match=r"^degraded: router.model input_output_queued takes all links as alike$"):
        prepare_app(queued)


def test_commands_that_do_not_read_it_say_so() -> None:
    text = "name: x\ntopology: {kind: mesh, radices: [3]}\ndegraded: {random_links: 1}\napp: {engine: %s}\n"
    for command, engine, told in (
        ("app", "flow", False), ("app", "packet", False), ("app", "loggops", True), ("net", "flow", False),
        ("bounds", "flow", True), ("hits", "flow", True), ("gen router", "flow", True), ("gen network", "flow", False),
    ):  # fmt: skip
        assert ("degraded" in unused_sections(parse_config(text % engine), [command])) == told, command
