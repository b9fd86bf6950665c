"""A first configuration of one's own: a commented YAML file for a kind of network."""

import os
import re
from importlib import resources
from pathlib import Path

from hopforge.model.config.base import suggestion
from hopforge.model.config.root import NAME
from hopforge.model.config.source import plain_value
from hopforge.model.errors import UserError
from hopforge.model.output.destination import one_file

_FOLDER = ("configs", "init")
#: kinds whose network is read from a file of the user's, and what stands in the shipped one
_FROM_FILE = {"edge_list": "network.txt"}


def kinds() -> list[str]:
    """Kinds of networks for which there is a file."""
    folder = resources.files("hopforge").joinpath(*_FOLDER)
    return sorted(entry.name.removesuffix(".yml") for entry in folder.iterdir() if entry.name.endswith(".yml"))


def new_file(kind: str, target: Path, network: Path | None = None) -> None:
    """Write the file for a kind of network; what stands at `target` already is never overwritten.

    Parameters
    ----------
    kind : str
        One of `kinds`.
    target : Path
        Where; without its ending it is the name in the file, if it can be one.
    network : Path, optional
        File with the network, for kinds that are read from one.

    Raises
    ------
    UserError
        An unknown kind; a file is there already; a network where none is read, or none where one is.
    OSError
        It cannot be written.
    """
    if kind not in kinds():
        raise UserError(f"KIND: no network {kind!r}; {suggestion(kind, kinds())}")
    if (network is None) == (kind in _FROM_FILE):
        missing = f"missing; the network of {kind} is read from a file"
        raise UserError(f"--file: {missing if network is None else f'{kind} reads no file'}")
    if network is not None and not network.is_file():
        raise UserError(f"--file: no file {network}")
    if target.exists() or target.is_symlink():
        raise UserError(f"{target} is there already; name another file with --output")
    text = resources.files("hopforge").joinpath(*_FOLDER, f"{kind}.yml").read_text(encoding="utf-8")
    if _is_name(target.stem):
        text = text.replace(f"\nname: {kind}\n", f"\nname: {target.stem}\n")
    text = text.replace("FILE", target.name)
    if network is not None:
        text = text.replace(f"file: {_FROM_FILE[kind]} ", f"file: {_as_seen_from(target.parent, network)} ")
    with one_file(target) as part:
        part.write_text(text, encoding="utf-8")


def _is_name(text: str) -> bool:
    """Tell whether a text can be key `name` as it stands: YAML reads ``null`` and ``true`` as something else."""
    return re.fullmatch(NAME, text) is not None and isinstance(plain_value(text), str)


def _as_seen_from(folder: Path, file: Path) -> str:
    """Return the path as a configuration in `folder` names it, quoted for YAML."""
    path = os.path.relpath(file.resolve(), folder.resolve())
    return "'" + path.replace("'", "''") + "'"
