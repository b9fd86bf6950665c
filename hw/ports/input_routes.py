"""Routes of the heads of an input unit: from the table, from an engine, and those that they take to the next router."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.data import View
from amaranth.lib.wiring import In
from amaranth.utils import ceil_log2

from hopforge.hw.allocation.vc_request import VcRequest, class_bits
from hopforge.hw.lookup.base import LookupBase
from hopforge.hw.lookup.engine import lookup_engine
from hopforge.hw.parts.and_or import and_or
from hopforge.hw.parts.round_robin import RoundRobin, select
from hopforge.hw.parts.shared import place, shared
from hopforge.hw.ports.input_ports import HEAD
from hopforge.hw.ports.input_queues import InputQueues, number_of
from hopforge.hw.ports.next_lookup import NextAnswer
from hopforge.hw.ports.route_table import route_layout
from hopforge.hw.ports.spread_choice import KEY_BITS, SpreadChoice, port_number, spread_counts
from hopforge.model.router.params import CLASS_BITS, PORT_BITS

__all__ = ["InputRoutes"]


class InputRoutes(InputQueues):
    """States RC, VA and DRAIN: when a VC has its route, and what the route is."""

    def _ask_ahead(
        self, m: Module, platform: object, requests: list[VcRequest], va: Value, ended: Value
    ) -> None:
        """Let heads ask the engine of their output, and bring its answer into those that leave."""
        p = self.params
        engines = Cat(Const(int(p.carries(o)), 1) for o in range(p.ports))
        answers = []
        for v, request in enumerate(requests):
            answer = NextAnswer(route_bits=p.answer_bits)
            place(
                m, f"next_answer{v}", answer, platform, p.answer_bits,
                routed=(va[v] & request.viable) | self.active[v], needs=(request.ports & engines).any(),
                accepted=self.ahead_accepted[v], answered=self.ahead_answered[v],
                answer=self._of(self.ahead_answer, v, p.answer_bits), granted=self.sa_grant[v], ended=ended[v],
            )  # fmt: skip
            answers.append(answer.route)
            m.d.comb += [
                self.may_leave[v].eq(answer.may_leave),
                self._of(self.ahead_asks, v, p.ports).eq(request.ports & engines & answer.asks.replicate(p.ports)),
                self._of(self.ahead_dst, v, p.address_bits).eq(self.front[v].dst),
            ]
        leaving = Signal(p.vcs, name="leaving_head")
        m.d.sync += leaving.eq(self.sa_grant)
        taken = select(leaving, answers)
        if p.spread_router is not None:
            taken = self._chosen_behind(m, platform, requests, taken)
        with m.If(self.word_kind[HEAD]):  # not that of the word: it would be read where a part of it is written
            m.d.comb += self.word.data[p.route_at : p.route_at + p.route_bits].eq(taken)

    def _chosen_behind(self, m: Module, platform: object, requests: list[VcRequest], ports: Value) -> Value:
        """Return field `route` of the head that leaves: of `ports` the one that the router behind its output takes."""
        p = self.params
        output = Signal(p.ports, name="leaving_by")
        m.d.sync += output.eq(select(self.sa_grant, [request.ports for request in requests]))
        choice = SpreadChoice(params=p, counts=spread_counts(p))
        m.submodules.ahead_choice = shared(choice, platform, p.structure, "any number of ports")
        key = and_or([(output[o], self.ahead_keys.word_select(o, KEY_BITS)) for o in range(p.ports)], KEY_BITS)
        m.d.comb += [choice.data.eq(self.read_data), choice.key.eq(key), choice.ports.eq(ports)]
        if p.entropy_bits:
            m.d.comb += choice.entropy.eq(self.read_data[p.entropy_at : p.entropy_at + p.entropy_bits])
        return port_number(p, choice.port)

    def _leaves(self, v: int, asks: Value) -> Value:
        """Return a request for the switch, held back while the head of the VC waits for its answer."""
        return asks & self.may_leave[v] if self.params.asks_ahead else asks

    def _enabled(self, m: Module) -> Value:
        """Return ``enable`` a cycle later."""
        enabled = Signal(init=1)
        m.d.sync += enabled.eq(self.enable)
        return enabled

    def _from_table(self, m: Module, requests: list[VcRequest], va: Value, draining: Value, ended: Value) -> None:
        """RC is waiting; the route has been kept with the flit."""
        p = self.params
        cycles = p.rc_cycles_at(self.port)
        enabled = self._enabled(m) if cycles else Const(1, 1)
        for v, request in enumerate(requests):
            route = View(route_layout(p), self.front[v].route)
            m.d.comb += [request.ports.eq(route.ports), request.route_class.eq(route.route_class)]
            if p.escapes:
                m.d.comb += request.escape.eq(route.escape)
            waiting = self.nonempty[v] & ~self.active[v]
            drained = Signal(name=f"drained{v}")  # kept: behind the head the queue holds no routes
            m.d.comb += draining[v].eq(drained)
            if cycles == 0:
                stays = ~ended[v] & (drained | (va[v] & ~request.viable))
                stopped = Signal(name=f"stopped{v}")  # drained or not enabled, in one register
                m.d.comb += va[v].eq(waiting & ~stopped)
                m.d.sync += [drained.eq(stays), stopped.eq(stays | ~self.enable)]
                continue
            routed = Signal(name=f"routed{v}")
            cycle = Signal(range(cycles), name=f"rc_cycle{v}")
            m.d.comb += va[v].eq(routed & ~self.active[v])
            with m.If(ended[v]):
                m.d.sync += [routed.eq(0), drained.eq(0)]
            with m.Elif(waiting & ~routed & ~drained & enabled):
                last = cycle == cycles - 1
                m.d.sync += [
                    routed.eq(last & request.viable),
                    drained.eq(last & ~request.viable),
                    cycle.eq(Mux(last, 0, cycle + 1)),
                ]

    def _engine(self, m: Module) -> LookupBase:
        """Put in an engine of its own."""
        assert self.params.lookup is not None
        m.submodules.engine = lookup = lookup_engine(params=self.params.lookup)
        for name, member in self.control.signature.members.items():  # type: ignore[attr-defined]
            outside, inside = getattr(self.control, name), getattr(lookup, name)  # type: ignore[attr-defined]
            m.d.comb += inside.eq(outside) if member.flow == In else outside.eq(inside)
        return lookup

    def _looked_up(self, m: Module, requests: list[VcRequest], va: Value, draining: Value, ended: Value) -> None:
        """Ask the engine, one VC after the other."""
        p = self.params
        enabled = self._enabled(m)
        lookup = self.asking if p.ports_per_engine > 1 else self._engine(m)  # type: ignore[attr-defined]
        m.submodules.turn = turn = RoundRobin(width=p.vcs)
        accepted = Signal()
        m.d.comb += [
            lookup.req_valid.eq(turn.requests.any()),
            lookup.req_dst.eq(select(turn.grant, [front.dst for front in self.front])),
            lookup.req_tag.eq(number_of(turn.grant)),
            lookup.resp_ready.eq(1),
            accepted.eq(lookup.req_valid & lookup.req_ready),
            turn.advance.eq(accepted),
        ]
        output = lookup.resp_output
        ports = Signal(p.ports)
        route_class = Signal(class_bits(p))
        if self.spreads:
            m.submodules.spread = choice = SpreadChoice(params=p, counts=spread_counts(p))
            asker = Cat(lookup.resp_tag[: ceil_log2(p.vcs)] == v for v in range(p.vcs))
            m.d.comb += [
                choice.data.eq(select(asker, [Cat(front.dst, front.src) for front in self.front])),
                choice.key.eq(self.spread_key),
                choice.ports.eq(output),
                ports.eq(choice.port),
            ]
            if p.entropy_bits:
                m.d.comb += choice.entropy.eq(select(asker, [front.entropy for front in self.front]))
        elif p.output_kind == "port_set":
            m.d.comb += ports.eq(output)
        else:
            port, kind = output[:PORT_BITS], output[PORT_BITS : PORT_BITS + CLASS_BITS]
            m.d.comb += ports.eq(Cat(port == o for o in range(p.ports)))
            if len(kind):
                m.d.comb += route_class.eq(Mux(kind < p.classes, kind, p.classes))
        for v, request in enumerate(requests):
            routed = Signal(name=f"routed{v}")
            asked = Signal(name=f"asked{v}")
            kept_ports = Signal(p.ports, name=f"ports{v}")
            kept_class = Signal(class_bits(p), name=f"class{v}")
            answered = lookup.resp_valid & (lookup.resp_tag == v)
            m.d.comb += [
                va[v].eq(routed & ~self.active[v] & request.viable),
                draining[v].eq(routed & ~self.active[v] & ~request.viable),
                turn.requests[v].eq(self.nonempty[v] & ~routed & ~asked & enabled),
                request.ports.eq(kept_ports),
                request.route_class.eq(kept_class),
            ]
            with m.If(ended[v]):
                m.d.sync += [routed.eq(0), asked.eq(0)]
            with m.Else():
                with m.If(turn.grant[v] & accepted):
                    m.d.sync += asked.eq(1)
                with m.If(answered):
                    m.d.sync += [
                        routed.eq(1),
                        kept_ports.eq(ports & lookup.resp_match.replicate(p.ports)),
                        kept_class.eq(route_class),
                    ]
