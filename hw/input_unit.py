"""Input side of a port: buffers, routing and the state of its virtual channels."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.data import StructLayout, View
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, ceil_log2

from hopforge.hw.lookup import Lookup, lookup_ports
from hopforge.hw.round_robin import RoundRobin, lowest_one, select
from hopforge.hw.shared import shared
from hopforge.hw.sram import Sram
from hopforge.hw.vc_request import VcRequest, class_bits, credit_bits
from hopforge.model.lookup_params import LookupParams
from hopforge.model.router_params import CLASS_BITS, PORT_BITS, RouterParams

__all__ = ["DROP_BITS", "InputUnit", "control_signature", "flit_layout"]

DROP_BITS = 32
"""Width of a drop counter; it wraps around."""

_HEAD, _TAIL = 0, 1  # bits of a flit's kind


def flit_layout(params: RouterParams) -> StructLayout:
    """Layout of a flit; in the data of a head destination, source, tag and (vct) length from bit 0 on."""
    return StructLayout({"kind": 2, "vc": max(1, ceil_log2(params.vcs)), "data": params.width_bits})


def control_signature(params: LookupParams) -> wiring.Signature:
    """Ports of a lookup engine that software and a TCAM outside use."""
    ports = lookup_ports(params)
    return wiring.Signature({name: port for name, port in ports.items() if not name.startswith(("req_", "resp_"))})


class InputUnit(wiring.Component):
    """V queues of B flits and what becomes of the packet at the front of each, as in docs/router.md.

    A flit on ``in_flit`` is written at the end of the cycle. ``va_request`` and ``sa_request`` ask, ``va_grant`` and
    ``sa_grant`` answer in the same cycle; the granted flit stands on ``word`` in the next cycle, as does its credit.
    An unroutable packet leaves through the drain, one flit in each cycle in which the port sends nothing else.
    Reset: empty, no packet dropped.

    Parameters
    ----------
    params : RouterParams
        The router.
    port : int
        Number of the port.

    Attributes
    ----------
    nonempty, active : Signal
        State of each VC, for proofs.
    """

    in_valid: Signal
    in_flit: View
    credit_valid: Signal
    credit_vc: Signal
    drops: Signal
    free: Signal
    credits: Signal
    nonzero: Signal
    va_request: Signal
    va_grant: Signal
    sa_request: Signal
    guess_request: Signal
    guess_confirmed: Signal
    sa_grant: Signal
    sent_vc: Signal
    sent_tail: Signal
    word: View

    def __init__(self, *, params: RouterParams, port: int):
        self.params = p = params
        self.port = port
        flit = flit_layout(p)
        pairs = p.ports * p.vcs
        members = {
            "in_valid": In(1),
            "in_flit": In(flit),
            "credit_valid": Out(1),
            "credit_vc": Out(max(1, ceil_log2(p.vcs))),
            "drops": Out(DROP_BITS),
            "free": In(pairs),
            "credits": In(pairs * credit_bits(p)),
            "nonzero": In(pairs),
            "va_request": Out(p.vcs * pairs),
            "va_grant": In(p.vcs * pairs),
            "sa_request": Out(p.vcs * p.ports),
            "sa_grant": In(p.vcs),
            "sent_vc": Out(p.vcs),
            "sent_tail": Out(1),
            "word": Out(flit),
        }
        if p.speculation:
            members |= {"guess_request": Out(p.vcs * p.ports), "guess_confirmed": Out(p.vcs)}
        if self.looks_up and p.lookup is not None:
            members["control"] = Out(control_signature(p.lookup))
        super().__init__(members)

        self.nonempty = Signal(p.vcs)
        self.active = Signal(p.vcs)
        self._count = [Signal(range(p.buffer_flits + 1), name=f"count{v}") for v in range(p.vcs)]
        self._route_layout = StructLayout(
            {"ports": p.ports, "escape": p.ports if p.escapes else 0, "route_class": class_bits(p)}
        )
        stored = {"kind": 2, "length": p.length_bits if p.switching == "vct" else 0}
        if self.looks_up:
            stored["dst"] = p.address_bits
        else:
            stored["route"] = self._route_layout.size
        self._front_layout = StructLayout(stored)
        self._front = [
            View(self._front_layout, Signal(self._front_layout.size, name=f"front{v}")) for v in range(p.vcs)
        ]
        self._read = [Signal(range(p.buffer_flits), name=f"read{v}") for v in range(p.vcs)]

    @property
    def rules(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """What `VcRequest.rules` says of each VC: the same for ports of which the hardware is the same."""
        return tuple(VcRequest.rules_of(self.params, self.port, v) for v in range(self.params.vcs))

    @property
    def looks_up(self) -> bool:
        """Whether a lookup engine is in it."""
        return self.params.rc == "lookup"

    def elaborate(self, platform: object) -> Module:
        """Build buffers, routing, requests and the states."""
        m = Module()
        p = self.params
        pop = Signal(p.vcs)
        ended = Signal(p.vcs)  # the tail leaves in this cycle
        va = Signal(p.vcs)
        draining = Signal(p.vcs)
        self._buffers(m, pop)

        requests = [VcRequest(params=p, port=self.port, vc=v) for v in range(p.vcs)]
        if self.looks_up:
            self._looked_up(m, requests, va, draining, ended)
        else:
            self._from_table(m, requests, va, draining, ended)
        for v, request in enumerate(requests):
            m.submodules[f"request{v}"] = shared(request, platform, p, request.rules)
            m.d.comb += [
                request.valid.eq(va[v]),
                request.free.eq(self.free),
                request.credits.eq(self.credits),
                self._pairs(self.va_request, v).eq(request.request),
            ]
            if p.switching == "vct":
                m.d.comb += request.length.eq(self._front[v].length)

        drain = Signal(p.vcs)
        m.d.comb += [
            drain.eq(lowest_one(draining & self.nonempty) & (~self.sa_grant.any()).replicate(p.vcs)),
            pop.eq(self.sa_grant | drain),
            ended.eq(Cat(pop[v] & self._front[v].kind[_TAIL] for v in range(p.vcs))),
            self.sent_tail.eq((self.sa_grant & ended).any()),
        ]
        m.d.sync += [
            self.credit_valid.eq(pop.any()),
            self.credit_vc.eq(_number(pop)),
            self.drops.eq(self.drops + (drain & ended).any()),
        ]
        self._allocated(m, va, ended)
        return m

    def _pairs(self, word: Value, v: int) -> Value:
        pairs = self.params.ports * self.params.vcs
        return word[v * pairs : (v + 1) * pairs]

    def _buffers(self, m: Module, pop: Value) -> None:
        """Queues: the data of all of them in one array, what decisions need at hand for each."""
        p = self.params
        depth = p.buffer_flits
        m.submodules.data = data = Sram(depth=p.vcs * depth, width_bits=p.width_bits, asynchronous=True)
        written = View(self._front_layout, Signal(self._front_layout.size, name="written"))
        head = self.in_flit.data
        dst = head[: p.address_bits]
        m.d.comb += written.kind.eq(self.in_flit.kind)
        if p.switching == "vct":
            m.d.comb += written.length.eq(head[2 * p.address_bits + p.tag_bits :][: p.length_bits])
        if self.looks_up:
            m.d.comb += written.dst.eq(dst)
        else:
            m.d.comb += written.route.eq(self._table(m, dst))

        write_at = Signal(range(max(2, p.vcs * depth)))
        read_at = Signal.like(write_at)  # of the flit on its way to the crossbar
        arrives = Signal(p.vcs)
        for v in range(p.vcs):
            m.d.comb += arrives[v].eq(self.in_valid & (self.in_flit.vc == v if p.vcs > 1 else 1))
            m.submodules[f"queue{v}"] = queue = Sram(depth=depth, width_bits=self._front_layout.size, asynchronous=True)
            m.d.comb += [
                queue.w_en.eq(arrives[v]),
                queue.w_data.eq(written),
                self._front[v].eq(queue.r_data),
                self.nonempty[v].eq(self._count[v] != 0),
            ]
            write = Signal(range(depth), name=f"write{v}")
            if depth > 1:
                m.d.comb += [queue.w_addr.eq(write), queue.r_addr.eq(self._read[v])]
            with m.If(arrives[v]):
                m.d.comb += write_at.eq(write + v * depth)
                m.d.sync += write.eq(_after(write, depth))
            with m.If(pop[v]):
                m.d.sync += self._read[v].eq(_after(self._read[v], depth))
            with m.If(self.sa_grant[v]):
                m.d.sync += [read_at.eq(self._read[v] + v * depth), self.word.kind.eq(self._front[v].kind)]
            m.d.sync += self._count[v].eq(self._count[v] + arrives[v] - pop[v])
        m.d.comb += [data.w_en.eq(self.in_valid), data.w_data.eq(self.in_flit.data), self.word.data.eq(data.r_data)]
        if p.vcs * depth > 1:
            m.d.comb += [data.w_addr.eq(write_at), data.r_addr.eq(read_at)]

    def _table(self, m: Module, dst: Value) -> Value:
        """Look a destination up while its flit is being written; what is not in the table has no port."""
        p = self.params
        route = View(self._route_layout, Signal(self._route_layout.size, name="route"))
        equal: dict[object, list[int]] = {}
        for number, entry in enumerate(p.routes):
            equal.setdefault(entry, []).append(number)
        with m.Switch(dst):
            for numbers in equal.values():
                entry = p.routes[numbers[0]]
                with m.Case(*numbers):
                    m.d.comb += [route.ports.eq(entry.ports), route.route_class.eq(entry.route_class)]
                    if entry.escape is not None:
                        m.d.comb += route.escape.eq(1 << entry.escape)
        return route.as_value()

    def _from_table(self, m: Module, requests: list[VcRequest], va: Value, draining: Value, ended: Value) -> None:
        """RC is waiting; the route has been kept with the flit."""
        p = self.params
        for v, request in enumerate(requests):
            route = View(self._route_layout, self._front[v].route)
            m.d.comb += [request.ports.eq(route.ports), request.route_class.eq(route.route_class)]
            if p.escapes:
                m.d.comb += request.escape.eq(route.escape)
            waiting = self.nonempty[v] & ~self.active[v]
            drained = Signal(name=f"drained{v}")  # kept: behind the head the queue holds no routes
            m.d.comb += draining[v].eq(drained)
            if p.rc_cycles == 0:
                m.d.comb += va[v].eq(waiting & ~drained)
                m.d.sync += drained.eq(~ended[v] & (drained | (va[v] & ~request.viable)))
                continue
            routed = Signal(name=f"routed{v}")
            cycle = Signal(range(p.rc_cycles), name=f"rc_cycle{v}")
            m.d.comb += va[v].eq(routed & ~self.active[v])
            with m.If(ended[v]):
                m.d.sync += [routed.eq(0), drained.eq(0)]
            with m.Elif(waiting & ~routed & ~drained):
                last = cycle == p.rc_cycles - 1
                m.d.sync += [
                    routed.eq(last & request.viable),
                    drained.eq(last & ~request.viable),
                    cycle.eq(Mux(last, 0, cycle + 1)),
                ]

    def _looked_up(self, m: Module, requests: list[VcRequest], va: Value, draining: Value, ended: Value) -> None:
        """Ask the engine, one VC after the other."""
        p = self.params
        assert p.lookup is not None
        m.submodules.lookup = lookup = Lookup(params=p.lookup)
        m.submodules.turn = turn = RoundRobin(width=p.vcs)
        for name, member in self.control.signature.members.items():  # type: ignore[attr-defined]
            outside, inside = getattr(self.control, name), getattr(lookup, name)  # type: ignore[attr-defined]
            m.d.comb += inside.eq(outside) if member.flow == In else outside.eq(inside)
        accepted = Signal()
        m.d.comb += [
            lookup.req_valid.eq(turn.requests.any()),
            lookup.req_dst.eq(select(turn.grant, [front.dst for front in self._front])),
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
                turn.requests[v].eq(self.nonempty[v] & ~routed & ~asked),
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
        """Keep the output VC of each packet, and ask for the switch."""
        p = self.params
        targets = []
        for v in range(p.vcs):
            out_port = Signal(p.ports, name=f"out_port{v}")
            out_vc = Signal(p.vcs, name=f"out_vc{v}")
            grant = self._pairs(self.va_grant, v)
            by_port = [grant[o * p.vcs : (o + 1) * p.vcs] for o in range(p.ports)]
            new_port = Cat(word.any() for word in by_port)
            new_vc = Cat(Cat(word[w] for word in by_port).any() for w in range(p.vcs))
            with m.If(ended[v]):
                m.d.sync += self.active[v].eq(0)
            with m.Elif(grant.any()):
                m.d.sync += self.active[v].eq(1)
            with m.If(grant.any()):
                m.d.sync += [out_port.eq(new_port), out_vc.eq(new_vc)]
            of_pair = Cat(out_port[o] & out_vc[w] for o in range(p.ports) for w in range(p.vcs))
            ready = Signal(name=f"ready{v}")
            m.d.comb += [
                ready.eq(self.active[v] & self.nonempty[v] & (of_pair & self.nonzero).any()),
                self.sa_request[v * p.ports : (v + 1) * p.ports].eq(out_port & ready.replicate(p.ports)),
            ]
            targets.append(out_vc)
            if p.speculation:
                asked = self._pairs(self.va_request, v)
                m.d.comb += [
                    self.guess_request[v * p.ports : (v + 1) * p.ports].eq(
                        Cat(asked[o * p.vcs : (o + 1) * p.vcs].any() for o in range(p.ports))
                    ),
                    self.guess_confirmed[v].eq((grant & self.nonzero).any()),
                ]
                targets[v] = Mux(va[v], new_vc, out_vc)
        m.d.comb += self.sent_vc.eq(select(self.sa_grant, targets))
        m.d.sync += self.word.vc.eq(_number(self.sent_vc))


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
