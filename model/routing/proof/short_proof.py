"""The short proof: a large regular network is proved free of deadlock on a part of it.

Definition: docs/definitions/short-proof.md.

Every dependency between two channels of the whole network is, by the kinds of the channels (`regular_networks`), a
dependency of a part that is explored. So a cycle of channels would be a cycle of kinds. If kinds have none, channels
have none. A cycle of kinds says nothing: then the whole network is explored.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hopforge.model.network.core.kinds import WORMHOLE
from hopforge.model.network.core.state import NetState
from hopforge.model.routing.contract.fields_read import fields_read
from hopforge.model.routing.contract.plan import IrregularError, RoutingPlan
from hopforge.model.routing.proof.deadlock import DeadlockError, check_routing, is_acyclic, relation_to_prove
from hopforge.model.routing.proof.random_ways import random_dependencies
from hopforge.model.routing.proof.reachable import Exploration, packet_lengths
from hopforge.model.routing.proof.reachable_kernel import PROOF_LIMIT_S
from hopforge.model.routing.proof.regular_networks import Build, Part, Representatives, represent
from hopforge.model.topology import Topology

__all__ = ["WHOLE", "prove_routing", "short_proof"]

#: up to so many pairs of a router and a destination the whole network is explored
WHOLE = 1 << 22
#: and up to so many of an input virtual channel and a router as a destination, where routers have many ports
WHOLE_INPUTS = 1 << 26
#: packets whose random ways through the whole network are compared with what was explored
WAYS = 20_000


def prove_routing(
    topology: Topology,
    plan: RoutingPlan,
    state: NetState,
    name: str,
    hosts: NDArray[np.bool_] | None = None,
    *,
    build: Build | None = None,
    resends: bool = False,
    whole: int = WHOLE,
    seconds: float = PROOF_LIMIT_S,
) -> str:
    """Prove that a routing cannot deadlock: in short on a large regular network, else as `check_routing` does.

    Parameters
    ----------
    topology, plan, state, name, hosts, resends, seconds
        As of `check_routing`.
    build : callable, optional
        Builds a smaller network with the same routers and a plan.
    whole : int
        Up to so many pairs of a router and a destination the whole network is explored.

    Returns
    -------
    str
        How it was proved, for people.

    Raises
    ------
    DeadlockError
        As of `check_routing`.
    """
    why = ""
    goals = topology.routers if plan.one_per_router else topology.hosts
    inputs = topology.routers * topology.max_ports * int(state["vcs"])
    if topology.routers * topology.hosts > whole or goals * inputs > WHOLE_INPUTS:
        try:
            how = "by symmetry" if plan.regular is None or plan.regular.order is None else "by an order of channels"
            words = short_proof(topology, plan, state, name, hosts, build=build, resends=resends, seconds=seconds)
            return f"{how}: {words}"
        except IrregularError as problem:
            why = str(problem)
    try:
        found = check_routing(topology, plan, state, name, hosts, resends=resends, seconds=seconds)
    except DeadlockError as error:
        if "not proved" in str(error) and plan.regular is not None and why:
            raise DeadlockError(f"{error}; no short proof: {why}") from error
        raise
    return f"on the whole network: {found:,} dependencies of channels" if found else ""


def short_proof(
    topology: Topology,
    plan: RoutingPlan,
    state: NetState,
    name: str,
    hosts: NDArray[np.bool_] | None = None,
    *,
    build: Build | None = None,
    resends: bool = False,
    seconds: float = PROOF_LIMIT_S,
) -> str:
    """Prove on a part of a regular network that its routing cannot deadlock; returns how, for people.

    Parameters
    ----------
    topology, plan, state, name, hosts, build, resends, seconds
        As of `prove_routing`.

    Raises
    ------
    DeadlockError
        The part can deadlock, and so can the whole.
    IrregularError
        No such proof, and why: this says nothing about whether it can deadlock.
    """
    _refuse_irregular(plan, state, hosts, resends=resends)
    if plan.regular is not None and plan.regular.order is not None:
        return _by_order(topology, plan, state)
    found = represent(topology, plan, state, build)
    committed = int(state["switching_mode"]) == WORMHOLE and not int(state["release_credits"])
    escape = plan.obligation == "escape" and not committed
    lengths = packet_lengths(state)
    explored = _explore_parts(found, state, lengths, keep=escape, seconds=seconds)
    pairs = np.unique(np.concatenate([_kind_pairs(one, kinds, found.count) for one, kinds in explored]))
    if found.widen is not None:
        widened = found.widen(pairs)
        if widened is None:
            raise IrregularError("from one dimension to the other there are too many dependencies")
        pairs = widened
    way = "none waits for itself"
    if not is_acyclic(*np.divmod(pairs, found.count), found.count):
        for part in found.parts if found.inside else ():
            _refuse_deadlock(topology, part, name, lengths, seconds)
        if not escape:
            raise IrregularError("kinds of channels wait for one another in a cycle, which channels need not do")
        _refuse_open_escape(explored, plan, found.count, int(state["vcs"]))
        way = "every packet can take an escape channel, and none of those waits for itself"
    seen = random_dependencies(relation_to_prove(plan), state, found.kinds, found.count, lengths, WAYS)
    if seen is None or not np.isin(seen, pairs).all():
        raise IrregularError("a random way through the whole network is none of those explored")
    kinds = len(np.unique(np.concatenate(np.divmod(pairs, found.count)))) if len(pairs) else 0
    return (
        f"{found.words}; {kinds} kinds of channels, {len(pairs):,} dependencies, {way}; "
        f"{WAYS:,} random ways through the whole network show no other"
    )


def _by_order(topology: Topology, plan: RoutingPlan, state: NetState) -> str:
    """Show that channels have numbers that rise with every link of every way."""
    assert plan.regular is not None and plan.regular.order is not None
    number, count, words = plan.regular.order(topology, plan, int(state["vcs"]))
    seen = random_dependencies(relation_to_prove(plan), state, number, count, packet_lengths(state), WAYS)
    if seen is None or (len(seen) and (seen < 0).any()) or not np.all(np.less(*np.divmod(seen, count))):
        raise IrregularError("a random way through the whole network does not rise")
    return f"{words}; channels rise with every link of every way; {WAYS:,} random ways show no other"


def _refuse_irregular(plan: RoutingPlan, state: NetState, hosts: NDArray[np.bool_] | None, *, resends: bool) -> None:
    """Refuse routing and hosts for which parts do not stand for the whole."""
    promise = plan.regular
    if promise is None:
        raise IrregularError("the algorithm does not promise that its answers are alike everywhere")
    if plan.unguarded is not None or (promise.route, promise.every) != (plan.route, plan.every):
        raise IrregularError("something else decides around the algorithm")
    if relation_to_prove(plan) is None:
        raise IrregularError("nothing is left to prove")
    if promise.table is not plan.table or not np.array_equal(np.ravel(state["table"])[: plan.table.size], plan.table):
        raise IrregularError("the table of the algorithm was changed")
    if resends or (hosts is not None and not hosts.all()):
        raise IrregularError("something fails")
    if int(state["acks"]):
        raise IrregularError("routers acknowledge packets")
    senders = state["host"]
    masks = senders["inject_mask"] | senders["reply_mask"]
    if not masks.all() or (masks != masks[0]).any() or len(masks) != int(state["hosts"]):
        raise IrregularError("hosts do not all use the same virtual channels")
    if len(np.unique(_depths(state))) > 1:
        raise IrregularError("buffers are not all of one size")
    reads = fields_read(relation_to_prove(plan))
    if reads.changing or reads.unseen or "src" in reads.state:
        raise IrregularError("the algorithm looks at more than where a packet is and goes")


def _depths(state: NetState) -> NDArray[np.int64]:
    """Flits that the buffers behind channels between routers hold."""
    output = state["output_vc"]
    between = (output["target"] >= 0) & (output["target"] < int(state["input_vcs"]))
    return np.asarray(output["depth"][between], np.int64)


def _explore_parts(
    found: Representatives, state: NetState, lengths: NDArray[np.int64], *, keep: bool, seconds: float
) -> list[tuple[Exploration, list[NDArray[np.int64]]]]:
    """Walk through all that can happen in the parts."""
    explored = []
    for part in found.parts:
        if part.state is not state:
            _match(part, state)
        relation = relation_to_prove(part.plan)
        exploration = Exploration(
            part.plan, relation, part.state, fields_read(relation), part.destinations, lengths, seconds=seconds
        )
        if exploration.walk(keep=keep) is not None or (keep and not exploration.whole):
            raise IrregularError("a part of the network could not be explored")
        explored.append((exploration, part.kinds))
    return explored


def _match(part: Part, state: NetState) -> None:
    """Give the hosts of a part the virtual channels of the whole; its buffers must be the same."""
    names = ("vcs", "switching_mode", "release_credits")
    if any(int(part.state[name]) != int(state[name]) for name in names):
        raise IrregularError("routers of a part are not those of the whole")
    if not np.isin(_depths(part.state), _depths(state)).all():
        raise IrregularError("buffers of a part are not those of the whole")
    part.state["host"]["inject_mask"] = state["host"]["inject_mask"][0] | state["host"]["reply_mask"][0]
    part.state["host"]["reply_mask"] = 0


def _refuse_deadlock(
    topology: Topology, part: Part, name: str, lengths: NDArray[np.int64], seconds: float
) -> None:
    """Refuse what can deadlock in a part: packets from its hosts to its destinations do the same in the whole."""
    hosts = np.zeros(part.topology.hosts, bool)
    hosts[part.destinations] = True
    try:
        check_routing(part.topology, part.plan, part.state, name, hosts, lengths=lengths, seconds=seconds)
    except DeadlockError as error:
        if part.topology is topology:
            raise
        raise DeadlockError(f"{error} (the same happens in the {topology.name})") from error


def _kind_pairs(exploration: Exploration, places: list[NDArray[np.int64]], count: int) -> NDArray[np.int64]:
    """Dependencies of a part, as kind · count + kind, each once."""
    found: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    for source, target in exploration.edge_blocks():
        found += [np.unique(kinds[source] * count + kinds[target]) for kinds in places]
    return np.unique(np.concatenate(found))


def _refuse_open_escape(
    explored: list[tuple[Exploration, list[NDArray[np.int64]]]], plan: RoutingPlan, count: int, vcs: int
) -> None:
    """Show Duato's condition: packets can always leave by an escape channel, whose dependencies have no cycle.

    A packet that has come by an escape channel may wait for another one at once, or after steps on any channel. So
    the states of packets are nodes, too: a channel leads to the state behind it, a state to those that follow and to
    the escape channels that it asks for.
    """
    if plan.escape_mask is None:
        raise IrregularError("the algorithm does not say which virtual channels are its escape")
    nodes, sources, targets = count, [], []
    for exploration, places in explored:
        for kinds in places:
            for source, target in _escape_edges(exploration, kinds, int(plan.escape_mask), vcs, nodes):
                sources.append(source)
                targets.append(target)
            nodes += exploration.classes
    if not is_acyclic(np.concatenate(sources), np.concatenate(targets), nodes):
        raise IrregularError("kinds of escape channels wait for one another in a cycle, which channels need not do")


def _escape_edges(
    exploration: Exploration, kinds: NDArray[np.int64], mask: int, vcs: int, first: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Edges of the graph of `_refuse_open_escape`, for a part in one place; its states are nodes from `first` on."""
    answer, state, channel, after = exploration.kept_steps()
    escapes = (mask >> (channel % vcs)) & 1 == 1
    stays = exploration.answers_that_stay()
    if not np.isin(stays, answer[escapes]).all():
        raise IrregularError("a packet finds no escape channel")
    yield first + state, first + after
    yield kinds[channel[escapes]], first + after[escapes]
    yield first + state[escapes], kinds[channel[escapes]]
