"""Parallel tag compare of all ways and selection of the output of the one that matches."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class TagSelect(wiring.Component):
    """Compare the tags of all ways with a key; AND-OR select the output of the match.

    Combinational. At most one way may match (the cache never holds a key twice), so that the select needs no priority:
    ``output`` is 0 without a match.

    Parameters
    ----------
    ways : int
        Ways compared at the same time.
    tag_bits : int
        Bits compared.
    output_bits : int
        Bits selected.

    Raises
    ------
    ValueError
        A parameter below 1.
    """

    key: Signal
    tags: Signal
    live: Signal
    outputs: Signal
    match: Signal
    hit: Signal
    output: Signal

    def __init__(self, *, ways: int, tag_bits: int, output_bits: int):
        for name, value in (("ways", ways), ("tag_bits", tag_bits), ("output_bits", output_bits)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        self.ways = ways
        self.tag_bits = tag_bits
        self.output_bits = output_bits
        super().__init__(
            {
                "key": In(tag_bits),
                "tags": In(ways * tag_bits),
                "live": In(ways),
                "outputs": In(ways * output_bits),
                "match": Out(ways),
                "hit": Out(1),
                "output": Out(output_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build one comparator per way and an AND-OR per output bit."""
        m = Module()
        for way in range(self.ways):
            tag = self.tags.word_select(way, self.tag_bits)
            m.d.comb += self.match[way].eq(self.live[way] & (tag == self.key))
        m.d.comb += self.hit.eq(self.match.any())
        for bit in range(self.output_bits):
            column = Cat(self.outputs[way * self.output_bits + bit] for way in range(self.ways))
            m.d.comb += self.output[bit].eq((column & self.match).any())
        return m
