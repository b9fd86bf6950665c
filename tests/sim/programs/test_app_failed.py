"""Programs on networks of which a part has failed from the begin on: ways round, ranks at hosts that work."""

import sys
from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.topology.failed import FailureError
from hopforge.sim.programs.app_setup import AppSetup, prepare_app
from hopforge.sim.programs.application import AppRun, app_rows, run_app
from hopforge.sim.programs.smpi_execution import run_executable

RING = "topology: {kind: torus, radices: [5]}\ntables: {scheme: shortest, layers: acro}\n"
TABLES = "routing: {algorithm: tables}\n"
TIMES = "timing: {link_gbps: 80, switch_base_ns: 51, cable_ns: 100}\n"
QUEUED = (
    "router: {model: input_output_queued, vcs: 4, buffer_flits: 3, output_buffer_flits: 2, flit_ns: 6.4, "
    "crossbar_ns: 1.6, link_ns: 8, global_ns: 22, host_ns: 1.6, end_ns: 1}\nrouting: {algorithm: shortest}\n"
)
SIZE, MTU, ENVELOPE = 51_200, 64, 16


def program(folder: Path, more: str, *, goal: bool = False, network: str = RING + TABLES) -> Config:
    """Return a message from rank 0 to rank 1, of calls or of a graph."""
    if goal:
        path = folder / "x.goal"
        path.write_text(f"num_ranks 2\nrank 0 {{\nsend {SIZE}b to 1\n}}\nrank 1 {{\nrecv {SIZE}b from 0\n}}\n")
    else:
        path = folder / "program"
        path.mkdir(exist_ok=True)
        for rank, line in enumerate((f"send 1 0 {SIZE}", "recv 0 0 -1")):
            (path / f"rank-{rank}.txt").write_text(f"{rank} init\n{rank} {line}\n")
    return parse_config(f"name: x\n{network}{TIMES}workload: {{kind: trace, file: {path}, mtu_bytes: {MTU}}}\n{more}")


@pytest.mark.parametrize("lookup", ["hit", "cache"])
def test_a_flow_takes_the_way_round(tmp_path: Path, lookup: str) -> None:
    """Rank 0 to rank 1 of a ring of five: over one link, or over the four others; 80 Gbit/s are 0.1 ns a byte."""
    lookups = []
    for failed, routers in (("", 2), ("failed: {links: [[0, 1]]}\n", 5)):
        found = run_app(program(tmp_path, f"{failed}app: {{backend: embedded, lookup: {lookup}}}\n"))
        assert isinstance(found, AppRun)
        if lookup == "hit":
            exact = (SIZE + ENVELOPE) * 0.1 + routers * 51 + (routers + 1) * 100
            assert found.found.makespan_s * 1e9 == pytest.approx(exact, rel=1e-9)
        lookups.append(found.energy.set_index("part")["cache_j"]["lookup"] / routers)
    assert lookups[0] == pytest.approx(lookups[1])


def test_no_flow_of_a_graph_takes_what_has_failed(tmp_path: Path) -> None:
    config = program(tmp_path, "failed: {links: [[0, 1]]}\napp: {loggops: {O: 0}}\n", goal=True)
    found = run_app(config)
    assert isinstance(found, AppRun)
    assert found.links is not None
    links = set(found.links.table["link"])
    assert len(links) == 6
    assert dict(app_rows(found))["failed"] == "link 0–1"
    assert not any("router 0 to router 1" in link for link in links)


def test_what_only_knows_coordinates_takes_whole_networks(tmp_path: Path) -> None:
    config = program(tmp_path, "failed: {links: [[0, 1]]}\n", network=RING)
    with pytest.raises(FailureError, match=r"^failed: link 0–1: app.engine: flow with routing.algorithm=dor takes"):
        prepare_app(config)


@pytest.mark.parametrize("goal", [False, True])
@pytest.mark.parametrize(("engine", "network"), [
    ("flow", RING + TABLES), ("packet", RING + TABLES), ("packet", RING + QUEUED),
])  # fmt: skip
def test_ranks_are_at_hosts_that_work(tmp_path: Path, engine: str, network: str, *, goal: bool) -> None:
    """A rank at a host that sends nothing: the run went on for ever."""
    sides = "failed: {switches: [1]}\n"
    config = program(tmp_path, f"{sides}app: {{engine: {engine}}}\n", goal=goal, network=network)
    with pytest.raises(FailureError, match=r"^failed: the switch of host 1 has failed, and rank 1 is there; hosts of"):
        prepare_app(config)
    elsewhere = config.model_copy(update={"failed": config.failed.model_copy(update={"switches": (3,)})})
    assert isinstance(prepare_app(elsewhere), AppSetup)


@pytest.mark.parametrize("goal", [False, True])
@pytest.mark.parametrize(("engine", "failing", "says"), [
    ("flow", "failed: {switches: [1]}\n", r"^failed: the switch of host 1 has failed, and rank 0 is there"),
    ("packet", "failed: {switches: [1]}\n", r"^failed: the switch of host 1 has failed, and rank 0 is there"),
    ("packet", "simulation: {failures: [{cycle: 9, switches: [1]}]}\n", r"takes host 1 of rank 0 along"),
])  # fmt: skip
def test_links_of_machines_work_too(tmp_path: Path, engine: str, failing: str, says: str, *, goal: bool) -> None:
    """The second link of the machine of rank 0 is at the switch that fails, the first is not."""
    path = tmp_path / "x.goal"
    sends = "".join(f"send 64b to 1 tag {k}\n" for k in range(4))
    takes = sends.replace("send", "recv").replace("to 1", "from 0")
    path.write_text(f"num_ranks 2\nrank 0 {{\n{sends}}}\nrank 1 {{\n{takes}}}\n")
    program = f"trace, file: {path}" if goal else "collective, operation: alltoall, ranks: 2, bytes: 64, repeat: 4"
    config = parse_config(
        "name: x\ntopology: {kind: clos, leaves: 4, middles: 2, hosts_per_router: 2, host_links: 2}\n"
        f"{TABLES}tables: {{scheme: shortest, layers: acro}}\n{failing}router: {{vcs: 4}}\n{TIMES}"
        f"workload: {{kind: {program}}}\napp: {{engine: {engine}}}\n"
    )
    with pytest.raises(FailureError, match=says):
        prepare_app(config)


def test_what_runs_in_simgrid_takes_whole_networks() -> None:
    """`hopforge app --program` ran it on the network without its failures."""
    config = parse_config(f"name: x\n{RING}{TABLES}failed: {{links: [[0, 1]]}}\n")
    with pytest.raises(FailureError, match=r"^failed: link 0–1: hopforge app --program takes whole networks only"):
        run_executable(config, Path(sys.executable), 2)


@pytest.mark.parametrize("goal", [False, True])
def test_a_program_that_stands_still_is_told(tmp_path: Path, *, goal: bool) -> None:
    """No file leads there, as far as is known; a host that sends nothing stands for the next mistake of ours."""
    config = program(tmp_path, "app: {engine: packet}\nsimulation: {deadlock_cycles: 3000}\n", goal=goal)
    setup = prepare_app(config)
    assert isinstance(setup, AppSetup)
    assert setup.simulation is not None
    setup.simulation._silence(np.arange(5) == 0)
    with pytest.raises(UserError, match=r"^workload: the program cannot end: in cycle .*rank 1|1 message did not"):
        run_app(config, setup=setup)
    assert int(setup.simulation.state["cycle"]) <= 3000 + 3 * 2000
