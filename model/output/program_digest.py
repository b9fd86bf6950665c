"""Which program made a result: a digest of hopforge itself, and the local modules that a user's file imports."""

import ast
import hashlib
import os
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import hopforge

#: folders of the package whose code decides results; commands only show them
_LAYERS = ("model", "hw", "gen", "sim")
#: files outside of folders `data` that decide results: programs, and tables of values
_SUFFIXES = {".py", ".c", ".cpp", ".csv"}


@cache
def program_digest() -> str:
    """SHA-256 over the version, all programs and all shipped data of hopforge (64 hexadecimal digits)."""
    digest = hashlib.sha256(hopforge.__version__.encode())
    root = os.path.dirname(hopforge.__file__)  # noqa: PTH120 - a thousand files: every command waits for this
    for name in _names(root):
        with open(f"{root}/{name}", "rb") as file:  # noqa: PTH123 - see above
            digest.update(name.encode() + b"\0" + file.read())
    return digest.hexdigest()


def program_files() -> list[Path]:
    """List the files of hopforge that decide results: all but what pages look like."""
    root = Path(hopforge.__file__).parent
    return [root / name for name in _names(str(root))]


def _names(root: str) -> list[str]:
    """List the same as names below the package's folder, with slashes; in order of their parts."""
    found = []
    for layer in _LAYERS:
        for folder, folders, files in os.walk(f"{root}/{layer}"):
            folders[:] = [name for name in folders if name != "__pycache__"]
            parts = Path(folder).parts[len(Path(root).parts) :]
            data = "data" in parts
            found += [(*parts, name) for name in files if data or os.path.splitext(name)[1] in _SUFFIXES]  # noqa: PTH122
    return ["/".join(parts) for parts in sorted(found, key=lambda parts: (_LAYERS.index(parts[0]), *parts))]


def imported_files(path: Path) -> list[Path]:
    """List the local modules that a Python file imports, and that these import; sorted, without the file itself.

    Local is what lies beside the file or on Python's path, outside of Python and its installed packages. Imports are
    read from the text, so the file is not run; modules that it loads under computed names are not found.
    """
    found: dict[Path, None] = {}
    waiting = [path.resolve()]
    while waiting:
        file = waiting.pop()
        for module in _local_modules(file):
            if module not in found and module != path.resolve():
                found[module] = None
                waiting.append(module)
    return sorted(found)


def _local_modules(file: Path) -> Iterator[Path]:
    """Yield the files of the modules that `file` imports."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return  # whoever runs it says what is wrong
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _module_files(alias.name, _roots(file))
        elif isinstance(node, ast.ImportFrom):
            roots = [file.parents[node.level - 1]] if node.level else _roots(file)
            base = [node.module] if node.module else []
            for alias in node.names:
                yield from _module_files(".".join([*base, alias.name]), roots)


def _module_files(name: str, roots: list[Path]) -> Iterator[Path]:
    """Yield the files behind a dotted name: its packages and itself; the last part may be no module."""
    parts = name.split(".")
    if parts[0] == "hopforge":
        return
    for root in roots:
        place, files = root, []
        for part in parts:
            place = place / part
            files += [one for one in (place.with_name(f"{part}.py"), place / "__init__.py") if one.is_file()]
        if files:
            yield from (one.resolve() for one in files)
            return


def _roots(file: Path) -> list[Path]:
    """Folders in which `file` finds local modules: its own, and those of Python's path that are not installed ones."""
    installed = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders = [Path(entry or ".").resolve() for entry in sys.path]
    local = [one for one in folders if one.is_dir() and not any(one.is_relative_to(base) for base in installed)]
    return list(dict.fromkeys([file.parent, *local]))
