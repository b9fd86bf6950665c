"""A CRC of a fixed-width word as one level of XOR trees."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib.wiring import Component, In, Out

__all__ = ["CrcHash", "masked_parities"]


def masked_parities(word: Value, masks: Sequence[int], constant: int = 0) -> Value:
    """Parity of `word & mask` for every mask, inverted where the bit of `constant` is set.

    Parameters
    ----------
    word : Value
        The input word.
    masks : sequence of int
        One input mask per output bit, output bit 0 first.
    constant : int
        The output for an input of zero.

    Returns
    -------
    Value
        ``len(masks)`` bits.
    """
    return Cat(*((word & mask).xor() ^ (constant >> bit & 1) for bit, mask in enumerate(masks)))


class CrcHash(Component):
    """CRC (or any affine GF(2) map) of a word, combinational.

    A CRC of a word of fixed width is an affine map over GF(2): every output bit is the parity of some input bits,
    perhaps inverted. Written so, synthesis balances the trees; it does not balance the chain of a serial CRC.

    Latency 0, one result per cycle, no state.

    Parameters
    ----------
    width_bits : int
        Width of the input word.
    masks : sequence of int
        Input mask per output bit, output bit 0 first; a set index takes only the low rows of a CRC's matrix.
    constant : int
        The output for an input of zero.

    Raises
    ------
    ValueError
        If a mask or the constant does not fit.
    """

    data: Signal
    hash: Signal

    def __init__(self, *, width_bits: int, masks: Sequence[int], constant: int = 0) -> None:
        if width_bits < 1:
            raise ValueError(f"width_bits must be at least 1, not {width_bits}")
        for bit, mask in enumerate(masks):
            if not 0 <= mask < 1 << width_bits:
                raise ValueError(f"masks[{bit}] must be below 2**{width_bits}, not {mask:#x}")
        if not 0 <= constant < 1 << len(masks):
            raise ValueError(f"constant must be below 2**{len(masks)}, not {constant:#x}")
        self.width_bits = width_bits
        self.masks = tuple(masks)
        self.constant = constant
        super().__init__({"data": In(width_bits), "hash": Out(len(masks))})

    def elaborate(self, platform: object) -> Module:
        """Build the XOR trees."""
        m = Module()
        m.d.comb += self.hash.eq(masked_parities(self.data, self.masks, self.constant))
        return m
