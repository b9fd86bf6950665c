"""Files of SST/Merlin: the network is that of the links, times are the sums by hand, the rest is told or refused."""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.model.config import load_config
from hopforge.model.topology.configured import configured_network
from hopforge.sim.merlin.component_graph import MerlinError
from hopforge.sim.merlin.translate import translate
from hopforge.sim.merlin.units import bits, bits_per_second, nanoseconds
from hopforge.sim.start.checks import check_commands

sys.path.insert(0, str(Path(__file__).parent))
import sst_files

RING = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 1)]
MACHINES: list[tuple[str, Callable[[], sst_files.Machine], dict[str, Any], str]] = [
    ("mesh", lambda: sst_files.grid("mesh", [4, 3], 2), {"kind": "mesh", "radices": [4, 3]}, "dor"),
    ("torus", lambda: sst_files.grid("torus", [4, 3, 3], 1), {"kind": "torus", "radices": [4, 3, 3]}, "dor"),
    ("wide", lambda: sst_files.grid("torus", [3, 3], 1, width=2), {"kind": "edge_list"}, "minimal"),
    ("two", lambda: sst_files.grid("torus", [2, 4], 1), {"kind": "torus", "radices": [2, 4]}, "dor"),
    ("hyperx", lambda: sst_files.hyperx([3, 4], 2), {"kind": "hyperx", "sizes": [3, 4]}, "dor"),
    ("valiant", lambda: sst_files.hyperx([3, 4], 2, "valiant"), {"kind": "hyperx", "sizes": [3, 4]}, "valiant"),
    ("fly", lambda: sst_files.dragonfly(2, 4, 9, 1), {"kind": "dragonfly", "p": 2, "a": 4, "h": 2, "g": 9},
     "dragonfly_min"),
    ("relative", lambda: sst_files.dragonfly(1, 3, 4, 1, "relative", "ugal"),
     {"kind": "dragonfly", "arrangement": "relative"}, "ugal_group"),
    ("uneven", lambda: sst_files.dragonfly(1, 3, 5, 1, far="30ns"), {"kind": "edge_list"}, "minimal"),
    ("parallel", lambda: sst_files.dragonfly(1, 4, 3, 4), {"kind": "dragonfly", "h": 2, "g": 3}, "dragonfly_min"),
    ("tree", lambda: sst_files.fat_tree([2, 2, 2], [2, 2]), {"kind": "fat_tree", "k": 2, "n": 2}, "nca"),
    ("oversubscribed", lambda: sst_files.fat_tree([4, 4], [2]), {"kind": "edge_list"}, "minimal"),
    ("graph", lambda: sst_files.graph(RING, [0, 0, 2, 3]), {"kind": "edge_list"}, "minimal"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "topology", "algorithm"), [row[1:] for row in MACHINES], ids=[r[0] for r in MACHINES])
def test_the_network_is_that_of_the_links_and_runs(
    tmp_path: Path, make: Callable[[], sst_files.Machine], topology: dict[str, Any], algorithm: str
) -> None:
    machine = make()
    (tmp_path / "x.json").write_text(machine.text())
    found = translate(tmp_path / "x.json")
    assert topology.items() <= found.sections["topology"].items()
    assert found.sections["routing"]["algorithm"] == algorithm
    found.write(tmp_path / "new.yml")
    config = load_config(tmp_path / "new.yml", keys=False)
    network = configured_network(config)
    here, port = np.nonzero(network.peer_router >= 0)
    there = network.peer_router[here, port]
    ours = Counter(zip(here[here < there].tolist(), there[here < there].tolist(), strict=True))
    assert ours == Counter((min(a, b), max(a, b)) for a, _, b, _, _ in machine.links)
    assert network.host_router.tolist() == [router for router, _ in machine.hosts]
    (verdict,) = (one for one in check_commands(config) if one.command == "net")
    assert verdict.reason == ""


def test_times_by_hand(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(sst_files.dragonfly(2, 4, 9, 1).text())
    sections = translate(tmp_path / "x.json").sections
    # 128 B at 4 and at 40 GB/s; 20 + 10 ns in the routers: all of it between two, half of it on the way to a host and
    # half on the way from one; 2560 and 1280 B hold 20 and 10 packets
    assert sections["router"] == {
        "model": "input_output_queued", "vcs": 3, "idle_ports": "flit_later", "flit_ns": 32, "crossbar_ns": 3.2,
        "end_ns": 0, "link_ns": 60, "host_ns": 25, "global_ns": 130, "buffer_flits": 20, "output_buffer_flits": 10,
    }  # fmt: skip
    assert sections["simulation"] == {"load": 0.3, "warmup_us": 2, "measure_us": 30}
    assert sections["traffic"] == {"source": "interval", "pattern": "uniform", "include_self": False}


def test_packets_are_whole_flits_and_loads_those_of_the_links(tmp_path: Path) -> None:
    machine = sst_files.grid("mesh", [2, 2], 1)
    machine.load |= {"message_size": "100b", "link_bw": "16Gb/s", "offered_load": "[0.5, 1.0]"}
    machine.pattern = ("merlin.targetgen.shift", {"shift": "3"})
    (tmp_path / "x.json").write_text(machine.text())
    sections = translate(tmp_path / "x.json").sections
    assert sections["router"]["flit_ns"] == 4  # two flits of 8 B at 32 Gb/s
    # Merlin sends a message each 100 b / 16 Gb/s / 0.5 = 12.5 ns: by its own bits, not by whole flits
    assert sections["simulation"]["loads"] == [4 / 12.5, 4 / 6.25]
    assert sections["traffic"]["destinations"] == [3, 0, 1, 2]


def test_targets_go_by_the_order_of_the_ports(tmp_path: Path) -> None:
    machine = sst_files.grid("mesh", [2, 2], 1)
    machine.pattern = ("merlin.targetgen.bit_complement", {})
    data = machine.data()
    for number, component in enumerate(data["components"][-4:]):
        component["params"]["id"] = str(3 - number)
    (tmp_path / "x.json").write_text(json.dumps(data))
    with pytest.raises(MerlinError, match=r"offered_load_0: host 0 of the network has id 3"):
        translate(tmp_path / "x.json")


def test_what_plays_no_part_is_told(tmp_path: Path) -> None:
    machine = sst_files.grid("mesh", [2, 2], 1)
    machine.load["drain_time"] = "50us"
    machine.params["mesh.speed"] = "9"
    machine.router["num_vns"] = "2"
    (tmp_path / "x.json").write_text(machine.text())
    told = dict(translate(tmp_path / "x.json").rows())["not translated"]
    assert told == "of the routers num_vns, xbar_arb; of the endpoints drain_time; of the topology speed"


@pytest.mark.parametrize("pattern", [("bit_complement", {}), ("shift", {"shift": "9"})])
def test_whoever_sends_to_himself_is_refused(tmp_path: Path, pattern: tuple[str, dict[str, str]]) -> None:
    machine = sst_files.grid("mesh", [3, 3], 1)
    machine.pattern = (f"merlin.targetgen.{pattern[0]}", pattern[1])
    (tmp_path / "x.json").write_text(machine.text())
    with pytest.raises(MerlinError, match=r"sends from endpoint \d to itself"):
        translate(tmp_path / "x.json")


def test_endpoints_that_nobody_knows(tmp_path: Path) -> None:
    data = sst_files.grid("mesh", [2, 2], 1).data()
    data["components"][-1]["type"] = "firefly.nic"
    (tmp_path / "x.json").write_text(json.dumps(data))
    with pytest.raises(MerlinError, match=r"x\.json: endpoints: are not all merlin\.offered_load: say the size"):
        translate(tmp_path / "x.json")
    found = translate(tmp_path / "x.json", "128B")
    told = dict(found.rows())["traffic"]
    assert told == "uniform, the default: endpoints of type firefly.nic, merlin.offered_load are not translated"
    assert found.sections["router"]["flit_ns"] == 32


def _router(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    return lambda data: change(data["components"][0])


def _link(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    return lambda data: change(data["links"][-1])


SPOILED: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda data: data.pop("links"), r"links: must be a list"),
    (lambda data: data.update(components=[]), r"components: must be a list"),
    (lambda data: data["components"].append(data["components"][0]), r"component rtr_0: stands there twice"),
    (_router(lambda one: one["params"].update(id="7")), r"components: needs components .* ids from 0 without a gap"),
    (_router(lambda one: one["params"].update(id="1")), r"params\.id must be a number of its own, not 1"),
    (_router(lambda one: one.pop("subcomponents")), r"component rtr_0: has no subcomponent in slot topology"),
    (_router(lambda one: one["params"].update(link_bw="4GB")), r"routers: link_bw is 4GB in rtr_0 and 4GB/s in rtr_1"),
    (lambda data: [one["params"].update(xbar_bw="fast") for one in data["components"]],
     r"component rtr_0, params\.xbar_bw: must be a number of b/s or B/s, not fast"),
    (lambda data: [one["params"].pop("flit_size", 0) for one in data["components"]], r"params\.flit_size: is missing"),
    (lambda data: [one["params"].update(input_buf_size="0B") for one in data["components"]], r"above 0, not 0B"),
    (lambda data: data["shared_params"]["job"].update(offered_load="many"), r"params\.offered_load: must be a number"),
    (lambda data: data["shared_params"]["job"].update(warmup_time="5"), r"params\.warmup_time: must be a number of s"),
    (lambda data: data["components"][-1].update(params_shared_sets=["lost"]), r"there are no shared parameters lost"),
    (lambda data: data["shared_params"]["job"].update(num_peers="3"), r"endpoints: num_peers is 3, of 4"),
    (lambda data: data["components"][-1]["subcomponents"][0].update(params={"link_bw": "2GB/s"}),
     r"component offered_load_3:networkIF: link_bw is 2GB/s; hopforge has links of one rate"),
    (_router(lambda one: one["subcomponents"][0]["params"].update(config_failed_links="True", failed_links="[0:1:0]")),
     r"component rtr_0: failed_links 0:1:0: write section failed"),
    (_link(lambda one: one["left"].update(component="rtr_9")), r"link link_3: there is no component rtr_9"),
    (_link(lambda one: one["left"].update(port="port")), r"link link_3: rtr_\d has no port port"),
    (_link(lambda one: one["left"].update(latency="9ns")), r"takes 9ns and 30ns in its two directions"),
    (_link(lambda one: [one[side].update(latency="9ns") for side in ("left", "right")]),
     r"links between routers: have latencies of 9, 30 ns; hopforge knows one"),
    (_link(lambda one: one.update(left=one["right"])), r"has two links|links a router with itself"),
    (_link(lambda one: one.update(nonlocal_=1) or one.update({"nonlocal": True})), r"the other end is in another file"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "message"), SPOILED)
def test_mistakes_are_one_line_with_their_place(
    tmp_path: Path, spoil: Callable[[dict[str, Any]], object], message: str
) -> None:
    data = sst_files.grid("mesh", [2, 2], 1).data()
    spoil(data)
    (tmp_path / "x.json").write_text(json.dumps(data))
    with pytest.raises(MerlinError) as caught:
        translate(tmp_path / "x.json")
    assert re.search(message, str(caught.value)), caught.value
    assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize(("text", "message"), [
    ("", r"x\.json:1: not JSON"), ("[1]", "must be an object"),
    ("{\"components\": [[1]]}", r"components\[0\]: must be"),
    ("[" * 100_000, "without an end|not JSON"), ("{\n nan", r"x\.json:2: not JSON"),
])  # fmt: skip
def test_what_is_no_file_of_sst(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(MerlinError, match=message):
        translate(tmp_path / "x.json")


def test_routing_that_hopforge_lacks(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(sst_files.hyperx([3, 3], 1, "VDAL").text())
    with pytest.raises(MerlinError, match=r"topology algorithm: hopforge has DOR, MIN-A, valiant, not VDAL"):
        translate(tmp_path / "x.json")


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ring.json").write_text(sst_files.graph(RING, [0, 0, 2, 3]).text())
    done = CliRunner().invoke(app, ["import", "sst", "ring.json", "-o", "mine.yml"])
    assert done.exit_code == 0, done.output
    assert {path.name for path in tmp_path.iterdir()} == {"ring.json", "mine.yml", "mine.json"}
    said = " ".join(done.output.split())
    assert "not translated of the routers xbar_arb" in said
    assert "in place of anytopo" in said
    done = CliRunner().invoke(app, ["import", "sst", "ring.json"])
    assert Path("build/ring/import/sst/ring.yml").is_file(), done.output


def test_units() -> None:
    assert bits("14kB") == 112_000
    assert bits("1KiB") == 8192
    assert bits("64b") == 64
    assert bits_per_second("0.5 Gb/s") == 500_000_000
    assert bits_per_second("1MiB/s") == 8 << 20
    assert nanoseconds("2.5us") == 2500
    assert nanoseconds("1e-08s") == 10
    for text in ("", "5", "B", "5 B/s", "-1B", "nanB", "1e999999999B"[:6]):
        with pytest.raises(ValueError, match="must be a number of b or B"):
            bits(text)
