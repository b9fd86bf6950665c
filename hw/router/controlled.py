"""A router with its registers: what is built into a switch."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.parts.shared import shared
from hopforge.hw.ports.engine_ports import control_signature
from hopforge.hw.router.core import port_signature
from hopforge.hw.router.csr import RouterCsr, csr_signature
from hopforge.hw.router.router import Router
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.bus_space import finds_changed_bits
from hopforge.model.router.csr import NUMBER_BITS, ROUTER_CSR_ADDR_BITS
from hopforge.model.router.params import RouterParams

__all__ = ["ControlledRouter", "channel_signature", "has_tcam_ports", "tcam_signature"]

_TCAM = "tcam_"


def channel_signature(params: RouterParams) -> wiring.Signature:
    """Flits and credits of a port in both directions, seen from the router."""
    members = port_signature(params).members
    return wiring.Signature({name: member for name, member in members.items() if name != "drops"})


def tcam_signature(params: LookupParams) -> wiring.Signature:
    """Port of a lookup engine to a TCAM outside; no members if the TCAM is inside."""
    members = control_signature(params).members
    return wiring.Signature(
        {name.removeprefix(_TCAM): member for name, member in members.items() if name.startswith(_TCAM)}
    )


def has_tcam_ports(params: RouterParams) -> bool:
    """Whether each lookup engine of the router has a port to a TCAM outside."""
    return params.rc == "lookup" and params.lookup is not None and params.lookup.tcam_kind == "external"


class ControlledRouter(wiring.Component):
    """`Router` with one register bus for itself and the lookup engines of its input ports.

    Latency, throughput and back-pressure are those of `Router`. Mode lookup: after reset the router is not enabled, so
    that packets wait until software has written the TCAMs. Reset: everything empty, registers as in
    ``model.router.csr``.

    - ``port[i]``: flits and credits, see *Signals of one port* in docs/definitions/router.md.
    - ``csr``: register bus; a read shows its word in the cycle after ``re``, until the next.
    - ``number``: number of the router in its network, to be read as NUMBER.
    - ``dropped`` (with `events`): an input is about to count a packet with an unroutable destination.
    - Mode lookup: ``link_change`` (a pulse) begins a topology change in all engines; with a TCAM outside, ``tcam[i]``
      is its port for engine i (that of input i, unless inputs share engines).

    Parameters
    ----------
    params : RouterParams
        The router; its own checks name what is wrong.
    events : bool
        With ``dropped``, for an interrupt.
    """

    port: Sequence[Any]
    csr: Any
    number: Signal
    dropped: Signal
    memory_error: Signal
    link_change: Signal
    tcam: Sequence[Any]

    def __init__(self, *, params: RouterParams, events: bool = False):
        self.params = p = params
        self.events = events
        members = {
            "port": Out(channel_signature(p)).array(p.ports),
            "csr": Out(csr_signature(ROUTER_CSR_ADDR_BITS)),
            "number": In(NUMBER_BITS),
        }
        if events:
            members["dropped"] = Out(1)
            if finds_changed_bits(p):
                members["memory_error"] = Out(1)
        if p.rc == "lookup" and p.lookup is not None:
            members["link_change"] = In(1)
            if has_tcam_ports(p):
                members["tcam"] = Out(tcam_signature(p.lookup)).array(p.engines)
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        """Connect router and registers."""
        m = Module()
        p = self.params
        m.submodules.router = router = Router(params=p)
        registers = RouterCsr(params=p)
        m.submodules.registers = shared(registers, platform, registers.map.registers)
        wiring.connect(m, wiring.flipped(self.csr), registers.csr)
        for outside, inside in zip(self.port, router.port, strict=True):
            for name, member in outside.signature.members.items():
                ends = (getattr(outside, name), getattr(inside, name))
                m.d.comb += ends[1].eq(ends[0]) if member.flow is In else ends[0].eq(ends[1])
        m.d.comb += [
            registers.number.eq(self.number),
            registers.arrived.eq(Cat(port.in_valid for port in self.port)),
            registers.left.eq(Cat(port.out_valid for port in self.port)),
            registers.dropped.eq(router.dropped),
            registers.drops.eq(Cat(port.drops for port in router.port)),
            router.enable.eq(registers.enable),
            router.clear_drops.eq(registers.clear_counters),
        ]
        if p.protection is not None:
            found = (router.flit_wrong, router.flit_repaired)
            m.d.comb += registers.flit_events.eq(Cat(bits.any() for bits in found))
        if self.events:
            m.d.comb += self.dropped.eq(router.dropped.any())
            if finds_changed_bits(p):
                m.d.comb += self.memory_error.eq(self._changed_bits(router).any())
        if p.rc == "lookup":
            self._engines(m, router, registers)
        return m

    def _changed_bits(self, router: Router) -> Value:
        """Return the events of protected flits and lines."""
        p = self.params
        found: list[Value] = [router.flit_wrong, router.flit_repaired] if p.protection is not None else []
        if p.rc == "lookup" and p.lookup is not None and p.lookup.protection is not None:
            found += [control.line_error for control in router.control]
        return Cat(found)

    def _engines(self, m: Module, router: Router, registers: RouterCsr) -> None:
        m.d.comb += registers.engine_rdata.eq(Cat(control.csr_rdata for control in router.control))
        for i, control in enumerate(router.control):
            m.d.comb += [
                control.csr_addr.eq(registers.engine_addr),
                control.csr_we.eq(registers.engine_we[i]),
                control.csr_re.eq(registers.engine_re[i]),
                control.csr_wdata.eq(self.csr.wdata),
                control.link_change.eq(self.link_change),
            ]
            if has_tcam_ports(self.params):
                for name, member in self.tcam[i].signature.members.items():
                    ends = (getattr(self.tcam[i], name), getattr(control, f"{_TCAM}{name}"))
                    m.d.comb += ends[1].eq(ends[0]) if member.flow is In else ends[0].eq(ends[1])
