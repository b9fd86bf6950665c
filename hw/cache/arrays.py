"""What a routing cache has at any depth: its shape, the layout of a line, the memories and the ports."""

from collections.abc import Callable, Mapping

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out
from amaranth.utils import ceil_log2

from hopforge.hw.cache.protected_line import LineCode
from hopforge.hw.cache.replacement import Replacement, check_policy, state_bits
from hopforge.hw.parts.sram import Sram
from hopforge.model.numbers.code_word import Protection

__all__ = ["RESERVED_BITS", "CacheArrays", "index_width"]

RESERVED_BITS = 16
"""Reserved bits at the top of a line: the topmost is *valid*, the lowest hold the epoch."""


def index_width(sets: int, ways: int, *, skewed: bool) -> int:
    """Return the width of an index: one row number, or one for each way."""
    return max(1, ceil_log2(sets)) * (ways if skewed else 1)


class CacheArrays(wiring.Component):
    """Memories of all ways and of the replacement state; who compares the lines adds its own ports.

    Parameters
    ----------
    sets, ways, policy, skewed, key_bits, tag_bits, output_bits, epoch_bits, seed, asynchronous, memory, protection
        As for `RoutingCache`.
    before, behind : dict of Member
        Ports of the operations, ahead of the commands and their results, and behind them.

    Raises
    ------
    ValueError
        Sets no power of two, a width below 1 or too large, a policy that does not fit, skewed with another policy
        than random.
    """

    read: Signal
    read_index: Signal
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
        seed: int,
        asynchronous: bool,
        memory: Callable[..., Sram],
        protection: Protection | None,
        before: Mapping[str, Member],
        behind: Mapping[str, Member],
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
        self.protection = protection
        self.output_at = tag_bits
        self.epoch_at = tag_bits + output_bits
        self.line_bits = tag_bits + output_bits + RESERVED_BITS
        self.valid_at = self.line_bits - 1
        self.code = None if protection is None else LineCode(
            key_bits=key_bits, tag_bits=tag_bits, output_bits=output_bits, epoch_bits=epoch_bits,
            line_bits=self.line_bits, protection=protection,
        )  # fmt: skip
        self.row_bits = index_width(sets, ways, skewed=False)
        self.index_bits = index_width(sets, ways, skewed=skewed)
        super().__init__(
            {
                **before,
                "lookup": In(1),
                "fill": In(1),
                "invalidate": In(1),
                "scrub": In(1),
                "fill_output": In(output_bits),
                "present": Out(1),
                "output": Out(output_bits),
                "filled": Out(1),
                "evicted": Out(1),
                **behind,
                **({} if protection is None else {"found_wrong": Out(1), "found_repaired": Out(1)}),
            }
        )
        self.stored_bits = self.line_bits + (0 if self.code is None else self.code.check_bits)
        self.memories = [
            memory(depth=sets, width_bits=self.stored_bits, asynchronous=asynchronous) for _ in range(ways)
        ]
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

    def _new_line(self, m: Module) -> Signal:
        """Return what the operation would write: a fill the whole line, the others a line that is not valid."""
        new_line = Signal(self.line_bits)
        m.d.comb += [
            new_line[: self.key_bits].eq(self.key),
            new_line[self.output_at : self.epoch_at].eq(self.fill_output),
            new_line[self.epoch_at : self.epoch_at + self.epoch_bits].eq(self.epoch),
            new_line[self.valid_at].eq(self.fill),
        ]
        return new_line

    def _touch(self, m: Module, replacement: Replacement, match: Value, victim: Value) -> Signal:
        """Return the way that the operation touches, and tell the replacement."""
        touch = Signal(self.ways)
        fill_victim = Signal(self.ways)
        m.d.comb += fill_victim.eq(victim & self.filled.replicate(self.ways))
        if self.policy == "fifo":
            m.d.comb += touch.eq(fill_victim)
        else:
            m.d.comb += touch.eq((match & (self.lookup | self.fill).replicate(self.ways)) | fill_victim)
        m.d.comb += replacement.touch.eq(touch)
        return touch
