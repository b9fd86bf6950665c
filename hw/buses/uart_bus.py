"""A register bus at the end of a serial line."""

from dataclasses import replace

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.buses.uart import UartReceiver, UartTransmitter
from hopforge.model.board.protocol import (
    CRC8,
    GAP_BITS,
    REPLY_BYTES,
    REPLY_SYNC,
    REQUEST_BYTES,
    REQUEST_SYNC,
    REST_BITS,
    Command,
    Status,
)
from hopforge.model.lookup.csr import WORD_BITS
from hopforge.model.numbers.crc import crc

__all__ = ["ADDRESS_BITS", "UartBus"]

ADDRESS_BITS = 24

READ_CYCLES = 8
"""Cycles from a read to the word; the slowest design needs four."""

_BODY = REQUEST_BYTES - 1


def _checksum(before: Value, byte: Value) -> Value:
    """Return the checksum behind a byte: linear, so a few XORs for each bit."""
    mixed = before ^ byte
    columns = [crc(replace(CRC8, init=0), bytes([1 << bit])) for bit in range(8)]
    return Cat(Cat(mixed[bit] for bit in range(8) if columns[bit] >> row & 1).xor() for row in range(8))


class UartBus(wiring.Component):
    """Requests from a serial line to a register bus, and replies (docs/definitions/board-protocol.md).

    ``we`` or ``re`` is 1 for one cycle with ``addr`` and ``wdata``; ``rdata`` is taken `READ_CYCLES` later.
    ``working`` is 1 while a right request is answered. Reset: waits for a request.

    Parameters
    ----------
    divisor : int
        Cycles of a bit time.
    """

    rx: Signal
    tx: Signal
    addr: Signal
    we: Signal
    re: Signal
    wdata: Signal
    rdata: Signal
    working: Signal

    def __init__(self, *, divisor: int):
        self.divisor = divisor
        self.receiver = UartReceiver(divisor=divisor)
        self.transmitter = UartTransmitter(divisor=divisor)
        super().__init__(
            {
                "rx": In(1),
                "tx": Out(1, init=1),
                "addr": Out(ADDRESS_BITS),
                "we": Out(1),
                "re": Out(1),
                "wdata": Out(WORD_BITS),
                "rdata": In(WORD_BITS),
                "working": Out(1),
            }
        )
        self.status = Signal(3)
        self.word = Signal(WORD_BITS)

    def elaborate(self, platform: object) -> Module:
        """Build the line, the request, the bus and the reply."""
        m = Module()
        m.submodules.receiver = receiver = self.receiver
        m.submodules.transmitter = transmitter = self.transmitter
        m.d.comb += [receiver.line.eq(self.rx), self.tx.eq(transmitter.line)]
        body = Signal(8 * _BODY)
        left = Signal(range(_BODY + 1))
        check = Signal(8)
        bit_timer = Signal(range(self.divisor))
        rest = Signal(range(GAP_BITS + 1))  # bit times without anything on the line
        command, right = body[:8], Signal()
        m.d.comb += [
            right.eq((command == Command.READ) | (command == Command.WRITE)),
            self.addr.eq(body[8 : 8 + ADDRESS_BITS]),
            self.wdata.eq(body[8 + ADDRESS_BITS : 8 + ADDRESS_BITS + WORD_BITS]),
        ]
        m.d.sync += [self.we.eq(0), self.re.eq(0)]
        with m.If(receiver.valid | receiver.error | ~receiver.quiet):
            m.d.sync += [rest.eq(0), bit_timer.eq(0)]
        with m.Elif(bit_timer != self.divisor - 1):
            m.d.sync += bit_timer.eq(bit_timer + 1)
        with m.Elif(rest != GAP_BITS):
            m.d.sync += [bit_timer.eq(0), rest.eq(rest + 1)]
        waited = Signal(range(READ_CYCLES))
        reply = Signal(range(REPLY_BYTES + 1))
        with m.FSM():
            with m.State("WAIT"):
                m.d.sync += [left.eq(_BODY), check.eq(CRC8.init)]
                with m.If(receiver.valid & (receiver.data == REQUEST_SYNC)):
                    m.next = "GATHER"
            with m.State("GATHER"):
                with m.If(receiver.valid):
                    m.d.sync += [
                        body.eq(Cat(body[8:], receiver.data)),
                        check.eq(_checksum(check, receiver.data)),
                        left.eq(left - 1),
                    ]
                with m.If(left == 0):
                    m.d.sync += self.status.eq(Status.CHECKSUM)
                    m.next = "REST"
                    with m.If((check == 0) & ~right):
                        m.d.sync += self.status.eq(Status.COMMAND)
                    with m.Elif(check == 0):
                        m.d.sync += [
                            self.status.eq(Status.DONE), waited.eq(0),
                            self.we.eq(command == Command.WRITE), self.re.eq(command == Command.READ),
                        ]  # fmt: skip
                        m.next = "ACT"
                with m.Elif(receiver.error):
                    m.d.sync += self.status.eq(Status.FRAMING)
                    m.next = "REST"
                with m.Elif(rest == GAP_BITS):
                    m.d.sync += self.status.eq(Status.TIME_OUT)
                    m.next = "REST"
            with m.State("REST"):
                m.d.sync += [self.word.eq(0), reply.eq(0), check.eq(CRC8.init)]
                with m.If(rest >= REST_BITS):
                    m.next = "REPLY"
            with m.State("ACT"):
                m.d.sync += [waited.eq(waited + 1), reply.eq(0), check.eq(CRC8.init), self.word.eq(0)]
                with m.If(waited == READ_CYCLES - 1):
                    with m.If(command == Command.READ):
                        m.d.sync += self.word.eq(self.rdata)
                    m.next = "REPLY"
            with m.State("REPLY"):
                self._reply(m, reply, check)
                with m.If((reply == REPLY_BYTES) & transmitter.ready):
                    m.next = "WAIT"
        return m

    def _reply(self, m: Module, number: Signal, check: Signal) -> None:
        """Send the bytes of the reply one after the other; all but the first are in the checksum."""
        byte = Signal(8)
        with m.Switch(number):
            with m.Case(0):
                m.d.comb += byte.eq(Const(REPLY_SYNC, 8))
            with m.Case(1):
                m.d.comb += byte.eq(self.status)
            for index in range(4):
                with m.Case(2 + index):
                    m.d.comb += byte.eq(self.word.word_select(index, 8))
            with m.Default():
                m.d.comb += byte.eq(check)
        m.d.comb += [
            self.working.eq(self.status == Status.DONE),
            self.transmitter.data.eq(byte),
            self.transmitter.valid.eq(number != REPLY_BYTES),
        ]
        with m.If(self.transmitter.valid & self.transmitter.ready):
            m.d.sync += number.eq(number + 1)
            with m.If(number != 0):
                m.d.sync += check.eq(_checksum(check, byte))
