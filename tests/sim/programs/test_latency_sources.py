"""Every place where a file gives a link its latency: what it adds to one message is what is defined, or it is told.

Two routers with a host each; rank 0 sends to rank 1 once, over one link between routers.
"""

from pathlib import Path
from typing import Any

import pytest

from hopforge.model.config.load import parse_config
from hopforge.sim.programs.app_result import AppRun
from hopforge.sim.programs.application import run_app
from hopforge.sim.start.preparation import for_command, prepare

CYCLE_NS = 64 * 8 / 100  # flits of 64 bytes at 100 Gb/s
CABLE_NS = 50.0
GRAPHML = (
    '<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    '<key id="l" for="edge" attr.name="latency_cycles" attr.type="int"/><graph edgedefault="undirected">'
    '<node id="0"/><node id="1"/><edge source="0" target="1">{}</edge></graph></graphml>'
)
JSON = '{{"nodes": [{{"id": 0}}, {{"id": 1}}], "links": [{{"source": 0, "target": 1{}}}]}}'
#: kind of file → suffix, its text without latencies, and with 40 cycles
FILES = {
    "anynet": (
        "anynet", "router 0 node 0 router 1\nrouter 1 node 1\n", "router 0 node 0 router 1 40\nrouter 1 node 1\n",
    ),
    "anynet, one way": (
        "anynet", "router 0 node 0 router 1\nrouter 1 node 1\n",
        "router 0 node 0 router 1 40\nrouter 1 node 1 router 0 3\n",
    ),
    "graphml": ("graphml", GRAPHML.format(""), GRAPHML.format('<data key="l">40</data>')),
    "node_link": ("json", JSON.format(""), JSON.format(', "latency_cycles": 40')),
}  # fmt: skip
PAIR = "{kind: mesh, radices: [2]}"
TIERS = "{{kind: tiers, hosts_per_router: 1, tiers: [{{shape: mesh, sizes: [2]{}}}]}}"
#: source → topology without it and with it, keys of router with it, its ns (None: not for programs) and cycles in net
SOURCES: dict[str, tuple[str, str, str, float | None, int]] = {
    "link_latency_cycles": (PAIR, PAIR, "link_latency_cycles: 40", None, 39),
    "link_ns": (PAIR, PAIR, "cycle_ns: 2.0, link_ns: 80", None, 39),
    "tiers": (TIERS.format(""), TIERS.format(", latency_ns: 245"), "", 245 - CABLE_NS, 38),
}
ENGINES = {
    "flow": "engine: flow, backend: embedded",
    "packet": "engine: packet",
    "packet, caches": "engine: packet, lookup: cache",
    "packet, misses": "engine: packet, lookup: miss",
}


def _text(topology: str, router: str, app: str, workload: str = "collectives: {bcast: binomial}") -> str:
    return (
        f"name: x\ntopology: {topology}\nrouter: {{vcs: 2, buffer_flits: 64, {router}}}\n{app}"
        f"workload: {{kind: collective, operation: bcast, ranks: 2, bytes: 512, {workload}}}\n"
        f"timing: {{cable_ns: {CABLE_NS}, link_gbps: 100}}\nrouting: {{algorithm: up_down}}\n"
    )


def _app(topology: str, router: str, engine: str) -> tuple[float, list[str]]:
    """Return the time of a program in ns, and what was told."""
    config = for_command("app", parse_config(_text(topology, router, f"app: {{{engine}}}\n"), keys=False))
    run = run_app(config)
    assert isinstance(run, AppRun)
    return run.found.makespan_s * 1e9, list(config.unused)


def _net(topology: str, router: str) -> tuple[float, list[str]]:
    """Return the time of a program in cycles of `hopforge net`, and what was told."""
    text = _text(topology, router, "traffic: {source: program, flit_bytes: 64}\n")
    config = for_command("net", parse_config(text, keys=False))
    run: Any = prepare("net", config)
    run.run(lambda done, of: None)
    return run.values()["makespan"], list(config.unused)


def _file(kind: str, folder: Path) -> tuple[str, str]:
    suffix, *texts = FILES[kind]
    found = []
    for number, text in enumerate(texts):
        path = folder / f"{number}.{suffix}"
        path.write_text(text, encoding="utf-8")
        found.append(f"{{kind: edge_list, file: {path}}}")
    return found[0], found[1]


@pytest.mark.parametrize("source", [*SOURCES, *FILES])
def test_cycles_of_net(source: str, tmp_path: Path) -> None:
    if source in FILES:
        before, after, router, cycles = *_file(source, tmp_path), "", 39
    else:
        before, after, router, _, cycles = SOURCES[source]
    (first, _), (second, told) = _net(before, ""), _net(after, router)
    assert second - first == cycles
    assert not [each for each in told if each.startswith(("router", "topology"))]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("source", [*SOURCES, *FILES])
def test_times_of_programs(source: str, engine: str, tmp_path: Path) -> None:
    if source in FILES:
        before, after, router, ns = *_file(source, tmp_path), "", None
    else:
        before, after, router, ns, _ = SOURCES[source]
    (first, _), (second, told) = _app(before, "", ENGINES[engine]), _app(after, router, ENGINES[engine])
    named = [each for each in told if each.startswith(("router.link", "topology.file"))]
    assert bool(named) == (ns is None)
    if engine == "flow":
        assert second - first == pytest.approx(ns or 0.0, abs=1e-6)
    else:
        assert second - first == pytest.approx(round((ns or 0.0) / CYCLE_NS) * CYCLE_NS, abs=1e-6)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("engine", ["flow", "packet"])
def test_collective_units_of_programs(kind: str, engine: str, tmp_path: Path) -> None:
    spans = []
    for topology in _file(kind, tmp_path):
        workload = "collectives: {barrier: in_network}"
        text = _text(topology, "", f"app: {{{ENGINES[engine]}}}\n", workload).replace("bcast", "barrier")
        run = run_app(for_command("app", parse_config(text.replace("bytes: 512, ", ""), keys=False)))
        assert isinstance(run, AppRun)
        spans.append(run.found.makespan_s)
    assert spans[0] == spans[1] > 0


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("command", ["net", "series", "sweep", "trace", "app", "hits", "collectives"])
def test_who_tells(kind: str, command: str, tmp_path: Path) -> None:
    """Routers whose links have ns, and commands with the times of `timing`, do not read cycles of a file."""
    before, after = _file(kind, tmp_path)
    for topology, model in ((before, "input_queued"), (after, "input_queued"), (after, "input_output_queued")):
        text = f"name: x\ntopology: {topology}\nrouter: {{model: {model}}}\nrouting: {{algorithm: shortest}}\n"
        told = [
            each for each in for_command(command, parse_config(text, keys=False)).unused if each.startswith("topology")
        ]
        ns = command in ("app", "hits", "collectives") or model == "input_output_queued"
        assert told == (["topology.file (latencies of its links)"] if topology == after and ns else [])


def test_flits_take_the_rate_of_timing() -> None:
    """Links of a program have `timing.link_gbps` in both engines, whatever `router.cycles_per_flit` says."""
    for engine in ENGINES.values():
        first, _ = _app(PAIR, "", engine)
        second, told = _app(PAIR, "cycles_per_flit: 3", engine)
        assert first == second
        assert "router.cycles_per_flit" in told
