"""Registers of a router and its address space, as data (docs/guides/generate-a-router.md).

The hardware (`hw.router.csr`), the golden router (`model.router.controlled`), the benches and the register
documentation all read this one map; the registers of the lookup engines in it are those of `model.lookup.csr`.
"""

from collections.abc import Iterator

from hopforge.model.lookup.csr import CSR_ADDR_BITS, WORD_BITS, Access, CsrMap, Field, Register, csr_map
from hopforge.model.router.params import RouterParams

__all__ = [
    "ALL_ENGINES_PAGE",
    "ENGINE_PAGE",
    "NUMBER_BITS",
    "PORT_COUNTERS",
    "ROUTER_CSR_ADDR_BITS",
    "ROUTER_ID",
    "address_space",
    "all_engines_address",
    "engine_address",
    "router_csr_map",
]

ROUTER_ID = 0x48525401
"""ID register: "HRT", version 1 of this map."""

ROUTER_CSR_ADDR_BITS = 14
"""Width of a word address within a router, whatever it holds."""

ALL_ENGINES_PAGE = 2
"""Page (of 2^CSR_ADDR_BITS words) whose writes go to all lookup engines."""

ENGINE_PAGE = 4
"""Page of engine 0 (of input port 0, or of the first ports that share one); those of the others follow."""

NUMBER_BITS = 16
"""Width of a router's number in its network."""

PORT_COUNTERS = (
    ("FLITS_IN", 0x40, "flits that have come in at the port"),
    ("FLITS_OUT", 0x80, "flits that have left through the port"),
    ("DROPS", 0xC0, "packets dropped at the input of the port because their destination was unroutable"),
)
"""Stem, first word address and meaning of the counters that every port has."""

_CHOICES = {
    "rc": ("table", "lookup"),
    "switching": ("wormhole", "vct"),
    "va": ("input_first", "output_first", "wavefront", "free_queue"),
    "sa": ("input_first", "output_first", "wavefront"),
    "arbiter": ("round_robin", "matrix"),
    "vc_release": ("tail", "credits"),
    "output_kind": ("port", "port_set"),
}


def all_engines_address(register: int) -> int:
    """Return the address in a router at which a register of all its lookup engines is written."""
    return ALL_ENGINES_PAGE << CSR_ADDR_BITS | register


def engine_address(engine: int, register: int) -> int:
    """Return the address in a router of a register of a lookup engine: that of an input port, unless they share."""
    return ENGINE_PAGE + engine << CSR_ADDR_BITS | register


def router_csr_map(params: RouterParams) -> CsrMap:
    """Return the registers of the router with `params` outside of its lookup engines.

    Words for ports above 31 and for address bits above 31 exist only where there are such ports and bits.
    """
    registers = [*_constants(params), *_control(params)]
    for stem, base, text in PORT_COUNTERS:
        for port in range(params.ports):
            registers.append(_word(f"{stem}{port}", base + port, "ro", WORD_BITS, f"Port {port}: {text}; wraps."))
    return CsrMap(tuple(sorted(registers, key=lambda register: register.address)))


def flit_counters(params: RouterParams) -> tuple[tuple[str, str], ...]:
    """Return name and meaning of the counters of flits with changed bits, errors first."""
    found = "cycles in which some input port has read a flit with"
    errors = ("FLIT_ERRORS", f"{found} changed bits that are not corrected")
    repairs = ("FLIT_REPAIRS", f"{found} a changed bit that was corrected")
    return {None: (), "parity": (errors,), "secded": (errors, repairs)}[params.protection]


def _word(name: str, address: int, access: Access, width: int, description: str, *, reset: int = 0) -> Register:
    field = Field(name="value", lsb=0, width=width, access=access, reset=reset, description=description)
    return Register(name=name, address=address, fields=(field,), description=description)


def _constants(params: RouterParams) -> Iterator[Register]:
    yield _word("ID", 0x00, "const", WORD_BITS, "What this is, and the version of its map.", reset=ROUTER_ID)
    shape = [("ports", 0, 7, "ports"), ("vcs", 8, 5, "virtual channels of a port")]
    lsb = 16
    fields = [_const(name, at, width, getattr(params, name), text) for name, at, width, text in shape]
    for name, usual in _CHOICES.items():
        known = usual if getattr(params, name) in usual else (*usual, getattr(params, name))
        width = (len(known) - 1).bit_length()
        text = ", ".join(f"{number} {choice}" for number, choice in enumerate(known))
        fields.append(_const(name, lsb, width, known.index(getattr(params, name)), text))
        lsb += width
    fields.append(_const("speculation", lsb, 1, int(params.speculation), "heads ask for the switch ahead of their VC"))
    if params.lookahead is not None:
        fields.append(_const("lookahead", lsb + 1, 1, 1, "heads bring their route along"))
    if params.vc_arbiter != params.arbiter and params.va in ("input_first", "output_first"):
        kinds = _CHOICES["arbiter"]
        text = ", ".join(f"{number} {choice}" for number, choice in enumerate(kinds))
        fields.append(_const("va_arbiter", lsb + 2, 1, kinds.index(params.vc_arbiter), f"of va, another one: {text}"))
    yield Register(name="PARAMS", address=0x01, description="What the router was built with.", fields=tuple(fields))
    sizes = (
        ("buffer_flits", 0, 11, "flits of buffer of a virtual channel"),
        ("width_bits", 16, 13, "data of a flit"),
    )
    yield _sizes("SIZES", 0x02, params, sizes)
    header = (
        ("address_bits", 0, 6, "width of a destination address"),
        ("tag_bits", 8, 7, "width of a tag"),
        ("length_bits", 16, 5, "virtual cut-through: width of a length"),
        ("rc_cycles", 24, 8, "mode table: cycles of route computation"),
    )
    yield _sizes("HEADER", 0x03, params, header)
    if (params.va_iterations, params.sa_iterations) != (1, 1):
        counts = ("va_iterations", 0, 5, "iterations of va"), ("sa_iterations", 8, 5, "iterations of sa")
        yield _sizes("ITERATIONS", 0x09, params, counts)


def _sizes(name: str, address: int, params: RouterParams, fields: tuple[tuple[str, int, int, str], ...]) -> Register:
    return Register(
        name=name, address=address, description="What the router was built with.",
        fields=tuple(_const(field, lsb, width, getattr(params, field), text) for field, lsb, width, text in fields),
    )  # fmt: skip


def _const(name: str, lsb: int, width: int, value: int, description: str) -> Field:
    text = description[0].upper() + description[1:] + "."
    return Field(name=name, lsb=lsb, width=width, access="const", reset=value, description=text)


def _control(params: RouterParams) -> Iterator[Register]:
    enable = Field(
        name="enable", lsb=0, width=1, access="rw", reset=int(params.rc == "table"),
        description="New packets are routed; 0: they wait in their buffers.",
    )  # fmt: skip
    clear = Field(
        name="clear_counters", lsb=1, width=1, access="w1",
        description="All counters of the ports 0.",
    )  # fmt: skip
    yield Register(name="CTRL", address=0x04, description="Enable and one-time actions.", fields=(enable, clear))
    unroutable = Field(
        name="unroutable", lsb=0, width=1, access="ro", description="A bit of UNROUTABLE is set."
    )  # fmt: skip
    yield Register(name="STATUS", address=0x05, description="What has happened.", fields=(unroutable,))
    also = "; a write also goes to OWN of all lookup engines" if params.rc == "lookup" else ""
    for half, address, width in _halves(0x06, params.address_bits):
        yield _word(f"OWN_{half}", address, "rw", width, f"Own address of the router, {_WORDS[half]} word{also}.")
    for address, (name, text) in zip((0x0C, 0x0D), flit_counters(params), strict=False):
        yield _word(name, address, "ro", WORD_BITS, f"Counter: {text}; wraps.")
    yield _word("NUMBER", 0x08, "ro", NUMBER_BITS, "Number of the router in its network, as on its pins.")
    for half, address, width in _halves(0x0A, params.ports):
        yield _word(
            f"UNROUTABLE_{half}", address, "w1c", width,
            f"Bit per input port, {_WORDS[half]} word: a packet with an unroutable destination has been dropped there.",
        )  # fmt: skip


_WORDS = {"LO": "low", "HI": "high"}


def _halves(address: int, width: int) -> Iterator[tuple[str, int, int]]:
    """Name, address and width of the words of a register of up to 64 bits."""
    yield "LO", address, min(width, WORD_BITS)
    if width > WORD_BITS:
        yield "HI", address + 1, width - WORD_BITS


def address_space(params: RouterParams) -> Iterator[tuple[int, str, Register]]:
    """Yield (address, name, register) of everything on the bus of a router, in address order.

    Registers of lookup engines are called ``ENGINES.name`` on the page of all of them and ``ENGINEi.name`` on that of
    engine i.
    """
    for register in router_csr_map(params):
        yield register.address, register.name, register
    if params.rc != "lookup" or params.lookup is None:
        return
    engine = csr_map(params.lookup)
    for register in engine:
        if any(field.access in ("rw", "wo", "w1") for field in register.fields):
            yield all_engines_address(register.address), f"ENGINES.{register.name}", register
    for number in range(params.engines):
        for register in engine:
            yield engine_address(number, register.address), f"ENGINE{number}.{register.name}", register
