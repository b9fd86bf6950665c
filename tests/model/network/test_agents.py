"""Agents in a network: what they see, decide and learn, against the log of the run and plain Python."""

from collections import defaultdict
from itertools import pairwise, takewhile

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.dqn.agents import DECISIONS
from hopforge.model.dqn.golden_decisions import Decisions
from hopforge.model.network.core.event_log import put_log
from hopforge.model.network.core.kinds import ACTIVE, GRANTED, HEAD, IDLE, UNDECIDED
from hopforge.model.network.parts.agent_sight import PDOR
from hopforge.model.network.parts.trail_tables import trail_counts
from hopforge.sim.run.simulation import Simulation

SMALL = "first: 6, second: 5, head: 4, learning_starts: 20, replay: 64, batch: 4"


def network(
    *, kind: str = "torus", radices: str = "4, 4", load: float = 0.5, seed: int = 1, dqn: str = SMALL, router: str = "",
    traffic: str = "packet_range: [2, 9], acknowledge: {}", vcs: int = 3, buffer: int = 20,
    check: bool = False,
) -> Simulation:  # fmt: skip
    return Simulation(parse_config(
        f"name: test\ntopology: {{kind: {kind}, radices: [{radices}]}}\n"
        f"router: {{vcs: {vcs}, buffer_flits: {buffer}, switching: vct{router}}}\n"
        f"routing: {{algorithm: dqn, ties: random, dqn: {{{dqn}}}}}\n"
        f"traffic: {{include_self: false, {traffic}}}\n"
    ), load, seed, check=check)  # fmt: skip


def ways(run: Simulation, cycles: int) -> dict[int, list[tuple[int, int]]]:
    """Grants of the heads of regular packets: (input VC, output VC) of each hop, by packet."""
    put_log(run.state, 1 << 20)
    run.advance(cycles)
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    assert len(log) < 1 << 20
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for _, kind, source, target, packet, flit in log.tolist():
        if kind == GRANTED and flit & HEAD and packet >> 40 < run.topology.hosts:
            found[packet].append((source, target))
    return found


@pytest.mark.parametrize(
    ("kind", "radices", "vcs"), [("torus", "4, 4", 3), ("mesh", "3, 4", 3), ("torus", "3, 2, 2", 4)]
)
def test_ways_and_counters_of_a_run(kind: str, radices: str, vcs: int) -> None:
    """Every way follows the definition, and the counters say what the ways show."""
    dqn, buffer = f"{SMALL}, max_hops: 4", 20 if vcs == 3 else 10
    run = network(kind=kind, radices=radices, vcs=vcs, load=0.5, dqn=dqn, buffer=buffer)
    found = ways(run, 4000)
    run.check_conservation()
    ports, escapes = int(run.state["ports"]), 2 if kind == "torus" else 1
    target_of = run.state["output_vc"]["target"]
    sizes = [int(k) for k in radices.split(",")]
    adaptive = escaped = fixed_hops = 0
    assert len(found) > 500
    for steps in found.values():
        for hops, (source, target) in enumerate(steps):
            (router, port), vc = divmod(target // vcs, ports), target % vcs
            assert router == source // vcs // ports
            if hops:
                assert source == target_of[steps[hops - 1][1]]
            if port == 0:
                assert hops == len(steps) - 1
                continue
            assert run.topology.peer_router[router, port] >= 0
            before = hops > 0 and source % vcs < escapes
            if before or hops > 4:
                assert vc < escapes, "Pdor is final, and no agent sends a packet further than max_hops"
            adaptive += vc >= escapes
            escaped += vc < escapes and not before
            fixed_hops += before
        goal = steps[-1][1] // vcs // ports
        if steps[-1][1] // vcs % ports == 0:  # it has arrived: on the escape the lowest open dimension comes first
            for source, target in steps[:-1]:
                if target % vcs < escapes:
                    here = coordinates(source // vcs // ports, sizes)
                    open_ones = [i for i, k in enumerate(coordinates(goal, sizes)) if k != here[i]]
                    assert (target // vcs % ports - 1) // 2 == open_ones[0]
    counts = trail_counts(run.state)
    assert counts["decisions"] == run.state.agents.agents.counts[:, DECISIONS].sum()
    under_way = int(run.state["packets_created"] - run.state["packets_ejected"])
    left = counts["rejected"] + counts["hop_limit"] + counts["escaped_waiting"]
    assert abs(left - escaped) <= under_way
    assert min(counts[name] for name in ("rejected", "hop_limit", "escaped_waiting", "rewards")) > 0
    assert min(adaptive, escaped, fixed_hops) > 200


def coordinates(router: int, sizes: list[int]) -> list[int]:
    """Return x, y, … of a router."""
    return [router // int(np.prod(sizes[:i])) % k for i, k in enumerate(sizes)]


class Seen:
    """Buffers and credits as they are behind a cycle; or with what comes in the next one, before that."""

    def __init__(self, run: Simulation, *, next_cycle: bool = True) -> None:
        state = run.state
        self.run, self.now = run, int(state["cycle"])
        self.input_vc, self.packet = state["input_vc"].copy(), state["packet"].copy()
        self.fifo = state["fifo"].reshape(-1, int(state["buffer"])).copy()
        self.credits, self.depth = state["output_vc"]["credits"].copy(), int(state["buffer"])
        slot = self.now & int(state["wheel_mask"])
        self.come: list[tuple[int, int]] = []
        if not next_cycle:
            return
        self.come = [
            (one >> 32, one & 0xFFFFFFFF)
            for one in self._events("flit", slot)
            if one >> 32 < int(state["input_vcs"])
        ]
        for m in self._events("credit", slot):
            if m < len(self.credits):
                self.credits[m] += 1

    def _events(self, kind: str, slot: int) -> list[int]:
        state = self.run.state
        rows = state[f"{kind}_event"].reshape(-1, int(state["event_capacity"]))
        return rows[slot, : int(state[f"{kind}_events"][slot])].tolist()

    def observation(self, n: int, p: int) -> list[int]:
        """What the definition says of packet `p`, whose head comes to input VC `n`."""
        run, vcs, ports = self.run, int(self.run.state["vcs"]), int(self.run.state["ports"])
        router, local, remote, order = n // vcs // ports, [0] * 4, [0] * 4, (2, 1, 4, 3)  # ports X−, X+, Y−, Y+
        for m in range(router * ports * vcs, (router + 1) * ports * vcs):
            vc = self.input_vc[m]
            flits = [int(self.fifo[m, (int(vc["head"]) + k) % self.depth]) for k in range(int(vc["flits"]))]
            before = self.come.index((n, (p << 2) | HEAD)) if self.come else 0
            flits += [flit for other, flit in self.come[:before] if other == m]
            first = len(list(takewhile(lambda flit: flit >> 2 == flits[0] >> 2, flits)))  # noqa: B023
            for k, flit in enumerate(flits if m % vcs >= 2 else []):
                q = flit >> 2
                output = int(vc["out_vc"]) if vc["state"] == ACTIVE and k < first else None
                if output is not None and output % vcs >= 2 and output // vcs % ports in order:
                    local[order.index(output // vcs % ports)] += 1
                if output is None and self.packet["user0"][q] > 1:
                    local[(int(self.packet["user0"][q]) >> 1) - 1] += 1
        for action, port in enumerate(order):
            outputs = slice((router * ports + port) * vcs + 2, (router * ports + port + 1) * vcs)
            remote[action] = int((self.depth - self.credits[outputs]).sum())
        there = int(run.topology.host_router[self.packet["dst"][p]])
        return [router % 4, router // 4, there % 4, there // 4, int(self.packet["length"][p]) - 2, *local, *remote]


@pytest.mark.parametrize("observation", ["scaled", "raw"])
def test_what_an_agent_sees(observation: str) -> None:
    """Observations of decisions with an episode, computed anew from buffers and credits."""
    run = network(load=0.6, dqn=f"{SMALL}, observation: {observation}", vcs=4)
    state, in_router = run.state, int(run.state["ports"]) * int(run.state["vcs"])
    scale = np.array([3, 3, 3, 3, 256, *[40] * 8]) if observation == "scaled" else np.ones(13)
    run.advance(300)
    seen = waited = 0
    for _ in range(1200):
        before = Seen(run)
        run.advance(1)
        routers = [n // in_router for n, flit in before.come if flit & HEAD]
        for n, p in [(n, flit >> 2) for n, flit in before.come if flit & HEAD]:
            router = n // in_router
            fill = int(state["trail_fill"][router])
            entry = state["trail_entries"][router, fill - 1] if fill else None
            # no other head came to the router in this cycle; an entry of this cycle with an episode
            if routers.count(router) > 1 or entry is None or entry[1] != before.now or entry[3] < 0:
                continue
            found = state["trail_episode_observations"][state["trail_agents"][router], entry[3]]
            expected = np.array(before.observation(n, p))
            assert np.allclose(found, expected / scale, rtol=1e-6), (before.now, n, found * scale, expected)
            seen += 1
            waited += expected[5:9].sum() > 0
    assert seen > 50
    assert waited > 20


def test_minimal_ways() -> None:
    """Every hop brings a packet nearer, whether an agent or dimension order chose it."""
    run = network(load=0.5, dqn=f"{SMALL}, ways: minimal")
    found, checked = ways(run, 2500), 0
    for packet, steps in found.items():
        ports = int(run.state["ports"])
        last = [target // 3 // ports for _, target in steps if target // 3 % ports == 0]
        for source, target in steps if last else []:
            here, port = divmod(target // 3, ports)
            if port:
                there = int(run.topology.peer_router[here, port])
                assert between(there, last[0]) == between(here, last[0]) - 1, packet
                assert source // 3 // ports == here
                checked += 1
    assert checked > 1000
    assert trail_counts(run.state)["hop_limit"] == 0


def between(one: int, other: int) -> int:
    """Hops between two routers of a 4×4 torus."""
    found = 0
    for a, b in zip(coordinates(one, [4, 4]), coordinates(other, [4, 4]), strict=True):
        found += min(abs(a - b), 4 - abs(a - b))
    return found


def test_escape_for_a_hop() -> None:
    """Packets return to the agents, and only the hop limit is final."""
    run = network(load=0.6, dqn=f"{SMALL}, escape: hop, max_hops: 3")
    returned = 0
    for steps in ways(run, 3000).values():
        on_escape = [target % 3 < 2 for _, target in steps if target // 3 % int(run.state["ports"]) != 0]
        returned += any(before and not after for before, after in pairwise(on_escape))
        assert all(on_escape[4:])
    assert returned > 100
    run.check_conservation()


@pytest.mark.parametrize(("seen", "zeros"), [("local", slice(9, 13)), ("remote", slice(5, 9)), ("none", slice(5, 13))])
def test_occupancies_that_are_not_seen(seen: str, zeros: slice) -> None:
    run = network(load=0.6, dqn=f"{SMALL}, occupancies: {seen}")
    run.advance(2500)
    samples = run.state.agents.agents.samples
    assert not samples[:, :, zeros].any()
    assert samples[:, :20, :5].any()
    assert seen == "none" or samples[:, :, 5:13].any()


@pytest.mark.parametrize(
    ("dqn", "load", "least"),
    [
        ("decision_cycles: 1", 0.6, (300, 0)),
        ("decision_cycles: 40, decision_interval: 3, decision_queue: 2", 0.6, (300, 30)),
        ("decision_cycles: 7, decision_interval: 12, decision_queue: 0, agents: router", 0.5, (300, 30)),
        ("decision_cycles: 9, decision_queue: 5, agents: network, reward_rejected: false", 0.3, (90, 30)),
    ],
)  # fmt: skip
def test_decisions_that_take_time(dqn: str, load: float, least: tuple[int, int]) -> None:
    """Which decisions begin, end and are refused in each cycle, what agents see, and that nobody goes on before."""
    run = network(load=load, dqn=f"{SMALL}, max_hops: 6, {dqn}")
    state, agents = run.state, run.state.agents.parameters
    golden = Decisions(agents.count, agents.decision_cycles, agents.decision_interval, agents.decision_queue)
    in_router, began = int(state["ports"]) * 3, dict[int, tuple[int, int]]()
    begun = refused = seen = wait = 0
    for _ in range(900):
        before = Seen(run)
        heads = [(n, flit >> 2) for n, flit in before.come if flit & HEAD and needs_decision(run, n, flit >> 2)]
        run.advance(1)
        asked = [(n, p, int(state["trail_agents"][n // in_router])) for n, p in heads]
        began |= {p: (before.now, n) for n, p in heads}
        done = golden.end_of_cycle(before.now, asked)
        user0 = state["packet"]["user0"]
        waiting = golden.waiting()
        assert all(user0[p] == UNDECIDED for p in waiting)
        assert all(user0[p] >= PDOR for p in done.ended)
        assert all(user0[p] == PDOR for p in done.refused)
        assert int(state["undecided"]) == len(waiting)
        still = waiting | {*done.ended, *done.refused}
        for n in np.flatnonzero((state["input_vc"]["state"] == IDLE) & (state["input_vc"]["flits"] > 0)).tolist():
            vc = state["input_vc"][n]
            p = int(state["fifo"].reshape(-1, 20)[n, vc["head"]]) >> 2
            left = before.input_vc[n]["state"] == ACTIVE  # the packet before it, in this cycle
            assert p in still or left or packet_of_hosts(run, p), "a packet that is decided is routed"
        after = Seen(run, next_cycle=False)
        after.packet["user0"][done.ended] = UNDECIDED  # they end behind the begin of others
        for p in done.begun:
            came, n = began[p]
            wait += before.now - came
            seen += observed(run, after, n, p, came)
        begun, refused = begun + len(done.begun), refused + len(done.refused)
    counts = trail_counts(state)
    assert (counts["decisions"], counts["agent_queue_full"]) == (begun, refused)
    assert counts["decision_wait"] == wait
    assert begun > least[0]
    assert refused >= least[1]
    assert seen > 50
    run.check_conservation()


def needs_decision(run: Simulation, n: int, p: int) -> bool:
    """Whether an agent has to decide about a head that comes to an input VC."""
    packet, router = run.state["packet"][p], n // (3 * int(run.state["ports"]))
    if packet["dst"] >= run.topology.hosts or run.topology.host_router[packet["dst"]] == router:
        return False
    escaped = n % 3 < 2 and run.state["input_vc"]["credit_to"][n] < int(run.state["output_vcs"])
    return not escaped and int(packet["hops"]) <= 6


def packet_of_hosts(run: Simulation, p: int) -> bool:
    """Whether a packet is an acknowledge."""
    return int(run.state["packet"]["dst"][p]) >= run.topology.hosts


def observed(run: Simulation, after: Seen, n: int, p: int, came: int) -> int:
    """Compare what an agent saw of a packet with the definition; 0 if its decision has no episode."""
    state, router = run.state, n // (3 * int(run.state["ports"]))
    name = (int(state["packet"]["src"][p]) << 40) | int(state["packet"]["number"][p])
    entries = state["trail_entries"][router, : state["trail_fill"][router]]
    entry = next((e for e in entries if e[0] == name and e[1] == came and e[3] >= 0), None)
    if entry is None:
        return 0
    found = state["trail_episode_observations"][state["trail_agents"][router], entry[3]]
    expected = np.array(after.observation(n, p)) / np.array([3, 3, 3, 3, 256, *[20] * 8])
    assert np.allclose(found, expected, rtol=1e-6)
    return 1
