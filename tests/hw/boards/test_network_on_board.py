"""Networks with hosts on a board, against the golden routers and hosts."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from board_bench import BoardBench

from hopforge.gen.fpga.board_design import network_on_board_design
from hopforge.hw.boards.network import NetworkOnBoard
from hopforge.model.board.registers import BoardIdentity
from hopforge.model.config import parse_config
from hopforge.model.router.configured import network_links
from hopforge.model.router.csr import PORT_COUNTERS, ROUTER_CSR_ADDR_BITS
from hopforge.model.router.links import topology_hosts
from hopforge.sim.boards.twin_network import PacketRequests, twin_of_network

RING = "name: t\ntopology: {kind: torus, radices: [3]}\nrouting: {algorithm: dor}\n"
NETWORKS = {
    "wormhole": RING + "router: {vcs: 2, buffer_flits: 3, flit_bits: 64}\n",
    "vct": RING + "router: {vcs: 2, buffer_flits: 8, switching: vct, vc_release: credits, flit_bits: 72}\n",
}


def network(words):
    config = parse_config(words)
    design = network_on_board_design(config)
    identity = BoardIdentity(design="network", fingerprint=7, clock_hz=10**6)
    links, hosts = network_links(config, design.topology), topology_hosts(design.topology)
    return design, NetworkOnBoard(routers=design.params, links=links, hosts=hosts, identity=identity)


@pytest.mark.parametrize(("name", "requests"), [
    ("wormhole", PacketRequests(seed=0, count=12, period=0, lengths=7)),
    ("vct", PacketRequests(seed=2**32 - 1, count=12, period=5, lengths=3)),
])  # fmt: skip
def test_every_counter_is_that_of_the_golden_network(name, requests):
    golden, design = network(NETWORKS[name])
    twin = twin_of_network(golden, requests)
    seen = {}

    async def steps(bench, read, write, idle):
        for _ in range(2):  # a second run, without a reset
            for register, word in vars(requests).items():
                await write(bench.at(register.upper()), word)
            await write(bench.at("CTRL"), 1)
            await idle()
            seen["cycles"] = await read(bench.at("CYCLES"))
            seen["status"] = await read(bench.at("STATUS"))
        for number in range(len(twin.hosts)):
            await write(bench.at("HOST"), number)
            seen[number] = tuple([await read(bench.at(field.upper())) for field in twin.hosts[0]._fields])
        for router in range(len(golden.params)):
            for counter, base, _ in PORT_COUNTERS:
                row = [
                    await read(router << ROUTER_CSR_ADDR_BITS | base + port) for port in range(golden.params[0].ports)
                ]
                seen[router, counter] = tuple(row)

    BoardBench(design).run(steps)
    assert seen["status"] == 0
    assert [seen[number][1:4] for number in range(3)] == [host[1:4] for host in twin.hosts]
    twice = {"FLITS_IN": twin.flits_in, "FLITS_OUT": twin.flits_out, "DROPS": twin.drops}
    for counter, rows in twice.items():
        for router, row in enumerate(rows):
            assert seen[router, counter] == tuple(2 * value for value in row)


def test_cycles_and_checksums_of_a_first_run():
    requests = PacketRequests(seed=9, count=15, period=1, lengths=3)
    golden, design = network(NETWORKS["wormhole"])
    twin = twin_of_network(golden, requests)
    assert sum(host.packets for host in twin.hosts) == 3 * 15
    assert len({host.checksum for host in twin.hosts}) == 3
    seen = []

    async def steps(bench, read, write, idle):
        for register, word in vars(requests).items():
            await write(bench.at(register.upper()), word)
        await write(bench.at("CTRL"), 1)
        await idle()
        seen.append(await read(bench.at("CYCLES")))
        for number in range(3):
            await write(bench.at("HOST"), number)
            seen.append(tuple([await read(bench.at(field.upper())) for field in twin.hosts[0]._fields]))
        await write(bench.at("HOST"), 3)
        seen.append(await read(bench.at("SENT")))

    BoardBench(design).run(steps)
    assert seen == [twin.cycles, *twin.hosts, 0]
