"""The figures and tables of the papers, measured again: paper value, ours, deviation and assumption.

`REPRODUCTIONS` maps a name such as ``lookup.fig4.5`` to what it takes to measure and draw it; `run_reproduction` does
so.

May import: all other rooms of sim but start. Read first: `registry.py`.
"""

from hopforge.sim.reproduce import (
    acro,
    apps_engines,
    apps_figures,
    apps_links,
    apps_study,
    booksim,
    dqn_beyond,
    dqn_dragonfly,
    dqn_failures,
    dqn_hardware,
    dqn_search,
    dqn_spikes,
    dqn_uniform,
    lookup_cache_cost,
    lookup_conflicts,
    lookup_direct_mapping,
    lookup_model,
    lookup_parallel_tcams,
    lookup_reduction_cost,
    loren_entries,
    loren_load,
    loren_paths,
    loren_quality,
    loren_simulated,
    outflank,
    outflank_assumptions,
    outflank_mesh,
    qadaptive,
    qadaptive_beyond,
    qadaptive_cost,
    qadaptive_loads,
    qadaptive_outage,
    table_cache,
)
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, index_by_name
from hopforge.sim.reproduce.runner import Outcome, run_reproduction, select, wanted_point

REPRODUCTIONS = index_by_name(
    lookup_parallel_tcams.REPRODUCTIONS,
    lookup_cache_cost.REPRODUCTIONS,
    lookup_conflicts.REPRODUCTIONS,
    lookup_model.REPRODUCTIONS,
    lookup_reduction_cost.REPRODUCTIONS,
    lookup_direct_mapping.REPRODUCTIONS,
    booksim.REPRODUCTIONS,
    loren_entries.REPRODUCTIONS,
    loren_paths.REPRODUCTIONS,
    loren_quality.REPRODUCTIONS,
    loren_load.REPRODUCTIONS,
    loren_simulated.REPRODUCTIONS,
    acro.REPRODUCTIONS,
    outflank.REPRODUCTIONS,
    outflank_assumptions.REPRODUCTIONS,
    outflank_mesh.REPRODUCTIONS,
    dqn_uniform.REPRODUCTIONS,
    dqn_spikes.REPRODUCTIONS,
    dqn_search.REPRODUCTIONS,
    dqn_beyond.REPRODUCTIONS,
    dqn_dragonfly.REPRODUCTIONS,
    dqn_failures.REPRODUCTIONS,
    dqn_hardware.REPRODUCTIONS,
    qadaptive.REPRODUCTIONS,
    qadaptive_cost.REPRODUCTIONS,
    qadaptive_loads.REPRODUCTIONS,
    qadaptive_beyond.REPRODUCTIONS,
    qadaptive_outage.REPRODUCTIONS,
    table_cache.REPRODUCTIONS,
    apps_figures.REPRODUCTIONS,
    apps_study.REPRODUCTIONS,
    apps_engines.REPRODUCTIONS,
    apps_links.REPRODUCTIONS,
)

__all__ = [
    "REPRODUCTIONS",
    "Comparison",
    "Options",
    "Outcome",
    "Point",
    "Reproduction",
    "Row",
    "run_reproduction",
    "select",
    "wanted_point",
]
