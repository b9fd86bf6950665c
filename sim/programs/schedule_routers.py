"""A schedule of GOAL on packet routers: ranks by their graph, messages as packets, from event to event.

As on routers that move flits (`schedule_packet`): a message is handed over in the first cycle after the end of o, and
its receive knows of it in the cycle in which its last packet is there.
"""

from collections.abc import Callable
from math import floor

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.kernel.run_clock import run_seconds
from hopforge.model.network.parts.program_arrays import refuse_long_run
from hopforge.model.workload.schedule import GoalError, Schedule
from hopforge.sim.failures.program_messages import lost_text
from hopforge.sim.packet.program_network import ProgramNetwork
from hopforge.sim.programs.loggops_engine import LoggopsTimes, found_times
from hopforge.sim.programs.loggops_kernel import EVENTS, begin, come_in, run_until
from hopforge.sim.programs.schedule_packet import ScheduleHosts
from hopforge.sim.traffic.placed import PlacedProgram

__all__ = ["ScheduleRouters"]

#: cycles in which nothing but the network may do something
_LONG = 1 << 40


class ScheduleRouters(ScheduleHosts):
    """A schedule on packet routers.

    Parameters
    ----------
    config : Config
        `app.loggops` is used: o, g, O, S and the unit.
    network : ProgramNetwork
        At cycle 0, with the program of `sending_program`.
    placed : PlacedProgram
        The messages, by rank.
    schedule : Schedule
        What the ranks do.
    cycle_ns : float
        Length of a cycle.
    """

    def __init__(
        self, config: Config, network: ProgramNetwork, placed: PlacedProgram, schedule: Schedule, cycle_ns: float
    ) -> None:
        super().__init__(config, network.state, placed, schedule, cycle_ns)
        self._network, self._program = network, placed.program

    def run_schedule(self, progress: Callable[[int, int], None] | None = None) -> LoggopsTimes:
        """Run to the end; times are seconds.

        Raises
        ------
        GoalError
            The schedule cannot end (failures may have lost messages), a message and its receive have different sizes,
            or times that cannot be counted.
        DeadlockError
            A standstill.
        """
        self._network.compile()
        started, ranks, network = run_seconds(), self._ranks, self._network
        under_way = np.empty(0, np.int64)
        events, event_time = ranks.numbers, ranks.event["time"]
        cycle = 0
        begin(ranks)
        while True:
            count = 0
            if events[EVENTS] and event_time[0] < cycle:
                count = run_until(ranks, float(cycle), self._local, self._handed)
            if count < 0:
                break
            if count:
                under_way = np.concatenate([under_way, self._hand_over(cycle, self._handed[:count])])
            following = floor(event_time[0]) + 1 if events[EVENTS] else cycle + _LONG
            if not len(under_way):
                if not events[EVENTS]:
                    break
                cycle = following
                continue
            refuse_long_run(cycle)
            goes_on = network.advance_to_arrival(following)
            arrived = network.messages["arrived"][under_way]
            came = arrived >= 0
            for m, time in zip(under_way[came].tolist(), arrived[came].tolist(), strict=True):
                come_in(ranks, float(time), int(self._send[m]))
            under_way = under_way[~came & ~self._lost(under_way)]
            assert goes_on or not len(under_way), "packet routers lose messages in failures only"
            cycle = network.cycle if goes_on else max(network.cycle, int(arrived.max())) + 1
            if progress is not None:
                progress(int(network.counters["messages_arrived"]), self._remote)
        network.check_conservation()
        try:
            times = found_times(self._schedule, ranks, run_seconds() - started, self._unit)
        except GoalError as error:
            raise GoalError(f"{error}{self._lost_text()}") from None
        return self._times(times)

    def _lost(self, messages: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Say which messages have lost a packet: they never arrive."""
        failures = self._network.failures
        return np.isin(messages, list(failures.lost_messages if failures is not None else ()))

    def _lost_text(self) -> str:
        failures = self._network.failures
        return "" if failures is None else lost_text(self._program, failures.lost_messages)
