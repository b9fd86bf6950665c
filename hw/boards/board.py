"""A design with a serial line and lights: what is built for a board, and what is simulated in its place."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.boards.on_board import OnBoard
from hopforge.hw.buses.uart_bus import UartBus

__all__ = ["Board"]

_ACTIVITY_PER_S = 16


class Board(wiring.Component):
    """`OnBoard` behind a `UartBus`, with the lights of docs/definitions/board-protocol.md.

    ``restart`` asks for a reset of one cycle; the surroundings give it. Reset: as of the parts.

    Parameters
    ----------
    design : OnBoard
        What the board does.
    """

    rx: Signal
    tx: Signal
    heartbeat: Signal
    activity: Signal
    mismatch: Signal
    restart: Signal

    def __init__(self, *, design: OnBoard):
        self.design = design
        super().__init__(
            {
                "rx": In(1),
                "tx": Out(1, init=1),
                "heartbeat": Out(1),
                "activity": Out(1),
                "mismatch": Out(1),
                "restart": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Connect line, design and lights."""
        m = Module()
        design, identity = self.design, self.design.identity
        m.submodules.bus = bus = UartBus(divisor=identity.divisor)
        m.submodules.design = design
        m.d.comb += [
            bus.rx.eq(self.rx),
            self.tx.eq(bus.tx),
            design.addr.eq(bus.addr),
            design.wdata.eq(bus.wdata),
            design.we.eq(bus.we),
            design.re.eq(bus.re),
            bus.rdata.eq(design.rdata),
        ]
        beat = Signal(max(1, (identity.clock_hz // 2).bit_length()))  # the highest bit changes about twice a second
        left = Signal(range(max(2, identity.clock_hz // _ACTIVITY_PER_S)))
        answered = Signal()
        m.d.sync += [
            beat.eq(beat + 1),
            self.heartbeat.eq(beat[-1]),
            self.activity.eq(left != 0),
            self.mismatch.eq(design.mismatch),
            answered.eq(bus.working),
            self.restart.eq(design.reset_wanted & answered & ~bus.working),
        ]
        with m.If(bus.working | design.busy):
            m.d.sync += left.eq(max(1, identity.clock_hz // _ACTIVITY_PER_S - 1))
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        return m
