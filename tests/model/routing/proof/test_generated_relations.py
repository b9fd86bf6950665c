"""The proof of freedom from deadlock on generated relations, against an exhaustive search and against runs."""

import sys
from pathlib import Path

import pytest

from hopforge.model.routing.contract import guard
from hopforge.model.routing.contract.guard import guarded_plan
from hopforge.model.routing.proof.deadlock import DeadlockError
from hopforge.sim.run.simulation import Simulation

sys.path.insert(0, str(Path(__file__).parent))
from generated_relations import (
    CHANGING,
    LEARNERS,
    SHAPES,
    Shape,
    check_many,
    compiled_shapes,
    generated,
    judge,
)


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> list[Shape]:
    return compiled_shapes(tmp_path_factory.mktemp("shapes"), SHAPES)


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> list[Shape]:
    return compiled_shapes(tmp_path_factory.mktemp("changing"), CHANGING, LEARNERS)


def test_generated_relations_are_judged_as_by_an_exhaustive_search(shapes: list[Shape]) -> None:
    assert check_many(range(len(SHAPES)), shapes) > 0


@pytest.mark.study
@pytest.mark.timeout(3600)
def test_many_generated_relations(shapes: list[Shape]) -> None:
    assert check_many(range(1000, 1000 + 40 * len(SHAPES)), shapes) > 0


def test_relations_over_queues_and_memory_are_judged_as_by_an_exhaustive_search(changing: list[Shape]) -> None:
    assert check_many(range(2 * len(CHANGING)), changing) > 0


@pytest.mark.study
@pytest.mark.timeout(3600)
def test_many_relations_over_queues_and_memory(changing: list[Shape]) -> None:
    assert check_many(range(1000, 1000 + 40 * len(CHANGING)), changing) > 0


def runs_as_proved(number: int, shape: Shape, cycles: int) -> bool:
    """Run relation `number` as that of a file if it is proved: nothing is noticed, nothing stops, spared or not."""
    lengths = [1, 4] if "length" in shape.source else [3]
    plain, _ = generated(number, shape, lengths=lengths)
    plan = guarded_plan(plain.plan, plain.topology, int(plain.state["vcs"]), "routing.algorithm")
    try:
        run = Simulation(plain.config, 0.7, 1, plain.topology, plan=plan)
    except DeadlockError:
        assert not judge(number, [shape])[0], f"relation {number} is proved without the guard only"
        return False
    body = shape.source[shape.source.index("def route") :]
    spared = not any(word in body for word in ("full(", "worn(", "output_vc(", "memory["))
    whole = Simulation(plain.config, 0.7, 1, plain.topology, plan=plan)
    whole.state["table"][guard._PROVED] = 0
    assert not run.state["table"][guard._PROVED] or spared
    for _ in range(4):
        before = int(run.state["flits_ejected"])
        for one in (run, whole):
            one.advance(cycles // 4)
            one.check_conservation()
        assert int(run.state["flits_ejected"]) > before, f"relation {number} is proved and stops"
        assert run.state["hops_sum"] == whole.state["hops_sum"]
    return True


@pytest.mark.study
@pytest.mark.timeout(3600)
def test_relations_that_are_proved_run_with_the_spared_guard(shapes: list[Shape], changing: list[Shape]) -> None:
    proved = 0
    for all_shapes in (shapes, changing):
        for number in range(8 * len(all_shapes)):
            proved += runs_as_proved(number, all_shapes[number % len(all_shapes)], 4000)
    assert proved > 60
