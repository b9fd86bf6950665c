"""Choice of the output port and request of its free virtual channels, for one input virtual channel."""

from collections.abc import Callable

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, ceil_log2

from hopforge.model.router.params import RouterParams

__all__ = ["VcRequest", "class_bits", "credit_bits"]


def credit_bits(params: RouterParams) -> int:
    """Width of a credit counter, the same behind all outputs."""
    return bits_for(max(params.credits(o) for o in range(params.ports)))


def class_bits(params: RouterParams) -> int:
    """Width of a class of routes; one value more than there are classes stands for all that have no rule."""
    return bits_for(params.classes) if params.rc == "lookup" else max(1, ceil_log2(params.classes))


class VcRequest(wiring.Component):
    """A(n) of docs/definitions/router.md: the available output VCs of the best candidate of one input VC.

    Combinational. Of the ports in ``ports`` that have an available VC the one with the most credits is chosen (sum
    over the VCs that the packet may take), the lowest of several; ``escape`` counts if none of them has one.
    ``asked_port`` is the port of the request, one-hot; where there is only one candidate also without an available VC.
    Bit o·vcs + w of ``free``, ``request`` and ``wanted`` stands for VC w of output o. ``wanted`` and ``wanted_port``
    (``va`` input_first) are request and port as they were if ``valid`` were 1; beside them ``request`` is there for
    speculation only.

    Parameters
    ----------
    params : RouterParams
        The router.
    port, vc : int
        The input VC.
    """

    valid: Signal
    ports: Signal
    escape: Signal
    route_class: Signal
    length: Signal
    free: Signal
    credits: Signal
    request: Signal
    wanted: Signal
    wanted_port: Signal
    asked_port: Signal
    viable: Signal

    def __init__(self, *, params: RouterParams, port: int, vc: int):
        self.params = p = params
        self.port = port
        self.vc = vc
        super().__init__(
            {
                "valid": In(1),
                "ports": In(p.ports),
                "escape": In(p.ports),
                "route_class": In(class_bits(p)),
                "length": In(p.length_bits),
                "free": In(p.ports * p.vcs),
                "credits": In(p.ports * p.vcs * credit_bits(p)),
                **{name: Out(p.ports * p.vcs) for name in self._outputs},
                **({"wanted_port": Out(p.ports)} if "wanted" in self._outputs else {}),
                "asked_port": Out(p.ports),
                "viable": Out(1),
            }
        )

    @property
    def _outputs(self) -> tuple[str, ...]:
        """Return the names of the requests that there are."""
        if self.params.va != "input_first":
            return ("request",)
        return ("request", "wanted") if self.params.speculation else ("wanted",)

    @staticmethod
    def rules_of(params: RouterParams, port: int, vc: int) -> tuple[tuple[int, ...], ...]:
        """Masks of output VCs by class and output port, for routes and then for escapes."""
        return tuple(
            tuple(mask(k, port, vc, o) for o in range(params.ports))
            for mask in (params.vc_mask, *((params.escape_mask,) if params.escapes else ()))
            for k in range(params.classes)
        )

    @property
    def rules(self) -> tuple[tuple[int, ...], ...]:
        """See `rules_of`: requests with the same rules are the same hardware."""
        return self.rules_of(self.params, self.port, self.vc)

    def elaborate(self, platform: object) -> Module:
        """Masks, what is available, and where a choice exists the choice."""
        m = Module()
        p = self.params
        room = self._room(m)
        masks = self._masks(m, "mask", p.vc_mask)
        available = self._available(m, "available", masks, room)
        usable = Signal(p.ports)  # candidates with an available VC
        chosen = Signal(p.ports)
        m.d.comb += usable.eq(Cat(self.ports[o] & available[o].any() for o in range(p.ports)))
        # With one candidate the port does not wait for what is free in it.
        m.d.comb += chosen.eq(self._most_credits(m, usable, masks) if p.adaptive else self.ports)
        port: Value = chosen
        viable = Cat(self.ports[o] & masks[o].any() for o in range(p.ports)).any()
        request: list[Value] = [available[o] & chosen[o].replicate(p.vcs) for o in range(p.ports)]
        if p.escapes:
            escape_masks = self._masks(m, "escape_mask", p.escape_mask)
            escapes = self._available(m, "escape_available", escape_masks, room)
            stuck = ~usable.any()
            request = [
                word | (escapes[o] & (stuck & self.escape[o]).replicate(p.vcs)) for o, word in enumerate(request)
            ]
            port = (
                chosen | (self.escape & stuck.replicate(p.ports)) if p.adaptive else (Mux(stuck, self.escape, chosen))
            )
            viable = viable | Cat(self.escape[o] & escape_masks[o].any() for o in range(p.ports)).any()
        if "wanted" in self._outputs:
            m.d.comb += [self.wanted.eq(Cat(*request)), self.wanted_port.eq(port)]
        if "request" in self._outputs:
            m.d.comb += self.request.eq(Cat(*request) & self.valid.replicate(p.ports * p.vcs))
        m.d.comb += [
            self.asked_port.eq(port & self.valid.replicate(p.ports)),
            self.viable.eq(viable),
        ]
        return m

    def _room(self, m: Module) -> Value:
        """Return the output VCs that are free and, with virtual cut-through, take the whole packet."""
        p = self.params
        if p.switching == "wormhole":
            return self.free
        width = credit_bits(p)
        room = Signal(p.ports * p.vcs)
        for n in range(p.ports * p.vcs):
            m.d.comb += room[n].eq(self.free[n] & (self.credits[n * width : (n + 1) * width] >= self.length))
        return room

    def _masks(self, m: Module, name: str, rule: Callable[[int, int, int, int], int]) -> list[Value]:
        """Return the VCs of each output that the class allows."""
        p = self.params
        masks: list[Value] = []
        for o in range(p.ports):
            of_class = [rule(k, self.port, self.vc, o) for k in range(p.classes)]
            if len(set(of_class)) == 1 and class_bits(p) == 1 and p.rc == "table":
                masks.append(Const(of_class[0], p.vcs))
                continue
            mask = Signal(p.vcs, name=f"{name}{o}")
            for k, allowed in enumerate(of_class):
                with m.If(self.route_class == k):
                    m.d.comb += mask.eq(allowed)
            masks.append(mask)
        return masks

    def _available(self, m: Module, name: str, masks: list[Value], room: Value) -> list[Signal]:
        p = self.params
        words = [Signal(p.vcs, name=f"{name}{o}") for o in range(p.ports)]
        for o, word in enumerate(words):
            m.d.comb += word.eq(masks[o] & room[o * p.vcs : (o + 1) * p.vcs])
        return words

    def _most_credits(self, m: Module, usable: Value, masks: list[Value]) -> Value:
        """Tournament: of two ports that can be used the one with more credits goes on, of equals the lower."""
        p = self.params
        width = credit_bits(p)
        players: list[tuple[Value, Value, Value]] = []  # takes part, credits, one-hot
        for o in range(p.ports):
            starts = [(o * p.vcs + w) * width for w in range(p.vcs)]
            terms = [Mux(masks[o][w], self.credits[n : n + width], 0) for w, n in enumerate(starts)]
            total = Signal(width + ceil_log2(p.vcs), name=f"total{o}")
            m.d.comb += total.eq(sum(terms, start=Const(0, 1)))
            players.append((usable[o], total, Const(1 << o, p.ports)))
        while len(players) > 1:
            winners: list[tuple[Value, Value, Value]] = []
            for (a, credits_a, port_a), (b, credits_b, port_b) in zip(players[::2], players[1::2], strict=False):
                first = Signal(name="first_wins")
                best = Signal(len(credits_a), name="most")
                port = Signal(p.ports, name="leader")
                m.d.comb += [
                    first.eq(a & (~b | (credits_a >= credits_b))),
                    best.eq(Mux(first, credits_a, credits_b)),
                    port.eq(Mux(first, port_a, port_b)),
                ]
                winners.append((a | b, best, port))
            players = winners + players[len(players) & ~1 :]
        takes_part, _, winner = players[0]
        return winner & takes_part.replicate(p.ports)
