"""Proofs of expressions; each must fail on a fault, and on other logic."""

from dataclasses import replace

import pytest

from hopforge.gen.formal.expression import expression_proof, shipped_proofs
from hopforge.gen.formal.reduction import prove
from hopforge.model.expression.compile import compile_expression
from hopforge.model.expression.names import Digit, Names

NAMES = Names(8, (Digit(1, 4), Digit(4, 3)), (Digit(1, 4), Digit(4, 3)), None, {"t": (5, 0, 3, 1)})
TEXT = "first i < 2 where d[i] != c[i] then {i:1, t[(d[i] - c[i]) % 4]:3} else min(level, 7)"


def test_an_expression() -> None:
    assert prove(expression_proof("own", compile_expression(TEXT, NAMES))).passed


@pytest.mark.parametrize(
    "text", ["dst[0:0]", *(pytest.param(one, marks=pytest.mark.study) for one in ("7", "dst == own", "level", "d[1]"))]
)
def test_one_step_or_none(text: str) -> None:
    assert prove(expression_proof("own", compile_expression(text, NAMES))).passed


def test_other_logic_is_found() -> None:
    right, wrong = (compile_expression(text, NAMES) for text in (TEXT, TEXT.replace("min(level, 7)", "min(level, 6)")))
    found = prove(expression_proof("other", replace(right, program=wrong.program)))
    assert not found.proved
    assert found.possible


@pytest.mark.study
@pytest.mark.parametrize("proof", list(shipped_proofs()), ids=lambda proof: proof.name)
def test_shipped(proof) -> None:  # type: ignore[no-untyped-def]
    assert prove(proof).passed
