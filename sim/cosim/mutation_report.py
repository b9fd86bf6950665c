"""What became of mutants: verdicts, the scores of the blocks, survivors in words."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from hopforge.gen.mutation.mutate import Mutant

BlockName = Literal[
    "node_reduction", "routing_cache", "lookup", "router", "network_interface", "q_table", "service_host",
    "rule_cache",
]  # fmt: skip
BLOCKS: tuple[BlockName, ...] = ("node_reduction", "routing_cache", "lookup")
"""The lookup engine and its blocks; the others are mutated each for itself."""
ROUTER: BlockName = "router"
INTERFACE: BlockName = "network_interface"
Q_TABLE: BlockName = "q_table"
SERVICE_HOST: BlockName = "service_host"
RULE_CACHE: BlockName = "rule_cache"
SINGLE_BLOCKS = (ROUTER, INTERFACE, Q_TABLE, SERVICE_HOST, RULE_CACHE)

State = Literal["killed", "equivalent", "survived"]

ENOUGH = 0.95
"""Share of the mutants with an effect that a good bench kills."""


class Verdict(NamedTuple):
    """What became of one mutant.

    Attributes
    ----------
    config, block : str
        Which netlist.
    mutant : Mutant
        The fault.
    state : str
        ``killed``, ``equivalent`` (proved) or ``survived``.
    trace : int
        Trace that killed it, from 1; 0: none.
    cycle : int
        First cycle of that trace with a difference; -1: the simulation did not end.
    signal : str
        Port that differed there.
    """

    config: str
    block: BlockName
    mutant: Mutant
    state: State
    trace: int = 0
    cycle: int = 0
    signal: str = ""


class MutationReport(NamedTuple):
    """Everything that was found.

    Attributes
    ----------
    verdicts : tuple of Verdict
        One for each mutant.
    seed : int
        Of mutants and traces.
    seconds : float
        Wall-clock time.
    """

    verdicts: tuple[Verdict, ...]
    seed: int
    seconds: float

    @property
    def survivors(self) -> list[Verdict]:
        """Mutants that nothing noticed and that are not proved equivalent."""
        return [verdict for verdict in self.verdicts if verdict.state == "survived"]

    def summary(self) -> pd.DataFrame:
        """Return one row per block and one for all: mutants, killed, equivalent, survived, score.

        The score is killed / (mutants - equivalent); NaN without any mutant that has an effect.
        """
        rows = []
        for name in (*BLOCKS, *SINGLE_BLOCKS, "all"):
            states = [verdict.state for verdict in self.verdicts if name in {verdict.block, "all"}]
            if not states:
                continue
            killed, equivalent = states.count("killed"), states.count("equivalent")
            different = len(states) - equivalent
            rows.append({
                "block": name, "mutants": len(states), "killed": killed, "equivalent": equivalent,
                "survived": different - killed, "score": killed / different if different else float("nan"),
            })  # fmt: skip
        return pd.DataFrame(rows)

    def table(self) -> pd.DataFrame:
        """Return one row per mutant."""
        return pd.DataFrame(
            [
                {
                    "config": verdict.config, "block": verdict.block,
                    **{name: word for name, word in verdict.mutant._asdict().items() if name != "command"},
                    **{name: getattr(verdict, name) for name in ("state", "trace", "cycle", "signal")},
                }
                for verdict in self.verdicts
            ]
        )  # fmt: skip


def enough(report: MutationReport) -> bool:
    """Return whether the share of killed mutants among all that have an effect is at least `ENOUGH`."""
    score = float(report.summary()["score"].iloc[-1])
    return not score < ENOUGH


def report_rows(report: MutationReport) -> Iterator[tuple[str, ...]]:
    """Yield the rows of `MutationReport.summary` as words."""
    for row in report.summary().to_dict("records"):
        score = "-" if np.isnan(row["score"]) else f"{100 * row['score']:.1f} %"
        yield (row["block"], *(str(row[name]) for name in ("mutants", "killed", "equivalent", "survived")), score)


def survivor_lines(report: MutationReport) -> Iterator[str]:
    """Yield a line for every survivor: where it is and what it does."""
    for verdict in report.survivors:
        mutant = verdict.mutant
        place = f"{mutant.cell}.{mutant.port}[{mutant.bit}]" + (f" ({mutant.wire})" if mutant.wire else "")
        where = f"{verdict.config} {verdict.block} {mutant.number}"
        yield f"survived: {where}: {mutant.mode} {place} {mutant.source}".rstrip()
