"""Networks of one router: no links, and every packet is at its last router at once."""

from itertools import product

import pytest

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.router.factor import compile_tables
from hopforge.model.routing import ROUTING, RoutingError
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.topology.configured import network_topology
from hopforge.sim.run.simulation import Simulation

TOPOLOGIES = {
    "mesh": "{kind: mesh, radices: [1], hosts_per_router: 3}",
    "torus": "{kind: torus, radices: [1, 1], hosts_per_router: 3}",
    "fat_tree": "{kind: fat_tree, k: 3, n: 0}",
    "butterfly": "{kind: butterfly, k: 3, n: 1}",
    "dragonfly": "{kind: dragonfly, p: 3, a: 1, h: 1, g: 1}",
}
SPREADS = ("", ", spread: packet", ", spread: flow", ", spread: entropy")
ALGORITHMS = sorted(set(ROUTING) - {"file"})


@pytest.mark.parametrize(("kind", "algorithm"), list(product(TOPOLOGIES, ALGORITHMS)))
def test_packets_of_every_algorithm_reach_hosts_of_the_same_router(kind: str, algorithm: str) -> None:
    """What is taken works, and can be a table of the router or says why not."""
    spreads = SPREADS if algorithm in ("minimal", "valiant") else SPREADS[:1]
    for spread in spreads:
        entropy = "traffic: {entropy: {}}" if "entropy" in spread else ""
        text = (
            f"name: one\ntopology: {TOPOLOGIES[kind]}\nrouter: {{vcs: 6, buffer_flits: 4, flit_bits: 128}}\n"
            f"routing: {{algorithm: {algorithm}{spread}}}\n{entropy}\n"
        )
        try:
            config = parse_config(text)
            run = Simulation(config, load=0.5, seed=1)
        except UserError:
            continue
        run.advance(300)
        assert int(run.state.senders["flits_received"].sum()) > 300, spread
        topology = network_topology(config)
        try:
            tables = compile_tables(topology, routing_plan(config, topology), 6, algorithm)
        except RoutingError:
            continue
        assert (tables.ports[0] == 1 << topology.host_port.astype("uint64")).all()
