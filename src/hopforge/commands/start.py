"""First commands: tools that are here, the demo, checking a configuration, its schema."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from hopforge.commands.complete import complete_key, complete_kind
from hopforge.commands.terminal import ConfigPath, complain, output_folder, show_rows, step_times, working
from hopforge.model.errors import UserError


def doctor() -> None:
    """List the tools and extras that are here, what each is for, how to get what is missing, and what to try next.

    Example:

    hopforge doctor
    """
    from rich.console import Console
    from rich.table import Table

    from hopforge.sim.start.doctor import survey

    findings = survey()
    table = Table("tool", "found", "needed for", box=None, pad_edge=False)
    for finding in findings:
        table.add_row(finding.name, finding.found or "[yellow]missing[/]", finding.purpose)
    console = Console()
    console.print(table)
    missing = [finding for finding in findings if finding.found is None]
    console.print("\nEverything is here." if not missing else "\nOptional parts that are missing, and how to get each:")
    for finding in missing:
        console.print(f"  {finding.name}: {finding.remedy}", markup=False, highlight=False, soft_wrap=True)
    console.print("\nTry next:")
    for command, purpose in NEXT:
        console.print(f"  {command:34}{purpose}", markup=False, highlight=False, soft_wrap=True)


#: what `hopforge doctor` ends with; they run one after the other
NEXT = (
    ("hopforge init torus -o mine.yml", "a network of your own, with comments"),
    ("hopforge net mine.yml --plots", "simulate it: latency, throughput, link loads"),
    ("hopforge view build/mine/net", "see it in your browser"),
)


def demo(
    config: Annotated[
        Path | None, typer.Argument(metavar="[CONFIG]", help="Another configuration than the shipped one.")
    ] = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of everything (default: build/demo; of a file build/NAME/demo)."),
    ] = None,
    skip_cosim: Annotated[bool, typer.Option("--skip-cosim", help="Leave out what needs a simulator.")] = False,
    liberty: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Cell library (.lib, .lib.gz): show areas and delays too.")
    ] = None,
) -> None:
    """Run all of it for one YAML file in less than two minutes: Verilog, co-simulation, hit rates, a report page.

    The shipped configuration is a recorded MPI program (NPB IS) on 64 nodes of a 4x4x4 torus. You get the lookup engine
    twice, with node reduction and with whole addresses as keys. The network runs in the cycle simulator with the cache
    on and off, and a 2x2 network in RTL is compared with that simulator. Exit status 1: the hardware differs from the
    golden model.

    Example:

    hopforge demo --skip-cosim
    """
    from rich.console import Console

    from hopforge.sim.start.demo import demo_config, run_demo

    words = ["hopforge demo", *([str(config)] if config else []), *(["--skip-cosim"] if skip_cosim else [])]
    words += ["--liberty FILE"] if liberty else []
    with step_times() as progress:
        found = run_demo(
            demo_config(config),
            output_folder(output, "demo", config),
            command=" ".join(words),
            cosim=not skip_cosim,
            liberty=liberty,
            progress=progress,
        )
    console = Console(soft_wrap=True, highlight=False)
    for variant in found.variants:
        assert variant.hits is not None
        console.print(f"{variant.label}: {100 * variant.hits.totals['hit_rate']:.3f} % of the lookups hit")
    for subject, result in (*found.network.rows(), *(found.rtl.rows() if found.rtl else [])):
        console.print(f"{subject}: {result}", markup=False)
    console.print(f"open {found.page}", markup=False)
    if found.problems:
        complain("\n".join(found.problems))
        raise typer.Exit(1)


def check(
    config: ConfigPath,
    quick: Annotated[
        bool, typer.Option("--quick", help="Check keys and limits only; prepare no command and no network.")
    ] = False,
    command: Annotated[
        str | None, typer.Option("--for", metavar="COMMAND", help='Prepare this one only: net, "gen router", …')
    ] = None,
) -> None:
    """Summarise a configuration: for which commands it is good and why not for others; errors with file, line and key.

    Prepares each command that the file asks for as the command itself does: network, routing and its proof, tables,
    workload, parameters of the hardware. Exit status 2: the file is wrong, or none of the commands that use one of its
    sections takes it; with --for: it is no good for that command.

    Example:

    hopforge check configs/demo.yml
    """
    from hopforge.model.config import load_config

    checked = load_config(config, keys=False)
    if quick:
        if command is not None:
            raise typer.BadParameter("--quick prepares nothing; leave it out with --for")
        from hopforge.sim.start.key_summary import summarize_keys

        show_rows(summarize_keys(checked))
        return
    from hopforge.commands.configuration import say_unused
    from hopforge.model.progress import tell
    from hopforge.model.shared import sharing
    from hopforge.sim.start.checks import check_commands, check_for, useless_lines, useless_sections, verdict_rows

    if command is not None:
        with working():
            used, routing = check_for(command, checked)
        show_rows([("name", used.name), *([("routing", routing)] if routing else []), ("good for", command)])
        say_unused(used, command)
        return
    from hopforge.sim.start.preparation import for_command
    from hopforge.sim.start.summary import summarize

    with working(), sharing():  # the summary tells of the network and the tables that the commands had
        verdicts = check_commands(checked, lambda name: tell(f"preparing {name}"))
        routed = any(verdict.command == "route" and verdict.good for verdict in verdicts)
        rows = summarize(for_command("topology", checked), tables=routed)
    show_rows([*rows, *verdict_rows(checked, verdicts)])
    useless = useless_sections(checked, verdicts)
    if useless:
        complain("\n".join(useless_lines(useless)))
        raise typer.Exit(2)


def init(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="Of the network: torus, fat_tree, dragonfly, graph, …; examples: the folder configs/ of all pages.",
            autocompletion=complete_kind,
        ),
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The new file (default: KIND.yml; of examples: configs)."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Of a graph (default: an example is written).")
    ] = None,
) -> None:
    """Write a commented YAML file for a kind of network, to begin with; nothing is ever overwritten.

    Example:

    hopforge init torus -o mine.yml
    """
    from hopforge.sim.start.examples import FOLDER, WORD, write_examples
    from hopforge.sim.start.new_file import new_file

    if kind == WORD:
        if file is not None:
            raise UserError(f"--file: {WORD} reads no file")
        folder = output if output is not None else FOLDER
        first = shlex.quote(str(folder / "net_anynet.yml"))
        typer.echo(f"wrote {write_examples(folder)} files to {folder}; next: hopforge net {first}")
        return
    target = output if output is not None else Path(f"{kind}.yml")
    written = new_file(kind, target, file)
    typer.echo(f"wrote {' and '.join(map(str, written))}; next: hopforge net {shlex.quote(str(target))}")


def explain(
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="[KEY]", help="With dots, as messages name it; without: all sections.", autocompletion=complete_key
        ),
    ] = None,
) -> None:
    """Show what a key of a configuration does, its limits and its default; of a section, what keys it has.

    Example:

    hopforge explain router.vcs
    """
    from hopforge.model.config.reference import all_keys, key_help

    for found in [all_keys()] if key is None else key_help(key):
        if key is not None:
            default = {"required": "; required", "see below": ""}.get(found.default, f"; default: {found.default}")
            of = f", kind {', '.join(found.kinds)}" if found.kinds else ""
            typer.echo(f"{found.path}{of} ({found.value}{default})".replace("`", ""))
        typer.echo(f"  {found.meaning.replace('`', '')}" if found.meaning else "")
        if found.keys:
            show_rows([(each.path, each.meaning.replace("`", "")) for each in found.keys])


def schema(
    markdown: Annotated[
        bool, typer.Option("--markdown", help="The page of every key instead (docs/definitions/configuration.md).")
    ] = False,
) -> None:
    """Print the JSON schema of a configuration, for editors that complete and check YAML.

    Example:

    hopforge schema > hopforge.schema.json
    """
    from hopforge.model.config import reference

    typer.echo(reference.markdown() if markdown else reference.json_schema(), nl=False)
