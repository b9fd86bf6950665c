"""Up ports of `anca` that are chosen when a head is sent to their router (docs/definitions/booksim-routing.md)."""

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.config.load import ConfigError
from hopforge.model.network.core.event_log import put_log
from hopforge.model.network.core.kinds import GRANTED
from hopforge.sim.run.simulation import Simulation

TREE = "topology: {kind: fat_tree, k: 2, n: 3}\n"
VCS, PORTS = 4, 4


def share_of_less_used(decision: str) -> tuple[float, int]:
    """How often a head takes that one of two up ports that was less used when it was sent there; of how many."""
    text = f"name: x\n{TREE}router: {{vcs: {VCS}, buffer_flits: 4}}\ntraffic: {{packet_flits: 3}}\n"
    run = Simulation(parse_config(f"{text}routing: {{algorithm: anca, decision: {decision}}}"), 0.8, 1)
    state = run.state
    put_log(state, 1 << 18)
    inputs = len(state["input_vc"])
    seen, better, count = 0, 0, 0
    waiting: dict[tuple[int, int], int] = {}  # (packet, router) → its less used up port
    for _ in range(1200):
        run.advance(1)
        rows = state["log"].reshape(-1, 6)[seen : int(state["log_length"])]
        seen += len(rows)
        output = state["output_vc"]
        used = (output["depth"].astype(int) - output["credits"]).reshape(-1, PORTS, VCS).sum(axis=2)
        for _, kind, n, m, packet, flit in rows.tolist():
            if kind != GRANTED or not flit & 1:
                continue
            chosen = waiting.pop((packet, n // VCS // PORTS), None)
            if chosen is not None and m // VCS % PORTS >= 2:
                better, count = better + (m // VCS % PORTS == chosen), count + 1
            target = int(output["target"][m])
            router = target // VCS // PORTS
            if target < inputs and used[router, 2] != used[router, 3]:
                waiting[packet, router] = 2 + int(np.argmin(used[router, 2:]))
    return better / count, count


def test_the_queues_of_the_moment_of_sending_count() -> None:
    """Of two ports drawn with replacement the less used one wins in three of four cases; later queues are others."""
    share, count = share_of_less_used("ahead")
    assert share == pytest.approx(0.75, abs=3.5 * (0.75 * 0.25 / count) ** 0.5)
    assert count > 2000
    later, _ = share_of_less_used("router")
    assert later < 0.7


def test_it_is_for_anca_only() -> None:
    with pytest.raises(ConfigError, match=r"routing.decision: ahead is for anca only, not algorithm=nca"):
        parse_config(f"name: x\n{TREE}routing: {{algorithm: nca, decision: ahead}}\n")
    with pytest.raises(ConfigError, match=r"routing.decision: host is for .* only, not algorithm=anca"):
        parse_config(f"name: x\n{TREE}routing: {{algorithm: anca, decision: host}}\n")
