"""What the routing caches of a simulated network did: counts per engine, and in all."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from hopforge.model.network.core.lookup_state import LookupState
from hopforge.model.topology import Topology
from hopforge.model.topology.port_class import port_classes

if TYPE_CHECKING:
    import pandas as pd

#: causes of misses (docs/guides/hit-rates.md)
CAUSES = ("compulsory", "capacity", "conflict", "unmatched")


def lookup_table(topology: Topology, lookup: LookupState) -> "pd.DataFrame":
    """Return the counts of every engine of which an input port is in use, since they were last set to zero.

    Returns
    -------
    DataFrame
        router, port, port_class (where ports share engines: first port in use, how many, and the classes of all, joined
        by ``+``); lookups = hits + merges + misses; misses by cause; fills, evictions and drops; with a second level
        `second_level_hits`, which are among the misses; hit_rate (NaN without lookups).
    """
    import pandas as pd  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

    counts = lookup.counts
    used = ((topology.peer_router >= 0) | (topology.host_at >= 0)).reshape(-1)
    router, port = np.divmod(np.flatnonzero(used), topology.max_ports)
    classes, group = port_classes(topology), port
    if topology.aggregation is not None:
        classes = port_classes(topology.aggregation.logical)
        group = topology.aggregation.group[router, port]
    of_port = [classes[r][p] for r, p in zip(router.tolist(), group.tolist(), strict=True)]
    engines, first, of_engine, size = np.unique(
        lookup.arrays["engine_of"][used], return_index=True, return_inverse=True, return_counts=True
    )
    names: list[dict[str, None]] = [{} for _ in engines]
    for number, name in zip(of_engine.tolist(), of_port, strict=True):
        names[number][name] = None
    router, port = router[first], port[first]
    sharing = {"ports": size} if int(lookup.record["members"][0]) > 1 else {}
    columns = {name: column[engines] for name, column in counts.items()}
    second = {} if lookup.second is None else {"second_level_hits": lookup.second.counts["hits"][engines]}
    misses = np.sum([columns[cause] for cause in CAUSES], axis=0)
    lookups = columns["hits"] + columns["merges"] + misses
    table = pd.DataFrame({
        "router": router,
        "port": port,
        **sharing,
        "port_class": ["+".join(of_engine) for of_engine in names],
        "lookups": lookups,
        "misses": misses,
        **columns,
        **second,
    })  # fmt: skip
    table["hit_rate"] = table["hits"] / table["lookups"].where(table["lookups"] > 0).astype(float)
    return table


def lookup_totals(lookup: LookupState | None) -> dict[str, Any]:
    """Return the columns `lookups` to `unmatched` of a measurement: all 0 if routes come from tables, the rate NaN."""
    counts = {} if lookup is None else {name: int(column.sum()) for name, column in lookup.counts.items()}
    total = {name: counts.get(name, 0) for name in ("hits", "merges", *CAUSES)}
    lookups, hits = sum(total.values()), total.pop("hits")
    return {"lookups": lookups, "hit_rate": hits / lookups if lookups else math.nan, **total}


def tcam_share(lookup: LookupState | None) -> float | None:
    """Return the share of the lookups that asked the TCAM, None without lookups.

    A miss that joined one under way, or that hit in the second level, did not ask it.
    """
    total = lookup_totals(lookup)
    if lookup is None or not total["lookups"]:
        return None
    second = 0 if lookup.second is None else int(lookup.second.counts["hits"].sum())
    return float((sum(total[cause] for cause in CAUSES) - second) / total["lookups"])
