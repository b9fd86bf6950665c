"""Virtual channels of a sender in a host: its credits, and which of them a packet may take."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Signal, Value

from hopforge.model.router.params import RouterParams

__all__ = ["HostVcs", "sized"]


class HostVcs:
    """State of some VCs of a host (docs/definitions/router.md, Hosts), numbered from 0. Reset: all credits, all free.

    Parameters
    ----------
    params : RouterParams
        The router at which the host is.
    vcs : sequence of int
        The VCs.

    Attributes
    ----------
    credits : Array
        Of each VC.
    """

    def __init__(self, params: RouterParams, vcs: Sequence[int]):
        self.params, self.vcs = params, tuple(vcs)
        depth = params.buffer_flits
        self.credits = Array(Signal(range(depth + 1), name=f"credits{w}", init=depth) for w in vcs)
        self._free = Signal(len(vcs), name="free", init=(1 << len(vcs)) - 1)
        self._tail_sent = Signal(len(vcs), name="tail_sent")

    def possible(self, need: Value | int) -> Value:
        """VCs that a head can take which needs so many credits."""
        return Cat(self._free[k] & (self.credits[k] >= need) for k in range(len(self.vcs)))

    def follow(self, m: Module, channel: Any, sends: Value, where: Value, last: Value) -> None:
        """Count credits: a flit, perhaps the last one, is sent on VC number `where`; `channel` gives credits back."""
        credits, depth = self.credits, self.params.buffer_flits
        back = [channel.in_credit_valid & (channel.in_credit_vc == w) for w in self.vcs]
        for k in range(len(self.vcs)):
            mine = sends & (where == k)
            m.d.sync += credits[k].eq(credits[k] + back[k] - mine)
            self._release(m, k, mine, last, back[k] & (credits[k] + 1 - mine == depth))

    def _release(self, m: Module, k: int, mine: Value, last: Value, all_back: Value) -> None:
        """Take a VC with its head, give it back with its tail or its last credit."""
        free, tail_sent = self._free, self._tail_sent
        if self.params.vc_release == "tail":
            with m.If(mine):
                m.d.sync += free[k].eq(last)
            return
        with m.If(mine):
            m.d.sync += [free[k].eq(0), tail_sent[k].eq(last)]
        with m.Elif(tail_sent[k] & all_back):
            m.d.sync += [free[k].eq(1), tail_sent[k].eq(0)]


def sized(value: Value, bits: int) -> Value:
    """Return the lowest `bits` bits, zeros above."""
    return Cat(value, Const(0, max(0, bits - len(value))))[:bits]
