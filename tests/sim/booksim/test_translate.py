"""`hopforge import booksim`: what every key becomes, and what is refused."""

import sys
from pathlib import Path
from typing import Any

import pytest

from hopforge.sim.booksim.grammar import BooksimError

sys.path.insert(0, str(Path(__file__).parent))
from booksim_cases import MESH, sections


def test_defaults_are_those_of_booksim(tmp_path: Path) -> None:
    found = sections(tmp_path, "routing_function = dim_order;")
    assert found == {
        "name": "case", "seed": 0, "topology": {"kind": "torus", "radices": [8, 8]},
        "router": {"vcs": 16, "buffer_flits": 8, "va": "islip", "sa": "islip", "rc_cycles": 1,
                   "credit_delay_cycles": 0, "link_latency_cycles": 2},
        "routing": {"algorithm": "dor", "vc_rule": "fixed", "ties": "random"},
        "traffic": {"pattern": "uniform", "packet_flits": 1},
        "simulation": {"load": 0.1, "warmup_cycles": 3000, "min_cycles": 3000, "max_cycles": 10000, "precision": 0.005},
    }  # fmt: skip


def test_parameters_replace_what_the_file_says(tmp_path: Path) -> None:
    found = sections(tmp_path, MESH, "injection_rate=.2", "seed=3", "packet_size={{1,5}}", "sim_type=throughput")
    assert (found["seed"], found["simulation"]["load"]) == (3, 0.2)
    assert found["traffic"] == {"pattern": "uniform", "packet_lengths": [1, 5], "packet_weights": [1, 1]}
    assert found["simulation"]["min_cycles"] == found["simulation"]["max_cycles"] == 7500
    packets = sections(tmp_path, MESH, "injection_rate_uses_flits=0", "packet_size=4")
    assert packets["simulation"]["load"] == 0.4
    # a text that was given counts, although a number comes later
    assert sections(tmp_path, MESH, "packet_size={{2}}", "packet_size=4")["traffic"]["packet_flits"] == 2


@pytest.mark.parametrize(("parameter", "where", "expected"), [
    ("wait_for_tail_credit=1", "router.vc_release", "credits"),
    ("vc_allocator=separable_input_first", "router.va", "input_first"),
    ("sw_allocator=separable_input_first", "router.sa", "input_first_ports"),
    ("vc_allocator=max_size", "router.va", "max_size"),
    ("sw_allocator=max_size", "router.sa", "max_size"),
    ("sw_allocator=loa", "router.sa", "loa"),
    ("vc_allocator=rr_wavefront", "router.va", "rr_wavefront"),
    ("sw_allocator=pim", "router.sa", "pim"),
    ("speculative=1", "router.speculation", "shared"),
    ("hold_switch_for_packet=1", "router.hold_switch", True),
    ("input_speedup=2", "router.input_speedup", 2),
    ("output_speedup=3", "router.output_speedup", 3),
    ("internal_speedup=1.5", "router.internal_speedup", 1.5),
    ("buf_size=64", "router.buffer_flits", 16),
    ("routing_function=xy_yx", "routing.algorithm", "booksim_xy_yx"),
    ("traffic=hotspot({{27,36}})", "traffic.targets", [27, 36]),
    ("traffic=hotspot({{27,36,1},{6,2}})", "traffic.targets", [27, 27, 27, 36, 1]),
    ("traffic=background({{0,1,63}})", "traffic.targets", list(range(2, 63))),
    ("traffic=diagonal", "traffic.pattern", "diagonal"),
    ("traffic=asymmetric", "traffic.pattern", "asymmetric"),
    ("traffic=taper64", "traffic.pattern", "taper64"),
    ("traffic=badperm_yarc", "traffic.pattern", "badperm_yarc"),
    ("traffic=badperm_yarc({4,3,2})", "traffic.pattern", "badperm_yarc"),
    ("traffic=neighbor", "traffic.pattern", "neighbour"),
    ("injection_process=on_off({-1.0,0.01,0.5})", "traffic.burst_cycles", 100.0),
])  # fmt: skip
def test_a_key_becomes(tmp_path: Path, parameter: str, where: str, expected: Any) -> None:
    section, key = where.split(".")
    assert sections(tmp_path, MESH, parameter)[section][key] == expected


@pytest.mark.parametrize(("parameter", "message"), [
    ("vc_alloc_delay=2", "vc_alloc_delay = 2: BookSim itself ends with a failed assertion"),
    ("sw_alloc_delay=2", "sw_alloc_delay = 2: BookSim itself ends with a failed assertion"),
    ("st_final_delay=17", "st_final_delay = 17: must be 0 to 16"),
    ("st_final_delay=0", "st_final_delay = 0: st_prepare_delay and st_final_delay must be 1 to 16 cycles together"),
    ("internal_speedup=0.5", "internal_speedup = 0.5: must be 1 to 8"),
    ("sw_allocator=islip(0)", r"sw_allocator = islip\(0\): hopforge's islip makes 1 to 16 iterations"),
    ("sw_allocator=loas", "sw_allocator = loas: BookSim has no such allocator; it has islip"),
    ("sw_allocator=pim(17)", r"sw_allocator = pim\(17\): hopforge's pim makes 1 to 16 iterations"),
    ("buf_size=0", "buf_size = 0: must be a multiple of num_vcs = 4 above 0"),
    ("topology=gflatfly", "topology = gflatfly: BookSim itself has not kept it"),
    ("routing_function=min_adapt", "routing_function = min_adapt: BookSim's own keeps one output of each priority"),
    ("routing_function=nonsense", "routing_function = nonsense: topology mesh has adaptive_xy_yx, dim_order, dor"),
    ("traffic=badperm_yarc({4,2,1})", r"needs \(xr \* k\)\^2 = 16 terminals, not 64"),
    ("traffic=asymmetric k=3", "traffic = asymmetric: needs an even number of terminals, not 9"),
    ("traffic=taper64 k=4", "traffic = taper64: BookSim needs 64 terminals, not 16"),
    ("traffic=randperm(time)", "its parameter, the seed, must be a whole number"),
    ("traffic=background", "terminals that are left out must be given"),
    ("traffic=hotspot({{1,2},{1,0}})", "rates of hot terminals must be whole numbers from 1 to 999999"),
    ("traffic=hotspot({{1,2},{1,99999}})", "rates of hot terminals add up to 100000, more than 65536"),
    ("traffic=tornado({9999999999,2,1})", "its parameters k, n, xr must be whole numbers"),
    ("traffic=tornado(2,4)", r"must be whole numbers, several of them as in \(\{4,2\}\)"),
    ("traffic=hotspot({{64}})", "hot terminals must be given"),
    ("injection_rate=1.5", "offers 1.5 flits per host and cycle"),
    ("injection_rate=1e-13", r"offers 1e-13 flits per host and cycle; hopforge takes loads in \(0, 1\]"),
    ("injection_rate=0.0", r"hopforge takes loads in \(0, 1\]"),
    ("classes=9", "classes = 9: must be 1 to 8"),
    ("classes=0", "classes = 0: must be 1 to 8"),
    ("priority=class classes=2", "priority = class: hopforge's packets have no priorities"),
    ("num_vcs=17", "num_vcs = 17: must be 1 to 16"),
    ("seed=time", "seed = time: must be a whole number"),
    ("n=40", r"n = 40: must be 1 to 12"),
    ("n=12", r"k\^n = 68719476736 routers are more than hopforge handles"),
])  # fmt: skip
def test_what_hopforge_cannot_do_is_refused_by_name(tmp_path: Path, parameter: str, message: str) -> None:
    with pytest.raises(BooksimError, match=message) as caught:
        sections(tmp_path, MESH, *parameter.split())
    assert str(caught.value).startswith(f"parameter {parameter.split(maxsplit=1)[0]}: ")
