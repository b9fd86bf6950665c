"""Packets and pauses of the benches with AXI-Stream."""

import random
from collections.abc import Iterator

from cocotbext.axi import AxiStreamFrame


def pauses(rng: random.Random, share: float) -> Iterator[bool]:
    """Yield whether a stream pauses, cycle by cycle: long rests and single cycles."""
    while True:
        rest = rng.random() < share / 4
        for _ in range(rng.randint(5, 60) if rest else 1):
            yield rest or rng.random() < share


def random_frame(
    rng: random.Random, size: int, longest: int, dest: int, wrong: int, user_bits: int
) -> tuple[AxiStreamFrame, str]:
    """Return a packet for `dest`, and what becomes of it in its adapter: good, long, malformed.

    `size`: bytes of a beat; `longest`: of a packet; `wrong`: another destination, which some change to on their way.
    """
    length = rng.choice([1, size, longest, longest + 1, rng.randint(1, longest), rng.randint(1, longest)])
    frame = AxiStreamFrame(rng.randbytes(length), tdest=dest, tuser=rng.getrandbits(user_bits))
    if length > longest:
        return frame, "long"
    if length > 1 and rng.random() < 0.1:
        frame.tkeep = [1] * length
        frame.tkeep[rng.randrange(length - 1)] = 0
        return frame, "malformed"
    if length > size and rng.random() < 0.05:
        frame.tdest = [dest] * size + [wrong] * (length - size)
        return frame, "malformed"
    return frame, "good"
