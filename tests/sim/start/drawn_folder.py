"""A folder of files that a mutated configuration names: shipped ones, small ones of every kind, damaged ones."""

import atexit
import itertools
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import yaml

SHIPPED = Path(__file__).parents[3] / "configs"
#: a ring of six routers, numbered around
_RING = [(router, (router + 1) % 6) for router in range(6)]
_TRACES = {
    "trace": ["init\nsend 1 0 100\nrecv 3 0 100\nfinalize\n", "init\nrecv 0 0 100\nfinalize\n",
              "init\ncompute 1e6\nfinalize\n", "init\nsend 0 0 100\nfinalize\n"],
    "trace_collective": ["init\nallreduce 64 0\nbarrier\nfinalize\n"] * 4,
    "trace_waits_for_ever": ["init\nrecv 1 0 100\nfinalize\n"] * 2,
    "trace_nonsense": ["init\nfly 1 2\n"],
}  # fmt: skip


def _next_hops() -> str:
    """Return tables of the ring: the shorter way around."""
    rows = []
    for here in range(6):
        ways = [(there - here) % 6 for there in range(6)]
        rows.append(",".join("-1" if way == 0 else str((here + (1 if way <= 3 else -1)) % 6) for way in ways))
    return "\n".join(rows) + "\n"


def _layers() -> str:
    """Return layers of the ring: one for the paths over the link 5–0, one for the others."""
    lines = []
    for source, target in itertools.permutations(range(6), 2):
        way = (target - source) % 6
        over = source + way > 5 if way <= 3 else source - (6 - way) < 0
        lines.append(f"{source},{target},{int(over)}")
    return "\n".join(lines) + "\n"


def _contents() -> dict[str, str]:
    edges = "\n".join(f"{a} {b}" for a, b in _RING) + "\n"
    nodes = [{"id": f"r{router}"} for router in range(6)]
    links = [{"source": f"r{a}", "target": f"r{b}"} for a, b in _RING]
    graph: dict[str, Any] = {"directed": False, "multigraph": False, "graph": {}, "nodes": nodes, "edges": links}
    anynet = "\n".join(f"router {a} node {a} router {b}" for a, b in _RING) + "\n"
    found = {
        "ring.edges": edges, "ring.json": json.dumps(graph), "ring6.anynet": anynet, "hops.csv": _next_hops(),
        "layers.csv": _layers(), "ranks.txt": "3\n0\n2\n1\n", "empty.txt": "", "nonsense.csv": "a,b\n1,\n\x07",
        "apart.edges": "0 1\n2 3\n", "loops.csv": "\n".join(",".join(["0"] * 6) for _ in range(6)),
        "nan.csv": "nan,nan\n",
    }  # fmt: skip
    for name, ranks in _TRACES.items():
        for rank, text in enumerate(ranks):
            found[f"{name}/rank-{rank}.txt"] = "".join(f"{rank} {line}\n" for line in text.splitlines())
    return found


@cache
def folder() -> Path:
    """Return the folder, made at the first call; it goes when the process ends."""
    made = Path(tempfile.mkdtemp(prefix="hopforge-drawn-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    shutil.copytree(SHIPPED, made, dirs_exist_ok=True)
    for name, text in _contents().items():
        path = made / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return made


@cache
def names() -> tuple[str, ...]:
    """Return what a key that names a file is given."""
    shipped = [path.name for path in SHIPPED.iterdir() if path.suffix in (".py", ".txt", ".anynet")]
    made = {name.split("/")[0] for name in _contents()}
    return (*sorted({*shipped, *made}), "nowhere.csv", ".", "shipped:nothing")


@cache
def shipped() -> tuple[dict[str, Any], ...]:
    """Return the configurations that come with hopforge, as data."""
    return tuple(yaml.safe_load(path.read_text()) for path in sorted(SHIPPED.glob("*.yml")))


_RING_FILES = ("ring.edges", "ring.json", "ring6.anynet")
_RING_OF: list[dict[str, Any]] = [{"kind": "edge_list", "file": name} for name in _RING_FILES]
BASES: list[dict[str, Any]] = [
    *(
        {"topology": topology, "routing": {"algorithm": "shortest_escape"}, "router": {"vc_release": "credits"}}
        for topology in _RING_OF
    ),
    {
        "topology": _RING_OF[0], "routing": {"algorithm": "tables"},
        "tables": {"scheme": "file", "file": "hops.csv", "layers": "file", "layers_file": "layers.csv"},
    },
    {"topology": _RING_OF[1], "routing": {"algorithm": "tables"}, "tables": {"scheme": "file", "file": "hops.csv"}},
    {
        "topology": {"kind": "mesh", "radices": [4, 4]},
        "routing": {"algorithm": "file", "file": "west_first.py"},
    },
    {
        "topology": {"kind": "mesh", "radices": [4, 4]}, "routing": {"algorithm": "dor"},
        "traffic": {"pattern": "file", "file": "master_pattern.py"},
    },
    *(
        {
            "topology": {"kind": "torus", "radices": [3, 3]}, "routing": {"algorithm": "dor"},
            "workload": {"kind": "trace", "file": name, "mapping": {"kind": "file", "file": "ranks.txt"}},
        }
        for name in _TRACES
    ),
]  # fmt: skip
"""Files that name files, before a key changes."""
