"""What a routing relation looks at: read from its bytecode and from that of all functions that it calls.

The proof of freedom from deadlock (`reachable`) tells two packets apart only by what the relation can read. So it has
to know that, and it takes more rather than less: a name that might be a field of the packet counts as one, and a
function that cannot be looked into counts as reading all.
"""

import builtins
import dis
import math
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import types
from numba.core.dispatcher import Dispatcher

from hopforge.model.network.core import user_code
from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.draws import draw_below
from hopforge.model.network.core.layouts import (
    HOST,
    INPUT_PORT,
    INPUT_VC,
    MESSAGE,
    OUTPUT_PORT,
    OUTPUT_VC,
    PACKET,
    RANK,
    ROUTER,
)
from hopforge.model.network.core.net_record import FIXED, NET

#: fields of a packet that the proof explores; the destination always
EXPLORED = ("src", "length", "hops", "phase", "via", "user0", "user1")
#: fields that a relation may write
WRITABLE = ("phase", "via", "user0", "user1")
_RECORDS = (NET, INPUT_VC, OUTPUT_VC, INPUT_PORT, OUTPUT_PORT, ROUTER, HOST, MESSAGE, RANK)
#: fields of records that change during a run, and fields of packets that the proof does not explore
CHANGING = {str(name) for record in _RECORDS for name in record.names or ()} - FIXED
HIDDEN = {str(name) for name in PACKET.names or ()} - {*EXPLORED, "dst"}
_SAFE_BUILTINS = {
    "abs", "bool", "divmod", "enumerate", "float", "int", "len", "max", "min", "pow", "range", "reversed", "round",
    "sum", "tuple", "zip",
}  # fmt: skip
#: functions of which the proof knows what they do, for users; ours have `draw_below` of the kernel, too
_KNOWN = (user_code.draw_below, user_code.output_vc)
#: parameters that are arrays where functions of a user's own have them
_ARRAYS = ("table", "memory", "out")
_STORES = ("STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR")
#: places of the parameters of a relation
_IN_PORT, _IN_VC, _MEMORY, _PARAMETERS = 1, 2, 6, 8


@dataclass
class FieldsRead:
    """What a relation looks at.

    Attributes
    ----------
    fields : set of str
        Fields of the packet (`EXPLORED`) that it reads.
    written : set of str
        Fields of the packet that it writes.
    in_port, in_vc : bool
        Whether it looks at where the packet came in.
    hops_cap : int or None
        It only compares ``packet.hops`` with numbers below this one, so larger values are all alike; None: no limit.
    changing : list of str
        What its answer may depend on beyond the packet, in words: queues, ``memory``. `every_answer` covers it.
    unseen : list of str
        What it does that no proof can follow, in words: calls of functions that cannot be looked into.
    draws, kernel_draws : bool
        Whether it draws random numbers, and whether so by the function that only those of ours have.
    """

    fields: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    in_port: bool = False
    in_vc: bool = False
    hops_cap: int | None = 0
    changing: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    draws: bool = False
    kernel_draws: bool = False

    @property
    def state(self) -> set[str]:
        """Fields that can differ between two packets to the same host at the same place."""
        return {name for name in self.fields if name in ("src", "length", "hops") or name in self.written}


@cache
def fields_read(relation: Any) -> FieldsRead:
    """Read the bytecode of `relation` (a jitted function) and of all that it calls."""
    found = FieldsRead()
    function = getattr(relation, "py_func", None)
    if function is None:
        _everything(found, "its code, which is not that of a jitted Python function")
        return found
    names = function.__code__.co_varnames
    loaded = {name for one in dis.get_instructions(function.__code__) for name in _loaded(one)}
    found.in_port, found.in_vc = names[_IN_PORT] in loaded, names[_IN_VC] in loaded
    _scan(function, found, set())
    if found.written - set(WRITABLE):
        found.unseen.append("packet." + sorted(found.written - set(WRITABLE))[0] + ", which it writes")
    return found


def _loaded(one: dis.Instruction) -> tuple[str, ...]:
    """Local variables that an instruction loads."""
    if not one.opname.startswith("LOAD_FAST") and "_FAST_LOAD_FAST" not in one.opname:
        return ()
    return one.argval if isinstance(one.argval, tuple) else (one.argval,)


def _everything(found: FieldsRead, reason: str) -> None:
    found.fields.update(EXPLORED)
    found.written.update(WRITABLE)
    found.in_port = found.in_vc = True
    found.hops_cap = None
    found.unseen.append(reason)


def _scan(function: FunctionType, found: FieldsRead, seen: set[CodeType]) -> None:
    """Add what `function` and the functions in it and behind it look at."""
    code = function.__code__
    if code in seen:
        return
    seen.add(code)
    inner = [cell.cell_contents for cell in function.__closure__ or ()]
    relation = len(seen) == 1 or code.co_argcount == _PARAMETERS
    ours = user_code.is_ours(function)
    for given in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        _callee(given, "a default value", found, seen, ours=ours)
    # ours that wrap another one hand `memory` on to that one
    if relation and not (ours and any(isinstance(one, Dispatcher) for one in inner)):
        name = code.co_varnames[_MEMORY]
        if any(name in _loaded(one) for one in dis.get_instructions(code)):
            found.changing.append("memory")
    whole = list(dis.get_instructions(code))
    steps = [one for one in whole if one.opname not in ("EXTENDED_ARG", "CACHE", "PRECALL")]
    out = code.co_varnames[_PARAMETERS - 1] if len(seen) == 1 else "out"
    for k, one in enumerate(steps):
        name = one.argval
        if one.opname.startswith("STORE_ATTR"):
            if name in (PACKET.names or ()):
                found.written.add(name)
            else:
                found.unseen.append(f"{name} of a record, which it writes")
        elif one.opname.startswith(("LOAD_ATTR", "LOAD_METHOD")) and isinstance(name, str):
            if not _of_module(steps, k, function):
                _attribute(name, found)
                if name == "hops":
                    cap = _hops_cap(steps, k, function)
                    found.hops_cap = None if cap is None or found.hops_cap is None else max(cap, found.hops_cap)
        elif one.opname.startswith(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF")):
            value = _value(function, name)
            if isinstance(value, ModuleType):
                value = _member(value, steps, k)
            _callee(value, name, found, seen, ours=ours)
        elif one.opname.startswith("LOAD_CONST"):
            if isinstance(name, CodeType):
                _everything(found, f"{name.co_name}, a function in a function")
            elif isinstance(name, str):
                _text(name, found)
        elif one.opname.startswith("BINARY_SUBSCR") and not ours:
            base = _stored_into(whole, one)
            if base in code.co_varnames[: code.co_argcount] and base not in _ARRAYS:
                _everything(found, f"{base}[...], which may be a field by its number")
        elif one.opname.startswith(_STORES) and _stored_into(whole, one) != out:
            found.changing.append("an array other than out, which it writes")


def _text(name: str, found: FieldsRead) -> None:
    """Note a text that may name a field: ``packet["src"]``."""
    if name in (PACKET.names or ()) or name in CHANGING:
        _everything(found, f'["{name}"], which may be a field by its name')


def _stored_into(steps: list[dis.Instruction], store: dis.Instruction) -> str:
    """Local variable whose element instruction `store` sets or reads; "" where that cannot be told."""
    depth = 0
    # the array is pushed just before the index: walk back over what made the index
    for one in reversed(steps[: steps.index(store)]):
        depth += dis.stack_effect(one.opcode, one.arg, jump=False)
        if depth >= 2:
            loaded = _loaded(one)
            return loaded[0] if depth == 2 and loaded else ""
    return ""


def _attribute(name: str, found: FieldsRead) -> None:
    if name in EXPLORED:
        found.fields.add(name)
    elif name in HIDDEN:
        found.changing.append(f"packet.{name}")
    elif name in CHANGING:
        found.changing.append(f"{name} of a router, which changes during a run")


def _of_module(steps: list[dis.Instruction], k: int, function: FunctionType) -> bool:
    """Whether the attribute of instruction `k` is one of a module (``np.sign``)."""
    while k > 0 and steps[k].opname.startswith(("LOAD_ATTR", "LOAD_METHOD")):
        k -= 1
    return steps[k].opname.startswith("LOAD_GLOBAL") and isinstance(_value(function, steps[k].argval), ModuleType)


def _member(module: ModuleType, steps: list[dis.Instruction], k: int) -> Any:
    """Find what the dotted name that begins with instruction `k` stands for."""
    value: Any = module
    for one in steps[k + 1 :]:
        if not isinstance(value, ModuleType) or not one.opname.startswith(("LOAD_ATTR", "LOAD_METHOD")):
            break
        value = getattr(value, str(one.argval), None)
    return value


def _value(function: FunctionType, name: str) -> Any:
    """Find what a global name or one of an outer function stands for."""
    if name in function.__code__.co_freevars:
        cells = function.__closure__ or ()
        return cells[function.__code__.co_freevars.index(name)].cell_contents
    if name in function.__globals__:
        return function.__globals__[name]
    return getattr(builtins, name, None)


def _callee(value: Any, name: str, found: FieldsRead, seen: set[CodeType], *, ours: bool) -> None:
    """Note what a value does that the function names: a function may be called, all else is a constant."""
    found.draws |= value is user_code.draw_below or value is draw_below
    found.kernel_draws |= value is draw_below
    if any(value is one for one in (*_KNOWN, *([draw_below] if ours else []))):
        return
    if isinstance(value, Dispatcher):
        if not ours and str(value.py_func.__module__).startswith("hopforge.model.network."):
            if value is not user_code.candidate and value is not candidate:
                _everything(found, f"{name}, a part of the kernel, not one of hopforge.model.routing")
            return
        if (value.py_func.__module__ or "").startswith("hopforge.model.kernel.rng"):
            found.changing.append(f"{name}, random numbers other than those of draw_below")
        else:
            _scan(value.py_func, found, seen)
        return
    if isinstance(value, tuple | list):
        for one in value:
            _callee(one, name, found, seen, ours=ours)
        return
    if isinstance(value, str):
        _text(value, found)
        return
    if value is None or isinstance(value, int | float | np.generic | np.ndarray | types.Type):
        return
    module = str(getattr(value, "__module__", "") or "")
    package = module.partition(".")[0]
    if getattr(builtins, name, None) is value and name in _SAFE_BUILTINS:
        return
    if isinstance(value, np.ufunc) or package == "math" or value in vars(math).values():
        return
    if isinstance(value, type) and issubclass(value, np.generic | BaseException):
        return
    if package == "numpy" and "random" not in module and "random" not in repr(value):
        return
    defined = getattr(value, "_defn", None)
    place = "" if defined is None else defined.__module__
    if ours and place in ("hopforge.model.kernel.memory", "hopforge.model.kernel.bits"):
        return
    _everything(found, f"{name}, which the proof cannot look into")


def _hops_cap(steps: list[dis.Instruction], k: int, function: FunctionType) -> int | None:
    """Smallest number from which on instruction `k`, which loads ``packet.hops``, cannot tell values apart."""
    after = steps[k + 1 : k + 3]
    if len(after) < 2 or not after[0].opname.startswith(("LOAD_CONST", "LOAD_SMALL_INT")):
        return None
    bound = after[0].argval
    if not isinstance(bound, int) or bound < 0:
        return None
    if after[1].opname.startswith("COMPARE_OP"):
        return bound + 1
    if after[1].opname.startswith("CALL") and after[1].arg == 2 and k >= 2:
        called = steps[k - 2]
        if called.opname.startswith("LOAD_GLOBAL") and _value(function, called.argval) is min:
            return bound
    return None
