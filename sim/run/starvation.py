"""Packets that stand still and hosts that cannot send while the rest goes on (docs/definitions/measures.md).

A deadlock of all is noticed by the kernel; what is noticed here is one of some, or an arbiter that passes someone over.
"""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.network.core.state import NetState
from hopforge.model.output.columns import Columns
from hopforge.model.topology import Topology

__all__ = ["StarvationWatch"]


class StarvationWatch:
    """Looks at every input VC and host when a sample of a run ends; what has not moved for long enough is kept.

    Parameters
    ----------
    topology : Topology
        The network.
    state : NetState
        Of the run, of input-queued routers.
    limit_cycles : int
        Least time without a move.
    step_cycles : int
        Longest time between two looks: after a longer one the watch begins anew.
    """

    def __init__(self, topology: Topology, state: NetState, limit_cycles: int, step_cycles: int) -> None:
        self._topology, self._state, self._limit, self._step = topology, state, limit_cycles, step_cycles
        self._last = int(state["cycle"])
        self._front, self._sent = self._fronts(), state.senders["flits_sent"].copy()
        now = int(state["cycle"])
        self._front_since = np.full(len(self._front), now, np.int64)
        self._sent_since = np.full(len(self._sent), now, np.int64)
        #: (kind, host, src, dst, router, port, vc, cycle since when) → cycles without a move
        self._found: dict[tuple[str, int, int, int, int, int, int, int], int] = {}

    def _fronts(self) -> NDArray[np.int64]:
        """Return the first flit of every input VC and its place in the buffer; −1: none."""
        inputs, depth = self._state["input_vc"], int(self._state["buffer"])
        place = np.arange(len(inputs), dtype=np.int64) * depth + inputs["head"]
        flit = self._state["fifo"][place].astype(np.int64)
        return np.where(inputs["flits"] > 0, flit * depth + inputs["head"], -1)

    def note(self) -> None:
        """Take a sample."""
        now = int(self._state["cycle"])
        front, sent = self._fronts(), self._state.senders["flits_sent"]
        if now - self._last > self._step:
            self._front_since[:] = self._sent_since[:] = now
        self._last = now
        self._front_since[(front != self._front) | (front < 0)] = now
        host = self._state.senders
        waits = (host["packet"] >= 0) | (host["next_time"] < now)
        self._sent_since[(sent != self._sent) | ~waits] = now
        self._front, self._sent = front, sent.copy()
        for n in np.flatnonzero(now - self._front_since >= self._limit).tolist():
            self._keep_packet(n, now)
        for h in np.flatnonzero(now - self._sent_since >= self._limit).tolist():
            since = int(self._sent_since[h])
            self._found["host", h, h, -1, int(self._topology.host_router[h]), -1, -1, since] = now - since

    def _keep_packet(self, n: int, now: int) -> None:
        vcs, ports = int(self._state["vcs"]), int(self._state["ports"])
        packet = self._state["packet"][int(self._front[n]) // int(self._state["buffer"]) >> 2]
        router, rest = divmod(n, vcs * ports)
        since = int(self._front_since[n])
        src, dst = int(packet["src"]), int(packet["dst"])
        self._found["packet", -1, src, dst, router, rest // vcs, rest % vcs, since] = now - since

    @property
    def some(self) -> bool:
        """Whether anything has starved."""
        return bool(self._found)

    def columns(self) -> Columns:
        """Return kind, host, src, dst, router, port, vc, since_cycle and still_cycles, −1 for what does not apply."""
        rows = sorted((key[-1], key, still) for key, still in self._found.items())
        names = ("kind", "host", "src", "dst", "router", "port", "vc", "since_cycle")
        found = {name: np.array([key[i] for _, key, _ in rows]) for i, name in enumerate(names)}
        return {**found, "still_cycles": np.array([still for *_, still in rows], np.int64)}

    def words(self) -> str:
        """Say how many packets and hosts have starved, and name the first of each."""
        parts = []
        for kind in ("packet", "host"):
            keys = sorted((key for key in self._found if key[0] == kind), key=lambda key: key[-1])
            if keys:
                _, host, src, dst, router, port, vc, since = keys[0]
                what = f"host {host} cannot send"
                if kind == "packet":
                    what = f"one from host {src} to host {dst} stands at router {router}, input port {port}, VC {vc},"
                parts.append(f"{len(keys)} {kind}{'' if len(keys) == 1 else 's'}: {what} since cycle {since}")
        return f"no move for {self._limit:,} cycles or more: {'; '.join(parts)}"
