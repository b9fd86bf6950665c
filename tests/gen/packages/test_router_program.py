"""Programs of routers: TCAM rows against the routing tables; the register writes against a golden router."""

import dataclasses

import pytest

from hopforge.gen.design.configured import network_design
from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.lookup.node_reduction import NodeReduction
from hopforge.model.lookup.tcam import Tcam
from hopforge.model.router.controlled import BusInputs, ControlledRouterModel
from hopforge.model.router.flit import SINGLE, Flit, PortInputs
from hopforge.model.router.program import tcam_contents


def configure(topology: str, lookup: str = "", routing: str = "", rows: int = 64) -> Config:
    return parse_config(
        f"name: test\ntopology: {{{topology}}}\nrouter: {{vcs: 2, buffer_flits: 2, route_computation: lookup}}\n"
        f"routing: {{{routing}}}\n"
        f"lookup: {{comparators: 4, chunk_bits: [4], cache: {{entries: 16, ways: 2}}, mshrs: 2, "
        f"tcam: {{rows: {rows}, latency_cycles: 2}}{lookup}}}\n"
    )


NETWORKS = [
    configure("kind: mesh, radices: [3, 4], hosts_per_router: 2"),
    configure("kind: torus, radices: [4, 3]", routing="ties: key"),
    configure("kind: torus, radices: [5, 3]", ", reduction: false"),
    configure("kind: fat_tree, k: 2, n: 2", routing="algorithm: d_mod_k"),
    configure("kind: dragonfly, p: 2, a: 4, h: 2", routing="algorithm: dragonfly_min"),
]


@pytest.mark.parametrize("config", NETWORKS, ids=[config.topology.kind for config in NETWORKS])
def test_rows_lead_every_packet_as_the_routing_does(config: Config) -> None:
    design = network_design(config)
    topology = design.topology
    compared = 0
    for router in range(topology.routers):
        rows = design.program(router).rows
        tcam = Tcam.of_rows(rows, width_bits=config.address.width_bits, output_bits=config.lookup.cache.output_bits)
        for host, output in enumerate(design.tables.lookup_outputs(router)):
            if output is not None:  # else no packet to the host comes here
                assert tcam.lookup(int(topology.host_address[host])) == output, (router, host)
                compared += 1
    assert compared >= topology.hosts * 4


@pytest.mark.parametrize("config", [NETWORKS[0], NETWORKS[3]], ids=["mesh", "fat_tree"])
def test_operations_make_a_golden_router_route(config: Config) -> None:
    design = network_design(config)
    number = design.topology.routers // 2
    router = ControlledRouterModel(design.params[number], number)
    idle = [PortInputs()] * design.params[number].ports

    def bus(*operation: int) -> int:
        router.step(idle, BusInputs(*operation))
        return router.step(idle)[1]

    for step in design.program(number).operations:
        if step.kind == "write":
            bus(step.address, 1, 0, step.data)
            continue
        for _ in range(200):
            if bus(step.address, 0, 1) & step.mask == step.data:
                break
        else:
            pytest.fail(f"{step.name} never becomes {step.data:#x}")
    assert router.enable
    want = design.tables.lookup_outputs(number)
    reduction = NodeReduction.from_config(config, design.topology)
    assert router.own == reduction.switch(number).own
    for host, output in enumerate(want):
        if output is None:
            continue
        head = Flit(SINGLE, 0, int(design.topology.host_address[host]))
        rows = [PortInputs(head if port == 0 else None) for port in range(len(idle))]
        left: list[int] = []
        for cycle in range(40):
            outputs, _, _ = router.step(rows if cycle == 0 else idle)
            left += [port for port, shown in enumerate(outputs) if shown.flit is not None]
            if any(shown.flit for shown in outputs):  # the credit back
                router.step([PortInputs(None, shown.flit.vc if shown.flit else None) for shown in outputs])
        assert left == [output & 63], host


def test_more_rows_than_the_tcam_has() -> None:
    design = network_design(configure("kind: mesh, radices: [4, 4]", rows=2))
    rows = len(tcam_contents(design.config, design.topology, design.tables, 9))
    assert rows >= 5  # ports
    with pytest.raises(UserError, match=f"^lookup.tcam.rows must be at least {rows} for router 9, not 2$"):
        design.program(9)


def test_keys_that_say_less_than_the_routes() -> None:
    config = configure("kind: torus, radices: [4, 4]", routing="algorithm: dor, ties: key")
    assert config.lookup.reduction
    design = network_design(config)
    wrong = dataclasses.replace(design.tables, ports=design.tables.ports.copy())
    wrong.ports[0, 1] = 1 << 4  # as host 2 and 3 of the same row it went to port 1
    with pytest.raises(UserError, match="have the same key in router 0, and routing dor sends their packets"):
        tcam_contents(config, design.topology, wrong, 0)


def test_a_hint_names_only_keys_that_the_algorithm_has() -> None:
    text = (
        "name: test\ntopology: {kind: torus, radices: [4]}\nrouting: {algorithm: minimal, spread: flow}\n"
        "router: {vcs: 4, buffer_flits: 2, route_computation: lookup}\n"
        "lookup: {cache: {entries: 4, ways: 2, output_kind: port_set}}\n"
    )
    with pytest.raises(UserError, match=r"use lookup.reduction: false$"):
        network_design(parse_config(text)).program(0)
