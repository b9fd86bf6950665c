"""Routing table of an input port: fixed at elaboration."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.data import StructLayout, View
from amaranth.lib.wiring import In, Out

from hopforge.hw.allocation.vc_request import class_bits
from hopforge.model.router.params import RouterParams

__all__ = ["RouteTable", "route_layout"]


def route_layout(params: RouterParams) -> StructLayout:
    """Layout of an entry: masks of the ports and of the escape port, and the class."""
    fields = {"ports": params.ports, "route_class": class_bits(params)}
    if params.escapes:  # a field of 0 bits becomes a vector [-1:0] in Verilog
        fields["escape"] = params.ports
    return StructLayout(fields)


class RouteTable(wiring.Component):
    """The entry of ``dst``; what is not in the table has no port. Combinational.

    Parameters
    ----------
    params : RouterParams
        The router, in mode table.
    """

    dst: Signal
    route: View

    def __init__(self, *, params: RouterParams):
        self.params = params
        super().__init__({"dst": In(params.address_bits), "route": Out(route_layout(params))})

    def elaborate(self, platform: object) -> Module:
        """Build one case for all destinations with the same entry."""
        m = Module()
        routes = self.params.routes
        equal: dict[object, list[int]] = {}
        for number, entry in enumerate(routes):
            equal.setdefault(entry, []).append(number)
        with m.Switch(self.dst):
            for numbers in equal.values():
                entry = routes[numbers[0]]
                with m.Case(*numbers):
                    m.d.comb += [self.route.ports.eq(entry.ports), self.route.route_class.eq(entry.route_class)]
                    if entry.escape is not None:
                        m.d.comb += self.route.escape.eq(1 << entry.escape)
        return m
