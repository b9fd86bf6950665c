"""The command about tables of rules and the caches before them."""

from pathlib import Path
from typing import Annotated

import typer

from hopforge.commands.terminal import output_folder, progress_bar, say_written, show_rows, show_table
from hopforge.model.seeds import MOST_SEED


def rules(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="Routing table (prefix, next hop), or rules as CSV (.csv).")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/NAME/rules).")
    ] = None,
    *,
    policy: Annotated[
        list[str] | None, typer.Option("--policy", metavar="NAME", help="What a miss caches, or several (repeat).")
    ] = None,
    size: Annotated[
        list[int] | None, typer.Option("--size", metavar="N", help="Entries (repeat; default: 64, 256, 1024).")
    ] = None,
    lookups: Annotated[int, typer.Option(metavar="N", help="Lookups.")] = 100_000,
    zipf: Annotated[
        list[float] | None, typer.Option("--zipf", metavar="S", help="Exponent of the flows (repeat; default: 1).")
    ] = None,
    flows: Annotated[int, typer.Option(metavar="N", help="Addresses that are looked up.")] = 65_536,
    updates: Annotated[int, typer.Option(metavar="N", help="Rules that come, go or change meanwhile.")] = 1000,
    invalidation: Annotated[
        str, typer.Option(metavar="NAME", help="What an update removes: overlap, changed, flush, none.")
    ] = "overlap",
    fill: Annotated[int, typer.Option(metavar="N", help="Lookups from a miss to its entry.")] = 1,
    no_guard: Annotated[
        bool, typer.Option("--no-guard", help="Let fills in flight land after an update (wrong on purpose).")
    ] = False,
    overlap_graph: Annotated[
        bool, typer.Option("--overlap-graph", help="Policy cover keeps all rules above that overlap.")
    ] = False,
    ways: Annotated[
        int | None, typer.Option(metavar="N", help="Entries of a set (default: fully associative).")
    ] = None,
    index_bits: Annotated[
        int | None, typer.Option(metavar="N", help="With --ways: highest bits of an address that choose the set.")
    ] = None,
    hops: Annotated[int | None, typer.Option(metavar="N", min=1, max=1 << 20, help="Next hops are 0 to N-1.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=MOST_SEED, help="Of lookups and updates.")] = 1,
) -> None:
    """Measure caches before a table of rules, under lookups and updates: hit rate by size, beside the TCAM alone.

    Policies of cubes: exact, host, mep (prefixes only), uniform, megaflow, naive (wrong on purpose). Policies of
    whole rules: cover, dependent, static-dependent, static-cover, static-mixed. Every hit is compared with what the
    TCAM answers at that moment (docs/definitions/rule-caches.md).

    Example:

    hopforge rules configs/routes.txt --size 16 --size 64
    """
    from hopforge.model.output.results import check_writable
    from hopforge.sim.hits.rule_caches import RuleCaches
    from hopforge.sim.hits.rule_settings import RuleSettings

    defaults = RuleSettings()
    settings = RuleSettings(
        policies=tuple(policy or ()), sizes=tuple(size or defaults.sizes), zipfs=tuple(zipf or defaults.zipfs),
        lookups=lookups, updates=updates, flows=flows, seed=seed, invalidation=invalidation, fill=fill,
        guard=not no_guard, overlap_graph=overlap_graph, ways=ways, index_bits=index_bits,
    )  # fmt: skip
    target = output_folder(output, "rules", table)
    found = RuleCaches(table, settings, hops)
    check_writable(target)
    with progress_bar(found.unit) as advance:
        found.run(advance)
    found.write(target)
    show_rows(found.rows())
    show_table(found.lines())
    say_written(target)
