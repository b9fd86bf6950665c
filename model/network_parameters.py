"""Sections `routing`, `router`, `traffic` and `workload` as parameters of the simulated network."""

import dataclasses
from typing import Any

import numpy as np

from hopforge.model.config import Config
from hopforge.model.config.workload import ProgramWorkload
from hopforge.model.input_output_queued.build import IntervalSource
from hopforge.model.link_times import input_queued_cycles, port_values
from hopforge.model.network.build import RouterParameters, SourceParameters
from hopforge.model.network.program_arrays import ProgramSource
from hopforge.model.network.records import BERNOULLI, ON_OFF
from hopforge.model.network_topology import over_members, routing_network
from hopforge.model.routing import RoutingPlan, prepare_routing
from hopforge.model.topology import Topology
from hopforge.model.traffic import TrafficError
from hopforge.model.workload import PlacedProgram


def routing_plan(config: Config, topology: Topology) -> RoutingPlan:
    """Section `routing`, made ready for the network."""
    routing = config.routing
    algorithm = str(routing.file) if routing.file is not None else routing.algorithm
    options = routing.model_dump(exclude={"algorithm", "file", "check"})
    options |= {"tables": config.tables, "seed": config.seed, "router": config.router}
    plan = prepare_routing(routing_network(topology), config.router.vcs, algorithm, options)
    return over_members(config, topology, plan)


def router_parameters(config: Config, topology: Topology) -> RouterParameters:
    """Section `router` with the latency of every link."""
    router = config.router
    cycles = input_queued_cycles(router)
    between = cycles.get("link_latency_cycles", router.link_latency_cycles)
    far = cycles.get("global_latency_cycles", router.global_latency_cycles)
    latency: Any = between
    if topology.kind == "dragonfly" and far is not None:
        latency = port_values(topology, between, far, between)
    if topology.link_cycles is not None:
        latency = np.where(topology.link_cycles > 0, topology.link_cycles, between)
    simulated = {field.name for field in dataclasses.fields(RouterParameters)} - {"link_latency_cycles"}
    values = router.model_dump(include=simulated) | {k: v for k, v in cycles.items() if k in simulated}
    return RouterParameters(link_latency_cycles=latency, deadlock_cycles=config.simulation.deadlock_cycles, **values)


def source_parameters(config: Config, load: float, round_packets: tuple[int, int]) -> SourceParameters:
    """Section `traffic` at `load` flits per host and cycle; `round_packets`: those of the pattern."""
    traffic = config.traffic
    rate = load / traffic.mean_flits()
    lengths: Any = traffic.packet_range or (traffic.packet_flits, traffic.packet_flits)
    if traffic.packet_lengths:
        lengths = np.zeros(max(traffic.packet_lengths))
        for length, weight in zip(traffic.packet_lengths, traffic.packet_weights, strict=True):
            lengths[length - 1] += weight
    if traffic.source == "interval":
        return IntervalSource(interval_packets=1 / load)
    if traffic.source == "rounds":
        return IntervalSource(interval_packets=sum(round_packets) / 2 / load, round_packets=round_packets)
    if traffic.source == "bernoulli":
        return SourceParameters(
            kind=BERNOULLI, packet_rate=rate, lengths=lengths, message_packets=traffic.message_packets
        )
    if traffic.burst_load <= load:
        raise TrafficError(f"traffic.burst_load must be above the load {load}, not {traffic.burst_load}")
    to_off = 1 / traffic.burst_cycles
    duty = load / traffic.burst_load
    return SourceParameters(
        kind=ON_OFF,
        packet_rate=traffic.burst_load / traffic.mean_flits(),
        on_to_off=to_off,
        off_to_on=min(to_off * duty / (1 - duty), 1.0),
        lengths=lengths,
        message_packets=traffic.message_packets,
    )


def program_source(config: Config, placed: PlacedProgram) -> ProgramSource:
    """Section `traffic` for the program of section `workload`."""
    traffic, workload = config.traffic, config.workload
    assert isinstance(workload, ProgramWorkload), "checked by model.config"
    return ProgramSource(
        program=placed.program,
        host=placed.host,
        mtu_bytes=workload.mtu_bytes,
        flit_bytes=traffic.flit_bytes,
        rendezvous_bytes=traffic.rendezvous_bytes,
        matched_bytes=traffic.matched_bytes,
        interleaved=traffic.injection == "packets",
        eager_bytes=traffic.eager_bytes,
        cycles_per_flop=traffic.cycles_per_flop,
        cycles_per_second=traffic.cycles_per_second,
    )
