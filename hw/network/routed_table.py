"""Table of routed packets: entries in order of time, found by label, the newest first."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.parts.and_or import and_or
from hopforge.hw.parts.arbiter import prefix_or

__all__ = ["RoutedTable"]


class RoutedTable(Component):
    """Takes an entry for each head in a cycle, finds one, and drops what is too old (docs/definitions/service-host.md).

    All answers in the cycle of the question: `found_port`, `found_note` and `found_time` mean something while ``found``
    is high. An entry that is made in a cycle is found in it. Reset: empty; entries have no reset.

    Parameters
    ----------
    depth : int
        Entries.
    heads : int
        Ports by which heads come.
    label_bits, note_bits, time_bits : int
        Of an entry.
    age_limit : int or None
        Cycles; an older entry goes.

    Raises
    ------
    ValueError
        A size below its limit, or times that are too short for the age limit.
    """

    now: Signal
    enter: Signal
    labels: Signal
    notes: Signal
    find: Signal
    find_label: Signal
    found: Signal
    found_port: Signal
    found_note: Signal
    found_time: Signal
    entered: Signal
    refused: Signal
    expired: Signal

    def __init__(
        self, *, depth: int, heads: int, label_bits: int, note_bits: int, time_bits: int, age_limit: int | None
    ) -> None:
        for name, value in (("table", depth), ("ports", heads), ("label_bits", label_bits), ("time_bits", time_bits)):
            if value < 1:
                raise ValueError(f"{name} must be 1 or more, not {value}")
        if age_limit is not None and 1 << time_bits <= age_limit + 1:
            raise ValueError(f"time_bits must count beyond age_limit_cycles + 1 = {age_limit + 1}, not {time_bits}")
        self.depth, self.heads, self.age_limit = depth, heads, age_limit
        self.label_bits, self.note_bits, self.time_bits = label_bits, note_bits, time_bits
        self.port_bits = max(1, ceil_log2(heads))
        number = ceil_log2(heads + 1)
        super().__init__({
            "now": In(time_bits), "enter": In(heads), "labels": In(heads * label_bits),
            "notes": In(heads * note_bits), "find": In(1), "find_label": In(label_bits),
            "found": Out(1), "found_port": Out(self.port_bits), "found_note": Out(note_bits),
            "found_time": Out(time_bits), "entered": Out(number), "refused": Out(number), "expired": Out(number),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        """Build the places: age and labels are compared with what stands there, then everything moves down."""
        m = Module()
        fill = Signal(range(self.depth + 1))
        size = self.label_bits + self.port_bits + self.note_bits + self.time_bits
        places = [Signal(size, name=f"entry{k}", reset_less=True) for k in range(self.depth)]
        m.d.comb += self.expired.eq(self._too_old(places, fill))
        left = Signal.like(fill)
        m.d.comb += left.eq(fill - self.expired)
        entered = self._entered(m, left)
        kept = [Signal(size, name=f"kept{k}") for k in range(self.depth)]
        for k in range(self.depth):
            moved = places[k]
            for gone in range(1, self.heads + 1 if self.age_limit is not None else 1):
                if k + gone < self.depth:
                    moved = Mux(self.expired == gone, places[k + gone], moved)
            for head, (valid, place, entry) in enumerate(entered):  # whole words: a select of bits is 50 times the text
                here = Signal(name=f"here{k}_{head}")
                m.d.comb += here.eq(valid & (place == k))
                moved = Mux(here, entry, moved)
            m.d.comb += kept[k].eq(moved)
        total = Signal.like(fill)
        m.d.comb += [
            self.entered.eq(sum((valid for valid, *_ in entered), Const(0, 1))),
            self.refused.eq(sum(iter(self.enter), Const(0, 1)) - self.entered),
            total.eq(left + self.entered),
        ]
        above = self._find(m, kept, total)
        for k in range(self.depth):
            m.d.sync += places[k].eq(Mux(above[k], kept[k + 1], kept[k]) if k + 1 < self.depth else kept[k])
        m.d.sync += fill.eq(total - self.found)
        return m

    def _too_old(self, places: list[Signal], fill: Signal) -> Value:
        """Return how many entries are a cycle too old: those that came together, at the lowest places."""
        if self.age_limit is None:
            return Const(0, 1)
        edge = (self.now - (self.age_limit + 1))[: self.time_bits]
        lowest = places[: self.heads]
        return sum(((k < fill) & (entry[-self.time_bits :] == edge) for k, entry in enumerate(lowest)), Const(0, 1))

    def _entered(self, m: Module, left: Signal) -> list[tuple[Value, Value, Value]]:
        """For each head: whether it gets an entry, its place, and the entry."""
        found: list[tuple[Value, Value, Value]] = []
        for head in range(self.heads):
            place = Signal(range(self.depth + self.heads + 1), name=f"place{head}")
            before = sum(self.enter[:head], Const(0, 1))
            m.d.comb += place.eq(left + before)
            entry = Cat(
                self.labels.word_select(head, self.label_bits), Const(head, self.port_bits),
                self.notes.word_select(head, self.note_bits) if self.note_bits else Const(0, 0), self.now,
            )  # fmt: skip
            found.append((self.enter[head] & (place < self.depth), place, entry))
        return found

    def _find(self, m: Module, kept: list[Signal], total: Signal) -> list[Value]:
        """Find the newest entry of the label; return which places take what stands above them."""
        equal = Signal(self.depth)
        m.d.comb += equal.eq(Cat(
            self.find & (k < total) & (entry[: self.label_bits] == self.find_label) for k, entry in enumerate(kept)
        ))  # fmt: skip
        later = prefix_or(m, Cat(reversed(equal)), name="later")  # from the newest entry down
        newest = [later[self.depth - 1 - k] for k in range(self.depth)]  # it, or one above it, is equal
        chosen = Signal(self.depth)
        m.d.comb += chosen.eq(Cat(equal[k] & ~one for k, one in enumerate([*newest[1:], Const(0, 1)])))
        port, note = self.label_bits, self.label_bits + self.port_bits
        time = note + self.note_bits
        entry = Signal(len(kept[0]), name="found_entry")
        m.d.comb += [
            entry.eq(and_or([(chosen[k], word) for k, word in enumerate(kept)], len(entry))),
            self.found.eq(equal.any()),
            self.found_port.eq(entry[port:note]),
            self.found_note.eq(entry[note:time]),
            self.found_time.eq(entry[time:]),
        ]
        above = prefix_or(m, chosen, name="above")
        return [above[k] for k in range(self.depth)]
