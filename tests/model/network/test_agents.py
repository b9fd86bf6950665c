"""Agents in a network: what they see, decide and learn, against the log of the run and plain Python."""

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.dqn.agents import DECISIONS, STORED
from hopforge.model.network.core.event_log import put_log
from hopforge.model.network.core.records import GRANTED, HEAD
from hopforge.model.network.parts.trail_tables import trail_counts
from hopforge.sim.run.simulation import Simulation

SMALL = "first: 6, second: 5, head: 4, learning_starts: 20, replay: 64, batch: 4, rewards: at_once"


def network(
    *, kind: str = "torus", radices: str = "4, 4", load: float = 0.5, seed: int = 1, dqn: str = SMALL, router: str = "",
    traffic: str = "packet_range: [2, 9]", vcs: int = 3, ties: str = "random", buffer: int = 20, check: bool = False,
) -> Simulation:  # fmt: skip
    return Simulation(parse_config(
        f"name: test\ntopology: {{kind: {kind}, radices: [{radices}]}}\n"
        f"router: {{vcs: {vcs}, buffer_flits: {buffer}, switching: vct{router}}}\n"
        f"routing: {{algorithm: dqn, ties: {ties}, dqn: {{{dqn}}}}}\n"
        f"traffic: {{include_self: false, {traffic}}}\n"
    ), load, seed, check=check)  # fmt: skip


def ways(run: Simulation, cycles: int) -> dict[int, list[tuple[int, int, int]]]:
    """Heads' grants (cycle, input VC, output VC) of each packet, by its name."""
    put_log(run.state, 1 << 20)
    run.advance(cycles)
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    assert len(log) < 1 << 20
    found: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for cycle, kind, source, target, packet, flit in log.tolist():
        if kind == GRANTED and flit & HEAD:
            found[packet].append((cycle, source, target))
    return found


@pytest.mark.parametrize(("kind", "radices", "vcs"), [("torus", "4, 4", 3), ("mesh", "3, 4", 3), ("torus", "3, 2, 2", 4)])
def test_ways_and_counters_of_a_run(kind: str, radices: str, vcs: int) -> None:
    """Every way follows the definition; the counters are those that the ways tell."""
    run = network(kind=kind, radices=radices, vcs=vcs, load=0.6, dqn=f"{SMALL}, max_hops: 5")
    found = ways(run, 4000)
    state, ports = run.state, int(run.state["ports"])
    escapes = 2 if kind == "torus" else 1
    sizes = [int(k) for k in radices.split(",")]
    place = lambda router: np.unravel_index(router, sizes[::-1])[::-1]  # noqa: E731 - x first
    counted: Counter[str] = Counter()
    assert len(found) > 500
    for steps in found.values():
        hops = 0
        for (_, source, target), after in zip(steps, [*steps[1:], None], strict=True):
            router, (port, vc) = source // vcs // ports, divmod(target % (vcs * ports), vcs)
            came = source // vcs % ports, source % vcs
            fixed = came[0] > 0 and came[1] < escapes
            if port == 0:
                continue
            assert run.topology.peer_router[router, port] >= 0
            if after is not None:
                assert after[1] == int(state["output_vc"]["target"][target])
            if fixed or hops > 5:
                assert vc < escapes
            if vc < escapes:  # dimension order: towards the destination in its lowest open dimension
                goal = run.topology.host_router[int(packet_destination(run, steps))] if after is None else None
                assert goal is None or lowest_open(place(router), place(goal)) == (port - 1) // 2
            elif came[0] > 0:
                assert came[1] >= escapes
            counted["adaptive"] += vc >= escapes
            counted["escaped"] += vc < escapes and not fixed
            hops += 1
    counts = trail_counts(state)
    assert counts["decisions"] == state.agents.agents.counts[:, DECISIONS].sum()
    left = counts["rejected"] + counts["hop_limit"] + counts["escaped_waiting"]
    under_way = int((state["input_vc"]["flits"] > 0).sum()) + len(state["flit_event"])
    assert abs(left - counted["escaped"]) <= under_way
    assert counts["rejected"] > 0
    assert counts["hop_limit"] > 0
    assert counts["escaped_waiting"] > 0
    assert counted["adaptive"] > 500


def packet_destination(run: Simulation, steps: list[tuple[int, int, int]]) -> int:
    """Destination of a packet that is still under way."""
    flit = int(run.state["fifo"].reshape(-1, int(run.state["buffer"]))[steps[-1][1]][0])
    return int(run.state["packet"]["dst"][flit >> 2])


def lowest_open(here: Any, there: Any) -> int:
    return next(i for i, (a, b) in enumerate(zip(here, there, strict=True)) if a != b)
