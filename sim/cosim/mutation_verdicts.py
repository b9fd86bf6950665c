"""What becomes of the mutants of a netlist: every golden trace is played to them, the rest are tried to be proved."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from hopforge.gen.mutation.mutate import Mutant, Netlist, write_netlist
from hopforge.model.output.destination import clear_folder
from hopforge.sim.cosim.mutation_race import build, play
from hopforge.sim.cosim.mutation_report import Verdict
from hopforge.sim.cosim.mutation_subjects import Subject
from hopforge.sim.drive.replay import Replay
from hopforge.sim.drive.runner import SimulatorError

Keeper = Callable[[str, Callable[[], Any]], Any]
"""Called with the name of a step and what does it: returns its result, or what was kept of an earlier run."""


def judge(
    subject: Subject,
    count: int,
    seed: int,
    folder: Path,
    config: str,
    *,
    proof_s: float = 25,
    report: Callable[[str, int], None] | None = None,
    keep: Keeper | None = None,
) -> list[Verdict]:
    """Draw mutants of a block and find out what becomes of each; see `hopforge.sim.cosim.mutate.mutate`."""
    clear_folder(folder)
    netlist = write_netlist(subject.component, subject.block, folder, spared=subject.spared, reset=subject.reset)
    mutants = netlist.mutants(count, seed)
    return judge_mutants(subject, netlist, mutants, config, proof_s=proof_s, report=report, keep=keep)


def judge_mutants(
    subject: Subject,
    netlist: Netlist,
    mutants: Sequence[Mutant],
    config: str,
    *,
    proof_s: float = 25,
    report: Callable[[str, int], None] | None = None,
    keep: Keeper | None = None,
) -> list[Verdict]:
    """Play every trace to those of `mutants` that no trace before it has killed, then try to prove the rest equivalent.

    Parameters
    ----------
    subject : Subject
        Block and traces.
    netlist : Netlist
        Of its component.
    mutants : sequence of Mutant
        Numbered from 1.
    config : str
        Name of the configuration.
    proof_s : float
        Limit of a proof, in seconds; 0: try none.
    report : callable, optional
        Called with what is being done and how many mutants are decided.
    keep : callable, optional
        Keeps each trace and each proof as soon as it has ended.

    Raises
    ------
    SimulatorError
        If the netlist without a fault differs from the golden model, or cannot be built or run.
    """
    say = report or (lambda _step, _done: None)
    kept = keep or (lambda _step, work: work())
    verdicts: dict[int, Verdict] = {}
    step = "trace 1"
    race = _Race(subject, netlist, mutants, config)
    for trace in range(1, len(subject.replays) + 1):
        left = [mutant.number for mutant in mutants if mutant.number not in verdicts]
        if not left:
            break
        step = f"trace {trace}"
        say(step, len(verdicts))
        for number, cycle, signal in kept(step, partial(race.killed, trace, left)):
            verdicts[number] = Verdict(config, subject.block, mutants[number - 1], "killed", trace, cycle, signal)
    for mutant in mutants:
        if mutant.number not in verdicts:
            step = "proofs"
            say(step, len(verdicts))
            proof = partial(race.is_equivalent, mutant, proof_s)
            same = proof_s > 0 and kept(f"proof of mutant {mutant.number}", proof)
            verdicts[mutant.number] = Verdict(config, subject.block, mutant, "equivalent" if same else "survived")
    say(step, len(verdicts))
    return [verdicts[mutant.number] for mutant in mutants]


class _Race:
    """A netlist with all its mutants, compiled when the first trace is played that is not kept."""

    def __init__(self, subject: Subject, netlist: Netlist, mutants: Sequence[Mutant], config: str) -> None:
        self._subject, self._netlist, self._mutants, self._config = subject, netlist, mutants, config

    @cached_property
    def _first(self) -> Replay:
        return self._subject.replays[0]()

    @cached_property
    def _program(self) -> Path:
        return build(self._netlist, self._mutants, self._first, self._subject.surroundings)

    def killed(self, trace: int, numbers: Sequence[int]) -> list[tuple[int, int, str]]:
        """Play a trace to mutants: number, cycle and port of those that it kills."""
        replay = self._first if trace == 1 else self._subject.replays[trace - 1]()
        counts_from = self._subject.counts_from[trace - 1] if trace <= len(self._subject.counts_from) else None
        found = [*play(self._program, replay, [0, *numbers], counts_from)]
        for number, cycle, signal in found:
            if number == 0:
                where = f"trace {trace}, cycle {cycle}, {signal}"
                raise SimulatorError(f"{self._config} {self._subject.block}: differs without a fault: {where}")
        return found

    def is_equivalent(self, mutant: Mutant, proof_s: float) -> bool:
        """Try to prove that a mutant shows at no output that means something."""
        gates = {output.name: output.gate for output in self._first.outputs if output.gate is not None}
        return self._netlist.has_no_effect(mutant, gates, timeout_s=proof_s)
