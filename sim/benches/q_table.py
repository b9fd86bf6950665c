"""Bench of `hw.agents.q_table`: queries and updates that collide, and what the golden table says in every cycle."""

from dataclasses import dataclass

import numpy as np

from hopforge.hw.agents.q_table import QTable as Hardware
from hopforge.model.numbers.q_rule import RATE_BITS
from hopforge.model.router.q_table import ANSWER_CYCLES, QTable, QTableParams, Query, SwitchLinks, Update
from hopforge.sim.drive.replay import Bench, Output, Replay, as_words

__all__ = ["QTableTraffic", "q_table_bench", "q_table_replay", "random_links"]

_INPUTS = (
    "own_group", "link", "req_valid", "req_group", "req_host", "req_minimal", "req_drawn", "req_first", "req_second",
    "req_explore", "req_elapsed", "upd_valid", "upd_group", "upd_host", "upd_column", "upd_time",
)  # fmt: skip
_OUTPUTS = (
    Output("req_ready"), Output("upd_ready"), Output("resp_valid"),
    *(Output(f"resp_{name}", "resp_valid") for name in ("column", "detour", "least", "report")),
)  # fmt: skip
_WORD = (1 << 64) - 1


@dataclass(frozen=True, kw_only=True)
class QTableTraffic:
    """What is asked of a table.

    Parameters
    ----------
    cycles : int
        After the initialisation; the last few ask nothing, so that every answer comes out.
    seed : int
        Of every draw.
    queries, updates : float
        Share of the cycles with a query, and with an update.
    places : int
        Rows in use; few: updates and queries of the same estimates meet within a few cycles. They change every 500
        cycles.
    """

    cycles: int
    seed: int
    queries: float = 0.8
    updates: float = 0.8
    places: int = 3


def random_links(params: QTableParams, rng: np.random.Generator) -> SwitchLinks:
    """Return a router with links to random other groups; about one in six ports has none."""
    own = int(rng.integers(params.groups))
    others = [group for group in range(params.groups) if group != own]
    chosen = rng.choice(others, params.global_ports, replace=params.global_ports > len(others)).tolist()
    return SwitchLinks(own, tuple(None if rng.random() < 1 / 6 else int(group) for group in chosen))


class _Draw:
    """Queries and updates of one run."""

    def __init__(self, table: QTable, traffic: QTableTraffic, rng: np.random.Generator) -> None:
        self.table, self.traffic, self.rng, p = table, traffic, rng, table.params
        self.columns = [column for column in range(p.columns) if table.linked[column]]
        self.groups = [group for group in range(p.groups) if group != table.links.own_group]
        self.change()

    def change(self) -> None:
        """Take other rows, and mostly the same few columns; times are any, or all of them long."""
        rng, p = self.rng, self.table.params
        self.shortest = int(rng.choice([0, 0, p.largest // 2, p.largest - p.largest // 8]))
        self.rows = [
            (int(rng.choice(self.groups)), int(rng.integers(p.hosts))) for _ in range(max(1, self.traffic.places))
        ]
        self.busy = [int(column) for column in rng.choice(self.columns, 2)]

    def place(self) -> tuple[int, int]:
        """Row that is in use."""
        return self.rows[int(self.rng.integers(len(self.rows)))]

    def column(self) -> int:
        """Linked column."""
        return int(self.rng.choice(self.busy if self.rng.random() < 0.7 else self.columns))

    def time(self, row: int, column: int) -> int:
        """Time near the estimate, or any."""
        p, kind = self.table.params, self.rng.random()
        if kind < 0.5:
            spread = max(2, (p.largest + 1) >> int(self.rng.integers(1, p.value_bits)))
            near = self.table.newest[row][column] + int(self.rng.integers(-spread, spread))
            return min(max(near, 0), p.no_link)
        return int(self.rng.integers(self.shortest, p.no_link + 1))

    def query(self) -> Query | None:
        """Query of any kind, or none."""
        rng, p = self.rng, self.table.params
        if rng.random() >= self.traffic.queries:
            return None
        kind = rng.random()
        return Query(
            *self.place(), self.column(), self.column(), first=bool(kind < 0.5), second=bool(0.5 <= kind < 0.85),
            explore=bool(rng.random() < 0.1), elapsed=int(rng.integers(0, p.no_link + 1) >> int(rng.integers(0, 6))),
        )  # fmt: skip

    def update(self) -> Update | None:
        """Update, seldom of a port without a link, or none."""
        rng, p = self.rng, self.table.params
        if rng.random() >= self.traffic.updates:
            return None
        group, host = self.place()
        column = self.column() if rng.random() < 0.95 else int(rng.integers(p.columns))
        time = self.time(self.table.row(group, host), column)
        return Update(group, host, column, time, int(rng.integers(0, 1 << RATE_BITS)))


def q_table_replay(params: QTableParams, traffic: QTableTraffic) -> Replay:
    """Record queries and updates of a random router, and what the golden table does in every cycle."""
    rng = np.random.default_rng(traffic.seed)
    links = random_links(params, rng)
    table = QTable(params, links)
    draw = _Draw(table, traffic, rng)
    group_bits = (params.groups - 1).bit_length()
    link = sum(1 << port for port, group in enumerate(links.groups) if group is not None)
    word = sum((group or 0) << port * group_bits for port, group in enumerate(links.groups))
    words = -(-params.global_ports * group_bits // 64)
    link_groups = [word >> 64 * k & _WORD for k in range(words)]
    driven, expected = [], []
    total = params.rows + traffic.cycles
    for cycle in range(total):
        if cycle % 500 == 0:
            draw.change()
        quiet = cycle >= total - ANSWER_CYCLES - 1
        query, update = (None, None) if quiet else (draw.query(), draw.update())
        asked = query or Query(*draw.place(), draw.column(), draw.column(), True)
        told = update or Update(*draw.place(), draw.column(), 1)
        ready, update_ready, answer = table.cycle(query, update)
        driven.append([
            links.own_group, link, int(query is not None), *asked, int(update is not None), *told[:4],
            *([told.dither] if params.dither else []), *link_groups,
        ])  # fmt: skip
        expected.append([ready, update_ready, answer is not None, *(answer or (0, 0, 0, 0))])
    inputs = (*_INPUTS, *(["upd_dither"] if params.dither else []), *["link_group"] * words)
    return Replay(inputs, _OUTPUTS, as_words(driven), as_words(expected))


def q_table_bench(params: QTableParams, traffic: QTableTraffic) -> Bench:
    """Return a bench of the table; see `q_table_replay`."""
    return Bench("q_table", Hardware(params=params), q_table_replay(params, traffic))
