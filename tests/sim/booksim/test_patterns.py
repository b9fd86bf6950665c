"""`hopforge import booksim`: traffic patterns, what is drawn, and bursts."""

import sys
from itertools import islice
from pathlib import Path

import pytest

from hopforge.sim.booksim.grammar import BooksimError
from hopforge.sim.booksim.random_numbers import draw_permutation, random_numbers
from hopforge.sim.booksim.translate import translate

sys.path.insert(0, str(Path(__file__).parent))
from booksim_cases import BUTTERFLY, MESH, ROUTER, sections


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


def test_tornado_moves_every_digit_of_the_terminal(tmp_path: Path) -> None:
    traffic = sections(tmp_path, BUTTERFLY, "routing_function=ran_min", "traffic=tornado")["traffic"]
    # 8 columns and 8 rows of terminals: 3 further in both
    assert traffic["destinations"][0] == 3 + 8 * 3
    assert traffic["destinations"][63] == 2 + 8 * 2


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
