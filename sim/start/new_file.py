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
from hopforge.sim.start.examples import WORD

_FOLDER = ("configs", "init")
#: kinds whose network is read from a file, and the shipped one
_FROM_FILE = {"edge_list": "network.txt"}

#: other names of the field, and the kind whose file is written for each
SYNONYMS = {
    "anynet": "edge_list", "aries": "cascade", "banyan": "butterfly", "clique": "fully_connected",
    "complete": "fully_connected", "exanest": "tiers", "flattened_butterfly": "hyperx", "fly": "butterfly",
    "folded_clos": "clos", "full_mesh": "fully_connected", "graph": "edge_list", "grid": "mesh", "hamming": "hyperx",
    "jellyfish": "random_regular", "megafly": "dragonfly_plus", "omega": "butterfly",
    "random": "random_regular", "spine_leaf": "leaf_spine",
}  # fmt: skip


def kinds() -> list[str]:
    """Kinds of networks for which there is a file."""
    folder = resources.files("hopforge").joinpath(*_FOLDER)
    return sorted(entry.name.removesuffix(".yml") for entry in folder.iterdir() if entry.name.endswith(".yml"))


def names() -> list[str]:
    """Return all that `new_file` takes: kinds, and other names for them."""
    return sorted([*kinds(), *SYNONYMS])


def new_file(kind: str, target: Path, network: Path | None = None) -> list[Path]:
    """Write the file for a kind of network; what stands at `target` already is never overwritten.

    Parameters
    ----------
    kind : str
        One of `names`; a dash counts as an underscore, a capital as a small letter.
    target : Path
        Where; without its ending it is the name in the file, if it can be one.
    network : Path, optional
        File with the network, for kinds that are read from one. Without it such a kind gets an example beside
        `target`, whose ending is ``.txt``.

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    UserError
        An unknown kind; a file is there already; a network where none is read.
    OSError
        It cannot be written.
    """
    found = _kind_of(kind)
    if network is not None and found not in _FROM_FILE:
        raise UserError(f"--file: {kind} reads no file")
    if network is not None and not network.is_file():
        raise UserError(f"--file: no file {network}")
    example = target.with_suffix(".txt") if network is None and found in _FROM_FILE else None
    if example == target:
        raise UserError(f"--output: {target} is the name of the example of a network; end it in .yml")
    for path in filter(None, (target, example)):
        if path.exists() or path.is_symlink():
            raise UserError(f"{path} is there already; name another file with --output")
    text = _shipped(f"{found}.yml")
    if _is_name(target.stem):
        text = text.replace(f"\nname: {found}\n", f"\nname: {target.stem}\n")
    text = text.replace("FILE", target.name)
    if example is not None:
        with one_file(example) as part:
            part.write_text(_shipped(_FROM_FILE[found]), encoding="utf-8")
    read = network or example
    if read is not None:
        text = text.replace(f"file: {_FROM_FILE[found]} ", f"file: {_as_seen_from(target.parent, read)} ")
    with one_file(target) as part:
        part.write_text(text, encoding="utf-8")
    return [path for path in (target, example) if path is not None]


def _kind_of(word: str) -> str:
    """Return the kind that a word of the command line names."""
    name = word.lower().replace("-", "_")
    name = SYNONYMS.get(name, name)
    if name not in kinds():
        raise UserError(f"KIND: no network {word!r}; {suggestion(name, [*names(), WORD])}")
    return name


def _shipped(name: str) -> str:
    return resources.files("hopforge").joinpath(*_FOLDER, name).read_text(encoding="utf-8")


def _is_name(text: str) -> bool:
    """Tell whether a text can be key `name` as it stands: YAML reads ``null`` and ``true`` as something else."""
    return re.fullmatch(NAME, text) is not None and isinstance(plain_value(text), str)


def _as_seen_from(folder: Path, file: Path) -> str:
    """Return the path as a configuration in `folder` names it, quoted for YAML."""
    path = os.path.relpath(file.resolve(), folder.resolve())
    return "'" + path.replace("'", "''") + "'"
