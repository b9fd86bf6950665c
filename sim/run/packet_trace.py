"""Follows chosen packets through a run of the network simulator: every event of every flit."""

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.network.core.event_log import put_log
from hopforge.model.network.core.kinds import ACTIVE, DRAINED, GRANTED, HEAD, RC, RECEIVED, SENT, TAIL, VA
from hopforge.model.network.settings import Script
from hopforge.sim.failures.record import counted
from hopforge.sim.queued.build import QueuedState
from hopforge.sim.queued.records import LINKED, ROUTED, SENT_AGAIN
from hopforge.sim.run.packet_life import PacketKey, PacketLife, TraceError, Visit
from hopforge.sim.run.prepared import prepare_trace
from hopforge.sim.run.simulation import Simulation


class _Stepper:
    """A simulation that is stepped cycle by cycle, with the log of each cycle."""

    def __init__(self, config: Config, load: float, seed: int, script: Script | None, *, check: bool) -> None:
        run = prepare_trace(config, load=load, seed=seed, script=script, check=check)
        state = run.state
        # in a cycle a port grants, drains, sends and (at an arrival, after a grant) routes; a host sends and takes
        capacity = 6 * int(state["routers"]) * int(state["ports"]) + 2 * len(state["host"])
        put_log(state, capacity)
        self.run = run
        self.cycle = 0

    def step(self) -> NDArray[np.int64]:
        """Simulate one cycle; returns its events, int64[event, 6] (columns: `network.event_log.put_log`)."""
        state = self.run.state
        state.record["log_length"] = 0
        self.cycle = int(state["cycle"])
        self.run.advance(1)
        log: NDArray[np.int64] = state["log"].reshape(-1, 6)[: int(state["log_length"])].copy()
        return log


def list_packets(
    config: Config,
    load: float,
    seed: int,
    cycles: int,
    progress: Callable[[int, int], None] | None = None,
    script: Script | None = None,
    keys: Iterable[PacketKey] = (),
) -> pd.DataFrame:
    """Run the network from its start and list the packets that were sent.

    Parameters
    ----------
    config, load, seed, script
        As for `Simulation`.
    cycles : int
        How long.
    progress : callable, optional
        Called with (cycles done, in all).
    keys : iterable of PacketKey
        Packets that will be followed.

    Raises
    ------
    TraceError
        The network has no such host.

    Returns
    -------
    DataFrame
        Columns host, number, dst, flits, created, sent (head, the first time), arrived (tail; −1: not yet) and latency
        (−1), in the order of `sent`.
    """
    stepper = _Stepper(config, load, seed, script, check=True)
    topology = stepper.run.topology
    hosts = topology.hosts  # behind them come the hosts of service ports, one at each router
    hosts += topology.routers if config.traffic.acknowledge is not None else 0
    for key in keys:
        if key.host >= hosts:
            raise TraceError(f"--packet {key}: the host must be 0 to {hosts - 1}, not {key.host}")
    rows: list[dict[str, int]] = []
    place: dict[int, int] = {}
    for done in range(cycles):
        log = stepper.step()
        pool = stepper.run.state["packet"]
        heads = log[(log[:, 1] == SENT) & (log[:, 5] & HEAD != 0)]
        if len(heads):
            fresh = np.flatnonzero((pool["sent"] == stepper.cycle) & (pool["length"] > 0))
            found = {(int(pool["src"][k]) << 40) | int(pool["number"][k]): int(k) for k in fresh}
            for code in heads[:, 4].tolist():
                if code in place:
                    continue  # a failure let another host send it again
                packet = pool[found[code]]
                place[code] = len(rows)
                rows.append(
                    {
                        "host": code >> 40, "number": code & ((1 << 40) - 1), "dst": int(packet["dst"]),
                        "flits": int(packet["length"]), "created": int(packet["created"]), "sent": stepper.cycle,
                        "arrived": -1, "latency": -1,
                    }
                )  # fmt: skip
        for code in log[(log[:, 1] == RECEIVED) & (log[:, 5] & TAIL != 0), 4].tolist():
            row = rows[place[code]]
            row["arrived"], row["latency"] = stepper.cycle, stepper.cycle - row["created"]
        if progress is not None and done % 100 == 99:
            progress(done + 1, cycles)
    return pd.DataFrame(rows, columns=["host", "number", "dst", "flits", "created", "sent", "arrived", "latency"])


def slowest(packets: pd.DataFrame, count: int, after: int = 0) -> list[PacketKey]:
    """Choose the packets of greatest latency among those created from cycle `after` on that have arrived.

    Raises
    ------
    TraceError
        None has arrived.
    """
    arrived = packets[(packets["arrived"] >= 0) & (packets["created"] >= after)]
    if arrived.empty:
        raise TraceError(f"--slowest: no packet that was created from cycle {after} on has arrived; more --cycles?")
    chosen = arrived.sort_values(["latency", "created", "host"], ascending=[False, True, True], kind="stable")[:count]
    return [PacketKey(int(host), int(number)) for host, number in zip(chosen["host"], chosen["number"], strict=True)]


def follow(
    config: Config,
    load: float,
    seed: int,
    cycles: int,
    packets: pd.DataFrame,
    keys: Iterable[PacketKey],
    script: Script | None = None,
) -> tuple[Simulation, list[PacketLife]]:
    """Run again what `list_packets` ran and note everything that happens to the packets `keys`.

    Returns
    -------
    Simulation
        At the end of the run.
    list of PacketLife
        In the order of `keys`.

    Raises
    ------
    TraceError
        A packet that was not sent.
    """
    keys = list(dict.fromkeys(keys))
    by_code = {key.code: _life(packets, key, cycles) for key in keys}
    stepper = _Stepper(config, load, seed, script, check=False)
    followed = _Followed(by_code, queued=isinstance(stepper.run.state, QueuedState))
    for _ in range(cycles):
        log = stepper.step()
        if not followed.queued:
            followed.note_heads(stepper)
        for event in log[np.isin(log[:, 4], followed.codes)].tolist():
            followed.note_event(*event)
        if all(len(life.received) + len(life.dropped) == life.flits for life in by_code.values()):
            break
    followed.close()
    return stepper.run, [by_code[key.code] for key in keys]


def _life(packets: pd.DataFrame, key: PacketKey, cycles: int) -> PacketLife:
    """Return the life of a packet of the list of all packets, before anything has happened."""
    found = packets[(packets["host"] == key.host) & (packets["number"] == key.number)]
    if found.empty:
        sent = int((packets["host"] == key.host).sum())
        what = f"{counted(sent, 'packet')} in {counted(cycles, 'cycle')}"
        raise TraceError(f"--packet {key}: host {key.host} sent {what}")
    row = found.iloc[0]
    return PacketLife(key, int(row["dst"]), int(row["flits"]), int(row["created"]))


class _Followed:
    """Packets that are followed, and their visits to input VCs that have not ended.

    Parameters
    ----------
    lives : dict
        Code of a packet → its life.
    queued : bool
        Routers have queues at their outputs.
    """

    def __init__(self, lives: dict[int, PacketLife], *, queued: bool) -> None:
        self.lives, self.queued = lives, queued
        self.codes = np.array(list(lives))
        self._open: dict[tuple[int, int], Visit] = {}

    def note_heads(self, stepper: _Stepper) -> None:
        """Note in which state the heads are that stand first in an input VC."""
        for code, n, state in _heads(stepper.run, self.codes):
            visit = self._open.setdefault((code, n), Visit(n, -1, []))
            if visit.grants:
                continue
            if state == RC and visit.routed is None:
                visit.routed = stepper.cycle
            if state in (VA, ACTIVE) and visit.requested is None:
                visit.requested = stepper.cycle
            if state == ACTIVE and visit.granted is None:
                visit.granted = stepper.cycle

    def note_event(self, cycle: int, kind: int, source: int, target: int, code: int, _flit: int) -> None:
        """Note an event of the log."""
        life = self.lives[code]
        if kind in (SENT, SENT_AGAIN):
            (life.sent if len(life.sent) < life.flits else _sent_again(life, source)).append(cycle)
        elif kind == RECEIVED:
            life.received.append(cycle)
        elif kind == DRAINED:
            life.dropped.append(cycle)
        elif kind == ROUTED:
            self._open[code, source] = Visit(source, target, [], routed=cycle)
        elif kind == LINKED:
            life.visits[-1].links.append(cycle)
        elif kind == GRANTED:
            self._note_grant(life, source, target, cycle)

    def _note_grant(self, life: PacketLife, source: int, target: int, cycle: int) -> None:
        """Note a grant of the switch, which ends a visit when it is that of the last flit."""
        visit = self._open.setdefault((life.key.code, source), Visit(source, -1, []))
        if self.queued:
            life.visits.append(visit)
        elif not visit.grants:
            visit.output_vc = target
            # with speculation a head can get both in its first cycle
            visit.requested = cycle if visit.requested is None else visit.requested
            visit.granted = cycle if visit.granted is None else visit.granted
            life.visits.append(visit)
        visit.grants.append(cycle)
        if len(visit.grants) == life.flits:
            del self._open[life.key.code, source]

    def close(self) -> None:
        """Add the visits of heads that wait at the end of the run."""
        for (code, _), visit in self._open.items():
            if not visit.grants:
                self.lives[code].visits.append(visit)


def _sent_again(life: PacketLife, host: int) -> list[int]:
    """Cycles in which `host` sends the flits again that it has set aside."""
    begun = (visit for visit in life.visits if visit.again is not None and len(visit.again[1]) < life.flits)
    visit = next(begun, life.visits[-1])
    if visit.again is None:
        visit.again = host, []
    return visit.again[1]


def _heads(run: Simulation, codes: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Return (packet, input VC, its state) of every chosen packet whose head is the first flit of an input VC."""
    state = run.state
    pool, vcs = state["packet"], state["input_vc"]
    chosen = np.flatnonzero(np.isin((pool["src"].astype(np.int64) << 40) | pool["number"], codes))
    if not len(chosen):
        return []
    waiting = np.flatnonzero(vcs["flits"] > 0)
    first = state["fifo"][waiting, vcs["head"][waiting]].astype(np.int64)
    mine = (first & HEAD != 0) & np.isin(first >> 2, chosen)
    return [
        ((int(pool["src"][flit >> 2]) << 40) | int(pool["number"][flit >> 2]), int(n), int(vcs["state"][n]))
        for n, flit in zip(waiting[mine].tolist(), first[mine].tolist(), strict=True)
    ]
