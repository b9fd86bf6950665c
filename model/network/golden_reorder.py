"""Golden model of reorder buffers and of the measures of order (docs/definitions/spraying.md), from the RFCs' words.

Lists of everything that has come, looked through anew for every packet: slow and obvious.
"""

from dataclasses import dataclass, field

__all__ = ["GoldenReceiver", "GoldenSource", "n_reordered", "reordered_extent"]


def reordered_extent(numbers: list[int], i: int) -> int | None:
    """Extent of arrival `i` (RFC 4737, 4.2), None: it is not reordered (3.3).

    Examples
    --------
    >>> [reordered_extent([1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11], i) for i in (6, 7, 8, 9, 10)]
    [None, 4, 5, 6, None]
    """
    next_expected = 0
    for number in numbers[:i]:
        if number >= next_expected:
            next_expected = number + 1
    if numbers[i] >= next_expected:
        return None
    return i - min(j for j in range(i) if numbers[j] > numbers[i])


def n_reordered(numbers: list[int], i: int, n: int) -> bool:
    """Whether arrival `i` is n-reordered (RFC 4737, 5.4): the `n` arrivals before it all have larger numbers.

    Examples
    --------
    >>> [n_reordered([1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11], i, 3) for i in (7, 8, 9)]
    [True, False, False]
    """
    return i >= n and all(numbers[j] > numbers[i] for j in range(i - n, i))


@dataclass
class GoldenReceiver:
    """The receiver of one flow.

    Attributes
    ----------
    came : list of int
        Sequence numbers in order of arrival.
    lost : set of int
        Known to be lost.
    waiting : dict
        Sequence number → cycle of arrival, of what is not delivered.
    delivered : list of (int, int)
        Sequence number and cycle.
    occupancy : list of int
        Packets that wait, after each arrival (RFC 5236, 4).
    """

    came: list[int] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)
    waiting: dict[int, int] = field(default_factory=dict)
    delivered: list[tuple[int, int]] = field(default_factory=list)
    occupancy: list[int] = field(default_factory=list)

    @property
    def front(self) -> int:
        """First packet that is neither delivered nor lost."""
        done = {number for number, _ in self.delivered} | self.lost
        number = 0
        while number in done:
            number += 1
        return number

    def arrive(self, number: int, cycle: int) -> None:
        """Take a packet."""
        self.came.append(number)
        self.waiting[number] = cycle
        self._deliver(cycle)
        self.occupancy.append(len(self.waiting))

    def lose(self, number: int, cycle: int) -> None:
        """Wait no longer for a packet."""
        self.lost.add(number)
        self._deliver(cycle)

    def _deliver(self, cycle: int) -> None:
        while (number := self.front) in self.waiting:
            del self.waiting[number]
            self.delivered.append((number, cycle))

    def extents(self) -> list[int]:
        """Return the extents of all reordered packets."""
        found = (reordered_extent(self.came, i) for i in range(len(self.came)))
        return [extent for extent in found if extent is not None]

    def n_reordered(self, n: int) -> int:
        """Count n-reordered packets."""
        return sum(n_reordered(self.came, i, n) for i in range(len(self.came)))


@dataclass
class GoldenSource:
    """Entropy of the packets of one flow, by what the host takes up when.

    Attributes
    ----------
    per : str
        ``flow``, ``message``, ``packet`` or ``flowlet``.
    values, gap_cycles : int
        As in section `traffic.entropy`.
    """

    per: str
    values: int
    gap_cycles: int = 0
    count: int = 0
    flowlet: int = 0
    tail_left: int | None = None

    def take_up(self, cycle: int, message: int) -> int:
        """Return the entropy of the next packet."""
        if self.tail_left is not None and self.tail_left <= cycle - self.gap_cycles:
            self.flowlet += 1
        entropy = {"flow": 0, "message": message, "packet": self.count, "flowlet": self.flowlet}[self.per]
        self.count += 1
        return entropy % self.values
