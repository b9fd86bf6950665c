"""Allocation of the crossbar to input virtual channels."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.allocation.allocator import ALLOCATORS, Allocator, SeparableAllocator, allocator, check_iterations
from hopforge.hw.allocation.crossbar import OneHotMux
from hopforge.hw.allocation.islip import IslipAllocator
from hopforge.hw.parts.arbiter import ARBITERS, one_hot_lowest
from hopforge.hw.parts.round_robin import select
from hopforge.hw.parts.shared import place

__all__ = ["SwitchAllocator", "VcChoice"]


class SwitchAllocator(wiring.Component):
    """SA of docs/definitions/router.md: at most one flit from each input and one to each output.

    Bit (i·vcs + v)·ports + o of ``requests`` says that VC v of input i has a flit for output o; no VC requests two
    outputs. ``grants`` has bit i·ports + o for each matched pair, ``granted_vc`` bit i·vcs + v for the VC that sends.
    Combinational; one allocation per cycle. Reset: all pointers 0, nobody granted.

    With `speculation` a second allocator serves ``speculative`` requests on inputs and outputs that the first
    leaves idle, if ``confirmed`` (one bit per VC: it may send if it wins). Nothing of it reaches the first.

    ``label[o]`` is the label (`labels`, `label_bits` for each VC) of the VC that sends to output o, 0 without one: it
    is chosen beside the allocation and not behind it.

    Parameters
    ----------
    ports, vcs : int
        Ports of the router, virtual channels of a port.
    kind : str
        ``input_first``, ``output_first`` (iSLIP) or ``wavefront``.
    arbiter : str
        ``round_robin`` or ``matrix``; the VC that represents an input is always chosen round-robin.
    iterations : int
        Of iSLIP with round-robin arbiters.
    speculation : bool
        Build the second allocator.
    label_bits : int
        What a VC has to tell the output that it is granted.

    Raises
    ------
    ValueError
        An unknown name, a number below 1.
    """

    requests: Signal
    grants: Signal
    granted_vc: Signal
    labels: Signal
    label: Signal
    speculative: Signal
    confirmed: Signal
    turns: Signal

    def __init__(
        self,
        *,
        ports: int,
        vcs: int,
        kind: str = "output_first",
        arbiter: str = "round_robin",
        iterations: int = 1,
        speculation: bool = False,
        label_bits: int = 0,
    ):
        kinds = (*ALLOCATORS, "input_ahead")
        if kind not in kinds:
            raise ValueError(f"sa must be one of {', '.join(kinds)}, not {kind!r}")
        if arbiter not in ARBITERS:
            raise ValueError(f"arbiter must be one of {', '.join(ARBITERS)}, not {arbiter!r}")
        for name, value in (("ports", ports), ("vcs", vcs)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        check_iterations("sa", kind, arbiter, iterations)
        self.ports = ports
        self.vcs = vcs
        self.kind = kind
        self.arbiter = arbiter
        self.iterations = iterations
        self.speculation = speculation
        self.label_bits = label_bits
        members = {
            "requests": In(ports * vcs * ports),
            "grants": Out(ports * ports),
            "granted_vc": Out(ports * vcs),
            "labels": In(ports * vcs * label_bits),
            "label": Out(ports * label_bits),
        }
        if kind == "input_ahead":
            members["turns"] = In(ports * vcs)
        if speculation:
            members |= {"speculative": In(ports * vcs * ports), "confirmed": In(ports * vcs)}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        """Build one matching, or two with the second in the gaps of the first."""
        m = Module()
        if self.kind == "input_ahead":
            self._of_turns(m, platform)
            return m
        ports = self.ports
        at_or_after = [Signal(self.vcs, name=f"vc_at_or_after{i}") for i in range(ports)]
        grants, picks, labels = self._matching(m, platform, "regular", self.requests, at_or_after, None)
        if self.speculation:
            used = Signal(ports)
            matches, guesses, late_labels = self._matching(
                m, platform, "speculative", self.speculative, at_or_after, used
            )
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
            m.d.comb += [
                self.grants.eq(grants | late),
                self.granted_vc.eq(picks | late_vc),
                self.label.eq(
                    self._sent(m, platform, "sent", grants, labels)
                    | self._sent(m, platform, "guessed", late, late_labels)
                ),
            ]
        else:
            m.d.comb += [
                self.grants.eq(grants),
                self.granted_vc.eq(picks),
                self.label.eq(self._sent(m, platform, "sent", grants, labels)),
            ]
        for i, pointer in enumerate(at_or_after if self.vcs > 1 else []):
            granted = self.granted_vc[i * self.vcs : (i + 1) * self.vcs]
            with m.If(granted.any()):
                m.d.sync += pointer.eq(Cat(granted[:v].any() if v else 0 for v in range(self.vcs)))
        return m

    def _of_turns(self, m: Module, platform: object) -> None:
        """Match inputs that have chosen their VC: bit i·vcs + v of ``turns``."""
        ports, vcs, bits = self.ports, self.vcs, self.label_bits
        m.submodules.regular = inner = SeparableAllocator(
            inputs=ports, outputs=ports, first="input", arbiter=self.arbiter, single_requests=True, refusable=False
        )
        labels: list[Value] = []
        pairs, granted = [], []
        for i in range(ports):
            turn = self.turns[i * vcs : (i + 1) * vcs]
            first = i * vcs
            words = [self.requests[(first + v) * ports : (first + v + 1) * ports] for v in range(vcs)]
            told = [self.labels[(first + v) * bits : (first + v + 1) * bits] for v in range(vcs)]
            pairs.append(select(turn, words))
            granted.append(turn & inner.row_granted[i].replicate(vcs))
            labels.append(Cat(*[select(turn, told)] * ports) if bits else Const(0, 0))
        m.d.comb += [
            inner.requests.eq(Cat(pairs)),
            self.grants.eq(inner.grants),
            self.granted_vc.eq(Cat(granted)),
            self.label.eq(self._sent(m, platform, "sent", inner.grants, labels)),
        ]

    def _sent(self, m: Module, platform: object, name: str, matched: Value, labels: list[Value]) -> Value:
        """Return the label that each output is given, of those that each pair would bring."""
        ports, bits = self.ports, self.label_bits
        if bits == 0:
            return Const(0, 0)
        muxes = [OneHotMux(inputs=ports, width_bits=bits) for _ in range(ports)]
        for o, mux in enumerate(muxes):
            words = {f"words__{i}": label[o * bits : (o + 1) * bits] for i, label in enumerate(labels)}
            place(m, f"{name}{o}", mux, platform, ports, bits, select=matched[o::ports], **words)
        return Cat(mux.out for mux in muxes)

    def _matching(
        self, m: Module, platform: object, name: str, requests: Value, at_or_after: list[Signal], taken: Value | None
    ) -> tuple[Signal, Signal, list[Value]]:
        """Return the matched pairs, the VC of each, and for each input the label that every output would get."""
        ports, vcs = self.ports, self.vcs
        pairs = Signal(ports * ports, name=f"{name}_pairs")
        matched = Signal(ports * ports, name=f"{name}_matched")
        chosen = Signal(ports * vcs, name=f"{name}_chosen")
        bits = self.label_bits
        per_output = self.kind != "input_first"
        choices = [VcChoice(ports=ports, vcs=vcs, per_output=per_output, label_bits=bits) for _ in range(ports)]
        # One assignment of all bits: Amaranth goes through all assignments of a signal for each of its bits.
        m.d.comb += [
            pairs.eq(Cat(choice.pairs for choice in choices)),
            chosen.eq(Cat(choice.chosen for choice in choices)),
        ]
        for i, choice in enumerate(choices):
            place(
                m,
                f"{name}_choice{i}",
                choice,
                platform,
                *(ports, vcs, per_output, bits),
                requests=requests[i * vcs * ports : (i + 1) * vcs * ports],
                at_or_after=at_or_after[i],
                matched=matched[i * ports : (i + 1) * ports],
                labels=self.labels[i * vcs * bits : (i + 1) * vcs * bits],
            )
        if self.kind == "input_first":
            inner: Allocator = SeparableAllocator(
                inputs=ports,
                outputs=ports,
                first="input",
                arbiter=self.arbiter,
                single_requests=True,
                refusable=taken is not None,
            )
        elif self.iterations > 1:
            inner = IslipAllocator(
                inputs=ports, outputs=ports, iterations=self.iterations, refusable=taken is not None
            )
        else:
            inner = allocator(self.kind, size=ports, arbiter=self.arbiter, refusable=taken is not None)
        m.submodules[name] = inner
        m.d.comb += [inner.requests.eq(pairs), matched.eq(inner.grants)]
        if taken is not None:
            m.d.comb += inner.taken.eq(taken)
        return matched, chosen, [choice.label for choice in choices]


class VcChoice(wiring.Component):
    """Which VC of one input represents it, in round-robin order, and which one sends when the input is matched.

    Combinational. Bit v·ports + o of ``requests``: VC v has a flit for output o. ``pairs``: outputs that are asked for;
    ``matched``: the one that is given, if any; ``chosen``: the VC that sends. ``label``: for each output, the label of
    the VC that would send to it.

    Parameters
    ----------
    ports, vcs : int
        Outputs, virtual channels.
    per_output : bool
        A VC represents the input for each output; else one for all of them.
    label_bits : int
        Bits of a label.
    """

    requests: Signal
    at_or_after: Signal
    matched: Signal
    labels: Signal
    pairs: Signal
    chosen: Signal
    label: Signal

    def __init__(self, *, ports: int, vcs: int, per_output: bool, label_bits: int = 0):
        self.ports = ports
        self.vcs = vcs
        self.per_output = per_output
        self.label_bits = label_bits
        super().__init__(
            {
                "requests": In(vcs * ports),
                "at_or_after": In(vcs),
                "matched": In(ports),
                "labels": In(vcs * label_bits),
                "pairs": Out(ports),
                "chosen": Out(vcs),
                "label": Out(ports * label_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Choose before the matching, and gate the choice behind it."""
        m = Module()
        ports, vcs = self.ports, self.vcs
        of_vc = [self.requests[v * ports : (v + 1) * ports] for v in range(vcs)]
        picks: list[Value] = []  # the VC that would send, for each output
        if self.per_output:
            for o in range(ports):
                asking = Signal(vcs, name=f"asking{o}")
                m.d.comb += asking.eq(Cat(word[o] for word in of_vc))
                picks.append(self._first_vc(m, asking, f"{o}"))
                m.d.comb += self.pairs[o].eq(asking.any())
        else:
            pick = self._first_vc(m, Cat(word.any() for word in of_vc), "")
            picks = [pick] * ports
            for o in range(ports):
                m.d.comb += self.pairs[o].eq(Cat(pick[v] & of_vc[v][o] for v in range(vcs)).any())
        for v in range(vcs):
            m.d.comb += self.chosen[v].eq(Cat(self.matched[o] & picks[o][v] for o in range(ports)).any())
        if self.label_bits:
            labels = [self.labels[v * self.label_bits : (v + 1) * self.label_bits] for v in range(vcs)]
            chosen = [select(pick, labels) for pick in picks] if self.per_output else [select(picks[0], labels)] * ports
            m.d.comb += self.label.eq(Cat(*chosen))
        return m

    def _first_vc(self, m: Module, requests: Value, name: str) -> Value:
        """Return the first of the requests at or after the pointer."""
        if self.vcs == 1:
            return requests
        pick = Signal(self.vcs, name=f"pick{name}")
        preferred = Signal(self.vcs, name=f"preferred{name}")
        m.d.comb += [
            preferred.eq(requests & self.at_or_after),
            pick.eq(
                Mux(
                    preferred.any(),
                    one_hot_lowest(m, preferred, name=f"after{name}"),
                    one_hot_lowest(m, requests, name=f"any{name}"),
                )
            ),
        ]
        return pick
