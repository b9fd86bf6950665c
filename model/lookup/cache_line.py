"""The 12 bytes of a line of the routing cache."""

from typing import NamedTuple

__all__ = ["LINE_BYTES", "RESERVED_BITS", "Line", "pack_line", "unpack_line"]

TAG_BITS, OUTPUT_BITS, RESERVED_BITS = 64, 16, 16
LINE_BYTES = (TAG_BITS + OUTPUT_BITS + RESERVED_BITS) // 8


class Line(NamedTuple):
    """One line of the cache.

    Attributes
    ----------
    tag : int
        The key, zero-extended to 64 bits.
    output : int
        Output port, or a bit for each allowed port.
    valid : bool
        Whether the line holds anything.
    epoch : int
        Epoch in which it was filled; the line is live if that is the current one.
    """

    tag: int
    output: int
    valid: bool
    epoch: int


def pack_line(line: Line) -> int:
    """Return the 12 bytes of a line as an integer: tag [63:0], output [79:64], epoch from bit 80, valid bit 95.

    Raises
    ------
    ValueError
        If a field does not fit.

    Examples
    --------
    >>> hex(pack_line(Line(tag=0x2000001, output=3, valid=True, epoch=5)))
    '0x800500030000000002000001'
    """
    for name, bits in (("tag", TAG_BITS), ("output", OUTPUT_BITS), ("epoch", RESERVED_BITS - 1)):
        if not 0 <= getattr(line, name) < 1 << bits:
            raise ValueError(f"{name} must be less than 2^{bits}, not {getattr(line, name):#x}")
    reserved = line.valid << (RESERVED_BITS - 1) | line.epoch
    return (reserved << OUTPUT_BITS | line.output) << TAG_BITS | line.tag


def unpack_line(image: int) -> Line:
    """Return the line that `pack_line` packed.

    Raises
    ------
    ValueError
        If `image` has more than 96 bits.
    """
    if not 0 <= image < 1 << 8 * LINE_BYTES:
        raise ValueError(f"image must be less than 2^{8 * LINE_BYTES}, not {image:#x}")
    reserved = image >> TAG_BITS + OUTPUT_BITS
    return Line(
        tag=image & (1 << TAG_BITS) - 1, output=image >> TAG_BITS & (1 << OUTPUT_BITS) - 1,
        valid=bool(reserved >> RESERVED_BITS - 1), epoch=reserved & (1 << RESERVED_BITS - 1) - 1,
    )  # fmt: skip
