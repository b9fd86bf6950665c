"""Keys that a file gives and that nothing reads: because of a choice beside them, classes, packets or the algorithm.

Many such keys are refused where their section is checked; these are told as sections that a command does not read.
`tests/model/config/test_choice_keys.py` knows an owner for each key of a section with a choice.
`tests/model/config/test_routing_keys.py` holds each algorithm to its keys: a key that it does not read changes no plan,
one that it reads changes one.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hopforge.model.config.base import Section
from hopforge.model.config.jobs import JobsWorkload
from hopforge.model.config.root import Config
from hopforge.model.config.router import ITERATED, SEPARABLE
from hopforge.model.config.routing import DECIDE_AHEAD, DECIDE_AT_SOURCE
from hopforge.model.config.traffic import TrafficClassConfig
from hopforge.model.config.workload import ProgramWorkload

#: commands whose packets have a pattern, a source and lengths from section `traffic`
_LOADED = {"net", "series", "sweep", "trace", "cosim --part network"}
#: engine of `hopforge app` → what it reads of `traffic`
_READ_BY_ENGINE = {
    "packet": {"flit_bytes", "rendezvous_bytes", "reply", "acknowledge", "classes", "entropy", "reorder"},
    "flow": {"flit_bytes"},
}
#: commands of one router, to which hosts that choose among several addresses do not belong
_OF_A_ROUTER = {"gen router", "cosim --part router", "energy --part router"}
_GROUPED = {"dragonfly", "dragonfly_plus", "cascade"}

#: key of `traffic` → patterns that read it
PATTERN_KEYS: dict[str, set[str]] = {
    "prepare_limit_s": {"file"},
    "include_self": {"uniform"},
    "share": {"hotspot", "local"},
    "targets": {"hotspot"},
    "shift": {"adversarial"},
    "grid": {"stencil"},
    "line": {"many_to_many"},
    "low": {"random_neighbours"},
    "high": {"random_neighbours"},
    "partners": {"random_neighbours"},
    "order": {"all_to_all"},
}
#: key of `traffic` → sources that read it
SOURCE_KEYS: dict[str, set[str]] = {
    "nic_packets": {"interval", "rounds"},
    "burst_cycles": {"on_off"},
    "burst_load": {"on_off"},
    **{
        key: {"program"}
        for key in (
            "eager_bytes", "rendezvous_bytes", "matched_bytes", "injection", "cycles_per_flop", "cycles_per_second",
        )
    },
    **{
        key: {"bernoulli", "on_off", "interval", "rounds"}
        for key in ("packet_range", "packet_lengths", "packet_weights")
    },
}  # fmt: skip
_SYNTHETIC: dict[str, tuple[str, set[Any]]] = {
    "order": ("kind", {"all_to_all"}),
    "permutation": ("kind", {"permutation"}),
    "packets_per_host": ("kind", {"uniform", "permutation", "neighbour"}),
    "rounds": ("kind", {"all_to_all"}),
}
#: kind of a program or replay → key → choice beside it, and its values with which the key is read
WORKLOAD_KEYS: dict[str, dict[str, tuple[str, set[Any]]]] = {
    **{kind: _SYNTHETIC for kind in ("uniform", "all_to_all", "permutation", "neighbour")},
    "collective": {
        "root": ("operation", {"bcast", "reduce", "gather", "scatter"}),
        "bytes": ("operation", {
            "allreduce", "alltoall", "allgather", "bcast", "gather", "reduce", "reduce_scatter", "scan", "scatter",
        }),
    },
    "npb": {"graph": ("benchmark", {"dt"})},
    "training": {
        "buckets": ("parallelism", {"data"}),
        "layers": ("parallelism", {"expert"}),
        "hidden": ("parallelism", {"expert", "pipeline"}),
        "experts_per_token": ("parallelism", {"expert"}),
        "microbatches": ("parallelism", {None, "pipeline"}),
    },
}  # fmt: skip
#: keys of `router` in whose place `hopforge app` has the times of `timing`
_TIMES = {
    "link_latency_cycles", "global_latency_cycles", "host_latency_cycles", "cycles_per_flit", "cycle_ns", "flit_ns",
    "link_ns", "global_ns", "host_ns", "end_ns",
}  # fmt: skip
#: further keys of `router` that engine flow, which has no cycles, does not read
_CYCLES = {
    "switching", "rc_cycles", "lookahead", "arbiter", "va_arbiter", "qos", "vc_release", "credit_delay_cycles",
    "crossbar_ns", "idle_ports",
}  # fmt: skip
#: keys of `packet` that engine flow reads, for the energy of switches of packets
_OF_QUEUES = {"packet_bytes", "queue_packets"}
#: keys of `traffic` about packets and when they are made, which the rates of `hopforge bounds` do not depend on
_OF_PACKETS = {"source", "message_packets", "packet_flits", "flit_bytes", *SOURCE_KEYS}


def _finds_cycle(config: Config) -> bool:
    """Whether the length of a cycle follows from all times of the router, those of links that are not there, too."""
    return config.router.model == "input_output_queued" and config.router.cycle_ns is None


#: further keys → whether a configuration reads them
OTHER_KEYS: dict[str, Callable[[Config], bool]] = {
    "router.arbiter": lambda config: (
        config.router.sa in SEPARABLE or (config.router.va in SEPARABLE and config.router.va_arbiter is None)
    ),
    "router.va_arbiter": lambda config: config.router.va in SEPARABLE,
    "router.va_iterations": lambda config: config.router.va in ITERATED,
    "router.global_latency_cycles": lambda config: config.topology.kind in _GROUPED,
    "router.global_ns": lambda config: config.topology.kind in _GROUPED or _finds_cycle(config),
    "router.length_bits": lambda config: config.router.switching == "vct",
    "lookup.up_choice": lambda config: config.topology.kind == "fat_tree",
    "lookup.lag.hash": lambda config: config.lookup.lag.max_members > 1,
    "app.caches": lambda config: config.app.lookup == "cache" and config.app.engine != "packet",
    **{
        f"degraded.{key}": lambda config: not config.degraded.none
        for key in ("factor", "from_us", "until_us", "from_cycle", "until_cycle")
    },
    "energy.buffer_um2_per_bit": lambda config: config.router.flit_buffers == "memory",
    "energy.latch_um2_per_bit": lambda config: config.router.flit_buffers == "latches",
    "energy.flip_flop_um2_per_bit": lambda config: config.router.flit_buffers == "flip_flops",
    "simulation.failure_series_cycles": lambda config: bool(config.simulation.failures),
    "simulation.warmup_cycles": lambda config: config.simulation.warmup_us is None,
    "routing.dqn.restart_window": lambda config: config.routing.dqn.restart_below > 0,
}
#: keys of `simulation` about runs with a load; a program ends by itself
LOAD_KEYS = ("load", "precision", "min_cycles", "max_cycles", "warmup_cycles", "warmup_us", "measure_us")
#: those that say how long a run is in cycles, in whose place `measure_us` stands
_OF_CYCLES = ("precision", "min_cycles", "max_cycles")
#: commands that make the table of learned times in hardware; `lint` does with ``--what q_table``
_Q_TABLES = {"gen q-table", "cosim --part q_table", "lint"}
#: keys of `simulation` that packet routers do not read: their runs end when all messages have arrived
_OF_FLITS = {*LOAD_KEYS, "deadlock_cycles"} - {"load"}
#: keys of `tables` that say how good its paths are measured to be
_OF_QUALITY = {"patterns", "hotspot", "local"}
#: keys of `tables` that only virtual layers need
_OF_LAYERS = {"layers", "layers_file", "max_layers"}
#: commands that follow the one known way of each pair
_OF_ONE_WAY = {"topology", "hits", "wavelengths"}
#: algorithms that may lead packets off the known way and all others as short
_OTHER_WAYS = {
    "valiant", "valiant_compact", "valiant_group", "valiant_node", "ugal", "ugal_compact", "ugal_global", "ugal_group",
    "ugal_node", "par", "q_routing", "q_adaptive", "dqn", "por", "ofr", "dimwar", "omniwar", "dal", "up_down",
    "shortest_escape", "file",
    "booksim_valiant", "booksim_romm", "booksim_ugal", "booksim_ugal_xy_yx", "booksim_ugal_pni", "booksim_val",
    "booksim_val_by_hop", "booksim_ugal_four", "booksim_ugal_four_by_hop", "booksim_ugal_pf", "booksim_ugal_pf_by_hop",
}  # fmt: skip
#: keys of `app` that only engine flow reads
FLOW_KEYS = (
    "backend", "envelope_bytes", "latency_factor", "bandwidth_factor", "sharing", "tcp_window_bytes", "buffer_bytes",
)  # fmt: skip
OTHER_KEYS |= {  # abr has no intermediate destinations, whose profits are compared
    f"packet.{key}": lambda config: config.router.model != "packet" or config.routing.algorithm != "abr"
    for key in ("eta", "idle_ratio", "full_profit", "wraparound")
}
OTHER_KEYS |= {f"app.{key}": lambda config: config.app.engine != "packet" for key in FLOW_KEYS}


def unread_choice_keys(configs: Iterable[Config], commands: set[str]) -> list[str]:
    """Return the keys that files give, not as they are by themselves, and that nothing reads for a choice beside them.

    Parameters
    ----------
    configs : iterable of Config
        A configuration and its variants; a key that is read in one of them is read.
    commands : set of str
        The commands.
    """
    return never_read(found for config in configs for found in _read_of(config, commands).items())


def _read_of(config: Config, commands: set[str]) -> dict[str, bool]:
    """Return the keys that a configuration gives, and whether it reads each of them."""
    found: dict[str, bool] = {}
    for key, read in (
        *_of_traffic(config, commands), *_of_router(config, commands), *_of_workload(config), *_of_others(config),
        *_of_loads(config, commands), *_of_tables(config, commands), *_of_ways(config, commands),
        *_of_estimates(config, commands), *_of_timing(config, commands),
    ):  # fmt: skip
        found[key] = found.get(key, True) and read
    return found


def never_read(found: Iterable[tuple[str, bool]]) -> list[str]:
    """Return the keys, in order, that none of the configurations reads; `found`: a key, and whether one reads it."""
    given: dict[str, bool] = {}
    for key, read in found:
        given[key] = given.get(key, False) or read
    return [key for key, read in given.items() if not read]


def _given(section: Section) -> list[str]:
    """Return the keys that a file gives a section another value than they have by themselves."""
    fields = type(section).model_fields
    return [key for key in fields if key in section.model_fields_set and getattr(section, key) != fields[key].default]


def _only_app(config: Config, commands: set[str]) -> bool:
    """Tell whether all of the commands run programs as `hopforge app` does."""
    programs = {"app", "sweep"} if "app" in config.written else {"app"}
    return bool(commands) and commands <= programs


def _of_traffic(config: Config, commands: set[str]) -> Iterator[tuple[str, bool]]:
    traffic = config.traffic
    patterns = {each.pattern or traffic.pattern for each in traffic.classes} or {traffic.pattern}
    only_app = _only_app(config, commands)
    for key in _given(traffic):
        if only_app:
            program = key == "source" and traffic.source == "program"  # what the command does anyway
            yield f"traffic.{key}", program or key in _READ_BY_ENGINE.get(config.app.engine, set())
        elif key == "entropy" and config.routing.algorithm == "tables" and commands and commands <= _OF_A_ROUTER:
            yield f"traffic.{key}", False
        elif not commands <= {*_LOADED, "bounds"} or ("sweep" in commands and "app" in config.written):
            yield f"traffic.{key}", True
        elif key in PATTERN_KEYS:  # a pattern of one's own may read every key
            of_pattern = bool(patterns & {*PATTERN_KEYS[key], "file"})
            yield f"traffic.{key}", of_pattern and traffic.source != "program"
        elif commands == {"bounds"}:
            yield f"traffic.{key}", key not in _OF_PACKETS
        elif key == "packet_flits":
            others = traffic.source == "program" or traffic.packet_range or traffic.packet_lengths
            yield f"traffic.{key}", not others
        elif key == "flit_bytes":
            yield f"traffic.{key}", traffic.source == "program" or config.topology.kind == "tiers"
        elif key in SOURCE_KEYS:
            yield f"traffic.{key}", traffic.source in SOURCE_KEYS[key]


def _of_router(config: Config, commands: set[str]) -> Iterator[tuple[str, bool]]:
    engine, model = config.app.engine, config.router.model
    if _only_app(config, commands) or commands == {"collectives"}:
        timed = model == "input_queued" if engine == "packet" or commands == {"collectives"} else True
        for key in _given(config.router):
            read = key not in _TIMES or not timed
            yield f"router.{key}", read and (key not in _CYCLES or engine != "flow" or commands == {"collectives"})
    if _only_app(config, commands) and engine == "flow" and model == "packet":
        for key in _given(config.packet):
            yield f"packet.{key}", key in _OF_QUEUES


def _of_workload(config: Config) -> Iterator[tuple[str, bool]]:
    workload = config.workload
    if workload is None:
        return
    jobs = isinstance(workload, JobsWorkload)
    place, found = "workload.jobs.program" if jobs else "workload", dict[str, bool]()
    for program in [job.program for job in workload.jobs] if isinstance(workload, JobsWorkload) else [workload]:
        table = WORKLOAD_KEYS.get(program.kind, {})
        for key in _given(program):
            if key in table:
                choice, values = table[key]
                name = f"{place}.{key}"
                found[name] = found.get(name, False) or getattr(program, choice) in values
        if computing := getattr(program, "computing", None):
            for key in _given(computing):
                name = f"{place}.computing.{key}"
                found[name] = found.get(name, False) or key != "slowdown" or computing.stragglers > 0
    yield from found.items()


def _of_others(config: Config) -> Iterator[tuple[str, bool]]:
    for name, reads in OTHER_KEYS.items():
        *sections, key = name.split(".")
        section: Any = config
        for each in sections:
            section = getattr(section, each)
        if section is not None and key in _given(section):
            yield name, reads(config)


def _of_tables(config: Config, commands: set[str]) -> Iterator[tuple[str, bool]]:
    """Only `route` measures how good tables are, and writes addresses of hosts that have but one path.

    With ``routing.ways: tables`` nothing reads layers.
    """
    for key in sorted(_OF_QUALITY & set(_given(config.tables))):
        yield f"tables.{key}", not commands or "route" in commands
    if "lmc" in _given(config.tables):
        yield "tables.lmc", config.tables.scheme == "k_shortest" or not commands or "route" in commands
    if takes_tables(config) and config.routing.algorithm != "tables" and not commands & {"route", "gen tables"}:
        for key in _given(config.tables):
            if key in _OF_LAYERS and not (key == "max_layers" and config.tables.scheme == "nue"):
                yield f"tables.{key}", False


def _of_ways(config: Config, commands: set[str]) -> Iterator[tuple[str, bool]]:
    """Commands that follow one known way of each pair follow that of tables with `routing.algorithm: tables` alone."""
    programs = set() if config.app.engine == "packet" else {"app", *({"sweep"} if "app" in config.written else ())}
    others = not commands or not commands <= {*_OF_ONE_WAY, *programs}
    if "algorithm" in _given(config.routing):
        yield "routing.algorithm", others or config.routing.algorithm not in _OTHER_WAYS
    if config.routing.ways == "tables" and takes_tables(config):
        yield "routing.ways", others


def _of_loads(config: Config, commands: set[str]) -> Iterator[tuple[str, bool]]:
    program = config.traffic.source == "program" if commands == {"net"} else commands == {"app"}
    for key in _given(config.simulation):
        if config.router.model == "packet" and key in _OF_FLITS:
            yield f"simulation.{key}", False
        elif program and key in LOAD_KEYS:
            yield f"simulation.{key}", bool(config.simulation.failures)
        elif key in _OF_CYCLES and config.simulation.measure_us is not None:
            yield f"simulation.{key}", False


def _of_timing(config: Config, commands: set[str]) -> Iterator[tuple[str, bool]]:
    """`hopforge app` takes of `timing` what `app.lookup` needs, as its table of delays says (engines.md)."""
    if not _only_app(config, commands):
        return
    lookup = config.app.lookup
    second = lookup == "cache" and config.lookup.cache.second_level is not None and config.app.engine != "packet"
    read = {
        "cache_ns": False, "slot_bytes": False, "tcam_ns": second, "second_level_ns": second,
        "switch_base_ns": lookup != "conventional", "conventional_switch_ns": lookup == "conventional",
        "miss_penalty_ns": lookup in ("miss", "cache"),
    }  # fmt: skip
    for key in _given(config.timing):
        yield f"timing.{key}", read.get(key, True)


def _of_estimates(config: Config, commands: set[str]) -> Iterator[tuple[str, bool]]:
    """Learned times are floats unless they have bits; the table in hardware always has.

    An algorithm of one's own may read every key.
    """
    bits = config.routing.estimate_bits is not None or config.routing.algorithm == "file"
    for key in sorted({"estimate_fraction_bits", "estimate_rounding"} & set(_given(config.routing))):
        yield f"routing.{key}", bits or not commands or bool(commands & _Q_TABLES)


_READ_BY = {"priority": "strict", "weight": "weighted"}
_DEFAULTS = ("packet_flits", "pattern")


def unread_class_keys(configs: Iterable[Config], *, loads: bool) -> list[str]:
    """Return the keys that nothing reads because of classes of traffic, in their order.

    Parameters
    ----------
    configs : iterable of Config
        A configuration and its variants; a key that is read in one of them is read.
    loads : bool
        The command reads the load of the file.
    """
    given: dict[str, bool] = {}
    for config in configs:
        traffic, classes = config.traffic, config.traffic.classes
        if not classes:
            given |= dict.fromkeys((*(f"traffic.{key}" for key in _DEFAULTS), "simulation.load"), True)
            continue
        for key, kind in _READ_BY.items():
            if any(getattr(each, key) != TrafficClassConfig.model_fields[key].default for each in classes):
                name = f"traffic.classes.{key}"
                given[name] = given.get(name, False) or config.router.qos == kind
        for key in _DEFAULTS:
            if key in traffic.model_fields_set:
                name = f"traffic.{key}"
                given[name] = given.get(name, False) or any(getattr(each, key) is None for each in classes)
        if loads and "load" in config.simulation.model_fields_set:
            shares = any(each.share is not None for each in classes)
            given["simulation.load"] = given.get("simulation.load", False) or shares
    return [key for key, read in given.items() if not read]


#: of section `packet`: about sources with a load
_OF_SOURCES = ("feed", "process", "phase", "messages")
#: of section `packet`: about intermediate destinations beside the minimal way
_OF_OUTFLANK = ("outflank_distance", "outflank_share")
#: of section `packet`: about heads that are sent on before the rest
_OF_HEADS = ("head_bytes",)
#: commands that run a network
_NETWORKS = {"net", "series", "sweep"}
#: others that may read them, with other routers
_OTHERS = {"demo", "trace", "collectives"}


def unread_packet_keys(configs: Iterable[Config], commands: set[str]) -> list[str]:
    """Return the keys that the files give and that none of the commands reads with packet routers, in order.

    Parameters
    ----------
    configs : iterable of Config
        A configuration and its variants; a key that is read in one of them is read.
    commands : set of str
        The commands.
    """
    return never_read(
        (key, any(_reads_packet_key(config, command, key) for command in commands))
        for config in configs
        for key in _written(config)
    )


def _written(config: Config) -> list[str]:
    """Return the keys in question that a file gives."""
    keys = (*_OF_SOURCES, *_OF_OUTFLANK, *_OF_HEADS)
    found = [f"packet.{key}" for key in keys if key in config.packet.model_fields_set]
    if isinstance(config.workload, ProgramWorkload) and "mtu_bytes" in config.workload.model_fields_set:
        found.append("workload.mtu_bytes")
    if "flit_bytes" in config.traffic.model_fields_set:
        found.append("traffic.flit_bytes")
    return found


def _reads_packet_key(config: Config, command: str, key: str) -> bool:
    """Tell whether a command reads a key; commands that run no network are not judged."""
    of_app = command == "app" or (command == "sweep" and "app" in config.written)
    if not (of_app or command in _NETWORKS):
        return command in _OTHERS or key == "workload.mtu_bytes"
    if config.router.model != "packet":
        return not key.startswith("packet.")
    if key.removeprefix("packet.") in _OF_OUTFLANK:
        return config.routing.algorithm == "ofr" and (not of_app or config.app.engine == "packet")
    if key.removeprefix("packet.") in _OF_HEADS:
        return config.packet.switching == "vct" and (not of_app or config.app.engine == "packet")
    if of_app:
        return key != "workload.mtu_bytes" and (config.app.engine != "packet" or key == "traffic.flit_bytes")
    return config.traffic.source != "program"


_LEARNING = {"q_adaptive", "q_routing"}
_UGAL = {"ugal", "ugal_global"}
_DETOURS = {"minimal", "valiant", "valiant_compact", "ugal_compact", *_UGAL}

ROUTING_KEYS: dict[str, set[str]] = {
    "vc_rule": {"dor", "valiant"},
    "ties": {"dor", "valiant", "dqn", "nca"},
    "ejection": {"dragonfly_min"},
    "class_vcs": {"dragonfly_min"},
    "bias": {"ugal_group", "ugal_node", "par", *_UGAL, "dimwar", "omniwar", "dal"},
    "deroutes": {"omniwar"},
    "ways": _DETOURS,
    "spread": {"minimal", "valiant", "tables"},
    "classes": _DETOURS,
    "candidates": _UGAL,
    "over": {"valiant", *_UGAL},
    "rule": {"ugal"},
    "decision": {*DECIDE_AT_SOURCE, *DECIDE_AHEAD},
    "alpha": _LEARNING,
    "beta": {"q_adaptive"},
    "epsilon": _LEARNING,
    "q_thld1": {"q_adaptive"},
    "q_thld2": {"q_adaptive"},
    "max_q": {"q_routing"},
    "estimate_bits": _LEARNING,
    "estimate_fraction_bits": _LEARNING,
    "estimate_rounding": _LEARNING,
    "root": {"up_down", "shortest_escape", *_DETOURS},
    "eta": {"por", "ofr"},
    "outflank_distance": {"ofr"},
    "dqn": {"dqn"},
}
"""Key of section `routing` → the algorithms that read it. Keys that are not here are read for every algorithm."""


def takes_tables(config: Config) -> bool:
    """Tell whether packets go by section `tables`: all the way, or by ``routing.ways: tables``."""
    routing = config.routing
    return routing.algorithm == "tables" or (routing.ways == "tables" and routing.algorithm in ROUTING_KEYS["ways"])


#: keys of POR and OutFlank on routers of flits
_OF_DETOURS = {"eta", "outflank_distance"}
#: keys that dimension order and its kin read for rings only
_OF_RINGS = {"vc_rule", "ties"}


def unread_routing_keys(configs: Iterable[Config]) -> list[str]:
    """Return the keys that a file gives section `routing` and that its algorithm does not read, in their order.

    Parameters
    ----------
    configs : iterable of Config
        A configuration and its variants; a key that is read in one of them is read.
    """
    given: dict[str, bool] = {}
    for config in configs:
        for key in type(config.routing).model_fields:
            if key in config.routing.model_fields_set:
                given[key] = given.get(key, False) or _reads_routing_key(config, key)
    return [f"routing.{key}" for key, read in given.items() if not read]


def _reads_routing_key(config: Config, key: str) -> bool:
    algorithm = config.routing.algorithm
    if key == "proof_limit_s":  # routers of packets have another proof
        return config.routing.check and config.router.model != "packet"
    if key in _OF_DETOURS and config.router.model == "packet":  # it has its own in section `packet`
        return False
    if algorithm == "file":  # of one's own: it may read every key
        return True
    if key in _OF_RINGS and algorithm != "nca" and config.topology.kind != "torus":
        return False
    if algorithm == "valiant" and key in {"root", *_OF_RINGS}:
        return (key == "root") == _is_valiant_of_ways(config)
    return algorithm in ROUTING_KEYS.get(key, {algorithm})


def _is_valiant_of_ways(config: Config) -> bool:
    """Tell whether `valiant` is that of any network; on meshes and tori it is that of dimension order if it can be."""
    routing = config.routing
    asked = routing.ways or routing.classes or routing.spread or routing.over != "routers"
    return bool(asked) or config.topology.kind not in ("mesh", "torus")
