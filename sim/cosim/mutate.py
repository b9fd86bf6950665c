"""Mutation test of the benches: whether they notice a fault in the hardware.

Many small faults are put into the netlists of the node reduction, the routing cache, the whole engine, a router, what
a network adds to its routers, and others (`mutation_subjects`). The golden traces of the benches are then played to
each (`mutation_race`). A fault that no trace shows, and that is not proved to be without effect at the ports, is a
hole in the stimulus.
"""

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from hopforge.gen.verilog.writer import tool_versions
from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.output.results import check_writable, command_words, staged, write_metadata, write_tables
from hopforge.sim.cosim.mutation_kept import keeper
from hopforge.sim.cosim.mutation_report import BLOCKS, SINGLE_BLOCKS, BlockName, MutationReport, Verdict
from hopforge.sim.cosim.mutation_subjects import subject
from hopforge.sim.cosim.mutation_verdicts import judge
from hopforge.sim.drive.runner import check_simulator
from hopforge.sim.run.kept_results import FINISHED

Progress = Callable[[str, int, int], None]
"""Called with (what is being done, mutants decided, mutants in all)."""

_SHARES = {
    "node_reduction": 1,
    "routing_cache": 1,
    "lookup": 2,
    "router": 1,
    "network_interface": 1,
    "q_table": 1,
    "service_host": 1,
    "rule_cache": 1,
}  # of the mutants; the engine contains the others


def mutate(
    configs: Sequence[Config],
    count: int,
    *,
    blocks: Sequence[BlockName] = BLOCKS,
    seed: int = 1,
    output: Path,
    proof_s: float = 25,
    progress: Progress | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> MutationReport:
    """Put faults into the lookup engines of `configs` and see which of them the benches notice.

    Parameters
    ----------
    configs : sequence of Config
        Each gives an engine; small ones are fast. Their names must differ.
    count : int
        Mutants in all; spread over blocks (the whole engine twice the others) and configurations.
    blocks : sequence of str
        Of `BLOCKS`.
    seed : int
        Of mutants and traces; the same seed gives the same result.
    output : Path
        Folder of everything: ``mutants.csv``, ``blocks.csv``, ``mutation.json``; traces and proofs are kept in it as
        soon as they have ended, and are not done again.
    proof_s : float
        Limit of a proof, in seconds.
    progress : callable, optional
        See `Progress`. A mutant that is decided is also kept.
    tell : callable, optional
        Called with a line about what is kept and is done again; each line once.

    Returns
    -------
    MutationReport

    Raises
    ------
    UserError
        If there are fewer mutants than netlists, the hardware cannot do what a configuration wants, or a tool fails.
    """
    check_simulator("verilator", cocotb=False)
    folder = output
    check_writable(folder)
    begin = time.perf_counter()
    parts = _split(count, [(config, block) for config in configs for block in blocks])
    verdicts: list[Verdict] = []
    told: set[str] = set()

    def once(line: str) -> None:
        if line not in told:
            told.add(line)
            tell(line)

    for config, block, share in parts:
        place = folder / "work" / f"{config.name}_{block}"

        def report(step: str, done: int, before: int = len(verdicts), where: str = f"{config.name} {block}") -> None:
            if progress is not None:
                progress(f"{where}: {step}", before + done, count)

        keep = keeper(
            config, block, count=share, seed=seed, proof_s=proof_s, store=folder / FINISHED, tell=once
        )  # fmt: skip
        verdicts += judge(
            subject(config, block, seed), share, seed, place, config.name, proof_s=proof_s, report=report, keep=keep
        )
    result = MutationReport(tuple(verdicts), seed, time.perf_counter() - begin)
    with staged(folder) as scratch:
        write_tables(scratch, {"mutants": result.table(), "blocks": result.summary()})
        write_metadata(scratch, {
            "command": command_words(),
            "seed": seed, "seconds": round(result.seconds, 1), "configs": [config.name for config in configs],
            "blocks": result.summary().to_dict("records"),
            "survivors": [
                {"config": verdict.config, "block": verdict.block, **verdict.mutant._asdict()}
                for verdict in result.survivors
            ],
            "versions": tool_versions(),
        }, "mutation")  # fmt: skip
    return result


def block_names(name: str) -> tuple[BlockName, ...]:
    """Return the blocks that a name on the command line means.

    Raises
    ------
    UserError
        Listing what is possible.
    """
    if name == "all":
        return BLOCKS
    for block in (*BLOCKS, *SINGLE_BLOCKS):
        if name == block:
            return (block,)
    raise UserError(f"--block must be one of {', '.join((*BLOCKS, *SINGLE_BLOCKS))} or all, not {name!r}")


def sample_seed(seed: int | None, commit: str | None) -> int:
    """Return the seed of a sample: as given, from the hash of a commit, or 1.

    A seed that follows from the commit that froze benches and operators is one that nobody has chosen.

    Raises
    ------
    UserError
        Both, or something that is no hash.

    Examples
    --------
    >>> sample_seed(None, "0000002a5dcb77e21e0c9c3a3f1d9d2b6a7c8e90")
    42
    """
    if commit is None:
        return 1 if seed is None else seed
    if seed is not None:
        raise UserError("--seed and --seed-from-commit exclude each other")
    if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", commit) is None:
        raise UserError(
            f"--seed-from-commit must be the whole hash of a commit (40 or 64 hexadecimal digits), not {commit!r}"
        )
    return int(commit[:8], 16)


def _split(count: int, parts: list[tuple[Config, BlockName]]) -> list[tuple[Config, BlockName, int]]:
    """Deal `count` mutants to the netlists according to their weights; each gets at least one."""
    if count < len(parts):
        raise UserError(f"count must be at least one mutant for each of the {len(parts)} netlists, not {count}")
    weights = np.array([_SHARES[block] for _, block in parts])
    ends = np.rint(np.cumsum(weights) * (count - len(parts)) / weights.sum()).astype(int)
    shares = np.diff(ends, prepend=0) + 1
    return [(config, block, int(share)) for (config, block), share in zip(parts, shares, strict=True)]
