"""Programs on networks with slow links: every engine takes the rate that is left."""

from pathlib import Path

import pytest

from hopforge.model.config import parse_config
from hopforge.model.config.uses import unused_sections
from hopforge.model.errors import UserError
from hopforge.sim.programs.app_setup import prepare_app
from hopforge.sim.programs.application import AppRun, run_app

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
        ("bounds", "flow", True), ("hits", "flow", True), ("gen network", "flow", True),
    ):  # fmt: skip
        assert ("degraded" in unused_sections(parse_config(text % engine), [command])) == told, command
