"""What every design on a board has: a register bus, registers of the board, the begin of a run."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.buses.uart_bus import ADDRESS_BITS
from hopforge.model.board.registers import BoardIdentity, board_map
from hopforge.model.lookup.csr import WORD_BITS

__all__ = ["OnBoard"]

_PAGE_BITS = 8


class OnBoard(wiring.Component):
    """A design with the registers of docs/definitions/board-protocol.md.

    The bus is that of `hopforge.hw.buses.uart_bus.UartBus`. ``reset_wanted`` stays 1 from the write of CTRL.reset to
    the reset. A design gives `begin`, `running`, `refused` and the values of its registers.

    Parameters
    ----------
    identity : BoardIdentity
        What it says that it is.
    bus_bits : int
        Width of an address on the bus of the design itself.

    Attributes
    ----------
    start : Signal
        A run begins in the next cycle.
    inner_we, inner_re : Signal
        ``we`` and ``re`` for the bus of the design itself.
    running, refused : Signal
        Of the design: a run goes on; a checker has found something.
    counting : Signal
        Of the design: the cycle counts in CYCLES.
    """

    addr: Signal
    we: Signal
    re: Signal
    wdata: Signal
    rdata: Signal
    busy: Signal
    mismatch: Signal
    reset_wanted: Signal

    def __init__(self, *, identity: BoardIdentity, bus_bits: int):
        self.bus_bits = bus_bits
        self.identity = identity
        self.map = board_map(identity)
        super().__init__(
            {
                "addr": In(ADDRESS_BITS),
                "we": In(1),
                "re": In(1),
                "wdata": In(WORD_BITS),
                "rdata": Out(WORD_BITS),
                "busy": Out(1),
                "mismatch": Out(1),
                "reset_wanted": Out(1),
            }
        )
        self.start = Signal()
        self.refused = Signal()
        self.running = Signal()
        self.counting = Signal()
        self.cycles = Signal(WORD_BITS)
        self.kept = {
            register.name: Signal(WORD_BITS, name=register.name.lower())
            for register in self.map
            if register.name != "CTRL" and register.fields[0].access == "rw"
        }
        self.inner_we = Signal()
        self.inner_re = Signal()
        self._told, self._found = Signal(name="told_mismatch"), Signal(name="found_mismatch")

    def elaborate(self, platform: object) -> Module:
        """Build the registers and the design beside them."""
        m = Module()
        shown: dict[str, Any] = {**self.kept, "CYCLES": self.cycles, **self.design(m, platform)}
        ctrl, status = self.map["CTRL"], self.map["STATUS"]
        here = Signal()  # at a register of the board
        writes = {register.name: Signal(name=f"write_{register.name.lower()}") for register in self.map}
        inside = ~self.addr[self.bus_bits :].any()
        m.d.comb += [
            here.eq(self.addr[ADDRESS_BITS - 1]),
            self.inner_we.eq(self.we & inside),
            self.inner_re.eq(self.re & inside),
        ]
        for register in self.map:
            hit = self.addr[:_PAGE_BITS] == register.address
            m.d.comb += writes[register.name].eq(self.we & here & hit)
        for name, word in self.kept.items():
            with m.If(writes[name]):
                m.d.sync += word.eq(self.wdata)
        start, reset, told = (ctrl.field(name).lsb for name in ("start", "reset", "mismatch"))
        m.d.comb += [
            self.start.eq(writes["CTRL"] & self.wdata[start] & ~self.running),
            self.busy.eq(self.running),
            self.mismatch.eq(self._told | self._found),
        ]
        with m.If(writes["CTRL"]):
            m.d.sync += [self._told.eq(self.wdata[told]), self.reset_wanted.eq(self.wdata[reset])]
        with m.If(self.refused):
            m.d.sync += self._found.eq(1)
        with m.If(self.start):
            m.d.sync += self.cycles.eq(0)
        with m.Elif(self.counting):
            m.d.sync += self.cycles.eq(self.cycles + 1)
        constants = {register.name: register.reset for register in self.map if register.fields[0].access == "const"}
        flags = Cat(self.running, self._found)
        assert [field.name for field in status.fields] == ["busy", "mismatch"]
        shown |= {**constants, "STATUS": flags, "CTRL": self._told << told}
        self._read(m, here, shown)
        self.written(m, writes)
        return m

    def _read(self, m: Module, here: Value, shown: Mapping[str, Any]) -> None:
        """Show a word of the board a cycle after the read, else the word of the design."""
        word = Signal(WORD_BITS)
        own = Signal()
        with m.If(self.re):
            m.d.sync += [own.eq(~self.inner_re), word.eq(0)]
            with m.Switch(Cat(self.addr[:_PAGE_BITS], here)):
                for register in self.map:
                    with m.Case(register.address | 1 << _PAGE_BITS):
                        m.d.sync += word.eq(shown[register.name])
        m.d.comb += self.rdata.eq(word)
        with m.If(~own):
            m.d.comb += self.rdata.eq(self.inner_rdata)

    @property
    def inner_rdata(self) -> Value:
        """Word that the bus of the design itself shows."""
        raise NotImplementedError

    def design(self, m: Module, platform: object) -> Mapping[str, Value]:
        """Build what is special; return the values of its registers by name."""
        raise NotImplementedError

    def written(self, m: Module, writes: Mapping[str, Value]) -> None:
        """Act on writes of registers of its own; by default they are only kept."""
