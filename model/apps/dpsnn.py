"""DPSNN, a simulator of spiking neural networks: a burst of spikes from each process to each other in every step.

Source: seed 000, section 4.2.2, and the specification of DQN-Routing. The number of spikes that one process sends to
another in a step is drawn from Poisson's distribution.
"""

import numpy as np

from hopforge.model.apps.calls import BYTE, AppError, Calls, written_program
from hopforge.model.workload.trace import Trace

#: numbers of spikes that are drawn at most
MAX_DRAWS = 1 << 24
#: steps of the network in a second of simulated time
STEPS_PER_S = 1000
_STREAM = 5


def spikes_between(rate_hz: float, neurons: int, steps: int, ranks: int, seed: int) -> np.ndarray:
    """Return how many spikes each process sends to each other: int64[step, from, to], 0 to itself."""
    random = np.random.default_rng([seed, _STREAM])
    spikes = random.poisson(neurons * rate_hz / STEPS_PER_S, (steps, ranks, ranks))
    spikes[:, range(ranks), range(ranks)] = 0
    return spikes


def dpsnn_trace(
    *, rate_hz: float, neurons: int, steps: int, spike_bytes: int, flops_per_spike: float, ranks: int, seed: int
) -> Trace:
    """Return the calls of so many steps of a millisecond: all-to-all of the spikes, what they cost, barrier.

    Parameters
    ----------
    rate_hz : float
        Mean firing rate of a neuron.
    neurons : int
        Neurons of a process.
    steps : int
        Milliseconds of simulated time.
    spike_bytes : int
        Bytes of a spike.
    flops_per_spike : float
        Operations for each spike that a process receives.
    ranks : int
        Processes.
    seed : int
        Of the numbers of spikes.

    Raises
    ------
    AppError
        More than `MAX_DRAWS` numbers of spikes.
    """
    if steps * ranks * ranks > MAX_DRAWS:
        raise AppError(
            f"workload.steps: {ranks} ranks can take at most {MAX_DRAWS // (ranks * ranks)} steps, not {steps} "
            f"({MAX_DRAWS} numbers of spikes)"
        )
    spikes = spikes_between(rate_hz, neurons, steps, ranks, seed)
    sizes = (spikes * spike_bytes).tolist()
    columns = (spikes * spike_bytes).transpose(0, 2, 1).tolist()
    received = spikes.sum(axis=1)

    def write(calls: Calls) -> None:
        for step in range(steps):
            calls.alltoallv(tuple(sizes[step][calls.rank]), tuple(columns[step][calls.rank]), BYTE)
            calls.compute(flops_per_spike * int(received[step, calls.rank]))
            calls.barrier()

    return written_program(f"dpsnn.{rate_hz:g}.{ranks}", ranks, write)
