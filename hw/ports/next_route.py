"""Look-ahead: the route that a head has brought along, and the one that it takes to the next router."""

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from hopforge.hw.allocation.vc_request import class_bits
from hopforge.hw.parts.and_or import and_or
from hopforge.hw.ports.route_table import route_layout
from hopforge.hw.ports.spread_choice import KEY_BITS, SpreadChoice, port_number
from hopforge.model.router.params import CLASS_BITS, Route, RouterParams
from hopforge.model.topology.spread import router_key

__all__ = ["BroughtRoute", "NextChoice", "NextRoute"]

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


class NextChoice(wiring.Component):
    """As `NextRoute`, where routers take one of several ports: the choice of the router behind the own ``port``.

    Parameters
    ----------
    params : RouterParams
        The router, with look-ahead and a spread.
    """

    kind: Signal
    data: Signal
    port: Signal
    sent: Signal

    def __init__(self, *, params: RouterParams):
        self.params = params
        super().__init__({
            "kind": In(2), "data": In(params.width_bits), "port": In(params.ports), "sent": Out(params.width_bits),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        """Build a table for every router behind, and the choice of the one that the packet comes to."""
        m = Module()
        p = self.params
        assert p.lookahead is not None
        behind = {o: each for o, each in enumerate(p.lookahead.behind) if each is not None}
        counts = sorted({route.ports.bit_count() for each in behind.values() for route in each.routes})
        m.submodules.choice = choice = SpreadChoice(params=p, counts=counts)
        known = p.ports + CLASS_BITS  # bit of an entry that is there
        entries: list[tuple[Value, Value]] = []
        for o, each in behind.items():
            entry = Signal(known + 1, name=f"entry{o}")
            equal: dict[Route, list[int]] = {}
            for dst, route in enumerate(each.routes):
                equal.setdefault(route, []).append(dst)
            with m.Switch(self.data[: p.address_bits]):
                for route, numbers in equal.items():
                    with m.Case(*numbers):
                        m.d.comb += entry.eq(route.ports | route.route_class << p.ports | 1 << known)
            entries.append((self.port[o], entry))
        keys = [(self.port[o], Const(router_key(each.router), KEY_BITS)) for o, each in behind.items()]
        entry = Signal(known + 1)
        number = Signal(p.port_field_bits)
        m.d.comb += [
            entry.eq(and_or(entries, len(entry))),
            choice.data.eq(self.data),
            choice.key.eq(and_or(keys, KEY_BITS)),
            choice.ports.eq(entry[: p.ports]),
            number.eq(port_number(p, choice.port)),
            self.sent.eq(self.data),
        ]  # fmt: skip
        if p.entropy_bits:
            m.d.comb += choice.entropy.eq(self.data[p.entropy_at : p.entropy_at + p.entropy_bits])
        with m.If(self.kind[_HEAD]):
            field = Cat(number, entry[p.ports : known]) & entry[known].replicate(p.route_bits)
            m.d.comb += self.sent[p.route_at : p.route_at + p.route_bits].eq(field)
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
