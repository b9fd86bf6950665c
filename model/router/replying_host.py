"""Golden host that answers requests (docs/definitions/replies.md)."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from hopforge.model.router.allocators import first_at_or_after
from hopforge.model.router.flit import Flit
from hopforge.model.router.network import HostModel, Packet, Sender
from hopforge.model.router.params import RouterParams
from hopforge.model.router.reply_rules import ReplyRules

__all__ = ["ReplyingHost"]


class _Head(NamedTuple):
    """Fields of the head of a packet."""

    destination: int
    source: int
    tag: int


class ReplyingHost(HostModel):
    """A host that sends a reply for every request.

    The head of a reply has source and destination exchanged and the tag of the request; its other flits have the data
    of the head.

    Parameters
    ----------
    params, packets, latency_cycles
        As for `HostModel`.
    rules : ReplyRules
        What it sends back.
    """

    def __init__(
        self, params: RouterParams, packets: Sequence[Packet], rules: ReplyRules, latency_cycles: int = 1
    ) -> None:
        self.rules = rules
        super().__init__(params, packets, latency_cycles)
        half = params.vcs // 2
        self._replies = Sender(self._link, range(half, params.vcs) if rules.own else range(params.vcs))
        self._waiting: list[deque[Flit]] = [deque() for _ in range(params.vcs)]
        self._turn = 0
        self._places = rules.places
        self._heads: list[_Head | None] = [None] * params.vcs  # requests whose tail has not come, by VC
        self._came = [0] * params.vcs  # of these that have come
        self._last_vc = -1  # of the last packet
        self._sending: Sender | None = None  # with one sender for both: of which a packet is under way

    @property
    def idle(self) -> bool:
        """Everything has been sent, and nothing waits for a place."""
        return super().idle and not self._replies.queue and not any(self._waiting)

    def _sender_vcs(self) -> Sequence[int]:
        return range(self.params.vcs // 2 if self.rules.own else self.params.vcs)

    def _read(self, data: int) -> _Head:
        p = self.params
        address = (1 << p.address_bits) - 1
        tag = data >> 2 * p.address_bits & (1 << p.tag_bits) - 1
        return _Head(data & address, data >> p.address_bits & address, tag)

    def _is_reply(self, flit: Flit) -> bool:
        """Whether a head is that of a reply."""
        if self.rules.own:
            return flit.vc >= self.params.vcs // 2
        return bool(self._read(flit.data).tag >> self.params.tag_bits - 1)

    def _take(self, cycle: int, came: Flit | None) -> Flit | None:
        if came is not None:
            self._waiting[came.vc].append(came)
        full = self.rules.places and not self._places
        possible = [
            vc
            for vc, flits in enumerate(self._waiting)
            if flits and not (full and flits[0].is_head and not self._is_reply(flits[0]))
        ]
        if not possible:
            return None
        vc = first_at_or_after(self._turn, possible, self.params.vcs)
        self._turn = (vc + 1) % self.params.vcs
        flit = self._waiting[vc].popleft()
        if flit.is_head and not self._is_reply(flit):
            self._places -= 1
            self._heads[vc], self._came[vc] = self._read(flit.data), 0
        self._came[vc] += 1
        head = self._heads[vc]
        if flit.is_tail and head is not None:
            self._heads[vc] = None
            self._answer(cycle, head, self.rules.reply_flits(self._came[vc]))
        return flit

    def _answer(self, cycle: int, head: _Head, flits: int) -> None:
        """Create the reply, of so many flits, to a request whose tail is taken in this cycle."""
        p, rules = self.params, self.rules
        tag = head.tag if rules.own else head.tag | 1 << p.tag_bits - 1
        data = head.source | head.destination << p.address_bits | tag << 2 * p.address_bits
        if p.switching == "vct":
            data |= flits << 2 * p.address_bits + p.tag_bits
        leaves = cycle + max(rules.delay_cycles, 1)
        self._replies.queue.append(Packet(leaves, data, flits, data))

    def _send(self, cycle: int) -> Flit | None:
        if self.rules.one_sender:
            return self._send_in_turn(cycle)
        flit = self._replies.send(cycle)
        if flit is None:
            return super()._send(cycle)
        self._places += flit.is_tail
        return flit

    def _send_in_turn(self, cycle: int) -> Flit | None:
        """Send of the packet under way; between two packets a reply that can leave goes before a request."""
        if self._sending is None:
            self._sending = next((each for each in (self._replies, self._sender) if each.is_due(cycle)), None)
            if self._sending is not None:
                self._sending.start_after(self._last_vc)
        flit = None if self._sending is None else self._sending.send(cycle)
        if flit is not None:
            self._last_vc = flit.vc
        if flit is not None and flit.is_tail:
            self._sending = None
        return flit
