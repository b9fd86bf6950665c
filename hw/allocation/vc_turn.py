"""Which VC of an input may ask for the switch, chosen a cycle ahead (``sa`` input_ahead)."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.allocation.free_queue import first_from

__all__ = ["VcTurn"]


class VcTurn(wiring.Component):
    """*Inputs that choose ahead* of docs/definitions/router.md: ``turn`` is the VC of this cycle, one-hot.

    The choice of the next cycle is made for both outcomes of this one: ``granted`` comes late. ``next_granted``,
    ``next_kept`` and ``next_drained`` say of each VC whether it is in turn in the next cycle if it is granted in this
    one, if it stays as it is, and if it drains a flit; ``drains`` is the one that drains if nothing is granted.
    ``asks``: the VC of this cycle requests an output. Reset: none, pointer 0.

    Parameters
    ----------
    vcs : int
        Virtual channels.

    Attributes
    ----------
    pointer : Signal
        For proofs: q as a thermometer code; no bit means 0.
    """

    turn: Signal
    asks: Signal
    granted: Signal
    next_granted: Signal
    next_kept: Signal
    next_drained: Signal
    drains: Signal

    def __init__(self, *, vcs: int):
        self.vcs = vcs
        self.pointer = Signal(vcs)
        words = ("next_granted", "next_kept", "next_drained", "drains")
        super().__init__({"turn": Out(vcs), "asks": In(1), "granted": In(1)} | {name: In(vcs) for name in words})

    def elaborate(self, platform: object) -> Module:
        """Build both choices, and the pointer as a thermometer code."""
        m = Module()
        pointer, behind, stays = self.pointer, Signal(self.vcs), Signal(self.vcs)
        sent = (self.turn & self.next_granted) | (~self.turn & self.next_kept)
        left = (self.drains & self.next_drained) | (~self.drains & self.next_kept)
        after_grant, otherwise = Signal(self.vcs), Signal(self.vcs)
        m.d.comb += [
            behind.eq(Cat(self.turn[:v].any() if v else 0 for v in range(self.vcs))),
            # a VC that asks keeps its turn until it is granted
            stays.eq(Mux(self.turn.any() & ~self.asks, behind, pointer)),
            after_grant.eq(first_from(sent, behind)),
            otherwise.eq(first_from(left, stays)),
        ]
        m.d.sync += [
            pointer.eq(Mux(self.granted, behind, stays)),
            self.turn.eq(Mux(self.granted, after_grant, otherwise)),
        ]
        return m
