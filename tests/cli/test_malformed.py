"""A net of malformed inputs: whatever is in a file or an option, a command ends with one clear line.

Valid inputs of every kind are mutated. Each run must end with exit status 0 (still valid) or 2, with lines behind the
name of the program on stderr, without a traceback, within 5 s of processor time, and without a new file if it failed.
A sample runs in processes of their own with 1 GB of memory. `make study` plays all, the normal tests a sample.
"""

import contextlib
import io
import os
import random
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hopforge import cli

MEMORY_BYTES = 1 << 30
CPU_S = 5.0
COMPILE_S = 90.0  # of a first run with a kind of file, and of functions of the user's: kernels are compiled

MESH = "topology: {kind: mesh, radices: [2, 2]}\n"
SHORT = "simulation: {load: 0.1, warmup_cycles: 50, min_cycles: 1000, max_cycles: 2000}\n"
TRACE = "".join(
    f"{rank} init\n{rank} compute 1000\n{rank} isend {(rank + 1) % 4} 0 800 6\n{rank} irecv {(rank - 1) % 4} 0 800 6\n"
    f"{rank} waitall 2\n{rank} allreduce 8 10 6\n{rank} alltoallv 8 2 2 2 2 8 2 2 2 2 6 6\n{rank} finalize\n"
    for rank in range(4)
)
HOPS = "0,1,2,1\n0,1,0,3\n0,0,2,3\n1,1,2,3\n"
LAYERS = "".join(f"{a},{b},0\n" for a in range(4) for b in range(4) if a != b)
GRAPHML = (
    '<?xml version="1.0"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    '<key id="k" for="node" attr.name="kind" attr.type="string"/>\n<key id="x" for="node" attr.name="x" '
    'attr.type="double"/>\n<key id="y" for="node" attr.name="y" attr.type="double"/>\n'
    '<graph edgedefault="undirected">\n'
    '<node id="r0"><data key="x">0</data><data key="y">1</data></node>\n<node id="r1"><data key="x">1</data>'
    '<data key="y">0</data></node>\n<node id="h0"><data key="k">host</data></node>\n'
    '<edge source="r0" target="r1"/>\n<edge source="h0" target="r1"/>\n</graph>\n</graphml>\n'
)
NODE_LINK = (
    '{"directed": false, "multigraph": true, "graph": {}, "nodes": [{"id": "r0", "x": 0, "y": 1}, {"id": "r1", '
    '"x": 1.5, "y": 0}, {"id": "h0", "kind": "host"}], "edges": [{"source": "r0", "target": "r1", "key": 0}, '
    '{"source": "h0", "target": "r0", "key": 0}]}\n'
)
RELATION = (Path(__file__).parents[2] / "configs" / "west_first.py").read_text()
PATTERN = (Path(__file__).parents[2] / "configs" / "master_pattern.py").read_text()
LIBRARY = (
    "library (tiny) {\n  nom_voltage : 1.1;\n  cell (INV) {\n    area : 1.0;\n"
    "    pin (A) { direction : input; }\n  }\n}\n"
)


JOB_LOG = "; Version: 2.2\n; MaxNodes: 8\n; MaxProcs: 16\n\n" + "".join(
    f"{job} {9 * job}.5 -1 {7 * job} {1 + job % 9} -1 -1 -1 {8 * job} -1 1 1 1 -1 1 1 -1 -1\n" for job in range(1, 9)
)


class Kind(NamedTuple):
    """A file that is mutated, what is beside it, and the commands that read it."""

    name: str
    content: str
    beside: dict[str, str]
    commands: tuple[tuple[str, ...], ...]


def _edge_list(name: str, content: str, *, form: str = "") -> Kind:
    config = f"name: x\ntopology: {{kind: edge_list, file: {name}{form}}}\n"
    return Kind(name, content, {"x.yml": config}, (("check", "x.yml"), ("topology", "x.yml", "--export", "edges")))


def _yaml(content: str, *commands: str) -> Kind:
    return Kind("x.yml", content, {}, (("check", "--quick", "x.yml"), *(tuple(one.split()) for one in commands)))


KINDS: dict[str, Kind] = {
    "job log": Kind("x.swf", JOB_LOG, {}, (("jobs", "x.swf"), ("jobs", "x.swf", "--nodes", "4", "--interference"))),
    "yaml": _yaml(
        f"name: x\nseed: 3\n{MESH}lookup:\n  cache: {{entries: 64, ways: 4}}\naddress: {{width_bits: 24}}\n",
        "check x.yml",
    ),
    "yaml workload": _yaml(
        "name: x\ntopology: {kind: dragonfly, p: 2, a: 2, h: 1}\nworkload: {kind: uniform, packets_per_host: 3}\n"
        "energy: {buffer_pj_per_bit: 0.1}\n", "hits x.yml",
    ),
    "yaml network": _yaml(
        f"name: x\n{MESH}router: {{vcs: 2, buffer_flits: 4}}\nrouting: {{algorithm: dor}}\n"
        f"traffic: {{pattern: uniform, packet_flits: 2}}\n{SHORT}", "check x.yml",
    ),
    "yaml variants": _yaml(
        f"name: x\n{MESH}failed: {{links: [[0, 1]]}}\nsimulation:\n  loads: [0.1, 0.2]\n  variants:\n"
        "    a: {router.vcs: 2}\n    b: {topology.radices: [3, 3]}\n",
    ),
    "yaml program": _yaml(
        f"name: x\n{MESH}workload: {{kind: npb, benchmark: ep, class: S, ranks: 4}}\napp: {{engine: flow, backend: "
        "embedded}\ntiming: {cable_ns: 5}\n", "workload x.yml", "app x.yml",
    ),
    "yaml tables": _yaml(
        "name: x\ntopology: {kind: random_regular, routers: 9, degree: 4}\ntables: {scheme: loren, layers: acro, "
        "patterns: 2}\n", "check x.yml",
    ),
    "trace": Kind(
        "t.txt", TRACE,
        {"x.yml": f"name: x\n{MESH}workload: {{kind: trace, file: t.txt}}\napp: {{backend: embedded}}\n"},
        (("workload", "x.yml"), ("app", "x.yml"), ("hits", "x.yml")),
    ),
    "mapping": Kind(
        "m.txt", "0\n1 # second\n3\n2\n",
        {"t.txt": TRACE, "x.yml": f"name: x\n{MESH}workload: {{kind: trace, file: t.txt, mapping: {{kind: file, file: "
         "m.txt}}\napp: {backend: embedded}\n"}, (("app", "x.yml"),),
    ),
    "edges": _edge_list("n.txt", "# ring\n0 1\n1 2\n2 3\n3 0\n"),
    "places": _edge_list("n.txt", "0,0 0,1\n0,1 1,1\n1,1 1,0\n"),
    "anynet": _edge_list("n.anynet", "router 0 node 0 router 1 5\nrouter 1 node 1 router 2\nnode 2 router 2\n"),
    "graphml": _edge_list("n.graphml", GRAPHML),
    "node link": _edge_list("n.json", NODE_LINK),
    "next hops": Kind(
        "hops.csv", HOPS, {"x.yml": f"name: x\n{MESH}tables: {{scheme: file, file: hops.csv, patterns: 2}}\n"},
        (("check", "x.yml"),),
    ),
    "layers": Kind(
        "layers.csv", LAYERS,
        {"hops.csv": HOPS, "x.yml": f"name: x\n{MESH}tables: {{scheme: file, file: hops.csv, layers: file, "
         "layers_file: layers.csv, patterns: 2}\n"}, (("check", "x.yml"),),
    ),
    "liberty": Kind(
        "cells.lib", LIBRARY, {"x.yml": f"name: x\n{MESH}"},
        (("timing", "x.yml", "--liberty", "cells.lib", "--part", "none"),),
    ),
    "relation": Kind(
        "r.py", RELATION,
        {"x.yml": f"name: x\n{MESH}router: {{vcs: 2}}\nrouting: {{algorithm: file, file: r.py}}\n{SHORT}"},
        (("net", "x.yml"),),
    ),
    "pattern": Kind(
        "p.py", PATTERN,
        {"x.yml": f"name: x\n{MESH}router: {{vcs: 2}}\ntraffic: {{pattern: file, file: p.py}}\n{SHORT}"},
        (("net", "x.yml"),),
    ),
    "results": Kind(
        "results/runs.csv", "load,seed,latency\n0.1,1,20.5\n0.2,1,25.25\n", {"results/b/metadata.json": "{}"},
        (("report", "results"),),
    ),
    "metadata": Kind(
        "results/metadata.json", '{"command": ["hopforge", "net", "x.yml"], "seed": 1, "config": {"name": "x", '
        '"topology": {"kind": "mesh", "radices": [2, 2]}}}', {"results/runs.csv": "a,b\n1,2\n"},
        (("report", "results"),),
    ),
    "routes": Kind(
        "t.txt", "width: 8\nhops: 2\n0/0 0\n0x40/2 1\n65/8 0\n", {},
        (("rules", "t.txt", "--size", "4", "--lookups", "50", "--updates", "5"),),
    ),
    "handle and tag": Kind(
        "h.yml", "kind: torus\nk: [3, 2]\nfunction:\n  loop: ij\n  handle: d[i] != c[i] and j == i\n"
        "  tag: (i, sign(d[i] - c[i]) * (1 if abs(d[i] - c[i]) <= k[i] // 2 else -1))\n  default: (n, 0)\n", {},
        (("reduction", "h.yml"),),
    ),
    "packets of a link": Kind(
        "p.csv", "destination,bytes,source\n3,84,1\n4,1538,2\n3,84,1\n",
        {"x.yml": f"name: x\n{MESH}wavelengths: {{packets: p.csv, lanes: [1, 2]}}\n"}, (("wavelengths", "x.yml"),),
    ),
    "acl": Kind(
        "t.csv", "hops: a b\npriority,ip:8,port:4,out\n3,0x40/2,*,a\n9,1,3/0x3,b\n", {},
        (("rules", "t.csv", "--size", "4", "--lookups", "50", "--updates", "5", "--policy", "cover"),),
    ),
    "reference": Kind(
        "runs.csv", "config,sim_type,offered_flits,stable,pkt_lat,acc_flit_rate,router_hops\nm,latency,0.1,1,9,0.1,2\n",
        {"c/m.yml": f"name: m\n{MESH}"},
        (("reproduce", "booksim.m", "--reference", "runs.csv", "--configs", "c"),),
    ),
}  # fmt: skip

WORDS = (
    "", "-1", "0", "1e999", "-1e-999", ".nan", "nan", "inf", "[]", "{}", "null", "~", "true", "'", '"', "#", "9" * 25,
    "9" * 5000, "0x" + "f" * 40, "1_0", "٣", "é", "\ufeff", "\u2028", "\x00", "\x1b[2J", "a" * 100_000, "&a 1", "*a",
    "!!int 3", "<<: {a: 1}", "<x", "..", "../../x", "/dev/zero", "/", "%s", "{0}", "$HOME", "-", "--", ",", ":", ": ",
    "1 2 3", "- - -", "\t", "\r", "]", "}", "&", "<", "|", ">", "%", "@", "`", "1.5", "-0", "+1", "255", "65536",
)  # fmt: skip


def mutations(text: str, draw: random.Random) -> Iterator[bytes]:
    """Mutations of a text without end: characters, words, lines, bytes, encodings."""
    lines, raw = text.splitlines(keepends=True), text.encode()
    words = [(place.start(), place.end()) for place in _WORD.finditer(text)]
    fixed = [
        b"", b"\n", b"\0", b"\xef\xbb\xbf" + raw, text.encode("utf-16"), raw.replace(b"\n", b"\r\n"),
        raw.replace(b"\n", b"\r"), raw.replace(b" ", b"\t"), raw * 2, raw[::-1], b"\x89PNG\r\n", bytes(70_000),
        bytes(range(256)), raw + b"\xff", b"[" * 20_000, b"{" * 20_000, b"a" * 200_000, raw.replace(b"0", b"9" * 5000),
        raw.upper(), b"\x1f\x8b" + raw, b"PK\x03\x04" + raw, b"\n" * 50_000, b"- " * 5000,
    ]  # fmt: skip
    yield from fixed
    while True:
        kind = draw.randrange(8)
        if kind == 0:
            yield raw[: draw.randrange(len(raw))]
        elif kind == 1:
            place = draw.randrange(len(raw))
            yield raw[:place] + bytes([draw.randrange(256)]) + raw[place + 1 :]
        elif kind == 2:
            number = draw.randrange(len(lines))
            yield "".join(lines[:number] + lines[number + 1 :]).encode()
        elif kind == 3:
            number = draw.randrange(len(lines))
            yield "".join([*lines[:number], lines[draw.randrange(len(lines))], *lines[number:]]).encode()
        else:
            begin, end = draw.choice(words)
            yield f"{text[:begin]}{draw.choice(WORDS)}{text[end:]}".encode()


_WORD = re.compile(r"[\w.]+")


class Run(NamedTuple):
    """How a command ended."""

    status: object
    out: str
    err: str
    cpu_s: float


def in_process(words: tuple[str, ...]) -> Run:
    """Run a command here."""
    out, err, begin = io.StringIO(), io.StringIO(), time.process_time()
    before = sys.argv
    sys.argv = ["hopforge", *words]
    status: object = None
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                cli.main()
            except SystemExit as end:
                status = end.code
    finally:
        sys.argv = before
    return Run(status, out.getvalue(), err.getvalue(), time.process_time() - begin)


def in_child(words: tuple[str, ...]) -> Run:
    """Run a command in a process with 1 GB of memory beyond what it has when it begins."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (30, 30))

    begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(
        [sys.executable, "-m", "hopforge", *words], capture_output=True, text=True, errors="replace", check=False,
        timeout=300, preexec_fn=limit, stdin=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begin
    return Run(done.returncode, done.stdout, done.stderr, used - 3.0)  # without what a start takes


#: commands that end with exit status 1 if what the file describes is no good
CHECKS = {"reduction"}


def wrong(run: Run, before: set[str], folder: Path, limit_s: float, command: str = "") -> str:
    """What is wrong with how a command ended; empty if nothing is."""
    lines = run.err.splitlines()
    left = sorted(files(folder) - before)
    hidden = [name for name in left if "/." in f"/{name}"]
    if run.status not in ((0, 1, 2) if command in CHECKS else (0, 2)):
        return f"exit status {run.status}: {run.err[-300:]}"
    if "Traceback" in run.err or "in hopforge itself" in run.err:
        return f"not a clear line: {run.err[-300:]}"
    if run.status == 2 and not (lines and all(line.startswith("hopforge: ") for line in lines)):
        return f"no clear line: {run.err[:300]!r}"
    if len(lines) > 21 or any(len(line) > 2200 for line in lines):
        return f"{len(lines)} lines, the longest of {max(map(len, lines))} characters"
    if (run.status == 2 and left) or hidden:
        return f"left {left[:3]}"
    if run.cpu_s > limit_s:
        return f"{run.cpu_s:.1f} s"
    return ""


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def play(
    cases: Iterator[tuple[str, dict[str, bytes], tuple[str, ...]]],
    folder: Path,
    start: Callable[[tuple[str, ...]], Run] = in_process,
) -> tuple[int, list[str]]:
    """Run cases (name, files, command), each in a folder of its own; return their number and what is wrong."""
    count, found, used = 0, [], set()
    before = Path.cwd()
    for name, contents, words in cases:
        place = folder / str(count)
        for file, content in contents.items():
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            (place / file).write_bytes(content)
        os.chdir(place)
        try:
            there, quick = files(place), (name, words[0]) in used and not any(file.endswith(".py") for file in contents)
            used.add((name, words[0]))
            run = start(words)
            limit_s = CPU_S if quick and run.status != 0 else COMPILE_S  # what is accepted may need another kernel
            reason = wrong(run, there, place, limit_s, words[0])
        finally:
            os.chdir(before)
        count += 1
        if reason:
            found.append(f"{place}: {name}: hopforge {' '.join(words)[:100]}: {reason}")
            if os.environ.get("HOPFORGE_SHOW"):
                sys.stderr.write(f"{found[-1]}\n")
    return count, found


def file_cases(names: list[str], each: int, seed: int) -> Iterator[tuple[str, dict[str, bytes], tuple[str, ...]]]:
    """`each` mutations of the file of each kind, read by its commands in turn."""
    for name in names:
        kind, draw = KINDS[name], random.Random(f"{seed} {name}")
        beside = {file: text.encode() for file, text in kind.beside.items()}
        source = mutations(kind.content, draw)
        skipped = draw.randrange(23) if each < 23 else 0  # a sample takes others of the fixed ones for each kind
        for _ in range(skipped):
            next(source)
        for number in range(each):
            yield name, {**beside, kind.name: next(source)}, kind.commands[number % len(kind.commands)]


#: commands with a file, and those that take a value without beginning anything long
COMMANDS = (
    "check", "check --quick", "topology", "bounds", "route", "hits", "wavelengths", "net", "series", "sweep", "trace",
    "app", "workload", "gen lookup", "gen router", "gen network", "gen tables", "gen q-table", "lint", "cosim",
    "gen collectives", "gen rule-cache", "collectives", "mutate", "synth", "demo", "timing --liberty c.lib",
    "reduction",
)  # fmt: skip
OPTIONS = {
    "net": ("--load", "--seed"), "series": ("--load", "--seed"), "sweep": ("--workers",),
    "trace": ("--load", "--seed", "--cycles", "--slowest", "--after", "--packet"),
    "app": ("--engine", "--backend", "-n"),
    "route": ("--fail", "--fail-switch"), "topology": ("--export", "-o"), "gen router": ("--router", "--period-ns"),
    "lint": ("--router", "--what"), "cosim": ("--part", "--simulator", "--lookups", "--load", "--cycles", "--seed"),
    "mutate": ("--count", "--block", "--seed", "--seed-from-commit"), "synth": ("--block", "--blocks", "--recipe"),
    "demo": ("--liberty",), "hits": ("-o",), "workload": ("-o",),
    "jobs": ("--nodes", "--dims", "--ppn", "--scheduler", "--placement", "--seed", "--generate", "--count"),
}  # fmt: skip


def command_cases(seed: int, each: int) -> Iterator[tuple[str, dict[str, bytes], tuple[str, ...]]]:
    """Every command with files that are no configuration, unknown options, and values that no option takes."""
    draw = random.Random(seed)
    for command in COMMANDS:
        source = mutations("name: x\ntopology: {kind: mesh}\n", draw)  # lacks its radices
        for _ in range(each):
            yield "no configuration", {"x.yml": next(source)}, (*command.split(), "x.yml")
        yield "no file", {"y.yml": b""}, (*command.split(), "none.yml")
        yield "a folder", {"y.yml": b""}, (*command.split(), ".")
        yield "unknown option", {"x.yml": b""}, (*command.split(), "x.yml", "--nonsense")
    for command, options in OPTIONS.items():
        for option in options:
            values = [word for word in WORDS if "\0" not in word]
            for value in draw.sample(values, min(each, len(values))):
                yield "a value", {"x.yml": b"name: x\n"}, (*command.split(), "x.yml", f"{option}={value}"[:120_000])


def _tell(found: list[str]) -> str:
    return "\n".join([f"{len(found)} cases", *found[:40]])


SLOW = {"relation", "pattern", "results", "metadata", "reference", "liberty"}  # to start, or to compile


def test_a_sample(tmp_path: Path) -> None:
    count, found = play(file_cases([name for name in KINDS if name not in SLOW], 2, 1), tmp_path / "files")
    more, also = play(command_cases(1, 1), tmp_path / "commands")
    assert count + more >= 80
    assert not found + also, _tell(found + also)


def test_a_sample_in_processes_of_their_own(tmp_path: Path) -> None:
    cases = [*file_cases(["yaml", "trace"], 30, 2)]
    count, found = play(iter(cases[28::30]), tmp_path, in_child)
    assert count == 2
    assert not found, _tell(found)


@pytest.mark.study
def test_all(tmp_path: Path) -> None:
    fast, slow = [name for name in KINDS if name not in SLOW], sorted(SLOW)
    count, found = play(file_cases(fast, 120, 3), tmp_path / "fast")
    more, also = play(file_cases(slow, 40, 3), tmp_path / "slow")
    last, too = play(command_cases(3, 25), tmp_path / "commands")
    assert count + more + last >= 2500
    assert not found + also + too, _tell(found + also + too)


@pytest.mark.study
def test_all_in_processes_of_their_own(tmp_path: Path) -> None:
    count, found = play(file_cases(list(KINDS), 8, 4), tmp_path / "files", in_child)
    assert count >= 150
    assert not found, _tell(found)


def test_the_valid_inputs_are_valid(tmp_path: Path) -> None:
    """A mutation of something broken would show nothing."""
    fast = [name for name in KINDS if name not in SLOW]
    cases = [
        (name, {**{file: text.encode() for file, text in KINDS[name].beside.items()}, KINDS[name].name:
                KINDS[name].content.encode()}, command)
        for name in fast for command in KINDS[name].commands
    ]  # fmt: skip
    found = []
    for name, contents, words in cases:
        place = tmp_path / name.replace(" ", "_")
        place.mkdir(exist_ok=True)
        for file, content in contents.items():
            (place / file).write_bytes(content)
        with contextlib.chdir(place):
            run = in_process(words)
        unused = re.compile(r"hopforge: hopforge \w+ does not use .*")
        said = [line for line in run.err.splitlines() if not unused.fullmatch(line)]
        if run.status != 0 or said:
            found.append(f"{name}: {' '.join(words)}: {run.status} {run.err[:300]}")
    assert found == []
