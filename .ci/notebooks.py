"""Run the notebooks of docs/notebooks and keep their outputs: without times, counts of cells and paths of a machine."""

import base64
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib.font_manager  # noqa: F401 - makes its list of fonts: a kernel would say in a cell that it does
import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

sys.path.insert(0, str(Path(__file__).parent))
from small_picture import small

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "notebooks"
#: most seconds of a cell, of the start of a kernel, and of what a cell has printed on its way
LIMIT_S = 600
#: what is kept of an output, in this order; the first that is there is enough
_KINDS = ("image/png", "text/html", "text/plain")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_HEXADECIMAL = re.compile(r"\b0x[0-9a-f]{6,}\b")


def run(path: Path) -> Any:
    """Return a notebook with the outputs of a fresh run in an empty folder, however busy the machine is.

    nbclient by itself leaves out what has not come 4 s after the end of a cell, and free ports of TCP may be taken by
    somebody else before the kernel does.
    """
    notebook: Any = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as sockets:
        os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # the debugger of Jupyter is not used
        own = {"transport": "ipc", "ip": f"{sockets}/s", "connection_file": f"{sockets}/kernel.json"}
        NotebookClient(
            notebook, kernel_name="python3", resources={"metadata": {"path": folder}}, timeout=LIMIT_S,
            startup_timeout=LIMIT_S, iopub_timeout=LIMIT_S, raise_on_iopub_timeout=True,
            config=Config(KernelManager=own),
        ).execute()  # fmt: skip
        for cell in notebook.cells:
            _clean(cell, folder)
    return notebook


def _clean(cell: Any, folder: str) -> None:
    cell.metadata = {}
    if cell.cell_type != "code":
        return
    cell.execution_count = None
    kept = []
    for output in cell.outputs:
        output.pop("execution_count", None)
        if output.output_type == "stream":
            output.text = _kept_text(output.text, folder)
        elif "data" in output:
            kind = next(kind for kind in _KINDS if kind in output.data)
            text = output.data[kind]
            output.data = {kind: _smaller(text) if kind == "image/png" else _kept_text(text, folder)}
            output.metadata = {}
        if output.output_type != "execute_result":
            kept.append(output)
        else:
            kept.append(nbformat.v4.new_output("display_data", data=output.data))
    cell.outputs = kept


def _smaller(png: str) -> str:
    return base64.b64encode(small(base64.b64decode(png))).decode("ascii")


def _kept_text(text: str, folder: str) -> str:
    text = re.sub(r"(?<=data:image/png;base64,)[^\"]+", lambda found: _smaller(found[0]), text)
    text = _COLOURS.sub("", text)
    return _HEXADECIMAL.sub("0x…", text.replace(f"{folder}/", "").replace(folder, "."))


def main() -> None:
    """Run all, or those whose names are given."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        if sys.argv[1:] and path.stem not in sys.argv[1:]:
            continue
        notebook = run(path)
        notebook.metadata = {"kernelspec": notebook.metadata.kernelspec, "language_info": {"name": "python"}}
        nbformat.write(notebook, path)
        sys.stdout.write(f"{path.stat().st_size:8d} {path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
