"""Commands that write Verilog and check its style."""

from pathlib import Path
from typing import Annotated

import typer

from hopforge.commands.configuration import read, say_missing, say_unused
from hopforge.commands.terminal import ConfigPath, output_folder, progress_bar, working


def _generate(part: str, config: Path, output: Path | None, period_ns: float | None, **options: int) -> None:
    """Write a part with the options of its command, and say where."""
    from hopforge.gen.packages.parts import generate_part

    command = f"gen {part.replace('_', '-')}"
    checked, folder = read(config, command), output_folder(output, command, config)
    with working():
        paths = generate_part(checked, part, folder, period_ns=period_ns, **options)
    for path in paths:
        typer.echo(str(path))
    if part == "rule_cache":
        say_missing(config, checked, part)
    say_unused(checked, command)


def gen_lookup(
    config: ConfigPath,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the files (default: build/NAME/gen/lookup).")
    ] = None,
    period_ns: Annotated[
        float | None, typer.Option("--period-ns", help="Clock period in the constraints (default 1).")
    ] = None,
) -> None:
    """Write the lookup engine: Verilog, lint waivers, constraints, FuseSoC core, manifest, register documentation.

    The same configuration and tools give the same bytes.

    Example:

    hopforge gen lookup configs/demo.yml
    """
    _generate("lookup", config, output, period_ns)


def gen_router(
    config: ConfigPath,
    *,
    router: Annotated[int, typer.Option("--router", min=0, help="Number of the router in the network.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the files (default: build/NAME/gen/router).")
    ] = None,
    period_ns: Annotated[
        float | None, typer.Option("--period-ns", help="Clock period in the constraints (default 1.5).")
    ] = None,
) -> None:
    """Write a router of the network with its registers: the same files as for the lookup engine.

    Routes come from a table or from a lookup engine per input port (router.route_computation); with engines the files
    include the TCAM contents and the register writes that make the router work (docs/guides/generate-a-router.md).

    Example:

    hopforge gen router configs/router_lookup.yml --router 5
    """
    _generate("router", config, output, period_ns, router=router)


def gen_network(
    config: ConfigPath,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the files (default: build/NAME/gen/network).")
    ] = None,
    period_ns: Annotated[
        float | None, typer.Option("--period-ns", help="Clock period in the constraints (default 1.5).")
    ] = None,
) -> None:
    """Write the whole network, routers and links, with one register bus: the same files as for a router.

    Meant for small networks: their Verilog is simulated and prototyped as one design (guides/generate-a-router.md).

    Example:

    hopforge gen network configs/cosim/mesh2x2.yml
    """
    _generate("network", config, output, period_ns)


def gen_q_table(
    config: ConfigPath,
    *,
    shared_read: Annotated[
        bool, typer.Option("--shared-read", help="One memory: an update waits while there is a query.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the files (default: build/NAME/gen/q-table).")
    ] = None,
    period_ns: Annotated[
        float | None, typer.Option("--period-ns", help="Clock period in the constraints (default 1.3).")
    ] = None,
) -> None:
    """Write the table of Q-adaptive of a dragonfly router: decisions by learned times, and their learning.

    Rates, thresholds and bits of a learned time are those of section `routing` (docs/definitions/q-table.md).

    Example:

    hopforge gen q-table configs/q_table72.yml
    """
    _generate("q_table", config, output, period_ns, shared_read=shared_read)


def gen_collectives(
    config: ConfigPath,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the files (default: build/NAME/gen/collectives).")
    ] = None,
    period_ns: Annotated[
        float | None, typer.Option("--period-ns", help="Clock period in the constraints (default 1.5).")
    ] = None,
) -> None:
    """Write the collective plane: units beside all routers that combine and copy words of groups, and their links.

    Section `collective_plane` says groups, width and buffers (docs/definitions/network-collectives.md); the files
    include what software writes so that units know the trees.

    Example:

    hopforge gen collectives configs/collective_plane.yml
    """
    _generate("collectives", config, output, period_ns)


def gen_rule_cache(
    config: ConfigPath,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the files (default: build/NAME/gen/rule-cache).")
    ] = None,
    period_ns: Annotated[
        float | None, typer.Option("--period-ns", help="Clock period in the constraints (default 1.5).")
    ] = None,
) -> None:
    """Write a cache before a TCAM of prefix rules: forwarding by longest prefix, rules that change among lookups.

    Section `rule_cache` says policy and sizes (docs/definitions/rule-caches.md).

    Example:

    hopforge gen rule-cache configs/rule_cache.yml
    """
    _generate("rule_cache", config, output, period_ns)


def gen_tables(
    config: ConfigPath,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the files (default: build/NAME/gen/tables).")
    ] = None,
) -> None:
    """Write the routing tables of every switch (section `tables`) as memory images: TCAM rows, entries, virtual layers.

    A $readmemh file of each kind per switch, and a manifest that says what is where (definitions/routing-tables.md).

    Example:

    hopforge gen tables configs/loren64.yml
    """
    from hopforge.gen.packages.tables import generate_tables

    checked, folder = read(config, "gen tables"), output_folder(output, "gen tables", config)
    with progress_bar("switches") as advance:
        paths = generate_tables(checked, folder, advance)
    typer.echo(f"{paths[-1]}\n{len(paths) - 1} files beside it")
    say_unused(checked, "gen tables")


def lint(
    config: ConfigPath,
    *,
    what: Annotated[
        str | None,
        typer.Option("--what", help="lookup, router, network, q_table, collectives, rule_cache (default: first two)."),
    ] = None,
    router: Annotated[int, typer.Option("--router", min=0, help="Number of the router in the network.")] = 0,
) -> None:
    """Check generated Verilog with Verilator (-Wall) and slang: engine, router, network, table, plane, rule cache.

    Exit status 1 on a finding. What is waived is counted and comes with its reason. Without slang (package pyslang)
    only Verilator looks; that is said.

    Example:

    hopforge lint configs/demo.yml --what lookup
    """
    from hopforge.gen.packages.lint_config import lint_config
    from hopforge.gen.verilog.lint import WAIVERS

    findings, checked = 0, read(config, "lint")
    reports = lint_config(checked, what, router=router)
    while True:
        with working():
            name, report = next(reports, ("", None))
        if report is None:
            break
        typer.echo(f"{name}: {len(report.findings)} findings")
        for rule, count in sorted(report.waived.items()):
            typer.echo(f"  waived {rule} ({count}): {WAIVERS[rule]}")
        for finding in report.findings:
            typer.echo(f"  {finding}")
        findings += len(report.findings)
        if report.missing:
            typer.echo(f"hopforge: {name}: not checked with slang, which is missing: {report.missing}", err=True)
    sections = {"collectives": ("collective_plane",), "network": ("failed", "degraded"), "rule_cache": ("rule_cache",)}
    say_unused(checked, "lint", sections.get(what or "", ()))
    if findings:
        raise typer.Exit(1)
