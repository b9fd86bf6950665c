"""`hopforge explain`: every key of the schema is found by its path, and tells what its class says."""

from collections.abc import Iterator
from typing import Any

import pytest

from hopforge.model.config.reference import KeyHelp, all_keys, inner_sections, key_help
from hopforge.model.config.root import Config
from hopforge.model.errors import UserError

SCHEMA = Config.model_json_schema()


def paths(section: dict[str, Any], begin: str = "") -> Iterator[tuple[str, str]]:
    """Yield path and meaning of every key, from the schema itself."""
    for word, node in section["properties"].items():
        yield f"{begin}{word}", " ".join(node.get("description", "").split())
        for inner in inner_sections(node.get("items", node), SCHEMA["$defs"]):
            yield from paths(inner, f"{begin}{word}.")


def test_every_key_is_found_with_its_meaning() -> None:
    every = list(paths(SCHEMA))
    assert len(every) > 200
    for path, meaning in every:
        assert meaning in {found.meaning for found in key_help(path)} or not meaning


def test_one_key() -> None:
    (found,) = key_help("router.vcs")
    assert found == KeyHelp("router.vcs", "whole number ≥ 1, ≤ 16", "`4`", "Virtual channels per port.")
    assert key_help("simulation.failures[3].cycle") == key_help("simulation.failures.cycle")


def test_kinds_that_differ_are_told_apart() -> None:
    found = {one.kinds: one.value for one in key_help("topology.hosts_per_router")}
    assert found["slim_fly", "polarfly"] == "whole number ≥ 1, ≤ 1024"
    assert any("torus" in kinds and "mesh" in kinds for kinds in found)


def test_sections_list_their_keys() -> None:
    (cache,) = key_help("lookup.cache")
    assert {"lookup.cache.entries", "lookup.cache.ways"} <= {one.path for one in cache.keys}
    (topology,) = key_help("topology")
    assert "kind: torus" in {one.path for one in topology.keys}
    assert {"topology", "router", "simulation"} <= {one.path for one in all_keys().keys}


@pytest.mark.parametrize("path", ["director", "topology.director"])
def test_the_name_of_a_kind_stands_for_its_section(path: str) -> None:
    (found,) = key_help(path)
    assert (found.path, found.kinds) == ("topology", ("director",)) and found.meaning.startswith("Switches at the top")
    assert {"topology.racks", "topology.fabrics"} <= {one.path for one in found.keys}
    assert {one.path for one in key_help(f"{path}.racks")} == {"topology.racks"}


def test_every_kind_is_found_by_its_name() -> None:
    (topology,) = key_help("topology")
    (workload,) = key_help("workload")
    kinds = [
        (section.path, one.path.removeprefix("kind: ")) for section in (topology, workload) for one in section.keys
    ]
    assert len(kinds) >= 28
    for section, kind in kinds:
        assert (section, (kind,)) in {(one.path, one.kinds) for one in key_help(kind)}


def test_a_key_and_a_kind_of_one_name_are_both_told() -> None:
    key, kind = key_help("topology.tiers")
    assert (key.path, key.kinds, kind.path, kind.kinds) == ("topology.tiers", (), "topology", ("tiers",))


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("routr.vcs", "KEY: no key 'routr'; did you mean 'router'?"),
        ("router.vc", "KEY: no key 'vc' in router; did you mean 'vcs'?"),
        ("topology.dragonfli", "KEY: no key 'dragonfli' in topology; did you mean 'dragonfly'?"),
        ("directr", "KEY: no key 'directr'; did you mean 'director'?"),
        ("quux", "KEY: no key 'quux'; known: name, seed, topology, "),
        ("director.racks.x", "KEY: director.racks is no section; it has no key 'x'"),
        ("router.vcs.x", "KEY: router.vcs is no section; it has no key 'x'"),
        ("", "KEY: no key ''; known: name, seed"),
        ("..", "KEY: no key ''; known: name, seed"),
    ],
)
def test_unknown_keys(path: str, words: str) -> None:
    with pytest.raises(UserError) as told:
        key_help(path)
    assert str(told.value).startswith(words)


def test_the_number_of_an_item_is_no_key() -> None:
    with pytest.raises(UserError, match="KEY: 3 is the number of an item, not a key"):
        key_help("3")
