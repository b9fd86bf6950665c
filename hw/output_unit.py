"""Output side of a port: credits and ownership of its virtual channels."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.vc_request import credit_bits
from hopforge.model.router.params import RouterParams

__all__ = ["OutputUnit"]


class OutputUnit(wiring.Component):
    """Which VCs of an output are free, and how many flits each can still send, as in docs/definitions/router.md.

    ``allocated`` and ``sent`` have a bit per VC and count at the end of their cycle; ``sent_tail`` goes with ``sent``.
    ``sent`` comes late: what it leads to is made beforehand.
    A credit counts from the cycle after it stood on ``credit_valid``, or `credit_delay_cycles` later. With
    ``vc_release`` credits the VC of a tail that was sent is free from the cycle in which the last of them counts.
    Reset: everything free, all credits there.

    Parameters
    ----------
    params : RouterParams
        The router.
    port : int
        Number of the port.

    Attributes
    ----------
    tail_sent : list of Signal
        For proofs: of each VC, whether it waits for its credits to become free (``vc_release`` credits).
    """

    credit_valid: Signal
    credit_vc: Signal
    allocated: Signal
    sent: Signal
    sent_tail: Signal
    free: Signal
    credits: Signal
    nonzero: Signal

    def __init__(self, *, params: RouterParams, port: int):
        self.params = p = params
        self.port = port
        self.tail_sent = [Signal(name=f"tail_sent{w}") for w in range(p.vcs)]
        super().__init__(
            {
                "credit_valid": In(1),
                "credit_vc": In(max(1, ceil_log2(p.vcs))),
                "allocated": In(p.vcs),
                "sent": In(p.vcs),
                "sent_tail": In(1),
                "free": Out(p.vcs, init=(1 << p.vcs) - 1),
                "credits": Out(p.vcs * credit_bits(p)),
                "nonzero": Out(p.vcs),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build a counter and the flags of each VC."""
        m = Module()
        p = self.params
        returned = Signal(p.vcs)
        m.d.comb += returned.eq(Cat(self.credit_valid & (self.credit_vc == w) for w in range(p.vcs)))
        for delay in range(p.credit_delay_cycles):
            later = Signal(p.vcs, name=f"returned{delay + 1}")
            m.d.sync += later.eq(returned)
            returned = later
        depth = p.credits(self.port)
        for w in range(p.vcs):
            count = Signal(credit_bits(p), init=depth, name=f"credits{w}")
            nonzero = Signal(init=depth > 0, name=f"nonzero{w}")
            m.d.comb += [
                self.credits[w * len(count) : (w + 1) * len(count)].eq(count),
                self.nonzero[w].eq(nonzero),
            ]
            m.d.sync += [
                count.eq(Mux(self.sent[w], count - 1 + returned[w], count + returned[w])),
                nonzero.eq(Mux(self.sent[w], (count > 1) | returned[w], nonzero | returned[w])),
            ]
            released = self.sent[w] & self.sent_tail
            if p.vc_release == "tail":
                m.d.sync += self.free[w].eq((self.free[w] & ~self.allocated[w]) | released)
                continue
            tail_sent = self.tail_sent[w]
            back = Signal(name=f"back{w}")
            m.d.comb += back.eq(tail_sent & (count == depth - 1) & returned[w])
            m.d.sync += [
                self.free[w].eq((self.free[w] & ~self.allocated[w]) | back),
                tail_sent.eq(released | (tail_sent & ~back)),
            ]
        return m
