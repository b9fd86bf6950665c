"""Routing methods side by side, one table for each network: saturation and latency under six kinds of traffic.

`NETWORKS` and `METHODS` say what is compared, `worst_found` searches the worst permutation of each method.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.output.plots import draw_grouped_bars, new_figure, style_axes
from hopforge.model.routing import RoutingPlan
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.topology import Topology
from hopforge.model.topology.floor_plan import cabling
from hopforge.sim.bounds.permutation import assignment_steps, worst_permutation
from hopforge.sim.bounds.shares import PER_HOP, MinimalWays
from hopforge.sim.hits.energy import SwitchShape, switch_areas
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer
from hopforge.sim.reproduce.routing.load import carried_load, permutations, swapped, worst_found
from hopforge.sim.reproduce.routing.networks import METHODS, SIZES, TITLES, chosen_vcs, method_config, methods_of
from hopforge.sim.run.knee import Knee
from hopforge.sim.run.measurement import Measurement
from hopforge.sim.run.simulation import Simulation

#: kinds of traffic, in the order of the table
PATTERNS = ("uniform", "worst found", "shift", "transpose", "hot spot", "neighbour")
#: permutations that a search looks at, by size
_BUDGETS = dict(zip(SIZES, (24, 24, 10), strict=True))
#: hot spot: this share of the packets goes to one host of so many
_HOT_SHARE, _HOT_EVERY = 0.25, 16
#: packet times before a run is measured, and those measured; what learns takes more before
_WARMUP_US, _LEARNING_US, _MEASURE_US = 80.0, 400.0, 120.0
#: shares of all packets, and of those of one host, that may be missing at a load that is carried, and packets besides
_LOST, _LOST_OF_ONE, _FEW = 0.01, 0.02, 4
#: so near to a whole number of packets is one
_ROUNDED = 1e-6
#: a load at which latency is measured where none is carried
_LOWEST = 0.001
#: an assignment problem of more steps is left out
_MOST_STEPS = 3e9
#: bytes of a packet of one flit, whose areas are counted
_FLIT_BYTES = 128


def hosts_of(options: Options) -> int:
    """Return about how many hosts the networks have."""
    return options.hosts or SIZES[1 if options.full else 0]


def pattern_keys(pattern: str, topology: Topology) -> dict[str, Any]:
    """Section `traffic` of a kind of traffic that is not searched; any number of hosts will do.

    Raises
    ------
    KeyError
        Another name.
    """
    if pattern == "uniform":
        return {"pattern": "uniform", "include_self": False}
    if pattern == "hot spot":
        targets = tuple(range(_HOT_EVERY // 2, topology.hosts, _HOT_EVERY))
        return {"pattern": "hotspot", "share": _HOT_SHARE, "targets": targets}
    return _listed(named_permutations(topology.hosts)[pattern])


def named_permutations(hosts: int) -> dict[str, NDArray[np.int64]]:
    """Return destinations of each host by the name of the pattern."""
    every = np.arange(hosts)
    side = next(k for k in range(int(hosts**0.5), 0, -1) if hosts % k == 0)
    return {
        "shift": (every + hosts // 2) % hosts,
        "transpose": every // side + hosts // side * (every % side),
        "neighbour": (every + 1) % hosts,
    }


def _listed(goals: NDArray[np.int64]) -> dict[str, Any]:
    return {"pattern": "destinations", "destinations": tuple(goals.tolist())}


class Method:
    """A method on its network, ready for runs at any load under any traffic.

    Parameters
    ----------
    network, hosts, method
        Of `METHODS` and `SIZES`.
    seed : int
        Of the runs.
    """

    def __init__(self, network: str, hosts: int, method: str, seed: int) -> None:
        self.needed, self.vcs, self.topology = chosen_vcs(network, hosts, method)
        learns = method == "Q-adaptive"
        times = {"warmup_us": _LEARNING_US if learns else _WARMUP_US, "measure_us": _MEASURE_US, "precision": 1e-9}
        self._config = partial(method_config, network, hosts, method, self.vcs, simulation=times)
        self.seed, self._learns, self._proved, self._packet_cycles = seed, learns, False, 1
        self._runs: dict[tuple[Any, float], Measurement] = {}
        self.plan: RoutingPlan = routing_plan(self.config({"pattern": "uniform"}), self.topology)

    def config(self, traffic: dict[str, Any]) -> Config:
        """Return the whole configuration with a section `traffic`."""
        return self._config(traffic={"source": "interval", **traffic})

    def run(self, traffic: dict[str, Any], load: float) -> Measurement:
        """Simulate, each load of a traffic once; the first run proves that nothing can deadlock, under any traffic."""
        key = (tuple(traffic.items()), load)
        if key not in self._runs:
            self._runs[key] = self._simulated(traffic, load)
        return self._runs[key]

    def _simulated(self, traffic: dict[str, Any], load: float) -> Measurement:
        config = self.config(traffic)
        # what learns begins anew in each run
        plan = routing_plan(config, self.topology) if self._learns else self.plan
        run = Simulation(config, load, self.seed, self.topology, check=not self._proved, plan=plan)
        self._proved = True
        self._packet_cycles = run.built.flit_cycles
        return run.run()

    def carried(self, traffic: dict[str, Any], load: float) -> float:
        """Return a load if it is carried, else about what is.

        Saturated: of all packets more than 1 % are missing, beyond three deviations of as many random ones; or, where
        one host sends to one host, those of a host by 2 % and more than a few packets. The growth of the source queues
        would come too late: for a while the routers' buffers take what is too much. Hosts send whole packets at equal
        intervals: what is missing to a part of one does not count.
        """
        found = self.run(traffic, load)
        times = found.cycles / self._packet_cycles
        whole = int(load * times + _ROUNDED) / times
        noise = 3 / max(found.accepted * self.topology.hosts * times, 1.0) ** 0.5
        pairs = "destinations" in traffic
        full = found.accepted < whole * (1 - _LOST - noise)
        full = full or (pairs and found.accepted_worst * times < load * times * (1 - _LOST_OF_ONE) - _FEW)
        if not full:
            return load
        # beyond saturation full links may be shared unevenly, so that the worst pair gets less than it could
        about = (found.accepted * found.accepted_worst) ** 0.5 if pairs else found.accepted
        return min(about, load * (1 - _LOST))


def _method(point: Point) -> Method:
    return Method(str(point["network"]), integer(point, "hosts"), str(point["method"]), integer(point, "seed"))


def costs(point: Point) -> Row:
    """Return what the routers and cables of a point cost; nothing is simulated."""
    return _cost(_method(point))


def _measure(point: Point, options: Options) -> list[Row]:
    pattern, method = str(point["pattern"]), _method(point)
    worst: Row = {"worst": None, "tried": 0, "shortest_ways_bound": None, "ways_unique": None}
    if pattern == "worst found":
        traffic, knee, worst = _search(method, integer(point, "budget"))
    else:
        traffic = pattern_keys(pattern, method.topology)
        knee = carried_load(partial(method.carried, traffic))
    carried = knee.carried or 0.0
    half, full = method.run(traffic, carried / 2 or _LOWEST), method.run(traffic, 1.0)
    ns = half.cycle_ns
    return [{
        **point, **_cost(method), **worst,
        "saturation": carried, "saturated_at": knee.saturated, "accepted_at_1": full.accepted, "half_load": half.load,
        "latency_ns": half.latency * ns, "latency_p99_ns": half.latency_p99 * ns, "hops": half.hops - 1,
    }]  # fmt: skip


def _search(method: Method, budget: int) -> tuple[dict[str, Any], Knee, Row]:
    """Search the worst permutation of a method; returns it as section `traffic`, its knee, and how it was found."""
    topology, generator = method.topology, np.random.default_rng((method.seed, 29))
    ways = MinimalWays(topology)
    exact = None
    if assignment_steps(ways) <= _MOST_STEPS:
        exact = worst_permutation(topology, ways, PER_HOP, lambda done, total: None)
    found = worst_found(
        permutations(
            topology, ways.distance.astype(np.float64), exact, named_permutations(topology.hosts), generator
        ),
        lambda goals: swapped(topology, goals, generator),
        lambda goals, load: method.carried(_listed(goals), load), budget,
    )  # fmt: skip
    return _listed(found.goals), found.knee, {
        "worst": found.name, "tried": found.tried,
        "shortest_ways_bound": None if exact is None else 1 / max(exact.load, 1.0),
        "ways_unique": bool((ways.paths <= 1).all()),
    }  # fmt: skip


def _cost(method: Method) -> Row:
    """Cables, and the area of all routers."""
    topology, config = method.topology, method.config({"pattern": "uniform"})
    cables = cabling(topology)
    buffers = config.router.buffer_flits + config.router.output_buffer_flits
    ports = np.bincount(((topology.peer_router >= 0) | (topology.host_at >= 0)).sum(axis=1))
    shapes = [SwitchShape(radix, method.vcs, buffers, 8 * _FLIT_BYTES) for radix in range(len(ports))]
    areas = [sum(switch_areas(config, shape, cached=False).values()) for shape in shapes]
    return {
        "routers": topology.routers, "hosts_there": topology.hosts, "ports": topology.max_ports,
        "vcs_needed": method.needed, "vcs": method.vcs, "links": cables.cables, "cable_places": cables.total,
        "area_mm2": float(ports @ np.array(areas)) * 1e-6,
    }  # fmt: skip


def _points(network: str, options: Options) -> list[Point]:
    hosts = hosts_of(options)
    return [
        {"network": network, "hosts": hosts, "method": method, "pattern": pattern, "seed": options.seed,
         "budget": _BUDGETS[hosts] if pattern == "worst found" else 0}
        for method in methods_of(network, hosts)
        for pattern in PATTERNS
    ]  # fmt: skip


def _methods(data: pd.DataFrame) -> list[str]:
    return [name for name in METHODS[str(data["network"].iloc[0])] if name in set(data["method"])]


def _bound(row: dict[Any, Any]) -> float | None:
    """Return what no load can exceed, where it is known: hosts of a hot spot, the fullest channel of only ways."""
    if row["pattern"] == "hot spot":
        hosts = int(row["hosts_there"])
        hot = len(range(_HOT_EVERY // 2, hosts, _HOT_EVERY))
        return float(1 / (_HOT_SHARE * hosts / hot + 1 - _HOT_SHARE))
    if row["pattern"] == "worst found" and row["ways_unique"] is True and str(row["method"]).startswith("minimal"):
        return float(row["shortest_ways_bound"])
    return None


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    for pattern in PATTERNS:
        for row in data[data["pattern"] == pattern].to_dict("records"):
            note = f"latency {row['latency_ns']:.0f} ns at {row['half_load']:.3g}, 99 % {row['latency_p99_ns']:.0f} ns"
            note += f"; {row['hops']:.2f} hops; accepted {row['accepted_at_1']:.3f} at 1"
            if pattern == "worst found":
                note += f"; {row['worst']}, {int(row['tried'])} tried"
                bound = row["shortest_ways_bound"]
                known = bound is not None and np.isfinite(bound)
                note += (
                    f"; exact for even shortest ways {bound:.4g}" if known else "; the exact one was too long to find"
                )
            words = f"{pattern}, {row['method']}: saturation"
            found.append(Comparison(words, "flits", _bound(row), float(row["saturation"]), note))
    for name in _methods(data):
        row = data[data["method"] == name].iloc[0].to_dict()
        note = f"{int(row['routers'])} routers of {int(row['ports'])} ports, {int(row['hosts_there'])} hosts"
        note += f"; {int(row['links'])} cables, {row['cable_places']:.0f} places in all"
        note += f"; needs {int(row['vcs_needed'])} of {int(row['vcs'])} VCs"
        area = 1000 * float(row["area_mm2"]) / float(row["hosts_there"])
        found.append(Comparison(f"area of routers a host, {name}", "1000 µm²", None, area, note))
    return found


def _table(data: pd.DataFrame, options: Options) -> pd.DataFrame:
    """One row for each method: saturation and latency at half of it for each kind of traffic, then what it costs."""
    rows = []
    for name in _methods(data):
        part = data[data["method"] == name].set_index("pattern")
        first = part.iloc[0]
        row = {"method": name, "VCs needed": f"{first['vcs_needed']:.0f} of {first['vcs']:.0f}"}
        for pattern in PATTERNS:
            if pattern in part.index:
                one = part.loc[pattern]
                row[pattern] = f"{one['saturation']:.3f}, {one['latency_ns']:.0f} ns"
        rows.append(row | {"mm² a host": f"{first['area_mm2'] / first['hosts_there']:.3f}"})
    return pd.DataFrame(rows)


def _draw(network: str, data: pd.DataFrame, options: Options) -> Figure:
    figure, panels = new_figure(panels=2, columns=1, width_in=12)
    hosts = int(data["hosts_there"].iloc[0])
    columns = {"saturation": ("saturation", "flits per host and cycle"), "latency_ns": ("latency at half of it", "ns")}
    for axes, (column, (title, label)) in zip(panels, columns.items(), strict=True):
        style_axes(axes, title=f"{TITLES[network]}, {hosts} hosts: {title}", x_label="", y_label=label)
        values = data.pivot_table(index="pattern", columns="method", values=column).reindex(PATTERNS)
        draw_grouped_bars(axes, groups=PATTERNS, series={name: values[name].to_list() for name in _methods(data)})
    return figure


_ASSUMPTIONS = (
    "one router for all: definitions/router-models.md, packets of one flit, 32 ns each on a link, links of 50 ns; "
    "8 virtual channels (more where a method needs more) share 128 packets at an input and as many at an output",
    "a load of 1 is one packet per host and 32 ns; saturation: the highest load of which at most 1 % is missing, "
    "of no pair of a permutation more than 2 %; known within 3 %",
    f"shift by half of the hosts; neighbour: the next host; transpose of the hosts in a near-square; hot spot: "
    f"{_HOT_SHARE:.0%} of the packets to every {_HOT_EVERY}th host",
    "worst found: a search of its own for each method, that knows the network; the exact worst one of shortest ways, "
    "the patterns, and those in which all hosts of a router send to one router",
    "area: model of guides/energy.md at 45 nm, without lookup; cables between routers, lengths on our floor plan",
)

REPRODUCTIONS: Sequence[Reproduction] = tuple(
    Reproduction(
        f"routing.{network}", f"Routing methods on one network: {title}",
        "no paper's figure: methods of literature side by side", _ASSUMPTIONS,
        partial(_points, network), _measure, _compare, partial(_draw, network),
        uses=("hosts",), reference="bound", table=_table, parallel=True,
    )
    for network, title in TITLES.items()
)  # fmt: skip
