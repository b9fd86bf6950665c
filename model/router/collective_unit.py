"""Golden model of a collective unit, cycle by cycle, written from docs/definitions/network-collectives.md."""

from collections import deque
from collections.abc import Mapping, Sequence

from hopforge.model.router.collective_params import OPERATIONS, Flit, PlaneParams

__all__ = ["CollectiveUnit", "combined"]

_PLACES = 3
"""Words of a group that are being combined or wait for their way out."""
_MULTICAST = OPERATIONS.index("multicast")


def combined(operation: int, words: Sequence[int], width_bits: int) -> int:
    """Return what an operation makes of words of `width_bits` bits.

    Examples
    --------
    >>> combined(OPERATIONS.index("sum"), [200, 100], 8), combined(OPERATIONS.index("min"), [200, 100], 8)
    (44, 100)
    """
    name = OPERATIONS[operation]
    if name == "barrier":
        return 0
    if name == "sum":
        return sum(words) % (1 << width_bits)
    if name in ("min", "max"):
        return min(words) if name == "min" else max(words)
    result = words[0]
    for word in words[1:]:
        result = result & word if name == "and" else result ^ word if name == "xor" else result | word
    return result


class CollectiveUnit:
    """Buffers, tree and registers of a unit.

    Parameters
    ----------
    params : PlaneParams
        Of the plane.
    ports : int
        Of the router beside it.

    Attributes
    ----------
    out : list of Flit or None
        What stands at each output in this cycle.
    credit : list of int
        Credits that go back from each input in this cycle, a bit for each group.
    """

    def __init__(self, params: PlaneParams, ports: int) -> None:
        self.params, self.ports = params, ports
        groups = range(params.groups)
        self.out: list[Flit | None] = [None] * ports
        self.credit = [0] * ports
        self.children: list[tuple[int, ...]] = [() for _ in groups]
        self.parent = [-1] * params.groups
        self.held = [[deque[Flit]() for _ in groups] for _ in range(ports)]
        self.place = [deque[Flit]() for _ in groups]
        self.credits = [[params.buffer_flits] * params.groups for _ in range(ports)]
        self.served: list[set[int]] = [set() for _ in groups]
        self.locked = [-1] * params.groups
        self.expected = [0] * params.groups
        self.taken: tuple[list[Flit], bool] | None = None
        self.next_taken = 0
        self.next_out = [0] * ports
        self.flits = 0

    @property
    def idle(self) -> bool:
        """Whether a cycle without inputs changes nothing."""
        return self.flits == 0 and not any(self.out) and not any(self.credit)

    def cycle(
        self,
        flits: Mapping[int, Flit],
        credits: Mapping[int, int],
        tree: tuple[int, int, int] | None = None,
    ) -> None:
        """Go on to the next cycle.

        Parameters
        ----------
        flits, credits : mapping
            What stands at inputs in this cycle, by port: a flit; credits, a bit for each group.
        tree : tuple of int, optional
            Group, children, parent: written at the end of this cycle.
        """
        groups = range(self.params.groups)
        freed = [0] * self.ports
        room = [
            len(self.place[group]) + (self.taken is not None and self.taken[0][0].group == group) < _PLACES
            for group in groups
        ]
        down = [self._down(group) for group in groups]
        out = self._send(down)
        for port, flit in enumerate(out):
            if flit is not None:
                self.credits[port][flit.group] -= 1
                if port == self.parent[flit.group]:
                    self.place[flit.group].popleft()
                    self.flits -= 1
        made = None if self.taken is None else self._combine(*self.taken)
        # looks at the buffers as they were: words of children, which the sending does not touch
        self.taken = self._take(room, freed)
        for group in groups:
            source = down[group]
            if source is None:
                continue
            self.served[group] |= {
                port for port in self.children[group] if (flit := out[port]) is not None and flit.group == group
            }
            if self.served[group] == set(self.children[group]):
                source.popleft()
                self.flits -= 1
                self.served[group] = set()
                if self.parent[group] >= 0:
                    freed[self.parent[group]] |= 1 << group
        if made is not None:
            self.place[made.group].append(made)
        for port, flit in flits.items():
            if flit.group < self.params.groups:
                self.held[port][flit.group].append(flit)
                self.flits += 1
        for port, given in credits.items():
            for group in groups:
                self.credits[port][group] += given >> group & 1
        self.out, self.credit = out, freed
        if tree is not None:
            self._write(*tree)

    def _down(self, group: int) -> "deque[Flit] | None":
        """Return the queue whose first word goes down, if there is one."""
        if not self.children[group]:
            return None
        source = self.place[group] if self.parent[group] < 0 else self.held[self.parent[group]][group]
        return source or None

    def _send(self, down: "Sequence[deque[Flit] | None]") -> "list[Flit | None]":
        """Choose the flit that each output gets."""
        out: list[Flit | None] = [None] * self.ports
        count = self.params.groups
        if not self.flits:
            return out
        for port in range(self.ports):
            for step in range(count):
                group = (self.next_out[port] + step) % count
                if not self.credits[port][group]:
                    continue
                source = None
                if port == self.parent[group]:
                    source = self.place[group]
                elif port in self.children[group] and port not in self.served[group]:
                    source = down[group]
                if source:
                    out[port] = source[0]
                    self.next_out[port] = (group + 1) % count
                    break
        return out

    def _take(self, room: Sequence[bool], freed: list[int]) -> tuple[list[Flit], bool] | None:
        """Take the first words of one group off the buffers of its children; tell whether a child was locked."""
        count = self.params.groups
        for step in range(count):
            group = (self.next_taken + step) % count
            ports = self._sources(group) if room[group] else ()
            if ports:
                self.next_taken = (group + 1) % count
                heads = []
                for port in ports:
                    heads.append(self.held[port][group].popleft())
                    freed[port] |= 1 << group
                self.flits -= len(heads) - 1
                locked = self.locked[group] >= 0
                stays = (heads[0].operation == _MULTICAST or locked) and not heads[0].last
                self.locked[group] = ports[0] if stays else -1
                return heads, locked
        return None

    def _sources(self, group: int) -> tuple[int, ...]:
        """Return the children whose first words are combined next; none: some are missing."""
        children = self.children[group]
        if self.locked[group] >= 0:
            return (self.locked[group],) if self.held[self.locked[group]][group] else ()
        alone = [
            port for port in children if self.held[port][group] and self.held[port][group][0].operation == _MULTICAST
        ]
        if alone:
            return (alone[0],)
        return children if all(self.held[port][group] for port in children) else ()

    def _combine(self, heads: list[Flit], locked: bool) -> Flit:
        """Combine words that were taken."""
        first = heads[0]
        group = first.group
        error = any(
            head.error or (head.operation, head.sequence, head.last) != (first.operation, first.sequence, first.last)
            for head in heads
        )
        error |= locked and first.operation != _MULTICAST
        if self.parent[group] < 0:
            error |= first.sequence != self.expected[group]
            if first.last:
                self.expected[group] = (first.sequence + 1) % (1 << self.params.sequence_bits)
        word = combined(first.operation, [head.word for head in heads], self.params.width_bits)
        return first._replace(error=int(error), word=word)

    def _write(self, group: int, children: int, parent: int) -> None:
        if group >= self.params.groups:
            return
        self.children[group] = tuple(port for port in range(self.ports) if children >> port & 1)
        self.parent[group] = parent.bit_length() - 1
        self.served[group] = set()
        self.locked[group] = -1
        self.expected[group] = 0
