"""Verilog of yosys made shorter: one process for a register, no unread wires, expressions joined.

Every step keeps the values of all ports, registers and remaining wires in every cycle.
"""

import itertools
import re
from collections import Counter

from hopforge.gen.verilog.module import NET, Statement, VerilogModule, net, selected_bits

__all__ = ["join_expressions", "join_registers", "leave_out_unread", "repeat_bits"]

_ATOM = "\x02[^\x03]*\x03 ?(?:\\[[\\d:]+\\])?|\\d+'[bhd][0-9a-fx]+|\\{[^{}]*(?:\\{[^{}]*\\}[^{}]*)*\\}"
_TRUTH = re.compile(rf"(?:({_ATOM}) (==|!=|<|<=|>|>=|&&|\|\|) ({_ATOM})|(!|&|\||\^|~&|~\||~\^) ({_ATOM}))")
_BITWISE = re.compile(rf"({_ATOM}) (?:&|\||\^) ({_ATOM})")
_CHOICE = re.compile(rf"({_ATOM}) \? ({_ATOM}) : ({_ATOM})")
_NOT = re.compile(rf"~ ({_ATOM})")
_WRITTEN = re.compile("\x02([^\x03]*)\x03 ?(?:\\[[\\d:]+\\])? = ")
_FLOP = re.compile("  always_ff @\\(posedge \x02([^\x03]*)\x03\\)\\n    \x02([^\x03]*)\x03 <= \x02([^\x03]*)\x03;")
_TARGET = re.compile("\n *(?:\\d+'[bh][0-9a-f?]+: )?\x02[^\x03]*\x03 ?(?:\\[[\\d:]+\\])? <?= $")
_AFTER_OPERAND = re.compile(r"[\x03\])}] (?:&|\||\^|&&|\|\|) $")
_BRACES = re.compile(r"\{ ([^{}()?]*) \}")
_REPEAT_MIN = 3
_EXPRESSION_MAX = 100
"""Length up to which an expression is put where its wire was."""


def join_registers(module: VerilogModule) -> None:
    """Put the process that gives the next value of a register into that of the register.

    ``always_comb begin next = q; if (en) next = d; end`` and ``always_ff q <= next;`` become
    ``always_ff begin if (en) q <= d; end``, where nothing else reads ``next``.
    """
    uses = module.uses()
    combs = {
        found[1]: statement
        for statement in module.statements
        if statement.text.startswith("  always_comb begin\n") and (found := _WRITTEN.search(statement.text))
    }
    gone: set[int] = set()
    for statement in module.statements:
        flop = _FLOP.fullmatch(statement.text)
        if flop is None or flop[3] not in combs or module.nets[flop[3]].direction:
            continue
        clock, register, following = flop.groups()
        comb = combs[following]
        body = _as_register(comb.text, register, following)
        if body is None or uses[following] != comb.text.count(net(following)) + 1:
            continue
        statement.text = f"  always_ff @(posedge {net(clock)}) begin\n{body}"
        statement.source = statement.source or comb.source
        gone.add(id(comb))
        del module.nets[following]
    module.statements = [statement for statement in module.statements if id(statement) not in gone]


def _as_register(text: str, register: str, following: str) -> str | None:
    """Return the lines of a process after its first, with `register` assigned at the clock; None: it cannot be."""
    lines: list[str] = []
    target = re.compile(rf"^( *(?:\d+'[bh][0-9a-f?]+: )?){re.escape(net(following))}( ?\[[\d:]+\])? = (.*)$")
    for line in text.split("\n")[1:]:
        found = target.match(line)
        if found is None:
            if net(following) in line:
                return None
            lines.append(line)
        elif net(following) in found[3]:
            return None
        elif not (not lines and not found[2] and found[3] == f"{net(register)};"):
            lines.append(f"{found[1]}{net(register)}{(found[2] or '').strip()} <= {found[3]}")
    return "\n".join(lines)


def leave_out_unread(module: VerilogModule) -> None:
    """Leave out wires that are assigned and never read, other than ports; then those that only they read."""
    while True:
        uses, written = module.uses(), Counter[str]()
        for statement in module.statements:
            if statement.kind == "assign":
                written.update(NET.findall(statement.sides[0]))
        unread = {name for name, found in module.nets.items() if not found.direction and uses[name] == written[name]}
        if not unread:
            return
        module.statements = [
            statement
            for statement in module.statements
            if statement.kind != "assign" or not unread.issuperset(NET.findall(statement.sides[0]))
        ]
        still = module.uses()
        left = {name for name in unread if still[name]}  # assigned together with one that is read
        module.nets = {name: found for name, found in module.nets.items() if name not in unread or name in left}
        if left == unread:
            return


def join_expressions(module: VerilogModule) -> None:
    """Put an expression where its wire is read, if that is in one place and the wire has no name of its own.

    Only where the value cannot depend on what stands around it: Verilog widens the operands of most operators to the
    widest one nearby.
    """
    uses = module.uses()
    readers: dict[str, Statement] = {}
    definitions: dict[str, Statement] = {}
    for statement in module.statements:
        read = statement.text
        if statement.kind == "assign":
            left, read = statement.sides
            found = NET.fullmatch(left.strip())
            if found and "$" in found[1] and uses[found[1]] == 2 and not module.nets[found[1]].direction:
                definitions[found[1]] = statement
        readers.update(dict.fromkeys(NET.findall(read), statement))
    shapes = {name: _shape(statement.sides[1], name, module) for name, statement in definitions.items()}
    moved: dict[int, Statement] = {}
    for name, definition in definitions.items():
        reader = readers.get(name)
        while reader is not None and id(reader) in moved:
            reader = moved[id(reader)]
        if reader is None or reader is definition:
            continue
        joined = _joined(reader, name, definition.sides[1], shapes[name], module)
        if joined is not None:
            reader.text = joined
            moved[id(definition)] = reader
            del module.nets[name]
    module.statements = [statement for statement in module.statements if id(statement) not in moved]


def _joined(reader: Statement, name: str, right: str, shape: str, module: VerilogModule) -> str | None:
    """Return the text of `reader` with an expression in the place of a wire; None: it stays."""
    place = reader.text.find(net(name))
    before, after = reader.text[:place], reader.text[place + len(net(name)) :]
    if before.endswith("posedge ") or len(right) > _EXPRESSION_MAX:
        return None
    if reader.kind == "assign" and after.strip() == ";":
        left, whole = reader.sides
        if whole.strip() == net(name) and selected_bits(left, module.nets) == module.nets[name].width:
            return f"  assign {left} = {right};"
    if re.match(r" ?\[", after):
        return None
    if not shape or _longest(before, after) + len(right) > 2 * _EXPRESSION_MAX:
        return None
    if shape == "inverted":
        right = f"!{right.removeprefix('~ ')}"
    return f"{before}{right if _stands_alone(before, right, after) else f'({right})'}{after}"


def _stands_alone(before: str, right: str, after: str) -> bool:
    """Whether an expression needs no parentheses between what stands before and after it."""
    if re.fullmatch(_ATOM, right):
        return True
    if re.search(r"[{(,] ?$", before) and re.match(r" ?[}),]", after):
        return True
    if _TARGET.search(before) and after.startswith(";"):
        return True
    if re.fullmatch(f"!(?:{_ATOM})", right):
        return _AFTER_OPERAND.search(before) is not None or re.match(r" [&|] ", after) is not None
    chain = re.fullmatch(rf"(?:{_ATOM}|\([^()]*\))(?: ([&|^]) (?:{_ATOM}|\([^()]*\)))+", right)
    if chain is None or set(re.findall(r" ([&|^]) ", re.sub(r"\([^()]*\)", "", right))) != {chain[1]}:
        return False
    operator = re.escape(chain[1])
    return (
        re.search(rf"(?:[={{(,]|[\x03\])}}] {operator}) $", before) is not None
        and re.match(rf" ?[}}),;]| {operator} ", after) is not None
    )


def _longest(before: str, after: str) -> int:
    """Characters of the line around a place."""
    return len(before.rsplit("\n", 1)[-1]) + len(after.split("\n", 1)[0])


def _shape(right: str, name: str, module: VerilogModule) -> str:
    """Return whether an expression of one operator has the value of its wire wherever it stands; empty: it has not.

    ``inverted``: it has with ``!`` for ``~``.
    """
    width = module.nets[name].width
    if any(module.nets[part].signed for part in [name, *NET.findall(right)]):
        return ""
    if re.fullmatch(_ATOM, right):
        return "same" if selected_bits(right, module.nets) == width else ""
    inverted = _NOT.fullmatch(right)
    if inverted:
        return "inverted" if width == 1 and selected_bits(inverted[1], module.nets) == 1 else ""
    if _TRUTH.fullmatch(right):
        return "same" if width == 1 else ""
    both = _BITWISE.fullmatch(right) or _CHOICE.fullmatch(right)
    if both is None:
        return ""
    widths = [selected_bits(part, module.nets) for part in both.groups()[-2:]]
    return "same" if widths == [width, width] else ""


def repeat_bits(module: VerilogModule) -> None:
    """Write ``{16{a}}`` for sixteen times ``a`` in braces."""
    for statement in module.statements:
        statement.text = _BRACES.sub(_repeated, statement.text)


def _repeated(found: re.Match[str]) -> str:
    parts = [part.strip() for part in found[1].split(",")]
    runs = [(part, len(list(same))) for part, same in itertools.groupby(parts)]
    if max(count for _, count in runs) < _REPEAT_MIN:
        return found[0]
    written = [f"{{{count}{{{part}}}}}" if count > 1 else part for part, count in runs]
    return written[0] if len(written) == 1 else f"{{ {', '.join(written)} }}"
