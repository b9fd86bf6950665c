"""Arrays and numbers that kernels get as one pointer: `ArrayRecord`.

numba hands each array to a function as seven words, and a tuple of forty arrays as 280 arguments, again at every call
of a small function: compiling then mostly moves arguments. An `ArrayRecord` is one address. Where a kernel names a
field (``state.regs``) it reads there where that array begins, and its shape.
"""

import hashlib
import operator
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.core.datamodel import models
from numba.core.imputils import lower_builtin, lower_getattr_generic
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import NativeValue, register_model, typeof_impl, unbox
from numba.np.arrayobj import make_array, populate_array

_WORD = ir.IntType(64)


class ArrayRecord:
    """Named arrays (contiguous), numbers, other records and tuples of records; a subclass annotates which.

    Python and kernels read its fields and write entries of the arrays. The fields themselves stay what they are.
    """

    def __init_subclass__(cls) -> None:
        """Refuse fields that would hide what the record itself has, and records of records' classes."""
        if ArrayRecord not in cls.__bases__:
            raise TypeError(f"{cls.__name__}: fields of {cls.__bases__[0].__name__} would be lost")
        for name in cls.names():
            if hasattr(ArrayRecord, name):
                raise TypeError(f"{cls.__name__}.{name}: a record has this itself")

    def __init__(self, **fields: Any) -> None:
        names = self.names()
        if fields.keys() != set(names):
            raise TypeError(f"fields of {type(self).__name__} are {', '.join(names)}, not {', '.join(fields)}")
        vars(self).update(fields)
        vars(self)["_rows"] = {name: _addresses(value) for name, value in fields.items() if isinstance(value, tuple)}
        values = (vars(self)["_rows"].get(name, fields[name]) for name in names)
        vars(self)["_words"] = np.array([word for value in values for word in _words(value)], np.int64)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the fields."""
        return tuple(cls.__annotations__)

    def fields(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {name: getattr(self, name) for name in self.names()}

    def with_fields(self, **fields: Any) -> Self:
        """Return a record with other values of some fields."""
        return type(self)(**self.fields() | fields)

    @property
    def address(self) -> int:
        """Where the record begins, for kernels."""
        return int(vars(self)["_words"].ctypes.data)

    @cached_property
    def numba_type(self) -> "RecordType":
        """Its type for numba."""
        return RecordType({name: _type_of_field(getattr(self, name)) for name in self.names()})

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        """Refuse it: kernels would go on with the array that was there."""
        raise AttributeError(f"{type(self).__name__}.{name} stays the same array: write its entries")

    def __reduce__(self) -> NoReturn:
        """Refuse to copy it: kernels would go on with the arrays of the original."""
        raise TypeError(f"{type(self).__name__} holds addresses, which cannot be copied")


def _addresses(records: tuple[ArrayRecord, ...]) -> np.ndarray:
    """Return where records of the same type begin."""
    if len({record.numba_type for record in records}) != 1:
        raise TypeError("records of a tuple must have fields of the same types, and there must be one")
    return np.array([record.address for record in records], np.int64)


def _type_of_field(value: Any) -> types.Type:
    if isinstance(value, tuple):
        return RecordTuple(value[0].numba_type)
    kind = typeof(value)
    if isinstance(kind, types.Array):  # one that may only be read makes no kernel of its own: none writes such a one
        return kind.copy(readonly=False)
    if not isinstance(kind, RecordType) and kind not in (types.int64, types.float64):
        raise TypeError(f"a field of a record is an array, another record or a number of 64 bits, not {kind}")
    return kind


def _words(value: Any) -> Iterator[int]:
    """Yield what the record keeps of a field."""
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise ValueError("arrays of a record must be contiguous")
        yield value.ctypes.data
        yield from value.shape
    elif isinstance(value, float):
        yield int(np.float64(value).view(np.int64))
    else:
        yield value.address if isinstance(value, ArrayRecord) else int(value)


class RecordType(types.Type):  # type: ignore[misc]
    """numba's type of an `ArrayRecord` with fields of these types; equal fields make equal types."""

    def __init__(self, fields: dict[str, types.Type]) -> None:
        self.fields, self.place, end = fields, {}, 0
        for name, kind in fields.items():
            self.place[name] = end
            end += 1 + (kind.ndim if isinstance(kind, types.Array) else int(isinstance(kind, RecordTuple)))
        digest = hashlib.sha256(str(list(fields.items())).encode()).hexdigest()
        super().__init__(f"ArrayRecord({digest[:16]})")


class RecordTuple(types.Type):  # type: ignore[misc]
    """numba's type of a field that is a tuple of records of a type."""

    def __init__(self, record: RecordType) -> None:
        self.record = record
        super().__init__(f"RecordTuple({record})")


# where a record begins, and where the addresses of records do
register_model(RecordType)(models.OpaqueModel)
register_model(RecordTuple)(models.OpaqueModel)


@typeof_impl.register(ArrayRecord)
def _type_of_record(record: ArrayRecord, _: Any) -> RecordType:
    return record.numba_type


@unbox(RecordType)  # type: ignore[untyped-decorator]
def _take_from_python(_kind: Any, record: Any, c: Any) -> Any:
    address = c.pyapi.object_getattr_string(record, "address")
    value = c.pyapi.long_as_voidptr(address)
    c.pyapi.decref(address)
    return NativeValue(value, is_error=c.pyapi.c_api_error())


@infer_getattr
class _TypeOfField(AttributeTemplate):  # type: ignore[misc]
    key = RecordType

    def generic_resolve(self, record: Any, name: str) -> Any:  # type: ignore[override]
        """Return the type of a field."""
        return record.fields.get(name)


@lower_getattr_generic(RecordType)  # type: ignore[untyped-decorator]
def _read_field(context: Any, builder: Any, kind: Any, record: Any, name: str) -> Any:
    """Read a field; what the record holds never changes, so that stores into arrays make nobody read it again."""
    first = builder.bitcast(record, _WORD.as_pointer())

    def word(number: int) -> Any:
        found = builder.load(builder.gep(first, [ir.Constant(_WORD, kind.place[name] + number)]))
        found.set_metadata("invariant.load", builder.module.add_metadata([]))
        return found

    field = kind.fields[name]
    if isinstance(field, RecordType | RecordTuple):
        return builder.inttoptr(word(0), context.get_value_type(field))
    if not isinstance(field, types.Array):
        return builder.bitcast(word(0), context.get_value_type(field))
    size = context.get_abi_sizeof(context.get_data_type(field.dtype))
    shape = [word(1 + axis) for axis in range(field.ndim)]
    strides = [ir.Constant(_WORD, size)]
    for extent in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], extent, flags=["nsw"]))
    array = make_array(field)(context, builder)
    begin = builder.inttoptr(word(0), context.get_data_type(field.dtype).as_pointer())
    return populate_array(array, begin, shape, strides, size, None)._getvalue()


@infer_global(operator.getitem)
class _TypeOfItem(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, _: Any) -> Any:
        records, index = args
        if isinstance(records, RecordTuple) and isinstance(index, types.Integer):
            return signature(records.record, records, types.int64)
        return None


@lower_builtin(operator.getitem, RecordTuple, types.int64)  # type: ignore[untyped-decorator]
def _read_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Read the address of a record; the index is not checked."""
    found = builder.load(builder.gep(builder.bitcast(args[0], _WORD.as_pointer()), [args[1]]))
    found.set_metadata("invariant.load", builder.module.add_metadata([]))
    return builder.inttoptr(found, context.get_value_type(sig.return_type))
