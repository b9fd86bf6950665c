#!/usr/bin/env python3
"""Show that two checkouts give the same results: Verilog, tables and data files, value by value.

Run `.ci/same_results.py BEFORE AFTER`: every case runs in both checkouts, each time in a fresh folder, and what it
writes is compared, without measured times, versions, command lines, digests and pictures. Each side reads its own
configs/; add `--keep DIR` to use the runs of BEFORE again while you work on the other checkout.
"""

import argparse
import csv
import itertools
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

LIMIT_S = 900
"""Longest run of one case."""

MEASURED = frozenset(["cpu_seconds", "wall_seconds", "seconds"])
"""Columns of tables and keys of JSON that hold measured times."""

OF_THE_PROGRAM = frozenset(["command", "versions", "version", "digest", "program_digest", "program_sha256"])
"""Keys of JSON that tell which program ran, not what it found."""

IN_WORDS = "processor time"
"""Texts with these words tell measured times, as ``tables 0.001 s, virtual layers 0.002 s of processor time``."""

SECONDS = re.compile(r"\d[\d.,]* s\b")
"""What is left out of them."""

KEPT_RUN = re.compile(r"[0-9a-f]{16,}\.json")
"""Names of runs that a sweep keeps: a key of program and configuration; its tables hold the same results."""

NO_RESULTS = frozenset([".png", ".gif", ".svg", ".pdf", ".html", ".log", ".xml", ".vvp"])
"""Endings of pictures, drawn from the tables, and of what a Verilog simulator writes: paths, times, versions."""

VERSION = re.compile(r"\b(hopforge|amaranth|pyosys) \d+(\.\d+)*")
"""Names of programs with their version, as in the first line of Verilog."""

DATA_FOLDERS = ("model", "sim", "hw", "gen", "tests", "configs")
"""Below these, data files are looked for: golden vectors, shipped traces, reference runs."""

NO_DATA = frozenset([".py", ".pyc", ".md", ".yml", ".css", ".js", ".j2"])
"""Endings of files below DATA_FOLDERS that are not data."""


@dataclass(frozen=True)
class Case:
    """One command whose results must be the same."""

    name: str
    words: str
    """Arguments of hopforge; {config} is the configuration."""
    config: str = ""
    """File below configs/ of the checkout."""
    edits: tuple[tuple[str, str], ...] = ()
    """Replacements in it, each of a text that is there once; they shorten runs."""
    text: str = ""
    """A configuration of its own, instead of `config`."""
    after: str | None = None
    """Arguments on the AFTER side, where they differ."""
    stdout: bool = False
    """What it prints is a result, too."""


def _verilog(name: str, part: str, config: str, text: str = "") -> Case:
    return Case(f"gen_{name}", f"gen {part} {{config}} -o out", config, text=text)


WAVEFRONT = """\
name: wavefront
topology: {kind: dragonfly, p: 2, a: 4, h: 2}
routing: {algorithm: dragonfly_min}
router: {vcs: 2, buffer_flits: 4, va: wavefront, sa: wavefront, switching: wormhole}
"""
SHORT = "simulation: {load: 0.2, precision: 0.02, warmup_cycles: 1000, min_cycles: 2000, max_cycles: 4000}\n"
HYPERX_NET = (
    "name: hyperx\ntopology: {kind: hyperx, sizes: [4, 4], hosts_per_router: 2}\n"
    "router: {vcs: 3, buffer_flits: 4, va: wavefront, sa: wavefront, switching: vct}\n"
    "traffic: {pattern: bit_complement, packet_flits: 4}\n" + SHORT
)
UGAL = (
    "name: ugal72\ntopology: {kind: dragonfly, p: 2, a: 4, h: 2}\naddress: {chunk_bits: 4}\n"
    "router: {model: input_output_queued, vcs: 5, buffer_flits: 20, output_buffer_flits: 20}\n"
    "routing: {algorithm: ugal_node}\ntraffic: {source: interval, pattern: adversarial, shift: 1}\n"
    "simulation: {load: 0.3, warmup_us: 40, measure_us: 60}\n"
)
LOOKUP_NET = (
    "name: lookup_net\ntopology: {kind: torus, radices: [4, 4]}\nrouting: {algorithm: dor, ties: key}\n"
    "router: {vcs: 2, buffer_flits: 4, route_computation: lookup}\n"
    "lookup: {pipeline_depth: 3, cache: {entries: 4, ways: 2}, tcam: {kind: external, latency_cycles: 25}}\n"
    "traffic: {pattern: uniform, packet_flits: 4}\n" + SHORT
)

CASES = (
    _verilog("lookup_demo", "lookup", "demo.yml"),
    _verilog("lookup_random", "lookup", "mutation/fat_tree.yml"),
    _verilog("router_5x4x64", "router", "router_5x4x64.yml"),
    _verilog("router_lookup", "router", "router_lookup.yml"),
    _verilog("router_wavefront", "router", "", WAVEFRONT),
    _verilog("network_mesh2x2", "network", "cosim/mesh2x2.yml"),
    _verilog("network_loren16", "network", "cosim/loren16.yml"),
    _verilog("network_lookup_lag", "network", "cosim/lookup_lag.yml"),
    _verilog("q_table72", "q-table", "q_table72.yml"),
    _verilog("tables_loren64", "tables", "loren64.yml"),
    Case("check_demo", "check {config}", "demo.yml", stdout=True),
    Case("check_q_adaptive72", "check {config}", "q_adaptive72.yml", stdout=True),
    Case("check_loren64", "check {config}", "loren64.yml", stdout=True),
    Case("schema", "schema", stdout=True),
    Case("schema_markdown", "schema --markdown", stdout=True),
    Case("net_mesh_uniform_p1", "net {config} --load 0.1 -o out", "booksim/mesh8x8_uniform_p1.yml"),
    Case("net_mesh_uniform_p4", "net {config} --load 0.3 --seed 7 -o out", "booksim/mesh8x8_uniform_p4.yml"),
    Case("net_torus", "net {config} --load 0.4 -o out", "booksim/torus8x8_uniform_p1.yml"),
    Case("net_torus_speculation", "net {config} --load 0.3 -o out", "booksim/torus8x8_speculation_p1.yml"),
    Case("net_fat_tree", "net {config} --load 0.3 -o out", "booksim/fat_tree64_nca_p1.yml"),
    Case("net_dragonfly_min", "net {config} --load 0.3 -o out", "booksim/dragonfly72_min_uniform_p1.yml"),
    Case("net_hyperx_wavefront", "net {config} -o out", text=HYPERX_NET),
    Case("net_router_lookup", "net {config} -o out", text=LOOKUP_NET),
    Case("net_anynet", "net {config} -o out", "net_anynet.yml"),
    Case("net_loren64", "net {config} -o out", "loren64.yml"),
    Case(
        "net_q_adaptive",
        "net {config} -o out",
        "q_adaptive72.yml",
        (("warmup_us: 200", "warmup_us: 40"), ("measure_us: 400", "measure_us: 80")),
    ),
    Case("net_ugal", "net {config} -o out", text=UGAL),
    Case("net_packet_ofr", "net {config} -o out", "ofr_torus8.yml", (("[8, 8, 8]", "[4, 4, 4]"),)),
    Case("net_own_rules", "net {config} -o out", "own_rules.yml"),
    Case("net_learned_routes", "net {config} -o out", "learned_routes.yml"),
    Case("net_program", "net {config} -o out", "net_is_4x4x4.yml"),
    Case("net_failing_links", "net {config} -o out", "failing_links.yml"),
    Case(
        "series_failing_dragonfly",
        "series {config} -o out",
        "failing_dragonfly72.yml",
        (("measure_us: 300", "measure_us: 200"),),
    ),
    Case(
        "series_q_adaptive",
        "series {config} -o out",
        "q_adaptive72.yml",
        (("warmup_us: 200", "warmup_us: 60"), ("measure_us: 400", "measure_us: 120")),
    ),
    Case(
        "sweep_seeds",
        "sweep {config} --workers 2 -o out",
        "sweep_knee.yml",
        (
            ("seeds: 12", "seeds: 3"),
            ("warmup_cycles: 7500", "warmup_cycles: 1000"),
            ("min_cycles: 7500", "min_cycles: 2000"),
            ("max_cycles: 7500", "max_cycles: 2000"),
        ),
    ),
    Case(
        "sweep_packet",
        "sweep {config} --workers 2 -o out",
        "sweep_torus8.yml",
        (("[8, 8, 8]", "[4, 4, 4]"), ("[0.1, 0.2, 0.3, 0.4, 0.5]", "[0.2, 0.4]")),
    ),
    Case(
        "sweep_app",
        "sweep {config} --workers 2 -o out",
        "sweep_app.yml",
        (
            ("    whole_addresses: {app.lookup: cache, lookup.reduction: false}\n", ""),
            ("    fast_links: {app.lookup: cache, timing.link_gbps: 1600}\n", ""),
        ),
    ),
    Case("trace_slowest", "trace {config} --cycles 1500 --slowest 2 -o out", "booksim/torus8x8_uniform_p1.yml"),
    Case("trace_packets", "trace {config} --packet 0.1 --packet 5.0 -o out", "net_anynet.yml"),
    Case("hits_demo", "hits {config} -o out", "demo.yml"),
    Case("hits_dragonfly", "hits {config} -o out", "hits_dragonfly.yml"),
    Case("hits_edge_list", "hits {config} -o out", "hits_edge_list.yml"),
    Case("hits_fat_tree", "hits {config} -o out", "hits_fat_tree.yml"),
    Case("hits_loren64", "hits {config} -o out", "hits_loren64.yml"),
    Case("app_flow", "app {config} --engine flow --backend embedded -o out", "app_mg_torus.yml"),
    Case("app_packet", "app {config} --engine packet -o out", "app_mg_torus.yml", (("class: A", "class: S"),)),
    Case("workload", "workload {config} -o out", "sweep_app.yml"),
    Case("route_loren64", "route {config} -o out", "loren64.yml"),
    Case("route_failed", "route {config} --fail 0-27 -o out", "failing_links.yml"),
    Case("topology_show", "topology {config}", "hits_dragonfly.yml", stdout=True),
    *(
        Case(f"topology_{form}", f"topology {{config}} --export {form} -o out/network.{form}", config)
        for form, config in (
            ("graphml", "hits_fat_tree.yml"),
            ("anynet", "sweep_slim_fly.yml"),
            ("edges", "hits_loren64.yml"),
            ("simgrid", "app_mg_torus.yml"),
            ("simgrid-full", "hits_edge_list.yml"),
        )
    ),
    Case("cosim_network", "cosim {config} --part network --cycles 200 -o out", "cosim/mesh2x2.yml"),
    Case("reproduce_energy", "reproduce lookup.fig4.12 lookup.fig5.2 -o out"),
)


class DifferenceError(Exception):
    """The first value that differs: where, and both values."""


@dataclass(frozen=True)
class Side:
    """A checkout, and where its cases run."""

    name: str
    checkout: Path
    work: Path

    @property
    def python(self) -> str:
        """Python of its own virtual environment, else the one that runs this file."""
        own = self.checkout / ".venv/bin/python"
        return str(own) if own.exists() else sys.executable

    def environment(self) -> dict[str, str]:
        """Return the variables of its runs: its source first, caches of its own, nothing written into the checkout."""
        kept = {key: os.environ[key] for key in ("HOME", "LANG", "TMPDIR") if key in os.environ}
        return kept | {
            "PATH": f"{Path(self.python).parent}:{os.environ.get('PATH', '')}",
            "PYTHONPATH": str(self.checkout / "src"),
            "PYTHONPYCACHEPREFIX": str(self.work / "pycache"),
            "NUMBA_CACHE_DIR": str(self.work / "numba"),
            "XDG_CACHE_HOME": str(self.work / "cache"),
            "MPLCONFIGDIR": str(self.work / "matplotlib"),
            "COLUMNS": "120",
        }

    def check(self) -> None:
        """Make sure that its runs import its own hopforge."""
        found = subprocess.run(
            [self.python, "-c", "import hopforge; print(hopforge.__file__)"],
            env=self.environment(),
            cwd=self.work,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        if not Path(found).resolve().is_relative_to((self.checkout / "src").resolve()):
            raise SystemExit(f"{self.name}: {self.python} imports {found}, not the hopforge of {self.checkout}")

    def state(self) -> str:
        """Return the commit and what was changed since, or the folder where git knows nothing of it."""
        git = ["git", "-C", str(self.checkout)]
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
        if head.returncode:
            return str(self.checkout)
        return (
            head.stdout.strip()
            + subprocess.run([*git, "diff", "HEAD"], capture_output=True, text=True, check=False).stdout
        )


def prepare(case: Case, checkout: Path, folder: Path) -> None:
    """Fill the fresh `folder` of a case: configs/ of the checkout, with the configuration of the case.

    Raises
    ------
    ValueError
        A text that is to be replaced is not there exactly once.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(checkout / "configs", folder / "configs")
    if case.text:
        (folder / "configs/case.yml").write_text(case.text, encoding="utf-8")
    if case.edits:
        path = folder / "configs" / case.config
        text = path.read_text(encoding="utf-8")
        for old, new in case.edits:
            if text.count(old) != 1:
                raise ValueError(f"{case.name}: {old!r} must stand once in {case.config}, not {text.count(old)} times")
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")


def run(case: Case, side: Side, *, state: str, keep: bool) -> tuple[Path, float]:
    """Run a case, or take what is kept of it; return the folder of its results and the processor time in seconds.

    Raises
    ------
    DifferenceError
        The command failed.
    """
    folder = side.work / case.name
    stamp = folder / "same_results.json"
    words = case.words if case.after is None or side.name == "before" else case.after
    meaning = {"state": state, "case": json.loads(json.dumps(asdict(case))), "words": words}
    if keep and stamp.exists() and json.loads(stamp.read_text(encoding="utf-8")) == meaning:
        return folder, 0.0
    prepare(case, side.checkout, folder)
    config = f"configs/{case.config or 'case.yml'}"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [side.python, "-m", "hopforge", *shlex.split(words.format(config=config))],
        cwd=folder,
        env=side.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise DifferenceError(f"{side.name}: exit status {done.returncode}: {' '.join(last)}")
    shutil.rmtree(folder / "configs")
    if case.stdout:
        (folder / "stdout.txt").write_text(done.stdout, encoding="utf-8")
    stamp.write_text(json.dumps(meaning), encoding="utf-8")
    return folder, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def results(folder: Path) -> set[str]:
    """Return the names of the files below a folder that are compared.

    Pictures and logs are not, nor measured times (``times.csv``), Parquet beside the CSV file of the same table, runs
    that a sweep keeps.
    """
    files = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    return {
        path.as_posix()
        for path in files
        if path.suffix not in NO_RESULTS
        and path.name != "same_results.json"
        and path.stem != "times"
        and not KEPT_RUN.fullmatch(path.name)
        and not (path.suffix == ".parquet" and path.with_suffix(".csv") in files)
    }


def compare_folders(before: Path, after: Path) -> int:
    """Compare all results of one case and return how many files that were.

    Raises
    ------
    DifferenceError
        A file is on one side only, a value differs, or there is nothing to compare.
    """
    names, others = results(before), results(after)
    if names != others:
        name = min(names ^ others)
        raise DifferenceError(f"{name}: only {'before' if name in names else 'after'}")
    if not names:
        raise DifferenceError("no file to compare")
    for name in sorted(names):
        compare_file(before / name, after / name, name)
    return len(names)


def compare_file(before: Path, after: Path, name: str) -> None:
    """Compare two files by what their ending says they are."""
    first, second = before.read_bytes(), after.read_bytes()
    if first == second:
        return
    reader: Callable[[str], Iterator[tuple[str, str]]] = {".csv": _cells, ".json": _leaves}.get(before.suffix, _lines)
    try:
        values = (reader(first.decode()), reader(second.decode()))
    except UnicodeDecodeError:
        raise DifferenceError(f"{name}: {len(first)} and {len(second)} bytes, not the same") from None
    for one, other in itertools.zip_longest(*values, fillvalue=("end", "")):
        if one[0] != other[0] or _timeless(one[1]) != _timeless(other[1]):
            place = one[0] if one[0] == other[0] else f"{one[0]} / {other[0]}"
            raise DifferenceError(f"{name}, {place}: {one[1]!r} != {other[1]!r}")


def _timeless(text: str) -> str:
    text = VERSION.sub(r"\1", text)
    return SECONDS.sub("some s", text) if IN_WORDS in text else text


def _cells(text: str) -> Iterator[tuple[str, str]]:
    rows = csv.reader(text.splitlines())
    header = next(rows, [])
    wanted = [index for index, column in enumerate(header) if column not in MEASURED]
    yield "columns", " ".join(header[index] for index in wanted)
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            yield f"row {number}", ",".join(row)
            continue
        for index in wanted:
            yield f"row {number}, column {header[index]}", row[index]


def _leaves(text: str) -> Iterator[tuple[str, str]]:
    yield from _walk(json.loads(text, parse_float=_Number, parse_int=_Number, parse_constant=_Number), "")


class _Number(str):
    """A number as it is written."""


def _walk(value: Any, place: str) -> Iterator[tuple[str, str]]:
    inside: Iterable[tuple[Any, Any]]
    if isinstance(value, dict):
        inside = ((key, value[key]) for key in sorted(value) if key not in MEASURED | OF_THE_PROGRAM)
    elif isinstance(value, list):
        inside = enumerate(value)
    else:
        yield place or "value", str(value) if isinstance(value, _Number) else json.dumps(value)
        return
    yield place or "all", type(value).__name__
    for key, item in inside:
        yield from _walk(item, f"{place}.{key}" if place else str(key))


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        yield f"line {number}", line


def data_files(checkout: Path) -> dict[str, list[Path]]:
    """Return the data files of a checkout by name: golden vectors, traces, reference runs, wherever they lie."""
    found: dict[str, list[Path]] = {}
    for folder in DATA_FOLDERS:
        for path in sorted((checkout / folder).rglob("*")):
            hidden = any(part.startswith((".", "__")) for part in path.relative_to(checkout).parts)
            if path.is_file() and path.suffix not in NO_DATA and not hidden:
                found.setdefault(path.name, []).append(path)
    return found


def compare_data(before: Path, after: Path) -> int:
    """Compare the data files of two checkouts byte for byte and return how many BEFORE has.

    Raises
    ------
    DifferenceError
        AFTER lacks one, one differs, or there is none.
    """
    wanted, there = data_files(before), data_files(after)
    if not wanted:
        raise DifferenceError(f"no data files in {before}")
    for name, paths in wanted.items():
        if len(there.get(name, ())) < len(paths):
            raise DifferenceError(f"{name}: {len(paths)} before, {len(there.get(name, ()))} after")
        contents = {path.read_bytes() for path in there[name]}
        for path in paths:
            if path.read_bytes() not in contents:
                raise DifferenceError(f"{path.relative_to(before)}: other bytes after")
    return sum(map(len, wanted.values()))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments: list[str] | None = None) -> int:
    """Run and compare all cases; return 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path, help="checkout with the results that are right")
    parser.add_argument("after", type=Path, help="checkout that must give the same")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this case (repeat for more)")
    parser.add_argument("--work", type=Path, metavar="DIR", help="folder of all runs (default: a temporary one)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the runs of BEFORE here, and use them again")
    options = parser.parse_args(arguments)
    names = ["data_files", *(case.name for case in CASES)]
    unknown = sorted(set(options.only or ()) - set(names))
    if unknown:
        parser.error(f"no case {', '.join(unknown)}; there are {', '.join(names)}")
    chosen = options.only or names
    with tempfile.TemporaryDirectory() as scratch:
        work = (options.work or Path(scratch)).resolve()
        kept = options.keep.resolve() if options.keep else work / "before"
        sides = (
            Side("before", options.before.resolve(), kept),
            Side("after", options.after.resolve(), work / "after"),
        )
        return 1 if _compare_all(sides, chosen, keep=options.keep is not None) else 0


def _compare_all(sides: tuple[Side, Side], chosen: list[str], *, keep: bool) -> int:
    for side in sides:
        side.work.mkdir(parents=True, exist_ok=True)
        side.check()
    states = [side.state() for side in sides]
    different = 0
    spent = [0.0, 0.0]
    start = time.monotonic()
    if "data_files" in chosen:
        try:
            _say(f"equal      data_files: {compare_data(sides[0].checkout, sides[1].checkout)} files")
        except DifferenceError as error:
            different += 1
            _say(f"DIFFERENT  data_files: {error}")
    for case in (case for case in CASES if case.name in chosen):
        times = [0.0, 0.0]
        folders = []
        try:
            for index, side in enumerate(sides):
                folder, times[index] = run(case, side, state=states[index], keep=keep and index == 0)
                folders.append(folder)
            count = compare_folders(*folders)
        except (DifferenceError, subprocess.TimeoutExpired, ValueError) as error:
            different += 1
            _say(f"DIFFERENT  {case.name}: {error}")
        else:
            _say(f"equal      {case.name}: {count} files; {times[0]:.1f} and {times[1]:.1f} s")
        spent = [total + one for total, one in zip(spent, times, strict=True)]
    _say(
        f"{len(chosen) - different} of {len(chosen)} equal; processor time {spent[0]:.0f} and {spent[1]:.0f} s, "
        f"{time.monotonic() - start:.0f} s in all"
    )
    return different


if __name__ == "__main__":
    sys.exit(main())
