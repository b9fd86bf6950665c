"""What a configuration amounts to, in a few lines for people."""

from hopforge.model.config import Config
from hopforge.model.irregular.configured import SAMPLED_ABOVE
from hopforge.model.irregular.failure import linked_tables
from hopforge.model.irregular.tables import MAX_ROUTERS
from hopforge.model.topology import Topology, build
from hopforge.model.topology.failed import without_failed
from hopforge.sim.hits.energy import area_rows
from hopforge.sim.start.key_summary import engine_rows, name_words, workload_words


def summarize(config: Config, *, tables: bool = True) -> list[tuple[str, str]]:
    """Return (subject, words) of the network, the engine, its cache and its TCAM.

    The network is built, so that an edge list is read and checked too; so are, unless `tables` is off, the tables and
    virtual layers of a file with a section `tables`.

    Raises
    ------
    UserError
        A network, tables or layers that are wrong.
    """
    network = build(config.topology, config.address)
    working = without_failed(network, config.failed)
    size = f"{network.name}: {network.routers} routers of {network.max_ports} ports, {network.hosts} hosts"
    return [
        ("name", name_words(config)),
        ("network", size),
        *engine_rows(config),
        *area_rows(config, network.max_ports),
        ("workload", workload_words(config)),
        *(_tables(config, working) if tables else []),
    ]


def _tables(config: Config, network: Topology) -> list[tuple[str, str]]:
    """Build and check tables and layers: every pair, every dependency; switches without links have failed."""
    if "tables" not in config.model_fields_set:
        return []
    followed = config.routing.algorithm == "tables" or config.routing.ways == "tables"
    sampled = config.tables.scheme == "loren" and not followed  # by `hopforge route` alone
    most = SAMPLED_ABOVE if sampled else MAX_ROUTERS
    if network.routers > most:
        return [("tables", f"{config.tables.scheme}, not checked: more than {most} routers")]
    tables = linked_tables(config.tables, network, config.seed)
    words = f"{config.tables.scheme}, {tables.entries.max()} entries at most; checked: every pair is delivered"
    return [("tables", words), ("virtual layers", tables.checked_words)]
