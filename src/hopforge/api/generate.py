"""Verilog and what goes with it: what `hopforge gen` writes."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hopforge.api.configuration import Configuration, configuration
from hopforge.api.errors import a_number, number_within, yes_or_no
from hopforge.api.result import Call, called, html_rows, refuse_unknown
from hopforge.api.writing import forced
from hopforge.gen.packages.parts import generate_part
from hopforge.gen.packages.tables import generate_tables
from hopforge.model.errors import UserError
from hopforge.model.output.results import staged

__all__ = ["GeneratedFiles", "generate"]


_OPTIONS = {
    "lookup": ("period_ns",), "router": ("period_ns", "router"), "network": ("period_ns",), "tables": (),
    "q-table": ("period_ns", "shared_read"), "collectives": ("period_ns",), "rule-cache": ("period_ns",),
}  # fmt: skip
"""What can be generated → the options that it takes."""


class GeneratedFiles:
    """Files that were generated, in memory; the same bytes as those of the command."""

    def __init__(self, call: Call, files: Mapping[str, bytes]) -> None:
        self._call, self._files = call, MappingProxyType(dict(files))

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled and copied."""
        return {"_call": self._call, "_files": dict(self._files)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._call, self._files = state["_call"], MappingProxyType(state["_files"])

    @property
    def configuration(self) -> Configuration:
        """What they were generated from."""
        return self._call.configuration

    @property
    def files(self) -> Mapping[str, bytes]:
        """Name of a file → what it holds."""
        return self._files

    @property
    def verilog(self) -> str:
        """The Verilog text, without the test bench.

        Raises
        ------
        UserError
            There is none: routing tables are memory images.
        """
        names = [name for name in self._files if name.endswith(".sv") and not name.endswith("_tb.sv")]
        if not names:
            raise UserError(f"no Verilog is among {', '.join(self._files)}")
        return "".join(self._files[name].decode() for name in names)

    def write(self, folder: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write all files, together or not at all.

        Raises
        ------
        UserError
            They cannot be written, or would replace an input or a file of another kind and `force` is false.
        """
        with forced(force), staged(Path(folder)) as scratch:
            for name, content in self._files.items():
                (scratch / name).parent.mkdir(parents=True, exist_ok=True)
                (scratch / name).write_bytes(content)
        return Path(folder)

    def __repr__(self) -> str:
        """List the files."""
        return "\n".join([f"<{self._call.words}>", *(f"{words:>12}  {name}" for name, words in self._rows())])

    def _repr_html_(self) -> str:
        return html_rows(self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        return [(name, f"{len(content):,} bytes") for name, content in self._files.items()]


def generate(
    config: Configuration | str | os.PathLike[str],
    what: str = "lookup",
    *,
    router: int | None = None,
    shared_read: bool | None = None,
    period_ns: float | None = None,
) -> GeneratedFiles:
    """Generate Verilog with constraints, manifest and register documentation, as ``hopforge gen``.

    Parameters
    ----------
    config : Configuration or str or Path
        What is built, or its file.
    what : str
        lookup (the engine), router, network, q-table, collectives, rule-cache, or tables (memory images of routing
        tables).
    router : int, optional
        Number of the router in the network, by default 0; for router only.
    shared_read : bool, optional
        One memory: an update waits while there is a query; for q-table only.
    period_ns : float, optional
        Clock period in the constraints; by default that of the package.

    Returns
    -------
    GeneratedFiles
        `files` by their names, `verilog` the text of the design.

    Raises
    ------
    UserError
        The hardware cannot do what the configuration wants, or an option is not for this part.
    """
    if what not in _OPTIONS:
        refuse_unknown("what", str(what), _OPTIONS)
    given = {
        "router": number_within("router", router, 0), "period_ns": a_number("period_ns", period_ns, float),
        "shared_read": None if shared_read is None else yes_or_no("shared_read", shared_read),
    }  # fmt: skip
    options = {name: value for name, value in given.items() if value is not None}
    for name in options:
        if name not in _OPTIONS[what]:
            parts = " or ".join(part for part, names in _OPTIONS.items() if name in names)
            raise UserError(f"{name} is for {parts} only, not for {what}")
    with (
        called(configuration(config), f"gen {what}", "generate", what=what, **options) as call,
        tempfile.TemporaryDirectory(prefix="hopforge-") as name,
    ):
        folder = Path(name) / "files"
        if what == "tables":
            generate_tables(call.config, folder)
        else:
            generate_part(call.config, what.replace("-", "_"), folder, **options)
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    return GeneratedFiles(call, files)
