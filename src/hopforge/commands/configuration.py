"""How commands read a configuration, and what they say of it."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hopforge.commands.terminal import complain

if TYPE_CHECKING:
    from hopforge.model.config import Config


def read(path: Path, command: str) -> "Config":
    """Read a file as a command of `sim.start.preparation` uses it.

    Raises
    ------
    UserError
        The file is wrong, or no good for the command.
    """
    from hopforge.model.config import load_config
    from hopforge.sim.start.preparation import for_command

    return for_command(command, load_config(path, keys=False))


def say_missing(path: Path, config: "Config", section: str) -> None:
    """Print on stderr that a file has not written the section of what a command is about, if that is so."""
    if section not in config.written:
        complain(f"{path}: there is no section {section}: its defaults are taken")


def say_unused(config: "Config", command: str, used: tuple[str, ...] = (), also_unused: Iterable[str] = ()) -> None:
    """Print which sections of the file the command did not use, on stderr.

    Parameters
    ----------
    config : Config
        As it was read for the command.
    command : str
        Its name.
    used : tuple of str
        Sections and keys that an option used.
    also_unused : iterable of str
        Keys that it left out in these sections.
    """
    unused = [*(section for section in config.unused if section not in used), *also_unused]
    if unused:
        complain(f"hopforge {command} does not use {', '.join(unused)}")
