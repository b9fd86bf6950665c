"""Finds a program on routers of flits that can neither go on nor end: messages wait at hosts that send nothing."""

from hopforge.sim.run.simulation import Simulation

__all__ = ["StandstillWatch"]


class StandstillWatch:
    """Looks at a run now and then. No file should lead to a standstill; a run that never ends would say nothing.

    Parameters
    ----------
    run : Simulation
        At cycle 0; its hosts run a program.
    """

    def __init__(self, run: Simulation) -> None:
        self._run, self._since, self._moved = run, 0, -1

    def rest(self) -> None:
        """Begin anew: until now nothing was under way."""
        self._since = int(self._run.state["cycle"])

    def found(self) -> bool:
        """Whether no rank computes, no flit is in the network, and none was for ``simulation.deadlock_cycles``."""
        run, state = self._run, self._run.state
        cycle, moved, waits = int(state["cycle"]), int(state["last_move"]), run.reconfiguration
        idle = state.flits_in_flight == 0 and state["timers"] == 0 and (waits is None or waits.settled)
        if not idle or moved != self._moved:
            self._since, self._moved = cycle, moved
        return cycle - self._since > int(state["deadlock_cycles"])
