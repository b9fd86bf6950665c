"""Names for the wires and ports that Amaranth and yosys only number.

A name says where the value comes from: the pin of an instance, the register whose next value it is, the word that it is
a bit of, or the operator. The same design gives the same names.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from hopforge.gen.verilog.module import KEYWORDS, NET, Statement, VerilogModule, net, selected_bits

__all__ = ["bit_names", "name_everything"]

_PIN = re.compile("\\.\x04([^\x05]*)\x05\\((.*)\\),?$", re.MULTILINE)
_ONE = re.compile("\x02([^\x03]*)\x03 ?(?:\\[(\\d+)(?::(\\d+))?\\])?")
_FLOP = re.compile("\x02([^\x03]*)\x03 <= \x02([^\x03]*)\x03;")
_OPERATORS = {
    "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "&": "and", "|": "or", "^": "xor",
    "+": "plus", "-": "minus", "&&": "and", "||": "or", ">>": "right", "<<": "left", "*": "times",
}  # fmt: skip
_UNARY = {"~": "not", "!": "not", "&": "all", "|": "any", "^": "odd"}
_BINARY_TEXT = re.compile(r"(\S.*?) (==|!=|<=|>=|<<|>>|&&|\|\||[<>&|^+\-*]) (\S.*)")
_LENGTH_MAX = 40
_NUMBERED = re.compile(r"[$.]")


def bit_names(module: VerilogModule) -> dict[str, str]:
    """Return what wires could be called after the words that they are bits of."""
    found: dict[str, str] = {}
    for statement in module.statements:
        if statement.kind == "assign":
            found.update(_bits_of_a_word(statement, module))
    return found


def name_everything(
    modules: list[VerilogModule], top: str, words: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """Name wires, ports and instances of all modules; return new names of modules that had numbers.

    Parameters
    ----------
    modules : list of VerilogModule
        Of one design; the ports of the top module keep their names.
    top : str
        Its name.
    words : mapping
        `bit_names` of every module, by its name.
    """
    by_name = {module.name: module for module in modules}
    asked: dict[str, dict[str, str]] = {module.name: {} for module in modules}
    ports: dict[str, dict[str, str]] = {}
    for name in _from_the_top(by_name, top):
        module = by_name[name]
        hints = {**words.get(name, {}), **dict(_hints(module, by_name))}
        ports[name] = _name_nets(module, {**asked[name], **_inside(module)}, hints, inner=name != top)
        for statement in module.statements:
            if statement.cell in asked:
                for pin, hint in _pin_hints(statement):
                    asked[statement.cell].setdefault(pin, hint)
    for module in modules:
        _rename_pins(module, ports)
    return _module_names(modules, top)


def _from_the_top(by_name: Mapping[str, VerilogModule], top: str) -> list[str]:
    """Names of modules, each before those that it has instances of."""
    order: list[str] = []
    done: set[str] = set()

    def visit(name: str) -> None:
        done.add(name)
        for statement in by_name[name].statements:
            if statement.cell in by_name and statement.cell not in done:
                visit(statement.cell)
        order.append(name)

    for name in [top, *by_name]:
        if name not in done:
            visit(name)
    return order[::-1]


def _name_nets(
    module: VerilogModule, asked: Mapping[str, str], hints: Mapping[str, str], *, inner: bool
) -> dict[str, str]:
    """Rename the nets of a module; return what became of its ports."""
    taken = {name for name in module.nets if not _NUMBERED.search(name)} | KEYWORDS
    taken |= {statement.name for statement in module.statements if statement.kind == "instance"}
    names: dict[str, str] = {}

    def give(name: str, wanted: str) -> None:
        names[name] = _free(wanted, taken)

    for port in module.ports:
        if _NUMBERED.search(port):
            base = _base(port)
            give(port, (asked.get(port) or f"{module.nets[port].direction}_value") if base == "port" else base)
        elif port in KEYWORDS and inner:
            give(port, f"{port}_")
    for name in module.nets:
        if name in hints and name not in names:
            give(name, _plain(hints[name], names))
        elif name in KEYWORDS and name not in names and not module.nets[name].direction:
            give(name, f"{name}_")
    made_by = {}
    for statement in module.statements:
        if statement.kind == "assign":
            made_by.update(dict.fromkeys(NET.findall(statement.sides[0]), statement))
    for name in module.nets:
        if _NUMBERED.search(name) and name not in names and _base(name):
            give(name, _base(name))
    for statement in module.statements:  # in their order, so that operands are mostly named before what is made of them
        for name in NET.findall(statement.text):
            if _NUMBERED.search(name) and name not in names:
                give(name, _by_operator(made_by.get(name), name, names))
    for name in module.nets:
        if _NUMBERED.search(name) and name not in names:
            give(name, "value")
    module.name_nets(names)
    _name_instances(module)
    return {port: names[port] for port in names if module.nets[names[port]].direction}


def _free(wanted: str, taken: set[str]) -> str:
    """Return a name that nobody has, and take it."""
    name, count = wanted, 1
    while name in taken:
        count += 1
        name = f"{wanted}_{count}"
    taken.add(name)
    return name


def _base(name: str) -> str:
    """Return what stands before the number of a name; ``a.b$3`` gives ``a_b``, ``$3`` nothing."""
    return re.sub(r"\$.*", "", name).replace(".", "_")


def _plain(hint: str, names: Mapping[str, str]) -> str:
    """Return a hint with the names that have been given, as one word."""
    return NET.sub(lambda found: names.get(found[1], _base(found[1]) or "value"), hint)


def _hints(module: VerilogModule, by_name: Mapping[str, VerilogModule]) -> Iterator[tuple[str, str]]:
    """Yield (name, what it could be called); of several for a name the last counts."""
    for statement in module.statements:
        if statement.kind == "process":
            for register, following in _FLOP.findall(statement.text):
                if _NUMBERED.search(following):
                    yield following, f"{net(register)}_next"
    for statement in module.statements:
        if statement.kind == "instance":
            cell = by_name.get(statement.cell)
            inside = _inside(cell) if cell else {}
            for pin, expression in _PIN.findall(statement.text):
                found = NET.fullmatch(expression.strip())
                written = cell.nets[pin].direction == "output" if cell else pin == "r_data"
                if found and written and _is_vague(found[1]) and not module.nets[found[1]].direction:
                    known = inside.get(pin, "" if _base(pin) == "port" else _base(pin))
                    if known:
                        yield found[1], f"{_instance_name(statement.name)}_{known}"


def _is_vague(name: str) -> bool:
    """Whether a wire has a number, or the name of a port of one of several equal parts."""
    return _NUMBERED.search(name) is not None or "__" in name


def _inside(module: VerilogModule) -> dict[str, str]:
    """Return what outputs that only have a number could be called after what they are inside of the module."""
    found: dict[str, str] = {}
    for statement in module.statements:
        if statement.kind == "assign":
            left, right = (_ONE.fullmatch(side.strip()) for side in statement.sides)
            if left and right and left[2] is None and _base(left[1]) == "port" and not _NUMBERED.search(right[1]):
                high, low = right[2], right[3] or right[2]
                found[left[1]] = right[1] if high is None else _slice_name(right[1], int(high), int(low))
    return found


def _bits_of_a_word(statement: Statement, module: VerilogModule) -> Iterator[tuple[str, str]]:
    left, right = statement.sides
    word = NET.fullmatch(left.strip())
    if word is None or _NUMBERED.search(word[1]) or not re.fullmatch(r"\{[^{}()]*\}", right):
        return
    high = module.nets[word[1]].width
    for part in right[1:-1].split(","):
        width = selected_bits(part, module.nets)
        if width is None:
            return
        found = NET.fullmatch(part.strip())
        if found and _NUMBERED.search(found[1]):
            yield found[1], _slice_name(word[1], high - 1, high - width)
        high -= width


def _slice_name(name: str, high: int, low: int) -> str:
    return f"{name}_{high}" if high == low else f"{name}_{high}_{low}"


def _pin_hints(statement: Statement) -> Iterator[tuple[str, str]]:
    """Yield (pin, name of what is connected to it) of an instance, for pins that only have a number."""
    for pin, expression in _PIN.findall(statement.text):
        if _base(pin) == "port":
            one = _ONE.fullmatch(expression.strip())
            if one:
                name, high, low = one.groups()
                yield pin, name if high is None else _slice_name(name, int(high), int(low or high))


def _by_operator(statement: Statement | None, name: str, names: Mapping[str, str]) -> str:
    """Return a name made of the operator and its operands, if they are short, else of the operator."""
    if statement is None or NET.fullmatch(statement.sides[0].strip()) is None:
        return "value"
    right = statement.sides[1]
    if net(name) in right:
        return "value"
    if " ? " in right:
        return "choice"
    unary = re.fullmatch(r"([~!&|^]) (.*)", right)
    if unary:
        operand = _operand(unary[2], names)
        return f"{_UNARY[unary[1]]}_{operand or 'value'}"
    binary = _BINARY_TEXT.fullmatch(right)
    if binary is None:
        return "value"
    first, second = _operand(binary[1], names), _operand(binary[3], names)
    operator = _OPERATORS[binary[2]]
    whole = f"{first}_{operator}_{second}"
    return whole if first and second and len(whole) <= _LENGTH_MAX else f"{operator}_value"


def _operand(text: str, names: Mapping[str, str]) -> str:
    """Return the name of an operand, with its bits; a small number; empty: none of them."""
    one = _ONE.fullmatch(text.strip())
    if one:
        name = names.get(one[1], one[1])
        if _NUMBERED.search(name):
            return ""
        return name if one[2] is None else _slice_name(name, int(one[2]), int(one[3] or one[2]))
    number = re.fullmatch(r"\d+'h([0-9a-f]+)", text.strip())
    return str(int(number[1], 16)) if number and int(number[1], 16) < 1 << 16 else ""


def _instance_name(name: str) -> str:
    return re.sub(r"^U\$", "part", name).replace("$", "_").replace(".", "_")


def _name_instances(module: VerilogModule) -> None:
    taken = set(module.nets) | {s.name for s in module.statements if s.name and not _NUMBERED.search(s.name)}
    for statement in module.statements:
        if statement.kind == "instance" and (_NUMBERED.search(statement.name) or statement.name in module.nets):
            base = re.sub(r"_\d+$", "", _instance_name(statement.name)) if "$" in statement.name else statement.name
            kind = "memory" if statement.cell.startswith("hopforge_r") else "unit"
            statement.name = _free(base if base not in taken else f"{base}_{kind}", taken)


def _rename_pins(module: VerilogModule, ports: Mapping[str, Mapping[str, str]]) -> None:
    for statement in module.statements:
        given = ports.get(statement.cell)
        if given:
            for old, new in given.items():
                statement.text = statement.text.replace(f".\x04{old}\x05", f".\x04{new}\x05")


def _module_names(modules: Iterable[VerilogModule], top: str) -> dict[str, str]:
    taken = {module.name for module in modules if "$" not in module.name} | {top}
    return {module.name: _free(_base(module.name), taken) for module in modules if "$" in module.name}
