"""Traces and proofs of a mutation test are kept as soon as they have ended: one that was stopped goes on there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hopforge.gen.verilog.writer import tool_versions
from hopforge.model.config import Config
from hopforge.sim.cosim.mutation_report import BlockName
from hopforge.sim.cosim.mutation_verdicts import Keeper
from hopforge.sim.run.kept_results import kept_results
from hopforge.sim.run.wanted_result import Wanted, described, files_read


def keeper(
    config: Config, block: BlockName, *, count: int, seed: int, proof_s: float, store: Path,
    tell: Callable[[str], None],
) -> Keeper:  # fmt: skip
    """Return what keeps the steps of a netlist in a store (`hopforge.sim.run.kept_results`).

    Parameters
    ----------
    config : Config
        What the hardware is made of.
    block : str
        Which netlist.
    count, seed : int
        Mutants of this netlist, and what they and the traces are drawn from.
    proof_s : float
        Limit of a proof, in seconds.
    store : Path
        Folder of the kept steps.
    tell : callable
        Called with a line about steps that are there and are done again.
    """
    parts, files = described(config)
    paths = tuple(files_read(config).values())
    decides = {
        "configuration": parts, "cosim": config.cosim.model_dump(mode="json"), "load": config.simulation.load,
        "block": block, "mutants": count, "seed": seed, "proof_s": proof_s, "versions": tool_versions(),
    }  # fmt: skip

    def keep(step: str, work: Callable[[], Any]) -> Any:
        wanted = Wanted(f"{config.name} {block}: {step}", {**decides, "step": step}, files, paths)
        (found,) = kept_results(
            [wanted], [wanted], lambda _: work(), store, lambda _done, _total: None, tell=tell, unit="steps", workers=1
        )
        return found

    return keep
