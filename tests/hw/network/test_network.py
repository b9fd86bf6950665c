"""A 2×2 mesh of RTL routers: every cycle against golden routers, every flit against the network simulator."""

import re

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.hw.network.network import Network
from hopforge.model.config import parse_config
from hopforge.model.router.flit import Flit, PortOutputs
from hopforge.model.router.links import End, Link, topology_hosts, topology_links
from hopforge.model.router.network import HostModel, NetworkModel, Packet
from hopforge.model.router.params import Route, RouterParams
from hopforge.model.router.reply_rules import ReplyRules
from hopforge.model.router.stream_params import StreamParams
from hopforge.sim.run.simulation import Simulation

TAKEN = 3  # kind in the simulator's log


@pytest.mark.parametrize(
    ("latency", "more"),
    [
        (1, {"speculation": True}),
        pytest.param(2, {"va": "wavefront", "sa": "input_first", "rc_cycles": 1}, marks=pytest.mark.study),
    ],
)
def test_flits_arrive_when_the_simulator_says(latency: int, more: dict) -> None:
    settings = {"vcs": 2, "buffer_flits": 3, **more}
    given = settings | {"link_latency_cycles": latency}
    text = ", ".join(f"{key}: {str(value).lower()}" for key, value in given.items())
    config = parse_config(f"name: test\ntopology: {{kind: mesh, radices: [2, 2]}}\nrouter: {{{text}}}\n")
    rng = np.random.default_rng(latency)
    count = 40
    script = (
        rng.integers(0, 4, count),
        np.sort(rng.integers(0, 50, count)),
        rng.integers(0, 4, count),
        rng.integers(1, 5, count),
    )
    run = Simulation(config, 0.1, 1, script=script, log_events=20000)
    cycles = 150
    run.advance(cycles)
    assert run.state.flits_in_flight == 0
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])].tolist()
    want = sorted((cycle, host, packet, flit) for cycle, kind, host, _, packet, flit in log if kind == TAKEN)

    topology = run.topology
    tables = []
    for router in range(4):  # dimension order: port 0 host, 1 and 2 dimension 0, 3 and 4 dimension 1
        table = [Route(0)] * (int(topology.host_address.max()) + 1)
        for host in range(4):
            turn = host ^ router
            # On the mesh a router with coordinate 0 has its neighbour in +, the other one in −.
            port = (1 + (router & 1)) if turn & 1 else (3 + (router >> 1)) if turn & 2 else 0
            table[int(topology.host_address[host])] = Route(1 << port)
        tables.append(tuple(table))
    params = [RouterParams(ports=5, tag_bits=16, routes=table, **settings) for table in tables]
    links, hosts = topology_links(topology, latency), topology_hosts(topology)
    dut = Network(routers=params, links=links, hosts=hosts)
    golden = NetworkModel(params, links)
    queues: list[list[Packet]] = [[] for _ in hosts]
    for host, created, target, flits in zip(*(column.tolist() for column in script), strict=True):
        head = int(topology.host_address[target]) | host << 24 | len(queues[host]) << 48
        queues[host].append(Packet(created, head, flits, int(rng.integers(1 << 60))))
    models = [HostModel(params[end.router], queue) for end, queue in zip(hosts, queues, strict=True)]

    async def bench(ctx):
        for cycle in range(cycles):
            outside = {}
            visible = golden.visible()
            for pins, end, model in zip(dut.host, hosts, models, strict=True):
                flit = Flit(*(ctx.get(getattr(pins.out_flit, name)) for name in Flit._fields))
                got = PortOutputs(
                    flit if ctx.get(pins.out_valid) else None,
                    ctx.get(pins.in_credit_vc) if ctx.get(pins.in_credit_valid) else None,
                )
                assert got == visible[end.router][end.port]._replace(drops=0), f"cycle {cycle}, {end}"
                outside[end] = row = model.step(cycle, got)
                ctx.set(pins.in_valid, row.flit is not None)
                if row.flit is not None:
                    ctx.set(pins.in_flit, row.flit._asdict())
                ctx.set(pins.out_credit_valid, row.credit is not None)
                ctx.set(pins.out_credit_vc, row.credit or 0)
            golden.step(outside)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()

    got = []
    for host, model in enumerate(models):
        current: dict[int, int] = {}
        for cycle, flit in model.received:
            if flit.is_head:
                current[flit.vc] = (flit.data >> 24 & 0xFFFFFF) << 40 | flit.data >> 48 & 0xFFFF
            got.append((cycle, host, current[flit.vc], flit.kind))
    assert len(got) == int(script[3].sum())
    assert sorted(got) == want


ROUTER = RouterParams(ports=3, vcs=2, buffer_flits=4, routes=(Route(1),))
WIDE = RouterParams(ports=3, vcs=2, buffer_flits=4, width_bits=99)
DEEP = RouterParams(ports=3, vcs=2, buffer_flits=5)


@pytest.mark.parametrize(
    ("routers", "links", "hosts", "message"),
    [
        ([], [], [], "routers must be at least 1, not 0"),
        ([ROUTER, WIDE], [], [], "routers[1] must have flits of 64 bits and 2 VCs"),
        ([ROUTER], [Link(End(0, 0), End(1, 0))], [], "links[0].target.router must be below 1, not 1"),
        ([ROUTER], [Link(End(0, 3), End(0, 0))], [], "links[0].source.port must be below 3, not 3"),
        ([ROUTER], [Link(End(0, 0), End(0, 1), 0)], [], "links[0].latency_cycles must be at least 1, not 0"),
        (
            [ROUTER],
            [Link(End(0, 0), End(0, 1)), Link(End(0, 2), End(0, 1))],
            [],
            "links[1].target must be a port of its own, not port 1 of router 0 as links[0].target",
        ),
        (
            [ROUTER],
            [Link(End(0, 0), End(0, 1))],
            [End(0, 1)],
            "hosts[0] must be a port of its own, not port 1 of router 0 as links[0].target",
        ),
        (
            [ROUTER, DEEP],
            [Link(End(0, 0), End(1, 1))],
            [],
            "links[0]: the credits of its source must be the 5 flits of its target, not 4",
        ),
    ],
)
def test_errors_name_what_does_not_fit(routers: list, links: list, hosts: list, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Network(routers=routers, links=links, hosts=hosts)


@pytest.mark.parametrize(
    ("ports", "more", "message"),
    [
        ([1], {}, "streams must be none or one for each of 2 hosts, not 1"),
        ([1, 1], {}, "streams[1] must be at port 2 of router 0, as hosts[1]"),
        ([1, 2], {"replies": ReplyRules()}, "streams must be none with replies or acknowledges"),
    ],
)
def test_streams_that_do_not_fit(ports: list[int], more: dict, message: str) -> None:
    streams = [StreamParams(router=ROUTER, port=port) for port in ports]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Network(routers=[ROUTER], links=[], hosts=[End(0, 1), End(0, 2)], streams=streams, **more)
