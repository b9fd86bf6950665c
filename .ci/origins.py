"""Tell results that the program no longer gives: what made each data set of docs/results/data, and its witness.

``python .ci/origins.py`` runs all witnesses (a quarter of a minute) and says which have changed (exit status 1).
``renewed NAME... --run FOLDER`` notes that data are of this program: FOLDER is what ``hopforge reproduce`` wrote;
``renewed NAME... --command TEXT`` where another command made them. ``same NAME... --because TEXT`` notes why data still
hold although a witness, or a word in them, has changed.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from witnesses import NOT_WATCHED, studies_of, witness

from hopforge.model.errors import UserError
from hopforge.model.output.program_digest import program_digest
from hopforge.model.output.results import write_text
from hopforge.sim.reproduce.origins import FILE, Origin, origins_text, read_origins
from hopforge.sim.reproduce.pages import data_names

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs/results/data"
#: digits of a program's digest that are kept
DIGITS = 12
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def numbers_of(folder: Path, name: str) -> str:
    """Digest of the numbers of a data set, in their order; of its text where it has no table."""
    table = folder / f"{name}.csv"
    text = (table if table.exists() else folder / f"{name}.md").read_text(encoding="utf-8")
    return hashlib.sha256(" ".join(_NUMBER.findall(text)).encode()).hexdigest()[:DIGITS]


def kept_program(folder: Path, name: str) -> str:
    """First digits of the digest of the program that a ``NAME.json`` names, or nothing."""
    path = folder / f"{name}.json"
    if not path.exists():
        return ""
    return str(json.loads(path.read_text(encoding="utf-8")).get("program_digest", ""))[:DIGITS]


def gaps(folder: Path, origins: Mapping[str, Origin]) -> list[str]:
    """Say what the origins do not tell: a line for each data set without origin, or with other numbers than then.

    Parameters
    ----------
    folder : Path
        Of the data.
    origins : dict of str to Origin
        What ``origins.yml`` says.
    """
    names = data_names(folder)
    found = [f"{FILE} names {name}, of which there are no data" for name in sorted(set(origins) - set(names))]
    for name in names:
        where, origin, studies = f"docs/results/data/{name}", origins.get(name), studies_of(name)
        again = f"python .ci/origins.py renewed {name} --run FOLDER, or same {name} --because WHY"
        if origin is None:
            found.append(f"{where}: nothing says what made it: {again}")
        elif set(origin.witness) != set(studies) or bool(origin.not_watched) == bool(studies):
            found.append(f"{where}: watched by {', '.join(studies) or 'nothing'}, {FILE} says otherwise: {again}")
        elif origin.numbers != numbers_of(folder, name):
            found.append(f"{where} has other numbers than its origin knows: {again}")
        elif (kept := kept_program(folder, name)) and origin.program != kept:
            found.append(f"{where}.json is of program {kept}, its origin of {origin.program or 'none'}: {again}")
    return found


def changed(origins: Mapping[str, Origin], witnesses: Mapping[str, str]) -> list[str]:
    """Say which data the program would not give any more: a line for each witness that is another one now.

    Parameters
    ----------
    origins : dict of str to Origin
        What ``origins.yml`` says.
    witnesses : dict of str to str
        Study → what its witness gives now.
    """
    return [
        f"docs/results/data/{name} was made by a program that gave other results: witness {study} was {then!r}, "
        f"is {witnesses[study]!r}; run {origin.command or 'the command of its section'} again, "
        f"or python .ci/origins.py same {name} --because WHY"
        for name, origin in origins.items()
        for study, then in origin.witness.items()
        if witnesses.get(study, then) != then
    ]


def all_witnesses(names: list[str]) -> dict[str, str]:
    """Run the witnesses of some data sets, each study once."""
    return {study: witness(study) for study in dict.fromkeys(study for name in names for study in studies_of(name))}


def seen(folder: Path, name: str, origin: Origin, witnesses: Mapping[str, str]) -> Origin:
    """Give an origin with what the data and the witnesses are now."""
    studies = studies_of(name)
    reason = "" if studies else next(why for pattern, why in NOT_WATCHED.items() if fnmatchcase(name, pattern))
    return replace(
        origin, numbers=numbers_of(folder, name), witness={study: witnesses[study] for study in studies},
        not_watched=reason,
    )  # fmt: skip


def _git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout.strip()


def _commit() -> str:
    """Return the commit of this program.

    Raises
    ------
    UserError
        The program differs from that of the commit.
    """
    changed = _git("status", "--porcelain", "--", "src", "model", "hw", "gen", "sim", "pyproject.toml")
    if changed:
        raise UserError(f"commit the program first, so that its commit can be noted: {changed.splitlines()[0].strip()}")
    return _git("rev-parse", "HEAD")


def renewed(name: str, run: Path | None, command: str) -> Origin:
    """Give the origin of data that this program has made.

    Raises
    ------
    UserError
        The run, or the copied ``NAME.json``, is of another program; neither run nor command is given.
    """
    program, path = program_digest(), DATA / f"{name}.json"
    if run is not None:
        path = run / "metadata.json"
        if not path.exists():
            raise UserError(f"--run {run}: no metadata.json in it")
    if path.exists():
        metadata = json.loads(path.read_text(encoding="utf-8"))
        if metadata.get("program_digest") != program:
            raise UserError(f"{path}: made by another program than this one: {' '.join(metadata['command'])}")
        command = command or " ".join(metadata["command"])
    if not command:
        raise UserError(f"{name}: needs --run FOLDER or --command TEXT, to say what made it")
    return Origin(command=command, commit=_commit(), program=program[:DIGITS])


def main(arguments: list[str] | None = None) -> int:
    """Check all, or note what is new; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb")
    new = verbs.add_parser("renewed", help="data that this program has made")
    new.add_argument("names", nargs="+", metavar="NAME")
    new.add_argument("--run", type=Path, metavar="FOLDER", help="what hopforge reproduce wrote")
    new.add_argument("--command", default="", metavar="TEXT", help="what made them, where there is no run")
    same = verbs.add_parser("same", help="data that still hold")
    same.add_argument("names", nargs="+", metavar="NAME")
    same.add_argument("--because", required=True, metavar="TEXT", help="why the whole result does not change")
    options = parser.parse_args(arguments)
    origins, names = read_origins(DATA), data_names(DATA)
    try:
        if options.verb is None:
            found = gaps(DATA, origins) + changed(origins, all_witnesses(names))
            sys.stdout.write("".join(f"{line}\n" for line in found) or f"{len(names)} data sets, nothing has changed\n")
            return 1 if found else 0
        for name in options.names:
            if name not in names:
                raise UserError(f"no data {name} in {DATA}")
            if options.verb == "same" and name not in origins:
                raise UserError(f"{name} has no origin yet: python .ci/origins.py renewed {name}")
        witnesses = all_witnesses(options.names)
        for name in options.names:
            if options.verb == "renewed":
                origin = renewed(name, options.run, options.command)
            else:
                origin = replace(origins[name], same=options.because.rstrip("."))
            origins[name] = seen(DATA, name, origin, witnesses)
    except UserError as error:
        sys.stderr.write(f"origins: {error}\n")
        return 2
    write_text(DATA / FILE, origins_text(origins))
    return 0


if __name__ == "__main__":
    sys.exit(main())
