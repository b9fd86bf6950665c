"""DQN routing on dragonflies: distances, what agents see and may do, acknowledges, what does not fit."""

from itertools import product

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.dqn.agents import STORED
from hopforge.model.network.parts.trail_tables import trail_counts
from hopforge.model.routing import RoutingError
from hopforge.model.routing.agents.dragonfly import hierarchical_ways
from hopforge.model.topology import Topology
from hopforge.model.topology.configured import network_topology
from hopforge.sim.run.simulation import Simulation

SMALL = "p: 2, a: 3, h: 1"
TEXT = """name: test
topology: {{kind: dragonfly, {topology}}}
router: {{{router}}}
routing: {{algorithm: dqn, {routing}dqn: {{first: 4, second: 4, head: 4, {dqn}}}}}
traffic: {{packet_flits: 4, include_self: false, acknowledge: {{}}}}
"""


def text(topology: str = SMALL, router: str = "vcs: 3, switching: vct, buffer_flits: 8", routing: str = "",
         dqn: str = "ways: minimal, escape: hop") -> str:  # fmt: skip
    return TEXT.format(topology=topology, router=router, routing=routing, dqn=dqn)


def least_hops(topology: Topology, here: int, there: int) -> int:
    """Return the least hops of the walks local, global, local, each of them once or not at all."""
    a, best = int(topology.params["a"]), 9
    peers = [[q for q in row.tolist() if q >= 0] for row in topology.peer_router]
    local = [[r, *(q for q in peers[r] if q // a == r // a)] for r in range(topology.routers)]
    far = [[r, *(q for q in peers[r] if q // a != r // a)] for r in range(topology.routers)]
    for u in local[here]:
        for v in far[u]:
            for w in local[v]:
                if w == there:
                    best = min(best, (u != here) + (v != u) + (w != v))
    return best


@pytest.mark.parametrize("kind", [SMALL, "p: 1, a: 2, h: 2, g: 3"])
def test_ways_against_all_walks(kind: str) -> None:
    topology = network_topology(parse_config(text(kind)))
    ways, p = hierarchical_ways(topology), int(topology.params["p"])
    for here, there in product(range(topology.routers), repeat=2):
        assert ways.hops[here, there] == least_hops(topology, here, there)
        for action, peer in enumerate(topology.peer_router[here, p:].tolist()):
            nearer = peer >= 0 and ways.hops[peer, there] < ways.hops[here, there]
            assert int(ways.nearer[here, there]) >> action & 1 == nearer
    assert ways.hops.max() == (3 if kind == SMALL else 2)


def test_every_router_of_a_minimal_way_is_acknowledged() -> None:
    config, rng, count = parse_config(text()), np.random.default_rng(2), 300
    hosts = network_topology(config).hosts
    source = rng.integers(0, hosts, count)
    target = (source + rng.integers(1, hosts, count)) % hosts
    run = Simulation(config, 0.1, 1, script=(source, np.sort(rng.integers(0, 900, count)), target, np.full(count, 4)))
    run.advance(6000)
    run.check_conservation()
    assert run.state.flits_in_flight == 0
    hops = hierarchical_ways(run.topology).hops[source // 2, target // 2]
    counts = trail_counts(run.state)
    assert counts["entries"] == counts["acks_sent"] == hops.sum()
    assert counts["acks_home"] == (hops > 0).sum()
    assert counts["decisions"] > 0.5 * hops.sum()
    assert counts["hop_limit"] == 0


def test_what_agents_see_and_do() -> None:
    """Places of the router and of the packet's destination; every port with a link is tried, and no other."""
    run = Simulation(parse_config(text("p: 1, a: 3, h: 1, g: 3", dqn="agents: router")), 0.3, 1)
    run.advance(3000)
    state, topology, seen = run.state, run.topology, 0
    packets = {(int(one["src"]) << 40) | int(one["number"]): int(one["dst"]) for one in state["packet"]}
    for router, fill in enumerate(state["trail_fill"].tolist()):
        for name, _, way, episode, _ in state["trail_entries"][router, :fill].tolist():
            goal = int(topology.host_router[packets.get(name, 0)]) if name in packets else -1
            if episode < 0 or goal < 0:
                continue
            observation = state["trail_episode_observations"][state["trail_agents"][router], episode]
            assert observation[:4] == pytest.approx([router % 3 / 2, router // 3 / 2, goal % 3 / 2, goal // 3 / 2])
            assert way == least_hops(topology, router, goal)
            seen += 1
    assert seen > 5
    agents = state.agents.agents
    for router in range(topology.routers):
        stored = int(agents.counts[router, STORED])
        assert stored > 20
        linked = set(np.flatnonzero(topology.peer_router[router, 1:4] >= 0).tolist())
        assert set(agents.actions[router, :stored].tolist()) == linked
    assert any(len(np.flatnonzero(topology.peer_router[router, 1:4] >= 0)) == 2 for router in range(9))
    assert observation.shape == (11,)
    run.check_conservation()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"router": "vcs: 2, switching: vct"}, "router.vcs must be at least 3 for routing.algorithm dqn, not 2"),
        ({"routing": "links: hash, ", "topology": "p: 1, a: 2, h: 2, g: 3"}, "routing.links must be own_first or dest"),
        ({"topology": "p: 1, a: 16, h: 16, g: 2"}, r"topology.a \+ topology.h must be at most 31 for .* dqn, not 32"),
        ({"dqn": "agents: 5"}, "routing.dqn.agents must divide the 12 routers, not 5"),
    ],
)  # fmt: skip
def test_what_does_not_fit(changes: dict[str, str], message: str) -> None:
    with pytest.raises(RoutingError, match=message):
        Simulation(parse_config(text(**changes)), 0.1, 1)
