"""Between a router and a host: answers requests by itself."""

from collections.abc import Hashable
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.network.host_vcs import sized
from hopforge.hw.network.packet_sender import send_packets
from hopforge.hw.parts.round_robin import RoundRobin, select
from hopforge.hw.ports.flit_buffer import FlitBuffer
from hopforge.hw.ports.input_ports import flit_layout
from hopforge.hw.router.controlled import channel_signature
from hopforge.model.router.params import RouterParams
from hopforge.model.router.reply_rules import ReplyRules

__all__ = ["NetworkInterface", "host_signature"]

_MOST_DELAY = 1024


def host_signature(params: RouterParams) -> wiring.Signature:
    """Return what a host has of a network interface, seen from the interface.

    Requests come in by ``in_valid``, ``in_flit``, never in the cycle after ``busy``; their credits go back. All flits
    that are taken go out; no credit is asked for them.
    """
    vc_bits = max(1, ceil_log2(params.vcs))
    return wiring.Signature(
        {
            "in_valid": In(1),
            "in_flit": In(flit_layout(params)),
            "in_credit_valid": Out(1),
            "in_credit_vc": Out(vc_bits),
            "out_valid": Out(1),
            "out_flit": Out(flit_layout(params)),
            "busy": Out(1),
        }
    )


class NetworkInterface(wiring.Component):
    """Takes requests while a place is free, and sends their replies (docs/definitions/replies.md).

    Requests use the lower half of the VCs, replies the upper one. The head of a reply has source and destination
    exchanged and the tag of the request; its other flits have the data of the head. With ``rules.lengths`` the flits of
    a request say how many its reply has.

    A flit that stands on ``channel`` in cycle x can be taken, and shows on ``host.out``, from x + 1 on; its credit goes
    back a cycle later. ``host.busy`` in cycle t: a flit of a reply is sent, which stands on ``channel`` in t + 1. What
    the host puts on ``host.in`` passes at once. Reset: empty.

    Parameters
    ----------
    params : RouterParams
        The router at which it is.
    rules : ReplyRules
        What is sent back.

    Raises
    ------
    ValueError
        Rules that hardware cannot follow; it names the value.
    """

    channel: Any
    host: Any

    def __init__(self, *, params: RouterParams, rules: ReplyRules):
        most = params.longest_packet
        for name, limit, value, fine in (
            ("vcs", "own in hardware", "shared", rules.own),
            ("sender", "own in hardware", "shared", not rules.one_sender),
            ("queue", "set in hardware", "null", rules.places > 0),
            ("delay_cycles", f"at most {_MOST_DELAY} in hardware", rules.delay_cycles,
             rules.delay_cycles <= _MOST_DELAY),
            ("lengths" if rules.lengths else "flits", f"at most {most} in hardware (router.length_bits)", rules.longest,
             rules.longest <= most),
        ):  # fmt: skip
            if not fine:
                raise ValueError(f"{name} must be {limit}, not {value}")
        self.params, self.rules = params, rules
        self.half = params.vcs // 2
        super().__init__({"channel": In(channel_signature(params)), "host": Out(host_signature(params))})

    @property
    def key(self) -> tuple[Hashable, ...]:
        """All that makes it what it is."""
        p = self.params
        return (
            p.vcs, p.buffer_flits, p.switching, p.vc_release, p.width_bits, p.address_bits, p.tag_bits, p.length_bits,
            self.rules,
        )  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        """Build the receiver, the queue of replies and their sender."""
        m = Module()
        p = self.params
        self.label = Signal(2 * p.address_bits + p.tag_bits)  # of the request whose tail is taken
        self.flits = Signal(range(self.rules.longest + 1))  # of its reply, with lengths of their own
        self.asked = Signal()  # such a tail is taken
        self.left_place = Signal()  # a reply's tail is sent
        self._receiver(m)
        self._sender(m, *self._queue(m))
        return m

    def _receiver(self, m: Module) -> None:
        """Buffer what comes, take a flit in a cycle, return its credit."""
        p, channel, depth = self.params, self.channel, self.params.buffer_flits
        came, place_bits = channel.out_flit, ceil_log2(depth)
        m.submodules.buffer = buffer = FlitBuffer(
            queues=p.vcs, depth=depth, data_bits=p.width_bits, note_bits=2, kind=p.flit_buffers
        )
        m.submodules.turn = turn = RoundRobin(width=p.vcs)
        places = Signal(range(self.rules.places + 1), init=self.rules.places)
        reads = []
        for v in range(p.vcs):
            count = Signal(range(depth + 1), name=f"count{v}")
            write, read = (Signal(place_bits, name=f"{name}{v}") for name in ("write", "read"))
            arrives = channel.out_valid & (came.vc == v)
            asks = buffer.notes[v][0] & (v < self.half)
            m.d.comb += [
                buffer.arrives[v].eq(arrives),
                buffer.write_at[v].eq(write),
                buffer.note_at[v].eq(read),
                turn.requests[v].eq((count != 0) & ~(asks & (places == 0))),
            ]
            m.d.sync += count.eq(count + arrives - turn.grant[v])
            for pointer, moves in ((write, arrives), (read, turn.grant[v])):
                with m.If(moves):
                    m.d.sync += pointer.eq(Mux(pointer == depth - 1, 0, pointer + 1))
            reads.append(sized(read, len(buffer.read_at)) + depth * v)
        taken, kind, vc = Signal(), Signal(2), Signal(max(1, ceil_log2(p.vcs)))
        numbers = [Const(v, len(vc)) for v in range(p.vcs)]
        m.d.comb += [
            buffer.w_data.eq(came.data),
            buffer.w_note.eq(came.kind),
            buffer.read_at.eq(select(turn.grant, [at[: len(buffer.read_at)] for at in reads])),
            taken.eq(turn.grant.any()),
            turn.advance.eq(taken),
            kind.eq(select(turn.grant, list(buffer.notes))),
            vc.eq(select(turn.grant, numbers)),
            self.host.out_valid.eq(taken),
            self.host.out_flit.kind.eq(kind),
            self.host.out_flit.vc.eq(vc),
            self.host.out_flit.data.eq(buffer.data),
        ]
        m.d.sync += [channel.out_credit_valid.eq(taken), channel.out_credit_vc.eq(vc)]
        request = taken & (vc < self.half)
        m.d.sync += places.eq(places + self.left_place - (request & kind[0]))
        self._labels(m, request, kind, vc, buffer.data[: len(self.label)])
        if self.rules.lengths:
            self._lengths(m, request, kind, vc)

    def _of_vc(self, vc: Value) -> Value:
        """Return the place of a VC of requests in an array."""
        return vc[: max(1, ceil_log2(self.half))] if self.half > 1 else Const(0, 1)

    def _lengths(self, m: Module, request: Value, kind: Value, vc: Value) -> None:
        """Count the flits of the requests whose tails have not come; one flit more than the longest stands for more."""
        most = max(length for length, _ in self.rules.lengths)
        counts = Array(Signal(range(most + 2), name=f"taken{v}") for v in range(self.half))
        before, now = counts[self._of_vc(vc)], Signal(range(most + 2), name="taken")
        m.d.comb += now.eq(Mux(kind[0], 1, Mux(before > most, before, before + 1)))
        with m.If(request):
            m.d.sync += before.eq(now)
        with m.Switch(now):
            for length, reply in self.rules.lengths:
                with m.Case(length):
                    m.d.comb += self.flits.eq(reply)
            with m.Default():
                m.d.comb += self.flits.eq(1)

    def _labels(self, m: Module, request: Value, kind: Value, vc: Value, head: Value) -> None:
        """Keep destination, source and tag of the requests whose tails have not come."""
        kept = Array(Signal(len(self.label), name=f"label{v}") for v in range(self.half))
        which = self._of_vc(vc)
        with m.If(request & kind[0]):
            m.d.sync += kept[which].eq(head)
        m.d.comb += [self.asked.eq(request & kind[1]), self.label.eq(Mux(kind[0], head, kept[which]))]

    def _queue(self, m: Module) -> tuple[Signal, Value]:
        """Keep the replies in order: how many may leave, and the label of the first one, with its length behind it."""
        places = self.rules.places
        word = Cat(self.label, self.flits) if self.rules.lengths else self.label
        words = Array(Signal(len(word), name=f"reply{k}") for k in range(places))
        write, read = (Signal(range(max(2, places)), name=name) for name in ("next_reply", "first_reply"))
        self.ripe = Signal(range(places + 1))  # replies that have been created
        with m.If(self.asked):
            m.d.sync += words[write].eq(word)
        for pointer, moves in ((write, self.asked), (read, self.left_place)):
            with m.If(moves):
                m.d.sync += pointer.eq(Mux(pointer == places - 1, 0, pointer + 1))
        created = self.asked
        if self.rules.delay_cycles > 1:
            delayed = Signal(self.rules.delay_cycles - 1)
            m.d.sync += delayed.eq(Cat(self.asked, delayed)[:-1])
            created = delayed[-1]
        m.d.sync += self.ripe.eq(self.ripe + created - self.left_place)
        return self.ripe, Value.cast(words[read])

    def _sender(self, m: Module, ripe: Value, reply: Value) -> None:
        """Send the first reply, a flit a cycle while there are credits; let requests of the host pass beside it."""
        p, channel, host = self.params, self.channel, self.host
        flits = reply[len(self.label) :] if self.rules.lengths else self.rules.flits
        going = send_packets(m, p, channel, range(self.half, p.vcs), flits, ripe, "reply_turn")
        first, sends, last, where = going
        m.d.comb += [self.left_place.eq(sends & last), host.busy.eq(sends)]
        sent = Signal()
        layout = flit_layout(p)
        flit = Signal(layout.size, name="reply_flit")
        view = View(layout, flit)
        m.d.sync += [
            sent.eq(sends),
            view.kind.eq(Cat(first, last)),
            view.vc.eq(where + self.half),
            view.data.eq(self._data(reply[: len(self.label)], flits)),
        ]
        m.d.comb += [
            channel.in_valid.eq(sent | host.in_valid),
            channel.in_flit.as_value().eq(Mux(sent, flit, host.in_flit.as_value())),
            host.in_credit_valid.eq(channel.in_credit_valid & (channel.in_credit_vc < self.half)),
            host.in_credit_vc.eq(channel.in_credit_vc),
        ]

    def _data(self, label: Value, flits: Value | int) -> Value:
        """Return the data of a reply to the request with this destination, source and tag."""
        p, a = self.params, self.params.address_bits
        fields = [label[a : 2 * a], label[:a], label[2 * a :]]
        if p.switching == "vct":
            fields.append(sized(Value.cast(flits), p.length_bits))
        return sized(Cat(*fields), p.width_bits)
