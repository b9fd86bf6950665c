"""Section `csr`: the bus to the registers of what is generated."""

from typing import Literal

from hopforge.model.config.base import Section

BusKind = Literal["native", "axi4_lite", "apb", "wishbone"]


class CsrConfig(Section):
    """Registers of a generated lookup engine or router."""

    bus: BusKind = "native"
    """Bus to the registers (definitions/register-buses.md); native: address, write, read and data, no more."""
