"""Where results come from: what made the data of the pages of results, and which studies watch them.

``data/origins.yml`` says it of every data set; ``.ci/origins.py`` writes and checks it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import yaml

from hopforge.model.errors import UserError

#: file in the folder of data
FILE = "origins.yml"
NOT_RECORDED = "not recorded"

_HEAD = """\
# What made each data set in this folder, and what its witnesses gave then. Written by .ci/origins.py; see README.md.
"""
ORIGINS_PAGE = f"""\
# Where the results come from

This page is written by `make docs` from `data/origins.yml`. [README](data/README.md#origins) says what a witness is and
how to renew one.

Made by: the commit of hopforge that measured the data. "{NOT_RECORDED}": some commit before 9898277d that nobody wrote
down. The witnesses of all data made before were taken at 9898277d: they tell changes of the program from then on, and
nothing about the time before.

Watched by: studies whose short runs tell, in every test, that a change of the program changes results. They see the
part of a study that they run, and no more.
"""


@dataclass(frozen=True)
class Origin:
    """What made a data set.

    Attributes
    ----------
    command : str
        It measures the data again; "": the section says how.
    commit : str
        Of the program; "": not recorded.
    program : str
        First digits of the program's digest (`program_digest`); "": not recorded.
    numbers : str
        Digest of the numbers in the data set.
    witness : dict of str to str
        Study → what its short run gave when the data were made or last judged.
    not_watched : str
        Why there is no witness.
    same : str
        Why the data still hold although their witness has changed since.
    """

    command: str = ""
    commit: str = ""
    program: str = ""
    numbers: str = ""
    witness: Mapping[str, str] = field(default_factory=dict)
    not_watched: str = ""
    same: str = ""

    @property
    def made_by(self) -> str:
        """The commit, or what is known instead, for people."""
        if self.commit:
            return f"commit `{self.commit[:8]}`"
        return f"program {self.program}, commit {NOT_RECORDED}" if self.program else NOT_RECORDED


def read_origins(folder: Path) -> dict[str, Origin]:
    """Read ``origins.yml`` in a folder of data; nothing where there is none.

    Raises
    ------
    UserError
        A key that no origin has.
    """
    path = folder / FILE
    if not path.exists():
        return {}
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found = {}
    for name, keys in (yaml.load(path.read_text(encoding="utf-8"), loader) or {}).items():
        try:
            found[name] = Origin(**keys)
        except TypeError as error:
            raise UserError(f"{path}: {name}: {str(error).replace('Origin.__init__() ', '')}") from None
    return found


def origins_text(origins: Mapping[str, Origin]) -> str:
    """Give the text of ``origins.yml``."""
    known = {
        name: {key: value for key, value in asdict(origins[name]).items() if value} for name in sorted(origins)
    }
    return _HEAD + yaml.safe_dump(known, sort_keys=False, allow_unicode=True, width=118)


def small_line(origin: Origin | None) -> str:
    """Line below a section: the commit, where it is known, and why data of an older program hold; else nothing."""
    if origin is None or not origin.commit:
        return ""
    words = f"Made by {origin.made_by}." + (f" The program has changed since; {origin.same}." if origin.same else "")
    return f"\n<sub>{words}</sub>\n"


def origins_rows(origins: Mapping[str, Origin]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Give the columns of the page, and a row for each data set."""
    rows: list[tuple[str, ...]] = []
    for name, origin in origins.items():
        watched = ", ".join(origin.witness) or f"not watched: {origin.not_watched}"
        command = f"`{origin.command}`" if origin.command else "see its section"
        rows.append((name, command, origin.made_by + (f"; {origin.same}" if origin.same else ""), watched))
    return ("data", "command", "made by", "watched by"), rows
