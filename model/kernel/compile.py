"""How kernels are compiled: the one place that asks numba for machine code that is kept on disk.

==============  ========================================================================================================
`kernel`        a function that Python calls; compiled when it is called, or at once for a given signature
`around`        the same for a function around others, which its closure holds
`entry`         as `kernel` for one signature and with numpy's rules of division, but compiled when first called
`c_kernel`      a function that kernels call by its address (`memory.function_at`), compiled when first needed
`c_function`    the same, compiled at once
`inner`         a function that only kernels call: compiled as a part of them (`part_compiler`), not kept by itself
`inlined`       the same, copied into its callers
`inner_views`   as `inner`; makes arrays of memory at an address, or of parts of other arrays
`both`          a function that Python calls as a `kernel`, and kernels as `inner_views`
==============  ========================================================================================================

`program_cache` decides where machine code is kept.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NoReturn

from numba import cfunc, njit, types
from numba.extending import typeof_impl

from hopforge.model.kernel.program_cache import cache_folder

#: numpy's rules of division: no exception, which kernels could not handle
_OPTIONS: dict[str, Any] = {"error_model": "numpy"}
#: options of functions that neither Python nor C can call
_UNSEEN: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_INNER = {**_OPTIONS, **_UNSEEN}
#: options of functions that allocate nothing: numba need not look for references to count
WITHOUT_COUNTS: dict[str, Any] = {}
try:
    from hopforge.model.kernel.known_addresses import remember_addresses
    from hopforge.model.kernel.late_registries import load_registries_late
    from hopforge.model.kernel.module_finder import find_modules_quickly
    from hopforge.model.kernel.named_closures import name_closures, name_of
    from hopforge.model.kernel.part_compiler import PartCompiler, widen
    from hopforge.model.kernel.quick_flags import compare_quickly
    from hopforge.model.kernel.quick_operators import remember_operators
except (ImportError, AttributeError):  # another numba, with other inner parts: compiling takes longer
    PARTS = False
else:
    PARTS = True
    compare_quickly()
    find_modules_quickly()
    load_registries_late()
    name_closures()
    remember_addresses()
    remember_operators()
    WITHOUT_COUNTS["_nrt"] = False
    _INNER |= {**WITHOUT_COUNTS, "pipeline_class": PartCompiler}


def _part(**options: Any) -> Any:
    """Return the decorator of a function that only kernels call, Python cannot."""
    jit = njit(**options, **_INNER)
    return (lambda function: widen(jit(function))) if PARTS else jit


#: decorators of such functions
inner: Any = _part()
inlined: Any = _part(forceinline=True)


def inner_views(function: Callable[..., Any]) -> Any:
    """Decorate a function that only kernels call, and that makes arrays of memory that is there."""
    pipeline: dict[str, Any] = {"pipeline_class": PartCompiler} if PARTS else {}
    jit = njit(**_OPTIONS, **_UNSEEN, **pipeline)(function)
    return widen(jit) if PARTS else jit


@contextmanager
def _no_collection() -> Iterator[None]:
    """Compile without the garbage collector: a tenth of the time went into looking through the compiler's objects."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _kept(jit: Callable[..., Any], function: Callable[..., Any], *signature: Any, **options: Any) -> Any:
    """Compile, or declare, a function whose machine code is kept on disk."""
    with _no_collection(), cache_folder(function) as kept:
        try:
            return jit(*signature, cache=kept, **options)(function)
        except RuntimeError:  # the disk is full
            return jit(*signature, **options)(function)


def kernel(*signature: Any, **options: Any) -> Any:
    """Decorate a function that Python calls; its machine code is kept on disk.

    Parameters
    ----------
    signature : numba signature, optional
        What it takes: compiled at once, and may be handed to kernels as a function.
    **options
        As of numba's `njit`.

    Examples
    --------
    >>> @kernel
    ... def twice(x):
    ...     return 2 * x
    >>> twice(4)
    8
    """
    if len(signature) == 1 and not options and callable(signature[0]) and hasattr(signature[0], "__code__"):
        return _kept(njit, signature[0])
    return lambda function: _kept(njit, function, *signature, **options)


def both(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function that Python calls as a kernel, and that other kernels call as a part of them.

    Parameters
    ----------
    **options
        As of numba's `njit`, for what Python calls.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        found = _kept(njit, function, **_OPTIONS, **options)
        if PARTS:
            part = inner_views(function)
            found.get_call_template, found.get_overload = part.get_call_template, part.get_overload
        return found

    return decorate


def around(signature: Any, function: Callable[..., Any]) -> Any:
    """Compile a function around others, which its closure holds.

    Its machine code, of which theirs is a part, is kept on disk where all of them are functions of the program.

    Parameters
    ----------
    signature : numba signature
        What it takes.
    function : function
        Its closure holds compiled functions, numbers, texts, and tuples of these.
    """
    if PARTS and name_of(function) is not None:
        return _kept(njit, function, signature)
    with _no_collection():
        return njit(signature)(function)


def raise_signal(error: SystemError) -> NoReturn:
    """Raise what a signal's handler raised while numba made ready a function that a kernel is given.

    numba then goes on without the function's signature (`known_addresses`). Python notices that an answer comes beside
    an exception, and makes that the cause of a `SystemError`.
    """
    if error.__cause__ is None:
        raise error
    raise error.__cause__ from None


class Entry:
    """An entry point of a kernel: see `entry`."""

    def __init__(self, function: Callable[..., Any], signature: Any, **options: Any) -> None:
        self._function, self._signature, self._options = function, signature, options
        self.__doc__ = function.__doc__

    @cached_property
    def compiled(self) -> Any:
        """The dispatcher."""
        return _kept(njit, self._function, self._signature, **_OPTIONS, **self._options)

    def __call__(self, *arguments: Any) -> Any:
        """Run it."""
        try:
            return self.compiled(*arguments)
        except SystemError as error:
            raise_signal(error)


def entry(signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Entry]:
    """Decorate an entry point of a kernel: compiled, or read from disk, when it is first called.

    Parameters
    ----------
    signature : numba signature
        What the function takes.
    **options
        More of numba's `njit`: ``nogil=True`` for what several threads of Python run at a time.
    """
    return lambda function: Entry(function, signature, **options)


@typeof_impl.register(Entry)
def _type_of_entry(kernel: Entry, _: Any) -> types.Type:
    """Compiled functions call it as any other."""
    return types.Dispatcher(kernel.compiled)


class CKernel:
    """A function that kernels call by its address: see `c_kernel`."""

    def __init__(self, function: Callable[..., Any], signature: Any) -> None:
        self._function, self._signature = function, signature
        self.__doc__ = function.__doc__

    @cached_property
    def compiled(self) -> Any:
        """The C function."""
        return _kept(cfunc, self._function, self._signature, **_OPTIONS)

    @property
    def address(self) -> int:
        """Where its machine code begins."""
        return int(self.compiled.address)


def c_kernel(signature: Any) -> Callable[[Callable[..., Any]], CKernel]:
    """Decorate a function that kernels call by its address: compiled, or read from disk, when first needed.

    Parameters
    ----------
    signature : numba signature
        What the function takes and returns.
    """
    return lambda function: CKernel(function, signature)


def c_function(signature: Any, function: Callable[..., Any]) -> Any:
    """Compile a C function at once; Python's rules of division hold in it."""
    return _kept(cfunc, function, signature)
