"""Links and stages that take longer than `simulation.deadlock_cycles`: nothing moves, and that is no deadlock."""

import pytest

import hopforge as hf

MESH = "name: quiet\ntopology: {kind: mesh, radices: [3, 3]}\n"
TORUS = "name: quiet\ntopology: {kind: torus, radices: [4, 4]}\n"
SHORT = "warmup_cycles: 1000, min_cycles: 1000, deadlock_cycles: 100"
#: what takes long, and the cycles of a run in which packets arrive
FLITS = {
    "links": ("router: {link_latency_cycles: 700}", 6000),
    "links of hosts": ("router: {host_latency_cycles: 700}", 6000),
    "credits": ("router: {credit_delay_cycles: 1024}", 6000),
    "flits": ("router: {cycles_per_flit: 1024}", 20000),
    "route computation": ("router: {rc_cycles: 1024}", 20000),
    "the crossbar": ("router: {crossbar_cycles: 16, rc_cycles: 90}", 6000),
    "lookups": ("router: {route_computation: lookup}\nlookup: {tcam: {latency_cycles: 1024}}", 20000),
}


@pytest.mark.parametrize("load", [0.0005, 0.3])
@pytest.mark.parametrize(("section", "cycles"), FLITS.values(), ids=FLITS)
def test_routers_of_flits_wait_for_what_is_under_way(section: str, cycles: int, load: float) -> None:
    run = f"{SHORT}, max_cycles: {cycles}, precision: 0.0001"
    found = hf.simulate(hf.loads(f"{MESH}{section}\nsimulation: {{{run}}}\n"), load=load, progress=False)
    assert found["packets"] > 0
    assert load > 0.1 or "starved" not in found.tables  # under overload some do wait for their turn for that long


def test_the_limit_that_a_file_does_not_name_waits_for_the_longest_links() -> None:
    network = "name: quiet\ntopology: {kind: mesh, radices: [2]}\nrouter: {link_latency_cycles: 20000}\n"
    found = hf.simulate(hf.loads(network + "simulation: {max_cycles: 400000}\n"), load=0.0003, progress=False)
    assert found["packets"] > 50 and "starved" not in found.tables


@pytest.mark.parametrize("load", [0.0005, 0.3])
@pytest.mark.parametrize("key", ["link_ns", "host_ns", "global_ns"])
def test_input_output_queued_routers_wait(key: str, load: float) -> None:
    network = "name: quiet\ntopology: {kind: dragonfly, p: 1, a: 2, h: 1}\nrouting: {algorithm: dragonfly_min}\n"
    router = f"router: {{model: input_output_queued, vcs: 4, {key}: 20000}}\n"
    run = "simulation: {deadlock_cycles: 100, warmup_us: 10, measure_us: 300}\n"
    found = hf.simulate(hf.loads(network + router + run), load=load, progress=False)
    assert found["packets"] > 0


@pytest.mark.parametrize("queues", ["sending", "receiving"])
def test_routers_of_packets_wait(queues: str) -> None:
    routers = "router: {model: packet}\nrouting: {algorithm: por}\ntraffic: {message_packets: 4}\n"
    links = f"packet: {{link_ns: 1000000, messages: 400, queues: {queues}}}\n"
    found = hf.simulate(hf.loads(TORUS + routers + links), load=0.2, progress=False)
    assert found["packets"] > 0 and found["lifetime_ns"] > 1_000_000
