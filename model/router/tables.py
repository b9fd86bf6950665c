"""Routing tables of routers: what every router of a network does with every destination."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.router.params import Route, output_port_bits
from hopforge.model.routing import RoutingError


@dataclass(frozen=True, eq=False)
class RouterTables:
    """What every router of a network does with every destination.

    Attributes
    ----------
    algorithm : str
        Its name, for messages.
    ports : ndarray, uint64[router, host]
        Mask of the ports that some packet to the host may take there, apart from an escape; 0: unroutable. Integers of
        Python where routers have more than 64 ports.
    route_class : ndarray, uint8[router, host]
        Class of the destination.
    escape : ndarray, int16[router, host]
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
    ports: NDArray[Any]
    route_class: NDArray[np.uint8]
    escape: NDArray[np.int16]
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
            An escape, or port sets of several classes: a lookup gives none of these.
        """
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
            mask.bit_length() - 1 | k << self.port_bits if mask else None
            for mask, k in zip(ports.tolist(), of_class.tolist(), strict=True)
        ]

    @property
    def port_sets(self) -> bool:
        """Whether a destination has several ports in some router."""
        one = self.ports.dtype.type(1) if self.ports.dtype != object else 1
        return bool((self.ports & (self.ports - one)).any())

    @property
    def port_bits(self) -> int:
        """Bits of the port in what a lookup gives."""
        return output_port_bits(self.vc_rule[0].shape[1])
