"""Agents in a network: what they see, decide and learn, against the log of the run and plain Python."""

from collections import defaultdict

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.dqn.agents import DECISIONS
from hopforge.model.network.core.event_log import put_log
from hopforge.model.network.core.records import GRANTED, HEAD
from hopforge.model.network.parts.trail_arrays import trail_counts
from hopforge.sim.run.simulation import Simulation

SMALL = "first: 6, second: 5, head: 4, learning_starts: 20, replay: 64, batch: 4"


def network(
    *, kind: str = "torus", radices: str = "4, 4", load: float = 0.5, seed: int = 1, dqn: str = SMALL, router: str = "",
    traffic: str = "packet_range: [2, 9], acknowledge: {}", vcs: int = 3, ties: str = "random", buffer: int = 20, check: bool = False,
) -> Simulation:  # fmt: skip
    return Simulation(parse_config(
        f"name: test\ntopology: {{kind: {kind}, radices: [{radices}]}}\n"
        f"router: {{vcs: {vcs}, buffer_flits: {buffer}, switching: vct{router}}}\n"
        f"routing: {{algorithm: dqn, ties: {ties}, dqn: {{{dqn}}}}}\n"
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
    run = network(kind=kind, radices=radices, vcs=vcs, load=0.5, dqn=f"{SMALL}, max_hops: 4")
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


@pytest.mark.parametrize("observation", ["scaled", "raw"])
def test_what_an_agent_sees(observation: str) -> None:
    """The last observation of a cycle, computed anew from buffers and credits as they were before the switch."""
    run = network(load=0.8, dqn=f"{SMALL}, observation: {observation}", buffer=20, vcs=4)
    put_log(run.state, 10_000)
    state, ports, vcs = run.state, int(run.state["ports"]), 4
    scale = np.array([3, 3, 3, 3, 256, *[40] * 8]) if observation == "scaled" else np.ones(13)
    run.advance(300)
    seen = waited = 0
    for _ in range(400):
        before = state["trail_counts"].copy()
        state.record["log_length"] = 0
        arrived = set(state["flit_event"].reshape(-1, int(state["event_capacity"]))[
            int(state["cycle"]) & int(state["wheel_mask"])
        ][: int(state["flit_events"][int(state["cycle"]) & int(state["wheel_mask"])])].tolist())  # fmt: skip
        run.advance(1)
        if state["trail_counts"][DECIDED] - before[DECIDED] != 1:
            continue
        grants = [row for row in state["log"].reshape(-1, 6)[: int(state["log_length"])].tolist() if row[1] == GRANTED]
        heads = [(one >> 32, (one & 0xFFFFFFFF) >> 2) for one in arrived if one & HEAD and one >> 32 < int(state["input_vcs"])]
        for n, p in heads:
            packet, router = state["packet"][p], n // vcs // ports
            entries = state["trail_entries"].reshape(-1, int(state["trail_depth"]), 5)[router]
            fill = int(state["trail_fill"][router])
            if not fill or entries[fill - 1, 1] != int(state["cycle"]) - 1 or entries[fill - 1, 3] < 0:
                continue
            expected = plain_observation(run, n, packet, grants, vcs) / scale
            found = state["trail_episode_observations"].reshape(4, -1, 13)[state["trail_owner"][router], entries[fill - 1, 3]]
            assert np.allclose(found, expected, rtol=1e-6)
            seen += 1
            waited += expected[5:9].sum() > 0
    assert seen > 50
    assert waited > 10
