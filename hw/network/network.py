"""Routers, and the links between them."""

from collections.abc import Iterator, Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.network.acknowledge_port import AcknowledgePort, AcknowledgeSetup
from hopforge.hw.network.interface import NetworkInterface, host_signature
from hopforge.hw.network.path_choice import PathChoice
from hopforge.hw.parts.round_robin import select
from hopforge.hw.parts.shared import shared
from hopforge.hw.ports.input_ports import flit_layout
from hopforge.hw.router.controlled import ControlledRouter, channel_signature, has_tcam_ports, tcam_signature
from hopforge.hw.router.csr import csr_signature
from hopforge.hw.router.streamed import StreamedRouter, router_with_streams
from hopforge.model.router.csr import ROUTER_CSR_ADDR_BITS
from hopforge.model.router.links import End, Link
from hopforge.model.router.params import RouterParams
from hopforge.model.router.path_rules import PathRules
from hopforge.model.router.reply_rules import ReplyRules
from hopforge.model.router.stream_params import StreamParams

__all__ = ["Network"]

RouterPart = ControlledRouter | StreamedRouter
"""A router as it is built here."""


def _port(router: RouterPart, port: int) -> Any:
    """Return flits and credits of a port without an adapter."""
    return getattr(router, f"port_{port}") if isinstance(router, StreamedRouter) else router.port[port]


class Network(wiring.Component):
    """A network of routers.

    A link of latency L carries in cycle x + L − 1 what stood on its source in cycle x (L = 1: a wire), and credits
    as slowly in the other direction. ``host[h]`` is the router's port at which host h is; the inputs of ports with
    neither a link nor a host are idle. With `streams` there are ``s_axis_h_…``, ``m_axis_h_…`` in the place of
    ``host[h]``: packets to and from the network, from the adapter at the router. Reset: empty.

    ``csr`` is the register bus of all routers: bits from `ROUTER_CSR_ADDR_BITS` up are the number of the router, those
    below an address in it; a router that does not exist reads 0. Bit r of ``link_change`` (only with lookups) begins a
    topology change in router r; ``router<r>_tcam[i]`` are the ports of its lookup engines to TCAMs outside, if they are
    outside.

    Parameters
    ----------
    routers : sequence of RouterParams
        The routers, all with flits of the same layout.
    links : sequence of Link
        At most one to and one from each port.
    hosts : sequence of End
        The ports of the hosts.
    replies : ReplyRules, optional
        A `NetworkInterface` at every host answers requests; ``host[h]`` is its side of the host.
    acknowledges : AcknowledgeSetup, optional
        An `AcknowledgePort` at every router serves its last port.
    streams : sequence of StreamParams
        The AXI-Stream adapter of every host, in the order of `hosts`; none: hosts have flits.
    host_latency_cycles : int
        Latency of the links between routers and these; without them it is up to the hosts.
    paths : PathRules, optional
        A `PathChoice` at every host: packets come with the first address of their destination.

    Raises
    ------
    ValueError
        Links, hosts or streams that do not fit the routers, or each other; it names the first of them.
    """

    host: Sequence[Any]
    csr: Any
    link_change: Signal

    def __init__(
        self,
        *,
        routers: Sequence[RouterParams],
        links: Sequence[Link],
        hosts: Sequence[End],
        replies: ReplyRules | None = None,
        acknowledges: AcknowledgeSetup | None = None,
        host_latency_cycles: int = 1,
        streams: Sequence[StreamParams] = (),
        paths: PathRules | None = None,
    ):
        self.paths = paths
        self.replies, self.acknowledges, self.host_latency_cycles = replies, acknowledges, host_latency_cycles
        self.routers = tuple(routers)
        self.links = tuple(links)
        self.hosts = tuple(hosts)
        self.streams = tuple(streams)
        for problem in self._problems():
            raise ValueError(problem)
        self.parts = [router_with_streams(params, self._at(number)) for number, params in enumerate(self.routers)]
        members = self._host_members() | {
            "csr": Out(csr_signature(ROUTER_CSR_ADDR_BITS + ceil_log2(len(self.routers)))),
        }
        if any(params.rc == "lookup" for params in self.routers):
            members["link_change"] = In(len(self.routers))
        for number, params in enumerate(self.routers):
            if has_tcam_ports(params) and params.lookup is not None:
                members[f"router{number}_tcam"] = Out(tcam_signature(params.lookup)).array(params.engines)
        super().__init__(members)

    def _at(self, router: int) -> list[StreamParams]:
        """Return the adapters at a router."""
        return [stream for stream, end in zip(self.streams, self.hosts, strict=False) if end.router == router]

    def _host_members(self) -> dict[str, wiring.Member]:
        """Return the ports of the hosts: channels, or streams."""
        if not self.streams:
            signature = channel_signature if self.replies is None else host_signature
            return {"host": Out(signature(self.routers[0])).array(len(self.hosts))}
        return {
            outside: self.parts[end.router].signature.members[inside]
            for host, end in enumerate(self.hosts)
            for outside, inside in self._streams(host, end)
        }

    def _streams(self, host: int, end: End) -> Iterator[tuple[str, str]]:
        """Yield the ports of a host with streams: name here, name at its router."""
        for side in ("s_axis", "m_axis"):
            prefix = f"{side}_{end.port}_"
            for name in self.parts[end.router].signature.members:
                if name.startswith(prefix):
                    yield f"{side}_{host}_{name.removeprefix(prefix)}", name

    def _problems(self) -> Iterator[str]:
        if not self.routers:
            yield "routers must be at least 1, not 0"
        for number, params in enumerate(self.routers):
            first = self.routers[0]
            if flit_layout(params) != flit_layout(first):
                yield f"routers[{number}] must have flits of {first.width_bits} bits and {first.vcs} VCs"
        inputs: dict[End, str] = {}
        outputs: dict[End, str] = {}
        for number, link in enumerate(self.links):
            name = f"links[{number}]"
            yield from self._end_problems(f"{name}.source", link.source, outputs)
            yield from self._end_problems(f"{name}.target", link.target, inputs)
            if link.latency_cycles < 1:
                yield f"{name}.latency_cycles must be at least 1, not {link.latency_cycles}"
            depth = self.routers[link.target.router].buffer_flits
            credits = self.routers[link.source.router].credits(link.source.port)
            if credits != depth:
                yield f"{name}: the credits of its source must be the {depth} flits of its target, not {credits}"
        for number, end in enumerate(self.hosts):
            yield from self._end_problems(f"hosts[{number}]", end, inputs)
            yield from self._end_problems(f"hosts[{number}]", end, outputs)
        yield from self._stream_problems()
        if self.paths is not None and (self.streams or self.replies is not None or self.acknowledges is not None):
            yield "paths must be none with streams, replies or acknowledges"
        if self.paths is not None and len(self.paths.first) != len(self.hosts):
            yield f"paths must be those of {len(self.hosts)} hosts, not {len(self.paths.first)}"

    def _stream_problems(self) -> Iterator[str]:
        if not self.streams:
            return
        if self.replies is not None or self.acknowledges is not None:
            yield "streams must be none with replies or acknowledges"
        if len(self.streams) != len(self.hosts):
            yield f"streams must be none or one for each of {len(self.hosts)} hosts, not {len(self.streams)}"
        for number, (stream, end) in enumerate(zip(self.streams, self.hosts, strict=True)):
            if stream.port != end.port or stream.router != self.routers[end.router]:
                yield f"streams[{number}] must be at port {end.port} of router {end.router}, as hosts[{number}]"

    def _end_problems(self, name: str, end: End, taken: dict[End, str]) -> Iterator[str]:
        if not 0 <= end.router < len(self.routers):
            yield f"{name}.router must be below {len(self.routers)}, not {end.router}"
        elif not 0 <= end.port < self.routers[end.router].ports:
            yield f"{name}.port must be below {self.routers[end.router].ports}, not {end.port}"
        elif taken.setdefault(end, name) != name:
            yield f"{name} must be a port of its own, not port {end.port} of router {end.router} as {taken[end]}"

    def elaborate(self, platform: object) -> Module:
        """Build routers and links."""
        m = Module()
        routers = self.parts
        for number, router in enumerate(routers):
            m.submodules[f"router{number}"] = shared(router, platform, router.params, *self._at(number))
            self._router(m, number, router)
        self._bus(m, routers)
        for number, link in enumerate(self.links):
            source, target = (_port(routers[end.router], end.port) for end in (link.source, link.target))
            for what, start, end in (
                ("valid", source.out_valid, target.in_valid),
                ("flit", source.out_flit.as_value(), target.in_flit.as_value()),
                ("credit_valid", target.in_credit_valid, source.out_credit_valid),
                ("credit_vc", target.in_credit_vc, source.out_credit_vc),
            ):
                m.d.comb += end.eq(self._delayed(m, start, link.latency_cycles - 1, f"link{number}_{what}"))
        if self.streams:
            for number, end in enumerate(self.hosts):
                self._stream(m, number, end)
        else:
            self._hosts(m, platform)
        if self.acknowledges is not None:
            for number, router in enumerate(routers):
                self._acknowledge(m, platform, number, router, self.acknowledges)
        return m

    def _stream(self, m: Module, number: int, end: End) -> None:
        """Lead the streams of a host outside."""
        router = self.parts[end.router]
        for name, at_router in self._streams(number, end):
            outside, inside = getattr(self, name), getattr(router, at_router)
            inward = self.signature.members[name].flow is In
            m.d.comb += inside.eq(outside) if inward else outside.eq(inside)

    def _hosts(self, m: Module, platform: object) -> None:
        """Connect the channels of hosts, or their interfaces, with their routers."""
        for number, (outside, end) in enumerate(zip(self.host, self.hosts, strict=True)):
            port = _port(self.parts[end.router], end.port)
            if self.paths is not None:
                self._choose_paths(m, number, outside, port)
            elif self.replies is None:
                wiring.connect(m, wiring.flipped(outside), port)
            else:
                interface = NetworkInterface(params=self.routers[end.router], rules=self.replies)
                m.submodules[f"interface{number}"] = shared(interface, platform, *interface.key)
                wiring.connect(m, wiring.flipped(outside), interface.host)
                self._connect_interface(m, f"host{number}", interface.channel, port)

    def _choose_paths(self, m: Module, number: int, outside: Any, port: Any) -> None:
        """Connect a host with its router, and let it choose the path of every packet."""
        assert self.paths is not None
        choice = PathChoice(
            params=self.routers[self.hosts[number].router], lmc=self.paths.lmc, first=self.paths.first[number],
            turns=self.paths.turns,
        )  # fmt: skip
        m.submodules[f"path_choice{number}"] = choice
        m.d.comb += [choice.valid.eq(outside.in_valid), choice.flit.as_value().eq(outside.in_flit.as_value())]
        for what, start, end in (
            ("in_valid", outside.in_valid, port.in_valid),
            ("in_flit", choice.path_flit.as_value(), port.in_flit.as_value()),
            ("out_credit_valid", outside.out_credit_valid, port.out_credit_valid),
            ("out_credit_vc", outside.out_credit_vc, port.out_credit_vc),
            ("in_credit_valid", port.in_credit_valid, outside.in_credit_valid),
            ("in_credit_vc", port.in_credit_vc, outside.in_credit_vc),
            ("out_valid", port.out_valid, outside.out_valid),
            ("out_flit", port.out_flit.as_value(), outside.out_flit.as_value()),
        ):
            assert len(start) == len(end), what
            m.d.comb += end.eq(start)

    def _acknowledge(
        self, m: Module, platform: object, number: int, router: RouterPart, setup: AcknowledgeSetup
    ) -> None:
        """Let the last port of a router serve acknowledges."""
        host = next(host for host, end in enumerate(self.hosts) if end.router == number)
        at = self.hosts[host].port
        unit = AcknowledgePort(
            params=router.params, rules=setup.rules, host_port=at, hosts=len(self.hosts), vcs=setup.vcs,
            host_latency_cycles=self.host_latency_cycles,
        )  # fmt: skip
        m.submodules[f"acknowledges{number}"] = shared(unit, platform, *unit.key)
        ports = [_port(router, port) for port in range(unit.heads)]
        behind = [0] * unit.heads
        for link in self.links:
            if link.source.router == number:
                behind[link.source.port] = len(self.hosts) + link.target.router
        bits = router.params.address_bits
        m.d.comb += [
            unit.host.eq(host),
            unit.behind.eq(Cat(Const(address, bits) for address in behind)),
            unit.came_valid.eq(Cat(port.in_valid for port in ports)),
            unit.came_flit.eq(Cat(port.in_flit.as_value() for port in ports)),
            unit.left_valid.eq(ports[at].out_valid),
            unit.left_flit.as_value().eq(ports[at].out_flit.as_value()),
        ]
        self._connect_interface(m, f"service{number}", unit.channel, _port(router, unit.heads))

    def _connect_interface(self, m: Module, name: str, channel: Any, port: Any) -> None:
        """Connect the interface of a host with the port of its router, over a link."""
        for what, start, end in (
            ("in_valid", channel.in_valid, port.in_valid),
            ("in_flit", channel.in_flit.as_value(), port.in_flit.as_value()),
            ("in_credit_valid", port.in_credit_valid, channel.in_credit_valid),
            ("in_credit_vc", port.in_credit_vc, channel.in_credit_vc),
            ("out_valid", port.out_valid, channel.out_valid),
            ("out_flit", port.out_flit.as_value(), channel.out_flit.as_value()),
            ("out_credit_valid", channel.out_credit_valid, port.out_credit_valid),
            ("out_credit_vc", channel.out_credit_vc, port.out_credit_vc),
        ):
            m.d.comb += end.eq(self._delayed(m, start, self.host_latency_cycles - 1, f"{name}_{what}"))

    def _router(self, m: Module, number: int, router: RouterPart) -> None:
        """Connect what a router has beside its channels."""
        m.d.comb += router.number.eq(number)
        if router.params.rc == "lookup":
            m.d.comb += router.link_change.eq(self.link_change[number])
        if has_tcam_ports(router.params):
            for outside, inside in zip(getattr(self, f"router{number}_tcam"), router.tcam, strict=True):
                wiring.connect(m, wiring.flipped(outside), inside)

    def _bus(self, m: Module, routers: Sequence[RouterPart]) -> None:
        """Lead the register bus to the router that the address names, and its words back."""
        count = len(routers)
        asked = Signal(count)
        source = Signal(count)  # the router that was read last
        where = self.csr.addr[ROUTER_CSR_ADDR_BITS:]
        for number, router in enumerate(routers):
            m.d.comb += [
                asked[number].eq(where == number if count > 1 else 1),
                router.csr.addr.eq(self.csr.addr),
                router.csr.wdata.eq(self.csr.wdata),
                router.csr.we.eq(self.csr.we & asked[number]),
                router.csr.re.eq(self.csr.re & asked[number]),
            ]
        with m.If(self.csr.re):
            m.d.sync += source.eq(asked)
        m.d.comb += self.csr.rdata.eq(select(source, [router.csr.rdata for router in routers]))

    def _delayed(self, m: Module, value: Value, cycles: int, name: str) -> Value:
        """Return `value` as it was some cycles ago."""
        for cycle in range(cycles):
            register = Signal(len(value), name=f"{name}_{cycle + 1}")
            m.d.sync += register.eq(value)
            value = register
        return value
