"""Random traffic for one router: what is wanted, and inputs and outputs cycle by cycle."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hopforge.model.router.params import RouterParams

# columns of a port in a cycle; the data words of the flit follow
(I_VALID, I_KIND, I_VC, I_CREDIT_VALID, I_CREDIT_VC, I_DATA) = range(6)
(O_VALID, O_KIND, O_VC, O_CREDIT_VALID, O_CREDIT_VC, O_DROPS, O_DROPPED,
 O_DATA) = range(8)  # fmt: skip
# of the control of a cycle
C_ENABLE, C_CLEAR = range(2)

#: of a word of data
WORD_BITS = 64

#: share of the cycles in which ``enable`` goes off and on
ENABLE_OFF, ENABLE_ON = 0.03, 0.15

_CLEAR_CYCLES = 200


@dataclass(frozen=True, kw_only=True)
class RouterTraffic:
    """What the surroundings of a router do.

    Parameters
    ----------
    cycles : int
        Cycles with new packets; then everything is let out.
    seed : int
        Of everything random.
    quiet_cycles : int
        Mean number of cycles between two operations on the bus of a lookup engine.
    link_failures : float
        Probability per cycle that the link of a lookup engine changes.
    pool : int
        Destinations that are looked up.
    unroutable : float
        Share of the packets whose destination is any address, mostly one without a route.
    clear_cycles : int
        Mean number of cycles between two clearings of the drop counters.
    longest_flits : int, optional
        Longest packet; by default some more flits than a buffer has (virtual cut-through: as many as it has).
    count_from : int
        What the counters of the ports and of the lookup engines begin with.
    """

    cycles: int
    seed: int = 1
    quiet_cycles: int = 60
    link_failures: float = 0.0003
    pool: int = 24
    unroutable: float = 0.04
    clear_cycles: int = _CLEAR_CYCLES
    longest_flits: int | None = None
    count_from: int = 0


@dataclass
class RouterStimulus:
    """Inputs and golden outputs, cycle by cycle.

    Attributes
    ----------
    inputs, outputs : ndarray
        Drop counters begin with 0 here, whatever `RouterTraffic.count_from` is.
        int64[cycle, port, column]: columns ``I_…`` and ``O_…``, then the data of the flit in words of 64 bits as bit
        patterns, the lowest first.
    engine_inputs, engine_outputs : ndarray
        int64[cycle, engine, column] of the lookup engines (`INPUTS` and `OUTPUTS` of
        `model.lookup.fast.layout`); none in mode table.
    control : ndarray
        int64[cycle, 2]: ``enable`` and ``clear_drops``.
    packets, drops : int
        Packets sent, and dropped as unroutable.
    lookups : dict
        Counters of all lookup engines together, as if nobody had cleared them.
    """

    params: RouterParams
    traffic: RouterTraffic
    inputs: NDArray[np.int64]
    outputs: NDArray[np.int64]
    engine_inputs: NDArray[np.int64]
    engine_outputs: NDArray[np.int64]
    control: NDArray[np.int64]
    packets: int
    drops: int
    lookups: dict[str, int] = field(default_factory=dict)

    @property
    def cycles(self) -> int:
        """Number of cycles."""
        return len(self.inputs)

    @property
    def flits(self) -> int:
        """Flits that came out."""
        return int(self.outputs[:, :, O_VALID].sum())


def data_words(params: RouterParams) -> int:
    """Return the columns of the data of a flit."""
    return -(-params.width_bits // WORD_BITS)
