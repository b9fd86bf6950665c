"""Where a head may go in a golden router, and what it takes along for the next one (docs/definitions/router.md)."""

from typing import NamedTuple

from hopforge.model.lookup.golden.ports import LookupOutputs
from hopforge.model.router.flit import Flit
from hopforge.model.router.params import CLASS_BITS, Route, RouterParams

__all__ = ["Candidate", "HeadRoutes"]


class Candidate(NamedTuple):
    """An output port, the virtual channels there that a head may be given, and which candidates come first."""

    port: int
    mask: int
    level: int


class HeadRoutes:
    """Routes of the heads of a router.

    Parameters
    ----------
    params : RouterParams
        The router.
    """

    def __init__(self, params: RouterParams) -> None:
        self.params = params

    def of_table(self, i: int, v: int, head: int) -> list[Candidate]:
        """Return the candidates of a head (its data) in VC v of input i: by the table, or as it has brought along."""
        p = self.params
        if p.carries(i):
            return self._brought(i, v, head)
        dst = head & (1 << p.address_bits) - 1
        if dst >= len(p.routes):
            return []
        route = p.routes[dst]
        candidates = self._candidates(i, v, self._left_by_spread(route.ports, head), route.route_class)
        if route.escape is not None:
            mask = p.escape_mask(route.route_class, i, v, route.escape)
            candidates += [Candidate(route.escape, mask, 1)] if mask else []
        return candidates

    def of_answer(self, i: int, v: int, head: int, answer: LookupOutputs) -> list[Candidate]:
        """Return the candidates by the answer of a lookup engine."""
        p, output = self.params, answer.resp_output
        if not answer.resp_match:
            return []
        if p.output_kind == "port_set":
            ports = output & (1 << p.ports) - 1
            return self._candidates(i, v, self._left_by_spread(ports, head), 0)
        bits = max(6, (p.ports - 1).bit_length())
        port = output & (1 << bits) - 1
        ports = 1 << port if port < p.ports else 0
        return self._candidates(i, v, ports, output >> bits & (1 << CLASS_BITS) - 1)

    def with_next(self, head: Flit, o: int, answered: int | None) -> Flit:
        """Return a head that leaves by output o with field `route` of the next router; an engine has `answered`."""
        p = self.params
        if p.lookahead is None:
            return head
        field_mask = (1 << p.route_bits) - 1
        route = (answered or 0) if p.rc == "lookup" else self._next_route(head.data, o)
        return head._replace(data=head.data & ~(field_mask << p.route_at) | route << p.route_at)

    def behind(self, ports: int, head: int, o: int) -> int:
        """Return the port of a set, as a mask, that the router behind output o takes for a head."""
        assert self.params.lookahead is not None
        behind = self.params.lookahead.behind[o]
        assert behind is not None
        return self._one_of(ports, head, behind.router)

    def _next_route(self, head: int, o: int) -> int:
        """Return field `route` that a head needs in the router behind output o, by the table."""
        p, ahead = self.params, self.params.lookahead
        assert ahead is not None
        dst = head & (1 << p.address_bits) - 1
        if ahead.behind:
            behind = ahead.behind[o]
            if behind is None or dst >= len(behind.routes):
                return 0
            route = behind.routes[dst]
            return p.route_field(Route(self._one_of(route.ports, head, behind.router), route.route_class))
        return ahead.next_routes[dst] if dst < len(ahead.next_routes) else 0

    def _brought(self, i: int, v: int, head: int) -> list[Candidate]:
        """Return the candidates that a head has brought along."""
        p = self.params
        value = head >> p.route_at & (1 << p.route_bits) - 1
        port = value & (1 << p.ports.bit_length()) - 1
        return self._candidates(i, v, 1 << port if port < p.ports else 0, value >> p.ports.bit_length())

    def _candidates(self, i: int, v: int, ports: int, route_class: int) -> list[Candidate]:
        p = self.params
        options = [Candidate(o, p.vc_mask(route_class, i, v, o), 0) for o in range(p.ports) if ports >> o & 1]
        return [option for option in options if option.mask]

    def _left_by_spread(self, ports: int, head: int) -> int:
        """Return the ports of a route that are left for a head."""
        number = self.params.spread_router
        return ports if number is None else self._one_of(ports, head, number)

    def _one_of(self, ports: int, ends: int, router: int) -> int:
        """Return the port that source, destination, entropy and a router name (any-routing.md, Spread)."""
        p = self.params
        ways = [o for o in range(p.ports) if ports >> o & 1]
        if not ways:
            return 0
        dst, src = ends & (1 << p.address_bits) - 1, ends >> p.address_bits & (1 << p.address_bits) - 1
        entropy = ends >> p.entropy_at & (1 << p.entropy_bits) - 1
        key = (router + 1) * 2654435761 % 2**32
        word = src % 2**32 ^ _turned(dst % 2**32, 16, 32) ^ key ^ key >> 16 ^ entropy * 668265263 % 2**32
        word ^= _turned(word, 6, 32) & _turned(word, 9, 32)
        half = (word ^ _turned(word, 7, 32) ^ word >> 16 ^ _turned(word, 19, 32) ^ _turned(word, 27, 32)) % 2**16
        half ^= _turned(half, 1, 16) & _turned(half, 5, 16)
        half ^= _turned(half, 5, 16) ^ _turned(half, 7, 16)
        return 1 << ways[(half >> 8) * len(ways) >> 8 if len(ways) <= 16 else half * len(ways) >> 16]


def _turned(word: int, by: int, bits: int) -> int:
    """Rotate a word of some bits to the left."""
    return (word << by | word >> bits - by) % 2**bits
