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
        From the arrival of a request's tail to the creation of its reply, at least 1.
    own : bool
        Requests use the lower half of the VCs, replies the upper one. Else both use all, and the highest bit of the
        tag says that a packet is a reply.
    places : int
        Replies that the host can keep, 0: no limit.
    """

    flits: int = 1
    delay_cycles: int = 1
    own: bool = True
    places: int = 0


def reply_rules(config: Config) -> ReplyRules | None:
    """Section `traffic.reply`; None: no replies."""
    reply = config.traffic.reply
    if reply is None:
        return None
    return ReplyRules(reply.flits, reply.delay_cycles, reply.vcs == "own", reply.queue or 0)
