"""numba's type of a record with constant fields, made of numba's inner parts: see `constant_record`."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.datamodel import models
from numba.core.errors import NumbaTypeError
from numba.core.imputils import lower_builtin, lower_cast, lower_getattr_generic, lower_setattr_generic
from numba.core.typeconv import Conversion
from numba.core.typeconv.rules import default_type_manager
from numba.extending import register_model
from numba.np.arrayobj import (
    record_getattr,
    record_setattr,
    record_static_getitem_int,
    record_static_getitem_str,
    record_static_setitem_int,
    record_static_setitem_str,
)


class ConstantRecord(types.Record):  # type: ignore[misc]
    """numba's type of a record of `dtype`, whose fields `constant` don't change while a kernel runs.

    Only the fields `visible` exist for what is compiled for it, and by their names alone (None: all). Fields `known`
    have these values whenever what is compiled for it runs. Its name is a short digest: numba writes the name of every
    argument's type into the name of every function.
    """

    def __init__(
        self, dtype: np.dtype[Any], constant: Iterable[str], visible: frozenset[str] | None, known: Mapping[str, int]
    ) -> None:
        plain = numba.from_dtype(dtype)
        seen = [(name, field) for name, field in plain.fields.items() if visible is None or name in visible]
        fields = [(name, field._asdict()) for name, field in seen]
        super().__init__(fields, plain.size, plain.aligned)
        self.constant, self.by_name, self.known = frozenset(constant), visible is not None, dict(known)
        text = f"{self.name} {sorted(self.constant)}{' by name' if self.by_name else ''}{sorted(self.known.items())}"
        self.name = f"ConstantRecord({hashlib.sha256(text.encode()).hexdigest()[:16]})"

    def can_convert_to(self, typingctx: Any, other: Any) -> Any:
        """Tell numba how to make one of another type: of these only one of which less is known is the same record."""
        if not isinstance(other, ConstantRecord):
            return super().can_convert_to(typingctx, other)
        same = (self.fields, self.constant, self.by_name) == (other.fields, other.constant, other.by_name)
        return Conversion.safe if same and other.known.items() <= self.known.items() else None

    def __repr__(self) -> str:
        """Return the name: numba asks for it thousands of times, and would list all fields."""
        return str(self.name)


def constant_type(
    dtype: np.dtype[Any], constant: Iterable[str], visible: frozenset[str] | None, known: Mapping[str, int]
) -> ConstantRecord:
    """Return the type; numba converts plain records of `dtype` to it."""
    kind = ConstantRecord(dtype, constant, visible, known)
    default_type_manager.set_safe_convert(numba.from_dtype(dtype), kind)
    return kind


register_model(ConstantRecord)(models.RecordModel)


@lower_getattr_generic(ConstantRecord)  # type: ignore[untyped-decorator]
def _read_field(context: Any, builder: Any, kind: Any, value: Any, field: str) -> Any:
    """As for a plain record; a constant field's load is marked `invariant.load`, a known one is not loaded."""
    if field in kind.known:
        return context.get_constant(kind.typeof(field), kind.known[field])
    found = record_getattr(context, builder, kind, value, field)
    if field in kind.constant and getattr(found, "opname", "") == "load":
        found.set_metadata("invariant.load", builder.module.add_metadata([]))
    return found


@lower_setattr_generic(ConstantRecord)  # type: ignore[untyped-decorator]
def _write_field(context: Any, builder: Any, signature: Any, arguments: Any, field: str) -> Any:
    """As for a plain record; a constant field is refused."""
    if field in signature.args[0].constant:
        raise NumbaTypeError(f"a kernel must not write the field {field!r}, which it is told to be constant")
    return record_setattr(context, builder, signature, arguments, field)


@lower_cast(ConstantRecord, ConstantRecord)  # type: ignore[untyped-decorator]
def _know_less(context: Any, builder: Any, kind: Any, other: Any, value: Any) -> Any:
    """Give the same record to what knows less of it."""
    return value


def _by_name(plain: Any) -> Any:
    """Refuse ``packet["src"]`` and ``packet[2]`` where it must be told by a name which field it is (`fields_read`)."""

    def place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if signature.args[0].by_name:
            raise NumbaTypeError("a field of a record is read and written by its name, as packet.dst, not by [...]")
        return plain(context, builder, signature, arguments)

    return place


for _key, _read, _write in (
    (types.StringLiteral, record_static_getitem_str, record_static_setitem_str),
    (types.IntegerLiteral, record_static_getitem_int, record_static_setitem_int),
):
    lower_builtin("static_getitem", ConstantRecord, _key)(_by_name(_read))
    lower_builtin("static_setitem", ConstantRecord, _key, types.Any)(_by_name(_write))
