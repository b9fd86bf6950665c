"""The router without its routing tables: the part that equal routers of a network share."""

from collections.abc import Hashable, Sequence
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.allocation.class_filter import ClassFilter
from hopforge.hw.allocation.crossbar import Crossbar
from hopforge.hw.allocation.switch_allocator import SwitchAllocator
from hopforge.hw.allocation.vc_allocator import VcAllocator
from hopforge.hw.parts.round_robin import select
from hopforge.hw.parts.shared import place, shared
from hopforge.hw.ports.engine_ports import control_signature
from hopforge.hw.ports.input_ports import DROP_BITS, flit_layout, label_bits
from hopforge.hw.ports.input_unit import InputUnit
from hopforge.hw.ports.next_lookup import NextLookup
from hopforge.hw.ports.output_unit import OutputUnit
from hopforge.hw.ports.protected_buffer import FLIT_EVENTS
from hopforge.hw.ports.route_table import route_layout
from hopforge.hw.ports.shared_lookup import SharedLookup
from hopforge.hw.ports.spread_choice import KEY_BITS
from hopforge.model.router.params import RouterParams

__all__ = ["RouterCore", "port_signature", "router_members"]


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


def router_members(params: RouterParams) -> dict[str, wiring.Member]:
    """Members of a router, with or without its tables."""
    members = {
        "port": Out(port_signature(params)).array(params.ports),
        "enable": In(1, init=1),
        "clear_drops": In(1),
        "dropped": Out(params.ports),
    }
    if params.protection is not None:
        members |= {name: Out(params.ports) for name in FLIT_EVENTS}
    if params.rc == "lookup" and params.lookup is not None:
        members["control"] = Out(control_signature(params.lookup)).array(params.engines)
    return members


class RouterCore(wiring.Component):
    """`Router` (which see) without routing tables: input units, allocators, crossbar, output units.

    Every output is a register or follows from registers alone, in mode lookup too (a TCAM outside excepted): a
    simulator may evaluate a core at the clock's edge only.

    Mode lookup with a spread: ``spread_key`` is `router_key` of the router, with look-ahead ``ahead_keys`` those of the
    routers behind its ports.

    Mode table: ``route[i]`` is the entry of the destination that stands on ``port[i].in_flit``, in the same cycle.

    Parameters
    ----------
    params : RouterParams
        The router; its routes do not matter.
    """

    port: Sequence[Any]
    control: Sequence[Any]
    route: Sequence[Signal]
    spread_key: Signal
    ahead_keys: Signal
    enable: Signal
    clear_drops: Signal
    dropped: Signal
    flit_wrong: Signal
    flit_repaired: Signal

    def __init__(self, *, params: RouterParams):
        self.params = p = params
        members = router_members(p)
        if p.rc == "lookup" and p.spread_router is not None:
            members["spread_key"] = In(KEY_BITS)
            if p.lookahead is not None:
                members["ahead_keys"] = In(p.ports * KEY_BITS)
        if p.rc == "table" or p.lookahead is not None:
            members["route"] = In(route_layout(p).size).array(p.ports)
        super().__init__(members)
        self.inputs = [InputUnit(params=p, port=i) for i in range(p.ports)]
        self.outputs = [OutputUnit(params=p, port=o) for o in range(p.ports)]
        self._accepts: dict[int, Signal] = {}  # outputs with slow channels

    @property
    def kind(self) -> Hashable:
        """Everything that makes the core what it is: the same for routers that differ by their routes only."""
        p = self.params
        credits = tuple(p.credits(o) for o in range(p.ports))
        return p.structure, tuple(unit.rules for unit in self.inputs), credits, p.cycles_per_flit

    def elaborate(self, platform: object) -> Module:
        """Connect the units of the ports through the allocators and the crossbar."""
        m = Module()
        p = self.params
        sa = SwitchAllocator(
            ports=p.ports,
            vcs=p.vcs,
            kind=p.sa,
            arbiter=p.arbiter,
            iterations=p.sa_iterations,
            speculation=p.speculation,
            label_bits=label_bits(p),
        )
        m.submodules.sa = shared(sa, platform, p.structure)
        self._wait(m, sa.grants)
        m.d.comb += [
            sa.requests.eq(self._due(m, platform, sa)),
            sa.labels.eq(Cat(unit.label for unit in self.inputs)),
        ]
        if p.sa == "input_ahead":
            m.d.comb += sa.turns.eq(Cat(unit.turn for unit in self.inputs))
        if p.speculation:
            m.d.comb += [
                sa.speculative.eq(self._accepted(Cat(unit.guess_request for unit in self.inputs))),
                sa.confirmed.eq(Cat(unit.guess_confirmed for unit in self.inputs)),
            ]
        beyond = {  # what all inputs see of the outputs
            "free": Cat(output.free for output in self.outputs),
            "credits": Cat(output.credits for output in self.outputs),
            "nonzero": Cat(output.nonzero for output in self.outputs),
        }
        if p.va == "free_queue":
            for name in ("at_or_after", "offers", "offered", "stays", "follows"):
                beyond[name] = Cat(getattr(output, name) for output in self.outputs)
        if p.rc == "lookup" and p.spread_router is not None:
            beyond |= {} if p.lookahead is None else {"ahead_keys": self.ahead_keys}
        for i, unit in enumerate(self.inputs):
            kind = p.structure, unit.rules, unit.masks, p.rc_cycles_at(i), unit.looks_up
            own = {"spread_key": self.spread_key} if unit.spreads else {}
            place(m, f"input{i}", unit, platform, *kind, **beyond, **own)
            self._input(m, i, unit, sa.granted_vc)
            if not unit.looks_up:
                m.d.comb += unit.route.eq(self.route[i])
        if p.rc == "lookup":
            self._lookups(m, platform)
        for o, output in enumerate(self.outputs):
            m.submodules[f"output{o}"] = shared(output, platform, p.structure, p.credits(o), output.masks)
            self._output(m, o, output, sa.label)
        if p.va != "free_queue":
            self._allocate_vcs(m, platform)
        self._transfer(m, platform, sa.grants)
        return m

    def _wait(self, m: Module, grants: Value) -> None:
        """Count the cycles in which outputs with slow channels accept no flit."""
        p = self.params
        for o in p.slow_ports:
            most = p.cycles_per_flit[o] - 1
            cycles, accepts = Signal(range(most + 1), name=f"wait{o}"), Signal(name=f"accepts{o}")
            m.d.comb += accepts.eq(cycles == 0)
            m.d.sync += cycles.eq(Mux(grants[o :: p.ports].any(), most, Mux(accepts, 0, cycles - 1)))
            self._accepts[o] = accepts

    def _accepted(self, requests: Value) -> Value:
        """Return the requests for outputs whose channel accepts a flit."""
        p = self.params
        if not self._accepts:
            return requests
        of_outputs = Cat(self._accepts.get(o, Const(1, 1)) for o in range(p.ports))
        return requests & of_outputs.replicate(p.ports * p.vcs)

    def _due(self, m: Module, platform: object, sa: SwitchAllocator) -> Value:
        """Return the requests for the switch that count."""
        p = self.params
        asked = self._accepted(Cat(unit.sa_request for unit in self.inputs))
        if p.quality is None:
            return asked
        classes = ClassFilter(ports=p.ports, vcs=p.vcs, quality=p.quality)
        m.submodules.classes = shared(classes, platform, p.structure)  # not `due`: that is a port of it
        m.d.comb += [
            classes.requests.eq(asked), classes.grants.eq(sa.grants), classes.granted_vc.eq(sa.granted_vc),
        ]  # fmt: skip
        return classes.due

    def _allocate_vcs(self, m: Module, platform: object) -> None:
        """Give VCs to those that ask for them, before they ask for the switch."""
        p = self.params
        va = VcAllocator(ports=p.ports, vcs=p.vcs, kind=p.va, arbiter=p.vc_arbiter, iterations=p.va_iterations)
        m.submodules.va = shared(va, platform, p.structure)
        for i, unit in enumerate(self.inputs):
            m.d.comb += [
                va.requests[i].eq(unit.va_request),
                va.asked_port[i].eq(unit.va_port),
                *([va.wanted_port[i].eq(unit.va_wanted_port)] if p.va == "input_first" else []),
                unit.va_granted.eq(va.granted[i]),
                unit.va_granted_vc.eq(va.granted_vc[i]),
                unit.out_port.eq(va.out_port[i]),
                unit.out_vc.eq(va.out_vc[i]),
            ]
        for o, output in enumerate(self.outputs):
            m.d.comb += output.allocated.eq(va.given[o])

    def _input(self, m: Module, i: int, unit: InputUnit, granted_vc: Value) -> None:
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
            *(getattr(self, name)[i].eq(getattr(unit, name)) for name in FLIT_EVENTS if p.protection is not None),
            unit.sa_grant.eq(granted_vc[i * p.vcs : (i + 1) * p.vcs]),
        ]

    def _lookups(self, m: Module, platform: object) -> None:
        """Lead the control ports to the engines: those in the input units, or those that input units share."""
        p = self.params
        for g, control in enumerate(self.control):
            if p.carries(g):
                continue
            units = [self.inputs[i] for i in p.engine_ports(g)]
            if p.ports_per_engine == 1:
                wiring.connect(m, wiring.flipped(control), units[0].control)  # type: ignore[attr-defined]
                continue
            engine = SharedLookup(params=p, members=len(units))
            m.submodules[f"lookup{g}"] = shared(engine, platform, p.structure, len(units))
            wiring.connect(m, wiring.flipped(control), engine.control)
            for unit, member in zip(units, engine.member, strict=True):
                wiring.connect(m, unit.asking, member)  # type: ignore[attr-defined]
        if p.lookahead is not None:
            self._next_lookups(m, platform)

    def _next_lookups(self, m: Module, platform: object) -> None:
        """Put an engine at every output that leads to a router, and lead its answers to all inputs."""
        p = self.params
        answered: list[list[Value]] = [[] for _ in self.inputs]  # of each input, from each engine: a bit per VC
        accepted: list[list[Value]] = [[] for _ in self.inputs]
        routes = []
        dst = Cat(unit.ahead_dst for unit in self.inputs)
        for o in filter(p.carries, range(p.ports)):
            engine = NextLookup(params=p)
            asks = Cat(unit.ahead_asks[v * p.ports + o] for unit in self.inputs for v in range(p.vcs))
            place(m, f"next_lookup{o}", engine, platform, p.structure, asks=asks, dst=dst)
            wiring.connect(m, wiring.flipped(self.control[o]), engine.control)
            routes.append(engine.route)
            for i in range(p.ports):
                accepted[i].append(engine.accepted[i * p.vcs : (i + 1) * p.vcs])
                answered[i].append(engine.answered[i * p.vcs : (i + 1) * p.vcs])
        if not routes:  # a router without links: nobody asks
            return
        for i, unit in enumerate(self.inputs):
            m.d.comb += [
                unit.ahead_accepted.eq(reduce(or_, accepted[i])),
                unit.ahead_answered.eq(reduce(or_, answered[i])),
            ]
            for v in range(p.vcs):
                answer = select(Cat(word[v] for word in answered[i]), routes)
                m.d.comb += unit.ahead_answer[v * p.answer_bits : (v + 1) * p.answer_bits].eq(answer)

    def _output(self, m: Module, o: int, output: OutputUnit, label: Value) -> None:
        p, port = self.params, self.port[o]
        told = [output.sent, output.sent_tail, *([output.sent_head] if p.va == "free_queue" else ())]
        bits = label_bits(p)
        m.d.comb += [
            output.credit_valid.eq(port.out_credit_valid),
            output.credit_vc.eq(port.out_credit_vc),
            Cat(told).eq(label[o * bits : (o + 1) * bits]),
        ]

    def _transfer(self, m: Module, platform: object, sa_grants: Value) -> None:
        """Grants, a cycle later the crossbar, a cycle later the output."""
        p = self.params
        crossbar = Crossbar(inputs=p.ports, outputs=p.ports, width_bits=flit_layout(p).size)
        crossing = Signal(p.ports * p.ports)
        m.d.sync += crossing.eq(sa_grants)
        words = {f"words__{i}": Value.cast(unit.word) for i, unit in enumerate(self.inputs)}
        place(m, "crossbar", crossbar, platform, p.structure, select=crossing, **words)
        for o, port in enumerate(self.port):
            flit = Signal.like(port.out_flit, name=f"out_flit{o}", reset_less=True)
            m.d.comb += port.out_flit.eq(flit)
            m.d.sync += [
                port.out_valid.eq(Cat(crossing[i * p.ports + o] for i in range(p.ports)).any()),
                flit.eq(crossbar.out[o]),
            ]
            if p.asks_ahead and not p.carries(o):
                with m.If(View(flit_layout(p), crossbar.out[o]).kind[0]):  # a head on its way to a host
                    m.d.sync += flit.data[p.route_at : p.route_at + p.route_bits].eq(0)
