"""A result that is wanted, and all that decides it: program, configuration, contents of files."""

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from hopforge.model.config import Config
from hopforge.model.config.base import named_files
from hopforge.model.config.source import undotted
from hopforge.model.output.program_digest import imported_files, program_digest

__all__ = ["Wanted", "described", "file_digest", "files_read"]

#: keys of section `simulation` that say which runs there are, not what one of them gives
_CHOICE_OF_RUNS = ("load", "loads", "knee_percent", "seeds", "variants")


@dataclass(frozen=True)
class Wanted:
    """A result that is wanted.

    Attributes
    ----------
    name : str
        Of the run among those of its folder, such as its variant, load and seed.
    configuration : mapping
        All that the user chose and that decides the result: plain values.
    files : mapping of str to str
        Digest of each file that the run reads, by what it is called in messages.
    paths : tuple of Path
        These files, to see whether one is changed while the run goes on.
    """

    name: str
    configuration: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    paths: tuple[Path, ...] = ()

    @cached_property
    def key(self) -> str:
        """Digest (24 hexadecimal digits) of the program and of what decides the result; variants may share one."""
        text = json.dumps([program_digest(), self.configuration, self.files], sort_keys=True)
        return sha256(text.encode()).hexdigest()[:24]


def file_digest(path: Path) -> str:
    """SHA-256 of a file, or of names and contents of all files in a folder; empty for a name that is neither."""
    if path.is_dir():
        text = "".join(f"{item.name} {file_digest(item)}\n" for item in sorted(path.iterdir()) if item.is_file())
        return sha256(text.encode()).hexdigest()
    return sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def described(config: Config, *, without: Collection[str] = ()) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what of a configuration decides a run (but load and seed), and the files that the run reads.

    Parameters
    ----------
    config : Config
        Of the run.
    without : collection of str
        Sections that play no part.

    Returns
    -------
    (dict, dict)
        For `Wanted`: values of the configuration, files by their bare names; digests of the files, and of the local
        modules that those in Python import.
    """
    parts = config.model_dump(mode="json", exclude={"name", "cosim", *without})
    for name in _CHOICE_OF_RUNS:
        parts.get("simulation", {}).pop(name, None)
    for key, path in named_files(config).items():
        place = undotted(key)
        if place[0] not in parts:
            continue
        section: Any = parts
        for step in place[:-1]:
            section = section[step]
        section[place[-1]] = path.name
    return parts, {name: file_digest(path) for name, path in files_read(config, without=without).items()}


def files_read(config: Config, *, without: Collection[str] = ()) -> dict[str, Path]:
    """Return the files that a run reads, and the modules that those in Python import, by what messages call them."""
    files: dict[str, Path] = {}
    for key, path in named_files(config).items():
        if key.split(".")[0] in {"name", "cosim", *without}:
            continue
        files[f"{path.name} ({key})"] = path
        if path.suffix == ".py":
            for module in imported_files(path):
                files[f"{_beside(module, path)} (imported by {path.name})"] = module
    return files


def _beside(module: Path, path: Path) -> str:
    """Return the path of a module as seen from the folder of the file that imports it."""
    return os.path.relpath(module, path.resolve().parent)
