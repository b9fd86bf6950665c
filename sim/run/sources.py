"""Sections `routing`, `router`, `traffic` and `workload` as parameters of the simulated network."""

from dataclasses import replace
from typing import Any

import numpy as np

from hopforge.model.config import Config
from hopforge.model.config.jobs import JobsWorkload
from hopforge.model.config.workload import ProgramWorkload
from hopforge.model.dqn.rules import Rules
from hopforge.model.network.core.kinds import BERNOULLI, ON_OFF
from hopforge.model.network.parts.program_arrays import ProgramSource
from hopforge.model.network.parts.reply_arrays import Replies
from hopforge.model.network.parts.spray_arrays import Spraying
from hopforge.model.network.parts.trail_tables import Acknowledges
from hopforge.model.network.settings import SourceParameters
from hopforge.sim.queued.build import IntervalSource
from hopforge.sim.traffic import TrafficError
from hopforge.sim.traffic.placed import PlacedProgram, check_computing
from hopforge.sim.traffic.scheduled import is_schedule


def source_parameters(config: Config, load: float, round_packets: tuple[int, int]) -> SourceParameters:
    """Section `traffic` at `load` flits per host and cycle; `round_packets`: those of the pattern."""
    traffic, answers = config.traffic, replies(config)
    rate = load / traffic.mean_flits()
    lengths: Any = traffic.packet_range or (traffic.packet_flits, traffic.packet_flits)
    if traffic.packet_lengths:
        lengths = np.zeros(max(traffic.packet_lengths))
        for length, weight in zip(traffic.packet_lengths, traffic.packet_weights, strict=True):
            lengths[length - 1] += weight
    if traffic.source in ("interval", "rounds") and not load > 0:
        raise TrafficError(f"load must be more than 0 with traffic.source {traffic.source}, not {load:g}")
    if traffic.source == "interval":
        return IntervalSource(interval_packets=1 / load)
    if traffic.source == "rounds":
        return IntervalSource(interval_packets=sum(round_packets) / 2 / load, round_packets=round_packets)
    if traffic.source == "bernoulli":
        return SourceParameters(
            kind=BERNOULLI, packet_rate=rate, lengths=lengths, message_packets=traffic.message_packets,
            replies=answers, acknowledges=acknowledges(config),
        )
    check_bursts(config, load)
    to_off = 1 / traffic.burst_cycles
    duty = load / traffic.burst_load
    return SourceParameters(
        kind=ON_OFF,
        packet_rate=traffic.burst_load / traffic.mean_flits(),
        on_to_off=to_off,
        off_to_on=min(to_off * duty / (1 - duty), 1.0),
        lengths=lengths,
        message_packets=traffic.message_packets,
        replies=answers,
        acknowledges=acknowledges(config),
    )


def check_bursts(config: Config, load: float) -> None:
    """Refuse a load that bursts with a pause of at least one cycle between them do not offer.

    Raises
    ------
    TrafficError
        The load is above `burst_load`, or too near to it for bursts of `burst_cycles`.
    """
    traffic = config.traffic
    if traffic.source != "on_off":
        return
    if traffic.burst_load <= load:
        raise TrafficError(f"traffic.burst_load must be above the load {load}, not {traffic.burst_load}")
    if load > traffic.highest_load * (1 + 1e-12):
        least = load / (traffic.burst_load - load)
        raise TrafficError(
            f"traffic.burst_cycles must be at least {least:.6g} at the load {load} with "
            f"burst_load={traffic.burst_load} (a pause lasts a cycle or more), not {traffic.burst_cycles:g}"
        )


def replies(config: Config) -> Replies | None:
    """Section `traffic.reply`."""
    reply = config.traffic.reply
    if reply is None:
        return None
    return Replies(
        reply.flits, reply.delay_cycles, reply.queue or 0, config.traffic.reply_lengths(), reply.sender == "shared"
    )


def spraying(config: Config) -> Spraying | None:
    """Sections `traffic.entropy` and `traffic.reorder`."""
    entropy, reorder = config.traffic.entropy, config.traffic.reorder
    if entropy is None and reorder is None:
        return None
    found = Spraying()
    if entropy is not None:
        found = Spraying(entropy.per, entropy.values, entropy.gap_cycles or 0)
    return found if reorder is None else replace(found, deliver=reorder.deliver, places=reorder.buffer_packets)


def acknowledges(config: Config) -> Acknowledges | None:
    """Section `traffic.acknowledge`."""
    found = config.traffic.acknowledge
    if found is None:
        return None
    return Acknowledges(
        flits=found.flits,
        ratio=found.ratio,
        delay_cycles=found.delay_cycles,
        table_depth=found.table,
        age_limit=found.age_limit_cycles,
        rules=Rules(queue_depth=found.queue, own_depth=found.own_queue),
    )


def with_skew(source: SourceParameters, config: Config, routers: int, seed: int) -> SourceParameters:
    """Return the source of a network whose routers have clocks that are wrong (`traffic.acknowledge.skew_cycles`)."""
    found = config.traffic.acknowledge
    if found is None or source.acknowledges is None or found.skew_cycles == 0:
        return source
    generator = np.random.default_rng((seed, 10))
    skew = generator.integers(-found.skew_cycles, found.skew_cycles, routers, np.int64, endpoint=True)
    return replace(source, acknowledges=replace(source.acknowledges, skew=skew))


def program_source(config: Config, placed: PlacedProgram) -> ProgramSource:
    """Section `traffic` for the program of section `workload`."""
    traffic, workload = config.traffic, config.workload
    assert isinstance(workload, ProgramWorkload | JobsWorkload), "checked by model.config"
    if not isinstance(workload, JobsWorkload) and not is_schedule(workload):
        check_computing(workload, traffic.cycles_per_flop, "traffic.cycles_per_flop")
    return ProgramSource(
        program=placed.program,
        source_host=placed.source_host,
        destination_host=placed.destination_host,
        mtu_bytes=workload.mtu_bytes,
        flit_bytes=traffic.flit_bytes,
        rendezvous_bytes=traffic.rendezvous_bytes,
        matched_bytes=traffic.matched_bytes,
        interleaved=traffic.injection == "packets",
        eager_bytes=traffic.eager_bytes,
        cycles_per_flop=traffic.cycles_per_flop,
        cycles_per_second=traffic.cycles_per_second,
    )
