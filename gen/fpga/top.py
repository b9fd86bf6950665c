"""The top of a design on a board: pins, clock and reset."""

from typing import Any

from amaranth.hdl import ClockDomain, Elaboratable, Module, Signal, Value
from amaranth.lib import io

from hopforge.gen.fpga.boards import FpgaBoard, Light
from hopforge.gen.fpga.pll import ecp5_pll, pll_instance
from hopforge.hw.boards.board import Board

__all__ = ["FpgaTop"]

_RESET_CYCLES = 255
"""Cycles of reset behind power-up, or behind the lock of the PLL: block RAMs of an iCE40 need 36."""


class FpgaTop(Elaboratable):
    """A `Board` at the pins of a board of amaranth-boards.

    Parameters
    ----------
    board : FpgaBoard
        The board.
    design : Board
        What is on it.
    """

    def __init__(self, *, board: FpgaBoard, design: Board):
        self.board, self.design = board, design

    def elaborate(self, platform: Any) -> Module:
        """Connect pins, clock, reset and lights."""
        m = Module()
        board, design = self.board, self.design
        m.submodules.board = design
        self._clock(m, platform)
        uart = platform.request("uart", 0, dir="-")
        m.d.comb += design.rx.eq(_input(m, "rx", uart.rx))
        _output(m, "tx", uart.tx, design.tx)
        lights = {"heartbeat": design.heartbeat, "activity": design.activity, "mismatch": design.mismatch}
        for light, (name, signal) in zip(board.lights, lights.items(), strict=True):
            _output(m, name, _light(platform, light), signal)
        return m

    def _clock(self, m: Module, platform: Any) -> None:
        """Make the clock, and a reset that begins with it."""
        hz = self.design.design.identity.clock_hz
        pin = _input(m, "oscillator", platform.request(platform.default_clk, 0, dir="-"))
        clock, locked = Signal(name="design_clk"), Signal(name="locked")
        if hz == round(self.board.clock_mhz * 1e6):
            m.d.comb += [clock.eq(pin), locked.eq(1)]
        else:
            m.submodules.pll = pll_instance(ecp5_pll(self.board.clock_mhz, hz / 1e6), pin, clock, locked)
        domain = ClockDomain("sync")
        waiting = ClockDomain("por", reset_less=True, local=True)
        m.domains += [domain, waiting]
        left = Signal(range(_RESET_CYCLES + 1), init=_RESET_CYCLES)
        held = Signal(3)
        m.d.comb += [domain.clk.eq(clock), waiting.clk.eq(clock)]
        button: Any = 0
        if platform.default_rst is not None:
            button = _input(m, "button", platform.request(platform.default_rst, 0, dir="-"))
        m.d.por += held.eq((held << 1) | ~locked | button)  # two registers against the pins' own time
        with m.If(held[-1]):
            m.d.por += left.eq(_RESET_CYCLES)
        with m.Elif(left != 0):
            m.d.por += left.eq(left - 1)
        reset = Signal(init=1)
        m.d.por += reset.eq((left != 0) | self.design.restart)
        m.d.comb += domain.rst.eq(reset)


def _input(m: Module, name: str, port: Any) -> Any:
    buffer: Any = io.Buffer("i", port)
    m.submodules[f"{name}_pin"] = buffer
    return buffer.i


def _output(m: Module, name: str, port: Any, signal: Value) -> None:
    buffer: Any = io.Buffer("o", port)
    m.submodules[f"{name}_pin"] = buffer
    m.d.comb += buffer.o.eq(signal)


def _light(platform: Any, light: Light) -> Any:
    ports = platform.request(light.resource, light.number, dir="-")
    return getattr(ports, light.colour) if light.colour else ports
