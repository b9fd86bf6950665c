"""The serial line and the bus behind it, against the golden link."""

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st

from hopforge.hw.buses.uart import UartReceiver, UartTransmitter
from hopforge.hw.buses.uart_bus import UartBus
from hopforge.model.board.golden_link import GoldenLink
from hopforge.model.board.protocol import Command, Request, encode_request

DIVISOR = 4
REST, GAP = "rest", "gap"


@pytest.mark.parametrize("part", [UartReceiver, UartTransmitter])
def test_a_bit_has_four_cycles_at_least(part):
    with pytest.raises(ValueError, match="divisor must be at least 4 cycles, not 3"):
        part(divisor=3)


def levels(data, stop=1, divisor=DIVISOR):
    """Levels of the line, a cycle each."""
    bits = [0, *(data >> bit & 1 for bit in range(8)), stop]
    return [bit for bit in bits for _ in range(divisor)]


def run(part, driven, read, cycles):
    """Drive `driven` (signal, levels) and then 1; return what `read` gives in every cycle."""
    signal, row = driven
    seen = []

    async def bench(ctx):
        for cycle in range(cycles):
            ctx.set(signal, row[cycle] if cycle < len(row) else 1)
            seen.append(read(ctx))
            await ctx.tick()

    sim = Simulator(part)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    return seen


@settings(max_examples=5, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 255), st.booleans(), st.integers(0, 9)), min_size=1, max_size=6), st.data())
def test_receiver(words, data):
    divisor = data.draw(st.integers(4, 7))
    row = [1] * 5
    for value, good, gap in words:
        row += levels(value, int(good), divisor) + [1] * (gap if good else gap + 2 * divisor)
    part = UartReceiver(divisor=divisor)

    def read(ctx):
        if ctx.get(part.valid):
            return ctx.get(part.data)
        return -1 if ctx.get(part.error) else None

    seen = [one for one in run(part, (part.line, row), read, len(row) + 3 * divisor) if one is not None]
    assert seen == [value if good else -1 for value, good, _ in words]


def test_a_pulse_shorter_than_half_a_bit_is_no_byte():
    part = UartReceiver(divisor=16)
    seen = run(part, (part.line, [0] * 5), lambda ctx: ctx.get(part.valid) | ctx.get(part.error), 400)
    assert not any(seen)


def test_transmitter_is_understood_by_eye():
    part = UartTransmitter(divisor=4)
    seen = []

    async def bench(ctx):
        ctx.set(part.data, 0xA3)
        ctx.set(part.valid, 1)
        assert ctx.get(part.ready)
        await ctx.tick()
        ctx.set(part.valid, 0)
        for _ in range(44):
            seen.append(ctx.get(part.line))
            await ctx.tick()
        assert ctx.get(part.ready)

    sim = Simulator(part)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    assert seen == [*levels(0xA3), 1, 1, 1, 1]


class Memory:
    """What stands behind the bus: words, and the reads of each address are counted."""

    def __init__(self):
        self.words = {}
        self.log = []

    def __call__(self, request):
        self.log.append(request)
        if request.command == Command.WRITE:
            self.words[request.address] = request.word
            return 0
        return self.words.get(request.address, request.address ^ 0xABCD1234)


def play(steps):
    """Send bytes, broken bytes and pauses to the hardware and to the golden link; return both sides' replies."""
    hardware, golden = Memory(), Memory()
    link = GoldenLink(golden)
    part = UartBus(divisor=DIVISOR)
    answers, expected = bytearray(), bytearray()

    async def memory(ctx):
        while True:
            _, _, we, re, addr, wdata = await ctx.tick().sample(part.we, part.re, part.addr, part.wdata)
            if we or re:
                assert we != re
                word = hardware(Request(Command.WRITE if we else Command.READ, addr, wdata if we else 0))
                ctx.set(part.rdata, word)

    async def listener(ctx):
        while True:
            await ctx.negedge(part.tx)
            await ctx.tick().repeat(DIVISOR + DIVISOR // 2 - 1)
            value = 0
            for bit in range(8):
                value |= ctx.get(part.tx) << bit
                await ctx.tick().repeat(DIVISOR)
            assert ctx.get(part.tx) == 1
            answers.append(value)

    async def bench(ctx):
        ctx.set(part.rx, 1)
        await ctx.tick().repeat(8)
        for step in steps:
            reply = None
            if step in (REST, GAP):
                await ctx.tick().repeat(DIVISOR * (1024 + 10 if step == GAP else 32 + 10))
                reply = link.gap() if step == GAP else link.rest()
            else:
                value, good = step
                for level in [*levels(value, int(good)), *([] if good else [1] * DIVISOR)]:
                    ctx.set(part.rx, level)
                    await ctx.tick()
                if good:
                    reply = link.byte(value)
                else:
                    link.framing_error()
            if reply is not None:
                expected.extend(reply)
                await ctx.tick().repeat(DIVISOR * 80 + 40)

    sim = Simulator(part)
    sim.add_clock(1e-6)
    sim.add_testbench(memory, background=True)
    sim.add_testbench(listener, background=True)
    sim.add_testbench(bench)
    sim.run()
    assert [(r.command, r.address) for r in hardware.log] == [(r.command, r.address) for r in golden.log]
    assert hardware.words == golden.words
    return bytes(answers), bytes(expected), golden


def frame(request, *, spoil=None):
    data = bytearray(encode_request(request))
    if spoil is not None:
        data[spoil] ^= 0x10
    return [(value, True) for value in data]


def test_reads_and_writes():
    steps = [*frame(Request(2, 0x123456, 0xDEADBEEF)), *frame(Request(1, 0x123456)), *frame(Request(1, 7))]
    answers, expected, golden = play(steps)
    assert answers == expected
    assert [int.from_bytes(answers[at + 2 : at + 6], "little") for at in (0, 7, 14)] == [0, 0xDEADBEEF, 7 ^ 0xABCD1234]
    assert golden.words == {0x123456: 0xDEADBEEF}


@pytest.mark.parametrize("spoil", range(1, 10))
def test_a_wrong_bit_anywhere_is_found_and_nothing_is_written(spoil):
    answers, expected, golden = play([*frame(Request(2, 5, 6), spoil=spoil), REST, *frame(Request(1, 5))])
    assert answers == expected
    assert answers[1] == 1
    assert not golden.words


def test_unknown_command_time_out_and_framing():
    good = frame(Request(1, 9))
    broken = [*frame(Request(2, 5, 6))[:4], (0x55, False), *frame(Request(2, 5, 6))[5:], REST]
    steps = [*frame(Request(9, 5)), REST, *good, *good[:6], GAP, *good, *broken, *good, (1, True), (0x77, False), *good]
    answers, expected, golden = play(steps)
    assert answers == expected
    assert [answers[at + 1] for at in range(0, len(answers), 7)] == [2, 0, 3, 0, 4, 0, 0]
    assert not golden.words


@settings(max_examples=4, deadline=None)
@given(st.data())
def test_any_bytes(data):
    steps = []
    for _ in range(data.draw(st.integers(1, 4))):
        request = Request(data.draw(st.integers(0, 3)), data.draw(st.integers(0, 5)), data.draw(st.integers(0, 99)))
        part = frame(request, spoil=data.draw(st.none() | st.integers(0, 9)))
        part = part[: data.draw(st.sampled_from([10, 10, 10, 3, 9]))]
        if data.draw(st.booleans()):
            part.insert(
                data.draw(st.integers(0, len(part))), (data.draw(st.integers(0, 255)), data.draw(st.booleans()))
            )
        steps += [*part, data.draw(st.sampled_from([REST, REST, REST, GAP]))]
    answers, expected, _ = play(steps)
    assert answers == expected
