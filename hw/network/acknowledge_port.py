"""What a router of a network needs to acknowledge packets: it watches the channels, and serves the service port."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from amaranth.hdl import Array, Cat, Module, Signal, Value
from amaranth.lib.wiring import Component, In, Out, connect, flipped

from hopforge.hw.network.routed_table import RoutedTable
from hopforge.hw.network.service_host import ServiceHost
from hopforge.hw.ports.input_ports import HEAD, TAIL, flit_layout
from hopforge.hw.router.controlled import channel_signature
from hopforge.model.router.params import RouterParams

if TYPE_CHECKING:  # a configuration loads all topologies
    from hopforge.model.router.acknowledging_host import HardwareRules

__all__ = ["AcknowledgePort", "AcknowledgeSetup"]


class AcknowledgeSetup(NamedTuple):
    """What serves acknowledges at every router: its rules, and the VCs that it sends on."""

    rules: "HardwareRules"
    vcs: tuple[int, ...]


class AcknowledgePort(Component):
    """Tells a `ServiceHost` of the heads that come to its router, and of the packets that the router's host takes.

    A head that stands at an input of the router in cycle x stands in its buffer from x + 1 on. If it goes on, the
    service host makes an entry; if it is at home, port and time are kept in a table of arrivals until the host takes
    its tail, `host_latency_cycles` after that has left the router. Reset: empty.

    Parameters
    ----------
    params : RouterParams
        The router; its last port is the service port.
    rules : HardwareRules
        What the service host does.
    host_port : int
        Port of the only host.
    hosts : int
        Of the network; higher addresses are those of service hosts.
    vcs : sequence of int
        VCs of acknowledges.
    host_latency_cycles : int
        Latency of the host's link.
    """

    channel: Any
    behind: Signal
    host: Signal
    came_valid: Signal
    came_flit: Signal
    left_valid: Signal
    left_flit: Any
    own_full: Signal
    arrivals_full: Signal

    def __init__(
        self, *, params: RouterParams, rules: "HardwareRules", host_port: int, hosts: int, vcs: Sequence[int],
        host_latency_cycles: int = 1,
    ) -> None:  # fmt: skip
        self.params, self.rules, self.host_port, self.hosts = params, rules, host_port, hosts
        self.vcs, self.host_latency_cycles = tuple(vcs), host_latency_cycles
        self.heads, self.flit_bits = params.ports - 1, flit_layout(params).size
        super().__init__({
            "channel": In(channel_signature(params)),
            "behind": In(self.heads * params.address_bits), "host": In(params.address_bits),
            "came_valid": In(self.heads), "came_flit": In(self.heads * self.flit_bits),
            "left_valid": In(1), "left_flit": In(flit_layout(params)),
            "arrivals_full": Out(1), "own_full": Out(1),
        })  # fmt: skip

    @property
    def key(self) -> tuple[Any, ...]:
        """All that makes it what it is."""
        p = self.params
        return (
            p.ports, p.vcs, p.buffer_flits, p.switching, p.vc_release, p.width_bits, p.address_bits, p.tag_bits,
            p.length_bits, self.rules, self.host_port, self.hosts, self.vcs, self.host_latency_cycles,
        )  # fmt: skip

    def _service(self) -> ServiceHost:
        return ServiceHost(params=self.params, rules=self.rules, host_ports=(self.host_port,), vcs=self.vcs)

    def elaborate(self, platform: object) -> Module:
        """Build the service host, the watch at the inputs and the one at the host."""
        m = Module()
        m.submodules.service = service = self._service()
        arrivals = RoutedTable(
            depth=self.rules.arrivals, heads=self.heads, label_bits=service.label_bits, note_bits=0,
            time_bits=self.rules.time_bits, age_limit=None,
        )  # fmt: skip
        m.submodules.arrivals = arrivals
        connect(m, flipped(self.channel), service.channel)
        p, now = self.params, Signal(self.rules.time_bits)
        came, at_home, labels = self._heads(m, service.label_bits)
        whole, label = self._taken(m, service.label_bits)
        m.d.sync += now.eq(now + 1)
        m.d.comb += [
            service.behind.eq(self.behind),
            service.head_valid.eq(Cat(one & ~home for one, home in zip(came, at_home, strict=True))),
            service.head_label.eq(Cat(labels)),
            arrivals.now.eq(now),
            arrivals.enter.eq(Cat(one & home for one, home in zip(came, at_home, strict=True))),
            arrivals.labels.eq(Cat(labels)),
            arrivals.find.eq(whole),
            arrivals.find_label.eq(label),
            service.taken_valid.eq(arrivals.found),
            service.taken_label.eq(label),
            service.taken_port.eq(arrivals.found_port),
            service.taken_stamp.eq(arrivals.found_time),
            self.arrivals_full.eq(arrivals.refused != 0),
            self.own_full.eq(service.own_full),
        ]
        assert p.ports == self.heads + 1
        return m

    def _heads(self, m: Module, label_bits: int) -> tuple[list[Value], list[Value], list[Value]]:
        """For each port: whether the head of a packet has come, whether it is at home, its label."""
        came, at_home, labels, a = [], [], [], self.params.address_bits
        data_at = self.flit_bits - self.params.width_bits
        for port in range(self.heads):
            flit = self.came_flit.word_select(port, self.flit_bits)
            head, start = Signal(name=f"head{port}"), Signal(a + label_bits, name=f"start{port}")
            m.d.sync += [
                head.eq(self.came_valid[port] & flit[HEAD]), start.eq(flit[data_at : data_at + a + label_bits])
            ]  # fmt: skip
            came.append(head & (start[:a] < self.hosts))
            at_home.append(start[:a] == self.host)
            labels.append(start[a:])
        return came, at_home, labels

    def _taken(self, m: Module, label_bits: int) -> tuple[Value, Value]:
        """Whether the host takes a tail in this cycle, and the label of its packet."""
        flit, a = self.left_flit, self.params.address_bits
        kept = Array(Signal(label_bits, name=f"leaving{v}") for v in range(self.params.vcs))
        whole: Value = Signal()
        label: Value = Signal(label_bits)
        head = flit.data[a : a + label_bits]
        with m.If(self.left_valid & flit.kind[HEAD]):
            m.d.sync += kept[flit.vc].eq(head)
        m.d.comb += [whole.eq(self.left_valid & flit.kind[TAIL]), label.eq(kept[flit.vc])]
        with m.If(flit.kind[HEAD]):
            m.d.comb += label.eq(head)
        for cycle in range(self.host_latency_cycles):
            later, later_label = Signal(name=f"taken{cycle}"), Signal(label_bits, name=f"taken_label{cycle}")
            m.d.sync += [later.eq(whole), later_label.eq(label)]
            whole, label = later, later_label
        return whole, label
