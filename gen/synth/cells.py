"""Cell libraries: reading a liberty file, and the cells that yosys does not choose by itself."""

import errno
import gzip
import io
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from hopforge.model.errors import UserError
from hopforge.model.input_file import largest_bytes, read_input, too_large

__all__ = ["GateCell", "Library", "cell_bodies", "gate_cell", "read_library", "reset_map"]


@dataclass(frozen=True)
class Library:
    """A liberty file, unpacked.

    Parameters
    ----------
    name : str
        Name that the file gives itself.
    corner : str
        Process, voltage and temperature that it was characterized for, as far as it says.
    text : str
        The file.
    """

    name: str
    corner: str
    text: str


def read_library(path: Path) -> Library:
    """Read a liberty file (``.lib`` or ``.lib.gz``).

    Raises
    ------
    UserError
        If it cannot be read, or is not a liberty file.
    """
    try:
        raw = read_input(path)
        if raw[:2] == b"\x1f\x8b":
            most = largest_bytes()
            with gzip.open(io.BytesIO(raw)) as packed:
                raw = packed.read(most + 1)
            if len(raw) > most:
                raise OSError(errno.EFBIG, f"unpacked it is {too_large(most)}")
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{path}: cannot read the cell library: {reason}") from None
    text = raw.decode(errors="replace")
    name = re.search(r"\blibrary\s*\(\s*\"?([\w.-]+)\"?\s*\)", text)
    if name is None or not re.search(r"\bcell\s*\(", text):
        raise UserError(f"{path}: not a liberty file: it has no library (...) with cells")

    def entry(key: str) -> str:
        found = re.search(rf"\b{key}\s*:\s*\"?([\w.+-]+)\"?\s*;", text)
        return found[1] if found else "?"

    corner = f"{entry('default_operating_conditions')}, {entry('nom_voltage')} V, {entry('nom_temperature')} °C"
    return Library(name[1], corner, text)


@dataclass(frozen=True, kw_only=True)
class GateCell:
    """A cell that gates a clock: what is in its enable before the rising edge decides about the high phase after it.

    Parameters
    ----------
    name : str
        Of the cell.
    enable, clock, gated : str
        Pins.
    area, max_load : float
        Units of the library.
    low : tuple of str
        Other inputs, such as a scan enable, that must be 0.
    """

    name: str
    enable: str
    clock: str
    gated: str
    area: float
    max_load: float
    low: tuple[str, ...] = ()

    def instance(self, enable: str, clock: str, gated: str) -> str:
        """Return Verilog of an instance for a techmap."""
        pins = {self.enable: enable, self.clock: clock, self.gated: gated, **dict.fromkeys(self.low, "1'b0")}
        return f"{self.name} _TECHMAP_REPLACE_ ({', '.join(f'.{pin}({net})' for pin, net in pins.items())});"


def cell_bodies(library: Library) -> dict[str, str]:
    """Return what stands in the group of each cell, by name."""
    return _groups(library.text, "cell")


def gate_cell(library: Library, latches: int) -> GateCell | None:
    """Return the smallest clock gate that can drive so many latches, else the strongest; None if there is none.

    Parameters
    ----------
    library : Library
        Cells; a gate is one with ``clock_gating_integrated_cell : latch_posedge``.
    latches : int
        Enable pins behind the gate, each like that of the smallest latch.
    """
    cells = _groups(library.text, "cell")
    latch_loads = [
        (_number(body, "area"), _number(pin, "capacitance"))
        for body in cells.values()
        if (latch := re.search(r"\blatch\s*\([^)]*\)\s*\{[^}]*\benable\s*:\s*\"(\w+)\"", body))
        and (pin := _groups(body, "pin").get(latch[1])) is not None
    ]
    load = latches * min(latch_loads)[1] if latch_loads else 0.0
    gates = []
    for name, body in cells.items():
        if not re.search(r"\bclock_gating_integrated_cell\s*:\s*\"?latch_posedge", body):
            continue
        pins = _groups(body, "pin")
        of_role = {
            role: pin
            for pin, text in pins.items()
            for role in ("clock", "enable", "out")
            if re.search(rf"\bclock_gate_{role}_pin\s*:\s*true", text)
        }
        if len(of_role) == 3:
            low = tuple(
                pin
                for pin, text in pins.items()
                if pin not in of_role.values() and re.search(r"\bdirection\s*:\s*input", text)
            )
            gates.append(
                GateCell(
                    name=name,
                    enable=of_role["enable"],
                    clock=of_role["clock"],
                    gated=of_role["out"],
                    area=_number(body, "area"),
                    max_load=_number(pins[of_role["out"]], "max_capacitance"),
                    low=low,
                )
            )
    if not gates:
        return None
    strong = [gate for gate in gates if gate.max_load >= load]
    return min(strong, key=lambda gate: gate.area) if strong else max(gates, key=lambda gate: gate.max_load)


def reset_map() -> str:
    """Verilog of a techmap from flip-flops with a synchronous reset to gates, with the enable left as such."""
    modules = []
    for value, data in ((0, "D & ~R"), (1, "D | R")):
        for name, enable in ((f"$_SDFFE_PP{value}P_", "E | R"), (f"$_SDFFCE_PP{value}P_", "E")):
            modules.append(
                f"module \\{name} (input D, C, R, E, output Q);\n"
                f"  \\$_DFFE_PP_ _TECHMAP_REPLACE_ (.D({data}), .C(C), .E({enable}), .Q(Q));\nendmodule\n"
            )
    return "".join(modules)


def _groups(text: str, kind: str) -> dict[str, str]:
    """Return the bodies of the groups ``kind (name) {...}`` of a liberty text by name."""
    found: dict[str, str] = {}
    for match in re.finditer(rf"\b{kind}\s*\(\s*\"?(\w+)\"?\s*\)\s*\{{", text):
        depth, place = 1, match.end()
        for brace in re.finditer(r"[{}]", text[match.end() :]):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                place = match.end() + brace.start()
                break
        found[match[1]] = text[match.end() : place]
    return found


def _number(text: str, key: str) -> float:
    """Return the number of an attribute, 0 without it."""
    found = re.search(rf"\b{key}\s*:\s*([\d.eE+-]+)\s*;", text)
    return float(found[1]) if found else 0.0
