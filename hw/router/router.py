"""The router."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.data import View
from amaranth.lib.wiring import In

from hopforge.hw.parts.shared import shared
from hopforge.hw.ports.next_route import BroughtRoute, NextChoice, NextRoute
from hopforge.hw.ports.protected_buffer import FLIT_EVENTS
from hopforge.hw.ports.route_table import RouteTable, route_layout
from hopforge.hw.ports.spread_choice import KEY_BITS, SpreadChoice, spread_counts
from hopforge.hw.router.core import RouterCore, router_members
from hopforge.model.router.params import LookAhead, RouterParams, check_input_vcs
from hopforge.model.topology.spread import router_key

__all__ = ["Router"]


class Router(wiring.Component):
    """Input-queued router with credits, as defined cycle by cycle in ``docs/definitions/router.md``.

    Latency of a head without contention: ``4 + rc_cycles`` cycles from ``in_flit`` to ``out_flit`` (table), one less
    with speculation or without VC allocator; body flits follow in every cycle. Throughput: one flit per port and
    cycle. Back-pressure: credits; a flit that comes without one is lost. Reset: empty, all credits there.

    Ports: ``port[i]``, see *Signals of one port* in the definition; ``drops`` counts the unroutable packets of
    the input, ``dropped`` has a bit for each input that counts one at the end of the cycle, ``clear_drops`` sets all
    counters to 0. While ``enable`` is 0 (1 unless connected), from the following cycle on, no packet begins RC; those
    beyond it go on. In mode lookup ``control[i]`` is the register bus of the engine of input i, and its TCAM port if
    the TCAM is outside.

    Parameters
    ----------
    params : RouterParams
        The router; its own checks name what is wrong.

    Raises
    ------
    ValueError
        A VC allocator that is too large, see `hopforge.model.router.params.check_input_vcs`.
    """

    port: Sequence[Any]
    control: Sequence[Any]
    enable: Signal
    clear_drops: Signal
    dropped: Signal
    flit_wrong: Signal
    flit_repaired: Signal

    def __init__(self, *, params: RouterParams):
        self.params = params
        check_input_vcs(
            params.ports, params.vcs, params.va, params.vc_arbiter, params.vc_arbiter_key, params.va_iterations
        )
        super().__init__(router_members(params))

    def elaborate(self, platform: object) -> Module:
        """Put the tables beside the core."""
        m = Module()
        p = self.params
        core = RouterCore(params=p)
        m.submodules.core = shared(core, platform, core.kind)
        for outside, inside in zip(self.port, core.port, strict=True):
            if p.lookahead is not None and not p.asks_ahead:
                self._connect_around_next(m, outside, inside)
            else:
                wiring.connect(m, wiring.flipped(outside), inside)
        m.d.comb += [
            core.enable.eq(self.enable),
            core.clear_drops.eq(self.clear_drops),
            self.dropped.eq(core.dropped),
            *(getattr(self, name).eq(getattr(core, name)) for name in FLIT_EVENTS if p.protection is not None),
        ]
        if p.rc == "lookup" and p.spread_router is not None:
            m.d.comb += core.spread_key.eq(router_key(p.spread_router))
            for o, behind in enumerate(() if p.lookahead is None else p.lookahead.behind):
                if behind is not None:
                    m.d.comb += core.ahead_keys.word_select(o, KEY_BITS).eq(router_key(behind.router))
        if p.rc == "lookup":
            for outside, inside in zip(self.control, core.control, strict=True):
                wiring.connect(m, wiring.flipped(outside), inside)
        for i in range(p.ports):
            if p.lookahead is not None and not p.asks_ahead:
                self._next(m, platform, i, core, p.lookahead)
            port = self.port[i]
            if p.carries(i):
                brought = BroughtRoute(params=p)
                m.submodules[f"brought{i}"] = shared(brought, platform, p.structure)
                m.d.comb += [brought.data.eq(port.in_flit.data), core.route[i].eq(brought.route)]
                continue
            if p.rc == "lookup":
                continue
            table = RouteTable(params=p)
            m.submodules[f"table{i}"] = shared(table, platform, p.structure, p.routes)
            m.d.comb += [table.dst.eq(port.in_flit.data[: p.address_bits]), core.route[i].eq(table.route)]
            if p.spread_router is not None:
                self._spread(m, platform, i, core, table)
        return m

    def _next(self, m: Module, platform: object, i: int, core: RouterCore, ahead: LookAhead) -> None:
        """Let the head that comes to a port take along what the next router would look up."""
        p, port = self.params, self.port[i]
        unit: NextRoute | NextChoice
        if ahead.behind:
            unit = NextChoice(params=p)
            m.d.comb += unit.port.eq(View(route_layout(p), core.route[i]).ports)
        else:
            unit = NextRoute(params=p)
        m.submodules[f"next{i}"] = shared(unit, platform, p.structure, ahead.behind or ahead.next_routes)
        m.d.comb += [
            unit.kind.eq(port.in_flit.kind),
            unit.data.eq(port.in_flit.data),
            core.port[i].in_flit.data.eq(unit.sent),
        ]

    def _spread(self, m: Module, platform: object, i: int, core: RouterCore, table: RouteTable) -> None:
        """Leave one of the ports of the route of the head that comes to a port."""
        p = self.params
        assert p.spread_router is not None
        counts = spread_counts(p)
        choice = SpreadChoice(params=p, counts=counts)
        m.submodules[f"spread{i}"] = shared(choice, platform, p.structure, counts)
        m.d.comb += [
            choice.data.eq(self.port[i].in_flit.data),
            choice.key.eq(router_key(p.spread_router)),
            choice.ports.eq(table.route.ports),
            View(route_layout(p), core.route[i]).ports.eq(choice.port),
        ]
        if p.entropy_bits:
            m.d.comb += choice.entropy.eq(self.port[i].in_flit.data[p.entropy_at : p.entropy_at + p.entropy_bits])

    def _connect_around_next(self, m: Module, outside: Any, inside: Any) -> None:
        """Connect a port, but for the data of the flit that comes in."""
        for name, member in outside.signature.members.items():
            if name == "in_flit":
                m.d.comb += [inside.in_flit.kind.eq(outside.in_flit.kind), inside.in_flit.vc.eq(outside.in_flit.vc)]
                continue
            target, source = getattr(inside, name), getattr(outside, name)
            if member.flow is not In:
                target, source = source, target
            m.d.comb += target.eq(source)
