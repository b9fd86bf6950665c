"""SystemRDL, CMSIS-SVD and C header say of every register what its definition says; read by parsers not ours."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hopforge.gen.packages.parts import part_files
from hopforge.gen.registers.maps import register_map_files
from hopforge.model.config import parse_config
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.bus_space import AddressSpace, Place, lookup_space, router_space
from hopforge.model.router.params import RouterParams

ENGINE = LookupParams(address_bits=40, tcam_kind="sram", tcam_latency_cycles=3)
ROUTER = RouterParams(ports=3, vcs=2, buffer_flits=2, rc="lookup", lookup=ENGINE, address_bits=40, width_bits=96)
SPACES = {"engine": (lookup_space(ENGINE), "native"), "router": (router_space(ROUTER, (0, 2)), "apb")}


@pytest.fixture(params=SPACES)
def exported(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[Place]]:
    space, bus = SPACES[request.param]
    for rest, text in register_map_files("small", 'It says "hello".', space, bus=bus).items():
        (tmp_path / f"small{rest}").write_text(text)
    return tmp_path / "small", places(space, bus)


def places(space: AddressSpace, bus: str) -> list[Place]:
    found = [place for place in space.places() if bus != "native" or place.address < 1 << space.native_bits]
    assert len(found) > 20
    return found


def reads(access: str, *, readable: bool) -> bool:
    return access in ("const", "ro", "rc") or (readable and access in ("rw", "w1c"))


def writes(access: str) -> bool:
    return access in ("rw", "wo", "w1", "w1c")


def test_systemrdl(exported: tuple[Path, list[Place]]) -> None:
    from systemrdl import RDLCompiler
    from systemrdl.node import RegNode

    path, expected = exported
    compiler = RDLCompiler()
    compiler.compile_file(str(path.with_suffix(".rdl")))
    top = compiler.elaborate().top
    found = {node.absolute_address: node for node in top.descendants(unroll=True) if isinstance(node, RegNode)}
    assert sorted(found) == [4 * place.address for place in expected]
    assert top.inst_name == "small" and top.get_property("desc") == 'It says "hello".'
    for place in expected:
        node = found[4 * place.address]
        assert node.inst_name == place.register.name
        fields = {field.inst_name: field for field in node.fields()}
        assert list(fields) == [field.name for field in place.register.fields]
        for wanted in place.register.fields:
            field, wipes = fields[wanted.name], wanted.access
            assert (field.lsb, field.width) == (wanted.lsb, wanted.width)
            assert field.is_sw_readable == reads(wipes, readable=place.readable)
            assert field.is_sw_writable == writes(wipes)
            assert (field.get_property("onread") is not None) == (wipes == "rc")
            assert (field.get_property("onwrite") is not None) == (wipes == "w1c")
            if place.readable and wipes not in ("wo", "w1"):
                assert field.get_property("reset") == wanted.reset
            assert field.get_property("desc") == wanted.description


def svd_registers(parts: Any) -> dict[int, Any]:
    """Registers by address; the parser gives those of clusters whole addresses, and names with the cluster's."""
    found = {}
    for part in parts:
        if hasattr(part, "clusters") and not hasattr(part, "registers"):  # an array of pages
            for page in part.clusters:
                found |= svd_registers(page.registers)
        elif hasattr(part, "registers"):
            found |= svd_registers(part.registers)
        else:
            found[part.address_offset] = part
    return found


def test_svd(exported: tuple[Path, list[Place]]) -> None:
    from cmsis_svd.parser import SVDParser

    path, expected = exported
    (peripheral,) = SVDParser.for_xml_file(str(path.with_suffix(".svd"))).get_device().peripherals
    found = svd_registers(peripheral.registers)
    assert sorted(found) == [4 * place.address for place in expected]
    blocks = [(block.offset, block.offset + block.size) for block in peripheral.address_blocks]
    assert all(any(low <= at < high for low, high in blocks) for at in found)
    assert bool(peripheral.interrupts) == ("INT_STATUS" in {place.name for place in expected})
    for place in expected:
        register = found[4 * place.address]
        assert register.name.endswith(place.register.name) and register.description == place.register.description
        assert register.reset_value == (place.register.reset if place.readable else 0)
        fields = {field.name: field for field in register.fields}
        assert list(fields) == [field.name for field in place.register.fields]
        for wanted in place.register.fields:
            field = fields[wanted.name]
            assert (field.bit_offset, field.bit_width) == (wanted.lsb, wanted.width)
            access = field.access.value
            assert ("read" in access) == reads(wanted.access, readable=place.readable)
            assert ("write" in access) == writes(wanted.access)


def test_c_header(exported: tuple[Path, list[Place]]) -> None:
    path, expected = exported
    lines = [f'#include "{path.with_suffix(".h").name}"', f'#include "{path.with_suffix(".h").name}"']

    def check(macro: str, value: int) -> None:
        lines.append(f'_Static_assert({macro} == {value}u, "{macro}");')

    for place in expected:
        page, _, name = place.name.rpartition(".")
        stem = "SMALL" + (f"_{page.rstrip('0123456789')}" if page else "") + f"_{name}"
        stem = stem.replace("SMALL_INT_", "SMALL_INTERRUPT_INT_")
        number = page.removeprefix("ENGINE")
        check(f"{stem}_OFFSET" + (f"({number})" if number.isdigit() else ""), 4 * place.address)
        if page != "ENGINES":
            check(f"{stem}_RESET", place.register.reset)
            for field in place.register.fields:
                check(f"{stem}_{field.name.upper()}_LSB", field.lsb)
                check(f"{stem}_{field.name.upper()}_WIDTH", field.width)
                check(f"{stem}_{field.name.upper()}_MASK", ((1 << field.width) - 1) << field.lsb)
    (path.parent / "check.c").write_text("\n".join(lines) + "\n")
    command = ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "check.c"]
    done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    (path.parent / "wrong.c").write_text(lines[0] + '\n_Static_assert(SMALL_CTRL_OFFSET == 4u, "");\n')
    assert subprocess.run([*command[:-1], "wrong.c"], cwd=path.parent, capture_output=True, check=False).returncode


def test_they_are_in_the_package() -> None:
    topology = {"kind": "torus", "radices": [4, 4]}
    lookup = {"cache": {"entries": 8, "ways": 2}, "mshrs": 1, "tcam": {"rows": 2}}
    content = {"name": "small", "topology": topology, "lookup": lookup, "csr": {"bus": "wishbone"}}
    files = part_files(parse_config(json.dumps(content)), "lookup")
    manifest = json.loads(files["small_lookup.json"])
    assert {"small_lookup.rdl", "small_lookup.svd", "small_lookup.h"} <= set(manifest["files"])
    assert "INT_STATUS" in files["small_lookup.rdl"] and "irq" in files["small_lookup.svd"]
    assert manifest["bus"]["kind"] == "wishbone" and manifest["bus"]["address_bits"] == 8
    assert [r["word_address"] for r in manifest["bus"]["interrupt_registers"]] == [0x80, 0x81, 0x82]
    ports = {port["name"]: port for port in manifest["ports"]}
    assert ports["s_wb_adr"]["width_bits"] == 8 and ports["irq"]["direction"] == "output"
    assert not any(name.startswith("csr_") for name in ports)
    assert "## INT_CLEAR" in files["small_lookup.md"] and "behind Wishbone" in files["small_lookup.md"]
