"""A router with an AXI-Stream adapter at every host port."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.parts.shared import shared
from hopforge.hw.router.controlled import ControlledRouter, channel_signature
from hopforge.hw.streams.receiver import StreamReceiver
from hopforge.hw.streams.sender import StreamSender
from hopforge.model.lookup.csr import CSR_ADDR_BITS, WORD_BITS
from hopforge.model.router.csr import router_csr_map
from hopforge.model.router.params import RouterParams
from hopforge.model.router.stream_params import STREAM_PAGE, StreamParams, stream_map

__all__ = ["StreamedRouter", "router_with_streams"]


class StreamedRouter(wiring.Component):
    """`ControlledRouter` (which see) with streams of packets in the place of some of its ports.

    Definition: docs/definitions/stream-adapter.md. Reset: as of router and adapters.

    - ``port_i``: flits and credits of port i, for ports without an adapter.
    - ``s_axis_i_…``, ``m_axis_i_…``: packets to and from the router at port i.
    - The others are those of the router; ``csr`` also reaches the counters of the adapters.

    Parameters
    ----------
    params : RouterParams
        The router.
    streams : sequence of StreamParams
        The adapters, at most one at a port.
    events : bool
        With ``dropped``, for an interrupt: by router or adapters.

    Raises
    ------
    ValueError
        No adapter, or two at a port.
    """

    csr: Any
    number: Signal
    dropped: Signal
    memory_error: Signal
    link_change: Signal
    tcam: Sequence[Any]

    def __init__(self, *, params: RouterParams, streams: Sequence[StreamParams], events: bool = False):
        ports = [stream.port for stream in streams]
        if not ports or len(set(ports)) != len(ports):
            raise ValueError(f"streams must be at least one, each at a port of its own, not at {ports}")
        self.params, self.streams, self.events = params, tuple(streams), events
        self.router = ControlledRouter(params=params, events=events)
        members = {name: member for name, member in self.router.signature.members.items() if name != "port"}
        for port in range(params.ports):
            if port not in ports:
                members[f"port_{port}"] = Out(channel_signature(params))
        self.adapters = [(StreamSender(params=stream), StreamReceiver(params=stream)) for stream in streams]
        for (sender, receiver), stream in zip(self.adapters, streams, strict=True):
            for kind, adapter in (("s", sender), ("m", receiver)):
                for name, member in adapter.stream.signature.members.items():
                    if member.shape != 0:
                        members[f"{kind}_axis_{stream.port}_{name}"] = member
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        """Connect router, adapters and their counters."""
        m = Module()
        router = self.router
        m.submodules.router = shared(router, platform, self.params, *(("events",) if self.events else ()))
        for path, member, inside in router.signature.flatten(router):
            if path[0] not in ("port", "csr", "dropped"):
                outside: Any = self
                for step in path:
                    outside = getattr(outside, step) if isinstance(step, str) else outside[step]
                _join(m, member, outside, inside)
        taken = {stream.port for stream in self.streams}
        for port in range(self.params.ports):
            if port not in taken:
                wiring.connect(m, wiring.flipped(getattr(self, f"port_{port}")), router.port[port])
        events: dict[str, list[Value]] = {}
        for (sender, receiver), stream in zip(self.adapters, self.streams, strict=True):
            self._adapter(m, platform, sender, receiver, stream)
            events[f"STREAM_LONG{stream.port}"] = [sender.long]
            events[f"STREAM_MALFORMED{stream.port}"] = [sender.malformed, receiver.malformed]
        self._registers(m, events)
        if self.events:
            m.d.comb += self.dropped.eq(router.dropped | Cat(*events.values()).any())
        return m

    def _adapter(
        self, m: Module, platform: object, sender: StreamSender, receiver: StreamReceiver, stream: StreamParams
    ) -> None:
        """Connect an adapter with its port and its streams."""
        kind = (self.params.structure, stream.beats, stream.vcs_at_injection, stream.receive_flits)
        m.submodules[f"sender{stream.port}"] = shared(sender, platform, kind)
        m.submodules[f"receiver{stream.port}"] = shared(receiver, platform, kind)
        port = self.router.port[stream.port]
        m.d.comb += [
            sender.own.eq(stream.own),
            port.in_valid.eq(sender.flit_valid),
            port.in_flit.eq(sender.flit),
            sender.credit_valid.eq(port.in_credit_valid),
            sender.credit_vc.eq(port.in_credit_vc),
            receiver.flit_valid.eq(port.out_valid),
            receiver.flit.eq(port.out_flit),
            port.out_credit_valid.eq(receiver.credit_valid),
            port.out_credit_vc.eq(receiver.credit_vc),
        ]
        for side, adapter in (("s", sender), ("m", receiver)):
            for name, member in adapter.stream.signature.members.items():
                if member.shape != 0:
                    outside = getattr(self, f"{side}_axis_{stream.port}_{name}")
                    _join(m, member, outside, getattr(adapter.stream, name))

    def _registers(self, m: Module, events: dict[str, list[Value]]) -> None:
        """Lead the bus to the counters of the adapters too."""
        bus, inside = self.csr, self.router.csr
        ctrl = router_csr_map(self.params)["CTRL"]
        clear = Signal()
        here = Signal()
        held = Signal(WORD_BITS)
        word = Signal(WORD_BITS)
        m.d.comb += [
            *(getattr(inside, name).eq(getattr(bus, name)) for name in ("addr", "we", "re", "wdata")),
            bus.rdata.eq(inside.rdata | held),  # the router reads 0 where it has no register
            clear.eq(bus.we & (bus.addr == ctrl.address) & bus.wdata[ctrl.field("clear_counters").lsb]),
            here.eq(bus.addr[CSR_ADDR_BITS:] == STREAM_PAGE),
        ]
        with m.Switch(bus.addr[:CSR_ADDR_BITS]):
            for register in stream_map(tuple(stream.port for stream in self.streams)):
                count = Signal(WORD_BITS, name=f"count_{register.name.lower()}")
                m.d.sync += count.eq(Mux(clear, 0, count + sum(events[register.name], start=Const(0, 1))))
                with m.Case(register.address):
                    m.d.comb += word.eq(count)
        with m.If(bus.re):
            m.d.sync += held.eq(Mux(here, word, 0))


def _join(m: Module, member: wiring.Member, outside: Any, inside: Any) -> None:
    """Connect a port of a part with the port outside."""
    outside, inside = Value.cast(outside), Value.cast(inside)
    m.d.comb += inside.eq(outside) if member.flow is In else outside.eq(inside)


def router_with_streams(
    params: RouterParams, streams: Sequence[StreamParams], *, events: bool = False
) -> "ControlledRouter | StreamedRouter":
    """Return a router with its registers, and with adapters where there are any."""
    if streams:
        return StreamedRouter(params=params, streams=streams, events=events)
    return ControlledRouter(params=params, events=events)
