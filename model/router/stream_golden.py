"""An AXI-Stream adapter, cycle by cycle (docs/definitions/stream-adapter.md)."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from hopforge.model.router.stream_params import WAITING, StreamParams

__all__ = ["Beat", "Flit", "StreamReceiverGolden", "StreamSenderGolden", "packet_flits"]

_BODY, _HEAD, _TAIL, _SINGLE = range(4)


class Beat(NamedTuple):
    """What stands on a stream; `source` on the master only."""

    data: int
    keep: int
    last: bool
    dest: int
    user: int = 0
    source: int = 0


class Flit(NamedTuple):
    """A flit on the port of the router."""

    kind: int
    vc: int
    data: int


@dataclass
class _Packet:
    """What is known of a packet of the host."""

    dest: int
    user: int
    data: list[int] = field(default_factory=list)
    last_bytes: int = 0


def packet_flits(params: StreamParams, packet: list[Beat], vc: int) -> list[Flit]:
    """Return the flits of a good packet."""
    first, last = packet[0], packet[-1]
    kept = _Packet(first.dest, first.user, [beat.data for beat in packet], last.keep.bit_count())
    return [Flit(_HEAD, vc, _header(params, kept))] + [
        Flit(_TAIL if number == len(packet) - 1 else _BODY, vc, beat.data) for number, beat in enumerate(packet)
    ]


def _header(params: StreamParams, packet: _Packet) -> int:
    p = params.router
    fields = [(packet.dest, p.address_bits), (params.own, p.address_bits)]
    fields.append((packet.user << params.last_bits | packet.last_bytes - 1, p.tag_bits))
    if p.switching == "vct":
        fields.append((len(packet.data) + 1, p.length_bits))
    word = at = 0
    for value, width in fields:
        word |= value << at
        at += width
    return word


class StreamSenderGolden:
    """From the host to the router.

    Attributes
    ----------
    ready : bool
        ``tready`` of this cycle.
    flit : Flit or None
        What stands on the port in this cycle.
    long, malformed : bool
        Whether the cycle before ended such a packet.
    """

    def __init__(self, params: StreamParams) -> None:
        self.params = params
        self.credits = [params.send_credits] * params.router.vcs
        self.waiting: deque[_Packet] = deque()
        self.coming: _Packet | None = None
        self.bad = ""
        self.pointer = 0
        self.sending: tuple[int, int] | None = None  # VC, beats sent
        self.flit: Flit | None = None
        self.long = self.malformed = False

    @property
    def ready(self) -> bool:
        """Whether a beat is taken in this cycle."""
        if self.bad:
            return True
        sent = self.sending[1] if self.sending else 0
        stored = sum(len(packet.data) for packet in self.waiting) - sent
        stored += len(self.coming.data) if self.coming else 0
        return stored < 2 * self.params.beats and len(self.waiting) < WAITING

    def step(self, beat: Beat | None, credit_vc: int | None) -> None:
        """Do a cycle: `beat` stands on the stream, `credit_vc` on the port."""
        taken = beat if self.ready else None
        self.flit = self._send()
        if credit_vc is not None:
            self.credits[credit_vc] += 1
        self.long = self.malformed = False
        if taken is not None:
            self._take(taken)

    def _take(self, beat: Beat) -> None:
        if self.coming is None:
            self.coming = _Packet(beat.dest, beat.user)
        packet, whole = self.coming, (1 << self.params.bytes) - 1
        if not self.bad:
            ones = beat.keep.bit_count()
            kept = beat.keep == whole or (beat.last and beat.keep == (1 << ones) - 1 and ones > 0)
            if len(packet.data) == self.params.beats:
                self.bad = "long"
            elif not kept or beat.dest != packet.dest:
                self.bad = "malformed"
            else:
                packet.data.append(beat.data)
                packet.last_bytes = ones
            if self.bad:
                packet.data = []
        if beat.last:
            self.long, self.malformed = self.bad == "long", self.bad == "malformed"
            if not self.bad:
                self.waiting.append(packet)
            self.coming, self.bad = None, ""

    def _send(self) -> Flit | None:
        if self.sending is None:
            return self._begin() if self.waiting else None
        vc, sent = self.sending
        if not self.credits[vc]:
            return None
        packet = self.waiting[0]
        last = sent + 1 == len(packet.data)
        self.credits[vc] -= 1
        self.sending = None if last else (vc, sent + 1)
        if last:
            self.waiting.popleft()
        return Flit(_TAIL if last else _BODY, vc, packet.data[sent])

    def _begin(self) -> Flit | None:
        vcs, packet = self.params.router.vcs, self.waiting[0]
        for step in range(vcs):
            vc = (self.pointer + step) % vcs
            if self.params.vcs_at_injection >> vc & 1 and self._room(vc, len(packet.data) + 1):
                self.credits[vc] -= 1
                self.pointer = (vc + 1) % vcs
                self.sending = (vc, 0)
                return Flit(_HEAD, vc, _header(self.params, packet))
        return None

    def _room(self, vc: int, flits: int) -> bool:
        p = self.params.router
        needed = flits if p.switching == "vct" else 1
        if p.vc_release == "credits":
            needed = self.params.send_credits
        return self.credits[vc] >= needed


class StreamReceiverGolden:
    """From the router to the host.

    Attributes
    ----------
    beat : Beat or None
        What stands on the stream in this cycle.
    credit : int or None
        VC whose credit stands on the port in this cycle.
    malformed : bool
        Whether the cycle before had a flit without a packet.
    """

    def __init__(self, params: StreamParams) -> None:
        self.params = params
        self.queues: list[deque[Flit]] = [deque() for _ in range(params.router.vcs)]
        self.pointer = 0
        self.header: tuple[int, int] | None = None  # VC and head of the packet
        self.beat: Beat | None = None
        self.credit: int | None = None
        self.malformed = False

    def step(self, flit: Flit | None, ready: bool) -> None:
        """Do a cycle: `flit` stands on the port, `ready` on the stream."""
        free = self.beat is None or ready
        if free:
            self.beat = None
        self.credit, self.malformed = None, False
        if self.header is None:
            self._begin()
        elif free:
            self._go_on(*self.header)
        if flit is not None:
            self.queues[flit.vc].append(flit)

    def _begin(self) -> None:
        vcs = len(self.queues)
        for step in range(vcs):
            vc = (self.pointer + step) % vcs
            if self.queues[vc]:
                flit = self.queues[vc].popleft()
                self.pointer, self.credit = (vc + 1) % vcs, vc
                if flit.kind == _HEAD:
                    self.header = (vc, flit.data)
                else:
                    self.malformed = True
                return

    def _go_on(self, vc: int, header: int) -> None:
        if not self.queues[vc]:
            return
        flit = self.queues[vc].popleft()
        self.credit = vc
        if flit.kind in (_HEAD, _SINGLE):
            self.malformed = True
            return
        p, whole = self.params.router, (1 << self.params.bytes) - 1
        bits = p.address_bits
        tag = header >> 2 * bits & (1 << p.tag_bits) - 1
        count = (tag & (1 << self.params.last_bits) - 1) + 1
        last = flit.kind == _TAIL
        self.beat = Beat(
            data=flit.data, keep=whole & (1 << count) - 1 if last else whole, last=last,
            dest=header & (1 << bits) - 1, source=header >> bits & (1 << bits) - 1, user=tag >> self.params.last_bits,
        )  # fmt: skip
        if last:
            self.header = None
