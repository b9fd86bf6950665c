"""A host of a network on a board: sends random packets, checks what it gets."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.network.host_vcs import HostVcs, sized
from hopforge.hw.parts.round_robin import RoundRobin
from hopforge.hw.parts.xorshift import next_word
from hopforge.hw.ports.input_ports import flit_layout
from hopforge.hw.router.controlled import channel_signature
from hopforge.model.lookup.csr import WORD_BITS
from hopforge.model.router.params import RouterParams

__all__ = ["HOST_COUNTERS", "TrafficHost"]

HOST_COUNTERS = ("sent", "received", "packets", "wrong", "checksum")
"""Words of a host, in the order of their addresses."""

_LENGTH_BITS = 3


class TrafficHost(wiring.Component):
    """Host of a network, as in docs/definitions/board-protocol.md and docs/definitions/router.md (Hosts).

    ``start`` begins a run in the next cycle with the settings that stand at the inputs. ``done``: all packets are sent.
    ``sends``, ``taken``, ``refuses``: a flit is sent, taken, refused by the checker. The words are those of its
    registers.
    Latency of its link: 1. Reset: no packets, all credits.

    Parameters
    ----------
    params : RouterParams
        The router at which it is.
    number, hosts : int
        Its number, of how many.
    """

    channel: Any
    start: Signal
    seed: Signal
    count: Signal
    period: Signal
    lengths: Signal
    done: Signal
    sends: Signal
    taken: Signal
    refuses: Signal
    sent: Signal
    received: Signal
    packets: Signal
    wrong: Signal
    checksum: Signal

    def __init__(self, *, params: RouterParams, number: int, hosts: int):
        self.params, self.number, self.hosts = params, number, hosts
        super().__init__(
            {
                "channel": In(channel_signature(params)),
                "start": In(1),
                "seed": In(WORD_BITS),
                "count": In(WORD_BITS),
                "period": In(WORD_BITS),
                "lengths": In(_LENGTH_BITS),
                "done": Out(1),
                "sends": Out(1),
                "taken": Out(1),
                "refuses": Out(1),
                **{name: Out(WORD_BITS) for name in HOST_COUNTERS},
            }
        )
        self.waiting = Signal(WORD_BITS)  # packets that are there and not begun
        self.unborn = Signal(WORD_BITS)  # packets to come
        self.tag = Signal(params.tag_bits)
        self.word = Signal(WORD_BITS)

    def elaborate(self, platform: object) -> Module:
        """Build the source, the sender and the checker."""
        m = Module()
        self._source(m)
        self._sender(m)
        self._receiver(m)
        return m

    def _source(self, m: Module) -> None:
        """Create a packet in each period."""
        timer = Signal(WORD_BITS)
        period = Signal(WORD_BITS)
        self.begins = Signal()  # a packet is begun
        born = Signal()
        m.d.comb += [born.eq((timer == 0) & (self.unborn != 0)), self.done.eq((self.unborn | self.waiting) == 0)]
        with m.If(self.start):
            m.d.sync += [
                self.waiting.eq(self.count != 0),
                self.unborn.eq(Mux(self.count == 0, 0, self.count - 1)),
                period.eq(Mux(self.period == 0, 0, self.period - 1)),
                timer.eq(Mux(self.period == 0, 0, self.period - 1)),
                self.word.eq(Mux(self.seed == 0, 1, self.seed)),
                self.tag.eq(0),
            ]
        with m.Else():
            m.d.sync += [
                timer.eq(Mux(timer == 0, period, timer - 1)),
                self.unborn.eq(self.unborn - born),
                self.waiting.eq(self.waiting + born - self.begins),
            ]

    def _sender(self, m: Module) -> None:
        """Send the packet in front, one flit a cycle while there are credits."""
        p, channel = self.params, self.channel
        v = p.vcs
        vc_bits = max(1, ceil_log2(v))
        own = HostVcs(p, range(v))
        left = Signal(range(10))  # flits of the packet under way
        vc = Signal(vc_bits)
        length = Signal(range(9))
        m.d.comb += length.eq(1 + (self.word[8 : 8 + _LENGTH_BITS] & self.lengths))
        need = length if p.switching == "vct" else 1
        m.submodules.turn = turn = RoundRobin(width=v)
        chosen, first = Signal(vc_bits), Signal()
        m.d.comb += [
            turn.requests.eq(own.possible(need)),
            first.eq((left == 0) & (self.waiting != 0) & turn.requests.any()),
            turn.advance.eq(first),
            chosen.eq(Cat(Cat(turn.grant[w] for w in range(v) if w >> bit & 1).any() for bit in range(vc_bits))),
        ]
        where = Signal(vc_bits)
        sends, last = Signal(), Signal()
        m.d.comb += [
            where.eq(Mux(left == 0, chosen, vc)),
            sends.eq(first | ((left != 0) & (own.credits[vc] != 0))),
            last.eq(Mux(left == 0, length == 1, left == 1)),
            self.sends.eq(sends),
        ]
        with m.If(first):
            m.d.sync += [vc.eq(chosen), left.eq(length - 1)]
        with m.Elif(sends):
            m.d.sync += left.eq(left - 1)
        m.d.comb += self.begins.eq(sends & last)
        with m.If(self.begins & ~self.start):
            m.d.sync += [self.word.eq(next_word(self.word)), self.tag.eq(self.tag + 1)]
        own.follow(m, channel, sends, where, last)
        kind, flit = Cat(first, last), channel.in_flit
        m.d.sync += [
            channel.in_valid.eq(sends),
            flit.kind.eq(kind),
            flit.vc.eq(where),
            flit.data.eq(Mux(first, *self._data(length))),
        ]
        with m.If(self.start):
            m.d.sync += self.sent.eq(0)
        with m.Elif(sends):
            m.d.sync += self.sent.eq(self.sent + 1)

    def _data(self, length: Value) -> tuple[Value, Value]:
        """Return data of a head and of any other flit."""
        p = self.params
        place = (self.word[:8] * (self.hosts - 1))[8:16]
        destination = Mux(place >= self.number, place + 1, place)
        own = Const(self.number, p.address_bits)
        head = Cat(sized(destination, p.address_bits), own, self.tag)
        if p.switching == "vct":
            head = Cat(head, sized(length, p.length_bits))
        body = Cat(own, self.tag, self.word)
        return sized(head, p.width_bits), sized(body, p.width_bits)

    def _receiver(self, m: Module) -> None:
        """Take flits a cycle after they stand at the router, give their credits back, check them."""
        p, channel = self.params, self.channel
        flit = Signal(flit_layout(p).size, name="arrived_flit")
        view = View(flit_layout(p), flit)
        arrived = Signal()
        m.d.sync += [
            arrived.eq(channel.out_valid), flit.eq(channel.out_flit.as_value()),
            channel.out_credit_valid.eq(arrived), channel.out_credit_vc.eq(view.vc),
        ]  # fmt: skip
        a, t = p.address_bits, p.tag_bits
        inside = Array(Signal(name=f"inside{w}") for w in range(p.vcs))
        label = Array(Signal(a + t, name=f"label{w}") for w in range(p.vcs))
        is_head, is_tail = view.kind[0], view.kind[1]
        vc = view.vc
        of_head = view.data[a : 2 * a + t]
        refused = Signal()
        with m.If(is_head):
            m.d.comb += refused.eq((view.data[:a] != self.number) | inside[vc])
        with m.Else():
            m.d.comb += refused.eq(~inside[vc] | (view.data[: a + t] != label[vc]))
        m.d.comb += [self.taken.eq(arrived), self.refuses.eq(arrived & refused)]
        with m.If(arrived):
            m.d.sync += inside[vc].eq(~is_tail)
            with m.If(is_head):
                m.d.sync += label[vc].eq(of_head)
        self._count(m, arrived, is_tail, refused, _folded(view.data) ^ view.kind)

    def _count(self, m: Module, arrived: Value, tail: Value, refused: Value, fold: Value) -> None:
        """Count a cycle after a flit is taken."""
        came, was_tail, was_wrong = Signal(), Signal(), Signal()
        word = Signal(WORD_BITS)
        m.d.sync += [came.eq(arrived), was_tail.eq(tail), was_wrong.eq(refused), word.eq(fold)]
        counters = (self.received, self.packets, self.wrong, self.checksum)
        with m.If(self.start):
            m.d.sync += [counter.eq(0) for counter in counters]
        with m.Elif(came):
            m.d.sync += [
                self.received.eq(self.received + 1),
                self.packets.eq(self.packets + was_tail),
                self.wrong.eq(self.wrong + was_wrong),
                self.checksum.eq(self.checksum.rotate_left(1) ^ word),
            ]


def _folded(data: Value) -> Value:
    """XOR of the words of the data."""
    words = [sized(data[at : at + WORD_BITS], WORD_BITS) for at in range(0, len(data), WORD_BITS)]
    total = words[0]
    for word in words[1:]:
        total = total ^ word
    return total
