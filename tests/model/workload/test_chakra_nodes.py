"""Nodes of Chakra from bytes by hand: every kind of value, cut off, and what is no trace."""

import struct

import pytest

from hopforge.model.workload.chakra_nodes import parse_nodes
from hopforge.model.workload.protobuf import WireError

HEAD = bytes.fromhex("070a05") + b"0.0.4"


def message(*parts: str | bytes) -> bytes:
    """Put a length of one byte before a message; texts are in hexadecimal."""
    body = b"".join(bytes.fromhex(part) if isinstance(part, str) else part for part in parts)
    assert len(body) < 128
    return bytes([len(body)]) + body


def attribute(name: str, value: str) -> bytes:
    return b"\x52" + message(b"\x0a" + message(name.encode()), value)


def test_a_node() -> None:
    node = message(
        "0803", b"\x12\x01x", "1804",  # id 3, name x, type 4
        "2001", "2003",  # ctrl_deps 1 and 3, single
        "2a03" "01" "ac02", "2807",  # data_deps 1, 300 packed, and 7
        "3005", "3809",  # start 5, duration 9
        "9d06" "01020304", "f80696 01",  # unknown fields: 99 fixed32, 111 varint
        "4203" "0a0178",  # inputs
        attribute("is_cpu_op", "d80101"), attribute("unknown", "8a0200"),
    )  # fmt: skip
    absent = message("1801")  # no id: 0
    found, zero = parse_nodes(HEAD + node + absent)
    assert (found.id, found.name, found.kind, found.micros) == (3, "x", 4, 9)
    assert (found.ctrl.tolist(), found.data.tolist()) == ([1, 3], [1, 300, 7])
    assert found.attributes == {"is_cpu_op": 1}
    assert (zero.id, zero.kind) == (0, 1)


@pytest.mark.parametrize(
    "octets, value",
    [
        ("1900000000000004c0", -2.5), ("2d000020c0", -2.5), ("38ffffffffffffffffff01", -1), ("38ffffffff0f", -1),
        ("48feffffffffffffffff01", -2), ("58ffffffff0f", 0xFFFFFFFF), ("68ffffffffffffffffff01", (1 << 64) - 1),
        ("7803", -2), ("880103", -2), ("9d01ffffffff", 0xFFFFFFFF), ("a901feffffffffffffff", (1 << 64) - 2),
        ("bd01ffffffff", -1), ("c901feffffffffffffff", -2), ("d80101", 1),
        ("ea01026162", "ab"), ("fa01020001", b"\0\1"),
        ("42020801", [1]), ("52040a02017f", [1, 127]), ("8201040a020304", [-2, 2]), ("e201050a03010001", [1, 0, 1]),
        ("a201050d05000000", [5]), ("a2010a0a080500000006000000", [5, 6]),
        ("d2010a0a08ffffffffffffffff", [-1]),
    ],
)  # fmt: skip
def test_every_kind_of_number(octets: str, value: object) -> None:
    (node,) = parse_nodes(HEAD + message("1807", attribute("comm_size", octets)))
    assert node.attributes == {"comm_size": value}


def test_every_cut_is_told_with_its_byte() -> None:
    node = message("0803", "1804", "2a0301ac02", "3809", attribute("num_ops", "6805"))
    whole = HEAD + node + node
    ends = {len(HEAD), len(HEAD + node), len(whole)}
    for cut in range(len(whole) + 1):
        if cut in ends:
            assert len(parse_nodes(whole[:cut])) == (cut > len(HEAD)) + (cut == len(whole))
        else:
            with pytest.raises(WireError, match=r"byte \d+: truncated"):
                parse_nodes(whole[:cut])


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"", "byte 0: truncated: it holds no message"),
        (HEAD + message("0d01000000"), "byte 14: id has wire type 5, not 0"),
        (HEAD + message("1201ff"), "byte 11: name is no UTF-8 text"),
        (HEAD + message(b"\x2a\x01\x80"), "byte 12: truncated: the last number of a list goes on"),
        (HEAD + message(attribute("comm_tag", "ba02020801")), "value of the unknown kind 39"),
        (HEAD + message(attribute("comm_tag", "3d01000000")), "attribute comm_tag has wire type 5, not 0"),
        (b"\x02\x08\x01", "byte 3: version has wire type 0, not 2"),
        (struct.pack("<II", 4223, 0), "truncated|cannot have the number"),
    ],
)
def test_what_is_no_trace(content: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        parse_nodes(content)
