"""Every key that a choice beside it leaves unread is refused or told; each key of a section has an owner here."""

import itertools
import re
import typing
from typing import Any

import pytest
import yaml

from hopforge.model.config import Config, ConfigError, parse_config
from hopforge.model.config.jobs import WorkloadConfig
from hopforge.model.config.router import RouterConfig
from hopforge.model.config.traffic import TrafficConfig
from hopforge.model.config.unread_keys import FLOW_KEYS, OTHER_KEYS, PATTERN_KEYS, SOURCE_KEYS, WORKLOAD_KEYS
from hopforge.model.config.uses import unused_sections

_BASE: dict[str, Any] = {"name": "x", "topology": {"kind": "mesh", "radices": [2, 2]}}
_GUESSES: tuple[Any, ...] = (
    "tornado", 1, 2, 3, 5, 7, 0.25, 1.5, 100, 4096, [0, 1], [2, 2], [1.0, 2.0], {}, "x.py", [{"bin": 1, "load": 0.2}],
)  # fmt: skip
_PATTERNS = ("uniform", "tornado", "hotspot", "adversarial")
#: section → command, choices with values that the base of a file can have, and keys that every choice reads
_SECTIONS: dict[str, tuple[str, dict[str, tuple[Any, ...]], set[str]]] = {
    "traffic": (
        "net",
        {"source": ("bernoulli", "program"), "pattern": _PATTERNS},
        {"source", "classes", "entropy", "reorder", "acknowledge"},
    ),
    "router": (
        "net",
        {"model": ("input_queued", "input_output_queued", "packet"), "va": ("output_first", "wavefront")},
        {"model"},
    ),
    "app": (
        "app",
        {"engine": ("flow", "packet", "loggops")},
        {"engine", "host_gflops"},
    ),
    "tables": (
        "route",
        {"scheme": ("shortest", "up_down", "k_shortest"), "layers": ("acro", "dfsssp")},
        {"scheme", "layers", "patterns", "hotspot", "local", "lmc"},
    ),
    "rule_cache": (
        "gen rule-cache",
        {"policy": ("mep", "exact")},
        {"policy", "entries", "ways", "rows", "address_bits", "output_bits", "id_bits", "tcam_cycles", "invalidation"},
    ),
}


_MIX = {"packet_lengths": [1, 2], "packet_weights": [1.0, 2.0]}
#: keys that need others beside them
_TOGETHER: dict[str, dict[str, Any]] = {
    "traffic.classes": {"classes": [{"name": "a", "share": 0.5}, {"name": "b", "share": 0.5}]},
    "traffic.packet_lengths": _MIX,
    "traffic.packet_weights": _MIX,
}


def _values(annotation: Any, default: Any) -> list[Any]:
    """Return values that a key may have beside its default."""
    words = [value for each in (annotation, *typing.get_args(annotation)) for value in typing.get_args(each)]
    found = [value for value in words if isinstance(value, str | int | bool) and value != default]
    if annotation is bool:
        return [not default]
    if isinstance(default, bool):
        return [not default, *found]
    near = [default + 1, default * 2, default / 2] if isinstance(default, int | float) else []
    return [*found, *near, *_GUESSES]


def _fate(section: str, command: str, keys: dict[str, Any], key: str) -> str | None:
    """Say what becomes of a key: refused, told, read; None: such a file is refused for something else."""
    text = dict(_BASE, **{section: keys})
    if "entropy" in keys:
        text["routing"] = {"algorithm": "minimal", "spread": "entropy"}
    if section == "app" or keys.get("source") == "program":
        text["workload"] = {"kind": "collective", "operation": "bcast"}
    try:
        config = parse_config(yaml.safe_dump(text), keys=False)
    except ConfigError as error:
        said = re.search(rf"\b{section}\.{key}: (.*)", str(error))
        return "refused" if said and re.search(r"\b(is|are) for\b|\bneeds\b", said[1]) else None
    return "told" if f"{section}.{key}" in unused_sections(config, [command]) else "read"


def _fates(section: str, key: str) -> set[str]:
    command, choices, _ = _SECTIONS[section]
    kind = type(getattr(Config.model_construct(), section, None))
    field = Config.model_fields[section].annotation
    model = next(each for each in (kind, field, *typing.get_args(field)) if hasattr(each, "model_fields"))
    info, found = model.model_fields[key], set()
    for values in itertools.product(*(values for name, values in choices.items() if name != key)):
        chosen = dict(zip([name for name in choices if name != key], values, strict=True))
        for value in _values(info.annotation, info.default):
            keys = _TOGETHER.get(f"{section}.{key}", {key: value})
            fate = _fate(section, command, {**chosen, **keys}, key)
            if fate is not None:
                found.add(fate)
                break
    return found


def _keys() -> list[tuple[str, str]]:
    found = []
    for section in _SECTIONS:
        field = Config.model_fields[section].annotation
        model = next(each for each in (field, *typing.get_args(field)) if hasattr(each, "model_fields"))
        found += [(section, key) for key in model.model_fields]
    return found


@pytest.mark.parametrize(("section", "key"), _keys())
def test_each_key_has_an_owner(section: str, key: str) -> None:
    always = _SECTIONS[section][2]
    fates = _fates(section, key)
    assert fates, "no value of this key was taken: name one in _GUESSES"
    owned = bool(fates & {"refused", "told"})
    assert owned != (key in always), f"{section}.{key}: {fates}; a new key is read by every choice, or told, or refused"


SEVERAL = "routing: {algorithm: tables, spread: entropy}\ntables: {scheme: k_shortest, lmc: 1, layers: fewest}\n"
ECMP = "routing: {algorithm: minimal, spread: entropy}\n"


def _unused(command: str, text: str) -> list[str]:
    config = parse_config(f"name: x\ntopology: {{kind: mesh, radices: [2, 2]}}\n{text}", keys=False)
    return unused_sections(config, [command])


@pytest.mark.parametrize(
    ("command", "text", "unread"),
    [
        ("net", "traffic: {low: 2, high: 3, line: 2}", ["traffic.line", "traffic.low", "traffic.high"]),
        ("net", "traffic: {pattern: random_neighbours, low: 2, high: 3, line: 2}", ["traffic.line"]),
        ("net", "traffic: {low: 6, share: 0.5}", []),  # as they are by themselves
        ("net", "traffic: {pattern: file, file: mine.py, low: 2, share: 0.1}", []),
        *((f"{part} router", f"{ways}traffic: {{entropy: {{per: flow}}}}", told)
          for part in ("gen", "cosim --part", "energy --part")
          for ways, told in ((SEVERAL, ["traffic.entropy"]), (ECMP, []))),
        ("gen network", f"{SEVERAL}traffic: {{entropy: {{per: flow}}}}", []),
        ("net", "traffic: {prepare_limit_s: 3}", ["traffic.prepare_limit_s"]),
        ("net", "traffic: {source: on_off, burst_load: 0.5, eager_bytes: 9}", ["traffic.eager_bytes"]),
        ("net", "traffic: {packet_flits: 2, packet_range: [1, 4]}", ["traffic.packet_flits"]),
        ("hits", "workload: {kind: uniform, rounds: 2, order: random}", ["workload.order", "workload.rounds"]),
        ("hits", "workload: {kind: all_to_all, rounds: 2, order: random}", []),
        ("hits", "workload: {kind: all_to_all, packets_per_host: 9}", ["workload.packets_per_host"]),
        ("hits", "workload: {kind: collective, operation: alltoall, root: 1}", ["workload.root"]),
        ("hits", "workload: {kind: collective, operation: barrier, bytes: 1}", ["workload.bytes"]),
        ("hits", "workload: {kind: npb, benchmark: is, class: S, graph: WH}", ["workload.graph"]),
        ("app", "workload: {kind: npb, benchmark: is, computing: {slowdown: 3.0}}", ["workload.computing.slowdown"]),
        ("app", "workload: {kind: training, parallelism: data, layers: 9}", ["workload.layers"]),
        ("app", "workload: {kind: training, parallelism: pipeline, microbatches: 9}", []),
        (
            "app",
            "workload: {kind: jobs, jobs: [{program: {kind: collective, operation: alltoall, root: 1}, ranks: 2}]}",
            ["workload.jobs.program.root"],
        ),
        (
            "app",
            "app: {engine: packet, sharing: equal}\nworkload: {kind: npb, benchmark: is}\ntraffic: {low: 2}",
            ["traffic.low", "app.sharing"],
        ),
        ("app", "workload: {kind: npb, benchmark: is}\ntraffic: {eager_bytes: 9, flit_bytes: 8}",
         ["traffic.eager_bytes"]),
        ("app", "app: {engine: flow}\nworkload: {kind: npb, benchmark: is}\ntraffic: {reply: {}}", ["traffic.reply"]),
        ("app", "workload: {kind: npb, benchmark: is}\nrouter: {vcs: 2, rc_cycles: 2}", ["router.rc_cycles"]),
        *(
            ("app", f"workload: {{kind: npb, benchmark: is}}\nrouter: {{{router}}}{more}", unread)
            for router, more, unread in (  # energy
                ("va: islip, allocator_iterations: 2", "", []),
                ("va: islip, va_iterations: 2", "", []),
                ("model: input_output_queued, output_buffer_flits: 7", "", []),
                ("model: packet", "\npacket: {packet_bytes: 64, queue_packets: 4, link_ns: 9}", ["packet.link_ns"]),
            )
        ),
        ("bounds", "traffic: {share: 0.1, source: on_off, packet_flits: 4}",
         ["traffic.share", "traffic.source", "traffic.packet_flits"]),
        ("bounds", "traffic: {pattern: hotspot, share: 0.1, include_self: false}", ["traffic.include_self"]),
        ("net", "router: {global_latency_cycles: 9}", ["router.global_latency_cycles"]),
        ("net", "router: {model: input_output_queued, global_ns: 37}", []),  # the length of a cycle follows from it
        ("net", "router: {model: input_output_queued, global_ns: 37, cycle_ns: 0.4}", ["router.global_ns"]),
        ("net", "simulation: {failure_series_cycles: 50}", ["simulation.failure_series_cycles"]),
        (
            "net",
            "traffic: {source: program}\nworkload: {kind: npb, benchmark: is}\n"
            "simulation: {load: 0.5, seeds: 2, warmup_cycles: 1500}",
            ["simulation.warmup_cycles", "simulation.load"],
        ),
        (
            "net",
            "router: {model: packet}\nrouting: {algorithm: abr}\npacket: {eta: 3.0, messages: 9}",
            ["packet.eta"],
        ),
        *(
            (command, f"router: {{model: packet}}\nrouting: {{algorithm: abr}}\nsimulation: {{{given}, load: 0.2}}",
             [f"simulation.{given.split(':')[0]}"])
            for given in (
                "precision: 0.1", "min_cycles: 2000", "max_cycles: 20000", "warmup_cycles: 99", "warmup_us: 2.5",
                "measure_us: 2.5", "deadlock_cycles: 200",
            )
            for command in ("net", "sweep", "series")
        ),
        *(
            (command, f"router: {{model: input_output_queued, vcs: 2}}\nsimulation: {{{given}}}", unread)
            for given, unread in (
                ("measure_us: 50, precision: 0.1, min_cycles: 2000, max_cycles: 2000",
                 ["simulation.precision", "simulation.min_cycles", "simulation.max_cycles"]),
                ("warmup_us: 5, precision: 0.1, min_cycles: 2000, max_cycles: 2000", []),
            )
            for command in ("net", "sweep", "series")
        ),
        ("net", "simulation: {load_steps: [{bin: 9, load: 0.2}]}", ["simulation.load_steps"]),
        ("series", "simulation: {load_steps: [{bin: 9, load: 0.2}]}", []),
        ("net", "degraded: {factor: 0.25}", ["degraded.factor"]),
        ("net", "degraded: {factor: 0.25, random_links: 1}", []),
        ("net", "degraded: {from_cycle: 9, until_cycle: 99}", ["degraded.from_cycle", "degraded.until_cycle"]),
        ("app", "workload: {kind: npb, benchmark: is}\napp: {lookup: cache, caches: warm}", []),
        ("app", "workload: {kind: npb, benchmark: is}\napp: {lookup: miss, caches: warm}", ["app.caches"]),
        (
            "app",
            "workload: {kind: npb, benchmark: is}\napp: {engine: packet, lookup: cache, caches: warm}",
            ["app.caches"],
        ),
        *(
            ("app", f"workload: {{kind: npb, benchmark: is}}\n"
             f"timing: {{cache_ns: 2.5, tcam_ns: 9.0, miss_penalty_ns: 9.0, switch_base_ns: 9.0, "
             f"conventional_switch_ns: 9.0, cable_ns: 9.0}}\n{more}app: {{lookup: {lookup}}}",
             [f"timing.{key}" for key in unread])
            for lookup, more, unread in (
                ("hit", "", ["cache_ns", "tcam_ns", "miss_penalty_ns", "conventional_switch_ns"]),
                ("miss", "", ["cache_ns", "tcam_ns", "conventional_switch_ns"]),
                ("conventional", "", ["cache_ns", "tcam_ns", "switch_base_ns", "miss_penalty_ns"]),
                ("cache", "lookup: {cache: {entries: 8, ways: 2, second_level: {entries: 64, ways: 4}}}\n",
                 ["cache_ns", "conventional_switch_ns"]),
                ("cache, engine: packet",
                 "lookup: {cache: {entries: 8, ways: 2, second_level: {entries: 64, ways: 4}}}\n",
                 ["cache_ns", "tcam_ns", "conventional_switch_ns"]),
            )
        ),
        *(
            ("app", "workload: {kind: jobs, jobs: [{name: a, program: {kind: npb, benchmark: is, max_flits: 9}}]}\n"
             f"app: {{engine: {engine}}}", unread)
            for engine, unread in (("flow", ["workload.jobs.program.max_flits"]), ("packet", []))
        ),
        ("net", "tables: {lmc: 2}\nrouting: {algorithm: tables}", ["tables.lmc"]),
        ("net", "tables: {scheme: k_shortest, layers: fewest, lmc: 2}\nrouting: {algorithm: tables, spread: flow}", []),
        ("route", "tables: {lmc: 2}", []),
        ("route", "tables: {patterns: 9, hotspot: [0.2], local: [4.0]}", []),
        ("net", "tables: {patterns: 9}\nrouting: {algorithm: tables}", ["tables.patterns"]),
        ("net", "tables: {hotspot: [0.2]}\nrouting: {algorithm: tables}", ["tables.hotspot"]),
        ("net", "tables: {local: [4.0]}\nrouting: {algorithm: tables}", ["tables.local"]),
        ("hits", "workload: {kind: uniform}\nlookup: {lag: {hash: modulo}}", ["lookup.lag.hash"]),
        ("hits", "workload: {kind: uniform}\nlookup: {up_choice: highest_mismatch}", ["lookup.up_choice"]),
    ],
)
def test_unread_keys_are_told(command: str, text: str, unread: list[str]) -> None:
    assert _unused(command, text) == unread


@pytest.mark.parametrize(("command", "given", "unread"), [
    ("net", "estimate_fraction_bits: 3", ["routing.estimate_fraction_bits"]),
    ("sweep", "estimate_rounding: random", ["routing.estimate_rounding"]),
    ("net", "estimate_fraction_bits: 3, estimate_rounding: random, estimate_bits: 12", []),
    ("gen q-table", "estimate_fraction_bits: 3, estimate_rounding: random", []),
    ("lint", "estimate_fraction_bits: 3, estimate_rounding: random", []),  # --what q_table
])  # fmt: skip
def test_steps_of_learned_times_need_bits(command: str, given: str, unread: list[str]) -> None:
    """A simulation without `estimate_bits` learns in floats, the table in hardware has 16 bits."""
    network = "topology: {kind: dragonfly, p: 2, a: 4, h: 2}\nrouter: {vcs: 5}"
    config = parse_config(f"name: x\n{network}\nrouting: {{algorithm: q_adaptive, {given}}}\n", keys=False)
    found = unused_sections(config, {command})
    assert [key for key in found if key.startswith("routing.")] == unread


def test_an_algorithm_of_ones_own_may_read_steps_without_bits() -> None:
    given = "algorithm: file, file: mine.py, estimate_fraction_bits: 3, estimate_rounding: random"
    config = parse_config(f"name: x\ntopology: {{kind: mesh, radices: [4]}}\nrouting: {{{given}}}\n", keys=False)
    assert unused_sections(config, {"net"}) == []


@pytest.mark.parametrize("kind", typing.get_args(RouterConfig.model_fields["flit_buffers"].annotation))
def test_areas_of_other_buffers_are_told(kind: str) -> None:
    keys = {"memory": "buffer", "latches": "latch", "flip_flops": "flip_flop"}
    given = "".join(f"  {key}_um2_per_bit: 1.5\n" for key in keys.values())
    text = f"workload: {{kind: npb, benchmark: is}}\nrouter: {{flit_buffers: {kind}}}\nenergy:\n{given}"
    assert set(_unused("app", text)) == {f"energy.{key}_um2_per_bit" for other, key in keys.items() if other != kind}
    assert _unused("workload", text) == ["router", "energy"]  # the section is told, its keys are not


def test_a_key_that_one_variant_reads_is_read() -> None:
    variants = "simulation: {variants: {a: {traffic.pattern: random_neighbours}, b: {}}}"
    assert _unused("sweep", f"traffic: {{low: 2, line: 2}}\n{variants}") == ["traffic.line"]


def test_the_tables_name_keys_that_there_are() -> None:
    for name in (*OTHER_KEYS, *(f"traffic.{key}" for key in (*PATTERN_KEYS, *SOURCE_KEYS))):
        section: Any = Config.model_construct()
        *sections, key = name.split(".")
        for each in sections:
            section = type(section).model_fields[each].get_default(call_default_factory=True)
        assert key in type(section).model_fields, name
    assert all(f"app.{key}" in OTHER_KEYS for key in FLOW_KEYS)
    assert {key for key in TrafficConfig.model_fields if key in PATTERN_KEYS} == set(PATTERN_KEYS)


def _program(kind: str) -> Any:
    return next(
        each
        for each in typing.get_args(typing.get_args(WorkloadConfig)[0])
        if kind in typing.get_args(each.model_fields["kind"].annotation)
    )


@pytest.mark.parametrize("kind", sorted(WORKLOAD_KEYS))
def test_the_tables_name_keys_and_values_of_programs(kind: str) -> None:
    fields = _program(kind).model_fields
    for key, (choice, values) in WORKLOAD_KEYS[kind].items():
        known = {None, *typing.get_args(fields[choice].annotation)}
        known |= {value for each in tuple(known) for value in typing.get_args(each)}
        assert key in fields and values <= known, key
