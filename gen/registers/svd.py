"""A register map as CMSIS-SVD."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence

from hopforge.gen.registers.space import Block
from hopforge.model.lookup.csr import Field, Register

__all__ = ["svd_text"]

_ACCESS = {
    "const": ("read-only", {}),
    "ro": ("read-only", {}),
    "rw": ("read-write", {}),
    "wo": ("write-only", {}),
    "w1": ("write-only", {"modifiedWriteValues": "oneToSet"}),
    "rc": ("read-only", {"readAction": "clear"}),
    "w1c": ("read-write", {"modifiedWriteValues": "oneToClear"}),
}
"""Access of a field, and what more is said of it."""


def svd_text(name: str, description: str, blocks: Sequence[Block], *, version: str) -> str:
    """Return a CMSIS-SVD device with one peripheral, at address 0 of its bus.

    Parameters
    ----------
    name, description : str
        Of the device and its peripheral.
    blocks : sequence of Block
        Its registers; byte addresses.
    version : str
        Of what makes it.
    """
    device = ET.Element(
        "device",
        {
            "schemaVersion": "1.3",
            "xmlns:xs": "http://www.w3.org/2001/XMLSchema-instance",
            "xs:noNamespaceSchemaLocation": "CMSIS-SVD.xsd",
        },
    )
    for tag, text in (
        ("name", name), ("version", version), ("description", description), ("addressUnitBits", "8"), ("width", "32"),
        ("size", "32"), ("access", "read-write"), ("resetValue", "0x00000000"), ("resetMask", "0xFFFFFFFF"),
    ):  # fmt: skip
        ET.SubElement(device, tag).text = text
    peripheral = ET.SubElement(ET.SubElement(device, "peripherals"), "peripheral")
    for tag, text in (("name", name), ("description", description), ("baseAddress", "0x00000000")):
        ET.SubElement(peripheral, tag).text = text
    for block in blocks:
        _address_block(peripheral, block)
    if any(block.name == "interrupt" for block in blocks):
        interrupt = ET.SubElement(peripheral, "interrupt")
        for tag, text in (("name", f"{name}_irq"), ("description", "Output irq."), ("value", "0")):
            ET.SubElement(interrupt, tag).text = text
    registers = ET.SubElement(peripheral, "registers")
    for block in blocks:
        if block.name:
            _cluster(registers, block)
        else:
            for register in block.registers:
                _register(registers, register, readable=True)
    ET.indent(device)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(device, encoding="unicode") + "\n"


def _address_block(peripheral: ET.Element, block: Block) -> None:
    part = ET.SubElement(peripheral, "addressBlock")
    for tag, number in (("offset", block.offset), ("size", block.bytes * (block.pages or 1))):
        ET.SubElement(part, tag).text = f"{number:#x}"
    ET.SubElement(part, "usage").text = "registers"


def _cluster(registers: ET.Element, block: Block) -> None:
    cluster = ET.SubElement(registers, "cluster")
    name = block.name
    if block.pages is not None:
        ET.SubElement(cluster, "dim").text = str(block.pages)
        ET.SubElement(cluster, "dimIncrement").text = f"{block.stride:#x}"
        name += "[%s]"
    for tag, text in (("name", name), ("description", block.description), ("addressOffset", f"{block.offset:#x}")):
        ET.SubElement(cluster, tag).text = text
    for register in block.registers:
        _register(cluster, register, readable=block.readable)


def _register(parent: ET.Element, register: Register, *, readable: bool) -> None:
    element = ET.SubElement(parent, "register")
    reset = register.reset if readable else 0
    for tag, text in (
        ("name", register.name), ("description", register.description),
        ("addressOffset", f"{4 * register.address:#x}"), ("size", "32"), ("resetValue", f"0x{reset:08X}"),
    ):  # fmt: skip
        ET.SubElement(element, tag).text = text
    fields = ET.SubElement(element, "fields")
    for field in register.fields:
        _field(fields, field, readable=readable)


def _field(fields: ET.Element, field: Field, *, readable: bool) -> None:
    element = ET.SubElement(fields, "field")
    access, more = _ACCESS[field.access]
    if not readable:
        access = "read-only" if access == "read-only" else "write-only"
    for tag, text in (
        ("name", field.name), ("description", field.description), ("bitOffset", str(field.lsb)),
        ("bitWidth", str(field.width)), ("access", access), *sorted(more.items()),
    ):  # fmt: skip
        ET.SubElement(element, tag).text = text
