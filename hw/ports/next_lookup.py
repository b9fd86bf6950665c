"""Look-ahead with lookup engines: the engine of an output, and what a head does until it has its answer."""

from collections.abc import Callable
from typing import Any, cast

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.lookup.base import LookupBase
from hopforge.hw.lookup.engine import lookup_engine
from hopforge.hw.parts.round_robin import RoundRobin, select
from hopforge.hw.ports.engine_ports import control_signature
from hopforge.model.router.params import CLASS_BITS, PORT_BITS, RouterParams

__all__ = ["NextAnswer", "NextLookup"]


class NextLookup(wiring.Component):
    """The engine of an output, which answers for the router behind it (docs/definitions/router.md).

    Latency: that of the engine; one request a cycle. Fair: of the VCs that ask, the first at or after a pointer, which
    moves behind it when its request is accepted. Back-pressure: whoever is not accepted keeps asking; responses are
    always taken. Reset: pointer 0, engine as `Lookup`.

    - ``asks``, ``dst``: VCs of all inputs that ask, n = i·V + v, and their destinations; ``accepted`` answers in the
      same cycle.
    - ``answered``: the VC whose answer is there in this cycle, and ``route``, field `route` of its head; with a spread
      the ports of which the router behind takes one.
    - ``control``: register bus of the engine, and its TCAM port if the TCAM is outside.

    Parameters
    ----------
    params : RouterParams
        The router, in mode lookup and with look-ahead.
    engine : callable
        Makes the engine, `lookup_engine`; a proof puts free signals in its place.

    Attributes
    ----------
    turn : RoundRobin
        The choice.
    """

    asks: Signal
    dst: Signal
    accepted: Signal
    answered: Signal
    route: Signal
    control: Any

    def __init__(self, *, params: RouterParams, engine: Callable[..., wiring.Component] = lookup_engine):
        assert params.lookup is not None
        self.params = p = params
        self._engine = engine
        askers = p.ports * p.vcs
        self.turn = RoundRobin(width=askers)
        super().__init__(
            {
                "asks": In(askers),
                "dst": In(askers * p.address_bits),
                "accepted": Out(askers),
                "answered": Out(askers),
                "route": Out(p.answer_bits),
                "control": Out(control_signature(params.lookup)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Put the engine behind the choice."""
        m = Module()
        p = self.params
        assert p.lookup is not None
        askers = p.ports * p.vcs
        m.submodules.engine = engine = cast(LookupBase, self._engine(params=p.lookup))
        m.submodules.turn = turn = self.turn
        for name, member in self.control.signature.members.items():
            outside, inside = getattr(self.control, name), getattr(engine, name)
            m.d.comb += inside.eq(outside) if member.flow == In else outside.eq(inside)
        numbers: list[Value] = [Const(n, len(engine.req_tag)) for n in range(askers)]
        m.d.comb += [
            turn.requests.eq(self.asks),
            turn.advance.eq(engine.req_valid & engine.req_ready),
            engine.req_valid.eq(self.asks.any()),
            engine.req_dst.eq(turn.select([self.dst.word_select(n, p.address_bits) for n in range(askers)])),
            engine.req_tag.eq(select(turn.grant, numbers)),
            engine.resp_ready.eq(1),
            self.accepted.eq(turn.grant & engine.req_ready.replicate(askers)),
            self.answered.eq(Cat(engine.resp_valid & (engine.resp_tag == n) for n in range(askers))),
            self.route.eq(self._field(engine)),
        ]
        return m

    def _field(self, engine: LookupBase) -> Value:
        """Return the answer as field `route`: a port that is not there, or no match, is port P."""
        p = self.params
        if p.spread_router is not None:
            return engine.resp_output[: p.ports] & engine.resp_match.replicate(p.ports)
        port = engine.resp_output[:PORT_BITS]
        known = engine.resp_match & (port < p.ports)
        route_class = engine.resp_output[PORT_BITS : PORT_BITS + CLASS_BITS]
        bits = Cat(route_class, Const(0, CLASS_BITS))[:CLASS_BITS] & engine.resp_match.replicate(CLASS_BITS)
        number = Cat(port, Const(0, PORT_BITS + 1))[: p.port_field_bits]
        return Cat(Mux(known, number, p.ports)[: p.port_field_bits], bits)


class NextAnswer(wiring.Component):
    """Whether the head of a VC has asked for its route in the next router, and what the answer is.

    ``may_leave`` is 1 from the cycle of the answer on, for heads that need none, and for the flits behind a head.
    Reset: nothing asked.

    - ``routed``: the VC has an output in sight (in VA with a candidate, or ACTIVE); ``needs``: that output has an
      engine.
    - ``asks``, ``accepted``, ``answered``, ``answer``: to and from `NextLookup`.
    - ``granted``: a flit leaves; ``ended``: a tail leaves.
    - ``route``: the answer, from the cycle after it on, until that of the next packet.

    Parameters
    ----------
    route_bits : int
        Bits of the answer.

    Attributes
    ----------
    asked, opened : Signal
        For proofs: its state.
    """

    routed: Signal
    needs: Signal
    accepted: Signal
    answered: Signal
    answer: Signal
    granted: Signal
    ended: Signal
    asks: Signal
    may_leave: Signal
    route: Signal

    def __init__(self, *, route_bits: int):
        self.asked = Signal()
        self.opened = Signal()
        names = ("routed", "needs", "accepted", "answered", "granted", "ended")
        super().__init__(
            {name: In(1) for name in names}
            | {"answer": In(route_bits), "asks": Out(1), "may_leave": Out(1), "route": Out(route_bits)}
        )

    def elaborate(self, platform: object) -> Module:
        """Two flags and the answer."""
        m = Module()
        asked, opened = self.asked, self.opened
        m.d.comb += [
            self.asks.eq(self.routed & self.needs & ~asked & ~opened),
            self.may_leave.eq(opened | self.answered | ~self.needs),
        ]
        m.d.sync += [
            asked.eq(~self.ended & (asked | self.accepted)),
            opened.eq(~self.ended & (opened | self.answered | self.granted)),
        ]
        with m.If(self.answered):
            m.d.sync += self.route.eq(self.answer)
        return m
