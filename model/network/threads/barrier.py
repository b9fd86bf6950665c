"""Where threads wait for each other: a barrier of atomic operations, which numba itself does not have.

A thread looks again some hundred times, then lets others run, and if that goes on it sleeps for a moment: spinning on a
shared core would cost all of them.
"""

import time
from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import int64, types
from numba.core import cgutils
from numba.extending import intrinsic

from hopforge.model.kernel.compile import entry, inlined
from hopforge.model.kernel.memory import int64s

#: places of `control`, int64, each in a cache line of its own: threads that have arrived; barriers passed; a wish to
#: stop (`STOP_*`); what the last barrier made of it, the same for all; a thread is lost, nobody must wait for it
ARRIVED, PASSED, STOP, STOPPED, LOST, CONTROL_PLACES = range(0, 48, 8)
#: why threads stop: somebody wants it; a part has few free packets left
GO_ON, STOP_ASKED, STOP_GROW = range(3)
#: number of the clock that nobody sets
MONOTONIC = time.CLOCK_MONOTONIC
#: looks before a thread lets others run; how often it does before it sleeps; for how long
LOOKS, TURNS, SLEEP_US = 400, 1000, 50

if TYPE_CHECKING:  # see `kernel.bits.trailing_zeros`

    def atomic_add(address: Any, value: Any) -> Any:
        """Add to the int64 at an address; returns what stood there."""

    def atomic_load(address: Any) -> Any:
        """Load the int64 at an address."""

    def let_others_run() -> None:
        """Give the core to another thread."""

    def sleep_us(time: Any) -> None:
        """Sleep for some microseconds."""

    def clock_ns() -> int:
        """Tell the time in ns since some moment."""
else:

    def _pointer(builder: Any, address: Any) -> Any:
        return builder.inttoptr(address, ir.IntType(64).as_pointer())

    @intrinsic
    def atomic_add(_typing: Any, _address: Any, _value: Any) -> Any:
        """Add to the int64 at an address, at once for all threads; returns what stood there."""

        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.atomic_rmw("add", _pointer(builder, args[0]), args[1], "seq_cst")

        return types.int64(types.int64, types.int64), generate

    @intrinsic
    def atomic_load(_typing: Any, _address: Any) -> Any:
        """Load the int64 at an address; what its writer had stored before is seen, too."""

        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.load_atomic(_pointer(builder, args[0]), "acquire", 8)

        return types.int64(types.int64), generate

    def _call(builder: Any, name: str, *values: Any) -> None:
        """Call a function of the C library that takes int32 and returns one."""
        kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32)] * len(values))
        builder.call(cgutils.get_or_insert_function(builder.module, kind, name), values)

    @intrinsic
    def let_others_run(_typing: Any) -> Any:
        """Give the core to another thread, if one waits for it (POSIX)."""

        def generate(context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
            _call(builder, "sched_yield")
            return context.get_dummy_value()

        return types.void(), generate

    @intrinsic
    def sleep_us(_typing: Any, _time: Any) -> Any:
        """Sleep for some microseconds (POSIX)."""

        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            _call(builder, "usleep", builder.trunc(args[0], ir.IntType(32)))
            return context.get_dummy_value()

        return types.void(types.int64), generate

    @intrinsic
    def clock_ns(_typing: Any) -> Any:
        """Tell the time in ns since some moment (POSIX)."""

        def generate(_context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
            whole = ir.IntType(64)
            place = cgutils.alloca_once(builder, ir.ArrayType(whole, 2))
            kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32), place.type])
            function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
            builder.call(function, [ir.Constant(ir.IntType(32), MONOTONIC), place])
            seconds, ns = (builder.load(cgutils.gep_inbounds(builder, place, 0, k)) for k in range(2))
            return builder.add(builder.mul(seconds, ir.Constant(whole, 10**9)), ns)

        return types.int64(), generate


@inlined
def wait_for_all(control: int, threads: int) -> Any:
    """Wait until all threads are here; returns the same for all: `GO_ON`, or why to stop.

    The last one to come decides, before it lets the others go.
    """
    if threads == 1:
        return int64(atomic_load(control + 8 * STOP))
    words = int64s(control)
    passed = atomic_load(control + 8 * PASSED)
    if atomic_add(control + 8 * ARRIVED, int64(1)) == threads - 1:
        words[ARRIVED] = 0
        words[STOPPED] = atomic_load(control + 8 * STOP)
        atomic_add(control + 8 * PASSED, int64(1))
    else:
        looks, turns = 0, 0
        while atomic_load(control + 8 * PASSED) == passed:
            looks += 1
            if looks >= LOOKS:
                looks = 0
                if atomic_load(control + 8 * LOST) != 0:
                    return STOP_ASKED
                turns += 1
                if turns < TURNS:
                    let_others_run()
                else:
                    sleep_us(int64(SLEEP_US))
    return int64(words[STOPPED])


@entry(int64(int64, int64, int64), nogil=True)
def pass_barriers(control: int, threads: int, count: int) -> int:
    """Wait `count` times for all threads; returns the ns that it took."""
    begin = clock_ns()
    for _ in range(count):
        wait_for_all(control, threads)
    return clock_ns() - begin
