"""How kernels call functions of a user's files: what those get, and what is kept of a mistake that one of them makes.

Such a function is compiled for arrays that check each index (`model.kernel.checked`), for records that it only reads,
and for numpy arrays of its own with checked indices. Our own function (a guard: `model.routing.contract.guard`,
`sim.traffic.guard`) stands before it in the kernel, looks at what it returns, and notes a mistake in the record of the
network: the kernel stops, and `refuse_mistake` says what it was.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from llvmlite import ir
from numba import float64, int32, int64, njit, types
from numba.core import cgutils, config
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps
from numba.extending import intrinsic

from hopforge.model.errors import UserError
from hopforge.model.kernel.checked import (
    CheckedArray,
    address_in,
    checked_array,
    describe_exception,
    raise_always,
    raise_unless_below,
    trouble,
)
from hopforge.model.kernel.compile import inner, kernel
from hopforge.model.kernel.constant_record import constant_record
from hopforge.model.kernel.memory import int64s, record_reader, words
from hopforge.model.kernel.program_cache import program
from hopforge.model.kernel.rng import next_below, next_float
from hopforge.model.network.core.candidates import LEVEL_AT, MASK_AT, NEED_AT, PORT_VALUES
from hopforge.model.network.core.draws import chosen_below
from hopforge.model.network.core.layouts import NOTE, OUTPUT_VC, PACKET
from hopforge.model.network.core.net_record import FIXED, NET, Net

#: fields of a packet that a routing algorithm may write
PACKET_FIELDS = ("phase", "via", "user0", "user1")
_OF_PACKET = frozenset(PACKET.names or ())
#: what functions of a user's get in place of the kernel's records and pointers
USER_NET = constant_record(NET, NET.names or (), frozenset(NET.names or ()))
USER_PACKET = constant_record(PACKET, [name for name in PACKET.names or () if name not in PACKET_FIELDS], _OF_PACKET)
#: ... of `report`: what it wrote would be read by a relation that the proof took for one that nobody tells anything
_SEEN_PACKET = constant_record(PACKET, PACKET.names or (), _OF_PACKET)
REPORTED_NOTE, LEARNED_NOTE = constant_record(NOTE, ["target"]), constant_record(NOTE, NOTE.names or ())
_USER_OUTPUT = constant_record(OUTPUT_VC, OUTPUT_VC.names or (), frozenset(OUTPUT_VC.names or ()))
_FIXED_OUTPUT = constant_record(OUTPUT_VC, OUTPUT_VC.names or (), frozenset(OUTPUT_VC.names or ()) & FIXED)
USER_TABLE = CheckedArray("table", int32, writable=False)
USER_MEMORY = CheckedArray("memory", float64, writable=True)
USER_OUT = CheckedArray("out", int64, writable=True, lines=True)
#: what relations, the two functions of a learning algorithm, and patterns take
ROUTE_ARGUMENTS = (int64, int64, int64, USER_PACKET, USER_NET, USER_TABLE, USER_MEMORY, USER_OUT)
REPORT_ARGUMENTS = (int64, int64, _SEEN_PACKET, int64, USER_NET, USER_TABLE, USER_MEMORY, REPORTED_NOTE)
LEARN_ARGUMENTS = (int64, int64, int64, LEARNED_NOTE, USER_NET, USER_TABLE, USER_MEMORY)
PATTERN_ARGUMENTS = (int64, int64, USER_NET, USER_TABLE)


def route_arguments(packet: frozenset[str], written: frozenset[str]) -> tuple[Any, ...]:
    """Return the parameters of a relation for which only some fields exist: it can read nothing else in any way.

    Parameters
    ----------
    packet : frozenset of str
        Fields of the packet that it may read.
    written : frozenset of str
        Fields of the packet that it may write.
    """
    constant = [name for name in PACKET.names or () if name not in written]
    seen = constant_record(PACKET, constant, packet | written)
    net = constant_record(NET, NET.names or (), frozenset(NET.names or ()) & FIXED)
    return tuple({USER_PACKET: seen, USER_NET: net}.get(one, one) for one in ROUTE_ARGUMENTS)


#: mistakes, by `NET`'s field `mistake`; 0: none
(
    RAISED, COUNT, PHASE, NO_CANDIDATE, UNWRITTEN_CANDIDATE, NO_PORT, NO_LINK, NO_VC, DESTINATION, FOREIGN_TABLE,
    WRONG_HOST,
) = range(1, 12)  # fmt: skip

make_table, make_memory, make_out = checked_array(USER_TABLE), checked_array(USER_MEMORY), checked_array(USER_OUT)
_NOTE = int(NET.fields["mistake_value"][1])  # type: ignore[index]
#: (net) → address of ``mistake_value``, behind which ``mistake_bound`` stands: where a wrong index is noted
note_of = address_in(_NOTE)


class UserCodeError(UserError, ValueError):
    """A mistake in a Python file of a user's: one line with file, line, and what was wrong."""


@dataclass(frozen=True)
class UserFunction:
    """A function of a user's file.

    Attributes
    ----------
    name : str
        Of the function.
    file, line
        Where it is defined.
    key : str
        Configuration key of the file.
    limits : dict
        Numbers that messages tell.
    """

    name: str
    file: str
    line: int
    key: str
    limits: dict[str, int]

    def at(self, line: int = 0, file: str = "") -> str:
        """Key, file and line, as messages begin."""
        return f"{self.key}: {file or self.file}:{line or self.line}"


@dataclass(frozen=True)
class Role:
    """What a function of a user's is for.

    Attributes
    ----------
    arguments : tuple of numba types
        What it gets.
    names : str
        Its parameters, for messages.
    made_by : str
        What makes it in its file, for messages.
    guard : function
        ``guard(identity, max_candidates, phases)`` → the function of ours that stands before it
        and calls the global `user_function`.
    compile : function
        Compiles that.
    narrow : function
        ``narrow(jitted)`` → what the guard uses in place of its globals for this function, and a text that tells apart
        what was compiled with others.
    """

    arguments: tuple[Any, ...]
    names: str
    made_by: str
    guard: Callable[[str, int, int], Callable[..., int]]
    compile: Callable[[Callable[..., int]], Any]
    narrow: Callable[[Any], tuple[str, dict[str, Any]]] = lambda _: ("", {})


#: by number: `NET`'s field `mistake_function`
_functions: list[UserFunction] = []
#: compiled guards: machine code of one function is made once in a process
_guards: dict[tuple[Any, ...], Any] = {}


def is_ours(function: Callable[..., Any]) -> bool:
    """Whether a function stands in a file of hopforge."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        raise TypeError(f"a Python function must be given, not of type {type(function).__name__}")
    return program().holds(code.co_filename)


def jit_when_used(function: Callable[..., Any]) -> Any:
    """Declare a function of a user's; it is compiled where it is used, with checks or, in a test, without."""
    return kernel()(function)


def guard_user_function(jitted: Any, role: Role, key: str, limits: dict[str, int]) -> tuple[Any, int]:
    """Compile a function of a user's file, and ours that stands before it, as one.

    Parameters
    ----------
    jitted : object
        As `relation`, `reporter`, `learner` or `destination_rule` made it.
    role : Role
        What it is for.
    key : str
        Configuration key of the file.
    limits : dict
        Numbers that messages tell.

    Returns
    -------
    object, int
        What `role` compiles, and the number of the function for `note_mistake`.

    Raises
    ------
    UserCodeError
        It takes something else, returns no integer, or cannot be compiled.
    """
    function = jitted.py_func
    code = function.__code__
    place = UserFunction(function.__name__, code.co_filename, code.co_firstlineno, key, limits)
    if is_ours(function) and any(isinstance(cell.cell_contents, Dispatcher) for cell in function.__closure__ or ()):
        # it finds the table of the other one by its place in the network's, which begins with that of the guard
        raise UserCodeError(
            f"{key}: a plan of hopforge's over parallel links cannot be returned by a file: set routing.algorithm"
        )
    given, wanted = code.co_argcount, len(role.arguments)
    least = given - len(function.__defaults__ or ())
    if not least <= wanted <= given or code.co_kwonlyargcount:
        raise UserCodeError(f"{place.at()}: {place.name} takes {given} arguments; it must take {wanted}: {role.names}")
    _functions.append(place)
    known = role.guard, jitted, *_constants(place)
    if known not in _guards:
        _guards[known] = _compile(jitted, role, place)
    return _guards[known], len(_functions) - 1


def _constants(place: UserFunction) -> tuple[int, int]:
    """Return the numbers that the machine code of a guard holds."""
    return place.limits.get("max_candidates", 0), place.limits.get("phases", 0)


@contextmanager
def checked_indices() -> Iterator[None]:
    """Let numba check the indices of numpy arrays in what it compiles meanwhile."""
    before = vars(config).get("BOUNDSCHECK")
    vars(config)["BOUNDSCHECK"] = 1
    try:
        yield
    finally:
        vars(config)["BOUNDSCHECK"] = before


def _compile(given: Any, role: Role, place: UserFunction) -> Any:
    function = given.py_func
    _refuse_recursion(function, (), place)
    text, names = role.narrow(given)
    trouble.clear()
    try:
        with checked_indices():  # in its own helpers too
            guard = role.guard(_identity(function) + text, *_constants(place))
            return role.compile(_guard_before(function, guard, names))
    except Exception as error:  # numba has others than its own
        why = trouble[0] if trouble else error
        if isinstance(why, Exception):
            raise UserCodeError(_compiler_words(why, place)) from error
        text = f"{place.at()}: {place.name} must return an integer on every way, {_returns(why)}"
        raise UserCodeError(text) from error


def _refuse_recursion(function: Any, callers: tuple[Any, ...], place: UserFunction) -> None:
    """Refuse functions that call themselves: a deep recursion of machine code ends the process."""
    code = function.__code__
    if code in callers:
        raise UserCodeError(f"{place.at(code.co_firstlineno, code.co_filename)}: {function.__name__} calls itself")
    named = [function.__globals__.get(name) for name in code.co_names]
    named += [vars(one).get(name) for one in named if isinstance(one, ModuleType) for name in code.co_names]
    for one in named + [cell.cell_contents for cell in function.__closure__ or ()]:
        if isinstance(one, Dispatcher) and not is_ours(one.py_func):
            _refuse_recursion(one.py_func, (*callers, code), place)


def _guard_before(
    function: Callable[..., int], guard: Callable[..., int], names: dict[str, Any]
) -> Callable[..., int]:
    """Return `guard` with its `user_function`, as a function of the user's file: its machine code is kept as theirs."""
    jitted = njit(boundscheck=True, forceinline=True)(function)  # a call of its own would cost 3 % of a run
    code = guard.__code__.replace(
        co_filename=function.__code__.co_filename, co_firstlineno=function.__code__.co_firstlineno
    )
    made = FunctionType(
        code, {**guard.__globals__, **names, "user_function": jitted}, guard.__name__, None, guard.__closure__
    )
    made.__qualname__ = f"guard_of_{function.__name__}"
    return made


def _identity(function: Callable[..., Any]) -> str:
    """Tell the functions of one state of a user's files apart; numba takes it into the key of machine code."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    text = f"{function.__qualname__} {function.__code__.co_firstlineno} {function.__defaults__}".encode()
    return hashlib.sha256(text + function.__code__.co_code + dumps(cells)).hexdigest()


def _returns(kind: Any) -> str:
    if isinstance(kind, types.Optional) or kind == types.none:
        return "not nothing"
    return "not a generator" if isinstance(kind, types.Generator) else f"not {kind}"


#: how lines of the compiler's begin that say nothing to people
_ASIDES = ("Failed in", "During:", "File ", "<source", "- Resolution", "There are ", "- Of which", "Overload", "^", "[")


def _compiler_words(error: Exception, place: UserFunction) -> str:
    """One line of what the compiler has to say."""
    place_in_file = None
    inner_error: BaseException | None = error
    while inner_error is not None:
        trace, locs = inner_error.__traceback__, [getattr(inner_error, "loc", None)]
        while trace is not None:  # where the compiler was when it came upon it
            locs.append(trace.tb_frame.f_locals.get("loc"))
            trace = trace.tb_next
        for loc in locs:
            if Path(str(getattr(loc, "filename", ""))).name == Path(place.file).name:
                place_in_file = loc
        inner_error = inner_error.__cause__
    text = _COLOURS.sub("", str(error.args[0] if error.args else error))
    if isinstance(error, KeyError):  # of a record
        text = f"there is no field {text!r}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(_ASIDES)]
    found = [int(part.split(")")[0]) for part in text.split(f"{place.file} (")[1:] if part.split(")")[0].isdigit()]
    first = telling[0] if telling else ""
    if first.endswith("for signature:") and len(telling) > 1:
        first = "no such operation: " + telling[1].removeprefix(">>> ")
        for kind in (USER_TABLE, USER_MEMORY, USER_OUT):
            first = first.replace(str(kind), kind.label)
    if _PLACE_OF_RECORD.search(first):
        first = "a field of a record is read and written by its name, as packet.dst, not by [...]"
    line = found[-1] if found else place_in_file.line if place_in_file is not None else place.line
    return f"{place.at(line)}: {place.name} cannot be compiled: {first[:300]}"


_PLACE_OF_RECORD = re.compile(r"[gs]etitem\((Constant)?Record\(")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # numba's, where colorama is installed

_WORDS = {
    COUNT: "returned {value}; the number of candidates must be 0 to max_candidates = {max_candidates}",
    PHASE: "left packet.phase at {value}; it must be 0 to {last_phase} (phases = {phases})",
    NO_CANDIDATE: "out[{which}] is no candidate(port, vc_mask, level 0 to 255, need_flits 0 to 65535)",
    UNWRITTEN_CANDIDATE: "returned {value} candidates, but did not write out[{which}]",
    NO_PORT: "out[{which}] names port {value}; ports are 0 to {last_port}",
    NO_LINK: "out[{which}] names port {value}, which leads nowhere",
    NO_VC: "out[{which}] names the VCs {value:#b}; its mask must name some of VC 0 to {last_vc}, and no others",
    DESTINATION: "returned {value}; a destination must be a host, 0 to {last_host}",
    FOREIGN_TABLE: "an algorithm that learns cannot use aggregated links",
    WRONG_HOST: "out[{which}] names port {value}, where another host is than the packet's",
}
#: where the value is what `candidate` puts in place of one that does not fit
_UNFIT_WORDS = {
    (NO_PORT, PORT_VALUES - 1): f"out[{{which}}] names a port below 0 or above {PORT_VALUES - 2}; "
    "ports are 0 to {last_port}",
    (NO_VC, 0): "out[{which}] names no VC that exists; its mask must name some of VC 0 to {last_vc}, and no others",
}
_INDEX_WORDS = {
    "table": "index {value} of table, which has {bound} entries",
    "memory": "index {value} of memory, which has {bound} entries",
    "out": "index {value} of out, which has room for max_candidates = {bound}",
    "output_vc": "output_vc(net, {value}): the network has {bound} output VCs",
    "router": "draws a number for router {value}; there are {bound}",
    "host": "draws a number for host {value}; there are {bound}",
    "bound": "draws a number below {value}; this must be 1 or more",
}


def refuse_mistake(record: Any) -> None:
    """Raise the mistake that a user's function made while a kernel ran, if it made one.

    Parameters
    ----------
    record : numpy record
        Of the network.

    Raises
    ------
    UserCodeError
        With file, line and what was wrong.
    """
    if record["mistake"] == 0:
        return
    kind, number, line, which, value, bound, a, b, c, d = (int(record[f"mistake{name}"]) for name in _FIELDS)
    function = _functions[number]
    words, file = _UNFIT_WORDS.get((kind, value), _WORDS.get(kind, "")), ""
    if kind == RAISED:
        name, text, file, line = describe_exception(
            int(record["mistake_exception"]), int(record["mistake_exception_bytes"])
        )
        words = _INDEX_WORDS.get(text, "") if name == "IndexError" else ""
        if not words:
            words = f"{name}: {text}".rstrip(": ").replace("{", "{{").replace("}", "}}")
        if not file or program().holds(file) or _INSTALLED in file:
            file, line = "", 0
    what = words.format(value=value, bound=bound, which=which, **function.limits)
    where = f"router {a}, port {b}, VC {c}, packet to host {d}" if "phases" in function.limits else (
        f"host {a}, packet {b}"
    )  # fmt: skip
    raise UserCodeError(f"{function.at(line, file)}: {function.name}: {what} ({where})")


_FIELDS = ("", "_function", "_line", "_which", "_value", "_bound", "_a", "_b", "_c", "_d")
_INSTALLED = "site-packages"


@inner
def note_mistake(net: Net, kind: int, function: int, line: int, which: int, value: int) -> None:
    """Keep what a function did wrong."""
    net.mistake = kind
    net.mistake_function = function
    net.mistake_line = line
    net.mistake_which = which
    net.mistake_value = value


@inner
def note_place(net: Net, a: int, b: int, c: int, d: int) -> None:
    """Keep where it did so: router, port, VC and destination, or host and packet."""
    net.mistake_a, net.mistake_b, net.mistake_c, net.mistake_d = a, b, c, d


@inner
def note_exception(net: Net, function: int, address: int, size: int) -> None:
    """Keep what a function has raised."""
    net.mistake = RAISED
    net.mistake_function = function
    net.mistake_exception = address
    net.mistake_exception_bytes = size


_read_output, _read_fixed = record_reader(_USER_OUTPUT), record_reader(_FIXED_OUTPUT)


def _output_count(net: Any) -> int:
    return net.output_vcs


def _output_at(net: Any, m: int) -> Any:
    return _read_output(net.output_vc, m)


def _fixed_output_at(net: Any, m: int) -> Any:
    return _read_fixed(net.output_vc, m)


def _router_count(net: Any) -> int:
    return net.routers


def _host_count(net: Any) -> int:
    return net.hosts


def _draw_at_router(net: Any, number: int, bound: int) -> int:
    if net.choices != 0:  # the proof
        return chosen_below(int64s(net.choices), bound)
    return next_below(words(net.router_rng), number, bound)


def _draw_at_host(net: Any, number: int, bound: int) -> int:
    return next_below(words(net.host_rng), number, bound)


def _draw_share_at_host(net: Any, number: int) -> float:
    return next_float(words(net.host_rng), number)


def _checked_access(
    what: str, count: Callable[[Any], int], access: Callable[..., Any], result: Any, doc: str,
    fixed: tuple[Callable[..., Any], Any] | None = None,
) -> Any:
    """Intrinsic: (net, number[, bound]) → what `access` returns, with the number below ``count(net)``.

    `fixed` are access and result for a function that must not see what changes during a run (`route_arguments`).
    """

    def typed(net: Any, numbers: tuple[Any, ...]) -> Any:
        if not isinstance(net, types.Record) or not all(isinstance(one, types.Integer) for one in numbers):
            return None
        narrow = "choices" not in net.fields
        whole = USER_NET if narrow else net
        reach, returned = fixed if narrow and fixed is not None else (access, result)
        sig = returned(net, *(int64 for _ in numbers))

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            i64 = ir.IntType(64)
            begin = builder.ptrtoint(args[0], i64)
            note = builder.inttoptr(builder.add(begin, ir.Constant(i64, _NOTE)), i64.as_pointer())
            limit = context.compile_internal(builder, count, int64(whole), args[:1])
            raise_unless_below(context, builder, args[1], limit, note, what)
            for bound in args[2:]:  # 1 … 2^63 − 1
                below = builder.sub(bound, ir.Constant(i64, 1))
                with cgutils.if_unlikely(builder, builder.icmp_signed("<", below, ir.Constant(i64, 0))):
                    builder.store(bound, note)
                    raise_always(context, builder, "bound")
            return context.compile_internal(builder, reach, returned(whole, *sig.args[1:]), args)

        return sig, generate

    if access.__code__.co_argcount == 2:

        @intrinsic
        def call(_typing: Any, net: Any, number: Any) -> Any:
            return typed(net, (number,))

    else:

        @intrinsic
        def call(_typing: Any, net: Any, number: Any, bound: Any) -> Any:
            return typed(net, (number, bound))

    call.__doc__ = doc
    return call


#: (net, m) → output VC number m = (router · ports + port) · vcs + vc, to be read: ``credits``, ``depth``
output_vc = _checked_access(
    "output_vc", _output_count, _output_at, _USER_OUTPUT, "Output VC number `m`, to be read.",
    fixed=(_fixed_output_at, _FIXED_OUTPUT),
)  # fmt: skip
#: (net, router, bound) → random integer in [0, bound) from the stream of `router`
draw_below = _checked_access("router", _router_count, _draw_at_router, int64, "Random integer in [0, bound).")
#: (net, host, bound) → random integer in [0, bound) from the stream of `host`
draw_host = _checked_access("host", _host_count, _draw_at_host, int64, "Random integer in [0, bound).")
#: (net, host) → random float in [0, 1) from the stream of `host`
draw_share = _checked_access("host", _host_count, _draw_share_at_host, float64, "Random float in [0, 1).")


@njit
def candidate(port: int, vc_mask: int, level: int = 0, need_flits: int = 0) -> int:
    """Pack a candidate, for relations of a user's: what does not fit is marked, and refused when it is returned.

    Parameters
    ----------
    port : int
        Output port.
    vc_mask : int
        Allowed output VCs, bit per VC.
    level : int
        VA prefers candidates of level 0 to those of level 1 and so on (0–255).
    need_flits : int
        Free flit slots that the output VC must have (bubble rules; 0: only what the switching mode asks for).
    """
    if level < 0 or level > 255 or need_flits < 0 or need_flits > 65535:
        return -1 + 0 * (port | vc_mask)
    named = port if 0 <= port < PORT_VALUES else PORT_VALUES - 1
    mask = vc_mask if 0 <= vc_mask < 65536 else 0
    return named | (level << LEVEL_AT) | (mask << MASK_AT) | (need_flits << NEED_AT)
