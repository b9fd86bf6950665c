"""What the keys of a configuration amount to, without the network; imports no more than the configuration does."""

from hopforge.model.config import Config
from hopforge.model.config.uses import key_words


def summarize_keys(config: Config) -> list[tuple[str, str]]:
    """Return (subject, words) of the keys of a file; the network is not prepared."""
    return [
        ("name", name_words(config)),
        ("network", f"{config.topology.kind}, not prepared: only keys and limits are checked"),
        *engine_rows(config),
        ("workload", workload_words(config)),
        ("commands", "none prepared; without --quick you see for which the file is good"),
    ]


def name_words(config: Config) -> str:
    """Name and seed."""
    return f"{config.name}, seed {config.seed}"


def engine_rows(config: Config) -> list[tuple[str, str]]:
    """Say what the engine, its cache and its TCAM are: subject and words."""
    lookup, cache, tcam = config.lookup, config.lookup.cache, config.lookup.tcam
    sets = cache.entries // cache.ways
    association = "skewed" if cache.skewed else "set-associative"
    line_bits = cache.tag_bits + cache.output_bits
    return [
        ("addresses", f"{config.address.width_bits} bits, digits of {config.address.chunk_bits} bits"),
        ("keys", key_words(config)),
        (
            "cache",
            f"{cache.entries} lines, {cache.ways}-way {association} ({sets} sets), {cache.policy},"
            f" {cache.entries * line_bits / 8192:.1f} KiB of tags and outputs"
            if cache.enabled
            else "off",
        ),
        ("pipeline", f"{lookup.hit_cycles} cycles on a hit, {lookup.mshrs} misses at a time"),
        ("TCAM", f"{tcam.kind}, {tcam.rows} rows, {tcam.latency_cycles} cycles"),
    ]


def workload_words(config: Config) -> str:
    """Say what the network carries."""
    workload = config.workload
    if workload is None:
        return "none"
    if workload.kind == "collective":
        return f"{workload.operation} of {workload.bytes} bytes, {workload.repeat} times"
    if workload.kind == "jobs":
        kinds = ", ".join(job.program.kind for job in workload.jobs[:8])
        return f"{len(workload.jobs)} jobs: {kinds}{', …' if len(workload.jobs) > 8 else ''}"
    return f"trace {workload.file}" if workload.kind == "trace" else workload.kind
