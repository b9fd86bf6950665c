"""The command about links of several wavelengths."""

from pathlib import Path
from typing import Annotated

import typer

from hopforge.commands.configuration import read, say_unused
from hopforge.commands.terminal import (
    ConfigPath,
    output_folder,
    progress_bar,
    say_written,
    show_rows,
    show_table,
)


def wavelengths(
    config: ConfigPath,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the results (default: build/NAME/wavelengths).")
    ] = None,
) -> None:
    """Compare links of several wavelengths: one lookup engine for the link, or one for each wavelength.

    The packets of every input port of the network (section `workload`), or those of a file, go over the wavelengths by
    the rules of section `wavelengths`. Shows rate, hit rate, area and power, and for each rate of a link the cheapest
    arrangement that keeps up (docs/definitions/wavelengths.md).

    Example:

    hopforge wavelengths configs/wavelengths.yml
    """
    from hopforge.model.output.results import check_writable
    from hopforge.sim.hits.wavelengths import Wavelengths
    from hopforge.sim.start.preparation import prepare

    checked = read(config, "wavelengths")
    target = output_folder(output, "wavelengths", config)
    check_writable(target)
    found = Wavelengths(checked, prepare("wavelengths", checked))
    with progress_bar(found.unit) as advance:
        found.run(advance)
    found.write(target)
    show_rows(found.rows())
    show_table(found.lines(), left=3)
    show_table(found.cheapest_lines())
    say_unused(checked, "wavelengths")
    say_written(target)
