"""Sends the packets of a queue in a host, each whole, on some of its virtual channels."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.utils import ceil_log2

from hopforge.hw.network.host_vcs import HostVcs
from hopforge.hw.parts.round_robin import RoundRobin, select
from hopforge.model.router.params import RouterParams

__all__ = ["Sending", "send_packets"]


class Sending(NamedTuple):
    """What leaves in this cycle: a head, any flit, a tail; on which of the virtual channels, counted from 0."""

    first: Signal
    sends: Signal
    last: Signal
    where: Signal


def send_packets(
    m: Module, params: RouterParams, channel: Any, vcs: Sequence[int], flits: Value | int, ripe: Value, turn_name: str
) -> Sending:
    """Send a flit a cycle while there are credits; the VCs take turns (docs/definitions/router.md, Hosts).

    Parameters
    ----------
    m : Module
        Receives state and logic.
    params : RouterParams
        The router at which the host is.
    channel : interface
        Gives credits back.
    vcs : sequence of int
        That packets may take.
    flits : Value or int
        Of each packet; a value is that of the next one.
    ripe : Value
        Not 0: a packet may leave.
    turn_name : str
        Of the submodule that gives VCs their turn.
    """
    own = HostVcs(params, vcs)
    turn = RoundRobin(width=len(vcs))
    setattr(m.submodules, turn_name, turn)
    left = Signal(len(flits) if isinstance(flits, Value) else range(flits + 1))  # flits of the packet under way
    kept = Signal(max(1, ceil_log2(len(vcs))))
    where = Signal(len(kept))
    first, sends, last = Signal(), Signal(), Signal()
    numbers = [Const(k, len(kept)) for k in range(len(vcs))]
    m.d.comb += [
        turn.requests.eq(own.possible(flits if params.switching == "vct" else 1)),
        first.eq((left == 0) & (ripe != 0) & turn.requests.any()),
        turn.advance.eq(first),
        where.eq(Mux(left == 0, select(turn.grant, numbers), kept)),
        sends.eq(first | ((left != 0) & (own.credits[kept] != 0))),
        last.eq(Mux(left == 0, flits == 1, left == 1)),
    ]
    with m.If(first):
        m.d.sync += [kept.eq(where), left.eq(flits - 1)]
    with m.Elif(sends):
        m.d.sync += left.eq(left - 1)
    own.follow(m, channel, sends, where, last)
    return Sending(first, sends, last, where)
