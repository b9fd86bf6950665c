"""The registers of a package where its bus has them, as blocks for descriptions in other languages."""

from collections.abc import Sequence
from typing import NamedTuple

from hopforge.model.lookup.csr import CsrMap
from hopforge.model.router.bus_space import AddressSpace, Window

__all__ = ["Block", "register_blocks"]

WORD_BYTES = 4


class Block(NamedTuple):
    """Equal pages of registers.

    Attributes
    ----------
    name : str
        Of the block, in lower case; empty: the registers of the design itself.
    description : str
        One sentence.
    offset, stride, bytes : int
        Byte addresses: of the first page, from page to page, and the size of a page.
    pages : int or None
        How many; None: one that is not an array.
    registers : CsrMap
        What is on a page.
    readable : bool
        False: writes go to all engines, reads give 0.
    """

    name: str
    description: str
    offset: int
    stride: int
    bytes: int
    pages: int | None
    registers: CsrMap
    readable: bool


_DESCRIPTIONS = {
    "": "The registers of the design.",
    "ENGINES": "All lookup engines at once: a write goes to each of them, a read gives 0.",
    "STREAMS": "Counters of the AXI-Stream adapters.",
    "ENGINE": "The lookup engine of each input port.",
}


def register_blocks(space: AddressSpace, *, interrupts: bool) -> Sequence[Block]:
    """Return the blocks of a design, in address order; with `interrupts` those that only a standard bus has."""
    blocks = [_block(window, window.name.lower(), _DESCRIPTIONS[window.name]) for window in space.windows]
    if interrupts:
        blocks.append(_block(space.interrupts, "interrupt", "What the interrupt output says."))
    return blocks


def _block(window: Window, name: str, description: str) -> Block:
    size = WORD_BYTES << window.page_bits
    return Block(
        name, description, window.page * size, size, size, window.pages, window.registers, window.readable
    )  # fmt: skip
