"""The phases of the life of a packet: where every flit waits, and for what."""

from typing import NamedTuple

from hopforge.model.output.plots import PALETTE
from hopforge.sim.queued.build import QueuedState
from hopforge.sim.run.packet_life import PacketLife, Visit, arrival_cycles
from hopforge.sim.run.simulation import Simulation

#: phases of the timing diagram and their colours
PHASES = {
    "source queue": "#c9c9c9",
    "buffer": "#e6e6e6",
    "route computation": PALETTE[3],
    "VC allocation": PALETTE[4],
    "switch allocation": PALETTE[1],
    "output queue": PALETTE[5],
    "crossbar and link": PALETTE[0],
    "ejected": PALETTE[2],
}


class Bar(NamedTuple):
    """A phase of one flit at one stop of its path: cycles [start, end)."""

    stop: int
    flit: int
    phase: str
    start: int
    end: int


def bars(run: Simulation, life: PacketLife) -> list[Bar]:
    """Phases of every flit; stop 0 is the source, 1 … the routers of the path, the last one the destination."""
    found: list[Bar] = []
    arrivals, now = arrival_cycles(run, life), int(run.state["cycle"])
    for flit, cycle in enumerate(life.sent):
        found.append(Bar(0, flit, "source queue", life.created, cycle))
        found.append(Bar(0, flit, "crossbar and link", cycle, arrivals[0][flit]))
    queued = isinstance(run.state, QueuedState)
    for stop, (visit, arrived) in enumerate(zip(life.visits, arrivals, strict=False), start=1):
        if not visit.grants:
            found += (_queued_waiting if queued else _waiting)(visit, stop, arrived[0], now)
        following = arrivals[stop] if stop < len(life.visits) else life.received
        for flit in range(len(visit.grants)):
            if visit.requested is None:  # queues at the output
                parts, leaves = _queued_flit(visit, stop, flit, arrived[flit], now)
            else:
                parts, leaves = _flit(visit, stop, flit, arrived[flit])
            found += parts
            if flit < len(following):
                found.append(Bar(stop, flit, "crossbar and link", leaves, following[flit]))
    last = len(life.visits) + 1
    found += [Bar(last, flit, "ejected", cycle, cycle + 1) for flit, cycle in enumerate(life.received)]
    return [bar for bar in found if bar.end > bar.start]


def _again(visit: Visit, flit: int) -> int | None:
    """Cycle in which a flit was sent again that had been set aside; None: it was not."""
    return visit.again[1][flit] if visit.again is not None and flit < len(visit.again[1]) else None


def _queued_flit(visit: Visit, stop: int, flit: int, arrived: int, now: int) -> tuple[list[Bar], int]:
    """Phases of a granted flit in a router with queues at its outputs, and the cycle in which it leaves."""
    assert visit.routed is not None
    on_link = visit.on_link(flit)
    on_link = _again(visit, flit) if on_link is None else on_link
    leaves, granted = now if on_link is None else on_link, visit.grants[flit]
    return [
        Bar(stop, flit, "buffer", arrived, visit.routed),
        Bar(stop, flit, "switch allocation", visit.routed, granted),
        Bar(stop, flit, "output queue", granted, leaves),
    ], leaves


def _flit(visit: Visit, stop: int, flit: int, arrived: int) -> tuple[list[Bar], int]:
    """Phases of a granted flit in an input-queued router, and the cycle in which it leaves."""
    leaves = visit.grants[flit] + 1
    if flit == 0:
        found = _waiting(visit, stop, arrived, leaves)
    else:
        found = [
            Bar(stop, flit, "buffer", arrived, leaves - 1),
            Bar(stop, flit, "switch allocation", leaves - 1, leaves),
        ]
    again = _again(visit, flit)
    if again is not None:
        found.append(Bar(stop, flit, "source queue", leaves, again))
        leaves = again
    return found, leaves


def _queued_waiting(visit: Visit, stop: int, arrived: int, now: int) -> list[Bar]:
    """Phases up to now of a packet without a grant in a router with queues at its outputs."""
    assert visit.routed is not None
    return [Bar(stop, 0, "buffer", arrived, visit.routed), Bar(stop, 0, "switch allocation", visit.routed, now)]


def _waiting(visit: Visit, stop: int, arrived: int, now: int) -> list[Bar]:
    """Phases of a head in an input-queued router up to `now`, when it leaves or still waits."""
    asked = now if visit.requested is None else visit.requested
    routed = asked if visit.routed is None else visit.routed
    granted = now if visit.granted is None else visit.granted + 1
    return [
        Bar(stop, 0, "buffer", arrived, routed),
        Bar(stop, 0, "route computation", routed, asked),
        Bar(stop, 0, "VC allocation", asked, granted),
        Bar(stop, 0, "switch allocation", granted, now),
    ]
