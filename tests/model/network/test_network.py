"""The network kernel against definitions: zero-load formula, conservation, credits, exclusive ports, bad parameters."""

import numpy as np
import pandas as pd
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.network.core.state import NetworkError
from hopforge.model.network.settings import RouterParameters, Script
from hopforge.model.routing.graphs.graph import distances
from hopforge.sim.run.simulation import Simulation

MESH = "topology: {kind: mesh, radices: [4, 3]}"
TORUS = "topology: {kind: torus, radices: [5, 4]}"


def config(*lines: str) -> Config:
    return parse_config("\n".join(("name: test", *lines)))


def script(*packets: tuple[int, int, int, int]) -> Script:
    return tuple(np.array(column) for column in zip(*packets, strict=True))


def deliver(checked: Config, packets: Script, cycles: int = 5000) -> pd.DataFrame:
    run = Simulation(checked, 0.1, 1, script=packets, log_events=200000)
    run.advance(cycles)
    run.check_conservation()
    assert run.state.flits_in_flight == 0
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    return pd.DataFrame(log, columns=["cycle", "kind", "source", "target", "packet", "flit"])


@pytest.mark.parametrize("topology, latency", [(MESH, 1), (TORUS, 2), (TORUS, 3)])
@pytest.mark.parametrize("flits", [1, 4])
@pytest.mark.parametrize("rc, speculation", [(0, False), (1, False), (3, False), (0, True)])
def test_zero_load_latency_is_the_formula(topology: str, latency: int, flits: int, rc: int, speculation: bool) -> None:
    checked = config(
        topology,
        f"router: {{link_latency_cycles: {latency}, rc_cycles: {rc}, speculation: {str(speculation).lower()}}}",
    )
    run = Simulation(checked, 0.1, 1)
    hosts = run.topology.hosts
    distance = distances(run.topology)
    for source, target in [(0, 0), (0, hosts - 1), (3, 7), (hosts - 1, 1)]:
        log = deliver(checked, script((source, 10, target, flits)))
        routers = int(distance[source, target]) + 1
        stages = 3 + rc - (1 if speculation else 0)
        expected = stages * routers + latency * (routers - 1) + 3 + (flits - 1)
        assert log[log.kind == 3].cycle.max() - 10 == expected


@pytest.mark.parametrize(("rc", "va"), [(2, "output_first"), (1, "free_queue")])
def test_zero_load_latency_with_look_ahead(rc: int, va: str) -> None:
    """Routes are computed in the first router only."""
    checked = config(TORUS, f"router: {{link_latency_cycles: 2, rc_cycles: {rc}, va: {va}, lookahead: true}}")
    run = Simulation(checked, 0.1, 1)
    for source, target in [(0, 0), (3, 7)]:
        log = deliver(checked, script((source, 10, target, 4)))
        routers = int(distances(run.topology)[source, target]) + 1
        stages = 2 if va == "free_queue" else 3
        expected = rc + stages * routers + 2 * (routers - 1) + 3 + (4 - 1)
        assert log[log.kind == 3].cycle.max() - 10 == expected


KINDS = ("input_first", "output_first", "wavefront")


@pytest.mark.parametrize(
    ("va", "sa"),
    [pytest.param(va, sa, marks=() if va == sa else pytest.mark.study) for va in KINDS for sa in KINDS],
)
@pytest.mark.parametrize("arbiter", ["round_robin", "matrix"])
@pytest.mark.parametrize(
    "more", ["speculation: true", "vc_release: credits", "switching: vct", "switching: saf", "cycles_per_flit: 3"]
)
def test_every_flit_arrives_once_and_in_order(va: str, sa: str, arbiter: str, more: str) -> None:
    checked = config(TORUS, f"router: {{va: {va}, sa: {sa}, arbiter: {arbiter}, {more}}}")
    generator = np.random.default_rng(7)
    count = 300
    packets = (
        generator.integers(0, 20, count),
        np.sort(generator.integers(0, 200, count)),
        generator.integers(0, 20, count),
        generator.integers(1, 6, count),
    )
    log = deliver(checked, packets)
    sent, received, grants = (log[log.kind == kind] for kind in (2, 3, 0))
    total = int(packets[3].sum())
    assert len(sent) == len(received) == total
    # every packet arrives at its destination, head first and tail last, one flit per host and cycle
    wanted = {}
    for host in range(20):
        chosen = np.flatnonzero(packets[0] == host)
        chosen = chosen[np.argsort(packets[1][chosen], kind="stable")]
        for number, k in enumerate(chosen):
            wanted[(host << 40) | number] = (int(packets[2][k]), int(packets[3][k]))
    for name, flits in received.groupby("packet"):
        target, length = wanted[int(name)]
        assert set(flits.source) == {target}
        assert len(flits) == length
        kinds = flits.sort_values("cycle").flit.tolist()
        assert kinds == ([3] if length == 1 else [1, *([0] * (length - 2)), 2])
    assert not received.duplicated(["cycle", "source"]).any()
    # one grant per input port, per output port and cycle
    assert not (grants.assign(port=grants.source // 4)).duplicated(["cycle", "port"]).any()
    assert not (grants.assign(port=grants.target // 4)).duplicated(["cycle", "port"]).any()


def test_credits_and_buffers_never_overflow() -> None:
    run = Simulation(config(MESH, "router: {vcs: 2, buffer_flits: 3}"), 0.9, 1)
    for _ in range(200):
        run.advance(7)
        assert run.state["input_vc"]["flits"].max() <= 3
        assert run.state["output_vc"]["credits"].min() >= 0
        assert run.state["output_vc"]["credits"].max() <= 3
        run.check_conservation()


def test_the_pool_of_packets_grows() -> None:
    # far beyond saturation the source queues hold packets of every host, and buffers hold more than the first pool
    run = Simulation(config(MESH, "router: {buffer_flits: 64}"), 1.0, 1)
    before = len(run.state["packet"])
    run.advance(3000)
    assert len(run.state["packet"]) > before
    run.check_conservation()
    used = len(run.state["packet"]) - int(run.state["free_packets"])
    assert used >= run.state["input_vc"]["flits"].sum()  # one-flit packets: one record each


@pytest.mark.parametrize("name, value, message", [
    ("vcs", 17, r"vcs must be 1\.\.16, not 17"),
    ("buffer_flits", 0, r"buffer_flits must be 1\.\.65535, not 0"),
    ("switching", "cut", r"switching must be wormhole, vct or saf, not cut"),
    ("va", "best", r"va must be input_first, output_first, islip, wavefront, max_size, rr_wavefront, loa, pim, "
     r"free_queue, not best"),
    ("arbiter", "lru", r"arbiter must be round_robin or matrix, not lru"),
    ("vc_release", "head", r"vc_release must be tail or credits, not head"),
    ("link_latency_cycles", 0, r"link_latency_cycles must be at least 1, not 0"),
    ("cycles_per_flit", 0, r"cycles_per_flit must be at least 1, not 0"),
])  # fmt: skip
def test_parameters_out_of_range_are_named(name: str, value: object, message: str) -> None:
    with pytest.raises(NetworkError, match=f"^{message}$"):
        RouterParameters(**{name: value})  # type: ignore[arg-type]


def test_networks_that_cannot_be_built_are_one_clear_line() -> None:
    with pytest.raises(NetworkError, match=r"buffer_flits must hold the longest packet \(9 flits\) under vct, not 8"):
        Simulation(config(MESH, "router: {switching: vct}", "traffic: {packet_flits: 9}"), 0.1, 1)
    with pytest.raises(
        NetworkError, match=r"^topology.routers: the network simulator takes at most 512 ports a router, not 513$"
    ):
        Simulation(
            config("topology: {kind: fully_connected, routers: 513}", "routing: {algorithm: shortest}"), 0.1, 1
        )
    # said at once, not after the tables of 8192 routers with 8191 links each
    with pytest.raises(NetworkError, match=r"^topology.routers: the network simulator takes at most 512 ports"):
        Simulation(config("topology: {kind: fully_connected, routers: 8192}", "routing: {algorithm: shortest}"), 0.1, 1)
