"""Requests of classes of traffic that are due, in front of the switch allocator."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.model.router.quality import ROUNDS_KEPT, Quality

__all__ = ["ClassFilter"]


class ClassFilter(wiring.Component):
    """Pass on the requests that count (docs/definitions/traffic-classes.md).

    Bit (i·vcs + v)·ports + o of ``requests`` says that VC v of input i has a flit for output o, and so of ``due``.
    ``grants`` (bit i·ports + o) and ``granted_vc`` (bit i·vcs + v) say what is sent in this cycle. Combinational from
    ``requests`` to ``due``. Reset (weighted): every class has its weight of flits left at every output.

    Parameters
    ----------
    ports, vcs : int
        Ports of the router, virtual channels of a port.
    quality : Quality
        Classes of the VCs, and what they are due.

    Attributes
    ----------
    left : list of list of Signal
        Weighted: flits that each class has left at each output.

    Raises
    ------
    ValueError
        Classes that do not fit the VCs.
    """

    requests: Signal
    grants: Signal
    granted_vc: Signal
    due: Signal

    def __init__(self, *, ports: int, vcs: int, quality: Quality):
        for problem in quality.problems(vcs):
            raise ValueError(problem)
        self.ports = ports
        self.vcs = vcs
        self.quality = quality
        self.left: list[list[Signal]] = []
        if quality.kind == "weighted":
            self.left = [
                [
                    Signal(range(ROUNDS_KEPT * weight + 1), init=weight, name=f"left{o}_{c}")
                    for c, weight in enumerate(quality.weights)
                ]
                for o in range(ports)
            ]
        super().__init__(
            {
                "requests": In(ports * vcs * ports),
                "grants": In(ports * ports),
                "granted_vc": In(ports * vcs),
                "due": Out(ports * vcs * ports),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Drop what is below the best of its output, and with priorities of its input."""
        m = Module()
        if self.quality.kind == "strict":
            self._strict(m)
        else:
            self._weighted(m)
        return m

    def _bit(self, word: Value, i: int, v: int, o: int) -> Value:
        return word[(i * self.vcs + v) * self.ports + o]

    def _strict(self, m: Module) -> None:
        ports, vcs, quality = self.ports, self.vcs, self.quality
        level = [quality.priorities[c] for c in quality.of_vc]
        better = [[w for w in range(vcs) if level[w] > level[v]] for v in range(vcs)]
        levels = sorted(set(level))
        at_output = Signal(ports * vcs * ports)
        # whether a request of a higher priority asks for the output
        beaten = {
            (o, k): Cat(
                self._bit(self.requests, i, w, o) for i in range(ports) for w in range(vcs) if level[w] > k
            ).any()
            if k < levels[-1]
            else Const(0, 1)
            for o in range(ports)
            for k in levels
        }
        names = {key: Signal(name=f"beaten{key[0]}_{key[1]}") for key in beaten}
        m.d.comb += [names[key].eq(value) for key, value in beaten.items()]
        m.d.comb += at_output.eq(
            Cat(
                self._bit(self.requests, i, v, o) & ~names[o, level[v]]
                for i in range(ports)
                for v in range(vcs)
                for o in range(ports)
            )
        )
        asks = [
            [at_output[(i * vcs + v) * ports : (i * vcs + v + 1) * ports].any() for v in range(vcs)]
            for i in range(ports)
        ]
        m.d.comb += self.due.eq(
            Cat(
                self._bit(at_output, i, v, o)
                & ~(Cat(asks[i][w] for w in better[v]).any() if better[v] else Const(0, 1))
                for i in range(ports)
                for v in range(vcs)
                for o in range(ports)
            )
        )

    def _weighted(self, m: Module) -> None:
        ports, vcs, quality = self.ports, self.vcs, self.quality
        has_left = [[left.any() for left in of_output] for of_output in self.left]
        within = Signal(ports * vcs * ports)  # requests of classes that have flits left
        some = Signal(ports)
        m.d.comb += [
            within.eq(
                Cat(
                    self._bit(self.requests, i, v, o) & has_left[o][quality.of_vc[v]]
                    for i in range(ports)
                    for v in range(vcs)
                    for o in range(ports)
                )
            ),
            some.eq(Cat(within[o::ports].any() for o in range(ports))),
            self.due.eq(_of_outputs(some, within, self.requests)),
        ]
        for o in range(ports):
            self._count(m, o)

    def _count(self, m: Module, o: int) -> None:
        """Take what an output sends from the round of its class."""
        ports, vcs, quality = self.ports, self.vcs, self.quality
        sends = Signal(quality.classes, name=f"sends{o}")
        begins = Signal(name=f"begins{o}")
        per_class: list[list[Value]] = [[] for _ in range(quality.classes)]
        for i in range(ports):
            for v in range(vcs):
                per_class[quality.of_vc[v]].append(self.grants[i * ports + o] & self.granted_vc[i * vcs + v])
        m.d.comb += [
            sends.eq(Cat(reduce(or_, of_class, Const(0, 1)) for of_class in per_class)),
            begins.eq(Cat(sends[c] & ~left.any() for c, left in enumerate(self.left[o])).any()),
        ]
        for c, left in enumerate(self.left[o]):
            weight = quality.weights[c]
            most = ROUNDS_KEPT * weight
            more = Mux(left > most - weight, most, left + weight)
            with m.If(begins | sends[c]):
                m.d.sync += left.eq(Mux(begins, more, left) - sends[c])


def _of_outputs(some: Value, within: Value, requests: Value) -> Value:
    """Return, for each output, the requests of one or the other word."""
    ports = len(some)
    return Cat(Mux(some[k % ports], within[k], requests[k]) for k in range(len(requests)))
