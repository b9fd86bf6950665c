"""A module of the Verilog that yosys writes, taken apart into ports, nets and statements, and written for people.

Names of nets stand between two control characters (`net`), names of pins of an instance between two others, so that a
name is never mistaken for a part of another or for a word of the language.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

__all__ = ["KEYWORDS", "NET", "PIN", "Net", "Statement", "VerilogModule", "net", "read_modules", "selected_bits"]

NET = re.compile("\x02([^\x03]*)\x03")
PIN = re.compile("\x04([^\x05]*)\x05")

_ATTRIBUTE = re.compile(r"\(\* *(.*?) *\*\)\s*")
_SOURCE = re.compile(r'src = "([^"|]*)')
_TOKEN = re.compile(
    r"\\(\S+)\s|(?<![\w$'.])\.\\(\S+)\s|(?<![\w$'.])\.([A-Za-z_]\w*)|(?<![\w$'])([A-Za-z_][\w$]*)|\"[^\"]*\""
)
_HEAD = re.compile(r"^module (?:\\(\S+) |(\S+?))\((.*?)\);\n", re.DOTALL)
_NET = re.compile(r"^  (input|output|inout|wire|reg) (signed )?(?:\[(-?\d+):0\] )?(?:\\(\S+) |([\w$]+))(?: = (\S+))?;$")
_INSTANCE = re.compile(r"^  (?!assign |always)(?:\\(\S+) |([A-Za-z_][\w$]*)) (?:#?\(|\\|[A-Za-z_])")
_PLAIN = re.compile(r"[A-Za-z_]\w*")
_LINE_MAX = 118
_WORDS = """
always always_comb always_ff always_latch and assign assert automatic begin bit break buf byte case casez cell
checker class config const constraint context continue cover default deassign defparam design disable do edge else
end endcase endmodule enum event expect export extends final first_match for force forever fork function generate
genvar global if iff ifnone import incdir include initial inout input inside instance int integer interface join
large let liblist library local localparam logic longint macromodule matches medium modport module nand negedge
new nor not null or output package packed parameter posedge primitive priority program property protected pull0
pull1 pullup pulldown pure rand randc randcase real reg reject_on release repeat restrict return scalared sequence
shortint signed small solve specify static string strong struct super supply0 supply1 table tagged task this
throughout time timeprecision timeunit tran tri tri0 tri1 type typedef union unique unsigned until untyped use
uwire var vectored virtual void wait weak while wildcard wire with within wor xnor xor
"""
KEYWORDS = frozenset(_WORDS.split())
"""Words of the language; a net of such a name is escaped."""


def net(name: str) -> str:
    """Return a name as it stands in statements."""
    return f"\x02{name}\x03"


@dataclass
class Net:
    """A port, wire or register.

    Parameters
    ----------
    width : int
        Bits.
    direction : str
        ``input``, ``output`` or empty.
    register : bool
        Whether a process writes it.
    first : str
        Value at power-up; empty if it has none.
    signed : bool
        Whether it is declared as a signed number.
    """

    width: int
    direction: str = ""
    register: bool = False
    first: str = ""
    signed: bool = False


@dataclass
class Statement:
    """An assignment, a process or an instance.

    Parameters
    ----------
    text : str
        With marked names, indented by 2, no newline at the end.
    kind : str
        ``assign``, ``process`` or ``instance``.
    source : str
        ``FILE:LINE`` of Python; may be empty.
    cell, name : str
        Of an instance: its module and its own name.
    """

    text: str
    kind: str
    source: str = ""
    cell: str = ""
    name: str = ""

    @property
    def sides(self) -> tuple[str, str]:
        """Left and right side of an assignment."""
        left, right = self.text.removeprefix("  assign ").removesuffix(";").split(" = ", 1)
        return left, right


@dataclass
class VerilogModule:
    """One module.

    Parameters
    ----------
    name : str
        Its name.
    ports : list of str
        In the order of the head.
    nets : dict of Net
        All, by name.
    statements : list of Statement
        In the order of yosys.
    """

    name: str
    ports: list[str]
    nets: dict[str, Net]
    statements: list[Statement] = field(default_factory=list)

    def uses(self) -> Counter[str]:
        """How often each net stands in statements."""
        return Counter(name for statement in self.statements for name in NET.findall(statement.text))

    def name_nets(self, names: Mapping[str, str]) -> None:
        """Rename nets; those that are not in `names` keep theirs."""
        self.ports = [names.get(name, name) for name in self.ports]
        self.nets = {names.get(name, name): found for name, found in self.nets.items()}
        for statement in self.statements:
            statement.text = NET.sub(lambda found: net(names.get(found[1], found[1])), statement.text)

    def text(self, cells: Callable[[str], str] = str) -> str:
        """Verilog of the module; `cells` gives the name of a module that this one has instances of."""
        ports = [f"  {self._declaration(name, self.nets[name])}" for name in self.ports]
        lines = [f"module {_written(self.name)}(", ",\n".join(ports), ");"]
        inner = sorted((name for name, found in self.nets.items() if not found.direction), key=natural)
        lines += [f"  {self._declaration(name, self.nets[name])};" for name in inner]
        source = ""
        for statement in self.statements:
            if statement.source and statement.source != source:
                lines.append(f"  // {statement.source}")
            source = statement.source or ("" if statement.kind == "instance" else source)
            lines.append(_broken(_printed(statement, cells)))
        return "\n".join([*lines, "endmodule", ""])

    def _declaration(self, name: str, found: Net) -> str:
        kind = "reg" if found.register else "wire"
        width = f"[{found.width - 1}:0] " if found.width > 1 else ""
        first = f" = {found.first}" if found.first else ""
        kind += " signed" if found.signed else ""
        return f"{found.direction} {kind} {width}{_written(name)}{first}".lstrip()


def natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Key of an order in which word10 follows word9."""
    return tuple((part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", name))


def selected_bits(expression: str, nets: Mapping[str, Net]) -> int | None:
    """Bits of a name, a selection of it, a constant, or several of these in braces; None: something else."""
    expression = expression.strip()
    if expression.startswith("{") and expression.endswith("}") and "{" not in expression[1:]:
        parts = [selected_bits(part, nets) for part in expression[1:-1].split(",")]
        return None if None in parts else sum(part for part in parts if part is not None)
    found = re.fullmatch("\x02([^\x03]*)\x03 ?(?:\\[(\\d+)(?::(\\d+))?\\])?|(\\d+)'[bhd][0-9a-f]+", expression)
    if found is None:
        return None
    if found[4]:
        return int(found[4])
    if found[2]:
        return int(found[2]) - int(found[3]) + 1 if found[3] else 1
    return nets[found[1]].width


def read_modules(text: str) -> list[VerilogModule]:
    """Take apart what ``write_verilog -sv -norename`` wrote, in its order.

    Raises
    ------
    ValueError
        A line that yosys does not write.
    """
    return [_read(part) for part in re.findall(r"^module .*?^endmodule$", text, re.MULTILINE | re.DOTALL)]


def _read(text: str) -> VerilogModule:
    head = _HEAD.match(text)
    if head is None:
        raise ValueError(f"not the head of a module: {text[:80]!r}")
    ports = [(escaped or plain) for escaped, plain in re.findall(r"\\(\S+) |([\w$]+)", head[3])]
    module = VerilogModule(head[1] or head[2], ports, {})
    source = ""
    pending: list[str] = []
    for line in text[head.end() : text.rindex("endmodule")].splitlines():
        plain, sources = _without_attributes(line)
        source = source or sources
        if not plain.strip():
            continue
        declared = None if pending else _NET.match(plain)
        if declared:
            _declare(module, declared)
            source = ""
            continue
        pending.append(plain)
        if _complete(pending):
            _add(module, "\n".join(pending), source)
            pending, source = [], ""
    if pending:
        raise ValueError(f"{module.name}: cannot read {pending[0]!r}")
    empty = {name for name, found in module.nets.items() if not found.width}  # Verilog has none of 0 bits
    module.ports = [name for name in module.ports if name not in empty]
    module.nets = {name: found for name, found in module.nets.items() if name not in empty}
    return module


def _without_attributes(line: str) -> tuple[str, str]:
    source = _SOURCE.search(line)
    return _ATTRIBUTE.sub("", line), source[1] if source else ""


def _declare(module: VerilogModule, found: re.Match[str]) -> None:
    kind, signed, top, escaped, plain, first = found.groups()
    declared = module.nets.setdefault(escaped or plain, Net(int(top or 0) + 1))
    if kind in ("input", "output", "inout"):
        declared.direction = kind
    declared.register |= kind == "reg"
    declared.signed |= bool(signed)
    declared.first = first or declared.first


def _complete(lines: list[str]) -> bool:
    """Whether the lines are a whole statement of the module's level."""
    if lines[0].startswith("  always") and lines[0].endswith("begin"):
        return lines[-1] == "  end"
    return lines[-1].endswith(";")


def _add(module: VerilogModule, text: str, source: str) -> None:
    instance = _INSTANCE.match(text)
    marked = _TOKEN.sub(lambda found: _marked(found, module.nets), text)
    if text.startswith("  assign "):
        module.statements.append(Statement(marked, "assign", source))
    elif instance:
        cell = instance[1] or instance[2]
        name = re.search(r" (?:\\(\S+)|([A-Za-z_][\w$]*)) +\($", text, re.MULTILINE)
        if name is None:
            raise ValueError(f"{module.name}: cannot read the instance {text[:80]!r}")
        _add_instance(module, text, source, cell, name[1] or name[2])
    else:
        module.statements.append(Statement(marked, "process", source))


def _add_instance(module: VerilogModule, text: str, source: str, cell: str, name: str) -> None:
    """Keep parameters and pins only: the head is written from `cell` and `name`."""
    pins = text[text.rindex(" (\n") + 3 :]
    parameters = re.search(r" #\(\n(.*?)\n  \) ", text, re.DOTALL)
    marked = _TOKEN.sub(lambda found: _marked(found, module.nets), pins)
    given = re.findall(r"\.(\w+)\(32'd(\d+)\)", parameters[1]) if parameters else []
    head = f"#({', '.join(f'.{key}({value})' for key, value in given)}) " if given else ""
    module.statements.append(Statement(f"{head}\x06{marked}", "instance", source, cell, name))


def _marked(found: re.Match[str], nets: Mapping[str, Net]) -> str:
    escaped, escaped_pin, pin, plain = found.groups()
    if escaped_pin or pin:
        return f".\x04{escaped_pin or pin}\x05"
    if plain in KEYWORDS:  # as a name it is escaped
        return found[0]
    name = escaped or plain
    return net(name) if name is not None and name in nets else found[0]


def _printed(statement: Statement, cells: Callable[[str], str]) -> str:
    text = statement.text
    if statement.kind == "instance":
        head, pins = text.split("\x06")
        text = f"  {_written(cells(statement.cell))} {head}{_written(statement.name)} (\n{pins}"
    text = NET.sub(lambda found: _written(found[1]), text)
    return PIN.sub(lambda found: _written(found[1]), text)


def _written(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name not in KEYWORDS else f"\\{name} "


def _broken(text: str) -> str:
    """Break long lines behind a comma or an operator."""
    return "\n".join(_broken_line(line) for line in text.split("\n"))


def _broken_line(line: str) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    parts: list[str] = []
    while len(line) > _LINE_MAX:
        places = [found.end() for found in re.finditer(r"(?:,|&|\||\^|\?|:|\+) (?!\])", line[:_LINE_MAX])]
        if not places or places[-1] <= len(indent) + 8:
            places = [found.end() for found in re.finditer(r"(?:,|&|\||\^|\?|:|\+) (?!\])", line)]
            places = places[:1] if places and places[0] > len(indent) + 8 else []
        if not places:
            break
        parts.append(line[: places[-1]].rstrip())
        line = indent + line[places[-1] :]
    return "\n".join([*parts, line])
