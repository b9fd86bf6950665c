"""The table of Q-adaptive inside a switch: estimated times to other groups, decisions by them, and their learning."""

from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.parts.round_robin import select
from hopforge.hw.parts.sram import Sram
from hopforge.model.numbers.q_rule import RATE_BITS
from hopforge.model.router.q_table import QTableParams

__all__ = ["QTable", "least_of", "times"]


def times(value: Value, constant: int) -> Value:
    """Product with a constant, as few shifted additions and subtractions as its canonical signed digits.

    Parameters
    ----------
    value : Value
        Unsigned or signed.
    constant : int
        At least 0.
    """
    total: Value | None = None
    place = 0
    while constant:
        digit = 2 - constant % 4 if constant % 2 else 0
        if digit:
            term = value << place
            signed_term = term if digit > 0 else -term
            total = signed_term if total is None else total + signed_term
        constant, place = (constant - digit) // 2, place + 1
    return Const(0, 1) if total is None else total


class Least(NamedTuple):
    """Least of some words, and its number as one bit of a word for each."""

    value: Value
    chosen: Value


def least_of(m: Module, words: list[Value], name: str) -> Least:
    """Return the least word and, of equal ones, the first: a tree of comparisons.

    Parameters
    ----------
    m : Module
        Receives the signals.
    words : list of Value
        At least one, of equal widths.
    name : str
        Stem of the signals' names.
    """
    level = [Least(word, Const(1, 1)) for word in words]
    depth = 0
    while len(level) > 1:
        following = []
        for number in range(0, len(level) - 1, 2):
            first, second = level[number], level[number + 1]
            less = Signal(name=f"{name}_less_{depth}_{number // 2}")
            value = Signal(len(first.value), name=f"{name}_{depth}_{number // 2}")
            m.d.comb += [less.eq(second.value < first.value), value.eq(Mux(less, second.value, first.value))]
            chosen = Cat(
                first.chosen & ~less.replicate(len(first.chosen)), second.chosen & less.replicate(len(second.chosen))
            )
            following.append(Least(value, chosen))
        level = following + level[len(level) & ~1 :]
        depth += 1
    return level[0]


class QTable(wiring.Component):
    """Two-level table of Q-adaptive: a row for each other group and source host, a column for each port to routers.

    *Initialisation*: in the cycles after reset (as many as rows) every estimate becomes that without load, by
    ``own_group``, ``link`` and ``link_group``, which must not change after reset; until then nothing is ready. A port
    without a link holds all ones and is never the best.

    *Query*, accepted when ``req_valid`` and ``req_ready`` are high, one per cycle; the answer (``resp_*``) comes
    exactly 4 cycles later and can't be held up. ``req_first``: the first of the columns with the least estimate is
    taken unless what it saves is less than the share ``q_thld1`` of the estimate of ``req_minimal``. ``req_second``:
    the same with ``req_drawn`` and ``q_thld2``. With one of them and ``req_explore``: ``req_drawn``. Else:
    ``req_minimal``. ``resp_report`` is the least estimate of the row + ``req_elapsed``, at most the largest estimate:
    what the router upstream is told.

    *Update*, accepted when ``upd_valid`` and ``upd_ready`` are high, one per cycle (with ``shared_read`` only without
    a query): the estimate of ``upd_column`` moves towards ``upd_time`` by the share alpha of the difference if that is
    less, else by beta, rounded to the nearest (with ``dither``: up where the fraction in 1024ths and ``upd_dither`` are
    1024 or more together). An update of a port without a link is ignored. Updates follow each other exactly, however
    close; a query sees all updates accepted at least 3 cycles before it, whatever a memory does when it is read and
    written at once.

    Parameters
    ----------
    params : QTableParams
        Sizes, rates, thresholds.
    """

    own_group: Signal
    link: Signal
    link_group: Signal
    req_valid: Signal
    req_ready: Signal
    req_group: Signal
    req_host: Signal
    req_minimal: Signal
    req_drawn: Signal
    req_first: Signal
    req_second: Signal
    req_explore: Signal
    req_elapsed: Signal
    resp_valid: Signal
    resp_column: Signal
    resp_detour: Signal
    resp_least: Signal
    resp_report: Signal
    upd_valid: Signal
    upd_ready: Signal
    upd_group: Signal
    upd_host: Signal
    upd_column: Signal
    upd_time: Signal
    upd_dither: Signal

    def __init__(self, *, params: QTableParams):
        self.params = p = params
        self.group_bits = ceil_log2(p.groups)
        self.host_bits = max(1, ceil_log2(p.hosts))
        self.column_bits = max(1, ceil_log2(p.columns))
        self.row_bits = max(1, ceil_log2(p.rows))
        ports = {
            "own_group": In(self.group_bits),
            "link": In(p.global_ports),
            "link_group": In(p.global_ports * self.group_bits),
            "req_valid": In(1),
            "req_ready": Out(1),
            "req_group": In(self.group_bits),
            "req_host": In(self.host_bits),
            "req_minimal": In(self.column_bits),
            "req_drawn": In(self.column_bits),
            "req_first": In(1),
            "req_second": In(1),
            "req_explore": In(1),
            "req_elapsed": In(p.value_bits),
            "resp_valid": Out(1),
            "resp_column": Out(self.column_bits),
            "resp_detour": Out(1),
            "resp_least": Out(p.value_bits),
            "resp_report": Out(p.value_bits),
            "upd_valid": In(1),
            "upd_ready": Out(1),
            "upd_group": In(self.group_bits),
            "upd_host": In(self.host_bits),
            "upd_column": In(self.column_bits),
            "upd_time": In(p.value_bits),
        }
        if p.dither:
            ports["upd_dither"] = In(RATE_BITS)
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        """Build initialisation, the pipeline of queries and that of updates around the memories."""
        m = Module()
        p = self.params
        self._write = Signal(p.columns, name="write")
        self._write_row = Signal(self.row_bits, name="write_row")
        self._write_data = Signal(p.columns * p.value_bits, name="write_data")
        ready = self._initialise(m)
        query = Signal()
        m.d.comb += [
            query.eq(self.req_valid & ready),
            self.req_ready.eq(ready),
            self.upd_ready.eq(ready & ~self.req_valid if p.shared_read else ready),
        ]
        # stage 1: the row is known; the memories read it
        query_1, query_row = self._row(m, "query", query, self.req_group, self.req_host)
        linked = Cat(Const(-1, p.local_ports), self.link).bit_select(self.upd_column, 1)
        accepted = self.upd_valid & self.upd_ready & linked
        update_1, update_row = self._row(m, "update", accepted, self.upd_group, self.upd_host)
        if p.shared_read:
            row = Mux(query_1, query_row, update_row)
            for_query = for_update = self._memory(m, "table", query_1 | update_1, row)
        else:
            for_query = self._memory(m, "decisions", query_1, query_row)
            for_update = self._memory(m, "updates", update_1, update_row)
        self._answer(m, query_1, for_query)
        self._learn(m, update_1, update_row, for_update)
        return m

    def _after(self, m: Module, cycles: int, value: Value, name: str) -> Value:
        """Value some cycles later."""
        for number in range(cycles):
            held = Signal.like(Value.cast(value), name=f"{name}_{number + 1}", reset_less=name != "valid")
            m.d.sync += held.eq(value)
            value = held
        return value

    def _row(self, m: Module, name: str, valid: Value, group: Value, host: Value) -> tuple[Signal, Signal]:
        """Return whether a row is asked for, and its number, a cycle later: the own group has none."""
        valid_1 = Signal(name=f"{name}_valid_1")
        row = Signal(self.row_bits, name=f"{name}_row_1", reset_less=True)
        other = Signal(self.group_bits, name=f"{name}_group")
        m.d.comb += other.eq(group - (group > self.own_group))
        m.d.sync += [valid_1.eq(valid), row.eq(times(other, self.params.hosts) + host)]
        return valid_1, row

    def _initialise(self, m: Module) -> Signal:
        """Write every row once after reset; returns whether that is done."""
        p = self.params
        ready, row = Signal(name="ready"), Signal(self.row_bits, name="first_row")
        group, host = Signal(self.group_bits, name="first_group"), Signal(self.host_bits, name="first_host")
        actual = Signal(self.group_bits, name="first_actual")
        m.d.comb += actual.eq(group + (group >= self.own_group))
        with m.If(~ready):
            m.d.sync += [row.eq(row + 1), ready.eq(row == p.rows - 1), host.eq(host + 1)]
            with m.If(host == p.hosts - 1):
                m.d.sync += [host.eq(0), group.eq(group + 1)]
        first: list[Value] = [Const(p.far, p.value_bits)] * p.local_ports
        for port in range(p.global_ports):
            there = self.link_group.word_select(port, self.group_bits)
            direct = Mux(there == actual, Const(p.near, p.value_bits), Const(p.far, p.value_bits))
            first.append(Mux(self.link[port], direct, Const(p.no_link, p.value_bits)))
        with m.If(~ready):
            m.d.comb += [self._write.eq(~0), self._write_row.eq(row), self._write_data.eq(Cat(first))]
        return ready

    def _memory(self, m: Module, name: str, enable: Value, row: Value) -> list[Value]:
        """Words of a row, a cycle after it is asked for; those that are written at that moment are the new ones."""
        p = self.params
        m.submodules[name] = memory = Sram(depth=p.rows, width_bits=p.columns * p.value_bits, bit_write=True)
        m.d.comb += [
            memory.r_en.eq(enable),
            memory.r_addr.eq(row),
            memory.w_en.eq(Cat(self._write[n].replicate(p.value_bits) for n in range(p.columns))),
            memory.w_addr.eq(self._write_row),
            memory.w_data.eq(self._write_data),
        ]
        met = Signal(p.columns, name=f"{name}_met", reset_less=True)
        new = Signal(p.value_bits, name=f"{name}_new", reset_less=True)
        m.d.sync += [
            met.eq(self._write & (row == self._write_row).replicate(p.columns)),
            new.eq(self._write_data[: p.value_bits]),  # all columns get the same word
        ]
        return [Mux(met[column], new, memory.r_data.word_select(column, p.value_bits)) for column in range(p.columns)]

    def _answer(self, m: Module, valid_1: Value, words: list[Value]) -> None:
        """Stage 2: the least word of the row, the minimal and the drawn one; stage 3: comparison."""
        p = self.params
        asked = {
            name: self._after(m, 2, getattr(self, f"req_{name}"), name)
            for name in ("minimal", "drawn", "first", "second", "explore", "elapsed")
        }
        valid_3 = self._after(m, 2, valid_1, "valid")
        least = least_of(m, words, "least")
        numbers = range(p.columns)
        best = Cat(Cat(least.chosen[n] for n in numbers if n >> bit & 1).any() for bit in range(self.column_bits))
        named = [select(Cat(asked[name] == n for n in numbers), words) for name in ("minimal", "drawn")]
        minimal, drawn, first, second, explore = (
            self._after(m, 1, asked[name], f"{name}_3") for name in ("minimal", "drawn", "first", "second", "explore")
        )
        elapsed = self._after(m, 1, asked["elapsed"], "elapsed_3")
        least_3, best_3 = self._after(m, 1, least.value, "least_3"), self._after(m, 1, best, "best_3")
        minimal_time, drawn_time = (
            self._after(m, 1, word, f"{name}_time") for word, name in zip(named, ("minimal", "drawn"), strict=True)
        )
        other, other_time = Mux(first, best_3, drawn), Mux(first, least_3, drawn_time)
        share = Mux(first, times(minimal_time, p.q_thld1), times(minimal_time, p.q_thld2))
        keeps = Signal()
        column = Signal(self.column_bits)
        total = Signal(p.value_bits + 1)
        m.d.comb += [
            keeps.eq((minimal_time << RATE_BITS) < share + (other_time << RATE_BITS)),
            column.eq(Mux(~(first | second), minimal, Mux(explore, drawn, Mux(keeps, minimal, other)))),
            total.eq(least_3 + elapsed),
        ]
        m.d.sync += [
            self.resp_valid.eq(valid_3),
            self.resp_column.eq(column),
            self.resp_detour.eq(column != minimal),
            self.resp_least.eq(least_3),
            self.resp_report.eq(Mux(total > p.largest, p.largest, total)),
        ]

    def _learn(self, m: Module, valid_1: Value, row_1: Value, words: list[Value]) -> None:
        """Stage 2: the old estimate; stage 3: the new one; stage 4: it is written."""
        p = self.params
        numbers = range(p.columns)
        column_1 = Signal(self.column_bits, reset_less=True)
        time_1 = Signal(p.value_bits, name="time", reset_less=True)
        m.d.sync += [column_1.eq(self.upd_column), time_1.eq(Mux(self.upd_time.all(), p.largest, self.upd_time))]
        valid_2, valid_3, valid_4 = (Signal(name=f"learn_valid_{stage}") for stage in (2, 3, 4))
        m.d.sync += [valid_2.eq(valid_1), valid_3.eq(valid_2), valid_4.eq(valid_3)]
        place_2, place_3, place_4 = (
            Signal(self.row_bits + self.column_bits, name=f"place_{stage}", reset_less=True) for stage in (2, 3, 4)
        )
        m.d.sync += [place_2.eq(Cat(column_1, row_1)), place_3.eq(place_2), place_4.eq(place_3)]
        time_3 = self._after(m, 2, time_1, "time")
        old_3, new_4 = Signal(p.value_bits, reset_less=True), Signal(p.value_bits, reset_less=True)
        # the update two before this one is being written; the one before is being computed, and taken a cycle later
        previous = Signal(reset_less=True)
        m.d.sync += [
            old_3.eq(
                Mux(
                    valid_4 & (place_2 == place_4),
                    new_4,
                    select(Cat(place_2[: self.column_bits] == n for n in numbers), words),
                )
            ),
            previous.eq(valid_3 & (place_2 == place_3)),
        ]
        old = Signal(p.value_bits)
        change = Signal(signed(p.value_bits + 1))
        m.d.comb += [old.eq(Mux(previous, new_4, old_3)), change.eq(time_3 - old)]
        shift = self._after(m, 3, self.upd_dither, "dither") if p.dither else Const(1 << RATE_BITS - 1, RATE_BITS)
        moved = Signal(signed(p.value_bits + RATE_BITS + 2))
        m.d.comb += moved.eq(Mux(change < 0, times(change, p.alpha), times(change, p.beta)) + shift)
        m.d.sync += new_4.eq(old + (moved >> RATE_BITS))
        with m.If(valid_4):
            m.d.comb += [
                self._write.eq(Cat(place_4[: self.column_bits] == n for n in numbers)),
                self._write_row.eq(place_4[self.column_bits :]),
                self._write_data.eq(Cat(new_4 for _ in numbers)),
            ]
