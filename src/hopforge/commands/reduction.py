"""The command about node reduction by Handle and getTag."""

from pathlib import Path
from typing import Annotated

import typer

from hopforge.commands.terminal import output_folder, progress_bar, say_written, show_rows, show_table


def reduction(
    function: Annotated[
        Path, typer.Argument(metavar="FUNCTION", help="YAML file with a network (kind, k) and a function.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/NAME/reduction).")
    ] = None,
) -> None:
    """Check a node reduction given as Handle and getTag: its tags, entries of a cache, whether its ports are right.

    Computes the tag of every destination at every switch of a mesh, torus, HyperX or fat tree. The most tags on one
    switch are the entries of a cache that always hits. Exit status 1: two destinations of a switch have the same tag
    and different ports; they are shown (docs/definitions/handle-tag.md).

    Example:

    hopforge reduction configs/reductions/torus.yml
    """
    from hopforge.model.output.results import check_writable
    from hopforge.sim.hits.reduction_check import ReductionCheck

    target = output_folder(output, "reduction", function)
    found = ReductionCheck(function)
    check_writable(target)
    with progress_bar(found.unit) as advance:
        result = found.run(advance)
    found.write(target)
    show_rows(found.rows())
    show_table(found.lines(), left=2)
    say_written(target)
    if not result.ok:
        raise typer.Exit(1)
