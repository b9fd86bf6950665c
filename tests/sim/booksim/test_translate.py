"""`hopforge import booksim`: what every key becomes, what is refused, and runs beside BookSim's own figures."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.model.config import load_config
from hopforge.model.output.destination import ResultError
from hopforge.model.routing.graphs.booksim_min import first_ports
from hopforge.model.topology.configured import configured_network
from hopforge.sim.booksim.grammar import BooksimError
from hopforge.sim.booksim.random_numbers import draw_permutation, random_numbers
from hopforge.sim.booksim.translate import translate
from hopforge.sim.run.simulation import Simulation

#: the router of our reference runs
ROUTER = """num_vcs = 4; vc_buf_size = 8; vc_allocator = islip; sw_allocator = islip; routing_delay = 0;
credit_delay = 2; injection_rate_uses_flits = 1; injection_rate = 0.1; sample_period = 2500;
"""
MESH = f"topology = mesh; k = 8; n = 2; routing_function = dor; {ROUTER}"
FOUR = f"{MESH} use_noc_latency = 0; packet_size = 4;"
BUTTERFLY = f"topology = flatfly; k = 4; n = 2; c = 4; x = 4; y = 4; xr = 2; yr = 2; use_noc_latency = 0; {ROUTER}"


def sections(folder: Path, text: str, *parameters: str) -> dict[str, Any]:
    (folder / "case.cfg").write_text(text)
    return translate([str(folder / "case.cfg"), *parameters]).sections


def run(folder: Path, text: str, load: float, *parameters: str, cycles: int = 6000) -> Any:
    (folder / "case.cfg").write_text(text)
    found = translate([str(folder / "case.cfg"), *parameters])
    found.write(folder / "case.yml")
    limits = {"warmup_cycles": 2000, "min_cycles": cycles, "max_cycles": cycles}
    config = load_config(folder / "case.yml", keys=False)
    config = config.model_copy(update={"simulation": config.simulation.model_copy(update=limits)})
    return Simulation(config, load, 1).run()


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


def test_balanced_halves_of_a_torus(tmp_path: Path) -> None:
    found = sections(tmp_path, "routing_function = dim_order_bal;")
    assert found["routing"] == {"algorithm": "dor", "vc_rule": "balanced", "ties": "random"}


@pytest.mark.parametrize(("vcs", "rate", "latency", "accepted"), [
    (2, 0.2, 35.35, 0.2), (2, 0.24, 38.96, 0.24), (4, 0.5, 41.82, 0.5), (2, 0.5, None, 0.2546),
])
def test_balanced_halves_take_as_long_as_in_booksim(
    tmp_path: Path, vcs: int, rate: float, latency: float | None, accepted: float
) -> None:
    """Means of two runs of BookSim 2, 8×8 torus, `vc_buf_size = 8`, `sample_period = 2000`, seeds 1 and 2."""
    text = f"routing_function = dim_order_bal; traffic = uniform; vc_buf_size = 8; num_vcs = {vcs};"
    result = run(tmp_path, text, rate)
    assert result.accepted == pytest.approx(accepted, rel=0.02)
    if latency is not None:
        assert result.latency == pytest.approx(latency, rel=0.02)


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


def test_output_buffers_matter_with_speedups_only(tmp_path: Path) -> None:
    limited = sections(tmp_path, MESH, "internal_speedup=2.0", "output_buffer_size=8")["router"]
    assert limited["output_queue_flits"] == 8
    assert sections(tmp_path, MESH, "output_buffer_size=1")["router"] == sections(tmp_path, MESH)["router"]
    with pytest.raises(BooksimError, match="output_buffer_size = 0: must be -1 or 1 to 65535"):
        sections(tmp_path, MESH, "output_buffer_size=0")


FLY = f"topology = fly; k = 4; n = 2; routing_function = dest_tag; {ROUTER}"


@pytest.mark.parametrize(("allocators", "ports"), [
    ("vc_allocator=max_size", "own"), ("sw_allocator=max_size", "own"), ("sw_allocator=wavefront", "own"),
    ("sw_allocator=loa", "own"), ("vc_allocator=pim", "own"), ("sw_allocator=separable_input_first", None),
    ("sw_allocator=wavefront n=1", None),
])  # fmt: skip
def test_stages_of_a_fly_have_routers_of_their_own(tmp_path: Path, allocators: str, ports: str | None) -> None:
    assert sections(tmp_path, FLY, *allocators.split())["router"].get("allocator_ports") == ports


@pytest.mark.parametrize("network", [
    "topology = fattree; k = 4; n = 2;", "topology = qtree; k = 4; n = 3;", "topology = tree4; k = 4; n = 3;",
])  # fmt: skip
def test_allocators_of_routers_with_unlike_ports_count_their_own(tmp_path: Path, network: str) -> None:
    tree = f"{network} routing_function = nca; {ROUTER}"
    for name in ("wavefront", "rr_wavefront", "max_size", "loa", "pim"):
        assert sections(tmp_path, tree, f"vc_allocator={name}")["router"]["allocator_ports"] == "own"
    assert "allocator_ports" not in sections(tmp_path, tree)["router"]
    assert "allocator_ports" not in sections(tmp_path, MESH, "vc_allocator=wavefront")["router"]


def test_a_fly_shares_the_pointer_of_rr_wavefront(tmp_path: Path) -> None:
    with pytest.raises(BooksimError, match="sw_allocator = rr_wavefront: hopforge's first and last stage of a fly"):
        sections(tmp_path, FLY, "sw_allocator=rr_wavefront")
    assert sections(tmp_path, FLY, "sw_allocator=rr_wavefront", "n=1")["router"]["sa"] == "rr_wavefront"


@pytest.mark.parametrize(("parameters", "accepted"), [
    # of BookSim's own runs (six seeds, 3000 cycles): with pointers over all ports 4.5 to 5.5 % less
    ("vc_allocator=max_size sw_allocator=max_size input_speedup=2 packet_size=4", 0.8132),
    ("vc_allocator=max_size sw_allocator=max_size input_speedup=2", 0.8502),
    ("vc_allocator=wavefront sw_allocator=wavefront input_speedup=2", 0.8418),
    ("vc_allocator=wavefront sw_allocator=wavefront", 0.7726),
])  # fmt: skip
def test_a_fly_accepts_what_booksims_does(tmp_path: Path, parameters: str, accepted: float) -> None:
    assert run(tmp_path, FLY, 1.0, *parameters.split()).accepted == pytest.approx(accepted, rel=0.02)


def test_a_drawn_permutation_is_booksims(tmp_path: Path) -> None:
    """What BookSim's own pattern held for 16 terminals, seed 5."""
    four = "k=4"
    drawn = [1, 7, 2, 0, 6, 8, 3, 4, 15, 11, 12, 9, 5, 14, 10, 13]
    assert sections(tmp_path, MESH, four, "traffic=randperm", "perm_seed=5")["traffic"]["destinations"] == drawn
    named = sections(tmp_path, MESH, four, "traffic=randperm(5)", "perm_seed=time")["traffic"]
    assert named == {"pattern": "destinations", "destinations": drawn, "packet_flits": 1}
    assert sections(tmp_path, MESH, four, "traffic=randperm")["traffic"]["destinations"] != drawn
    assert draw_permutation(12, -3) == [0, 3, 4, 5, 9, 6, 10, 7, 11, 1, 2, 8]
    with pytest.raises(BooksimError, match="perm_seed = time: time is another permutation each time"):
        sections(tmp_path, MESH, "traffic=randperm", "perm_seed=time")


def test_random_numbers_are_knuths() -> None:
    """The generator's own test (The Art of Computer Programming 2, 3.6): 2010 blocks of 1009, the first of the last."""
    numbers = random_numbers(310952)
    assert next(islice(numbers, 2009 * 100, None)) == 995235265


def test_iterations_and_arbiters_stand_in_brackets(tmp_path: Path) -> None:
    """BookSim's router does not hand its configuration to its allocators: runs with these keys are bit-identical."""
    plain = sections(tmp_path, MESH)["router"]
    assert sections(tmp_path, MESH, "alloc_iters=3", "arb_type=matrix")["router"] == plain
    twice = sections(tmp_path, MESH, "vc_allocator=islip(2)", "sw_allocator=islip(2)")["router"]
    assert twice == plain | {"allocator_iterations": 2}
    separable = ["vc_allocator=separable_output_first(matrix)", "sw_allocator=separable_output_first(matrix)"]
    assert sections(tmp_path, MESH, *separable)["router"]["arbiter"] == "matrix"
    assert "arbiter" not in sections(tmp_path, MESH, *(each.replace("(matrix)", "") for each in separable))["router"]


def test_both_allocators_have_arbiters_and_iterations_of_their_own(tmp_path: Path) -> None:
    def found(*parameters: str) -> dict[str, Any]:
        keys = ("va", "sa", "arbiter", "va_arbiter", "allocator_iterations", "va_iterations")
        router = sections(tmp_path, MESH, *parameters)["router"]
        return {key: router[key] for key in keys if key in router}

    assert found("vc_allocator=islip(2)", "sw_allocator=separable_output_first") == {
        "va": "islip", "sa": "output_first", "va_iterations": 2,
    }  # fmt: skip
    assert found("vc_allocator=separable_input_first(matrix)", "sw_allocator=islip(3)") == {
        "va": "input_first", "sa": "islip", "va_arbiter": "matrix", "allocator_iterations": 3,
    }  # fmt: skip
    assert found("vc_allocator=pim(2)", "sw_allocator=separable_output_first(matrix)") == {
        "va": "pim", "sa": "output_first", "arbiter": "matrix", "va_iterations": 2,
    }  # fmt: skip
    assert found("vc_allocator=select", "sw_allocator=separable_input_first(matrix)") == {
        "va": "islip", "sa": "input_first_ports", "arbiter": "matrix", "va_arbiter": "round_robin",
    }  # fmt: skip
    assert found("vc_allocator=wavefront", "sw_allocator=separable_output_first(matrix)") == {
        "va": "wavefront", "sa": "output_first", "arbiter": "matrix",
    }  # fmt: skip


def test_select_is_islip_of_one_iteration(tmp_path: Path) -> None:
    """BookSim's runs with both are bit-identical, unless requests have priorities, which only `select` knows."""
    select = ["vc_allocator=select", "sw_allocator=select(1)"]
    assert sections(tmp_path, MESH, *select)["router"] == sections(tmp_path, MESH)["router"]
    own = sections(tmp_path, MESH, *select, "speculative=1", "spec_sw_allocator=islip")["router"]
    assert own["speculation"] is True
    with pytest.raises(BooksimError, match="speculative = 1: hopforge's iSLIP knows no priorities"):
        sections(tmp_path, MESH, *select, "speculative=1")
    with pytest.raises(BooksimError, match=r"sw_allocator = select\(2\): hopforge has select with one iteration only"):
        sections(tmp_path, MESH, "sw_allocator=select(2)")


@pytest.mark.parametrize(("allocator", "others"), [("islip", "islip()"), ("islip(2)", "islip"), ("islip(3)", "prio")])
def test_what_stands_in_brackets_does_not_change_the_kind_of_speculation(
    tmp_path: Path, allocator: str, others: str
) -> None:
    """One allocator for all requests (`prio`) is shared with any number of iterations."""
    both = [f"vc_allocator={allocator}", f"sw_allocator={allocator}", "speculative=1"]
    assert sections(tmp_path, MESH, *both)["router"]["speculation"] == "shared"
    if allocator == "islip":
        assert sections(tmp_path, MESH, *both, f"spec_sw_allocator={others}")["router"]["speculation"] is True
    elif others == "islip":
        with pytest.raises(BooksimError, match="spec_sw_allocator = islip: must be prio or the switch allocator isl"):
            sections(tmp_path, MESH, *both, f"spec_sw_allocator={others}")
    found = sections(tmp_path, MESH, "speculative=1", "sw_allocator=separable_input_first(round_robin)",
                     "spec_sw_allocator=separable_input_first")  # fmt: skip
    assert found["router"]["speculation"] is True


def test_masks_by_requests_matter_with_two_switch_allocators_only(tmp_path: Path) -> None:
    shared = sections(tmp_path, MESH, "speculative=1", "spec_mask_by_reqs=1")["router"]
    assert shared == sections(tmp_path, MESH, "speculative=1")["router"]
    with pytest.raises(BooksimError, match="spec_mask_by_reqs = 1: hopforge masks by grants"):
        sections(tmp_path, MESH, "speculative=1", "spec_mask_by_reqs=1", "spec_sw_allocator=islip")


def test_stages_of_several_cycles_take_batches(tmp_path: Path) -> None:
    plain = sections(tmp_path, MESH)["router"]
    assert sections(tmp_path, MESH, "routing_delay=1")["router"] == plain | {"rc_cycles": 1}
    longer = sections(tmp_path, MESH, "routing_delay=2")["router"]
    assert longer == plain | {"rc_cycles": 2, "stage_batches": True}
    crossbar = {"crossbar_cycles": 3, "stage_batches": True}
    assert sections(tmp_path, MESH, "st_prepare_delay=1", "st_final_delay=2")["router"] == plain | crossbar


def test_speedups_stand_beside_other_keys(tmp_path: Path) -> None:
    def found(*parameters: str) -> dict[str, Any]:
        plain = sections(tmp_path, MESH)["router"]
        router = sections(tmp_path, MESH, *parameters)["router"]
        return {key: value for key, value in router.items() if value != plain.get(key)}

    assert found("internal_speedup=2.0", "routing_delay=1") == {"internal_speedup": 2.0, "rc_cycles": 1}
    assert found("input_speedup=2", "speculative=1") == {"input_speedup": 2, "speculation": "shared"}
    assert found("input_speedup=2", "sw_allocator=wavefront") == {"input_speedup": 2, "sa": "wavefront"}
    assert found("output_speedup=2", "hold_switch_for_packet=1") == {"output_speedup": 2, "hold_switch": True}
    assert found("st_final_delay=2", "speculative=1")["speculation"] == "shared"
    # a crossbar port for each virtual channel: more make no difference
    assert found("input_speedup=3")["input_speedup"] == 3
    assert found("input_speedup=7")["input_speedup"] == 4


def test_all_allocators_go_with_speedups(tmp_path: Path) -> None:
    def found(*parameters: str) -> dict[str, Any]:
        router = sections(tmp_path, MESH, *parameters)["router"]
        keys = ("sa", "arbiter", "speculation", "hold_switch", "crossbar_cycles", "stage_batches", "output_speedup")
        return {key: router[key] for key in keys if key in router}

    matrix = [f"{one}_allocator=separable_output_first(matrix)" for one in ("vc", "sw")]
    assert found(*matrix, "output_speedup=2") == {"sa": "output_first", "arbiter": "matrix", "output_speedup": 2}
    most = found("sw_allocator=max_size", "input_speedup=2", "output_speedup=2", "speculative=1")
    assert most == {"sa": "max_size", "output_speedup": 2, "speculation": "shared"}
    assert sections(tmp_path, MESH, "sw_allocator=max_size")["router"]["sa_first_output"] == 1  # the host's is last
    assert "sa_first_output" not in sections(tmp_path, MESH, "vc_allocator=max_size")["router"]
    own = found("sw_allocator=max_size", "speculative=1", "spec_sw_allocator=max_size", "hold_switch_for_packet=1")
    assert own == {"sa": "max_size", "speculation": True, "hold_switch": True}
    longer = found("internal_speedup=1.5", "st_prepare_delay=1")
    assert longer == {"sa": "islip", "crossbar_cycles": 2, "stage_batches": True}
    assert found("sw_allocator=loa", "speculative=1") == {"sa": "loa", "speculation": "shared"}
    yielding = found("sw_allocator=separable_output_first", "speculative=1")
    assert yielding == {"sa": "output_first", "speculation": "yielding"}
    matrix = found(*[f"{one}_allocator=separable_input_first(matrix)" for one in ("vc", "sw")], "speculative=1")
    assert matrix == {"sa": "input_first_ports", "arbiter": "matrix", "speculation": "yielding"}
    assert found("sw_allocator=rr_wavefront", "speculative=1") == {"sa": "rr_wavefront", "speculation": True}
    drawn = sections(tmp_path, MESH, "vc_allocator=pim(2)", "sw_allocator=pim(2)")["router"]
    assert (drawn["allocator_iterations"], drawn["va"], drawn["sa"]) == (2, "pim", "pim")
    iterated = sections(tmp_path, MESH, "vc_allocator=islip(2)", "sw_allocator=wavefront")["router"]
    assert (iterated["allocator_iterations"], iterated["sa"]) == (2, "wavefront")


def test_an_output_buffer_counts_where_flits_wait_in_it(tmp_path: Path) -> None:
    plain = sections(tmp_path, MESH)["router"]
    assert sections(tmp_path, MESH, "output_buffer_size=8")["router"] == plain
    for other in ("output_speedup=2", "internal_speedup=2.0", "st_final_delay=2"):
        assert sections(tmp_path, MESH, "output_buffer_size=8", other)["router"]["output_queue_flits"] == 8


@pytest.mark.parametrize(("parameters", "message"), [
    (["output_speedup=2", "sw_allocator=max_size"],
     "output_speedup = 2: BookSim's max_size never grants the outputs above input_speedup = 1; its runs stand still"),
    (["output_speedup=3", "input_speedup=2", "sw_allocator=max_size"], "outputs above input_speedup = 2"),
    (["st_final_delay=2", "output_buffer_size=0"], "output_buffer_size = 0: must be -1 or 1 to 65535"),
    (["topology=cmesh", "k=8", "c=4", "x=8", "y=8", "xr=2", "yr=2", "routing_function=dor_no_express",
      "use_noc_latency=0", "sw_allocator=max_size"], "it serves outputs by their order"),
])  # fmt: skip
def test_what_does_not_go_with_speedups_is_refused(tmp_path: Path, parameters: list[str], message: str) -> None:
    with pytest.raises(BooksimError, match=message):
        sections(tmp_path, MESH, *parameters)


def test_tornado_moves_every_digit_of_the_terminal(tmp_path: Path) -> None:
    traffic = sections(tmp_path, BUTTERFLY, "routing_function=ran_min", "traffic=tornado")["traffic"]
    # 8 columns and 8 rows of terminals: 3 further in both
    assert traffic["destinations"][0] == 3 + 8 * 3
    assert traffic["destinations"][63] == 2 + 8 * 2


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


def test_adaptive_orders_are_decided_where_booksim_does(tmp_path: Path) -> None:
    """Routes that are looked up one hop ahead are decided at the host."""
    found = sections(tmp_path, MESH, "routing_function=adaptive_xy_yx")
    assert found["routing"] == {"algorithm": "booksim_adaptive_xy_yx", "decision": "host"}
    found = sections(tmp_path, MESH, "routing_function=adaptive_xy_yx", "routing_delay=1")
    assert found["routing"] == {"algorithm": "booksim_adaptive_xy_yx"}


def test_anca_is_decided_where_booksim_does(tmp_path: Path) -> None:
    tree = f"topology = fattree; k = 4; n = 3; routing_function = anca; {ROUTER}"
    assert sections(tmp_path, tree)["routing"] == {"algorithm": "anca", "decision": "ahead"}
    assert sections(tmp_path, tree, "routing_delay=1")["routing"] == {"algorithm": "anca"}


def test_shares_of_destinations_need_as_many_terminals_as_routers_of_a_line(tmp_path: Path) -> None:
    pni = f"{BUTTERFLY} routing_function = ugal_pni;"
    assert sections(tmp_path, pni, "num_vcs=8")["routing"] == {"algorithm": "booksim_ugal_pni", "decision": "host"}
    with pytest.raises(BooksimError, match="num_vcs = 6: must be 8 to 16"):
        sections(tmp_path, pni, "num_vcs=6")
    with pytest.raises(BooksimError, match="num_vcs = 9: the classes of BookSim's routing overlap unless"):
        sections(tmp_path, pni, "num_vcs=9")
    with pytest.raises(BooksimError, match="c = 1: BookSim's ugal_pni needs c = k = 4"):
        sections(tmp_path, pni, "num_vcs=8", "c=1", "xr=1", "yr=1")


def test_a_network_file_holds_latencies_in_one_direction(tmp_path: Path) -> None:
    net = "router 0 node 0 router 1 5 router 2\nrouter 1 node 1 router 2\nnode 2 router 2\n"
    (tmp_path / "net.txt").write_text(net)
    text = f"topology = anynet; network_file = net.txt; routing_function = min; {ROUTER}"
    (tmp_path / "case.cfg").write_text(text)
    found = translate([str(tmp_path / "case.cfg")])
    lines = found.files[".anynet"].splitlines()[1:]
    assert lines == [
        "router 0 node 0 router 1 5 router 2 1", "router 1 node 1 router 0 1 router 2 1",
        "router 2 node 2 router 0 1 router 1 1",
    ]  # fmt: skip
    assert found.sections["routing"] == {"algorithm": "booksim_min", "check": False}
    found.write(tmp_path / "case.yml")
    topology = configured_network(load_config(tmp_path / "case.yml", keys=False))
    ways = [[-1 if p < 0 else int(topology.peer_router[r, p]) for p in first_ports(topology, r)] for r in range(3)]
    # from 0 to 1 over 2, since the direct link takes 5 cycles; back directly
    assert ways == [[-1, 2, 2], [0, -1, 2], [0, 1, -1]]


@pytest.mark.parametrize(("text", "message"), [
    ("router 0 node 0 router 0\n", ":1: router 0 is linked to itself"),
    ("router 0 node 0 router 1\nrouter 1 node 0\n", ":2: node 0 is at router 1 and at router 0"),
    ("router 0 nodes 0\n", ":1: expected router or node, not 'nodes'"),
    ("router 0 node 0 3 router 1\n", ":1: latency 3 of the link to node 0"),
    ("router 0 node 0 router 2\n", ": router 1 is missing"),
    ("router 0 node 99999999999 router 2\n", ":1: expected the number of a node"),
])  # fmt: skip
def test_a_wrong_network_file_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "net.txt").write_text(text)
    with pytest.raises(BooksimError, match=message):
        sections(tmp_path, f"topology = anynet; network_file = net.txt; routing_function = min; {ROUTER}")


@pytest.mark.parametrize(("text", "load", "latency", "routers", "within"), [
    # BookSim's own runs (two seeds, 7500 cycles): mean latency and routers visited; UGAL within 3 %
    (f"{BUTTERFLY} routing_function = ran_min; traffic = bitcomp;", 0.15, 14.572, 3.0, 0.02),
    (f"{BUTTERFLY} routing_function = ugal; traffic = tornado;", 0.22, 15.993, 3.2648, 0.03),
    (f"{BUTTERFLY} routing_function = ugal_xyyx; traffic = bitcomp;", 0.15, 17.72, None, 0.03),
    (f"topology = tree4; k = 4; n = 3; routing_function = nca; {ROUTER}", 0.1, 19.878, None, 0.02),
    ("topology = cmesh; k = 4; n = 2; c = 4; x = 4; y = 4; xr = 2; yr = 2; routing_function = dor_no_express; "
     f"use_noc_latency = 0; hold_switch_for_packet = 1; packet_size = 4; {ROUTER}", 0.1, 21.654, 3.5, 0.02),
    # crossbar ports, iterations and steps: 7500 cycles of packets of four flits; without them 41.1 cycles
    pytest.param(f"{FOUR} input_speedup = 2;", 0.3, 37.787, None, 0.02, marks=pytest.mark.study),
    pytest.param(f"{FOUR} output_speedup = 2;", 0.3, 38.756, None, 0.02, marks=pytest.mark.study),
    (f"{FOUR} sw_allocator = islip(2); vc_allocator = islip(2);",
     0.3, 39.627, None, 0.02),
    (f"{FOUR} input_speedup = 2; output_speedup = 2; sw_allocator = islip(3); "
     "vc_allocator = islip(3);", 0.3, 36.972, None, 0.02),
    pytest.param(f"{FOUR} internal_speedup = 2.0;", 0.3, 30.215, None, 0.02, marks=pytest.mark.study),
    (f"{FOUR} internal_speedup = 1.5; sw_allocator = separable_input_first; "
     "vc_allocator = separable_input_first;", 0.3, 30.903, None, 0.02),
    (f"topology = fly; k = 8; n = 2; routing_function = dest_tag; packet_size = 4; {ROUTER}", 0.5, 27.533, 2.0, 0.02),
    pytest.param(f"topology = fly; k = 4; n = 3; routing_function = dest_tag; input_speedup = 2; {ROUTER}",
                 0.5, 15.902, 3.0, 0.02, marks=pytest.mark.study),
    # speedups beside other keys
    (f"{FOUR} routing_delay = 1; internal_speedup = 2.0;", 0.3, 30.317, None, 0.02),
    (f"{FOUR} speculative = 1; internal_speedup = 2.0;", 0.3, 25.443, None, 0.02),
    pytest.param(f"{FOUR} speculative = 1; input_speedup = 2;", 0.3, 33.34, None, 0.02, marks=pytest.mark.study),
    (f"{FOUR} hold_switch_for_packet = 1; internal_speedup = 1.5; output_speedup = 2; output_buffer_size = 4;",
     0.3, 31.316, None, 0.02),
    pytest.param(f"{FOUR} vc_allocator = separable_input_first; sw_allocator = separable_input_first; "
                 "input_speedup = 2; output_speedup = 2;", 0.3, 37.017, None, 0.02, marks=pytest.mark.study),
    (f"{FOUR} vc_allocator = wavefront; sw_allocator = wavefront; speculative = 1; input_speedup = 2; "
     "st_final_delay = 2;", 0.3, 44.255, None, 0.02),
    # batches of the first and of the last stage of a fly
    (f"topology = fly; k = 8; n = 2; routing_function = dest_tag; {ROUTER} routing_delay = 3;", 0.1, 19.428, 2.0, 0.01),
    # links of 2, 4 and 6 cycles by distance
    (f"{BUTTERFLY} routing_function = ran_min; use_noc_latency = 1;", 0.1, 15.619, 2.5, 0.02),
])  # fmt: skip
def test_latency_and_hops_are_those_of_booksim(
    tmp_path: Path, text: str, load: float, latency: float, routers: float | None, within: float
) -> None:
    found = run(tmp_path, text, load)
    assert found.latency == pytest.approx(latency, rel=within)
    if routers is not None:
        assert found.hops == pytest.approx(routers, rel=0.01)


def test_the_rule_of_polarflys_authors_is_that_of_their_booksim(tmp_path: Path) -> None:
    """Their own run (seed 1, 13 routers of two hosts): at 0.4 a packet in ten takes a detour."""
    points = [(1, y, z) for y in range(3) for z in range(3)] + [(0, 1, z) for z in range(3)] + [(0, 0, 1)]
    lines = []
    for i, a in enumerate(points):
        linked = [j for j, b in enumerate(points) if j != i and sum(x * y for x, y in zip(a, b, strict=True)) % 3 == 0]
        lines.append(f"router {i} node {2 * i} node {2 * i + 1} " + " ".join(f"router {j}" for j in linked) + "\n")
    (tmp_path / "pf3.anynet").write_text("".join(lines))
    text = f"topology = anynet; network_file = {tmp_path / 'pf3.anynet'}; routing_function = ugall4_pf; {ROUTER}"
    found = run(tmp_path, text.replace("routing_delay = 0", "routing_delay = 1"), 0.4)
    assert found.latency == pytest.approx(17.9945, rel=0.02)
    assert found.hops == pytest.approx(2.68898, rel=0.005)  # 2.56 without detours


def test_one_channel_bounds_bit_complement(tmp_path: Path) -> None:
    # each router sends all to one router: four flits over one channel
    text = f"{BUTTERFLY} routing_function = ran_min; traffic = bitcomp;"
    assert run(tmp_path, text, 0.5).accepted == pytest.approx(0.25, rel=0.01)


DRAGONFLY = f"topology = dragonflynew; k = 1; n = 1; routing_function = min; packet_size = 4; {ROUTER}"


def test_links_of_a_dragonfly_take_two_virtual_channels(tmp_path: Path) -> None:
    """BookSim's own runs (two seeds): latency with 3 VCs, accepted rate beyond saturation with 4."""
    plain = sections(tmp_path, DRAGONFLY, "num_vcs=2")["routing"]
    assert plain == {"algorithm": "dragonfly_min", "ejection": "class"}
    assert sections(tmp_path, DRAGONFLY, "num_vcs=3")["routing"] == plain | {"class_vcs": "one"}
    found = run(tmp_path, DRAGONFLY, 0.2, "num_vcs=3", "vc_buf_size=128", cycles=15000)
    assert found.latency == pytest.approx(89.36, rel=0.02)
    # two VCs on either side of the global link would accept twice as much
    (tmp_path / "beyond").mkdir()
    found = run(tmp_path / "beyond", DRAGONFLY, 0.9, "num_vcs=4")
    assert found.accepted == pytest.approx(0.0561, rel=0.05)
    with pytest.raises(BooksimError, match="num_vcs = 1: must be 2 to 16"):
        sections(tmp_path, DRAGONFLY, "num_vcs=1")


@pytest.mark.parametrize("topology", ["anynet", "mesh"])
def test_a_key_that_the_pattern_reads_is_not_told_to_have_no_effect(tmp_path: Path, topology: str) -> None:
    (tmp_path / "net.txt").write_text("router 0 node 0 node 1 router 1\nrouter 1 node 2 node 3\n")
    network = {"anynet": "network_file = net.txt; routing_function = min; k = 2; n = 2;",
               "mesh": "k = 2; n = 2; routing_function = dor;"}[topology]  # fmt: skip
    (tmp_path / "case.cfg").write_text(f"topology = {topology}; {network} {ROUTER} xr = 1;")
    used = {"k", "n"} if topology == "mesh" else set()
    for words, read in ((["traffic=neighbor"], {"k", "n", "xr"}), (["traffic=neighbor({2,2})"], {"xr"} | used),
                        (["traffic=uniform"], used)):  # fmt: skip
        found = translate([str(tmp_path / "case.cfg"), *words])
        assert {"k", "n", "xr"} & set(found.translated) == read
        assert {"k", "n", "xr"} & set(found.without_effect) == {"k", "n", "xr"} - read


def test_bursts_in_brackets_win_over_their_keys(tmp_path: Path) -> None:
    (tmp_path / "case.cfg").write_text(MESH)
    bursts = ["injection_process=on_off(0.2)", "burst_alpha=0.5", "burst_beta=0.25"]
    found = translate([str(tmp_path / "case.cfg"), *bursts])
    assert found.sections["traffic"]["burst_cycles"] == 4
    # r1 = rate (alpha + beta) / alpha
    assert found.sections["traffic"]["burst_load"] == pytest.approx(0.1 * 0.45 / 0.2)
    assert found.without_effect["burst_alpha"] == "injection_process says it in brackets"
    assert "burst_beta" in found.translated


def test_the_command_writes_what_net_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("case.cfg").write_text(f"{BUTTERFLY}routing_function = ugal; watch_out = -; latency_thres = 300.0;")
    runner = CliRunner()
    result = runner.invoke(app, ["import", "booksim", "case.cfg", "injection_rate=.2", "-o", "mine.yml"])
    assert result.exit_code == 0, result.output
    assert {path.name for path in tmp_path.iterdir()} == {"case.cfg", "mine.yml", "mine.anynet"}
    assert "watch_out (what BookSim prints or writes)" in " ".join(result.output.split())
    assert yaml.safe_load(Path("mine.yml").read_text())["topology"] == {"kind": "edge_list", "file": "mine.anynet"}
    result = runner.invoke(app, ["import", "booksim", "case.cfg"])
    assert result.exit_code == 0, result.output
    assert Path("build/case/import/booksim/case.yml").is_file()
    with pytest.raises(ResultError, match="name a YAML file"):
        runner.invoke(app, ["import", "booksim", "case.cfg", "-o", "/dev/stdout"], catch_exceptions=False)


def test_a_file_of_ones_own_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.cfg").write_text("topology = mesh; k = 3; n = 2; routing_function = dor;")
    own = "# mine\nname: mine\ntopology: {kind: mesh, radices: [4, 4]}\n"
    Path("mine.yml").write_text(own)
    done = CliRunner().invoke(app, ["import", "booksim", "x.cfg", "-o", "mine.yml"])
    assert isinstance(done.exception, ResultError)
    assert "mine.yml: holds YAML, not a translated configuration, and is not overwritten" in str(done.exception)
    assert Path("mine.yml").read_text() == own
    for words in (["mine.yml", "--force"], ["mine.yml"], ["other.yml"], ["other.yml"]):
        assert CliRunner().invoke(app, ["import", "booksim", "x.cfg", "-o", *words]).exit_code == 0
    assert "4, 4" not in Path("mine.yml").read_text()


@pytest.mark.parametrize("changed", ["case.yml", "case.anynet"])
def test_a_translated_file_that_was_changed_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("case.cfg").write_text(f"{BUTTERFLY}routing_function = ugal;")

    def translated(*words: str) -> str:
        done = CliRunner().invoke(app, ["import", "booksim", "case.cfg", *words, "-o", "case.yml"])
        assert done.exception is None or isinstance(done.exception, ResultError), done.output
        return str(done.exception or "")

    assert translated() == translated() == translated("vc_buf_size=9") == ""  # as written: replaced
    own = Path(changed).read_text() + ("# mine\n" if changed == "case.yml" else "\n")
    Path(changed).write_text(own)
    for words in ([], ["vc_buf_size=7"]):
        assert f"{changed}: is not as hopforge import wrote it, and is not overwritten" in translated(*words)
        assert Path(changed).read_text() == own
    assert translated("--force") == translated() == ""
    assert Path(changed).read_text() != own


def test_a_network_of_ones_own_beside_a_translated_file_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.cfg").write_text("topology = mesh; k = 3; n = 2; routing_function = dor;")
    Path("b.cfg").write_text(f"{BUTTERFLY}routing_function = ugal;")
    Path("x.anynet").write_text("router 0 node 0 router 1\nrouter 1 node 1\n")
    assert CliRunner().invoke(app, ["import", "booksim", "a.cfg", "-o", "x.yml"]).exit_code == 0
    done = CliRunner().invoke(app, ["import", "booksim", "b.cfg", "-o", "x.yml"])
    assert "x.anynet: is not as hopforge import wrote it" in str(done.exception)
    assert "radices" in Path("x.yml").read_text()
