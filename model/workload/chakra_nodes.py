"""Nodes of Chakra: a file of one rank as objects, and objects as a file (docs/definitions/chakra.md)."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hopforge.model.workload.protobuf import (
    BYTES,
    FIXED32,
    FIXED64,
    VARINT,
    Field,
    WireError,
    bytes_field,
    fields,
    number_field,
    numbers,
    packed,
    signed,
    varint,
    varint_bytes,
    zigzag,
)

INVALID, METADATA, LOAD, STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE = range(8)
TYPES = ("invalid", "metadata", "memory load", "memory store", "compute", "send", "receive", "collective")
"""Names of the types of nodes, by number."""

#: attributes of our own: unit-exact time, streams, and what only has to have started (docs/definitions/chakra.md)
UNITS, CPU, NIC, STARTED = "hopforge_units", "hopforge_cpu", "hopforge_nic", "hopforge_started"
_NUMBERS = frozenset({
    "comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag", "num_ops", "tensor_size", "is_cpu_op",
    UNITS, CPU, NIC,
})  # fmt: skip
_WANTED = _NUMBERS | {"pg_name", "involved_dim", STARTED}
#: version that we write, as current producers do
_VERSION = b"0.0.4"

Value = float | int | str | bytes | list[int]
_NOTHING = np.empty(0, np.uint64)


@dataclass(slots=True)
class Node:
    """A node.

    Attributes
    ----------
    id : int
        Its number.
    kind : int
        Its type; `TYPES`, or a number beyond.
    name : str
        For people.
    data, ctrl : ndarray, uint64[...]
        Nodes that it waits for: `data_deps` and `ctrl_deps`.
    micros : int
        Duration in µs.
    attributes : dict
        Name → value, of those that we know.
    values : str
        Of metadata: `inputs.values`, which may hold process groups.
    """

    id: int = 0
    kind: int = INVALID
    name: str = ""
    data: NDArray[np.uint64] = field(default_factory=lambda: _NOTHING)
    ctrl: NDArray[np.uint64] = field(default_factory=lambda: _NOTHING)
    micros: int = 0
    attributes: dict[str, Value] = field(default_factory=dict)
    values: str = ""

    def number(self, name: str) -> int | None:
        """Return an attribute that is a whole number; None: there is none.

        Raises
        ------
        WireError
            It is something else.
        """
        value = self.attributes.get(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if not isinstance(value, int):
            raise WireError(f"attribute {name} must be a whole number, not {value!r:.40}")
        return int(value)


def messages(content: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each message begins and ends; its length stands before it.

    Raises
    ------
    WireError
        The last one is cut off.
    """
    at = 0
    while at < len(content):
        size, begin = varint(content, at, len(content))
        if size > len(content) - begin:
            raise WireError(
                f"byte {at}: truncated: a message of {size} bytes, but only {len(content) - begin} follow"
            )
        at = begin + size
        yield begin, at


def parse_nodes(content: bytes) -> list[Node]:
    """Return the nodes of a file.

    Parameters
    ----------
    content : bytes
        All of it, not compressed.

    Raises
    ------
    WireError
        What is wrong, and at which byte.
    """
    found = messages(content)
    head = next(found, None)
    if head is None:
        raise WireError("byte 0: truncated: it holds no message, not even the one with the version")
    for each in fields(content, *head):
        if each.number == 1:
            _expect(each, BYTES, "version")
    return [_node(content, begin, end) for begin, end in found]


def _expect(found: Field, wire: int, name: str) -> None:
    if found.wire != wire:
        raise WireError(f"byte {found.value if found.wire == BYTES else found.end}: {name} has wire type {found.wire},"
                        f" not {wire}")  # fmt: skip


def _text(content: bytes, found: Field, name: str) -> str:
    _expect(found, BYTES, name)
    try:
        return content[found.value : found.end].decode()
    except UnicodeDecodeError as error:
        raise WireError(f"byte {found.value + error.start}: {name} is no UTF-8 text") from None


def _node(content: bytes, begin: int, end: int) -> Node:
    node = Node()
    data: list[NDArray[np.uint64]] = []
    ctrl: list[NDArray[np.uint64]] = []
    inputs: Field | None = None
    for each in fields(content, begin, end):
        match each.number:
            case 1:
                _expect(each, VARINT, "id")
                node.id = each.value
            case 2:
                node.name = _text(content, each, "name")
            case 3:
                _expect(each, VARINT, "type")
                node.kind = signed(each.value, 32)
            case 4:
                ctrl.append(numbers(content, each))
            case 5:
                data.append(numbers(content, each))
            case 7:
                _expect(each, VARINT, "duration_micros")
                node.micros = each.value
            case 8:
                _expect(each, BYTES, "inputs")
                inputs = each
            case 10:
                _expect(each, BYTES, "attr")
                _attribute(content, each, node.attributes)
    node.data, node.ctrl = (np.concatenate(parts) if parts else _NOTHING for parts in (data, ctrl))
    if node.kind == METADATA and inputs is not None:
        for each in fields(content, inputs.value, inputs.end):
            if each.number == 1:
                node.values = _text(content, each, "inputs.values")
    return node


def _attribute(content: bytes, message: Field, found: dict[str, Value]) -> None:
    name, value = "", None
    for each in fields(content, message.value, message.end):
        if each.number == 1:
            name = _text(content, each, "name of an attribute")
            if name not in _WANTED:
                return
        elif each.number > 2:
            value = each
    if name in _WANTED and value is not None:
        found[name] = _value(content, value, name)


#: field of a value → its wire type
_WIRE = {
    3: FIXED64, 5: FIXED32, 7: VARINT, 9: VARINT, 11: VARINT, 13: VARINT, 15: VARINT, 17: VARINT, 19: FIXED32,
    21: FIXED64, 23: FIXED32, 25: FIXED64, 27: VARINT, 29: BYTES, 31: BYTES,
}  # fmt: skip


def _value(content: bytes, found: Field, name: str) -> Value:
    """Return the value of an attribute: odd fields are one, the even ones behind them a list."""
    kind = found.number if found.number % 2 else found.number - 1
    if kind not in _WIRE:
        raise WireError(f"byte {found.end}: attribute {name} has a value of the unknown kind {found.number}")
    if found.number == kind:
        _expect(found, _WIRE[kind], f"attribute {name}")
        return _single(content, found, kind)
    _expect(found, BYTES, f"attribute {name}")
    wire = _WIRE[kind]
    if wire == BYTES:
        raise WireError(f"byte {found.value}: attribute {name} must not be a list of texts")
    values: list[int] = []
    for each in fields(content, found.value, found.end):
        if each.number != 1:
            continue
        if wire == VARINT:
            raw = numbers(content, each).tolist()
        elif each.wire == BYTES:
            raw = _fixed(content, each, wire)
        else:
            _expect(each, wire, f"attribute {name}")
            raw = [each.value]
        values += [int(_meaning(number, kind)) for number in raw]
    return values


def _fixed(content: bytes, found: Field, wire: int) -> list[int]:
    size = 8 if wire == FIXED64 else 4
    if (found.end - found.value) % size:
        raise WireError(f"byte {found.value}: truncated: {found.end - found.value} bytes of numbers of {size} bytes")
    return np.frombuffer(content, f"<u{size}", (found.end - found.value) // size, found.value).tolist()


def _single(content: bytes, found: Field, kind: int) -> Value:
    if kind == 29:
        return _text(content, found, "an attribute")
    return content[found.value : found.end] if kind == 31 else _meaning(found.value, kind)


def _meaning(value: int, kind: int) -> float | int:
    """Return the number that these bits mean in a field."""
    match kind:
        case 3:
            return float(struct.unpack("<d", struct.pack("<Q", value))[0])
        case 5:
            return float(struct.unpack("<f", struct.pack("<I", value))[0])
        case 7:
            return signed(value, 32)
        case 9 | 25:
            return signed(value)
        case 15 | 17:
            return zigzag(value)
        case 23:
            return signed(value, 32)
        case 27:
            return int(value != 0)
    return value


# ---- writing -------------------------------------------------------------------------------------------------------


def nodes_bytes(nodes: Iterable[Node]) -> Iterator[bytes]:
    """Yield the file of nodes in pieces: each message behind its length."""
    for message in (bytes_field(1, _VERSION), *map(_node_bytes, nodes)):
        yield varint_bytes(len(message)) + message


def _node_bytes(node: Node) -> bytes:
    parts = [number_field(1, node.id), bytes_field(2, node.name.encode()), number_field(3, node.kind)]
    for number, waits in ((4, node.ctrl), (5, node.data)):
        if len(waits):
            parts.append(bytes_field(number, packed(waits.tolist())))
    if node.micros:
        parts.append(number_field(7, node.micros))
    for name, value in node.attributes.items():
        parts.append(bytes_field(10, bytes_field(1, name.encode()) + _value_bytes(name, value)))
    return b"".join(parts)


def _value_bytes(name: str, value: Value) -> bytes:
    if isinstance(value, str):
        return bytes_field(29, value.encode())
    if isinstance(value, list):
        return bytes_field(14, bytes_field(1, packed(value)))
    assert isinstance(value, int), "others are not written"
    if name == "is_cpu_op":
        return number_field(27, value)
    return number_field(9 if value < 0 else 13, value)
