"""`hopforge init`: a file for each kind of network that checks and runs, and never over another one."""

from pathlib import Path
from typing import get_args

import pytest

import hopforge as hf
from hopforge.model.config import load_config
from hopforge.model.config.topology import TopologyConfig, TorusConfig
from hopforge.model.errors import UserError
from hopforge.model.topology.configured import network_topology
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.start.new_file import SYNONYMS, kinds, names, new_file

EDGES = "0 1\n1 2\n2 3\n3 0\n"
#: files of networks that are a kind with certain sizes
SPECIAL = {"ring": "torus", "hypercube": "hyperx", "leaf_spine": "clos"}


@pytest.mark.parametrize("kind", kinds())
def test_every_file_runs(tmp_path: Path, kind: str) -> None:
    network = tmp_path / "it's my network.txt"
    network.write_text(EDGES)
    target = tmp_path / "new" / "mine.yml"
    new_file(kind, target, network if kind == "edge_list" else None)
    config = load_config(target)
    assert config.name == "mine" and config.topology.kind == SPECIAL.get(kind, kind)
    loads = config.simulation.loads
    assert len(loads) >= 5 and list(loads) == sorted(loads)
    run = Simulation(config, config.simulation.load, 1)
    run.advance(400)
    assert int(run.state["packets_ejected"]) > 0
    assert "FILE" not in target.read_text()
    assert not hf.simulate(target, progress=False).saturated  # the first thing a new user sees


def test_every_kind_of_the_schema_has_a_file() -> None:
    sections = get_args(get_args(TopologyConfig)[0])
    known = {get_args(section.model_fields["kind"].annotation)[0] for section in sections}
    assert len(known) >= 16 and known | set(SPECIAL) == set(kinds())


@pytest.mark.parametrize("name", sorted(SYNONYMS))
def test_other_names_of_the_field(tmp_path: Path, name: str) -> None:
    written = new_file(name, tmp_path / f"{name}.yml")
    config = load_config(written[0])
    kind = SYNONYMS[name]
    assert kind in kinds() and name not in kinds() and name in names()
    assert config.topology.kind == SPECIAL.get(kind, kind)
    assert config.name == name


def test_leaf_and_spine_is_of_two_levels(tmp_path: Path) -> None:
    new_file("leaf-spine", tmp_path / "mine.yml")
    network = network_topology(load_config(tmp_path / "mine.yml"))
    ends, leaves = network.channels(), set(network.host_router.tolist())
    assert 1 < len(leaves) < network.routers
    pairs = set(zip(ends.src_router.tolist(), ends.dst_router.tolist(), strict=True))
    spines = set(range(network.routers)) - leaves
    assert pairs == {(a, b) for leaf in leaves for spine in spines for a, b in ((leaf, spine), (spine, leaf))}


def test_dashes_and_capitals(tmp_path: Path) -> None:
    new_file("Fat-Tree", tmp_path / "mine.yml")
    assert load_config(tmp_path / "mine.yml").topology.kind == "fat_tree"


def test_a_graph_without_a_file_gets_an_example(tmp_path: Path) -> None:
    target = tmp_path / "new" / "graph.yml"
    assert new_file("graph", target) == [target, tmp_path / "new" / "graph.txt"]
    network = network_topology(load_config(target))
    assert (network.routers, len(network.channels().src_router)) == (10, 2 * 15)  # Petersen's graph, both ways
    assert "'graph.txt'" in target.read_text()


def test_an_example_is_not_written_over_a_file(tmp_path: Path) -> None:
    (tmp_path / "graph.txt").write_text("mine\n")
    with pytest.raises(UserError, match=r"graph.txt is there already; name another file"):
        new_file("graph", tmp_path / "graph.yml")
    assert (tmp_path / "graph.txt").read_text() == "mine\n" and not (tmp_path / "graph.yml").exists()


def test_what_is_there_stays(tmp_path: Path) -> None:
    target = tmp_path / "torus.yml"
    target.write_text("mine\n")
    with pytest.raises(UserError, match=r"torus.yml is there already; name another file"):
        new_file("torus", target)
    dangling = tmp_path / "link.yml"
    dangling.symlink_to(tmp_path / "nowhere")
    with pytest.raises(UserError, match="is there already"):
        new_file("torus", dangling)
    assert target.read_text() == "mine\n" and not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("kind", "network", "words"),
    [
        ("tree", None, "KIND: no network 'tree'; did you mean 'fat_tree'?"),
        ("polarfy", None, "KIND: no network 'polarfy'; did you mean 'polarfly'?"),
        ("torus", "a.txt", "--file: torus reads no file"),
        ("edge_list", "none.txt", "--file: no file "),
    ],
)
def test_mistakes(tmp_path: Path, kind: str, network: str | None, words: str) -> None:
    with pytest.raises(UserError) as told:
        new_file(kind, tmp_path / "x.yml", network and tmp_path / network)
    assert str(told.value).startswith(words)
    assert list(tmp_path.iterdir()) == []


def test_a_file_whose_name_is_no_name_keeps_the_one_of_the_kind(tmp_path: Path) -> None:
    new_file("torus", tmp_path / "8x8.yml")
    config = load_config(tmp_path / "8x8.yml")
    assert config.name == "torus" and isinstance(config.topology, TorusConfig)


@pytest.mark.parametrize("stem", ["MyNet", "null", "true", "_x"])
def test_names_that_a_file_cannot_have_are_left_out(tmp_path: Path, stem: str) -> None:
    new_file("mesh", tmp_path / f"{stem}.yml")
    assert load_config(tmp_path / f"{stem}.yml").name == "mesh"
