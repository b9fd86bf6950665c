"""Paths in a configuration file are relative to that file."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo


def _beside(path: Path, info: ValidationInfo) -> Path:
    folder = (info.context or {}).get("folder")
    return path if folder is None else Path(folder) / path


def _trace(file: str, info: ValidationInfo) -> str:
    return file if file.startswith("shipped:") else str(_beside(Path(file), info))


ConfigPath = Annotated[Path, AfterValidator(_beside)]
TracePath = Annotated[str, AfterValidator(_trace)]
