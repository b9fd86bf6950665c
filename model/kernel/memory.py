"""Pointers for the kernels: the whole state of a network is passed as one pointer to its `NET` record.

A tuple of fifty arrays would be copied (350 words) at every call of a small function; a record of addresses costs one
word. Only `build` fills in addresses, and `NetState` keeps the arrays behind them alive.
"""

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _pointer_to(element: types.Type) -> Any:
    """Intrinsic: address (int64) → pointer to `element`, indexable like an array."""

    @intrinsic
    def pointer(_typing: Any, _address: Any) -> Any:
        signature = types.CPointer(element)(types.int64)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(sig.return_type))

        return signature, generate

    return pointer


def record_reader(record: Any) -> Any:
    """Intrinsic: (address, index) → record number `index` of the array at `address`, as a reference."""
    size = record.size

    @intrinsic
    def read(_typing: Any, _address: Any, _index: Any) -> Any:
        signature = record(types.int64, types.int64)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            offset = builder.mul(args[1], ir.Constant(cgutils.intp_t, size))
            return builder.inttoptr(builder.add(args[0], offset), context.get_value_type(sig.return_type))

        return signature, generate

    return read


if TYPE_CHECKING:  # see `bits.trailing_zeros`

    def prefetch(address: Any) -> None:
        """Start to load a cache line."""
else:

    @intrinsic
    def prefetch(_typing: Any, _address: Any) -> Any:
        """Start to load the cache line at an address (int64): thousands of routers do not fit into the first caches."""
        signature = types.void(types.int64)

        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
            kind = ir.FunctionType(ir.VoidType(), [pointer.type, *[ir.IntType(32)] * 3])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
            # write, keep in all levels, data
            builder.call(function, [pointer, *(ir.Constant(ir.IntType(32), k) for k in (1, 3, 1))])

        return signature, generate


def function_at(signature: Any) -> Any:
    """Intrinsic: (address, arguments …) → what the C function of this numba `signature` at the address returns.

    Optional parts of the kernel are called so: their address is a setting of the network (0: absent), they compile on
    their own, and the kernel costs nothing more where they are not used.
    """

    @intrinsic
    def call(_typing: Any, _address: Any, *_arguments: Any) -> Any:
        typed = signature.return_type(types.int64, types.StarArgTuple(signature.args))

        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            given = [context.get_value_type(one) for one in signature.args]
            kind = ir.FunctionType(context.get_value_type(signature.return_type), given)
            return builder.call(builder.inttoptr(args[0], kind.as_pointer()), cgutils.unpack_tuple(builder, args[1]))

        return typed, generate

    return call


int8s = _pointer_to(types.uint8)
int32s = _pointer_to(types.int32)
int64s = _pointer_to(types.int64)
words = _pointer_to(types.uint64)
floats = _pointer_to(types.float64)
singles = _pointer_to(types.float32)
