"""What hosts send back, as arrays for the kernel (docs/definitions/replies.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.histogram import HISTOGRAM_BINS
from hopforge.model.network.core.kinds import AFTER_LAST, BY_DESTINATION, HOST_VC_BITS
from hopforge.model.network.core.layouts import CLASS_COUNT, CLASSES, REPLIER
from hopforge.model.network.core.state import NetState, NetworkError
from hopforge.model.network.parts.replies import answer, serve_hosts


@dataclass(frozen=True)
class Replies:
    """Replies of every host.

    Attributes
    ----------
    flits : int
        Length of a reply.
    delay_cycles : int
        From the arrival of a request's tail to the creation of its reply.
    places : int
        Replies that a host can keep, 0: no limit.
    lengths : dict
        Length of a request → length of its reply instead; empty: `flits` for all.
    one_sender : bool
        A host sends packet after packet, replies before requests.
    """

    flits: int = 1
    delay_cycles: int = 1
    places: int = 0
    lengths: Mapping[int, int] = field(default_factory=dict)
    one_sender: bool = False

    @property
    def longest(self) -> int:
        """Flits of the longest reply."""
        return max(self.lengths.values(), default=self.flits)

    def flits_of(self, requests: NDArray[Any]) -> NDArray[np.int64]:
        """Lengths of the replies to requests of these lengths, int64[request], in flits."""
        if not self.lengths:
            return np.full(len(requests), self.flits)
        return _by_request(self.lengths)[requests].astype(np.int64)


def _by_request(lengths: Mapping[int, int]) -> NDArray[np.int32]:
    """Length of a reply by that of its request."""
    table = np.zeros(max(lengths, default=0) + 1, np.int32)
    for request, reply in lengths.items():
        table[request] = reply
    return table


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
    state.put("reply_length", _by_request(replies.lengths))
    s = state.record
    s["reply_flits"] = 0 if replies.lengths else replies.flits
    s["reply_delay"], s["reply_places"] = replies.delay_cycles, replies.places
    s["reply_early"] = int(replies.delay_cycles == 0)
    if replies.one_sender:
        if s["injection"] == BY_DESTINATION:
            raise NetworkError("traffic.reply.sender must be own with this routing.algorithm, not shared: destinations "
                               "have virtual channels of their own")  # fmt: skip
        s["injection"] = AFTER_LAST
