"""What no routing can exceed: the largest share of a demand that any ways can carry (maximum concurrent flow)."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.topology import Topology

__all__ = ["ideal_factor", "ideal_variables"]


def _links(topology: Topology) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Routers at both ends of every channel, and how many parallel links it has."""
    router, port = np.nonzero(topology.peer_router >= 0)
    ends = np.stack([router, topology.peer_router[router, port]])
    both, count = np.unique(ends, axis=1, return_counts=True)
    return both[0], both[1], count


def _goals(rate: NDArray[np.float64]) -> NDArray[np.int64]:
    away = rate.copy()
    np.fill_diagonal(away, 0.0)
    return np.flatnonzero(away.sum(axis=0) > 0)


def ideal_variables(topology: Topology, rate: NDArray[np.float64]) -> int:
    """Count the variables of `ideal_factor`: a flow for every destination and channel."""
    return len(_goals(rate)) * len(_links(topology)[0]) + 1


def ideal_factor(topology: Topology, rate: NDArray[np.float64]) -> float:
    """Return by what a demand can be multiplied until the best ways of any length are full; inf: it needs no channel.

    A linear program, solved exactly by HiGHS: flows to one destination are one kind; each is kept at every router but
    the destination, and no channel carries more than one flit per cycle and link.

    Parameters
    ----------
    topology : Topology
        The network.
    rate : ndarray, float64[router, router]
        Flits per cycle; those of the diagonal stay inside.

    Raises
    ------
    UserError
        The solver fails.
    """
    from scipy.optimize import linprog  # noqa: PLC0415 - slow to import
    from scipy.sparse import csr_array  # noqa: PLC0415

    goals = _goals(rate)
    if not len(goals):
        return float("inf")
    source, target, links = _links(topology)
    G, C, R = len(goals), len(source), topology.routers
    kind, channel = np.divmod(np.arange(G * C), C)
    leaves, enters = source[channel] != goals[kind], target[channel] != goals[kind]
    leaves_row, enters_row = kind * R + source[channel], kind * R + target[channel]
    leaving = leaves_row[leaves], np.arange(G * C)[leaves], np.ones(int(leaves.sum()))
    entering = enters_row[enters], np.arange(G * C)[enters], -np.ones(int(enters.sum()))
    wanted = rate[:, goals].T.copy()
    wanted[np.arange(G), goals] = 0.0
    need = np.flatnonzero(wanted), np.full(np.count_nonzero(wanted), G * C), -wanted[wanted != 0]
    row, column, value = (np.concatenate(one) for one in zip(leaving, entering, need, strict=True))
    kept = csr_array((value, (row, column)), shape=(G * R, G * C + 1))
    carried = csr_array((np.ones(G * C), (channel, np.arange(G * C))), shape=(C, G * C + 1))
    cost = np.zeros(G * C + 1)
    cost[-1] = -1.0
    back = ~leaves  # what has arrived does not go on
    bounds = np.stack([np.zeros(G * C + 1), np.append(np.where(back, 0.0, np.inf), np.inf)], axis=1)
    found = linprog(
        cost, A_ub=carried, b_ub=links.astype(float), A_eq=kept, b_eq=np.zeros(G * R), bounds=bounds,
        method="highs-ipm",
    )  # fmt: skip
    if found.status != 0:
        raise UserError(f"no ideal throughput: the solver ended with {' '.join(str(found.message).split())}")
    return -float(found.fun)
