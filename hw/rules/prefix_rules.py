"""A TCAM of prefix rules: the longest prefix that matches, and how far its answer may be cached."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import Component, In, Out

from hopforge.hw.parts.round_robin import lowest_one, select
from hopforge.model.lookup.rules.cubes import prefix_mask
from hopforge.model.lookup.rules.rule_cache_params import RuleCacheParams

__all__ = ["PrefixRules", "down_to_first", "prefix_bits"]


def prefix_bits(length: Value, width: int) -> Value:
    """Return the mask of a prefix: its highest `length` bits are 1; all of them for more than `width`."""
    return Cat(length > width - 1 - bit for bit in range(width))


def down_to_first(m: Module, word: Signal) -> Signal:
    """Return 1 for each bit above which ``word`` has no 1: all down to its highest 1, that one among them.

    A tree that shares what it finds out, of logarithmic depth.
    """
    width = len(word)
    seen, span = word, 1  # of the bit and those above it, as far as `span` reaches
    while span < width:
        wider = Signal(width, name=f"{word.name}_{2 * span}")
        m.d.comb += wider.eq(seen | (seen >> span))
        seen, span = wider, 2 * span
    found = Signal(width, name=f"{word.name}_first")
    m.d.comb += found.eq(~(seen >> 1))
    return found


def _or_tree(words: Sequence[Signal], width: int) -> Value:
    return Cat(Cat(word[bit] for word in words).any() for bit in range(width))


class PrefixRules(Component):
    """Rows (value, mask of a prefix, output) and the three cycles of a search.

    What is searched for in cycle t (``address``) has its result in cycle t+2: ``match``, ``output`` and ``cube``, the
    mask of what may be cached with it. One search a cycle. The longest prefix that matches answers, of equal ones that
    in the lowest row. Rows need no order. After reset no row holds a rule.

    A search finds the rows as the writes of earlier cycles left them. ``write`` in cycle t changes a row; the answer
    that belongs to it comes a cycle later (``late_*``). ``old_*`` shows the row ``read_row``, combinational; a row
    written in cycle t shows from t+1 on.

    *cube* of policy ``mep``: every row adds the bits of its mask down to the highest one in which it differs from the
    address. Those of the rows that match are their masks, and the longest is among them. So the OR over all rows is the
    shortest prefix of the address that is not shorter than the answering rule and that no longer rule shares.
    With lines in sets no cube is wider than the hashed bits.

    Parameters
    ----------
    params : RuleCacheParams
        Of the cache.

    Attributes
    ----------
    longest, reach : Signal
        For proofs: masks of the rows that match, and what all rows add; a cycle after ``address``.
    """

    address: Signal
    match: Signal
    output: Signal
    cube: Signal
    write: Signal
    write_row: Signal
    write_valid: Signal
    write_value: Signal
    write_mask: Signal
    late_write: Signal
    late_row: Signal
    late_output: Signal
    read_row: Signal
    old_valid: Signal
    old_value: Signal
    old_mask: Signal

    def __init__(self, params: RuleCacheParams) -> None:
        self.params = p = params
        width = p.address_bits
        super().__init__(
            {
                "address": In(width),
                "match": Out(1),
                "output": Out(p.output_bits),
                "cube": Out(width),
                "write": In(1),
                "write_row": In(p.row_bits),
                "write_valid": In(1),
                "write_value": In(width),
                "write_mask": In(width),
                "late_write": In(1),
                "late_row": In(p.row_bits),
                "late_output": In(p.output_bits),
                "read_row": In(p.row_bits),
                "old_valid": Out(1),
                "old_value": Out(width),
                "old_mask": Out(width),
            }
        )
        self.row_valid = Signal(p.rows)
        self.values = [Signal(width, name=f"value{row}", reset_less=True) for row in range(p.rows)]
        self.masks = [Signal(width, name=f"mask{row}", reset_less=True) for row in range(p.rows)]
        self.outputs = [Signal(p.output_bits, name=f"output{row}", reset_less=True) for row in range(p.rows)]
        self.matches = Signal(p.rows)
        self.longest = Signal(width)
        self.reach = Signal(width)
        self.is_longest = Signal(p.rows)
        self.winner = Signal(p.rows)

    def elaborate(self, platform: object) -> Module:
        """Build rows, comparators and the two steps of the choice."""
        m = Module()
        self._rows(m)
        self._compare(m)
        self._choose(m)
        return m

    def _decoded(self, number: Value, enable: Value) -> Value:
        return Cat(enable & (number == row) for row in range(self.params.rows))

    def _rows(self, m: Module) -> None:
        write, late, read = (Signal(self.params.rows, name=name) for name in ("written", "late_written", "read"))
        m.d.comb += [
            write.eq(self._decoded(self.write_row, self.write)),
            late.eq(self._decoded(self.late_row, self.late_write)),
            read.eq(self._decoded(self.read_row, Const(1, 1))),
            self.old_valid.eq((read & self.row_valid).any()),
            self.old_value.eq(select(read, self.values)),
            self.old_mask.eq(select(read, self.masks)),
        ]
        for row in range(self.params.rows):
            with m.If(write[row]):
                m.d.sync += [
                    self.row_valid[row].eq(self.write_valid),
                    Cat(self.values[row], self.masks[row]).eq(Cat(self.write_value, self.write_mask)),
                ]
            with m.If(late[row]):
                m.d.sync += self.outputs[row].eq(self.late_output)

    def _compare(self, m: Module) -> None:
        """First cycle: which rows match, and what each adds."""
        p, width = self.params, self.params.address_bits
        matches = Signal(p.rows, name="row_matches")
        masks, reaches = [], []
        for row, (value, mask) in enumerate(zip(self.values, self.masks, strict=True)):
            differs = Signal(width, name=f"differs{row}")
            m.d.comb += [
                differs.eq((value ^ self.address) & mask),
                matches[row].eq(self.row_valid[row] & ~differs.any()),
            ]
            masks.append(Signal(width, name=f"own{row}"))
            m.d.comb += masks[-1].eq(mask & matches[row].replicate(width))
            if p.policy != "exact":
                reaches.append(Signal(width, name=f"reach{row}"))
                m.d.comb += reaches[-1].eq(mask & down_to_first(m, differs) & self.row_valid[row].replicate(width))
        m.d.sync += [self.matches.eq(matches), self.longest.eq(_or_tree(masks, width))]
        if reaches:
            m.d.sync += self.reach.eq(_or_tree(reaches, width))

    def _choose(self, m: Module) -> None:
        """Second cycle: the row that wins. Third cycle: its output."""
        p, width = self.params, self.params.address_bits
        winner = Signal(p.rows, name="winning")
        match, cube = Signal(name="any_match"), Signal(width, name="whole_cube")
        for row, mask in enumerate(self.masks):
            m.d.comb += self.is_longest[row].eq(~(self.longest & ~mask).any())
        m.d.comb += winner.eq(lowest_one(self.matches & self.is_longest))
        if p.policy == "mep":
            m.d.comb += cube.eq(self.longest | self.reach)
        elif p.policy == "host":
            inside = (self.reach & ~self.longest).any()  # a longer rule lies in the one that answers
            m.d.comb += cube.eq(Mux(inside, Const(-1, width), self.longest))
        else:
            m.d.comb += cube.eq(Const(-1, width))
        whole: Value = cube | Const(prefix_mask(p.hashed_bits, width), width) if p.hashed_bits else cube
        m.d.sync += [self.winner.eq(winner), match.eq(self.matches.any()), self.cube.eq(whole)]
        m.d.comb += [self.match.eq(match), self.output.eq(select(self.winner, self.outputs))]
