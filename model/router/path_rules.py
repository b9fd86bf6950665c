"""Which path the packets of hosts take in hardware: the low bits of an address (docs/definitions/several-paths.md)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.topology import Topology
from hopforge.model.topology.spread import flow_place, refuse_other_addresses

__all__ = ["PathRules", "path_rules"]


@dataclass(frozen=True)
class PathRules:
    """What hosts write into the low bits of their destinations.

    Attributes
    ----------
    lmc : int
        How many bits.
    first : tuple of tuple of int
        Path of the first packet, by source and destination host.
    turns : bool
        Every packet of a flow takes the next path; or all the first.
    """

    lmc: int
    first: tuple[tuple[int, ...], ...]
    turns: bool

    def paths(self, source: NDArray[np.int64], destination: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the path of every packet of a list, int64[packet]; those of a flow in the order of sending."""
        sent: dict[tuple[int, int], int] = {}
        found = []
        for s, d in zip(source.tolist(), destination.tolist(), strict=True):
            turn = sent.get((s, d), 0)
            sent[s, d] = turn + 1
            found.append((self.first[s][d] + (turn if self.turns else 0)) % (1 << self.lmc))
        return np.array(found, np.int64)


def path_rules(config: Config, topology: Topology) -> PathRules | None:
    """Return the rules of a configuration; None: one address for each host.

    Raises
    ------
    UserError
        What hosts in hardware cannot do, or what does not go together with several addresses.
    """
    if config.routing.algorithm != "tables" or config.tables.scheme != "k_shortest":
        return None
    traffic, spread, lids = config.traffic, config.routing.spread, config.tables.lids
    for key, asked in (("reply", traffic.reply), ("acknowledge", traffic.acknowledge)):
        if asked is not None:
            raise UserError(f"traffic.{key} must be null in hardware with tables.scheme=k_shortest")
    if traffic.classes:
        raise UserError("traffic.classes must be empty in hardware with tables.scheme=k_shortest")
    if (ends := config.router.host_ports) != "flits":
        raise UserError(f"router.host_ports must be flits in hardware with tables.scheme=k_shortest, not {ends}")
    if config.router.route_computation == "lookup":
        refuse_other_addresses(topology, "tables.scheme=k_shortest in hardware")
    if spread == "packet":
        raise UserError("routing.spread must be flow or entropy in hardware with tables.scheme=k_shortest, not packet")
    turns = False
    if spread == "entropy":
        assert traffic.entropy is not None, "checked by model.config"
        if traffic.entropy.per not in ("flow", "packet"):
            raise UserError(f"traffic.entropy.per must be flow or packet in hardware, not {traffic.entropy.per}")
        turns = traffic.entropy.per == "packet"
        if turns and traffic.entropy.values % lids:
            raise UserError(
                f"traffic.entropy.values must be a multiple of the {lids} paths in hardware, not "
                f"{traffic.entropy.values}"
            )
    hosts = range(topology.hosts)
    first = tuple(tuple(int(flow_place(s, d, topology.routers, lids)) for d in hosts) for s in hosts)
    return PathRules(config.tables.lmc, first, turns)
