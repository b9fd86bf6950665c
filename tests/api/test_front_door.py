"""Python programs that go elsewhere, run threads, write twice or give odd values."""

import copy
import pickle
import re
import threading
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

import hopforge as hf
from hopforge.api.errors import number_within

RING = "name: ring\ntopology: {kind: edge_list, file: ring.txt}\n"
EDGES = "0 1\n1 2\n2 0\n"
SMALL = "name: small\ntopology: {kind: mesh, radices: [2, 2]}\n"


def test_a_configuration_stays_what_it_was_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, edges in ((here, EDGES), (there, EDGES + "2 3\n3 0\n")):
        folder.mkdir()
        (folder / "ring.txt").write_text(edges)
        (folder / "ring.yml").write_text(RING)
    monkeypatch.chdir(here)
    found = [hf.load("ring.yml"), hf.loads(RING), hf.loads(RING, folder=".")]
    monkeypatch.chdir(there)
    for config in found:
        later = config.replace("router.vcs", 3)
        assert {each["topology.file"] for each in (config, later)} == {str(here / "ring.txt")}
        later.write(tmp_path / "copy.yml", force=True)
        assert hf.load(tmp_path / "copy.yml")["topology.file"] == str(tmp_path / "here" / "ring.txt")


def test_the_expression_names_the_folder(tmp_path: Path) -> None:
    (tmp_path / "ring.txt").write_text(EDGES)
    config = hf.loads(RING, folder=tmp_path)
    assert repr(config) == f"hopforge.loads({RING!r}, folder={str(tmp_path)!r})"
    assert eval(repr(config), {"hopforge": hf}) == config


def test_a_file_is_replaced_where_the_program_says_so(tmp_path: Path) -> None:
    config = hf.loads(SMALL)
    path = config.write(tmp_path / "small.yml")
    hf.load(path)
    with pytest.raises(hf.UserError, match="is an input and is not overwritten; name another place, or say force=True"):
        config.write(path)
    config.replace("router.vcs", 4).write(path, force=True)
    assert hf.load(path)["router.vcs"] == 4
    picture = hf.Picture("x", b"\x89PNG")
    with pytest.raises(hf.UserError, match="say force=True"):
        picture.save(path)
    picture.save(path, force=True)
    assert path.read_bytes() == b"\x89PNG"
    for write, name in ((config.write, "/proc/x.yml"), (picture.save, "/proc/x.png")):
        with pytest.raises(hf.UserError, match=f"^{name}: cannot be written: "):
            write(name)


def test_what_other_processes_can_be_given() -> None:
    config = hf.loads(SMALL)
    assert pickle.loads(pickle.dumps(config)) == copy.deepcopy(config) == config
    files = hf.generate(config, "tables")
    assert pickle.loads(pickle.dumps(files)).files == copy.deepcopy(files).files == files.files
    with pytest.raises(hf.ConfigError) as caught:
        config.replace("router.vcs", 99)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.mistakes) == (str(caught.value), caught.value.mistakes)
    short = config.replace({"simulation.min_cycles": 1000, "simulation.max_cycles": 1000})
    result = hf.simulate(short, load=0.1, progress=False)
    for found, parts in ((result, "its table or dict(result.values)"), (hf.compare(result, result), "its table")):
        assert len(found.table)  # also after tables were made
        said = re.escape(f"{type(found).__name__} cannot be pickled or copied: return {parts}, or write it to a folder")
        for hand in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match=said):
                hand(found)


@pytest.mark.parametrize(
    ("value", "least", "found"),
    [(Fraction(1, 8), 0.0, 0.125), (np.float32(0.5), 0.0, 0.5), (3.0, 0, 3), (np.int64(2), 0, 2), (None, 0, None)],
)
def test_numbers_are_those_of_python(value: object, least: float, found: object) -> None:
    given = number_within("load", value, least)
    assert (given, type(given)) == (found, type(found))


def test_no_text_and_no_end(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="loads takes the text of a configuration, not NoneType"):
        hf.loads(None)  # type: ignore[arg-type]
    deep: list[object] = []
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(hf.ConfigError, match="traffic: is nested too deeply"):
        hf.loads(SMALL).replace("traffic", deep)
    with pytest.raises(hf.UserError, match="must have rows of one length"):
        hf.network([[0, 1], [1]])
    with pytest.raises(hf.ConfigError, match="router"):
        hf.loads(SMALL + "simulation: {variants: {x: {'router.²': 1}}}\n")


def test_runs_in_python(tmp_path: Path) -> None:
    config = hf.loads(SMALL + "simulation: {warmup_cycles: 0, min_cycles: 1000, max_cycles: 1000}\n")
    quiet = hf.simulate(config, load=0, progress=False)
    assert np.isnan([quiet.latency, quiet.hops]).all()
    assert "no packet arrived" in repr(quiet)
    found: dict[int, hf.SimulationResult] = {}

    def run(seed: int) -> None:
        found[seed] = hf.simulate(config, load=Fraction(1, 8), seed=float(seed), progress=False)  # type: ignore[arg-type]

    threads = [threading.Thread(target=run, args=(seed,)) for seed in (3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in (3, 4):
        result = found[seed]
        result.write(tmp_path / str(seed))
        text = (tmp_path / str(seed) / "metadata.json").read_text()
        assert f'"seed": {seed},' in text and f"seed={seed})" in text and '"kind": "net"' in text
        with pytest.raises(TypeError):
            result.values["latency"] = 0  # type: ignore[index]
        assert isinstance(result.tables, MappingProxyType)
