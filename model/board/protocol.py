"""Frames of the serial line (docs/definitions/board-protocol.md)."""

from enum import IntEnum
from typing import NamedTuple

from hopforge.model.numbers.crc import crc
from hopforge.model.numbers.crc_catalogue import CrcSpec

__all__ = [
    "BOARD_PAGE", "CRC8", "GAP_BITS", "REPLY_BYTES", "REPLY_SYNC", "REQUEST_BYTES", "REQUEST_SYNC", "REST_BITS",
    "Command", "Reply", "Request", "Status", "checksum", "decode_reply", "encode_reply", "encode_request",
]  # fmt: skip

REQUEST_SYNC, REPLY_SYNC = 0x5A, 0xA5
REQUEST_BYTES, REPLY_BYTES = 10, 7

GAP_BITS = 1024
"""Bit times without a byte that end a request."""

REST_BITS = 32
"""Bit times of rest after which the reply to a wrong request is sent."""

BOARD_PAGE = 1 << 23
"""First address of the registers of the board."""

CRC8 = CrcSpec(8, 0x07, 0xFF)


class Command(IntEnum):
    """What a request wants."""

    READ = 1
    WRITE = 2


class Status(IntEnum):
    """What became of a request."""

    DONE = 0
    CHECKSUM = 1
    COMMAND = 2
    TIME_OUT = 3
    FRAMING = 4


class Request(NamedTuple):
    """A request without its frame; `command` is a number, since any may arrive."""

    command: int
    address: int
    word: int = 0


class Reply(NamedTuple):
    """A reply without its frame."""

    status: int
    word: int


def checksum(data: bytes) -> int:
    """Return the checksum of the bytes behind the first one of a frame.

    Examples
    --------
    >>> hex(checksum(b"123456789"))
    '0xfb'
    """
    return crc(CRC8, data)


def encode_request(request: Request) -> bytes:
    """Return the ten bytes of a request."""
    body = bytes([request.command]) + request.address.to_bytes(3, "little") + request.word.to_bytes(4, "little")
    return bytes([REQUEST_SYNC]) + body + bytes([checksum(body)])


def encode_reply(reply: Reply) -> bytes:
    """Return the seven bytes of a reply."""
    body = bytes([reply.status]) + reply.word.to_bytes(4, "little")
    return bytes([REPLY_SYNC]) + body + bytes([checksum(body)])


def decode_reply(frame: bytes) -> Reply:
    """Return what a frame of seven bytes says.

    Raises
    ------
    ValueError
        Another first byte, or a wrong checksum.
    """
    if len(frame) != REPLY_BYTES or frame[0] != REPLY_SYNC:
        raise ValueError(f"a reply begins with {REPLY_SYNC:#x} and has {REPLY_BYTES} bytes, not {frame.hex(' ')}")
    if checksum(frame[1:-1]) != frame[-1]:
        raise ValueError(f"the checksum of the reply {frame.hex(' ')} is wrong")
    return Reply(frame[1], int.from_bytes(frame[2:6], "little"))
