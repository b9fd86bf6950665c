"""Packets of a replay that take several ways to a destination (docs/definitions/several-paths.md, Routing caches)."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.irregular.table_routes import spread_routes
from hopforge.model.topology import Topology
from hopforge.model.topology.configured import lid_addresses

__all__ = ["MAX_FLOWS", "SpreadPackets"]

MAX_FLOWS = 1 << 28
"""Most pairs of hosts whose packets are numbered (4 bytes each)."""
_ENTROPIES = 1 << 31


class SpreadPackets:
    """Who chooses the ways of packets, and what caches are asked with.

    Parameters
    ----------
    config : Config
        Sections `routing`, `traffic.entropy`, `tables` and `address`.
    topology : Topology
        The network.

    Attributes
    ----------
    routes : SpreadRoutes or LidRoutes
        The ways.
    lids : int
        Addresses of a host.
    by_packet : bool
        Whether packets of a flow have different entropies.

    Raises
    ------
    UserError
        A choice that the packets of a replay do not know, or addresses that do not fit.
    """

    def __init__(self, config: Config, topology: Topology) -> None:
        spread, entropy = config.routing.spread, config.traffic.entropy
        if config.lookup.expression is not None:
            raise UserError(f"routing.spread: {spread} is not for keys by an expression, which know one way")
        if config.lookup.lag.members > 1:
            raise UserError(
                f"lookup.lag.members: must be 1 for routing caches with routing.spread, not {config.lookup.lag.members}"
            )
        self.lids = config.lids
        self._hosts, self._values = topology.hosts, 1
        self._drawn = np.random.default_rng((config.seed, 6)) if spread == "packet" else None
        if spread == "entropy":
            assert entropy is not None, "checked by model.config"
            if entropy.per not in ("flow", "packet"):
                raise UserError(
                    f"traffic.entropy.per: must be flow or packet for routing caches, whose packets have no times and "
                    f"no messages, not {entropy.per}"
                )
            self._values = 1 if entropy.per == "flow" else entropy.values
        self.by_packet = spread == "packet" or self._values > 1
        if self._values > 1 and topology.hosts**2 > MAX_FLOWS:
            raise UserError(
                f"traffic.entropy.per: packet numbers the packets of at most {MAX_FLOWS} pairs of hosts in routing "
                f"caches, not {topology.hosts**2}"
            )
        lid_addresses(config, topology)  # whether they fit
        self.routes = spread_routes(config, topology)
        self._sent = np.zeros(topology.hosts**2 if self._values > 1 else 0, np.int32)

    def next_entropies(self, flows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the entropies of the next packets, int64[packet]; `flows`: source · hosts + destination of each.

        With tables only the rest by `lids` counts, and is given.
        """
        if self._drawn is not None:
            return self._drawn.integers(0, self.lids if self.lids > 1 else _ENTROPIES, len(flows))
        order = np.argsort(flows, kind="stable")
        flow, first, count = np.unique(flows[order], return_index=True, return_counts=True)
        number = np.empty(len(flows), np.int64)
        number[order] = np.arange(len(flows)) - np.repeat(first - self._sent[flow], count)
        self._sent[flow] = (self._sent[flow] + count) % self._values
        turn = number % self._values
        return turn % self.lids if self.lids > 1 else turn

    def keys(
        self, keys: NDArray[np.int64], sources: ArrayLike, targets: ArrayLike, entropy: ArrayLike
    ) -> NDArray[np.int64]:
        """Return the keys of packets from those of their destinations: address · lids + the number of the LID."""
        if self.lids == 1:
            return keys
        lid: NDArray[Any] = self.routes.lids(sources, targets, entropy)
        return keys * self.lids + lid

    def check_rows(self, config: Config) -> None:
        """Refuse a TCAM in the switch that has no row for every address of every host.

        Raises
        ------
        UserError
            Naming the rows that are needed.
        """
        tcam, need = config.lookup.tcam, self._hosts * self.lids
        if tcam.kind in ("flops", "sram") and tcam.rows < need:
            raise UserError(
                f"lookup.tcam.rows: must be at least {need} with routing.spread (one for each address), not {tcam.rows}"
            )
