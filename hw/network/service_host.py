"""The service host of a router: keeps entries of packets, and acknowledges them one hop at a time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.data import View
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.network.host_vcs import sized
from hopforge.hw.network.packet_sender import send_packets
from hopforge.hw.network.routed_table import RoutedTable
from hopforge.hw.parts.round_robin import select
from hopforge.hw.ports.input_ports import HEAD, TAIL, flit_layout
from hopforge.hw.router.controlled import channel_signature
from hopforge.model.router.params import RouterParams

if TYPE_CHECKING:  # a configuration loads all topologies
    from hopforge.model.router.acknowledging_host import HardwareRules

__all__ = ["ServiceHost"]


class ServiceHost(Component):
    """Takes acknowledges whole, and sends them on (docs/definitions/service-host.md; ports and their times there).

    Throughput: a head from each port, a packet that is taken, a flit each way in a cycle. Reset: empty, time 0.

    Parameters
    ----------
    params : RouterParams
        The router at which it is; the last port is its own.
    rules : HardwareRules
        What it does.
    host_ports : sequence of int
        Ports with hosts.
    vcs : sequence of int
        VCs of acknowledges.

    Raises
    ------
    ValueError
        Rules that hardware cannot follow; it names the value.
    """

    def __init__(
        self, *, params: RouterParams, rules: "HardwareRules", host_ports: Sequence[int], vcs: Sequence[int]
    ) -> None:
        rules.check(params)
        self.params, self.rules = params, rules
        self.host_ports, self.vcs = tuple(host_ports), tuple(vcs)
        self.heads = params.ports - 1
        self.label_bits = params.address_bits + params.tag_bits
        number, self.port_bits = ceil_log2(self.heads + 1), max(1, ceil_log2(self.heads))
        super().__init__({
            "channel": In(channel_signature(params)), "behind": In(self.heads * params.address_bits),
            "head_valid": In(self.heads), "head_label": In(self.heads * self.label_bits),
            "head_note": In(self.heads * rules.note_bits),
            "taken_valid": In(1), "taken_label": In(self.label_bits), "taken_port": In(self.port_bits),
            "taken_stamp": In(rules.time_bits),
            "told_valid": Out(1), "told_note": Out(rules.note_bits), "told_cycles": Out(rules.time_bits),
            "entered": Out(number), "table_full": Out(number), "expired": Out(number),
            **{name: Out(1) for name in ("made", "own_full", "sent", "home", "no_entry", "queue_full")},
        })  # fmt: skip

    channel: Any
    behind: Signal
    head_valid: Signal
    head_label: Signal
    head_note: Signal
    taken_valid: Signal
    taken_label: Signal
    taken_port: Signal
    taken_stamp: Signal
    told_valid: Signal
    told_note: Signal
    told_cycles: Signal
    entered: Signal
    table_full: Signal
    expired: Signal
    made: Signal
    own_full: Signal
    sent: Signal
    home: Signal
    no_entry: Signal
    queue_full: Signal

    def elaborate(self, platform: object) -> Module:
        """Build table, receiver, queue and sender."""
        m = Module()
        rules = self.rules
        m.submodules.table = self.table = RoutedTable(
            depth=rules.table, heads=self.heads, label_bits=self.label_bits, note_bits=rules.note_bits,
            time_bits=rules.time_bits, age_limit=rules.age_limit_cycles,
        )  # fmt: skip
        self._enter(m)
        whole, label, stamp = self._receive(m)
        kept, left_own, left_kept = Signal(range(rules.places + 1)), Signal(), Signal()
        own, pushed = self._look(m, whole, label, stamp, kept)
        mine = Signal(range(rules.own + 1))  # acknowledges of the router's own that wait
        m.d.comb += [
            self.made.eq(own & (mine != rules.own)),
            self.own_full.eq(own & (mine == rules.own)),
            self.sent.eq(pushed),
        ]
        m.d.sync += [kept.eq(kept + pushed - left_kept), mine.eq(mine + self.made - left_own)]
        self._send(m, label, stamp, left_own, left_kept)
        return m

    def _asks(self, label: Value) -> Value:
        """Whether a packet asks for an acknowledge: the number behind its tag is a multiple of the ratio."""
        low = ceil_log2(self.rules.ratio)
        address = self.params.address_bits
        return label[address : address + low].all() if low else Const(1, 1)

    def _enter(self, m: Module) -> None:
        """Let the heads of this cycle have their entries; count the time."""
        table, now = self.table, Signal(self.rules.time_bits)
        m.d.sync += now.eq(now + 1)
        labels = [self.head_label.word_select(head, self.label_bits) for head in range(self.heads)]
        m.d.comb += [
            table.now.eq(now),
            table.enter.eq(Cat(self.head_valid[head] & self._asks(label) for head, label in enumerate(labels))),
            table.labels.eq(self.head_label),
            table.notes.eq(self.head_note),
            self.entered.eq(table.entered),
            self.table_full.eq(table.refused),
            self.expired.eq(table.expired),
        ]

    def _receive(self, m: Module) -> tuple[Signal, Signal, Signal]:
        """Take a flit a cycle after it stood at the port: whether it was a tail, the label, the stamp."""
        p, channel = self.params, self.channel
        came = Signal()
        flit: Any = Signal(flit_layout(p))
        m.d.sync += [came.eq(channel.out_valid), flit.eq(channel.out_flit)]
        m.d.sync += [channel.out_credit_valid.eq(came), channel.out_credit_vc.eq(flit.vc)]
        kept = Array(Signal(self.label_bits, name=f"label{v}") for v in range(p.vcs))
        with m.If(came & flit.kind[HEAD]):
            m.d.sync += kept[flit.vc].eq(flit.data[p.address_bits : p.address_bits + self.label_bits])
        whole = Signal()
        label, stamp = Signal(self.label_bits), Signal(self.rules.time_bits)
        m.d.comb += [
            whole.eq(came & flit.kind[TAIL]), label.eq(kept[flit.vc]), stamp.eq(flit.data[: self.rules.time_bits])
        ]  # fmt: skip
        return whole, label, stamp

    def _look(self, m: Module, whole: Signal, label: Signal, stamp: Signal, kept: Signal) -> tuple[Value, Signal]:
        """Find the entry of an acknowledge; whether the router has one of its own to make, and one goes on."""
        table, full, on = self.table, Signal(), Signal()
        at_host = [Const(int(port in self.host_ports), 1) for port in range(self.heads)]
        from_host = Signal()
        m.d.comb += [
            full.eq(kept == self.rules.places),
            table.find.eq(whole & ~full),
            table.find_label.eq(label),
            self.queue_full.eq(whole & full),
            self.no_entry.eq(table.find & ~table.found),
            from_host.eq(Array(at_host)[table.found_port]),
            self.home.eq(table.found & from_host),
            on.eq(table.found & ~from_host),
            self.told_valid.eq(table.found),
            self.told_note.eq(table.found_note),
            self.told_cycles.eq(stamp - table.found_time),
        ]
        own = self.taken_valid & ~Array(at_host)[self.taken_port] & self._asks(self.taken_label)
        return own, on

    def _queue(self, m: Module, label: Signal, stamp: Signal, leaves: Signal) -> tuple[Signal, Value]:
        """Keep acknowledges in the order of their creation: how many may leave, and the first one."""
        rules, places = self.rules, self.rules.places + self.rules.own
        found = Cat(label, stamp, self.table.found_port, Const(1, 1))
        made = Cat(self.taken_label, self.taken_stamp, self.taken_port, Const(0, 1))
        words = Array(Signal(len(made), name=f"waits{k}", reset_less=True) for k in range(places))
        write, read = Signal(range(places)), Signal(range(places))
        after = Signal(range(places))
        m.d.comb += after.eq(Mux(write == places - 1, 0, write + 1))
        two = self.made & self.sent
        with m.If(self.made | self.sent):
            m.d.sync += [words[write].eq(Mux(self.made, made, found)), write.eq(after)]
        with m.If(two):
            m.d.sync += [words[after].eq(found), write.eq(Mux(after == places - 1, 0, after + 1))]
        with m.If(leaves):
            m.d.sync += read.eq(Mux(read == places - 1, 0, read + 1))
        ripe, created = Signal(range(places + 1)), self.made + self.sent
        for number in range(1, rules.delay_cycles):
            later = Signal(2, name=f"created{number}")
            m.d.sync += later.eq(created)
            created = later
        m.d.sync += ripe.eq(ripe + created - leaves)
        return ripe, words[read]

    def _send(self, m: Module, label: Signal, stamp: Signal, left_own: Signal, left_kept: Signal) -> None:
        """Send the first acknowledge that waits."""
        p, rules, channel, leaves = self.params, self.rules, self.channel, Signal()
        ripe, word = self._queue(m, label, stamp, leaves)
        going = send_packets(m, p, channel, self.vcs, rules.flits, ripe, "turn")
        first = Signal(self.label_bits + rules.time_bits + self.port_bits + 1)
        m.d.comb += [
            first.eq(word),
            leaves.eq(going.sends & going.last),
            left_kept.eq(leaves & first[-1]),
            left_own.eq(leaves & ~first[-1]),
        ]
        port = first[self.label_bits + rules.time_bits : -1]
        to = Array(self.behind.word_select(k, p.address_bits) for k in range(self.heads))[port]
        fields = [to, first[: self.label_bits]]
        if p.switching == "vct":
            fields.append(Const(rules.flits, p.length_bits))
        head, rest = sized(Cat(*fields), p.width_bits), sized(first[self.label_bits :][: rules.time_bits], p.width_bits)
        numbers = [Const(v, max(1, ceil_log2(p.vcs))) for v in self.vcs]
        flit = View(flit_layout(p), Signal(flit_layout(p).size, name="flit_sent"))
        m.d.sync += [
            channel.in_valid.eq(going.sends),
            flit.kind.eq(Cat(going.first, going.last)),
            flit.vc.eq(select(Cat(going.where == k for k in range(len(self.vcs))), numbers)),
            flit.data.eq(Mux(going.first, head, rest)),
        ]
        m.d.comb += channel.in_flit.eq(flit)
