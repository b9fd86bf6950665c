"""Paths in a configuration file are relative to that file."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ValidationInfo

SHIPPED = "shipped:"
"""Before the name of a trace that comes with hopforge."""


def _beside(path: Path, info: ValidationInfo) -> Path:
    folder = (info.context or {}).get("folder")
    return path if folder is None else Path(folder) / path


def _trace(file: str, info: ValidationInfo) -> str:
    return file if file.startswith(SHIPPED) else str(_beside(Path(file), info))


ConfigPath = Annotated[Path, AfterValidator(_beside)]
TracePath = Annotated[str, AfterValidator(_trace)]


def named_files(section: BaseModel, prefix: str = "") -> dict[str, Path]:
    """Return the files and folders that a configuration names, by the dotted keys under which it does.

    Traces that come with hopforge are not among them.
    """
    found: dict[str, Path] = {}
    for name, info in type(section).model_fields.items():
        value, key = getattr(section, name), f"{prefix}{name}"
        if isinstance(value, BaseModel):
            found |= named_files(value, f"{key}.")
        elif isinstance(value, Path):
            found[key] = value
        elif any(getattr(each, "func", None) is _trace for each in info.metadata) and not value.startswith(SHIPPED):
            found[key] = Path(value)
    return found
