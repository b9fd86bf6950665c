"""The routers and the traffic with which simulators run a program: flits, buffers and times."""

from math import ceil, log2

from hopforge.model.config import Config, TiersConfig
from hopforge.model.config.router import RouterConfig
from hopforge.model.config.simulation import DegradedConfig
from hopforge.model.config.traffic import TrafficConfig
from hopforge.model.errors import UserError
from hopforge.model.topology.degraded import MICROSECONDS, DegradedError
from hopforge.model.topology.link_times import queued_credit_flits, queued_cycle_ns
from hopforge.sim.packet.settings import packet_cycle_ns
from hopforge.sim.programs.flow_network import switch_ns

__all__ = ["ApplicationError", "cycle_ns", "packet_config", "packet_router_config", "sized_router", "timed_router"]

#: cycles that a miss takes in the lookup engine beside those of the TCAM (docs/definitions/lookup-engine.md)
MISS_CYCLES = 3
#: flits of a file that does not say
FLIT_BYTES = 64
#: most flits of a buffer
MOST_FLITS = 65535


class ApplicationError(UserError, ValueError):
    """A configuration without a program."""


def cycle_ns(config: Config) -> float:
    """Return the length of a cycle of the router simulator: a flit at the rate of a link, or that of its routers."""
    if config.router.model == "input_output_queued":
        return queued_cycle_ns(config.router)
    if _on_packet_routers(config):
        return packet_cycle_ns(config)
    return config.traffic.flit_bytes * 8 / config.timing.link_gbps


def _on_packet_routers(config: Config) -> bool:
    return config.router.model == "packet" and config.app.engine == "packet"


def sized_router(config: Config) -> Config:
    """Return the configuration with flits and buffers that keep links busy, where the file leaves them open.

    ``traffic.flit_bytes``: 64. ``router.buffer_flits``: the next power of two to what a link carries while a flit goes
    to the next router and its credit comes back: twice a switch and a cable, or what the routers themselves take
    if that is more (`_credit_flits`).
    """
    if "flit_bytes" not in config.traffic.model_fields_set:
        traffic = config.traffic.model_copy(update={"flit_bytes": FLIT_BYTES})
        config = config.model_copy(update={"traffic": traffic})
    if "buffer_flits" not in config.router.model_fields_set:
        flits = max(2 * (switch_ns(config) + _longest_ns(config)) / cycle_ns(config), _credit_flits(config))
        router = config.router.model_copy(update={"buffer_flits": min(1 << ceil(log2(max(flits, 1.0))), MOST_FLITS)})
        config = config.model_copy(update={"router": router})
    return config


def _credit_flits(config: Config) -> int:
    """Return the flits that a link takes from the grant of a head to the use of its credit; 0: packet routers.

    A hop takes what the router does (router.md, Stages of a flit) and a cycle, however short switch and cable are.
    """
    if config.router.model == "input_output_queued":
        return queued_credit_flits(config.router)
    if config.router.model != "input_queued":
        return 0
    timed = timed_router(config)  # whose latencies are those of `timing`, in cycles, whatever the file gives
    link = max(timed.link_latency_cycles, timed.host_latency_cycles)
    return 2 * link + 1 + _inside_cycles(config) + timed.credit_delay_cycles


def _longest_ns(config: Config) -> float:
    """Return the latency of the longest cable."""
    tiers = config.topology.tiers if isinstance(config.topology, TiersConfig) else ()
    return max([config.timing.cable_ns, *(tier.latency_ns or 0.0 for tier in tiers)])


def packet_config(config: Config) -> Config:
    """Return the configuration with which the router simulator runs the program in the times of `timing` and `app`.

    A hop takes 3 + rc_cycles + L cycles, more or less as router.md says of look-ahead, caches, speculation, speedups
    and long stages, and a host link L': L and L' are chosen so that a route through n routers takes n switches and
    n + 1 cables, to the nearest cycle and at least one cycle a link.
    Input-output-queued routers keep the times in ns of section `router`.

    Raises
    ------
    ApplicationError
        Input-output-queued routers with another `lookup` than `hit`: they have no lookup engines.
    """
    if config.router.model == "input_output_queued":
        _refuse_lookups(config)
    traffic = _program_traffic(config)
    lookup = config.lookup
    if config.app.lookup == "cache":
        cycles = max(1, round(config.timing.miss_penalty_ns / cycle_ns(config)) - MISS_CYCLES)
        tcam = lookup.tcam.model_copy(update={"latency_cycles": cycles})
        lookup = lookup.model_copy(update={"tcam": tcam})
    routing = config.routing
    if config.topology.kind == "torus" and routing.algorithm == "dor":  # the routes of engine flow
        routing = routing.model_copy(update={"ties": "key"})
    sections = {
        "traffic": traffic, "router": timed_router(config), "routing": routing, "lookup": lookup,
        "degraded": _in_cycles(config),
    }  # fmt: skip
    return config.model_copy(update=sections)


def _in_cycles(config: Config) -> DegradedConfig:
    """Return section `degraded` with its times in cycles, to the nearest."""
    degraded, cycle = config.degraded, cycle_ns(config)
    if not degraded.timed:
        return degraded
    if degraded.timed not in MICROSECONDS:
        raise DegradedError(f"degraded.{degraded.timed}: hopforge app has from_us and until_us in its place")
    first = round(degraded.from_us * 1e3 / cycle)
    last = None if degraded.until_us is None else max(first + 1, round(degraded.until_us * 1e3 / cycle))
    times = {"from_us": 0.0, "until_us": None, "from_cycle": first, "until_cycle": last}
    return degraded.model_copy(update=times)


def timed_router(config: Config) -> RouterConfig:
    """Return section `router` with the latencies of `packet_config`."""
    cycle, timing = cycle_ns(config), config.timing
    if config.router.model == "input_output_queued":
        return config.router
    in_caches, inside = config.app.lookup == "cache", _inside_cycles(config)
    hop = (switch_ns(config) + timing.cable_ns) / cycle
    ends = (switch_ns(config) + 2 * timing.cable_ns) / cycle
    found = config.router.model_copy(update={
        "route_computation": "lookup" if in_caches else config.router.route_computation,
        "rc_cycles": 0 if in_caches else config.router.rc_cycles,
        "link_latency_cycles": max(1, round(hop) - inside),
        "global_latency_cycles": None,
        "host_latency_cycles": max(1, round((ends - inside - _end_cycles(config)) / 2)),
        "cycles_per_flit": 1,
        **dict.fromkeys(("cycle_ns", "flit_ns", "link_ns", "global_ns", "host_ns", "end_ns")),  # times are of `timing`
    })
    found._times_of_file = False
    return found


def _inside_cycles(config: Config) -> int:
    """Return what a router between two others takes of a hop with nothing in its way, the link not counted."""
    router, hit = config.router, config.lookup.hit_cycles
    if config.app.lookup == "cache":
        inside = max(_switch_cycles(config), hit + 2) if router.lookahead else _switch_cycles(config) + hit + 1
    elif router.lookahead:
        inside = _switch_cycles(config)
    else:  # the last cycle of RC is a step, as are VA, SA and the crossbar
        rc = router.rc_cycles
        inside = max(rc, 1) + int((_switch_cycles(config) - 1 + min(rc, 1)) / router.internal_speedup)
    return inside + router.crossbar_cycles - 1


def _switch_cycles(config: Config) -> int:
    """Return what VA, SA and the crossbar take, the link not counted: 3; 2 where heads ask for the switch at once."""
    return 2 if config.router.va == "free_queue" or config.router.speculation else 3


def _end_cycles(config: Config) -> int:
    """Return what a route takes at its ends beside what its routers take between others: the first looks nothing ahead.

    With caches the head waits there for the port of this router, and then for that of the next one, or in the last
    router for none.
    """
    router, hit = config.router, config.lookup.hit_cycles
    if not router.lookahead:
        return 0
    if config.app.lookup != "cache":
        return router.rc_cycles
    switch = _switch_cycles(config)
    return switch + hit + 1 - max(switch, hit + 2)


def packet_router_config(config: Config) -> Config:
    """Return the configuration with which packet routers run the program; they keep the times of section `packet`.

    Raises
    ------
    ApplicationError
        Another `lookup` than `hit`, or what programs do not have.
    """
    _refuse_lookups(config)
    return config.model_copy(update={"traffic": _program_traffic(config)})


def _refuse_lookups(config: Config) -> None:
    """Refuse lookups that take time: these routers have no lookup engines."""
    if config.app.lookup != "hit":
        raise ApplicationError(
            f"app.lookup: must be hit with router.model={config.router.model}, not {config.app.lookup}"
        )


def _program_traffic(config: Config) -> TrafficConfig:
    """Return section `traffic` for the program, by section `app`."""
    app, cycle = config.app, cycle_ns(config)
    if config.traffic.reply is not None:
        raise ApplicationError("traffic.reply: must be null with app.engine=packet: programs send all that they need")
    if config.traffic.classes:
        raise ApplicationError("traffic.classes: must be empty with app.engine=packet: a program is one source")
    return config.traffic.model_copy(update={
        "source": "program",
        "matched_bytes": app.buffered_bytes,
        "injection": "messages" if app.injection == "queued" else "packets",
        "eager_bytes": app.eager_bytes,
        "cycles_per_flop": 0.0 if app.host_gflops is None else 1 / (app.host_gflops * cycle),
        "cycles_per_second": 1e9 / cycle,
    })
