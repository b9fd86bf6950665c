"""VCs by the coordinates of the destination: `booksim_ugal_pni` (docs/definitions/booksim-routing.md)."""

from collections import Counter

import pytest

from hopforge.model.config import parse_config
from hopforge.model.network.core.event_log import put_log
from hopforge.model.network.core.kinds import GRANTED, SENT
from hopforge.model.routing.contract.plan import RoutingError
from hopforge.sim.run.simulation import Simulation

K, HOSTS = 3, 27
BUTTERFLY = f"name: x\ntopology: {{kind: hyperx, sizes: [{K}, {K}], hosts_per_router: {K}}}\n"
ROUTING = "routing: {algorithm: booksim_ugal_pni, decision: host}\n"


@pytest.mark.parametrize(("vcs", "at_host", "in_part"), [(6, 2, 1), (8, 2, 1), (14, 4, 2)])
def test_each_hop_takes_the_share_of_where_the_packet_turns_next(vcs: int, at_host: int, in_part: int) -> None:
    """All of a permutation's hops: VCs of hosts by the first digit of the destination, then by the digit after."""
    goals = [(7 * h + 11) % HOSTS for h in range(HOSTS)]
    traffic = f"traffic: {{packet_flits: 2, pattern: destinations, destinations: {goals}}}\n"
    run = Simulation(parse_config(f"{BUTTERFLY}router: {{vcs: {vcs}}}\n{ROUTING}{traffic}"), 0.9, 1)
    state, peer = run.state, run.topology.peer_router
    put_log(state, 1 << 20)
    run.advance(1500)
    ports, used = peer.shape[1], Counter()
    for _, kind, _, m, packet, flit in state["log"].reshape(-1, 6)[: int(state["log_length"])].tolist():
        goal = goals[packet >> 40]
        digits = [goal // K % K, goal // K // K, goal % K]  # of the router in both dimensions, of the host in it
        if kind == SENT and flit & 1:
            assert m // at_host == digits[0]
            used[0, 0] += 1
        if kind != GRANTED or not flit & 1:
            continue
        router, port, vc = m // vcs // ports, m // vcs % ports, m % vcs
        there = int(peer[router, port])
        if there < 0:
            continue  # a host's: any VC
        dimension = 0 if there // K == router // K else 1
        part = vc // (vcs // 2)
        assert (vc - part * (vcs // 2)) // in_part == digits[dimension + 1]
        used[dimension + 1, part] += 1
    assert min(used.values()) > 150
    assert len(used) == 5  # at hosts; in both dimensions before and behind the drawn router


@pytest.mark.parametrize(("release", "vcs"), [("credits", 12), ("credits", 14), ("tail", 12)])
def test_a_host_that_comes_from_another_share_waits_for_the_first_vc(release: str, vcs: int) -> None:
    """Of a share that the host's last packet was not in, the head takes the first VC; of the same share any."""
    text = f"{BUTTERFLY}router: {{vcs: {vcs}, vc_release: {release}}}\n{ROUTING}traffic: {{packet_flits: 2}}\n"
    run = Simulation(parse_config(text), 0.9, 1)
    put_log(run.state, 1 << 20)
    run.advance(1500)
    share, last, used = vcs // K, [0] * HOSTS, Counter()
    for _, kind, host, vc, _, flit in run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])].tolist():
        if kind != SENT or not flit & 1:
            continue
        inside = last[host] // share == vc // share
        assert inside or vc % share == 0
        used[inside, vc % share] += 1
        last[host] = vc
    assert used[False, 0] > 1000
    assert all(used[True, v] > 50 for v in range(share))


@pytest.mark.parametrize(("more", "message"), [
    ("traffic: {reply: {flits: 1}}", "not with traffic.reply"),
    ("traffic: {classes: [{name: a, load: 0.1}, {name: b, load: 0.1}]}", "not with traffic.classes"),
    ("traffic: {classes: [{name: a, load: 0.1, vcs: 6}, {name: b, load: 0.1, vcs: 6}]}", "not with traffic.classes"),
])  # fmt: skip
def test_hosts_that_choose_otherwise_are_refused(more: str, message: str) -> None:
    text = f"{BUTTERFLY}router: {{vcs: 12}}\nrouting: {{algorithm: booksim_ugal_pni}}\n{more}\n"
    with pytest.raises(RoutingError, match=message):
        Simulation(parse_config(text), 0.1, 1)


def test_the_other_router_model_is_refused() -> None:
    text = f"{BUTTERFLY}router: {{model: input_output_queued, vcs: 6}}\nrouting: {{algorithm: booksim_ugal_pni}}\n"
    with pytest.raises(RoutingError, match=r"not with router.model: input_output_queued"):
        Simulation(parse_config(text), 0.1, 1)
