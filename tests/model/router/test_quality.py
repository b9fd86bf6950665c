"""Which requests of classes of traffic count, worked out by hand (docs/definitions/traffic-classes.md)."""

from typing import Any

import pytest

from hopforge.model.router.params import RouterParams
from hopforge.model.router.quality import Quality, Rounds, SwitchQuality

#: three VCs, a class each; class 1 goes before class 2, this before class 0
STRICT = Quality(kind="strict", of_vc=(0, 1, 2), priorities=(0, 9, 4), weights=(1, 1, 1))


def test_strict_drops_at_outputs_first_and_then_at_inputs() -> None:
    quality = SwitchQuality(STRICT, 3)
    # output 0: VC 1 of input 1 beats VC 2 of input 0, which asks output 0; so its VC 0 keeps its request for output 2
    assert quality.due([{0: 2, 2: 0}, {1: 0}, {}]) == [{0: 2}, {1: 0}, {}]
    # one input: VC 1 beats the others, whatever they ask for
    assert quality.due([{0: 2, 1: 1, 2: 0}, {}, {}]) == [{1: 1}, {}, {}]
    # the same priority at two inputs: the allocator chooses
    assert quality.due([{1: 1}, {1: 1, 0: 2}, {0: 1}]) == [{1: 1}, {1: 1}, {}]
    # a request may stay alone at its input and win nowhere: output 2 loses both, as VC 2 beats VC 0 and VC 1 beats it
    assert quality.due([{1: 0, 2: 2}, {0: 2}, {}]) == [{1: 0}, {}, {}]


def test_rounds_are_counted_to_the_flit() -> None:
    rounds = Rounds((1, 3))
    taken = []
    for number in (0, 0, 1, 1, 1, 1, 0):
        rounds.take(number)
        taken.append(tuple(rounds.left))
    # the second flit of class 0 begins a round: 3 + 3 for class 1, 0 + 1 − 1 for class 0
    assert taken == [(0, 3), (0, 6), (0, 5), (0, 4), (0, 3), (0, 2), (0, 5)]
    for _ in range(40):
        rounds.take(0)
    assert rounds.left == [0, 24]  # eight rounds of 3, no more


def test_weighted_classes_that_always_ask_share_as_their_weights() -> None:
    quality = SwitchQuality(Quality(kind="weighted", of_vc=(0, 1), priorities=(0, 0), weights=(1, 3)), 2)
    sent = {0: 0, 1: 0}
    for cycle in range(400):
        (due,) = quality.due([{0: 1, 1: 1}])
        vc = min(due, key=lambda v: (v - cycle) % 2)  # whichever order the allocator has
        sent[vc] += 1
        quality.sent(vc, 1)
    assert sent == {0: 100, 1: 300}
    # at an output where only class 0 asks it is never held up
    assert quality.due([{0: 0}]) == [{0: 0}]


def test_a_class_without_flits_left_waits_only_for_those_that_ask() -> None:
    quality = SwitchQuality(Quality(kind="weighted", of_vc=(0, 1), priorities=(0, 0), weights=(1, 1)), 1)
    quality.sent(0, 0)
    assert quality.due([{0: 0}, {1: 0}]) == [{}, {1: 0}]
    assert quality.due([{0: 0}, {}]) == [{0: 0}, {}]


@pytest.mark.parametrize(("more", "message"), [
    ({"of_vc": (0,)}, r"quality.of_vc must name a class for each of vcs=2, not 1"),
    ({"of_vc": (0, 2)}, r"quality.of_vc\[1\] must be below the 2 classes, not 2"),
    ({"weights": (1, 0)}, r"quality.weights\[1\] must be in 1 to 255, not 0"),
    ({"weights": (1,)}, r"quality.weights must be as many as priorities=2, not 1"),
    ({"priorities": (0, 16)}, r"quality.priorities\[1\] must be in 0 to 15, not 16"),
    ({"kind": "fair"}, r"quality.kind must be one of strict, weighted, not 'fair'"),
])  # fmt: skip
def test_wrong_classes_are_named(more: dict[str, Any], message: str) -> None:
    fine: dict[str, Any] = {"kind": "strict", "of_vc": (0, 1), "priorities": (0, 1), "weights": (1, 1)}
    with pytest.raises(ValueError, match=f"^{message}$"):
        RouterParams(ports=2, vcs=2, buffer_flits=1, quality=Quality(**(fine | more)))


@pytest.mark.parametrize(("router", "message"), [
    ({"speculation": True}, "speculation cannot be True with quality.kind=strict"),
    ({"va": "free_queue", "sa": "input_ahead"}, "sa cannot be input_ahead with quality.kind=strict"),
])  # fmt: skip
def test_what_chooses_otherwise_is_refused(router: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        RouterParams(ports=2, vcs=3, buffer_flits=1, quality=STRICT, **router)
