"""Every answer of a routing relation whose choice depends on queues or on what it has learned.

Its Python code runs with an unknown value wherever the compiled one would read something that changes during a run
(credits, ``memory``). Whatever compares an unknown value goes both ways, one after the other, and a draw takes all
numbers in turn. What comes out covers all that the compiled relation can ever answer. Slower than
`reachable.Exploration` by a factor of about a hundred.
"""

import builtins
from collections.abc import Callable
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import types
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

from hopforge.model.kernel.memory import int32s
from hopforge.model.network.core import records, user_code
from hopforge.model.network.core.candidates import candidate_mask, candidate_need, candidate_port
from hopforge.model.network.core.draws import draw_below
from hopforge.model.network.core.state import NetState
from hopforge.model.routing.contract.fields_read import CHANGING, HIDDEN, WRITABLE
from hopforge.model.routing.proof.machine_numbers import (
    BUILTINS,
    TRUTHS,
    Module,
    NotCoveredError,
    Truth,
    Whole,
    cast,
    code_of,
    constants,
    number,
    of_library,
)

#: most choices on one way through the relation, and ways through it in one state
MAX_CHOICES, MAX_WAYS = 64, 1 << 12


class Choices:
    """The choices of one evaluation, so that all of them are made in turn."""

    def __init__(self) -> None:
        self._taken: list[list[int]] = []
        self._place = 0
        self._ways = 0

    def choose(self, bound: int) -> int:
        """Take a number below `bound`."""
        if self._place == len(self._taken):
            if self._place == MAX_CHOICES:
                raise NotCoveredError(f"more than {MAX_CHOICES} choices in one evaluation")
            self._taken.append([0, bound])
        self._place += 1
        return self._taken[self._place - 1][0]

    def go_on(self) -> bool:
        """Set the choices that follow; False: all were made, and the next ones begin anew."""
        self._ways += 1
        if self._ways >= MAX_WAYS:
            raise NotCoveredError(f"more than {MAX_WAYS} answers in one state")
        self._place = 0
        while self._taken:
            self._taken[-1][0] += 1
            if self._taken[-1][0] < self._taken[-1][1]:
                return True
            self._taken.pop()
        self._ways = 0
        return False


class Unknown:
    """A number of which nothing is known."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, choices: Choices) -> None:
        self._choices = choices

    def __bool__(self) -> bool:
        return self._choices.choose(2) == 1

    def _compare(self, _: Any) -> Truth:
        return TRUTHS[self._choices.choose(2)]

    __lt__ = __le__ = __gt__ = __ge__ = _compare
    __eq__ = __ne__ = _compare  # type: ignore[assignment]

    def _same(self, *_: Any) -> "Unknown":
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _same
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __and__ = __rand__ = _same
    __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _same
    __getitem__ = __neg__ = __pos__ = __abs__ = __invert__ = __round__ = _same

    def _refuse(self) -> Any:
        raise NotCoveredError("a value that changes during a run becomes an index or an integer")

    __index__ = __int__ = __float__ = _refuse


class _Record:
    """One record of a network: what is fixed, and unknown values for the rest."""

    def __init__(self, record: Any, unknown: Unknown) -> None:
        object.__setattr__(self, "_record", record)
        object.__setattr__(self, "_unknown", unknown)

    def __getattr__(self, name: str) -> Any:
        return self._unknown if name in CHANGING else number(self._record[name])

    def __setattr__(self, name: str, value: Any) -> None:
        raise NotCoveredError(f"it writes {name} of a record")


class _Packet:
    """The packet: the fields that the proof explores are known."""

    def __init__(self, unknown: Unknown, **fields: int) -> None:
        self.__dict__.update({name: Whole(value) for name, value in fields.items()})
        object.__setattr__(self, "_unknown", unknown)

    def __getattr__(self, name: str) -> Any:
        if name in HIDDEN:
            return self._unknown
        raise AttributeError(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in WRITABLE or isinstance(value, Unknown):
            raise NotCoveredError(f"it writes something unknown to packet.{name}")
        self.__dict__[name] = Whole(np.int64(value).astype(np.int32))


class _Array:
    """What a pointer leads to."""

    def __init__(self, values: Any, *, writable: bool = False) -> None:
        self._values, self._writable = values, writable

    def __getitem__(self, place: Any) -> Any:
        place = place.__index__()
        if not 0 <= place < len(self._values):
            raise NotCoveredError(f"it reads element {place} of an array of {len(self._values)}")
        return Whole(self._values[place])

    def __len__(self) -> int:
        return len(self._values)

    def __setitem__(self, place: Any, value: Any) -> None:
        if not self._writable:
            raise NotCoveredError("it writes to its table")
        if isinstance(value, Unknown):
            raise NotCoveredError("a candidate depends on a value that changes during a run")
        self._values[place.__index__()] = int(value)


class _Memory:
    """Learned data: unknown, whatever is written."""

    def __init__(self, unknown: Unknown, entries: int) -> None:
        self._unknown, self._entries = unknown, entries

    def __getitem__(self, place: Any) -> Unknown:
        if not isinstance(place, Unknown) and not 0 <= place < self._entries:
            raise NotCoveredError(f"it uses element {place} of memory, which has {self._entries}")
        return self._unknown

    def __setitem__(self, place: Any, value: Any) -> None:
        self[place]


class EveryAnswer:
    """All answers of a relation in any state of a packet.

    Parameters
    ----------
    relation : jitted function
        The relation.
    state : NetState
        The network.
    table : ndarray
        The table of the relation.
    max_candidates : int
        Most candidates of an answer.
    """

    def __init__(self, relation: Any, state: NetState, table: NDArray[Any], max_candidates: int) -> None:
        self._state, self._most, self._numbers = state, max_candidates, table.tolist()
        self._choices = Choices()
        self._unknown = Unknown(self._choices)
        self._plain: dict[Any, Any] = {
            **dict.fromkeys(
                (draw_below, user_code.draw_below), lambda _net, _router, bound: Whole(self._choices.choose(int(bound)))
            ),
            **{
                reader: self._reader(name)
                for reader, name in (
                    (user_code.output_vc, "output_vc"),
                    (records.output_vc, "output_vc"), (records.input_vc, "input_vc"), (records.host_at, "host"),
                    (records.output_port, "output_port"), (records.input_port, "input_port"),
                    (records.router_at, "router"),
                )
            },
        }  # fmt: skip
        self._function = self._replace(relation)
        self._entries = len(state["memory"])
        self._net = _Record(state.record[0], self._unknown)
        self._table = _Array(self._numbers)

    def _reader(self, name: str) -> Callable[..., _Record]:
        return lambda _net, place: _Record(self._state[name][place.__index__()], self._unknown)

    def _part_of_table(self, address: Any) -> _Array:
        """Return the table from an address on."""
        return _Array(self._numbers[(address.__index__() - int(self._state.record[0]["table"])) // 4 :])

    def _replace(self, value: Any) -> Any:
        """Find what stands for a global value of a function in plain Python."""
        if isinstance(value, types.Type) or value is int or value is float:
            return cast(value, Unknown)
        if isinstance(value, ModuleType):
            return Module(value, self._replace)
        if value is int32s:
            return self._part_of_table
        if hasattr(value, "_defn"):  # an intrinsic: pointers into what changes
            return self._plain.get(value, lambda *_: self._unknown)
        if not isinstance(value, Dispatcher):
            if BUILTINS.get(getattr(value, "__name__", "")) is not None and value is vars(builtins)[value.__name__]:
                return BUILTINS[value.__name__]
            if isinstance(value, tuple | list):
                return tuple(self._replace(one) for one in value)
            if callable(value):
                return of_library(value, Unknown)
            return constants(value)
        if value not in self._plain:
            if str(value.py_func.__module__) == "hopforge.model.kernel.rng":
                self._plain[value] = lambda *_: self._unknown
                return self._plain[value]
            function = value.py_func
            new_globals = dict(function.__globals__)
            cells = tuple(CellType() for _ in function.__closure__ or ())
            given = tuple(self._replace(one) for one in function.__defaults__ or ())
            code = code_of(function.__code__, ours=user_code.is_ours(function))
            new = FunctionType(code, new_globals, function.__name__, given, cells)
            self._plain[value] = new
            for name, one in {**BUILTINS, "int": cast(int, Unknown), "float": cast(float, Unknown)}.items():
                new_globals.setdefault(name, one)
            for name in function.__code__.co_names:
                if name in new_globals:
                    new_globals[name] = self._replace(new_globals[name])
            for cell, old in zip(cells, function.__closure__ or (), strict=True):
                cell.cell_contents = self._replace(old.cell_contents)
        return self._plain[value]

    def _place_of(self, error: Exception) -> str:
        """File and line of the relation at which an evaluation ended."""
        file, line, trace = self._function.__code__.co_filename, 0, error.__traceback__
        while trace is not None:
            line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == file else line
            trace = trace.tb_next
        return f"{file}:{line}: "

    def __call__(
        self, router: int, in_port: int, in_vc: int, fields: dict[str, int]
    ) -> set[tuple[tuple[tuple[int, int, int], ...], tuple[int, ...]]]:
        """Answers: candidates (port, mask, need), and what they leave in the fields of `WRITABLE`.

        Raises
        ------
        NotCoveredError
            All answers cannot be found.
        """
        found = set()
        while True:
            packet = _Packet(self._unknown, **fields)
            out = [0] * self._most
            try:
                memory = _Memory(self._unknown, self._entries)
                place = (Whole(router), Whole(in_port), Whole(in_vc))
                count = int(
                    self._function(*place, packet, self._net, self._table, memory, _Array(out, writable=True))
                )
            except Exception as error:
                what = "" if isinstance(error, NotCoveredError) else f"{type(error).__name__}: "
                raise NotCoveredError(f"{self._place_of(error)}{what}{error}") from error
            packed = tuple(
                (int(candidate_port.py_func(c)), int(candidate_mask.py_func(c)), int(candidate_need.py_func(c)))
                for c in out[: max(count, 0)]
            )
            found.add((packed, tuple(getattr(packet, name) for name in WRITABLE)))
            if not self._choices.go_on():
                return found
