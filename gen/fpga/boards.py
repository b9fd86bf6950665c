"""Boards that `hopforge fpga` knows: chips, pins, clocks, and what fits."""

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any, Literal

from hopforge.model.board.registers import DesignKind
from hopforge.model.errors import UserError
from hopforge.model.requirements import pip_command

__all__ = ["BOARDS", "FpgaBoard", "Light", "board_named"]

Tools = Literal["ecp5", "ice40", "vivado"]


@dataclass(frozen=True)
class Light:
    """A light of a board: resource, its number, colour if it has several."""

    resource: str
    number: int
    colour: str = ""


@dataclass(frozen=True, kw_only=True)
class FpgaBoard:
    """A board of amaranth-boards.

    Parameters
    ----------
    name, title : str
        What users call it, and what it is called.
    module, platform : str
        Module of amaranth_boards and class.
    tools : str
        ``ecp5``, ``ice40`` (open tools) or ``vivado``.
    clock_mhz : float
        Oscillator on the board.
    mhz : dict of float
        Clock of each design, unless the user wants another.
    has_pll : bool
        Another clock than the oscillator's can be made.
    luts, brams, bram_kbit : int
        LUTs of four inputs (Artix-7: six), block RAMs and their size.
    lights : tuple of Light
        Heartbeat, activity, mismatch.
    extra_resources : str
        Attribute of the platform with resources to be added for a light.
    holds : str
        What fits, for the list.
    """

    name: str
    title: str
    module: str
    platform: str
    tools: Tools
    clock_mhz: float
    mhz: dict[DesignKind, float]
    has_pll: bool
    luts: int
    brams: int
    bram_kbit: int
    lights: tuple[Light, Light, Light]
    extra_resources: str = ""
    holds: str = ""

    def make_platform(self) -> Any:
        """Return a fresh platform.

        Raises
        ------
        UserError
            amaranth-boards is missing.
        """
        if importlib.util.find_spec("amaranth_boards") is None:
            raise UserError(f"amaranth-boards is missing: {pip_command('amaranth-boards')}")
        platform = getattr(importlib.import_module(f"amaranth_boards.{self.module}"), self.platform)()
        if self.extra_resources:
            platform.add_resources(getattr(platform, self.extra_resources))
        return platform

    def clock_hz(self, design: DesignKind, mhz: float | None) -> int:
        """Return the clock of a design in Hz.

        Raises
        ------
        UserError
            A clock that the board cannot make.
        """
        wanted = self.mhz[design] if mhz is None else mhz
        if wanted != self.clock_mhz and not self.has_pll:
            raise UserError(f"--mhz must be {self.clock_mhz:g} on {self.name}, its oscillator, not {wanted:g}")
        if not 1 <= wanted <= 400:
            raise UserError(f"--mhz must be 1 to 400, not {wanted:g}")
        return round(wanted * 1e6)


_LEDS = (Light("led", 0), Light("led", 1), Light("led", 2))
_ECP5_HOLDS = "engine of 2048 lines; networks"

BOARDS = {
    board.name: board
    for board in (
        FpgaBoard(
            name="ulx3s", title="ULX3S-85F", module="ulx3s", platform="ULX3S_85F_Platform", tools="ecp5", clock_mhz=25,
            mhz={"engine": 100, "network": 75}, has_pll=True, luts=83_640, brams=208, bram_kbit=18,
            lights=_LEDS, holds=_ECP5_HOLDS,
        ),
        FpgaBoard(
            name="ecpix5", title="ECPIX-5 85F", module="ecpix5", platform="ECPIX585Platform", tools="ecp5",
            clock_mhz=100, mhz={"engine": 100, "network": 80}, has_pll=True, luts=83_640, brams=208, bram_kbit=18,
            lights=(Light("rgb_led", 0, "g"), Light("rgb_led", 1, "b"), Light("rgb_led", 2, "r")), holds=_ECP5_HOLDS,
        ),
        FpgaBoard(
            name="icebreaker", title="iCEBreaker UP5K", module="icebreaker", platform="ICEBreakerPlatform",
            tools="ice40", clock_mhz=12, mhz={"engine": 12, "network": 12}, has_pll=False, luts=5280, brams=30,
            bram_kbit=4, lights=(Light("led", 1), Light("led", 2), Light("led", 0)), extra_resources="break_off_pmod",
            holds="engine of 16 lines",
        ),
        FpgaBoard(
            name="arty", title="Arty A7-100", module="arty_a7", platform="ArtyA7_100Platform", tools="vivado",
            clock_mhz=100, mhz={"engine": 100, "network": 100}, has_pll=False, luts=63_400, brams=135, bram_kbit=36,
            lights=_LEDS, holds="as ULX3S (Vivado)",
        ),
    )
}  # fmt: skip
"""Board by name."""


def board_named(name: str) -> FpgaBoard:
    """Return a board.

    Raises
    ------
    UserError
        Listing the known ones.
    """
    if name not in BOARDS:
        raise UserError(f"BOARD must be one of {', '.join(BOARDS)}, not {name!r} (hopforge fpga --list)")
    return BOARDS[name]
