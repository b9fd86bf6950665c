"""Request of one input virtual channel for the switch, known at the start of the cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.parts.round_robin import select

__all__ = ["SwitchRequest"]


class SwitchRequest(wiring.Component):
    """Who asks for the switch with ``va`` free_queue where offers are known ahead (`free_queue.offers_ahead`).

    ``asks_head`` and ``asks_body`` are registers, made beforehand for both outcomes of this cycle: ``granted`` and
    ``pop`` come late. ``ports`` is the output of the packet, one-hot, from its head to its tail. Bit o·vcs + w of
    ``offered`` is the VC that output o has for a head of this class, ``offered_any`` whether there is one; ``stays``,
    ``follows``: whether VC w of output o has a credit in the next cycle, if nothing is sent to it in this one, and if
    something is. ``request`` follows from registers through two gates, ``vc`` is the output VC of a flit that is sent
    (one-hot), ``out_vc`` the same a cycle later, ``active`` whether the packet has one.
    Reset: no packet.

    Parameters
    ----------
    ports, vcs : int
        Ports of the router, virtual channels of a port.
    """

    ports: Signal
    viable: Signal
    drained: Signal
    enable: Signal
    arrives: Signal
    nonempty: Signal
    several: Signal
    tail: Signal
    granted: Signal
    pop: Signal
    offered: Signal
    offered_any: Signal
    stays: Signal
    follows: Signal
    request: Signal
    asks_head: Signal
    active: Signal
    vc: Signal
    out_vc: Signal

    def __init__(self, *, ports: int, vcs: int):
        self.port_count = ports
        self.vcs = vcs
        flags = ("viable", "drained", "enable", "arrives", "nonempty", "several", "tail", "granted", "pop")
        members = {name: In(1) for name in flags}
        members |= {name: In(ports * vcs) for name in ("offered", "stays", "follows")}
        members |= {"ports": In(ports), "offered_any": In(ports), "request": Out(ports)}
        members |= {"asks_head": Out(1), "active": Out(1), "vc": Out(vcs), "out_vc": Out(vcs)}
        super().__init__(members | self._more_members())

    def _more_members(self) -> dict[str, wiring.Member]:
        """Return the ports that a subclass has besides."""
        return {}

    def elaborate(self, platform: object) -> Module:
        """Prepare the requests of the next cycle."""
        m = Module()
        self._request(m)
        return m

    def _request(self, m: Module) -> tuple[Value, Value, Value, Value]:
        """Build the registers; returns what a subclass needs of the next cycle.

        Whether a flit is there with and without a pop, and whether it is a body with a credit if the VC is granted, and
        one with a credit or a head if it stays as it is.
        """
        asks_body, credit_kept, credit_left = Signal(), Signal(), Signal()
        left, waits = Signal(), Signal()  # a flit is there in the next cycle, with and without a pop
        m.d.comb += [
            left.eq(self.several | self.arrives),
            waits.eq(self.nonempty | self.arrives),
            self.request.eq(self.ports & (self.offered_any & self.asks_head.replicate(self.port_count)
                                          | asks_body.replicate(self.port_count))),
            self.vc.eq(Mux(self.active, self.out_vc, self._of_port(self.offered))),
            credit_kept.eq((self._of_port(self.stays) & self.vc).any()),
            credit_left.eq((self._of_port(self.follows) & self.vc).any()),
        ]  # fmt: skip
        unroutable = self.drained | (self.asks_head & ~self.viable)
        m.d.sync += [
            self.active.eq(Mux(self.granted, ~self.tail, self.active)),
            self.out_vc.eq(self.vc),
            asks_body.eq(Mux(self.granted, ~self.tail & left & credit_left, self.active & waits & credit_kept)),
            self.asks_head.eq(
                Mux(self.pop, self.tail & left & self.enable, ~self.active & waits & ~unroutable & self.enable)
            ),
        ]
        return left, waits, credit_left, Mux(self.active, credit_kept, ~unroutable & self.enable)

    def _of_port(self, word: Value) -> Value:
        """Return the part of a word that belongs to the output of the packet."""
        return select(self.ports, [Cat(word[o * self.vcs : (o + 1) * self.vcs]) for o in range(self.port_count)])
