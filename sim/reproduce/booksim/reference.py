"""Runs of BookSim 2 as a CSV file, checked, and the configurations that belong to them: ours, or BookSim's own."""

import re
import tempfile
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path

import pandas as pd

import hopforge
from hopforge.model.config import Config, load_config
from hopforge.model.errors import UserError
from hopforge.model.input_file import open_input
from hopforge.sim.booksim.grammar import BooksimError
from hopforge.sim.booksim.translate import translate
from hopforge.sim.reproduce.booksim.diameter2 import supplement

SHIPPED = Path(str(resources.files("hopforge.sim.reproduce.booksim"))) / "data" / "reference.csv"
SHIPPED_CONFIGS = Path(hopforge.__file__).parent / "configs" / "booksim"
KINDS = ("latency", "throughput")
#: columns that are compared; others may be there
COLUMNS = ("config", "offered_flits", "sim_type", "stable", "pkt_lat", "acc_flit_rate", "router_hops")
#: begins the note of runs whose seeds differ so much that they are a range; other notes: no reference
SEEDS = "SEEDS"
_CASE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class ReferenceError(UserError, ValueError):
    """A reference that cannot be used: names the file, the row or key, the limit and the value."""


@dataclass(frozen=True)
class Reference:
    """BookSim's runs, one row per case, load, seed and kind of run, and the folder of our configurations.

    Attributes
    ----------
    file, configs : Path
        The CSV, and the folder with a ``CASE.yml`` or ``CASE.cfg`` (of BookSim) for every case.
    runs : DataFrame
        At least the columns `COLUMNS`, and ``ranged``: the seeds differ, so that they are a range.
    refused : dict
        Case → why its configuration of BookSim is not translated; these are no `cases`.
    """

    file: Path
    configs: Path
    runs: pd.DataFrame
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def cases(self) -> list[str]:
        """Names of the cases, in the order of the file."""
        return [case for case in dict.fromkeys(self.runs["config"]) if case not in self.refused]

    def curve(self, case: str) -> pd.DataFrame:
        """Mean over the seeds of ended runs: columns offered_flits, sim_type, pkt_lat, acc_flit_rate, hops.

        Further columns: ``ranged``, and with ``_least`` and ``_most`` behind their names the extremes of the first two.
        """
        runs = self.runs
        ended = runs[(runs["config"] == case) & (runs["stable"] == 1)].rename(columns={"router_hops": "hops"})
        groups = ended.groupby(["sim_type", "offered_flits"])
        found = groups[["pkt_lat", "acc_flit_rate", "hops"]].mean()
        found["ranged"] = groups["ranged"].any()
        for name in ("pkt_lat", "acc_flit_rate"):
            found[f"{name}_least"], found[f"{name}_most"] = groups[name].min(), groups[name].max()
        return found.reset_index()

    def knee(self, case: str) -> float:
        """Rate that BookSim accepted at the highest load at which its latency settled, in flits per host and cycle.

        Beyond it single hosts fall behind; the mean over hosts may still grow (transpose), which says nothing of
        latency. NaN without runs of latency.
        """
        curve = self.curve(case)
        return float(curve.loc[curve["sim_type"] == "latency", "acc_flit_rate"].max())

    def config(self, case: str) -> Config:
        """Load ``CASE.yml``, or translate ``CASE.cfg``."""
        path = self.path(case)
        if path.suffix == ".yml":
            return load_config(path)
        traffic = self.runs.loc[self.runs["config"] == case, "traffic"] if "traffic" in self.runs.columns else None
        return _translated(path, "" if traffic is None or traffic.empty else str(traffic.iloc[0]))

    def path(self, case: str) -> Path:
        """Return the file of a case: ``CASE.yml``, or ``CASE.cfg`` where there is none."""
        path = self.configs / f"{case}.yml"
        other = path.with_suffix(".cfg")
        return other if other.is_file() and not path.is_file() else path

    def of_booksim(self, case: str) -> bool:
        """Tell whether the file of a case is BookSim's own."""
        return self.path(case).suffix == ".cfg"


_kept: list[tempfile.TemporaryDirectory[str]] = []  # the networks of translated cases, until the program ends


@cache
def _translated(path: Path, traffic: str) -> Config:
    """Translate a configuration of BookSim; the files that belong to it last as long as the program."""
    _kept.append(tempfile.TemporaryDirectory(prefix="hopforge-booksim-"))
    folder = Path(_kept[-1].name)
    found = translate([str(path)], supplement(path.parent, path.stem, traffic, folder))
    if "classes" in found.sections["traffic"]:
        raise BooksimError(f"{path}: classes: a row has one latency, each class of traffic its own")
    target = folder / f"{path.stem}.yml"
    found.write(target)
    return load_config(target, keys=False)


@cache
def load_reference(file: Path | None = None, configs: Path | None = None) -> Reference:
    """Read and check a reference; by default the shipped one and ``configs/booksim``.

    Raises
    ------
    ReferenceError
        The file is missing, is no such CSV, or a case has no configuration, or one with other packets.
    """
    path, folder = file or SHIPPED, configs or SHIPPED_CONFIGS
    reference = Reference(path, folder, _read_runs(path))
    deadlocking = []
    for case in reference.cases:
        try:
            _check_case(reference, case)
            if reference.of_booksim(case) and not reference.config(case).routing.check:
                deadlocking.append(case)
        except BooksimError as error:
            reference.refused[case] = str(error)
    if reference.refused and not reference.cases:
        raise ReferenceError("--configs: hopforge translates no case: " + "; ".join(reference.refused.values()))
    # beyond saturation a case that nothing keeps from deadlock may stand still
    runs = reference.runs
    left_out = runs["config"].isin(deadlocking) & (runs["sim_type"] == "throughput")
    return replace(reference, runs=runs[~left_out])


def _read_runs(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise ReferenceError(f"--reference: {'a folder, not a file' if path.is_dir() else 'no such file'}: {path}")
    try:
        open_input(path).close()
        runs = pd.read_csv(path, dtype={"config": str, "sim_type": str, "note": str}, skipinitialspace=True)
    except (ValueError, UnicodeDecodeError) as error:  # pandas' own errors are ValueErrors
        raise ReferenceError(f"--reference {path}: no CSV file: {error}") from error
    missing = [name for name in COLUMNS if name not in runs.columns]
    if missing:
        raise ReferenceError(
            f"--reference {path}: columns {', '.join(missing)} are missing; it needs {', '.join(COLUMNS)}"
        )
    note = runs["note"].fillna("") if "note" in runs.columns else pd.Series("", index=runs.index)
    runs["ranged"] = note.str.startswith(SEEDS)
    runs = runs[(note == "") | runs["ranged"]].copy()
    if runs.empty:
        raise ReferenceError(f"--reference {path}: holds no runs")
    _check_column(path, runs, "config", runs["config"].astype(str).str.fullmatch(_CASE_NAME.pattern), "a name")
    _check_column(path, runs, "sim_type", runs["sim_type"].isin(KINDS), " or ".join(KINDS))
    for name in COLUMNS:
        if name not in ("config", "sim_type"):
            numbers = pd.to_numeric(runs[name], errors="coerce")
            needed = (runs["stable"].astype(str) != "0") | (name in ("offered_flits", "stable"))
            if name == "pkt_lat":  # beyond saturation it says nothing and may be empty
                needed &= (runs["sim_type"] == "latency") | runs[name].notna()
            _check_column(path, runs, name, ~needed | (numbers >= 0), "a number from 0 on")
            runs[name] = numbers
    _check_column(path, runs, "stable", runs["stable"].isin((0, 1)), "0 or 1")
    _check_column(path, runs, "offered_flits", runs["offered_flits"].between(0, 1, inclusive="right"), "in (0, 1]")
    return runs


def _check_column(path: Path, runs: pd.DataFrame, name: str, good: "pd.Series[bool]", wanted: str) -> None:
    for row in runs.index[~good.astype(bool)]:
        raise ReferenceError(f"--reference {path}: line {row + 2}: {name} must be {wanted}, not {runs.loc[row, name]}")


def _check_case(reference: Reference, case: str) -> None:
    path = reference.path(case)
    if not path.is_file():
        if reference.configs == SHIPPED_CONFIGS:
            raise ReferenceError(
                f"--reference {reference.file}: {case} is no case of hopforge; give --configs FOLDER with {path.name}"
            )
        raise ReferenceError(f"--configs: no such file: {path}, for case {case} of {reference.file.name}")
    config = reference.config(case)
    if reference.curve(case).empty:
        raise ReferenceError(f"--reference {reference.file}: case {case} has no run with stable = 1")
    traffic, runs = config.traffic, reference.runs
    if "packet_size" not in runs.columns or traffic.packet_lengths or traffic.packet_range is not None:
        return
    for size in runs.loc[runs["config"] == case, "packet_size"].dropna().unique():
        if str(size).removesuffix(".0") != str(traffic.packet_flits):  # with an empty cell all numbers are floats
            raise ReferenceError(
                f"{path}: traffic.packet_flits is {traffic.packet_flits}, packet_size of the reference {size}"
            )
