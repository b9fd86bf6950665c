"""Deadlock: proved absent before a run from what packets can wait for, found as a cycle of waiting channels in a run.

Dally and Seitz (1987): no cycle of channel dependencies, no deadlock. Duato (1993): adaptive routing is safe if an
escape part that every packet can always ask for has no cycle of direct and indirect dependencies. A channel here is one
output VC.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.network.core.candidates import candidate_mask, candidate_port
from hopforge.model.network.core.kinds import ACTIVE, HOST_VC_BITS, VA, WORMHOLE
from hopforge.model.network.core.state import NetState
from hopforge.model.routing.contract.channel_order import places_in_order
from hopforge.model.routing.contract.fields_read import FieldsRead, fields_read
from hopforge.model.routing.contract.plan import RoutingPlan
from hopforge.model.routing.proof.acknowledge_channels import acknowledge_edges
from hopforge.model.routing.proof.interpreted_reachable import InterpretedExploration
from hopforge.model.routing.proof.machine_numbers import NotCoveredError
from hopforge.model.routing.proof.reachable import Exploration, Stop, StoppedError, packet_lengths
from hopforge.model.routing.proof.reachable_kernel import (
    BAD_COUNT,
    BAD_PHASE,
    BAD_PORT,
    LONG,
    MANY_DRAWS,
    MANY_STATES,
    MAX_DRAWS,
    MAX_EVALUATIONS,
    NO_OUTPUT,
    PROOF_LIMIT_S,
)
from hopforge.model.topology import Topology


class DeadlockError(UserError):
    """A combination of network, routing and VCs that can deadlock, or a run that did: prints the cycle of channels."""


def check_routing(
    topology: Topology,
    plan: RoutingPlan,
    state: NetState,
    name: str,
    hosts: NDArray[np.bool_] | None = None,
    *,
    lengths: NDArray[np.int64] | None = None,
    resends: bool = False,
    seconds: float = PROOF_LIMIT_S,
) -> int:
    """Prove that the routing cannot deadlock on this network; the state of the simulation is not touched.

    Explores every state of a packet that the relation can tell apart (`reachable`). No deadlock exists if no channel
    waits for itself through others. Where a packet can always take any of its candidates (cut-through, or wormhole
    with ``vc_release: credits``) it is enough that there is no closed set of channels
    (`reachable.Exploration.stuck_channels`).

    Parameters
    ----------
    topology, plan, state
        The network, the routing, and the built state.
    name : str
        Of the algorithm, for messages.
    hosts : ndarray, bool[host], optional
        Destinations; by default all.
    lengths : ndarray, int64, optional
        Lengths of packets; by default those that the sources in `state` create.
    resends : bool
        Whether a host on the way may send a packet again (failures during the run).
    seconds : float
        Most work, in about seconds of processor time (`routing.proof_limit_s`).

    Returns
    -------
    int
        Number of channel dependencies that were found, of acknowledges too.

    Raises
    ------
    DeadlockError
        A cycle (printed), a state without an output, or more states or work than may be.
    """
    relation = relation_to_prove(plan)
    if relation is None:
        return 0
    reads = fields_read(relation)
    if reads.unseen:
        raise DeadlockError(
            f"routing.check: {name} is not proved free of deadlock: it uses {reads.unseen[0]}; "
            "set routing.check: false to run it without a proof"
        )
    wormhole = int(state.record[0]["switching_mode"]) == WORMHOLE
    # a packet that holds a virtual channel in which another one still stands cannot go to its escape any more
    committed = wormhole and not state.record[0]["release_credits"]
    escapes = plan.obligation == "escape"
    lengths = packet_lengths(state) if lengths is None else lengths
    packets = _destinations(topology, plan, hosts), lengths
    stretched = wormhole and (bool((lengths > 1).any()) or bool(state["acks"]))  # one flit stands in one channel
    try:
        exploration, stop = _explore(
            plan, relation, state, reads, packets, resends=resends, seconds=seconds, keep=escapes and not committed
        )
    except NotCoveredError as problem:
        raise DeadlockError(
            f"routing.check: {name} is not proved free of deadlock: it uses {reads.changing[0]}, and not all of its "
            f"answers can be found: {problem}; set routing.check: false to run it without a proof"
        ) from problem
    if stop is not None:
        raise DeadlockError(_stop_text(topology, plan, name, reads, stop, seconds))
    source, target = np.hstack([exploration.edges(), acknowledge_edges(state)])
    cycle = find_cycle(source, target, exploration.channels)
    if cycle and not committed:
        try:
            cycle = _closed_cycle(exploration, source, target, stretched=stretched)
        except StoppedError as stopped:
            raise DeadlockError(_stop_text(topology, plan, name, reads, stopped.stop, seconds)) from stopped
    if cycle:
        vcs = int(state.record[0]["vcs"])
        raise DeadlockError(_cycle_text(topology, vcs, name, cycle, escape_held=escapes and committed,
                                        covers=relation is plan.every))  # fmt: skip
    return len(source)


def relation_to_prove(plan: RoutingPlan) -> Any:
    """Return the relation whose answers the proof goes through; None: nothing is left to prove."""
    if plan.unguarded is not None:
        return plan.unguarded.route
    if not _ours(plan.route):
        return plan.route
    if plan.obligation == "checked":
        return None
    # a user's `every` could give less than `route`; of ours tests show that it does not
    return plan.route if plan.every is None else plan.every


def _destinations(topology: Topology, plan: RoutingPlan, hosts: NDArray[np.bool_] | None) -> list[int]:
    """Return the hosts that packets of the proof go to: one of each router where that tells all."""
    found = list(range(topology.hosts)) if hosts is None else np.flatnonzero(hosts).tolist()
    if plan.one_per_router and plan.unguarded is None:
        _, first = np.unique(topology.host_router[found], return_index=True)
        found = [found[place] for place in first]
    return found


def _explore(
    plan: RoutingPlan,
    relation: Any,
    state: NetState,
    reads: FieldsRead,
    packets: tuple[list[int], NDArray[np.int64]],
    *,
    resends: bool,
    seconds: float,
    keep: bool,
) -> tuple[Exploration, Stop | None]:
    """Walk through all that packets (their destinations, their lengths) can come upon."""
    user = plan.unguarded is not None
    limits: Any = {"resends": resends, "seconds": seconds}
    exploration = Exploration(plan, plan.route if user else relation, state, reads, *packets, **limits)
    if reads.changing:
        if user:
            exploration.walk()  # its guard tells mistakes, as far as an empty network shows them
        written = plan.unguarded or plan
        exploration = InterpretedExploration(written, relation, state, reads, *packets, **limits)
    return exploration, exploration.walk(keep=keep)


def _closed_cycle(
    exploration: Exploration, source: NDArray[np.int64], target: NDArray[np.int64], *, stretched: bool
) -> list[int]:
    """Return a cycle inside of a closed set of channels; empty if no set is closed."""
    closed = exploration.stuck_channels(stretched=stretched) != 0
    if not closed.any():
        return []
    inside = closed[source] & closed[target]
    cycle = find_cycle(source[inside], target[inside], exploration.channels)
    assert cycle, "every channel of a closed set waits for another one of it"
    return cycle


def _cycle_text(
    topology: Topology, vcs: int, name: str, cycle: list[int], *, escape_held: bool, covers: bool
) -> str:  # fmt: skip
    """Tell people which channels wait for one another; `covers`: by answers that cover those of the algorithm."""
    text = " → ".join(channel_name(topology, vcs, m) for m in [*cycle, cycle[0]])
    hint = (
        "; its escape is out of reach for a packet that was given a virtual channel in which another packet "
        "still stands: set router.vc_release: credits, or router.switching: vct (router.model: input_queued has them)"
    )
    more = " that the proof, which covers all draws and loads at once, cannot rule out" if covers else ""
    return (
        f"routing.algorithm {name} can deadlock on the {topology.name} with {vcs} VCs; "
        f"cycle of channels{more}: {text}{hint if escape_held else ''}"
    )


def _ours(relation: Any) -> bool:
    """Whether a relation, and the one that it is made around, is of this package, not a user's."""
    function = getattr(relation, "py_func", None)
    if function is None or not str(function.__module__).startswith("hopforge.model.routing."):
        return False
    inner = [cell.cell_contents for cell in function.__closure__ or ()]
    return all(_ours(one) for one in inner if hasattr(one, "py_func"))


def _stop_text(topology: Topology, plan: RoutingPlan, name: str, reads: FieldsRead, stop: Stop, seconds: float) -> str:
    """Tell people what an exploration came upon."""
    told = "".join(
        f" {word} {value}" for word, value in (("from host", stop.src), ("of length", stop.length)) if value >= 0
    )
    place = f"router {stop.router}, input port {stop.port}, VC {stop.vc}"
    evaluations = int(MAX_EVALUATIONS * max(1.0, seconds / PROOF_LIMIT_S))
    needed = f", of about {stop.value:,} s" if stop.value > seconds else ""
    limits = {
        MANY_DRAWS: f"more than {MAX_DRAWS} draws in one evaluation",
        MANY_STATES: f"more than {evaluations:,} evaluations, or {stop.value:,} states of packets to one host",
        LONG: f"more than about {seconds:g} s of processor time{needed}",
    }
    if stop.code in limits:
        limit = limits[stop.code]
        fields = ", ".join(f"packet.{field}" for field in ("dst", *sorted(reads.state)))
        more = "raise routing.proof_limit_s, or " if stop.code == LONG else ""
        return (
            f"routing.check: {name} on the {topology.name} is not proved free of deadlock: {limit} "
            f"(it reads {fields}); {more}set routing.check: false to run it without a proof"
        )
    what = {
        NO_OUTPUT: f"finds no output in {place}",
        BAD_PORT: f"is sent to port {stop.value} in {place}, which has ports 0 to {topology.max_ports - 1}",
        BAD_PHASE: f"has packet.phase {stop.value} after {place}; phases={plan.phases} allows 0 to {plan.phases - 1}",
        BAD_COUNT: f"gets {stop.value} candidates in {place}; max_candidates is {plan.max_candidates}",
    }[stop.code]
    return f"routing.algorithm {name}: a packet to host {stop.dst}{told} {what}"


def find_cycle(source: NDArray[Any], target: NDArray[Any], nodes: int) -> list[int]:
    """One cycle of a directed graph given by its edges, as a list of nodes; empty if there is none."""
    if is_acyclic(source, target, nodes):
        return []
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    graph = csr_array((np.ones(len(source), np.int8), (source, target)), shape=(nodes, nodes))
    _, component = connected_components(graph, directed=True, connection="strong")
    sizes = np.bincount(component)
    inside = (component[source] == component[target]) & ((sizes[component[source]] > 1) | (source == target))
    if not inside.any():
        return []
    following: dict[int, int] = {}
    for a, b in zip(source[inside].tolist(), target[inside].tolist(), strict=True):
        following.setdefault(a, b)
    place: dict[int, int] = {}
    path: list[int] = []
    node = int(source[inside][0])
    while node not in place:
        place[node] = len(path)
        path.append(node)
        node = following[node]
    return path[place[node] :]


def is_acyclic(source: NDArray[Any], target: NDArray[Any], nodes: int) -> bool:
    """Tell whether a directed graph, given by its edges, has no cycle.

    Examples
    --------
    >>> is_acyclic(np.array([0, 1]), np.array([1, 2]), 3), is_acyclic(np.array([0, 1]), np.array([1, 0]), 3)
    (True, False)
    """
    return places_in_order(source, target, nodes) is not None


def channel_name(topology: Topology, vcs: int, m: int) -> str:
    """Output VC `m` for people: ``3.1→4 VC0`` (router 3, port 1, to router 4); a number behind all of them: a host."""
    channels = topology.routers * topology.max_ports * vcs
    if m >= channels:
        return f"replies of host {m - channels}"
    router, rest = divmod(m, topology.max_ports * vcs)
    port, vc = divmod(rest, vcs)
    peer = int(topology.peer_router[router, port])
    return f"{router}.{port}→{peer if peer >= 0 else 'host'} VC{vc}"


def waiting_cycle(topology: Topology, state: NetState) -> list[int]:
    """Find the cycle of output VCs that wait for each other in a deadlocked state (empty: none is found).

    A packet that has an output VC without credits waits for the packet at the front of the buffer behind it; a packet
    in VA waits for the owners of the output VCs it may use.
    """
    vcs, outs = state["input_vc"], state["output_vc"]
    V, P = int(state["vcs"]), int(state["ports"])
    candidate = state.candidates
    source, target = [], []
    for n in np.flatnonzero(vcs["flits"] > 0):
        held = int(vcs["credit_to"][n])
        if vcs["state"][n] == ACTIVE:
            wanted = [int(vcs["out_vc"][n])]
        elif vcs["state"][n] == VA:
            router = int(n) // (P * V)
            wanted = [
                (router * P + candidate_port.py_func(int(c))) * V + w
                for c in candidate[n, : vcs["candidates"][n]]
                for w in range(V)
                if candidate_mask.py_func(int(c)) >> w & 1
            ]
        else:
            continue
        for m in wanted:
            if held < len(outs):
                source.append(held)
                target.append(m)
            owner = int(outs["owner"][m])
            if vcs["state"][n] == VA and owner >= 0 and int(vcs["credit_to"][owner]) < len(outs) and held < len(outs):
                source.append(held)
                target.append(int(vcs["credit_to"][owner]))
    for a, b in waiting_hosts(topology, state):
        source.append(a)
        target.append(b)
    nodes = len(outs) + topology.hosts
    return find_cycle(np.array(source, np.int64), np.array(target, np.int64), nodes)


def waiting_hosts(topology: Topology, state: NetState) -> Iterator[tuple[int, int]]:
    """Who waits for whom at hosts that keep a limited number of replies; host h is node output_vcs + h.

    The channel to a host waits for the host while a request stands at it, and the host for what the router wants with
    the packets of its own that stand there.
    """
    if "replier" not in state.arrays or not int(state["reply_places"]):
        return
    vcs, outs = state["input_vc"], state["output_vc"]
    V, P = int(state["vcs"]), int(state["ports"])
    candidate = state.candidates
    for h, host in enumerate(state["host"][: topology.hosts]):
        node = len(outs) + h
        for v in range(V):
            if state["outside_flits"][(h << HOST_VC_BITS) + v]:
                yield int(host["output_vc"]) + v, node
            n = int(host["input_vc"]) + v
            if not int(host["reply_mask"]) >> v & 1 or not vcs["flits"][n]:
                continue
            if vcs["state"][n] == ACTIVE:
                yield node, int(vcs["out_vc"][n])
            elif vcs["state"][n] == VA:
                for c in candidate[n, : vcs["candidates"][n]]:
                    for w in range(V):
                        if candidate_mask.py_func(int(c)) >> w & 1:
                            yield node, (n // (P * V) * P + candidate_port.py_func(int(c))) * V + w
