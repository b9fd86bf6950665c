"""Registers of a board, as data (docs/definitions/board-protocol.md)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hopforge.model.lookup.csr import WORD_BITS, Access, CsrMap, Field, Register

__all__ = ["BOARD_ID", "DESIGNS", "BoardIdentity", "DesignKind", "board_map"]

DesignKind = Literal["engine", "network"]

DESIGNS: dict[DesignKind, int] = {"engine": 1, "network": 2}
"""Values of DESIGN."""

BOARD_ID = 0x48464201  # "HFB", version 1

_RUN_COUNTERS: dict[DesignKind, tuple[tuple[str, str], ...]] = {
    "engine": (
        ("SENT", "Requests taken by the engine."), ("ANSWERED", "Answers."), ("MATCHED", "Answers with match."),
        ("HITS", "Answers with hit."), ("CHECKSUM", "Of all answers and their order."),
    ),
    "network": (
        ("SENT", "Flits that HOST has sent."), ("RECEIVED", "Flits that it has taken."),
        ("PACKETS", "Packets that it has taken."), ("WRONG", "Flits that its checker has refused."),
        ("CHECKSUM", "Of the flits that it has taken."),
    ),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BoardIdentity:
    """What a board says that it is.

    Parameters
    ----------
    design : str
        ``engine`` or ``network``.
    fingerprint : int
        Of the parameters of the design, 32 bits.
    clock_hz, baud : int
        Its clock and the rate of its line.

    Raises
    ------
    ValueError
        Fewer than 4 cycles a bit.
    """

    design: DesignKind
    fingerprint: int
    clock_hz: int
    baud: int = 115_200

    def __post_init__(self) -> None:
        if self.divisor < 4:
            raise ValueError(f"baud must be at most a fourth of the clock of {self.clock_hz} Hz, not {self.baud}")

    @property
    def divisor(self) -> int:
        """Cycles of a bit time."""
        return round(self.clock_hz / self.baud)


def board_map(identity: BoardIdentity) -> CsrMap:
    """Return the registers of a board; addresses are those within its page."""
    registers = [*_identity(identity), *_control(), *_run(identity.design)]
    return CsrMap(tuple(sorted(registers, key=lambda register: register.address)))


def _identity(identity: BoardIdentity) -> Iterator[Register]:
    constants = (
        ("ID", BOARD_ID), ("DESIGN", DESIGNS[identity.design]), ("FINGERPRINT", identity.fingerprint),
        ("CLOCK_HZ", identity.clock_hz), ("DIVISOR", identity.divisor),
    )  # fmt: skip
    for address, (name, value) in enumerate(constants):
        yield _word(name, address, "const", reset=value)


def _control() -> Iterator[Register]:
    fields = (
        Field(name="start", lsb=0, width=1, access="w1", description="Begin a run."),
        Field(name="reset", lsb=1, width=1, access="w1", description="Reset after the reply."),
        Field(name="mismatch", lsb=8, width=1, access="rw", description="The light."),
    )
    yield Register(name="CTRL", address=0x08, fields=fields)
    status = (
        Field(name="busy", lsb=0, width=1, access="ro", description="A run goes on."),
        Field(name="mismatch", lsb=1, width=1, access="ro", description="A checker has found something."),
    )
    yield Register(name="STATUS", address=0x09, fields=status)
    yield _word("SEED", 0x0A, "rw")
    yield _word("COUNT", 0x0B, "rw")
    yield _word("CYCLES", 0x0F, "ro")


def _run(design: DesignKind) -> Iterator[Register]:
    if design == "engine":
        for name, address in (("MASK_LO", 0x0C), ("MASK_HI", 0x0D), ("DST_LO", 0x10), ("DST_HI", 0x11)):
            yield _word(name, address, "rw")
        yield _word("ANSWER", 0x12, "ro")
    else:
        for name, address in (("PERIOD", 0x0C), ("LENGTHS", 0x0D), ("HOST", 0x0E)):
            yield _word(name, address, "rw")
    for address, (name, text) in enumerate(_RUN_COUNTERS[design], 0x20):
        yield _word(name, address, "ro", text)


def _word(name: str, address: int, access: Access, text: str = "", *, reset: int = 0) -> Register:
    field = Field(name="value", lsb=0, width=WORD_BITS, access=access, reset=reset, description=text)
    return Register(name=name, address=address, fields=(field,), description=text)
