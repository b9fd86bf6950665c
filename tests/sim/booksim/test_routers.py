"""`hopforge import booksim`: routers, their allocators and speedups; accepted rates beside BookSim's own."""

import sys
from pathlib import Path
from typing import Any

import pytest

from hopforge.sim.booksim.grammar import BooksimError

sys.path.insert(0, str(Path(__file__).parent))
from booksim_cases import MESH, ROUTER, run, sections


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
