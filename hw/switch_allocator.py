"""Allocation of the crossbar to input virtual channels."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.allocator import ALLOCATORS, Allocator, SeparableAllocator, allocator
from hopforge.hw.arbiter import ARBITERS, one_hot_lowest

__all__ = ["SwitchAllocator"]


class SwitchAllocator(wiring.Component):
    """SA of docs/router.md: at most one flit from each input and one to each output.

    Bit (i·vcs + v)·ports + o of ``requests`` says that VC v of input i has a flit for output o; no VC requests two
    outputs. ``grants`` has bit i·ports + o for each matched pair, ``granted_vc`` bit i·vcs + v for the VC that sends.
    Combinational; one allocation per cycle. Reset: all pointers 0, nobody granted.

    With `speculation` a second allocator serves ``speculative`` requests on inputs and outputs that the first
    leaves idle, if ``confirmed`` (one bit per VC: it may send if it wins). Nothing of it reaches the first.

    Parameters
    ----------
    ports, vcs : int
        Ports of the router, virtual channels of a port.
    kind : str
        ``input_first``, ``output_first`` (one iteration of iSLIP) or ``wavefront``.
    arbiter : str
        ``round_robin`` or ``matrix``; the VC that represents an input is always chosen round-robin.
    speculation : bool
        Build the second allocator.

    Raises
    ------
    ValueError
        An unknown name, a number below 1.
    """

    requests: Signal
    grants: Signal
    granted_vc: Signal
    speculative: Signal
    confirmed: Signal

    def __init__(
        self,
        *,
        ports: int,
        vcs: int,
        kind: str = "output_first",
        arbiter: str = "round_robin",
        speculation: bool = False,
    ):
        if kind not in ALLOCATORS:
            raise ValueError(f"sa must be one of {', '.join(ALLOCATORS)}, not {kind!r}")
        if arbiter not in ARBITERS:
            raise ValueError(f"arbiter must be one of {', '.join(ARBITERS)}, not {arbiter!r}")
        for name, value in (("ports", ports), ("vcs", vcs)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        self.ports = ports
        self.vcs = vcs
        self.kind = kind
        self.arbiter = arbiter
        self.speculation = speculation
        members = {
            "requests": In(ports * vcs * ports),
            "grants": Out(ports * ports),
            "granted_vc": Out(ports * vcs),
        }
        if speculation:
            members |= {"speculative": In(ports * vcs * ports), "confirmed": In(ports * vcs)}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        """Build one matching, or two with the second in the gaps of the first."""
        m = Module()
        ports = self.ports
        at_or_after = [Signal(self.vcs, name=f"vc_at_or_after{i}") for i in range(ports)]
        taken = Signal(ports)
        m.d.comb += taken.eq(~0)
        grants, picks = self._matching(m, "regular", self.requests, at_or_after, taken)
        if self.speculation:
            used = Signal(ports)
            matches, guesses = self._matching(m, "speculative", self.speculative, at_or_after, used)
            late = Signal(ports * ports)
            late_vc = Signal(ports * self.vcs)
            row_busy = Cat(grants[i * ports : (i + 1) * ports].any() for i in range(ports))
            column_busy = Cat(grants[o::ports].any() for o in range(ports))
            for i in range(ports):
                row = slice(i * ports, (i + 1) * ports)
                vcs = slice(i * self.vcs, (i + 1) * self.vcs)
                m.d.comb += [
                    used[i].eq(
                        ~row_busy[i] & (matches[row] & ~column_busy).any() & (guesses[vcs] & self.confirmed[vcs]).any()
                    ),
                    late[row].eq(matches[row] & used[i].replicate(ports)),
                    late_vc[vcs].eq(guesses[vcs] & used[i].replicate(self.vcs)),
                ]
            m.d.comb += [self.grants.eq(grants | late), self.granted_vc.eq(picks | late_vc)]
        else:
            m.d.comb += [self.grants.eq(grants), self.granted_vc.eq(picks)]
        for i, pointer in enumerate(at_or_after if self.vcs > 1 else []):
            granted = self.granted_vc[i * self.vcs : (i + 1) * self.vcs]
            with m.If(granted.any()):
                m.d.sync += pointer.eq(Cat(granted[:v].any() if v else 0 for v in range(self.vcs)))
        return m

    def _first_vc(self, m: Module, requests: Value, at_or_after: Value, name: str) -> Value:
        """Return the first of the requests of one input at or after its pointer."""
        if self.vcs == 1:
            return requests
        preferred = Signal(self.vcs, name=f"{name}_preferred")
        m.d.comb += preferred.eq(requests & at_or_after)
        return Mux(
            preferred.any(),
            one_hot_lowest(m, preferred, name=f"{name}_after"),
            one_hot_lowest(m, requests, name=f"{name}_any"),
        )

    def _matching(
        self, m: Module, name: str, requests: Value, at_or_after: list[Signal], taken: Value
    ) -> tuple[Signal, Signal]:
        """Return the matched pairs and the VC of each of them."""
        ports, vcs = self.ports, self.vcs
        pairs = Signal(ports * ports, name=f"{name}_pairs")
        matched = Signal(ports * ports, name=f"{name}_matched")
        chosen = Signal(ports * vcs, name=f"{name}_chosen")
        # The VC that would send, for each pair (input_first: for each input).
        candidates: list[list[Value]] = []
        for i in range(ports):
            of_vc = [requests[(i * vcs + v) * ports : (i * vcs + v + 1) * ports] for v in range(vcs)]
            if self.kind == "input_first":
                asking = Cat(word.any() for word in of_vc)
                pick = Signal(vcs, name=f"{name}_pick{i}")
                m.d.comb += pick.eq(self._first_vc(m, asking, at_or_after[i], f"{name}{i}"))
                candidates.append([pick] * ports)
                for o in range(ports):
                    m.d.comb += pairs[i * ports + o].eq(Cat(pick[v] & of_vc[v][o] for v in range(vcs)).any())
                continue
            row: list[Value] = []
            for o in range(ports):
                asking = Cat(word[o] for word in of_vc)
                pick = Signal(vcs, name=f"{name}_pick{i}_{o}")
                m.d.comb += [
                    pick.eq(self._first_vc(m, asking, at_or_after[i], f"{name}{i}_{o}")),
                    pairs[i * ports + o].eq(asking.any()),
                ]
                row.append(pick)
            candidates.append(row)
        if self.kind == "input_first":
            inner: Allocator = SeparableAllocator(
                inputs=ports, outputs=ports, first="input", arbiter=self.arbiter, single_requests=True
            )
        else:
            inner = allocator(self.kind, size=ports, arbiter=self.arbiter)
        m.submodules[name] = inner
        m.d.comb += [inner.requests.eq(pairs), matched.eq(inner.grants), inner.taken.eq(taken)]
        for i in range(ports):
            for v in range(vcs):
                sends = Cat(matched[i * ports + o] & candidates[i][o][v] for o in range(ports)).any()
                m.d.comb += chosen[i * vcs + v].eq(sends)
        return matched, chosen
