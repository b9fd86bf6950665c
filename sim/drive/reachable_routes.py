"""What a packet on an input VC of one router can be routed to: with a rule of VCs most destinations have no way."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.router.params import RouterParams

__all__ = ["reachable_routes"]

_NO_ROUTE = -1


def reachable_routes(params: RouterParams) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List for every input VC what heads on it can ask for.

    Parameters
    ----------
    params : RouterParams
        The router.

    Returns
    -------
    first : ndarray
        int64[input VCs + 1]: place of the first of each input VC in `routes`; those of an input VC without any, and of
        all in a router without a rule of VCs, are no places.
    routes : ndarray
        int64: rows of the table; where heads bring their route along or a lookup engine answers, port | class << 16.
    """
    p = params
    found: list[NDArray[np.int64]] = [np.zeros(0, np.int64)] * (p.ports * p.vcs)
    if p.vc_rule:
        rule, escapes = _of_rule(p, p.vc_rule), _of_rule(p, p.escape_rule)
        answers = [(1 << o, k, _NO_ROUTE) for k in range(p.classes) for o in range(p.ports)]
        names = np.array([o | k << 16 for k in range(p.classes) for o in range(p.ports)])
        rows = [(each.ports, each.route_class, _NO_ROUTE if each.escape is None else each.escape) for each in p.routes]
        for by_table, kinds, values in ((False, answers, names), (True, rows, np.arange(len(rows)))):
            open_vcs = {kind: _open_vcs(p, rule, escapes, *kind) for kind in set(kinds)}
            there = np.array([open_vcs[kind] for kind in kinds], bool).reshape(len(kinds), len(found))
            for n in range(len(found)):
                if (p.rc == "table" and not p.carries(n // p.vcs)) == by_table:
                    found[n] = values[there[:, n]].astype(np.int64)
    return np.cumsum([0, *map(len, found)], dtype=np.int64), np.concatenate(found)


def _of_rule(params: RouterParams, rule: object) -> NDArray[np.bool_]:
    """Return bool[class, input VC, output port]: whether a packet may go there."""
    p = params
    shape = (p.classes, p.ports * p.vcs, p.ports)
    return np.array(rule, np.int64).reshape(shape) != 0 if rule else np.ones(shape, np.bool_)


def _open_vcs(
    params: RouterParams, rule: NDArray[np.bool_], escapes: NDArray[np.bool_], ports: int, route_class: int, escape: int
) -> NDArray[np.bool_]:
    """Return bool[input VC]: whether a packet with this route can leave."""
    if route_class >= params.classes:
        return np.zeros(params.ports * params.vcs, np.bool_)
    outputs = [o for o in range(params.ports) if ports >> o & 1]
    there: NDArray[np.bool_] = rule[route_class][:, outputs].any(axis=1)
    return there if escape == _NO_ROUTE else there | escapes[route_class][:, escape]
