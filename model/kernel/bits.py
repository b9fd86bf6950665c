"""Bit tricks of the kernels: the lowest set bit, and the round-robin choice on a mask."""

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import int64, types, uint64
from numba.extending import intrinsic

from hopforge.model.kernel.compile import inlined, inner

if TYPE_CHECKING:  # an intrinsic is declared by its types and called with its values: checkers see the call

    def trailing_zeros(mask: Any) -> int:
        """Count the zeros below the lowest set bit."""
else:

    @intrinsic
    def trailing_zeros(_typing: Any, _mask: Any) -> Any:
        """Return the number of the lowest set bit of a uint64 (64 for zero): one machine instruction."""
        signature = types.int64(types.uint64)

        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

        return signature, generate


@inlined
def bit_of(number: int) -> Any:
    """Mask with the bit `number` modulo 64."""
    return uint64(1) << (uint64(number) & uint64(63))


@inlined
def first_at_or_after(mask: Any, pointer: int) -> int:
    """First set bit of `mask` at or after `pointer`, going round (mask must not be 0; pointer < 64)."""
    upper = (uint64(mask) >> uint64(pointer)) << uint64(pointer)
    return trailing_zeros(upper if upper != uint64(0) else uint64(mask))


@inlined
def bits_at(masks: Any, first: int, count: int) -> Any:
    """Bits `first` … `first` + `count` − 1 (at most 64) of a row of words."""
    word, shift = first >> 6, first & 63
    mask = masks[word] >> uint64(shift)
    if shift + count > 64:
        mask |= masks[word + 1] << uint64(64 - shift)
    return mask & (~uint64(0) >> uint64(64 - count))


@inlined
def bits_between(mask: Any, word: int, first: int, last: int) -> Any:
    """Of word number `word` of a row of bits those from bit `first` of the row up to, but without, bit `last`."""
    if word == first >> 6:
        mask = (mask >> uint64(first & 63)) << uint64(first & 63)
    if word == (last - 1) >> 6:
        mask &= ~uint64(0) >> uint64(63 - ((last - 1) & 63))
    return mask


@inner
def first_of_words(masks: Any, first: int, count: int, start: int) -> Any:
    """First set bit at or after bit `start`, going round, of a mask of `count` words from ``masks[first]`` on."""
    word = start >> 6
    found = (masks[first + word] >> uint64(start & 63)) << uint64(start & 63)
    for _ in range(count):
        if found != uint64(0):
            break
        word = word + 1 if word + 1 < count else 0
        found = masks[first + word]
    return int64((word << 6) + trailing_zeros(found))


@inlined
def first_of_mask(masks: Any, first: int, count: int, start: int) -> int:
    """As `first_of_words` for a mask that has a bit; one word takes no loop."""
    if count == 1:
        return first_at_or_after(masks[first], start)
    return int64(first_of_words(masks, first, count, start))


@inner
def first_without(masks: Any, first: int, without: Any, count: int, start: int) -> Any:
    """As `first_of_words` for the bits that the mask `without` does not have; −1: there are none."""
    word = start >> 6
    found = ((masks[first + word] & ~without[word]) >> uint64(start & 63)) << uint64(start & 63)
    for _ in range(count):
        if found != uint64(0):
            break
        word = word + 1 if word + 1 < count else 0
        found = masks[first + word] & ~without[word]
    return int64((word << 6) + trailing_zeros(found)) if found != uint64(0) else int64(-1)


@inner
def any_bit(masks: Any, first: int, count: int) -> bool:
    """Whether a mask of `count` words from ``masks[first]`` on has a bit."""
    found = uint64(0)
    for k in range(first, first + count):
        found |= masks[k]
    return bool(found != uint64(0))
