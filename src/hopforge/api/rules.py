"""Caches before a table of rules: what `hopforge rules` runs."""

import os
from collections.abc import Sequence
from pathlib import Path

from hopforge.api.errors import several
from hopforge.api.progress import Progress, shown
from hopforge.api.result import Result, file_call
from hopforge.sim.hits.rule_caches import RuleCaches
from hopforge.sim.hits.rule_settings import RuleSettings

__all__ = ["rules"]


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
    settings = RuleSettings(
        policies=several("policies", policies), sizes=several("sizes", sizes), zipfs=several("zipfs", zipfs),
        lookups=lookups, updates=updates, flows=flows, seed=seed, invalidation=invalidation, fill=fill, guard=guard,
        overlap_graph=overlap_graph, ways=ways, index_bits=index_bits,
    )  # fmt: skip
    normal = RuleSettings()
    options = {key: value for key, value in vars(settings).items() if value != getattr(normal, key)}
    call = file_call("rules", table, **options, hops=hops)
    with call.named():
        found = RuleCaches(Path(table), settings, hops)
        with shown(progress, found.unit) as advance:
            found.run(advance)
    return Result(call, found, tables=("rule_caches",))
