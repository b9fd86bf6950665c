"""Proofs about small lookup engines of every depth: `hopforge.gen.formal.lookup` says what is proved."""

from hopforge.gen.formal.deep_lookup import DEEP_MUTANTS, DeepLookupProof
from hopforge.gen.formal.induction import prove_in_parts, refute
from hopforge.gen.formal.lookup import MUTANTS, LookupProof
from hopforge.hw.lookup.engine import is_deep
from hopforge.model.lookup.params import LookupParams

__all__ = ["proof_parameters", "prove_lookup", "refute_lookup"]


def proof_parameters(pipeline_depth: int = 3, memory_stage: bool = False) -> LookupParams:
    """Parameters of the small engine of the proof."""
    return LookupParams(
        address_bits=12,
        functions=("arbitrary",),
        chunk_bits=(4,),
        comparators=1,
        entries=4,
        ways=2,
        tag_bits=16,
        output_bits=1,
        epoch_bits=2,
        mshrs=2,
        request_tag_bits=2,
        pipeline_depth=pipeline_depth,
        memory_stage=memory_stage,
        tcam_kind="external",
    )


def _proof(
    pipeline_depth: int, memory_stage: bool, **options: bool
) -> tuple[LookupProof, dict[str, tuple[str, str]]]:  # fmt: skip
    """Return the proof and the faults for engines of a depth."""
    params = proof_parameters(pipeline_depth, memory_stage)
    if not is_deep(params):
        return LookupProof(params, **options), MUTANTS
    return DeepLookupProof(params, **options), DEEP_MUTANTS


def prove_lookup(
    pipeline_depth: int = 3, mutant: str | None = None, *, memory_stage: bool = False, timeout_s: float = 300
) -> bool:
    """Prove the small engine by induction over one cycle, some claims at a time; with a mutant, try to.

    Parameters
    ----------
    pipeline_depth : int
        1 to 8.
    mutant : str, optional
        Key of `MUTANTS` (`DEEP_MUTANTS` from depth 5 on).
    memory_stage : bool
        With a memory stage (depths 5 to 8).
    timeout_s : float
        Limit in seconds.

    Returns
    -------
    bool
        Whether the proof succeeded.

    Raises
    ------
    YosysError
        If yosys fails otherwise, or takes too long.
    """
    proof, mutants = _proof(pipeline_depth, memory_stage)
    return prove_in_parts(proof, proof.inputs, mutant=mutants[mutant] if mutant else None, timeout_s=timeout_s)


def refute_lookup(
    steps: int, pipeline_depth: int = 2, mutant: str | None = None, *, no_hit: bool = False, timeout_s: float = 300
) -> bool:
    """Look for a run of at most `steps` cycles from reset that violates a property at the ports.

    Parameters
    ----------
    steps : int
        Cycles.
    pipeline_depth : int
        1 to 8.
    mutant : str, optional
        Key of `MUTANTS` (`DEEP_MUTANTS` from depth 5 on).
    no_hit : bool
        Add the (false) claim that nothing hits.
    timeout_s : float
        Limit in seconds.

    Returns
    -------
    bool
        Whether there is one.

    Raises
    ------
    YosysError
        If yosys fails, or takes too long.
    """
    proof, mutants = _proof(pipeline_depth, False, invariants=False, no_hit=no_hit)
    return refute(proof, proof.inputs, steps, mutant=mutants[mutant] if mutant else None, timeout_s=timeout_s)
