"""What has to hold for the packets and credits of a recording, whatever the router decides.

Equal outputs say that hardware and golden router agree; these checks say that nothing is lost, doubled, mixed or left
behind. They look at inputs and outputs only.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopforge.model.router.params import RouterParams
from hopforge.sim.drive.router_traffic import (
    C_CLEAR,
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
    O_KIND,
    O_VALID,
    O_VC,
    WORD_BITS,
    RouterStimulus,
)

__all__ = ["Delivery", "check_packets"]

_ODD = np.uint64(0x9E3779B97F4A7C15)


class Delivery(NamedTuple):
    """Packets that went in, came out, and were dropped."""

    sent: int
    received: int
    dropped: int


def check_packets(stimulus: RouterStimulus) -> Delivery:
    """Check a recording that ends with nothing left in the router.

    Per input VC never more than B flits without their credit, per output VC never more than its credits, none at the
    end. Every packet is whole, in order and not mixed with another on its VC; it comes out once or is dropped.
    Field `route` of heads is left out: the router changes it.

    Raises
    ------
    ValueError
        Naming what does not hold, and where.
    """
    p = stimulus.params
    rows, seen = _without_route(p, stimulus.inputs, I_DATA), _without_route(p, stimulus.outputs, O_DATA)
    sent, received = [], []
    for port in range(p.ports):
        for vc in range(p.vcs):
            flits = (rows[:, port, I_VALID] == 1) & (rows[:, port, I_VC] == vc)
            credits = (seen[:, port, O_CREDIT_VALID] == 1) & (seen[:, port, O_CREDIT_VC] == vc)
            _check_room(f"input {port} VC {vc}", flits, credits, p.buffer_flits)
            sent.append(_packets(f"input {port} VC {vc}", rows[flits, port, I_KIND], rows[flits, port, I_DATA:]))
            flits = (seen[:, port, O_VALID] == 1) & (seen[:, port, O_VC] == vc)
            credits = (rows[:, port, I_CREDIT_VALID] == 1) & (rows[:, port, I_CREDIT_VC] == vc)
            _check_room(f"output {port} VC {vc}", flits, credits, p.credits(port))
            received.append(_packets(f"output {port} VC {vc}", seen[flits, port, O_KIND], seen[flits, port, O_DATA:]))
    dropped = _dropped(stimulus)
    went, times_in = np.unique(np.concatenate(sent), return_counts=True)
    came, times_out = np.unique(np.concatenate(received), return_counts=True)
    place = np.minimum(np.searchsorted(went, came), max(len(went) - 1, 0))
    known = went[place] == came if len(went) else np.zeros(len(came), bool)
    if not known.all() or (times_out > times_in[place]).any():
        raise ValueError("a packet came out that did not go in, or more often than it went in")
    missing = int(times_in.sum() - times_out.sum())
    if missing != dropped:
        raise ValueError(f"{missing} packets did not come out, but {dropped} were dropped")
    return Delivery(int(times_in.sum()), int(times_out.sum()), dropped)


def _without_route(params: RouterParams, rows: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """Return rows of ports with 0 in field `route` of heads; column `first` is the first of the data."""
    if params.lookahead is None:
        return rows
    kind = I_KIND if first == I_DATA else O_KIND
    field, words = ((1 << params.route_bits) - 1) << params.route_at, rows.shape[2] - first
    kept = [np.uint64(~field >> WORD_BITS * word & 2**WORD_BITS - 1).astype(np.int64) for word in range(words)]
    return np.concatenate(
        [
            rows[:, :, :first],
            np.where(rows[:, :, kind, None] & 1, rows[:, :, first:] & np.array(kept), rows[:, :, first:]),
        ],
        axis=2,
    )


def _check_room(where: str, flits: NDArray[np.bool_], credits: NDArray[np.bool_], room: int) -> None:
    """Compare flits on their way with `room`; a credit counts in its own cycle, as for a sender outside."""
    owed: NDArray[np.int64] = np.cumsum(flits) - np.cumsum(credits)
    if owed.size and owed.max() > room:
        raise ValueError(f"{where}: {owed.max()} flits without a credit in cycle {owed.argmax()}, of {room}")
    if (np.cumsum(credits) > np.cumsum(flits)).any():
        raise ValueError(f"{where}: a credit without a flit")
    if flits.sum() != credits.sum():
        raise ValueError(f"{where}: {flits.sum()} flits but {credits.sum()} credits at the end")


def _packets(where: str, kind: NDArray[np.int64], data: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a hash of every packet: of kinds and data of its flits in their order."""
    if not len(kind):
        return np.zeros(0, np.uint64)
    head, tail = (kind & 1) == 1, (kind & 2) == 2
    if not head[0] or not tail[-1] or not np.array_equal(head[1:], tail[:-1]):
        raise ValueError(f"{where}: packets are mixed or not whole")
    first = np.flatnonzero(head)
    place = np.arange(len(kind)) - np.repeat(first, np.diff(np.append(first, len(kind))))
    words = data.view(np.uint64) if data.flags.c_contiguous else np.ascontiguousarray(data).view(np.uint64)
    value = kind.astype(np.uint64) + np.uint64(4) * place.astype(np.uint64)
    for column in range(words.shape[1]):
        value = (value ^ words[:, column]) * _ODD
        value ^= value >> np.uint64(29)
    return np.add.reduceat(value, first)


def _dropped(stimulus: RouterStimulus) -> int:
    """Return how many packets were dropped; the counters must have counted them between two clearings."""
    drops, pulses = stimulus.outputs[:, :, O_DROPS], stimulus.outputs[:, :, O_DROPPED]
    clear = stimulus.control[:, C_CLEAR, None] == 1
    if not np.array_equal(drops[1:], np.where(clear[:-1], 0, drops[:-1] + pulses[:-1])):
        raise ValueError("a drop counter does not count the packets that were dropped")
    return int(pulses.sum())
