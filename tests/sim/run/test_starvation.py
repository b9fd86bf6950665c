"""Packets and hosts that stand still while others go on are noticed and named."""

import numpy as np

from hopforge.model.config import parse_config
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.run.starvation import StarvationWatch

TEXT = "name: x\ntopology: {kind: mesh, radices: [3, 1]}\nrouter: {vcs: 1, buffer_flits: 2}\n"


def watched(limit: int) -> tuple[Simulation, StarvationWatch]:
    run = Simulation(parse_config(TEXT), 0.3, 1)
    return run, StarvationWatch(run.topology, run.state, limit, 100)


def look(run: Simulation, watch: StarvationWatch, samples: int) -> None:
    for _ in range(samples):
        run.advance(100)
        watch.note()


def test_a_network_that_moves_starves_nobody() -> None:
    run, watch = watched(300)
    look(run, watch, 20)
    assert not watch.some


def test_a_blocked_channel_names_the_packets_in_front_of_it_and_the_host_behind_them() -> None:
    """Router 1 loses the credits of its channel to router 2 for good; hosts 0 and 1 go on with each other."""
    run, watch = watched(300)
    look(run, watch, 3)
    topology, ports = run.topology, run.topology.max_ports
    port = int(np.flatnonzero(topology.peer_router[1] == 2)[0])
    run.state["output_vc"]["credits"][ports + port] = 0
    run.state["output_vc"]["owner"][ports + port] = 0  # never free again
    run.state["output_port"]["free_mask"][ports + port] = 0
    look(run, watch, 12)
    assert watch.some
    found = {name: np.asarray(column).tolist() for name, column in watch.columns().items()}
    packets = [k for k, kind in enumerate(found["kind"]) if kind == "packet"]
    assert packets
    assert {found["dst"][k] for k in packets} == {2}
    assert {found["router"][k] for k in packets} <= {0, 1}
    assert min(found["still_cycles"]) >= 300
    assert "stands at router" in watch.words()
    assert "to host 2" in watch.words()


def test_after_a_long_pause_the_watch_begins_anew() -> None:
    run, watch = watched(300)
    look(run, watch, 2)
    run.advance(5000)
    watch.note()
    assert not watch.some
