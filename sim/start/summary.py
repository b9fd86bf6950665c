"""What a configuration amounts to, in a few lines for people."""

from hopforge.model.config import Config
from hopforge.model.irregular.failure import linked_tables
from hopforge.model.irregular.tables import MAX_ROUTERS
from hopforge.model.topology import Topology, build
from hopforge.model.topology.failed import without_failed
from hopforge.sim.hits.energy import area_rows


def summarize(config: Config) -> list[tuple[str, str]]:
    """Return (subject, words) of the network, the engine, its cache and its TCAM.

    The network is built, so that an edge list is read and checked too; so are the tables and virtual layers of a file
    with a section `tables`.

    Raises
    ------
    UserError
        A network, tables or layers that are wrong.
    """
    network = build(config.topology, config.address)
    working = without_failed(network, config.failed)
    size = f"{network.name}: {network.routers} routers of {network.max_ports} ports, {network.hosts} hosts"
    return [
        ("name", _name(config)),
        ("network", size),
        *_engine(config),
        *area_rows(config, network.max_ports),
        ("workload", _workload(config)),
        *_tables(config, working),
    ]


def summarize_keys(config: Config) -> list[tuple[str, str]]:
    """Return what `summarize` says without preparing the network."""
    return [
        ("name", _name(config)),
        ("network", f"{config.topology.kind}, not prepared: only keys and limits are checked"),
        *_engine(config),
        ("workload", _workload(config)),
    ]


def _name(config: Config) -> str:
    return f"{config.name}, seed {config.seed}"


def _engine(config: Config) -> list[tuple[str, str]]:
    lookup, cache, tcam = config.lookup, config.lookup.cache, config.lookup.tcam
    sets = cache.entries // cache.ways
    association = "skewed" if cache.skewed else "set-associative"
    line_bits = cache.tag_bits + cache.output_bits
    return [
        ("addresses", f"{config.address.width_bits} bits, digits of {config.address.chunk_bits} bits"),
        ("keys", f"node reduction with {lookup.comparators} comparators" if lookup.reduction else "whole address"),
        (
            "cache",
            f"{cache.entries} lines, {cache.ways}-way {association} ({sets} sets), {cache.policy},"
            f" {cache.entries * line_bits / 8192:.1f} KiB of tags and outputs"
            if cache.enabled
            else "off",
        ),
        ("pipeline", f"{lookup.pipeline_depth} cycles on a hit, {lookup.mshrs} misses at a time"),
        ("TCAM", f"{tcam.kind}, {tcam.rows} rows, {tcam.latency_cycles} cycles"),
    ]


def _tables(config: Config, network: Topology) -> list[tuple[str, str]]:
    """Build and check tables and layers: every pair, every dependency; switches without links have failed."""
    if "tables" not in config.model_fields_set:
        return []
    if network.routers > MAX_ROUTERS:
        return [("tables", f"{config.tables.scheme}, not checked: more than {MAX_ROUTERS} routers")]
    tables = linked_tables(config.tables, network, config.seed)
    words = f"{config.tables.scheme}, {tables.entries.max()} entries at most; checked: every pair is delivered"
    return [("tables", words), ("virtual layers", tables.checked_words)]


def _workload(config: Config) -> str:
    workload = config.workload
    if workload is None:
        return "none"
    if workload.kind == "collective":
        return f"{workload.operation} of {workload.bytes} bytes, {workload.repeat} times"
    return f"trace {workload.file}" if workload.kind == "trace" else workload.kind
