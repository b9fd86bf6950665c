"""What of a file each command uses: its sections, and whether destinations become keys of a cache."""

from collections.abc import Callable, Iterable

from hopforge.model.config.app import AppConfig
from hopforge.model.config.jobs import JobConfig, JobsWorkload
from hopforge.model.config.root import Config
from hopforge.model.config.router import RouterConfig
from hopforge.model.config.topology import TABLE_KINDS
from hopforge.model.config.unread_keys import (
    takes_tables,
    unread_choice_keys,
    unread_class_keys,
    unread_packet_keys,
    unread_routing_keys,
)
from hopforge.model.config.workload import ProgramWorkload

Sections = set[str]

_ALWAYS = {"name", "seed", "topology"}
_KEYS = {"address", "lookup"}
_MACHINE = {"router", "routing"}


def _routing(config: Config) -> Sections:
    """Return the sections of the routing of a network."""
    return {"routing", "tables"} if takes_tables(config) else {"routing"}


def _known_ways(config: Config) -> Sections:
    """Return the sections of the one known way of each pair, which is that of no other algorithm but `tables`."""
    return {"routing", "tables"} if config.routing.algorithm == "tables" else {"routing"}


def _engines(config: Config) -> Sections:
    return _KEYS if config.router.route_computation == "lookup" else set()


def _program(config: Config) -> Sections:
    return {"workload", *_units(config)} if config.traffic.source == "program" else set()


def _units(config: Config) -> Sections:
    """Whether collectives of the program are done by units."""
    asked = isinstance(config.workload, ProgramWorkload) and config.workload.collectives.in_network
    return {"collective_plane"} if asked else set()


def _network(config: Config) -> Sections:
    if config.router.model == "packet":
        return {"router", "routing", "packet", "traffic", "simulation", "failed", *_program(config)}
    program = _program(config)
    speeds = {"timing"} if config.topology.kind == "tiers" else set()
    sections = {"router", "traffic", "simulation", "failed", "degraded", *_routing(config), *_engines(config)}
    return sections | program | speeds


def _app(config: Config) -> Sections:
    if config.app.engine == "loggops":
        return {"workload", "app"}
    ways = _routing if config.app.engine == "packet" else _known_ways
    sections = {
        "workload", "app", "timing", "energy", "router", "traffic", "failed", "degraded", "lookup", *ways(config),
        *_units(config),
    }  # fmt: skip
    if config.router.model == "packet":
        sections |= {"packet"}  # engine flow: energy of their queues
    if config.app.engine == "packet":
        sections |= {"simulation", *_engines(config)}
    return sections | (_KEYS if config.app.lookup == "cache" else set())


def _timed_collectives(config: Config) -> Sections:
    app = config.app.model_copy(update={"engine": "packet"})
    return (_app(config.model_copy(update={"app": app})) - {"workload"}) | {"collective_plane"}


def _sweep(config: Config) -> Sections:
    return _app(config) | {"simulation"} if "app" in config.written else _network(config)


def _hits(config: Config) -> Sections:
    entropy = {"traffic"} if config.routing.spread == "entropy" else set()
    return {"workload", "timing", "failed", *entropy, *_KEYS, *_known_ways(config)}  # routing: of links and ways


def _wavelengths(config: Config) -> Sections:
    sections = {"wavelengths", "timing", "energy", *_KEYS}
    return sections if config.wavelengths.packets is not None else sections | _hits(config)


def _routers(config: Config) -> Sections:
    traffic = config.traffic  # virtual channels of classes
    classes = traffic.reply is not None or traffic.acknowledge is not None or traffic.classes
    asked = classes or config.routing.spread == "entropy"  # who chooses among paths
    fields = {"address"}  # its width is that of a field of the header, also where no engine looks it up
    return {"router", *fields, *_routing(config), *_engines(config), *({"traffic"} if asked else set())}


def _engine(config: Config) -> Sections:
    return _KEYS


def _q_table(config: Config) -> Sections:
    return _MACHINE


def _plane(config: Config) -> Sections:
    return {"collective_plane", "router", "failed"}


USES: dict[str, Callable[[Config], Sections]] = {
    "topology": lambda config: {"failed", "timing", "app", *_KEYS, *_known_ways(config)},  # with --export simgrid
    "bounds": lambda config: {"traffic", "failed", *_routing(config)},
    "route": lambda config: {"tables", "failed"},
    "hits": _hits,
    "wavelengths": _wavelengths,
    "net": _network,
    "series": _network,
    "sweep": _sweep,
    "trace": _network,
    "app": _app,
    "workload": lambda config: {"workload"},
    "collectives": _timed_collectives,
    "gen lookup": lambda config: _KEYS | {"csr"},
    "gen router": lambda config: _routers(config) | {"csr"},
    "gen network": lambda config: _routers(config) | {"failed", "degraded", "csr"},
    "gen tables": lambda config: {"tables", "failed", *_KEYS},
    "gen q-table": _q_table,
    "gen collectives": _plane,
    "gen rule-cache": lambda config: {"rule_cache"},
    "cosim --part lookup": lambda config: _KEYS | {"cosim"},
    "cosim --part router": lambda config: _routers(config) | {"cosim"},
    "cosim --part network": lambda config: _routers(config) | {"cosim", "traffic", "simulation", "failed", "degraded"},
    "cosim --part service_host": lambda config: _routers(config) | {"cosim"},
    "cosim --part collectives": lambda config: _plane(config) | {"cosim"},
    "cosim --part rule_cache": lambda config: {"rule_cache", "cosim"},
    "cosim --part q_table": lambda config: _MACHINE | {"cosim"},
    "energy --part lookup": lambda config: _KEYS | {"timing"},
    "energy --part router": lambda config: _routers(config) | {"energy"},
    "lint": lambda config: _routers(config) | _KEYS | {"csr"},
    "prove": _engine,
    "mutate": _engine,
    "synth": _engine,
    "timing": lambda config: _KEYS | {"csr"},
    "fpga --design engine": _engine,
    "fpga --design network": _routers,
    "demo": lambda config: _hits(config) | _network(config) | {"cosim"},
}
"""Command, with its part → the sections that it uses in a configuration, beside name, seed and topology."""

_ENGINE_HARDWARE = {
    "gen lookup", "gen router", "gen network", "cosim --part lookup", "cosim --part router", "cosim --part network",
    "energy --part lookup", "energy --part router", "lint", "mutate", "synth", "timing", "fpga --design engine",
    "fpga --design network", "demo",
}  # fmt: skip
_NETWORK_COSIMS = {"cosim --part network", "cosim --part service_host"}
_ROUTER_HARDWARE = {
    "gen router", "gen network", "cosim --part router", "cosim --part network", "energy --part router", "lint", "synth",
    "timing", "fpga --design network",
}  # fmt: skip
#: of these the ones that have adapters at host ports, or refuse them
_STREAM_HARDWARE = {"gen router", "gen network", "lint", "timing", "fpga --design network"}
_ALL_BUT_SWEEP = set(USES) - {"sweep"}


def _no_loads(config: Config) -> bool:
    """Tell whether a sweep of the file counts programs, which have no load."""
    return "app" in config.written


def _beside_loggops(key: str) -> Callable[[Config], bool]:
    """Tell whether a file has a key of `app` that engine loggops does not read."""
    return lambda config: config.app.engine == "loggops" and key in config.app.model_fields_set


def _beside_cycles(key: str) -> Callable[[Config], bool]:
    """Tell whether a file has a key of the switch that only engine packet of `hopforge app` reads."""
    default = RouterConfig.model_fields[key].default
    return lambda config: config.app.engine != "packet" and getattr(config.router, key) != default


def _cuts_no_messages(config: Config) -> bool:
    """Tell whether a file says how long packets are, and its engine has none."""
    workload = config.workload
    given = isinstance(workload, ProgramWorkload) and "mtu_bytes" in workload.model_fields_set
    return given and config.app.engine == "loggops"


def _counts_no_flits(config: Config) -> bool:
    """Tell whether a file limits flits of messages, and its engine has none."""
    workload = config.workload
    given = isinstance(workload, ProgramWorkload) and "max_flits" in workload.model_fields_set
    return given and config.app.engine != "packet"


def _jobs_count_no_flits(config: Config) -> bool:
    """Tell the same of the programs of jobs."""
    return config.app.engine != "packet" and any("max_flits" in job.program.model_fields_set for job in _jobs(config))


def _program_kinds(config: Config) -> list[str]:
    """Return the kinds of the programs of a file."""
    return [job.program.kind for job in _jobs(config)] or [getattr(config.workload, "kind", "")]


def _jobs(config: Config) -> tuple[JobConfig, ...]:
    """Return the jobs of a file that has several programs."""
    return config.workload.jobs if isinstance(config.workload, JobsWorkload) else ()


_SINGLE_KEYS: dict[str, tuple[Callable[[Config], bool], Sections]] = {
    "lookup.cache.protection": (lambda config: config.lookup.cache.protection != "none", _ENGINE_HARDWARE),
    "router.protection": (lambda config: config.router.protection != "none", _ROUTER_HARDWARE),
    "router.host_ports": (lambda config: config.router.host_ports != "flits", _STREAM_HARDWARE),
    **{
        f"router.{key}": (_beside_cycles(key), {"net", "series", "sweep", "trace", "demo", "collectives"})
        for key in (
            "hold_switch", "sa_first_output", "allocator_ports",
            "input_speedup", "output_speedup", "internal_speedup", "crossbar_cycles", "stage_batches",
            "output_queue_flits",
        )
    },
    **{
        f"router.{key}": (
            _beside_cycles(key), {"net", "series", "sweep", "trace", "demo", "collectives", "app", *_ROUTER_HARDWARE}
        )
        for key in ("allocator_iterations", "va_iterations")  # `app`: energy of allocators
    },
    "traffic.acknowledge": (
        lambda config: config.traffic.acknowledge is not None and config.app.engine != "packet",
        {"net", "series", "sweep", "trace", "demo", "gen network", "synth", *_NETWORK_COSIMS},
    ),
    "traffic.entropy": (
        lambda config: config.traffic.entropy is not None and config.app.engine != "packet",
        {"net", "series", "sweep", "trace", "demo", "hits", "wavelengths", *_ROUTER_HARDWARE},
    ),
    "traffic.reorder": (  # series and trace tell nothing of it, but a host that waits for a place is seen there
        lambda config: config.traffic.reorder is not None and config.traffic.reorder.buffer_packets is None
        and config.app.engine != "packet",
        {"net", "sweep", "demo"},
    ),
    "traffic.reorder.buffer_packets": (
        lambda config: config.traffic.reorder is not None and config.traffic.reorder.buffer_packets is not None
        and config.app.engine != "packet",
        {"net", "series", "sweep", "trace", "demo"},
    ),
    "workload.computing": (
        lambda config: isinstance(config.workload, ProgramWorkload) and not config.workload.computing.is_even,
        {"app", "net", "series", "sweep", "trace"},  # and `workload --to goal`
    ),
    "workload.jobs.start_us": (lambda config: any(job.start_us for job in _jobs(config)), {"app", "sweep"}),
    "workload.jobs.program.computing": (
        lambda config: any(not job.program.computing.is_even for job in _jobs(config)), {"app", "sweep"},
    ),
    "simulation.failure_series_cycles": (  # packet routers write no series of their failures
        lambda config: config.router.model == "packet" and bool(config.simulation.failures)
        and "failure_series_cycles" in config.simulation.model_fields_set,
        set(),
    ),
    "simulation.load_steps": (lambda config: bool(config.simulation.load_steps), {"series"}),
    "simulation.loads": (lambda config: _no_loads(config) and config.simulation.loads is not None, _ALL_BUT_SWEEP),
    "simulation.knee_percent": (
        lambda config: _no_loads(config) and config.simulation.knee_percent is not None,
        _ALL_BUT_SWEEP,
    ),
    "app.loggops": (
        # a trace and training may be a schedule, of which all engines read it
        lambda config: config.app.engine != "loggops" and "loggops" in config.app.model_fields_set
        and not any(kind in ("trace", "chakra", "training") for kind in _program_kinds(config)),
        set(),
    ),
    "workload.max_flits": (_counts_no_flits, {"net", "series", "trace"}),
    "workload.jobs.program.max_flits": (_jobs_count_no_flits, set()),
    "workload.mtu_bytes": (_cuts_no_messages, set(USES) - {"app", "sweep"}),
    **{
        f"app.{key}": (_beside_loggops(key), set())
        for key in AppConfig.model_fields
        if key not in ("engine", "loggops", "host_gflops")
    },
}
"""Keys that not all commands use that use their section → whether a file asks for it, and the commands that use it."""

_WITH_KEYS = {
    "hits",
    "gen lookup",
    "gen tables",
    "cosim --part lookup",
    "energy --part lookup",
    "lint",
    "prove",
    "mutate",
    "synth",
    "timing",
    "fpga --design engine",
    "demo",
}


def uses_keys(config: Config, command: str) -> bool:
    """Tell whether a command makes keys of the addresses of a configuration."""
    if command in ("app", "sweep") and config.app.lookup == "cache":
        return command == "app" or "app" in config.written
    if command == "wavelengths":
        return config.wavelengths.packets is None
    return command in _WITH_KEYS or (
        config.router.route_computation == "lookup" and {"router", *_KEYS} <= USES[command](config)
    )


def unused_sections(config: Config, commands: Iterable[str]) -> list[str]:
    """Return the sections that the file has and none of the commands uses, in the order of the file.

    Behind them come keys that it asks for in sections that are used, and that none of the commands uses.
    """
    variants = (config, *config.variants.values())
    commands = set(commands)
    used = _ALWAYS.union(*(USES[command](each) for command in commands for each in variants))
    written = dict.fromkeys(key for each in variants for key in each.written)
    keys = [
        key
        for key, (wanted, users) in _SINGLE_KEYS.items()
        if key.split(".", 1)[0] in used and any(wanted(each) for each in variants) and not commands & users
    ]
    if "routing" in used:
        keys += unread_routing_keys(variants)
    if "traffic" in used:
        keys += unread_class_keys(variants, loads="simulation" in used)
    for each in (*unread_packet_keys(variants, commands), *unread_choice_keys(variants, commands)):
        keys += [each] if each.split(".", 1)[0] in used and each not in keys else []
    return [key for key in written if key not in used] + keys


def key_words(config: Config, *, replayed: bool = False) -> str:
    """Say what routing caches are asked with; `replayed`: by `hopforge hits`."""
    lookup, kind, routing = config.lookup, config.topology.kind, config.routing
    several = config.lids > 1
    whole = "whole address and number of the path" if several else "whole address"
    if not lookup.reduction:
        return whole
    if lookup.expression is not None:
        return lookup.expression.words
    if kind in TABLE_KINDS:
        return f"{whole}, for there are no reduced ones of topology.kind={kind}"
    if routing.algorithm == "tables" and (replayed or several):
        return f"{whole}, for there are no reduced ones with routing.algorithm=tables"
    if replayed and routing.spread is not None:
        return f"{whole}, for there are no reduced ones with routing.spread={routing.spread}"
    return f"node reduction with {lookup.comparators} comparators"
