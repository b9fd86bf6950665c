"""Rates of the flow engine in mid-run, beside max-min fair rates that are filled from nothing."""

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.topology import build
from hopforge.sim.programs.flow_engine import FlowRun
from hopforge.sim.programs.flow_kernel import FINISHED, FULL, advance, begin
from hopforge.sim.programs.flow_state import ARRIVED, DIRTY, FREE, FRESH, MOVING
from hopforge.sim.traffic.placed import place_program

NETWORKS = [
    "{kind: dragonfly, p: 2, a: 4, h: 2, g: 5}", "{kind: torus, radices: [4, 3]}", "{kind: fat_tree, k: 3, n: 2}",
    "{kind: mesh, radices: [5]}",
]


def made(topology, workload, app=""):
    config = parse_config(
        f"name: x\ntopology: {topology}\nworkload: {workload}\napp: {{engine: flow, backend: embedded{app}}}\n"
    )
    network = build(config.topology, config.address)
    return FlowRun(config, network, place_program(config.workload, network, config.seed))


def alltoall(algorithm, size):
    return f"{{kind: collective, operation: alltoall, bytes: {size}, collectives: {{alltoall: {algorithm}}}}}"


def fair_rates(state, slots):
    """Progressive filling: all rates rise in proportion to their weights until a link or a bound stops them."""
    routes = state.route[state.message["route"][state.flow["message"][slots]]]
    ways = [state.route_link[r["first"]:r["last"]].tolist() for r in routes]
    weight = routes["weight"].tolist()
    whole = {link: float(state.link["capacity"][link]) for way in ways for link in way}
    for flow, bound in enumerate(routes["bound"].tolist()):
        whole["bound", flow] = bound
        ways[flow] = [*ways[flow], ("bound", flow)]
    room = dict(whole)
    rate, free = [0.0] * len(ways), set(range(len(ways)))
    while free:
        load = {}
        for flow in free:
            for link in ways[flow]:
                load[link] = load.get(link, 0.0) + weight[flow]
        step = min(room[link] / load[link] for link in load)
        for link, weights in load.items():
            room[link] -= step * weights
        for flow in free:
            rate[flow] += step * weight[flow]
        full = {link for link in load if room[link] <= 1e-9 * whole[link] < np.inf}
        assert full
        free = {flow for flow in free if not full.intersection(ways[flow])}
    return rate


def steps_of(run):
    """Yield after each point in time."""
    begin(run.state)
    while (code := advance(run.state, run.hops, 1)) != FINISHED:
        if code == FULL:
            run._add_slots()
            continue
        yield


@pytest.mark.parametrize("app", ["", ", sharing: equal", ", tcp_window_bytes: 4000", ", injection: queued"])
@pytest.mark.parametrize("topology", NETWORKS)
@pytest.mark.parametrize("workload", [
    alltoall("pairwise", 4096), alltoall("linear", 700), alltoall("bruck", 300),
    "{kind: npb, benchmark: is, class: S, ranks: 4}",
])
def test_rates_are_fair_at_every_moment(topology, workload, app):
    run = made(topology, workload, app)
    looked = 0
    for number, _ in enumerate(steps_of(run)):
        state = run.state
        if state.numbers[DIRTY] + state.numbers[FRESH] or looked > 60 or (looked > 20 and number % 7):
            continue
        free = set(state.free[: state.numbers[FREE]].tolist())
        slots = [s for s in range(len(state.flow)) if s not in free]
        slots = np.array([s for s in slots if state.message["phase"][state.flow["message"][s]] == MOVING], np.int64)
        if len(slots) < 2:
            continue
        looked += 1
        found = state.link["level"][state.flow["link"][slots]] * state.flow["weight"][slots]
        assert found == pytest.approx(fair_rates(state, slots), rel=1e-9)
    assert looked > 1
    assert (run.state.message["phase"] == ARRIVED).all()
