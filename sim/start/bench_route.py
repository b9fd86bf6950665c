"""Time and memory of routing tables and virtual layers: a process per case, and growth with the network."""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.irregular.channels import channel_list, check_next_hops
from hopforge.model.irregular.landmarks import fitting
from hopforge.model.irregular.layers import LAYERS, assign_layers
from hopforge.model.irregular.loren import loren_tables
from hopforge.model.irregular.neighbours import neighbours_of
from hopforge.model.irregular.shortest import shortest_next_hops
from hopforge.model.output.plots import PALETTE, Line, draw_lines, new_figure, save_figure, style_axes
from hopforge.model.topology import build

__all__ = ["CASES", "CLOCK", "LABELS", "RouteCase", "chosen_cases", "draw_growth", "measure_route", "time_case"]

CLOCK = "process time, one process per case; virtual layers: the check included, next hops not"
LABELS = {
    "acro": "ACRO", "lash": "LASH", "lash_tor": "LASH-TOR", "dfsssp": "DFSSSP", "loren": "LOREN, least tables",
    "thorup_zwick": "Thorup–Zwick, least tables",
}  # fmt: skip


@dataclass(frozen=True)
class RouteCase:
    """A method on a network.

    Attributes
    ----------
    method : str
        Method of virtual layers, or ``loren`` or ``thorup_zwick``.
    routers, degree : int
        Random regular graph; for ``loren`` a layout-conscious one with links of length 4.
    long : bool
        Takes minutes: with ``--full`` only.
    limit_s, limit_gib : float, optional
        The aims: processor seconds, memory.
    """

    method: str
    routers: int
    degree: int
    long: bool = False
    limit_s: float | None = None
    limit_gib: float | None = None


CASES: Sequence[RouteCase] = (
    *(RouteCase("acro", n, 8) for n in (64, 256, 1024)),
    RouteCase("acro", 4096, 8, long=True, limit_s=300, limit_gib=8),
    *(RouteCase("lash", n, 8, long=n > 256) for n in (64, 256, 1024)),
    *(RouteCase("lash_tor", n, 8, long=n > 256) for n in (64, 256, 1024)),
    *(RouteCase("dfsssp", n, 8, long=n > 256) for n in (64, 256, 1024)),
    *(RouteCase("thorup_zwick", n, 8) for n in (64, 256, 1024)),
    RouteCase("thorup_zwick", 4096, 8, long=True, limit_s=120),
    *(RouteCase("loren", n, 4) for n in (64, 256, 1024, 4096, 65_536)),
    RouteCase("loren", 1_048_576, 4, long=True, limit_s=180),
    RouteCase("acro", 1024, 16, limit_s=10),
    RouteCase("lash", 1024, 16, long=True, limit_s=300),
    RouteCase("lash_tor", 1024, 16, long=True, limit_s=300),
)
"""What `hopforge bench route` measures. The growth is drawn of degree 8, LOREN 4."""

_GROWTH_DEGREE = {"loren": 4}


def chosen_cases(full: bool, methods: Sequence[str]) -> list[RouteCase]:
    """Cases of some methods (none given: of all), long ones if wanted.

    Raises
    ------
    UserError
        An unknown method.
    """
    for method in methods:
        if method not in LABELS:
            raise UserError(f"--method: must be one of {', '.join(LABELS)}, not {method!r}")
    return [case for case in CASES if (full or not case.long) and (not methods or case.method in methods)]


def _work(method: str, routers: int, degree: int) -> Callable[[], int]:
    """Prepare a network, and give the function that is timed; it returns layers, or entries of the largest table."""
    kind = f"kind: random_regular, routers: {routers}, degree: {degree}"
    if method == "loren":
        kind = f"kind: layout_random, n: {round(routers**0.5)}, degree: {degree}, length: 4"
    config = parse_config(f"name: bench\ntopology: {{{kind}, seed: 1}}\n")
    neighbours = neighbours_of(build(config.topology, config.address))
    if method == "loren":
        return lambda: loren_tables(neighbours).least_entries
    if method == "thorup_zwick":
        generator = np.random.default_rng(1)
        return lambda: int(fitting(neighbours, "thorup_zwick", None, generator).entries.max())
    assert method in LAYERS
    channels = channel_list(neighbours)
    table = check_next_hops(shortest_next_hops(neighbours, "random", np.random.default_rng(1)), channels)
    return lambda: assign_layers(method, table, neighbours, channels).count


def time_case(method: str, routers: int, degree: int) -> dict[str, float]:
    """Measure in this process: processor seconds (once compiled), largest memory of the process in MiB, result."""
    _work(method, 16, 3)()  # compile
    work = _work(method, routers, degree)
    start = time.process_time()
    result = work()
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"cpu_s": seconds, "peak_mib": peak / (2**20 if sys.platform == "darwin" else 2**10), "result": result}


_CHILD = (
    "import json, sys; from hopforge.sim.start.bench_route import time_case; "
    "print(json.dumps(time_case({!r}, {}, {})))"
)


def measure_route(cases: Sequence[RouteCase]) -> Iterator[dict[str, Any]]:
    """Run every case in a process of its own and yield a row of a table for each.

    Raises
    ------
    UserError
        A case that failed, such as for want of memory.
    """
    for case in cases:
        child = _CHILD.format(case.method, case.routers, case.degree)
        done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise UserError(f"{LABELS[case.method]}, {case.routers} switches of degree {case.degree}: {reason}")
        yield {
            "method": case.method, "routers": case.routers, "degree": case.degree,
            **json.loads(done.stdout.splitlines()[-1]), "limit_s": case.limit_s, "limit_gib": case.limit_gib,
        }  # fmt: skip


def draw_growth(table: pd.DataFrame, folder: Path) -> None:
    """Draw ``growth.png``: seconds over switches, a line per method."""
    figure, (axes,) = new_figure(height_in=5)
    sizes = sorted(int(n) for n in table["routers"].unique())
    style_axes(
        axes, title="Processor time of tables and virtual layers", x_label="switches (degree 8; LOREN 4)",
        y_label="seconds", log_x=True, log_y=True, x_ticks=sizes,
    )  # fmt: skip
    lines = []
    for number, method in enumerate(LABELS):
        part = table[(table["method"] == method) & (table["degree"] == _GROWTH_DEGREE.get(method, 8))]
        if len(part):
            seconds = part["cpu_s"].clip(lower=1e-4)
            lines.append(Line(LABELS[method], part["routers"], seconds, color=number % len(PALETTE)))
    draw_lines(axes, lines)
    save_figure(figure, folder / "growth.png")
