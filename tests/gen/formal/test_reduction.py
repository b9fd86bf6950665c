"""The reduction hardware equals its specification for all inputs; the proofs fail on faults."""

import dataclasses

import pytest

from hopforge.gen.formal.all_proofs import SUBJECTS, tasks
from hopforge.gen.formal.reduction import crc_proofs, member_proofs, prove, reduction_proofs
from hopforge.model.errors import UserError

#: each mode, and each width of chunks but 4; the others in the study
QUICK = {
    "torus, 24 bits, chunks of 8", "mesh, 24 bits, chunks of 3", "fat_tree, 24 bits, chunks of 2",
    "dragonfly, 24 bits, chunks of 6", "arbitrary, 24 bits",
}  # fmt: skip


@pytest.mark.parametrize("proof", [
    pytest.param(proof, marks=() if proof.name in QUICK else pytest.mark.study)
    for proof in reduction_proofs()
], ids=lambda proof: proof.name)  # fmt: skip
@pytest.mark.thinned(2)
def test_keys_are_the_specification_for_all_inputs(proof):
    assert prove(proof).passed


@pytest.mark.parametrize("proof", list(member_proofs())[1::4], ids=lambda proof: proof.name)
def test_members_are_the_remainder_for_all_addresses(proof):
    assert prove(proof).passed


@pytest.mark.parametrize(
    "proof", [*crc_proofs(), *crc_proofs(("CRC-32C",), 13)], ids=lambda proof: proof.name
)  # fmt: skip
def test_xor_trees_are_the_crc_for_all_addresses(proof):
    assert prove(proof).passed


@pytest.mark.study
@pytest.mark.parametrize("proof", list(reduction_proofs(48, comparators=24)), ids=lambda proof: proof.name)
def test_wide_keys_are_the_specification_for_all_inputs(proof):
    assert prove(proof).passed


def test_a_fault_without_effect_is_no_mutant():
    proof = next(proof for proof in reduction_proofs() if proof.name == "mesh, 24 bits, chunks of 8")
    harmless = dataclasses.replace(proof, mutant=("dut.compare.own_gt_0_3", "1'b0"))  # a tree of other chunk widths
    result = prove(harmless)
    assert result.proved and result.possible and not result.mutant_fails and not result.passed


def test_subjects():
    assert {task.subject for task in tasks()} == set(SUBJECTS)
    assert len(tasks("reduction")) == 21
    assert tasks("crc", wide=True)[0].name == "CRC-32C, 48 bits"
    with pytest.raises(UserError, match=r"^nothing to prove about .cash.; there are reduction, expression, member, "):
        tasks("cash")
