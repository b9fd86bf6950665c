"""Factors a routing relation into the tables of routers, or says why it does not fit into them.

The simulator asks a function at every router (`model.routing`); a router has a table by destination and a rule of VCs
by class, input port and input VC (docs/definitions/router.md, RC).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.router.params import CLASS_BITS
from hopforge.model.router.tables import RouterTables
from hopforge.model.router.walk import Answers, Walker
from hopforge.model.routing import RoutingError, RoutingPlan
from hopforge.model.routing.contract.unknown_inputs import unknown_inputs
from hopforge.model.topology import Topology
from hopforge.model.topology.limits import ONE_WORD_PORTS

#: most (destination, input VC, output port) entries of a network that are factored
MAX_ENTRIES = 1 << 28
#: most classes of destinations of a router
MAX_CLASSES = 1 << CLASS_BITS


def compile_tables(topology: Topology, plan: RoutingPlan, vcs: int, algorithm: str) -> RouterTables:
    """Factor a routing relation into the tables and VC rules of all routers.

    Packets are walked from every host to every other. Of two classes that never differ where packets are, one remains.

    Parameters
    ----------
    topology : Topology
        The network.
    plan : RoutingPlan
        The relation.
    vcs : int
        Virtual channels per port.
    algorithm : str
        Its name, for messages.

    Raises
    ------
    RoutingError
        A relation that no table can give: it draws random numbers, learns, keeps more than a phase in the packet or a
        phase that the input VC does not show, looks at credits, or needs more than 16 classes.
    """
    plans = plan.of_paths or (plan.among or plan,)
    _check(topology, plans, vcs, algorithm)
    R, P = topology.routers, topology.max_ports
    walker = Walker(topology, plans[0], vcs, algorithm)
    answers = _by_address([
        _gather(walker if of_path is plans[0] else Walker(topology, of_path, vcs, algorithm)) for of_path in plans
    ])  # fmt: skip
    for what in unknown_inputs(plan, phase_known=True):  # behind the walk, which tells mistakes with their lines
        raise RoutingError(f"routing.algorithm {algorithm} cannot be a table of a router: it {what}")
    escape_port = _one_escape(walker, answers.escape)
    used = (answers.mask != 0).any(axis=2)
    ports = _masks(used)
    classes, rules, escape_rules = [], [], []
    for router in range(R):
        # Columns: masks of all ports, then the mask of the escape.
        value = np.concatenate([answers.mask[:, router], answers.escape_mask[:, router, :, None]], axis=2)
        counts = np.concatenate([used[:, router], escape_port[:, router, None] >= 0], axis=1)
        known = answers.reached[:, router, :, None] & counts[:, None, :]
        port_of = np.where(escape_port[:, router] < 0, 0, escape_port[:, router])
        of_host, rule, escape_rule = _colour(value, known, port_of, (1 << vcs) - 1)
        if len(rule) > MAX_CLASSES:
            raise RoutingError(
                f"routing.algorithm {algorithm} cannot be a table of a router: router {router} needs {len(rule)} "
                f"classes of destinations, more than {MAX_CLASSES}"
            )
        classes.append(of_host)
        rules.append(rule.reshape(-1, P, vcs, P))
        escape_rules.append(escape_rule.reshape(-1, P, vcs, P))
    return RouterTables(
        algorithm, ports.T.copy(), np.array(classes, np.uint8).reshape(R, -1), escape_port.T.copy(),
        tuple(rules), tuple(escape_rules), walker.inject_mask, len(plans), plan.among is not None,
    )  # fmt: skip


def _masks(used: NDArray[np.bool_]) -> NDArray[Any]:
    """Return masks of the last axis: uint64, or integers of Python where a mask has more than 64 bits."""
    P = used.shape[-1]
    if P <= ONE_WORD_PORTS:
        return (used.astype(np.uint64) << np.arange(P, dtype=np.uint64)).sum(axis=-1, dtype=np.uint64)
    rows = np.packbits(used.reshape(-1, P), axis=1, bitorder="little")
    masks = np.empty(len(rows), object)
    masks[:] = [int.from_bytes(row.tobytes(), "little") for row in rows]
    return masks.reshape(used.shape[:-1])


def _by_address(of_paths: list[Answers]) -> Answers:
    """Join the answers to packets on each path by address: host · paths + path."""
    if len(of_paths) == 1:
        return of_paths[0]
    parts = ("reached", "mask", "escape", "escape_mask")
    stacked = {part: np.stack([getattr(one, part) for one in of_paths], axis=1) for part in parts}
    return Answers(**{part: array.reshape(-1, *array.shape[2:]) for part, array in stacked.items()})


def _check(topology: Topology, plans: tuple[RoutingPlan, ...], vcs: int, algorithm: str) -> None:
    """Refuse a relation that no table can give, and a network that is too large."""
    plan = plans[0]
    declared = [
        reason
        for reason, found in (
            ("draws random numbers", plan.random),
            ("sends packets over a router drawn at the source", plan.uses_via),
            ("learns", plan.memory.size > 1),
            ("chooses a link by the source (routing.links: hash, routing.spread)", plan.by_source),
        )
        if found
    ]
    for reason in declared:
        raise RoutingError(f"routing.algorithm {algorithm} cannot be a table of a router: it {reason}")
    entries = topology.routers * topology.max_ports**2 * vcs * topology.hosts * len(plans)
    if entries > MAX_ENTRIES:
        raise RoutingError(
            f"routing.algorithm {algorithm} on the {topology.name} has {entries} entries of tables, more than "
            f"{MAX_ENTRIES}"
        )


def _gather(walker: Walker) -> Answers:
    """Return the answers to the packets to all hosts: arrays [host, router, input VC of it, …]."""
    topology, vcs = walker.topology, walker.vcs
    R, P, H = topology.routers, topology.max_ports, topology.hosts
    shape = (H, R, P * vcs)
    found = Answers(
        np.zeros(shape, bool), np.zeros((*shape, P), np.uint16), np.full(shape, -1, np.int16),
        np.zeros(shape, np.uint16),
    )  # fmt: skip
    for host in range(H):
        answers = walker.answers(host)
        found.reached[host] = answers.reached.reshape(R, -1)
        found.mask[host] = answers.mask.reshape(R, -1, P)
        found.escape[host] = answers.escape.reshape(R, -1)
        found.escape_mask[host] = answers.escape_mask.reshape(R, -1)
    return found


def _one_escape(walker: Walker, escape: NDArray[np.int16]) -> NDArray[np.int16]:
    """Return the escape port by host and router, -1: none; refuse several."""
    escape_port: NDArray[np.int16] = escape.max(axis=2)
    conflict = (escape >= 0) & (escape != escape_port[:, :, None])
    if conflict.any():
        host, router, n = (int(index) for index in np.argwhere(conflict)[0])
        raise walker.error(
            router * escape.shape[2] + n,
            host,
            f"escapes to port {escape[host, router, n]} and to port {escape_port[host, router]} elsewhere",
        )
    return escape_port


def _colour(
    value: NDArray[np.uint16], known: NDArray[np.bool_], escape: NDArray[np.int16], full: int
) -> tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.uint16]]:
    """Put each destination into the first class with whose rule it agrees.

    Parameters
    ----------
    value, known : ndarray [host, input VC, port + 1]
        Masks of VCs, the last column for the escape, and which of them count.
    escape : ndarray, int16[host]
        Port that the last column belongs to.
    full : int
        Mask of all VCs.

    Returns
    -------
    of_host : ndarray, int[host]
    rule, escape_rule : ndarray, uint16[class, input VC, port]
    """
    H, N, columns = value.shape
    P = columns - 1
    # Destinations that are alike are placed together.
    rows = np.concatenate(
        [np.where(known, value, 0).reshape(H, -1), known.reshape(H, -1), escape[:, None]], axis=1
    ).astype(np.uint16)
    numbers: dict[bytes, int] = {}
    kind = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in rows])
    first = np.unique(kind, return_index=True)[1]
    rules: list[NDArray[np.uint16]] = []  # [input VC, port or P + escape port]
    taken: list[NDArray[np.bool_]] = []
    of_kind = np.zeros(len(first), np.int64)
    for k, host in enumerate(first.tolist()):
        mine, counts = np.zeros((N, 2 * P), np.uint16), np.zeros((N, 2 * P), bool)
        mine[:, :P], counts[:, :P] = value[host, :, :P], known[host, :, :P]
        mine[:, P + escape[host]], counts[:, P + escape[host]] = value[host, :, P], known[host, :, P]
        fits = [not (counts & used & (mine != rule)).any() for rule, used in zip(rules, taken, strict=True)]
        if True not in fits:
            rules.append(np.zeros_like(mine))
            taken.append(np.zeros_like(counts))
            fits.append(True)
        c = of_kind[k] = fits.index(True)
        rules[c] = np.where(counts, mine, rules[c])
        taken[c] |= counts
    both, used = np.array(rules), np.array(taken)
    rule, escape_rule = both[:, :, :P], both[:, :, P:]
    if (rule[used[:, :, :P]] == full).all():
        rule = np.full_like(rule, full)
    return of_kind[kind], rule, escape_rule
