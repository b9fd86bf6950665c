"""Read a YAML file, check it, and say file, line and key of what is wrong."""

import json
from pathlib import Path

import yaml
from pydantic import ValidationError

from hopforge.model.config.root import Config
from hopforge.model.errors import UserError


class ConfigError(UserError, ValueError):
    """A user's mistake: file, line, key and reason in one line each."""


def load_config(path: Path) -> Config:
    """Read and check the YAML file `path`."""
    return parse_config(Path(path).read_text(encoding="utf-8"), source=str(path))


def parse_config(text: str, source: str = "<string>") -> Config:
    """Check YAML text; `source` stands in error messages."""
    try:
        # JSON mode: YAML lists become tuples and strings paths, while ints, floats and booleans stay strict
        return Config.model_validate_json(json.dumps(yaml.safe_load(text)))
    except ValidationError as error:
        raise ConfigError(f"{source}: {error}") from error
