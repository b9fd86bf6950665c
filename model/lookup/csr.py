"""Register map of the lookup engine, as data (docs/definitions/lookup-engine.md).

The hardware (`hw.lookup.csr`), the golden engine (`model.lookup.golden`), the benches and the register documentation
all read this one map.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from hopforge.model.lookup.params import LookupParams
from hopforge.model.lookup.second_level import SecondLevelParams
from hopforge.model.numbers.code_word import PROTECTIONS

WORD_BITS = 32
CSR_ADDR_BITS = 7
ENGINE_ID = 0x484F5001  # "HOP", version 1 of this map

Access = Literal["const", "ro", "rw", "wo", "w1", "rc", "w1c"]

MODES = ("arbitrary", "mesh", "torus", "fat_tree", "dragonfly", "expression")
"""Names of the values of MODE.mode, in order."""

UP_CHOICES = ("d_mod_k", "highest_mismatch")
"""Names of the values of MODE.up_choice, in order."""

MEMBER_HASHES = ("crc", "modulo")
"""Names of the values of MODE.member_hash, in order."""

TCAM_KINDS = ("flops", "sram", "external")
"""Names of the values of PARAMS.tcam_kind, in order."""

COUNTERS = (
    ("lookups", "lookups that completed: hits + misses + merges"),
    ("hits", "lookups answered from the cache"),
    ("misses", "lookups that asked the TCAM themselves"),
    ("merges", "lookups that joined an earlier miss of the same key"),
    ("fills", "lines written"),
    ("evictions", "lines written over a live line"),
    ("drops", "answers without a matching TCAM row"),
    ("retries", "TCAM answers thrown away because a flush or an invalidation came between"),
    ("flushes", "epochs begun"),
    ("invalidations", "invalidations completed"),
)
"""Name and meaning of every counter that all engines have, in address order."""

LINE_ERRORS = ("line_errors", "operations that read a line with changed bits and made nothing of it")
LINE_REPAIRS = ("line_repairs", "operations that read a line with one changed bit, which was corrected")

SECOND_LEVEL_COUNTERS = (
    ("second_hits", "requests of the MSHRs that the second level answered"),
    ("second_misses", "requests of the MSHRs that the second level passed on to the TCAM"),
)
"""Those of an engine with a second level only."""

SECOND_LEVEL = 0x0F
"""Address of the register that describes the second level."""

_RADIX_BASE = 0x10
_TCAM_BASE = 0x30
_COUNTER_BASE = 0x40
_SECOND_COUNTER_BASE = 0x50


@dataclass(frozen=True, kw_only=True)
class Field:
    """Some bits of a register.

    Parameters
    ----------
    name : str
        Name within the register.
    lsb, width : int
        Lowest bit and number of bits.
    access : str
        ``const`` a fixed value; ``ro`` set by the hardware; ``rw`` reads back what was written; ``wo`` reads 0;
        ``w1`` writing 1 does something, reads 0; ``rc`` set by the hardware, cleared by reading; ``w1c`` set by the
        hardware, cleared by writing 1.
    reset : int
        Value after reset (of a ``const`` field: its value).
    description : str
        One sentence for the documentation.
    """

    name: str
    lsb: int
    width: int
    access: Access
    reset: int = 0
    description: str = ""

    @property
    def mask(self) -> int:
        """Bits of the field within its register."""
        return ((1 << self.width) - 1) << self.lsb

    def insert(self, value: int, word: int = 0) -> int:
        """Return `word` with `value` in this field.

        Raises
        ------
        ValueError
            If `value` does not fit.
        """
        if not 0 <= value < 1 << self.width:
            raise ValueError(f"{self.name} must be 0 to {(1 << self.width) - 1}, not {value}")
        return (word & ~self.mask) | value << self.lsb

    def extract(self, word: int) -> int:
        """Return the value of this field in `word`."""
        return (word & self.mask) >> self.lsb


@dataclass(frozen=True, kw_only=True)
class Register:
    """One 32-bit word: its word address and its fields; bits outside of fields read 0 and ignore writes."""

    name: str
    address: int
    fields: tuple[Field, ...]
    description: str = ""

    @property
    def reset(self) -> int:
        """Value that a read returns after reset."""
        return sum(field.reset << field.lsb for field in self.fields if field.access not in {"wo", "w1"})

    @property
    def write_mask(self) -> int:
        """Bits that a write can change and a read returns."""
        return sum(field.mask for field in self.fields if field.access == "rw")

    def field(self, name: str) -> Field:
        """Return the field called `name`; KeyError if there is none."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"register {self.name} has no field {name!r}; it has {', '.join(f.name for f in self.fields)}")

    def encode(self, **values: int) -> int:
        """Return the word that holds `values`, 0 in all other fields."""
        word = 0
        for name, value in values.items():
            word = self.field(name).insert(value, word)
        return word

    def decode(self, word: int) -> dict[str, int]:
        """Return the value of every field in `word`."""
        return {field.name: field.extract(word) for field in self.fields}


@dataclass(frozen=True)
class CsrMap:
    """All registers of one engine or router, in address order."""

    registers: tuple[Register, ...]

    @cached_property
    def by_name(self) -> dict[str, Register]:
        """Registers by name."""
        return {register.name: register for register in self.registers}

    @cached_property
    def by_address(self) -> dict[int, Register]:
        """Registers by word address."""
        return {register.address: register for register in self.registers}

    def __iter__(self) -> Iterator[Register]:
        return iter(self.registers)

    def __getitem__(self, name: str) -> Register:
        """Return the register called `name`; KeyError if there is none."""
        return self.by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self.by_name


def csr_map(params: LookupParams) -> CsrMap:
    """Return the register map of the engine with `params`.

    Address registers have a HI word only if addresses are wider than 32 bits, output registers only if outputs are;
    RADIX[i] exists for every comparator that some chunk width can use; the TCAM words do not exist if the TCAM is
    external.
    """
    registers = [*_control(params), *_configuration(params), *_tcam(params)]
    registers += [
        _word(f"COUNT_{name.upper()}", _COUNTER_BASE + index, "ro", WORD_BITS, f"Counter: {text}; wraps.")
        for index, (name, text) in enumerate(engine_counters(params))
        if (name, text) not in SECOND_LEVEL_COUNTERS
    ]
    if params.second_level is not None:
        registers += _second_level(params.second_level)
    return CsrMap(tuple(sorted(registers, key=lambda register: register.address)))


def engine_counters(params: LookupParams) -> tuple[tuple[str, str], ...]:
    """Return name and meaning of every counter of the engine with `params`, in address order."""
    found = {None: (), "parity": (LINE_ERRORS,), "secded": (LINE_ERRORS, LINE_REPAIRS)}
    second = () if params.second_level is None else SECOND_LEVEL_COUNTERS
    return (*COUNTERS, *found[params.protection], *second)


def _second_level(second: SecondLevelParams) -> Iterator[Register]:
    constants = (
        ("second_index_bits", 0, 6, second.index_bits, "log2 of the number of sets"),
        ("second_ways", 8, 7, second.ways, "ways"),
        ("second_latency", 16, 7, second.latency_cycles, "cycles from a request to its answer on a hit"),
    )
    yield Register(
        name="SECOND_LEVEL", address=SECOND_LEVEL, description="The second level.",
        fields=tuple(_const(*constant) for constant in constants),
    )  # fmt: skip
    for index, (name, text) in enumerate(SECOND_LEVEL_COUNTERS):
        address = _SECOND_COUNTER_BASE + index
        yield _word(f"COUNT_{name.upper()}", address, "ro", WORD_BITS, f"Counter: {text}; wraps.")


def _word(
    name: str, address: int, access: Access, width: int, description: str, *, reset: int = 0
) -> Register:  # fmt: skip
    field = Field(name="value", lsb=0, width=width, access=access, reset=reset, description=description)
    return Register(name=name, address=address, fields=(field,), description=description)


def _wide(name: str, address: int, access: Access, width: int, description: str) -> Iterator[Register]:
    """One register of up to 64 bits: a LO word and, if it needs one, a HI word."""
    yield _word(f"{name}_LO", address, access, min(width, WORD_BITS), f"{description}, low word.")
    if width > WORD_BITS:
        # a write to the LO word of INVALIDATE acts, so HI always just holds its bits
        hi: Access = "rw" if access == "wo" else access
        yield _word(f"{name}_HI", address + 1, hi, width - WORD_BITS, f"{description}, high word.")


def _control(params: LookupParams) -> Iterator[Register]:
    yield _word("ID", 0x00, "const", WORD_BITS, "What this is, and the version of its map.", reset=ENGINE_ID)
    constants = (
        ("address_bits", 0, 6, params.address_bits, "width of a destination address"),
        ("ways", 6, 7, params.ways, "ways of the cache"),
        ("index_bits", 13, 5, params.index_bits, "log2 of the number of sets"),
        ("mshrs", 18, 7, params.mshrs, "misses that can wait"),
        ("pipeline_depth", 25, 3, params.pipeline_depth % 8, "hit latency in cycles; 0: 8"),
        ("tcam_kind", 28, 2, TCAM_KINDS.index(params.tcam_kind), "0 flops, 1 sram, 2 external"),
        *([("memory_stage", 30, 1, 1, "a hit takes a cycle more")] if params.memory_stage else []),
    )
    yield Register(
        name="PARAMS", address=0x01, description="What the engine was built with.",
        fields=tuple(_const(*constant) for constant in constants),
    )  # fmt: skip
    yield Register(
        name="CTRL", address=0x02, description="Enable and one-time actions.",
        fields=(
            Field(name="enable", lsb=0, width=1, access="rw", description="Use the cache; 1 ends a topology change."),
            Field(name="flush", lsb=1, width=1, access="w1", description="Forget all lines."),
            Field(
                name="topology_change", lsb=2, width=1, access="w1",
                description="Flush, disable, hold TCAM requests, mode arbitrary; wins over enable in the same write.",
            ),
            Field(name="clear_counters", lsb=3, width=1, access="w1", description="All counters 0."),
        ),
    )  # fmt: skip
    status = (
        ("pending", 0, 1, "ro", "A topology change waits for enable."),
        ("scrub_active", 1, 1, "ro", "Lines of old epochs are being removed."),
        ("flush_wait", 2, 1, "ro", "A flush waits for the scrubber; nothing hits meanwhile."),
        ("tcam_busy", 3, 1, "ro", "A TCAM row is being written."),
        ("invalidate_busy", 4, 1, "ro", "An invalidation has not completed."),
        ("tcam_overrun", 5, 1, "rc", "A TCAM row was committed while busy, and ignored."),
        ("hold", 6, 1, "ro", "No requests go to the TCAM."),
        ("epoch", 8, 8, "ro", "Current epoch."),
    )
    yield Register(
        name="STATUS", address=0x03, description="What the engine is doing.",
        fields=tuple(
            Field(name=name, lsb=lsb, width=width, access=access, description=text)  # type: ignore[arg-type]
            for name, lsb, width, access, text in status
        ),
    )  # fmt: skip
    features: tuple[tuple[str, int, int, int, str], ...] = (
        ("functions", 0, 6, sum(1 << MODES.index(name) for name in params.functions), "bit m: MODE.mode = m exists"),
        ("comparators", 8, 5, params.comparators, "interval comparators"),
        ("max_members", 16, 5, params.max_members, "most link-aggregation members"),
        ("epoch_bits", 24, 4, params.epoch_bits, "width of an epoch"),
    )
    if params.protection is not None:
        code = 1 + PROTECTIONS.index(params.protection)
        features += (("protection", 28, 2, code, "check bits of a line: 1 parity, 2 SECDED"),)
    yield Register(
        name="FEATURES", address=0x0A, description="What the engine was built with.",
        fields=tuple(_const(*constant) for constant in features),
    )  # fmt: skip


def _const(name: str, lsb: int, width: int, value: int, description: str) -> Field:
    text = description[0].upper() + description[1:] + "."
    return Field(name=name, lsb=lsb, width=width, access="const", reset=value, description=text)


def _configuration(params: LookupParams) -> Iterator[Register]:
    chunks = ", ".join(f"{index}: {bits} bits" for index, bits in enumerate(params.chunk_bits))
    mode = (
        (
            "mode", 0, 3, 0,
            "0 arbitrary, 1 mesh, 2 torus, 3 fat tree, 4 dragonfly, 5 expression; one that is not built in acts as 0.",
        ),
        ("chunk_select", 4, 3, 0, f"Width of a digit ({chunks}); one that does not exist acts as 0."),
        ("up_choice", 8, 1, 0, "Fat tree, way up: 0 by the digit of this level, 1 by the highest mismatching digit."),
        ("member_hash", 12, 1, 0, "Link-aggregation member: 0 CRC(d) mod members, 1 d mod members."),
        ("members", 16, 5, 1, f"Link-aggregation members; outside 1 to {params.max_members} acts as 1."),
    )
    yield _fields("MODE", 0x04, mode, "How keys are made; a write flushes.")
    yield from _wide("OWN", 0x05, "rw", params.address_bits, "Own address c, a digit per dimension; a write flushes")
    level = (
        ("level", 0, 5, 0, "Fat tree: level of this switch, 0 = leaf."),
        ("digits", 8, 5, 0, "Mesh, torus: dimensions n; fat tree: digits n of a switch (comparators limit both)."),
    )
    yield _fields("LEVEL", 0x07, level, "Place of this switch and number of digits; a write flushes.")
    yield from _wide(
        "INVALIDATE", 0x08, "wo", params.address_bits,
        "Destination whose line is removed; writing LO starts it and is ignored while STATUS.invalidate_busy",
    )  # fmt: skip
    for index, bits in enumerate(params.comparator_bits):
        text = f"Radix k of dimension {index}; a write flushes."
        yield _word(f"RADIX{index}", _RADIX_BASE + index, "rw", bits + 1, text, reset=1)


def _fields(name: str, address: int, fields: tuple[tuple[str, int, int, int, str], ...], description: str) -> Register:
    return Register(
        name=name, address=address, description=description,
        fields=tuple(
            Field(name=field, lsb=lsb, width=width, access="rw", reset=reset, description=text)
            for field, lsb, width, reset, text in fields
        ),
    )  # fmt: skip


def _tcam(params: LookupParams) -> Iterator[Register]:
    if params.tcam_kind == "external":
        return
    yield from _wide("TCAM_VALUE", _TCAM_BASE, "rw", params.address_bits, "Value of the row to be written")
    yield from _wide("TCAM_MASK", _TCAM_BASE + 2, "rw", params.address_bits, "Mask of the row: 1 = must match")
    yield from _wide("TCAM_OUTPUT", _TCAM_BASE + 4, "rw", params.output_bits, "Output of the row")
    write = (
        ("row", 0, 12, "Row number; one that does not exist is ignored."),
        ("lag", 16, 1, "Add the link-aggregation member of the destination to the output."),
        ("valid", 31, 1, "The row takes part."),
    )
    yield Register(
        name="TCAM_WRITE", address=_TCAM_BASE + 6, description="Writes the row: value, mask, output and these bits.",
        fields=tuple(
            Field(name=name, lsb=lsb, width=width, access="wo", description=text) for name, lsb, width, text in write
        ),
    )  # fmt: skip
