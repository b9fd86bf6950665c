"""Golden model of the table of Q-adaptive inside a switch (docs/definitions/q-table.md, spec/dragonfly.md).

Written from the rule (`model.numbers.q_rule`, which the network simulator compiles), not from the hardware: one update
after the other, and after some cycles decisions see them.
"""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.numbers.q_rule import RATE_BITS, in_steps, keeps_minimal, learned, rate_words, step_and_largest
from hopforge.model.topology import Topology, build
from hopforge.model.topology.link_times import dragonfly_times, linked_ports

__all__ = ["ANSWER_CYCLES", "UPDATE_CYCLES", "Answer", "QTable", "QTableParams", "Query", "SwitchLinks", "Update"]

#: cycles from a query to its answer
ANSWER_CYCLES = 4
#: a query sees the updates that were accepted at least so many cycles before it
UPDATE_CYCLES = 3

DEFAULT_BITS = 16
_LEAST_GROUPS = 3


@dataclass(frozen=True, kw_only=True)
class QTableParams:
    """What a table is generated for; equal in all routers of a dragonfly.

    Parameters
    ----------
    groups : int
        Groups of the dragonfly, at least 3: rows are the other groups times the hosts of a router.
    hosts : int
        Hosts of a router.
    local_ports, global_ports : int
        Columns: ports of a router into its group, and to others.
    value_bits : int
        Bits of an estimate.
    near, far : int
        Estimates after reset, in steps: of the port with the link to the group, and of all others.
    alpha, beta, q_thld1, q_thld2 : int
        Learning rates and thresholds in units of 2**-10.
    dither : bool
        An update is rounded at random by the bits that come with it; otherwise to the nearest estimate.
    shared_read : bool
        One memory: an update waits while there is a query. Otherwise two memories with the same contents.

    Raises
    ------
    ValueError
        A parameter out of range.
    """

    groups: int
    hosts: int
    local_ports: int
    global_ports: int
    value_bits: int = DEFAULT_BITS
    near: int = 300
    far: int = 330
    alpha: int = 205
    beta: int = 41
    q_thld1: int = 205
    q_thld2: int = 358
    dither: bool = False
    shared_read: bool = False

    def __post_init__(self) -> None:
        one, largest = 1 << RATE_BITS, self.largest
        limits = {
            "groups": (_LEAST_GROUPS, 1 << 12), "hosts": (1, 1 << 8), "local_ports": (1, 255), "global_ports": (1, 255),
            "value_bits": (4, 24), "near": (0, largest), "far": (0, largest), "alpha": (0, one), "beta": (0, one),
            "q_thld1": (0, one), "q_thld2": (0, one),
        }  # fmt: skip
        for name, (least, most) in limits.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"{name} must be between {least} and {most}, not {value}")

    @classmethod
    def from_config(cls, config: Config, *, shared_read: bool = False) -> Self:
        """Return the table for the dragonfly and the section `routing` of a configuration.

        Raises
        ------
        UserError
            Another network than a dragonfly, too few groups, or times and rates that the hardware cannot hold.
        """
        topology = build(config.topology, config.address)
        if topology.kind != "dragonfly":
            raise UserError(f"topology.kind must be dragonfly for a table of Q-adaptive, not {topology.kind}")
        routing, p, a = config.routing, int(topology.params["p"]), int(topology.params["a"])
        bits = DEFAULT_BITS if routing.estimate_bits is None else routing.estimate_bits
        step, largest = step_and_largest(bits, routing.estimate_fraction_bits)
        local, far, _ = dragonfly_times(topology, config.router)
        rates = {name: rate_words(getattr(routing, name)) for name in ("alpha", "beta", "q_thld1", "q_thld2")}
        for name, words in rates.items():
            if not 0 <= words <= 1 << RATE_BITS:
                value = getattr(routing, name)
                raise UserError(f"routing.{name} must be 0 to 1 in a table of Q-adaptive in hardware, not {value:g}")
        if in_steps(local + far, step, np.inf, 0.5) > largest:
            raise UserError(
                f"routing.estimate_bits must hold {local + far:g}, the time without load over a local and a global "
                f"link: {bits} bits end at {largest:g} (fewer routing.estimate_fraction_bits reach further)"
            )
        if topology.params["g"] < _LEAST_GROUPS:
            groups = topology.params["g"]
            raise UserError(f"topology.g must be at least {_LEAST_GROUPS} for a table of Q-adaptive, not {groups}")
        try:
            return cls(
                groups=int(topology.params["g"]), hosts=p, local_ports=a - 1,
                global_ports=linked_ports(topology) - (a - 1), value_bits=bits,
                near=round(in_steps(far, step, np.inf, 0.5) / step),
                far=round(in_steps(local + far, step, np.inf, 0.5) / step),
                dither=routing.estimate_rounding == "random", shared_read=shared_read, **rates,
            )  # fmt: skip
        except ValueError as error:
            raise UserError(f"{config.name}: table of Q-adaptive: {error}") from None

    @property
    def columns(self) -> int:
        """Ports without hosts."""
        return self.local_ports + self.global_ports

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return (self.groups - 1) * self.hosts

    @property
    def largest(self) -> int:
        """Largest estimate."""
        return (1 << self.value_bits) - 2

    @property
    def no_link(self) -> int:
        """What stands in the column of a port without a link."""
        return (1 << self.value_bits) - 1

    @property
    def table_bits(self) -> int:
        """Bits of all estimates, once."""
        return self.rows * self.columns * self.value_bits

    @property
    def memory_bits(self) -> int:
        """Bits of the memories."""
        return self.table_bits * (1 if self.shared_read else 2)


class SwitchLinks(NamedTuple):
    """What distinguishes the tables of two routers.

    Attributes
    ----------
    own_group : int
        Group of the router.
    groups : tuple of int or None
        Where the link of each global port leads; None: no link.
    """

    own_group: int
    groups: tuple[int | None, ...]

    @classmethod
    def of_router(cls, topology: Topology, params: QTableParams, router: int) -> Self:
        """Return the links of a router of a dragonfly."""
        a, first = params.local_ports + 1, params.hosts + params.local_ports
        peers = topology.peer_router[router, first : first + params.global_ports].tolist()
        return cls(router // a, tuple(peer // a if peer >= 0 else None for peer in peers))


class Query(NamedTuple):
    """What is asked in a cycle.

    Attributes
    ----------
    group, host : int
        Row: destination group (not the own one) and number of the source host at its router.
    minimal, drawn : int
        Columns of the minimal port and of one drawn at random.
    first, second, explore : bool
        Source router: the best column against the minimal one, with the first threshold. First router of another group:
        the drawn one, with the second threshold. Take the drawn one anyway. None of them: the minimal one.
    elapsed : int
        What a report adds to the least estimate.
    """

    group: int
    host: int
    minimal: int
    drawn: int = 0
    first: bool = False
    second: bool = False
    explore: bool = False
    elapsed: int = 0


class Update(NamedTuple):
    """What a router downstream has told: row, column of the port taken, time in steps, random bits for the rounding."""

    group: int
    host: int
    column: int
    time: int
    dither: int = 1 << RATE_BITS - 1


class Answer(NamedTuple):
    """Column to take, whether it is another than the minimal one, least estimate of the row, and that + elapsed."""

    column: int
    detour: bool
    least: int
    report: int


class QTable:
    """The table cycle by cycle: at most one query and one update in each.

    Parameters
    ----------
    params : QTableParams
        The table.
    links : SwitchLinks
        Its router.
    """

    def __init__(self, params: QTableParams, links: SwitchLinks) -> None:
        if len(links.groups) != params.global_ports:
            raise ValueError(f"links must be of {params.global_ports} global ports, not {len(links.groups)}")
        self.params, self.links = params, links
        self.linked = [True] * params.local_ports + [group is not None for group in links.groups]
        self.newest = [self._first_row(row) for row in range(params.rows)]
        self._seen = [list(row) for row in self.newest]
        self._writes: deque[tuple[int, int, int, int]] = deque()  # when a query sees it, row, column, estimate
        self._answers: deque[tuple[int, Answer]] = deque()
        self._cycle = 0

    @property
    def ready(self) -> bool:
        """Whether the table has its first estimates; it gets a row in each cycle after reset."""
        return self._cycle >= self.params.rows

    def row(self, group: int, host: int) -> int:
        """Row of a destination group and a source host."""
        if group == self.links.own_group:
            raise ValueError(f"group must be another than the own one, {group}")
        return (group - (group > self.links.own_group)) * self.params.hosts + host

    def _first_row(self, row: int) -> list[int]:
        p = self.params
        group = row // p.hosts
        group += group >= self.links.own_group
        found = [p.far] * p.local_ports
        return found + [p.no_link if at is None else p.near if at == group else p.far for at in self.links.groups]

    def answer(self, query: Query) -> Answer:
        """Decide by the estimates that a query sees now."""
        values = self._seen[self.row(query.group, query.host)]
        least = min(values)
        column = query.minimal
        if query.first or query.second:
            other = values.index(least) if query.first else query.drawn
            threshold = (self.params.q_thld1 if query.first else self.params.q_thld2) / (1 << RATE_BITS)
            if not keeps_minimal.py_func(values[query.minimal], values[other], threshold):
                column = other
            if query.explore:
                column = query.drawn
        return Answer(column, column != query.minimal, least, min(least + query.elapsed, self.params.largest))

    def learn(self, update: Update) -> None:
        """Carry out an update on the newest estimates; one of a port without a link is ignored."""
        if not self.linked[update.column]:
            return
        p, row = self.params, self.row(update.group, update.host)
        old, one = self.newest[row][update.column], 1 << RATE_BITS
        moved = learned.py_func(old, min(update.time, p.largest), p.alpha / one, p.beta / one)
        shift = update.dither / one if p.dither else 0.5
        new = int(in_steps.py_func(moved, 1.0, p.largest, shift))
        self.newest[row][update.column] = new
        self._writes.append((self._cycle + UPDATE_CYCLES, row, update.column, new))

    def cycle(self, query: Query | None, update: Update | None) -> tuple[bool, bool, Answer | None]:
        """Go through one cycle.

        Parameters
        ----------
        query, update : Query, Update or None
            What is at the inputs.

        Returns
        -------
        tuple
            Whether a query and an update are accepted in this cycle, and the answer that comes out in it.
        """
        while self._writes and self._writes[0][0] <= self._cycle:
            _, row, column, new = self._writes.popleft()
            self._seen[row][column] = new
        found = self._answers.popleft()[1] if self._answers and self._answers[0][0] == self._cycle else None
        query_ready = self.ready
        update_ready = query_ready and not (self.params.shared_read and query is not None)
        if query is not None and query_ready:
            self._answers.append((self._cycle + ANSWER_CYCLES, self.answer(query)))
        if update is not None and update_ready:
            self.learn(update)
        self._cycle += 1
        return query_ready, update_ready, found
