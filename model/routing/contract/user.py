"""Find a routing algorithm: one of ours by name, or a user's own Python file.

What a user's file does wrong, while it is read and while its `prepare` runs, becomes one line with file and line
(`UserFile`); what its functions do in the kernel is watched by `model.routing.contract.guard`.
"""

import ctypes
import importlib.util
import inspect
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError, error_words
from hopforge.model.input_file import open_input
from hopforge.model.network.core.user_code import UserCodeError, checked_indices
from hopforge.model.network.parts.agent_state import AgentParameters
from hopforge.model.network.parts.feedback import Feedback
from hopforge.model.routing.contract.plan import ROUTING, RoutingError, RoutingPlan
from hopforge.model.topology import Topology

#: longest processor time of a file and its `prepare`, if nothing else is set
PREPARE_LIMIT_S = 600.0
#: seconds between two lines that tell that `prepare` still runs
_TELL_S = 10.0
_WATCH_S = 0.1
#: times that a file is interrupted before it is ended; seconds from one to the next
_INTERRUPTS, _AGAIN_S = 3, 1.0
#: candidates of a packet (a byte counts them); phases
_MOST_CANDIDATES, _MOST_PHASES = 255, 65536
_OBLIGATIONS = ("acyclic", "escape", "checked")
_KEY = "routing.algorithm"
_LARGEST_MIB = 16

Plan = TypeVar("Plan")


class _TooLongError(BaseException):
    """Raised in a user's code when its time is over; no ``except Exception`` of its own catches it."""


class _AsItStands(SourceFileLoader):
    """Runs a file as it stands: bytecode that Python keeps for it can be of a moment before, and litters its folder."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


class UserFile:
    """A Python file of a user's, run when it is opened.

    Parameters
    ----------
    path : Path
        The file.
    key : str
        Configuration key that names it.
    limit_s : float
        Longest processor time of reading it, and of its `prepare`.

    Raises
    ------
    UserCodeError
        The file is missing, cannot be run, or takes too long.
    """

    def __init__(self, path: Path, key: str, limit_s: float = PREPARE_LIMIT_S) -> None:
        self.path, self.key, self.limit_s = path, key, limit_s
        self.line = 1
        self._code_file = str(path.absolute())  # as code objects name it
        try:
            open_input(path, _LARGEST_MIB).close()  # Python itself reads it
        except FileNotFoundError:
            raise UserCodeError(f"{key}: no file {path}") from None
        except OSError as error:
            raise UserCodeError(f"{key}: {path} cannot be read: {error.strerror}") from error
        name = f"hopforge_user_{path.stem}"
        spec = importlib.util.spec_from_file_location(name, self._code_file)
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            raise UserCodeError(f"{key}: {path} is not a Python file")
        spec.loader = _AsItStands(name, self._code_file)
        self.module = importlib.util.module_from_spec(spec)
        sys.modules[name] = self.module  # importable, so that numba finds its functions
        with _imports_beside(path):
            self._run("cannot be run", spec.loader.exec_module, self.module)

    def attribute(self, name: str) -> Any:
        """Return what the file calls `name`."""
        if not hasattr(self.module, name):
            raise UserCodeError(f"{self.key}: {self.path} defines no {name}")
        return getattr(self.module, name)

    def prepare(self, wanted: type[Plan], names: str, topology: Topology, *arguments: Any) -> Plan:
        """Call the file's function `prepare`; a topology's arrays cannot be changed.

        Parameters
        ----------
        wanted : type
            What it must return.
        names : str
            Its parameters, for messages.
        topology, *arguments
            What it gets.
        """
        function = self.attribute("prepare")
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType) and code.co_filename == self._code_file:
            self.line = code.co_firstlineno
        if not callable(function):
            self.refuse(f"prepare must be a function, not of type {type(function).__name__}")
        try:
            inspect.signature(function).bind(topology, *arguments)
        except TypeError:
            self.refuse(f"prepare must take {1 + len(arguments)} arguments: {names}")
        except ValueError:  # a built-in function, whose arguments are not told
            pass
        plan = self._run("prepare fails", function, topology, *arguments)
        if not isinstance(plan, wanted):
            self.refuse(f"prepare must return a {wanted.__name__}, not {type(plan).__name__}")
        return plan

    def refuse(self, reason: str) -> NoReturn:
        """Raise a mistake of the file; the line is that of `prepare`."""
        raise UserCodeError(f"{self.key}: {self.path}:{self.line}: {reason}")

    def refuse_plain(self, function: Any, made_by: str) -> None:
        """Refuse a function of a plan that was not made by one of ours."""
        if not hasattr(function, "py_func"):
            self.refuse(f"a function must be made by {made_by}, not of type {type(function).__name__}")

    def _run(self, failure: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the file, for as long as the limit allows."""
        pressed = threading.Event()
        try:
            with _ctrl_c_noted(pressed), _time_limit(self.path, self.limit_s, self._end), checked_indices():
                return function(*arguments)
        except UserError as error:
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            if trace is None or trace.tb_frame.f_code.co_filename != self._code_file:
                raise
            raise UserCodeError(f"{self.key}: {self.path}:{trace.tb_lineno}: {error}") from error
        except _TooLongError as error:
            raise UserCodeError(self._too_long(self._line_of(error.__traceback__))) from None
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and pressed.is_set():
                raise
            line = self._line_of(error.__traceback__)
            if isinstance(error, SyntaxError) and error.filename == self._code_file:
                line = error.lineno or line
            text = error.msg if isinstance(error, SyntaxError) else error_words(error)
            first = next(iter(text.splitlines()), "")[:300]
            said = f"{type(error).__name__}: {first}" if first else type(error).__name__
            if isinstance(error, SystemExit):
                said = "it ends Python (sys.exit)"
            raise UserCodeError(f"{self.key}: {self.path}:{line}: {failure}: {said}") from error

    def _too_long(self, line: int) -> str:
        limit = f"{self.limit_s:g} s of processor time ({self.key.split('.')[0]}.prepare_limit_s)"
        return f"{self.key}: {self.path}:{line}: takes longer than {limit}"

    def _end(self, thread: int) -> NoReturn:
        """End the process, since the file catches whatever interrupts it in `thread`: nothing is written yet."""
        line, frame = self.line, sys._current_frames().get(thread)
        while frame is not None:
            if frame.f_code.co_filename == self._code_file:
                line = frame.f_lineno
                break
            frame = frame.f_back
        _end_process(f"{self._too_long(line)}, and goes on when it is interrupted", 2)

    def _line_of(self, traceback: TracebackType | None) -> int:
        """Last line of the file that a traceback goes through."""
        line = self.line
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == self._code_file:
                line = traceback.tb_lineno
            traceback = traceback.tb_next
        return line


def _end_process(words: str, status: int) -> NoReturn:
    """End the process on the spot with a line: no exception gets past the user's code."""
    os.write(2, f"hopforge: {words}\n".encode())
    os._exit(status)


@contextmanager
def _ctrl_c_noted(pressed: threading.Event) -> Iterator[None]:
    """Tell Ctrl-C, and what else ends a command, from a ``raise KeyboardInterrupt`` of the user's.

    A file that goes on after the first one is ended by the next one, a second later or more.
    """
    if threading.current_thread() is not threading.main_thread():  # a signal never comes here
        yield
        return
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    handlers = {number: handler for number, handler in found.items() if callable(handler)}

    first = 0.0

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if pressed.is_set() and time.monotonic() - first >= _AGAIN_S:
            _end_process("interrupted", 128 + number)
        first = first if pressed.is_set() else time.monotonic()
        pressed.set()
        handlers[signal.Signals(number)](number, frame)

    for number in handlers:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextmanager
def _time_limit(path: Path, limit_s: float, end: Callable[[int], NoReturn]) -> Iterator[None]:
    """Raise `_TooLongError` in this thread after `limit_s` of processor time; tell now and then that it runs.

    Where this has no effect, `end` is called with the number of the thread.
    """
    begin, thread, done = time.process_time(), threading.get_ident(), threading.Event()
    interrupt = ctypes.pythonapi.PyThreadState_SetAsyncExc

    def watch() -> None:
        told, sent = 0.0, 0
        while not done.wait(_WATCH_S):
            used = time.process_time() - begin
            if used >= told + _TELL_S:
                told = used
                sys.stderr.write(f"hopforge: {path} has run for {used:.0f} s (limit {limit_s:g} s)\n")
            if used >= limit_s:
                if sent == _INTERRUPTS:
                    end(thread)
                interrupt(ctypes.c_ulong(thread), ctypes.py_object(_TooLongError))
                sent += 1
                if done.wait(_AGAIN_S):  # again, if the file caught it
                    return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        interrupt(ctypes.c_ulong(thread), None)  # one that came too late


def load_user_file(path: Path, attribute: str, key: str) -> Any:
    """Attribute `attribute` of the Python file `path`; the module stays importable, so that numba caches its functions.

    Raises
    ------
    UserCodeError
        The file is missing, cannot be run, or lacks the attribute; `key` names the configuration key.
    """
    return UserFile(path, key).attribute(attribute)


def whole_number(value: Any, name: str, least: int, most: int, file: UserFile) -> int:
    """Return an integer from `least` to `most` that a plan gives."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or not least <= value <= most:
        file.refuse(f"{name} must be an integer from {least} to {most}, not {value!r:.80}")
    return int(value)


def int32_table(table: Any, file: UserFile) -> NDArray[np.int32]:
    """Return the table of a plan as the kernel takes it: int32[entries]."""
    given = _numbers(table, "table", "iub", file)
    wide = np.iinfo(np.int32)
    if given.size and not (wide.min <= int(given.min()) and int(given.max()) <= wide.max):
        file.refuse(f"table must hold integers of 32 bits, not {int(given.min())} … {int(given.max())}")
    return given.astype(np.int32)


def _numbers(array: Any, name: str, kinds: str, file: UserFile) -> NDArray[Any]:
    try:
        given = np.asarray(array)
    except ValueError:  # lists of different lengths
        given = np.asarray(None)
    if given.dtype.kind not in kinds:
        wanted = "integers" if "f" not in kinds else "numbers"
        file.refuse(f"{name} must be an array of {wanted}, not of {given.dtype}")
    return given.reshape(-1)


def _checked_plan(plan: RoutingPlan, topology: Topology, vcs: int, file: UserFile) -> RoutingPlan:
    """Refuse a user's plan that says something impossible; return it with arrays as the kernel takes them."""
    memory = _numbers(plan.memory, "memory", "fiub", file).astype(np.float64)
    mask = plan.inject_mask
    if mask is not None:
        masks = _numbers(mask, "inject_mask", "iu", file)
        if np.shape(mask) not in ((), (topology.hosts,)) or (masks < 1).any() or (masks >= 1 << vcs).any():
            file.refuse(f"inject_mask must be a mask of the {vcs} VCs, or one for each of the {topology.hosts} hosts")
    for name in ("reply_mask", "ack_mask", "unguarded"):
        if getattr(plan, name) is not None:
            file.refuse(f"{name} must not be set by a file (section traffic does), but is {getattr(plan, name)!r:.80}")
    if plan.inject_by_destination is not None:
        file.refuse("inject_by_destination must not be set by a file")
    if plan.escape_mask is not None:
        whole_number(plan.escape_mask, "escape_mask", 1, (1 << vcs) - 1, file)
    if plan.agents is not None and not isinstance(plan.agents, AgentParameters):
        file.refuse(f"agents must be those of an algorithm of hopforge's, not {plan.agents!r:.80}")
    for name in ("uses_via", "random", "by_source"):
        if not isinstance(getattr(plan, name), bool | np.bool_):
            file.refuse(f"{name} must be True or False, not {getattr(plan, name)!r:.80}")
    if plan.obligation not in _OBLIGATIONS:
        file.refuse(f"obligation must be one of {', '.join(_OBLIGATIONS)}, not {plan.obligation!r:.80}")
    if plan.feedback is not None and not isinstance(plan.feedback, Feedback):
        file.refuse(f"feedback must be a Feedback, not of type {type(plan.feedback).__name__}")
    for function in (plan.route, plan.every):
        if function is not None or function is plan.route:
            file.refuse_plain(function, "relation(...)")
    if plan.feedback is not None:
        file.refuse_plain(plan.feedback.report, "reporter(...)")
        file.refuse_plain(plan.feedback.learn, "learner(...)")
    if plan.estimates is not None:
        try:
            start, shape = plan.estimates
            whole = all(isinstance(one, int | np.integer) for one in (start, *shape))
            fits = whole and start >= 0 and start + int(np.prod(shape)) <= memory.size and min(shape) > 0
        except (TypeError, ValueError):
            fits = False
        if not fits:
            file.refuse(f"estimates must be a place in memory and a shape that fits in, not {plan.estimates!r:.80}")
    return replace(
        plan,
        table=int32_table(plan.table, file),
        memory=memory,
        max_candidates=whole_number(plan.max_candidates, "max_candidates", 1, _MOST_CANDIDATES, file),
        phases=whole_number(plan.phases, "phases", 1, _MOST_PHASES, file),
        rows=(),  # of algorithms of ours
        asked=None,
    )


@contextmanager
def _imports_beside(path: Path) -> Iterator[None]:
    """Let a user's file import modules that lie beside it; those beside another file are forgotten."""
    folder = str(path.resolve().parent)
    for name, other in list(_beside.items()):
        if other != folder:
            sys.modules.pop(name, None)
            del _beside[name]
    before, plain = set(sys.modules), sys.dont_write_bytecode
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = plain
        sys.path.remove(folder)
        for name in set(sys.modules) - before:
            file = str(getattr(sys.modules[name], "__file__", None) or "")
            if file.startswith(f"{folder}{os.sep}") and "site-packages" not in file:
                _beside[name] = folder


#: modules that were imported from beside a user's file, and its folder
_beside: dict[str, str] = {}


def prepare_routing(
    topology: Topology, vcs: int, algorithm: str, options: dict[str, Any], folder: Path = Path()
) -> RoutingPlan:
    """Make `algorithm` ready for `topology`.

    Parameters
    ----------
    topology : Topology
        The network.
    vcs : int
        Virtual channels per port.
    algorithm : str
        A name of `ROUTING`, or ``FILE.py`` (its function ``prepare(topology, vcs, options) -> RoutingPlan`` is called).
    options : dict
        The other keys of section `routing`.
    folder : Path
        Where a relative file name starts.

    Raises
    ------
    RoutingError
        Unknown name, unsuitable network, too few VCs.
    UserCodeError
        A mistake in a user's file.
    """
    if algorithm.endswith(".py"):
        from hopforge.model.routing.contract.guard import guarded_plan  # noqa: PLC0415 - algorithms of ours need none

        file = UserFile(folder / algorithm, _KEY, options.get("prepare_limit_s", PREPARE_LIMIT_S))
        plan = file.prepare(RoutingPlan, "topology, vcs, options", topology, vcs, options)
        return guarded_plan(_checked_plan(plan, topology, vcs, file), topology, vcs, _KEY)
    if algorithm not in ROUTING:
        raise RoutingError(
            f"routing.algorithm must be one of {', '.join(sorted(ROUTING))} or file (routing.file: FILE.py), "
            f"not {algorithm}"
        )
    return ROUTING[algorithm](topology, vcs, options)
