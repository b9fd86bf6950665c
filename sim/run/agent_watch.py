"""What the agents of DQN routing do during a run: decisions, mean Q, reward, loss and ε over time, and all counters."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hopforge.model.dqn.agents import (
    BEGUN,
    COPIES,
    COUNTS,
    DECISIONS,
    DIVERGED,
    LOSS,
    RANDOM,
    RESTARTS,
    REWARD,
    SCHEDULE,
    STORED,
    SUMS,
    TRAININGS,
    DivergedError,
    Q,
    raise_if_diverged,
)
from hopforge.model.dqn.archive import save_agents
from hopforge.model.dqn.exploration import exploration_rate, later_schedule
from hopforge.model.network.core.state import NetState
from hopforge.model.network.parts.agent_state import AgentState
from hopforge.model.network.parts.trail_tables import trail_counts
from hopforge.model.output.columns import Columns

__all__ = ["AgentWatch"]

#: what divides each sum: number of decisions, samples, training steps
_DIVISORS = {"mean_q": (Q, DECISIONS), "mean_reward": (REWARD, STORED), "mean_loss": (LOSS, TRAININGS)}
_COUNTS = {"decisions": DECISIONS, "random": RANDOM, "samples": STORED, "trainings": TRAININGS, "copies": COPIES,
           "restarts": RESTARTS}  # fmt: skip
_MEANS = (("mean Q", Q, DECISIONS), ("reward", REWARD, STORED), ("loss", LOSS, TRAININGS))
#: agents that are shown one by one, and samples of a mean that is shown while they run
_SINGLE, _SHOWN = 4, 20
#: what `hopforge net` shows of the rare cases
_CAUSES = {
    "left to dimension order": {
        "rejected": "without room", "hop_limit": "after too many hops", "escaped_waiting": "while they waited",
    },
    "without an episode": {
        "no_reqack": "want no acknowledge", "table_full": "table full", "overrun": "too many episodes",
    },
}  # fmt: skip


def _spread(values: NDArray[np.float64]) -> str:
    """Return the values of a few agents, of many their mean, least and greatest."""
    if len(values) <= _SINGLE:
        return " ".join(f"{value:.3g}" for value in values)
    return f"{values.mean():.3g} ({values.min():.3g} to {values.max():.3g})"


class AgentWatch:
    """Follows the agents of a network.

    Parameters
    ----------
    state : NetState
        With agents.
    """

    def __init__(self, state: NetState) -> None:
        assert isinstance(state.agents, AgentState)
        self._state, self._of = state, state.agents
        self._counts, self._sums = self._copies()
        self._cycles: list[int] = []
        self._rows: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
        self._rates: list[list[float]] = []

    def _copies(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return self._of.agents.counts.copy(), self._of.agents.sums.copy()

    @property
    def diverged(self) -> bool:
        """Whether the training of an agent gave no numbers."""
        return bool(self._of.agents.counts[:, DIVERGED].any())

    def note(self) -> None:
        """Note what was done since the last time."""
        counts, sums = self._copies()
        self._cycles.append(int(self._state["cycle"]))
        with np.errstate(invalid="ignore"):  # −∞ − −∞ of what is not shown
            self._rows.append((counts - self._counts, sums - self._sums))
        self._rates.append(self._exploration())
        self._counts, self._sums = counts, sums

    def raise_if_diverged(self) -> None:
        """Raise `DivergedError` for the first agent whose training gave no numbers."""
        raise_if_diverged(self._of.agents)

    def series(self) -> Columns:
        """Return a row per time and agent; a mean over nothing is NaN."""
        agents = self._of.parameters.count
        if not self._rows:
            counts, sums = np.zeros((0, agents, COUNTS), np.int64), np.zeros((0, agents, SUMS))
        else:
            counts, sums = (np.array(part) for part in zip(*self._rows, strict=True))
        found: dict[str, NDArray[np.generic]] = {
            "cycle": np.repeat(np.array(self._cycles, np.int64), agents),
            "agent": np.tile(np.arange(agents), len(self._cycles)),
        }
        found |= {name: counts[:, :, column].reshape(-1) for name, column in _COUNTS.items()}
        for name, (column, divisor) in _DIVISORS.items():
            of = counts[:, :, divisor]
            found[name] = np.where(of > 0, sums[:, :, column] / np.maximum(of, 1), np.nan).reshape(-1)
        found["epsilon"] = np.array(self._rates, np.float64).reshape(-1)
        return found

    def _exploration(self) -> list[float]:
        """Share of random actions of each agent now."""
        counts, schedule = self._of.agents.counts, int(self._of.agents.limits[SCHEDULE])
        return [
            exploration_rate(later_schedule(schedule, int(row[RESTARTS])), int(row[DECISIONS] - row[BEGUN]))
            for row in counts
        ]

    def words(self) -> str:
        """Say how the agents are doing now: what stands beside the bar while they run."""
        if not self._rows:
            return ""
        part = self._rows[-_SHOWN:]
        counts = np.sum([c for c, _ in part], axis=0)
        sums = np.sum([s[:, : LOSS + 1] for _, s in part], axis=0)
        found = []
        for words, column, divisor in _MEANS:
            known = counts[:, divisor] > 0
            if known.any():
                found.append(f"{words} {_spread(sums[known, column] / counts[known, divisor])}")
        return ", ".join([*found, f"ε {_spread(np.array(self._rates[-1]))}"])

    def counters(self) -> Columns:
        """Return all counters of decisions and acknowledges since the start of the run."""
        counts = trail_counts(self._state)
        return {"counter": list(counts), "count": list(counts.values())}

    def tables(self) -> dict[str, Columns]:
        """Return both, by the names of their files."""
        return {"agents": self.series(), "agent_counters": self.counters()}

    def rows(self) -> list[tuple[str, str]]:
        """Say what `hopforge net` shows."""
        counts, total = trail_counts(self._state), self._of.agents.counts.sum(axis=0)
        late, sums = self._late()
        means = [
            f"{words} {sums[column] / late[divisor]:.3g}" for words, column, divisor in _MEANS if late[divisor]
        ]  # fmt: skip
        rows = [(
            "agents",
            f"{self._of.parameters.count}: {total[DECISIONS]:,} decisions ({total[RANDOM]:,} random), "
            f"{total[STORED]:,} samples, {total[TRAININGS]:,} training steps",
        )]  # fmt: skip
        if total[RESTARTS]:
            rows.append(("learning begun anew", f"{total[RESTARTS]:,} times"))
        if means:
            rows.append(("at the end", ", ".join(means)))
        for subject, causes in _CAUSES.items():
            rows.append((subject, ", ".join(f"{counts[name]:,} {words}" for name, words in causes.items())))
        rows += self._how_decided(counts)
        if self.diverged:
            rows.append(("STOPPED", self._reason()))
        return rows

    def _how_decided(self, counts: dict[str, int]) -> list[tuple[str, str]]:
        """Say what came of decisions that take time, and of those in whole numbers."""
        rows, parameters, decisions = [], self._of.parameters, max(counts["decisions"], 1)
        if parameters.decision_cycles:
            wait = f"{counts['decision_wait'] / decisions:.1f} more in the agent's queue"
            full = f"{counts['agent_queue_full']:,} packets found it full"
            rows.append(("a decision takes", f"{parameters.decision_cycles} cycles, {wait}; {full}"))
        if parameters.int8:
            agreed = f"{100 * counts['int8_agreed'] / decisions:.2f} % as the float network"
            rows.append(("int8 decisions", f"{agreed}, mean loss {self._of.int8_loss / decisions:.2g} of Q"))
        return rows

    def _late(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return counts and sums of all agents in the last tenth of the time noted."""
        part = self._rows[-max(len(self._rows) // 10, 1) :]
        if not part:
            return np.zeros(COUNTS, np.int64), np.zeros(SUMS)
        return np.sum([c.sum(axis=0) for c, _ in part], axis=0), np.sum([s.sum(axis=0) for _, s in part], axis=0)

    def _reason(self) -> str:
        try:
            self.raise_if_diverged()
        except DivergedError as error:
            return str(error)
        return ""

    def keep(self, folder: Path) -> None:
        """Write `agents.npz`, unless an agent got no numbers."""
        if not self.diverged:
            self.keep_weights(folder / "agents.npz")

    def keep_weights(self, path: Path) -> None:
        """Write the weights of all agents, or their whole state, for `routing.dqn.weights`."""
        parameters = self._of.parameters
        save_agents(path, self._of.agents, parameters.topology, complete=parameters.save_state)
