"""NodeReduction against a digit-by-digit oracle written from spec/lookup.md, on Amaranth's simulator."""

from dataclasses import dataclass

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator

from hopforge.hw.keys.node_reduction import NodeReduction
from hopforge.hw.keys.reduction_parameters import MODES, ReductionParameters
from hopforge.hw.keys.reduction_setup import ReductionSetup


def crc32c(address: int, address_bits: int) -> int:
    """Bit-serial CRC-32C (reflected) over the address as big-endian bytes."""
    register = 0xFFFFFFFF
    for byte in address.to_bytes(-(-address_bits // 8), "big"):
        for bit in range(8):
            feedback = (register ^ (byte >> bit)) & 1
            register = (register >> 1) ^ (0x82F63B78 if feedback else 0)
    return register ^ 0xFFFFFFFF


def crc32c_masks(address_bits: int) -> tuple[tuple[int, ...], int]:
    """Matrix of CRC-32C from its values at the unit vectors."""
    constant = crc32c(0, address_bits)
    columns = [crc32c(1 << bit, address_bits) ^ constant for bit in range(address_bits)]
    return tuple(sum((columns[bit] >> row & 1) << bit for bit in range(address_bits)) for row in range(32)), constant


@dataclass(frozen=True)
class Setting:
    """Contents of the control registers."""

    mode: str
    chunk: int
    digits: int
    own: int
    radices: tuple[int, ...] = ()
    level: int = 0
    members: int = 1
    member_hash: int = 0
    up_choice: int = 0


def expected_key(p: ReductionParameters, s: Setting, dst: int) -> int:
    """The key by spec/lookup.md and docs/architecture.md."""
    width, A = s.chunk, p.address_bits

    def digit(word: int, number: int) -> int:
        return word >> number * width & (1 << width) - 1

    def encode(kind: int, value: int) -> int:
        member = (dst if s.member_hash else crc32c(dst, A)) % s.members
        return MODES.index(s.mode) << A | member << A - 4 | kind << A - 6 | value & (1 << A - 6) - 1

    if s.mode == "arbitrary":
        return dst
    if s.mode in ("mesh", "torus"):
        for i in range(s.digits):
            o, half = digit(dst, i) - digit(s.own, i), s.radices[i] // 2
            if o:
                plus = o > 0 if s.mode == "mesh" or abs(o) <= half else o < 0
                return encode(1 if plus else 2, i)
        return encode(0, digit(dst, s.digits) if p.terminals else 0)
    if s.mode == "fat_tree":
        wrong = [i for i in range(s.level, s.digits) if digit(dst, i + 1) != digit(s.own, i)]
        if not wrong:
            return encode(2, digit(dst, s.level))
        return encode(1, digit(dst, wrong[-1] if s.up_choice else s.level))
    if dst >> 2 * width != s.own >> 2 * width:
        return encode(2, dst >> 2 * width)
    if digit(dst, 1) != digit(s.own, 1):
        return encode(1, digit(dst, 1))
    return encode(0, digit(dst, 0))


def random_setting(rng: np.random.Generator, p: ReductionParameters) -> Setting:
    """Any register contents of a network that fits."""
    mode = str(rng.choice(p.functions))
    chunk = int(rng.choice(p.chunk_bits))
    most = p.digits(chunk)
    hash_, up = (
        int(rng.choice([_HASHES.index(h) for h in p.lag_hashes])),
        int(rng.choice([_UPS.index(u) for u in p.up_choices])),
    )
    members = int(rng.integers(1, p.max_members + 1))
    if mode == "fat_tree":
        dims = int(rng.integers(0, most))
        own = int(rng.integers(1 << chunk * dims)) if dims else 0
        return Setting(
            mode, chunk, dims, own, level=int(rng.integers(dims + 1)), members=members, member_hash=hash_, up_choice=up
        )
    if mode in ("mesh", "torus"):
        dims = int(rng.integers(1, most + 1))
        radices = tuple(int(k) for k in rng.integers(1, (1 << chunk) + 1, dims))
        own = sum(int(rng.integers(k)) << i * chunk for i, k in enumerate(radices))
        return Setting(mode, chunk, dims, own, radices, members=members, member_hash=hash_)
    return Setting(mode, chunk, 0, int(rng.integers(1 << p.address_bits)), members=members, member_hash=hash_)


_HASHES = ("crc", "modulo")
_UPS = ("d_mod_k", "highest_mismatch")


def random_destination(rng: np.random.Generator, p: ReductionParameters, s: Setting) -> int:
    """A destination of the network: each digit is the own one with probability 4/5 and more."""
    if s.mode in ("mesh", "torus"):
        dst = int(rng.integers(1 << p.address_bits - s.digits * s.chunk)) << s.digits * s.chunk
        for i, k in enumerate(s.radices):
            own = s.own >> i * s.chunk & (1 << s.chunk) - 1
            dst |= (own if rng.integers(5) else int(rng.integers(k))) << i * s.chunk
        return dst
    start = s.own << s.chunk if s.mode == "fat_tree" else s.own
    dst = start & (1 << p.address_bits) - 1
    for i in range(-(-p.address_bits // s.chunk)):
        if rng.integers(4) == 0:
            dst ^= int(rng.integers(1 << s.chunk)) << i * s.chunk
    return dst & (1 << p.address_bits) - 1


MASKS24, CONSTANT24 = crc32c_masks(24)

BUILDS = {
    "default": ReductionParameters(),
    "all": ReductionParameters(up_choices=_UPS, max_members=16, crc_masks=MASKS24, crc_constant=CONSTANT24),
    "modulo": ReductionParameters(max_members=5, lag_hashes=("modulo",)),
    "six comparators": ReductionParameters(comparators=6),
    "mesh": ReductionParameters(functions=("mesh",), chunk_bits=(3,)),
    "grid": ReductionParameters(functions=("mesh", "torus"), address_bits=30, chunk_bits=(6,)),
    "two": ReductionParameters(functions=("torus", "fat_tree"), chunk_bits=(4, 6)),
    "mesh or not": ReductionParameters(functions=("mesh", "arbitrary")),
    "torus 48": ReductionParameters(
        address_bits=48, functions=("torus",), chunk_bits=(8,), comparators=6, terminals=False
    ),
    "fat tree": ReductionParameters(functions=("fat_tree",), chunk_bits=(5,), address_bits=25, comparators=5),
    "highest": ReductionParameters(
        functions=("fat_tree", "arbitrary"), up_choices=("highest_mismatch",), address_bits=20, chunk_bits=(2, 6)
    ),
    "dragonfly": ReductionParameters(functions=("dragonfly",), address_bits=23, chunk_bits=(4, 6)),
    "arbitrary": ReductionParameters(functions=("arbitrary",)),
}

#: builds whose modes and widths others have, too
ALIKE = ("default", "torus 48", "six comparators")


@pytest.mark.parametrize(
    ("build", "registers"),
    [
        *((build, False) for build in BUILDS if build not in ALIKE),
        ("two", True),
        *(pytest.param(build, False, marks=pytest.mark.study) for build in ALIKE),
        *(pytest.param(build, True, marks=pytest.mark.study) for build in ("grid", "torus 48")),
    ],
)
@pytest.mark.thinned(2)
def test_keys_equal_the_definition(build, registers):
    """With registers on the way of the intervals after two edges."""
    p = BUILDS[build]
    rng = np.random.default_rng(7)
    m = Module()
    m.submodules.setup = setup = ReductionSetup(p, registers=registers)
    m.submodules.dut = dut = NodeReduction(p)
    m.d.comb += dut.active.eq(setup.active)
    seen = set()

    async def bench(ctx):
        for _ in range(50):
            s = random_setting(rng, p)
            radix = list(s.radices) + [int(k) for k in rng.integers(0, 1 << p.widest, p.most_digits - len(s.radices))]
            ctx.set(
                setup.shadow,
                {
                    "mode": MODES.index(s.mode),
                    "chunk_select": p.chunk_bits.index(s.chunk),
                    "digits": s.digits,
                    "level": s.level,
                    "own": s.own,
                    "radix": radix,
                    "members": s.members,
                    "member_hash": s.member_hash,
                    "up_choice": s.up_choice,
                },
            )
            if registers:
                await ctx.tick().repeat(2)
            for _ in range(25):
                dst = random_destination(rng, p, s)
                ctx.set(dut.dst, dst)
                await ctx.delay(1e-9)
                key = ctx.get(dut.key)
                assert key == expected_key(p, s, dst), (s, hex(dst))
                assert ctx.get(dut.payload) == key & (1 << p.address_bits) - 1
                seen.add((s.mode, key >> p.address_bits - 6 & 3 if s.mode != "arbitrary" else 0))

    simulator = Simulator(m)
    if registers:
        simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    kinds = {"arbitrary": {0}, "mesh": {0, 1, 2}, "torus": {0, 1, 2}, "fat_tree": {1, 2}, "dragonfly": {0, 1, 2}}
    assert {(mode, kind) for mode in p.functions for kind in kinds[mode]} <= seen


def test_a_mode_that_is_not_built_is_arbitrary():
    p = ReductionParameters(functions=("arbitrary", "mesh"))
    m = Module()
    m.submodules.setup = setup = ReductionSetup(p)
    m.submodules.dut = dut = NodeReduction(p)
    m.d.comb += dut.active.eq(setup.active)

    async def bench(ctx):
        for mode in (0, 2, 3, 4, 7):
            ctx.set(setup.shadow, {"mode": mode, "chunk_select": 0, "digits": 6, "own": 0x123456, "radix": [16] * 12})
            ctx.set(dut.dst, 0xABCDEF)
            await ctx.delay(1e-9)
            assert ctx.get(dut.key) == 0xABCDEF

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"address_bits": 6}, "address_bits must be at least 7, not 6"),
        ({"chunk_bits": ()}, "chunk_bits must name at least one width and none twice, not ()"),
        ({"chunk_bits": (4, 4)}, "chunk_bits must name at least one width and none twice, not (4, 4)"),
        ({"chunk_bits": (8,), "address_bits": 12}, "chunk_bits must be in 1..6 for address_bits=12, not 8"),
        (
            {"functions": ("ring",)},
            "functions must be among arbitrary, mesh, torus, fat_tree, dragonfly, expression, not 'ring'",
        ),
        ({"up_choices": ("random",)}, "up_choices must be among d_mod_k, highest_mismatch, not 'random'"),
        ({"lag_hashes": ()}, "up_choices and lag_hashes must not be empty"),
        ({"comparators": 0}, "comparators must be at least 1, not 0"),
        ({"max_members": 17}, "max_members must be in 1..16, not 17"),
        ({"max_members": 2}, "crc_masks must be given for lag_hashes 'crc' with max_members above 1"),
    ],
)
def test_bad_parameters(wrong, message):
    with pytest.raises(ValueError) as error:
        ReductionParameters(**wrong)
    assert str(error.value) == message
