"""The host's end of the serial line of a board (docs/definitions/board-protocol.md)."""

import contextlib
import importlib.util
import termios
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from hopforge.model.board.protocol import (
    BOARD_PAGE,
    REPLY_BYTES,
    Command,
    Reply,
    Request,
    Status,
    decode_reply,
    encode_request,
)
from hopforge.model.board.registers import BOARD_ID, DESIGNS, BoardIdentity, board_map
from hopforge.model.errors import UserError
from hopforge.model.requirements import pip_command
from hopforge.model.router.program import BusOperation

__all__ = ["BoardClient", "BoardError", "open_board"]

_TRIES = 3
_WORDS = {Status.CHECKSUM: "wrong checksums", Status.COMMAND: "an unknown command", Status.FRAMING: "framing errors",
          Status.TIME_OUT: "requests with gaps"}  # fmt: skip


class BoardError(UserError):
    """A board that is not there, is not what it should be, or went away."""


class BoardClient:
    """Reads and writes words of a board.

    Parameters
    ----------
    serial : serial.Serial
        The open line.
    name : str
        What it is called in messages.
    identity : BoardIdentity
        What is expected on the board.
    timeout_s : float
        Longest wait for a reply.
    """

    def __init__(self, serial: Any, name: str, identity: BoardIdentity, timeout_s: float = 2.0) -> None:
        self._serial, self.name, self.identity, self.timeout_s = serial, name, identity, timeout_s
        self.map = board_map(identity)
        self.operations = 0

    def read(self, address: int) -> int:
        """Return a word.

        Raises
        ------
        BoardError
            No right reply.
        """
        return self._ask(Request(Command.READ, address))

    def write(self, address: int, word: int) -> None:
        """Write a word; raises as `read`."""
        self._ask(Request(Command.WRITE, address, word))

    def show(self, name: str) -> int:
        """Return a register of the board."""
        return self.read(BOARD_PAGE | self.map[name].address)

    def put(self, name: str, word: int) -> None:
        """Write a register of the board."""
        self.write(BOARD_PAGE | self.map[name].address, word)

    def carry_out(self, steps: Iterable[BusOperation], base: int = 0) -> None:
        """Do the steps of a program one after the other."""
        for step in steps:
            if step.kind == "write":
                self.write(base + step.address, step.data)
            else:
                self.wait(base + step.address, step.mask, step.data, step.name)

    def wait(self, address: int, mask: int, word: int, name: str, timeout_s: float = 60.0) -> int:
        """Read until the word and `mask` are `word`; return the word.

        Raises
        ------
        BoardError
            It takes longer than `timeout_s`.
        """
        end = time.monotonic() + timeout_s
        while (seen := self.read(address)) & mask != word:
            if time.monotonic() > end:
                raise BoardError(f"{self.name}: {name} is still {seen:#x} after {timeout_s:g} s")
        return seen

    def check_design(self) -> None:
        """Check that the board holds the design that is expected.

        Raises
        ------
        BoardError
            No board, another version or another design.
        """
        found = self.show("ID")
        if found != BOARD_ID:
            raise BoardError(f"{self.name}: ID is {found:#x}, not {BOARD_ID:#x}: no board of this version of hopforge")
        number = self.show("DESIGN")
        if number != DESIGNS[self.identity.design]:
            names = {value: name for name, value in DESIGNS.items()}
            raise BoardError(
                f"{self.name}: the design on the board is {names.get(number, f'number {number}')}, not "
                f"{self.identity.design} (--design)"
            )
        if (found := self.show("FINGERPRINT")) != self.identity.fingerprint:
            raise BoardError(
                f"{self.name}: the design on the board was built with other parameters (fingerprint {found:#010x}, "
                f"the configuration has {self.identity.fingerprint:#010x}); build it again with hopforge fpga"
            )

    def reset(self) -> None:
        """Reset the board."""
        self.put("CTRL", self.map["CTRL"].encode(reset=1))

    def start(self) -> None:
        """Begin a run and wait for its end."""
        self.put("CTRL", self.map["CTRL"].encode(start=1))
        busy = self.map["STATUS"].field("busy").mask
        self.wait(BOARD_PAGE | self.map["STATUS"].address, busy, 0, "STATUS", timeout_s=600)

    def _ask(self, request: Request) -> int:
        self.operations += 1
        reply = Reply(Status.DONE, 0)
        for _ in range(_TRIES):
            reply = self._exchange(encode_request(request))
            if reply.status == Status.DONE:
                return reply.word
        what = _WORDS.get(reply.status, f"status {reply.status}")  # type: ignore[call-overload]
        raise BoardError(f"{self.name}: the board has seen {what} {_TRIES} times in a row: check the line and --baud")

    def _exchange(self, frame: bytes) -> Reply:
        try:
            self._serial.reset_input_buffer()
            self._serial.write(frame)
            answer = self._serial.read(REPLY_BYTES)
        except (OSError, TypeError, termios.error) as error:  # serial.SerialException is an OSError
            self._vanished(error)
        if len(answer) < REPLY_BYTES:
            if not answer:
                raise BoardError(f"{self.name}: no board answers within {self.timeout_s:g} s: check --port and --baud")
            raise BoardError(f"{self.name}: the reply broke off after {len(answer)} of {REPLY_BYTES} bytes")
        try:
            return decode_reply(answer)
        except ValueError as error:
            raise BoardError(f"{self.name}: no reply of a board: {error}; check --baud") from None

    def _vanished(self, error: Exception) -> NoReturn:
        raise BoardError(f"{self.name}: the serial port has vanished ({error})") from None


@contextlib.contextmanager
def open_board(
    path: Path | str, identity: BoardIdentity, *, name: str = "", timeout_s: float = 2.0
) -> Iterator[BoardClient]:
    """Open the serial port of a board.

    Raises
    ------
    BoardError
        The port cannot be opened, or pyserial is missing.
    """
    if importlib.util.find_spec("serial") is None:
        raise BoardError(f"pyserial is missing: {pip_command('pyserial')}")
    import serial  # noqa: PLC0415  (an extra)

    if Path(path).exists() and not Path(path).is_char_device():
        raise BoardError(f"{path}: this is no serial port")
    try:
        line = serial.Serial(str(path), identity.baud, timeout=timeout_s, write_timeout=timeout_s)
    except termios.error as error:
        raise BoardError(f"{path}: this is no serial port ({error.args[-1]})") from None
    except (OSError, ValueError) as error:
        raise BoardError(
            f"{path}: the serial port cannot be opened ({getattr(error, 'strerror', None) or error})"
        ) from None
    try:
        yield BoardClient(line, name or str(path), identity, timeout_s)
    finally:
        with contextlib.suppress(OSError):
            line.close()
