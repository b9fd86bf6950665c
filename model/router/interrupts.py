"""Registers of the interrupt, which exist only behind a standard bus (docs/definitions/register-buses.md)."""

from hopforge.model.lookup.csr import CsrMap, Field, Register

__all__ = ["INTERRUPT_WORD_BITS", "SOURCES", "built_sources", "interrupt_map"]

SOURCES = (
    ("drop", "A destination without a matching TCAM row was answered (lookup engine) or its packet dropped (router)."),
    ("overrun", "A TCAM row was committed while another one was being written, and ignored."),
    ("link_change", "The pin link_change was 1."),
    ("memory_error", "Changed bits were found in a line of a cache or in a flit of a buffer, corrected or not."),
)
"""Name and meaning of every source of the interrupt, from bit 0 on."""

INTERRUPT_WORD_BITS = 2
"""Width of a word address within the registers of the interrupt."""


def built_sources(sources: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names for which a design with `sources` has bits: `memory_error` only where it can happen."""
    return tuple(name for name, _ in SOURCES if name != "memory_error" or name in sources)


def interrupt_map(sources: tuple[str, ...]) -> CsrMap:
    """Return the registers of the interrupt of a design that has `sources`, by words from 0 on."""
    known = [(bit, name, text) for bit, (name, text) in enumerate(SOURCES) if name in sources]
    status = [Field(name=name, lsb=bit, width=1, access="ro", description=text) for bit, name, text in known]
    enable = [
        Field(name=name, lsb=bit, width=1, access="rw", description=f"The interrupt is raised by {name}.")
        for bit, name, _ in known
    ]
    clear = [
        Field(name=name, lsb=bit, width=1, access="w1", description=f"INT_STATUS.{name} 0.") for bit, name, _ in known
    ]
    rows = (
        ("INT_STATUS", status, "What has happened since it was cleared; an event in the same cycle wins."),
        ("INT_ENABLE", enable, "What raises the interrupt."),
        ("INT_CLEAR", clear, "Forgets what has happened."),
    )
    return CsrMap(
        tuple(
            Register(name=name, address=word, fields=tuple(fields), description=text)
            for word, (name, fields, text) in enumerate(rows)
        )
    )
