"""Golden host with classes of traffic (docs/definitions/traffic-classes.md)."""

from collections.abc import Sequence

from hopforge.model.router.allocators import first_at_or_after
from hopforge.model.router.flit import Flit
from hopforge.model.router.network import HostModel, Packet, Sender
from hopforge.model.router.params import RouterParams
from hopforge.model.router.quality import Rounds

__all__ = ["ClassHost"]


class ClassHost(HostModel):
    """A host with a source queue for each class of traffic.

    Parameters
    ----------
    params : RouterParams
        The router at which it is; what classes are due at the host is its `quality`, without it all are the same.
    packets : sequence of sequence of Packet
        What each class sends, in order of creation.
    vcs : sequence of sequence of int
        Virtual channels of each class.
    latency_cycles : int
        Latency of its link.
    """

    def __init__(
        self,
        params: RouterParams,
        packets: Sequence[Sequence[Packet]],
        vcs: Sequence[Sequence[int]],
        latency_cycles: int = 1,
    ) -> None:
        super().__init__(params, (), latency_cycles)
        self._senders = [
            Sender(self._link, of_class, list(queue)) for of_class, queue in zip(vcs, packets, strict=True)
        ]
        self._rounds = None if params.quality is None else Rounds(params.quality.weights)
        self._turn = 0

    @property
    def idle(self) -> bool:
        """Everything has been sent."""
        return super().idle and not any(sender.queue for sender in self._senders)

    def _due(self, able: list[int]) -> list[int]:
        """Return the classes that go before the others, of those that can send."""
        quality = self.params.quality
        if quality is None or self._rounds is None:
            return able
        if quality.kind == "strict":
            best = max(quality.priorities[c] for c in able)
            return [c for c in able if quality.priorities[c] == best]
        return [c for c in able if self._rounds.left[c]] or able

    def _send(self, cycle: int) -> Flit | None:
        able = [c for c, sender in enumerate(self._senders) if sender.can_send(cycle)]
        if not able:
            return None
        c = first_at_or_after(self._turn, self._due(able), len(self._senders))
        self._turn = (c + 1) % len(self._senders)
        if self._rounds is not None:
            self._rounds.take(c)
        return self._senders[c].send(cycle)
