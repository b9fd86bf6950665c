"""The figures and tables of the papers, measured again: paper value, ours, deviation and assumption.

`REPRODUCTIONS` maps a name such as ``lookup.fig4.5`` to what it takes to measure and draw it; `run_reproduction` does
so.

May import: all other rooms of sim but start. Read first: `registry.py`.
"""

from hopforge.sim.reproduce.agents import (
    dqn_beyond,
    dqn_dragonfly,
    dqn_failures,
    dqn_hardware,
    dqn_search,
    dqn_spikes,
    dqn_uniform,
)
from hopforge.sim.reproduce.booksim import comparison
from hopforge.sim.reproduce.dragonflies import (
    qadaptive,
    qadaptive_beyond,
    qadaptive_cost,
    qadaptive_groups,
    qadaptive_loads,
    qadaptive_maxq,
    qadaptive_outage,
)
from hopforge.sim.reproduce.irregular import (
    acro,
    acro_methods,
    loren_degree,
    loren_entries,
    loren_judged,
    loren_load,
    loren_paths,
    loren_quality,
    loren_simulated,
)
from hopforge.sim.reproduce.lookup import cache_cost as lookup_cache_cost
from hopforge.sim.reproduce.lookup import conflicts as lookup_conflicts
from hopforge.sim.reproduce.lookup import conflicts_256 as lookup_conflicts_256
from hopforge.sim.reproduce.lookup import direct_mapping as lookup_direct_mapping
from hopforge.sim.reproduce.lookup import faulty_ring as lookup_faulty_ring
from hopforge.sim.reproduce.lookup import help as lookup_help
from hopforge.sim.reproduce.lookup import model as lookup_model
from hopforge.sim.reproduce.lookup import parallel_tcams as lookup_parallel_tcams
from hopforge.sim.reproduce.lookup import reduction_cost as lookup_reduction_cost
from hopforge.sim.reproduce.lookup import rule_figures, rule_sets, table_cache
from hopforge.sim.reproduce.lookup import wavelengths as lookup_wavelengths
from hopforge.sim.reproduce.programs import (
    apps_engines,
    apps_figures,
    apps_links,
    apps_study,
    job_figures,
    job_interference,
    network_collectives,
    training,
    unit_programs,
)
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, index_by_name
from hopforge.sim.reproduce.routing import methods as routing_methods
from hopforge.sim.reproduce.routing import qos as routing_qos
from hopforge.sim.reproduce.routing import spraying
from hopforge.sim.reproduce.runner import Outcome, run_reproduction, select, wanted_point
from hopforge.sim.reproduce.tori import outflank, outflank_assumptions, outflank_eta, outflank_mesh

REPRODUCTIONS = index_by_name(
    lookup_parallel_tcams.REPRODUCTIONS,
    lookup_cache_cost.REPRODUCTIONS,
    lookup_conflicts.REPRODUCTIONS,
    lookup_conflicts_256.REPRODUCTIONS,
    lookup_model.REPRODUCTIONS,
    lookup_help.REPRODUCTIONS,
    lookup_wavelengths.REPRODUCTIONS,
    lookup_faulty_ring.REPRODUCTIONS,
    lookup_reduction_cost.REPRODUCTIONS,
    lookup_direct_mapping.REPRODUCTIONS,
    comparison.REPRODUCTIONS,
    loren_degree.REPRODUCTIONS,
    loren_entries.REPRODUCTIONS,
    loren_judged.REPRODUCTIONS,
    loren_paths.REPRODUCTIONS,
    loren_quality.REPRODUCTIONS,
    loren_load.REPRODUCTIONS,
    loren_simulated.REPRODUCTIONS,
    acro.REPRODUCTIONS,
    acro_methods.REPRODUCTIONS,
    outflank.REPRODUCTIONS,
    outflank_assumptions.REPRODUCTIONS,
    outflank_eta.REPRODUCTIONS,
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
    qadaptive_maxq.REPRODUCTIONS,
    qadaptive_groups.REPRODUCTIONS,
    qadaptive_beyond.REPRODUCTIONS,
    qadaptive_outage.REPRODUCTIONS,
    routing_qos.REPRODUCTIONS,
    table_cache.REPRODUCTIONS,
    apps_figures.REPRODUCTIONS,
    apps_study.REPRODUCTIONS,
    apps_engines.REPRODUCTIONS,
    apps_links.REPRODUCTIONS,
    routing_methods.REPRODUCTIONS,
    training.REPRODUCTIONS,
    unit_programs.REPRODUCTIONS,
    rule_figures.REPRODUCTIONS,
    rule_sets.REPRODUCTIONS,
    job_figures.REPRODUCTIONS,
    job_interference.REPRODUCTIONS,
    network_collectives.REPRODUCTIONS,
    spraying.REPRODUCTIONS,
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
