"""Route computation by lookup: the kernel against networks of golden routers with golden engines, cycle by cycle."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.links import End, topology_hosts
from hopforge.model.lookup_routing import engine_params, network_rows
from hopforge.model.network.lookup_state import COUNTS
from hopforge.model.node_reduction import NodeReduction
from hopforge.model.router import PortInputs
from hopforge.model.router_network import EngineSetup, HostModel, NetworkModel, Packet
from hopforge.model.router_program import engine_registers
from hopforge.model.router_tables import compile_tables, network_links, network_params
from hopforge.model.simulation import Simulation
from hopforge.model.tcam import Tcam, TcamRow

SENT, TAKEN = 2, 3  # kinds of the simulator's log
TAG_BITS = 16
WIDTH_BITS = 80

NETWORKS = {
    "mesh": ("{kind: mesh, radices: [2, 2]}", "{algorithm: dor}", 1),
    "ring": ("{kind: torus, radices: [5], hosts_per_router: 2}", "{algorithm: dor}", 2),
    "torus": ("{kind: torus, radices: [3, 3]}", "{algorithm: dor}", 2),
    "tree": ("{kind: fat_tree, k: 2, n: 1}", "{algorithm: d_mod_k}", 1),
    "adaptive tree": ("{kind: fat_tree, k: 2, n: 1}", "{algorithm: nca}", 1),
    "dragonfly": ("{kind: dragonfly, p: 1, a: 2, h: 1}", "{algorithm: dragonfly_min}", 2),
}


def configure(network: str, router: dict[str, Any], lookup: dict[str, Any]) -> Config:
    topology, routing, _ = NETWORKS[network]
    nested = {"cache": {"entries": 16} | lookup.get("cache", {}), "tcam": lookup.get("tcam", {})}
    lookup = {key: value for key, value in lookup.items() if key not in nested}
    if network == "adaptive tree":
        nested["cache"] = nested["cache"] | {"output_kind": "port_set"}

    def flow(values: dict[str, Any]) -> str:
        words = (f"{key}: {str(value).lower()}" for key, value in values.items())
        return "{" + ", ".join(words) + "}"

    return parse_config("\n".join([
        "name: test",
        f"topology: {topology}",
        f"routing: {routing}",
        f"router: {flow({'route_computation': 'lookup'} | router)}",
        f"lookup: {flow(lookup | {key: flow(values) for key, values in nested.items()})}",
    ]))  # fmt: skip


def random_script(hosts: int, packets: int, last: int, longest: int, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return (
        rng.integers(0, hosts, packets), np.sort(rng.integers(0, last, packets)), rng.integers(0, hosts, packets),
        rng.integers(1, longest + 1, packets),
    )  # fmt: skip


def row_words(rows: Sequence[TcamRow]) -> list[tuple[str, int]]:
    words: list[tuple[str, int]] = []
    for number, row in enumerate(rows):
        words += [("TCAM_VALUE_LO", row.value), ("TCAM_MASK_LO", row.mask), ("TCAM_OUTPUT_LO", row.output)]
        words.append(("TCAM_WRITE", number | 1 << 31))
    return words


def golden_setups(config: Config, run: Simulation) -> list[EngineSetup]:
    params, topology = engine_params(config), run.topology
    reduction = NodeReduction.from_config(config, topology)
    setups = []
    for router, rows in enumerate(network_rows(config, topology, run.plan)):
        words = list(engine_registers(config, params, reduction, router).items())
        tcam = None
        if params.tcam_kind == "external":
            tcam = Tcam.of_rows(rows, width_bits=params.address_bits)
        else:
            words += row_words(rows[: params.tcam_rows])
        if config.lookup.cache.enabled:
            words.append(("CTRL", 1))
        setups.append(EngineSetup(tuple(words), tcam, config.lookup.tcam.latency_cycles))
    return setups


def golden_run(config: Config, run: Simulation, script: Sequence[np.ndarray], cycles: int) -> tuple[Any, list[Any]]:
    """Return the network of golden routers after `cycles` cycles, and its hosts."""
    topology = run.topology
    tables = compile_tables(topology, run.plan, config.router.vcs, config.routing.algorithm)
    params = network_params(
        config, topology, tables, lookup=engine_params(config), width_bits=WIDTH_BITS, tag_bits=TAG_BITS
    )
    network = NetworkModel(params, network_links(config, topology), golden_setups(config, run))
    queues: list[list[Packet]] = [[] for _ in range(topology.hosts)]
    for host, created, target, flits in zip(*(column.tolist() for column in script), strict=True):
        head = int(topology.host_address[target]) | host << 24 | len(queues[host]) << 48
        queues[host].append(Packet(created, head | flits << 48 + TAG_BITS, flits))
    ends = topology_hosts(topology)
    masks = tables.inject_mask
    assert (masks == (1 << config.router.vcs) - 1).all()
    hosts = [HostModel(params[end.router], queue) for end, queue in zip(ends, queues, strict=True)]
    for cycle in range(cycles):
        visible = network.visible()
        outside: dict[End, PortInputs] = {}
        for model, end in zip(hosts, ends, strict=True):
            outside[end] = model.step(cycle, visible[end.router][end.port])
        network.step(outside)
    return network, hosts


def compare(config: Config, packets: int = 40, last: int = 60, cycles: int = 700, seed: int = 1) -> Simulation:
    """Run both; every flit is sent and taken in the same cycle, all counts agree."""
    topology = Simulation(config, 0.1, 1, check=False).topology
    longest = min(3, config.router.buffer_flits)
    script = random_script(topology.hosts, packets, last, longest, seed)
    run = Simulation(config, 0.1, 1, script=script, log_events=100000, check=False)
    run.advance(cycles)
    run.check_conservation()
    assert run.state.flits_in_flight == 0, "the run is too short"
    network, hosts = golden_run(config, run, script, int(run.state["cycle"]))
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    for kind, what in ((SENT, "sent"), (TAKEN, "received")):
        want = [(cycle, at, number, flit) for cycle, k, at, _, number, flit in log.tolist() if k == kind]
        got = []
        for host, model in enumerate(hosts):
            current: dict[int, int] = {}
            for cycle, flit in getattr(model, what):
                if flit.is_head:
                    current[flit.vc] = (flit.data >> 24 & 0xFFFFFF) << 40 | flit.data >> 48 & (1 << TAG_BITS) - 1
                got.append((cycle, host, current[flit.vc], flit.kind))
        assert sorted(got) == sorted(want), what
    assert run.state.lookup is not None
    counts = run.state.lookup.counts
    ports = run.topology.max_ports
    for router, model in enumerate(network.routers):
        for port, engine in enumerate(model.engines):
            mine = {name: int(counts[name][router * ports + port]) for name in COUNTS}
            misses = sum(mine[cause] for cause in ("compulsory", "capacity", "conflict", "unmatched"))
            mine |= {"misses": misses, "lookups": mine["hits"] + mine["merges"] + misses}
            same = ("lookups", "hits", "misses", "merges", "fills", "evictions", "drops")
            assert [mine[name] for name in same] == [engine.counters[name] for name in same], (router, port)
        drops = [output.drops for output in model.visible()]
        assert drops == run.state["input_port"]["drops"][router * ports : (router + 1) * ports].tolist()
    return run


ENGINES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a cycle": ({"vcs": 2}, {"pipeline_depth": 1}),
    "two cycles": ({"vcs": 4}, {"pipeline_depth": 2, "mshrs": 2}),
    "three cycles": ({"vcs": 4, "speculation": True}, {"mshrs": 1}),
    "four cycles": ({"vcs": 4}, {"pipeline_depth": 4, "cache": {"entries": 2, "ways": 2}}),
    "whole addresses": ({"vcs": 2}, {"reduction": False, "cache": {"entries": 4, "ways": 2, "policy": "fifo"}}),
    "no cache": ({"vcs": 2}, {"cache": {"enabled": False}, "tcam": {"latency_cycles": 3}}),
}


@pytest.mark.parametrize("engine", list(ENGINES))
@pytest.mark.parametrize("network", list(NETWORKS))
def test_kernel_equals_golden_network(network: str, engine: str) -> None:
    router, lookup = ENGINES[engine]
    run = compare(configure(network, dict(router), {"tcam": {"kind": "external"}} | lookup))
    assert run.state["packets_dropped"] == 0
