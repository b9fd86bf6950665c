"""Quality of service: latency of an urgent class beside a flood of bulk packets, and shares of weighted classes.

No paper's figure: what stands beside ours is the urgent class alone, and the share that a weight promises.
"""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config import parse_config
from hopforge.model.output.plots import Line, draw_lines, new_figure, style_axes
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, number, pick
from hopforge.sim.run.simulation import Simulation

#: name → topology, routing, VCs of the urgent class and of the flood
NETWORKS = {
    "8x8 mesh": ("{kind: mesh, radices: [8, 8]}", "dor", 1, 3),
    "8x8 torus": ("{kind: torus, radices: [8, 8]}", "dor", 2, 2),
    "dragonfly, 72 hosts": ("{kind: dragonfly, p: 2, a: 4, h: 2}", "dragonfly_min", 3, 3),
    "fat tree, 64 hosts": ("{kind: fat_tree, k: 4, n: 3}", "anca", 1, 3),
}
URGENT = 0.02
FLOODS = (0.0, 0.2, 0.35, 0.5, 0.9)
#: routers that are compared: name → router.qos, and whether classes have VCs of their own
ROUTERS = {
    "no classes": ("none", False),
    "VCs alone": ("none", True),
    "weighted 1:1": ("weighted", True),
    "strict": ("strict", True),
}
WEIGHTS = ((1, 1), (1, 3), (1, 9), (1, 2, 5))


def isolation_text(network: str, router: str) -> str:
    """Return the configuration of a run with an urgent class and a flood."""
    topology, algorithm, urgent, flood = NETWORKS[network]
    qos, own = ROUTERS[router]
    vcs = (f", vcs: {urgent}", f", vcs: {flood}") if own else ("", "")
    return (
        f"name: qos\ntopology: {topology}\nrouting: {{algorithm: {algorithm}}}\n"
        f"router: {{vcs: {urgent + flood}, buffer_flits: 8, qos: {qos}}}\n"
        f"traffic:\n  classes:\n    - {{name: urgent, load: {URGENT}, priority: 1{vcs[0]}}}\n"
        f"    - {{name: flood, share: 1, packet_flits: 4{vcs[1]}}}\n"
        "simulation: {warmup_cycles: 4000, min_cycles: 10000, max_cycles: 10000}\n"
    )


def shares_text(weights: Sequence[int]) -> str:
    """Return the configuration of a run in which all hosts send all they can to one, in classes with weights."""
    classes = "".join(
        f"    - {{name: w{number}, load: 0.5, vcs: 2, weight: {weight}}}\n" for number, weight in enumerate(weights)
    )
    return (
        f"name: qos\ntopology: {NETWORKS['8x8 mesh'][0]}\n"
        f"router: {{vcs: {2 * len(weights)}, buffer_flits: 8, qos: weighted}}\n"
        f"traffic:\n  pattern: hotspot\n  share: 1.0\n  packet_flits: 4\n  classes:\n{classes}"
        "simulation: {warmup_cycles: 4000, min_cycles: 10000, max_cycles: 10000}\n"
    )


def _points(options: Options) -> list[Point]:
    networks = NETWORKS if options.full else list(NETWORKS)[:1]
    points: list[Point] = [
        {"what": "isolation", "network": network, "router": router, "flood": flood}
        for network in networks
        for router in ROUTERS
        for flood in FLOODS
    ]
    return points + [{"what": "shares", "weights": " ".join(map(str, weights))} for weights in WEIGHTS]


def _measure(point: Point, options: Options) -> list[Row]:
    if point["what"] == "shares":
        weights = [int(weight) for weight in str(point["weights"]).split()]
        found = Simulation(parse_config(shares_text(weights)), 1.0, options.seed).run().row()
        rates = [float(found[f"w{number}_accepted"]) for number in range(len(weights))]
        return [
            {**point, "class": number, "weight": weight, "accepted": rate, "share_percent": 100 * rate / sum(rates)}
            for number, (weight, rate) in enumerate(zip(weights, rates, strict=True))
        ]
    config = parse_config(isolation_text(str(point["network"]), str(point["router"])))
    found = Simulation(config, number(point, "flood"), options.seed).run().row()
    columns = ("urgent_accepted", "urgent_latency", "urgent_latency_p99", "urgent_latency_max", "flood_accepted")
    return [{**point, **{column: found[column] for column in columns}}]


def _compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
    found = []
    runs = data[data["what"] == "isolation"]
    for network in runs["network"].unique():
        here = runs[runs["network"] == network]
        for router in ROUTERS:
            for flood in FLOODS[1:]:
                taken = pick(here, "flood_accepted", router=router, flood=flood)
                for column, name in (("urgent_latency", "mean"), ("urgent_latency_p99", "99 %")):
                    alone = pick(here, column, router=router, flood=0.0)
                    text = f"beside: the same router without a flood; of the flood {taken:.3f} is accepted"
                    quantity = f"latency of the urgent class, {name}, {network}, {router}, flood {flood:g}"
                    ours = pick(here, column, router=router, flood=flood)
                    found.append(Comparison(quantity, "cycles", alone, ours, text))
    shares = data[data["what"] == "shares"]
    for weights in shares["weights"].unique():
        here = shares[shares["weights"] == weights]
        for row in here.to_dict("records"):
            promised = 100 * row["weight"] / here["weight"].sum()
            quantity = f"share of the class of weight {int(row['weight'])}, weights {weights.replace(' ', ':')}"
            text = "beside: its part of the weights; all hosts send to one, each class more than its share"
            found.append(Comparison(quantity, "%", promised, row["share_percent"], text))
    return found


def _draw(data: pd.DataFrame, options: Options) -> Figure:
    runs = data[(data["what"] == "isolation") & (data["network"] == next(iter(NETWORKS)))]
    figure, (left, right) = new_figure(panels=2)
    load = "offered flood (flits per host and cycle)"
    style_axes(left, title="Urgent class, 8x8 mesh", x_label=load, y_label="mean latency (cycles)", log_y=True)
    style_axes(right, title="99 %", x_label=load, y_label="latency (cycles)", log_y=True)
    for axes, column in ((left, "urgent_latency"), (right, "urgent_latency_p99")):
        lines = []
        for k, router in enumerate(ROUTERS):
            rows = runs[runs["router"] == router]
            lines.append(Line(router, rows["flood"], rows[column], k))
        draw_lines(axes, lines)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "routing.qos",
        "Quality of service: an urgent class beside a flood",
        "no paper: issue 18, docs/definitions/traffic-classes.md",
        (
            "urgent: 1 flit, 0.02 flits per host and cycle, uniform; flood: 4 flits, uniform; its packets are the same "
            "for all routers and floods",
            "no classes: both share all VCs, each has its own queue at the host",
            "8x8 mesh (--full: torus, dragonfly and fat tree, too); 10 000 cycles measured",
            "saturated runs are measured: the latency of the flood then depends on the length of the run and is not "
            "shown",
        ),
        _points,
        _measure,
        _compare,
        _draw,
        reference="expected",
        parallel=True,
    ),
)
