"""LagMember against the remainder of a CRC or of the address."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hopforge.hw.keys.lag_member import LagMember
from hopforge.hw.keys.reduction_parameters import ReductionParameters
from hopforge.model.numbers.crc import crc_matrix


@pytest.mark.parametrize("functions", [("arbitrary",), ("arbitrary", "torus")])
def test_is_the_remainder(functions: tuple[str, ...]) -> None:
    masks, constant = crc_matrix("CRC-32C", 16)
    reduction = ReductionParameters(
        address_bits=16,
        chunk_bits=(4,),
        functions=functions,
        max_members=5,
        crc_masks=tuple(masks),
        crc_constant=constant,
    )
    dut = LagMember(reduction=reduction)
    rng = np.random.default_rng(3)

    def crc32c(dst: int) -> int:
        register = 0xFFFFFFFF
        for byte in dst.to_bytes(2, "big"):
            register ^= byte
            for _ in range(8):
                register = register >> 1 ^ 0x82F63B78 * (register & 1)
        return register ^ 0xFFFFFFFF

    async def bench(ctx):
        for _ in range(150):
            members, modulo, dst = int(rng.integers(7)), int(rng.integers(2)), int(rng.integers(1 << 16))
            ctx.set(dut.members, members)
            ctx.set(dut.member_hash, modulo)
            await ctx.tick()
            ctx.set(dut.dst, dst)
            used = members if 1 <= members <= 5 else 1
            assert ctx.get(dut.member) == (dst if modulo else crc32c(dst)) % used

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_bad_parameters() -> None:
    with pytest.raises(ValueError, match="max_members must be at least 2, not 1"):
        LagMember(reduction=ReductionParameters())
