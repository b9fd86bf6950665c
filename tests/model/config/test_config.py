"""Every mistake in a configuration gives one line with file, line and key."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hopforge.model.config import CacheConfig, Config, ConfigError, CrcConfig, load_config, parse_config
from hopforge.model.config.base import ConfigPath, Section, TracePath
from hopforge.model.config.load import FILE_KEY, with_place
from hopforge.model.config.reference import json_schema, markdown
from hopforge.model.config.source import apply_variant, dotted, read_source, undotted

GOOD = """\
name: demo
seed: 7
topology:
  kind: torus
  radices: [4, 4, 4]
lookup:
  cache:
    entries: 2048
    ways: 4
"""
ROOT = Path(__file__).parents[3]


def complaint(text: str, **options: bool) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "x.yml", **options)
    return str(caught.value)


def test_good_file_and_its_defaults() -> None:
    config = parse_config(GOOD)
    assert config.seed == 7
    assert config.topology.kind == "torus"
    assert config.topology.radices == (4, 4, 4)
    assert config.lookup.cache.policy == "lru"
    assert config.lookup.cache.random_seed == 0xACE1
    assert config.workload is None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("ways: 4", "ways: 3", "x.yml:9: lookup.cache.ways: must divide entries=2048, not 3"),
        (
            "entries: 2048",
            "entries: 12",
            "x.yml:8: lookup.cache.entries: must give a power of two of sets, not 12/4 = 3",
        ),
        ("ways: 4", "ways: 4.0", "x.yml:9: lookup.cache.ways: expected a whole number, not 4.0"),
        ("ways: 4", "ways: four", "x.yml:9: lookup.cache.ways: expected a whole number, not 'four'"),
        ("ways: 4", "ways: true", "x.yml:9: lookup.cache.ways: expected a whole number, not true"),
        ("ways: 4", "ways:", "x.yml:9: lookup.cache.ways: expected a whole number, not nothing"),
        ("ways: 4", "ways: 0", "x.yml:9: lookup.cache.ways: must be at least 1, not 0"),
        ("ways: 4", "ways: 65", "x.yml:9: lookup.cache.ways: must be at most 64, not 65"),
        ("ways: 4", "wayz: 4", "x.yml:9: lookup.cache.wayz: unknown key; did you mean 'ways'?"),
        ("seed: 7", "sede: 7", "x.yml:2: sede: unknown key; did you mean 'seed'?"),
        ("seed: 7", "seed: 7\nseed: 8", "x.yml:3: seed: key stands twice, first on line 2"),
        ("seed: 7", f"seed: {10**18 + 1}", f"x.yml:2: seed: must be at most {10**18}, not {10**18 + 1}"),
        ("seed: 7", "seed: 1_0", "x.yml:2: seed: expected a whole number, not '1_0'"),
        ("seed: 7", "seed: 2020-01-01", "x.yml:2: seed: expected a whole number, not '2020-01-01'"),
        ("name: demo", "name: demo\nrouting: {algorithm: my.py}", "x.yml:2: routing.algorithm: must match "
         "^[a-z][a-z0-9_]*$, not 'my.py'; a file of your own is algorithm: file, file: my.py"),
        ("name: demo", "name: demo.py", "x.yml:1: name: must match ^[a-z][a-z0-9_]*$, not 'demo.py'"),
        ("name: demo", "name: Demo 1", "x.yml:1: name: must match ^[a-z][a-z0-9_]*$, not 'Demo 1'"),
        ("name: demo\n", "", "x.yml:1: name: missing"),
        ("kind: torus", "kind: tours", "x.yml:4: topology.kind: unknown 'tours'; did you mean 'torus'?"),
        ("  kind: torus\n", "", "x.yml:3: topology.kind: missing"),
        ("radices: [4, 4, 4]", "radices: []", "x.yml:5: topology.radices: must not be empty"),
        ("radices: [4, 4, 4]", "radices: 4", "x.yml:5: topology.radices: expected a list, not 4"),
        ("  radices: [4, 4, 4]\n", "", "x.yml:3: topology.radices: missing"),
        (
            "radices: [4, 4, 4]",
            "radices:\n  - 4\n  - 17",
            "x.yml:7: topology.radices[1]: 17 is more than the 16 values of a chunk of address.chunk_bits=4",
        ),
        (
            "radices: [4, 4, 4]",
            "radices: [4, 4, 4, 4, 4, 4]\n  hosts_per_router: 2",
            "x.yml:5: topology.radices: 7 digits of address.chunk_bits=4 need 28 bits, more than address.width_bits=24",
        ),
        ("[4, 4, 4]", "[4, 4, 4", "x.yml:6: not valid YAML: "),
        ("  kind", "\tkind", "x.yml:4: a tab; YAML is indented with spaces"),
        ("seed: 7", "cosim: 3", "x.yml:2: cosim: expected a section (key: value), not 3"),
        ("seed: 7", "workload: [1]", "x.yml:2: workload: expected a section (key: value), not a list"),
        ("ways: 4", "ways: 3\n    entires: 9", "x.yml:10: lookup.cache.entires: unknown key; did you mean 'entries'?"),
        (
            "ways: 4",
            "ways: 4\n  memory_stage: true",
            "x.yml:10: lookup.memory_stage: needs pipeline_depth 5 to 8, not 3",
        ),
        (
            "ways: 4",
            "policy: mru",
            "x.yml:9: lookup.cache.policy: must be 'lru', 'plru', 'fifo', 'random' or 'srrip', not 'mru'",
        ),
        (
            "ways: 4",
            "tag_bits: 27",
            "x.yml:9: lookup.cache.tag_bits: must be at least address.width_bits + 4 = 28, not 27",
        ),
        (
            "ways: 4",
            "output_bits: 2",
            "x.yml:9: lookup.cache.output_bits: must hold the numbers of 7 ports, not 2 bits",
        ),
        (
            "ways: 4",
            "output_bits: 6\n    output_kind: port_set",
            "x.yml:9: lookup.cache.output_bits: must hold a bit for each of 7 ports, not 6 bits",
        ),
        ("ways: 4", "crc: CRC-31", "x.yml:9: lookup.cache.crc: unknown 'CRC-31'; did you mean 'CRC-32"),
        ("ways: 4", "crc: 32", "x.yml:9: lookup.cache.crc: expected text, not 32"),
        ("ways: 4", "crc: {width: 8}", "x.yml:9: lookup.cache.crc.poly: missing"),
        (
            "ways: 4",
            "crc: {width: 8, poly: 7, polly: 7}",
            "x.yml:9: lookup.cache.crc.polly: unknown key; did you mean 'poly'?",
        ),
        (
            "ways: 4",
            "crc: {width: 8, poly: 0x107}",
            "x.yml:9: lookup.cache.crc.poly: must be less than 2^8 (width=8), not 0x107",
        ),
        (
            "ways: 4",
            "crc: {width: 8, poly: 7}",
            "x.yml:9: lookup.cache.crc: must be at least as wide as the set index, 9 bits, not 8",
        ),
        (
            "ways: 4",
            "second_level: {entries: 24, ways: 4}",
            "x.yml:9: lookup.cache.second_level.entries: must give a power of two of sets, not 24/4 = 6",
        ),
        (
            "  cache:",
            "  chunk_bits: [2, 8]\n  cache:",
            "x.yml:7: lookup.chunk_bits: must contain address.chunk_bits=4",
        ),
        ("  cache:", "  chunk_bits: [2, 4, 2]\n  cache:", "x.yml:7: lookup.chunk_bits: names 2 twice"),
        (
            "  cache:",
            "  functions: [arbitrary, mesh]\n  cache:",
            "x.yml:7: lookup.functions: must contain topology.kind='torus'",
        ),
        ("  cache:", "  functions: [torus]\n  cache:", "x.yml:7: lookup.functions: must contain 'arbitrary'"),
        (
            "  cache:",
            "  comparators: 2\n  cache:",
            "x.yml:7: lookup.comparators: must be at least the 3 digits that decide, not 2",
        ),
        (
            "  cache:",
            "  lag: {members: 4}\n  cache:",
            "x.yml:7: lookup.lag.members: must be at most max_members=1, not 4",
        ),
        (
            "  cache:",
            "  tcam: {kind: sram, latency_cycles: 1}\n  cache:",
            "x.yml:7: lookup.tcam.latency_cycles: must be at least 2 for kind=sram, not 1",
        ),
        (
            "seed: 7",
            "workload: {kind: trace, file: x, mapping: {kind: file}}",
            "x.yml:2: workload.mapping.file: missing",
        ),
        (
            "seed: 7",
            "workload: {kind: trace, file: x, mapping: {file: y}}",
            "x.yml:2: workload.mapping.file: is for kind=file only, not kind=linear",
        ),
        ("seed: 7", "timing: {cache_ns: .inf}", "x.yml:2: timing.cache_ns: expected a number, not '.inf'"),
        ("seed: 7", "timing: {cache_ns: 1e999}", "x.yml:2: timing.cache_ns: expected a finite number, not inf"),
        ("seed: 7", "timing: {cache_ns: 0}", "x.yml:2: timing.cache_ns: must be more than 0"),
        ("seed: 7", "seed: &a 7", "x.yml:2: anchors and aliases are not supported"),
        (
            "seed: 7",
            "seed: !!python/object:os.system 7",
            "x.yml:2: tag 'tag:yaml.org,2002:python/object:os.system' is not",
        ),
        ("seed: 7", "? [a]\n: 7", "x.yml:2: a key must be plain text"),
        (
            "seed: 7",
            "seed: 7\n---",
            "x.yml:3: not valid YAML: expected a single document in the stream, but found another",
        ),
        ("seed: 7", "seed: \x00", "x.yml:2: character 0 is not allowed in YAML text"),
        (
            "seed: 7",
            "router: {speculation: maybe}",
            "x.yml:2: router.speculation: expected true or false, or must be 'shared' or 'yielding', not 'maybe'",
        ),
        (
            "seed: 7",
            "tables: {root: 1.5}",
            "x.yml:2: tables.root: must be 'centre' or 'highest_degree', or expected a whole number, not 1.5",
        ),
        (
            "seed: 7",
            "router: {speculation: shared, sa: wavefront}",
            "x.yml:2: router.sa: must be one of output_first, islip, max_size, loa, pim with speculation=shared, not "
            "wavefront",
        ),
        (
            "seed: 7",
            "router: {va: free_queue, speculation: shared}",
            "x.yml:2: router.speculation: must be false with va=free_queue (heads ask for the switch anyway), "
            "not shared",
        ),
        (
            "seed: 7",
            "router: {sa: input_ahead}",
            "x.yml:2: router.sa: input_ahead needs va=free_queue, not output_first",
        ),
        (
            "seed: 7",
            "router: {sa: input_ahead, va: free_queue, lookahead: true, rc_cycles: 1}",
            "x.yml:2: router.sa: input_ahead needs rc_cycles=0, not 1",
        ),
        (
            "seed: 7",
            "router: {lookahead: true}",
            "x.yml:2: router.rc_cycles: must be 1 to 2 with lookahead (beside VA and SA), not 0",
        ),
        (
            "seed: 7",
            "router: {lookahead: true, rc_cycles: 2, va: free_queue}",
            "x.yml:2: router.rc_cycles: must be 1 with lookahead (where heads ask for the switch at once), not 2",
        ),
        (
            "seed: 7",
            "simulation: {min_cycles: 5000, max_cycles: 1000}",
            "x.yml:2: simulation.min_cycles: must be at most max_cycles=1000, not 5000",
        ),
        ("demo", '"\\ud800"', "x.yml:1: text with half a character"),
        ("demo", "[" * 3000, "x.yml:1: nested too deeply"),
    ],
)
def test_one_mistake_one_line(old: str, new: str, expected: str) -> None:
    assert old in GOOD
    told = complaint(GOOD.replace(old, new, 1))
    assert told.startswith(expected)
    assert "\n" not in told


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_empty_file(text: str) -> None:
    assert complaint(text) == "x.yml:1: the file is empty"


@pytest.mark.parametrize(("text", "what"), [("- 1", "a list"), ("3", "3"), ("just text", "'just text'")])
def test_file_that_is_no_section(text: str, what: str) -> None:
    assert complaint(text) == f"x.yml:1: expected a section (key: value), not {what}"


@pytest.mark.parametrize(("key", "section"), [
    ("failed.switches", "failed: {switches: [1, N]}"), ("failed.links", "failed: {links: [[0, N]]}"),
    ("app.eager_bytes", "app: {eager_bytes: N}"), ("routing.root", "routing: {root: N}"),
    ("timing.slot_bytes", "timing: {slot_bytes: N}"), ("traffic.line", "traffic: {line: N}"),
    ("workload.packets_per_host", "workload: {kind: uniform, packets_per_host: N}"),
    ("workload.ranks", "workload: {kind: collective, operation: barrier, ranks: N}"),
    ("simulation.warmup_cycles", "simulation: {warmup_cycles: N}"),
    ("simulation.max_cycles", "simulation: {max_cycles: N}"),
    ("simulation.deadlock_cycles", "simulation: {deadlock_cycles: N}"),
    ("simulation.failures[0].cycle", "simulation: {failures: [{cycle: N, links: [[0, 1]]}]}"),
    ("degraded.until_cycle", "degraded: {links: [[0, 1]], until_cycle: N}"), ("seed", "seed: N"),
])  # fmt: skip
@pytest.mark.parametrize("value", [2**63, 10**30])
def test_whole_numbers_that_arrays_do_not_hold(key: str, section: str, value: int) -> None:
    text = f"name: x\ntopology: {{kind: mesh, radices: [2, 2]}}\n{section.replace('N', str(value))}\n"
    told = complaint(text)
    assert told.startswith(f"x.yml:3: {key}: must be at most 1") and told.endswith(f", not {value}"), told


def test_bits_of_a_register_are_no_numbers_of_arrays() -> None:
    crc = "{width: 64, poly: 0xad93d23594c935a9, init: 0xffffffffffffffff}"
    config = parse_config(f"name: x\ntopology: {{kind: mesh, radices: [2, 2]}}\nlookup: {{cache: {{crc: {crc}}}}}\n")
    assert config.lookup.cache.crc == CrcConfig(width=64, poly=0xAD93D23594C935A9, init=2**64 - 1)


def test_every_mistake_is_told_in_the_order_of_the_file() -> None:
    told = complaint(
        GOOD.replace("seed: 7", "seed: x")
        .replace("radices: [4, 4, 4]", "radices: [0, 4, 300]")
        .replace("ways: 4", "ways: 3")
    )
    assert told.splitlines() == [
        "x.yml:2: seed: expected a whole number, not 'x'",
        "x.yml:5: topology.radices[0]: must be at least 1, not 0",
        "x.yml:5: topology.radices[2]: must be at most 256, not 300",
        "x.yml:9: lookup.cache.ways: must divide entries=2048, not 3",
    ]


def test_hardware_needs_its_cache() -> None:
    text = GOOD + "    enabled: false\n"
    assert not parse_config(text).lookup.cache.enabled
    told = complaint(text, hardware=True)
    assert told == "x.yml:10: lookup.cache.enabled: must be true for a lookup engine in hardware, not false"


def test_skewed_lru_is_for_the_functional_model_only() -> None:
    text = GOOD + "    skewed: true\n"
    assert parse_config(text).lookup.cache.skewed
    told = complaint(text, hardware=True)
    assert told == "x.yml:7: lookup.cache.policy: must be random with skewed association in hardware, not lru"
    assert complaint(text + "    policy: plru\n") == (
        "x.yml:11: lookup.cache.policy: plru is not defined for skewed association; take random, lru or fifo"
    )
    assert parse_config(text + "    policy: random\n", hardware=True).lookup.cache.policy == "random"


@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        (
            "{kind: fat_tree, k: 17, n: 1}",
            "topology.k: 17 is more than the 16 values of a chunk of address.chunk_bits=4",
        ),
        ("{kind: fat_tree, k: 2, n: 6}", "topology.n: 7 digits of address.chunk_bits=4 need 28 bits"),
        ("{kind: dragonfly, p: 17, a: 2, h: 1}", "topology.p: 17 is more than the 16 values of a chunk"),
        ("{kind: dragonfly, p: 2, a: 17, h: 1}", "topology.a: 17 is more than the 16 values of a chunk"),
        (
            "{kind: dragonfly, p: 2, a: 2, h: 1, g: 4}",
            "topology.g: 4 groups are more than the a*h + 1 = 3 that can be linked",
        ),
        (
            "{kind: mesh, radices: [4], hosts_per_router: 17}",
            "topology.hosts_per_router: 17 is more than the 16 values",
        ),
    ],
)
def test_network_that_does_not_fit_its_addresses(topology: str, expected: str) -> None:
    told = complaint(f"name: x\ntopology: {topology}\n")
    assert told.startswith(f"x.yml:2: {expected}")


def test_digits_must_fit_a_narrow_address() -> None:
    text = "name: x\naddress: {width_bits: 12, chunk_bits: 8}\ntopology: {kind: dragonfly, p: 4, a: 4, h: 1}\n"
    assert complaint(text).splitlines() == [
        "x.yml:1: lookup.chunk_bits: must be at most address.width_bits - 6 = 6, not 8",
        "x.yml:2: address.chunk_bits: must be less than half of address.width_bits=12 for a dragonfly, not 8; "
        "with address.chunk_bits: 4 it fits",
    ]


def test_chunks_must_fit_a_narrow_address_in_hardware_without_reduction_too() -> None:
    text = "name: x\naddress: {width_bits: 12}\nlookup: {reduction: false}\ntopology: {kind: mesh, radices: [3]}\n"
    expected = "x.yml:3: lookup.chunk_bits: must be at most address.width_bits - 6 = 6, not 8"
    assert complaint(text, hardware=True) == expected
    assert complaint(text + "router: {route_computation: lookup}\n") == expected
    assert parse_config(text).address.width_bits == 12


def test_group_number_must_fit_the_value_field_of_a_key() -> None:
    # 12-bit address, 2-bit digits: 8 bits of group in the address, but 6 bits of value in a key
    text = (
        "name: x\naddress: {width_bits: 12, chunk_bits: 2}\nlookup: {chunk_bits: [2]}\n"
        "topology: {kind: dragonfly, p: 4, a: 4, h: 17, g: G}\n"
    )
    assert parse_config(text.replace("G", "64")).topology.kind == "dragonfly"
    assert "topology.g: 65 groups are more than the 64 values of the 6 group bits" in complaint(text.replace("G", "65"))


def test_files(tmp_path: Path) -> None:
    for content, expected in {
        b"name: \xff\n": "not UTF-8 text (byte 0xff)",
        b"\x89PNG\r\n\x1a\n\x00\x00": "not UTF-8 text (byte 0x89)",
        b"a" * (1 << 20) + b"a": "the configuration: holds more than 1 MiB (HOPFORGE_INPUT_MIB sets another limit)",
    }.items():
        path = tmp_path / "x.yml"
        path.write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            load_config(path)
        assert expected in str(caught.value)
        assert str(caught.value).startswith(str(path))
    with pytest.raises(ConfigError, match=r"cannot read the configuration: No such file"):
        load_config(tmp_path / "none.yml")
    with pytest.raises(ConfigError, match=r"cannot read the configuration: Is a directory"):
        load_config(tmp_path)


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.yml"
    path.write_text(
        "name: x\ntopology: {kind: edge_list, file: nets/a.txt}\n"
        "workload: {kind: trace, file: t.tar.xz, mapping: {kind: file, file: /else/where.txt}}\n"
    )
    config = load_config(path)
    assert config.topology.kind == "edge_list"
    assert config.topology.file == tmp_path / "nets" / "a.txt"
    assert config.workload is not None and config.workload.kind == "trace"
    assert config.workload.file == str(tmp_path / "t.tar.xz")
    assert config.workload.mapping.file == Path("/else/where.txt")
    path.write_text(path.read_text().replace("t.tar.xz", "shipped:is.A.64"))
    assert load_config(path).workload.file == "shipped:is.A.64"  # type: ignore[union-attr]


def test_sections_made_in_python_are_checked_too() -> None:
    with pytest.raises(ValidationError, match=r"ways: must divide entries=2048, not 3"):
        CacheConfig(ways=3)
    with pytest.raises(ValidationError, match=r"poly: must be less than 2\^4 \(width=4\), not 0x10"):
        CrcConfig(width=4, poly=16)


def test_yaml_of_version_1_2() -> None:
    text = "a: 010\nb: 0x10\nc: 0o17\nd: 1e-3\ne: yes\nf: '7'\ng: 1:30\nh: ~\ni: true\nj: -.5\nk: |\n  7\nl: 0b11\n"
    assert read_source(text).data == {
        "a": 10, "b": 16, "c": 15, "d": 0.001, "e": "yes", "f": "7", "g": "1:30", "h": None, "i": True, "j": -0.5,
        "k": "7\n", "l": 3,
    }  # fmt: skip


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.text(st.characters(categories=["L", "N", "P"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.from_regex(r"[a-z]{1,6}", fullmatch=True), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(json_values.filter(lambda value: value not in (None, "")), st.none() | st.just(2))
def test_json_is_read_as_it_is(value: object, indent: int | None) -> None:
    assert read_source(json.dumps(value, ensure_ascii=False, indent=indent)).data == value


@given(
    st.lists(st.from_regex(r"[a-z_]{1,5}", fullmatch=True) | st.integers(0, 99), min_size=1).filter(
        lambda p: isinstance(p[0], str)
    )
)
def test_written_path_is_read_back(path: list[str | int]) -> None:
    assert undotted(dotted(tuple(path))) == tuple(path)


@given(st.text(max_size=200))
def test_any_text_gives_a_configuration_or_one_clear_error(text: str) -> None:
    try:
        parse_config(text, "x.yml")
    except ConfigError as error:
        assert all(line.startswith("x.yml:") for line in str(error).splitlines())


def test_schema_and_page_of_every_key_are_current() -> None:
    schema = json.loads(json_schema())
    assert set(schema["properties"]) == set(Config.model_fields)
    page = (ROOT / "docs" / "definitions" / "configuration.md").read_text(encoding="utf-8")
    assert page == markdown(), "docs/definitions/configuration.md is out of date: make docs"


def test_every_key_says_what_it_is() -> None:
    definitions = json.loads(json_schema())["$defs"]
    assert len(definitions) > 10
    for name, section in definitions.items():
        assert section.get("description"), name
        for key, value in section["properties"].items():
            assert value.get("description"), f"{name}.{key}"


def test_shipped_configurations_are_good() -> None:
    files = sorted((ROOT / "configs").glob("*.yml"))
    assert files
    for file in files:
        load_config(file)


def test_what_is_found_later_gets_its_place(tmp_path: Path) -> None:
    path = tmp_path / "x.yml"
    path.write_text(GOOD)
    load_config(path)
    assert with_place("topology.radices[1]: is bad") == f"{path}:5: topology.radices[1]: is bad"
    assert with_place("lookup.cache.policy: is bad") == f"{path}:7: lookup.cache.policy: is bad"  # not in the file
    assert with_place("topology.radices must be even") == f"{path}:5: topology.radices must be even"
    for other in (
        "other.txt:3: is bad",
        "router must be",
        "other.key must be",
        "icarus: is missing",
        "no key",
        "Topology: x",
    ):
        assert with_place(other) == other


def test_a_file_that_is_found_wrong_later_gets_the_place_of_its_key(tmp_path: Path) -> None:
    path = tmp_path / "x.yml"
    path.write_text(GOOD + "workload:\n  kind: trace\n  file: none.tar\n")
    load_config(path)
    line = len(path.read_text().splitlines())
    error = f"{tmp_path / 'none.tar'}: cannot be read"
    assert with_place(error) == f"{path}:{line}: workload.file: {error}"
    for other in (error.replace("none.tar", "mesh"), error.replace("none.tar:", "none.tar:12:"), "none.tar is bad"):
        assert with_place(other) == other


def test_the_place_of_a_file_of_a_variant() -> None:
    text = f"{GOOD}simulation:\n  variants:\n    a:\n      workload: {{kind: trace, file: none.tar}}\n"
    source, error = read_source(text), "none.tar: cannot be read"
    line = len(text.splitlines())
    assert with_place(error, ("x.yml", source)) == f"x.yml:{line}: simulation.variants.a.workload.file: {error}"
    assert error in with_place(error, ("x.yml", apply_variant(source, "a")))  # which has no variants any more


def test_keys_of_files_are_known_by_their_names() -> None:
    def sections(kind: type[Section]) -> Iterator[type[Section]]:
        for each in kind.__subclasses__():
            yield each
            yield from sections(each)

    found = {
        name
        for section in sections(Section)
        for name, hint in get_type_hints(section, include_extras=True).items()
        if any(kind in (hint, *get_args(hint)) for kind in (ConfigPath, TracePath))
    }
    assert {"file", "rules_file", "weights"} <= found
    assert all(FILE_KEY.fullmatch(name) for name in found), found


def test_wrong_elements_do_not_make_a_list_empty() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config("name: x\ntopology: {kind: mesh, radices: [1000, 2000]}\n", "x.yml")
    assert str(caught.value).splitlines() == [
        "x.yml:2: topology.radices[0]: must be at most 256, not 1000",
        "x.yml:2: topology.radices[1]: must be at most 256, not 2000",
    ]


@pytest.mark.parametrize(
    ("addition", "expected"),
    [
        ("router:\n  <<: {vcs: 2}\n", "4: merge keys (<<) are not supported; repeat the keys"),
        ("<<: {vcs: 2}\n", "3: merge keys (<<) are not supported; repeat the keys"),
        ("simulation: {variants: {a: {<<: 1}}}\n", "3: merge keys (<<) are not supported; repeat the keys"),
        ("<x: 1\n", "3: <x: unknown key; known: name, seed"),
        ("router: {<x: 1}\n", "3: router.<x: unknown key; known: model"),
        ("workload: {kind: uniform, <x: 1}\n", "3: workload.<x: unknown key; known: "),
        ("workload: {kind: trace, file: \"a\\0b\"}\n", "3: workload.file: a file name cannot hold the character NUL"),
        ("seed: [" + "1," * 21000 + "]\n", "3: more than 20000 keys and values in the file"),
        ("seed: 0x" + "f" * 99 + "\n", "3: seed: expected a whole number"),
        ("timing: {cable_ns: .inf}\n", "3: timing.cable_ns: expected a number, not '.inf'"),
        ("timing: {cable_ns: 1e999}\n", "3: timing.cable_ns: expected a finite number, not inf"),
    ],
)  # fmt: skip
def test_yaml_that_is_none_of_ours(addition: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config("name: x\ntopology: {kind: torus, radices: [4, 4]}\n" + addition, "F.yml")
    assert str(caught.value).startswith(f"F.yml:{expected}")


def test_line_ends_and_marks() -> None:
    text = "name: x\ntopology: {kind: torus, radices: [4, 4]}\n"
    wanted = parse_config(text)
    for ends in ("\r\n", "\r"):
        assert parse_config(text.replace("\n", ends)) == wanted


@pytest.mark.parametrize(
    ("router", "lookup", "message"),
    [
        ("", "ports_per_engine: 2", "x.yml:4: lookup.ports_per_engine: must be 1 with router.lookahead, not 2"),
        (
            "",
            "cache: {output_kind: port_set}",
            "x.yml:4: lookup.cache.output_kind: must be port with router.lookahead (the next router is known before "
            "allocation), or routing.spread flow or entropy, not port_set",
        ),
        (
            ", vcs: 16",
            "mshrs: 8",
            "x.yml:3: router.lookahead: lookup engines of outputs serve at most 64 virtual channels, not "
            "5 ports · 16 = 80",
        ),
        (
            ", vcs: 2",
            "request_tag_bits: 3",
            "x.yml:4: lookup.request_tag_bits: must number 5 ports · router.vcs=2 = 10 with router.lookahead, not "
            "3 bits",
        ),
    ],
)
def test_look_ahead_with_lookup_engines(router: str, lookup: str, message: str) -> None:
    text = f"router: {{lookahead: true, route_computation: lookup{router}}}\nlookup: {{{lookup}}}\n"
    assert complaint(f"name: x\ntopology: {{kind: mesh, radices: [4, 4]}}\n{text}") == message


def test_a_set_of_more_ports_than_bits_names_the_key_that_can_change() -> None:
    text = (
        "name: x\ntopology: {kind: fully_connected, routers: 3, hosts_per_router: 70}\n"
        "lookup: {cache: {output_kind: port_set, output_bits: 64}}\nrouter: {route_computation: lookup}\n"
    )
    told = r"lookup.cache.output_kind: must be port with 72 ports \(a set has at most 64\), not port_set"
    with pytest.raises(ConfigError, match=told):
        parse_config(text)
