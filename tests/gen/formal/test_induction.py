"""Induction in parts: what it proves, what it does not, and that nothing is left out."""

from collections.abc import Callable

import pytest
from amaranth.hdl import Module, Signal
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.gen.formal import all_proofs as subjects
from hopforge.gen.formal.induction import Proof, prove, prove_in_parts, refute
from hopforge.gen.tools.yosys import YosysError


class _Ring(Proof):
    """One bit that moves round four places; claims are made of it."""

    def __init__(self, claims: Callable[[Signal], list], start: int = 1):
        super().__init__()
        self.said = claims
        self.place = Signal(4, init=start)
        self.enable = Signal()
        self.inputs.append(self.enable)

    def elaborate(self, platform: object) -> Module:
        m = self.module()
        with m.If(self.enable):
            m.d.sync += self.place.eq(self.place.rotate_left(1))
        self.claim(m, self.said(self.place))
        return m


def _one_hot(place: Signal) -> list:
    return [place.any(), *(~(place[i] & place[j]) for i in range(4) for j in range(i))]


@pytest.mark.parametrize("part", [1, 3, 100])
def test_claims_that_need_one_another_are_proved_in_any_parts(part: int) -> None:
    proof = _Ring(_one_hot)
    assert prove_in_parts(proof, proof.inputs, part=part)


@pytest.mark.parametrize("part", [1, 3, 100])
def test_one_wrong_claim_is_enough(part: int) -> None:
    proof = _Ring(lambda place: [*_one_hot(place), ~place[3]])
    assert not prove_in_parts(proof, proof.inputs, part=part)


def test_what_does_not_hold_after_reset_is_not_proved() -> None:
    proof = _Ring(_one_hot, start=3)
    assert not prove_in_parts(proof, proof.inputs)


def test_the_step_begins_in_any_state() -> None:
    # True in every state that can be reached, but nothing claimed says so.
    proof = _Ring(lambda place: [place != 3])
    assert not prove_in_parts(proof, proof.inputs)


def test_a_fault_that_is_planted_nowhere_is_an_error() -> None:
    proof = _Ring(_one_hot)
    with pytest.raises(YosysError):
        prove_in_parts(proof, proof.inputs, mutant=("nowhere", "1'b0"))


class _Parts(Proof):
    """A word whose bits are driven one by one, and a register behind it; claims about one of the two."""

    def __init__(self, about: str):
        super().__init__()
        self.about = about
        self.given = Signal(2)
        self.word = Signal(2)
        self.kept = Signal(2, init=2)
        self.inputs.append(self.given)

    def elaborate(self, platform: object) -> Module:
        m = self.module()
        for bit in range(2):
            m.d.comb += self.word[bit].eq(self.given[bit] & ~self.given[1 - bit])
        m.d.sync += self.kept.eq(self.word)
        started = Signal()
        m.d.sync += started.eq(1)
        self.claim(m, [~started | (getattr(self, self.about) == 3)])
        return m


@pytest.mark.parametrize("about", ["word", "kept"])
@pytest.mark.parametrize(("value", "holds"), [("2'b11", True), ("2'b01", False)])
def test_a_planted_fault_is_what_it_says(about: str, value: str, holds: bool) -> None:
    """A wire that is tied is so for all that read it; one that has lost its driver only would be anything."""
    for solve in (prove, prove_in_parts):
        proof = _Parts(about)
        assert solve(proof, proof.inputs, mutant=(about, value)) == holds
    if not holds:
        proof = _Parts(about)
        assert refute(proof, proof.inputs, 3, mutant=(about, value))


def test_no_claims_prove_nothing() -> None:
    proof = _Ring(lambda place: [])
    with pytest.raises(AssertionError, match="nothing is claimed"):
        prove_in_parts(proof, proof.inputs)


def test_a_proof_that_does_not_end_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    def late() -> bool:
        raise YosysError("yosys: proof took longer than 300 s of processor time")

    made = [
        subjects.Task("lookup", "a", lambda: True),
        subjects.Task("lookup", "b", late),
        subjects.Task("lookup", "c", lambda: False),
    ]
    monkeypatch.setattr(subjects, "tasks", lambda *_, **__: made)
    ran = CliRunner().invoke(app, ["prove", "lookup"])
    assert ran.exit_code == 1
    assert [line.split(" ")[0] for line in ran.stdout.splitlines()] == ["proved", "not", "FAILED"]
    assert "not proved" in ran.stdout and "took longer than 300 s" in ran.stdout
    assert "of 3 proofs 1 failed and 1 without a verdict" in ran.stderr
