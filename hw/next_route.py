"""Look-ahead: the route that a head has brought along, and the one that it takes to the next router."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from hopforge.hw.route_table import route_layout
from hopforge.hw.vc_request import class_bits
from hopforge.model.router.params import CLASS_BITS, RouterParams

__all__ = ["BroughtRoute", "NextRoute"]

_HEAD = 0  # bit of a flit's kind


class NextRoute(wiring.Component):
    """The data of a flit, in heads with field `route` of the next router: fixed at elaboration. Combinational.

    Parameters
    ----------
    params : RouterParams
        The router, with look-ahead.
    """

    kind: Signal
    data: Signal
    sent: Signal

    def __init__(self, *, params: RouterParams):
        self.params = params
        super().__init__({"kind": In(2), "data": In(params.width_bits), "sent": Out(params.width_bits)})

    def elaborate(self, platform: object) -> Module:
        """Build one case for all destinations with the same entry."""
        m = Module()
        p = self.params
        first, last = p.route_at, p.route_at + p.route_bits
        ahead = Signal(p.route_bits)
        equal: dict[int, list[int]] = {}
        for number, entry in enumerate(p.lookahead.next_routes if p.lookahead is not None else ()):
            equal.setdefault(entry, []).append(number)
        with m.Switch(self.data[: p.address_bits]):
            for entry, numbers in equal.items():
                with m.Case(*numbers):
                    m.d.comb += ahead.eq(entry)
        m.d.comb += self.sent.eq(self.data)
        with m.If(self.kind[_HEAD]):
            m.d.comb += self.sent[first:last].eq(ahead)
        return m


class BroughtRoute(wiring.Component):
    """The entry (`route_layout`) that stands in field `route` of a head. Combinational.

    A port or a class that there is not gives an entry without a port.

    Parameters
    ----------
    params : RouterParams
        The router, with look-ahead.
    """

    data: Signal
    route: View

    def __init__(self, *, params: RouterParams):
        self.params = params
        super().__init__({"data": In(params.width_bits), "route": Out(route_layout(params))})

    def elaborate(self, platform: object) -> Module:
        """Decode port and class."""
        m = Module()
        p = self.params
        middle = p.route_at + p.port_field_bits
        port, kind = self.data[p.route_at : middle], self.data[middle : middle + CLASS_BITS]
        known = Const(1, 1) if p.classes == 1 << CLASS_BITS else kind < p.classes
        m.d.comb += [
            self.route.ports.eq(Cat((port == o) & known for o in range(p.ports))),
            self.route.route_class.eq(kind[: class_bits(p)]),
        ]
        return m
