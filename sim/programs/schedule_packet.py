"""A schedule of GOAL on the router simulator: ranks by their graph, messages as packets, cycle by cycle.

The simulator runs a program of one operation for each message: to send it. It is told to do so in the first cycle after
the end of o, and tells in which cycle the last packet was there.
"""

from collections.abc import Callable
from dataclasses import replace
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.kernel.run_clock import run_seconds
from hopforge.model.network.core.kinds import FINISHED, RANK_BITS, STUCK
from hopforge.model.network.parts.program_arrays import refuse_long_run
from hopforge.model.workload import operations as op
from hopforge.model.workload.program import Program
from hopforge.model.workload.schedule import SEND, GoalError, Schedule
from hopforge.sim.failures.program_messages import lost_text
from hopforge.sim.failures.record import counted
from hopforge.sim.programs.loggops_engine import LoggopsTimes, found_times, rank_state
from hopforge.sim.programs.loggops_kernel import EVENTS, begin, begin_later, come_in, run_until
from hopforge.sim.programs.schedule_flow import network_settings
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.run.standstill import StandstillWatch
from hopforge.sim.traffic.placed import PlacedProgram

#: messages and ranks together that the simulator has numbers for
MOST = (1 << RANK_BITS) - 1
#: cycles between two looks at the progress
SLICE_CYCLES = 2000
#: parts of a cycle of which begins of ranks are whole multiples: floats miss whole cycles by roundings
START_STEPS = 1 << 20


def sending_program(placed: PlacedProgram) -> PlacedProgram:
    """Return a program in which every message has a rank of its own, on the host of its sender, that sends it.

    Raises
    ------
    GoalError
        Too many messages.
    """
    program, messages = placed.program, placed.program.messages
    total = program.ranks + messages
    if total > MOST:
        raise GoalError(
            f"{placed.trace.name}: {messages} messages of {program.ranks} ranks are more than engine packet has numbers"
            f" for ({MOST} together; app.engine: flow)"
        )
    numbers = np.arange(messages, dtype=np.int64)
    first = np.concatenate([np.zeros(program.ranks, np.int64), np.arange(messages + 1)])
    sending = Program(
        ranks=total, first=first, kind=np.full(messages, op.SEND, np.int8), operand=numbers,
        action=np.zeros(messages, np.int32), amount=np.empty(0), source=(program.ranks + numbers).astype(np.int32),
        destination=program.destination, size_bytes=program.size_bytes,
    )
    ends = placed.source_host, placed.destination_host
    host = np.concatenate([placed.host, ends[0]]).astype(np.int32)
    return replace(placed, program=sending, host=host, ends=ends, sender=program.source)


class ScheduleHosts:
    """Ranks of a schedule at the hosts of a simulator that works in cycles.

    Parameters
    ----------
    config : Config
        `app.loggops` is used: o, g, O, S and the unit.
    state : NetState or PacketState
        Of the simulator at cycle 0, with the program of `sending_program`.
    placed : PlacedProgram
        The messages, by rank.
    schedule : Schedule
        What the ranks do.
    cycle_ns : float
        Length of a cycle.
    """

    def __init__(
        self, config: Config, state: Any, placed: PlacedProgram, schedule: Schedule, cycle_ns: float
    ) -> None:
        program = placed.program
        self._state, self._schedule, self._cycle_s, self._senders = state, schedule, cycle_ns * 1e-9, program.ranks
        self._send = np.flatnonzero(schedule.kind == SEND)
        self._message = np.full(schedule.operations, -1, np.int64)
        self._message[self._send] = np.arange(program.messages)
        self._local = np.zeros(schedule.operations, np.bool_)
        self._local[self._send] = placed.local
        #: messages that go through the network
        self._remote = int((~placed.local).sum())
        self._unit = config.app.loggops.unit_ns / cycle_ns
        units = network_settings(config)
        cycles = units._replace(**{key: getattr(units, key) * self._unit for key in ("o", "g", "O")})
        self._ranks = rank_state(schedule, cycles, self._unit)
        state.record["timers"] = 0  # nothing is sent before its time
        self._handed = np.zeros(len(self._send) + 1, np.int32)
        run_until(self._ranks, 0.0, self._local, self._handed)  # compiles: nothing is ready before 0

    def _hand_over(self, cycle: int, sends: NDArray[np.int32]) -> NDArray[np.int64]:
        """Let messages be sent in a cycle; return their numbers."""
        refuse_long_run(cycle)
        messages = np.sort(self._message[sends])
        state = self._state
        state["timer"][: len(messages)] = np.int64(cycle) << RANK_BITS | (self._senders + messages)  # sorted: a heap
        state.record["timers"] = len(messages)
        return messages

    def _times(self, times: LoggopsTimes) -> LoggopsTimes:
        """Return times of cycles in seconds."""
        return times.scaled(self._cycle_s)


class SchedulePacket(ScheduleHosts):
    """A schedule on the router simulator.

    Parameters
    ----------
    run : Simulation
        At cycle 0, with the program of `sending_program`.
    config, placed, schedule, cycle_ns
        As of `ScheduleHosts`.
    """

    def __init__(
        self, config: Config, run: Simulation, placed: PlacedProgram, schedule: Schedule, cycle_ns: float
    ) -> None:
        super().__init__(config, run.state, placed, schedule, cycle_ns)
        self._run, self._program = run, placed.program
        #: messages that failures have cost, None: nothing fails
        self._gone = None if run.reconfiguration is None else run.reconfiguration.network.lost.numbers

    def run_schedule(
        self, progress: Callable[[int, int], None] | None = None, start_s: NDArray[np.float64] | None = None
    ) -> LoggopsTimes:
        """Run to the end; times are seconds. Ranks begin at 0, or each at its `start_s`, float64[rank].

        Raises
        ------
        GoalError
            The schedule cannot end (failures may have lost messages), a message and its receive have different sizes,
            packets without a way were dropped, or times that cannot be counted.
        DeadlockError
            The network is in a deadlock.
        """
        self._run.compile()
        started, ranks, state = run_seconds(), self._ranks, self._run.state
        under_way = np.empty(0, np.int64)
        events, event_time = ranks.numbers, ranks.event["time"]
        still = StandstillWatch(self._run)
        cycle, looked, known = 0, 0, 0  # the next cycle; when somebody looked; messages that are known to have come
        if start_s is None or not start_s.any():
            begin(ranks)
        else:
            begin_later(ranks, np.rint(start_s / self._cycle_s * START_STEPS) / START_STEPS)
        while True:
            count = 0
            if events[EVENTS] and event_time[0] < cycle:
                count = run_until(ranks, float(cycle), self._local, self._handed)
            if count < 0:
                break
            if count:
                under_way = np.concatenate([under_way, self._hand_over(cycle, self._handed[:count])])
            if not len(under_way):
                if not events[EVENTS]:
                    break
                cycle = floor(event_time[0]) + 1
                continue
            if int(state["cycle"]) < cycle:  # it has stood still while nothing was under way
                self._run.advance(cycle - int(state["cycle"]))
                still.rest()
            code = self._run.advance(1)
            arrived = int(state["messages_arrived"])
            if arrived > known:
                known = arrived
                came = state["message"]["arrived"][under_way] >= 0
                for m in under_way[came].tolist():
                    come_in(ranks, float(cycle), int(self._send[m]))
                under_way = under_way[~came]
            elif self._gone and len(gone := np.isin(under_way, list(self._gone)).nonzero()[0]):
                under_way = np.delete(under_way, gone)  # they never arrive
            elif code in (STUCK, FINISHED):
                self._lost(under_way)
            cycle += 1
            if cycle - looked >= SLICE_CYCLES:
                looked = cycle
                self._look(progress)
                if len(under_way) and still.found():
                    self._lost(under_way)
        self._run.check_conservation()
        try:
            times = found_times(self._schedule, ranks, run_seconds() - started, self._unit)
        except GoalError as error:
            raise GoalError(f"{error}{lost_text(self._program, self._gone or set())}") from None
        times = self._times(times)
        return times if start_s is None else replace(times, finish=np.maximum(times.finish, start_s))

    def _look(self, progress: Callable[[int, int], None] | None) -> None:
        if self._run.agents is not None:
            self._run.agents.note()
        if progress is not None:
            progress(int(self._run.state["messages_arrived"]), self._remote)

    def _lost(self, messages: NDArray[np.int64]) -> None:
        send = int(self._send[messages[0]])
        dropped = self._run.unroutable_packets
        raise GoalError(
            f"{self._schedule.where(send)}: {counted(len(messages), 'message')} did not arrive, of rank"
            f" {self._schedule.rank_of(send)} {self._schedule.words(send)} first;"
            f" unroutable and dropped: {counted(dropped, 'packet')}{lost_text(self._program, self._gone or set())}"
        )
