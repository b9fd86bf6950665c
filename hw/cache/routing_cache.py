"""Arrays of one routing cache: lines, replacement state, tag compare, write paths."""

from collections.abc import Callable

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In

from hopforge.hw.cache.arrays import CacheArrays, index_width
from hopforge.hw.cache.replacement import Replacement
from hopforge.hw.cache.tag_select import TagSelect
from hopforge.hw.parts.sram import Sram
from hopforge.model.numbers.code_word import Protection


class RoutingCache(CacheArrays):
    """Set-associative or skewed cache of (key → output), as seen by one operation at a time.

    A line is, from bit 0: the tag (the key, zero-extended to ``tag_bits``), the output, 16 reserved bits (bit 15
    *valid*, the low ``epoch_bits`` the epoch); 12 bytes with the default widths. A line is live when it is valid and
    its epoch equals ``epoch``.

    In the cycle of ``read`` the lines and the replacement state at ``read_index`` are read (a register of a row written
    in that same cycle stands in for the memories, which are not transparent). ``same_row`` says, per way if skewed,
    whether that is the row of ``index``: the caller knows it sooner than a compare here would. From the next cycle on,
    until the next ``read``, the compare side describes them and takes at most one command per cycle, for the ``key``
    and ``index`` that were read:

    - ``lookup``: the caller answers with ``output`` if ``present``; the way is touched.
    - ``fill``: if ``present`` the way is touched, else ``fill_output`` is written to the lowest way that is not live,
      or to the policy's victim, which is touched (``filled``, and ``evicted`` if the victim was live).
    - ``invalidate``: the way that holds the key becomes invalid.
    - ``scrub``: ways that are valid but not live become invalid.

    Latency: one cycle from ``read`` to the compare side; throughput: one operation per cycle; back-pressure: hold
    ``read`` and the commands low. With ``asynchronous`` there are no ``read`` and ``read_index``: the arrays are
    flops, and the compare side describes the row at ``index`` in the same cycle. Reset: the memories wake up with
    nothing valid and keep their contents through a reset.

    Parameters
    ----------
    sets : int
        Rows of every way; a power of two.
    ways : int
        Lines per set.
    policy : {"lru", "plru", "fifo", "random"}
        Replacement policy.
    skewed : bool
        Every way has its own index: ``index`` is the concatenation of one index per way, way 0 lowest.
    key_bits, tag_bits, output_bits, epoch_bits : int
        Widths; ``key_bits`` ≤ ``tag_bits``, ``epoch_bits`` ≤ 15.
    seed : int
        Start of the random policy.
    asynchronous : bool
        Read and compare in the same cycle.
    memory : callable
        Makes an `Sram`; a proof puts an abstraction in its place.
    protection : {"parity", "secded"}, optional
        Lines have check bits above the reserved bits. A line that cannot be corrected is not live, and every command
        but ``fill`` makes it invalid; ``lookup`` writes a corrected one back. ``found_wrong`` and ``found_repaired``
        tell of them in the cycle of the command.

    Raises
    ------
    ValueError
        Sets no power of two, a width below 1 or too large, a policy that does not fit, skewed with another policy
        than random.
    """

    same_row: Signal

    def __init__(
        self,
        *,
        sets: int,
        ways: int,
        policy: str,
        skewed: bool,
        key_bits: int,
        tag_bits: int,
        output_bits: int,
        epoch_bits: int,
        seed: int = 0xACE1,
        asynchronous: bool = False,
        memory: Callable[..., Sram] = Sram,
        protection: Protection | None = None,
    ):
        index = In(index_width(sets, ways, skewed=skewed))
        super().__init__(
            sets=sets, ways=ways, policy=policy, skewed=skewed, key_bits=key_bits, tag_bits=tag_bits,
            output_bits=output_bits, epoch_bits=epoch_bits, seed=seed, asynchronous=asynchronous, memory=memory,
            protection=protection, before={"index": index, "key": In(key_bits), "epoch": In(epoch_bits)},
            behind={} if asynchronous else {
                "read": In(1), "read_index": index, "same_row": In(ways if skewed else 1),
            },
        )  # fmt: skip
        self.bypassed = Signal(ways)
        self.bypass_line = Signal(self.line_bits)

    def elaborate(self, platform: object) -> Module:
        """Build the memories, their bypass, the compare and the write paths."""
        m = Module()
        new_line = self._new_line(m)
        write = Signal(self.ways)
        lines = [Signal(self.line_bits, name=f"line{way}") for way in range(self.ways)]
        wrong, repaired = self._lines(m, platform, write, new_line, lines)
        if not self.asynchronous:
            self._bypass(m, write, new_line, repaired)
        memory_live = Cat(self._live(m, line, f"memory_live{way}") for way, line in enumerate(lines))
        bypass_live = self._live(m, self.bypass_line, "bypass_live")
        valid, live = self._usable(m, lines, memory_live, bypass_live)
        match = self._compare(m, lines, memory_live, bypass_live)
        m.submodules.replacement = replacement = Replacement(policy=self.policy, ways=self.ways, seed=self.seed)
        victim = self._victim(m, replacement, live)
        for way in range(self.ways):
            writes = (
                (self.filled & victim[way]) | (self.invalidate & match[way]) | (self.scrub & valid[way] & ~live[way])
            )
            if self.code is not None:
                cleans = (self.lookup & (wrong | repaired)[way]) | ((self.invalidate | self.scrub) & wrong[way])
                writes |= cleans & ~self.bypassed[way]
            m.d.comb += write[way].eq(writes)
        if self.code is not None:
            looks = self.lookup | self.fill | self.invalidate | self.scrub
            m.d.comb += [
                self.found_wrong.eq(looks & (wrong & ~self.bypassed).any()),
                self.found_repaired.eq(looks & (repaired & ~self.bypassed).any()),
            ]
        if self.policy_memory is not None:
            self._connect_state(m, self.policy_memory, replacement, match, victim)
        return m

    def _bypass(self, m: Module, write: Value, new_line: Value, repaired: Value) -> None:
        """Keep what is written while it is read: one register stands in for every way, only one line can be new."""
        W = self.ways
        with m.If(self.read):
            forwarded = [write[way] for way in range(W)]
            if self.protection == "secded":  # what is written back is read as it was, and repaired again
                forwarded = [write[way] & ~(self.lookup & repaired[way]) for way in range(W)]
            m.d.sync += [
                self.bypassed.eq(Cat(forwarded[way] & self.same_row[way if self.skewed else 0] for way in range(W))),
                self.bypass_line.eq(new_line),
            ]

    def _live(self, m: Module, line: Value, name: str) -> Signal:
        """Return whether a line is live."""
        live = Signal(name=name)
        epoch = line[self.epoch_at : self.epoch_at + self.epoch_bits]
        m.d.comb += live.eq(line[self.valid_at] & (epoch == self.epoch))
        return live

    def _usable(
        self, m: Module, lines: list[Signal], memory_live: Value, bypass_live: Value
    ) -> tuple[Signal, Signal]:  # fmt: skip
        """Return which ways have a valid and which have a live line."""
        W, at, bypassed = self.ways, self.valid_at, self.bypassed
        valid = Signal(W)
        live = Signal(W)
        m.d.comb += [
            valid.eq(Cat(Mux(bypassed[way], self.bypass_line[at], lines[way][at]) for way in range(W))),
            live.eq(Cat(Mux(bypassed[way], bypass_live, memory_live[way]) for way in range(W))),
        ]
        return valid, live

    def _compare(self, m: Module, lines: list[Signal], memory_live: Value, bypass_live: Value) -> Signal:
        """Return the way that has the key, and answer with its output.

        The bypassed line is compared beside the memories and joins after the compare: no multiplexer in their path.
        """
        outputs, bypassed, bypass_line = slice(self.output_at, self.epoch_at), self.bypassed, self.bypass_line
        m.submodules.select = select = TagSelect(ways=self.ways, tag_bits=self.key_bits, output_bits=self.output_bits)
        bypass_match = Signal()
        bypass_hit = Signal()
        match = Signal(self.ways)
        m.d.comb += [
            select.key.eq(self.key),
            select.tags.eq(Cat(line[: self.key_bits] for line in lines)),
            select.outputs.eq(Cat(line[outputs] for line in lines)),
            select.live.eq(memory_live & ~bypassed),
            bypass_match.eq(bypass_live & (bypass_line[: self.key_bits] == self.key)),
            bypass_hit.eq(bypassed.any() & bypass_match),
            match.eq(select.match | (bypassed & bypass_match.replicate(self.ways))),
            self.present.eq(select.hit | bypass_hit),
            self.output.eq(select.output | (bypass_line[outputs] & bypass_hit.replicate(self.output_bits))),
        ]
        return match

    def _victim(self, m: Module, replacement: Replacement, live: Value) -> Signal:
        """Return the lowest way that is not live, else the policy's; none of this waits for the tag compare."""
        all_live = Signal()
        victim = Signal(self.ways)
        m.d.comb += all_live.eq(live.all())
        for way in range(self.ways):
            first_dead = ~live[way] & live[:way].all() if way else ~live[way]
            m.d.comb += victim[way].eq(first_dead | (all_live & replacement.victim[way]))
        m.d.comb += [
            self.filled.eq(self.fill & ~self.present),
            self.evicted.eq(self.filled & all_live),
        ]
        if replacement.has_step:
            m.d.comb += replacement.step.eq(self.evicted)
        return victim

    def _lines(
        self, m: Module, platform: object, write: Value, new_line: Value, lines: list[Signal]
    ) -> tuple[Value, Value]:
        """Connect the memories; return which lines read from them are wrong, and which were corrected."""
        code = self.code
        stored = new_line if code is None else code.stored(new_line)
        wrong, repaired = Signal(self.ways), Signal(self.ways)
        for way, memory in enumerate(self.memories):
            m.submodules[f"way{way}"] = memory
            self._access(memory, m, way)
            m.d.comb += memory.w_en.eq(write[way])
            if code is None:
                m.d.comb += [memory.w_data.eq(stored), lines[way].eq(memory.r_data)]
                continue
            read = code.read(m, platform, way, memory.r_data)
            m.d.comb += [
                memory.w_data.eq(Mux(self.lookup & repaired[way], read.word_repaired, stored)),
                lines[way].eq(read.line),
                wrong[way].eq(read.wrong),
                repaired[way].eq(read.repaired),
            ]
        return wrong, repaired

    def _connect_state(self, m: Module, memory: Sram, replacement: Replacement, match: Signal, victim: Signal) -> None:
        """Read-modify-write of the replacement state, with its own bypass."""
        m.submodules.policy_state = memory
        self._access(memory, m, 0)
        touch = self._touch(m, replacement, match, victim)
        write = Signal()
        m.d.comb += [
            write.eq(touch.any()),
            memory.w_en.eq(write),
            memory.w_data.eq(replacement.next_state),
        ]
        if self.asynchronous:
            m.d.comb += replacement.state.eq(memory.r_data)
            return
        state_bypassed = Signal()
        bypass_state = Signal(replacement.state_bits)
        with m.If(self.read):
            m.d.sync += [
                state_bypassed.eq(write & self.same_row[0]),
                bypass_state.eq(replacement.next_state),
            ]
        m.d.comb += replacement.state.eq(Mux(state_bypassed, bypass_state, memory.r_data))
