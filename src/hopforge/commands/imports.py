"""Commands that translate configurations of other simulators."""

from pathlib import Path
from typing import Annotated

import typer

from hopforge.commands.terminal import output_folder, say_written, show_rows


def import_booksim(
    words: Annotated[
        list[str],
        typer.Argument(metavar="FILE [KEY=VALUE]...", help="Configuration, and parameters that replace its own."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The new YAML file (default: build/NAME/import/booksim/NAME.yml)."
        ),
    ] = None,
    *,
    permutation: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="For traffic randperm: the destination of terminal 0, 1, … that it drew."),
    ] = None,
    vc_by_hop: Annotated[
        bool, typer.Option("--vc-by-hop", help="For anynet: a BookSim whose packets take the VC of their hop.")
    ] = False,
) -> None:
    """Translate a configuration of BookSim 2, with BookSim's defaults, into a YAML file for net and sweep.

    Tells what became of every key: translated, or without effect on results. Exit status 2: a key or value that cannot
    be followed, named with its line. Networks that have no kind of their own are written as a file beside the YAML.

    Example:

    hopforge import booksim configs/booksim/ugal.cfg seed=3 -o mine.yml
    """
    from hopforge.sim.booksim.supplement import Supplement, read_permutation
    from hopforge.sim.booksim.translate import translate

    goals = None if permutation is None else read_permutation(permutation)
    found = translate(words, Supplement(permutation=goals, vc_by_hop=vc_by_hop))
    source = Path(next(word for word in reversed(words) if "=" not in word))
    target = output
    if target is None:
        target = output_folder(None, "import booksim", source) / f"{source.stem}.yml"
    written = found.write(target)
    from hopforge.model.output.destination import is_special

    if is_special(target):
        return  # what comes out of a pipe is the file and nothing else
    show_rows(found.rows())
    for path in written:
        say_written(path)


def import_sst(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `sst --output-json FILE` has written.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The new YAML file (default: build/NAME/import/sst/NAME.yml)."
        ),
    ] = None,
    *,
    packet: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Packet, such as 128B, where the endpoints do not say it.")
    ] = None,
) -> None:
    """Translate a configuration of SST with Merlin, its network, into a YAML file for net and sweep.

    Reads the JSON that SST writes and runs nothing. The network is what the links in the file say: one of our kinds,
    if it has the same links, else a graph beside the YAML. Tells what became of routing, packets and traffic. Exit
    status 2: what cannot be followed, named with its component.

    Example:

    hopforge import sst configs/sst/torus3x3.json -o mine.yml
    """
    from hopforge.model.output.destination import is_special
    from hopforge.sim.merlin.translate import translate

    found = translate(file, packet)
    target = output or output_folder(None, "import sst", file) / f"{file.stem}.yml"
    written = found.write(target)
    if is_special(target):
        return  # what comes out of a pipe is the file and nothing else
    show_rows(found.rows())
    for path in written:
        say_written(path)
