"""Commands that compare hardware with its golden models and prove it."""

import time
from pathlib import Path
from typing import Annotated

import typer

from hopforge.commands.configuration import read, say_missing, say_unused
from hopforge.commands.terminal import ConfigPath, complain, output_folder, progress_bar, show_rows, step_times
from hopforge.model.errors import UserError
from hopforge.model.seeds import MOST_SEED


def cosim(
    config: ConfigPath,
    *,
    part: Annotated[
        str,
        typer.Option(
            "--part",
            help="lookup (the engine), router, network (all routers), q_table, service_host, collectives or "
            "rule_cache.",
        ),
    ] = "lookup",
    simulator: Annotated[
        str | None, typer.Option(help="icarus (with cocotb) or verilator (fast); default: the configuration's.")
    ] = None,
    lookups: Annotated[
        int | None, typer.Option(min=1, help="lookup, rule_cache: requests; default: the configuration's.")
    ] = None,
    load: Annotated[
        float | None, typer.Option(min=0, max=1, help="network: flits per host and cycle; default: simulation.load.")
    ] = None,
    cycles: Annotated[
        int | None, typer.Option(min=1, help="Other parts: cycles with traffic; default: the configuration's.")
    ] = None,
    variants: Annotated[
        int | None, typer.Option(min=1, help="lookup, router: as many, drawn at random; finished runs are kept.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=MOST_SEED, help="Of the traffic; default: the configuration's.")
    ] = None,
    faults: Annotated[
        int | None, typer.Option(min=1, help="lookup: as many bits of its lines are inverted, one after another.")
    ] = None,
    waves: Annotated[bool, typer.Option("--waves", help="Record all signals (FST or VCD).")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of everything (default: build/NAME/cosim/PART).")
    ] = None,
) -> None:
    """Compare Verilog with its golden model, every output in every cycle. Exit status 1 if anything differs.

    Part lookup: the engine under unfriendly random traffic: idle cycles, back-pressure, flushes, invalidations, TCAM
    writes, changes of the configuration, TCAM answers out of order. Part router: one router, random packets,
    credits that are late or held back. Part network: the configured network and traffic against the network simulator,
    every flit in its cycle, and the counters of all ports at the end. Part q_table: the table of Q-adaptive. Part
    service_host: what takes and sends acknowledges at a router. Part collectives: the units that combine and copy words
    of groups, in the whole network. Part rule_cache: the cache before a TCAM of prefix rules, lookups among changes of
    rules.

    Example:

    hopforge cosim configs/demo.yml --lookups 500
    """
    from hopforge.sim.cosim.parts import check_part, cosim_part
    from hopforge.sim.drive.runner import simulator_name

    check_part(part)
    checked = read(config, f"cosim --part {part}")
    options = {"lookups": lookups, "load": load, "cycles": cycles, "variants": variants, "faults": faults}
    with progress_bar("cycles") as advance:
        report = cosim_part(
            part, checked,
            simulator=None if simulator is None else simulator_name(simulator),
            given={name: value for name, value in options.items() if value is not None},
            seed=seed, waves=waves, output=output_folder(output, f"cosim {part}", config), progress=advance,
        )  # fmt: skip
    show_rows(report.rows())
    if part == "rule_cache":
        say_missing(config, checked, part)
    say_unused(checked, f"cosim --part {part}")
    if not report.passed:
        raise typer.Exit(1)


#: what makes the blocks ready that are no part of an engine
_MUTATED = {
    "router": "cosim --part router", "network_interface": "gen router", "q_table": "cosim --part q_table",
    "service_host": "cosim --part service_host", "rule_cache": "cosim --part rule_cache",
}  # fmt: skip


def mutate(
    configs: Annotated[list[Path], typer.Argument(metavar="CONFIG...", help="YAML files; each gives an engine.")],
    *,
    count: Annotated[int, typer.Option(min=1, help="Mutants in all.")] = 60,
    block: Annotated[
        str,
        typer.Option(
            help="node_reduction, routing_cache, lookup, all of them; router; network_interface; q_table; "
            "service_host; rule_cache."
        ),
    ] = "all",
    seed: Annotated[int | None, typer.Option(min=0, max=MOST_SEED, help="Of mutants and stimulus (default 1).")] = None,
    seed_from_commit: Annotated[
        str | None, typer.Option(metavar="HASH", help="Seed: the first 8 digits of the hash of a commit.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder (default: build/NAME/mutate; of several files build/mutate)."),
    ] = None,
) -> None:
    """Put faults into the hardware and see whether the benches notice them.

    Mutants of the netlists run against the golden traces; those that no trace shows are tried to be proved equivalent.
    Each trace and proof is kept when it has ended, so a test that you stop (Ctrl-C) goes on where it was. Small engines
    are fast: see configs/mutation and docs/guides/mutation.md. Exit status 1 if fewer than 95 % of all mutants with an
    effect are killed.

    Example:

    hopforge mutate configs/mutation/torus.yml --count 20
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.sim.cosim.mutate import block_names, sample_seed
    from hopforge.sim.cosim.mutate import mutate as run_mutate
    from hopforge.sim.cosim.mutation_report import enough, report_rows, survivor_lines

    drawn = sample_seed(seed, seed_from_commit)
    blocks = block_names(block)
    checked = [read(config, _MUTATED.get(block, "mutate")) for config in configs]
    if "rule_cache" in blocks:
        for path, each in zip(configs, checked, strict=True):
            say_missing(path, each, "rule_cache")
    step, decided = "", 0
    folder = output_folder(output, "mutate", configs[0] if len(configs) == 1 else None)
    with step_times() as steps:

        def show(what: str, done: int, total: int) -> None:
            nonlocal step, decided
            decided = done
            if what != step:
                step = what
                steps.begin(what)
            steps.advance(done, total)

        try:
            report = run_mutate(
                checked, count, blocks=blocks, seed=drawn, output=folder, progress=show, tell=complain
            )  # fmt: skip
        except KeyboardInterrupt:
            complain(f"{decided} of {count} mutants are decided and kept in {folder}; the same command goes on")
            raise
    table = Table(box=None, pad_edge=False)
    for number, column in enumerate(("block", "mutants", "killed", "equivalent", "survived", "score")):
        table.add_column(column, justify="right" if number else "left")
    for row in report_rows(report):
        table.add_row(*row)
    console = Console()
    console.print(table)
    for line in survivor_lines(report):
        console.print(line, markup=False, highlight=False)
    for path, each in zip(configs, checked, strict=True):
        say_unused(each, f"mutate --block {block} {path}")
    if not enough(report):
        raise typer.Exit(1)


_NOT_AS_IT_SHOULD_BE = {"FAILED": "failed", "not proved": "without a verdict"}


def prove(
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="[SUBJECT]",
            help="reduction, expression, member, crc, lookup, rule_cache, allocators, flits, q_table, streams, "
            "protection; default: all.",
        ),
    ] = None,
    *,
    wide: Annotated[bool, typer.Option("--wide", help="48-bit addresses instead of 24.")] = False,
    config: Annotated[Path | None, typer.Option(help="Prove the expression of this configuration, no more.")] = None,
) -> None:
    """Prove by SAT, for all inputs, that the hardware is what the specification says.

    Each proof is also run on hardware with a planted fault, where it must fail. A proof that did not end is "not
    proved". Exit status 1 if anything is not as it should be.

    Example:

    hopforge prove crc
    """
    from hopforge.gen.formal.all_proofs import tasks
    from hopforge.gen.tools.yosys import YosysError
    from hopforge.sim.start.preparation import prepare

    if config is not None and (subject is not None or wide):
        raise UserError("--config proves the expression of a file; give no subject and no --wide with it")
    checked = None if config is None else read(config, "prove")
    words: list[str] = []
    for task in tasks(subject, wide=wide) if checked is None else prepare("prove", checked):
        start = time.perf_counter()
        reason = ""
        try:
            word = "proved" if task.run() else "FAILED"
        except YosysError as error:
            word, reason = "not proved", f": {error}"
        words.append(word)
        typer.echo(f"{word} {time.perf_counter() - start:6.1f} s  {task.subject}: {task.name}{reason}")
    counts = [f"{words.count(word)} {says}" for word, says in _NOT_AS_IT_SHOULD_BE.items() if word in words]
    if counts:
        complain(f"of {len(words)} proofs {' and '.join(counts)}")
        raise typer.Exit(1)
    if checked is not None:
        say_unused(checked, "prove")
