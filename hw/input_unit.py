"""Input side of a port: buffers, routing and the state of its virtual channels."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.data import StructLayout, View
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, ceil_log2

from hopforge.hw.flit_buffer import FlitBuffer
from hopforge.hw.foreseen_request import ForeseenRequest
from hopforge.hw.free_queue import first_from, offered_masks, offers_ahead
from hopforge.hw.lookup import LookupBase, lookup_ports
from hopforge.hw.lookup_engine import lookup_engine
from hopforge.hw.protected_buffer import FLIT_EVENTS, ProtectedBuffer
from hopforge.hw.round_robin import RoundRobin, lowest_one, select
from hopforge.hw.route_table import route_layout
from hopforge.hw.shared import place, shared
from hopforge.hw.switch_request import SwitchRequest
from hopforge.hw.vc_request import VcRequest, class_bits, credit_bits
from hopforge.hw.vc_turn import VcTurn
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.params import CLASS_BITS, PORT_BITS, RouterParams

__all__ = ["DROP_BITS", "InputUnit", "asking_signature", "control_signature", "flit_layout", "label_bits"]

DROP_BITS = 32
"""Width of a drop counter; it wraps around."""

_HEAD, _TAIL = 0, 1  # bits of a flit's kind


def flit_layout(params: RouterParams) -> StructLayout:
    """Layout of a flit; in the data of a head destination, source, tag and (vct) length from bit 0 on."""
    return StructLayout({"kind": 2, "vc": max(1, ceil_log2(params.vcs)), "data": params.width_bits})


def label_bits(params: RouterParams) -> int:
    """Width of what a granted VC tells its output: the output VC, a tail, and where heads bring it along, a head."""
    return params.vcs + (2 if params.va == "free_queue" else 1)


def control_signature(params: LookupParams) -> wiring.Signature:
    """Ports of a lookup engine that software and a TCAM outside use."""
    ports = lookup_ports(params)
    return wiring.Signature({name: port for name, port in ports.items() if not name.startswith(("req_", "resp_"))})


def asking_signature(params: RouterParams) -> wiring.Signature:
    """Return requests and responses of a shared engine, seen from an input unit; a tag is the number of a VC."""
    assert params.lookup is not None
    tag_bits = max(1, ceil_log2(params.vcs))
    return wiring.Signature(
        {
            "req_valid": Out(1),
            "req_ready": In(1),
            "req_dst": Out(params.address_bits),
            "req_tag": Out(tag_bits),
            "resp_valid": In(1),
            "resp_ready": Out(1),
            "resp_tag": In(tag_bits),
            "resp_output": In(params.lookup.output_bits),
            "resp_match": In(1),
        }
    )


class InputUnit(wiring.Component):
    """V queues of B flits and what becomes of the packet at the front of each, as in docs/definitions/router.md.

    A flit on ``in_flit`` is written at the end of the cycle, in mode table with ``route``, the entry of its destination
    (`RouteTable`). ``va_request`` and ``sa_request`` ask, ``va_grant`` and
    ``sa_grant`` answer in the same cycle; the granted flit stands on ``word`` in the next cycle, as does its credit.
    An unroutable packet leaves through the drain, one flit in each cycle in which the port sends nothing else.
    While ``enable`` was 0 in the cycle before, no packet begins RC. ``dropped``: ``drops``, which
    ``clear_drops`` sets to 0, is about to count a packet.
    Reset: empty, no packet dropped.

    Parameters
    ----------
    params : RouterParams
        The router.
    port : int
        Number of the port.
    flit_buffer : callable
        Makes the storage; proofs put in one of their own.

    Attributes
    ----------
    nonempty, active, pop : Signal
        For proofs: of each VC, whether it has a flit, has an output VC, loses a flit.
    turns : VcTurn, optional
        With ``sa`` input_ahead: what chooses the VC that may ask.
    asks_head, draining : Signal
        For proofs: of each VC, whether a head without an output VC may ask for the switch (``va`` free_queue), and
        whether its packet is unroutable.
    count, several, write, read, front : list of Signal
        For proofs: of each VC, flits, whether there are several, places, and what is kept of the first flit.
    """

    in_valid: Signal
    in_flit: View
    route: Signal
    credit_valid: Signal
    credit_vc: Signal
    drops: Signal
    dropped: Signal
    flit_wrong: Signal
    flit_repaired: Signal
    enable: Signal
    clear_drops: Signal
    free: Signal
    credits: Signal
    nonzero: Signal
    va_request: Signal
    va_port: Signal
    va_granted: Signal
    va_granted_vc: Signal
    out_port: Signal
    out_vc: Signal
    sa_request: Signal
    guess_request: Signal
    guess_confirmed: Signal
    turn: Signal
    sa_grant: Signal
    label: Signal
    at_or_after: Signal
    offers: Signal
    offered: Signal
    stays: Signal
    follows: Signal
    word: View

    def __init__(self, *, params: RouterParams, port: int, flit_buffer: Callable[..., FlitBuffer] = FlitBuffer):
        self.params = p = params
        self.port = port
        self._flit_buffer = flit_buffer
        flit = flit_layout(p)
        pairs = p.ports * p.vcs
        members = {
            "in_valid": In(1),
            "in_flit": In(flit),
            "credit_valid": Out(1),
            "credit_vc": Out(max(1, ceil_log2(p.vcs))),
            "drops": Out(DROP_BITS),
            "dropped": Out(1),
            **({name: Out(1) for name in FLIT_EVENTS} if p.protection is not None else {}),
            "enable": In(1, init=1),
            "clear_drops": In(1),
            "free": In(pairs),
            "credits": In(pairs * credit_bits(p)),
            "nonzero": In(pairs),
            "sa_request": Out(p.vcs * p.ports),
            "sa_grant": In(p.vcs),
            "label": Out(p.vcs * label_bits(p)),
            "word": Out(flit),
        }
        self.masks: tuple[tuple[int, ...], ...] = ()  # behind each output, the sets of VCs that it makes offers for
        if p.va == "free_queue":
            self.masks = tuple(offered_masks(p, o) for o in range(p.ports)) if offers_ahead(p) else ()
            members |= {name: In(pairs) for name in ("at_or_after", "stays", "follows")}
            if p.sa == "input_ahead":
                members["turn"] = Out(p.vcs)
            offers = sum(len(of_output) for of_output in self.masks)
            members |= {"offers": In(p.vcs * offers), "offered": In(offers)}
            self.out_port = Signal(p.vcs * p.ports)
            self.out_vc = Signal(p.vcs * p.vcs)
        else:
            members |= {
                "va_request": Out(p.vcs * pairs),
                "va_port": Out(p.vcs * p.ports),
                "va_granted": In(p.vcs),
                "va_granted_vc": In(p.vcs * p.vcs),
                "out_port": In(p.vcs * p.ports),
                "out_vc": In(p.vcs * p.vcs),
            }
        if p.speculation:
            members |= {"guess_request": Out(p.vcs * p.ports), "guess_confirmed": Out(p.vcs)}
        if self.looks_up and p.lookup is not None:
            if p.ports_per_engine > 1:
                members["asking"] = Out(asking_signature(p))
            else:
                members["control"] = Out(control_signature(p.lookup))
        else:
            members["route"] = In(route_layout(p).size)
        super().__init__(members)

        self.nonempty = Signal(p.vcs)
        self.active = Signal(p.vcs)
        self.asks_head = Signal(p.vcs)
        self.draining = Signal(p.vcs)
        vcs, depth = range(p.vcs), p.buffer_flits
        self.pop = Signal(p.vcs)
        self.turns = VcTurn(vcs=p.vcs) if p.sa == "input_ahead" else None
        self.count = [Signal(range(depth + 1), name=f"count{v}") for v in vcs]
        self.several = [Signal(name=f"several{v}") for v in vcs]
        self.write = [Signal(range(depth), name=f"write{v}") for v in vcs]
        self.read = [Signal(range(depth), name=f"read{v}") for v in vcs]
        stored = {"kind": 2, "length": p.length_bits if p.switching == "vct" else 0}
        if self.looks_up:
            stored["dst"] = p.address_bits
        else:
            stored["route"] = route_layout(p).size
        self._front_layout = StructLayout(stored)
        self.front = [
            View(self._front_layout, Signal(self._front_layout.size, name=f"front{v}", reset_less=True))
            for v in range(p.vcs)
        ]

    @property
    def rules(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """What `VcRequest.rules` says of each VC: the same for ports of which the hardware is the same."""
        return tuple(VcRequest.rules_of(self.params, self.port, v) for v in range(self.params.vcs))

    @property
    def looks_up(self) -> bool:
        """Whether it asks a lookup engine, its own or (with ``asking``) one that it shares."""
        return self.params.rc == "lookup"

    def elaborate(self, platform: object) -> Module:
        """Build buffers, routing, requests and the states."""
        m = Module()
        p = self.params
        pop = self.pop
        ended = Signal(p.vcs)  # the tail leaves in this cycle
        va = Signal(p.vcs)
        draining = self.draining
        self._buffers(m, platform, pop)

        requests = [VcRequest(params=p, port=self.port, vc=v) for v in range(p.vcs)]
        if self.looks_up:
            self._looked_up(m, requests, va, draining, ended)
        elif self.masks:
            self._ahead(m, platform, requests, draining, ended)
        else:
            self._from_table(m, requests, va, draining, ended)
        for v, request in enumerate(requests):
            place(m, f"request{v}", request, platform, p.structure, request.rules, free=self.free, credits=self.credits)
            m.d.comb += request.valid.eq(va[v])
            if p.va != "free_queue":
                m.d.comb += [
                    self._pairs(self.va_request, v).eq(request.request),
                    self._of(self.va_port, v, p.ports).eq(request.asked_port),
                ]
            if p.switching == "vct":
                m.d.comb += request.length.eq(self.front[v].length)

        drain = Signal(p.vcs)
        m.d.comb += [
            drain.eq(lowest_one(draining & self.nonempty) & (~self.sa_grant.any()).replicate(p.vcs)),
            pop.eq(self.sa_grant | drain),
            ended.eq(Cat(pop[v] & self.front[v].kind[_TAIL] for v in range(p.vcs))),
        ]
        m.d.comb += self.dropped.eq((drain & ended).any())
        # The event is late in its cycle: one flip-flop waits for it, not the whole counter.
        counted = Signal(DROP_BITS, name="drops_counted")
        happened = Signal(name="drop_happened")
        m.d.comb += self.drops.eq(counted + happened)
        m.d.sync += happened.eq(self.dropped & ~self.clear_drops)
        with m.If(self.clear_drops):
            m.d.sync += counted.eq(0)
        with m.Elif(happened):
            m.d.sync += counted.eq(self.drops)
        if self.masks:
            pass  # `_ahead` has done it
        elif p.va == "free_queue":
            self._queued(m, requests, ended)
        else:
            self._allocated(m, va, ended)
        self._leaving(m, pop)
        return m

    def _pairs(self, word: Value, v: int) -> Value:
        return self._of(word, v, self.params.ports * self.params.vcs)

    def _of(self, word: Value, v: int, width: int) -> Value:
        """Return the part of a VC of a word that has as many bits for each."""
        return word[v * width : (v + 1) * width]

    def _buffers(self, m: Module, platform: object, pop: Value) -> None:
        """Queues: the data of all of them in one array; what decisions need of the first flit in registers."""
        p = self.params
        depth = p.buffer_flits
        note_bits = self._front_layout.size
        buffer = self._buffer(note_bits)
        m.submodules.buffer = shared(
            buffer, platform, p.vcs, depth, p.width_bits, note_bits, p.flit_buffers, *p.protected
        )  # fmt: skip
        written = View(self._front_layout, Signal(self._front_layout.size, name="written"))
        head = self.in_flit.data
        dst = head[: p.address_bits]
        m.d.comb += written.kind.eq(self.in_flit.kind)
        if p.switching == "vct":
            m.d.comb += written.length.eq(head[2 * p.address_bits + p.tag_bits :][: p.length_bits])
        if self.looks_up:
            m.d.comb += written.dst.eq(dst)
        else:
            m.d.comb += written.route.eq(self.route)
        m.d.comb += [buffer.w_data.eq(head), buffer.w_note.eq(written), self.word.data.eq(buffer.data)]

        # Of the flit on its way to the crossbar: without a reset, what is read there is not sent.
        read_at = Signal(range(max(2, p.vcs * depth)), reset_less=True)
        kind = Signal(2, name="kind", reset_less=True)
        m.d.comb += buffer.read_at.eq(read_at)
        first_at: list[Value] = []
        note_read: list[Value] = []
        for v in range(p.vcs):
            arrives = buffer.arrives[v]
            m.d.comb += arrives.eq(self.in_valid & (self.in_flit.vc == v if p.vcs > 1 else 1))
            several = self._occupancy(m, v, arrives, pop[v])
            write, read = self.write[v], self.read[v]
            m.d.comb += [buffer.write_at[v].eq(write), buffer.note_at[v].eq(_after(read, depth))]
            with m.If(arrives):
                m.d.sync += write.eq(_after(write, depth))
            with m.If(pop[v]):
                m.d.sync += read.eq(_after(read, depth))
            note_read.append(pop[v] & several)
            follows = View(self._front_layout, Mux(several, buffer.notes[v], written))
            with m.If(pop[v] | ~self.nonempty[v]):
                if self.masks:
                    m.d.sync += self.front[v].kind.eq(follows.kind)
                else:
                    m.d.sync += self.front[v].eq(follows)
            if self.masks:  # the route stays until the next head
                comes = arrives & written.kind[_HEAD]
                stored = View(self._front_layout, buffer.notes[v])
                with m.If(Mux(pop[v], Mux(several, stored.kind[_HEAD], comes), ~self.nonempty[v] & comes)):
                    m.d.sync += self.front[v].route.eq(follows.route)
            first_at.append((read + Const(v * depth, len(read_at)))[: len(read_at)])
        m.d.sync += [
            read_at.eq(select(self.sa_grant, first_at)),
            kind.eq(select(self.sa_grant, [front.kind for front in self.front])),
        ]
        m.d.comb += self.word.kind.eq(kind)
        if isinstance(buffer, ProtectedBuffer):
            sent = Signal()
            read = Cat(note_read)
            m.d.sync += [
                sent.eq(self.sa_grant.any()),
                self.flit_wrong.eq((sent & buffer.data_wrong) | (read & buffer.note_wrong).any()),
                self.flit_repaired.eq((sent & buffer.data_repaired) | (read & buffer.note_repaired).any()),
            ]

    def _buffer(self, note_bits: int) -> FlitBuffer | ProtectedBuffer:
        """Return the storage of the flits."""
        p = self.params
        shape: dict[str, Any] = {
            "queues": p.vcs, "depth": p.buffer_flits, "data_bits": p.width_bits, "note_bits": note_bits,
            "kind": p.flit_buffers,
        }  # fmt: skip
        if p.protection is None:
            return self._flit_buffer(**shape)
        return ProtectedBuffer(**shape, protection=p.protection, flit_buffer=self._flit_buffer)

    def _occupancy(self, m: Module, v: int, arrives: Value, pop: Value) -> Value:
        """Count the flits of a queue; return whether there is more than one.

        What a cycle with and one without `pop`, which comes late, lead to is made beforehand.
        """
        depth = self.params.buffer_flits
        count, several = self.count[v], self.several[v]
        m.d.sync += [
            count.eq(Mux(pop, count - 1 + arrives, count + arrives)),
            self.nonempty[v].eq(Mux(pop, several | arrives, self.nonempty[v] | arrives)),
        ]
        if depth > 1:
            m.d.sync += several.eq(Mux(pop, (count > 2) | (several & arrives), several | (self.nonempty[v] & arrives)))
        return several

    def _leaving(self, m: Module, pop: Value) -> None:
        """In the cycle after the grant: credit back, output VC into the flit."""
        p = self.params
        leaving = Signal(p.vcs)
        m.d.sync += leaving.eq(pop)
        m.d.comb += [
            self.credit_valid.eq(leaving.any()),
            self.credit_vc.eq(_number(leaving)),
            self.word.vc.eq(_number(select(leaving, [self._of(self.out_vc, v, p.vcs) for v in range(p.vcs)]))),
        ]

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
            lookup.req_tag.eq(_number(turn.grant)),
            lookup.resp_ready.eq(1),
            accepted.eq(lookup.req_valid & lookup.req_ready),
            turn.advance.eq(accepted),
        ]
        output = lookup.resp_output
        ports = Signal(p.ports)
        route_class = Signal(class_bits(p))
        if p.output_kind == "port_set":
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

    def _allocated(self, m: Module, va: Value, ended: Value) -> None:
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
                ready.eq(self.active[v] & self.nonempty[v]),
                self._of(self.sa_request, v, p.ports).eq(
                    Cat(out_port[o] & (out_vc & nonzero[o]).any() & ready for o in range(p.ports))
                ),
            ]
            if p.speculation:
                new_port, new_vc = self._of(self.va_port, v, p.ports), self._of(self.va_granted_vc, v, p.vcs)
                asked = self._pairs(self.va_request, v)
                m.d.comb += [
                    self._of(self.guess_request, v, p.ports).eq(
                        Cat(asked[o * p.vcs : (o + 1) * p.vcs].any() for o in range(p.ports))
                    ),
                    self.guess_confirmed[v].eq(granted & (new_vc & select(new_port, nonzero)).any()),
                ]
                label_vc = Mux(va[v], new_vc, out_vc)
            m.d.comb += self._of(self.label, v, p.vcs + 1).eq(Cat(label_vc, self.front[v].kind[_TAIL]))

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
                nonempty=self.nonempty[v], several=self.several[v], tail=self.front[v].kind[_TAIL],
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
                self._of(self.label, v, label_bits(p)).eq(Cat(unit.vc, self.front[v].kind[_TAIL], unit.asks_head)),
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
                    Cat(asked[o].any() | (out_port[o] & (out_vc & nonzero[o]).any() & ready) for o in range(p.ports))
                ),
                self._of(self.label, v, label_bits(p)).eq(
                    Cat(Mux(head, first, out_vc), self.front[v].kind[_TAIL], head)
                ),
            ]
            m.d.sync += active.eq(~ended[v] & (granted | active))
            with m.If(granted & head):
                m.d.sync += [out_port.eq(request.asked_port), out_vc.eq(first)]


def _number(one_hot: Value) -> Value:
    """Return the number of the bit that is set."""
    width = max(1, ceil_log2(len(one_hot)))
    return Cat(
        Cat(one_hot[n] for n in range(len(one_hot)) if n >> bit & 1).any() if len(one_hot) > 1 else Const(0, 1)
        for bit in range(width)
    )


def _after(pointer: Value, modulus: int) -> Value:
    """Return the next value of a counter modulo `modulus`."""
    if modulus == 1:
        return Const(0, 1)
    if modulus == 1 << bits_for(modulus - 1):
        return pointer + 1
    return Mux(pointer == modulus - 1, 0, pointer + 1)
