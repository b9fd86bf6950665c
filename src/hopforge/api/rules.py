"""Caches before a table of rules: what `hopforge rules` runs."""

import os
from collections.abc import Sequence
from pathlib import Path

from hopforge.api.errors import a_number, number_within, numbers, several, yes_or_no
from hopforge.api.progress import Progress, shown
from hopforge.api.result import Result, file_call
from hopforge.model.seeds import MOST_SEED
from hopforge.sim.hits.rule_caches import RuleCaches
from hopforge.sim.hits.rule_settings import RuleSettings

__all__ = ["rules"]

_MOST_HOPS = 1 << 20


def rules(
    table: str | os.PathLike[str], *, policies: Sequence[str] = (), sizes: Sequence[int] = (64, 256, 1024),
    zipfs: Sequence[float] = (1.0,), lookups: int = 100_000, updates: int = 1000, flows: int = 65_536,
    invalidation: str = "overlap", fill: int = 1, guard: bool = True, overlap_graph: bool = False,
    ways: int | None = None, index_bits: int | None = None, hops: int | None = None, seed: int = 1,
    progress: Progress = True,
) -> Result:
    """Measure caches before a table of rules, under lookups and updates, as ``hopforge rules``.

    Parameters
    ----------
    table : str or Path
        Routing table (prefix, next hop), or rules as CSV (``.csv``).
    policies : sequence of str
        What a miss caches; none: those that are correct, without those that take long.
    sizes : sequence of int
        Entries of the caches.
    zipfs : sequence of float
        Exponents of the flows.
    lookups, updates, flows : int
        How many; flows are addresses that are looked up, updates rules that come, go or change meanwhile.
    invalidation : str
        What an update removes: overlap, changed, flush or none.
    fill : int
        Lookups from a miss to its entry.
    guard : bool
        Fills in flight are dropped by an update that makes them wrong.
    overlap_graph : bool
        Policy cover keeps all rules above that overlap.
    ways : int, optional
        Entries of a set; by default the cache is fully associative.
    index_bits : int, optional
        With `ways`: highest bits of an address that choose the set.
    hops : int, optional
        Next hops are 0 to hops - 1.
    seed : int
        Of lookups and updates.
    progress : bool or callable
        A bar on a terminal and in Jupyter, or a function that is called with (done, in all).

    Returns
    -------
    Result
        `table` has a row for each exponent, policy and size, ``tables["lengths"]`` one for each length of a prefix.

    Raises
    ------
    UserError
        A table or a value that is no good.
    """
    whole = {"lookups": lookups, "updates": updates, "flows": flows, "fill": fill, "seed": seed}
    for name, value in whole.items():
        if value is None:
            raise TypeError(f"{name} must be a whole number, not None")
        whole[name] = a_number(name, value, int)
    number_within("seed", seed, 0, MOST_SEED)
    hops = number_within("hops", hops, 1, _MOST_HOPS)
    settings = RuleSettings(
        policies=several("policies", policies), sizes=numbers("sizes", sizes, int),
        zipfs=numbers("zipfs", zipfs, float), invalidation=invalidation, guard=yes_or_no("guard", guard),
        overlap_graph=yes_or_no("overlap_graph", overlap_graph), ways=a_number("ways", ways, int),
        index_bits=a_number("index_bits", index_bits, int), **whole,
    )  # fmt: skip
    normal = RuleSettings()
    options = {key: value for key, value in vars(settings).items() if value != getattr(normal, key)}
    call = file_call("rules", table, **options, hops=hops)
    with call.named():
        found = RuleCaches(Path(table), settings, hops)
        with shown(progress, found.unit) as advance:
            found.run(advance)
    return Result(call, found, tables=("rule_caches",))
