"""Inference of a quantised DQN agent: observation in, best action out."""

from collections.abc import Sequence
from itertools import pairwise

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.parts.sram import Sram
from hopforge.model.dqn.int8_table import (
    LEAST_ACTIVATION_BITS,
    MOST_ACTIVATION_BITS,
    TABLE_BITS,
    TABLE_END,
    tanh_table,
)

__all__ = ["DqnInference"]

WEIGHT_BITS = 8
SHIFT_BITS = 5
#: layers: two tanh, the hidden layer of the advantages' head, the advantages
LAYERS = 4
HEAD = 2


class DqnInference(Component):
    """Multiplies `lanes` weights in each cycle; one decision after the other.

    A layer is computed in blocks of `lanes` outputs. Each input activation of the layer meets a row of `lanes` weights
    in one cycle. A finished block leaves one sum per cycle through shift, table and limiter into the other activation
    memory, while the next block is computed. The sums of the last layer go to a comparator.

    Latency: `cycles` from ``start`` to ``done``; one decision at a time, ``start`` while ``busy`` is ignored. Reset:
    idle; the memories keep their contents.

    Parameters
    ----------
    widths : sequence of int
        Inputs, first, second, head and actions.
    lanes : int
        Multipliers.
    sum_bits : int
        Of an accumulator; biases have as many.
    activation_bits : int
        Of inputs and of what layers hand on, 8 … 12. With more than 8 the way out has a register more.

    Attributes
    ----------
    rows, bias_rows : int
        Rows of the two memories of weights: for each layer, for each block, a row per input (a row for the biases).

    Raises
    ------
    ValueError
        A width, number of lanes or of bits below its limit.
    """

    start: Signal
    busy: Signal
    done: Signal
    action: Signal
    x_en: Signal
    x_addr: Signal
    x_data: Signal
    w_en: Signal
    w_addr: Signal
    w_data: Signal
    b_en: Signal
    b_addr: Signal
    b_data: Signal
    shifts: Signal
    advantage: Signal
    advantage_valid: Signal

    def __init__(self, *, widths: Sequence[int], lanes: int, sum_bits: int = 32, activation_bits: int = 8) -> None:
        if len(widths) != LAYERS + 1 or min(widths) < 1:
            raise ValueError(f"widths must be inputs, first, second, head and actions, each 1 or more, not {widths}")
        if widths[-1] < 2 or lanes < 2:
            raise ValueError(f"actions and lanes must be 2 or more, not {widths[-1]} and {lanes}")
        if not LEAST_ACTIVATION_BITS <= activation_bits <= MOST_ACTIVATION_BITS:
            limits = f"{LEAST_ACTIVATION_BITS} … {MOST_ACTIVATION_BITS}"
            raise ValueError(f"activation_bits must be {limits}, not {activation_bits}")
        if not WEIGHT_BITS + activation_bits <= sum_bits <= 48:
            raise ValueError(f"sum_bits must be {WEIGHT_BITS + activation_bits} … 48, not {sum_bits}")
        self.widths, self.lanes, self.sum_bits = tuple(widths), lanes, sum_bits
        self.activation_bits = activation_bits
        self.blocks = tuple(-(-width // lanes) for width in widths[1:])
        self.rows = sum(count * width for count, width in zip(self.blocks, widths, strict=False))
        self.bias_rows = sum(self.blocks)
        super().__init__({
            "start": In(1), "busy": Out(1), "done": Out(1), "action": Out(ceil_log2(widths[-1])),
            "x_en": In(1), "x_addr": In(max(ceil_log2(widths[0]), 1)), "x_data": In(signed(activation_bits)),
            "w_en": In(1), "w_addr": In(max(ceil_log2(self.rows), 1)), "w_data": In(WEIGHT_BITS * lanes),
            "b_en": In(1), "b_addr": In(ceil_log2(self.bias_rows)), "b_data": In(sum_bits * lanes),
            "shifts": In(SHIFT_BITS * (LAYERS - 1)),
            "advantage": Out(signed(sum_bits)), "advantage_valid": Out(1),
        })  # fmt: skip

    @property
    def _between(self) -> int:
        """Bits of an activation that lie between two places of the table."""
        return self.activation_bits - 1 - TABLE_BITS

    @property
    def cycles(self) -> int:
        """Cycles from the one with ``start`` to the one with ``done``."""
        total = 1 + (LAYERS - 1) * (self._between > 0)  # the last layer has no activations
        for inputs, outputs, blocks in zip(self.widths, self.widths[1:], self.blocks, strict=False):
            leaving = 0  # cycles that the block before still takes to leave when this one is ready
            for block in range(blocks):
                total += inputs + 2 + max(leaving - (inputs + 2), 0)
                leaving = min(self.lanes, outputs - block * self.lanes)
            total += leaving + 1
        return total

    def elaborate(self, platform: object) -> Module:
        """Build memories, multipliers, the way out and the control."""
        m = Module()
        deepest = max(self.widths[:-1])
        banks = [Sram(depth=max(deepest, 2), width_bits=self.activation_bits) for _ in range(2)]
        m.submodules.activations0, m.submodules.activations1 = banks
        m.submodules.weights = weights = Sram(depth=max(self.rows, 2), width_bits=WEIGHT_BITS * self.lanes)
        m.submodules.biases = biases = Sram(depth=max(self.bias_rows, 2), width_bits=self.sum_bits * self.lanes)
        m.d.comb += [
            weights.w_en.eq(self.w_en), weights.w_addr.eq(self.w_addr), weights.w_data.eq(self.w_data),
            biases.w_en.eq(self.b_en), biases.w_addr.eq(self.b_addr), biases.w_data.eq(self.b_data),
        ]  # fmt: skip
        layer = Signal(range(LAYERS))
        block = Signal(range(max(self.blocks)))
        number = Signal(range(deepest))
        row, bias_row = Signal(range(max(self.rows, 2))), Signal(range(max(self.bias_rows, 2)))
        issue, first, take = Signal(), Signal(), Signal()
        m.d.comb += [
            issue.eq(0), weights.r_en.eq(issue), weights.r_addr.eq(row), biases.r_en.eq(issue & (number == 0)),
            biases.r_addr.eq(bias_row),
        ]  # fmt: skip
        for bank in banks:
            m.d.comb += [bank.r_en.eq(issue), bank.r_addr.eq(number)]
        valid = Signal()
        m.d.sync += [valid.eq(issue), first.eq(issue & (number == 0))]
        sums = self._multiply(m, valid, first, Mux(layer[0], banks[1].r_data, banks[0].r_data), weights, biases)
        left, written = self._way_out(m, layer, block, take, sums, banks)
        last_input = Array(Const(width - 1, range(deepest)) for width in self.widths[:-1])[layer]
        last_block = Array(Const(count - 1, range(max(self.blocks))) for count in self.blocks)[layer]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [banks[0].w_en.eq(self.x_en), banks[0].w_addr.eq(self.x_addr)]
                m.d.comb += banks[0].w_data.eq(self.x_data)
                with m.If(self.start):
                    m.d.sync += [layer.eq(0), block.eq(0), number.eq(0), row.eq(0), bias_row.eq(0)]
                    m.next = "MULTIPLY"
            with m.State("MULTIPLY"):
                m.d.comb += [issue.eq(1), self.busy.eq(1)]
                m.d.sync += [number.eq(number + 1), row.eq(row + 1)]
                with m.If(number == last_input):
                    m.d.sync += [number.eq(0), bias_row.eq(bias_row + 1)]
                    m.next = "LAST SUM"
            with m.State("LAST SUM"):
                m.d.comb += self.busy.eq(1)
                m.next = "HAND OVER"
            with m.State("HAND OVER"):
                m.d.comb += self.busy.eq(1)
                with m.If(left <= 1):  # the last sum of the block before leaves in this cycle
                    m.d.comb += take.eq(1)
                    m.d.sync += block.eq(block + 1)
                    m.next = "MULTIPLY"
                    with m.If(block == last_block):
                        m.d.sync += block.eq(0)
                        m.next = "LAYER ENDS"
            with m.State("LAYER ENDS"):
                m.d.comb += self.busy.eq(1)
                with m.If(written):
                    m.d.sync += layer.eq(layer + 1)
                    m.next = "MULTIPLY"
                    with m.If(layer == LAYERS - 1):
                        m.d.comb += self.done.eq(1)
                        m.next = "IDLE"
        return m

    def _multiply(self, m: Module, valid: Signal, first: Signal, x: Value, weights: Sram, biases: Sram) -> list[Signal]:
        """Add activation times weight to each lane's sum; the first product of a block is added to the bias."""
        sums = []
        for lane in range(self.lanes):
            total = Signal(signed(self.sum_bits), name=f"sum{lane}")
            weight = weights.r_data.word_select(lane, WEIGHT_BITS).as_signed()
            bias = biases.r_data.word_select(lane, self.sum_bits).as_signed()
            with m.If(valid):
                m.d.sync += total.eq(Mux(first, bias, total) + x.as_signed() * weight)
            sums.append(total)
        return sums

    def _way_out(
        self, m: Module, layer: Signal, block: Signal, take: Signal, sums: list[Signal], banks: list[Sram]
    ) -> tuple[Signal, Value]:
        """Let a finished block leave one by one; return how many of its sums are left, and whether all are written."""
        left, place = Signal(range(self.lanes + 1)), Signal(range(max(*self.widths, 2)))
        leaving = [Signal(signed(self.sum_bits), name=f"leaving{lane}") for lane in range(self.lanes)]
        sizes = [[min(self.lanes, width - k * self.lanes) for k in range(count)]
                 for width, count in zip(self.widths[1:], self.blocks, strict=True)]  # fmt: skip
        size = Array(
            Array(Const(one, range(self.lanes + 1)) for one in (row + [0] * max(self.blocks))[: max(self.blocks)])
            for row in sizes
        )[layer][block]
        m.d.sync += [one.eq(following) for one, following in pairwise(leaving)]
        with m.If(left != 0):
            m.d.sync += [left.eq(left - 1), place.eq(place + 1)]
        with m.If(take):
            m.d.sync += [*(one.eq(total) for one, total in zip(leaving, sums, strict=True)), left.eq(size)]
            with m.If(block == 0):
                m.d.sync += place.eq(0)
        going = left != 0
        size, negative = self._shifted(m, layer, leaving[0])
        writes: Value = going
        at, written = place, left == 0
        if self._between:
            writes, at = Signal(name="writes"), Signal.like(place, name="write_place")
            later, was_negative = Signal.like(size, name="write_size"), Signal(name="write_negative")
            m.d.sync += [writes.eq(going & (layer != LAYERS - 1)), at.eq(place)]
            m.d.sync += [later.eq(size), was_negative.eq(negative)]
            size, negative, written = later, was_negative, (left == 0) & ~writes
        value = self._activation(m, layer, size, negative)
        for number, bank in enumerate(banks):
            with m.If(writes & (layer[0] != number) & (layer != LAYERS - 1)):
                m.d.comb += [bank.w_en.eq(1), bank.w_addr.eq(at), bank.w_data.eq(value)]
        best = Signal(signed(self.sum_bits))
        m.d.comb += [self.advantage.eq(leaving[0]), self.advantage_valid.eq(going & (layer == LAYERS - 1))]
        with m.If(self.advantage_valid & ((place == 0) | (leaving[0] > best))):
            m.d.sync += [best.eq(leaving[0]), self.action.eq(place)]
        return left, written

    def _shifted(self, m: Module, layer: Signal, total: Signal) -> tuple[Signal, Value]:
        """Shift a sum, rounded: its size, at most that of the end of the table, and whether it is negative."""
        most = (TABLE_END << self._between) - 1
        shift = Array(self.shifts.word_select(k, SHIFT_BITS) for k in (0, 1, 2, 2))[layer]
        half = Signal(unsigned(self.sum_bits))
        shifted = Signal(signed(self.sum_bits + 1))
        m.d.comb += [half.eq((Const(1, unsigned(self.sum_bits)) << shift) >> 1)]
        m.d.comb += shifted.eq((total + half.as_signed()) >> shift)
        negative = shifted < 0
        size = Signal(range(most + 1))
        far = (shifted > most) | (shifted < -most)
        m.d.comb += size.eq(Mux(far, most, Mux(negative, -shifted, shifted)))
        return size, negative

    def _activation(self, m: Module, layer: Signal, size: Signal, negative: Value) -> Value:
        """Look a shifted sum up in the table of tanh, or limit it to 0 … 255 and take 128 off (more with more bits)."""
        between, fraction = self._between, self.activation_bits - 1
        largest, table = (2 << fraction) - 1, tanh_table(fraction)
        looked_up: Value = Array(Const(one, unsigned(fraction)) for one in table[:TABLE_END])[size[between:]]
        if between:
            steps = [following - one for one, following in pairwise(table)]
            step = Array(Const(one, range(max(steps) + 1)) for one in steps)[size[between:]]
            line = Signal(unsigned(fraction))
            m.d.comb += line.eq(looked_up + ((step * size[:between] + (1 << between - 1)) >> between))
            looked_up = line
        turned = Mux(negative, -looked_up, looked_up)
        limited = Mux(negative, 0, Mux(size > largest, largest, size))[: fraction + 1] ^ (1 << fraction)
        value = Signal(signed(self.activation_bits))
        m.d.comb += value.eq(Mux(layer == HEAD, limited.as_signed(), turned))
        return Cat(value)
