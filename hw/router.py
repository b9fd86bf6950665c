"""The router."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.crossbar import Crossbar
from hopforge.hw.input_unit import DROP_BITS, InputUnit, control_signature, flit_layout
from hopforge.hw.output_unit import OutputUnit
from hopforge.hw.route_table import RouteTable
from hopforge.hw.shared import shared
from hopforge.hw.switch_allocator import SwitchAllocator
from hopforge.hw.vc_allocator import VcAllocator
from hopforge.model.router_params import RouterParams

__all__ = ["Router", "port_signature"]


def port_signature(params: RouterParams) -> wiring.Signature:
    """Signals of a port, seen from the router."""
    flit = flit_layout(params)
    vc_bits = max(1, ceil_log2(params.vcs))
    return wiring.Signature(
        {
            "in_valid": In(1),
            "in_flit": In(flit),
            "in_credit_valid": Out(1),
            "in_credit_vc": Out(vc_bits),
            "out_valid": Out(1),
            "out_flit": Out(flit),
            "out_credit_valid": In(1),
            "out_credit_vc": In(vc_bits),
            "drops": Out(DROP_BITS),
        }
    )


class Router(wiring.Component):
    """Input-queued router with credits, as defined cycle by cycle in ``docs/router.md``.

    Latency of a head without contention: ``4 + rc_cycles`` cycles from ``in_flit`` to ``out_flit`` (table), one less
    with speculation; body flits follow in every cycle. Throughput: one flit per port and cycle. Back-pressure: credits;
    a flit that comes without one is lost. Reset: empty, all credits there.

    Ports: ``port[i]``, see *Signals of one port* in the definition; ``drops`` counts the unroutable packets of
    the input, ``dropped`` has a bit for each input that counts one at the end of the cycle, ``clear_drops`` sets all
    counters to 0. While ``enable`` is 0 (1 unless connected), from the following cycle on, no packet begins RC; those
    beyond it go on. In mode lookup ``control[i]`` is the register bus of the engine of input i, and its TCAM port if
    the TCAM is outside.

    Parameters
    ----------
    params : RouterParams
        The router; its own checks name what is wrong.
    """

    port: Sequence[Any]
    control: Sequence[Any]
    enable: Signal
    clear_drops: Signal
    dropped: Signal

    def __init__(self, *, params: RouterParams):
        self.params = p = params
        members = {
            "port": Out(port_signature(p)).array(p.ports),
            "enable": In(1, init=1),
            "clear_drops": In(1),
            "dropped": Out(p.ports),
        }
        if p.rc == "lookup" and p.lookup is not None:
            members["control"] = Out(control_signature(p.lookup)).array(p.ports)
        super().__init__(members)
        self.inputs = [InputUnit(params=p, port=i) for i in range(p.ports)]
        self.outputs = [OutputUnit(params=p, port=o) for o in range(p.ports)]

    def elaborate(self, platform: object) -> Module:
        """Connect the units of the ports through the allocators and the crossbar."""
        m = Module()
        p = self.params
        va = VcAllocator(ports=p.ports, vcs=p.vcs, kind=p.va, arbiter=p.arbiter)
        sa = SwitchAllocator(
            ports=p.ports, vcs=p.vcs, kind=p.sa, arbiter=p.arbiter, speculation=p.speculation, label_bits=p.vcs + 1
        )
        m.submodules.va = shared(va, platform, p.structure)
        m.submodules.sa = shared(sa, platform, p.structure)
        m.d.comb += [
            va.requests.eq(Cat(unit.va_request for unit in self.inputs)),
            va.asked_port.eq(Cat(unit.va_port for unit in self.inputs)),
            sa.requests.eq(Cat(unit.sa_request for unit in self.inputs)),
            sa.labels.eq(Cat(unit.label for unit in self.inputs)),
        ]
        if p.speculation:
            m.d.comb += [
                sa.speculative.eq(Cat(unit.guess_request for unit in self.inputs)),
                sa.confirmed.eq(Cat(unit.guess_confirmed for unit in self.inputs)),
            ]
        for i, unit in enumerate(self.inputs):
            m.submodules[f"input{i}"] = shared(unit, platform, p.structure, unit.rules)
            self._input(m, i, unit, va, sa.granted_vc)
            if p.rc == "table":
                table = RouteTable(params=p)
                m.submodules[f"table{i}"] = shared(table, platform, p.structure, p.routes)
                m.d.comb += [table.dst.eq(self.port[i].in_flit.data[: p.address_bits]), unit.route.eq(table.route)]
        for o, output in enumerate(self.outputs):
            m.submodules[f"output{o}"] = shared(output, platform, p.structure, p.credits(o))
            self._output(m, o, output, va.given, sa.label)
        self._transfer(m, platform, sa.grants)
        return m

    def _input(self, m: Module, i: int, unit: InputUnit, va: VcAllocator, granted_vc: Value) -> None:
        p, port = self.params, self.port[i]
        m.d.comb += [
            unit.in_valid.eq(port.in_valid),
            unit.in_flit.eq(port.in_flit),
            port.in_credit_valid.eq(unit.credit_valid),
            port.in_credit_vc.eq(unit.credit_vc),
            port.drops.eq(unit.drops),
            unit.enable.eq(self.enable),
            unit.clear_drops.eq(self.clear_drops),
            self.dropped[i].eq(unit.dropped),
            unit.free.eq(Cat(output.free for output in self.outputs)),
            unit.credits.eq(Cat(output.credits for output in self.outputs)),
            unit.nonzero.eq(Cat(output.nonzero for output in self.outputs)),
            unit.va_granted.eq(va.granted[i * p.vcs : (i + 1) * p.vcs]),
            unit.va_granted_vc.eq(va.granted_vc[i * p.vcs**2 : (i + 1) * p.vcs**2]),
            unit.out_port.eq(va.out_port[i * p.vcs * p.ports : (i + 1) * p.vcs * p.ports]),
            unit.out_vc.eq(va.out_vc[i * p.vcs**2 : (i + 1) * p.vcs**2]),
            unit.sa_grant.eq(granted_vc[i * p.vcs : (i + 1) * p.vcs]),
        ]
        if p.rc == "lookup":
            wiring.connect(m, wiring.flipped(self.control[i]), unit.control)  # type: ignore[attr-defined]

    def _output(self, m: Module, o: int, output: OutputUnit, given: Value, label: Value) -> None:
        p, port = self.params, self.port[o]
        m.d.comb += [
            output.credit_valid.eq(port.out_credit_valid),
            output.credit_vc.eq(port.out_credit_vc),
            output.allocated.eq(given[o * p.vcs : (o + 1) * p.vcs]),
            Cat(output.sent, output.sent_tail).eq(label[o * (p.vcs + 1) : (o + 1) * (p.vcs + 1)]),
        ]

    def _transfer(self, m: Module, platform: object, sa_grants: Value) -> None:
        """Grants, a cycle later the crossbar, a cycle later the output."""
        p = self.params
        crossbar = Crossbar(inputs=p.ports, outputs=p.ports, width_bits=flit_layout(p).size)
        m.submodules.crossbar = shared(crossbar, platform, p.structure)
        crossing = Signal(p.ports * p.ports)
        m.d.sync += crossing.eq(sa_grants)
        m.d.comb += crossbar.select.eq(crossing)
        for i, unit in enumerate(self.inputs):
            m.d.comb += crossbar.words[i].eq(unit.word)
        for o, port in enumerate(self.port):
            flit = Signal.like(port.out_flit, name=f"out_flit{o}", reset_less=True)
            m.d.comb += port.out_flit.eq(flit)
            m.d.sync += [
                port.out_valid.eq(Cat(crossing[i * p.ports + o] for i in range(p.ports)).any()),
                flit.eq(crossbar.out[o]),
            ]
