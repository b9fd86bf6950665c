"""Arrays of one routing cache: lines, replacement state, tag compare, write paths."""

from collections.abc import Callable

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.protected_line import LineCode
from hopforge.hw.replacement import Replacement, check_policy, state_bits
from hopforge.hw.sram import Sram
from hopforge.hw.tag_select import TagSelect
from hopforge.model.numbers.code_word import Protection

RESERVED_BITS = 16
"""Reserved bits at the top of a line: the topmost is *valid*, the lowest hold the epoch."""


class RoutingCache(wiring.Component):
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

    read: Signal
    read_index: Signal
    same_row: Signal
    index: Signal
    key: Signal
    epoch: Signal
    lookup: Signal
    fill: Signal
    invalidate: Signal
    scrub: Signal
    fill_output: Signal
    present: Signal
    output: Signal
    filled: Signal
    evicted: Signal
    found_wrong: Signal
    found_repaired: Signal

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
        if sets < 1 or sets & (sets - 1):
            raise ValueError(f"sets must be a power of two, not {sets}")
        check_policy(policy, ways)
        if skewed and policy != "random":
            raise ValueError(f"policy must be random for a skewed cache in hardware, not {policy!r}")
        if key_bits < 1:
            raise ValueError(f"key_bits must be at least 1, not {key_bits}")
        if tag_bits < key_bits:
            raise ValueError(f"tag_bits must be at least key_bits={key_bits}, not {tag_bits}")
        if output_bits < 1:
            raise ValueError(f"output_bits must be at least 1, not {output_bits}")
        if not 1 <= epoch_bits < RESERVED_BITS:
            raise ValueError(f"epoch_bits must be between 1 and {RESERVED_BITS - 1}, not {epoch_bits}")
        self.sets = sets
        self.ways = ways
        self.policy = policy
        self.skewed = skewed
        self.key_bits = key_bits
        self.tag_bits = tag_bits
        self.output_bits = output_bits
        self.epoch_bits = epoch_bits
        self.seed = seed
        self.asynchronous = asynchronous
        self.line_bits = tag_bits + output_bits + RESERVED_BITS
        self.protection = protection
        self.code = None if protection is None else LineCode(
            key_bits=key_bits, tag_bits=tag_bits, output_bits=output_bits, epoch_bits=epoch_bits,
            line_bits=self.line_bits, protection=protection,
        )  # fmt: skip
        self.row_bits = max(1, ceil_log2(sets))
        self.index_bits = self.row_bits * (ways if skewed else 1)
        ports = {
            "index": In(self.index_bits),
            "key": In(key_bits),
            "epoch": In(epoch_bits),
            "lookup": In(1),
            "fill": In(1),
            "invalidate": In(1),
            "scrub": In(1),
            "fill_output": In(output_bits),
            "present": Out(1),
            "output": Out(output_bits),
            "filled": Out(1),
            "evicted": Out(1),
        }
        if not asynchronous:
            ports |= {
                "read": In(1),
                "read_index": In(self.index_bits),
                "same_row": In(ways if skewed else 1),
            }
        if protection is not None:
            ports |= {"found_wrong": Out(1), "found_repaired": Out(1)}
        super().__init__(ports)
        self.bypassed = Signal(ways)
        self.bypass_line = Signal(self.line_bits)
        stored_bits = self.line_bits + (0 if self.code is None else self.code.check_bits)
        self.memories = [memory(depth=sets, width_bits=stored_bits, asynchronous=asynchronous) for _ in range(ways)]
        bits = state_bits(policy, ways)
        self.policy_memory = memory(depth=sets, width_bits=bits, asynchronous=asynchronous) if bits else None

    def _row(self, index: Value, way: int) -> Value:
        return index.word_select(way if self.skewed else 0, self.row_bits)

    def _access(self, memory: Sram, m: Module, way: int) -> None:
        """Connect the addresses of a memory of one word per row."""
        if self.sets > 1:
            m.d.comb += [
                memory.r_addr.eq(self._row(self.index if self.asynchronous else self.read_index, way)),
                memory.w_addr.eq(self._row(self.index, way)),
            ]
        if not self.asynchronous:
            m.d.comb += memory.r_en.eq(self.read)

    def elaborate(self, platform: object) -> Module:
        """Build the memories, their bypass, the compare and the write paths."""
        m = Module()
        W = self.ways
        output_at = self.tag_bits
        epoch_at = self.tag_bits + self.output_bits
        valid_at = self.line_bits - 1

        # What the operation would write: a fill the whole line, the others a line that is not valid.
        new_line = Signal(self.line_bits)
        m.d.comb += [
            new_line[: self.key_bits].eq(self.key),
            new_line[output_at:epoch_at].eq(self.fill_output),
            new_line[epoch_at : epoch_at + self.epoch_bits].eq(self.epoch),
            new_line[valid_at].eq(self.fill),
        ]
        write = Signal(W)
        lines = [Signal(self.line_bits, name=f"line{way}") for way in range(W)]
        wrong, repaired = self._lines(m, platform, write, new_line, lines)

        # One register stands in for every way that was written while it was read: only one line can be new.
        bypassed, bypass_line = self.bypassed, self.bypass_line
        if not self.asynchronous:
            with m.If(self.read):
                forwarded = [write[way] for way in range(W)]
                if self.protection == "secded":  # what is written back is read as it was, and repaired again
                    forwarded = [write[way] & ~(self.lookup & repaired[way]) for way in range(W)]
                m.d.sync += [
                    bypassed.eq(Cat(forwarded[way] & self.same_row[way if self.skewed else 0] for way in range(W))),
                    bypass_line.eq(new_line),
                ]

        def live_bit(line: Value, name: str) -> Signal:
            live = Signal(name=name)
            m.d.comb += live.eq(line[valid_at] & (line[epoch_at : epoch_at + self.epoch_bits] == self.epoch))
            return live

        memory_live = Cat(live_bit(lines[way], f"memory_live{way}") for way in range(W))
        bypass_live = live_bit(bypass_line, "bypass_live")
        valid = Signal(W)
        live = Signal(W)
        m.d.comb += [
            valid.eq(Cat(Mux(bypassed[way], bypass_line[valid_at], lines[way][valid_at]) for way in range(W))),
            live.eq(Cat(Mux(bypassed[way], bypass_live, memory_live[way]) for way in range(W))),
        ]

        # The bypassed line is compared beside the memories and joins after the compare: no multiplexer in their path.
        m.submodules.select = select = TagSelect(ways=W, tag_bits=self.key_bits, output_bits=self.output_bits)
        bypass_match = Signal()
        bypass_hit = Signal()
        m.d.comb += [
            select.key.eq(self.key),
            select.tags.eq(Cat(line[: self.key_bits] for line in lines)),
            select.outputs.eq(Cat(line[output_at:epoch_at] for line in lines)),
            select.live.eq(memory_live & ~bypassed),
            bypass_match.eq(bypass_live & (bypass_line[: self.key_bits] == self.key)),
            bypass_hit.eq(bypassed.any() & bypass_match),
        ]
        match = Signal(W)
        m.d.comb += [
            match.eq(select.match | (bypassed & bypass_match.replicate(W))),
            self.present.eq(select.hit | bypass_hit),
            self.output.eq(select.output | (bypass_line[output_at:epoch_at] & bypass_hit.replicate(self.output_bits))),
        ]

        # Victim: the lowest way that is not live, else the policy's. None of this waits for the tag compare.
        m.submodules.replacement = replacement = Replacement(policy=self.policy, ways=W, seed=self.seed)
        all_live = Signal()
        victim = Signal(W)
        m.d.comb += all_live.eq(live.all())
        for way in range(W):
            first_dead = ~live[way] & live[:way].all() if way else ~live[way]
            m.d.comb += victim[way].eq(first_dead | (all_live & replacement.victim[way]))
        m.d.comb += [
            self.filled.eq(self.fill & ~self.present),
            self.evicted.eq(self.filled & all_live),
        ]
        for way in range(W):
            writes = (
                (self.filled & victim[way]) | (self.invalidate & match[way]) | (self.scrub & valid[way] & ~live[way])
            )
            if self.code is not None:
                cleans = (self.lookup & (wrong | repaired)[way]) | ((self.invalidate | self.scrub) & wrong[way])
                writes |= cleans & ~bypassed[way]
            m.d.comb += write[way].eq(writes)
        if self.code is not None:
            looks = self.lookup | self.fill | self.invalidate | self.scrub
            m.d.comb += [
                self.found_wrong.eq(looks & (wrong & ~bypassed).any()),
                self.found_repaired.eq(looks & (repaired & ~bypassed).any()),
            ]
        if replacement.has_step:
            m.d.comb += replacement.step.eq(self.evicted)
        if self.policy_memory is not None:
            self._connect_state(m, self.policy_memory, replacement, match, victim)
        return m

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
        touch = Signal(self.ways)
        fill_victim = Signal(self.ways)
        m.d.comb += fill_victim.eq(victim & self.filled.replicate(self.ways))
        if self.policy == "fifo":
            m.d.comb += touch.eq(fill_victim)
        else:
            m.d.comb += touch.eq((match & (self.lookup | self.fill).replicate(self.ways)) | fill_victim)
        write = Signal()
        m.d.comb += [
            write.eq(touch.any()),
            replacement.touch.eq(touch),
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
