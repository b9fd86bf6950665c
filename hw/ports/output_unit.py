"""Output side of a port: credits and ownership of its virtual channels."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.allocation.free_queue import FreeQueue, offered_masks, offers_ahead
from hopforge.hw.allocation.vc_request import credit_bits
from hopforge.model.router.params import RouterParams

__all__ = ["OutputUnit"]


class OutputUnit(wiring.Component):
    """Which VCs of an output are free, and how many flits each can still send, as in docs/definitions/router.md.

    ``allocated`` and ``sent`` have a bit per VC and count at the end of their cycle; ``sent_tail`` goes with ``sent``.
    ``sent`` comes late: what it leads to is made beforehand.
    A credit counts from the cycle after it stood on ``credit_valid``, or `credit_delay_cycles` later. With
    ``vc_release`` credits the VC of a tail that was sent is free from the cycle in which the last of them counts.
    Reset: everything free, all credits there.

    With ``va`` free_queue there is no ``allocated``: ``sent_head`` goes with ``sent``, and gives the VC to the packet.
    ``free`` then are the VCs with a credit that can be given (virtual cut-through: with or without one),
    ``at_or_after``, ``offers`` and ``offered`` as in `FreeQueue`; ``stays`` and ``follows`` say of each VC whether it
    has a credit in the next cycle, if nothing is sent to it in this one and if something is.

    Parameters
    ----------
    params : RouterParams
        The router.
    port : int
        Number of the port.

    Attributes
    ----------
    tail_sent : list of Signal
        For proofs: of each VC, whether it waits for its credits to become free (``vc_release`` credits), or
        (free_queue) for the next cycle.
    unowned : list of Signal
        For proofs, free_queue: of each VC, whether it is free, with or without credits.
    """

    credit_valid: Signal
    credit_vc: Signal
    allocated: Signal
    sent: Signal
    sent_tail: Signal
    sent_head: Signal
    at_or_after: Signal
    offers: Signal
    offered: Signal
    stays: Signal
    follows: Signal
    free: Signal
    credits: Signal
    nonzero: Signal

    def __init__(self, *, params: RouterParams, port: int):
        self.params = p = params
        self.port = port
        self.tail_sent = [Signal(name=f"tail_sent{w}") for w in range(p.vcs)]
        members = {
            "credit_valid": In(1),
            "credit_vc": In(max(1, ceil_log2(p.vcs))),
            "sent": In(p.vcs),
            "sent_tail": In(1),
            "free": Out(p.vcs, init=(1 << p.vcs) - 1),
            "credits": Out(p.vcs * credit_bits(p)),
            "nonzero": Out(p.vcs),
        }
        self.masks: tuple[int, ...] = ()
        self.unowned = [Signal(init=1, name=f"unowned{w}") for w in range(p.vcs)]
        if p.va == "free_queue":
            self.masks = offered_masks(p, port) if offers_ahead(p) else ()
            members["sent_head"] = In(1)
            members |= {name: Out(p.vcs) for name in ("at_or_after", "stays", "follows")}
            members |= {"offers": Out(p.vcs * len(self.masks)), "offered": Out(len(self.masks))}
        else:
            members["allocated"] = In(p.vcs)
        super().__init__(members)

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
        if p.va == "free_queue":
            m.submodules.queue = queue = FreeQueue(vcs=p.vcs, masks=self.masks)
            m.d.comb += [
                queue.given.eq(self.sent & self.sent_head.replicate(p.vcs)),
                queue.given_any.eq(self.sent_head),
                self.free.eq(queue.free),
                self.at_or_after.eq(queue.at_or_after),
                self.offers.eq(queue.offers),
                self.offered.eq(queue.offered),
            ]
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
                nonzero.eq(Mux(self.sent[w], _several(count) | returned[w], nonzero | returned[w])),
            ]
            released = self.sent[w] & self.sent_tail
            if p.va == "free_queue":
                m.d.comb += [self.stays[w].eq(nonzero | returned[w]), self.follows[w].eq(_several(count) | returned[w])]
                self._queued(m, w, queue, released, count, returned[w])
                continue
            if p.vc_release == "tail":
                m.d.sync += self.free[w].eq((self.free[w] & ~self.allocated[w]) | released)
                continue
            tail_sent, back = self.tail_sent[w], self._all_back(m, w, count, returned[w])
            m.d.sync += [
                self.free[w].eq((self.free[w] & ~self.allocated[w]) | back),
                tail_sent.eq(released | (tail_sent & ~back)),
            ]
        return m

    def _all_back(self, m: Module, w: int, count: Value, returned: Value) -> Value:
        """Return whether a VC waits for its last credit, and it comes."""
        back = Signal(name=f"back{w}")
        m.d.comb += back.eq(self.tail_sent[w] & (count == self.params.credits(self.port) - 1) & returned)
        return back

    def _queued(self, m: Module, w: int, queue: FreeQueue, released: Value, count: Value, returned: Value) -> None:
        """Make a VC one of those that can be given: with its last credit, or a cycle after its tail."""
        p = self.params
        tail_sent, free = self.tail_sent[w], self.unowned[w]
        again: Value = self._all_back(m, w, count, returned) if p.vc_release == "credits" else tail_sent
        m.d.sync += [
            free.eq((free | again) & ~queue.given[w]),
            tail_sent.eq(released | (tail_sent & ~again)),
        ]
        room = Const(1, 1) if p.switching == "vct" else self.stays[w]
        m.d.comb += queue.ready[w].eq((free | again) & room)


def _several(count: Signal) -> Value:
    """Return whether a counter is above 1, which one of a single bit never is (Verilator warns of the comparison)."""
    return count > 1 if len(count) > 1 else Const(0)
