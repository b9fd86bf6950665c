"""What all benches write: a row per case, and the machine it was measured on."""

import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from hopforge.model.output.results import command_words, staged, write_metadata, write_tables

__all__ = ["write_bench"]


def write_bench(
    rows: Sequence[dict[str, Any]],
    folder: Path,
    *,
    clock: str,
    plot: Callable[[pd.DataFrame, Path], None] | None = None,
    **more: Any,
) -> None:
    """Write ``bench.csv``, ``bench.parquet``, ``metadata.json`` and a plot if there is one, all or nothing.

    Parameters
    ----------
    rows : sequence of dict
        A row per case.
    folder : Path
        Where.
    clock : str
        What the seconds are.
    plot : callable, optional
        Called with the table and the folder to draw into.
    **more
        Further metadata.

    Raises
    ------
    ResultError
        The folder cannot be written.
    """
    table = pd.DataFrame(rows)
    with staged(folder) as scratch:
        write_tables(scratch, {"bench": table})
        if plot is not None:
            plot(table, scratch)
        write_metadata(scratch, {
            "command": command_words(),
            "machine": platform.machine(), "processor": platform.processor(), "system": platform.system(),
            "python": platform.python_version(), **more, "clock": clock,
        })  # fmt: skip
