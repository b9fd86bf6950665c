"""Run a network through failures: losses, then static reconfiguration (docs/guides/failures.md).

Static means that the packets of the old tables are out of the network before the first packet by the new tables is
sent, so that the two can never wait for each other.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hopforge.model.network.core.kinds import FINISHED, PROGRAM, STUCK
from hopforge.model.network.core.state import NetState
from hopforge.sim.failures.epochs import Epoch
from hopforge.sim.failures.program_messages import LostMessages
from hopforge.sim.failures.record import FailureRecord

if TYPE_CHECKING:
    import pandas as pd


class FailingNetwork(Protocol):
    """What a router model does at failures and repairs, between two cycles of its kernel.

    Attributes
    ----------
    lost : LostMessages
        Of the program, if hosts run one.
    """

    lost: LostMessages

    @property
    def set_aside(self) -> int:
        """Packets that hosts hold for others at this moment."""
        ...

    def fail(
        self,
        ports: NDArray[np.bool_],
        switches: NDArray[np.bool_],
        hosts: NDArray[np.bool_],
        record: FailureRecord,
    ) -> None:
        """Let ports (bool[router · ports + port]), switches and hosts fail; what is lost is counted in `record`."""

    def repair(self, ports: NDArray[np.bool_], hosts: NDArray[np.bool_]) -> None:
        """Let ports and hosts work again."""

    def stop(self) -> None:
        """Let the hosts begin no packet any more."""

    def start(self, epoch: Epoch) -> None:
        """Let the hosts send that work."""

    def empty(self) -> bool:
        """Nothing is under way."""
        ...

    def turn_away(self, epoch: Epoch, record: FailureRecord) -> int:
        """Turn packets away that can only go over failed links; returns in which cycle to call again."""
        ...

    def send_again(self, epoch: Epoch) -> int:
        """Let hosts send what they have set aside, before their own; returns in which cycle to call again."""
        ...


class Reconfiguration:
    """The failures of one run, and what follows from them.

    Parameters
    ----------
    state : NetState
        At cycle 0.
    network : FailingNetwork
        The same, of its router model.
    epochs : list of Epoch
        In the order of their cycles.
    run : callable
        ``run(cycles) -> code``: the kernel, by the tables that are in force.
    install : callable
        Puts the routing of an epoch in force and empties the caches of lookup engines.
    series_cycles : int
        Bin of the time series.
    flit_cycles : int
        Cycles of a flit on the link of a host.
    cycle_ns : float
        Length of a cycle, 0 if it is not known.
    """

    def __init__(
        self,
        state: NetState,
        network: FailingNetwork,
        epochs: list[Epoch],
        run: Callable[[int], int],
        install: Callable[[Epoch], None],
        series_cycles: int,
        flit_cycles: int,
        cycle_ns: float,
    ) -> None:
        self.state, self.network, self.epochs, self._run, self._install = state, network, epochs, run, install
        self.flit_cycles, self.cycle_ns = flit_cycles, cycle_ns
        self.records: list[FailureRecord] = []
        self._waiting = list(epochs)  # that have not begun
        self._epoch: Epoch | None = None
        self._stop_at: int | None = None  # hosts stop sending
        self._emptying = False
        self._ready_at = 0  # not before: new tables
        self._seen_from = 0  # behind the cycle in which a program stood, which may have seen the last arrivals
        self._series = _Series(state, series_cycles, flit_cycles)

    @property
    def series(self) -> "pd.DataFrame":
        """Time series in bins: cycle (of its begin), sent, accepted, lost_flits, in_flight (docs)."""
        return self._series.table()

    @property
    def to_come(self) -> list[Epoch]:
        """Failures and repairs that have not taken place."""
        return self._waiting

    @property
    def settled(self) -> bool:
        """Whether nothing is to come: no failure or repair, and no new tables for one that was."""
        return not self._waiting and self._stop_at is None and not self._emptying

    @property
    def lost_flits(self) -> int:
        """Flits lost so far by failures, without those of packets that were dropped as unroutable."""
        return sum(record.flits_lost for record in self.records)

    @property
    def lost_packets(self) -> int:
        """Packets of a program lost so far by failures: under way, at hosts that failed, or for want of a host."""
        return sum(one.packets_lost + one.packets_unsent + one.packets_without_host for one in self.records)

    def advance(self, cycles: int) -> int:
        """Simulate `cycles` cycles; returns the kernel's last code. A program that has ended, or stands, stops it."""
        state, network = self.state, self.network
        end, code = int(state["cycle"]) + cycles, 0
        while (now := int(state["cycle"])) < end:
            while self._waiting and self._waiting[0].cycle <= now:
                self._begin(self._waiting.pop(0))
            if self._stop_at is not None and now >= self._stop_at:
                self._stop_sending()
            self._note_empty()
            if self._emptying and now >= self._ready_at and self._empty():
                self._reprogram()
            limit = min([end, self._series.next_cycle, *(epoch.cycle for epoch in self._waiting[:1])])
            if self._stop_at is not None:
                limit = min(limit, self._stop_at)
            if self._emptying:
                limit = min(limit, self._step_emptying(now))
            elif network.set_aside and self._epoch is not None:
                limit = min(limit, network.send_again(self._epoch))
            code = self._run(limit - now)
            if code in (FINISHED, STUCK) and state["source_kind"] == PROGRAM:
                self._seen_from = int(state["cycle"]) + 1  # in this cycle something may have arrived
                return code
            self._hold_back(now, limit)
            self._note_empty()
            self._series.note()
        return code

    def _hold_back(self, begin: int, limit: int) -> None:
        """Go back to what is due after `begin` where the kernel has passed it, as all ranks of a program compute.

        That is `limit`, to which the kernel was told to run, where nothing but a look at the empty network is due.

        Nothing is under way then, and nothing has happened in between.
        """
        due = [epoch.cycle for epoch in self._waiting[:1]]
        due += [self._stop_at] if self._stop_at is not None else []
        due += [self._ready_at if self._ready_at > begin else limit] if self._emptying else []
        if due and int(self.state["cycle"]) > min(due):
            self.state.record["cycle"] = min(due)

    def _begin(self, epoch: Epoch) -> None:
        """Let parts fail, or work again."""
        before = self._epoch
        shape = epoch.ports.shape
        old = np.zeros(shape, bool) if before is None else before.ports
        old_switches = np.zeros(shape[0], bool) if before is None else before.switches
        old_hosts = np.zeros(len(epoch.hosts), bool) if before is None else before.hosts
        self._epoch = epoch
        record = FailureRecord(epoch.cycle, epoch.what)
        self.records.append(record)
        self.network.fail(
            (epoch.ports & ~old).reshape(-1), epoch.switches & ~old_switches, epoch.hosts & ~old_hosts, record
        )
        self.network.repair((old & ~epoch.ports).reshape(-1), old_hosts & ~epoch.hosts)
        detected = epoch.cycle + epoch.detection_cycles
        self._ready_at = max(self._ready_at, detected + epoch.reprogram_cycles)
        if self._emptying:
            record.stopped_cycle = epoch.cycle
        else:
            self._stop_at = detected if self._stop_at is None else min(self._stop_at, detected)

    def _stop_sending(self) -> None:
        """Let the hosts begin no packet any more; what they have begun goes on."""
        now = int(self.state["cycle"])
        self._stop_at, self._emptying = None, True
        self.network.stop()
        for record in self.records:
            record.stopped_cycle = now if record.stopped_cycle < 0 else record.stopped_cycle

    def _note_empty(self) -> None:
        """Note that the network has become empty, for all failures and repairs that it is becoming empty for."""
        waiting = [record for record in self.records if record.empty_cycle < 0]
        if self._emptying and waiting and self._empty():
            for record in waiting:
                record.empty_cycle = int(self.state["cycle"])

    def _empty(self) -> bool:
        """Nothing is under way when this cycle begins."""
        return int(self.state["cycle"]) >= self._seen_from and self.network.empty()

    def _step_emptying(self, now: int) -> int:
        """Move on a network that becomes empty; returns the cycle until which the kernel may run."""
        assert self._epoch is not None
        if now < self._seen_from:
            return now + 1
        if self._empty():
            return self._ready_at if now < self._ready_at else now + 1
        return self.network.turn_away(self._epoch, self.records[-1])

    def _reprogram(self) -> None:
        """Put the new tables in force and let the hosts send."""
        assert self._epoch is not None
        now = int(self.state["cycle"])
        self._install(self._epoch)
        self.network.start(self._epoch)
        self._emptying = False
        for record in self.records:
            record.reprogrammed_cycle = now if record.reprogrammed_cycle < 0 else record.reprogrammed_cycle

    def table(self) -> "pd.DataFrame":
        """One row per failure or repair: the fields of `FailureRecord`, and the length of a cycle."""
        import pandas as pd  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

        return pd.DataFrame([asdict(record) | {"cycle_ns": self.cycle_ns} for record in self.records])


class _Series:
    """Counts in bins of equal length."""

    def __init__(self, state: NetState, bin_cycles: int, flit_cycles: int) -> None:
        self.state, self.bin, self.flit_cycles = state, bin_cycles, flit_cycles
        self.next_cycle = bin_cycles
        self.rows: list[tuple[Any, ...]] = []
        self._before = self._counts()

    def _counts(self) -> tuple[int, ...]:
        state = self.state
        return int(state["host"]["flits_sent"].sum()), int(state["flits_ejected"]), int(state["flits_dropped"])

    def note(self) -> None:
        """Close a bin whose end has come."""
        now = int(self.state["cycle"])
        if now < self.next_cycle:
            return
        counts = self._counts()
        sent, accepted, lost = (new - old for new, old in zip(counts, self._before, strict=True))
        hosts = max(int(self.state["hosts"]), 1) * self.bin / self.flit_cycles
        begin = self.next_cycle - self.bin
        self.rows.append((begin, sent / hosts, accepted / hosts, lost, self.state.flits_in_flight))
        # whole bins that the kernel has passed are left out: nothing moved in them
        self._before, self.next_cycle = counts, (now // self.bin + 1) * self.bin

    def table(self) -> "pd.DataFrame":
        """All bins; rates in flits per host and time of a flit on its link."""
        import pandas as pd  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

        return pd.DataFrame(self.rows, columns=["cycle", "sent", "accepted", "lost_flits", "in_flight"])
