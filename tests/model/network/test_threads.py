"""Parts and threads give what one thread gives, to the bit; a thread that fails or a signal holds nobody up."""

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.kernel.compile import kernel
from hopforge.model.network.core.kinds import DEADLOCK, GROW
from hopforge.model.network.core.net_record import ROUTE_SIGNATURE
from hopforge.model.network.core.state import NetState
from hopforge.model.network.threads import alone
from hopforge.model.network.threads import crew as crew_module
from hopforge.model.network.threads.alone import why_alone
from hopforge.model.network.threads.crew import Crew
from hopforge.model.network.threads.ranges import divide, most_parts
from hopforge.sim.run.simulation import Simulation

TORUS = """
topology: {kind: torus, radices: [8, 8]}
router: {vcs: 4, buffer_flits: 8, va: islip, sa: islip, credit_delay_cycles: 2, link_latency_cycles: 2}
routing: {algorithm: dor, vc_rule: fixed, ties: random}
traffic: {packet_flits: 3}
"""
#: network → load: what differs is delays of links, lengths, sources, VCs, candidates, switching, allocators
NETWORKS = {
    "torus, ties drawn": (TORUS, 0.3),
    "mesh, shortest windows, RC in cycles, lengths drawn": (
        "topology: {kind: mesh, radices: [8, 9]}\n"
        "router: {vcs: 2, buffer_flits: 4, credit_delay_cycles: 0, rc_cycles: 2, va: input_first, sa: input_first}\n"
        "routing: {algorithm: dor}\ntraffic: {packet_range: [1, 5], source: on_off, burst_cycles: 40}\n",
        0.25,
    ),
    "adaptive, credits, matrix arbiters": (
        "topology: {kind: torus, radices: [8, 8]}\n"
        "router: {vcs: 3, buffer_flits: 12, vc_release: credits, arbiter: matrix, link_latency_cycles: 4}\n"
        "routing: {algorithm: star_channel}\ntraffic: {packet_flits: 2}\n",
        0.4,
    ),
    "dragonfly, two delays, UGAL": (
        "topology: {kind: dragonfly, p: 2, a: 4, h: 2}\n"
        "router: {vcs: 3, buffer_flits: 16, link_latency_cycles: 3, global_latency_cycles: 20, switching: vct}\n"
        "routing: {algorithm: ugal_group}\ntraffic: {packet_flits: 4, pattern: uniform}\n",
        0.6,
    ),
    "store and forward, hosts far away": (
        "topology: {kind: mesh, radices: [4, 8], hosts_per_router: 2}\n"
        "router: {vcs: 2, buffer_flits: 6, switching: saf, host_latency_cycles: 9, cycles_per_flit: 2}\n"
        "routing: {algorithm: dor}\ntraffic: {packet_flits: 3}\n",
        0.1,
    ),
    "most pairs at the switch": (
        "topology: {kind: mesh, radices: [4, 8], hosts_per_router: 4}\n"
        "router: {vcs: 2, buffer_flits: 4, sa: max_size}\nrouting: {algorithm: dor}\n",
        0.3,
    ),
    "66 ports": (
        "topology: {kind: fully_connected, routers: 17, hosts_per_router: 50}\n"
        "router: {vcs: 2, buffer_flits: 4, link_latency_cycles: 2}\n"
        "routing: {algorithm: minimal}\ntraffic: {packet_flits: 2}\n",
        0.02,
    ),
    "61 ports, wavefront": (
        "topology: {kind: fully_connected, routers: 17, hosts_per_router: 45}\n"
        "router: {vcs: 2, buffer_flits: 4, link_latency_cycles: 2, sa: wavefront}\n"
        "routing: {algorithm: minimal}\ntraffic: {packet_flits: 2}\n",
        0.3,
    ),
    "136 ports, wavefront, connections held": (
        "topology: {kind: fully_connected, routers: 17, hosts_per_router: 120}\n"
        "router: {vcs: 2, buffer_flits: 4, sa: wavefront, hold_switch: true}\n"
        "routing: {algorithm: minimal}\ntraffic: {packet_flits: 3}\n",
        0.05,
    ),
    "connections held": (
        "topology: {kind: mesh, radices: [5, 8], hosts_per_router: 3}\n"
        "router: {vcs: 2, buffer_flits: 4, sa: input_first, hold_switch: true}\n"
        "routing: {algorithm: dor}\ntraffic: {packet_flits: 4}\n",
        0.2,
    ),
}
CYCLES = 700


def simulation(yaml: str, load: float) -> Simulation:
    return Simulation(parse_config("name: test\n" + yaml), load, 1, check=False)


def go(run: Simulation, crew: Crew, cycles: int, piece: int = 137) -> int:
    end = int(run.state["cycle"]) + cycles
    code = 0
    while int(run.state["cycle"]) < end:
        code = crew.run(run.plan.route, run.traffic.pattern, min(piece, end - int(run.state["cycle"])))
        if code == GROW:
            run.state.grow_packets()
        elif code != 0:
            break
    return code


def figures(state: NetState) -> dict[str, Any]:
    """Everything in a state but the numbers of packet records, and what they are alone for."""
    found: dict[str, Any] = {
        name: state.record[name][0]
        for name in state.record.dtype.names or ()
        if name not in state.arrays and name not in ("free_packets", "sparse")
    }
    names = (
        "output_vc", "input_port", "output_port", "router", "host_credits", "host_tail_sent", "histogram",
        "network_histogram", "router_rng", "host_rng", "switching", "asking", "draining", "active", "waiting",
        "wanted", "heads_at", "sa_recent", "va_recent", "spec_port", "spec_mask",
        "flit_events", "credit_events", "ready_events", "input_vc",
        "host",
    )  # fmt: skip
    for name in names:
        array = state[name]
        for field in array.dtype.names or (None,):
            values = array if field is None else array[field]
            if (name, field) == ("host", "packet"):
                values = values >= 0
            if field != "fifo":
                found[f"{name} {field}"] = np.ascontiguousarray(values).tobytes()
    flits = state["input_vc"]["flits"]
    packets = [(int(n), int(k)) for n in np.flatnonzero(flits) for k in range(int(flits[n]))]
    where = [(n, (int(state["input_vc"]["head"][n]) + k) % int(state["buffer"])) for n, k in packets]
    buffered = [int(state["fifo"][n][place]) for n, place in where]
    for name in ("src", "dst", "length", "hops", "via", "phase", "number", "created", "sent"):
        found[f"packet {name}"] = [int(state["packet"][name][flit >> 2]) for flit in buffered]
    return found


@pytest.fixture(scope="module")
def one_thread() -> dict[str, Any]:
    """What one thread makes of each network."""
    found = {}
    for name, (yaml, load) in NETWORKS.items():
        run = simulation(yaml, load)
        assert why_alone(run.state) == ""
        run.advance(CYCLES)
        assert int(run.state["packets_ejected"]) > 500
        found[name] = figures(run.state)
    return found


OTHERS = ((2, 1), (7, 1), (3, 2))


@pytest.mark.parametrize(
    "parts, threads",
    [(1, 1), (3, 1), (2, 2), (7, 2), *(pytest.param(*few, marks=pytest.mark.study) for few in OTHERS)],
)
@pytest.mark.parametrize("name", NETWORKS)
def test_parts_and_threads_give_the_bits_of_one_thread(
    one_thread: dict[str, Any], name: str, parts: int, threads: int
) -> None:
    run = simulation(*NETWORKS[name])
    parts = min(parts, most_parts(run.state))
    assert go(run, Crew(run.state, parts, threads, run.built.run), CYCLES) == 0
    run.check_conservation()
    expected, found = one_thread[name], figures(run.state)
    assert [key for key in expected if expected[key] != found[key]] == []


def test_one_thread_and_any_parts_can_go_on_in_turn(one_thread: dict[str, Any]) -> None:
    name = "torus, ties drawn"
    run = simulation(*NETWORKS[name])
    go(run, Crew(run.state, 3, 2, run.built.run), 101)
    run.advance(250)
    go(run, Crew(run.state, 8, 2, run.built.run), 3, piece=1)
    go(run, Crew(run.state, 5, 1, run.built.run), CYCLES - 354)
    expected, found = one_thread[name], figures(run.state)
    assert [key for key in expected if expected[key] != found[key]] == []


def _to_few(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    """Deliver in the same router, and drop all else."""
    if table[0] >= 0 and packet.dst != router:
        return 0
    out[0] = 4 | (15 << 18)
    return 1


def test_packets_without_a_route_are_dropped_alike() -> None:
    route = kernel(ROUTE_SIGNATURE)(_to_few)
    found = []
    for parts in (0, 3):
        run = simulation(TORUS.replace("torus", "mesh"), 0.5)
        run.plan = type(run.plan)(route, np.zeros(1, np.int32))
        if parts:
            go(run, Crew(run.state, parts, 2, run.built.run), 200)
        else:
            run.advance(200)
        assert int(run.state["packets_dropped"]) > 100
        found.append(figures(run.state))
    assert [key for key in found[0] if found[0][key] != found[1][key]] == []


def test_a_deadlock_is_noticed_in_the_same_cycle() -> None:
    yaml = (
        "topology: {kind: torus, radices: [8, 8]}\nrouter: {vcs: 1, buffer_flits: 2}\n"
        "routing: {algorithm: user, check: false}\n".replace("user", "up_down")
        + "simulation: {deadlock_cycles: 150}\n"
    )
    turn = kernel(ROUTE_SIGNATURE)(_round_the_ring)
    cycles = []
    for parts in (0, 4):
        run = simulation(yaml, 0.9)
        run.plan = type(run.plan)(turn, np.zeros(1, np.int32))
        if parts:
            assert go(run, Crew(run.state, parts, 2, run.built.run), 5000) == DEADLOCK
        else:
            with pytest.raises(Exception, match="deadlock at cycle"):
                run.advance(5000)
        cycles.append((int(run.state["cycle"]), int(run.state["last_move"]), run.state.flits_in_flight))
    assert cycles[0] == cycles[1]
    assert cycles[0][0] == cycles[0][1] + 152


def _round_the_ring(
    router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any
) -> int:
    """Go round the rings of one direction with one VC: they fill and stand still."""
    x, goal = router & 7, packet.dst & 7
    port = 0 if router == packet.dst else (2 if x != goal else 4)
    out[0] = port | (1 << 18)
    return 1


def test_a_signal_ends_all_threads_soon_and_leaves_a_whole_state(
    monkeypatch: pytest.MonkeyPatch, one_thread: dict[str, Any]
) -> None:
    name = "torus, ties drawn"
    run = simulation(*NETWORKS[name])
    crew = Crew(run.state, 4, 2, run.built.run)
    go(run, crew, 50)

    class Interrupted(crew_module.SimpleQueue):  # type: ignore[type-arg]
        waits = 0

        def get(self, *_: Any) -> Any:
            Interrupted.waits += 1
            if Interrupted.waits == 1:
                raise KeyboardInterrupt
            return super().get()

    before = threading.active_count()
    with monkeypatch.context() as patched:
        patched.setattr(crew_module, "SimpleQueue", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            go(run, crew, 9000, piece=9000)
    assert int(run.state["cycle"]) < 9050
    run.check_conservation()
    for thread in threading.enumerate():
        if thread.daemon and thread.name.startswith("hopforge"):
            thread.join(5)
    assert threading.active_count() == before
    other = simulation(*NETWORKS[name])
    other.advance(int(run.state["cycle"]))
    assert figures(other.state) == figures(run.state)


def test_a_thread_that_fails_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulation(*NETWORKS["torus, ties drawn"])
    crew = Crew(run.state, 4, 2, run.built.run)
    go(run, crew, 20)
    whole = crew_module.parts_kernel(run.state.record[0]).compiled

    def fails(route: Any, pattern: Any, record: Any, number: int) -> int:
        if number == 1:
            raise MemoryError("no more")
        return int(whole(route, pattern, record, number))

    monkeypatch.setattr(crew_module, "parts_kernel", lambda _: SimpleNamespace(compiled=fails))
    with pytest.raises(MemoryError, match="no more"):
        go(run, crew, 400)


def test_threads_are_compiled_for_before_a_sweep_starts_its_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    run, asked = simulation(*NETWORKS["torus, ties drawn"]), []
    monkeypatch.setattr(crew_module, "parts_kernel", lambda net: asked.append(net) or SimpleNamespace(compiled=None))
    Crew(run.state, 4, 2, run.built.run)
    assert len(asked) == 1


def test_parts_are_ranges_of_about_equal_work() -> None:
    state = simulation(*NETWORKS["mesh, shortest windows, RC in cycles, lengths drawn"]).state
    ranges = divide(state, 3)
    assert ranges.routers.tolist() == [0, 24, 48, 72]
    assert ranges.hosts.tolist() == [0, 24, 48, 72]
    assert ranges.window == 2  # a credit takes a cycle in the switch and one on the link
    assert (ranges.lane_time.tolist(), ranges.lane_host.tolist()) == ([3, 2], [0, 1])
    assert ranges.links.tolist() == [[2 * (8 * 2 + 7 * 3), 8, 0], [8, 74, 8], [0, 8, 74]]
    assert most_parts(state) == 9
    with pytest.raises(ValueError, match="parts must be 1 to 9, not 10"):
        divide(state, 10)
    with pytest.raises(ValueError, match="threads must be 1 to 2"):
        Crew(state, 2, 3, lambda *_: 0)


def test_what_has_one_state_for_all_routers_stays_on_one_thread() -> None:
    state = simulation("topology: {kind: mesh, radices: [4, 4]}\n", 0.1).state
    assert why_alone(state) == ""
    for name, words in alone._SHARED.items():
        state.record[name] = 1
        assert why_alone(state) == words
        state.record[name] = 0
    state.record["switch_match"] = 1
    assert "inputs choose ahead" in why_alone(state)
    state.record["switch_match"] = 0
    state.arrays["memory"] = np.zeros(2)
    assert why_alone(state) == "the routing algorithm learns"


def test_messages_and_speculation_of_a_file_stay_on_one_thread() -> None:
    for more, words in (
        ("traffic: {message_packets: 3}", "several packets"),
        ("router: {speculation: true}", "router.s"),
    ):
        run = simulation(f"topology: {{kind: mesh, radices: [4, 4]}}\n{more}\n", 0.1)
        assert words in why_alone(run.state)


def test_listed_packets_and_small_networks_stay_on_one_thread() -> None:
    config = parse_config("name: test\ntopology: {kind: mesh, radices: [4, 2]}\n")
    listed = tuple(np.zeros(1, np.int64) + k for k in (0, 1, 2, 3))
    assert why_alone(Simulation(config, 0.1, 1).state) == "the network has at most 8 routers"
    assert why_alone(Simulation(config, 0.1, 1, script=listed).state) == "packets are listed one by one"  # type: ignore[arg-type]
