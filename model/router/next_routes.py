"""What the heads that leave a router bring to the next one (docs/definitions/router.md, Look-ahead)."""

import dataclasses
from collections.abc import Sequence

from hopforge.model.errors import UserError
from hopforge.model.router.params import Behind, LookAhead, RouterParams
from hopforge.model.topology import Topology

__all__ = ["with_next_routes"]


def with_next_routes(params: Sequence[RouterParams], topology: Topology) -> tuple[RouterParams, ...]:
    """Return the routers of a network with the routes of their neighbours and the inputs that need none of their own.

    Parameters
    ----------
    params : sequence of RouterParams
        All routers, with tables of the same destinations.
    topology : Topology
        Their network.

    Raises
    ------
    UserError
        A router with several ports for a destination, or with an escape; flits too narrow for a head with a route.
    """
    for number, router in enumerate(params):
        _check_one_port(number, router)
    try:
        ahead = [dataclasses.replace(router, lookahead=LookAhead()) for router in params]
    except ValueError as error:
        raise UserError(f"router: {str(error).replace('width_bits', 'flit_bits', 1)}") from error
    return tuple(
        dataclasses.replace(
            router,
            lookahead=LookAhead(
                # ports without a link are counted as well, so that all routers are built alike
                sum(1 << p for p, host in enumerate(topology.host_at[number].tolist()) if host < 0),
                *_ahead(ahead, topology, number),
            ),
        )
        for number, router in enumerate(ahead)
    )


def _ahead(
    params: Sequence[RouterParams], topology: Topology, number: int
) -> tuple[tuple[int, ...], tuple[Behind | None, ...]]:
    """Return the fields `route` by destination (mode lookup: none), or the routers that a choice of ports leads to."""
    if params[number].spread_router is None:
        return tuple(_field(params, topology, number, dst) for dst in range(len(params[number].routes))), ()
    if params[number].rc == "lookup":  # where no router is, the engine has the rows of this one (model.router.program)
        peers = zip(topology.peer_router[number].tolist(), topology.host_at[number].tolist(), strict=True)
        return (), tuple(
            None if host >= 0 else Behind(peer if peer >= 0 else number, ()) for peer, host in peers
        )
    behind = (None if peer < 0 else params[peer] for peer in topology.peer_router[number].tolist())
    return (), tuple(
        None if router is None or router.spread_router is None else Behind(router.spread_router, router.routes)
        for router in behind
    )


def _check_one_port(number: int, router: RouterParams) -> None:
    if router.spread_router is not None:
        return
    for host, route in enumerate(router.routes):
        if route.ports & (route.ports - 1) or route.escape is not None:
            what = "several ports" if route.escape is None else "an escape"
            raise UserError(
                f"router.lookahead: router {number} has {what} for host {host}, so the next router is not known before "
                "allocation"
            )


def _field(params: Sequence[RouterParams], topology: Topology, number: int, dst: int) -> int:
    """Field `route` of a head to `dst` that leaves a router; 0 where no router is next."""
    ports = params[number].routes[dst].ports
    peer = int(topology.peer_router[number, ports.bit_length() - 1]) if ports else -1
    return params[peer].route_field(params[peer].routes[dst]) if peer >= 0 else 0
