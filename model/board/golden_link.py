"""The board's end of the serial line, from the definition: what happens with every byte, and what is answered."""

from collections.abc import Callable

from hopforge.model.board.protocol import (
    REQUEST_BYTES,
    REQUEST_SYNC,
    Command,
    Reply,
    Request,
    Status,
    checksum,
    encode_reply,
)

__all__ = ["GoldenLink"]


class GoldenLink:
    """What a board does with bytes; time is told by `rest` and `gap`.

    Parameters
    ----------
    act : callable
        Carries out a right request; returns the word that was read.

    Examples
    --------
    >>> from hopforge.model.board.protocol import decode_reply, encode_request
    >>> link = GoldenLink(lambda request: request.address + 1)
    >>> decode_reply([link.byte(value) for value in encode_request(Request(Command.READ, 6))][-1])
    Reply(status=0, word=7)
    """

    def __init__(self, act: Callable[[Request], int]) -> None:
        self._act = act
        self._frame: bytearray | None = None
        self._wrong: Status | None = None

    def byte(self, value: int) -> bytes | None:
        """Take a byte; return the reply to it."""
        if self._wrong is not None:
            return None
        if self._frame is None:
            self._frame = bytearray() if value == REQUEST_SYNC else None
            return None
        self._frame.append(value)
        if len(self._frame) < REQUEST_BYTES - 1:
            return None
        body, self._frame = bytes(self._frame), None
        request = Request(body[0], int.from_bytes(body[1:4], "little"), int.from_bytes(body[4:8], "little"))
        if checksum(body[:-1]) != body[-1]:
            self._wrong = Status.CHECKSUM
        elif request.command not in set(Command):
            self._wrong = Status.COMMAND
        else:
            word = self._act(request)
            return encode_reply(Reply(Status.DONE, word if request.command == Command.READ else 0))
        return None

    def framing_error(self) -> None:
        """Take a byte without a stop bit."""
        if self._wrong is None and self._frame is not None:
            self._frame, self._wrong = None, Status.FRAMING

    def rest(self) -> bytes | None:
        """Nothing came for `REST_BITS` bit times; return the reply that this brings."""
        wrong, self._wrong = self._wrong, None
        return None if wrong is None else encode_reply(Reply(wrong, 0))

    def gap(self) -> bytes | None:
        """Nothing came for `GAP_BITS` bit times; return the reply that this brings."""
        if self._frame is None:
            return self.rest()
        self._frame = None
        return encode_reply(Reply(Status.TIME_OUT, 0))
