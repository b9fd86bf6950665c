"""Mistakes in a Python program: each is one line that names what was given; nothing is silently taken for another."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import hopforge as hf

MESH = hf.loads(
    "{name: m, topology: {kind: mesh, radices: [2, 2]}, simulation: {load: 0.1, warmup_cycles: 100, min_cycles: 1000, "
    "max_cycles: 1000, loads: [0.1]}}"
)
HITS = hf.loads("{name: h, topology: {kind: torus, radices: [2, 2]}, workload: {kind: all_to_all}}")
RULES = Path(__file__).parents[2] / "configs" / "routes.txt"
HALF = 0.5 * (1 - np.eye(3))
HOLES = np.array([[0, np.nan], [np.nan, 0]])
ENDLESS = np.array([[0, np.inf], [np.inf, 0]])
MISTAKES: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: MESH.replace("router..vcs", 2), hf.ConfigError, "'router..vcs' is no key"),
    (lambda: MESH.replace(".router.vcs", 2), hf.ConfigError, "'.router.vcs' is no key"),
    (lambda: MESH.replace("router.vcs.", 2), hf.ConfigError, "'router.vcs.' is no key"),
    (lambda: MESH.replace("topology.radices[x]", 2), hf.ConfigError, "'topology.radices[x]' is no key"),
    (lambda: MESH.replace({3: 4}), TypeError, "a key is a text as 'router.vcs', not 3"),  # type: ignore[dict-item]
    (lambda: MESH.replace("name", "\ud800"), hf.ConfigError, "name: text with half a character (a lone surrogate)"),
    (lambda: MESH[3], TypeError, "a key is a text as 'router.vcs', not 3"),  # type: ignore[index]
    (lambda: MESH["router..vcs"], KeyError, "router..vcs: the configuration of <python> has no such key"),
    (lambda: MESH[""], KeyError, ": the configuration of <python> has no such key"),
    (lambda: hf.network(HALF), hf.UserError, "numbers of links must be whole, not 0.5 (row 0, column 1)"),
    (lambda: hf.network(HOLES), hf.UserError, "numbers of links must be whole, not nan (row 0, column 1)"),
    (lambda: hf.network(ENDLESS), hf.UserError, "numbers of links must be 0 to 1024, not inf"),
    (lambda: hf.simulate(MESH, progress=3), TypeError,  # type: ignore[arg-type]
     "progress must be true, false or a function of (done, in all), not 3"),
    (lambda: hf.route(MESH, fail_switch=3), TypeError,  # type: ignore[arg-type]
     "fail_switch must be a list of texts, not 3"),
    (lambda: hf.route(MESH, fail="0-1"), TypeError, "fail must be a list of texts, not '0-1'"),
    (lambda: hf.jobs(generate="typed", dims="4x4"), TypeError,  # type: ignore[arg-type]
     "dims must be whole numbers as (8, 8, 4), not '4x4'"),
    (lambda: hf.jobs("no.swf", dims=4), hf.UserError, "no.swf: cannot read the log: No such file or directory"),
    (lambda: hf.network(np.ones((2, 2)), name=3), TypeError, "name must be a text, not 3"),  # type: ignore[arg-type]
    (lambda: hf.hits(MESH, prefetch="1"), TypeError,  # type: ignore[arg-type]
     "prefetch must be a whole number, not '1'"),
    (lambda: hf.hits(MESH, tcam_cycles=-1), hf.UserError, "tcam_cycles must be at least 0, not -1"),
    (lambda: hf.hits(HITS, refill=1, eject="x"), hf.UserError, "eject: must be hard or soft, not x"),
    (lambda: hf.hits(HITS, prefetch=1, prefetch_cycles=1), hf.UserError,
     "prefetch: goes a number of messages ahead; not with prefetch_cycles"),
    (lambda: hf.route(MESH, fail=["0-9"]), hf.UserError, "fail 0-9: router 9 does not exist"),
    (lambda: hf.route(MESH, fail_switch=["9"]), hf.UserError, "fail_switch 9: router 9 does not exist"),
    (lambda: hf.generate(MESH, "router", router=9), hf.UserError, "router must be below 4"),
    (lambda: hf.rules(RULES, sizes=16), TypeError, "sizes must be a list, not 16"),  # type: ignore[arg-type]
    (lambda: hf.rules(RULES, policies="exact"), TypeError, "policies must be a list, not 'exact'"),
    (lambda: hf.rules(RULES, policies=["x"]), hf.UserError, "policies: must be one of exact, host"),
    (lambda: hf.rules(RULES, sizes=[64], ways=3), hf.UserError, "sizes: must be ways 3 times a power of two, not 64"),
    (lambda: hf.compare(hf.simulate(MESH, progress=False), hf.simulate(MESH, load=0.2, progress=False)), hf.UserError,
     "the first result and the second result: no row of measurement in common (load 0.1; load 0.2)"),
    (lambda: hf.jobs(generate="typed", dims=2.5), TypeError,  # type: ignore[arg-type]
     "dims must be whole numbers as (8, 8, 4), not 2.5"),
    (lambda: hf.route(MESH, fail=[(0, 1)]), TypeError,  # type: ignore[list-item]
     "fail must be a list of texts, not [(0, 1)]"),
    (lambda: hf.route(MESH, fail_switch=[True]), TypeError,  # type: ignore[list-item]
     "fail_switch must be a list of texts, not [True]"),
    (lambda: hf.simulate(MESH, load=float("nan")), hf.UserError, "load must be at least 0, not nan"),
    (lambda: hf.simulate(MESH, load=np.float32("nan")), hf.UserError, "load must be at least 0, not nan"),
    (lambda: hf.load(3), TypeError, "load takes the name of a file, not int"),  # type: ignore[arg-type]
    (lambda: hf.load(""), hf.ConfigError, "load takes the name of a file, not an empty text"),
    (lambda: hf.simulate("name: m\ntopology: {kind: ring}\n"), hf.ConfigError,
     "load takes the name of a file, not its text, which hopforge.loads takes"),
    (lambda: hf.load("name: m\ntopology: {kind: ring}\n" + "# long\n" * 9999), hf.ConfigError,
     "load takes the name of a file, not its text, which hopforge.loads takes"),
    (lambda: hf.network("petersen.txt"), TypeError, "expected a graph of networkx or an adjacency matrix, not str"),
    (lambda: hf.network({0: [1]}), TypeError,  # type: ignore[arg-type]
     "expected a graph of networkx or an adjacency matrix, not dict"),
    (lambda: MESH["name[0]"], KeyError, "name[0]: the configuration of <python> has no such key"),
    (lambda: list(MESH), TypeError, "'Configuration' object is not iterable"),  # type: ignore[call-overload]
    (lambda: list(hf.simulate(MESH, progress=False)), TypeError,  # type: ignore[call-overload]
     "'SimulationResult' object is not iterable"),
    (lambda: MESH.replace({"router.vcs": 2, "router": {"buffer_flits": 4}}), hf.ConfigError,
     "router.vcs: lies in router, which is replaced as a whole, too"),
    (lambda: hf.network(nx.Graph), TypeError,
     "expected a graph of networkx or an adjacency matrix, not the class Graph"),
    (lambda: hf.simulate(MESH, load=np.True_), TypeError, "load must be a number, not"),  # type: ignore[arg-type]
    (lambda: hf.sweep(MESH, output="a\0b", workers=1, progress=False), hf.UserError,
     "cannot write results: embedded null byte; no folder has such a name"),
    (lambda: hf.sweep(MESH, dask=3), TypeError,  # type: ignore[arg-type]
     "dask must be the address of a scheduler, not 3"),
    (lambda: hf.hits(HITS, sizes=[16]), TypeError, "sizes must be true or false, not [16]"),  # type: ignore[arg-type]
    (lambda: hf.hits(HITS, bounds="no"), TypeError, "bounds must be true or false, not 'no'"),  # type: ignore[arg-type]
    (lambda: hf.generate(MESH, "router", period_ns="1"), TypeError,  # type: ignore[arg-type]
     "period_ns must be a number, not '1'"),
    (lambda: hf.generate(MESH, "q-table", shared_read="no"), TypeError,  # type: ignore[arg-type]
     "shared_read must be true or false, not 'no'"),
    (lambda: hf.rules(RULES, guard="no"), TypeError, "guard must be true or false, not 'no'"),  # type: ignore[arg-type]
    (lambda: hf.rules(RULES, fill=1.5), TypeError, "fill must be a whole number, not 1.5"),  # type: ignore[arg-type]
    (lambda: hf.rules(RULES, sizes=[16.5]), TypeError, "sizes must be a whole number, not 16.5"),  # type: ignore[list-item]
    (lambda: hf.rules(RULES, sizes=[]), hf.UserError, "sizes must not be empty"),
    (lambda: hf.rules(RULES, zipfs=[]), hf.UserError, "zipfs must not be empty"),
    (lambda: hf.rules(RULES, zipfs=["1"]), TypeError, "zipfs must be a number, not '1'"),  # type: ignore[list-item]
    (lambda: hf.rules(RULES, zipfs=[float("nan")]), hf.UserError, "zipfs: must be 0 to 10.0, not nan"),
    (lambda: hf.rules(RULES, seed=-1), hf.UserError, "seed must be at least 0, not -1"),
    (lambda: hf.rules(RULES, seed=None), TypeError, "seed must be a whole number, not None"),  # type: ignore[arg-type]
    (lambda: hf.rules(RULES, hops=0), hf.UserError, "hops must be at least 1, not 0"),
    (lambda: hf.rules(RULES, hops=1 << 40), hf.UserError, "hops must be at most 1048576, not 1099511627776"),
    (lambda: hf.jobs(generate="typed", dims=64, ppn=1.5), TypeError,  # type: ignore[arg-type]
     "ppn must be a whole number, not 1.5"),
    (lambda: hf.jobs(generate="typed", dims=True), TypeError, "dims must be whole numbers as (8, 8, 4), not True"),
    (lambda: hf.jobs(generate="typed", dims=64, groups=4), TypeError,  # type: ignore[arg-type]
     "groups must be a list, not 4"),
    (lambda: hf.jobs(generate="typed", dims=64, schedulers=4), TypeError,  # type: ignore[arg-type]
     "schedulers must be a list, not 4"),
    (lambda: hf.jobs(generate="typed", dims=64, count="9"), TypeError,  # type: ignore[arg-type]
     "count must be a whole number, not '9'"),
    (lambda: hf.jobs(generate="typed", dims=64, seed=2**80), hf.UserError,
     "seed must be at most 1e+18, not 1208925819614629174706176"),
    (lambda: hf.jobs(generate="typed", dims=64, interference="x"), TypeError,  # type: ignore[arg-type]
     "interference must be true or false, not 'x'"),
    (lambda: hf.sweep(MESH, workers=1, progress=False)["latency"], KeyError,
     "latency; known: none; result.table has a column for each figure"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "kind", "words"), MISTAKES, ids=[words for _, _, words in MISTAKES])
def test_a_mistake_is_one_line_that_names_what_was_given(
    mistake: Callable[[], object], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind) as caught:
        mistake()
    told = str(caught.value.args[0])
    assert words in told and "\n" not in told
    assert " --" not in f" {told}"  # an option of a command is no argument of Python


def test_numbers_of_numpy_are_numbers() -> None:
    assert hf.jobs(generate="typed", dims=np.array([4, 4]), count=3).rows == hf.jobs(
        generate="typed", dims=(4, 4), count=3
    ).rows
    assert MESH.replace("topology.radices[1]", np.int64(3))["topology.radices"] == [2, 3]


def test_numbers_of_numpy_are_written_as_those_of_python() -> None:
    bare = hf.loads("{name: m, topology: {kind: mesh, radices: [2, 2]}}")
    number: Any = np.int64(1)
    assert hf.generate(bare, "router", router=number).files == hf.generate(bare, "router", router=1).files
    sides: Any = np.array([4, 4])
    assert "dims=(4, 4)" in repr(hf.jobs(generate="typed", dims=sides, count=3))


def test_a_small_load_is_not_said_to_be_zero() -> None:
    found = hf.simulate(MESH.replace("simulation.max_cycles", 20_000), load=0.001, progress=False)
    mean, highest = found["channel_load_mean"], found["channel_load_max"]
    assert 0 < mean < 0.0015
    assert dict(found.rows)["channel load"] == f"mean {mean:.3g}, highest {highest:.3g} flits per cycle"
    assert not dict(found.rows)["channel load"].startswith(f"mean {mean:.3f},")


def test_keys_and_figures_can_be_asked_for() -> None:
    assert "router.vcs" in MESH and "router" in MESH
    assert "router.lanes" not in MESH and 3 not in MESH
    found = hf.simulate(MESH, progress=False)
    assert "latency" in found and "makespan" not in found


def test_a_mistake_in_a_configuration_shows_no_other_libraries() -> None:
    for mistake in (lambda: MESH.replace("router.vcs", 99), lambda: hf.loads("name: {"), lambda: hf.loads("name: m")):
        with pytest.raises(hf.ConfigError) as caught:
            mistake()
        shown = "".join(traceback.format_exception(caught.value))
        assert "pydantic" not in shown and "direct cause" not in shown


def test_a_picture_is_not_named_as_something_else(tmp_path: Path) -> None:
    picture = hf.simulate(MESH, progress=False).plot()
    with pytest.raises(hf.UserError, match=r"a\.svg: a picture is PNG; end the name in \.png"):
        picture.save(tmp_path / "a.svg")
    assert list(tmp_path.iterdir()) == []
    assert picture.save(tmp_path / "a.PNG").read_bytes() == picture.png
