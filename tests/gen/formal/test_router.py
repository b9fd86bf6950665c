"""Proofs about queues, credits and the crossbar; a faulty design has none."""

import pytest

from hopforge.gen.formal.router import (
    OFFER_MUTANTS,
    OUTPUT_MUTANTS,
    QUEUE_MUTANTS,
    REQUEST_MUTANTS,
    TURN_MUTANTS,
    prove_crossbar,
    prove_output,
    prove_queue,
)
from hopforge.model.router.params import LookAhead


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"rc_cycles": 2},
        {"rc_cycles": 2, "lookahead": LookAhead(0b01), "width_bits": 11},
        {"speculation": True},
        {"switching": "vct", "width_bits": 8, "length_bits": 3},
        {"vcs": 1, "buffer_flits": 1},
        {"vcs": 3, "buffer_flits": 4},
        {"va": "free_queue"},
        {"va": "free_queue", "rc_cycles": 2},
        {"va": "free_queue", "sa": "input_ahead"},
        {"va": "free_queue", "sa": "input_ahead", "vcs": 3},
        {"va": "free_queue", "switching": "vct", "width_bits": 8, "length_bits": 3},
    ],
    ids=str,
)
@pytest.mark.thinned(2)
def test_queues_keep_order_and_credits(changes):
    assert prove_queue(**changes)


@pytest.mark.parametrize("mutant", QUEUE_MUTANTS)
def test_faulty_queues_have_no_proof(mutant):
    assert not prove_queue(mutant=mutant)


@pytest.mark.parametrize("mutant", REQUEST_MUTANTS)
def test_faulty_requests_have_no_proof(mutant):
    assert not prove_queue(va="free_queue", mutant=mutant)


@pytest.mark.parametrize("mutant", TURN_MUTANTS)
def test_faulty_turns_have_no_proof(mutant):
    assert not prove_queue(va="free_queue", sa="input_ahead", mutant=mutant)


@pytest.mark.parametrize("release", ["tail", "credits"])
@pytest.mark.parametrize("delay", [0, 1, 2])
def test_outputs_keep_credits(release, delay):
    assert prove_output(vc_release=release, credit_delay_cycles=delay)
    assert prove_output(vc_release=release, credit_delay_cycles=delay, va="free_queue")


def test_offers_for_several_sets_of_vcs():
    rule = ((((1, 1), (3, 3)),) * 2,)
    assert prove_output(va="free_queue", vc_rule=rule)


@pytest.mark.parametrize("mutant", OFFER_MUTANTS)
def test_faulty_offers_have_no_proof(mutant):
    assert not prove_output(va="free_queue", mutant=mutant)


def test_outputs_of_deeper_neighbours():
    assert prove_output(neighbour_flits=(5, 1))


@pytest.mark.parametrize("mutant", OUTPUT_MUTANTS)
def test_faulty_outputs_have_no_proof(mutant):
    assert not prove_output(mutant=mutant)


@pytest.mark.parametrize("ports", [2, 5])
def test_crossbar_carries_words_whole(ports):
    assert prove_crossbar(ports=ports)


def test_dead_crossbar_has_no_proof():
    assert not prove_crossbar(broken=True)
