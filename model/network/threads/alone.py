"""Which networks several threads can simulate, and why others stay on one (docs/definitions/threads.md)."""

from collections.abc import Callable

import numpy as np

from hopforge.model.network.core.kinds import BERNOULLI, ON_OFF, PROGRAM, SCRIPT
from hopforge.model.network.core.state import NetState
from hopforge.model.network.parts.held_switch import held_match, held_match_words
from hopforge.model.network.parts.switch_match import switch_match, switch_match_words
from hopforge.model.network.parts.wide_switch import wide_match
from hopforge.model.network.threads.ranges import host_routers, lanes, most_parts

#: delays of links, more of which would cost too much to keep apart
MOST_LANES = 16

#: settings of the record that name a part of the simulation which has one state for all routers
_SHARED = {
    "sped_up": "routers have speedups, iterations or allocators of BookSim (router.internal_speedup, sa: pim)",
    "lookup": "routes are looked up (router.route_computation: lookup)",
    "agents": "agents learn to route",
    "feedback": "the routing algorithm learns",
    "acks": "packets are acknowledged (traffic.acknowledge)",
    "replies": "hosts answer (traffic.reply)",
    "sources": "traffic has classes (traffic.classes)",
    "may_send": "packets are sprayed or reordered (traffic.entropy, traffic.reorder)",
    "messages": "messages have several packets (traffic.message_packets)",
    "speculation": "the switch is asked for in advance (router.speculation)",
    "lookahead": "routes are computed ahead (router.lookahead)",
    "vc_queue": "heads take VCs from a queue (router.va: free_queue)",
    "vc_match": "router.va is another one than input_first and output_first, or has iterations",
    "decides": "packets decide at their hosts (routing.decision: host)",
    "log_event": "every event is noted",
}
_SOURCES = {PROGRAM: "hosts run a program", SCRIPT: "packets are listed one by one"}

#: switch allocators that look at one router after the other, and nothing else
_BY_ROUTER = {switch_match, switch_match_words, wide_match, held_match, held_match_words}
_CHECKS: tuple[tuple[Callable[[NetState], bool], str], ...] = (
    (lambda state: len(state["memory"]) > 1, "the routing algorithm learns"),
    (
        lambda state: bool(state["switch_match"]) and not _BY_ROUTER & set(state.functions),
        "inputs choose ahead (router.sa: input_ahead)",
    ),
    (lambda state: bool((np.diff(host_routers(state)) < 0).any()), "hosts are not numbered in the order of routers"),
    (lambda state: len(lanes(state)[0]) > MOST_LANES, f"links have more than {MOST_LANES} different latencies"),
    (lambda state: most_parts(state) < 2, "the network has at most 8 routers"),  # `switch_allocation.BLOCK`
)


def why_alone(state: NetState) -> str:
    """Say why one thread has to simulate a network of input-queued routers; empty: several can."""
    words = shared_part(state)
    if words:
        return words
    kind = int(state["source_kind"])
    if kind not in (BERNOULLI, ON_OFF):
        return _SOURCES.get(kind, "hosts create packets in another way")
    return next((words for fails, words in _CHECKS if fails(state)), "")


def shared_part(state: NetState) -> str:
    """Say which part of the simulation has one state for all routers; empty: none."""
    return next((words for name, words in _SHARED.items() if state[name]), "")
