"""Traffic for one router whose ``enable`` is off now and then, from the golden router in plain Python."""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from hopforge.model.lookup.fast import layout as lk
from hopforge.model.router.flit import Flit, PortInputs, PortOutputs
from hopforge.model.router.golden import RouterModel
from hopforge.model.router.params import RouterParams
from hopforge.sim.drive.router_stimulus import router_stimulus
from hopforge.sim.drive.router_traffic import (
    ENABLE_OFF,
    ENABLE_ON,
    I_CREDIT_VALID,
    I_CREDIT_VC,
    I_DATA,
    I_KIND,
    I_VALID,
    I_VC,
    O_CREDIT_VALID,
    O_CREDIT_VC,
    O_DATA,
    O_DROPPED,
    O_DROPS,
    O_VALID,
    O_VC,
    WORD_BITS,
    RouterStimulus,
    RouterTraffic,
    data_words,
)


def held_stimulus(params: RouterParams, traffic: RouterTraffic) -> RouterStimulus:
    """Let the golden router in plain Python take the packets of `router_stimulus`, with ``enable`` off now and then.

    The kernels of routers with tables know no ``enable``. Packets wait in their order for credits; some thousand cycles
    a second. At least as many cycles as `traffic` has.

    Parameters
    ----------
    params, traffic
        As for `router_stimulus`; no lookup engines.
    """
    p, given = params, router_stimulus(params, traffic)
    rng = np.random.default_rng((traffic.seed, 15))
    golden = RouterModel(p)
    queues = [[deque[NDArray[np.int64]]() for _ in range(p.vcs)] for _ in range(p.ports)]
    for now, i in np.argwhere(given.inputs[:, :, I_VALID] == 1).tolist():
        row = given.inputs[now, i]
        queues[i][row[I_VC]].append(row)
    credits = np.full((p.ports, p.vcs), p.buffer_flits)
    owed: list[list[int]] = [[] for _ in range(p.ports)]
    inputs: list[NDArray[np.int64]] = []
    outputs, control = [], []
    quiet, enable = 0, True
    while quiet < 8 + p.credit_delay_cycles + p.rc_cycles or len(inputs) < traffic.cycles:
        rows, seen = np.zeros((p.ports, I_DATA + data_words(p)), np.int64), []
        for i, port in enumerate(golden.visible()):
            if port.credit is not None:
                credits[i, port.credit] += 1
            if port.flit is not None:
                owed[i].append(port.flit.vc)
            seen.append(_seen(p, port))
            v = int(rng.integers(p.vcs))
            if queues[i][v] and credits[i, v] and rng.random() < 0.8:
                rows[i, :] = queues[i][v].popleft()
                credits[i, v] -= 1
            rows[i, I_CREDIT_VALID : I_CREDIT_VC + 1] = 0
            if owed[i] and rng.random() < 0.7:
                rows[i, I_CREDIT_VALID : I_CREDIT_VC + 1] = 1, owed[i].pop(int(rng.integers(len(owed[i]))))
        if rng.random() < (ENABLE_OFF if enable else ENABLE_ON):
            enable = not enable
        clear = rng.random() < 1 / traffic.clear_cycles
        golden.step([_port_inputs(row) for row in rows.tolist()], enable=enable, clear_counters=clear)
        for i in golden.dropped:
            seen[i][O_DROPPED] = 1
        inputs.append(rows)
        outputs.append(seen)
        control.append([int(enable), int(clear)])
        left = any(owed) or any(queue for of_port in queues for queue in of_port)
        quiet = 0 if left or (credits < p.buffer_flits).any() else quiet + 1
        if len(inputs) > 20 * given.cycles:
            raise RuntimeError(f"the golden router has not been empty for {len(inputs)} cycles")
    seen_array = np.array(outputs, np.uint64).view(np.int64)
    return RouterStimulus(
        p, traffic, np.array(inputs), seen_array, np.zeros((len(inputs), 0, len(lk.INPUTS)), np.int64),
        np.zeros((len(inputs), 0, len(lk.OUTPUTS)), np.int64), np.array(control), given.packets,
        int(seen_array[:, :, O_DROPPED].sum()), given.lookups,
    )  # fmt: skip


def _port_inputs(row: list[int]) -> PortInputs:
    data = sum((word & 2**WORD_BITS - 1) << WORD_BITS * place for place, word in enumerate(row[I_DATA:]))
    flit = Flit(row[I_KIND], row[I_VC], data) if row[I_VALID] else None
    return PortInputs(flit, row[I_CREDIT_VC] if row[I_CREDIT_VALID] else None)


def _seen(params: RouterParams, port: PortOutputs) -> list[int]:
    row = [0] * (O_DATA + data_words(params))
    if port.flit is not None:
        row[O_VALID : O_VC + 1] = 1, port.flit.kind, port.flit.vc
        for place in range(data_words(params)):
            row[O_DATA + place] = port.flit.data >> WORD_BITS * place & 2**WORD_BITS - 1
    if port.credit is not None:
        row[O_CREDIT_VALID : O_CREDIT_VC + 1] = 1, port.credit
    row[O_DROPS] = port.drops
    return row
