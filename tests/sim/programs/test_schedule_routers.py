"""Schedules on packet routers: rules of ranks by hand (messages against golden hosts: sim/packet)."""

from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.errors import UserError
from hopforge.model.workload.chakra_nodes import Node, nodes_bytes
from hopforge.sim.programs.app_result import AppRun
from hopforge.sim.programs.application import run_app

#: a cycle of 100 ns, 512 bytes in two of them
NETWORK = (
    "name: x\ntopology: {kind: torus, radices: [4, 2]}\nrouter: {model: packet}\nrouting: {algorithm: %s}\n"
    "packet: {link_gbps: 20.48, link_ns: 200, host_gbps: 40.96, host_ns: 100%s}\n"
)


def goal(folder: Path, ranks: list[str], network: str, loggops: str = "o: 0, S: 1000000000") -> Config:
    blocks = "".join(f"rank {n} {{\n{lines}\n}}\n" for n, lines in enumerate(ranks))
    (folder / "a.goal").write_text(f"num_ranks {len(ranks)}\n{blocks}")
    return parse_config(
        f"{network}workload: {{kind: trace, file: {folder}/a.goal}}\n"
        f"app: {{engine: packet, loggops: {{g: 0, O: 0, {loggops}}}}}\n"
    )


def test_rules_of_the_ranks(tmp_path: Path) -> None:
    """Units are ns: a computation of 1030 ns, o of 70 ns; handed over in cycle 11, the last of 10.3 + 0.7."""
    text = NETWORK % ("ofr", "")
    ping = ["a: calc 930\nb: send 400b to 1\nb requires a", "recv 400b from 0"]
    quick = run_app(goal(tmp_path, ["send 400b to 1", "recv 400b from 0"], text, "o: 0, S: 1000"))
    latency = quick.found.message_latency_s * 1e7
    assert latency == pytest.approx(round(latency)) and quick.found.makespan_s * 1e7 == pytest.approx(1 + latency)
    late = run_app(goal(tmp_path, ping, text, "o: 70, S: 1000"))
    assert (late.ranks["finish_s"] * 1e7).tolist() == pytest.approx([10, 11 + latency + 0.7])
    assert late.activity is not None and late.found.computing_share > 0
    with pytest.raises(UserError, match=r"1 message is never received: rank 0 send 400b to 1 tag 0"):
        run_app(goal(tmp_path, ["send 400b to 1", "calc 1"], text))


def test_training_runs_on_packet_routers() -> None:
    text = NETWORK % ("por", "")
    found = run_app(parse_config(
        f"{text}workload: {{kind: training, sizes: {{layers: 2, width: 64, heads: 4, "
        "feed_forward: 128, vocabulary: 256, sequence: 32}, "
        "parallel: {data: 4, tensor: 2}, microbatches: 1}\napp: {engine: packet, host_gflops: 10}\n"
    ))  # fmt: skip
    assert isinstance(found, AppRun) and found.found.messages > 0 and found.activity is not None


def _chakra(folder: Path, ranks: list[list[Node]], network: str, keys: str = "") -> AppRun:
    for rank, nodes in enumerate(ranks):
        (folder / f"t.{rank}.et").write_bytes(b"".join(nodes_bytes(nodes)))
    found = run_app(parse_config(
        f"{network}workload: {{kind: chakra, file: {folder}/t{keys}}}\n"
        "app: {engine: packet, loggops: {o: 70, g: 0, O: 0, S: 1000000000}}\n"
    ))  # fmt: skip
    assert isinstance(found, AppRun)
    return found


def _node(number: int, kind: int, *after: int, micros: int = 0, **attributes: int) -> Node:
    return Node(number, kind, "", np.array(after, np.uint64), micros=micros, attributes=dict(attributes))


def test_chakra_runs_on_packet_routers_as_its_graph_by_hand(tmp_path: Path) -> None:
    """Compute (4), send (5), receive (6), all-reduce (7 with comm_type 0), each as lines of GOAL."""
    text = NETWORK % ("por", "")
    pair = [
        [_node(0, 4, micros=2), _node(1, 5, 0, comm_dst=1, comm_size=900), _node(2, 4, 1, micros=3)],
        [_node(0, 6, comm_src=0, comm_size=900), _node(1, 4, 0, micros=1)],
    ]
    lines = [
        "a: calc 2000\nb: send 900b to 1\nb requires a\nc: calc 3000\nc requires b",
        "a: recv 900b from 0\nb: calc 1000\nb requires a",
    ]
    found, expected = _chakra(tmp_path, pair, text), run_app(goal(tmp_path, lines, text, "o: 70, S: 1000000000"))
    assert found.found.messages == 1 and found.found.payload_bytes == 900
    assert found.ranks["finish_s"].tolist() == expected.ranks["finish_s"].tolist()
    assert found.ranks["finish_s"][0] == pytest.approx(5.07e-6)
    both = [[_node(0, 4, micros=5), _node(1, 7, 0, comm_type=0, comm_size=100), _node(2, 4, 1, micros=1)]] * 2
    exchange = (
        "a: calc 5000\nb: send 100b to %d\nb requires a\nc: recv 100b from %d\nc requires a\nd: calc 1000\n"
        "d requires b\nd requires c"
    )
    found = _chakra(tmp_path, both, text)
    expected = run_app(goal(tmp_path, [exchange % (1, 1), exchange % (0, 0)], text, "o: 70, S: 1000000000"))
    assert found.ranks["finish_s"].tolist() == expected.ranks["finish_s"].tolist()
    assert found.found.messages == 2 and found.activity is not None
    assert found.found.makespan_s > 6.14e-6


def test_chakra_on_packet_routers_that_cannot_end(tmp_path: Path) -> None:
    waits = [[_node(0, 6, comm_src=1, comm_size=900)], [_node(0, 4, micros=1)]]
    with pytest.raises(UserError, match=r"rank 0"):
        _chakra(tmp_path, waits, NETWORK % ("por", ""))


# ---- links that fail in the middle of a schedule ---------------------------------------------------------------------


def _failing(folder: Path, ranks: list[str], cycle: int, queues: str = "sending", repair: str = "") -> Config:
    parts = f"{{cycle: {cycle}, links: [[0, 1]], detection_cycles: 0, reprogram_cycles: 5{repair}}}"
    network = f"{NETWORK % ('abr', f', queues: {queues}')}simulation: {{failures: [{parts}]}}\n"
    return goal(folder, ranks, network)


@pytest.mark.parametrize("queues", ["sending", "receiving"])
def test_a_message_of_a_schedule_goes_around_a_failed_link(tmp_path: Path, queues: str) -> None:
    """A link takes a packet 400 ns, both hosts 400 ns; handed over in the first cycle after its time."""
    lines = ["a: calc 3000\nb: send 400b to 1\nb requires a", "recv 400b from 0"]
    # the link fails while nothing is under way: 3 links instead of one; at 1000 ns the ways are known, at 2000 it works
    assert run_app(_failing(tmp_path, lines, 0, queues)).found.message_latency_s == pytest.approx(1.6e-6)
    again = run_app(_failing(tmp_path, lines, 0, queues, ", repair_cycles: 8"))
    assert again.found.message_latency_s == pytest.approx(0.8e-6)
    # 3000 ns is cycle 31: at its router in cycle 33, where it waits until the ways are known in cycle (15 + 5) · 2 = 40
    late = run_app(_failing(tmp_path, lines, 15, queues))
    back = 4e-7 if queues == "sending" else 0  # from the link before which it stands
    assert late.found.message_latency_s == pytest.approx((40 - 31) * 1e-7 + back + 1.2e-6 + 2e-7)


@pytest.mark.parametrize("queues", ["sending", "receiving"])
def test_a_lost_message_of_a_schedule_is_named(tmp_path: Path, queues: str) -> None:
    """On the link from 0.3 to 0.7 µs; ranks 2 and 3 go on for long after."""
    pair = ["a: calc 5000\nb: send 400b to 3\nb requires a", "recv 400b from 2"]
    lost = _failing(tmp_path, ["send 400b to 1", "recv 400b from 0", *pair], 2, queues)
    with pytest.raises(UserError) as caught:
        run_app(lost)
    text = str(caught.value)
    assert "the schedule cannot end: 1 receive waits for a message that never comes: rank 1 recv 400b from 0" in text
    assert text.endswith("; failures lost 1 message: rank 0 → rank 1 (400 bytes)")


def test_a_switch_with_a_rank_of_a_schedule_cannot_fail(tmp_path: Path) -> None:
    network = f"{NETWORK % ('abr', '')}simulation: {{failures: [{{cycle: 2, switches: [1]}}]}}\n"
    with pytest.raises(UserError, match="switch 1 fails and takes host 1 of rank 1 along; hosts of ranks must work"):
        run_app(goal(tmp_path, ["send 400b to 1", "recv 400b from 0"], network))
