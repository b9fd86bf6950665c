"""Bit tricks of the kernels: the lowest set bit, and the round-robin choice on a mask."""

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types, uint64
from numba.extending import intrinsic

from hopforge.model.network.cache import inlined

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
