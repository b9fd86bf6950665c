"""What `hopforge route` makes of a file, before anything is measured or written."""

from collections.abc import Sequence
from dataclasses import dataclass

from hopforge.model.config import Config
from hopforge.model.irregular.failure import FailureReport, plain_tables, tables_after_failure, with_options
from hopforge.model.irregular.tables import RoutingTables
from hopforge.model.topology import Topology, build

#: switches of which `hopforge route` looks at some paths of LOREN only
SAMPLED_ABOVE = 8192


@dataclass(frozen=True, eq=False)
class Routed:
    """A network with its tables.

    Attributes
    ----------
    config : Config
        With what the options let fail.
    network : Topology
        The whole network.
    tables : RoutingTables, optional
        None: a network so large that LOREN's tables are sampled.
    failure : FailureReport, optional
        What the failure changed.
    """

    config: Config
    network: Topology
    tables: RoutingTables | None
    failure: FailureReport | None = None


def prepare_route(config: Config, fail: Sequence[str] = (), fail_switch: Sequence[str] = ()) -> Routed:
    """Build network, tables and virtual layers.

    Parameters
    ----------
    config : Config
        Sections `topology`, `failed` and `tables` are used.
    fail, fail_switch : sequence of str
        As the options of the command.

    Raises
    ------
    UserError
        A network, tables or layers that are wrong, or parts that do not exist.
    """
    network = build(config.topology, config.address)
    failed = with_options(network, config.failed, list(fail), list(fail_switch))
    config = config.model_copy(update={"failed": failed})
    if network.routers > SAMPLED_ABOVE and config.tables.scheme == "loren":
        return Routed(config, network, None)
    if failed.none:
        return Routed(config, network, plain_tables(config.tables, network, config.seed))
    return Routed(config, network, *tables_after_failure(config.tables, network, failed, config.seed))
