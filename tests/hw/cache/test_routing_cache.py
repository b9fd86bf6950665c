"""RoutingCache against a dictionary-like oracle, with back-to-back operations on the same row."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.hw.cache.routing_cache import RoutingCache


@dataclass
class Line:
    valid: bool = False
    epoch: int = 0
    key: int = 0
    output: int = 0


@dataclass
class Oracle:
    """The rules of the class docstring, one operation after the other; victims are chosen by their age."""

    dut: RoutingCache
    lines: dict[tuple[int, int], Line] = field(default_factory=dict)
    touched: dict[tuple[int, int], int] = field(default_factory=dict)
    pointer: dict[int, int] = field(default_factory=dict)
    clock: int = 0

    def rows(self, index: int) -> list[tuple[int, int]]:
        """(way, row) of every way."""
        bits = self.dut.row_bits
        rows = [(way, index >> way * bits * self.dut.skewed & (1 << bits) - 1) for way in range(self.dut.ways)]
        return [(way, row % self.dut.sets) for way, row in rows]

    def at(self, place: tuple[int, int]) -> Line:
        return self.lines.setdefault(place, Line())

    def find(self, index: int, key: int, epoch: int) -> tuple[int, int] | None:
        for place in self.rows(index):
            line = self.at(place)
            if line.valid and line.epoch == epoch and line.key == key:
                return place
        return None

    def touch(self, place: tuple[int, int]) -> None:
        self.clock += 1
        self.touched[place] = self.clock

    def fill(self, index: int, key: int, epoch: int, output: int) -> tuple[bool, bool]:
        """(filled, evicted)."""
        found = self.find(index, key, epoch)
        if found:
            self.touch(found)
            return False, False
        places = self.rows(index)
        dead = [place for place in places if not (self.at(place).valid and self.at(place).epoch == epoch)]
        if dead:
            victim = dead[0]
        elif self.dut.policy == "fifo":
            victim = places[self.pointer.get(places[0][1], 0)]
        else:
            victim = min(places, key=lambda place: (self.touched.get(place, 0), place))
        if self.pointer.get(victim[1], 0) == victim[0]:
            self.pointer[victim[1]] = (victim[0] + 1) % self.dut.ways
        self.lines[victim] = Line(True, epoch, key, output)
        self.touch(victim)
        return True, not dead


CASES = [
    {"sets": 4, "ways": 2, "policy": "lru"},
    {"sets": 2, "ways": 3, "policy": "lru"},
    {"sets": 1, "ways": 4, "policy": "fifo"},
    {"sets": 8, "ways": 1, "policy": "lru"},
    {"sets": 2, "ways": 3, "policy": "fifo", "asynchronous": True},
    {"sets": 4, "ways": 4, "policy": "lru", "asynchronous": True},
    {"sets": 1, "ways": 2, "policy": "plru"},
]


def build(**parameters) -> RoutingCache:
    return RoutingCache(
        **({"skewed": False, "key_bits": 6, "tag_bits": 9, "output_bits": 5, "epoch_bits": 2} | parameters)
    )


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.thinned(2)
def test_follows_the_oracle(case: dict, stall: float) -> None:
    dut = build(**case)
    oracle = Oracle(dut)
    rng = np.random.default_rng(len(str(case)))
    kinds = ("lookup", "fill", "fill", "invalidate", "scrub", "nothing")
    seen = dict.fromkeys(("present", "filled", "evicted"), 0)

    def draw() -> tuple[str, int, int]:
        key = int(rng.integers(20))
        return str(rng.choice(kinds)), key, key % dut.sets

    async def bench(ctx):
        epoch, stage_c = 0, None
        upcoming = draw()
        for _ in range(1500):
            if dut.asynchronous:
                stage_c = upcoming
            held = stage_c is not None and rng.random() < stall
            if not dut.asynchronous:
                ctx.set(dut.read, not held)
                ctx.set(dut.read_index, upcoming[2])
                ctx.set(dut.same_row, stage_c is not None and stage_c[2] == upcoming[2])
            for name in ("lookup", "fill", "invalidate", "scrub"):
                ctx.set(getattr(dut, name), 0)
            if rng.random() < 0.02:
                epoch = (epoch + 1) % 4
            ctx.set(dut.epoch, epoch)
            if stage_c is not None:
                kind, key, index = stage_c
                output = int(rng.integers(32))
                ctx.set(dut.index, index)
                ctx.set(dut.key, key)
                ctx.set(dut.fill_output, output)
                place = oracle.find(index, key, epoch)
                assert ctx.get(dut.present) == (place is not None)
                if place:
                    assert ctx.get(dut.output) == oracle.at(place).output
                    seen["present"] += 1
                if not held and kind != "nothing":
                    ctx.set(getattr(dut, kind), 1)
                    filled = evicted = False
                    if kind == "lookup" and place:
                        oracle.touch(place)
                    elif kind == "fill":
                        filled, evicted = oracle.fill(index, key, epoch, output)
                    elif kind == "invalidate" and place:
                        oracle.at(place).valid = False
                    elif kind == "scrub":
                        for other in oracle.rows(index):
                            oracle.at(other).valid &= oracle.at(other).epoch == epoch
                    assert (ctx.get(dut.filled), ctx.get(dut.evicted)) == (filled, evicted)
                    seen["filled"] += filled
                    seen["evicted"] += evicted
            await ctx.tick()
            if not held:
                stage_c = upcoming
                upcoming = draw()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert all(seen.values()), seen


def test_line_is_twelve_bytes_by_default() -> None:
    dut = RoutingCache(
        sets=512, ways=4, policy="lru", skewed=False, key_bits=28, tag_bits=64, output_bits=16, epoch_bits=8
    )
    assert dut.line_bits == 96


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"sets": 3, "ways": 2, "policy": "lru"}, "sets must be a power of two, not 3"),
        ({"sets": 0, "ways": 2, "policy": "lru"}, "sets must be a power of two, not 0"),
        ({"sets": 4, "ways": 3, "policy": "plru"}, "ways must be a power of two for policy plru, not 3"),
        ({"sets": 4, "ways": 2, "policy": "lru", "skewed": True}, "policy must be random for a skewed cache"),
        ({"sets": 4, "ways": 2, "policy": "lru", "key_bits": 0}, "key_bits must be at least 1, not 0"),
        ({"sets": 4, "ways": 2, "policy": "lru", "tag_bits": 5}, "tag_bits must be at least key_bits=6, not 5"),
        ({"sets": 4, "ways": 2, "policy": "lru", "output_bits": 0}, "output_bits must be at least 1, not 0"),
        ({"sets": 4, "ways": 2, "policy": "lru", "epoch_bits": 16}, "epoch_bits must be between 1 and 15, not 16"),
    ],
)
def test_bad_parameters(parameters: dict, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        build(**parameters)
