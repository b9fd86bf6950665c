"""`hopforge import booksim`: reads and writes as requests and replies, and runs beside BookSim's own figures."""

from pathlib import Path
from typing import Any

import pytest

from hopforge.model.config import load_config
from hopforge.sim.booksim.grammar import BooksimError
from hopforge.sim.booksim.translate import Translation, translate
from hopforge.sim.run.simulation import Simulation

ROUTER = """num_vcs = 4; vc_buf_size = 8; vc_allocator = islip; sw_allocator = islip; routing_delay = 0;
credit_delay = 2; injection_rate_uses_flits = 1; sample_period = 3000; warmup_periods = 2;
use_read_write = 1; read_request_begin_vc = 0; read_request_end_vc = 1; write_request_begin_vc = 0;
write_request_end_vc = 1; read_reply_begin_vc = 2; read_reply_end_vc = 3; write_reply_begin_vc = 2;
write_reply_end_vc = 3;
"""
MESH = f"topology = mesh; k = 4; n = 2; routing_function = dor; use_noc_latency = 0; {ROUTER}"
TORUS = f"topology = torus; k = 4; n = 2; routing_function = dim_order; {ROUTER}"
TREE = f"topology = fattree; k = 4; n = 2; routing_function = nca; {ROUTER}"
ALL_VCS = "read_request_end_vc=3 write_request_end_vc=3 read_reply_begin_vc=0 write_reply_begin_vc=0"
MEMORY = "read_reply_size=5 write_request_size=5"


def translation(folder: Path, *parameters: str, text: str = MESH) -> Translation:
    (folder / "case.cfg").write_text(text)
    return translate([str(folder / "case.cfg"), *parameters])


def traffic(folder: Path, parameters: str, text: str = MESH) -> dict[str, Any]:
    found: dict[str, Any] = translation(folder, *parameters.split(), text=text).sections["traffic"]
    found.pop("pattern")
    return found


@pytest.mark.parametrize(("parameters", "expected"), [
    # BookSim's sizes are 1
    ("", {"packet_flits": 1, "reply": {"flits": 1}}),
    (f"{MEMORY} write_fraction=0.25",
     {"packet_lengths": [1, 5], "packet_weights": [0.75, 0.25], "reply": {"lengths": [5, 1]}}),
    (f"{MEMORY} write_fraction=0.0", {"packet_flits": 1, "reply": {"flits": 5}}),
    (f"{MEMORY} write_fraction=1.0", {"packet_flits": 5, "reply": {"flits": 1}}),
    ("write_request_size=3", {"packet_lengths": [1, 3], "packet_weights": [0.5, 0.5], "reply": {"flits": 1}}),
    ("read_request_size={2,9} write_request_size={2} write_fraction={0.3}",
     {"packet_flits": 2, "reply": {"flits": 1}}),
])  # fmt: skip
def test_lengths_of_requests_and_replies(tmp_path: Path, parameters: str, expected: dict[str, Any]) -> None:
    expected["reply"] |= {"delay_cycles": 0, "vcs": "own", "sender": "shared"}
    assert traffic(tmp_path, parameters) == expected


def test_rates_in_flits_are_divided_by_half_of_the_four_lengths(tmp_path: Path) -> None:
    sizes = ["read_request_size=2", "read_reply_size=3", "write_request_size=4", "write_reply_size=2"]
    # (2 + 3 + 4 + 2) / 2 is 5 in BookSim's whole numbers; requests have (2 + 4) / 2 flits
    flits = translation(tmp_path, "injection_rate=0.1", *sizes).sections["simulation"]
    assert flits["load"] == pytest.approx(0.1 / 5 * 3)
    packets = translation(tmp_path, "injection_rate=0.1", "injection_rate_uses_flits=0", *sizes).sections["simulation"]
    assert packets["load"] == pytest.approx(0.3)


def test_virtual_channels_of_both(tmp_path: Path) -> None:
    assert traffic(tmp_path, ALL_VCS)["reply"]["vcs"] == "shared"
    writes = translation(tmp_path, "write_fraction=1.0", "read_reply_end_vc=9")
    assert writes.sections["traffic"]["reply"]["vcs"] == "own"
    assert writes.without_effect["read_reply_end_vc"] == "there are only writes"
    # a negative number: the half of these packets
    halves = " ".join(f"{kind}_{part}_{end}_vc=-1" for kind in ("read", "write") for part in ("request", "reply")
                      for end in ("begin", "end"))  # fmt: skip
    assert traffic(tmp_path, halves)["reply"]["vcs"] == "own"
    assert traffic(tmp_path, f"{ALL_VCS} read_request_begin_vc=-1 write_reply_end_vc=-7")["reply"]["vcs"] == "shared"
    with pytest.raises(BooksimError, match="or all have all"):
        translation(tmp_path, *f"{halves} num_vcs=5".split())
    dragonfly = "topology = dragonflynew; k = 2; n = 1; routing_function = min; num_vcs = 2; use_read_write = 1;"
    found = translation(tmp_path, "read_request_end_vc=5", text=dragonfly)
    assert found.sections["traffic"]["reply"]["vcs"] == "shared"
    assert "read_request_end_vc" in found.without_effect


def test_keys_of_reads_and_writes_are_without_effect_without_them(tmp_path: Path) -> None:
    found = translation(tmp_path, "use_read_write=0", "read_reply_size=5")
    for key in ("read_reply_size", "write_reply_end_vc"):
        assert found.without_effect[key] == "no reads and writes"
    assert "reply" not in found.sections["traffic"]
    # BookSim cuts lists to the number of classes
    assert "reply" not in translation(tmp_path, "use_read_write={0,1}").sections["traffic"]
    both = translation(tmp_path, "packet_size=9")
    assert both.without_effect["packet_size"] == "reads and writes have lengths of their own"


@pytest.mark.parametrize(("parameters", "message"), [
    ("read_reply_size=5", "reads and writes have requests of 1 flits and other replies"),
    ("read_request_end_vc=2",
     "read_request_begin_vc = 0: in hopforge requests have virtual channels 0 to 1"),
    ("write_reply_end_vc=1", "or all have all"),
    ("num_vcs=16", r"replies 8 to 15, .*\(num_vcs = 16\)"),
    ("write_fraction=1.5", "write_fraction = 1.5: must be 0 to 1"),
    ("write_fraction={x}", "must be one number for each class"),
    ("read_reply_size=0", "read_reply_size = 0: must be 1 to 65535"),
    ("read_reply_size={0}", "must be 1 to 65535"),
    ("use_read_write={x}", "must be one whole number for each class"),
    ("use_read_write=-1", "must be at least 0"),
    (f"use_read_write={{{'9' * 5000}}} classes=2", "without other classes of traffic only"),
    ("classes=2", "hopforge has requests and replies without other classes of traffic only"),
    ("write_reply_subnet=1", "hopforge has one physical network"),
    ("routing_function=adaptive_xy_yx", "routing_delay = 0: with reads and writes hopforge does not decide before"),
    ("topology=flatfly k=4 n=2 c=4 x=4 y=4 xr=2 yr=2 num_vcs=8 routing_function=ugal_pni read_request_end_vc=3 "
     "write_request_end_vc=3 read_reply_begin_vc=4 read_reply_end_vc=7 write_reply_begin_vc=4 write_reply_end_vc=7",
     "virtual channels by destination are not for reads and writes"),
    ("topology=fattree routing_function=anca", "routing_delay = 0: with reads and writes hopforge does not decide"),
    ("injection_rate=2.5 read_reply_size=5 write_request_size=5", "offers 1.25 flits per host and cycle"),
    ("routing_function=xy_yx num_vcs=6 read_request_end_vc=2 write_request_end_vc=2 read_reply_begin_vc=3 "
     "read_reply_end_vc=5 write_reply_begin_vc=3 write_reply_end_vc=5",
     "unless half of it is a multiple of 2"),
])  # fmt: skip
def test_what_reads_and_writes_lack_is_refused_by_name(tmp_path: Path, parameters: str, message: str) -> None:
    with pytest.raises(BooksimError, match=message):
        translation(tmp_path, *parameters.split())


@pytest.mark.parametrize(("text", "parameters", "latency", "accepted"), [
    (MESH, f"injection_rate=0.15 {MEMORY}", 19.54, 0.15),
    (MESH, f"injection_rate=0.15 {MEMORY} write_fraction=0.0", 19.56, 0.15),
    (MESH, "injection_rate=0.1 injection_rate_uses_flits=0", 16.82, 0.2001),
    (MESH, f"injection_rate=0.15 {MEMORY} {ALL_VCS}", 19.50, 0.15),
    (TORUS, "injection_rate=0.15 read_reply_size=3 write_request_size=4 write_reply_size=2 write_fraction=0.8",
     19.19, 0.1681),
    (TREE, f"injection_rate=0.2 {MEMORY}", 16.08, 0.2),
    (MESH, f"injection_rate=0.15 {MEMORY} hold_switch_for_packet=1", 19.51, 0.1499),
    # beyond saturation
    (MESH, f"injection_rate=0.9 {MEMORY} sim_type=throughput traffic=transpose", None, 0.5342),
])  # fmt: skip
def test_reads_and_writes_take_as_long_as_in_booksim(
    tmp_path: Path, text: str, parameters: str, latency: float | None, accepted: float
) -> None:
    """Of runs of BookSim 2: means of three seeds, 60 000 cycles each."""
    translation(tmp_path, *parameters.split(), text=text).write(tmp_path / "case.yml")
    config = load_config(tmp_path / "case.yml", keys=False)
    row = Simulation(config, config.simulation.load, 1).run().row()
    assert row["accepted"] == pytest.approx(accepted, rel=0.02 if latency else 0.05)
    if latency:
        assert row["latency"] == pytest.approx(latency, rel=0.02)


FLATFLY = "topology = flatfly; k = 2; n = 2; c = 4; x = 2; y = 2; xr = 2; yr = 2; routing_function ="
NETWORKS = [
    *(f"topology = mesh; k = 3; n = 2; routing_function = {name};"
      for name in ("dor", "xy_yx", "adaptive_xy_yx", "romm", "valiant")),
    "topology = torus; k = 3; n = 2; routing_function = dim_order;",
    *(f"topology = fattree; k = 2; n = 3; routing_function = {name};" for name in ("nca", "anca")),
    "topology = fly; k = 2; n = 3; routing_function = dest_tag;",
    "topology = qtree; k = 4; n = 3; routing_function = nca;",
    "topology = tree4; k = 4; n = 3; routing_function = nca;",
    "topology = dragonflynew; k = 1; n = 1; routing_function = min; num_vcs = 2;",
    *(f"{FLATFLY} {name};" for name in ("ran_min", "xyyx", "adaptive_xyyx", "valiant", "ugal", "ugal_xyyx")),
]  # fmt: skip
PARTS = [
    "use_read_write = 1; read_reply_size = 3; write_request_size = 3; read_request_end_vc = 3; "
    "write_request_begin_vc = 0; write_request_end_vc = 3; read_reply_begin_vc = 4; read_reply_end_vc = 7; "
    "write_reply_begin_vc = 4; write_reply_end_vc = 7;",
    "classes = 2; traffic = {uniform,uniform};",
]


@pytest.mark.parametrize("traffic_keys", PARTS, ids=["reads and writes", "classes"])
@pytest.mark.parametrize("network", NETWORKS)
def test_what_is_translated_runs(tmp_path: Path, network: str, traffic_keys: str) -> None:
    """On every network with every routing: either a key is refused, or the file that is written runs."""
    refused = []
    for delay in (0, 1):
        text = f"num_vcs = 8; {network} {traffic_keys} injection_rate = 0.02; routing_delay = {delay};"
        try:
            found = translation(tmp_path, text=text)
        except BooksimError as error:
            refused.append((delay, "routing_delay = 0: with" in str(error)))
            continue
        folder = tmp_path / str(delay)
        folder.mkdir()
        found.write(folder / "case.yml")
        config = load_config(folder / "case.yml", keys=False)
        run = Simulation(config, config.simulation.load, 1)
        run.advance(500)
        assert int(run.state["packets_ejected"]) > 0
    assert refused in ([], [(0, True)])
