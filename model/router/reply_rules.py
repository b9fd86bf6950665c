"""What a host sends back for a request: parameters of the golden host and of the interface in hardware."""

from dataclasses import dataclass

from hopforge.model.config import Config

__all__ = ["ReplyRules", "reply_rules"]


@dataclass(frozen=True)
class ReplyRules:
    """What a host sends back (docs/definitions/replies.md).

    Attributes
    ----------
    flits : int
        Length of a reply.
    delay_cycles : int
        From the arrival of a request's tail to the creation of its reply, which leaves a cycle later at the earliest.
    own : bool
        Requests use the lower half of the VCs, replies the upper one. Else both use all, and the highest bit of the
        tag says that a packet is a reply.
    places : int
        Replies that the host can keep, 0: no limit.
    lengths : tuple of (int, int)
        Length of a request and that of its reply instead; the reply to any other has a flit.
    one_sender : bool
        The host sends packet after packet, replies before requests.
    """

    flits: int = 1
    delay_cycles: int = 1
    own: bool = True
    places: int = 0
    lengths: tuple[tuple[int, int], ...] = ()
    one_sender: bool = False

    @property
    def longest(self) -> int:
        """Flits of the longest reply."""
        return max((reply for _, reply in self.lengths), default=self.flits)

    def reply_flits(self, request_flits: int) -> int:
        """Flits of the reply to a request of so many."""
        return dict(self.lengths).get(request_flits, 1) if self.lengths else self.flits


def reply_rules(config: Config) -> ReplyRules | None:
    """Section `traffic.reply`; None: no replies."""
    reply = config.traffic.reply
    if reply is None:
        return None
    lengths = tuple(config.traffic.reply_lengths().items())
    return ReplyRules(
        reply.flits, reply.delay_cycles, reply.vcs == "own", reply.queue or 0, lengths, reply.sender == "shared"
    )
