"""Requests of an input unit for the switch, with and without VC allocator."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.data import View

from hopforge.hw.allocation.foreseen_request import ForeseenRequest
from hopforge.hw.allocation.free_queue import first_from
from hopforge.hw.allocation.switch_request import SwitchRequest
from hopforge.hw.allocation.vc_request import VcRequest
from hopforge.hw.parts.round_robin import lowest_one, select
from hopforge.hw.parts.shared import place
from hopforge.hw.ports.input_ports import TAIL, label_bits
from hopforge.hw.ports.input_routes import InputRoutes
from hopforge.hw.ports.route_table import route_layout

__all__ = ["InputRequests"]


class InputRequests(InputRoutes):
    """State ACTIVE: which VCs have an output VC, and what they ask the switch for."""

    def _allocated(self, m: Module, requests: list[VcRequest], va: Value, ended: Value) -> None:
        """Remember which VCs have an output VC, and ask for the switch."""
        p = self.params
        nonzero = [self.nonzero[o * p.vcs : (o + 1) * p.vcs] for o in range(p.ports)]
        for v in range(p.vcs):
            granted = self.va_granted[v]
            out_port, out_vc = self._of(self.out_port, v, p.ports), self._of(self.out_vc, v, p.vcs)
            label_vc: Value = out_vc
            m.d.sync += self.active[v].eq(~ended[v] & (granted | self.active[v]))
            ready = Signal(name=f"ready{v}")
            m.d.comb += [
                ready.eq(self._leaves(v, self.active[v] & self.nonempty[v])),
                self._of(self.sa_request, v, p.ports).eq(
                    Cat(out_port[o] & (out_vc & nonzero[o]).any() & ready for o in range(p.ports))
                ),
            ]
            if p.speculation:
                new_port, new_vc = self._of(self.va_port, v, p.ports), self._of(self.va_granted_vc, v, p.vcs)
                asked = requests[v].request
                m.d.comb += [
                    self._of(self.guess_request, v, p.ports).eq(
                        Cat(self._leaves(v, asked[o * p.vcs : (o + 1) * p.vcs].any()) for o in range(p.ports))
                    ),
                    self.guess_confirmed[v].eq(granted & (new_vc & select(new_port, nonzero)).any()),
                ]
                label_vc = Mux(va[v], new_vc, out_vc)
            m.d.comb += self._of(self.label, v, p.vcs + 1).eq(Cat(label_vc, self.front[v].kind[TAIL]))

    def _ahead(self, m: Module, platform: object, requests: list[VcRequest], draining: Value, ended: Value) -> None:
        """Know the requests of the next cycle, and with them what a head of it takes."""
        p = self.params
        arrives = Cat(self.in_valid & (self.in_flit.vc == v if p.vcs > 1 else 1) for v in range(p.vcs))
        units: list[Any] = []
        for v, request in enumerate(requests):
            route = View(route_layout(p), self.front[v].route)
            m.d.comb += [request.ports.eq(route.ports), request.route_class.eq(route.route_class)]
            drained = Signal(name=f"drained{v}")
            kind = ForeseenRequest if p.sa == "input_ahead" else SwitchRequest
            unit = kind(ports=p.ports, vcs=p.vcs)
            units.append(unit)
            offers = [self._offer(m, v, o, route.route_class) for o in range(p.ports)]
            place(
                m, f"switch_request{v}", unit, platform, p.ports, p.vcs,
                ports=route.ports, viable=request.viable, drained=drained, enable=self.enable, arrives=arrives[v],
                nonempty=self.nonempty[v], several=self.several[v], tail=self.front[v].kind[TAIL],
                granted=self.sa_grant[v], pop=self.pop[v], offered=Cat(word for word, _ in offers),
                offered_any=Cat(there for _, there in offers), stays=self.stays, follows=self.follows,
            )  # fmt: skip
            m.d.sync += drained.eq(~ended[v] & (drained | (unit.asks_head & ~request.viable)))
            m.d.comb += [
                draining[v].eq(drained),
                self.active[v].eq(unit.active),
                self.asks_head[v].eq(unit.asks_head),
                self._of(self.out_vc, v, p.vcs).eq(unit.out_vc),
                self._of(self.sa_request, v, p.ports).eq(unit.request),
                self._of(self.label, v, label_bits(p)).eq(Cat(unit.vc, self.front[v].kind[TAIL], unit.asks_head)),
            ]
        if p.sa == "input_ahead":
            self._take_turns(m, units)

    def _take_turns(self, m: Module, units: list[Any]) -> None:
        """Choose the VC that may ask in the next cycle."""
        assert self.turns is not None
        m.submodules.turns = turns = self.turns
        m.d.comb += [
            self.turn.eq(turns.turn),
            turns.asks.eq((turns.turn & Cat(unit.request.any() for unit in units)).any()),
            turns.granted.eq(self.sa_grant.any()),
            turns.drains.eq(lowest_one(self.draining & self.nonempty)),
            turns.next_granted.eq(Cat(unit.next_granted for unit in units)),
            turns.next_kept.eq(Cat(unit.next_kept for unit in units)),
            turns.next_drained.eq(Cat(unit.next_drained for unit in units)),
        ]

    def _offer(self, m: Module, v: int, o: int, route_class: Value) -> tuple[Value, Value]:
        """Return what output `o` has for a head of input VC `v`, and whether it has anything."""
        p = self.params
        first = sum(len(masks) for masks in self.masks[:o])
        rules = [p.vc_mask(k, self.port, v, o) for k in range(p.classes)]
        places = [first + self.masks[o].index(mask) if mask else None for mask in rules]
        words = [
            (Const(0, p.vcs), Const(0, 1))
            if at is None
            else (self.offers[at * p.vcs : (at + 1) * p.vcs], self.offered[at])
            for at in places
        ]
        if len(set(places)) == 1:
            return words[0]
        word, there = Signal(p.vcs, name=f"offer{v}_{o}"), Signal(name=f"offered{v}_{o}")
        for k, (one, any_one) in enumerate(words):
            with m.If(route_class == k):
                m.d.comb += [word.eq(one), there.eq(any_one)]
        return word, there

    def _queued(self, m: Module, requests: list[VcRequest], ended: Value) -> None:
        """Ask for the switch with heads that have no output VC yet, and remember what they take."""
        p = self.params
        nonzero = [self.nonzero[o * p.vcs : (o + 1) * p.vcs] for o in range(p.ports)]
        pointers = [self.at_or_after[o * p.vcs : (o + 1) * p.vcs] for o in range(p.ports)]
        for v, request in enumerate(requests):
            out_port, out_vc = self._of(self.out_port, v, p.ports), self._of(self.out_vc, v, p.vcs)
            granted, active = self.sa_grant[v], self.active[v]
            asked = [request.request[o * p.vcs : (o + 1) * p.vcs] for o in range(p.ports)]
            available = Signal(p.vcs, name=f"available{v}")
            first, ready, head = Signal(p.vcs, name=f"first{v}"), Signal(name=f"ready{v}"), Signal(name=f"head{v}")
            m.d.comb += [
                available.eq(Cat(Cat(word[w] for word in asked).any() for w in range(p.vcs))),
                first.eq(first_from(available, select(request.asked_port, pointers))),
                head.eq(request.valid),
                self.asks_head[v].eq(head),
                ready.eq(active & self.nonempty[v]),
                self._of(self.sa_request, v, p.ports).eq(
                    Cat(
                        self._leaves(v, asked[o].any()) | (out_port[o] & (out_vc & nonzero[o]).any() & ready)
                        for o in range(p.ports)
                    )
                ),
                self._of(self.label, v, label_bits(p)).eq(
                    Cat(Mux(head, first, out_vc), self.front[v].kind[TAIL], head)
                ),
            ]
            m.d.sync += active.eq(~ended[v] & (granted | active))
            with m.If(granted & head):
                m.d.sync += [out_port.eq(request.asked_port), out_vc.eq(first)]
