"""Plain networks run on machine code without what they rule out: the same to the bit, and only they do."""

from typing import Any

import pytest

from hopforge.model.config import parse_config
from hopforge.model.kernel.constant_record import constant_record
from hopforge.model.network import kernel as kernel_module
from hopforge.model.network.core.kinds import GROW
from hopforge.model.network.core.net_record import NET, PLAIN, is_plain
from hopforge.model.network.core.state import NetState
from hopforge.model.network.threads import kernel as parts_module
from hopforge.model.network.threads.crew import Crew
from hopforge.sim.run.simulation import Simulation

MESH = "topology: {kind: mesh, radices: [4, 4]}\nrouting: {algorithm: dor}\n"
PLAIN_NETWORKS = {
    "mesh": (MESH + "router: {vcs: 4, buffer_flits: 8}\n", 0.4),
    "mesh beyond its saturation, long buffers": (MESH + "router: {vcs: 2, buffer_flits: 12}\n", 0.9),
    "torus, lengths drawn, bursts": (
        "topology: {kind: torus, radices: [5, 5]}\nrouting: {algorithm: dor}\nrouter: {vcs: 2, buffer_flits: 4}\n"
        "traffic: {packet_range: [1, 5], source: on_off, burst_cycles: 40}\n",
        0.2,
    ),
    "dragonfly, cut-through": (
        "topology: {kind: dragonfly, p: 2, a: 4, h: 2}\nrouting: {algorithm: dragonfly_min}\n"
        "router: {vcs: 3, buffer_flits: 16, link_latency_cycles: 3, global_latency_cycles: 20, switching: vct}\n"
        "traffic: {packet_flits: 4, pattern: uniform}\n",
        0.5,
    ),
    "fat tree": (
        "topology: {kind: fat_tree, k: 4, n: 2}\nrouting: {algorithm: d_mod_k}\nrouter: {vcs: 2, buffer_flits: 4}\n",
        0.6,
    ),
}
#: what a network has beyond a plain one → section, the field of its record that says so
OTHERS = {
    "speculation": ("router: {vcs: 2, speculation: true}\n", "speculation"),
    "another allocator": ("router: {vcs: 2, sa: wavefront}\n", "switch_match"),
    "several crossbar ports": ("router: {vcs: 2, input_speedup: 2}\n", "sped_up"),
    "connections held": ("router: {vcs: 2, hold_switch: true}\n", "hold_switch"),
    "credits": ("router: {vcs: 2, vc_release: credits}\n", "release_credits"),
    "stages": ("router: {vcs: 2, rc_cycles: 2}\n", "unusual"),
    "many VCs": ("router: {vcs: 16, buffer_flits: 2}\n", "vc_words"),
    "replies": ("router: {vcs: 2}\ntraffic: {pattern: uniform, reply: {flits: 1}}\n", "replies"),
    "a relation of several ports": ("router: {vcs: 4}\n", "vc_lists"),
}


#: networks with optional parts beside which flits are sorted as they come, too; more than `CHUNK` flits in a cycle
SORTED = PLAIN_NETWORKS | {
    "several ports": (MESH.replace("dor", "minimal") + "router: {vcs: 4}\n", 0.5),
    "credits, long buffers": (MESH + "router: {vcs: 4, buffer_flits: 12, vc_release: credits}\n", 0.5),
    "steps": (MESH + "router: {vcs: 2, internal_speedup: 2}\n", 0.5),
    "replies": (MESH + "router: {vcs: 4}\ntraffic: {pattern: uniform, packet_flits: 3, reply: {flits: 2}}\n", 0.2),
    "detours by queues": (
        "topology: {kind: dragonfly, p: 2, a: 4, h: 2}\nrouting: {algorithm: ugal_group}\n"
        "router: {vcs: 4, buffer_flits: 8}\ntraffic: {packet_flits: 2}\n",
        0.5,
    ),
    "many flits in a cycle": (
        "topology: {kind: torus, radices: [8, 8], hosts_per_router: 2}\nrouting: {algorithm: dor}\n"
        "router: {vcs: 4, buffer_flits: 8}\ntraffic: {packet_flits: 3}\n",
        0.3,
    ),
}
#: what only the one or the other way writes: lists of this cycle, and what is left in lists that are read
SCRATCH = ("unusual", "heads_next", "bodies", "to_hosts", "flit_event")


def run(yaml: str, load: float, cycles: int = 400) -> Simulation:
    found = simulation(yaml, load)
    found.advance(cycles)
    return found


def simulation(yaml: str, load: float) -> Simulation:
    return Simulation(parse_config("name: test\n" + yaml), load, 1, check=False)


def whole(state: NetState) -> dict[str, Any]:
    """Everything in a state but addresses."""
    numbers = {name: state.record[name][0] for name in NET.names or () if name not in state.arrays}
    assert numbers["flits_ejected"] > 500
    return numbers | {name: array.tobytes() for name, array in state.arrays.items()}


@pytest.mark.parametrize("name", PLAIN_NETWORKS)
def test_the_kernel_of_plain_networks_is_that_of_all(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run(*PLAIN_NETWORKS[name])
    assert is_plain(plain.state.record[0])
    monkeypatch.setattr(kernel_module, "is_plain", lambda _: False)
    assert whole(run(*PLAIN_NETWORKS[name]).state) == whole(plain.state)


@pytest.mark.parametrize("name", SORTED)
def test_sorted_arrivals_are_as_one_after_the_other(name: str) -> None:
    found = []
    for unusual in (0, 1):
        one = simulation(*SORTED[name])
        assert int(one.state["unusual"]) == 0
        one.state.record["unusual"] = unusual  # as beside stages or engines, whose hooks see one flit after the other
        one.advance(400)
        assert (bytes(one.state["bodies"].tobytes()).strip(b"\0") == b"") == bool(unusual)
        found.append({name: value for name, value in whole(one.state).items() if name not in SCRATCH})
    assert found[0] == found[1]


@pytest.mark.study
def test_so_are_those_of_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for is_one in (is_plain, lambda _: False):
        monkeypatch.setattr(parts_module, "is_plain", is_one)
        one = simulation(*PLAIN_NETWORKS["dragonfly, cut-through"])
        assert is_plain(one.state.record[0])
        crew = Crew(one.state, 3, 2, one.built.run)
        while (left := 400 - int(one.state["cycle"])) > 0:
            if crew.run(one.plan.route, one.traffic.pattern, left) == GROW:
                one.state.grow_packets()
        found.append(whole(one.state))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", OTHERS)
def test_other_networks_are_not_plain(name: str) -> None:
    section, field = OTHERS[name]
    topology = MESH.replace("dor", "minimal") if field == "vc_lists" else MESH
    record = simulation(topology + section, 0.1).state.record[0]
    assert int(record[field]) != PLAIN[field]
    assert not is_plain(record)


def test_a_network_whose_events_are_logged_is_not_plain() -> None:
    config = parse_config("name: test\n" + PLAIN_NETWORKS["mesh"][0])
    assert not is_plain(Simulation(config, 0.1, 1, log_events=100).state.record[0])


def test_only_constant_fields_are_known() -> None:
    with pytest.raises(ValueError, match="field 'cycle' is known but not constant"):
        constant_record(NET, ["hosts"], known={"cycle": 0})
