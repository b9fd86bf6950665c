"""Configurations in Python: loaded, changed, written; every mistake says where it is."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import hopforge as hf
from hopforge.model.config import load_config

TEXT = """\
# a mesh
name: small
topology: {kind: mesh, radices: [4, 4]}
router:
  vcs: 2
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "mine.yml").write_text(TEXT)
    return tmp_path / "mine.yml"


def test_load_gives_what_the_file_says(file: Path) -> None:
    config = hf.load(str(file))
    assert (config.name, config.text, config["router.vcs"], config["router.buffer_flits"]) == ("small", TEXT, 2, 8)
    assert config["topology.radices[1]"] == 4
    assert repr(config) == f"hopforge.load({str(file)!r})"
    assert config == hf.loads(TEXT)
    with pytest.raises(KeyError, match=r"router\.vsc: the configuration of .* has no such key"):
        config["router.vsc"]


def test_a_mistake_in_a_file_has_file_line_and_key(file: Path) -> None:
    file.write_text(TEXT.replace("vcs: 2", "vcs: 99").replace("4, 4", "4, 0"))
    with pytest.raises(hf.ConfigError) as caught:
        hf.load(file)
    assert str(caught.value) == (
        f"{file}:3: topology.radices[1]: must be at least 1, not 0\n{file}:5: router.vcs: must be at most 16, not 99"
    )
    assert caught.value.mistakes == (
        hf.Mistake(str(file), 3, "topology.radices[1]", "must be at least 1, not 0"),
        hf.Mistake(str(file), 5, "router.vcs", "must be at most 16, not 99"),
    )
    with pytest.raises(hf.UserError, match="cannot read the configuration") as missing:
        hf.load(file.with_name("none.yml"))
    assert missing.value.mistakes[0].line is None


def test_replace_gives_another_configuration_and_leaves_this_one(file: Path) -> None:
    first = hf.load(file)
    second = first.replace("router.vcs", np.int64(4)).replace({"traffic.pattern": "transpose", "seed": 7})
    assert (first["router.vcs"], second["router.vcs"], second["seed"]) == (2, 4, 7)
    assert second["traffic.pattern"] == "transpose" and first != second
    changes = ".replace('router.vcs', np.int64(4)).replace({'traffic.pattern': 'transpose', 'seed': 7})"
    assert repr(second).endswith(changes)
    assert second == hf.loads(second.text)


def test_values_that_fit_only_together_are_replaced_together() -> None:
    slim = hf.loads("{name: s, topology: {kind: random_regular, routers: 8, degree: 3}}")
    with pytest.raises(hf.ConfigError, match=r"topology\.degree: must be less than routers=3"):
        slim.replace("topology.routers", 3)
    assert slim.replace({"topology.routers": 3, "topology.degree": 2})["topology.routers"] == 3


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("router.vcs", 99, "router.vcs: must be at most 16, not 99"),
        ("router.vsc", 4, "router.vsc: unknown key; did you mean 'vcs'?"),
        ("router.vcs", True, "router.vcs: expected a whole number, not true"),
        ("simulation.load", float("nan"), "simulation.load: must be finite and hold no circle, not nan"),
        ("simulation.variants.a", {}, "replace simulation.variants as a whole"),
        ("name.first", 1, "name.first: there is no 'first' in it"),
        ("topology.radices[7]", 1, "topology.radices.7: there is no 7 in it, which has 2 entries, from 0 on"),
        ("", 1, "'' is no key"),
    ],
)
def test_a_wrong_value_is_told_as_in_a_file(file: Path, key: str, value: object, reason: str) -> None:
    with pytest.raises(hf.ConfigError) as caught:
        hf.load(file).replace(key, value)
    assert reason in str(caught.value)
    assert "mine.yml:" not in str(caught.value), "no line of the file is to blame"


def test_a_value_of_another_kind_is_an_error_of_type(file: Path) -> None:
    config = hf.load(file)
    with pytest.raises(TypeError, match=r"router\.vcs: a value of type object cannot stand in a configuration"):
        config.replace("router.vcs", object())
    with pytest.raises(TypeError, match="replace takes a key and a value, or one mapping"):
        config.replace("router.vcs")
    with pytest.raises(TypeError, match=r"expected a configuration of hopforge\.load or the name of a file, not dict"):
        hf.simulate({})  # type: ignore[arg-type]


def test_mistakes_that_a_run_finds_name_the_place_of_their_own_configuration(file: Path) -> None:
    ring = "name: r\ntopology: {kind: torus, radices: [5]}\n\n\ntraffic:\n  pattern: transpose\n"
    file.write_text(ring)
    first = hf.load(file)
    hf.loads(TEXT)  # loaded last, and not to blame
    other = file.with_name("other.yml")
    other.write_text(TEXT)
    hf.load(other)
    with pytest.raises(hf.UserError) as caught:
        hf.simulate(first, progress=False)
    assert str(caught.value).startswith(f"{file}:6: traffic.pattern transpose needs a square number of hosts")
    assert caught.value.mistakes[0][:3] == (str(file), 6, "traffic.pattern")
    with pytest.raises(hf.UserError) as caught:
        hf.simulate(first.replace("traffic.pattern", "transpose"), progress=False)
    assert str(caught.value).startswith(f"{file} (changed in Python): traffic.pattern transpose")
    assert caught.value.mistakes[0][:3] == (str(file), None, "traffic.pattern")


def test_what_is_written_is_read_by_the_commands(tmp_path: Path, file: Path) -> None:
    (tmp_path / "ring.txt").write_text("0 1\n1 2\n2 0\n")
    (tmp_path / "far").mkdir()
    text = """\
name: ring
topology: {kind: edge_list, file: ring.txt}
routing: {algorithm: tables}
simulation: {load: 1e-3, variants: {a: {topology.file: ring.txt}, b: {topology: {kind: edge_list, file: ring.txt}}}}
"""
    file.write_text(text)
    config = hf.load(file)
    assert hf.load(config.write(tmp_path / "same.yml")).text == text
    far = config.replace({"seed": 3, "name": "true"}).write(tmp_path / "far" / "far.yml")
    read = load_config(far)
    assert (read.name, read.seed, read.simulation.load) == ("true", 3, 1e-3)
    assert hf.load(far)["topology.file"].endswith("ring.txt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [hf.route(hf.load(far), progress=False)["network"] for _ in "x"] == ["graph ring.txt"]
    assert all(variant.topology.file.exists() for variant in read.variants.values())  # type: ignore[union-attr]
    with pytest.raises(hf.UserError, match=r"mine\.yml"):
        config.replace("seed", 2).write(file)  # an input is not overwritten


def test_an_argument_beyond_its_limits_is_refused() -> None:
    config = hf.loads(TEXT)
    for call in (lambda: hf.simulate(config, load=1.5), lambda: hf.cosim(config, "network", load=1.5)):
        with pytest.raises(hf.UserError, match=r"^load must be at most 1, not 1\.5$") as caught:
            call()
        assert caught.value.mistakes == (hf.Mistake("", None, "", "load must be at most 1, not 1.5"),)
    with pytest.raises(hf.UserError, match=r"^seed must be at least 0, not -1$"):
        hf.series(config, seed=-1)
    with pytest.raises(TypeError, match=r"^workers must be a whole number, not 1\.5$"):
        hf.sweep(config, workers=1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^load must be a number, not 'half'$"):
        hf.simulate(config, load="half")  # type: ignore[arg-type]
