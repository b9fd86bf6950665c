"""Networks of golden routers against the simulator: every flit is sent and taken in the same cycle."""

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.router.flit import PortInputs
from hopforge.model.router.golden import RouterModel
from hopforge.model.router.links import End, topology_hosts, topology_links
from hopforge.model.router.network import HostModel, NetworkModel, Packet
from hopforge.model.router.next_routes import with_next_routes
from hopforge.model.router.params import Route, RouterParams
from hopforge.model.topology import Topology
from hopforge.sim.run.simulation import Simulation

SENT, TAKEN = 2, 3  # kinds of the simulator's log


def mesh_routes(topology: Topology, router: int, adaptive: bool) -> tuple[Route, ...]:
    """Dimension order; or every shortest way, with dimension order as escape."""
    radices = topology.params["radices"]
    routes = [Route(0)] * (int(topology.host_address.max()) + 1)
    hosts = topology.hosts // topology.routers

    def place(number: int) -> list[int]:
        return [number // int(np.prod(radices[:i])) % k for i, k in enumerate(radices)]

    for host in range(topology.hosts):
        here, there = place(router), place(int(topology.host_router[host]))
        ways = [hosts + 2 * i + (b < a) for i, (a, b) in enumerate(zip(here, there, strict=True)) if a != b]
        if not ways:
            route = Route(1 << int(topology.host_port[host]))
        elif adaptive:
            route = Route(sum(1 << way for way in ways), 0, ways[0])
        else:
            route = Route(1 << ways[0])
        routes[int(topology.host_address[host])] = route
    return tuple(routes)


def run_both(
    settings: dict, *, seed: int, adaptive: bool, load: float, latency: int, cycles: int = 900, slow: str = ""
) -> None:
    lines = ["name: test", "topology: {kind: mesh, radices: [3, 2]}"]
    latencies = {"link_latency_cycles": latency, "host_latency_cycles": latency}
    keys = {"sa_iterations": "allocator_iterations"}
    router = [f"{keys.get(key, key)}: {value}" for key, value in (settings | latencies).items() if value is not None]
    lines.append("router: {" + ", ".join(router) + "}")
    lines.append(f"routing: {{algorithm: {'star_channel, check: false' if adaptive else 'dor'}}}")
    if slow:
        lines.append(f"degraded: {slow}")
    config = parse_config("\n".join(lines).replace("True", "true").replace("False", "false"))
    rng = np.random.default_rng(seed)
    hosts, count, last = 6, int(load * 6 * 120), 120
    longest = min(5, settings["buffer_flits"])
    script = (
        rng.integers(0, hosts, count),
        np.sort(rng.integers(0, last, count)),
        rng.integers(0, hosts, count),
        rng.integers(1, longest + 1, count),
    )
    run = Simulation(config, 0.1, 1, script=script, log_events=100000)
    while run.state["cycle"] < cycles and run.state["flits_ejected"] < script[3].sum():
        run.advance(25)
    run.advance(25)  # nothing comes after the last flit
    assert run.state.flits_in_flight == 0
    log = run.state["log"].reshape(-1, 6)[: int(run.state["log_length"])]
    want = {kind: [] for kind in (SENT, TAKEN)}
    for cycle, kind, source, _, packet, flit in log.tolist():
        if kind in want:
            want[kind].append((cycle, source, packet, flit))

    topology = run.topology
    ports, vcs = int(topology.ports[0]), settings["vcs"]
    full = (1 << vcs) - 1
    rule = ((((full, *[full & ~1] * (ports - 1)),) * vcs,) * ports,)
    escape = ((((1,) * ports,) * vcs,) * ports,)
    ahead = settings.get("lookahead", False)
    of_router = {key: value for key, value in settings.items() if key != "lookahead"}
    share = np.ones((6, ports)) if topology.rate_share is None else topology.rate_share
    params = [
        RouterParams(
            ports=ports, cycles_per_flit=tuple(round(1 / part) for part in share[r].tolist()), tag_bits=16,
            width_bits=80 if ahead else 72, routes=mesh_routes(topology, r, adaptive),
            vc_rule=rule if adaptive else (),
            escape_rule=escape, **(of_router | {"speculation": bool(settings.get("speculation"))}),
        )
        for r in range(topology.routers)
    ]  # fmt: skip
    if ahead:
        params = with_next_routes(params, topology)
    network = NetworkModel(params, topology_links(topology, latency))
    queues: list[list[Packet]] = [[] for _ in range(hosts)]
    for host, created, target, flits in zip(*(column.tolist() for column in script), strict=True):
        dst = int(topology.host_address[target])
        number = len(queues[host])
        queues[host].append(Packet(created, dst | host << 24 | number << 48 | flits << 64, flits))
    ends = topology_hosts(topology)
    models = [HostModel(params[end.router], queue, latency) for end, queue in zip(ends, queues, strict=True)]
    for cycle in range(int(run.state["cycle"])):
        visible = network.visible()
        outside: dict[End, PortInputs] = {}
        for model, end in zip(models, ends, strict=True):
            outside[end] = model.step(cycle, visible[end.router][end.port])
        network.step(outside)

    for kind, what in ((SENT, "sent"), (TAKEN, "received")):
        got = []
        for host, model in enumerate(models):
            current: dict[int, int] = {}
            for cycle, flit in getattr(model, what):
                if flit.is_head:
                    current[flit.vc] = (flit.data >> 24 & 0xFFFFFF) << 40 | flit.data >> 48 & 0xFFFF
                got.append((cycle, host, current[flit.vc], flit.kind))
        assert sorted(got) == sorted(want[kind]), what
    assert len(want[TAKEN]) == int(script[3].sum())


BASE = {"vcs": 2, "buffer_flits": 4}
ROUTERS = {
    "islip": {},
    "input first": {"va": "input_first", "sa": "input_first", "rc_cycles": 1},
    "wavefront": {"va": "wavefront", "sa": "wavefront", "rc_cycles": 2},
    "maximum size": {"va": "max_size", "sa": "max_size", "vcs": 3},
    "matrix": {"arbiter": "matrix", "vcs": 3, "sa": "input_first"},
    "matrix in the VC allocator": {"va_arbiter": "matrix", "vcs": 3},
    "matrix in the switch": {"arbiter": "matrix", "va_arbiter": "round_robin", "va": "input_first", "vcs": 3},
    "iterations": {"va_iterations": 2, "sa_iterations": 3, "vcs": 3},
    "iterations of the switch, speculation": {"sa_iterations": 2, "speculation": True, "va": "input_first", "vcs": 3},
    "iterations of the VC allocator": {"va_iterations": 4, "sa": "wavefront", "vcs": 4},
    "cut-through": {"switching": "vct", "buffer_flits": 6, "vc_release": "credits"},
    "speculation": {"speculation": True, "credit_delay_cycles": 2},
    "speculation, wavefront": {"speculation": True, "sa": "wavefront", "vc_release": "credits", "vcs": 3},
    "speculation, matrix": {"speculation": True, "sa": "input_first", "va": "input_first", "arbiter": "matrix"},
    "one VC": {"vcs": 1, "buffer_flits": 1},
    "free queue": {"va": "free_queue"},
    "free queue, matrix": {"va": "free_queue", "sa": "input_first", "arbiter": "matrix", "vcs": 3, "rc_cycles": 1},
    "free queue, cut-through": {
        "va": "free_queue", "sa": "wavefront", "switching": "vct", "buffer_flits": 6, "vc_release": "credits",
        "credit_delay_cycles": 2,
    },
    "free queue, one VC": {"va": "free_queue", "vcs": 1, "buffer_flits": 1},
    "inputs that choose ahead": {"va": "free_queue", "sa": "input_ahead", "vcs": 3, "buffer_flits": 3},
    "inputs that choose ahead, matrix": {
        "va": "free_queue", "sa": "input_ahead", "arbiter": "matrix", "vc_release": "credits", "vcs": 2,
    },
    "speculation, maximum size": {"speculation": True, "sa": "max_size", "va": "max_size", "rc_cycles": 1},
    "look-ahead": {"lookahead": True, "rc_cycles": 2, "va": "input_first", "sa": "input_first"},
    "look-ahead, free queue": {"lookahead": True, "rc_cycles": 1, "va": "free_queue", "vc_release": "credits"},
    "look-ahead, speculation, cut-through": {
        "lookahead": True, "rc_cycles": 1, "speculation": True, "switching": "vct", "buffer_flits": 6,
    },
}  # fmt: skip


@pytest.mark.parametrize("load", [pytest.param(0.1, marks=pytest.mark.study), 0.4])
@pytest.mark.parametrize("name", list(ROUTERS))
@pytest.mark.thinned(2)
def test_simulator_equals_golden_routers(name: str, load: float) -> None:
    run_both(BASE | ROUTERS[name], seed=len(name), adaptive=False, load=load, latency=1 + len(name) % 2)


class SharedSwitchRouter(RouterModel):
    """``speculation: shared``: heads in VA ask the allocator of all others, behind what asks for the same output."""

    def _switch_requests(self) -> list[dict[int, int]]:
        """Return, for each input, the output of each VC that requests one, heads in VA included."""
        self.sure = super()._switch_requests()
        vcs = self.params.vcs
        requests = [dict(asked) for asked in self.sure]
        for n, members in self._vc_requests().items():
            i, v, o = n // vcs, n % vcs, min(members) // vcs
            credits = any(self.outputs[o][m % vcs].credits > 0 for m in members)
            if credits and o not in self.sure[i].values():
                requests[i][v] = o
        return requests

    def _late_sends(
        self, requests: dict[int, set[int]], allocated: dict[int, int], sends: dict[int, tuple[int, int]]
    ) -> dict[int, tuple[int, int]]:
        """Move what was matched for heads in VA out of `sends`, and return what of it is sent."""
        late = {i: (o, v) for i, (o, v) in sends.items() if v not in self.sure[i]}
        self._sa.take({i: o for i, (o, _) in late.items()})
        for i, (_, v) in late.items():
            del sends[i]
            self._vc_pointer[i] = (v + 1) % self.params.vcs
        vcs = self.params.vcs
        given = {i: allocated.get(i * vcs + v) for i, (_, v) in late.items()}
        return {
            i: (o, v)
            for i, (o, v) in late.items()
            if (m := given[i]) is not None and self.outputs[o][m % vcs].credits > 0
        }


@pytest.mark.parametrize("load", [pytest.param(0.1, marks=pytest.mark.study), 0.5])
@pytest.mark.parametrize(
    "more", [{"credit_delay_cycles": 2}, {"vcs": 3, "va": "wavefront"}, {"arbiter": "matrix"}, {"switching": "vct"}]
)
def test_speculative_requests_in_the_allocator_of_all_others(
    monkeypatch: pytest.MonkeyPatch, more: dict, load: float
) -> None:
    monkeypatch.setattr("hopforge.model.router.network.RouterModel", SharedSwitchRouter)
    run_both(BASE | {"speculation": "shared"} | more, seed=4, adaptive=False, load=load, latency=1)


@pytest.mark.parametrize("more", [{}, {"vcs": 3, "speculation": True, "va": "wavefront"}, {"switching": "vct"}])
def test_adaptive_routing_with_an_escape(more: dict) -> None:
    run_both(BASE | more, seed=3, adaptive=True, load=0.4, latency=1)


#: every allocator, both ways to release, speculation, free queues and look-ahead stand behind slow links
SLOW = (
    "islip", "wavefront", "maximum size", "speculation, matrix", "one VC", "free queue, cut-through",
    "look-ahead, speculation, cut-through",
)  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        name if name in SLOW else pytest.param(name, marks=pytest.mark.study)
        for name in ROUTERS
        if "choose ahead" not in name
    ],
)
def test_slow_links(name: str) -> None:
    """An output of κ cycles per flit accepts one grant in any κ cycles (docs/definitions/router.md, SA)."""
    slow = "{links: [[0, 1], [1, 4]], factor: 0.25}"
    run_both(BASE | ROUTERS[name], seed=len(name), adaptive=False, load=0.3, latency=2, cycles=1500, slow=slow)


@pytest.mark.study
@pytest.mark.parametrize("block", range(20))
def test_any_parameters(block: int) -> None:
    """Half a million cycles of a router in each block."""
    for seed in range(20 * block, 20 * block + 20):
        run_any(seed)


def run_any(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = ["input_first", "output_first", "wavefront"]
    settings = {
        "vcs": int(rng.integers(1, 5)),
        "buffer_flits": int(rng.integers(1, 7)),
        "switching": str(rng.choice(["wormhole", "vct"])),
        "va": str(rng.choice(kinds)),
        "sa": str(rng.choice(kinds)),
        "arbiter": str(rng.choice(["round_robin", "matrix"])),
        "va_arbiter": [None, "round_robin", "matrix"][int(np.random.default_rng(seed + 1).integers(3))],
        "rc_cycles": int(rng.integers(0, 4)),
        "credit_delay_cycles": int(rng.integers(0, 3)),
        "vc_release": str(rng.choice(["tail", "credits"])),
        "speculation": bool(rng.integers(2)),
    }
    own = np.random.default_rng(seed + 2)
    turns = {"va": settings["va_arbiter"] or settings["arbiter"], "sa": settings["arbiter"]}
    for key, arbiter in turns.items():
        if settings[key] == "output_first" and arbiter == "round_robin":
            settings[f"{key}_iterations"] = int(own.integers(1, 5))
    if "sa_iterations" in settings:
        settings.setdefault("va_iterations", 1)
    adaptive = settings["vcs"] > 1 and bool(rng.integers(2))
    load, latency = float(rng.choice([0.1, 0.25, 0.4])), int(rng.integers(1, 4))
    run_both(settings, seed=seed, adaptive=adaptive, load=load, latency=latency, cycles=4000)
