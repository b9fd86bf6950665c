"""Energy of a mapped netlist from the changes of its nets and the energies of a library.

A change of a net costs half its capacitance · V² (the pins behind it; wires are ideal), and what the tables of the
cells say of the pins on it. Leakage is that of the cells, whatever their state.
"""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hopforge.gen.synth.cells import Library
from hopforge.gen.synth.gate_cells import Cell, Pin, read_cells, supply
from hopforge.model.errors import UserError

__all__ = ["Activity", "Bit", "GateEnergy", "Netlist", "gate_energy", "opensta_energy", "read_netlist", "uniform"]

_TIMEOUT_S = 300
_INSTANCE = re.compile(r"^  (\w+) (?:\\\S+ |\w+) ?\((.*?)\);$", re.MULTILINE | re.DOTALL)
_PIN = re.compile(r"\.(\w+)\((?:\\(\S+)|([A-Za-z_][\w$]*))\s*(?:\[(\d+)\])?\s*\)")


class Bit(NamedTuple):
    """A bit of a net."""

    net: str
    number: int


class Activity(NamedTuple):
    """Changes of a bit per cycle, and the share of the time in which it is 1."""

    changes: float
    high: float


@dataclass(frozen=True)
class Netlist:
    """Cells of a netlist: each its kind and its pins' bits; `cells` holds the kinds."""

    instances: tuple[tuple[str, Mapping[str, Bit]], ...]
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class GateEnergy:
    """Energy of a cycle, by what it goes into, in pJ; leakage as a power.

    Parameters
    ----------
    internal_pj : float
        In cells, apart from the clock pins of registers.
    clock_pj : float
        In registers and clock gates, by their clock pins, and in the nets of the clock.
    switching_pj : float
        In the capacitance of the other nets.
    leakage_mw : float
        All the time.
    """

    internal_pj: float
    clock_pj: float
    switching_pj: float
    leakage_mw: float

    def cycle_pj(self, period_ns: float) -> float:
        """Return the energy of a cycle of a length."""
        return self.internal_pj + self.clock_pj + self.switching_pj + self.leakage_mw * period_ns


def read_netlist(text: str, library: Library, top: str) -> Netlist:
    """Read a netlist of yosys; instances of anything else than cells of the library (memories) are left out.

    Raises
    ------
    UserError
        No cell at all.
    """
    body = text[text.index(f"module {top}(") :].partition("\nendmodule")[0]
    known = set(re.findall(r"\bcell\s*\(\s*\"?(\w+)\"?\s*\)", library.text))
    found = []
    for match in _INSTANCE.finditer(body):
        if match[1] in known:
            pins = {pin: Bit(escaped or plain, int(bit or 0)) for pin, escaped, plain, bit in _PIN.findall(match[2])}
            found.append((match[1], pins))
    if not found:
        raise UserError(f"{top}: the netlist has no cells of {library.name}")
    return Netlist(tuple(found), read_cells(library, {kind for kind, _ in found}))


def uniform(netlist: Netlist, clock: str, changes: float) -> Callable[[Bit], Activity]:
    """Return the same activity for every net, but for the clock and what it is gated to: two changes."""
    clocks = clock_bits(netlist, clock)
    return lambda bit: Activity(2.0 if bit in clocks else changes, 0.5)


def clock_bits(netlist: Netlist, clock: str) -> set[Bit]:
    """Return the clock, and what leaves clock gates and buffers behind it."""
    found = {Bit(clock, 0)}
    while True:
        more = {
            bit
            for kind, pins in netlist.instances
            if len(netlist.cells[kind].pins) - len(_outputs(netlist.cells[kind])) == 1 or _gates(netlist.cells[kind])
            if any(source in found for pin, source in pins.items() if not netlist.cells[kind].pins[pin].output)
            for pin, bit in pins.items()
            if netlist.cells[kind].pins[pin].output
        }
        if more <= found:
            return found
        found |= more


def _outputs(cell: Cell) -> list[str]:
    return [pin.name for pin in cell.pins.values() if pin.output]


def _gates(cell: Cell) -> bool:
    return (
        cell.state is not None and cell.state.kind == "latch" and "&" in "".join(p.function for p in cell.pins.values())
    )


def gate_energy(
    netlist: Netlist, activity: Callable[[Bit], Activity], library: Library, clock: str, *, as_opensta: bool = False
) -> GateEnergy:
    """Sum what the changes of all nets cost.

    A pin's tables are weighed by the shares of time of their conditions, as if the pins did not depend on each other,
    and these weights are made to sum to 1. A table has an energy for a rise and one for a fall; a change is half of
    each.

    Parameters
    ----------
    netlist : Netlist
        The cells.
    activity : callable
        Of each bit.
    library : Library
        Where their voltage is from.
    clock : str
        Name of the clock.
    as_opensta : bool
        Sum as OpenSTA 2.0.17 does, for a comparison: a change counts as a rise and a fall, weights are left as they
        are, outputs without a net count too, the nets of inputs (and the clock) do not, and the clock is not apart.
    """
    volts, clocks = supply(library).volts, clock_bits(netlist, clock)
    driven = {
        bit for kind, pins in netlist.instances for name, bit in pins.items() if netlist.cells[kind].pins[name].output
    }
    internal = clocked = switching = 0.0
    for kind, pins in netlist.instances:
        cell = netlist.cells[kind]
        seen = {name: activity(bit) for name, bit in pins.items()}
        for name, pin in cell.pins.items():
            if name not in pins and not (as_opensta and pin.output):
                continue
            bit = pins.get(name)
            changes = (
                seen[name].changes if bit else next(seen[other].changes for other in _outputs(cell) if other in seen)
            )
            inside = changes * _table(cell, pin, seen, as_opensta=as_opensta)
            outside = (
                0.0
                if pin.output or (as_opensta and bit not in driven)
                else 0.5 * pin.capacitance_ff * volts**2 * changes
            )
            if bit in clocks and not as_opensta:
                clocked += inside + outside
            else:
                internal += inside
                switching += outside
    leakage = sum(netlist.cells[kind].leakage_nw for kind, _ in netlist.instances)
    return GateEnergy(internal / 1000, clocked / 1000, switching / 1000, leakage / 1e6)


def _table(cell: Cell, pin: Pin, seen: Mapping[str, Activity], *, as_opensta: bool) -> float:
    """Return the energy of a change of a pin inside of the cell, in fJ."""
    if not pin.powers:
        return 0.0
    weights = [
        _share(power.when, seen) if power.when or not pin.output else cell.sensitivity(pin.name, power.related)
        for power in pin.powers
    ]
    energy = sum(weight * power.energy_fj for weight, power in zip(weights, pin.powers, strict=True))
    if as_opensta:
        return 2 * energy
    return energy / sum(weights) if sum(weights) else sum(power.energy_fj for power in pin.powers) / len(pin.powers)


def _share(when: str, seen: Mapping[str, Activity]) -> float:
    """Return the share of the time in which a product of pins holds; 1 for what is no product."""
    share = 1.0
    for negated, name in re.findall(r"(!?)\s*(\w+)", when) if re.fullmatch(r"[\w\s!&()]*", when) else ():
        high = seen[name].high if name in seen else 0.5
        share *= 1 - high if negated else high
    return share


def opensta_energy(netlist: Path, top: str, library: Library, changes: float, folder: Path) -> tuple[float, ...] | None:
    """Return what OpenSTA says at a uniform activity: pJ per cycle internal and switching, mW of leakage.

    None if there is no OpenSTA, or it finds no power. Its clock has two changes per cycle.
    """
    program = shutil.which("sta")
    if program is None:
        return None
    ideal = re.sub(r"\bdefault_wire_load\s*:[^;]*;", "", library.text)  # no wires
    (folder / "ideal.lib").write_text(ideal)
    (folder / "uniform.tcl").write_text(
        f"read_liberty ideal.lib\nread_verilog {netlist.resolve()}\nlink_design {top}\n"
        "create_clock -name clk -period 1 [get_ports clk]\nset_input_transition 0.0172 [all_inputs]\n"
        "set_input_delay 0.1 -clock clk [all_inputs]\n"
        f"set_power_activity -global -activity {changes} -duty 0.5\nreport_power -digits 6\nexit\n"
    )
    done = subprocess.run(
        [program, "-no_splash", "-exit", "uniform.tcl"], cwd=folder, capture_output=True, text=True, check=False,
        timeout=_TIMEOUT_S,
    )  # fmt: skip
    (folder / "uniform.txt").write_text(done.stdout + done.stderr)
    total = re.search(r"^Total" + r"\s+([\d.eE+-]+)" * 3, done.stdout, re.MULTILINE)
    return None if total is None else tuple(1000 * float(number) for number in total.groups())
