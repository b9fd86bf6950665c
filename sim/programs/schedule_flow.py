"""A schedule of GOAL on the flow engine: ranks by their graph, messages on the links of the network."""

from collections.abc import Callable
from dataclasses import replace
from math import floor, log2

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.kernel.run_clock import run_seconds
from hopforge.model.lookup.lid_routes import KnownRoutes
from hopforge.model.topology import Topology
from hopforge.model.workload.schedule import SEND, Schedule
from hopforge.sim.programs.cache_delays import CacheUse
from hopforge.sim.programs.flow_engine import FlowRun
from hopforge.sim.programs.flow_graph import CHANGE, FULL, SLICE, advance_graph
from hopforge.sim.programs.flow_state import DONE
from hopforge.sim.programs.loggops_engine import LoggopsSettings, LoggopsTimes, found_times, rank_state
from hopforge.sim.programs.loggops_kernel import begin, begin_later
from hopforge.sim.traffic.placed import PlacedProgram

#: points in time between two looks at the keyboard
SLICE_EVENTS = 20_000
#: to which arrivals are rounded for the ranks, at most
ARRIVAL_STEP_S = 1e-16


class ScheduleFlow(FlowRun):
    """A schedule on a network, at the flow level.

    Parameters
    ----------
    config : Config
        Sections `app` (with `loggops`: o, g, O, S and the unit), `timing` and `lookup` are used.
    topology : Topology
        The network.
    placed : PlacedProgram
        The messages of the schedule, on the hosts of its ranks.
    schedule : Schedule
        What the ranks do.
    use : CacheUse
        What lookups find.
    known_routes : Routes, optional
        Those of the configuration, if they are known already.
    """

    def __init__(
        self, config: Config, topology: Topology, placed: PlacedProgram, schedule: Schedule, use: CacheUse,
        known_routes: KnownRoutes | None = None,
    ) -> None:
        self._schedule = schedule
        self._unit = config.app.loggops.unit_ns * 1e-9
        self._ranks = rank_state(schedule, network_settings(config))
        #: part of a unit, a power of two: sums of whole units and of such parts are exact
        self._step = 2.0 ** floor(log2(ARRIVAL_STEP_S / self._unit))
        self._send = np.flatnonzero(schedule.kind == SEND).astype(np.int32)
        self._message = np.full(schedule.operations, -1, np.int32)
        self._message[self._send] = np.arange(len(self._send))
        super().__init__(config, topology, placed, use, known_routes)

    def _compile(self) -> None:
        self._advance(0)

    def _advance(self, most: int) -> int:
        return int(advance_graph(
            self._ranks, self.state, self.hops, self._message, self._send, most, self._unit, self._step
        ))

    def run_schedule(
        self, progress: Callable[[int, int], None] | None = None, start_s: NDArray[np.float64] | None = None
    ) -> LoggopsTimes:
        """Run to the end; times are seconds.

        Parameters
        ----------
        progress : callable, optional
            Called with the messages that have arrived, and all.
        start_s : ndarray, float64[rank], optional
            When each rank begins; None: all at 0.

        Raises
        ------
        GoalError
            The schedule cannot end, a message and its receive have different sizes, or times that cannot be counted.
        """
        started = run_seconds()
        if start_s is None or not start_s.any():
            begin(self._ranks)
        else:
            begin_later(self._ranks, np.rint(start_s / self._unit / self._step) * self._step)
        code = SLICE
        while code in (SLICE, FULL, CHANGE):
            code = self._advance(SLICE_EVENTS)
            if code == FULL:
                self._add_slots()
            elif code == CHANGE:
                self._change()
            if progress is not None:
                progress(int(self.state.numbers[DONE]), len(self.messages))
        times = found_times(self._schedule, self._ranks, run_seconds() - started).scaled(self._unit)
        return times if start_s is None else replace(times, finish=np.maximum(times.finish, start_s))

    @property
    def latency(self) -> NDArray[np.float64]:
        """Seconds from the end of o to the last byte, float64[message through the network]."""
        message = self.messages
        found: NDArray[np.float64] = (message["arrived"] - message["began"])[self.remote]
        return found


def network_settings(config: Config) -> LoggopsSettings:
    """Return o, g, O and S of `app.loggops`; the network takes the place of L and G."""
    return LoggopsSettings(*config.app.loggops.settings)._replace(L=0.0, G=0.0)
