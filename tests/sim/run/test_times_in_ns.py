"""Times of links in ns and in cycles: the same network has the same results, and programs keep to section timing."""

import ast
from pathlib import Path
from typing import Any

import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.config.uses import unused_sections
from hopforge.sim.programs.app_result import AppRun
from hopforge.sim.programs.application import run_app
from hopforge.sim.run.prepared import prepare_net
from hopforge.sim.run.simulation import Simulation

ROOT = Path(__file__).parents[3]
KEYS = {"link_latency_cycles", "global_latency_cycles", "host_latency_cycles", "cycles_per_flit"}
DRAGONFLY = "name: x\ntopology: {kind: dragonfly, p: 2, a: 2, h: 1}\nrouting: {algorithm: dragonfly_min}\n"
#: section `router` in cycles, and in ns
TWICE = [
    ("link_latency_cycles: 7", "cycle_ns: 2.0, link_ns: 12, end_ns: 1"),
    ("global_latency_cycles: 30", "cycle_ns: 0.5, global_ns: 15"),
    ("host_latency_cycles: 20", "cycle_ns: 1.0, host_ns: 20"),
    ("cycles_per_flit: 3", "cycle_ns: 2.0, flit_ns: 6"),
    ("host_latency_cycles: 9, link_latency_cycles: 4, global_latency_cycles: 11",
     "cycle_ns: 1.5, host_ns: 13, link_ns: 5.9, global_ns: 16.5"),
]  # fmt: skip


def router(keys: str, rest: str) -> Config:
    return parse_config(f"{DRAGONFLY}router: {{vcs: 4, buffer_flits: 16, {keys}}}\n{rest}")


@pytest.mark.parametrize(("cycles", "ns"), TWICE)
def test_a_run_with_a_load(cycles: str, ns: str) -> None:
    found = []
    for keys in (cycles, ns):
        run = Simulation(router(keys, ""), 0.2, 1)
        run.advance(1500)
        found.append({name: run.state[name].tolist() for name in ("host", "output_vc")})
    assert found[0] == found[1]


@pytest.mark.parametrize(("cycles", "ns"), TWICE)
@pytest.mark.parametrize("barrier", ["in_network", "bruck"])
def test_a_program_with_units_and_without(cycles: str, ns: str, barrier: str) -> None:
    rest = (
        "traffic: {source: program}\n"
        f"workload: {{kind: collective, operation: barrier, collectives: {{barrier: {barrier}}}}}\n"
    )
    spans = []
    for keys in (cycles, ns):
        run = prepare_net(router(keys, rest))
        run.run(lambda done, of: None)
        spans.append(run.values()["makespan"])
    assert spans[0] == spans[1]


def _reads_cycles(file: Path) -> bool:
    """Tell whether a file reads a key that may be given in ns off something that is called a router."""
    found = [each for each in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(each, ast.Attribute)]
    return any(
        each.attr in KEYS and ast.unparse(each.value).split(".")[-1] == "router" and isinstance(each.ctx, ast.Load)
        for each in found
    )


def test_nobody_reads_the_latencies_of_a_file_in_cycles_alone() -> None:
    """`in_cycles` and `router_parameters` say what they are where the file gives them in ns."""
    of_parameters = {"model/network/build.py", "model/network/wiring.py", "model/network/service_ports.py"}
    known = {"model/topology/link_times.py", "model/network/settings.py", *of_parameters}
    files = [each for folder in ("model", "sim", "gen", "hw", "src") for each in (ROOT / folder).rglob("*.py")]
    assert len(files) > 100
    assert {each.relative_to(ROOT).as_posix() for each in files if _reads_cycles(each)} == known


PROGRAM = "workload: {kind: collective, operation: alltoall, bytes: 700, collectives: {alltoall: linear}}\n"
TIMES = {
    "link_latency_cycles": 40, "global_latency_cycles": 41, "host_latency_cycles": 42, "cycle_ns": 2.0, "flit_ns": 9,
    "link_ns": 500, "global_ns": 501, "host_ns": 502, "end_ns": 50, "cycles_per_flit": 3,
}  # fmt: skip
CYCLES = {
    "switching": "vct", "rc_cycles": 9, "sa": "wavefront", "arbiter": "matrix", "speculation": "true",
    "vc_release": "credits", "credit_delay_cycles": 20,
}  # fmt: skip

#: keys of CYCLES that areas and energies of allocators depend on, with engine flow, too
OF_ALLOCATORS = {"sa", "speculation"}


def span_of(config: Config) -> Any:
    found = run_app(config)
    assert isinstance(found, AppRun)
    return found.found.makespan_s, found.found.energy_j


@pytest.mark.parametrize("key", [*TIMES, *CYCLES])
@pytest.mark.parametrize("engine", ["flow", "packet"])
def test_what_is_told_of_a_program_changes_nothing(engine: str, key: str) -> None:
    """Times of a program's network are those of section timing; engine flow has no cycles."""
    app = f"{PROGRAM}app: {{engine: {engine}{', backend: embedded' if engine == 'flow' else ''}}}\n"
    with_cycle = "cycle_ns: 2.0, " if key in ("flit_ns", "link_ns", "global_ns", "host_ns", "end_ns") else ""
    more = "link_ns: 1, " if key == "end_ns" else ""
    config = router(f"{with_cycle}{more}{key}: {(TIMES | CYCLES)[key]}", app)
    told = f"router.{key}" in unused_sections(config, ["app"])
    assert told == (key in TIMES or (engine == "flow" and key not in OF_ALLOCATORS))
    if told:
        assert span_of(config) == span_of(router("", app))
    elif engine == "flow":
        (span, energy), (plain_span, plain_energy) = span_of(config), span_of(router("", app))
        assert span == plain_span and energy > plain_energy
