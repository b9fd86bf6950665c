"""All proofs about the lookup path and the allocators, by subject, as `hopforge prove` runs them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from hopforge.gen.formal_allocators import (
    ALLOCATOR_MUTANTS,
    ARBITER_MUTANTS,
    SWITCH_MUTANTS,
    prove_allocator,
    prove_arbiter,
    prove_switch_allocator,
)
from hopforge.gen.formal_lookup import MUTANTS, prove_lookup
from hopforge.gen.formal_reduction import AffineProof, Proof, crc_proofs, member_proofs, prove, reduction_proofs
from hopforge.model.errors import UserError

__all__ = ["SUBJECTS", "Task", "tasks"]


@dataclass(frozen=True)
class Task:
    """One line of the table: what it is, and a call that tells whether it is as it should be."""

    subject: str
    name: str
    run: Callable[[], bool]


def _checked(proof: Proof | AffineProof) -> bool:
    return prove(proof).passed


def _fails(attempt: Callable[[], bool]) -> bool:
    return not attempt()


def _reduction(wide: bool) -> Iterator[Task]:
    proofs = reduction_proofs(48, comparators=24) if wide else reduction_proofs()
    for proof in proofs:
        yield Task("reduction", proof.name, partial(_checked, proof))


def _members(wide: bool) -> Iterator[Task]:
    for proof in member_proofs(16 if wide else 12):
        yield Task("member", proof.name, partial(_checked, proof))


def _crc(wide: bool) -> Iterator[Task]:
    for proof in crc_proofs(address_bits=48 if wide else 24):
        yield Task("crc", proof.name, partial(_checked, proof))


def _lookup(wide: bool) -> Iterator[Task]:
    for depth in (1, 2, 3, 4):
        yield Task("lookup", f"a hit is the TCAM's answer, depth {depth}", partial(prove_lookup, depth))
    for mutant in MUTANTS:
        yield Task("lookup", f"no proof if {mutant}", partial(_fails, partial(prove_lookup, 3, mutant)))


def _allocators(wide: bool) -> Iterator[Task]:
    width = 5 if wide else 4
    for arbiter in ("round_robin", "matrix"):
        yield Task("allocators", f"{arbiter} arbiter of {width}", partial(prove_arbiter, arbiter, width))
    yield Task(
        "allocators", f"two_level arbiter of {width + 1 & ~1}", partial(prove_arbiter, "two_level", width + 1 & ~1)
    )
    for kind in ("input_first", "output_first", "wavefront"):
        yield Task("allocators", f"{kind} allocator", partial(prove_allocator, kind))
        yield Task("allocators", f"{kind} switch allocator", partial(prove_switch_allocator, kind))
    for mutant, fault in ARBITER_MUTANTS.items():
        attempt = partial(prove_arbiter, fault[0], mutant=mutant)
        yield Task("allocators", f"no proof if {mutant}", partial(_fails, attempt))
    for mutant, fault in ALLOCATOR_MUTANTS.items():
        attempt = partial(prove_allocator, fault[0], mutant=mutant)
        yield Task("allocators", f"no proof if {mutant}", partial(_fails, attempt))
    for mutant in SWITCH_MUTANTS:
        attempt = partial(prove_switch_allocator, "input_first", mutant=mutant)
        yield Task("allocators", f"no proof if {mutant}", partial(_fails, attempt))


SUBJECTS: dict[str, Callable[[bool], Iterator[Task]]] = {
    "reduction": _reduction,
    "member": _members,
    "crc": _crc,
    "lookup": _lookup,
    "allocators": _allocators,
}
"""Subjects by name; each makes its tasks, wide or not."""


def tasks(subject: str | None = None, *, wide: bool = False) -> list[Task]:
    """Tasks of a subject, or of all.

    Parameters
    ----------
    subject : str, optional
        Key of `SUBJECTS`; by default all.
    wide : bool
        Wider addresses: 48 bits instead of 24 (members: 16 instead of 12).

    Raises
    ------
    UserError
        Unknown subject.
    """
    if subject is not None and subject not in SUBJECTS:
        raise UserError(f"nothing to prove about {subject!r}; there are {', '.join(SUBJECTS)}")
    return [task for name, make in SUBJECTS.items() if subject in (None, name) for task in make(wide)]
