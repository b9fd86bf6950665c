"""Clocks of an ECP5 from its oscillator."""

from typing import NamedTuple

from amaranth.hdl import Instance, Signal

from hopforge.model.errors import UserError

__all__ = ["Ecp5Pll", "ecp5_pll", "pll_instance"]

_VCO_MHZ = 400, 800
_DETECTOR_MHZ = 3.125, 400
_MOST = 128


class Ecp5Pll(NamedTuple):
    """Dividers of an EHXPLLL that feeds back its output.

    Attributes
    ----------
    reference, feedback, output : int
        Output clock = input · feedback / reference; the oscillator inside runs `output` times as fast.
    """

    reference: int
    feedback: int
    output: int


def ecp5_pll(input_mhz: float, output_mhz: float) -> Ecp5Pll:
    """Return dividers that make exactly `output_mhz`; of several the least reference divider, VCO nearest to 600 MHz.

    Examples
    --------
    >>> ecp5_pll(25, 100)
    Ecp5Pll(reference=1, feedback=4, output=6)

    Raises
    ------
    UserError
        There are none.
    """
    for reference in range(1, _MOST + 1):
        feedback = round(output_mhz * reference / input_mhz)
        if not 1 <= feedback <= _MOST or abs(input_mhz * feedback / reference - output_mhz) > 1e-6:
            continue
        if not _DETECTOR_MHZ[0] <= input_mhz / reference <= _DETECTOR_MHZ[1]:
            continue
        fitting = [n for n in range(1, _MOST + 1) if _VCO_MHZ[0] <= output_mhz * n <= _VCO_MHZ[1]]
        if fitting:
            return Ecp5Pll(reference, feedback, min(fitting, key=lambda n: abs(output_mhz * n - sum(_VCO_MHZ) / 2)))
    raise UserError(
        f"--mhz must be a clock that a PLL makes of {input_mhz:g} MHz, not {output_mhz:g}; try a multiple of 5"
    )


def pll_instance(dividers: Ecp5Pll, source: Signal, clock: Signal, locked: Signal) -> Instance:
    """Return the PLL from `source` to `clock`."""
    return Instance(
        "EHXPLLL",
        p_CLKI_DIV=dividers.reference, p_CLKFB_DIV=dividers.feedback, p_CLKOP_DIV=dividers.output,
        p_CLKOP_ENABLE="ENABLED", p_CLKOP_CPHASE=dividers.output // 2, p_CLKOP_FPHASE=0, p_FEEDBK_PATH="CLKOP",
        p_PLLRST_ENA="DISABLED", p_INTFB_WAKE="DISABLED", p_STDBY_ENABLE="DISABLED", p_DPHASE_SOURCE="DISABLED",
        p_OUTDIVIDER_MUXA="DIVA", a_ICP_CURRENT="12", a_LPF_RESISTOR="8", a_MFG_ENABLE_FILTEROPAMP="1",
        a_MFG_GMCREF_SEL="2",
        i_CLKI=source, i_CLKFB=clock, i_RST=0, i_STDBY=0, i_PHASESEL0=0, i_PHASESEL1=0, i_PHASEDIR=1, i_PHASESTEP=1,
        i_PHASELOADREG=1, i_PLLWAKESYNC=0, i_ENCLKOP=0, o_CLKOP=clock, o_LOCK=locked,
    )  # fmt: skip
