"""Command line of hopforge: puts the commands together, and turns a user's mistake into one line."""

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from itertools import pairwise, takewhile
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from hopforge import __version__, interrupts
from hopforge.commands import (
    applications,
    bench,
    boards,
    gate_energy,
    generate,
    imports,
    jobs,
    networks,
    papers,
    reduction,
    report,
    rules,
    simulate,
    start,
    synthesize,
    verify,
    wavelengths,
)
from hopforge.commands.terminal import complain, with_force
from hopforge.model.errors import UserError, error_words
from hopforge.model.free_memory import limited_memory, out_of_memory

#: what the library of the command line raises; older ones take it from click, newer ones bring their own
_WRONG_WORDS: type[Exception] = next(one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException")  # type: ignore[assignment]


class Program(TyperGroup):
    """The words after ``hopforge``; what is wrong with them is one line, too."""

    def make_context(self, info_name: str | None, args: list[str], *others: Any, **options: Any) -> Any:
        """Read what stands before the command."""
        if not options.get("resilient_parsing"):  # as completion reads
            _refuse_empty(args)
        with _one_line():
            return super().make_context(info_name, args, *others, **options)

    def invoke(self, ctx: Any) -> Any:
        """Read the rest and run the command."""
        with _one_line():
            return super().invoke(ctx)


def _not_this(error: Exception) -> str:
    """Name the value, which newer libraries of the command line leave out: their reason is pydantic's."""
    wrong: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    return f", not {str(wrong[0]['input'])[:40]}" if wrong else ""


def _refuse_empty(words: list[str]) -> None:
    """Refuse an empty word, as of a variable of the shell that is not set: as a path, it would be this folder.

    What stands behind ``--`` is for a program of the user's.
    """
    for before, word in pairwise(["hopforge", *takewhile(lambda word: word != "--", words)]):
        if not word or (word.startswith("--") and word.find("=") == len(word) - 1):
            raise UserError(f"an empty word after {word or before}; give a value or leave it out (see hopforge --help)")


@contextlib.contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except _WRONG_WORDS as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # shows the help
            raise
        context = getattr(error, "ctx", None)
        words = "hopforge" if context is None else context.command_path
        message = " ".join(error.format_message().split())  # type: ignore[attr-defined]
        raise UserError(f"{message}{_not_this(error)} (see {words} --help)") from error


app = typer.Typer(
    name="hopforge",
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with **hopforge doctor** and **hopforge demo**; each command tells more with --help.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hopforge {__version__}")
        raise typer.Exit


@app.callback()
def hopforge(
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error came from (also: HOPFORGE_TRACEBACK=1).")
    ] = False,
) -> None:
    """Switches and routing of high-performance networks, from one YAML file.

    The file describes a switch and the network that it is built into (see configs/ and
    docs/definitions/configuration.md). From it come Verilog of the lookup path with its routing cache, a co-simulation
    that checks the Verilog cycle by cycle, and the hit rates of the caches when a workload runs over the whole network.
    """
    if debug:
        os.environ["HOPFORGE_TRACEBACK"] = "1"
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # without a home it tells where its fonts are


PANELS = {
    "Start here": (start.doctor, start.demo, start.init, start.check, start.explain, start.schema),
    "From gates": (
        verify.cosim,
        generate.lint,
        verify.mutate,
        synthesize.synth,
        gate_energy.energy,
        synthesize.timing,
        verify.prove,
    ),
    "To networks": (
        simulate.hits,
        rules.rules,
        reduction.reduction,
        wavelengths.wavelengths,
        networks.topology,
        networks.bounds,
        networks.route,
        simulate.net,
        simulate.series,
        simulate.sweep,
        simulate.trace,
    ),
    "To programs": (applications.app, applications.workload, applications.collectives, jobs.jobs),
    "To read": (report.report, report.view, report.compare),
    "Against the papers": (papers.reproduce,),
}
"""Heading in the help -> commands, in their order."""

for panel, commands in PANELS.items():
    for command in commands:
        words = applications.AppCommand if command is applications.app else None
        # init never overwrites
        app.command(rich_help_panel=panel, cls=words)(command if command is start.init else with_force(command))

gen_app = typer.Typer(no_args_is_help=True, help="Write Verilog and what goes with it.")
app.add_typer(gen_app, name="gen", rich_help_panel="From gates")
gen_app.command("lookup")(with_force(generate.gen_lookup))
gen_app.command("router")(with_force(generate.gen_router))
gen_app.command("network")(with_force(generate.gen_network))
gen_app.command("tables")(with_force(generate.gen_tables))
gen_app.command("q-table")(with_force(generate.gen_q_table))
gen_app.command("collectives")(with_force(generate.gen_collectives))
gen_app.command("rule-cache")(with_force(generate.gen_rule_cache))

fpga_app = typer.Typer(cls=boards.BoardCommands, no_args_is_help=True)
app.add_typer(fpga_app, name="fpga", rich_help_panel="From gates")
fpga_app.callback()(boards.fpga)
fpga_app.command("build")(with_force(boards.build))
fpga_app.command("run")(with_force(boards.run))

import_app = typer.Typer(no_args_is_help=True, help="Translate configurations of other simulators.")
app.add_typer(import_app, name="import", rich_help_panel="To networks")
import_app.command("booksim")(with_force(imports.import_booksim))
import_app.command("sst")(with_force(imports.import_sst))

bench_app = typer.Typer(no_args_is_help=True, help="Measure the speed of hopforge on this machine.")
app.add_typer(bench_app, name="bench", rich_help_panel="To networks")
bench_app.command("lookup")(with_force(bench.bench_lookup))
bench_app.command("dqn")(with_force(bench.bench_dqn))
bench_app.command("net")(with_force(bench.bench_net))
bench_app.command("route")(with_force(bench.bench_route))
bench_app.command("app")(with_force(bench.bench_app))
bench_app.command("flow")(with_force(bench.bench_flow))
bench_app.command("routing")(with_force(bench.bench_routing))


def _words(error: UserError | OSError | MemoryError) -> str:
    """Return what to tell about an error: no class and no number, but file and line where they are known."""
    if isinstance(error, MemoryError):
        return out_of_memory()
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return f"{error.filename}: {reason}" if error.filename else reason
    from hopforge.model.config.load import with_place

    return with_place(str(error))


def _interrupted(error: BaseException | None) -> bool:
    """Tell whether Ctrl-C is behind the error: a library may make one of its own of it, as pydantic's schemas do."""
    while error is not None:
        if interrupts.received() or isinstance(error, KeyboardInterrupt) or "KeyboardInterrupt" in error_words(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def main() -> NoReturn:
    """Run the command line.

    Exit status 0: done; 1: a check or a run failed, or an error of hopforge itself; 2: a user's mistake, a missing tool
    or a file that cannot be read or written; 128 and its number: ended by a signal (130: Ctrl-C; 143: SIGTERM).
    """
    with interrupts.raised(), limited_memory():
        try:
            app(prog_name="hopforge")  # also of python -m hopforge: completion is looked up under this name
        except SystemExit as error:
            if error.code == 130 or (error.code and interrupts.received()):
                _end_interrupted()
            raise
        except KeyboardInterrupt:
            _end_interrupted()
        except (UserError, OSError, MemoryError) as error:
            if os.environ.get("HOPFORGE_TRACEBACK"):
                raise
            if interrupts.received():
                _end_interrupted()
            complain(_words(error))
            sys.exit(getattr(error, "exit_status", 2))
        except Exception as error:
            if _interrupted(error):
                _end_interrupted()
            if os.environ.get("HOPFORGE_TRACEBACK"):
                raise
            complain(
                f"error in hopforge itself: {type(error).__name__}: {error}; please report it (--debug shows where)"
            )
            sys.exit(1)
        sys.exit(0)


def _end_interrupted() -> NoReturn:
    interrupts.ignore()
    with contextlib.suppress(OSError):  # the terminal may be gone
        complain(interrupts.words())
    sys.exit(interrupts.exit_status())
