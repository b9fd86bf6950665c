"""The router."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring

from hopforge.hw.route_table import RouteTable
from hopforge.hw.router_core import RouterCore, router_members
from hopforge.hw.shared import shared
from hopforge.model.router.params import RouterParams, check_input_vcs

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

    def __init__(self, *, params: RouterParams):
        self.params = params
        check_input_vcs(params.ports, params.vcs, params.va, params.arbiter)
        super().__init__(router_members(params))

    def elaborate(self, platform: object) -> Module:
        """Put the tables beside the core."""
        m = Module()
        p = self.params
        core = RouterCore(params=p)
        m.submodules.core = shared(core, platform, core.kind)
        for outside, inside in zip(self.port, core.port, strict=True):
            wiring.connect(m, wiring.flipped(outside), inside)
        m.d.comb += [
            core.enable.eq(self.enable),
            core.clear_drops.eq(self.clear_drops),
            self.dropped.eq(core.dropped),
        ]
        if p.rc == "lookup":
            for outside, inside in zip(self.control, core.control, strict=True):
                wiring.connect(m, wiring.flipped(outside), inside)
            return m
        for i, port in enumerate(self.port):
            table = RouteTable(params=p)
            m.submodules[f"table{i}"] = shared(table, platform, p.structure, p.routes)
            m.d.comb += [table.dst.eq(port.in_flit.data[: p.address_bits]), core.route[i].eq(table.route)]
        return m
