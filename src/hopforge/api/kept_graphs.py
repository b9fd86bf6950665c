"""Where graphs that were made in Python lie: a folder of the user's own, so that results can name them later."""

import atexit
import hashlib
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path

from hopforge.model.input_file import remember_input
from hopforge.model.kernel.user_folders import user_folder
from hopforge.model.output.results import write_own

__all__ = ["graph_folder", "keep_graph"]

_NAME = "graph"


@cache
def graph_folder() -> Path:
    """Return the folder of graphs; it outlives the process, unless the user has no folder that can be written."""
    folder = user_folder("graphs")
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="hopforge-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def keep_graph(name: str, text: str) -> Path:
    """Write a graph to a file whose name tells what it holds, so that kept runs of a sweep are found again.

    Parameters
    ----------
    name : str
        Of the network.
    text : str
        Node-link JSON.
    """
    first = name if re.fullmatch(r"[a-z][a-z0-9_]{0,60}", name) else _NAME  # else it is refused as a key
    path = graph_folder() / f"{first}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    if not path.exists() or path.read_bytes() != text.encode():
        write_own(path, text)
    remember_input(path)
    return path
