"""Golden switch with several crossbar ports, connections and speculation, in dictionaries (definitions/router.md).

One `SwitchModel` is the SA of one router, one `step` a step of it. The kernel (`model.network.parts.sped_switch`) is
compared with it.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from hopforge.model.router.allocators import allocation, first_at_or_after, match_in_turns

__all__ = ["Asked", "SwitchModel"]

#: (input port, VC, output port)
Asked = tuple[int, int, int]


@dataclass(frozen=True)
class Crossbar:
    """Crossbar ports of a router of `ports` ports and `vcs` VCs: `ins` for an input, `outs` for an output."""

    ports: int
    vcs: int
    ins: int
    outs: int

    def of(self, asked: Asked) -> tuple[int, int]:
        """Crossbar input and output of a request."""
        i, v, o = asked
        return i * self.ins + v % self.ins, o * self.outs + i % self.outs


class SwitchModel:
    """SA of a router.

    Parameters
    ----------
    crossbar : Crossbar
        Its ports.
    kind, arbiter : str
        The allocator.
    iterations : int
        Of iSLIP.
    hold : bool
        Granted crossbar ports stay connected.
    speculation : bool or str
        False, True (an allocator of their own for heads), ``shared`` or ``yielding`` (of their own, where nobody else
        asks for their output, or at their input where inputs choose first).
    below : callable, optional
        Draws a number below a bound (pim).
    first_output : int
        Port from which on outputs are gone through (max_size).
    own : int, optional
        Ports over which pointers of wavefront, rr_wavefront, max_size and loa go round, and draws of pim go (default:
        all).
    """

    def __init__(
        self, crossbar: Crossbar, kind: str, arbiter: str, iterations: int, *, hold: bool, speculation: bool | str,
        below: Callable[[int], int] | None = None, first_output: int = 0, own: int | None = None,
    ) -> None:  # fmt: skip
        self.crossbar, self.kind, self.iterations, self.hold = crossbar, kind, iterations, hold
        self.speculation = speculation
        size = crossbar.ports * max(crossbar.ins, crossbar.outs)
        block = own or crossbar.ports
        blocks = block * crossbar.ins, block * crossbar.outs
        self.first, self.second = (
            allocation(
                kind, size, arbiter, below, outputs=crossbar.ports * crossbar.outs, blocks=blocks,
                first_output=first_output * crossbar.outs,
            )
            for _ in range(2)
        )  # fmt: skip
        self.turn = [0] * (crossbar.ports * crossbar.ins)
        self.connected: dict[int, tuple[int, int]] = {}  # crossbar input → output, VC

    def step(
        self,
        asks: Collection[Asked],
        heads: Collection[Asked],
        gives: Callable[[Asked], bool],
        more: Callable[[int, int], bool],
    ) -> list[Asked]:
        """Go through one step.

        Parameters
        ----------
        asks : collection of Asked
            VCs that request an output.
        heads : collection of Asked
            VCs in VA that request VCs of an output in this step (speculation).
        gives : callable
            Whether VA gives a head a VC with credits.
        more : callable
            Whether flits of the same packet stand behind the first one of (input port, VC).

        Returns
        -------
        list of Asked
            Who is granted.
        """
        inputs, outputs = set(self.connected), {f for f, _ in self.connected.values()}
        granted = self._over_connections(asks)
        open_asks, open_heads = (
            [one for one in some if self.crossbar.of(one)[0] not in inputs and self.crossbar.of(one)[1] not in outputs]
            for some in (asks, heads)
        )
        chosen = self._representing(open_asks)
        if self.speculation == "shared":
            chosen = self._representing(open_heads) | chosen
        if self.speculation == "yielding":
            side = 1 if self.kind in ("islip", "output_first") else 0
            before = {self.crossbar.of(one)[side] for one in open_asks}
            open_heads = [one for one in open_heads if self.crossbar.of(one)[side] not in before]
        others = self._representing(open_heads) if self.speculation in (True, "yielding") else {}
        late, _ = match_in_turns(self.second, _requests(others), self.iterations)  # draws first
        pairs, moving = match_in_turns(self.first, _requests(chosen), self.iterations)
        free = {e: f for e, f in late.items() if e not in pairs and f not in pairs.values()}
        late = {e: f for e, f in free.items() if gives(others[e, f])}
        self.first.take(moving)
        self.second.take(late)
        for (e, _), (_, v, _) in [*((p, chosen[p]) for p in pairs.items()), *((p, others[p]) for p in late.items())]:
            self.turn[e] = (v + self.crossbar.ins) % self.crossbar.vcs
        granted += [chosen[p] for p in pairs.items() if chosen[p] in asks or gives(chosen[p])]
        granted += [others[p] for p in late.items()]
        for one in granted if self.hold else ():
            if more(one[0], one[1]):
                e, f = self.crossbar.of(one)
                self.connected[e] = f, one[1]
        return granted

    def _over_connections(self, asks: Collection[Asked]) -> list[Asked]:
        """Return the grants over connections; all connections end, and are made again by those that go on."""
        held = [(e // self.crossbar.ins, v, f // self.crossbar.outs) for e, (f, v) in self.connected.items()]
        self.connected = {}
        return [one for one in held if one in asks]

    def _representing(self, asks: Collection[Asked]) -> dict[tuple[int, int], Asked]:
        """Return which request stands for crossbar input and output; input_first: one for a crossbar input."""
        groups: dict[tuple[int, int], list[Asked]] = {}
        for one in asks:
            e, f = self.crossbar.of(one)
            groups.setdefault((e, -1 if self.kind == "input_first" else f), []).append(one)
        found = {}
        for (e, _), some in groups.items():
            v = first_at_or_after(self.turn[e], [one[1] for one in some], self.crossbar.vcs)
            best = next(one for one in some if one[1] == v)
            found[self.crossbar.of(best)] = best
        return found


def _requests(chosen: Mapping[tuple[int, int], Asked]) -> dict[int, set[int]]:
    requests: dict[int, set[int]] = {}
    for e, f in chosen:
        requests.setdefault(e, set()).add(f)
    return requests
