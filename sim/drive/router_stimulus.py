"""Random traffic for one router: inputs of every cycle, with the outputs that the golden router gives.

The kernels of the network simulator (`sim.drive.single_router`), and with ``rc: lookup`` the golden lookup engines, run
in a closed loop with what surrounds a router: senders that keep to their credits, receivers that return credits when
they like, software and TCAMs at the lookup engines. What comes out is open-loop: a router that is fed the same inputs
must show the same outputs in every cycle.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numba import from_dtype, int64, typeof, types
from numpy.typing import NDArray

from hopforge.model.kernel.compile import inner, kernel
from hopforge.model.kernel.numpy_draws import draw_float
from hopforge.model.lookup.csr import COUNTERS
from hopforge.model.lookup.fast import layout as lk
from hopforge.model.lookup.fast.kernel import cycle_of
from hopforge.model.lookup.fast.state import engine_state
from hopforge.model.network.core.net_record import NET, NET_RECORD, PATTERN_SIGNATURE, ROUTE_SIGNATURE
from hopforge.model.router.params import RouterParams
from hopforge.sim.drive.router_engines import engine_cycle, give_answers_ahead, lookup_engines, note_asking_ahead
from hopforge.sim.drive.router_surroundings import (
    CLOSING,
    DONE,
    ENABLE,
    SERIAL,
    STUCK_CYCLES,
    around_cycle,
    is_stuck,
    surroundings,
)
from hopforge.sim.drive.router_traffic import (
    C_ENABLE,
    ENABLE_OFF,
    ENABLE_ON,
    I_DATA,
    O_DATA,
    RouterStimulus,
    RouterTraffic,
    data_words,
)
from hopforge.sim.drive.single_router import no_pattern, single_router, table_route, take_routing
from hopforge.sim.drive.stimulus import E_READ

_BLOCK_CYCLES = 1 << 13


def router_stimulus(params: RouterParams, traffic: RouterTraffic) -> RouterStimulus:
    """Run the golden router in random surroundings.

    Parameters
    ----------
    params : RouterParams
        The router.
    traffic : RouterTraffic
        What happens around it.

    Returns
    -------
    RouterStimulus
        Ends with nothing left in the router and all credits returned; counters of lookup engines have been read.
    """
    p = params
    net = single_router(p)
    around = surroundings(p, traffic, len(net["packet"]))
    engines = lookup_engines(p, traffic) if p.rc == "lookup" else None
    engine = None if p.lookup is None else cycle_of(engine_state(p.lookup))
    blocks: list[tuple[NDArray[np.int64], ...]] = []
    while not around.integers[DONE]:
        rows, seen = (np.zeros((_BLOCK_CYCLES, p.ports, at + data_words(p)), np.int64) for at in (I_DATA, O_DATA))
        count = p.engines
        engine_rows, engine_seen = (
            np.zeros((_BLOCK_CYCLES, count, len(ports)), np.int64) for ports in (lk.INPUTS, lk.OUTPUTS)
        )
        control = np.zeros((_BLOCK_CYCLES, 2), np.int64)
        if engines is None:
            used = _call(_play, net.record[0], around, rows, control, seen)
        else:
            used = _call(
                _play_lookup, net.record[0], around, engines, engine, rows, control, seen, engine_rows, engine_seen
            )
        if used < 0:
            raise RuntimeError(f"the golden router has been stuck for {STUCK_CYCLES} cycles")
        blocks.append(tuple(array[:used] for array in (rows, seen, engine_rows, engine_seen, control)))
    inputs, outputs, engine_inputs, engine_outputs, controls = map(np.concatenate, zip(*blocks, strict=True))
    names = lk.COUNTER_NAMES[: len(COUNTERS) if p.lookup is None or p.lookup.second_level is None else None]
    totals = np.zeros(len(names), np.int64)
    for state in () if engines is None else engines.states:
        totals += state.totals
    return RouterStimulus(
        p, traffic, inputs, outputs, engine_inputs, engine_outputs, controls, int(around.integers[SERIAL]),
        int(net["packets_dropped"]), {name: int(value) for name, value in zip(names, totals, strict=True)},
    )  # fmt: skip


def _play(route, pattern, net, a, inputs, control, outputs):  # type: ignore[no-untyped-def]
    """Fill up to one block of cycles; return how many, -1 if nothing moves any more."""
    for index in range(inputs.shape[0]):
        if around_cycle(route, pattern, net, a, inputs[index], control[index], outputs[index]):
            a.integers[DONE] = 1
            return index + 1
        if is_stuck(net, a):
            return -1
    return inputs.shape[0]


@inner
def _toggled(enable, draws):  # type: ignore[no-untyped-def]
    """Return whether routing is enabled in the next cycle: off now and then, for some cycles."""
    return not enable if draw_float(draws) < (ENABLE_OFF if enable else ENABLE_ON) else enable


def _play_lookup(  # type: ignore[no-untyped-def]
    route, pattern, net, a, g, cycle, inputs, control, outputs, engine_inputs, engine_outputs
):
    """Fill up to one block of cycles; return how many, -1 if nothing moves any more."""
    for index in range(inputs.shape[0]):
        now = int64(net.cycle)
        give_answers_ahead(net, a, g)
        rest = around_cycle(route, pattern, net, a, inputs[index], control[index], outputs[index])
        take_routing(net, now, g.asking)
        note_asking_ahead(net, g)
        enabled = a.integers[ENABLE]
        if net.lookahead == 0:  # the kernels of heads that bring their route along know no ``enable``
            a.integers[ENABLE] = control[index, C_ENABLE] = a.integers[CLOSING] or _toggled(enabled, g.draws)
        for e in range(g.around.shape[0]):
            engine_cycle(net, a, g, cycle, e, enabled, engine_inputs[index, e], engine_outputs[index, e])
            rest = rest and g.around[e, E_READ] > 12
        if rest:
            a.integers[DONE] = 1
            return index + 1
        if is_stuck(net, a):
            return -1
    return inputs.shape[0]


def _call(play: Callable[..., int], *arguments: object) -> int:
    """Compile a kernel for these arguments, with routing and pattern as the first-class functions of `run_cycles`."""
    of_arguments = (NET_RECORD if kind == _PLAIN_NET else kind for kind in map(typeof, arguments))
    return int(_compiled(play, tuple(of_arguments))(table_route.compiled, no_pattern.compiled, *arguments))


@cache
def _compiled(play: Callable[..., int], arguments: tuple[types.Type, ...]) -> Callable[..., int]:
    functions = types.FunctionType(ROUTE_SIGNATURE), types.FunctionType(PATTERN_SIGNATURE)
    compiled: Callable[..., int] = kernel(int64(*functions, *arguments))(play)
    return compiled


_PLAIN_NET = from_dtype(NET)
