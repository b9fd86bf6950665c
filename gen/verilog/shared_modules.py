"""Modules shared by equal components, so that large designs are elaborated, written and read once for each part."""

import re
import warnings
from collections.abc import Hashable, Mapping

from amaranth.back import rtlil
from amaranth.hdl import ClockSignal, Elaboratable, Fragment, Instance, ResetSignal, UnusedElaboratable, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib.wiring import Component, In

from hopforge.gen.verilog.clock_gate import clock_gate_instance
from hopforge.gen.verilog.memories import memory_instance
from hopforge.hw.parts.clock_gate import ClockGate
from hopforge.hw.parts.sram import Sram

__all__ = ["ModulePool", "converted", "modules_of"]

_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SIDE_BITS_MAX = (1 << 16) - 8
"""Bits that Amaranth can number at the inputs, or at the outputs, of what it converts, less those of its own."""

_CLOCKED = re.compile(r"^  wire (?:width 1 )?input \d+ +\\clk$", re.MULTILINE)


class ModulePool:
    """Platform of an elaboration in which `hopforge.hw.parts.shared` gives instances.

    Modules are named ``<design>_<class>``, with a number behind it from the second of a class on, in the order in which
    they are first met: the same names on every run.

    Parameters
    ----------
    design : str
        Name of the design.
    readable : bool
        Memories and clock gates are instances of modules of their own (`hopforge.gen.verilog.memories`,
        `hopforge.gen.verilog.clock_gate`), and statements have their source.

    Examples
    --------
    >>> from hopforge.hw.parts.arbiter import RoundRobinArbiter
    >>> pool = ModulePool("noc")
    >>> for _ in range(3):
    ...     _ = pool.instance(RoundRobinArbiter(width=4), (4,))
    >>> pool.rtlil().count("module ")
    1
    """

    def __init__(self, design: str, *, readable: bool = False) -> None:
        self.design = design
        self.readable = readable
        self.parts: dict[str, Component] = {}
        self._made: dict[tuple[type[Component], Hashable], tuple[str, bool] | None] = {}
        self._used: dict[str, int] = {}
        self._text: list[str] = []
        warnings.simplefilter("ignore", UnusedElaboratable)  # of equal components only the first is elaborated

    def instance(
        self, component: Component, key: Hashable, inputs: Mapping[str, Value] | None = None
    ) -> Elaboratable | Instance:
        """Return an instance of the module of all components of this class and key; see `hopforge.hw.parts.shared`.

        Its inputs are connected to the values of `inputs`, by name, and else to the ports of `component`.

        A component stays what it is if it is without logic, only wires, because a module of it would be empty, or if it
        has too many ports to be converted alone.
        """
        if self.readable and isinstance(component, ClockGate):
            return clock_gate_instance(component)
        kind = (type(component), key)
        if kind not in self._made:
            self._made[kind] = self._convert(component)
        made = self._made[kind]
        if made is None:
            return component
        name, clocked = made
        pins: dict[str, Value] = {}
        for path, member, signal in component.signature.flatten(component):
            side, port = "i" if member.flow is In else "o", "__".join(map(str, path))
            if len(Value.cast(signal)):  # a module has no ports of 0 bits
                pins[f"{side}_{port}"] = (inputs or {}).get(port, Value.cast(signal))
        if clocked:
            pins |= {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        return Instance(name, **pins)

    def memory(self, memory: Sram) -> Instance | None:
        """Return what stands for a memory; None: its own array."""
        return memory_instance(memory) if self.readable else None

    def rtlil(self) -> str:
        """RTLIL of all modules so far."""
        return "".join(self._text)

    def _convert(self, component: Component) -> tuple[str, bool] | None:
        bits = {True: 0, False: 0}
        for _, member, signal in component.signature.flatten(component):
            bits[member.flow is In] += len(Value.cast(signal))
        if max(bits.values()) > _SIDE_BITS_MAX:
            return None
        stem = f"{self.design}_{_snake(type(component).__name__)}"
        count = self._used.get(stem, 0)
        name = f"{stem}_{count}" if count else stem
        text, parts = converted(component, name, self)
        start = re.search(rf"^(?:attribute [^\n]*\n)*module \\{name}\n", text, re.MULTILINE)
        if start is None:
            return None
        self._used[stem] = count + 1
        self.parts |= parts
        self._text.append(text.replace("attribute \\top 1\n", ""))
        end = text.index("\nend\n", start.start())
        return name, _CLOCKED.search(text, start.start(), end) is not None


def converted(component: Component, name: str, pool: ModulePool) -> tuple[str, dict[str, Component]]:
    """Return RTLIL of a component, and the component behind each of its modules.

    The same as `amaranth.back.rtlil.convert`, which forgets what a module was made of.
    """
    ports = {
        "__".join(map(str, path)): (
            Value.cast(signal),
            PortDirection.Input if member.flow is In else PortDirection.Output,
        )
        for path, member, signal in component.signature.flatten(component)
    }
    design = Fragment.get(component, pool).prepare(ports=ports, hierarchy=(name,))
    text, _ = rtlil.convert_fragment(design, name=name, emit_src=pool.readable)
    parts: dict[str, Component] = {}
    for part, fragment in design.elaboratables.items():
        if isinstance(part, Component):
            parts.setdefault(".".join(design.fragments[fragment].name), part)
    return text, parts


def modules_of(verilog: str, design: str, component: type[Component]) -> list[str]:
    """Return the names of the modules that instances of a class share in a design.

    Parameters
    ----------
    verilog : str
        Text of the design, from `gen.verilog.writer.to_verilog`.
    design : str
        Name of its top module.
    component : type
        The class.
    """
    return re.findall(rf"^module ({design}_{_snake(component.__name__)}(?:_\d+)?)\(", verilog, re.MULTILINE)


def _snake(name: str) -> str:
    return _CAPITAL.sub("_", name).lower()
