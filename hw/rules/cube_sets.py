"""Lines of a rule cache in sets: cubes with their answers in memories, exact LRU in each set."""

from collections.abc import Callable

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import Component, In, Out

from hopforge.hw.cache.replacement import Replacement, state_bits
from hopforge.hw.parts.round_robin import lowest_one, select
from hopforge.hw.parts.sram import Sram
from hopforge.hw.rules.cube_lines import overlaps
from hopforge.hw.rules.prefix_rules import prefix_bits
from hopforge.model.lookup.rules.rule_cache_params import RuleCacheParams

__all__ = ["CubeSets"]


def _length(mask: Value, width: int) -> Value:
    """Return the number of bits of a prefix, of its mask; at least one bit is 1."""
    bits: list[list[Value]] = [[] for _ in range(width.bit_length())]
    for bit in range(width):
        last = mask[bit] & ~mask[bit - 1] if bit else mask[bit]
        for place, found in enumerate(bits):
            if (width - bit) >> place & 1:
                found.append(last)
    return Cat(Cat(found).any() for found in bits)


class CubeSets(Component):
    """Lines in sets, and one operation on one set in a cycle: find, fill or remove.

    A set is read in the cycle before its operation (``read``, ``read_index``), and written at the end of that of the
    operation. What is written while it is read is bypassed. The operations are those of `CubeLines`; ``remove`` is of
    one set, and there is no ``all``. All addresses of a cube belong to one set.

    Contents are anything at first: each set must see a ``remove`` with mask 0 before it may answer. Until then its
    hits are not to be taken.

    Parameters
    ----------
    params : RuleCacheParams
        Of the cache, with sets. With policy ``exact`` lines have no lengths.
    memory : callable
        Makes a memory from ``depth`` and ``width_bits``: one a way, and one for the LRU.

    Attributes
    ----------
    index : Signal
        Set of the operation.
    row_values, row_masks, row_answers, row_valid : list of Signal, Signal
        For proofs: lines of this set.
    """

    read: Signal
    read_index: Signal
    index: Signal
    find: Signal
    fill: Signal
    remove: Signal
    value: Signal
    mask: Signal
    fill_match: Signal
    fill_output: Signal
    hit: Signal
    match: Signal
    output: Signal
    writes: Signal
    evicts: Signal

    def __init__(self, params: RuleCacheParams, *, memory: Callable[..., Sram] = Sram) -> None:
        if params.ways is None:
            raise ValueError("ways must be given for lines in sets")
        self.params, self.ways = params, params.ways
        p, width = params, params.address_bits
        row_bits = (p.sets - 1).bit_length()
        super().__init__(
            {
                "read": In(1),
                "read_index": In(row_bits),
                "index": Out(row_bits),
                "find": In(1),
                "fill": In(1),
                "remove": In(1),
                "value": In(width),
                "mask": In(width),
                "fill_match": In(1),
                "fill_output": In(p.output_bits),
                "hit": Out(1),
                "match": Out(1),
                "output": Out(p.output_bits),
                "writes": Out(1),
                "evicts": Out(1),
            }
        )
        self.length_bits = 0 if p.policy == "exact" else p.length_bits
        self.body_bits = width + self.length_bits + 1 + p.output_bits
        self.memories = [memory(depth=p.sets, width_bits=self.body_bits + 1) for _ in range(self.ways)]
        bits = state_bits("lru", self.ways)
        self.lru_memory = memory(depth=p.sets, width_bits=bits) if bits else None
        ways = range(self.ways)
        self.row_values = [Signal(width, name=f"value{way}") for way in ways]
        self.row_masks = [Signal(width, name=f"mask{way}") for way in ways]
        self.row_answers = [Signal(1 + p.output_bits, name=f"answer{way}") for way in ways]
        self.row_valid = Signal(self.ways)
        self.meets = Signal(self.ways)
        self.bypassed = Signal(self.ways)

    def elaborate(self, platform: object) -> Module:
        """Connect memories, comparators and replacement."""
        m = Module()
        p, ways = self.params, self.ways
        same_row, body = Signal(), Signal(self.body_bits)
        m.d.comb += same_row.eq(self.read & (self.read_index == self.index))
        with m.If(self.read):
            m.d.sync += self.index.eq(self.read_index)
        length = [_length(self.mask, p.address_bits)] if self.length_bits else []
        m.d.comb += body.eq(Cat(self.value, *length, self.fill_match, self.fill_output))
        holds, absorbed, free, place, touch, changes = (
            Signal(ways, name=name) for name in ("holds", "absorbed", "free", "place", "touch", "changes")
        )
        self._read(m, same_row, body, place, changes)
        for way, (value, mask) in enumerate(zip(self.row_values, self.row_masks, strict=True)):
            wider = Signal(name=f"wider{way}")  # not longer than the cube of the operation
            m.d.comb += [
                wider.eq(~(mask & ~self.mask).any()),
                self.meets[way].eq(self.row_valid[way] & overlaps(value, mask, self.value, self.mask)),
                holds[way].eq(self.meets[way] & wider),
                absorbed[way].eq(self.meets[way] & ~wider),
            ]
        replacement = Replacement(policy="lru", ways=ways)
        m.submodules.replacement = replacement
        m.d.comb += [
            self.hit.eq(self.find & self.meets.any()),
            Cat(self.match, self.output).eq(select(self.meets, self.row_answers)),
            self.writes.eq(self.fill & ~holds.any()),
            free.eq(~self.row_valid | absorbed),
            self.evicts.eq(self.writes & ~free.any()),
            place.eq(Mux(free.any(), lowest_one(free), replacement.victim) & self.writes.replicate(ways)),
            touch.eq(Mux(self.fill, place, self.meets & self.find.replicate(ways))),
            changes.eq(
                place | (absorbed & self.writes.replicate(ways)) | (self.meets & self.remove.replicate(ways))
            ),
        ]
        self._replace(m, replacement, same_row, touch)
        return m

    def _access(self, m: Module, memory: Sram) -> None:
        m.d.comb += [memory.r_en.eq(self.read), memory.r_addr.eq(self.read_index), memory.w_addr.eq(self.index)]

    def _read(self, m: Module, same_row: Value, body: Value, place: Value, changes: Value) -> None:
        """Take the lines of the set from the memories, or what was written while they were read."""
        width = self.params.address_bits
        bypass_valid, bypass = (
            Signal(bits, name=name)
            for bits, name in ((self.ways, "bypass_valid"), (self.body_bits, "bypass"))
        )
        with m.If(self.read):
            m.d.sync += [
                self.bypassed.eq(changes & same_row.replicate(self.ways)), bypass_valid.eq(place), bypass.eq(body),
            ]  # fmt: skip
        for way, memory in enumerate(self.memories):
            m.submodules[f"way{way}"] = memory
            self._access(m, memory)
            line = Signal(self.body_bits + 1, name=f"line{way}")
            m.d.comb += [
                memory.w_en.eq(changes[way]),
                memory.w_data.eq(Cat(body, place[way])),
                line.eq(Mux(self.bypassed[way], Cat(bypass, bypass_valid[way]), memory.r_data)),
                self.row_values[way].eq(line[:width]),
                self.row_answers[way].eq(line[width + self.length_bits : -1]),
                self.row_valid[way].eq(line[-1]),
                self.row_masks[way].eq(
                    prefix_bits(line[width : width + self.length_bits], width) if self.length_bits else -1
                ),
            ]

    def _replace(self, m: Module, replacement: Replacement, same_row: Value, touch: Value) -> None:
        """Keep the LRU of each set; of anything at first it is exact once all lines were touched."""
        if self.lru_memory is None:
            return
        m.submodules.lru = memory = self.lru_memory
        self._access(m, memory)
        bypassed, bypass = Signal(name="lru_bypassed"), Signal(memory.width_bits, name="lru_bypass")
        with m.If(self.read):
            m.d.sync += [bypassed.eq(same_row & touch.any()), bypass.eq(replacement.next_state)]
        m.d.comb += [
            memory.w_en.eq(touch.any()),
            memory.w_data.eq(replacement.next_state),
            replacement.state.eq(Mux(bypassed, bypass, memory.r_data)),
            replacement.touch.eq(touch),
        ]
