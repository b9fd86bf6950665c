"""The host's end of the line against a pretended board at a pseudo-terminal: every way in which it can go wrong."""

import os
import select
import threading
import tty

import pytest

from hopforge.model.board.golden_link import GoldenLink
from hopforge.model.board.protocol import BOARD_PAGE, Command, Reply, Request, Status, decode_reply, encode_reply
from hopforge.model.board.registers import BoardIdentity, board_map
from hopforge.sim.boards.client import BoardError, open_board

IDENTITY = BoardIdentity(design="engine", fingerprint=0xABC, clock_hz=10**8)


class PretendedBoard:
    """Registers behind a `GoldenLink`; `spoil` may change replies."""

    def __init__(self, identity=IDENTITY, spoil=lambda reply: reply):
        self.words = {BOARD_PAGE | register.address: register.reset for register in board_map(identity)}
        self.spoil = spoil
        self.link = GoldenLink(self._act)
        self.board, self.host = os.openpty()
        tty.setraw(self.host)
        self.path = os.ttyname(self.host)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _act(self, request: Request) -> int:
        if request.command == Command.WRITE:
            self.words[request.address] = request.word
        return self.words.get(request.address, 0)

    def _serve(self):
        while not self.over.is_set():
            if not select.select([self.board], [], [], 0.02)[0]:
                continue
            for byte in os.read(self.board, 64):
                reply = self.link.byte(byte) or self.link.rest()
                if reply is not None and (reply := self.spoil(reply)) is not None:
                    os.write(self.board, reply)

    def vanish(self):
        if not self.over.is_set():
            self.over.set()
            self.thread.join(5)
            os.close(self.host)
            os.close(self.board)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.vanish()


@pytest.fixture
def board():
    with PretendedBoard() as made:
        yield made


def opened(board, **options):
    return open_board(board.path, IDENTITY, name="PORT", **{"timeout_s": 0.3} | options)


def test_reads_and_writes(board):
    with opened(board) as client:
        client.check_design()
        client.write(7, 0xFFFFFFFF)
        client.put("SEED", 3)
        assert (client.read(7), client.show("SEED"), client.show("CLOCK_HZ")) == (0xFFFFFFFF, 3, 10**8)


OTHERS = {
    "network": ({"design": "network"}, r"^PORT: the design on the board is network, not engine \(--design\)$"),
    "parameters": (
        {"fingerprint": 5},
        r"^PORT: the design on the board was built with other parameters \(fingerprint 0x00000005, the configuration "
        r"has 0x00000abc\); build it again with hopforge fpga$",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_design(name):
    other, words = OTHERS[name]
    with (
        PretendedBoard(BoardIdentity(**{"design": "engine", "fingerprint": 0xABC, "clock_hz": 10**8} | other)) as made,
        opened(made) as client,
        pytest.raises(BoardError, match=words),
    ):
        client.check_design()


def test_something_else_answers():
    with PretendedBoard() as made, opened(made) as client:
        made.words[BOARD_PAGE] = 0x12345678
        with pytest.raises(BoardError, match="ID is 0x12345678, not 0x48464201"):
            client.check_design()


BROKEN = {
    "nothing": (lambda reply: None, r"^PORT: no board answers within 0.3 s: check --port and --baud$"),
    "cut off": (lambda reply: reply[:4], r"^PORT: the reply broke off after 4 of 7 bytes$"),
    "a wrong bit": (
        lambda reply: reply[:3] + bytes([reply[3] ^ 1]) + reply[4:],
        r"^PORT: no reply of a board: .*check",
    ),
    "echo": (lambda reply: b"\x5a" * 7, r"^PORT: no reply of a board: a reply begins with 0xa5"),
    "framing": (
        lambda reply: encode_reply(Reply(Status.FRAMING, 0)),
        r"^PORT: the board has seen framing errors 3 times in a row: check the line and --baud$",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_replies(name):
    spoil, words = BROKEN[name]
    with PretendedBoard(spoil=spoil) as made, opened(made) as client, pytest.raises(BoardError, match=words):
        client.read(0)


def test_a_request_that_was_refused_is_sent_again():
    refusals = [Status.CHECKSUM, Status.TIME_OUT]
    with (
        PretendedBoard(spoil=lambda reply: encode_reply(Reply(refusals.pop(), 0)) if refusals else reply) as made,
        opened(made) as client,
    ):
        assert client.read(BOARD_PAGE) == 0x48464201
    assert not refusals


def test_a_port_that_vanishes_in_the_middle():
    with PretendedBoard() as made, opened(made) as client:
        client.check_design()
        made.vanish()
        with pytest.raises(BoardError, match=r"^PORT: the serial port has vanished \("):
            for _ in range(3):
                client.read(0)


def test_no_such_port():
    words = r"^/dev/no-such-port: the serial port cannot be opened \(.*No such file"
    with pytest.raises(BoardError, match=words), open_board("/dev/no-such-port", IDENTITY):
        pass


@pytest.mark.parametrize("name", ["/tmp", __file__, "/dev/null"])
def test_no_serial_port(name):
    words = rf"^{name}: (this is no serial port|the serial port cannot be opened \(.*nappropriate)"
    with pytest.raises(BoardError, match=words), open_board(name, IDENTITY):
        pass


def test_waiting_has_an_end(board):
    with opened(board) as client, pytest.raises(BoardError, match=r"PORT: STATUS is still 0x0 after 0.2 s"):
        client.wait(BOARD_PAGE | 9, 1, 1, "STATUS", timeout_s=0.2)


def test_a_reply_has_seven_bytes():
    with pytest.raises(ValueError, match="a reply begins with 0xa5 and has 7 bytes, not a5 00"):
        decode_reply(b"\xa5\x00")
