"""Where registers lie behind a standard bus: those of the design below, those of the interrupt above."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from hopforge.model.lookup.csr import CSR_ADDR_BITS, CsrMap, Register, csr_map
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.csr import (
    ALL_ENGINES_PAGE,
    ENGINE_PAGE,
    ROUTER_CSR_ADDR_BITS,
    router_csr_map,
)
from hopforge.model.router.interrupts import INTERRUPT_WORD_BITS, interrupt_map
from hopforge.model.router.params import RouterParams
from hopforge.model.router.stream_params import STREAM_PAGE, stream_map

__all__ = [
    "WRITABLE",
    "AddressSpace",
    "Place",
    "Window",
    "finds_changed_bits",
    "lookup_space",
    "native_read_cycles",
    "router_space",
]

WRITABLE = frozenset({"rw", "wo", "w1", "w1c"})
"""Accesses of fields that a write can do something to."""


class Place(NamedTuple):
    """A register at a word address; `readable`: a read returns its contents, not always 0."""

    address: int
    name: str
    register: Register
    readable: bool


@dataclass(frozen=True, kw_only=True)
class Window:
    """Equal pages of registers that follow each other.

    Parameters
    ----------
    name : str
        Before the names of the registers, with a dot; of several pages with their number.
    page : int
        The first page: its word address by the size of a page.
    page_bits : int
        Width of a word address within a page.
    registers : CsrMap
        What is on a page.
    pages : int
        How many there are; ``None``: one, without a number.
    readable : bool
        False: writes go to several registers at once, reads give 0.
    """

    name: str
    page: int
    page_bits: int
    registers: CsrMap
    pages: int | None = None
    readable: bool = True

    def places(self) -> Iterator[Place]:
        """Yield every register of the window, in address order."""
        for page in range(1 if self.pages is None else self.pages):
            number = "" if self.pages is None else str(page)
            prefix = f"{self.name}{number}." if self.name else ""
            for register in self.registers:
                address = (self.page + page << self.page_bits) + register.address
                yield Place(address, prefix + register.name, register, self.readable)


@dataclass(frozen=True)
class AddressSpace:
    """All that a bus reaches.

    Parameters
    ----------
    native_bits : int
        Width of a word address on the native bus.
    windows : tuple of Window
        Registers on the native bus.
    sources : tuple of str
        Sources of the interrupt (`model.router.interrupts.SOURCES`).
    """

    native_bits: int
    windows: tuple[Window, ...]
    sources: tuple[str, ...]

    @property
    def word_bits(self) -> int:
        """Width of a word address on the bus: its highest bit leads to the registers of the interrupt."""
        return self.native_bits + 1

    @property
    def byte_bits(self) -> int:
        """Width of a byte address on the bus."""
        return self.word_bits + 2

    @cached_property
    def interrupts(self) -> Window:
        """Registers of the interrupt."""
        return Window(
            name="", page=1 << self.native_bits - INTERRUPT_WORD_BITS, page_bits=INTERRUPT_WORD_BITS,
            registers=interrupt_map(self.sources),
        )  # fmt: skip

    def places(self) -> Iterator[Place]:
        """Yield every register, in address order."""
        for window in (*self.windows, self.interrupts):
            yield from window.places()


def native_read_cycles(params: LookupParams | None) -> int:
    """Return the cycles from ``re`` to the word on the native bus: engines from depth 5 on register their bus."""
    return 3 if params is not None and params.pipeline_depth > 4 else 1


def lookup_space(params: LookupParams) -> AddressSpace:
    """Return what a bus of a lookup engine reaches."""
    window = Window(name="", page=0, page_bits=CSR_ADDR_BITS, registers=csr_map(params))
    busy = ("overrun",) if params.tcam_kind == "sram" else ()
    errors = ("memory_error",) if params.protection is not None else ()
    return AddressSpace(CSR_ADDR_BITS, (window,), ("drop", *busy, "link_change", *errors))


def finds_changed_bits(params: RouterParams) -> bool:
    """Whether flits or lines of a router have check bits."""
    return params.protection is not None or (params.lookup is not None and params.lookup.protection is not None)


def router_space(params: RouterParams, stream_ports: tuple[int, ...] = ()) -> AddressSpace:
    """Return what a bus of a router reaches; in the order of `model.router.csr.address_space`.

    `stream_ports`: ports with an AXI-Stream adapter, whose counters lie between those of router and engines.
    """
    windows = [Window(name="", page=0, page_bits=CSR_ADDR_BITS + 1, registers=router_csr_map(params))]
    sources = ["drop"]
    if params.lookup is not None:
        engine = csr_map(params.lookup)
        written = CsrMap(tuple(r for r in engine if any(field.access in WRITABLE for field in r.fields)))
        bits, engines = CSR_ADDR_BITS, params.engines
        windows += [
            Window(name="ENGINES", page=ALL_ENGINES_PAGE, page_bits=bits, registers=written, readable=False),
            Window(name="ENGINE", page=ENGINE_PAGE, page_bits=bits, registers=engine, pages=engines),
        ]
        sources += ["overrun"] if params.lookup.tcam_kind == "sram" else []
        sources += ["link_change"]
    sources += ["memory_error"] if finds_changed_bits(params) else []
    if stream_ports:
        counters = stream_map(stream_ports)
        windows.append(Window(name="STREAMS", page=STREAM_PAGE, page_bits=CSR_ADDR_BITS, registers=counters))
        windows.sort(key=lambda window: window.page << window.page_bits)
    return AddressSpace(ROUTER_CSR_ADDR_BITS, tuple(windows), tuple(sources))
