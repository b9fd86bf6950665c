"""`hopforge reproduce booksim --configs`: BookSim's own files, ranges, notes, and networks of diameter 2."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.sim.reproduce import Options
from hopforge.sim.reproduce.booksim.comparison import measure_point, own_reproductions, refused_cases
from hopforge.sim.reproduce.booksim.diameter2 import SupplementError
from hopforge.sim.reproduce.booksim.reference import ReferenceError, load_reference

HEADER = "config,packet_size,traffic,offered_flits,seed,sim_type,stable,pkt_lat,acc_flit_rate,router_hops,note\n"
RUN = "num_vcs = 4; credit_delay = 2; routing_delay = 0; sample_period = 1000; injection_rate_uses_flits = 1;\n"
MESH = f"topology = mesh; k = 3; n = 2; routing_function = dor; {RUN}"


def reference(folder: Path, rows: str, **configs: str) -> Options:
    (folder / "configs").mkdir()
    (folder / "runs.csv").write_text(HEADER + rows)
    for name, text in configs.items():
        (folder / "configs" / f"{name}.cfg").write_text(text)
    return Options(reference=folder / "runs.csv", configs=folder / "configs")


def test_files_of_booksim_are_translated_and_refused_ones_left_out(tmp_path: Path) -> None:
    rows = (
        "m,1,uniform,0.1,1,latency,1,14,0.1,2.7,\nm,1,uniform,0.2,1,latency,1,15,0.2,2.7,SEEDS 5 %\n"
        "m,1,uniform,0.2,2,latency,1,19,0.2,2.7,SEEDS 5 %\nm,1,uniform,0.3,1,latency,1,99,0.2,2.7,DEADLOCK\n"
        "m,1,uniform,0.9,1,throughput,1,,0.6,2.7,\nspeedy,1,uniform,0.1,1,latency,1,14,0.1,2.7,\n"
        "two,1,uniform,0.2,1,latency,1,14,0.2,2.7,\n"
    )
    options = reference(
        tmp_path, rows, m=MESH, speedy=f"{MESH}internal_speedup = 0.5;", two=f"{MESH}classes = 2;"
    )  # fmt: skip
    reproduction = own_reproductions(options)["booksim.m"]
    assert list(own_reproductions(options)) == ["booksim.m"]
    assert refused_cases(options) == [
        f"speedy is left out: {tmp_path}/configs/speedy.cfg:2: internal_speedup = 0.5: must be 1 to 8",
        f"two is left out: {tmp_path}/configs/two.cfg: classes: a row has one latency, each class of traffic its own",
    ]
    points = reproduction.points(options)
    assert {(point["kind"], point["load"]) for point in points} == {
        ("latency", 0.1), ("latency", 0.2), ("throughput", 0.9),
    }  # fmt: skip
    (row,) = measure_point({**points[0], "load": 0.1}, options)
    # 3 × 3 mesh: 8/9 links in each dimension; 4 cycles a router and 2 (networks/README.md), little waiting at .1
    assert row["latency"] == pytest.approx(4 * (1 + 16 / 9) + 2, rel=0.03)
    (row,) = measure_point({**points[-1], "kind": "throughput", "load": 0.9}, options)
    assert row["cycles"] == 3000


def test_a_range_is_compared_as_a_range(tmp_path: Path) -> None:
    rows = "m,1,uniform,0.2,1,latency,1,15,0.2,2.7,SEEDS\nm,1,uniform,0.2,2,latency,1,19,0.2,2.7,SEEDS\n"
    options = reference(tmp_path, rows, m=MESH)
    curve = load_reference(options.reference, options.configs).curve("m")
    assert curve[["pkt_lat_least", "pkt_lat_most", "ranged"]].to_numpy().tolist() == [[15, 19, True]]


def test_no_case_that_is_translated_is_one_line(tmp_path: Path) -> None:
    queues = "topology = mesh; k = 4; n = 2; routing_function = dim_order; noq = 1;"
    options = reference(tmp_path, "m,1,uniform,0.1,1,latency,1,14,0.1,2.7,\n", m=queues)
    with pytest.raises(ReferenceError, match=r"hopforge translates no case: .*m.cfg:1: noq = 1"):
        own_reproductions(options)


def test_graphs_permutations_and_hops_of_the_reference_on_diameter_2(tmp_path: Path) -> None:
    text = f"topology = anynet; network_file = net/ring_q4_p2.anynet; routing_function = min; traffic = randperm; {RUN}"
    rows = "".join(
        f"{case},1,turn,{load},1,{kind},1,14,0.1,2.7,\n"
        for case in ("ring4_min", "ring4h_min") for load, kind in ((0.1, "latency"), (0.9, "throughput"))
    )  # fmt: skip
    options = reference(tmp_path, rows, ring4_min=text, ring4h_min=text)
    graph = {"terminals_per_router": 2, "routers": 4, "edges": [[0, 1], [1, 2], [2, 3], [0, 3]]}
    (tmp_path / "networks.json").write_text(json.dumps({"ring_q4": graph}))
    turn = [(host + 2) % 8 for host in range(8)]
    (tmp_path / "perms.json").write_text(json.dumps({"ring4_turn": turn}))
    found = load_reference(options.reference, options.configs)
    free, classes = found.config("ring4_min"), found.config("ring4h_min")
    assert list(free.traffic.destinations) == turn
    assert (free.routing.check, free.routing.algorithm) == (False, "booksim_min")
    assert (classes.routing.check, classes.routing.algorithm) == (True, "shortest")
    # nothing keeps the first one from deadlock: below the knee only
    assert found.runs.groupby("config").size().to_dict() == {"ring4_min": 1, "ring4h_min": 2}


def test_a_wrong_file_of_graphs_is_one_line(tmp_path: Path) -> None:
    options = reference(tmp_path, "ring4_min,1,turn,0.1,1,latency,1,14,0.1,2.7,\n", ring4_min=MESH)
    (tmp_path / "networks.json").write_text('{"ring": {"routers": 4}}')
    with pytest.raises(SupplementError, match=f"^{tmp_path}: networks.json or perms.json: KeyError"):
        load_reference(options.reference, options.configs)


def test_the_command_says_what_is_left_out(tmp_path: Path) -> None:
    rows = "m,1,uniform,0.1,1,latency,1,14,0.1,2.7,\ns,1,uniform,0.1,1,latency,1,14,0.1,2.7,\n"
    reference(tmp_path, rows, m=MESH, s="topology = fly;")
    words = ["reproduce", "--list", "--reference", str(tmp_path / "runs.csv"), "--configs", str(tmp_path / "configs")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0
    assert "s is left out" in result.output
