"""Input side of a port: buffers, routing and the state of its virtual channels."""

from amaranth.hdl import Cat, Module, Signal

from hopforge.hw.allocation.vc_request import VcRequest
from hopforge.hw.parts.round_robin import lowest_one
from hopforge.hw.parts.shared import place
from hopforge.hw.ports.input_ports import DROP_BITS, TAIL
from hopforge.hw.ports.input_requests import InputRequests

__all__ = ["InputUnit"]


class InputUnit(InputRequests):
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
                    self._pairs(self.va_request, v).eq(request.wanted if p.va == "input_first" else request.request),
                    self._of(self.va_port, v, p.ports).eq(request.asked_port),
                ]
                if p.va == "input_first":
                    m.d.comb += self._of(self.va_wanted_port, v, p.ports).eq(request.wanted_port)
            if p.switching == "vct":
                m.d.comb += request.length.eq(self.front[v].length)

        drain = Signal(p.vcs)
        m.d.comb += [
            drain.eq(lowest_one(draining & self.nonempty) & (~self.sa_grant.any()).replicate(p.vcs)),
            pop.eq(self.sa_grant | drain),
            ended.eq(Cat(pop[v] & self.front[v].kind[TAIL] for v in range(p.vcs))),
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
        if p.asks_ahead:
            self._ask_ahead(m, platform, requests, va, ended)
        if self.masks:
            pass  # `_ahead` has done it
        elif p.va == "free_queue":
            self._queued(m, requests, ended)
        else:
            self._allocated(m, requests, va, ended)
        self._leaving(m, pop)
        return m
