"""`hopforge import booksim`: several classes of traffic, and runs beside BookSim's own figures."""

from pathlib import Path
from typing import Any

import pytest

from hopforge.model.config import load_config
from hopforge.sim.booksim.grammar import BooksimError
from hopforge.sim.booksim.supplement import Supplement
from hopforge.sim.booksim.translate import Translation, translate
from hopforge.sim.run.simulation import Simulation

ROUTER = """num_vcs = 4; vc_buf_size = 8; vc_allocator = islip; sw_allocator = islip; routing_delay = 0;
credit_delay = 2; injection_rate_uses_flits = 1; sample_period = 3000; warmup_periods = 2;
"""
MESH = f"topology = mesh; k = 4; n = 2; routing_function = dor; use_noc_latency = 0; {ROUTER}"
TORUS = f"topology = torus; k = 4; n = 2; routing_function = dim_order; {ROUTER}"


def translation(folder: Path, *parameters: str, text: str = MESH, beside: Supplement | None = None) -> Translation:
    (folder / "case.cfg").write_text(text)
    return translate([str(folder / "case.cfg"), *parameters], beside)


def test_the_last_entry_of_a_list_is_for_all_classes_behind_it(tmp_path: Path) -> None:
    found = translation(tmp_path, "classes=3", "traffic={uniform,transpose}", "injection_rate={0.1,0.2}",
                        "packet_size={1,4,2,9}", "measure_stats={1,0}")  # fmt: skip
    first, *others = found.sections["traffic"]["classes"]
    assert first == {"name": "class0", "pattern": "uniform", "packet_flits": 1, "share": pytest.approx(0.2)}
    assert [each["name"] for each in others] == ["class1", "class2"]
    assert [each["pattern"] for each in others] == ["transpose", "transpose"]
    assert [each["packet_flits"] for each in others] == [4, 2]
    assert [each["share"] for each in others] == [pytest.approx(0.4), pytest.approx(0.4)]
    assert found.sections["simulation"]["load"] == 0.5
    assert found.without_effect["measure_stats"] == "every class has columns of its own"


def test_lists_of_one_class_are_read_to_their_first_entry(tmp_path: Path) -> None:
    """As BookSim does: it cuts them to the number of classes."""
    plain = translation(tmp_path, "traffic=tornado", "injection_rate=0.1", "packet_size=4").sections
    listed = translation(tmp_path, "traffic={tornado,uniform}", "injection_rate={0.1,0.3}", "packet_size={4,1}")
    assert listed.sections == plain


def test_packets_count_where_rates_do_not_use_flits(tmp_path: Path) -> None:
    found = translation(tmp_path, "classes=2", "injection_rate={0.1,0.1}", "packet_size={1,3}",
                        "injection_rate_uses_flits=0").sections  # fmt: skip
    assert found["simulation"]["load"] == 0.4
    assert [each["share"] for each in found["traffic"]["classes"]] == [pytest.approx(0.25), pytest.approx(0.75)]


def test_a_class_may_offer_nothing(tmp_path: Path) -> None:
    found = translation(tmp_path, "classes=2", "injection_rate={0.0,0.3}")
    silent, other = found.sections["traffic"]["classes"]
    assert (silent["load"], other["share"]) == (0.0, 1.0)
    found.write(tmp_path / "case.yml")
    assert load_config(tmp_path / "case.yml", keys=False).traffic.classes[0].load == 0.0


@pytest.mark.parametrize("process", ["on_off({0.1,-1,0.5})", "on_off({0.1,0.2,-1})", "on_off({-1,0.2,0.5})"])
def test_a_class_that_offers_nothing_has_no_bursts(tmp_path: Path, process: str) -> None:
    changes = ("classes=2", "injection_rate={0.0,0.3}")
    bursts = translation(tmp_path, *changes, f"injection_process={{{process},bernoulli}}")
    assert bursts.sections == translation(tmp_path, *changes).sections


def test_keys_of_a_pattern_hold_for_all_classes(tmp_path: Path) -> None:
    found = translation(tmp_path, "classes=2", "traffic={hotspot({{3,5}}),uniform}").sections["traffic"]
    assert (found["targets"], found["share"]) == ([3, 5], 1.0)
    with pytest.raises(BooksimError, match="targets of a pattern hold for all classes in hopforge; two of them differ"):
        translation(tmp_path, "classes=2", "traffic={hotspot({{3,5}}),hotspot({{4}})}")
    goals = Supplement(permutation=tuple(reversed(range(16))))
    given = translation(tmp_path, "classes=2", "traffic={randperm,uniform}", beside=goals).sections["traffic"]
    assert given["destinations"] == list(reversed(range(16)))
    assert [each["pattern"] for each in given["classes"]] == ["destinations", "uniform"]


def test_a_given_permutation_is_one_that_a_class_draws(tmp_path: Path) -> None:
    goals = Supplement(permutation=tuple(reversed(range(16))))
    for patterns in ("{randperm(3),randperm(3)}", "{randperm,randperm(7)}"):
        found = translation(tmp_path, "classes=2", f"traffic={patterns}", "perm_seed=7", beside=goals).sections
        assert found["traffic"]["destinations"] == list(reversed(range(16)))
    with pytest.raises(BooksimError, match=r"a permutation \(--permutation\) is for randperm"):
        translation(tmp_path, "classes=2", "traffic={uniform,bitcomp}", beside=goals)
    for patterns in ("{randperm(3),randperm(4)}", "{randperm,randperm(4)}"):
        with pytest.raises(BooksimError, match="classes draw several permutations"):
            translation(tmp_path, "classes=2", f"traffic={patterns}", "perm_seed=7", beside=goals)


def test_a_key_that_one_class_reads_has_an_effect(tmp_path: Path) -> None:
    for patterns in ("{neighbor,uniform}", "{uniform,neighbor}"):
        found = translation(tmp_path, "classes=2", f"traffic={patterns}", "xr=1")
        assert "xr" in found.translated
    assert "xr" in translation(tmp_path, "classes=2", "traffic={uniform,bitcomp}", "xr=1").without_effect
    seeded = translation(tmp_path, "classes=2", "traffic={randperm(3),uniform}", "perm_seed=5")
    assert "perm_seed" in seeded.without_effect
    assert "perm_seed" in translation(tmp_path, "classes=2", "traffic={uniform,randperm}", "perm_seed=5").translated


@pytest.mark.parametrize(("parameters", "message"), [
    (["packet_size={{1,5},{1}}"], r"packet_size = \{\{1,5\},\{1\}\}: packets of a class have one size in hopforge"),
    (["injection_process={bernoulli,on_off({0.1,-1.0,0.5})}"], "classes are bernoulli in hopforge"),
    (["injection_rate={0.6,0.5}"], "offers 1.1 flits per host and cycle"),
    (["injection_rate={0.6,-0.1}"], "must not be negative"),
    (["injection_rate={0.6,x}"], "must be one number for each class"),
    (["hold_switch_for_packet=1"], "with classes hopforge's hosts do not stay with that of a packet"),
    (["use_read_write={0,1}"], "hopforge has requests and replies without other classes of traffic only"),
    (["use_read_write={0,x}"], "must be one whole number for each class"),
    (["routing_function=adaptive_xy_yx"], "routing_delay = 0: with classes of traffic hopforge does not decide before"),
    (["measure_stats=0"], "measure_stats = 0: nothing would be measured"),
    (["traffic={uniform,nonsense}"], "BookSim has no such pattern"),
])  # fmt: skip
def test_what_classes_lack_is_refused_by_name(tmp_path: Path, parameters: list[str], message: str) -> None:
    with pytest.raises(BooksimError, match=message):
        translation(tmp_path, "classes=2", *parameters)


@pytest.mark.parametrize(("text", "parameters", "latency", "accepted"), [
    (MESH, "traffic={uniform,transpose} injection_rate={0.2,0.15} packet_size={1,4}", (16.92, 24.40), (0.2, 0.151)),
    (MESH, "traffic={hotspot({{3,5}}),uniform} injection_rate={0.05,0.3} packet_size={2,1}",
     (21.84, 16.94), (0.05, 0.301)),
    (TORUS, "traffic={bitcomp,uniform} injection_rate={0.2,0.3} packet_size=2", (19.20, 19.42), (0.2, 0.3)),
    # class 1 beyond saturation: the other is served
    (MESH, "traffic={uniform,transpose} injection_rate={0.1,0.7} packet_size=4 sim_type=throughput",
     (92.5, None), (0.1, 0.4747)),
])  # fmt: skip
def test_classes_take_as_long_as_in_booksim(
    tmp_path: Path, text: str, parameters: str, latency: tuple[float, float | None], accepted: tuple[float, float]
) -> None:
    """Of runs of BookSim 2, one each, seed 1."""
    translation(tmp_path, "classes=2", *parameters.split(), text=text).write(tmp_path / "case.yml")
    config = load_config(tmp_path / "case.yml", keys=False)
    row: dict[str, Any] = Simulation(config, config.simulation.load, 1).run().row()
    for number in range(2):
        assert row[f"class{number}_accepted"] == pytest.approx(accepted[number], rel=0.02)
        if (expected := latency[number]) is not None:
            assert row[f"class{number}_latency"] == pytest.approx(expected, rel=0.02)
