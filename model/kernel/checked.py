"""Arrays for functions that we did not write: every index is checked, and a wrong one is an exception with its line.

A function of a user's file gets `CheckedArray` in place of the bare pointers of our own kernels. `call_checked` calls
it and hands back what it returned and what it raised.
"""

import ctypes
import operator
import pickle
import sys
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.errors import NumbaError
from numba.core.imputils import lower_builtin
from numba.core.lowering import BaseLower
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, register_model

#: bits of an entry in which an array with `lines` notes the line that wrote it (1 …); the value has the others
LINE_BITS = 13
VALUE_BITS = 50
UNKNOWN_LINE = (1 << LINE_BITS) - 1


class CheckedArray(types.Type):  # type: ignore[misc]
    """numba's type of an array with a known number of entries.

    Parameters
    ----------
    name : str
        For messages.
    element : numba type
        Of its entries.
    writable : bool
        Whether entries may be assigned.
    lines : bool
        Whether an entry (int64, 0 … 2^`VALUE_BITS` − 1) keeps in its highest bits the line that wrote it.
    """

    def __init__(self, name: str, element: types.Type, *, writable: bool, lines: bool = False) -> None:
        self.label, self.element, self.writable, self.lines = name, element, writable, lines
        super().__init__(name=f"CheckedArray({name}, {element}, {writable}, {lines})")


@register_model(CheckedArray)
class _CheckedModel(models.StructModel):  # type: ignore[misc]
    """Address of the first entry, their number, and where a wrong index is noted: its value and the limit."""

    def __init__(self, manager: Any, kind: CheckedArray) -> None:
        members = [
            ("data", types.CPointer(kind.element)),
            ("entries", types.int64),
            ("note", types.CPointer(types.int64)),
        ]
        super().__init__(manager, kind, members)


@infer_global(operator.getitem)
class _TypeOfItem(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, _: Any) -> Any:
        array, index = args
        if isinstance(array, CheckedArray) and isinstance(index, types.Integer):
            return signature(array.element, array, types.int64)
        return None


@infer_global(operator.setitem)
class _TypeOfAssignment(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, _: Any) -> Any:
        array, index, _value = args
        if isinstance(array, CheckedArray) and array.writable and isinstance(index, types.Integer):
            return signature(types.none, array, types.int64, array.element)
        return None


@infer_global(len)
class _TypeOfLength(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, _: Any) -> Any:
        return signature(types.int64, *args) if isinstance(args[0], CheckedArray) else None


def _place() -> Any:
    """Where the statement stands that numba turns into machine code now; None: unknown."""
    frame = sys._getframe()
    while frame is not None:
        lowering = frame.f_locals.get("self")
        if isinstance(lowering, BaseLower):
            return lowering.loc
        frame = frame.f_back  # type: ignore[assignment]
    return None


def raise_unless_below(context: Any, builder: Any, index: Any, bound: Any, note: Any, what: str) -> None:
    """Let the function that is being compiled raise an IndexError(what) unless 0 ≤ index < bound (LLVM values)."""
    with cgutils.if_unlikely(builder, builder.icmp_unsigned(">=", index, bound)):
        builder.store(index, note)
        builder.store(bound, builder.gep(note, [ir.Constant(ir.IntType(32), 1)]))
        raise_always(context, builder, what)


def raise_always(context: Any, builder: Any, what: str) -> None:
    """Let the function that is being compiled raise an IndexError(what)."""
    context.call_conv.return_user_exc(builder, IndexError, (what,), loc=_place(), func_name=what)


def _entry(context: Any, builder: Any, kind: CheckedArray, array: Any, index: Any) -> Any:
    """Address of an entry."""
    fields = cgutils.create_struct_proxy(kind)(context, builder, array)
    raise_unless_below(context, builder, index, fields.entries, fields.note, kind.label)
    return builder.gep(fields.data, [index])


@lower_builtin(operator.getitem, CheckedArray, types.int64)  # type: ignore[untyped-decorator]
def _read_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind = sig.args[0]
    value = builder.load(_entry(context, builder, kind, *args))
    if not kind.lines:
        return value
    zero = ir.Constant(value.type, 0)
    plain = builder.and_(value, ir.Constant(value.type, (1 << VALUE_BITS) - 1))
    return builder.select(builder.icmp_signed("<", value, zero), value, plain)


@lower_builtin(operator.setitem, CheckedArray, types.int64, types.Any)  # type: ignore[untyped-decorator]
def _write_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    array, index, value = args
    kind = sig.args[0]
    address = _entry(context, builder, kind, array, index)
    if kind.lines:
        place = _place()
        line = UNKNOWN_LINE if place is None else min(max(place.line, 1), UNKNOWN_LINE)
        fits = builder.icmp_unsigned("<", value, ir.Constant(value.type, 1 << VALUE_BITS))
        noted = builder.or_(value, ir.Constant(value.type, line << VALUE_BITS))
        value = builder.select(fits, noted, ir.Constant(value.type, -1 - line))
    builder.store(value, address)
    return context.get_dummy_value()


@lower_builtin(len, CheckedArray)  # type: ignore[untyped-decorator]
def _length(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0]).entries


def checked_array(kind: CheckedArray) -> Any:
    """Intrinsic: (pointer, first entry, entries, note address) → array of this kind."""

    @intrinsic
    def make(_typing: Any, pointer: Any, _first: Any, _entries: Any, _note: Any) -> Any:
        typed = kind(types.CPointer(kind.element), types.int64, types.int64, types.int64)

        def generate(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            array = cgutils.create_struct_proxy(kind)(context, builder)
            array.data = builder.gep(args[0], [args[1]])
            array.entries = args[2]
            array.note = builder.inttoptr(args[3], ir.IntType(64).as_pointer())
            return array._getvalue()

        return typed, generate

    return make


def address_in(offset: int) -> Any:
    """Intrinsic: record → address (int64) of what stands `offset` bytes behind its begin."""

    @intrinsic
    def find(_typing: Any, record: Any) -> Any:
        def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            begin = builder.ptrtoint(args[0], ir.IntType(64))
            return builder.add(begin, ir.Constant(ir.IntType(64), offset))

        return types.int64(record), generate

    return find


#: why `call_checked` could not compile a function: the compiler's error, or the type that it returns
trouble: list[Any] = []


def call_checked(parameters: tuple[types.Type, ...]) -> Any:
    """Intrinsic: (function, arguments …) → (result, exception, its bytes) of a jitted function of these parameters.

    The result is an int64. Exception 0: none; else the address of its description for `describe_exception`. Records
    are taken as records of any type of the same layout. Where the function cannot be compiled, or returns something
    else than an integer, `trouble` says why.
    """

    @intrinsic
    def call(_typing: Any, function: Any, *arguments: Any) -> Any:
        given: tuple[Any, ...] = arguments
        if isinstance(given[0], types.BaseTuple):
            given = tuple(given[0])  # type: ignore[arg-type]
        result = types.UniTuple(types.int64, 3)
        try:
            function.dispatcher.compile(parameters)
        except NumbaError as error:
            trouble.append(error)
            return None
        compiled = function.dispatcher.overloads[parameters]
        returned = compiled.signature.return_type
        if not isinstance(returned, types.Integer | types.Boolean):
            trouble.append(returned)
            return None
        taken = tuple(
            one if isinstance(one, types.Record) else want for one, want in zip(given, parameters, strict=True)
        )

        def generate(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            i64 = ir.IntType(64)
            values = cgutils.unpack_tuple(builder, args[1])
            context.active_code_library.add_linking_library(compiled.library)
            status, value = context.call_internal_no_propagate(
                builder, compiled.fndesc, returned(*parameters), values
            )
            raised = cgutils.alloca_once_value(builder, ir.Constant(i64, 0))
            size = cgutils.alloca_once_value(builder, ir.Constant(i64, 0))
            with cgutils.if_unlikely(builder, status.is_error):
                builder.store(ir.Constant(i64, 1), raised)
                with cgutils.if_unlikely(builder, status.is_user_exc):
                    told = builder.load(status.excinfoptr)
                    builder.store(builder.ptrtoint(builder.extract_value(told, 0), i64), raised)
                    builder.store(builder.sext(builder.extract_value(told, 1), i64), size)
            whole = context.cast(builder, value, returned, types.int64)
            return context.make_tuple(builder, result, [whole, builder.load(raised), builder.load(size)])

        return result(function, types.StarArgTuple(taken)), generate

    return call


def describe_exception(address: int, size: int) -> tuple[str, str, str, int]:
    """Return class, text, file and line (0: unknown) of what `call_checked` caught."""
    if address <= 1:
        return "error", "", "", 0
    # numba's own description of an exception, written by the compiler into the machine code
    kind, arguments, place = pickle.loads(ctypes.string_at(address, size))
    text = ", ".join(str(one) for one in arguments or () if isinstance(one, str | int | float))
    _, file, line = place or ("", "", 0)
    return kind.__name__ if kind is not None else "error", text, file, int(line)
