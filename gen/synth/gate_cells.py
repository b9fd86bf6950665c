"""Cells of a liberty library: what they do, as Verilog, and what a change of a pin costs."""

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hopforge.gen.synth.cells import Library, cell_bodies
from hopforge.model.errors import UserError

__all__ = ["Cell", "Group", "InternalPower", "Pin", "Supply", "read_cells", "supply"]

_TOKEN = re.compile(r'"[^"]*"|[{}();:,]|[^\s{}();:,"]+')
_STATE = "IQ"


@dataclass
class Group:
    """A group of a liberty file: ``kind (names) { attributes, groups }``."""

    kind: str
    names: tuple[str, ...]
    values: dict[str, list[str]] = field(default_factory=dict)
    groups: list["Group"] = field(default_factory=list)

    def of(self, kind: str) -> list["Group"]:
        """Return the groups of a kind."""
        return [group for group in self.groups if group.kind == kind]

    def word(self, key: str, default: str = "") -> str:
        """Return an attribute of one word."""
        return self.values.get(key, [default])[0]


@dataclass(frozen=True)
class InternalPower:
    """Energy of a change of a pin inside of the cell.

    Parameters
    ----------
    energy_fj : float
        Mean of rise and fall, at a transition of the table's third entry and the load of its middle.
    when : str
        State of the other pins in which it holds; empty: any.
    related : str
        Of an output, the pin whose change is the reason.
    """

    energy_fj: float
    when: str
    related: str = ""


@dataclass(frozen=True)
class Pin:
    """A pin: input or output, its capacitance in fF, its function, its tables."""

    name: str
    output: bool
    capacitance_ff: float
    function: str
    powers: tuple[InternalPower, ...]


@dataclass(frozen=True)
class Cell:
    """A cell.

    Parameters
    ----------
    name : str
        Its name.
    leakage_nw : float
        Leakage, whatever its state.
    pins : mapping of str to Pin
        Its pins.
    state : Group or None
        ``ff`` or ``latch``, if it has one; of a clock gate the latch that it is.
    """

    name: str
    leakage_nw: float
    pins: Mapping[str, Pin]
    state: Group | None

    def verilog(self) -> str:
        """Return the cell as a module without delays.

        Raises
        ------
        UserError
            A function that cannot be read.
        """
        ports = ", ".join(f"{'output' if pin.output else 'input'} {pin.name}" for pin in self.pins.values())
        lines = [f"module {self.name} ({ports});"]
        if self.state is not None:
            lines += self._state(self.state)
        for pin in self.pins.values():
            if pin.output:
                lines.append(f"  assign {pin.name} = {self._expression(pin.function)};")
        return "\n".join([*lines, "endmodule", ""])

    def sensitivity(self, output: str, pin: str) -> float:
        """Return the share of the states of all inputs in which an output follows a change of a pin; 1: unknown."""
        text = self.pins[output].function
        names = sorted({*re.findall(r"\w+", text)})
        if pin not in names or not set(names) <= set(self.pins):
            return 1.0
        code = compile(self._expression(text).replace("~", "1^"), self.name, "eval")
        others = [name for name in names if name != pin]
        differs = 0
        for values in itertools.product((0, 1), repeat=len(others)):
            state = dict(zip(others, values, strict=True))
            differs += eval(code, {}, {**state, pin: 0}) != eval(code, {}, {**state, pin: 1})
        return float(differs / 2 ** len(others))

    def _state(self, group: Group) -> list[str]:
        positive, *negative = group.names
        lines = [f"  reg {positive} = 1'b0;", *(f"  wire {name} = ~{positive};" for name in negative)]
        forced = [
            (group.word(kind), value) for kind, value in (("clear", "1'b0"), ("preset", "1'b1")) if kind in group.values
        ]
        choice = "".join(f"if ({self._expression(text)}) {positive} <= {value}; else " for text, value in forced)
        if group.kind == "ff":
            following = self._expression(group.word("next_state"))
            events = "".join(f" or posedge forced{number}" for number in range(len(forced)))
            lines += [
                f"  wire clocked = {self._expression(group.word('clocked_on'))};",
                *(f"  wire forced{n} = {self._expression(text)};" for n, (text, _) in enumerate(forced)),
                f"  always @(posedge clocked{events}) {choice}{positive} <= {following};",
            ]
        else:
            enable, data = (self._expression(group.word(key)) for key in ("enable", "data_in"))
            lines.append(f"  always @* {choice}if ({enable}) {positive} <= {data};")
        return lines

    def _expression(self, text: str) -> str:
        """Return a function in Verilog."""
        if not text or re.search(r"[^\w\s()!&|^*+']", text) or re.search(r"\w\s+[\w(!]|\)\s*[\w(!]", text):
            raise UserError(f"cell {self.name}: the function {text!r} cannot be read")
        text = re.sub(r"(\w+)'", r"!\1", text)
        return text.replace("*", "&").replace("+", "|").replace("!", "~")


@dataclass(frozen=True)
class Supply:
    """Voltage and units of a library."""

    volts: float
    farads_per_unit: float


def supply(library: Library) -> Supply:
    """Return voltage and unit of capacitance.

    Raises
    ------
    UserError
        If the library does not say them.
    """
    volts = re.search(r"\bnom_voltage\s*:\s*([\d.]+)", library.text)
    unit = re.search(r"\bcapacitive_load_unit\s*\(\s*([\d.]+)\s*,\s*\"?(ff|pf)\"?\s*\)", library.text, re.IGNORECASE)
    if volts is None or unit is None:
        missing = "nom_voltage" if volts is None else "capacitive_load_unit"
        raise UserError(f"{library.name}: no {missing} in the library; energies need it")
    return Supply(float(volts[1]), float(unit[1]) * {"ff": 1e-15, "pf": 1e-12}[unit[2].lower()])


def read_cells(library: Library, names: Iterable[str]) -> dict[str, Cell]:
    """Return cells by name.

    Raises
    ------
    UserError
        A cell that the library does not have.
    """
    bodies = cell_bodies(library)
    leakage_unit = re.search(r"\bleakage_power_unit\s*:\s*\"?([\d.]*)\s*(pW|nW|uW|mW)", library.text)
    watts = {"pW": 1e-3, "nW": 1.0, "uW": 1e3, "mW": 1e6}
    scale = float(leakage_unit[1] or 1) * watts[leakage_unit[2]] if leakage_unit else 1.0
    unit = supply(library).farads_per_unit / 1e-15
    found = {}
    for name in sorted(set(names)):
        if name not in bodies:
            raise UserError(f"{library.name}: no cell {name}")
        group = _parsed(bodies[name])
        pins = {pin.names[0]: _pin(pin, unit) for pin in group.of("pin")}
        state = next((one for kind in ("ff", "latch") for one in group.of(kind)), None) or _clock_gate(group)
        leakage = float(group.word("cell_leakage_power", "0")) * scale
        found[name] = Cell(name, leakage, {key: pin for key, pin in pins.items() if pin is not None}, state)
    return found


def _clock_gate(group: Group) -> Group | None:
    """Return the latch of a clock gate (liberty says it with a table of states)."""
    if not group.word("clock_gating_integrated_cell").startswith("latch_posedge"):
        return None
    roles = {
        role: [pin.names[0] for pin in group.of("pin") if pin.word(f"clock_gate_{role}_pin") == "true"]
        for role in ("clock", "enable", "test")
    }
    data = " | ".join(roles["enable"] + roles["test"])
    return Group("latch", (_STATE,), {"enable": [f"!{roles['clock'][0]}"], "data_in": [data]})


def _pin(group: Group, unit: float) -> Pin | None:
    """Return a pin; None for one inside of the cell."""
    direction = group.word("direction")
    if direction not in ("input", "output"):
        return None
    powers = [
        InternalPower(unit * sum(energies) / len(energies), power.word("when"), power.word("related_pin"))
        for power in group.of("internal_power")
        if (energies := [_entry(table) for edge in ("rise_power", "fall_power") for table in power.of(edge)])
    ]
    function = group.word("function") or group.word("state_function")
    return Pin(
        group.names[0], direction == "output", unit * float(group.word("capacitance", "0")), function, tuple(powers)
    )


def _entry(table: Group) -> float:
    """Return the entry of a table at its third transition and its middle load."""
    rows = [[float(number) for number in re.split(r"[,\s]+", row) if number] for row in table.values["values"]]
    if len(rows) == 1:
        return rows[0][min(2, len(rows[0]) - 1)]
    row = rows[min(2, len(rows) - 1)]
    return row[(len(row) - 1) // 2]


def _parsed(text: str) -> Group:
    """Read the inside of a group."""
    text = re.sub(r"/\*.*?\*/|\\\n", " ", text, flags=re.DOTALL)
    tokens = [match[0].strip('"') if match[0][0] == '"' else match[0] for match in _TOKEN.finditer(text)]
    root = Group("", ())
    stack, place = [root], 0
    while place < len(tokens):
        word = tokens[place]
        if word == "}":
            stack.pop()
            place += 1
        elif word == ";":
            place += 1
        elif tokens[place + 1] == ":":
            end = tokens.index(";", place)
            stack[-1].values[word] = [" ".join(tokens[place + 2 : end])]
            place = end + 1
        else:
            end = tokens.index(")", place)
            names = [name for name in tokens[place + 2 : end] if name != ","]
            place = end + 1
            if place < len(tokens) and tokens[place] == "{":
                stack[-1].groups.append(Group(word, tuple(names)))
                stack.append(stack[-1].groups[-1])
                place += 1
            else:
                stack[-1].values[word] = names
    return root
