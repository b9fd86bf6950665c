"""What hosts send back, as arrays for the kernel (docs/definitions/replies.md)."""

from dataclasses import dataclass

import numpy as np

from hopforge.model.kernel.histogram import HISTOGRAM_BINS
from hopforge.model.network.core.kinds import HOST_VC_BITS
from hopforge.model.network.core.layouts import CLASS_COUNT, CLASSES, REPLIER
from hopforge.model.network.core.state import NetState
from hopforge.model.network.parts.replies import answer, serve_hosts


@dataclass(frozen=True)
class Replies:
    """Replies of every host.

    Attributes
    ----------
    flits : int
        Length of a reply.
    delay_cycles : int
        From the arrival of a request's tail to the creation of its reply, at least 1.
    places : int
        Replies that a host can keep, 0: no limit.
    """

    flits: int = 1
    delay_cycles: int = 1
    places: int = 0


def put_replies(state: NetState, replies: Replies) -> None:
    """Let the hosts of a network answer; ``host.reply_mask`` says on which VCs."""
    hosts, depth = max(int(state["hosts"]), 1), int(state["buffer"])
    replier = np.zeros(hosts, REPLIER)
    replier["first"] = replier["last"] = replier["packet"] = -1
    state.put("replier", replier)
    outside = hosts << HOST_VC_BITS if replies.places else 1
    state.put("outside", np.zeros(outside * depth, np.int32))
    for name in ("outside_first", "outside_flits"):
        state.put(name, np.zeros(outside, np.int32))
    state.put("class_count", np.zeros(CLASSES, CLASS_COUNT))
    state.put("class_histogram", np.zeros(CLASSES * HISTOGRAM_BINS, np.int64))
    state.put_function("messages", answer)
    state.put_function("replies", serve_hosts)
    s = state.record
    s["reply_flits"], s["reply_delay"], s["reply_places"] = replies.flits, replies.delay_cycles, replies.places
