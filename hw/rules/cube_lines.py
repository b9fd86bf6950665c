"""Lines of a rule cache: cubes with their answers, fully associative, exact LRU."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import Component, In, Out

from hopforge.hw.cache.replacement import Replacement
from hopforge.hw.parts.round_robin import lowest_one, select
from hopforge.model.lookup.rules.rule_cache_params import RuleCacheParams

__all__ = ["CubeLines", "overlaps"]


def overlaps(value: Value, mask: Value, other_value: Value, other_mask: Value) -> Value:
    """Whether two cubes share an address."""
    return ~((value ^ other_value) & mask & other_mask).any()


class CubeLines(Component):
    """Lines, and one operation on them in a cycle: find, fill or remove.

    ``value`` and ``mask`` are the cube of the operation; one comparator a line tells whether they overlap.

    - ``find`` (mask all 1): ``hit``, and then ``match`` and ``output`` of the line, combinational. The line becomes the
      most recent at the end of the cycle.
    - ``fill``: writes a line at the end of the cycle, if no line holds the whole cube. Lines inside the cube go. The
      lowest place that is free is taken, else that of the least recently used line (``evicts``). ``writes`` tells
      that a line is written; both are combinational.
    - ``remove``: lines that overlap go at the end of the cycle; ``all`` (with it): all lines.

    At most one of the three. No two lines share an address: at most one hits. After reset no line is valid.

    Parameters
    ----------
    params : RuleCacheParams
        Of the cache. With policy ``exact`` lines have no masks.

    Attributes
    ----------
    absorbed : Signal
        For proofs: lines inside the cube of a fill.
    """

    find: Signal
    fill: Signal
    remove: Signal
    all: Signal
    value: Signal
    mask: Signal
    fill_match: Signal
    fill_output: Signal
    hit: Signal
    match: Signal
    output: Signal
    writes: Signal
    evicts: Signal

    def __init__(self, params: RuleCacheParams) -> None:
        self.params = p = params
        super().__init__(
            {
                "find": In(1),
                "fill": In(1),
                "remove": In(1),
                "all": In(1),
                "value": In(p.address_bits),
                "mask": In(p.address_bits),
                "fill_match": In(1),
                "fill_output": In(p.output_bits),
                "hit": Out(1),
                "match": Out(1),
                "output": Out(p.output_bits),
                "writes": Out(1),
                "evicts": Out(1),
            }
        )
        lines, width = range(p.entries), p.address_bits
        self.valid = Signal(p.entries)
        self.values = [Signal(width, name=f"value{line}", reset_less=True) for line in lines]
        self.masks: list[Value] = [
            Const(-1, width) if p.policy == "exact" else Signal(width, name=f"mask{line}", reset_less=True)
            for line in lines
        ]
        self.answers = [  # match, above it the output
            Signal(1 + p.output_bits, name=f"answer{line}", reset_less=True) for line in lines
        ]
        self.meets = Signal(p.entries)
        self.absorbed = Signal(p.entries)

    def elaborate(self, platform: object) -> Module:
        """Connect comparators, replacement and lines."""
        m = Module()
        p = self.params
        holds, free, place, touch = (Signal(p.entries, name=name) for name in ("holds", "free", "place", "touch"))
        for line, (value, mask) in enumerate(zip(self.values, self.masks, strict=True)):
            wider = Signal(name=f"wider{line}")  # not longer than the cube of the operation
            m.d.comb += [
                wider.eq(~(mask & ~self.mask).any()),
                self.meets[line].eq(self.valid[line] & overlaps(value, mask, self.value, self.mask)),
                holds[line].eq(self.meets[line] & wider),
                self.absorbed[line].eq(self.meets[line] & ~wider),
            ]
        m.submodules.replacement = replacement = Replacement(policy="lru", ways=p.entries)
        m.d.comb += [
            self.hit.eq(self.find & self.meets.any()),
            Cat(self.match, self.output).eq(select(self.meets, self.answers)),
            self.writes.eq(self.fill & ~holds.any()),
            free.eq(~self.valid | self.absorbed),
            self.evicts.eq(self.writes & ~free.any()),
            place.eq(
                Mux(free.any(), lowest_one(free), replacement.victim) & self.writes.replicate(p.entries),
            ),
            touch.eq(Mux(self.fill, place, self.meets & self.find.replicate(p.entries))),
        ]
        if replacement.state_bits:
            state = Signal(replacement.state_bits)
            m.d.comb += [replacement.state.eq(state), replacement.touch.eq(touch)]
            m.d.sync += state.eq(replacement.next_state)
        gone = (self.remove & self.all).replicate(p.entries) | (self.meets & self.remove.replicate(p.entries))
        replaced = self.absorbed & self.writes.replicate(p.entries)
        m.d.sync += self.valid.eq((self.valid & ~gone & ~replaced) | place)
        for line, answer in enumerate(self.answers):
            with m.If(place[line]):
                m.d.sync += [self.values[line].eq(self.value), answer.eq(Cat(self.fill_match, self.fill_output))]
                if isinstance(self.masks[line], Signal):
                    m.d.sync += self.masks[line].eq(self.mask)
        return m
