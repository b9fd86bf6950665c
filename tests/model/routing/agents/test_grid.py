"""DQN routing: its escape is proved, what does not fit is one line, agents share the routers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numba import njit

from hopforge.model.config import Config, parse_config
from hopforge.model.network.core.event_log import put_log
from hopforge.model.network.core.kinds import GRANTED, HEAD
from hopforge.model.network.core.net_record import ROUTE_SIGNATURE
from hopforge.model.network.core.state import NetworkError
from hopforge.model.routing import RoutingError
from hopforge.model.routing.agents.parameters import agents_of_routers
from hopforge.model.routing.contract.fields_read import fields_read
from hopforge.model.routing.proof.deadlock import DeadlockError, check_routing
from hopforge.model.routing.proof.reachable import Exploration
from hopforge.sim.run.simulation import Simulation

DQN = "first: 4, second: 4, head: 4"


def configured(
    topology: str = "torus, radices: [4, 4]", router: str = "vcs: 3, switching: vct, buffer_flits: 12", dqn: str = DQN,
    traffic: str = "packet_range: [2, 6], acknowledge: {}", more: str = "",
) -> Config:  # fmt: skip
    return parse_config(
        f"name: test\ntopology: {{kind: {topology}}}\nrouter: {{{router}}}\n"
        f"routing: {{algorithm: dqn, ties: random, dqn: {{{dqn}}}{more}}}\ntraffic: {{{traffic}}}\n"
    )


@pytest.mark.parametrize(
    ("topology", "vcs"),
    [
        ("torus, radices: [4, 4]", 3), ("torus, radices: [5, 3]", 4), ("torus, radices: [4, 2, 2]", 3),
        ("mesh, radices: [3, 3]", 2), ("mesh, radices: [4, 2], hosts_per_router: 2", 3),
        ("torus, radices: [3, 2, 2, 2]", 3), ("dragonfly, p: 1, a: 3, h: 1", 3),
        ("dragonfly, p: 2, a: 2, h: 2, g: 3", 4),
    ],
)  # fmt: skip
def test_escape_is_proved_and_every_gives_what_runs_do(topology: str, vcs: int) -> None:
    run = Simulation(configured(topology, f"vcs: {vcs}, switching: vct, buffer_flits: 12"), 0.6, 1, check=False)
    dependencies = check_routing(run.topology, run.plan, run.state, "dqn")
    assert dependencies > 100
    plan, hosts = run.plan, list(range(run.topology.hosts))
    declared = Exploration(plan, plan.every, run.state, fields_read(plan.every), hosts, np.ones(1, np.int64))
    assert declared.walk() is None
    allowed = set(zip(*(part.tolist() for part in declared.edges()), strict=True))
    put_log(run.state, 1 << 19)
    run.advance(1500)
    found, last = set(), {}
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    for _, kind, _, target, packet, flit in log.tolist():
        if kind == GRANTED and flit & HEAD and packet >> 40 < run.topology.hosts:
            hosts_port = target // vcs % int(run.state["ports"]) < int((run.topology.host_at[0] >= 0).sum())
            if packet in last and not hosts_port:
                found.add((last[packet], target))
            last[packet] = target
    assert len(found) > 50
    assert found <= allowed


@pytest.mark.parametrize(
    ("topology", "vcs"),
    [("torus, radices: [4, 4]", 3), ("mesh, radices: [3, 3]", 2), ("dragonfly, p: 1, a: 3, h: 1", 3)],
)
def test_asking_again_after_a_hop_of_the_escape_is_proved(topology: str, vcs: int) -> None:
    """Cut-through lets a packet return to the agents: the proof explores that, too."""
    router = f"vcs: {vcs}, switching: vct, buffer_flits: 12"
    counts = []
    for escape in ("final", "hop"):
        run = Simulation(configured(topology, router, f"{DQN}, escape: {escape}"), 0.6, 1, check=False)
        counts.append(check_routing(run.topology, run.plan, run.state, "dqn"))
    assert counts[1] > counts[0] > 50


def test_packets_that_wait_without_their_escape_are_refused() -> None:
    """The reason for the second candidate: room is tested once, and two packets may win the same channel."""
    run = Simulation(configured(), 0.5, 1, check=False)
    ours = run.plan.every

    def first_only(
        router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
    ) -> int:
        return min(1, ours(router, in_port, in_vc, packet, net, table, memory, out))

    # the proof looks into wrappers of this package only
    first_only.__module__, file = ours.py_func.__module__, ours.py_func.__code__.co_filename
    first_only.__code__ = first_only.__code__.replace(co_filename=file)
    with pytest.raises(DeadlockError, match=r"can deadlock on the .* cycle of channels .* cannot rule out: .* VC2"):
        check_routing(run.topology, replace(run.plan, every=njit(ROUTE_SIGNATURE)(first_only)), run.state, "dqn")


def test_who_serves_which_router() -> None:
    assert agents_of_routers("router", [3, 2]).tolist() == [0, 1, 2, 3, 4, 5]
    assert agents_of_routers("row", [3, 2]).tolist() == [0, 0, 0, 1, 1, 1]
    assert agents_of_routers("network", [3, 2]).tolist() == [0] * 6
    assert agents_of_routers(2, [3, 2]).tolist() == [0, 0, 0, 1, 1, 1]
    assert agents_of_routers(3, [3, 2]).tolist() == [0, 0, 1, 1, 2, 2]
    with pytest.raises(RoutingError, match=r"routing.dqn.agents must divide the 6 routers, not 4"):
        agents_of_routers(4, [3, 2])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"topology": "hyperx, sizes: [3, 2]"}, "dqn needs a topology of kind mesh or torus or dragonfly, not hyperx"),
        ({"topology": "torus, radices: [2, 2, 2, 2, 2]"}, "topology.radices must have at most 4 numbers for .*, not 5"),
        ({"router": "vcs: 2, switching: vct"}, "router.vcs must be at least 3 for routing.algorithm dqn on a torus, n"),
        ({"router": "vcs: 3, switching: vct", "topology": "torus, radices: [1, 1]"}, "dqn needs a router with a link"),
        ({"router": "vcs: 3"}, "dqn needs router.switching: vct or saf .*, not wormhole"),
        ({"dqn": "agents: 5"}, "routing.dqn.agents must divide the 16 routers, not 5"),
        ({"traffic": "packet_flits: 2"}, "routing.algorithm dqn learns from acknowledges: set traffic.acknowledge"),
        ({"traffic": "packet_flits: 13, acknowledge: {}"}, r"buffer_flits must hold the longest packet \(13 flits\)"),
        ({"router": "vcs: 3, switching: vct, buffer_flits: 12, lookahead: true, rc_cycles: 1"}, "router.lookahead: "),
    ],
)  # fmt: skip
def test_what_does_not_fit(changes: dict[str, str], message: str) -> None:
    with pytest.raises((RoutingError, NetworkError), match=message):
        Simulation(configured(**changes), 0.1, 1)
