"""Routing tables of routers: what every router of a network does with every destination."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopforge.model.router.params import PORT_BITS, Route
from hopforge.model.routing import RoutingError


@dataclass(frozen=True, eq=False)
class RouterTables:
    """What every router of a network does with every destination.

    Attributes
    ----------
    algorithm : str
        Its name, for messages.
    ports : ndarray, uint64[router, host]
        Mask of the ports that some packet to the host may take there, apart from an escape; 0: unroutable.
    route_class : ndarray, uint8[router, host]
        Class of the destination.
    escape : ndarray, int8[router, host]
        Escape port, -1: none.
    vc_rule, escape_rule : tuple of ndarray, uint16[class, port, vc, port]
        For each router the VCs by class, input port, input VC and output port. An entry that no packet reaches is 0, or
        all VCs if no other entry of the rule restricts them.
    inject_mask : ndarray, uint32[host]
        VCs that hosts may use.
    lids : int
        Addresses of a host: where it is more than 1, "host" above is host · lids + path (several-paths.md).
    spread : bool
        A router takes one of the ports, by the hash of source and destination (any-routing.md, Spread).
    """

    algorithm: str
    ports: NDArray[np.uint64]
    route_class: NDArray[np.uint8]
    escape: NDArray[np.int8]
    vc_rule: tuple[NDArray[np.uint16], ...]
    escape_rule: tuple[NDArray[np.uint16], ...]
    inject_mask: NDArray[np.uint32]
    lids: int = 1
    spread: bool = False

    def routes(self, router: int) -> tuple[Route, ...]:
        """Table of a router by host number."""
        return tuple(
            Route(ports, of_class, None if escape < 0 else escape)
            for ports, of_class, escape in zip(
                self.ports[router].tolist(),
                self.route_class[router].tolist(),
                self.escape[router].tolist(),
                strict=True,
            )
        )

    def lookup_outputs(self, router: int) -> list[int | None]:
        """Return what the lookup of a router must give for each host, by host number; None: no entry.

        One port for every host of the network: port and class (``output_kind: port``). Else masks of ports
        (``port_set``).

        Raises
        ------
        RoutingError
            An escape, port sets of several classes, or a choice by the source: a lookup gives none of these.
        """
        if self.spread:
            raise RoutingError(
                f"routing.spread: flow is not for router.route_computation=lookup (algorithm {self.algorithm}): a "
                "lookup knows nothing of the source; use tables"
            )
        ports, of_class = self.ports[router], self.route_class[router]
        escaping = np.flatnonzero(self.escape[router] >= 0)
        if len(escaping):
            raise RoutingError(
                f"routing.algorithm {self.algorithm}: router {router} has an escape for host {escaping[0]}, "
                "which a lookup cannot give; use tables"
            )
        if self.port_sets:
            if self.vc_rule[router].shape[0] > 1:
                raise RoutingError(
                    f"routing.algorithm {self.algorithm}: router {router} has port sets in "
                    f"{self.vc_rule[router].shape[0]} classes, and a lookup gives sets of class 0 only; use tables"
                )
            return [mask or None for mask in ports.tolist()]
        return [
            mask.bit_length() - 1 | k << PORT_BITS if mask else None
            for mask, k in zip(ports.tolist(), of_class.tolist(), strict=True)
        ]

    @property
    def port_sets(self) -> bool:
        """Whether a destination has several ports in some router."""
        return bool((self.ports & (self.ports - np.uint64(1))).any())
