"""Replacement policies against lists, a walked tree, a counter and a shift register."""

from collections.abc import Iterator

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.hw.cache.replacement import Replacement, state_bits


class LruList:
    def __init__(self, ways: int) -> None:
        self.order = list(range(ways))

    def victim(self) -> int:
        return self.order[0]

    def touch(self, way: int) -> None:
        self.order.remove(way)
        self.order.append(way)


class PlruTree:
    """Nested pairs: [points right, left subtree, right subtree], a leaf is None."""

    def __init__(self, ways: int) -> None:
        self.ways = ways
        self.root = self.build(ways)

    def build(self, ways: int) -> list | None:
        return None if ways == 1 else [False, self.build(ways // 2), self.build(ways // 2)]

    def victim(self) -> int:
        node, low, span = self.root, 0, self.ways
        while node is not None:
            span //= 2
            low += span * node[0]
            node = node[1 + node[0]]
        return low

    def touch(self, way: int) -> None:
        node, low, span = self.root, 0, self.ways
        while node is not None:
            span //= 2
            right = way >= low + span
            low += span * right
            node[0] = not right
            node = node[1 + right]


class FifoCounter:
    def __init__(self, ways: int) -> None:
        self.ways, self.pointer = ways, 0

    def victim(self) -> int:
        return self.pointer

    def touch(self, way: int) -> None:
        if way == self.pointer:
            self.pointer = (way + 1) % self.ways


ORACLES = {"lru": LruList, "plru": PlruTree, "fifo": FifoCounter}
WAYS = (1, 2, 3, 4, 5, 8, 16)
CASES = [(policy, ways) for policy in ORACLES for ways in WAYS if policy != "plru" or not ways & ways - 1]


def simulate(dut: Replacement, bench) -> None:
    simulator = Simulator(dut)
    if dut.has_step:
        simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize(("policy", "ways"), CASES)
def test_follows_the_oracle(policy: str, ways: int) -> None:
    dut, oracle = Replacement(policy=policy, ways=ways), ORACLES[policy](ways)
    rng = np.random.default_rng(ways)

    async def bench(ctx):
        state = 0
        for _ in range(200):
            if dut.state_bits:
                ctx.set(dut.state, state)
            assert ctx.get(dut.victim) == 1 << oracle.victim()
            if dut.state_bits:
                ctx.set(dut.touch, 0)
                assert ctx.get(dut.next_state) == state
                way = int(rng.integers(ways))
                ctx.set(dut.touch, 1 << way)
                oracle.touch(way)
                state = ctx.get(dut.next_state)

    simulate(dut, bench)


def shift_register(seed: int) -> Iterator[int]:
    """Fibonacci register of 16 bits, taps 16, 15, 13, 4, as a list of bits from bit 0."""
    bits = [seed >> n & 1 for n in range(16)]
    while True:
        yield sum(bit << n for n, bit in enumerate(bits))
        bits = [(bits[16 - 1] + bits[15 - 1] + bits[13 - 1] + bits[4 - 1]) % 2, *bits[:-1]]


@pytest.mark.parametrize("ways", [2, 3, 4, 7])
def test_random_draws(ways: int) -> None:
    dut, register = Replacement(policy="random", ways=ways, seed=0xBEEF), shift_register(0xBEEF)

    async def bench(ctx):
        value = next(register)
        for cycle in range(300):
            assert ctx.get(dut.victim) == 1 << int(value / 65536 * ways)
            ctx.set(dut.step, cycle % 3 != 0)
            if cycle % 3:
                value = next(register)
            await ctx.tick()

    simulate(dut, bench)


def test_shift_register_has_full_period() -> None:
    register = shift_register(1)
    assert len({next(register) for _ in range(65535)}) == 65535


@pytest.mark.parametrize(("policy", "ways", "bits"), [("lru", 4, 6), ("plru", 8, 7), ("fifo", 5, 3), ("random", 4, 0)])
def test_state_bits(policy: str, ways: int, bits: int) -> None:
    assert state_bits(policy, ways) == bits


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"policy": "mru", "ways": 4}, "policy must be one of lru, plru, fifo, random, not 'mru'"),
        ({"policy": "lru", "ways": 0}, "ways must be at least 1, not 0"),
        ({"policy": "plru", "ways": 6}, "ways must be a power of two for policy plru, not 6"),
        ({"policy": "random", "ways": 4, "seed": 0}, "seed must be between 1 and 65535, not 0"),
    ],
)
def test_bad_parameters(parameters: dict, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Replacement(**parameters)
