"""Arrays of the routing cache in a deep engine: read, compare and act, one cycle each."""

from collections.abc import Callable, Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In

from hopforge.hw.cache.arrays import CacheArrays, index_width
from hopforge.hw.cache.replacement import Replacement
from hopforge.hw.parts.sram import Sram
from hopforge.model.numbers.code_word import Protection

_PART_BITS = 2
"""Bits of two words that a table of an FPGA with four inputs compares."""


def _equal_parts(m: Module, first: Value, second: Value, name: str) -> Signal:
    """Return a register with a bit for each part of two words: the parts were equal."""
    starts = range(0, len(first), _PART_BITS)
    equal = Signal(len(starts), name=name)
    m.d.sync += equal.eq(Cat(first[at : at + _PART_BITS] == second[at : at + _PART_BITS] for at in starts))
    return equal


class PipelinedCache(CacheArrays):
    """Set-associative or skewed cache (lines and parameters as in `RoutingCache`) that takes three cycles.

    1. ``read`` reads lines and replacement state at ``read_index``.
    2. In the next cycle ``compare_key`` and ``compare_index`` are what was read for; the lines are compared.
    3. In the cycle after it, with ``key`` and ``index`` the same again, at most one command: ``lookup``, ``fill``,
       ``invalidate``, ``scrub`` as for `RoutingCache`; ``present`` and ``output`` describe what was found.

    Behind memories with ``late_output`` one step of the comparison is in cycle 2, the rest in cycle 3; what happens is
    the same. With ``memory_stage`` a cycle lies between 1 and 2, in which nothing but the memories is.

    Lines are not forwarded: behind a command other than ``lookup`` nothing may be read for two cycles (three with
    ``memory_stage``). The replacement state is: ``busy`` says that cycle 3 belongs to an operation, ``index_before``
    and ``busy_before`` what was there a cycle earlier.

    Latency: as above; throughput: one operation per cycle; never stalls. Reset: the memories keep their contents.

    Parameters
    ----------
    sets, ways, policy, skewed, key_bits, tag_bits, output_bits, epoch_bits, seed, memory, protection
        As for `RoutingCache`.
    memory_stage : bool
        A register behind the memories.
    """

    compare_key: Signal
    compare_index: Signal
    busy: Signal
    index_before: Signal
    busy_before: Signal

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
        memory: Callable[..., Sram] = Sram,
        memory_stage: bool = False,
        protection: Protection | None = None,
    ):
        index = In(index_width(sets, ways, skewed=skewed))
        super().__init__(
            sets=sets, ways=ways, policy=policy, skewed=skewed, key_bits=key_bits, tag_bits=tag_bits,
            output_bits=output_bits, epoch_bits=epoch_bits, seed=seed, asynchronous=False, memory=memory,
            protection=protection,
            before={
                "read": In(1), "read_index": index, "compare_key": In(key_bits), "compare_index": index,
                "epoch": In(epoch_bits), "index": index, "key": In(key_bits), "busy": In(1), "index_before": index,
                "busy_before": In(1),
            },
            behind={},
        )  # fmt: skip
        W = ways
        self.memory_stage = memory_stage
        self.lines = [
            Signal(self.stored_bits, name=f"line{way}", reset_less=True) if memory_stage else memory.r_data
            for way, memory in enumerate(self.memories)
        ]
        self.match = Signal(W)
        self.live = Signal(W)
        self.valid = Signal(W)
        self.first_dead = Signal(W)
        self.all_live = Signal()
        self.wrong = Signal(W)
        self.repaired = Signal(W)
        self.outputs = [Signal(output_bits, name=f"output{way}", reset_less=True) for way in range(W)]

    def works_on(
        self, compared: Any, acting: Any, *, busy: Value, before: tuple[Value, Value], usable: Value, fill: Value,
        output: Value,
    ) -> list[Any]:  # fmt: skip
        """Return what connects the operations of cycles 2 and 3; `before`: index and `busy` of the one ahead."""
        return [
            self.compare_key.eq(compared.key),
            self.compare_index.eq(compared.index),
            self.key.eq(acting.key),
            self.index.eq(acting.index),
            self.busy.eq(busy),
            self.index_before.eq(before[0]),
            self.busy_before.eq(before[1]),
            self.lookup.eq(acting.lookup & usable),
            self.fill.eq(fill),
            self.invalidate.eq(acting.invalidate),
            self.scrub.eq(acting.scrub & acting.fresh),
            self.fill_output.eq(output),
        ]

    def elaborate(self, platform: object) -> Module:
        """Build the memories, the compare, the register behind it and the write paths."""
        m = Module()
        W = self.ways
        output_at, epoch_at, valid_at = self.output_at, self.epoch_at, self.valid_at
        match, live, valid = self.match, self.live, self.valid
        new_line = self._new_line(m)

        # --- compare
        write = Signal(W)
        first_dead, all_live, outputs = self.first_dead, self.all_live, self.outputs
        lines = self._lines(m, platform, write, new_line)
        for way, line in enumerate(lines):
            m.d.sync += [valid[way].eq(line[valid_at]), outputs[way].eq(line[output_at:epoch_at])]
        late = self.memories[0].late_output and not self.memory_stage
        compare = self._compare_late if late else self._compare
        compare(m, [Cat(line[epoch_at : epoch_at + self.epoch_bits], line[valid_at]) for line in lines], lines)

        # --- act
        m.submodules.replacement = replacement = Replacement(policy=self.policy, ways=W, seed=self.seed)
        victim = Signal(W)
        m.d.comb += [
            self.present.eq(match.any()),
            self.output.eq(
                Cat(Cat(match[way] & outputs[way][bit] for way in range(W)).any() for bit in range(self.output_bits))
            ),
            victim.eq(first_dead | (replacement.victim & all_live.replicate(W))),
            self.filled.eq(self.fill & ~self.present),
            self.evicted.eq(self.filled & all_live),
        ]
        writes = (
            (victim & self.filled.replicate(W))
            | (match & self.invalidate.replicate(W))
            | (valid & ~live & self.scrub.replicate(W))
        )
        if self.code is not None:
            wrong, repaired = self.wrong, self.repaired
            writes |= (wrong | repaired) & self.lookup.replicate(W)
            writes |= wrong & (self.invalidate | self.scrub).replicate(W)
            looks = self.lookup | self.fill | self.invalidate | self.scrub
            m.d.comb += [self.found_wrong.eq(looks & wrong.any()), self.found_repaired.eq(looks & repaired.any())]
        m.d.comb += write.eq(writes)
        if replacement.has_step:
            m.d.comb += replacement.step.eq(self.evicted)
        if self.policy_memory is not None:
            self._connect_state(m, self.policy_memory, replacement, victim)
        return m

    def _lines(self, m: Module, platform: object, write: Value, new_line: Value) -> list[Value]:
        """Connect the memories; return the lines that are read, and keep for the next cycle what is wrong with them."""
        code = self.code
        stored = new_line if code is None else code.stored(new_line)
        lines: list[Value] = []
        for way, memory in enumerate(self.memories):
            m.submodules[f"way{way}"] = memory
            self._access(memory, m, way)
            m.d.comb += memory.w_en.eq(write[way])
            line = self.lines[way]
            if self.memory_stage:
                m.d.sync += line.eq(memory.r_data)
            if code is None:
                m.d.comb += memory.w_data.eq(stored)
                lines.append(line)
                continue
            read = code.read(m, platform, way, line)
            lines.append(read.line)
            m.d.sync += self.wrong[way].eq(read.wrong)
            if self.protection == "secded":
                word = Signal(len(memory.r_data), name=f"repaired_word{way}", reset_less=True)
                m.d.sync += [self.repaired[way].eq(read.repaired), word.eq(read.word_repaired)]
                m.d.comb += memory.w_data.eq(Mux(self.lookup & self.repaired[way], word, stored))
            else:
                m.d.comb += memory.w_data.eq(stored)
        return lines

    def _compare(self, m: Module, epochs: Sequence[Value], lines: Sequence[Value]) -> None:
        """Compare in the cycle of the memories; the results are registers.

        ``epochs``: epoch and valid bit of each line.
        """
        W = self.ways
        found = Signal(W)
        alive = Signal(W)
        for way, (epoch, line) in enumerate(zip(epochs, lines, strict=True)):
            m.d.comb += [
                alive[way].eq(epoch[-1] & (epoch[:-1] == self.epoch)),
                found[way].eq(alive[way] & (line[: self.key_bits] == self.compare_key)),
            ]
        m.d.sync += [self.match.eq(found), self.live.eq(alive), self.all_live.eq(alive.all())]
        for way in range(W):
            m.d.sync += self.first_dead[way].eq(~alive[way] & alive[:way].all() if way else ~alive[way])

    def _compare_late(self, m: Module, epochs: Sequence[Value], lines: Sequence[Value]) -> None:
        """Do the same with one step of logic behind the memories; what is left follows the registers."""
        live = self.live
        for way, (epoch, line) in enumerate(zip(epochs, lines, strict=True)):
            same_epoch = _equal_parts(m, epoch[:-1], self.epoch, f"same_epoch{way}")
            same_key = _equal_parts(m, line[: self.key_bits], self.compare_key, f"same_key{way}")
            m.d.comb += [
                live[way].eq(self.valid[way] & same_epoch.all()),
                self.match[way].eq(live[way] & same_key.all()),
                self.first_dead[way].eq(~live[way] & live[:way].all() if way else ~live[way]),
            ]
        m.d.comb += self.all_live.eq(live.all())

    def _connect_state(self, m: Module, memory: Sram, replacement: Replacement, victim: Signal) -> None:
        """Read-modify-write of the replacement state; the operations ahead that a read misses are forwarded."""
        m.submodules.policy_state = memory
        self._access(memory, m, 0)
        touch = self._touch(m, replacement, self.match, victim)
        m.d.comb += [
            memory.w_en.eq(touch.any()),
            memory.w_data.eq(replacement.next_state),
        ]
        # An operation that touches nothing leaves the state as it was: its row's state is forwarded all the same.
        read = Signal(replacement.state_bits, reset_less=True)
        state_before = Signal(replacement.state_bits, reset_less=True)
        state_before_that = Signal(replacement.state_bits, reset_less=True)
        same_row = Signal(name="same_row")
        same_row_before = Signal(name="same_row_before")
        m.d.sync += [
            same_row.eq(self.busy & (self.compare_index == self.index)),
            same_row_before.eq(self.busy_before & (self.compare_index == self.index_before)),
            read.eq(self._late_state(m, memory, state_before_that) if self.memory_stage else memory.r_data),
            state_before.eq(replacement.next_state),
            state_before_that.eq(state_before),
        ]
        m.d.comb += replacement.state.eq(Mux(same_row, state_before, Mux(same_row_before, state_before_that, read)))

    def _late_state(self, m: Module, memory: Sram, state_before_that: Signal) -> Value:
        """Return the state behind its register in cycle 2; that of the third operation ahead is there by now."""
        behind = Signal(len(memory.r_data), name="state_behind", reset_less=True)
        index_third = Signal(self.index_bits, reset_less=True)
        busy_third = Signal()
        m.d.sync += [behind.eq(memory.r_data), index_third.eq(self.index_before), busy_third.eq(self.busy_before)]
        return Mux(busy_third & (self.compare_index == index_third), state_before_that, behind)
