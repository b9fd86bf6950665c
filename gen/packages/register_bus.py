"""The bus to the registers of what is generated, in words and data."""

from collections.abc import Sequence
from typing import Any

from hopforge.gen.packages.package import register_sections, register_table, registers_as_data
from hopforge.hw.buses.on_bus import BRIDGES
from hopforge.model.router.bus_space import AddressSpace

__all__ = ["bus_as_data", "bus_introduction", "bus_paths", "interrupt_sections"]

_NAMES = {"axi4_lite": "AXI4-Lite", "apb": "APB", "wishbone": "Wishbone"}

_WISHBONE_PATHS = tuple((f"s_wb_{start}", f"s_wb_{end}") for start in ("cyc", "stb") for end in ("ack", "err"))


def bus_paths(bus: str) -> tuple[tuple[str, str], ...]:
    """Return the combinational paths of a bus from input to output."""
    return _WISHBONE_PATHS if bus == "wishbone" else ()


def bus_as_data(bus: str, space: AddressSpace) -> dict[str, Any]:
    """Return what the manifest says of a bus; nothing of the native one."""
    if bus == "native":
        return {}
    return {
        "bus": {
            "kind": bus,
            "ports": BRIDGES[bus][0],
            "definition": "docs/definitions/register-buses.md",
            "address_unit_bytes": 4 if bus == "wishbone" else 1,
            "address_bits": space.word_bits if bus == "wishbone" else space.byte_bits,
            "interrupt_registers": [
                data | {"word_address": place.address}
                for data, place in zip(
                    registers_as_data(space.interrupts.registers), space.interrupts.places(), strict=True
                )
            ],
        }
    }


def bus_introduction(bus: str, native: Sequence[str]) -> list[str]:
    """Lines of the register documentation on the bus: `native` are those on the native one."""
    if bus == "native":
        return list(native)
    unit = "a word address" if bus == "wishbone" else "4 · the word below, in bytes"
    return [
        f"32-bit words behind {_NAMES[bus]} (ports `{BRIDGES[bus][0]}_…`); the address on the bus is {unit}.",
        "Bytes can be written alone, but of words that can only be written. An address without a register is answered",
        "with an error. `irq` is the interrupt.",
    ]


def interrupt_sections(bus: str, space: AddressSpace) -> list[str]:
    """Lines of the register documentation on the interrupt; none behind the native bus."""
    if bus == "native":
        return []
    base = next(space.interrupts.places()).address
    registers = space.interrupts.registers
    return [
        "",
        "## Interrupt",
        "",
        f"Registers at 0x{base:04X} + word.",
        "",
        *register_table(registers),
        *register_sections(registers),
    ]
