"""The examples that come with hopforge, as a folder of one's own: guides and help name them ``configs/…``."""

import os
import shutil
import tempfile
from importlib import resources
from pathlib import Path

from hopforge.model.errors import UserError
from hopforge.model.output.destination import made

#: what `hopforge init` calls them, and the folder that all pages name
WORD, FOLDER = "examples", Path("configs")


def write_examples(target: Path) -> int:
    """Copy all examples to a new folder; what stands at `target` already is never touched.

    Parameters
    ----------
    target : Path
        Where; folders above it are made.

    Returns
    -------
    int
        Number of files.

    Raises
    ------
    UserError
        There is something of that name already, or they cannot be written.
    """
    if os.path.lexists(target):
        raise UserError(f"{target} is there already; name another folder with --output")
    shipped = Path(str(resources.files("hopforge").joinpath("configs")))
    try:
        with made(target.parent), tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
            part = Path(folder) / "configs"
            shutil.copytree(shipped, part, ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copyfile)
            part.rename(target)
    except OSError as error:
        why = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror  # of several files: the first
        raise UserError(f"{target}: cannot be written: {why}") from error
    return sum(path.is_file() for path in target.rglob("*"))
