"""Free virtual channels of an output, handed out without an allocator (``va: free_queue``)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.parts.round_robin import lowest_one
from hopforge.model.router.params import RouterParams

__all__ = ["FreeQueue", "first_from", "offered_masks", "offers_ahead"]


def offers_ahead(params: RouterParams) -> bool:
    """Whether a head can know a cycle before what its output offers: it has one port, and any free VC has room."""
    p = params
    return p.va == "free_queue" and p.rc == "table" and p.rc_cycles == 0 and p.switching == "wormhole" and not (
        p.adaptive or p.escapes
    )  # fmt: skip


def offered_masks(params: RouterParams, output: int) -> tuple[int, ...]:
    """Masks of VCs that packets for `output` are allowed, each once; 0 (none) is left out.

    Parameters
    ----------
    params : RouterParams
        The router.
    output : int
        Number of the port.
    """
    p = params
    every = {
        p.vc_mask(k, i, v, output) for k in range(p.classes) for i in range(p.ports) for v in range(p.vcs)
    }  # fmt: skip
    return tuple(sorted(every - {0})) or ((1 << p.vcs) - 1,)


def first_from(requests: Value, at_or_after: Value) -> Value:
    """One-hot of the first of ``requests`` in ``at_or_after``, else of the first of all (0 without one)."""
    preferred = requests & at_or_after
    return Mux(preferred.any(), lowest_one(preferred), lowest_one(requests))


class FreeQueue(wiring.Component):
    """*VCs without an allocator* of docs/definitions/router.md, at an output: which VC the next head gets.

    ``ready`` are the VCs that a head may be given in the next cycle if none is given in this one; ``given`` is the one
    that is given, and comes late. ``free`` (register) are those that may be given in this cycle, ``at_or_after`` the
    pointer f as a thermometer code. Bits k·vcs… of ``offers`` (register): the VC for a head that may take the VCs of
    ``masks[k]``, one-hot, 0 if none of them is free; bit k of ``offered`` (register) whether there is one.
    Reset: everything free, pointer 0.

    Parameters
    ----------
    vcs : int
        Virtual channels.
    masks : tuple of int
        Sets of VCs; none: there are no offers.
    """

    ready: Signal
    given: Signal
    given_any: Signal
    free: Signal
    at_or_after: Signal
    offers: Signal
    offered: Signal

    def __init__(self, *, vcs: int, masks: tuple[int, ...]):
        self.vcs = vcs
        self.masks = masks
        every = (1 << vcs) - 1
        lowest = sum((mask & -mask) << k * vcs for k, mask in enumerate(masks))
        super().__init__(
            {
                "ready": In(vcs),
                "given": In(vcs),
                "given_any": In(1),
                "free": Out(vcs, init=every),
                "at_or_after": Out(vcs, init=every),
                "offers": Out(len(masks) * vcs, init=lowest),
                "offered": Out(len(masks), init=(1 << len(masks)) - 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Prepare the offers of the next cycle; with one mask for both outcomes of this one."""
        m = Module()
        vcs = self.vcs
        left = self.ready & ~self.given
        after = self._after(self.given)
        m.d.sync += self.free.eq(left)
        with m.If(self.given_any):
            m.d.sync += self.at_or_after.eq(after)
        if len(self.masks) == 1:  # what is given is what was offered
            mask = Const(self.masks[0], vcs)
            stays, taken = Signal(vcs), Signal(vcs)
            m.d.comb += [
                stays.eq(first_from(self.ready & mask, self.at_or_after)),
                taken.eq(first_from(self.ready & mask & ~self.offers, self._after(self.offers))),
            ]
            m.d.sync += [
                self.offers.eq(Mux(self.given_any, taken, stays)),
                self.offered.eq(
                    Mux(self.given_any, (self.ready & mask & ~self.offers).any(), (self.ready & mask).any())
                ),
            ]
        elif self.masks:
            pointer = Signal(vcs)
            m.d.comb += pointer.eq(Mux(self.given_any, after, self.at_or_after))
            m.d.sync += [
                self.offers.eq(Cat(first_from(left & mask, pointer) for mask in self.masks)),
                self.offered.eq(Cat((left & mask).any() for mask in self.masks)),
            ]
        return m

    def _after(self, one_hot: Value) -> Value:
        """Return the thermometer code of the number behind a VC; behind the last one it is empty, which is 0."""
        return Cat(one_hot[:w].any() if w else Const(0, 1) for w in range(self.vcs))
