"""Lookup engines of all kinds, drawn at random: what long co-simulations of the engine run on."""

from typing import Any

import numpy as np

from hopforge.model.config.lookup import POLICIES, Policy
from hopforge.model.lookup.params import LookupParams

__all__ = ["engine_variant"]

_DEEP, _SHALLOW = (5, 6, 7, 8), (1, 2, 3, 4)
_FUNCTIONS = ("mesh", "torus", "fat_tree", "dragonfly")
_EXTRA_TAG_BITS = 4


def engine_variant(seed: int, *, deep: bool, memory_stage: bool = False) -> LookupParams:
    """Draw a small engine: any key functions, policy, TCAM and widths.

    Parameters
    ----------
    seed : int
        The same seed gives the same engine.
    deep : bool
        Of 5 to 8 stages, all equally often in consecutive seeds; otherwise of 1 to 4.
    memory_stage : bool
        With a memory stage; otherwise the same engine.
    """
    rng = np.random.default_rng((seed, 12))

    def choose(*values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    depth = (_DEEP if deep else _SHALLOW)[seed % 4]
    address_bits = choose(12, 13, 16, 16, 20, 24, 33, 48)
    chunk_bits = tuple(sorted({choose(2, 3, 4), choose(3, 4, 6)}))
    skewed = bool(rng.random() < 0.2)
    ways = choose(2, 3, 4) if skewed else choose(1, 2, 3, 4, 4, 8)
    policy: Policy = "random" if skewed else choose(*(name for name in POLICIES if _fits(name, ways)))
    tcam = choose("external", "external", "flops", "sram")
    return LookupParams(
        address_bits=address_bits,
        functions=("arbitrary", *(name for name in _FUNCTIONS if rng.random() < 0.5)),  # type: ignore[arg-type]
        chunk_bits=chunk_bits,
        comparators=int(rng.integers(1, 6)),
        entries=ways * choose(1, 2, 4, 8),
        ways=ways,
        policy=policy,
        skewed=skewed,
        tag_bits=address_bits + 4 + int(rng.integers(_EXTRA_TAG_BITS)),
        output_bits=choose(1, 5, 8, 16),
        epoch_bits=choose(1, 2, 4, 8),
        crc=choose("CRC-24/OPENPGP", "CRC-32", "CRC-32C"),
        random_seed=int(rng.integers(1, 1 << 16)),
        max_members=choose(1, 2, 5),
        mshrs=choose(1, 2, 4, 5, 8),
        request_tag_bits=choose(1, 4, 8),
        pipeline_depth=depth,
        memory_stage=memory_stage,
        tcam_kind=tcam,
        tcam_rows=choose(1, 3, 6),
        tcam_latency_cycles=choose(2, 3) if tcam == "sram" else choose(1, 2, 4),
    )  # fmt: skip


def _fits(policy: str, ways: int) -> bool:
    return policy != "plru" or ways & (ways - 1) == 0
