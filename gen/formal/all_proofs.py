"""All proofs about the hardware, by subject, for `hopforge prove`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from hopforge.gen.formal.allocators import (
    ALLOCATOR_MUTANTS,
    ARBITER_MUTANTS,
    SWITCH_MUTANTS,
    prove_allocator,
    prove_arbiter,
    prove_switch_allocator,
)
from hopforge.gen.formal.classes import CLASS_MUTANTS, prove_classes
from hopforge.gen.formal.deep_lookup import DEEP_MUTANTS
from hopforge.gen.formal.engines import prove_lookup
from hopforge.gen.formal.expression import configured_proof, shipped_proofs
from hopforge.gen.formal.lookup import MUTANTS
from hopforge.gen.formal.next_lookup import NEXT_MUTANTS, prove_next_lookup
from hopforge.gen.formal.protection import protection_proofs
from hopforge.gen.formal.q_table import MINIMUM_MUTANTS, prove_minimum, prove_product
from hopforge.gen.formal.reduction import AffineProof, Proof, crc_proofs, member_proofs, prove, reduction_proofs
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
from hopforge.gen.formal.rule_cache import (
    RULE_EVENTS,
    RULE_MUTANTS,
    prove_rule_cache,
    reaches_rule_event,
    refute_rule_cache,
)
from hopforge.gen.formal.rule_sets import (
    SET_EVENTS,
    SET_MUTANTS,
    prove_rule_sets,
    reaches_set_event,
    refute_rule_sets,
)
from hopforge.gen.formal.second_level import SECOND_MUTANTS, prove_second_level
from hopforge.gen.formal.shared_lookup import SHARING_MUTANTS, prove_sharing
from hopforge.gen.formal.streams import STREAM_MUTANTS, prove_stream
from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.lookup.rules.rule_cache_params import RULE_CACHE_POLICIES
from hopforge.model.router.params import LookAhead

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


def _expressions(wide: bool) -> Iterator[Task]:
    for proof in shipped_proofs(24 if wide else 12):
        yield Task("expression", proof.name, partial(_checked, proof))


def _members(wide: bool) -> Iterator[Task]:
    for proof in member_proofs(16 if wide else 12):
        yield Task("member", proof.name, partial(_checked, proof))


def _crc(wide: bool) -> Iterator[Task]:
    for proof in crc_proofs(address_bits=48 if wide else 24):
        yield Task("crc", proof.name, partial(_checked, proof))


def _lookup(wide: bool) -> Iterator[Task]:
    for depth in range(1, 9):
        yield Task("lookup", f"a hit is the TCAM's answer, depth {depth}", partial(prove_lookup, depth))
    for latency, deep in ((4, False), (6, False), (4, True)):
        name = f"a second level of latency {latency} is a TCAM to {'deep' if deep else 'shallow'} engines"
        yield Task("lookup", name, partial(prove_second_level, latency_cycles=latency, deep=deep))
    for mutant in SECOND_MUTANTS:
        attempt = partial(prove_second_level, mutant=mutant)
        yield Task("lookup", f"no proof of a second level if {mutant}", partial(_fails, attempt))
    for depth in range(5, 9):
        name = f"a hit is the TCAM's answer, depth {depth} and a memory stage"
        yield Task("lookup", name, partial(prove_lookup, depth, memory_stage=True))
    yield Task("lookup", "heads leave with the next router's answer to their own request, in turns", prove_next_lookup)
    for mutant in NEXT_MUTANTS:
        attempt = partial(prove_next_lookup, mutant=mutant)
        yield Task("lookup", f"no proof of look-ahead if {mutant}", partial(_fails, attempt))
    for mutant in MUTANTS:
        yield Task("lookup", f"no proof if {mutant}", partial(_fails, partial(prove_lookup, 3, mutant)))
    for depth in (5, 8):
        for mutant in DEEP_MUTANTS:
            name = f"no proof at depth {depth} if {mutant}"
            yield Task("lookup", name, partial(_fails, partial(prove_lookup, depth, mutant)))
    for mutant in DEEP_MUTANTS:
        attempt = partial(prove_lookup, 5, mutant, memory_stage=True)
        yield Task("lookup", f"no proof at depth 5 with a memory stage if {mutant}", partial(_fails, attempt))


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
    for ports in (2, 4):
        yield Task("allocators", f"{ports} ports share a lookup engine fairly, no loss", partial(prove_sharing, ports))
    for mutant in SHARING_MUTANTS:
        yield Task("allocators", f"no proof if {mutant}", partial(_fails, partial(prove_sharing, 4, mutant=mutant)))
    for due in ("strict", "weighted"):
        yield Task("allocators", f"{due} classes of traffic at the switch", partial(prove_classes, due))
    for mutant, fault in CLASS_MUTANTS.items():
        attempt = partial(prove_classes, fault[0], mutant=mutant)
        yield Task("allocators", f"no proof if {mutant}", partial(_fails, attempt))
    for mutant, fault in ARBITER_MUTANTS.items():
        attempt = partial(prove_arbiter, fault[0], mutant=mutant)
        yield Task("allocators", f"no proof if {mutant}", partial(_fails, attempt))
    for mutant, fault in ALLOCATOR_MUTANTS.items():
        attempt = partial(prove_allocator, fault[0], mutant=mutant)
        yield Task("allocators", f"no proof if {mutant}", partial(_fails, attempt))
    for mutant in SWITCH_MUTANTS:
        attempt = partial(prove_switch_allocator, "input_first", mutant=mutant)
        yield Task("allocators", f"no proof if {mutant}", partial(_fails, attempt))


def _flits(wide: bool) -> Iterator[Task]:
    size = {"vcs": 4, "buffer_flits": 4} if wide else {}
    variants: tuple[tuple[str, dict[str, Any]], ...] = (
        ("", {}),
        (", routes computed in 2 cycles", {"rc_cycles": 2}),
        (", routes brought along", {"rc_cycles": 2, "lookahead": LookAhead(0b01), "width_bits": 11}),
        (", speculation", {"speculation": True}),
        (", virtual cut-through", {"switching": "vct", "width_bits": 8, "length_bits": 3}),
        (", one flit", {"vcs": 1, "buffer_flits": 1}),
        (", no VC allocator", {"va": "free_queue"}),
        (", inputs that choose ahead", {"va": "free_queue", "sa": "input_ahead"}),
        (", no VC allocator, routes computed in 2 cycles", {"va": "free_queue", "rc_cycles": 2}),
    )
    for name, changes in variants:
        yield Task("flits", f"order and credits of queues{name}", partial(prove_queue, **{**size, **changes}))
    for release in ("tail", "credits"):
        for delay in (0, 2):
            changes = {**size, "vc_release": release, "credit_delay_cycles": delay}
            name = f"credits of an output, release by {release}, delay {delay}"
            yield Task("flits", name, partial(prove_output, **changes))
            yield Task("flits", f"{name}, no VC allocator", partial(prove_output, **changes, va="free_queue"))
    yield Task("flits", "words through the crossbar", partial(prove_crossbar, ports=8 if wide else 4))
    for mutant in QUEUE_MUTANTS:
        yield Task("flits", f"no proof if {mutant}", partial(_fails, partial(prove_queue, mutant=mutant)))
    for mutant in OUTPUT_MUTANTS:
        yield Task("flits", f"no proof if {mutant}", partial(_fails, partial(prove_output, mutant=mutant)))
    for mutant in REQUEST_MUTANTS:
        attempt = partial(prove_queue, va="free_queue", mutant=mutant)
        yield Task("flits", f"no proof if {mutant}", partial(_fails, attempt))
    for mutant in TURN_MUTANTS:
        attempt = partial(prove_queue, va="free_queue", sa="input_ahead", mutant=mutant)
        yield Task("flits", f"no proof if {mutant}", partial(_fails, attempt))
    for mutant in OFFER_MUTANTS:
        attempt = partial(prove_output, va="free_queue", mutant=mutant)
        yield Task("flits", f"no proof if {mutant}", partial(_fails, attempt))
    yield Task("flits", "no proof if a crossbar output is dead", partial(_fails, partial(prove_crossbar, broken=True)))


def _q_table(wide: bool) -> Iterator[Task]:
    columns, bits = (11, 12) if wide else (5, 4)
    yield Task("q_table", f"least of {columns} estimates", partial(prove_minimum, columns, bits))
    for rate in (41, 205, 358, 1024):
        name = f"product with {rate}/1024, learning stays between the old estimate and its target"
        yield Task("q_table", name, partial(prove_product, 8 if wide else 5, rate))
    for mutant in MINIMUM_MUTANTS:
        yield Task("q_table", f"no proof if {mutant}", partial(_fails, partial(prove_minimum, 5, 4, mutant)))
    yield Task("q_table", "no proof with another rate", partial(_fails, partial(prove_product, 5, 205, broken=True)))


def _protection(wide: bool) -> Iterator[Task]:
    for proof in protection_proofs(wide=wide):
        yield Task("protection", proof.name, partial(_checked, proof))


def _streams(wide: bool) -> Iterator[Task]:
    for side in ("sender", "receiver"):
        yield Task("streams", f"AXI-Stream, rules of the {side}", partial(prove_stream, side))
    for mutant, fault in STREAM_MUTANTS.items():
        yield Task("streams", f"no proof if {mutant}", partial(_fails, partial(prove_stream, fault[0], mutant=mutant)))


def configured_tasks(config: Config) -> list[Task]:
    """Task of the expression of a configuration.

    Raises
    ------
    UserError
        A file without an expression.
    """
    proof = configured_proof(config)
    if proof is None:
        raise UserError("lookup.reduction: has no expression to prove")
    return [Task("expression", proof.name, partial(_checked, proof))]


def _rule_cache(wide: bool) -> Iterator[Task]:
    subject = "rule_cache"
    for policy in RULE_CACHE_POLICIES:
        name = f"a hit is what the TCAM answers at that moment, policy {policy}"
        yield Task(subject, name, partial(prove_rule_cache, policy, wide=wide))
    for name, changes in ((", all lines go", {"invalidation": "flush"}), (", a slow TCAM", {"tcam_cycles": 7})):
        attempt = partial(prove_rule_cache, "mep", wide=wide, **changes)  # type: ignore[arg-type]
        yield Task(subject, f"a hit is what the TCAM answers at that moment, policy mep{name}", attempt)
    for event in RULE_EVENTS:
        yield Task(subject, f"there is a {event}", partial(reaches_rule_event, event))
    for mutant in RULE_MUTANTS:
        yield Task(subject, f"a wrong answer if {mutant}", partial(refute_rule_cache, mutant=mutant))
        yield Task(subject, f"no proof if {mutant}", partial(_fails, partial(prove_rule_cache, mutant=mutant)))
    yield from _rule_sets(wide)


def _rule_sets(wide: bool) -> Iterator[Task]:
    subject, claim = "rule_cache", "sets: a hit is what the TCAM answers at that moment, policy"
    for policy in RULE_CACHE_POLICIES:
        yield Task(subject, f"{claim} {policy}", partial(prove_rule_sets, policy, wide=wide))
    flush = partial(prove_rule_sets, "mep", invalidation="flush", wide=wide)
    yield Task(subject, f"{claim} mep, all lines go", flush)
    for event in SET_EVENTS:
        yield Task(subject, f"sets: there is a {event}", partial(reaches_set_event, event))
    for mutant in SET_MUTANTS:
        yield Task(subject, f"sets: a wrong answer if {mutant}", partial(refute_rule_sets, mutant=mutant))
        yield Task(subject, f"sets: no proof if {mutant}", partial(_fails, partial(prove_rule_sets, mutant=mutant)))


SUBJECTS: dict[str, Callable[[bool], Iterator[Task]]] = {
    "reduction": _reduction,
    "expression": _expressions,
    "member": _members,
    "crc": _crc,
    "lookup": _lookup,
    "rule_cache": _rule_cache,
    "allocators": _allocators,
    "flits": _flits,
    "q_table": _q_table,
    "streams": _streams,
    "protection": _protection,
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
